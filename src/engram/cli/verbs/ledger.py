"""ledger verify, show, redact: what was said and done, and the proof that it is unchanged."""

from collections.abc import Sequence
from typing import Any

from engram.cli import display
from engram.cli.display import moment
from engram.cli.records import plain
from engram.cli.surface import FAILED, Surface
from engram.cli.verbs.change import purge_after_asking
from engram.cli.verbs.options import check_least
from engram.model.errors import InvalidInput, NotFound
from engram.model.event import Event
from engram.store.documents import is_redacted
from engram.text.display import format_count


def verify(surface: Surface) -> None:
    """Carry out `engram ledger verify`."""
    with surface.memory() as mem:
        problems = mem.store.verify_ledgers()
        number = int(mem.store.facts()["index"]["documents"].get("event", 0))
        gone = sum(is_redacted(event) for name in mem.store.ledgers() for event in mem.store.events(name))

        def draw() -> None:
            if not problems:
                display.lines([("whole", "green"), f"  {format_count(number, 'event')}, {_state(gone)}"])
            for problem in problems:
                display.lines([("✗ ", "bold red"), problem])

        surface.answer({"whole": not problems, "events": number, "redacted": gone, "problems": problems}, draw)
    if problems:
        surface.hint(f"engram: {format_count(len(problems), 'problem')}; a backup may contain the original")
        raise SystemExit(FAILED)


def _state(redacted: int) -> str:
    return f"{redacted} redacted, the others unchanged" if redacted else "all unchanged"


def show(surface: Surface, name: str, last: int | None = None, after: int = 0, scope: list[str] | None = None) -> None:
    """Carry out `engram ledger show`."""
    from engram.model.event import Session
    from engram.model.task import TaskRun
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
        surface.answer([{**plain(event), "redacted": is_redacted(event)} for event in events], lambda: _draw(events))
        if not events:
            surface.hint("engram: no events here")


def _draw(events: Sequence[Event]) -> None:
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


def redact(surface: Surface, event: str, yes: bool = False) -> None:
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
