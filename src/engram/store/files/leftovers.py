"""What a crash leaves in the place of a memory's file, or beside it."""

import glob
from collections.abc import Sequence
from pathlib import Path

from engram.model.errors import EngramError
from engram.store.files import memories
from engram.store.files.confinement import read_bytes
from engram.store.files.home import Home
from engram.store.files.journal import keep_aside


def is_torn(data: bytes, spellings: Sequence[bytes]) -> bool:
    """Whether a file's bytes are what a crash leaves of one of ours: nothing, blanks, or a beginning."""
    return not data.strip(b"\0 \r\n") or any(len(data) < len(s) and s.startswith(data) for s in spellings)


def clear_leftovers(home: Home, path: Path, spellings: Sequence[bytes]) -> None:
    """Remove temporary files of a crash; one that holds what a person saved meanwhile takes its place again."""
    for leftover in list(path.parent.glob(f".{glob.escape(path.name)}.*.tmp")):
        try:
            data = read_bytes(leftover)
        except OSError:
            continue  # no plain file: none of ours
        if is_torn(data, spellings) or data in spellings:
            leftover.unlink()
            continue
        try:
            memories.parse(data, path)
            leftover.replace(path)
        except EngramError as error:
            keep_aside(path, data, home.quarantine, str(error))
            leftover.unlink()
