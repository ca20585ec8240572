"""Temporary files that killed processes left in a store.

Not those next to memory files: `file_repair` compares these with what a person saved.
"""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from engram.disk import find_temporary, remove_leftovers
from engram.store.home import Home


def remove_home_leftovers(home: Home) -> None:
    """Remove what killed processes left in the folders of a store; what a running process writes stays."""
    for folder in _folders(home):
        remove_leftovers(folder)


def remaining_leftovers(home: Home) -> list[str]:
    """A line for each temporary file that was not removed, because its writer may still be running."""
    return [
        f"{path}: another process, maybe on another machine, may be writing it; purge again when it is gone"
        for folder in _folders(home)
        for path in find_temporary(folder)
    ]


def _folders(home: Home) -> Iterator[Path]:
    """The folders of a store that have its small files and logs."""
    yield from (home.root, home.journal, home.usage, home.ledger, home.tasks, home.quarantine, home.state)
    with suppress(OSError), os.scandir(home.state) as entries:
        yield from [Path(entry.path) for entry in entries if entry.is_dir(follow_symlinks=False)]
