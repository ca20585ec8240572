"""Rewrites memory files from the journal after a crash or a power loss.

A decision is in the journal before it is in its files. If the process was killed in between, the files of the last
decisions are missing, torn or old (`finish_files`). After a power loss, the same applies to every decision after the
mark of `durability` (`repair_after_restart`), and a removed file may be back. Such content is not a person's edit; any
other content is treated as one.

Callers of this module must have the writer lock.
"""

import contextlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC
from pathlib import Path
from typing import Any

from engram.disk import keep_aside, read_bytes, temporary_prefix
from engram.model.errors import EngramError, StoreCorrupt, StoreError, StoreReadOnly
from engram.model.lazy import dataclass, field, replace
from engram.model.memory import Memory
from engram.store.files import memories
from engram.store.files.log.journal import AfterImage, JournalLine, Mark, Position, is_own, read_mark, write_mark
from engram.store.files.memories import Stamp, stamp_of
from engram.store.files.reconcile.durability import sync_files
from engram.store.files.reconcile.folders import is_team, team_of
from engram.store.files.reconcile.hand_edits import EDIT_OP
from engram.store.files.reconcile.index_state import IndexContext, LogContext
from engram.store.home import Home
from engram.store.records import from_image, image

Image = Mapping[str, Any]
MAX_REPORTED_FILES = 50


@dataclass(slots=True)
class FileHistory:
    """What a file should contain according to the journal, and what a crash may have left in it."""

    expected: dict[str, Image] = field(default_factory=dict)
    """The newest image of each of its memories."""
    earlier: dict[str, list[Image]] = field(default_factory=dict)
    """Images that it may have contained before."""
    new: set[str] = field(default_factory=set)
    """Memories without an earlier image."""

    def memories(self) -> list[Memory]:
        """The memories it should contain. Raises `EngramError` for an image that only a newer Engram can read."""
        return [from_image(one) for one in self.expected.values()]

    def is_in(self, path: Path) -> bool:
        """Whether the file contains exactly what it should, as Engram writes it."""
        try:
            data = memories.content(path)
        except StoreCorrupt:
            return False
        return len(self.expected) == 1 and data == memories.render_image(next(iter(self.expected.values())))

    def spellings(self) -> list[bytes]:
        """The bytes that Engram may have written to the file, the intended ones first."""
        found = [memories.render(self.memories())] if self.expected else []
        for images in self.earlier.values():
            for one in images:
                with contextlib.suppress(EngramError):
                    found.append(memories.render([from_image(one)]))
        return found

    def is_crash_leftover(self, path: Path, spellings: Sequence[bytes]) -> bool:
        """Whether a crash left the file torn or at an earlier version, so that its content is not a person's edit."""
        try:
            data = memories.content(path)
            if self.expected and data == spellings[0]:
                return False
            if is_torn(data, spellings):
                return True
            found = {memory.id: image(memory) for memory in memories.parse(data, path)}
        except EngramError:
            return False
        if found == self.expected:
            return False
        # A record that was always there, and is missing now, was removed by a person.
        taken_out = self.expected.keys() - found.keys() - self.new
        return not taken_out and all(
            one in self.earlier.get(memory_id, ()) or one == self.expected.get(memory_id)
            for memory_id, one in found.items()
        )


def is_torn(data: bytes, spellings: Sequence[bytes]) -> bool:
    """Whether bytes look like a file of ours after a crash: empty, blank, or a prefix."""
    return not data.strip(b"\0 \r\n") or any(len(data) < len(s) and s.startswith(data) for s in spellings)


class FileRepair:
    """Repairs files one by one; the folders' leftover temporary files are listed once."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._leftovers: dict[Path, list[str]] = {}

    def repair(
        self, path: Path, history: FileHistory, moved: Iterable[str] = (), *, awaiting_save: bool = False
    ) -> bool:
        """Rewrite or remove a file if a crash reverted it; returns whether it did.

        `moved` are memories that a person has put into other files. With `awaiting_save`, an editor may be saving the
        file.
        """
        prefix = temporary_prefix(path)
        leftovers = [path.parent / name for name in self._leftovers_in(path.parent) if name.startswith(prefix)]
        try:
            if not leftovers and history.is_in(path):
                return False
            wanted, spellings = history.memories(), history.spellings()
        except EngramError:
            return False
        for leftover in leftovers:
            self._clear(leftover, path, spellings)
        if path.is_symlink():
            return False
        if not path.exists():
            lost = [memory for memory in wanted if memory.id not in moved]
            return bool(lost) and _write(path, lost, None)
        if not path.is_file():
            return False
        if awaiting_save and not history.is_in(path):
            memories.await_save(path)
        stamp = stamp_of(path)  # Later saves by a person must stay.
        if not history.is_crash_leftover(path, spellings):
            return False
        if wanted:
            return _write(path, wanted, stamp)
        if stamp_of(path) != stamp:
            return False
        path.unlink()
        return True

    def _leftovers_in(self, folder: Path) -> list[str]:
        if folder not in self._leftovers:
            try:
                names = os.listdir(folder)
            except OSError:
                names = []
            self._leftovers[folder] = [name for name in names if name.startswith(".") and name.endswith(".tmp")]
        return self._leftovers[folder]

    def _clear(self, leftover: Path, path: Path, spellings: Sequence[bytes]) -> None:
        """Remove a temporary file of ours; if a person saved to it in the meantime, it is put back in place."""
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


def _write(path: Path, wanted: Sequence[Memory], expected: Stamp | None) -> bool:
    return memories.write_data(path, memories.render(list(wanted)), expected) is not None


# -- after a killed process


def finish_files(context: IndexContext, lines: Sequence[JournalLine], *, teams: bool) -> None:
    """Write the files of the last decisions, unless their owner has changed them since; those of `teams`, if requested."""
    newest: dict[str, tuple[str, AfterImage]] = {}
    earlier: dict[str, list[Image]] = {}
    for placed in lines:
        for change in placed.entry.changes:
            if change.id not in newest:
                earlier[change.id] = _earlier_images(context, change.id, placed.entry.seq)
            elif (known := newest[change.id][1].after) is not None:
                earlier[change.id].append(known)
            newest[change.id] = placed.entry.op, change
    files = FileRepair(context.home)
    for memory_id, (op, change) in newest.items():
        # A person's edit was in the file before it was in the journal.
        if op == EDIT_OP or change.after is None or not change.file:
            continue
        path = _writable_path(context, change.file, teams=teams)
        if path is not None:
            files.repair(
                path, FileHistory({memory_id: change.after}, {memory_id: earlier[memory_id]}), awaiting_save=True
            )


def _earlier_images(context: IndexContext, memory_id: str, seq: int) -> list[Image]:
    """The versions that a file may have had before a decision: the indexed one, and the last in the journal.

    A colleague's change to a team file is only in the index; a rebuilt index already has the newest version.
    """
    row = context.index.one("by_ref", memory_id)
    found: list[Image] = [json.loads(row[2])] if row else []
    with contextlib.suppress(EngramError, OSError):  # `doctor` reports a damaged line further back.
        before = context.image_before(memory_id, seq)
        if before is not None and before.after is not None:
            found.append(before.after)
    return found


def _writable_path(context: IndexContext, stored: str, *, teams: bool) -> Path | None:
    """The path of a file to be rewritten; a team's file only while its team store is attached.

    A journal alone must not create files in a repository.
    """
    of_team = is_team(stored)
    if of_team and not (teams and team_of(context, stored)):
        return None
    try:
        path = context.safe_path(stored)
    except StoreError as error:
        context.warnings.append(str(error))
        return None
    return path if not of_team or path.parent.is_dir() else None


# -- after a power loss


def repair_after_restart(context: IndexContext) -> None:
    """Check for a power loss, once per process, before any file is treated as a person's edit."""
    known = context.durability
    if known.is_checked:
        return
    mark = read_mark(context.home)
    if mark is None:
        # A store that is new or from an earlier Engram: its files are taken as they are.
        last = context.journal.last_seq()
        _save_mark(context, Mark(last, known.boot, last))
        return
    known.floor = mark.seq
    if known.boot and mark.boot == known.boot:
        known.is_checked = True
        return
    with contextlib.suppress(PermissionError):
        # An anchor is not synced: its line may be there without its content.
        context.warnings += context.journal.quarantine_torn()
    last = context.journal.last_seq()
    found = _repair_since(context, mark.seq) if last > mark.seq else []
    if known.unrepaired:
        return
    mark = replace(mark, seq=max(last, mark.seq), boot=known.boot)
    if found:
        at = context.clock().astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        mark = replace(mark, repaired=tuple(found[:MAX_REPORTED_FILES]), repaired_at=at)
        context.warnings.append(repair_report(mark))
    if mark == read_mark(context.home):
        known.is_checked = True
    else:
        _save_mark(context, mark)


def _save_mark(context: IndexContext, mark: Mark) -> None:
    """Write the mark; until that succeeds, the check is repeated."""
    try:
        write_mark(context.home, mark)
        context.durability.is_checked = True
    except StoreReadOnly as error:
        context.warn(str(error))


def repair_report(mark: Mark) -> str:
    """A message that names the repaired files."""
    named = ", ".join(mark.repaired[:5]) + (", …" if len(mark.repaired) > 5 else "")
    return (
        f"a power loss damaged {len(mark.repaired)} memory file(s); "
        f"they were restored from the journal at {mark.repaired_at}: {named}"
    )


def _repair_since(context: IndexContext, seq: int) -> list[str]:
    """Repair every file of the decisions after a number; returns those that the power loss had changed."""
    histories, places = _histories_since(context, seq)
    files, repaired = FileRepair(context.home), []
    moved: frozenset[str] | None = None
    for stored, history in histories.items():
        try:
            path = context.safe_path(stored)
        except StoreError as error:
            # Nothing of the store is behind a link, so there is nothing to repair.
            context.warnings.append(str(error))
            continue
        try:
            if moved is None and not path.exists():
                moved = _moved_by_hand(context, places)
            if files.repair(path, history, moved or ()):
                repaired.append(stored)
            context.durability.unrepaired.discard(stored)
        except (StoreReadOnly, OSError) as error:
            context.durability.unrepaired.add(stored)
            context.warnings.append(f"{path}: not restored after a power loss: {error}")
    if repaired:
        sync_files(context.home, repaired)
    return repaired


def _histories_since(context: LogContext, seq: int) -> tuple[dict[str, FileHistory], set[str]]:
    """The history of every own file affected by a decision after a number, and all files with memories by the journal."""
    last: dict[str, tuple[Position, str]] = {}
    images: dict[str, list[Image]] = {}
    new: set[str] = set()
    histories: dict[str, FileHistory] = {}
    for placed in context.journal.readable([]):
        for change in placed.entry.changes:
            before = last.get(change.id)
            if placed.entry.seq > seq:
                if change.id not in images:
                    images[change.id] = _image_at(context, change.id, before[0]) if before else []
                    new.update([] if before else [change.id])
                if change.after is not None:
                    images[change.id].append(change.after)
                for stored in (before[1] if before else "", change.file):
                    if is_own(stored):
                        history = histories.setdefault(stored, FileHistory(new=new))
                        history.earlier[change.id] = images[change.id]
            last[change.id] = placed.start, change.file if change.after is not None else ""
    for memory_id, (position, stored) in last.items():
        if stored in histories:
            known = images.get(memory_id) or _image_at(context, memory_id, position)
            if known:
                histories[stored].expected[memory_id] = known[-1]
    return histories, {*histories, *(stored for _, stored in last.values())}


def _image_at(context: LogContext, memory_id: str, position: Position) -> list[Image]:
    changes = context.journal.at(position).changes
    return [change.after for change in reversed(changes) if change.id == memory_id and change.after is not None][:1]


def _moved_by_hand(context: LogContext, places: set[str]) -> frozenset[str]:
    """Memories in files unknown to the journal: a person renamed those files."""
    found: set[str] = set()
    for path in memories.memory_files(context.home.engrams):
        if context.stored_path(path) not in places:
            with contextlib.suppress(EngramError):
                found.update(memory.id for memory in memories.read(path))
    return frozenset(found)
