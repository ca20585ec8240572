"""The results of a search, with its trace, and of a timeline."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from engram.model.lazy import dataclass, field
from engram.model.memory import Memory
from engram.model.records import Displayed, Event, html_table

USER_WORDS, WAITS_NOTE = "the user's words, not confirmed", "waits for review"
"""Notes on a candidate. One that the ledger proves to be the user's own words may be quoted; of others only the id is
shown.
"""
NOTHING_KNOWN = "Nothing is known about this."
"""The text of an answer without hits."""


@dataclass(frozen=True, slots=True)
class Part:
    """One named contribution to a score, either added or multiplied."""

    name: str
    value: float
    operation: str = "+"
    detail: str = ""


@dataclass(frozen=True, slots=True)
class HitTrace:
    """How one document got its score. `replay()` recomputes the score."""

    parts: tuple[Part, ...] = ()
    found_by: Mapping[str, int] = field(default_factory=dict)
    """The rank (from 1) by each retriever that found it."""
    raw: Mapping[str, float] = field(default_factory=dict)
    """Each retriever's raw score."""
    wording: str = ""
    """The caller's other wording that it matches best; "" if the question itself matches best."""
    version_of: str = ""
    """If no search found it: the hit of which it is another version. The parts are those of that hit."""

    def replay(self) -> float:
        """Recompute the score from its parts, in order."""
        score = 0.0
        for part in self.parts:
            score = score * part.value if part.operation == "×" else score + part.value
        return score


@dataclass(frozen=True, slots=True)
class Filtered:
    """A document that was considered and is not in the answer, with the reason."""

    id: str
    reason: str


@dataclass(frozen=True, slots=True)
class SearchTrace:
    """One search for an answer: its text and filters, the results of the retrievers, and what was found and cut."""

    purpose: str
    text: str
    where: str
    """The filters in words."""
    mode: str
    terms: tuple[str, ...]
    pruned_terms: tuple[str, ...]
    """Terms so common that they were left out."""
    candidates: Mapping[str, int]
    """How many documents each retriever returned."""
    found: tuple[str, ...]
    """The ids found, best first."""
    limit: int
    cut: tuple[str, ...] = ()
    """The ids that were scored and cut by the limit."""
    filtered: tuple[Filtered, ...] = ()
    """Candidates whose record, once read, did not pass the filters."""


@dataclass(frozen=True, slots=True, repr=False)
class Hit(Displayed):
    """One result. `metadata` is the caller's own data, returned unchanged."""

    _SHOWN = ("id", "score", "relevance", "text")
    _HIDDEN = frozenset(("kind", "memory", "event", "trace"))

    id: str
    kind: str
    score: float
    text: str
    memory: Memory | None = None
    event: Event | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    trace: HitTrace | None = None
    relevance: float = 0.0
    """The probability, 0 to 1, that it is about the question, independent of other hits."""
    note: str = ""
    """A caveat the reader should see, such as "archived" or "disputed"."""
    stretch: str = ""
    """The excerpt of a long text that is about the question; empty for a short text."""


class Hits(list[Hit]):
    """A list of hits with the search's mode, warnings and what it filtered out."""

    def __init__(self, hits: "list[Hit] | None" = None) -> None:
        super().__init__(hits or [])
        self.mode: str = "hybrid"
        self.warnings: list[str] = []
        self.filtered: list[Filtered] = []
        self.terms: tuple[str, ...] = ()
        self.pruned_terms: tuple[str, ...] = ()

    def _repr_html_(self) -> str:
        rows = [(hit.id, hit.score, hit.relevance, hit.text, hit.note) for hit in self]
        return html_table([("id", "score", "relevance", "text", "note"), *rows])


@dataclass(frozen=True, slots=True)
class ScopeMatches:
    """How many memories of another scope match a question."""

    scope: str
    count: int


@dataclass(frozen=True, slots=True)
class AnswerParts:
    """The parts of an answer besides its hits, each with the best first."""

    possible: Hits = field(default_factory=Hits)
    """The nearest hits below the floor, or about a time other than the question's."""
    unconfirmed: Hits = field(default_factory=Hits)
    """Candidates, which wait for review."""
    older: Hits = field(default_factory=Hits)
    """Superseded, archived, stale and expired memories; `note` says when they stopped being current."""
    elsewhere: tuple[ScopeMatches, ...] = ()
    """Matches in other projects."""

    @property
    def ids(self) -> frozenset[str]:
        """The ids of the hits in every part."""
        return frozenset(hit.id for part in (self.possible, self.unconfirmed, self.older) for hit in part)


@dataclass(frozen=True, slots=True)
class Injected:
    """One memory in a prompt, and the reason."""

    memory: Memory
    score: float
    reason: str
    section: str
    text: str
    trace: HitTrace | None = None


@dataclass(frozen=True, slots=True)
class EarlierSession:
    """The summary of an earlier session in a prompt, as the line shown there."""

    id: str
    ended: datetime | None
    text: str


@dataclass(frozen=True, slots=True, repr=False)
class Injection(Displayed):
    """The memories an agent gets at the start of a task."""

    _SHOWN = ("ids", "tokens")
    _HIDDEN = frozenset(("directives", "consider", "related", "unconfirmed", "sessions", "text"))

    directives: tuple[Injected, ...] = ()
    consider: tuple[Injected, ...] = ()
    related: tuple[Injected, ...] = ()
    unconfirmed: tuple[Injected, ...] = ()
    """Candidates in the user's own words, proven by the ledger. They are not part of `items` and not recorded as used."""
    text: str = ""
    tokens: int = 0
    budget: int = 0
    left_out: tuple[Filtered, ...] = ()
    warnings: tuple[str, ...] = ()
    sessions: tuple[EarlierSession, ...] = ()
    """At the start of a session: the outcomes of earlier ones about the task, or of the last one."""

    @property
    def items(self) -> tuple[Injected, ...]:
        """All injected memories except unconfirmed ones, in the order of the text."""
        return self.directives + self.consider + self.related

    @property
    def ids(self) -> tuple[str, ...]:
        """Their ids."""
        return tuple(item.memory.id for item in self.items)


@dataclass(frozen=True, slots=True)
class TimelineEntry:
    """A fact or an event, with the time at which it was true or happened."""

    at: datetime
    kind: str
    """`memory`, `event` or `session`."""
    id: str
    text: str
    status: str = ""
    """A memory's status."""
    note: str = ""
    """What replaced a memory, the speaker of an event, or that a session ended."""
