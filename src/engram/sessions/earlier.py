"""How earlier sessions ended, for the start of the next: those about its task, or else the last one."""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta, tzinfo
from itertools import islice

from engram.gates.instructions import find_injections
from engram.model.event import Session
from engram.model.hit import EarlierSession, Injection
from engram.model.lazy import dataclass, replace
from engram.model.memory import Memory
from engram.recall.cutoff import INJECT_FLOOR
from engram.recall.prompt.inject import HEADER
from engram.recall.query import SearchQuery
from engram.recall.search import Searcher
from engram.store.protocol import Filters, Store
from engram.text.display import longest_fitting, quote_text, safe_word
from engram.text.time.zone import local

TITLE = "## Earlier sessions"
SUMMARY_BUDGET_SHARE = 0.25
"""The share of an injection's budget that summaries may take."""
LEAST_BUDGET = 400
"""Smaller budgets are left to memories."""
MOST_SESSIONS = 2
_EVENTS_READ = 20
_LAST_ONES = 10
MAX_RECENT_AGE = timedelta(days=14)
"""How long the last session is worth mentioning whatever the next one is about."""
_LEAST_CHARACTERS = 60
_SENTENCES_READ = 20

Counter = Callable[[str], int]


@dataclass(slots=True)
class EarlierSessions:
    """Finds summaries of earlier sessions, and puts them into an injection."""

    searcher: Searcher
    count: Counter
    zone: tzinfo

    def about(
        self, task: str, scopes: tuple[str, ...] | None, now: datetime, budget: int
    ) -> tuple[EarlierSession, ...]:
        """The summaries to show at the start of a session about a task, newest first, within their share of the budget."""
        if budget < LEAST_BUDGET:
            return ()
        found = sorted(self._relevant(task, scopes), key=_end_of, reverse=True) or self._last(scopes, now)
        room = int(budget * SUMMARY_BUDGET_SHARE) // max(len(found), 1)
        return tuple(EarlierSession(session.id, session.ended, self._line(session, room)) for session in found)

    def newest(self, scopes: tuple[str, ...] | None, room: int) -> tuple[EarlierSession, ...]:
        """The newest sessions with a summary, each cut to `room` tokens."""
        summarised = (
            one for one in self.searcher.store.list_records(Session, limit=_LAST_ONES, scopes=scopes) if one.summary
        )
        found = islice(filter(self._may_mention, summarised), MOST_SESSIONS)
        return tuple(EarlierSession(one.id, one.ended, self._line(one, room)) for one in found)

    def _relevant(self, task: str, scopes: tuple[str, ...] | None) -> Iterator[Session]:
        """The sessions whose events are about the task, best first; a summary is such an event."""
        filters = Filters(kinds=("event",), scopes=scopes)
        hits = self.searcher.search(
            SearchQuery(task, _EVENTS_READ, filters=filters, min_relevance=INJECT_FLOOR).validate()
        )
        named = dict.fromkeys(hit.event.session for hit in hits if hit.event is not None)
        found = (
            session for name in named if (session := self.searcher.store.load_record(Session, name)) and session.summary
        )
        summarised = (session for session in found if self._may_mention(session))
        for _, session in zip(range(MOST_SESSIONS), summarised, strict=False):
            yield session

    def _last(self, scopes: tuple[str, ...] | None, now: datetime) -> list[Session]:
        """The last session that ended, if that was recently."""
        sessions = self.searcher.store.list_records(Session, limit=_LAST_ONES, scopes=scopes)
        recent = (one for one in sessions if one.summary and one.ended and now - one.ended <= MAX_RECENT_AGE)
        return list(islice(filter(self._may_mention, recent), 1))

    def _may_mention(self, session: Session) -> bool:
        return not reason_to_withhold(self.searcher.store, session)

    def _line(self, session: Session, room: int) -> str:
        day = f"{local(_end_of(session), self.zone):%Y-%m-%d}"

        def format_line(summary: str) -> str:
            return f"- [{safe_word(session.id)}, {day}] {quote_text(summary)}"

        return format_line(
            longest_fitting(session.summary, lambda cut: self.count(format_line(cut)) <= room, _LEAST_CHARACTERS)
        )


def _end_of(session: Session) -> datetime:
    return session.ended or session.started


def reason_to_withhold(store: Store, session: Session) -> str:
    """Why a session's summary is not mentioned in another, as the rest of a sentence about it; "" where it is."""
    found = find_injections(session.summary) if session.summary else []
    if found:
        return f"looks like an instruction ({found[0].kind}: {found[0].quote})"
    rejected = _rejected_in(store, session)
    return f"repeats what was rejected ({', '.join(rejected)})" if rejected else ""


def _rejected_in(store: Store, session: Session) -> list[str]:
    """The ids of what a person rejected and a session's summary says, as a whole or in one of its sentences."""
    from engram.capture.withdrawal import Withdrawals
    from engram.sessions.summary_lines import sentences

    if not session.summary or not store.count(Filters(statuses=("rejected",))):
        return []
    told = dict.fromkeys((session.summary, *islice(sentences(session.summary), _SENTENCES_READ)))
    drafts = [Memory(id="", statement=text, scope=scope) for text in told for scope in session.scopes or ("global",)]
    found = Withdrawals(store).find_recurrences(drafts).values()
    return list(dict.fromkeys(out.memory.id for out in found if out.memory.status == "rejected"))


def with_sessions(injection: Injection, earlier: Sequence[EarlierSession], count: Counter) -> Injection:
    """The injection with the summaries at the end of its text."""
    if not earlier:
        return injection
    before = injection.text.rstrip("\n") or HEADER
    text = "\n\n".join([before, "\n".join([TITLE, *(session.text for session in earlier)])]) + "\n"
    return replace(injection, text=text, tokens=count(text), sessions=tuple(earlier))


def cost(earlier: Sequence[EarlierSession], count: Counter) -> int:
    """The tokens that `with_sessions` adds."""
    return count("\n".join(["", TITLE, *(session.text for session in earlier), ""])) + 2 if earlier else 0
