"""Tasks with their states and checkpoints, and background jobs."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from engram.model.display import Displayed
from engram.model.errors import InvalidInput
from engram.model.lazy import dataclass, field

TASK_STATES = ("running", "paused", "completed", "failed", "cancelled", "deleted")
FINISHED_STATES = frozenset({"completed", "failed", "cancelled", "deleted"})
"""States in which a task's ledger takes no more events."""
TRANSITIONS: Mapping[str, frozenset[str]] = {
    "running": frozenset({"paused", "completed", "failed", "cancelled", "deleted"}),
    "paused": frozenset({"running", "completed", "failed", "cancelled", "deleted"}),
    "failed": frozenset({"running", "cancelled", "deleted"}),
    "completed": frozenset({"deleted"}),
    "cancelled": frozenset({"running", "deleted"}),
    "deleted": frozenset(),
}
"""The states that may follow each state. A failed or cancelled task can be resumed; a completed one cannot."""
CHECKPOINT_KINDS = ("progress", "manifest")
JOB_STATES = ("waiting", "leased", "dead")
"""A finished job is deleted; one that failed too often is dead and waits for a person."""


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
    """The result, or why it stopped."""
    session: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_finished(self) -> bool:
        """Whether its ledger is closed."""
        return self.status in FINISHED_STATES


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The state of a task up to the event with number `through`."""

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
    """Background work, run at least once. The `id` identifies it: adding it twice adds it once."""

    id: str
    kind: str
    created: datetime
    run_after: datetime
    payload: Mapping[str, Any] = field(default_factory=dict)
    status: str = "waiting"
    attempts: int = 0
    leased_until: datetime | None = None
    owner: str = ""
    """The worker that has the lease."""
    error: str = ""
    scope: str = ""
    """The scope of its ledger; only callers who see that see the job."""


def checked_state(state: str) -> str:
    """The state; raises `InvalidInput` for an unknown one."""
    if state not in TASK_STATES:
        raise InvalidInput(f"Unknown task state {state!r}; choose {', '.join(TASK_STATES)}")
    return state


def transition_task(task: TaskRun, state: str, now: datetime, outcome: str = "") -> TaskRun:
    """The task in another state; raises `InvalidInput` where that may not follow."""
    from engram.model.lazy import replace

    allowed = TRANSITIONS[task.status]
    if checked_state(state) not in allowed:
        can = f"it can become {' or '.join(sorted(allowed))}" if allowed else "that state is final"
        raise InvalidInput(f"{task.id} is {task.status} and cannot become {state}; {can}")
    # The clock may have been set back since the task began.
    ended = max(now, task.created) if state in FINISHED_STATES else None
    return replace(
        task, status=state, updated=now, ended=ended, outcome=outcome or ("" if ended is None else task.outcome)
    )
