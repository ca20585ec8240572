"""distrust: take a poisoned source out of the store."""

from functools import partial
from typing import TYPE_CHECKING

from engram.cli import display
from engram.cli.decisions import (
    MAX_NAMED_MEMORIES,
    ask_confirmation,
    draw_bulk,
    draw_left,
    draw_some,
    preview,
    report_bulk,
    report_nothing,
)
from engram.cli.display import line
from engram.cli.records import bulk_data
from engram.cli.surface import Surface
from engram.model.errors import InvalidInput
from engram.text.display import format_count

if TYPE_CHECKING:
    from engram.client import Engram
    from engram.review.bulk import BulkDecision


def distrust(
    surface: Surface,
    source: str = "",
    since: str | None = None,
    include_confirmed: bool = False,
    dry_run: bool = False,
    undo: bool = False,
    yes: bool = False,
) -> None:
    """Carry out `engram distrust`."""
    if not source and (since or include_confirmed or dry_run or undo):
        raise InvalidInput("name a source, such as harness:codex, import:pack.json or session:ID")
    with surface.memory() as mem:
        if not source:
            _list(surface, mem)
        elif undo:
            _restore(surface, mem, source, include_confirmed or dry_run or since is not None)
        else:
            _take_out(surface, mem, source.strip(), since, include_confirmed, dry_run, yes)


def _take_out(
    surface: Surface, mem: "Engram", source: str, since: str | None, include_confirmed: bool, dry_run: bool, yes: bool
) -> None:
    from engram.model.fields import aware
    from engram.review.distrust import CONFIRMED_REASON

    start = aware(since, mem.time_zone)
    distrusting = partial(
        mem.review.distrust, source, since=start, include_confirmed=include_confirmed, actor=surface.actor
    )
    plan = distrusting(dry_run=True)
    if not plan.done and not plan.left:
        _say_unknown(surface, mem, source, since)
    if dry_run:
        surface.answer(bulk_data(plan, surface.now), lambda: _draw_plan(plan))
        surface.hint("engram: nothing was changed")
        return
    if plan.done:
        preview(surface, f"take out {format_count(len(plan.done), 'memory', 'memories')}", plan.done)
    if plan.left:
        kept = [memory_id for memory_id, why in plan.left.items() if why == CONFIRMED_REASON]
        if kept:
            more = ", …" if len(kept) > MAX_NAMED_MEMORIES else ""
            surface.say(
                f"kept: {len(kept):,} that a person confirmed ({', '.join(kept[:MAX_NAMED_MEMORIES])}{more}); --include-confirmed takes those out as well"
            )
        if others := len(plan.left) - len(kept):
            surface.say(f"left as they are: {others:,}; --dry-run names them")
    if not ask_confirmation(surface, _question(plan), yes):
        report_nothing(surface, plan.op)
        return
    decision = distrusting()
    surface.answer(bulk_data(decision, surface.now), lambda: draw_bulk(decision))
    surface.hint(
        f"engram: {line(source)} may propose nothing from now on; `engram distrust --undo {line(source)}` undoes it"
    )


def _question(plan: "BulkDecision") -> str:
    if not plan.done:
        return f"Refuse what {line(plan.source)} proposes from now on all the same?"
    these = "it" if len(plan.done) == 1 else "them"
    return f"Take {these} out, and refuse what {line(plan.source)} proposes from now on?"


def _draw_plan(plan: "BulkDecision") -> None:
    draw_some("would be taken out", "red", plan.done)
    draw_left("would stay", plan.left)


def _say_unknown(surface: Surface, mem: "Engram", source: str, since: str | None) -> None:
    """Say that a source has nothing here, and which sources do: it may be misspelt."""
    from engram.review.distrust import known_sources

    limited = f" since {line(since)}" if since else ""
    surface.say(f"No memory comes from {line(source)}{limited}.")
    if known := known_sources(mem.store):
        named = ", ".join(f"{line(name)} ({number:,})" for name, number in known.items())
        surface.say(f"Known sources: {named}")


def _restore(surface: Surface, mem: "Engram", source: str, limited: bool) -> None:
    if limited:
        raise InvalidInput("--undo takes the source alone: it puts back all that was taken out")
    decision = mem.review.restore_trust(source, actor=surface.actor)
    report_bulk(surface, decision)


def _list(surface: Surface, mem: "Engram") -> None:
    from engram.review.distrust import distrusted_sources

    found = distrusted_sources(mem.store)
    rows: list[list[display.Cell]] = [
        [(line(source), "red"), entry["at"][:16], f"by {line(entry['actor'])}", ", ".join(entry["decisions"])]
        for source, entry in sorted(found.items())
    ]
    surface.answer(found, lambda: display.table(["source", "since", "who", "decisions"], rows))
    if not found:
        surface.hint("engram: no source is distrusted")
