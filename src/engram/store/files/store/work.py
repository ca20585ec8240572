"""Sessions, tasks with their checkpoints, jobs and named states of a files store."""

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, cast

from engram.llm.spend import SpendFolder
from engram.model.event import Session
from engram.model.task import Checkpoint, Job, TaskRun
from engram.rules.scopes import GLOBAL, is_scope_visible
from engram.store.files.reconcile.recovery import journal_task
from engram.store.files.states import named as named_states
from engram.store.files.states import sessions as session_files
from engram.store.files.states import tasks as task_files
from engram.store.files.states import verdicts
from engram.store.files.store.health import BEGUN, CHECKPOINT
from engram.store.files.store.reader import FilesReader
from engram.store.protocol import ListedT, LoadedT
from engram.store.screen import NoScreen, Screen
from engram.store.states import PAUSE_STATE, StateChange, apply_change, checked_name, spending_day


class FilesWork(FilesReader):
    """What is recorded of work in progress."""

    screen: Screen = NoScreen()

    def load_record(self, kind: type[LoadedT], record_id: str) -> LoadedT | None:
        """A session or task by id."""
        load: Callable[..., Session | TaskRun | None] = (
            session_files.load_session if kind is Session else task_files.load_task
        )
        return cast("LoadedT | None", load(self.context.home, record_id))

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
        found: Sequence[Session | TaskRun | Checkpoint | Job]
        if kind is Session:
            found = [
                one for one in session_files.all_sessions(self.context.home) if is_scope_visible(scopes, one.owner)
            ]
        elif kind is Checkpoint:
            found = task_files.checkpoints(self.context.home, of)[::-1]
        elif kind is Job:
            found = [
                job
                for job in task_files.all_jobs(self.context.home)
                if (statuses is None or job.status in statuses) and (scopes is None or self._scope_of(job) in scopes)
            ]
        else:
            found = self._tasks(statuses, scopes)
        return cast("list[ListedT]", found[:limit])

    def _tasks(self, statuses: Sequence[str] | None, scopes: Collection[str] | None) -> list[TaskRun]:
        problems: list[str] = []
        found = [
            task
            for task in task_files.all_tasks(self.context.home, problems)
            if (statuses is None or task.status in statuses) and is_scope_visible(scopes, task.scope)
        ]
        self.context.warn(*problems)
        return sorted(found, key=lambda t: (t.created, t.id), reverse=True)

    def save_record(self, record: Session | TaskRun) -> None:
        """Create or update a session, or write a new task."""
        if isinstance(record, Session):
            session_files.save_session(self.context.home, self.screen.session(record))
            return
        kept = self.screen.task(record)
        with self.guard, self.context.lock.hold(self._deadline):
            task_files.save_task(self.context.home, kept)
            journal_task(self.context, kept.id, BEGUN)

    def change_task(self, task_id: str, change: Callable[[TaskRun], TaskRun]) -> TaskRun:
        """Change a task under the writer lock; returns it changed."""
        with self.guard, self.context.lock.hold(self._deadline):
            return task_files.change_task(self.context.home, task_id, lambda task: self.screen.task(change(task), task))

    def add_checkpoint(self, task_id: str, make: Callable[[int], Checkpoint]) -> Checkpoint:
        """Append the checkpoint that `make` gives for the next number."""
        with self.guard, self.context.lock.hold(self._deadline):
            known = task_files.checkpoints(self.context.home, task_id)
            made = self.screen.checkpoint(make(known[-1].number + 1 if known else 1))
            task_files.add_checkpoint(self.context.home, made)
            journal_task(self.context, task_id, f"{CHECKPOINT} {made.number}")
            return made

    def change_checkpoints(self, task_id: str, change: Callable[[Checkpoint], Checkpoint]) -> None:
        """Rewrite every checkpoint of a task."""
        with self.guard, self.context.lock.hold(self._deadline):
            task_files.change_checkpoints(self.context.home, task_id, change)

    def enqueue(self, jobs: Sequence[Job]) -> None:
        """Add jobs; one that exists already stays as it is."""
        with self.guard, self.context.lock.hold(self._deadline):
            task_files.enqueue(self.context.home, [self.screen.job(job) for job in jobs])

    def lease_jobs(
        self, owner: str, now: datetime, until: datetime, *, kinds: tuple[str, ...] | None = None, limit: int = 1
    ) -> list[Job]:
        """Take jobs that are due."""
        with self.guard, self.context.lock.hold(self._deadline):
            return task_files.lease(self.context.home, kinds, owner, now, until, limit)

    def settle_job(self, job: Job, then: Job | None) -> bool:
        """End a lease: the job is removed, or replaced by `then`."""
        with self.guard, self.context.lock.hold(self._deadline):
            return task_files.settle(self.context.home, job, then and self.screen.job(then, job))

    def _scope_of(self, job: Job) -> str:
        """The scope of a job's events; for an older job from its task or payload."""
        task = task_files.load_task(self.context.home, str(job.payload.get("task", "")))
        return job.scope or str(job.payload.get("scope", "")) or (task.scope if task is not None else GLOBAL)

    # -- small states by name

    def state(self, name: str) -> Mapping[str, Any]:
        """A state's value."""
        home = self.context.home
        if name == PAUSE_STATE:
            return {"paused": True} if verdicts.is_paused(home) else {}
        if (day := spending_day(name)) is not None:
            return {"tokens": SpendFolder(home.state / "spend").tokens_spent(day)}
        return named_states.load(home, checked_name(name))

    def change_state(self, name: str, change: StateChange) -> Mapping[str, Any]:
        """Change a state under the writer lock; returns its new value.

        A pause and tokens are written without it: nothing may keep them waiting, and tokens are added up.
        """
        if name == PAUSE_STATE:
            after = apply_change(dict(self.state(name)), change)
            verdicts.pause(self.context.home, bool(after))
            return after
        if (day := spending_day(name)) is not None:
            before = dict(self.state(name))
            after = apply_change(before, change)
            SpendFolder(self.context.home.state / "spend").spend_tokens(day, after["tokens"] - before["tokens"])
            return after
        kept = self.screen.state(checked_name(name))
        with self.guard, self.context.lock.hold(self._deadline):
            return named_states.change_state(self.context.home, kept, change)

    def states(self, prefix: str) -> list[str]:
        """The names of states; a warning names each file that cannot be read."""
        problems: list[str] = []
        found = named_states.names(self.context.home, prefix, problems)
        self.context.warn(*problems)
        return found
