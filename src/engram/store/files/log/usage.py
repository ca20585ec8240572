"""The usage log: one line per use of memories, appended without a lock and without fsync, and its table in the index.

A position is one number, year and month times 10^12 plus a byte offset, so positions of all months compare as integers.
"""

import errno
import json
import os
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engram.disk import DIRECTORY_MODE, FILE_MODE, MALFORMED, json_line, open_plain, reading, whole_lines
from engram.model.errors import StoreReadOnly
from engram.model.lazy import replace
from engram.model.usage import Use
from engram.store.files.log.journal import is_month

if TYPE_CHECKING:
    from engram.store.files.reconcile.context import StoreContext

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


_COLUMNS = "u.kind, u.id, u.at, u.session, u.signal, u.position"


def index_uses(context: "StoreContext") -> None:
    """Index new uses. SQLite's own lock is enough, and a read-only home has no other."""
    end, known = context.usage.end(), int(context.index.get("usage") or 0)
    if end <= known:
        return
    with context.index.writing():
        for use in context.usage.read(int(context.index.get("usage") or 0)):
            for memory_id in use.ids:
                context.index.db.execute(
                    "INSERT OR IGNORE INTO uses (position, id, kind, signal, session, at) SELECT ?, ?, ?, ?, ?, ? "
                    "WHERE NOT EXISTS (SELECT 1 FROM tombstones WHERE id = ?)",
                    (use.position, memory_id, use.kind, use.signal, use.session, use.at.timestamp(), memory_id),
                )
        context.index.set("usage", end)


def uses_of(context: "StoreContext", memory_ids: Iterable[str]) -> list[Use]:
    """Every use of these memories, oldest first."""
    return _select(context, "FROM json_each(?) j CROSS JOIN uses u ON u.id = j.value", json.dumps(list(memory_ids)))


def uses_in(context: "StoreContext", session: str) -> list[Use]:
    """Every use in a session."""
    return _select(context, "FROM uses u WHERE u.session = ?", session)


def used_since(context: "StoreContext", position: int) -> list[str]:
    """Ids of memories used after a position."""
    index_uses(context)
    rows = context.index.db.execute("SELECT DISTINCT id FROM uses WHERE position >= ?", (position,))
    return [row[0] for row in rows]


def last_use(context: "StoreContext", kind: str) -> Use | None:
    """The newest use of a kind, with all its ids."""
    found = _select(context, "FROM uses u WHERE u.position = (SELECT max(position) FROM uses WHERE kind = ?)", kind)
    return replace(found[0], ids=tuple(use.ids[0] for use in found)) if found else None


def _select(context: "StoreContext", clause: str, value: str) -> list[Use]:
    index_uses(context)
    rows = context.index.db.execute(f"SELECT {_COLUMNS} {clause} ORDER BY u.position", (value,))
    return [_use(row) for row in rows]


def _use(row: tuple[Any, ...]) -> Use:
    kind, memory_id, at, session, signal, position = row
    return Use(kind, (memory_id,), datetime.fromtimestamp(at, UTC), session, signal, position)
