"""The factors of the score (DESIGN §10), each a pure function."""

from collections.abc import Collection, Iterable
from datetime import datetime

from engram.model.memory import Feedback
from engram.rules import numbers as n
from engram.rules.strength import days_between


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
