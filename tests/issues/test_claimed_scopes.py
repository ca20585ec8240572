"""A repository gets the memories of its own remote, of older scopes a person linked, and of nothing that it only claims."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from engram import Engram
from engram.cli.surface import Surface
from engram.hooks.place import HookPayload, HookPlace
from engram.hooks.session_start import start_session
from engram.mcp.calls import Call, LazyMemory, run_tool
from engram.mcp.tools import TOOLS
from engram.store.scopes import LINKS_STATE
from engram.upkeep.scope_links import PLACES_STATE
from tests.cli.conftest import Console

OLD, NEW = "project:acme/api", "project:github.com:acme/api"
YESTERDAY = Path(__file__).parents[1] / "store" / "fixtures" / "store-format-1"


def init(folder: Path, remote: str = "") -> Path:
    folder.mkdir(parents=True)
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    if remote:
        subprocess.run(["git", "remote", "add", "origin", remote], cwd=folder, check=True)
    return folder


@pytest.fixture
def acme(tmp_path: Path) -> Path:
    return init(tmp_path / "acme", "git@github.com:acme/api.git")


# -- the surfaces


@pytest.fixture
def cli(tmp_path: Path, acme: Path, monkeypatch: pytest.MonkeyPatch) -> Console:
    shutil.copytree(YESTERDAY, tmp_path / "home")
    monkeypatch.setenv("ENGRAM_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("ENGRAM_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("ENGRAM_URL", raising=False)
    monkeypatch.chdir(acme)
    return Console(tmp_path)


@pytest.fixture
def person(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Surface, "person", property(lambda _: True))


def sees_old(cli: Console) -> list[bool]:
    """Whether a hook, and a recall, find a memory of the older scope here."""
    question = "use tabs in Makefiles"
    by_hook = [one["scope"] for one in cli.json("hook", "recall", question)["hits"]]
    by_recall = [one["memory"]["scope"] for one in cli.json("recall", question, "--memories-only")["hits"]]
    return [OLD in by_hook, OLD in by_recall]


def test_every_surface_says_which_older_scope_may_belong_here(cli: Console, acme: Path) -> None:
    asked = f"engram scope --link {OLD}"
    assert asked in cli("list").stderr
    assert asked in cli("scope").stdout
    assert asked in next(one for one in cli.json("doctor")["checks"] if one["name"] == "scope")["detail"]
    assert asked in start_session(HookPlace(), HookPayload(session="s1", cwd=str(acme)))
    with Engram.open(directory=acme) as mem:
        said = run_tool(Call(LazyMemory(lambda: mem)), TOOLS["session_start"], {"task": "deploy"}).result.content
        assert asked in "\n".join(getattr(part, "text", "") for part in said)
        assert asked in mem.doctor()["scope"].message


@pytest.mark.parametrize("option", [("--link", OLD), ("--separate",), ("--unlink",), ("--accept",)])
def test_an_agent_decides_nothing(cli: Console, option: tuple[str, ...]) -> None:
    result = cli("scope", *option, "--yes")
    assert result.exit_code == 1
    assert "only a person" in result.stderr
    assert not list((cli.folder / "home").rglob("*scope-links*"))


@pytest.mark.usefixtures("person")
def test_a_person_links_yesterdays_scope_once(cli: Console, acme: Path) -> None:
    assert sees_old(cli) == [False, False]
    assert "Nothing was changed" in cli("scope", "--link", OLD, stdin="n\n").stderr
    assert sees_old(cli) == [False, False]
    assert cli("scope", "--link", OLD, stdin="y\n").exit_code == 0
    assert cli.json("scope")["scope"] == OLD
    assert sees_old(cli) == [True, True]
    assert "--link" not in cli("list").stderr
    assert "--link" not in start_session(HookPlace(), HookPayload(session="s1", cwd=str(acme)))
    assert HookPlace().scopes(acme)[0] == OLD
    assert cli("scope", "--unlink", "--yes").exit_code == 0
    assert sees_old(cli) == [False, False]


@pytest.mark.usefixtures("person")
@pytest.mark.parametrize(
    "words", [("--link", "x"), ("--link", "project:github.com:acme/api"), ("--link", OLD, "--unlink")]
)
def test_what_cannot_be_linked_is_refused(cli: Console, words: tuple[str, ...]) -> None:
    assert cli("scope", *words, "--yes").exit_code == 2


@pytest.mark.usefixtures("person")
def test_outside_of_a_repository_nothing_is_linked(cli: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(cli.folder)
    assert cli("scope", "--link", OLD, "--yes").exit_code == 2
    assert cli.json("scope")["scope"] == ""


# -- a remote that an archive only claims


@pytest.mark.usefixtures("person")
def test_a_second_directory_with_the_same_remote_is_reported_until_it_is_accepted(
    cli: Console, acme: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "claims" not in cli("list").stderr
    unpacked = init(cli.folder / "unpacked", "https://github.com/acme/api")
    monkeypatch.chdir(unpacked)
    for _ in range(2):
        told = cli("list").stderr
        assert f"claims the scope {NEW}" in told and str(acme) in told
    assert "claims the scope" in start_session(HookPlace(), HookPayload(session="s1", cwd=str(unpacked)))
    assert cli("scope", "--accept", "--yes").exit_code == 0
    assert "claims" not in cli("list").stderr
    monkeypatch.chdir(acme)
    assert "claims" not in cli("list").stderr


@pytest.mark.parametrize(
    "remote",
    [
        "https://evil.example?@github.com/acme/api",
        "https://evil.example#@github.com/acme/api",
        "ssh://evil.example%2f@github.com/acme/api",
        "https://github.com/acme/api/../../evil/x",
        "https://github.com/acme/api/raw/1a2b3c/evil",
    ],
)
def test_an_address_that_leads_elsewhere_does_not_see_the_project_that_it_mentions(
    cli: Console, monkeypatch: pytest.MonkeyPatch, remote: str
) -> None:
    assert cli("learn", "The staging bastion is reached with Teleport", "--scope", NEW).exit_code == 0
    assert "Teleport" in cli("recall", "staging bastion", "--memories-only").stdout
    monkeypatch.chdir(init(cli.folder / "clone", remote))
    assert NEW not in HookPlace().scopes(Path.cwd())
    assert "Teleport" not in cli("recall", "staging bastion", "--memories-only").stdout


def test_a_worktree_and_a_moved_repository_are_not_reported(
    cli: Console, acme: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli("list")
    commit = ["git", "-c", "user.name=A", "-c", "user.email=a@b.c", "commit", "-q", "--allow-empty", "-m", "x"]
    subprocess.run(commit, cwd=acme, check=True)
    subprocess.run(["git", "worktree", "add", "-q", "../tree"], cwd=acme, check=True, capture_output=True)
    monkeypatch.chdir(cli.folder / "tree")
    assert "claims" not in cli("list").stderr
    moved = cli.folder / "moved"
    shutil.move(acme, moved)
    monkeypatch.chdir(moved)
    assert "claims" not in cli("list").stderr


def test_broken_states_cost_no_answer(cli: Console) -> None:
    cli("list")
    [state] = (cli.folder / "home" / "state" / "named").glob("scope-places*")
    assert json.loads(state.read_text())["name"] == PLACES_STATE != LINKS_STATE
    state.write_text("{")
    assert cli("list").exit_code == 0
