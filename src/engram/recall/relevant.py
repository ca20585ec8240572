"""Whether a hit is about what was asked, and not merely the nearest there is."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from engram.model.hit import Filtered, Hit, Hits
from engram.rules.sources import is_evidence

MEANING_FLOOR = 0.37
"""A memory that shares no word with the task must mean something alike: unrelated statements seldom reach this cosine."""
RELEVANCE_FLOOR = 2.5
"""Of ten: what is far less relevant than the best hit would only take room."""
NEAR = 5.0
"""Of ten: at least half as relevant as the best hit; less is another fact."""
NEAREST = 4.0
"""Of ten, where nothing is surely meant: what is shown of the nearest there is."""
STRANGE = 0.25
"""A cosine below which two statements have nothing in common; even as the nearest such a one is no answer."""
BESIDE = 6.0
"""Of ten: what a hit that is not itself surely meant must have to stand beside one that is."""
SURE = 0.5
"""A cosine that speaks for a hit by itself, without a word in common."""
LOOKED_UP = frozenset(("key", "lineage"))
"""What a trace says of a hit that was not searched for: its conflict key or its lineage is the one asked for."""


def means_something(hit: Hit) -> bool:
    """Whether a hit is about what was asked, and not merely the nearest there is."""
    if is_looked_up(hit):
        return True
    if hit.trace is None or hit.relevance < RELEVANCE_FLOOR:
        return False
    return "keyword" in hit.trace.found_by or hit.trace.raw.get("semantic", 0.0) >= MEANING_FLOOR


def is_looked_up(hit: Hit) -> bool:
    """Whether a hit was not found by likeness, but is what the question names."""
    return hit.trace is not None and not LOOKED_UP.isdisjoint(hit.trace.found_by)


def said_first(hits: Sequence[Hit]) -> list[Hit]:
    """The hits with what was only read or overheard behind what somebody said about the same, as `inject` has them."""
    said = [place for place, hit in enumerate(hits) if means_something(hit) and not is_read(hit)]
    ahead, rest = (hits[: said[-1] + 1], hits[said[-1] + 1 :]) if said else ([], hits)
    return [*sorted(ahead, key=is_read), *rest]


def is_read(hit: Hit) -> bool:
    """Whether a hit is a memory that only tells what was read or overheard."""
    return hit.memory is not None and is_evidence(hit.memory)


def relevant(hits: Hits) -> Hits:
    """The hits without those that would only fill up the limit; `filtered` names them. Where none is surely meant, the
    nearest stay; where one is what the question names, what only resembles it goes.
    """
    floor, meaning = (BESIDE, MEANING_FLOOR) if any(map(means_something, hits)) else (NEAREST, STRANGE)
    if any(map(is_looked_up, hits)):
        chosen = kept(hits, is_sure)
    else:
        chosen = kept(hits, lambda hit: means_something(hit) or (hit.relevance >= floor and not _strange(hit, meaning)))
    ids = {hit.id for hit in chosen}
    left = [_left_out(hit) for hit in hits if hit.id not in ids]
    chosen.filtered = [*hits.filtered, *left]
    return chosen


def rescaled(hits: Hits) -> Hits:
    """The hits with the best of them at ten again, after others were taken out."""
    best = max((hit.relevance for hit in hits), default=0.0)
    if best > 0:
        hits[:] = [replace(hit, relevance=hit.relevance * 10 / best) for hit in hits]
    return hits


def _left_out(hit: Hit) -> Filtered:
    """Why it was: too far behind the best, or the best of what has nothing in common with the question."""
    meaning = hit.trace.raw.get("semantic", 0.0) if hit.trace is not None else 0.0
    return Filtered(hit.id, f"relevance {hit.relevance:.2f} of 10, cosine {meaning:.2f}")


def _strange(hit: Hit, meaning: float) -> bool:
    return (
        hit.trace is not None and "keyword" not in hit.trace.found_by and hit.trace.raw.get("semantic", 1.0) < meaning
    )


def is_sure(hit: Hit) -> bool:
    """Whether a hit shares a word with the question, means nearly the same, or is what it names."""
    if is_looked_up(hit):
        return True
    return (
        means_something(hit)
        and hit.trace is not None
        and ("keyword" in hit.trace.found_by or hit.trace.raw.get("semantic", 0.0) >= SURE)
    )


def kept(hits: Hits, wanted: Callable[[Hit], bool]) -> Hits:
    """The hits that are wanted, with how the search went."""
    return among(hits, (hit for hit in hits if wanted(hit)))


def among(hits: Hits, chosen: Iterable[Hit]) -> Hits:
    """Chosen hits, with how the search went."""
    made = Hits(list(chosen))
    made.mode, made.warnings, made.filtered = hits.mode, hits.warnings, hits.filtered
    made.terms, made.pruned_terms = hits.terms, hits.pruned_terms
    return made
