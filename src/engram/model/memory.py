"""A memory and the blocks it consists of, and the keyword arguments with which callers describe or search for one."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, tzinfo
from operator import attrgetter
from typing import Any, Generic, Literal, TypedDict, TypeVar, cast

from engram.model.errors import InvalidInput
from engram.model.lazy import dataclass, field, fields
from engram.model.records import Displayed

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
"""Spec 2's names of a memory's fields, accepted on writes."""
FILTER_ALIASES = {"memory_types": "types", "metadata_filter": "metadata", "session_id": "session"}
"""Spec 2's names of filters."""


class MemoryFields(TypedDict, total=False):
    """The fields a caller may set on a new memory besides its statement, source and session, including aliases from
    spec 2.
    """

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
    """The fields a caller may change: `MemoryFields`, and those that a new memory gets separately."""

    statement: str
    source: str
    session: str


class Owner(TypedDict, total=False):
    """The caller who asks or writes: an agent and its user, or a scope. A named owner sees their own scope, wider ones,
    and global.

    They change only memories in the scope they name. A call without any of these comes from the store's operator, who
    sees and changes everything.
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
    """The filters of `search` and `list`: those of a question, plus the scope and session."""

    scope: ScopeLike
    session: str | None
    session_id: str | None


class EventFields(TypedDict, total=False):
    """The fields an event may have besides its role and content."""

    event_type: str
    payload: Mapping[str, Any] | None
    key: str
    at: Time | None
    metadata: Mapping[str, Any] | None
    task: str


class CheckpointSteps(TypedDict, total=False):
    """The lists of lines that a checkpoint consists of."""

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
    """The agent and the user a scope belongs to, as spec 2 names them; None if it names none."""
    kind, _, name = scope.partition(":")
    first, _, second = (part.replace("%2F", "/").replace("%25", "%") for part in name.partition("/"))
    if kind == "agent":
        return first, second or None
    return None, first if kind == "user" and first else None


def resolve_aliases(given: Mapping[str, Any], aliases: Mapping[str, str]) -> dict[str, Any]:
    """Arguments under Engram's own names; `InvalidInput` if two names of one thing differ in value."""
    found: dict[str, Any] = {}
    for name, value in given.items():
        own = aliases.get(name, name)
        if own in found and found[own] != value:
            raise InvalidInput(f"{name!r} and another name of {own!r} have different values; give one of them")
        found[own] = value
    return found


def aware(value: Any, zone: tzinfo | None = None) -> datetime | None:
    """A time with its zone. A time without one is in `zone`, or else in the system's. Text is ISO 8601; raises
    `InvalidInput` for anything else.
    """
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


Status = Literal["candidate", "active", "dormant", "superseded", "archived", "retired", "rejected"]
TIME_FIELDS = ("created", "updated", "occurred_at", "valid_from", "valid_until", "last_verified", "imported_at")
"""The fields of a memory that contain a time."""
LIVE_STATUSES: tuple[Status, ...] = ("active", "dormant")
"""The statuses of current memories."""
Signal = Literal["positive", "negative", "neutral"]

STATUSES: tuple[Status, ...] = (
    "candidate",
    "active",
    "dormant",
    "superseded",
    "archived",
    "retired",
    "rejected",
)
SIGNALS: tuple[Signal, ...] = ("positive", "negative", "neutral")
VERIFICATIONS = ("unverified", "user_confirmed", "system_inferred", "disputed")
SCHEMA_VERSION = 2
CONTRADICTS = "contradicts"
"""The type of link from a candidate to the memory it contradicts."""
MAY_SUPERSEDE = "may_supersede"
"""The type of link from a memory to an older one that it probably replaces; both stay current until somebody
decides.
"""
MAY_REPEAT = "may_repeat"
"""The type of link from a memory to one that it probably repeats in other words, until somebody merges the two or keeps
both.
"""
REFINES = "refines"
"""The type of link from a memory to one that it makes more precise."""
CO_ACCESSED = "co_accessed"
"""The type of link that usage creates: learned, fading, and separate from the relations people set."""
FORMS = (("behavior", "impact", "action"), ("subject", "predicate", "object"))
"""The two forms a statement can be rendered from."""


@dataclass(frozen=True, slots=True)
class Activation:
    """The strength of a memory; decay is computed, never stored.

    A new memory starts at .7 and .5 (DESIGN §10), so that its first decay follows spec 1's formula exactly.
    """

    retrieval_strength: float = 0.7
    storage_strength: float = 0.5
    frequency: int = 0
    last_accessed: datetime | None = None
    seq: int = 0
    """The position in the usage log that these numbers include, so that no use is counted twice."""


@dataclass(frozen=True, slots=True)
class Association:
    """A typed, weighted link to another memory. `strength` is learned, `weight` is given."""

    target: str
    type: str = "semantic"
    strength: float = 0.5
    weight: float = 1.0
    confidence: float = 1.0
    last_reinforced: datetime | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Feedback:
    """How often a memory was rated positively and negatively."""

    positive: int = 0
    negative: int = 0
    neutral: int = 0

    @property
    def net(self) -> int:
        """Positive minus negative ratings."""
        return self.positive - self.negative


@dataclass(frozen=True, slots=True)
class Anchor:
    """A place in the owner's own files that a memory refers to."""

    path: str
    snippet: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Retelling:
    """A later turn's rewording of a memory: the memory it would have become on its own.

    Its words are in an artifact of the ledger, so that purging the turn also removes them.
    """

    event: str
    scope: str = "global"
    type: str = "behavioral"
    source: str = ""
    confidence: float = 0.5
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Evidence:
    """A ledger event, and the part of it, from which a memory was derived."""

    event: str
    span: tuple[int, int] | None = None
    quote_hash: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)
    retelling: Retelling | None = None
    """If the event repeats the memory in other words: those words."""


@dataclass(frozen=True, slots=True, repr=False)
class Memory(Displayed):
    """One atomic piece of knowledge (DESIGN §4).

    Confidence and importance run from 0 to 1 here; on disk confidence is spec 1's 1–10. `extra` has every unknown
    key, at its original depth, so that rewriting a file loses nothing.
    """

    _SHOWN = ("id", "type", "status", "statement")
    _HIDDEN = frozenset(
        (
            "version",
            "created",
            "updated",
            "activation",
            "source",
            "learned_by",
            "last_verified",
            "imported_at",
            "decay_days",
            "extra",
        )
    )

    id: str
    statement: str
    scope: str = "global"
    type: str = "behavioral"
    status: Status = "active"
    name: str = ""
    aliases: tuple[str, ...] = ()
    version: int = SCHEMA_VERSION
    pinned: bool = False

    situation: str = ""
    form: Mapping[str, str] = field(default_factory=dict)
    context: str = ""
    rationale: str = ""
    tags: tuple[str, ...] = ()
    cues: tuple[str, ...] = ()
    """Short phrases by which somebody may look for it: searched, never injected and never compared."""
    domain: str = ""
    entities: tuple[str, ...] = ()
    anchors: tuple[Anchor, ...] = ()

    created: datetime | None = None
    updated: datetime | None = None
    occurred_at: datetime | None = None
    valid_from: datetime | None = None
    valid_until: datetime | None = None

    confidence: float = 0.5
    importance: float = 0.5
    emotional_weight: float = 5
    derivation_count: int = 1
    feedback: Feedback = Feedback()
    trigger_context: str = ""

    activation: Activation = Activation()
    consolidated: bool = False
    associations: tuple[Association, ...] = ()

    lineage: str = ""
    revision: int = 1
    supersedes: tuple[str, ...] = ()
    superseded_by: str = ""
    conflict_key: str = ""
    critical_slot: str = ""

    source: str = ""
    learned_by: str = ""
    last_verified: datetime | None = None
    imported_at: datetime | None = None
    """When it was imported from a file, which counts as a confirmation."""
    decay_days: float | None = None
    """Days after which the memory counts as stale unless verified again; None: never."""
    verification: str = "unverified"
    policy_class: str = ""
    evidence: tuple[Evidence, ...] = ()

    box: str = ""
    trace: str = ""
    session: str = ""
    task: str = ""
    memory_kind: str = ""

    metadata: Mapping[str, Any] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)

    content = fact = Alias[str]("statement")
    main_content = Alias[str]("context")
    memory_type = Alias[str]("type")
    session_id = Alias[str]("session")
    lineage_id = Alias[str]("lineage")

    @property
    def agent_id(self) -> str | None:
        """The agent its scope belongs to, as spec 2 names it."""
        return owner_ids(self.scope)[0]

    @property
    def user_id(self) -> str | None:
        """The user its scope belongs to, as spec 2 names it."""
        return owner_ids(self.scope)[1]

    def replace(self, **changes: Any) -> "Memory":
        """Return a copy with some fields changed. Raises `TypeError` for an unknown field."""
        copy = object.__new__(Memory)
        for put, value in zip(_PUT.values(), _values(self), strict=True):
            put(copy, value)
        try:
            for name, value in changes.items():
                _PUT[name](copy, value)
        except KeyError as error:
            raise TypeError(f"a memory has no field {error}") from None
        return copy

    @property
    def when(self) -> datetime | None:
        """The time that `since` and `until` filter by: occurred_at, or else created."""
        return self.occurred_at or self.created


# Slot by slot: `dataclasses.replace` takes three times as long, and every write copies a memory.
_PUT = {part.name: vars(Memory)[part.name].__set__ for part in fields(Memory)}
_values = attrgetter(*_PUT)


def render_form(form: Mapping[str, str]) -> str:
    """The statement of a form: for feedback the action, then the behavior and its impact; for a fact the triple."""
    parts = {name: text.strip() for name, text in form.items() if text.strip()}
    if "subject" in form or "object" in form:
        return " ".join(parts[part] for part in FORMS[1] if part in parts)
    seen = ": ".join(parts[part].rstrip(".") for part in ("behavior", "impact") if part in parts)
    return " ".join(f"{text.rstrip('.')}." for text in (parts.get("action", ""), seen) if text)
