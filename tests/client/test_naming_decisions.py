"""What each decision says it is about, so that a backend can keep others out of that and of nothing else."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import pytest

from engram import Engram
from engram.model.memory import Memory
from engram.store.protocol import Transaction

ACME, BETA = "project:acme", "project:beta"
PORT = "The api listens on port 8080 in production"
OTHER_PORT = "The api listens on port 9090 in production"


class Recorded:
    """The scopes and memories that decisions named, by what was decided."""

    def __init__(self, mem: Engram, monkeypatch: pytest.MonkeyPatch) -> None:
        self._deciding = mem.store.deciding
        self.named: list[tuple[str, list[str], list[str]]] = []
        monkeypatch.setattr(mem.store, "deciding", self)

    def __call__(self, op: str, **options: Any) -> AbstractContextManager[Transaction]:
        self.named.append((op, list(options.get("scopes", ())), list(options.get("about", ()))))
        return self._deciding(op, **options)


@pytest.fixture
def kept(mem: Engram) -> Memory:
    return mem.add(PORT, scope=ACME)


@pytest.fixture
def recorded(mem: Engram, kept: Memory, monkeypatch: pytest.MonkeyPatch) -> Recorded:
    return Recorded(mem, monkeypatch)


@pytest.mark.parametrize(
    ("change", "op", "scopes"),
    [
        (lambda mem, ref: mem.update(ref, statement=OTHER_PORT), "update", [ACME]),
        (lambda mem, ref: mem.update(ref, new_scope=BETA), "update", [ACME, BETA]),
        (lambda mem, ref: mem.update(ref, name="the-port"), "update", [ACME]),
        (lambda mem, ref: mem.update(ref, aliases=["mem-0001"]), "update", [ACME]),
        (lambda mem, ref: mem.update(ref, rationale="Said on Monday"), "update", []),
        (lambda mem, ref: mem.undo(ref), "undo", [ACME]),
        (lambda mem, ref: mem.pin(ref), "pin", []),
        (lambda mem, ref: mem.verify(ref), "verify", []),
        (lambda mem, ref: mem.reinforce(ref), "reinforce", []),
        (lambda mem, ref: mem.forget(ref), "forget", []),
        (lambda mem, ref: mem.feedback(ref, "positive"), "rate", []),
        (lambda mem, ref: mem.learn(PORT, scope=ACME), "derive", []),
    ],
)
def test_a_change_names_its_memory_and_the_scopes_it_depends_on(
    mem: Engram,
    kept: Memory,
    recorded: Recorded,
    change: Callable[[Engram, str], object],
    op: str,
    scopes: list[str],
) -> None:
    change(mem, kept.id)
    assert recorded.named == [(op, scopes, [kept.id])]


def test_putting_a_memory_back_in_force_names_its_scope(
    mem: Engram, kept: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    mem.forget(kept.id)
    recorded = Recorded(mem, monkeypatch)
    mem.update(kept.id, status="active")
    assert recorded.named == [("update", [ACME], [kept.id])]


def test_undoing_a_move_names_both_scopes(mem: Engram, kept: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    mem.update(kept.id, new_scope=BETA)
    recorded = Recorded(mem, monkeypatch)
    assert mem.undo(kept.id).scope == ACME
    assert recorded.named == [("undo", [ACME, BETA], [kept.id])]


def test_what_is_new_names_the_scopes_it_is_written_to(mem: Engram, recorded: Recorded) -> None:
    mem.add_batch([{"statement": f"Fact number {i}", "scope": scope} for i, scope in enumerate((BETA, ACME, BETA))])
    mem.learn("The staging server is called nightshift", scope=BETA)
    assert recorded.named == [("add", [ACME, BETA], []), ("learn", [BETA], [])]


def test_what_contradicts_or_supersedes_names_the_other_one(mem: Engram, kept: Memory, recorded: Recorded) -> None:
    answer = mem.learn(OTHER_PORT, scope=ACME)
    assert answer.memory is not None
    mem.review.resolve(answer.memory.id, "new")
    assert recorded.named == [("learn", [ACME], [kept.id]), ("resolve", [ACME], [answer.memory.id, kept.id])]


@pytest.mark.parametrize(("decide", "scopes"), [("approve", [ACME]), ("reject", [])])
def test_only_an_approval_depends_on_what_else_is_in_force(
    mem: Engram, monkeypatch: pytest.MonkeyPatch, decide: str, scopes: list[str]
) -> None:
    waiting = mem.add("The staging server is called nightshift", scope=ACME, status="candidate")
    recorded = Recorded(mem, monkeypatch)
    getattr(mem.review, decide)(waiting.id)
    assert recorded.named == [(decide, scopes, [waiting.id])]


def test_a_sessions_end_names_every_memory_it_folds(mem: Engram, kept: Memory, recorded: Recorded) -> None:
    other = mem.add("Indent the acme sources with tabs", scope=ACME)
    with mem.session() as session:
        mem.recall(PORT, scope=ACME, session=session.id)
        mem.recall(other.statement, scope=ACME, session=session.id)
    op, scopes, about = recorded.named[-1]
    assert (op, scopes, sorted(about)) == ("use", [], sorted([kept.id, other.id]))
