"""Moving a whole store to another place: what travels, in which order, and how a move that was broken off goes on.

A `Source` hands out slices and changes nothing where it reads. A `Target` takes each slice whole or not at all, together with
how far the move has come, so whoever runs it again goes on from there and nothing arrives twice. Neither knows the other.
"""

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from engram.model.errors import StoreBusy
from engram.model.event import Event, Session
from engram.model.task import Checkpoint, Job, TaskRun
from engram.model.usage import Use
from engram.store.ahead import ahead
from engram.store.protocol import Progress
from engram.store.watermarks import Watermarks, watermark

if TYPE_CHECKING:
    from engram.embedding.protocol import Vectors

SLICE = 1_000
"""Rows that travel together: enough to be quick, few enough to be held in memory and lost to a crash."""
SLICE_BYTES = 16 << 20
"""A slice of long texts is shorter."""
MOST_PASSES = 5
"""So often a move looks again whether the source grew meanwhile; a store written to without end never arrives."""
Carried = Mapping[str, "tuple[bytes, Vectors]"]
"""Vectors by document id, each with the digest of the text it was made of."""
Ready = TypeVar("Ready")


@dataclass(frozen=True, slots=True)
class Change:
    """One memory's image. `current`: so the memory stands now. `team`: the file of the team store it belongs to."""

    id: str
    after: Mapping[str, Any] | None
    current: bool = False
    team: str = ""


@dataclass(frozen=True, slots=True)
class Decision:
    """One decision of the journal. `cursor` is where its source goes on behind it."""

    at: datetime
    op: str
    actor: str
    reason: str
    session: str
    changes: tuple[Change, ...]
    cursor: str
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a gate said of an autonomous proposal."""

    at: datetime
    gate: str
    outcome: str


@dataclass(frozen=True, slots=True)
class Chain:
    """A session's ledger: how long it is, how it ends, a digest of all of it, and what is wrong with its chain."""

    count: int
    head: str
    digest: bytes
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Small:
    """What is so little that it travels whole every time."""

    sessions: Sequence[Session]
    verdicts: Sequence[Verdict]
    tombstones: frozenset[str]
    numbers: Mapping[str, int]
    paused: bool
    tasks: Sequence[TaskRun] = ()
    checkpoints: Sequence[Checkpoint] = ()
    jobs: Sequence[Job] = ()


@dataclass(frozen=True, slots=True)
class Counts:
    """How much a store holds."""

    memories: int = 0
    decisions: int = 0
    images: int = 0
    uses: int = 0
    events: int = 0
    sessions: int = 0
    verdicts: int = 0
    tombstones: int = 0


@dataclass(slots=True)
class Way:
    """How far a move has come; the target remembers it. `uses` and `journal` are where the source goes on.

    `left` is how the target looked when the move was finished: unless it was used since, a move can still go on.
    """

    source: str
    uses: int = 0
    journal: str = ""
    finished: bool = False
    left: str = ""


class Source(Protocol):
    """A store that is read and never changed."""

    @property
    def identity(self) -> str:
        """What tells this store from every other; no password in it."""

    @property
    def place(self) -> str:
        """Where it is, safe to show."""

    @property
    def embedder(self) -> str:
        """Who made its vectors; "" where there are none."""

    @property
    def notes(self) -> list[str]:
        """What the owner should hear of."""

    def settle(self) -> None:
        """Look how far the logs go now: what is read from here on goes that far, and nothing within can still appear."""

    def check(self) -> None:
        """Refuse what cannot be moved as it is."""

    def mark(self) -> tuple[Any, ...]:
        """Changes when the store does."""

    def counts(self) -> Counts:
        """How much it holds."""

    def positions(self) -> "array[int]":
        """The positions of all uses, in order."""

    def uses(self, after: int = -1) -> Iterator[list[Use]]:
        """Uses behind a position, in order; without ids of purged memories."""

    def decisions(self, cursor: str = "") -> Iterator[list[Decision]]:
        """Decisions behind a cursor, in order."""

    def vectors(self, ids: Sequence[str]) -> Carried:
        """The vectors of some documents."""

    def heads(self) -> Mapping[str, int]:
        """The number of each session's last event."""

    def events(self, known: Mapping[str, int]) -> Iterator[list[Event]]:
        """Events of every session behind the number that is known of it."""

    def small(self) -> Small:
        """Sessions, verdicts, tombstones, highest id numbers, the pause."""

    def records(self) -> Iterator[tuple[str, bytes]]:
        """Every memory's id and the fingerprint of its record, by id."""

    def histories(self) -> Iterator[tuple[str, bytes]]:
        """Every id the journal names and a digest of all its images in order, by id."""

    def audit(self) -> Iterator[bytes]:
        """A digest of each decision, in order."""

    def chains(self) -> Mapping[str, Chain]:
        """Every session's ledger."""

    def faults(self) -> list[str]:
        """Where the store does not agree with itself."""


class Target(Protocol, Generic[Ready]):
    """A store that is filled."""

    @property
    def place(self) -> str:
        """Where it is, safe to show."""

    @property
    def embedder(self) -> str:
        """Whose vectors it can use; "" for nobody's."""

    @property
    def notes(self) -> list[str]:
        """What the owner should hear of."""

    def begin(self, source: str) -> Way:
        """Make ready to take a source in, or find out how far that came; refuse a place that holds anything else."""

    def heads(self) -> Mapping[str, int]:
        """The number of each session's last event that has arrived."""

    def positions(self) -> "array[int]":
        """The positions of all uses that have arrived, in order."""

    def take_small(self, small: Small) -> None:
        """Put what is little."""

    def take_uses(self, uses: Sequence[Use]) -> None:
        """Append uses, at positions of its own."""

    def made_ready(self, decisions: Sequence[Decision], vectors: Carried) -> Ready:
        """The slow part of taking decisions in; writes nothing, may run in another thread."""

    def take_decisions(self, ready: Ready) -> None:
        """Append decisions, and put the memories that stand so now."""

    def take_events(self, events: Sequence[Event], vectors: Carried) -> None:
        """Append events to their ledgers, digests as they are."""

    def finish(self, progress: Progress) -> None:
        """Make it a store like any other."""


@dataclass(frozen=True, slots=True)
class Moved:
    """What arrived in this run; `already` says that an earlier one had finished."""

    counts: Mapping[str, int] = field(default_factory=dict)
    already: bool = False


def move(source: Source, target: Target[Any], progress: Progress = lambda *_: None) -> Moved:
    """Bring everything over, until the source holds nothing more; then make the target a store like any other."""
    way = target.begin(source.identity)
    if way.finished:
        return Moved(already=True)
    arrived: dict[str, int] = {}
    for _ in range(MOST_PASSES):
        before = source.mark()
        source.settle()
        _one_pass(source, target, way, arrived, progress)
        if source.mark() == before:
            break
    else:
        raise StoreBusy(
            f"{source.place} was written to all the while; what came so far is kept. Stop its writers, then run this again"
        )
    target.finish(progress)
    return Moved(arrived)


def _one_pass(source: Source, target: Target[Any], way: Way, arrived: dict[str, int], progress: Progress) -> None:
    """Sessions first, they say the scope of their events; uses before the memories they are folded into."""
    small, counts = source.small(), source.counts()
    target.take_small(small)
    for uses in source.uses(way.uses or -1):
        target.take_uses(uses)
        way.uses = uses[-1].position
        _report(progress, arrived, "uses", len(uses), counts.uses)
    _move_decisions(source, target, way, arrived, counts, progress)
    for events in source.events(target.heads()):
        target.take_events(events, _vectors_of([event.id for event in events], source, target))
        _report(progress, arrived, "events", len(events), counts.events)
    arrived |= {"sessions": len(small.sessions), "verdicts": len(small.verdicts), "tombstones": len(small.tombstones)}
    arrived |= {"tasks": len(small.tasks), "checkpoints": len(small.checkpoints), "jobs": len(small.jobs)}


def _move_decisions(
    source: Source, target: Target[Any], way: Way, arrived: dict[str, int], counts: Counts, progress: Progress
) -> None:
    watermarks = Watermarks(source.positions(), target.positions(), source.place)

    def made_ready() -> Iterator[tuple[list[Decision], Any]]:
        for decisions in source.decisions(way.journal):
            translated = [_translated(decision, watermarks) for decision in decisions]
            current = [change.id for decision in decisions for change in decision.changes if change.current]
            yield decisions, target.made_ready(translated, _vectors_of(current, source, target))

    for decisions, ready in ahead(made_ready()):
        target.take_decisions(ready)
        way.journal = decisions[-1].cursor
        changes = [change for decision in decisions for change in decision.changes]
        arrived["decisions"] = arrived.get("decisions", 0) + len(decisions)
        arrived["memories"] = arrived.get("memories", 0) + sum(change.current for change in changes)
        _report(progress, arrived, "images", len(changes), counts.images)


def _translated(decision: Decision, watermarks: Watermarks) -> Decision:
    """A decision whose images count their uses as the target does."""
    if not any(watermark(change.after) for change in decision.changes):
        return decision
    changes = [replace(change, after=watermarks.translated(change.after)) for change in decision.changes]
    return replace(decision, changes=tuple(changes))


def _report(progress: Progress, arrived: dict[str, int], kind: str, more: int, total: int) -> None:
    arrived[kind] = arrived.get(kind, 0) + more
    progress(kind, arrived[kind], max(total, arrived[kind]))


def _vectors_of(ids: Sequence[str], source: Source, target: Target[Any]) -> Carried:
    same = bool(source.embedder) and source.embedder == target.embedder
    return source.vectors(ids) if same and ids else {}


# -- slices


def slices(items: "Iterable[tuple[Ready, int, int]]") -> Iterator[list[Ready]]:
    """Items by the slice. Each comes with how many rows and how many bytes it counts for."""
    pending: list[Ready] = []
    rows = size = 0
    for item, count, length in items:
        if pending and (rows + count > SLICE or size + length > SLICE_BYTES):
            yield pending
            pending, rows, size = [], 0, 0
        pending.append(item)
        rows, size = rows + count, size + length
    if pending:
        yield pending
