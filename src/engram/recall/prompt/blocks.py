"""Prompt-ready blocks of memories within a token budget, and the trace of a recall."""

from collections.abc import Callable, Sequence
from datetime import datetime

from engram.model.errors import InvalidInput
from engram.model.hit import Filtered, Hit, Hits
from engram.model.lazy import dataclass, replace
from engram.model.memory import Memory
from engram.model.types import type_or_default
from engram.recall.cutoff import INJECT_FLOOR, is_about, put_evidence_last
from engram.recall.prompt.budget import AssembledPrompt, BudgetItem, Counter, PromptSection, assemble
from engram.recall.query import SearchQuery, may_answer
from engram.recall.recaller import Recall, label_of, remark_of
from engram.recall.search import Searcher
from engram.recall.task_memories import TaskMemoryFinder
from engram.rules.sources import EVIDENCE, is_evidence
from engram.store.protocol import Filters
from engram.text.display import quote_text, safe_word
from engram.text.tokens import missing_terms

CRITICAL = "Critical facts"
RELEVANT = "Relevant memories"
MAX_CONSIDERED_HITS = 40
"""The maximum number of hits considered for a block."""


@dataclass(frozen=True, slots=True)
class RecallTrace:
    """A recall with its trace, its text within a token budget, and the expected terms that the text lacks."""

    recall: Recall
    """The answer, as `recall` gives it; `recall.trace` explains it."""
    text: str
    tokens: int
    kept: tuple[str, ...]
    trimmed: tuple[str, ...]
    """What was cut to fit the budget."""
    superseded: tuple[str, ...]
    """Matches that are no longer current and not in the answer."""
    missing_expected_terms: tuple[str, ...]

    @property
    def query(self) -> str:
        """The question."""
        return self.recall.question

    @property
    def ranked(self) -> Hits:
        """The hits of the answer, in order."""
        return self.recall.hits

    @property
    def irrelevant(self) -> tuple[Filtered, ...]:
        """The documents found but not in the answer, with the reason."""
        return self.recall.trace.filtered if self.recall.trace is not None else ()


@dataclass(slots=True)
class Blocks:
    """Builds prompt blocks from search results."""

    searcher: Searcher
    clock: Callable[[], datetime]
    count: Counter

    def block(
        self,
        query: str,
        filters: Filters,
        max_tokens: int,
        *,
        header: str = "",
        by_type: bool = False,
        summary: str = "",
        count: Counter | None = None,
        min_relevance: float = INJECT_FLOOR,
    ) -> AssembledPrompt:
        """The session's summary, critical facts, then the hits for the query."""
        _check(max_tokens)
        hits = self._find_hits(query, filters, min_relevance)
        sections = [
            *(
                [PromptSection("Conversation so far", (BudgetItem("", summary, multiline=True),), required=True)]
                if summary
                else []
            ),
            *critical_section(
                self.searcher, SearchQuery(query, filters=filters, min_relevance=min_relevance, task=query)
            ),
            *(_by_type(hits) if by_type else [PromptSection(RELEVANT, tuple(item_of(hit) for hit in hits))]),
        ]
        return assemble(sections, max_tokens, count or self.count, header=header)

    def trace(
        self, found: Recall, filters: Filters, max_tokens: int, expected: str | Sequence[str] = ()
    ) -> RecallTrace:
        """The trace of a recall: its text within the budget, and what was trimmed, superseded or missing."""
        _check(max_tokens)
        dated = found.intent != "current"
        items = tuple(BudgetItem(hit.id, f"{quote_text(hit.stretch or hit.text)}{remark_of(hit, dated=dated, zone=found.zone)}", f"{label_of(hit)}:")
                      for hit in found.hits)  # fmt: skip
        built = assemble([PromptSection("", items)], max_tokens, self.count)
        past = replace(filters, statuses=("superseded",), valid_at=None, as_of=False)
        gone = [
            hit.id
            for hit in self.searcher.search(SearchQuery(found.question, MAX_CONSIDERED_HITS, filters=past))
            if is_about(hit)
        ]
        answered = {hit.id for hit in found.hits}
        superseded = tuple(memory_id for memory_id in gone if memory_id not in answered)
        lacking = missing_terms([expected] if isinstance(expected, str) else expected, built.text)
        return RecallTrace(found, built.text, built.tokens, built.kept, built.trimmed, superseded, lacking)

    def _find_hits(self, query: str, filters: Filters, floor: float) -> list[Hit]:
        search = SearchQuery(query, MAX_CONSIDERED_HITS, filters=filters, min_relevance=floor).validate()
        found, now = self.searcher.search(search) if query.strip() else Hits(), self.clock()
        return put_evidence_last([hit for hit in found if not may_answer(hit, now)])


def critical_section(searcher: Searcher, query: SearchQuery) -> list[PromptSection]:
    """The critical facts for a task as a required section, if there are any. Evidence from documents is never critical."""
    found = TaskMemoryFinder(searcher, searcher.store).find_critical(query)
    return [PromptSection(CRITICAL, tuple(memory_item(memory) for memory in found), required=True)] if found else []


def _check(max_tokens: int) -> None:
    if type(max_tokens) is not int or max_tokens < 1:
        raise InvalidInput(f"max_tokens {max_tokens!r} must be a whole number, at least 1")


def memory_item(memory: Memory) -> BudgetItem:
    """A memory as a line: its id and type, whether it is evidence only, then its statement in quotation marks."""
    label = type_or_default(memory.type).label + (f" ({EVIDENCE})" if is_evidence(memory) else "")
    return BudgetItem(memory.id, quote_text(memory.statement), label=f"[{safe_word(memory.id)}] {label}: ")


def item_of(hit: Hit) -> BudgetItem:
    """A hit as a line."""
    if hit.memory is not None:
        return memory_item(hit.memory)
    role = safe_word(hit.event.role) if hit.event else hit.kind
    return BudgetItem(hit.id, quote_text(hit.text), label=f"[{safe_word(hit.id)}] {role}: ")


def _by_type(hits: Sequence[Hit]) -> list[PromptSection]:
    groups: dict[str, list[BudgetItem]] = {}
    for hit in hits:
        title = type_or_default(hit.memory.type).label if hit.memory else "Said"
        groups.setdefault(title, []).append(item_of(hit))
    return [PromptSection(title, tuple(items)) for title, items in groups.items()]
