"""What a purge is about to destroy: read completely before anything is written, then kept in a marker until it is done.

The marker is the commit point. It contains the words too, so that an interrupted purge can be finished without
reading what is half gone; it is deleted last.
"""

import contextlib
import json
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from engram.disk import DIRECTORY_MODE, UNREADABLE, make_folder, read_bytes, replace_file, sync_path
from engram.model.errors import EngramError, StoreCorrupt
from engram.model.event import Event
from engram.model.lazy import dataclass, field
from engram.model.memory import Memory
from engram.store.files import memories
from engram.store.files.log.context import LogContext
from engram.store.files.log.ledger import ledger_name
from engram.store.files.reconcile.context import IndexContext
from engram.store.files.reconcile.index_records import place_of
from engram.store.files.states.tasks import load_task
from engram.store.files.store import events
from engram.store.home import Home, memory_file
from engram.store.ledger import blank_event
from engram.store.purge import (
    contains_words,
    is_foreign,
    is_removed_with,
    is_sentence,
    texts_of,
    texts_of_event,
    texts_to_remove,
    words_of,
)
from engram.store.records import decode_record, from_image

MARKER_FILE = "purging.json"
"""The marker of an unfinished purge."""


@dataclass(frozen=True, slots=True)
class PurgePlan:
    """The ids to destroy, the words that go with them, the events to blank with their ledgers, and the memories' files."""

    ids: tuple[str, ...]
    drawn: tuple[str, ...]
    actor: str
    said: tuple[str, ...] = ()
    events: Mapping[str, str] = field(default_factory=dict)
    files: tuple[str, ...] = ()
    scopes: tuple[str, ...] = ()
    """The scopes of all that."""

    @property
    def id_set(self) -> frozenset[str]:
        """The ids as a set."""
        return frozenset(self.ids)

    def is_other_owner(self, scope: str) -> bool:
        """Whether the words stay in records of a scope, because it belongs to another person."""
        return is_foreign(scope, self.scopes)

    def merge(self, other: "PurgePlan") -> "PurgePlan":
        """Both plans in one: for a purge that starts while another could not be finished."""
        return PurgePlan(
            _union(self.ids, other.ids), _union(self.drawn, other.drawn), self.actor, _union(self.said, other.said),
            {**other.events, **self.events}, _union(self.files, other.files), _union(self.scopes, other.scopes),
        )  # fmt: skip


def _union(*parts: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(text for part in parts for text in part))


# -- the marker


def has_unfinished_purge(home: Home) -> bool:
    """Whether there is an unfinished purge."""
    return purge_stamp(home) != ""


def purge_stamp(home: Home) -> str:
    """Identifies the unfinished purge; "" for none."""
    try:
        found = os.stat(f"{home.state}/{MARKER_FILE}")
    except OSError:
        return ""
    return f"{found.st_ino} {found.st_mtime_ns}"


def write_marker(home: Home, plan: PurgePlan) -> None:
    """Start the purge: from here on it will be finished."""
    from dataclasses import asdict

    home.state.mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)
    replace_file(home.state / MARKER_FILE, json.dumps(asdict(plan)).encode() + b"\n")


def read_marker(context: IndexContext) -> PurgePlan:
    """The unfinished purge; one of an older Engram, which stored only the ids, is planned again."""
    begun, is_planned = _read_plan(context.home)
    if is_planned:
        return begun
    plan = plan_purge(context, begun.ids, begun.drawn, begun.actor)
    write_marker(context.home, plan)
    return plan


def marked_ids(home: Home) -> frozenset[str]:
    """The ids of the unfinished purge; none if there is none."""
    try:
        plan = _read_plan(home)[0] if has_unfinished_purge(home) else None
    except StoreCorrupt:
        if has_unfinished_purge(home):
            raise
        plan = None  # another process has just finished it
    return frozenset((*plan.ids, *plan.events)) if plan is not None else frozenset()


def marker_problem(home: Home) -> str:
    """What is wrong with the marker; "" if nothing, or if there is none."""
    try:
        if has_unfinished_purge(home):
            _read_plan(home)
    except StoreCorrupt as error:
        return str(error)
    return ""


def set_aside_damaged(home: Home) -> list[str]:
    """Move an unreadable marker to quarantine. The caller holds the writer lock."""
    if not marker_problem(home):
        return []
    path = home.state / MARKER_FILE
    make_folder(home.quarantine)
    path.rename(home.quarantine / f"{path.name}.{os.urandom(3).hex()}")
    sync_path(home.quarantine)
    return [f"{path}: the marker of an interrupted purge cannot be read, moved to quarantine; purge again"]


def _read_plan(home: Home) -> tuple[PurgePlan, bool]:
    """The plan of the marker, and whether it is complete."""
    path = home.state / MARKER_FILE
    try:
        kept = json.loads(read_bytes(path))
        ids, drawn, actor = _texts(kept["ids"]), _texts(kept.get("drawn", [])), str(kept["actor"])
        if "said" not in kept:
            return PurgePlan(ids, drawn, actor), False
        ledgers = dict(kept["events"])
        blank = dict(zip(_texts(list(ledgers)), _texts(list(ledgers.values()), empty=True), strict=True))
        said, files, scopes = _texts(kept["said"]), _texts(kept["files"]), _texts(kept["scopes"], empty=True)
        return PurgePlan(ids, drawn, actor, said, blank, tuple(map(memory_file, files)), scopes), True
    except UNREADABLE as error:
        raise StoreCorrupt(
            f"{path}: a purge was interrupted and its plan cannot be read ({error}); run `engram doctor --repair`, "
            "then purge again"
        ) from None


def _texts(given: Any, *, empty: bool = False) -> tuple[str, ...]:
    if not isinstance(given, list) or not all(isinstance(text, str) and (text or empty) for text in given):
        raise ValueError("its lists must contain text")
    return tuple(given)


# -- planning


def plan_purge(context: IndexContext, ids: Sequence[str], drawn: Collection[str], actor: str) -> PurgePlan:
    """Read everything a purge of these needs. Nothing is written."""
    wanted = frozenset(ids)
    by_id = frozenset(i for i in wanted - frozenset(drawn) if events.find(context, i) is None)
    known = _PurgeSources(context, wanted)
    everywhere = known.texts(by_id)
    own = [text for text in known.texts(wanted - by_id) if text not in everywhere]
    blank = {i: event for i, event in known.blank(by_id, everywhere).items() if blank_event(event) != event}
    quoted = texts_to_remove(_other_events(context, blank), own, blank.values())
    return PurgePlan(
        tuple(sorted(wanted)), tuple(sorted(drawn)), actor, _union(everywhere, quoted),
        {event.id: event.session for event in blank.values()}, _union(known.files), known.scopes(blank.values()),
    )  # fmt: skip


class _PurgeSources:
    """What journal, index and files contain of the memories and events to purge."""

    def __init__(self, context: IndexContext, wanted: frozenset[str]) -> None:
        self._context = context
        self.events = {i: event for i in wanted if (event := events.find(context, i)) is not None}
        self.memories: dict[str, list[Memory]] = {}
        self.files: list[str] = []
        self._unreadable: dict[str, list[str]] = {}
        for placed in context.journal.readable([]):
            for change in placed.entry.changes:
                if change.id in wanted and change.after is not None:
                    self._image(change.id, change.after)
        for memory_id in wanted:
            row = context.index.one("by_ref", memory_id)
            if row is not None:
                self.memories.setdefault(memory_id, []).extend(_current_versions(context, row))
            if place := place_of(context.index, memory_id):
                self.files.append(place)

    def _image(self, memory_id: str, after: Mapping[str, Any]) -> None:
        try:
            self.memories.setdefault(memory_id, []).append(from_image(after))
        except EngramError:
            self._unreadable.setdefault(memory_id, []).append(str(after.get("statement", "")))

    def texts(self, ids: Collection[str]) -> list[str]:
        """Every text that some of them ever contained."""
        found: list[str] = []
        for wanted_id in sorted(ids):
            found += [text for memory in self.memories.get(wanted_id, ()) for text in texts_of(memory)]
            found += [text for text in self._unreadable.get(wanted_id, ()) if is_sentence(text)]
            if wanted_id in self.events:
                found += texts_of_event(self.events[wanted_id])
        return list(dict.fromkeys(found))

    def blank(self, by_id: Collection[str], everywhere: Sequence[str]) -> dict[str, Event]:
        """Events to purge, those a memory purged by id was derived from, and those that contain its exact words."""
        found = dict(self.events)
        for memory in (memory for i in by_id for memory in self.memories.get(i, ())):
            derived = (events.find(self._context, evidence.event) for evidence in memory.evidence)
            known = [event for event in derived if event is not None]
            found |= {
                event.id: event for event in known if is_removed_with(scope_of(self._context, event.id), memory.scope)
            }
        if sentences := [text for text in everywhere if is_sentence(text)]:
            owners = self.scopes(found.values())
            others = _other_events(self._context, found.copy())
            quoting = [event for event in others if any(contains_words(words_of(event), text) for text in sentences)]
            found |= {one.id: one for one in quoting if not is_foreign(scope_of(self._context, one.id), owners)}
        return found

    def scopes(self, blank: Iterable[Event]) -> tuple[str, ...]:
        """The scopes of the memories in all their versions, and of the events."""
        scopes = [memory.scope for versions in self.memories.values() for memory in versions]
        return _union(scopes, (scope for event in blank if (scope := scope_of(self._context, event.id))))


def _current_versions(context: IndexContext, row: tuple[int, str, str]) -> Iterator[Memory]:
    """A memory as the index has it and as its file has it: an edit may not be indexed yet."""
    yield decode_record(row[2])
    place = place_of(context.index, row[1])
    with contextlib.suppress(EngramError, OSError):
        yield from (memory for memory in memories.read(context.path(place)) if memory.id == row[1])


def _other_events(context: IndexContext, known: Collection[str]) -> Iterator[Event]:
    """The events of every ledger except these; for a damaged ledger also those in the index."""
    for name in context.ledger.sizes():
        whole = True
        try:
            for line, event in context.ledger.lines(name):
                whole = whole and (event is not None or not line.strip())
                if event is not None and event.id not in known:
                    yield event
        except OSError:
            whole = False
        if not whole:
            yield from (event for event in _indexed_events(context, name) if event.id not in known)


def _indexed_events(context: IndexContext, ledger: str) -> Iterator[Event]:
    rows = context.index.db.execute("SELECT DISTINCT parent FROM docs WHERE kind = 'event'").fetchall()
    for session in (parent for (parent,) in rows if ledger_name(parent) == ledger):
        yield from events.of_ledger(context, session)


def scope_of(context: IndexContext, document_id: str) -> str:
    """The scope of a memory or an event by the index; "" if unknown."""
    row = context.index.db.execute("SELECT scope FROM docs WHERE id = ?", (document_id,)).fetchone()
    return str(row[0]) if row else ""


def owner_of(context: LogContext, fields: Mapping[str, Any]) -> str:
    """The owner's scope of a session, a task, a checkpoint or a job; "" if unknown."""
    if "scope" in fields or "scopes" in fields:
        return str(fields.get("scope") or next(iter(fields.get("scopes") or ()), ""))
    try:
        task = load_task(context.home, str(fields.get("task", "")))
    except EngramError:
        return ""
    return task.scope if task is not None else ""
