"""The two sides of a migration, and the stream of records between them."""

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from engram.model.event import Event
from engram.model.usage import Use
from engram.store.migration.records import JournalRecord, Record, StateSnapshot
from engram.store.protocol import Progress

if TYPE_CHECKING:
    from engram.embedding.protocol import Vectors

BATCH = 1_000
"""Rows that travel together: enough to be quick, few enough to fit in memory and to repeat after a crash."""
BATCH_BYTES = 16 << 20
"""A batch of long texts is shorter."""
VectorsById = Mapping[str, "tuple[bytes, Vectors]"]
"""Vectors by document id, each with the digest of the text it was made of."""
Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Counts:
    """How much a store contains."""

    memories: int = 0
    decisions: int = 0
    images: int = 0
    uses: int = 0
    events: int = 0
    sessions: int = 0
    verdicts: int = 0
    tombstones: int = 0


@dataclass(slots=True)
class MigrationState:
    """How far a migration has come; the target keeps it. `uses` and `journal` are where the source continues.

    `left` describes the target when the migration finished: unless the target was used since, a migration can continue.
    """

    source: str
    uses: int = 0
    journal: str = ""
    finished: bool = False
    left: str = ""


class MigrationSource(Protocol):
    """A store that is read and never changed."""

    notes: list[str]
    """What the owner should know."""
    positions: "array[int]"
    """Where its uses are, in order."""

    @property
    def identity(self) -> str:
        """What tells this store from every other; contains no password."""

    @property
    def place(self) -> str:
        """Where it is, safe to show."""

    @property
    def embedder(self) -> str:
        """The name of the embedder that made its vectors; "" where there are none."""

    def settle(self) -> None:
        """Fix how far the logs are read from here on: nothing up to there can still appear."""

    def check(self) -> None:
        """Raise `StoreError` for a store that cannot be migrated as it is."""

    def mark(self) -> tuple[Any, ...]:
        """A value that changes when the store does."""

    def counts(self) -> Counts:
        """How much it contains."""

    def snapshot(self) -> StateSnapshot:
        """Sessions, tasks, verdicts, tombstones, highest id numbers, the pause."""

    def uses(self, after: int = 0) -> Iterator[Use]:
        """Uses after a position, in order; without ids of purged memories."""

    def journal(self, cursor: str = "") -> Iterator[JournalRecord]:
        """Decisions after a cursor, in order."""

    def events(self, known: Mapping[str, int]) -> Iterator[Event]:
        """Events of every ledger after the number that is known of it, ledger by ledger."""

    def vectors(self, ids: Sequence[str]) -> VectorsById:
        """The vectors of some documents."""

    def faults(self) -> list[str]:
        """Where the store contradicts itself."""


class MigrationTarget(Protocol):
    """A store that is filled. Each batch arrives whole or not at all, together with the state of the migration."""

    notes: list[str]
    """What the owner should know."""

    @property
    def embedder(self) -> str:
        """The name of the embedder whose vectors it can use; "" for none."""

    def begin(self, source: str) -> MigrationState:
        """Prepare for a source, or return how far its migration came; `Refused` for a place with anything else in it."""

    def heads(self) -> Mapping[str, int]:
        """The number of each ledger's last event that has arrived."""

    def positions(self) -> "array[int]":
        """The positions of all uses that have arrived, in order."""

    def load_snapshot(self, snapshot: StateSnapshot) -> None:
        """Replace what is small."""

    def load_uses(self, uses: Sequence[Use]) -> None:
        """Append uses, at positions of its own."""

    def journal_writer(self, records: Sequence[JournalRecord], vectors: VectorsById) -> Callable[[], None]:
        """Do the slow part of loading decisions, possibly in another thread; calling the result writes them."""

    def load_events(self, batch: Sequence[Event], vectors: VectorsById) -> None:
        """Append events to their ledgers, digests unchanged."""

    def finish(self, progress: Progress) -> None:
        """Make it a store like any other."""


def export(source: MigrationSource) -> Iterator[Record]:
    """Everything in a store, as one stream."""
    yield source.snapshot()
    yield from source.uses()
    yield from source.journal()
    yield from source.events({})


def batches(items: Iterable[Item], weigh: Callable[[Item], tuple[int, int]]) -> Iterator[list[Item]]:
    """Items that travel together; `weigh` says how many rows and bytes one counts for."""
    pending: list[Item] = []
    rows = size = 0
    for item in items:
        count, length = weigh(item)
        if pending and (rows + count > BATCH or size + length > BATCH_BYTES):
            yield pending
            pending, rows, size = [], 0, 0
        pending.append(item)
        rows, size = rows + count, size + length
    if pending:
        yield pending


def prefetch(items: Iterator[Item]) -> Iterator[Item]:
    """The same items, the next one made in a thread while the caller uses the last."""
    end = object()
    with ThreadPoolExecutor(1, "engram-prefetch") as worker:
        upcoming = worker.submit(next, items, end)
        while (item := upcoming.result()) is not end:
            upcoming = worker.submit(next, items, end)
            yield item  # type: ignore[misc]
