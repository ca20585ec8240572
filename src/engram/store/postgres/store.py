"""The Postgres backend: `protocol.Store` over a pool of connections."""

import contextlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engram.model.errors import EngramError, InvalidInput, StoreUnreachable
from engram.model.lazy import replace
from engram.model.logs import Log
from engram.model.memory import Memory
from engram.model.records import RATED, RATED_BY_PERSON, Use
from engram.rules.scopes import is_scope_visible
from engram.store.defaults import random_hex, utc_now
from engram.store.intake import NoScreen, Screen
from engram.store.ledger import decode_event
from engram.store.postgres import search
from engram.store.postgres.database import Database, Numbers, Row, TenantContext, TenantSettings
from engram.store.postgres.search import Statistics, where
from engram.store.postgres.sql import statement
from engram.store.postgres.transaction import DecisionResult, PostgresTransaction, day_of
from engram.store.postgres.work import PostgresLedger, PostgresTaskStore
from engram.store.protocol import (
    COMMON_TERM_DOCUMENTS,
    Candidates,
    DocumentPosition,
    Filters,
    Hops,
    Image,
    IndexedPassage,
    Link,
    PassageRange,
    Progress,
    Query,
    StoredRecord,
)
from engram.store.records import decode_record, versions_among
from engram.store.reports import Check, Pruned, Purged, SyncReport

if TYPE_CHECKING:
    from engram.embedding.vectors import Embedder, Vectors


ORDER_BY_USE = "(m.record #>> '{activation,frequency}')::integer DESC NULLS LAST, "
"""Orders memories by use, most used first."""
_LOG = Log("store")


class PostgresStore(PostgresTaskStore, PostgresLedger):
    """Implements `protocol.Store` on a server. Thread-safe; every call is a transaction of its own."""

    screen: Screen = NoScreen()

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
        self.context = TenantContext(
            database=database,
            settings=TenantSettings(database, embedder.name if embedder else "", embedder.dim if embedder else 0),
            numbers=Numbers(database),
            embedder=embedder,
            clock=clock,
            token=token,
        )
        self._statistics = Statistics(database)

    def close(self) -> None:
        """Close the connections."""
        self.context.database.close()

    @property
    def place(self) -> str:
        """Server, database and tenant."""
        return f"{self.context.database.where} (tenant {self.context.database.tenant})"

    # -- reads

    def get(self, ref: str, scopes: Collection[str] | None = None) -> Memory | None:
        """A memory by id, name or alias."""
        rows = self._run("by_id", id=ref)
        if rows:
            memory = decode_record(rows[0][0])
            return memory if is_scope_visible(scopes, memory.scope) else None
        named = [row for row in self._run("by_name", name=ref) if is_scope_visible(scopes, row[3])]
        live = [row for row in named if row[1] in ("active", "dormant", "candidate")] or named
        if len(live) > 1:
            ids = ", ".join(sorted(row[0] for row in live))
            raise InvalidInput(f"{ref!r} is the name of several memories ({ids}); use an id")
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

    def same_text(self, content_hash: str, statuses: Sequence[str]) -> list[Memory]:
        """The memories with this content and one of these statuses, in any scope."""
        rows = self._run("same_text", hash=content_hash, statuses=list(statuses)) if content_hash else []
        return [decode_record(record) for (record,) in rows]

    def embed(self, texts: Sequence[str]) -> "Vectors | None":
        """Vectors of texts, or None."""
        return self.context.embed(texts)

    def embedder_name(self) -> str:
        """This process's embedding model."""
        return self.context.embedder.name if self.context.embedder else ""

    def may_have_situations(self) -> bool:
        """Always yes, because checking would take another round trip."""
        return True

    def own_ids(self, memory_ids: Iterable[str]) -> list[str]:
        """All of them: a server has no team stores."""
        return list(memory_ids)

    def trusted_here(self, directory: Path) -> frozenset[str]:
        """Nothing: trust in a repository is stored with files."""
        return frozenset()

    def id_by_name(self, name: str, scope: str) -> str:
        """The id of the memory with this name in a scope, or ""."""
        rows = self._run("named", name=name, scope=scope)
        return str(rows[0][0]) if rows else ""

    def file_of(self, memory_id: str) -> str:
        """No memory is a file."""
        return ""

    def mark(self, scope: str) -> int:
        """The number of a scope's last change."""
        rows = self._run("mark", scope=scope)
        return int(rows[0][0]) if rows else 0

    def owner_of(self, document_id: str) -> str | None:
        """The scope of a memory or an event."""
        rows = self._run("owner_of", id=document_id)
        return str(rows[0][0]) if rows else None

    def listing(
        self, filters: Filters, limit: int | None = None, offset: int = 0, *, most_used: bool = False
    ) -> list[Memory]:
        """Memories, newest first or most used first."""
        condition, values = where(filters)
        text = statement("listed").format(condition=condition, uses=ORDER_BY_USE if most_used else "")
        rows = self.context.database.query(text, {**values, "limit": limit, "offset": offset})
        return [decode_record(record) for (record,) in rows]

    def count(self, filters: Filters) -> int:
        """The number of documents that pass the filters."""
        condition, values = where(filters)
        return int(self.context.database.query(statement("counted").format(condition=condition), values)[0][0])

    def candidates(self, query: Query, filters: Filters) -> Candidates:
        """What each retriever finds."""
        return search.candidates(self.context, self._statistics, query, filters)

    def candidates_of_each(self, queries: Sequence[Query], filters: Filters) -> list[Candidates]:
        """The candidates of several queries."""
        return [self.candidates(query, filters) for query in queries]

    def document_positions(self, numbers: Sequence[int]) -> dict[int, DocumentPosition]:
        """The position of each document in its session, task or file."""
        return {n: DocumentPosition(*place) for n, *place in self._run("document_positions", numbers=list(numbers))}

    def passages(
        self, numbers: Sequence[int], ranges: Sequence[PassageRange], filters: Filters
    ) -> "tuple[list[IndexedPassage], Vectors | None]":
        """These documents, then every document of these ranges, with their vectors."""
        return search.passages(self.context, numbers, ranges, filters)

    def frequencies(self, terms: Sequence[str]) -> Mapping[str, int]:
        """The number of documents each term occurs in."""
        return self._statistics.frequencies(terms)

    def known_terms(self, terms: Sequence[str], scopes: Collection[str]) -> frozenset[str]:
        """The terms that occur in these scopes."""
        return frozenset(
            term
            for (term,) in self._run(
                "known_terms", terms=list(terms), scopes=list(scopes), common=COMMON_TERM_DOCUMENTS
            )
        )

    def known_at(self, moment: datetime) -> dict[str, Memory | None]:
        """Every memory changed since a moment, as it was then."""
        rows = self._run("known_at", moment=moment)
        return {memory_id: decode_record(after) if after is not None else None for memory_id, after in rows}

    def numbers(self, memory_ids: Sequence[str]) -> dict[str, int]:
        """The document numbers of memories."""
        return dict(self._run("numbers", ids=list(memory_ids)))

    def vectors(self, numbers: Sequence[int]) -> "Vectors | None":
        """Vectors of documents."""
        return search.vectors_of(self.context, numbers)

    def history(self, memory_id: str) -> list[Image]:
        """Every decision about a memory, oldest first."""
        return self.histories([memory_id])[memory_id]

    def histories(self, memory_ids: Sequence[str]) -> dict[str, list[Image]]:
        """The history of each of these memories."""
        found: dict[str, list[Image]] = {memory_id: [] for memory_id in memory_ids}
        for memory_id, seq, at, op, actor, reason, after, ids, session in self._run("history", ids=list(memory_ids)):
            memory = decode_record(after) if after is not None else None
            found[memory_id].append(Image(seq, at, op, actor, reason, memory, tuple(ids), session))
        return found

    def decisions(self, limit: int | None = None, *, session: str = "") -> list[Image]:
        """The last decisions that changed memories, newest first."""
        return [
            Image(seq, at, op, actor, reason, None, tuple(ids), made_in)
            for seq, at, op, actor, reason, ids, made_in in self._run("decisions", session=session, limit=limit)
        ]

    def heads(self, conflict_key: str, scope: str) -> list[Memory]:
        """The current memories with a conflict key in a scope."""
        rows = self._run("heads", keys=[conflict_key], scopes=[scope])
        return [decode_record(record) for *_, record in rows]

    def lineage(self, lineage_id: str) -> list[Memory]:
        """Every version of a fact, by revision."""
        return versions_among((decode_record(r) for _, r in self._run("lineage", lineage=lineage_id)), lineage_id)

    def links_to(self, memory_ids: Iterable[str]) -> list[tuple[str, str, str, float]]:
        """Links that point at these memories."""
        rows = self._run("links_to", ids=list(memory_ids))
        return [(source, target, kind, strength) for source, target, kind, strength in rows]

    def links(self, ids: Sequence[str], hops: Hops, most: int) -> list[Link]:
        """The links of some memories."""
        return search.links(self.context.database, ids, hops, most)

    @contextlib.contextmanager
    def reading(self) -> Iterator[None]:
        """The reads inside share one transaction of this thread."""
        self._statistics.totals()
        with self.context.database.reading():
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
        """One decision: reserves its ids, then locks its scopes and memories in order."""
        needs_vectors = False
        reason = self.screen.decision(actor, reason, session)
        with (
            _LOG.measure("write", op=op),
            self._reserve_ids(ids_for) as reserved,
            self.context.database.transaction() as connection,
        ):
            transaction = PostgresTransaction(
                self.context, connection, DecisionResult(op, actor, reason, session), reserved, self.screen
            )
            transaction.lock_scopes(scopes)
            transaction.lock_memories(about)
            yield transaction
            transaction.check_all()
            transaction.commit()
            needs_vectors = transaction.lacks_vectors
        self._statistics.note_written(transaction.written_count)
        if needs_vectors:
            self._fill_vectors()

    @contextlib.contextmanager
    def _reserve_ids(self, moments: Iterable[datetime]) -> Iterator[dict[str, range]]:
        """Reserve id numbers for the days of these moments; unused ones are returned at the end."""
        days = Counter(map(day_of, moments))
        reserved = {day: self.context.numbers.take(day, count) for day, count in sorted(days.items())}
        try:
            yield reserved
        except StoreUnreachable:
            raise  # The numbers become a gap.
        except BaseException:
            self._give_back(reserved)
            raise
        self._give_back(reserved)

    def _give_back(self, reserved: Mapping[str, range]) -> None:
        for day, unused in reserved.items():
            with contextlib.suppress(EngramError):  # The numbers become a gap; the decision is committed.
                self.context.numbers.give_back(day, unused)

    def _fill_vectors(self) -> None:
        """Embed documents without a vector, outside of any transaction."""
        from engram.store.postgres.rebuild import fill

        try:
            fill(self.context)
        except EngramError as error:
            # The decision is committed whether or not this succeeds.
            self.context.warn(f"some documents can only be found by keyword until they are embedded: {error}")

    # -- uses: positions come from a sequence, so a use may commit after one with a higher position. A reader that
    # folds uses up to a position must know that no lower one will still appear: appenders share a lock, and such a
    # reader waits for them.

    def note_use(self, use: Use) -> None:
        """Append a use without waiting for the disk; a rating is a person's decision and does wait."""
        use, database = self.screen.use(use), self.context.database
        values = {"ids": list(use.ids), "kind": use.kind, "signal": use.signal, "session": use.session, "at": use.at}
        with database.transaction(durable=use.kind in (RATED, RATED_BY_PERSON)):
            database.run("share_uses")
            ((position,),) = database.run("next_use")
            database.run("put_use", **values, position=position)

    def uses(self, memory_ids: Iterable[str] | None = None, *, session: str = "") -> list[Use]:
        """Every use of these memories, or in a session, oldest first. Uses with earlier positions cannot appear later."""
        if memory_ids is None:
            return self._settled_uses("uses_in", session=session)
        return self._settled_uses("uses_of", ids=list(memory_ids))

    def _settled_uses(self, name: str, **values: object) -> list[Use]:
        database = self.context.database
        waits = not database.in_transaction
        with database.transaction(durable=False):
            if waits and not database.is_replica():
                database.run("await_uses")
            return [_use(row) for row in database.run(name, **values)]

    def used_since(self, position: int) -> list[str]:
        """Ids of memories used from a position on."""
        return [memory_id for (memory_id,) in self._run("used_since", position=position)]

    def last_use(self, kind: str) -> Use | None:
        """The newest use of a kind, with all its ids."""
        found = [_use(row) for row in self._run("last_use", kind=kind)]
        return replace(found[0], ids=tuple(use.ids[0] for use in found)) if found else None

    # -- upkeep

    @property
    def warnings(self) -> list[str]:
        """Messages for the owner."""
        return self.context.warnings

    def new_token(self, size: int) -> str:
        """Random hex digits."""
        return self.context.token(size)

    def sync(self, *, seconds: float | None = None) -> SyncReport:
        """Embed documents without a vector; nothing changes outside of Engram on a server."""
        self._fill_vectors()
        return SyncReport()

    def rebuild(self, progress: Progress = lambda *_: None) -> SyncReport:
        """Rebuild documents, words and vectors from the records; searches continue meanwhile."""
        from engram.store.postgres.rebuild import rebuild

        rebuild(self.context, progress)
        self._statistics = Statistics(self.context.database)
        return SyncReport()

    def reembed(self, progress: Progress = lambda *_: None) -> int:
        """Recompute all vectors with this process's embedder; the old ones are used until the new ones are complete."""
        from engram.store.postgres.rebuild import reembed

        return reembed(self.context, progress)

    def build_nearest(self, progress: Progress = lambda *_: None) -> str:
        """Build this tenant's HNSW index. Only the owner of the tables may; worthwhile for a large tenant."""
        from engram.store.postgres import neighbours

        return neighbours.build(self.context, progress)

    def purge(self, ids: Sequence[str], *, actor: str, drawn: Collection[str] = ()) -> Purged:
        """Destroy memories and events, and prove it."""
        from engram.store.postgres.purge import purge

        self.screen.decision(actor, "", "")
        purged = purge(self.context, self, ids, actor, drawn)
        self._statistics = Statistics(self.context.database)
        return purged

    def interrupted_purge(self) -> Collection[str]:
        """None: a purge is one transaction."""
        return ()

    def prune(self, now: datetime, journal: int, usage: int, ledger: int, *, dry_run: bool) -> Pruned:
        """Remove history older than this many days, or report what would be removed."""
        from engram.store.postgres.purge import prune

        return prune(self.context, now, journal, usage, ledger, self.histories, dry_run=dry_run)

    def note_verdict(self, gate: str, outcome: str, at: datetime) -> None:
        """Count a gate's verdict on an autonomous proposal."""
        self.context.database.run("put_verdict", gate=gate, outcome=outcome, at=at)

    def verdicts(self, since: datetime) -> list[tuple[str, str]]:
        """Gate and outcome of each verdict since a moment."""
        return [(gate, outcome) for gate, outcome in self._run("verdicts", moment=since)]

    def backup(self, target: Path, now: datetime) -> dict[str, int]:
        """Refused: Postgres has its own tools for backups."""
        raise InvalidInput(
            "Back up a Postgres store with pg_dump or continuous archiving (docs/postgres.md); "
            "`engram export` writes the memories as plain text, `engram migrate --to DIRECTORY` the whole store"
        )

    def examine(self) -> list[Check]:
        """Health checks of the server, the schema and the role."""
        from engram.store.postgres.health import examine

        return examine(self.context)

    def facts(self) -> Mapping[str, Any]:
        """The facts about the store for `status` and `doctor`."""
        generation = self.context.settings.generation
        return {
            "store": self.place,
            "statuses": dict(self._run("statuses")),
            "problems": [],
            "decisions": self._run("decision_count")[0][0],
            "index": {
                "documents": dict(self._run("kinds")),
                "vectors": self._run("vector_count", generation=generation)[0][0],
                "embedder": self.context.settings.get("embedder"),
                "generation": generation,
            },
            "embedder": self.context.embedder.name if self.context.embedder else None,
        }

    def _run(self, name: str, /, **values: Any) -> list[tuple[Any, ...]]:
        return self.context.database.run(name, **values)


def _use(row: Row) -> Use:
    kind, memory_id, at, session, signal, position = row
    return Use(kind, (memory_id,), at, session, signal, position)
