"""`add_conversation`: store an exchange in the ledger and its lasting facts as memories, with a decision for each fact.

    turns → ledger → every sentence judged → facts (and those a language model adds) → compare with the store
          → ADD, UPDATE, SUPERSEDE, END, FORGET or NOOP

A language model can only add. If it fails, the facts found without it are used, the turns stay in the ledger, and a job retries it.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, tzinfo
from typing import TYPE_CHECKING, Any, Protocol

from engram.capture.exchange import ASSISTANT, Conversation, Exchange, FactDecision, exchange_of, turns_of
from engram.capture.extraction import JudgedSentence, consider
from engram.capture.learn import Learner
from engram.capture.model_review import ModelReview, review
from engram.capture.settlement import Revise, Settlement
from engram.decisions.admission import StoreLookup, propose
from engram.model.errors import InvalidInput, ModelError, NotFound
from engram.model.lazy import dataclass
from engram.model.memory import Memory
from engram.model.records import Event
from engram.rules.scopes import parse_scope
from engram.store.documents import meaning_of
from engram.store.protocol import Store
from engram.text.time.zone import SYSTEM, local

if TYPE_CHECKING:
    from engram.llm.model import LanguageModel

JOB = "conversation"
"""The kind of the jobs that retry the model; their payload is the argument of `Conversations.retry`."""
MAX_COMPARED_SENTENCES, MAX_SHOWN_MEMORIES = 40, 40
"""Sentences whose neighbours a language model is shown, and the number of those neighbours."""
MAX_CONTEXT_TURNS = 6
"""Turns of the ledger before an exchange that explain what it refers to."""


class Observe(Protocol):
    """Appends events to a session's ledger: `Sessions.observe_batch`."""

    def __call__(self, session_id: str, items: Iterable[Mapping[str, Any]], *, scope: str = "") -> list[Event]:
        """The events as stored."""


class Queue(Protocol):
    """A durable job queue; a job with the same kind and key is queued once."""

    def enqueue(self, kind: str, key: str, payload: Mapping[str, Any]) -> None:
        """Add a job."""


@dataclass(slots=True)
class Conversations:
    """Stores exchanges and their facts. A small trained model judges every sentence; a language model is not needed."""

    store: Store
    learner: Learner
    model: "LanguageModel | None"
    clock: Callable[[], datetime]
    observe: Observe
    queue: Queue | None = None
    revise: Revise | None = None
    autonomous: bool = True
    """Whether facts are captured without an explicit request: the quality gates apply, and facts usually wait for review."""
    zone: tzinfo = SYSTEM
    """The time zone for words such as "tomorrow"."""

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

        Idempotent: the same exchange added again, for example after a crash, is stored once; `key` distinguishes two
        exchanges with the same text.
        """
        scope = parse_scope(scope)
        events = self.observe(session, turns_of(user_message, assistant_response, session, key), scope=scope)
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
        exchange = exchange_of(events, scope, session, source, extract_assistant_response, task)
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
            exchange.report_skipped(one)
            for place in (facts.index(fact) for fact in one.facts):
                if place not in reading.restated:
                    self._settlement().settle(exchange, facts[place], reading.choices.get(place), known)
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
        exchange = exchange_of(events, scope, session, source, with_assistant, str(payload.get("task", "")))
        considered = self._consider(exchange)
        known = self._known_near(exchange, considered)
        facts = [fact for one in considered for fact in one.facts]
        self._settle_review(
            exchange, review(self.model, events, facts, exchange.roles, known, local(events[0].at, self.zone)), known
        )
        return exchange.result

    def _settlement(self) -> Settlement:
        return Settlement(self.store, self.learner, self.clock, self.revise, self.autonomous)

    def _consider(self, exchange: Exchange) -> list[JudgedSentence]:
        """Every sentence of the exchange, judged with the turns of its ledger before it."""
        first = exchange.events[0]
        earlier = (
            self.store.events(exchange.session, last=MAX_CONTEXT_TURNS + len(exchange.events))
            if exchange.session
            else []
        )
        ids = {event.id for event in exchange.events}
        before = [event for event in earlier if event.id not in ids and event.at <= first.at][-MAX_CONTEXT_TURNS:]
        with_assistant = ASSISTANT in exchange.roles
        return consider(
            _as_turns(exchange.events),
            at=local(first.at, self.zone),
            extract_assistant_response=with_assistant,
            before=_as_turns(before),
        )

    # -- the model

    def _queue_retry(self, exchange: Exchange, failure: ModelError) -> None:
        exchange.result.pending = True
        exchange.result.warnings.append(f"{type(failure).__name__}: {failure}")
        if self.queue is None:
            exchange.result.warnings.append(
                "there is no job queue to retry the model; add the exchange again when the model is back"
            )
            return
        self.queue.enqueue(JOB, exchange.events[0].id, exchange.payload)

    def _known_near(self, exchange: Exchange, considered: Sequence[JudgedSentence]) -> dict[str, Memory]:
        """The stored memories near any fact, or near a sentence in which a model may find one, by id."""
        texts = [text for one in considered for text in ([fact.statement for fact in one.facts] or [one.text])]
        memories = [
            Memory(id="", statement=text, scope=exchange.scope)
            for text in texts[:MAX_COMPARED_SENTENCES]
            if text.strip()
        ]
        vectors = self.store.embed([meaning_of(memory) for memory in memories]) if memories else None
        near: dict[str, Memory] = {}
        with self.store.reading():
            for number, memory in enumerate(memories):
                known = StoreLookup(self.store, vectors[number] if vectors is not None else None)
                for neighbour in known.near(propose(memory)):
                    near.setdefault(neighbour.memory.id, neighbour.memory)
        return dict(list(near.items())[:MAX_SHOWN_MEMORIES])

    def _settle_review(self, exchange: Exchange, reading: ModelReview, known: Mapping[str, Memory]) -> None:
        for statement, why in reading.refused:
            exchange.result.settle(
                FactDecision(fact=statement, operation="NOOP", applied=False, reason=f"model: {why}")
            )
        for fact, choice in reading.facts:
            self._settlement().settle(exchange, fact, choice, known)


def _as_turns(events: Sequence[Event]) -> list[dict[str, Any]]:
    return [{"role": event.role, "content": event.content} for event in events]
