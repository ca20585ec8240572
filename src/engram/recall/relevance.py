"""From candidates to relevance: what each retriever found, fused into one number from 0 to 10."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from engram.model.hit import Part
from engram.rules.numbers import RELEVANCE_SCALE
from engram.store.protocol import Candidates, Filters, Query, Store

RRF_K = 60


@dataclass(frozen=True, slots=True)
class Ranked:
    """A document's place: its relevance, the parts that sum to it, who found it at which rank, and the raw scores."""

    n: int
    relevance: float
    parts: tuple[Part, ...] = ()
    found_by: Mapping[str, int] = field(default_factory=dict)
    raw: Mapping[str, float] = field(default_factory=dict)


def rank(
    store: Store, candidates: Candidates, query: Query, mode: str, fusion: str | None, filters: Filters
) -> list[Ranked]:
    """Documents by relevance, best first."""
    lists = {"keyword": candidates.lexical, "semantic": candidates.semantic}
    ranks = {name: {n: i for i, (n, _) in enumerate(found, 1)} for name, found in lists.items()}
    raw = {name: dict(found) for name, found in lists.items()}
    values: dict[int, list[Part]] = {}
    for name, found in lists.items():
        top = found[0][1] if found else 1.0
        for n, score in found:
            value = 1 / (RRF_K + ranks[name][n]) if fusion == "rrf" else score / top
            values.setdefault(n, []).append(Part(name, value))
    best = max((sum(p.value for p in parts) for parts in values.values()), default=1.0)
    ranked = []
    for n, parts in values.items():
        scaled = tuple(Part(p.name, p.value / best * RELEVANCE_SCALE) for p in parts)
        found_by = {name: ranks[name][n] for name in lists if n in ranks[name]}
        ranked.append(Ranked(n, sum(p.value for p in scaled), scaled, found_by, {k: raw[k][n] for k in found_by}))
    return sorted(ranked, key=lambda r: (-r.relevance, r.n))
