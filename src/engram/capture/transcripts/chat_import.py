"""An import of a chat export: what a person told a chat assistant is harvested like what they told a coding agent."""

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path

from engram.capture.harvest import Harvester, HarvestReport
from engram.capture.transcripts.chat_exports import CHAT_FORMATS, chat_format_of, read_chats
from engram.capture.transcripts.transcript import Transcript, TranscriptTurn
from engram.model.errors import InvalidInput, NotFound, StoreCorrupt
from engram.model.lazy import dataclass, field, replace
from engram.store.protocol import Store

SHARDS = 16
"""States over which the conversations of a format are spread."""
SAVED_AFTER = 64
"""Conversations after which it is saved how far they are staged."""
Marks = dict[str, tuple[int, str]]


@dataclass(slots=True)
class ChatImport:
    """One import of an export. A conversation that was imported before is read on from where it had ended."""

    store: Store
    harvester: Harvester
    progress: Callable[[str, int, int], None]
    known: Marks = field(default_factory=dict)
    """How far each conversation is staged, by a digest of its session: the number of turns, and a digest of the last one's key."""
    unsaved: Marks = field(default_factory=dict)

    def take(self, path: Path, format_: str = "") -> HarvestReport:
        """Propose the facts of every conversation, and report each. Raises `NotFound`, `InvalidInput` and `StoreCorrupt`.

        An export that ends in the middle is read up to there; the report names it.
        """
        if not path.exists():
            raise NotFound(f"{path} does not exist")
        name = format_ or chat_format_of(path)
        if name not in CHAT_FORMATS:
            raise InvalidInput(f"{path} is no export of {' or '.join(CHAT_FORMATS)}")
        self.known = _loaded(self.store, name)
        report = HarvestReport()
        try:
            for number, transcript in enumerate(read_chats(path, name, lambda *what: _problem(report, *what))):
                self.progress("Importing", number, 0)
                self._take(transcript, f"import:{path.name}", report)
                if len(self.unsaved) >= SAVED_AFTER:
                    self._save(name)
        except StoreCorrupt as error:
            if not report.sessions and not report.unchanged:
                raise
            report.problems.append(str(error))
        finally:
            self._save(name)
        return report

    def _take(self, transcript: Transcript, source: str, report: HarvestReport) -> None:
        turns = list(transcript.turns)
        start = self._start(transcript.session, turns)
        if start >= len(turns):
            report.unchanged += 1
            return
        if self.harvester.is_full(source):
            report.add(HarvestReport(postponed={source: 1}))
            return
        found = self.harvester.stage(replace(transcript, turns=turns, start=start), source=source)
        end = found.position if found.postponed else len(turns)
        if end:
            key = _digest(transcript.session)
            self.known[key] = self.unsaved[key] = (end, _digest(turns[end - 1].key))
        report.add(found)

    def _start(self, session: str, turns: Sequence[TranscriptTurn]) -> int:
        """How many turns were staged before; 0 if the conversation went another way since."""
        position, digest = self.known.get(_digest(session), (0, ""))
        is_same = 0 < position <= len(turns) and _digest(turns[position - 1].key) == digest
        return position if is_same else 0

    def _save(self, name: str) -> None:
        shards: dict[str, dict[str, list[int | str]]] = {}
        for key, (position, digest) in self.unsaved.items():
            shards.setdefault(_state(name, int(key[:4], 16) % SHARDS), {})[key] = [position, digest]
        self.unsaved.clear()
        if not self.harvester.dry_run:
            for state, marks in sorted(shards.items()):
                self.store.change_state(state, lambda value, marks=marks: {**value, **marks})  # type: ignore[misc]


def _problem(report: HarvestReport, what: str, reason: str) -> None:
    report.problems.append(f"{what}: {reason}")


def _loaded(store: Store, name: str) -> Marks:
    marks: Marks = {}
    for shard in range(SHARDS):
        for key, value in store.state(_state(name, shard)).items():
            match value:
                case [int(position), str(digest)]:
                    marks[key] = position, digest
    return marks


def _state(name: str, shard: int) -> str:
    return f"import/{name}/{shard:02}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:20]
