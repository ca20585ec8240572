"""One decision on Postgres: locks its scopes and memories in order, and writes documents and records in one transaction."""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from engram.model.errors import InvalidInput, NotFound
from engram.model.lazy import dataclass
from engram.model.memory import LIVE_STATUSES, Memory
from engram.store.documents import Document, meaning_digest, meaning_of, memory_document
from engram.store.intake import Decider, Screen
from engram.store.postgres.connections import Connection, Texts, VectorArray
from engram.store.postgres.database import Database, TenantContext
from engram.store.postgres.sql import statement
from engram.store.protocol import COMPARED_STATUSES, ProposalKeys
from engram.store.records import decode_record, encoded_image, heads_among, keep_update_time, versions_among
from engram.text.tokens import QUESTION_MARKER

if TYPE_CHECKING:
    from engram.embedding.vectors import Vectors

_TEXTS = (
    "id", "kind", "scope", "status", "type", "domain", "parent", "hash", "statement", "about", "support", "cues"
)  # fmt: skip
_VALUES = ("position", "time", "known", "valid_from", "valid_until", "pinned")
_TAG_END = "\x1f"
Item = TypeVar("Item")
Work = list[tuple[str, dict[str, Any]]]
ROWS_PER_CHUNK = 100
"""Documents per statement: the server writes some while the next are prepared."""


@dataclass(frozen=True, slots=True)
class DocumentRow:
    """A document to write, with its vector if the caller has it. `change` is the number of its scope's last change."""

    document: Document
    vector: "Vectors | None" = None
    change: int | None = None


@dataclass(frozen=True, slots=True)
class KnownDocument:
    """A document as it is in the table."""

    n: int
    texts: tuple[str, ...]
    meaning: bytes
    scope: str
    kind: str
    change: int


@dataclass(frozen=True, slots=True)
class DocumentNumbers:
    """The numbers of documents to write, and the documents that already exist."""

    numbers: Mapping[str, int]
    known: Mapping[str, KnownDocument]


def number_documents(database: Database, ids: Sequence[str], minted: Collection[str] = ()) -> DocumentNumbers:
    """Look up the numbers of documents; new ones, and those whose ids were just `minted`, get the next numbers."""
    older = [i for i in ids if i not in minted]
    known = known_documents(database, older) if older else {}
    numbers = {i: stored.n for i, stored in known.items()}
    fresh = [i for i in ids if i not in known]
    if fresh:
        taken = database.run("next_numbers", count=len(fresh))
        numbers |= {i: n for i, (n,) in zip(fresh, taken, strict=True)}
    return DocumentNumbers(numbers, known)


def write_documents(
    database: Database,
    rows: Sequence[DocumentRow],
    generation: int,
    *,
    rewrite: bool = False,
) -> None:
    """Insert or update documents. Unchanged words are left alone unless `rewrite` is set."""
    numbered = number_documents(database, [row.document.id for row in rows])
    with database.pipeline():
        for some in chunks(rows):
            database.send(documents_work(some, numbered, generation, rewrite=rewrite))


def chunks(items: Sequence[Item]) -> Iterator[Sequence[Item]]:
    """Items in chunks that are sent together."""
    return (items[start : start + ROWS_PER_CHUNK] for start in range(0, len(items), ROWS_PER_CHUNK))


def documents_work(
    rows: Sequence[DocumentRow], numbered: DocumentNumbers, generation: int, *, rewrite: bool = False
) -> Work:
    """The statements that write these documents."""
    numbers, known = numbered.numbers, numbered.known
    changed, added = [], []
    for row in rows:
        stored, n = known.get(row.document.id), numbers[row.document.id]
        if stored is None:
            added.append(n)
        elif rewrite or stored.texts != _texts(row.document):
            changed.append(n)
    work: Work = [("drop_postings", {"numbers": changed})] if changed else []
    work.append(("put_documents", _document_columns(rows, numbers, known)))
    if added or changed:
        work.append(("put_postings", {"numbers": added + changed}))
    _put_vectors(work, rows, numbers, known, generation)
    return work


def known_documents(database: Database, ids: Sequence[str]) -> dict[str, KnownDocument]:
    """The documents that are in the table, by id."""
    rows = database.run("known_documents", ids=list(ids))
    return {
        i: KnownDocument(n, (statement_, about, support, cues), bytes(meaning), scope, kind, change)
        for i, n, statement_, about, support, cues, meaning, scope, kind, change in rows
    }


def _texts(document: Document) -> tuple[str, ...]:
    return document.statement, document.about, document.support, document.cues


def _length(document: Document) -> int:
    terms = " ".join(_texts(document)).split()
    return len(terms) - terms.count(QUESTION_MARKER)


def _document_columns(
    rows: Sequence[DocumentRow], numbers: Mapping[str, int], known: Mapping[str, KnownDocument]
) -> dict[str, Any]:
    documents = [row.document for row in rows]
    found: dict[str, Any] = {name: Texts(getattr(d, name) for d in documents) for name in _TEXTS}
    found |= {name: [getattr(d, name) for d in documents] for name in _VALUES}
    found["n"] = [numbers[d.id] for d in documents]
    found["tags"] = Texts(_TAG_END.join(dict.fromkeys(d.tags)) for d in documents)
    found["length"] = [_length(d) for d in documents]
    found["meaning"] = [meaning_digest(d.meaning) for d in documents]
    found["change"] = [
        row.change if row.change is not None else known[row.document.id].change if row.document.id in known else 0
        for row in rows
    ]
    return found


def _put_vectors(
    work: Work,
    rows: Sequence[DocumentRow],
    numbers: Mapping[str, int],
    known: Mapping[str, KnownDocument],
    generation: int,
) -> None:
    stale, moved, embedded = [], [], []
    for row in rows:
        stored = known.get(row.document.id)
        if stored is not None and stored.meaning != meaning_digest(row.document.meaning):
            # Of every generation, including one that is still being built.
            stale.append(stored.n)
        elif stored is not None and stored.scope != row.document.scope:
            moved.append(stored.n)
        if row.vector is not None:
            embedded.append((numbers[row.document.id], row.document.kind, row.document.scope, row.vector))
    if stale:
        work.append(("drop_vectors", {"numbers": stale}))
    if moved:
        work.append(("move_vectors", {"numbers": moved}))
    if embedded:
        work.append(("put_vectors", vector_columns(embedded, generation)))


def columns(names: Sequence[str], rows: Iterable[tuple[Any, ...]]) -> dict[str, Any]:
    """Rows as the arrays that a statement unnests."""
    return dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))


def vector_columns(embedded: "Iterable[tuple[int, str, str, Vectors]]", generation: int) -> dict[str, Any]:
    """The columns that `put_vectors` expects."""
    numbers, kinds, scopes, vectors = zip(*embedded, strict=True)
    return {
        "generation": generation,
        "numbers": list(numbers),
        "kinds": Texts(kinds),
        "scopes": Texts(scopes),
        "vectors": VectorArray(vectors),
    }


def memories_work(memories: Sequence[tuple[Memory, str]], fresh: set[str]) -> Work:
    """The statements that put records of memories, their names and their links; those in `fresh` are new."""
    new = [(memory.id, record) for memory, record in memories if memory.id in fresh]
    old = [(memory.id, record) for memory, record in memories if memory.id not in fresh]
    # A new id must not exist yet: if a number was allocated twice, the second decision fails.
    work: Work = [("add_memories", _records(new))] if new else []
    if old:
        ids = {"ids": Texts(i for i, _ in old)}
        work += [("put_memories", _records(old)), ("drop_names", ids), ("drop_relations", ids)]
    names = [(name, m.id, m.scope) for m, _ in memories for name in dict.fromkeys((m.name, *m.aliases)) if name]
    if names:
        work.append(
            ("put_names", dict(zip(("names", "ids", "scopes"), map(Texts, zip(*names, strict=True)), strict=True)))
        )
    links = [
        (m.id, link.target, link.type, link.strength, link.weight, link.last_reinforced)
        for m, _ in memories
        for link in m.associations
    ]
    if links:
        relation_columns = ("sources", "targets", "types", "strengths", "weights", "reinforced")
        work.append(("put_relations", columns(relation_columns, links)))
    return work


def _records(memories: Sequence[tuple[str, str]]) -> dict[str, Any]:
    return {"ids": Texts(i for i, _ in memories), "records": Texts(record for _, record in memories)}


def to_json(mapping: Mapping[str, Any]) -> str:
    """A record as the tables store it."""
    return json.dumps(mapping, ensure_ascii=False, separators=(",", ":"))


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
    """Collects the changes of a decision; `commit` writes them, and the end of the transaction commits them.

    Locks are taken in one order, scopes before memories and each sorted by name, so that two decisions cannot deadlock.
    A decision therefore names both when it begins. Any other memory is locked when it is first read.
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
        """Look up together everything that the proposals will need."""
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
        """Raise if this decision may not write the memory."""
        self._screen.memories([memory], self.stored_memory, self._decider)

    def check_all(self) -> None:
        """Raise if this decision may not write one of the memories it has put."""
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
    """Whether a changed memory must be compared within its scope, because its scope, statement or status has changed.

    A retired memory needs no comparison: it is locked already, and locking a scope after a memory could deadlock.
    """
    changed = (before.statement, before.status) != (after.statement, after.status)
    return before.scope != after.scope or (changed and after.status in COMPARED_STATUSES)
