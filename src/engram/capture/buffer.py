"""The smart buffer: live turns of a session wait until they are due, and are removed only once they have been read.

turn → ledger → signals → buffer → high signal, N turns, T minutes or the session's end → facts (`capture/conversation.py`)
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime, time, timedelta, tzinfo
from functools import partial
from itertools import groupby
from typing import Any

from engram.capture.buffer_state import (
    BUFFER,
    MAX_IDLE_TIME,
    TIMED,
    BufferState,
    WaitingTurn,
    decode_buffer,
    encode_buffer,
)
from engram.capture.conversation import Conversations
from engram.capture.exchange import ASSISTANT, Conversation, FactDecision
from engram.capture.learn import RATE_GATE as RATE
from engram.capture.signals import NONE, Signal, SignalPatterns, scan
from engram.model.arguments import IN_BUFFER
from engram.model.errors import (
    InvalidInput,
    ModelError,
    ModelNonsense,
    NotFound,
    Refused,
    StoreBusy,
    StoreCorrupt,
    StoreError,
)
from engram.model.lazy import dataclass, field, replace
from engram.model.memory import Memory
from engram.model.records import Event, Job, Session
from engram.rules.sources import rank_of
from engram.sessions.jobs import LEASE, MAX_JOB_ATTEMPTS, wait_after
from engram.sessions.observations import new_event
from engram.sessions.tasks import FACT_EVENTS
from engram.settings import Settings
from engram.store.intake import JobFactory, NewEvent, no_jobs
from engram.store.protocol import Store
from engram.text.time.zone import SYSTEM

USERS = ("user", "human")
MAX_BATCH_TURNS = 40
"""Turns read at once; more turns take several readings."""
MAX_TURN_FAILURES = 5
"""How often reading a turn may fail before the turn is dropped."""


@dataclass(slots=True)
class BufferReading:
    """The result of a reading: turns that are done, turns that now wait only for the language model, and the facts."""

    done: set[int] = field(default_factory=set)
    awaiting: set[int] = field(default_factory=set)
    over_limit: set[int] = field(default_factory=set)
    """Turns with a fact that was refused because their source had reached its daily limit."""
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
    """Replaces the job queue: turns that the model failed on stay in the buffer, which asks it again."""

    def enqueue(self, kind: str, key: str, payload: Mapping[str, Any]) -> None:
        """Nothing to do."""


@dataclass(slots=True)
class BufferReader:
    """Extracts the facts from a buffer's turns. `conversations` must learn the same words only once."""

    store: Store
    conversations: Conversations

    def within(self, seconds: float) -> "BufferReader":
        """This reader with a time limit, starting now, for all answers of the model."""
        model = self.conversations.model
        return (
            self
            if model is None
            else replace(self, conversations=replace(self.conversations, model=model.within(seconds)))
        )

    def read(self, session: str, state: BufferState, reading: BufferReading, *, may_ask: bool) -> None:
        """Extract the facts from new turns, and ask the model again about turns it failed on; adds the results to `reading`.

        Without `may_ask`, the model is not asked and those turns keep waiting.
        """
        first = min(turn.seq for turn in state.turns)
        events = {event.seq: event for event in self.store.events(session, after=first - 1)}
        spoken = [turn for turn in state.turns if is_talk(events.get(turn.seq))]
        reading.done.update(turn.seq for turn in state.turns if turn not in spoken)
        # Turns that wait for the model come first, because they are older.
        for turns in _batches(sorted(spoken, key=lambda turn: (not turn.awaits_model, turn.seq))):
            part = _Batch(session, state, turns, [events[turn.seq] for turn in turns])
            self._read(part, reading, ask=may_ask and not reading.model_failed)

    def _read(self, part: "_Batch", reading: BufferReading, *, ask: bool) -> None:
        """Read some turns.

        An error is a warning, unless the store itself fails; turns that fail repeatedly are dropped.
        """
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
        """Ask the model about turns it failed on; if its answers stay unusable, it is no longer asked."""
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
        """Whether any turn is from a speaker whose words are read."""
        return self.turns[0].listens or any(event.role.lower() in USERS for event in self.events)

    def over_limit(self, decisions: Iterable[FactDecision]) -> set[int]:
        """The turns with a fact refused because of the source's limit; all turns, if the fact's words are in none."""
        words = [decision.said for decision in decisions if decision.gate == RATE]
        found = {event.seq for event in self.events if any(said and said in event.content for said in words)}
        return found or (self.numbers if words else set())

    @property
    def payload(self) -> dict[str, Any]:
        """The payload for `Conversations.retry`."""
        return {
            "session": self.session,
            "scope": self.state.scope,
            "source": self.turns[0].source,
            "events": [event.id for event in self.events],
            "extract_assistant_response": self.turns[0].listens,
        }


def is_talk(event: Event | NewEvent | None) -> bool:
    """Whether facts can be extracted from a turn: it was not purged, and its speaker is a user or an assistant."""
    if event is None or not event.content.strip():
        return False
    return event.event_type in FACT_EVENTS and event.role.lower() in (*USERS, ASSISTANT)


def _batches(turns: Sequence[WaitingTurn]) -> Iterable[list[WaitingTurn]]:
    """Turns of one source that are read together, in order; a turn whose reading failed is read alone."""
    for key, some in groupby(turns, key=lambda turn: (turn.awaits_model, turn.source, turn.listens, turn.failures > 0)):
        group, most = list(some), 1 if key[-1] else MAX_BATCH_TURNS
        for start in range(0, len(group), most):
            yield group[start : start + most]


CAPTURE = "capture"
"""The kind of the jobs that check a buffer once its oldest turn has waited long enough."""
AGENT = "agent"
MAX_READING_ROUNDS = 3
"""The most consecutive readings by one caller if turns keep arriving."""


@dataclass(frozen=True, slots=True)
class CaptureResult:
    """The result for a turn, or for all turns that waited in a session."""

    session: str
    waiting: int
    """The number of turns now waiting in the session's buffer."""
    trigger: str = ""
    """Why turns were read: high, turns, time, retry, flush or end; "" if none were."""
    event: str = ""
    """The id of the turn in the session's ledger; "" if no turn was given."""
    level: str = NONE
    """The turn's signal: high, medium, low or none."""
    signals: tuple[str, ...] = ()
    """The patterns found in the turn, each with its level."""
    decisions: tuple[FactDecision, ...] = ()
    memories: tuple[Memory, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(slots=True)
class CaptureBuffer:
    """Accepts live turns, and reads them when they are due.

    The turns are stored in the session's ledger, so nothing is lost: the state `buffer/<session>` only has their
    numbers. If a crash left a turn only in the ledger, it is found there by its mark. One process reads a session at a
    time, and the same words yield facts only once, so neither a crash nor a second process duplicates anything.
    """

    store: Store
    reader: BufferReader
    clock: Callable[[], datetime]
    settings: Settings
    signals: SignalPatterns = ()
    zone: tzinfo = SYSTEM

    # -- turns in

    def capture(
        self, session: str, item: Mapping[str, Any], *, scope: str, source: str = AGENT, listens: bool = False
    ) -> CaptureResult:
        """Store one turn, and read the buffer if it is due.

        The turn is stored even if reading fails, which is only a warning.

        A turn with the key of an earlier one counts as that turn and is not read again.
        """
        if not session.strip():
            raise InvalidInput("capture needs a session id, or a name of your own for one")
        came = self.clock()
        event, state = self._append(session, new_event(item, came, zone=self.zone), came, scope, source)
        signal = self._signal(event)
        if event.seq > state.seen and event.metadata.get(IN_BUFFER):
            state = self._add(session, state, WaitingTurn(event.seq, came, signal.level, source, listens))
        read = CaptureResult(session, len(state.turns))
        if trigger := state.trigger(self.settings, self.clock()):
            patience = float(self.settings.capture_model_timeout)
            read = self._read_safely(session, partial(self._read, session, trigger, patience))
        notes = [f"the signal {pattern!r:.80} takes too long on this turn" for pattern in signal.skipped]
        if event.redactions:
            notes.append(f"secrets redacted in this turn: {event.redactions}")
        return replace(
            read, event=event.id, level=signal.level, signals=signal.patterns, warnings=(*read.warnings, *notes)
        )

    def _append(
        self, session: str, new: NewEvent, came: datetime, scope: str, source: str
    ) -> tuple[Event, BufferState]:
        """Append a turn to the ledger, marked as captured, and return the buffer as it was before."""
        state, is_new = self._begin(session, scope, source)
        jobs: JobFactory = no_jobs
        if is_talk(new):
            new = replace(new, metadata={**new.metadata, IN_BUFFER: True})
            jobs = no_jobs if state.fresh else self._first_job(came)
        try:
            [event] = self.store.append_events(session, [new], jobs, scope=scope)
        except (InvalidInput, Refused):
            if is_new:
                self._change(session, lambda held: None if held == state else held)
            raise
        return event, state

    def _begin(self, session: str, scope: str, source: str) -> tuple[BufferState, bool]:
        """The buffer, and whether it was just created.

        It is created before the first turn, so that a crash cannot hide that turn.
        """
        known = self._load(session)
        if known is not None and rank_of(known.source) <= rank_of(source):
            return known, False
        last = self.store.events(session, last=1)
        new = BufferState(scope, source, last[-1].seq if last else 0, self.clock())
        state = self._change(session, lambda held: held.with_source(source) if held is not None else new)
        assert state is not None, "it was just begun"
        return state, state == new

    def _first_job(self, came: datetime) -> JobFactory:
        """Makes the job that reads a previously empty buffer when it is due."""
        if self.settings.capture_mode not in TIMED:
            return no_jobs
        due = came + timedelta(minutes=self.settings.capture_minutes)
        return lambda events: [self._job(events[0].session, due, events[0].scope)]

    def _job(self, session: str, due: datetime, scope: str) -> Job:
        name = f"{CAPTURE}:{session}:{due.astimezone(UTC):%Y%m%dT%H%M%S.%f}"
        return Job(name, CAPTURE, self.clock(), due, {"session": session}, scope=scope)

    def _signal(self, event: Event) -> Signal:
        """The signal of a user's turn; turns of other roles never make a buffer more urgent."""
        return scan(event.content, self.signals) if event.role.lower() in USERS else Signal()

    def _add(self, session: str, known: BufferState, turn: WaitingTurn | None = None) -> BufferState:
        """The buffer with this turn, and with turns that a crash or another process left only in the ledger."""
        left: list[Event] = []
        if turn is None or turn.seq > known.seen + 1:
            found = self.store.events(session, after=known.seen)
            left = [
                event for event in found if event.metadata.get(IN_BUFFER) and (turn is None or event.seq != turn.seq)
            ]
        if turn is None and not left:
            return known
        now = self.clock()

        def add(held: BufferState | None) -> BufferState:
            base = held or known
            others = [self._recover_turn(event, base, now) for event in left]
            return base.with_turns(others if turn is None else [*others, turn], now).with_own(turn)

        state = self._change(session, add)
        assert state is not None, "it has turns"
        return state

    def _recover_turn(self, event: Event, state: BufferState, now: datetime) -> WaitingTurn:
        """A turn whose source is unknown here: it gets the least trusted of the possible sources, and never a person."""
        source = min(state.source, AGENT, key=rank_of)
        return WaitingTurn(event.seq, min(event.at, now), self._signal(event).level, source)

    # -- turns out

    def flush(self, session: str, trigger: str = "flush") -> CaptureResult:
        """Read all turns of a session now, including those that a model just failed on."""
        state = self._recover_buffer(session)
        if state is None or not state.turns:
            return CaptureResult(session, 0)
        read = self._read(session, trigger)
        if not read.trigger:
            return replace(read, warnings=(f"another process is reading the turns of {session}",))
        return read

    def flush_all(self, scopes: Collection[str] | None = None) -> list[CaptureResult]:
        """Read all turns of every session now; an error in one session is a warning and does not stop the others."""
        return [self._read_safely(session, partial(self.flush, session)) for session in self.sessions(scopes)]

    def end(self, session: str) -> CaptureResult:
        """Read all turns of a session that ends, and remove its buffer unless a model must be asked again."""
        read = self.flush(session, "end")
        self._change(session, lambda held: held if held is not None and held.turns else None)
        return read

    def read_due(self, scopes: Collection[str] | None = None) -> list[CaptureResult]:
        """Read every session with due turns, and remove buffers that have long been unused."""
        results = [self._read_safely(session, partial(self._read_if_due, session)) for session in self.sessions(scopes)]
        return [result for result in results if result.trigger or result.warnings]

    def _read_if_due(self, session: str) -> CaptureResult:
        state = self._recover_buffer(session)
        if state is not None and (trigger := state.trigger(self.settings, self.clock())):
            return self._read(session, trigger)
        if state is not None and not state.turns and self.clock() - state.used > MAX_IDLE_TIME:
            self._change(session, lambda held: held if held is not None and held.turns else None)
        return CaptureResult(session, 0)

    def run(self, job: Job) -> None:
        """The handler of the jobs: read a session's turns if they are due."""
        session = str(job.payload["session"])
        state = self._recover_buffer(session)
        trigger = state.trigger(self.settings, self.clock()) if state is not None else ""
        if not trigger:
            self._schedule(session, state)
        elif not self._read(session, trigger).trigger:
            raise StoreBusy(f"another process is reading the turns of {session}")

    def sessions(self, scopes: Collection[str] | None = None) -> list[str]:
        """The sessions that have a buffer: all, or only those in these scopes."""
        found = [name.removeprefix(BUFFER) for name in self.store.states(BUFFER)]
        return [
            session
            for session in found
            if scopes is None or self.store.state(f"{BUFFER}{session}").get("scope") in scopes
        ]

    def _read_safely(self, session: str, read: Callable[[], CaptureResult]) -> CaptureResult:
        """Read a session; an error is a warning, and the turns stay.

        Capturing a turn must not fail because of another one.
        """
        try:
            return read()
        except Exception as error:
            turns = self.store.state(f"{BUFFER}{session}").get("turns", ())
            waiting = len(turns) if isinstance(turns, list) else 0
            return CaptureResult(session, waiting, warnings=(f"{type(error).__name__}: {error}",))

    def _read(self, session: str, trigger: str, patience: float | None = None) -> CaptureResult:
        """Read the waiting turns, and again if others become due meanwhile; nothing while another process reads.

        `patience` is the time in seconds that the language model may take in total; turns it does not answer for stay.
        """
        reader = self.reader if patience is None else self.reader.within(patience)
        whole, rounds, again = BufferReading(), 0, True
        state: BufferState | None = None
        while again and rounds < MAX_READING_ROUNDS:
            token = self.store.new_token(8)
            state = self._claim(session, token)
            if state is None or state.reader != token:
                break
            reading, rounds = BufferReading(), rounds + 1
            try:
                ask = trigger == "flush" or state.may_ask(self.clock())
                wanted = state if trigger in ("flush", "end") else state.ready(self.clock())
                if wanted.turns:
                    reader.read(session, wanted, reading, may_ask=ask)
            finally:
                state = self._settle(session, token, state, reading)
            whole.add(reading)
            again = state is not None and bool(state.trigger(self.settings, self.clock()))
        waiting = len(state.turns) if state is not None else 0
        return CaptureResult(
            session, waiting, trigger if rounds else "", decisions=tuple(whole.decisions),
            memories=tuple(whole.memories), warnings=tuple(dict.fromkeys(whole.warnings)),
        )  # fmt: skip

    def _claim(self, session: str, token: str) -> BufferState | None:
        """The buffer with its turns claimed for this reader; None if another reader has claimed them."""
        now = self.clock()

        def claim(held: BufferState | None) -> BufferState | None:
            if held is None or not held.turns or held.is_read(now):
                return held
            return replace(held, reader=token, reading_until=now + LEASE)

        return self._change(session, claim)

    def _settle(self, session: str, token: str, claimed: BufferState, reading: BufferReading) -> BufferState | None:
        """Remove the turns that were read, release the claim, and schedule the next check.

        Turns that arrived meanwhile stay.
        """
        now, ended = self.clock(), self._has_ended(session)

        def settle(held: BufferState | None) -> BufferState | None:
            if held is None:
                return None
            left = held.without(reading.done, reading.awaiting, token)
            left = left.postpone(reading.over_limit, _next_day(now)).postpone_failed(reading.failed, now)
            if reading.model_failed:
                left = replace(left, failures=left.failures + 1, retry_at=now + wait_after(left.failures + 1))
            return left if left.turns or not ended else None

        state = self._change(session, settle)
        self._schedule(session, state, claimed)
        return state

    def _schedule(self, session: str, state: BufferState | None, before: BufferState | None = None) -> None:
        """Queue the job that checks the turns again, if any wait for a time, in place of the job for the state before."""
        due = state.next_due(self.settings) if state is not None else None
        if before is not None:
            for obsolete in filter(None, {before.time_due(self.settings), before.retry_at} - {due}):
                # Remove only a waiting job; a worker removes the job it has taken.
                self.store.settle_job(self._job(session, obsolete, before.scope), None)
        if state is not None and due is not None:
            self.store.enqueue([self._job(session, due, state.scope)])

    def _has_ended(self, session: str) -> bool:
        known = self.store.load_record(Session, session)
        return known is not None and known.ended is not None

    # -- the state

    def _recover_buffer(self, session: str) -> BufferState | None:
        """The buffer, with turns that were left only in the ledger; None if there is no buffer."""
        known = self._load(session)
        return self._add(session, known) if known is not None else None

    def _load(self, session: str) -> BufferState | None:
        name = f"{BUFFER}{session}"
        return decode_buffer(name, self.store.state(name))

    def _change(self, session: str, change: Callable[[BufferState | None], BufferState | None]) -> BufferState | None:
        name = f"{BUFFER}{session}"

        def apply_change(held: Mapping[str, Any]) -> Mapping[str, Any]:
            after = change(decode_buffer(name, held))
            return encode_buffer(after) if after is not None else {}

        return decode_buffer(name, self.store.change_state(name, apply_change))


def _next_day(now: datetime) -> datetime:
    """When the daily limits of sources start again."""
    return datetime.combine(now.date() + timedelta(days=1), time(), now.tzinfo)
