"""Answering a question by what it asks for: what holds, what held, what happened, or how it came to be.

Each intent searches elsewhere. `current`: what is in force. `historical`: what was true in the time asked about, or was
superseded. `event`: the ledger. `lineage`: every version of the fact, in the order in which they were true. A time phrase is a
strict window; only what holds now is answered from outside of it, with a word that it was.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from engram.model.hit import Hit, Hits
from engram.model.memory import Memory
from engram.recall.question import Question
from engram.recall.refining import BY_RULES
from engram.recall.relevant import means_something
from engram.recall.search import Ask, Searcher
from engram.store.lineages import start_of
from engram.store.protocol import LIVE, Filters, Store
from engram.text.time_phrases import Window
from engram.text.tokens import query_terms

INSTANT = timedelta(microseconds=1)
_OF_NOTHING = frozenset(
    term
    for word in [
        "what",
        "which",
        "who",
        "how",
        "when",
        "happen",
        "happened",
        "happening",
        "go",
        "goes",
        "going",
        "went",
        "on",
        "say",
        "said",
        "told",
        "tell",
        "do",
        "did",
        "done",
        "doing",
        "event",
        "events",
        "take",
        "took",
        "taken",
        "place",
        "summarize",
        "summary",
        "recap",
        "occur",
        "occurred",
        "thing",
        "things",
        "everything",
        "anything",
        "all",
        "was",
        "were",
        "is",
        "are",
        "there",
        "me",
        "us",
        "we",
        "i",
        "you",
        "our",
        "my",
        "the",
        "a",
        "an",
        "of",
        "in",
        "at",
        "to",
        "up",
        "new",
        "give",
        "list",
        "show",
    ]
    for term in query_terms(word)
)
EVERY_VERSION = (*LIVE, "superseded", "archived")


@dataclass(frozen=True, slots=True)
class Answer:
    """What was found, and the window it was found in once an anchor such as "before I moved" was resolved."""

    hits: Hits
    window: Window | None
    notes: tuple[str, ...] = field(default=())


@dataclass(slots=True)
class Answering:
    """Answers questions that were understood. Filters that a caller gave stand; a question only narrows what they leave open."""

    searcher: Searcher
    store: Store
    clock: Callable[[], datetime]

    def answer(self, question: Question, ask: Ask) -> Answer:
        """Search where the question's intent says."""
        window, notes = self._window(question, ask)
        notes = (question.reason, *notes) if question.reason.startswith(BY_RULES) else notes
        answered = {
            "current": self._current,
            "historical": self._historical,
            "event": self._event,
            "lineage": self._lineage,
        }[question.intent](replace(ask, text=question.subject or question.text), window)
        return replace(answered, notes=(*notes, *answered.notes))

    def _current(self, ask: Ask, window: Window | None) -> Answer:
        hits = self.searcher.search(_within(ask, window))
        if hits or window is None:
            return Answer(hits, window)
        return Answer(self.searcher.search(ask), window, ("nothing came in that time; this holds now",))

    def _historical(self, ask: Ask, window: Window | None) -> Answer:
        now = self.clock()
        if window is not None:
            then = replace(ask.filters, valid_at=_moment(window, now), as_of=True)
            hits = self.searcher.search(replace(ask, filters=then))
            if any(means_something(hit) for hit in hits):
                return Answer(hits, window)
        hits = self._past(ask, window, ("superseded", "archived")) or self._past(ask, window, LIVE)
        if hits:
            return Answer(hits, window)
        note = "nothing else is known of that time" if window else "nothing of this was superseded"
        return Answer(self.searcher.search(ask), window, (f"{note}; this is what holds now",))

    def _past(self, ask: Ask, window: Window | None, statuses: tuple[str, ...]) -> Hits:
        """What is no longer so: replaced, or come to its end by itself."""
        now = self.clock()
        past = replace(ask.filters, statuses=statuses, valid_at=None, as_of=False)

        def wanted(hit: Hit) -> bool:
            over = statuses != LIVE or _is_over(hit.memory, now)
            return over and means_something(hit) and (window is None or _overlaps(hit.memory, window, now))

        return _kept(self.searcher.search(replace(ask, filters=past)), wanted)

    def _event(self, ask: Ask, window: Window | None) -> Answer:
        ledger = replace(ask.filters, kinds=("event",), valid_at=None, as_of=False)
        hits = self.searcher.search(_within(replace(ask, filters=ledger), window))
        if any(means_something(hit) for hit in hits):
            return Answer(hits, window)
        if hits and window is not None and _asks_for_all(ask.text):
            return Answer(_in_time(hits), window)
        # Where nobody keeps a ledger, what was remembered of a happening is all there is.
        remembered = self.searcher.search(_within(ask, window))
        note = "the ledger holds nothing of this; from memories"
        if remembered or window is None:
            return Answer(remembered or hits, window, (note,) if remembered else ())
        elsewhen = self.searcher.search(replace(ask, filters=ledger))
        if any(means_something(hit) for hit in elsewhen):
            return Answer(hits, window, () if hits else ("the ledger tells of this, but not in that time",))
        remembered = self.searcher.search(ask)
        return Answer(remembered, window, (f"{note} of any time",) if remembered else ())

    def _lineage(self, ask: Ask, window: Window | None) -> Answer:
        every = replace(ask.filters, statuses=EVERY_VERSION, valid_at=None, as_of=False)
        found = self.searcher.search(replace(ask, filters=every))
        best = next((hit for hit in found if hit.memory is not None), None)
        if best is None or best.memory is None:
            return Answer(found, window)
        versions = self.store.lineage(best.memory.lineage) if best.memory.lineage else [best.memory]
        kept = [m for m in versions if m.status not in ("retired", "rejected")]
        if window is not None:
            kept = [m for m in kept if _overlaps(m, window, self.clock())]
        hits = Hits([_version(memory, best) for memory in kept[-ask.limit :]])
        hits.mode, hits.warnings, hits.terms = found.mode, found.warnings, found.terms
        return Answer(hits, window)

    def _window(self, question: Question, ask: Ask) -> tuple[Window | None, tuple[str, ...]]:
        """The question's window; one that hangs on an event is looked up."""
        if question.window is not None or not question.anchor or not query_terms(question.anchor):
            return question.window, ()
        moment = self._when(question.anchor, ask.filters)
        if moment is None:
            return None, (f"when “{question.anchor}” was is not known",)
        if question.relation == "after":
            return Window(moment, None), ()
        if question.relation == "before":
            return Window(None, moment), ()
        day = moment.replace(hour=0, minute=0, second=0, microsecond=0)
        return Window(day, day + timedelta(days=1)), ()

    def _when(self, anchor: str, filters: Filters) -> datetime | None:
        """When the event a phrase hangs on was: by what is remembered of it, else by the ledger."""
        wanted = set(query_terms(anchor))
        for kind, statuses in (("memory", EVERY_VERSION), ("event", LIVE)):
            wide = replace(filters, kinds=(kind,), statuses=statuses, valid_at=None, as_of=False, types=None,
                           since=None, until=None)  # fmt: skip
            found = self.searcher.search(Ask(anchor, 5, filters=wide))
            # Of several that speak of it, the one that says most of its words; among those, the best hit.
            best = max(found, key=lambda hit: len(wanted & set(query_terms(hit.text))), default=None)
            if best is not None and wanted & set(query_terms(best.text)):
                return start_of(best.memory) if best.memory else best.event.at if best.event else None
        return None


def _asks_for_all(question: str) -> bool:
    """Whether a question names nothing but the asking: "what happened", "summarize"."""
    return set(query_terms(question)) <= _OF_NOTHING


def _in_time(hits: Hits) -> Hits:
    """What happened, in the order in which it did."""
    hits.sort(key=lambda hit: (hit.event.at.timestamp() if hit.event else 0.0, hit.event.seq if hit.event else 0))
    return hits


def _within(ask: Ask, window: Window | None) -> Ask:
    if window is None:
        return ask
    given = ask.filters
    return replace(ask, filters=replace(given, since=given.since or window.since, until=given.until or window.until))


def _moment(window: Window, now: datetime) -> datetime:
    """The moment of a window whose truth is asked for: its end, or now where it is still open."""
    if window.until is not None and window.until <= now:
        return window.until - INSTANT
    return now if window.since is None or window.since <= now else window.since


def _is_over(memory: Memory | None, now: datetime) -> bool:
    return memory is not None and memory.valid_until is not None and memory.valid_until <= now


def _overlaps(memory: Memory | None, window: Window, now: datetime) -> bool:
    if memory is None:
        return False
    until = memory.valid_until or now + INSTANT
    return (window.until is None or start_of(memory) < window.until) and (window.since is None or until > window.since)


def _kept(hits: Hits, wanted: Callable[[Hit], bool]) -> Hits:
    kept = Hits([hit for hit in hits if wanted(hit)])
    kept.mode, kept.warnings, kept.terms = hits.mode, hits.warnings, hits.terms
    return kept


def _version(memory: Memory, best: Hit) -> Hit:
    note = "" if memory.status in LIVE else memory.status
    return Hit(memory.id, "memory", best.score, memory.statement, memory, metadata=memory.metadata, trace=best.trace,
               relevance=best.relevance, note=note)  # fmt: skip
