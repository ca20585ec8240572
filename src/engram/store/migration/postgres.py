"""A tenant of a server as the source or the target of a migration.

A source reads pages by key, without locks or changes. A target writes each batch in one transaction, which also records the state.
"""

import contextlib
import json
import time
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Any

from engram.model.errors import EmbedderError, EngramError, InvalidInput, Refused, StoreBusy, StoreError
from engram.model.memory import Memory
from engram.model.records import Checkpoint, Event, Job, Session, TaskRun, Use
from engram.rules.scopes import GLOBAL
from engram.store.documents import Document, event_document, meaning_digest, memory_document
from engram.store.ledger import decode_event, ledger_owner, to_fields
from engram.store.migration.records import (
    ROWS_PER_BATCH,
    Counts,
    GateVerdict,
    JournalRecord,
    MemoryImage,
    MigrationState,
    StateSnapshot,
    VectorsById,
    batches,
    make_portable,
)
from engram.store.postgres.connections import from_binary
from engram.store.postgres.search import count_slice
from engram.store.postgres.store import PostgresStore
from engram.store.postgres.transaction import DocumentRow, chunks, columns, memories_work, to_json, write_documents
from engram.store.postgres.work import checkpoint_values, heads, job_columns, session_values, task_values
from engram.store.protocol import Progress
from engram.store.records import from_image
from engram.store.states import from_text, is_paused, to_text
from engram.store.tasks import from_record_fields

if TYPE_CHECKING:
    from engram.embedding.vectors import Vectors

SETTLE_SECONDS = 10.0
"""How long to wait for transactions that were open when the journal's end was read."""
_POLL = 0.02
_TABLES = ("documents", "postings", "memory_vectors")
"""Vacuumed at the end: index-only scans need their visibility maps."""
NUL = r"\u0000"
DOCUMENTS_PER_COUNT = 20_000
"""Documents whose terms are counted per transaction."""


class PostgresSource:
    """Reads a tenant. Its store is opened without an embedder, so that it does not claim one."""

    def __init__(self, store: PostgresStore) -> None:
        self._store, self._run = store, store.context.database.run
        self.notes: list[str] = []
        self.positions: array[int] = array("q")
        self._journal_end = self._usage_end = 0

    @property
    def identity(self) -> str:
        """Server, database and tenant."""
        return self._store.place

    @property
    def place(self) -> str:
        """Server, database and tenant."""
        return self._store.place

    @property
    def embedder(self) -> str:
        """The embedder that made the current vectors."""
        return str(self._store.context.settings.get("embedder") or "")

    # -- where it ends

    def settle(self) -> None:
        """Find where the logs end, and wait for open transactions: they may have taken lower numbers."""
        ((self._journal_end, horizon),) = self._run("last_decision")
        deadline = time.monotonic() + SETTLE_SECONDS
        while not self._run("all_ended", horizon=horizon)[0][0] and time.monotonic() < deadline:
            time.sleep(_POLL)
        self._usage_end = self._last_position()
        self.positions = array("q", (n for (n,) in self._run("positions_behind", upto=self._usage_end)))

    def _last_position(self) -> int:
        database = self._store.context.database
        with database.transaction(durable=False):
            if not database.is_replica():
                database.run("await_uses")
            ((position,),) = database.run("last_position")
        return int(position)

    def check(self) -> None:
        """Every tenant can be migrated as it is."""

    def faults(self) -> list[str]:
        """Reports missing documents: a record without one cannot be found."""
        (documents,), (records,) = self._run("document_count")[0], self._run("record_count")[0]
        return [f"documents: only {documents} of {records} records can be found"] if documents != records else []

    def mark(self) -> tuple[Any, ...]:
        """Where the logs end, and digests of the rest."""
        return tuple(self._run("mark_of_all")[0])

    # -- contents

    def counts(self) -> Counts:
        """How much the tenant contains."""
        return Counts(*self._run("record_counts")[0])

    def snapshot(self) -> StateSnapshot:
        """Everything that is sent as a whole."""
        return StateSnapshot(
            sessions=self._store.list_records(Session),
            verdicts=[GateVerdict(*row) for row in self._run("all_verdicts")],
            tombstones=frozenset(i for (i,) in self._run("all_tombstones")),
            numbers=dict(self._run("all_numbers")),
            paused=is_paused(self._store),
            tasks=self._store.list_records(TaskRun),
            checkpoints=[
                from_record_fields(Checkpoint, json.loads(record)) for (record,) in self._run("all_checkpoints")
            ],
            jobs=self._store.list_records(Job),
            states={name: from_text(value) for name, value in self._run("all_states")},
        )

    def uses(self, after: int = 0) -> Iterator[Use]:
        """Uses after a position, in order."""
        while rows := self._run("uses_behind", after=after, upto=self._usage_end, limit=ROWS_PER_BATCH):
            for position, kind, signal, session, at, ids in rows:
                yield Use(kind, tuple(ids), at, session, signal, position)
            after = rows[-1][0]

    def journal(self, cursor: str = "") -> Iterator[JournalRecord]:
        """Decisions after a cursor, in order."""
        for rows in batches(self._headings(int(cursor or 0)), lambda row: (row[6], row[7])):
            found = self._run("images_of", seqs=[row[0] for row in rows])
            images = {
                seq: tuple(self._image(*row) for _, *row in group)
                for seq, group in groupby(found, key=lambda row: row[0])
            }
            for seq, at, op, actor, reason, session, _, size in rows:
                yield JournalRecord(at, op, actor, reason, session, images.get(seq, ()), str(seq), size)

    def _headings(self, after: int) -> Iterator[tuple[Any, ...]]:
        while rows := self._run("decisions_behind", after=after, upto=self._journal_end, limit=ROWS_PER_BATCH):
            yield from rows
            after = rows[-1][0]

    def _image(self, memory_id: str, after: str | None, stored: str | None) -> MemoryImage:
        """The image for the stream.

        `stored` is empty if the memory equals its image, None if this is not its latest image.
        """
        image = make_portable(json.loads(after), self.positions) if after is not None else None
        if stored:
            return MemoryImage(memory_id, image, make_portable(json.loads(stored), self.positions))
        return MemoryImage(memory_id, image, image if stored is not None else None)

    def events(self, known: Mapping[str, int]) -> Iterator[Event]:
        """Events after the known number of each ledger."""
        ranges = (
            (session, after, min(head.seq, after + ROWS_PER_BATCH))
            for session, head in heads(self._store.context)
            for after in range(known.get(session, 0), head.seq, ROWS_PER_BATCH)
        )
        for some in batches(ranges, lambda wanted: (wanted[2] - wanted[1], 0)):
            names, after, upto = (list(column) for column in zip(*some, strict=True))
            for (record,) in self._run("events_between", sessions=names, after=after, upto=upto):
                yield decode_event(record)

    def vectors(self, ids: Sequence[str]) -> VectorsById:
        """Vectors of the current generation."""
        rows = self._run("vectors_of", ids=list(ids), generation=self._store.context.settings.generation)
        return {i: (bytes(meaning), from_binary(vector)) for i, meaning, vector in rows}


class PostgresTarget:
    """Fills a tenant."""

    def __init__(self, store: PostgresStore) -> None:
        self._store, self._context, self._database = store, store.context, store.context.database
        self.notes = store.context.warnings
        self._state = MigrationState("")
        self._scopes: dict[str, str] = {}
        self._embedder_failed = False

    @property
    def embedder(self) -> str:
        """The embedder whose vectors it can use."""
        return (
            self._context.embedder.name
            if self._context.embedder is not None and self._context.settings.can_embed()
            else ""
        )

    # -- beginning and ending

    def begin(self, source: str) -> MigrationState:
        """Begin in an empty tenant, or continue a migration from the same source."""
        with self._database.transaction():
            self._database.run("lock_facts")
            self._state = self.check(source) or MigrationState(source)
            if self._state.finished and self._state.left == self._mark():
                self._state.finished = False
            self._save_state()
        return self._state

    def check(self, source: str) -> MigrationState | None:
        """The state of this migration; None for a new one. Raises `Refused` if the tenant is not empty."""
        place, known = self._store.place, _state_of(self._database.run("migration_state"))
        if known is not None:
            if known.source != source:
                raise Refused(f"{place} was filled from {known.source}; name another tenant with --to-tenant NAME")
            return known
        counts, (tasks, *others) = self._database.run("record_counts")[0], self._database.run("task_counts")[0]
        if any((*counts, tasks, *others)):
            raise Refused(
                f"{place} is not empty ({counts[0]} memories, {counts[1]} decisions, {counts[4]} events, {tasks} tasks); "
                "name an empty tenant with --to-tenant NAME"
            )
        return None

    def _mark(self) -> str:
        return json.dumps(self._database.run("mark_of_all")[0], default=str)

    def finish(self, progress: Progress) -> None:
        """Update the planner's statistics, count terms, embed documents without a vector."""
        self._analyze()
        self._count_terms(progress)
        if self._embedder_failed:
            with contextlib.suppress(StoreError):
                self._store.sync()
        with self._batch():
            self._state.finished, self._state.left = True, self._mark()
            self._save_state()

    def _count_terms(self, progress: Progress) -> None:
        """Update the term statistics, in large steps."""
        counted = 0
        self._database.run("begin_statistics")
        while True:
            with self._database.transaction(durable=False):
                fresh = count_slice(self._database, DOCUMENTS_PER_COUNT)
            if not fresh:
                return
            counted += fresh
            progress("words", counted, counted)

    def _analyze(self) -> None:
        """Update the planner's statistics and the visibility maps, as far as this role may."""
        with contextlib.suppress(EngramError):
            self._database.run("analyze")
            self._database.vacuum(_TABLES)

    # -- received records

    def heads(self) -> Mapping[str, int]:
        """The number of each ledger's last event."""
        return {session: head.seq for session, head in heads(self._context)}

    def positions(self) -> "array[int]":
        """The positions of all uses."""
        rows = self._database.run("positions_behind", upto=2**63 - 1)
        return array("q", (position for (position,) in rows))

    # -- loading

    def load_snapshot(self, snapshot: StateSnapshot) -> None:
        """Replace sessions, tasks, small states, verdicts, tombstones, numbers and the pause."""
        self._scopes = {session.id: session.scopes[0] for session in snapshot.sessions if session.scopes}
        self._scopes |= {task.id: task.scope for task in snapshot.tasks}
        work: list[tuple[str, dict[str, Any]]] = [("drop_verdicts", {}), ("drop_sessions", {})]
        work += [("put_verdict", asdict(verdict)) for verdict in snapshot.verdicts]
        work += [("save_session", session_values(session)) for session in snapshot.sessions]
        work += [("put_tombstones", {"ids": sorted(snapshot.tombstones)})] if snapshot.tombstones else []
        if snapshot.numbers:
            work.append(("raise_numbers", {"days": list(snapshot.numbers), "lasts": list(snapshot.numbers.values())}))
        work += [("put_task", task_values(task)) for task in snapshot.tasks]
        work += [("put_checkpoint", checkpoint_values(checkpoint)) for checkpoint in snapshot.checkpoints]
        work += [("drop_jobs", {}), *([("put_jobs", job_columns(snapshot.jobs))] if snapshot.jobs else [])]
        work += [("drop_states", {})]
        work += [("put_state", {"name": name, "value": to_text(value)}) for name, value in snapshot.states.items()]
        with self._batch():
            self._database.run_all(work)
            self._context.settings.set(paused=snapshot.paused or None)

    def load_uses(self, uses: Sequence[Use]) -> None:
        """Append uses, at the server's next positions."""
        with self._batch():
            taken = self._database.run("next_uses", count=len(uses))
            rows = [
                (memory_id, position, use.kind, use.signal, use.session, use.at)
                for use, (position,) in zip(uses, sorted(taken), strict=True)
                for memory_id in dict.fromkeys(use.ids)
            ]
            names = ("ids", "positions", "kinds", "signals", "sessions", "ats")
            self._database.run("load_uses", **columns(names, rows))
            self._state.uses = uses[-1].position
            self._save_state()

    def journal_writer(self, records: Sequence[JournalRecord], vectors: VectorsById) -> Callable[[], None]:
        """Prepare records, documents and vectors; the result writes them."""
        images: list[str | None] = []
        memories: list[tuple[Memory, str]] = []
        for one in (one for record in records for one in record.images):
            images.append(to_json(one.after) if one.after is not None else None)
            if one.stored is not None:
                memories.append((from_image(one.stored), to_json(one.stored)))
        rows = self._rows([memory_document(memory) for memory, _ in memories], vectors)
        return partial(self._load_journal, records, images, memories, rows)

    def _rows(self, documents: Sequence[Document], migrated: VectorsById) -> list[DocumentRow]:
        """Documents with their vectors: the migrated one if it was made of the same text, else a new one."""
        found: dict[str, Vectors] = {}
        for document in documents:
            known = migrated.get(document.id)
            if known is not None and known[0] == meaning_digest(document.meaning):
                found[document.id] = known[1]
        missing = [] if self._embedder_failed else [document for document in documents if document.id not in found]
        try:
            made = self._context.embed([document.meaning for document in missing]) if missing else None
        except EmbedderError as error:
            self._context.warn(f"some documents can only be found by keyword until they are embedded: {error}")
            self._embedder_failed, made = True, None
        if made is not None:
            found |= {document.id: vector for document, vector in zip(missing, made, strict=True)}
        return [DocumentRow(document, found.get(document.id)) for document in documents]

    def _load_journal(
        self,
        records: Sequence[JournalRecord],
        images: list[str | None],
        memories: list[tuple[Memory, str]],
        rows: list[DocumentRow],
    ) -> None:
        """Write decisions, and the memories as they are now."""
        texts = zip((one.id for record in records for one in record.images), images, strict=True)
        with _naming_record(texts), self._batch():
            self._put_journal(records, images)
            ids = [memory.id for memory, _ in memories]
            known = self._database.run("memories_among", ids=ids)
            fresh = set(ids) - {i for (i,) in known}
            with self._database.pipeline():
                for some in chunks(memories):
                    self._database.send(memories_work(some, fresh))
            write_documents(self._database, rows, self._context.settings.generation)
            self._state.journal = records[-1].cursor
            self._save_state()

    def _put_journal(self, records: Sequence[JournalRecord], images: list[str | None]) -> None:
        taken = self._database.run("next_decisions", count=len(records))
        numbered = list(zip(sorted(seq for (seq,) in taken), records, strict=True))
        rows = [
            (seq, r.at, r.op, r.actor, r.reason, r.session, json.dumps([one.id for one in r.images]))
            for seq, r in numbered
        ]
        decisions = columns(("seqs", "ats", "ops", "actors", "reasons", "sessions", "ids"), rows)
        work = [("load_decisions", decisions)]
        if images:
            entries = [(one.id, seq, r.at, r.op) for seq, r in numbered for one in r.images]
            work.append(("load_images", {**columns(("ids", "seqs", "ats", "ops"), entries), "images": images}))
        self._database.run_all(work)

    def _scope(self, ledger: str) -> str:
        return self._scopes.get(ledger) or ledger_owner(ledger, None, None) or GLOBAL

    def load_events(self, batch: Sequence[Event], vectors: VectorsById) -> None:
        """Write events, the heads of their ledgers, and their documents."""
        documents = [event_document(event, self._scope(event.session)) for event in batch]
        rows = self._rows(documents, vectors)
        records = [(e.id, e.session, e.seq, e.key, to_json(to_fields(e))) for e in batch]
        ends = {event.session: (event.session, event.seq, event.digest) for event in batch}
        texts = ((row[0], row[-1]) for row in records)
        with _naming_record(texts), self._batch():
            self._database.run_all(
                [
                    ("load_events", columns(("ids", "sessions", "seqs", "keys", "records"), records)),
                    ("load_heads", columns(("sessions", "seqs", "digests"), list(ends.values()))),
                ]
            )
            write_documents(self._database, rows, self._context.settings.generation)

    # -- state

    @contextlib.contextmanager
    def _batch(self) -> Iterator[None]:
        """One transaction. Raises `StoreBusy` if another process has continued this migration meanwhile."""
        with self._database.transaction():
            if _state_of(self._database.run("lock_migration_state")) != self._state:
                raise StoreBusy(
                    f"another process is migrating a store to {self._store.place}; wait until it has finished"
                )
            yield

    def _save_state(self) -> None:
        self._context.settings.set(moving=asdict(self._state))


def _state_of(rows: Sequence[tuple[Any, ...]]) -> MigrationState | None:
    return MigrationState(**json.loads(rows[0][0])) if rows else None


@contextlib.contextmanager
def _naming_record(texts: Iterable[tuple[str, str | None]]) -> Iterator[None]:
    """Add to an error the record that files can store but the server cannot."""
    try:
        yield
    except InvalidInput as error:
        odd = next((i for i, text in texts if text and (NUL in text or _is_broken(text))), None)
        if odd is None:
            raise
        raise InvalidInput(
            f"{odd}: {error}. It cannot be migrated as it is; `engram forget {odd} --purge` removes it from the source"
        ) from None


def _is_broken(text: str) -> bool:
    return any("\ud800" <= char <= "\udfff" for char in text)
