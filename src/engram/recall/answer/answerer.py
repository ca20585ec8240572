"""Answers a question by its intent: the current value, a past value, an event, or the history of a fact.

Each intent searches different records. `current` searches current memories and events in one ranking. `historical`
searches versions that were true in the window or, without a window, superseded ones. `event` searches the session log
and memories of events. `lineage` returns every version of each fact, in the order they were true.

A time phrase is a strict window; only current memories are returned from outside it, with a warning. The versions of a
fact are selected by time before the limit applies. Hits that are not about the question are left out even if the limit
leaves room. Other matches are separate parts of the answer, see `parts.py`.
"""

from collections.abc import Callable, Sequence
from datetime import datetime

from engram.model.hit import AnswerParts, Hit, Hits, HitTrace, Part
from engram.model.lazy import dataclass, replace
from engram.model.memory import LIVE_STATUSES, Memory
from engram.recall.answer.events import (
    AS_GOOD_SHARE,
    BEST_FIRST,
    MEMORIES_INSTEAD,
    EventAnswerer,
    asks_for_all,
    is_event_memory,
    names_only_acts,
    restrict_to_window,
)
from engram.recall.answer.history import (
    EVERY_VERSION,
    INSTANT,
    VERSION_SEARCH_LIMIT,
    AnchoredWindow,
    FactFinder,
    FactHistory,
    before_outcome,
    changes_within,
    is_past_version,
    overlaps,
    select_by_value,
    version_hit,
    versions_of,
    window_of,
)
from engram.recall.answer.parts import PartFinder
from engram.recall.coverage import find_covering_less
from engram.recall.cutoff import (
    LOOKED_UP_RELEVANCE,
    MIN_KNOWN,
    MIN_SHARE_OF_BEST,
    NEAREST_FLOOR,
    SURE_RELEVANCE,
    apply_floor,
    best_relevance,
    derive_hits,
    filter_hits,
    is_about,
    keep_relevant,
    nearest_hits,
    put_evidence_last,
)
from engram.recall.freshness import (
    Replacements,
    find_other_tense,
    find_replacements,
    note_replacements,
    put_change_first,
    put_current_first,
)
from engram.recall.parse import ParsedQuestion
from engram.recall.query import SearchQuery, is_selected, may_answer
from engram.recall.questions import BY_RULES
from engram.recall.search import Searcher
from engram.recall.trace import TracedAnswer, drop_hits, first_hits
from engram.rules.numbers import RELEVANCE_SCALE
from engram.store.protocol import Filters, Store
from engram.store.records import start_of
from engram.text.time.windows import Window
from engram.text.time.words import words
from engram.text.tokens import query_terms, tokens
from engram.text.words import is_past, kind_of, revises, word_class

MOST_SUPERSEDED = 5_000
"""The maximum number of superseded memories, newest first, that are read to find changes in a window."""
VERSIONS = "the versions of each fact asked about, oldest first"
CHANGES = "superseded memories, before and after each change; listed, not searched"
_ACTORS = frozenset(("i", "we", "you", "he", "she", "they", "who"))
_ANYTHING_KNOWN = frozenset(("fact", "facts", "memory", "memories", "information", "stuff", "lately", "recently"))
_BY_LINEAGE = HitTrace((Part("match", RELEVANCE_SCALE),), {"lineage": 1})


@dataclass(slots=True)
class LineageAnswerer:
    """Answers questions about the history of facts."""

    facts: FactFinder

    def answer_histories(self, query: SearchQuery, window: Window | None) -> TracedAnswer:
        """The history of every fact the question is about, one after the other, the most likely fact first."""
        found, histories = self.facts.find_histories(query)
        if not histories:
            return TracedAnswer(found, window, (), VERSIONS)
        chosen = [(history, self._within(history, window)) for history in _about(histories)]
        changed = window is None or any(changes_within(history.versions, window) for history, _ in chosen)
        notes = () if changed or not chosen else ("It did not change in that time.",)
        hits, left = _cut(
            [[history.version_hit(version) for version in versions] for history, versions in chosen], query.limit
        )
        return TracedAnswer(derive_hits(found, hits), window, (*notes, *left), VERSIONS)

    def answer_changes(self, query: SearchQuery, window: Window | None) -> TracedAnswer:
        """Every fact that changed in the window: the versions before and after each change, in chronological order."""
        past = replace(query.filters, kinds=("memory",), statuses=("superseded",), valid_at=None, as_of=False)
        gone = self.facts.store.listing(past, MOST_SUPERSEDED)
        lineages = {memory.lineage: memory for memory in gone if memory.lineage and _ended_in(memory, window)}
        histories = [changes_within(self._versions(memory, query), window) for memory in lineages.values()]
        histories = sorted((history for history in histories if history), key=lambda history: start_of(history[1]))
        hits, left = _cut(
            [[version_hit(version, _hit(version)) for version in history] for history in histories], query.limit
        )
        if not hits:
            left = ("No known fact changed" + (" in that time." if window else "."),)
        if len(gone) == MOST_SUPERSEDED:
            left = (*left, f"Only the newest {MOST_SUPERSEDED} superseded memories were searched.")
        return TracedAnswer(Hits(hits), window, left, CHANGES)

    def _versions(self, memory: Memory, query: SearchQuery) -> list[Memory]:
        return versions_of(memory, self.facts.store, query.filters)

    def _within(self, history: FactHistory, window: Window | None) -> list[Memory]:
        """The versions of a fact before and after its changes in the window, and those true in it."""
        if window is None:
            return list(history.versions)
        now = self.facts.clock()
        true_then = {version.id for version in history.versions if overlaps(version, window, now)}
        sides = {version.id for version in changes_within(history.versions, window)}
        return [version for version in history.versions if version.id in true_then | sides]


def asks_when_it_changed(question: str) -> bool:
    """Whether the question asks when something changed: "when did the launch date change", but not "when did I change the lock"."""
    keys = [word.key for word in words(question)]
    changed = any(kind_of(key) == "change" or revises(key) for key in keys[1:])
    return keys[:1] == ["when"] and changed and _ACTORS.isdisjoint(keys)


def asks_when(question: str) -> bool:
    """Whether the question asks for a time: "when did we decide", "on which day"."""
    keys = [word.key for word in words(question)]
    return "when" in keys or (keys[:1] == ["on"] and "day" in keys[:4])


def asks_for_a_change(question: str) -> bool:
    """Whether the question names a change: "when did we change banks", "when was the machine replaced"."""
    return any(kind_of(word.key) == "change" or revises(word.key, loosely=True) for word in words(question))


def asks_what_changed(question: str, intent: str) -> bool:
    """Whether the question asks for everything that changed: "what changed", "what is different", but not "what did I change"."""
    keys = [word.key for word in words(question)]
    by_itself = any(kind_of(key) == "change" for key in keys) and _ACTORS.isdisjoint(keys)
    return _names_only_the_change(keys) and (intent == "lineage" or (intent != "current" and by_itself))


def _names_only_the_change(keys: Sequence[str]) -> bool:
    bare = (
        _ANYTHING_KNOWN
        | word_class("asking", "bare")
        | word_class("asking", "differing")
        | word_class("asking", "version_noun")
    )
    return all(
        key in bare or kind_of(key) == "change" or revises(key) or not query_terms(f"x {key}")[1:] for key in keys
    )


def _about(histories: Sequence[FactHistory]) -> list[FactHistory]:
    """The facts a question about change is about: the best one, and any others that changed.

    If none changed, statements that match about as well as the best one stand in for its history, although none
    replaced another.
    """
    if histories and not any(history.has_changed for history in histories):
        least = AS_GOOD_SHARE * histories[0].best.relevance
        alike = [history for history in histories if history.best.relevance >= least]
        return sorted(alike, key=lambda history: start_of(history.versions[0]))
    return [history for place, history in enumerate(histories) if not place or history.has_changed]


def _cut(facts: Sequence[Sequence[Hit]], limit: int) -> tuple[list[Hit], tuple[str, ...]]:
    """The latest versions of each fact that fit the limit, and notes on how many were left out."""
    hits: list[Hit] = []
    for versions in facts:
        room = limit - len(hits)
        hits.extend(versions[-room:] if room > 0 else ())
    left = sum(map(len, facts)) - len(hits)
    return hits, (f"{left} more versions were cut by the limit of {limit}.",) if left else ()


def _ended_in(memory: Memory, window: Window | None) -> bool:
    end = memory.valid_until
    if window is None or end is None:
        return True
    return (window.since is None or end >= window.since) and (window.until is None or end < window.until)


def _hit(memory: Memory) -> Hit:
    return Hit(
        memory.id, "memory", RELEVANCE_SCALE, memory.statement, memory, trace=_BY_LINEAGE, relevance=LOOKED_UP_RELEVANCE
    )


LEADING_PLACES = 2
"""How many of the first hits are checked: a memory that waits for review must be among them to precede what it
replaced.
"""
_BELIEF_VERBS = frozenset(
    ("think", "thought", "believe", "believed", "assume", "assumed", "expect", "expected", "know", "knew")
)
CURRENT = "current memories"
CURRENT_THEN = "current memories from that time"
KNOWN_THEN = "memories as they were known at that time"
FROM_VERSIONS = "the versions"
FROM_PAST_VERSIONS = "past versions about the question"
FROM_EVERY_VERSION = "every version about the question"
FROM_LOG = "the session log, since no memory is as relevant"
LOGGED = "No matching memory; answered from the session log."
PHRASE_AS_WORDS = "current memories, with the time phrase read as words"
AS_FILTERED = "what the filters select, whatever the question's intent"
NEWEST_FIRST = "what holds now comes before what it replaced"
OUTDATED = "archived and stale memories, because no current one answers"
OTHER_TENSE = "planned where the question asks for what is, or the reverse"
COVERS_LESS = "another memory covers more of the question"
EVIDENCE_LAST = "evidence from documents comes after what somebody said"
_CLAUSE = frozenset(("is", "are", "was", "were", "would", "will"))


@dataclass(slots=True)
class Answerer:
    """Answers parsed questions. The caller's filters always apply; a question only narrows what they leave open."""

    searcher: Searcher
    store: Store
    clock: Callable[[], datetime]
    floor: float = MIN_KNOWN
    """The lowest relevance a hit may have."""

    def answer(self, question: ParsedQuestion, query: SearchQuery) -> TracedAnswer:
        """Search the records for the question's intent, or those that the caller's filters select."""
        if query.narrowed:
            every = asks_for_all(question.subject or query.text)
            hits = self.searcher.search(
                replace(query, everything=every, task=query.text, purpose="where the filters say")
            )
            answered = self._cut(question, query, TracedAnswer(hits, question.window, remarks(question), AS_FILTERED))
            near = AnswerParts(derive_hits(hits, [] if answered.hits else nearest_hits(hits, self.floor)))
            return _with_parts(answered, near)
        anchored = window_of(question, query.filters, self.searcher)
        task = question.text if question.intent == "current" else ""
        query = replace(query, text=question.subject or question.text, question=question.text, task=task)
        answered = self._cut(question, query, self._answer_by_intent(question, query, anchored))
        if not answered.hits and question.phrase:
            answered = (
                self._answer_state_then(question, query, anchored)
                or self._answer_outside_window(question, query)
                or answered
            )
        answered = self._with_task(question, query, answered)
        finder = PartFinder(self.searcher, self.store, self.clock, self.floor, question.at.tzinfo)
        parts = finder.find(replace(query, text=question.text), answered.hits)
        if question.window is None and not any(hit.memory is not None for hit in answered.hits):
            answered, parts = self._answer_from_outdated(answered, parts, query.limit)
        unknown = [
            name for name in self.facts.find_unknown_names(query) if not any(name in time for time in question.unread)
        ]
        nothing = tuple(f"No memory mentions “{name}”." for name in unknown)
        notes = (*remarks(question), *anchored.notes, *answered.notes, *nothing)
        return _with_parts(replace(answered, notes=notes, anchor=anchored.anchor_id), parts)

    def _answer_from_outdated(
        self, answered: TracedAnswer, parts: AnswerParts, limit: int
    ) -> tuple[TracedAnswer, AnswerParts]:
        """Put archived and stale memories from the part `older` first if the answer has no memories and they are more
        relevant.
        """
        now, least = self.clock(), best_relevance(answered.hits)
        hits = filter_hits(parts.older, lambda hit: may_answer(hit, now) and hit.relevance >= least)
        if not hits:
            return answered, parts
        taken = {hit.id for hit in hits}
        found = first_hits(derive_hits(answered.hits, [*hits, *answered.hits]), limit)
        older = filter_hits(parts.older, lambda hit: hit.id not in taken)
        return replace(answered, hits=found, method=OUTDATED), replace(parts, older=older)

    def _with_task(self, question: ParsedQuestion, query: SearchQuery, answered: TracedAnswer) -> TracedAnswer:
        """Put memories about the task first if the text describes one.

        "The build fails since yesterday" describes a task; it does not ask for an event of yesterday.
        """
        from engram.recall.situated import is_about_task, is_question

        is_searched = query.task == question.text and question.window is None
        if is_question(question.text) or (is_searched and answered.hits):
            return answered
        now = replace(query, text=question.text, task=question.text)
        found = self.searcher.search(replace(now, purpose="what is about the task"))
        least = max(self.floor, MIN_SHARE_OF_BEST * best_relevance(answered.hits))
        about_it = [hit for hit in found if is_about_task(hit) and hit.relevance >= least]
        if not about_it:
            return answered
        taken = {hit.id for hit in about_it}
        hits = [*about_it, *(hit for hit in answered.hits if hit.id not in taken)]
        return replace(answered, hits=first_hits(derive_hits(answered.hits, hits), query.limit))

    def _cut(self, question: ParsedQuestion, query: SearchQuery, answered: TracedAnswer) -> TracedAnswer:
        """The answer without irrelevant hits, with current memories first."""
        found = find_replacements(query.text, answered.hits, self.store, query.filters, log=answered.method == FROM_LOG)
        replaced = self._mark_doubtful(query, answered.hits, found)
        answered = self._put_current_first(question, query.filters, answered, replaced)
        hits = first_hits(self._keep_relevant(question, answered.hits, replaced), query.limit)
        if not hits:
            return replace(answered, hits=hits)
        if question.intent != "lineage":
            hits = note_replacements(hits, replaced)
        answered = replace(answered, hits=hits)
        return _put_evidence_last(answered) if question.intent == "current" or query.narrowed else answered

    def _keep_relevant(self, question: ParsedQuestion, hits: Hits, replaced: Replacements) -> Hits:
        """The hits about the question, or every hit about the act if the question has no other topic: "what did we
        decide in March".
        """
        if question.window is None or question.intent != "event" or not names_only_acts(question.subject):
            return self._choose_best_covering(question, hits, replaced)
        act = set(query_terms(question.subject))
        least = min(self.floor, NEAREST_FLOOR)
        return drop_hits(
            apply_floor(hits, least),
            lambda hit: hit.relevance < self.floor and act.isdisjoint(tokens(hit.text)),
            "does not tell of it",
        )

    def _choose_best_covering(self, question: ParsedQuestion, hits: Hits, replaced: Replacements) -> Hits:
        """The hits about the question that match its tense. If it names no time, only those that cover as much of it as
        the others.
        """
        is_about_facts = question.intent in ("current", "event") and bool(self.floor)
        if is_about_facts:
            other = find_other_tense(question.text, hits, replaced)
            hits = drop_hits(hits, lambda hit: hit.id in other, OTHER_TENSE)
        chosen = keep_relevant(hits, question.text, self.floor, several=_is_for_a_task(question.text, hits))
        if not is_about_facts or question.window is not None:
            return chosen
        less = find_covering_less(question.text, chosen, hits, replaced)
        return drop_hits(chosen, lambda hit: hit.id in less, COVERS_LESS)

    def _put_current_first(
        self, question: ParsedQuestion, filters: Filters, answered: TracedAnswer, replaced: Replacements
    ) -> TracedAnswer:
        """Put current memories before those they replaced, in an answer about now.

        If the question or a filter sets a time, only hits are reordered. In an answer about when something changed, the
        change comes first.
        """
        before, hits = [hit.id for hit in answered.hits], answered.hits
        about_now = (CURRENT, CURRENT_THEN, AS_FILTERED, *((FROM_LOG,) if question.intent == "current" else ()))
        if replaced and answered.method in about_now:
            adding = filters if answered.method == CURRENT else None
            hits = put_current_first(hits, replaced, self.clock(), self.floor, adding=adding)
        elif replaced and answered.method in (BEST_FIRST, MEMORIES_INSTEAD) and asks_for_a_change(question.text):
            hits = self._put_change_first(question, filters, hits, replaced)
        elif (
            replaced
            and answered.method in (BEST_FIRST, MEMORIES_INSTEAD)
            and not answered.window
            and not asks_when(question.text)
        ):
            # "What did we decide about the database" asks for the current decision.
            hits = put_current_first(hits, replaced, self.clock(), self.floor, adding=filters)
        moved = before != [hit.id for hit in hits]
        return replace(answered, hits=hits, method=f"{answered.method}; {NEWEST_FIRST}") if moved else answered

    def _mark_doubtful(self, query: SearchQuery, hits: Hits, replaced: Replacements) -> Replacements:
        """Mark as doubtful the replacements that wait for review and that a search for the question would not rank
        first.

        What replaced a hit that is surely about the question is about it too, whatever its wording.
        """
        asked = {hit.id for hit in hits if hit.relevance >= SURE_RELEVANCE}
        waiting = {
            newer.id
            for older, found in replaced.newer.items()
            for newer in found
            if newer.status == "candidate" and older not in asked
        }
        if not waiting:
            return replaced
        both = replace(query.filters, statuses=(*LIVE_STATUSES, "candidate"))
        found = self.searcher.search(
            _widen_search(replace(query, filters=both, purpose="whether what waits is about it"))
        )
        ranked = sorted(found, key=lambda hit: -hit.relevance)
        compared_with = [
            hit for hit in ranked if hit.id in waiting or (hit.memory and hit.memory.status in LIVE_STATUSES)
        ]
        return replaced.with_doubts(waiting - {hit.id for hit in compared_with[:LEADING_PLACES]})

    def _put_change_first(self, question: ParsedQuestion, filters: Filters, hits: Hits, replaced: Replacements) -> Hits:
        """Put what replaced the best hit before it. "When did I move to Lima" names the value itself, so later values
        do not count.
        """
        best = next((hit.memory for hit in hits if hit.relevance >= self.floor), None)
        newest = replaced.newest(best.id) if best is not None and not replaced.is_change(best.id) else None
        if best is None or newest is None or best in select_by_value([best, newest], question.text):
            return hits
        if newest.id not in {hit.id for hit in hits} and not is_selected(filters, newest):
            return hits
        return put_change_first(hits, best.id, newest)

    def _answer_state_then(
        self, question: ParsedQuestion, query: SearchQuery, anchored: AnchoredWindow
    ) -> TracedAnswer | None:
        """What was true at a time without known events; None if that is unknown too."""
        window = anchored.window
        if question.intent != "event" or window is None or window.until is None or window.until > self.clock():
            return None
        held = self._answer_historical(question, query, anchored)
        return self._cut(question, query, held) if held.method.startswith(FROM_VERSIONS) else None

    def _answer_outside_window(self, question: ParsedQuestion, query: SearchQuery) -> TracedAnswer | None:
        """Current memories, if nothing is known about the time asked for; None if none answers.

        A memory may contain the time phrase itself ("shipped at midnight") or state something that is always true; only
        events have a time of their own.
        """
        found = keep_relevant(
            self.facts.search(replace(query, text=question.text, purpose=PHRASE_AS_WORDS)), question.text, self.floor
        )
        saying = filter_hits(found, lambda hit: question.phrase.casefold() in hit.text.casefold())
        if saying:
            return TracedAnswer(
                saying,
                None,
                (f"“{question.phrase}” was read as part of the memory's text, not as a time.",),
                PHRASE_AS_WORDS,
            )
        hits = filter_hits(found, lambda hit: hit.memory is not None and not is_event_memory(hit.memory))
        if not hits or question.intent not in ("current", "event"):
            return None
        return TracedAnswer(
            hits, question.window, ("Nothing is known about that time; showing the current value.",), CURRENT
        )

    @property
    def facts(self) -> FactFinder:
        """Finds facts and their versions."""
        return FactFinder(self.searcher, self.store, self.clock)

    def _answer_by_intent(self, question: ParsedQuestion, query: SearchQuery, anchored: AnchoredWindow) -> TracedAnswer:
        window, timelines = anchored.window, LineageAnswerer(self.facts)
        if asks_what_changed(query.text, question.intent):
            return timelines.answer_changes(query, window)
        special = self._answer_when_changed(question, query, window) or self._answer_belief(question, query, window)
        if special is not None:
            return special
        if question.intent == "event" or (question.intent == "historical" and self._is_event(query, window)):
            answered = EventAnswerer(self.facts).answer(query, window, anchored.after)
            told = (
                self.facts.find_waiting(restrict_to_window(query, window))
                if best_relevance(answered.hits) < self.floor
                else Hits()
            )
            return TracedAnswer(told, window, (), MEMORIES_INSTEAD) if told else answered
        if question.intent == "current":
            answered = self._answer_current(question, query, anchored)
        elif question.intent == "historical":
            answered = self._answer_historical(question, query, anchored)
        else:
            answered = timelines.answer_histories(query, window)
        best = best_relevance(answered.hits)
        is_ranked_together = question.intent == "current" and window is None
        # A log event must be twice as relevant, which is impossible next to a memory at one half or above.
        return (
            answered
            if best >= SURE_RELEVANCE or is_ranked_together
            else self._answer_from_log(query, window, best) or answered
        )

    def _answer_when_changed(
        self, question: ParsedQuestion, query: SearchQuery, window: Window | None
    ) -> TracedAnswer | None:
        """The history of a fact, for a question about when it changed; None if no such fact ever changed."""
        if question.intent == "lineage" or not asks_when_it_changed(query.text):
            return None
        _, histories = self.facts.find_histories(query)
        return (
            LineageAnswerer(self.facts).answer_histories(query, window)
            if histories and histories[0].has_changed
            else None
        )

    def _answer_belief(
        self, question: ParsedQuestion, query: SearchQuery, window: Window | None
    ) -> TracedAnswer | None:
        """What was known at the time, for a question about a belief: "what did we think the date was in March"."""
        keys = [word.key for word in words(query.text)]
        held = next((place for place, key in enumerate(keys) if key in _BELIEF_VERBS), len(keys))
        if window is None or question.intent == "current" or _CLAUSE.isdisjoint(keys[held:]):
            return None
        then = replace(query.filters, known_at=_moment(window, self.clock()))
        hits = self.searcher.search(replace(query, filters=then, purpose=KNOWN_THEN))
        hits[:] = [replace(hit, note=self._status_now(hit.id)) for hit in hits]
        return TracedAnswer(hits, window, (), KNOWN_THEN) if any(map(is_about, hits)) else None

    def _status_now(self, memory_id: str) -> str:
        """The present status of a memory that was current then; "" if it is still current."""
        memory = self.store.get(memory_id)
        return memory.status if memory is not None and memory.status not in LIVE_STATUSES else ""

    def _is_event(self, query: SearchQuery, window: Window | None) -> bool:
        """Whether an event is the best answer to a "when" question, not how long something was true."""
        if [word.key for word in words(query.text)][:1] != ["when"]:
            return False
        both = replace(query.filters, kinds=("event", "memory"), statuses=EVERY_VERSION, valid_at=None, as_of=False)
        found = self.searcher.search(
            restrict_to_window(replace(query, filters=both, purpose="whether it is an event or a state"), window)
        )
        best = max(found, key=lambda hit: hit.relevance, default=None)
        told = best is not None and (
            best.memory is None or (is_event_memory(best.memory) and not best.memory.conflict_key)
        )
        return told and best is not None and is_about(best)

    def _answer_from_log(self, query: SearchQuery, window: Window | None, rival: float) -> TracedAnswer | None:
        """Events from the session log, if they are twice as relevant as the best memory (`rival`)."""
        ledger = replace(query.filters, kinds=("event",), valid_at=None, as_of=False)
        hits = self.facts.search(
            restrict_to_window(_widen_search(replace(query, filters=ledger, purpose="the ledger")), window)
        )
        best = best_relevance(hits)
        if not hits or best < self.floor or rival >= MIN_SHARE_OF_BEST * best:
            return None
        return TracedAnswer(hits, window, (LOGGED,), FROM_LOG)

    def _is_from_log(self, hits: Hits) -> bool:
        """Whether all hits about the question are events."""
        about_it = [hit for hit in hits if hit.relevance >= self.floor]
        return bool(about_it) and all(hit.memory is None for hit in about_it)

    def _answer_current(self, question: ParsedQuestion, query: SearchQuery, anchored: AnchoredWindow) -> TracedAnswer:
        window = anchored.window
        if window is None:
            both = replace(query.filters, kinds=("memory", "event"))
            hits = self.facts.find_current(_widen_search(replace(query, filters=both, folding=True)))
            if best_relevance(hits) < self.floor:
                hits = self.facts.find_waiting(query) or hits
            if self._is_from_log(hits):
                return TracedAnswer(hits, window, (LOGGED,), FROM_LOG)
            return TracedAnswer(hits, window, (), CURRENT)
        if question.phrase.lower().startswith("as of"):
            return self._answer_historical(question, query, anchored)
        every = asks_for_all(query.text) and word_class("asking", "manner").isdisjoint(
            word.key for word in words(query.text)
        )
        hits = self.facts.search(restrict_to_window(replace(query, everything=every, purpose=CURRENT_THEN), window))
        if hits and every:
            return TracedAnswer(hits, window, (), CURRENT_THEN)
        now = replace(query, text=question.text, purpose="current memories from any time")
        elsewhen = Hits() if any(map(is_about, hits)) else self.facts.search(now)
        if hits and not any(map(is_about, elsewhen)):
            return TracedAnswer(hits, window, (), CURRENT_THEN)
        if window.until is not None and window.until <= self.clock():
            return self._answer_historical(question, query, anchored)
        return TracedAnswer(
            elsewhen, window, ("Nothing was learned in that time; showing the current value.",), CURRENT
        )

    def _answer_historical(
        self, question: ParsedQuestion, query: SearchQuery, anchored: AnchoredWindow
    ) -> TracedAnswer:
        window, keys = anchored.window, {word.key for word in words(question.text)}
        found, histories = self.facts.find_histories(query)
        if window is None and keys & word_class("asking", "at_any_time"):
            return TracedAnswer(found, window, (), FROM_EVERY_VERSION)
        if window is not None and window.until is not None and _is_before_an_event(question):
            event = window.until.astimezone(question.at.tzinfo)
            held = [self._just_before(history, event) for history in histories]
        else:
            held = [
                self._versions_in(history, query.text, window, _value_left(question, anchored)) for history in histories
            ]
        oldest_first = bool(keys & word_class("asking", "first_of")) or bool(anchored.after)
        told = [
            (history, versions if oldest_first else versions[::-1])
            for history, versions in zip(histories, held, strict=True)
        ]
        hits = derive_hits(
            found, [history.version_hit(version) for history, versions in told for version in versions][: query.limit]
        )
        if hits:
            method = f"{FROM_VERSIONS} {'of that time' if window else 'that are over'}, {'oldest' if oldest_first else 'latest'} first"
            return TracedAnswer(hits, window, (), method)
        hits = self._find_past_versions(query, window)
        return (
            TracedAnswer(hits, window, (), FROM_PAST_VERSIONS)
            if hits
            else self._answer_not_superseded(query, histories, window)
        )

    def _versions_in(self, history: FactHistory, question: str, window: Window | None, left: str) -> list[Memory]:
        """The versions true in the window, or past versions if there is no window; only those whose value is named, if
        any is.
        """
        now, named = self.clock(), select_by_value(history.versions, question)
        if window is None:
            return named or [version for version in history.versions if is_past_version(version, now)]
        held = [version for version in history.versions if overlaps(version, window, now) and version.id != left]
        return [version for version in held if version in named] or held

    def _just_before(self, history: FactHistory, event: datetime) -> list[Memory]:
        held = [v for v in history.versions if overlaps(v, Window(event - INSTANT, event), self.clock())]
        return [before_outcome(version, event, history.versions) for version in held[-1:]]

    def _find_past_versions(self, query: SearchQuery, window: Window | None) -> Hits:
        """Past versions about the question, for the case that the current one is more relevant."""
        past = replace(query.filters, statuses=("superseded", "archived"), valid_at=None, as_of=False)
        found, now = self.facts.search(replace(query, filters=past, purpose=FROM_PAST_VERSIONS)), self.clock()

        return filter_hits(found, lambda hit: is_about(hit) and (window is None or overlaps(hit.memory, window, now)))

    def _answer_not_superseded(
        self, query: SearchQuery, histories: Sequence[FactHistory], window: Window | None
    ) -> TracedAnswer:
        hits = self.facts.search(replace(query, purpose=CURRENT))
        best = histories[0].best.memory if histories else None
        if window is None and best is not None and is_event_memory(best) and best.id in {hit.id for hit in hits}:
            return TracedAnswer(hits, window, (), CURRENT)
        if not any(map(is_about, hits)):
            return TracedAnswer(hits, window, ("Nothing is known about that time.",) if window else (), CURRENT)
        note = "Nothing else is known about that time" if window else "There is no earlier version"
        return TracedAnswer(hits, window, (f"{note}; showing the current value.",), CURRENT)


def _with_parts(answered: TracedAnswer, parts: AnswerParts) -> TracedAnswer:
    """Add the other parts to the answer; hits shown there no longer count as left out."""
    hits = derive_hits(answered.hits, answered.hits)
    hits.filtered = [one for one in answered.hits.filtered if one.id not in parts.ids]
    return replace(answered, hits=hits, parts=parts)


def _is_before_an_event(question: ParsedQuestion) -> bool:
    return question.relation == "before" and question.window is None


def _value_left(question: ParsedQuestion, anchored: AnchoredWindow) -> str:
    """The version that ended at the anchor, if the anchor names only its value: Rome's in "after Rome"."""
    told_by_a_verb = any(is_past(word.key, same=True) for word in words(question.anchor))
    return "" if told_by_a_verb else anchored.after


def _widen_search(query: SearchQuery) -> SearchQuery:
    """The query with a higher limit, so that hits below the floor can be dropped before the limit cuts."""
    return replace(query, limit=max(query.limit, VERSION_SEARCH_LIMIT))


def _put_evidence_last(answered: TracedAnswer) -> TracedAnswer:
    """Put evidence from documents after people's own statements, and note it in the method if a hit moved."""
    hits, before = answered.hits, [hit.id for hit in answered.hits]
    hits[:] = put_evidence_last(hits)
    moved = before != [hit.id for hit in hits]
    return replace(answered, method=f"{answered.method}; {EVIDENCE_LAST}") if moved else answered


def _is_for_a_task(text: str, hits: Hits) -> bool:
    """Whether the hits are for a task. Every memory about a task helps with it."""
    from engram.recall.situated import is_about_task, is_question, is_situated

    return any(is_about_task(hit) and is_situated(hit) for hit in hits) and not is_question(text)


def remarks(question: ParsedQuestion) -> tuple[str, ...]:
    """Warnings about how the question was parsed: that the model failed, and which times were ignored."""
    unread = tuple(f"“{phrase}” could not be read as a time; it was ignored" for phrase in question.unread)
    return (question.reason, *unread) if question.reason.startswith(BY_RULES) else unread


def _moment(window: Window, now: datetime) -> datetime:
    """The moment a window asks about: its end, or now if the window is open."""
    if window.until is not None and window.until <= now:
        return window.until - INSTANT
    return now if window.since is None or window.since <= now else window.since
