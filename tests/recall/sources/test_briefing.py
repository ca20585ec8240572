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
            (
                "deploying the billing service writing tests for the rollback",
                "deploying the billing service",
                "writing tests for the rollback",
            ),
        ),
        ("common mistakes when writing tests", ("writing tests",)),
        ("Can you please fix the flaky login test?", ("fixing the flaky login test",)),
        ("refactor", ("refactoring",)),
    ],
)
def test_a_task_becomes_questions_phrased_as_tasks(task: str, expected: tuple[str, ...]) -> None:
    assert queries_of(task) == expected


def test_there_are_at_most_three_questions_each_once() -> None:
    task = "Fix the importer, write tests, update the docs, add a changelog line, fix the importer and deploy it"
    queries = queries_of(task)
    assert len(queries) == len(set(queries)) == 3


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
    assert len(found.queries) == 3


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
    assert [use.kind for use in mem.store.uses_of([known.id])] == ["recalled"]


def test_a_memory_is_found_by_its_situation(mem: Engram) -> None:
    mem.add("Always write the failing test first", situation="implementing new features")
    assert "failing test first" in mem.prepare("Implement a retry feature in the HTTP client").text
