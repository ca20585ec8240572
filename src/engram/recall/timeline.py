"""A timeline: memories, sessions and events in chronological order."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from operator import attrgetter

from engram.model.hit import Hit, TimelineEntry
from engram.model.memory import Memory
from engram.model.records import Session

Entries = list[TimelineEntry]


def newest(entries: Iterable[TimelineEntry], limit: int | None) -> Entries:
    """The newest entries, oldest first."""
    ordered = sorted(entries, key=attrgetter("at", "id"))
    return ordered if limit is None else ordered[max(0, len(ordered) - limit) :]


def entries_of_memories(memories: Iterable[Memory]) -> Iterator[TimelineEntry]:
    """Each memory at the time it was true, or was stored."""
    for memory in memories:
        if memory.when is not None:
            note = f"replaced by {memory.superseded_by}" if memory.superseded_by else ""
            yield TimelineEntry(memory.when, "memory", memory.id, memory.statement, memory.status, note)


def entries_of_sessions(
    sessions: Iterable[Session], since: datetime | None, until: datetime | None
) -> Iterator[TimelineEntry]:
    """The start of each session with its task, and its end with the summary."""
    for session in sessions:
        moments = [(session.started, session.task, "started")]
        if session.ended is not None:
            moments.append((session.ended, session.summary, "ended"))
        for at, text, note in moments:
            if (since is None or at >= since) and (until is None or at < until):
                yield TimelineEntry(at, "session", session.id, text, note=note)


def entries_of_hits(hits: Sequence[Hit]) -> Iterator[TimelineEntry]:
    """The memories and events that a search found."""
    yield from entries_of_memories(hit.memory for hit in hits if hit.memory is not None)
    for hit in hits:
        if hit.event is not None:
            yield TimelineEntry(hit.event.at, "event", hit.id, hit.text, note=hit.event.role)
