"""show, list, history: reading what is there."""

from typing import Annotated, Any

from engram.cli.declared import Option
from engram.cli.surface import Surface
from engram.cli.verbs.options import (
    AsOf,
    Domain,
    KnownAt,
    Limit,
    Meta,
    Ref,
    Scopes,
    SeenFrom,
    Since,
    Statuses,
    Tags,
    Types,
    Until,
    check_types,
    filters,
)
from engram.model.times import aware

Offset = Annotated[int, Option("--offset", metavar="N", help="Leave out the first N.")]
Critical = Annotated[bool, Option("--critical", help="Only what a policy put into a critical slot.")]


def show(surface: Surface, ref: Ref, scope: SeenFrom = None) -> None:
    """Everything about one memory, or one ledger event.

    What it says, its state and strength, where it came from, which file holds it.
    """
    from engram.cli import cards
    from engram.cli.records import memory_data, plain

    with surface.memory() as mem:
        seen = mem.scopes_for(scope=scope or None)
        event = mem.store.event(ref) if ref.startswith("EVT-") else None
        if event is not None and (seen is None or mem.store.owner_of(ref) in seen):
            surface.answer(plain(event), lambda: _show_event(event))
            return
        memory, now = mem.get(ref, scope=scope or None), mem.upkeep.clock()
        file = mem.store.file_of(memory.id)
        surface.answer({**memory_data(memory, now), "file": file}, lambda: cards.card(memory, now, file))


def _show_event(event: Any) -> None:
    from engram.cli import drawing
    from engram.cli.plain_text import moment

    drawing.lines([(event.id, "bold cyan")])
    drawing.fields(
        [
            ("session", event.session),
            ("role", event.role),
            ("kind", event.event_type),
            ("at", moment(event.at)),
            ("content", event.content),
            ("metadata", ", ".join(f"{key}={value}" for key, value in event.metadata.items())),
        ]
    )


def list_(
    surface: Surface,
    scope: Scopes = None,
    type_: Types = None,
    status: Statuses = None,
    tag: Tags = None,
    domain: Domain = None,
    since: Since = None,
    until: Until = None,
    as_of: AsOf = None,
    known_at: KnownAt = None,
    meta: Meta = None,
    critical: Critical = False,
    limit: Limit = 50,
    offset: Offset = 0,
) -> None:
    """Memories, newest first."""
    from engram.cli import cards
    from engram.cli.records import memory_data

    asked = filters(
        scope=scope, types=type_, status=status, tags=tag, domain=domain, since=since, until=until, as_of=as_of,
        known_at=known_at, meta=meta, critical=critical,
    )  # fmt: skip
    with surface.memory() as mem:
        check_types(mem, type_)
        found = mem.list(limit=limit, offset=offset, **asked)
        now = mem.upkeep.clock()
        at = aware(as_of) or now
        surface.answer(
            [memory_data(memory, at) for memory in found], lambda: cards.listing(found, now, at) if found else None
        )
        if not found and critical:
            surface.hint("engram: nothing critical here; the policy says which slots are: `engram config policy`")
        elif not found:
            surface.hint('engram: nothing here yet; `engram learn "…"` teaches it something')
        elif len(found) == limit:
            surface.hint(f"engram: the newest {limit}; --limit and --offset show others")


def history(surface: Surface, ref: Ref, scope: SeenFrom = None) -> None:
    """Every decision about a memory. Oldest first, with what each one changed."""
    from engram.cli import past

    with surface.memory() as mem:
        steps = past.steps(mem.history(ref, scope=scope or None))
        surface.answer([past.step_data(step) for step in steps], lambda: past.draw(steps))
        if not steps:
            surface.hint("engram: no decisions are journaled here; a team's memory has its history in git")
