"""The one place that changes memories: it locks, reads and judges again, plans, releases what waited, and journals."""

from collections.abc import Callable
from datetime import datetime
from typing import TypeVar

from engram.decisions.change import Change
from engram.decisions.conflicts import contradicting_candidates
from engram.decisions.locked import LockedMemories
from engram.model.memory import CONTRADICTS, Memory
from engram.store.protocol import Store

__all__ = ["execute_change"]

T = TypeVar("T")


def execute_change(store: Store, clock: Callable[[], datetime], change: Change[T]) -> T:
    """Carry out a change as one decision of the journal, and return the answer of its plan.

    Under the lock, the targets are read again and judged again: for the caller's scopes, by what the caller was shown, and by the
    rank of who said them. After the plan, candidates that waited only for what it took out of use become active. At the end the
    store's screen checks every memory for secrets, and what an agent writes passes the gates.
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
