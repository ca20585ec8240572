"""One record of memory.v1 ↔ one memory.

A record has fewer fields than a memory. What a memory cannot hold of one (how it was learned, an unusual spelling of its horizon, unknown
keys) stays in `extra`, so that it is written again as it was.
"""

import re
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from typing import Any

from engram.dialects.fields import FieldError, plain_mapping, read_time, unit_number
from engram.dialects.source import stated_source
from engram.model.errors import InvalidInput
from engram.model.lazy import dataclass
from engram.model.memory import Memory, Status
from engram.model.types import KINDS
from engram.rules.cues import normalize_cues

SCHEMA = "memory.v1"
CURATED, LOG = "memory.md", "memory-log.md"
LEARNED_BY = ("remember", "harvest", "manual", "import")
STATED_FIELDS = frozenset(
    {"statement", "type", "cues", "confidence", "created", "last_verified", "decay_days", "status"}
)
"""The fields of a memory that a record states."""
ID = re.compile(r"mem-[0-9]{1,9}")
LARGEST_NUMBER = 10**9 - 1
_EXTRA = SCHEMA
"""Where a memory's `extra` keeps what only the file can say."""
_DECAY = re.compile(r"\s*([0-9]{1,7})\s*([hdwmy])\s*")
_DAYS = {"h": 1 / 24, "d": 1, "w": 7, "m": 30, "y": 365}
_NEVER = "99999d"
"""The horizon of a memory that has none; the format has no word for it."""
_STATUSES: dict[str, Status] = {"pending": "candidate", "promoted": "active", "rejected": "rejected", "stale": "active"}
_SHOWN_STATUS = {"candidate": "pending", "active": "promoted", "dormant": "promoted", "rejected": "rejected"}
_SHOWN_LEARNED_BY = {"learn": "remember", "add": "manual"}
KEYS = ("id", "fact", "kind", "source", "confidence", "learned_by", "learned_at", "last_verified", "decay", "status",
        "risk_tier", "dest")  # fmt: skip
"""The keys of a record in the spec's order."""
_OPTIONAL = ("last_verified", "decay", "dest")
TEXT_KEYS = frozenset(KEYS) - {"confidence", "risk_tier"}
"""Keys whose value is text, whatever it looks like."""


@dataclass(frozen=True, slots=True)
class MemoryItem:
    """A memory about to be written, with what the gates know about it."""

    id: str
    memory: Memory
    kind: str
    tier: int
    stale: bool = False

    @property
    def shown_kind(self) -> str:
        """Its kind, if the format has it; a type of somebody's own may have another."""
        return self.kind if self.kind in KINDS else "project"

    @property
    def risk_tier(self) -> int:
        """The highest of its own tier, that of its kind, and the one that the file it came from gave it."""
        claimed = _kept_of(self.memory).get("risk_tier")
        return max(self.tier, KINDS[self.shown_kind], claimed if claimed in (1, 2, 3) else 1)

    @property
    def file(self) -> str:
        """The file it belongs in."""
        return CURATED if self.risk_tier >= 3 else LOG

    @property
    def number(self) -> int:
        """The number in its id."""
        return number_in(self.id)


def number_in(name: str) -> int:
    """The number in an id."""
    return int(name.removeprefix("mem-"))


# -- reading


def read_item(record: Any) -> Memory:
    """The memory a record describes, under its id. Raises `InvalidInput` naming the key."""
    if not isinstance(record, Mapping):
        raise InvalidInput(f"an item must be a block of fields, is {record!r:.60}")
    if missing := [key for key in KEYS if key not in _OPTIONAL and record.get(key) is None]:
        raise InvalidInput(f"missing: {', '.join(missing)}")
    for key in TEXT_KEYS & record.keys():
        if not isinstance(record[key], str | None):
            raise InvalidInput(f"{key} must be text, is {record[key]!r:.60}")
    if not ID.fullmatch(record["id"]):
        raise InvalidInput(f"id must be mem- and a number, is {record['id']!r:.60}")
    verified = record.get("last_verified")
    return Memory(
        id=record["id"],
        statement=record["fact"],
        type=_choice(record, "kind", KINDS),
        status=_STATUSES[_choice(record, "status", _STATUSES)],
        source=record["source"],
        learned_by=_choice(record, "learned_by", LEARNED_BY),
        confidence=unit_number("confidence", record["confidence"]),
        created=_day(record, "learned_at"),
        last_verified=_day(record, "last_verified") if verified else None,
        verification="user_confirmed" if verified else "unverified",
        decay_days=_decay_days(record.get("decay") or "180d"),
        cues=_cues(record),
        extra={_EXTRA: _rest_of_record(record)},
    )


def _choice(record: Mapping[str, Any], key: str, known: Any) -> str:
    value = record[key]
    if value not in known:
        raise InvalidInput(f"Unknown {key} {value!r:.60}; choose {', '.join(known)}")
    return str(value)


def _day(record: Mapping[str, Any], key: str) -> datetime:
    try:
        return read_time(record[key])
    except FieldError:
        raise InvalidInput(f"{key} must be a date such as 2026-01-15, is {record[key]!r:.60}") from None


def _decay_days(text: str) -> float | None:
    found = _DECAY.fullmatch(text)
    if not found:
        raise InvalidInput(f"decay must be a number of h, d, w, m or y such as 180d, is {text!r:.60}")
    return None if text == _NEVER else int(found[1]) * _DAYS[found[2]]


def _cues(record: Mapping[str, Any]) -> tuple[str, ...]:
    """The cues of a record; () where another program uses the key for something else."""
    value = record.get("cues")
    is_texts = isinstance(value, list) and all(isinstance(cue, str) for cue in value)
    return normalize_cues(value) if is_texts and value else ()


def _rest_of_record(record: Mapping[str, Any]) -> dict[str, Any]:
    """What of a record has no field of its own."""
    tier, dest = record["risk_tier"], record.get("dest")
    if isinstance(tier, bool) or tier not in (1, 2, 3):
        raise InvalidInput(f"risk_tier must be 1, 2 or 3, is {tier!r:.60}")
    if dest not in (None, CURATED, LOG):
        raise InvalidInput(f"dest must be {CURATED}, {LOG} or null, is {dest!r:.60}")
    kept: dict[str, Any] = {"learned_by": record["learned_by"]}
    if tier > KINDS[record["kind"]]:
        kept["risk_tier"] = tier
    if (decay := record.get("decay")) and _decay(_decay_days(decay), None) != decay:
        kept["decay"] = decay
    if unknown := {
        key: value for key, value in record.items() if key not in KEYS and not (key == "cues" and _cues(record))
    }:
        kept["keys"] = plain_mapping(unknown)
    return kept


def _kept_of(memory: Memory) -> Mapping[str, Any]:
    kept = memory.extra.get(_EXTRA)
    return kept if isinstance(kept, Mapping) else {}


# -- writing


def has_status(memory: Memory) -> bool:
    """Whether the format has a status for a memory: it has none for what is superseded, archived or retired."""
    return memory.status in _SHOWN_STATUS


def as_exported(memory: Memory, kind_of: Callable[[Memory], str], tier_of: Callable[[Memory], int]) -> Memory:
    """A memory as a reader of the format sees it."""
    record = item_record(MemoryItem("mem-0", memory, kind_of(memory), tier_of(memory)), date.min)
    record["confidence"] = float(record["confidence"])
    return read_item(record).replace(id=memory.id)


def item_record(item: MemoryItem, generated: date) -> dict[str, Any]:
    """A record in the spec's order; dates, numbers and durations as they are spelled in the file."""
    memory = item.memory
    kept = _kept_of(memory)
    status = _SHOWN_STATUS.get(memory.status, "rejected")
    status = "stale" if item.stale and status == "promoted" else status
    verified = memory.last_verified
    return {
        "id": item.id,
        "fact": memory.statement,
        "kind": item.shown_kind,
        "source": _source(memory),
        "confidence": _spell_confidence(memory.confidence),
        "learned_by": _learned_by(memory, kept),
        "learned_at": _format_day(memory.created) or generated.isoformat(),
        "last_verified": _format_day(verified) if verified else None,
        "decay": _decay(memory.decay_days, kept.get("decay")),
        "status": status,
        "risk_tier": item.risk_tier,
        "dest": item.file if status in ("promoted", "stale") else None,
        **_unknown_keys(kept),
        **({"cues": list(memory.cues)} if memory.cues else {}),
    }


def _unknown_keys(kept: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of a file that the format does not know; what it knows, only the memory states."""
    keys = kept.get("keys")
    return {key: value for key, value in keys.items() if key not in KEYS} if isinstance(keys, Mapping) else {}


def _source(memory: Memory) -> str:
    if (stated := stated_source(memory)) != memory.source:
        return stated
    if not memory.source or memory.source.partition(":")[0] in ("human", "hand"):
        return "manual"
    return "tool:remember" if memory.source == "agent" else memory.source


def _learned_by(memory: Memory, kept: Mapping[str, Any]) -> str:
    if memory.learned_by in ("", "import") and kept.get("learned_by") in LEARNED_BY:
        return str(kept["learned_by"])
    learned_by = _SHOWN_LEARNED_BY.get(memory.learned_by, memory.learned_by)
    return learned_by if learned_by in LEARNED_BY else "manual"


def _spell_confidence(confidence: float) -> str:
    text = f"{min(max(confidence, 0.0), 1.0):.2f}"
    return text[:-1] if text.endswith("0") else text


def _format_day(moment: datetime | None) -> str:
    return moment.astimezone(UTC).date().isoformat() if moment else ""


def _decay(days: float | None, written: Any) -> str:
    """The horizon as the file spelled it while that is still its meaning, else in days, or hours where they are exact."""
    if isinstance(written, str) and _DECAY.fullmatch(written) and _decay_days(written) == days:
        return written
    if days is None:
        return _NEVER
    whole = min(max(round(days), 0), 99998)
    return f"{round(days * 24)}h" if 0 < days != whole and days < 30 else f"{whole}d"
