"""review: what awaits a person's decision."""

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

from engram.cli import display, views
from engram.cli.display import Column, ago, line, shown
from engram.cli.parser import Argument, Option
from engram.cli.records import memory_data
from engram.cli.surface import Surface, reason_for_person, require_person, text_or_stdin
from engram.cli.verbs.options import Limit
from engram.model.errors import EngramError, InvalidInput
from engram.model.memory import Memory

if TYPE_CHECKING:
    from engram.client import Engram
    from engram.review.queue import ReviewItem

Ref = Annotated[str, Argument("[ID]", "The memory to decide about. Default: list what awaits review.")]
Keep = Annotated[
    str, Option("--keep", metavar="WHICH", help="Settle a contradiction or an update: new, old, both or merge.")
]
Statement = Annotated[str, Option("--statement", metavar="TEXT", help="With --keep merge: the merged statement.")]
NewSituation = Annotated[str, Option("--new-when", metavar="TEXT", help="With --keep both: when the new one applies.")]
OldSituation = Annotated[str, Option("--old-when", metavar="TEXT", help="With --keep both: when the old one applies.")]
Approve = Annotated[
    bool, Option("--approve", help="Activate a candidate, let an update replace the older one, or forget as requested.")
]
Reject = Annotated[bool, Option("--reject", help="Reject a candidate, an update or a request to forget.")]
Kind = Annotated[
    str,
    Option(
        "--kind",
        metavar="KIND",
        help="With --approve or --reject, where a memory waits as two things: update or forget.",
    ),
]
Retire = Annotated[bool, Option("--retire", help="Retire a faded memory.")]
Reinforce = Annotated[bool, Option("--reinforce", help="Keep and reinforce a faded memory.")]
ListOnly = Annotated[bool, Option("--list", help="Only list, also on a terminal.")]

_CHOICES = {
    "contradiction": {"n": "new", "o": "old", "b": "both", "m": "merge"},
    "update": {"n": "new", "o": "old", "b": "both", "m": "merge"},
    "forget": {"a": "approve", "r": "reject"},
    "candidate": {"a": "approve", "r": "reject"},
    "retirement": {"t": "retire", "k": "reinforce"},
}
_WORDS = {
    "new": "new",
    "old": "old",
    "both": "both, each in its situation",
    "merge": "merge",
    "approve": "activate it",
    "reject": "reject it",
    "retire": "retire it",
    "reinforce": "keep and reinforce it",
}
_FORGET_WORDS = {"approve": "forget it", "reject": "keep it"}


def review(
    surface: Surface,
    ref: Ref = "",
    keep: Keep = "",
    statement: Statement = "",
    new_when: NewSituation = "",
    old_when: OldSituation = "",
    approve: Approve = False,
    reject: Reject = False,
    kind: Kind = "",
    retire: Retire = False,
    reinforce: Reinforce = False,
    list_only: ListOnly = False,
    limit: Limit = 50,
) -> None:
    """Decide what awaits a person.

    Contradictions, memories that may replace an older one, requests to forget by an agent, candidates, and memories that have
    faded. Without an id it lists them; on a terminal it goes through them one by one.
    """
    chosen = [name for name, on in (("keep", keep), ("approve", approve), ("reject", reject), ("retire", retire),
                                    ("reinforce", reinforce)) if on]  # fmt: skip
    if len(chosen) > 1:
        raise InvalidInput(f"--{chosen[0]} and --{chosen[1]} are two decisions; give only one")
    if chosen and not ref:
        raise InvalidInput(f"--{chosen[0]} needs the id of a memory; `engram review` lists them")
    if kind and chosen not in (["approve"], ["reject"]):
        raise InvalidInput("--kind belongs to --approve or --reject")
    with surface.memory() as mem:
        if chosen:
            situations = (new_when, old_when)
            memory = _decide(mem, ref, chosen[0], keep, text_or_stdin(statement), situations, surface.actor, kind)
            _decided(surface, memory)
            return
        waiting = mem.review.queue(limit, about=mem.get(ref).id if ref else "")
        if surface.person and surface.drawn and not list_only and waiting:
            _walk(surface, mem, waiting)
        else:
            _list(surface, waiting)


def _decide(
    mem: "Engram",
    ref: str,
    choice: str,
    keep: str,
    statement: str,
    situations: tuple[str, str],
    actor: str,
    kind: str = "",
) -> Memory:
    """Carry out one decision; where only a person may decide, ask for a code first."""
    memory = mem.get(ref)
    if choice == "approve" or (choice == "keep" and keep != "old"):
        merged = memory.but(statement=statement or memory.statement)
        require_person(memory, reason_for_person(memory) or reason_for_person(merged))
    if choice == "keep":
        return mem.review.resolve(memory.id, keep, statement=statement, situations=situations, actor=actor)
    if choice in ("approve", "reject"):
        decide = mem.review.approve if choice == "approve" else mem.review.reject
        return decide(memory.id, kind=kind, actor=actor)
    return (mem.review.retire if choice == "retire" else mem.review.reinforce)(memory.id, actor=actor)


def _decided(surface: Surface, memory: Memory) -> None:
    now = surface.now
    surface.answer(memory_data(memory, now), lambda: views.listing([memory], now))
    surface.hint(f"engram: `engram undo {memory.id}` undoes it")


def _item_data(item: "ReviewItem", now: datetime) -> dict[str, Any]:
    return {
        "kind": item.kind,
        "reason": item.reason,
        "actions": list(item.actions),
        "memory": memory_data(item.memory, now),
        "other": memory_data(item.other, now) if item.other else None,
    }


def _list(surface: Surface, waiting: "list[ReviewItem]") -> None:
    rows: list[list[display.Cell]] = [
        [
            (item.memory.id, "cyan"),
            item.kind,
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


def _walk(surface: Surface, mem: "Engram", waiting: "list[ReviewItem]") -> None:
    """Show each item and carry out what the person chooses."""
    decided = 0
    for number, item in enumerate(waiting, 1):
        display.rule(f"{number} of {len(waiting)} · {item.kind}")
        _draw_item(item, surface.now)
        answer = _ask(surface, item)
        if answer == "q":
            break
        if answer != "s":
            decided += _carry_out(surface, mem, item, _CHOICES[item.kind][answer])
    surface.say(f"engram: {decided} decided, {len(waiting) - decided} still waiting")


def _draw_item(item: "ReviewItem", now: datetime) -> None:
    _draw_one("new" if item.other else "", item.memory, now)
    if item.other is not None:
        _draw_one("old", item.other, now)
    display.lines([(f"  {item.reason}", "bright_black")], [""])


def _draw_one(label: str, memory: Memory, now: datetime) -> None:
    display.lines([(f"  {label:<4}" if label else "  ", "bold magenta"), (shown(memory.statement), "bold")])
    where = (
        f"{memory.id} · {memory.type} · {memory.scope} · from {memory.source or 'unknown'} · {ago(memory.created, now)}"
    )
    display.lines([(f"  {'' if not label else '    '}{where}", "bright_black")])


def _ask(surface: Surface, item: "ReviewItem") -> str:
    choices = _CHOICES[item.kind]
    pieces: list[display.Cell] = ["  "]
    for letter, action in choices.items():
        pieces += [(letter, "bold cyan"), f" {_words(item)[action]}   "]
    display.lines([*pieces, ("s", "bold cyan"), " skip   ", ("q", "bold cyan"), " quit"])
    while True:
        answer = surface.ask("  > ")
        letter = "q" if answer is None else answer.lower()[:1] or "s"
        if letter in choices or letter in ("s", "q"):
            return letter


def _words(item: "ReviewItem") -> dict[str, str]:
    return _FORGET_WORDS if item.kind == "forget" else _WORDS


def _carry_out(surface: Surface, mem: "Engram", item: "ReviewItem", action: str) -> int:
    keep = action if item.kind in ("contradiction", "update") else ""
    statement, situations = "", ("", "")
    if keep == "merge":
        statement = surface.ask("  The merged statement: ") or ""
    if keep == "both":
        situations = (
            surface.ask("  When does the new one apply? ") or "",
            surface.ask("  When does the old one apply? ") or "",
        )
    try:
        choice = "keep" if keep else action
        kind = item.kind if action in ("approve", "reject") else ""
        memory = _decide(mem, item.memory.id, choice, keep, statement, situations, surface.actor, kind)
    except EngramError as error:
        surface.say(f"engram: {error}")
        return 0
    display.lines([("  ✓ ", "green"), f"{_words(item)[action]}: ", (memory.id, "cyan")], [""])
    return 1
