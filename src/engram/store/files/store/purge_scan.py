"""The proof of a purge: every file of the store is searched, and records that still contain the words are listed.

A file that contains some of the words is parsed: a record that contains a whole text is listed, one that shares a line or
a word with it is not.
"""

import contextlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from engram.disk import MALFORMED, UNREADABLE, json_line, read_bytes, reading, replace_file
from engram.model.errors import EngramError
from engram.store.files import memories
from engram.store.files.log.context import LogContext
from engram.store.files.memories import is_memory_file
from engram.store.files.reconcile.context import IndexContext
from engram.store.files.reconcile.folders import memory_roots
from engram.store.files.states import named as named_states
from engram.store.files.store.purge_plan import MARKER_FILE, PurgePlan, owner_of, scope_of
from engram.store.purge import (
    PURGED_TEXT,
    QuotingRecord,
    contains_words,
    lines_of,
    map_strings,
    quoting_lines,
    remove_texts,
    strings_in,
)
from engram.store.records import image

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
    """Records and files that still contain any of the texts, unreadable files, and an index that is in use."""
    holders: list[QuotingRecord] = []
    places: list[str] = []
    accounted: set[str] = set()
    gone = {*plan.ids, *plan.events}
    for path in files_below(context.home.root, quotes.note) if quotes.needles else ():
        if path.name == MARKER_FILE or not quotes.in_file(path):
            continue
        try:
            for holder, texts in _records(context, path):
                words = list(texts)
                found = {text for text in quotes.said if any(text in one for one in words)}
                accounted |= found
                if not any(contains_words(one, text) for text in found for one in words):
                    continue
                if holder.id in gone:  # a copy of what was destroyed, not found by its id
                    places.append(f"{path}: contains a copy of {holder.id}; remove the file")
                else:
                    holders.append(holder)
        except (EngramError, *UNREADABLE):
            places.append(str(path))
    places += _in_index(context, [text for text in quotes.said if text not in accounted])
    return tuple(dict.fromkeys([*quoting_lines(holders, plan.scopes), *places, *quotes.unread]))


def _records(context: IndexContext, path: Path) -> Records:
    """The records of a file, each with all its texts."""
    folder = path.parent
    if folder == context.home.journal:
        return _lines(path, _journal_records)
    if folder == context.home.ledger:
        return _lines(path, lambda fields: _event_record(context, fields))
    if folder in (context.home.tasks, context.home.state / "jobs"):
        return _lines(path, lambda fields: _state_record(context, fields))
    if folder == named_states.folder(context.home):
        return _lines(path, lambda fields: iter([(QuotingRecord(f"state {fields['name']}", ""), strings_in(fields))]))
    if folder == context.home.state / "sessions":
        return _state_record(context, json.loads(read_bytes(path)))
    if any(root in path.parents for root in memory_roots(context)) and memories.is_memory_file(path.name):
        return ((QuotingRecord(m.id, m.scope), strings_in(image(m))) for m in memories.read(path))
    raise ValueError("not a file of records")


def _lines(path: Path, parse: Callable[[Any], Records]) -> Records:
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
