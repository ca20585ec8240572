"""What the gates are asked, what they may ask the store, and what they answer."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from engram.model.decision import Outcome
from engram.model.memory import Memory, Status

__all__ = ["GateSettings", "Known", "Neighbour", "Proposal", "Verdict"]

# A statement is 25–60 words (spec 1); what is longer than this is a document and belongs to `ingest`.
MAX_STATEMENT_CHARS = 32_000
# `add` trusts its caller, who may keep whole documents; beyond this a file of the store is no longer readable.
MAX_ADDED_BYTES = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Proposal:
    """A memory as it would be stored, before anyone has agreed to it. Its id may be empty."""

    memory: Memory
    autonomous: bool
    """Captured without a person's or a caller's explicit word: the five quality gates apply."""
    content_hash: str
    tokens: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A stored memory near a proposal. The cosine is nan or negative where there is no embedder."""

    memory: Memory
    cosine: float


class Known(Protocol):
    """What the store can tell the gates."""

    def exact(self, content_hash: str, scope: str) -> Memory | None:
        """A live memory of that scope with that content hash."""

    def heads(self, conflict_key: str, scope: str) -> Sequence[Memory]:
        """The memories in force that hold a conflict key in a scope."""

    def near(self, proposal: Proposal) -> Sequence[Neighbour]:
        """The nearest live memories of the proposal's scope, by meaning and by words."""


@dataclass(frozen=True, slots=True)
class GateSettings:
    """What the owner of a store may change about the gates."""

    autopromote_remember: bool = True
    """An explicit `remember` or `learn` of tier 1 becomes active at once."""
    autopromote_harvest: bool = False
    """So does what was captured, harvested or imported without anyone's word."""
    max_statement_chars: int = MAX_STATEMENT_CHARS
    """For `learn` and `remember`."""
    max_added_bytes: int = MAX_ADDED_BYTES
    """For `add`, in UTF-8."""
    allow_secrets: bool = False


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the gates say: the outcome, the gate that decided, and why, in words a person can read."""

    outcome: Outcome
    gate: str
    reason: str
    other: Memory | None = None
    status: Status = "active"
    passed: tuple[str, ...] = ()
    """The gates passed before, in order."""

    @property
    def admitted(self) -> bool:
        """Whether the memory is to be written."""
        return self.outcome in {Outcome.CREATED, Outcome.PENDING, Outcome.CONTRADICTION, Outcome.SUPERSEDED}
