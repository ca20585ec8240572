"""What a file that nobody vouches for may say of its memories, and what of it counts here."""

from datetime import datetime
from typing import Any

from engram.dialects.source import CLAIMED_SOURCE
from engram.gates.shape import texts
from engram.model.memory import (
    CONTRADICTS,
    MAY_SUPERSEDE,
    Activation,
    Feedback,
    Memory,
)
from engram.model.reserved_keys import RESERVED_MEMORY_KEYS, without_reserved
from engram.rules.sources import CONFIRMED, CORROBORATED, IMPORTED

CLAIMING = (CONTRADICTS, MAY_SUPERSEDE)
"""The types of links that claim something about the memory they lead to."""
_JUDGED = frozenset((
    "statement", "situation", "form", "type", "context", "rationale", "domain", "trigger_context", "tags", "cues", "entities", "anchors",
))  # fmt: skip
"""The fields that decide whether somebody has to approve a memory."""


_OURS = ("source", "learned_by", "pinned", "verification", "critical_slot")
"""What only this store says of a memory."""
_USE = ("policy_class", "feedback", "derivation_count", "activation")
"""What a file says only where the whole of another store is merged with ours, and which lifts no evidence there."""


def without_trust_claims(memory: Memory, source: str, *, keeps_use: bool, now: datetime) -> Memory:
    """A record as what it is, the word of a file; the source it claims is kept to be shown and exported."""
    claims: dict[str, Any] = {} if keeps_use else {
        "policy_class": "", "feedback": Feedback(), "derivation_count": 1, "activation": Activation(last_accessed=now),
    }  # fmt: skip
    doubted = "unverified" if memory.verification in (CONFIRMED, CORROBORATED) else memory.verification
    return memory.replace(
        source=source, learned_by=IMPORTED, pinned=False, verification=doubted, critical_slot="",
        metadata=without_reserved(memory.metadata),
        extra=_with_claim(memory, _claimed_source(memory, source)), **claims,
    )  # fmt: skip


def with_local_fields(record: Memory, known: Memory, *, keeps_use: bool) -> Memory:
    """A record of a memory that is here, with what only this store says of it."""
    ours = known.extra.get(CLAIMED_SOURCE, "")
    theirs = record.extra.get(CLAIMED_SOURCE, "")
    claimed = theirs if known.learned_by == IMPORTED and theirs != known.source else ours
    decided = {key: known.metadata[key] for key in RESERVED_MEMORY_KEYS if key in known.metadata}
    return record.replace(
        **{name: getattr(known, name) for name in (_OURS if keeps_use else (*_OURS, *_USE))},
        metadata={**record.metadata, **decided},
        extra=_with_claim(record, claimed),
    )


def _claimed_source(memory: Memory, source: str) -> str:
    """The source a record claims; one that was imported before may say which it had there."""
    before = memory.extra.get(CLAIMED_SOURCE)
    if isinstance(before, str) and before and memory.source.partition(":")[0] in ("", IMPORTED):
        return before
    return memory.source if memory.source != source else ""


def _with_claim(memory: Memory, claimed: Any) -> dict[str, Any]:
    rest = {key: value for key, value in memory.extra.items() if key != CLAIMED_SOURCE}
    return {**rest, CLAIMED_SOURCE: claimed} if claimed else rest


def has_same_content(one: Memory, other: Memory) -> bool:
    """Whether nothing differs that decides whether somebody has to approve a memory."""
    return _words(one) == _words(other)


def _words(memory: Memory) -> dict[str, str]:
    return {name: text for name, text in texts(memory) if name in _JUDGED}
