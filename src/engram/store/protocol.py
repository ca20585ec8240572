"""The one line above which nothing knows where memories live (DESIGN §8).

A backend offers reads, decisions, usage, events, and candidates with their raw scores. Fusing, spreading and weighing stay
above it, so every backend ranks alike.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from engram.model.event import Event, Session
from engram.model.memory import Memory
from engram.model.task import Checkpoint, Job, TaskRun
from engram.model.usage import Use

if TYPE_CHECKING:
    from engram.embedding.protocol import Vectors
    from engram.store.screen import Screen

Progress = Callable[[str, int, int], None]
"""Told what is being worked on, how far it is, and how far it goes."""
COMMON = 20_000
"""A term that so many documents hold is taken to be everyone's, without a look at who says it."""
LIVE = ("active", "dormant")
"""What a plain search sees; everything else answers when asked for."""


@dataclass(frozen=True, slots=True)
class Filters:
    """What a search may return; every filter applies before the cut. None means no restriction."""

    kinds: tuple[str, ...] = ("memory",)
    scopes: tuple[str, ...] | None = None
    statuses: tuple[str, ...] | None = LIVE
    types: tuple[str, ...] | None = None
    tags: tuple[str, ...] | None = None
    domain: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    valid_at: datetime | None = None
    """The moment whose truth is asked for: now, or `as_of`."""
    as_of: bool = False
    """Whether `valid_at` was asked for; then superseded memories that were true at that moment count."""
    known_at: datetime | None = None
    parents: tuple[str, ...] | None = None
    pinned: bool = False
    critical: bool = False
    """Only what a policy put into a critical slot."""
    roles: tuple[str, ...] | None = None
    """Who speaks, in events."""
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Query:
    """What is looked for: terms for the lexical retriever, a vector for the semantic one; either may be missing."""

    terms: tuple[str, ...] = ()
    vector: "Vectors | None" = None
    limit: int = 100


@dataclass(slots=True)
class Candidates:
    """What the retrievers found, as parallel rankings of document numbers with raw scores, best first."""

    lexical: list[tuple[int, float]] = field(default_factory=list)
    semantic: list[tuple[int, float]] = field(default_factory=list)
    total: int = 0
    """How many documents the store holds; with `frequency` it gives each term's weight."""
    frequency: dict[str, int] = field(default_factory=dict)
    pruned: tuple[str, ...] = ()
    positions: "dict[int, DocumentPosition]" = field(default_factory=dict)
    """Where each document of either ranking stands."""
    warnings: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class IndexedPassage:
    """A document's index terms by field, and where it stands: its session (or file), who speaks, when.

    `eligible` says whether it passed the filters; a neighbour that did not still lends its words to those that did.
    """

    n: int
    fields: tuple[str, str, str]
    parent: str
    position: int
    time: float | None
    eligible: bool


@dataclass(frozen=True, slots=True)
class DocumentPosition:
    """A document's session, task or file ("" for one that stands alone), its place there, and the last place there is."""

    parent: str
    position: int
    last: int


@dataclass(frozen=True, slots=True)
class PassageRange:
    """Part of a session, task or file: from one place through another."""

    parent: str
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class StoredRecord:
    """A stored record with its number in the index."""

    n: int
    kind: str
    record: Memory | Event


@dataclass(frozen=True, slots=True)
class Image:
    """One step of a memory's history: the decision and what the memory was after it (None: purged)."""

    seq: int
    at: datetime
    op: str
    actor: str
    reason: str
    memory: Memory | None
    ids: tuple[str, ...] = ()
    """Every memory the decision was about."""


@dataclass(frozen=True, slots=True)
class NewEvent:
    """What a caller observed; the store gives it id, number and digest."""

    role: str
    content: str
    at: datetime
    event_type: str = "message"
    task: str = ""
    key: str = ""
    payload: Mapping[str, Any] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Step:
    """A memory that a walk reached: from which seed, over which memories and relations."""

    seed: str
    id: str
    depth: int
    path: tuple[str, ...]
    """Ids from the seed to the memory, both included."""
    types: tuple[str, ...]
    """The relation of each hop."""
    score: float
    """The product of the weights along the path."""
    forward: tuple[bool, ...] = ()
    """Whether each hop goes the way its link points."""


@dataclass(slots=True)
class SyncReport:
    """What was changed outside of Engram: ids by what happened to them, and problems in words."""

    added: list[str] = field(default_factory=list)
    edited: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    restored: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    complete: bool = True

    def __bool__(self) -> bool:
        return bool(self.added or self.edited or self.removed or self.restored or self.problems)


@dataclass(frozen=True, slots=True)
class Purged:
    """What was destroyed, where its text still stands if anywhere, and what no program here can reach."""

    ids: tuple[str, ...]
    remaining: tuple[str, ...]
    out_of_reach: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Pruned:
    """What goes, or would go: images of the journal, months of usage, ledgers of ended sessions."""

    images: int = 0
    usage_months: tuple[str, ...] = ()
    ledgers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Check:
    """One thing the doctor looked at."""

    name: str
    ok: bool
    detail: str
    advice: str = ""


JobFactory = Callable[[Sequence[Event]], Sequence[Job]]
"""The jobs that follow on events which are about to be written."""


def no_jobs(events: Sequence[Event]) -> Sequence[Job]:
    """Nothing follows."""
    return ()


@dataclass(frozen=True, slots=True)
class ProposalKeys:
    """What a decision will ask about one memory that it means to write."""

    content_hash: str
    scope: str
    name: str
    conflict_key: str = ""


class Transaction(Protocol):
    """One decision in the making, alone with what it named. Nothing is written before the block ends without an error."""

    def prefetch(self, proposals: Sequence["ProposalKeys"]) -> None:
        """What will be asked about; a backend far away looks it all up at once."""

    def get(self, memory_id: str) -> Memory | None:
        """A memory as it stands, hand edits included."""

    def exact(self, content_hash: str, scope: str) -> Memory | None:
        """The live memory with this content, if any."""

    def heads(self, conflict_key: str, scope: str) -> Sequence[Memory]:
        """The memories in force that hold a conflict key in a scope: one, unless somebody wrote several by hand."""

    def lineage(self, lineage_id: str) -> Sequence[Memory]:
        """Every version of a fact, in the order in which they were true, with what this decision has put so far."""

    def changed_since(self, scope: str, mark: int) -> Sequence[Memory]:
        """Memories of a scope that others wrote after `mark`."""

    def new_id(self, at: datetime, *, team: bool = False) -> str:
        """The next id of a day; never one that was ever given out."""

    def free_name(self, name: str, scope: str) -> str:
        """The name, or the name with the first free number behind it."""

    def put(self, memory: Memory, vector: "Vectors | None" = None, *, team: str = "") -> None:
        """Add or replace a memory. Without a vector, a changed text is embedded when the block ends."""


class Store(Protocol):
    """A backend."""

    screen: "Screen"
    """What every record passes before it is written."""

    @property
    def place(self) -> str:
        """Where the store lives, safe to show: a path, or a URL without its password."""

    # reads
    def get(self, ref: str, scopes: Collection[str] | None = None) -> Memory | None:
        """A memory by id, name or alias, hand edits included; of every scope or of these."""

    def get_many(self, numbers: Sequence[int]) -> list[StoredRecord]:
        """Records by document number, in that order; hand edits are picked up first."""

    def exact(self, content_hash: str, scope: str) -> Memory | None:
        """The live memory with this content in this scope."""

    def embed(self, texts: Sequence[str]) -> "Vectors | None":
        """Vectors of texts in the store's space; None where this process lacks its embedder."""

    def embedder_name(self) -> str:
        """The model this process embeds with; "" without one."""

    def owned(self, memory_ids: Iterable[str]) -> list[str]:
        """Those of the memories that live in the owner's own store, not in a team's."""

    def trusted_here(self, directory: Path) -> frozenset[str]:
        """Digests of what the owner trusts of a directory's repository."""

    def named(self, name: str, scope: str) -> str:
        """The id of the memory that goes by this name in a scope, or ""."""

    def mark(self, scope: str) -> int:
        """The number of the last change, as far as a scope is concerned; for `Transaction.changed_since`."""

    def file_of(self, memory_id: str) -> str:
        """The file that holds a memory; "" where memories are not files."""

    def event(self, event_id: str) -> Event | None:
        """An event by id."""

    def owner_of(self, document_id: str) -> str | None:
        """The scope a memory or an event belongs to; None where there is none of this id."""

    def listing(self, filters: Filters, limit: int | None = None, offset: int = 0) -> list[Memory]:
        """Memories, newest first."""

    def count(self, filters: Filters) -> int:
        """How many documents pass the filters."""

    def candidates(self, query: Query, filters: Filters) -> Candidates:
        """What each retriever finds, best first, and where each document found stands."""

    def document_positions(self, numbers: Sequence[int]) -> dict[int, DocumentPosition]:
        """Where each document stands: its session, task or file, and its place there."""

    def passages(
        self, numbers: Sequence[int], stretches: Sequence[PassageRange], filters: Filters
    ) -> "tuple[list[IndexedPassage], Vectors | None]":
        """These documents, then every document of these stretches; those of one parent together, in their order.

        With them their vectors, one row each; None without an embedder.
        """

    def frequencies(self, terms: Sequence[str]) -> Mapping[str, int]:
        """In how many documents each term occurs; terms that occur nowhere are left out."""

    def known_terms(self, terms: Sequence[str], scopes: Collection[str]) -> frozenset[str]:
        """Those of the terms that a document of these scopes holds, and those that very many documents do (`COMMON`)."""

    def known_at(self, moment: datetime) -> dict[str, Memory | None]:
        """What Engram held then of every memory it has decided about since; None where it knew nothing of it."""

    def numbers(self, memory_ids: Sequence[str]) -> dict[str, int]:
        """The document numbers of memories."""

    def vectors(self, numbers: Sequence[int]) -> "Vectors | None":
        """Vectors of documents, one row each; None without an embedder."""

    def history(self, memory_id: str) -> list[Image]:
        """Everything that was decided about a memory, oldest first."""

    def heads(self, conflict_key: str, scope: str) -> list[Memory]:
        """The memories in force that hold a conflict key in a scope."""

    def lineage(self, lineage_id: str) -> list[Memory]:
        """Every version of a fact, in the order in which they were true, whatever became of it."""

    def links_to(self, memory_ids: Iterable[str]) -> list[tuple[str, str, str, float]]:
        """Links that point at these memories: source, target, type, stored strength."""

    def walk(
        self,
        seeds: Sequence[str],
        *,
        depth: int,
        direction: str,
        types: tuple[str, ...] | None,
        min_weight: float,
        per_seed: int,
        filters: Filters = ...,
    ) -> list[Step]:
        """What is linked to these memories, each memory once per seed by its shortest, then heaviest path, nearest first.

        `direction` is outbound, inbound or any. Only memories that pass the filters are reached and passed through; a link to
        one that was superseded leads to its first successor that passes. A seed is not reached from itself.
        """

    def reading(self) -> AbstractContextManager[None]:
        """Several reads asked as one, which spares a backend far away some work. Never around an embedder or a model."""

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

        `scopes` are those in which it depends on what else is there (duplicates, names): nobody else decides there
        meanwhile. `about` names existing memories it may change. A backend may lock no more than that. `ids_for` are the
        moments of the memories it may make: a backend may take their ids before it begins.
        """

    # usage
    def note_use(self, use: Use) -> None:
        """Append a use. Raises `StoreReadOnly` where that is impossible."""

    def uses_of(self, memory_ids: Iterable[str]) -> list[Use]:
        """Every noted use of these memories, oldest first."""

    def uses_in(self, session: str) -> list[Use]:
        """Every use noted in a session."""

    def used_since(self, position: int) -> list[str]:
        """Ids of the memories used from a position of the log on."""

    # events and sessions
    def append_events(
        self, session: str, events: Sequence[NewEvent], jobs: JobFactory = no_jobs, *, scope: str = ""
    ) -> list[Event]:
        """Append to the ledger of a session or task, durably, and with them the jobs that follow on the new events.

        `scope` is the writer's: a new ledger becomes theirs, and one that is another's is `Refused`. Without one, events belong
        to whom the ledger belongs to, a new ledger's to everyone (`global`).

        A repeated key returns the event it named before. A finished task's ledger is closed.
        """

    def events(self, session: str, *, last: int | None = None, after: int = 0) -> list[Event]:
        """A ledger's events in order: all, those after a number, or of these the last so many."""

    def ledgers(self) -> list[str]:
        """The name of every ledger that has events: a session's, a task's, a conversation's or a document's."""

    def save_session(self, session: Session) -> None:
        """Create or update a session."""

    def session(self, session_id: str) -> Session | None:
        """A session by id."""

    def sessions(self, limit: int | None = None, scopes: Collection[str] | None = None) -> list[Session]:
        """Sessions, newest first: every one, or those that belong to one of these scopes."""

    def ledger_scope(self, name: str) -> str:
        """The scope a session's, task's or other ledger belongs to; "" where nobody has written to it, or none is known."""

    # tasks
    def save_task(self, task: TaskRun) -> None:
        """Write a new task."""

    def change_task(self, task_id: str, change: Callable[[TaskRun], TaskRun]) -> TaskRun:
        """Change a task as it stands, alone with it; `NotFound` where there is none."""

    def task(self, task_id: str) -> TaskRun | None:
        """A task by id."""

    def tasks(
        self,
        statuses: Sequence[str] | None = None,
        limit: int | None = None,
        scopes: Collection[str] | None = None,
    ) -> list[TaskRun]:
        """Tasks, newest first: of these states, of those that belong to one of these scopes."""

    def add_checkpoint(self, task_id: str, make: Callable[[int], Checkpoint]) -> Checkpoint:
        """Append the checkpoint that `make` gives for the next number."""

    def checkpoints(self, task_id: str, limit: int | None = None) -> list[Checkpoint]:
        """A task's checkpoints, newest first."""

    def change_checkpoints(self, task_id: str, change: Callable[[Checkpoint], Checkpoint]) -> None:
        """Write every checkpoint of a task anew, its number the same; for a purge."""

    def enqueue(self, jobs: Sequence[Job]) -> None:
        """Add jobs; one that is known already stays as it is."""

    def lease_jobs(
        self, owner: str, now: datetime, until: datetime, *, kinds: tuple[str, ...] | None = None, limit: int = 1
    ) -> list[Job]:
        """Take jobs that are due, oldest first, and those whose worker let its lease run out."""

    def settle_job(self, job: Job, then: Job | None) -> bool:
        """End a lease: the job goes, or is kept as `then` says. False where the lease has passed to another meanwhile."""

    def jobs(
        self,
        statuses: Sequence[str] | None = None,
        limit: int | None = None,
        scopes: Collection[str] | None = None,
    ) -> list[Job]:
        """Jobs that are not done, oldest first: of these states, of those about ledgers of these scopes."""

    def tokens_spent(self, day: date) -> int:
        """Tokens a language model has cost on a day, in every process."""

    def spend_tokens(self, day: date, tokens: int) -> None:
        """Count tokens on a day; a negative number takes some back."""

    def new_token(self, size: int) -> str:
        """Random hex digits, from the injected source."""

    # upkeep
    @property
    def warnings(self) -> list[str]:
        """What the owner should hear of; collected as it is met."""

    @property
    def paused(self) -> bool:
        """Whether the owner has paused learning and injection."""

    def pause(self, paused: bool) -> None:
        """Begin or end a pause."""

    def sync(self, *, seconds: float | None = None) -> SyncReport:
        """Take in what was changed outside of Engram, or as much of it as the time allows."""

    def rebuild(self, progress: Progress = ...) -> SyncReport:
        """Make the index anew."""

    def reembed(self, progress: Progress = ...) -> int:
        """Make all vectors with this process's embedder; resumable, switched over when complete. Returns how many."""

    def build_nearest(self, progress: Progress = ...) -> str:
        """Make an index for nearest vectors, where the backend can profit from one; returns its name."""

    def purge(self, ids: Sequence[str], *, actor: str, drawn: Collection[str] = ()) -> Purged:
        """Destroy memories and events, and prove it.

        The words of a memory go wherever they stand, events that say them included. Those of an event, and of the facts `drawn`
        from it, go with it alone: other events that say the same stay, and `remaining` names them.
        """

    def prune(self, now: datetime, journal: int, usage: int, ledger: int, *, dry_run: bool) -> Pruned:
        """Let go of history older than so many days, or say what would go; 0 keeps all."""

    def backup(self, target: Path, now: datetime) -> dict[str, int]:
        """Write everything the store holds to one archive. Returns counts."""

    def note_verdict(self, gate: str, outcome: str, at: datetime) -> None:
        """Count what the gates said of an autonomous proposal; never its text."""

    def verdicts(self, since: datetime) -> list[tuple[str, str]]:
        """Gate and outcome of the proposals since then."""

    def last_use(self, kind: str) -> Use | None:
        """The newest use of a kind, with all its ids."""

    def verify_ledgers(self) -> list[str]:
        """What is wrong with the ledgers' chains."""

    def facts(self) -> Mapping[str, Any]:
        """What `status` and `doctor` say of the store; `store` is its place."""

    def examine(self) -> list[Check]:
        """What this backend can say about its own health."""

    def close(self) -> None:
        """Let go of files and connections."""
