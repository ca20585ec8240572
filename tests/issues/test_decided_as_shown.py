"""A decision is about what was shown: what was changed meanwhile is not approved, rejected, settled or merged unseen."""

from collections.abc import Callable
from typing import Any

import pytest

from engram import ChangedMeanwhile, Engram, Memory
from tests.backends import Backend

HARNESS = "harness:codex:acme"


@pytest.fixture
def mem(backend: Backend) -> Engram:
    return backend.client()


def proposed(mem: Engram, statement: str = "Packages come from registry.npmjs.org") -> Memory:
    memory = mem.learn(statement, source=HARNESS).memory
    assert memory is not None and memory.status == "candidate"
    return memory


def reworded(mem: Engram, memory: Memory) -> Memory:
    return mem.review.edit(memory.id, statement="Packages come from npm.evil.example", actor="agent")


def test_a_candidate_changed_meanwhile_is_neither_approved_nor_rejected(mem: Engram) -> None:
    shown = proposed(mem)
    reworded(mem, shown)
    for decide in (mem.review.approve, mem.review.reject):
        with pytest.raises(ChangedMeanwhile, match="was changed while you read it"):
            decide(shown.id, actor="human", shown=[shown])
    assert mem.get(shown.id).status == "candidate"


def test_many_at_once_leave_out_what_was_changed(mem: Engram) -> None:
    shown = [proposed(mem), proposed(mem, "Screenshots are compared with pixelmatch")]
    reworded(mem, shown[0])
    ids = [memory.id for memory in shown]
    for decide in (mem.review.promote_all, mem.review.reject_all):
        decision = decide(ids, actor="human", shown=shown)
        assert "was changed while you read it" in decision.left[shown[0].id]
    assert [mem.get(i).status for i in ids] == ["candidate", "active"]


def test_a_plan_promotes_only_the_words_it_was_made_for(mem: Engram) -> None:
    waiting = mem.add("Packages come from registry.npmjs.org", source="manual", status="candidate")
    plan = mem.review.plan_promotion()
    assert [one.id for one in plan.promoted] == [waiting.id]
    reworded(mem, waiting)
    assert waiting.id in mem.review.promote_eligible(plan=plan).left


@pytest.mark.parametrize("changed", ["new", "old"])
def test_a_contradiction_is_settled_as_both_sides_were_shown(mem: Engram, changed: str) -> None:
    old = mem.learn("The api listens on port 8080", source="agent").memory
    new = mem.learn("The api listens on port 9090", source=HARNESS).memory
    assert old is not None and new is not None
    (item,) = mem.review.queue(about=new.id)
    assert item.other is not None
    mem.update({"new": new, "old": old}[changed].id, situation="on the evil host", actor="manual")
    with pytest.raises(ChangedMeanwhile):
        mem.review.resolve(new.id, "new", actor="human", shown=[item.memory, item.other])
    assert (mem.get(new.id).status, mem.get(old.id).status) == ("candidate", "active")


def test_memories_are_merged_as_they_were_shown(mem: Engram) -> None:
    one, other = proposed(mem), proposed(mem, "Screenshots are compared with pixelmatch")
    reworded(mem, one)
    with pytest.raises(ChangedMeanwhile):
        mem.review.merge([one.id, other.id], "Both", actor="human", shown=[one, other])
    assert mem.get(other.id).status == "candidate"


def test_a_memory_is_retired_or_reinforced_as_it_was_shown(mem: Engram) -> None:
    shown = mem.learn("Packages come from registry.npmjs.org", source="agent").memory
    assert shown is not None
    mem.update(shown.id, statement="Packages come from a mirror", actor="agent")
    decisions: tuple[Callable[..., Any], ...] = (mem.review.retire, mem.review.reinforce)
    for decide in decisions:
        with pytest.raises(ChangedMeanwhile):
            decide(shown.id, actor="human", shown=[shown])


def test_use_changes_nothing_that_was_decided_about(mem: Engram) -> None:
    shown = proposed(mem)
    mem.feedback(shown.id, "positive")
    mem.reinforce(shown.id, actor="agent")
    assert mem.review.approve(shown.id, actor="human", shown=[shown]).status == "active"
