"""session, task and ledger: pieces of work, their events, and the proof that these are unchanged."""

import os
from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from engram.cli import display, views
from engram.cli.display import Column, ago, line, moment
from engram.cli.records import hit_data, injection_data, plain
from engram.cli.surface import FAILED, Surface, text_or_stdin
from engram.cli.verbs.change import purge_after_asking
from engram.cli.verbs.options import EventOptions, check_least, pairs
from engram.cli.views import MAX_TASK_SILENCE, checkpoint_fields, task_style
from engram.model.errors import InvalidInput, NotFound, UnreadableData
from engram.model.records import Event, Session, TaskRun
from engram.readers.data import parse_json
from engram.recall.cutoff import INJECT_FLOOR
from engram.store.documents import is_redacted
from engram.text.display import format_count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engram.client import Engram
    from engram.model.records import Event
    from engram.rules.scopes import OwnerScopes


def start_session(surface: Surface, task: str = "", **asked: Any) -> None:
    """Start a session, and print what memory knows about the task."""
    with surface.memory() as mem:
        begun = mem.session(text_or_stdin(task), **asked)
        surface.warn(begun.injection.warnings)

        def draw() -> None:
            display.lines([(begun.id, "bold cyan")])
            if begun.injection.text:
                display.lines([""])
                views.injection(begun.injection)

        surface.answer({"id": begun.id, "injection": injection_data(begun.injection, surface.now)}, draw)
        surface.hint(f"engram: `engram session end {begun.id}` ends it")


def observe_session(surface: Surface, session_id: str, scope: str = "", **given: Any) -> None:
    """Carry out `engram session observe`."""
    said = EventOptions(**given)
    items = events_to_write(said)
    with surface.memory() as mem:
        events = mem.observe_batch(session_id, items, scope=scope or None)
        rows: list[list[display.Cell]] = [
            [(event.id, "cyan"), f"  {event.role}: {line(event.content, 80)}"] for event in events
        ]
        surface.answer(events, lambda: display.lines(*rows))
        surface.warn(redaction_notes(events))


def redaction_notes(events: "Sequence[Event]") -> list[str]:
    """A note for each event in which secrets were redacted."""
    return [f"{event.id}: secrets redacted: {event.redactions}" for event in events if event.redactions]


def events_to_write(said: EventOptions) -> list[dict[str, Any]]:
    """The events a command line describes: one of its own, or a batch on stdin."""
    if said.batch == bool(said.role):
        raise InvalidInput("Give a role and a text, or --batch with events on stdin")
    if said.batch:
        return _read_events_on_stdin()
    event = {"role": said.role, "content": text_or_stdin(said.content), "event_type": said.event_type}
    return [event | ({"key": said.key} if said.key else {}) | ({"at": said.at} if said.at else {})]


def _read_events_on_stdin() -> list[dict[str, Any]]:
    events = []
    for number, row in enumerate(text_or_stdin("-").splitlines(), 1):
        if not row.strip():
            continue
        try:
            event = parse_json(row, characters="any")
        except UnreadableData as error:
            raise InvalidInput(f"stdin line {number} is not JSON: {error}; nothing was written") from None
        if not isinstance(event, dict):
            raise InvalidInput(f"stdin line {number} is not an object with role and content; nothing was written")
        events.append(event)
    return events


def end_session(surface: Surface, session_id: str, *, summary: str = "", scope: list[str] | None = None) -> None:
    """End a session."""
    with surface.memory() as mem:
        seen = mem.scopes_for(scope=scope or None)
        _create_session_record(mem, session_id, seen)
        ended = mem.sessions.end(session_id, text_or_stdin(summary), scopes=seen)
        surface.answer(ended, lambda: display.lines([("ended", "green"), "  ", (ended.id, "cyan")]))
        if why := _withheld_reason(mem, ended):
            surface.say(f"engram: the summary is kept, but no other session is told of it: it {why}")


def _withheld_reason(mem: "Engram", session: Session) -> str:
    from engram.sessions.context import reason_to_withhold

    return line(reason_to_withhold(mem.store, session))


def _create_session_record(mem: "Engram", session_id: str, scopes: "OwnerScopes | None") -> None:
    """Create the record of a session that only has a ledger; it started with its first event."""
    from engram.store.ledger import ledger_scope
    from engram.store.references import check_ledger

    events = mem.store.events(session_id) if mem.store.load_record(Session, session_id) is None else []
    if events:
        check_ledger(mem.store, session_id, scopes, to_change=True)
        owner = ledger_scope(mem.store, session_id)
        mem.store.save_record(Session(session_id, "", (owner,) if owner else (), min(event.at for event in events)))


def summarise_session(
    surface: Surface, session_id: str, style: str = "", tokens: int = 400, scope: list[str] | None = None
) -> None:
    """Carry out `engram session summarise`."""
    with surface.memory() as mem:
        seen = mem.scopes_for(scope=scope or None)
        _create_session_record(mem, session_id, seen)
        made = mem.sessions.summarise(session_id, style=style, max_tokens=tokens, scopes=seen)
        surface.answer(made, lambda: display.block(made.summary))
        if not made.summary:
            surface.hint("engram: nothing was said that a summary could contain")


def list_sessions(surface: Surface, limit: int = 20, scope: list[str] | None = None) -> None:
    """Carry out `engram session list`."""
    check_least("--limit", limit, 0)
    with surface.memory() as mem:
        found, now = (
            mem.store.list_records(Session, limit=limit, scopes=mem.scopes_for(scope=scope or None)),
            surface.now,
        )
        rows: list[list[display.Cell]] = [
            [
                (one.id, "cyan"),
                ago(one.started, now),
                ("ended", "bright_black") if one.ended else ("open", "green"),
                line(one.summary or one.task)
                + (f"  (not injected: it {why})" if (why := _withheld_reason(mem, one)) else ""),
            ]
            for one in found
        ]
        columns = ["session", "started", "state", "task or summary"]
        surface.answer(found, lambda: display.table(columns, rows))
        if not found:
            surface.hint('engram: no sessions yet; `engram session start "…"` starts one')


def show_session(surface: Surface, session_id: str, scope: list[str] | None = None) -> None:
    """Carry out `engram session show`."""
    with surface.memory() as mem:
        found = mem.store.load_record(Session, session_id)
        events = mem.sessions.events(session_id, scopes=mem.scopes_for(scope=scope or None))
        used = list(dict.fromkeys(i for use in mem.store.uses(session=session_id) for i in use.ids))
        data = {"session": found, "used": used, "events": events}

        def draw() -> None:
            display.lines([(session_id, "bold cyan")])
            if found is not None:
                display.fields(_session_fields(mem, found))
            display.fields([("used", ", ".join(used))])
            for event in events:
                display.lines(
                    [(f"{moment(event.at)}  ", "bright_black"), (f"{event.role}: ", "bold"), event.content],
                )

        surface.answer(data, draw)


def _session_fields(mem: "Engram", found: Session) -> list[tuple[str, Any]]:
    return [
        ("task", found.task),
        ("scopes", ", ".join(found.scopes)),
        ("started", moment(found.started)),
        ("ended", moment(found.ended)),
        ("summary", found.summary),
        ("not injected", f"the summary {why}" if (why := _withheld_reason(mem, found)) else ""),
    ]


TASK_VARIABLE = "ENGRAM_TASK"
_TURN = {"user": str, "assistant": str, "tool_calls": list, "artifacts": list, "key": str, "derive": bool}


def resolve_task(task_id: str, *said: str) -> tuple[str, ...]:
    """The task and the words after it. If $ENGRAM_TASK names the task, the words may take the place of its id."""
    own = os.environ.get(TASK_VARIABLE, "")
    if own and said and not said[-1] and not task_id.startswith("TASK-"):
        return (own, task_id, *said[:-1])
    return (task_id, *said)


def add_task_event(surface: Surface, task_id: str, no_derive: bool = False, **given: Any) -> None:
    """Carry out `engram task event`."""
    said = EventOptions(**given)
    if not said.batch:
        task_id, said.role, said.content = resolve_task(task_id, said.role, said.content)
    items = events_to_write(said)
    with surface.memory() as mem:
        _report_events(surface, mem.tasks.record_events(task_id, items, derive=not no_derive))


def add_task_turn(
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


def save_checkpoint(
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


def show_task_context(
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


def search_task(
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


def start_task(surface: Surface, goal: str, scope: str = "", meta: list[str] | None = None, session: str = "") -> None:
    """Carry out `engram task start`."""
    with surface.memory() as mem:
        begun = mem.start_task(text_or_stdin(goal), scope=scope, session=session, metadata=pairs(meta))
        surface.answer(begun, lambda: display.lines([(begun.id, "bold cyan")]))
        surface.hint(f"engram: `export ENGRAM_TASK={begun.id}` makes it the default of the other task verbs")


def list_tasks(
    surface: Surface, status: list[str] | None = None, limit: int = 20, scope: list[str] | None = None
) -> None:
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


def show_task(surface: Surface, task_id: str, events: int = 10, scope: list[str] | None = None) -> None:
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
        surface.hint(_task_next_step(found.task, found.idle, found.waiting))


def _task_next_step(task: TaskRun, idle: timedelta, waiting: int) -> str:
    if task.status == "running" and idle > MAX_TASK_SILENCE:
        return f"engram: it has been idle for long; `engram task resume {task.id}` shows how to continue"
    return "engram: its facts are not extracted yet; `engram worker --once` does that" if waiting else ""


def resume_task(surface: Surface, task_id: str, tokens: int = 4000, recent: int = 40, no_graph: bool = False) -> None:
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


def pause_task(surface: Surface, task_id: str, reason: str = "") -> None:
    """Carry out `engram task pause`."""
    _move_task(surface, "paused", *resolve_task(task_id, reason))


def complete_task(surface: Surface, task_id: str, outcome: str = "") -> None:
    """Carry out `engram task complete`."""
    _move_task(surface, "completed", *resolve_task(task_id, outcome))


def fail_task(surface: Surface, task_id: str, reason: str = "") -> None:
    """Carry out `engram task fail`."""
    _move_task(surface, "failed", *resolve_task(task_id, reason))


def cancel_task(surface: Surface, task_id: str, reason: str = "") -> None:
    """Carry out `engram task cancel`."""
    _move_task(surface, "cancelled", *resolve_task(task_id, reason))


def delete_task(surface: Surface, task_id: str) -> None:
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


def verify_ledgers(surface: Surface) -> None:
    """Carry out `engram ledger verify`."""
    with surface.memory() as mem:
        problems = mem.store.verify_ledgers()
        number = int(mem.store.facts()["index"]["documents"].get("event", 0))
        gone = sum(is_redacted(event) for name in mem.store.ledgers() for event in mem.store.events(name))

        def draw() -> None:
            if not problems:
                display.lines([("whole", "green"), f"  {format_count(number, 'event')}, {_redaction_state(gone)}"])
            for problem in problems:
                display.lines([("✗ ", "bold red"), problem])

        surface.answer({"whole": not problems, "events": number, "redacted": gone, "problems": problems}, draw)
    if problems:
        surface.hint(f"engram: {format_count(len(problems), 'problem')}; a backup may contain the original")
        raise SystemExit(FAILED)


def _redaction_state(redacted: int) -> str:
    return f"{redacted} redacted, the others unchanged" if redacted else "all unchanged"


def show_ledger(
    surface: Surface, name: str, last: int | None = None, after: int = 0, scope: list[str] | None = None
) -> None:
    """Carry out `engram ledger show`."""
    from engram.store.ledger import sees_ledger

    check_least("--last", last, 1)
    with surface.memory() as mem:
        events = mem.store.events(name, last=last, after=after)
        known = (
            events
            or mem.store.load_record(Session, name) is not None
            or mem.store.load_record(TaskRun, name) is not None
        )
        if not known or not sees_ledger(mem.store, name, mem.scopes_for(scope=scope or None)):
            raise NotFound(f"No ledger {name!r}; `engram session list` and `engram task list` show the existing ones")
        surface.answer(
            [{**plain(event), "redacted": is_redacted(event)} for event in events], lambda: _draw_events(events)
        )
        if not events:
            surface.hint("engram: no events here")


def _draw_events(events: Sequence[Event]) -> None:
    for event in events:
        kind = "" if event.event_type == "message" else f" ({event.event_type})"
        said = ("redacted", "red") if is_redacted(event) else event.content
        display.lines(
            [
                (f"#{event.seq} {event.digest[:12]} ", "bright_black"),
                (event.id, "cyan"),
                (f"  {moment(event.at)}  ", "bright_black"),
                (f"{event.role}{kind}: ", "bold"),
                said,
            ]
        )


def redact_event(surface: Surface, event: str, yes: bool = False) -> None:
    """Carry out `engram ledger redact`."""
    if not event.startswith("EVT-"):
        raise InvalidInput(f"{event!r} is not the id of an event (EVT-…); `engram forget ID --purge` destroys a memory")
    with surface.memory() as mem:
        purge_after_asking(surface, mem, event, yes)
        _check_chain(surface, mem, event)


def _check_chain(surface: Surface, mem: Any, event_id: str) -> None:
    from engram.store.ledger import chain_problems

    event = mem.store.event(event_id)
    problems = chain_problems(mem.store.events(event.session), event.session) if event is not None else []
    for problem in problems:
        surface.say(f"engram: {problem}")
    if problems:
        raise SystemExit(FAILED)
    if event is not None:
        surface.hint(f"engram: the chain of {event.session} still verifies")
