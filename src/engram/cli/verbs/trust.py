"""trust, distrust, scope: whose memories a directory uses: those of its repository, of a source, or of an earlier name."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engram.cli import display
from engram.cli.decisions import (
    MAX_NAMED_MEMORIES,
    ask_confirmation,
    draw_bulk,
    draw_left,
    draw_some,
    preview,
    report_bulk,
    report_nothing,
)
from engram.cli.display import Cell, line
from engram.cli.records import bulk_data
from engram.cli.surface import Surface
from engram.model.errors import InvalidInput, Refused
from engram.model.memory import Memory
from engram.text.display import format_count

if TYPE_CHECKING:
    from engram.client import Engram
    from engram.review.bulk import BulkDecision
    from engram.store.reports import TeamFile
    from engram.upkeep.scope_links import DirectoryScope


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
            lambda: _draw_files(waiting, folder),
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
    """Report files that changed while the person read them.

    They are not trusted, because only the listed contents are.
    """
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


def _draw_files(waiting: "list[TeamFile]", folder: Path) -> None:
    """Print the complete contents of the files, because any of it may later be part of a prompt."""
    for file in waiting:
        name = line(str(file.path.relative_to(folder.parent)))
        display.lines([(name, "bold"), *([(f"  cannot be read: {line(file.error)}", "red")] if file.error else [])])
        display.lines(*[[f"  {line(row)}"] for row in file.settings.splitlines()])
        for memory in file.memories:
            display.lines(*_memory_rows(memory))


def _memory_rows(memory: Memory) -> list[list[Cell]]:
    """A memory as rows: its kind, then every field of its record, on one line each, with nothing left out or hidden."""
    from engram.store.records import image

    fields = image(memory)
    pinned = "  pinned: part of every prompt in its scope" if memory.pinned else ""
    head = [line(str(fields.pop(key, getattr(memory, key)))) for key in ("id", "type", "scope", "status")]
    rows: list[list[Cell]] = [[(f"  {head[0]}", "cyan"), f"  {'  '.join(head[1:])}", (pinned, "yellow")]]
    for key, value in fields.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
        rows.append([(f"    {line(key)}: ", "bright_black"), line(text)])
    return rows


def distrust(
    surface: Surface,
    source: str = "",
    since: str | None = None,
    include_confirmed: bool = False,
    dry_run: bool = False,
    undo: bool = False,
    yes: bool = False,
) -> None:
    """Carry out `engram distrust`."""
    if not source and (since or include_confirmed or dry_run or undo):
        raise InvalidInput("name a source, such as harness:codex, import:pack.json or session:ID")
    with surface.memory() as mem:
        if not source:
            _list_distrusted(surface, mem)
        elif undo:
            _restore(surface, mem, source, include_confirmed or dry_run or since is not None)
        else:
            _take_out(surface, mem, source.strip(), since, include_confirmed, dry_run, yes)


def _take_out(
    surface: Surface, mem: "Engram", source: str, since: str | None, include_confirmed: bool, dry_run: bool, yes: bool
) -> None:
    from engram.model.memory import aware
    from engram.review.distrust import CONFIRMED_REASON

    start = aware(since, mem.time_zone)
    distrusting = partial(
        mem.review.distrust, source, since=start, include_confirmed=include_confirmed, actor=surface.actor
    )
    plan = distrusting(dry_run=True)
    if not plan.done and not plan.left:
        _say_unknown(surface, mem, source, since)
    if dry_run:
        surface.answer(bulk_data(plan, surface.now), lambda: _draw_distrust_plan(plan))
        surface.hint("engram: nothing was changed")
        return
    if plan.done:
        preview(surface, f"take out {format_count(len(plan.done), 'memory', 'memories')}", plan.done)
    if plan.left:
        kept = [memory_id for memory_id, why in plan.left.items() if why == CONFIRMED_REASON]
        if kept:
            more = ", …" if len(kept) > MAX_NAMED_MEMORIES else ""
            surface.say(
                f"kept: {len(kept):,} that a person confirmed ({', '.join(kept[:MAX_NAMED_MEMORIES])}{more}); --include-confirmed takes those out as well"
            )
        if others := len(plan.left) - len(kept):
            surface.say(f"left as they are: {others:,}; --dry-run names them")
    if not ask_confirmation(surface, _distrust_question(plan), yes):
        report_nothing(surface, plan.op)
        return
    decision = distrusting()
    surface.answer(bulk_data(decision, surface.now), lambda: draw_bulk(decision))
    surface.hint(
        f"engram: {line(source)} may propose nothing from now on; `engram distrust --undo {line(source)}` undoes it"
    )


def _distrust_question(plan: "BulkDecision") -> str:
    if not plan.done:
        return f"Refuse what {line(plan.source)} proposes from now on all the same?"
    these = "it" if len(plan.done) == 1 else "them"
    return f"Take {these} out, and refuse what {line(plan.source)} proposes from now on?"


def _draw_distrust_plan(plan: "BulkDecision") -> None:
    draw_some("would be taken out", "red", plan.done)
    draw_left("would stay", plan.left)


def _say_unknown(surface: Surface, mem: "Engram", source: str, since: str | None) -> None:
    """Report that a source has no memories here, and which sources do, because it may be misspelt."""
    from engram.review.distrust import known_sources

    limited = f" since {line(since)}" if since else ""
    surface.say(f"No memory comes from {line(source)}{limited}.")
    if known := known_sources(mem.store):
        named = ", ".join(f"{line(name)} ({number:,})" for name, number in known.items())
        surface.say(f"Known sources: {named}")


def _restore(surface: Surface, mem: "Engram", source: str, limited: bool) -> None:
    if limited:
        raise InvalidInput("--undo takes the source alone: it puts back all that was taken out")
    decision = mem.review.restore_trust(source, actor=surface.actor)
    report_bulk(surface, decision)


def _list_distrusted(surface: Surface, mem: "Engram") -> None:
    from engram.review.distrust import distrusted_sources

    found = distrusted_sources(mem.store)
    rows: list[list[display.Cell]] = [
        [(line(source), "red"), entry["at"][:16], f"by {line(entry['actor'])}", ", ".join(entry["decisions"])]
        for source, entry in sorted(found.items())
    ]
    surface.answer(found, lambda: display.table(["source", "since", "who", "decisions"], rows))
    if not found:
        surface.hint("engram: no source is distrusted")


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
            _require_decision(surface, f"Use the memories of {line(link)} in {line(str(place))}?", yes)
            new, old = scope_links.link_scope(store, place, link)
            surface.hint(f"engram: {line(new)} uses {line(old)} from now on; `engram scope --unlink` takes that back")
        elif separate:
            _require_decision(surface, f"Keep older memories out of {line(str(place))}?", yes)
            _hint_scopes(surface, "kept out", scope_links.separate_scope(store, place))
        elif unlink:
            _require_decision(surface, f"Take back what was decided about {line(str(place))}?", yes)
            _hint_scopes(surface, "unlinked", scope_links.unlink_scope(store, place))
        elif accept:
            _require_decision(surface, f"Is {line(str(place))} your own clone?", yes)
            scope_links.accept_place(store, place)
        found = scope_links.directory_scope(store, place)
        surface.said |= set(found.notices())
        surface.answer(_scope_data(found), _scope_drawing(found))


def _require_decision(surface: Surface, question: str, yes: bool) -> None:
    if not surface.person:
        raise Refused(
            "Nothing was changed: only a person can decide which memories belong to a repository; do it at a terminal"
        )
    if not yes and not surface.confirm(question):
        raise Refused("Nothing was changed")


def _hint_scopes(surface: Surface, what: str, scopes: list[str]) -> None:
    surface.hint(f"engram: {what}: {', '.join(map(line, scopes)) or 'nothing'}")


def _scope_data(found: "DirectoryScope") -> dict[str, object]:
    return {"scope": found.scope, "earlier": dict(found.earlier), "used_in": list(found.used_in)}


def _scope_drawing(found: "DirectoryScope") -> Callable[[], None]:
    rows = [("scope", line(found.scope) or "none: this directory is not in a repository")]
    rows += [
        ("may belong", f"{line(old)} ({format_count(number, 'memory', 'memories')})")
        for old, number in found.earlier.items()
    ]
    rows += [("used in", line(path)) for path in found.used_in]
    return lambda: display.fields([*rows, *(("to decide", line(notice)) for notice in found.notices())])
