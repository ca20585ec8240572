"""A breadth-first walk over links, the same on every backend; a backend only reads the links of a level."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from engram.model.memory import CO_ACCESSED
from engram.store.protocol import Filters, Step

PLAIN = Filters()
"""The default filters of a search."""
LONGEST_CHAIN = 64
"""Most successors of a superseded memory that are followed; only a damaged store has more."""


@dataclass(frozen=True, slots=True)
class Hops:
    """Which links are followed, in which direction, and to which memories."""

    direction: str
    """outbound, inbound or any."""
    types: tuple[str, ...] | None
    min_weight: float
    filters: Filters
    at: datetime
    """The moment at which learned links are weighted: they decay."""

    @property
    def given_ways(self) -> int:
        """In how many directions an explicit relation replaces a learned link: it says more about why two memories belong together."""
        if self.types is not None and (CO_ACCESSED not in self.types or len(self.types) == 1):
            return 0
        return 2 if self.outbound and self.inbound else 1

    @property
    def outbound(self) -> bool:
        """Whether links are followed forwards."""
        return self.direction != "inbound"

    @property
    def inbound(self) -> bool:
        """Whether links are followed backwards."""
        return self.direction != "outbound"


class Link(NamedTuple):
    """A link from one memory to another that passes the filters; if that was superseded, to its first successor that does."""

    source: str
    target: str
    type: str
    weight: float
    forward: bool


Links = Callable[[Sequence[str], int], Iterable[Link]]
"""Reads the links of some memories: of each at least those to its so many heaviest neighbours in each direction."""


@dataclass(slots=True)
class _SeedWalk:
    """One seed's walk: the memories it has reached, and the last level of them."""

    level: list[Step]
    wanted: int
    seen: set[str]
    found: list[Step] = field(default_factory=list)

    @property
    def goes_on(self) -> bool:
        """Whether it goes deeper: a seed that has reached enough does not, because what is nearer comes first anyway."""
        return bool(self.level) and len(self.found) < self.wanted

    def advance(self, links: Mapping[str, Sequence[Link]]) -> None:
        """Reach the next level; of several paths to a memory the heaviest counts, then the first by name."""
        onward = [
            _onward(step, link)
            for step in self.level
            for link in links.get(step.id, ())
            if link.target not in self.seen
        ]
        self.level = []
        for step in sorted(onward, key=_order):
            if len(self.found) == self.wanted:
                break
            if step.id not in self.seen:
                self.seen.add(step.id)
                self.level.append(step)
                self.found.append(step)


def _onward(step: Step, link: Link) -> Step:
    return Step(
        step.seed,
        link.target,
        step.depth + 1,
        (*step.path, link.target),
        (*step.types, link.type),
        step.score * link.weight,
        (*step.forward, link.forward),
    )


def _order(step: Step) -> tuple[float, tuple[str, ...], str, bool]:
    return -step.score, step.path, step.types[-1], not step.forward[-1]


def walk(links: Links, seeds: Sequence[str], depth: int, per_seed: int) -> list[Step]:
    """The steps from each seed, nearest first, each memory once per seed."""
    walks = [_SeedWalk([Step(seed, seed, 0, (seed,), (), 1.0)], per_seed, {seed}) for seed in dict.fromkeys(seeds)]
    for _ in range(depth):
        going = [one for one in walks if one.goes_on]
        if not going:
            break
        by_source: dict[str, list[Link]] = {}
        # A seed needs at most as many neighbours of one memory as it has reached already and still misses.
        for link in links(sorted({step.id for one in going for step in one.level}), per_seed + 1):
            by_source.setdefault(link.source, []).append(link)
        for one in going:
            one.advance(by_source)
    return [step for one in walks for step in one.found]
