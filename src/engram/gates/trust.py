"""Trust: who may make a memory active at once, and who proposes it to a person (DESIGN §12)."""

from dataclasses import dataclass

from engram.gates.proposal import GateSettings
from engram.model.memory import Memory, Status
from engram.model.types import type_or_default
from engram.rules.sources import Rank, rank_of

__all__ = ["HIGHEST_TIER", "Trust", "held_by_tier", "is_human", "is_untrusted", "spoken_of", "tier_of", "trust"]

HIGHEST_TIER = 3
"""Identity, money, health: always a person's decision."""
_SUBJECTS = {"health": "health", "identity": "identity", "fiscal": "money"}


@dataclass(frozen=True, slots=True)
class Trust:
    """The status a memory starts with, and why."""

    status: Status
    reason: str


def is_human(source: str) -> bool:
    """Whether a person said it, as stamped by the surface."""
    return source == "human" or source.startswith("human:")


def is_untrusted(source: str) -> bool:
    """Whether the text came from content rather than from someone Engram works for."""
    return rank_of(source) < Rank.AGENT


def tier_of(memory: Memory) -> int:
    """How much harm it does if this memory is wrong, from 1 to 3, by its type and by what it says: every surface goes by this."""
    tier = type_or_default(memory.type).tier
    return HIGHEST_TIER if tier < HIGHEST_TIER and spoken_of(memory) else tier


def spoken_of(memory: Memory) -> str:
    """What a memory says that is tier 3 under any type: health, identity or fiscal; "" where it is nothing of the kind."""
    # Asked for where the tier matters only: whoever reads or lists memories never loads the model.
    from engram.models.sensitivity import subject_of

    said = dict.fromkeys((memory.statement, memory.situation, *map(str, memory.form.values())))
    return next((found for text in said if text and (found := subject_of(text))), "")


def held_by_tier(memory: Memory) -> str:
    """What makes a memory tier 3, in words; "" where its tier is lower."""
    if type_or_default(memory.type).tier >= HIGHEST_TIER:
        return f"type {memory.type!r} is tier {HIGHEST_TIER}"
    subject = spoken_of(memory)
    return f"it speaks of somebody's {_SUBJECTS[subject]}, which is tier {HIGHEST_TIER}" if subject else ""


def trust(memory: Memory, autonomous: bool, settings: GateSettings) -> Trust:
    """Human → active. Tier 1 → active as far as autopromotion allows. Everything else waits."""
    source = memory.source or "unknown"
    if is_human(memory.source):
        return Trust("active", "a person said so")
    if held := held_by_tier(memory):
        return Trust("candidate", f"{held}: it waits for a person, whoever proposes it")
    tier = type_or_default(memory.type).tier
    if tier > 1:
        return Trust("candidate", f"type {memory.type!r} is tier {tier}: from {source} it waits for review")
    if autonomous or is_untrusted(memory.source):
        return _captured(source, settings)
    if settings.autopromote_remember:
        return Trust("active", f"an explicit word from {source}, tier 1")
    return Trust("candidate", f"from {source}; autopromote_remember is off, so it waits for review")


def _captured(source: str, settings: GateSettings) -> Trust:
    if settings.autopromote_harvest:
        return Trust("active", f"captured from {source}, tier 1; autopromote_harvest is on")
    return Trust("candidate", f"captured from {source} without anyone's word; it waits for review")
