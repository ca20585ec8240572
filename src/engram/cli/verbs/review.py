"""review: what awaits a person's decision."""

from datetime import datetime
from typing import TYPE_CHECKING, Any

from engram.cli import display, views
from engram.cli.decisions import confirm_reworded
from engram.cli.display import Column, line
from engram.cli.interactive_review import ReviewLoop
from engram.cli.records import memory_data
from engram.cli.surface import FAILED, HUMAN, Surface, reason_for_person, require_person, text_or_stdin
from engram.model.errors import InvalidInput
from engram.model.memory import Memory

if TYPE_CHECKING:
    from engram.client import Engram
    from engram.review.queue import ReviewItem


def review(
    surface: Surface,
    ref: str = "",
    keep: str = "",
    statement: str = "",
    new_when: str = "",
    old_when: str = "",
    approve: bool = False,
    reject: bool = False,
    waits_as: str = "",
    retire: bool = False,
    reinforce: bool = False,
    list_only: bool = False,
    limit: int = 50,
) -> None:
    """Carry out `engram review`."""
    chosen = [name for name, on in (("keep", keep), ("approve", approve), ("reject", reject), ("retire", retire),
                                    ("reinforce", reinforce)) if on]  # fmt: skip
    if len(chosen) > 1:
        raise InvalidInput(f"--{chosen[0]} and --{chosen[1]} are two decisions; give only one")
    if chosen and not ref:
        raise InvalidInput(f"--{chosen[0]} needs the id of a memory; `engram review` lists them")
    if waits_as and chosen not in (["approve"], ["reject"]):
        raise InvalidInput("--as belongs to --approve or --reject")
    with surface.memory() as mem:
        if chosen:
            situations = (new_when, old_when)
            if (approve or keep not in ("", "old")) and not confirm_reworded(surface, mem, mem.get(ref), "approve"):
                surface.hint("engram: nothing was changed")
                raise SystemExit(FAILED)
            memory = _decide(mem, ref, chosen[0], keep, text_or_stdin(statement), situations, surface.actor, waits_as)
            _report_decision(surface, memory)
            return
        waiting = mem.review.queue(limit, about=mem.get(ref).id if ref else "")
        if surface.person and surface.can_draw and not list_only and waiting:
            ReviewLoop(surface, mem).run(waiting, _count_others(mem, waiting) if not ref else 0)
        else:
            _list(surface, waiting)


def _count_others(mem: "Engram", waiting: "list[ReviewItem]") -> int:
    """How many candidates wait besides these."""
    from engram.store.protocol import Filters

    shown = sum(item.memory.status == "candidate" for item in waiting)
    return max(0, mem.store.count(Filters(statuses=("candidate",))) - shown)


def _decide(
    mem: "Engram",
    ref: str,
    choice: str,
    keep: str,
    statement: str,
    situations: tuple[str, str],
    actor: str,
    waits_as: str = "",
) -> Memory:
    """Carry out one decision; where only a person may decide, ask for a code first."""
    memory = mem.get(ref)
    if choice == "approve" or (choice == "keep" and keep != "old"):
        merged = memory.replace(statement=statement or memory.statement)
        if require_person(merged, reason_for_person(memory) or reason_for_person(merged)):
            actor = HUMAN
    if choice == "keep":
        return mem.review.resolve(
            memory.id, keep, statement=statement, situations=situations, actor=actor, shown=[memory]
        )
    if choice in ("approve", "reject"):
        decide = mem.review.approve if choice == "approve" else mem.review.reject
        return decide(memory.id, waits_as=waits_as, actor=actor, shown=[memory])
    return (mem.review.retire if choice == "retire" else mem.review.reinforce)(memory.id, actor=actor)


def _report_decision(surface: Surface, memory: Memory) -> None:
    now = surface.now
    surface.answer(memory_data(memory, now), lambda: views.listing([memory], now))
    surface.hint(f"engram: `engram undo {memory.id}` undoes it")


def _item_data(item: "ReviewItem", now: datetime) -> dict[str, Any]:
    return {
        "waits_as": item.waits_as,
        "reason": item.reason,
        "actions": list(item.actions),
        "memory": memory_data(item.memory, now),
        "other": memory_data(item.other, now) if item.other else None,
    }


def _list(surface: Surface, waiting: "list[ReviewItem]") -> None:
    rows: list[list[display.Cell]] = [
        [
            (item.memory.id, "cyan"),
            item.waits_as,
            "|".join(item.actions),
            f"{line(item.memory.statement)} — {line(item.reason)}",
        ]
        for item in waiting
    ]
    columns: list[Column | str] = ["id", "what", Column("choices", "bright_black"), "memory"]
    now = surface.now
    surface.answer([_item_data(item, now) for item in waiting], lambda: display.table(columns, rows))
    surface.hint(
        "engram: `engram review ID --keep new|old|both|merge`, `--approve`, `--reject`, `--retire` or `--reinforce` decides"
        if waiting
        else "engram: nothing awaits review"
    )
