"""A tenant of a server as the source of a move: read in slices by key, nothing locked and no row changed."""

import json
import time
from array import array
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from engram.model.event import Event
from engram.model.task import Checkpoint
from engram.model.usage import Use
from engram.store.comparing import audited, chain_of, fingerprint, next_image
from engram.store.ledgers import decode_event
from engram.store.moving import SLICE, Carried, Chain, Change, Counts, Decision, Small, Verdict, slices
from engram.store.postgres import events
from engram.store.postgres.sql import statement
from engram.store.postgres.store import PostgresStore
from engram.store.postgres.vectors import from_binary
from engram.store.tasks import from_fields

PATIENCE = 10.0
"""How long to wait for the transactions that were open when the journal's end was read."""
_LOOK = 0.02


class PostgresSource:
    """Reads a tenant. The store it is given is opened without an embedder, so that it claims none."""

    def __init__(self, store: PostgresStore) -> None:
        self._store, self._database = store, store.parts.database
        self.notes: list[str] = []
        self._upto = self._used = 0
        self._positions: array[int] = array("q")

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
        """Who made the vectors in force."""
        return str(self._store.parts.facts.get("embedder") or "")

    # -- how far it goes

    def settle(self) -> None:
        """Numbers are taken before a decision commits: one below the last may still appear while its transaction runs."""
        ((self._upto, horizon),) = self._run("last_decision")
        deadline = time.monotonic() + PATIENCE
        while not self._run("all_ended", horizon=horizon)[0][0] and time.monotonic() < deadline:
            time.sleep(_LOOK)
        self._used = self._last_position()
        self._positions = array("q", (position for (position,) in self._run("positions_behind", upto=self._used)))

    def _last_position(self) -> int:
        with self._database.transaction(durable=False) as connection:
            if not self._database.is_replica(connection):
                self._database.within(connection, statement("await_uses"), {})
            ((position,),) = self._database.within(connection, statement("last_position"), {})
        return int(position)

    def check(self) -> None:
        """Every tenant can be moved as it is."""

    def faults(self) -> list[str]:
        """Documents that are missing: what has none is never found."""
        (documents,), (records,) = self._run("document_count")[0], self._run("record_count")[0]
        return [f"documents: {documents} of {records} records can be found"] if documents != records else []

    def mark(self) -> tuple[Any, ...]:
        """Where the logs end, and how many of the rest there are."""
        return tuple(self._run("mark_of_all")[0])

    # -- what it holds

    def counts(self) -> Counts:
        """How much there is."""
        return Counts(*self._run("holdings")[0])

    def positions(self) -> "array[int]":
        """The positions of all uses."""
        return self._positions

    def uses(self, after: int = -1) -> Iterator[list[Use]]:
        """Uses behind a position, in order."""
        while rows := self._run("uses_behind", after=after, upto=self._used, limit=SLICE):
            yield [
                Use(kind, tuple(ids), at, session, signal, position)
                for position, kind, signal, session, at, ids in rows
            ]
            after = rows[-1][0]

    def decisions(self, cursor: str = "") -> Iterator[list[Decision]]:
        """Decisions behind a cursor, in order."""
        for rows in slices(self._headings(int(cursor or 0))):
            seqs = [row[0] for row in rows]
            images = {
                seq: tuple(Change(i, json.loads(after) if after is not None else None, current)
                           for _, i, after, current in group)
                for seq, group in groupby(self._run("images_of", seqs=seqs), key=lambda row: row[0])
            }  # fmt: skip
            yield [
                Decision(at, op, actor, reason, session, images.get(seq, ()), str(seq))
                for seq, at, op, actor, reason, session, *_ in rows
            ]

    def _headings(self, after: int) -> Iterator[tuple[tuple[Any, ...], int, int]]:
        while rows := self._run("decisions_behind", after=after, upto=self._upto, limit=SLICE):
            yield from ((row, row[6], row[7]) for row in rows)
            after = rows[-1][0]

    def vectors(self, ids: Sequence[str]) -> Carried:
        """Vectors of the generation in force."""
        rows = self._run("vectors_of", ids=list(ids), generation=self._store.parts.facts.generation)
        return {i: (bytes(meaning), from_binary(vector)) for i, meaning, vector in rows}

    def heads(self) -> Mapping[str, int]:
        """The number of each session's last event."""
        return {session: seq for session, seq, _ in self._heads()}

    def _heads(self) -> Iterator[tuple[str, int, str]]:
        after = ""
        while rows := self._run("ledgers", after=after):
            yield from ((session, seq, digest) for session, seq, digest in rows)
            after = rows[-1][0]

    def events(self, known: Mapping[str, int]) -> Iterator[list[Event]]:
        """Events behind what is known of each session."""
        wanted = (
            ((session, after, min(seq, after + SLICE)), min(seq - start, SLICE), 0)
            for session, seq in self.heads().items()
            for start in [known.get(session, 0)]
            for after in range(start, seq, SLICE)
        )
        for ranges in slices(wanted):
            names, after, upto = (list(column) for column in zip(*ranges, strict=True))
            rows = self._run("events_between", sessions=names, after=after, upto=upto)
            yield [decode_event(record) for (record,) in rows]

    def small(self) -> Small:
        """What is so little that it travels whole."""
        return Small(
            sessions=self._store.sessions(),
            verdicts=[Verdict(*row) for row in self._run("all_verdicts")],
            tombstones=frozenset(i for (i,) in self._run("all_tombstones")),
            numbers=dict(self._run("all_numbers")),
            paused=self._store.paused,
            tasks=self._store.tasks(),
            checkpoints=[from_fields(Checkpoint, json.loads(record)) for (record,) in self._run("all_checkpoints")],
            jobs=self._store.jobs(),
        )

    # -- for comparing

    def records(self) -> Iterator[tuple[str, bytes]]:
        """Every memory's fingerprint, by id."""
        after = ""
        while rows := self._run("memory_slice", after=after, limit=SLICE):
            yield from ((i, fingerprint(json.loads(record), self._positions)) for i, record in rows)
            after = rows[-1][0]

    def histories(self) -> Iterator[tuple[str, bytes]]:
        """Every id's images, by id."""
        for memory_id, images in groupby(self._images(), key=lambda row: row[0]):
            digest = b""
            for _, _, at, op, after in images:
                made = fingerprint(json.loads(after), self._positions) if after is not None else None
                digest = next_image(digest, op, at, made)
            yield memory_id, digest

    def _images(self) -> Iterator[tuple[Any, ...]]:
        behind = ("", 0)
        while rows := self._run("images_behind", id=behind[0], seq=behind[1], limit=SLICE):
            yield from rows
            behind = rows[-1][0], rows[-1][1]

    def audit(self) -> Iterator[bytes]:
        """A digest of each decision, in order."""
        after = 0
        while rows := self._run("audit_behind", after=after, limit=SLICE):
            yield from (audited(*row[1:]) for row in rows)
            after = rows[-1][0]

    def chains(self) -> Mapping[str, Chain]:
        """Every session's ledger."""
        return {
            session: chain_of(events.of_ledger(self._store.parts, session), session)
            for session, seq, _ in self._heads()
            if seq
        }

    def _run(self, name: str, /, **values: Any) -> list[tuple[Any, ...]]:
        return self._database.run(name, **values)
