"""What a crash leaves in the place of a memory's file, or beside it."""

import os
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


class Leftovers:
    """The temporary files of a crash; each folder is listed once."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._listed: dict[Path, list[str]] = {}

    def clear(self, path: Path, spellings: Sequence[bytes]) -> None:
        """Remove those of a memory's file; one that holds what a person saved meanwhile takes its place again."""
        for name in self._in(path.parent):
            if name.startswith(f".{path.name}."):
                self._clear(path.parent / name, path, spellings)

    def _in(self, folder: Path) -> list[str]:
        if folder not in self._listed:
            try:
                names = os.listdir(folder)
            except OSError:
                names = []
            self._listed[folder] = [name for name in names if name.startswith(".") and name.endswith(".tmp")]
        return self._listed[folder]

    def _clear(self, leftover: Path, path: Path, spellings: Sequence[bytes]) -> None:
        try:
            data = read_bytes(leftover)
        except OSError:
            return  # no plain file: none of ours
        if is_torn(data, spellings) or data in spellings:
            leftover.unlink()
            return
        try:
            memories.parse(data, path)
            leftover.replace(path)
        except EngramError as error:
            keep_aside(path, data, self._home.quarantine, str(error))
            leftover.unlink()
