"""Counting the steps that reach the disk, and dying at one of them."""

import os
import signal
import sqlite3
from collections.abc import Callable
from pathlib import PurePath
from typing import Any

from engram.store.files import memories

_CALLS = ("fsync", "link", "rename", "replace", "unlink", "remove", "ftruncate", "truncate", "pwrite", "mkdir")
_STATEMENTS = ("BEGIN IMMEDIATE", "COMMIT", "VACUUM", "PRAGMA wal_checkpoint", "INSERT INTO words (words) VALUES")

really_write = os.write


class Steps:
    """Counts from `begin` on; at the given step the process is killed, before the step or half-way through a write."""

    def __init__(self, fatal: int, *, torn: bool = False) -> None:
        self.fatal, self.torn = fatal, torn
        self.kinds: list[str] = []
        """What each step was, in order: the call, and which part of the store it changes."""
        self.counting = False

    @property
    def count(self) -> int:
        return len(self.kinds)

    def begin(self) -> None:
        self.counting = True

    def take(self, kind: str = "") -> bool:
        """One step more; says whether it is the last one."""
        if self.counting:
            self.kinds.append(kind)
        return self.counting and self.count == self.fatal

    def die(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def install(self) -> None:
        """Put a counter before every call that changes the disk."""
        for name in _CALLS:
            if not self.torn:
                setattr(os, name, self._before(getattr(os, name)))
        os.write = self._write
        if not self.torn:
            os.open = self._before(os.open, lambda _path, flags, *_, **__: bool(flags & os.O_CREAT))
            rename = memories._rename_call()
            if rename is not None:
                memories._rename_call = lambda: self._before(rename)  # type: ignore[assignment]
            self._watch_sqlite()

    def _before(self, call: Callable[..., Any], counts: Callable[..., bool] = lambda *_, **__: True) -> Any:
        def counted(*args: Any, **kwargs: Any) -> Any:
            if counts(*args, **kwargs) and self.take(f"{call.__name__} {_part(args[0])}"):
                self.die()
            return call(*args, **kwargs)

        return counted

    def _write(self, descriptor: int, data: Any) -> int:
        if self.take(f"write {_part(descriptor)}"):
            if self.torn:
                really_write(descriptor, bytes(data)[: len(data) // 2])
            self.die()
        return really_write(descriptor, data)

    def _watch_sqlite(self) -> None:
        steps, connect = self, sqlite3.connect

        class Watched(sqlite3.Connection):
            def execute(self, sql: str, *args: Any) -> sqlite3.Cursor:
                if sql.startswith(_STATEMENTS) and steps.take(sql):
                    steps.die()
                return super().execute(sql, *args)

        def connected(*args: Any, **kwargs: Any) -> sqlite3.Connection:
            return connect(*args, factory=Watched, **kwargs)

        sqlite3.connect = connected  # type: ignore[assignment]


def _part(target: Any) -> str:
    """The part of the store of a path or descriptor: the folder and the kind of file."""
    if isinstance(target, int):
        try:
            target = os.readlink(f"/proc/self/fd/{target}")
        except OSError:
            return ""
    if not isinstance(target, str | bytes | os.PathLike):
        return type(target).__name__
    path = PurePath(os.fsdecode(target))
    return f"{path.parent.name}/{path.suffix}"
