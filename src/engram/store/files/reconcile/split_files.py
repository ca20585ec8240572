"""A file with several memories, split into one file for each; the original keeps a second name."""

import glob
import os
from pathlib import Path

from engram.store.files.reconcile.context import IndexContext
from engram.store.files.reconcile.index_records import note_file


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
    context.confined(stored).unlink(missing_ok=True)
    with context.index.writing():
        note_file(context.index, stored, None)
