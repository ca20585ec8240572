"""A tenant of a server as the source of a migration: reads pages by key, without locks or changes."""

import json
import time
from array import array
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from engram.model.event import Event
from engram.model.task import Checkpoint
from engram.model.usage import Use
from engram.store.ledger import decode_event
from engram.store.migration.records import GateVerdict, JournalRecord, MemoryImage, StateSnapshot, portable
from engram.store.migration.stream import BATCH, Counts, VectorsById, batches
from engram.store.postgres import ledger
from engram.store.postgres.adapters import from_binary
from engram.store.postgres.sql import statement
from engram.store.postgres.store import PostgresStore
from engram.store.tasks import from_fields

SETTLE_SECONDS = 10.0
"""How long to wait for transactions that were open when the journal's end was read."""
_POLL = 0.02


class PostgresSource:
    """Reads a tenant. Its store is opened without an embedder, so that it does not claim one."""

    def __init__(self, store: PostgresStore) -> None:
        self._store, self._run = store, store.parts.database.run
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
        return str(self._store.parts.settings.get("embedder") or "")

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
        database = self._store.parts.database
        with database.transaction(durable=False) as connection:
            if not database.is_replica(connection):
                database.within(connection, statement("await_uses"), {})
            ((position,),) = database.within(connection, statement("last_position"), {})
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
            sessions=self._store.sessions(),
            verdicts=[GateVerdict(*row) for row in self._run("all_verdicts")],
            tombstones=frozenset(i for (i,) in self._run("all_tombstones")),
            numbers=dict(self._run("all_numbers")),
            paused=self._store.paused,
            tasks=self._store.tasks(),
            checkpoints=[from_fields(Checkpoint, json.loads(record)) for (record,) in self._run("all_checkpoints")],
            jobs=self._store.jobs(),
        )

    def uses(self, after: int = 0) -> Iterator[Use]:
        """Uses after a position, in order."""
        while rows := self._run("uses_behind", after=after, upto=self._usage_end, limit=BATCH):
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
        while rows := self._run("decisions_behind", after=after, upto=self._journal_end, limit=BATCH):
            yield from rows
            after = rows[-1][0]

    def _image(self, memory_id: str, after: str | None, stored: str | None) -> MemoryImage:
        """`stored` is empty if the memory equals its image, None if this is not its latest image."""
        image = portable(json.loads(after), self.positions) if after is not None else None
        if stored:
            return MemoryImage(memory_id, image, portable(json.loads(stored), self.positions))
        return MemoryImage(memory_id, image, image if stored is not None else None)

    def events(self, known: Mapping[str, int]) -> Iterator[Event]:
        """Events after the known number of each ledger."""
        ranges = (
            (session, after, min(head.seq, after + BATCH))
            for session, head in ledger.heads(self._store.parts)
            for after in range(known.get(session, 0), head.seq, BATCH)
        )
        for some in batches(ranges, lambda wanted: (wanted[2] - wanted[1], 0)):
            names, after, upto = (list(column) for column in zip(*some, strict=True))
            for (record,) in self._run("events_between", sessions=names, after=after, upto=upto):
                yield decode_event(record)

    def vectors(self, ids: Sequence[str]) -> VectorsById:
        """Vectors of the current generation."""
        rows = self._run("vectors_of", ids=list(ids), generation=self._store.parts.settings.generation)
        return {i: (bytes(meaning), from_binary(vector)) for i, meaning, vector in rows}
