"""A conversation of a person with an agent or a chat, in the one form that every reader yields."""

from collections.abc import Iterable
from datetime import datetime
from typing import Literal

from engram.model.lazy import dataclass
from engram.text.display import safe_word

Role = Literal["user", "assistant", "tool"]
_LONGEST_NAME = 80


@dataclass(frozen=True, slots=True)
class TranscriptTurn:
    """One turn. Only what the user says is read for facts; the rest explains what it refers to."""

    role: Role
    content: str
    at: datetime | None
    """When it was said; None if the transcript does not say."""
    key: str
    """Unique in its session, and the same each time the transcript is read."""
    position: int = 0
    """How far the transcript is read with this turn; a reader can go on from there. 0 if it cannot."""


@dataclass(frozen=True, slots=True)
class Transcript:
    """A session and its turns, in order. `turns` may be read only once: a long transcript is never held in memory."""

    harness: str
    """claude-code, codex, opencode, or the name of a chat export's format."""
    project: str
    """The project's name, as it is shown in a memory's source."""
    directory: str
    """The absolute path of the folder the agent worked in; "" if there was none."""
    session: str
    path: str
    """The file it was read from."""
    turns: Iterable[TranscriptTurn]
    remote: str = ""
    """The address of the repository, if the transcript names it; the folder may be gone by now."""
    start: int = 0
    """Turns up to this position were harvested before; they only explain what the others refer to."""

    @property
    def source(self) -> str:
        """The source of what is said in it: `harness:<harness>:<project>`."""
        return (
            f"harness:{self.harness}:{safe_word(self.project[:_LONGEST_NAME])}"
            if self.project
            else f"harness:{self.harness}"
        )
