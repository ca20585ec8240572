"""Which memories a file has, by the index, and which it may have; splitting a file with several of them."""

import glob
import os
from collections.abc import Iterable
from pathlib import Path

from engram.model.memory import Memory
from engram.store.files.reconcile.context import IndexContext
from engram.store.files.reconcile.index_records import note_file, note_place, place_of
from engram.store.records import decode_record
from engram.store.sqlite.writer import DocumentWriter


def id_problem(context: IndexContext, stored: str, memory: Memory, seen: set[str]) -> str:
    """Why a memory with this id may not be in this file; "" if it may. `seen` are the ids of the file so far."""
    if memory.id in seen:
        return f"id {memory.id} occurs twice in this file; the first one counts"
    if context.index.db.execute("SELECT 1 FROM tombstones WHERE id = ?", (memory.id,)).fetchone():
        return f"{memory.id} was purged and cannot come back; give it a new id or remove the file"
    place = place_of(context.index, memory.id)
    if place and place != stored and context.path(place).exists():
        return f"id {memory.id} is already taken by {place}; give this one another id or remove it"
    return ""


def retire_missing(context: IndexContext, stored: str, present: set[str]) -> list[Memory]:
    """Memories that were in a file before and are no longer, as retired."""
    rows = context.index.db.execute("SELECT id FROM places WHERE path = ?", (stored,)).fetchall()
    gone = [context.index.one("by_ref", memory_id) for (memory_id,) in rows if memory_id not in present]
    return [decode_record(row[2]).replace(status="retired") for row in gone if row]


def drop_memories(context: IndexContext, writer: DocumentWriter, gone: Iterable[Memory]) -> None:
    """Remove memories from the index, with their places; inside a transaction."""
    for memory in gone:
        writer.delete(memory.id)
        note_place(context.index, memory.id, "")


def keep_original(path: Path) -> None:
    """Give a file that is about to be split a second name."""
    number = 1
    while True:
        try:
            os.link(path, path.with_name(f"{path.name}.orig{f'-{number}' if number > 1 else ''}"))
            return
        except FileExistsError:
            if is_split(path):
                return
            number += 1


def is_split(path: Path) -> bool:
    """Whether a file was split into one file per memory and still has its first name."""
    originals = path.parent.glob(f"{glob.escape(path.name)}.orig*")
    return any(path.exists() and original.samefile(path) for original in originals)


def drop_split(context: IndexContext, stored: str) -> None:
    """Remove the first name of a split file; the second keeps its content."""
    context.safe_path(stored).unlink(missing_ok=True)
    with context.index.writing():
        note_file(context.index, stored, None)
