"""add_conversation: an exchange is kept as it was said, then what lasts of it becomes memories, each with a decision.

    turns → ledger → facts (rules, and a model's where there is one) → compared with what is known → ADD, UPDATE, SUPERSEDE, NOOP

A model can only add. Where it fails, the rules' facts are used, the turns stay in the ledger, and a job waits to ask it again.
"""

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol, Unpack

from engram.capture.draft import draft
from engram.capture.extraction import REDACTED, Extracted, clauses, extract
from engram.capture.learn import LateKnown, Learner, StoreKnown, propose
from engram.capture.model_review import ModelReview, choices_for, read_facts
from engram.gates.comparison import relation
from engram.gates.pipeline import judge
from engram.gates.secrets.scan import redact
from engram.llm.schemas import Choice
from engram.model.decision import Decision, Outcome
from engram.model.errors import InvalidInput, ModelError, NotFound
from engram.model.event import Event
from engram.model.fields import ChangedFields
from engram.model.memory import Evidence, Memory
from engram.model.types import memory_type
from engram.rules.scopes import parse_scope
from engram.rules.sources import may_replace
from engram.store.documents import meaning_of
from engram.store.lineage import IN_FORCE, start_of
from engram.store.protocol import Store

if TYPE_CHECKING:
    from engram.llm.model import LanguageModel

JOB = "conversation"
"""The kind of the jobs that wait for the model; their payload is what `Conversations.retry` takes."""
LEARNED_BY = "harvest"
ASSISTANT = "assistant"
"""The role, and the source, of what an assistant said: overheard, and nobody's own word."""
PLAIN_FACT = "fact"
HELD_BACK = ("identity", "fiscal")
"""Types whose facts wait for a person however plainly they were said: numbers of documents, accounts and taxes."""
_HOLDS_SECRET = "secrets: the turn contains a secret, which is never stored; the ledger keeps it redacted"
_REJECTED = re.compile(r",? (?:and )?not [^,;]{1,60}(?=\.$)")


class Observe(Protocol):
    """Appends events to a session's ledger: `Sessions.observe_batch`."""

    def __call__(self, session_id: str, items: Iterable[Mapping[str, Any]], *, scope: str = "") -> list[Event]:
        """The events, as they are written."""


@dataclass(frozen=True, slots=True)
class FactDecision:
    """What became of one fact. Every fact has one, whether it was taken, known already, or refused."""

    fact: str
    operation: str
    """ADD, UPDATE, SUPERSEDE or NOOP."""
    applied: bool
    """Whether what the fact says is in force by it. A candidate has been written down, and waits for review: it is not."""
    reason: str
    memory_id: str = ""
    """The memory that holds the fact now."""
    target_id: str = ""
    """The known memory it was held against."""


class Conversation(list[Memory]):
    """The memories an exchange left, and everything that was decided about it."""

    def __init__(self, events: Sequence[Event]) -> None:
        super().__init__()
        self.decisions: list[FactDecision] = []
        self.events: list[str] = [event.id for event in events]
        """Ids of the turns in the session's ledger."""
        self.pending = False
        """The model could not help; the turns wait for it."""
        self.warnings: list[str] = []

    def settle(self, decision: FactDecision, memory: Memory | None = None) -> None:
        """Note a decision, and the memory it wrote."""
        self.decisions.append(decision)
        if memory is not None:
            self.append(memory)


class Queue(Protocol):
    """Where work waits, durably; the same kind and key once."""

    def enqueue(self, kind: str, key: str, payload: Mapping[str, Any]) -> None:
        """Let a job wait."""


class Revise(Protocol):
    """A new version of a memory: `Lineages.revise`."""

    def __call__(self, ref: str, *, actor: str, reason: str, **fields: Unpack[ChangedFields]) -> Memory:
        """The new head."""


@dataclass(slots=True)
class _Exchange:
    """The turns at hand and what is done with them."""

    events: Sequence[Event]
    scope: str
    session: str
    source: str
    roles: frozenset[str]
    result: Conversation
    task: str = ""

    def source_of(self, fact: Extracted) -> str:
        """Who said a fact: for the user's words whoever hands them over vouches, for an assistant's nobody does."""
        return ASSISTANT if fact.role == ASSISTANT else self.source

    @property
    def payload(self) -> dict[str, Any]:
        return {
            "session": self.session,
            "scope": self.scope,
            "source": self.source,
            "task": self.task,
            "events": [event.id for event in self.events],
            "extract_assistant_response": ASSISTANT in self.roles,
        }


@dataclass(slots=True)
class Conversations:
    """Takes exchanges in. Without a model it works by rules alone."""

    store: Store
    learner: Learner
    model: "LanguageModel | None"
    clock: Callable[[], datetime]
    observe: Observe
    queue: Queue | None = None
    revise: Revise | None = None
    autonomous: bool = True
    """Captured without anyone's word: the quality gates judge it and, as a rule, it waits for review."""

    def add(
        self,
        user_message: str,
        assistant_response: str = "",
        *,
        scope: str,
        session: str,
        extract_assistant_response: bool = False,
        source: str = "agent",
        key: str = "",
    ) -> Conversation:
        """Keep an exchange and remember what lasts of it.

        The same exchange added again, after a crash say, doubles nothing; `key` tells apart two that read alike.
        """
        scope = parse_scope(scope)
        events = self.observe(session, _turns(user_message, assistant_response, session, key), scope=scope)
        heard = extract_assistant_response
        return self.take(events, scope=scope, session=session, source=source, extract_assistant_response=heard)

    def take(
        self,
        events: Sequence[Event],
        *,
        scope: str,
        session: str = "",
        source: str = "agent",
        task: str = "",
        extract_assistant_response: bool = False,
    ) -> Conversation:
        """Remember what lasts of turns that are in a ledger already. Taking them twice remembers nothing twice."""
        exchange = _exchange(events, scope, session, source, extract_assistant_response, task)
        facts = extract(_as_turns(events), at=events[0].at, extract_assistant_response=extract_assistant_response)
        _tell_secrets(exchange)
        trouble: ModelError | None = None
        reading = ModelReview()
        if self.model is not None:
            try:
                reading = read_facts(self.model, events, facts, exchange.roles)
            except ModelError as error:
                trouble = error
        late = self._decide(exchange, [*facts, *reading.facts], reading, consult=trouble is None)
        if trouble or late:
            self._wait_for_model(exchange, trouble or late)
        return exchange.result

    def retry(self, payload: Mapping[str, Any]) -> Conversation:
        """Ask the model about turns that waited for it, and remember what it adds to what the rules took then.

        Raises `ModelError` when it fails again, with nothing changed, and `NotFound` when every turn was purged since.
        """
        if self.model is None:
            raise InvalidInput("turns wait for a model and none is configured; set `model`")
        found = [self.store.event(event_id) for event_id in payload["events"]]
        events = [event for event in found if event is not None and event.content]
        if not events:
            raise NotFound(f"the turns {', '.join(payload['events'])} are gone; there is nothing to ask about")
        heard = bool(payload.get("extract_assistant_response"))
        exchange = _exchange(events, str(payload["scope"]), str(payload["session"]), str(payload["source"]), heard,
                             str(payload.get("task", "")))  # fmt: skip
        known = extract(_as_turns(events), at=events[0].at, extract_assistant_response=heard)
        reading = read_facts(self.model, events, known, exchange.roles)
        late = self._decide(exchange, reading.facts, reading, consult=True)
        if late is not None:
            exchange.result.warnings.append(str(late))
        return exchange.result

    # -- the model

    def _wait_for_model(self, exchange: _Exchange, trouble: ModelError | None) -> None:
        exchange.result.pending = True
        exchange.result.warnings.append(f"{type(trouble).__name__}: {trouble}")
        if self.queue is None:
            exchange.result.warnings.append("nothing here keeps jobs: add the exchange again when the model is back")
            return
        self.queue.enqueue(JOB, exchange.events[0].id, exchange.payload)

    def _decide(
        self, exchange: _Exchange, facts: Sequence[Extracted], reading: ModelReview, *, consult: bool
    ) -> ModelError | None:
        """Carry out a decision for every fact; the model's error if it could not compare them."""
        for statement, why in reading.refused:
            exchange.result.settle(FactDecision(statement, "NOOP", False, f"model: {why}"))
        choices: dict[int, Choice] = {}
        known: dict[str, Memory] = {}
        trouble: ModelError | None = None
        if consult and self.model is not None and facts:
            known = self._known_near(exchange, facts)
            try:
                choices = choices_for(self.model, facts, known)
            except ModelError as error:
                trouble = error
        for number, fact in enumerate(facts):
            self._settle(exchange, fact, choices.get(number), known)
        return trouble

    def _known_near(self, exchange: _Exchange, facts: Sequence[Extracted]) -> dict[str, Memory]:
        """What is stored near any of the facts, by id."""
        memories = [self._drafted(exchange, fact) for fact in facts]
        vectors = self.store.embed([meaning_of(memory) for memory in memories])
        near: dict[str, Memory] = {}
        with self.store.reading():
            for number, memory in enumerate(memories):
                known = StoreKnown(self.store, vectors[number] if vectors is not None else None)
                for neighbour in known.near(propose(memory)):
                    near.setdefault(neighbour.memory.id, neighbour.memory)
        return near

    # -- decisions

    def _settle(self, exchange: _Exchange, fact: Extracted, choice: Choice | None, known: Mapping[str, Memory]) -> None:
        note = ""
        if choice is not None and choice.operation != "ADD":
            target = known.get(choice.target)
            if target is None:
                note = f"the model would {choice.operation} {choice.target or 'nothing'}, which it was not shown; "
            elif choice.operation == "NOOP":
                if relation(fact.statement, target.statement).relation != "opposite":
                    why = f"model: {choice.reason}"
                    exchange.result.settle(FactDecision(fact.statement, "NOOP", False, why, target.id, target.id))
                    return
                note = f"the model takes {target.id} to say this, which says the opposite; "
            else:
                self._replace(exchange, fact, choice, target)
                return
        learned = self._learn(exchange, fact)
        exchange.result.settle(*_mapped(fact.statement, learned, note))

    def _replace(self, exchange: _Exchange, fact: Extracted, choice: Choice, target: Memory) -> None:
        """UPDATE or SUPERSEDE by a new version, as far as trust reaches; else the fact waits beside what it would replace."""
        proposal = propose(self._drafted(exchange, fact), autonomous=self.autonomous)
        verdict = judge(proposal, LateKnown([]), self.learner.settings)
        operation, said = choice.operation, fact.statement
        above = not may_replace(exchange.source_of(fact), target)
        if not verdict.admitted:
            why = f"{verdict.gate}: {verdict.reason}"
            exchange.result.settle(FactDecision(said, operation, False, why, target_id=target.id))
        elif verdict.status != "active" or above:
            # Beside a more trusted word it is held against that one, and so waits.
            learned = self._learn(exchange, fact, supersedes=[target.id] if above else [])
            held = learned.memory if learned.outcome != Outcome.DUPLICATE else None
            why = f"the model would {operation} {target.id} ({choice.reason}); {learned.gate}: {learned.reason}"
            memory_id = learned.memory.id if learned.memory is not None else ""
            exchange.result.settle(FactDecision(said, operation, False, why, memory_id, target.id), held)
        else:
            new = self._revise(exchange, fact, choice, target)
            why, applied = f"model: {choice.reason}", new.status in IN_FORCE
            exchange.result.settle(FactDecision(said, operation, applied, why, new.id, target.id), new)

    def _revise(self, exchange: _Exchange, fact: Extracted, choice: Choice, target: Memory) -> Memory:
        revise: Revise
        if self.revise is not None:
            revise = self.revise
        else:
            from engram.review.lineage import Lineages

            revise = Lineages(self.store, self.clock).revise
        fields = self._given(exchange, fact)
        del fields["scope"], fields["type"]
        fields["valid_from"] = _begun(exchange.events[fact.turn], fact, [target])
        reason, source = f"{choice.operation}: {choice.reason}", exchange.source_of(fact)
        return revise(target.id, actor=source, reason=reason, source=source, **fields)

    def _learn(self, exchange: _Exchange, fact: Extracted, supersedes: Sequence[str] = ()) -> Decision:
        return self.learner.learn(
            {**self._given(exchange, fact), **({"supersedes": supersedes} if supersedes else {})},
            source=exchange.source_of(fact),
            learned_by=LEARNED_BY,
            session=exchange.session,
            autonomous=self.autonomous,
        )

    def _drafted(self, exchange: _Exchange, fact: Extracted) -> Memory:
        given, source = self._given(exchange, fact), exchange.source_of(fact)
        return draft(given, learned_by=LEARNED_BY, source=source, now=self.clock())

    def _type_of(self, fact: Extracted) -> str:
        """The type the fact was read as. A plain fact, or one of a type that would wait for a person, is the policy's to name.

        Whoever lives, works or eats otherwise has said so themselves; what identifies a person or their money still waits.
        """
        if fact.type in HELD_BACK or (fact.type != PLAIN_FACT and memory_type(fact.type).tier == 1):
            return fact.type
        return self.learner.policy.described(Memory(id="", statement=fact.statement, type=PLAIN_FACT), typed=False).type

    def _given(self, exchange: _Exchange, fact: Extracted) -> dict[str, Any]:
        from engram.capture.documents.quotes import quote_hash

        event = exchange.events[fact.turn]
        quote = event.content[slice(*fact.span)]
        replacing = self._replacing(fact)
        return {
            "statement": fact.statement,
            "type": self._type_of(fact),
            "scope": exchange.scope,
            "confidence": fact.confidence,
            "context": quote,
            "session": exchange.session,
            "task": exchange.task,
            "valid_from": _begun(event, fact, self._heads(exchange, fact, replacing.get("conflict_key", ""))),
            "evidence": [Evidence(event.id, fact.span, quote_hash(quote))],
            **replacing,
        }

    def _heads(self, exchange: _Exchange, fact: Extracted, key: str) -> list[Memory]:
        """What a fact that tells its beginning would take the place of."""
        if fact.since is None:
            return []
        key = key or self.learner.policy.described(Memory(id="", statement=fact.statement), typed=False).conflict_key
        return self.store.heads(key, exchange.scope) if key else []

    def _replacing(self, fact: Extracted) -> dict[str, str]:
        """The key of what a correction affirms: "Tom, not Priya" takes the place of Priya, as "Tom" would."""
        affirmed = _REJECTED.sub("", fact.statement)
        if affirmed == fact.statement:
            return {}
        key = self.learner.policy.described(Memory(id="", statement=affirmed), typed=False).conflict_key
        return {"conflict_key": key} if key else {}


def _begun(event: Event, fact: Extracted, heads: Sequence[Memory]) -> datetime:
    """Since when a fact holds: as the turn tells it, else since it was said.

    What it takes the place of may be dated later than the change it tells, by the day somebody mentioned it. It is news all the
    same, and then counts from when it was said.
    """
    if fact.since is None or any(start_of(head) > fact.since for head in heads):
        return event.at
    return fact.since


def _exchange(events: Sequence[Event], scope: str, session: str, source: str, heard: bool, task: str = "") -> _Exchange:
    roles = frozenset(("user", ASSISTANT)) if heard else frozenset(("user",))
    return _Exchange(events, scope, session, source, roles, Conversation(events), task)


def _tell_secrets(exchange: _Exchange) -> None:
    """What was said with a secret in it is no fact to be weighed, and its speaker is told."""
    for event in exchange.events:
        for clause in clauses(event.content) if event.role in exchange.roles else ():
            if REDACTED in clause.text:
                exchange.result.settle(FactDecision(clause.text, "NOOP", False, _HOLDS_SECRET))


def _as_turns(events: Sequence[Event]) -> list[dict[str, Any]]:
    return [{"role": event.role, "content": event.content} for event in events]


def _turns(user_message: str, assistant_response: str, session: str, key: str) -> list[dict[str, Any]]:
    """The exchange as events, each with a key by which the ledger knows it again."""
    said = [("user", user_message), ("assistant", assistant_response)]
    if not all(isinstance(content, str) for _, content in said):
        raise InvalidInput("a message is text")
    if not any(content.strip() for _, content in said):
        raise InvalidInput("an exchange needs something said: the user's message, the assistant's response, or both")
    # Of the redacted texts: a digest of a secret would let it be guessed.
    parts = "\x00".join((session, redact(user_message)[0], redact(assistant_response)[0]))
    digest = key or hashlib.sha256(parts.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return [
        {"role": role, "content": content, "key": f"exchange {digest} {role}"}
        for role, content in said
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
"""What an answer of the gates means for a fact. A contradiction is written down beside what it contradicts, and waits."""
_WRITTEN = (Outcome.CREATED, Outcome.PENDING, Outcome.SUPERSEDED, Outcome.CONTRADICTION)
_CHANGING = (*_WRITTEN, Outcome.UPDATED)


def _mapped(fact: str, learned: Decision, note: str) -> tuple[FactDecision, Memory | None]:
    memory, other = learned.memory, learned.other
    decision = FactDecision(
        fact,
        _OPERATIONS[learned.outcome],
        learned.outcome in _CHANGING and memory is not None and memory.status in IN_FORCE,
        f"{note}{learned.gate}: {learned.reason}",
        memory.id if memory is not None else "",
        other.id if other is not None else "",
    )
    return decision, memory if learned.outcome in _WRITTEN else None
