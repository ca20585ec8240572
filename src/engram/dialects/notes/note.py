"""One note ↔ one memory. What a memory has no field for stays in its `extra`, and is written again while it still fits."""

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from engram.dialects.fields import FieldError, read_time, unit_number
from engram.dialects.notes.note_file import Keys, is_writable
from engram.dialects.source import stated_source
from engram.model.errors import InvalidInput
from engram.model.memory import VERIFICATIONS, Activation, Association, Memory, Status
from engram.model.types import known_types
from engram.rules.cues import normalize_cues

ID = re.compile(r"[a-z][a-z_-]*-[0-9]{10,16}-[A-Za-z0-9]{2,16}")
CATEGORIES = ("fact", "preference", "correction", "entity", "decision", "relationship", "principle", "commitment",
              "moment", "skill", "rule", "procedure", "reasoning_trace")  # fmt: skip
"""The ten of spec 5, and the three that its program also writes."""
STATED_FIELDS = frozenset({
    "statement", "type", "status", "created", "updated", "confidence", "importance", "tags", "cues", "entities", "supersedes",
    "superseded_by", "valid_from", "valid_until", "verification", "policy_class", "last_verified", "associations",
    "memory_kind", "metadata", "scope",
})  # fmt: skip
_EXTRA = "notes"
_TYPE_OF = {"procedure": "procedural", "rule": "convention", "reasoning_trace": "procedural"}
_CATEGORY_OF = {
    **dict.fromkeys(("factual", "semantic", "fact", "profile", "project", "infra", "identity", "fiscal", "location", "health"), "fact"),
    **dict.fromkeys(("behavioral", "feedback", "tooling", "preference"), "preference"),
    **dict.fromkeys(("convention", "constraint", "principle"), "principle"),
    **dict.fromkeys(("episodic", "task", "tool_result", "moment"), "moment"),
    "procedural": "procedure", "people": "relationship",
}  # fmt: skip
_STATUS_OF: dict[str, Status] = {
    "active": "active", "pending_review": "candidate", "quarantined": "candidate", "superseded": "superseded",
    "archived": "archived", "rejected": "rejected", "forgotten": "retired",
}  # fmt: skip
_SHOWN_STATUS = {"candidate": "pending_review", "superseded": "superseded", "archived": "archived",
                 "rejected": "rejected", "retired": "forgotten"}  # fmt: skip
_TIERS = ((0.95, "explicit"), (0.7, "implied"), (0.4, "inferred"), (0.0, "speculative"))
_LEVELS = ((0.9, "critical"), (0.7, "high"), (0.4, "normal"), (0.2, "low"), (0.0, "trivial"))
ORDER = (
    "id", "category", "created", "updated", "source", "confidence", "confidenceTier", "tags", "entityRef", "supersedes",
    "expiresAt", "lineage", "status", "supersededBy", "supersededAt", "archivedAt", "validAt", "invalidAt", "forgottenAt",
    "forgottenReason", "lifecycleState", "verificationState", "policyClass", "lastValidatedAt", "decayScore", "heatScore",
    "accessCount", "lastAccessed", "mw_success", "mw_fail", "importanceScore", "importanceLevel", "importanceReasons",
    "importanceKeywords", "parentId", "chunkIndex", "chunkTotal", "links", "intentGoal", "intentActionType",
    "intentEntityTypes", "artifactType", "sourceMemoryId", "sourceTurnId", "memoryKind", "structuredAttributes",
    "contentHash", "derived_from", "derived_via", "reinforcement_count", "last_reinforced_at",
)  # fmt: skip
"""The order in which the format's own program writes its keys."""
_DEFAULT_CONFIDENCE = 0.8
_BASE_36 = "0123456789abcdefghijklmnopqrstuvwxyz"
Resolve = Callable[[str], str]


# -- reading


def read_note(keys: Keys, body: str, *, name: str, folder: str) -> Memory:
    """The memory of a note below `folder`. Raises `InvalidInput` naming the key."""
    memory = _read_keys(keys, body, name, folder)
    written = _render_keys(memory, memory.id, lambda target: target)
    kept: dict[str, Any] = {key: value for key, value in keys.items() if key != "id" and written.get(key) != value}
    absent = [key for key in written if key not in keys]
    extra = {"keys": kept, **({"absent": absent} if absent else {}), **({"cold": True} if _is_cold(folder) else {})}
    return memory.replace(extra={_EXTRA: extra}) if kept or absent or _is_cold(folder) else memory


def _read_keys(keys: Keys, body: str, name: str, folder: str) -> Memory:
    category = _text(keys, "category") or _category_of_folder(folder)
    if category not in CATEGORIES:
        raise InvalidInput(f"Unknown category {category!r:.60}; choose {', '.join(CATEGORIES)}")
    attributes = keys.get("structuredAttributes")
    attributes = (
        {key: value for key, value in attributes.items() if isinstance(value, str)}
        if isinstance(attributes, dict)
        else {}
    )
    types = {one.name for one in known_types()}
    own_type = _text(keys, "engramType")
    supersedes = keys.get("supersedes") or ()
    return Memory(
        id=_text(keys, "id") or name,
        statement=_without_attributes(body, attributes).strip(),
        type=own_type if own_type in types else _TYPE_OF.get(category, category),
        scope=_text(keys, "engramScope") or "global",
        status=_status(keys, folder),
        created=_time(keys, "created"),
        updated=_time(keys, "updated"),
        source=_text(keys, "source"),
        confidence=_unit(keys, "confidence", _DEFAULT_CONFIDENCE),
        importance=_unit(keys, "importanceScore", 0.5),
        tags=_texts(keys, "tags"),
        cues=normalize_cues(_texts(keys, "cues")),
        entities=(entity,) if (entity := _text(keys, "entityRef")) else (),
        supersedes=(supersedes,) if isinstance(supersedes, str) else tuple(map(str, supersedes)),
        superseded_by=_text(keys, "supersededBy"),
        valid_from=_time(keys, "validAt"),
        valid_until=_time(keys, "expiresAt") or _time(keys, "invalidAt"),
        verification=state if (state := _text(keys, "verificationState")) in VERIFICATIONS else "unverified",
        policy_class=_text(keys, "policyClass"),
        last_verified=_time(keys, "lastValidatedAt"),
        activation=_activation(keys),
        associations=tuple(_links(keys)),
        memory_kind=_text(keys, "memoryKind"),
        metadata=attributes,
    )


def _status(keys: Keys, folder: str) -> Status:
    if folder.split("/")[0] == "archive":
        return "archived"
    status = _text(keys, "status") or "active"
    if status not in _STATUS_OF:
        raise InvalidInput(f"Unknown status {status!r:.60}; choose {', '.join(_STATUS_OF)}")
    asleep = _text(keys, "engramStatus") == "dormant" or bool(_text(keys, "artifactType"))
    return "dormant" if asleep and status == "active" else _STATUS_OF[status]


def _activation(keys: Keys) -> Activation:
    count = _text(keys, "accessCount")
    frequency = int(count) if count.isdecimal() and len(count) < 10 else 0
    return Activation(frequency=frequency, last_accessed=_time(keys, "lastAccessed"))


def _links(keys: Keys) -> Iterable[Association]:
    links = keys.get("links")
    for link in links if isinstance(links, list) else ():
        if isinstance(link, Mapping) and isinstance(target := link.get("targetId"), str) and target:
            rest = {"reason": link["reason"]} if link.get("reason") else {}
            yield Association(target, link.get("linkType") or "related", _unit(link, "strength", 0.5), extra=rest)


def _text(keys: Mapping[str, Any], key: str) -> str:
    value = keys.get(key)
    return value if isinstance(value, str) else ""


def _texts(keys: Keys, key: str) -> tuple[str, ...]:
    value = keys.get(key)
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list) else ()


def _unit(keys: Mapping[str, Any], key: str, default: float) -> float:
    text = _text(keys, key)
    return unit_number(key, text) if text else default


def _time(keys: Keys, key: str) -> datetime | None:
    text = _text(keys, key)
    try:
        return read_time(text) if text else None
    except FieldError:
        raise InvalidInput(f"{key} must be a time such as 2026-01-15T09:30:00.000Z, is {text!r:.60}") from None


def _category_of_folder(folder: str) -> str:
    top = folder.removeprefix("cold/").split("/")[0]
    return {"corrections": "correction", "procedures": "procedure", "reasoning-traces": "reasoning_trace"}.get(
        top, "fact"
    )


def _is_cold(folder: str) -> bool:
    return folder.split("/")[0] == "cold"


def _attributes_line(attributes: Mapping[str, str]) -> str:
    return f"[Attributes: {'; '.join(f'{key.lower()}: {attributes[key]}' for key in sorted(attributes))}]"


def _without_attributes(body: str, attributes: Mapping[str, str]) -> str:
    return body.rstrip().removesuffix(_attributes_line(attributes)) if attributes else body


# -- writing


def note_of(memory: Memory, name: str, resolve: Resolve) -> tuple[str, Keys, str]:
    """A memory's folder, keys and body as the note `name`; `resolve` gives the name of a memory it links to, or ""."""
    kept = memory.extra.get(_EXTRA)
    kept = kept if isinstance(kept, Mapping) else {}
    keys = _render_keys(memory, name, resolve)
    body = memory.statement
    if attributes := keys.get("structuredAttributes"):
        body = f"{body}\n\n{_attributes_line(attributes)}"
    said = {key: value for key, value in _stated_keys(kept).items() if value == _derive_keys(memory).get(key, value)}
    keys = _original_keys(keys, body, said, kept.get("absent"), "archive" if memory.status == "archived" else "facts")
    ordered = {key: keys[key] for key in (*ORDER, *keys) if key in keys}
    return _folder(memory, keys, bool(kept.get("cold"))), ordered, body


def as_exported(memory: Memory) -> Memory:
    """A memory as a reader of its note sees it, with its own links."""
    folder, keys, body = note_of(memory, memory.id, lambda target: target)
    links = {
        "supersedes": memory.supersedes,
        "superseded_by": memory.superseded_by,
        "associations": memory.associations,
    }
    return read_note(keys, body, name=memory.id, folder=folder).replace(**links)


def _render_keys(memory: Memory, name: str, resolve: Resolve) -> Keys:
    """The keys of a memory in the format's own way of writing them."""
    category = _CATEGORY_OF.get(memory.type, memory.type if memory.type in CATEGORIES else "fact")
    created = memory.created or memory.updated or datetime(1970, 1, 1, tzinfo=UTC)
    supersedes = [found for target in memory.supersedes if (found := resolve(target))]
    attributes = {key: value for key, value in memory.metadata.items() if isinstance(value, str)}
    links = [_link(link, found) for link in memory.associations if (found := resolve(link.target))]
    keys: Keys = {
        "id": name,
        "category": category,
        "created": _format_time(created),
        "updated": _format_time(memory.updated or created),
        "source": stated_source(memory) or "unknown",
        "confidence": _spell_number(memory.confidence),
        "confidenceTier": _derive_keys(memory)["confidenceTier"],
        "tags": list(memory.tags),
        "cues": list(memory.cues),
        "entityRef": next(iter(memory.entities), ""),
        "supersedes": supersedes[0] if len(supersedes) == 1 else supersedes,
        "expiresAt": _format_time(memory.valid_until),
        "status": _SHOWN_STATUS.get(memory.status, ""),
        "supersededBy": resolve(memory.superseded_by) if memory.superseded_by else "",
        "validAt": _format_time(memory.valid_from),
        "verificationState": memory.verification if memory.verification != "unverified" else "",
        "policyClass": memory.policy_class,
        "lastValidatedAt": _format_time(memory.last_verified),
        "accessCount": str(memory.activation.frequency) if memory.activation.frequency else "",
        # Without a use it is when the memory was imported; a time that the note itself states is kept with its other keys.
        "lastAccessed": _format_time(memory.activation.last_accessed) if memory.activation.frequency else "",
        "links": links,
        "memoryKind": memory.memory_kind,
        "structuredAttributes": attributes,
        "engramType": memory.type if _TYPE_OF.get(category, category) != memory.type else "",
        "engramScope": memory.scope if memory.scope != "global" else "",
        "engramStatus": "dormant" if memory.status == "dormant" else "",
    }
    if memory.importance != 0.5:
        keys |= {
            "importanceScore": _spell_number(memory.importance),
            "importanceLevel": _derive_keys(memory)["importanceLevel"],
        }
    return {key: value for key, value in keys.items() if value or key == "tags"}


def _derive_keys(memory: Memory) -> dict[str, str]:
    """The keys that follow from others."""
    return {
        "confidenceTier": _level(_TIERS, memory.confidence),
        "importanceLevel": _level(_LEVELS, memory.importance),
    }


def _original_keys(keys: Keys, body: str, said: Keys, listed: Any, folder: str) -> Keys:
    """The keys with what the file said and left out, where that still means the same."""
    absent = [key for key in listed if isinstance(key, str) and key != "id"] if isinstance(listed, list) else []
    whole = {key: value for key, value in {**keys, **said}.items() if key not in absent}
    meaning = _comparable_memory(keys, body, folder)
    if meaning is None or _comparable_memory(whole, body, folder) == meaning:
        return whole if meaning is not None else keys
    for key, value in said.items():
        if _comparable_memory({**keys, key: value}, body, folder) == meaning:
            keys = {**keys, key: value}
    return keys


def _stated_keys(kept: Mapping[str, Any]) -> Keys:
    """The keys that a file gave, as far as a note can say them; the name it has here is not the file's to give."""
    keys = kept.get("keys")
    pairs = keys.items() if isinstance(keys, Mapping) else ()
    return {key: value for key, value in pairs if key != "id" and is_writable(key, value)}


def _comparable_memory(keys: Keys, body: str, folder: str) -> Memory | None:
    try:
        memory = _read_keys(keys, body, "", folder)
    except InvalidInput:
        return None
    return memory if memory.activation.frequency else memory.replace(activation=Activation())


def _link(link: Association, target: str) -> dict[str, str]:
    reason = link.extra.get("reason")
    rest = {"reason": reason} if isinstance(reason, str) else {}
    return {"targetId": target, "linkType": link.type, "strength": _spell_number(link.strength), **rest}


def _folder(memory: Memory, keys: Keys, cold: bool) -> str:
    day = (memory.created or datetime(1970, 1, 1, tzinfo=UTC)).astimezone(UTC).date().isoformat()
    if memory.status == "archived":
        return f"archive/{day}"
    if keys.get("artifactType"):
        folder = f"artifacts/{day}"
    else:
        category = _text(keys, "category")
        folders = {
            "correction": "corrections",
            "procedure": f"procedures/{day}",
            "reasoning_trace": f"reasoning-traces/{day}",
        }
        folder = folders.get(category, f"facts/{day}")
    return f"cold/{folder}" if cold else folder


def _level(levels: tuple[tuple[float, str], ...], value: float) -> str:
    return next(word for least, word in levels if value >= least)


def _spell_number(value: float) -> str:
    return f"{round(value, 6):g}"


def _format_time(moment: datetime | None) -> str:
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z") if moment else ""


# -- names


def name_in(aliases: Iterable[str]) -> str:
    """The name of a memory's note among its aliases, or ""."""
    return next((alias for alias in aliases if ID.fullmatch(alias)), "")


def name_for(memory: Memory, attempt: int = 0) -> str:
    """The name of a new note: its category, its time, and four characters that tell it from others of that moment.

    Another attempt gives another name, for when one is taken.
    """
    category = _CATEGORY_OF.get(memory.type, memory.type if memory.type in CATEGORIES else "fact")
    created = memory.created or datetime(1970, 1, 1, tzinfo=UTC)
    digest = int.from_bytes(hashlib.sha256(f"{memory.id} {attempt}".encode()).digest()[:8], "big")
    tail = "".join(_BASE_36[digest // 36**place % 36] for place in range(4))
    return f"{category}-{max(int(created.timestamp() * 1000), 0):013d}-{tail}"
