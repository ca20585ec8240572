"""A directory of notes, one Markdown file per memory: `key: value` lines between two `---`, then the body.

The frontmatter looks like YAML but is not.
"""

import hashlib
import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

from engram.dialects.fields import FieldError, read_time, unit_number
from engram.dialects.markdown_notes import markdown_files, markdown_text
from engram.dialects.source import ImportSource, origin_of_path, stated_source, without_origin
from engram.disk import make_folder, remove_leftovers, replace_file
from engram.model.errors import EngramError, InvalidInput, UnreadableData
from engram.model.memory import VERIFICATIONS, Activation, Association, Memory, Status
from engram.model.types import known_types
from engram.readers.data import parse_json, split_frontmatter
from engram.rules.labels import normalize_cues

Keys = dict[str, Any]
"""The values of a note's keys: text, a list of texts, a list of blocks, or a mapping."""
_KEY = re.compile(r"([A-Za-z_][\w.-]*):(?:[ \t]+(.*))?")
_ITEM = re.compile(r"\s*-\s+(.*)")
_INNER = re.compile(r"\s+([A-Za-z_][\w.-]*):[ \t]*(.*)")
_PLAIN = re.compile(
    r"[^\s\"'\[\]{}\x00-\x1f\x7f-\x9f\u2028\u2029](?:[^\x00-\x1f\x7f-\x9f\u2028\u2029]*[^\s\x00-\x1f\x7f-\x9f\u2028\u2029])?"
)
_SPLIT_BY_OTHERS = {",": "\\u002c", '\\"': "\\u0022"}


def parse_note(text: str) -> tuple[Keys, str]:
    """The keys and the body of a note. Raises `InvalidInput` for text without closed frontmatter."""
    parts = split_frontmatter(text)
    if parts is None:
        raise InvalidInput("has no frontmatter between two `---` lines")
    keys: Keys = {}
    key = ""
    for line in parts.head.split("\n"):
        found = _KEY.fullmatch(line.rstrip())
        if found:
            key = found[1]
            keys[key] = _value(found[2] or "")
        elif key and line.strip():
            keys[key] = _continue_list(keys[key], line)
    return keys, parts.body.removeprefix("\n").removesuffix("\n")


def _continue_list(value: Any, line: str) -> list[Any]:
    """Continue a list with another line: an item, or another key of the previous item."""
    items = value if isinstance(value, list) else []
    if found := _ITEM.fullmatch(line.rstrip()):
        inner = _INNER.fullmatch(" " + found[1])
        items.append({inner[1]: _unquote(inner[2])} if inner else _unquote(found[1]))
    elif items and isinstance(items[-1], dict) and (inner := _INNER.fullmatch(line.rstrip())):
        items[-1][inner[1]] = _unquote(inner[2])
    return items


def _value(text: str) -> Any:
    text = text.strip()
    if text.startswith(("[", "{", '"')):
        try:
            found = parse_json(text, characters="any")
        except UnreadableData:
            return _split_list(text[1:-1]) if text.startswith("[") and text.endswith("]") else text
        if isinstance(found, list):
            return [item if isinstance(item, str) else json.dumps(item) for item in found]
        return found if isinstance(found, str | dict) else text
    return _unquote(text)


def _split_list(inside: str) -> list[str]:
    """A list that is not JSON, split as the format's own readers split it."""
    return [_unquote(part.strip()) for part in inside.split(",") if part.strip()]


def _unquote(text: str) -> str:
    if len(text) >= 2 and text[0] == text[-1] == '"':
        try:
            return str(parse_json(text, characters="any"))
        except UnreadableData:
            return text[1:-1]
    return text[1:-1] if len(text) >= 2 and text[0] == text[-1] == "'" else text


def render_note(keys: Mapping[str, Any], body: str) -> str:
    """The text of a note.

    Lists are written as JSON, with commas and quotes inside an item escaped, because readers of the format may split a
    list at every comma.
    """
    lines = [line for key, value in keys.items() for line in _lines(key, value)]
    return "\n".join(["---", *lines, "---", "", body, ""])


def is_writable(key: str, value: Any) -> bool:
    """Whether a note can state exactly this value under a key, without other content on its lines."""
    if not isinstance(value, str | list | Mapping):
        return False
    try:
        keys, body = parse_note(render_note({key: value}, ""))
    except (InvalidInput, AttributeError, TypeError, ValueError):
        return False
    return keys == {key: value} and not body


def _lines(key: str, value: Any) -> list[str]:
    if isinstance(value, list) and any(isinstance(item, Mapping) for item in value):
        return [f"{key}:", *(line for item in value for line in _block(item))]
    if isinstance(value, list):
        return [f"{key}: [{', '.join(_list_item(item) for item in value)}]"]
    if isinstance(value, Mapping):
        return [f"{key}: {json.dumps(value, ensure_ascii=False)}"]
    return [f"{key}: {_scalar(value)}".rstrip()]


def _block(item: Any) -> Sequence[str]:
    if not isinstance(item, Mapping):
        return [f"  - {_list_item(item)}"]
    pairs = [f"{name}: {_scalar(value)}".rstrip() for name, value in item.items()]
    return [("  - " if index == 0 else "    ") + pair for index, pair in enumerate(pairs)]


def _list_item(item: str) -> str:
    text = json.dumps(item, ensure_ascii=False)
    inside = text[1:-1]
    for sign, escaped in _SPLIT_BY_OTHERS.items():
        inside = inside.replace(sign, escaped)
    return f'"{inside}"'


def _scalar(value: str) -> str:
    return value if not value or _PLAIN.fullmatch(value) else json.dumps(value)


ID = re.compile(r"[a-z][a-z_-]*-[0-9]{10,16}-[A-Za-z0-9]{2,16}")
CATEGORIES = ("fact", "preference", "correction", "entity", "decision", "relationship", "principle", "commitment",
              "moment", "skill", "rule", "procedure", "reasoning_trace")  # fmt: skip
"""The ten of spec 5, and three more that its program also writes."""
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
"""The key order of the format's own program."""
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
    """A memory's folder, keys and body as the note `name`; `resolve` gives the name of a linked memory, or ""."""
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
    """The keys of a memory as the format writes them."""
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
        # Without a use, this is the time of the import; a time stated by the note itself is kept with its other keys.
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
    """The keys derived from others."""
    return {
        "confidenceTier": _level(_TIERS, memory.confidence),
        "importanceLevel": _level(_LEVELS, memory.importance),
    }


def _original_keys(keys: Keys, body: str, said: Keys, listed: Any, folder: str) -> Keys:
    """The keys, with the file's own wording and omissions wherever these still mean the same."""
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
    """The keys given by a file, as far as a note can express them. The file does not decide its name here."""
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
    """The note's name among a memory's aliases, or ""."""
    return next((alias for alias in aliases if ID.fullmatch(alias)), "")


def name_for(memory: Memory, attempt: int = 0) -> str:
    """The name of a new note: its category, its time, and four characters that make it unique.

    Further attempts give other names, in case one is taken.
    """
    category = _CATEGORY_OF.get(memory.type, memory.type if memory.type in CATEGORIES else "fact")
    created = memory.created or datetime(1970, 1, 1, tzinfo=UTC)
    digest = int.from_bytes(hashlib.sha256(f"{memory.id} {attempt}".encode()).digest()[:8], "big")
    tail = "".join(_BASE_36[digest // 36**place % 36] for place in range(4))
    return f"{category}-{max(int(created.timestamp() * 1000), 0):013d}-{tail}"


FOLDERS = ("facts", "corrections", "procedures", "reasoning-traces", "artifacts", "archive", "cold")
"""The folder with the memories; the others hold derived data, or data about the program itself."""
_CATEGORY = re.compile(r"^category:", re.MULTILINE)
_ENOUGH_TO_TELL = 20
"""Maximum files checked to recognise a directory."""


def is_notes(path: Path) -> bool:
    """Whether a folder has this layout."""
    if not path.is_dir():
        return False
    return any(map(_has_note, _folders(path)))


def _has_note(folder: Path) -> bool:
    for file in islice(markdown_files(folder, []), _ENOUGH_TO_TELL):
        try:
            if _CATEGORY.search(markdown_text(file)[:4096]):
                return True
        except EngramError:
            continue
    return False


def read_notes(path: Path) -> ImportSource:
    """Read every note of a directory. Unreadable notes are named. Raises `InvalidInput` if there is none."""
    if not path.is_dir():
        raise InvalidInput(f"{path} is a file; give the directory that holds facts/ and corrections/")
    source = ImportSource(origin=origin_of_path("import", path), whole=True)
    others: dict[str, int] = {}
    for file in markdown_files(path, source.skipped):
        place = file.relative_to(path).as_posix()
        top = place.split("/")[0]
        if "/" not in place or top not in FOLDERS:
            others[top] = others.get(top, 0) + 1
            continue
        try:
            keys, body = parse_note(markdown_text(file))
            memory = read_note(keys, body, name=file.stem, folder=place.rpartition("/")[0])
        except EngramError as error:
            source.skipped.append((place, str(error)))
            continue
        source.add(place, memory)
    source.not_read += [f"{name}: {count} Markdown files (not memories)" for name, count in sorted(others.items())]
    if not source.found and not source.skipped:
        raise InvalidInput(f"{path} contains no notes; they are below {', '.join(FOLDERS)}")
    return source


def refuse_overwriting(directory: Path, names: Collection[str], *, force: bool) -> None:
    """Raise `InvalidInput` if a note of one of these names already exists in any folder, or a link leads out."""
    if not directory.is_dir():
        return
    for top in _folders(directory):
        for place in (top, *top.rglob("*")):
            if place.is_symlink() and place.is_dir() and not place.resolve().is_relative_to(directory.resolve()):
                raise InvalidInput(f"{place} leads out of {directory}; remove the link")
    taken = next((file for file in _notes_below(directory) if file.stem in names), None)
    if taken is not None and not force:
        raise InvalidInput(f"{taken} already exists; choose another directory, or add --force to replace it")


def write_notes(
    directory: Path,
    memories: Sequence[Memory],
    names: Mapping[str, str],
    *,
    force: bool,
    report: Callable[[str, int, int], None],
) -> None:
    """Write each memory to its note, named by `names`; `force` replaces existing notes.

    Raises `InvalidInput` if a file is in the way, before anything is written.
    """
    taken = set(names.values())
    refuse_overwriting(directory, taken, force=force)
    files: dict[Path, str] = {}
    for memory in memories:
        folder, keys, body = note_of(memory, names[memory.id], lambda target: names.get(target, without_origin(target)))
        files[directory / folder / f"{names[memory.id]}.md"] = render_note(keys, body)
    blocked = next((file for file in files if file.exists() or file.is_symlink()), None)
    if blocked is not None and not force:
        raise InvalidInput(f"{blocked} already exists; choose another directory, or add --force to replace it")
    moved = [file for file in _notes_below(directory) if file.stem in taken and file not in files]
    for place in {file.parent for file in files}:
        make_folder(place)
        remove_leftovers(place)
    for number, (file, text) in enumerate(files.items(), 1):
        replace_file(file, text.encode(), durable=False)
        report("Exporting", number, len(files))
    for file in moved:  # the same note in its previous folder
        file.unlink(missing_ok=True)


def _folders(directory: Path) -> list[Path]:
    return [folder for name in FOLDERS if (folder := directory / name).is_dir()]


def _notes_below(directory: Path) -> list[Path]:
    return [file for folder in _folders(directory) for file in markdown_files(folder, [])]
