"""The usage log: one line per use of memories, appended without a lock and without fsync.

A position is one number, year and month times 10^12 plus a byte offset, so positions of all months compare as integers.
"""

import errno
import json
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from engram.disk import DIRECTORY_MODE, FILE_MODE, MALFORMED, json_line, open_plain, reading, whole_lines
from engram.model.errors import StoreReadOnly
from engram.model.usage import Use
from engram.store.files.log.journal import is_month

_MONTH = 10**12


class Usage:
    """Appends and reads uses."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def append(self, use: Use) -> int:
        """Append one use; returns its position. One O_APPEND write, so lines of several processes never mix."""
        at = use.at.astimezone(UTC)
        fields = {"at": at.isoformat().replace("+00:00", "Z"), "kind": use.kind, "ids": list(use.ids)}
        if use.session:
            fields["session"] = use.session
        if use.signal:
            fields["signal"] = use.signal
        line = json_line(fields, "replace")
        try:
            # Months only move forward: nobody would look for a line in an older file.
            month = max([at.strftime("%Y-%m"), *self.months()[-1:]])
            return _month_base(month) + self._write(month, line)
        except OSError as error:
            raise StoreReadOnly(f"cannot record uses in {self._folder}: {error.strerror}") from error

    def _write(self, month: str, line: bytes) -> int:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        try:
            descriptor = open_plain(self._folder / f"{month}.jsonl", flags, FILE_MODE)
        except FileNotFoundError:
            self._folder.mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)
            descriptor = open_plain(self._folder / f"{month}.jsonl", flags, FILE_MODE)
        try:
            if os.write(descriptor, line) < len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return os.lseek(descriptor, 0, os.SEEK_CUR) - len(line)
        finally:
            os.close(descriptor)

    def months(self) -> list[str]:
        """Months with a file, oldest first."""
        try:
            with os.scandir(self._folder) as entries:
                return sorted(e.name[:-6] for e in entries if is_month(e.name) and e.is_file(follow_symlinks=False))
        except (FileNotFoundError, NotADirectoryError):
            return []

    def end(self) -> int:
        """The position after the last complete line; a line still being written is read later."""
        months = self.months()
        if not months:
            return 0
        return _month_base(months[-1]) + whole_lines(self._folder / f"{months[-1]}.jsonl")[1]

    def read(self, since: int = 0) -> Iterator[Use]:
        """Uses from a position on. A torn line (a crash, a full disk) is skipped."""
        for month in self.months():
            base = _month_base(month)
            if base + _MONTH <= since:
                continue
            yield from self._read_month(month, base, max(0, since - base))

    def _read_month(self, month: str, base: int, offset: int) -> Iterator[Use]:
        with reading(self._folder / f"{month}.jsonl") as file:
            file.seek(offset)
            for line in file:
                start, offset = offset, offset + len(line)
                use = _parse(line, base + start) if line.endswith(b"\n") and line.strip() else None
                if use is not None:
                    yield use


def after_month(month: str) -> int:
    """The position after every use of a month."""
    return _month_base(month) + _MONTH


def _month_base(month: str) -> int:
    return int(month.replace("-", "")) * _MONTH


def _parse(line: bytes, position: int) -> Use | None:
    # A line torn by a crash has no newline; the next one starts inside it.
    start = max(line.rfind(b'{"at":'), 0)
    position += start
    try:
        fields = json.loads(line[start:])
        return Use(
            kind=str(fields["kind"]),
            ids=tuple(str(i) for i in fields["ids"]),
            at=datetime.fromisoformat(fields["at"]),
            session=str(fields.get("session", "")),
            signal=str(fields.get("signal", "")),
            position=position,
        )
    except MALFORMED:
        return None
