"""Files of sessions, of tasks with their checkpoints, and of jobs. Callers that write must have the writer lock."""

import contextlib
import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

from engram.disk import (
    MALFORMED,
    UNREADABLE,
    append_durably,
    digest_name,
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
from engram.model.records import Checkpoint, Job, Session, TaskRun
from engram.rules.scopes import GLOBAL
from engram.store.home import Home
from engram.store.ledger import ledger_owner
from engram.store.tasks import can_lease, from_record_fields, has_same_lease, lease_job, to_record_fields

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
    return from_record_fields(TaskRun, json.loads(read_bytes(path)))


def save_task(home: Home, task: TaskRun) -> None:
    """Write a task's file durably, in one step."""
    path = task_path(home, task.id)
    if path is None:
        raise InvalidInput(f"{task.id!r} cannot be the id of a task: letters, digits, dots and dashes only")
    _keep(path, to_record_fields(task))


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
        # After a torn line, which only a crash leaves, the next line would be damaged, too.
        if not fresh and (torn := torn_tail(path)) is not None:
            set_aside(path, torn, home.quarantine, "torn last line")
        append_durably(path, json_line(to_record_fields(checkpoint), "replace"))
        if fresh:
            sync_path(home.tasks)


def load_checkpoints(home: Home, task_id: str, problems: list[str] | None = None) -> list[Checkpoint]:
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
            found.append(from_record_fields(Checkpoint, json.loads(line)))
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
    known = load_checkpoints(home, task_id, [])
    if known:
        path = checkpoints_path(home, task_id)
        with _writing(path):
            replace_file(
                path, b"".join(json_line(to_record_fields(change(checkpoint)), "replace") for checkpoint in known)
            )


def replace_all_tasks(home: Home, runs: Iterable[TaskRun], points: Iterable[Checkpoint], jobs: Iterable[Job]) -> None:
    """Replace all tasks, checkpoints and jobs; for the target of a migration."""
    for path in [*home.tasks.glob(f"*{_CHECKPOINTS}"), *(home.state / "jobs").glob("*.json")]:
        path.unlink()
    for task in runs:
        save_task(home, task)
    for checkpoint in points:
        add_checkpoint(home, checkpoint)
    enqueue_jobs(home, jobs)


def list_task_files(home: Home) -> list[Path]:
    """Every file of a task, its checkpoints or a job, for a purge."""
    found = [*home.tasks.glob("*.json"), *home.tasks.glob(f"*{_CHECKPOINTS}"), *(home.state / "jobs").glob("*.json")]
    return sorted(found)


def checkpoints_path(home: Home, task_id: str) -> Path:
    """The file of a task's checkpoints."""
    return home.tasks / f"{task_id}{_CHECKPOINTS}"


# -- jobs


def enqueue_jobs(home: Home, jobs: Iterable[Job]) -> None:
    """Add jobs; one that exists already stays as it is."""
    for job in jobs:
        path = _job_path(home, job.id)
        if not path.exists():
            _keep(path, to_record_fields(job))


def lease_jobs(
    home: Home, kinds: tuple[str, ...] | None, owner: str, now: datetime, until: datetime, limit: int
) -> list[Job]:
    """Lease jobs that are due, oldest first, including those whose lease has expired."""
    due = [job for job in all_jobs(home) if can_lease(job, kinds, now)]
    taken = [lease_job(job, owner, until) for job in sorted(due, key=lambda j: (j.run_after, j.id))[:limit]]
    for job in taken:
        _keep(_job_path(home, job.id), to_record_fields(job))
    return taken


def settle_job(home: Home, job: Job, then: Job | None) -> bool:
    """End a lease: the job is removed, or replaced by `then`. Returns False if the lease has passed to another owner."""
    path = _job_path(home, job.id)
    if not has_same_lease(_read_job(path), job):
        return False
    if then is None:
        path.unlink(missing_ok=True)
    else:
        _keep(path, to_record_fields(then))
    return True


def all_jobs(home: Home) -> list[Job]:
    """Every job that is not done."""
    found = (_read_job(path) for path in (home.state / "jobs").glob("*.json"))
    return sorted((job for job in found if job is not None), key=lambda job: (job.created, job.id))


def _read_job(path: Path) -> Job | None:
    with contextlib.suppress(*UNREADABLE):
        return from_record_fields(Job, json.loads(read_bytes(path)))
    return None


def task_problems(home: Home) -> list[str]:
    """Problems with tasks, checkpoints and jobs that cannot be read."""
    problems: list[str] = []
    for task in all_tasks(home, problems):
        load_checkpoints(home, task.id, problems)
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


_SESSION_NAME = lazy_pattern(r"(?:S-|(?!s-)[a-z0-9])[a-z0-9._-]{0,99}")
"""Ids that can be file names as they are, in one case only: some file systems ignore case."""
_UNSAFE = lazy_pattern(r"[^a-z0-9._-]")

_OWN_ID = lazy_pattern(r"(?:S|TASK)-\d{8}-\d{6}-[0-9a-f]+")


def session_path(home: Home, session_id: str) -> Path:
    """The file of a session: its id, or the safe characters of it and a digest. No two ids share a file."""
    name = session_id
    if not _SESSION_NAME.fullmatch(session_id):
        name = digest_name(session_id, _UNSAFE.sub("_", session_id.lower())[:80].lstrip("."))
    return home.state / "sessions" / f"{name}.json"


def _former_path(home: Home, session_id: str) -> Path:
    """The file of a session in Engram 0.1, in which different ids could share a file."""
    plain = "".join(char for char in session_id if char.isalnum() or char in "._-").lstrip(".")
    return home.state / "sessions" / f"{plain or '_'}.json"


def save_session(home: Home, session: Session) -> None:
    """Write a session's file durably in one step: it determines the scope of the session's events."""
    path = session_path(home, session.id)
    fields: dict[str, object] = {
        "id": session.id,
        "task": session.task,
        "scopes": list(session.scopes),
        "started": _iso(session.started),
        "ended": _iso(session.ended) if session.ended else None,
        "summary": session.summary,
    }
    if session.summary_through:
        fields |= {"through": session.summary_through, "style": session.summary_style, "by": session.summary_by}
    former = _former_path(home, session.id)
    try:
        make_folder(path.parent)
        replace_file(path, json.dumps(fields, ensure_ascii=False, indent=1).encode("utf-8", "replace") + b"\n")
        if former.name != path.name and (old := _read_session(former)) is not None and old.id == session.id:
            former.unlink(missing_ok=True)
    except OSError as error:
        raise StoreReadOnly(f"cannot write {path}: {error.strerror}") from error


def load_session(home: Home, session_id: str) -> Session | None:
    """A session, or None."""
    for path in (session_path(home, session_id), _former_path(home, session_id)):
        session = _read_session(path)
        if session is not None and session.id == session_id:
            return session
    return None


def all_sessions(home: Home) -> list[Session]:
    """Every session, newest first."""
    found: dict[str, Session] = {}
    for path in (home.state / "sessions").glob("*.json"):
        session = _read_session(path)
        # A crash may have left a second file under the former name.
        if session is not None and (session.id not in found or path.name == session_path(home, session.id).name):
            found[session.id] = session
    return sorted(found.values(), key=lambda one: (one.started, one.id), reverse=True)


def session_problems(home: Home) -> list[str]:
    """Problems with session files that cannot be read."""
    paths = sorted((home.state / "sessions").glob("*.json"))
    return [
        f"{path}: not a session; restore it from a backup, or remove it"
        for path in paths
        if _read_session(path) is None
    ]


def _read_session(path: Path) -> Session | None:
    with contextlib.suppress(*UNREADABLE):
        fields = json.loads(read_bytes(path))
        return Session(
            id=str(fields["id"]),
            task=str(fields["task"] or ""),
            scopes=tuple(map(str, fields["scopes"])),
            started=datetime.fromisoformat(fields["started"]).astimezone(UTC),
            ended=datetime.fromisoformat(fields["ended"]).astimezone(UTC) if fields["ended"] else None,
            summary=str(fields["summary"] or ""),
            summary_through=int(fields.get("through", 0)),
            summary_style=str(fields.get("style", "")),
            summary_by=str(fields.get("by", "")),
        )
    return None


def session_scope(home: Home, session_id: str) -> str:
    """The scope of events without one of their own: their task's, or their session's first, else global.

    If the file with that scope is lost, the events are only shown in their own session.
    """
    with contextlib.suppress(StoreCorrupt):
        task, session = load_task(home, session_id), load_session(home, session_id)
        if task is not None or session is not None or not _had_a_file(home, session_id):
            return ledger_owner(session_id, task, session) or GLOBAL
    return f"session:{session_id}"


def is_lost(home: Home, session_id: str) -> bool:
    """Whether the file of a session or task is missing or unreadable."""
    with contextlib.suppress(StoreCorrupt):
        if load_task(home, session_id) is not None or load_session(home, session_id) is not None:
            return False
        return _had_a_file(home, session_id)
    return True


def _had_a_file(home: Home, session_id: str) -> bool:
    """Whether the session or task had a file: an unreadable one remains, or Engram assigns its id together with a file."""
    path = session_path(home, session_id)
    return _OWN_ID.fullmatch(session_id) is not None or (path.exists() and _read_session(path) is None)


def _iso(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")
