"""Connections to the server: pooled, each transaction told its tenant and its deadlines, none left open."""

import contextlib
import logging
import os
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any

import psycopg
from psycopg import sql
from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout

from engram.model.arguments import half_character
from engram.model.errors import StoreClosed, StoreError, StoreUnreachable, UnknownVersion
from engram.store.postgres import texts, vectors
from engram.store.postgres.explaining import explained, explanation, shown_url
from engram.store.postgres.migrating import LATEST
from engram.store.postgres.sql import statement

Connection = psycopg.Connection[tuple[Any, ...]]
Row = tuple[Any, ...]
Asking = tuple[str | sql.Composed, dict[str, Any]]
"""A statement and its values."""

CONNECT_SECONDS = 10
STATEMENT_SECONDS = 60
LOCK_SECONDS = 20
"""How long a decision waits for those before it; each takes milliseconds."""
LONGEST_HOURS = 6
"""How long making an index or a vacuum may take."""
SETTLE_SECONDS = 20
"""How long to ask what became of a commit whose answer never came."""
MOST_CONNECTIONS = 10
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


def connect(url: str) -> Connection:
    """One connection outside of any pool, committing each statement by itself."""
    with explained(shown_url(url)):
        return psycopg.connect(url, autocommit=True, **_defaults(url))


def _defaults(url: str) -> dict[str, Any]:
    """Engram's own connection settings, where the URL does not say otherwise."""
    given = psycopg.conninfo.conninfo_to_dict(url)
    return {key: value for key, value in _KEPT_ALIVE.items() if key not in given}


def _configured(connection: Connection) -> None:
    vectors.register(connection)
    texts.register(connection)
    connection.commit()


class Database:
    """One tenant's way to the server. Inside a transaction of this thread, every call takes part in it."""

    def __init__(self, url: str, tenant: str, connections: int = MOST_CONNECTIONS) -> None:
        self._url, self.tenant, self._connections = url, tenant, connections
        self.where = shown_url(url)
        self._mine = threading.local()
        self._opening = threading.Lock()
        self._pool: ConnectionPool[Connection] | None = None
        self._inherited: ConnectionPool[Connection] | None = None
        self._pid = os.getpid()
        self._is_closed = False

    @property
    def pool(self) -> ConnectionPool[Connection]:
        """The pool; a forked child makes its own, since two processes cannot share a connection."""
        if self._pid != os.getpid():
            self._begin_anew()
        with self._opening:
            if self._is_closed:
                raise StoreClosed(f"the store on {self.where} is closed; open it again with `Engram.open()`")
            if self._pool is None:
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

    def _begin_anew(self) -> None:
        """A forked child has its parent's locks, maybe held for ever, and its pool, which must not even be finalized."""
        self._mine, self._opening = threading.local(), threading.Lock()
        self._inherited, self._pool, self._pid = self._pool, None, os.getpid()

    def close(self) -> None:
        """Let go of every connection; those in use when they are given back. Every later call raises `StoreClosed`."""
        if self._pid != os.getpid():
            self._begin_anew()
        with self._opening:
            self._is_closed, pool, self._pool = True, self._pool, None
        if pool is not None:
            pool.close()

    # -- transactions

    @contextlib.contextmanager
    def transaction(self, *, durable: bool = True) -> Iterator[Connection]:
        """A transaction of this tenant; committed at the end, rolled back on an error.

        `durable=False` does not wait for the disk: for uses and statistics, whose loss costs nothing that was promised.
        """
        with self._taking_part(durable) as connection:
            self._mine.writes = True
            yield connection

    @contextlib.contextmanager
    def reading(self) -> Iterator[Connection]:
        """Some reads in one transaction: one beginning and one end for all of them."""
        with self._taking_part(durable=True) as connection:
            yield connection

    @contextlib.contextmanager
    def _taking_part(self, durable: bool) -> Iterator[Connection]:
        current = self._current
        if current is not None:
            with explained(self.where):
                yield current
            return
        with explained(self.where):
            connection = self._begun(durable)
            process = os.getpid()
            self._mine.connection, self._mine.writes, self._mine.process = connection, False, process
            try:
                yield connection
                self._refuse_forked(connection)
                self._commit(connection)
            except BaseException:
                if os.getpid() == process:
                    with contextlib.suppress(psycopg.Error):
                        connection.rollback()
                raise
            finally:
                self._mine.connection = None
                if os.getpid() == process:
                    self._give_back(connection)

    def _give_back(self, connection: Connection) -> None:
        """To the pool; another thread may have closed that meanwhile."""
        pool = self._pool
        if pool is not None:
            pool.putconn(connection)
        else:
            connection.close()

    def _begun(self, durable: bool) -> Connection:
        """A connection with a transaction begun on it; one that died while it was idle is thrown away."""
        for _ in range(self._connections + 1):
            connection = self._taken()
            try:
                with connection.pipeline():
                    cursor = connection.execute(statement("begin"), self._beginning(durable), prepare=True)
                row = cursor.fetchone()
            except psycopg.OperationalError:
                dead = connection.closed
                self._give_back(connection)
                if not dead:
                    raise
                continue
            except BaseException:
                self._give_back(connection)
                raise
            self._check_version(connection, row)
            return connection
        raise StoreUnreachable(f"cannot reach {self.where}: every connection broke; is the server running?")

    def _taken(self) -> Connection:
        try:
            return self.pool.getconn()
        except PoolClosed:
            return self.pool.getconn()  # closed by another thread just now, which this says
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
            self._give_back(connection)
            raise UnknownVersion(
                f"{self.where} has schema {version}; this Engram knows up to {LATEST}. Update Engram on this machine"
            )

    def _commit(self, connection: Connection) -> None:
        """Commit; when the connection breaks before the answer, ask the server what became of it."""
        transaction = connection.execute(statement("about_to_commit")).fetchone() if self._mine.writes else None
        try:
            connection.commit()
        except psycopg.OperationalError as error:
            lost = connection.closed and transaction is not None and transaction[0] is not None
            if not lost or not self._was_committed(transaction, error):
                raise

    def _was_committed(self, transaction: Row | None, error: psycopg.OperationalError) -> bool:
        """What became of a transaction: its number, and since when the server runs.

        A server that crashed since may have given the number to another: then only "aborted" can be believed.
        """
        number, *running = transaction or ()
        deadline = time.monotonic() + SETTLE_SECONDS
        while time.monotonic() < deadline:
            with (
                contextlib.suppress(psycopg.OperationalError),
                psycopg.connect(self._url, autocommit=True, **_defaults(self._url)) as asking,
            ):
                try:
                    status, *still = asking.execute(statement("what_became"), {"number": number}).fetchone() or ("",)
                except psycopg.errors.InvalidParameterValue:
                    return False  # a number yet to be given: the server has lost what it had not written
                if status == "aborted":
                    return False
                if status == "committed":
                    if still == running:
                        return True
                    break
            time.sleep(0.2)
        raise StoreUnreachable(
            f"{explanation(error, self.where)}; the answer to the commit never came: "
            "whether it was written can be seen when the server is back"
        ) from error

    @property
    def in_transaction(self) -> bool:
        """Whether this thread has a transaction open."""
        return self._current is not None

    @property
    def _current(self) -> Connection | None:
        """The connection of this thread's transaction; not one on which a parent process decides."""
        mine: Connection | None = getattr(self._mine, "connection", None)
        return mine if mine is not None and self._mine.process == os.getpid() else None

    def _refuse_forked(self, connection: Connection) -> None:
        if self._current is not connection:
            raise StoreError("a forked child cannot take part in its parent's decision; begin one of its own there")

    def is_replica(self, connection: Connection) -> bool:
        """Whether the server only follows another."""
        return bool(self.within(connection, "SELECT pg_is_in_recovery()", {})[0][0])

    @contextlib.contextmanager
    def alone(self) -> Iterator[Connection]:
        """A connection outside of any transaction, for long work on whole tables that only their owner may do."""
        with connect(self._url) as connection, explained(self.where):
            connection.execute(f"SET statement_timeout = '{LONGEST_HOURS}h'".encode())
            connection.execute(f"SET lock_timeout = '{LOCK_SECONDS}s'".encode())
            yield connection

    def vacuum(self, tables: Sequence[str]) -> None:
        """Let the space of deleted rows be reused."""
        with self.alone() as connection:
            names = ", ".join(f"engram.{table}" for table in tables)
            connection.execute(f"VACUUM (SKIP_LOCKED) {names}".encode())

    # -- statements

    def run(self, name: str, /, **values: Any) -> list[Row]:
        """All rows of a named statement that only reads."""
        with self.reading() as connection:
            return self.within(connection, statement(name), values)

    def change(self, name: str, /, **values: Any) -> list[Row]:
        """Carry out a named statement that writes."""
        with self.transaction() as connection:
            return self.within(connection, statement(name), values)

    def query(self, text: str, values: dict[str, Any]) -> list[Row]:
        """All rows of a statement put together from the files' text; one that only reads."""
        with self.reading() as connection:
            return self.within(connection, text, values)

    def within(self, connection: Connection, text: str, values: dict[str, Any]) -> list[Row]:
        """All rows of a statement in a transaction already open."""
        self._refuse_forked(connection)
        # It would look like a statement without rows.
        assert not connection.pgconn.pipeline_status, "in pipeline mode nothing is known of an answer before the end"
        try:
            cursor = connection.execute(text, {"tenant": self.tenant, **values})
        except UnicodeEncodeError as error:
            raise half_character(error) from None
        return cursor.fetchall() if cursor.description is not None else []

    def answers(self, connection: Connection, asked: Sequence[Asking]) -> list[list[Row]]:
        """The rows of each of these statements, all of them asked in one round trip; a statement put together is not prepared.

        Values arrive in the server's binary form: a halfvec is bytes.
        """
        self._refuse_forked(connection)
        cursors = []
        try:
            with connection.pipeline() if len(asked) > 1 else contextlib.nullcontext():
                for text, values in asked:
                    prepare = False if isinstance(text, sql.Composed) else None
                    given = {"tenant": self.tenant, **values}
                    cursors.append(connection.execute(text, given, prepare=prepare, binary=True))
        except UnicodeEncodeError as error:
            raise half_character(error) from None
        return [cursor.fetchall() if cursor.description is not None else [] for cursor in cursors]

    def all_of(self, connection: Connection, work: Sequence[tuple[str, dict[str, Any]]]) -> None:
        """Run statements without waiting for each one's answer."""
        # Before the pipeline: leaving one reads from a connection, and a forked child's is its parent's.
        self._refuse_forked(connection)
        with connection.pipeline():
            self.send(connection, work)

    def send(self, connection: Connection, work: Sequence[tuple[str, dict[str, Any]]]) -> None:
        """Send statements to a connection in pipeline mode; what became of them is known when that ends."""
        self._refuse_forked(connection)
        for name, values in work:
            connection.execute(statement(name), {"tenant": self.tenant, **values})
