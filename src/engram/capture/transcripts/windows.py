"""Cuts the stream of a transcript's turns into windows that are judged at once, each with the turns before it.
Pasted text (logs, traces, diffs, code: `data/pasted.txt`) is blanked out first.
"""

import re
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

from engram.agents.transcripts.records import read_sections
from engram.agents.transcripts.session import TranscriptTurn
from engram.gates.secrets.scan import redact
from engram.model.lazy import dataclass, replace
from engram.sessions.observations import make_storable

_DATA = Path(__file__).parent / "data" / "pasted.txt"
MAX_OUTPUT_LINES = 4_000
"""The number of tool output lines to remember; the latest are kept."""
MAX_RESULT_CHARS = 200_000
"""The number of characters of a tool's result to remember."""
_MIN_OUTPUT_CHARS = 24
"""Shorter lines may be equal by chance."""
_LOOKED_AT = 240
"""The number of characters at the start of a line that are checked; more would make a hostile line slow."""
_MAX_PASTED_GAP = 2
"""The most lines between two pasted ones that also count as pasted."""


class ToolOutputLines:
    """The latest lines of tool output. A person who pastes one did not write it."""

    __slots__ = ("_lines",)

    def __init__(self) -> None:
        self._lines: OrderedDict[int, None] = OrderedDict()

    def note(self, result: str) -> None:
        """Remember the lines of a tool's result."""
        for line in result[:MAX_RESULT_CHARS].splitlines():
            bare = line.strip()
            if len(bare) >= _MIN_OUTPUT_CHARS:
                self._lines[hash(bare)] = None
        while len(self._lines) > MAX_OUTPUT_LINES:
            self._lines.popitem(last=False)

    def __contains__(self, line: str) -> bool:
        bare = line.strip()
        return len(bare) >= _MIN_OUTPUT_CHARS and hash(bare) in self._lines


def pasted_lines(content: str, echoes: ToolOutputLines) -> list[bool]:
    """Whether each line of a turn was pasted.

    `data/pasted.txt` lists the beginnings of such lines. Fenced code, quoted lines and mails are removed later, when
    sentences are read (`extraction.clauses`).
    """
    lines = content.split("\n")
    pasted = [bool(_printed_pattern().match(line[:_LOOKED_AT])) or line in echoes for line in lines]
    places = [place for place, found in enumerate(pasted) if found]
    for one, other in pairwise(places):
        if other - one <= _MAX_PASTED_GAP + 1:
            pasted[one:other] = [True] * (other - one)
    return pasted


def own_words(content: str, pasted: Sequence[bool]) -> str:
    """The turn with its pasted lines blanked out; every other character keeps its position."""
    if not any(pasted):
        return content
    return "\n".join(map(_blank_pasted, content.split("\n"), pasted, [*pasted[1:], False]))


def _blank_pasted(line: str, is_pasted: bool, introduces: bool) -> str:
    """A line, blanked if it was pasted.

    A line that introduces pasted text ends with a full stop, because the person's own words follow.
    """
    if is_pasted:
        return "\n" * len(line)
    bare = line.rstrip()
    return f"{bare[:-1]}.{line[len(bare) :]}" if introduces and bare.endswith(":") else line


@lru_cache(maxsize=1)
def _printed_pattern() -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{pattern})" for pattern in read_sections(_DATA)["line"]))


MAX_CONTEXT_TURNS = 6
"""Turns before a window that explain what it refers to."""
MAX_WINDOW_TURNS = 8
"""The number of user turns in a window."""
MAX_TURN_CHARS = 100_000
"""The number of characters of a turn that are read; a longer turn is a pasted document."""
MAX_ANSWER_CHARS = 1_000
"""The number of characters at the end of an assistant's turn that are read to understand the next turn."""


@dataclass(frozen=True, slots=True)
class RedactedTurn:
    """A turn of the user or the assistant, with its secrets redacted before anything else reads it."""

    turn: TranscriptTurn
    words: str
    """The turn's content with pasted text blanked out; characters keep their positions."""

    @classmethod
    def of(cls, turn: TranscriptTurn, echoes: ToolOutputLines) -> "RedactedTurn":
        """The turn in the form that may be stored, cut if it is very long."""
        is_user = turn.role == "user"
        kept = turn.content[:MAX_TURN_CHARS] if is_user else turn.content[-MAX_ANSWER_CHARS:]
        content = make_storable(redact(kept)[0])
        return cls(replace(turn, content=content), _words(kept, content, echoes) if is_user else content)


def _words(raw: str, content: str, echoes: ToolOutputLines) -> str:
    """The person's own words in a turn. The raw text is compared with tool output, before its secrets are redacted."""
    pasted = pasted_lines(raw, echoes)
    if len(pasted) != content.count("\n") + 1:
        pasted = pasted_lines(content, echoes)
    return own_words(content, pasted)


@dataclass(frozen=True, slots=True)
class TurnWindow:
    """Turns that are judged together, and earlier turns for context only."""

    before: Sequence[RedactedTurn]
    turns: Sequence[RedactedTurn]

    @property
    def position(self) -> int:
        """The transcript position up to which this window reads."""
        return max(heard.turn.position for heard in self.turns)

    @property
    def user_turn_count(self) -> int:
        """The number of user turns in the window."""
        return sum(heard.turn.role == "user" for heard in self.turns)


def windows(
    turns: Iterable[TranscriptTurn], start: int, day_of: Callable[[TranscriptTurn], Hashable]
) -> Iterator[TurnWindow]:
    """The turns after `start`, in windows of one day. Tool output is only used to detect pasted text."""
    before: deque[RedactedTurn] = deque(maxlen=MAX_CONTEXT_TURNS)
    gathered: list[RedactedTurn] = []
    for heard in _redact_turns(turns):
        turn = heard.turn
        if gathered and (_is_full(gathered, turn) or day_of(turn) != day_of(gathered[0].turn)):
            yield TurnWindow(tuple(before), gathered)
            before.extend(gathered)
            gathered = []
        if start and turn.position <= start:
            before.append(heard)
        else:
            gathered.append(heard)
    if gathered:
        yield TurnWindow(tuple(before), gathered)


def _redact_turns(turns: Iterable[TranscriptTurn]) -> Iterator[RedactedTurn]:
    """The user's turns, each after the assistant's last one before it."""
    echoes, answer = ToolOutputLines(), None
    for turn in turns:
        if turn.role == "tool":
            echoes.note(turn.content)
        elif turn.role == "assistant":
            answer = turn
        elif turn.content.strip():
            if answer is not None:
                yield RedactedTurn.of(answer, echoes)
                answer = None
            yield RedactedTurn.of(turn, echoes)


def _is_full(gathered: Sequence[RedactedTurn], turn: TranscriptTurn) -> bool:
    """Whether the window has no room for another user turn.

    An assistant's turn still fits: it may end in a question that the next one answers.
    """
    return turn.role == "user" and sum(heard.turn.role == "user" for heard in gathered) >= MAX_WINDOW_TURNS
