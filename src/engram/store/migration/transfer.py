"""`engram migrate`: copies a store in batches, then compares source and target record by record."""

import hashlib
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import asdict
from itertools import chain, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING

from engram.model.errors import InvalidInput, StoreBusy, StoreError
from engram.model.lazy import dataclass, field
from engram.settings import load_settings
from engram.store.defaults import Server, owner_config, requested_server, utc_now
from engram.store.migration.records import (
    DIGEST_BYTES,
    Counts,
    Item,
    MigrationState,
    Record,
    VectorsById,
    batches,
    digests,
    make_local,
)
from engram.store.protocol import Progress

if TYPE_CHECKING:
    from engram.embedding.vectors import Embedder
    from engram.store.migration.files_source import FilesSource
    from engram.store.migration.files_target import FilesTarget
    from engram.store.migration.postgres import PostgresSource, PostgresTarget
    from engram.store.postgres.store import PostgresStore

    MigrationSource = FilesSource | PostgresSource
    MigrationTarget = FilesTarget | PostgresTarget

MAX_PASSES = 5
"""How often a migration copies what was added to the source meanwhile before it gives up."""
REPORT_EVERY = 500
Named = tuple[str, bytes]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One end of a migration: a directory, or a tenant of a server."""

    directory: Path | None = None
    server: Server | None = None

    @property
    def place(self) -> str:
        """Its location, safe to show."""
        if self.server is None:
            return str(self.directory)
        from engram.store.postgres.connections import shown_url

        return f"{shown_url(self.server.url)} (tenant {self.server.tenant})"


@dataclass(frozen=True, slots=True)
class Transfer:
    """The result of a migration: the target's counts, what this run copied, the differences, and notes for the owner.

    `already` is set if an earlier run had finished and this one only compared.
    """

    counts: Counts
    arrived: dict[str, int] = field(default_factory=dict)
    already: bool = False
    differences: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def named_endpoint(named: str, tenant: str | None, option: str) -> Endpoint:
    """The endpoint a user names, a URL or a directory; `option` is the option that gave the tenant."""
    if "://" in named:
        return Endpoint(server=requested_server(url=named, tenant=tenant))
    if tenant is not None:
        raise InvalidInput(f"{option} is for servers; omit it for a directory")
    if not named.strip():
        raise InvalidInput("the directory is empty; give a directory or a postgresql:// URL")
    from engram.store.home import expanded

    return Endpoint(directory=expanded(Path(named), "the store").absolute())


def default_endpoint(home: Path | None, tenant: str | None) -> Endpoint:
    """The endpoint that other verbs use: the given home, `$ENGRAM_URL`, or the default home."""
    from engram.store.home import default_root, expanded

    server = requested_server(home, tenant=tenant)
    if server is not None:
        return Endpoint(server=server)
    return Endpoint(directory=expanded(home or default_root(), "the store").absolute())


def transfer(here: Endpoint, there: Endpoint, progress: Progress = lambda *_: None) -> Transfer:
    """Migrate everything, then compare source and target. An interrupted migration continues when run again."""
    _refuse_same(here, there)
    with open_source(here) as source:
        source.check()
        with _open_target(there) as target:
            arrived = _migrate(source, target, progress)
            notes = list(target.notes)
        source.settle()
        with open_source(there) as result:
            differences = verify(source, result, progress)
            notes = [*source.notes, *notes]
            return Transfer(result.counts(), arrived or {}, arrived is None, differences, notes)


def plan(here: Endpoint, there: Endpoint) -> Counts:
    """What would be migrated. Raises what `transfer` would raise; changes nothing."""
    _refuse_same(here, there)
    with open_source(here) as source:
        source.check()
        _check_free(there, source.identity)
        return source.counts()


def _refuse_same(here: Endpoint, there: Endpoint) -> None:
    same = here.place == there.place
    if here.directory is not None and there.directory is not None:
        same = here.directory.resolve() == there.directory.resolve()
    if same:
        raise InvalidInput(f"source and target are both {here.place}; give another target with --to")


# -- copying


def _migrate(source: "MigrationSource", target: "MigrationTarget", progress: Progress) -> dict[str, int] | None:
    """Copy everything, including what is added meanwhile. Returns what was copied; None if an earlier run had finished."""
    state = target.begin(source.identity)
    if state.finished:
        return None
    arrived: dict[str, int] = {}
    for _ in range(MAX_PASSES):
        before = source.mark()
        source.settle()
        _pass(source, target, state, arrived, progress)
        if source.mark() == before:
            break
    else:
        raise StoreBusy(
            f"{source.place} kept changing during the migration; what was copied is kept. Stop its writers, then run "
            "the command again"
        )
    target.finish(progress)
    return arrived


def _pass(
    source: "MigrationSource",
    target: "MigrationTarget",
    state: MigrationState,
    arrived: dict[str, int],
    progress: Progress,
) -> None:
    """Copy once: sessions first, which give their events a scope; uses before the memories they are folded into."""

    def report(kind: str, more: int, total: int) -> None:
        arrived[kind] = arrived.get(kind, 0) + more
        progress(kind, arrived[kind], max(total, arrived[kind]))

    snapshot, counts = source.snapshot(), source.counts()
    target.load_snapshot(snapshot)
    for kind in ("sessions", "verdicts", "tombstones", "tasks", "checkpoints", "jobs", "states"):
        arrived[kind] = len(getattr(snapshot, kind))
    for uses in batches(source.uses(state.uses), lambda use: (len(use.ids), 0)):
        target.load_uses(uses)
        report("uses", len(uses), counts.uses)
    for images, memories, decisions in _load_journal(source, target, state):
        arrived["decisions"] = arrived.get("decisions", 0) + decisions
        arrived["memories"] = arrived.get("memories", 0) + memories
        report("images", images, counts.images)
    for events in batches(source.events(target.heads()), lambda event: (1, len(event.content))):
        target.load_events(events, _vectors([event.id for event in events], source, target))
        report("events", len(events), counts.events)


def _load_journal(
    source: "MigrationSource", target: "MigrationTarget", state: MigrationState
) -> Iterator[tuple[int, int, int]]:
    """Yields the number of images, current memories and decisions of each batch written."""
    positions = target.positions()
    if len(source.positions) != len(positions):
        raise StoreError(
            f"{source.place} was pruned or purged during the migration: it has {len(source.positions)} uses, "
            f"{len(positions)} were copied. Start over with an empty target"
        )

    def prepare_writes() -> Iterator[tuple[tuple[int, int, int], Callable[[], None]]]:
        for records in batches(source.journal(state.journal), lambda record: (len(record.images), record.size)):
            current = [image.id for record in records for image in record.images if image.stored is not None]
            size = sum(len(record.images) for record in records), len(current), len(records)
            local = [make_local(record, positions) for record in records]
            yield size, target.journal_writer(local, _vectors(current, source, target))

    for size, write in _prefetch(prepare_writes()):
        write()
        yield size


def _vectors(ids: list[str], source: "MigrationSource", target: "MigrationTarget") -> VectorsById:
    same = bool(source.embedder) and source.embedder == target.embedder
    return source.vectors(ids) if same and ids else {}


def _prefetch(items: Iterator[Item]) -> Iterator[Item]:
    """The same items; the next one is made in a thread while the caller uses the current one."""
    end = object()
    with ThreadPoolExecutor(1, "engram-prefetch") as worker:
        upcoming = worker.submit(next, items, end)
        while (item := upcoming.result()) is not end:
            upcoming = worker.submit(next, items, end)
            yield item  # type: ignore[misc]


# -- comparing


def verify(source: "MigrationSource", target: "MigrationSource", progress: Progress = lambda *_: None) -> list[str]:
    """The differences between two stores, by name; empty if they are equal."""
    here, there = asdict(source.counts()), asdict(target.counts())
    found = [
        f"{kind}: {here[kind]} at the source, {there[kind]} at the target" for kind in here if here[kind] != there[kind]
    ]
    total = here["uses"] + here["decisions"] + here["memories"] + here["images"] + here["events"]
    found += _differences(_report_progress(_record_digests(source), progress, total), _record_digests(target))
    given, kept = source.snapshot().numbers, target.snapshot().numbers
    found += [
        f"highest number of {day}: {last} at the source, {kept.get(day, 0)} at the target"
        for day, last in given.items()
        if kept.get(day, 0) < last
    ]
    return found + target.faults()


def _all_records(store: "MigrationSource") -> Iterator[Record]:
    """All records of a store, as one stream."""
    yield store.snapshot()
    yield from store.uses()
    yield from store.journal()
    yield from store.events({})


def _record_digests(store: "MigrationSource") -> Iterator[Named]:
    return (named for record in _all_records(store) for named in digests(record))


def _report_progress(items: Iterator[Named], progress: Progress, total: int) -> Iterator[Named]:
    for done, item in enumerate(items, 1):
        if done % REPORT_EVERY == 0:
            progress("verified", done, max(done, total))
        yield item


def _differences(here: Iterator[Named], there: Iterator[Named]) -> Iterator[str]:
    """The differences by name. Equal streams take no memory; after the first difference, the rest is compared by name."""
    for left, right in zip_longest(here, there):
        if left != right:
            break
    else:
        return
    source = _by_name(chain([left] if left else [], here))
    target = _by_name(chain([right] if right else [], there))
    for name in sorted(source.keys() | target.keys()):
        if name not in target:
            yield f"{name}: missing at the target"
        elif name not in source:
            yield f"{name}: only at the target"
        elif source[name] != target[name]:
            yield f"{name}: differs"


def _by_name(items: Iterator[Named]) -> Mapping[str, bytes]:
    """One digest per name, of all its records."""
    found: dict[str, bytes] = {}
    for name, digest in items:
        found[name] = hashlib.blake2b(found.get(name, b"") + digest, digest_size=DIGEST_BYTES).digest()
    return found


# -- opening


@contextmanager
def open_source(end: Endpoint) -> "Iterator[MigrationSource]":
    """Open an endpoint for reading."""
    if end.server is not None:
        from engram.store.migration.postgres import PostgresSource

        with _server_store(end.server, None) as store:
            source = PostgresSource(store)
            source.settle()
            yield source
        return
    from engram.store.home import open_home
    from engram.store.migration.files_source import FilesSource

    with closing(FilesSource(open_home(end.directory, create=False))) as files:
        files.settle()
        yield files


@contextmanager
def _open_target(end: Endpoint) -> "Iterator[MigrationTarget]":
    if end.server is not None:
        from engram.store.migration.postgres import PostgresTarget
        from engram.store.postgres.setup import upgrade_schema

        upgrade_schema(end.server.url)
        with _server_store(end.server, _embedder(owner_config())) as store:
            yield PostgresTarget(store)
        return
    from engram.store.migration.files_target import FilesTarget

    assert end.directory is not None
    with closing(FilesTarget(end.directory, _embedder(end.directory / "config.toml"))) as directory:
        yield directory


@contextmanager
def _server_store(server: Server, embedder: "Embedder | None") -> "Iterator[PostgresStore]":
    from engram.store.postgres.setup import open_store

    with closing(open_store(server.url, server.tenant, embedder, clock=utc_now, create=False)) as store:
        yield store


def _embedder(config: Path | None) -> "Embedder | None":
    from engram.embedding import load_embedder

    return load_embedder(load_settings(config).embedder)


def _check_free(end: Endpoint, source: str) -> None:
    """Raise for a target that `transfer` would refuse, without changing it."""
    if end.server is None:
        from engram.store.migration.files_target import FilesTarget

        assert end.directory is not None
        FilesTarget(end.directory, None).check(source)
        return
    from engram.model.errors import NotFound
    from engram.store.migration.postgres import PostgresTarget

    try:
        with _server_store(end.server, None) as store:
            PostgresTarget(store).check(source)
    except NotFound:
        # No schema yet: `transfer` creates it.
        return
