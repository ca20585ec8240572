"""The secrets' screen of an open memory, loaded with the first record that is written: recalling needs no gates."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from engram.store.screen import Unscreened

if TYPE_CHECKING:
    from engram.gates.secrets.screen import SecretScreen
    from engram.model.event import Event, Session
    from engram.model.memory import Memory
    from engram.model.task import Checkpoint, Job, TaskRun
    from engram.model.usage import Use
    from engram.store.protocol import NewEvent


class DeferredScreen(Unscreened):
    """Hands every record to the secrets' screen; a use without a session holds no text of anybody's."""

    def decision(self, actor: str, reason: str, session: str) -> str:
        """The reason of a decision, redacted."""
        return _screen().decision(actor, reason, session)

    def memories(self, memories: "Sequence[Memory]", before: "Callable[[str], Memory | None]") -> None:
        """Raise for a memory that holds a secret."""
        _screen().memories(memories, before)

    def use(self, use: "Use") -> "Use":
        """A use; its session is a name."""
        return _screen().use(use) if use.session else use

    def events(
        self, ledger: str, events: "Sequence[NewEvent]", latest: "Callable[[], Sequence[Event]]", *, scope: str = ""
    ) -> "list[NewEvent]":
        """Events, redacted."""
        return _screen().events(ledger, events, latest, scope=scope)

    def session(self, session: "Session") -> "Session":
        """A session, redacted."""
        return _screen().session(session)

    def task(self, task: "TaskRun") -> "TaskRun":
        """A task, redacted."""
        return _screen().task(task)

    def checkpoint(self, checkpoint: "Checkpoint") -> "Checkpoint":
        """A checkpoint, redacted."""
        return _screen().checkpoint(checkpoint)

    def job(self, job: "Job") -> "Job":
        """A job, redacted."""
        return _screen().job(job)


def _screen() -> "SecretScreen":
    from engram.gates.secrets.screen import SecretScreen

    return SecretScreen()
