"""A source: one file, or one session, that another tool or a person wrote, and the passages it is indexed by."""

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from engram.model.lazy import dataclass

if TYPE_CHECKING:
    from engram.agents.transcripts.session import StoredSession

SourceKind = Literal["auto-memory", "session", "skill", "instructions", "rule"]


@dataclass(frozen=True, slots=True)
class Source:
    """Something to read, as it was found; `stamp` changes whenever its content does."""

    kind: SourceKind
    name: str
    """Unique among all sources: the path of its file, or of its database and the session's id."""
    path: Path
    stamp: tuple[int, ...]
    modified: datetime
    title: str = ""
    """What it is called: the name of a skill, say; "" for a file that is named by its path."""
    session: "StoredSession | None" = None


@dataclass(frozen=True, slots=True)
class SourcePassage:
    """A part of a source, as it is indexed: redacted text, and where it is."""

    text: str
    section: str = ""
    """The headings above it, outermost first."""
    time: datetime | None = None
    """When it was said; None for what has no time."""
    about: str = ""
    """Words that it is found by, too, such as the description of its skill."""


@dataclass(frozen=True, slots=True)
class SourceContent:
    """The passages of a source, and what was learned about it while it was read."""

    passages: tuple[SourcePassage, ...]
    title: str = ""
    directory: str = ""
    """The folder a session ran in; "" if it does not say, or is no session."""


@dataclass(frozen=True, slots=True)
class SourceHit:
    """A passage that is about a question."""

    n: int
    source: Source
    passage: SourcePassage
    score: float
    relevance: float
