"""What to do with a new memory that contradicts a stored one (spec 3): update that one, replace it, keep both, or skip the new one."""

from collections.abc import Callable, Mapping
from typing import Any

from engram.capture.broader_situation import broader_situation
from engram.model.decision import Decision, Outcome
from engram.model.errors import InvalidInput, Refused
from engram.model.lazy import replace
from engram.model.memory import Memory

__all__ = ["ON_CONFLICT", "check_choice", "settled"]

ON_CONFLICT = ("update", "replace", "keep-both", "skip")
"""What a caller may choose; without a choice a contradiction is stored as a candidate and waits for review."""
NOT_STORED = "; nothing was stored"
"""Ends the reason of a decision about a contradiction that was skipped."""
_RELATION = {"replace": "update", "keep-both": "different"}
_REWORDED = ("statement", "form", "situation", "type")

Learn = Callable[..., Decision]
Update = Callable[..., Memory]


def check_choice(choice: str, given: Mapping[str, Any], relation: str) -> None:
    """Raise `InvalidInput` for an unknown choice, or one beside memories that the caller names."""
    if choice and choice not in ON_CONFLICT:
        raise InvalidInput(f"Unknown on_conflict {choice!r}; choose {', '.join(ON_CONFLICT)}")
    if choice and choice != "skip" and (given.get("supersedes") or relation):
        raise InvalidInput(f"on_conflict={choice!r} decides about what is found; leave out supersedes and relation")


def settled(found: Decision, choice: str, given: Mapping[str, Any], learn: Learn, update: Update) -> Decision:
    """The decision by the caller's choice, where a proposal was not stored because it contradicts a memory."""
    other = found.other
    if choice == "skip" or found.outcome != Outcome.CONTRADICTION or found.memory is not None or other is None:
        return found
    if choice == "update":
        return _updated(found, other, given, learn, update)
    others = dict.fromkeys([other.id, *(one.memory.id for one in found.related)])
    return learn({**given, "supersedes": tuple(others)}, relation=_RELATION[choice])


def _updated(found: Decision, other: Memory, given: Mapping[str, Any], learn: Learn, update: Update) -> Decision:
    """The stored memory with what the new one says; where the source may not change it, the new one waits for review."""
    changes = {name: given[name] for name in _REWORDED if given.get(name)}
    if changes.get("situation"):
        changes["situation"] = broader_situation(other.situation, changes["situation"]) or other.situation
    try:
        after = update(other.id, changes)
    except Refused as error:
        decision = learn(given, relation="")
        return replace(decision, reason=f"{decision.reason}; {other.id} stays as it is: {error}")
    return Decision(
        Outcome.UPDATED,
        after,
        None,
        f"{found.reason.removesuffix(NOT_STORED)}; updated as the caller chose",
        found.gate,
    )
