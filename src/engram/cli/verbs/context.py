"""gen-context: Engram's block in an agent's instruction file."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from engram.cli import display
from engram.cli.records import plain
from engram.cli.surface import FAILED, Surface
from engram.model.errors import InvalidInput
from engram.text.display import format_count

if TYPE_CHECKING:
    from engram.upkeep.context_files import ContextUpdate

_CONFIRM = "`engram verify ID` confirms one"
_HINTS = {"stale": "`engram verify ID` makes one fresh again", "evidence": _CONFIRM, "unconfirmed": _CONFIRM}


def gen_context(
    surface: Surface,
    files: list[Path] | None = None,
    limit: int = 30,
    tier: int = 1,
    budget: int = 2000,
    scope: list[str] | None = None,
    check: bool = False,
    remove: bool = False,
    dry_run: bool = False,
) -> None:
    """Carry out `engram gen-context`."""
    if check and remove:
        raise InvalidInput("--check says whether a block is up to date, --remove takes it out; give one of the two")
    from engram.upkeep.context_files import BlockOptions

    BlockOptions(None, tier, limit, budget).validate("--")
    with surface.memory() as mem:
        found = mem.gen_context(
            files, limit=limit, tier=tier, budget=budget, remove=remove, dry_run=check or dry_run, scope=scope or None
        )
    shown = [_data(one, diff=dry_run) for one in found]
    surface.answer({"files": shown, "written": not (check or dry_run)}, lambda: _draw(found, check, dry_run))
    for one in found:
        surface.hint(_left_out(one))
    if check and any(one.changed for one in found):
        raise SystemExit(FAILED)


def _data(update: "ContextUpdate", *, diff: bool) -> dict[str, Any]:
    fields: dict[str, Any] = plain(update)
    return fields if diff else {name: value for name, value in fields.items() if name != "diff"}


def _draw(found: "list[ContextUpdate]", check: bool, dry_run: bool) -> None:
    for one in found:
        if dry_run and one.diff:
            display.block(one.diff)
            continue
        state = ("out of date" if one.changed else "up to date") if check else one.change
        held = (
            f"  ({format_count(len(one.ids), 'memory', 'memories')}, {format_count(one.tokens, 'token')})"
            if one.tokens
            else ""
        )
        display.lines([(state, "yellow" if one.changed else "green"), f"  {one.file}{held}"])


def _left_out(update: "ContextUpdate") -> str:
    """What is not in the block, and what to do about it."""
    if not update.left_out:
        return ""
    parts = [f"{number:,} {why}" for why, number in sorted(update.left_out.items())]
    hints = list(dict.fromkeys(_HINTS[why] for why in sorted(update.left_out) if why in _HINTS))
    if any(why.startswith(("tier", "personal")) for why in update.left_out):
        hints.append("--tier 3 includes sensitive ones")
    return "; ".join([f"engram: left out: {', '.join(parts)}", *hints])
