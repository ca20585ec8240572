"""session start, observe, summarise, end, list, show: a piece of work and its ledger."""

from typing import TYPE_CHECKING, Any

from engram.cli import display, views
from engram.cli.display import ago, line, moment
from engram.cli.records import injection_data
from engram.cli.surface import Surface, text_or_stdin
from engram.cli.verbs.options import EventOptions, check_least
from engram.model.errors import InvalidInput, UnreadableData
from engram.model.event import Session
from engram.readers.json_reader import parse_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engram.client import Engram
    from engram.model.event import Event
    from engram.rules.scopes import OwnerScopes


def start(surface: Surface, task: str = "", **asked: Any) -> None:
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


def observe(surface: Surface, session_id: str, scope: str = "", **given: Any) -> None:
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
        return _events_on_stdin()
    event = {"role": said.role, "content": text_or_stdin(said.content), "event_type": said.event_type}
    return [event | ({"key": said.key} if said.key else {}) | ({"at": said.at} if said.at else {})]


def _events_on_stdin() -> list[dict[str, Any]]:
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


def end(surface: Surface, session_id: str, *, summary: str = "", scope: list[str] | None = None) -> None:
    """End a session."""
    with surface.memory() as mem:
        seen = mem.scopes_for(scope=scope or None)
        _create_session_record(mem, session_id, seen)
        ended = mem.sessions.end(session_id, text_or_stdin(summary), scopes=seen)
        surface.answer(ended, lambda: display.lines([("ended", "green"), "  ", (ended.id, "cyan")]))
        if why := _withheld_reason(mem, ended):
            surface.say(f"engram: the summary is kept, but no other session is told of it: it {why}")


def _withheld_reason(mem: "Engram", session: Session) -> str:
    from engram.sessions.earlier import reason_to_withhold

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


def summarise(
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


def list_(surface: Surface, limit: int = 20, scope: list[str] | None = None) -> None:
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


def show(surface: Surface, session_id: str, scope: list[str] | None = None) -> None:
    """Carry out `engram session show`."""
    with surface.memory() as mem:
        found = mem.store.load_record(Session, session_id)
        events = mem.sessions.events(session_id, scopes=mem.scopes_for(scope=scope or None))
        used = list(dict.fromkeys(i for use in mem.store.uses(session=session_id) for i in use.ids))
        data = {"session": found, "used": used, "events": events}

        def draw() -> None:
            display.lines([(session_id, "bold cyan")])
            if found is not None:
                display.fields(_fields(mem, found))
            display.fields([("used", ", ".join(used))])
            for event in events:
                display.lines(
                    [(f"{moment(event.at)}  ", "bright_black"), (f"{event.role}: ", "bold"), event.content],
                )

        surface.answer(data, draw)


def _fields(mem: "Engram", found: Session) -> list[tuple[str, Any]]:
    return [
        ("task", found.task),
        ("scopes", ", ".join(found.scopes)),
        ("started", moment(found.started)),
        ("ended", moment(found.ended)),
        ("summary", found.summary),
        ("not injected", f"the summary {why}" if (why := _withheld_reason(mem, found)) else ""),
    ]
