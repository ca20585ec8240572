"""Connections to a server, with one pool per URL and process.

Also encodes texts and vectors in the server's binary form, and translates its errors without showing the password.
"""

import logging
import os
import random
import re
import struct
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self, TypeVar

import psycopg
from psycopg import conninfo, errors
from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout

from engram.model.errors import (
    EngramError,
    InvalidInput,
    StoreBusy,
    StoreClosed,
    StoreDenied,
    StoreError,
    StoreReadOnly,
    StoreUnreachable,
)
from engram.model.forks import wait_for_imports

_PASSWORD = re.compile(r"(://[^/\s:@]*:)[^@\s]{0,1000}@|(password=)('[^']*'|\S+)", re.IGNORECASE)


def shown_url(url: str) -> str:
    """A store's URL, safe to show: host, port and database, without user or password."""
    try:
        parts = conninfo.conninfo_to_dict(url)
    except psycopg.Error:
        return "postgresql://…"
    host = str(parts.get("host") or parts.get("hostaddr") or "localhost")
    host = f"[{host}]" if ":" in host and not host.startswith("[") else host
    return f"postgresql://{host}:{parts.get('port') or 5432}/{parts.get('dbname') or parts.get('user') or ''}"


def is_readable(url: str) -> bool:
    """Whether a URL parses as intended: with an unescaped / or @, part of a password becomes a host or a database."""
    try:
        parts = conninfo.conninfo_to_dict(url)
    except (psycopg.Error, UnicodeError):
        return False
    ports = str(parts.get("port") or "").replace(",", "")
    path = url.partition("://")[2].partition("?")[0].partition("/")[2]
    misread = "\0" in url or "@" in path or "@" in str(parts.get("host") or "")[1:]
    return not misread and (not ports or ports.isdigit())


def without_password(text: str) -> str:
    """A message of the driver with any password masked."""
    return _PASSWORD.sub(lambda found: f"{found.group(1)}***@" if found.group(1) else f"{found.group(2)}***", text)


@contextmanager
def translate_errors(where: str) -> Iterator[None]:
    """Turn errors of the driver into Engram's."""
    try:
        yield
    except EngramError:
        raise
    except (psycopg.Error, PoolTimeout) as error:
        raise to_engram_error(error, where) from error
    except UnicodeEncodeError as error:
        raise InvalidInput(
            f"the text contains half a surrogate pair, which cannot be stored ({error.reason}); remove it"
        ) from None


def to_engram_error(error: Exception, where: str) -> EngramError:
    """Convert an error of the driver to the error to raise."""
    message = _first_line(error)
    for kinds, make in _KINDS:
        if isinstance(error, kinds):
            return make(message, where)
    if isinstance(error, psycopg.OperationalError) and (error.sqlstate or "08")[:2] in ("08", "57"):
        return _connection_error(message, where)
    if isinstance(error, psycopg.DataError):
        return InvalidInput(f"Postgres cannot store this ({message}); nothing was written. Change or remove it")
    return StoreError(f"{where}: {message}")


def _first_line(error: Exception) -> str:
    text = without_password(str(error)).strip() or type(error).__name__
    diagnosis = getattr(error, "diag", None)
    return str(getattr(diagnosis, "message_primary", None) or " ".join(text.split()))


def _connection_error(message: str, where: str) -> StoreError:
    """The error for a failed connection; only the message gives the reason."""
    if "password" in message or "authentication" in message or "no pg_hba.conf entry" in message:
        return _login_error(message, where)
    if "does not exist" in message and ("database" in message or "role" in message):
        return StoreDenied(f"{where}: {message}; create it, or correct ENGRAM_URL")
    if "starting up" in message or "shutting down" in message or "recovery" in message:
        return StoreUnreachable(f"{where}: {message}; try again when the server has started")
    if "too many" in message or "connection slots" in message:
        return _too_many_connections_error(message, where)
    return StoreUnreachable(
        f"cannot reach {where}: {message}; check that the server is running and that ENGRAM_URL is correct"
    )


def _login_error(message: str, where: str) -> StoreDenied:
    return StoreDenied(f"{where}: {message}; check user and password (ENGRAM_URL, PGPASSWORD or ~/.pgpass)")


def _privilege_error(message: str, where: str) -> StoreDenied:
    return StoreDenied(f"{where}: {message}; docs/postgres.md shows how to grant the privileges Engram needs")


def _read_only_error(message: str, where: str) -> StoreReadOnly:
    return StoreReadOnly(f"{where} is read-only ({message}); send writes to the primary, a replica only answers reads")


def _busy_error(message: str, where: str) -> StoreBusy:
    return StoreBusy(f"{where}: {message}; nothing was written; try again")


def _conflict_error(message: str, where: str) -> StoreBusy:
    return StoreBusy(
        f"{where}: {message}; another writer took this number or name, which can happen after a failover. Nothing was written; "
        "try again"
    )


def _out_of_space_error(message: str, where: str) -> StoreError:
    return StoreError(f"{where}: {message}; nothing was written")


def _too_long_error(message: str, where: str) -> InvalidInput:
    return InvalidInput(f"{where}: {message}; a name, key or session id is too long; shorten it")


def _too_many_connections_error(message: str, where: str) -> StoreUnreachable:
    return StoreUnreachable(f"{where}: {message}; raise max_connections, or put a pooler in front of the server")


def _pool_error(message: str, where: str) -> StoreUnreachable:
    return StoreUnreachable(
        f"{where}: no connection became free in time ({message}); the server may be down or overloaded"
    )


def _missing_schema_error(message: str, where: str) -> StoreError:
    return StoreError(f"{where}: {message}; the schema is incomplete; `engram doctor` shows what is missing")


_KINDS = (
    ((errors.InvalidPassword, errors.InvalidAuthorizationSpecification), _login_error),
    ((errors.InsufficientPrivilege,), _privilege_error),
    ((errors.ReadOnlySqlTransaction,), _read_only_error),
    (
        (errors.LockNotAvailable, errors.QueryCanceled, errors.DeadlockDetected, errors.SerializationFailure),
        _busy_error,
    ),
    ((errors.UniqueViolation,), _conflict_error),
    ((errors.ProgramLimitExceeded,), _too_long_error),
    ((errors.DiskFull, errors.OutOfMemory), _out_of_space_error),
    ((errors.TooManyConnections,), _too_many_connections_error),
    (
        (errors.UndefinedTable, errors.UndefinedColumn, errors.UndefinedFunction, errors.UndefinedObject),
        _missing_schema_error,
    ),
    ((PoolTimeout,), _pool_error),
)


if TYPE_CHECKING:
    from engram.embedding.vectors import Vectors


_pack_head = struct.Struct(">iiIii").pack
_pack_size = struct.Struct(">i").pack


class Texts(list[str]):
    """A `text[]` parameter. A plain list works, too, at four times the cost: psycopg inspects each item."""

    def to_binary(self, element_oid: int, encoding: str) -> bytes:
        """The array in the server's own binary form."""
        parts = [_pack_head(1, 0, element_oid, len(self), 1)]
        for text in self:
            item = text.encode(encoding)
            parts += (_pack_size(len(item)), item)
        return b"".join(parts)


def register_texts(connection: "Connection") -> None:
    """Register `Texts` with a connection."""
    from psycopg.adapt import Dumper
    from psycopg.postgres import types
    from psycopg.pq import Format

    text, encoding = types["text"], connection.info.encoding

    class TextsDumper(Dumper):
        oid = text.array_oid
        format = Format.BINARY

        def dump(self, obj: Texts) -> bytes:
            return obj.to_binary(text.oid, encoding)

    connection.adapters.register_dumper(Texts, TextsDumper)


_HEADER = 4


class HalfVector:
    """One vector as a parameter, with the precision the server stores."""

    def __init__(self, vector: "Vectors") -> None:
        self.vector = vector

    def to_binary(self) -> bytes:
        """A halfvec: its length, an unused short, then big-endian halves."""
        return struct.pack(">hh", len(self.vector), 0) + self.vector.astype(">f2").tobytes()


class VectorArray:
    """Many vectors as one parameter, in binary form: a thousand cost as much as one as text."""

    def __init__(self, vectors: "Sequence[Vectors]") -> None:
        self.vectors = vectors

    def to_binary(self, element_oid: int) -> bytes:
        """A one-dimensional array of halfvec."""
        import numpy as np

        halves = np.stack(self.vectors).astype(">f2")
        count, dim = halves.shape
        items = np.empty(count, dtype=[("size", ">i4"), ("dim", ">i2"), ("unused", ">i2"), ("halves", ">f2", (dim,))])
        items["size"], items["dim"], items["unused"], items["halves"] = _HEADER + 2 * dim, dim, 0, halves
        return struct.pack(">iiIii", 1, 0, element_oid, count, 1) + items.tobytes()


def register_vectors(connection: "Connection") -> None:
    """Register `HalfVector` and `VectorArray` with a connection; the types' oids differ between databases."""
    from psycopg.adapt import Dumper
    from psycopg.pq import Format

    row = connection.execute("SELECT 'halfvec'::regtype::oid, 'halfvec[]'::regtype::oid").fetchone()
    assert row is not None
    element, array = row

    class HalfVectorDumper(Dumper):
        oid = element
        format = Format.BINARY

        def dump(self, obj: HalfVector) -> bytes:
            return obj.to_binary()

    class VectorArrayDumper(Dumper):
        oid = array
        format = Format.BINARY

        def dump(self, obj: VectorArray) -> bytes:
            return obj.to_binary(element)

    connection.adapters.register_dumper(HalfVector, HalfVectorDumper)
    connection.adapters.register_dumper(VectorArray, VectorArrayDumper)


def from_binary(data: bytes) -> "Vectors":
    """The vector of a binary halfvec: two shorts, then big-endian halves."""
    import numpy as np

    return np.frombuffer(data, dtype=">f2", offset=_HEADER).astype(np.float32)


def rows_of(found: "Sequence[bytes | None]", dim: int) -> "Vectors":
    """The vectors of halfvecs, one row each; zeros for missing ones."""
    import numpy as np

    empty = bytes(_HEADER + 2 * dim)
    data = b"".join([empty if item is None else item for item in found])
    shape = [("header", f"V{_HEADER}"), ("halves", ">f2", (dim,))]
    return np.frombuffer(data, dtype=shape)["halves"].astype(np.float32)


Connection = psycopg.Connection[tuple[Any, ...]]

CONNECT_SECONDS = 10
WAIT_SECONDS = 60
"""How long a call waits for a free connection; each is used for milliseconds only."""
MAX_CONNECTIONS = 10
FIRST_PAUSE, LONGEST_PAUSE = 0.25, 2.0
"""Seconds between attempts to reach a server that is down, growing and randomized by half."""
# Errors reach the caller as exceptions; without this, the pool would also print log lines to the terminal.
logging.getLogger("psycopg").addHandler(logging.NullHandler())
_KEPT_ALIVE: dict[str, Any] = {
    "connect_timeout": CONNECT_SECONDS,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
    "application_name": "engram",
}


Made = TypeVar("Made")


class Attempts:
    """A process's attempts to connect. After a failure they go one at a time, with pauses, until one succeeds.

    Many processes lose a server at the same moment, each with many connections. If they all reconnected at once, the server would
    have to refuse most of them just as it comes back.
    """

    def __init__(self) -> None:
        self.error: psycopg.Error | None = None
        """Why the last attempt failed; None after a success."""
        self._failures = 0
        self._turn, self._ended = threading.Lock(), threading.Event()

    def make(self, connect: Callable[[], Made]) -> Made:
        """Call `connect` when it is this attempt's turn, and return its result."""
        if not self._failures:
            return self._try_connect(connect)
        with self._turn:
            if self._failures:
                pause = min(FIRST_PAUSE * 2.0 ** min(self._failures - 1, 10), LONGEST_PAUSE)
                self._ended.wait(pause * random.uniform(0.5, 1.5))
            return self._try_connect(connect)

    def outside(self, url: str) -> Connection:
        """A connection outside of the pool, in autocommit mode."""
        return self.make(lambda: _connect(url))

    def _try_connect(self, connect: Callable[[], Made]) -> Made:
        try:
            made = connect()
        except psycopg.Error as error:
            self.error, self._failures = error, self._failures + 1
            raise
        self.error, self._failures = None, 0
        return made

    def end(self) -> None:
        """Stop waiting between attempts."""
        self._ended.set()


class PooledConnection(psycopg.Connection[tuple[Any, ...]]):
    """A connection of the pool, with a name of its own in the server's table of commits."""

    writer: str
    is_new_writer: bool
    """Whether this connection has not committed anything yet."""
    warning: str
    """The server's last warning, or ""."""
    attempts: Attempts
    """The pool's attempts; each pool makes a subclass for them."""

    def note_warning(self, notice: psycopg.errors.Diagnostic) -> None:
        """Keep a warning of the server."""
        self.warning = warning_in(notice) or self.warning

    @classmethod
    def connect(cls, conninfo: str = "", **given: Any) -> Self:
        """Connect when it is this attempt's turn."""
        plain = super().connect
        return cls.attempts.make(lambda: plain(conninfo, **given))


def connect(url: str) -> Connection:
    """A connection outside of any pool, in autocommit mode."""
    with translate_errors(shown_url(url)):
        return _connect(url)


def _connect(url: str) -> Connection:
    return psycopg.connect(url, autocommit=True, prepare_threshold=None, **_defaults(url))


def _defaults(url: str) -> dict[str, Any]:
    """Engram's connection settings, except those given in the URL."""
    given = psycopg.conninfo.conninfo_to_dict(url)
    return {key: value for key, value in _KEPT_ALIVE.items() if key not in given}


def warning_in(notice: psycopg.errors.Diagnostic) -> str:
    """The message of a warning, or "" for other notices."""
    return (notice.message_primary or "?") if notice.severity_nonlocalized == "WARNING" else ""


def is_pooled(connection: Connection) -> bool:
    """Whether a pooler is in between: then another process answers than the one that accepted the connection."""
    row = connection.execute("SELECT pg_backend_pid()").fetchone()
    return row is not None and row[0] != connection.info.backend_pid


def _configure(connection: PooledConnection) -> None:
    connection.writer, connection.is_new_writer, connection.warning = uuid.uuid4().hex, True, ""
    connection.add_notice_handler(connection.note_warning)
    if is_pooled(connection):
        # The next transaction may run in another server process, which lacks this one's prepared statements.
        connection.prepare_threshold = None
    register_vectors(connection)
    register_texts(connection)
    connection.commit()


class Connections:
    """The pool of one URL, opened by the first call and closed with the last store that uses it.

    A connection keeps no state between transactions, neither a tenant nor a setting, so any caller, or a pooler in
    between, may use it next.
    """

    def __init__(self, url: str) -> None:
        self._url, self.where = url, shown_url(url)
        self.users = 0
        self.opening = threading.Lock()
        """Locked while the schema is checked on a separate connection, before the pool has any."""
        self.is_open = False
        """Whether a store was opened with these connections."""
        self._lent = 0
        self._attempts = Attempts()
        self.pool: ConnectionPool[PooledConnection] = ConnectionPool(
            url,
            kwargs=_defaults(url),
            connection_class=type("PooledConnection", (PooledConnection,), {"attempts": self._attempts}),
            min_size=0,
            max_size=MAX_CONNECTIONS,
            max_idle=120,
            timeout=CONNECT_SECONDS,
            reconnect_timeout=CONNECT_SECONDS,
            num_workers=1,
            configure=_configure,
            open=True,
        )

    def take(self) -> PooledConnection:
        """A connection; waits while all are in use, and raises the reason if the server cannot be reached."""
        deadline = time.monotonic() + WAIT_SECONDS
        while True:
            try:
                connection = self.pool.getconn()
            except PoolClosed:
                raise StoreClosed(f"the store on {self.where} is closed; open it again with `Engram.open()`") from None
            except PoolTimeout as late:
                if not self._lent or time.monotonic() > deadline:
                    # The pool's own error lacks the reason, which the last attempt to connect has.
                    raise to_engram_error(self._attempts.error or late, self.where) from late
            else:
                with _lock:
                    self._lent += 1
                return connection

    def close(self) -> None:
        """Close the pool. Connections in use close when they are given back."""
        self._attempts.end()
        self.pool.close()

    def give_back(self, connection: PooledConnection) -> None:
        """Return a connection to the pool; a closed pool closes it."""
        with _lock:
            self._lent -= 1
        self.pool.putconn(connection)


_lock = threading.Lock()
_by_url: dict[str, Connections] = {}
_inherited: list[dict[str, Connections]] = []
"""Pools of the parent process: a forked child must not even finalize their connections."""


def _reset_after_fork() -> None:
    """Forget the parent's locks, which may be locked for ever, and its pools, whose connections are not ours."""
    global _lock, _by_url
    _inherited.append(_by_url)
    _lock, _by_url = threading.Lock(), {}


os.register_at_fork(before=wait_for_imports, after_in_child=_reset_after_fork)


def acquire_connections(url: str) -> Connections:
    """This process's connections to a URL; each caller calls `release_connections` once."""
    with _lock:
        found = _by_url.get(url)
        if found is None:
            found = _by_url[url] = Connections(url)
        found.users += 1
        return found


def release_connections(connections: Connections) -> None:
    """End a caller's use; the last one closes the pool."""
    with _lock:
        connections.users -= 1
        if connections.users:
            return
        for url in [url for url, known in _by_url.items() if known is connections]:
            del _by_url[url]
    connections.close()
