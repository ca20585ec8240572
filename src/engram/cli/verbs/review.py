"""review, queue, promote, reject, edit, merge, separate: items that wait for a person, and the decisions about them."""

from collections.abc import Sequence
from datetime import datetime
from itertools import groupby
from typing import TYPE_CHECKING, Any

from engram.cli import display, views
from engram.cli.decisions import (
    ask_confirmation,
    confirm_reworded,
    draw_bulk,
    draw_left,
    draw_some,
    hint_undo,
    preview,
    report_bulk,
    report_nothing,
    report_one,
)
from engram.cli.display import Column, age, line
from engram.cli.interactive_review import ReviewLoop
from engram.cli.records import bulk_data, memory_data
from engram.cli.surface import (
    FAILED,
    HUMAN,
    Surface,
    prove_person,
    reason_for_person,
    refuse_unconfirmed,
    require_person,
    text_or_stdin,
)
from engram.cli.verbs.options import Options
from engram.model.errors import InvalidInput
from engram.model.memory import Memory
from engram.text.display import format_count

if TYPE_CHECKING:
    from engram.client import Engram
    from engram.review.promotion import PromotionPlan
    from engram.review.queue import QueueFilters, QueueGroup, QueuePage, ReviewItem


def review(
    surface: Surface,
    ref: str = "",
    keep: str = "",
    statement: str = "",
    new_when: str = "",
    old_when: str = "",
    approve: bool = False,
    reject: bool = False,
    waits_as: str = "",
    retire: bool = False,
    reinforce: bool = False,
    list_only: bool = False,
    limit: int = 50,
) -> None:
    """Carry out `engram review`."""
    chosen = [name for name, on in (("keep", keep), ("approve", approve), ("reject", reject), ("retire", retire),
                                    ("reinforce", reinforce)) if on]  # fmt: skip
    if len(chosen) > 1:
        raise InvalidInput(f"--{chosen[0]} and --{chosen[1]} are two decisions; give only one")
    if chosen and not ref:
        raise InvalidInput(f"--{chosen[0]} needs the id of a memory; `engram review` lists them")
    if waits_as and chosen not in (["approve"], ["reject"]):
        raise InvalidInput("--as belongs to --approve or --reject")
    with surface.memory() as mem:
        if chosen:
            situations = (new_when, old_when)
            if (approve or keep not in ("", "old")) and not confirm_reworded(surface, mem, mem.get(ref), "approve"):
                surface.hint("engram: nothing was changed")
                raise SystemExit(FAILED)
            memory = _decide_item(
                mem, ref, chosen[0], keep, text_or_stdin(statement), situations, surface.actor, waits_as
            )
            _report_decision(surface, memory)
            return
        waiting = mem.review.queue(limit, about=mem.get(ref).id if ref else "")
        if surface.person and surface.can_draw and not list_only and waiting:
            ReviewLoop(surface, mem).run(waiting, _count_others(mem, waiting) if not ref else 0)
        else:
            _list_waiting(surface, waiting)


def _count_others(mem: "Engram", waiting: "list[ReviewItem]") -> int:
    """How many other candidates wait."""
    from engram.store.protocol import Filters

    shown = sum(item.memory.status == "candidate" for item in waiting)
    return max(0, mem.store.count(Filters(statuses=("candidate",))) - shown)


def _decide_item(
    mem: "Engram",
    ref: str,
    choice: str,
    keep: str,
    statement: str,
    situations: tuple[str, str],
    actor: str,
    waits_as: str = "",
) -> Memory:
    """Carry out one decision; if only a person may decide, ask for a code first."""
    memory = mem.get(ref)
    if choice == "approve" or (choice == "keep" and keep != "old"):
        merged = memory.replace(statement=statement or memory.statement)
        if require_person(merged, reason_for_person(memory) or reason_for_person(merged)):
            actor = HUMAN
    if choice == "keep":
        return mem.review.resolve(
            memory.id, keep, statement=statement, situations=situations, actor=actor, shown=[memory]
        )
    if choice in ("approve", "reject"):
        decide = mem.review.approve if choice == "approve" else mem.review.reject
        return decide(memory.id, waits_as=waits_as, actor=actor, shown=[memory])
    return (mem.review.retire if choice == "retire" else mem.review.reinforce)(memory.id, actor=actor)


def _report_decision(surface: Surface, memory: Memory) -> None:
    now = surface.now
    surface.answer(memory_data(memory, now), lambda: views.listing([memory], now))
    surface.hint(f"engram: `engram undo {memory.id}` undoes it")


def _item_data(item: "ReviewItem", now: datetime) -> dict[str, Any]:
    return {
        "waits_as": item.waits_as,
        "reason": item.reason,
        "actions": list(item.actions),
        "memory": memory_data(item.memory, now),
        "other": memory_data(item.other, now) if item.other else None,
    }


def _list_waiting(surface: Surface, waiting: "list[ReviewItem]") -> None:
    rows: list[list[display.Cell]] = [
        [
            (item.memory.id, "cyan"),
            item.waits_as,
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


MAX_TOPICS = 5
"""Topics named for the memories of a source that are not listed."""

REWORDED_REASON = "it was reworded, and not confirmed"
NO_MATCH = "engram: No candidate matches."


class CandidateOptions(Options):
    """The selection of candidates for queue, promote and reject."""

    source: str = ""
    kind: str = ""
    tier: int | None = None
    scope: str = ""
    group: str = ""

    def queue_filters(self, mem: "Engram") -> "QueueFilters":
        """The filters that were given."""
        scope = mem.scope_here() if self.scope == "here" else self.scope
        given: QueueFilters = {"source": self.source, "kind": self.kind, "scope": scope, "group": self.group}
        return {**given, "tier": self.tier}

    @property
    def has_any(self) -> bool:
        """Whether any filter was given."""
        return bool(self.source or self.kind or self.scope or self.group or self.tier is not None)


def queue(surface: Surface, per_source: int = 20, **given: Any) -> None:
    """Carry out `engram queue`."""
    filters = CandidateOptions(**given)
    with surface.memory() as mem:
        page = mem.review.page(per_source, **filters.queue_filters(mem))
        surface.answer(_page_data(page, surface), lambda: _draw_page(page, surface, mem))
        _hint_queue(surface, page)


def _hint_queue(surface: Surface, page: "QueuePage") -> None:
    if not page.waiting:
        surface.hint("engram: nothing awaits review here")
        return
    surface.hint(
        f"engram: {format_count(page.waiting, 'candidate')}; decide with `engram review`, `engram promote ID…` or `engram reject ID…`"
    )


def _page_data(page: "QueuePage", surface: Surface) -> dict[str, Any]:
    from engram.review.queue import worth

    def item_data(item: "ReviewItem") -> dict[str, Any]:
        return {
            "waits_as": item.waits_as,
            "worth": round(worth(item.memory), 3),
            "reason": item.reason,
            "memory": memory_data(item.memory, surface.now),
            "other": item.other.id if item.other is not None else "",
        }

    groups = [
        {"source": one.source, "topic": one.topic, "count": one.count, "items": [item_data(item) for item in one.items]}
        for one in page.groups
    ]
    return {"waiting": page.waiting, "groups": groups, "more": dict(page.more)}


def _draw_page(page: "QueuePage", surface: Surface, mem: "Engram") -> None:
    for source, groups in groupby(page.groups, key=lambda group: group.source):
        rest = []
        for group in groups:
            if group.items:
                _draw_group(group, surface, mem)
            rest.append((group.count - len(group.items), group.topic))
        if source in page.more:
            topics = ", ".join(
                f"{line(topic)} {number:,}" for number, topic in sorted(rest, reverse=True)[:MAX_TOPICS] if number
            )
            display.lines(
                [(f"… and {page.more[source]:,} more from {line(source)}", "yellow"), (f"  ({topics})", "bright_black")]
            )


def _draw_group(group: "QueueGroup", surface: Surface, mem: "Engram") -> None:
    from engram.gates.trust import kind_of

    display.lines([(line(group.source), "bold"), f" · {line(group.topic)}", (f"  {group.count:,}", "bright_black")])
    rows: list[list[display.Cell]] = [
        [
            (f"  {item.memory.id}", "cyan"),
            kind_of(item.memory),
            age(item.memory.created, surface.now),
            " — ".join(filter(None, (line(item.memory.statement, 160), line(item.reason, 160)))),
        ]
        for item in group.items
    ]
    display.table(["  id", "kind", Column("age", "bright_black"), "memory"], rows)
    for item in group.items:
        _draw_retold(mem, item.memory)


def _draw_retold(mem: "Engram", memory: Memory) -> None:
    """Print the other wordings of a candidate that was told more than once."""
    if all(evidence.retelling is None for evidence in memory.evidence):
        return
    from engram.review.amendment import group_retellings

    for number, words in enumerate(group_retellings(mem.store, memory), start=1):
        display.lines([(f"  {memory.id} {number} also told as “{line(words, 160)}”", "bright_black")])


def promote(
    surface: Surface,
    refs: list[str] | None = None,
    eligible: bool = False,
    dry_run: bool = False,
    confirm: bool = False,
    yes: bool = False,
    reason: str = "",
    **given: Any,
) -> None:
    """Carry out `engram promote`."""
    filters = CandidateOptions(**given)
    _check_choice(refs, filters.has_any, eligible)
    with surface.memory() as mem:
        named = [mem.get(ref) for ref in refs or ()]
        if eligible:
            _promote_eligible(surface, mem, filters, dry_run)
        elif dry_run:
            chosen = named or [item.memory for item in mem.review.candidates(**filters.queue_filters(mem))]
            _report_plan(surface, _plan_promotion(surface, mem, chosen, confirm))
        elif chosen := named or _confirm_candidates(surface, mem, filters, "promote", yes, confirm):
            _promote_chosen(surface, mem, chosen, confirm, reason)


def _promote_chosen(surface: Surface, mem: "Engram", memories: Sequence[Memory], confirm: bool, reason: str) -> None:
    """Promote these, once a person has typed a code for those that need one; contradictions are left unchanged."""
    from engram.model.lazy import replace

    apart = {memory.id: why for memory in memories if (why := _contradiction(mem, memory))}
    if apart and len(memories) == 1:
        raise InvalidInput(*apart.values())
    waiting = [memory for memory in memories if memory.id not in apart and memory.status == "candidate"]
    apart |= {memory.id: REWORDED_REASON for memory in waiting if not confirm_reworded(surface, mem, memory, "promote")}
    if apart and len(memories) == 1:
        report_nothing(surface, "approve")
        raise SystemExit(FAILED)
    chosen = [memory for memory in memories if memory.id not in apart]
    held = [(memory, why) for memory in chosen if (why := _needs_person(surface, mem, memory))]
    if not confirm:
        refuse_unconfirmed(held, "engram promote")
    elif held:
        known = {memory.id for memory, _ in held}
        beside = [memory for memory in chosen if memory.id not in known and not surface.person]
        prove_person([*held, *((memory, "it is promoted with the others") for memory in beside)])
    actor = HUMAN if held else surface.actor
    if len(memories) == 1:
        report_one(surface, "approve", mem.review.approve(chosen[0].id, actor=actor, reason=reason, shown=chosen))
        return
    decision = mem.review.promote_all([memory.id for memory in chosen], actor=actor, reason=reason, shown=chosen)
    report_bulk(surface, replace(decision, left={**apart, **decision.left}))


def _contradiction(mem: "Engram", memory: Memory) -> str:
    """Which memory a candidate contradicts, and the command that resolves it; "" for none."""
    from engram.decisions.approval import contradiction_problem
    from engram.decisions.versions import contradiction_target

    other = contradiction_target(mem.store.get, memory) if memory.status == "candidate" else None
    return contradiction_problem(memory, other) if other is not None else ""


def _plan_promotion(surface: Surface, mem: "Engram", memories: Sequence[Memory], confirm: bool) -> "PromotionPlan":
    """The outcome for each of these if they were promoted."""
    from engram.review.promotion import PromotionPlan

    waiting = {}
    for memory in memories:
        if memory.status != "candidate":
            waiting[memory.id] = f"it is {memory.status}, and does not wait for review"
        elif why := _contradiction(mem, memory):
            waiting[memory.id] = why
        elif not confirm and (why := _needs_person(surface, mem, memory)):
            waiting[memory.id] = f"needs a person: {why}; --confirm asks for a typed code"
    return PromotionPlan(tuple(memory for memory in memories if memory.id not in waiting), waiting)


def _check_choice(refs: Sequence[str] | None, filtered: bool, eligible: bool = False) -> None:
    if refs and (filtered or eligible):
        raise InvalidInput("name memories, or choose them by options; not both")
    if not refs and not filtered and not eligible:
        raise InvalidInput("name the memories, or choose them: --source, --kind, --tier, --scope or --group")


def _needs_person(surface: Surface, mem: "Engram", memory: Memory) -> str:
    """Why a person must prove to be here before this becomes active; "" if that is proven, or not needed."""
    from engram.decisions.approval import person_only_reason

    if memory.status != "candidate":
        return ""
    return reason_for_person(memory) or ("" if surface.person else person_only_reason(memory, mem.review.settings))


def _promote_eligible(surface: Surface, mem: "Engram", filters: CandidateOptions, dry_run: bool) -> None:
    with display.progress("compared") as report:
        plan = mem.review.plan_promotion(
            progress=lambda done, all_: report("", done, all_), **filters.queue_filters(mem)
        )
    if dry_run:
        _report_plan(surface, plan)
        return
    if not plan.promoted and not plan.waiting:
        report_nothing(surface, "autopromote", NO_MATCH)
        return
    decision = mem.review.promote_eligible(actor=surface.actor, plan=plan)
    surface.answer(bulk_data(decision, surface.now), lambda: draw_bulk(decision))
    hint_undo(surface, decision)


def _report_plan(surface: Surface, plan: "PromotionPlan") -> None:
    promoted = [memory_data(memory, surface.now) for memory in plan.promoted]
    surface.answer({"promoted": promoted, "waiting": dict(plan.waiting)}, lambda: _draw_plan(plan))
    told = f"engram: {format_count(len(promoted), 'candidate')} would be promoted, {len(plan.waiting):,} still wait"
    surface.hint(told if promoted or plan.waiting else NO_MATCH)


def _draw_plan(plan: "PromotionPlan") -> None:
    if not plan.promoted and not plan.waiting:
        return
    draw_some("would be promoted", "green", plan.promoted)
    draw_left("still wait", plan.waiting)


def reject(surface: Surface, refs: list[str] | None = None, reason: str = "", yes: bool = False, **given: Any) -> None:
    """Carry out `engram reject`."""
    filters = CandidateOptions(**given)
    _check_choice(refs, filters.has_any)
    with surface.memory() as mem:
        memories = [mem.get(ref) for ref in refs or ()] or _confirm_candidates(
            surface, mem, filters, "reject", yes, True
        )
        if len(memories) == 1:
            report_one(
                surface, "reject", mem.review.reject(memories[0].id, actor=surface.actor, reason=reason, shown=memories)
            )
        elif memories:
            ids = [memory.id for memory in memories]
            report_bulk(surface, mem.review.reject_all(ids, actor=surface.actor, reason=reason, shown=memories))


def _confirm_candidates(
    surface: Surface, mem: "Engram", filters: CandidateOptions, verb: str, yes: bool, sensitive: bool
) -> list[Memory]:
    """The candidates that the filters select, once the person has confirmed them.

    Contradictions are decided one by one.
    """
    items = mem.review.candidates(**filters.queue_filters(mem))
    if not items:
        report_nothing(surface, verb, NO_MATCH)
        return []
    apart = [item for item in items if item.waits_as == "contradiction" and verb == "promote"]
    others = [item.memory for item in items if not (item.waits_as == "contradiction" and verb == "promote")]
    held = [memory for memory in others if not sensitive and reason_for_person(memory)]
    left_out = {memory.id for memory in held}
    chosen = [memory for memory in others if memory.id not in left_out]
    if chosen:
        preview(surface, f"{verb} {format_count(len(chosen), 'candidate')}", chosen)
    if apart:
        surface.say(f"left out: {format_count(len(apart), 'contradiction')}; `engram review` settles them")
    if held:
        surface.say(f"left out: {len(held):,} of tier 3 or that read like instructions; --confirm includes them")
    if chosen and ask_confirmation(surface, f"{verb.capitalize()} them?", yes):
        return chosen
    report_nothing(surface, verb)
    return []


def edit(surface: Surface, ref: str, statement: str = "", reason: str = "") -> None:
    """Carry out `engram edit`."""
    with surface.memory() as mem:
        before = mem.get(ref)
        if statement:
            after = mem.review.edit(before.id, actor=surface.actor, reason=reason, statement=text_or_stdin(statement))
        elif surface.person and surface.can_draw:
            from engram.cli.interactive_review import edit_in_editor

            after = mem.review.edit(before.id, actor=surface.actor, reason=reason, **edit_in_editor(before))
        else:
            raise InvalidInput("edit needs --statement TEXT, or a terminal for $EDITOR")
        surface.answer(memory_data(after, surface.now), lambda: _draw_amended(before, after))
        hint = f"`engram promote {after.id}` makes it active; " if after.status == "candidate" else ""
        surface.hint(f"engram: {hint}`engram undo {after.id}` undoes it")


def _draw_amended(before: Memory, after: Memory) -> None:
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
