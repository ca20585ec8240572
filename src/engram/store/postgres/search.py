"""The two retrievers: BM25 over the postings, and vectors, exact or by an index. Both filter before the cut.

A search is few round trips, however many statements it takes: those that do not wait for one another are sent together.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

from engram.model.relations import HEAVIEST, LIGHTEST
from engram.rules.numbers import CO_ACCESS_DAILY, CO_ACCESS_PRUNE, FIELD_WEIGHTS
from engram.store.documents import prune
from engram.store.postgres import neighbours
from engram.store.postgres.adapters import rows_of
from engram.store.postgres.connections import Connection
from engram.store.postgres.context import TenantContext
from engram.store.postgres.database import BoundStatement, Database, Row
from engram.store.postgres.filters import where
from engram.store.postgres.sql import statement
from engram.store.postgres.statistics import Statistics, Totals
from engram.store.protocol import Candidates, DocumentPosition, Filters, IndexedPassage, PassageRange, Query, Step
from engram.store.traversal import Hops

if TYPE_CHECKING:
    from engram.embedding.protocol import Vectors


_SLACK, _LEAST = 3, 256
"""How many times the wanted number of vectors is looked at before the filter, and how many at least; most queries filter little."""
_NEVER = 1e-6
"""What a term is worth that more than half of all documents hold, as FTS5 has it."""
_WEIGHTS = {f"w{i}": weight for i, weight in enumerate(FIELD_WEIGHTS)}


def candidates(parts: TenantContext, statistics: Statistics, query: Query, filters: Filters) -> Candidates:
    """What the retrievers find."""
    totals, generation = statistics.totals(), parts.facts.in_force()
    with parts.database.reading() as connection:
        found = _Retrievers(parts, statistics, connection, query, filters).found(totals, generation)
    if parts.embedder is not None and generation is None:
        found.warnings.append(
            f"searched by keyword: the store holds vectors of {parts.facts.get('embedder') or 'no embedder'}, this process "
            f"has {parts.embedder.name}; run `engram index --reembed`"
        )
    return found


@dataclass(frozen=True, slots=True)
class _Retrievers:
    """Both retrievers for one question, in one transaction."""

    parts: TenantContext
    statistics: Statistics
    connection: Connection
    query: Query
    filters: Filters

    def found(self, totals: Totals, generation: int | None) -> Candidates:
        """Both rankings: in one round trip, in two where a term's count is not yet known to this process."""
        found = Candidates(total=totals.documents)
        way = self._way(generation)
        near = self._near(way) if way is not None else []
        known, missing = self.statistics.remembered(self.query.terms)
        if missing:
            counts, *answers = self._answers([(statement("frequencies"), {"terms": missing}), *near])
            self.statistics.remember(known, counts)
            (words,) = self._answers(self._lexical(found, known, totals)) or [[]]
        else:
            asked = self._lexical(found, known, totals)
            answers = self._answers([*asked, *near])
            words = answers.pop(0) if asked else []
        found.lexical = _ranking(words, found)
        if way is not None:
            found.semantic = _ranking([row for row in self._nearest(way, answers) if row[1] != 0], found)
        return found

    def _answers(self, asked: Sequence[BoundStatement]) -> list[list[Row]]:
        return self.parts.database.answers(self.connection, asked) if asked else []

    def _lexical(self, found: Candidates, known: Mapping[str, int], totals: Totals) -> list[BoundStatement]:
        """The search by words, where a word of the question occurs; the counts and what is left out go into `found`."""
        found.frequency = {term: known[term] for term in self.query.terms if term in known}
        kept = prune(found.frequency)
        found.pruned = tuple(term for term in found.frequency if term not in kept)
        if not kept:
            return []
        condition, values = where(self.filters)
        rarities = [_rarity(found.frequency[term], totals.documents) for term in kept]
        asked = {"terms": kept, "rarities": rarities, "average": totals.average, "limit": self.query.limit}
        return [(statement("lexical").format(condition=condition), {**values, **asked, **_WEIGHTS})]

    def _way(self, generation: int | None) -> neighbours.NeighbourSearch | None:
        if self.query.vector is None or generation is None:
            return None
        way = (
            neighbours.index_search
            if neighbours.uses_index(self.parts, self.filters, generation)
            else neighbours.exact_search
        )
        return way(self.parts, self.query.vector, self.filters, max(self.query.limit * _SLACK, _LEAST), generation)

    def _near(self, way: neighbours.NeighbourSearch) -> list[BoundStatement]:
        """The nearest of all, as far as they pass."""
        condition, values = where(self.filters)
        return way.among(condition, {**values, "limit": self.query.limit})

    def _nearest(self, way: neighbours.NeighbourSearch, answers: Sequence[list[Row]]) -> list[Row]:
        """What passed; where too few did, the nearest of those that pass."""
        *rows, (*_, looked_at) = way.answer(answers)
        # An index may give up before enough pass; a scan that found fewer than it was asked for has seen them all.
        if len(rows) == self.query.limit or (not way.settings and looked_at < way.values["wide"]):
            return rows
        condition, values = where(self.filters)
        asked = {"vector": way.values["vector"], "generation": way.values["generation"], "limit": self.query.limit}
        return self._answers([(statement("near_among").format(condition=condition), {**values, **asked})])[0]


def _rarity(frequency: int, total: int) -> float:
    return max(math.log((max(total - frequency, 0) + 0.5) / (frequency + 0.5)), _NEVER)


def _ranking(rows: Sequence[Row], found: Candidates) -> list[tuple[int, float]]:
    """Numbers and scores; where each document stands goes into `found`."""
    found.positions |= {n: DocumentPosition(parent, position, last) for n, _, parent, position, last in rows}
    return [(n, score) for n, score, *_ in rows]


def passages(
    parts: TenantContext, numbers: Sequence[int], stretches: Sequence[PassageRange], filters: Filters
) -> "tuple[list[IndexedPassage], Vectors | None]":
    """These documents, then every document of these stretches, in order; with their vectors."""
    generation = parts.facts.in_force()
    condition, values = where(filters)
    asked: list[BoundStatement] = []
    if numbers:
        asked.append((statement("alone"), {"numbers": list(numbers), "generation": generation}))
    if stretches:
        read: dict[str, Any] = {
            "parents": [s.parent for s in stretches],
            "firsts": [s.first for s in stretches],
            "lasts": [s.last for s in stretches],
        }
        text = statement("together").format(condition=condition)
        asked.append((text, {**values, **read, "generation": generation}))
    with parts.database.reading() as connection:
        rows = list(chain.from_iterable(parts.database.answers(connection, asked))) if asked else []
    placed = [
        IndexedPassage(n, (said, about, support), parent, position, time, eligible)
        for n, said, about, support, parent, position, time, eligible, _ in rows
    ]
    return placed, None if generation is None else rows_of([row[-1] for row in rows], _dim(parts))


def vectors_of(parts: TenantContext, numbers: Sequence[int]) -> "Vectors | None":
    """Vectors of documents, one row each; zero where one is still to be made."""
    generation = parts.facts.in_force()
    if generation is None:
        return None
    asked = {"generation": generation, "numbers": list(dict.fromkeys(numbers))}
    with parts.database.reading() as connection:
        (rows,) = parts.database.answers(connection, [(statement("vectors"), asked)])
    found: dict[int, bytes] = dict(rows)
    return rows_of([found.get(n) for n in numbers], _dim(parts))


def _dim(parts: TenantContext) -> int:
    return int(parts.facts.get("dim") or 0)


def walk(database: Database, seeds: Sequence[str], depth: int, hops: Hops, per_seed: int) -> list[Step]:
    """Each memory once per seed, nearest first."""
    wanted = list(dict.fromkeys(seeds))
    if not wanted:
        return []
    text, values = _asked(hops)
    values |= {"seeds": wanted, "depth": depth, "per_seed": per_seed, "min_weight": hops.min_weight, "at": hops.at}
    return _steps(wanted, database.query(text, values))


def _asked(hops: Hops) -> tuple[str, dict[str, Any]]:
    condition, values = where(hops.filters)
    typed = ""
    if hops.types is not None:
        typed, values["types"] = "AND {link}.type = ANY(%(types)b::text[])", list(hops.types)
    named = {
        "condition": condition, "typed": typed.format(link="r"), "given": _given(hops, typed.format(link="g")),
        "weight": statement("hop_weight").format(daily=CO_ACCESS_DAILY, least=CO_ACCESS_PRUNE),
        "lightest": LIGHTEST, "heaviest": HEAVIEST,
    }  # fmt: skip
    directions = {"hops_outbound": hops.outbound, "hops_inbound": hops.inbound}
    parts = [f"({statement(name).format(**named)})" for name, followed in directions.items() if followed]
    return statement("walk").format(hops=" UNION ALL ".join(parts)), values


def _given(hops: Hops, typed: str) -> str:
    """The conditions under which a given relation takes a learned link's place."""
    if not hops.prefers_given:
        return ""
    ways = [("source", "target"), ("target", "source")][: 2 if hops.outbound and hops.inbound else 1]
    text = statement("hop_given")
    return " ".join(text.format(source=source, target=target, typed=typed) for source, target in ways)


def _steps(seeds: list[str], levels: list[Row]) -> list[Step]:
    """The steps of each seed; a level names the parents of its memories, which are in the one before."""
    known = {(seed, seed): Step(seed, seed, 0, (seed,), (), 1.0) for seed in seeds}
    found: dict[str, list[Step]] = {seed: [] for seed in seeds}
    for seed, depth, *columns in levels:
        for memory_id, score, parent, kind, forward in zip(*columns, strict=True):
            before = known[seed, parent]
            step = Step(
                seed,
                memory_id,
                depth,
                (*before.path, memory_id),
                (*before.types, kind),
                score,
                (*before.forward, forward),
            )
            known[seed, memory_id] = step
            found[seed].append(step)
    return [step for steps in found.values() for step in steps]
