"""The types of memories in the specs, as one table, and the two forms of a memory (spec 3).

The forms are feedback (behavior, impact, action) and fact (subject, predicate, object).
"""

from collections.abc import Iterator, Mapping
from typing import Any

from engram.model.errors import InvalidInput
from engram.model.lazy import dataclass
from engram.model.memory import FORMS


@dataclass(frozen=True, slots=True)
class MemoryType:
    """One entry of the registry."""

    name: str
    nature: str
    """`note` (a lasting statement) or `episode` (something that happened)."""
    kind: str
    """Spec 4's kind, one of `KINDS`."""
    tier: int
    """Risk tier 1–3: 1 may become active at once, 2 if it conflicts with nothing stored, 3 always waits for a
    person.
    """
    label: str
    """The name of the type in a prompt."""
    priority: int
    """Order of injection: 0 first (corrections and constraints)."""
    spared: bool = False
    """Whether archival skips it."""
    may_sink: bool = True
    """Whether decay may lower it below fading."""


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

    Imported files may have other types, which are kept and treated as plain facts.
    """
    return _REGISTRY.get(name) or _REGISTRY["semantic"]


def known_types() -> Iterator[MemoryType]:
    """Every entry, in the order of the table."""
    return iter(_REGISTRY.values())


def register_type(entry: MemoryType) -> None:
    """Register a custom type. Repeating the same entry has no effect; raises `InvalidInput` for another meaning."""
    existing = _REGISTRY.get(entry.name)
    if existing is not None and existing != entry:
        raise InvalidInput(f"type {entry.name!r} is already registered with another meaning")
    _REGISTRY[entry.name] = entry


FEEDBACK, FACT = "feedback", "fact"
FORM_PARTS: dict[str, tuple[str, ...]] = {FEEDBACK: FORMS[0], FACT: FORMS[1]}
"""Each form by its name, which is also the type of a memory in it."""
_ALL_FORM_PARTS = tuple(part for parts in FORM_PARTS.values() for part in parts)


def form_name(form: Mapping[str, str]) -> str:
    """`feedback` or `fact`; "" for a memory without a form."""
    return next((name for name, parts in FORM_PARTS.items() if any(part in form for part in parts)), "")


def with_form(given: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """A caller's fields without the parts of a form, and these parts. Raises `InvalidInput` for parts of both forms, or
    for parts combined with `form`.
    """
    parts = {part: given[part] for part in _ALL_FORM_PARTS if given.get(part) is not None}
    rest = {name: value for name, value in given.items() if name not in _ALL_FORM_PARTS}
    if not parts:
        return rest, {}
    if rest.get("form"):
        raise InvalidInput(f"give the parts of a form ({', '.join(parts)}) or `form`, not both")
    _check_texts(parts)
    name = form_name(parts)
    if foreign := [part for part in parts if part not in FORM_PARTS[name]]:
        raise InvalidInput(f"{foreign[0]} belongs to the other form; a {name} takes {', '.join(FORM_PARTS[name])}")
    return rest, parts


def check_complete(parts: Mapping[str, str], situation: str, *, named: str = "{}") -> None:
    """Raise `InvalidInput` naming every missing part of a new memory in a form; `named` turns a part into the caller's
    name for it.
    """
    name = form_name(parts)
    absent = [part for part in FORM_PARTS[name] if not parts.get(part, "").strip()]
    missing = [*([] if situation.strip() else ["situation"]), *absent]
    if missing:
        raise InvalidInput(f"{name} needs {', '.join(map(named.format, missing))}; every part of it is required")


def merge_form(before: Mapping[str, str], parts: Mapping[str, str]) -> dict[str, str]:
    """A form with some parts changed. Raises `InvalidInput` for parts of the other form, and for an empty part."""
    known = form_name(before)
    if known and known != form_name(parts):
        raise InvalidInput(f"{next(iter(parts))} is no part of {known}, which has {', '.join(FORM_PARTS[known])}")
    if empty := [part for part, text in parts.items() if not text.strip()]:
        raise InvalidInput(f"{empty[0]} cannot be empty; leave it out to keep what it says")
    merged = {**before, **parts}
    return {part: merged[part] for part in FORM_PARTS[form_name(parts)] if part in merged}


def check_form_kept(before: Mapping[str, str], changes: Mapping[str, Any]) -> None:
    """Raise `InvalidInput` if changed fields leave a form without its parts, or with the type of the other one."""
    known, wanted = form_name(before), changes.get("type", "")
    if not known or "form" in changes:
        return
    parts = ", ".join(FORM_PARTS[known])
    if "statement" in changes:
        raise InvalidInput(f"the statement of this {known} follows its parts; change these instead: {parts}")
    if wanted != known and wanted in FORM_PARTS:
        takes = ", ".join(FORM_PARTS[wanted])
        raise InvalidInput(
            f"{wanted} takes {takes}, but this {known} has {parts}: `learn` it with those parts, and `forget` this one"
        )


def _check_texts(parts: Mapping[str, Any]) -> None:
    for part, text in parts.items():
        if not isinstance(text, str):
            raise InvalidInput(f"{part}: {text!r} is not text")
