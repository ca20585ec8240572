"""The plan of a purge, read completely and kept in a marker until it is done, and its proof.

The proof searches every file for records that still contain the words.
"""

import contextlib
import json
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from engram.disk import (
    DIRECTORY_MODE,
    MALFORMED,
    UNREADABLE,
    json_line,
    make_folder,
    read_bytes,
    reading,
    replace_file,
    sync_path,
)
from engram.model.errors import EngramError, StoreCorrupt
from engram.model.lazy import dataclass, field
from engram.model.memory import Memory
from engram.model.records import Event
from engram.store.files import memories
from engram.store.files.log.ledger import ledger_name
from engram.store.files.memories import is_memory_file
from engram.store.files.reconcile.folders import memory_roots
from engram.store.files.reconcile.index_state import IndexContext, LogContext, place_of
from engram.store.files.states import named as named_states
from engram.store.files.states.work import load_task
from engram.store.files.store.writer import find_stored_event, read_ledger_events
from engram.store.home import Home, memory_file
from engram.store.ledger import blank_event
from engram.store.purge import (
    PURGED_TEXT,
    QuotingRecord,
    contains_words,
    is_foreign,
    is_removed_with,
    is_sentence,
    lines_of,
    map_strings,
    quoting_lines,
    remove_texts,
    strings_in,
    texts_of,
    texts_of_event,
    texts_to_remove,
    words_of,
)
from engram.store.records import decode_record, from_image, image

MARKER_FILE = "purging.json"
"""The marker of an unfinished purge."""


@dataclass(frozen=True, slots=True)
class PurgePlan:
    """The ids to destroy, the words that go with them, the events to blank with their ledgers, and the memories' files.

    The marker is the commit point. It also contains the words, so that an interrupted purge can be finished without
    reading half-removed records; it is deleted last.
    """

    ids: tuple[str, ...]
    drawn: tuple[str, ...]
    actor: str
    said: tuple[str, ...] = ()
    events: Mapping[str, str] = field(default_factory=dict)
    files: tuple[str, ...] = ()
    scopes: tuple[str, ...] = ()
    """The scopes of these records."""

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
    """Start the purge: from now on it will be finished."""
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
    """The problem with the marker; "" if it has none, or there is no marker."""
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
    """Read everything that a purge of these records needs. Nothing is written."""
    wanted = frozenset(ids)
    by_id = frozenset(i for i in wanted - frozenset(drawn) if find_stored_event(context, i) is None)
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
        self.events = {i: event for i in wanted if (event := find_stored_event(context, i)) is not None}
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
            derived = (find_stored_event(self._context, evidence.event) for evidence in memory.evidence)
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
        yield from read_ledger_events(context, session)


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


CHUNK_BYTES = 1 << 20


def spellings(text: str) -> list[bytes]:
    """How a text may be written in the store's files: as it is, quoted by JSON or YAML, and line by line."""
    return [spelling for part in lines_of(text) for spelling in line_spellings(part)]


def line_spellings(text: str) -> list[bytes]:
    """How a text may be written in one line of a file."""
    found = {text, json.dumps(text, ensure_ascii=False)[1:-1], json.dumps(text)[1:-1], text.replace("'", "''")}
    return [spelling.encode("utf-8", "surrogatepass") for spelling in found]


class Quotations:
    """The words of one purge, as files may contain them. `unread` lists the files that could not be read."""

    def __init__(self, said: Sequence[str]) -> None:
        self.said = said
        self.needles = sorted({needle for text in said for needle in spellings(text)}, key=len, reverse=True)
        self.unread: list[str] = []

    def in_bytes(self, data: bytes) -> bool:
        """Whether bytes contain any of the words."""
        return any(needle in data for needle in self.needles)

    def in_file(self, path: Path) -> bool:
        """Whether a file contains any of the words; an unreadable file is reported and counts as False."""
        overlap = max((len(needle) for needle in self.needles), default=1)
        tail = b""
        try:
            with reading(path) as file:
                while chunk := file.read(CHUNK_BYTES):
                    block = tail + chunk
                    if self.in_bytes(block):
                        return True
                    tail = block[-overlap:]
        except OSError as error:
            self.note(path, error)
        return False

    def note(self, path: Path, error: Exception) -> None:
        """Report a file that could not be read or parsed."""
        why = (error.strerror if isinstance(error, OSError) else "".join(str(error).splitlines()[:1])) or "damaged"
        line = (
            f"{path}: cannot be read ({why.removeprefix(str(path)).lstrip(': ')}), so it may still contain the words; "
            "repair it, restore it from a backup or remove it"
        )
        if line not in self.unread:
            self.unread.append(line)

    def blank_bytes(self, data: bytes) -> bytes:
        """Unparsable bytes without the words."""
        for needle in self.needles:
            data = data.replace(needle, PURGED_TEXT.encode())
        return data

    def blank(self, path: Path, problem: Exception) -> None:
        """Remove the words from a file without records; the rest stays.

        It is reported unless it is plain text, in which the words are found reliably.
        """
        before = self._content(path)
        if before is None:
            return
        after = self.blank_bytes(before)
        if not after.replace(PURGED_TEXT.encode(), b"").strip():
            path.unlink()
            return
        if after != before:
            replace_file(path, after)
        if is_memory_file(path.name) or not _is_text(before):
            self.note(path, ValueError(self.blank_bytes(str(problem).encode()).decode()))

    def _content(self, path: Path) -> bytes | None:
        """A file's content; None, and reported, if it cannot be read."""
        try:
            with reading(path) as file:
                return file.read()
        except FileNotFoundError:
            return None
        except OSError as error:
            self.note(path, error)
            return None

    def reword(self, path: Path, spared: Callable[[Mapping[str, Any]], bool], *, lines: bool) -> None:
        """Remove the words from a JSON file, one object or one per line, except from objects that are `spared`."""
        before = self._content(path)
        if before is None:
            return
        pieces = before.splitlines(keepends=True) if lines else [before]
        after = b"".join(self._piece(path, piece, spared) for piece in pieces)
        if after != before:
            replace_file(path, after)

    def _piece(self, path: Path, piece: bytes, spared: Callable[[Mapping[str, Any]], bool]) -> bytes:
        if not piece.strip():
            return piece
        try:
            fields = json.loads(piece)
            if not isinstance(fields, dict):
                raise ValueError("not a JSON object")
        except (ValueError, RecursionError) as error:
            self.note(path, error)
            return self.blank_bytes(piece)
        if not self.in_bytes(piece) or spared(fields):
            return piece
        changed = map_strings(fields, lambda text: remove_texts(text, self.said))
        return piece if changed == fields else json_line(changed, "replace")


def _is_text(data: bytes) -> bool:
    try:
        return "\0" not in data.decode()
    except UnicodeDecodeError:
        return False


def files_below(folder: Path, report: Callable[[Path, Exception], None]) -> Iterator[Path]:
    """Every plain file below a folder; links are ignored."""

    def report_error(error: OSError) -> None:
        if not isinstance(error, FileNotFoundError):
            report(Path(str(error.filename)), error)

    for place, folders, names in os.walk(folder, onerror=report_error):
        folders.sort()
        for name in sorted(names):
            path = Path(place, name)
            if path.is_file() and not path.is_symlink():
                yield path


Records = Iterator[tuple[QuotingRecord, Iterable[str]]]


def find_leftovers(context: IndexContext, plan: PurgePlan, quotes: Quotations) -> tuple[str, ...]:
    """Records and files that still contain any of the texts, unreadable files, and an index that is in use.

    A file that contains some of the words is parsed: a record that contains a whole text is listed, one that shares a
    line or a word with it is not.
    """
    holders: list[QuotingRecord] = []
    places: list[str] = []
    accounted: set[str] = set()
    gone = {*plan.ids, *plan.events}
    for path in files_below(context.home.root, quotes.note) if quotes.needles else ():
        if path.name == MARKER_FILE or not quotes.in_file(path):
            continue
        try:
            for holder, texts in _scan_records(context, path):
                words = list(texts)
                found = {text for text in quotes.said if any(text in one for one in words)}
                accounted |= found
                if not any(contains_words(one, text) for text in found for one in words):
                    continue
                if holder.id in gone:  # A copy of a destroyed record, not found by its id.
                    places.append(f"{path}: contains a copy of {holder.id}; remove the file")
                else:
                    holders.append(holder)
        except (EngramError, *UNREADABLE):
            places.append(str(path))
    places += _in_index(context, [text for text in quotes.said if text not in accounted])
    return tuple(dict.fromkeys([*quoting_lines(holders, plan.scopes), *places, *quotes.unread]))


def _scan_records(context: IndexContext, path: Path) -> Records:
    """The records of a file, each with all its texts."""
    folder = path.parent
    if folder == context.home.journal:
        return _scan_lines(path, _journal_records)
    if folder == context.home.ledger:
        return _scan_lines(path, lambda fields: _event_record(context, fields))
    if folder in (context.home.tasks, context.home.state / "jobs"):
        return _scan_lines(path, lambda fields: _state_record(context, fields))
    if folder == named_states.states_folder(context.home):
        return _scan_lines(
            path, lambda fields: iter([(QuotingRecord(f"state {fields['name']}", ""), strings_in(fields))])
        )
    if folder == context.home.state / "sessions":
        return _state_record(context, json.loads(read_bytes(path)))
    if any(root in path.parents for root in memory_roots(context)) and memories.is_memory_file(path.name):
        return ((QuotingRecord(m.id, m.scope), strings_in(image(m))) for m in memories.read(path))
    raise ValueError("not a file of records")


def _scan_lines(path: Path, parse: Callable[[Any], Records]) -> Records:
    """The records of a file's lines; unreadable lines were reported when they were cleaned."""
    with reading(path) as file:
        for line in file:
            with contextlib.suppress(*MALFORMED):
                yield from parse(json.loads(line))


def _journal_records(fields: Mapping[str, Any]) -> Records:
    """Each memory of a decision, and the decision itself, whose reason or actor may quote."""
    scope = ""
    for change in fields["changes"]:
        if change["after"] is not None:
            scope = str(change["after"].get("scope", ""))
            yield QuotingRecord(str(change["id"]), scope), strings_in(change["after"])
    texts = [str(fields.get(name, "")) for name in ("reason", "actor", "session")]
    yield QuotingRecord(f"decision {fields['seq']} of the journal", scope), texts


def _event_record(context: IndexContext, fields: Mapping[str, Any]) -> Records:
    yield QuotingRecord(str(fields["id"]), scope_of(context, str(fields["id"]))), strings_in(fields)


def _state_record(context: LogContext, fields: Mapping[str, Any]) -> Records:
    yield QuotingRecord(str(fields["id"]), owner_of(context, fields)), strings_in(fields)


def _in_index(context: IndexContext, texts: Iterable[str]) -> list[str]:
    """The index files, if they contain texts that no record has."""
    needles = [needle for text in texts for needle in line_spellings(text)]
    found = []
    # Through SQLite: opening and closing its file by other means would drop the locks of this process on it.
    database = context.index.db.serialize() if needles else b""
    if any(needle in database for needle in needles):
        found.append(str(context.home.index / "index.db"))
    log = context.home.index / "index.db-wal"
    if log.exists() and log.stat().st_size:
        found.append(str(log))
    return found
