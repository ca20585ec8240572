"""recall and prepare read the files of other tools; these are never written."""

import json
import os
import signal
from collections.abc import Iterator

import pytest

from engram.agents.sources.documents import Source
from engram.agents.sources.places import SourcePlaces
from engram.recall.sources import reader
from tests.recall.sources.home import SourceHome

from .conftest import Console


@pytest.fixture
def user(cli: Console, monkeypatch: pytest.MonkeyPatch) -> SourceHome:
    """The home of the user at the console, who stands in their project."""
    made = SourceHome(cli.folder / "user")
    monkeypatch.setenv("HOME", str(made.home))
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "OPENCODE_DB", "CLAUDECODE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(made.project)
    made.in_project("CLAUDE.md", "# Acme\n## Deploys\nDeploys go through the staging cluster first.\n")
    made.session("abcdef123456", [("user", "Remember the deploys"), ("assistant", "Deploys are on Monday.")])
    return made


def test_memories_come_first_then_sources_with_their_place(cli: Console, user: SourceHome) -> None:
    known = cli.json("add", "Deploys need two approvals")["id"]
    lines = cli("recall", "how do deploys work?").stdout.splitlines()
    assert lines[0].startswith(f"[{known}]")
    assert "~/code/acme/CLAUDE.md § “Acme › Deploys”: “Deploys go through the staging cluster first.”" in lines


def test_sources_answer_where_no_memory_does(cli: Console, user: SourceHome) -> None:
    result = cli("recall", "how do deploys work?")
    assert result.stdout.startswith("## Sessions\n") and "staging cluster" in result.stdout
    assert "no memory about this" in result.stderr


def test_memories_only_filters_and_answers_leave_sources_out(cli: Console, user: SourceHome) -> None:
    cli.json("add", "Deploys need two approvals", "--type", "convention")
    for option in (["--memories-only"], ["--type", "convention"], ["--answer"], ["--explain"], ["--trace"]):
        assert "staging" not in cli("recall", "how do deploys work?", *option).stdout


def test_json_has_the_sections_with_their_provenance(cli: Console, user: SourceHome) -> None:
    found = cli.json("recall", "staging cluster deploys")
    assert found["hits"] == []
    section = next(one for one in found["context"]["sections"] if one["phase"] == "instructions")
    assert section["provenance"] == "~/code/acme/CLAUDE.md § “Acme › Deploys”"
    assert section["text"] == "Deploys go through the staging cluster first."


def test_without_a_query_recent_sessions_are_shown(cli: Console, user: SourceHome) -> None:
    text = cli("recall").stdout
    assert "abcdef12 11-17 11:00 user: “Remember the deploys”" in text
    assert json.loads(cli("recall", "--json").stdout)["sections"][0]["phase"] == "recent"


@pytest.mark.parametrize("options", [["--memories-only"], ["--type", "fact"], ["--as-of", "2026-01-01"], ["--answer"]])
def test_what_is_about_memories_alone_needs_a_query(cli: Console, user: SourceHome, options: list[str]) -> None:
    result = cli("recall", *options)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "engram list" in result.stderr


def test_without_sessions_it_says_so_and_succeeds(cli: Console, user: SourceHome) -> None:
    for path in user.transcripts.iterdir():
        path.unlink()
    result = cli("recall")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "no recent sessions" in result.stderr


def test_prepare_prints_one_briefing(cli: Console, user: SourceHome) -> None:
    cli.json("add", "Deploys need two approvals")
    text = cli("prepare", "Deploy the billing service").stdout
    assert text.startswith("# Before “Deploy the billing service”\n")
    assert "two approvals" in text and "staging cluster" in text
    found = cli.json("prepare", "Deploy the billing service")
    assert found["queries"] == ["deploying the billing service", "working on the billing service"]
    assert found["context"]["sections"][0]["phase"] == "memories"


def test_bytes_bound_the_text(cli: Console, user: SourceHome) -> None:
    assert len(cli.json("prepare", "Deploy the service", "--bytes", "600")["text"].encode()) <= 600
    assert cli("recall", "deploys", "--bytes", "3").exit_code == 2


def test_a_cache_that_cannot_be_written_is_said_and_the_answer_is_there(
    cli: Console, user: SourceHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocked = user.folder / "blocked" / "sources"
    blocked.parent.mkdir()
    blocked.write_text("a file where the folder should be")
    monkeypatch.setenv("ENGRAM_CACHE", str(blocked.parent))
    result = cli("recall", "how do deploys work?")
    assert "staging cluster" in result.stdout
    assert "index of sources is not kept" in result.stderr


def test_the_users_files_are_untouched(cli: Console, user: SourceHome) -> None:
    before = user.fingerprints()
    for words in (["recall", "deploys"], ["recall"], ["prepare", "Deploy the service"], ["inject", "deploys"]):
        assert cli(*words).exit_code == 0
    assert user.fingerprints() == before


@pytest.fixture
def interruptible() -> Iterator[None]:
    """A test run in the background ignores interrupts."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_interrupted_once_it_shows_what_was_found(
    cli: Console, user: SourceHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = cli.json("add", "Deploys need two approvals")["id"]
    read = reader.read_source

    def interrupted(source: Source, places: SourcePlaces) -> reader.ReadSource:
        os.kill(os.getpid(), signal.SIGINT)
        return read(source, places)

    monkeypatch.setattr(reader, "read_source", interrupted)
    result = cli("recall", "how do deploys work?")
    assert result.exit_code == 0
    assert f"[{known}]" in result.stdout and "staging" not in result.stdout
    assert "interrupted" in result.stderr
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
