"""The turns that wait in a session's buffer, and when they are due: pure values, stored as the state `buffer/<session>`.

A turn itself is in the session's ledger; the buffer has its number there and the data needed to read it.
"""

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

from engram.disk import MALFORMED
from engram.model.errors import StoreCorrupt
from engram.model.lazy import dataclass, replace
from engram.rules.scopes import is_scope_visible
from engram.rules.sources import rank_of
from engram.sessions.jobs import LEASE, MAX_RETRY_WAIT, wait_after
from engram.settings import Settings
from engram.store.protocol import Store

BUFFER = "buffer/"
"""The prefix of these states' names."""
MAX_IDLE_TIME = timedelta(days=1)
"""An empty buffer unused for this long is removed; the session's next turn creates another."""
HIGH_SIGNAL = "high"
TIMED, COUNTED = ("smart", "time"), ("smart", "every_n")
"""The modes in which turns are due by time, and by number."""


@dataclass(frozen=True, slots=True)
class WaitingTurn:
    """A turn that has not been read yet."""

    seq: int
    """Its number in the session's ledger."""
    at: datetime
    """When the turn arrived."""
    level: str
    """Its signal: high, medium, low or none."""
    source: str
    listens: bool = False
    """Whether an assistant's statements about the user are read too."""
    awaits_model: bool = False
    """Whether its facts are stored except those that need the language model, which did not answer."""
    after: datetime | None = None
    """When the turn is read again, if it was postponed because its source reached its limit or reading failed."""
    failures: int = 0
    """How often reading the turn failed."""


@dataclass(frozen=True, slots=True)
class BufferState:
    """A session's buffer."""

    scope: str
    source: str
    """The least trusted source of its turns."""
    seen: int
    """The number up to which the ledger's captured turns are in the buffer."""
    used: datetime
    turns: tuple[WaitingTurn, ...] = ()
    failures: int = 0
    """How many times in a row the language model did not answer."""
    retry_at: datetime | None = None
    """When the language model may be asked again."""
    reader: str = ""
    reading_until: datetime | None = None
    """The current reader, and until when its claim is valid."""

    @property
    def fresh(self) -> tuple[WaitingTurn, ...]:
        """The turns that have not been read and were not postponed."""
        return tuple(turn for turn in self.turns if not turn.awaits_model and turn.after is None)

    def ready(self, now: datetime) -> "BufferState":
        """The buffer without turns that are postponed until later."""
        return replace(self, turns=tuple(turn for turn in self.turns if turn.after is None or turn.after <= now))

    def is_read(self, now: datetime) -> bool:
        """Whether somebody is reading the turns now.

        A lease longer than allowed was taken before the clock was set back and is ignored.
        """
        return bool(self.reader) and self.reading_until is not None and now < self.reading_until <= now + 2 * LEASE

    def may_ask(self, now: datetime) -> bool:
        """Whether the language model may be asked again after its last failure; a wait longer than allowed is ignored."""
        return self.retry_at is None or not now < self.retry_at <= now + MAX_RETRY_WAIT

    def trigger(self, settings: Settings, now: datetime) -> str:
        """Why the turns are due now: high, turns, time or retry; "" if they are not."""
        fresh = self.fresh
        if fresh and settings.capture_mode == "smart" and any(turn.level == HIGH_SIGNAL for turn in fresh):
            return "high"
        if settings.capture_mode in COUNTED and len(fresh) >= settings.capture_turns:
            return "turns"
        due = self.time_due(settings)
        waits_at_most = timedelta(minutes=settings.capture_minutes)
        if due is not None and (now >= due or due > now + 2 * waits_at_most + LEASE):
            return "time"  # the time has passed, or the turns were dated before the clock was set back
        awaits = any(turn.awaits_model and turn.after is None for turn in self.turns) and self.may_ask(now)
        return "retry" if awaits or any(time <= now for time in self._postponed_times()) else ""

    def time_due(self, settings: Settings) -> datetime | None:
        """When the oldest turn is due by time; None if no turn is."""
        fresh = self.fresh
        if not fresh or settings.capture_mode not in TIMED:
            return None
        return min(turn.at for turn in fresh) + timedelta(minutes=settings.capture_minutes)

    def next_due(self, settings: Settings) -> datetime | None:
        """When to check the turns again if no new one arrives; None for never."""
        awaits = self.retry_at if any(turn.awaits_model and turn.after is None for turn in self.turns) else None
        return min(filter(None, (self.time_due(settings), awaits, *self._postponed_times())), default=None)

    def _postponed_times(self) -> list[datetime]:
        """When postponed turns are due; those that wait for the model are not due before it may be asked."""
        return [
            max(turn.after, self.retry_at) if turn.awaits_model and self.retry_at is not None else turn.after
            for turn in self.turns
            if turn.after is not None
        ]

    def with_source(self, source: str) -> "BufferState":
        """The buffer with this source taken into account."""
        return replace(self, source=min(self.source, source, key=rank_of))

    def with_turns(self, turns: Sequence[WaitingTurn], now: datetime) -> "BufferState":
        """The buffer with additional turns."""
        new = [turn for turn in turns if turn.seq > self.seen]
        if not new:
            return self
        seen = max(turn.seq for turn in new)
        return replace(self, seen=seen, used=now, turns=(*self.turns, *sorted(new, key=lambda turn: turn.seq)))

    def with_own(self, turn: WaitingTurn | None) -> "BufferState":
        """The buffer with details known only to the process that captured a turn, if another process found that turn first."""
        if turn is None or turn in self.turns:
            return self
        turns = (
            replace(turn, awaits_model=one.awaits_model, after=one.after, failures=one.failures)
            if one.seq == turn.seq
            else one
            for one in self.turns
        )
        return replace(self, turns=tuple(turns))

    def without(self, done: Collection[int], awaiting: Collection[int], reader: str) -> "BufferState":
        """The buffer after a reader's work: finished turns are removed, and those that wait for the model are marked."""
        turns = tuple(
            replace(turn, awaits_model=True, after=None) if turn.seq in awaiting else turn
            for turn in self.turns
            if turn.seq not in done
        )
        left = replace(self, turns=turns)
        if not any(turn.awaits_model for turn in turns):
            left = replace(left, failures=0, retry_at=None)
        return replace(left, reader="", reading_until=None) if self.reader == reader else left

    def postpone(self, numbers: Collection[int], until: datetime) -> "BufferState":
        """The buffer with turns postponed until a time."""
        turns = (replace(turn, after=until) if turn.seq in numbers else turn for turn in self.turns)
        return replace(self, turns=tuple(turns))

    def postpone_failed(self, numbers: Collection[int], now: datetime) -> "BufferState":
        """The buffer with turns whose reading failed again; each failure lengthens the wait."""
        turns = (
            replace(turn, failures=turn.failures + 1, after=now + wait_after(turn.failures + 1))
            if turn.seq in numbers
            else turn
            for turn in self.turns
        )
        return replace(self, turns=tuple(turns))


def decode_buffer(name: str, fields: Mapping[str, Any]) -> BufferState | None:
    """The buffer of a stored state; None for an empty one. Raises `StoreCorrupt` if it is not a valid buffer."""
    if not fields:
        return None
    try:
        turns = tuple(
            WaitingTurn(
                seq=int(turn["seq"]), at=_moment(turn["at"]), level=str(turn["level"]), source=str(turn["source"]),
                listens=bool(turn.get("listens")), awaits_model=bool(turn.get("awaits_model")),
                after=_optional(turn.get("after")), failures=int(turn.get("failures", 0)),
            )
            for turn in fields.get("turns", ())
        )  # fmt: skip
        return BufferState(
            scope=str(fields["scope"]), source=str(fields["source"]), seen=int(fields["seen"]), used=_moment(fields["used"]), turns=turns,
            failures=int(fields.get("failures", 0)), retry_at=_optional(fields.get("retry_at")),
            reader=str(fields.get("reader", "")), reading_until=_optional(fields.get("reading_until")),
        )  # fmt: skip
    except MALFORMED as error:
        raise StoreCorrupt(f"the state {name} is no buffer ({error}); restore it from a backup") from None


def encode_buffer(state: BufferState) -> dict[str, Any]:
    """A buffer as JSON-safe data, without empty fields."""
    turns = [
        {"seq": turn.seq, "at": _iso(turn.at), "level": turn.level, "source": turn.source}
        | ({"listens": True} if turn.listens else {})
        | ({"awaits_model": True} if turn.awaits_model else {})
        | ({"after": _iso(turn.after)} if turn.after is not None else {})
        | ({"failures": turn.failures} if turn.failures else {})
        for turn in state.turns
    ]
    fields = {
        "scope": state.scope, "source": state.source, "seen": state.seen, "used": _iso(state.used), "turns": turns, "failures": state.failures,
        "retry_at": _iso(state.retry_at), "reader": state.reader, "reading_until": _iso(state.reading_until),
    }  # fmt: skip
    return {name: value for name, value in fields.items() if value or name in ("scope", "source", "seen")}


def waiting_turns(store: Store, scopes: Collection[str] | None = None) -> int:
    """The number of turns that wait in the buffers of all sessions, or of those in these scopes."""
    states = (store.state(name) for name in store.states(BUFFER))
    return sum(len(state.get("turns", ())) for state in states if is_scope_visible(scopes, str(state.get("scope", ""))))


def oldest_turn(store: Store) -> datetime | None:
    """When the oldest waiting turn in any buffer arrived; None if none waits."""
    found: list[datetime] = []
    for name in store.states(BUFFER):
        with suppress(StoreCorrupt):
            state = decode_buffer(name, store.state(name))
            found += [turn.at for turn in state.turns] if state is not None else []
    return min(found, default=None)


def _moment(text: Any) -> datetime:
    found = datetime.fromisoformat(text)
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _optional(text: Any) -> datetime | None:
    return _moment(text) if text else None


def _iso(moment: datetime | None) -> str:
    return moment.astimezone(UTC).isoformat() if moment is not None else ""
