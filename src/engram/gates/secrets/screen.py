"""The secret screen: every record passes it on its way into a store, whichever verb wrote it.

| what | a secret in it |
|---|---|
| a memory, the goal and outcome of a task, a checkpoint | is refused (`SecretRefused`) |
| a name: an id, a scope, a session, an actor, a role, a key | is refused (`InvalidInput`); redacting names would merge different things |
| a caller's own data: metadata, the data of a checkpoint, the arguments of a job | is refused if it has a known format |
| captured conversation: the content and payload of an event, the task and summary of a session | is redacted |
| logs: the reason of a decision, the error of a job | is redacted |
"""

from collections.abc import Callable, Sequence
from typing import Any

from engram.gates.proposal import strings
from engram.gates.secrets.exemptions import NOTHING_ALLOWED, AllowedValues
from engram.gates.secrets.scan import (
    continued_key,
    ends_in_key,
    has_secrets,
    redact,
    redact_data,
    refuse_credentials,
    refuse_secret,
    refuse_secret_text,
    secrets_problem,
    suspects,
)
from engram.model.errors import SecretRefused
from engram.model.lazy import replace
from engram.model.memory import Memory
from engram.model.records import Checkpoint, Event, Job, Session, TaskRun, Use
from engram.store.intake import MAX_SCREENED_EVENTS, Decider, NewEvent

__all__ = ["SecretScreen"]


_LINES = ("completed_steps", "pending_steps", "decisions", "blockers", "artifacts")
_MANIFEST = "manifest"


class SecretScreen:
    """Keeps secrets out of a store; implements `store.intake.Screen`."""

    def __init__(self, allowed: AllowedValues = NOTHING_ALLOWED) -> None:
        self._allowed = allowed

    def allowed_values(self) -> tuple[str, ...]:
        """Patterns of values that the owner declared not to be secrets."""
        return self._allowed.load()

    def decision(self, actor: str, reason: str, session: str) -> str:
        """The redacted reason. Raises `InvalidInput` if the actor or the session id contains a secret."""
        refuse_secret(actor, "the actor")
        refuse_secret(session, "the session's id")
        return self._redact(reason)

    def memories(self, memories: Sequence[Memory], before: Callable[[str], Memory | None], deciding: Decider) -> None:
        """Raise `SecretRefused` if a memory contains a secret that its stored version does not.

        A file edited by hand may contain one; its owner can still rate, move or forget that memory.
        """
        for memory in suspects(memories):
            problem = secrets_problem(memory, before(memory.id), self._allowed)
            if problem:
                raise SecretRefused(problem)

    def use(self, use: Use) -> Use:
        """The use unchanged. Raises `InvalidInput` if its session id contains a secret."""
        refuse_secret(use.session, "the session's id")
        return use

    def events(
        self, ledger: str, events: Sequence[NewEvent], latest: Callable[[], Sequence[Event]], *, scope: str = ""
    ) -> list[NewEvent]:
        """The events with content and payload redacted. A private key split across events is tracked from one to the next.

        Raises `SecretRefused` if the metadata of one contains a credential in a known format.
        """
        refuse_secret(ledger, "the session's id")
        refuse_secret(scope, "the session's scope")
        kept: list[NewEvent] = []
        for number, event in enumerate(events, 1):
            size = continued_key(event.content)
            if size and _follows_a_key(kept, latest):
                event = replace(event, content=f"[redacted:private-key]{event.content[size:]}")
            kept.append(self._event(event, f" of event {number}" if len(events) > 1 else ""))
        return kept

    def _event(self, event: NewEvent, place: str) -> NewEvent:
        # Hardly any event contains a secret, and scanning all texts at once is cheaper than one by one.
        texts = (event.role, event.content, event.task, event.key, *strings(event.payload), *strings(event.metadata))
        if not has_secrets(texts):
            return event
        refuse_secret(event.role, f"the role{place}")
        refuse_secret(event.task, f"the task{place}")
        refuse_secret(event.key, f"the key{place}")
        refuse_credentials(event.metadata, f"metadata{place}", self._allowed)
        payload = event.payload
        if has_secrets(strings(payload)):
            payload = redact_data(payload, allowed=self._allowed)
        return replace(event, content=self._redact(event.content), payload=payload)

    def session(self, session: Session) -> Session:
        """The session with its task and summary redacted."""
        for name in (session.id, *session.scopes):
            refuse_secret(name, "the session's id" if name == session.id else "the session's scope")
        return replace(session, task=self._redact(session.task), summary=self._redact(session.summary))

    def task(self, task: TaskRun, before: TaskRun | None = None) -> TaskRun:
        """The task unchanged. Raises `SecretRefused` if its goal, outcome or metadata contains a secret that `before` does not."""
        refuse_secret(task.scope, "the task's scope")
        refuse_secret(task.session, "the session's id")
        for name in ("goal", "outcome"):
            text = getattr(task, name)
            if before is None or text != getattr(before, name):
                refuse_secret_text(text, f"the task's {name}", self._allowed)
        if before is None or task.metadata != before.metadata:
            refuse_credentials(task.metadata, "the task's metadata", self._allowed)
        return task

    def checkpoint(self, checkpoint: Checkpoint) -> Checkpoint:
        """The checkpoint unchanged. Raises `SecretRefused` if one of its lines or its data contains a secret.

        A manifest reports in Engram's own words what was read from a source, so it is redacted.
        """
        if not has_secrets(strings(checkpoint)):
            return checkpoint
        refuse_credentials(checkpoint.data, "the checkpoint's data", self._allowed)
        if checkpoint.kind == _MANIFEST:
            lines: dict[str, Any] = {name: tuple(map(self._redact, getattr(checkpoint, name))) for name in _LINES}
            return replace(checkpoint, summary=self._redact(checkpoint.summary), **lines)
        refuse_secret_text(checkpoint.summary, "the checkpoint's summary", self._allowed)
        for name in _LINES:
            for number, line in enumerate(getattr(checkpoint, name), 1):
                refuse_secret_text(line, f"line {number} of the checkpoint's {name}", self._allowed)
        return checkpoint

    def job(self, job: Job, before: Job | None = None) -> Job:
        """The job with its error redacted. Raises `SecretRefused` if its payload contains a credential that `before` does not."""
        if before is None or job.payload != before.payload:
            refuse_credentials(job.payload, "the job's payload", self._allowed)
        return replace(job, error=self._redact(job.error)) if job.error else job

    def state(self, name: str) -> str:
        """The name unchanged. Raises `InvalidInput` if it contains a secret; values contain no text."""
        refuse_secret(name, "the state's name")
        return name

    def _redact(self, text: str) -> str:
        return redact(text, self._allowed)[0] if text else text


def _follows_a_key(kept: Sequence[NewEvent], latest: Callable[[], Sequence[Event]]) -> bool:
    """Whether one of the last few events, in this batch or stored, ends inside a private key."""
    return any(ends_in_key(event.content) for event in kept[-MAX_SCREENED_EVENTS:]) or any(
        ends_in_key(event.content) for event in latest()
    )
