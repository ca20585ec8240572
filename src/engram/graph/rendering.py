"""Relations as lines of a prompt: evidence to read, never orders."""

from collections.abc import Iterator, Mapping, Sequence

from engram.embedding.tokenizer import count_tokens
from engram.graph.reaching import Reached
from engram.model.memory import Memory
from engram.model.relations import is_known
from engram.model.types import type_or_default
from engram.text.quote import quoted, word


def rendered(reached: Sequence[Reached], memories: Mapping[str, Memory], max_tokens: int | None) -> str:
    """One line for each memory, from the one before it on its path; the last ones fall away where the budget ends."""
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
    told: set[str] = set()
    for one in reached:
        before = _named(one.path[-2], memories, told)
        yield f"{before} {_arrow(one)} {_named(one.memory.id, memories, told)}"


def _named(memory_id: str, memories: Mapping[str, Memory], told: set[str]) -> str:
    """The id, with type and text where the memory is named for the first time."""
    name, memory = word(memory_id), memories.get(memory_id)
    if memory is None or memory_id in told:
        return name
    told.add(memory_id)
    return f"{name} {type_or_default(memory.type).label}: {quoted(memory.statement)}"


def _arrow(one: Reached) -> str:
    """The last hop; a word that somebody else's file brought is quoted like its text."""
    word = one.relations[-1]
    shown = word if is_known(word) else quoted(word)
    return f"—{shown}→" if one.forward[-1:] != (False,) else f"←{shown}—"
