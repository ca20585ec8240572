"""Times told by an event ("before I moved"): looked up in what is remembered of it, else in the ledger."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from engram.model.hit import Hit
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
"""The statuses of what is, or once was, so."""


@dataclass(frozen=True, slots=True)
class AnchoredWindow:
    """The window of a question, what there is to say of it, and where it hangs on an event: the id of what tells of that, and of
    what the window comes after.
    """

    window: Window | None
    notes: tuple[str, ...] = ()
    after: str = ""
    told_by: str = ""


def window_of(question: ParsedQuestion, filters: Filters, searcher: Searcher) -> AnchoredWindow:
    """The question's window; one that hangs on an event is looked up."""
    if question.window is not None or not query_terms(question.anchor) or _its_own_change(question):
        return AnchoredWindow(question.window)
    told = _told(question.anchor, filters, searcher)
    moment = _moment_of(told) if told is not None else None
    if told is None or moment is None:
        return AnchoredWindow(None, (f"when “{question.anchor}” was is not known",))
    if question.relation == "after":
        return AnchoredWindow(Window(moment, None), after=told.id, told_by=told.id)
    if question.relation == "before":
        return AnchoredWindow(Window(None, moment), told_by=told.id)
    return AnchoredWindow(_during(told, moment), told_by=told.id)


def _its_own_change(question: ParsedQuestion) -> bool:
    """Whether the event is the change of what is asked about: "before I changed it". Its versions tell what was before."""
    told = [word.key for word in words(question.anchor)]
    return question.relation == "before" and bool(_IT & set(told)) and any(revises(key, loosely=True) for key in told)


def _told(anchor: str, filters: Filters, searcher: Searcher) -> Hit | None:
    """What tells of the event, in memories or the ledger. The question takes it for granted that there is one, so the nearest
    will do.
    """
    wide = replace(filters, kinds=("memory", "event"), statuses=EVERY_VERSION, valid_at=None, as_of=False, types=None,
                   since=None, until=None)  # fmt: skip
    found = searcher.search(SearchQuery(anchor, 5, filters=wide, min_relevance=NEAREST, purpose=f"when “{anchor}” was"))
    return max(found, key=lambda hit: hit.relevance, default=None)


def _moment_of(hit: Hit) -> datetime | None:
    return start_of(hit.memory) if hit.memory else hit.event.at if hit.event else None


def _during(told: Hit, moment: datetime) -> Window:
    """As long as what is told of lasted; a happening lasts its day."""
    if told.memory is not None and told.memory.valid_until is not None:
        return Window(moment, told.memory.valid_until)
    day = moment.replace(hour=0, minute=0, second=0, microsecond=0)
    return Window(day, day + timedelta(days=1))
