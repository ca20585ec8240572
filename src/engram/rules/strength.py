"""How a memory fades, how use strengthens it (spec 1 "Activation model", DESIGN §10), and the factors of its score."""

from collections.abc import Collection, Iterable
from datetime import datetime
from math import exp

from engram.model.lazy import replace
from engram.model.memory import CO_ACCESSED, SIGNALS, Activation, Association, Feedback, Memory, Signal
from engram.model.usage import RATED, RATED_BY_PERSON, Use
from engram.rules import numbers as n
from engram.rules.sources import Rank, trust_rank


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

    Only a person rates what a person said or confirmed out of use.
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
    """The memory that won a contradiction: storage strength doubled, and verified now."""
    old = memory.activation
    activation = replace(
        old,
        retrieval_strength=_round_number(min(1.0, strength(memory, at) + n.REINFORCE_RETRIEVAL)),
        storage_strength=min(1.0, old.storage_strength * n.CONSOLIDATION_FACTOR),
        last_accessed=_later(old.last_accessed, at),
    )
    return memory.replace(consolidated=True, activation=activation, last_verified=at)


def fade_strength(strength: float, days: float) -> float:
    """The strength of a learned link some days after its last use; 0 once it falls below the minimum."""
    value = float(strength * n.CO_ACCESS_DAILY ** max(0.0, days))
    return value if value >= n.CO_ACCESS_PRUNE else 0.0


def link_strength(link: Association, now: datetime) -> float:
    """The strength of a link at `now`: learned links decay daily, given ones do not."""
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

    Decayed links are dropped, and of many learned links only the strongest are kept.
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
    # The sort is stable: linked again for the same session, the same ones are dropped.
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
    """The session of a use, or the UTC day without one."""
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
    """Half a point per anchor whose snippet shares two words with the query, at most two points."""
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
    """The share of the other members of a memory's schema that the query activated, worth at most two points."""
    others = members - 1
    return n.SCHEMA_BOOST_MAX * min(1.0, activated / others) if others > 0 and activated > 0 else 0.0
