"""Destroying a memory or an event: every byte of it that the store holds, with proof. For the holder of the writer lock.

A marker with the ids is the commit point: a purge that a crash interrupted is carried to its end by the next writer. Whatever
is found by the words goes first and the journal, which knows the words, last, so that a second run knows them too.
"""

import json
import shutil
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from engram.model.errors import EngramError
from engram.model.event import Event
from engram.model.memory import Memory
from engram.store.documents import event_document
from engram.store.files import events, following, memories, tasks
from engram.store.files.home import DIRECTORY_MODE
from engram.store.files.index.writing import Row
from engram.store.files.journal import Change, replace_file
from engram.store.files.parts import Parts, append_entry, forget_memory, index_entry, note_ledger
from engram.store.files.recovery import remove_stray
from engram.store.files.reindexing import reindex_journal
from engram.store.files.sessions import session_scope
from engram.store.ledgers import blanked, to_fields
from engram.store.protocol import Purged
from engram.store.purged_words import BLANK, SHORTEST_NEEDLE, lines_of, said_elsewhere, texts_of, words_of
from engram.store.records import decode_record, from_image
from engram.store.witnesses import REDACTED, redaction_text

OUT_OF_REACH = ("git history of a team store", "backups and copies made earlier", "other machines")
_CHUNK = 1 << 20
MARKER = "purging.json"
"""A purge begun and not ended."""


def purge(parts: Parts, ids: Sequence[str], actor: str, drawn: Collection[str] = ()) -> Purged:
    """Remove memories and events from files, journal, ledger, quarantine and index; leave tombstones; prove absence."""
    marker = {"ids": sorted(set(ids)), "drawn": sorted(set(drawn)), "actor": actor}
    parts.home.state.mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)
    replace_file(parts.home.state / MARKER, json.dumps(marker).encode() + b"\n")
    return _carry_out(parts, frozenset(ids), frozenset(drawn), actor)


def unfinished(parts: Parts) -> bool:
    """Whether a purge was begun and not ended."""
    return (parts.home.state / MARKER).exists()


def resume(parts: Parts) -> None:
    """Carry an interrupted purge to its end."""
    marker = json.loads((parts.home.state / MARKER).read_bytes())
    _carry_out(parts, frozenset(marker["ids"]), frozenset(marker.get("drawn", ())), str(marker["actor"]))


def _carry_out(parts: Parts, wanted: frozenset[str], drawn: frozenset[str], actor: str) -> Purged:
    asked = frozenset(i for i in wanted - drawn if events.find(parts, i) is None)
    everywhere = list(_everything_said(parts, asked))
    own = [text for text in _everything_said(parts, wanted - asked) if text not in everywhere]
    evidence = _events_to_blank(parts, wanted, asked, everywhere)
    others = said_elsewhere(_other_events(parts, evidence), own, evidence.values())
    said = [*everywhere, *others.own]
    _note_redactions(parts, evidence, actor)
    _blank_ledgers(parts, evidence)
    _clean_quarantine(parts, said)
    _clean_sessions(parts, said)
    tasks.reword(parts.home, lambda text: _without(text, said))
    _remove_files(parts, wanted)
    _clean_leftovers(parts, wanted, said)
    _blank_journal(parts, wanted, actor)
    _clean_index(parts, wanted, evidence)
    reindex_journal(parts)
    _squeeze(parts)
    (parts.home.state / MARKER).unlink()
    kept_by_others = others.held - {part for text in everywhere for part in lines_of(text)}
    left = scan(parts, [part for text in said for part in lines_of(text) if part not in kept_by_others])
    return Purged(tuple(sorted(wanted | set(evidence))), (*left, *others.named), OUT_OF_REACH)


def _everything_said(parts: Parts, wanted: frozenset[str]) -> Iterator[str]:
    """Every text the memories ever held, and the events' words."""
    if not wanted:
        return
    seen: set[str] = set()
    for placed in parts.journal.read():
        for change in placed.entry.changes:
            if change.id in wanted and change.after is not None:
                yield from _new(seen, _texts_of_image(change.after))
    for wanted_id in wanted:
        event = events.find(parts, wanted_id)
        row = parts.index.one("by_ref", wanted_id)
        if event is not None:
            yield from _new(seen, [event.content])
        if row is not None:
            yield from _new(seen, [text for memory in _as_it_stands(parts, row) for text in texts_of(memory)])


def _as_it_stands(parts: Parts, row: tuple[int, str, str]) -> Iterator[Memory]:
    """A memory as the index has it and as its file does: an edit may not have been taken in yet."""
    yield decode_record(row[2])
    place = following.place_of(parts, row[1])
    try:
        yield from (memory for memory in memories.read(parts.path(place)) if memory.id == row[1])
    except EngramError:
        return


def _texts_of_image(mapping: Mapping[str, Any]) -> list[str]:
    try:
        return texts_of(from_image(mapping))
    except EngramError:
        return [str(mapping.get("statement", ""))]


def _new(seen: set[str], texts: Iterable[str]) -> Iterator[str]:
    for text in texts:
        if len(text) >= SHORTEST_NEEDLE and text not in seen:
            seen.add(text)
            yield text


def _events_to_blank(
    parts: Parts, wanted: frozenset[str], asked: frozenset[str], everywhere: Sequence[str]
) -> dict[str, Event]:
    """Events that are wanted, those a memory asked for was derived from, and those that hold its very words."""
    found = {i: e for i in wanted if (e := events.find(parts, i)) is not None}
    for memory_id in asked:
        row = parts.index.one("by_ref", memory_id)
        memory = decode_record(row[2]) if row else None
        for evidence in memory.evidence if memory else ():
            event = events.find(parts, evidence.event)
            if event is not None:
                found[event.id] = event
    if everywhere:
        others = _other_events(parts, dict(found))
        found |= {event.id: event for event in others if any(text in words_of(event) for text in everywhere)}
    return found


def _other_events(parts: Parts, known: Container[str]) -> Iterator[Event]:
    for name in parts.ledger.sizes():
        yield from (event for event in parts.ledger.read(name) if event.id not in known)


def _remove_files(parts: Parts, wanted: frozenset[str]) -> None:
    for memory_id in wanted:
        place = following.place_of(parts, memory_id)
        if not place:
            continue
        try:
            path = parts.confined(place)
        except EngramError:
            continue  # behind a link, where nothing of the store lies
        others = [
            i for (i,) in parts.index.db.execute("SELECT id FROM places WHERE path = ?", (place,)) if i not in wanted
        ]
        if others and path.exists():
            _take_out(path, wanted)
        else:
            path.unlink(missing_ok=True)


def _take_out(path: Path, wanted: frozenset[str]) -> None:
    """Write a file again without some of its memories; one that holds nothing else goes."""
    try:
        kept = [memory for memory in memories.read(path) if memory.id not in wanted]
    except EngramError:
        kept = []
    if kept:
        replace_file(path, memories.rendered(kept))
    else:
        path.unlink(missing_ok=True)


def _clean_leftovers(parts: Parts, wanted: frozenset[str], said: Sequence[str]) -> None:
    """What editors, sync tools and crashes left beside the memory files, where it holds the words."""
    needles = [needle for text in said for needle in spellings(text)]
    for root in following.roots(parts):
        for folder in memories.walk(root):
            for path in list(folder.iterdir()) if folder.is_dir() else []:
                plain = path.is_file() and not path.is_symlink()
                if plain and not memories.is_memory_file(path.name) and _concerns(path, wanted, needles):
                    _take_out(path, wanted)
    for folder in (parts.home.journal, parts.home.ledger, parts.home.tasks, parts.home.state / "jobs"):
        remove_stray(folder)


def _concerns(path: Path, wanted: frozenset[str], needles: Sequence[bytes]) -> bool:
    """Whether a file beside the memory files holds the words, or a version of one of the memories."""
    if _holds(path, needles):
        return True
    try:
        return any(memory.id in wanted for memory in memories.read(path))
    except EngramError:
        return False


def _clean_sessions(parts: Parts, said: Sequence[str]) -> None:
    """A session's task or summary may quote what is purged."""
    folder = parts.home.state / "sessions"
    needles = [needle for text in said for needle in spellings(text)]
    for path in sorted(folder.iterdir()) if folder.is_dir() else []:
        if not _holds(path, needles):
            continue
        if path.suffix != ".json":
            path.unlink(missing_ok=True)
            continue
        fields = json.loads(path.read_bytes())
        for name in ("task", "summary"):
            fields[name] = _without(fields[name], said)
        replace_file(path, json.dumps(fields, ensure_ascii=False, indent=1).encode("utf-8", "replace") + b"\n")


def _without(text: str, said: Sequence[str]) -> str:
    for needle in sorted(said, key=len, reverse=True):
        text = text.replace(needle, BLANK)
    return text


def _blank_journal(parts: Parts, wanted: frozenset[str], actor: str) -> None:
    """Note the purge, then take the images out of every entry; the entries stay, so that order and audit do."""
    standing = {
        change.id for placed in parts.journal.read() for change in placed.entry.changes if change.after is not None
    }
    if named := sorted(i for i in wanted if i in standing):
        placed = append_entry(parts, "purge", actor, "", [Change(i, None) for i in named])
        with parts.index.writing():
            index_entry(parts, placed)
    for month in parts.journal.months():
        path = parts.journal.path(month)
        lines, touched = [], False
        with path.open("rb") as file:
            for line in file:
                blanked = _blanked(line, wanted)
                touched |= blanked != line
                lines.append(blanked)
        if touched:
            replace_file(path, b"".join(lines))


def _blanked(line: bytes, wanted: frozenset[str]) -> bytes:
    if not any(memory_id.encode() in line for memory_id in wanted):
        return line
    fields = json.loads(line)
    for change in fields["changes"]:
        if change["id"] in wanted:
            change["after"] = None
            change.pop("file", None)
    if any(change["id"] in wanted for change in fields["changes"]):
        fields.pop("reason", None)
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass") + b"\n"


def _note_redactions(parts: Parts, evidence: dict[str, Event], actor: str) -> None:
    """The journal is told first: words that went without its knowing would count as taken away by somebody else."""
    for session in sorted({event.session for event in evidence.values() if event.salt}):
        ids = [event.id for event in evidence.values() if event.session == session]
        placed = append_entry(parts, REDACTED, actor, redaction_text(ids), (), session)
        with parts.index.writing():
            index_entry(parts, placed)


def _blank_ledgers(parts: Parts, evidence: dict[str, Event]) -> None:
    for session in {event.session for event in evidence.values()}:
        name = parts.ledger.path(session).name
        parts.ledger.blank(name, frozenset(evidence))


def _clean_quarantine(parts: Parts, said: Sequence[str]) -> None:
    if not parts.home.quarantine.is_dir():
        return
    needles = [needle for text in said for needle in spellings(text)]
    for path in parts.home.quarantine.iterdir():
        data = path.read_bytes()
        if any(needle in data for needle in needles):
            path.unlink()


def _clean_index(parts: Parts, wanted: frozenset[str], evidence: dict[str, Event]) -> None:
    with parts.index.writing() as writer:
        for document_id in wanted - evidence.keys():
            forget_memory(parts, writer, document_id)
        for event in evidence.values():
            # Its place stays, in the chain and among the documents: what is said next follows it.
            empty = blanked(event)
            writer.put(Row(event_document(empty, session_scope(parts.home, event.session)), to_fields(empty)))
            parts.index.db.execute("DELETE FROM keys WHERE id = ?", (event.id,))
        for name, size in parts.ledger.sizes().items():
            note_ledger(parts, name, size)
    # Other versions' indexes hold the words too, and make themselves anew.
    for folder in parts.home.index.parent.iterdir():
        if folder != parts.home.index:
            shutil.rmtree(folder, ignore_errors=True)


def _squeeze(parts: Parts) -> None:
    """Deleted words stay in FTS segments, free pages and the WAL until each is written anew."""
    database = parts.index.db
    database.execute("INSERT INTO words (words) VALUES ('optimize')")
    database.execute("VACUUM")
    busy, *_ = database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    if busy:
        parts.warnings.append(
            "another process is reading the index; run `engram purge` again, or `engram index --rebuild`"
        )


def spellings(text: str) -> list[bytes]:
    """The ways a text may stand in the store's files: as it is, as JSON or YAML quotes it, and line by line."""
    return [spelling for part in lines_of(text) for spelling in _quoted(part)]


def _quoted(text: str) -> list[bytes]:
    found = {text, json.dumps(text, ensure_ascii=False)[1:-1], json.dumps(text)[1:-1], text.replace("'", "''")}
    return [spelling.encode("utf-8", "surrogatepass") for spelling in found]


def scan(parts: Parts, texts: Sequence[str]) -> Iterator[str]:
    """Files of the store and its index that still hold any of the texts."""
    needles = [needle for text in texts for needle in _quoted(text)]
    if not needles:
        return
    for path in sorted(p for p in parts.home.root.rglob("*") if p.is_file()):
        if _holds(path, needles):
            yield str(path)
    # Through SQLite: opening and closing its file by other means would drop the locks of this process on it.
    database = parts.index.db.serialize()
    if any(needle in database for needle in needles):
        yield str(parts.home.index / "index.db")
    log = parts.home.index / "index.db-wal"
    if log.exists() and log.stat().st_size:
        yield str(log)


def _holds(path: Path, needles: Sequence[bytes]) -> bool:
    # None are left to look for when a purge is carried to its end after its words had gone.
    overlap = max((len(needle) for needle in needles), default=1)
    tail = b""
    try:
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK):
                block = tail + chunk
                if any(needle in block for needle in needles):
                    return True
                tail = block[-overlap:]
    except OSError:
        return False
    return False
