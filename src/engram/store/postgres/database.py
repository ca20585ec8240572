"""Connections to the server: pooled, each transaction told its tenant and its deadlines, none left open."""

import contextlib
import os
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any

import psycopg
from psycopg_pool import ConnectionPool, PoolTimeout

from engram.model.errors import StoreError, StoreUnreachable, UnknownVersion
from engram.store.postgres.explaining import explained, explanation, shown_url
from engram.store.postgres.migrating import LATEST
from engram.store.postgres.sql import statement
from engram.store.postgres.vectors import register

Connection = psycopg.Connection[tuple[Any, ...]]
Row = tuple[Any, ...]

CONNECT_SECONDS = 10
STATEMENT_SECONDS = 60
LOCK_SECONDS = 20
"""How long a decision waits for those before it; each takes milliseconds."""
SETTLE_SECONDS = 20
"""How long to ask what became of a commit whose answer never came."""
MOST_CONNECTIONS = 10
_KEPT_ALIVE: dict[str, Any] = {
    "connect_timeout": CONNECT_SECONDS,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
    "application_name": "engram",
}


def connect(url: str) -> Connection:
    """One connection outside of any pool, committing each statement by itself."""
    with explained(shown_url(url)):
        return psycopg.connect(url, autocommit=True, **_defaults(url))


def _defaults(url: str) -> dict[str, Any]:
    """Engram's own connection settings, where the URL does not say otherwise."""
    given = psycopg.conninfo.conninfo_to_dict(url)
    return {key: value for key, value in _KEPT_ALIVE.items() if key not in given}


def _configured(connection: Connection) -> None:
    register(connection)
    connection.commit()


class Database:
    """One tenant's way to the server. Inside a transaction of this thread, every call takes part in it."""

    def __init__(self, url: str, tenant: str, connections: int = MOST_CONNECTIONS) -> None:
        self._url, self.tenant, self._connections = url, tenant, connections
        self.where = shown_url(url)
        self._mine = threading.local()
        self._opening = threading.Lock()
        self._pool: ConnectionPool[Connection] | None = None
        self._pid = os.getpid()

    @property
    def pool(self) -> ConnectionPool[Connection]:
        """The pool; a forked child makes its own, since two processes cannot share a connection."""
        with self._opening:
            if self._pool is None or self._pid != os.getpid():
                self._mine = threading.local()
                self._pid = os.getpid()
                self._pool = ConnectionPool(
                    self._url,
                    kwargs=_defaults(self._url),
                    min_size=0,
                    max_size=self._connections,
                    max_idle=120,
                    timeout=CONNECT_SECONDS,
                    reconnect_timeout=CONNECT_SECONDS,
                    num_workers=1,
                    configure=_configured,
                    open=True,
                )
            return self._pool

    def close(self) -> None:
        """Let go of every connection."""
        if self._pool is not None and self._pid == os.getpid():
            self._pool.close()
        self._pool = None

    # -- transactions

    @contextlib.contextmanager
    def transaction(self, *, durable: bool = True) -> Iterator[Connection]:
        """A transaction of this tenant; committed at the end, rolled back on an error.

        `durable=False` does not wait for the disk: for uses and statistics, whose loss costs nothing that was promised.
        """
        current: Connection | None = getattr(self._mine, "connection", None)
        if current is not None:
            with explained(self.where):
                yield current
            return
        with explained(self.where):
            connection = self._begun(durable)
            self._mine.connection, process = connection, os.getpid()
            try:
                yield connection
                if os.getpid() != process:
                    raise StoreError("a forked child cannot commit its parent's decision; open the store anew there")
                self._commit(connection)
            except BaseException:
                if os.getpid() == process:
                    with contextlib.suppress(psycopg.Error):
                        connection.rollback()
                raise
            finally:
                self._mine.connection = None
                if os.getpid() == process:
                    self.pool.putconn(connection)

    def _begun(self, durable: bool) -> Connection:
        """A connection with a transaction begun on it; one that died while it was idle is thrown away."""
        for _ in range(self._connections + 1):
            connection = self._taken()
            try:
                row = connection.execute(statement("begin"), self._beginning(durable), prepare=True).fetchone()
            except psycopg.OperationalError:
                dead = connection.closed
                self.pool.putconn(connection)
                if not dead:
                    raise
                continue
            except BaseException:
                self.pool.putconn(connection)
                raise
            self._check_version(connection, row)
            return connection
        raise StoreUnreachable(f"cannot reach {self.where}: every connection broke; is the server running?")

    def _taken(self) -> Connection:
        try:
            return self.pool.getconn()
        except PoolTimeout:
            # The pool does not say why; a connection of our own does.
            connect(self._url).close()
            raise

    def _beginning(self, durable: bool) -> dict[str, str]:
        return {
            "tenant": self.tenant,
            "statement_timeout": f"{STATEMENT_SECONDS}s",
            "lock_timeout": f"{LOCK_SECONDS}s",
            "idle_timeout": f"{2 * STATEMENT_SECONDS}s",
            "synchronous": "on" if durable else "off",
        }

    def _check_version(self, connection: Connection, row: Row | None) -> None:
        version = row[0] if row else None
        if version is not None and version > LATEST:
            connection.rollback()
            self.pool.putconn(connection)
            raise UnknownVersion(
                f"{self.where} has schema {version}; this Engram knows up to {LATEST}. Update Engram on this machine"
            )

    def _commit(self, connection: Connection) -> None:
        """Commit; when the connection breaks before the answer, ask the server what became of it."""
        row = connection.execute("SELECT pg_current_xact_id_if_assigned()::text").fetchone()
        xid = row[0] if row else None
        try:
            connection.commit()
        except psycopg.OperationalError as error:
            if xid is None or not connection.closed or not self._was_committed(xid, error):
                raise

    def _was_committed(self, xid: str, error: psycopg.OperationalError) -> bool:
        deadline = time.monotonic() + SETTLE_SECONDS
        while time.monotonic() < deadline:
            with (
                contextlib.suppress(psycopg.OperationalError),
                psycopg.connect(self._url, autocommit=True, **_defaults(self._url)) as asking,
            ):
                row = asking.execute("SELECT pg_xact_status(%s::xid8)", (xid,)).fetchone()
                status = row[0] if row else None
                if status == "committed":
                    return True
                if status == "aborted":
                    return False
            time.sleep(0.2)
        raise StoreUnreachable(
            f"{explanation(error, self.where)}; the answer to the commit never came: "
            "whether it was written can be seen when the server is back"
        ) from error

    @property
    def in_transaction(self) -> bool:
        """Whether this thread has a transaction open."""
        return getattr(self._mine, "connection", None) is not None

    def is_replica(self, connection: Connection) -> bool:
        """Whether the server only follows another."""
        return bool(self.within(connection, "SELECT pg_is_in_recovery()", {})[0][0])

    def vacuum(self, tables: Sequence[str]) -> None:
        """Let the space of deleted rows be reused. Outside of any transaction, and only for the tables' owner."""
        with connect(self._url) as connection, explained(self.where):
            connection.execute("SET statement_timeout = '300s'")
            names = ", ".join(f"engram.{table}" for table in tables)
            connection.execute(f"VACUUM (SKIP_LOCKED) {names}".encode())

    # -- statements

    def run(self, name: str, /, **values: Any) -> list[Row]:
        """All rows of a named statement."""
        with self.transaction() as connection:
            return self.within(connection, statement(name), values)

    def query(self, text: str, values: dict[str, Any]) -> list[Row]:
        """All rows of a statement put together from the files' text."""
        with self.transaction() as connection:
            return self.within(connection, text, values)

    def within(self, connection: Connection, text: str, values: dict[str, Any]) -> list[Row]:
        """All rows of a statement in a transaction already open."""
        cursor = connection.execute(text, {"tenant": self.tenant, **values})
        return cursor.fetchall() if cursor.description is not None else []

    def all_of(self, connection: Connection, work: Sequence[tuple[str, dict[str, Any]]]) -> None:
        """Run statements without waiting for each one's answer."""
        with connection.pipeline():
            for name, values in work:
                connection.execute(statement(name), {"tenant": self.tenant, **values})
