"""Tokens spent per day: counted by every call, checked before the next."""

import os
from collections import Counter
from datetime import date
from pathlib import Path
from typing import Protocol

from engram.disk import DIRECTORY_MODE, open_plain, read_bytes
from engram.model.errors import ModelUnavailable
from engram.model.forks import ForkedLock


class SpendBook(Protocol):
    """Counts the tokens of each day; a store is one, shared by every process."""

    def tokens_spent(self, day: date) -> int:
        """Tokens of a day, of every process that shares the book."""

    def spend_tokens(self, day: date, tokens: int) -> None:
        """Count tokens on a day; a negative number takes back what was reserved and not needed."""


class SpendCount:
    """A book in memory, for one process."""

    def __init__(self) -> None:
        self._days: Counter[date] = Counter()
        self._turn = ForkedLock()

    def tokens_spent(self, day: date) -> int:
        """Tokens of a day."""
        return self._days[day]

    def spend_tokens(self, day: date, tokens: int) -> None:
        """Count tokens on a day."""
        with self._turn:
            self._days[day] += tokens


class SpendFolder:
    """A book in files, one per day, a number per line; any number of processes append to it.

    A line is one write to a file opened for appending, so no lock is needed. A line torn by a crash counts for nothing.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def tokens_spent(self, day: date) -> int:
        """Tokens of a day, of every process."""
        try:
            lines = read_bytes(self._file(day)).decode("ascii", "replace").splitlines()
        except FileNotFoundError:
            return 0
        except OSError as error:
            raise self._unusable(error) from error
        return max(0, sum(int(line) for line in lines if line.removeprefix("-").isdecimal()))

    def spend_tokens(self, day: date, tokens: int) -> None:
        """Count tokens on a day."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=DIRECTORY_MODE)
            handle = open_plain(self._file(day), os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            try:
                # It starts with a line break, so that a line torn by a crash does not run into it.
                os.write(handle, f"\n{tokens}\n".encode())
            finally:
                os.close(handle)
        except OSError as error:
            raise self._unusable(error) from error

    def _file(self, day: date) -> Path:
        return self._folder / f"{day.isoformat()}.txt"

    def _unusable(self, error: OSError) -> ModelUnavailable:
        return ModelUnavailable(
            f"the tokens spent cannot be recorded in {self._folder} ({error.strerror}), so the model is not used; "
            "make the folder writable"
        )
