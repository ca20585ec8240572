"""The two backends, each opened the same way: what is tested on one is tested on the other."""

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
from psycopg import sql

from engram import Engram
from engram.embedding.static import StaticEmbedder
from engram.embedding.vectors import Embedder
from engram.store.defaults import Server as Place
from engram.store.files.store.backend import FilesStore
from engram.store.home import Home, open_home
from engram.store.protocol import Store
from tests.clock import Clock
from tests.migration.copies import copy_home, copy_tenant
from tests.postgres.server import Server, at_database


@cache
def static_embedder() -> StaticEmbedder:
    """The bundled model; reading it once is enough."""
    return StaticEmbedder()


class Backend(ABC):
    """One store, opened as often as a test wants. Everything that was opened is closed at the end."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self._open = contextlib.ExitStack()

    def client(self, time_zone: str | None = None, directory: Path | None = None) -> Engram:
        """The store as a program has it, or one that was opened in a directory."""
        opened = self._open.enter_context(self._client(time_zone))
        opened.sees_whole_store = True
        if directory is not None:
            opened.directory = directory
        return opened

    def store(self, embedder: Embedder | None = None, *, keyword_only: bool = False) -> Store:
        """The store as the protocol has it, with the bundled embedder unless told otherwise."""
        opened = self._store(None if keyword_only else embedder or static_embedder())
        self._open.callback(opened.close)
        return opened

    def close(self) -> None:
        """Close whatever was opened."""
        self._open.close()

    @abstractmethod
    def copied(self, name: str) -> Engram:
        """A store of its own that holds what this one holds, which must be closed; for the caller to close."""

    @abstractmethod
    def everything(self) -> str:
        """All that the store holds, as text: what must never be kept is looked for here."""

    @abstractmethod
    def _client(self, time_zone: str | None) -> Engram: ...

    @abstractmethod
    def _store(self, embedder: Embedder | None) -> Store: ...


class OnFiles(Backend):
    """A home and a cache of the test's own."""

    def __init__(self, clock: Clock, folder: Path) -> None:
        super().__init__(clock)
        self._folder = folder

    def copied(self, name: str) -> Engram:
        """Another home, below this one's folder."""
        copy = OnFiles(self.clock, self._folder / name)
        copy_home(self._folder / "home", copy._folder / "home")
        return copy._client(None)

    def everything(self) -> str:
        """Every file of the home and of the index."""
        home = self._home()
        files = [path for place in (home.root, home.index) for path in place.rglob("*") if path.is_file()]
        return "\n".join(path.read_bytes().decode("utf-8", "replace") for path in files)

    def _home(self) -> Home:
        return open_home(self._folder / "home", self._folder / "cache")

    def _client(self, time_zone: str | None) -> Engram:
        home, cache = self._folder / "home", self._folder / "cache"
        return Engram.open(home, cache=cache, directory=self._folder, clock=self.clock, time_zone=time_zone)

    def _store(self, embedder: Embedder | None) -> Store:
        return FilesStore(self._home(), embedder, clock=self.clock)


class OnPostgres(Backend):
    """A tenant of the worker's database."""

    def __init__(self, clock: Clock, url: str, tenant: str, server: Server) -> None:
        super().__init__(clock)
        self.url, self.tenant, self._server = url, tenant, server

    def copied(self, name: str) -> Engram:
        """Another tenant of the same database."""
        copy = OnPostgres(self.clock, self.url, f"{self.tenant}-{name}", self._server)
        copy_tenant(Place(self.url, self.tenant), Place(copy.url, copy.tenant), self._server)
        return copy._client(None)

    def everything(self) -> str:
        """Every row of the tenant in every table, past row-level security."""
        with psycopg.connect(at_database(self._server.admin_url, urlsplit(self.url).path.lstrip("/"))) as admin:
            tables = admin.execute(
                "SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
                " JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'tenant' WHERE c.relkind = 'r'"
            ).fetchall()
            assert tables, "no table has a tenant"
            return "\n".join(
                row for schema, table in tables for row in self._rows(admin, sql.Identifier(schema, table))
            )

    def _rows(self, admin: psycopg.Connection, table: sql.Identifier) -> Iterator[str]:
        for (row,) in admin.execute(
            sql.SQL("SELECT t::text FROM {} t WHERE tenant = %s").format(table), (self.tenant,)
        ):
            yield row

    def _client(self, time_zone: str | None) -> Engram:
        return Engram.open(url=self.url, tenant=self.tenant, clock=self.clock, time_zone=time_zone)

    def _store(self, embedder: Embedder | None) -> Store:
        from engram.store.postgres.setup import open_store

        return open_store(self.url, self.tenant, embedder, clock=self.clock)


@contextlib.contextmanager
def backend_of(request: pytest.FixtureRequest, folder: Path, clock: Clock) -> Iterator[Backend]:
    """The empty store that a fixture's parameter names: files or postgres."""
    opened: Backend
    if request.param == "postgres":
        url, tenant = request.getfixturevalue("shared_database"), request.getfixturevalue("tenant")
        opened = OnPostgres(clock, url, tenant, request.getfixturevalue("postgres_server"))
    else:
        opened = OnFiles(clock, folder)
    try:
        yield opened
    finally:
        opened.close()
