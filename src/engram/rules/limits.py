"""How much one memory may carry besides its statement: what is beyond it makes every question that meets the memory slow."""

from engram.model.memory import Memory

__all__ = ["MAX_DETAIL_CHARS", "MAX_LINKS", "MAX_LISTED", "MAX_LISTED_CHARS", "excess"]

MAX_LISTED = 1_000
"""Tags, aliases, entities, anchors, pieces of evidence, and memories that it supersedes: of each."""
MAX_LISTED_CHARS = 1_000
"""Of one tag, alias or entity."""
MAX_LINKS = 10_000
MAX_DETAIL_CHARS = 100_000
"""Of the situation, the rationale and the domain; `context` is for whole sources, and is not indexed."""

_MOST = {
    **dict.fromkeys(("tags", "aliases", "entities", "anchors", "evidence", "supersedes"), MAX_LISTED),
    "associations": MAX_LINKS,
}
_WORDS = ("tags", "aliases", "entities")
_DETAILS = ("situation", "rationale", "domain")


def excess(memory: Memory) -> str:
    """What a memory has too much of, in words; "" where nothing."""
    for field, most in _MOST.items():
        if (count := len(getattr(memory, field))) > most:
            return f"{field} has {count:,} entries; one memory takes at most {most:,}"
    for field in _WORDS:
        if any(len(word) > MAX_LISTED_CHARS for word in getattr(memory, field)):
            return f"{field} has an entry of more than {MAX_LISTED_CHARS:,} characters; put long text into `context`"
    for field in _DETAILS:
        if (size := len(getattr(memory, field))) > MAX_DETAIL_CHARS:
            return f"{field} has {size:,} characters, at most {MAX_DETAIL_CHARS:,} are kept there; put long text into `context`"
    return ""
