"""show, list, history, lineage, relate, traverse: what is stored, and how memories are related."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from engram.cli import display, views
from engram.cli.display import Column, line, moment
from engram.cli.records import are_forms, form_card, form_index, memory_data, plain, provenance_data
from engram.cli.surface import Surface
from engram.cli.verbs.options import everywhere_hint, filters, filters_of, pairs
from engram.model.arguments import checked_limit
from engram.model.errors import InvalidInput
from engram.model.memory import Memory, aware

if TYPE_CHECKING:
    from engram.client import Engram
    from engram.graph.graph import ReachedMemory
    from engram.review.amendment import NumberedRetelling


def show(surface: Surface, ref: str = "", *, name: str = "", scope: list[str] | None = None) -> None:
    """Print everything about one memory or one ledger event."""
    if bool(ref) == bool(name):
        raise InvalidInput("say which memory to show: its ID, or --name NAME")
    by_name, ref = bool(name), ref or name
    with surface.memory() as mem:
        seen = mem.scopes_for(scope=scope or None)
        event = mem.store.event(ref) if ref.startswith("EVT-") else None
        if event is not None and (seen is None or mem.store.owner_of(ref) in seen):
            surface.answer(event, lambda: _show_event(event))
            return
        memory, now = mem.get(ref, scope=scope or None), surface.now
        file = mem.store.file_of(memory.id)
        found = mem.review.provenance(memory.id, scopes=seen) if memory.status == "candidate" else None
        retold = _find_retellings(mem, memory, seen) if found is None else ()
        more = {"provenance": provenance_data(found)} if found is not None else {}
        more |= {"retellings": plain(retold)} if retold else {}

        def draw() -> None:
            if by_name and memory.form:
                display.write("\n".join(form_card(memory)))
            else:
                views.card(memory, now, file)
            if found is not None:
                from engram.cli.interactive_review import draw_provenance

                draw_provenance(found)
            elif retold:
                from engram.cli.interactive_review import draw_retellings

                draw_retellings(retold)

        surface.answer({**memory_data(memory, now), "file": file, **more}, draw)


def _find_retellings(mem: "Engram", memory: Memory, scopes: Collection[str] | None) -> "Sequence[NumberedRetelling]":
    if all(evidence.retelling is None for evidence in memory.evidence):
        return ()
    from engram.review.amendment import retellings_of

    return tuple(retellings_of(mem.store, memory, scopes))


def _show_event(event: Any) -> None:
    display.lines([(event.id, "bold cyan")])
    display.fields(
        [
            ("session", event.session),
            ("role", event.role),
            ("kind", event.event_type),
            ("at", moment(event.at)),
            ("content", event.content),
            ("metadata", ", ".join(f"{key}={value}" for key, value in event.metadata.items())),
        ]
    )


def list_(
    surface: Surface, *, limit: int, offset: int = 0, critical: bool = False, everywhere: bool = False, **asked: Any
) -> None:
    """Print memories, newest first."""
    filters = filters_of(asked, everywhere=everywhere) | ({"critical": True} if critical else {})
    with surface.memory() as mem:
        found = mem.list(limit=limit, offset=offset, **filters)
        now = surface.now
        at = aware(filters.get("as_of"), mem.time_zone) or now
        surface.answer([memory_data(memory, at) for memory in found], lambda: _draw_list(found, now, at))
        if not found and critical:
            surface.hint("engram: nothing critical here; the policy defines the critical slots: `engram config policy`")
        elif not found and (filters or offset):
            surface.hint(
                f"engram: nothing matches{everywhere_hint(filters)}; without filters `engram list` shows current memories"
            )
        elif not found:
            surface.hint(
                f'engram: nothing here yet{everywhere_hint(filters)}; `engram learn "…"` stores a first memory'
            )
        elif len(found) == limit:
            surface.hint(f"engram: the newest {limit}; --limit and --offset show others")


def _draw_list(found: Sequence[Memory], now: datetime, at: datetime) -> None:
    if are_forms(found) and not display.on_terminal():
        display.write("\n".join(form_index(found)))
    elif found:
        views.listing(found, now, at)


def history(surface: Surface, ref: str, *, scope: list[str] | None = None) -> None:
    """Print every decision about a memory."""
    with surface.memory() as mem:
        steps = views.history_steps(mem.history(ref, scope=scope or None))
        surface.answer([views.step_data(step) for step in steps], lambda: views.draw_history(steps))
        if not steps:
            surface.hint("engram: no decisions are recorded here; the history of a team's memory is in git")


def lineage(surface: Surface, ref: str, *, scope: list[str] | None = None) -> None:
    """Print every version of a fact."""
    with surface.memory() as mem:
        versions, now = mem.lineage(ref, scope=scope or None), surface.now
        head = _current(mem.get_current(ref, scope=scope or None))
        data = [{**memory_data(version, now), "in_force": version.id == head} for version in versions]
        surface.answer(data, lambda: _draw_versions(versions, head))
        if not head:
            surface.hint("engram: no version is current")


def _current(memory: Memory) -> str:
    """The id of the current version; "" if there is none."""
    from engram.model.memory import LIVE_STATUSES

    return memory.id if memory.status in LIVE_STATUSES else ""


def _draw_versions(versions: Sequence[Memory], head: str) -> None:
    rows: list[list[display.Cell]] = []
    for version in versions:
        mark = ("●", "green") if version.id == head else ("○", "bright_black")
        since = moment(version.valid_from or version.when)
        valid = f"{since} – {moment(version.valid_until) or '…'}"
        status = "current" if version.id == head else version.status
        rows.append(
            [mark, (version.id, "cyan"), valid, (status, display.state_style(version.status)), line(version.statement)]
        )
    display.table(["", "id", Column("valid", "bright_black"), "status", "statement"], rows)


def relate(
    surface: Surface,
    source: str,
    target: str,
    type_: str | None = None,
    weight: float | None = None,
    meta: list[str] | None = None,
    remove: bool = False,
    reason: str = "",
) -> None:
    """Carry out `engram relate`."""
    if remove and (weight is not None or meta):
        raise InvalidInput("--remove removes a relation; leave out --weight and --meta")
    with surface.memory() as mem:
        before = mem.get(source)
        if remove:
            after = mem.graph.unrelate(source, target, type_, actor=surface.actor, reason=reason)
        else:
            after = mem.graph.relate(
                source, target, type_ or "related_to", weight=1.0 if weight is None else weight,
                metadata=pairs(meta) or None, actor=surface.actor, reason=reason,
            )  # fmt: skip
        surface.answer(memory_data(after, surface.now), lambda: _draw_links(before, after))


def traverse(
    surface: Surface,
    ref: list[str],
    depth: int = 3,
    direction: str = "outbound",
    type_: list[str] | None = None,
    min_weight: float = 0.0,
    scope: list[str] | None = None,
    status: list[str] | None = None,
    limit: int = 50,
    prompt: bool = False,
    tokens: int | None = None,
) -> None:
    """Carry out `engram traverse`."""
    from engram.recall.query import ScopeResolver

    if tokens is not None and not prompt:
        raise InvalidInput("--tokens needs --prompt")
    checked_limit(limit, "--limit")
    chosen = filters(scope=scope, status=status)
    with surface.memory() as mem:
        if chosen.get("scope"):
            sight = ScopeResolver(mem.store, mem.directory, mem.upkeep.clock)
            chosen["scope"] = [sight.scope_named(one) for one in chosen["scope"]]
        found = mem.graph.traverse_many(
            ref, max_depth=depth, direction=direction, types=type_, min_weight=min_weight, limit_per_seed=limit,
            total_limit=limit, **chosen,
        )  # fmt: skip
        text = mem.graph.render(found, max_tokens=tokens) if prompt else ""
        now = surface.now
        answers = [
            {
                "id": one.memory.id, "depth": one.depth, "score": one.score, "path": one.path, "relations": one.relations,
                "forward": one.forward, "seeds": one.seeds, "memory": memory_data(one.memory, now),
            }
            for one in found
        ]  # fmt: skip
        surface.answer(
            {"reached": answers, "text": text} if prompt else answers, lambda: _draw_reached(found, text, prompt)
        )
        if not found:
            surface.hint("engram: no relations start here; --direction any follows them both ways")


def _draw_links(before: Any, after: Any) -> None:
    display.lines([(after.id, "bold cyan"), f"  {line(after.statement)}"])
    for link in after.associations:
        mark = " " if link in before.associations else "+"
        display.lines([f"  {mark} ", (line(link.type), "magenta"), f" → {line(link.target)}  weight {link.weight:g}"])
    kept = {(link.target, link.type) for link in after.associations}
    for link in before.associations:
        if (link.target, link.type) not in kept:
            display.lines(["  - ", (line(link.type), "magenta"), f" → {line(link.target)}"])


def _draw_reached(found: "list[ReachedMemory]", text: str, prompt: bool) -> None:
    if prompt:
        display.block(text)
        return
    for one in found:
        arrow = f"—{line(one.relations[-1])}→" if one.forward[-1] else f"←{line(one.relations[-1])}—"
        display.lines(
            [
                "  " * one.depth,
                (f"{arrow} ", "magenta"),
                (one.memory.id, "bold cyan"),
                f"  {line(one.memory.statement)}",
                (f"  {one.score:.3g} from {line(one.path[-2])}", "bright_black"),
            ]
        )
