"""The one record: a memory and the blocks it is made of."""

from collections.abc import Mapping
from datetime import datetime
from operator import attrgetter
from typing import Any, Literal

from engram.model.display import Displayed
from engram.model.fields import Alias, owner_ids
from engram.model.lazy import dataclass, field, fields

Status = Literal["candidate", "active", "dormant", "superseded", "archived", "retired", "rejected"]
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
"""The type of link from a memory to an older one that it probably replaces; both are current until somebody decides."""
MAY_REPEAT = "may_repeat"
"""The type of link from a memory to one that it probably says again in other words, until somebody merges the two or keeps both."""
REFINES = "refines"
"""The type of link from a memory to one that it makes more precise."""
CO_ACCESSED = "co_accessed"
"""The type of link that usage creates: learned, fading, and separate from relations that somebody made."""
FORMS = (("behavior", "impact", "action"), ("subject", "predicate", "object"))
"""The two forms a statement can be rendered from."""


@dataclass(frozen=True, slots=True)
class Activation:
    """The strength of a memory; decay is computed, never stored. A new memory starts at .7 and .5 (DESIGN §10), so that its first
    decay follows spec 1's formula exactly.
    """

    retrieval_strength: float = 0.7
    storage_strength: float = 0.5
    frequency: int = 0
    last_accessed: datetime | None = None
    seq: int = 0
    """The usage position these numbers cover, so that no use is counted twice."""


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
    """How often a memory was rated, and how."""

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
    """What a later turn said that was taken for the same as a memory: what it would have become on its own.

    Its words are in an artifact of the ledger, so that they go where the turn is purged.
    """

    event: str
    scope: str = "global"
    type: str = "behavioral"
    source: str = ""
    confidence: float = 0.5
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Evidence:
    """A ledger event, and the part of it, that a memory was derived from."""

    event: str
    span: tuple[int, int] | None = None
    quote_hash: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)
    retelling: Retelling | None = None
    """Where the event said it in other words: those words."""


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
    """Short phrases under which somebody may look for it: searched, never injected and never compared."""
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
        """Return a copy with some fields changed. Raises `TypeError` for a name that is no field."""
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
        """The time that `since` and `until` filter by: occurred_at, else created."""
        return self.occurred_at or self.created


# Slot by slot: `dataclasses.replace` takes three times as long, and every memory that is written is copied.
_PUT = {part.name: vars(Memory)[part.name].__set__ for part in fields(Memory)}
_values = attrgetter(*_PUT)


def render_form(form: Mapping[str, str]) -> str:
    """The statement a form stands for: of feedback what to do, then what was done and what that led to; of a fact the triple."""
    parts = {name: text.strip() for name, text in form.items() if text.strip()}
    if "subject" in form or "object" in form:
        return " ".join(parts[part] for part in FORMS[1] if part in parts)
    seen = ": ".join(parts[part].rstrip(".") for part in ("behavior", "impact") if part in parts)
    return " ".join(f"{text.rstrip('.')}." for text in (parts.get("action", ""), seen) if text)
