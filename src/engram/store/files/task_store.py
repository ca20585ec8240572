"""The files store's part about tasks: runs, checkpoints and jobs, each change under the writer lock."""

from collections.abc import Callable, Collection, Sequence
from datetime import date, datetime

from engram.llm.spend import SpendFolder
from engram.model.task import Checkpoint, Job, TaskRun
from engram.rules.scopes import GLOBAL, shows
from engram.store.files import tasks
from engram.store.files.health import BEGUN, CHECKPOINT
from engram.store.files.index_repair import RepairableIndex
from engram.store.files.recovery import witness_task
from engram.store.screen import Screen


class FileTaskStore(RepairableIndex):
    """Runs, checkpoints and jobs of a store on files."""

    screen: Screen

    def save_task(self, task: TaskRun) -> None:
        """Write a new task."""
        kept = self.screen.task(task)
        with self.guard, self.parts.lock.held():
            tasks.save_task(self.parts.home, kept)
            witness_task(self.parts, kept.id, BEGUN)

    def change_task(self, task_id: str, change: Callable[[TaskRun], TaskRun]) -> TaskRun:
        """Change a task under the writer lock; returns it changed."""
        with self.guard, self.parts.lock.held():
            return tasks.change_task(self.parts.home, task_id, lambda task: self.screen.task(change(task)))

    def task(self, task_id: str) -> TaskRun | None:
        """A task by id."""
        return tasks.load_task(self.parts.home, task_id)

    def tasks(
        self,
        statuses: Sequence[str] | None = None,
        limit: int | None = None,
        scopes: Collection[str] | None = None,
    ) -> list[TaskRun]:
        """Tasks, newest first."""
        problems: list[str] = []
        found = [
            task
            for task in tasks.all_tasks(self.parts.home, problems)
            if (statuses is None or task.status in statuses) and shows(scopes, task.scope)
        ]
        self.parts.warnings += [problem for problem in problems if problem not in self.parts.warnings]
        return sorted(found, key=lambda t: (t.created, t.id), reverse=True)[:limit]

    def add_checkpoint(self, task_id: str, make: Callable[[int], Checkpoint]) -> Checkpoint:
        """Append the checkpoint that `make` gives for the next number."""
        with self.guard, self.parts.lock.held():
            known = tasks.checkpoints(self.parts.home, task_id)
            made = self.screen.checkpoint(make(known[-1].number + 1 if known else 1))
            tasks.add_checkpoint(self.parts.home, made)
            witness_task(self.parts, task_id, f"{CHECKPOINT} {made.number}")
            return made

    def checkpoints(self, task_id: str, limit: int | None = None) -> list[Checkpoint]:
        """A task's checkpoints, newest first."""
        return tasks.checkpoints(self.parts.home, task_id)[::-1][:limit]

    def change_checkpoints(self, task_id: str, change: Callable[[Checkpoint], Checkpoint]) -> None:
        """Rewrite every checkpoint of a task."""
        with self.guard, self.parts.lock.held():
            tasks.change_checkpoints(self.parts.home, task_id, change)

    def enqueue(self, jobs: Sequence[Job]) -> None:
        """Add jobs; one that is known already stays as it is."""
        with self.guard, self.parts.lock.held():
            tasks.enqueue(self.parts.home, [self.screen.job(job) for job in jobs])

    def lease_jobs(
        self, owner: str, now: datetime, until: datetime, *, kinds: tuple[str, ...] | None = None, limit: int = 1
    ) -> list[Job]:
        """Take jobs that are due."""
        with self.guard, self.parts.lock.held():
            return tasks.lease(self.parts.home, kinds, owner, now, until, limit)

    def settle_job(self, job: Job, then: Job | None) -> bool:
        """End a lease: the job goes, or is kept as `then` says."""
        with self.guard, self.parts.lock.held():
            return tasks.settle(self.parts.home, job, then and self.screen.job(then))

    def tokens_spent(self, day: date) -> int:
        """Tokens a language model has cost on a day."""
        return SpendFolder(self.parts.home.state / "spend").tokens_spent(day)

    def spend_tokens(self, day: date, tokens: int) -> None:
        """Count tokens on a day."""
        SpendFolder(self.parts.home.state / "spend").spend_tokens(day, tokens)

    def jobs(
        self,
        statuses: Sequence[str] | None = None,
        limit: int | None = None,
        scopes: Collection[str] | None = None,
    ) -> list[Job]:
        """Jobs that are not done, oldest first."""
        found = [
            job
            for job in tasks.all_jobs(self.parts.home)
            if (statuses is None or job.status in statuses) and (scopes is None or self._scope_of(job) in scopes)
        ]
        return found[:limit]

    def _scope_of(self, job: Job) -> str:
        """Whose events a job is about; one of before does not say, and its task or its payload does."""
        task = tasks.load_task(self.parts.home, str(job.payload.get("task", "")))
        return job.scope or str(job.payload.get("scope", "")) or (task.scope if task is not None else GLOBAL)
