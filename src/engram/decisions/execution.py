"""The only place that changes memories: `execute_change` runs a change's plan under the lock, checks the result and journals it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, get_args

from engram.decisions.authority import refuse_changed, refuse_outranked, refuse_overturning
from engram.decisions.versions import contradicting_candidates, place_version, release_waiting
from engram.model.lazy import dataclass
from engram.model.memory import CONTRADICTS, LIVE_STATUSES, Memory
from engram.store.protocol import Image, ProposalKeys, Store, Transaction
from engram.store.records import ANSWERING_STATUSES, ENDED_STATUSES
from engram.store.references import find_locked

if TYPE_CHECKING:
    from engram.embedding.vectors import Vectors
    from engram.model.memory import Memory
    from engram.store.references import Scopes

__all__ = ["OPERATIONS", "TAKEN_BY", "Change", "LockedMemories", "Operation", "execute_change"]

Operation = Literal[
    "add", "amend", "approve", "autopromote", "compare", "derive", "distrust", "enrich", "export", "forget", "import", "learn",
    "merge", "pin", "put", "rate", "redact_evidence", "refresh", "reinforce", "reject", "relate", "request", "reread", "resolve",
    "retell", "revise", "separate", "undo", "unpin", "unrelate", "update", "use", "verify",
]  # fmt: skip
"""The journal's operations that change memories. They are stored names, so they never change."""
OPERATIONS: tuple[Operation, ...] = get_args(Operation)
TAKEN_BY: Mapping[Operation, str] = MappingProxyType({
    "amend": "edit", "forget": "retire", "merge": "merge", "pin": "pin", "revise": "revise",
    "separate": "take a retelling out of", "unpin": "unpin", "update": "update",
})  # fmt: skip
"""The operations that require the rank of a target's source, with a verb for error messages. The plans of other operations check
authority themselves, or only count, link, confirm or ask.
"""
T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change(Generic[T_co]):
    """One decision about memories, which `execute_change` carries out.

    Its plan runs under the lock and has no other effects.
    """

    op: Operation
    actor: str
    plan: "Callable[[LockedMemories], T_co]"
    """Reads and writes the locked memories and returns the result. It raises to refuse; then nothing is written."""
    reason: str = ""
    """The caller's reason, which may not contain a secret."""
    note: str = ""
    """Engram's own reason, used if the caller gives none."""
    session: str = ""
    targets: Sequence[str] = ()
    """The ids of the memories the actor decides about; the caller must be allowed to change them."""
    caller: "Scopes" = None
    """The scopes of a named owner, from `mem.scopes_for`; None for the store's operator."""
    shown: "Sequence[Memory]" = ()
    """The memories as the caller read them; a target that has changed since raises `ChangedMeanwhile`."""
    scopes: Iterable[str] = ()
    """The scopes whose contents the plan depends on: duplicates, names, conflict keys."""
    related: Iterable[str] = ()
    """The ids of other memories that may change, such as the versions of a target."""
    created: Sequence[datetime] = ()
    """The creation times of memories the plan may add; a backend may reserve their ids."""


JUDGED_FIELDS = (
    "statement", "situation", "form", "type", "scope", "rationale", "context", "domain", "trigger_context", "tags", "cues", "entities",
    "aliases", "anchors", "name", "source", "verification", "pinned",
)  # fmt: skip
"""The fields of a memory that the gates and the claim rules check."""


class LockedMemories:
    """The memories of one change, and the only object through which a plan writes.

    It has the read methods of a `Transaction`, so the rules in `versions` and `approval` accept either.
    """

    def __init__(self, store: Store, transaction: Transaction, change: Change[Any], now: datetime) -> None:
        self.now = now
        self._store, self._transaction, self._change = store, transaction, change
        self._judged: dict[str, Memory] = {}
        self.ended: set[str] = set()
        """The ids of the current memories that the plan has taken out of use."""
        self.targets: list[Memory] = [self.take(memory_id) for memory_id in change.targets]

    def take(self, memory_id: str) -> Memory:
        """A memory to decide about; raises `Refused` if the actor may not make this change to it."""
        memory, change = self.find(memory_id), self._change
        if (verb := TAKEN_BY.get(change.op)) is not None:
            refuse_outranked(change.actor, memory, verb)
            if memory.status in ENDED_STATUSES:
                refuse_overturning(change.actor, memory, self._store.history(memory.id))
        return memory

    # -- reading

    def find(self, memory_id: str) -> Memory:
        """A memory that the caller may change and that still matches what they read; raises otherwise."""
        memory = find_locked(self._transaction, memory_id, self._change.caller)
        refuse_changed(self._change.shown, memory)
        return memory

    def get(self, memory_id: str) -> Memory | None:
        """A memory; None if it was purged or never existed."""
        return self._transaction.get(memory_id)

    def exact(self, content_hash: str, scope: str) -> Memory | None:
        """The live memory with this content in this scope."""
        return self._transaction.exact(content_hash, scope)

    def heads(self, conflict_key: str, scope: str) -> Sequence[Memory]:
        """The current memories with a conflict key in a scope."""
        return self._transaction.heads(conflict_key, scope)

    def lineage(self, lineage_id: str) -> Sequence[Memory]:
        """Every version of a fact, ordered by when it was true."""
        return self._transaction.lineage(lineage_id)

    def changed_since(self, scope: str, mark: int) -> Sequence[Memory]:
        """The memories of a scope that others wrote after `mark`."""
        return self._transaction.changed_since(scope, mark)

    def history(self, memory_id: str) -> list[Image]:
        """Every decision about a memory, oldest first."""
        return self._store.history(memory_id)

    def prefetch(self, proposals: Sequence[ProposalKeys]) -> None:
        """Look up together what the plan will need; a hint for remote backends."""
        self._transaction.prefetch(proposals)

    def new_id(self, at: datetime, *, team: bool = False) -> str:
        """The next id of a day."""
        return self._transaction.new_id(at, team=team)

    def free_name(self, name: str, scope: str) -> str:
        """The name, or the name with the first free number appended."""
        return self._transaction.free_name(name, scope)

    def check(self, memory: Memory) -> None:
        """Raise if this change may not write the memory. Its content is not checked again at the end."""
        self._transaction.check(memory)
        self._judged[memory.id] = memory

    # -- writing

    def put(self, memory: Memory, vector: "Vectors | None" = None, *, team: str = "", judged: bool = False) -> None:
        """Add or replace a memory; `judged` means that the plan has already checked its content by the gates or rules as strict."""
        if judged:
            self._judged[memory.id] = memory
        elif (known := self._judged.get(memory.id)) is not None:
            judged = not _says_more(known, memory)
        if memory.status in LIVE_STATUSES:
            self.ended.discard(memory.id)
        elif (before := self._transaction.get(memory.id)) is not None and before.status in LIVE_STATUSES:
            self.ended.add(memory.id)
        self._transaction.put(memory, vector, team=team, judged=judged)

    def supersede(self, new: Memory, heads: Sequence[Memory], *, by: str = "", for_good: bool = False) -> Memory:
        """The new version, placed after these heads but not yet written.

        Raises `Refused` if the actor, or the source `by` if given, may not replace one of them.
        """
        for head in heads:
            refuse_outranked(by or self._change.actor, head, "supersede")
        return place_version(self, new, heads, self.now, for_good=for_good) if heads else new

    def release(self, waiting: Sequence[Memory]) -> list[Memory]:
        """Make active the candidates that no longer wait for anything, and return them, newest first."""
        return release_waiting(self, waiting, self.now)


def _says_more(judged: Memory, memory: Memory) -> bool:
    """Whether a memory's claim or effect has grown since it was checked."""
    begins = memory.status in ANSWERING_STATUSES and judged.status not in ANSWERING_STATUSES
    return begins or any(getattr(judged, name) != getattr(memory, name) for name in JUDGED_FIELDS)


T = TypeVar("T")


def execute_change(store: Store, clock: Callable[[], datetime], change: Change[T]) -> T:
    """Carry out a change as one journaled decision, and return its plan's result.

    Under the lock, the targets are read again and checked against the caller's scopes, against the memories the caller
    was shown, and against the trust rank of their sources. After the plan, candidates that waited only for memories it
    took out of use become active. Finally the store checks every memory for secrets, and what an agent writes passes
    the gates.
    """
    reason = _checked_reason(change.reason) if change.reason else change.note
    watched = list(dict.fromkeys((*change.targets, *change.related)))
    waiting = contradicting_candidates(store, watched)
    with store.deciding(
        change.op,
        actor=change.actor,
        reason=reason,
        session=change.session,
        scopes=sorted({*change.scopes, *(memory.scope for memory in waiting)}),
        about=[*watched, *(memory.id for memory in waiting)],
        ids_for=change.created,
    ) as transaction:
        memories = LockedMemories(store, transaction, change, clock())
        answer = change.plan(memories)
        if memories.ended:
            memories.release([one for one in waiting if _waits_for(one, memories.ended)])
    return answer


def _checked_reason(reason: str) -> str:
    from engram.gates.secrets.scan import checked_reason  # few changes have a reason, and the patterns are many

    return checked_reason(reason)


def _waits_for(memory: Memory, ids: set[str]) -> bool:
    return any(link.target in ids for link in memory.associations if link.type == CONTRADICTS)
