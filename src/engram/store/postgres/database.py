"""One tenant's transactions on a server: each sets its tenant and timeouts and has its commit confirmed.

Also contains the tenant's context: settings, numbers, embedder and clock.
"""

import contextlib
import json
import os
import random
import re
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

import psycopg
from psycopg import sql

from engram.model.arguments import half_character_error
from engram.model.errors import (
    EmbedderError,
    EngramError,
    StoreClosed,
    StoreDenied,
    StoreError,
    StoreReadOnly,
    StoreUnreachable,
    UnknownVersion,
)
from engram.model.lazy import dataclass, field
from engram.store.defaults import random_hex, utc_now
from engram.store.postgres.connections import (
    MAX_CONNECTIONS,
    Connection,
    Connections,
    PooledConnection,
    acquire_connections,
    connect,
    is_pooled,
    release_connections,
    shown_url,
    to_engram_error,
    translate_errors,
    warning_in,
)
from engram.store.postgres.schema import LATEST_SCHEMA
from engram.store.postgres.sql import statement
from engram.store.records import highest_numbers

if TYPE_CHECKING:
    from engram.embedding.vectors import Embedder, Vectors

Row = tuple[Any, ...]
BoundStatement = tuple[str | sql.Composed, dict[str, Any]]
"""A statement and its values."""
Answer = TypeVar("Answer")

STATEMENT_SECONDS = 60
LOCK_SECONDS = 20
"""How long a decision waits for earlier ones; each takes milliseconds."""
MAINTENANCE_HOURS = 6
"""How long building an index or a vacuum may take."""
SETTLE_SECONDS = 60
"""How long to ask whether an unanswered commit succeeded; a standby may need to take over first."""
FIRST_PAUSE, LONGEST_PAUSE = 0.05, 2.0
"""Seconds between two such questions, growing: hundreds of clients may ask a server that has just come back."""
FORGOTTEN_DAYS, FORGET_EVERY = 1, 64
"""The age at which a writer's last commit is deleted, and the average number of new writers between two such checks."""
HIGHEST_NUMBER_STATEMENTS = {
    "next_numbers": "last_document",
    "next_decisions": "last_seq",
    "next_uses": "last_position",
}
"""The statements that take numbers from a sequence, and those that return the highest in use."""
MAX_SKIPPED_NUMBERS = 1_000_000
_WRITES = re.compile(r"\b(?:INSERT INTO|UPDATE|DELETE FROM)\s+engram\.", re.IGNORECASE)


class Database:
    """One tenant's access to the server. Inside a transaction of this thread, every call joins it."""

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
        """This process's connections to the server; a forked child opens its own."""
        if self._pid != os.getpid():
            self._reset_after_fork()
        with self._opening:
            if self._is_closed:
                raise StoreClosed(f"the store on {self.where} is closed; open it again with `Engram.open()`")
            if self._shared is None:
                self._shared = acquire_connections(self._url)
            return self._shared

    def _reset_after_fork(self) -> None:
        self._mine, self._opening = threading.local(), threading.Lock()
        self._shared, self._pid = None, os.getpid()

    def close(self) -> None:
        """Release the connections; later calls raise `StoreClosed`."""
        if self._pid != os.getpid():
            self._reset_after_fork()
        with self._opening:
            self._is_closed, connections, self._shared = True, self._shared, None
        if connections is not None:
            release_connections(connections)

    # -- transactions

    def reading(self) -> contextlib.AbstractContextManager[Connection]:
        """A transaction for several reads."""
        return self.transaction()

    @contextlib.contextmanager
    def transaction(self, *, durable: bool = True) -> Iterator[Connection]:
        """A transaction of this tenant; committed at the end, rolled back on an error.

        `durable=False` does not wait for the disk: for uses and statistics, which may be lost in a crash.
        """
        current = self._current
        if current is not None:
            with translate_errors(self.where):
                yield current
            return
        with translate_errors(self.where):
            connections = self.connections
            connection = self._open_transaction(connections, durable)
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

    def _open_transaction(self, connections: Connections, durable: bool) -> PooledConnection:
        """A connection with an open transaction."""
        settings = self._settings if durable else (*self._settings, _ASYNCHRONOUS)

        def begin(taken: PooledConnection) -> None:
            self._check_version(_begin(taken, settings))

        return self._first_answer(connections, begin)[0]

    def _check_version(self, newer: Row | None) -> None:
        if newer is not None:
            raise UnknownVersion(
                f"{self.where} has schema {newer[0]}; this Engram supports up to {LATEST_SCHEMA}. Update Engram on this machine"
            )

    def _first_answer(
        self, connections: Connections, ask: Callable[[PooledConnection], Answer]
    ) -> tuple[PooledConnection, Answer]:
        """A connection and its first answer; connections that broke while idle are discarded."""
        for _ in range(MAX_CONNECTIONS + 1):
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
        raise StoreUnreachable(f"cannot reach {self.where}: every connection broke; check that the server is running")

    def _commit(self, connection: PooledConnection) -> None:
        """Commit; if no answer comes, ask the server whether it succeeded.

        A warning does not count as an answer: a server that stops waiting for its standby reports a commit that only it
        has.
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
        """Whether a transaction was committed; asks until a server answers.

        The query writes to the row that the transaction wrote, so it waits for a commit in progress, and with a
        synchronous standby the answer has also been replicated.
        """
        deadline, pause = time.monotonic() + SETTLE_SECONDS, FIRST_PAUSE
        while time.monotonic() < deadline:
            with contextlib.suppress(EngramError, psycopg.Error):
                found = self._last_token(lost)
                if found is not None:
                    return found == token
            time.sleep(pause * random.uniform(0.5, 1))
            pause = min(2 * pause, LONGEST_PAUSE)
        raise StoreUnreachable(
            f"{to_engram_error(error, self.where)}; the commit was not confirmed: "
            "check whether it was written when the server is back"
        ) from error

    def _last_token(self, lost: PooledConnection) -> str | None:
        """The token of the last transaction a connection committed, "" for none; None if the answer is not reliable."""
        warnings: list[str] = []
        with lost.attempts.outside(self._url) as asking:
            asking.add_notice_handler(lambda notice: warnings.append(warning_in(notice)))
            _begin(asking, self._settings)
            row = asking.execute(statement("what_became"), {"tenant": self.tenant, "writer": lost.writer}).fetchone()
            asking.commit()
        return None if row is None or any(warnings) else str(row[0])

    def _forget_writers(self, connection: PooledConnection) -> None:
        """Delete old rows of the table of commits."""
        with contextlib.suppress(psycopg.Error):
            _begin(connection, (*self._settings, _ASYNCHRONOUS))
            connection.execute(statement("forget_writers"), {"tenant": self.tenant, "days": FORGOTTEN_DAYS})
            connection.commit()

    def _pass_numbers_in_use(self, connection: PooledConnection) -> None:
        """Advance the sequences beyond this tenant's numbers: after a failover they may lag behind."""
        for numbers, highest_in_use in HIGHEST_NUMBER_STATEMENTS.items():
            _begin(connection, (*self._settings, _ASYNCHRONOUS))
            ((highest,),) = self.run_on(connection, statement(highest_in_use), {})
            ((next_,),) = self.run_on(connection, statement(numbers), {"count": 1})
            missing = min((highest or 0) - next_, MAX_SKIPPED_NUMBERS)
            if missing > 0:
                self.run_on(connection, statement(numbers), {"count": missing})
            connection.commit()

    @property
    def in_transaction(self) -> bool:
        """Whether this thread has a transaction open."""
        return self._current is not None

    @property
    def _current(self) -> PooledConnection | None:
        """The connection of this thread's transaction, unless it belongs to a parent process."""
        mine: PooledConnection | None = getattr(self._mine, "connection", None)
        return mine if mine is not None and self._mine.process == os.getpid() else None

    @property
    def _current_connection(self) -> PooledConnection:
        """The connection of this thread's transaction."""
        current = self._current
        if current is None:
            raise StoreError("there is no transaction to join; a forked child cannot join its parent's")
        return current

    def _refuse_forked(self, connection: Connection) -> None:
        if self._current is not connection:
            raise StoreError("a forked child cannot join its parent's decision; open one in the child")

    def is_replica(self) -> bool:
        """Whether the server is a replica."""
        return bool(self.query("SELECT pg_is_in_recovery()", {})[0][0])

    @contextlib.contextmanager
    def maintenance_connection(self, **settings: str) -> Iterator[Connection]:
        """A connection outside of any transaction, for long work on whole tables by their owner.

        Settings apply to the whole connection. They are not used with a pooler, because they would leak to its next
        client.
        """
        wanted = {"statement_timeout": f"{MAINTENANCE_HOURS}h", "lock_timeout": f"{LOCK_SECONDS}s", **settings}
        with connect(self._url) as connection, translate_errors(self.where):
            if not is_pooled(connection):
                for name, value in wanted.items():
                    connection.execute(sql.SQL("SET {} = {}").format(sql.Identifier(name), sql.Literal(value)))
            yield connection

    def vacuum(self, tables: Sequence[str]) -> None:
        """Make the space of deleted rows reusable."""
        with self.maintenance_connection() as connection:
            names = ", ".join(f"engram.{table}" for table in tables)
            connection.execute(f"VACUUM (SKIP_LOCKED) {names}".encode())

    # -- statements

    def run(self, name: str, /, **values: Any) -> list[Row]:
        """All rows of a named statement, in this thread's transaction or in one of its own."""
        return self.query(statement(name), values)

    def query(self, text: str, values: dict[str, Any]) -> list[Row]:
        """All rows of a statement assembled at run time."""
        if self._current is None and _is_write(text):
            with self.transaction() as connection:
                return self.run_on(connection, text, values)
        return self._run_statement(text, values, self._settings)

    def run_quickly(self, name: str, /, **values: Any) -> list[Row]:
        """All rows of a write that may be lost or repeated: its commit does not wait for the disk and is not confirmed."""
        return self._run_statement(statement(name), values, (*self._settings, _ASYNCHRONOUS))

    def _run_statement(self, text: str, values: dict[str, Any], settings: Sequence[bytes]) -> list[Row]:
        with translate_errors(self.where):
            if self._current is not None:
                return self.run_on(self._current, text, values)
            try:
                return self._run_alone(text, {"tenant": self.tenant, **values}, settings)
            except psycopg.ProgrammingError:
                # A newer schema raises `UnknownVersion` here; any other error is raised again.
                with self.reading() as connection:
                    return self.run_on(connection, text, values)

    def _run_alone(self, text: str, values: dict[str, Any], settings: Sequence[bytes]) -> list[Row]:
        """Run a statement as a transaction of its own: BEGIN and the statement in one round trip, COMMIT in another.

        Not all in one: psycopg ends a pipeline with a request without an answer, for which PgBouncer keeps a server connection
        when it comes outside of a transaction.
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
            raise half_character_error(error) from None
        connections.give_back(connection)
        return rows

    def run_on(self, connection: Connection, text: str, values: dict[str, Any]) -> list[Row]:
        """All rows of a statement in an open transaction. Raises `StoreError` in a forked child of the one who opened it."""
        self._refuse_forked(connection)
        # In a pipeline, every statement would seem to have no rows.
        assert not connection.pgconn.pipeline_status, "in pipeline mode there is no answer before the end"
        cursor = self._execute(connection, text, values)
        return cursor.fetchall() if cursor.description is not None else []

    def fetch_results(self, statements: Sequence[BoundStatement]) -> list[list[Row]]:
        """The rows of each statement, in one round trip of this thread's transaction. Literals are not prepared.

        Values arrive in binary form: a halfvec is bytes.
        """
        connection = self._current_connection
        with connection.pipeline() if len(statements) > 1 else contextlib.nullcontext():
            cursors = [self._execute(connection, text, values, binary=True) for text, values in statements]
        return [cursor.fetchall() if cursor.description is not None else [] for cursor in cursors]

    def run_all(self, work: Sequence[tuple[str, dict[str, Any]]]) -> None:
        """Run named statements in this thread's transaction, without waiting for each answer."""
        with self.pipeline():
            self.send(work)

    def pipeline(self) -> contextlib.AbstractContextManager[psycopg.Pipeline]:
        """This thread's transaction in pipeline mode: `send` does not wait; errors appear at the end."""
        # Never in a forked child: leaving the pipeline reads from the connection, which is the parent's.
        return self._current_connection.pipeline()

    def send(self, work: Sequence[tuple[str, dict[str, Any]]]) -> None:
        """Send named statements in pipeline mode."""
        connection = self._current_connection
        for name, values in work:
            self._execute(connection, statement(name), values)

    def _execute(
        self, connection: Connection, text: str | sql.Composed, values: dict[str, Any], *, binary: bool = False
    ) -> psycopg.Cursor[Row]:
        self._mine.wrote = self._mine.wrote or (isinstance(text, str) and _is_write(text))
        prepare = False if isinstance(text, sql.Composed) else None
        try:
            return connection.execute(text, {"tenant": self.tenant, **values}, prepare=prepare, binary=binary)
        except UnicodeEncodeError as error:
            raise half_character_error(error) from None


@lru_cache(1024)
def _is_write(text: str) -> bool:
    return _WRITES.search(text) is not None


def _settings(tenant: str) -> tuple[bytes, ...]:
    """The settings of every transaction of a tenant.

    Citus passes `SET LOCAL` of a literal, one statement each, to the workers that store the rows, where policies are checked and
    locks are taken. The first setting enables that; without Citus it has no effect.
    """
    values = {
        "citus.propagate_set_commands": "local",
        "engram.tenant": tenant,
        "jit": "off",  # Compiling takes longer than any statement here.
        "statement_timeout": f"{STATEMENT_SECONDS}s",
        "lock_timeout": f"{LOCK_SECONDS}s",
        "idle_in_transaction_session_timeout": f"{2 * STATEMENT_SECONDS}s",
    }
    return tuple(
        sql.SQL("SET LOCAL {} = {}").format(sql.Identifier(*name.split(".")), sql.Literal(value)).as_bytes()
        for name, value in values.items()
    )


_ASYNCHRONOUS = b"SET LOCAL synchronous_commit = 'off'"


def _begin(connection: Connection, settings: Sequence[bytes]) -> Row | None:
    """Begin a transaction. Returns the schema's version if it is too new for this Engram."""
    with connection.pipeline() as pipeline:
        newer = _send_beginning(connection, pipeline, settings)
    return newer.fetchone()


def _send_beginning(
    connection: Connection, pipeline: psycopg.Pipeline, settings: Sequence[bytes]
) -> psycopg.Cursor[Row]:
    """Send BEGIN and the settings in pipeline mode, in one packet with what is sent next.

    This bypasses the driver's cursors, which would wait for the answer to BEGIN and send each statement by itself.
    """
    for command in (b"BEGIN", *settings):
        connection.pgconn.send_query_params(command, None)
    pipeline.result_queue.extend([None] * (1 + len(settings)))
    return connection.execute(statement("newer_version"), {"latest": LATEST_SCHEMA}, prepare=True)


CACHE_SECONDS = 2.0
"""Seconds until settings are read again: another process may re-embed or pause the store at any time."""
FOLDING_VERSION = 2
"""The version of text folding and translation; a tenant's `folding` is the version of its index."""


class TenantSettings:
    """Settings by key, read again every two seconds."""

    def __init__(self, database: Database, embedder_name: str, dim: int) -> None:
        self._database = database
        self._embedder, self._dim = embedder_name, dim
        self._known: dict[str, Any] = {}
        self._read_at = float("-inf")

    def get(self, key: str, default: Any = None) -> Any:
        """A setting, or the default."""
        if time.monotonic() - self._read_at > CACHE_SECONDS:
            self.refresh()
        return self._known.get(key, default)

    def refresh(self) -> None:
        """Read all settings."""
        self._known = {key: json.loads(value) for key, value in self._database.run("facts")}
        self._read_at = time.monotonic()

    def set(self, **settings: Any) -> None:
        """Write settings inside a transaction; None removes one."""
        for key, value in settings.items():
            name, values = ("drop_fact", {}) if value is None else ("put_fact", {"value": json.dumps(value)})
            self._database.run(name, key=key, **values)
            self._known[key] = value

    @property
    def generation(self) -> int:
        """The current generation of vectors."""
        return int(self.get("generation", 1))

    def can_embed(self) -> bool:
        """Whether the current vectors were made by this process's embedder."""
        return self.usable_generation() is not None

    def usable_generation(self) -> int | None:
        """The current generation if this process's embedder made it, else None; read once for a whole search."""
        self.get("embedder")
        known = self._known
        same = bool(self._embedder) and known.get("embedder") == self._embedder
        return int(known.get("generation", 1)) if same else None

    def claim(self) -> None:
        """Record this process's embedder as the store's if it has none. Raises `EmbedderError` if dimensions differ."""
        self.refresh()
        if self._embedder and self.get("embedder") is None:
            # On a replica or for a read-only role it stays unclaimed: there are no vectors to search yet.
            with suppress(StoreReadOnly, StoreDenied), self._database.transaction():
                self._database.run("lock_facts")
                self.refresh()
                if self.get("embedder") is None:
                    self.set(embedder=self._embedder, dim=self._dim, generation=1)
                    if not self._database.run("memory_slice", after="", limit=1):
                        self.set(folding=FOLDING_VERSION)
        if self.can_embed() and self.get("dim") != self._dim:
            raise EmbedderError(
                f"the store's vectors by {self._embedder} have {self.get('dim')} dimensions, this embedder makes "
                f"{self._dim}; give it another name, or run `engram index --reembed` with the right one"
            )


@dataclass(slots=True)
class Numbers:
    """Allocates the numbers of a day's ids, each once.

    Numbers are taken before the decision's transaction begins, never during it: a decision that has a connection and
    waits for another one could deadlock with others that do the same. A decision that fails leaves a gap. The commit
    does not wait for the disk, so a crash may lose one; if a number is then allocated twice, the second decision fails.
    """

    database: Database

    def take(self, day: str, count: int) -> range:
        """The next numbers of a day."""
        ((last,),) = self.database.run_quickly("take_numbers", day=day, count=count)
        return range(int(last) - count + 1, int(last) + 1)

    def give_back(self, day: str, unused: range) -> None:
        """Return unused numbers; they are reused unless later ones were taken meanwhile."""
        if unused:
            self.database.run_quickly("give_back_numbers", day=day, last=unused[-1], count=len(unused))

    def raise_to(self, ids: Iterable[str]) -> None:
        """Skip the numbers of ids that were not allocated here."""
        highest = highest_numbers(ids)
        if highest:
            values = {"days": list(highest), "lasts": list(highest.values())}
            self.database.run("raise_numbers", **values)


@dataclass(slots=True)
class TenantContext:
    """An open tenant. `warnings` collects messages for the owner."""

    database: Database
    settings: TenantSettings
    numbers: Numbers
    embedder: "Embedder | None"
    clock: Callable[[], datetime] = utc_now
    token: Callable[[int], str] = random_hex
    warnings: list[str] = field(default_factory=list)

    def embed(self, texts: Sequence[str]) -> "Vectors | None":
        """Vectors of texts; None unless this process has the store's embedder."""
        return self.embedder.embed(texts) if self.embedder is not None and self.settings.can_embed() else None

    def warn(self, text: str) -> None:
        """Add a message for the owner, once."""
        if text not in self.warnings:
            self.warnings.append(text)
