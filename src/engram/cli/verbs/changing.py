"""update, pin, feedback, reinforce, verify, undo: a memory changes."""

from typing import TYPE_CHECKING, Annotated, Any

from engram.cli.declared import Argument, Option
from engram.cli.surface import Surface, text_or_stdin
from engram.cli.verbs.options import Ref, Session, pairs
from engram.model.errors import Refused

if TYPE_CHECKING:
    from engram.model.memory import Memory

Statement = Annotated[str | None, Option("--statement", metavar="TEXT", help="What it says; - reads stdin.")]
Situation = Annotated[str | None, Option("--when", metavar="TEXT", help="The situation in which it matters.")]
Rationale = Annotated[str | None, Option("--why", metavar="TEXT", help="The reason behind it.")]
Context = Annotated[str | None, Option("--context", metavar="TEXT", help="Where it comes from.")]
Type = Annotated[str | None, Option("--type", "-t", metavar="TYPE", help="Its type.")]
Scope = Annotated[str | None, Option("--scope", "-s", metavar="SCOPE", help="Where it holds.")]
Status = Annotated[str | None, Option("--status", metavar="STATUS", help="active, dormant, archived, retired, …")]
Tag = Annotated[list[str] | None, Option("--tag", metavar="TAG", help="Its tags (repeatable; replaces them).")]
Domain = Annotated[str | None, Option("--domain", metavar="A/B", help="The domain it belongs to.")]
Confidence = Annotated[float | None, Option("--confidence", metavar="0–1", help="How sure it is.")]
Importance = Annotated[float | None, Option("--importance", metavar="0–1", help="How much it matters.")]
Name = Annotated[str | None, Option("--name", metavar="NAME", help="A name to call it by.")]
ValidFrom = Annotated[str | None, Option("--valid-from", metavar="TIME", help="True from this time on.")]
ValidUntil = Annotated[str | None, Option("--valid-until", metavar="TIME", help="True until this time.")]
Meta = Annotated[
    list[str] | None, Option("--meta", metavar="KEY=VALUE", help="Metadata of yours (repeatable; replaces it).")
]
Form = Annotated[
    list[str] | None,
    Option("--form", metavar="PART=TEXT", help="A part of its form, such as action=… (repeatable)."),
]
Reason = Annotated[str, Option("--reason", metavar="TEXT", help="Why, for the journal.")]
Unpin = Annotated[bool, Option("--unpin", help="Let it sink again.")]
Signal = Annotated[str, Argument("SIGNAL", "positive, negative or neutral.")]


def update(
    surface: Surface,
    ref: Ref,
    statement: Statement = None,
    when: Situation = None,
    why: Rationale = None,
    context: Context = None,
    type_: Type = None,
    scope: Scope = None,
    status: Status = None,
    tag: Tag = None,
    domain: Domain = None,
    confidence: Confidence = None,
    importance: Importance = None,
    name: Name = None,
    valid_from: ValidFrom = None,
    valid_until: ValidUntil = None,
    meta: Meta = None,
    form: Form = None,
    reason: Reason = "",
) -> None:
    """Change fields of a memory in place. `history` keeps what it was, `undo` takes it back."""
    given = {
        "situation": when, "rationale": why, "context": context, "type": type_, "status": status, "tags": tag,
        "domain": domain, "confidence": confidence, "importance": importance, "name": name, "valid_from": valid_from,
        "valid_until": valid_until, "metadata": pairs(meta) or None, "scope": scope,
        "statement": text_or_stdin(statement) if statement is not None else None,
    }  # fmt: skip
    fields: dict[str, Any] = {field: value for field, value in given.items() if value is not None}
    with surface.memory() as mem:
        before = mem.get(ref)
        check_allowed(before, fields)
        if form:
            fields["form"] = {**before.form, **{part: str(words) for part, words in pairs(form).items()}}
        _changed(surface, mem, before, mem.update(before.id, actor=surface.actor, reason=reason, **fields))


def check_allowed(before: "Memory", fields: dict[str, Any]) -> None:
    """What review decides is not decided here, and what needs a person there needs one here."""
    from engram.cli.person import IN_FORCE, lowers_tier, reason_for_person, require_person

    if fields.get("status") in IN_FORCE:
        if before.status == "candidate":
            raise Refused(f"{before.id} waits for review; `engram review {before.id} --approve` puts it in force")
        require_person(before, reason_for_person(before))
    if lowers_tier(before, fields.get("type", before.type)):
        require_person(before, f"as {fields['type']!r} it would be decided with less care than as {before.type!r}")


def pin(surface: Surface, ref: Ref, unpin: Unpin = False) -> None:
    """A pinned memory never sinks and is offered first."""
    with surface.memory() as mem:
        before = mem.get(ref)
        _changed(surface, mem, before, mem.pin(before.id, not unpin, actor=surface.actor))


def feedback(surface: Surface, ref: Ref, signal: Signal, session: Session = "") -> None:
    """Rate a memory. Praise lifts it in later answers, blame lowers it."""
    with surface.memory() as mem:
        before = mem.get(ref)
        _changed(surface, mem, before, mem.feedback(before.id, signal, session=session))


def reinforce(surface: Surface, ref: Ref) -> None:
    """Strengthen a memory by hand, so that it does not fade."""
    with surface.memory() as mem:
        before = mem.get(ref)
        _changed(surface, mem, before, mem.reinforce(before.id, actor=surface.actor))


def verify(surface: Surface, ref: Ref) -> None:
    """Confirm that a memory is still true. Its freshness begins anew."""
    with surface.memory() as mem:
        before = mem.get(ref)
        _changed(surface, mem, before, mem.verify(before.id, actor=surface.actor))


def undo(surface: Surface, ref: Ref) -> None:
    """Take the last decision back. That can be undone too."""
    with surface.memory() as mem:
        before = mem.get(ref)
        after = mem.undo(before.id, actor=surface.actor)
        _changed(surface, mem, before, after)


def _changed(surface: Surface, mem: Any, before: Any, after: Any) -> None:
    from engram.cli import drawing, past
    from engram.cli.plain_text import line
    from engram.cli.records import memory_data

    def draw() -> None:
        drawing.lines([(after.id, "bold cyan"), f"  {line(after.statement)}"])
        found = past.changes(before, after)
        past.draw_changes(found)
        if not found:
            drawing.lines([("    unchanged", "bright_black")])

    surface.answer(memory_data(after, mem.upkeep.clock()), draw)
