"""Opening a store on a server: the schema brought up to date, the tenant's name checked, the embedder claimed."""

import re
from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING

from engram.model.errors import InvalidInput, NotFound, StoreError
from engram.store.sources import utc_now

if TYPE_CHECKING:
    from engram.embedding.protocol import Embedder
    from engram.store.postgres.store import PostgresStore

SCHEMES = ("postgresql://", "postgres://")
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
    """A tenant's store; `create` makes or migrates the schema, without it a missing schema is an error."""
    _check(url, tenant)
    try:
        from engram.store.postgres.store import PostgresStore
    except ImportError as error:
        raise StoreError(_NO_DRIVER.format(error)) from None
    _prepare(url, create)
    store = PostgresStore(url, tenant, embedder, clock=clock)
    try:
        store.parts.facts.claim()
    except BaseException:
        store.close()
        raise
    return store


def prepare_server(url: str) -> list[str]:
    """Make or migrate the schema, and distribute it where the server is a Citus coordinator; what there is to say of that."""
    try:
        from engram.store.postgres import distribution
        from engram.store.postgres.connections import connect
        from engram.store.postgres.explaining import explained, shown_url
    except ImportError as error:
        raise StoreError(_NO_DRIVER.format(error)) from None
    _check_url(url)
    _prepare(url, create=True)
    where = shown_url(url)
    with explained(where), connect(url) as connection:
        return distribution.distribute(connection, where)


def _check(url: str, tenant: str) -> None:
    _check_url(url)
    if not _TENANT.fullmatch(tenant):
        raise InvalidInput(f"{tenant!r} is no tenant; letters, digits and . _ @ : / + - only, 200 at most")


def _check_url(url: str) -> None:
    if not url.startswith(SCHEMES):
        raise InvalidInput("a store's URL begins with postgresql://; for files name a directory instead")


def _prepare(url: str, create: bool) -> None:
    from engram.store.postgres.connections import connect
    from engram.store.postgres.explaining import explained, is_readable, shown_url
    from engram.store.postgres.migrating import LATEST, check_server, migrate, version_of

    if not is_readable(url):
        raise InvalidInput(
            "the store's URL cannot be read; it is postgresql://user:password@host:5432/database, "
            "with %2F for a / in user or password, %40 for @ and %25 for %"
        )
    where = shown_url(url)
    with explained(where), connect(url) as connection:
        if create:
            migrate(connection, where)
            return
        check_server(connection, where)
        version = version_of(connection)
        if version == 0:
            raise NotFound(f"{where} holds no Engram store; `engram init` makes one")
        if version < LATEST:
            raise StoreError(
                f"{where} has schema {version}, this Engram needs {LATEST}; `engram init` with the owner's role migrates it"
            )
