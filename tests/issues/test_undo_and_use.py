"""Undo took back the links that a session's end had made, or half of what a person chose about a contradiction."""

import pytest

from engram import Engram
from engram.cli.views import history_steps, step_data
from engram.model.decision import Outcome
from engram.model.memory import CO_ACCESSED, Memory
from tests.backends import Backend
from tests.clock import Clock

OLD, NEW = "The api listens on port 8080", "The api listens on port 9090"
NOTE, OTHER = "Deploy with the blue pipeline", "The deploy pipeline posts its result to the release channel"


def _use_together(mem: Engram, clock: Clock) -> None:
    """One session that is given both notes, so that its end links them."""
    with mem.session(task="deploy the release with the pipeline") as session:
        assert len(session.injection.directives) + len(session.injection.consider) >= 2
    clock.forward(hours=1)


def _co_accessed(memory: Memory) -> list[str]:
    return [link.target for link in memory.associations if link.type == CO_ACCESSED]


def test_undo_takes_back_the_last_decision_although_sessions_have_used_the_memory(backend: Backend) -> None:
    mem = backend.client()
    note, other = mem.add(NOTE), mem.add(OTHER)
    mem.update(note.id, statement="Deploy with the green pipeline", importance=0.9)
    for _ in range(3):
        _use_together(mem, backend.clock)
    used = mem.get(note.id)
    assert _co_accessed(used) == [other.id]
    undone = mem.undo(note.id)
    assert (undone.statement, undone.importance) == (NOTE, note.importance)
    assert undone.associations == used.associations
    assert undone.activation == used.activation
    assert mem.undo(note.id).statement == "Deploy with the green pipeline"


def test_undo_last_passes_over_any_number_of_automatic_entries(backend: Backend) -> None:
    mem = backend.client()
    note, _ = mem.add(NOTE), mem.add(OTHER)
    mem.update(note.id, tags=["deploy"])
    for n in range(210):
        with mem.store.deciding("use", actor="engram", about=[note.id]) as deciding:
            memory = deciding.get(note.id)
            assert memory is not None
            deciding.put(memory.replace(derivation_count=n + 2))
    (undone,) = mem.review.undo_last().done
    assert (undone.id, undone.tags, undone.derivation_count) == (note.id, (), 211)


def test_undo_of_a_relation_keeps_the_links_that_use_has_made_since(backend: Backend) -> None:
    mem = backend.client()
    note, other = mem.add(NOTE), mem.add(OTHER)
    mem.relate(note.id, other.id, "depends_on")
    _use_together(mem, backend.clock)
    assert {link.type for link in mem.get(note.id).associations} == {"depends_on", CO_ACCESSED}
    assert {link.type for link in mem.undo(note.id).associations} == {CO_ACCESSED}


def test_undo_takes_back_a_rating_and_is_not_undone_by_the_next_use(backend: Backend) -> None:
    mem = backend.client()
    note, _ = mem.add(NOTE), mem.add(OTHER)
    rated = mem.feedback(note.id, "negative", actor="human")
    assert rated.feedback.negative == 1
    undone = mem.undo(note.id, actor="human")
    assert undone.feedback.negative == 0
    assert undone.activation.retrieval_strength == note.activation.retrieval_strength
    _use_together(mem, backend.clock)
    assert mem.get(note.id).feedback.negative == 0


def test_repeating_a_memory_is_not_what_undo_takes_back(backend: Backend) -> None:
    mem = backend.client()
    learned = mem.learn(NOTE).memory
    assert learned is not None
    mem.update(learned.id, tags=["deploy"])
    backend.clock.forward(days=1)
    assert mem.learn(NOTE).outcome == Outcome.DUPLICATE
    undone = mem.undo(learned.id)
    assert (undone.status, undone.tags, undone.derivation_count) == ("active", (), 2)


def test_history_labels_automatic_entries(backend: Backend) -> None:
    mem = backend.client()
    note, _ = mem.add(NOTE), mem.add(OTHER)
    _use_together(mem, backend.clock)
    found = [step_data(step) for step in history_steps(mem.history(note.id))]
    assert [(step["op"], step["automatic"]) for step in found] == [("add", False), ("use", True)]


@pytest.mark.parametrize("choice", ["replace", "keep-both", "update"])
def test_undo_of_a_persons_choice_brings_the_waiting_candidate_back(backend: Backend, choice: str) -> None:
    mem = backend.client()
    old, waiting = mem.learn(OLD, source="agent").memory, mem.learn(NEW, source="agent").memory
    assert old is not None
    assert waiting is not None
    assert waiting.status == "candidate"
    mem.learn(NEW, source="human", on_conflict=choice)
    assert mem.get(waiting.id).status != "candidate"
    mem.undo(old.id if choice == "update" else waiting.id, actor="human")
    assert (mem.get(old.id).statement, mem.get(old.id).status) == (OLD, "active")
    back = mem.get(waiting.id)
    assert (back.status, back.verification) == ("candidate", "unverified")
    assert [item.memory.id for item in mem.review.queue()] == [waiting.id]


def test_undo_last_brings_the_waiting_candidate_back(backend: Backend) -> None:
    mem = backend.client()
    old, waiting = mem.learn(OLD, source="agent").memory, mem.learn(NEW, source="agent").memory
    assert old is not None
    assert waiting is not None
    mem.learn(NEW, source="human", on_conflict="replace")
    mem.review.undo_last(actor="human")
    assert (mem.get(old.id).status, mem.get(waiting.id).status) == ("active", "candidate")
