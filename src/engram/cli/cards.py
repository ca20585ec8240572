"""Memories, decisions and answers as a person reads them."""

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from engram.cli import drawing
from engram.cli.drawing import Cell, Column
from engram.cli.plain_text import age, ago, line, moment, shown
from engram.model.hit import CLOSEST
from engram.model.types import type_or_default
from engram.rules.eligibility import eligibility
from engram.rules.strength import links_at

if TYPE_CHECKING:
    from engram.model.decision import Decision
    from engram.model.hit import Hit, Injection
    from engram.model.memory import Memory
    from engram.recall.recaller import Recall

_OUTCOMES = {
    "CREATED": ("learned", "green"),
    "PENDING": ("waits for review", "cyan"),
    "DUPLICATE": ("known already", "yellow"),
    "CONTRADICTION": ("contradicts what is known", "magenta"),
    "SUPERSEDED": ("takes the place of the old one", "green"),
    "UPDATED": ("updated", "green"),
    "NOOP": ("nothing to do", "yellow"),
    "REJECTED": ("refused", "red"),
}


def decision(found: "Decision") -> None:
    """What became of a write, in two or three lines."""
    words, style = _OUTCOMES[found.outcome.value]
    subject = line(found.memory.id) if found.memory else ""
    drawing.lines(
        [(found.outcome.value, f"bold {style}"), f"  {subject}" if subject else "", (f"  {words}", style)],
    )
    if found.memory is not None:
        drawing.lines([f"  {line(found.memory.statement)}"])
    if found.other is not None and found.outcome.value not in ("DUPLICATE", "NOOP"):
        drawing.lines([(f"  ↔ {line(found.other.id)}  {line(found.other.statement)}", "bright_black")])
    reason = line(found.reason)
    drawing.lines([(f"  {found.gate}: {reason}" if found.gate else f"  {reason}", "bright_black")])


def card(memory: "Memory", now: datetime, file: str = "") -> None:
    """Everything worth knowing about one memory."""
    state = eligibility(memory, now)
    style = drawing.state_style(state.state)
    drawing.lines([(memory.id, "bold cyan"), "  ", (memory.name, "bright_black")])
    if drawing.on_terminal():
        drawing.write()
        drawing.fields([("", (shown(memory.statement), "bold"))])
        drawing.write()
    else:
        drawing.fields([("statement", memory.statement)])
    drawing.fields(
        [
            ("when", memory.situation),
            ("why", memory.rationale),
            ("type", f"{memory.type} ({type_or_default(memory.type).label})"),
            ("scope", memory.scope),
            ("status", memory.status + (", pinned" if memory.pinned else "")),
            ("state", (f"{drawing.bar(state.strength)} {state.strength:.2f}  {state.state}: {state.reason}", style)),
            *_worth(memory),
            *_origin(memory, now),
            *_links(memory, now),
            ("file", file),
        ]
    )


def _worth(memory: "Memory") -> list[tuple[str, Cell]]:
    rated = memory.feedback
    ratings = f"+{rated.positive} −{rated.negative} ={rated.neutral}"
    used = memory.activation.frequency
    return [
        ("confidence", f"{memory.confidence:.2f}, importance {memory.importance:.2f}"),
        ("ratings", ratings if rated.positive or rated.negative or rated.neutral else ""),
        ("used", f"{used}×, derived {memory.derivation_count}×" if used or memory.derivation_count > 1 else ""),
        ("tags", ", ".join(memory.tags)),
        ("domain", memory.domain),
        ("entities", ", ".join(memory.entities)),
        ("anchors", "; ".join(anchor.path for anchor in memory.anchors)),
        ("form", "; ".join(f"{key}: {value}" for key, value in memory.form.items())),
        ("context", line(memory.context, 200)),
        ("metadata", ", ".join(f"{key}={value}" for key, value in memory.metadata.items())),
    ]


def _origin(memory: "Memory", now: datetime) -> list[tuple[str, Cell]]:
    created = f"{moment(memory.created)} ({ago(memory.created, now)})" if memory.created else ""
    return [
        ("created", created),
        ("updated", f"{moment(memory.updated)} ({ago(memory.updated, now)})" if memory.updated else ""),
        ("happened", moment(memory.occurred_at)),
        ("valid", _validity(memory)),
        ("verified", f"{moment(memory.last_verified)} ({memory.verification})" if memory.last_verified else ""),
        ("from", f"{memory.source}{f' by {memory.learned_by}' if memory.learned_by else ''}"),
        ("session", memory.session),
        ("aliases", ", ".join(memory.aliases)),
    ]


def _validity(memory: "Memory") -> str:
    if memory.valid_from is None and memory.valid_until is None:
        return ""
    return f"{moment(memory.valid_from) or '…'} until {moment(memory.valid_until) or '…'}"


def _links(memory: "Memory", now: datetime) -> list[tuple[str, Cell]]:
    links = "; ".join(
        f"{link.type.replace('_', ' ')} {link.target} ({link.strength:.2f})" for link in links_at(memory, now)
    )
    return [
        ("supersedes", ", ".join(memory.supersedes)),
        ("superseded by", memory.superseded_by),
        ("linked to", links),
    ]


def listing(memories: "Sequence[Memory]", now: datetime, at: datetime | None = None) -> None:
    """Memories as a table, with their state at a time."""
    rows: list[list[Cell]] = []
    for memory in memories:
        state = eligibility(memory, at or now)
        strength = (f"{drawing.bar(state.strength)} {state.state}", drawing.state_style(state.state))
        statement = f"★ {line(memory.statement)}" if memory.pinned else line(memory.statement)
        rows.append([memory.id, memory.type, memory.scope, strength, age(memory.created, now), statement])
    names = ("id", "type", "scope", "state", "age", "statement")
    drawing.table([Column(name, _COLUMNS.get(name, ""), grows=name == "statement") for name in names], rows)


_COLUMNS = {"id": "cyan", "type": "", "scope": "bright_black", "age": "bright_black"}


def hits(found: "Sequence[Hit]", now: datetime, *, explain: bool = False, dated: bool = False) -> None:
    """Answers, best first; a program is given them as a prompt would be."""
    from engram.recall.recaller import line_of

    for number, hit in enumerate(found, 1):
        if drawing.on_terminal():
            drawing.entry(str(number), hit.stretch or hit.text, _remarks(hit, now), f"{hit.relevance:.0%}")
        else:
            drawing.write(line_of(hit, dated=dated))
        if explain:
            trace(hit)


def nothing_known(found: "Recall", now: datetime) -> None:
    """That a question has no answer, and apart from that what comes closest to it."""
    drawing.write(found.text)
    if found.nearest:
        drawing.write(f"\n{CLOSEST}")
        hits(found.nearest, now, dated=found.intent != "current")


def _label(hit: "Hit") -> str:
    if hit.memory is not None:
        return type_or_default(hit.memory.type).label
    return hit.event.role if hit.event is not None else hit.kind


def _remarks(hit: "Hit", now: datetime) -> list[Cell]:
    remarks: list[Cell] = [(hit.id, "cyan"), _label(hit)]
    if hit.memory is not None:
        remarks += [hit.memory.scope, ago(hit.memory.when, now)]
    elif hit.event is not None:
        remarks += [hit.event.session, ago(hit.event.at, now)]
    if hit.note:
        remarks.append((hit.note, drawing.state_style(hit.note)))
    return remarks


def trace(hit: "Hit") -> None:
    """How a score came about, line by line; the last number of the running total is the score."""
    if hit.trace is None:
        return
    found = [_place(name, rank, hit.trace.raw.get(name)) for name, rank in hit.trace.found_by.items()]
    how = ", ".join(found) or "its place"
    drawing.lines([(f"      relevance {hit.relevance:.2f}; found by {how}", "bright_black")])
    total = 0.0
    for part in hit.trace.parts:
        total = total * part.value if part.operation == "×" else total + part.value
        words = f"      {part.name:<22} {part.operation} {part.value:8.4f}   {total:9.4f}"
        drawing.lines([words, (f"   {part.detail}" if part.detail else "", "bright_black")])
    drawing.lines([(f"      {'score':<22} = {'':8}   {hit.score:9.4f}", "bold")], [""])


def _place(retriever: str, rank: int, raw: float | None) -> str:
    return f"{retriever} #{rank} ({raw:.3f})" if raw is not None else f"its {retriever}"


def injection(found: "Injection") -> None:
    """What a prompt is given, and on a terminal how much room it took."""
    if not drawing.on_terminal():
        drawing.write(found.text.rstrip("\n"))
        return
    drawing.block(found.text)
