"""Connections to a server: one pool for each URL and process, shared by every tenant the process serves.

A connection carries nothing from one transaction to the next, neither a tenant nor a setting, so any caller may use it next;
a pooler between here and the server may do the same.
"""

import logging
import os
import random
import threading
import time
import uuid
from collections.abc import Callable
from typing import Any, Self, TypeVar

import psycopg
from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout

from engram.model.errors import StoreClosed
from engram.model.forks import wait_for_imports
from engram.store.postgres import adapters
from engram.store.postgres.errors import shown_url, to_engram_error, translate_errors

Connection = psycopg.Connection[tuple[Any, ...]]

CONNECT_SECONDS = 10
WAIT_SECONDS = 60
"""How long a call waits for a free connection; each is in use for milliseconds."""
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
    adapters.register_vectors(connection)
    adapters.register_texts(connection)
    connection.commit()


class Connections:
    """The pool of one URL, opened by the first call and closed with the last store that uses it."""

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
                    # The pool's own error lacks the reason; the last attempt to connect has it.
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
