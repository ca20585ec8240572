"""Reads a directory of Markdown notes, one fact each, such as Claude Code's own memory.

It also finds the Markdown files below a folder without following links out of it.
"""

import hashlib
import os
import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from engram.dialects.fields import FieldError, plain_mapping, read_time, unit_number
from engram.dialects.source import ImportSource, Projection, origin_of_path
from engram.disk import read_bytes
from engram.model.errors import EngramError, InvalidInput
from engram.model.memory import Memory
from engram.model.types import known_types
from engram.readers.data import decode_text, split_frontmatter
from engram.readers.yaml_parser import parse_yaml
from engram.text.display import slug

MAX_MARKDOWN_BYTES = 8 * 1024 * 1024
"""Maximum bytes of one file."""
_DEEPEST = 32
Skipped = list[tuple[str, str]]


def markdown_files(folder: Path, skipped: Skipped) -> Iterator[Path]:
    """Every `.md` file below a folder in order of its path, without hidden ones.

    Links that lead out of it are named.
    """
    root = folder.resolve()
    yield from _walk(folder, folder, root, skipped, 0)


def _walk(folder: Path, top: Path, root: Path, skipped: Skipped, depth: int) -> Iterator[Path]:
    if depth > _DEEPEST:
        skipped.append((str(folder.relative_to(top)), f"folders nested deeper than {_DEEPEST} levels are not read"))
        return
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        skipped.append((str(folder.relative_to(top)), f"cannot be read: {error.strerror}"))
        return
    for entry in entries:
        if entry.name.startswith("."):
            continue
        path = Path(entry.path)
        if entry.is_dir(follow_symlinks=False):
            yield from _walk(path, top, root, skipped, depth + 1)
        elif path.suffix.lower() == ".md":
            if problem := _problem(entry, root):
                skipped.append((str(path.relative_to(top)), problem))
            else:
                yield path


def _problem(entry: "os.DirEntry[str]", root: Path) -> str:
    if entry.is_symlink():
        inside = Path(entry.path).resolve().is_relative_to(root)
        return "a symbolic link to another file of the folder" if inside else "a symbolic link out of the folder"
    if not entry.is_file():
        return "not a regular file"
    size = entry.stat().st_size
    return f"{size:,} bytes, at most {MAX_MARKDOWN_BYTES:,} are read" if size > MAX_MARKDOWN_BYTES else ""


def markdown_text(path: Path) -> str:
    """The text of a file. Raises `InvalidInput` naming it."""
    try:
        return decode_text(read_bytes(path), where=path.name)
    except OSError as error:
        raise InvalidInput(f"cannot be read: {error.strerror}") from None


STATED_FIELDS = frozenset({"statement", "type", "context", "tags", "created", "confidence", "metadata"})
CONFIDENCE = 0.7
"""The confidence of a note that states none."""
_INDEXES = frozenset({"memory.md", "memory-log.md", "index.md", "readme.md"})
"""Names of files that list or explain the notes, compared without case."""
_TYPES = {"user": "preference", "reference": "infra", "note": "fact"}
"""Other tools' words for a type; a word that is a type here keeps its meaning."""
_KNOWN = frozenset(
    {"description", "type", "kind", "name", "title", "tags", "created", "date", "confidence", "metadata"}
)
_TEXT_KEYS = frozenset({"description", "type", "kind", "name", "title", "tags", "created", "date"})
_LONGEST_PLACE = 400
_HEADING = re.compile(r"#{1,6}\s")
_MARK = re.compile(r"(?:[-*+]|\d{1,9}[.)])\s+|>\s*")


def has_notes(path: Path, others: Collection[str]) -> bool:
    """Whether a path is a Markdown file, or a folder of them.

    `others` are lower-case names of files that are not notes.
    """
    if path.is_dir():
        return any(file.name.lower() not in (*_INDEXES, *others) for file in markdown_files(path, []))
    return path.suffix.lower() == ".md"


def read_markdown_notes(path: Path, others: Collection[str]) -> ImportSource:
    """Read a note, or every note below a folder except the `others`.

    Unreadable files are named. Raises `InvalidInput` if there is none.
    """
    folder = path if path.is_dir() else path.parent
    source = ImportSource(
        origin=origin_of_path("import", folder),
        whole=True,
        made_ids=True,
        projection=Projection(STATED_FIELDS, _show_memory),
    )
    files = list(markdown_files(folder, source.skipped)) if path.is_dir() else [path]
    for file in files:
        place = file.relative_to(folder).as_posix()
        if path.is_dir() and file.name.lower() in (*_INDEXES, *others):
            source.not_read.append(f"{place}: lists or explains the others")
            continue
        try:
            source.found.append((place, read_markdown_note(markdown_text(file), place)))
        except EngramError as error:
            source.skipped.append((place, str(error)))
    if not files and not source.skipped:
        raise InvalidInput(f"{path} contains no Markdown files")
    return source


def read_markdown_note(text: str, place: str) -> Memory:
    """The memory of one note, identified by its path. Raises `InvalidInput` with the problem."""
    parts = split_frontmatter(text)
    if parts is None and text.startswith("---"):
        raise InvalidInput("the frontmatter is not closed by a second `---` line")
    keys: Any = parse_yaml("\n" + parts.head, where=place, text_keys=_TEXT_KEYS).tree if parts else {}
    if not isinstance(keys, dict | None):
        raise InvalidInput("the frontmatter has no keys")
    keys = keys or {}
    body = (parts.body if parts else text).strip()
    statement = _text(keys, "description") or _first_line(body)
    if not statement:
        raise InvalidInput("has neither a description nor a line of text")
    name = _text(keys, "name") or _text(keys, "title")
    word = _type_word(keys)
    type_ = word if word in {one.name for one in known_types()} else _TYPES.get(word, "preference" if word else "fact")
    unknown = {"type": word} if word not in ("", type_, *_TYPES) else {}
    return Memory(
        id=_id(place),
        statement=statement,
        type=type_,
        name=slug(name) if name else "",
        context=body if body != statement else "",
        tags=_tags(keys.get("tags")),
        created=_time(keys),
        confidence=unit_number("confidence", keys.get("confidence", CONFIDENCE)),
        metadata={**({"title": name} if name else {}), **unknown, **_unknown_keys(keys)},
    )


def _id(place: str) -> str:
    """The id of a note: its path, or a digest if that is very long or cannot be shown."""
    plain = place.isprintable() and len(place) <= _LONGEST_PLACE
    return place if plain else hashlib.sha256(place.encode("utf-8", "surrogatepass")).hexdigest()


def _type_word(keys: Mapping[str, Any]) -> str:
    """The note's word for its type, or ""."""
    block = keys.get("metadata")
    nested = block if isinstance(block, Mapping) else {}
    return (_text(keys, "kind") or _text(keys, "type") or _text(nested, "type")).strip().lower()


def _first_line(body: str) -> str:
    lines = (line.strip() for line in body.split("\n"))
    return next((_MARK.sub("", line, count=1) for line in lines if line and not _HEADING.match(line)), "")


def _text(keys: Mapping[str, Any], key: str) -> str:
    value = keys.get(key)
    return " ".join(value.split()) if isinstance(value, str) else ""


def _tags(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        value = value.split(",")
    items = value if isinstance(value, list) else []
    return tuple(tag for item in items if isinstance(item, str) and (tag := item.strip().lstrip("#")))


def _time(keys: Mapping[str, Any]) -> Any:
    text = _text(keys, "created") or _text(keys, "date")
    try:
        return read_time(text) if text else None
    except FieldError:
        raise InvalidInput(f"created must be a date such as 2026-01-31, is {text!r:.60}") from None


def _unknown_keys(keys: Mapping[str, Any]) -> dict[str, Any]:
    """Unknown keys, kept as they are; those of a `metadata:` block are merged in."""
    block = keys.get("metadata")
    nested = {key: value for key, value in block.items() if key != "type"} if isinstance(block, Mapping) else {}
    return plain_mapping({**nested, **{key: value for key, value in keys.items() if key not in _KNOWN}})


def _show_memory(memory: Memory) -> Memory:
    """The memory itself: notes are only read, and represent their fields exactly."""
    return memory
