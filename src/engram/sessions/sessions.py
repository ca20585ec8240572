"""Sessions: each starts with an injection and keeps a ledger; its uses and ratings reinforce the memories it used."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from datetime import datetime, tzinfo
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, Unpack

from engram.model.arguments import checked_length, checked_place
from engram.model.errors import InvalidInput, StoreDenied, StoreError, StoreReadOnly
from engram.model.hit import Injection
from engram.model.lazy import dataclass, replace
from engram.model.memory import SIGNALS, EventFields, Memory
from engram.model.records import RATED, RATED_BY_PERSON, SUMMARY_ROLE, Event, Session, Use
from engram.recall.recaller import Recaller
from engram.rules.lifecycle import apply_rating, fold_uses, link_co_accessed
from engram.rules.limits import limit_arguments
from engram.rules.scopes import is_person, visible_scopes
from engram.rules.sources import Rank, rank_of
from engram.sessions.observations import make_storable, new_event
from engram.settings import Settings
from engram.store.protocol import Filters, Store
from engram.store.records import ENGRAM_ACTOR
from engram.store.references import Scopes, check_ledger, find_memory, find_session, no_session
from engram.text.time.zone import SYSTEM

if TYPE_CHECKING:
    from collections.abc import Callable

    from engram.decisions.execution import LockedMemories


def rate_memory(
    store: Store,
    ref: str,
    signal: str,
    at: datetime,
    session: str = "",
    *,
    actor: str = "manual",
    scopes: Scopes = None,
) -> Memory:
    """Record a rating of a memory, and fold it in at once if the memory belongs to the owner.

    A memory that a person stated stays strong enough to be injected, unless a person rates it. Anyone who sees a memory
    may rate it; `scopes` are those that the caller sees. An error means that the rating was not recorded. A recorded
    rating that cannot be folded in now is folded in by the next fold.
    """
    if signal not in SIGNALS:
        raise InvalidInput(f"Unknown signal {signal!r}; choose {', '.join(SIGNALS)}")
    memory = find_memory(store, ref, scopes)
    by_person = rank_of(actor) == Rank.PERSON
    kind = RATED_BY_PERSON if by_person else RATED
    store.note_use(Use(kind, (memory.id,), at, session, signal))
    memory = apply_rating(memory, signal, at, by_person=by_person)
    with suppress(StoreError):
        fold_recorded_uses(store, [memory.id], at, session=session, op="rate", actor=actor)
        memory = store.get(memory.id) or memory
    return memory


def fold_recorded_uses(
    store: Store,
    ids: Iterable[str],
    now: datetime,
    *,
    session: str = "",
    then: "Callable[[Memory], Memory] | None" = None,
    op: Literal["use", "rate"] = "use",
    actor: str = ENGRAM_ACTOR,
) -> list[str]:
    """Fold every recorded use into these memories, as one journal entry; returns the changed ids.

    `then` may change each memory further.
    """
    from engram.decisions.execution import (
        Change,
        execute_change,  # A process that only recalls needs no gates.
    )

    wanted = store.own_ids(dict.fromkeys(ids))
    if not wanted:
        return []
    uses: dict[str, list[Use]] = {memory_id: [] for memory_id in wanted}
    for use in store.uses(wanted):
        uses[use.ids[0]].append(use)

    def plan(memories: "LockedMemories") -> list[str]:
        changed = []
        for memory_id in wanted:
            memory = memories.get(memory_id)
            if memory is None:
                continue
            after = fold_uses(memory, uses[memory_id])
            after = then(after) if then else after
            if after != memory:
                memories.put(after)
                changed.append(memory_id)
        return changed

    change = Change(op=op, actor=actor, plan=plan, session=session, related=wanted)
    return execute_change(store, lambda: now, change)


def fold_session_uses(store: Store, session: str, ended: datetime) -> list[str]:
    """Fold in a session's uses when it ends, and link the memories that were injected together.

    Repeating it for the same end changes nothing, because a link reinforced at that moment is left alone.
    """
    uses = store.uses(session=session)
    injected = tuple(dict.fromkeys(i for use in uses if use.kind == "injected" for i in use.ids))
    owners = {memory_id: store.owner_of(memory_id) or "" for memory_id in injected}

    def link_injected(memory: Memory) -> Memory:
        done = {link.target for link in memory.associations if link.last_reinforced == ended}
        seen = visible_scopes([memory.scope])
        # Memories that everyone reads must not name the memories of one person.
        others = tuple(
            i for i in injected if i not in (memory.id, *done) and (owners[i] in seen or not is_person(owners[i]))
        )
        return link_co_accessed(memory, others, ended) if memory.id in injected and others else memory

    return fold_recorded_uses(
        store, dict.fromkeys(i for use in uses for i in use.ids), ended, session=session, then=link_injected
    )


EventList = list[Event]
SessionList = list[Session]
SUMMARY_TOKENS = 400
SYNC_SECONDS = 0.3
"""How long the start of a session may look for files edited by hand."""


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
    """The time zone of times given without one."""
    before_end: Callable[[str], None] | None = None
    """Called with the id of a session that is about to end, while its ledger is still open."""

    def start(
        self, task: str, scopes: tuple[str, ...], budget: int | None = None, *, whole_store: bool = False
    ) -> "SessionHandle":
        """Begin a session with these scopes, and select its injection from them or from the whole store."""
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
        """The memories about the task, and summaries of earlier sessions about it."""
        from engram.embedding.word_pieces import count_tokens
        from engram.sessions.context import EarlierSessions, count_sessions_tokens, with_sessions

        found = EarlierSessions(self.recaller.searcher, count_tokens, self.zone)
        earlier = found.about(task, filters.scopes, session.started, budget) if type(budget) is int else ()
        room = budget - count_sessions_tokens(earlier, count_tokens)
        injection = self.recaller.inject(task, filters, room, session.id)
        return replace(with_sessions(injection, earlier, count_tokens), budget=budget)

    def get(self, session_id: str, *, scopes: Scopes = None) -> Session:
        """A session by id; raises `NotFound` if the scopes that the caller sees have none."""
        return find_session(self.store, session_id, scopes)

    def list(self, limit: int | None = 50, *, scopes: Scopes = None) -> SessionList:
        """Sessions, newest first: all, or those of these scopes."""
        return self.store.list_records(Session, limit=checked_length(limit), scopes=scopes)

    def events(self, session_id: str, *, last: int | None = None, after: int = 0, scopes: Scopes = None) -> EventList:
        """A session's events in order: all, those after a number, or the last ones.

        The id may be any name the caller has chosen.
        """
        checked_length(last, "last")
        found = self.store.events(session_id, last=last, after=checked_place(after, "after"))
        if not found and self.store.load_record(Session, session_id) is None:
            raise no_session(session_id)
        check_ledger(self.store, session_id, scopes)
        return found

    def end(self, session_id: str, summary: str = "", *, scopes: Scopes = None) -> Session:
        """End a session: read its waiting captured turns, fold in its uses, and link memories that were injected together.

        Ending a session twice changes nothing.
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
        fold_session_uses(self.store, session.id, session.ended)
        return session

    def _record_summary(self, session: Session) -> None:
        """Append the summary to the ledger, so that recall finds it.

        A summary made by rules only repeats existing events.
        """
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
        """Fold the new events into the session's rolling summary, by extraction rules or by a model.

        Styles: `plain`, and `structured` with Goal, Constraints, Progress, Decisions, Next steps and Critical context.
        """
        from engram.embedding.word_pieces import count_tokens
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
            if every and every[0].seq == 1:  # A pruned ledger no longer has the events that the summary covers.
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
        """Append events; secrets in them are redacted before anything is written to disk.

        `scope` is the writer's; an unknown session name creates a session of that scope. Raises `Refused` for a session
        of another scope.
        """
        if not session_id.strip():
            raise InvalidInput("observe needs a session id, or a name of your own for one")
        from engram.gates.secrets.scan import refuse_secret  # A process that only recalls needs no gates.

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
    """Whether the session sees the whole store, not only its scopes."""

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
        return rate_memory(self.sessions.store, ref, signal, self.sessions.clock(), self.id, scopes=scopes)

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
