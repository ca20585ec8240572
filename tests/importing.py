"""Imports into a client's store, as `engram import` does it."""

from engram import Engram
from engram.capture.import_source import ImportSource
from engram.capture.importer import Imported, Importer


def imported(
    mem: Engram, source: ImportSource, name: str, *, by_person: bool = False, trusted: bool = False
) -> Imported:
    importer = Importer(mem.store, mem.upkeep.clock, mem.scope_here(), name, by_person, trusted=trusted)
    return importer.take(source, lambda *_: None)
