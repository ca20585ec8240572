"""A use of memories, as the usage log keeps it."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Use:
    """One use of some memories: injected, recalled, derived again, or rated with a signal.

    `position` is where the log keeps it; it is filled when read back.
    """

    kind: str
    ids: tuple[str, ...]
    at: datetime
    session: str = ""
    signal: str = ""
    position: int = 0
