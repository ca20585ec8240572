"""The journal: every decision as one fsynced line. It is the commit point, the audit trail and the basis of undo.

Also contains the mark up to which memory files are on disk, and the usage log, which needs no lock and no fsync.
"""

import contextlib
import errno
import json
import os
import re
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from engram.disk import (
    DIRECTORY_MODE,
    FILE_MODE,
    MALFORMED,
    UNREADABLE,
    append_durably,
    boot_id,
    json_line,
    keep_aside,
    lines_backwards,
    open_plain,
    read_bytes,
    reading,
    replace_file,
    set_aside,
    sync_path,
    to_json,
    torn_tail,
    whole_lines,
)
from engram.model.errors import InvalidInput, StoreCorrupt, StoreReadOnly
from engram.model.lazy import dataclass, field, lazy_pattern
from engram.model.records import Use
from engram.store.home import Home, memory_file

LAST_SEQ = 2**63 - 1
"""The highest possible decision number."""


@dataclass(frozen=True, slots=True)
class AfterImage:
    """One memory's new image; `after` is None if it was purged. `file` is its path, "" if it has none."""

    id: str
    after: Mapping[str, Any] | None
    file: str = ""
    text: str = field(default="", compare=False, repr=False)
    """`after` as JSON, if the caller already has it."""


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
    """Reads and appends decisions. The caller of `append` holds the writer lock.

    An entry is one JSON line `{"seq", "at", "op", "actor", "reason", "changes": [{"id", "after"}]}`. One line is one
    decision, so a batch is complete or absent. Order is by `seq`, never by clock. Months only move forward: a clock set
    back keeps writing to the newest file.
    """

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
        """Whether data may have been appended after `known`; usually costs one stat."""
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
        """Append one line and fsync it. On failure the file is truncated again and nothing has changed.

        `end` is the journal's end, if the caller knows it. An entry that changes nothing (an anchor) need not wait for
        the disk.
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
                if (found := SEQ_LINE.match(line)) is not None:
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
        """Remove unacknowledged lines from `position` on. The caller holds the writer lock."""
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
    """The line of an entry. Raises `InvalidInput` if `decode` would reject it, because it must never be written."""
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
SEQ_LINE = re.compile(rb'\{"seq":(\d+)')


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


MARK_FILE = "durable.json"
DURABLE_AFTER_SECONDS = 60.0
"""Seconds after which a later decision makes a file durable; by then the system has usually written it."""


@dataclass(frozen=True, slots=True)
class Mark:
    """What is known to be on disk. `boot` is the machine's boot id at that time, or "" if it has none.

    A decision is committed by the journal's fsync; its files are written after that and reach the disk whenever the
    system writes them. Until then a power loss may undo them, and the result looks like a person's edit: a missing
    file, or one with its earlier content. This mark distinguishes the two, and repair acts on it.
    """

    seq: int = 0
    boot: str = ""
    unbroken_since: int = 0
    """No decision after this number is missing; earlier ones may have been pruned."""
    repaired: tuple[str, ...] = ()
    repaired_at: str = ""
    """Files that the last power loss damaged, and when they were repaired."""


def read_mark(home: Home) -> Mark | None:
    """The store's mark; None if an earlier Engram wrote the store, or if the mark cannot be read."""
    try:
        fields = json.loads(read_bytes(home.state / MARK_FILE))
        repaired = fields.get("repaired") or {}
        return Mark(
            seq=_whole_number(fields["seq"]),
            boot=str(fields["boot"]),
            unbroken_since=_whole_number(fields["unbroken_since"]),
            repaired=tuple(str(file) for file in repaired.get("files", ())),
            repaired_at=str(repaired.get("at", "")),
        )
    except UNREADABLE:
        return None


def _whole_number(given: Any) -> int:
    """A valid decision number with room for later ones."""
    number = int(given)
    if not 0 <= number <= LAST_SEQ // 2:
        raise ValueError(f"not a decision number:  {given!r:.40}")
    return number


def write_mark(home: Home, mark: Mark) -> None:
    """Replace the mark durably."""
    fields: dict[str, Any] = {"seq": mark.seq, "boot": mark.boot, "unbroken_since": mark.unbroken_since}
    if mark.repaired:
        fields["repaired"] = {"at": mark.repaired_at, "files": list(mark.repaired)}
    try:
        home.state.mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)
        replace_file(home.state / MARK_FILE, json.dumps(fields, ensure_ascii=False).encode("utf-8", "replace") + b"\n")
    except OSError as error:
        raise StoreReadOnly(f"cannot write {home.state / MARK_FILE}: {error.strerror}") from error


@dataclass(slots=True)
class Durability:
    """A process's knowledge about durability."""

    boot: str = field(default_factory=lambda: boot_id())
    is_checked: bool = False
    """Whether the files were checked since the machine started."""
    unrepaired: set[str] = field(default_factory=set)
    """Files damaged by a power loss that could not be repaired yet; they are not edits."""
    floor: int = 0
    """New decisions get higher numbers than this, so that numbers lost at the journal's end stay missing."""
    waiting: int = 0
    """Files this process has written since it last synced."""
    _aging: tuple[float, int, int] | None = None
    """A time, the newest decision then, and how many files were waiting."""

    def due(self, seq: int) -> int:
        """The decision up to which files should be made durable now, 0 for none; `seq` is the newest.

        Without a boot id, a power loss cannot be distinguished from a person's edit, so every decision is synced.
        """
        if not self.waiting:
            return 0
        if not self.boot:
            return seq
        now = time.monotonic()
        if self._aging is None:
            self._aging = now, seq, self.waiting
        since, aged, files = self._aging
        if now - since < DURABLE_AFTER_SECONDS:
            return 0
        self.waiting -= files
        self._aging = now, seq, self.waiting
        return aged


def is_own(stored: str) -> bool:
    """Whether a journaled path is one of this store's own memory files."""
    return stored.startswith("engrams/") and ".." not in stored.split("/")


_MONTH = 10**12


class Usage:
    """Appends and reads uses.

    A position is one number, year and month times 10^12 plus a byte offset, so positions of all months compare as
    integers.
    """

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
            # Months only move forward; a line in an older file would never be read.
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
                use = _parse_use(line, base + start) if line.endswith(b"\n") and line.strip() else None
                if use is not None:
                    yield use


def after_month(month: str) -> int:
    """The position after every use of a month."""
    return _month_base(month) + _MONTH


def _month_base(month: str) -> int:
    return int(month.replace("-", "")) * _MONTH


def _parse_use(line: bytes, position: int) -> Use | None:
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
