"""`add_batch` names the item that it refuses, and stores the others on request; the same on every backend."""

from typing import Any

import pytest

from engram import InvalidInput, NotFound, Refused, SecretRefused
from engram.capture import add
from tests.backends import Backend

TOKEN = "ghp_" + "Zk4Qw8Xn2Rt6Yb9Mc3Vd7Lf1Hs5Jg0Pa8Ue"
GOOD = [
    "The gate of the garden sticks in winter",
    "Deploys go through the staging cluster",
    "Invoices are sent on Fridays",
]


def items(*between: Any) -> list[Any]:
    """Good items around others."""
    return [{"statement": GOOD[0]}, *between, {"statement": GOOD[1]}, {"statement": GOOD[2]}]


REFUSED: dict[str, tuple[Any, type[Exception], str]] = {
    "a secret": ({"statement": f"The token of the bot is {TOKEN}"}, SecretRefused, ""),
    "a wrong field": ({"statement": "The cellar floods in spring", "importance": 7}, InvalidInput, "The cellar floods in spring"),
    "an unknown field": ({"statement": "The cellar floods in spring", "colour": "blue"}, InvalidInput, "The cellar floods in spring"),
    "no statement": ({"tags": ["x"]}, Refused, ""),
    "no mapping": ("The cellar floods in spring", InvalidInput, ""),
    "an unknown memory to supersede": ({"statement": "The cellar is dry", "supersedes": ["ENG-2020-0101-001"]}, NotFound, "The cellar is dry"),
}  # fmt: skip


@pytest.mark.parametrize("label", REFUSED)
def test_the_error_names_the_item_and_nothing_is_written(backend: Backend, label: str) -> None:
    item, kind, excerpt = REFUSED[label]
    with backend.client() as mem:
        with pytest.raises(kind) as caught:
            mem.add_batch(items(item))
        place = f"items[1] (“{excerpt}”): " if excerpt else "items[1]: "
        assert str(caught.value).startswith(place) and TOKEN not in str(caught.value)
        assert mem.list(limit=None, status="any") == []


@pytest.mark.parametrize("label", REFUSED)
def test_the_others_are_stored_on_request(backend: Backend, label: str) -> None:
    item, kind, excerpt = REFUSED[label]
    with backend.client() as mem:
        added = mem.add_batch(items(item), on_error="skip")
        assert [memory.statement for memory in added] == GOOD
        (skipped,) = added.skipped
        assert (skipped.index, skipped.excerpt, type(skipped.error)) == (1, excerpt, kind)
        assert skipped.reason and TOKEN not in repr(skipped)
        assert sorted(memory.statement for memory in mem.list(limit=None)) == sorted(GOOD)


def test_a_batch_without_refusals_skips_nothing(backend: Backend) -> None:
    with backend.client() as mem:
        added = mem.add_batch([{"statement": text} for text in GOOD])
        assert [memory.statement for memory in added] == GOOD and added.skipped == []


def test_every_refused_item_is_listed_in_order(backend: Backend) -> None:
    with backend.client() as mem:
        bad = [item for item, _, _ in REFUSED.values()]
        added = mem.add_batch([*bad, {"statement": GOOD[0]}, *bad], on_error="skip")
        assert [memory.statement for memory in added] == GOOD[:1]
        assert [one.index for one in added.skipped] == [*range(6), *range(7, 13)]


def test_what_a_person_rejected_is_named(backend: Backend) -> None:
    with backend.client() as mem:
        mem.forget(mem.add("Disable the linter before every commit").id, actor="human")
        again = {"statement": "Disable the linter before every commit"}
        with pytest.raises(Refused, match=r"^items\[1\] \(“Disable the linter"):
            mem.add_batch(items(again))
        added = mem.add_batch(items(again), on_error="skip")
        assert [one.index for one in added.skipped] == [1] and len(added) == 3


def test_what_is_refused_inside_the_transaction_is_found_in_any_slice(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A memory that is purged between the check and the lock, say."""
    real = add.Adder._prepare_memory

    def refuse(self: add.Adder, deciding: object, memory: object, *rest: object) -> object:
        if "number 5 " in memory.statement or "number 12 " in memory.statement:  # type: ignore[attr-defined]
            raise NotFound(f"{memory.statement} cannot be added")  # type: ignore[attr-defined]
        return real(self, deciding, memory, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(add.Adder, "_prepare_memory", refuse)
    monkeypatch.setattr(add, "ADD_BATCH_SIZE", 8)
    batch = [{"statement": f"The shelf number {n} is in the cellar"} for n in range(20)]
    with backend.client() as mem:
        with pytest.raises(NotFound, match=r"^items\[5\] \(“The shelf number 5"):
            mem.add_batch(batch)
        assert mem.list(limit=None) == []
        added = mem.add_batch(batch, on_error="skip")
        assert [one.index for one in added.skipped] == [5, 12]
        assert [memory.statement for memory in added] == [
            one["statement"] for n, one in enumerate(batch) if n not in (5, 12)
        ]
        assert len(mem.list(limit=None)) == 18


def test_an_error_in_a_later_slice_says_what_was_stored(backend: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    real = add.Adder._prepare_memory

    def refuse(self: add.Adder, deciding: object, memory: object, *rest: object) -> object:
        if "number 5 " in memory.statement:  # type: ignore[attr-defined]
            raise NotFound("gone")
        return real(self, deciding, memory, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(add.Adder, "_prepare_memory", refuse)
    monkeypatch.setattr(add, "ADD_BATCH_SIZE", 4)
    with backend.client() as mem, pytest.raises(NotFound, match=r"^items\[5\].*; 4 memories before it were stored"):
        mem.add_batch([{"statement": f"The shelf number {n} is in the cellar"} for n in range(8)])


def test_an_unknown_way_to_handle_errors_is_refused(backend: Backend) -> None:
    with backend.client() as mem, pytest.raises(InvalidInput, match="unknown on_error 'ignore'; choose raise or skip"):
        mem.add_batch(items(), on_error="ignore")  # type: ignore[arg-type]


def test_one_memory_is_refused_without_a_place(backend: Backend) -> None:
    with backend.client() as mem, pytest.raises(SecretRefused) as caught:
        mem.add(f"The token of the bot is {TOKEN}")
    assert "items[" not in str(caught.value)


def test_progress_counts_every_item(backend: Backend) -> None:
    seen: list[tuple[int, int]] = []
    with backend.client() as mem:
        mem.add_batch([{"statement": text} for text in GOOD], progress=lambda done, total: seen.append((done, total)))
    assert seen == [(3, 3)]
