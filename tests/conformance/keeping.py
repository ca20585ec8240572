"""Short ways to write to a store, and to read an answer of its retrievers."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from engram.model.memory import Memory
from engram.model.records import Event
from engram.store.intake import NewEvent
from engram.store.protocol import Candidates, Filters, Query, Store
from engram.text.tokens import query_terms
from tests.clock import Clock

ANY = Filters(statuses=None)
"""Every memory, whatever became of it."""


@dataclass(frozen=True, slots=True)
class Keep:
    """Puts memories into a store, each call one decision."""

    store: Store
    clock: Clock

    def __call__(self, statement: str, **fields: Any) -> Memory:
        """One memory."""
        return self.many([{"statement": statement, **fields}])[0]

    def many(self, drafts: Sequence[Mapping[str, Any]]) -> list[Memory]:
        """Several, in one decision."""
        now = self.clock()
        scopes = sorted({str(draft.get("scope", "global")) for draft in drafts})
        kept = []
        with self.store.deciding("add", actor="test", scopes=scopes) as deciding:
            for draft in drafts:
                kept.append(Memory(**{"id": deciding.new_id(now), "created": now, **draft}))
                deciding.put(kept[-1])
        return kept

    def again(self, memory: Memory, op: str = "update", **changes: Any) -> Memory:
        """The same memory, changed."""
        changed = memory.replace(**changes)
        scopes = sorted({memory.scope, changed.scope})
        with self.store.deciding(op, actor="test", scopes=scopes, about=[memory.id]) as deciding:
            deciding.put(changed)
        return changed


def day(number: int, hour: int = 0) -> datetime:
    """A day of January 2026."""
    return datetime(2026, 1, number, hour, tzinfo=UTC)


def said(role: str, content: str, minute: int = 0, **fields: Any) -> NewEvent:
    """Something observed, so many minutes into the first of February."""
    return NewEvent(role, content, datetime(2026, 2, 1, 8, minute, tzinfo=UTC), **fields)


def listed(store: Store, filters: Filters = ANY, **page: Any) -> list[str]:
    """The statements of a listing."""
    return [memory.statement for memory in store.listing(filters, **page)]


def asked(store: Store, question: str, filters: Filters = ANY, limit: int = 10) -> Candidates:
    """What both retrievers find for a question."""
    vectors = store.embed([question])
    vector = vectors[0] if vectors is not None else None
    return store.candidates(Query(tuple(query_terms(question)), vector, limit), filters)


def texts(store: Store, ranking: Iterable[tuple[int, float]]) -> list[str]:
    """What the documents of a ranking say, in its order."""
    found = store.get_many([n for n, _ in ranking])
    return [f.record.content if isinstance(f.record, Event) else f.record.statement for f in found]
