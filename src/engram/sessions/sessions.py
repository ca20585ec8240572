"""A session: begins with an injection, keeps a ledger, ends by folding in what was used."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from types import TracebackType
from typing import Any, Self

from engram.gates.secrets import redact, redact_all, refuse_secret
from engram.model.errors import InvalidInput, NotFound, StoreDenied, StoreReadOnly
from engram.model.event import EVENT_TYPES, Event, Session
from engram.model.hit import Injection
from engram.model.memory import Memory
from engram.model.times import aware
from engram.recall.recalling import Recaller
from engram.sessions import feedback
from engram.settings import Settings
from engram.store.protocol import Filters, NewEvent, Store

_FIELDS = frozenset({"role", "content", "at", "key", "event_type", "payload", "metadata", "task"})
SYNC_SECONDS = 0.3
"""How long a session's start may look for files edited by hand."""
MAX_CONTENT = 8 * 1024 * 1024


@dataclass(slots=True)
class Sessions:
    """Starts, finds and ends sessions; appends to their ledgers."""

    store: Store
    recaller: Recaller
    clock: Callable[[], datetime]
    settings: Settings

    def start(self, task: str, scopes: tuple[str, ...], budget: int | None = None) -> "SessionHandle":
        """Begin a session and choose its injection."""
        now = self.clock()
        task = redact(task)[0]
        session = Session(f"S-{now:%Y%m%d-%H%M%S}-{self.store.new_token(3)}", task, scopes, now)
        warnings: list[str] = []
        try:
            self.store.save_session(session)
            self.store.sync(seconds=SYNC_SECONDS)
        except (StoreReadOnly, StoreDenied) as error:
            warnings.append(f"{error}; this session is not kept")
        filters = Filters(scopes=scopes, valid_at=now)
        injection = Injection()
        if task.strip():
            injection = self.recaller.inject(
                task, filters, self.settings.budget if budget is None else budget, session.id
            )
        injection = replace(injection, warnings=(*injection.warnings, *warnings))
        return SessionHandle(self, session, injection)

    def get(self, session_id: str) -> Session:
        """A session by id."""
        session = self.store.session(session_id)
        if session is None:
            raise NotFound(f"no session {session_id!r}; `engram session start` begins one")
        return session

    def end(self, session_id: str, summary: str = "") -> Session:
        """End a session: uses are folded in, what was injected together grows together. Ending twice changes nothing."""
        session = self.get(session_id)
        if session.ended is None:
            session = replace(session, ended=self.clock(), summary=redact(summary)[0])
            self.store.save_session(session)
        assert session.ended is not None
        feedback.fold_session(self.store, session.id, session.ended)
        return session

    def observe_batch(self, session_id: str, items: Iterable[Mapping[str, Any]]) -> list[Event]:
        """Append events; secrets in them are redacted before anything touches the disk."""
        if not session_id.strip():
            raise InvalidInput("observing needs a session's id, or a name of your own for one")
        refuse_secret(session_id, "the session's id")
        events = [_new_event(item, self.clock()) for item in items]
        return self.store.append_events(session_id, events) if events else []


def _new_event(item: Mapping[str, Any], now: datetime) -> NewEvent:
    unknown = set(item) - _FIELDS
    if unknown:
        raise InvalidInput(f"unknown field {sorted(unknown)[0]!r} of an event; known: {', '.join(sorted(_FIELDS))}")
    role, content = item.get("role", ""), item.get("content", "")
    if not isinstance(role, str) or not role.strip() or not isinstance(content, str):
        raise InvalidInput("an event needs a role and a content, both text")
    if len(content) > MAX_CONTENT:
        raise InvalidInput(
            f"an event of {len(content)} characters; at most {MAX_CONTENT}. `engram ingest` takes documents"
        )
    event_type = item.get("event_type", "message")
    if event_type not in EVENT_TYPES:
        raise InvalidInput(f"{event_type!r} is no event type; one of {', '.join(EVENT_TYPES)}")
    key = str(item.get("key", "") or "")
    refuse_secret(key, "the event's key")
    return NewEvent(
        role=redact(role.strip())[0],
        content=redact(content.encode("utf-8", "replace").decode())[0],
        at=aware(item.get("at")) or now,
        event_type=event_type,
        task=redact(str(item.get("task", "")))[0],
        key=key,
        payload=redact_all(item.get("payload") or {}),
        metadata=redact_all(dict(item.get("metadata") or {})),
    )


@dataclass(slots=True)
class SessionHandle:
    """A running session. As a context manager it ends itself."""

    sessions: Sessions
    session: Session
    injection: Injection

    @property
    def id(self) -> str:
        """The session's id."""
        return self.session.id

    def observe(self, role: str, content: str, **fields: Any) -> Event:
        """Append one event to this session's ledger."""
        return self.sessions.observe_batch(self.id, [{"role": role, "content": content, **fields}])[0]

    def feedback(self, ref: str, signal: str) -> Memory:
        """Rate a memory in this session."""
        return feedback.rate(self.sessions.store, ref, signal, self.sessions.clock(), self.id)

    def end(self, summary: str = "") -> Session:
        """End the session."""
        self.session = self.sessions.end(self.id, summary)
        return self.session

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.session.ended is None:
            self.end()
