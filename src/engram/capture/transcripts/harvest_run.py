"""Harvests the harnesses' stores or the spool, one at a time.

A run stages the new part of each session, and then saves the position reached (its watermark), so that the next run
reads only newer parts.
"""

import fcntl
import hashlib
import os
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, Self

from engram.agents.agent import agents_with_sessions, find_agent, home_of
from engram.agents.transcripts.session import (
    Problems,
    Reader,
    Reading,
    StoredSession,
    default_root,
    detect_agents,
    find_writer,
    reader_of,
)
from engram.capture.harvest import Harvester, HarvestReport
from engram.disk import DIRECTORY_MODE, FILE_MODE, open_plain, reading
from engram.model.errors import InvalidInput, StoreCorrupt, StoreError
from engram.model.lazy import dataclass, field
from engram.store import hook_files
from engram.store.protocol import Progress, Store

SHARDS = 64
"""The number of states that share the watermarks of a harness; saving one watermark rewrites only its state."""
HARVEST, CHATS = "harvest", "import"
"""The namespaces of states: sessions of harnesses, and conversations of exports."""
DIGEST_BLOCK_BYTES = 4096
"""The size of a block that a digest covers: the block before the offset and, after `FULLY_DIGESTED_BYTES`, one per `DIGEST_STRIDE_BYTES`."""
FULLY_DIGESTED_BYTES = 64 * 1024 * 1024
"""The size up to which a digest covers everything; few transcripts are larger."""
DIGEST_STRIDE_BYTES = 1024 * 1024
_COMPLETE_MARK = "2:"
"""The prefix of a digest of everything; an older digest covers the first and the last block."""


@dataclass(frozen=True, slots=True)
class Watermark:
    """How far one session is staged.

    A watermark has the session's properties (size, times, inode), the offset up to which its facts are staged, and a
    digest of the bytes before it. A file that was truncated, replaced or rewritten is detected, and read again from its
    beginning. Database rows have no reliable order (clocks go back, parts are added later), so a session that changed
    in a database is read again as a whole.
    """

    stamp: tuple[int, ...] = ()
    """The session's properties; () if reading stopped partway."""
    offset: int = 0
    digest: str = ""

    @classmethod
    def of(cls, session: StoredSession, offset: int, *, is_complete: bool) -> Self:
        """The watermark of a session that was read up to an offset. Raises `OSError` if its file is gone."""
        digest = digest_before(session.path, offset) if session.grows else ""
        return cls(session.stamp if is_complete else (), offset, digest)

    @classmethod
    def from_json(cls, value: Any) -> Self | None:
        """The watermark of a stored value; None if the value cannot be used."""
        match value:
            case [list(stamp), int(offset), str(digest)] if offset >= 0 and all(isinstance(one, int) for one in stamp):
                return cls(tuple(stamp), offset, digest)
        return None

    def to_json(self) -> list[Any]:
        """The watermark as JSON."""
        return [list(self.stamp), self.offset, self.digest]

    def start(self, session: StoredSession) -> int:
        """Where to continue reading: the offset, or 0 if the session was replaced, or may have changed anywhere."""
        if not session.grows:
            return 0
        size, _, inode = session.stamp[:3]
        if size < self.offset or (self.stamp and self.stamp[2] != inode):
            return 0
        if len(self.stamp) == len(session.stamp) and self.stamp[0] == size:
            return 0  # the file was written to, but nothing was appended
        digest = digest_before if self.digest.startswith(_COMPLETE_MARK) else _digest_of_ends
        return self.offset if digest(session.path, self.offset) == self.digest else 0


@dataclass(slots=True)
class Watermarks:
    """The watermarks of one harness, or of one chat format, as stored."""

    store: Store
    harness: str
    namespace: str = HARVEST
    _known: dict[str, Watermark] = field(default_factory=dict)
    _unsaved: dict[str, Watermark] = field(default_factory=dict)

    @classmethod
    def load(cls, store: Store, harness: str, namespace: str = HARVEST) -> Self:
        """Every watermark of a harness."""
        marks = cls(store, harness, namespace)
        for shard in range(SHARDS):
            found = ((key, Watermark.from_json(value)) for key, value in store.state(marks._state(shard)).items())
            marks._known.update((key, mark) for key, mark in found if mark is not None)
        return marks

    def of(self, session: StoredSession) -> Watermark | None:
        """The watermark of a session; None if it was never harvested."""
        return self.find_by_name(session.name)

    def find_by_name(self, name: str) -> Watermark | None:
        """The watermark of the session with this name."""
        return self._known.get(digest_of(name))

    def is_unchanged(self, session: StoredSession) -> bool:
        """Whether a session has not changed since all of it was staged."""
        mark = self.of(session)
        return mark is not None and mark.stamp == session.stamp

    def note(self, session: StoredSession, mark: Watermark) -> int:
        """Record how far a session is staged, without saving it yet; returns the number of unsaved watermarks."""
        return self.note_named(session.name, mark)

    def note_named(self, name: str, mark: Watermark) -> int:
        """Record how far the session with this name is staged, without saving it yet; returns the number of unsaved watermarks."""
        key = digest_of(name)
        self._known[key] = self._unsaved[key] = mark
        return len(self._unsaved)

    def save(self) -> None:
        """Save the recorded watermarks; they are durable on return."""
        shards: defaultdict[int, dict[str, Any]] = defaultdict(dict)
        for key, mark in self._unsaved.items():
            shards[int(key[:4], 16) % SHARDS][key] = mark.to_json()
        for shard, marks in sorted(shards.items()):
            self.store.change_state(self._state(shard), lambda value, marks=marks: {**value, **marks})  # type: ignore[misc]
        self._unsaved.clear()

    def _state(self, shard: int) -> str:
        return f"{self.namespace}/{self.harness}/{shard:02}"


def digest_before(path: Path, offset: int) -> str:
    """A digest of a file's content before an offset; for a very long file, of samples of its later part."""
    found = hashlib.sha256()
    with reading(path) as file:
        for begin in range(0, min(offset, FULLY_DIGESTED_BYTES), DIGEST_STRIDE_BYTES):
            found.update(file.read(min(DIGEST_STRIDE_BYTES, offset - begin)))
        for begin in (*range(FULLY_DIGESTED_BYTES, offset, DIGEST_STRIDE_BYTES), max(0, offset - DIGEST_BLOCK_BYTES)):
            file.seek(begin)
            found.update(file.read(min(DIGEST_BLOCK_BYTES, offset - begin)))
    return f"{_COMPLETE_MARK}{found.hexdigest()[:20]}"


def _digest_of_ends(path: Path, offset: int) -> str:
    """The older form of digest: of a file's first bytes and of those just before an offset."""
    with reading(path) as file:
        head = file.read(min(DIGEST_BLOCK_BYTES, offset))
        file.seek(max(0, offset - DIGEST_BLOCK_BYTES))
        tail = file.read(min(DIGEST_BLOCK_BYTES, offset))
    return hashlib.sha256(head + tail).hexdigest()[:20]


def digest_of(text: str) -> str:
    """A digest used in place of a name in a state, which must not contain users' text."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:20]


ALL = "all"
SAVED_AFTER = 64
"""The number of sessions after which watermarks are saved; a crash repeats at most the later work, and proposes nothing twice."""
SAVED_BYTES = 32 * 1024 * 1024
"""The number of bytes of one transcript after which its watermark is saved."""


@dataclass(frozen=True, slots=True)
class HarvestSelection:
    """The sessions to harvest."""

    harnesses: Sequence[str]
    root: Path | None = None
    """A folder or file to read instead of the harness's own store."""
    since: datetime | None = None
    """Only sessions that were active since this time."""
    project: Path | None = None
    """Only sessions in this folder and below it."""
    is_mixed: bool = False
    """Whether the folder may have files of several harnesses, so that each file must be checked."""


@dataclass(slots=True)
class HarvestRun:
    """One run over the stores of harnesses."""

    store: Store
    harvester: Harvester
    progress: Progress

    def harvest(self, selection: HarvestSelection) -> HarvestReport:
        """Stage the new parts of the selected sessions, oldest first, and report them."""
        report = HarvestReport()
        found = [self._harvest(harness, selection, report) for harness in selection.harnesses]
        if selection.root is None and not any(found):
            report.warnings += (
                f"No {find_agent(harness).title} sessions in {_in_home(default_root(harness))}"
                for harness in selection.harnesses
            )
        return report

    def _harvest(self, harness: str, selection: HarvestSelection, report: HarvestReport) -> bool:
        """Harvest the sessions of one harness; returns whether it has any."""
        reader, marks, problems = reader_of(harness), Watermarks.load(self.store, harness), Problems()
        found = _find_sessions(reader, selection.root or default_root(harness), problems)
        if selection.root is not None and not found:
            problems.add(selection.root, f"no sessions of {harness} were found there")
        report.problems += problems.found
        has_any = bool(found)
        found = [session for session in found if _is_selected(session, reader, selection)]
        changed = [session for session in found if not marks.is_unchanged(session)]
        report.unchanged += len(found) - len(changed)
        try:
            for number, session in enumerate(sorted(changed, key=lambda one: one.modified)):
                self.progress(harness, number, len(changed))
                self._take(session, reader, marks, report)
        finally:
            if not self.harvester.dry_run:
                marks.save()
        if changed:
            self.progress(harness, len(changed), len(changed))
        return has_any

    def _take(self, session: StoredSession, reader: Reader, marks: Watermarks, report: HarvestReport) -> None:
        try:
            mark = marks.of(session)
            reading = reader.read(session, mark.start(session) if mark is not None else 0)
            transcript = reading.transcript
            if why := self.harvester.reason_to_distrust(transcript.source, transcript.session):
                report.add(HarvestReport(warnings=[why]))
                return
            if self.harvester.is_full(transcript.source):
                report.add(HarvestReport(postponed={transcript.source: 1}))
                return
            self._stage(session, reading, marks, report)
        except Exception as error:
            # A bad session does not stop the others; an error of the store would affect all of them.
            if isinstance(error, StoreError) and not isinstance(error, StoreCorrupt):
                raise
            problems = Problems()
            problems.add(session.path, error)
            report.problems += problems.found

    def _stage(self, session: StoredSession, reading: Reading, marks: Watermarks, report: HarvestReport) -> None:
        saver = _WatermarkSaver(session, marks, reading.transcript.start)
        found = self.harvester.stage(reading.transcript, staged=None if self.harvester.dry_run else saver.save_progress)
        found.size = reading.progress.size
        found.problems += reading.progress.problems
        report.add(found)
        if not self.harvester.dry_run:
            offset = found.position if found.postponed else max(reading.progress.position, found.position)
            if marks.note(session, Watermark.of(session, offset, is_complete=not found.postponed)) >= SAVED_AFTER:
                marks.save()


@dataclass(slots=True)
class _WatermarkSaver:
    """Saves the watermark of a very long transcript while reading it."""

    session: StoredSession
    marks: Watermarks
    saved: int

    def save_progress(self, position: int) -> None:
        """Save the watermark if enough was read since the last save."""
        if self.session.grows and position - self.saved >= SAVED_BYTES:
            self.marks.note(self.session, Watermark.of(self.session, position, is_complete=False))
            self.marks.save()
            self.saved = position


def _find_sessions(reader: Reader, root: Path, problems: Problems) -> list[StoredSession]:
    """The sessions found below a folder; an error that stops the search is reported."""
    found: list[StoredSession] = []
    try:
        found.extend(reader.sessions(root, problems))
    except Exception as error:
        problems.add(root, error)
    return found


def _is_selected(session: StoredSession, reader: Reader, selection: HarvestSelection) -> bool:
    """Whether to harvest a session. An unreadable one is selected, so that the reason is reported."""
    if selection.since is not None and session.modified < selection.since:
        return False
    try:
        if (
            selection.is_mixed
            and session.path.suffix == ".jsonl"
            and find_writer(session.path) not in ("", session.harness)
        ):
            return False
        if selection.project is None:
            return True
        directory = session.directory or reader.read(session, 0).transcript.directory
    except Exception:
        return True
    return _is_below(directory, selection.project)


def _is_below(directory: str, project: Path) -> bool:
    if not directory:
        return False
    path = Path(directory)
    return any(
        one == top or top in one.parents
        for one in (path, path.resolve())
        for top in (project.absolute(), project.resolve())
    )


def harnesses_of(harness: str | Sequence[str], path: Path | None) -> tuple[str, ...]:
    """The harnesses named, or those whose sessions a path holds.

    Raises `InvalidInput` for an unknown one or an unclear path.
    """
    named = (harness,) if isinstance(harness, str) else tuple(harness)
    for name in named:
        if name != ALL:
            reader_of(name)
    if ALL not in named:
        return named
    known = tuple(agent.name for agent in agents_with_sessions())
    if path is None:
        return known
    if not path.exists():
        raise InvalidInput(f"{path} does not exist")
    if found := detect_agents(path):
        return found
    raise InvalidInput(f"{path} is not known to be a harness's; name it with --harness {'|'.join(known)}")


def _in_home(path: Path) -> str:
    """A path in the usual notation, with `~` for the home folder."""
    home = home_of()
    return f"~/{path.relative_to(home)}" if path.is_relative_to(home) else str(path)


TRANSCRIPT_SUFFIX = ".jsonl"


def harvest_spooled(run: HarvestRun, root: Path, seconds: float | None = None) -> HarvestReport:
    """Harvest the waiting sessions of a home, at least one; those not reached in time keep waiting."""
    report, started = HarvestReport(), time.monotonic()
    for claim in hook_files.claim_waiting(root):
        try:
            report.add(_harvest_entry(run, claim.entry))
        except BaseException:
            claim.release()
            raise
        claim.finish()
        if seconds is not None and time.monotonic() - started >= seconds:
            break
    return report


def _harvest_entry(run: HarvestRun, entry: hook_files.SpoolEntry) -> HarvestReport:
    transcript = Path(entry.transcript)
    if not _is_transcript(transcript):
        return HarvestReport(problems=[f"{transcript}: the transcript of a session is gone; it was not harvested"])
    return run.harvest(HarvestSelection((entry.harness,), transcript))


def _is_transcript(path: Path) -> bool:
    """Whether a path can be a transcript; an impossible path, such as one with a name that is too long, cannot."""
    try:
        return path.is_absolute() and path.suffix == TRANSCRIPT_SUFFIX and path.is_file()
    except (OSError, ValueError):
        return False


LOCK_NAME = "harvest.lock"
"""The name of the lock file in `state/`."""
_LOCK_PAUSE = 0.1


@contextmanager
def harvest_lock(root: Path, *, seconds: float) -> Iterator[bool]:
    """Hold the harvest lock; yields False if another process still has it after `seconds`.

    The lock ends with its process.

    Without it, two processes that read the same sessions would propose nothing twice, but each would report everything.
    That happens if the home is not writable, or its file system has no locks.
    """
    try:
        (root / "state").mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)
        descriptor = open_plain(root / "state" / LOCK_NAME, os.O_RDWR | os.O_CREAT, FILE_MODE)
    except OSError:
        yield True
        return
    try:
        yield _acquire_lock(descriptor, seconds)
    finally:
        os.close(descriptor)


def _acquire_lock(descriptor: int, seconds: float) -> bool:
    until = time.monotonic() + seconds
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= until:
                return False
            time.sleep(_LOCK_PAUSE)
        except OSError:
            return True
        else:
            return True
