"""Cuts the stream of a transcript's turns into windows that are judged at once, each with the turns before it.
What is not the person's own (pasted logs, traces, diffs, code: `data/pasted.txt`) is blanked out before."""

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
"""Lines that tools returned which are remembered, the latest ones."""
MAX_RESULT_CHARS = 200_000
"""Characters of a tool's result that are remembered."""
_MIN_OUTPUT_CHARS = 24
"""Characters; a shorter line may be the same by chance."""
_LOOKED_AT = 240
"""Characters at the beginning of a line that are looked at; a hostile line could make more of them slow."""
_MAX_PASTED_GAP = 2
"""Lines between two pasted ones that belong to what was pasted."""


class ToolOutputLines:
    """The lines that tools returned lately. A person who pastes one did not say it."""

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
    """For each line of a turn, whether it was pasted.

    `data/pasted.txt` lists how such lines begin. Fenced code, quoted lines and mails are left out where sentences are
    read (`extraction.clauses`).
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
    """A line, blanked if it was pasted. One that introduces what was pasted ends here: what comes after it is the person's again."""
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
"""The user's turns of a window."""
MAX_TURN_CHARS = 100_000
"""Characters of a turn that are read; a longer one is a pasted document."""
MAX_ANSWER_CHARS = 1_000
"""Characters at the end of an assistant's turn that are read to understand the next one."""


@dataclass(frozen=True, slots=True)
class RedactedTurn:
    """A turn of the user or the assistant, with its secrets redacted before anything else reads it."""

    turn: TranscriptTurn
    words: str
    """The turn's content without what was pasted; every character has its place in the content."""

    @classmethod
    def of(cls, turn: TranscriptTurn, echoes: ToolOutputLines) -> "RedactedTurn":
        """A turn as it may be stored, cut if it is very long."""
        is_user = turn.role == "user"
        kept = turn.content[:MAX_TURN_CHARS] if is_user else turn.content[-MAX_ANSWER_CHARS:]
        content = make_storable(redact(kept)[0])
        return cls(replace(turn, content=content), _words(kept, content, echoes) if is_user else content)


def _words(raw: str, content: str, echoes: ToolOutputLines) -> str:
    """The words of a turn that are the person's own. What a tool returned is compared with it as it was, before its secrets were redacted."""
    pasted = pasted_lines(raw, echoes)
    if len(pasted) != content.count("\n") + 1:
        pasted = pasted_lines(content, echoes)
    return own_words(content, pasted)


@dataclass(frozen=True, slots=True)
class TurnWindow:
    """Turns that are judged together, and those before them, which only explain."""

    before: Sequence[RedactedTurn]
    turns: Sequence[RedactedTurn]

    @property
    def position(self) -> int:
        """How far the transcript is read with this window."""
        return max(heard.turn.position for heard in self.turns)

    @property
    def user_turn_count(self) -> int:
        """How many of its turns are the user's."""
        return sum(heard.turn.role == "user" for heard in self.turns)


def windows(
    turns: Iterable[TranscriptTurn], start: int, day_of: Callable[[TranscriptTurn], Hashable]
) -> Iterator[TurnWindow]:
    """The turns after `start`, in windows of one day. What tools returned is only compared with what the user pastes."""
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
    """Whether a turn of the user would be one too many. An answer is added: it may end in the question the next one answers."""
    return turn.role == "user" and sum(heard.turn.role == "user" for heard in gathered) >= MAX_WINDOW_TURNS
