"""Statements that wait for review: which prompts mention them, and which are quoted."""

import pytest

from engram import Engram
from engram.model.hit import USER_WORDS, WAITS
from engram.model.memory import Memory
from engram.recall.unconfirmed import MAX_SHARE, TITLE
from tests.backends import Backend

RULE = "Never touch the staging database of tidepool without asking the user first"
SAID = "One more thing: never touch the staging database of tidepool without asking me first."
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
        assert [(hit.id, hit.note) for hit in found.unconfirmed] == [(rule.id, USER_WORDS)]
        assert TITLE in found.text and not found.ids
    for text in (recalled.text, injected.text, started.text, mem.prepare(task).text):
        assert RULE in text and USER_WORDS in text


def test_of_what_the_user_did_not_say_only_the_id_is_named(mem: Engram) -> None:
    rule = propose(mem)
    for text in (mem.inject(TASKS[0]).text, mem.prepare(TASKS[0]).text, mem.recall(TASKS[0]).text):
        assert rule.id in text and "tidepool" not in text
    assert [hit.note for hit in mem.inject(TASKS[0]).unconfirmed] == [WAITS]


@pytest.mark.parametrize(
    ("said", "source"),
    [
        ("Should we never touch the staging database of tidepool without asking me first?", "agent"),
        ("Touch the staging database of tidepool without asking me first.", "agent"),
        (SAID, "web:example.com"),
    ],
    ids=["a question", "the opposite", "from a page"],
)
def test_words_like_the_users_are_no_proof(mem: Engram, said: str, source: str) -> None:
    mem.observe("yesterday", "user", said)
    propose(mem, source=source)
    assert [hit.note for hit in mem.inject(TASKS[0]).unconfirmed] == [WAITS]


def test_what_another_owner_said_proves_nothing(mem: Engram) -> None:
    mem.observe("theirs", "user", SAID, user_id="ana")
    propose(mem)
    assert [hit.note for hit in mem.inject(TASKS[0], scope="global").unconfirmed] == [WAITS]


def test_a_task_that_nothing_waiting_touches_has_no_such_section(mem: Engram) -> None:
    propose(mem)
    assert TITLE not in mem.inject("write docs for the readme").text


def test_the_section_takes_no_more_than_its_share_of_the_budget(mem: Engram) -> None:
    mem.observe("yesterday", "user", SAID)
    propose(mem)
    mem.add("Tidepool migrations run with make migrate")
    assert RULE not in mem.inject(TASKS[0], budget=60).text
    assert mem.inject(TASKS[0], budget=60).tokens <= 60
    found = mem.inject(TASKS[0], budget=400)
    assert RULE in found.text and found.tokens <= found.budget == 400 and MAX_SHARE < 1
