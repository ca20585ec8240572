"""forget: retire a memory, or destroy it and prove that nothing is left."""

from typing import TYPE_CHECKING, Annotated, Any

from engram.cli.declared import Option
from engram.cli.surface import Surface
from engram.cli.verbs.options import Ref, Yes
from engram.model.errors import InvalidInput, NotFound

if TYPE_CHECKING:
    from engram.store.protocol import Purged

Purge = Annotated[bool, Option("--purge", help="Destroy it: every byte the store holds, with proof. Cannot be undone.")]
Reason = Annotated[str, Option("--reason", metavar="TEXT", help="Why, for the journal.")]


def forget(surface: Surface, ref: Ref, purge: Purge = False, yes: Yes = False, reason: Reason = "") -> None:
    """Retire a memory, or destroy it with --purge.

    A retired one is out of every answer, still readable, and `undo` brings it back. Purging removes every byte of it, proves
    that, and says what is out of reach.
    """
    with surface.memory() as mem:
        if purge:
            purge_after_asking(surface, mem, ref, yes)
        else:
            _retire(surface, mem, ref, reason)


def _retire(surface: Surface, mem: Any, ref: str, reason: str) -> None:
    from engram.cli import drawing
    from engram.cli.plain_text import line
    from engram.cli.records import memory_data

    memory = mem.forget(ref, actor=surface.actor, reason=reason)
    surface.answer(
        memory_data(memory, mem.upkeep.clock()),
        lambda: drawing.lines([("retired", "yellow"), "  ", (memory.id, "cyan"), f"  {line(memory.statement)}"]),
    )
    surface.hint(f"engram: `engram undo {memory.id}` brings it back; `engram forget {memory.id} --purge` destroys it")


def purge_after_asking(surface: Surface, mem: Any, ref: str, yes: bool) -> None:
    """Destroy a memory or an event once a person, or --yes, has confirmed it; exit 1 where any of it is left."""
    found, words = _named(mem, ref)
    if not yes:
        if not surface.person:
            raise InvalidInput(f"purging {found} cannot be undone; add --yes to do it")
        surface.say(f"{found}  {words}")
        if not surface.confirm("Destroy every trace of it? This cannot be undone."):
            surface.say("engram: nothing was destroyed")
            raise SystemExit(1)
    purged = mem.upkeep.purge([found], actor=surface.actor)
    surface.answer(
        {"purged": purged.ids, "remaining": purged.remaining, "out_of_reach": purged.out_of_reach},
        lambda: draw_proof(purged),
    )
    if purged.remaining:
        raise SystemExit(1)


def _named(mem: Any, ref: str) -> tuple[str, str]:
    from engram.cli.plain_text import line

    if ref.startswith("EVT-"):
        event = mem.store.event(ref)
        if event is None:
            raise NotFound(f"no event {ref!r}")
        return event.id, line(event.content, 100)
    memory = mem.get(ref)
    return memory.id, line(memory.statement, 100)


def draw_proof(purged: "Purged") -> None:
    """What was destroyed, the proof that it is, and what no program here can reach."""
    from engram.cli import drawing

    drawing.lines([("purged", "bold red"), f"  {', '.join(purged.ids)}"])
    if purged.remaining:
        drawing.lines([("not all is gone", "bold red")], *[[f"  {line}"] for line in purged.remaining])
    else:
        drawing.lines([("proof", "green"), "   everything the store keeps was searched: not a word of it is left"])
    drawing.lines([("out of reach", "yellow"), "  ", "; ".join(purged.out_of_reach)])
