"""The two ends of a move: a directory or a tenant of a server, opened to be read or to be filled, and compared afterwards."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engram.model.errors import InvalidInput, NotFound
from engram.settings import load_settings
from engram.store.comparing import verify
from engram.store.moving import Counts, Moved, Source, Target, move
from engram.store.opening import Server, owner_config, server_asked
from engram.store.protocol import Progress
from engram.store.sources import utc_now

if TYPE_CHECKING:
    from engram.embedding.protocol import Embedder
    from engram.store.postgres.store import PostgresStore


@dataclass(frozen=True, slots=True)
class End:
    """A directory, or a tenant of a server."""

    directory: Path | None = None
    server: Server | None = None

    @property
    def place(self) -> str:
        """Where it is, safe to show."""
        if self.server is None:
            return str(self.directory)
        from engram.store.postgres.explaining import shown_url

        return f"{shown_url(self.server.url)} (tenant {self.server.tenant})"


@dataclass(frozen=True, slots=True)
class Transfer:
    """What a move brought, what differs now, and what the owner should hear of."""

    moved: Moved
    holds: Counts
    differences: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def end_of(named: str, tenant: str | None, option: str) -> End:
    """The end a person names: a URL, or a directory. `option` is what a tenant was named with."""
    if "://" in named:
        return End(server=server_asked(url=named, tenant=tenant))
    if tenant is not None:
        raise InvalidInput(f"{option} names a tenant, which a directory does not have; leave it out")
    if not named.strip():
        raise InvalidInput("a directory's name is empty; name one, or give a postgresql:// URL")
    from engram.store.files.home import expanded

    return End(directory=expanded(Path(named), "the store").absolute())


def usual_end(home: Path | None, tenant: str | None) -> End:
    """The end every verb works on: the home that was named, `$ENGRAM_URL`, or the usual home."""
    from engram.store.files.home import default_root, expanded

    server = server_asked(home, tenant=tenant)
    if server is not None:
        return End(server=server)
    return End(directory=expanded(home or default_root(), "the store").absolute())


def transfer(here: End, there: End, progress: Progress = lambda *_: None) -> Transfer:
    """Move everything, then compare both ends. Run again after it was broken off, it goes on where it was."""
    _refuse_same(here, there)
    with reading(here) as source:
        source.check()
        with _filling(there) as target:
            moved = move(source, target, progress)
            notes = list(target.notes)
        source.settle()
        with reading(there) as arrived:
            differences = verify(source, arrived, progress)
            return Transfer(moved, arrived.counts(), differences, [*source.notes, *notes])


def plan(here: End, there: End) -> Counts:
    """What would be moved; refuses what a move would refuse, and changes neither end."""
    _refuse_same(here, there)
    with reading(here) as source:
        source.check()
        _check_free(there, source.identity)
        return source.counts()


def _refuse_same(here: End, there: End) -> None:
    same = here.place == there.place
    if here.directory is not None and there.directory is not None:
        same = here.directory.resolve() == there.directory.resolve()
    if same:
        raise InvalidInput(f"{here.place} is where the store already is; name another place with --to")


# -- opening


@contextmanager
def reading(end: End) -> Iterator[Source]:
    """An end that is read."""
    if end.server is not None:
        from engram.store.postgres.leaving import PostgresSource

        with _server_store(end.server, None) as store:
            source = PostgresSource(store)
            source.settle()
            yield source
        return
    from engram.store.files.home import open_home
    from engram.store.files.leaving import FilesSource

    files = FilesSource(open_home(end.directory, create=False))
    try:
        files.settle()
        yield files
    finally:
        files.close()


@contextmanager
def _filling(end: End) -> Iterator[Target[Any]]:
    if end.server is not None:
        from engram.store.postgres.arriving import PostgresTarget

        with _server_store(end.server, _embedder(owner_config()), create=True) as store:
            target = PostgresTarget(store)
            try:
                yield target
            finally:
                target.close()
        return
    from engram.store.files.arriving import FilesTarget

    assert end.directory is not None
    directory = FilesTarget(end.directory, None, _embedder(end.directory / "config.toml"))
    try:
        yield directory
    finally:
        directory.close()


@contextmanager
def _server_store(server: Server, embedder: "Embedder | None", *, create: bool = False) -> "Iterator[PostgresStore]":
    from engram.store.postgres.opening import open_store

    store = open_store(server.url, server.tenant, embedder, clock=utc_now, create=create)
    try:
        yield store
    finally:
        store.close()


def _embedder(config: Path | None) -> "Embedder | None":
    from engram.embedding import load_embedder

    return load_embedder(load_settings(config).embedder)


def _check_free(end: End, source: str) -> None:
    if end.server is None:
        from engram.store.files.arriving import FilesTarget

        assert end.directory is not None
        FilesTarget(end.directory, None, None).check(source)
        return
    from engram.store.postgres.arriving import check_free, way_of

    try:
        with _server_store(end.server, None) as store:
            check_free(store, way_of(store.parts.database.run("look_at_move")), source)
    except NotFound:
        # No schema yet: the move makes it.
        return
