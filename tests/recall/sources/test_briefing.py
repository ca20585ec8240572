"""The briefing before a task: how a task is split, and that nothing is said twice."""

from collections.abc import Iterator

import pytest

from engram import Engram
from engram.model.errors import InvalidInput
from engram.recall.briefing import queries_of
from tests.recall.sources.home import NOW, SourceHome


@pytest.fixture
def mem(user: SourceHome, monkeypatch: pytest.MonkeyPatch) -> Iterator[Engram]:
    monkeypatch.setenv("HOME", str(user.home))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    with Engram.open(
        user.folder / "store", cache=user.folder / "cache", directory=user.project, clock=lambda: NOW
    ) as opened:
        yield opened


@pytest.mark.parametrize(
    ("task", "expected"),
    [
        (
            "Add retry logic to the HTTP client",
            ("adding retry logic to the HTTP client", "adding retry logic", "working on the HTTP client"),
        ),
        (
            "Please deploy the billing service and write tests for the rollback",
            ("deploying the billing service", "writing tests for the rollback"),
        ),
        (
            "launch the zeppelin, write marmalade reports and use the quasar skill",
            ("launching the zeppelin", "writing marmalade reports", "using the quasar skill"),
        ),
        (
            "Fix the importer, scan our images, and then update the docs; add a changelog line",
            ("fixing the importer", "scanning our images", "updating the docs adding a changelog line"),
        ),
        ("common mistakes when writing tests", ("writing tests", "working on tests")),
        ("Avoid pitfalls in launching the zeppelin", ("launching the zeppelin", "working on the zeppelin")),
        ("how do I avoid breaking the zanzibar deploy?", ("the zanzibar deploy",)),
        (
            "Can you please fix the flaky login test?",
            ("fixing the flaky login test", "working on the flaky login test"),
        ),
        (
            "Debug the importer in staging",
            ("debugging the importer in staging", "debugging the importer", "working on staging"),
        ),
        (
            "Compare the server and all the clients",
            ("comparing the server and all the clients", "working on the server and all the clients"),
        ),
        ("the login page, the menu and the footer", ("the login page, the menu and the footer",)),
        ("Is the build green?", ("Is the build green",)),
        ("refactor", ("refactoring",)),
    ],
)
def test_a_task_becomes_questions_phrased_as_tasks(task: str, expected: tuple[str, ...]) -> None:
    assert queries_of(task) == expected


def test_no_part_of_a_long_task_is_left_out() -> None:
    verbs = ("check", "deploy", "fix", "merge", "port", "review", "trace", "update", "verify", "wrap")
    queries = queries_of(", ".join(f"{verb} the {verb}-thing" for verb in verbs))
    assert len(queries) == 3
    assert [verb for verb in verbs if f"the {verb}-thing" not in " ".join(queries)] == []


def test_the_last_part_of_a_task_is_answered_in_its_own_words(user: SourceHome, mem: Engram) -> None:
    filler = "The walls of the hall are green and were painted long ago by hand. " * 9
    user.in_project("CLAUDE.md", f"# Using the quasar\n{filler}The quasar needs a warm-up of an hour. {filler}")
    found = mem.prepare("launch the zeppelin, write marmalade reports and use the quasar")
    assert "warm-up of an hour" in found.text


def test_a_briefing_answers_all_questions_without_repetition_within_the_budget(user: SourceHome, mem: Engram) -> None:
    mem.add("Deploys of the billing service need two approvals")
    mem.add("Write rollback tests against the staging database")
    user.in_project(
        "CLAUDE.md",
        "# Deploys\nDeploys of the billing service go through staging.\n# Tests\nTests of the rollback need docker.\n",
    )
    found = mem.prepare("Deploy the billing service and write tests for the rollback", budget=2_000)
    assert len(found.text.encode()) <= 2_000
    assert found.text.startswith("# Before “Deploy the billing service and write tests for the rollback”\n")
    for said in ("two approvals", "staging database", "go through staging", "need docker"):
        assert found.text.count(said) == 1
    assert found.queries == ("deploying the billing service", "writing tests for the rollback")


def test_nothing_known_about_a_task_is_an_empty_briefing(mem: Engram) -> None:
    found = mem.prepare("Deploy the billing service")
    assert (found.text, found.context.sections) == ("", ())


def test_a_task_without_words_is_refused(mem: Engram) -> None:
    with pytest.raises(InvalidInput, match="a task in words"):
        mem.prepare(" …! ")


def test_while_engram_is_paused_there_is_no_briefing(user: SourceHome, mem: Engram) -> None:
    user.in_project("CLAUDE.md", "Deploys go through staging.")
    mem.upkeep.pause()
    found = mem.prepare("Deploy the billing service")
    assert found.text == "" and "paused" in found.context.warnings[0]


def test_memories_of_a_briefing_are_reinforced_once(mem: Engram) -> None:
    known = mem.add("Deploys of the billing service need two approvals")
    mem.prepare("Deploy the billing service and fix deploys of the billing service")
    assert [use.kind for use in mem.store.uses([known.id])] == ["recalled"]


def test_a_memory_is_found_by_its_situation(mem: Engram) -> None:
    mem.add("Always write the failing test first", situation="implementing new features")
    assert "failing test first" in mem.prepare("Implement a retry feature in the HTTP client").text
