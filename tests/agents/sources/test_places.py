"""How Claude Code names a project's folder, and which worktrees and folders share it."""

from pathlib import Path

import pytest

from engram.agents.known.claude_code import finders
from engram.agents.known.claude_code.finders import slug
from engram.recall.sources.sessions import is_here
from tests.recall.sources.home import SourceHome
from tests.repositories import make_repository


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
    make_repository(project)
    name = slug(str(project))[:200]
    folder = user.config / "projects" / f"{name}-1a2b3c"
    user.write(folder / "memory" / "MEMORY.md", "Notes")
    assert user.documents("auto-memory", project) == []
    user.session("s1", [("user", "Hello")], directory=project, folder=folder)
    assert len(user.documents("auto-memory", project)) == 1
    user.session("s2", [("user", "Hello")], directory=project.with_name("e" * 151), folder=folder)
    assert user.documents("auto-memory", project) == []


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


@pytest.fixture
def namesakes(user: SourceHome) -> SourceHome:
    """A user with auto memory about `work/acme-api`, whose folder has the same name as that of `work/acme_api` and `work/acme/api`."""
    for path in ("work/acme-api/.git", "work/acme_api/.git", "work/acme/.git", "work/acme/api/.git"):
        (user.home / path).mkdir(parents=True)
    user.write(folder_of(user) / "memory" / "MEMORY.md", "Notes")
    return user


def folder_of(user: SourceHome) -> Path:
    return user.config / "projects" / slug(str(user.home / "work" / "acme-api"))


def auto_memory_in(user: SourceHome, *names: str) -> list[str]:
    """Those of some directories in which auto memory is found."""
    return [name for name in names if user.documents("auto-memory", user.home / "work" / name)]


NAMESAKES = ("acme-api", "acme_api", "acme/api")


def test_auto_memory_of_a_name_that_several_projects_have_is_not_shown(namesakes: SourceHome) -> None:
    assert auto_memory_in(namesakes, *NAMESAKES) == []
    namesakes.session(
        "s1", [("user", "Hello")], directory=namesakes.home / "work/acme_api", folder=folder_of(namesakes)
    )
    assert auto_memory_in(namesakes, *NAMESAKES) == []


def test_auto_memory_of_a_project_that_is_gone_is_not_shown_to_its_namesake(user: SourceHome) -> None:
    (user.home / "work/acme_api/.git").mkdir(parents=True)
    user.write(folder_of(user) / "memory" / "MEMORY.md", "Notes")
    user.session("old", [("user", "Hello")], directory=user.home / "work/acme-api", folder=folder_of(user))
    user.session("new", [("user", "Hello")], directory=user.home / "work/acme_api", folder=folder_of(user), hours_ago=0)
    assert auto_memory_in(user, *NAMESAKES) == []


def test_a_folder_inside_of_another_repository_does_not_hide_auto_memory(user: SourceHome) -> None:
    for path in ("work/acme-api/.git", "work/acme/.git", "work/acme/api"):
        (user.home / path).mkdir(parents=True)
    (user.home / "work" / "acme_api").symlink_to("acme-api")
    user.write(folder_of(user) / "memory" / "MEMORY.md", "Notes")
    user.session("s1", [("user", "Hello")], directory=user.home / "work/acme-api", folder=folder_of(user))
    user.session("s2", [("user", "Hello")], directory=user.home / "elsewhere", folder=folder_of(user))
    assert auto_memory_in(user, *NAMESAKES) == ["acme-api", "acme_api"]


def test_a_session_without_a_directory_is_not_shown_to_a_namesake(user: SourceHome) -> None:
    own, clone = (user.home / "work" / name for name in ("acme-api", "acme_api"))
    make_repository(own)
    record = '{"type": "user", "message": {"role": "user", "content": "Ann approves rollbacks"}}\n'
    user.write(folder_of(user) / "s1.jsonl", record)
    [session] = user.catalog(own).sessions
    assert is_here(session, "", user.places(own))
    make_repository(clone)
    assert not is_here(session, "", user.places(clone))


def test_more_folders_than_can_be_searched_hide_auto_memory(user: SourceHome, monkeypatch: pytest.MonkeyPatch) -> None:
    user.write(user.transcripts / "memory" / "MEMORY.md", "Notes")
    assert len(user.documents("auto-memory")) == 1
    monkeypatch.setattr(finders, "MAX_FOLDERS", 2)
    assert user.documents("auto-memory") == []


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
