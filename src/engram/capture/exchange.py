"""An exchange with a user: its turns, the decisions about their sentences, and the resulting memories."""

import hashlib
from collections.abc import Sequence
from typing import Any

from engram.capture.extraction import REDACTED, ExtractedFact, JudgedSentence
from engram.gates.secrets.scan import redact
from engram.model.decision import Decision, Outcome
from engram.model.errors import InvalidInput
from engram.model.lazy import dataclass
from engram.model.memory import LIVE_STATUSES, Memory
from engram.model.records import Event

ASSISTANT = "assistant"
"""The role and the source of an assistant's statements, which no one vouches for."""
_SECRET_REASON = "secrets: the turn contains a secret, which is never stored; the ledger keeps it redacted"


@dataclass(frozen=True, slots=True, kw_only=True)
class FactDecision:
    """The decision about one sentence or fact: stored, already known, refused, or skipped as not worth keeping."""

    fact: str
    """The fact, or a skipped sentence in its original words."""
    operation: str
    """ADD, UPDATE, SUPERSEDE, END, FORGET or NOOP."""
    applied: bool
    """Whether the fact is now current. A candidate is stored but waits for review, so it is not."""
    reason: str
    memory_id: str = ""
    """The memory that now states the fact."""
    target_id: str = ""
    """The stored memory it was compared with."""
    worth: float | None = None
    """The probability that it is worth keeping; None if it was not judged."""
    said: str = ""
    """The words of the turn that the decision is about."""
    outcome: str = ""
    """The outcome of the gates; "" if they were not consulted."""
    gate: str = ""
    """The gate that decided."""


class Conversation(list[Memory]):
    """The memories stored from an exchange, and every decision about its facts."""

    def __init__(self, events: Sequence[Event]) -> None:
        super().__init__()
        self.decisions: list[FactDecision] = []
        self.events: list[str] = [event.id for event in events]
        """The ids of the turns in the session's ledger."""
        self.pending = False
        """Whether the model failed and a job will retry it."""
        self.warnings: list[str] = []

    def settle(self, decision: FactDecision, memory: Memory | None = None) -> None:
        """Add a decision, and the memory it stored."""
        self.decisions.append(decision)
        if memory is not None:
            self.append(memory)


@dataclass(slots=True)
class Exchange:
    """The turns of one call, the scope of their facts, and the result so far."""

    events: Sequence[Event]
    scope: str
    session: str
    source: str
    roles: frozenset[str]
    result: Conversation
    task: str = ""

    def source_of(self, fact: ExtractedFact) -> str:
        """The source of a fact: the caller's for the user's words, an untrusted one for the assistant's."""
        return ASSISTANT if fact.role == ASSISTANT else self.source

    @property
    def payload(self) -> dict[str, Any]:
        """The data a job needs to process the exchange again."""
        return {
            "session": self.session,
            "scope": self.scope,
            "source": self.source,
            "task": self.task,
            "events": [event.id for event in self.events],
            "extract_assistant_response": ASSISTANT in self.roles,
        }

    def report_skipped(self, one: JudgedSentence) -> None:
        """Report a sentence that states no fact, with the reason; for one with a secret, only the redacted text is known here."""
        if not one.facts:
            reason = _SECRET_REASON if REDACTED in one.text else one.reason
            self.result.settle(
                FactDecision(
                    fact=one.text, operation="NOOP", applied=False, reason=reason, worth=one.worth, said=one.text
                )
            )


def exchange_of(
    events: Sequence[Event], scope: str, session: str, source: str, with_assistant: bool, task: str = ""
) -> Exchange:
    """The exchange of events that are in a ledger, before any decision."""
    roles = frozenset(("user", ASSISTANT)) if with_assistant else frozenset(("user",))
    return Exchange(events, scope, session, source, roles, Conversation(events), task)


def turns_of(user_message: str, assistant_response: str, session: str, key: str) -> list[dict[str, Any]]:
    """An exchange as events, each with a key that makes storing it idempotent. Raises `InvalidInput` if it is empty."""
    messages = [("user", user_message), ("assistant", assistant_response)]
    if not all(isinstance(content, str) for _, content in messages):
        raise InvalidInput("a message must be text")
    if not any(content.strip() for _, content in messages):
        raise InvalidInput("the exchange is empty; give the user's message, the assistant's response, or both")
    # The texts are redacted first, because a secret could be guessed from its digest.
    parts = "\x00".join((session, redact(user_message)[0], redact(assistant_response)[0]))
    digest = key or hashlib.sha256(parts.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return [
        {"role": role, "content": content, "key": f"exchange {digest} {role}"}
        for role, content in messages
        if content.strip()
    ]


_OPERATIONS = {
    Outcome.CREATED: "ADD",
    Outcome.PENDING: "ADD",
    Outcome.SUPERSEDED: "SUPERSEDE",
    Outcome.CONTRADICTION: "SUPERSEDE",
    Outcome.UPDATED: "UPDATE",
    Outcome.DUPLICATE: "NOOP",
    Outcome.NOOP: "NOOP",
    Outcome.REJECTED: "NOOP",
}
"""The operation for each outcome of the gates. A contradiction is stored next to the other memory and waits for review."""
WRITTEN = (Outcome.CREATED, Outcome.PENDING, Outcome.SUPERSEDED, Outcome.CONTRADICTION)
_CHANGING = (*WRITTEN, Outcome.UPDATED)


def decision_of(fact: ExtractedFact, learned: Decision, note: str = "") -> tuple[FactDecision, Memory | None]:
    """The decision about a fact that follows from that of the gates, and the memory it stored."""
    memory, other = learned.memory, learned.other
    decision = FactDecision(
        fact=fact.statement,
        operation=_OPERATIONS[learned.outcome],
        applied=learned.outcome in _CHANGING and memory is not None and memory.status in LIVE_STATUSES,
        reason=f"{fact.reason}; {note}{learned.gate}: {learned.reason}",
        memory_id=memory.id if memory is not None else "",
        target_id=other.id if other is not None else "",
        worth=fact.worth,
        outcome=learned.outcome,
        gate=learned.gate,
    )
    return decision, memory if learned.outcome in WRITTEN else None
