"""Spreading activation: memories linked to the chosen ones, though no search found them (spec 1)."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime

from engram.model.lazy import dataclass
from engram.model.memory import CO_ACCESSED, Memory
from engram.rules import numbers as n
from engram.rules.strength import link_strength

NOT_FOLLOWED = frozenset({"contradicts", "valid_elsewhere"})
"""Links between memories that do not belong together."""


@dataclass(frozen=True, slots=True)
class SpreadHit:
    """A memory reached over a link: from which memory, by which link, and how strongly."""

    memory: Memory
    source: str
    link: str
    score: float


def spread(
    chosen: Sequence[tuple[Memory, float]],
    fetch: Callable[[Iterable[str]], list[Memory]],
    incoming: Callable[[Iterable[str]], Iterable[tuple[str, str, str, float]]],
    exclude: Collection[str],
    now: datetime,
) -> list[SpreadHit]:
    """One step from the chosen memories along links in both directions, strongest first; weak links are dropped."""
    top = max((score for _, score in chosen), default=0.0)
    if top <= 0:
        return []
    scores = {memory.id: score / top for memory, score in chosen}
    ties: dict[tuple[str, str], dict[str, float]] = {}

    def offer(target: str, source: str, link: str, strength: float) -> None:
        value = scores[source] * strength
        if target not in exclude and target not in scores and value >= n.SPREAD_FLOOR and link not in NOT_FOLLOWED:
            ties.setdefault((target, source), {})[link] = value

    for memory, _ in chosen:
        for link in memory.associations:
            offer(link.target, memory.id, link.type, link_strength(link, now))
    for source, target, kind, strength in incoming(list(scores)):
        if kind != CO_ACCESSED:  # those are written on both sides, and fade by their own date
            offer(source, target, kind, strength)
    best: dict[str, tuple[float, str, str]] = {}
    for (target, source), links in ties.items():
        best[target] = max(best.get(target, (0.0, "", "")), (max(links.values()), source, _named(links)))
    found = {memory.id: memory for memory in fetch(list(best))} if best else {}
    reached = [SpreadHit(found[i], source, link, value) for i, (value, source, link) in best.items() if i in found]
    return sorted(reached, key=lambda r: (-r.score, r.memory.id))


def _named(links: Mapping[str, float]) -> str:
    """The link to show: one that somebody made before one that use made, then the strongest."""
    return max(links, key=lambda link: (link != CO_ACCESSED, links[link], link))
