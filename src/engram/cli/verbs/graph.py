"""relate, traverse: relations between memories."""

from typing import TYPE_CHECKING, Any

from engram.cli import display
from engram.cli.display import line
from engram.cli.records import memory_data
from engram.cli.surface import Surface
from engram.cli.verbs.options import filters, pairs
from engram.model.arguments import checked_limit
from engram.model.errors import InvalidInput

if TYPE_CHECKING:
    from engram.graph.traversal import ReachedMemory


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
        surface.answer({"reached": answers, "text": text} if prompt else answers, lambda: _draw(found, text, prompt))
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


def _draw(found: "list[ReachedMemory]", text: str, prompt: bool) -> None:
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
