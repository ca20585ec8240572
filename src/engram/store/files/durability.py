"""Up to which decision the memory files are known to be on disk, remembered in `state/durable.json`.

A decision is committed by the journal's fsync; its files are written after that and reach the disk when the system finds the
time. Until they have, a power loss may take them back, and what it leaves looks like the work of a person: a file that is gone,
or that says what it said before. This mark tells the two apart, and `power_loss` acts on it.
"""

import contextlib
import json
import os
import sqlite3
import stat
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engram.disk import DIRECTORY_MODE, UNREADABLE, read_bytes, replace_file, sync_path
from engram.model.errors import EngramError, StoreReadOnly
from engram.store.files import memories
from engram.store.files.home import Home, refuse_links
from engram.store.files.index.matrix import boot_id
from engram.store.files.journal import LAST_SEQ, Change, Entry, Position

if TYPE_CHECKING:
    from engram.store.files.context import StoreContext

MARK_FILE = "durable.json"
AGE = 60.0
"""Seconds after which a file is made durable on the way of a later decision: the system has mostly written it by then."""
FEW = 256
"""So many files are waited for one by one when a store is closed; more are waited for all together."""
AT_ONCE = 1024
"""So many files at a time, unless a single decision is about more."""
BRIEFLY = 0.05
_SYNC_WAITS = sys.platform == "linux"
"""Elsewhere `sync` may come back before everything is on disk."""
_MOVING = frozenset({"edit", "remove", "split"})
"""Decisions after which a memory may lie elsewhere, or nowhere."""


@dataclass(frozen=True, slots=True)
class Mark:
    """What is known to be on disk. `boot` names the run of the machine in which it was said, "" where nothing names one."""

    seq: int = 0
    boot: str = ""
    unbroken_since: int = 0
    """Behind this number no decision is missing; before it some may have been pruned."""
    repaired: tuple[str, ...] = ()
    repaired_at: str = ""
    """What the last power loss took, and when it was put right."""


def read_mark(home: Home) -> Mark | None:
    """The store's mark; None in one that an earlier Engram wrote, and for one that cannot be read."""
    try:
        fields = json.loads(read_bytes(home.state / MARK_FILE))
        told = fields.get("repaired") or {}
        return Mark(
            seq=_number(fields["seq"]),
            boot=str(fields["boot"]),
            unbroken_since=_number(fields["unbroken_since"]),
            repaired=tuple(str(file) for file in told.get("files", ())),
            repaired_at=str(told.get("at", "")),
        )
    except UNREADABLE:
        return None


def _number(given: Any) -> int:
    """A number that a decision may have had, and after which others still can."""
    number = int(given)
    if not 0 <= number <= LAST_SEQ // 2:
        raise ValueError(f"no decision has the number {given!r:.40}")
    return number


def write_mark(home: Home, mark: Mark) -> None:
    """Replace the mark, durably."""
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
    """What one process knows of it."""

    boot: str = field(default_factory=lambda: boot_id())
    is_checked: bool = False
    """Whether it was looked at since the machine started."""
    unrepaired: set[str] = field(default_factory=set)
    """Files a power loss took that could not be written again yet: nobody's edit."""
    floor: int = 0
    """No decision gets this number or a lower one: should lines be lost at the journal's end, their numbers stay missing."""
    waiting: int = 0
    """Files this process has written since it last waited for the disk."""
    _aging: tuple[float, int, int] | None = None
    """A moment, the newest decision then, and how many files waited."""

    def written(self, files: int) -> None:
        """Count what was written."""
        self.waiting += files

    def due(self, seq: int) -> int:
        """The decision up to which files should be made durable now, 0 for none; `seq` is the newest.

        Without a name for this run of the machine a power loss could not be told from a person's work: every decision waits.
        """
        if not self.waiting:
            return 0
        if not self.boot:
            return seq
        now = time.monotonic()
        if self._aging is None:
            self._aging = now, seq, self.waiting
        since, aged, files = self._aging
        if now - since < AGE:
            return 0
        self.waiting -= files
        self._aging = now, seq, self.waiting
        return aged


def make_durable(parts: "StoreContext", upto: int | None = None, *, together: bool = False) -> bool:
    """Wait until the files of all decisions, or of those up to a number, are on disk; then say so.

    Of many it takes only the oldest, and says whether there are more; `together` takes all, and the whole system's with them. The lock is not held while the disk works. Where somebody
    else holds it, they or the next writer do the same: nothing acknowledged hangs on this, so no failure of it concerns the caller.
    """
    with contextlib.suppress(EngramError, sqlite3.Error, OSError):
        with parts.lock.held(BRIEFLY):
            mark = read_mark(parts.home)
            # Decisions of a process that was killed may not have reached their files: the index has not read them yet.
            wanted = parts.seq if upto is None else min(upto, parts.seq)
            if mark is None or not parts.durability.is_checked or wanted <= mark.seq:
                return False
            through, files = (wanted, set[str]()) if together else _oldest(parts, mark.seq, wanted)
        if together:
            os.sync()
        sync_files(parts.home, files)
        for month in parts.journal.months()[-1:]:
            _sync(parts.journal.path(month))
        with parts.lock.held(BRIEFLY):
            mark = read_mark(parts.home)
            if mark is not None and mark.seq < through:
                write_mark(parts.home, replace(mark, seq=through))
        if upto is None:
            parts.durability.waiting = 0
        return through < wanted
    return False


def make_all_durable(parts: "StoreContext") -> None:
    """The same, however many there are."""
    while make_durable(parts):
        pass


def make_durable_at_close(parts: "StoreContext") -> None:
    """The same for a store that is about to be closed by one that wrote: with it ends what a power loss could take."""
    waiting = parts.durability.waiting
    # Files of a process that was killed may come on top of its own.
    if not waiting or (waiting <= FEW and not make_durable(parts)):
        return
    if _SYNC_WAITS:
        make_durable(parts, together=True)
    else:
        make_all_durable(parts)


def make_due_durable(parts: "StoreContext") -> None:
    """The same for what was written a while ago; after a decision, when the lock is free again."""
    with contextlib.suppress(sqlite3.Error):
        if parts.durability.waiting and (upto := parts.durability.due(parts.seq)):
            make_durable(parts, upto if parts.durability.boot else None)


def is_own(stored: str) -> bool:
    """Whether a journaled place is one of this store's own memory files."""
    return stored.startswith("engrams/") and ".." not in stored.split("/")


def sync_files(home: Home, files: Iterable[str]) -> None:
    """Wait until files and their names are on disk; one that is gone is gone durably, and none lies behind a link."""
    folders: set[Path] = set()
    for stored in files:
        try:
            refuse_links(home.root, stored)
        except StoreReadOnly:
            continue
        path = home.root / stored
        with contextlib.suppress(FileNotFoundError, NotADirectoryError, PermissionError):
            _sync(path)
        folders.update(parent for parent in path.parents if parent == home.engrams or home.engrams in parent.parents)
    for folder in sorted(folders):
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            sync_path(folder)


def sync_folders(home: Home) -> None:
    """Wait until every name that was taken away in the store's folders is gone from the disk."""
    others = (home.tasks, home.quarantine, home.ledger, home.state, home.state / "sessions", home.state / "jobs")
    for folder in (*memories.walk(home.engrams), *others):
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            sync_path(folder)


def sync_file_and_name(path: Path) -> None:
    """Wait until one file and its name are on disk."""
    _sync(path)
    sync_path(path.parent)


def _sync(path: Path) -> None:
    if not stat.S_ISREG(os.lstat(path).st_mode):
        return
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _oldest(parts: "StoreContext", after: int, upto: int) -> tuple[int, set[str]]:
    """The files of the oldest decisions after a number, and the last of these decisions."""
    files: set[str] = set()
    for entry in reversed(list(_between(parts, after, upto))):
        files.update(_places(parts, entry))
        if len(files) >= AT_ONCE:
            return entry.seq, files
    return upto, files


def _between(parts: "StoreContext", after: int, upto: int) -> Iterator[Entry]:
    for entry in parts.journal.backwards():
        if entry.seq <= after:
            return
        if entry.seq <= upto:
            yield entry


def _places(parts: "StoreContext", entry: Entry) -> Iterator[str]:
    """The files a decision wrote, and those it took away."""
    for change in entry.changes:
        for stored in (change.file, _place_before(parts, change, entry) if entry.op in _MOVING else ""):
            if is_own(stored):
                yield stored


def _place_before(parts: "StoreContext", change: Change, entry: Entry) -> str:
    row = parts.index.db.execute(
        "SELECT month, offset FROM images WHERE id = ? AND seq < ? ORDER BY seq DESC LIMIT 1", (change.id, entry.seq)
    ).fetchone()
    if row is None:
        return ""
    before = parts.journal.at(Position(*row))
    return next((known.file for known in before.changes if known.id == change.id), "")
