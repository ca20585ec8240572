"""How many tokens a day has cost: counted by every call, asked before the next."""

import os
import threading
from collections import Counter
from datetime import date
from pathlib import Path
from typing import Protocol

from engram.disk import DIRECTORY_MODE, open_plain, read_bytes
from engram.model.errors import ModelUnavailable


class SpendBook(Protocol):
    """Keeps the tokens of each day. `add` may take back what was set aside and not needed."""

    def spent(self, day: date) -> int:
        """Tokens of a day, of every process that shares the book."""

    def add(self, day: date, tokens: int) -> None:
        """Count tokens on a day; a negative number takes some back."""


class SpendCount:
    """A book that lasts as long as its process."""

    def __init__(self) -> None:
        self._days: Counter[date] = Counter()
        self._turn = threading.Lock()

    def spent(self, day: date) -> int:
        """Tokens of a day."""
        return self._days[day]

    def add(self, day: date, tokens: int) -> None:
        """Count tokens on a day."""
        with self._turn:
            self._days[day] += tokens


class Counting(Protocol):
    """What counts tokens for every process that shares a store."""

    def tokens_spent(self, day: date) -> int:
        """Tokens of a day."""

    def spend_tokens(self, day: date, tokens: int) -> None:
        """Count tokens on a day."""


class StoreBook:
    """A book kept by a store."""

    def __init__(self, store: Counting) -> None:
        self._store = store

    def spent(self, day: date) -> int:
        """Tokens of a day, of every process."""
        return self._store.tokens_spent(day)

    def add(self, day: date, tokens: int) -> None:
        """Count tokens on a day."""
        self._store.spend_tokens(day, tokens)


class SpendFolder:
    """A book of files, one per day, a number per line; any number of processes append to it.

    A line is one write to a file opened for appending, so no lock is needed. A line torn by a crash counts for nothing.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def spent(self, day: date) -> int:
        """Tokens of a day, of every process."""
        try:
            lines = read_bytes(self._file(day)).decode("ascii", "replace").splitlines()
        except FileNotFoundError:
            return 0
        except OSError as error:
            raise self._unusable(error) from error
        return max(0, sum(int(line) for line in lines if line.removeprefix("-").isdecimal()))

    def add(self, day: date, tokens: int) -> None:
        """Count tokens on a day."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=DIRECTORY_MODE)
            handle = open_plain(self._file(day), os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            try:
                # Begun with a line break of its own: what a crash tore before it does not run into it.
                os.write(handle, f"\n{tokens}\n".encode())
            finally:
                os.close(handle)
        except OSError as error:
            raise self._unusable(error) from error

    def _file(self, day: date) -> Path:
        return self._folder / f"{day.isoformat()}.txt"

    def _unusable(self, error: OSError) -> ModelUnavailable:
        return ModelUnavailable(
            f"the tokens spent cannot be kept in {self._folder} ({error.strerror}), so the model is not asked; "
            "make the folder writable"
        )
