"""The two retrievers: BM25 over the postings, and vectors, exact or by an index. Both filter before the cut."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from engram.rules.numbers import FIELD_WEIGHTS
from engram.store.postgres import nearest
from engram.store.postgres.filters import where
from engram.store.postgres.parts import Parts
from engram.store.postgres.sql import statement
from engram.store.postgres.statistics import Statistics
from engram.store.postgres.vectors import as_text
from engram.store.protocol import Candidates, Filters, Placed, Query, Stretch
from engram.store.pruned_terms import prune

if TYPE_CHECKING:
    from engram.embedding.protocol import Vectors

Ranking = list[tuple[int, float]]

_SLACK, _LEAST = 3, 256
"""How many times the wanted number is looked at before the filter, and how many at least; most queries filter little."""
_NEVER = 1e-6
"""What a term is worth that more than half of all documents hold, as FTS5 has it."""


def candidates(parts: Parts, statistics: Statistics, query: Query, filters: Filters) -> Candidates:
    """What the retrievers find."""
    totals = statistics.totals()
    found = Candidates(total=totals.documents)
    if query.terms:
        found.frequency = dict(statistics.frequencies(query.terms))
        kept = prune(found.frequency)
        found.pruned = tuple(term for term in found.frequency if term not in kept)
        rarities = [_rarity(found.frequency[term], totals.documents) for term in kept]
        asked = {"terms": kept, "rarities": rarities, "average": totals.average, **_WEIGHTS}
        found.lexical = _lexical(parts, asked, filters, query.limit) if kept else []
    generation = parts.facts.in_force()
    if query.vector is not None and generation is not None:
        found.semantic = semantic(parts, query.vector, filters, query.limit, generation)
    elif parts.embedder is not None and generation is None:
        found.warnings.append(
            f"searched by keyword: the store holds vectors of {parts.facts.get('embedder') or 'no embedder'}, this process "
            f"has {parts.embedder.name}; run `engram index --reembed`"
        )
    return found


_WEIGHTS = {f"w{i}": weight for i, weight in enumerate(FIELD_WEIGHTS)}


def _rarity(frequency: int, total: int) -> float:
    return max(math.log((max(total - frequency, 0) + 0.5) / (frequency + 0.5)), _NEVER)


def _lexical(parts: Parts, asked: dict[str, Any], filters: Filters, limit: int) -> Ranking:
    """The best of all, as far as they pass; where too few do, the best of those that pass."""
    wide = max(limit * _SLACK, _LEAST)
    best = f"{statement('lexical')} ORDER BY score DESC, p.n LIMIT %(wide)s"
    rows = parts.database.query(best, {**asked, "wide": wide})
    passing = allowed_among(parts, [n for n, _ in rows], filters)
    kept = [(n, score) for n, score in rows if n in passing]
    if len(kept) >= limit or len(rows) < wide:
        return kept[:limit]
    condition, values = where(filters)
    joined = (
        f"SELECT s.n, s.score FROM ({statement('lexical')}) s JOIN engram.documents d ON d.n = s.n AND {condition} "
        "ORDER BY s.score DESC, s.n LIMIT %(limit)s"
    )
    return [(n, score) for n, score in parts.database.query(joined, {**asked, **values, "limit": limit})]


def allowed_among(parts: Parts, numbers: Sequence[int], filters: Filters) -> set[int]:
    """Which of these documents pass the filter."""
    if not numbers:
        return set()
    condition, values = where(filters)
    text = statement("allowed_among").format(condition=condition)
    return {n for (n,) in parts.database.query(text, {**values, "numbers": list(numbers)})}


def semantic(parts: Parts, vector: "Vectors", filters: Filters, limit: int, generation: int) -> Ranking:
    """Documents by likeness to a vector, best first."""
    wide = max(limit * _SLACK, _LEAST)
    asked = {"vector": as_text(vector), "generation": generation}
    walked = nearest.is_walked(parts, filters, generation)
    rows = (nearest.walked if walked else nearest.scanned)(parts, vector, filters, wide, generation)
    passing = allowed_among(parts, [n for n, _ in rows], filters)
    kept = [(n, score) for n, score in rows if n in passing]
    # An index may give up before enough pass; a scan that found fewer than it was asked for has seen them all.
    if len(kept) < limit and (walked or len(rows) == wide):
        condition, values = where(filters)
        text = statement("near_among").format(condition=condition)
        kept = [(n, score) for n, score in parts.database.query(text, {**asked, **values, "limit": limit})]
    return [(n, score) for n, score in kept[:limit] if score > 0]


def passages(parts: Parts, numbers: Sequence[int], stretches: Sequence[Stretch], filters: Filters) -> list[Placed]:
    """These documents, then every document of these stretches, in order."""
    found = [_placed(row, True) for row in parts.database.run("alone", numbers=list(numbers))] if numbers else []
    if stretches:
        rows = parts.database.run(
            "together",
            parents=[s.parent for s in stretches],
            firsts=[s.first for s in stretches],
            lasts=[s.last for s in stretches],
        )
        passing = allowed_among(parts, [row[0] for row in rows], filters)
        found += [_placed(row, row[0] in passing) for row in rows]
    return found


def _placed(row: tuple[Any, ...], eligible: bool) -> Placed:
    n, said, about, support, parent, position, time = row
    return Placed(n, (said, about, support), parent, position, time, eligible)


def vectors_of(parts: Parts, numbers: Sequence[int]) -> "Vectors | None":
    """Vectors of documents, one row each; zero where one is still to be made."""
    generation = parts.facts.in_force()
    if generation is None:
        return None
    import numpy as np

    from engram.store.postgres.vectors import from_binary

    rows = np.zeros((len(numbers), int(parts.facts.get("dim") or 0)), dtype=np.float32)
    found: dict[int, bytes] = dict(
        parts.database.run("vectors", generation=generation, numbers=list(dict.fromkeys(numbers)))
    )
    for i, n in enumerate(numbers):
        if n in found:
            rows[i] = from_binary(found[n])
    return rows
