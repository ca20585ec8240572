"""Files of tasks with their checkpoints, and of jobs. The caller of everything that writes holds the writer lock."""

import contextlib
import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

from engram.disk import (
    MALFORMED,
    UNREADABLE,
    append_durably,
    json_line,
    make_folder,
    read_bytes,
    replace_file,
    set_aside,
    sync_path,
    torn_tail,
)
from engram.model.errors import InvalidInput, NotFound, StoreCorrupt, StoreReadOnly
from engram.model.lazy import lazy_pattern
from engram.model.task import Checkpoint, Job, TaskRun
from engram.store.home import Home
from engram.store.tasks import can_lease, from_fields, has_same_lease, lease_job, to_fields

_TASK_NAME = lazy_pattern(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_CHECKPOINTS = ".checkpoints.jsonl"


def task_path(home: Home, task_id: str) -> Path | None:
    """The file of a task; None if its id cannot be a file name."""
    return home.tasks / f"{task_id}.json" if _TASK_NAME.fullmatch(task_id) else None


def load_task(home: Home, task_id: str) -> TaskRun | None:
    """A task by id, or None."""
    if not _TASK_NAME.fullmatch(task_id):
        return None
    path = f"{home.tasks}/{task_id}.json"
    try:
        found = os.stat(path)
        task = _read_cached_task(path, found.st_ino, found.st_mtime_ns, found.st_size)
        # On a file system that ignores case, this may be another task.
        return task if task.id == task_id else None
    except FileNotFoundError:
        return None
    except UNREADABLE as error:
        raise StoreCorrupt(f"{path}: not a task ({error}); restore the file from a backup") from None


@lru_cache(maxsize=256)
def _read_cached_task(path: str, inode: int, mtime_ns: int, size: int) -> TaskRun:
    """A task's file, cached until it changes: it is read at every event."""
    return from_fields(TaskRun, json.loads(read_bytes(path)))


def save_task(home: Home, task: TaskRun) -> None:
    """Write a task's file durably, in one step."""
    path = task_path(home, task.id)
    if path is None:
        raise InvalidInput(f"{task.id!r} cannot be the id of a task: letters, digits, dots and dashes only")
    _keep(path, to_fields(task))


def change_task(home: Home, task_id: str, change: Callable[[TaskRun], TaskRun]) -> TaskRun:
    """Change a task. Raises `NotFound` if there is none."""
    task = load_task(home, task_id)
    if task is None:
        raise NotFound(f"no task {task_id!r}; `engram task list` shows all tasks")
    changed = change(task)
    if changed != task:
        save_task(home, changed)
    return changed


def all_tasks(home: Home, problems: list[str]) -> Iterator[TaskRun]:
    """Every readable task; problems with the others are added to `problems`."""
    for path in home.tasks.glob("*.json"):
        try:
            found = load_task(home, path.stem)
        except StoreCorrupt as error:
            problems.append(str(error))
            continue
        if found is not None:
            yield found


def add_checkpoint(home: Home, checkpoint: Checkpoint) -> None:
    """Append a checkpoint durably."""
    if task_path(home, checkpoint.task) is None:
        raise InvalidInput(f"{checkpoint.task!r} cannot be the id of a task: letters, digits, dots and dashes only")
    path = checkpoints_path(home, checkpoint.task)
    with _writing(path):
        make_folder(home.tasks)
        fresh = not path.exists()
        # After a torn line, which only a crash leaves, the next one would be damaged too.
        if not fresh and (torn := torn_tail(path)) is not None:
            set_aside(path, torn, home.quarantine, "torn last line")
        append_durably(path, json_line(to_fields(checkpoint), "replace"))
        if fresh:
            sync_path(home.tasks)


def checkpoints(home: Home, task_id: str, problems: list[str] | None = None) -> list[Checkpoint]:
    """A task's checkpoints, oldest first, without a torn last line.

    Raises `StoreCorrupt` for an unreadable line; with `problems` it is reported there and the others are returned.
    """
    if task_path(home, task_id) is None:
        return []
    path = checkpoints_path(home, task_id)
    found: list[Checkpoint] = []
    try:
        lines = read_bytes(path).splitlines(keepends=True)
    except FileNotFoundError:
        return []
    except OSError as error:
        lines = _unreadable(f"{path}: cannot be read ({error.strerror}); restore the file from a backup", problems)
    for line in (line for line in lines if line.endswith(b"\n") and line.strip()):
        try:
            found.append(from_fields(Checkpoint, json.loads(line)))
        except MALFORMED as error:
            _unreadable(f"{path}: not a checkpoint ({error}); restore the file from a backup", problems)
    return found


def _unreadable(problem: str, problems: list[str] | None) -> list[bytes]:
    if problems is None:
        raise StoreCorrupt(problem)
    problems.append(problem)
    return []


def change_checkpoints(home: Home, task_id: str, change: Callable[[Checkpoint], Checkpoint]) -> None:
    """Rewrite a task's checkpoints; damaged lines are removed."""
    known = checkpoints(home, task_id, [])
    if known:
        path = checkpoints_path(home, task_id)
        with _writing(path):
            replace_file(path, b"".join(json_line(to_fields(change(checkpoint)), "replace") for checkpoint in known))


def replace_all(home: Home, runs: Iterable[TaskRun], points: Iterable[Checkpoint], jobs: Iterable[Job]) -> None:
    """Replace all tasks, checkpoints and jobs; for the target of a migration."""
    for path in [*home.tasks.glob(f"*{_CHECKPOINTS}"), *(home.state / "jobs").glob("*.json")]:
        path.unlink()
    for task in runs:
        save_task(home, task)
    for checkpoint in points:
        add_checkpoint(home, checkpoint)
    enqueue(home, jobs)


def all_files(home: Home) -> list[Path]:
    """Every file of a task, its checkpoints or a job, for a purge."""
    found = [*home.tasks.glob("*.json"), *home.tasks.glob(f"*{_CHECKPOINTS}"), *(home.state / "jobs").glob("*.json")]
    return sorted(found)


def checkpoints_path(home: Home, task_id: str) -> Path:
    """The file of a task's checkpoints."""
    return home.tasks / f"{task_id}{_CHECKPOINTS}"


# -- jobs


def enqueue(home: Home, jobs: Iterable[Job]) -> None:
    """Add jobs; one that exists already stays as it is."""
    for job in jobs:
        path = _job_path(home, job.id)
        if not path.exists():
            _keep(path, to_fields(job))


def lease(
    home: Home, kinds: tuple[str, ...] | None, owner: str, now: datetime, until: datetime, limit: int
) -> list[Job]:
    """Lease jobs that are due, oldest first, including those whose lease has expired."""
    due = [job for job in all_jobs(home) if can_lease(job, kinds, now)]
    taken = [lease_job(job, owner, until) for job in sorted(due, key=lambda j: (j.run_after, j.id))[:limit]]
    for job in taken:
        _keep(_job_path(home, job.id), to_fields(job))
    return taken


def settle(home: Home, job: Job, then: Job | None) -> bool:
    """End a lease: the job is removed, or replaced by `then`. Returns False if the lease has passed to another owner."""
    path = _job_path(home, job.id)
    if not has_same_lease(_read_job(path), job):
        return False
    if then is None:
        path.unlink(missing_ok=True)
    else:
        _keep(path, to_fields(then))
    return True


def all_jobs(home: Home) -> list[Job]:
    """Every job that is not done."""
    found = (_read_job(path) for path in (home.state / "jobs").glob("*.json"))
    return sorted((job for job in found if job is not None), key=lambda job: (job.created, job.id))


def _read_job(path: Path) -> Job | None:
    with contextlib.suppress(*UNREADABLE):
        return from_fields(Job, json.loads(read_bytes(path)))
    return None


def task_problems(home: Home) -> list[str]:
    """Problems with tasks, checkpoints and jobs that cannot be read."""
    problems: list[str] = []
    for task in all_tasks(home, problems):
        checkpoints(home, task.id, problems)
    for path in (home.state / "jobs").glob("*.json"):
        if _read_job(path) is None and path.exists():
            problems.append(f"{path}: not a job; remove it, or restore it from a backup")
    return problems


def _job_path(home: Home, job_id: str) -> Path:
    return home.state / "jobs" / f"{hashlib.sha256(job_id.encode('utf-8', 'replace')).hexdigest()[:32]}.json"


def _keep(path: Path, fields: dict[str, Any]) -> None:
    with _writing(path):
        make_folder(path.parent)
        replace_file(path, json_line(fields, "replace"))


@contextlib.contextmanager
def _writing(path: Path) -> Iterator[None]:
    """Raise `StoreReadOnly` with the path if the disk is full or read-only."""
    try:
        yield
    except OSError as error:
        raise StoreReadOnly(f"cannot write {path}: {error.strerror}; nothing was written") from error
