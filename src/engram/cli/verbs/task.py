"""task: work that outlives a conversation: its states, its ledger, its checkpoints, its context."""

from datetime import timedelta
from typing import Annotated

from engram.cli import display, task_view
from engram.cli.display import Column, ago, line
from engram.cli.parser import Argument, Group, Option
from engram.cli.surface import Surface, text_or_stdin
from engram.cli.task_view import SILENT, style
from engram.cli.verbs.options import Limit, Metadata, SeenFrom, Session, check_least, pairs
from engram.cli.verbs.task_ledger import (
    Id,
    NoGraph,
    Recent,
    Tokens,
    checkpoint,
    context,
    event,
    named,
    search,
    turn,
)
from engram.model.task import TaskRun

Goal = Annotated[str, Argument("GOAL", "What it should achieve; - reads it from stdin.")]
Scope = Annotated[
    str,
    Option(
        "--scope",
        "-s",
        metavar="SCOPE",
        help="Its scope; `here` is this directory's. Default: this directory's, where it has one.",
    ),
]
States = Annotated[
    list[str] | None,
    Option(
        "--status", metavar="STATE", help="Only running, paused, completed, failed, cancelled or deleted (repeatable)."
    ),
]
Events = Annotated[int, Option("--events", metavar="N", help="How many of its latest events.")]
Outcome = Annotated[str, Argument("[OUTCOME]", "The outcome; - reads it from stdin.")]
Why = Annotated[str, Argument("[REASON]", "Why; - reads it from stdin.")]


def start(surface: Surface, goal: Goal, scope: Scope = "", meta: Metadata = None, session: Session = "") -> None:
    """Start a task. Prints its id."""
    with surface.memory() as mem:
        begun = mem.start_task(text_or_stdin(goal), scope=scope, session=session, metadata=pairs(meta))
        surface.answer(begun, lambda: display.lines([(begun.id, "bold cyan")]))
        surface.hint(f"engram: `export ENGRAM_TASK={begun.id}` makes it the default of the other task verbs")


def list_(surface: Surface, status: States = None, limit: Limit = 20, scope: SeenFrom = None) -> None:
    """List tasks, newest first. Deleted ones only with --status deleted."""
    check_least("--limit", limit, 1)
    with surface.memory() as mem:
        found, now = mem.list_tasks(status or None, limit=limit, scope=scope or None), surface.now
        rows: list[list[display.Cell]] = [
            [
                (one.id, "cyan"),
                (one.status, task_view.style(one.status)),
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


def show(surface: Surface, task_id: Id, events: Events = 10, scope: SeenFrom = None) -> None:
    """Show a task: its state, its idle time, its latest checkpoint and its latest events.

    A running task that has been idle for long has probably lost its process; `task resume` continues it.
    """
    check_least("--events", events, 0)
    with surface.memory() as mem:
        found = task_view.progress_of(mem, mem.get_task(task_id, scope=scope or None), events)
        data = {
            "task": found.task, "idle_seconds": found.idle.total_seconds(), "event_count": found.event_count,
            "checkpoint_count": found.checkpoint_count, "waiting_jobs": found.waiting, "latest_checkpoint": found.latest,
            "last_events": found.last,
        }  # fmt: skip
        surface.answer(data, lambda: task_view.draw(found, surface.now))
        surface.hint(_what_now(found.task, found.idle, found.waiting))


def _what_now(task: TaskRun, idle: timedelta, waiting: int) -> str:
    if task.status == "running" and idle > SILENT:
        return f"engram: it has been idle for long; `engram task resume {task.id}` shows how to continue"
    return "engram: its facts are not extracted yet; `engram worker --once` does that" if waiting else ""


def resume(
    surface: Surface, task_id: Id, tokens: Tokens = 4000, recent: Recent = 40, no_graph: NoGraph = False
) -> None:
    """Continue a task after a pause, a failure or a crash. Prints the context to continue with."""
    check_least("--recent", recent, 0)
    with surface.memory() as mem:
        before = mem.get_task(task_id)
        idle = mem.tasks.idle_since(before)
        task = mem.resume_task(before.id)
        built = mem.build_context(task.id, max_tokens=tokens, recent_event_limit=recent, include_graph=not no_graph)

        def draw() -> None:
            display.lines([(task.id, "bold cyan"), "  ", (task.status, style(task.status)), f"  {task.goal}"], [""])
            display.block(built.text)

        data = {"task": task, "was": before.status, "idle_seconds": idle.total_seconds(), "context": built}
        surface.answer(data, draw)
        surface.hint(f"engram: it was {before.status} and idle for {_spell(idle)}")


def _spell(idle: timedelta) -> str:
    return str(timedelta(seconds=max(0, round(idle.total_seconds()))))


def pause(surface: Surface, task_id: Id, reason: Why = "") -> None:
    """Pause a task. `task resume` continues it."""
    _moved(surface, "paused", *named(task_id, reason))


def complete(surface: Surface, task_id: Id, outcome: Outcome = "") -> None:
    """Mark a task as completed. Its ledger is closed for good."""
    _moved(surface, "completed", *named(task_id, outcome))


def fail(surface: Surface, task_id: Id, reason: Why = "") -> None:
    """Mark a task as failed. It can be resumed."""
    _moved(surface, "failed", *named(task_id, reason))


def cancel(surface: Surface, task_id: Id, reason: Why = "") -> None:
    """Cancel a task. It can be resumed."""
    _moved(surface, "cancelled", *named(task_id, reason))


def delete(surface: Surface, task_id: Id) -> None:
    """Remove a task from the lists for good. Its ledger stays; `ledger redact` destroys what an event said."""
    _moved(surface, "deleted", task_id)


def _moved(surface: Surface, state: str, task_id: str, said: str = "") -> None:
    said = text_or_stdin(said)
    with surface.memory() as mem:
        task = mem.tasks.move(task_id, state, said)
        words = task.outcome or task.goal
        surface.answer(
            task,
            lambda: display.lines([(task.status, style(task.status)), "  ", (task.id, "cyan"), f"  {line(words)}"]),
        )


task = Group(
    "Manage tasks: work that outlives a conversation. A task has a goal, a ledger and checkpoints, and can be resumed.",
    {
        "start": start, "list": list_, "show": show, "event": event, "turn": turn, "checkpoint": checkpoint,
        "context": context, "resume": resume, "pause": pause, "complete": complete, "fail": fail, "cancel": cancel,
        "delete": delete, "search": search,
    },
)  # fmt: skip
