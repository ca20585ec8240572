"""`add_conversation`: store an exchange in the ledger and its lasting facts as memories, with a decision for each fact.

    turns → ledger → facts (by rules, and by a model if there is one) → compare with the store → ADD, UPDATE, SUPERSEDE, NOOP

A model can only add. If it fails, the facts found by rules are used, the turns stay in the ledger, and a job retries the model.
"""

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, tzinfo
from typing import TYPE_CHECKING, Any, Protocol, Unpack

from engram.capture.draft import draft
from engram.capture.extraction import REDACTED, Extracted, clauses, extract
from engram.capture.known import LateKnown, StoreKnown, propose
from engram.capture.learn import Learner
from engram.capture.model_review import ModelReview, choices_for, read_facts
from engram.gates.comparison import relation
from engram.gates.pipeline import judge
from engram.gates.secrets.scan import redact
from engram.llm.schemas import Choice
from engram.model.decision import Decision, Outcome
from engram.model.errors import InvalidInput, ModelError, NotFound
from engram.model.event import Event
from engram.model.fields import ChangedFields
from engram.model.lazy import dataclass
from engram.model.memory import Evidence, Memory
from engram.model.types import memory_type
from engram.rules.scopes import parse_scope
from engram.rules.sources import may_replace
from engram.store.documents import meaning_of
from engram.store.protocol import Store
from engram.store.records import CURRENT, start_of
from engram.text.content_hash import quote_hash
from engram.text.time.zone import SYSTEM, local

if TYPE_CHECKING:
    from engram.llm.model import LanguageModel

JOB = "conversation"
"""The kind of the jobs that retry the model; their payload is the argument of `Conversations.retry`."""
LEARNED_BY = "harvest"
ASSISTANT = "assistant"
"""The role and the source of what an assistant said; nobody vouches for it."""
PLAIN_FACT = "fact"
ALWAYS_REVIEWED = ("identity", "fiscal")
"""Types whose facts always wait for review: numbers of documents, accounts and taxes."""
_SECRET_REASON = "secrets: the turn contains a secret, which is never stored; the ledger keeps it redacted"
_CORRECTED = re.compile(r",? (?:and )?not [^,;]{1,60}(?=\.$)")


class Observe(Protocol):
    """Appends events to a session's ledger: `Sessions.observe_batch`."""

    def __call__(self, session_id: str, items: Iterable[Mapping[str, Any]], *, scope: str = "") -> list[Event]:
        """The events as stored."""


@dataclass(frozen=True, slots=True)
class FactDecision:
    """The decision about one fact. Every fact has one, whether it was stored, already known, or refused."""

    fact: str
    operation: str
    """ADD, UPDATE, SUPERSEDE or NOOP."""
    applied: bool
    """Whether the fact is now current. A candidate is stored but waits for review, so it is not."""
    reason: str
    memory_id: str = ""
    """The memory that now states the fact."""
    target_id: str = ""
    """The stored memory it was compared with."""


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


class Queue(Protocol):
    """A durable job queue; a job with the same kind and key is queued once."""

    def enqueue(self, kind: str, key: str, payload: Mapping[str, Any]) -> None:
        """Add a job."""


class Revise(Protocol):
    """Creates a new version of a memory: `Lineages.revise`."""

    def __call__(self, ref: str, *, actor: str, reason: str, **fields: Unpack[ChangedFields]) -> Memory:
        """The new version."""


@dataclass(slots=True)
class _Exchange:
    """The turns of one call, where their facts belong, and the result so far."""

    events: Sequence[Event]
    scope: str
    session: str
    source: str
    roles: frozenset[str]
    result: Conversation
    task: str = ""

    def source_of(self, fact: Extracted) -> str:
        """The source of a fact: the caller vouches for the user's words, nobody vouches for the assistant's."""
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
    """Stores exchanges and their facts. Without a model it uses rules alone."""

    store: Store
    learner: Learner
    model: "LanguageModel | None"
    clock: Callable[[], datetime]
    observe: Observe
    queue: Queue | None = None
    revise: Revise | None = None
    autonomous: bool = True
    """Captured without an explicit request: the quality gates apply, and facts usually wait for review."""
    zone: tzinfo = SYSTEM
    """The zone in which "tomorrow" is read."""

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
        """Store an exchange and its lasting facts.

        Idempotent: the same exchange added again, for example after a crash, is stored once; `key` distinguishes two exchanges
        with the same text.
        """
        scope = parse_scope(scope)
        events = self.observe(session, _turns(user_message, assistant_response, session, key), scope=scope)
        return self.take(
            events,
            scope=scope,
            session=session,
            source=source,
            extract_assistant_response=extract_assistant_response,
        )

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
        """Store the lasting facts of turns that are already in a ledger. Idempotent."""
        exchange = _exchange(events, scope, session, source, extract_assistant_response, task)
        at = local(events[0].at, self.zone)
        facts = extract(_as_turns(events), at=at, extract_assistant_response=extract_assistant_response)
        _report_secrets(exchange)
        failure: ModelError | None = None
        review = ModelReview()
        if self.model is not None:
            try:
                review = read_facts(self.model, events, facts, exchange.roles, at)
            except ModelError as error:
                failure = error
        failure = self._decide(exchange, [*facts, *review.facts], review, consult=failure is None) or failure
        if failure is not None:
            self._queue_retry(exchange, failure)
        return exchange.result

    def retry(self, payload: Mapping[str, Any]) -> Conversation:
        """Ask the model about turns that it failed on before, and store the facts it adds to those found by rules.

        Raises `ModelError` if it fails again, with nothing changed, and `NotFound` if every turn was purged since.
        """
        if self.model is None:
            raise InvalidInput("the turns need a model, and none is configured; set `model`")
        found = [self.store.event(event_id) for event_id in payload["events"]]
        events = [event for event in found if event is not None and event.content]
        if not events:
            raise NotFound(f"the turns {', '.join(payload['events'])} were purged; nothing is left to extract")
        with_assistant = bool(payload.get("extract_assistant_response"))
        scope, session, source = (str(payload[name]) for name in ("scope", "session", "source"))
        exchange = _exchange(events, scope, session, source, with_assistant, str(payload.get("task", "")))
        at = local(events[0].at, self.zone)
        known = extract(_as_turns(events), at=at, extract_assistant_response=with_assistant)
        review = read_facts(self.model, events, known, exchange.roles, at)
        failure = self._decide(exchange, review.facts, review, consult=True)
        if failure is not None:
            exchange.result.warnings.append(str(failure))
        return exchange.result

    # -- the model

    def _queue_retry(self, exchange: _Exchange, failure: ModelError) -> None:
        exchange.result.pending = True
        exchange.result.warnings.append(f"{type(failure).__name__}: {failure}")
        if self.queue is None:
            exchange.result.warnings.append(
                "there is no job queue to retry the model; add the exchange again when the model is back"
            )
            return
        self.queue.enqueue(JOB, exchange.events[0].id, exchange.payload)

    def _decide(
        self, exchange: _Exchange, facts: Sequence[Extracted], review: ModelReview, *, consult: bool
    ) -> ModelError | None:
        """Decide about every fact and carry the decision out. Returns the error of a model that could not compare them."""
        for statement, why in review.refused:
            exchange.result.settle(FactDecision(statement, "NOOP", False, f"model: {why}"))
        choices: dict[int, Choice] = {}
        known: dict[str, Memory] = {}
        failure: ModelError | None = None
        if consult and self.model is not None and facts:
            known = self._known_near(exchange, facts)
            try:
                choices = choices_for(self.model, facts, known)
            except ModelError as error:
                failure = error
        for number, fact in enumerate(facts):
            self._settle(exchange, fact, choices.get(number), known)
        return failure

    def _known_near(self, exchange: _Exchange, facts: Sequence[Extracted]) -> dict[str, Memory]:
        """The stored memories near any of the facts, by id."""
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
                note = f"the model chose {choice.operation} {choice.target or 'nothing'}, which it was not shown; "
            elif choice.operation == "NOOP":
                if relation(fact.statement, target.statement).relation != "opposite":
                    why = f"model: {choice.reason}"
                    exchange.result.settle(FactDecision(fact.statement, "NOOP", False, why, target.id, target.id))
                    return
                note = f"the model called {target.id} a duplicate, which says the opposite; "
            else:
                self._replace(exchange, fact, choice, target)
                return
        learned = self._learn(exchange, fact)
        exchange.result.settle(*_mapped(fact.statement, learned, note))

    def _replace(self, exchange: _Exchange, fact: Extracted, choice: Choice, target: Memory) -> None:
        """UPDATE or SUPERSEDE by a new version if trust allows it; otherwise the fact waits for review."""
        proposal = propose(self._drafted(exchange, fact), autonomous=self.autonomous)
        verdict = judge(proposal, LateKnown([]), self.learner.settings)
        operation, statement = choice.operation, fact.statement
        outranked = not may_replace(exchange.source_of(fact), target)
        if not verdict.admitted:
            why = f"{verdict.gate}: {verdict.reason}"
            exchange.result.settle(FactDecision(statement, operation, False, why, target_id=target.id))
        elif verdict.status != "active" or outranked:
            # Naming the memory from a more trusted source makes the fact a contradiction of it, which waits.
            learned = self._learn(exchange, fact, supersedes=[target.id] if outranked else [])
            stored = learned.memory if learned.outcome != Outcome.DUPLICATE else None
            why = f"the model chose {operation} {target.id} ({choice.reason}); {learned.gate}: {learned.reason}"
            memory_id = learned.memory.id if learned.memory is not None else ""
            exchange.result.settle(FactDecision(statement, operation, False, why, memory_id, target.id), stored)
        else:
            new = self._revise(exchange, fact, choice, target)
            why, applied = f"model: {choice.reason}", new.status in CURRENT
            exchange.result.settle(FactDecision(statement, operation, applied, why, new.id, target.id), new)

    def _revise(self, exchange: _Exchange, fact: Extracted, choice: Choice, target: Memory) -> Memory:
        revise: Revise
        if self.revise is not None:
            revise = self.revise
        else:
            from engram.review.lineage import Lineages

            revise = Lineages(self.store, self.clock).revise
        fields = self._given(exchange, fact)
        del fields["scope"], fields["type"]
        fields["valid_from"] = _valid_from(exchange.events[fact.turn], fact, [target])
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
        """The extracted type. For a plain fact, or a type that would wait for review, the policy chooses the type.

        People state where they live or work, or what they eat, themselves; what identifies them or their money still waits.
        """
        if fact.type in ALWAYS_REVIEWED or (fact.type != PLAIN_FACT and memory_type(fact.type).tier == 1):
            return fact.type
        return self.learner.policy.described(Memory(id="", statement=fact.statement, type=PLAIN_FACT), typed=False).type

    def _given(self, exchange: _Exchange, fact: Extracted) -> dict[str, Any]:
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
            "valid_from": _valid_from(event, fact, self._heads(exchange, fact, replacing.get("conflict_key", ""))),
            "evidence": [Evidence(event.id, fact.span, quote_hash(quote))],
            **replacing,
        }

    def _heads(self, exchange: _Exchange, fact: Extracted, key: str) -> list[Memory]:
        """The current memories that a fact with a known start would supersede."""
        if fact.since is None:
            return []
        key = key or self.learner.policy.described(Memory(id="", statement=fact.statement), typed=False).conflict_key
        return self.store.heads(key, exchange.scope) if key else []

    def _replacing(self, fact: Extracted) -> dict[str, str]:
        """The conflict key of what a correction affirms: "Tom, not Priya" replaces Priya, as "Tom" would."""
        affirmed = _CORRECTED.sub("", fact.statement)
        if affirmed == fact.statement:
            return {}
        key = self.learner.policy.described(Memory(id="", statement=affirmed), typed=False).conflict_key
        return {"conflict_key": key} if key else {}


def _valid_from(event: Event, fact: Extracted, heads: Sequence[Memory]) -> datetime:
    """Since when a fact is true: as the turn says, else since it was said.

    What it supersedes may be dated later than the change, by the day somebody mentioned it. The fact is still news, and then
    counts from when it was said.
    """
    if fact.since is None or any(start_of(head) > fact.since for head in heads):
        return event.at
    return fact.since


def _exchange(
    events: Sequence[Event], scope: str, session: str, source: str, with_assistant: bool, task: str = ""
) -> _Exchange:
    roles = frozenset(("user", ASSISTANT)) if with_assistant else frozenset(("user",))
    return _Exchange(events, scope, session, source, roles, Conversation(events), task)


def _report_secrets(exchange: _Exchange) -> None:
    """Report each clause with a secret as refused; it is never a fact."""
    for event in exchange.events:
        for clause in clauses(event.content) if event.role in exchange.roles else ():
            if REDACTED in clause.text:
                exchange.result.settle(FactDecision(clause.text, "NOOP", False, _SECRET_REASON))


def _as_turns(events: Sequence[Event]) -> list[dict[str, Any]]:
    return [{"role": event.role, "content": event.content} for event in events]


def _turns(user_message: str, assistant_response: str, session: str, key: str) -> list[dict[str, Any]]:
    """The exchange as events, each with a key that makes storing it idempotent."""
    messages = [("user", user_message), ("assistant", assistant_response)]
    if not all(isinstance(content, str) for _, content in messages):
        raise InvalidInput("a message must be text")
    if not any(content.strip() for _, content in messages):
        raise InvalidInput("the exchange is empty; give the user's message, the assistant's response, or both")
    # A digest of the redacted texts: from a digest of a secret it could be guessed.
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
_WRITTEN = (Outcome.CREATED, Outcome.PENDING, Outcome.SUPERSEDED, Outcome.CONTRADICTION)
_CHANGING = (*_WRITTEN, Outcome.UPDATED)


def _mapped(fact: str, learned: Decision, note: str) -> tuple[FactDecision, Memory | None]:
    memory, other = learned.memory, learned.other
    decision = FactDecision(
        fact,
        _OPERATIONS[learned.outcome],
        learned.outcome in _CHANGING and memory is not None and memory.status in CURRENT,
        f"{note}{learned.gate}: {learned.reason}",
        memory.id if memory is not None else "",
        other.id if other is not None else "",
    )
    return decision, memory if learned.outcome in _WRITTEN else None
