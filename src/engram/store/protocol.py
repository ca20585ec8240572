"""The interface of a backend. All other layers depend on this protocol, not on where memories are stored.

A backend provides reads, decisions, usage, events, and search candidates with their raw scores. Fusion, spreading and
weighting happen in a layer above it, so every backend ranks alike.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from engram.model.lazy import dataclass, field
from engram.model.memory import CO_ACCESSED, LIVE_STATUSES, Memory
from engram.model.records import Checkpoint, Event, Job, Session, TaskRun, Use
from engram.store.intake import JobFactory, NewEvent, no_jobs
from engram.store.reports import Check, Pruned, Purged, SyncReport

if TYPE_CHECKING:
    from array import array

    from engram.embedding.vectors import Vectors
    from engram.store.intake import Screen
    from engram.store.states import StateChange

LoadedT = TypeVar("LoadedT", Session, TaskRun)
ListedT = TypeVar("ListedT", Session, TaskRun, Checkpoint, Job)
COMPARED_STATUSES = ("active", "dormant", "candidate")
"""The statuses of memories that a new statement is compared with."""
Progress = Callable[[str, int, int], None]
"""Called with the kind of work, the amount done, and the total."""
COMMON_TERM_DOCUMENTS = 20_000
"""A term in this many documents counts as known to every scope, without a lookup."""
NEVER_TRUE_STATUSES = ("retired", "rejected", "candidate")
"""The statuses of memories that were never true, which questions about the past must not find."""


@dataclass(frozen=True, slots=True)
class Filters:
    """The conditions on search results. Filters apply before the limit; None means no restriction."""

    kinds: tuple[str, ...] = ("memory",)
    scopes: tuple[str, ...] | None = None
    outside: tuple[str, ...] = ()
    """Only documents of a project other than these scopes."""
    statuses: tuple[str, ...] | None = LIVE_STATUSES
    types: tuple[str, ...] | None = None
    tags: tuple[str, ...] | None = None
    domain: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    valid_at: datetime | None = None
    """Return what was true at this moment: now, or `as_of`."""
    as_of: bool = False
    """Whether the caller gave `valid_at`; then memories superseded since also count."""
    known_at: datetime | None = None
    parents: tuple[str, ...] | None = None
    pinned: bool = False
    critical: bool = False
    """Only memories that a policy put into a critical slot."""
    roles: tuple[str, ...] | None = None
    """The speakers of events."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    without_cues: bool = False
    """Only memories of the owner's own store without cues."""
    except_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Query:
    """A search: terms for the lexical retriever, a vector for the semantic one and one for that by task; any may be missing."""

    terms: tuple[str, ...] = ()
    vector: "Vectors | None" = None
    limit: int = 100
    task: "array[float] | None" = None
    """The task vector of a prompt (`engram.models.task_vectors`)."""


@dataclass(slots=True)
class Candidates:
    """The rankings of the retrievers: document numbers with raw scores, best first."""

    lexical: list[tuple[int, float]] = field(default_factory=list)
    semantic: list[tuple[int, float]] = field(default_factory=list)
    by_task: list[tuple[int, float]] = field(default_factory=list)
    """Memories whose situation is near the task; none if the store has no task vectors."""
    tasks_compared: int = 0
    """The number of memories compared for `by_task`."""
    total: int = 0
    """The number of documents in the store; with `frequency` it gives each term's weight."""
    frequency: dict[str, int] = field(default_factory=dict)
    pruned: tuple[str, ...] = ()
    positions: "dict[int, DocumentPosition]" = field(default_factory=dict)
    """The position of each document of either ranking."""
    warnings: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class IndexedPassage:
    """A document's index terms by field, and its position in a session or file.

    `eligible` says whether it passes the filters. A neighbour that does not still contributes its words to those that do.
    """

    n: int
    fields: tuple[str, ...]
    parent: str
    position: int
    time: float | None
    eligible: bool


@dataclass(frozen=True, slots=True)
class DocumentPosition:
    """A document's session, task or file ("" for none), its position there, and the last position there."""

    parent: str
    position: int
    last: int


@dataclass(frozen=True, slots=True)
class PassageRange:
    """Part of a session, task or file, from the first position through the last."""

    parent: str
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class StoredRecord:
    """A record with its number in the index."""

    n: int
    kind: str
    record: Memory | Event


@dataclass(frozen=True, slots=True)
class Image:
    """One step of a memory's history: a decision, and the memory after it (None once purged)."""

    seq: int
    at: datetime
    op: str
    actor: str
    reason: str
    memory: Memory | None
    ids: tuple[str, ...] = ()
    """Every memory the decision changed."""
    session: str = ""
    """The session it was made in, or the bulk decision it is a part of."""


@dataclass(frozen=True, slots=True)
class Hops:
    """Which links a graph walk follows, in which direction, and to which memories."""

    at: datetime
    """The moment at which learned links are weighted: they decay."""
    direction: str = "outbound"
    """outbound, inbound or any."""
    types: tuple[str, ...] | None = None
    min_weight: float = 0.0
    filters: Filters = Filters()

    @property
    def explicit_directions(self) -> int:
        """In how many directions an explicit relation replaces a learned link.

        The explicit relation explains better why two memories belong together.
        """
        if self.types is not None and (CO_ACCESSED not in self.types or len(self.types) == 1):
            return 0
        return 2 if self.outbound and self.inbound else 1

    @property
    def outbound(self) -> bool:
        """Whether links are followed forwards."""
        return self.direction != "inbound"

    @property
    def inbound(self) -> bool:
        """Whether links are followed backwards."""
        return self.direction != "outbound"


class Link(NamedTuple):
    """A link from a memory to one that passes the filters; if that was superseded, to its first successor that passes."""

    source: str
    target: str
    type: str
    weight: float
    forward: bool


MAX_VERSIONS = 64
"""Versions of one fact that are followed; only a damaged store has more."""


@dataclass(frozen=True, slots=True)
class ProposalKeys:
    """The keys by which a decision looks up what exists, for one memory it may write."""

    content_hash: str
    scope: str
    name: str
    conflict_key: str = ""


class Transaction(Protocol):
    """One decision, with its records locked. It is written when its block ends without an error."""

    def prefetch(self, proposals: Sequence["ProposalKeys"]) -> None:
        """Look up everything the decision will need at once; a hint for remote backends."""

    def get(self, memory_id: str) -> Memory | None:
        """The current memory, hand edits included."""

    def exact(self, content_hash: str, scope: str) -> Memory | None:
        """The live memory with this content; None if there is none."""

    def heads(self, conflict_key: str, scope: str) -> Sequence[Memory]:
        """The current memories with a conflict key in a scope: one, unless several were written by hand."""

    def lineage(self, lineage_id: str) -> Sequence[Memory]:
        """Every version of a fact in the order they were true, including those this decision has put."""

    def changed_since(self, scope: str, mark: int) -> Sequence[Memory]:
        """Memories of a scope that other decisions wrote after `mark`."""

    def check(self, memory: Memory) -> None:
        """Raise if this decision may not write the memory; the end of the decision checks everything it has put anyway."""

    def new_id(self, at: datetime, *, team: bool = False) -> str:
        """The next id of a day; ids are never reused."""

    def free_name(self, name: str, scope: str) -> str:
        """The name, or the name with the first free number appended."""

    def put(self, memory: Memory, vector: "Vectors | None" = None, *, team: str = "", judged: bool = False) -> None:
        """Add or replace a memory. Without a vector, a changed text is embedded after the commit.

        `judged` means that the gates have judged the content, so that the screen only checks it for secrets.
        """


class PassageReader(Protocol):
    """The reads that ranking needs from an index, of a store or of sources."""

    def document_positions(self, numbers: Sequence[int]) -> dict[int, DocumentPosition]:
        """Each document's session, task or file, and its position there."""

    def passages(
        self, numbers: Sequence[int], ranges: Sequence[PassageRange], filters: Filters
    ) -> "tuple[list[IndexedPassage], Vectors | None]":
        """These documents, then every document of these ranges, with their vectors."""

    def embed(self, texts: Sequence[str]) -> "Vectors | None":
        """Vectors of texts, in the index's space; None without an embedder."""

    def embedder_name(self) -> str:
        """The embedder that made the vectors."""


class Store(Protocol):
    """A backend."""

    screen: "Screen"
    """Checks every record before it is written."""

    @property
    def place(self) -> str:
        """Where the store is, safe to show: a path, or a URL without its password."""

    # reads
    def get(self, ref: str, scopes: Collection[str] | None = None) -> Memory | None:
        """A memory by id, name or alias, hand edits included; None outside these scopes."""

    def get_many(self, numbers: Sequence[int]) -> list[StoredRecord]:
        """Records by document number, in that order, hand edits included."""

    def exact(self, content_hash: str, scope: str) -> Memory | None:
        """The live memory with this content in this scope."""

    def same_text(self, content_hash: str, statuses: Sequence[str]) -> list[Memory]:
        """The memories with this content and one of these statuses, in any scope."""

    def embed(self, texts: Sequence[str]) -> "Vectors | None":
        """Vectors of texts; None if this process does not have the store's embedder."""

    def embedder_name(self) -> str:
        """This process's embedding model; "" if it has none."""

    def own_ids(self, memory_ids: Iterable[str]) -> list[str]:
        """The memories among these that belong to the owner's own store, not to a team's."""

    def trusted_here(self, directory: Path) -> frozenset[str]:
        """Digests of the files the owner trusts in a directory's repository."""

    def id_by_name(self, name: str, scope: str) -> str:
        """The id of the memory with this name in a scope, or ""."""

    def mark(self, scope: str) -> int:
        """The number of a scope's last change, for `Transaction.changed_since`."""

    def file_of(self, memory_id: str) -> str:
        """The file of a memory; "" if memories are not files."""

    def event(self, event_id: str) -> Event | None:
        """An event by id."""

    def owner_of(self, document_id: str) -> str | None:
        """The scope of a memory or an event; None if the id is unknown."""

    def listing(
        self, filters: Filters, limit: int | None = None, offset: int = 0, *, most_used: bool = False
    ) -> list[Memory]:
        """Memories, newest first; most used first if `most_used`."""

    def count(self, filters: Filters) -> int:
        """The number of documents that pass the filters."""

    def candidates(self, query: Query, filters: Filters) -> Candidates:
        """What each retriever finds, best first, with the position of each document."""

    def candidates_of_each(self, queries: Sequence[Query], filters: Filters) -> list[Candidates]:
        """The candidates of several queries, which have the same limit."""

    def may_have_situations(self) -> bool:
        """Whether a memory may have a situation; a store that does not know answers yes."""

    def document_positions(self, numbers: Sequence[int]) -> dict[int, DocumentPosition]:
        """Each document's session, task or file, and its position there."""

    def passages(
        self, numbers: Sequence[int], ranges: Sequence[PassageRange], filters: Filters
    ) -> "tuple[list[IndexedPassage], Vectors | None]":
        """These documents, then every document of these ranges, grouped by parent and in order.

        Also their vectors, one row each; None without an embedder.
        """

    def frequencies(self, terms: Sequence[str]) -> Mapping[str, int]:
        """The number of documents each term occurs in; unknown terms are left out."""

    def known_terms(self, terms: Sequence[str], scopes: Collection[str]) -> frozenset[str]:
        """The terms that occur in these scopes, or in very many documents (`COMMON_TERM_DOCUMENTS`)."""

    def known_at(self, moment: datetime) -> dict[str, Memory | None]:
        """Every memory changed since a moment, as it was then; None if it did not exist yet."""

    def numbers(self, memory_ids: Sequence[str]) -> dict[str, int]:
        """The document numbers of memories."""

    def vectors(self, numbers: Sequence[int]) -> "Vectors | None":
        """Vectors of documents, one row each; None without an embedder."""

    def history(self, memory_id: str) -> list[Image]:
        """Every decision about a memory, oldest first."""

    def histories(self, memory_ids: Sequence[str]) -> dict[str, list[Image]]:
        """The history of each of these memories; their common decisions are read once."""

    def decisions(self, limit: int | None = None, *, session: str = "") -> list[Image]:
        """The last decisions that changed memories, newest first, without the memories; optionally only those of one session."""

    def heads(self, conflict_key: str, scope: str) -> list[Memory]:
        """The current memories with a conflict key in a scope."""

    def lineage(self, lineage_id: str) -> list[Memory]:
        """Every version of a fact in the order they were true, of any status."""

    def links_to(self, memory_ids: Iterable[str]) -> list[tuple[str, str, str, float]]:
        """Links that point at these memories: source, target, type, stored strength."""

    def links(self, ids: Sequence[str], hops: Hops, most: int) -> list[Link]:
        """The links of some memories, each with at least its `most` heaviest neighbours in each direction."""

    def reading(self) -> AbstractContextManager[None]:
        """Group several reads, which saves a remote backend some work.

        Do not hold it during calls of an embedder or a model.
        """

    # decisions
    def deciding(
        self,
        op: str,
        *,
        actor: str,
        reason: str = "",
        session: str = "",
        scopes: Sequence[str] = (),
        about: Iterable[str] = (),
        ids_for: Iterable[datetime] = (),
    ) -> AbstractContextManager[Transaction]:
        """Open one decision; it is committed when the block ends.

        `scopes` are locked against other decisions, because this one depends on their contents (duplicates, names).
        `about` names existing memories it may change, which are also locked. `ids_for` are the creation times of
        memories it may add: a backend may reserve their ids before it begins.
        """

    # usage
    def note_use(self, use: Use) -> None:
        """Append a use. Raises `StoreReadOnly` if the store cannot be written."""

    def uses(self, memory_ids: Iterable[str] | None = None, *, session: str = "") -> list[Use]:
        """Every use of these memories, or every use in a session, oldest first."""

    def used_since(self, position: int) -> list[str]:
        """Ids of memories used at or after a position of the log."""

    # events and sessions
    def append_events(
        self, session: str, events: Sequence[NewEvent], jobs: JobFactory = no_jobs, *, scope: str = ""
    ) -> list[Event]:
        """Append durably to the ledger of a session or task, and enqueue the jobs that `jobs` makes of the new events.

        `scope` is the writer's: a new ledger belongs to it; a ledger of another owner raises `Refused`. Without a scope, events
        belong to the ledger's owner, those of a new ledger to `global`.

        A repeated key returns the event that already has it. A finished task's ledger is closed.
        """

    def events(self, session: str, *, last: int | None = None, after: int = 0) -> list[Event]:
        """A ledger's events in order: those after number `after`, and of these the `last` ones."""

    def ledgers(self) -> list[str]:
        """The name of every ledger that has events: a session's, a task's, a conversation's or a document's."""

    # sessions, tasks with their checkpoints, and jobs
    def load_record(self, kind: type[LoadedT], record_id: str) -> LoadedT | None:
        """A session or task by id."""

    def list_records(
        self,
        kind: type[ListedT],
        *,
        of: str = "",
        statuses: Sequence[str] | None = None,
        limit: int | None = None,
        scopes: Collection[str] | None = None,
    ) -> list[ListedT]:
        """List sessions, tasks or checkpoints, newest first, or unfinished jobs, oldest first.

        `of` is the task of the checkpoints. Tasks and jobs are filtered by `statuses`; all but checkpoints by `scopes`.
        """

    def save_record(self, record: Session | TaskRun) -> None:
        """Create or update a session, or write a new task."""

    def change_task(self, task_id: str, change: Callable[[TaskRun], TaskRun]) -> TaskRun:
        """Change a task under a lock. Raises `NotFound` if there is none."""

    def add_checkpoint(self, task_id: str, make: Callable[[int], Checkpoint]) -> Checkpoint:
        """Append the checkpoint that `make` returns for the next number."""

    def change_checkpoints(self, task_id: str, change: Callable[[Checkpoint], Checkpoint]) -> None:
        """Rewrite every checkpoint of a task and keep its number; for a purge."""

    def enqueue(self, jobs: Sequence[Job]) -> None:
        """Add jobs; existing ones are left unchanged."""

    def lease_jobs(
        self, owner: str, now: datetime, until: datetime, *, kinds: tuple[str, ...] | None = None, limit: int = 1
    ) -> list[Job]:
        """Lease jobs that are due, oldest first, and those whose lease has expired."""

    def settle_job(self, job: Job, then: Job | None) -> bool:
        """End a lease: remove the job, or replace it by `then`. False if another worker has leased it since."""

    # small states by name, such as `buffer/<session>`: ids, paths, numbers and times, never a person's text;
    # the pause and the tokens used on a day (`states.PAUSED`, `states.SPENT`) are states that a backend may keep elsewhere
    def state(self, name: str) -> Mapping[str, Any]:
        """A state's value; {} if there is none. Raises `StoreCorrupt` if it cannot be read."""

    def change_state(self, name: str, change: "StateChange") -> Mapping[str, Any]:
        """Replace a state durably by the result of `change` for its value, under a lock; returns it.

        An empty value removes the state.
        """

    def states(self, prefix: str) -> list[str]:
        """The names of the states that begin with a prefix, sorted."""

    def new_token(self, size: int) -> str:
        """Random hex digits, from the injected source."""

    # upkeep
    @property
    def warnings(self) -> list[str]:
        """Messages for the owner, collected as they occur."""

    def sync(self, *, seconds: float | None = None) -> SyncReport:
        """Read external changes, all or as many as the time allows."""

    def rebuild(self, progress: Progress = ...) -> SyncReport:
        """Rebuild the index."""

    def reembed(self, progress: Progress = ...) -> int:
        """Recompute all vectors with this process's embedder. Resumable; they are used once complete. Returns how many."""

    def build_nearest(self, progress: Progress = ...) -> str:
        """Build an index for nearest-vector search, if the backend uses one; returns its name."""

    def purge(self, ids: Sequence[str], *, actor: str, drawn: Collection[str] = ()) -> Purged:
        """Destroy memories and events, and prove it.

        A memory's text is removed wherever it occurs, including events that quote it. The text of an event, and of
        facts `drawn` from it, is removed with that event only: other events with the same words stay, and `remaining`
        lists them.
        """

    def interrupted_purge(self) -> Collection[str]:
        """The ids of a purge that was interrupted inside the backend; an empty purge finishes it."""

    def prune(self, now: datetime, journal: int, usage: int, ledger: int, *, dry_run: bool) -> Pruned:
        """Remove history older than this many days, or report what would be removed; 0 keeps everything."""

    def backup(self, target: Path, now: datetime) -> dict[str, int]:
        """Write the whole store to one archive. Returns counts."""

    def note_verdict(self, gate: str, outcome: str, at: datetime) -> None:
        """Count a gate's verdict on an autonomous proposal; never its text."""

    def verdicts(self, since: datetime) -> list[tuple[str, str]]:
        """Gate and outcome of each verdict since a moment."""

    def last_use(self, kind: str) -> Use | None:
        """The newest use of a kind, with all its ids."""

    def verify_ledgers(self) -> list[str]:
        """Problems in the ledgers' chains."""

    def facts(self) -> Mapping[str, Any]:
        """The facts about the store for `status` and `doctor`; `store` is its place."""

    def examine(self) -> list[Check]:
        """The backend's own health checks."""

    def close(self) -> None:
        """Close files and connections."""
