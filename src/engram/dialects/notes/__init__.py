"""Spec 5's directory of notes: one Markdown file per memory, below a folder for its category and its day."""

from engram.dialects.notes.note_files import (
    STATED_FIELDS,
    as_exported,
    is_notes,
    name_for,
    name_in,
    read_notes,
    refuse_overwriting,
    write_notes,
)

__all__ = [
    "STATED_FIELDS",
    "as_exported",
    "is_notes",
    "name_for",
    "name_in",
    "read_notes",
    "refuse_overwriting",
    "write_notes",
]
