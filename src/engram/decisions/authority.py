"""What an agent may not do to a memory, through any call: overturn a person's decision, or bypass review (DESIGN §12)."""

from collections.abc import Sequence
from datetime import datetime

from engram.gates.instructions import injection_problem
from engram.gates.trust import is_inferred, tier_3_reason, tier_of
from engram.model.errors import ChangedMeanwhile, Refused
from engram.model.lazy import fields
from engram.model.memory import LIVE_STATUSES, Activation, Memory
from engram.model.relations import REVIEW_RELATIONS
from engram.rules.sources import CONFIRMED, Rank, is_below_program, is_own, may_decide, origin_of, rank_of
from engram.store.protocol import Image
from engram.store.records import ENDED_STATUSES, is_automatic, is_decided_by_person, status_decision

_OF_USE = frozenset((
    "activation", "feedback", "derivation_count", "last_verified", "imported_at", "updated", "version",
    # These fields follow from other decisions, which have their own checks; "disputed" only reflects a waiting memory.
    "status", "superseded_by", "lineage", "revision", "associations", "verification",
))  # fmt: skip
"""Fields that use and other decisions change without changing a memory's content."""
SHOWN_FIELDS = tuple(each.name for each in fields(Memory) if each.name not in _OF_USE)
"""Fields that someone deciding about a memory has read or relies on."""
_ALLOWED = {"dormant": ("active",), "retired": ("active", "dormant", "archived")}
"""For each status that an agent may set, the statuses it may be set from."""


def refuse_overturning(actor: str, memory: Memory, history: Sequence[Image]) -> None:
    """Raise `Refused` if a person took a memory out of use, even if it was changed since."""
    if not is_below_program(actor) or memory.status not in ENDED_STATUSES:
        return
    decided = status_decision(history)
    if decided is None:
        raise Refused(
            f"{memory.id} is {memory.status}, and who decided that is not known any more; {actor} may not change it: a person may, "
            "at a terminal"
        )
    if rank_of(decided.actor) == Rank.PERSON:
        raise Refused(
            f"a person decided “{decided.op}” about {memory.id}, and it is {memory.status}; {actor} may not change that: "
            "a person may, at a terminal"
        )


def is_rejected_by_person(memory: Memory, history: Sequence[Image]) -> bool:
    """Whether a person rejected a memory; while the rejection is stored, it is not proposed again."""
    return memory.status == "rejected" and is_decided_by_person(history)


def refuse_status(actor: str, memory: Memory, status: str) -> None:
    """Raise `Refused` if an agent would set a status that review decides, or bring a memory back into use."""
    if status == memory.status or not is_below_program(actor) or memory.status in _ALLOWED.get(status, ()):
        return
    if memory.status == "candidate":
        raise Refused(
            f"{memory.id} awaits review, and {actor} may not make it {status} otherwise: `engram promote {memory.id}`, "
            f"`engram reject {memory.id}` or `engram review` decides"
        )
    raise Refused(f"{memory.id} is {memory.status}, and {actor} may not make it {status}: a person may, at a terminal")


def refuse_changed(shown: Sequence[Memory], memory: Memory) -> None:
    """Raise `ChangedMeanwhile` if a memory differs from the version the caller was shown; a memory not shown passes."""
    before = next((one for one in shown if one.id == memory.id), memory)
    if _as_shown(before) != _as_shown(memory):
        raise ChangedMeanwhile(f"{memory.id} was changed while you read it; nothing was decided: look again")


def refuse_rejection(actor: str, memory: Memory) -> None:
    """Raise `Refused` if an agent would reject a candidate that it did not propose."""
    if is_below_program(actor) and not is_own(actor, memory):
        raise Refused(
            f"{memory.id} was proposed by {memory.source or 'unknown'}, and {actor} may reject only what it proposed itself: a person "
            f"may reject it, with `engram reject {memory.id}` at a terminal"
        )


def refuse_lower_tier(actor: str, before: Memory, after: Memory) -> None:
    """Raise `Refused` if an agent would change a candidate so that it no longer needs a person's approval."""
    if is_below_program(actor) and before.status == "candidate" and tier_of(after) < tier_of(before):
        raise Refused(f"{actor} may not edit {before.id} from tier {tier_of(before)} to {tier_of(after)}; a person may")


def refuse_marks(actor: str, before: Memory, after: Memory) -> None:
    """Raise `Refused` if an agent would pin a candidate or change the links that keep it waiting."""
    if not is_below_program(actor):
        return
    if before.status == "candidate" and (before.pinned, before.critical_slot) != (after.pinned, after.critical_slot):
        raise Refused(f"{before.id} awaits review, and {actor} may not pin it; a person may, once it is active")
    if _review_links(before) != _review_links(after):
        raise Refused(
            f"{actor} may not change which memories {before.id} contradicts or may supersede: review does, or "
            "`learn` with a relation"
        )


def _as_shown(memory: Memory) -> tuple[object, ...]:
    is_confirmed = memory.verification == CONFIRMED
    return (*(getattr(memory, name) for name in SHOWN_FIELDS), is_confirmed, _review_links(memory))


def _review_links(memory: Memory) -> list[tuple[str, str, bool]]:
    return sorted(
        (link.type, link.target, bool(link.extra)) for link in memory.associations if link.type in REVIEW_RELATIONS
    )


TIER_FIELDS = ("statement", "situation", "form", "type")
"""Fields that determine a memory's tier."""
WORDING_FIELDS = frozenset({"statement", "situation", "form"})
"""Fields that hold a memory's content; a person who rewrites them becomes its source."""
LEARNED_BY_HAND = "manual"
"""`learned_by` of memories that a person reworded."""


def refuse_outranked(actor: str, memory: Memory, what: str) -> None:
    """Raise `Refused` if the actor is less trusted than the memory's source."""
    if not may_decide(actor, memory):
        raise Refused(
            f"{memory.id} was said by {origin_of(memory)}, and {actor} may not {what} it: a person may, at a terminal "
            "(with the same `engram` command); or `learn` what is true now, and it waits for review"
        )


def refuse_instructions(actor: str, memory: Memory, decision: str) -> None:
    """Raise `Refused` if anyone but a person would write instructions to the reader into a memory."""
    # An actor without a name does not count as a person here, although a source without a name does.
    if actor != "human" and (problem := injection_problem(memory)):
        raise Refused(f"{problem}; a person may {decision} at a terminal")


def refuse_unapproved(actor: str, before: Memory, after: Memory) -> None:
    """Raise `Refused` if a reworded memory would need a person's approval.

    As in `learn`, an inferred type alone does not require approval; the content decides.
    """
    reworded = any(getattr(before, name) != getattr(after, name) for name in TIER_FIELDS)
    if not reworded or after.status not in LIVE_STATUSES or rank_of(actor, Rank.PROGRAM) >= Rank.PROGRAM:
        return
    judged = after.replace(type="fact") if is_inferred(actor, before, after) else after
    if reason := tier_3_reason(judged):
        raise Refused(
            f"{actor} may not change {before.id} to this: {reason} and waits for a person; a person may change it at a "
            "terminal, or `learn` it as a memory of its own"
        )


def attribute_to_person(memory: Memory, actor: str, now: datetime) -> Memory:
    """The memory with this actor as its source and confirmed, if the actor is a person; else unchanged."""
    if rank_of(actor) != Rank.PERSON:
        return memory
    memory = memory.replace(source=actor or "human", learned_by=LEARNED_BY_HAND)
    # A candidate is confirmed on approval.
    return memory if memory.status == "candidate" else memory.replace(verification=CONFIRMED, last_verified=now)


def refuse_undoing(actor: str, memory: Memory, history: Sequence[Image]) -> None:
    """Raise `Refused` if a person is the source or decided last, and the actor is below a program."""
    refuse_outranked(actor, memory, "undo")
    refuse_overturning(actor, memory, history)
    last = last_decision(history) if history else None
    if last and rank_of(last.actor) == Rank.PERSON and not may_decide(actor, memory.replace(verification=CONFIRMED)):
        raise Refused(
            f"a person decided “{last.op}” about {memory.id}, and {actor} may not undo that: a person may, at a terminal"
        )


def last_decision(history: Sequence[Image]) -> Image:
    """The last deliberate decision that changed more than the memory's strength."""
    for later, earlier in zip(reversed(history), reversed(history[:-1]), strict=False):
        if is_automatic(later):
            continue
        if later.op == "reinforce" or _without_use(later.memory) != _without_use(earlier.memory):
            return later
    return history[0]


def _without_use(memory: Memory | None) -> Memory | None:
    return memory.replace(activation=Activation(), updated=None) if memory is not None else None
