"""scope: which memories a directory gets, and the decisions of a person about that."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from engram.cli import display
from engram.cli.display import line
from engram.cli.surface import Surface
from engram.model.errors import InvalidInput, Refused
from engram.text.display import format_count

if TYPE_CHECKING:
    from engram.upkeep.scope_links import DirectoryScope


def scope(
    surface: Surface,
    directory: Path | None = None,
    link: str = "",
    separate: bool = False,
    unlink: bool = False,
    accept: bool = False,
    yes: bool = False,
) -> None:
    """Carry out `engram scope`."""
    from engram.upkeep import scope_links

    if sum((bool(link), separate, unlink, accept)) > 1:
        raise InvalidInput("--link, --separate, --unlink and --accept are separate decisions; give one of them")
    place = (directory or Path.cwd()).absolute()
    with surface.memory(directory=place) as mem:
        store = mem.store
        if link:
            _decide(surface, f"Use the memories of {line(link)} in {line(str(place))}?", yes)
            new, old = scope_links.link_scope(store, place, link)
            surface.hint(f"engram: {line(new)} uses {line(old)} from now on; `engram scope --unlink` takes that back")
        elif separate:
            _decide(surface, f"Keep older memories out of {line(str(place))}?", yes)
            _report(surface, "kept out", scope_links.separate_scope(store, place))
        elif unlink:
            _decide(surface, f"Take back what was decided about {line(str(place))}?", yes)
            _report(surface, "unlinked", scope_links.unlink_scope(store, place))
        elif accept:
            _decide(surface, f"Is {line(str(place))} your own clone?", yes)
            scope_links.accept_place(store, place)
        found = scope_links.directory_scope(store, place)
        surface.said |= set(found.notices())
        surface.answer(_data(found), _drawing(found))


def _decide(surface: Surface, question: str, yes: bool) -> None:
    if not surface.person:
        raise Refused(
            "Nothing was changed: only a person can decide which memories belong to a repository; do it at a terminal"
        )
    if not yes and not surface.confirm(question):
        raise Refused("Nothing was changed")


def _report(surface: Surface, what: str, scopes: list[str]) -> None:
    surface.hint(f"engram: {what}: {', '.join(map(line, scopes)) or 'nothing'}")


def _data(found: "DirectoryScope") -> dict[str, object]:
    return {"scope": found.scope, "earlier": dict(found.earlier), "used_in": list(found.used_in)}


def _drawing(found: "DirectoryScope") -> Callable[[], None]:
    rows = [("scope", line(found.scope) or "none: this directory is not in a repository")]
    rows += [
        ("may belong", f"{line(old)} ({format_count(number, 'memory', 'memories')})")
        for old, number in found.earlier.items()
    ]
    rows += [("used in", line(path)) for path in found.used_in]
    return lambda: display.fields([*rows, *(("to decide", line(notice)) for notice in found.notices())])
