"""Sessions: each starts with an injection, has a ledger, and folds in its uses at the end."""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, tzinfo
from types import TracebackType
from typing import Any, Self, Unpack

from engram.gates.secrets.scan import refuse_secret
from engram.model.arguments import checked_length, checked_place
from engram.model.errors import InvalidInput, StoreDenied, StoreReadOnly
from engram.model.event import SUMMARY_ROLE, Event, Session
from engram.model.fields import EventFields
from engram.model.hit import Injection
from engram.model.lazy import dataclass, replace
from engram.model.memory import Memory
from engram.recall.recaller import Recaller
from engram.rules.argument_limits import limit_arguments
from engram.sessions import feedback
from engram.sessions.observations import make_storable, new_event
from engram.settings import Settings
from engram.store.protocol import Filters, Store
from engram.store.references import Scopes, check_ledger, find_session, no_session
from engram.text.time.zone import SYSTEM

EventList = list[Event]
SessionList = list[Session]
SUMMARY_TOKENS = 400
SYNC_SECONDS = 0.3
"""How long the start of a session may check for files edited by hand."""


@limit_arguments
@dataclass(slots=True)
class Sessions:
    """Starts, finds and ends sessions; appends to their ledgers."""

    store: Store
    recaller: Recaller
    clock: Callable[[], datetime]
    settings: Settings
    ask_summary: "tuple[str, Callable[[str], str]] | None" = None
    """A model's name, and a function that asks it for a summary."""
    zone: tzinfo = SYSTEM
    """The zone of times that are given without one."""
    before_end: Callable[[str], None] | None = None
    """Called with the id of a session that is about to end, while its ledger is open."""

    def start(
        self, task: str, scopes: tuple[str, ...], budget: int | None = None, *, whole_store: bool = False
    ) -> "SessionHandle":
        """Begin a session with these scopes and select its injection from them, or from the whole store."""
        now = self.clock()
        session_id = f"S-{now:%Y%m%d-%H%M%S}-{self.store.new_token(3)}"
        session = self.store.screen.session(Session(session_id, make_storable(task), scopes, now))
        task = session.task
        warnings: list[str] = []
        if session.redactions:
            warnings.append(f"the session's task looked like it contains a secret, which was replaced: {task[:200]}")
        try:
            self.store.save_record(session)
            self.store.sync(seconds=SYNC_SECONDS)
        except (StoreReadOnly, StoreDenied) as error:
            warnings.append(f"{error}; this session is not stored")
        filters = Filters(scopes=None if whole_store else scopes, valid_at=now)
        injection = Injection()
        if task.strip():
            injection = self._injection(task, filters, self.settings.budget if budget is None else budget, session)
        injection = replace(injection, warnings=(*injection.warnings, *warnings))
        return SessionHandle(self, session, injection, whole_store)

    def _injection(self, task: str, filters: Filters, budget: int, session: Session) -> Injection:
        """What memory knows about the task, and how earlier sessions about it ended."""
        from engram.embedding.tokenizer import count_tokens
        from engram.sessions.earlier import EarlierSessions, cost, with_sessions

        found = EarlierSessions(self.recaller.searcher, count_tokens, self.zone)
        earlier = found.about(task, filters.scopes, session.started, budget) if type(budget) is int else ()
        room = budget - cost(earlier, count_tokens)
        injection = self.recaller.inject(task, filters, room, session.id)
        return replace(with_sessions(injection, earlier, count_tokens), budget=budget)

    def get(self, session_id: str, *, scopes: Scopes = None) -> Session:
        """A session by id; raises `NotFound` where there is none in the scopes the caller sees."""
        return find_session(self.store, session_id, scopes)

    def list(self, limit: int | None = 50, *, scopes: Scopes = None) -> SessionList:
        """Sessions, newest first: everyone's, or those of these scopes."""
        return self.store.list_records(Session, limit=checked_length(limit), scopes=scopes)

    def events(self, session_id: str, *, last: int | None = None, after: int = 0, scopes: Scopes = None) -> EventList:
        """A session's events in order: all, those after a number, or the last ones. A name of your own is a session too."""
        checked_length(last, "last")
        found = self.store.events(session_id, last=last, after=checked_place(after, "after"))
        if not found and self.store.load_record(Session, session_id) is None:
            raise no_session(session_id)
        check_ledger(self.store, session_id, scopes)
        return found

    def end(self, session_id: str, summary: str = "", *, scopes: Scopes = None) -> Session:
        """End a session: captured turns that wait are read, its uses are folded in, and memories injected together are linked.

        Ending twice changes nothing.
        """
        session = find_session(self.store, session_id, scopes, to_change=True)
        if session.ended is None:
            if self.before_end is not None:
                self.before_end(session.id)
            if summary.strip():
                given = replace(
                    session, summary=make_storable(summary), summary_through=0, summary_style="", summary_by=""
                )
                session = self.store.screen.session(given)
            elif self.store.events(session.id, after=session.summary_through, last=1):
                session = self.summarise(session.id)
            session = replace(session, ended=max(self.clock(), session.started))
            self._record_summary(session)
            self.store.save_record(session)
        assert session.ended is not None
        feedback.fold_session(self.store, session.id, session.ended)
        return session

    def _record_summary(self, session: Session) -> None:
        """Append the summary to the ledger, where recall finds it; one made by rules only repeats what is there."""
        from engram.sessions.summary import RULES

        if not session.summary or session.summary_by == RULES:
            return
        event = {
            "role": SUMMARY_ROLE,
            "content": session.summary,
            "event_type": "observation",
            "key": f"{session.id}/summary",
        }
        self.store.append_events(session.id, [new_event(event, session.ended or self.clock())], scope=session.owner)

    def summarise(
        self, session_id: str, *, style: str = "", max_tokens: int = SUMMARY_TOKENS, scopes: Scopes = None
    ) -> Session:
        """Fold the new events into the session's rolling summary: extracts by rules, or a model's words.

        Styles: `plain`, and `structured` with Goal, Constraints, Progress, Decisions, Next steps and Critical context.
        """
        from engram.embedding.tokenizer import count_tokens
        from engram.sessions import summary

        if type(max_tokens) is not int or max_tokens < 1:
            raise InvalidInput(f"max_tokens {max_tokens!r} must be a whole number, at least 1")
        session = find_session(self.store, session_id, scopes, to_change=True)
        known = None
        if session.summary_through:
            known = summary.Summary(session.summary, session.summary_through, session.summary_style, session.summary_by)
        events = self.store.events(session.id, after=session.summary_through)
        if known is not None and summary.has_room(known, max_tokens, count_tokens):
            every = self.store.events(session.id)
            if every and every[0].seq == 1:  # a pruned ledger no longer has what the summary says
                known, events = None, every
        wanted = style or session.summary_style or "plain"
        if self.ask_summary is None:
            made = summary.summarise(known, events, style=wanted, max_tokens=max_tokens, count=count_tokens)
        else:
            name, ask = self.ask_summary
            made = summary.summarise_with(
                ask, name, known, events, style=wanted, max_tokens=max_tokens, count=count_tokens
            )
        if not made.text and summary.summarise(known, events, style=wanted, count=count_tokens).text:
            raise InvalidInput(f"{max_tokens} tokens are too few for a summary of {session.id}; give more")
        session = replace(
            session,
            summary=make_storable(made.text),
            summary_through=made.through,
            summary_style=made.style,
            summary_by=made.made_by,
        )
        self.store.save_record(session)
        return session

    def observe_batch(self, session_id: str, items: Iterable[Mapping[str, Any]], *, scope: str = "") -> EventList:
        """Append events; secrets in them are redacted before anything touches the disk.

        `scope` is the writer's: a name of your own becomes a session of that scope. Raises `Refused` for a session of another scope.
        """
        if not session_id.strip():
            raise InvalidInput("observe needs a session id, or a name of your own for one")
        refuse_secret(session_id, "the session's id")
        events = [new_event(item, self.clock(), zone=self.zone) for item in items]
        return self.store.append_events(session_id, events, scope=scope) if events else []


@limit_arguments
@dataclass(slots=True)
class SessionHandle:
    """A running session. As a context manager, it ends on exit."""

    sessions: Sessions
    session: Session
    injection: Injection
    whole_store: bool = False
    """Whether the session sees the whole store instead of only its scopes."""

    @property
    def id(self) -> str:
        """The session's id."""
        return self.session.id

    def observe(self, role: str, content: str, **fields: Unpack[EventFields]) -> Event:
        """Append one event to this session's ledger."""
        item = {"role": role, "content": content, **fields}
        return self.sessions.observe_batch(self.id, [item], scope=self.session.owner)[0]

    def summarise(self, style: str = "", max_tokens: int = SUMMARY_TOKENS) -> str:
        """Fold the events so far into the session's summary, and return it."""
        self.session = self.sessions.summarise(self.id, style=style, max_tokens=max_tokens)
        return self.session.summary

    def feedback(self, ref: str, signal: str) -> Memory:
        """Rate a memory that this session sees."""
        scopes = None if self.whole_store else self.session.scopes or None
        return feedback.rate(self.sessions.store, ref, signal, self.sessions.clock(), self.id, scopes=scopes)

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
