"""Destroying all that belongs to one scope: its memories, what was said in its sessions and tasks, and what those were about."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from engram.model.event import Session
from engram.model.task import TASK_STATES, TaskRun
from engram.rules.scopes import ancestors
from engram.store.protocol import Filters, Purged, Store
from engram.upkeep.upkeep import Upkeep

PURGED = "purged"
"""What a purged task is about, for whoever finds its id."""


@dataclass(frozen=True, slots=True)
class _Holdings:
    """What a scope and the scopes below it hold."""

    memories: tuple[str, ...]
    tasks: tuple[TaskRun, ...]
    sessions: tuple[Session, ...]
    conversations: tuple[str, ...]


def purge_scope(store: Store, upkeep: Upkeep, scope: str, now: datetime, *, actor: str) -> Purged:
    """Destroy it; `remaining` of the answer names the checkpoints that are left, which are a task's own words."""
    held = _holdings(store, scope)
    ledgers = [*(task.id for task in held.tasks), *(session.id for session in held.sessions), *held.conversations]
    events = [event.id for ledger in ledgers for event in store.events(ledger)]
    purged = upkeep.purge([*held.memories, *events], actor=actor)
    for session in held.sessions:
        told = store.session(session.id) or session
        store.save_session(replace(told, task="", summary="", summary_through=0, summary_style="", summary_by=""))
    for task in held.tasks:
        store.change_task(task.id, lambda run: _emptied(run, now))
    left = [f"{point.id}: a checkpoint's own words" for task in held.tasks for point in store.checkpoints(task.id)]
    return replace(purged, remaining=(*purged.remaining, *left))


def _holdings(store: Store, scope: str) -> _Holdings:
    memories = [memory for memory in store.listing(Filters(statuses=None)) if _within(memory.scope, scope)]
    tasks = [task for task in store.tasks(TASK_STATES) if _within(task.scope, scope)]
    sessions = [one for one in store.sessions() if one.scopes and _within(one.scopes[0], scope)]
    own = {scope, *_scopes(memories), *_scopes(tasks), *(one.scopes[0] for one in sessions)}
    # Where a conversation was handed over without a session, its ledger goes by its scope.
    talks = tuple(f"conversation:{name}" for name in sorted(own))
    return _Holdings(tuple(memory.id for memory in memories), tuple(tasks), tuple(sessions), talks)


def _scopes(owned: Iterable[object]) -> set[str]:
    return {str(getattr(one, "scope", "")) for one in owned}


def _within(scope: str, wanted: str) -> bool:
    return wanted in ancestors(scope)


def _emptied(task: TaskRun, now: datetime) -> TaskRun:
    return replace(
        task, goal=PURGED, outcome="", session="", metadata={}, status="deleted", updated=now, ended=task.ended or now
    )
