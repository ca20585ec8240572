"""Events to append to a ledger, and the jobs to enqueue together with them."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from engram.model.event import Event
from engram.model.lazy import dataclass, field
from engram.model.task import Job


@dataclass(frozen=True, slots=True)
class NewEvent:
    """An event to append; the store adds its id, number and digest."""

    role: str
    content: str
    at: datetime
    event_type: str = "message"
    task: str = ""
    key: str = ""
    payload: Mapping[str, Any] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)


JobFactory = Callable[[Sequence[Event]], Sequence[Job]]
"""Makes the jobs to enqueue together with new events."""


def no_jobs(events: Sequence[Event]) -> Sequence[Job]:
    """No jobs."""
    return ()
