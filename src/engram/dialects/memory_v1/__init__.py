"""Spec 4's memory.v1: `memory.md` and `memory-log.md`."""

from engram.dialects.memory_v1.memory_files import (
    CURATED,
    ID,
    LARGEST_NUMBER,
    LOG,
    STATED_FIELDS,
    MemoryItem,
    as_exported,
    dump,
    has_status,
    is_memory_v1,
    load,
    number_in,
    read_directory,
    refuse_overwriting,
)

__all__ = [
    "CURATED",
    "ID",
    "LARGEST_NUMBER",
    "LOG",
    "STATED_FIELDS",
    "MemoryItem",
    "as_exported",
    "dump",
    "has_status",
    "is_memory_v1",
    "load",
    "number_in",
    "read_directory",
    "refuse_overwriting",
]  # fmt: skip
