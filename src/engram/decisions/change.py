"""A change to memories as a value: who makes it, which memories it is about, and the plan that makes it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, Generic, Literal, TypeVar, get_args

from engram.model.lazy import dataclass

if TYPE_CHECKING:
    from engram.decisions.locked import LockedMemories
    from engram.model.memory import Memory
    from engram.store.references import Scopes

__all__ = ["OPERATIONS", "TAKEN_BY", "Change", "Operation"]

Operation = Literal[
    "add", "amend", "approve", "autopromote", "compare", "derive", "distrust", "enrich", "export", "forget", "import", "learn",
    "merge", "pin", "put", "rate", "redact_evidence", "refresh", "reinforce", "reject", "relate", "request", "reread", "resolve",
    "retell", "revise", "separate", "undo", "unpin", "unrelate", "update", "use", "verify",
]  # fmt: skip
"""The operations of the journal that change memories. Stored names: they never change."""
OPERATIONS: tuple[Operation, ...] = get_args(Operation)
TAKEN_BY: Mapping[Operation, str] = MappingProxyType({
    "amend": "edit", "forget": "retire", "merge": "merge", "pin": "pin", "revise": "revise",
    "separate": "take a retelling out of", "unpin": "unpin", "update": "update",
})  # fmt: skip
"""The operations that need the rank of a target's source, with what they do to it. The plans of the others judge it themselves, or take
nothing away from whoever said it: they count, link, confirm or ask.
"""
T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change(Generic[T_co]):
    """One decision about memories, which `execute_change` carries out. Its plan decides under the lock, and does nothing else."""

    op: Operation
    actor: str
    plan: "Callable[[LockedMemories], T_co]"
    """Reads and writes the locked memories and returns the answer. It raises to refuse; then nothing is written."""
    reason: str = ""
    """The caller's reason, which may not contain a secret."""
    note: str = ""
    """Engram's own reason, where the caller gives none."""
    session: str = ""
    targets: Sequence[str] = ()
    """The ids of the memories that the actor decides about; the caller must be allowed to change them."""
    caller: "Scopes" = None
    """The scopes of a named owner, from `mem.scopes_for`; None for the store's operator."""
    shown: "Sequence[Memory]" = ()
    """The memories as the caller read them; a target that says something else by now raises `ChangedMeanwhile`."""
    scopes: Iterable[str] = ()
    """The scopes whose contents the plan depends on: duplicates, names, conflict keys."""
    related: Iterable[str] = ()
    """The ids of other memories that may change, such as the versions of a target."""
    created: Sequence[datetime] = ()
    """The creation times of the memories it may add, whose ids a backend may reserve."""
