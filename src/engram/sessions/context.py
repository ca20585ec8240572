"""Builds prompt blocks within a token budget: what an agent needs to continue a task, and summaries of earlier sessions."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta, tzinfo
from itertools import islice
from typing import Protocol

from engram.gates.instructions import find_injections
from engram.model.errors import InvalidInput
from engram.model.hit import EarlierSession, Hit, Injection
from engram.model.lazy import dataclass, replace
from engram.model.memory import Memory
from engram.model.records import DOCUMENT_ROLE, EVENT_TYPES, Checkpoint, Event, Session, TaskRun
from engram.recall.cutoff import INJECT_FLOOR, put_evidence_last
from engram.recall.prompt.blocks import critical_section, item_of, memory_item
from engram.recall.prompt.budget import BudgetItem, Counter, PromptSection, assemble
from engram.recall.prompt.inject import HEADER
from engram.recall.query import SearchQuery
from engram.recall.search import Searcher
from engram.rules.scopes import visible_scopes
from engram.store.protocol import Filters, Store
from engram.text.display import longest_fitting, notice, quote_text, safe_word
from engram.text.time.zone import local

MAX_TOKENS = 4_000
RECENT_SHARE, EARLIER_SHARE, FACT_SHARE = 0.4, 0.2, 0.3
"""How the budget left by the required sections is shared between recent events, earlier events and relevant facts.

The graph gets the rest.
"""
MOST_EARLIER = 12
"""How many earlier events of the ledger to offer because they are relevant to the next step."""
CONVERSATION_EVENT_TYPES = tuple(kind for kind in EVENT_TYPES if kind != "artifact")
"""All event types but artifacts, which include chunks of documents; `build_long_input_context` searches those."""
_LOOKED_AT = 5
"""How many times more events to read than needed, because chunks of documents are then left out."""
_LONGEST_EVENT = 1_200
"""Maximum characters shown of one event, half from its beginning and half from its end."""


class Neighbours(Protocol):
    """Finds the memories linked to given memories, in the scopes that a caller sees."""

    def __call__(self, ids: Sequence[str], scopes: Sequence[str]) -> Sequence[Memory]:
        """Return the linked memories, nearest first."""


@dataclass(frozen=True, slots=True)
class TaskContext:
    """A prompt block for a task, and the records it was built from."""

    task: TaskRun
    text: str
    tokens: int
    budget: int
    checkpoint: Checkpoint | None
    kept: tuple[str, ...]
    trimmed: tuple[str, ...]
    shortened: tuple[str, ...]


@dataclass(slots=True)
class ContextBuilder:
    """Builds the context of tasks.

    The goal, the latest checkpoint and the critical facts about the next step are always included, shortened if
    necessary. Then come recent events, earlier events about the next step, relevant facts, and the memories that the
    graph links to them.
    """

    searcher: Searcher
    clock: Callable[[], datetime]
    count: Counter
    related: Neighbours

    def build(
        self,
        task: TaskRun,
        query: str = "",
        *,
        max_tokens: int = MAX_TOKENS,
        recent_event_limit: int = 40,
        memory_limit: int = 25,
        checkpoint_limit: int = 3,
        include_graph: bool = True,
        count: Counter | None = None,
        min_relevance: float = INJECT_FLOOR,
        wordings: tuple[str, ...] = (),
    ) -> TaskContext:
        """Build the block for a task; `query` is the next step (default: the goal), `wordings` are other phrasings of it.

        `count` counts tokens as the target model does. The latest checkpoint is always included.
        """
        limits = (max_tokens, recent_event_limit, memory_limit, checkpoint_limit)
        if any(type(number) is not int or number < 0 for number in limits):
            raise InvalidInput("max_tokens and the limits must be whole numbers, at least 0")
        points = self._points(task.id, checkpoint_limit)
        scopes = visible_scopes([task.scope])
        filters = Filters(scopes=scopes, valid_at=self.clock())
        recent = self._recent(task, recent_event_limit)
        ask = SearchQuery(query or task.goal, wordings=wordings, min_relevance=min_relevance)
        earlier = self._earlier(task, ask, min(recent_event_limit, MOST_EARLIER))
        facts = self._facts(replace(ask, filters=filters), memory_limit)
        sections = [
            PromptSection(
                "Task",
                (
                    BudgetItem(
                        task.id, quote_text(task.goal), label=f"[{safe_word(task.id)}] {safe_word(task.status)}: "
                    ),
                ),
                required=True,
            ),
            *_checkpoints(points),
            *critical_section(self.searcher, replace(ask, filters=filters, task=ask.text)),
            PromptSection("Recent events", _event_items(reversed(recent)), share=RECENT_SHARE, newest_last=True),
            PromptSection("Earlier events", _event_items(earlier), share=EARLIER_SHARE),
            PromptSection("Relevant facts", tuple(item_of(hit) for hit in facts), share=FACT_SHARE),
            *(self._graph(facts, scopes) if include_graph else []),
        ]
        built = assemble(sections, max_tokens, count or self.count)
        latest = points[0] if points else None
        return TaskContext(
            task, built.text, built.tokens, max_tokens, latest, built.kept, built.trimmed, built.shortened
        )

    def _points(self, task_id: str, limit: int) -> list[Checkpoint]:
        """The checkpoints, starting with the latest that reports progress. The manifest of a document does not."""
        store = self.searcher.store
        points = store.list_records(Checkpoint, of=task_id, limit=max(1, limit))
        latest = _progress(points) or (_progress(store.list_records(Checkpoint, of=task_id)) if points else None)
        if latest is None:
            return points
        return [latest, *(point for point in points if point.id != latest.id)][: max(1, limit)]

    def _recent(self, task: TaskRun, limit: int) -> list[Event]:
        """The last events, without chunks of documents."""
        if not limit:
            return []
        found = self.searcher.store.events(task.id, last=limit * _LOOKED_AT)
        return [event for event in found if event.role != DOCUMENT_ROLE][-limit:]

    def _earlier(self, task: TaskRun, query: SearchQuery, limit: int) -> list[Event]:
        """The events of the task's ledger that match the query, best first. Recent events among them are not repeated."""
        if not limit:
            return []
        filters = Filters(kinds=("event",), parents=(task.id,), types=CONVERSATION_EVENT_TYPES)
        found = self.searcher.search(replace(query, limit=limit, filters=filters).validate())
        return [hit.event for hit in found if hit.event is not None]

    def _facts(self, query: SearchQuery, limit: int) -> list[Hit]:
        search = replace(query, limit=max(limit, 1)).validate()
        return put_evidence_last(self.searcher.search(search)) if limit else []

    def _graph(self, facts: Sequence[Hit], scopes: Sequence[str]) -> list[PromptSection]:
        found = self.related([hit.id for hit in facts[:10]], scopes) if facts else []
        return [PromptSection("Related", tuple(memory_item(memory) for memory in found))] if found else []


def _progress(points: Sequence[Checkpoint]) -> Checkpoint | None:
    return next((point for point in points if point.kind == "progress"), None)


def _checkpoints(points: Sequence[Checkpoint]) -> list[PromptSection]:
    """The latest checkpoint in full, and the summaries of older ones."""
    if not points:
        return []
    latest = points[0]
    lines = [BudgetItem(latest.id, quote_text(latest.summary), label=f"[{safe_word(latest.id)}] ")]
    for title, given in (
        ("done", latest.completed_steps),
        ("to do", latest.pending_steps),
        ("decided", latest.decisions),
        ("blocked by", latest.blockers),
        ("made", latest.artifacts),
    ):
        if given:
            lines.append(BudgetItem("", "; ".join(quote_text(line) for line in given), label=f"{title}: "))
    older = tuple(BudgetItem(p.id, quote_text(p.summary), label=f"[{safe_word(p.id)}] ") for p in points[1:])
    earlier = [PromptSection("Earlier checkpoints", older)] if older else []
    return [PromptSection("Latest checkpoint", tuple(lines), required=True), *earlier]


def _event_items(events: Iterable[Event]) -> tuple[BudgetItem, ...]:
    return tuple(
        BudgetItem(
            event.id,
            quote_text(_shorten(event.content)),
            label=f"[{safe_word(event.id)}] {safe_word(event.role)}{_kind(event)}: ",
        )
        for event in events
        if event.content
    )


def _kind(event: Event) -> str:
    return "" if event.event_type == "message" else f" ({notice(event.event_type.replace('_', ' '))})"


def _shorten(text: str) -> str:
    if len(text) <= _LONGEST_EVENT:
        return text
    half = _LONGEST_EVENT // 2
    return f"{text[:half].rstrip()} […] {text[-half:].lstrip()}"


TITLE = "## Earlier sessions"
SUMMARY_BUDGET_SHARE = 0.25
"""The share of an injection's budget that summaries may use."""
LEAST_BUDGET = 400
"""Smaller budgets are used for memories only."""
MOST_SESSIONS = 2
_EVENTS_READ = 20
_LAST_ONES = 10
MAX_RECENT_AGE = timedelta(days=14)
"""How long the last session is mentioned even if it is unrelated to the next one."""
_LEAST_CHARACTERS = 60
_SENTENCES_READ = 20

TokenCounter = Callable[[str], int]


@dataclass(slots=True)
class EarlierSessions:
    """Finds summaries of earlier sessions and adds them to an injection."""

    searcher: Searcher
    count: TokenCounter
    zone: tzinfo

    def about(
        self, task: str, scopes: tuple[str, ...] | None, now: datetime, budget: int
    ) -> tuple[EarlierSession, ...]:
        """The summaries to show when a session about a task starts, newest first, within their share of the budget."""
        if budget < LEAST_BUDGET:
            return ()
        found = sorted(self._relevant(task, scopes), key=_end_of, reverse=True) or self._last(scopes, now)
        room = int(budget * SUMMARY_BUDGET_SHARE) // max(len(found), 1)
        return tuple(EarlierSession(session.id, session.ended, self._line(session, room)) for session in found)

    def newest(self, scopes: tuple[str, ...] | None, room: int) -> tuple[EarlierSession, ...]:
        """The newest sessions that have a summary, each cut to `room` tokens."""
        summarised = (
            one for one in self.searcher.store.list_records(Session, limit=_LAST_ONES, scopes=scopes) if one.summary
        )
        found = islice(filter(self._may_mention, summarised), MOST_SESSIONS)
        return tuple(EarlierSession(one.id, one.ended, self._line(one, room)) for one in found)

    def _relevant(self, task: str, scopes: tuple[str, ...] | None) -> Iterator[Session]:
        """The sessions with events about the task, best first. A summary is such an event, too."""
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
        """The last session that ended, if it ended recently."""
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
    """Why a session's summary must not be shown in another session, as the end of a sentence; "" if it may be shown."""
    found = find_injections(session.summary) if session.summary else []
    if found:
        return f"looks like an instruction ({found[0].kind}: {found[0].quote})"
    rejected = _rejected_in(store, session)
    return f"repeats what was rejected ({', '.join(rejected)})" if rejected else ""


def _rejected_in(store: Store, session: Session) -> list[str]:
    """The ids of rejected memories that the summary repeats, as a whole or in one of its sentences."""
    from engram.capture.withdrawal import Withdrawals
    from engram.sessions.summary_lines import sentences

    if not session.summary or not store.count(Filters(statuses=("rejected",))):
        return []
    told = dict.fromkeys((session.summary, *islice(sentences(session.summary), _SENTENCES_READ)))
    drafts = [Memory(id="", statement=text, scope=scope) for text in told for scope in session.scopes or ("global",)]
    found = Withdrawals(store).find_recurrences(drafts).values()
    return list(dict.fromkeys(out.memory.id for out in found if out.memory.status == "rejected"))


def with_sessions(injection: Injection, earlier: Sequence[EarlierSession], count: TokenCounter) -> Injection:
    """The injection with the summaries appended to its text."""
    if not earlier:
        return injection
    before = injection.text.rstrip("\n") or HEADER
    text = "\n\n".join([before, "\n".join([TITLE, *(session.text for session in earlier)])]) + "\n"
    return replace(injection, text=text, tokens=count(text), sessions=tuple(earlier))


def count_sessions_tokens(earlier: Sequence[EarlierSession], count: TokenCounter) -> int:
    """The tokens that `with_sessions` adds."""
    return count("\n".join(["", TITLE, *(session.text for session in earlier), ""])) + 2 if earlier else 0
