"""The formats that `engram import` reads: how each is recognised, and which module of `dialects/` reads it.
Files in a folder that an import does not read are reported, so that none is left out silently.
"""

import os
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from engram.dialects.source import ImportSource, Projection, origin_of_path
from engram.model.errors import InvalidInput, NotFound
from engram.model.lazy import dataclass, field
from engram.model.memory import Memory
from engram.text.display import format_count

MAX_NAMED_KINDS = 8
"""Kinds of files that are listed; the others are only counted."""
MAX_NAMES_PER_KIND = 3
"""Names per kind."""


def unread_files(folder: Path, is_read: Callable[[Path], bool]) -> list[str]:
    """The unread files in a folder and below it, by kind, each with the number of files and the first few names."""
    kinds: defaultdict[str, list[str]] = defaultdict(list)
    for file in _visible_files(folder):
        if not is_read(file):
            kinds[file.suffix.lower()].append(file.relative_to(folder).as_posix())
    ordered = sorted(kinds.items(), key=lambda kind: (-len(kind[1]), kind[0]))
    lines = [_describe_kind(suffix, sorted(names)) for suffix, names in ordered[:MAX_NAMED_KINDS]]
    rest = sum(len(names) for _, names in ordered[MAX_NAMED_KINDS:])
    return [*lines, f"{format_count(rest, 'file')} of other kinds"] if rest else lines


def _visible_files(folder: Path) -> Iterator[Path]:
    """The files in a folder and below it, without hidden ones; links to folders are not followed."""
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        yield from (Path(place, name) for name in names if not name.startswith("."))


def _describe_kind(suffix: str, names: list[str]) -> str:
    kind = f"{suffix} file" if suffix else "file without a suffix"
    plural = "" if suffix else "files without a suffix"
    more = ", …" if len(names) > MAX_NAMES_PER_KIND else ""
    return f"{format_count(len(names), kind, plural)}: {', '.join(names[:MAX_NAMES_PER_KIND])}{more}"


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """The options that a caller may give a reader."""

    packs: bool = False
    mapping: Mapping[str, str] = field(default_factory=dict)
    """A field of a memory → the key or column that holds it."""


@dataclass(frozen=True, slots=True)
class ImportFormat:
    """One format: its name, whether a path looks like it, and its reader."""

    name: str
    detect: Callable[[Path], bool]
    read: Callable[[Path, ReadOptions], ImportSource]


def read(
    path: Path, *, packs: bool = False, format_: str = "", mapping: Mapping[str, str] | None = None
) -> ImportSource:
    """Read a path; bad records and files are reported and skipped.

    Raises `NotFound`, `InvalidInput` and `StoreError`.
    """
    if format_ and format_ not in FORMATS:
        raise InvalidInput(f"Unknown format {format_!r}; choose {', '.join((*FORMATS, *CHATS))}, or leave it out")
    if not path.exists():
        raise NotFound(f"{path} does not exist")
    name = format_ or detect_format(path)
    if mapping and name not in _MAPPED:
        name = "json" if not format_ and _has_records(path) else name
        if name not in _MAPPED:
            raise InvalidInput(f"--map reads tables (CSV), JSON and YAML; {name} names its own fields")
    return FORMATS[name].read(path, ReadOptions(packs, mapping or {}))


def detect_format(path: Path) -> str:
    """The format of a path, by name. Raises `InvalidInput` if it has none."""
    found = next((one.name for one in FORMATS.values() if one.detect(path)), "")
    if not found:
        raise InvalidInput(f"No known format found in {path}; `engram import --help` lists them")
    return found


def is_chats(path: Path, format_: str) -> bool:
    """Whether a path contains chats, whose facts are harvested instead of imported."""
    from engram.capture.transcripts.chat_exports import is_chat_export

    return format_ in CHATS if format_ else path.suffix.lower() == ".zip" or is_chat_export(path)


# -- PLUR


def _is_plur(path: Path) -> bool:
    return (path / "engrams.yaml").is_file() or path.name == "engrams.yaml"


def _read_plur(path: Path, options: ReadOptions) -> ImportSource:
    from engram.dialects.plur import read_plur

    found = read_plur(path, packs=options.packs)
    origin = origin_of_path("plur", path.parent if path.is_file() else path)
    return ImportSource(list(found.memories.items()), found.quarantined, found.not_read, origin, whole=True)


# -- memory.v1


def _is_memory_v1(path: Path) -> bool:
    from engram.dialects import memory_v1

    return memory_v1.is_memory_v1(path)


def _read_memory_v1(path: Path, _: ReadOptions) -> ImportSource:
    from engram.dialects import memory_v1
    from engram.gates.trust import kind_of, tier_of

    source = memory_v1.read_directory(path)
    if path.is_dir():
        own = {path / memory_v1.CURATED, path / memory_v1.LOG}
        source.not_read += unread_files(path, lambda file: file in own)
    source.projection = Projection(
        memory_v1.STATED_FIELDS, lambda memory: memory_v1.as_exported(memory, kind_of, tier_of)
    )
    return source


# -- spec 3's feedback and facts


def _is_toml(path: Path) -> bool:
    from engram.dialects.feedback_toml import is_feedback_toml

    return is_feedback_toml(path)


def _read_toml(path: Path, _: ReadOptions) -> ImportSource:
    from engram.dialects.feedback_toml import read_feedback_toml
    from engram.gates.situation import situation_warnings

    source = read_feedback_toml(path)
    for place, memory in source.found:
        situation = memory.situation if isinstance(memory, Memory) else ""
        source.notices += [(place, warning) for warning in situation_warnings(situation)]
    return source


# -- spec 5's notes


def _is_notes(path: Path) -> bool:
    from engram.dialects.notes import is_notes

    return is_notes(path)


def _read_notes(path: Path, _: ReadOptions) -> ImportSource:
    from engram.dialects import notes

    source = notes.read_notes(path)
    source.not_read += _other_than_markdown(path)
    source.projection = Projection(notes.STATED_FIELDS, notes.as_exported)
    return source


# -- mem0


def _is_mem0(path: Path) -> bool:
    from engram.dialects.record_files import is_mem0

    return is_mem0(path)


def _read_mem0(path: Path, _: ReadOptions) -> ImportSource:
    from engram.dialects.record_files import read_mem0

    return read_mem0(path)


# -- tables


def _is_table(path: Path) -> bool:
    return path.suffix.lower() in (".csv", ".tsv") and path.is_file()


def _read_table(path: Path, options: ReadOptions) -> ImportSource:
    from engram.dialects.record_files import read_mapped

    return read_mapped(path, options.mapping)


# -- Engram's own


def _has_records(path: Path) -> bool:
    from engram.dialects.record_files import SUFFIXES, record_files

    return path.suffix.lower() in SUFFIXES if path.is_file() else any(True for _ in record_files(path))


def _read_records(path: Path, options: ReadOptions) -> ImportSource:
    from engram.dialects.record_files import SUFFIXES, read_record_files

    if options.mapping:
        return _read_table(path, options)
    source = read_record_files(path)
    if path.is_dir() and not (path / "store.json").is_file():  # the other contents of a store are not records
        if notes := _count_of_notes(path):
            source.not_read.append(f"{path.name}: {notes} Markdown files; `--format markdown` imports them")
        source.not_read += unread_files(path, lambda file: file.suffix.lower() in (*SUFFIXES, ".md"))
    return source


# -- Markdown notes


def _count_of_notes(path: Path) -> int:
    from engram.dialects.markdown_notes import markdown_files

    return sum(1 for _ in markdown_files(path, []))


def _is_markdown(path: Path) -> bool:
    from engram.agents.agent import instruction_file_names
    from engram.dialects.markdown_notes import has_notes

    return has_notes(path, instruction_file_names())


def _read_markdown(path: Path, _: ReadOptions) -> ImportSource:
    from engram.agents.agent import instruction_file_names
    from engram.dialects.markdown_notes import read_markdown_notes

    source = read_markdown_notes(path, instruction_file_names())
    source.not_read += _other_than_markdown(path)
    return source


def _other_than_markdown(path: Path) -> list[str]:
    return unread_files(path, lambda file: file.suffix.lower() == ".md") if path.is_dir() else []


FORMATS: dict[str, ImportFormat] = {
    one.name: one
    for one in (
        ImportFormat("plur", _is_plur, _read_plur),
        ImportFormat("memory.v1", _is_memory_v1, _read_memory_v1),
        ImportFormat("toml", _is_toml, _read_toml),
        ImportFormat("notes", _is_notes, _read_notes),
        ImportFormat("mem0", _is_mem0, _read_mem0),
        ImportFormat("csv", _is_table, _read_table),
        ImportFormat("engram", _has_records, _read_records),
        ImportFormat("json", _has_records, _read_records),
        ImportFormat("markdown", _is_markdown, _read_markdown),
    )
}
"""Every format by name, in the order in which they are tried."""
CHATS = ("chatgpt", "claude")
"""Exports of conversations; `Engram.import_chats` reads them."""
_MAPPED = ("csv", "engram", "json")
