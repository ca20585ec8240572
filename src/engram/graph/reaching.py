"""What a walk reached, and how the walks of several seeds become one answer."""

from collections.abc import Iterable
from dataclasses import dataclass

from engram.model.memory import Memory
from engram.store.protocol import Step


@dataclass(frozen=True, slots=True)
class Reached:
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


def gathered(steps: Iterable[Step], limit: int) -> list[tuple[Step, tuple[str, ...]]]:
    """Each memory once, by its best step, with the seeds it was reached from; the nearest and heaviest first."""
    found: dict[str, tuple[Step, tuple[str, ...]]] = {}
    for step in sorted(steps, key=_order):
        best, seeds = found.get(step.id, (step, ()))
        found[step.id] = best, (*seeds, step.seed)
    return list(found.values())[:limit]


def _order(step: Step) -> tuple[int, float, tuple[str, ...]]:
    return step.depth, -step.score, step.path
