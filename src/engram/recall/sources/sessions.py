"""The sessions of coding agents in this project, found by the harvest's readers and read from their ends."""

from collections import deque
from collections.abc import Collection
from datetime import datetime
from pathlib import Path

from engram.agents.agent import CodingAgent, agents_with_sessions, find_agent, session_store
from engram.agents.sources.documents import Source
from engram.agents.sources.places import SourcePlaces
from engram.agents.transcripts.session import Problems, StoredSession, TranscriptTurn, reader_of
from engram.model.lazy import dataclass
from engram.text.display import cut, safe_word

MAX_READ_BYTES = 51_200
"""The number of bytes of turns, from the end of a session, that are read for a question."""
TRANSCRIPT_TAIL_BYTES = 2 * 1024 * 1024
"""The number of bytes at the end of a transcript that are searched for turns; most of a transcript is tool output."""
MAX_TURN_CHARACTERS = 2_000
"""Characters of one turn that are kept."""
MAX_RESULT_CHARACTERS = 120
"""The maximum number of characters kept of the first line of a tool's result."""
_BEYOND, _SEARCHED = 400, 4_000


@dataclass(frozen=True, slots=True)
class SpokenLine:
    """One turn as it may be shown: redacted and cut."""

    role: str
    text: str
    at: datetime | None


def find_sessions(places: SourcePlaces, problems: Problems) -> list[Source]:
    """The sessions that may belong to the project, newest first. If that is unknown before reading a session, `is_here`
    decides.
    """
    found: list[StoredSession] = []
    for agent in agents_with_sessions():
        reader = reader_of(agent.name)
        for root in _roots(agent, places):
            try:
                found.extend(reader.sessions(root, problems))
            except Exception as error:
                problems.add(root, error)
    here = [one for one in found if not one.directory or places.is_in_project(one.directory)]
    here.sort(key=lambda one: (one.modified, one.name), reverse=True)
    return [Source("session", one.name, one.path, one.stamp, one.modified, _title(one), one) for one in here]


def _roots(agent: CodingAgent, places: SourcePlaces) -> list[Path]:
    """The folders in which an agent may keep sessions of the project."""
    find_folders = agent.load_finders().session_folders
    if find_folders is not None:
        return find_folders(places)
    return [session_store(agent.name).find_root(places.home, places.environment)]


def _title(session: StoredSession) -> str:
    return f"{find_agent(session.harness).title} session {_id_of(session)}"


def short_name(source: Source) -> str:
    """A short handle for a session: the beginning of its id, or the end of an id that begins with a time."""
    assert source.session is not None
    name = _id_of(source.session)
    return safe_word(name[-8:] if session_store(source.session.harness).has_leading_time else name[:8])


def _id_of(session: StoredSession) -> str:
    name = session.path.stem if session.grows else session.name.rpartition("#")[2] or session.path.stem
    prefix = session_store(session.harness).prefix
    return name.rpartition(prefix)[2] if prefix else name


def spoken_lines(source: Source, most: int = MAX_READ_BYTES) -> tuple[str, list[SpokenLine]]:
    """The folder of a session and its last turns within a number of bytes, in order; the last turn is included whatever
    its size.

    Raises `OSError` if the session cannot be read.
    """
    assert source.session is not None
    reader = reader_of(source.session.harness)
    size = source.session.stamp[0] if source.session.grows else 0
    reading = reader.read(source.session, max(0, size - TRANSCRIPT_TAIL_BYTES))
    kept: deque[tuple[TranscriptTurn, str]] = deque()
    used = 0
    for turn in reading.transcript.turns:
        if text := _beginning(turn):
            kept.append((turn, text))
            used += _size(turn, text)
            while used > most and len(kept) > 1:
                used -= _size(*kept.popleft())
    return reading.transcript.directory, _redact_turns(kept)


def is_here(source: Source, directory: str, places: SourcePlaces) -> bool:
    """Whether a session belongs to the project: by its directory or, if it names none, by the folder that contains
    it.
    """
    if directory:
        return places.is_in_project(directory)
    assert source.session is not None
    find_folders = find_agent(source.session.harness).load_finders().own_folders
    return find_folders is not None and source.path.parent in find_folders(places)


def _beginning(turn: TranscriptTurn) -> str:
    """The part of a turn that may be shown, and a little more, because a secret at the cut is recognised only as a
    whole.
    """
    if turn.role == "tool":
        first = next((line.strip() for line in turn.content[:_SEARCHED].splitlines() if line.strip()), "")
        return first[: MAX_RESULT_CHARACTERS + _BEYOND]
    return turn.content[: MAX_TURN_CHARACTERS + _BEYOND + _SEARCHED].strip()[: MAX_TURN_CHARACTERS + _BEYOND]


def _size(turn: TranscriptTurn, text: str) -> int:
    longest = MAX_RESULT_CHARACTERS if turn.role == "tool" else MAX_TURN_CHARACTERS
    return len(text[:longest].encode("utf-8", "replace")) + len(turn.role) + 2


def _redact_turns(kept: Collection[tuple[TranscriptTurn, str]]) -> list[SpokenLine]:
    """The turns with secrets redacted. All are searched at once, which costs half as much as searching each."""
    from engram.gates.proposal import RECORD_SEPARATOR
    from engram.gates.secrets.scan import redact
    from engram.sessions.observations import make_storable

    texts = redact(RECORD_SEPARATOR.join(text for _, text in kept))[0].split(RECORD_SEPARATOR)
    if len(texts) != len(kept):
        texts = [redact(text)[0] for _, text in kept]
    lines = []
    for (turn, _), text in zip(kept, texts, strict=True):
        longest = MAX_RESULT_CHARACTERS if turn.role == "tool" else MAX_TURN_CHARACTERS
        lines.append(SpokenLine(turn.role, make_storable(cut(text, longest)), turn.at))
    return lines
