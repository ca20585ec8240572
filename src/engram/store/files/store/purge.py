"""Destroys memories and events, every byte of them in the store, with proof. The caller holds the writer lock.

Everything is read first (`purge_plan`). Then one transaction removes it from the index and a marker starts the purge:
from then on no reader sees it, and the next writer finishes an interrupted purge. A damaged file does not stop the
purge; it is cleaned as bytes and listed in `remaining`.
"""

import contextlib
import json
import re
import shutil
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from engram.disk import MALFORMED, json_line, read_bytes, reading, replace_file
from engram.model.errors import EngramError
from engram.store.documents import event_document
from engram.store.files import memories
from engram.store.files.lock import remaining_leftovers, remove_home_leftovers
from engram.store.files.log.journal import AfterImage
from engram.store.files.reconcile.folders import is_team, memory_roots, team_of
from engram.store.files.reconcile.index_state import (
    IndexContext,
    LogContext,
    append_entry,
    forget_memory,
    index_entry,
    note_file,
    note_ledger,
    place_of,
    reindex_journal,
)
from engram.store.files.reconcile.recovery import remove_stray
from engram.store.files.states import named as named_states
from engram.store.files.states.work import list_task_files as task_files
from engram.store.files.store.purge_plan import (
    MARKER_FILE,
    PurgePlan,
    Quotations,
    files_below,
    find_leftovers,
    has_unfinished_purge,
    owner_of,
    plan_purge,
    purge_stamp,
    read_marker,
    scope_of,
    write_marker,
)
from engram.store.files.store.writer import find_stored_event
from engram.store.ledger import LEDGER_OP, REDACT_OP, blank_event, redaction_text, to_fields
from engram.store.purge import remove_texts
from engram.store.reports import Purged
from engram.store.sqlite.writer import DocumentWriter

OUT_OF_REACH = ("git history of a team store", "backups and copies made earlier", "other machines")
_ID = re.compile(rb'"id": ?"((?:[^"\\]|\\.)*)"')
_OF_LEDGERS = tuple(f'"op":"{op}"'.encode() for op in (LEDGER_OP, REDACT_OP))
HIDDEN_PURGE_KEY = "hidden"
"""Key of the purge whose records are already out of the index, in its metadata."""


def purge(context: IndexContext, ids: Sequence[str], actor: str, drawn: Collection[str] = ()) -> Purged:
    """Remove memories and events from files, journal, ledgers, quarantine and index; leave tombstones; prove absence."""
    plan = plan_purge(context, ids, drawn, actor)
    joined = plan.merge(read_marker(context)) if has_unfinished_purge(context.home) else plan
    with context.index.writing() as writer:
        _take_out_of_index(context, writer, joined)
        write_marker(context.home, joined)
        context.index.set(HIDDEN_PURGE_KEY, purge_stamp(context.home))
    return _carry_out(context, joined)


def resume(context: IndexContext) -> None:
    """Finish an interrupted purge; for writers. Remaining records become a warning."""
    hide(context)
    left = _carry_out(context, read_marker(context)).remaining
    context.warn(*(f"an interrupted purge was finished, but not all is gone: {line}" for line in left))


def needs_hiding(context: IndexContext) -> bool:
    """Whether the index may still contain records of an interrupted purge."""
    return has_unfinished_purge(context.home) and context.index.get(HIDDEN_PURGE_KEY) != purge_stamp(context.home)


def hide(context: IndexContext) -> None:
    """Remove the records of an interrupted purge from the index only; for readers."""
    if needs_hiding(context):
        plan = read_marker(context)
        with context.index.writing() as writer:
            _take_out_of_index(context, writer, plan)
            context.index.set(HIDDEN_PURGE_KEY, purge_stamp(context.home))
        context.warn(
            "a purge was interrupted; repeat it, or run `engram doctor --repair`, to remove its words from the files"
        )


def _carry_out(context: IndexContext, plan: PurgePlan) -> Purged:
    quotes = Quotations(plan.said)
    _clean_sessions(context, plan, quotes)
    for path in task_files(context.home):
        quotes.reword(path, partial(_is_spared, context, plan), lines=True)
    _clean_quarantine(context, plan, quotes)
    _note_redactions(context, plan)
    _blank_ledgers(context, plan, quotes)
    _remove_files(context, plan, quotes)
    _clean_leftovers(context, plan, quotes)
    _blank_journal(context, plan, quotes)
    reindex_journal(context)
    _drop_other_indexes(context)
    _compact(context)
    (context.home.state / MARKER_FILE).unlink()
    remaining = (*find_leftovers(context, plan, quotes), *remaining_leftovers(context.home))
    return Purged(tuple(sorted({*plan.ids, *plan.events})), tuple(dict.fromkeys(remaining)), OUT_OF_REACH)


# -- the index


def _take_out_of_index(context: IndexContext, writer: DocumentWriter, plan: PurgePlan) -> None:
    """Remove the records from the index; inside a transaction."""
    run = context.index.db.execute
    for memory_id in plan.id_set - plan.events.keys():
        known = run("SELECT 1 FROM images WHERE id = ?", (memory_id,)).fetchone()
        forget_memory(context.index, context.home, writer, memory_id)
        run("DELETE FROM images WHERE id = ?", (memory_id,))
        if known:
            run("INSERT OR IGNORE INTO tombstones (id) VALUES (?)", (memory_id,))
    for event_id in plan.events:
        event, scope = find_stored_event(context, event_id), scope_of(context, event_id)
        if event is not None:
            # An empty event keeps its place in the chain and among the documents.
            empty = blank_event(event)
            writer.put(event_document(empty, scope), to_fields(empty))
        run("DELETE FROM keys WHERE id = ?", (event_id,))


def _drop_other_indexes(context: LogContext) -> None:
    """Delete indexes of other versions, and of this store at other places, because they also contain the words."""
    own = context.home.index
    store = re.compile(re.escape(context.home.store_id.rpartition("-")[0]) + r"-[0-9a-f]{8}\Z")
    for folder in own.parent.parent.iterdir():
        if store.match(folder.name) and folder != own.parent:
            shutil.rmtree(folder, ignore_errors=True)
    for folder in own.parent.iterdir():
        if folder != own:
            shutil.rmtree(folder, ignore_errors=True)


def _compact(context: IndexContext) -> None:
    """Rewrite the index: deleted words stay in FTS segments, free pages and the WAL until then."""
    database = context.index.db
    database.execute("INSERT INTO words (words) VALUES ('optimize')")
    database.execute("VACUUM")
    busy, *_ = database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    if busy:
        context.warnings.append(
            "another process is reading the index; run `engram purge` again, or `engram index --rebuild`"
        )


# -- small files that quote it


def _is_spared(context: LogContext, plan: PurgePlan, fields: Mapping[str, Any]) -> bool:
    return plan.is_other_owner(owner_of(context, fields))


def _clean_sessions(context: LogContext, plan: PurgePlan, quotes: Quotations) -> None:
    """Remove the words from sessions: a task or summary may quote them."""
    for path in files_below(context.home.state / "sessions", quotes.note):
        if path.suffix == ".json":
            quotes.reword(path, partial(_is_spared, context, plan), lines=False)
        elif quotes.in_file(path):
            path.unlink(missing_ok=True)


def _clean_quarantine(context: LogContext, plan: PurgePlan, quotes: Quotations) -> None:
    """Remove quarantined lines that contain the words or belong to one of the records."""
    marks = [record_id.encode() for record_id in (*plan.ids, *plan.events)]
    for path in files_below(context.home.quarantine, quotes.note):
        try:
            before = read_bytes(path)
        except OSError as error:
            quotes.note(path, error)
            continue
        lines = before.splitlines(keepends=True)
        kept = [line for line in lines if not (quotes.in_bytes(line) or any(mark in line for mark in marks))]
        # The first line is a header.
        if len(kept) < len(lines) and len(kept) <= 1:
            path.unlink()
        elif len(kept) < len(lines):
            replace_file(path, b"".join(kept))


# -- ledgers


def _note_redactions(context: IndexContext, plan: PurgePlan) -> None:
    """Journal the redactions first, because words that disappear without an entry would count as tampering."""
    for session in sorted(set(plan.events.values())):
        ids = [event_id for event_id, ledger in plan.events.items() if ledger == session]
        placed = append_entry(context, REDACT_OP, plan.actor, redaction_text(ids), (), session)
        with context.index.writing():
            index_entry(context.index, placed)


def _blank_ledgers(context: IndexContext, plan: PurgePlan, quotes: Quotations) -> None:
    """Blank the events, and remove the words from unreadable lines of any ledger."""
    ids = frozenset(plan.events)
    for name in context.ledger.sizes():
        path = context.home.ledger / name
        try:
            context.ledger.blank(name, ids, partial(_blank_damaged_line, path, quotes))
        except OSError as error:
            quotes.note(path, error)
    with context.index.writing():
        for session in set(plan.events.values()):
            name = context.ledger.path(session).name
            if (size := context.ledger.size(name)) is not None:
                note_ledger(context.index, name, size)


def _blank_damaged_line(path: Path, quotes: Quotations, line: bytes) -> bytes:
    quotes.note(path, ValueError("one of its lines is not an event"))
    return quotes.blank_bytes(line)


# -- memory files


def _remove_files(context: IndexContext, plan: PurgePlan, quotes: Quotations) -> None:
    for place in plan.files:
        if is_team(place) and not team_of(context, place):
            # A marker alone must not change a repository, because it may have come with someone else's store.
            left = f"{place}: not changed, because its team store is not attached; purge again from that repository"
            context.warnings.append(left)
            quotes.unread.append(left)
            continue
        try:
            path = context.safe_path(place)
        except EngramError:
            continue  # behind a link, so not part of the store
        understood = take_out(path, plan.id_set | _copies_in(context, place, path, quotes), quotes)
        with context.index.writing():
            # An unreadable file is read again, so that its current state is reported.
            current = memories.stamp_of(path)
            note_file(context.index, place, current if understood or current is None else memories.UNSEEN_STAMP)


def _copies_in(context: IndexContext, place: str, path: Path, quotes: Quotations) -> frozenset[str]:
    """The ids under which a file still has the words although another file has these memories, because a person changed an id."""
    try:
        found = memories.read(path)
    except EngramError:
        return frozenset()
    foreign = [memory for memory in found if place_of(context.index, memory.id) not in ("", place)]
    return frozenset(memory.id for memory in foreign if quotes.in_bytes(memories.render([memory])))


def take_out(path: Path, wanted: Collection[str], quotes: Quotations) -> bool:
    """Remove memories from a file; a file without other content is deleted.

    Returns False for a file that cannot be read as memories: it loses the words and keeps the rest.
    """
    try:
        found = memories.read(path)
    except EngramError as error:
        quotes.blank(path, error)
        return False
    kept = [memory for memory in found if memory.id not in wanted]
    if not kept:
        path.unlink(missing_ok=True)
    elif len(kept) < len(found):
        replace_file(path, memories.render(kept))
    return True


def _clean_leftovers(context: IndexContext, plan: PurgePlan, quotes: Quotations) -> None:
    """Clean the files that editors, sync tools and crashes left next to the memory files."""
    for root in memory_roots(context):
        for folder in memories.walk(root):
            for path in list(folder.iterdir()) if folder.is_dir() else []:
                plain = path.is_file() and not path.is_symlink()
                if plain and not memories.is_memory_file(path.name) and _is_affected(path, plan.id_set, quotes):
                    take_out(path, plan.id_set, quotes)
    for (stored,) in context.index.db.execute("SELECT path FROM files WHERE error <> ''").fetchall():
        with contextlib.suppress(EngramError):  # behind a link, so not part of the store
            path = context.safe_path(stored)
            if _is_affected(path, plan.id_set, quotes):
                take_out(path, plan.id_set, quotes)
    home = context.home
    # Their writers have the writer lock.
    for folder in (
        home.journal,
        home.ledger,
        home.tasks,
        home.state,
        home.state / "jobs",
        named_states.states_folder(home),
    ):
        remove_stray(folder)
    remove_home_leftovers(home)


def _is_affected(path: Path, wanted: frozenset[str], quotes: Quotations) -> bool:
    """Whether a file contains the words, or a version of one of the memories."""
    return quotes.in_file(path) or _contains_one(path, wanted)


def _contains_one(path: Path, wanted: frozenset[str]) -> bool:
    try:
        return any(memory.id in wanted for memory in memories.read(path))
    except (EngramError, OSError):
        return False


# -- the journal


def _blank_journal(context: IndexContext, plan: PurgePlan, quotes: Quotations) -> None:
    """Journal the purge, then remove the images from every entry; the entries stay for order and audit."""
    unread: list[str] = []
    imaged = {
        change.id
        for placed in context.journal.readable(unread)
        for change in placed.entry.changes
        if change.after is not None
    }
    quotes.unread += [problem for problem in unread if problem not in quotes.unread]
    ids = frozenset(_encode_id(i) for i in plan.ids)
    if named := sorted(i for i in plan.ids if i in imaged):
        placed = append_entry(context, "purge", plan.actor, "", [AfterImage(i, None) for i in named])
        with context.index.writing():
            index_entry(context.index, placed)
    for month in context.journal.months():
        path = context.journal.path(month)
        with reading(path) as file:
            before = file.readlines()
        after = [_blank_journal_line(line, ids, plan, quotes, damaged=bool(unread)) for line in before]
        if after != before:
            replace_file(path, b"".join(after))


def _blank_journal_line(
    line: bytes, ids: frozenset[bytes], plan: PurgePlan, quotes: Quotations, *, damaged: bool
) -> bytes:
    """A journal line without the purged images, and without their words in other reasons."""
    concerned = not ids.isdisjoint(_ID.findall(line))
    quoting = b'"reason":' in line and not any(op in line for op in _OF_LEDGERS) and quotes.in_bytes(line)
    if not (concerned or quoting or damaged):
        return line
    try:
        fields = json.loads(line)
        changes = list(fields["changes"])
    except MALFORMED:
        return quotes.blank_bytes(line)
    before = json.dumps(fields)
    if "reason" in fields and not all(map(plan.is_other_owner, _owners(changes))):
        fields["reason"] = remove_texts(str(fields["reason"]), quotes.said)
    if concerned:
        _take_away(fields, changes, ids)
    if json.dumps(fields) == before:
        return line
    return json_line(fields)


def _owners(changes: Sequence[dict[str, Any]]) -> set[str]:
    """The scopes of a decision's memories; "" if unknown."""
    return {str(change["after"].get("scope", "")) for change in changes if change["after"] is not None} or {""}


def _take_away(fields: dict[str, Any], changes: Sequence[dict[str, Any]], ids: frozenset[bytes]) -> None:
    """Remove images, files and the reason.

    If all its images are gone, only the actor's kind (`human`, `document`) stays.
    """
    gone = [change for change in changes if _encode_id(str(change["id"])) in ids]
    for change in gone:
        change["after"] = None
        change.pop("file", None)
    if gone:
        fields.pop("reason", None)
        if all(change["after"] is None for change in changes):
            fields["actor"] = str(fields.get("actor", "")).partition(":")[0]


def _encode_id(record_id: str) -> bytes:
    """An id as it is written in the journal."""
    return json.dumps(record_id, ensure_ascii=False)[1:-1].encode("utf-8", "surrogatepass")
