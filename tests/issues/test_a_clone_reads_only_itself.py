"""A cloned repository's instructions, rules and skills show files of that repository alone, whatever they import or link to."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from engram import Engram
from engram.agents.wiring.user_file import read_user_file
from engram.disk import reading_real
from engram.model.errors import Refused
from tests.recall.sources.home import SourceHome

SECRET = "The zebra contract pays four million for Nightshift"
PRIVATE = (
    ".claude/history.jsonl",
    ".claude/.credentials.json",
    ".claude/settings.json",
    ".claude/notes.md",
    ".claude/plans/merger.md",
    ".claude/projects/-home-ann-other/memory/MEMORY.md",
    ".claude/projects/-home-ann-other/3f2a.jsonl",
    ".claude.json",
    ".codex/history.jsonl",
    ".ssh/config",
    ".aws/credentials",
    "notes/diary.md",
    "code/other/CLAUDE.md",
    "code/other/docs/plan.md",
)


def git(folder: Path, *words: str) -> None:
    config = ("user.name=Ann", "user.email=ann@example.org", "protocol.file.allow=always", "commit.gpgsign=false")
    options = [part for one in config for part in ("-c", one)]
    subprocess.run(["git", *options, *words], cwd=folder, check=True, capture_output=True)


def init(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    git(folder, "init", "-q")
    git(folder, "commit", "-q", "--allow-empty", "-m", "Start")
    return folder


@pytest.fixture
def victim(user: SourceHome) -> SourceHome:
    init(user.project)
    init(user.home / "code" / "other")
    for path in PRIVATE:
        user.write(path, f"{SECRET}\n")
    return user


@pytest.fixture
def user(tmp_path: Path) -> SourceHome:
    return SourceHome(tmp_path)


@pytest.fixture
def mem(victim: SourceHome, monkeypatch: pytest.MonkeyPatch) -> Iterator[Engram]:
    monkeypatch.setenv("HOME", str(victim.home))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    with Engram.open(victim.folder / "store", cache=victim.folder / "cache", directory=victim.project) as opened:
        yield opened


def shown(user: SourceHome, directory: Path | None = None) -> list[str]:
    """The files that are shown, less those that the user's configuration shows everywhere."""
    found = [one for one in user.catalog(directory).documents if SECRET in one.path.read_text()]
    return [str(one.path.relative_to(user.home.resolve())) for one in found]


def test_it_imports_no_private_file(victim: SourceHome) -> None:
    for name in ("CLAUDE.md", "CLAUDE.local.md", "AGENTS.md", ".claude/CLAUDE.md"):
        lines = [f"@~/{path} @{victim.home}/{path} @../../{path} @../{path}" for path in PRIVATE]
        victim.in_project(name, "\n".join(lines))
    assert shown(victim) == []


@pytest.mark.parametrize("relative", [True, False], ids=["relative", "absolute"])
@pytest.mark.parametrize("name", ["AGENTS.md", ".claude/CLAUDE.md", ".claude/rules/x.md", ".claude/skills/x/SKILL.md"])
def test_it_links_to_no_private_file(victim: SourceHome, name: str, relative: bool) -> None:
    link = victim.project / name
    link.parent.mkdir(parents=True, exist_ok=True)
    found = []
    for path in PRIVATE:
        target = victim.home / path
        link.symlink_to(os.path.relpath(target, link.parent) if relative else target)
        found += shown(victim)
        link.unlink()
    assert found == []


def test_it_links_no_folder_of_others_in(victim: SourceHome) -> None:
    for name, target in (
        (".claude", victim.config),
        (".claude", victim.config / "projects" / "-home-ann-other" / "memory"),
        (".claude/rules", victim.home / "notes"),
        (".claude/rules/deep", victim.config / "projects"),
        (".claude/skills", victim.home / "code" / "other"),
        ("docs", victim.home / "code" / "other" / "docs"),
    ):
        victim.write("code/other/SKILL.md", SECRET)
        victim.in_project("CLAUDE.md", "@docs/plan.md")
        link = victim.project / name
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(target)
        assert shown(victim) == [], name
        link.unlink()


def test_recall_and_prepare_print_nothing_of_it(victim: SourceHome, mem: Engram) -> None:
    victim.in_project("CLAUDE.md", "Zebras\n" + "\n".join(f"@~/{path}" for path in PRIVATE))
    (victim.project / "AGENTS.md").symlink_to("../../.claude/history.jsonl")
    assert "million" not in mem.recall_context("What does the zebra contract pay?").text
    assert "million" not in mem.prepare("Read the zebra contract").text


def test_it_imports_no_credentials_of_its_own_checkout(victim: SourceHome) -> None:
    victim.in_project("CLAUDE.md", "@.env @.env.local @.git/config @deploy.pem @src/.ssh/config")
    for path in (".env", ".env.local", "deploy.pem", "src/.ssh/config"):
        victim.in_project(path, SECRET)
    (victim.project / ".git" / "config").write_text(f"; {SECRET}\n")
    assert shown(victim) == []


def test_a_directory_without_a_repository_reads_only_itself(victim: SourceHome) -> None:
    unpacked = victim.home / "Downloads" / "unpacked"
    victim.write(unpacked / "inside.md", SECRET)
    victim.write(unpacked / "CLAUDE.md", "@inside.md " + " ".join(f"@~/{path}" for path in PRIVATE))
    assert shown(victim, unpacked) == ["Downloads/unpacked/inside.md"]


def test_a_cloned_skill_and_a_plugin_read_only_themselves(victim: SourceHome) -> None:
    skill = init(victim.config / "skills" / "theirs")
    (skill / "SKILL.md").symlink_to("../../projects/-home-ann-other/memory/MEMORY.md")
    plugin = victim.config / "plugins" / "cache" / "market" / "theirs" / "1.0.0" / "skills" / "x"
    plugin.mkdir(parents=True)
    (plugin / "SKILL.md").symlink_to(victim.config / "notes.md")
    (victim.config / "skills" / "nested").symlink_to(victim.home / "code" / "other" / "docs")
    assert shown(victim) == []
    (plugin / "SKILL.md").unlink()
    victim.write(plugin.parent / "shared.md", SECRET)
    (plugin / "SKILL.md").symlink_to("../shared.md")
    assert shown(victim) == [str((plugin.parent / "shared.md").relative_to(victim.home))]


def test_the_users_own_file_imports_their_configuration_but_nothing_private(victim: SourceHome) -> None:
    victim.write(".claude/CLAUDE.md", "\n".join(f"@~/{path}" for path in PRIVATE))
    assert shown(victim) == [".claude/notes.md", "notes/diary.md"]


def test_a_file_above_the_project_imports_the_configuration_and_its_own_folder(victim: SourceHome) -> None:
    victim.write("code/team.md", SECRET)
    victim.write("code/CLAUDE.md", "@team.md\n" + "\n".join(f"@~/{path}" for path in PRIVATE))
    assert shown(victim) == ["code/team.md", ".claude/notes.md"]


def test_links_and_imports_inside_the_repository_work(victim: SourceHome) -> None:
    victim.in_project("docs/CLAUDE.md", f"{SECRET}\n@rules.md @../package.json")
    victim.in_project("docs/rules.md", SECRET)
    victim.in_project("package.json", SECRET)
    (victim.project / "AGENTS.md").symlink_to("docs/CLAUDE.md")
    assert shown(victim) == ["code/acme/docs/CLAUDE.md", "code/acme/docs/rules.md", "code/acme/package.json"]


def test_a_home_behind_a_link_changes_nothing(victim: SourceHome) -> None:
    other = victim.folder / "linked"
    other.symlink_to(victim.home)
    victim.in_project("CLAUDE.md", "@inside.md @~/.claude/notes.md @~/.claude/history.jsonl")
    victim.in_project("inside.md", SECRET)
    catalog = victim.catalog(other / "code" / "acme", HOME=str(other))
    found = [one.path.name for one in catalog.documents if SECRET in one.path.read_text()]
    assert found == ["inside.md"]


def test_a_home_that_is_a_repository_keeps_its_private_files(victim: SourceHome) -> None:
    init_in_place(victim.home)
    unpacked = victim.write("Downloads/unpacked/CLAUDE.md", "\n".join(f"@~/{path}" for path in PRIVATE)).parent
    assert shown(victim, unpacked) == []
    victim.write("CLAUDE.md", "\n".join(f"@~/{path}" for path in PRIVATE))
    assert shown(victim, victim.home) == [".claude/notes.md", "notes/diary.md"]


def init_in_place(folder: Path) -> None:
    git(folder, "init", "-q")


def test_worktrees_share_files_and_a_false_worktree_does_not(victim: SourceHome) -> None:
    tree = victim.home / "trees" / "fix"
    git(victim.project, "worktree", "add", "-q", str(tree))
    victim.in_project("shared.md", SECRET)
    (tree / "CLAUDE.local.md").symlink_to(victim.project / "shared.md")
    assert shown(victim, tree) == ["code/acme/shared.md"]
    claimed = victim.home / "claimed"
    claimed.mkdir()
    (claimed / "CLAUDE.md").symlink_to(victim.project / "shared.md")
    for content in (f"gitdir: {victim.project}/.git", f"gitdir: {victim.project}/.git/worktrees/fix"):
        (claimed / ".git").write_text(content)
        assert shown(victim, claimed) == []


def test_a_repository_cannot_list_another_one_as_its_worktree(victim: SourceHome) -> None:
    other = victim.home / "code" / "other"
    entry = victim.project / ".git" / "worktrees" / "x"
    entry.mkdir(parents=True)
    (entry / "gitdir").write_text(f"{other}/.git\n")
    (entry / "commondir").write_text("../..\n")
    victim.session("3f2a", [("user", SECRET)], directory=other, folder=victim.config / "projects" / "x")
    assert [root for root in victim.places().roots if root.is_relative_to(other)] == []


def test_a_submodule_is_part_of_its_repository_and_not_the_other_way_round(victim: SourceHome) -> None:
    library = init(victim.home / "code" / "library")
    git(victim.project, "submodule", "--quiet", "add", str(library), "lib")
    victim.in_project("top.md", SECRET)
    victim.in_project("lib/inner.md", SECRET)
    victim.in_project("CLAUDE.md", "@lib/inner.md")
    assert shown(victim) == ["code/acme/lib/inner.md"]
    victim.in_project("lib/CLAUDE.md", "@../top.md")
    assert "code/acme/top.md" not in shown(victim, victim.project / "lib")
    nested = init(victim.project / "vendor")
    victim.write(nested / "own.md", SECRET)
    victim.in_project("CLAUDE.md", "@vendor/own.md")
    assert shown(victim) == []


def test_a_folder_that_is_swapped_for_a_link_after_the_check_leads_nowhere(victim: SourceHome) -> None:
    victim.in_project("CLAUDE.md", "@docs/plan.md")
    victim.in_project("docs/plan.md", "harmless")
    found = next(one for one in victim.catalog().documents if one.path.name == "plan.md")
    shutil.rmtree(victim.project / "docs")
    (victim.project / "docs").symlink_to(victim.home / "code" / "other" / "docs")
    with pytest.raises(OSError), reading_real(found.path):
        pass


def test_pipes_and_devices_are_not_opened(victim: SourceHome) -> None:
    os.mkfifo(victim.project / "pipe.md")
    (victim.project / "zero.md").symlink_to("/dev/zero")
    victim.in_project("CLAUDE.md", "@pipe.md @zero.md @/dev/zero @/proc/self/environ")
    assert victim.documents("instructions") == ["code/acme/CLAUDE.md"]


@pytest.mark.parametrize("target", [".git/config", ".git/AGENTS.md", ".env"])
def test_no_block_is_written_into_what_a_repository_links_to(victim: SourceHome, target: str) -> None:
    (victim.project / target).write_text("own\n")
    (victim.project / "AGENTS.md").symlink_to(target)
    with pytest.raises(Refused, match="nothing was written"):
        read_user_file(victim.project / "AGENTS.md")
    assert read_user_file(victim.project / target).text == "own\n"
