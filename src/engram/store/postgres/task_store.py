"""The Postgres store's tasks, checkpoints, jobs and small states."""

import json
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, cast

from engram.model.errors import NotFound
from engram.model.event import Session
from engram.model.task import Checkpoint, Job, TaskRun
from engram.store.postgres.context import TenantContext
from engram.store.postgres.write import Work, to_json
from engram.store.protocol import ListedT, LoadedT
from engram.store.scopes import LINKS_STATE
from engram.store.screen import Screen
from engram.store.states import (
    PAUSE_STATE,
    StateChange,
    StateValue,
    apply_change,
    checked_name,
    from_text,
    spending_day,
    to_text,
)
from engram.store.tasks import LONGEST_WAIT, from_fields, has_same_lease, lease_job, to_fields

LINKS_SECONDS = 5.0
"""How long links between scopes are used before they are read again: every read verb needs them."""


class PostgresTaskStore:
    """Tasks, checkpoints, jobs and small states of a tenant."""

    context: TenantContext
    screen: Screen
    _links: tuple[float, StateValue] | None = None

    def load_record(self, kind: type[LoadedT], record_id: str) -> LoadedT | None:
        """A session or task by id."""
        rows = self.context.database.run("session" if kind is Session else "task", id=record_id)
        found = (session_of(rows[0]) if kind is Session else _task(rows[0][0])) if rows else None
        return cast("LoadedT | None", found)

    def list_records(
        self,
        kind: type[ListedT],
        *,
        of: str = "",
        statuses: Sequence[str] | None = None,
        limit: int | None = None,
        scopes: Collection[str] | None = None,
    ) -> list[ListedT]:
        """Sessions, tasks or checkpoints, newest first, or unfinished jobs, oldest first."""
        run, seen = self.context.database.run, {"scopes": list(scopes or ()), "limit": limit}
        found: Sequence[Session | TaskRun | Checkpoint | Job]
        if kind is Session:
            found = [session_of(row) for row in run("sessions", any=scopes is None, **seen)]
        elif kind is Checkpoint:
            rows = run("checkpoints", task=of, limit=limit)
            found = [from_fields(Checkpoint, json.loads(record)) for (record,) in rows]
        elif kind is Job:
            wanted = {"any": statuses is None, "statuses": list(statuses or ()), "everyone": scopes is None}
            found = [_job(record) for (record,) in run("jobs", **wanted, **seen)]
        elif statuses is None:
            found = [_task(record) for (record,) in run("tasks", any=scopes is None, **seen)]
        else:
            rows = run("tasks_in", statuses=list(statuses), any=scopes is None, **seen)
            found = [_task(record) for (record,) in rows]
        return cast("list[ListedT]", found)

    def save_record(self, record: Session | TaskRun) -> None:
        """Create or update a session, or write a new task."""
        if isinstance(record, Session):
            self.context.database.run("save_session", **session_values(self.screen.session(record)))
        else:
            self.context.database.run("put_task", **task_values(self.screen.task(record)))

    def change_task(self, task_id: str, change: Callable[[TaskRun], TaskRun]) -> TaskRun:
        """Change a task under its row lock; returns it changed."""
        database = self.context.database
        with database.transaction():
            task = locked_task(self.context, task_id, "lock_task")
            if task is None:
                raise NotFound(f"no task {task_id!r}; `engram task list` shows what there is")
            changed = self.screen.task(change(task), task)
            if changed != task:
                database.run("put_task", **task_values(changed))
        return changed

    def add_checkpoint(self, task_id: str, make: Callable[[int], Checkpoint]) -> Checkpoint:
        """Append the checkpoint that `make` returns for the next number, under the task's row lock."""
        database = self.context.database
        with database.transaction():
            locked_task(self.context, task_id, "lock_task")
            ((last,),) = database.run("last_checkpoint", task=task_id)
            made = self.screen.checkpoint(make(last + 1))
            database.run("put_checkpoint", **checkpoint_values(made))
        return made

    def change_checkpoints(self, task_id: str, change: Callable[[Checkpoint], Checkpoint]) -> None:
        """Rewrite every checkpoint of a task, under its row lock."""
        database = self.context.database
        with database.transaction():
            locked_task(self.context, task_id, "lock_task")
            rows = database.run("checkpoints", task=task_id, limit=None)
            changed = [change(from_fields(Checkpoint, json.loads(record))) for (record,) in rows]
            columns = [checkpoint_values(checkpoint) for checkpoint in changed]
            database.run_all([("blank_checkpoint", {"id": task_id, **values}) for values in columns])

    def enqueue(self, jobs: Sequence[Job]) -> None:
        """Add jobs; existing ones are left unchanged."""
        if jobs:
            self.context.database.run("put_jobs", **job_columns([self.screen.job(job) for job in jobs]))

    def lease_jobs(
        self, owner: str, now: datetime, until: datetime, *, kinds: tuple[str, ...] | None = None, limit: int = 1
    ) -> list[Job]:
        """Lease jobs that are due, oldest first."""
        database = self.context.database
        ahead = now + LONGEST_WAIT
        wanted = {"now": now, "ahead": ahead, "any": kinds is None, "kinds": list(kinds or ()), "limit": limit}
        with database.transaction():
            found = [_job(record) for (record,) in database.run("due_jobs", **wanted)]
            taken = [lease_job(job, owner, until) for job in found]
            database.run_all([("change_job", _job_values(job)) for job in taken])
        return taken

    def settle_job(self, job: Job, then: Job | None) -> bool:
        """End a lease: remove the job, or replace it by `then`."""
        database = self.context.database
        with database.transaction():
            rows = database.run("lock_job", id=job.id)
            if not has_same_lease(_job(rows[0][0]) if rows else None, job):
                return False
            work: Work = (
                [("drop_job", {"id": job.id})]
                if then is None
                else [("change_job", _job_values(self.screen.job(then, job)))]
            )
            database.run_all(work)
        return True

    def state(self, name: str) -> Mapping[str, Any]:
        """A state's value; the links between scopes may be some seconds old."""
        run = self.context.database.run
        if name == PAUSE_STATE:
            self.context.settings.refresh()
            return {"paused": True} if self.context.settings.get("paused", False) else {}
        if (day := spending_day(name)) is not None:
            rows = run("tokens_spent", day=day)
            return {"tokens": max(0, int(rows[0][0])) if rows else 0}
        now = time.monotonic()
        if name == LINKS_STATE and self._links is not None and now - self._links[0] <= LINKS_SECONDS:
            return self._links[1]
        rows = run("state", name=checked_name(name))
        found = from_text(rows[0][0]) if rows else {}
        if name == LINKS_STATE:
            self._links = now, found
        return found

    def change_state(self, name: str, change: StateChange) -> Mapping[str, Any]:
        """Change a state under its row lock; returns its new value. Tokens are added up without one."""
        database = self.context.database
        if name == PAUSE_STATE:
            after = apply_change(dict(self.state(name)), change)
            with database.transaction():
                self.context.settings.set(paused=bool(after) or None)
            return after
        if (day := spending_day(name)) is not None:
            before = dict(self.state(name))
            after = apply_change(before, change)
            database.run("spend_tokens", day=day, tokens=after["tokens"] - before["tokens"])
            return after
        return self._change_stored(self.screen.state(checked_name(name)), change)

    def _change_stored(self, name: str, change: StateChange) -> StateValue:
        self._links, database = None, self.context.database
        with database.transaction():
            ((stored,),) = database.run("lock_state", name=name, value=to_text({}))
            before = from_text(stored)
            after = apply_change(before, change)
            if not after:
                database.run("drop_state", name=name)
            elif after != before:
                database.run("put_state", name=name, value=to_text(after))
        return after

    def states(self, prefix: str) -> list[str]:
        """The names of states."""
        return [name for (name,) in self.context.database.run("state_names", prefix=prefix)]


def locked_task(context: TenantContext, task_id: str, lock: str) -> TaskRun | None:
    """A task, locked by the named statement; None if there is none."""
    rows = context.database.run(lock, id=task_id)
    return _task(rows[0][0]) if rows else None


def session_values(session: Session) -> dict[str, object]:
    """The columns of a session."""
    return {
        "id": session.id,
        "task": session.task,
        "scopes": list(session.scopes),
        "started": session.started,
        "ended": session.ended,
        "summary": session.summary,
        "through": session.summary_through,
        "style": session.summary_style,
        "by": session.summary_by,
    }


def session_of(row: tuple[object, ...]) -> Session:
    """A session from its row."""
    session_id, task, scopes, *rest = row
    return Session(session_id, task, tuple(scopes), *rest)  # type: ignore[arg-type]


def task_values(task: TaskRun) -> dict[str, object]:
    """The columns of a task."""
    return {"id": task.id, "status": task.status, "created": task.created, "record": to_json(to_fields(task))}


def checkpoint_values(checkpoint: Checkpoint) -> dict[str, object]:
    """The columns of a checkpoint."""
    return {"task": checkpoint.task, "number": checkpoint.number, "record": to_json(to_fields(checkpoint))}


def job_columns(jobs: Sequence[Job]) -> dict[str, object]:
    """Jobs as columns."""
    return {
        "ids": [job.id for job in jobs],
        "kinds": [job.kind for job in jobs],
        "statuses": [job.status for job in jobs],
        "run_afters": [job.run_after for job in jobs],
        "leases": [job.leased_until for job in jobs],
        "records": [to_json(to_fields(job)) for job in jobs],
    }


def _job_values(job: Job) -> dict[str, object]:
    return {
        "id": job.id,
        "status": job.status,
        "run_after": job.run_after,
        "leased_until": job.leased_until,
        "record": to_json(to_fields(job)),
    }


def _task(record: str) -> TaskRun:
    return from_fields(TaskRun, json.loads(record))


def _job(record: str) -> Job:
    return from_fields(Job, json.loads(record))
