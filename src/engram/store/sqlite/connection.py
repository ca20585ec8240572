"""The SQLite file of the index: opening and replacing it, and its named statements."""

import contextlib
import fcntl
import os
import sqlite3
import struct
import sys
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from engram.disk import DIRECTORY_MODE, FILE_MODE
from engram.model.errors import StoreBusy, StoreCorrupt, StoreError, StoreReadOnly
from engram.rules.lifecycle import fade_strength
from engram.store.documents import record_matches
from engram.store.sql import named_statements

BUSY_MS = 10_000
_WAL_RETRY_S = 0.005
_SHARED_FIRST, _SHARED_SIZE = 0x40000002, 510


@cache
def statements() -> dict[str, str]:
    """The named statements of `statements.sql`."""
    text = Path(__file__).with_name("statements.sql").read_text("utf-8")
    return named_statements(text)


SCHEMA = Path(__file__).with_name("schema.sql")
"""The schema of a store's index."""


def connect(path: Path, schema: Path = SCHEMA) -> tuple[sqlite3.Connection, bool]:
    """Open or create an index; returns the connection and whether it is new and must be filled.

    A damaged index is replaced by an empty one, because everything in it is derived from the files.
    """
    try:
        path.parent.mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)
        return _open(path, schema)
    except sqlite3.DatabaseError as error:
        if is_damaged(error):
            return _replace_damaged(path, schema)
        if is_busy(error):
            raise StoreBusy(
                f"the index {path} could not be opened: {error}; another process is busy with it"
            ) from error
        raise unwritable_cache(path.parent, str(error)) from error
    except OSError as error:
        raise unwritable_cache(path.parent, error.strerror or str(error)) from error


def unwritable_cache(folder: Path, reason: str) -> StoreReadOnly:
    """The error for a cache that cannot be written.

    Even reading an index needs write access, because SQLite puts its locks next to it.
    """
    return StoreReadOnly(
        f"the cache {folder} cannot be written ({reason}); set ENGRAM_CACHE to a folder that you can write"
    )


def index_error(error: sqlite3.Error, path: Path) -> StoreError:
    """Engram's error for one that SQLite raised while an existing index was read."""
    if is_unwritable(error):
        return unwritable_cache(path.parent, str(error))
    return StoreCorrupt(f"the index {path} cannot be read ({error}); run `engram doctor`")


class NotAnIndex(sqlite3.DatabaseError):
    """The index path contains another program's database."""

    sqlite_errorcode = sqlite3.SQLITE_NOTADB


def is_damaged(error: Exception) -> bool:
    """Whether SQLite reports a corrupt file or one that is not a database. No other failure justifies deleting it."""
    return _code(error) in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def is_busy(error: Exception) -> bool:
    """Whether SQLite waited too long for another process."""
    return _code(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def is_unwritable(error: Exception) -> bool:
    """Whether a full disk or missing permissions kept SQLite from its file."""
    return _code(error) in _UNWRITABLE


_UNWRITABLE = frozenset(
    {sqlite3.SQLITE_FULL, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_PERM}
)


def _code(error: Exception) -> int:
    """SQLite's error code; 0 for an error of Python itself (a closed connection, say)."""
    return int(getattr(error, "sqlite_errorcode", None) or 0) & 0xFF


def _replace_damaged(path: Path, schema: Path) -> tuple[sqlite3.Connection, bool]:
    try:
        discard(path)
        path.parent.mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)
        return _open(path, schema)
    except (sqlite3.Error, OSError) as error:
        raise StoreReadOnly(
            f"the index {path} cannot be created: {error}; free some space, or set ENGRAM_CACHE to a folder you can write"
        ) from error


def _open(path: Path, schema: Path) -> tuple[sqlite3.Connection, bool]:
    fresh = not path.exists() or path.stat().st_size == 0
    if fresh:
        path.touch(FILE_MODE)
    connection = sqlite3.connect(path, timeout=BUSY_MS / 1000, isolation_level=None, check_same_thread=False)
    connection.create_function("record_matches", 3, record_matches, deterministic=True)
    connection.create_function("faded", 2, fade_strength, deterministic=True)
    try:
        _use_wal(connection)
        connection.executescript(
            f"PRAGMA busy_timeout = {BUSY_MS}; PRAGMA synchronous = NORMAL; PRAGMA temp_store = MEMORY; "
            "PRAGMA mmap_size = 268435456; PRAGMA cache_size = -32000"
        )
        made = _ensure_schema(connection, schema)
        _refuse_foreign(connection)
    except BaseException:
        connection.close()
        raise
    return connection, made


def _use_wal(connection: sqlite3.Connection) -> None:
    """Switch to WAL mode, retrying while others do the same: SQLite reports "locked" at once to all but one."""
    deadline = time.monotonic() + BUSY_MS / 1000
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
        time.sleep(_WAL_RETRY_S)


def _ensure_schema(connection: sqlite3.Connection, schema: Path) -> bool:
    if _has_schema(connection):
        return False
    with write_transaction(connection):
        if _has_schema(connection):
            return False
        for statement in split_statements(schema.read_text("utf-8")):
            connection.execute(statement)
        connection.execute("INSERT INTO meta (key, value) VALUES ('schema', 1)")
        name_index(connection)
    return True


def name_index(connection: sqlite3.Connection) -> str:
    """The index's unique name, so that a process still writing to a deleted index never touches the vectors of the next one."""
    connection.execute("INSERT OR IGNORE INTO meta (key, value) VALUES ('name', ?)", (os.urandom(6).hex(),))
    return str(connection.execute("SELECT value FROM meta WHERE key = 'name'").fetchone()[0])


def _refuse_foreign(connection: sqlite3.Connection) -> None:
    names = {name for _, name, *_ in connection.execute("PRAGMA table_info(meta)")}
    if names != {"key", "value"}:
        raise NotAnIndex("it is another program's database")


def _has_schema(connection: sqlite3.Connection) -> bool:
    return connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'meta'").fetchone() is not None


def split_statements(script: str) -> Iterator[str]:
    """The statements of a script, because `executescript` would end the transaction it runs in."""
    statement = ""
    for line in script.splitlines():
        statement += line + "\n"
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


@contextlib.contextmanager
def write_transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """One write transaction."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        with contextlib.suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def hold_shared_lock(path: Path) -> int | None:
    """Hold a shared lock on the database that no other close() releases, if the system has such locks.

    POSIX drops all locks a process holds on a file when any descriptor of it is closed, SQLite's included. Another process
    would then assume that it is the last one and remove the WAL in use here.
    """
    if sys.platform != "linux":
        return None
    descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    with contextlib.suppress(OSError):
        fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, _lock_request(fcntl.F_RDLCK))
    return descriptor


def release_shared_lock(descriptor: int | None) -> None:
    """Release the lock from `hold_shared_lock`."""
    if descriptor is not None and sys.platform == "linux":
        with contextlib.suppress(OSError):
            fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, _lock_request(fcntl.F_UNLCK))


def _lock_request(kind: int) -> bytes:
    """A `struct flock` over the bytes that SQLite locks while it has the file open."""
    return struct.pack("hhqqi4x", kind, os.SEEK_SET, _SHARED_FIRST, _SHARED_SIZE, 0)


def discard(path: Path) -> None:
    """Delete an index and the files next to it."""
    for suffix in ("", "-wal", "-shm", "-journal"):
        with contextlib.suppress(FileNotFoundError):
            Path(f"{path}{suffix}").unlink()
    for matrix in path.parent.glob("vectors-*.f32"):
        matrix.unlink()
