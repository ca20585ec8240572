"""distrust: take a poisoned source out of the store."""

from typing import Annotated, Any

from engram.cli import display
from engram.cli.display import line
from engram.cli.parser import Argument, Option
from engram.cli.surface import Surface
from engram.cli.verbs.queue import report_bulk
from engram.model.errors import InvalidInput
from engram.text.display import counted

Source = Annotated[
    str,
    Argument(
        "[SOURCE]",
        "A source, with everything below it: harness:codex, import:pack.json, session:ID. Default: list them.",
    ),
]
TakenSince = Annotated[
    str | None, Option("--since", metavar="TIME", help="Take out only what was stored from this time on.")
]
Rehearse = Annotated[bool, Option("--dry-run", help="Only report what would be taken out.")]
Restore = Annotated[bool, Option("--undo", help="Trust it again, and put back what was taken out.")]


def distrust(
    surface: Surface, source: Source = "", since: TakenSince = None, dry_run: Rehearse = False, undo: Restore = False
) -> None:
    """Take everything that a source brought back out, and refuse what it proposes from now on.

    Its candidates are rejected and its memories retired, promoted ones included; what they had replaced is current again. What a
    person wrote or reworded stays. It is one decision: --undo takes it back.
    """
    if not source and (since or dry_run or undo):
        raise InvalidInput("name a source, such as harness:codex, import:pack.json or session:ID")
    with surface.memory() as mem:
        if not source:
            _list(surface, mem)
        elif undo:
            _restore(surface, mem, source, dry_run or since is not None)
        else:
            _take_out(surface, mem, source, since, dry_run)


def _take_out(surface: Surface, mem: Any, source: str, since: str | None, dry_run: bool) -> None:
    from engram.cli.records import bulk_data
    from engram.cli.verbs.queue import draw_bulk
    from engram.model.fields import aware

    decision = mem.review.distrust(source, since=aware(since, mem.time_zone), dry_run=dry_run, actor=surface.actor)
    surface.answer(bulk_data(decision, surface.now), lambda: draw_bulk(decision))
    if dry_run:
        surface.hint(
            f"engram: {counted(len(decision.done), 'memory', 'memories')} would be taken out; nothing was changed"
        )
    else:
        surface.hint(
            f"engram: {line(source)} may propose nothing from now on; `engram distrust --undo {line(source)}` undoes it"
        )


def _restore(surface: Surface, mem: Any, source: str, limited: bool) -> None:
    if limited:
        raise InvalidInput("--undo takes the source alone: it puts back all that was taken out")
    decision = mem.review.restore_trust(source, actor=surface.actor)
    report_bulk(surface, decision)


def _list(surface: Surface, mem: Any) -> None:
    from engram.review.distrust import distrusted

    found = distrusted(mem.store)
    rows: list[list[display.Cell]] = [
        [(line(source), "red"), entry["at"][:16], f"by {line(entry['actor'])}", ", ".join(entry["decisions"])]
        for source, entry in sorted(found.items())
    ]
    surface.answer(found, lambda: display.table(["source", "since", "who", "decisions"], rows))
    if not found:
        surface.hint("engram: no source is distrusted")
