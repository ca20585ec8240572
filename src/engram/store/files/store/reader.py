"""The read operations of a files store: memories, events, search, history, and links with the heaviest first."""

import json
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import groupby, islice
from typing import TYPE_CHECKING

from engram.model.errors import InvalidInput, StoreError
from engram.model.memory import Memory
from engram.model.records import Event
from engram.model.relations import MAX_WEIGHT, MIN_WEIGHT
from engram.rules.scopes import is_scope_visible
from engram.store.files.log.journal import AfterImage, Entry, Position
from engram.store.files.reconcile.folders import is_team
from engram.store.files.reconcile.index_state import IndexContext, LogContext, place_of
from engram.store.files.reconcile.recovery import IndexOutdated
from engram.store.files.reconcile.refresh import RefreshedStore, repairs_index
from engram.store.files.store import health, purge
from engram.store.files.store.purge_plan import has_unfinished_purge
from engram.store.files.store.writer import find_stored_event
from engram.store.ledger import decode_event
from engram.store.protocol import (
    COMMON_TERM_DOCUMENTS,
    MAX_VERSIONS,
    Candidates,
    DocumentPosition,
    Filters,
    Hops,
    Image,
    IndexedPassage,
    Link,
    PassageRange,
    Query,
    StoredRecord,
)
from engram.store.records import decode_record, from_image, heads_among, versions_among
from engram.store.sqlite.search import where

if TYPE_CHECKING:
    from engram.embedding.vectors import Vectors

# The links are sorted in a subquery of their own, so that each document is looked up only when its row is taken.
_LINKS = """
SELECT {destination} AS destination, o.type, o.weight FROM (
    SELECT w.id, w.type, max({lightest}, min({heaviest}, w.weight)) AS weight FROM (
        SELECT l.{there} AS id, l.type, CASE l.type WHEN 'co_accessed'
            THEN l.weight * faded(l.strength, coalesce(({now} - l.reinforced) / 86400, 0)) ELSE l.weight END AS weight
        FROM links l WHERE l.{here} = ? {typed} {given}
    ) w WHERE w.weight > 0 AND w.weight >= {least} ORDER BY 3 DESC, 1, 2 LIMIT -1
) o CROSS JOIN docs d ON d.id = o.id WHERE destination IS NOT NULL
"""
_GIVEN = """
AND (l.type <> 'co_accessed' OR NOT EXISTS (SELECT 1 FROM links g WHERE g.source = l.{source} AND g.target = l.{target}
AND g.type <> 'co_accessed' AND g.weight > 0 AND g.weight >= {least} {typed}))
"""
_ITSELF = "CASE WHEN {condition} THEN d.id END"
_OR_SUCCESSOR = """
CASE WHEN {condition} THEN d.id WHEN d.status = 'superseded' THEN (
    WITH RECURSIVE later (id, hops) AS (
        SELECT json_extract(r.record, '$.superseded_by'), 1 FROM records r WHERE r.n = d.n
        UNION ALL
        SELECT json_extract(r.record, '$.superseded_by'), l.hops + 1 FROM later l
        CROSS JOIN docs e ON e.id = l.id CROSS JOIN records r ON r.n = e.n WHERE l.hops < {longest}
    )
    SELECT d.id FROM later l CROSS JOIN docs d ON d.id = l.id WHERE {condition} ORDER BY l.hops LIMIT 1
) END
"""
_PREDECESSORS = """
WITH RECURSIVE earlier (heir, id) AS (
    SELECT j.value, j.value FROM json_each(?) j
    UNION
    SELECT e.heir, s.value FROM earlier e CROSS JOIN docs d ON d.id = e.id CROSS JOIN records r ON r.n = d.n
    CROSS JOIN json_each(r.record, '$.supersedes') s
    WHERE instr(r.record, '"supersedes"') -- few have it, and to take a record apart takes long
)
SELECT e.id, e.heir FROM earlier e CROSS JOIN docs d ON d.id = e.id
WHERE e.id <> e.heir AND d.status = 'superseded' AND NOT ({condition})
"""


def read_links(db: sqlite3.Connection, ids: Sequence[str], hops: Hops, most: int) -> Iterator[Link]:
    """The links of each memory to at most `most` neighbours in each direction."""
    condition, values = where(hops.filters)
    followed = (hops.types or ()) * (1 + hops.explicit_directions)
    if hops.outbound:
        destination = _OR_SUCCESSOR.format(condition=condition, longest=MAX_VERSIONS)
        outbound = _statement(hops, "source", "target", destination)
        for memory_id in ids:
            rows = db.execute(outbound, (*values, *values, memory_id, *followed))
            yield from _first(rows, memory_id, most, forward=True)
    if hops.inbound:
        # A link to a superseded memory counts as a link to its successor.
        predecessors = db.execute(_PREDECESSORS.format(condition=condition), (json.dumps(list(ids)), *values))
        inbound = _statement(hops, "target", "source", _ITSELF.format(condition=condition))
        for earlier, heir in [*zip(ids, ids, strict=True), *predecessors]:
            rows = db.execute(inbound, (*values, earlier, *followed))
            yield from _first(rows, heir, most, forward=False)


def _statement(hops: Hops, here: str, there: str, destination: str) -> str:
    least = repr(hops.min_weight)
    typed = "" if hops.types is None else f"AND {{link}}.type IN ({', '.join('?' * len(hops.types))})"
    ways = (("source", "target"), ("target", "source"))[: hops.explicit_directions]
    given = (_GIVEN.format(source=a, target=b, least=least, typed=typed.format(link="g")) for a, b in ways)
    return _LINKS.format(
        destination=destination, here=here, there=there, typed=typed.format(link="l"), given="".join(given), least=least,
        lightest=MIN_WEIGHT, heaviest=MAX_WEIGHT, now=repr(hops.at.timestamp()),
    )  # fmt: skip


def _first(rows: sqlite3.Cursor, memory_id: str, most: int, *, forward: bool) -> Iterator[Link]:
    """The heaviest link to each of the first `most` neighbours; the rest of the rows are not even looked up."""
    found: set[str] = set()
    for destination, kind, weight in rows:
        if destination not in found:
            found.add(destination)
            yield Link(memory_id, destination, kind, weight, forward)
            if len(found) == most:
                return


def history(context: IndexContext, memory_id: str) -> list[Image]:
    """All decisions about a memory, oldest first."""
    rows = context.index.db.execute("SELECT seq, month, offset FROM images WHERE id = ? ORDER BY seq", (memory_id,))
    return [_image(_entry(context, memory_id, *row), memory_id) for row in rows.fetchall()]


def histories(context: IndexContext, memory_ids: Sequence[str]) -> dict[str, list[Image]]:
    """All decisions about each of these memories, oldest first; an entry that several share is read once."""
    rows = context.index.db.execute(
        "SELECT i.id, i.seq, i.month, i.offset FROM json_each(?) j CROSS JOIN images i ON i.id = j.value ORDER BY i.seq",
        (json.dumps(list(memory_ids)),),
    )
    found: dict[str, list[Image]] = {memory_id: [] for memory_id in memory_ids}
    for _, shared in groupby(rows.fetchall(), key=lambda row: row[1]):
        entry, images = None, dict[str, AfterImage]()
        for memory_id, *place in shared:
            if entry is None:
                entry = _entry(context, memory_id, *place)
                images = {change.id: change for change in entry.changes}
            found[memory_id].append(_image(entry, memory_id, images.get(memory_id)))
    return found


def known_at(context: IndexContext, moment: datetime) -> dict[str, Memory | None]:
    """Every memory changed since a time, as it was then; None if it did not exist."""
    rows = context.index.db.execute(
        "SELECT l.id, i.seq, i.month, i.offset FROM (SELECT DISTINCT id FROM images WHERE at > ?1) l LEFT JOIN images i "
        "ON i.id = l.id AND i.seq = (SELECT max(o.seq) FROM images o WHERE o.id = l.id AND o.at <= ?1)",
        (moment.timestamp(),),
    )
    versions: dict[str, Memory | None] = {}
    for memory_id, seq, *place in rows.fetchall():
        versions[memory_id] = (
            _image(_entry(context, memory_id, seq, *place), memory_id).memory if seq is not None else None
        )
    return versions


def _entry(context: LogContext, memory_id: str, seq: int, month: str, offset: int) -> Entry:
    entry = context.journal.at(Position(month, offset))
    if entry.seq != seq:
        raise IndexOutdated(f"{memory_id}: the journal was rewritten since it was indexed")
    return entry


def _image(entry: Entry, memory_id: str, change: AfterImage | None = None) -> Image:
    change = change or next((one for one in entry.changes if one.id == memory_id), None)
    memory = from_image(change.after) if change is not None and change.after is not None else None
    ids = tuple(change.id for change in entry.changes)
    return Image(entry.seq, entry.at, entry.op, entry.actor, entry.reason, memory, ids, entry.session)


MAX_LISTED_CHECKED = 200
"""Up to this many listed memories have their files checked for edits; `engram sync` checks all."""


class FilesReader(RefreshedStore):
    """The queries of a files store."""

    def _has_purge_to_hide(self) -> bool:
        return purge.needs_hiding(self.context)

    def _hide_purge(self) -> None:
        self._handle_purge(purge.hide)

    def _finish_purge(self) -> None:
        self._handle_purge(purge.resume)

    def _handle_purge(self, work: Callable[[IndexContext], None]) -> None:
        if not has_unfinished_purge(self.context.home):
            return
        try:
            work(self.context)
        except (StoreError, OSError) as error:
            self.context.warn(f"a purge was interrupted and is not finished yet: {error}")

    @repairs_index
    def get(self, ref: str, scopes: Collection[str] | None = None) -> Memory | None:
        """A memory by id, name or alias."""
        self._refresh()
        row = self._row(ref, scopes)
        if row is None and self._refresh(force=True):
            row = self._row(ref, scopes)
        if row is None:
            return None
        found = self._fresh_records([row[0]])
        memory = found[0].record if found else None
        return memory if isinstance(memory, Memory) and is_scope_visible(scopes, memory.scope) else None

    def _row(self, ref: str, scopes: Collection[str] | None) -> tuple[int, str] | None:
        row = self.context.index.one("by_ref", ref)
        if row is not None:
            return row[0], row[1]
        rows = [row for row in self.context.index.all("by_name", ref) if is_scope_visible(scopes, row[4])]
        live = [r for r in rows if r[2] in ("active", "dormant", "candidate")] or rows
        if len(live) > 1:
            raise InvalidInput(f"{ref!r} names {len(live)} memories: {', '.join(r[1] for r in live)}; use the id")
        return (live[0][0], live[0][1]) if live else None

    @repairs_index
    def get_many(self, numbers: Sequence[int]) -> list[StoredRecord]:
        """Records by document number; those whose file changed are read again."""
        return self._fresh_records(numbers)

    def _fresh_records(self, numbers: Sequence[int]) -> list[StoredRecord]:
        self._pick_up_changed(numbers)
        rows = self.context.index.records(numbers)
        return [self._stored_record(n, *rows[n]) for n in numbers if n in rows]

    def _stored_record(self, n: int, kind: str, record: str) -> StoredRecord:
        return StoredRecord(n, kind, decode_record(record) if kind == "memory" else decode_event(record))

    @repairs_index
    def exact(self, content_hash: str, scope: str) -> Memory | None:
        """The live memory with this content in this scope."""
        self._refresh()
        row = self.context.index.one("exact", content_hash, scope) if content_hash else None
        return decode_record(row[1]) if row else None

    @repairs_index
    def same_text(self, content_hash: str, statuses: Sequence[str]) -> list[Memory]:
        """The memories with this content and one of these statuses, in any scope."""
        self._refresh()
        rows = self.context.index.all("same_text", content_hash, json.dumps(list(statuses))) if content_hash else []
        return [decode_record(record) for (record,) in rows]

    @repairs_index
    def own_ids(self, memory_ids: Iterable[str]) -> list[str]:
        """Those of the memories that are in the owner's own store."""
        return [i for i in memory_ids if not is_team(place_of(self.context.index, i))]

    @repairs_index
    def id_by_name(self, name: str, scope: str) -> str:
        """The id of the memory with this name in a scope, or ""."""
        row = self.context.index.db.execute(
            "SELECT id FROM names WHERE name = ? AND scope = ?", (name, scope)
        ).fetchone()
        return row[0] if row else ""

    @repairs_index
    def mark(self, scope: str) -> int:
        """The number of the last change; all scopes share one count."""
        return self.context.index.change

    @repairs_index
    def file_of(self, memory_id: str) -> str:
        """The file that contains a memory, or ""."""
        place = place_of(self.context.index, memory_id)
        return str(self.context.path(place)) if place else ""

    @repairs_index
    def event(self, event_id: str) -> Event | None:
        """An event by id."""
        found = find_stored_event(self.context, event_id)
        if found is None and self.context.pending is None and self._is_behind():
            self._catch_up()
            found = find_stored_event(self.context, event_id)
        return found

    @repairs_index
    def owner_of(self, document_id: str) -> str | None:
        """The scope a document belongs to."""
        row = self.context.index.db.execute("SELECT scope FROM docs WHERE id = ?", (document_id,)).fetchone()
        return row[0] if row else None

    @repairs_index
    def listing(
        self, filters: Filters, limit: int | None = None, offset: int = 0, *, most_used: bool = False
    ) -> list[Memory]:
        """Memories, newest first or most used first."""
        self._refresh()
        listed = self.context.index.select_records(filters, limit, offset, most_used=most_used)
        if len(listed) > MAX_LISTED_CHECKED:
            return [decode_record(record) for record in listed]
        numbers = self.numbers([json.loads(record)["id"] for record in listed])
        return [f.record for f in self._fresh_records(list(numbers.values())) if isinstance(f.record, Memory)]

    @repairs_index
    def count(self, filters: Filters) -> int:
        """How many documents pass the filters."""
        self._refresh()
        return self.context.index.count_matching(filters)

    def candidates(self, query: Query, filters: Filters) -> Candidates:
        """What each retriever finds."""
        return self.candidates_of_each([query], filters)[0]

    @repairs_index
    def candidates_of_each(self, queries: Sequence[Query], filters: Filters) -> list[Candidates]:
        """The candidates of several queries, for which the vectors are scanned once."""
        self._refresh()
        index = self.context.index
        each = index.candidates_of_each(queries, filters)
        for query, found in zip(queries, each, strict=True):
            if not found.semantic and (query.vector is None or not index.can_embed()):
                found.warnings += health.foreign_vectors(self.context)
        return each

    @repairs_index
    def may_have_situations(self) -> bool:
        """Whether a memory may say when it matters."""
        self._refresh()
        return self.context.index.may_have_situations()

    @repairs_index
    def document_positions(self, numbers: Sequence[int]) -> dict[int, DocumentPosition]:
        """The position of each document."""
        return self.context.index.document_positions(numbers)

    @repairs_index
    def passages(
        self, numbers: Sequence[int], ranges: Sequence[PassageRange], filters: Filters
    ) -> "tuple[list[IndexedPassage], Vectors | None]":
        """These documents, then every document of these ranges; with their vectors."""
        return self.context.index.passages(numbers, ranges, filters)

    @repairs_index
    def frequencies(self, terms: Sequence[str]) -> Mapping[str, int]:
        """In how many documents each term occurs."""
        return self.context.index.frequencies(terms)

    @repairs_index
    def known_terms(self, terms: Sequence[str], scopes: Collection[str]) -> frozenset[str]:
        """Those of the terms that occur in a document of these scopes."""
        seen = json.dumps(list(scopes))
        return frozenset(
            term for term in terms if self.context.index.all("said", f'"{term}"', seen, COMMON_TERM_DOCUMENTS)
        )

    @repairs_index
    def numbers(self, memory_ids: Sequence[str]) -> dict[str, int]:
        """The document numbers of memories."""
        rows = self.context.index.db.execute(
            "SELECT d.id, d.n FROM json_each(?) j CROSS JOIN docs d ON d.id = j.value", (json.dumps(list(memory_ids)),)
        )
        return dict(rows.fetchall())

    @repairs_index
    def heads(self, conflict_key: str, scope: str) -> list[Memory]:
        """The current memories with a conflict key in a scope."""
        self._refresh()
        ids = [i for (i,) in self.context.index.all("heads", conflict_key, scope)]
        found = self._fresh_records(list(self.numbers(ids).values()))
        return heads_among((f.record for f in found if isinstance(f.record, Memory)), conflict_key, scope)

    @repairs_index
    def lineage(self, lineage_id: str) -> list[Memory]:
        """Every version of a fact, by revision."""
        self._refresh()
        return versions_among((decode_record(r) for (r,) in self.context.index.all("lineage", lineage_id)), lineage_id)

    @repairs_index
    def known_at(self, moment: datetime) -> dict[str, Memory | None]:
        """Every memory changed since a time, as it was then."""
        return known_at(self.context, moment)

    @repairs_index
    def vectors(self, numbers: Sequence[int]) -> "Vectors | None":
        """Vectors of documents."""
        return self.context.index.vectors(numbers)

    def embed(self, texts: Sequence[str]) -> "Vectors | None":
        """Vectors of texts in the store's space, or None."""
        return self.context.embedder.embed(texts) if self.context.embedder and self._can_embed() else None

    def embedder_name(self) -> str:
        """The model this process embeds with."""
        return self.context.embedder.name if self.context.embedder else ""

    @repairs_index
    def _can_embed(self) -> bool:
        return self.context.index.can_embed()

    @repairs_index
    def history(self, memory_id: str) -> list[Image]:
        """All decisions about a memory."""
        return history(self.context, memory_id)

    @repairs_index
    def histories(self, memory_ids: Sequence[str]) -> dict[str, list[Image]]:
        """The history of each of these memories."""
        return histories(self.context, memory_ids)

    def decisions(self, limit: int | None = None, *, session: str = "") -> list[Image]:
        """The last decisions that changed memories, newest first, read from the journal itself."""
        entries = (entry for entry in self.context.journal.backwards(session) if entry.changes)
        return [_image(entry, "") for entry in islice(entries, limit)]

    @repairs_index
    def links_to(self, memory_ids: Iterable[str]) -> list[tuple[str, str, str, float]]:
        """Links that point at these memories."""
        return self.context.index.all("links_to", json.dumps(list(memory_ids)))

    @repairs_index
    def links(self, ids: Sequence[str], hops: Hops, most: int) -> list[Link]:
        """The links of some memories."""
        self._refresh()
        return list(read_links(self.context.index.db, ids, hops, most))
