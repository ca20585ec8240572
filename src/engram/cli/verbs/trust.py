"""trust: use a repository's own memories, after reading them."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engram.cli import display
from engram.cli.display import Cell, line
from engram.cli.surface import Surface
from engram.model.errors import Refused
from engram.model.memory import Memory

if TYPE_CHECKING:
    from engram.store.reports import TeamFile


def trust(surface: Surface, directory: Path | None = None, revoke: bool = False, yes: bool = False) -> None:
    """Carry out `engram trust`."""
    from engram.store import local
    from engram.store.scopes import settings_folder

    place = (directory or Path.cwd()).absolute()
    with surface.memory(directory=place) as mem:
        store = mem.store
        surface.said |= set(store.warnings)
        if revoke:
            local.distrust_files(store, place)
            surface.answer({"trusted": [], "revoked": True}, lambda: None)
            surface.hint("engram: it is no longer trusted")
            return
        waiting = local.waiting_files(store, place)
        folder = settings_folder(place)
        readable = [file for file in waiting if not file.error]
        surface.answer(
            {"waiting": [_file_data(file) for file in waiting], "trusted": yes and surface.person},
            lambda: _draw(waiting, folder),
        )
        if not readable:
            surface.hint("engram: everything readable here is already trusted")
        elif not surface.person:
            raise Refused(
                "Nothing was trusted: only a person can trust a repository's memories; run `engram trust` at a terminal"
            )
        elif yes or surface.confirm(f"Trust these {len(readable)} file(s)?"):
            local.trust_files(store, place, readable)
            surface.hint(f"engram: trusted {len(readable)} file(s); `engram trust --revoke` undoes it")
            _say_if_changed(surface, local.waiting_files(store, place))
        else:
            surface.hint("engram: nothing was trusted")


def _say_if_changed(surface: Surface, waiting: "list[TeamFile]") -> None:
    """Only what was listed is trusted: a pull may run while a person reads."""
    changed = sum(not file.error for file in waiting)
    if changed:
        surface.say(f"engram: {changed} file(s) changed while you read; they are not trusted. Run `engram trust` again")


def _file_data(file: "TeamFile") -> dict[str, Any]:
    from engram.store.records import image

    return {
        "path": str(file.path),
        "error": file.error,
        "settings": file.settings,
        "memories": [image(memory) for memory in file.memories],
    }


def _draw(waiting: "list[TeamFile]", folder: Path) -> None:
    """Everything the files say, whole: what is not read here may stand in a prompt afterwards."""
    for file in waiting:
        name = line(str(file.path.relative_to(folder.parent)))
        display.lines([(name, "bold"), *([(f"  cannot be read: {line(file.error)}", "red")] if file.error else [])])
        display.lines(*[[f"  {line(row)}"] for row in file.settings.splitlines()])
        for memory in file.memories:
            display.lines(*_memory_rows(memory))


def _memory_rows(memory: Memory) -> list[list[Cell]]:
    """A memory as rows: what it is, then every field of its record, on one line each, with nothing left out or hidden."""
    from engram.store.records import image

    fields = image(memory)
    pinned = "  pinned: part of every prompt in its scope" if memory.pinned else ""
    head = [line(str(fields.pop(key, getattr(memory, key)))) for key in ("id", "type", "scope", "status")]
    rows: list[list[Cell]] = [[(f"  {head[0]}", "cyan"), f"  {'  '.join(head[1:])}", (pinned, "yellow")]]
    for key, value in fields.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
        rows.append([(f"    {line(key)}: ", "bright_black"), line(text)])
    return rows
