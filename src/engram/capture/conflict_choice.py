"""What to do with a new memory that contradicts a stored one (spec 3): update that one, replace it, keep both, or skip the new one."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from engram.capture.broader_situation import broader_situation
from engram.decisions.authority import refuse_outranked
from engram.decisions.locked import LockedMemories
from engram.model.decision import Decision, Outcome
from engram.model.errors import InvalidInput, Refused
from engram.model.lazy import replace
from engram.model.memory import Memory
from engram.store.records import locked_memory

__all__ = ["ON_CONFLICT", "absorb", "apply_choice", "check_choice", "open_conflicts"]

ON_CONFLICT = ("update", "replace", "keep-both", "skip")
"""What a caller may choose; without a choice a contradiction is stored as a candidate and waits for review."""
NOT_STORED = "; nothing was stored"
"""Ends the reason of a decision about a contradiction that was skipped."""
_RELATION = {"replace": "update", "keep-both": "different"}
_REWORDED = ("statement", "form", "situation", "type", "rationale", "tags", "cues", "domain")

Learn = Callable[..., Decision]
Update = Callable[[Memory, Mapping[str, Any], Memory | None], Memory]
"""Changes a memory, and has it absorb the candidate, if any, that waited to say so."""


def check_choice(choice: str, given: Mapping[str, Any], relation: str) -> None:
    """Raise `InvalidInput` for an unknown choice, or one beside memories that the caller names."""
    if choice and choice not in ON_CONFLICT:
        raise InvalidInput(f"Unknown on_conflict {choice!r}; choose {', '.join(ON_CONFLICT)}")
    if choice and choice != "skip" and (given.get("supersedes") or relation):
        raise InvalidInput(f"on_conflict={choice!r} decides about what is found; leave out supersedes and relation")


def open_conflicts(found: Decision) -> list[Memory]:
    """The current memories that a proposal contradicts, where it was not stored or repeats a candidate that waits for them."""
    stored = found.memory
    is_new = found.outcome == Outcome.CONTRADICTION and stored is None
    is_waiting = found.outcome == Outcome.DUPLICATE and stored is not None and stored.status == "candidate"
    if found.other is None or not (is_new or is_waiting):
        return []
    others = {other.id: other for other in (found.other, *(one.memory for one in found.related))}
    return [other for other in others.values() if stored is None or other.id != stored.id]


def apply_choice(found: Decision, choice: str, given: Mapping[str, Any], learn: Learn, update: Update) -> Decision:
    """The decision by the caller's choice, where a proposal contradicts memories and nobody has decided about that yet."""
    others = open_conflicts(found)
    if not others:
        return found
    if choice == "skip":
        return found if found.memory is None else replace(found, reason=f"{found.reason}; skip changes neither")
    if choice == "update":
        return _update_stored(found, others, given, learn, update)
    return learn({**given, "supersedes": tuple(other.id for other in others)}, relation=_RELATION[choice])


def _update_stored(
    found: Decision, others: Sequence[Memory], given: Mapping[str, Any], learn: Learn, update: Update
) -> Decision:
    """The first of the stored memories with what the new one says; where the source may not change it, the new one waits for review."""
    other = others[0]
    changes = {name: given[name] for name in _REWORDED if given.get(name)}
    changes.setdefault("rationale", "")  # the old one explains what it no longer says
    if "statement" in changes:
        changes.setdefault("form", {})
    if changes.get("situation"):
        changes["situation"] = broader_situation(other.situation, changes["situation"]) or other.situation
    try:
        after = update(other, changes, found.memory)
    except Refused:
        decision = found if found.memory is not None else learn(given, relation="")
        return replace(decision, reason=f"{decision.reason}; {_refusal_reason(others)}")
    left = [one for one in found.related if one.memory.id != other.id]
    still = f"; it still contradicts {_ids(one.memory for one in left)}" if left else ""
    waited = f"{other.id} now says what {found.memory.id} waited to say" if found.memory is not None else ""
    reason = f"{waited or found.reason.removesuffix(NOT_STORED)}; updated as the caller chose{still}"
    return Decision(
        outcome=Outcome.UPDATED, memory=after, other=None, reason=reason, gate=found.gate, related=tuple(left)
    )


def _refusal_reason(others: Sequence[Memory]) -> str:
    if len(others) == 1:
        return f"{others[0].id} stays as it is until a person decides"
    return f"`update` changes one memory, and this contradicts {_ids(others)}: `replace` supersedes them all"


def _ids(memories: Iterable[Memory]) -> str:
    return " and ".join(memory.id for memory in memories)


def absorb(memories: LockedMemories, waiting: str, memory: Memory, actor: str) -> Memory:
    """The memory, superseding a candidate that waited to say the same. Raises `Refused` where the actor may not decide about that one."""
    candidate = locked_memory(memories, waiting)
    # Somebody else may have decided about it meanwhile.
    if candidate.status != "candidate":
        return memory
    refuse_outranked(actor, candidate, "settle a contradiction against")
    memories.put(candidate.replace(status="superseded", superseded_by=memory.id, updated=memories.now))
    return memory.replace(supersedes=tuple(dict.fromkeys((*memory.supersedes, waiting))))
