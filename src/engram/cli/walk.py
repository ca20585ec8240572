"""Going through the review queue at a terminal, one item at a time."""

from typing import TYPE_CHECKING

import typer

from engram.cli import drawing
from engram.cli.plain_text import ago, shown
from engram.model.errors import EngramError

if TYPE_CHECKING:
    from datetime import datetime

    from engram.cli.surface import Surface
    from engram.client import Engram
    from engram.model.memory import Memory
    from engram.review.queue import ReviewItem

_CHOICES = {
    "contradiction": {"n": "new", "o": "old", "b": "both", "m": "merge"},
    "candidate": {"a": "approve", "r": "reject"},
    "retirement": {"t": "retire", "k": "reinforce"},
}
_WORDS = {
    "new": "new",
    "old": "old",
    "both": "both, each in its situation",
    "merge": "merge",
    "approve": "put it in force",
    "reject": "turn it down",
    "retire": "let it go",
    "reinforce": "keep it, stronger",
}


def walk(surface: "Surface", mem: "Engram", waiting: "list[ReviewItem]") -> None:
    """Show each item and carry out what the person chooses."""
    decided = 0
    for number, item in enumerate(waiting, 1):
        drawing.rule(f"{number} of {len(waiting)} · {item.kind}")
        _draw(item, mem.upkeep.clock())
        answer = _ask(item)
        if answer == "q":
            break
        if answer != "s":
            decided += _carry_out(surface, mem, item, _CHOICES[item.kind][answer])
    surface.say(f"engram: {decided} decided, {len(waiting) - decided} still wait")


def _draw(item: "ReviewItem", now: "datetime") -> None:
    _draw_one("new" if item.other else "", item.memory, now)
    if item.other is not None:
        _draw_one("old", item.other, now)
    drawing.lines([(f"  {item.reason}", "bright_black")], [""])


def _draw_one(label: str, memory: "Memory", now: "datetime") -> None:
    drawing.lines([(f"  {label:<4}" if label else "  ", "bold magenta"), (shown(memory.statement), "bold")])
    where = (
        f"{memory.id} · {memory.type} · {memory.scope} · from {memory.source or 'unknown'} · {ago(memory.created, now)}"
    )
    drawing.lines([(f"  {'' if not label else '    '}{where}", "bright_black")])


def _ask(item: "ReviewItem") -> str:
    choices = _CHOICES[item.kind]
    pieces: list[drawing.Cell] = ["  "]
    for letter, action in choices.items():
        pieces += [(letter, "bold cyan"), f" {_WORDS[action]}   "]
    drawing.lines([*pieces, ("s", "bold cyan"), " skip   ", ("q", "bold cyan"), " quit"])
    while True:
        answer = typer.prompt("  >", prompt_suffix=" ", default="s", show_default=False, err=True).strip().lower()[:1]
        if answer in choices or answer in ("s", "q"):
            return str(answer)


def _carry_out(surface: "Surface", mem: "Engram", item: "ReviewItem", action: str) -> int:
    from engram.cli.verbs.review import decide

    keep = action if item.kind == "contradiction" else ""
    statement, situations = "", ("", "")
    if keep == "merge":
        statement = typer.prompt("  The merged statement", err=True)
    if keep == "both":
        situations = (
            typer.prompt("  When does the new one hold?", default="", show_default=False, err=True),
            typer.prompt("  When does the old one hold?", default="", show_default=False, err=True),
        )
    try:
        choice = "keep" if keep else action
        memory = decide(mem, item.memory.id, choice, keep, statement, situations, surface.actor)
    except EngramError as error:
        surface.say(f"engram: {error}")
        return 0
    drawing.lines([("  ✓ ", "green"), f"{_WORDS[action]}: ", (memory.id, "cyan")], [""])
    return 1
