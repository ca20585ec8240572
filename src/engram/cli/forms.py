"""Feedback and facts as spec 3 prints them: what became of one, one in full, and one line of a list."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from engram.cli.display import line
from engram.model.forms import FORM_PARTS, form_name
from engram.model.memory import Memory

if TYPE_CHECKING:
    from engram.model.decision import Decision

__all__ = ["are_forms", "decision_lines", "form_card", "form_index"]

_SHOWN_AS = {"SUPERSEDED": "CREATED"}
"""Outcomes that spec 3 has another word for: what replaces another memory is new."""


def decision_lines(decision: "Decision") -> list[str]:
    """What became of a write: one line, and after DUPLICATE and CONTRADICTION each existing memory in full."""
    outcome = decision.outcome.value
    if outcome == "CONTRADICTION":
        found = [decision.other, *(one.memory for one in decision.related)]
        others = {memory.id: memory for memory in found if memory is not None}
        return [row for memory in others.values() for row in _existing(outcome, memory)]
    if outcome == "DUPLICATE" and decision.memory is not None:
        return _existing(outcome, decision.memory)
    if decision.memory is not None:
        return [f"{_SHOWN_AS.get(outcome, outcome)}: {_name(decision.memory)}"]
    return [f"{outcome}: {f'{decision.gate}: ' if decision.gate else ''}{line(decision.reason)}"]


def _existing(outcome: str, memory: Memory) -> list[str]:
    return [f"{outcome}: {_name(memory)}", *(f"{name}: {line(text)}" for name, text in _fields(memory) if text)]


def _fields(memory: Memory) -> list[tuple[str, str]]:
    """Its situation and the parts of its form; the statement of a memory without one."""
    parts = FORM_PARTS.get(form_name(memory.form), ())
    said = [(part, memory.form.get(part, "")) for part in parts] or [("statement", memory.statement)]
    return [("situation", memory.situation), *said]


def form_card(memory: Memory) -> list[str]:
    """A memory in full, a labelled line for each field that is not empty."""
    fields = [
        ("type", memory.type),
        *_fields(memory),
        ("source", memory.source),
        ("status", memory.status if memory.status != "active" else ""),
        ("created", _moment(memory.created)),
        ("updated", _moment(memory.updated or memory.created)),
    ]
    return [f"{name.capitalize()}: {line(text)}" for name, text in fields if text]


def form_index(memories: Sequence[Memory]) -> list[str]:
    """One line each, last changed first: `type | name | situation`."""
    changed = sorted(memories, key=lambda memory: _last_change(memory), reverse=True)
    return [" | ".join((memory.type, _name(memory), line(memory.situation))) for memory in changed]


def are_forms(memories: Sequence[Memory]) -> bool:
    """Whether there are any, and all of them are feedback or facts in a form."""
    return bool(memories) and all(form_name(memory.form) for memory in memories)


def _name(memory: Memory) -> str:
    return line(memory.name or memory.id)


def _last_change(memory: Memory) -> datetime:
    return memory.updated or memory.created or datetime.min.replace(tzinfo=UTC)


def _moment(at: datetime | None) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}" if at is not None else ""
