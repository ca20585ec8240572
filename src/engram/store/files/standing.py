"""What a store of files holds, read from its journal and compared with its files. Nothing is changed by it."""

import json
import os
from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from engram.model.errors import EngramError
from engram.store.comparing import audited, fingerprint, next_image, plain_digest
from engram.store.files import memories
from engram.store.files.confinement import reading
from engram.store.files.following import is_team
from engram.store.files.home import Home
from engram.store.files.journal import Change, Entry, Journal, Placed, Position
from engram.store.files.memories import Stamp, stamp_of
from engram.store.id_numbers import highest_numbers
from engram.store.records import image
from engram.store.watermarks import watermark

_PURGE = b'"after":null'


@dataclass(slots=True)
class Held:
    """A memory's last image: where its decision begins, its file, its digest to the letter (None: purged).

    `print` is the digest that is alike on every backend, `history` that of all its images.
    """

    start: Position
    file: str
    letter: bytes | None
    print: bytes
    history: bytes

    @property
    def is_own(self) -> bool:
        """Whether it is a memory of this store that still stands."""
        return self.letter is not None and not is_team(self.file)


@dataclass(slots=True)
class Standing:
    """All that the journal says, as far as it was read."""

    positions: "array[int]" = field(default_factory=lambda: array("q"))
    """Of the uses; a watermark says how many of them it covers."""
    held: dict[str, Held] = field(default_factory=dict)
    audit: list[bytes] = field(default_factory=list)
    images: int = 0
    last: Placed | None = None

    def read(self, journal: Journal, upto: Position) -> None:
        """Go on reading, up to a position."""
        for placed in journal.read(self.last.end if self.last else Position()):
            if placed.end > upto:
                return
            self._take(placed)

    def _take(self, placed: Placed) -> None:
        entry = placed.entry
        self.audit.append(audited(entry.at, entry.op, entry.actor, entry.reason, entry.session))
        for change in last_of_each(entry):
            self.held[change.id] = self._held(placed, change)
            self.images += 1
        self.last = placed

    def _held(self, placed: Placed, change: Change) -> Held:
        letter = plain_digest(change.after) if change.after is not None else None
        print_ = (
            fingerprint(change.after, self.positions) if watermark(change.after) and change.after else letter or b""
        )
        before = self.held.get(change.id)
        history = next_image(before.history if before else b"", placed.entry.op, placed.entry.at, print_)
        return Held(placed.start, change.file, letter, print_, history)

    def own(self) -> Iterator[tuple[str, Held]]:
        """The store's own memories, by id."""
        return ((i, held) for i, held in sorted(self.held.items()) if held.is_own)

    def numbers(self) -> Mapping[str, int]:
        """The highest number of each day that was ever given out."""
        return highest_numbers(self.held)


def last_of_each(entry: Entry) -> list[Change]:
    """The images of a decision, one for each memory."""
    return list({change.id: change for change in entry.changes}.values())


def purged_ids(journal: Journal) -> frozenset[str]:
    """Ids that must not come back, by the journal."""
    found: set[str] = set()
    for month in journal.months():
        with reading(journal.path(month)) as file:
            for line in file:
                if _PURGE in line and line.endswith(b"\n"):
                    found.update(change["id"] for change in json.loads(line)["changes"] if change["after"] is None)
    return frozenset(found)


# -- files and journal, side by side


@dataclass(slots=True)
class Compared:
    """What a person changed that the store has not taken in yet, and files that count for nothing as they are."""

    pending: list[str] = field(default_factory=list)
    faulty: list[str] = field(default_factory=list)


def compare_files(home: Home, standing: Standing, known: Mapping[str, Stamp]) -> Compared:
    """Whether every file says what the journal says. One that looks as it is known need not be read again."""
    found = Compared()
    by_file: dict[str, set[str]] = {}
    for memory_id, held in standing.own():
        if held.file:
            by_file.setdefault(held.file, set()).add(memory_id)
    for stored in _memory_files(home):
        expected = by_file.pop(stored, set())
        path = f"{home.root}/{stored}"
        if stored not in known or stamp_of(path) != known[stored]:
            _compare_file(home, Path(path), stored, expected, standing, found)
    found.pending += [f"{home.root / stored} is not there" for stored in by_file]
    return found


def _memory_files(home: Home) -> Iterator[str]:
    """Every memory file, below the home. Texts, not paths: there may be a hundred thousand."""
    for folder in memories.walk(home.engrams):
        stored = folder.relative_to(home.root).as_posix()
        names = sorted(os.listdir(folder)) if folder.is_dir() else []
        yield from (f"{stored}/{name}" for name in names if memories.is_memory_file(name))


def _compare_file(home: Home, path: Path, stored: str, expected: set[str], standing: Standing, found: Compared) -> None:
    try:
        there = {memory.id: memory for memory in memories.read(path)}
    except EngramError as error:
        found.faulty.append(str(error))
        return
    for memory_id, memory in there.items():
        held = standing.held.get(memory_id)
        if held is not None and held.letter is None:
            found.faulty.append(f"{path}: {memory_id} was purged and does not come back")
        elif held is not None and held.file != stored and held.file and (home.root / held.file).exists():
            found.faulty.append(f"{path}: id {memory_id} is already taken by {held.file}")
        elif held is None or held.file != stored or held.letter != plain_digest(image(memory)):
            found.pending.append(f"{path} was changed")
    if expected - there.keys():
        found.pending.append(f"{path} no longer holds {min(expected - there.keys())}")
