"""What goes wrong outside of Engram, or is sent to it by mistake: an error by name that says what to do, nothing half-done."""

import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast
from urllib.parse import urlsplit, urlunsplit

import numpy as np
import psycopg
import pytest
from psycopg import sql

from engram import Engram
from engram.model.errors import (
    EmbedderError,
    EngramError,
    InvalidInput,
    NotFound,
    StoreBusy,
    StoreDenied,
    StoreError,
    StoreReadOnly,
    StoreUnreachable,
    UnknownVersion,
)
from engram.model.records import Session
from engram.store.postgres import connections
from engram.store.postgres.connections import to_engram_error
from engram.store.postgres.schema import LATEST_SCHEMA, Connection, check_server
from engram.store.postgres.setup import open_store
from engram.store.postgres.store import PostgresStore
from tests.faults.workers.operations import sentence
from tests.postgres import keeper
from tests.postgres.limits import shorten
from tests.postgres.server import Role, Server, at_database, fresh_database, ordinary_role
from tests.postgres.workers.agreement import disagreements
from tests.postgres.workers.texts import TEXTS
from tests.tables import table

if TYPE_CHECKING:
    from engram.embedding.vectors import Vectors

PASSWORD = "hunter2hunter2"
PATIENCE = 120.0
"""Seconds after which something counts as hung."""


def refused(
    kind: type[EngramError], advice: str, work: Callable[..., object], *given: object, secret: str = PASSWORD
) -> None:
    """It is an error of this very kind, says what to do, and keeps the password to itself."""
    with pytest.raises(EngramError) as raised:
        work(*given)
    told = f"{raised.value} {raised.value.__cause__ or ''}"
    assert type(raised.value) is kind, told
    assert advice in str(raised.value), told
    assert secret not in told


def opening(url: str, tenant: str = "anyone") -> Callable[[], object]:
    """Open a store and close it again."""
    return lambda: Engram.open(url=url, tenant=tenant).close()


def with_account(url: str, user: str, password: str) -> str:
    """The same database, another account."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=f"{user}:{password}@{parts.netloc.rpartition('@')[2]}"))


@pytest.fixture
def mem(shared_database: str, tenant: str) -> Iterator[Engram]:
    """A memory on the shared server."""
    with Engram.open(url=shared_database, tenant=tenant) as opened:
        yield opened


# -- the address


@table(
    "url",
    [
        f"mysql://ann:{PASSWORD}@localhost/memories",
        f"ann:{PASSWORD}@localhost/memories",
        f"host=localhost password={PASSWORD}",
        "",
        " ",
        f"postgresql://ann:{PASSWORD}%zz@localhost/memories",
        f"postgresql://ann:x@{PASSWORD}@localhost/memories",
        f"postgresql://ann:x/{PASSWORD}@localhost/memories",
        f"postgresql://ann:{PASSWORD}/x@localhost/memories",
        f"postgresql://ann:{PASSWORD}@localhost:port/memories",
        f"postgresql://ann:{PASSWORD}@[::1/memories",
        f"postgresql://ann:{PASSWORD}@localhost/memories?colour=blue",
        f"postgresql://ann:{PASSWORD}@localhost/mem\x00ories",
        f"postgresql://ann:{PASSWORD}@localhost/mem\ud800ories",
    ],
)
def test_a_malformed_address_is_refused_without_repeating_it(url: str) -> None:
    refused(InvalidInput, "postgresql://", opening(url))


def test_an_address_where_nobody_listens() -> None:
    url = f"postgresql://ann:{PASSWORD}@127.0.0.1:{keeper.free_port()}/memories"
    refused(StoreUnreachable, "check that the server is running", opening(url))


def test_an_address_that_never_answers_is_given_up_after_the_time_the_url_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(connections._KEPT_ALIVE, "connect_timeout", 3600)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"postgresql://ann:{PASSWORD}@127.0.0.1:{silent.getsockname()[1]}/memories?connect_timeout=1"
        began = time.monotonic()
        refused(StoreUnreachable, "check that the server is running", opening(url))
    assert time.monotonic() - began < PATIENCE


def test_a_wrong_password_an_unknown_role_and_an_unknown_database(shared_database: str, postgres_role: Role) -> None:
    wrong = with_account(shared_database, postgres_role.name, PASSWORD)
    refused(StoreDenied, "check user and password", opening(wrong))
    refused(StoreDenied, "check user and password", opening(with_account(shared_database, "nobody_known", PASSWORD)))
    nowhere = at_database(shared_database, "no_such_database")
    refused(StoreDenied, "create it, or correct ENGRAM_URL", opening(nowhere), secret=postgres_role.password)


@pytest.mark.parametrize("tenant", ["x" * 500, "'; DROP SCHEMA engram; --", 'a"b', "a b", "a\x00b", "a\ud800b", "\n"])
def test_a_tenant_that_cannot_be_one(shared_database: str, tenant: str) -> None:
    refused(InvalidInput, "tenant", opening(shared_database, tenant))


# -- the server and what it allows


@pytest.mark.parametrize(("version", "fits"), [(90624, False), (140010, False), (150000, True), (180001, True)])
def test_a_server_that_is_too_old(version: int, fits: bool) -> None:
    server = cast(Connection, SimpleNamespace(info=SimpleNamespace(server_version=version)))
    if fits:
        check_server(server, "postgresql://here")
    else:
        refused(StoreError, "needs 15 or newer", lambda: check_server(server, "postgresql://here"))


@pytest.mark.parametrize(
    "words",
    [
        "sorry, too many clients already",
        "remaining connection slots are reserved for roles with the SUPERUSER attribute",
        'too many connections for role "ann"',
        'too many connections for database "memories"',
    ],
)
def test_a_server_without_a_free_connection_is_said_to_be_full(words: str) -> None:
    error = psycopg.OperationalError(f'connection to server at "127.0.0.1", port 5432 failed: FATAL:  {words}')
    told = to_engram_error(error, "postgresql://here")
    assert type(told) is StoreUnreachable
    assert "max_connections" in str(told)


@contextmanager
def hurried(mem: Engram) -> Iterator[None]:
    """Within the block a memory gives up after a second; what must succeed may take its time."""
    assert isinstance(mem.store, PostgresStore)
    pool = mem.store.context.database.connections.pool
    before = pool.timeout, pool.reconnect_timeout
    pool.timeout = pool.reconnect_timeout = 1
    yield
    pool.timeout, pool.reconnect_timeout = before


def test_connections_that_are_used_up(postgres_server: Server, tenant: str) -> None:
    with ordinary_role(postgres_server) as role, fresh_database(role) as url:
        limit = sql.SQL("ALTER ROLE {} CONNECTION LIMIT {}")
        with Engram.open(url=url, tenant=tenant) as mem, postgres_server.admin() as admin:
            mem.add(sentence(1))
            # Fewer than the pool would take: those it has go on serving, one after the other.
            admin.execute(limit.format(sql.Identifier(role.name), 2))
            assert mem.search(sentence(1))[0].text == sentence(1)
            admin.execute(limit.format(sql.Identifier(role.name), 0))
            opening(url, f"{tenant}-2")()  # another store of the process shares them
            admin.execute(
                "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE usename = %s", (role.name,)
            )
            with hurried(mem):
                refused(StoreUnreachable, "max_connections", lambda: mem.add(sentence(2)), secret=role.password)
                refused(StoreUnreachable, "max_connections", opening(url, tenant), secret=role.password)
            admin.execute(limit.format(sql.Identifier(role.name), -1))
            assert [memory.statement for memory in mem.list()] == [sentence(1)]


@pytest.fixture
def guest(postgres_server: Server) -> Iterator[Role]:
    """A role that owns nothing."""
    with ordinary_role(postgres_server) as role:
        yield role


def as_guest(guest: Role, url: str) -> str:
    """The same database, as the guest."""
    return guest.url(urlsplit(url).path.lstrip("/"))


def test_a_database_without_pgvector_for_a_role_that_may_not_create_it(
    postgres_server: Server, empty_database: str, guest: Role
) -> None:
    with postgres_server.admin(urlsplit(empty_database).path.lstrip("/")) as admin:
        admin.execute("DROP EXTENSION vector")
    refused(StoreDenied, "CREATE EXTENSION vector", opening(as_guest(guest, empty_database)), secret=guest.password)
    with psycopg.connect(empty_database) as owner:
        made = owner.execute("SELECT count(*) FROM pg_namespace WHERE nspname = 'engram'").fetchone()
    assert made == (0,)


def test_a_first_opening_by_a_role_that_may_not_create_the_schema(empty_database: str, guest: Role) -> None:
    refused(StoreDenied, "GRANT CREATE ON DATABASE", opening(as_guest(guest, empty_database)), secret=guest.password)
    opening(empty_database)()


def test_a_role_that_may_only_read_reads(guest: Role, database: str, tenant: str) -> None:
    with Engram.open(url=database, tenant=tenant) as owner:
        kept = owner.add(sentence(1), name="kept")
        with psycopg.connect(database, autocommit=True) as granting:
            name = sql.Identifier(guest.name)
            granting.execute(sql.SQL("GRANT USAGE ON SCHEMA engram TO {}").format(name))
            granting.execute(sql.SQL("GRANT SELECT ON ALL TABLES IN SCHEMA engram TO {}").format(name))
        with Engram.open(url=as_guest(guest, database), tenant=tenant) as mem:
            _assert_answers(mem, sentence(1))
            for write in _writes("kept"):
                refused(StoreDenied, "docs/postgres.md", write, mem, secret=guest.password)
        # A tenant without memories yet is empty for one who cannot begin it.
        with Engram.open(url=as_guest(guest, database), tenant=f"{tenant}-2") as empty:
            assert empty.search(sentence(1)) == []
        assert owner.list() == [kept]


def _assert_answers(mem: Engram, text: str) -> None:
    """Every way to read works, and says what it could not note."""
    assert mem.search(text)[0].text == text
    assert [memory.name for memory in mem.list()] == ["kept"]
    assert mem.get("kept").statement == text
    assert len(mem.history("kept")) == 1
    assert mem.store.facts()["statuses"] == {"active": 1}
    assert mem.doctor().findings
    recalled = mem.recall(text)
    assert recalled.hits[0].text == text
    assert "not recorded" in recalled.warnings[0]
    assert any("not recorded" in warning for warning in mem.inject(text).warnings)
    assert any("not stored" in warning for warning in mem.session(text).injection.warnings)


def _writes(ref: str) -> Sequence[Callable[[Engram], object]]:
    return (
        lambda mem: mem.learn(sentence(2)),
        lambda mem: mem.add(sentence(2)),
        lambda mem: mem.update(ref, rationale="other"),
        lambda mem: mem.feedback(ref, "positive"),
        lambda mem: mem.observe("talk", "user", "hello"),
        lambda mem: mem.forget(ref),
        lambda mem: mem.forget(ref, purge=True),
        lambda mem: mem.upkeep.pause(),
    )


def test_a_database_that_is_read_only(database: str, tenant: str, postgres_server: Server) -> None:
    dbname = urlsplit(database).path.lstrip("/")
    with Engram.open(url=database, tenant=tenant) as mem:
        mem.add(sentence(1), name="kept")
    with postgres_server.admin() as admin:
        read_only = sql.SQL("ALTER DATABASE {} SET default_transaction_read_only = on")
        admin.execute(read_only.format(sql.Identifier(dbname)))
    with Engram.open(url=database, tenant=tenant) as mem:
        _assert_reads_only(mem)
    with Engram.open(url=database, tenant=f"{tenant}-2") as empty:
        assert empty.search(sentence(1)) == []


def _assert_reads_only(mem: Engram) -> None:
    """Answers come, writes are refused."""
    _assert_answers(mem, sentence(1))
    for write in _writes("kept"):
        refused(StoreReadOnly, "send writes to the primary", write, mem)
    assert [memory.name for memory in mem.list()] == ["kept"]


@pytest.fixture
def standby(own_server: Server) -> Iterator[tuple[Role, Role]]:
    """A role on a server, and the same role on a replica that follows it."""
    kept = own_server.kept
    assert kept is not None
    copy = replace(kept, data=f"{kept.data}-replica", port=keeper.free_port())
    with ordinary_role(own_server) as role:
        yield role, Role(Server(copy.admin_url, copy), role.name, role.password)


def follow(primary: Server, replica: Server) -> None:
    """Copy the primary as it is now, and let the copy follow it."""
    assert primary.kept is not None and replica.kept is not None
    keeper.copy(primary.kept, replica.kept)
    replica.start()


@pytest.mark.heavy
def test_a_replica_answers_and_sends_writers_to_the_primary(standby: tuple[Role, Role], tenant: str) -> None:
    primary, replica = standby
    with fresh_database(primary) as url, fresh_database(primary) as bare:
        with Engram.open(url=url, tenant=tenant) as mem:
            mem.add(sentence(1), name="kept")
        follow(primary.server, replica.server)
        try:
            dbname = urlsplit(url).path.lstrip("/")
            with Engram.open(url=replica.url(dbname), tenant=tenant) as mem:
                _assert_reads_only(mem)
            with Engram.open(url=replica.url(dbname), tenant=f"{tenant}-2") as empty:
                assert empty.search(sentence(1)) == []
            nothing = replica.url(urlsplit(bare).path.lstrip("/"))
            refused(StoreError, "open the primary once", opening(nothing), secret=replica.password)
        finally:
            replica.server.stop("immediate")


def test_a_statement_that_takes_too_long(mem: Engram, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = mem.add(sentence(1))
    shorten(monkeypatch, mem, statement=0.5)
    with (
        pytest.raises(StoreBusy, match="nothing was written; try again"),
        mem.store.deciding("update", actor="test", about=[kept.id]) as deciding,
    ):
        deciding.put(kept.replace(rationale="other"))
        mem.store.context.database.query("SELECT pg_sleep(600)", {})  # type: ignore[attr-defined]
    monkeypatch.undo()
    assert mem.get(kept.id) == kept
    assert len(mem.history(kept.id)) == 1


def test_a_server_that_is_stopped_is_unreachable_until_it_is_started(own_server: Server, tenant: str) -> None:
    with (
        ordinary_role(own_server) as role,
        fresh_database(role) as url,
        Engram.open(url=url, tenant=tenant) as mem,
    ):
        mem.add(sentence(1))
        own_server.restart()
        assert mem.recall(sentence(1)).hits[0].text == sentence(1)
        own_server.stop()
        with hurried(mem):
            refused(
                StoreUnreachable, "check that the server is running", lambda: mem.add(sentence(2)), secret=role.password
            )
            refused(
                StoreUnreachable,
                "check that the server is running",
                lambda: mem.search(sentence(1)),
                secret=role.password,
            )
            refused(StoreUnreachable, "check that the server is running", opening(url, tenant), secret=role.password)
        own_server.start()
        mem.add(sentence(3))
        assert sorted(memory.statement for memory in mem.list()) == sorted([sentence(1), sentence(3)])


# -- the store


def test_a_newer_schema_is_refused_also_by_who_had_opened_it_before(database: str, tenant: str) -> None:
    with Engram.open(url=database, tenant=tenant) as mem:
        mem.add(sentence(1))
        with psycopg.connect(database, autocommit=True) as newer:
            newer.execute("INSERT INTO engram.schema_versions (version) VALUES (%s)", (LATEST_SCHEMA + 1,))
        refused(UnknownVersion, "Update Engram", opening(database, tenant))
        refused(UnknownVersion, "Update Engram", lambda: Engram.open(url=database, tenant=tenant, create=False))
        refused(UnknownVersion, "Update Engram", lambda: mem.search(sentence(1)))
        refused(UnknownVersion, "Update Engram", lambda: mem.add(sentence(2)))
        with psycopg.connect(database, autocommit=True) as older:
            older.execute("DELETE FROM engram.schema_versions WHERE version > %s", (LATEST_SCHEMA,))
        assert [memory.statement for memory in mem.list()] == [sentence(1)]


class Toy:
    """An embedder of any length."""

    name = "toy"

    def __init__(self, dim: int) -> None:
        self.dim = dim

    def embed(self, texts: Sequence[str]) -> "Vectors":
        """The same for every text."""
        return np.full((len(texts), self.dim), self.dim**-0.5, dtype=np.float32)


def test_an_embedder_by_the_same_name_with_other_dimensions(shared_database: str, tenant: str) -> None:
    open_store(shared_database, tenant, Toy(3)).close()
    refused(EmbedderError, "give it another name", lambda: open_store(shared_database, tenant, Toy(4)))
    open_store(shared_database, tenant, Toy(3)).close()


def test_what_belongs_to_another_tenant_is_not_found(mem: Engram, shared_database: str, tenant: str) -> None:
    with Engram.open(url=shared_database, tenant=f"{tenant}-2") as theirs:
        kept = theirs.add(sentence(1), name="kept", scope="project:theirs")
        session = theirs.session("theirs")
        event = session.observe("user", sentence(2))
        before = theirs.history(kept.id), theirs.store.events(session.id)
        for ref in (kept.id, "kept", event.id, session.id):
            for work in (
                lambda ref: mem.get(ref),
                lambda ref: mem.update(ref, rationale="mine"),
                lambda ref: mem.pin(ref),
                lambda ref: mem.verify(ref),
                lambda ref: mem.feedback(ref, "positive"),
                lambda ref: mem.forget(ref),
                lambda ref: mem.forget(ref, purge=True),
                lambda ref: mem.undo(ref),
                lambda ref: mem.history(ref),
                lambda ref: mem.review.approve(ref),
                lambda ref: mem.review.resolve(ref, "new"),
                lambda ref: mem.sessions.end(ref),
            ):
                refused(NotFound, "no ", work, ref)
        mem.upkeep.purge([kept.id, event.id])
        mem.observe(session.id, "user", "mine")
        assert (theirs.history(kept.id), theirs.store.events(session.id)) == before
        assert mem.list(status="any") == []


# -- texts no database can hold

ODD = {"NUL": "zebra\x00stripes", "half a pair": "zebra\ud800stripes"}


@pytest.mark.parametrize("kind", ODD)
def test_a_text_no_database_can_hold_is_refused_or_changes_nothing_else(
    mem: Engram, shared_database: str, tenant: str, kind: str
) -> None:
    for n, (call, work) in enumerate(TEXTS.items()):
        kept = mem.add(sentence(1000 + n))
        before = mem.store.facts(), mem.store.events("talk"), mem.store.list_records(Session)
        try:
            work(mem, kept.id, ODD[kind])
        except EngramError as error:
            assert "remove it" in str(error) or "scope" in str(error), call
            assert mem.get(kept.id) == kept, call
            assert (mem.store.facts(), mem.store.events("talk")) == before[:2], call
            assert call == "session: summary" or mem.store.list_records(Session) == before[2], call
        assert mem.store.get(kept.id) is not None, call
    assert disagreements(shared_database, tenant) == []


LONG = "An honest sentence about zebras and their stripes. " * 100_000


@pytest.mark.heavy
@pytest.mark.parametrize("call", ["observe", "search"])
def test_five_megabytes_are_kept_whole_or_refused_by_their_size(mem: Engram, call: str) -> None:
    kept = mem.add(sentence(1))
    began = time.monotonic()
    try:
        TEXTS[call](mem, kept.id, LONG)
    except InvalidInput as error:
        assert len(str(error)) < 1000
        assert mem.list() == [kept]
    assert time.monotonic() - began < PATIENCE
    assert mem.search(sentence(1))[0].id == kept.id
