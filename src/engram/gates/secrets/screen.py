"""The secret screen: every record passes it on its way into a store, whichever verb wrote it.

A memory with a secret is refused; the caller rewords it. A name (id, scope, session, actor, key) with a secret is refused:
redacting identifiers would merge different things. Events, goals, summaries, reasons and a caller's own data are stored with
the secret redacted.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from engram.gates.secrets.scan import (
    continued_key,
    ends_in_key,
    find_secrets,
    redact,
    redact_all,
    refuse_secret,
    secrets_problem,
    suspects,
)
from engram.gates.shape import RECORD, strings
from engram.model.errors import SecretRefused
from engram.model.event import Event, Session
from engram.model.lazy import replace
from engram.model.memory import Memory
from engram.model.task import Checkpoint, Job, TaskRun
from engram.model.usage import Use
from engram.store.protocol import NewEvent
from engram.store.screen import LATEST, Decider

__all__ = ["SecretScreen"]


class SecretScreen:
    """Keeps secrets out of a store; implements `store.screen.Screen`."""

    def decision(self, actor: str, reason: str, session: str) -> str:
        """The redacted reason. Raises `InvalidInput` if the actor or the session id contains a secret."""
        refuse_secret(actor, "the actor")
        refuse_secret(session, "the session's id")
        return redact(reason)[0] if reason else reason

    def memories(self, memories: Sequence[Memory], before: Callable[[str], Memory | None], deciding: Decider) -> None:
        """Raise `SecretRefused` if a memory contains a secret that its stored version does not.

        A file edited by hand may contain one; its owner can still rate, move or forget that memory.
        """
        for memory in suspects(memories):
            problem = secrets_problem(memory, before(memory.id))
            if problem:
                raise SecretRefused(problem)

    def use(self, use: Use) -> Use:
        """The use unchanged. Raises `InvalidInput` if its session id contains a secret."""
        refuse_secret(use.session, "the session's id")
        return use

    def events(
        self, ledger: str, events: Sequence[NewEvent], latest: Callable[[], Sequence[Event]], *, scope: str = ""
    ) -> list[NewEvent]:
        """The events, redacted. A private key split across events is tracked from one to the next."""
        refuse_secret(ledger, "the session's id")
        refuse_secret(scope, "the session's scope")
        kept: list[NewEvent] = []
        for event in events:
            size = continued_key(event.content)
            if size and _follows_a_key(kept, latest):
                event = replace(event, content=f"[redacted:private-key]{event.content[size:]}")
            kept.append(_redacted(event))
        return kept

    def session(self, session: Session) -> Session:
        """The session with its task and summary redacted."""
        for name in (session.id, *session.scopes):
            refuse_secret(name, "the session's id" if name == session.id else "the session's scope")
        return replace(session, task=redact(session.task)[0], summary=redact(session.summary)[0])

    def task(self, task: TaskRun) -> TaskRun:
        """The task with its goal, outcome and metadata redacted."""
        refuse_secret(task.scope, "the task's scope")
        refuse_secret(task.session, "the session's id")
        goal, outcome = redact(task.goal)[0], redact(task.outcome)[0]
        return replace(task, goal=goal, outcome=outcome, metadata=_clean_data(task.metadata))

    def checkpoint(self, checkpoint: Checkpoint) -> Checkpoint:
        """The checkpoint with its texts and data redacted."""
        if not find_secrets(RECORD.join(strings(checkpoint))):
            return checkpoint
        lists = ("completed_steps", "pending_steps", "decisions", "blockers", "artifacts")
        lines: dict[str, Any] = {name: tuple(redact(line)[0] for line in getattr(checkpoint, name)) for name in lists}
        summary, data = redact(checkpoint.summary)[0], _clean_data(checkpoint.data)
        return replace(checkpoint, summary=summary, data=data, **lines)

    def job(self, job: Job) -> Job:
        """The job with its payload and error redacted."""
        return replace(job, payload=_clean_data(job.payload), error=redact(job.error)[0] if job.error else "")

    def state(self, name: str) -> str:
        """The name unchanged. Raises `InvalidInput` if it contains a secret; values contain no text."""
        refuse_secret(name, "the state's name")
        return name


def _redacted(event: NewEvent) -> NewEvent:
    content, found = redact(event.content)
    # Nearly no event contains a secret, and scanning its other texts at once is cheaper than one by one.
    texts = (event.role, event.task, event.key, *strings(event.payload), *strings(event.metadata))
    if not find_secrets(RECORD.join(texts)):
        return replace(event, content=content) if found else event
    refuse_secret(event.key, "the event's key")
    return replace(
        event,
        role=redact(event.role)[0],
        content=content,
        task=redact(event.task)[0],
        payload=_clean_data(event.payload),
        metadata=_clean_data(event.metadata),
    )


def _clean_data(data: Mapping[str, Any]) -> Mapping[str, Any]:
    if not data or not find_secrets(RECORD.join(strings(data))):
        return data
    clean: dict[str, Any] = redact_all(data)
    return clean


def _follows_a_key(kept: Sequence[NewEvent], latest: Callable[[], Sequence[Event]]) -> bool:
    """Whether one of the last few events, in this batch or stored, ends inside a private key."""
    return any(ends_in_key(event.content) for event in kept[-LATEST:]) or any(
        ends_in_key(event.content) for event in latest()
    )
