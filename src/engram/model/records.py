"""The records besides memories: events, sessions, tasks with their checkpoints, jobs and uses of memories.

Like memories, they appear as one line in a terminal and as a table in a notebook.
"""

import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, ClassVar

from engram.model.errors import InvalidInput
from engram.model.lazy import MISSING, dataclass, field, fields

MAX_VALUE_CHARS = 80
"""The maximum length of one value in a `repr`."""


class Displayed:
    """A dataclass with a short `repr` (the fields in `_SHOWN`, then non-default values) and a table for notebooks."""

    __slots__ = ()
    _SHOWN: ClassVar[tuple[str, ...]] = ()
    """Fields that are always shown, in this order."""
    _HIDDEN: ClassVar[frozenset[str]] = frozenset()
    """Fields that say little to a reader."""

    def __repr__(self) -> str:
        shown = [f"{name}={_clip_text(value)}" for name, value in notable_fields(self)]
        return f"{type(self).__name__}({', '.join(shown)})"

    def _repr_html_(self) -> str:
        return html_table([("", ""), *((name, value) for name, value in notable_fields(self))])


def notable_fields(record: Displayed) -> list[tuple[str, Any]]:
    """The fields to show: those always shown, then the others that differ from their default."""
    names = [*record._SHOWN]
    for part in fields(record):  # type: ignore[arg-type]
        default = part.default if part.default_factory is MISSING else part.default_factory()
        known = part.name in names or part.name in record._HIDDEN
        if not known and getattr(record, part.name) != default:
            names.append(part.name)
    return [(name, getattr(record, name)) for name in names]


def html_table(rows: Iterable[Iterable[Any]]) -> str:
    """Rows as an HTML table, the first one its head, every value escaped."""
    from html import escape

    head, *body = [[escape(_plain(value)) for value in row] for row in rows]
    lines = ["<tr>" + "".join(f"<td style='text-align:left'>{value}</td>" for value in row) + "</tr>" for row in body]
    top = f"<thead><tr>{''.join(f'<th>{value}</th>' for value in head)}</tr></thead>" if any(head) else ""
    return f"<table>{top}<tbody>{''.join(lines)}</tbody></table>"


def _plain(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.3g}"
    return value if isinstance(value, str) else str(value)


def _clip_text(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= MAX_VALUE_CHARS else f"{text[:MAX_VALUE_CHARS]}…"


DOCUMENT_ROLE = "document"
"""The role of a document's chunk; chunks are ranked without their neighbours."""
SUMMARY_ROLE = "summary"
"""The role of the event that stores a session's summary at its end, so that a search finds it."""
_REDACTED = re.compile(r"\[redacted:[a-z0-9-]+\]")
EVENT_TYPES = ("message", "tool_call", "tool_result", "observation", "error", "artifact")


@dataclass(frozen=True, slots=True, repr=False)
class Event(Displayed):
    """One line of a ledger. `digest` chains it to the event before it; `key` is the caller's idempotency key."""

    _SHOWN = ("id", "role", "content")
    _HIDDEN = frozenset(("seq", "at", "salt", "body", "prev", "digest"))

    id: str
    session: str
    seq: int
    role: str
    content: str
    at: datetime
    event_type: str = "message"
    task: str = ""
    key: str = ""
    payload: Mapping[str, Any] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    salt: str = ""
    body: str = ""
    """A salted digest of the content; it stays when the content is purged, so the chain still verifies."""
    prev: str = ""
    digest: str = ""
    scope: str = ""
    """Its owner's scope, set when it is written; "" in events written before this field existed."""

    @property
    def redactions(self) -> int:
        """How many secrets of its content and payload were replaced by `[redacted:kind]`."""
        return _count_redactions((self.content, self.payload))


@dataclass(frozen=True, slots=True, repr=False)
class Session(Displayed):
    """A conversation with a start, an end and the memories injected at its start."""

    _SHOWN = ("id", "task", "scopes")
    _HIDDEN = frozenset(("summary_through", "summary_style", "summary_by"))

    id: str
    task: str
    scopes: tuple[str, ...]
    started: datetime
    ended: datetime | None = None
    summary: str = ""
    summary_through: int = 0
    """The number of the last event the summary covers; 0 for a summary from a caller."""
    summary_style: str = ""
    summary_by: str = ""
    """`rules`, a model's name, or "" for a summary from a caller."""

    @property
    def owner(self) -> str:
        """The scope it belongs to: the first of those it can see."""
        return self.scopes[0] if self.scopes else "global"

    @property
    def redactions(self) -> int:
        """How many secrets of its task and summary were replaced by `[redacted:kind]`."""
        return _count_redactions((self.task, self.summary))


def _count_redactions(value: Any) -> int:
    if isinstance(value, str):
        return len(_REDACTED.findall(value))
    if isinstance(value, Mapping):
        return _count_redactions((*value, *value.values()))
    return sum(map(_count_redactions, value)) if isinstance(value, list | tuple) else 0


def quotes_ledger(session: str) -> str:
    """The ledger of the exact words kept from a session."""
    return f"artifacts-{session}"


TASK_STATES = ("running", "paused", "completed", "failed", "cancelled", "deleted")
FINISHED_STATES = frozenset({"completed", "failed", "cancelled", "deleted"})
"""States in which a task's ledger accepts no more events."""
TRANSITIONS: Mapping[str, frozenset[str]] = {
    "running": frozenset({"paused", "completed", "failed", "cancelled", "deleted"}),
    "paused": frozenset({"running", "completed", "failed", "cancelled", "deleted"}),
    "failed": frozenset({"running", "cancelled", "deleted"}),
    "completed": frozenset({"deleted"}),
    "cancelled": frozenset({"running", "deleted"}),
    "deleted": frozenset(),
}
"""The states that may follow each state. A failed or cancelled task can be resumed; a completed one cannot."""
CHECKPOINT_KINDS = ("progress", "manifest")
JOB_STATES = ("waiting", "leased", "dead")
"""A finished job is deleted; one that failed too often is dead and waits for a person."""


@dataclass(frozen=True, slots=True, repr=False)
class TaskRun(Displayed):
    """One piece of long-running work. Its id also names its ledger."""

    _SHOWN = ("id", "status", "goal")
    _HIDDEN = frozenset(("created", "updated"))

    id: str
    goal: str
    scope: str
    created: datetime
    updated: datetime
    status: str = "running"
    ended: datetime | None = None
    outcome: str = ""
    """The result, or why it stopped."""
    session: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_finished(self) -> bool:
        """Whether its ledger accepts no more events."""
        return self.status in FINISHED_STATES


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The state of a task up to the event with number `through`."""

    id: str
    task: str
    number: int
    created: datetime
    summary: str
    completed_steps: tuple[str, ...] = ()
    pending_steps: tuple[str, ...] = ()
    decisions: tuple[str, ...] = ()
    blockers: tuple[str, ...] = ()
    artifacts: tuple[str, ...] = ()
    source_event_ids: tuple[str, ...] = ()
    through: int = 0
    kind: str = "progress"
    """`progress`, or `manifest` for the list of parts of a long input."""
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Job:
    """Background work, run at least once. The `id` identifies it: adding the same id twice has no effect."""

    id: str
    kind: str
    created: datetime
    run_after: datetime
    payload: Mapping[str, Any] = field(default_factory=dict)
    status: str = "waiting"
    attempts: int = 0
    leased_until: datetime | None = None
    owner: str = ""
    """The worker that holds the lease."""
    error: str = ""
    scope: str = ""
    """The scope of its ledger; only callers who can see that scope see the job."""


def checked_state(state: str) -> str:
    """The state; raises `InvalidInput` for an unknown one."""
    if state not in TASK_STATES:
        raise InvalidInput(f"Unknown task state {state!r}; choose {', '.join(TASK_STATES)}")
    return state


def transition_task(task: TaskRun, state: str, now: datetime, outcome: str = "") -> TaskRun:
    """The task in another state; raises `InvalidInput` if that transition is not allowed."""
    from engram.model.lazy import replace

    allowed = TRANSITIONS[task.status]
    if checked_state(state) not in allowed:
        can = f"it can become {' or '.join(sorted(allowed))}" if allowed else "that state is final"
        raise InvalidInput(f"{task.id} is {task.status} and cannot become {state}; {can}")
    # The clock may have been set back since the task began.
    ended = max(now, task.created) if state in FINISHED_STATES else None
    return replace(
        task, status=state, updated=now, ended=ended, outcome=outcome or ("" if ended is None else task.outcome)
    )


RATED = "rated"
RATED_BY_PERSON = "rated_by_person"
"""A rating by a person at a terminal, or by a caller that a program identifies as a person."""


@dataclass(frozen=True, slots=True)
class Use:
    """One use of some memories: injected, recalled, derived again, or rated with a signal.

    `position` is its position in the log, set on reading.
    """

    kind: str
    ids: tuple[str, ...]
    at: datetime
    session: str = ""
    signal: str = ""
    position: int = 0
