"""The keyword arguments that describe a record, typed, and spec 2's other names for them in one table."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, tzinfo
from typing import Any, Generic, TypedDict, TypeVar, cast

from engram.model.errors import InvalidInput

T = TypeVar("T")
Time = datetime | str
"""A time: aware, naive (in the user's zone), or text in ISO 8601."""
OneOrMore = str | Sequence[str]
ScopeLike = str | Sequence[str] | None

FIELD_ALIASES = {
    "content": "statement",
    "fact": "statement",
    "main_content": "context",
    "memory_type": "type",
    "session_id": "session",
}
"""Spec 2's names of a memory's fields, accepted where a memory is written."""
FILTER_ALIASES = {"memory_types": "types", "metadata_filter": "metadata", "session_id": "session"}
"""Spec 2's names of filters."""


class MemoryFields(TypedDict, total=False):
    """What a caller may set on a new memory besides its statement, source and session, aliases of spec 2 included."""

    content: str
    fact: str
    scope: str | None
    agent_id: str | None
    user_id: str | None
    type: str
    memory_type: str
    status: str
    name: str
    aliases: OneOrMore
    pinned: bool
    situation: str
    form: Mapping[str, str]
    behavior: str
    impact: str
    action: str
    subject: str
    predicate: str
    object: str
    context: str
    main_content: str
    rationale: str
    tags: OneOrMore
    cues: OneOrMore
    domain: str
    entities: OneOrMore
    anchors: Iterable[Any]
    created: Time
    updated: Time
    occurred_at: Time | None
    valid_from: Time | None
    valid_until: Time | None
    confidence: float
    importance: float
    emotional_weight: float
    derivation_count: int
    feedback: Any
    trigger_context: str
    consolidated: bool
    associations: Iterable[Any]
    lineage: str
    revision: int
    supersedes: OneOrMore
    superseded_by: str
    conflict_key: str
    critical_slot: str
    last_verified: Time
    imported_at: Time
    decay_days: float | None
    verification: str
    policy_class: str
    evidence: Iterable[Any]
    box: str
    trace: str
    session_id: str
    task: str
    memory_kind: str
    metadata: Mapping[str, Any]


class ChangedFields(MemoryFields, total=False):
    """What a caller may change: `MemoryFields`, and what a new memory is given separately."""

    statement: str
    source: str
    session: str


class Owner(TypedDict, total=False):
    """Who asks or writes: an agent and its user, or a scope. A named owner sees their own scope, the wider ones, and global.

    They change only what is in the scope they name. A call without any of these comes from the store's operator, who sees and
    changes everything.
    """

    scope: ScopeLike
    agent_id: str | None
    user_id: str | None


class AskerFilters(TypedDict, total=False):
    """The filters of a question, applied before the limit. `recall` and similar verbs take `scope` and `session` separately."""

    agent_id: str | None
    user_id: str | None
    kinds: OneOrMore
    types: OneOrMore | None
    memory_types: OneOrMore | None
    status: OneOrMore | None
    tags: OneOrMore | None
    domain: str | None
    since: Time | None
    until: Time | None
    as_of: Time | None
    known_at: Time | None
    metadata: Mapping[str, Any] | None
    metadata_filter: Mapping[str, Any] | None
    roles: OneOrMore | None
    critical: bool


class SearchFilters(AskerFilters, total=False):
    """The filters of `search` and `list`: those of a question, and the scope and session."""

    scope: ScopeLike
    session: str | None
    session_id: str | None


class EventFields(TypedDict, total=False):
    """What an event may have besides its role and its content."""

    event_type: str
    payload: Mapping[str, Any] | None
    key: str
    at: Time | None
    metadata: Mapping[str, Any] | None
    task: str


class CheckpointSteps(TypedDict, total=False):
    """The lists of lines a checkpoint is made of."""

    completed_steps: Iterable[str]
    pending_steps: Iterable[str]
    decisions: Iterable[str]
    blockers: Iterable[str]
    artifacts: Iterable[str]


class Alias(Generic[T]):
    """Another name of an attribute: `fact = Alias[str]("statement")`."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.__doc__ = f"`{name}`, under spec 2's name."

    def __get__(self, record: Any, kind: type | None = None) -> T:
        found: T = getattr(record, self.name) if record is not None else cast(T, self)
        return found


def owner_ids(scope: str) -> tuple[str | None, str | None]:
    """The agent and the user a scope belongs to, as spec 2 names them; None where it names none."""
    kind, _, name = scope.partition(":")
    first, _, second = (part.replace("%2F", "/").replace("%25", "%") for part in name.partition("/"))
    if kind == "agent":
        return first, second or None
    return None, first if kind == "user" and first else None


def resolve_aliases(given: Mapping[str, Any], aliases: Mapping[str, str]) -> dict[str, Any]:
    """Arguments under Engram's own names; `InvalidInput` where two names of one thing differ in value."""
    found: dict[str, Any] = {}
    for name, value in given.items():
        own = aliases.get(name, name)
        if own in found and found[own] != value:
            raise InvalidInput(f"{name!r} and another name of {own!r} have different values; give one of them")
        found[own] = value
    return found


def aware(value: Any, zone: tzinfo | None = None) -> datetime | None:
    """A time with its zone; without one it is meant in `zone`, else in the system's. Text is ISO 8601. Raises `InvalidInput` for anything else."""
    if value is None:
        return None
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            raise InvalidInput(f"{value!r} is not a time; write it as 2026-01-31 or 2026-01-31T12:00:00Z") from None
    if not isinstance(value, datetime):
        raise InvalidInput(f"{value!r} is not a time")
    try:
        known = value if value.tzinfo else value.replace(tzinfo=zone) if zone else value.astimezone()
        known.astimezone(UTC)
    except (OverflowError, ValueError, OSError):
        raise InvalidInput(f"{value} is outside the calendar; use a year from 2 to 9998") from None
    return known
