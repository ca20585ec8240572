"""Windows anchored to an event ("before I moved"): the event is looked up in memories and the session log."""

from datetime import datetime, timedelta

from engram.model.hit import Hit
from engram.model.lazy import dataclass, replace
from engram.recall.cutoff import NEAREST
from engram.recall.parse import ParsedQuestion
from engram.recall.query import SearchQuery
from engram.recall.search import Searcher
from engram.store.lineage import start_of
from engram.store.protocol import LIVE, Filters
from engram.text.time.windows import Window
from engram.text.time.words import words
from engram.text.tokens import query_terms
from engram.text.verbs import revises

__all__ = ["EVERY_VERSION", "AnchoredWindow", "window_of"]

_IT = frozenset(("it", "them", "that", "this", "they", "these"))
EVERY_VERSION = (*LIVE, "superseded", "archived")
"""The statuses of memories that are true, or once were."""


@dataclass(frozen=True, slots=True)
class AnchoredWindow:
    """The window of a question, with warnings about it. Where it is anchored to an event, `anchor_id` is the id of the hit that dates
    it, and `after` the same where the window follows the event.
    """

    window: Window | None
    notes: tuple[str, ...] = ()
    after: str = ""
    anchor_id: str = ""


def window_of(question: ParsedQuestion, filters: Filters, searcher: Searcher) -> AnchoredWindow:
    """The question's window; an anchor is looked up."""
    if question.window is not None or not query_terms(question.anchor) or _its_own_change(question):
        return AnchoredWindow(question.window)
    dated = _dated_by(question.anchor, filters, searcher)
    moment = _moment_of(dated) if dated is not None else None
    if dated is None or moment is None:
        return AnchoredWindow(None, (f"It is not known when “{question.anchor}” was.",))
    if question.relation == "after":
        return AnchoredWindow(Window(moment, None), after=dated.id, anchor_id=dated.id)
    if question.relation == "before":
        return AnchoredWindow(Window(None, moment), anchor_id=dated.id)
    return AnchoredWindow(_during(dated, moment), anchor_id=dated.id)


def _its_own_change(question: ParsedQuestion) -> bool:
    """Whether the anchor is a change of the fact itself: "before I changed it". Then its versions show what was before."""
    told = [word.key for word in words(question.anchor)]
    return question.relation == "before" and bool(_IT & set(told)) and any(revises(key, loosely=True) for key in told)


def _dated_by(anchor: str, filters: Filters, searcher: Searcher) -> Hit | None:
    """The memory or logged event that dates the anchor. The question assumes there is one, so the closest match will do."""
    wide = replace(filters, kinds=("memory", "event"), statuses=EVERY_VERSION, valid_at=None, as_of=False, types=None,
                   since=None, until=None)  # fmt: skip
    found = searcher.search(SearchQuery(anchor, 5, filters=wide, min_relevance=NEAREST, purpose=f"when “{anchor}” was"))
    return max(found, key=lambda hit: hit.relevance, default=None)


def _moment_of(hit: Hit) -> datetime | None:
    return start_of(hit.memory) if hit.memory else hit.event.at if hit.event else None


def _during(dated: Hit, moment: datetime) -> Window:
    """The time a memory was valid; an event lasts its day."""
    if dated.memory is not None and dated.memory.valid_until is not None:
        return Window(moment, dated.memory.valid_until)
    day = moment.replace(hour=0, minute=0, second=0, microsecond=0)
    return Window(day, day + timedelta(days=1))
