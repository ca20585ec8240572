"""Rebuilding the index from journal, files and ledgers in one transaction: readers see the old one until it is complete."""

import contextlib
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from engram.dialects.yaml_writer import emit_list
from engram.disk import to_json, whole_lines
from engram.model.errors import EngramError, StoreReadOnly
from engram.model.lazy import dataclass
from engram.model.memory import Memory
from engram.store.documents import memory_document
from engram.store.files import file_sync, memories
from engram.store.files.context import StoreContext, index_entry, note_file, note_place
from engram.store.files.index.writer import DocumentWriter, IndexRow
from engram.store.files.journal import JournalLine, Position
from engram.store.files.memories import UNSEEN, Stamp, stamp_of
from engram.store.files.power_loss import Leftovers, repair_after_restart
from engram.store.files.recovery import index_ledger, redo_file
from engram.store.protocol import Progress, SyncReport
from engram.store.records import from_image, image
from engram.store.scopes import trusted_by_folder

BATCH = 512
KEPT_BYTES = 64 * 1024 * 1024
"""Images kept in memory while the files are read. A file that equals its rendered image need not be parsed."""


@dataclass(slots=True)
class _LastImage:
    """A memory's last image: its position in the journal, digest and file, and the position of the one before."""

    start: Position
    digest: bytes
    file: str
    before: Position | None = None
    text: bytes = b""
    """The image itself as JSON, while there is room; it replaces the digest."""

    def equals(self, mapping: Mapping[str, Any]) -> bool:
        """Whether the image is this one."""
        return (self.digest or _digest(json.loads(self.text))) == _digest(mapping)


@dataclass(slots=True)
class _MemoryOfFile:
    """A memory of a file, and the file's stamp before it was read."""

    memory: Memory
    stored: str
    stamp: Stamp
    record: str


def rebuild(parts: StoreContext, progress: Progress = lambda *_: None) -> SyncReport:
    """Fill the index from scratch, then read files that differ from the journal as hand edits."""
    with contextlib.suppress(PermissionError):
        parts.warnings += [*parts.journal.quarantine_torn(), *parts.ledger.quarantine_torn()]
    repair_after_restart(parts)
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
    """Fill an empty index without the lock: nothing in the home is changed, and hand edits are left for later.

    If others may be writing it is provisional: it claims to have read no journal, so the next writer rebuilds it.
    """
    noticed = SyncReport()
    with parts.index.writing() as writer:
        if parts.index.get("filled") is not None:
            return noticed
        if _fill(parts, writer, lambda *_: None, noticed, alone=False):
            noticed.problems.append("some hand edits are not searchable yet")
            parts.index.db.execute("DELETE FROM folders")
        if provisionally:
            parts.index.set("journal", json.dumps(["", 0, 0]))
    return noticed


def _fill(
    parts: StoreContext, writer: DocumentWriter, progress: Progress, noticed: SyncReport, *, alone: bool
) -> list[str]:
    """Index everything, inside a transaction; returns the files that differ from the journal.

    With `alone` (under the lock), files that a crash left out are written.
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


def _read_journal(parts: StoreContext) -> tuple[dict[str, _LastImage], JournalLine | None]:
    """Each memory's last image, and the last decision: only that one can be missing from the files."""
    last: dict[str, _LastImage] = {}
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
                last[change.id] = _LastImage(placed.start, digest, change.file, previous, text)
    return last, final


def _finish_last(parts: StoreContext, last: dict[str, _LastImage], final: JournalLine | None) -> None:
    if final is None or final.entry.op == file_sync.EDIT:
        return
    leftovers = Leftovers(parts.home)
    with contextlib.suppress(StoreReadOnly):
        for change in final.entry.changes:
            if file_sync.is_team(change.file):
                continue  # this journal may be anyone's: it must not create files in a repository
            known = last.get(change.id)
            older = [_mapping_at(parts, change.id, known.before)] if known and known.before else []
            redo_file(parts, change, older, leftovers)


def _digest(mapping: Any) -> bytes:
    text = json.dumps(mapping, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _read_files(
    parts: StoreContext,
    writer: DocumentWriter,
    last: dict[str, _LastImage],
    progress: Progress,
    noticed: SyncReport,
) -> list[str]:
    """Index every file that agrees with the journal; returns the others, to be read as hand edits."""
    differing: list[str] = []
    batch: list[_MemoryOfFile] = []
    done, total = 0, len(last)
    ids = {known.file: memory_id for memory_id, known in last.items()}
    for path in _memory_files(parts, noticed):
        done += 1
        stored = parts.stored(path)
        untrusted = file_sync.is_team(stored) and not file_sync.is_trusted(parts, stored)
        agreed = None if untrusted else _agreed(path, stored, ids.get(stored, ""), last)
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


def _agreed(path: Path, stored: str, memory_id: str, last: dict[str, _LastImage]) -> list[_MemoryOfFile] | None:
    """The memories of a file if each equals its image in the journal; None otherwise."""
    stamp = stamp_of(path)
    try:
        data = memories.content(path)
        written = _as_written(data, last.get(memory_id))
        found = [written] if written else [(memory, image(memory)) for memory in memories.parse(data, path)]
    except (EngramError, OSError):
        return None
    for memory, mapping in found if written is None else ():
        known = last.get(memory.id)
        if known is None or known.file != stored or not known.equals(mapping):
            return None
    if stamp is None or len({memory.id for memory, _ in found}) < len(found):
        return None
    return [_MemoryOfFile(memory, stored, stamp, to_json(mapping)) for memory, mapping in found] or None


def _as_written(data: bytes, known: _LastImage | None) -> tuple[Memory, Mapping[str, Any]] | None:
    """The memory of a file that equals, byte for byte, what Engram wrote for its last image."""
    if known is None or not known.text:
        return None
    mapping = json.loads(known.text)
    return (from_image(mapping), mapping) if emit_list((mapping,)).encode("utf-8") == data else None


def _mapping_at(parts: StoreContext, memory_id: str, position: Position) -> Mapping[str, Any]:
    entry = parts.journal.at(position)
    return next(change.after for change in entry.changes if change.id == memory_id and change.after is not None)


def _image_of(parts: StoreContext, memory_id: str, last: _LastImage) -> Memory:
    return from_image(_mapping_at(parts, memory_id, last.start))


def _index_batch(
    parts: StoreContext, writer: DocumentWriter, batch: Sequence[_MemoryOfFile], last: dict[str, _LastImage]
) -> None:
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
    parts: StoreContext, writer: DocumentWriter, last: dict[str, _LastImage], noticed: SyncReport, *, alone: bool
) -> None:
    """Index memories that are in the journal and in no file: removed by hand, or their file is missing."""
    for memory_id, known in last.items():
        if file_sync.is_team(known.file) and not _is_trusted_team_file(parts, known.file):
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


def _is_trusted_team_file(parts: StoreContext, stored: str) -> bool:
    """Whether a team file exists and is trusted, attached or not, so that its journal entry counts."""
    folder = next((f for f in trusted_by_folder(parts.home.state) if stored.startswith(f + "/")), "")
    return bool(folder) and file_sync.is_trusted(parts, stored, folder)


def _restore_file(parts: StoreContext, memory: Memory, stored: str) -> None:
    """Write a missing file of the store's own again; a missing team file was removed by git."""
    if stored and not file_sync.is_team(stored) and not parts.path(stored).exists():
        with contextlib.suppress(StoreReadOnly):
            note_file(parts, stored, memories.write(parts.confined(stored), memory, None) or UNSEEN)


def _add_events(parts: StoreContext, writer: DocumentWriter, progress: Progress) -> None:
    sizes = parts.ledger.sizes()
    for done, (name, size) in enumerate(sorted(sizes.items()), 1):
        # A line that another process is still writing is read once it is complete.
        index_ledger(parts, writer, name, 0, min(size, _complete(parts, name, size)), most=None)
        progress("sessions", done, len(sizes))


def _complete(parts: StoreContext, name: str, size: int) -> int:
    try:
        return whole_lines(parts.home.ledger / name)[1]
    except OSError:
        return size
