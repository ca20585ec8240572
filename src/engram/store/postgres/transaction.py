"""One decision on Postgres: locks its scopes and memories in order, writes everything in one transaction."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from engram.model.errors import InvalidInput, NotFound
from engram.model.lazy import dataclass
from engram.model.memory import Memory
from engram.store.documents import meaning_of, memory_document
from engram.store.postgres.adapters import Texts
from engram.store.postgres.connections import Connection
from engram.store.postgres.context import TenantContext
from engram.store.postgres.sql import statement
from engram.store.postgres.write import (
    DocumentRow,
    chunks,
    documents_work,
    memories_work,
    number_documents,
)
from engram.store.protocol import LIVE_STATUSES, ProposalKeys
from engram.store.records import decode_record, encoded_image, heads_among, keep_update_time, versions_among
from engram.store.screen import Decider, Screen

if TYPE_CHECKING:
    from engram.embedding.protocol import Vectors

_COMPARED_STATUSES = ("active", "dormant", "candidate")
"""The statuses that gates compare a proposal with."""


class DecisionResult(NamedTuple):
    """The operation, who decided it and why."""

    op: str
    actor: str
    reason: str
    session: str


@dataclass(slots=True)
class _Pending:
    memory: Memory
    vector: "Vectors | None"


class PostgresTransaction:
    """Collects what a decision changes; `commit` writes it, and the end of the transaction commits it.

    Locks are taken in one order, scopes before memories and each sorted by name, so that two decisions cannot deadlock: that
    is why a decision names both when it begins. Anything else is locked when it is first read.
    """

    def __init__(
        self,
        context: TenantContext,
        connection: Connection,
        decision: DecisionResult,
        reserved: dict[str, range],
        screen: Screen,
    ) -> None:
        self._screen = screen
        self._context, self._connection, self._decision = context, connection, decision
        self._pending: dict[str, _Pending] = {}
        self._stored: dict[str, Memory | None] = {}
        self._changes: dict[str, int] = {}
        self._minted: set[str] = set()
        self._judged: set[str] = set()
        """Memories that the gates have judged as they were put."""
        self._names: set[tuple[str, str]] = set()
        self._day: tuple[datetime | None, str] = (None, "")
        self._reserved = reserved
        """Unused numbers reserved for new ids, by day."""
        self._exact: dict[tuple[str, str], Memory | None] = {}
        self._heads: dict[tuple[str, str], list[str]] = {}
        self._put_by_key: dict[tuple[str, str], list[str]] = {}
        """Ids this decision has put, by conflict key and scope."""
        self._taken: dict[tuple[str, str], set[str]] = {}

    # -- locks

    def lock_scopes(self, scopes: Iterable[str]) -> None:
        """Lock scopes against other decisions until this transaction ends."""
        wanted = sorted(set(scopes) - set(self._changes))
        if wanted:
            self._changes |= dict(self._run("lock_scopes", scopes=wanted))

    def lock_memories(self, ids: Iterable[str]) -> None:
        """Lock memories against changes until this transaction ends."""
        wanted = sorted(set(ids) - set(self._stored))
        if wanted:
            found = {i: decode_record(record) for i, record in self._run("lock_memories", ids=wanted)}
            self._stored |= {i: found.get(i) for i in wanted}

    def prefetch(self, proposals: Sequence[ProposalKeys]) -> None:
        """Look up everything the proposals will need at once."""
        self.lock_scopes(keys.scope for keys in proposals)
        self._look_up_exact([(keys.content_hash, keys.scope) for keys in proposals if keys.content_hash])
        self._look_up_names([(keys.name, keys.scope) for keys in proposals if keys.name])
        if keyed := [(keys.conflict_key, keys.scope) for keys in proposals if keys.conflict_key]:
            self._look_up_heads(keyed)

    # -- reading

    def get(self, memory_id: str) -> Memory | None:
        """The current memory, or what this decision has put; locked."""
        if memory_id in self._pending:
            return self._pending[memory_id].memory
        self.lock_memories([memory_id])
        return self._stored[memory_id]

    @property
    def pending_memories(self) -> list[Memory]:
        """The memories this decision has put."""
        return [item.memory for item in self._pending.values()]

    def stored_memory(self, memory_id: str) -> Memory | None:
        """A memory as it was before this decision."""
        return self._stored.get(memory_id)

    def _before(self, memory_id: str) -> Memory | None:
        known = self._pending.get(memory_id)
        return known.memory if known is not None else self.stored_memory(memory_id)

    def exact(self, content_hash: str, scope: str) -> Memory | None:
        """The live memory with this content in this scope."""
        if not content_hash:
            return None
        if (content_hash, scope) not in self._exact:
            self.lock_scopes([scope])
            self._look_up_exact([(content_hash, scope)])
        return self._exact[content_hash, scope]

    def _look_up_exact(self, keys: list[tuple[str, str]]) -> None:
        hashes, scopes = Texts(text_hash for text_hash, _ in keys), Texts(scope for _, scope in keys)
        rows = self._run("exact", hashes=hashes, scopes=scopes)
        self._exact |= dict.fromkeys(keys) | {
            (text_hash, scope): decode_record(record) for text_hash, scope, record in rows
        }

    def heads(self, conflict_key: str, scope: str) -> Sequence[Memory]:
        """The current memories with a conflict key in a scope; locked."""
        if not conflict_key:
            return []
        if (conflict_key, scope) not in self._heads:
            self.lock_scopes([scope])
            self._look_up_heads([(conflict_key, scope)])
        ids = dict.fromkeys([*self._heads[conflict_key, scope], *self._put_by_key.get((conflict_key, scope), ())])
        return heads_among([self.get(i) for i in ids], conflict_key, scope)

    def _look_up_heads(self, keys: list[tuple[str, str]]) -> None:
        """Requires the scopes' locks, so that no other decision adds one meanwhile."""
        rows = self._run("heads", keys=[key for key, _ in keys], scopes=[scope for _, scope in keys])
        self._heads |= {key: [] for key in keys}
        for key, scope, memory_id, _ in rows:
            self._heads[key, scope].append(memory_id)
        self.lock_memories(memory_id for *_, memory_id, _ in rows)

    def lineage(self, lineage_id: str) -> Sequence[Memory]:
        """Every version of a fact, by revision; locked."""
        ids = [i for i, _ in self._run("lineage", lineage=lineage_id)]
        self.lock_memories(ids)
        known = [memory for i in ids if (memory := self.get(i)) is not None]
        return versions_among([*known, *(item.memory for item in self._pending.values())], lineage_id)

    def changed_since(self, scope: str, mark: int) -> Sequence[Memory]:
        """What other decisions wrote in a scope after `mark`."""
        self.lock_scopes([scope])
        if self._changes[scope] <= mark + 1:
            return []
        return [decode_record(record) for (record,) in self._run("changed_since", scope=scope, mark=mark)]

    # -- ids and names

    def new_id(self, at: datetime, *, team: bool = False) -> str:
        """The next id of a UTC day."""
        if team:
            raise InvalidInput("a team store consists of files; this store is on Postgres")
        if self._day[0] is not at:
            self._day = (at, day_of(at))
        minted = f"{self._day[1]}-{self._next_number(self._day[1]):03d}"
        self._minted.add(minted)
        return minted

    def _next_number(self, day: str) -> int:
        # A number that was not reserved is taken in this transaction; other decisions of the day wait for it.
        numbers = self._reserved.get(day) or self._context.numbers.take(day, 1)
        self._reserved[day] = numbers[1:]
        return numbers[0]

    def free_name(self, name: str, scope: str) -> str:
        """The name, or the name with the first number that is free in its scope."""
        if not name:
            return ""
        if (name, scope) not in self._taken:
            self.lock_scopes([scope])
            self._look_up_names([(name, scope)])
        taken = self._taken[name, scope]
        free, number = name, 1
        while free in taken or (free, scope) in self._names:
            number += 1
            free = f"{name}-{number}"
        self._names.add((free, scope))
        return free

    def _look_up_names(self, keys: list[tuple[str, str]]) -> None:
        names, scopes = Texts(name for name, _ in keys), Texts(scope for _, scope in keys)
        rows = self._run("names_like", names=names, scopes=scopes)
        for name, scope in keys:
            self._taken[name, scope] = set()
        by_scope: dict[str, list[str]] = {}
        for known, scope in rows:
            by_scope.setdefault(scope, []).append(known)
        for name, scope in keys:
            self._taken[name, scope].update(n for n in by_scope.get(scope, ()) if n.startswith(name))

    # -- changing

    def put(self, memory: Memory, vector: "Vectors | None" = None, *, team: str = "", judged: bool = False) -> None:
        """Add or replace a memory; `judged` if the gates have judged what it says."""
        if team:
            raise InvalidInput("a team store consists of files; this store is on Postgres")
        memory = keep_update_time(memory, self._before)
        (self._judged.add if judged else self._judged.discard)(memory.id)
        if memory.conflict_key:
            self._put_by_key.setdefault((memory.conflict_key, memory.scope), []).append(memory.id)
        known = self._pending.get(memory.id)
        if known is not None:
            known.memory, known.vector = memory, vector if vector is not None else known.vector
            return
        if memory.id not in self._minted:
            before = self.get(memory.id)
            if before is None and self._run("purged", ids=[memory.id]):
                raise NotFound(f"{memory.id} was purged and cannot be restored")
            if before is None or _needs_comparison(before, memory):
                self.lock_scopes([memory.scope])
        else:
            self.lock_scopes([memory.scope])
        self._pending[memory.id] = _Pending(memory, vector)

    def check(self, memory: Memory) -> None:
        """Raise where this decision may not write the memory."""
        self._screen.memories([memory], self.stored_memory, self._decider)

    def check_all(self) -> None:
        """Raise where this decision may not write what it has put."""
        self._screen.memories(self.pending_memories, self.stored_memory, self._decider)

    @property
    def _decider(self) -> Decider:
        gone = frozenset(memory.id for memory in self.pending_memories if memory.status not in LIVE_STATUSES)
        vectors = {item.memory.id: item.vector for item in self._pending.values() if item.vector is not None}
        return Decider(self._decision.op, self._decision.actor, gone, vectors, frozenset(self._judged))

    @property
    def lacks_vectors(self) -> bool:
        """Whether a written memory may still need a vector."""
        if self._context.embedder is None:
            return False
        return any(item.vector is None and self._has_new_meaning(item.memory) for item in self._pending.values())

    def _has_new_meaning(self, memory: Memory) -> bool:
        before = self._stored.get(memory.id)
        return before is None or meaning_of(before) != meaning_of(memory)

    @property
    def written_count(self) -> int:
        """The number of memories written."""
        return len(self._pending)

    def commit(self) -> None:
        """Write the decision, if it put anything.

        It is sent in chunks without waiting for answers: the server writes one while the next is prepared.
        """
        if not self._pending:
            return
        database, ids, generation = self._context.database, Texts(self._pending), self._context.settings.generation
        fresh = {i for i in ids if self._stored.get(i) is None}
        # Reads come first: inside the pipeline no answer is available before its end.
        ((seq,),) = self._run("next_decision")
        placed = number_documents(database, ids, self._minted)
        entry = {"seq": seq, "at": self._context.clock(), "op": self._decision.op}
        with database.pipeline():
            for some in chunks(list(self._pending.values())):
                records = [(item.memory, encoded_image(item.memory)[1]) for item in some]
                images = {"ids": Texts(i.memory.id for i in some), "images": Texts(record for _, record in records)}
                database.send([*memories_work(records, fresh), ("put_images", {**entry, **images})])
                database.send(documents_work([self._row(item) for item in some], placed, generation))
            database.send([("put_decision", {**entry, **self._decision._asdict(), "ids": ids})])
        self._context.numbers.raise_to([i for i in fresh if i not in self._minted])

    def _row(self, item: _Pending) -> DocumentRow:
        return DocumentRow(memory_document(item.memory), item.vector, self._changes.get(item.memory.scope))

    def _run(self, name: str, /, **values: Any) -> list[tuple[Any, ...]]:
        return self._context.database.run_on(self._connection, statement(name), values)


def day_of(moment: datetime) -> str:
    """The prefix of ids of a UTC day."""
    return moment.astimezone(UTC).strftime("ENG-%Y-%m%d")


def _needs_comparison(before: Memory, after: Memory) -> bool:
    """Whether a changed memory must be compared within its scope: its scope, statement or status has changed.

    One that is retired needs no comparison: it is locked already, and locking a scope after a memory could deadlock.
    """
    changed = (before.statement, before.status) != (after.statement, after.status)
    return before.scope != after.scope or (changed and after.status in _COMPARED_STATUSES)
