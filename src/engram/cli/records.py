"""Records as JSON data, in one shape for every verb; and feedback and facts as the lines that spec 3 prints."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from enum import Enum
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engram.cli.display import line
from engram.model.lazy import fields, is_dataclass
from engram.model.memory import Memory
from engram.model.types import FORM_PARTS, form_name
from engram.rules.lifecycle import eligibility
from engram.rules.scopes import GLOBAL

if TYPE_CHECKING:
    from engram.model.decision import Decision, Related
    from engram.model.hit import Hit, Injected, Injection
    from engram.model.memory import Memory
    from engram.recall.context import RecalledContext
    from engram.recall.prompt.blocks import RecallTrace
    from engram.recall.recaller import Recall
    from engram.review.bulk import BulkDecision
    from engram.review.promotion import Provenance


def plain(value: Any) -> Any:
    """Any record as JSON-compatible data."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, float) and not isfinite(value):
        return str(value)
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(item) for item in value]
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    return str(value) if isinstance(value, Path) else value


def memory_data(memory: "Memory", now: datetime) -> dict[str, Any]:
    """A memory with its current state. Keys of other programs (`extra`) are included only if there are any."""
    data: dict[str, Any] = plain(memory)
    if not memory.extra:
        del data["extra"]
    state = eligibility(memory, now)
    return {**data, "state": state.state, "state_reason": state.reason, "strength": round(state.strength, 4)}


def decision_data(decision: "Decision", now: datetime) -> dict[str, Any]:
    """The outcome of a write."""
    return {
        "outcome": decision.outcome.value,
        "gate": decision.gate,
        "reason": decision.reason,
        "memory": memory_data(decision.memory, now) if decision.memory else None,
        "other": memory_data(decision.other, now) if decision.other else None,
        "related": [_related_data(one, decision, now) for one in decision.related],
        **({"warnings": list(decision.warnings)} if decision.warnings else {}),
    }


def _related_data(one: "Related", decision: "Decision", now: datetime) -> dict[str, Any]:
    """A memory that a new one may outdate or contradict, and the command that replaces it."""
    return {
        "relation": one.relation,
        "probability": round(one.probability, 3),
        "reason": one.reason,
        "call": superseding_command(decision, one),
        "memory": memory_data(one.memory, now),
    }


def superseding_command(decision: "Decision", one: "Related") -> str:
    """The command that lets what was learned replace a related memory."""
    import shlex

    statement = decision.memory.statement if decision.memory is not None else "…"
    return f"engram learn {shlex.quote(statement)} --supersedes {one.memory.id}{_scope_option(decision)}"


def _scope_option(decision: "Decision") -> str:
    scope = decision.memory.scope if decision.memory is not None else GLOBAL
    return "" if scope == GLOBAL else f" --scope {scope}"


def hit_data(hit: "Hit", now: datetime, *, explain: bool = False) -> dict[str, Any]:
    """One search result."""
    data: dict[str, Any] = {
        "id": hit.id,
        "kind": hit.kind,
        "score": hit.score,
        "relevance": hit.relevance,
        "text": hit.text,
        **({"stretch": hit.stretch} if hit.stretch else {}),
        "note": hit.note,
        "metadata": plain(hit.metadata),
    }
    if hit.memory is not None:
        data["memory"] = memory_data(hit.memory, now)
    if hit.event is not None:
        data["event"] = plain(hit.event)
    if explain:
        data["trace"] = plain(hit.trace)
    return data


def provenance_data(found: "Provenance") -> dict[str, Any]:
    """The origin of a memory, and the evidence for and against it."""
    near = found.neighbours
    return {
        "kind": found.kind,
        "tier": found.tier,
        "quotes": plain(found.quotes),
        "retellings": plain(found.retellings),
        "same": [_brief(other) for other in near.same],
        "may_repeat": [_brief(other) for other in near.similar],
        "contradicts": [_brief(other) for other in near.conflicts],
        "replaces": [_brief(other) for other in near.heads],
        "gates": found.gates,
    }


def _brief(memory: "Memory") -> dict[str, str]:
    return {"id": memory.id, "status": memory.status, "statement": memory.statement}


def bulk_data(decision: "BulkDecision", now: datetime) -> dict[str, Any]:
    """The outcome of a decision about many memories."""
    return {
        "decision": decision.id,
        "op": decision.op,
        "done": [memory_data(memory, now) for memory in decision.done],
        "left": dict(decision.left),
        **({"source": decision.source} if decision.source else {}),
    }


def recall_data(recall: "Recall", now: datetime, *, explain: bool = False) -> dict[str, Any]:
    """The answer to a question, and how the question was interpreted."""
    hits, understood = recall.hits, recall.understood
    data: dict[str, Any] = {
        "question": recall.question,
        "intent": recall.intent,
        "window": plain(recall.window),
        "phrase": understood.phrase if understood else "",
        "reason": understood.reason if understood else "",
        "unread": list(understood.unread) if understood else [],
        "text": recall.text,
        "answer": recall.answer,
        "warnings": list(recall.warnings),
        "mode": hits.mode,
        "hits": [hit_data(hit, now, explain=explain) for hit in hits],
        "possible": [hit_data(hit, now, explain=explain) for hit in recall.possible],
        "unconfirmed": [hit_data(hit, now, explain=explain) for hit in recall.unconfirmed],
        "older": [hit_data(hit, now, explain=explain) for hit in recall.older],
        "elsewhere": {match.scope: match.count for match in recall.elsewhere},
    }
    if explain:
        data |= {"filtered": plain(hits.filtered), "terms": list(hits.terms), "pruned_terms": list(hits.pruned_terms)}
        data["trace"] = plain(recall.trace)
    return data


def context_data(context: "RecalledContext") -> dict[str, Any]:
    """What was recalled with its context."""
    sections = [
        {"phase": one.phase, "title": one.title, "provenance": one.provenance, "text": one.text}
        | ({"relevance": round(one.relevance, 3)} if one.relevance else {})
        | ({"id": one.id} if one.id else {})
        for one in context.sections
    ]
    return {
        "query": context.query,
        "text": context.text,
        "summary": context.summary,
        "stopped": context.stopped,
        "warnings": list(context.warnings),
        "sections": sections,
    }


def budget_data(trace: "RecallTrace", budget: int) -> dict[str, Any]:
    """What of a recall fits into a budget, and what its text lacks."""
    return {
        "budget": budget,
        "tokens": trace.tokens,
        "kept": list(trace.kept),
        "trimmed": list(trace.trimmed),
        "superseded": list(trace.superseded),
        "missing_expected_terms": list(trace.missing_expected_terms),
    }


def injection_data(injection: "Injection", now: datetime) -> dict[str, Any]:
    """What a prompt receives."""
    return {
        "text": injection.text,
        "tokens": injection.tokens,
        "budget": injection.budget,
        "directives": [_injected_data(item, now) for item in injection.directives],
        "consider": [_injected_data(item, now) for item in injection.consider],
        "related": [_injected_data(item, now) for item in injection.related],
        "unconfirmed": [_injected_data(item, now) for item in injection.unconfirmed],
        "sessions": plain(injection.sessions),
        "left_out": plain(injection.left_out),
        "warnings": list(injection.warnings),
    }


def _injected_data(item: "Injected", now: datetime) -> dict[str, Any]:
    return {
        "id": item.memory.id,
        "score": item.score,
        "reason": item.reason,
        "text": item.text,
        "memory": memory_data(item.memory, now),
    }


_SHOWN_AS = {"SUPERSEDED": "CREATED"}
"""Outcomes for which spec 3 has another word: a memory that replaces another is new."""


def decision_lines(decision: "Decision") -> list[str]:
    """The outcome of a write: one line, and after DUPLICATE and CONTRADICTION each existing memory in full."""
    outcome = decision.outcome.value
    if outcome == "CONTRADICTION":
        found = [decision.other, *(one.memory for one in decision.related)]
        others = {memory.id: memory for memory in found if memory is not None}
        return [row for memory in others.values() for row in _existing(outcome, memory)]
    if outcome == "DUPLICATE" and decision.memory is not None:
        return _existing(outcome, decision.memory)
    if decision.memory is not None:
        return [f"{_SHOWN_AS.get(outcome, outcome)}: {_shown_name(decision.memory)}"]
    return [f"{outcome}: {f'{decision.gate}: ' if decision.gate else ''}{line(decision.reason)}"]


def _existing(outcome: str, memory: Memory) -> list[str]:
    return [f"{outcome}: {_shown_name(memory)}", *(f"{name}: {line(text)}" for name, text in _fields(memory) if text)]


def _fields(memory: Memory) -> list[tuple[str, str]]:
    """Its situation and the parts of its form, or the statement of a memory without one."""
    parts = FORM_PARTS.get(form_name(memory.form), ())
    said = [(part, memory.form.get(part, "")) for part in parts] or [("statement", memory.statement)]
    return [("situation", memory.situation), *said]


def form_card(memory: Memory) -> list[str]:
    """A memory in full, with a labelled line for each non-empty field."""
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
    return [" | ".join((memory.type, _shown_name(memory), line(memory.situation))) for memory in changed]


def are_forms(memories: Sequence[Memory]) -> bool:
    """Whether there are any, and all of them are feedback or facts in a form."""
    return bool(memories) and all(form_name(memory.form) for memory in memories)


def _shown_name(memory: Memory) -> str:
    return line(memory.name or memory.id)


def _last_change(memory: Memory) -> datetime:
    return memory.updated or memory.created or datetime.min.replace(tzinfo=UTC)


def _moment(at: datetime | None) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}" if at is not None else ""
