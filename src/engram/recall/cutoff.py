"""Selects the hits that answer a question: those above a relevance floor and, if one thing is asked for, close to the
best.

Events that only repeat a found memory are left out. Every floor applies to `Hit.relevance`, the probability that a hit
is about the question. A hit that was looked up, not searched for, because the question names its fact or asks for
everything from a time, has relevance 1.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise, starmap
from typing import Any, TypeVar

from engram.model.errors import InvalidInput
from engram.model.hit import Filtered, Hit, Hits, HitTrace
from engram.model.lazy import replace
from engram.model.memory import Memory
from engram.model.records import DOCUMENT_ROLE, Event
from engram.rules.sources import is_evidence
from engram.text.words import word_class

__all__ = [
    "ABOUT_FLOOR",
    "INJECT_FLOOR",
    "LOOKED_UP_RELEVANCE",
    "MAX_NEAREST",
    "MIN_CHUNK_RELEVANCE",
    "MIN_KNOWN",
    "MIN_SHARE_OF_BEST",
    "NEAREST_FLOOR",
    "SURE_RELEVANCE",
    "apply_floor",
    "asks_for_several",
    "best_relevance",
    "check_relevance",
    "derive_hits",
    "filter_hits",
    "filtered_below",
    "fold_events",
    "is_about",
    "is_chunk",
    "is_manifest",
    "is_read",
    "keep_relevant",
    "mark_found_by",
    "mark_looked_up",
    "nearest_hits",
    "put_evidence_last",
]

ABOUT_FLOOR = 0.08
"""The relevance from which a hit counts as being about the question."""
MIN_KNOWN = 0.15
"""The floor for the answers of `recall`; the nearest hits below it are possibly related. docs/benchmarks.md has the
share of unanswerable questions that get no answer above it.
"""
INJECT_FLOOR = 0.05
"""The floor of `inject` and of context blocks. It is lower because a useless line in a prompt costs less than a missing
one.
"""
SURE_RELEVANCE = 0.5
"""Above this, a hit is more likely than not about the question: for callers that act on a hit without showing it to a
person.
"""
MIN_SHARE_OF_BEST = 0.5
"""If one thing is asked for, a hit less than half as likely as the best one is about something else."""
NEAREST_FLOOR = 0.01
"""The floor of the closest results, shown if nothing answers."""
MAX_NEAREST = 3
LOOKED_UP_RELEVANCE = 1.0
"""The relevance of a hit looked up by conflict key, lineage or time; `found_by` in its trace says which."""
_ABOUT_SOMEBODY = frozenset((("know", "about"), ("me", "about"), ("known", "about"), ("everything", "about")))
_PLURAL_BE = frozenset(("are", "were", "aren't", "weren't"))
_PLURAL_VERBS = _PLURAL_BE | frozenset(("do", "have", "don't", "haven't"))
_AUXILIARIES = _PLURAL_VERBS | frozenset(("does", "did", "is", "was", "has", "had", "can", "will", "should"))
_OWNED = frozenset(("my", "our", "the", "your", "his", "her", "their", "these", "those"))
"""Words that begin a subject in the third person: after them, "do" marks a plural."""
_LONGEST_PHRASE = 5
"""The maximum number of words before the verb in which a question names what it asks for."""


def is_about(hit: Hit) -> bool:
    """Whether a hit is relevant enough to answer the question."""
    return hit.relevance >= ABOUT_FLOOR


def best_relevance(hits: Iterable[Hit]) -> float:
    """The highest relevance among hits; 0 if there are none."""
    return max((hit.relevance for hit in hits), default=0.0)


def mark_looked_up(hit: Hit, by: str) -> Hit:
    """Set the relevance of a hit to 1 and name in its trace how it was looked up."""
    return mark_found_by(replace(hit, relevance=LOOKED_UP_RELEVANCE), by)


def mark_found_by(hit: Hit, by: str) -> Hit:
    """Add how a hit was found to its trace."""
    trace = hit.trace or HitTrace()
    return replace(hit, trace=replace(trace, found_by={**trace.found_by, by: 1}))


def check_relevance(value: Any, name: str = "min_relevance") -> float:
    """A caller's relevance as a float. Raises `InvalidInput` unless it is a number from 0 to 1."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise InvalidInput(f"{name} {value!r:.40} must be a number from 0 to 1")
    return float(value)


def apply_floor(hits: Hits, floor: float) -> Hits:
    """The hits at or above a floor; `filtered` names the others."""
    return _cut(hits, floor, f"below {floor:.2f}")


def keep_relevant(hits: Hits, question: str, floor: float = ABOUT_FLOOR, *, several: bool = False) -> Hits:
    """The hits at or above the floor; if the question asks for one thing, only those at least half as likely as the
    best.

    `filtered` names the others. `several` states that the question asks for more than one thing, whatever its words.
    """
    chosen = apply_floor(hits, floor)
    if not floor or several or asks_for_several(question):
        return chosen
    # Evidence from documents sets no standard for people's own statements.
    best = best_relevance(hit for hit in chosen if not is_read(hit)) or best_relevance(chosen)
    return _cut(chosen, MIN_SHARE_OF_BEST * best, f"less than half of the best one's {best:.2f}")


def nearest_hits(hits: Iterable[Hit], floor: float = ABOUT_FLOOR) -> list[Hit]:
    """The few hits below the floor that are closest to a question, best first."""
    near = [hit for hit in hits if NEAREST_FLOOR <= hit.relevance < floor]
    return sorted(near, key=lambda hit: -hit.relevance)[:MAX_NEAREST]


def asks_for_several(question: str) -> bool:
    """Whether a question asks for more than one thing.

    It may ask for everything about somebody ("tell me about"), for a list, a count or a comparison ("all my", "how
    many", "versus"), in the plural ("what are", "which servers", "where do my sisters"), or twice ("and who").
    """
    from engram.text.time.words import words  # the MCP server needs only the constants of this module at start

    keys = [word.key for word in words(question)]
    named = keys[:1] == ["list"] or not word_class("asking", "several").isdisjoint(keys)
    return named or any(starmap(_is_of_several, pairwise(keys))) or _agrees_in_plural(keys)


def _agrees_in_plural(keys: list[str]) -> bool:
    """Whether the verb ("where do my sisters live") or the noun ("which foreign languages do") asks about several."""
    place = next((place for place, key in enumerate(keys[:_LONGEST_PHRASE]) if key in _AUXILIARIES), 0)
    if not place or keys[0] not in ("what", "which", "who", "where"):
        return False
    of_subject = keys[place] in _PLURAL_VERBS and keys[place + 1 : place + 2] and keys[place + 1] in _OWNED
    return bool(of_subject) or (keys[0] in ("what", "which") and place > 1 and _is_plural(keys[place - 1]))


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


def put_evidence_last(hits: Sequence[Hit]) -> list[Hit]:
    """The hits with evidence from documents after people's own statements, as `inject` orders them."""
    said = [place for place, hit in enumerate(hits) if is_about(hit) and not is_read(hit)]
    ahead, rest = (hits[: said[-1] + 1], hits[said[-1] + 1 :]) if said else ([], hits)
    return [*sorted(ahead, key=is_read), *rest]


def is_read(hit: Hit) -> bool:
    """Whether a hit is a memory that is only evidence: read or overheard."""
    return hit.memory is not None and is_evidence(hit.memory)


def filter_hits(hits: Hits, wanted: Callable[[Hit], bool]) -> Hits:
    """The hits that pass a test, with the search's mode and warnings."""
    return derive_hits(hits, (hit for hit in hits if wanted(hit)))


def derive_hits(hits: Hits, chosen: Iterable[Hit]) -> Hits:
    """The chosen hits, with the mode and warnings of the search they came from."""
    made = Hits(list(chosen))
    made.mode, made.warnings, made.filtered = hits.mode, hits.warnings, hits.filtered
    made.terms, made.pruned_terms = hits.terms, hits.pruned_terms
    return made


def filtered_below(hit_id: str, relevance: float, floor: float) -> Filtered:
    """The record of a hit that was left out because it is below a floor."""
    return Filtered(hit_id, f"relevance {relevance:.2f}, below {floor:.2f}")


def _cut(hits: Hits, floor: float, why: str) -> Hits:
    chosen = filter_hits(hits, lambda hit: hit.relevance >= floor)
    left = [Filtered(hit.id, f"relevance {hit.relevance:.2f}, {why}") for hit in hits if hit.relevance < floor]
    chosen.filtered = [*hits.filtered, *left]
    return chosen


MIN_CHUNK_RELEVANCE = 0.05
"""The floor of possibly related document chunks. Chunks are long enough to share words with any question."""
Item = TypeVar("Item")


def fold_events(ranked: Sequence[Item], record_of: Callable[[Item], Memory | Event]) -> list[Item]:
    """The ranked items without events that a memory among them was extracted from."""
    records = [record_of(item) for item in ranked]
    sources = {evidence.event for record in records if isinstance(record, Memory) for evidence in record.evidence}
    return [
        item
        for item, record in zip(ranked, records, strict=True)
        if not (_is_foldable(record) and record.id in sources)
    ]


def is_manifest(event: Event) -> bool:
    """Whether an event records that a document was read."""
    return event.role == DOCUMENT_ROLE and event.event_type == "observation"


def is_chunk(event: Event) -> bool:
    """Whether an event is a chunk of a document."""
    return event.role == DOCUMENT_ROLE and event.event_type == "artifact"


def _is_foldable(record: Memory | Event) -> bool:
    """Whether a memory can replace this record. A chunk cannot be replaced because it says more than the facts
    extracted from it.
    """
    return isinstance(record, Event) and not is_chunk(record)
