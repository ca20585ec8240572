"""The outcome of a write and the reason for it, for one memory or for each item of a batch."""

from collections.abc import Iterable
from enum import StrEnum

from engram.model.errors import EngramError
from engram.model.lazy import dataclass
from engram.model.memory import Memory
from engram.model.records import Displayed


class Outcome(StrEnum):
    """The eight outcomes of a write."""

    CREATED = "CREATED"
    PENDING = "PENDING"
    DUPLICATE = "DUPLICATE"
    CONTRADICTION = "CONTRADICTION"
    SUPERSEDED = "SUPERSEDED"
    UPDATED = "UPDATED"
    NOOP = "NOOP"
    REJECTED = "REJECTED"


DISTRUST = "distrust"
"""The journal's name for removing everything from a source, and the name of the gate that refuses its proposals."""
RELATIONS = ("update", "contradiction", "refinement", "same", "different")
"""How a new statement can relate to a stored one."""


@dataclass(frozen=True, slots=True)
class Related:
    """A stored memory that a new one may outdate or contradict, and how likely that is."""

    memory: Memory
    relation: str
    """`update` or `contradiction`."""
    probability: float
    reason: str

    @property
    def call(self) -> str:
        """How to replace this memory by the new statement: the arguments to repeat `learn` with."""
        return f'supersedes=["{self.memory.id}"]'


@dataclass(frozen=True, slots=True, repr=False, kw_only=True)
class Decision(Displayed):
    """The outcome of one write: the memory stored or changed, the other one involved, the gate that decided, and the reason."""

    _SHOWN = ("outcome", "memory")

    outcome: Outcome
    memory: Memory | None = None
    other: Memory | None = None
    reason: str = ""
    gate: str = ""
    related: tuple[Related, ...] = ()
    """Up to three stored memories that this one may outdate or contradict, but did not supersede."""
    warnings: tuple[str, ...] = ()
    """Warnings for the author, for example about a situation that no search would match, with a better one."""

    @property
    def has_new_memory(self) -> bool:
        """Whether a new memory now exists because of this write."""
        return self.memory is not None and self.outcome in {
            Outcome.CREATED,
            Outcome.PENDING,
            Outcome.CONTRADICTION,
            Outcome.SUPERSEDED,
        }


@dataclass(frozen=True, slots=True)
class SkippedItem:
    """An item of a batch that was refused."""

    index: int
    """Its position in the batch, from 0."""
    excerpt: str
    """The beginning of its statement; "" if it has none, or contains a secret."""
    error: EngramError
    """The error with which it was refused."""

    @property
    def reason(self) -> str:
        """Why it was refused."""
        return str(self.error)


class AddedMemories(list[Memory]):
    """The stored memories in the order of their items, and the items that were skipped."""

    def __init__(self, memories: Iterable[Memory] = ()) -> None:
        super().__init__(memories)
        self.skipped: list[SkippedItem] = []
