"""A use of memories, as the usage log records it."""

from datetime import datetime

from engram.model.lazy import dataclass

RATED = "rated"
RATED_BY_PERSON = "rated_by_person"
"""A rating of somebody at a terminal, or whom a program vouches for as one."""


@dataclass(frozen=True, slots=True)
class Use:
    """One use of some memories: injected, recalled, derived again, or rated with a signal.

    `position` is its place in the log, set when it is read back.
    """

    kind: str
    ids: tuple[str, ...]
    at: datetime
    session: str = ""
    signal: str = ""
    position: int = 0
