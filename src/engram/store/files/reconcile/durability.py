"""Up to which decision the memory files are known to be on disk, recorded in `state/durable.json`.

A decision is committed by the journal's fsync; its files are written after that and reach the disk whenever the system
writes them. Until then a power loss may undo them, and the result looks like the work of a person: a file that is gone,
or that has its earlier content. This mark tells the two apart, and `file_repair` acts on it.
"""

import contextlib
import json
import os
import sqlite3
import stat
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engram.disk import DIRECTORY_MODE, UNREADABLE, read_bytes, replace_file, sync_path
from engram.model.errors import EngramError, StoreReadOnly
from engram.model.lazy import dataclass, field, replace
from engram.store.files import memories
from engram.store.files.log.journal import LAST_SEQ, Entry
from engram.store.home import Home, refuse_links
from engram.store.sqlite.vectors import boot_id

if TYPE_CHECKING:
    from engram.store.files.reconcile.context import StoreContext

MARK_FILE = "durable.json"
AGE = 60.0
"""Seconds after which a later decision makes a file durable: the system has usually written it by then."""
FEW = 256
"""Up to this many files are synced one by one when a store is closed; more are synced together."""
AT_ONCE = 1024
"""Files per step, unless a single decision changed more."""
BRIEFLY = 0.05
_SYNC_WAITS = sys.platform == "linux"
"""Elsewhere `sync` may return before everything is on disk."""
_MOVING = frozenset({"edit", "remove", "split"})
"""Decisions after which a memory may be in another file, or in none."""


@dataclass(frozen=True, slots=True)
class Mark:
    """What is known to be on disk. `boot` is the boot id of the machine at that time, "" where there is none."""

    seq: int = 0
    boot: str = ""
    unbroken_since: int = 0
    """After this number no decision is missing; before it some may have been pruned."""
    repaired: tuple[str, ...] = ()
    repaired_at: str = ""
    """Files that the last power loss damaged, and when they were repaired."""


def read_mark(home: Home) -> Mark | None:
    """The store's mark; None if an earlier Engram wrote the store, or if the mark cannot be read."""
    try:
        fields = json.loads(read_bytes(home.state / MARK_FILE))
        repaired = fields.get("repaired") or {}
        return Mark(
            seq=_number(fields["seq"]),
            boot=str(fields["boot"]),
            unbroken_since=_number(fields["unbroken_since"]),
            repaired=tuple(str(file) for file in repaired.get("files", ())),
            repaired_at=str(repaired.get("at", "")),
        )
    except UNREADABLE:
        return None


def _number(given: Any) -> int:
    """A valid decision number with room for later ones."""
    number = int(given)
    if not 0 <= number <= LAST_SEQ // 2:
        raise ValueError(f"not a decision number:  {given!r:.40}")
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
    """What one process knows about durability."""

    boot: str = field(default_factory=lambda: boot_id())
    is_checked: bool = False
    """Whether the files were checked since the machine started."""
    unrepaired: set[str] = field(default_factory=set)
    """Files damaged by a power loss that could not be repaired yet; they are not edits."""
    floor: int = 0
    """No decision gets this number or a lower one, so that numbers lost at the journal's end stay missing."""
    waiting: int = 0
    """Files this process has written since it last synced."""
    _aging: tuple[float, int, int] | None = None
    """A time, the newest decision then, and how many files were waiting."""

    def due(self, seq: int) -> int:
        """The decision up to which files should be made durable now, 0 for none; `seq` is the newest.

        Without a boot id a power loss could not be told from a person's edit, so every decision is synced.
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


def make_durable(context: "StoreContext", upto: int | None = None, *, together: bool = False) -> bool:
    """Sync the files of all decisions, or of those up to a number, and record it.

    Takes only the oldest of many and returns whether there are more; `together` syncs the whole system. The lock is free
    while the disk works. If another process has it, that one or the next writer does the same: nothing acknowledged depends
    on this, so failures are ignored.
    """
    with contextlib.suppress(EngramError, sqlite3.Error, OSError):
        with context.lock.held(BRIEFLY):
            mark = read_mark(context.home)
            # Decisions of a killed process may not have reached their files: the index has not read them yet.
            wanted = context.seq if upto is None else min(upto, context.seq)
            if mark is None or not context.durability.is_checked or wanted <= mark.seq:
                return False
            through, files = (wanted, set[str]()) if together else _oldest(context, mark.seq, wanted)
        if together:
            os.sync()
        sync_files(context.home, files)
        for month in context.journal.months()[-1:]:
            _sync(context.journal.path(month))
        with context.lock.held(BRIEFLY):
            mark = read_mark(context.home)
            if mark is not None and mark.seq < through:
                write_mark(context.home, replace(mark, seq=through))
        if upto is None:
            context.durability.waiting = 0
        return through < wanted
    return False


def make_all_durable(context: "StoreContext") -> None:
    """Sync the files of all decisions, however many."""
    while make_durable(context):
        pass


def make_durable_at_close(context: "StoreContext") -> None:
    """Sync everything before a store is closed, so that a power loss can no longer undo it."""
    waiting = context.durability.waiting
    # Files of a killed process may come on top of its own.
    if not waiting or (waiting <= FEW and not make_durable(context)):
        return
    if _SYNC_WAITS:
        make_durable(context, together=True)
    else:
        make_all_durable(context)


def make_due_durable(context: "StoreContext") -> None:
    """Sync what was written a while ago; called after a decision, when the lock is free."""
    with contextlib.suppress(sqlite3.Error):
        if context.durability.waiting and (upto := context.durability.due(context.seq)):
            make_durable(context, upto if context.durability.boot else None)


def is_own(stored: str) -> bool:
    """Whether a journaled path is one of this store's own memory files."""
    return stored.startswith("engrams/") and ".." not in stored.split("/")


def sync_files(home: Home, files: Iterable[str]) -> None:
    """Sync files and their names, also the removal of one that is gone; files behind links are left out."""
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
    """Sync the store's folders, so that removed names are gone from the disk."""
    states = (home.state / name for name in ("", "sessions", "jobs", "named"))
    for folder in (*memories.walk(home.engrams), home.tasks, home.quarantine, home.ledger, *states):
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            sync_path(folder)


def sync_file_and_name(path: Path) -> None:
    """Sync one file and its name."""
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


def _oldest(context: "StoreContext", after: int, upto: int) -> tuple[int, set[str]]:
    """The files of the oldest decisions after a number, and the last of these decisions."""
    files: set[str] = set()
    for entry in reversed(list(_between(context, after, upto))):
        files.update(_places(context, entry))
        if len(files) >= AT_ONCE:
            return entry.seq, files
    return upto, files


def _between(context: "StoreContext", after: int, upto: int) -> Iterator[Entry]:
    for entry in context.journal.backwards():
        if entry.seq <= after:
            return
        if entry.seq <= upto:
            yield entry


def _places(context: "StoreContext", entry: Entry) -> Iterator[str]:
    """The files a decision wrote, and those it removed."""
    for change in entry.changes:
        before = context.image_before(change.id, entry.seq) if entry.op in _MOVING else None
        for stored in (change.file, before.file if before is not None else ""):
            if is_own(stored):
                yield stored
