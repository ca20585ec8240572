"""The gates' input (`Proposal`), their view of the store (`Lookup`), their settings and their result (`Verdict`)."""

from collections.abc import Callable, Sequence
from typing import Protocol

from engram.model.decision import Outcome
from engram.model.lazy import dataclass
from engram.model.memory import Memory, Status
from engram.rules.sources import may_replace

__all__ = ["Conflict", "GateSettings", "Lookup", "Neighbour", "Proposal", "Verdict"]

# A statement is 25–60 words (spec 1); longer text is a document and belongs to `ingest`.
MAX_STATEMENT_CHARS = 32_000
# `add` trusts its caller, who may store whole documents; a larger file of the store would be unreadable.
MAX_ADDED_BYTES = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Proposal:
    """A memory as it would be stored, before the gates have judged it. Its id may be empty."""

    memory: Memory
    autonomous: bool
    """Captured without an explicit request by a person or a caller, so the five quality gates apply."""
    content_hash: str
    tokens: tuple[str, ...]
    named: tuple[Memory, ...] = ()
    """The stored memories that the caller names."""
    relation: str = ""
    """How it relates to them, by the caller's word: one of `model.decision.RELATIONS`."""
    alone: bool = False
    """It is not clear what it is about, so it replaces nothing that the caller does not name."""
    is_typed: bool = True
    """Whether somebody said what type it is; a type that the policy infers makes nothing wait."""

    def leaves_out(self, memory_id: str) -> bool:
        """Whether the caller has already said how it relates to this memory, and may: no agent says that a person's word is no matter."""
        if memory_id in self.memory.supersedes:
            return True
        return any(memory_id == named.id and self._is_free_beside(named) for named in self.named)

    def _is_free_beside(self, named: Memory) -> bool:
        return self.relation not in ("different", "refinement") or may_replace(self.memory.source, named)


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A stored memory similar to a proposal. Without an embedder the cosine is nan or negative."""

    memory: Memory
    cosine: float
    decided: str = ""
    """Where a person took it out of use: who, how and when."""


@dataclass(frozen=True, slots=True)
class Conflict:
    """A stored memory that a proposal outdates or contradicts."""

    other: Memory
    relation: str
    """`update` or `contradiction`."""
    probability: float
    why: str
    is_sure: bool = False
    """An update so certain that it needs no review."""
    is_likely: bool = True
    """Certain enough to wait for review; otherwise it is only worth mentioning."""


class Lookup(Protocol):
    """The lookups that the gates need from a store."""

    def exact(self, content_hash: str, scope: str) -> Memory | None:
        """A live memory of that scope with that content hash."""

    def heads(self, conflict_key: str, scope: str) -> Sequence[Memory]:
        """The current memories with a conflict key in a scope."""

    def near(self, proposal: Proposal) -> Sequence[Neighbour]:
        """The nearest live memories in the proposal's scope, by meaning and by words."""

    def rejected_neighbours(self, proposal: Proposal) -> Sequence[Neighbour]:
        """The nearest memories in the scopes that see the proposal, or that it is seen from, that a person rejected."""

    def withdrawn_neighbours(self, proposal: Proposal) -> Sequence[Neighbour]:
        """The same of those that a person retired or replaced."""


@dataclass(frozen=True, slots=True)
class GateSettings:
    """The settings of the gates that the owner of a store may change."""

    autopromote_remember: bool = True
    """An explicit `remember` or `learn` of tier 1 becomes active at once."""
    autopromote_harvest: bool = False
    """Tier 1 memories that were captured, harvested or imported without an explicit request also become active at once."""
    autopromote_kinds: frozenset[str] = frozenset()
    """The only kinds that become active without review; empty for every kind of tiers 1 and 2."""
    most_per_source: int = 500
    """Candidates that one untrusted source may add a day; 0 for no limit."""
    max_statement_chars: int = MAX_STATEMENT_CHARS
    """For `learn` and `remember`."""
    max_added_bytes: int = MAX_ADDED_BYTES
    """For `add`, in UTF-8."""
    allowed_values: Callable[[], tuple[str, ...]] = tuple
    """Returns patterns of values that are not secrets: the setting `secrets.allow`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The gates' result: the outcome, the gate that decided, and a readable reason."""

    outcome: Outcome
    gate: str
    reason: str
    other: Memory | None = None
    status: Status = "active"
    passed: tuple[str, ...] = ()
    """The gates passed before that one, in order."""
    conflicts: tuple[Conflict, ...] = ()
    """The current memories that it may outdate or contradict, most likely first."""
    withdrawn: str = ""
    """The id of the memory that a person took out of use and that it says again."""
    waits_alone: bool = False
    """It waits for review only because of a conflict; its source could have stored it as active."""

    @property
    def is_admitted(self) -> bool:
        """Whether the memory is stored."""
        return self.outcome in {Outcome.CREATED, Outcome.PENDING, Outcome.CONTRADICTION, Outcome.SUPERSEDED}
