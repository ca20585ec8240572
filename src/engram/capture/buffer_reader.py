"""Reads the turns that wait in a session's buffer: which are done, and which stay because the language model did not answer."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

from engram.capture.buffer_state import BufferState, WaitingTurn
from engram.capture.conversation import Conversations
from engram.capture.exchange import ASSISTANT, Conversation, FactDecision
from engram.capture.rate_limit import GATE as RATE
from engram.model.errors import ModelError, ModelNonsense, NotFound, StoreCorrupt, StoreError
from engram.model.event import Event
from engram.model.lazy import dataclass, field, replace
from engram.model.memory import Memory
from engram.sessions.jobs import MAX_JOB_ATTEMPTS
from engram.sessions.tasks import FACT_EVENTS
from engram.store.new_events import NewEvent
from engram.store.protocol import Store

USERS = ("user", "human")
MAX_BATCH_TURNS = 40
"""Turns that are read at once; more take several readings."""
MAX_TURN_FAILURES = 5
"""How often reading a turn may fail before it is given up."""


@dataclass(slots=True)
class BufferReading:
    """What was read: turns that are done, turns that now wait for the language model alone, and the results."""

    done: set[int] = field(default_factory=set)
    awaiting: set[int] = field(default_factory=set)
    over_limit: set[int] = field(default_factory=set)
    """Turns with a fact that was refused because their source had reached its limit of the day."""
    failed: set[int] = field(default_factory=set)
    """Turns whose reading raised an error."""
    decisions: list[FactDecision] = field(default_factory=list)
    memories: list[Memory] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    model_failed: bool = False

    def add(self, found: "Conversation | BufferReading") -> None:
        """Add the results of more turns."""
        self.decisions += found.decisions
        self.memories += found.memories if isinstance(found, BufferReading) else found
        self.warnings += found.warnings


class _NoQueue:
    """In place of a job queue: turns that the model failed on stay in the buffer, which asks it again."""

    def enqueue(self, kind: str, key: str, payload: Mapping[str, Any]) -> None:
        """Nothing to do."""


@dataclass(slots=True)
class BufferReader:
    """Takes the facts from a buffer's turns. `conversations` must learn the same words only once."""

    store: Store
    conversations: Conversations

    def within(self, seconds: float) -> "BufferReader":
        """This reader with a limited time for all answers of the model, from now on."""
        model = self.conversations.model
        return (
            self
            if model is None
            else replace(self, conversations=replace(self.conversations, model=model.within(seconds)))
        )

    def read(self, session: str, state: BufferState, reading: BufferReading, *, may_ask: bool) -> None:
        """Take the facts from new turns, and from those that the model failed on what it adds; `reading` gets the result.

        Without `may_ask` the model is not asked, and the turns wait for it.
        """
        first = min(turn.seq for turn in state.turns)
        events = {event.seq: event for event in self.store.events(session, after=first - 1)}
        spoken = [turn for turn in state.turns if is_talk(events.get(turn.seq))]
        reading.done.update(turn.seq for turn in state.turns if turn not in spoken)
        # What waits for the model comes first, as it was said first.
        for turns in _batches(sorted(spoken, key=lambda turn: (not turn.awaits_model, turn.seq))):
            part = _Batch(session, state, turns, [events[turn.seq] for turn in turns])
            self._read(part, reading, ask=may_ask and not reading.model_failed)

    def _read(self, part: "_Batch", reading: BufferReading, *, ask: bool) -> None:
        """Read some turns; an error is a warning, unless the store itself fails, and turns that fail time and again are given up."""
        turns = part.turns
        try:
            if not part.is_readable or (turns[0].awaits_model and self.conversations.model is None):
                reading.done |= part.numbers
            elif not turns[0].awaits_model:
                self._extract(part, reading, ask=ask)
            elif ask:
                self._ask_again(part, reading)
        except Exception as error:
            if isinstance(error, StoreError) and not isinstance(error, StoreCorrupt):
                raise
            why = f"{type(error).__name__}: {error}"
            given_up = len(turns) == 1 and turns[0].failures + 1 >= MAX_TURN_FAILURES
            end = (
                f"it failed {MAX_TURN_FAILURES} times and is not read again" if given_up else "it is tried again later"
            )
            reading.warnings.append(f"{', '.join(event.id for event in part.events)} could not be read ({why}); {end}")
            (reading.done if given_up else reading.failed).update(part.numbers)

    def _extract(self, part: "_Batch", reading: BufferReading, *, ask: bool) -> None:
        model, first = self.conversations.model, part.turns[0]
        conversations = replace(self.conversations, queue=_NoQueue(), model=model if ask else None)
        found = conversations.take(
            part.events,
            scope=part.state.scope,
            session=part.session,
            source=first.source,
            extract_assistant_response=first.listens,
        )
        reading.add(found)
        reading.model_failed |= found.pending
        stays = model is not None and (found.pending or not ask)
        refused = part.over_limit(found.decisions)
        reading.over_limit |= refused
        (reading.awaiting if stays else reading.done).update(part.numbers - refused)

    def _ask_again(self, part: "_Batch", reading: BufferReading) -> None:
        """Ask the model about turns that it failed on; one that answers nonsense time and again is not asked any more."""
        refused: set[int] = set()
        try:
            found = self.conversations.retry(part.payload)
            reading.add(found)
            refused = part.over_limit(found.decisions)
        except NotFound:
            pass  # the turns were purged
        except ModelError as error:
            reading.model_failed = True
            reading.warnings.append(f"{type(error).__name__}: {error}")
            if not isinstance(error, ModelNonsense) or part.state.failures < MAX_JOB_ATTEMPTS:
                return
        reading.over_limit |= refused
        reading.done |= part.numbers - refused


@dataclass(frozen=True, slots=True)
class _Batch:
    """Turns that are read together, with their events."""

    session: str
    state: BufferState
    turns: Sequence[WaitingTurn]
    events: Sequence[Event]

    @property
    def numbers(self) -> set[int]:
        return {turn.seq for turn in self.turns}

    @property
    def is_readable(self) -> bool:
        """Whether anyone speaks whose words are listened to."""
        return self.turns[0].listens or any(event.role.lower() in USERS for event in self.events)

    def over_limit(self, decisions: Iterable[FactDecision]) -> set[int]:
        """The turns with a fact that was refused because of the source's limit; all, where the fact's words are in none."""
        words = [decision.said for decision in decisions if decision.gate == RATE]
        found = {event.seq for event in self.events if any(said and said in event.content for said in words)}
        return found or (self.numbers if words else set())

    @property
    def payload(self) -> dict[str, Any]:
        """What `Conversations.retry` needs."""
        return {
            "session": self.session,
            "scope": self.state.scope,
            "source": self.turns[0].source,
            "events": [event.id for event in self.events],
            "extract_assistant_response": self.turns[0].listens,
        }


def is_talk(event: Event | NewEvent | None) -> bool:
    """Whether facts can be taken from a turn: it was not purged, and a user or an assistant said it."""
    if event is None or not event.content.strip():
        return False
    return event.event_type in FACT_EVENTS and event.role.lower() in (*USERS, ASSISTANT)


def _batches(turns: Sequence[WaitingTurn]) -> Iterable[list[WaitingTurn]]:
    """Turns of one source that are read together, in order; one whose reading failed is read alone."""
    for key, some in groupby(turns, key=lambda turn: (turn.awaits_model, turn.source, turn.listens, turn.failures > 0)):
        group, most = list(some), 1 if key[-1] else MAX_BATCH_TURNS
        for start in range(0, len(group), most):
            yield group[start : start + most]
