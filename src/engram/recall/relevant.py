"""Whether a hit is about what was asked, and not merely the nearest there is."""

from collections.abc import Callable

from engram.model.hit import Filtered, Hit, Hits

MEANING_FLOOR = 0.37
"""A memory that shares no word with the task must mean something alike: unrelated statements seldom reach this cosine."""
RELEVANCE_FLOOR = 2.5
"""Of ten: what is far less relevant than the best hit would only take room."""
NEAR = 5.0
"""Of ten: at least half as relevant as a hit that is surely meant, whatever its words."""
NEAREST = 4.0
"""Of ten, where nothing is surely meant: what is shown of the nearest there is."""
STRANGE = 0.2
"""A cosine below which two statements have nothing in common; even as the nearest such a one is no answer."""


def means_something(hit: Hit) -> bool:
    """Whether a hit is about what was asked, and not merely the nearest there is."""
    if hit.trace is None or hit.relevance < RELEVANCE_FLOOR:
        return False
    return "keyword" in hit.trace.found_by or hit.trace.raw.get("semantic", 0.0) >= MEANING_FLOOR


def relevant(hits: Hits) -> Hits:
    """The hits without those that would only fill up the limit; `filtered` names them. Where none is surely meant, the
    nearest stay.
    """
    floor = NEAR if any(map(means_something, hits)) else NEAREST
    chosen = kept(hits, lambda hit: means_something(hit) or (hit.relevance >= floor and not _strange(hit)))
    ids = {hit.id for hit in chosen}
    left = [Filtered(hit.id, f"relevance {hit.relevance:.2f} of 10") for hit in hits if hit.id not in ids]
    chosen.filtered = [*hits.filtered, *left]
    return chosen


def _strange(hit: Hit) -> bool:
    return (
        hit.trace is not None and "keyword" not in hit.trace.found_by and hit.trace.raw.get("semantic", 1.0) < STRANGE
    )


def kept(hits: Hits, wanted: Callable[[Hit], bool]) -> Hits:
    """The hits that are wanted, with how the search went."""
    chosen = Hits([hit for hit in hits if wanted(hit)])
    chosen.mode, chosen.warnings, chosen.filtered = hits.mode, hits.warnings, hits.filtered
    chosen.terms, chosen.pruned_terms = hits.terms, hits.pruned_terms
    return chosen
