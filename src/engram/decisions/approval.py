"""Who may approve a memory that waits, and what becomes of it."""

from contextlib import suppress
from typing import TYPE_CHECKING

from engram.decisions.authority import last_decision, refuse_outranked, refuse_rejection
from engram.decisions.resolution import mark_confirmed
from engram.decisions.versions import contradiction_target, replaced_memories
from engram.gates.instructions import injection_problem
from engram.gates.proposal import GateSettings
from engram.gates.trust import tier_3_reason, trust
from engram.model.errors import InvalidInput, Refused
from engram.model.memory import Memory
from engram.rules.sources import Rank, is_evidence, origin_of, rank_of
from engram.rules.strength import reinforce_memory
from engram.store.records import CURRENT_STATUSES

if TYPE_CHECKING:
    from engram.decisions.locked import LockedMemories
    from engram.store.protocol import Store

_DECIDED = {
    "approve": "promoted it",
    "autopromote": "promoted it by rule",
    "reject": "rejected it",
    "resolve": "settled its contradiction",
    "merge": "merged it",
    "distrust": "took its source out",
    "forget": "retired it",
}


def waiting_reason(memory: Memory) -> str:
    """Why a memory waits for a person whatever the settings say: it is tier 3, or reads like an instruction; "" where it need not."""
    return tier_3_reason(memory) or injection_problem(memory)


def person_only_reason(memory: Memory, settings: GateSettings) -> str:
    """Why no agent may make this memory active; "" where one may.

    It is tier 3, reads like an instruction, an untrusted source said it, or the settings let it not become active by itself.
    """
    if held := waiting_reason(memory):
        return held
    if is_evidence(memory):
        return f"it comes from {origin_of(memory)} ({memory.source or 'unknown'})"
    found = trust(memory, False, settings)
    return found.reason if found.status != "active" else ""


def refuse_approval(actor: str, memory: Memory, settings: GateSettings) -> None:
    """Raise `Refused` where an agent would approve what only a person may. A program acts for its owner, and may."""
    if rank_of(actor, Rank.PROGRAM) >= Rank.PROGRAM:
        return
    if reason := person_only_reason(memory, settings):
        raise Refused(
            f"{actor} may propose {memory.id}, not approve it: {reason}. A person may, at a terminal: "
            f"`engram promote {memory.id}`"
        )


def refuse_settled(store: "Store | LockedMemories", memory: Memory) -> None:
    """Raise `Refused`, naming who decided what, where a memory no longer waits."""
    if memory.status == "candidate":
        return
    history = store.history(memory.id)
    last = last_decision(history) if history else None
    if last is None or last.op not in _DECIDED:
        raise Refused(f"{memory.id} does not wait for review: it is {memory.status}; nothing was changed")
    raise Refused(
        f"{memory.id} no longer waits: {last.actor or 'somebody'} {_DECIDED[last.op]} at {last.at:%Y-%m-%d %H:%M}, "
        f"and it is {memory.status}; nothing was changed. `engram undo {memory.id}` undoes that"
    )


def refuse_contradiction(memory: Memory, other: Memory | None) -> None:
    """Raise `InvalidInput` where a memory must be resolved against a current one instead."""
    if other is not None:
        raise InvalidInput(contradiction_problem(memory, other))


def contradiction_problem(memory: Memory, other: Memory) -> str:
    """Why a candidate cannot simply be approved, and what settles it."""
    return f"{memory.id} contradicts {other.id}: resolve it with `engram review {memory.id} --keep new|old|both|merge`"


def approve(memories: "LockedMemories", memory: Memory, actor: str, settings: GateSettings) -> Memory:
    """The plan that makes a candidate active, superseding the current memories with its conflict key and those it names."""
    refuse_settled(memories, memory)
    refuse_approval(actor, memory, settings)
    refuse_contradiction(memory, contradiction_target(memories.get, memory))
    active = mark_confirmed(reinforce_memory(memory, memories.now), actor).replace(
        status="active", last_verified=memories.now
    )
    memories.check(active)
    active = memories.supersede(active, replaced_memories(memories, active))
    memories.put(active)
    reject_replaced(memories, active, actor)
    return active


def reject(memories: "LockedMemories", memory: Memory, actor: str) -> Memory:
    """The plan that rejects a candidate; an agent only what it proposed itself."""
    refuse_settled(memories, memory)
    refuse_outranked(actor, memory, "reject")
    refuse_rejection(actor, memory)
    rejected = memory.replace(status="rejected", updated=memories.now)
    memories.put(rejected)
    return rejected


def reject_replaced(memories: "LockedMemories", memory: Memory, actor: str) -> list[Memory]:
    """Reject the candidates that an active memory supersedes; those that the actor may not reject keep waiting."""
    if memory.status not in CURRENT_STATUSES:
        return []
    rejected = []
    for other in filter(None, map(memories.get, memory.supersedes)):
        if other.status == "candidate":
            with suppress(Refused):
                rejected.append(reject(memories, other, actor))
    return rejected
