"""A tenant of a server as the target of a move: each slice is one transaction, and says in it how far the move has come."""

import contextlib
import json
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from engram.model.errors import EmbedderError, EngramError, InvalidInput, Refused, StoreBusy, StoreError
from engram.model.event import Event, Session
from engram.model.memory import Memory
from engram.model.usage import Use
from engram.rules.scopes import GLOBAL
from engram.store.documents import Document, event_document, meaning_digest, memory_document
from engram.store.ledgers import to_fields
from engram.store.moving import SLICE, Carried, Decision, Small, Way
from engram.store.owners import ledger_owner
from engram.store.postgres.connections import Connection
from engram.store.postgres.sql import statement
from engram.store.postgres.statistics import count_slice
from engram.store.postgres.store import PostgresStore
from engram.store.postgres.task_keeping import checkpoint_values, job_columns, task_values
from engram.store.postgres.writing import Places, Row, dumped, places, put_documents, put_memories
from engram.store.protocol import Progress
from engram.store.records import from_image

if TYPE_CHECKING:
    from engram.embedding.protocol import Vectors

_TABLES = ("documents", "postings", "memory_vectors")
"""Those that are answered from an index alone, once the server has marked their pages."""

Item = TypeVar("Item")
NUL = r"\u0000"
LANES = 2
"""Connections that put documents, the slow part, beside the one that puts the records."""
COUNTED = 20_000
"""Documents whose terms are counted at once."""


@dataclass(frozen=True, slots=True)
class Ready:
    """Decisions as the tables take them: their images, the memories that stand so now, the documents they are found by."""

    decisions: Sequence[Decision]
    images: list[str | None]
    memories: list[tuple[Memory, str]]
    rows: list[Row]


class PostgresTarget:
    """Fills a tenant."""

    def __init__(self, store: PostgresStore) -> None:
        self._store, self._parts, self._database = store, store.parts, store.parts.database
        self._way = Way("")
        self._scopes: dict[str, str] = {}
        self._lacking = False
        self._beside = ThreadPoolExecutor(LANES, "engram-moving")

    def close(self) -> None:
        """Let go of the threads; the store stays open."""
        self._beside.shutdown()

    @property
    def place(self) -> str:
        """Server, database and tenant."""
        return self._store.place

    @property
    def embedder(self) -> str:
        """Whose vectors it can use."""
        return self._parts.embedder.name if self._parts.embedder is not None and self._parts.facts.can_embed() else ""

    @property
    def notes(self) -> list[str]:
        """What the owner should hear of."""
        return self._parts.warnings

    # -- beginning and ending

    def begin(self, source: str) -> Way:
        """Begin in an empty tenant, or go on where the same move stopped."""
        with self._database.transaction() as connection:
            self._database.within(connection, statement("lock_facts"), {})
            known = way_of(self._database.within(connection, statement("look_at_move"), {}))
            check_free(self._store, known, source)
            self._way = known or Way(source)
            if self._way.finished and self._way.left == self._mark():
                self._way.finished = False
            self._remember(connection)
        return self._way

    def _mark(self) -> str:
        return json.dumps(self._database.run("mark_of_all")[0], default=str)

    def finish(self, progress: Progress) -> None:
        """Let the server look at its tables, count the terms, embed what lacks a vector."""
        self._analyze()
        self._count_terms(progress)
        if self._lacking:
            with contextlib.suppress(StoreError):
                self._store.sync()
        with self._database.transaction() as connection:
            self._check_way(connection)
            self._way.finished, self._way.left = True, self._mark()
            self._remember(connection)

    def _count_terms(self, progress: Progress) -> None:
        """Move the term statistics on, in steps as large as a quiet server can take."""
        counted = 0
        self._database.change("begin_statistics")
        while True:
            with self._database.transaction(durable=False) as connection:
                fresh = count_slice(self._database, connection, COUNTED)
            if not fresh:
                return
            counted += fresh
            progress("words", counted, counted)

    def _analyze(self) -> None:
        """The planner's figures, and the marks that let an index answer alone; the server skips what this role may not do."""
        with contextlib.suppress(EngramError):
            self._database.change("analyze")
            self._database.vacuum(_TABLES)

    # -- what has arrived

    def heads(self) -> Mapping[str, int]:
        """The number of each session's last event."""
        found: dict[str, int] = {}
        after = ""
        while rows := self._database.run("ledgers", after=after):
            found |= {session: seq for session, seq, _ in rows}
            after = rows[-1][0]
        return found

    def positions(self) -> "array[int]":
        """The positions of all uses."""
        rows = self._database.run("positions_behind", upto=2**63 - 1)
        return array("q", (position for (position,) in rows))

    # -- taking in

    def take_small(self, small: Small) -> None:
        """Sessions, verdicts, tombstones, numbers, the pause: all of them, every time."""
        self._scopes = {session.id: session.scopes[0] for session in small.sessions if session.scopes}
        self._scopes |= {task.id: task.scope for task in small.tasks}
        work: list[tuple[str, dict[str, Any]]] = [("drop_verdicts", {})]
        work += [("move_sessions", _session_columns(small.sessions))] if small.sessions else []
        work += [("put_tombstones", {"ids": sorted(small.tombstones)})] if small.tombstones else []
        if small.verdicts:
            columns = zip(*((v.at, v.gate, v.outcome) for v in small.verdicts), strict=True)
            work.append(("move_verdicts", dict(zip(("ats", "gates", "outcomes"), map(list, columns), strict=True))))
        if small.numbers:
            work.append(("raise_numbers", {"days": list(small.numbers), "lasts": list(small.numbers.values())}))
        work += [("put_task", task_values(task)) for task in small.tasks]
        work += [("put_checkpoint", checkpoint_values(checkpoint)) for checkpoint in small.checkpoints]
        work += [("drop_jobs", {}), *([("put_jobs", job_columns(small.jobs))] if small.jobs else [])]
        with self._slice() as connection:
            self._database.all_of(connection, work)
            self._parts.facts.set(connection, paused=small.paused or None)

    def take_uses(self, uses: Sequence[Use]) -> None:
        """Append uses, at the server's next positions."""
        with self._slice() as connection:
            taken = self._database.within(connection, statement("next_uses"), {"count": len(uses)})
            rows = [
                (memory_id, position, use.kind, use.signal, use.session, use.at)
                for use, (position,) in zip(uses, sorted(taken), strict=True)
                for memory_id in dict.fromkeys(use.ids)
            ]
            names = ("ids", "positions", "kinds", "signals", "sessions", "ats")
            self._database.within(connection, statement("move_uses"), _columns(names, rows))
            self._way.uses = uses[-1].position
            self._remember(connection)

    def made_ready(self, decisions: Sequence[Decision], vectors: Carried) -> Ready:
        """Records, documents and vectors."""
        images: list[str | None] = []
        memories: list[tuple[Memory, str]] = []
        for decision in decisions:
            for change in decision.changes:
                images.append(dumped(change.after) if change.after is not None else None)
                if change.current and change.after is not None:
                    memories.append((from_image(change.after), images[-1] or ""))
        documents = [memory_document(memory) for memory, _ in memories]
        return Ready(decisions, images, memories, self._rows(documents, vectors))

    def _rows(self, documents: Sequence[Document], carried: Carried) -> list[Row]:
        """Documents with their vectors: the one that came with each, if it was made of this text, else a new one."""
        found: dict[str, Vectors] = {}
        for document in documents:
            known = carried.get(document.id)
            if known is not None and known[0] == meaning_digest(document.meaning):
                found[document.id] = known[1]
        missing = [] if self._lacking else [document for document in documents if document.id not in found]
        try:
            made = self._parts.embed([document.meaning for document in missing]) if missing else None
        except EmbedderError as error:
            self._parts.warn(f"some documents are found by keyword only for now: {error}")
            self._lacking, made = True, None
        if made is not None:
            found |= {document.id: vector for document, vector in zip(missing, made, strict=True)}
        return [Row(document, found.get(document.id)) for document in documents]

    def take_decisions(self, ready: Ready) -> None:
        """The journal, and the memories that stand so now."""
        texts = zip((change.id for d in ready.decisions for change in d.changes), ready.images, strict=True)
        with _blaming(texts), self._slice() as connection, self._indexed_beside(connection, ready.rows):
            self._put_journal(connection, ready)
            ids = [memory.id for memory, _ in ready.memories]
            known = self._database.within(connection, statement("memories_among"), {"ids": ids})
            fresh = set(ids) - {i for (i,) in known}
            for some in _parts_of(ready.memories, SLICE):
                put_memories(self._database, connection, some, fresh)
            self._way.journal = ready.decisions[-1].cursor
            self._remember(connection)

    @contextlib.contextmanager
    def _indexed_beside(self, connection: Connection, rows: Sequence[Row]) -> Iterator[None]:
        """Put documents by connections of their own while the block puts the records.

        Their numbers are taken before, in order: what was written at the same moment is listed in it. The records commit last, with how far the move has come: a document without its record is put again by the next run, and
        that changes nothing.
        """
        share = max(1, min(SLICE, -(-len(rows) // LANES)))
        placed = places(self._database, connection, [row.document.id for row in rows])
        work = [self._beside.submit(self._put_index, some, placed) for some in _parts_of(rows, share)]
        try:
            yield
        finally:
            wait(work)
        for done in work:
            done.result()

    def _put_index(self, rows: Sequence[Row], placed: Places) -> None:
        with self._database.transaction() as connection:
            put_documents(self._database, connection, rows, self._parts.facts.generation, placed=placed)

    def _put_journal(self, connection: Connection, ready: Ready) -> None:
        count = len(ready.decisions)
        seqs = sorted(
            seq for (seq,) in self._database.within(connection, statement("next_decisions"), {"count": count})
        )
        told = [
            (seq, d.at, d.op, d.actor, d.reason, d.session, json.dumps([change.id for change in d.changes]))
            for seq, d in zip(seqs, ready.decisions, strict=True)
        ]
        held = [
            (change.id, seq) for seq, decision in zip(seqs, ready.decisions, strict=True) for change in decision.changes
        ]
        columns = _columns(("seqs", "ats", "ops", "actors", "reasons", "sessions", "ids"), told)
        work = [("move_decisions", columns)]
        if held:
            of_all = {"decisions": columns["seqs"], "ats": columns["ats"], "ops": columns["ops"]}
            work.append(("move_images", {**_columns(("ids", "seqs"), held), **of_all, "images": ready.images}))
        self._database.all_of(connection, work)

    def _scope(self, ledger: str) -> str:
        return self._scopes.get(ledger) or ledger_owner(ledger, None, None) or GLOBAL

    def take_events(self, events: Sequence[Event], vectors: Carried) -> None:
        """Events, where their ledgers end now, and the documents they are found by."""
        documents = [event_document(event, self._scope(event.session)) for event in events]
        rows = self._rows(documents, vectors)
        told = [(e.id, e.session, e.seq, e.key, dumped(to_fields(e))) for e in events]
        heads = {event.session: (event.session, event.seq, event.digest) for event in events}
        texts = ((row[0], row[-1]) for row in told)
        with _blaming(texts), self._slice() as connection, self._indexed_beside(connection, rows):
            self._database.all_of(
                connection,
                [
                    ("move_events", _columns(("ids", "sessions", "seqs", "keys", "records"), told)),
                    ("move_heads", _columns(("sessions", "seqs", "digests"), list(heads.values()))),
                ],
            )

    # -- remembering

    @contextlib.contextmanager
    def _slice(self) -> Iterator[Connection]:
        """One transaction, unless another process has gone on with this move meanwhile."""
        with self._database.transaction() as connection:
            self._check_way(connection)
            yield connection

    def _check_way(self, connection: Connection) -> None:
        if way_of(self._database.within(connection, statement("state_of_move"), {})) != self._way:
            raise StoreBusy(f"another process is moving a store to {self.place}; wait until it has ended")

    def _remember(self, connection: Connection) -> None:
        self._parts.facts.set(connection, moving=asdict(self._way))


def way_of(rows: Sequence[tuple[Any, ...]]) -> Way | None:
    """How far a move came, from the tenant's facts."""
    return Way(**json.loads(rows[0][0])) if rows else None


def check_free(store: PostgresStore, known: Way | None, source: str) -> None:
    """Refuse a tenant that holds anything but the beginning of this very move."""
    if known is not None and known.source != source:
        raise Refused(f"{store.place} was filled from {known.source}; move to another tenant with --to-tenant NAME")
    if known is not None:
        return
    run = store.parts.database.run
    held, (tasks, jobs) = run("holdings")[0], run("tasks_held")[0]
    if any((*held, tasks, jobs)):
        raise Refused(
            f"{store.place} is not empty ({held[0]} memories, {held[1]} decisions, {held[4]} events, {tasks} tasks); a store is "
            "moved to an empty tenant: name one with --to-tenant NAME"
        )


@contextlib.contextmanager
def _blaming(texts: Iterable[tuple[str, str | None]]) -> Iterator[None]:
    """Name the record that the server cannot hold: files can keep what it cannot."""
    try:
        yield
    except InvalidInput as error:
        odd = next((i for i, text in texts if text and (NUL in text or _is_broken(text))), None)
        if odd is None:
            raise
        raise InvalidInput(
            f"{odd}: {error}. Nothing of it can be moved as it is: `engram forget {odd} --purge` takes it out of the source"
        ) from None


def _is_broken(text: str) -> bool:
    return any("\ud800" <= char <= "\udfff" for char in text)


def _parts_of(items: Sequence[Item], size: int) -> Iterator[Sequence[Item]]:
    return (items[start : start + size] for start in range(0, len(items), size))


def _columns(names: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> dict[str, Any]:
    """Rows as the arrays that a statement unnests."""
    return dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))


def _session_columns(sessions: Sequence[Session]) -> dict[str, Any]:
    names = ("ids", "tasks", "scopes", "started", "ended", "summaries", "throughs", "styles", "bys")
    rows = [
        (s.id, s.task, json.dumps(list(s.scopes)), s.started, s.ended, s.summary, s.summary_through, s.summary_style,
         s.summary_by)
        for s in sessions
    ]  # fmt: skip
    return _columns(names, rows)
