"""One TOML file ↔ one memory in a form. Scalars first and `[content]` last, as the format's own program writes them; times are texts."""

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime, time
from typing import Any

from engram.dialects.feedback_toml.legacy import LEGACY_KEYS, is_legacy, read_legacy
from engram.dialects.feedback_toml.toml_text import toml_key, toml_value
from engram.dialects.fields import FieldError, read_time
from engram.dialects.source import stated_source
from engram.model.errors import InvalidInput
from engram.model.forms import FORM_PARTS, form_name
from engram.model.memory import Memory, render_form
from engram.readers.limits import MAX_IMPORT_BYTES
from engram.readers.toml_reader import parse_toml
from engram.rules.cues import normalize_cues
from engram.text.display import slug

__all__ = ["STATED_FIELDS", "as_exported", "name_for", "name_in", "read_toml", "render_toml", "why_left_out"]

SCHEMA = 2
FOLDERS = {"feedback": "feedback", "fact": "facts"}
"""Each form, and the folder below `memory/` that holds it."""
STATED_FIELDS = frozenset({"type", "situation", "form", "statement", "cues", "created", "updated"})
"""What a file says of a memory."""
_NAME = re.compile(r"(?:feedback|facts)/[^/\s]+")
_KNOWN = frozenset({"schema_version", "type", "source", "situation", "cues", "created_at", "updated_at", "content"})
_TIMES = ("created_at", "updated_at")
_CONTENT = "content"
_EXTRA = "toml"
_LIVE = ("active", "dormant")


# -- reading


def read_toml(text: str, name: str) -> tuple[Memory, list[str]]:
    """The memory of a file, under its name there, and what its author should complete. Raises `InvalidInput` saying what is wrong."""
    keys = parse_toml(text, longest=MAX_IMPORT_BYTES, characters="any")
    version = keys.get("schema_version", 0)
    if not isinstance(version, int) or version > SCHEMA:
        raise InvalidInput(f"schema_version {version!r:.20} is newer than {SCHEMA}; a newer Engram may read it")
    notes: list[str] = []
    if is_legacy(keys):
        form, situation, source, told = read_legacy(keys)
        notes += told
    else:
        form, situation, source = _form(keys), _text(keys, "situation"), _text(keys, "source")
    if missing := [part for part in FORM_PARTS[form_name(form)] if not form.get(part)]:
        notes.insert(0, f"has no {', '.join(missing)}; `engram update --name …` adds what is missing")
    if not situation:
        notes.append("has no situation, so no task finds it")
    created, updated = (_time(keys, key, notes) for key in _TIMES)
    unknown = {key: _plain(value) for key, value in keys.items() if key not in _KNOWN | LEGACY_KEYS}
    if inside := _unknown_content(keys, form):
        unknown[_CONTENT] = inside
    memory = Memory(
        id=name, statement=render_form(form), type=form_name(form), name=slug(name.rpartition("/")[2], words=60, length=80),
        situation=situation, form=form, cues=_cues(keys), created=created, updated=updated,
        source=source if source in ("human", "agent") else "", extra={_EXTRA: unknown} if unknown else {},
        context=_text(keys, "content") if isinstance(keys.get("content"), str) else "",
    )  # fmt: skip
    return memory, notes


def _form(keys: Mapping[str, Any]) -> dict[str, str]:
    content = keys.get("content")
    if not isinstance(content, Mapping):
        raise InvalidInput(
            "has no [content]; it should have behavior, impact and action, or subject, predicate and object"
        )
    stated = _text(keys, "type")
    if stated and stated not in FORM_PARTS:
        raise InvalidInput(f"unknown type {stated!r:.60}; known are {' and '.join(FORM_PARTS)}")
    name = stated or form_name(content)
    form = {part: text for part in FORM_PARTS.get(name, ()) if (text := _text(content, part))}
    if not form:
        parts = " or ".join(", ".join(parts) for parts in FORM_PARTS.values())
        raise InvalidInput(f"its [content] has none of {parts}")
    return form


def _unknown_content(keys: Mapping[str, Any], form: Mapping[str, str]) -> dict[str, Any]:
    """What [content] has besides the parts of the form and the times."""
    content = keys.get(_CONTENT)
    known = (*FORM_PARTS[form_name(form)], *_TIMES)
    pairs = content.items() if isinstance(content, Mapping) else ()
    return {key: _plain(value) for key, value in pairs if key not in known}


def _text(keys: Mapping[str, Any], key: str) -> str:
    value = keys.get(key, "")
    if not isinstance(value, str):
        raise InvalidInput(f"{key} must be text, is {value!r:.60}")
    return value.strip()


def _cues(keys: Mapping[str, Any]) -> tuple[str, ...]:
    value = keys.get("cues", [])
    if not isinstance(value, list) or not all(isinstance(cue, str) for cue in value):
        raise InvalidInput(f"cues must be a list of texts, is {value!r:.60}")
    return normalize_cues(value)


def _time(keys: Mapping[str, Any], key: str, notes: list[str]) -> datetime | None:
    """A time at the top, or inside [content], where a copy of the README's example has it."""
    content = keys.get("content")
    value = keys.get(key, content.get(key) if isinstance(content, Mapping) else None)
    if value in (None, ""):
        return None
    try:
        return read_time(value)
    except FieldError as error:
        notes.append(f"{key} {error.what}; imported without it")
        return None


def _plain(value: Any) -> Any:
    """A value as JSON can hold it; times become texts."""
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value


# -- writing


def why_left_out(memory: Memory) -> str:
    """Why a memory has no file in this format; "" if it has one."""
    if not form_name(memory.form):
        return "TOML has feedback and facts in their forms only"
    return "" if memory.status in _LIVE else f"TOML has no status for what is {memory.status}"


def name_in(aliases: Iterable[str]) -> str:
    """The name of a memory in this format, if it has one: `feedback/writing-tests`."""
    return next((alias for alias in aliases if _NAME.fullmatch(alias)), "")


def name_for(memory: Memory, attempt: int) -> str:
    """A name for a memory: its folder and its own name, with a number at every further attempt."""
    stem = slug(memory.name or memory.situation or memory.statement, words=60, length=80) or "memory"
    return f"{FOLDERS[form_name(memory.form)]}/{stem}{f'-{attempt + 1}' if attempt else ''}"


def render_toml(memory: Memory) -> str:
    """The file of a memory in a form."""
    name = form_name(memory.form)
    is_person = stated_source(memory).partition(":")[0] == "human"
    keys: dict[str, Any] = {
        "schema_version": SCHEMA,
        "type": name,
        "source": "human" if is_person else "agent",
        "situation": memory.situation,
        "cues": list(memory.cues) or None,
        "created_at": _moment(memory.created),
        "updated_at": _moment(memory.updated or memory.created),
    }
    more = memory.extra.get(_EXTRA)
    more = more if isinstance(more, Mapping) else {}
    keys |= {key: value for key, value in more.items() if key not in _KNOWN}
    inside = more.get(_CONTENT)
    content: dict[str, Any] = {part: memory.form[part] for part in FORM_PARTS[name] if memory.form.get(part)}
    content |= (
        {key: value for key, value in inside.items() if key not in content} if isinstance(inside, Mapping) else {}
    )
    return "\n".join([*_lines(keys), "", "[content]", *(f"  {line}" for line in _lines(content)), ""])


def _lines(keys: Mapping[str, Any]) -> list[str]:
    return [f"{toml_key(key)} = {toml_value(value)}" for key, value in keys.items() if value not in ("", None)]


def as_exported(memory: Memory) -> Memory:
    """A memory as a reader of its file would see it."""
    if not form_name(memory.form):
        return memory
    return read_toml(render_toml(memory), memory.name or "memory")[0]


def _moment(at: datetime | None) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}" if at is not None else ""
