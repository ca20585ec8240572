"""`add_conversation`: store an exchange in the ledger and its lasting facts as memories, with a decision for each fact.

    turns → ledger → every sentence judged → facts (and those a language model adds) → compare with the store
          → ADD, UPDATE, SUPERSEDE, END, FORGET or NOOP

A language model can only add. If it fails, the facts found without it are used, the turns stay in the ledger, and a job retries it.
"""

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, tzinfo
from typing import TYPE_CHECKING, Any, Protocol, Unpack

from engram.capture.draft import draft
from engram.capture.extraction import END, REDACTED, Considered, Extracted, consider
from engram.capture.known import COMPARED, LateKnown, StoreKnown, propose
from engram.capture.learn import Learner
from engram.capture.model_review import ModelReview, review
from engram.capture.retraction import Retraction, ends, meant, reason_to_wait
from engram.gates.comparison import relation
from engram.gates.pipeline import judge
from engram.gates.secrets.scan import redact
from engram.gates.trust import is_human
from engram.llm.schemas import Choice
from engram.model.decision import Decision, Outcome
from engram.model.errors import InvalidInput, ModelError, NotFound, Refused
from engram.model.event import Event
from engram.model.fields import ChangedFields
from engram.model.lazy import dataclass, replace
from engram.model.memory import Evidence, Memory
from engram.model.types import memory_type
from engram.rules.scopes import parse_scope, seen_from
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
TRANSCRIPT = "harvest"
"""The source of what a person only perhaps meant to be kept: a candidate, like any other reading of a transcript."""
MOST_COMPARED, MOST_SHOWN = 40, 40
"""Sentences whose neighbours a language model is shown, and how many of those."""
CONTEXT = 6
"""Turns of the ledger before an exchange that explain what it refers to."""
TEMPORARY_DAYS = 30
"""The decay horizon of what is true for a while only."""
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
    """The decision about one sentence or fact: stored, already known, refused, or skipped as not worth keeping."""

    fact: str
    """The fact, or a skipped sentence as it was said."""
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
    """The words of the turn it is about."""


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
        considered = self._consider(exchange)
        facts = [fact for one in considered for fact in one.facts]
        reading, known = ModelReview(), dict[str, Memory]()
        if self.model is not None:
            known = self._known_near(exchange, considered)
            try:
                reading = review(self.model, events, facts, exchange.roles, known, local(events[0].at, self.zone))
            except ModelError as error:
                self._queue_retry(exchange, error)
        for one in considered:
            _report_skipped(exchange, one)
            for place in (facts.index(fact) for fact in one.facts):
                if place not in reading.restated:
                    self._settle(exchange, facts[place], reading.choices.get(place), known)
        self._settle_review(exchange, reading, known)
        return exchange.result

    def retry(self, payload: Mapping[str, Any]) -> Conversation:
        """Ask the model about turns that it failed on before, and store the facts it adds to those found without it.

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
        considered = self._consider(exchange)
        known = self._known_near(exchange, considered)
        facts = [fact for one in considered for fact in one.facts]
        self._settle_review(
            exchange, review(self.model, events, facts, exchange.roles, known, local(events[0].at, self.zone)), known
        )
        return exchange.result

    def _consider(self, exchange: _Exchange) -> list[Considered]:
        """Every sentence of the exchange, judged with the turns of its ledger before it."""
        first = exchange.events[0]
        earlier = self.store.events(exchange.session, last=CONTEXT + len(exchange.events)) if exchange.session else []
        ids = {event.id for event in exchange.events}
        before = [event for event in earlier if event.id not in ids and event.at <= first.at][-CONTEXT:]
        with_assistant = ASSISTANT in exchange.roles
        return consider(
            _as_turns(exchange.events),
            at=local(first.at, self.zone),
            extract_assistant_response=with_assistant,
            before=_as_turns(before),
        )

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

    def _known_near(self, exchange: _Exchange, considered: Sequence[Considered]) -> dict[str, Memory]:
        """The stored memories near any fact, or near a sentence in which a model may find one, by id."""
        texts = [text for one in considered for text in ([fact.statement for fact in one.facts] or [one.text])]
        memories = [
            Memory(id="", statement=text, scope=exchange.scope) for text in texts[:MOST_COMPARED] if text.strip()
        ]
        vectors = self.store.embed([meaning_of(memory) for memory in memories]) if memories else None
        near: dict[str, Memory] = {}
        with self.store.reading():
            for number, memory in enumerate(memories):
                known = StoreKnown(self.store, vectors[number] if vectors is not None else None)
                for neighbour in known.near(propose(memory)):
                    near.setdefault(neighbour.memory.id, neighbour.memory)
        return dict(list(near.items())[:MOST_SHOWN])

    def _settle_review(self, exchange: _Exchange, reading: ModelReview, known: Mapping[str, Memory]) -> None:
        for statement, why in reading.refused:
            exchange.result.settle(FactDecision(statement, "NOOP", False, f"model: {why}"))
        for fact, choice in reading.facts:
            self._settle(exchange, fact, choice, known)

    # -- decisions

    def _settle(self, exchange: _Exchange, fact: Extracted, choice: Choice | None, known: Mapping[str, Memory]) -> None:
        """Decide about a fact and carry the decision out; the decision names the words it is about."""
        decisions = exchange.result.decisions
        first = len(decisions)
        self._decide(exchange, fact, choice, known)
        said = exchange.events[fact.turn].content[slice(*fact.span)]
        decisions[first:] = [replace(decision, said=said) for decision in decisions[first:]]

    def _decide(self, exchange: _Exchange, fact: Extracted, choice: Choice | None, known: Mapping[str, Memory]) -> None:
        note = ""
        if fact.operation:
            self._retract(exchange, fact)
            return
        if choice is not None and choice.operation != "ADD":
            target = known.get(choice.target)
            if target is None:
                note = f"the model chose {choice.operation} {choice.target or 'nothing'}, which it was not shown; "
            elif choice.operation == "NOOP":
                if relation(fact.statement, target.statement).relation != "opposite":
                    why = f"model: {choice.reason}"
                    exchange.result.settle(
                        FactDecision(fact.statement, "NOOP", False, why, target.id, target.id, fact.worth)
                    )
                    return
                note = f"the model called {target.id} a duplicate, which says the opposite; "
            else:
                self._replace(exchange, fact, choice, target)
                return
        learned = self._learn(exchange, fact)
        exchange.result.settle(*_mapped(fact, learned, note))

    # -- what is to be forgotten, or is over

    def _retract(self, exchange: _Exchange, fact: Extracted) -> None:
        """Forget or end the memory that is meant, if it is clear which one and its source allows it."""
        said = Memory(id="", statement=fact.statement, scope=exchange.scope)
        # What ends a memory becomes its next version, which belongs to the same scope.
        if fact.operation == END:
            found = meant(self.store, said, [exchange.scope])
            if found.target is not None and not ends(fact.statement, found.target):
                found = Retraction(None, f"{found.target.id} may be about something else")
            self._end(exchange, fact, found.target, found.reason)
            return
        found = meant(self.store, said, seen_from([exchange.scope]), COMPARED)
        if found.target is None or fact.tentative:
            why = f"{fact.reason}; nothing was forgotten: {found.reason or 'it is not sure that this was asked'}"
            target = found.target.id if found.target is not None else ""
            exchange.result.settle(FactDecision(fact.statement, "FORGET", False, why, "", target, fact.worth))
        else:
            self._forget(exchange, fact, found.target)

    def _forget(self, exchange: _Exchange, fact: Extracted, target: Memory) -> None:
        from engram.review.lineage import Lineages

        source, event = exchange.source_of(fact), exchange.events[fact.turn].id
        if may_replace(source, target):
            try:
                Lineages(self.store, self.clock).forget(target.id, actor=source, reason=f"asked for in {event}")
            except Refused as error:
                why = f"{fact.reason}; {error}"
                exchange.result.settle(FactDecision(fact.statement, "FORGET", False, why, "", target.id, fact.worth))
                return
            why = f"{fact.reason}; retired: {target.id}, which `undo` restores"
            exchange.result.settle(FactDecision(fact.statement, "FORGET", True, why, "", target.id, fact.worth))
            return
        # No note of the request is stored, which would repeat what is to be forgotten: the memory itself waits.
        if target.status in CURRENT:
            from engram.review.queue import request_forget

            request_forget(self.store, target.id, actor=source, where=event)
        why = f"{fact.reason}; {target.id} comes from a more trusted source: a person decides with `engram review`"
        exchange.result.settle(FactDecision(fact.statement, "FORGET", False, why, "", target.id, fact.worth))

    def _end(self, exchange: _Exchange, fact: Extracted, target: Memory | None, problem: str) -> None:
        if target is None or fact.tentative:
            learned = self._learn(exchange, fact)
            exchange.result.settle(*_mapped(fact, learned, f"ended no stored memory: {problem}; " if problem else ""))
        elif reason_to_wait(target):
            self._wait(exchange, replace(fact, tentative=True), "END", target)
        elif not may_replace(exchange.source_of(fact), target):
            self._wait(exchange, fact, "END", target)
        else:
            learned = self._learn(exchange, fact, supersedes=[target.id])
            decision, stored = _mapped(fact, learned, "")
            ended = learned.outcome == Outcome.SUPERSEDED
            operation = "END" if ended or learned.outcome == Outcome.PENDING else decision.operation
            exchange.result.settle(replace(decision, operation=operation, target_id=target.id), stored)

    def _wait(self, exchange: _Exchange, fact: Extracted, operation: str, target: Memory) -> None:
        """Leave it to a person: the memory comes from a more trusted source, or is too important."""
        learned = self._learn(exchange, fact, supersedes=[target.id])
        decision, stored = _mapped(fact, learned, "")
        exchange.result.settle(replace(decision, operation=operation, applied=False, target_id=target.id), stored)

    def _replace(self, exchange: _Exchange, fact: Extracted, choice: Choice, target: Memory) -> None:
        """UPDATE or SUPERSEDE by a new version if trust allows it; otherwise the fact waits for review."""
        proposal = propose(self._drafted(exchange, fact), autonomous=self.autonomous)
        verdict = judge(proposal, LateKnown([]), self.learner.settings)
        operation, statement = choice.operation, fact.statement
        outranked = not may_replace(exchange.source_of(fact), target)
        if not verdict.admitted:
            why = f"{verdict.gate}: {verdict.reason}"
            exchange.result.settle(
                FactDecision(statement, operation, False, why, target_id=target.id, worth=fact.worth)
            )
        elif verdict.status != "active" or outranked:
            # Naming the memory from a more trusted source makes the fact a contradiction of it, which waits.
            learned = self._learn(exchange, fact, supersedes=[target.id] if outranked else [])
            stored = learned.memory if learned.outcome != Outcome.DUPLICATE else None
            why = f"the model chose {operation} {target.id} ({choice.reason}); {learned.gate}: {learned.reason}"
            memory_id = learned.memory.id if learned.memory is not None else ""
            decision = FactDecision(statement, operation, False, why, memory_id, target.id, fact.worth)
            exchange.result.settle(decision, stored)
        else:
            new = self._revise(exchange, fact, choice, target)
            why, applied = f"model: {choice.reason}", new.status in CURRENT
            decision = FactDecision(statement, operation, applied, why, new.id, target.id, fact.worth)
            exchange.result.settle(decision, new)

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
        learner, source = self.learner, exchange.source_of(fact)
        if fact.tentative:
            cautious = replace(learner.settings, autopromote_remember=False, autopromote_harvest=False)
            learner = replace(learner, settings=cautious)
            source = TRANSCRIPT if is_human(source) else source
        return learner.learn(
            {**self._given(exchange, fact), **({"supersedes": supersedes} if supersedes else {})},
            source=source,
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
            "context": f"{fact.context}\n{quote}" if fact.context else quote,
            "session": exchange.session,
            "task": exchange.task,
            "valid_from": _valid_from(event, fact, self._heads(exchange, fact, replacing.get("conflict_key", ""))),
            "evidence": [Evidence(event.id, fact.span, quote_hash(quote))],
            **replacing,
            **self._slot(fact),
            **({"decay_days": TEMPORARY_DAYS} if fact.duration == "temporary" else {}),
            **({"metadata": {"owner": fact.owner}} if fact.owner in ("person", "project", "world") else {}),
        }

    def _slot(self, fact: Extracted) -> dict[str, str]:
        """A critical slot for a fact whose loss could do harm, where no rule of the policy gives it one."""
        described = self.learner.policy.described(Memory(id="", statement=fact.statement), typed=False)
        return {"critical_slot": f"critical:{fact.owner}"} if fact.critical and not described.critical_slot else {}

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


def _report_skipped(exchange: _Exchange, one: Considered) -> None:
    """Report a sentence that states no fact, with the reason; of one with a secret, only its redacted text is known here."""
    if not one.facts:
        reason = _SECRET_REASON if REDACTED in one.text else one.reason
        exchange.result.settle(FactDecision(one.text, "NOOP", False, reason, worth=one.worth, said=one.text))


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


def _mapped(fact: Extracted, learned: Decision, note: str) -> tuple[FactDecision, Memory | None]:
    memory, other = learned.memory, learned.other
    decision = FactDecision(
        fact.statement,
        _OPERATIONS[learned.outcome],
        learned.outcome in _CHANGING and memory is not None and memory.status in CURRENT,
        f"{fact.reason}; {note}{learned.gate}: {learned.reason}",
        memory.id if memory is not None else "",
        other.id if other is not None else "",
        fact.worth,
    )
    return decision, memory if learned.outcome in _WRITTEN else None
