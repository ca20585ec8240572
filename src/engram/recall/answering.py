"""Answering a question by what it asks for: what holds, what held, what happened, or how it came to be.

Each intent searches elsewhere. `current`: what is in force. `historical`: what was true in the time asked about, or was
superseded. `event`: the ledger. `lineage`: every version of each fact asked about, in the order in which they were true. A time
phrase is a strict window; only what holds now is answered from outside of it, with a word that it was. What is not about the
question is no answer, however much room the limit leaves.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime

from engram.model.hit import Hit, Hits
from engram.recall.anchoring import EVERY_VERSION, window_of
from engram.recall.question import Question
from engram.recall.refining import BY_RULES
from engram.recall.relevant import NEAR, kept, means_something, relevant
from engram.recall.search import Ask, Searcher
from engram.recall.versions import INSTANT, before_outcome, by_lineage, is_over, overlaps, shown, versions_of
from engram.store.lineages import start_of
from engram.store.protocol import LIVE, Store
from engram.text.time_phrases import Window
from engram.text.time_words import words
from engram.text.tokens import query_terms
from engram.text.word_classes import word_class

WIDE = 30
"""Hits looked at for the versions of facts: those of one fact must not crowd out another."""


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
        window, notes = window_of(question, ask.filters, self.searcher)
        ask = replace(ask, text=question.subject or question.text)
        if question.intent == "current":
            answered = self._current(ask, window)
        elif question.intent == "historical":
            answered = self._historical(ask, window, question)
        elif question.intent == "event":
            answered = self._event(ask, window)
        else:
            answered = self._lineage(ask, window)
        if question.intent != "event" and not any(map(means_something, answered.hits)):
            answered = self._from_ledger(ask, window) or answered
        return replace(answered, notes=(*remarks(question), *notes, *answered.notes))

    def _from_ledger(self, ask: Ask, window: Window | None) -> Answer | None:
        """What was said about it, where no memory was made of it."""
        ledger = replace(ask.filters, kinds=("event",), valid_at=None, as_of=False)
        hits = relevant(self.searcher.search(_within(replace(ask, filters=ledger), window)))
        told = any(map(means_something, hits))
        return Answer(hits, window, ("no memory tells of this; from the ledger",)) if told else None

    def _current(self, ask: Ask, window: Window | None) -> Answer:
        hits = self.searcher.search(_within(ask, window))
        if window is None:
            return Answer(relevant(hits), window)
        if hits and _asks_for_all(ask.text):
            return Answer(hits, window)
        elsewhen = Hits() if any(map(means_something, hits)) else self.searcher.search(ask)
        if hits and not any(map(means_something, elsewhen)):
            return Answer(relevant(hits), window)
        return Answer(relevant(elsewhen), window, ("nothing came in that time; this holds now",))

    def _historical(self, ask: Ask, window: Window | None, question: Question) -> Answer:
        keys = {word.key for word in words(question.text)}
        if window is not None:
            hits = self._at(ask, window, question)
        elif keys & word_class("asking", "at_any_time"):
            hits = self._past(ask, None, EVERY_VERSION)
        else:
            hits = Hits()
        hits = hits or self._past(ask, window, ("superseded", "archived")) or self._past(ask, window, LIVE)
        if hits:
            return Answer(self._ordered(hits, first=bool(keys & word_class("asking", "first_of"))), window)
        note = "nothing else is known of that time" if window else "nothing of this was superseded"
        return Answer(relevant(self.searcher.search(ask)), window, (f"{note}; this is what holds now",))

    def _at(self, ask: Ask, window: Window, question: Question) -> Hits:
        """What was true in the window, where something about the question was."""
        then = replace(ask.filters, valid_at=_moment(window, self.clock()), as_of=True)
        hits = self.searcher.search(replace(ask, filters=then))
        if not any(map(means_something, hits)):
            return Hits()
        if question.relation == "before" and question.window is None and window.until is not None:
            event = window.until.astimezone(question.at.tzinfo)
            hits[:] = [self._before(hit, event) for hit in hits]
        return relevant(hits)

    def _before(self, hit: Hit, event: datetime) -> Hit:
        version = before_outcome(hit.memory, event, self.store) if hit.memory else None
        return hit if version is None or version.id == hit.id else shown(version, hit)

    def _past(self, ask: Ask, window: Window | None, statuses: tuple[str, ...]) -> Hits:
        """What is no longer so: replaced, or come to its end by itself."""
        now = self.clock()
        past = replace(ask.filters, statuses=statuses, valid_at=None, as_of=False)

        def wanted(hit: Hit) -> bool:
            over = statuses != LIVE or is_over(hit.memory, now)
            return over and means_something(hit) and (window is None or overlaps(hit.memory, window, now))

        return kept(self.searcher.search(replace(ask, filters=past)), wanted)

    def _ordered(self, hits: Hits, *, first: bool) -> Hits:
        """Versions of one fact in a row, the latest first; where the first was asked for, the oldest."""

        def start(hit: Hit) -> datetime:
            return start_of(hit.memory) if hit.memory else self.clock()

        hits[:] = [hit for fact in by_lineage(hits) for hit in sorted(fact, key=start, reverse=not first)]
        return hits

    def _event(self, ask: Ask, window: Window | None) -> Answer:
        ledger = replace(ask.filters, kinds=("event",), valid_at=None, as_of=False)
        hits = self.searcher.search(_within(replace(ask, filters=ledger), window))
        if any(map(means_something, hits)):
            return Answer(relevant(hits), window)
        if hits and window is not None and _asks_for_all(ask.text):
            return Answer(_in_time(hits), window)
        # Where nobody keeps a ledger, what was remembered of a happening is all there is.
        remembered = relevant(self.searcher.search(_within(ask, window)))
        note = "the ledger holds nothing of this; from memories"
        if remembered or window is None:
            return Answer(remembered or relevant(hits), window, (note,) if remembered else ())
        elsewhen = self.searcher.search(replace(ask, filters=ledger))
        if any(map(means_something, elsewhen)):
            return Answer(relevant(hits), window, () if hits else ("the ledger tells of this, but not in that time",))
        remembered = relevant(self.searcher.search(ask))
        return Answer(remembered, window, (f"{note} of any time",) if remembered else ())

    def _lineage(self, ask: Ask, window: Window | None) -> Answer:
        """The way of every fact the question is about, one after the other, the likeliest first."""
        every = replace(ask.filters, statuses=EVERY_VERSION, valid_at=None, as_of=False)
        found = self.searcher.search(replace(ask, filters=every, limit=max(WIDE, ask.limit)))
        groups = by_lineage(found)
        if not groups:
            return Answer(relevant(found), window)
        hits = kept(found, lambda hit: False)
        for best, *_ in self._about(groups):
            room = ask.limit - len(hits)
            versions = versions_of(best.memory, self.store) if best.memory else []
            if window is not None:
                versions = [version for version in versions if overlaps(version, window, self.clock())]
            hits.extend(shown(version, best) for version in versions[-room:] if room > 0)
        return Answer(hits, window)

    def _about(self, groups: list[list[Hit]]) -> list[list[Hit]]:
        """The facts a question about change is about: the best one, and others as likely that did change."""
        best, *others = groups
        return [best, *(group for group in others if self._changed(group[0]))]

    def _changed(self, hit: Hit) -> bool:
        about = means_something(hit) and hit.relevance >= NEAR
        return about and hit.memory is not None and len(versions_of(hit.memory, self.store)) > 1


def remarks(question: Question) -> tuple[str, ...]:
    """What a reader must be told of how the question was read: that a model could not, and which times bound nothing."""
    unread = tuple(f"“{phrase}” is no time that can be placed; it bounds nothing" for phrase in question.unread)
    return (question.reason, *unread) if question.reason.startswith(BY_RULES) else unread


def _asks_for_all(question: str) -> bool:
    """Whether a question names nothing but the asking: "what happened", "summarize"."""
    bare = {term for word in word_class("asking", "bare") for term in query_terms(word)}
    return set(query_terms(question)) <= bare


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
