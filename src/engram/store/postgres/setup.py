"""Opens stores on a server: creates or checks the schema, checks the tenant's name, claims the embedder."""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING

from engram.model.errors import InvalidInput, StoreError
from engram.store.defaults import checked_url, utc_now

if TYPE_CHECKING:
    from engram.embedding.vectors import Embedder
    from engram.store.postgres.store import PostgresStore
    from engram.store.postgres.tenants import DueTenants

_NO_DRIVER = "Postgres needs psycopg ({}): pip install 'engram[postgres]'"
_TENANT = re.compile(r"[\w.@:/+-]{1,200}")


def open_store(
    url: str,
    tenant: str,
    embedder: "Embedder | None" = None,
    *,
    clock: Callable[[], datetime] = utc_now,
    create: bool = True,
) -> "PostgresStore":
    """A tenant's store. `create` creates the schema; without it, a missing schema raises `NotFound`.

    An older schema raises `StoreError`: only `upgrade_schema` changes it, because clients of that version are refused
    afterwards.
    """
    _check(url, tenant)
    try:
        from engram.store.postgres.rebuild import refold
        from engram.store.postgres.store import PostgresStore
    except ImportError as error:
        raise StoreError(_NO_DRIVER.format(error)) from None
    with _hold_pool(url, create):
        store = PostgresStore(url, tenant, embedder, clock=clock)
        try:
            store.context.settings.claim()
            refold(store.context)
        except BaseException:
            store.close()
            raise
    return store


def open_due_tenants(url: str, kinds: Sequence[str]) -> "DueTenants":
    """Finds tenants with due jobs of these kinds; creates the schema first. Raises `StoreError` for an older one."""
    _check(url, "all")
    try:
        from engram.store.postgres.tenants import DueTenants
    except ImportError as error:
        raise StoreError(_NO_DRIVER.format(error)) from None
    with _hold_pool(url, create=True):
        return DueTenants(url, kinds)


def upgrade_schema(url: str) -> None:
    """Create the schema, or upgrade it to this version."""
    try:
        from engram.store.postgres.connections import connect, shown_url, translate_errors
        from engram.store.postgres.schema import migrate
    except ImportError as error:
        raise StoreError(_NO_DRIVER.format(error)) from None
    checked_url(url)
    _check_readable(url)
    where = shown_url(url)
    with translate_errors(where), connect(url) as connection:
        migrate(connection, where)


def prepare_server(url: str) -> list[str]:
    """Create or upgrade the schema, and distribute it on a Citus coordinator. Returns a report of the distribution."""
    upgrade_schema(url)
    from engram.store.postgres import schema as distribution
    from engram.store.postgres.connections import connect, shown_url, translate_errors

    where = shown_url(url)
    with translate_errors(where), connect(url) as connection:
        return distribution.distribute(connection, where)


def _check(url: str, tenant: str) -> None:
    checked_url(url)
    if not _TENANT.fullmatch(tenant):
        raise InvalidInput(f"Invalid tenant {tenant!r}; use at most 200 letters, digits and . _ @ : / + -")


def _check_readable(url: str) -> None:
    from engram.store.postgres.connections import is_readable

    if not is_readable(url):
        raise InvalidInput(
            "the store's URL is malformed; write postgresql://user:password@host:5432/database, "
            "with %2F for a / in user or password, %40 for @ and %25 for %"
        )


@contextmanager
def _hold_pool(url: str, create: bool) -> Iterator[None]:
    """Ensure the current schema, and keep this process's pool open meanwhile.

    The first store of a process checks on a connection outside of the pool, which reports problems with the server at once; one
    at a time, so that opening many stores does not open as many connections. Later ones use the pool.
    """
    from engram.store.postgres.connections import CONNECT_SECONDS, acquire_connections, release_connections

    _check_readable(url)
    connections = acquire_connections(url)
    try:
        was_open = connections.is_open
        if not was_open or not _is_current(url):
            in_turn = connections.opening.acquire(timeout=CONNECT_SECONDS)
            try:
                if was_open or not connections.is_open or not _is_current(url):
                    _prepare(url, create)
                connections.is_open = True
            finally:
                if in_turn:
                    connections.opening.release()
        yield
    finally:
        release_connections(connections)


def _is_current(url: str) -> bool:
    """Whether the schema is current, checked on a connection of the pool."""
    from engram.store.postgres.database import Database
    from engram.store.postgres.schema import LATEST_SCHEMA, version_of

    database = Database(url, "")
    try:
        with database.reading() as connection:
            return version_of(connection) == LATEST_SCHEMA
    except StoreError:
        return False
    finally:
        database.close()


def _prepare(url: str, create: bool) -> None:
    from engram.store.postgres import schema
    from engram.store.postgres.connections import connect, shown_url, translate_errors

    where = shown_url(url)
    with translate_errors(where), connect(url) as connection:
        schema.check_server(connection, where)
        if create:
            schema.create(connection, where)
        schema.check_version(connection, where)
