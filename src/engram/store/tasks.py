"""Tasks, checkpoints and jobs as JSON-safe data, and the rules for leases; the same on every backend."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from engram.model.errors import InvalidInput, Refused
from engram.model.lazy import fields, replace
from engram.model.records import TRANSITIONS, Checkpoint, Job, Session, TaskRun
from engram.store.intake import NewEvent

_Record = TypeVar("_Record", TaskRun, Checkpoint, Job)
_TIMES = frozenset({"created", "updated", "ended", "run_after", "leased_until"})


def to_record_fields(record: TaskRun | Checkpoint | Job) -> dict[str, Any]:
    """A record as JSON-safe data, without empty fields."""
    found: dict[str, Any] = {}
    for field in fields(record):
        value = getattr(record, field.name)
        if isinstance(value, datetime):
            value = value.astimezone(UTC).isoformat().replace("+00:00", "Z")
        elif isinstance(value, tuple):
            value = list(value)
        elif isinstance(value, Mapping):
            value = dict(value)
        if value not in (None, "", [], {}):
            found[field.name] = value
    return found


def from_record_fields(kind: type[_Record], given: Mapping[str, Any]) -> _Record:
    """The record of parsed data; unknown keys are ignored."""
    known = {field.name: field.type for field in fields(kind)}
    return kind(**{name: _value(name, known[name], value) for name, value in given.items() if name in known})


def _value(name: str, kind: Any, value: Any) -> Any:
    if name in _TIMES:
        found = datetime.fromisoformat(value)
        return found if found.tzinfo else found.replace(tzinfo=UTC)
    if kind in (str, int) and type(value) is not kind:
        raise TypeError(f"{name} must be {'text' if kind is str else 'a whole number'}, is {value!r:.40}")
    return tuple(value) if isinstance(value, list) else value


LONGEST_WAIT = timedelta(days=2)
"""A job that waits longer, or a lease that lasts longer, was dated by a fast clock: the job is due."""


def can_lease(job: Job, kinds: tuple[str, ...] | None, now: datetime) -> bool:
    """Whether a worker may lease a job: it is due, or its lease has expired."""
    if kinds is not None and job.kind not in kinds:
        return False
    if job.status == "leased":
        return job.leased_until is None or not now < job.leased_until <= now + LONGEST_WAIT
    was_ahead = job.created > now and job.run_after > now + LONGEST_WAIT
    return job.status == "waiting" and (job.run_after <= now or was_ahead)


def lease_job(job: Job, owner: str, until: datetime) -> Job:
    """The job as leased by a worker, with one more attempt."""
    return replace(job, status="leased", owner=owner, leased_until=until, attempts=job.attempts + 1)


def has_same_lease(stored: Job | None, job: Job) -> bool:
    """Whether the stored job still has this worker's lease, or another worker has leased it since."""
    return stored is not None and (stored.owner, stored.attempts) == (job.owner, job.attempts)


def refuse_ended(session: Session | None) -> None:
    """Raise `Refused` for an ended session: its ledger is closed."""
    if session is not None and session.ended is not None:
        raise Refused(
            f"session {session.id!r} has ended; nothing was written. Start another with `engram session start`"
        )


def tasks_named(ledger: str, events: Sequence[NewEvent]) -> list[str]:
    """The tasks that events in another ledger belong to, sorted, so that every writer locks them in one order."""
    return sorted({event.task for event in events} - {"", ledger})


def refuse_closed(task: TaskRun | None) -> None:
    """Raise `InvalidInput` for a paused or finished task: its ledger is closed."""
    if task is not None and task.status == "paused":
        raise InvalidInput(f"{task.id} is paused; nothing was written. Resume it with `engram task resume`")
    if task is not None and task.is_finished:
        again = "reopen it with `engram task resume`" if "running" in TRANSITIONS[task.status] else "start another task"
        raise InvalidInput(f"{task.id} is {task.status}: its ledger is closed; {again}")
