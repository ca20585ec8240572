"""Imports chat exports: statements to a chat assistant are harvested like statements to a coding agent."""

from collections.abc import Sequence
from pathlib import Path

from engram.agents.transcripts.session import Transcript, TranscriptTurn, problem_of
from engram.capture.harvest import Harvester, HarvestReport
from engram.capture.import_source import unread_files
from engram.capture.transcripts.chat_exports import CHAT_FORMATS, chat_format_of, read_chats
from engram.capture.transcripts.harvest_run import CHATS, Watermark, Watermarks, digest_of
from engram.model.errors import InvalidInput, NotFound, StoreCorrupt, StoreError, UnreadableData
from engram.model.lazy import dataclass, replace
from engram.store.protocol import Progress, Store

SAVED_AFTER = 64
"""The number of conversations after which progress is saved."""


@dataclass(slots=True)
class ChatImport:
    """One import of an export. A conversation that was imported before is continued from its previous end."""

    store: Store
    harvester: Harvester
    progress: Progress

    def take(self, path: Path, format_: str = "") -> HarvestReport:
        """Propose the facts of every conversation, and report each. Raises `NotFound` and `InvalidInput`.

        A truncated export is read up to its end; the report names it, and the other files in a folder.
        """
        if not path.exists():
            raise NotFound(f"{path} does not exist")
        name = format_ or chat_format_of(path)
        if name not in CHAT_FORMATS:
            raise InvalidInput(f"{path} is no export of {' or '.join(CHAT_FORMATS)}")
        marks = Watermarks.load(self.store, name, CHATS)
        report = HarvestReport()
        try:
            for number, transcript in enumerate(read_chats(path, name, lambda *what: _problem(report, *what))):
                self.progress("Importing", number, 0)
                if self._take_safely(transcript, f"import:{path.name}", report, marks) >= SAVED_AFTER:
                    self._save(marks)
        except UnreadableData as error:
            if not report.sessions and not report.unchanged:
                raise
            report.problems.append(str(error))
        finally:
            self._save(marks)
        if path.is_dir():
            own = path / "conversations.json"
            report.problems += [f"not read: {line}" for line in unread_files(path, lambda file: file == own)]
        return report

    def _take_safely(self, transcript: Transcript, source: str, report: HarvestReport, marks: Watermarks) -> int:
        """Process one conversation; a bad one does not stop the others, and only an error of the store stops the import."""
        try:
            return self._take(transcript, source, report, marks)
        except Exception as error:
            if isinstance(error, StoreError) and not isinstance(error, StoreCorrupt):
                raise
            report.problems.append(f"{transcript.session}: {problem_of(error)}")
            return 0

    def _take(self, transcript: Transcript, source: str, report: HarvestReport, marks: Watermarks) -> int:
        """Stage a conversation from its previous end; returns the number of unsaved watermarks."""
        turns = list(transcript.turns)
        start = _start(marks.find_by_name(transcript.session), turns)
        if start >= len(turns):
            report.unchanged += 1
            return 0
        if why := self.harvester.reason_to_distrust(source, transcript.session):
            report.add(HarvestReport(warnings=[why]))
            return 0
        if self.harvester.is_full(source):
            report.add(HarvestReport(postponed={source: 1}))
            return 0
        found = self.harvester.stage(replace(transcript, turns=turns, start=start), source=source)
        report.add(found)
        end = found.position if found.postponed else len(turns)
        mark = Watermark(offset=end, digest=digest_of(turns[end - 1].key))
        return marks.note_named(transcript.session, mark) if end else 0

    def _save(self, marks: Watermarks) -> None:
        if not self.harvester.dry_run:
            marks.save()


def _start(mark: Watermark | None, turns: Sequence[TranscriptTurn]) -> int:
    """The number of turns already staged; 0 if the conversation took another branch since."""
    position = mark.offset if mark is not None else 0
    is_same = mark is not None and 0 < position <= len(turns) and digest_of(turns[position - 1].key) == mark.digest
    return position if is_same else 0


def _problem(report: HarvestReport, what: str, reason: str) -> None:
    report.problems.append(f"{what}: {reason}")
