"""How Claude Code names a project's folder, and which worktrees and folders share it."""

from pathlib import Path

import pytest

from engram.recall.sources.places import slug
from tests.recall.sources.home import SourceHome


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/home/ann/my_project.v2", "-home-ann-my-project-v2"),
        ("/home/ann/a b", "-home-ann-a-b"),
        ("/home/müller", "-home-m-ller"),
        ("/home/😀", "-home---"),
    ],
)
def test_every_character_that_is_no_letter_or_digit_becomes_a_dash(path: str, expected: str) -> None:
    assert slug(path) == expected


def test_a_long_path_is_cut_and_hashed() -> None:
    path = "/home/ann/" + "x" * 300
    assert slug(path)[:200] == ("-home-ann-" + "x" * 300)[:200]
    assert slug(path)[200] == "-" and slug(path) != slug(path + "y")


def test_auto_memory_of_a_long_path_is_found_whatever_the_hash(user: SourceHome) -> None:
    project = user.home / ("d" * 150) / ("e" * 150)
    (project / ".git").mkdir(parents=True)
    name = slug(str(project))[:200]
    user.write(f".claude/projects/{name}-1a2b3c/memory/MEMORY.md", "Notes")
    assert len(user.documents("auto-memory", project)) == 1


def test_auto_memory_is_read_index_first(user: SourceHome) -> None:
    for name in ("a.md", "MEMORY.md", "z.md", "notes.txt"):
        user.write(user.transcripts / "memory" / name, name)
    assert [Path(path).name for path in user.documents("auto-memory")] == ["MEMORY.md", "a.md", "z.md"]


def test_a_worktree_and_a_folder_below_share_the_auto_memory_of_the_main_repository(user: SourceHome) -> None:
    user.write(user.transcripts / "memory" / "MEMORY.md", "Notes")
    tree = user.home / "trees" / "fix"
    own = user.project / ".git" / "worktrees" / "fix"
    own.mkdir(parents=True)
    (own / "commondir").write_text("../..\n")
    (own / "gitdir").write_text(f"{tree}/.git\n")
    tree.mkdir(parents=True)
    (tree / ".git").write_text(f"gitdir: {own}\n")
    below = user.in_project("src/a.py").parent
    assert len(user.documents("auto-memory", tree)) == len(user.documents("auto-memory", below)) == 1


def test_a_folder_that_only_claims_to_be_a_worktree_sees_nothing_of_the_repository(user: SourceHome) -> None:
    user.write(user.transcripts / "memory" / "MEMORY.md", "Notes")
    claimed = user.home / "downloaded"
    claimed.mkdir()
    (claimed / ".git").write_text(f"gitdir: {user.project}/.git\n")
    assert user.documents("auto-memory", claimed) == []


def test_only_the_users_and_the_managed_settings_choose_the_folder_of_the_auto_memory(user: SourceHome) -> None:
    user.write("mine/MEMORY.md", "Mine")
    user.write("theirs/MEMORY.md", "Theirs")
    user.in_project(".claude/settings.json", '{"autoMemoryDirectory": "~/theirs"}')
    user.in_project(".claude/settings.local.json", '{"autoMemoryDirectory": "~/theirs"}')
    assert user.documents("auto-memory") == []
    user.write(".claude/settings.json", '{"autoMemoryDirectory": "~/mine"}')
    assert user.documents("auto-memory") == ["mine/MEMORY.md"]


@pytest.mark.parametrize("text", ["{", "[]", '{"autoMemoryDirectory": 3}', '{"autoMemoryDirectory": "relative"}', "\0"])
def test_settings_that_cannot_be_used_are_ignored(user: SourceHome, text: str) -> None:
    user.write(".claude/settings.json", text)
    user.write(user.transcripts / "memory" / "MEMORY.md", "Notes")
    assert len(user.documents("auto-memory")) == 1
