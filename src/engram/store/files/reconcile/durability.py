"""Syncs memory files some time after the decision that wrote them, and then raises the mark (`log.journal`)."""

import contextlib
import os
import sqlite3
import stat
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from engram.disk import sync_path
from engram.model.errors import EngramError, StoreReadOnly
from engram.model.lazy import replace
from engram.store.files import memories
from engram.store.files.log.journal import Entry, is_own, read_mark, write_mark
from engram.store.files.reconcile.index_state import IndexContext, LogContext
from engram.store.home import Home, refuse_links

MAX_FILES_SYNCED_SINGLY = 256
"""Up to this many files are synced one by one when a store is closed; more are synced together."""
FILES_PER_STEP = 1024
"""Files per step, unless a single decision changed more."""
LOCK_WAIT_SECONDS = 0.05
_SYNC_WAITS = sys.platform == "linux"
"""Elsewhere `sync` may return before everything is on disk."""
_MOVING = frozenset({"edit", "remove", "split"})
"""Decisions after which a memory may be in another file, or in none."""


def make_durable(context: IndexContext, upto: int | None = None, *, together: bool = False) -> bool:
    """Sync the files of all decisions, or of those up to a number, and record it.

    If there are many, handles only the oldest and returns whether there are more; `together` syncs the whole system.
    The lock is free while the disk works. If another process has the lock, that process or the next writer does the
    work: nothing acknowledged depends on it, so failures are ignored.
    """
    with contextlib.suppress(EngramError, sqlite3.Error, OSError):
        with context.lock.hold(LOCK_WAIT_SECONDS):
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
        with context.lock.hold(LOCK_WAIT_SECONDS):
            mark = read_mark(context.home)
            if mark is not None and mark.seq < through:
                write_mark(context.home, replace(mark, seq=through))
        if upto is None:
            context.durability.waiting = 0
        return through < wanted
    return False


def make_all_durable(context: IndexContext) -> None:
    """Sync the files of all decisions, however many."""
    while make_durable(context):
        pass


def make_durable_at_close(context: IndexContext) -> None:
    """Sync everything before a store is closed, so that a power loss can no longer undo it."""
    waiting = context.durability.waiting
    # Files of a killed process may add to its own.
    if not waiting or (waiting <= MAX_FILES_SYNCED_SINGLY and not make_durable(context)):
        return
    if _SYNC_WAITS:
        make_durable(context, together=True)
    else:
        make_all_durable(context)


def make_due_durable(context: IndexContext) -> None:
    """Sync what was written a while ago; called after a decision, when the lock is free."""
    with contextlib.suppress(sqlite3.Error):
        if context.durability.waiting and (upto := context.durability.due(context.seq)):
            make_durable(context, upto if context.durability.boot else None)


def sync_files(home: Home, files: Iterable[str]) -> None:
    """Sync files and their names, including the names of removed files; files behind links are left out."""
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


def _oldest(context: IndexContext, after: int, upto: int) -> tuple[int, set[str]]:
    """The files of the oldest decisions after a number, and the last of these decisions."""
    files: set[str] = set()
    for entry in reversed(list(_between(context, after, upto))):
        files.update(_places(context, entry))
        if len(files) >= FILES_PER_STEP:
            return entry.seq, files
    return upto, files


def _between(context: LogContext, after: int, upto: int) -> Iterator[Entry]:
    for entry in context.journal.backwards():
        if entry.seq <= after:
            return
        if entry.seq <= upto:
            yield entry


def _places(context: IndexContext, entry: Entry) -> Iterator[str]:
    """The files a decision wrote, and those it removed."""
    for change in entry.changes:
        before = context.image_before(change.id, entry.seq) if entry.op in _MOVING else None
        for stored in (change.file, before.file if before is not None else ""):
            if is_own(stored):
                yield stored
