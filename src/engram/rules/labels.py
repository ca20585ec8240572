"""Labels that find a memory besides its statement.

These are its cues, which are searched but never injected or compared, and the default name it gets.
"""

from collections.abc import Iterable, Sequence

from engram.model.memory import Memory
from engram.text.display import slug

__all__ = ["MAX_CUES", "MAX_CUE_CHARS", "add_cues", "cues_problem", "name_for", "normalize_cues", "situation_with_cues"]

MAX_CUES = 8
MAX_CUE_CHARS = 120
"""Characters of one cue, with white space normalised."""


def normalize_cues(cues: Iterable[str]) -> tuple[str, ...]:
    """The cues with white space normalised and duplicates removed, ignoring case; the first spelling is kept."""
    found: dict[str, str] = {}
    for cue in cues:
        text = " ".join(cue.split())
        found.setdefault(text.casefold(), text)
    return tuple(found.values())


def cues_problem(cues: Sequence[str]) -> str:
    """Which limit normalised cues exceed; "" for none."""
    if len(cues) > MAX_CUES:
        return f"cues has {len(cues):,} entries (maximum {MAX_CUES})"
    for cue in cues:
        if not cue.strip():
            return f"cues has an empty entry; give up to {MAX_CUES} short phrases"
        if len(cue) > MAX_CUE_CHARS:
            return f"cues has an entry of {len(cue):,} characters (maximum {MAX_CUE_CHARS})"
    return ""


def add_cues(known: Sequence[str], new: Iterable[str]) -> tuple[str, ...]:
    """The known cues followed by the new ones, up to the limit per memory."""
    return normalize_cues((*known, *new))[:MAX_CUES]


def situation_with_cues(situation: str, cues: Iterable[str]) -> str:
    """The situation and the cues as one text, which a task is compared with."""
    return "; ".join(filter(None, (situation, *cues)))


MAX_FORM_NAME = 60
"""The maximum length of a name for feedback or a fact, which is taken from its situation."""


def name_for(memory: Memory) -> str:
    """The memory's name, or the one it should get; for feedback and facts, it comes from the situation."""
    if memory.name or not memory.form:
        return memory.name or slug(memory.situation or memory.statement)
    return slug(memory.situation, words=12, length=MAX_FORM_NAME) or slug(memory.statement) or "memory"
