"""Who may approve a waiting memory, and how contradictions, duplicates and merges are settled."""

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING

from engram.decisions.authority import last_decision, refuse_outranked, refuse_rejection
from engram.decisions.versions import contradiction_target, place_version, replaced_memories
from engram.gates.instructions import injection_problem
from engram.gates.pipeline import check_shape
from engram.gates.proposal import GateSettings
from engram.gates.trust import is_human, tier_3_reason, trust
from engram.model.errors import InvalidInput, Refused
from engram.model.lazy import replace
from engram.model.memory import CONTRADICTS, LIVE_STATUSES, MAY_SUPERSEDE, Association, Memory
from engram.rules.labels import add_cues
from engram.rules.lifecycle import consolidate, has_begun, reinforce_memory
from engram.rules.sources import CONFIRMED, Rank, is_evidence, origin_of, rank_of
from engram.store.protocol import Transaction
from engram.store.records import start_of

if TYPE_CHECKING:
    from engram.decisions.execution import LockedMemories
    from engram.store.protocol import Store

VALID_ELSEWHERE = "valid_elsewhere"
"""The type of a link between two memories that are each valid in their own situation."""


def mark_confirmed(memory: Memory, actor: str) -> Memory:
    """The memory, marked as confirmed if the actor is a person."""
    return memory.replace(verification=CONFIRMED) if is_human(actor) else memory


def keep_one(deciding: Transaction, winner: Memory, loser: Memory, now: datetime) -> Memory:
    """Make the winner the loser's next version and return it; the winner's earlier versions join that fact's history."""
    winner = consolidate(_remove_links(winner, loser.id), now).replace(status="active", updated=now)
    lineage = loser.lineage or loser.id
    if winner.lineage and winner.lineage != lineage:
        for version in deciding.lineage(winner.lineage):
            if version.id != winner.id:
                deciding.put(version.replace(lineage=lineage, updated=now))
    loser = loser.replace(lineage=lineage, updated=now)
    deciding.put(loser)
    begins = max(winner.valid_from or now, min(start_of(loser), now) if has_begun(loser, now) else start_of(loser))
    winner = place_version(deciding, winner.replace(lineage="", valid_from=begins), [loser], now)
    deciding.put(winner)
    return winner


def keep_old(deciding: Transaction, new: Memory, old: Memory, now: datetime) -> Memory:
    """Keep the old memory and return it; the new one is rejected if it is a candidate, else retired."""
    status = "rejected" if new.status == "candidate" else "retired"
    deciding.put(new.replace(status=status, updated=now))
    old = consolidate(old, now).replace(status="active", updated=now)
    deciding.put(old)
    return old


def keep_both(deciding: Transaction, new: Memory, old: Memory, situations: tuple[str, str], now: datetime) -> Memory:
    """Make the new memory active next to the old one, each limited to its situation, and return it."""
    kept_new = consolidate(_remove_links(new, old.id), now)
    link = Association(old.id, VALID_ELSEWHERE, 0.5, last_reinforced=now)
    kept_new = kept_new.replace(status="active", updated=now, associations=(*kept_new.associations, link))
    kept_old = consolidate(old, now)
    if situations[0]:
        kept_new = kept_new.replace(situation=situations[0])
    if situations[1]:
        kept_old = kept_old.replace(situation=situations[1])
    deciding.put(check_shape(kept_old.replace(updated=now)))
    deciding.put(check_shape(kept_new))
    return kept_new


def merge_into(
    deciding: Transaction, survivor: Memory, others: Sequence[Memory], statement: str, now: datetime
) -> Memory:
    """The survivor with the merged statement and all tags, cues and evidence; the others are superseded but stay readable."""
    if not statement.strip():
        raise InvalidInput("merge needs a merged statement")
    tags = tuple(dict.fromkeys(tag for memory in (survivor, *others) for tag in memory.tags))
    cues = add_cues(survivor.cues, (cue for other in others for cue in other.cues))
    evidence = survivor.evidence
    for other in others:
        evidence += tuple(one for one in other.evidence if one not in evidence)
    merged = consolidate(survivor, now).replace(
        statement=statement.strip(), form={}, tags=tags, cues=cues, evidence=evidence, updated=now, entities=()
    )
    for other in others:
        merged = _remove_links(merged, other.id)
    check_shape(merged)
    for other in others:
        if other.status in LIVE_STATUSES and other.lineage:
            # Both were true before, so the survivor begins at the later of their beginnings, not now.
            merged = keep_one(deciding, merged.replace(valid_from=start_of(merged)), other, now)
        else:
            deciding.put(other.replace(status="superseded", superseded_by=merged.id, updated=now))
            merged = merged.replace(supersedes=tuple(dict.fromkeys((*merged.supersedes, other.id))))
    deciding.put(merged)
    return merged


def _remove_links(memory: Memory, other: str) -> Memory:
    kinds = (CONTRADICTS, MAY_SUPERSEDE)
    links = tuple(link for link in memory.associations if not (link.type in kinds and link.target == other))
    return replace(memory, associations=links)


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
    """Why a memory needs a person's approval regardless of settings (tier 3, or it reads like an instruction); "" if it does not."""
    return tier_3_reason(memory) or injection_problem(memory)


def person_only_reason(memory: Memory, settings: GateSettings) -> str:
    """Why no agent may make this memory active; "" if one may.

    Reasons: it is tier 3, it reads like an instruction, its source is untrusted, or the settings require review.
    """
    if held := waiting_reason(memory):
        return held
    if is_evidence(memory):
        return f"it comes from {origin_of(memory)} ({memory.source or 'unknown'})"
    found = trust(memory, False, settings)
    return found.reason if found.status != "active" else ""


def refuse_approval(actor: str, memory: Memory, settings: GateSettings) -> None:
    """Raise `Refused` if an agent would approve a memory that only a person may.

    A program acts for its owner and may approve it.
    """
    if rank_of(actor, Rank.PROGRAM) >= Rank.PROGRAM:
        return
    if reason := person_only_reason(memory, settings):
        raise Refused(
            f"{actor} may propose {memory.id}, not approve it: {reason}. A person may, at a terminal: "
            f"`engram promote {memory.id}`"
        )


def refuse_settled(store: "Store | LockedMemories", memory: Memory) -> None:
    """Raise `Refused`, naming the decision and its actor, if a memory no longer waits."""
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
    """Raise `InvalidInput` if a memory contradicts a current one and must be resolved instead."""
    if other is not None:
        raise InvalidInput(contradiction_problem(memory, other))


def contradiction_problem(memory: Memory, other: Memory) -> str:
    """Why a candidate cannot simply be approved, and how to settle it."""
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
    """The plan that rejects a candidate; an agent may reject only its own proposals."""
    refuse_settled(memories, memory)
    refuse_outranked(actor, memory, "reject")
    refuse_rejection(actor, memory)
    rejected = memory.replace(status="rejected", updated=memories.now)
    memories.put(rejected)
    return rejected


def reject_replaced(memories: "LockedMemories", memory: Memory, actor: str) -> list[Memory]:
    """Reject the candidates that an active memory supersedes; those the actor may not reject keep waiting."""
    if memory.status not in LIVE_STATUSES:
        return []
    rejected = []
    for other in filter(None, map(memories.get, memory.supersedes)):
        if other.status == "candidate":
            with suppress(Refused):
                rejected.append(reject(memories, other, actor))
    return rejected
