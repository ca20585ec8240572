"""Repairing memory files from the journal after a power loss.

The rule: only after the machine has restarted, and only for memories changed after the mark of `durability`,
a file that is missing, empty, cut off or at an earlier version is not a person's edit: it is written again, and
one whose removal was undone is removed again. Any other content is its owner's, as always.

The caller of everything here holds the writer lock.
"""

import contextlib
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC
from pathlib import Path
from typing import Any

from engram.disk import DIRECTORY_MODE, keep_aside, read_bytes, replace_file, temporary_prefix
from engram.model.errors import EngramError, StoreError, StoreReadOnly
from engram.model.lazy import dataclass, field, replace
from engram.model.memory import Memory
from engram.store.files import memories
from engram.store.files.context import StoreContext
from engram.store.files.durability import Mark, is_own, read_mark, sync_files, write_mark
from engram.store.files.home import Home
from engram.store.files.journal import Position
from engram.store.files.memories import stamp_of
from engram.store.records import from_image, image

Image = Mapping[str, Any]
MOST_NAMED = 50


def is_torn(data: bytes, spellings: Sequence[bytes]) -> bool:
    """Whether bytes are what a crash leaves of a file of ours: nothing, blanks, or a beginning."""
    return not data.strip(b"\0 \r\n") or any(len(data) < len(s) and s.startswith(data) for s in spellings)


def was_set_back(
    path: Path,
    expected: Mapping[str, Image],
    known: Mapping[str, Sequence[Image]],
    spellings: Sequence[bytes],
    is_new: Callable[[str], bool] = lambda _: False,
) -> bool:
    """Whether a crash left a file torn or at an earlier version, so that its content is not a person's edit.

    `expected` are the images it should contain, `known` earlier ones of the same memories.
    """
    try:
        data = memories.content(path)
        if expected and data == spellings[0]:
            return False
        if is_torn(data, spellings):
            return True
        found = {memory.id: image(memory) for memory in memories.parse(data, path)}
    except EngramError:
        return False
    if found == expected:
        return False
    # A record that was always there, and is not now, was taken out by hand.
    taken_out = any(not is_new(memory_id) for memory_id in expected.keys() - found.keys())
    return not taken_out and all(
        one in known.get(memory_id, ()) or one == expected.get(memory_id) for memory_id, one in found.items()
    )


class Leftovers:
    """Temporary files left by a crash; each folder is listed once."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._listed: dict[Path, list[str]] = {}

    def clear(self, path: Path, spellings: Sequence[bytes]) -> None:
        """Remove those of a memory's file; one with what a person saved meanwhile is put back in place."""
        for name in self._in(path.parent):
            if name.startswith(temporary_prefix(path)):
                self._clear(path.parent / name, path, spellings)

    def _in(self, folder: Path) -> list[str]:
        if folder not in self._listed:
            try:
                names = os.listdir(folder)
            except OSError:
                names = []
            self._listed[folder] = [name for name in names if name.startswith(".") and name.endswith(".tmp")]
        return self._listed[folder]

    def _clear(self, leftover: Path, path: Path, spellings: Sequence[bytes]) -> None:
        try:
            data = read_bytes(leftover)
        except OSError:
            return  # not a plain file, so not one of ours
        if is_torn(data, spellings) or data in spellings:
            leftover.unlink()
            return
        try:
            memories.parse(data, path)
            leftover.replace(path)
        except EngramError as error:
            keep_aside(path, data, self._home.quarantine, str(error))
            leftover.unlink()


def repair_after_restart(parts: StoreContext) -> None:
    """Check for a power loss, once per process, before any file counts as a person's edit."""
    known = parts.durability
    if known.is_checked:
        return
    mark = read_mark(parts.home)
    if mark is None:
        # A new store, or one of an earlier Engram: its files are taken as they are.
        last = parts.journal.last_seq()
        _save_mark(parts, Mark(last, known.boot, last))
        return
    known.floor = mark.seq
    if known.boot and mark.boot == known.boot:
        known.is_checked = True
        return
    with contextlib.suppress(PermissionError):
        # An anchor is not synced: its line may be there without its content.
        parts.warnings += parts.journal.quarantine_torn()
    last = parts.journal.last_seq()
    found = _RecentDecisions(parts, mark.seq).repair() if last > mark.seq else []
    if known.unrepaired:
        return
    mark = replace(mark, seq=max(last, mark.seq), boot=known.boot)
    if found:
        at = parts.clock().astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        mark = replace(mark, repaired=tuple(found[:MOST_NAMED]), repaired_at=at)
        parts.warnings.append(repair_report(mark))
    if mark == read_mark(parts.home):
        known.is_checked = True
    else:
        _save_mark(parts, mark)


def _save_mark(parts: StoreContext, mark: Mark) -> None:
    """Write the mark; until that succeeds, the check is repeated."""
    try:
        write_mark(parts.home, mark)
        parts.durability.is_checked = True
    except StoreReadOnly as error:
        parts.warn(str(error))


def repair_report(mark: Mark) -> str:
    """A message that names the repaired files."""
    named = ", ".join(mark.repaired[:5]) + (", …" if len(mark.repaired) > 5 else "")
    return (
        f"a power loss damaged {len(mark.repaired)} memory file(s); "
        f"they were restored from the journal at {mark.repaired_at}: {named}"
    )


@dataclass(slots=True)
class _MemoryHistory:
    """A memory changed since the mark: every image its file may still contain, newest last."""

    images: list[Image | None] = field(default_factory=list)
    places: list[str] = field(default_factory=list)
    is_new: bool = False


class _RecentDecisions:
    """The decisions after the mark, and the files they wrote."""

    def __init__(self, parts: StoreContext, after: int) -> None:
        self._parts = parts
        self._last: dict[str, tuple[Position, str]] = {}
        self._past: dict[str, _MemoryHistory] = {}
        self._moved: frozenset[str] | None = None
        self._leftovers = Leftovers(parts.home)
        for placed in parts.journal.readable([]):
            for change in placed.entry.changes:
                if placed.entry.seq > after:
                    past = self._past.get(change.id) or self._begin(change.id)
                    past.images.append(change.after)
                    past.places.append(change.file)
                self._last[change.id] = placed.start, change.file

    def _begin(self, memory_id: str) -> _MemoryHistory:
        before = self._last.get(memory_id)
        past = self._past[memory_id] = _MemoryHistory(is_new=before is None)
        if before is not None:
            past.images.append(self._image_at(memory_id, before[0]))
            past.places.append(before[1])
        return past

    def _image_at(self, memory_id: str, position: Position) -> Image | None:
        changes = self._parts.journal.at(position).changes
        return next((change.after for change in reversed(changes) if change.id == memory_id), None)

    def repair(self) -> list[str]:
        """Repair every file the power loss changed; returns those files."""
        repaired = []
        places = dict.fromkeys(place for past in self._past.values() for place in past.places if is_own(place))
        for stored, expected in self._expected(places).items():
            try:
                path = self._parts.confined(stored)
            except StoreError as error:
                # Nothing of the store is behind a link, so there is nothing to repair.
                self._parts.warnings.append(str(error))
                continue
            try:
                if self._repair_file(path, stored, expected):
                    repaired.append(stored)
                self._parts.durability.unrepaired.discard(stored)
            except (StoreReadOnly, OSError) as error:
                self._parts.durability.unrepaired.add(stored)
                self._parts.warnings.append(f"{path}: not restored after a power loss: {error}")
        if repaired:
            sync_files(self._parts.home, repaired)
        return repaired

    def _expected(self, places: Iterable[str]) -> dict[str, dict[str, Image]]:
        """What each file should contain by the journal, including other memories in it."""
        found: dict[str, dict[str, Image]] = {place: {} for place in places}
        for memory_id, (position, place) in self._last.items():
            if place in found:
                past = self._past.get(memory_id)
                newest = past.images[-1] if past else self._image_at(memory_id, position)
                if newest is not None:
                    found[place][memory_id] = newest
        return found

    def _repair_file(self, path: Path, stored: str, expected: Mapping[str, Image]) -> bool:
        known = self._known(stored)
        try:
            wanted = [from_image(one) for one in expected.values()]
            spellings = self._spellings(known, wanted)
        except EngramError:
            return False  # only a newer Engram can read them
        self._leftovers.clear(path, spellings)
        if not path.is_symlink() and not path.exists():
            lost = [memory for memory in wanted if memory.id not in self._moved_by_hand()]
            return bool(lost) and _write(path, lost)
        if not path.is_file() or path.is_symlink() or not was_set_back(path, expected, known, spellings, self._is_new):
            return False
        if wanted:
            return _write(path, wanted)
        path.unlink()
        return True

    def _moved_by_hand(self) -> frozenset[str]:
        """Memories in files unknown to the journal: a person renamed those files."""
        if self._moved is None:
            known = {place for past in self._past.values() for place in past.places}
            known.update(place for _, place in self._last.values())
            found: set[str] = set()
            for path in memories.memory_files(self._parts.home.engrams):
                if self._parts.stored(path) not in known:
                    with contextlib.suppress(EngramError):
                        found.update(memory.id for memory in memories.read(path))
            self._moved = frozenset(found)
        return self._moved

    def _known(self, stored: str) -> dict[str, list[Image]]:
        """The images of each memory that this file may have contained since the mark."""
        return {
            memory_id: [one for one in past.images if one is not None]
            for memory_id, past in self._past.items()
            if stored in past.places
        }

    def _spellings(self, known: Mapping[str, Sequence[Image]], wanted: Sequence[Memory]) -> list[bytes]:
        alone = [memories.render([from_image(one)]) for images in known.values() for one in images]
        return [memories.render(list(wanted)), *alone] if wanted else alone

    def _is_new(self, memory_id: str) -> bool:
        past = self._past.get(memory_id)
        return past is not None and past.is_new


def _write(path: Path, wanted: Sequence[Memory]) -> bool:
    if len(wanted) == 1:
        return memories.write(path, wanted[0], stamp_of(path)) is not None
    path.parent.mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)
    replace_file(path, memories.render(list(wanted)))
    return True
