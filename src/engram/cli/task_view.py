"""A task as a person reads it: its state, its silence, its checkpoints, its last events."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from engram.cli import display
from engram.cli.display import Cell, ago, count, line, moment
from engram.model.lazy import dataclass

if TYPE_CHECKING:
    from engram.client import Engram
    from engram.model.event import Event
    from engram.model.task import Checkpoint, TaskRun

SILENT = timedelta(hours=1)
"""A running task that says nothing for longer has probably lost its process."""
_STATES = {"running": "green", "paused": "yellow", "completed": "cyan", "failed": "red"}


@dataclass(frozen=True, slots=True)
class TaskProgress:
    """The progress of a task."""

    task: "TaskRun"
    idle: timedelta
    event_count: int
    checkpoint_count: int
    waiting: int
    """Jobs about it that are not done."""
    latest: "Checkpoint | None"
    last: "Sequence[Event]"


def progress_of(mem: "Engram", task: "TaskRun", last: int) -> TaskProgress:
    """Look a task up, with its last events."""
    events = mem.list_events(task.id, last=max(1, last))
    points = mem.tasks.checkpoints(task.id, 1)
    waiting = sum(1 for job in mem.store.jobs() if job.payload.get("task") == task.id)
    latest = points[0] if points else None
    return TaskProgress(
        task,
        mem.tasks.idle_since(task),
        events[-1].seq if events else 0,
        latest.number if latest else 0,
        waiting,
        latest,
        events if last else [],
    )


def style(state: str) -> str:
    """The colour of a task's state."""
    return _STATES.get(state, "bright_black")


def draw(found: TaskProgress, now: datetime) -> None:
    """Everything worth knowing about a task."""
    task = found.task
    display.lines([(task.id, "bold cyan"), "  ", (task.status, style(task.status))])
    display.fields(
        [
            ("goal", task.goal),
            ("outcome", task.outcome),
            ("scope", task.scope),
            ("session", task.session),
            ("started", f"{moment(task.created)} ({ago(task.created, now)})"),
            ("ended", moment(task.ended)),
            ("last sign", ago(now - found.idle, now)),
            ("events", f"{found.event_count:,}"),
            ("waits", f"{count(found.waiting, 'job')}: engram worker" if found.waiting else ""),
            ("metadata", ", ".join(f"{key}={value}" for key, value in task.metadata.items())),
        ]
    )
    if found.latest is not None:
        display.lines([""], [(found.latest.id, "bold"), f"  checkpoint {found.checkpoint_count}"])
        display.fields(checkpoint_fields(found.latest))
    if found.last:
        display.lines([""])
    for event in found.last:
        kind = "" if event.event_type == "message" else f" ({event.event_type})"
        display.lines(
            [
                (f"#{event.seq} {moment(event.at)}  ", "bright_black"),
                (f"{event.role}{kind}: ", "bold"),
                line(event.content, 200),
            ]
        )


def checkpoint_fields(point: "Checkpoint") -> list[tuple[str, Cell]]:
    """A checkpoint's parts; empty ones are left out where they are drawn."""
    return [
        ("summary", point.summary),
        ("done", "; ".join(point.completed_steps)),
        ("to do", "; ".join(point.pending_steps)),
        ("decided", "; ".join(point.decisions)),
        ("blocked by", "; ".join(point.blockers)),
        ("made", "; ".join(point.artifacts)),
    ]
