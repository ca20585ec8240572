"""ledger verify, show, redact: what was said and done, and the proof that nobody changed it."""

from typing import TYPE_CHECKING, Annotated, Any

from engram.cli.parser import Argument, Group, Option
from engram.cli.surface import FAILED, Surface
from engram.cli.verbs.options import SeenFrom, Yes, check_least
from engram.model.errors import InvalidInput, NotFound

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engram.model.event import Event

Name = Annotated[str, Argument("NAME", "The session or task whose ledger it is.")]
EventId = Annotated[str, Argument("EVENT", "The event's id, EVT-…")]
Last = Annotated[int | None, Option("--last", metavar="N", help="Only the last so many.")]
After = Annotated[int, Option("--after", metavar="N", help="Only events with a higher number.")]


def verify(surface: Surface) -> None:
    """Check every ledger for events altered, reordered or dropped.

    Each event is chained to the one before it and the journal knows where every ledger ended. Exit 1 when one is not whole.
    """
    from engram.cli import display
    from engram.cli.display import count

    with surface.memory() as mem:
        problems = mem.store.verify_ledgers()
        number = int(mem.store.facts()["index"]["documents"].get("event", 0))
        gone = sum(is_redacted(event) for name in mem.store.ledgers() for event in mem.store.events(name))

        def draw() -> None:
            if not problems:
                display.lines([("whole", "green"), f"  {count(number, 'event')}, {_state(gone)}"])
            for problem in problems:
                display.lines([("✗ ", "bold red"), problem])

        surface.answer({"whole": not problems, "events": number, "redacted": gone, "problems": problems}, draw)
    if problems:
        surface.hint(f"engram: {count(len(problems), 'problem')}; a backup holds what was there before")
        raise SystemExit(FAILED)


def _state(redacted: int) -> str:
    return f"{redacted} redacted, the others as they were written" if redacted else "every one as it was written"


def show(surface: Surface, name: Name, last: Last = None, after: After = 0, scope: SeenFrom = None) -> None:
    """The events of a session or a task in order, each with its number and its link in the chain."""
    from engram.cli.records import plain
    from engram.store.owners import sees_ledger

    check_least("--last", last, 1)
    with surface.memory() as mem:
        events = mem.store.events(name, last=last, after=after)
        known = events or mem.store.session(name) is not None or mem.store.task(name) is not None
        if not known or not sees_ledger(mem.store, name, mem.scopes_for(scope=scope or None)):
            raise NotFound(f"no ledger {name!r}; `engram session list` and `engram task list` show what there is")
        surface.answer([{**plain(event), "redacted": is_redacted(event)} for event in events], lambda: _draw(events))
        if not events:
            surface.hint("engram: no events here")


def is_redacted(event: "Event") -> bool:
    """Whether what an event said was destroyed; its place in the chain is left."""
    return bool(event.body) and not event.salt


def _draw(events: "Sequence[Event]") -> None:
    from engram.cli import display
    from engram.cli.display import moment

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


def redact(surface: Surface, event: EventId, yes: Yes = False) -> None:
    """Destroy what an event said. Its place stays, so the chain still verifies.

    Its words, payload, metadata and key go, with proof, and the facts drawn from it alone. Other events and memories that say the
    same words stay: each is named with the command that destroys it too, and the exit code is 1. Cannot be undone: where
    nobody can be asked, --yes confirms, and without it nothing is destroyed and the exit code is 2.
    """
    from engram.cli.verbs.change import purge_after_asking

    if not event.startswith("EVT-"):
        raise InvalidInput(f"{event!r} is no event's id (EVT-…); `engram forget ID --purge` destroys a memory")
    with surface.memory() as mem:
        purge_after_asking(surface, mem, event, yes)
        _check_chain(surface, mem, event)


def _check_chain(surface: Surface, mem: Any, event_id: str) -> None:
    from engram.store.ledgers import problems_of

    event = mem.store.event(event_id)
    problems = problems_of(mem.store.events(event.session), event.session) if event is not None else []
    for problem in problems:
        surface.say(f"engram: {problem}")
    if problems:
        raise SystemExit(FAILED)
    if event is not None:
        surface.hint(f"engram: the chain of {event.session} still verifies")


ledger = Group(
    "What was said and done, chained so that no change goes unseen.", {"verify": verify, "show": show, "redact": redact}
)
