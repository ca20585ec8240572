"""A harvest of the harnesses' stores: finds their sessions, stages what is new in each, and then saves how far it came."""

from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path

from engram.agents.agent import home_of
from engram.agents.registry import agents_with_sessions, find_agent
from engram.agents.transcripts.session import Problems, Reader, Reading, StoredSession
from engram.agents.transcripts.stores import default_root, detect_agents, find_writer, reader_of
from engram.capture.harvest import Harvester, HarvestReport
from engram.capture.transcripts.watermarks import Watermark, Watermarks
from engram.model.errors import InvalidInput, StoreCorrupt, StoreError
from engram.model.lazy import dataclass
from engram.store.protocol import Store

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
