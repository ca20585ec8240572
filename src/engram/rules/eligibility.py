"""Whether a memory may be found or injected now, and why: one table over stored facts and the time (DESIGN §5)."""

from datetime import datetime

from engram.model.lazy import dataclass, replace
from engram.model.memory import Memory
from engram.model.types import type_or_default
from engram.rules import numbers as n
from engram.rules.sources import CAPTURED, CORROBORATED, DISPUTED, Rank, is_evidence, trust_rank
from engram.rules.strength import band, days_between, strength

FORBIDDEN = frozenset({"retired", "rejected"})


@dataclass(frozen=True, slots=True)
class Eligibility:
    """The result of `eligibility`: what the memory may be used for, its state, the reason and the weight of the state."""

    found: bool
    """A plain search may return it."""
    directive: bool
    """It may be injected as a directive."""
    consider: bool
    """It may be injected at all."""
    state: str
    reason: str
    weight: float = 1.0
    strength: float = 0.0
    evidence: bool = False
    """It comes from content or a transcript and is unconfirmed: never a directive, and ranked after what somebody said."""


def is_protected_from_fading(memory: Memory) -> bool:
    """Whether a memory never sinks below fading: pinned memories, critical facts, and types that state someone's will."""
    return memory.pinned or bool(memory.critical_slot) or not type_or_default(memory.type).may_sink


def horizon(memory: Memory) -> float | None:
    """Days a memory stays fresh after its last verification: its horizon, shortened by doubt."""
    if memory.decay_days is None:
        return None
    return memory.decay_days * (0.5 + memory.confidence / 2)


def fresh_since(memory: Memory) -> datetime | None:
    """When the horizon of a memory begins: at its last confirmation or import, or else at its creation."""
    return max(filter(None, (memory.last_verified, memory.imported_at)), default=memory.created)


def is_stale(memory: Memory, now: datetime) -> bool:
    """Whether a memory is past its freshness horizon."""
    days = horizon(memory)
    return days is not None and days_between(fresh_since(memory), now) > days


def is_speculative(memory: Memory) -> bool:
    """Whether a captured memory is only a guess, which nobody has confirmed."""
    captured = memory.learned_by == CAPTURED and memory.verification in ("unverified", "disputed")
    return captured and memory.confidence < n.INFERRED_FROM


def has_expired(memory: Memory, now: datetime) -> bool:
    """Whether a guess has waited longer than it is kept without another capture that confirms it (spec 5)."""
    return is_speculative(memory) and days_between(fresh_since(memory), now) > n.SPECULATIVE_DAYS


def is_valid(memory: Memory, at: datetime) -> bool:
    """Whether its validity, a half-open interval, includes the moment."""
    if memory.valid_from is not None and at < memory.valid_from:
        return False
    return memory.valid_until is None or at < memory.valid_until


def has_begun(memory: Memory, now: datetime) -> bool:
    """Whether a memory's validity has begun: by the clock, or when the memory was written. A clock that is set back revokes nothing."""
    if memory.valid_from is None or memory.valid_from <= now:
        return True
    return any(written is not None and memory.valid_from <= written for written in (memory.created, memory.updated))


def is_effective(memory: Memory, now: datetime) -> bool:
    """Whether a memory holds now. `is_valid` answers the same for any moment, by the recorded times alone."""
    return has_begun(memory, now) and (memory.valid_until is None or now < memory.valid_until)


def is_over(memory: Memory, now: datetime) -> bool:
    """Whether a memory holds no more: its validity has ended, or it was a guess that expired. Told again, it is learned again."""
    return has_expired(memory, now) or (memory.valid_until is not None and memory.valid_until <= now)


def outlasts(memory: Memory, other: Memory) -> bool:
    """Whether a memory still holds when another, which has an end, is over: that one does not replace it, but is an exception to it."""
    if other.valid_until is None:
        return False
    return memory.valid_until is None or memory.valid_until > other.valid_until


def eligibility(memory: Memory, now: datetime) -> Eligibility:
    """Whether a memory may be found, injected as a directive or considered at `now`, and why."""
    value = strength(memory, now)
    decided = _by_status(memory, value) or _by_validity(memory, now, value)
    if decided is not None:
        return decided
    return _by_trust(memory, _by_strength(memory, now, value))


def _by_trust(memory: Memory, state: Eligibility) -> Eligibility:
    """The eligibility of evidence: pinned or not, it is no directive until a person confirms it.

    Content that nobody vouches for reaches no prompt unasked, either, until independent sources corroborate it.
    """
    if not is_evidence(memory):
        return state
    how = memory.learned_by if memory.source in ("", "unknown") else memory.source
    reason = f"{state.reason}; evidence from {how}: `engram verify` by a person lets it direct"
    heard = trust_rank(memory) >= Rank.HARVEST or memory.verification == CORROBORATED
    return replace(state, directive=False, consider=state.consider and heard, evidence=True, reason=reason)


def _by_status(memory: Memory, value: float) -> Eligibility | None:
    status = memory.status
    if status in FORBIDDEN:
        return Eligibility(False, False, False, status, f"{status} by decision", 0.0, value)
    if status == "superseded":
        by = f" by {memory.superseded_by}" if memory.superseded_by else ""
        return Eligibility(False, False, False, status, f"superseded{by}", 0.0, value)
    if status == "archived":
        return Eligibility(True, False, False, status, "answers when active ones do not", n.ARCHIVED_WEIGHT, value)
    if status == "candidate":
        return Eligibility(False, False, False, status, "waits for review", n.CANDIDATE_WEIGHT, value)
    if status == "dormant":
        return Eligibility(True, False, False, status, "set by hand; answers when asked", n.DORMANT_WEIGHT, value)
    return None


def _by_validity(memory: Memory, now: datetime, value: float) -> Eligibility | None:
    if has_expired(memory, now):
        reason = f"a guess that nothing confirmed for {n.SPECULATIVE_DAYS} days"
        return Eligibility(False, False, False, "expired", reason, 0.0, value)
    if is_effective(memory, now):
        return None
    word = "no longer valid" if has_begun(memory, now) else "not yet valid"
    return Eligibility(False, False, False, word, word, 0.0, value)


def _by_strength(memory: Memory, now: datetime, value: float) -> Eligibility:
    if is_stale(memory, now):
        kept = memory.pinned or bool(memory.critical_slot)
        advice = "past its horizon: `engram verify` makes it current again"
        return Eligibility(kept, kept, kept, "stale", advice, n.STALE_WEIGHT, value)
    state = band(value)
    if state in ("dormant", "retirement candidate") and is_protected_from_fading(memory):
        state = "fading"
    if state == "retirement candidate":
        return Eligibility(
            True, False, False, state, f"strength {value:.2f}: retire or reinforce", n.DORMANT_WEIGHT, value
        )
    if state == "dormant":
        return Eligibility(
            True, False, False, state, f"strength {value:.2f}: answers when asked", n.DORMANT_WEIGHT, value
        )
    if memory.verification == DISPUTED:
        return Eligibility(True, False, True, DISPUTED, "contradicted and not yet resolved", n.DISPUTED_WEIGHT, value)
    weight = n.FADING_WEIGHT if state == "fading" else 1.0
    return Eligibility(True, True, True, state, f"strength {value:.2f}", weight, value)
