"""Destroying all that belongs to one scope: its memories, what was said in its sessions and tasks, and what those were about."""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime

from engram.model.event import Session
from engram.model.memory import Memory
from engram.model.task import TASK_STATES, Checkpoint, TaskRun
from engram.rules.scopes import ancestors
from engram.store.ledger import CONVERSATION
from engram.store.protocol import Filters, Purged, Store
from engram.store.purge import DOCUMENT, goes_with
from engram.upkeep.purge import Destroying

PURGED = "purged"
"""What a purged task is about, for whoever finds its id."""
_WORD = re.compile(r"[^\W\d_]{6,}")


@dataclass(frozen=True, slots=True)
class _Holdings:
    """What a scope and the scopes below it hold."""

    memories: tuple[Memory, ...]
    tasks: tuple[TaskRun, ...]
    sessions: tuple[Session, ...]
    events: tuple[str, ...]
    named: tuple[str, ...]
    """Its ledgers whose names, given by callers, hold a word of what is said there."""


def purge_scope(store: Store, clock: Callable[[], datetime], scope: str, *, actor: str) -> Purged:
    """Destroy it. What others say in the same words stays theirs, and `remaining` of the answer names it."""
    held = _holdings(store, scope)
    # First: the purge itself is carried to its end after a crash, and by then nothing of these may be left.
    for session in held.sessions:
        store.save_session(replace(session, task="", summary="", summary_through=0, summary_style="", summary_by=""))
    for task in held.tasks:
        store.change_checkpoints(task.id, _blanked)
        store.change_task(task.id, lambda run: _emptied(run, clock()))
    purged = Destroying(store, clock).purge_owned([memory.id for memory in held.memories], held.events, actor=actor)
    told = (f"{name}: the session's name stays, in its ledger and in the journal" for name in held.named)
    return replace(purged, remaining=(*purged.remaining, *told))


def _holdings(store: Store, scope: str) -> _Holdings:
    memories = [memory for memory in store.listing(Filters(statuses=None)) if _within(memory.scope, scope)]
    tasks = [task for task in store.tasks(TASK_STATES) if _within(task.scope, scope)]
    sessions = [one for one in store.sessions() if one.scopes and _within(one.scopes[0], scope)]
    ledgers = dict.fromkeys(
        [*(task.id for task in tasks), *(session.id for session in sessions), *_ledgers(store, scope)]
    )
    spoken = {ledger: store.events(ledger) for ledger in ledgers}
    said = [event.id for told in spoken.values() for event in told]
    # Wherever else it was said what these memories say, it was said for them, unless it was another owner who said it.
    cited = [(evidence.event, memory.scope) for memory in memories for evidence in memory.evidence]
    spoken_for = [event for event, whose in cited if goes_with(store.owner_of(event) or "", whose)]
    known = [event for event in spoken_for if store.event(event) is not None]
    events = dict.fromkeys([*said, *known])
    words = {word for told in spoken.values() for event in told for word in _words(event.content)}
    words |= {word for memory in memories for text in (memory.statement, *memory.tags) for word in _words(text)}
    named = [name for name in ledgers if not name.startswith((CONVERSATION, DOCUMENT)) and words & _words(name)]
    return _Holdings(tuple(memories), tuple(tasks), tuple(sessions), tuple(events), tuple(named))


def _words(text: str) -> set[str]:
    """Words that are long enough to tell something."""
    return set(_WORD.findall(text.casefold()))


def _ledgers(store: Store, scope: str) -> list[str]:
    """Ledgers that belong to a scope, whatever their callers named them."""
    return [name for name in store.ledgers() if _within(store.ledger_scope(name), scope)]


def _within(scope: str, wanted: str) -> bool:
    return wanted in ancestors(scope)


def _emptied(task: TaskRun, now: datetime) -> TaskRun:
    return replace(
        task, goal=PURGED, outcome="", session="", metadata={}, status="deleted", updated=now, ended=task.ended or now
    )


def _blanked(point: Checkpoint) -> Checkpoint:
    """A checkpoint's place in its task, without its words."""
    return Checkpoint(point.id, point.task, point.number, point.created, PURGED, through=point.through, kind=point.kind)
