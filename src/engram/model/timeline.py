"""One entry of a timeline."""

from datetime import datetime

from engram.model.lazy import dataclass


@dataclass(frozen=True, slots=True)
class TimelineEntry:
    """A fact or an event, and when it was so or happened."""

    at: datetime
    kind: str
    """`memory`, `event` or `session`."""
    id: str
    text: str
    status: str = ""
    """A memory's status."""
    note: str = ""
    """What replaced a memory, who said an event, or that a session ended."""
