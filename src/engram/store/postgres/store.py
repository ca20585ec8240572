"""The Postgres backend: `protocol.Store` over a pool of connections."""

import contextlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engram.model.errors import EngramError, InvalidInput, StoreUnreachable
from engram.model.memory import Memory
from engram.rules.scopes import shows
from engram.store.ledger import decode_event
from engram.store.lineage import versions_among
from engram.store.postgres import search
from engram.store.postgres.context import Numbers, TenantContext
from engram.store.postgres.database import Database
from engram.store.postgres.filters import where
from engram.store.postgres.ledger import PostgresLedger
from engram.store.postgres.sql import statement
from engram.store.postgres.state import StoreState
from engram.store.postgres.statistics import Statistics
from engram.store.postgres.task_store import PostgresTaskStore
from engram.store.postgres.transaction import DecisionResult, PostgresTransaction, day_of
from engram.store.postgres.usage import PostgresUsage
from engram.store.protocol import (
    COMMON,
    Candidates,
    Check,
    DocumentPosition,
    Filters,
    Image,
    IndexedPassage,
    PassageRange,
    Progress,
    Pruned,
    Purged,
    Query,
    Step,
    StoredRecord,
    SyncReport,
)
from engram.store.records import decode_record
from engram.store.screen import Screen, Unscreened
from engram.store.sources import random_hex, utc_now
from engram.store.traversal import PLAIN, Hops

if TYPE_CHECKING:
    from engram.embedding.protocol import Embedder, Vectors


class PostgresStore(PostgresTaskStore, PostgresLedger, PostgresUsage):
    """Implements `protocol.Store` on a server. Safe for threads; every call is a transaction of its own."""

    screen: Screen = Unscreened()

    def __init__(
        self,
        url: str,
        tenant: str,
        embedder: "Embedder | None" = None,
        *,
        clock: Callable[[], datetime] = utc_now,
        token: Callable[[int], str] = random_hex,
    ) -> None:
        database = Database(url, tenant)
        self.parts = TenantContext(
            database=database,
            facts=StoreState(database, embedder.name if embedder else "", embedder.dim if embedder else 0),
            numbers=Numbers(database),
            embedder=embedder,
            clock=clock,
            token=token,
        )
        self._statistics = Statistics(database)

    def close(self) -> None:
        """Let go of every connection."""
        self.parts.database.close()

    @property
    def place(self) -> str:
        """Where the store lives: server, database and tenant."""
        return f"{self.parts.database.where} (tenant {self.parts.database.tenant})"

    # -- reads

    def get(self, ref: str, scopes: Collection[str] | None = None) -> Memory | None:
        """A memory by id, name or alias."""
        rows = self._run("by_id", id=ref)
        if rows:
            memory = decode_record(rows[0][0])
            return memory if shows(scopes, memory.scope) else None
        named = [row for row in self._run("by_name", name=ref) if shows(scopes, row[3])]
        live = [row for row in named if row[1] in ("active", "dormant", "candidate")] or named
        if len(live) > 1:
            ids = ", ".join(sorted(row[0] for row in live))
            raise InvalidInput(f"{ref!r} names several memories ({ids}); use an id")
        return decode_record(live[0][2]) if live else None

    def get_many(self, numbers: Sequence[int]) -> list[StoredRecord]:
        """Records by document number, in that order."""
        rows = {n: (kind, record) for n, kind, record in self._run("records", numbers=list(numbers))}
        return [
            StoredRecord(n, kind, decode_event(record) if kind == "event" else decode_record(record))
            for n in numbers
            if n in rows
            for kind, record in [rows[n]]
            if record is not None
        ]

    def exact(self, content_hash: str, scope: str) -> Memory | None:
        """The live memory with this content in this scope."""
        rows = self._run("exact", hashes=[content_hash], scopes=[scope]) if content_hash else []
        return decode_record(rows[0][2]) if rows else None

    def embed(self, texts: Sequence[str]) -> "Vectors | None":
        """Vectors of texts in the store's space, or None."""
        return self.parts.embed(texts)

    def embedder_name(self) -> str:
        """The model this process embeds with."""
        return self.parts.embedder.name if self.parts.embedder else ""

    def owned(self, memory_ids: Iterable[str]) -> list[str]:
        """All of them: a team's files are not part of this store."""
        return list(memory_ids)

    def trusted_here(self, directory: Path) -> frozenset[str]:
        """Nothing: trust in a repository's files is kept with the files."""
        return frozenset()

    def named(self, name: str, scope: str) -> str:
        """The id of the memory that goes by this name in a scope, or ""."""
        rows = self._run("named", name=name, scope=scope)
        return str(rows[0][0]) if rows else ""

    def file_of(self, memory_id: str) -> str:
        """No memory is a file here."""
        return ""

    def mark(self, scope: str) -> int:
        """The number of a scope's last change."""
        rows = self._run("mark", scope=scope)
        return int(rows[0][0]) if rows else 0

    def owner_of(self, document_id: str) -> str | None:
        """The scope a document belongs to."""
        rows = self._run("owner_of", id=document_id)
        return str(rows[0][0]) if rows else None

    def listing(self, filters: Filters, limit: int | None = None, offset: int = 0) -> list[Memory]:
        """Memories, newest first."""
        condition, values = where(filters)
        text = statement("listed").format(condition=condition)
        rows = self.parts.database.query(text, {**values, "limit": limit, "offset": offset})
        return [decode_record(record) for (record,) in rows]

    def count(self, filters: Filters) -> int:
        """How many documents pass the filters."""
        condition, values = where(filters)
        return int(self.parts.database.query(statement("counted").format(condition=condition), values)[0][0])

    def candidates(self, query: Query, filters: Filters) -> Candidates:
        """What each retriever finds."""
        return search.candidates(self.parts, self._statistics, query, filters)

    def document_positions(self, numbers: Sequence[int]) -> dict[int, DocumentPosition]:
        """Where each document stands."""
        return {n: DocumentPosition(*place) for n, *place in self._run("stands", numbers=list(numbers))}

    def passages(
        self, numbers: Sequence[int], stretches: Sequence[PassageRange], filters: Filters
    ) -> "tuple[list[IndexedPassage], Vectors | None]":
        """These documents, then every document of these stretches; with their vectors."""
        return search.passages(self.parts, numbers, stretches, filters)

    def frequencies(self, terms: Sequence[str]) -> Mapping[str, int]:
        """In how many documents each term occurs."""
        return self._statistics.frequencies(terms)

    def known_terms(self, terms: Sequence[str], scopes: Collection[str]) -> frozenset[str]:
        """Those of the terms that a document of these scopes holds."""
        return frozenset(term for (term,) in self._run("said", terms=list(terms), scopes=list(scopes), common=COMMON))

    def known_at(self, moment: datetime) -> dict[str, Memory | None]:
        """What Engram held then of every memory it has decided about since."""
        rows = self._run("known_at", moment=moment)
        return {memory_id: decode_record(after) if after is not None else None for memory_id, after in rows}

    def numbers(self, memory_ids: Sequence[str]) -> dict[str, int]:
        """The document numbers of memories."""
        return dict(self._run("numbers", ids=list(memory_ids)))

    def vectors(self, numbers: Sequence[int]) -> "Vectors | None":
        """Vectors of documents."""
        return search.vectors_of(self.parts, numbers)

    def history(self, memory_id: str) -> list[Image]:
        """Everything that was decided about a memory."""
        return [
            Image(seq, at, op, actor, reason, decode_record(after) if after is not None else None, tuple(ids))
            for seq, at, op, actor, reason, after, ids in self._run("history", id=memory_id)
        ]

    def heads(self, conflict_key: str, scope: str) -> list[Memory]:
        """The memories in force that hold a conflict key in a scope."""
        rows = self._run("heads", keys=[conflict_key], scopes=[scope])
        return [decode_record(record) for *_, record in rows]

    def lineage(self, lineage_id: str) -> list[Memory]:
        """Every version of a fact, by revision."""
        return versions_among((decode_record(r) for _, r in self._run("lineage", lineage=lineage_id)), lineage_id)

    def links_to(self, memory_ids: Iterable[str]) -> list[tuple[str, str, str, float]]:
        """Links that point at these memories."""
        rows = self._run("links_to", ids=list(memory_ids))
        return [(source, target, kind, strength) for source, target, kind, strength in rows]

    def walk(
        self,
        seeds: Sequence[str],
        *,
        depth: int,
        direction: str,
        types: tuple[str, ...] | None,
        min_weight: float,
        per_seed: int,
        filters: Filters = PLAIN,
    ) -> list[Step]:
        """What is linked to these memories."""
        hops = Hops(direction, types, min_weight, filters, self.parts.clock())
        return search.walk(self.parts.database, seeds, depth, hops, per_seed)

    @contextlib.contextmanager
    def reading(self) -> Iterator[None]:
        """The reads within share one transaction of this thread."""
        self._statistics.totals()
        with self.parts.database.reading():
            yield

    # -- decisions

    @contextlib.contextmanager
    def deciding(
        self,
        op: str,
        *,
        actor: str,
        reason: str = "",
        session: str = "",
        scopes: Sequence[str] = (),
        about: Iterable[str] = (),
        ids_for: Iterable[datetime] = (),
    ) -> Iterator[PostgresTransaction]:
        """One decision; its ids are taken first, then its scopes and memories are locked, in order."""
        lacking = False
        reason = self.screen.decision(actor, reason, session)
        with self._reserved(ids_for) as reserved, self.parts.database.transaction() as connection:
            transaction = PostgresTransaction(
                self.parts, connection, DecisionResult(op, actor, reason, session), reserved
            )
            transaction.lock_scopes(scopes)
            transaction.lock_memories(about)
            yield transaction
            self.screen.memories(transaction.proposed, transaction.stored)
            transaction.commit()
            lacking = transaction.lacks_vectors
        self._statistics.written(transaction.written)
        if lacking:
            self._fill_vectors()

    @contextlib.contextmanager
    def _reserved(self, moments: Iterable[datetime]) -> Iterator[dict[str, range]]:
        """Numbers for ids of these moments' days; what the block leaves of them is given back."""
        days = Counter(map(day_of, moments))
        reserved = {day: self.parts.numbers.take(day, count) for day, count in sorted(days.items())}
        try:
            yield reserved
        except StoreUnreachable:
            raise  # they are a gap then
        except BaseException:
            self._give_back(reserved)
            raise
        self._give_back(reserved)

    def _give_back(self, reserved: Mapping[str, range]) -> None:
        for day, unused in reserved.items():
            with contextlib.suppress(EngramError):  # they are a gap then, and what was decided is decided
                self.parts.numbers.give_back(day, unused)

    def _fill_vectors(self) -> None:
        """Embed what was written without a vector, outside of any transaction."""
        from engram.store.postgres.vector_generations import fill

        try:
            fill(self.parts)
        except EngramError as error:
            # The decision stands, whatever becomes of this.
            self.parts.warn(f"some documents are found by keyword only for now: {error}")

    # -- upkeep

    @property
    def warnings(self) -> list[str]:
        """What the owner should hear of."""
        return self.parts.warnings

    @property
    def paused(self) -> bool:
        """Whether the owner has paused learning and injection."""
        self.parts.facts.refresh()
        return bool(self.parts.facts.get("paused", False))

    def pause(self, paused: bool) -> None:
        """Stop learning and injecting, for every process of this tenant, or go on."""
        with self.parts.database.transaction() as connection:
            self.parts.facts.set(connection, paused=paused or None)

    def new_token(self, size: int) -> str:
        """Random hex digits."""
        return self.parts.token(size)

    def sync(self, *, seconds: float | None = None) -> SyncReport:
        """Nothing is changed outside of Engram here; what lacks a vector gets one."""
        self._fill_vectors()
        return SyncReport()

    def rebuild(self, progress: Progress = lambda *_: None) -> SyncReport:
        """Make documents, words and vectors anew from the records, beside whoever reads."""
        from engram.store.postgres.rebuild import rebuild

        rebuild(self.parts, progress)
        self._statistics = Statistics(self.parts.database)
        return SyncReport()

    def reembed(self, progress: Progress = lambda *_: None) -> int:
        """Make all vectors anew with this process's embedder, beside the old ones until complete."""
        from engram.store.postgres.vector_generations import reembed

        return reembed(self.parts, progress)

    def build_nearest(self, progress: Progress = lambda *_: None) -> str:
        """Make this tenant's HNSW index; for the owner of the tables, and worth it for a large tenant."""
        from engram.store.postgres import neighbours

        return neighbours.build(self.parts, progress)

    def purge(self, ids: Sequence[str], *, actor: str, drawn: Collection[str] = ()) -> Purged:
        """Destroy memories and events, and prove it."""
        from engram.store.postgres.purge import purge

        self.screen.decision(actor, "", "")
        purged = purge(self, ids, actor, drawn)
        self._statistics = Statistics(self.parts.database)
        return purged

    def prune(self, now: datetime, journal: int, usage: int, ledger: int, *, dry_run: bool) -> Pruned:
        """Let go of history older than so many days, or say what would go."""
        from engram.store.postgres.retention import prune

        return prune(self.parts, now, journal, usage, ledger, dry_run=dry_run)

    def note_verdict(self, gate: str, outcome: str, at: datetime) -> None:
        """Count what the gates said of an autonomous proposal."""
        self.parts.database.change("put_verdict", gate=gate, outcome=outcome, at=at)

    def verdicts(self, since: datetime) -> list[tuple[str, str]]:
        """Gate and outcome of the proposals since then."""
        return [(gate, outcome) for gate, outcome in self._run("verdicts", since=since)]

    def backup(self, target: Path, now: datetime) -> dict[str, int]:
        """A server is backed up by its own means."""
        raise InvalidInput(
            "Postgres is backed up with pg_dump or its own archiving (docs/postgres.md); "
            "`engram export` writes the memories as plain text, `engram migrate --to DIRECTORY` the whole store"
        )

    def examine(self) -> list[Check]:
        """What the server, the schema and the role look like."""
        from engram.store.postgres.health import examine

        return examine(self.parts)

    def facts(self) -> Mapping[str, Any]:
        """What `status` and `doctor` say of the store."""
        generation = self.parts.facts.generation
        return {
            "store": self.place,
            "statuses": dict(self._run("statuses")),
            "problems": [],
            "decisions": self._run("decision_count")[0][0],
            "index": {
                "documents": dict(self._run("kinds")),
                "vectors": self._run("vector_count", generation=generation)[0][0],
                "embedder": self.parts.facts.get("embedder"),
                "generation": generation,
            },
            "embedder": self.parts.embedder.name if self.parts.embedder else None,
        }

    def _run(self, name: str, /, **values: Any) -> list[tuple[Any, ...]]:
        return self.parts.database.run(name, **values)
