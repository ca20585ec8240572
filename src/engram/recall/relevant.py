"""Whether a hit is about what was asked, and not merely the nearest there is."""

from engram.model.hit import Hit

MEANING_FLOOR = 0.37
"""A memory that shares no word with the task must mean something alike: unrelated statements seldom reach this cosine."""
RELEVANCE_FLOOR = 2.5
"""Of ten: what is far less relevant than the best hit would only take room."""


def means_something(hit: Hit) -> bool:
    """Whether a hit is about what was asked, and not merely the nearest there is."""
    if hit.trace is None or hit.relevance < RELEVANCE_FLOOR:
        return False
    return "keyword" in hit.trace.found_by or hit.trace.raw.get("semantic", 0.0) >= MEANING_FLOOR
