"""The formats that `engram import` reads: how each is recognised, and which module of `dialects/` reads it."""

from collections.abc import Callable, Mapping
from pathlib import Path

from engram.dialects.source import ImportSource, Projection, called, is_origin, origin_of_path, without_origin
from engram.model.errors import InvalidInput, NotFound
from engram.model.lazy import dataclass, field

__all__ = ["FORMATS", "ImportSource", "called", "is_origin", "read", "without_origin"]


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """What a caller may ask of a reader."""

    packs: bool = False
    mapping: Mapping[str, str] = field(default_factory=dict)
    """A field of a memory → the key or column that holds it."""


@dataclass(frozen=True, slots=True)
class ImportFormat:
    """One format: its name, what it is, whether a path looks like it, and its reader."""

    name: str
    what: str
    detect: Callable[[Path], bool]
    read: Callable[[Path, ReadOptions], ImportSource]


def read(
    path: Path, *, packs: bool = False, format_: str = "", mapping: Mapping[str, str] | None = None
) -> ImportSource:
    """Read a path; single bad records and files are named, not fatal. Raises `NotFound`, `InvalidInput` and `StoreError`."""
    if format_ and format_ not in FORMATS:
        raise InvalidInput(f"Unknown format {format_!r}; choose {', '.join(FORMATS)}, or leave it out")
    if not path.exists():
        raise NotFound(f"{path} does not exist")
    options = ReadOptions(packs, mapping or {})
    chosen = FORMATS[format_] if format_ else next(one for one in FORMATS.values() if one.detect(path))
    return chosen.read(path, options)


# -- PLUR


def _is_plur(path: Path) -> bool:
    return (path / "engrams.yaml").is_file() or path.name == "engrams.yaml"


def _plur(path: Path, options: ReadOptions) -> ImportSource:
    from engram.dialects.plur import read_plur

    found = read_plur(path, packs=options.packs)
    origin = origin_of_path("plur", path.parent if path.is_file() else path)
    return ImportSource(list(found.memories.items()), found.quarantined, found.not_read, origin, whole=True)


# -- memory.v1


def _is_memory_v1(path: Path) -> bool:
    from engram.dialects import memory_v1

    return memory_v1.is_memory_v1(path)


def _memory_v1(path: Path, _: ReadOptions) -> ImportSource:
    from engram.dialects import memory_v1
    from engram.gates.trust import kind_of, tier_of

    source = memory_v1.read_directory(path)
    source.projection = Projection(memory_v1.STATED, lambda memory: memory_v1.shown(memory, kind_of, tier_of))
    return source


# -- spec 5's notes


def _is_notes(path: Path) -> bool:
    from engram.dialects.notes import is_notes

    return is_notes(path)


def _notes(path: Path, _: ReadOptions) -> ImportSource:
    from engram.dialects import notes

    source = notes.read_notes(path)
    source.projection = Projection(notes.STATED, notes.shown)
    return source


# -- Engram's own


def _records(path: Path, _: ReadOptions) -> ImportSource:
    from engram.dialects.record_files import read_record_files

    return read_record_files(path)


def _anything(_: Path) -> bool:
    return True


FORMATS: dict[str, ImportFormat] = {
    one.name: one
    for one in (
        ImportFormat("plur", "a PLUR directory, usually ~/.plur", _is_plur, _plur),
        ImportFormat("memory.v1", "memory.md and memory-log.md", _is_memory_v1, _memory_v1),
        ImportFormat("notes", "a directory of notes: facts/DATE/…, corrections/, procedures/, …", _is_notes, _notes),
        ImportFormat("engram", "engram YAML files", _anything, _records),
        ImportFormat("json", "JSON, or JSON lines", _anything, _records),
    )
}
"""Every format by name, in the order in which a path is tried."""
