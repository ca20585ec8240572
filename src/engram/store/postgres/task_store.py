"""The Postgres store's tasks, checkpoints, jobs and small states."""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import date, datetime
from typing import Any

from engram.model.errors import NotFound
from engram.model.task import Checkpoint, Job, TaskRun
from engram.store.postgres.context import TenantContext
from engram.store.postgres.write import Work, to_json
from engram.store.screen import Screen
from engram.store.states import StateChange, changed, checked_name, from_text, to_text
from engram.store.tasks import LONGEST_WAIT, from_fields, leased, same_lease, to_fields


class PostgresTaskStore:
    """Tasks, checkpoints, jobs and small states of a tenant."""

    context: TenantContext
    screen: Screen

    def save_task(self, task: TaskRun) -> None:
        """Write a new task."""
        self.context.database.run("put_task", **task_values(self.screen.task(task)))

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

    def task(self, task_id: str) -> TaskRun | None:
        """A task by id."""
        rows = self.context.database.run("task", id=task_id)
        return _task(rows[0][0]) if rows else None

    def tasks(
        self,
        statuses: Sequence[str] | None = None,
        limit: int | None = None,
        scopes: Collection[str] | None = None,
    ) -> list[TaskRun]:
        """Tasks, newest first."""
        run, seen = self.context.database.run, {"any": scopes is None, "scopes": list(scopes or ()), "limit": limit}
        rows = run("tasks", **seen) if statuses is None else run("tasks_in", statuses=list(statuses), **seen)
        return [_task(record) for (record,) in rows]

    def add_checkpoint(self, task_id: str, make: Callable[[int], Checkpoint]) -> Checkpoint:
        """Append the checkpoint that `make` returns for the next number, under the task's row lock."""
        database = self.context.database
        with database.transaction():
            locked_task(self.context, task_id, "lock_task")
            ((last,),) = database.run("last_checkpoint", task=task_id)
            made = self.screen.checkpoint(make(last + 1))
            database.run("put_checkpoint", **checkpoint_values(made))
        return made

    def checkpoints(self, task_id: str, limit: int | None = None) -> list[Checkpoint]:
        """A task's checkpoints, newest first."""
        rows = self.context.database.run("checkpoints", task=task_id, limit=limit)
        return [from_fields(Checkpoint, json.loads(record)) for (record,) in rows]

    def change_checkpoints(self, task_id: str, change: Callable[[Checkpoint], Checkpoint]) -> None:
        """Rewrite every checkpoint of a task, under its row lock."""
        database = self.context.database
        with database.transaction():
            locked_task(self.context, task_id, "lock_task")
            rows = database.run("checkpoints", task=task_id, limit=None)
            changed = [change(from_fields(Checkpoint, json.loads(record))) for (record,) in rows]
            columns = [checkpoint_values(checkpoint) for checkpoint in changed]
            database.all_of([("blank_checkpoint", {"id": task_id, **values}) for values in columns])

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
            taken = [leased(job, owner, until) for job in found]
            database.all_of([("change_job", _job_values(job)) for job in taken])
        return taken

    def settle_job(self, job: Job, then: Job | None) -> bool:
        """End a lease: remove the job, or replace it by `then`."""
        database = self.context.database
        with database.transaction():
            rows = database.run("lock_job", id=job.id)
            if not same_lease(_job(rows[0][0]) if rows else None, job):
                return False
            work: Work = (
                [("drop_job", {"id": job.id})]
                if then is None
                else [("change_job", _job_values(self.screen.job(then, job)))]
            )
            database.all_of(work)
        return True

    def tokens_spent(self, day: date) -> int:
        """Language model tokens spent on a day."""
        rows = self.context.database.run("tokens_spent", day=day)
        return max(0, int(rows[0][0])) if rows else 0

    def spend_tokens(self, day: date, tokens: int) -> None:
        """Add to the tokens spent on a day."""
        self.context.database.run("spend_tokens", day=day, tokens=tokens)

    def jobs(
        self,
        statuses: Sequence[str] | None = None,
        limit: int | None = None,
        scopes: Collection[str] | None = None,
    ) -> list[Job]:
        """Unfinished jobs, oldest first."""
        seen = {"everyone": scopes is None, "scopes": list(scopes or ()), "limit": limit}
        rows = self.context.database.run("jobs", any=statuses is None, statuses=list(statuses or ()), **seen)
        return [_job(record) for (record,) in rows]

    def state(self, name: str) -> Mapping[str, Any]:
        """A state's value."""
        rows = self.context.database.run("state", name=checked_name(name))
        return from_text(rows[0][0]) if rows else {}

    def change_state(self, name: str, change: StateChange) -> Mapping[str, Any]:
        """Change a state under its row lock; returns its new value."""
        kept, database = self.screen.state(checked_name(name)), self.context.database
        with database.transaction():
            ((stored,),) = database.run("lock_state", name=kept, value=to_text({}))
            before = from_text(stored)
            after = changed(before, change)
            if not after:
                database.run("drop_state", name=kept)
            elif after != before:
                database.run("put_state", name=kept, value=to_text(after))
        return after

    def states(self, prefix: str) -> list[str]:
        """The names of states."""
        return [name for (name,) in self.context.database.run("state_names", prefix=prefix)]


def locked_task(context: TenantContext, task_id: str, lock: str) -> TaskRun | None:
    """A task, locked by the named statement; None if there is none."""
    rows = context.database.run(lock, id=task_id)
    return _task(rows[0][0]) if rows else None


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
