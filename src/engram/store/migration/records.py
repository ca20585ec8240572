"""The records of a migration: one stream, the same for every backend, with a name and a digest for each of their parts.

Every store numbers its uses in its own way. In a migrated image, `activation.seq` is therefore the number of uses
folded in, not a position.
"""

import hashlib
import json
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeVar

from engram.model.errors import EngramError
from engram.model.lazy import dataclass, field, fields, replace
from engram.model.records import Checkpoint, Event, Job, Session, TaskRun, Use
from engram.store.records import from_image, image

if TYPE_CHECKING:
    from engram.embedding.vectors import Vectors

ROWS_PER_BATCH = 1_000
"""Rows per batch: enough to be fast, few enough to fit in memory and to repeat after a crash."""
BATCH_BYTES = 16 << 20
"""The most bytes of a batch."""
DIGEST_BYTES = 16
Image = Mapping[str, Any] | None
VectorsById = Mapping[str, "tuple[bytes, Vectors]"]
"""Vectors by document id, each with the digest of its text."""
Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class MemoryImage:
    """A memory after a decision; `after` is None once it was purged.

    `stored` is the current memory if this is its latest image. `team` is its file in a team's store.
    """

    id: str
    after: Image
    stored: Image = None
    team: str = ""


@dataclass(frozen=True, slots=True)
class JournalRecord:
    """One decision. `cursor` is where its source continues after it; `size` is its length in bytes."""

    at: datetime
    op: str
    actor: str
    reason: str
    session: str
    images: tuple[MemoryImage, ...]
    cursor: str
    size: int = 0
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class GateVerdict:
    """A gate's verdict on an autonomous proposal."""

    at: datetime
    gate: str
    outcome: str


@dataclass(frozen=True, slots=True)
class StateSnapshot:
    """All data that is small enough to be sent as a whole."""

    sessions: Sequence[Session] = ()
    verdicts: Sequence[GateVerdict] = ()
    tombstones: frozenset[str] = frozenset()
    numbers: Mapping[str, int] = field(default_factory=dict)
    paused: bool = False
    tasks: Sequence[TaskRun] = ()
    checkpoints: Sequence[Checkpoint] = ()
    jobs: Sequence[Job] = ()
    states: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


Record = StateSnapshot | Use | JournalRecord | Event


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


def batches(items: Iterable[Item], weigh: Callable[[Item], tuple[int, int]]) -> Iterator[list[Item]]:
    """Items in batches; `weigh` returns the rows and bytes of one item."""
    pending: list[Item] = []
    rows = size = 0
    for item in items:
        count, length = weigh(item)
        if pending and (rows + count > ROWS_PER_BATCH or size + length > BATCH_BYTES):
            yield pending
            pending, rows, size = [], 0, 0
        pending.append(item)
        rows, size = rows + count, size + length
    if pending:
        yield pending


# -- digests


def digests(record: Record) -> Iterator[tuple[str, bytes]]:
    """A name and a digest for each part of a record; events of one ledger, and images of one memory, share a name."""
    if isinstance(record, StateSnapshot):
        yield from _snapshot_digests(record)
    elif isinstance(record, Use):
        use = (record.kind, sorted(set(record.ids)), record.at, record.session, record.signal)
        yield f"use of {_iso(record.at)}", digest(use)
    elif isinstance(record, JournalRecord):
        decision = (record.at, record.op, record.actor, record.reason, record.session)
        yield f"decision of {_iso(record.at)}", digest(decision)
        for one in record.images:
            yield f"history of {one.id}", digest((record.op, record.at, one.after))
            if one.stored is not None:
                yield f"memory {one.id}", digest(one.stored)
    else:
        yield f"ledger of {record.session}", digest(_fields(record))


def _snapshot_digests(snapshot: StateSnapshot) -> Iterator[tuple[str, bytes]]:
    for kind, found in (
        ("session", snapshot.sessions),
        ("task", snapshot.tasks),
        ("checkpoint", snapshot.checkpoints),
        ("job", snapshot.jobs),
    ):
        yield from sorted((f"{kind} {one.id}", digest(_fields(one))) for one in found)
    yield from sorted((f"state {name}", digest(value)) for name, value in snapshot.states.items())
    yield "gate verdicts", digest(sorted((_iso(v.at), v.gate, v.outcome) for v in snapshot.verdicts))
    yield from ((f"tombstone of {i}", b"") for i in sorted(snapshot.tombstones))
    yield "pause", digest(snapshot.paused)


def digest(value: Any) -> bytes:
    """A digest of plain data, independent of time zones and the order of keys."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"), default=_plain)
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=DIGEST_BYTES).digest()


def _plain(value: Any) -> Any:
    return _iso(value) if isinstance(value, datetime) else dict(value)


def _fields(record: Any) -> dict[str, Any]:
    return {one.name: getattr(record, one.name) for one in fields(record)}


def _iso(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat()


# -- watermarks of folded uses


def watermark(after: Image) -> int:
    """The position up to which uses are folded into an image; 0 for none."""
    block = after.get("activation") if after is not None else None
    seq = block.get("seq") if isinstance(block, Mapping) else None
    return seq if isinstance(seq, int) else 0


def make_portable(after: Image, positions: "array[int]") -> Image:
    """The image with the number of uses folded in, for a store with uses at these positions."""
    seq = watermark(after)
    return _with_watermark(after, bisect_left(positions, seq)) if after is not None and seq else after


def make_local(record: JournalRecord, positions: "array[int]") -> JournalRecord:
    """The reverse, for all images of a decision: the position after that many uses."""
    if not any(watermark(one.after) or watermark(one.stored) for one in record.images):
        return record

    def local(after: Image) -> Image:
        folded = watermark(after)
        if after is None or not folded:
            return after
        return _with_watermark(after, positions[folded] if folded < len(positions) else positions[-1] + 1)

    images = (replace(one, after=local(one.after), stored=local(one.stored)) for one in record.images)
    return replace(record, images=tuple(images))


def _with_watermark(after: Mapping[str, Any], seq: int) -> Mapping[str, Any]:
    block = {key: value for key, value in after["activation"].items() if key != "seq"}
    changed = {**after, "activation": {**block, "seq": seq} if seq else block}
    try:
        return image(from_image(changed))
    except EngramError:
        # A record of a newer Engram; this one only understands that block.
        return changed
