"""Token use per day: counted by every call, and checked before the next."""

import os
from collections import Counter
from datetime import date
from pathlib import Path
from typing import Protocol

from engram.disk import DIRECTORY_MODE, open_plain, read_bytes
from engram.model.errors import ModelUnavailable
from engram.model.forks import ForkedLock


class SpendBook(Protocol):
    """Counts the tokens of each day; a store is a spend book that all processes share."""

    def tokens_spent(self, day: date) -> int:
        """Tokens used on a day by all processes that share the book."""

    def spend_tokens(self, day: date, tokens: int) -> None:
        """Add tokens to a day; a negative number returns reserved tokens that were not needed."""


class SpendCount:
    """A spend book in memory, for one process."""

    def __init__(self) -> None:
        self._days: Counter[date] = Counter()
        self._turn = ForkedLock()

    def tokens_spent(self, day: date) -> int:
        """Tokens used on a day."""
        return self._days[day]

    def spend_tokens(self, day: date, tokens: int) -> None:
        """Add tokens to a day."""
        with self._turn:
            self._days[day] += tokens


class SpendFolder:
    """A spend book in files, one per day with a number per line; any number of processes append to it.

    Each line is written at once to a file opened for appending, so no lock is needed. A line torn by a crash is
    ignored.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def tokens_spent(self, day: date) -> int:
        """Tokens used on a day by all processes."""
        try:
            lines = read_bytes(self._file(day)).decode("ascii", "replace").splitlines()
        except FileNotFoundError:
            return 0
        except OSError as error:
            raise self._unusable(error) from error
        return max(0, sum(int(line) for line in lines if line.removeprefix("-").isdecimal()))

    def spend_tokens(self, day: date, tokens: int) -> None:
        """Add tokens to a day."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=DIRECTORY_MODE)
            handle = open_plain(self._file(day), os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            try:
                # The leading line break keeps a line torn by a crash from running into this one.
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
