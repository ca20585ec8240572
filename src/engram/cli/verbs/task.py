"""task: work that outlives a conversation: its states, its ledger, its checkpoints, its context."""

import os
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from engram.cli import display, views
from engram.cli.display import Column, ago, line
from engram.cli.records import hit_data
from engram.cli.surface import Surface, text_or_stdin
from engram.cli.verbs.options import EventOptions, check_least, pairs
from engram.cli.verbs.session import events_to_write, redaction_notes
from engram.cli.views import MAX_TASK_SILENCE, checkpoint_fields, task_style
from engram.model.errors import InvalidInput, UnreadableData
from engram.model.event import Event
from engram.model.task import TaskRun
from engram.readers.json_reader import parse_json
from engram.recall.cutoff import INJECT_FLOOR

TASK_VARIABLE = "ENGRAM_TASK"
_TURN = {"user": str, "assistant": str, "tool_calls": list, "artifacts": list, "key": str, "derive": bool}


def resolve_task(task_id: str, *said: str) -> tuple[str, ...]:
    """The task and the words after it. Where $ENGRAM_TASK names the task, the words may take the place of its id."""
    own = os.environ.get(TASK_VARIABLE, "")
    if own and said and not said[-1] and not task_id.startswith("TASK-"):
        return (own, task_id, *said[:-1])
    return (task_id, *said)


def event(surface: Surface, task_id: str, no_derive: bool = False, **given: Any) -> None:
    """Carry out `engram task event`."""
    said = EventOptions(**given)
    if not said.batch:
        task_id, said.role, said.content = resolve_task(task_id, said.role, said.content)
    items = events_to_write(said)
    with surface.memory() as mem:
        _report_events(surface, mem.tasks.record_events(task_id, items, derive=not no_derive))


def turn(
    surface: Surface, task_id: str, user: str = "", assistant: str = "", key: str = "", no_derive: bool = False
) -> None:
    """Carry out `engram task turn`."""
    if user or assistant:
        if user == assistant == "-":
            raise InvalidInput("stdin can be read only once: give --user or --assistant as text")
        given: dict[str, Any] = {"user": text_or_stdin(user), "assistant": text_or_stdin(assistant)}
    elif surface.person:
        raise InvalidInput("Give --user TEXT, --assistant TEXT, or a JSON object on stdin")
    else:
        given = _turn_on_stdin()
    given |= ({"key": key} if key else {}) | ({"derive": False} if no_derive else {})
    with surface.memory() as mem:
        _report_events(surface, mem.record_turn(task_id, **given))


def _turn_on_stdin() -> dict[str, Any]:
    text = text_or_stdin("-")
    if not text:
        raise InvalidInput(
            "stdin is empty: give --user TEXT and --assistant TEXT, or a JSON object with user and assistant on stdin"
        )
    try:
        given = parse_json(text, characters="any")
    except UnreadableData as error:
        raise InvalidInput(f"stdin is not a JSON object: {error}; nothing was written") from None
    if not isinstance(given, dict):
        raise InvalidInput("stdin is not a JSON object with user and assistant; nothing was written")
    for name, value in given.items():
        if name not in _TURN:
            raise InvalidInput(f"Unknown field {name!r} of a turn; known: {', '.join(_TURN)}")
        if not isinstance(value, _TURN[name]):
            raise InvalidInput(f"{name!r} of a turn must be {_JSON_WORDS[_TURN[name]]}; nothing was written")
    for name in ("tool_calls", "artifacts"):
        if not all(isinstance(one, dict) for one in given.get(name, ())):
            raise InvalidInput(f"{name} of a turn is a list of objects; nothing was written")
    return given


_JSON_WORDS: dict[type, str] = {str: "a text", list: "a list of objects", bool: "true or false"}


def _report_events(surface: Surface, events: Sequence[Event]) -> None:
    rows: list[list[display.Cell]] = [
        [(f"#{one.seq} ", "bright_black"), (one.id, "cyan"), f"  {one.role}: {line(one.content, 80)}"] for one in events
    ]
    surface.answer(events, lambda: display.lines(*rows))
    surface.warn(redaction_notes(events))


def checkpoint(
    surface: Surface,
    task_id: str,
    summary: str = "",
    done: list[str] | None = None,
    todo: list[str] | None = None,
    decided: list[str] | None = None,
    blocker: list[str] | None = None,
    artifact: list[str] | None = None,
    event: list[str] | None = None,
) -> None:
    """Carry out `engram task checkpoint`."""
    task_id, summary = resolve_task(task_id, summary)
    with surface.memory() as mem:
        made = mem.create_checkpoint(
            task_id, text_or_stdin(summary), completed_steps=done or (), pending_steps=todo or (),
            decisions=decided or (), blockers=blocker or (), artifacts=artifact or (), source_event_ids=event or (),
        )  # fmt: skip

        def draw() -> None:
            display.lines([(made.id, "bold cyan"), f"  through event {made.through}"])
            display.fields(checkpoint_fields(made))

        surface.answer(made, draw)


def context(
    surface: Surface,
    task_id: str,
    query: str = "",
    tokens: int = 4000,
    recent: int = 40,
    no_graph: bool = False,
    sources: bool = False,
    scope: list[str] | None = None,
    min_relevance: float = INJECT_FLOOR,
) -> None:
    """Carry out `engram task context`."""
    check_least("--recent", recent, 0)
    task_id, query = resolve_task(task_id, query)
    with surface.memory() as mem:
        if sources:
            found = mem.build_long_input_context(task_id, text_or_stdin(query), max_tokens=tokens, scope=scope or None)
            surface.answer(found, lambda: display.block(found.text))
            return
        built = mem.build_context(
            task_id, text_or_stdin(query), max_tokens=tokens, recent_event_limit=recent, include_graph=not no_graph,
            scope=scope or None, min_relevance=min_relevance,
        )  # fmt: skip
        surface.answer(built, lambda: display.block(built.text))
        if surface.can_draw:
            surface.hint(f"engram: {built.tokens} of {built.budget} tokens; {len(built.trimmed)} left out")


def search(
    surface: Surface,
    query: str,
    task: str = "",
    event_type: list[str] | None = None,
    role: list[str] | None = None,
    since: str | None = None,
    until: str | None = None,
    limit: int = 10,
    mode: str = "hybrid",
    scope: list[str] | None = None,
) -> None:
    """Carry out `engram task search`."""
    query = text_or_stdin(query)
    with surface.memory() as mem:
        found = mem.search_events(
            query, task=task, since=since, until=until, event_types=event_type, roles=role, mode=mode, limit=limit,
            scope=scope or None,
        )  # fmt: skip
        now = surface.now
        surface.warn(found.warnings)
        hits = [hit_data(hit, now) for hit in found]
        data = {"query": query, "mode": found.mode, "hits": hits, "warnings": found.warnings}
        surface.answer(data, lambda: views.hits(found, now))
        if not found:
            surface.hint("engram: nothing found")


def start(surface: Surface, goal: str, scope: str = "", meta: list[str] | None = None, session: str = "") -> None:
    """Carry out `engram task start`."""
    with surface.memory() as mem:
        begun = mem.start_task(text_or_stdin(goal), scope=scope, session=session, metadata=pairs(meta))
        surface.answer(begun, lambda: display.lines([(begun.id, "bold cyan")]))
        surface.hint(f"engram: `export ENGRAM_TASK={begun.id}` makes it the default of the other task verbs")


def list_(surface: Surface, status: list[str] | None = None, limit: int = 20, scope: list[str] | None = None) -> None:
    """Carry out `engram task list`."""
    check_least("--limit", limit, 1)
    with surface.memory() as mem:
        found, now = mem.list_tasks(status or None, limit=limit, scope=scope or None), surface.now
        rows: list[list[display.Cell]] = [
            [
                (one.id, "cyan"),
                (one.status, views.task_style(one.status)),
                ago(one.updated, now),
                one.scope,
                line(one.goal),
            ]
            for one in found
        ]
        grey = "bright_black"
        columns: list[Column | str] = ["task", "state", Column("changed", grey), Column("scope", grey), "goal"]
        surface.answer(found, lambda: display.table(columns, rows))
        if not found:
            surface.hint('engram: no tasks here; `engram task start "…"` starts one')


def show(surface: Surface, task_id: str, events: int = 10, scope: list[str] | None = None) -> None:
    """Carry out `engram task show`."""
    check_least("--events", events, 0)
    with surface.memory() as mem:
        found = views.progress_of(mem, mem.get_task(task_id, scope=scope or None), events)
        data = {
            "task": found.task, "idle_seconds": found.idle.total_seconds(), "event_count": found.event_count,
            "checkpoint_count": found.checkpoint_count, "waiting_jobs": found.waiting, "latest_checkpoint": found.latest,
            "last_events": found.last,
        }  # fmt: skip
        surface.answer(data, lambda: views.draw_task(found, surface.now))
        surface.hint(_next_step(found.task, found.idle, found.waiting))


def _next_step(task: TaskRun, idle: timedelta, waiting: int) -> str:
    if task.status == "running" and idle > MAX_TASK_SILENCE:
        return f"engram: it has been idle for long; `engram task resume {task.id}` shows how to continue"
    return "engram: its facts are not extracted yet; `engram worker --once` does that" if waiting else ""


def resume(surface: Surface, task_id: str, tokens: int = 4000, recent: int = 40, no_graph: bool = False) -> None:
    """Carry out `engram task resume`."""
    check_least("--recent", recent, 0)
    with surface.memory() as mem:
        before = mem.get_task(task_id)
        idle = mem.tasks.idle_since(before)
        task = mem.resume_task(before.id)
        built = mem.build_context(task.id, max_tokens=tokens, recent_event_limit=recent, include_graph=not no_graph)

        def draw() -> None:
            display.lines(
                [(task.id, "bold cyan"), "  ", (task.status, task_style(task.status)), f"  {task.goal}"], [""]
            )
            display.block(built.text)

        data = {"task": task, "was": before.status, "idle_seconds": idle.total_seconds(), "context": built}
        surface.answer(data, draw)
        surface.hint(f"engram: it was {before.status} and idle for {_spell(idle)}")


def _spell(idle: timedelta) -> str:
    return str(timedelta(seconds=max(0, round(idle.total_seconds()))))


def pause(surface: Surface, task_id: str, reason: str = "") -> None:
    """Carry out `engram task pause`."""
    _move_task(surface, "paused", *resolve_task(task_id, reason))


def complete(surface: Surface, task_id: str, outcome: str = "") -> None:
    """Carry out `engram task complete`."""
    _move_task(surface, "completed", *resolve_task(task_id, outcome))


def fail(surface: Surface, task_id: str, reason: str = "") -> None:
    """Carry out `engram task fail`."""
    _move_task(surface, "failed", *resolve_task(task_id, reason))


def cancel(surface: Surface, task_id: str, reason: str = "") -> None:
    """Carry out `engram task cancel`."""
    _move_task(surface, "cancelled", *resolve_task(task_id, reason))


def delete(surface: Surface, task_id: str) -> None:
    """Carry out `engram task delete`."""
    _move_task(surface, "deleted", task_id)


def _move_task(surface: Surface, state: str, task_id: str, said: str = "") -> None:
    said = text_or_stdin(said)
    with surface.memory() as mem:
        task = mem.tasks.move(task_id, state, said)
        words = task.outcome or task.goal
        surface.answer(
            task,
            lambda: display.lines(
                [(task.status, task_style(task.status)), "  ", (task.id, "cyan"), f"  {line(words)}"]
            ),
        )
