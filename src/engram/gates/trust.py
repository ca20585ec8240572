"""Trust: who may make a memory active at once, and who proposes it to a person (DESIGN §12)."""

from dataclasses import dataclass

from engram.gates.proposal import GateSettings
from engram.model.memory import Memory, Status
from engram.model.types import type_or_default
from engram.rules.sources import Rank, rank_of

__all__ = ["HIGHEST_TIER", "Trust", "is_human", "is_untrusted", "tier_of", "trust"]

HIGHEST_TIER = 3
"""Identity, money, health: always a person's decision."""


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
    """How much harm a wrong memory of this kind does, from 1 to 3: what every surface that asks about a tier goes by."""
    return type_or_default(memory.type).tier


def trust(memory: Memory, autonomous: bool, settings: GateSettings) -> Trust:
    """Human → active. Tier 1 → active as far as autopromotion allows. Everything else waits."""
    tier = tier_of(memory)
    source = memory.source or "unknown"
    if is_human(memory.source):
        return Trust("active", "a person said so")
    if tier >= HIGHEST_TIER:
        return Trust("candidate", f"type {memory.type!r} is tier {tier}: it waits for a person, whoever proposes it")
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
