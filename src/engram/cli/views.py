"""Memories, histories, tasks, decisions and answers, formatted for people."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta, tzinfo
from typing import TYPE_CHECKING, Any

from engram.cli import display
from engram.cli.display import Cell, Column, age, ago, escape_hidden, line, moment
from engram.cli.records import plain, superseding_command
from engram.cli.surface import FAILED
from engram.model.lazy import dataclass
from engram.model.types import type_or_default
from engram.rules.lifecycle import eligibility, links_at
from engram.text.display import format_count

if TYPE_CHECKING:
    from engram.cli.surface import Surface
    from engram.client import Engram
    from engram.model.decision import Decision
    from engram.model.hit import Hit, Injection, SearchTrace, TimelineEntry
    from engram.model.memory import Memory
    from engram.model.records import Checkpoint, Event, TaskRun
    from engram.recall.prompt.blocks import RecallTrace
    from engram.recall.recaller import Recall
    from engram.recall.trace import Trace
    from engram.store.protocol import Image

TRACE_TOKENS = 2_000
MAX_LEFT_OUT = 20
"""Maximum omitted documents shown to a reader; JSON has all of them."""
_INTENT_WORDS = {
    "current": "the current value",
    "historical": "a past value",
    "event": "what happened",
    "lineage": "how something changed",
}
_OUTCOMES = {
    "CREATED": ("learned", "green"),
    "PENDING": ("awaits review", "cyan"),
    "DUPLICATE": ("already known", "yellow"),
    "CONTRADICTION": ("contradicts an existing memory", "magenta"),
    "SUPERSEDED": ("replaces the old one", "green"),
    "UPDATED": ("updated", "green"),
    "NOOP": ("nothing to do", "yellow"),
    "REJECTED": ("refused", "red"),
}


def decision(found: "Decision") -> None:
    """Print the outcome of a write, in two or three lines."""
    words, style = _OUTCOMES[found.outcome.value]
    subject = line(found.memory.id) if found.memory else ""
    display.lines(
        [(found.outcome.value, f"bold {style}"), f"  {subject}" if subject else "", (f"  {words}", style)],
    )
    if found.memory is not None:
        display.lines([f"  {line(found.memory.statement)}"])
    if found.other is not None and found.outcome.value not in ("DUPLICATE", "NOOP"):
        display.lines([(f"  ↔ {line(found.other.id)}  {line(found.other.statement)}", "bright_black")])
    reason = line(found.reason)
    display.lines([(f"  {found.gate}: {reason}" if found.gate else f"  {reason}", "bright_black")])
    for one in found.related:
        if found.other is None or one.memory.id != found.other.id or found.outcome.value == "DUPLICATE":
            about = f"{one.relation} {one.probability:.0%}" + (f", {line(one.reason)}" if one.reason else "")
            display.lines([(f"  ? {line(one.memory.id)}  {line(one.memory.statement)}  ({about})", "bright_black")])
        display.lines(
            [(f"    to replace {line(one.memory.id)}: {line(superseding_command(found, one))}", "bright_black")]
        )


def card(memory: "Memory", now: datetime, file: str = "") -> None:
    """Print everything worth knowing about one memory."""
    state = eligibility(memory, now)
    style = display.state_style(state.state)
    display.lines([(memory.id, "bold cyan"), "  ", (memory.name, "bright_black")])
    if display.on_terminal():
        display.write()
        display.fields([("", (escape_hidden(memory.statement), "bold"))])
        display.write()
    else:
        display.fields([("statement", memory.statement)])
    display.fields(
        [
            ("when", memory.situation),
            ("why", memory.rationale),
            ("type", f"{memory.type} ({type_or_default(memory.type).label})"),
            ("scope", memory.scope),
            ("status", memory.status + (", pinned" if memory.pinned else "")),
            ("state", (f"{display.bar(state.strength)} {state.strength:.2f}  {state.state}: {state.reason}", style)),
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
        ("cues", "; ".join(memory.cues)),
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
    """Print memories as a table, with their state at a time."""
    rows: list[list[Cell]] = []
    for memory in memories:
        state = eligibility(memory, at or now)
        strength = (f"{display.bar(state.strength)} {state.state}", display.state_style(state.state))
        statement = f"★ {line(memory.statement)}" if memory.pinned else line(memory.statement)
        rows.append([memory.id, memory.type, memory.scope, strength, age(memory.created, now), statement])
    scope, age_ = Column("scope", "bright_black"), Column("age", "bright_black")
    display.table([Column("id", "cyan"), "type", scope, "state", age_, "statement"], rows)


def timeline(found: "Sequence[TimelineEntry]") -> None:
    """Print a timeline as a table."""
    rows: list[list[Cell]] = [
        [moment(entry.at), entry.kind, entry.id, ", ".join(filter(None, (entry.status, entry.note))), line(entry.text)]
        for entry in found
    ]
    if rows:
        display.table(["when", "kind", Column("id", "cyan"), "state", "text"], rows)


def hits(
    found: "Sequence[Hit]", now: datetime, *, explain: bool = False, dated: bool = False, zone: tzinfo | None = None
) -> None:
    """Print answers, best first; a program gets them in the form of a prompt."""
    from engram.recall.recaller import line_of

    for number, hit in enumerate(found, 1):
        if display.on_terminal():
            display.entry(str(number), hit.stretch or hit.text, _remarks(hit, now), f"{hit.relevance:.0%}")
        else:
            display.write(line_of(hit, dated=dated, zone=zone))
        if explain:
            trace_lines(hit)


def answer(found: "Recall", now: datetime, *, explain: bool = False) -> None:
    """Print the answer, and then each of its other parts under a heading."""
    from engram.recall.recaller import part_lines

    if not found.hits and not explain:
        display.write(found.text)
        return
    hits(found.hits, now, explain=explain, dated=found.intent != "current", zone=found.zone)
    for heading, lines in part_lines(found.parts, found.zone):
        display.write("\n".join(("", heading, *lines)))


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
        remarks.append((hit.note, display.state_style(hit.note)))
    return remarks


def trace_lines(hit: "Hit") -> None:
    """How a score was computed, line by line; the last running total is the score."""
    if hit.trace is None:
        return
    found = [_place(name, rank, hit.trace.raw.get(name)) for name, rank in hit.trace.found_by.items()]
    how = ", ".join(found) or "its place"
    display.lines([(f"      relevance {hit.relevance:.2f}; found by {how}", "bright_black")])
    total = 0.0
    for part in hit.trace.parts:
        total = total * part.value if part.operation == "×" else total + part.value
        words = f"      {part.name:<22} {part.operation} {part.value:8.4f}   {total:9.4f}"
        display.lines([words, (f"   {part.detail}" if part.detail else "", "bright_black")])
    display.lines([(f"      {'score':<22} = {'':8}   {hit.score:9.4f}", "bold")], [""])


def _place(retriever: str, rank: int, raw: float | None) -> str:
    return f"{retriever} #{rank} ({raw:.3f})" if raw is not None else f"its {retriever}"


def injection(found: "Injection") -> None:
    """Print the text for a prompt, and on a terminal its size."""
    if not display.on_terminal():
        display.write(found.text.rstrip("\n"))
        return
    display.block(found.text)


def interpretation_line(recall: "Recall") -> str:
    """One line: what the question asks for and of which time, with the words that show it."""
    question = recall.understood
    reason = f" (“{question.reason}”)" if question and recall.intent != "current" else ""
    phrase = f" (“{question.phrase}”)" if question and question.phrase else ""
    if recall.window is None:
        return f"interpreted as a question about {_INTENT_WORDS[recall.intent]}{reason}"
    since, until = moment(recall.window.since), moment(recall.window.until)
    ends = [f"from {since}" if since else "", f"until {until}" if until else ""]
    return f"interpreted as a question about {_INTENT_WORDS[recall.intent]}{reason}, {' '.join(end for end in ends if end)}{phrase}"


def print_trace(surface: "Surface", told: "RecallTrace", room: int, at: "datetime") -> None:
    """Print how a recall's answer was found; exit 1 if an expected term is missing."""
    if surface.as_json:
        from engram.cli.records import budget_data, recall_data

        surface.warn(told.recall.warnings)
        surface.json({**recall_data(told.recall, at, explain=True), **budget_data(told, room)})
    else:
        _draw_trace(told, room)
    if told.missing_expected_terms:
        surface.hint(f"engram: missing: {', '.join(told.missing_expected_terms)}")
        raise SystemExit(FAILED)


def _draw_trace(told: "RecallTrace", room: int) -> None:
    trace = told.recall.trace
    assert trace is not None
    display.lines([""])
    _draw_reading(told.recall, trace)
    for number, search in enumerate(trace.searches, 1):
        _draw_search(number, search)
    _row("answer", trace.method, "green")
    for hit in told.recall.hits:
        _row("hit", f"{hit.id}  {line(hit.text, 80)}", "green", trace.origins[hit.id])
        trace_lines(hit)
    _draw_left_out(told, trace)
    _row("tokens", f"{told.tokens} of {room}")


def _draw_reading(recall: "Recall", trace: "Trace") -> None:
    question = trace.question
    _row("intent", f"{recall.intent}, {_INTENT_WORDS[recall.intent]}", "bold", question.reason)
    if recall.window is not None:
        since, until = moment(recall.window.since) or "…", moment(recall.window.until) or "…"
        _row("window", f"{since} until {until}", "bold", f"“{question.phrase}”" if question.phrase else "")
    if question.anchor:
        by = f"dated by {trace.anchor}" if trace.anchor else "not looked up, or not known"
        _row("anchor", f"{question.relation} “{line(question.anchor)}”, {by}")
    _row("subject", line(question.subject))
    for warning in recall.warnings:
        _row("note", warning, "yellow")


def _draw_search(number: int, search: "SearchTrace") -> None:
    _row(f"search {number}", f"{search.purpose}: “{line(search.text, 80)}”", "cyan")
    _row("", f"in {search.where}")
    terms = ", ".join(search.terms) or "none"
    pruned = f", too common: {', '.join(search.pruned_terms)}" if search.pruned_terms else ""
    given = ", ".join(f"{name} {count}" for name, count in search.candidates.items())
    cut = f", {len(search.cut)} beyond the limit of {search.limit}" if search.cut else ""
    _row("", f"{search.mode}; terms: {terms}{pruned}; candidates: {given}; found {len(search.found)}{cut}")


def _draw_left_out(told: "RecallTrace", trace: "Trace") -> None:
    for one in trace.filtered[:MAX_LEFT_OUT]:
        _row("left out", one.id, "bright_black", one.reason)
    if len(trace.filtered) > MAX_LEFT_OUT:
        _row("left out", f"{len(trace.filtered) - MAX_LEFT_OUT} more; --json names them", "bright_black")
    for name in told.trimmed:
        _row("trimmed", name, "yellow", "no room left")
    for name in told.superseded:
        _row("superseded", name, "bright_black", "matches, and is no longer current")
    for term in told.missing_expected_terms:
        _row("missing", term, "bold red", "expected, and not in the text")


def _row(name: str, value: str, style: str = "bold", aside: str = "") -> None:
    display.lines([(f"{name:<12}", style), line(value), (f"  ({line(aside)})" if aside else "", "bright_black")])


_UNINFORMATIVE_FIELDS = frozenset({"updated", "activation.seq"})
"""Fields that change with every step and are not informative."""
_ABSENT: Any = None


@dataclass(frozen=True, slots=True)
class HistoryStep:
    """One decision and its changes: field → (before, after)."""

    image: "Image"
    changes: Mapping[str, tuple[Any, Any]]


def history_steps(images: "Sequence[Image]") -> list[HistoryStep]:
    """Each image compared with the previous one."""
    found: list[HistoryStep] = []
    before: Memory | None = None
    for image in images:
        found.append(HistoryStep(image, changed_fields(before, image.memory)))
        before = image.memory
    return found


def changed_fields(before: "Memory | None", after: "Memory | None") -> dict[str, tuple[Any, Any]]:
    """The fields in which two images differ; for the first one, the non-empty fields."""
    old, new = _flat(before), _flat(after)
    names = dict.fromkeys([*old, *new])
    different = {
        name: (old.get(name, _ABSENT), new.get(name, _ABSENT)) for name in names if name not in _UNINFORMATIVE_FIELDS
    }
    return {
        name: pair
        for name, pair in different.items()
        if pair[0] != pair[1] and not (before is None and _is_default(name, pair[1]))
    }


def _flat(memory: "Memory | None") -> dict[str, Any]:
    if memory is None:
        return {}
    flat: dict[str, Any] = {}
    for name, value in plain(memory).items():
        if name in ("activation", "feedback"):
            flat |= {f"{name}.{key}": item for key, item in value.items()}
        else:
            flat[name] = value
    return flat


def _is_default(name: str, value: Any) -> bool:
    from engram.model.memory import Memory

    return bool(_flat(Memory(id="", statement="")).get(name) == value)


def step_data(step: HistoryStep) -> dict[str, Any]:
    """A step as data for a program."""
    from engram.store.records import is_automatic

    image = step.image
    return {
        "seq": image.seq,
        "at": plain(image.at),
        "op": image.op,
        "actor": image.actor,
        "reason": image.reason,
        "session": image.session,
        "automatic": is_automatic(image),
        "changes": {name: {"before": before, "after": after} for name, (before, after) in step.changes.items()},
        "memory": plain(image.memory),
    }


def draw_history(found: Sequence[HistoryStep]) -> None:
    """Print steps for a person, oldest first.

    A step of a bulk decision has that decision's id, and one without a decider is `automatic`.
    """
    from engram.review.bulk import is_bulk
    from engram.store.records import is_automatic

    for step in found:
        image = step.image
        reason = f"  {line(image.reason)}" if image.reason else ""
        bulk = f"  {line(image.session)}" if is_bulk(image.session) else ""
        display.lines(
            [
                (f"#{image.seq} ", "bright_black"),
                (image.op, "bold cyan"),
                f"  {moment(image.at)}  by {image.actor}",
                (bulk, "magenta"),
                ("  automatic" if is_automatic(image) else "", "bright_black"),
                (reason, "bright_black"),
            ]
        )
        if image.memory is None:
            display.lines([("    purged: nothing of it is left", "red")])
        draw_changes(step.changes)


def draw_changes(found: Mapping[str, tuple[Any, Any]]) -> None:
    """Print the changes, before and after."""
    for name, (before, after) in found.items():
        old, new = _words(before), _words(after)
        if not old:
            display.lines([f"    {name}: ", (f"+ {new}", "green")])
        elif len(old) + len(new) < 60 and "\n" not in old + new:
            display.lines([f"    {name}: ", (old, "red"), " → ", (new or "(nothing)", "green")])
        else:
            display.lines([f"    {name}:"], [(f"      - {old}", "red")], [(f"      + {new or '(nothing)'}", "green")])


def _words(value: Any) -> str:
    if value is None or value in ("", [], {}):
        return ""
    if isinstance(value, float):
        return f"{value:.3g}"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(_words(item) for item in value)
    if isinstance(value, dict):
        return (
            "{" + ", ".join(f"{key}: {_words(item)}" for key, item in value.items() if item not in ("", {}, None)) + "}"
        )
    return escape_hidden(str(value))


MAX_TASK_SILENCE = timedelta(hours=1)
"""A running task without events for longer than this has probably lost its process."""
_STATES = {"running": "green", "paused": "yellow", "completed": "cyan", "failed": "red"}


@dataclass(frozen=True, slots=True)
class TaskProgress:
    """The progress of a task."""

    task: "TaskRun"
    idle: timedelta
    event_count: int
    checkpoint_count: int
    waiting: int
    """Unfinished jobs of the task."""
    latest: "Checkpoint | None"
    last: "Sequence[Event]"


def progress_of(mem: "Engram", task: "TaskRun", last: int) -> TaskProgress:
    """The progress of a task, with its last events."""
    from engram.model.records import Job

    events = mem.list_events(task.id, last=max(1, last))
    points = mem.tasks.checkpoints(task.id, 1)
    waiting = sum(1 for job in mem.store.list_records(Job) if job.payload.get("task") == task.id)
    latest = points[0] if points else None
    return TaskProgress(
        task,
        mem.tasks.idle_since(task),
        events[-1].seq if events else 0,
        latest.number if latest else 0,
        waiting,
        latest,
        events if last else [],
    )


def task_style(state: str) -> str:
    """The colour of a task's state."""
    return _STATES.get(state, "bright_black")


def draw_task(found: TaskProgress, now: datetime) -> None:
    """Print everything worth knowing about a task."""
    task = found.task
    display.lines([(task.id, "bold cyan"), "  ", (task.status, task_style(task.status))])
    display.fields(
        [
            ("goal", task.goal),
            ("outcome", task.outcome),
            ("scope", task.scope),
            ("session", task.session),
            ("started", f"{moment(task.created)} ({ago(task.created, now)})"),
            ("ended", moment(task.ended)),
            ("last sign", ago(now - found.idle, now)),
            ("events", f"{found.event_count:,}"),
            ("waits", f"{format_count(found.waiting, 'job')}: engram worker" if found.waiting else ""),
            ("metadata", ", ".join(f"{key}={value}" for key, value in task.metadata.items())),
        ]
    )
    if found.latest is not None:
        display.lines([""], [(found.latest.id, "bold"), f"  checkpoint {found.checkpoint_count}"])
        display.fields(checkpoint_fields(found.latest))
    if found.last:
        display.lines([""])
    for event in found.last:
        kind = "" if event.event_type == "message" else f" ({event.event_type})"
        display.lines(
            [
                (f"#{event.seq} {moment(event.at)}  ", "bright_black"),
                (f"{event.role}{kind}: ", "bold"),
                line(event.content, 200),
            ]
        )


def checkpoint_fields(point: "Checkpoint") -> list[tuple[str, Cell]]:
    """A checkpoint's parts; empty ones are left out where they are drawn."""
    return [
        ("summary", point.summary),
        ("done", "; ".join(point.completed_steps)),
        ("to do", "; ".join(point.pending_steps)),
        ("decided", "; ".join(point.decisions)),
        ("blocked by", "; ".join(point.blockers)),
        ("made", "; ".join(point.artifacts)),
    ]
