"""The two retrievers: BM25 over the postings, and vectors, exact or by an index. Both filter before the limit.

A search takes few round trips, because independent statements are sent together. Document frequencies of terms are
counted in slices after writes, never under the writers' locks: in a store of a few hundred documents after each write,
in a large one when a fiftieth of it is new. Any reader that finds a stale count updates it; a replica uses the
primary's count.
"""

import contextlib
import json
import math
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import chain
from typing import TYPE_CHECKING, Any

from engram.model.errors import EngramError, StoreDenied, StoreReadOnly
from engram.model.lazy import dataclass
from engram.model.relations import MAX_WEIGHT, MIN_WEIGHT
from engram.rules.numbers import CO_ACCESS_DAILY, CO_ACCESS_PRUNE, FIELD_WEIGHTS
from engram.store.postgres import neighbours
from engram.store.postgres.connections import rows_of
from engram.store.postgres.database import BoundStatement, Database, Row, TenantContext
from engram.store.postgres.sql import statement
from engram.store.protocol import (
    MAX_VERSIONS,
    Candidates,
    DocumentPosition,
    Filters,
    Hops,
    IndexedPassage,
    Link,
    PassageRange,
    Query,
)
from engram.store.sql import FilterCondition
from engram.text.tokens import prune_terms

if TYPE_CHECKING:
    from engram.embedding.vectors import Vectors


def where(filters: Filters) -> tuple[str, dict[str, Any]]:
    """The condition and its parameters."""
    found = PostgresCondition(filters)
    return f"d.tenant = %(tenant)s AND {found.text}" if found.parts else "d.tenant = %(tenant)s", found.values


# A filter treats True and 1 as equal; inside a list or a mapping, JSON's own equality decides.
_SAME_TEXT = "CASE json_typeof(e) WHEN 'string' THEN e #>> '{{}}' = {} ELSE false END"
_SAME_NUMBER = "CASE json_typeof(e) WHEN 'number' THEN (e #>> '{{}}')::numeric END = {}::text::numeric"
_SAME_TRUTH = "CASE json_typeof(e) WHEN 'boolean' THEN (e #>> '{{}}')::boolean END = {}::text::boolean"
_SAME_JSON = "CASE WHEN json_typeof(e) IN ('array', 'object') THEN e::jsonb = {}::text::jsonb ELSE false END"
_NUL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")
_NOTHING = "json_typeof(e) = 'null'"
_ITEMS = (
    "(SELECT CASE d.kind WHEN 'event' THEN "
    "(SELECT r.record -> 'metadata' FROM engram.agent_events r WHERE r.tenant = %(tenant)s AND r.id = d.id) ELSE "
    "(SELECT r.record -> 'data' FROM engram.agent_memory r WHERE r.tenant = %(tenant)s AND r.id = d.id) END AS data) m, "
    "LATERAL (SELECT coalesce(m.data -> {}, 'null') AS held) h, LATERAL (SELECT h.held AS e UNION ALL "
    "SELECT json_array_elements(CASE WHEN json_typeof(h.held) = 'array' THEN h.held ELSE '[]' END)) i"
)


class PostgresCondition(FilterCondition):
    """A condition with a named parameter for each value."""

    EARLIEST = "'-infinity'"

    def __init__(self, filters: Filters) -> None:
        self.values: dict[str, Any] = {}
        super().__init__(filters)

    def add(self, condition: str, *values: Any) -> None:
        names = [f"f{len(self.values) + place}" for place in range(len(values))]
        self.values |= dict(zip(names, values, strict=True))
        self.parts.append(condition.format(*(f"%({name})s" for name in names)))

    def among(self, column: str, values: Sequence[str] | None) -> None:
        if values is None:
            return
        if len(values) == 1:  # An equality preserves the order of an index, a list does not.
            self.add(column + " = {}", values[0])
        else:
            self.add(column + " = ANY({}::text[])", list(values))

    def not_among(self, column: str, values: Sequence[str]) -> None:
        self.add(column + " <> ALL({}::text[])", list(values))

    def moment(self, at: datetime) -> datetime:
        return at

    def add_roles(self, roles: Sequence[str]) -> None:
        # One lookup in the events' key for each document: as an EXISTS, it may be joined with all of the tenant's
        # events.
        self.add(
            "(SELECT e.record ->> 'role' FROM engram.agent_events e WHERE e.tenant = %(tenant)s AND e.id = d.id) "
            "= ANY({}::text[])",
            list(roles),
        )

    def add_critical(self) -> None:
        self.add(
            "d.id IN (SELECT c.id FROM engram.agent_memory c WHERE c.tenant = %(tenant)s AND c.critical_slot <> '')"
        )

    def add_without_cues(self) -> None:
        # Next to the cues, the index has the English words of a statement in another language.
        self.add(
            "(d.cues = '' OR d.id IN (SELECT c.id FROM engram.agent_memory c WHERE c.tenant = %(tenant)s "
            "AND coalesce(c.record ->> 'cues', '[]') = '[]'))"
        )

    def add_tags(self, tags: Sequence[str]) -> None:
        self.add("d.tags @> {}::text[]", list(tags))

    def add_domain(self, domain: str, below: str) -> None:
        self.add("(d.domain = {} OR starts_with(d.domain, {}))", domain, below)

    def add_metadata(self, key: str, value: object) -> None:
        """A list matches as a whole, or by any of its items."""
        if _NUL.search(json.dumps([key, value])):
            self.add("false")  # PostgreSQL cannot store NUL.
            return
        same, values = _comparison(value)
        self.add(f"EXISTS (SELECT 1 FROM {_ITEMS} WHERE {same})", key, *values)


def _comparison(value: object) -> tuple[str, list[str]]:
    """How an item is compared with a value, and the value as the statement takes it."""
    if value is None:
        return _NOTHING, []
    if isinstance(value, str):
        return _SAME_TEXT, [value]
    if isinstance(value, bool):
        return _SAME_TRUTH, [json.dumps(value)]
    if isinstance(value, (int, float)):
        return _SAME_NUMBER, [repr(value)]
    return _SAME_JSON, [json.dumps(value)]


STALE_SHARE = 50
"""The count is updated if more than one in this many documents is new."""
SLICE, SLICES = 2_000, 5
"""Documents per slice, and the most slices that one search or write counts."""
MAX_UNCOUNTED_DOCUMENTS = 20_001
"""New documents are counted up to this number; several slices' worth."""
CHECK_SECONDS = 1.0
"""How often a reader that has not written anything checks the count."""
_RECOUNT = 1.05


@dataclass(frozen=True, slots=True)
class Totals:
    """The number of counted documents, and of their terms."""

    documents: int = 0
    length: int = 0

    @property
    def average(self) -> float:
        """Terms per document."""
        return self.length / self.documents if self.documents and self.length else 1.0


class Statistics:
    """A tenant's term statistics, cached by this process until they change."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._totals = Totals()
        self._checked_at = float("-inf")
        self._frequency: dict[str, int] = {}
        self._cached_at = 0
        self._uncounted = 0

    def note_written(self, documents: int) -> None:
        """Note that this process wrote documents, so that the next read checks the count.

        A bulk writer counts as it goes.
        """
        self._checked_at = float("-inf")
        self._uncounted += documents
        if self._uncounted >= SLICE:
            self._uncounted = 0
            with contextlib.suppress(EngramError):  # The write is committed; the count is updated later.
                self._catch_up()

    def totals(self) -> Totals:
        """The current totals, after updating a stale count."""
        now = time.monotonic()
        if now - self._checked_at >= CHECK_SECONDS and not self._database.in_transaction:
            self._catch_up()
            self._checked_at = now
        return self._totals

    def _catch_up(self) -> None:
        """Count a few slices, because a search must not wait for a whole store to be counted."""
        for _ in range(SLICES):
            rows = self._database.run("statistics", enough=MAX_UNCOUNTED_DOCUMENTS)
            counted = Totals(int(rows[0][1]), int(rows[0][2])) if rows else Totals()
            self._take(counted)
            uncounted = rows[0][3] if rows else 1
            if not uncounted * STALE_SHARE > counted.documents or not self._count_slice(known=bool(rows)):
                return

    def _count_slice(self, *, known: bool) -> bool:
        """Count one slice; returns whether more may be left."""
        try:
            with self._database.transaction(durable=False):
                if not known:
                    self._database.run("begin_statistics")
                return count_slice(self._database, SLICE) > 0
        except (StoreReadOnly, StoreDenied):
            return False

    def _take(self, totals: Totals) -> None:
        if not self._cached_at <= totals.documents <= self._cached_at * _RECOUNT:
            self._frequency, self._cached_at = {}, totals.documents
        self._totals = totals

    def frequencies(self, terms: Sequence[str]) -> Mapping[str, int]:
        """The number of documents each term occurs in; at least 1 for a term of uncounted documents."""
        self.totals()
        known, missing = self.look_up_cached(terms)
        if missing:
            self.cache(known, self._database.run("frequencies", terms=missing))
        return {term: known[term] for term in terms if term in known}

    def look_up_cached(self, terms: Sequence[str]) -> tuple[dict[str, int], list[str]]:
        """The cached frequencies, and the terms to read.

        Pass the cached frequencies on to `cache`, because another thread may start a new one.
        """
        known = self._frequency
        return known, [term for term in dict.fromkeys(terms) if term not in known]

    def cache(self, known: dict[str, int], rows: Iterable[Row]) -> None:
        """Add frequencies that were read. Unknown terms are not cached: the next memory may contain them."""
        known |= dict(rows)


def count_slice(database: Database, size: int) -> int:
    """Count the terms of the next documents. Returns how many documents; 0 while another process counts."""
    locked = database.run("lock_statistics")
    if not locked:
        return 0
    values = {"counted_to": locked[0][0], "slice": size}
    ((numbers, length),) = database.run("uncounted", **values)
    if not numbers:
        return 0
    database.run("count_terms", numbers=numbers)
    moved = {"upto": max(numbers), "documents": len(numbers), "length": int(length)}
    database.run("move_statistics", **moved)
    return len(numbers)


_SLACK, _LEAST = 3, 256
"""How many vectors are compared before the filter: a multiple of the limit, and a minimum. Most queries filter little."""
_NEVER = 1e-6
"""The weight of a term in more than half of all documents, as in FTS5."""
_WEIGHTS = {f"w{i}": weight for i, weight in enumerate(FIELD_WEIGHTS)}


def candidates(context: TenantContext, statistics: Statistics, query: Query, filters: Filters) -> Candidates:
    """What the retrievers find."""
    totals, generation = statistics.totals(), context.settings.usable_generation()
    with context.database.reading():
        found = _CandidateSearch(context, statistics, query, filters).run(totals, generation)
    if context.embedder is not None and generation is None:
        found.warnings.append(
            f"searched by keyword only: the store's vectors are from {context.settings.get('embedder') or 'no embedder'}, this process "
            f"uses {context.embedder.name}; run `engram index --reembed`"
        )
    return found


@dataclass(frozen=True, slots=True)
class _CandidateSearch:
    """Both retrievers for one query, in one transaction."""

    context: TenantContext
    statistics: Statistics
    query: Query
    filters: Filters

    def run(self, totals: Totals, generation: int | None) -> Candidates:
        """Both rankings in one round trip, or two if this process does not know a term's frequency yet."""
        found = Candidates(total=totals.documents)
        nearby = self._neighbour_search(generation)
        near = self._near(nearby) if nearby is not None else []
        known, missing = self.statistics.look_up_cached(self.query.terms)
        if missing:
            counts, *answers = self._answers([(statement("frequencies"), {"terms": missing}), *near])
            self.statistics.cache(known, counts)
            (words,) = self._answers(self._lexical(found, known, totals)) or [[]]
        else:
            lexical = self._lexical(found, known, totals)
            answers = self._answers([*lexical, *near])
            words = answers.pop(0) if lexical else []
        found.lexical = _ranking(words, found)
        if nearby is not None:
            found.semantic = _ranking([row for row in self._nearest(nearby, answers) if row[1] != 0], found)
        return found

    def _answers(self, statements: Sequence[BoundStatement]) -> list[list[Row]]:
        return self.context.database.fetch_results(statements) if statements else []

    def _lexical(self, found: Candidates, known: Mapping[str, int], totals: Totals) -> list[BoundStatement]:
        """The search by words, if a word of the question occurs; the frequencies and left-out terms go into `found`."""
        found.frequency = {term: known[term] for term in self.query.terms if term in known}
        kept = prune_terms(found.frequency)
        found.pruned = tuple(term for term in found.frequency if term not in kept)
        if not kept:
            return []
        condition, values = where(self.filters)
        rarities = [_rarity(found.frequency[term], totals.documents) for term in kept]
        parameters = {"terms": kept, "rarities": rarities, "average": totals.average, "limit": self.query.limit}
        return [(statement("lexical").format(condition=condition), {**values, **parameters, **_WEIGHTS})]

    def _neighbour_search(self, generation: int | None) -> neighbours.NeighbourSearch | None:
        if self.query.vector is None or generation is None:
            return None
        by_index = neighbours.uses_index(self.context, self.filters, generation)
        make = neighbours.index_search if by_index else neighbours.exact_search
        return make(self.context, self.query.vector, self.filters, max(self.query.limit * _SLACK, _LEAST), generation)

    def _near(self, nearby: neighbours.NeighbourSearch) -> list[BoundStatement]:
        """The nearest of all that pass the filters."""
        condition, values = where(self.filters)
        return nearby.statements_among(condition, {**values, "limit": self.query.limit})

    def _nearest(self, nearby: neighbours.NeighbourSearch, answers: Sequence[list[Row]]) -> list[Row]:
        """Those that passed; if too few did, the nearest among the documents that pass."""
        *rows, (*_, looked_at) = nearby.own_rows(answers)
        # An index may stop before enough pass; a scan that returned fewer than the limit has seen everything.
        if len(rows) == self.query.limit or (not nearby.settings and looked_at < nearby.values["wide"]):
            return rows
        condition, values = where(self.filters)
        parameters = {
            "vector": nearby.values["vector"],
            "generation": nearby.values["generation"],
            "limit": self.query.limit,
        }
        return self._answers([(statement("near_among").format(condition=condition), {**values, **parameters})])[0]


def _rarity(frequency: int, total: int) -> float:
    return max(math.log((max(total - frequency, 0) + 0.5) / (frequency + 0.5)), _NEVER)


def _ranking(rows: Sequence[Row], found: Candidates) -> list[tuple[int, float]]:
    """Numbers and scores; adds each document's position to `found`."""
    found.positions |= {n: DocumentPosition(parent, position, last) for n, _, parent, position, last in rows}
    return [(n, score) for n, score, *_ in rows]


def passages(
    context: TenantContext, numbers: Sequence[int], ranges: Sequence[PassageRange], filters: Filters
) -> "tuple[list[IndexedPassage], Vectors | None]":
    """These documents, then every document of these ranges, in order; with their vectors."""
    generation = context.settings.usable_generation()
    condition, values = where(filters)
    statements: list[BoundStatement] = []
    if numbers:
        statements.append((statement("alone"), {"numbers": list(numbers), "generation": generation}))
    if ranges:
        read: dict[str, Any] = {
            "parents": [s.parent for s in ranges],
            "firsts": [s.first for s in ranges],
            "lasts": [s.last for s in ranges],
        }
        text = statement("together").format(condition=condition)
        statements.append((text, {**values, **read, "generation": generation}))
    with context.database.reading():
        rows = list(chain.from_iterable(context.database.fetch_results(statements))) if statements else []
    placed = [
        IndexedPassage(n, (statement_, about, support, cues), parent, position, time, eligible)
        for n, statement_, about, support, cues, parent, position, time, eligible, _ in rows
    ]
    return placed, None if generation is None else rows_of([row[-1] for row in rows], _dim(context))


def vectors_of(context: TenantContext, numbers: Sequence[int]) -> "Vectors | None":
    """Vectors of documents, one row each; zeros if one is missing."""
    generation = context.settings.usable_generation()
    if generation is None:
        return None
    parameters = {"generation": generation, "numbers": list(dict.fromkeys(numbers))}
    with context.database.reading():
        (rows,) = context.database.fetch_results([(statement("vectors"), parameters)])
    found: dict[int, bytes] = dict(rows)
    return rows_of([found.get(n) for n in numbers], _dim(context))


def _dim(context: TenantContext) -> int:
    return int(context.settings.get("dim") or 0)


def links(database: Database, ids: Sequence[str], hops: Hops, most: int) -> list[Link]:
    """The links of some memories, in one statement."""
    text, values = links_statement(hops)
    return [Link(*row) for row in database.query(text, {**values, "ids": list(ids), "most": most})]


def links_statement(hops: Hops) -> tuple[str, dict[str, Any]]:
    """The statement that reads links, without the memories whose links are wanted."""
    condition, values = where(hops.filters)
    values |= {"min_weight": hops.min_weight, "at": hops.at}
    typed = ""
    if hops.types is not None:
        typed, values["types"] = "AND {link}.type = ANY(%(types)b::text[])", list(hops.types)
    ways = (("source", "target"), ("target", "source"))[: hops.explicit_directions]
    given = (statement("hop_given").format(source=a, target=b, typed=typed.format(link="g")) for a, b in ways)
    named = {
        "condition": condition, "typed": typed.format(link="r"), "given": " ".join(given),
        "weight": statement("hop_weight").format(daily=CO_ACCESS_DAILY, least=CO_ACCESS_PRUNE),
        "lightest": MIN_WEIGHT, "heaviest": MAX_WEIGHT, "longest": MAX_VERSIONS,
    }  # fmt: skip
    directions = {"hops_outbound": hops.outbound, "hops_inbound": hops.inbound}
    followed = [f"({statement(name).format(**named)})" for name, wanted in directions.items() if wanted]
    return statement("links").format(hops=" UNION ALL ".join(followed)), values
