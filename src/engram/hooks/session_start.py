"""The start of a session: prints a short digest of the memories, the waiting work and recent failures.

It also briefly harvests the sessions that wait in the spool.
"""

import os
from pathlib import Path

from engram.hooks import memory_index
from engram.hooks.memory_index import MemoryIndex
from engram.hooks.place import HookPayload, HookPlace
from engram.hooks.session_memo import SessionMemo
from engram.store import hook_files
from engram.text import display
from engram.text.display import format_count

PAUSED = "Engram is paused; `engram resume` ends that. Its hooks recall and record nothing meanwhile."
EMPTY = "Engram (memory across sessions) holds nothing yet; /engram:remember and /engram:learn record something."
ON_SERVER = "Engram keeps memories on a server; the skills /engram:recall and /engram:prepare ask it."
NO_PROMPT_RECALL = "Prompts are compared with local stores only, so no memory is added to a prompt here unasked."
MAX_PINNED_MEMORIES = 5
MIN_NOTICED_SESSIONS = 20
"""Fewer waiting sessions are not reported, because the next sessions harvest them."""
MAX_RESTORED_MEMORIES = 12
FOREIGN_FILES = ("memory", "memories", "memory.md", "memory-log.md")
"""Leftovers of other programs of the same name in the same directory."""
COMPACTED = "Memories that this session was given before its context was compacted (Engram), quoted as evidence:"
PINNED = "Pinned and critical memories (quoted as evidence; what the user says now comes first):"


def start_session(place: HookPlace, payload: HookPayload) -> str:
    """The text that a session starts with."""
    if place.is_paused:
        return PAUSED
    memo = SessionMemo(place, payload.session)
    memo.sweep()
    parts = [_restore_compacted(place, memo)] if payload.source == "compact" else [_digest(place, payload, memo)]
    parts += [report_new_failures(place)]
    return "\n".join(part for part in parts if part)


def _digest(place: HookPlace, payload: HookPayload, memo: SessionMemo) -> str:
    scopes = place.scopes(Path(payload.cwd or "."))
    index = None if place.is_server else place.index()
    if index is None:
        return "\n".join([_without_index(place), *_notices(place, 0)])
    try:
        lines = [_describe_contents(index, scopes)]
        pinned = memory_index.select_injectable(
            index.pinned_memories(scopes, 4 * MAX_PINNED_MEMORIES), MAX_PINNED_MEMORIES
        )
        if pinned:
            lines += [PINNED, *map(memory_index.render_memory, pinned)]
            memo.give([memory.id for memory in pinned])
            memo.save()
        return "\n".join([*lines, *_scope_notices(place, payload, index), *_notices(place, index.count_waiting())])
    finally:
        index.close()


def _without_index(place: HookPlace) -> str:
    if place.is_server:
        return f"{ON_SERVER} {NO_PROMPT_RECALL}" if place.prompt_recall else ON_SERVER
    return EMPTY


def _describe_contents(index: MemoryIndex, scopes: tuple[str, ...]) -> str:
    counts = index.counts(scopes)
    if not any(count for (_, status), count in counts.items() if status == "active"):
        return EMPTY
    here = next((scope for scope in scopes if scope.startswith("project:")), "")
    parts = []
    if here:
        parts.append(f"{_count_active(counts, here)} for {display.safe_word(here)}")
    shared = sum(count for (scope, status), count in counts.items() if status == "active" and scope != here)
    verb = "applies" if shared == 1 else "apply"
    parts.append(f"{format_count(shared, 'memory', 'memories') if not parts else f'{shared:,}'} that {verb} everywhere")
    held = " and ".join(parts)
    return f"Engram (memory across sessions) holds {held}. /engram:recall searches them, /engram:prepare gathers them for a task."


def _count_active(counts: dict[tuple[str, str], int], scope: str) -> str:
    return format_count(counts.get((scope, "active"), 0), "memory", "memories")


def _scope_notices(place: HookPlace, payload: HookPayload, index: MemoryIndex) -> list[str]:
    """Open decisions about the scope of the directory that only a person can make."""
    from engram.store.scopes import earlier_scopes, scope_of, trusted_of
    from engram.upkeep.scope_links import PLACES_STATE, DirectoryScope, used_elsewhere

    assert place.home is not None
    directory = Path(payload.cwd or ".")
    scope = scope_of(directory, trusted_of(place.home.state, directory), place.links) or ""
    numbers: dict[str, int] = {}
    for (old, _), number in index.counts(list(earlier_scopes(directory, place.links).values())).items():
        numbers[old] = numbers.get(old, 0) + number
    used_in = used_elsewhere(place.state(PLACES_STATE), scope, directory)
    return [display.notice(f"{notice}.") for notice in DirectoryScope(scope, numbers, used_in).notices()]


def _notices(place: HookPlace, waiting: int) -> list[str]:
    lines = []
    if waiting:
        verb = "waits" if waiting == 1 else "wait"
        lines.append(
            f"{format_count(waiting, 'proposed memory', 'proposed memories')} {verb} for review: `engram review`."
        )
    spooled = hook_files.count_waiting(place.root)
    if spooled >= MIN_NOTICED_SESSIONS:
        lines.append(f"{format_count(spooled, 'session')} wait to be harvested: `engram harvest`.")
    if problem := place.config_problem:
        lines.append(f"{problem}.")
    foreign = [name for name in FOREIGN_FILES if (place.root / name).exists()]
    if foreign:
        names = ", ".join(foreign)
        lines.append(f"{place.root} has files of another program ({names}): `engram import {place.root}` reads them.")
    return [display.notice(line) for line in lines]


def _restore_compacted(place: HookPlace, memo: SessionMemo) -> str:
    """The session's memories from before its context was compacted."""
    ids, index = memo.given_ids, None if place.is_server else place.index()
    if index is None:
        return ""
    try:
        found = memory_index.select_injectable(index.by_ids(ids[::-1]), MAX_RESTORED_MEMORIES)
    finally:
        index.close()
    return "\n".join([COMPACTED, *map(memory_index.render_memory, found)]) if found else ""


def report_new_failures(place: HookPlace) -> str:
    """The failures that were not reported yet; they are marked as reported."""
    untold = [one for one in hook_files.read_failures(*place.logs) if not one.told]
    if not untold:
        return ""
    hook_files.mark_reported(*place.logs)
    told = [describe_failure(one.event, one.message, recovered=one.recovered) for one in untold]
    return "\n".join([*told, "`engram doctor` says more."])


def describe_failure(event: str, message: str, *, recovered: bool = False) -> str:
    """Describe one failure in a line."""
    again = " and works again" if recovered else ""
    return f"Engram's hook {display.safe_word(event)} failed{again}: {display.quote_text(message)}"


HARVEST_SECONDS = 0.1
"""How long to read transcripts, in addition to loading the engine."""

EDIT_SECONDS = 5.0
"""How long to look for edited files; no one waits for it."""


def drain(place: HookPlace) -> str:
    """Harvest waiting sessions briefly, without output, since the results wait for review.

    Raises `ValueError` for a transcript that cannot be read, so that the next session start reports it.
    """
    problems = _harvest_waiting(place)
    _update_task_vectors(place)
    if problems:
        raise ValueError(problems[0])
    return ""


def _harvest_waiting(place: HookPlace) -> list[str]:
    if not hook_files.count_waiting(place.root) or (not place.is_server and not place.exists):
        return []
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from engram.client import Engram

    with Engram.open(None if place.is_server else place.root, create=False, directory=Path.home()) as mem:
        return mem.harvest_spooled(seconds=HARVEST_SECONDS).problems


def _update_task_vectors(place: HookPlace) -> None:
    """Update the task vectors of the memories, so that no prompt has to."""
    index = None if place.is_server else place.index(EDIT_SECONDS)
    if index is not None:
        try:
            index.tasks(all_of_them=True)
        finally:
            index.close()
