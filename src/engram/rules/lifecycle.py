"""How memories fade and how use strengthens them (spec 1 "Activation model", DESIGN §10).

Also whether a memory may be found or injected now, and why (DESIGN §5).
"""

from collections.abc import Collection, Iterable
from datetime import datetime
from math import exp

from engram.model.lazy import dataclass, replace
from engram.model.memory import CO_ACCESSED, SIGNALS, Activation, Association, Feedback, Memory, Signal
from engram.model.records import RATED, RATED_BY_PERSON, Use
from engram.model.types import type_or_default
from engram.rules import numbers as n
from engram.rules.sources import CAPTURED, CORROBORATED, DISPUTED, Rank, is_evidence, trust_rank


def days_between(earlier: datetime | None, later: datetime) -> float:
    """Fractional days, never negative, even if the clock was set back."""
    if earlier is None:
        return 0.0
    return max(0.0, (later - earlier).total_seconds() / 86400)


def decay_rate(storage_strength: float, emotional_weight: float) -> float:
    """The decay rate per day. The initial storage strength of .5 gives spec 1's formula exactly."""
    return n.BASE_DECAY * (1.5 - storage_strength) * (1 - emotional_weight / 20)


def strength(memory: Memory, now: datetime) -> float:
    """Retrieval strength at `now`: stored strength, decayed towards the floor since the last access."""
    activation = memory.activation
    since = activation.last_accessed or memory.created
    rate = decay_rate(activation.storage_strength, memory.emotional_weight)
    above = activation.retrieval_strength - n.STRENGTH_FLOOR
    return n.STRENGTH_FLOOR + above * exp(-rate * days_between(since, now))


def band(value: float) -> str:
    """The lifecycle band of a strength (spec 1)."""
    if value > n.ACTIVE_ABOVE:
        return "active"
    if value > n.FADING_ABOVE:
        return "fading"
    if value > n.DORMANT_ABOVE:
        return "dormant"
    return "retirement candidate"


def reinforce_memory(
    memory: Memory, at: datetime, *, seq: int | None = None, boost: float = n.REINFORCE_RETRIEVAL
) -> Memory:
    """The memory after one use, reinforced from its strength at that moment."""
    old = memory.activation
    activation = Activation(
        retrieval_strength=_round_number(min(1.0, strength(memory, at) + boost)),
        storage_strength=_round_number(old.storage_strength + n.REINFORCE_STORAGE * (1 - old.storage_strength)),
        frequency=old.frequency + 1,
        last_accessed=_later(old.last_accessed, at),
        seq=old.seq if seq is None else seq,
    )
    return memory.replace(activation=activation)


def apply_rating(
    memory: Memory, signal: Signal, at: datetime, *, seq: int | None = None, by_person: bool = False
) -> Memory:
    """The memory after a rating. A positive rating also counts as a verification.

    If a person stated or confirmed the memory, only a person's rating can lower its strength below
    `RATED_BY_OTHERS_FLOOR`.
    """
    counts = {name: getattr(memory.feedback, name) for name in ("positive", "negative", "neutral")}
    counts[signal] += 1
    step = {"positive": n.FEEDBACK_POSITIVE_STRENGTH, "negative": n.FEEDBACK_NEGATIVE_STRENGTH}.get(signal, 0.0)
    activation = memory.activation
    if step:
        now = strength(memory, at)
        is_held = step < 0 and not by_person and trust_rank(memory) == Rank.PERSON
        least = min(now, n.RATED_BY_OTHERS_FLOOR) if is_held else 0.0
        value = _round_number(min(1.0, max(least, now + step)))
        activation = replace(activation, retrieval_strength=value, last_accessed=_later(activation.last_accessed, at))
    if seq is not None:
        activation = replace(activation, seq=seq)
    verified = at if signal == "positive" else memory.last_verified
    return memory.replace(feedback=Feedback(**counts), activation=activation, last_verified=verified)


def consolidate(memory: Memory, at: datetime) -> Memory:
    """The memory after it won a contradiction: storage strength doubled, and verified now."""
    old = memory.activation
    activation = replace(
        old,
        retrieval_strength=_round_number(min(1.0, strength(memory, at) + n.REINFORCE_RETRIEVAL)),
        storage_strength=min(1.0, old.storage_strength * n.CONSOLIDATION_FACTOR),
        last_accessed=_later(old.last_accessed, at),
    )
    return memory.replace(consolidated=True, activation=activation, last_verified=at)


def fade_strength(strength: float, days: float) -> float:
    """The strength of a learned link `days` after its last use; 0 once it falls below the minimum."""
    value = float(strength * n.CO_ACCESS_DAILY ** max(0.0, days))
    return value if value >= n.CO_ACCESS_PRUNE else 0.0


def link_strength(link: Association, now: datetime) -> float:
    """The strength of a link at `now`: learned links decay daily, explicit ones do not."""
    if link.type != CO_ACCESSED:
        return link.strength
    return fade_strength(link.strength, days_between(link.last_reinforced, now))


def links_at(memory: Memory, now: datetime) -> tuple[Association, ...]:
    """The links of a memory with their strengths at `now`, without learned links that have decayed."""
    strengths = ((link, link_strength(link, now)) for link in memory.associations)
    return tuple(
        link if link.type != CO_ACCESSED else replace(link, strength=value)
        for link, value in strengths
        if value or link.type != CO_ACCESSED
    )


def link_co_accessed(memory: Memory, others: tuple[str, ...], at: datetime) -> Memory:
    """The memory after a session in which it was injected together with `others`.

    Decayed links are dropped, and if there are too many learned links, only the strongest are kept.
    """
    links: list[Association] = []
    pending = dict.fromkeys(others)
    for link in memory.associations:
        value = link_strength(link, at)
        if link.type != CO_ACCESSED:
            links.append(link)
        elif value and link.target in pending:
            del pending[link.target]
            value = min(n.ASSOCIATION_CAP, value + n.CO_ACCESS_STEP)
            links.append(replace(link, strength=_round_number(value), last_reinforced=at))
        elif value:
            links.append(link)
    links += [Association(t, CO_ACCESSED, n.CO_ACCESS_NEW, last_reinforced=at) for t in pending]
    learned = [place for place, link in enumerate(links) if link.type == CO_ACCESSED]
    # The sort is stable, so folding the same session again drops the same links.
    learned.sort(key=lambda place: link_strength(links[place], at), reverse=True)
    dropped = frozenset(learned[n.MAX_CO_ACCESS_LINKS :])
    return memory.replace(associations=tuple(link for place, link in enumerate(links) if place not in dropped))


def _later(old: datetime | None, new: datetime) -> datetime:
    return new if old is None or new > old else old


def _round_number(value: float) -> float:
    """Rounded to six digits, because people read these numbers in their files."""
    return round(value, 6)


REINFORCING = frozenset({"injected", "recalled"})


def session_key(use: Use) -> str:
    """The session of a use, or its UTC day if it has no session."""
    return use.session or f"day:{use.at.date().isoformat()}"


def fold_uses(memory: Memory, uses: Iterable[Use]) -> Memory:
    """The memory after all its uses from `activation.seq` on. Folding the same uses again changes nothing."""
    seen: set[str] = set()
    covered = memory.activation.seq
    for use in sorted(uses, key=lambda u: u.position):
        fresh = use.position >= covered
        if use.kind in REINFORCING:
            if fresh and session_key(use) not in seen:
                memory = reinforce_memory(memory, use.at)
            seen.add(session_key(use))
        elif fresh and use.kind in (RATED, RATED_BY_PERSON) and use.signal in SIGNALS:
            memory = apply_rating(memory, use.signal, use.at, by_person=use.kind == RATED_BY_PERSON)
        if fresh:
            memory = memory.replace(activation=replace(memory.activation, seq=use.position + 1))
    return memory


def feedback_weight(feedback: Feedback) -> float:
    """Positive feedback raises the score by at most 30 %, negative feedback lowers it to at least half."""
    net = feedback.net
    if net > 0:
        return 1 + min(n.FEEDBACK_UP_STEP * net, n.FEEDBACK_UP_MAX)
    if net < 0:
        return max(1 + n.FEEDBACK_DOWN_STEP * net, n.FEEDBACK_DOWN_FLOOR)
    return 1.0


def derivation_weight(count: int) -> float:
    """Independent derivations raise the score by at most a tenth."""
    return 1 + min(n.DERIVED_STEP * max(0, count - 1), n.DERIVED_MAX)


def confidence_weight(confidence: float) -> float:
    """From .75 for confidence 0 to 1.25 for confidence 1."""
    return n.CONFIDENCE_BASE + n.CONFIDENCE_SPAN * confidence


def anchor_boost(query_terms: Collection[str], anchors: Iterable[Collection[str]]) -> float:
    """Half a point per anchor whose snippet shares at least two words with the query, up to two points."""
    terms = set(query_terms)
    needed = min(n.ANCHOR_SHARED_WORDS, max(1, len(terms)))
    hits = sum(1 for anchor in anchors if len(terms & set(anchor)) >= needed)
    return min(n.ANCHOR_BOOST_MAX, n.ANCHOR_BOOST * hits)


def recency_boost(when: datetime | None, now: datetime) -> float:
    """At most a fifth of a point, halving every thirty days."""
    if when is None:
        return 0.0
    return float(n.RECENCY_BOOST * 0.5 ** (days_between(when, now) / n.RECENCY_HALF_LIFE_DAYS))


def importance_boost(importance: float) -> float:
    """Importance above .5 raises the score a little, below .5 lowers it."""
    return n.IMPORTANCE_BOOST * (importance - 0.5)


def schema_boost(activated: int, members: int) -> float:
    """The share of a schema's other members that the query activated, worth at most two points."""
    others = members - 1
    return n.SCHEMA_BOOST_MAX * min(1.0, activated / others) if others > 0 and activated > 0 else 0.0


FORBIDDEN = frozenset({"retired", "rejected"})


@dataclass(frozen=True, slots=True)
class Eligibility:
    """The result of `eligibility`: the uses a memory is allowed, its state, the reason and the state's weight."""

    found: bool
    """A plain search may return the memory."""
    directive: bool
    """The memory may be injected as a directive."""
    consider: bool
    """The memory may be injected at all."""
    state: str
    reason: str
    weight: float = 1.0
    strength: float = 0.0
    evidence: bool = False
    """The memory comes from content or a transcript and is unconfirmed: never a directive, and ranked after direct statements."""


def is_protected_from_fading(memory: Memory) -> bool:
    """Whether a memory never sinks below fading: it is pinned, a critical fact, or of a type that expresses someone's will."""
    return memory.pinned or bool(memory.critical_slot) or not type_or_default(memory.type).may_sink


def horizon(memory: Memory) -> float | None:
    """Days a memory stays fresh after its last verification: its horizon, shortened by low confidence."""
    if memory.decay_days is None:
        return None
    return memory.decay_days * (0.5 + memory.confidence / 2)


def fresh_since(memory: Memory) -> datetime | None:
    """When a memory's horizon begins: at its last confirmation or import, else at its creation."""
    return max(filter(None, (memory.last_verified, memory.imported_at)), default=memory.created)


def is_stale(memory: Memory, now: datetime) -> bool:
    """Whether a memory is past its freshness horizon."""
    days = horizon(memory)
    return days is not None and days_between(fresh_since(memory), now) > days


def is_speculative(memory: Memory) -> bool:
    """Whether a captured memory is only an unconfirmed guess."""
    captured = memory.learned_by == CAPTURED and memory.verification in ("unverified", "disputed")
    return captured and memory.confidence < n.INFERRED_FROM


def has_expired(memory: Memory, now: datetime) -> bool:
    """Whether a guess has passed its lifetime without another capture that confirms it (spec 5)."""
    return is_speculative(memory) and days_between(fresh_since(memory), now) > n.SPECULATIVE_DAYS


def is_valid(memory: Memory, at: datetime) -> bool:
    """Whether the memory's validity, a half-open interval, includes the moment."""
    if memory.valid_from is not None and at < memory.valid_from:
        return False
    return memory.valid_until is None or at < memory.valid_until


def has_begun(memory: Memory, now: datetime) -> bool:
    """Whether a memory's validity has begun, by the clock or when it was written.

    Setting the clock back revokes nothing.
    """
    if memory.valid_from is None or memory.valid_from <= now:
        return True
    return any(written is not None and memory.valid_from <= written for written in (memory.created, memory.updated))


def is_effective(memory: Memory, now: datetime) -> bool:
    """Whether a memory is valid now. `is_valid` checks any moment by the recorded times alone."""
    return has_begun(memory, now) and (memory.valid_until is None or now < memory.valid_until)


def is_over(memory: Memory, now: datetime) -> bool:
    """Whether a memory is no longer valid: its validity has ended, or it was a guess that expired.

    Stated again, it is learned again.
    """
    return has_expired(memory, now) or (memory.valid_until is not None and memory.valid_until <= now)


def outlasts(memory: Memory, other: Memory) -> bool:
    """Whether a memory is still valid when another one ends; the other is then an exception to it and does not replace it."""
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
    """The eligibility of evidence: even if pinned, it is not a directive until a person confirms it.

    Content without a trusted author is not injected either until independent sources corroborate it.
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
