"""One tenant's transactions on a server: each told its tenant and its deadlines, each commit settled, none left open."""

import contextlib
import os
import random
import re
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any, TypeVar

import psycopg
from psycopg import sql

from engram.model.arguments import half_character
from engram.model.errors import EngramError, StoreClosed, StoreError, StoreUnreachable, UnknownVersion
from engram.store.postgres.connections import (
    MOST_CONNECTIONS,
    Connection,
    Connections,
    PooledConnection,
    connect,
    is_pooled,
    release,
    shared,
    warning_in,
)
from engram.store.postgres.errors import explained, explanation, shown_url
from engram.store.postgres.schema import LATEST
from engram.store.postgres.sql import statement

Row = tuple[Any, ...]
BoundStatement = tuple[str | sql.Composed, dict[str, Any]]
"""A statement and its values."""
Answer = TypeVar("Answer")

STATEMENT_SECONDS = 60
LOCK_SECONDS = 20
"""How long a decision waits for those before it; each takes milliseconds."""
LONGEST_HOURS = 6
"""How long making an index or a vacuum may take."""
SETTLE_SECONDS = 60
"""How long to ask what became of a commit whose answer never came: a standby needs some of it to take over."""
FIRST_LOOK, LONGEST_LOOK = 0.05, 2.0
"""Seconds between two times of asking, growing: hundreds of clients may ask a server that has just come back."""
FORGOTTEN_DAYS, FORGET_EVERY = 1, 64
"""How old a writer's last commit is when it is forgotten, and how many new writers there are for each time of looking."""
NUMBERED = {"next_numbers": "last_document", "next_decisions": "last_seq", "next_uses": "last_position"}
"""The statements that take numbers from a sequence, and those that ask for the highest in use."""
MOST_PASSED = 1_000_000
_WRITES = re.compile(r"\b(?:INSERT INTO|UPDATE|DELETE FROM)\s+engram\.", re.IGNORECASE)


class Database:
    """One tenant's way to the server. Inside a transaction of this thread, every call takes part in it."""

    def __init__(self, url: str, tenant: str) -> None:
        self._url, self.tenant = url, tenant
        self.where = shown_url(url)
        self._mine = threading.local()
        self._opening = threading.Lock()
        self._shared: Connections | None = None
        self._pid = os.getpid()
        self._is_closed = False
        self._settings = _settings(tenant)

    @property
    def connections(self) -> Connections:
        """This process's connections to the server; a forked child has its own, since two processes cannot share one."""
        if self._pid != os.getpid():
            self._begin_anew()
        with self._opening:
            if self._is_closed:
                raise StoreClosed(f"the store on {self.where} is closed; open it again with `Engram.open()`")
            if self._shared is None:
                self._shared = shared(self._url)
            return self._shared

    def _begin_anew(self) -> None:
        self._mine, self._opening = threading.local(), threading.Lock()
        self._shared, self._pid = None, os.getpid()

    def close(self) -> None:
        """Let go of the connections; one in use when it is given back. Every later call raises `StoreClosed`."""
        if self._pid != os.getpid():
            self._begin_anew()
        with self._opening:
            self._is_closed, held, self._shared = True, self._shared, None
        if held is not None:
            release(held)

    # -- transactions

    @contextlib.contextmanager
    def transaction(self, *, durable: bool = True) -> Iterator[Connection]:
        """A transaction of this tenant; committed at the end, rolled back on an error.

        `durable=False` does not wait for the disk: for uses and statistics, whose loss costs nothing that was promised.
        """
        with self._taking_part(durable) as connection:
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
            connections = self.connections
            connection = self._begun(connections, durable)
            process = os.getpid()
            self._mine.connection, self._mine.wrote, self._mine.process = connection, False, process
            try:
                yield connection
                self._refuse_forked(connection)
                self._commit(connection)
            except BaseException as error:
                if os.getpid() == process:
                    with contextlib.suppress(psycopg.Error):
                        connection.rollback()
                        if isinstance(error, psycopg.errors.UniqueViolation):
                            self._pass_numbers_in_use(connection)
                raise
            finally:
                self._mine.connection = None
                if os.getpid() == process:
                    connections.give_back(connection)

    def _begun(self, connections: Connections, durable: bool) -> PooledConnection:
        """A connection with a transaction begun on it."""
        settings = self._settings if durable else (*self._settings, _HASTY)

        def begin(taken: PooledConnection) -> None:
            self._check_version(_begin(taken, settings))

        return self._first_answer(connections, begin)[0]

    def _check_version(self, newer: Row | None) -> None:
        if newer is not None:
            raise UnknownVersion(
                f"{self.where} has schema {newer[0]}; this Engram knows up to {LATEST}. Update Engram on this machine"
            )

    def _first_answer(
        self, connections: Connections, ask: Callable[[PooledConnection], Answer]
    ) -> tuple[PooledConnection, Answer]:
        """A connection and its answer to a first question; one that died while it was idle is thrown away."""
        for _ in range(MOST_CONNECTIONS + 1):
            connection = connections.take()
            try:
                return connection, ask(connection)
            except BaseException as error:
                died = connection.closed and isinstance(error, psycopg.OperationalError)
                with contextlib.suppress(psycopg.Error):
                    connection.rollback()
                connections.give_back(connection)
                if not died:
                    raise
        raise StoreUnreachable(f"cannot reach {self.where}: every connection broke; is the server running?")

    def _commit(self, connection: PooledConnection) -> None:
        """Commit; when the answer does not come, ask the server what became of it.

        A warning is no answer either: told to wait for its standby no longer, the server calls a commit done that only it holds.
        """
        if not self._mine.wrote:
            connection.commit()
            return
        token = secrets.token_hex(16)
        noted = {"tenant": self.tenant, "writer": connection.writer, "token": token}
        connection.execute(statement("note_commit"), noted, prepare=True)
        connection.warning, lost = "", None
        try:
            connection.commit()
        except psycopg.OperationalError as error:
            lost = error
        if connection.warning:
            lost = psycopg.OperationalError(connection.warning)
        if lost is not None and not self._was_committed(connection, token, lost):
            raise lost
        if connection.is_new_writer:
            connection.is_new_writer = False
            if random.randrange(FORGET_EVERY) == 0:
                self._forget_writers(connection)

    def _was_committed(self, lost: PooledConnection, token: str, error: psycopg.OperationalError) -> bool:
        """Whether a transaction was committed, asked until a server answers.

        The question writes to the row that the transaction wrote: so it waits for a commit that is still under way, and where
        commits wait for a standby, the answer has reached it, too.
        """
        deadline, pause = time.monotonic() + SETTLE_SECONDS, FIRST_LOOK
        while time.monotonic() < deadline:
            with contextlib.suppress(EngramError, psycopg.Error):
                found = self._last_token(lost)
                if found is not None:
                    return found == token
            time.sleep(pause * random.uniform(0.5, 1))
            pause = min(2 * pause, LONGEST_LOOK)
        raise StoreUnreachable(
            f"{explanation(error, self.where)}; the answer to the commit never came: "
            "whether it was written can be seen when the server is back"
        ) from error

    def _last_token(self, lost: PooledConnection) -> str | None:
        """The token of the last transaction a connection has committed, "" for none; None where that is no answer."""
        warnings: list[str] = []
        with lost.attempts.outside(self._url) as asking:
            asking.add_notice_handler(lambda notice: warnings.append(warning_in(notice)))
            _begin(asking, self._settings)
            row = asking.execute(statement("what_became"), {"tenant": self.tenant, "writer": lost.writer}).fetchone()
            asking.commit()
        return None if row is None or any(warnings) else str(row[0])

    def _forget_writers(self, connection: PooledConnection) -> None:
        """Let go of commits that nobody asks about any more."""
        with contextlib.suppress(psycopg.Error):
            _begin(connection, (*self._settings, _HASTY))
            connection.execute(statement("forget_writers"), {"tenant": self.tenant, "days": FORGOTTEN_DAYS})
            connection.commit()

    def _pass_numbers_in_use(self, connection: PooledConnection) -> None:
        """Let the sequences pass what this tenant holds: a server that took over may have them from before that was written."""
        for numbers, held in NUMBERED.items():
            _begin(connection, (*self._settings, _HASTY))
            ((highest,),) = self.within(connection, statement(held), {})
            ((next_,),) = self.within(connection, statement(numbers), {"count": 1})
            missing = min((highest or 0) - next_, MOST_PASSED)
            if missing > 0:
                self.within(connection, statement(numbers), {"count": missing})
            connection.commit()

    @property
    def in_transaction(self) -> bool:
        """Whether this thread has a transaction open."""
        return self._current is not None

    @property
    def _current(self) -> PooledConnection | None:
        """The connection of this thread's transaction; not one on which a parent process decides."""
        mine: PooledConnection | None = getattr(self._mine, "connection", None)
        return mine if mine is not None and self._mine.process == os.getpid() else None

    def _refuse_forked(self, connection: Connection) -> None:
        if self._current is not connection:
            raise StoreError("a forked child cannot take part in its parent's decision; begin one of its own there")

    def is_replica(self, connection: Connection) -> bool:
        """Whether the server only follows another."""
        return bool(self.within(connection, "SELECT pg_is_in_recovery()", {})[0][0])

    @contextlib.contextmanager
    def alone(self, **settings: str) -> Iterator[Connection]:
        """A connection outside of any transaction, for long work on whole tables that only their owner may do.

        Settings are for the whole connection; through a pooler they would stay with a server process that others use next.
        """
        wanted = {"statement_timeout": f"{LONGEST_HOURS}h", "lock_timeout": f"{LOCK_SECONDS}s", **settings}
        with connect(self._url) as connection, explained(self.where):
            if not is_pooled(connection):
                for name, value in wanted.items():
                    connection.execute(sql.SQL("SET {} = {}").format(sql.Identifier(name), sql.Literal(value)))
            yield connection

    def vacuum(self, tables: Sequence[str]) -> None:
        """Let the space of deleted rows be reused."""
        with self.alone() as connection:
            names = ", ".join(f"engram.{table}" for table in tables)
            connection.execute(f"VACUUM (SKIP_LOCKED) {names}".encode())

    # -- statements

    def run(self, name: str, /, **values: Any) -> list[Row]:
        """All rows of a named statement that only reads."""
        return self.query(statement(name), values)

    def change(self, name: str, /, **values: Any) -> list[Row]:
        """Carry out a named statement that writes."""
        with self.transaction() as connection:
            return self.within(connection, statement(name), values)

    def change_at_once(self, name: str, /, **values: Any) -> list[Row]:
        """A named statement that writes; in a transaction, a part of that.

        The disk is not waited for, and a commit whose answer was lost is not asked for: for what may be lost or done twice.
        """
        return self._answered(statement(name), values, (*self._settings, _HASTY))

    def query(self, text: str, values: dict[str, Any]) -> list[Row]:
        """All rows of a statement put together from the files' text; one that only reads."""
        return self._answered(text, values, self._settings)

    def _answered(self, text: str, values: dict[str, Any], settings: Sequence[bytes]) -> list[Row]:
        """All rows of a statement: a part of this thread's transaction, or one by itself."""
        with explained(self.where):
            if self._current is not None:
                return self.within(self._current, text, values)
            try:
                return self._alone(text, {"tenant": self.tenant, **values}, settings)
            except psycopg.ProgrammingError:
                # Of a schema that this Engram does not know, this says so; anything else happens again.
                with self.reading() as connection:
                    return self.within(connection, text, values)

    def _alone(self, text: str, values: dict[str, Any], settings: Sequence[bytes]) -> list[Row]:
        """A statement that is a transaction by itself: its beginning and itself in one round trip, its end in another.

        Not all in one: psycopg ends a pipeline with a request that nobody answers, and outside of a transaction PgBouncer keeps
        a connection to the server for it.
        """

        def ask(connection: PooledConnection) -> list[Row]:
            with connection.pipeline() as pipeline:
                newer = _send_beginning(connection, pipeline, settings)
                cursor = connection.execute(text, values)
            self._check_version(newer.fetchone())
            rows = cursor.fetchall() if cursor.description is not None else []
            connection.commit()
            return rows

        connections = self.connections
        try:
            connection, rows = self._first_answer(connections, ask)
        except UnicodeEncodeError as error:
            raise half_character(error) from None
        connections.give_back(connection)
        return rows

    def within(self, connection: Connection, text: str, values: dict[str, Any]) -> list[Row]:
        """All rows of a statement in a transaction already open."""
        self._refuse_forked(connection)
        # It would look like a statement without rows.
        assert not connection.pgconn.pipeline_status, "in pipeline mode nothing is known of an answer before the end"
        self._note(text)
        try:
            cursor = connection.execute(text, {"tenant": self.tenant, **values})
        except UnicodeEncodeError as error:
            raise half_character(error) from None
        return cursor.fetchall() if cursor.description is not None else []

    def answers(self, connection: Connection, asked: Sequence[BoundStatement]) -> list[list[Row]]:
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
            text = statement(name)
            self._note(text)
            connection.execute(text, {"tenant": self.tenant, **values})

    def _note(self, text: str) -> None:
        """Remember that this transaction writes."""
        self._mine.wrote = self._mine.wrote or _is_write(text)


@lru_cache(1024)
def _is_write(text: str) -> bool:
    return _WRITES.search(text) is not None


def _settings(tenant: str) -> tuple[bytes, ...]:
    """What every transaction of a tenant begins with.

    `SET LOCAL` of a literal, one statement each: this is what Citus passes on to the servers that hold the rows, where the
    policies are checked and the locks are taken. The first asks it to; elsewhere that is a name nobody reads.
    """
    values = {
        "citus.propagate_set_commands": "local",
        "engram.tenant": tenant,
        "jit": "off",  # compiling takes longer than any statement here
        "statement_timeout": f"{STATEMENT_SECONDS}s",
        "lock_timeout": f"{LOCK_SECONDS}s",
        "idle_in_transaction_session_timeout": f"{2 * STATEMENT_SECONDS}s",
    }
    return tuple(
        sql.SQL("SET LOCAL {} = {}").format(sql.Identifier(*name.split(".")), sql.Literal(value)).as_bytes()
        for name, value in values.items()
    )


_HASTY = b"SET LOCAL synchronous_commit = 'off'"


def _begin(connection: Connection, settings: Sequence[bytes]) -> Row | None:
    """Begin a transaction; a version of the schema that this Engram does not know, if there is one."""
    with connection.pipeline() as pipeline:
        newer = _send_beginning(connection, pipeline, settings)
    return newer.fetchone()


def _send_beginning(
    connection: Connection, pipeline: psycopg.Pipeline, settings: Sequence[bytes]
) -> psycopg.Cursor[Row]:
    """The beginning of a transaction, to a connection in pipeline mode: one packet with what is sent next.

    Past the driver's cursors: they would wait for the answer to BEGIN and send each statement by itself, which a pooler
    passes on one by one, too.
    """
    for command in (b"BEGIN", *settings):
        connection.pgconn.send_query_params(command, None)
    pipeline.result_queue.extend([None] * (1 + len(settings)))
    return connection.execute(statement("newer_version"), {"latest": LATEST}, prepare=True)
