"""The paths a traversal found: merged over several starts, and rendered as lines of a prompt."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from engram.embedding.tokenizer import count_tokens
from engram.model.memory import Memory
from engram.model.relations import is_known
from engram.model.types import type_or_default
from engram.store.protocol import Step
from engram.text.display import quoted, word


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
    """Each memory once, by its best path, with the seeds it was reached from; nearest first, then by weight."""
    found: dict[str, tuple[Step, tuple[str, ...]]] = {}
    for step in sorted(steps, key=_order):
        best, seeds = found.get(step.id, (step, ()))
        found[step.id] = best, (*seeds, step.seed)
    return list(found.values())[:limit]


def _order(step: Step) -> tuple[int, float, tuple[str, ...]]:
    return step.depth, -step.score, step.path


def rendered(reached: Sequence[Reached], memories: Mapping[str, Memory], max_tokens: int | None) -> str:
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


def _lines(reached: Sequence[Reached], memories: Mapping[str, Memory]) -> Iterator[str]:
    shown: set[str] = set()
    for one in reached:
        before = _named(one.path[-2], memories, shown)
        yield f"{before} {_arrow(one)} {_named(one.memory.id, memories, shown)}"


def _named(memory_id: str, memories: Mapping[str, Memory], shown: set[str]) -> str:
    """The id, with type and text where the memory is named for the first time."""
    name, memory = word(memory_id), memories.get(memory_id)
    if memory is None or memory_id in shown:
        return name
    shown.add(memory_id)
    return f"{name} {type_or_default(memory.type).label}: {quoted(memory.statement)}"


def _arrow(one: Reached) -> str:
    """The last hop; an unknown relation from somebody else's file is quoted."""
    word = one.relations[-1]
    shown = word if is_known(word) else quoted(word)
    return f"—{shown}→" if one.forward[-1:] != (False,) else f"←{shown}—"
