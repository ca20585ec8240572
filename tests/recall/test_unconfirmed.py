"""Statements that wait for review: which prompts mention them, and which are quoted."""

import pytest

from engram import Engram
from engram.model.hit import USER_WORDS, WAITS_NOTE
from engram.model.memory import Memory
from engram.recall.prompt.inject import TITLES
from tests.backends import Backend

RULE = "Never touch the staging database of tidepool without asking the user first"
SAID = "One more thing: never touch the staging database of tidepool without asking me first."
TITLE = TITLES["unconfirmed"]
TASKS = ("run the migrations on staging", "clean up the test data on staging", "which rules apply to staging?")


@pytest.fixture
def mem(backend: Backend) -> Engram:
    return backend.client()


def propose(mem: Engram, statement: str = RULE, source: str = "agent") -> Memory:
    memory = mem.learn(statement, source=source, type="constraint").memory
    assert memory is not None and memory.status == "candidate"
    return memory


@pytest.mark.parametrize("task", TASKS)
def test_a_waiting_rule_of_the_user_is_quoted_by_every_verb(mem: Engram, task: str) -> None:
    mem.observe("yesterday", "user", SAID)
    rule = propose(mem)
    recalled, injected, started = mem.recall(task), mem.inject(task), mem.session(task).injection
    assert [hit.note for hit in recalled.unconfirmed] == [USER_WORDS]
    for found in (injected, started):
        assert [item.memory.id for item in found.unconfirmed] == [rule.id]
        assert TITLE in found.text and not found.ids
    assert all(RULE in text for text in (recalled.text, injected.text, started.text, mem.prepare(task).text))


def test_what_the_user_did_not_say_is_not_quoted(mem: Engram) -> None:
    rule = propose(mem)
    recalled, injected = mem.recall(TASKS[0]), mem.inject(TASKS[0])
    assert [hit.note for hit in recalled.unconfirmed] == [WAITS_NOTE] and rule.id in recalled.text
    assert injected.unconfirmed == () and rule.id in [left.id for left in injected.left_out]
    assert not any("tidepool" in text for text in (recalled.text, injected.text, mem.prepare(TASKS[0]).text))


@pytest.mark.parametrize(
    ("said", "source"),
    [
        ("Should we never touch the staging database of tidepool without asking me first?", "agent"),
        ("Touch the staging database of tidepool without asking me first.", "agent"),
        (SAID, "web:example.com"),
        ("Bob told Ana to never touch the staging database of tidepool without asking me first.", "agent"),
        ("I asked Bob whether to never touch the staging database of tidepool without asking me first.", "agent"),
        ("I never swim. Ask before you touch tidepool. The staging database is without me first.", "agent"),
    ],
    ids=["a question", "the opposite", "from a page", "a report", "an open question", "words of several sentences"],
)
def test_words_like_the_users_are_no_proof(mem: Engram, said: str, source: str) -> None:
    mem.observe("yesterday", "user", said)
    propose(mem, source=source)
    assert mem.inject(TASKS[0]).unconfirmed == ()


def test_what_another_owner_said_proves_nothing(mem: Engram) -> None:
    mem.observe("theirs", "user", SAID, user_id="ana")
    propose(mem)
    assert mem.inject(TASKS[0], scope="global").unconfirmed == ()


def test_a_task_that_nothing_waiting_touches_has_no_such_section(mem: Engram) -> None:
    propose(mem)
    assert TITLE not in mem.inject("write docs for the readme").text


def test_the_section_takes_no_more_than_the_rest_of_the_budget(mem: Engram) -> None:
    mem.observe("yesterday", "user", SAID)
    propose(mem)
    mem.add("Tidepool migrations run with make migrate")
    assert RULE not in mem.inject(TASKS[0], budget=60).text
    assert mem.inject(TASKS[0], budget=60).tokens <= 60
    found = mem.inject(TASKS[0], budget=400)
    assert RULE in found.text and found.tokens <= found.budget == 400
