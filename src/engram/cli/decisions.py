"""Decisions about many memories at the command line: the preview, the question, and the report."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from engram.cli import display
from engram.cli.display import line
from engram.cli.records import bulk_data
from engram.cli.surface import FAILED, Surface
from engram.model.errors import InvalidInput
from engram.model.memory import Memory

if TYPE_CHECKING:
    from engram.client import Engram
    from engram.review.bulk import BulkDecision

MAX_LISTED_MEMORIES = 20
"""Maximum memories that a preview or a report lists; JSON has all of them."""
MAX_NAMED_MEMORIES = 5
"""Maximum memories named for each reason."""
_OPS = {
    "approve": ("promoted", "green"),
    "autopromote": ("promoted", "green"),
    "enrich": ("given cues", "green"),
    "reject": ("rejected", "yellow"),
    "undo": ("undone", "yellow"),
    "distrust": ("taken out", "red"),
    "restore_trust": ("put back", "green"),
}


def preview(surface: Surface, heading: str, memories: Sequence[Memory]) -> None:
    """Show a person what a decision would change, before it is made."""
    surface.say(f"{heading}:")
    for memory in memories[:MAX_LISTED_MEMORIES]:
        surface.say(f"  {memory.id}  {line(memory.statement, 100)}  ({line(memory.source) or 'unknown'})")
    if len(memories) > MAX_LISTED_MEMORIES:
        surface.say(f"  … and {len(memories) - MAX_LISTED_MEMORIES:,} more")


def confirm_reworded(surface: Surface, mem: "Engram", memory: Memory, verb: str) -> bool:
    """Show a memory that anyone else has reworded and ask for confirmation; True if no question is needed."""
    from engram.cli.display import escape_hidden
    from engram.store.records import is_reworded

    if not surface.person or not is_reworded(mem.store.history(memory.id)):
        return True
    surface.say(f"{line(memory.id)} was reworded by an agent or a program, or its history is gone. It says:")
    for label, text in (("", memory.statement), ("situation: ", memory.situation), ("rationale: ", memory.rationale)):
        if text:
            surface.say(f"  {label}{escape_hidden(text)}")
    return surface.confirm(f"{verb.capitalize()} it?")


def ask_confirmation(surface: Surface, question: str, yes: bool) -> bool:
    """Whether a person, or --yes, has confirmed what was shown. Raises `InvalidInput` if there is neither."""
    if not yes and not surface.person:
        raise InvalidInput("Nothing was changed; read the list, then add --yes")
    return yes or surface.confirm(question)


def report_nothing(surface: Surface, op: str, why: str = "engram: nothing was changed") -> None:
    """Print that no decision was made."""
    from engram.review.bulk import BulkDecision

    surface.hint(why)
    surface.answer(bulk_data(BulkDecision("", op), surface.now), lambda: None)


def report_one(surface: Surface, op: str, memory: Memory) -> None:
    """Print a decision about one memory."""
    from engram.review.bulk import BulkDecision

    decision = BulkDecision("", op, (memory,))
    surface.answer(bulk_data(decision, surface.now), lambda: draw_bulk(decision))
    surface.hint(f"engram: `engram undo {memory.id}` undoes it")


def report_bulk(surface: Surface, decision: "BulkDecision") -> None:
    """Print a decision about many memories; exit 1 if some were left unchanged."""
    surface.answer(bulk_data(decision, surface.now), lambda: draw_bulk(decision))
    hint_undo(surface, decision)
    if decision.left:
        raise SystemExit(FAILED)


def hint_undo(surface: Surface, decision: "BulkDecision") -> None:
    """Print how to undo a decision about many memories."""
    if decision.op == "restore_trust":
        source = line(decision.source)
        surface.hint(f"engram: {source} is trusted again; `engram distrust {source}` takes it out once more")
    elif decision.done and decision.id:
        surface.hint(f"engram: `engram undo {decision.id}` undoes it as a whole")


def draw_bulk(decision: "BulkDecision") -> None:
    """Print the number of changed and unchanged memories, and the first of each."""
    if decision.source and not decision.done and not decision.left:
        return  # the text about the source is complete
    words, style = _OPS.get(decision.op, (decision.op, "green"))
    draw_some(words, style, decision.done)
    draw_left("still wait" if decision.op == "autopromote" else "left as they are", decision.left)


def draw_some(words: str, style: str, memories: Sequence[Memory]) -> None:
    """Print how many memories are, or would be, changed, and the first of them."""
    display.lines([(f"{words} {len(memories):,}", f"bold {style}")])
    for memory in memories[:MAX_LISTED_MEMORIES]:
        display.lines([(f"  {line(memory.id)}", "cyan"), f"  {memory.status}  {line(memory.statement, 160)}"])
    if len(memories) > MAX_LISTED_MEMORIES:
        display.lines([f"  … and {len(memories) - MAX_LISTED_MEMORIES:,} more"])


def draw_left(words: str, left: Mapping[str, str]) -> None:
    """Print the unchanged memories by reason, the most frequent first, with the first few of each."""
    if not left:
        return
    display.lines([(f"{words} {len(left):,}", "bright_black")])
    by_reason: dict[str, list[str]] = {}
    for ref, why in left.items():
        by_reason.setdefault(why, []).append(ref)
    reasons = sorted(by_reason.items(), key=lambda one: -len(one[1]))
    for why, refs in reasons[:MAX_LISTED_MEMORIES]:
        if len(refs) == 1:
            display.lines(
                [(f"  {line(refs[0])}", "cyan"), (f"  {line(why.removeprefix(f'{refs[0]} '), 300)}", "bright_black")]
            )
            continue
        more = ", …" if len(refs) > MAX_NAMED_MEMORIES else ""
        display.lines([f"  {len(refs):,} × ", (line(why, 300), "bright_black")])
        display.lines([(f"      {', '.join(map(line, refs[:MAX_NAMED_MEMORIES]))}{more}", "cyan")])
    if len(reasons) > MAX_LISTED_MEMORIES:
        rest = sum(len(refs) for _, refs in reasons[MAX_LISTED_MEMORIES:])
        display.lines([f"  … and {rest:,} more"])
