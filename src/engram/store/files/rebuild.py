"""Making the index anew from journal, files and ledger, in one transaction: readers see the old one until it is whole."""

import contextlib
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engram.dialects.yaml_writer import emit_list
from engram.model.errors import EngramError, StoreCorrupt, StoreReadOnly
from engram.model.memory import Memory
from engram.store.documents import event_document, memory_document
from engram.store.files import file_sync, memories
from engram.store.files.context import StoreContext, index_entry, index_event, note_file, note_ledger, note_place
from engram.store.files.index.writer import DocumentWriter, IndexRow
from engram.store.files.journal import JournalLine as PlacedEntry
from engram.store.files.journal import Position, to_json, whole_lines
from engram.store.files.memories import UNSEEN, Stamp, stamp_of
from engram.store.files.power_loss import Leftovers, look_after_restart
from engram.store.files.recovery import redo_file
from engram.store.files.sessions import session_scope
from engram.store.protocol import Progress, SyncReport
from engram.store.records import from_image, image
from engram.store.scopes import trusted_by_folder

BATCH = 512
KEPT_BYTES = 64 * 1024 * 1024
"""Of images kept while the files are read. A file that says what its image says, byte for byte, need not be parsed."""


@dataclass(slots=True)
class _Last:
    """Where a memory's last image lies, its digest, its file, and where the image before it lies."""

    start: Position
    digest: bytes
    file: str
    before: Position | None = None
    text: bytes = b""
    """The image itself as JSON, for as many as may be kept; it stands in for the digest."""

    def says(self, mapping: Mapping[str, Any]) -> bool:
        """Whether the image is this one."""
        return (self.digest or _digest(json.loads(self.text))) == _digest(mapping)


@dataclass(slots=True)
class _Read:
    """A memory of a file, and how the file looked before it was read."""

    memory: Memory
    stored: str
    stamp: Stamp
    record: str


def rebuild(parts: StoreContext, progress: Progress = lambda *_: None) -> SyncReport:
    """Fill the index from scratch, then pick up what differs from the journal as hand edits."""
    with contextlib.suppress(PermissionError):
        parts.warnings += [*parts.journal.mend(), *parts.ledger.mend()]
    look_after_restart(parts)
    noticed = SyncReport()
    with parts.index.writing() as writer:
        differing = _fill(parts, writer, progress, noticed, alone=True)
    parts.index.drop_stale_matrices()
    try:
        file_sync.pick_up(parts, differing, noticed)
    except StoreReadOnly:
        with parts.index.writing():
            parts.index.db.execute("DELETE FROM folders")
        raise
    return noticed


def read_in(parts: StoreContext, *, provisionally: bool = False) -> SyncReport:
    """Fill an empty index without the lock: nothing in the home is changed, and what was changed by hand waits.

    Where others may be writing it is provisional: it claims to have read no journal, so the next writer makes it anew.
    """
    noticed = SyncReport()
    with parts.index.writing() as writer:
        if parts.index.get("filled") is not None:
            return noticed
        if _fill(parts, writer, lambda *_: None, noticed, alone=False):
            noticed.problems.append("some files changed by hand were not taken in yet")
            parts.index.db.execute("DELETE FROM folders")
        if provisionally:
            parts.index.set("journal", json.dumps(["", 0, 0]))
    return noticed


def _fill(
    parts: StoreContext, writer: DocumentWriter, progress: Progress, noticed: SyncReport, *, alone: bool
) -> list[str]:
    """Everything there is, inside a transaction; returns the files that do not say what the journal says.

    `alone` with the lock, files that a crash left out are written.
    """
    parts.index.clear()
    writer.start_generation(parts.index.generation)
    last, final = _read_journal(parts)
    if alone:
        _finish_last(parts, last, final)
    differing = _read_files(parts, writer, last, progress, noticed)
    _add_without_file(parts, writer, last, noticed, alone=alone)
    _add_events(parts, writer, progress)
    parts.index.set("filled", 1)
    return differing


def _read_journal(parts: StoreContext) -> tuple[dict[str, _Last], PlacedEntry | None]:
    """Each memory's last image, and the very last decision: only that one can be missing from the files."""
    last: dict[str, _Last] = {}
    final = None
    room = KEPT_BYTES
    for placed in parts.journal.read():
        index_entry(parts, placed)
        final = placed
        for change in placed.entry.changes:
            before = last.pop(change.id, None)
            if change.after is not None:
                previous = before.start if before else None
                text = to_json(change.after).encode("utf-8", "surrogatepass") if room > 0 else b""
                room -= len(text) - (len(before.text) if before else 0)
                digest = b"" if text else _digest(change.after)
                last[change.id] = _Last(placed.start, digest, change.file, previous, text)
    return last, final


def _finish_last(parts: StoreContext, last: dict[str, _Last], final: PlacedEntry | None) -> None:
    if final is None or final.entry.op == file_sync.EDIT:
        return
    leftovers = Leftovers(parts.home)
    with contextlib.suppress(StoreReadOnly):
        for change in final.entry.changes:
            if file_sync.is_team(change.file):
                continue  # a journal read from its beginning may be anyone's: it makes no files in a repository
            known = last.get(change.id)
            older = [_mapping_at(parts, change.id, known.before)] if known and known.before else []
            redo_file(parts, change, older, leftovers)


def _digest(mapping: Any) -> bytes:
    text = json.dumps(mapping, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _read_files(
    parts: StoreContext,
    writer: DocumentWriter,
    last: dict[str, _Last],
    progress: Progress,
    noticed: SyncReport,
) -> list[str]:
    """Index every file that says what the journal says; return the others, to be read as hand edits afterwards."""
    differing: list[str] = []
    batch: list[_Read] = []
    done, total = 0, len(last)
    ids = {known.file: memory_id for memory_id, known in last.items()}
    for path in _memory_files(parts, noticed):
        done += 1
        stored = parts.stored(path)
        held_back = file_sync.is_team(stored) and not file_sync.is_trusted(parts, stored)
        agreed = None if held_back else _agreed(path, stored, ids.get(stored, ""), last)
        if agreed is None:
            differing.append(stored)
            continue
        batch += agreed
        if len(batch) >= BATCH:
            _index_batch(parts, writer, batch, last)
            batch = []
            progress("memories", done, max(total, done))
    _index_batch(parts, writer, batch, last)
    progress("memories", done, done)
    return differing


def _memory_files(parts: StoreContext, noticed: SyncReport) -> Iterator[Path]:
    for root in file_sync.roots(parts):
        for folder in memories.walk(root):
            file_sync.note_folders(parts, [folder])
            try:
                found = sorted(folder.iterdir())
            except FileNotFoundError:
                continue
            except OSError as error:
                place = file_sync.team_of(parts, parts.stored(folder)) or folder
                noticed.problems.append(f"{place}: cannot be listed: {error.strerror}")
                continue
            for path in found:
                if memories.is_memory_file(path.name):
                    yield path
                elif root == parts.home.engrams and memories.is_conflicted_copy(path.name):
                    noticed.problems.append(f"{path}: a conflicted copy; merge it by hand and remove it")


def _agreed(path: Path, stored: str, memory_id: str, last: dict[str, _Last]) -> list[_Read] | None:
    """The memories of a file if the journal knows each of them exactly so."""
    stamp = stamp_of(path)
    try:
        data = memories.content(path)
        written = _as_written(data, last.get(memory_id))
        found = [written] if written else [(memory, image(memory)) for memory in memories.parse(data, path)]
    except (EngramError, OSError):
        return None
    for memory, mapping in found if written is None else ():
        known = last.get(memory.id)
        if known is None or known.file != stored or not known.says(mapping):
            return None
    if stamp is None or len({memory.id for memory, _ in found}) < len(found):
        return None
    return [_Read(memory, stored, stamp, to_json(mapping)) for memory, mapping in found] or None


def _as_written(data: bytes, known: _Last | None) -> tuple[Memory, Mapping[str, Any]] | None:
    """The memory of a file that is, byte for byte, what Engram wrote for its last image."""
    if known is None or not known.text:
        return None
    mapping = json.loads(known.text)
    return (from_image(mapping), mapping) if emit_list((mapping,)).encode("utf-8") == data else None


def _mapping_at(parts: StoreContext, memory_id: str, position: Position) -> Mapping[str, Any]:
    entry = parts.journal.at(position)
    return next(change.after for change in entry.changes if change.id == memory_id and change.after is not None)


def _image_of(parts: StoreContext, memory_id: str, last: _Last) -> Memory:
    return from_image(_mapping_at(parts, memory_id, last.start))


def _index_batch(parts: StoreContext, writer: DocumentWriter, batch: Sequence[_Read], last: dict[str, _Last]) -> None:
    if not batch:
        return
    documents = [memory_document(read.memory) for read in batch]
    vectors = parts.embed([document.meaning for document in documents])
    writer.look_up([read.memory.id for read in batch])
    for i, (read, document) in enumerate(zip(batch, documents, strict=True)):
        put = writer.put(IndexRow(document, read.record, vectors[i] if vectors is not None else None))
        writer.put_memory_relations(read.memory, fresh=put.fresh)
        last.pop(read.memory.id, None)
    run_many, stamps = parts.index.db.executemany, {read.stored: read.stamp for read in batch}
    run_many(parts.index.statement("put_place"), [(read.memory.id, read.stored) for read in batch])
    run_many(
        parts.index.statement("put_file"),
        [(stored, stamp.mtime_ns, stamp.size, stamp.inode, "") for stored, stamp in stamps.items()],
    )
    parts.index.flush(writer)


def _add_without_file(
    parts: StoreContext, writer: DocumentWriter, last: dict[str, _Last], noticed: SyncReport, *, alone: bool
) -> None:
    """Memories the journal knows and no file holds: removed by hand earlier, or their file is missing now."""
    for memory_id, known in last.items():
        if file_sync.is_team(known.file) and not _stands_trusted(parts, known.file):
            continue
        try:
            memory = _image_of(parts, memory_id, known)
        except EngramError as error:
            noticed.problems.append(f"{parts.home.journal}: {memory_id}: {error}")
            continue
        if alone:
            _restore_file(parts, memory, known.file)
        document = memory_document(memory)
        vectors = parts.embed([document.meaning])
        put = writer.put(IndexRow(document, image(memory), vectors[0] if vectors is not None else None))
        writer.put_memory_relations(memory, fresh=put.fresh)
        note_place(parts, memory_id, known.file)


def _stands_trusted(parts: StoreContext, stored: str) -> bool:
    """Whether a team's file is there and trusted, its team store in use or not: what the journal says of it counts then."""
    folder = next((f for f in trusted_by_folder(parts.home.state) if stored.startswith(f + "/")), "")
    return bool(folder) and file_sync.is_trusted(parts, stored, folder)


def _restore_file(parts: StoreContext, memory: Memory, stored: str) -> None:
    """A team's file that is gone was taken away by git; the store's own is written again."""
    if stored and not file_sync.is_team(stored) and not parts.path(stored).exists():
        with contextlib.suppress(StoreReadOnly):
            note_file(parts, stored, memories.write(parts.confined(stored), memory, None) or UNSEEN)


def _add_events(parts: StoreContext, writer: DocumentWriter, progress: Progress) -> None:
    sizes = parts.ledger.sizes()
    for done, (name, size) in enumerate(sorted(sizes.items()), 1):
        events, broken = parts.ledger.readable(name)
        if broken and broken not in parts.warnings:
            parts.warnings.append(broken)
        try:
            scope = session_scope(parts.home, events[0].session) if events else ""
        except StoreCorrupt as error:
            # Whose it is cannot be told: it waits until its task can be read.
            parts.warnings += [str(error)] if str(error) not in parts.warnings else []
            continue
        documents = [event_document(event, scope) for event in events]
        vectors = parts.embed([document.meaning for document in documents])
        for i, (event, document) in enumerate(zip(events, documents, strict=True)):
            index_event(parts, writer, event, document, vectors[i] if vectors is not None else None)
        # A line that is being written, should somebody be, is read when it is whole.
        note_ledger(parts, name, min(size, whole_lines(parts.home.ledger / name)[1]) if not broken else size)
        progress("sessions", done, len(sizes))
