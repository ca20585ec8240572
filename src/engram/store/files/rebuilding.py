"""Making the index anew from journal, files and ledger, in one transaction: readers see the old one until it is whole."""

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engram.model.errors import EngramError
from engram.model.memory import Memory
from engram.store.documents import event_document, memory_document
from engram.store.files import following, memories
from engram.store.files.index.writing import DocumentWriter, Row
from engram.store.files.journal import Position
from engram.store.files.ledger import to_fields
from engram.store.files.memories import stamp_of
from engram.store.files.parts import Parts, image, index_entry, note_file, note_place
from engram.store.files.sessions import session_scope
from engram.store.protocol import Noticed, Progress

BATCH = 512


@dataclass(slots=True)
class _Last:
    """Where a memory's last image lies, its digest, and whether it should have a file."""

    start: Position
    digest: bytes
    file: str
    before: bytes = b""


def rebuild(parts: Parts, progress: Progress = lambda *_: None) -> Noticed:
    """Fill the index from scratch, then pick up what differs from the journal as hand edits."""
    parts.warnings += parts.journal.mend()
    parts.warnings += parts.ledger.mend()
    noticed = Noticed()
    with parts.index.writing() as writer:
        parts.index.clear()
        writer.start_generation(parts.index.generation)
        last, final = _read_journal(parts)
        differing = _read_files(parts, writer, last, final, progress, noticed)
        _add_without_file(parts, writer, last)
        _add_events(parts, writer, progress)
        parts.index.set("filled", 1)
    parts.index.drop_stale_matrices()
    following.pick_up(parts, differing, noticed)
    return noticed


def _read_journal(parts: Parts) -> tuple[dict[str, _Last], frozenset[str]]:
    """Each memory's last image, and the ids of the very last decision: only that one can be missing from the files."""
    last: dict[str, _Last] = {}
    final: frozenset[str] = frozenset()
    for placed in parts.journal.read():
        index_entry(parts, placed)
        final = frozenset(change.id for change in placed.entry.changes)
        for change in placed.entry.changes:
            before = last.pop(change.id, None)
            if change.after is not None:
                previous = before.digest if before else b""
                last[change.id] = _Last(placed.start, _digest(change.after), change.file, previous)
    return last, final


def _digest(mapping: Any) -> bytes:
    text = json.dumps(mapping, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _read_files(
    parts: Parts,
    writer: DocumentWriter,
    last: dict[str, _Last],
    final: frozenset[str],
    progress: Progress,
    noticed: Noticed,
) -> list[str]:
    """Index every file that says what the journal says; return the others, to be read as hand edits afterwards."""
    differing: list[str] = []
    batch: list[tuple[Memory, str]] = []
    done, total = 0, len(last)
    for path in _memory_files(parts, noticed):
        done += 1
        stored = parts.stored(path)
        agreed = _agreed(parts, path, stored, last, final)
        if agreed is None:
            differing.append(stored)
            continue
        batch += [(memory, stored) for memory in agreed]
        if len(batch) >= BATCH:
            _index_batch(parts, writer, batch, last)
            batch = []
            progress("memories", done, max(total, done))
    _index_batch(parts, writer, batch, last)
    progress("memories", done, done)
    return differing


def _memory_files(parts: Parts, noticed: Noticed) -> Iterator[Path]:
    for root in following.roots(parts):
        for folder in memories.walk(root):
            following.note_folders(parts, [folder])
            if not folder.is_dir():
                continue
            for path in sorted(folder.iterdir()):
                if memories.is_memory_file(path.name):
                    yield path
                elif memories.is_conflicted_copy(path.name):
                    noticed.problems.append(f"{path}: a conflicted copy; merge it by hand and remove it")


def _agreed(
    parts: Parts, path: Path, stored: str, last: dict[str, _Last], final: frozenset[str]
) -> list[Memory] | None:
    """The memories of a file if the journal knows each of them exactly so; the last decision is completed on the way."""
    try:
        found = memories.read(path)
    except (EngramError, OSError):
        found = []
    unfinished = [m for m in found if m.id in final and m.id in last and _digest(image(m)) == last[m.id].before]
    if unfinished or (not found and path.stem in final and path.stem in last):
        memory = _image_of(parts, path.stem, last[path.stem])
        memories.write(path, memory, stamp_of(path))
        found = [memory]
    for memory in found:
        known = last.get(memory.id)
        if known is None or known.file != stored or known.digest != _digest(image(memory)):
            return None
    return found or None


def _image_of(parts: Parts, memory_id: str, last: _Last) -> Memory:
    entry = parts.journal.at(last.start)
    mapping = next(change.after for change in entry.changes if change.id == memory_id)
    assert mapping is not None
    return memories.from_image(mapping)


def _index_batch(
    parts: Parts, writer: DocumentWriter, batch: Sequence[tuple[Memory, str]], last: dict[str, _Last]
) -> None:
    if not batch:
        return
    documents = [memory_document(memory) for memory, _ in batch]
    vectors = parts.embed([document.meaning for document in documents])
    for i, ((memory, stored), document) in enumerate(zip(batch, documents, strict=True)):
        put = writer.put(Row(document, image(memory), vectors[i] if vectors is not None else None))
        writer.put_memory_relations(memory, fresh=put.fresh)
        note_place(parts, memory.id, stored)
        note_file(parts, stored, stamp_of(parts.path(stored)))
        last.pop(memory.id, None)
    parts.index.flush(writer)


def _add_without_file(parts: Parts, writer: DocumentWriter, last: dict[str, _Last]) -> None:
    """Memories the journal knows and no file holds: removed by hand earlier, or their file is missing now."""
    for memory_id, known in last.items():
        memory = _image_of(parts, memory_id, known)
        stored = known.file
        if stored and not parts.path(stored).exists() and not following.team_of(parts, stored):
            memories.write(parts.path(stored), memory, None)
        document = memory_document(memory)
        vectors = parts.embed([document.meaning])
        put = writer.put(Row(document, image(memory), vectors[0] if vectors is not None else None))
        writer.put_memory_relations(memory, fresh=put.fresh)
        note_place(parts, memory_id, stored)


def _add_events(parts: Parts, writer: DocumentWriter, progress: Progress) -> None:
    sizes = parts.ledger.sizes()
    for done, (name, size) in enumerate(sorted(sizes.items()), 1):
        events = list(parts.ledger.read(name))
        scope = session_scope(parts.home, events[0].session) if events else ""
        documents = [event_document(event, scope) for event in events]
        vectors = parts.embed([document.meaning for document in documents])
        for i, (event, document) in enumerate(zip(events, documents, strict=True)):
            writer.put(Row(document, to_fields(event), vectors[i] if vectors is not None else None))
            if event.key:
                parts.index.db.execute(
                    "INSERT OR IGNORE INTO keys (session, key, id) VALUES (?, ?, ?)",
                    (event.session, event.key, event.id),
                )
        parts.index.db.execute("INSERT OR REPLACE INTO ledgers (name, size) VALUES (?, ?)", (name, size))
        progress("sessions", done, len(sizes))
