"""The proof behind a purge: every file of the store is searched, and what still says the words is named.

A file that holds some of the words is read as what it is: a record that says a whole text is named, one that shares a line or
a word with it is not.
"""

import contextlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from engram.model.errors import EngramError
from engram.store.files import following, memories
from engram.store.files.confinement import MALFORMED, UNREADABLE, read_bytes, reading
from engram.store.files.parts import Parts
from engram.store.files.purge_plan import MARKER, PurgePlan, owner_of, scope_of
from engram.store.files.quotations import Quotations, files_below, quoted
from engram.store.purged_words import Holder, named, says, strings_in
from engram.store.records import image

Records = Iterator[tuple[Holder, Iterable[str]]]


def left_over(parts: Parts, plan: PurgePlan, quotes: Quotations) -> tuple[str, ...]:
    """Records and files that still say any of the texts, files that could not be read, and an index that is being read."""
    holders: list[Holder] = []
    places: list[str] = []
    held: set[str] = set()
    gone = {*plan.ids, *plan.events}
    for path in files_below(parts.home.root, quotes.note) if quotes.needles else ():
        if path.name == MARKER or not quotes.in_file(path):
            continue
        try:
            for holder, told in _records(parts, path):
                words = list(told)
                found = {text for text in quotes.said if any(text in one for one in words)}
                held |= found
                if not any(says(one, text) for text in found for one in words):
                    continue
                if holder.id in gone:  # a copy of what was destroyed, which its id would not lead to
                    places.append(f"{path}: it holds a copy of {holder.id}; remove the file")
                else:
                    holders.append(holder)
        except (EngramError, *UNREADABLE):
            places.append(str(path))
    places += _in_index(parts, [text for text in quotes.said if text not in held])
    return tuple(dict.fromkeys([*named(holders, plan.scopes), *places, *quotes.unread]))


def _records(parts: Parts, path: Path) -> Records:
    """The records of a file, each with all that it says."""
    folder = path.parent
    if folder == parts.home.journal:
        return _lines(path, _decided)
    if folder == parts.home.ledger:
        return _lines(path, lambda fields: _event(parts, fields))
    if folder in (parts.home.tasks, parts.home.state / "jobs"):
        return _lines(path, lambda fields: _small(parts, fields))
    if folder == parts.home.state / "sessions":
        return _small(parts, json.loads(read_bytes(path)))
    if any(root in path.parents for root in following.roots(parts)) and memories.is_memory_file(path.name):
        return ((Holder(m.id, m.scope), strings_in(image(m))) for m in memories.read(path))
    raise ValueError("no record's file")


def _lines(path: Path, parse: Callable[[Any], Records]) -> Records:
    """The records of a file's lines; those that cannot be read were reported when they were cleaned."""
    with reading(path) as file:
        for line in file:
            with contextlib.suppress(*MALFORMED):
                yield from parse(json.loads(line))


def _decided(fields: Mapping[str, Any]) -> Records:
    """Each memory of a decision; and the decision itself, whose reason or actor may quote."""
    scope = ""
    for change in fields["changes"]:
        if change["after"] is not None:
            scope = str(change["after"].get("scope", ""))
            yield Holder(str(change["id"]), scope), strings_in(change["after"])
    told = [str(fields.get(name, "")) for name in ("reason", "actor", "session")]
    yield Holder(f"decision {fields['seq']} of the journal", scope), told


def _event(parts: Parts, fields: Mapping[str, Any]) -> Records:
    yield Holder(str(fields["id"]), scope_of(parts, str(fields["id"]))), strings_in(fields)


def _small(parts: Parts, fields: Mapping[str, Any]) -> Records:
    yield Holder(str(fields["id"]), owner_of(parts, fields)), strings_in(fields)


def _in_index(parts: Parts, texts: Iterable[str]) -> list[str]:
    """The index, should it hold texts that no record says any more."""
    needles = [needle for text in texts for needle in quoted(text)]
    found = []
    # Through SQLite: opening and closing its file by other means would drop the locks of this process on it.
    database = parts.index.db.serialize() if needles else b""
    if any(needle in database for needle in needles):
        found.append(str(parts.home.index / "index.db"))
    log = parts.home.index / "index.db-wal"
    if log.exists() and log.stat().st_size:
        found.append(str(log))
    return found
