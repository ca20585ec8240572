"""Every decision, one fsynced line each: the commit point, the audit trail and the basis of undo.

An entry is one JSON line `{"seq", "at", "op", "actor", "reason", "changes": [{"id", "after"}]}`. One line is one decision,
so a batch is complete or absent. Order is by `seq`, never by clock. Months only move forward: a clock set back keeps
writing to the newest file.
"""

import contextlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from engram.disk import (
    DIRECTORY_MODE,
    MALFORMED,
    UNREADABLE,
    append_durably,
    keep_aside,
    lines_backwards,
    reading,
    replace_file,
    set_aside,
    sync_path,
    to_json,
    torn_tail,
)
from engram.model.errors import InvalidInput, StoreCorrupt, StoreReadOnly
from engram.model.lazy import dataclass, field, lazy_pattern
from engram.store.home import memory_file

LAST_SEQ = 2**63 - 1
"""The highest possible decision number."""


@dataclass(frozen=True, slots=True)
class AfterImage:
    """One memory's new image; `after` is None if it was purged. `file` is its path, "" if it has none."""

    id: str
    after: Mapping[str, Any] | None
    file: str = ""
    text: str = field(default="", compare=False, repr=False)
    """`after` as JSON, if the caller has it already."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One decision."""

    seq: int
    at: datetime
    op: str
    actor: str
    reason: str
    changes: tuple[AfterImage, ...] = ()
    session: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)


class Position(NamedTuple):
    """A place between two lines of a log, as month and byte offset."""

    month: str = ""
    offset: int = 0


@dataclass(frozen=True, slots=True)
class JournalLine:
    """An entry with the positions where it starts and ends."""

    entry: Entry
    start: Position
    end: Position


class Journal:
    """Reads and appends decisions. The caller of `append` holds the writer lock."""

    def __init__(self, folder: Path, quarantine: Path) -> None:
        self._folder = folder
        self._quarantine = quarantine

    def months(self) -> list[str]:
        """The months that have a file, oldest first."""
        try:
            names = os.listdir(self._folder)
        except FileNotFoundError:
            return []
        return sorted(name[:-6] for name in names if is_month(name))

    def end(self) -> Position:
        """The position after the last byte."""
        months = self.months()
        if not months:
            return Position()
        return Position(months[-1], os.stat(f"{self._folder}/{months[-1]}.jsonl").st_size)

    def grew_since(self, known: Position) -> bool:
        """Whether anything may have been appended after `known`; one stat in the common case."""
        try:
            if known.month and os.stat(self.path(known.month)).st_size == known.offset:
                return self.months()[-1] != known.month
        except (OSError, IndexError):
            pass
        return self.end() != known

    def path(self, month: str) -> Path:
        """The file of a month."""
        return self._folder / f"{month}.jsonl"

    def append(self, entry: Entry, end: Position | None = None, *, durably: bool = True) -> JournalLine:
        """Write one line and fsync it. On failure the file is cut back and nothing has changed.

        `end` is the journal's end, if the caller knows it. An entry that changes nothing (an anchor) need not wait
        for the disk.
        """
        end = end or self.end()
        at = entry.at.astimezone(UTC)
        month = max(f"{at.year:04}-{at.month:02}", end.month)
        line = encode(entry)
        path = self.path(month)
        fresh = month != end.month
        try:
            if fresh:
                self._folder.mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)
            start = append_durably(path, line, sync=durably)
            if fresh and durably:
                sync_path(self._folder)
        except OSError as error:
            raise StoreReadOnly(f"cannot append to {path}: {error.strerror}; nothing was written") from error
        return JournalLine(entry, Position(month, start), Position(month, start + len(line)))

    def last_seq(self) -> int:
        """The number of the last complete entry, read from the journal itself."""
        for month in reversed(self.months()):
            for line in lines_backwards(self.path(month)):
                if (found := _SEQ.match(line)) is not None:
                    return int(found[1])
        return 0

    def backwards(self, session: str = "") -> Iterator[Entry]:
        """Every complete entry, newest first, or those of a session; unreadable lines are skipped."""
        marked = to_json(session).encode("utf-8", "replace")
        for month in reversed(self.months()):
            for line in lines_backwards(self.path(month)):
                if session and marked not in line:
                    continue
                with contextlib.suppress(*MALFORMED):
                    entry = decode(json.loads(line))
                    if not session or entry.session == session:
                        yield entry

    def cut(self, position: Position) -> None:
        """Remove what was appended from `position` on and never acknowledged. The caller holds the writer lock."""
        os.truncate(self.path(position.month), position.offset)

    def read(self, since: Position = Position()) -> Iterator[JournalLine]:  # noqa: B008 -- frozen
        """Entries from a position on, in order. A torn last line is left out; `quarantine_torn` moves it to quarantine."""
        for month in self.months():
            if month < since.month:
                continue
            offset = since.offset if month == since.month else 0
            yield from self._read_month(month, offset)

    def readable(self, problems: list[str]) -> Iterator[JournalLine]:
        """Every readable entry, in order; problems with other lines are added to `problems`."""
        for month in self.months():
            yield from self._read_month(month, 0, problems)

    def _read_month(self, month: str, offset: int, problems: list[str] | None = None) -> Iterator[JournalLine]:
        path = self.path(month)
        with reading(path) as file:
            file.seek(offset)
            for line in file:
                end = offset + len(line)
                if not line.endswith(b"\n"):
                    return
                if line.strip():
                    try:
                        yield JournalLine(
                            self._parse(line, path, offset), Position(month, offset), Position(month, end)
                        )
                    except StoreCorrupt as error:
                        if problems is None:
                            raise
                        problems.append(str(error))
                offset = end

    def _parse(self, line: bytes, path: Path, offset: int) -> Entry:
        try:
            return decode(json.loads(line))
        except MALFORMED as error:
            raise StoreCorrupt(
                f"{path}:{_line_at(path, offset)}: cannot read this line: {error}. Run `engram doctor --repair` to move it "
                "to quarantine"
            ) from None

    def at(self, position: Position) -> Entry:
        """The entry that starts at a position."""
        path = self.path(position.month)
        with reading(path) as file:
            file.seek(position.offset)
            return self._parse(file.readline(), path, position.offset)

    def has_entry(self, start: Position, end: int, seq: int) -> bool:
        """Whether an entry is still at this position; a purge, pruning or a restore moves it."""
        try:
            with reading(self.path(start.month)) as file:
                file.seek(start.offset)
                line = file.readline()
                return start.offset + len(line) == end and bool(json.loads(line)["seq"] == seq)
        except UNREADABLE:
            return False

    def quarantine_torn(self) -> list[str]:
        """Move a torn last line (a crash while appending) to quarantine. The caller holds the writer lock."""
        moved = []
        for month in self.months():
            torn = torn_tail(self.path(month))
            if torn is not None:
                moved.append(set_aside(self.path(month), torn, self._quarantine, "torn last line"))
        return moved

    def repair(self) -> list[str]:
        """Move every unreadable line to quarantine and keep the rest. The caller holds the writer lock."""
        moved = self.quarantine_torn()
        for month in self.months():
            path = self.path(month)
            good, bad = _sort_lines(path)
            if bad:
                keep_aside(path, b"".join(bad), self._quarantine, "unreadable lines")
                replace_file(path, b"".join(good))
                moved.append(f"{path}: {len(bad)} unreadable line(s), moved to quarantine")
        return moved


def encode(entry: Entry) -> bytes:
    """The line of an entry. Raises `InvalidInput` for what `decode` would reject: it must never be written."""
    try:
        checked_seq(entry.seq)
        for change in entry.changes:
            _checked_change(change.id, change.after, change.file)
    except ValueError as error:
        raise InvalidInput(f"this decision could not be read back: {error}; nothing was written") from None
    fields: dict[str, Any] = {
        "seq": entry.seq,
        "at": entry.at.astimezone(UTC).isoformat().replace("+00:00", "Z"),
        "op": entry.op,
        "actor": entry.actor,
    }
    if entry.reason:
        fields["reason"] = entry.reason
    if entry.session:
        fields["session"] = entry.session
    fields.update(entry.extra)
    changes = ",".join(map(_encode_change, entry.changes))
    return f'{to_json(fields)[:-1]},"changes":[{changes}]}}\n'.encode("utf-8", "surrogatepass")


def _encode_change(change: AfterImage) -> str:
    fields = {"id": change.id, "file": change.file} if change.file else {"id": change.id}
    return f'{to_json(fields)[:-1]},"after":{change.text or to_json(change.after)}}}'


_KNOWN = frozenset({"seq", "at", "op", "actor", "reason", "session", "changes"})


def decode(fields: Mapping[str, Any]) -> Entry:
    """The entry of a parsed line."""
    return Entry(
        seq=checked_seq(fields["seq"]),
        at=datetime.fromisoformat(fields["at"]),
        op=str(fields["op"]),
        actor=str(fields.get("actor", "")),
        reason=str(fields.get("reason", "")),
        session=str(fields.get("session", "")),
        changes=tuple(map(_decode_change, fields["changes"])),
        extra={key: value for key, value in fields.items() if key not in _KNOWN},
    )


def checked_seq(seq: object) -> int:
    """Check a decision number; the index stores it in 64 bits."""
    if type(seq) is not int or not 0 < seq <= LAST_SEQ:
        raise ValueError(f"its number must be from 1 to {LAST_SEQ}, is {seq!r:.40}")
    return seq


def _decode_change(fields: Mapping[str, Any]) -> AfterImage:
    return _checked_change(fields["id"], fields["after"], fields.get("file", ""))


def _checked_change(memory_id: Any, after: Any, file: Any) -> AfterImage:
    if not isinstance(memory_id, str) or not memory_id:
        raise ValueError(f"the id of a memory must be text, is {memory_id!r:.40}")
    if after is not None and not isinstance(after, Mapping):
        raise ValueError(f"the image of {memory_id} must be a record, is {after!r:.40}")
    return AfterImage(memory_id, after, memory_file(file))


def _line_at(path: Path, offset: int) -> int:
    with reading(path) as file:
        return file.read(offset).count(b"\n") + 1


_MONTH_FILE = lazy_pattern(r"\d{4}-\d{2}\.jsonl")
_SEQ = re.compile(rb'\{"seq":(\d+)')


def is_month(name: str) -> bool:
    """Whether a file name is that of a monthly log."""
    return _MONTH_FILE.fullmatch(name) is not None


def _sort_lines(path: Path) -> tuple[list[bytes], list[bytes]]:
    good: list[bytes] = []
    bad: list[bytes] = []
    with reading(path) as file:
        for line in file:
            try:
                decode(json.loads(line))
                good.append(line)
            except MALFORMED:
                (bad if line.strip() else good).append(line)
    return good, bad
