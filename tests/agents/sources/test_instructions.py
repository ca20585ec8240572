"""Which CLAUDE.md and AGENTS.md are read, and what they import."""

import os
from pathlib import Path

import pytest

from engram.agents.agent import CodingAgent, all_agents
from engram.agents.sources.documents import imports_of
from tests.recall.sources.home import SourceHome
from tests.tables import table


def test_instructions_are_found_up_the_tree_nearest_first_then_the_users_and_the_managed_ones(user: SourceHome) -> None:
    inside = user.in_project("api/handlers/x.py").parent
    for path in ("api/CLAUDE.md", "CLAUDE.md", ".claude/CLAUDE.md", "CLAUDE.local.md", "AGENTS.md"):
        user.in_project(path, path)
    user.write("code/CLAUDE.md", "above the repository")
    user.write(".claude/CLAUDE.md", "the user's")
    managed = user.folder / "managed" / "CLAUDE.md"
    managed.parent.mkdir()
    managed.write_text("the organisation's")
    assert user.documents("instructions", inside) == [
        "code/acme/api/CLAUDE.md", "code/acme/CLAUDE.md", "code/acme/.claude/CLAUDE.md", "code/acme/CLAUDE.local.md",
        "code/acme/AGENTS.md", "code/CLAUDE.md", ".claude/CLAUDE.md", str(managed),
    ]  # fmt: skip


def test_another_configuration_folder_is_the_users(user: SourceHome) -> None:
    user.write(".claude/CLAUDE.md", "not this one")
    user.write("elsewhere/CLAUDE.md", "this one")
    assert user.documents("instructions", CLAUDE_CONFIG_DIR=str(user.home / "elsewhere")) == ["elsewhere/CLAUDE.md"]


AGENTS_OF_USERS = [agent for agent in all_agents() if agent.instructions.of_user]


@pytest.mark.parametrize("agent", AGENTS_OF_USERS, ids=lambda agent: agent.name)
def test_the_users_file_may_name_its_neighbours_but_nothing_private(user: SourceHome, agent: CodingAgent) -> None:
    folder = user.places().user_folder(agent)
    private = [f"{name}/notes.md" for name in agent.folder.private if "." not in name]
    names = ["near.md", "deep/notes.md", *private]
    user.write(folder / agent.instructions.of_user[0], " ".join(f"@{name}" for name in names))
    for name in names:
        user.write(folder / name, name)
    found = [Path(path).relative_to(".") for path in user.documents("instructions")]
    below = folder.relative_to(user.home)
    assert private and found[1:] == [below / "near.md", below / "deep/notes.md"]


@pytest.mark.parametrize("agent", AGENTS_OF_USERS, ids=lambda agent: agent.name)
def test_a_repository_names_nothing_in_the_users_folder(user: SourceHome, agent: CodingAgent) -> None:
    folder = user.places().user_folder(agent)
    user.write(folder / "near.md", "mine")
    user.in_project(agent.instructions.context_file, f"@{folder}/near.md @~/{folder.relative_to(user.home)}/near.md")
    assert user.documents("instructions") == [f"code/acme/{agent.instructions.context_file}"]


def test_a_home_without_claude_code_has_no_sources(user: SourceHome) -> None:
    catalog = user.catalog()
    assert (catalog.documents, catalog.sessions) == ([], [])


def test_imports_are_read_relative_to_their_file_with_a_home_and_absolute(user: SourceHome) -> None:
    user.in_project("CLAUDE.md", f"See @docs/a.md, (@docs/b.md) and @~/code/acme/c.md. Also @{user.project}/d.md!")
    paths = ["docs/a.md", "docs/b.md", "c.md", "d.md"]
    for path in paths:
        user.in_project(path, path)
    assert user.documents("instructions")[1:] == [f"code/acme/{path}" for path in paths]


def test_imports_of_imports_end_after_five_hops(user: SourceHome) -> None:
    user.in_project("CLAUDE.md", "@hop1.md")
    for hop in range(1, 8):
        user.in_project(f"hop{hop}.md", f"@hop{hop + 1}.md")
    assert user.documents("instructions")[-1] == "code/acme/hop5.md"


def test_a_cycle_of_imports_ends(user: SourceHome) -> None:
    user.in_project("CLAUDE.md", "@a.md")
    user.in_project("a.md", "@CLAUDE.md @a.md @b.md")
    user.in_project("b.md", "@a.md")
    assert user.documents("instructions") == ["code/acme/CLAUDE.md", "code/acme/a.md", "code/acme/b.md"]


@table(
    ("text", "expected"),
    [
        ("@a.md", ["a.md"]),
        ("mail me@a.md", []),
        ("```\n@a.md\n```\n@b.md", ["b.md"]),
        ("~~~sh\n@a.md", []),
        ("`@a.md` and ``@b.md`` and @c.md", ["c.md"]),
        (r"@my\ notes.md", ["my notes.md"]),
        ("(@a.md)", ["a.md"]),
        ("Run:\n\n    @a.md\n\n\t@b.md\n    @c.md\n\n@d.md", ["d.md"]),
        ("    @a.md\n# Title\n    @b.md\ntext\n    @c.md", ["c.md"]),
        ("- one\n\n    @a.md\n\n  and\n\n    @b.md\n\ntext\n\n    @c.md", ["a.md", "b.md"]),
        ("1. one\nmore\n\n    @a.md", ["a.md"]),
        ("<!-- @a.md\n\n@b.md --> @c.md <!--\n@d.md", ["c.md"]),
        ("<!-- @a.md --> @b.md and `<!--` @c.md", ["b.md", "c.md"]),
    ],
)
def test_what_counts_as_an_import(text: str, expected: list[str]) -> None:
    assert list(imports_of(text)) == expected


def test_an_import_outside_of_home_and_project_is_not_read(user: SourceHome, tmp_path: Path) -> None:
    outside = tmp_path / "outside.md"
    outside.write_text("not yours")
    user.in_project("CLAUDE.md", f"@{outside} @../../../outside.md")
    assert user.documents("instructions") == ["code/acme/CLAUDE.md"]


def test_a_cloned_repository_cannot_import_files_of_the_home(user: SourceHome) -> None:
    user.in_project("CLAUDE.md", "@~/.ssh/config @~/.config/notes.md @~/keys.pem @~/notes.md")
    for path in (".ssh/config", ".config/notes.md", "keys.pem", "notes.md"):
        user.write(path, "x")
    assert user.documents("instructions") == ["code/acme/CLAUDE.md"]


def test_a_link_out_of_the_allowed_folders_is_not_followed(user: SourceHome, tmp_path: Path) -> None:
    secret = tmp_path / "secret.md"
    secret.write_text("not yours")
    (user.project / "CLAUDE.md").symlink_to(secret)
    user.in_project("AGENTS.md", "@linked.md")
    (user.project / "linked.md").symlink_to(secret)
    assert user.documents("instructions") == ["code/acme/AGENTS.md"]


def test_a_link_inside_the_project_is_followed_and_counts_once(user: SourceHome) -> None:
    user.in_project("AGENTS.md", "the text")
    (user.project / "CLAUDE.md").symlink_to("AGENTS.md")
    assert user.documents("instructions") == ["code/acme/CLAUDE.md"]


def test_a_loop_of_links_is_no_source(user: SourceHome) -> None:
    (user.project / "CLAUDE.md").symlink_to("CLAUDE.local.md")
    (user.project / "CLAUDE.local.md").symlink_to("CLAUDE.md")
    assert user.documents("instructions") == []


@pytest.mark.skipif(os.getuid() != 0, reason="only the administrator can give a file away")
def test_above_the_project_only_files_of_the_user_or_the_administrator_count(user: SourceHome) -> None:
    os.chown(user.write("code/CLAUDE.md", "planted by another user"), 12345, 12345)
    user.write("AGENTS.md", "the user's own")
    assert user.documents("instructions") == ["AGENTS.md"]


def test_what_is_no_file_is_no_source(user: SourceHome) -> None:
    (user.project / "CLAUDE.md").mkdir()
    os.mkfifo(user.project / "AGENTS.md")
    assert user.documents("instructions") == []
