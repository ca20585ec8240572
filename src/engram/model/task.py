"""Work that lasts: a run with its states, its checkpoints, and the jobs that derive facts from its ledger."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from engram.model.display import Displayed
from engram.model.errors import InvalidInput

TASK_STATES = ("running", "paused", "completed", "failed", "cancelled", "deleted")
FINISHED = frozenset({"completed", "failed", "cancelled", "deleted"})
"""States in which a task's ledger takes no more events."""
TRANSITIONS: Mapping[str, frozenset[str]] = {
    "running": frozenset({"paused", "completed", "failed", "cancelled", "deleted"}),
    "paused": frozenset({"running", "completed", "failed", "cancelled", "deleted"}),
    "failed": frozenset({"running", "cancelled", "deleted"}),
    "completed": frozenset({"deleted"}),
    "cancelled": frozenset({"running", "deleted"}),
    "deleted": frozenset(),
}
"""What may follow on each state. A failed or cancelled run can be taken up again; a completed one is done."""
CHECKPOINT_KINDS = ("progress", "manifest")
JOB_STATES = ("waiting", "leased", "dead")
"""A job that is done is gone; one that failed too often is dead and waits for a person."""


@dataclass(frozen=True, slots=True, repr=False)
class TaskRun(Displayed):
    """One piece of long-running work. Its id also names its ledger."""

    _SHOWN = ("id", "status", "goal")
    _HIDDEN = frozenset(("created", "updated"))

    id: str
    goal: str
    scope: str
    created: datetime
    updated: datetime
    status: str = "running"
    ended: datetime | None = None
    outcome: str = ""
    """What came of it, or why it stopped."""
    session: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @property
    def finished(self) -> bool:
        """Whether its ledger is closed."""
        return self.status in FINISHED


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A compact account of where a task stands, through the event with number `through`."""

    id: str
    task: str
    number: int
    created: datetime
    summary: str
    completed_steps: tuple[str, ...] = ()
    pending_steps: tuple[str, ...] = ()
    decisions: tuple[str, ...] = ()
    blockers: tuple[str, ...] = ()
    artifacts: tuple[str, ...] = ()
    source_event_ids: tuple[str, ...] = ()
    through: int = 0
    kind: str = "progress"
    """`progress`, or `manifest` for what a long input was cut into."""
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Job:
    """Work to be done later, at least once. `id` says what it is about: enqueuing it twice is enqueuing it once."""

    id: str
    kind: str
    created: datetime
    run_after: datetime
    payload: Mapping[str, Any] = field(default_factory=dict)
    status: str = "waiting"
    attempts: int = 0
    leased_until: datetime | None = None
    owner: str = ""
    """The worker that holds the lease."""
    error: str = ""
    scope: str = ""
    """The scope of the ledger whose events it is about; only those who see that see the job."""


def checked_state(state: str) -> str:
    """The state, or an error that names the known ones."""
    if state not in TASK_STATES:
        raise InvalidInput(f"{state!r} is no state of a task; one of {', '.join(TASK_STATES)}")
    return state


def moved(task: TaskRun, state: str, now: datetime, outcome: str = "") -> TaskRun:
    """The task in another state, if it may go there."""
    from dataclasses import replace

    allowed = TRANSITIONS[task.status]
    if checked_state(state) not in allowed:
        can = f"it can become {' or '.join(sorted(allowed))}" if allowed else "nothing follows on that"
        raise InvalidInput(f"{task.id} is {task.status} and cannot become {state}; {can}")
    ended = now if state in FINISHED else None
    return replace(
        task, status=state, updated=now, ended=ended, outcome=outcome or ("" if ended is None else task.outcome)
    )
