"""revise, lineage: a fact that changes, and every version it had."""

from typing import TYPE_CHECKING, Annotated, Any

from engram.cli.declared import Argument
from engram.cli.surface import Surface, text_or_stdin
from engram.cli.verbs.changing import (
    Confidence,
    Context,
    Domain,
    Form,
    Importance,
    Meta,
    Name,
    Rationale,
    Reason,
    Scope,
    Situation,
    Tag,
    Type,
    ValidFrom,
    ValidUntil,
    check_allowed,
)
from engram.cli.verbs.options import SeenFrom, pairs
from engram.model.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engram.model.memory import Memory

AnyVersion = Annotated[str, Argument("ID", "Id, name or alias of any version of the fact.")]
NewText = Annotated[str, Argument("[TEXT]", "What it says now; - reads it from stdin.")]
_CARRIED = frozenset({"id", "created", "lineage", "revision", "supersedes", "aliases", "activation", "feedback"})
"""Fields that differ between any two versions, and say nothing about the fact."""


def revise(
    surface: Surface,
    ref: AnyVersion,
    text: NewText = "",
    when: Situation = None,
    why: Rationale = None,
    context: Context = None,
    type_: Type = None,
    scope: Scope = None,
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
    """A new version of a fact. The one before is superseded, stays readable and answers questions about the past.

    What is not named is taken over from the version in force. `update` changes a memory in place instead.
    """
    given = {
        "statement": text_or_stdin(text) or None, "situation": when, "rationale": why, "context": context, "type": type_,
        "scope": scope, "tags": tag, "domain": domain, "confidence": confidence, "importance": importance, "name": name,
        "valid_from": valid_from, "valid_until": valid_until, "metadata": pairs(meta) or None,
    }  # fmt: skip
    fields: dict[str, Any] = {field: value for field, value in given.items() if value is not None}
    if not fields and not form:
        raise InvalidInput(
            "say what it is now: a text, or a field such as --valid-from; `engram revise --help` lists them"
        )
    with surface.memory() as mem:
        before = mem.get_current(ref)
        # The new version is in force, so what would need a person to put it there needs one here.
        check_allowed(before, {**fields, "status": "active"})
        if form:
            fields["form"] = {**before.form, **{part: str(words) for part, words in pairs(form).items()}}
        after = mem.revise(before.id, actor=surface.actor, reason=reason, **fields)
        _answer(surface, mem, before, after)


def _answer(surface: Surface, mem: Any, before: "Memory", after: "Memory") -> None:
    from engram.cli import drawing, past
    from engram.cli.plain_text import line
    from engram.cli.records import memory_data

    def draw() -> None:
        drawing.lines([(after.id, "bold cyan"), f"  {line(after.statement)}"])
        found = past.changes(before, after)
        past.draw_changes({name: pair for name, pair in found.items() if name.partition(".")[0] not in _CARRIED})

    surface.answer(memory_data(after, mem.upkeep.clock()), draw)
    if after.superseded_by:
        surface.hint(f"engram: it was true before {after.superseded_by}, which stays in force")
    else:
        surface.hint(f"engram: takes the place of {before.id}; `engram lineage {after.id}` shows every version")


def lineage(surface: Surface, ref: AnyVersion, scope: SeenFrom = None) -> None:
    """Every version of a fact, oldest first. The one in force is marked."""
    from engram.cli.records import memory_data

    with surface.memory() as mem:
        versions, now = mem.lineage(ref, scope=scope or None), mem.upkeep.clock()
        head = _in_force(mem.get_current(ref, scope=scope or None))
        data = [{**memory_data(version, now), "in_force": version.id == head} for version in versions]
        surface.answer(data, lambda: _draw(versions, head))
        if not head:
            surface.hint("engram: no version is in force")


def _in_force(memory: "Memory") -> str:
    """The id of the version in force; "" where the newest that is left is not."""
    from engram.store.lineages import IN_FORCE

    return memory.id if memory.status in IN_FORCE else ""


def _draw(versions: "Sequence[Memory]", head: str) -> None:
    from engram.cli import drawing
    from engram.cli.drawing import Column
    from engram.cli.plain_text import line, moment

    rows: list[list[drawing.Cell]] = []
    for version in versions:
        mark = ("●", "green") if version.id == head else ("○", "bright_black")
        since = moment(version.valid_from or version.when)
        held = f"{since} – {moment(version.valid_until) or '…'}"
        status = "in force" if version.id == head else version.status
        rows.append(
            [mark, (version.id, "cyan"), held, (status, drawing.state_style(version.status)), line(version.statement)]
        )
    names = [
        Column(""),
        Column("id"),
        Column("held", "bright_black"),
        Column("status"),
        Column("statement", grows=True),
    ]
    drawing.table(names, rows)
