"""recall and inject: a search in what the asker may see, noted as use, phrased for a reader or a prompt."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING

from engram.model.errors import InvalidInput, StoreDenied, StoreReadOnly
from engram.model.hit import NOTHING_KNOWN, Hit, Hits, Injection
from engram.model.memory import Memory
from engram.model.types import type_or_default
from engram.model.usage import Use
from engram.recall.answer.answerer import Answerer
from engram.recall.answer.history import time_of
from engram.recall.cutoff import HELPFUL, is_about, is_read
from engram.recall.parse import ParsedQuestion, parse
from engram.recall.query import SearchQuery
from engram.recall.search import Searcher
from engram.rules.sources import EVIDENCE, is_evidence
from engram.store.protocol import Filters, Store
from engram.text.quote import notice, quoted, word
from engram.text.time.windows import Window

if TYPE_CHECKING:
    from engram.recall.activation import SpreadHit
    from engram.recall.trace import Trace

PINNED_POOL = 100
"""Pinned memories offered to an injection; those its limits cut are named."""
INJECT_POOL = 24
"""Hits looked at for an injection: the most it can hold, and some that the budget may pass over."""
MIN_BUDGET = 50


@dataclass(frozen=True, slots=True)
class Recall:
    """The answer to a question: what was understood of it, the hits, and the same as text."""

    question: str
    hits: Hits
    """What is about the question; empty where nothing is known."""
    text: str
    """The hits as lines, or a sentence that nothing is known."""
    warnings: tuple[str, ...] = field(default=())
    intent: str = "current"
    """current, historical, event or lineage."""
    window: Window | None = None
    """The time asked about, half-open; None where none was."""
    understood: ParsedQuestion | None = None
    """All that was read out of the question, and which words said so."""
    answer: str = ""
    """What was found as an answer with its sources, where one was asked for."""
    trace: "Trace | None" = None
    """How the answer came about, where an explanation was asked for."""
    nearest: Hits = field(default_factory=Hits)
    """Where there are no hits: at most three that come nearest to the question and probably do not answer it."""


@dataclass(slots=True)
class Recaller:
    """Answers questions and prepares prompts."""

    searcher: Searcher
    store: Store
    clock: Callable[[], datetime]
    refine: "Callable[[ParsedQuestion, datetime], ParsedQuestion] | None" = None

    def recall(self, query: SearchQuery, session: str = "", at: datetime | None = None) -> Recall:
        """Answer a question and note the use of what is about it."""
        found = self.answered(query, at)
        # A caller may query for less relevant hits, too; they are not strengthened by it.
        meant = [hit.id for hit in found.hits if hit.memory is not None and is_about(hit)]
        warning = self._note("recalled", meant, session)
        return replace(found, warnings=(*found.warnings, warning)) if warning else found

    def answered(self, query: SearchQuery, at: datetime | None = None) -> Recall:
        """Understand, search, phrase the answer, and tell how it came about if that was asked for."""
        moment = at or self.clock()
        question = parse(query.text, moment) if query.narrowed else self.understood(query.text, moment)
        searcher = replace(self.searcher, log=[]) if query.explain else self.searcher
        floor, query = query.min_relevance, replace(query.checked(), min_relevance=0.0)
        answer = Answerer(searcher, self.store, self.clock, floor).answer(question, query)
        trace = None
        if searcher.log is not None:
            from engram.recall.trace import traced

            trace = traced(question, answer, searcher.log)
        hits, text = answer.hits, lines_of(answer.hits, question.intent) or NOTHING_KNOWN
        return Recall(query.text, hits, text, (*answer.notes, *hits.warnings), question.intent, answer.window, question,
                      trace=trace, nearest=answer.nearest)  # fmt: skip

    def understood(self, text: str, at: datetime) -> ParsedQuestion:
        """What a question asks for; a model refines what the rules read, and only where it answers sensibly."""
        question = parse(text, at)
        return self.refine(question, at) if self.refine is not None else question

    def inject(
        self, task: str, filters: Filters, budget: int, session: str = "", min_relevance: float = HELPFUL
    ) -> Injection:
        """Choose what the task needs; note it as injected."""
        if type(budget) is not int or budget < MIN_BUDGET:
            raise InvalidInput(f"budget {budget!r:.40} must be a whole number of tokens, at least {MIN_BUDGET}")
        from engram.embedding.tokenizer import count_tokens
        from engram.recall.prompt import inject

        now = self.clock()
        hits = self._offered(SearchQuery(task, INJECT_POOL, filters=filters, min_relevance=min_relevance).checked())
        chosen = inject.build(
            hits, budget, count_tokens, now, lambda directives: self._spread(directives, hits, filters, now)
        )
        warning = self._note("injected", chosen.ids, session)
        return replace(chosen, warnings=(*chosen.warnings, warning)) if warning else chosen

    def _offered(self, query: SearchQuery) -> Hits:
        hits = self.searcher.search(query) if query.text.strip() else Hits()
        known = {hit.id for hit in hits}
        for memory in self._always(query.filters):
            if memory.id not in known:
                known.add(memory.id)
                hits.append(Hit(memory.id, "memory", 0.0, memory.statement, memory))
        return hits

    def _always(self, filters: Filters) -> list[Memory]:
        """What is offered whatever the task is: all that is critical, and the newest of what is pinned.

        A slot or a pin that a file brought along holds no place.
        """

        def said(narrowed: Filters) -> list[Memory]:
            return [memory for memory in self.store.listing(narrowed) if not is_evidence(memory)]

        return said(replace(filters, critical=True)) + said(replace(filters, pinned=True))[:PINNED_POOL]

    def _spread(
        self, directives: Sequence[tuple[Memory, float]], hits: Hits, filters: Filters, now: datetime
    ) -> "Sequence[SpreadHit]":
        from engram.recall.activation import spread

        scored = [(memory, score) for memory, score in directives if score > 0]

        def fetch(ids: Iterable[str]) -> list[Memory]:
            found = [self.store.get(memory_id) for memory_id in ids]
            return [m for m in found if m is not None and (filters.scopes is None or m.scope in filters.scopes)]

        return spread(scored, fetch, self.store.links_to, {hit.id for hit in hits}, now)

    def _note(self, kind: str, ids: Sequence[str], session: str) -> str:
        if not ids:
            return ""
        try:
            self.store.note_use(Use(kind, tuple(ids), self.clock(), session))
        except (StoreReadOnly, StoreDenied) as error:
            return f"{error}; the use was not recorded"
        return ""


def lines_of(hits: Iterable[Hit], intent: str) -> str:
    """Hits as lines; with their times, where another time than now was asked about."""
    return "\n".join(line_of(hit, dated=intent != "current") for hit in hits)


def line_of(hit: Hit, *, dated: bool = False) -> str:
    """A hit as one line of an answer: its id and what it is, then its words as a quotation."""
    return f"{label_of(hit)}: {quoted(hit.stretch or hit.text)}{remark_of(hit, dated=dated)}"


def label_of(hit: Hit) -> str:
    """What stands before the words of a hit: its id and what it is."""
    label = type_or_default(hit.memory.type).label if hit.memory else word(hit.event.role) if hit.event else hit.kind
    return f"[{word(hit.id)}] {label}"


def remark_of(hit: Hit, *, dated: bool) -> str:
    """What is said of a hit behind its words, in brackets: that it was only read, a caveat, when it was so or happened."""
    said = [part for part in (EVIDENCE if is_read(hit) else "", hit.note, time_of(hit) if dated else "") if part]
    return f" ({notice(', '.join(said))})" if said else ""
