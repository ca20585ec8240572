"""Which hits answer a question: those likely enough to be about it, and of one thing asked for those as likely as the best.

Everything here is a floor under `Hit.relevance`, the probability that a hit is about the question. A hit that was looked up and not
searched for, because the question names its fact or asks for everything of a time, has relevance 1.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import pairwise, starmap
from typing import Any

from engram.model.errors import InvalidInput
from engram.model.hit import Filtered, Hit, Hits, HitTrace
from engram.rules.sources import is_evidence
from engram.text.time.words import words
from engram.text.word_tables import word_class

__all__ = ["ABOUT", "HALF", "HELPFUL", "LOOKED_UP", "MOST_NEAREST", "NEAREST", "SURE", "about", "among", "asks_for_several",
           "at_least", "below", "best_of", "checked_relevance", "is_about", "is_read", "kept", "looked_up", "nearest", "said_first"]  # fmt: skip

ABOUT = 0.08
"""The floor of `recall`: there the share of answerable questions that get the right memory first and the share of others that get
nothing are both as high as they get together, on questions of writers the model had not seen (.59 and .73)."""
HELPFUL = 0.05
"""The floor of `inject` and of context blocks: a prompt bears a line that is of no use better than it lacks one."""
SURE = 0.5
"""More likely about the question than not: for callers that act on a hit without showing it to anyone."""
HALF = 0.5
"""Where one thing is asked for: a hit less than half as likely as the best one is about something else."""
NEAREST = 0.01
"""What has less than this in common with a question is not shown as the nearest to it either."""
MOST_NEAREST = 3
LOOKED_UP = 1.0
"""The relevance of what was looked up by its conflict key, its lineage or the time asked for; the trace's `found_by` says which."""
_ABOUT_SOMEBODY = frozenset((("know", "about"), ("me", "about"), ("known", "about"), ("everything", "about")))
_PLURAL_BE = frozenset(("are", "were", "aren't", "weren't"))


def is_about(hit: Hit) -> bool:
    """Whether a hit is likely enough about the question to answer it."""
    return hit.relevance >= ABOUT


def best_of(hits: Iterable[Hit]) -> float:
    """The highest relevance among hits; 0 where there are none."""
    return max((hit.relevance for hit in hits), default=0.0)


def looked_up(hit: Hit, by: str) -> Hit:
    """A hit as what the question names or lists; the trace says by what."""
    trace = hit.trace or HitTrace()
    return replace(hit, trace=replace(trace, found_by={**trace.found_by, by: 1}), relevance=LOOKED_UP)


def checked_relevance(value: Any, name: str = "min_relevance") -> float:
    """A relevance that a caller gave; `InvalidInput` for what is none."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise InvalidInput(f"{name} {value!r:.40} must be a number between 0 and 1")
    return float(value)


def at_least(hits: Hits, floor: float) -> Hits:
    """The hits at or above a floor; `filtered` names the others."""
    return _cut(hits, floor, f"below {floor:.2f}")


def about(hits: Hits, question: str, floor: float = ABOUT) -> Hits:
    """The hits that answer a question: those at the floor or above, and where it asks for one thing, only those at least
    half as likely as the best. `filtered` names the others.
    """
    chosen = at_least(hits, floor)
    if not floor or asks_for_several(question):
        return chosen
    # What was only read sets no measure for what somebody said.
    best = best_of(hit for hit in chosen if not is_read(hit)) or best_of(chosen)
    return _cut(chosen, HALF * best, f"less than half of the best one's {best:.2f}")


def nearest(hits: Iterable[Hit], floor: float = ABOUT) -> list[Hit]:
    """The few hits below the floor that come nearest to a question, the nearest first."""
    near = [hit for hit in hits if NEAREST <= hit.relevance < floor]
    return sorted(near, key=lambda hit: -hit.relevance)[:MOST_NEAREST]


def asks_for_several(question: str) -> bool:
    """Whether a question asks for more than one thing: for all about somebody ("tell me about"), it lists, counts or compares ("all my", "how many", "versus"), its verb or
    the noun it asks for is plural ("what are", "which servers"), or it asks two questions at once ("and who").
    """
    keys = [word.key for word in words(question)]
    named = keys[:1] == ["list"] or not word_class("asking", "several").isdisjoint(keys)
    return named or any(starmap(_is_of_several, pairwise(keys)))


def _is_of_several(first: str, second: str) -> bool:
    if first in ("which", "what", "who", "where"):
        return second in _PLURAL_BE or (first == "which" and _is_plural(second))
    asks_again = first == "and" and second in word_class("asking", "wh")
    return (
        asks_again
        or (first, second) in _ABOUT_SOMEBODY
        or (first, second) == ("how", "many")
        or (first == "all" and second in word_class("asking", "determiner"))
    )


def _is_plural(word: str) -> bool:
    return len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is", "'s"))


def said_first(hits: Sequence[Hit]) -> list[Hit]:
    """The hits with what was only read or overheard behind what somebody said about the same, as `inject` has them."""
    said = [place for place, hit in enumerate(hits) if is_about(hit) and not is_read(hit)]
    ahead, rest = (hits[: said[-1] + 1], hits[said[-1] + 1 :]) if said else ([], hits)
    return [*sorted(ahead, key=is_read), *rest]


def is_read(hit: Hit) -> bool:
    """Whether a hit is a memory that only tells what was read or overheard."""
    return hit.memory is not None and is_evidence(hit.memory)


def kept(hits: Hits, wanted: Callable[[Hit], bool]) -> Hits:
    """The hits that are wanted, with how the search went."""
    return among(hits, (hit for hit in hits if wanted(hit)))


def among(hits: Hits, chosen: Iterable[Hit]) -> Hits:
    """Chosen hits, with how the search went."""
    made = Hits(list(chosen))
    made.mode, made.warnings, made.filtered = hits.mode, hits.warnings, hits.filtered
    made.terms, made.pruned_terms = hits.terms, hits.pruned_terms
    return made


def below(hit_id: str, relevance: float, floor: float) -> Filtered:
    """Why a hit is left out that does not reach a floor."""
    return Filtered(hit_id, f"relevance {relevance:.2f}, below {floor:.2f}")


def _cut(hits: Hits, floor: float, why: str) -> Hits:
    chosen = kept(hits, lambda hit: hit.relevance >= floor)
    left = [Filtered(hit.id, f"relevance {hit.relevance:.2f}, {why}") for hit in hits if hit.relevance < floor]
    chosen.filtered = [*hits.filtered, *left]
    return chosen
