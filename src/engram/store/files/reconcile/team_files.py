"""Indexing the files of a team store, only while the reader trusts exactly their content. They are not journaled."""

from engram.dialects.record import hand_problem
from engram.model.errors import EngramError
from engram.model.memory import Memory
from engram.rules.limits import limit_problem
from engram.store.files import memories
from engram.store.files.memories import Stamp
from engram.store.files.reconcile.context import IndexContext
from engram.store.files.reconcile.index_records import MemoryRow, index_memories, note_file, place_of
from engram.store.files.reconcile.memory_places import drop_memories, id_problem, retire_missing
from engram.store.files.reconcile.team_trust import content_digest, is_team, team_content, team_of, trusted_digests
from engram.store.records import decode_record, image
from engram.store.reports import SyncReport


def pick_up_team_file(context: IndexContext, stored: str, stamp: Stamp, noticed: SyncReport) -> None:
    """Index a team file, without journaling it, and only while the reader trusts exactly this content."""
    path = context.path(stored)
    try:
        data = team_content(path)
        trusted = content_digest(data) in trusted_digests(context, team_of(context, stored))
        found = memories.parse(data, path) if trusted or _has_indexed_memories(context, stored) else []
    except EngramError:
        _keep_last_trusted(context, stored, stamp, noticed)
        return
    if trusted:
        _index_team_file(context, stored, stamp, found)
    else:
        _exclude_untrusted(context, stored, stamp, noticed)


def _has_indexed_memories(context: IndexContext, stored: str) -> bool:
    return context.index.db.execute("SELECT 1 FROM places WHERE path = ? LIMIT 1", (stored,)).fetchone() is not None


def _keep_last_trusted(context: IndexContext, stored: str, stamp: Stamp, noticed: SyncReport) -> None:
    """Keep the last trusted version of an unreadable file (during a merge, say); none of its text is reported."""
    indexed = _has_indexed_memories(context, stored)
    problem = (
        f"{team_of(context, stored)}: a file there cannot be read; its last trusted version stays current. "
        "`engram trust` shows which file, and why"
    )
    with context.index.writing():
        note_file(context.index, stored, stamp, problem if indexed else "")
    if indexed and problem not in noticed.problems:
        noticed.problems.append(problem)


def _exclude_untrusted(context: IndexContext, stored: str, stamp: Stamp, noticed: SyncReport) -> None:
    """Remove the memories of an untrusted file from the index; only its stamp is recorded."""
    with context.index.writing() as writer:
        drop_memories(context, writer, retire_missing(context, stored, set()))
        note_file(context.index, stored, stamp)
    problem = (
        f"{team_of(context, stored)}: new or changed files there are not trusted yet and are not used. "
        "`engram trust` lists them"
    )
    if problem not in noticed.problems:
        noticed.problems.append(problem)


def _index_team_file(context: IndexContext, stored: str, stamp: Stamp, found: list[Memory]) -> None:
    gone = retire_missing(context, stored, {memory.id for memory in found})
    problems = []
    seen: set[str] = set()
    with context.index.writing() as writer:
        drop_memories(context, writer, gone)
        for memory in found:
            if _is_in_other_checkout(context, stored, memory):
                continue
            problem = hand_problem(memory) or limit_problem(memory)
            problem = problem or id_problem(context, stored, memory, seen) or _own_id_problem(context, memory)
            seen.add(memory.id)
            if problem:
                problems.append(f"{context.path(stored)}: {problem}")
                continue
            index_memories(context.index, writer, [MemoryRow(memory, image(memory), stored)])
        note_file(context.index, stored, stamp, "; ".join(problems))


def _is_in_other_checkout(context: IndexContext, stored: str, memory: Memory) -> bool:
    """Whether another checkout of the repository already brought exactly this memory."""
    place = place_of(context.index, memory.id)
    if place == stored or not is_team(place) or not context.path(place).exists():
        return False
    row = context.index.one("by_ref", memory.id)
    return row is not None and image(decode_record(row[2])) == image(memory)


def _own_id_problem(context: IndexContext, memory: Memory) -> str:
    """A problem if a team file uses the id of one of the owner's memories, also of a removed one."""
    own = context.index.one("by_ref", memory.id) is not None and not is_team(place_of(context.index, memory.id))
    return f"id {memory.id} belongs to one of your own memories; yours is kept" if own else ""
