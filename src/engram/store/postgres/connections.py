"""Connections to a server: one pool for each URL and process, shared by every tenant the process serves.

A connection carries nothing from one transaction to the next, neither a tenant nor a setting, so whoever comes next may have it;
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
from engram.store.postgres import adapters
from engram.store.postgres.errors import explained, explanation, shown_url

Connection = psycopg.Connection[tuple[Any, ...]]

CONNECT_SECONDS = 10
WAIT_SECONDS = 60
"""How long a call waits for a connection that others use; each of them has one for milliseconds."""
MOST_CONNECTIONS = 10
FIRST_PAUSE, LONGEST_PAUSE = 0.25, 2.0
"""Seconds between two attempts of a process to reach a server that is away, growing; each half as long again or as short."""
# Errors reach the caller as exceptions; the pool's log lines would only appear between them, on the user's terminal.
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
    """A process's attempts to connect. After one that failed they go one at a time, with pauses, until one succeeds.

    Many processes lose a server at the same moment, each with many connections. If each of these were tried again at once, or all
    of them in step, the server would have to turn most of them away just when it comes back.
    """

    def __init__(self) -> None:
        self.error: psycopg.Error | None = None
        """Why the last one failed; None after one that succeeded."""
        self._failures = 0
        self._turn, self._ended = threading.Lock(), threading.Event()

    def make(self, connect: Callable[[], Made]) -> Made:
        """What `connect` makes, when it is this attempt's turn."""
        if not self._failures:
            return self._made(connect)
        with self._turn:
            if self._failures:
                pause = min(FIRST_PAUSE * 2.0 ** min(self._failures - 1, 10), LONGEST_PAUSE)
                self._ended.wait(pause * random.uniform(0.5, 1.5))
            return self._made(connect)

    def outside(self, url: str) -> Connection:
        """A connection outside of the pool, committing each statement by itself."""
        return self.make(lambda: _connect(url))

    def _made(self, connect: Callable[[], Made]) -> Made:
        try:
            made = connect()
        except psycopg.Error as error:
            self.error, self._failures = error, self._failures + 1
            raise
        self.error, self._failures = None, 0
        return made

    def end(self) -> None:
        """Nobody waits any longer."""
        self._ended.set()


class PooledConnection(psycopg.Connection[tuple[Any, ...]]):
    """A connection of the pool, known to the server's table of commits by a name of its own."""

    writer: str
    is_new_writer: bool
    """Whether nothing was committed by this name yet."""
    warning: str
    """What the server has warned of last, or ""."""
    attempts: Attempts
    """Those of its pool, which has a class of its own for them."""

    def hear(self, notice: psycopg.errors.Diagnostic) -> None:
        """Keep what the server warns of."""
        self.warning = warning_in(notice) or self.warning

    @classmethod
    def connect(cls, conninfo: str = "", **given: Any) -> Self:
        """As any other, when it is this attempt's turn."""
        plain = super().connect
        return cls.attempts.make(lambda: plain(conninfo, **given))


def connect(url: str) -> Connection:
    """One connection outside of any pool, committing each statement by itself."""
    with explained(shown_url(url)):
        return _connect(url)


def _connect(url: str) -> Connection:
    return psycopg.connect(url, autocommit=True, prepare_threshold=None, **_defaults(url))


def _defaults(url: str) -> dict[str, Any]:
    """Engram's own connection settings, where the URL does not say otherwise."""
    given = psycopg.conninfo.conninfo_to_dict(url)
    return {key: value for key, value in _KEPT_ALIVE.items() if key not in given}


def warning_in(notice: psycopg.errors.Diagnostic) -> str:
    """What a notice warns of, or ""."""
    return (notice.message_primary or "?") if notice.severity_nonlocalized == "WARNING" else ""


def is_pooled(connection: Connection) -> bool:
    """Whether a pooler stands between here and the server: it names another process than the one that answers."""
    row = connection.execute("SELECT pg_backend_pid()").fetchone()
    return row is not None and row[0] != connection.info.backend_pid


def _configure(connection: PooledConnection) -> None:
    connection.writer, connection.is_new_writer, connection.warning = uuid.uuid4().hex, True, ""
    connection.add_notice_handler(connection.hear)
    if is_pooled(connection):
        # The next transaction may be another server process's, which knows nothing of what was prepared by this one.
        connection.prepare_threshold = None
    adapters.register_vectors(connection)
    adapters.register_texts(connection)
    connection.commit()


class Connections:
    """The pool of one URL. It opens with the first call, and closes with the last store that uses it."""

    def __init__(self, url: str) -> None:
        self._url, self.where = url, shown_url(url)
        self.users = 0
        self.opening = threading.Lock()
        """Held by the one who looks at the schema on a connection of its own, before the pool has any."""
        self.is_open = False
        """Whether a store was opened with these connections."""
        self._lent = 0
        self._attempts = Attempts()
        self.pool: ConnectionPool[PooledConnection] = ConnectionPool(
            url,
            kwargs=_defaults(url),
            connection_class=type("PooledConnection", (PooledConnection,), {"attempts": self._attempts}),
            min_size=0,
            max_size=MOST_CONNECTIONS,
            max_idle=120,
            timeout=CONNECT_SECONDS,
            reconnect_timeout=CONNECT_SECONDS,
            num_workers=1,
            configure=_configure,
            open=True,
        )

    def take(self) -> PooledConnection:
        """A connection. While others have them all, wait for one; where nobody has any, say why."""
        deadline = time.monotonic() + WAIT_SECONDS
        while True:
            try:
                connection = self.pool.getconn()
            except PoolClosed:
                raise StoreClosed(f"the store on {self.where} is closed; open it again with `Engram.open()`") from None
            except PoolTimeout as late:
                if not self._lent or time.monotonic() > deadline:
                    # The pool does not say why; its last attempt to connect does.
                    raise explanation(self._attempts.error or late, self.where) from late
            else:
                with _lock:
                    self._lent += 1
                return connection

    def close(self) -> None:
        """Close the pool. Connections in use close when they are given back."""
        self._attempts.end()
        self.pool.close()

    def give_back(self, connection: PooledConnection) -> None:
        """To the pool; one that was closed meanwhile closes the connection, too."""
        with _lock:
            self._lent -= 1
        self.pool.putconn(connection)


_lock = threading.Lock()
_by_url: dict[str, Connections] = {}
_inherited: list[dict[str, Connections]] = []
"""Of the process this one was forked from: their connections must not even be finalized here."""


def _begin_anew() -> None:
    """A forked child has its parent's locks, maybe held for ever, and its pools, whose connections are the parent's."""
    global _lock, _by_url
    _inherited.append(_by_url)
    _lock, _by_url = threading.Lock(), {}


os.register_at_fork(after_in_child=_begin_anew)


def shared(url: str) -> Connections:
    """The connections of this process to a URL; whoever asks lets go of them once with `release`."""
    with _lock:
        found = _by_url.get(url)
        if found is None:
            found = _by_url[url] = Connections(url)
        found.users += 1
        return found


def release(connections: Connections) -> None:
    """Let go; the last one closes the pool."""
    with _lock:
        connections.users -= 1
        if connections.users:
            return
        for url in [url for url, known in _by_url.items() if known is connections]:
            del _by_url[url]
    connections.close()
