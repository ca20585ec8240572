"""edit, merge, separate: change what memories say before, or after, they are approved."""

from engram.cli import display, views
from engram.cli.display import line
from engram.cli.records import memory_data
from engram.cli.surface import HUMAN, Surface, reason_for_person, require_person, text_or_stdin
from engram.model.errors import InvalidInput
from engram.model.memory import Memory


def edit(surface: Surface, ref: str, statement: str = "", reason: str = "") -> None:
    """Carry out `engram edit`."""
    with surface.memory() as mem:
        before = mem.get(ref)
        if statement:
            after = mem.review.edit(before.id, actor=surface.actor, reason=reason, statement=text_or_stdin(statement))
        elif surface.person and surface.can_draw:
            from engram.cli.editor import edit_in_editor

            after = mem.review.edit(before.id, actor=surface.actor, reason=reason, **edit_in_editor(before))
        else:
            raise InvalidInput("edit needs --statement TEXT, or a terminal for $EDITOR")
        surface.answer(memory_data(after, surface.now), lambda: _draw(before, after))
        hint = f"`engram promote {after.id}` makes it active; " if after.status == "candidate" else ""
        surface.hint(f"engram: {hint}`engram undo {after.id}` undoes it")


def _draw(before: Memory, after: Memory) -> None:
    display.lines([(after.id, "bold cyan"), f"  {line(after.statement)}"])
    changes = views.changed_fields(before, after)
    views.draw_changes(changes)
    if not changes:
        display.lines([("    unchanged", "bright_black")])


def merge(surface: Surface, refs: list[str], statement: str = "", reason: str = "") -> None:
    """Carry out `engram merge`."""
    text = text_or_stdin(statement)
    with surface.memory() as mem:
        memories = [mem.get(ref) for ref in refs]
        actor = surface.actor
        for memory in memories:
            why = reason_for_person(memory) or reason_for_person(memory.replace(statement=text or memory.statement))
            if require_person(memory.replace(statement=text or memory.statement), why):
                actor = HUMAN
                break
        after = mem.review.merge([memory.id for memory in memories], text, actor=actor, reason=reason, shown=memories)
        surface.answer(memory_data(after, surface.now), lambda: views.listing([after], surface.now))
        surface.hint(f"engram: `engram undo {after.id}` undoes it")


def separate(surface: Surface, ref: str, number: int = 1, reason: str = "") -> None:
    """Carry out `engram separate`."""
    with surface.memory() as mem:
        before = mem.get(ref)
        taken = mem.review.separate(before.id, number, actor=surface.actor, reason=reason, shown=[before])
        surface.answer(memory_data(taken, surface.now), lambda: views.listing([taken], surface.now))
        surface.hint(f"engram: it awaits review; `engram undo {taken.id}` puts it back")
