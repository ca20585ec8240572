"""Input of a store: new events with the jobs to enqueue, and the screen that checks each record before it is written."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol

from engram.model.lazy import dataclass, field
from engram.model.memory import Memory
from engram.model.records import Checkpoint, Event, Job, Session, TaskRun, Use

if TYPE_CHECKING:
    from engram.embedding.vectors import Vectors


@dataclass(frozen=True, slots=True)
class NewEvent:
    """An event to append; the store adds its id, number and digest."""

    role: str
    content: str
    at: datetime
    event_type: str = "message"
    task: str = ""
    key: str = ""
    payload: Mapping[str, Any] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)


JobFactory = Callable[[Sequence[Event]], Sequence[Job]]
"""Makes the jobs to enqueue together with new events."""


def no_jobs(events: Sequence[Event]) -> Sequence[Job]:
    """No jobs."""
    return ()


MAX_SCREENED_EVENTS = 16
"""How many of a ledger's last events a screen may read, because a secret can be split between events."""


@dataclass(frozen=True, slots=True)
class Decider:
    """The operation and actor of a decision, and the ids of the memories that it retires."""

    op: str
    actor: str
    gone: frozenset[str] = frozenset()
    vectors: "Mapping[str, Vectors]" = field(default_factory=dict)
    """Vectors computed before the lock was taken, by memory id."""
    judged: frozenset[str] = frozenset()
    """The ids of the memories that the gates have judged in this change."""


class Screen(Protocol):
    """Checks records before they are written: returns the records to store, or raises.

    The rules for secrets, refusals and redaction are in a layer above the store; a client sets them with `store.screen
    = …`. A store without a screen, as in a backend's tests, writes everything unchanged.
    """

    def allowed_values(self) -> tuple[str, ...]:
        """Patterns of values that the owner says are not secrets."""

    def decision(self, actor: str, reason: str, session: str) -> str:
        """The reason of a decision as it may be stored."""

    def memories(self, memories: Sequence[Memory], before: Callable[[str], Memory | None], deciding: "Decider") -> None:
        """Raise if a memory may not be stored. `before` returns its stored version, `deciding` describes the decision."""

    def use(self, use: Use) -> Use:
        """A use of memories."""

    def events(
        self, ledger: str, events: Sequence[NewEvent], latest: Callable[[], Sequence[Event]], *, scope: str = ""
    ) -> list[NewEvent]:
        """New events of a ledger by a writer of `scope`. `latest` returns the ledger's last few events."""

    def session(self, session: Session) -> Session:
        """A session."""

    def task(self, task: TaskRun, before: TaskRun | None = None) -> TaskRun:
        """A task. The content of its stored version, `before`, is not checked again."""

    def checkpoint(self, checkpoint: Checkpoint) -> Checkpoint:
        """A checkpoint."""

    def job(self, job: Job, before: Job | None = None) -> Job:
        """A job. The content of its stored version, `before`, is not checked again."""

    def state(self, name: str) -> str:
        """The name of a state."""


class NoScreen:
    """Accepts everything unchanged."""

    def allowed_values(self) -> tuple[str, ...]:
        """No patterns; nothing is refused."""
        return ()

    def decision(self, actor: str, reason: str, session: str) -> str:
        """The reason as it is."""
        return reason

    def memories(self, memories: Sequence[Memory], before: Callable[[str], Memory | None], deciding: "Decider") -> None:
        """Refuse nothing."""

    def use(self, use: Use) -> Use:
        """The use as it is."""
        return use

    def events(
        self, ledger: str, events: Sequence[NewEvent], latest: Callable[[], Sequence[Event]], *, scope: str = ""
    ) -> list[NewEvent]:
        """The events as they are."""
        return list(events)

    def session(self, session: Session) -> Session:
        """The session as it is."""
        return session

    def task(self, task: TaskRun, before: TaskRun | None = None) -> TaskRun:
        """The task as it is."""
        return task

    def checkpoint(self, checkpoint: Checkpoint) -> Checkpoint:
        """The checkpoint as it is."""
        return checkpoint

    def job(self, job: Job, before: Job | None = None) -> Job:
        """The job as it is."""
        return job

    def state(self, name: str) -> str:
        """The name as it is."""
        return name


def screen_jobs(screen: Screen, jobs: JobFactory) -> JobFactory:
    """The factory, with each job screened."""
    return jobs if jobs is no_jobs else lambda events: [screen.job(job) for job in jobs(events)]
