"""Ledgers: one append-only file of events per session.

Each event is chained to the previous one (`store.ledger`), and verified against its anchors in the journal.
"""

import json
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from engram.disk import (
    DIRECTORY_MODE,
    MALFORMED,
    append_durably,
    digest_name,
    json_line,
    json_object,
    lines_backwards,
    reading,
    replace_file,
    set_aside,
    sync_path,
    torn_tail,
    whole_lines,
)
from engram.model.errors import StoreCorrupt, StoreReadOnly
from engram.model.lazy import dataclass, field, lazy_pattern
from engram.model.records import Event
from engram.store.files.log.journal import LAST_SEQ, Journal
from engram.store.home import LEDGER_DIGEST_2, LEDGER_OWNER, Requirements
from engram.store.ledger import (
    LEDGER_OP,
    NO_HEAD,
    REDACT_OP,
    Head,
    blank_event,
    broken_links,
    chain_problems,
    checked_event,
    from_fields,
    is_marked,
    missing_events,
    parse_checkpoint,
    to_fields,
    without_checkpoint,
)

_SAFE = lazy_pattern(r"[^A-Za-z0-9._-]")
_MAX_CACHED_HEADS = 4096
_MORE = b" \n"
"""The end of a line whose turn continues in the next line."""


class LedgerRange(NamedTuple):
    """An append to a ledger: its file name, and the start and end offsets."""

    ledger: str
    start: int
    end: int


@lru_cache(maxsize=1024)
def ledger_name(session: str) -> str:
    """The file name of a session's ledger, which cannot leave the ledger folder."""
    name = _SAFE.sub("_", session)[:100].lstrip(".") or "_"
    if name != session:
        name = digest_name(session, name, 12)
    return f"{name}.jsonl"


class Ledger:
    """Reads and appends events. The caller of `append` and `blank` holds the writer lock."""

    def __init__(self, folder: Path, quarantine: Path) -> None:
        self._folder = folder
        self._quarantine = quarantine
        self._requirements = Requirements(folder.parent)
        self._heads: dict[str, tuple[tuple[int, int, int], Head, str]] = {}
        """Each file's stamp when it was last written or read, its end, and the scope of its last event."""
        self.last_anchored: Callable[[str], int] = lambda _: 0
        """Returns the number of a session's last anchored event, up to which the ledger is complete."""

    def path(self, session: str) -> Path:
        """The file of a session."""
        return self._folder / ledger_name(session)

    def sizes(self, names: Iterable[str] | None = None) -> dict[str, int]:
        """Name and size of every ledger file, or of those with these names."""
        wanted = self._names() if names is None else names
        return {name: found.st_size for name in wanted if (found := self._stat(name)) is not None}

    def irregular_entries(self) -> list[str]:
        """Problems with entries of the folder that have a ledger's name and are not files."""
        return [
            f"{name}: {self._folder / name} is not a file but {_kind(self._folder / name)}; move it out of that folder"
            for name in sorted(self._names())
            if self._stat(name) is None
        ]

    def _names(self) -> list[str]:
        try:
            return [name for name in os.listdir(self._folder) if name.endswith(".jsonl")]
        except (FileNotFoundError, NotADirectoryError):
            return []

    def _stat(self, name: str) -> os.stat_result | None:
        """The stat of a ledger's file; None if there is no plain file of that name."""
        try:
            found = os.lstat(f"{self._folder}/{name}")
        except FileNotFoundError:
            return None
        return found if stat.S_ISREG(found.st_mode) else None

    def size(self, name: str) -> int | None:
        """One ledger file's size; None if there is none."""
        found = self._stat(name)
        return None if found is None else found.st_size

    def head(self, session: str) -> Head:
        """A ledger's end according to its own file; the last line is read again only if the file has changed."""
        return self._end(session)[0]

    def scope(self, session: str) -> str:
        """The scope of a ledger's last event; "" if there is none, or it has no scope."""
        return self._end(session)[1]

    def _end(self, session: str) -> tuple[Head, str]:
        name = ledger_name(session)
        stamp = self._file_stamp(name)
        if stamp is None:
            return NO_HEAD, ""
        known = self._heads.get(name)
        if known is None or known[0] != stamp:
            # After a torn line, which only a crash leaves, the next line would be damaged, too.
            self._quarantine_torn(self._folder / name)
            known = stamp, *self._last(self._folder / name, session)
            self._remember(name, known)
        return known[1:]

    def _last(self, path: Path, session: str) -> tuple[Head, str]:
        line = next((line for line in lines_backwards(path) if line.strip()), None)
        event = _parse_event(line, f"{path}, last line") if line is not None else None
        if event is None:
            return NO_HEAD, ""
        if event.session != session:
            raise StoreCorrupt(
                f"{path} contains the ledger of {event.session!r}, not of {session!r}; choose another id"
            )
        return Head(event.seq, event.digest), event.scope

    def _file_stamp(self, name: str) -> tuple[int, int, int] | None:
        found = self._stat(name)
        return None if found is None else (found.st_ino, found.st_size, found.st_mtime_ns)

    def _remember(self, name: str, known: tuple[tuple[int, int, int], Head, str]) -> None:
        if len(self._heads) >= _MAX_CACHED_HEADS:
            self._heads.clear()
        self._heads[name] = known

    def append(self, session: str, events: Sequence[Event]) -> LedgerRange:
        """Write chained events and fsync once."""
        return self._append(session, b"".join([json_line(to_fields(event)) for event in events]), events)

    def append_turn(self, session: str, events: Sequence[Event]) -> LedgerRange:
        """Append events that a crash leaves either complete or absent."""
        *others, last = [json_line(to_fields(event)) for event in events]
        together = [line[:-1] + _MORE for line in others]
        return self._append(session, b"".join([*together, last]), events)

    def _append(self, session: str, data: bytes, events: Sequence[Event]) -> LedgerRange:
        name, last = ledger_name(session), events[-1]
        path = self._folder / name
        try:
            self._requirements.add(_features_of(events))
            start = self._append_bytes(path, data)
            if not start:
                sync_path(self._folder)
        except OSError as error:
            raise StoreReadOnly(f"cannot append to {path}: {error.strerror}; nothing was written") from error
        stamp = self._file_stamp(name)
        if stamp is not None:
            self._remember(name, (stamp, Head(last.seq, last.digest), last.scope))
        return LedgerRange(name, start, start + len(data))

    def _append_bytes(self, path: Path, data: bytes) -> int:
        try:
            return append_durably(path, data)
        except FileNotFoundError:
            self._folder.mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)
            return append_durably(path, data)

    def read(self, name: str, offset: int = 0) -> Iterator[Event]:
        """Events of one file from a byte offset on."""
        path = self._folder / name
        with reading(path) as file:
            file.seek(offset)
            for number, line in enumerate(file, 1):
                if line.endswith(b"\n") and line.strip():
                    yield _parse_event(line, f"{path}:{number}")

    def lines(self, name: str) -> Iterator[tuple[bytes, Event | None]]:
        """Every line of a file, with its event if it can be parsed."""
        with reading(self._folder / name) as file:
            for line in file:
                try:
                    yield line, from_fields(json.loads(line)) if line.strip() else None
                except MALFORMED:
                    yield line, None

    def readable(self, name: str, offset: int = 0) -> tuple[list[Event], str]:
        """The events up to the first unreadable line, and the problem with that line."""
        found: list[Event] = []
        try:
            found.extend(self.read(name, offset))
        except StoreCorrupt as error:
            return found, str(error)
        except OSError as error:
            return found, _access_problem(self._folder / name, error)
        return found, ""

    def checked_events(self, name: str) -> tuple[list[Event], list[str]]:
        """The events up to the first unreadable line, and the problems of single lines."""
        found: list[Event] = []
        problems: list[str] = []
        path = self._folder / name
        number = 0
        try:
            with reading(path) as file:
                for line in file:
                    number += 1
                    if line.endswith(b"\n") and line.strip():
                        event, wrong = checked_event(line)
                        found.append(_check_event(event))
                        problems += [f"{name}: {wrong}"] if wrong else []
        except MALFORMED as error:
            problems.append(str(_unreadable(f"{path}:{number}", error)))
        except OSError as error:
            problems.append(_access_problem(path, error))
        return found, problems

    def quarantine_torn(self, names: Iterable[str] | None = None) -> list[str]:
        """Move torn last lines and unfinished turns to quarantine, of all ledgers or of these."""
        return [moved for name in self.sizes(names) for moved in self._quarantine_torn(self._folder / name)]

    def _quarantine_torn(self, path: Path) -> list[str]:
        torn, unfinished = torn_tail(path), self._find_unfinished_turn(path)
        if unfinished is not None:
            return [set_aside(path, unfinished, self._quarantine, "unfinished turn")]
        return [set_aside(path, torn, self._quarantine, "torn last line")] if torn is not None else []

    def _find_unfinished_turn(self, path: Path) -> int | None:
        """The offset of the last turn, if its end is missing and it was never acknowledged."""
        length, first = 0, b""
        for line in lines_backwards(path):
            if not line.endswith(_MORE[:-1]):
                break
            length, first = length + len(line) + 1, line
        try:
            begun = _parse_event(first, str(path)) if length else None
        except StoreCorrupt:
            return None
        if begun is None or self.last_anchored(begun.session) >= begun.seq:
            return None
        return whole_lines(path)[1] - length

    def blank(self, name: str, ids: frozenset[str], damaged: Callable[[bytes], bytes] = bytes) -> None:
        """Remove content, payload, metadata, key and salt of some events; `damaged` cleans an unreadable line."""
        after = []
        touched = False
        for line, event in self.lines(name):
            if event is not None and event.id in ids:
                kept = json_line(to_fields(blank_event(event)))
                kept = kept[:-1] + _MORE if line.endswith(_MORE) else kept
            else:
                kept = line if event is not None or not line.strip() else damaged(line)
            touched |= kept != line
            after.append(kept)
        if touched:
            replace_file(self._folder / name, b"".join(after))


def _features_of(events: Sequence[Event]) -> Iterator[str]:
    """The features that a reader must know to verify these events."""
    if any(is_marked(event) for event in events):
        yield LEDGER_DIGEST_2
    if any(event.scope for event in events):
        yield LEDGER_OWNER


def _parse_event(line: bytes, where: str) -> Event:
    try:
        return _check_event(from_fields(json.loads(line)))
    except MALFORMED as error:
        raise _unreadable(where, error) from None


def _check_event(event: Event) -> Event:
    """The event, if its fields have the types the index needs. Raises `ValueError` otherwise."""
    texts = event.id, event.session, event.role, event.event_type, event.content, event.task, event.key
    chain = event.salt, event.body, event.prev, event.digest, event.scope
    if not all(isinstance(text, str) for text in (*texts, *chain)) or not event.id:
        raise ValueError("its id, content and digests must be text")
    if not isinstance(event.payload, dict) or not isinstance(event.metadata, dict):
        raise ValueError("its payload and metadata must be objects")
    if not 0 < event.seq <= LAST_SEQ:
        raise ValueError(f"its number must be from 1 to {LAST_SEQ}, is {event.seq!r:.40}")
    return event


def _access_problem(path: Path, error: OSError) -> str:
    return f"{path}: cannot be read ({error.strerror}); its owner must be able to"


def _kind(path: Path) -> str:
    if path.is_symlink():
        return "a link, which Engram does not follow" if path.exists() else "a broken link"
    return "a folder" if path.is_dir() else "a device or a pipe"


def _unreadable(where: str, error: Exception) -> StoreCorrupt:
    return StoreCorrupt(f"{where}: not an event ({error}); restore the file from a backup")


_NEEDLE = f'"op":"{LEDGER_OP}"'.encode()


def last_anchored(journal: Journal, session: str) -> int:
    """The number of a ledger's last anchored event, read from the journal's end without the index."""
    reasons = (reason for name, reason in _anchors_backwards(journal) if name == session)
    anchors = (anchor for reason in reasons if (anchor := parse_checkpoint(reason)) is not None)
    found = next(anchors, None)
    return (found.head if found is not None else NO_HEAD).seq


def _anchors_backwards(journal: Journal) -> Iterator[tuple[str, str]]:
    """Ledger and reason of every anchor, newest first."""
    for month in reversed(journal.months()):
        for line in lines_backwards(journal.path(month)):
            fields = json_object(line) if _NEEDLE in line else {}
            if fields.get("op") == LEDGER_OP:
                yield str(fields.get("session", "")), str(fields.get("reason", ""))


@dataclass(slots=True)
class _JournaledAnchors:
    """The journal's anchors: of each ledger since its last pruning, of redactions, and all of them in order."""

    ends: dict[str, list[str]] = field(default_factory=dict)
    redacted: set[str] = field(default_factory=set)
    all: list[tuple[str, str]] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)


def verify_ledgers(journal: Journal, ledger: Ledger) -> list[str]:
    """The problems of each ledger: its chain, and its end compared with the anchors.

    The index is not used: it is derived from these files, possibly before they were changed.
    """
    anchors = _read_anchors(journal)
    sessions = {ledger_name(session): session for session in anchors.ends}
    problems = [*anchors.unread, *ledger.irregular_entries()]
    for name in sorted(ledger.sizes()):
        problems += _ledger_problems(ledger, name, anchors, anchors.ends.get(sessions.pop(name, ""), []))
    for session in sorted(sessions.values()):
        problems += missing_events(session, anchors.ends[session], lambda _: None)
    return problems + broken_links(anchors.all)


def _read_anchors(journal: Journal) -> _JournaledAnchors:
    found = _JournaledAnchors()
    for placed in journal.readable(found.unread):
        entry = placed.entry
        if entry.op == REDACT_OP:
            found.redacted.update(entry.reason.split())
        elif entry.op == LEDGER_OP:
            found.all.append((entry.session, entry.reason))
            anchor = parse_checkpoint(entry.reason)
            if anchor is not None and anchor.is_pruned:
                found.ends[entry.session] = []
            found.ends.setdefault(entry.session, []).append(entry.reason)
    return found


def _ledger_problems(ledger: Ledger, name: str, anchors: _JournaledAnchors, ends: list[str]) -> list[str]:
    events, problems = ledger.checked_events(name)
    problems += chain_problems(events, name, anchors.redacted)
    if events and ledger_name(events[0].session) != name:
        problems.append(
            f"{name}: contains the ledger of {events[0].session}, whose name is {ledger_name(events[0].session)}"
        )
    digests = {event.seq: event.digest for event in events}
    return problems + missing_events(name, ends, digests.get) + without_checkpoint(name, events, ends)
