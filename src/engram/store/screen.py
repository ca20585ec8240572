"""The one place every stored text passes: whatever a backend is about to write, it hands to its screen first.

The rules (what is a secret, what is refused and what is redacted) live above the store; a client puts them in with
`store.screen = …`. A store that nobody gave a screen, as in a test of a backend, writes what it is told.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

from engram.model.event import Event, Session
from engram.model.memory import Memory
from engram.model.task import Checkpoint, Job, TaskRun
from engram.model.usage import Use
from engram.store.protocol import JobFactory, NewEvent, no_jobs

__all__ = ["LATEST", "Screen", "Unscreened", "screened_jobs"]

LATEST = 16
"""How many of a ledger's last events a screen may look at: a secret can be cut in two between events."""


class Screen(Protocol):
    """Judges records before they are written: returns them as they may be stored, or raises."""

    def decision(self, actor: str, reason: str, session: str) -> str:
        """The reason of a decision as it may be stored."""

    def memories(self, memories: Sequence[Memory], before: Callable[[str], Memory | None]) -> None:
        """Raise where a memory may not be stored. `before` gives what the store held of it until now."""

    def use(self, use: Use) -> Use:
        """A use of memories."""

    def events(
        self, ledger: str, events: Sequence[NewEvent], latest: Callable[[], Sequence[Event]], *, scope: str = ""
    ) -> list[NewEvent]:
        """New events of a ledger, and the scope of their writer. `latest` gives the last few that are in it."""

    def session(self, session: Session) -> Session:
        """A session."""

    def task(self, task: TaskRun) -> TaskRun:
        """A task."""

    def checkpoint(self, checkpoint: Checkpoint) -> Checkpoint:
        """A checkpoint."""

    def job(self, job: Job) -> Job:
        """A job."""


class Unscreened:
    """Lets everything pass."""

    def decision(self, actor: str, reason: str, session: str) -> str:
        """The reason as it is."""
        return reason

    def memories(self, memories: Sequence[Memory], before: Callable[[str], Memory | None]) -> None:
        """Nothing is refused."""

    def use(self, use: Use) -> Use:
        """The use as it is."""
        return use

    def events(
        self, ledger: str, events: Sequence[NewEvent], latest: Callable[[], Sequence[Event]], *, scope: str = ""
    ) -> list[NewEvent]:
        """The events as they are."""
        return list(events)

    def session(self, session: Session) -> Session:
        """The session as it is."""
        return session

    def task(self, task: TaskRun) -> TaskRun:
        """The task as it is."""
        return task

    def checkpoint(self, checkpoint: Checkpoint) -> Checkpoint:
        """The checkpoint as it is."""
        return checkpoint

    def job(self, job: Job) -> Job:
        """The job as it is."""
        return job


def screened_jobs(screen: Screen, jobs: JobFactory) -> JobFactory:
    """The jobs that follow on new events, each screened."""
    return jobs if jobs is no_jobs else lambda events: [screen.job(job) for job in jobs(events)]
