"""Reads and writes a directory of TOML files, one memory each, in the layout of spec 3 or the two earlier ones."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, time
from functools import lru_cache
from pathlib import Path
from typing import Any

from engram.dialects.fields import FieldError, read_time
from engram.dialects.source import ImportSource, Projection, origin_of_path, stated_source
from engram.disk import make_folder, read_bytes, remove_leftovers, replace_file
from engram.model.errors import EngramError, InvalidInput
from engram.model.memory import LIVE_STATUSES, Memory, render_form
from engram.model.types import FORM_PARTS, form_name
from engram.readers.data import MAX_IMPORT_BYTES, decode_text, parse_toml
from engram.rules.labels import normalize_cues
from engram.text.display import slug
from engram.text.tokens import split_sentences

__all__ = [
    "LEGACY_KEYS",
    "STATED_FIELDS",
    "as_exported",
    "is_feedback_toml",
    "is_legacy",
    "name_for",
    "name_in",
    "read_feedback_toml",
    "read_legacy",
    "read_toml",
    "render_toml",
    "toml_key",
    "toml_value",
    "why_left_out",
    "write_feedback_toml",
]

COUNTERS = frozenset({
    "surfaced_count", "followed_count", "not_followed_count", "irrelevant_count", "missed_count", "confidence", "initial_confidence",
    "project_scoped", "project_slug", "pending_evaluations", "core", "keywords", "concepts",
})  # fmt: skip
_FLAT = frozenset({"title", "principle", "anti_pattern", *FORM_PARTS["feedback"], *FORM_PARTS["fact"]})
LEGACY_KEYS = COUNTERS | _FLAT
"""Top-level keys of earlier layouts only. Their content is in the form, or is dropped with the layout."""
_QUOTED = re.compile(r"[\"“«][^\"”»]{4,}[\"”»]")
_WORDS = re.compile(r"\S+")
_LONGEST_SUBJECT = 6
_LEGACY_FILE = Path(__file__).with_name("legacy.txt")

Read = tuple[dict[str, str], str, str, list[str]]
"""Form, situation, source, and the parts that should be completed."""


def is_legacy(keys: Mapping[str, Any]) -> bool:
    """Whether a file has no [content], or has keys of an earlier layout next to it."""
    return not isinstance(keys.get("content"), Mapping) or bool(keys.keys() & LEGACY_KEYS)


def read_legacy(keys: Mapping[str, Any]) -> Read:
    """The form, situation and source of a file. Raises `InvalidInput` if its kind is unclear.

    A file is feedback if it has an action or a principle, or reads as a do or a don't. It is a fact if it states what
    something is. Everything else is reported, not guessed.
    """
    told: list[str] = []
    form = _parse_legacy_form(keys)
    situation = _text_or_nothing(keys, "situation")
    if not situation and (title := _text_or_nothing(keys, "title")):
        situation = title
        told.append("its title is its situation now; name the task in which it matters")
    return form, situation, _source(keys), told


def _parse_legacy_form(keys: Mapping[str, Any]) -> dict[str, str]:
    content = keys.get("content")
    stated: Mapping[str, Any] = content if isinstance(content, Mapping) else keys
    given = {name: _take_parts(stated, parts) for name, parts in FORM_PARTS.items()}
    if found := given.get(_text_or_nothing(keys, "type")) or given["feedback"] or given["fact"]:
        return found
    principle, warned_of = _text_or_nothing(keys, "principle"), _text_or_nothing(keys, "anti_pattern")
    if principle:
        return {**({"behavior": warned_of} if warned_of else {}), "action": principle}
    text = content.strip() if isinstance(content, str) else ""
    if _first_word(text) in _class("directive"):
        return {**({"behavior": warned_of} if warned_of else {}), "action": text}
    if fact := _fact(text):
        return fact
    raise InvalidInput(
        "it is unclear whether this is feedback or a fact; write it with `engram learn feedback` or `learn fact`"
    )


def _take_parts(keys: Mapping[str, Any], parts: tuple[str, ...]) -> dict[str, str]:
    return {part: text for part in parts if (text := _text_or_nothing(keys, part))}


def _fact(text: str) -> dict[str, str]:
    """Subject, predicate and object of a single sentence that states what a thing is; {} for any other text."""
    if len(split_sentences(text, 2)) != 1:
        return {}
    words = _WORDS.findall(text.rstrip("."))
    for at, word in enumerate(words[: _LONGEST_SUBJECT + 1]):
        if at and word.lower() in _class("relation") and at + 1 < len(words):
            end = at + 2 if words[at + 1].lower() in _class("preposition") and at + 2 < len(words) else at + 1
            return {
                "subject": " ".join(words[:at]),
                "predicate": " ".join(words[at:end]),
                "object": " ".join(words[end:]),
            }
    return {}


def _source(keys: Mapping[str, Any]) -> str:
    """The source: a person, if a file says so, rates it A or quotes somebody."""
    if (stated := _text_or_nothing(keys, "source")) in ("human", "agent"):
        return stated
    texts = (keys.get(key) for key in ("content", "principle", "anti_pattern"))
    is_quote = any(isinstance(text, str) and _QUOTED.search(text) for text in texts)
    return "human" if keys.get("confidence") == "A" or is_quote else "agent"


def _text_or_nothing(keys: Mapping[str, Any], key: str) -> str:
    value = keys.get(key)
    return value.strip() if isinstance(value, str) else ""


def _first_word(text: str) -> str:
    found = _WORDS.match(text)
    return found[0].lower().strip(",.:;").replace("’", "'") if found else ""


@lru_cache(maxsize=4)
def _class(name: str) -> frozenset[str]:
    rows = [line.split() for line in _LEGACY_FILE.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    return frozenset(word for label, *words in filter(None, rows) if label == name for word in words)


_BARE = re.compile(r"[A-Za-z0-9_-]+")
_ESCAPES = {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r", '"': '\\"', "\\": "\\\\"}
_ESCAPED = re.compile('[\x00-\x1f\x7f"\\\\]')
_HALF = re.compile("[\ud800-\udfff]")


def toml_key(key: str) -> str:
    """A key, quoted if necessary."""
    return key if _BARE.fullmatch(key) else toml_value(key)


def toml_value(value: Any) -> str:
    """A value on one line. Raises `InvalidInput` for values that TOML cannot represent."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        # Half a surrogate pair is not a character, and a UTF-8 file cannot contain one.
        return f'"{_ESCAPED.sub(_escape_character, _HALF.sub("�", value))}"'
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{toml_key(str(key))} = {toml_value(item)}' for key, item in value.items())}}}"
    if isinstance(value, Sequence):
        return f"[{', '.join(map(toml_value, value))}]"
    raise InvalidInput(f"TOML has no value for {value!r:.60}")


def _escape_character(found: re.Match[str]) -> str:
    return _ESCAPES.get(found[0]) or f"\\u{ord(found[0]):04x}"


SCHEMA = 2
FOLDERS = {"feedback": "feedback", "fact": "facts"}
"""Each form, and its folder below `memory/`."""
STATED_FIELDS = frozenset({"type", "situation", "form", "statement", "cues", "created", "updated"})
"""The fields of a memory that a file states."""
_NAME = re.compile(r"(?:feedback|facts)/[^/\s]+")
_KNOWN = frozenset({"schema_version", "type", "source", "situation", "cues", "created_at", "updated_at", "content"})
_TIMES = ("created_at", "updated_at")
_CONTENT = "content"
_EXTRA = "toml"


# -- reading


def read_toml(text: str, name: str) -> tuple[Memory, list[str]]:
    """The memory of a file, under its name there, and the parts its author should complete.

    Raises `InvalidInput` with the problem.
    """
    keys = parse_toml(text, longest=MAX_IMPORT_BYTES, characters="any")
    version = keys.get("schema_version", 0)
    if not isinstance(version, int) or version > SCHEMA:
        raise InvalidInput(f"schema_version {version!r:.20} is newer than {SCHEMA}; a newer Engram may read it")
    notes: list[str] = []
    if is_legacy(keys):
        form, situation, source, told = read_legacy(keys)
        notes += told
    else:
        form, situation, source = _parse_form(keys), _require_text(keys, "situation"), _require_text(keys, "source")
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
        context=_require_text(keys, "content") if isinstance(keys.get("content"), str) else "",
    )  # fmt: skip
    return memory, notes


def _parse_form(keys: Mapping[str, Any]) -> dict[str, str]:
    content = keys.get("content")
    if not isinstance(content, Mapping):
        raise InvalidInput(
            "has no [content]; it should have behavior, impact and action, or subject, predicate and object"
        )
    stated = _require_text(keys, "type")
    if stated and stated not in FORM_PARTS:
        raise InvalidInput(f"unknown type {stated!r:.60}; known are {' and '.join(FORM_PARTS)}")
    name = stated or form_name(content)
    form = {part: text for part in FORM_PARTS.get(name, ()) if (text := _require_text(content, part))}
    if not form:
        parts = " or ".join(", ".join(parts) for parts in FORM_PARTS.values())
        raise InvalidInput(f"its [content] has none of {parts}")
    return form


def _unknown_content(keys: Mapping[str, Any], form: Mapping[str, str]) -> dict[str, Any]:
    """The keys of [content] other than the parts of the form and the times."""
    content = keys.get(_CONTENT)
    known = (*FORM_PARTS[form_name(form)], *_TIMES)
    pairs = content.items() if isinstance(content, Mapping) else ()
    return {key: _plain(value) for key, value in pairs if key not in known}


def _require_text(keys: Mapping[str, Any], key: str) -> str:
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
    """A time at the top, or inside [content], as in a copy of the README's example."""
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
    """A value as JSON-compatible data; times become texts."""
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
    return "" if memory.status in LIVE_STATUSES else f"TOML has no status for what is {memory.status}"


def name_in(aliases: Iterable[str]) -> str:
    """The name of a memory in this format, if it has one: `feedback/writing-tests`."""
    return next((alias for alias in aliases if _NAME.fullmatch(alias)), "")


def name_for(memory: Memory, attempt: int) -> str:
    """A name for a memory: its folder and its own name, with a number added at each further attempt."""
    stem = slug(memory.name or memory.situation or memory.statement, words=60, length=80) or "memory"
    return f"{FOLDERS[form_name(memory.form)]}/{stem}{f'-{attempt + 1}' if attempt else ''}"


def render_toml(memory: Memory) -> str:
    """The file contents for a memory in a form."""
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


CURRENT_FOLDERS = ("feedback", "facts")
OLD_FOLDERS = ("memories", "memories.v1-backup")
"""The folders of the earlier flat layouts."""
MAX_TOML_BYTES = 1024 * 1024
"""Maximum bytes of one file."""


def is_feedback_toml(path: Path) -> bool:
    """Whether a path is a memory in TOML, or a directory that contains one."""
    if path.is_file():
        return path.suffix.lower() == ".toml" and _is_memory(path)
    return any(True for _ in _files(path))


def _is_memory(path: Path) -> bool:
    try:
        read_toml(decode_text(read_bytes(path), where=path.name), "x")
    except (EngramError, OSError):
        return False
    return True


def read_feedback_toml(path: Path) -> ImportSource:
    """Read a file, or all files of a directory in any layout.

    Unclear or unreadable files are named. Raises `InvalidInput`.
    """
    root = path if path.is_dir() else _root_of(path)
    source = ImportSource(
        origin=origin_of_path("import", root), whole=True, projection=Projection(STATED_FIELDS, as_exported)
    )
    files = list(_files(path)) if path.is_dir() else [path]
    for file in files:
        place = file.relative_to(root).as_posix() if file.is_relative_to(root) else file.name
        try:
            memory, notes = read_toml(_read_file_text(file), f"{file.parent.name}/{file.stem}")
        except EngramError as error:
            source.skipped.append((place, str(error)))
            continue
        source.add(place, memory)
        source.notices += [(place, note) for note in notes]
    if not files:
        raise InvalidInput(f"{path} has no TOML files below memory/feedback, memory/facts or memories")
    return source


def _files(folder: Path) -> Iterator[Path]:
    """The files of every layout in a directory: in its `memory/` or itself, the flat ones, or the directory's own."""
    if not folder.is_dir():
        return
    named = [folder / "memory" / name for name in CURRENT_FOLDERS] + [
        folder / name for name in (*CURRENT_FOLDERS, *OLD_FOLDERS)
    ]
    places = [place for place in named if place.is_dir()] or (
        [folder] if folder.name in (*CURRENT_FOLDERS, *OLD_FOLDERS) else []
    )
    for place in places:
        with os.scandir(place) as entries:
            found = sorted(
                entry.name for entry in entries if entry.name.endswith(".toml") and not entry.name.startswith(".")
            )
        yield from (place / name for name in found)


def _root_of(file: Path) -> Path:
    """The directory whose layout a file is part of; its own folder if there is none."""
    folder = file.parent
    if folder.name not in (*CURRENT_FOLDERS, *OLD_FOLDERS):
        return folder
    return folder.parent.parent if folder.parent.name == "memory" else folder.parent


def _read_file_text(file: Path) -> str:
    try:
        data = read_bytes(file)
    except OSError as error:
        raise InvalidInput(f"cannot be read: {error.strerror or error}") from None
    if len(data) > MAX_TOML_BYTES:
        raise InvalidInput(f"{len(data):,} bytes, at most {MAX_TOML_BYTES:,} are read")
    return decode_text(data, where=file.name)


def write_feedback_toml(directory: Path, memories: Sequence[Memory], names: Mapping[str, str], *, force: bool) -> None:
    """Write each memory to its file below `memory/`, named by `names`.

    Raises `InvalidInput` if a file is in the way.
    """
    files = {directory / "memory" / f"{names[memory.id]}.toml": render_toml(memory) for memory in memories}
    taken = next((file for file in files if file.exists() or file.is_symlink()), None)
    if taken is not None and not force:
        raise InvalidInput(f"{taken} already exists; choose another directory, or add --force to replace it")
    if linked := next((file for file in files if not _is_inside(file.parent, directory)), None):
        raise InvalidInput(f"{linked.parent} leads out of {directory}; remove the link")
    for folder in {file.parent for file in files}:
        make_folder(folder)
        remove_leftovers(folder)
    for file, text in files.items():
        replace_file(file, text.encode(), durable=False)


def _is_inside(folder: Path, directory: Path) -> bool:
    return folder.resolve().is_relative_to(directory.resolve())
