"""Update, pin, forget, undo, history: every decision can be read and taken back."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from engram import Engram
from engram.model.errors import InvalidInput, NotFound
from engram.store.protocol import Transaction
from tests.client.conftest import Clock

FACT = "The staging server is called nightshift and runs in Frankfurt"


def test_forgetting_retires_and_can_be_undone(mem: Engram) -> None:
    kept = mem.add(FACT)
    mem.forget(kept.id)
    assert mem.search("nightshift") == []
    assert mem.get(kept.id).status == "retired"
    assert mem.undo(kept.id).status == "active"
    assert [hit.id for hit in mem.search("nightshift")] == [kept.id]


def test_an_update_can_be_undone_and_done_again(mem: Engram) -> None:
    kept = mem.add(FACT)
    mem.update(kept.id, statement="The staging server is called dayshift")
    assert mem.undo(kept.id).statement == FACT
    assert mem.undo(kept.id).statement == "The staging server is called dayshift"


class LockWatch:
    """Notes what is embedded while the writer lock is held."""

    def __init__(self, mem: Engram, monkeypatch: pytest.MonkeyPatch) -> None:
        self.embedded: list[str] = []
        self._held = 0
        self._deciding, self._embed = mem.store.deciding, mem.store.embed
        monkeypatch.setattr(mem.store, "deciding", self.deciding)
        monkeypatch.setattr(mem.store, "embed", self.embed)

    @contextmanager
    def deciding(self, op: str, **options: Any) -> Iterator[Transaction]:
        with self._deciding(op, **options) as deciding:
            self._held += 1
            try:
                # The end of the decision is checked under the lock, too.
                yield deciding
                deciding.check_all()  # type: ignore[attr-defined]
            finally:
                self._held -= 1

    def embed(self, texts: Sequence[str]) -> Any:
        self.embedded += texts if self._held else ()
        return self._embed(texts)


def test_nothing_is_embedded_under_the_lock_when_an_agent_changes_a_memory(
    mem: Engram, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = mem.learn(FACT).memory
    assert kept is not None
    watch = LockWatch(mem, monkeypatch)
    mem.update(kept.id, actor="agent", statement="The staging server is called dayshift and runs in Frankfurt")
    mem.update(kept.id, actor="agent", situation="deploying to staging")
    mem.revise(kept.id, actor="agent", statement="The staging server is called lateshift and runs in Frankfurt")
    mem.forget(kept.id, actor="agent")
    mem.undo(kept.id, actor="agent")
    assert watch.embedded == []


def test_undoing_the_creation_retires(mem: Engram) -> None:
    kept = mem.add(FACT)
    assert mem.undo(kept.id).status == "retired"


def test_history_tells_every_decision_in_order(mem: Engram) -> None:
    kept = mem.add(FACT)
    mem.pin(kept.id)
    mem.update(kept.id, tags=["infra"], reason="tidying up")
    mem.forget(kept.id)
    steps = mem.history(kept.id)
    assert [step.op for step in steps] == ["add", "pin", "update", "forget"]
    assert steps[2].reason == "tidying up"
    assert steps[2].memory is not None
    assert steps[2].memory.tags == ("infra",)


def test_purging_leaves_no_byte_and_no_id_to_reuse(mem: Engram, everything: Callable[[], str]) -> None:
    kept = mem.add(FACT, rationale="Klaus moved it there in spring")
    mem.add("An unrelated fact about the coffee machine")
    mem.forget(kept.id, purge=True)
    with pytest.raises(NotFound):
        mem.get(kept.id)
    contents = everything()
    assert "coffee" in contents
    for word in ("nightshift", "Frankfurt", "Klaus", "frankfurt"):
        assert word not in contents
    assert mem.add("A third fact to number").id.endswith("-003")


def test_feedback_moves_strength_and_order(mem: Engram, clock: Clock) -> None:
    liked = mem.add("Deploy the api with the blue script")
    disliked = mem.add("Deploy the api with the green script")
    for _ in range(3):
        mem.feedback(disliked.id, "negative")
        mem.feedback(liked.id, "positive")
    assert mem.get(liked.id).feedback.positive == 3
    assert [hit.id for hit in mem.search("deploy the api script")] == [liked.id, disliked.id]
    with pytest.raises(InvalidInput):
        mem.feedback(liked.id, "meh")


def test_the_queue_offers_what_has_faded_away(mem: Engram, clock: Clock) -> None:
    kept = mem.add("A passing fact nobody ever asked for", type="factual")
    mem.add("Always ask before deleting branches", type="preference")
    clock.forward(days=120)
    assert [(item.waits_as, item.memory.id) for item in mem.review.queue()] == [("retirement", kept.id)]
    mem.review.reinforce(kept.id)
    clock.forward(days=1)
    mem.review.reinforce(kept.id)
    assert mem.review.queue() == []
