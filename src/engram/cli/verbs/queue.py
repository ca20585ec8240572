"""queue, promote, reject: what capture has proposed, and decisions about one or many of it."""

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Annotated, Any

from engram.cli import display
from engram.cli.decisions import (
    confirmed,
    draw_bulk,
    draw_left,
    draw_some,
    hint_undo,
    preview,
    report_bulk,
    report_nothing,
    report_one,
)
from engram.cli.display import Column, age, count, line
from engram.cli.parser import Argument, Option, Options
from engram.cli.records import bulk_data, memory_data
from engram.cli.surface import HUMAN, Surface, prove_person, reason_for_person, refuse_unconfirmed
from engram.cli.verbs.options import Reason, Yes
from engram.model.errors import InvalidInput
from engram.model.memory import Memory

if TYPE_CHECKING:
    from engram.client import Engram
    from engram.review.groups import QueueFilters, QueueGroup, QueuePage
    from engram.review.promotion import PromotionPlan
    from engram.review.queue import ReviewItem

MOST_TOPICS = 5
"""Topics named of a source's memories that are not listed."""

Refs = Annotated[
    list[str] | None, Argument("[ID]…", "Ids, names or aliases of the memories. Default: what the filters choose.")
]
PerSource = Annotated[
    int, Option("--per-source", metavar="N", help="List at most this many of each source; 0 for all.")
]
Eligible = Annotated[bool, Option("--eligible", help="Promote what the settings allow without a person.")]
DryRun = Annotated[bool, Option("--dry-run", help="Only report what would be promoted, and why the others wait.")]
Confirm = Annotated[bool, Option("--confirm", help="Promote tier 3, too: asks for a code at the controlling terminal.")]


class CandidateOptions(Options):
    """Which candidates: queue, promote and reject."""

    source: Annotated[
        str,
        Option(
            "--source", metavar="SOURCE", help="Only from this source, or below it: harness:codex, import:pack.json."
        ),
    ] = ""
    kind: Annotated[str, Option("--kind", metavar="KIND", help="Only of this kind: preference, tooling, …")] = ""
    tier: Annotated[int | None, Option("--tier", metavar="1–3", help="Only of this risk tier.")] = None
    scope: Annotated[
        str, Option("--scope", "-s", metavar="SCOPE", help="Only of this scope; `here` is this directory's.")
    ] = ""
    group: Annotated[str, Option("--group", metavar="TOPIC", help="Only about this topic, as `queue` names it.")] = ""

    def chosen(self, mem: "Engram") -> "QueueFilters":
        """The filters that were given."""
        scope = mem.scope_here() if self.scope == "here" else self.scope
        given: QueueFilters = {"source": self.source, "kind": self.kind, "scope": scope, "group": self.group}
        return {**given, "tier": self.tier}

    @property
    def given(self) -> bool:
        """Whether any was given."""
        return bool(self.source or self.kind or self.scope or self.group or self.tier is not None)


def queue(surface: Surface, filters: CandidateOptions, per_source: PerSource = 20) -> None:
    """List what capture, agents and imports have proposed and nobody has decided about.

    Grouped by source and topic, most worth keeping first: by confidence, importance and type. `engram review` goes through
    everything that awaits a person, contradictions and faded memories included.
    """
    with surface.memory() as mem:
        page = mem.review.page(per_source, **filters.chosen(mem))
        surface.answer(_page_data(page, surface), lambda: _draw_page(page, surface))
        _hint_queue(surface, page)


def _hint_queue(surface: Surface, page: "QueuePage") -> None:
    if not page.waiting:
        surface.hint("engram: nothing awaits review here")
        return
    surface.hint(
        f"engram: {count(page.waiting, 'candidate')}; `engram review` decides one by one, `engram promote ID…` and "
        "`engram reject ID…` several, --source, --kind, --tier, --scope and --group choose"
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


def _draw_page(page: "QueuePage", surface: Surface) -> None:
    for source, groups in groupby(page.groups, key=lambda group: group.source):
        rest = []
        for group in groups:
            if group.items:
                _draw_group(group, surface)
            rest.append((group.count - len(group.items), group.topic))
        if source in page.more:
            topics = ", ".join(
                f"{line(topic)} {number:,}" for number, topic in sorted(rest, reverse=True)[:MOST_TOPICS] if number
            )
            display.lines(
                [(f"… and {page.more[source]:,} more from {line(source)}", "yellow"), (f"  ({topics})", "bright_black")]
            )


def _draw_group(group: "QueueGroup", surface: Surface) -> None:
    from engram.gates.trust import kind_of

    display.lines([(line(group.source), "bold"), f" · {line(group.topic)}", (f"  {group.count:,}", "bright_black")])
    rows: list[list[display.Cell]] = [
        [
            (f"  {item.memory.id}", "cyan"),
            kind_of(item.memory),
            age(item.memory.created, surface.now),
            f"{line(item.memory.statement, 160)} — {line(item.reason, 160)}",
        ]
        for item in group.items
    ]
    display.table(["  id", "kind", Column("age", "bright_black"), "memory"], rows)


def promote(
    surface: Surface,
    filters: CandidateOptions,
    refs: Refs = None,
    eligible: Eligible = False,
    dry_run: DryRun = False,
    confirm: Confirm = False,
    yes: Yes = False,
    reason: Reason = "",
) -> None:
    """Make candidates active: those named, those the filters choose, or with --eligible those that need no person.

    Tier 3 (identity, money, health, people, …) needs --confirm and a code typed at the controlling terminal. --eligible promotes
    tier 1 as the settings autopromote_remember, autopromote_harvest and autopromote_kinds allow, and tier 2 where nothing stored
    says the same or contradicts it. What the filters choose is shown first, and promoted once confirmed (or with --yes).
    """
    _check_choice(refs, filters.given, eligible)
    if dry_run and not eligible:
        raise InvalidInput("--dry-run belongs to --eligible; for chosen memories, `engram queue` shows them")
    with surface.memory() as mem:
        if eligible:
            _promote_eligible(surface, mem, filters, dry_run)
            return
        memories = [mem.get(ref) for ref in refs or ()] or _previewed(surface, mem, filters, "promote", yes, confirm)
        if not memories:
            return
        held = [(memory, why) for memory in memories if (why := _needs_person(surface, mem, memory))]
        if not confirm:
            refuse_unconfirmed(held, "engram promote")
        elif held:
            prove_person(held)
        actor = HUMAN if held else surface.actor
        if len(memories) == 1:
            report_one(
                surface, "approve", mem.review.approve(memories[0].id, actor=actor, reason=reason, shown=memories)
            )
        else:
            ids = [memory.id for memory in memories]
            report_bulk(surface, mem.review.promote_all(ids, actor=actor, reason=reason, shown=memories))


def _check_choice(refs: Sequence[str] | None, filtered: bool, eligible: bool = False) -> None:
    if refs and (filtered or eligible):
        raise InvalidInput("name memories, or choose them by options; not both")
    if not refs and not filtered and not eligible:
        raise InvalidInput("name the memories, or choose them: --source, --kind, --tier, --scope or --group")


def _needs_person(surface: Surface, mem: "Engram", memory: Memory) -> str:
    """Why a person must prove to be here before this becomes active; "" where that is known, or not needed."""
    from engram.review.approval import person_only_reason

    if memory.status != "candidate":
        return ""
    return reason_for_person(memory) or ("" if surface.person else person_only_reason(memory, mem.review.settings))


def _promote_eligible(surface: Surface, mem: "Engram", filters: CandidateOptions, dry_run: bool) -> None:
    with display.progress("compared") as report:
        plan = mem.review.plan_promotion(progress=lambda done, all_: report("", done, all_), **filters.chosen(mem))
    if dry_run:
        surface.answer(_plan_data(plan, surface), lambda: _draw_plan(plan))
        surface.hint(
            f"engram: {count(len(plan.promoted), 'candidate')} would be promoted, {len(plan.waiting):,} still wait"
        )
        return
    decision = mem.review.promote_eligible(actor=surface.actor, plan=plan)
    surface.answer(bulk_data(decision, surface.now), lambda: draw_bulk(decision))
    hint_undo(surface, decision)


def _plan_data(plan: "PromotionPlan", surface: Surface) -> dict[str, Any]:
    return {"promoted": [memory_data(memory, surface.now) for memory in plan.promoted], "waiting": dict(plan.waiting)}


def _draw_plan(plan: "PromotionPlan") -> None:
    draw_some("would be promoted", "green", plan.promoted)
    draw_left("still wait", plan.waiting)


def reject(
    surface: Surface,
    filters: CandidateOptions,
    refs: Refs = None,
    reason: Reason = "",
    yes: Yes = False,
) -> None:
    """Reject candidates: those named, or those the filters choose. A rejected fact stays readable and is not proposed again.

    What the filters choose is shown first, and rejected once confirmed (or with --yes). `history` shows the reason.
    """
    _check_choice(refs, filters.given)
    with surface.memory() as mem:
        memories = [mem.get(ref) for ref in refs or ()] or _previewed(surface, mem, filters, "reject", yes, True)
        if len(memories) == 1:
            report_one(
                surface, "reject", mem.review.reject(memories[0].id, actor=surface.actor, reason=reason, shown=memories)
            )
        elif memories:
            ids = [memory.id for memory in memories]
            report_bulk(surface, mem.review.reject_all(ids, actor=surface.actor, reason=reason, shown=memories))


def _previewed(
    surface: Surface, mem: "Engram", filters: CandidateOptions, verb: str, yes: bool, sensitive: bool
) -> list[Memory]:
    """What the filters choose, once the person has seen and confirmed it; contradictions are decided one by one."""
    items = mem.review.candidates(**filters.chosen(mem))
    apart = [item for item in items if item.waits_as == "contradiction" and verb == "promote"]
    chosen = [item.memory for item in items if item not in apart]
    held = [memory for memory in chosen if not sensitive and reason_for_person(memory)]
    chosen = [memory for memory in chosen if memory not in held]
    preview(surface, f"{verb} {count(len(chosen), 'candidate')}", chosen)
    if apart:
        surface.say(f"left out: {count(len(apart), 'contradiction')}; `engram review` settles them")
    if held:
        surface.say(f"left out: {len(held):,} of tier 3 or that read like instructions; --confirm includes them")
    if chosen and confirmed(surface, f"{verb.capitalize()} them?", yes):
        return chosen
    report_nothing(surface, verb)
    return []
