"""The type registry: every type of memory in the specs, as one table."""

from collections.abc import Iterator

from engram.model.errors import InvalidInput
from engram.model.lazy import dataclass


@dataclass(frozen=True, slots=True)
class MemoryType:
    """One entry of the registry."""

    name: str
    nature: str
    """`note` (a lasting statement) or `episode` (something that happened)."""
    kind: str
    """Spec 4's kind, one of `KINDS`."""
    tier: int
    """Risk tier 1–3: 1 may become active at once, 2 if it conflicts with nothing stored, 3 always waits for a person."""
    label: str
    """How the type reads in a prompt."""
    priority: int
    """Order of injection: 0 first (corrections and constraints)."""
    spared: bool = False
    """Whether archival skips it."""
    may_sink: bool = True
    """Whether decay may take it below fading."""


KINDS = {
    **dict.fromkeys(("preference", "tooling", "project", "infra"), 1),
    **dict.fromkeys(("identity", "fiscal", "people", "constraint", "location", "health"), 3),
}
"""The kinds of spec 4, each with its risk tier. Every kind is also the name of a type."""

_TABLE = (
    # name, nature, kind, tier, label, priority, spared, may_sink            source
    ("behavioral", "note", "preference", 1, "Behaviour", 1, False, True),  # spec 1
    ("correction", "note", "preference", 1, "Correction", 0, True, False),
    ("preference", "note", "preference", 1, "Preference", 1, True, False),
    ("convention", "note", "tooling", 1, "Convention", 1, True, False),
    ("procedural", "note", "tooling", 1, "Procedure", 1, False, True),
    ("factual", "note", "project", 1, "Fact", 2, False, True),
    ("semantic", "note", "project", 1, "Fact", 2, False, True),  # spec 2
    ("episodic", "episode", "project", 1, "Episode", 3, False, True),
    ("constraint", "note", "constraint", 3, "Constraint", 0, True, False),
    ("decision", "note", "project", 1, "Decision", 1, True, False),
    ("profile", "note", "identity", 2, "Profile", 2, True, True),
    ("project", "note", "project", 1, "Project", 2, False, True),
    ("task", "episode", "project", 1, "Task", 3, False, True),
    ("tool_result", "episode", "project", 1, "Tool result", 3, False, True),
    ("feedback", "note", "preference", 1, "Feedback", 1, False, True),  # spec 3
    ("fact", "note", "project", 1, "Fact", 2, False, True),
    ("tooling", "note", "tooling", 1, "Tooling", 1, False, True),  # spec 4
    ("infra", "note", "infra", 1, "Infrastructure", 2, False, True),
    ("identity", "note", "identity", 3, "Identity", 2, True, True),
    ("fiscal", "note", "fiscal", 3, "Fiscal", 2, True, True),
    ("people", "note", "people", 3, "People", 2, False, True),
    ("location", "note", "location", 3, "Location", 2, False, True),
    ("health", "note", "health", 3, "Health", 2, True, True),
    ("entity", "note", "project", 1, "Entity", 2, False, True),  # spec 5
    ("relationship", "note", "people", 2, "Relationship", 2, False, True),
    ("principle", "note", "preference", 1, "Principle", 1, True, True),
    ("commitment", "episode", "project", 1, "Commitment", 1, False, True),
    ("moment", "episode", "project", 1, "Moment", 3, True, True),
    ("skill", "note", "tooling", 1, "Skill", 1, False, True),
)

_REGISTRY: dict[str, MemoryType] = {row[0]: MemoryType(*row) for row in _TABLE}


def memory_type(name: str) -> MemoryType:
    """Return the registry's entry, or raise `InvalidInput` naming the known types."""
    try:
        return _REGISTRY[name]
    except KeyError:
        known = ", ".join(sorted(_REGISTRY))
        raise InvalidInput(f"unknown type {name!r}; known types: {known}") from None


def type_or_default(name: str) -> MemoryType:
    """Like `memory_type`, but an unknown type counts as `semantic`.

    Files from elsewhere may have other types; they are kept, and treated as plain facts.
    """
    return _REGISTRY.get(name) or _REGISTRY["semantic"]


def known_types() -> Iterator[MemoryType]:
    """Every entry, in the order of the table."""
    return iter(_REGISTRY.values())


def register_type(entry: MemoryType) -> None:
    """Add a type of your own. Repeating the same entry is harmless; raises `InvalidInput` for another meaning."""
    existing = _REGISTRY.get(entry.name)
    if existing is not None and existing != entry:
        raise InvalidInput(f"type {entry.name!r} is already registered with another meaning")
    _REGISTRY[entry.name] = entry
