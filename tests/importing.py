"""Imports into a client's store, as `engram import` does it."""

from pathlib import Path

from engram import Engram
from engram.capture.import_known import ImportReport
from engram.capture.importer import Importer
from engram.dialects.source import ImportSource
from engram.model.memory import Memory


def imported(
    mem: Engram, source: ImportSource, name: str, *, by_person: bool = False, trusted: bool = False
) -> ImportReport:
    importer = Importer(mem.store, mem.upkeep.clock, mem.scope_here(), name, by_person, trusted=trusted)
    return importer.run(source, lambda *_: None)


def imported_path(mem: Engram, path: Path, *, format_: str = "", trusted: bool = False, **mapping: str) -> ImportReport:
    """Import a path, as a person does; the format is recognised unless it is given."""
    return mem.import_memories(path, format=format_, mapping=mapping, trusted=trusted, actor="human")


def everything(mem: Engram) -> list[Memory]:
    """Every memory, whatever became of it."""
    return mem.list(status="any", limit=None, scope="everywhere")


def with_words(mem: Engram, statement: str) -> Memory:
    """The one memory that says this."""
    (found,) = [memory for memory in everything(mem) if memory.statement == statement]
    return found
