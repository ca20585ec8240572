"""`recall` and `inject`: search what the caller may see, record the use, format the result, and compose an answer in
sentences.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from datetime import datetime, tzinfo
from typing import TYPE_CHECKING

from engram.model.errors import InvalidInput, ModelError, StoreDenied, StoreReadOnly
from engram.model.hit import NOTHING_KNOWN, USER_WORDS, AnswerParts, Hit, Hits, Injection, ScopeMatches
from engram.model.lazy import dataclass, field, replace
from engram.model.memory import Memory
from engram.model.records import SUMMARY_ROLE, Use
from engram.model.types import type_or_default
from engram.recall.answer.answerer import Answerer
from engram.recall.answer.history import time_of
from engram.recall.cutoff import INJECT_FLOOR, is_about, is_read
from engram.recall.freshness import find_replacements
from engram.recall.parse import ParsedQuestion, parse
from engram.recall.query import SearchQuery
from engram.recall.questions import answer_name_question, follow_entities, merge_answers, split_topics
from engram.recall.search import Searcher
from engram.recall.trace import TracedAnswer
from engram.rules.sources import EVIDENCE
from engram.store.protocol import Filters, Store
from engram.text.display import notice, quote_text, safe_word
from engram.text.time.windows import Window
from engram.text.time.words import words
from engram.text.time.zone import SYSTEM, in_zone
from engram.text.translation import translate

if TYPE_CHECKING:
    from engram.llm.model import LanguageModel
    from engram.recall.prompt.inject import SpreadHit
    from engram.recall.trace import Trace


MIN_BUDGET = 50


POSSIBLE = "Possibly related:"
UNCONFIRMED = "Unconfirmed, waiting for review:"
OLDER = "No longer current:"
HOW_TO_LIST = "`list` with status candidate shows them"
ELSEWHERE = "In other projects (give the scope to see them):"


@dataclass(frozen=True, slots=True)
class Recall:
    """The answer to a question: the parsed question, the hits, and the hits as text."""

    question: str
    hits: Hits
    """The hits about the question; empty if nothing is known."""
    text: str
    """The hits as lines, then each other part under its heading; or a sentence saying that nothing is known."""
    warnings: tuple[str, ...] = field(default=())
    intent: str = "current"
    """current, historical, event or lineage."""
    window: Window | None = None
    """The time asked about, half-open; None if there is none."""
    understood: ParsedQuestion | None = None
    """The parsed question, and the words that decided it."""
    answer: str = ""
    """The answer in sentences with its sources, if `compose_answer` was set."""
    trace: "Trace | None" = None
    """How the answer was found, if `explain` was set."""
    parts: AnswerParts = field(default_factory=AnswerParts)
    """The matches besides the hits."""

    @property
    def possible(self) -> Hits:
        """Possibly related: up to three close results, which may not answer the question."""
        return self.parts.possible

    @property
    def unconfirmed(self) -> Hits:
        """Matching statements that wait for review."""
        return self.parts.unconfirmed

    @property
    def older(self) -> Hits:
        """Matches that are superseded, archived or stale; `note` says until when they were current."""
        return self.parts.older

    @property
    def elsewhere(self) -> tuple[ScopeMatches, ...]:
        """How many memories of other projects match."""
        return self.parts.elsewhere

    @property
    def zone(self) -> tzinfo | None:
        """The time zone the question was read in."""
        return self.understood.at.tzinfo if self.understood is not None else None


@dataclass(slots=True)
class Recaller:
    """Answers questions and prepares prompts."""

    searcher: Searcher
    store: Store
    clock: Callable[[], datetime]
    refine: "Callable[[ParsedQuestion, datetime], ParsedQuestion] | None" = None
    zone: tzinfo = SYSTEM
    """The zone for the times in questions."""

    def recall(self, query: SearchQuery, session: str = "", at: datetime | None = None) -> Recall:
        """Answer a question and record the use of the hits about it."""
        found = self.answer_query(query, at)
        # A caller may lower the floor; hits below the usual one are not reinforced.
        meant = [hit.id for hit in found.hits if hit.memory is not None and is_about(hit)]
        warning = self.record_use("recalled", meant, session)
        return replace(found, warnings=(*found.warnings, warning)) if warning else found

    def answer_query(self, query: SearchQuery, at: datetime | None = None) -> Recall:
        """Parse the question, search, and phrase the answer; with a trace if the query asks for one. Records no use."""
        moment = in_zone(at or self.clock(), self.zone)
        asked, query = query.text, query.in_english()
        question = parse(query.text, moment) if query.narrowed else self.parse_question(asked, moment)
        searcher = self.searcher.for_recall(explain=query.explain)
        floor, query = query.min_relevance, replace(query.validate(), min_relevance=0.0)
        # With `known_at`, past versions are embedded here, which may be slow, so no read transaction stays open.
        with self.store.reading() if query.filters.known_at is None else nullcontext():
            answer = self._answer(searcher, question, query, floor)
            if topics := split_topics(query.text):
                alone = [replace(query, text=topic, wordings=()) for topic in topics]
                each = [self._answer(searcher, parse(topic.text, moment), topic, floor) for topic in alone]
                answer = merge_answers(answer, each, query.limit)
        trace = None
        if searcher.log is not None:
            from engram.recall.trace import build_trace

            trace = build_trace(question, answer, searcher.log)
        hits, parts = answer.hits, answer.parts
        sections = [lines_of(hits, question.intent, moment.tzinfo)]
        sections += ["\n".join((heading, *lines)) for heading, lines in part_lines(parts, moment.tzinfo)]
        text = "\n\n".join(filter(None, sections)) or NOTHING_KNOWN
        return Recall(asked, hits, text, (*answer.notes, *hits.warnings), question.intent, answer.window, question,
                      trace=trace, parts=parts)  # fmt: skip

    def _answer(self, searcher: Searcher, question: ParsedQuestion, query: SearchQuery, floor: float) -> TracedAnswer:
        """Answer one question, and follow the entities of its first hits."""
        answer = Answerer(searcher, self.store, self.clock, floor).answer(question, query)
        is_current = question.intent == "current" and question.window is None and not query.narrowed
        if question.window is None and not query.narrowed:
            answer = answer_name_question(searcher, query, answer, floor)
        return follow_entities(searcher, query, answer, floor) if is_current else answer

    def parse_question(self, text: str, at: datetime) -> ParsedQuestion:
        """The parsed question, refined by a language model if one is configured and its answer is usable."""
        question = parse(translate(text), at)
        if self.refine is None:
            return question
        return replace(self.refine(replace(question, text=text), at), text=question.text)

    def inject(
        self, task: str, filters: Filters, budget: int, session: str = "", min_relevance: float = INJECT_FLOOR
    ) -> Injection:
        """Choose the memories the task needs and record them as injected. Raises `InvalidInput` for a budget that is
        too small.
        """
        if type(budget) is not int:
            raise InvalidInput(f"budget {budget!r:.40} must be a whole number of tokens")
        if budget < MIN_BUDGET:
            raise InvalidInput(f"A budget of {budget} tokens is too small (minimum {MIN_BUDGET}).")
        from engram.embedding.word_pieces import count_tokens
        from engram.recall.prompt import inject
        from engram.recall.task_memories import TaskMemoryFinder

        now = self.clock()
        query = SearchQuery(task, filters=filters, min_relevance=min_relevance, task=task).validate()
        finder = TaskMemoryFinder(self.searcher, self.store)
        hits, waiting = finder.find(query), finder.find_unconfirmed(query)
        replaced = find_replacements(task, hits, self.store, filters, heed_trust=True)
        chosen = inject.build(
            hits,
            budget,
            count_tokens,
            now,
            lambda directives: self._spread(directives, hits, filters, now),
            replaced,
            waiting,
        )
        warning = self.record_use("injected", chosen.ids, session)
        return replace(chosen, warnings=(*chosen.warnings, warning)) if warning else chosen

    def _spread(
        self, directives: Sequence[tuple[Memory, float]], hits: Hits, filters: Filters, now: datetime
    ) -> "Sequence[SpreadHit]":
        from engram.recall.prompt.inject import spread

        scored = [(memory, score) for memory, score in directives if score > 0]

        def fetch(ids: Iterable[str]) -> list[Memory]:
            found = [self.store.get(memory_id) for memory_id in ids]
            return [m for m in found if m is not None and (filters.scopes is None or m.scope in filters.scopes)]

        return spread(scored, fetch, self.store.links_to, {hit.id for hit in hits}, now)

    def record_use(self, kind: str, ids: Sequence[str], session: str = "") -> str:
        """Record that memories were used; returns a warning if the store cannot be written, otherwise ""."""
        if not ids:
            return ""
        try:
            self.store.note_use(Use(kind, tuple(ids), self.clock(), session))
        except (StoreReadOnly, StoreDenied) as error:
            return f"{error}; the use was not recorded"
        return ""


def part_lines(parts: AnswerParts, zone: tzinfo | None) -> list[tuple[str, list[str]]]:
    """The heading and the lines of each part that is not empty. A candidate is quoted only if it is in the user's own words."""
    waiting = [line_of(hit, zone=zone) for hit in parts.unconfirmed if hit.note == USER_WORDS]
    if others := [safe_word(hit.id) for hit in parts.unconfirmed if hit.note != USER_WORDS]:
        waiting.append(f"{len(others)} not shown before review: {', '.join(others)} ({HOW_TO_LIST})")
    sections = [
        (POSSIBLE, [line_of(hit, dated=hit.memory is None, zone=zone) for hit in parts.possible]),
        (UNCONFIRMED, waiting),
        (OLDER, [line_of(hit, zone=zone) for hit in parts.older]),
        (ELSEWHERE, [f"{match.count} in {safe_word(match.scope)}" for match in parts.elsewhere]),
    ]
    return [(heading, lines) for heading, lines in sections if lines]


def lines_of(hits: Iterable[Hit], intent: str, zone: tzinfo | None = None) -> str:
    """Hits as lines, with dates in the zone unless the question is about now."""
    return "\n".join(line_of(hit, dated=intent != "current", zone=zone) for hit in hits)


def line_of(hit: Hit, *, dated: bool = False, zone: tzinfo | None = None) -> str:
    """A hit as one line: its id and type, the quoted text, and the date if it is a session's summary."""
    dated = dated or is_summary(hit)
    return f"{label_of(hit)}: {quote_text(hit.stretch or hit.text)}{remark_of(hit, dated=dated, zone=zone)}"


def is_summary(hit: Hit) -> bool:
    """Whether a hit is a session's summary, which is true as of the session's end."""
    return hit.event is not None and hit.event.role == SUMMARY_ROLE


def newest_summaries_first(hits: Sequence[Hit]) -> list[Hit]:
    """Reorder the session summaries among the hits, newest first, because older ones may be outdated."""
    summaries = iter(sorted(filter(is_summary, hits), key=_moment_of, reverse=True))
    return [next(summaries) if is_summary(hit) else hit for hit in hits]


def _moment_of(hit: Hit) -> datetime:
    assert hit.event is not None
    return hit.event.at


def label_of(hit: Hit) -> str:
    """The label before a hit's text: its id and its type or speaker."""
    label = (
        type_or_default(hit.memory.type).label if hit.memory else safe_word(hit.event.role) if hit.event else hit.kind
    )
    return f"[{safe_word(hit.id)}] {label}"


def remark_of(hit: Hit, *, dated: bool, zone: tzinfo | None = None) -> str:
    """The remarks after a hit's text, in brackets: whether it is only evidence, a caveat, and when it was true or
    happened.
    """
    remarks = [
        part for part in (EVIDENCE if is_read(hit) else "", hit.note, time_of(hit, zone) if dated else "") if part
    ]
    return f" ({notice(', '.join(remarks))})" if remarks else ""


Composer = Callable[[str, str], tuple[str, list[str]]]
"""Answers a question from lines of memories, with the ids of the lines it used."""
MAX_QUOTED_MEMORIES = 3
"""The maximum number of memories quoted in an answer without a model; a history quotes all of them."""
QUOTED_SCORE_SHARE = 0.75
"""The share of the best score from which another hit is part of the answer."""
UNKNOWN = "Nothing that is known answers the question."
UNSURE = "No memory clearly answers the question; see the other parts of the answer."


def model_composer(model: "LanguageModel") -> Composer:
    """A composer that asks a model; the question and the lines are passed as data."""
    from engram.llm.schemas import ComposedAnswer

    def answer(question: str, known: str) -> tuple[str, list[str]]:
        made = model.ask("answer", ComposedAnswer, {"question": question, "known": known})
        return " ".join(made.answer.split()), made.sources

    return answer


def compose_cited_answer(recall: Recall, ask: Composer | None = None) -> tuple[str, str]:
    """The answer, and a warning or "". If the model fails, the memories are quoted instead."""
    if not recall.hits:
        return "", UNKNOWN if recall.text == NOTHING_KNOWN else UNSURE
    if ask is None:
        return _quoted_answer(recall), ""
    try:
        answer, sources = ask(recall.question, lines_of(recall.hits, recall.intent, recall.zone))
    except ModelError as error:
        return _quoted_answer(recall), f"quoted the memories: {error}"
    known = {hit.id for hit in recall.hits}
    cited = [source for source in dict.fromkeys(each.strip("[] ") for each in sources) if source in known]
    if not answer or not cited:
        return _quoted_answer(recall), "quoted the memories: the model named no source"
    return f"{notice(answer)} {' '.join(f'[{safe_word(source)}]' for source in cited)}", ""


def _quoted_answer(recall: Recall) -> str:
    hits = recall.hits
    dated = any(word.key == "when" for word in words(recall.question))
    if recall.intent == "lineage":
        return ", then ".join(_sentence(hit, dated, recall.zone) for hit in hits)
    least = max(hit.score for hit in hits) * QUOTED_SCORE_SHARE
    best = [hit for hit in hits if hit.score >= least][:MAX_QUOTED_MEMORIES]
    return "; ".join(_sentence(hit, dated, recall.zone) for hit in best)


def _sentence(hit: Hit, dated: bool, zone: tzinfo | None) -> str:
    when = f"{time_of(hit, zone)}, {safe_word(hit.event.role)}: " if hit.event else ""
    remark = remark_of(hit, dated=dated and hit.event is None, zone=zone)
    return f"{when}{quote_text(hit.stretch or hit.text)}{remark} [{safe_word(hit.id)}]"
