"""The trace of an answer: the parsed question, each search, and the reason each document is or is not in the answer."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from engram.model.hit import AnswerParts, Filtered, Hit, Hits, SearchTrace
from engram.model.lazy import dataclass, field
from engram.model.memory import LIVE_STATUSES
from engram.recall.cutoff import derive_hits, filter_hits
from engram.store.protocol import Filters
from engram.text.time.windows import Window

if TYPE_CHECKING:
    from engram.recall.parse import ParsedQuestion

OTHER_MATCHES = "what else matches"
"""The purpose of the search for the parts of an answer besides its hits."""
_KINDS = {"memory": "memories", "event": "the session log"}


@dataclass(frozen=True, slots=True)
class TracedAnswer:
    """The hits of an answer, and the window once an anchor such as "before I moved" is resolved."""

    hits: Hits
    window: Window | None
    notes: tuple[str, ...] = ()
    method: str = ""
    """How the hits were chosen and ordered."""
    anchor: str = ""
    """The id of the hit that dates the anchor."""
    parts: AnswerParts = field(default_factory=AnswerParts)
    """What matches besides the hits."""


@dataclass(frozen=True, slots=True)
class Trace:
    """The trace of one recall. Each of its hits has the parts of its score."""

    question: "ParsedQuestion"
    """How it was parsed: the intent and the reason, the time phrase, the anchor, the search text."""
    window: Window | None
    """The time it was answered for, with anchors resolved."""
    anchor: str
    """The id of the hit that dates the anchor; "" if there is none."""
    searches: tuple[SearchTrace, ...]
    """All searches, in order."""
    method: str
    """How the hits were selected and ordered."""
    origins: Mapping[str, str]
    """For each hit, by id, the reason it is in the answer."""
    filtered: tuple[Filtered, ...]
    """The documents found that are in no part of the answer, with the reason."""


def build_trace(question: "ParsedQuestion", answer: TracedAnswer, searches: Sequence[SearchTrace]) -> Trace:
    """The trace of an answer and its searches."""
    # The hit that dates an anchor need not be about the question.
    own = {number: search for number, search in enumerate(searches, 1) if search.text != question.anchor}
    for_hits = {number: search for number, search in own.items() if search.purpose != OTHER_MATCHES}
    origins = {hit.id: _origin(hit, for_hits) for hit in answer.hits}
    in_answer = origins.keys() | answer.parts.ids
    left: dict[str, Filtered] = {}
    for one in _reasons(answer, own):
        if one.id not in in_answer:
            left.setdefault(one.id, one)
    filtered = tuple(left.values())
    return Trace(question, answer.window, answer.anchor, tuple(searches), answer.method, origins, filtered)


def _origin(hit: Hit, searches: Mapping[int, SearchTrace]) -> str:
    found_by = hit.trace.found_by if hit.trace is not None else {}
    fact = hit.trace.version_of if hit.trace is not None else ""
    if fact:
        return f"another version of {fact}: {_searches_of(fact, searches) or 'looked up by its conflict key'}"
    if "lineage" in found_by:
        return "looked up: a version on either side of a change"
    named = "looked up by its conflict key" if "key" in found_by else ""
    found = _searches_of(hit.id, searches)
    return f"{found}; the question names its conflict key" if found and named else found or named


def _searches_of(memory_id: str, searches: Mapping[int, SearchTrace]) -> str:
    numbers = [str(number) for number, search in searches.items() if memory_id in search.found]
    return f"found by search {', '.join(numbers)}" if numbers else ""


def _reasons(answer: TracedAnswer, searches: Mapping[int, SearchTrace]) -> Iterator[Filtered]:
    """Why each document found is not in the answer; the first of several reasons counts."""
    yield from answer.hits.filtered
    for number, search in searches.items():
        for found in search.found:
            yield Filtered(found, f"found by search {number}, not part of the answer")
    for number, search in searches.items():
        yield from search.filtered
        for beyond in search.cut:
            yield Filtered(beyond, f"beyond the limit of {search.limit} in search {number}")


def drop_hits(hits: Hits, unwanted: Callable[[Hit], bool], reason: str) -> Hits:
    """The hits without the unwanted ones; `filtered` names those with the reason."""
    left = [Filtered(hit.id, reason) for hit in hits if unwanted(hit)]
    if not left:
        return hits
    rest = filter_hits(hits, lambda hit: not unwanted(hit))
    rest.filtered = [*hits.filtered, *left]
    return rest


def first_hits(hits: Hits, limit: int) -> Hits:
    """The hits up to the limit; `filtered` names the others."""
    rest = derive_hits(hits, hits[:limit])
    rest.filtered = [*hits.filtered, *(Filtered(hit.id, f"beyond the limit of {limit}") for hit in hits[limit:])]
    return rest


def describe_filters(filters: Filters) -> str:
    """The filters of a search in words."""
    parts = [" and ".join(_KINDS.get(kind, kind) for kind in filters.kinds)]
    if "memory" in filters.kinds:
        parts.append(_state(filters))
    parts += [f"{name} {', '.join(given)}" for name, given in _filter_values(filters).items() if given]
    parts += [f"{name} {_day(moment)}" for name, moment in _times(filters).items() if moment is not None]
    parts += [name for name in ("pinned", "critical") if getattr(filters, name)]
    parts += [f"metadata {key}={value!r}" for key, value in filters.metadata.items()]
    return "; ".join(parts)


def _state(filters: Filters) -> str:
    if filters.as_of or filters.known_at is not None:
        return "of that time"
    if filters.statuses is None:
        return "any status"
    return (
        "current" if filters.statuses == LIVE_STATUSES and filters.valid_at else f"status {', '.join(filters.statuses)}"
    )


def _filter_values(filters: Filters) -> dict[str, tuple[str, ...] | None]:
    return {
        "scope": filters.scopes,
        "type": filters.types,
        "tag": filters.tags,
        "domain": (filters.domain,) if filters.domain else None,
        "session": filters.parents,
        "said by": filters.roles,
    }


def _times(filters: Filters) -> dict[str, datetime | None]:
    return {
        "from": filters.since,
        "until": filters.until,
        "true at": filters.valid_at if filters.as_of else None,
        "known at": filters.known_at,
    }


def _day(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
