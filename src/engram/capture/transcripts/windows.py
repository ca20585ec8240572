"""Cuts the stream of a transcript's turns into windows that are judged at once, each with the turns before it."""

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence

from engram.capture.transcripts.transcript import TranscriptTurn
from engram.model.lazy import dataclass, replace

CONTEXT = 6
"""Turns before a window that explain what it refers to."""
WINDOW = 8
"""The user's turns of a window."""
LONGEST_TURN = 100_000
"""Characters of a turn that are read; a longer one is a pasted document."""
LONGEST_ANSWER = 1_000
"""Characters at the end of an assistant's turn that are read to understand the next one."""


@dataclass(frozen=True, slots=True)
class Window:
    """Turns of the user and the assistant, and those before them, which only explain."""

    before: Sequence[TranscriptTurn]
    turns: Sequence[TranscriptTurn]

    @property
    def position(self) -> int:
        """How far the transcript is read with this window."""
        return max(turn.position for turn in self.turns)


def windows(
    turns: Iterable[TranscriptTurn], start: int, day_of: Callable[[TranscriptTurn], Hashable]
) -> Iterator[Window]:
    """The turns after `start`, in windows of one day; a long turn is cut, and what tools returned is left out."""
    before: deque[TranscriptTurn] = deque(maxlen=CONTEXT)
    gathered: list[TranscriptTurn] = []
    for turn in filter(None, map(_bounded, turns)):
        if gathered and (_is_full(gathered, turn) or day_of(turn) != day_of(gathered[0])):
            yield Window(tuple(before), gathered)
            before.extend(gathered)
            gathered = []
        if start and turn.position <= start:
            before.append(turn)
        else:
            gathered.append(turn)
    if gathered:
        yield Window(tuple(before), gathered)


def _is_full(gathered: Sequence[TranscriptTurn], turn: TranscriptTurn) -> bool:
    """Whether a turn of the user would be one too many. An answer is added: it may end in the question the next one answers."""
    return turn.role == "user" and sum(one.role == "user" for one in gathered) >= WINDOW


def _bounded(turn: TranscriptTurn) -> TranscriptTurn | None:
    if turn.role == "tool" or not turn.content.strip():
        return None
    if turn.role == "user":
        return replace(turn, content=turn.content[:LONGEST_TURN]) if len(turn.content) > LONGEST_TURN else turn
    return replace(turn, content=turn.content[-LONGEST_ANSWER:]) if len(turn.content) > LONGEST_ANSWER else turn
