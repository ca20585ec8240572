"""A harvest of the harnesses' stores or of the spool, one at a time: stages what is new in each session,
and then saves how far it came (its watermark), so that the next run reads only what is new."""

import fcntl
import hashlib
import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
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
from engram.store.protocol import Store

SHARDS = 64
"""States over which the watermarks of a harness are spread: saving one rewrites only its state."""
HARVEST, CHATS = "harvest", "import"
"""The namespaces of states: sessions of harnesses, and conversations of exports."""
DIGEST_BLOCK_BYTES = 4096
"""Bytes of a block that a digest covers: before the offset, and in what follows `FULLY_DIGESTED_BYTES` one of every `DIGEST_STRIDE_BYTES`."""
FULLY_DIGESTED_BYTES = 64 * 1024 * 1024
"""Bytes from the beginning that a digest covers completely; few transcripts have more."""
DIGEST_STRIDE_BYTES = 1024 * 1024
_COMPLETE_MARK = "2:"
"""Begins a digest of everything; an older one covers the first and the last block."""


@dataclass(frozen=True, slots=True)
class Watermark:
    """How far one session is staged.

    A watermark of a session is what the session looked like (size, times, inode), the offset up to which its facts are
    staged, and a digest of the bytes before it: a file that was truncated, replaced or rewritten is noticed, and read
    again from its beginning. Rows of a database have no order to rely on (clocks go back, parts are added later): a
    session that changed there is read again as a whole.
    """

    stamp: tuple[int, ...] = ()
    """What the session looked like; () if it was left in the middle."""
    offset: int = 0
    digest: str = ""

    @classmethod
    def of(cls, session: StoredSession, offset: int, *, is_complete: bool) -> Self:
        """The watermark of a session that was read up to an offset. Raises `OSError` if its file is gone."""
        digest = digest_before(session.path, offset) if session.grows else ""
        return cls(session.stamp if is_complete else (), offset, digest)

    @classmethod
    def from_json(cls, value: Any) -> Self | None:
        """A watermark as it was stored; None if it cannot be used."""
        match value:
            case [list(stamp), int(offset), str(digest)] if offset >= 0 and all(isinstance(one, int) for one in stamp):
                return cls(tuple(stamp), offset, digest)
        return None

    def to_json(self) -> list[Any]:
        """As JSON."""
        return [list(self.stamp), self.offset, self.digest]

    def start(self, session: StoredSession) -> int:
        """Where to go on reading: the offset, or 0 if the session is not what was read before, or may have changed anywhere."""
        if not session.grows:
            return 0
        size, _, inode = session.stamp[:3]
        if size < self.offset or (self.stamp and self.stamp[2] != inode):
            return 0
        if len(self.stamp) == len(session.stamp) and self.stamp[0] == size:
            return 0  # it was written to, and nothing was appended
        digest = digest_before if self.digest.startswith(_COMPLETE_MARK) else _digest_of_ends
        return self.offset if digest(session.path, self.offset) == self.digest else 0


@dataclass(slots=True)
class Watermarks:
    """The watermarks of one harness, or of one format of chats, as the store has them."""

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
        """The watermark of the session of this name."""
        return self._known.get(digest_of(name))

    def is_unchanged(self, session: StoredSession) -> bool:
        """Whether a session is as it was when all of it was staged."""
        mark = self.of(session)
        return mark is not None and mark.stamp == session.stamp

    def note(self, session: StoredSession, mark: Watermark) -> int:
        """Remember how far a session is staged, to be saved; returns how many are unsaved."""
        return self.note_named(session.name, mark)

    def note_named(self, name: str, mark: Watermark) -> int:
        """Remember how far the session of this name is staged, to be saved; returns how many are unsaved."""
        key = digest_of(name)
        self._known[key] = self._unsaved[key] = mark
        return len(self._unsaved)

    def save(self) -> None:
        """Save what was noted; durable when it returns."""
        shards: defaultdict[int, dict[str, Any]] = defaultdict(dict)
        for key, mark in self._unsaved.items():
            shards[int(key[:4], 16) % SHARDS][key] = mark.to_json()
        for shard, marks in sorted(shards.items()):
            self.store.change_state(self._state(shard), lambda value, marks=marks: {**value, **marks})  # type: ignore[misc]
        self._unsaved.clear()

    def _state(self, shard: int) -> str:
        return f"{self.namespace}/{self.harness}/{shard:02}"


def digest_before(path: Path, offset: int) -> str:
    """A digest of what a file has before an offset; of a very long one, of samples of its later part."""
    found = hashlib.sha256()
    with reading(path) as file:
        for begin in range(0, min(offset, FULLY_DIGESTED_BYTES), DIGEST_STRIDE_BYTES):
            found.update(file.read(min(DIGEST_STRIDE_BYTES, offset - begin)))
        for begin in (*range(FULLY_DIGESTED_BYTES, offset, DIGEST_STRIDE_BYTES), max(0, offset - DIGEST_BLOCK_BYTES)):
            file.seek(begin)
            found.update(file.read(min(DIGEST_BLOCK_BYTES, offset - begin)))
    return f"{_COMPLETE_MARK}{found.hexdigest()[:20]}"


def _digest_of_ends(path: Path, offset: int) -> str:
    """The digest that was stored before: of the first bytes of a file and of those just before an offset."""
    with reading(path) as file:
        head = file.read(min(DIGEST_BLOCK_BYTES, offset))
        file.seek(max(0, offset - DIGEST_BLOCK_BYTES))
        tail = file.read(min(DIGEST_BLOCK_BYTES, offset))
    return hashlib.sha256(head + tail).hexdigest()[:20]


def digest_of(text: str) -> str:
    """A digest that stands for a name in a state, which holds no text of users."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:20]


ALL = "all"
SAVED_AFTER = 64
"""Sessions after which the watermarks are saved; a crash repeats at most the work since, and proposes nothing twice."""
SAVED_BYTES = 32 * 1024 * 1024
"""Bytes of one transcript after which its watermark is saved."""

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class HarvestSelection:
    """Which sessions are harvested."""

    harnesses: Sequence[str]
    root: Path | None = None
    """A folder or file to read instead of the harness's own store."""
    since: datetime | None = None
    """Only sessions that were active since then."""
    project: Path | None = None
    """Only sessions in this folder and below it."""
    is_mixed: bool = False
    """Whether files of several harnesses may be in the folder, so that each file is looked at."""


@dataclass(slots=True)
class HarvestRun:
    """One run over the stores of harnesses."""

    store: Store
    harvester: Harvester
    progress: Progress

    def harvest(self, selection: HarvestSelection) -> HarvestReport:
        """Stage what is new in the wanted sessions, oldest first, and report it."""
        report = HarvestReport()
        found = [self._harvest(harness, selection, report) for harness in selection.harnesses]
        if selection.root is None and not any(found):
            report.warnings += (
                f"No {find_agent(harness).title} sessions in {_in_home(default_root(harness))}"
                for harness in selection.harnesses
            )
        return report

    def _harvest(self, harness: str, selection: HarvestSelection, report: HarvestReport) -> bool:
        """Harvest the sessions of one harness; whether it has any."""
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
            # Whatever one session contains, the others are read; a store that fails would fail for them, too.
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
    """Saves the watermark of a very long transcript while it is read."""

    session: StoredSession
    marks: Watermarks
    saved: int

    def save_progress(self, position: int) -> None:
        """Save it, if much was read since it was saved last."""
        if self.session.grows and position - self.saved >= SAVED_BYTES:
            self.marks.note(self.session, Watermark.of(self.session, position, is_complete=False))
            self.marks.save()
            self.saved = position


def _find_sessions(reader: Reader, root: Path, problems: Problems) -> list[StoredSession]:
    """The sessions below a folder, as far as they are found; what stops the search is reported."""
    found: list[StoredSession] = []
    try:
        found.extend(reader.sessions(root, problems))
    except Exception as error:
        problems.add(root, error)
    return found


def _is_selected(session: StoredSession, reader: Reader, selection: HarvestSelection) -> bool:
    """Whether a session is to be harvested. One that cannot be read is, so that the reason is reported."""
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
    """The harnesses named, or those whose sessions a path holds. Raises `InvalidInput` for an unknown one or an unclear path."""
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
    """A path as people write it: with `~` for their home."""
    home = home_of()
    return f"~/{path.relative_to(home)}" if path.is_relative_to(home) else str(path)


TRANSCRIPT_SUFFIX = ".jsonl"


def harvest_spooled(run: HarvestRun, root: Path, seconds: float | None = None) -> HarvestReport:
    """Harvest the waiting sessions of a home, at least one; what is not reached in time waits on."""
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
    """Whether a path can be a transcript; one that no file can have, such as a name that is too long, is none."""
    try:
        return path.is_absolute() and path.suffix == TRANSCRIPT_SUFFIX and path.is_file()
    except (OSError, ValueError):
        return False


LOCK_NAME = "harvest.lock"
"""The file below `state/`."""
_LOCK_PAUSE = 0.1


@contextmanager
def harvest_lock(root: Path, *, seconds: float) -> Iterator[bool]:
    """Harvest alone; false in the block if another process still harvests after so many seconds. The lock ends with its process.

    Two that read the same sessions would propose nothing twice, but each would report all of it. Where the home cannot be written, or its
    file system has no locks, that is what happens.
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
