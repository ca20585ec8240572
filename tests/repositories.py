"""Repositories as git makes them, without starting git."""

from pathlib import Path


def make_repository(top: Path, remote: str = "") -> Path:
    """Make a folder a repository that git would accept, unless it is one; returns the folder."""
    git = top / ".git"
    for name in ("objects", "refs"):
        (git / name).mkdir(parents=True, exist_ok=True)
    (git / "HEAD").write_text("ref: refs/heads/main\n")
    if remote:
        (git / "config").write_text(f'[remote "origin"]\n\turl = {remote}\n')
    return top
