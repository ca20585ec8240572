"""The answers of a model as plain records, which become the JSON schema of the answer."""

from typing import Literal

from engram.model.lazy import dataclass, field

FactType = Literal[
    "preference", "correction", "behavioral", "convention", "constraint", "decision", "profile", "factual", "commitment"
]
"""The types a model may give a fact; a policy may change them afterwards."""
Operation = Literal["ADD", "UPDATE", "SUPERSEDE", "NOOP"]
Intent = Literal["current", "historical", "event", "lineage"]


@dataclass(frozen=True)
class Fact:
    """One lasting fact, with the words of the conversation that support it, and what to do with it as in `Choice`."""

    statement: str
    type: FactType
    quote: str
    operation: Operation = "ADD"
    target: str = ""
    reason: str = ""


@dataclass(frozen=True)
class Choice:
    """What to do with one fact, by its number; `target` is the id of the known memory it is about, or ""."""

    fact: int
    operation: Operation
    target: str
    reason: str


@dataclass(frozen=True)
class ExtractedFacts:
    """Every further fact of a turn that is worth keeping, often none, and one choice for each fact already found."""

    facts: list[Fact]
    choices: list[Choice] = field(default_factory=list)


@dataclass(frozen=True)
class QuestionReading:
    """What a question asks for; `since` and `until` are ISO dates, or ""."""

    intent: Intent
    since: str
    until: str


@dataclass(frozen=True)
class Permutations:
    """The same question in other words."""

    queries: list[str]


@dataclass(frozen=True)
class StatementCues:
    """The cues of the statement with this id."""

    id: str
    cues: list[str]


@dataclass(frozen=True)
class SuggestedCues:
    """Cues for stored statements."""

    memories: list[StatementCues]


@dataclass(frozen=True)
class SessionSummary:
    """What a session was about and where it stands."""

    goal: str
    constraints: list[str]
    progress: list[str]
    decisions: list[str]
    next_steps: list[str]
    critical_context: list[str]


@dataclass(frozen=True)
class ComposedAnswer:
    """An answer from known memories, with their ids; "" where they do not answer the question."""

    answer: str
    sources: list[str]


@dataclass(frozen=True)
class PassageChoice:
    """A passage that helps with a question, by its number, and the words of it that do."""

    number: int
    quote: str


@dataclass(frozen=True)
class ChosenPassages:
    """The passages that help with a question, the most helpful first."""

    choices: list[PassageChoice]


@dataclass(frozen=True)
class FindingsSummary:
    """What findings say about a question; "" where they say nothing about it."""

    summary: str
