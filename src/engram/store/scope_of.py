"""Which scope a directory belongs to: one place, for every surface (DESIGN §11)."""

import json
import re
from collections.abc import Container
from pathlib import Path

from engram.model.errors import InvalidInput
from engram.rules.scopes import parse_scope

TRUST_FILE = "trust.json"
_NOT_IN_SCOPE = re.compile(r"[^\w.@+-]+")


def scope_of(path: Path, trusted: Container[str] = ()) -> str | None:
    """The project scope of a directory: `.engram/config.toml`'s override, the repository's remote, or its folder's name.

    The override counts only where its digest is among `trusted`: a cloned repository must not choose whose memories it
    sees. None outside of any repository.
    """
    top = repository_of(path)
    if top is None:
        return None
    return _override(top, trusted) or _from_remote(top) or f"project:{_clean(_main_worktree(top).name)}"


def repository_of(path: Path) -> Path | None:
    """The nearest folder upwards that is a repository or holds a team store."""
    path = path.absolute()
    for folder in (path, *path.parents):
        if (folder / ".git").exists() or (folder / ".engram" / "engrams").is_dir():
            return folder
    return None


def trusted_of(state: Path, directory: Path) -> frozenset[str]:
    """Digests of what a store's owner trusts of a directory's repository; `state` is the store's state folder."""
    top = repository_of(directory)
    if top is None:
        return frozenset()
    return frozenset(trusted_by_folder(state).get(str(top / ".engram" / "engrams"), ()))


def trusted_by_folder(state: Path) -> dict[str, list[str]]:
    """Everything a store's owner trusts: digests by folder."""
    try:
        loaded = json.loads((state / TRUST_FILE).read_text("utf-8")) if (state / TRUST_FILE).is_file() else {}
    except (OSError, ValueError):
        return {}
    return loaded if isinstance(loaded, dict) else {}


def team_folder(path: Path) -> Path | None:
    """The team store that a directory's repository carries, if any."""
    top = repository_of(path)
    folder = top / ".engram" / "engrams" if top else None
    if folder is None or not folder.is_dir() or folder.is_symlink() or folder.parent.is_symlink():
        return None  # a link would let a clone say where its reader's files are written
    return folder


def config_of(top: Path) -> Path:
    """Where a repository keeps its settings for Engram."""
    return top / ".engram" / "config.toml"


def _override(top: Path, trusted: Container[str]) -> str | None:
    config = config_of(top)
    if trusted == () or not config.is_file():
        return None
    import hashlib
    import tomllib

    try:
        data = config.read_bytes()
        if hashlib.sha256(data).hexdigest() not in trusted:
            return None
        scope = tomllib.loads(data.decode()).get("scope")
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidInput(f"{config}: {error}") from None
    return parse_scope(scope) if isinstance(scope, str) else None


def _git_folder(top: Path) -> Path | None:
    """The repository's own `.git`, shared by its worktrees."""
    git = top / ".git"
    if git.is_dir():
        return git
    if not git.is_file():
        return None
    try:
        target = Path(git.read_text("utf-8").partition("gitdir:")[2].strip())
        target = target if target.is_absolute() else top / target
        common = target / "commondir"
        return (target / common.read_text("utf-8").strip()).resolve() if common.is_file() else target
    except (OSError, UnicodeDecodeError):
        return None


def _main_worktree(top: Path) -> Path:
    git = _git_folder(top)
    return git.parent if git is not None and git.name == ".git" else top


def _from_remote(top: Path) -> str | None:
    git = _git_folder(top)
    if git is None or not (git / "config").is_file():
        return None
    import configparser

    parser = configparser.RawConfigParser(strict=False, allow_no_value=True)
    try:
        parser.read_string(_flattened((git / "config").read_text("utf-8")))
    except (OSError, UnicodeDecodeError, configparser.Error):
        return None
    sections = [s for s in parser.sections() if s.startswith("remote ")]
    sections.sort(key=lambda s: (s != 'remote "origin"', s))
    urls = [parser.get(s, "url", fallback=None) for s in sections]
    return next((scope for url in urls if url and (scope := normalised_remote(url))), None)


def _flattened(text: str) -> str:
    return "\n".join(line.strip() for line in text.splitlines())


def normalised_remote(url: str) -> str | None:
    """`project:owner/name`, the same for ssh and https, with or without `.git`, user or port."""
    rest = re.sub(r"^[a-z+]+://", "", url.strip(), flags=re.IGNORECASE)
    rest = rest.split("?")[0].removesuffix("/").removesuffix(".git")
    path = rest.partition(":")[2] if "://" not in url and ":" in rest else rest.partition("/")[2]
    parts = [_clean(part) for part in path.split("/") if part not in ("", ".", "..")]
    parts = [part for part in parts if part][-3:]
    return f"project:{'/'.join(parts)}".lower() if parts else None


def _clean(name: str) -> str:
    return _NOT_IN_SCOPE.sub("-", name).strip("-.") or "project"
