"""Size limits of a memory besides its statement; larger memories would slow down every query that finds them."""

from engram.model.memory import Memory
from engram.rules.cues import cues_problem

__all__ = ["MAX_DETAIL_CHARS", "MAX_LINKS", "MAX_LISTED", "MAX_LISTED_CHARS", "limit_problem"]

MAX_LISTED = 1_000
"""Entries in each of: tags, aliases, entities, anchors, evidence, supersedes."""
MAX_LISTED_CHARS = 1_000
"""Characters of one tag, alias or entity."""
MAX_LINKS = 10_000
MAX_DETAIL_CHARS = 100_000
"""Characters of the situation, the rationale and the domain. Whole sources belong in `context`, which is not indexed."""

_MOST = {
    **dict.fromkeys(("tags", "aliases", "entities", "anchors", "evidence", "supersedes"), MAX_LISTED),
    "associations": MAX_LINKS,
}
_WORDS = ("tags", "aliases", "entities")
_DETAILS = ("situation", "rationale", "domain")


def limit_problem(memory: Memory) -> str:
    """Which limit a memory exceeds; "" for none."""
    for field, most in _MOST.items():
        if (count := len(getattr(memory, field))) > most:
            return f"{field} has {count:,} entries (maximum {most:,})"
    for field in _WORDS:
        if any(len(word) > MAX_LISTED_CHARS for word in getattr(memory, field)):
            return f"{field} has an entry of more than {MAX_LISTED_CHARS:,} characters; put long text into `context`"
    for field in _DETAILS:
        if (size := len(getattr(memory, field))) > MAX_DETAIL_CHARS:
            return f"{field} has {size:,} characters (maximum {MAX_DETAIL_CHARS:,}); put long text into `context`"
    return cues_problem(memory.cues)
