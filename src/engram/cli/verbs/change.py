"""update, revise, pin, feedback, reinforce, verify, undo, forget, enrich: change a memory, or give memories cues."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from engram.cli import display, views
from engram.cli.decisions import confirm_reworded, draw_bulk, hint_undo
from engram.cli.display import block, line, progress
from engram.cli.records import bulk_data, memory_data
from engram.cli.surface import FAILED, Surface, lowers_tier, reason_for_person, require_person, text_or_stdin
from engram.cli.verbs.options import check_claim, memory_changes
from engram.model.errors import InvalidInput, Refused
from engram.model.memory import LIVE_STATUSES, Memory, Signal
from engram.text.display import format_count

if TYPE_CHECKING:
    from engram.client import Engram
    from engram.review.bulk import BulkDecision
    from engram.store.reports import Purged

_VERSION_FIELDS = frozenset({"id", "created", "lineage", "revision", "supersedes", "aliases", "activation", "feedback"})
"""Fields that differ between any two versions and are irrelevant to the fact."""


def update(
    surface: Surface,
    ref: str = "",
    *,
    statement: str | None = None,
    claimed: str | None = None,
    reason: str = "",
    **changes: Any,
) -> None:
    """Change fields of a memory in place, and print the changes."""
    check_claim(claimed)
    fields = memory_changes(changes)
    by_name, ref = not ref, ref or fields.get("name", "")
    if not ref:
        raise InvalidInput("say which memory to change: its ID, or --name NAME")
    if by_name:
        del fields["name"]
    if statement is not None:
        fields["statement"] = text_or_stdin(statement)
    with surface.memory() as mem:
        before = mem.get(ref)
        check_allowed(before, fields)
        from engram.gates.situation import changed_situation_warnings

        after = mem.update(before.id, actor=surface.actor, reason=reason, **fields)
        if by_name:
            surface.answer(memory_data(after, surface.now), lambda: display.write(f"UPDATED: {line(after.name)}"))
        else:
            _report_change(surface, mem, before, after)
        if claimed:
            surface.hint(
                "engram: --source changes nothing: a memory's source is who said it, and the history has who changed it"
            )
        for warning in changed_situation_warnings(before, after):
            surface.hint(f"engram: warning: {warning}")


def revise(surface: Surface, ref: str, statement: str = "", *, reason: str = "", **changes: Any) -> None:
    """Add a new version of a fact, and print the changes."""
    fields = memory_changes(changes) | ({"statement": text_or_stdin(statement)} if statement else {})
    if not fields:
        raise InvalidInput(
            "Nothing to revise: give a text, or a field such as --valid-from; `engram revise --help` lists them"
        )
    with surface.memory() as mem:
        before = mem.get_current(ref)
        # The new version is active, so it needs a person whenever activating it would.
        check_allowed(before, {**fields, "status": "active"})
        after = mem.revise(before.id, actor=surface.actor, reason=reason, **fields)
        _report_change(surface, mem, before, after, without=_VERSION_FIELDS)
        if after.superseded_by:
            surface.hint(f"engram: it was true before {after.superseded_by}, which stays current")
        else:
            surface.hint(f"engram: replaces {before.id}; `engram lineage {after.id}` shows every version")


def check_allowed(before: Memory, fields: dict[str, Any]) -> None:
    """Refuse changes that only review may decide; require a person if review would."""
    if fields.get("status") in LIVE_STATUSES:
        if before.status == "candidate":
            raise Refused(f"{before.id} awaits review; `engram promote {before.id}` or `engram review` activates it")
        require_person(before, reason_for_person(before))
    if lowers_tier(before, fields.get("type", before.type)):
        require_person(before, f"{fields['type']!r} is reviewed less strictly than {before.type!r}")


def pin(surface: Surface, ref: str, *, unpin: bool = False) -> None:
    """Pin a memory, and print the changes."""
    with surface.memory() as mem:
        before = mem.get(ref)
        _report_change(surface, mem, before, mem.pin(before.id, not unpin, actor=surface.actor))


def feedback(surface: Surface, ref: str, signal: Signal, *, session: str = "") -> None:
    """Rate a memory, and print the changes."""
    with surface.memory() as mem:
        before = mem.get(ref)
        _report_change(surface, mem, before, mem.feedback(before.id, signal, session=session, actor=surface.actor))


def reinforce(surface: Surface, ref: str) -> None:
    """Reinforce a memory by hand, and print the changes."""
    with surface.memory() as mem:
        before = mem.get(ref)
        _report_change(surface, mem, before, mem.reinforce(before.id, actor=surface.actor))


def verify(surface: Surface, ref: str) -> None:
    """Confirm that a memory is still true, and print the changes."""
    with surface.memory() as mem:
        before = mem.get(ref)
        if not confirm_reworded(surface, mem, before, "confirm"):
            surface.hint("engram: nothing was changed")
            raise SystemExit(FAILED)
        after = mem.verify(before.id, actor=surface.actor, shown=[before])
        _report_change(surface, mem, before, after)
        if after.status == "candidate":
            surface.hint(f"engram: {after.id} still waits for review; `engram promote {after.id}` makes it active")


def undo(surface: Surface, ref: str = "", *, last: bool = False) -> None:
    """Undo a decision, and print the changes."""
    if bool(ref) == last:
        raise InvalidInput("name what to undo: the id of a memory or of a bulk decision (DEC-…), or --last")
    from engram.cli.decisions import report_bulk
    from engram.review.bulk import is_bulk

    with surface.memory() as mem:
        if last:
            report_bulk(surface, mem.review.undo_last(actor=surface.actor))
            return
        if is_bulk(ref):
            report_bulk(surface, mem.review.undo_bulk(ref, actor=surface.actor))
            return
        before = mem.get(ref)
        after = mem.undo(before.id, actor=surface.actor)
        _report_change(surface, mem, before, after)


def _report_change(surface: Surface, mem: Any, before: Any, after: Any, without: frozenset[str] = frozenset()) -> None:
    def draw() -> None:
        display.lines([(after.id, "bold cyan"), f"  {display.line(after.statement)}"])
        changes = views.changed_fields(before, after)
        found = {name: pair for name, pair in changes.items() if name.partition(".")[0] not in without}
        views.draw_changes(found)
        if not found:
            display.lines([("    unchanged", "bright_black")])

    surface.answer(memory_data(after, surface.now), draw)


def forget(surface: Surface, ref: str, *, purge: bool = False, yes: bool = False, reason: str = "") -> None:
    """Retire a memory, or destroy it."""
    with surface.memory() as mem:
        if purge:
            purge_after_asking(surface, mem, ref, yes)
        else:
            _retire(surface, mem, ref, reason)


def _retire(surface: Surface, mem: Any, ref: str, reason: str) -> None:
    memory = mem.forget(ref, actor=surface.actor, reason=reason)
    surface.answer(
        memory_data(memory, surface.now),
        lambda: display.lines([("retired", "yellow"), "  ", (memory.id, "cyan"), f"  {line(memory.statement)}"]),
    )
    surface.hint(f"engram: `engram undo {memory.id}` restores it; `engram forget {memory.id} --purge` destroys it")


def purge_after_asking(surface: Surface, mem: Any, ref: str, yes: bool) -> None:
    """Destroy a memory or an event once a person, or --yes, has confirmed it; exit 1 if any of it is left."""
    from engram.upkeep.purge import finish_purge

    if (finished := finish_purge(mem.store, mem.upkeep.clock, ref)) is not None:
        surface.hint("engram: an interrupted purge was finished")
        _report_purge(surface, finished)
        return
    found, words = _resolve_target(mem, ref)
    if not yes:
        if not surface.person:
            raise InvalidInput(f"purging {found} cannot be undone; add --yes to do it")
        surface.say(f"{found}  {words}")
        if not surface.confirm("Destroy every trace of it? This cannot be undone."):
            surface.say("engram: nothing was destroyed")
            raise SystemExit(1)
    _report_purge(surface, mem.upkeep.purge([found], actor=surface.actor))


def _report_purge(surface: Surface, purged: "Purged") -> None:
    surface.answer(
        {"purged": purged.ids, "remaining": purged.remaining, "out_of_reach": purged.out_of_reach},
        lambda: draw_proof(purged),
    )
    if purged.remaining:
        raise SystemExit(1)


def _resolve_target(mem: Any, ref: str) -> tuple[str, str]:
    from engram.store.references import find_event

    if ref.startswith("EVT-"):
        event = find_event(mem.store, ref)
        return event.id, line(event.content, 100)
    memory = mem.get(ref)
    return memory.id, line(memory.statement, 100)


def draw_proof(purged: "Purged") -> None:
    """Print what was destroyed, the proof, and what this program cannot reach."""
    display.lines([("purged", "bold red"), f"  {', '.join(purged.ids)}"])
    if purged.remaining:
        display.lines([("not all is gone", "bold red")], *[[f"  {line}"] for line in purged.remaining])
    else:
        display.lines([("proof", "green"), "   the whole store was searched; nothing of it is left"])
    display.lines([("out of reach", "yellow"), "  ", "; ".join(purged.out_of_reach)])


DEFAULT_BATCH_SIZE = 50


def enrich(
    surface: Surface, file: str | None = None, *, limit: int | None = None, with_model: bool = False, undo: bool = False
) -> None:
    """Print memories that lack cues, or store their cues."""
    if sum((file is not None, with_model, undo)) > 1:
        raise InvalidInput("give one of FILE, --with-model and --undo")
    with surface.memory() as mem:
        if undo:
            _report_cues(surface, mem.enrichment.undo(actor=surface.actor))
        elif with_model:
            with progress("Asking for cues") as report:
                found = mem.enrichment.run(limit, progress=report)
            _report_cues(surface, found)
        elif file is not None:
            _report_cues(surface, mem.enrichment.apply(_read_cues(file)))
        else:
            _print_batch(surface, mem, DEFAULT_BATCH_SIZE if limit is None else limit)


def _report_cues(surface: Surface, decision: "BulkDecision") -> None:
    """Print the result; exit 1 if cues were refused."""
    from engram.capture.enrichment import DECLINED

    surface.answer(bulk_data(decision, surface.now), lambda: draw_bulk(decision))
    hint_undo(surface, decision)
    if any(why != DECLINED for why in decision.left.values()):
        raise SystemExit(FAILED)


def _read_cues(file: str) -> dict[str, list[str]]:
    from engram.readers.data import parse_json_object, read_text

    text = text_or_stdin("-") if file == "-" else read_text(Path(file))
    cues = parse_json_object(text)
    if not all(isinstance(given, list) for given in cues.values()):
        raise InvalidInput('cues must be JSON like {"ID": ["cue", …], …}')
    return cues


def _print_batch(surface: Surface, mem: "Engram", limit: int) -> None:
    from engram.capture.enrichment import render_batch

    batch, count = mem.enrichment.next_batch(limit), mem.enrichment.count()
    data = {"without_cues": count, "memories": [memory_data(memory, surface.now) for memory in batch]}
    surface.answer(data, lambda: block(render_batch(batch)) if batch else None)
    lack = format_count(count, "memory lacks cues", "memories lack cues")
    surface.hint(f"engram: {lack}" + ("; `engram enrich FILE` stores them" if batch else ""))
