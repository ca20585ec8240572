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
"""Rows per batch: enough to be fast, few enough to fit in memory and to repeat after a crash."""
BATCH_BYTES = 16 << 20
"""The most bytes of a batch."""
VectorsById = Mapping[str, "tuple[bytes, Vectors]"]
"""Vectors by document id, each with the digest of its text."""
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
    """The progress of a migration, stored in the target. `uses` and `journal` are where the source continues.

    `left` describes the target when the migration finished: it can continue unless the target was changed since.
    """

    source: str
    uses: int = 0
    journal: str = ""
    finished: bool = False
    left: str = ""


class MigrationSource(Protocol):
    """A store to read; never changed."""

    notes: list[str]
    """Messages for the owner."""
    positions: "array[int]"
    """The positions of its uses, in order."""

    @property
    def identity(self) -> str:
        """Identifies the store; contains no password."""

    @property
    def place(self) -> str:
        """Where it is, safe to show."""

    @property
    def embedder(self) -> str:
        """The name of the embedder that made its vectors; "" if there are none."""

    def settle(self) -> None:
        """Find where the logs end; they are read up to there, and nothing is added before that end."""

    def check(self) -> None:
        """Raise `StoreError` if the store cannot be migrated as it is."""

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
        """Events of every ledger after its known number, ledger by ledger."""

    def vectors(self, ids: Sequence[str]) -> VectorsById:
        """The vectors of some documents."""

    def faults(self) -> list[str]:
        """Inconsistencies of the store."""


class MigrationTarget(Protocol):
    """A store to fill. Each batch is written completely or not at all, together with the migration's state."""

    notes: list[str]
    """Messages for the owner."""

    @property
    def embedder(self) -> str:
        """The name of the embedder whose vectors it can use; "" for none."""

    def begin(self, source: str) -> MigrationState:
        """Begin or continue a migration; returns its state. Raises `Refused` if the target is not empty."""

    def heads(self) -> Mapping[str, int]:
        """The number of each ledger's last migrated event."""

    def positions(self) -> "array[int]":
        """The positions of all migrated uses, in order."""

    def load_snapshot(self, snapshot: StateSnapshot) -> None:
        """Replace everything that is sent as a whole."""

    def load_uses(self, uses: Sequence[Use]) -> None:
        """Append uses, at the target's own positions."""

    def journal_writer(self, records: Sequence[JournalRecord], vectors: VectorsById) -> Callable[[], None]:
        """Prepare decisions, possibly in another thread; calling the result writes them."""

    def load_events(self, batch: Sequence[Event], vectors: VectorsById) -> None:
        """Append events to their ledgers with their digests."""

    def finish(self, progress: Progress) -> None:
        """Make the target usable as a store."""


def export(source: MigrationSource) -> Iterator[Record]:
    """All records of a store, as one stream."""
    yield source.snapshot()
    yield from source.uses()
    yield from source.journal()
    yield from source.events({})


def batches(items: Iterable[Item], weigh: Callable[[Item], tuple[int, int]]) -> Iterator[list[Item]]:
    """Items in batches; `weigh` returns the rows and bytes of one item."""
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
    """The same items; the next one is made in a thread while the caller uses the current one."""
    end = object()
    with ThreadPoolExecutor(1, "engram-prefetch") as worker:
        upcoming = worker.submit(next, items, end)
        while (item := upcoming.result()) is not end:
            upcoming = worker.submit(next, items, end)
            yield item  # type: ignore[misc]
