"""A breadth-first walk over links, and the paths it found: merged over several starts, rendered as lines of a prompt.

The walk is the same on every backend: a store only reads the links of a level.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from engram.embedding.tokenizer import count_tokens
from engram.model.lazy import dataclass, field
from engram.model.memory import Memory
from engram.model.relations import is_known
from engram.model.types import type_or_default
from engram.store.protocol import Hops, Link, Store
from engram.text.display import quote_text, safe_word


@dataclass(frozen=True, slots=True)
class Step:
    """A memory that a walk reached: from which seed, over which memories and relations."""

    seed: str
    id: str
    depth: int
    path: tuple[str, ...]
    """Ids from the seed to the memory, both included."""
    types: tuple[str, ...]
    """The relation of each hop."""
    score: float
    """The product of the weights along the path."""
    forward: tuple[bool, ...] = ()
    """Whether each hop follows its link's direction."""


@dataclass(slots=True)
class _SeedWalk:
    """One seed's walk: the memories it has reached, and the last level of them."""

    level: list[Step]
    wanted: int
    seen: set[str]
    found: list[Step] = field(default_factory=list)

    @property
    def can_advance(self) -> bool:
        """Whether it goes deeper: a seed that has reached enough does not, because what is nearer comes first anyway."""
        return bool(self.level) and len(self.found) < self.wanted

    def advance(self, links: Mapping[str, Sequence[Link]]) -> None:
        """Reach the next level; of several paths to a memory the heaviest counts, then the first by name."""
        onward = [
            (-step.score * link.weight, step.path, link.target, link.type, not link.forward, number, link)
            for number, step in enumerate(self.level)
            for link in links.get(step.id, ())
            if link.target not in self.seen
        ]
        level: list[Step] = []
        for *_, number, link in sorted(onward):
            if len(self.found) + len(level) == self.wanted:
                break
            if link.target not in self.seen:
                self.seen.add(link.target)
                level.append(_onward(self.level[number], link))
        self.level = level
        self.found += level


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


def walk(store: Store, seeds: Sequence[str], hops: Hops, depth: int, per_seed: int) -> list[Step]:
    """Memories linked to these, nearest first: each once per seed, by its shortest, then heaviest path.

    Only memories that pass the filters are reached and traversed. A seed is not reached from itself.
    """
    walks = [_SeedWalk([Step(seed, seed, 0, (seed,), (), 1.0)], per_seed, {seed}) for seed in dict.fromkeys(seeds)]
    for _ in range(depth):
        going = [one for one in walks if one.can_advance]
        if not going:
            break
        by_source: dict[str, list[Link]] = {}
        # A seed needs at most as many neighbours of one memory as it has reached already and still misses.
        for link in store.links(sorted({step.id for one in going for step in one.level}), hops, per_seed + 1):
            by_source.setdefault(link.source, []).append(link)
        for one in going:
            one.advance(by_source)
    return [step for one in walks for step in one.found]


@dataclass(frozen=True, slots=True)
class ReachedMemory:
    """A memory reached over relations, by its best path."""

    memory: Memory
    depth: int
    path: tuple[str, ...]
    """Ids from the start to the memory, both included."""
    relations: tuple[str, ...]
    """The relation of each hop."""
    score: float
    """The product of the weights along the path."""
    forward: tuple[bool, ...] = ()
    """Whether each hop goes the way its relation points."""
    seeds: tuple[str, ...] = ()
    """The starts it was reached from, the one of the path first."""


def merge_steps(steps: Iterable[Step], limit: int) -> list[tuple[Step, tuple[str, ...]]]:
    """Each memory once, by its best path, with the seeds it was reached from; nearest first, then by weight."""
    found: dict[str, tuple[Step, tuple[str, ...]]] = {}
    for step in sorted(steps, key=lambda step: (step.depth, -step.score, step.path)):
        best, seeds = found.get(step.id, (step, ()))
        found[step.id] = best, (*seeds, step.seed)
    return list(found.values())[:limit]


def render_reached(reached: Sequence[ReachedMemory], memories: Mapping[str, Memory], max_tokens: int | None) -> str:
    """One line per memory, from the one before it on its path; lines beyond the budget are dropped."""
    kept: list[str] = []
    left = max_tokens
    for text in _lines(reached, memories):
        if left is not None:
            left -= count_tokens(text)
            if left < 0:
                break
        kept.append(text)
    return "\n".join(kept)


def _lines(reached: Sequence[ReachedMemory], memories: Mapping[str, Memory]) -> Iterator[str]:
    shown: set[str] = set()
    for one in reached:
        before = _name_step(one.path[-2], memories, shown)
        yield f"{before} {_arrow(one)} {_name_step(one.memory.id, memories, shown)}"


def _name_step(memory_id: str, memories: Mapping[str, Memory], shown: set[str]) -> str:
    """The id, with type and text where the memory is named for the first time."""
    name, memory = safe_word(memory_id), memories.get(memory_id)
    if memory is None or memory_id in shown:
        return name
    shown.add(memory_id)
    return f"{name} {type_or_default(memory.type).label}: {quote_text(memory.statement)}"


def _arrow(one: ReachedMemory) -> str:
    """The last hop; an unknown relation from somebody else's file is quoted."""
    word = one.relations[-1]
    shown = word if is_known(word) else quote_text(word)
    return f"—{shown}→" if one.forward[-1:] != (False,) else f"←{shown}—"
