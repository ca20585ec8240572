"""A store of files as the source of a migration: reads its files directly and changes none of them."""

import contextlib
import json
import os
import sqlite3
from array import array
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

from engram.disk import MALFORMED, read_bytes
from engram.model.errors import EngramError, StoreCorrupt, StoreError
from engram.model.lazy import dataclass, replace
from engram.model.records import Event, Use
from engram.store.files import memories
from engram.store.files.lock import WriterLock
from engram.store.files.log.journal import AfterImage, Journal, JournalLine, Position, Usage
from engram.store.files.log.ledger import Ledger
from engram.store.files.memories import Stamp, stamp_of
from engram.store.files.reconcile.folders import is_team
from engram.store.files.states import named
from engram.store.files.states import named as named_states
from engram.store.files.states import work as session_files
from engram.store.files.states import work as task_files
from engram.store.files.store.purge_plan import has_unfinished_purge
from engram.store.home import Home
from engram.store.migration.records import (
    Counts,
    GateVerdict,
    JournalRecord,
    MemoryImage,
    StateSnapshot,
    VectorsById,
    digest,
    make_portable,
)
from engram.store.records import highest_numbers, image
from engram.store.sqlite.writer import from_blob

LOCK_SECONDS = 10.0
"""How long to wait for a decision in progress."""
MAX_EXAMPLES = 3


@dataclass(frozen=True, slots=True)
class LatestImage:
    """Where a memory's latest decision begins, its file, and a digest of its image; None if it was purged."""

    start: Position
    file: str
    digest: bytes | None

    @property
    def is_own(self) -> bool:
        """Whether it is a memory of this store, not purged and not a team's."""
        return self.digest is not None and not is_team(self.file)


class FilesSource:
    """Reads a home up to the end that `settle` found."""

    def __init__(self, home: Home) -> None:
        self.home = home
        self.notes: list[str] = []
        self.positions: array[int] = array("q")
        self._journal, self._usage = Journal(home.journal, home.quarantine), Usage(home.usage)
        self._ledger = Ledger(home.ledger, home.quarantine)
        self._index = IndexReader(home)
        self._settled: tuple[Any, ...] | None = None
        self._journal_end, self._usage_end = Position(), 0
        self._latest: dict[str, LatestImage] = {}
        self._purged: frozenset[str] = frozenset()
        self._counts = Counts()
        self._snapshot = StateSnapshot()

    def close(self) -> None:
        """Close the index."""
        self._index.close()

    @property
    def identity(self) -> str:
        """The store's id and directory."""
        return f"files {self.home.store_id} {self.home.root}"

    @property
    def place(self) -> str:
        """The store's directory."""
        return str(self.home.root)

    @property
    def embedder(self) -> str:
        """The embedder that made the vectors of its index."""
        return str(self._index.meta.get("embedder") or "")

    # -- where it ends

    def settle(self) -> None:
        """Find where the logs end, under the writer lock, because a failing decision is rolled back under it."""
        mark = self.mark()
        if mark == self._settled:
            return
        with contextlib.ExitStack() as locked:
            if self.home.lock.exists():
                with contextlib.suppress(EngramError):
                    locked.enter_context(WriterLock(self.home.lock).hold(LOCK_SECONDS))
            self._journal_end, self._usage_end = self._journal.end(), self._usage.end()
        decisions, images = self._read_journal()
        self._purged = frozenset(i for i, latest in self._latest.items() if latest.digest is None)
        self.positions = array("q", (use.position for use in self.uses()))
        self._snapshot = self._read_snapshot()
        self._counts = Counts(
            memories=sum(latest.is_own for latest in self._latest.values()),
            decisions=decisions,
            images=images,
            uses=len(self.positions),
            events=sum(1 for _ in self.events({})),
            sessions=len(self._snapshot.sessions),
            verdicts=len(self._snapshot.verdicts),
            tombstones=len(self._purged),
        )
        self._settled = mark

    def _read_journal(self) -> tuple[int, int]:
        """Find every memory's latest image; returns the number of decisions and of images."""
        decisions = images = 0
        self._latest = {}
        for placed in self._entries(Position()):
            decisions += 1
            for change in _last_changes(placed):
                images += 1
                made = digest(change.after) if change.after is not None else None
                self._latest[change.id] = LatestImage(placed.start, change.file, made)
        return decisions, images

    def _entries(self, since: Position) -> Iterator[JournalLine]:
        for placed in self._journal.read(since):
            if placed.end > self._journal_end:
                return
            yield placed

    def _read_snapshot(self) -> StateSnapshot:
        problems: list[str] = []
        runs = list(task_files.all_tasks(self.home, problems))
        if problems:
            raise StoreCorrupt(problems[0])
        return StateSnapshot(
            sessions=session_files.all_sessions(self.home),
            verdicts=list(_verdicts(self.home)),
            tombstones=self._purged,
            numbers=highest_numbers(self._latest),
            paused=named.is_paused(self.home),
            tasks=runs,
            checkpoints=[point for task in runs for point in task_files.load_checkpoints(self.home, task.id)],
            jobs=task_files.all_jobs(self.home),
            states=dict(named_states.all_states(self.home)),
        )

    def mark(self) -> tuple[Any, ...]:
        """Where the logs end, and when the small files changed."""
        states = [
            path for kind in ("sessions", "jobs", "named") for path in sorted((self.home.state / kind).glob("*.json"))
        ]
        states += sorted(self.home.tasks.glob("*.json*"))
        return (
            self._journal.end(),
            self._usage.end(),
            sorted(self._ledger.sizes().items()),
            [(path.name, path.stat().st_mtime_ns) for path in states],
        )

    # -- contents

    def counts(self) -> Counts:
        """How much the store contains."""
        return self._counts

    def snapshot(self) -> StateSnapshot:
        """Everything that is sent as a whole."""
        return self._snapshot

    def uses(self, after: int = 0) -> Iterator[Use]:
        """Uses after a position, in order."""
        for use in self._usage.read(after + 1):
            if use.position >= self._usage_end:
                return
            ids = tuple(i for i in dict.fromkeys(use.ids) if i not in self._purged)
            if ids:
                yield replace(use, ids=ids)

    def journal(self, cursor: str = "") -> Iterator[JournalRecord]:
        """Decisions after a cursor, in order."""
        for placed in self._entries(self._resume_position(cursor)):
            entry, start, end = placed.entry, placed.start, placed.end
            images = tuple(self._image(change, start) for change in _last_changes(placed))
            cursor = json.dumps([start.month, start.offset, end.offset, entry.seq])
            size = end.offset - start.offset
            yield JournalRecord(
                entry.at, entry.op, entry.actor, entry.reason, entry.session, images, cursor, size, entry.extra
            )

    def _resume_position(self, cursor: str) -> Position:
        if not cursor:
            return Position()
        month, start, end, seq = json.loads(cursor)
        if not self._journal.has_entry(Position(month, start), end, seq):
            raise StoreError(
                f"the journal of {self.place} was pruned or purged since this migration began; start over with an empty target"
            )
        return Position(month, end)

    def _image(self, change: AfterImage, start: Position) -> MemoryImage:
        latest, after = self._latest[change.id], make_portable(change.after, self.positions)
        current = latest.start == start and latest.is_own
        return MemoryImage(change.id, after, after if current else None, change.file if is_team(change.file) else "")

    def events(self, known: Mapping[str, int]) -> Iterator[Event]:
        """Events after the known number of each ledger."""
        return (
            event
            for name in sorted(self._ledger.sizes())
            for event in self._ledger.read(name)
            if event.seq > known.get(event.session, 0)
        )

    def vectors(self, ids: Sequence[str]) -> VectorsById:
        """Vectors of the index."""
        return self._index.vectors(ids)

    # -- files compared with the journal

    def check(self) -> None:
        """Raise `StoreError` for an interrupted purge, or for hand edits that are not in the journal: they would be lost."""
        if has_unfinished_purge(self.home):
            raise StoreError(
                f"a purge of {self.place} was interrupted; complete it with `engram sync --home {self.place}`"
            )
        pending, faulty = self._compare_files(self._index.stamps(self._journal_end))
        self.notes += [f"not migrated: {fault}" for fault in faulty]
        if pending:
            shown = "; ".join(pending[:MAX_EXAMPLES])
            more = f" (and {len(pending) - MAX_EXAMPLES} more)" if len(pending) > MAX_EXAMPLES else ""
            raise StoreError(
                f"{self.place} has hand edits that are not in its journal yet: {shown}{more}. Run "
                f"`engram sync --home {self.place}` first; a migration does not change its source"
            )

    def faults(self) -> list[str]:
        """Files that contradict the journal; reads every file."""
        pending, faulty = self._compare_files({})
        return pending + faulty

    def _compare_files(self, known: Mapping[str, Stamp]) -> tuple[list[str], list[str]]:
        """Changes that are not in the journal, and faulty files. Files with a `known` stamp are skipped."""
        pending: list[str] = []
        faulty: list[str] = []
        by_file: dict[str, set[str]] = {}
        for memory_id, latest in sorted(self._latest.items()):
            if latest.is_own and latest.file:
                by_file.setdefault(latest.file, set()).add(memory_id)
        for stored in _memory_files(self.home):
            expected, path = by_file.pop(stored, set()), f"{self.home.root}/{stored}"
            if stored not in known or stamp_of(path) != known[stored]:
                self._compare_file(Path(path), stored, expected, pending, faulty)
        return pending + [f"{self.home.root / stored} is missing" for stored in by_file], faulty

    def _compare_file(self, path: Path, stored: str, expected: set[str], pending: list[str], faulty: list[str]) -> None:
        try:
            there = {memory.id: memory for memory in memories.read(path)}
        except EngramError as error:
            faulty.append(str(error))
            return
        for memory_id, memory in there.items():
            latest = self._latest.get(memory_id)
            if latest is not None and latest.digest is None:
                faulty.append(f"{path}: {memory_id} was purged and cannot be restored")
            elif latest is not None and latest.file not in ("", stored) and (self.home.root / latest.file).exists():
                faulty.append(f"{path}: id {memory_id} is already taken by {latest.file}")
            elif latest is None or latest.file != stored or latest.digest != digest(image(memory)):
                pending.append(f"{path} was changed")
        if expected - there.keys():
            pending.append(f"{path} no longer contains {min(expected - there.keys())}")


def _last_changes(placed: JournalLine) -> list[AfterImage]:
    """The last change of each memory in a decision."""
    return list({change.id: change for change in placed.entry.changes}.values())


def _memory_files(home: Home) -> Iterator[str]:
    """Every memory file, relative to the home. Strings, not paths: there may be a hundred thousand."""
    for folder in memories.walk(home.engrams):
        stored = folder.relative_to(home.root).as_posix()
        names = sorted(os.listdir(folder)) if folder.is_dir() else []
        yield from (f"{stored}/{name}" for name in names if memories.is_memory_file(name))


def _verdicts(home: Home) -> Iterator[GateVerdict]:
    try:
        lines = read_bytes(home.state / named.VERDICTS_FILE).decode("utf-8", "replace").splitlines()
    except OSError:
        return
    for line in lines:
        with contextlib.suppress(*MALFORMED):
            fields = json.loads(line)
            yield GateVerdict(datetime.fromisoformat(fields["at"]), str(fields["gate"]), str(fields["outcome"]))


_VECTORS = (
    "SELECT d.id, t.meaning, v.vector FROM json_each(?) j CROSS JOIN docs d ON d.id = j.value "
    "JOIN texts t ON t.n = d.n JOIN vectors v ON v.generation = ? AND v.n = d.n"
)


class IndexReader:
    """Reads the index of a store without opening the store; empty if the index cannot be read."""

    def __init__(self, home: Home) -> None:
        self.meta: dict[str, Any] = {}
        # Used by the prefetching thread, by one thread at a time.
        path = f"file:{quote(str(home.index / 'index.db'))}?mode=ro"
        self._connection: sqlite3.Connection | None = None
        with contextlib.suppress(sqlite3.Error):
            self._connection = sqlite3.connect(path, uri=True, check_same_thread=False)
        self.meta = dict(self._rows("SELECT key, value FROM meta"))

    def close(self) -> None:
        """Close the index."""
        if self._connection is not None:
            self._connection.close()

    def stamps(self, end: Position) -> dict[str, Stamp]:
        """The stamp of each indexed file without a fault; none unless the index has read the journal up to `end`."""
        read = json.loads(self.meta.get("journal") or "[]")[:2]
        if self.meta.get("filled") is None or read != [end.month, end.offset]:
            return {}
        rows = self._rows("SELECT path, mtime_ns, size, inode, ctime_ns FROM files WHERE error = ''")
        return {path: Stamp(*stamp) for path, *stamp in rows}

    def vectors(self, ids: Sequence[str]) -> VectorsById:
        """Vectors by document id, each with the digest of its text."""
        rows = self._rows(_VECTORS, json.dumps(list(ids)), int(self.meta.get("generation") or 1))
        return {i: (bytes(meaning), from_blob(blob)) for i, meaning, blob in rows}

    def _rows(self, text: str, *values: Any) -> list[tuple[Any, ...]]:
        if self._connection is not None:
            with contextlib.suppress(sqlite3.Error):
                return self._connection.execute(text, values).fetchall()
        return []
