"""Answering a question by what it asks for: what holds, what held, what happened, or how it came to be.

Each intent searches elsewhere. `current`: what is in force. `historical`: what was true in the time asked about, or was
superseded. `event`: the ledger and what is remembered of happenings. `lineage`: every version of each fact asked about, in the order in
which they were true. A time phrase is a strict window; only what holds now is answered from outside of it, with a word that it was.
Once a fact is meant, its versions are chosen by time, and then cut. What is not about the question is no answer, however much room
the limit leaves: where nothing is, the answer is that nothing is known, and the nearest hits stand apart from it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from engram.model.hit import Hits
from engram.model.memory import Memory
from engram.recall.answer.anchors import EVERY_VERSION, AnchoredWindow, window_of
from engram.recall.answer.events import EventAnswerer, asks_for_all, happened, within
from engram.recall.answer.history import (
    INSTANT,
    WIDE,
    FactFinder,
    FactHistory,
    before_outcome,
    is_past_version,
    of_that_value,
    overlaps,
    shown,
)
from engram.recall.answer.lineage import LineageAnswerer, asks_what_changed, asks_when_it_changed
from engram.recall.cutoff import (
    ABOUT,
    HALF,
    LOOKED_UP,
    SURE,
    about,
    among,
    best_of,
    is_about,
    kept,
    nearest,
    said_first,
)
from engram.recall.expansion import BY_RULES
from engram.recall.parse import ParsedQuestion
from engram.recall.search import Ask, Searcher
from engram.recall.trace import TracedAnswer, first
from engram.store.protocol import LIVE, Store
from engram.text.time.windows import Window
from engram.text.time.words import words
from engram.text.verbs import is_past
from engram.text.word_tables import word_class

_HELD_TRUE = frozenset(
    ("think", "thought", "believe", "believed", "assume", "assumed", "expect", "expected", "know", "knew")
)
HOLDS = "what holds now"
CAME_THEN = "what holds and came in that time"
KNOWN_THEN = "what was known at that time"
OVER = "what is over and is about the question"
EVER = "every version that is about the question"
FROM_LEDGER = "what was said, since no memory is as likely about this"
SAYS = "what holds, the time read as words"
AS_FILTERED = "what the filters leave, whatever the question asks for"
READ_LAST = "what was only read stands behind what somebody said"
_CLAUSE = frozenset(("is", "are", "was", "were", "would", "will"))


@dataclass(slots=True)
class Answerer:
    """Answers questions that were understood. Filters that a caller gave stand; a question only narrows what they leave open."""

    searcher: Searcher
    store: Store
    clock: Callable[[], datetime]
    floor: float = ABOUT
    """The least relevance of a hit of the answer."""

    def answer(self, question: ParsedQuestion, ask: Ask) -> TracedAnswer:
        """Search where the question's intent says, or where the caller's filters do."""
        if ask.narrowed:
            every = asks_for_all(question.subject or ask.text)
            hits = self.searcher.search(replace(ask, everything=every, purpose="where the filters say"))
            return self._cut(question, ask, TracedAnswer(hits, question.window, remarks(question), AS_FILTERED))
        anchored = window_of(question, ask.filters, self.searcher)
        ask = replace(ask, text=question.subject or question.text)
        answered = self._cut(question, ask, self._answered(question, ask, anchored))
        if not answered.hits and question.phrase:
            answered = self._outside(question, ask) or answered
        unknown = [name for name in self.facts.unknown(ask) if not any(name in time for time in question.unread)]
        nothing = tuple(f"nothing that is known says “{name}”" for name in unknown)
        notes = (*remarks(question), *anchored.notes, *answered.notes, *nothing)
        return replace(answered, notes=notes, anchor=anchored.told_by)

    def _cut(self, question: ParsedQuestion, ask: Ask, answered: TracedAnswer) -> TracedAnswer:
        """The answer without what is not about the question; where nothing is, with what comes nearest."""
        hits = first(about(answered.hits, question.text, self.floor), ask.limit)
        if not hits:
            return replace(answered, hits=hits, nearest=self._nearest(question, ask, answered.hits))
        answered = replace(answered, hits=hits)
        return _said_first(answered) if question.intent == "current" or ask.narrowed else answered

    def _nearest(self, question: ParsedQuestion, ask: Ask, found: Hits) -> Hits:
        """What comes nearest to a question that nothing answers: of what was found where it looks, else of what holds."""
        near = nearest(found, self.floor)
        if not near and not ask.narrowed:
            anywhere = replace(ask.filters, kinds=("memory", "event"))
            now = replace(ask, text=question.text, filters=anywhere, purpose="what comes nearest")
            near = nearest(self.searcher.search(now), LOOKED_UP)
        return among(found, near)

    def _outside(self, question: ParsedQuestion, ask: Ask) -> TracedAnswer | None:
        """What holds, where nothing is known of the time asked about. A memory may say the time in so many words ("shipped at
        midnight") or tell how things are at any time; only what happened is bound to its own.
        """
        found = about(self.facts.search(replace(ask, text=question.text, purpose=SAYS)), question.text, self.floor)
        saying = kept(found, lambda hit: question.phrase.casefold() in hit.text.casefold())
        if saying:
            return TracedAnswer(saying, None, (f"“{question.phrase}” is part of what is remembered",), SAYS)
        hits = kept(found, lambda hit: hit.memory is not None and not happened(hit.memory))
        if not hits or question.intent not in ("current", "event"):
            return None
        return TracedAnswer(hits, question.window, ("nothing is known of that time; this holds now",), HOLDS)

    @property
    def facts(self) -> FactFinder:
        """What is known, by fact."""
        return FactFinder(self.searcher, self.store, self.clock)

    def _answered(self, question: ParsedQuestion, ask: Ask, anchored: AnchoredWindow) -> TracedAnswer:
        window, timelines = anchored.window, LineageAnswerer(self.facts)
        if asks_what_changed(ask.text, question.intent):
            return timelines.changed(ask, window)
        special = self._when_changed(question, ask, window) or self._thought(question, ask, window)
        if special is not None:
            return special
        if question.intent == "event" or (question.intent == "historical" and self._tells_when(ask, window)):
            return EventAnswerer(self.facts).answer(ask, window, anchored.after)
        if question.intent == "current":
            answered = self._current(question, ask, anchored)
        elif question.intent == "historical":
            answered = self._historical(question, ask, anchored)
        else:
            answered = timelines.of(ask, window)
        best = best_of(answered.hits)
        # The ledger answers only where it is twice as likely; nothing can be, beside a memory of at least one half.
        return answered if best >= SURE else self._from_ledger(ask, window, best) or answered

    def _when_changed(self, question: ParsedQuestion, ask: Ask, window: Window | None) -> TracedAnswer | None:
        """The timeline of a fact whose change's time is asked for; None where no such fact ever changed."""
        if question.intent == "lineage" or not asks_when_it_changed(ask.text):
            return None
        _, histories = self.facts.histories(ask)
        return LineageAnswerer(self.facts).of(ask, window) if histories and histories[0].changed else None

    def _thought(self, question: ParsedQuestion, ask: Ask, window: Window | None) -> TracedAnswer | None:
        """What was known at the time of something held true then: "what did we think the date was in March"."""
        keys = [word.key for word in words(ask.text)]
        held = next((place for place, key in enumerate(keys) if key in _HELD_TRUE), len(keys))
        if window is None or question.intent == "current" or _CLAUSE.isdisjoint(keys[held:]):
            return None
        then = replace(ask.filters, known_at=_moment(window, self.clock()))
        hits = self.searcher.search(replace(ask, filters=then, purpose=KNOWN_THEN))
        hits[:] = [replace(hit, note=self._since(hit.id)) for hit in hits]
        return TracedAnswer(hits, window, (), KNOWN_THEN) if any(map(is_about, hits)) else None

    def _since(self, memory_id: str) -> str:
        """What became of a memory that was in force then."""
        memory = self.store.get(memory_id)
        return memory.status if memory is not None and memory.status not in LIVE else ""

    def _tells_when(self, ask: Ask, window: Window | None) -> bool:
        """Whether a "when" is best answered by a happening and not by how long something was so."""
        if [word.key for word in words(ask.text)][:1] != ["when"]:
            return False
        both = replace(ask.filters, kinds=("event", "memory"), statuses=EVERY_VERSION, valid_at=None, as_of=False)
        found = self.searcher.search(
            within(replace(ask, filters=both, purpose="whether it happened or was so"), window)
        )
        best = max(found, key=lambda hit: hit.relevance, default=None)
        told = best is not None and (best.memory is None or (happened(best.memory) and not best.memory.conflict_key))
        return told and best is not None and is_about(best)

    def _from_ledger(self, ask: Ask, window: Window | None, rival: float) -> TracedAnswer | None:
        """What was said about it, where no memory was made of it; `rival` is the relevance of the best memory found."""
        ledger = replace(ask.filters, kinds=("event",), valid_at=None, as_of=False)
        hits = self.facts.search(within(_wide(replace(ask, filters=ledger, purpose="the ledger")), window))
        best = best_of(hits)
        if not hits or best < self.floor or rival >= HALF * best:
            return None
        return TracedAnswer(hits, window, ("no memory tells of this; from the ledger",), FROM_LEDGER)

    def _current(self, question: ParsedQuestion, ask: Ask, anchored: AnchoredWindow) -> TracedAnswer:
        window = anchored.window
        if window is None:
            return TracedAnswer(self.facts.search(_wide(ask)), window, (), HOLDS)
        if question.phrase.lower().startswith("as of"):
            return self._historical(question, ask, anchored)
        every = asks_for_all(ask.text) and word_class("asking", "manner").isdisjoint(
            word.key for word in words(ask.text)
        )
        hits = self.facts.search(within(replace(ask, everything=every, purpose=CAME_THEN), window))
        if hits and every:
            return TracedAnswer(hits, window, (), CAME_THEN)
        now = replace(ask, text=question.text, purpose="what holds, whenever it came")
        elsewhen = Hits() if any(map(is_about, hits)) else self.facts.search(now)
        if hits and not any(map(is_about, elsewhen)):
            return TracedAnswer(hits, window, (), CAME_THEN)
        if window.until is not None and window.until <= self.clock():
            return self._historical(question, ask, anchored)
        return TracedAnswer(elsewhen, window, ("nothing came in that time; this holds now",), HOLDS)

    def _historical(self, question: ParsedQuestion, ask: Ask, anchored: AnchoredWindow) -> TracedAnswer:
        window, keys = anchored.window, {word.key for word in words(question.text)}
        found, histories = self.facts.histories(ask)
        if window is None and keys & word_class("asking", "at_any_time"):
            return TracedAnswer(found, window, (), EVER)
        if window is not None and window.until is not None and _is_before_an_event(question):
            event = window.until.astimezone(question.at.tzinfo)
            held = [self._just_before(history, event) for history in histories]
        else:
            held = [self._held(history, ask.text, window, _value_left(question, anchored)) for history in histories]
        oldest_first = bool(keys & word_class("asking", "first_of")) or bool(anchored.after)
        told = [
            (history, versions if oldest_first else versions[::-1])
            for history, versions in zip(histories, held, strict=True)
        ]
        hits = among(
            found, [shown(version, history.best) for history, versions in told for version in versions][: ask.limit]
        )
        if hits:
            method = f"the versions {'of that time' if window else 'that are over'}, {'oldest' if oldest_first else 'latest'} first"
            return TracedAnswer(hits, window, (), method)
        hits = self._past(ask, window)
        return TracedAnswer(hits, window, (), OVER) if hits else self._not_superseded(ask, histories, window)

    def _held(self, history: FactHistory, question: str, window: Window | None, left: str) -> list[Memory]:
        """The versions that were so in the window; without one, those that no longer are. Of these the one whose value is named."""
        now, named = self.clock(), of_that_value(history.versions, question)
        if window is None:
            return named or [version for version in history.versions if is_past_version(version, now)]
        held = [version for version in history.versions if overlaps(version, window, now) and version.id != left]
        return [version for version in held if version in named] or held

    def _just_before(self, history: FactHistory, event: datetime) -> list[Memory]:
        held = [v for v in history.versions if overlaps(v, Window(event - INSTANT, event), self.clock())]
        return [before_outcome(version, event, history.versions) for version in held[-1:]]

    def _past(self, ask: Ask, window: Window | None) -> Hits:
        """What is over and is about the question, where what holds now is likelier."""
        past = replace(ask.filters, statuses=("superseded", "archived"), valid_at=None, as_of=False)
        found, now = self.facts.search(replace(ask, filters=past, purpose=OVER)), self.clock()

        return kept(found, lambda hit: is_about(hit) and (window is None or overlaps(hit.memory, window, now)))

    def _not_superseded(self, ask: Ask, histories: Sequence[FactHistory], window: Window | None) -> TracedAnswer:
        hits = self.facts.search(replace(ask, purpose=HOLDS))
        best = histories[0].best.memory if histories else None
        if window is None and best is not None and happened(best) and best.id in {hit.id for hit in hits}:
            return TracedAnswer(hits, window, (), HOLDS)
        if not any(map(is_about, hits)):
            return TracedAnswer(hits, window, ("nothing is known of that time",) if window else (), HOLDS)
        note = "nothing else is known of that time" if window else "nothing of this was superseded"
        return TracedAnswer(hits, window, (f"{note}; this is what holds now",), HOLDS)


def _is_before_an_event(question: ParsedQuestion) -> bool:
    return question.relation == "before" and question.window is None


def _value_left(question: ParsedQuestion, anchored: AnchoredWindow) -> str:
    """The version that was over by then, where the time is told by its value alone: Rome's in "after Rome"."""
    told_by_a_verb = any(is_past(word.key, same=True) for word in words(question.anchor))
    return "" if told_by_a_verb else anchored.after


def _wide(ask: Ask) -> Ask:
    """The same for enough hits that those below the floor can go before the limit cuts."""
    return replace(ask, limit=max(ask.limit, WIDE))


def _said_first(answered: TracedAnswer) -> TracedAnswer:
    """What was only read behind what somebody said; the method tells where that moved a hit."""
    hits, before = answered.hits, [hit.id for hit in answered.hits]
    hits[:] = said_first(hits)
    moved = before != [hit.id for hit in hits]
    return replace(answered, method=f"{answered.method}; {READ_LAST}") if moved else answered


def remarks(question: ParsedQuestion) -> tuple[str, ...]:
    """What a reader must be told of how the question was read: that a model could not, and which times bound nothing."""
    unread = tuple(f"“{phrase}” is no time that can be placed; it bounds nothing" for phrase in question.unread)
    return (question.reason, *unread) if question.reason.startswith(BY_RULES) else unread


def _moment(window: Window, now: datetime) -> datetime:
    """The moment of a window whose truth is asked for: its end, or now where it is still open."""
    if window.until is not None and window.until <= now:
        return window.until - INSTANT
    return now if window.since is None or window.since <= now else window.since
