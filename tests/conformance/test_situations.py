"""A memory is found by its situation for a task told in other words, and an unrelated task finds nothing."""

import pytest

from engram import Engram
from tests.backends import Backend

NOTES = (
    ("deploying to production", "Dana signs off on Fridays; use the release bot in #ship"),
    ("upgrading a dependency", "Read the lockfile's diff line by line"),
    ("writing database migrations", "Every column gets a default, the replicas lag behind"),
    ("reviewing a pull request", "Comments begin with nit, question or blocker"),
    ("planning a holiday", "The children cannot fly before the seventh of July"),
    ("writing commit messages", "Imperative mood, the ticket's number last"),
)
TASKS = {
    "ship the current main to prod": NOTES[0],
    "bump axios to the latest version": NOTES[1],
    "add a nullable field to the orders table": NOTES[2],
    "have a look at PR 482 please": NOTES[3],
}


@pytest.fixture
def mem(backend: Backend) -> Engram:
    opened = backend.client()
    for situation, statement in NOTES:
        opened.add(statement, situation=situation, scope="global")
    return opened


@pytest.mark.parametrize("task", TASKS)
def test_a_task_finds_the_memory_about_it(mem: Engram, task: str) -> None:
    _, statement = TASKS[task]
    assert [hit.text for hit in mem.recall(task).hits[:1]] == [statement]
    given = mem.inject(task)
    assert statement in [item.memory.statement for item in (*given.directives, *given.consider)]


@pytest.mark.parametrize("task", ["write a limerick about penguins", "what is the capital of Mongolia"])
def test_an_unrelated_task_finds_nothing(mem: Engram, task: str) -> None:
    assert not mem.recall(task).hits
    assert not mem.inject(task).text


def test_a_task_that_names_a_day_is_still_a_task(mem: Engram) -> None:
    assert [hit.text for hit in mem.recall("ship the current main to prod tomorrow").hits[:1]] == [NOTES[0][1]]


def test_a_question_finds_what_such_a_memory_says(mem: Engram) -> None:
    assert mem.recall("Who signs off on Fridays?").hits[0].text == NOTES[0][1]


def test_a_memory_learned_meanwhile_is_found_and_a_forgotten_one_is_not(mem: Engram) -> None:
    task = "draw a login screen for the phone app"
    assert not mem.recall(task).hits
    learned = mem.add("Buttons are 44 points high", situation="designing mobile user interfaces", scope="global")
    assert [hit.id for hit in mem.recall(task).hits] == [learned.id]
    mem.update(learned.id, situation="cleaning the aquarium")
    assert not mem.recall(task).hits
    mem.update(learned.id, situation="designing mobile user interfaces")
    mem.forget(learned.id)
    assert not mem.recall(task).hits


def test_the_trace_says_that_the_situation_matched(mem: Engram) -> None:
    hit = mem.recall("ship the current main to prod", explain=True).hits[0]
    assert hit.trace is not None
    assert "situation" in hit.trace.found_by
    assert hit.trace.replay() == pytest.approx(hit.score)


def test_a_constraint_with_a_situation_is_injected_when_it_matters(mem: Engram) -> None:
    rule = mem.add("Cells must never be charged below zero degrees", situation="charging batteries", scope="global")
    assert rule.id in mem.inject("write the battery charging routine").text
    assert rule.id not in mem.inject("write a limerick about penguins").text


@pytest.mark.parametrize("ask", ["Who's on call for payments?", "Who is on call for payments?"])
def test_a_fact_that_answers_a_question_comes_before_a_lesson_about_its_topic(backend: Backend, ask: str) -> None:
    mem = backend.client()
    mem.add("Page the lead before touching the ledger", situation="handling incidents of payments", scope="global")
    fact = mem.add("Maria Lopez is on call for payments", scope="global")
    assert mem.recall(ask).hits[0].id == fact.id


@pytest.mark.parametrize("task", ["what is widget 7 greased with", "grease widget 7"])
def test_words_tell_memories_of_the_same_situation_apart(backend: Backend, task: str) -> None:
    mem = backend.client()
    ids = [
        mem.add(f"Widget {n} is greased with oil number {90 - n}", situation=f"greasing widget {n}", scope="global").id
        for n in range(5, 13)
    ]
    assert mem.recall(task).hits[0].id == ids[2]


def test_a_callers_floor_holds_for_a_task_too(mem: Engram) -> None:
    assert not mem.recall("ship the current main to prod since yesterday", min_relevance=0.999).hits


def test_a_memory_without_a_situation_is_not_known_to_be_about_a_task(backend: Backend) -> None:
    mem = backend.client()
    mem.add("Use pnpm for all packages, never npm", scope="global")
    assert not mem.recall("install the javascript dependencies").hits


def test_a_memory_of_another_scope_is_not_found_by_its_situation(backend: Backend) -> None:
    mem = backend.client()
    mem.add("Dana signs off on Fridays", situation="deploying to production", scope="project:acme")
    assert not mem.recall("ship the current main to prod", scope="global").hits
    assert mem.recall("ship the current main to prod", scope="project:acme").hits
