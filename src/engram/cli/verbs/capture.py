"""capture: store an exchange as it was said, and remember its lasting facts."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

from engram.cli import display
from engram.cli.display import count, line
from engram.cli.parser import Option
from engram.cli.records import memory_data
from engram.cli.surface import Surface, text_or_stdin
from engram.cli.verbs.options import Session
from engram.model.errors import InvalidInput

if TYPE_CHECKING:
    from engram.capture.exchange import FactDecision
    from engram.capture.extraction import Extracted
    from engram.client import Engram

User = Annotated[str, Option("--user", metavar="TEXT", help="What the user said; - reads it from stdin.")]
Assistant = Annotated[str, Option("--assistant", metavar="TEXT", help="What was answered; - reads it from stdin.")]
Scope = Annotated[str, Option("--scope", "-s", metavar="SCOPE", help="Where it applies; `here` is this directory's.")]
Listen = Annotated[
    bool, Option("--listen", help="Also store what the assistant says about the user; it awaits review.")
]
Key = Annotated[str, Option("--key", metavar="KEY", help="Your own key, to tell two identical exchanges apart.")]
DryRun = Annotated[bool, Option("--dry-run", help="Only show what would be stored; nothing is written.")]
_OPERATIONS = {
    "ADD": "green", "UPDATE": "green", "SUPERSEDE": "magenta", "END": "magenta", "FORGET": "magenta",
    "NOOP": "bright_black",
}  # fmt: skip


def capture(
    surface: Surface,
    user: User = "",
    assistant: Assistant = "",
    session: Session = "",
    scope: Scope = "",
    listen: Listen = False,
    key: Key = "",
    dry_run: DryRun = False,
) -> None:
    """Store an exchange and remember its lasting facts. Every sentence gets a decision and its reason.

    The turns go to the session's ledger first; giving the same exchange again duplicates nothing. "Forget what I said about …"
    retires a memory, "I no longer …" ends one. Where a configured model does not answer, the facts found without it are
    stored and `engram worker` asks it again.
    """
    if user == assistant == "-":
        raise InvalidInput("stdin can be read only once: give --user or --assistant as text")
    asked, answered = text_or_stdin(user), text_or_stdin(assistant)
    if not asked.strip() and not answered.strip():
        raise InvalidInput("Give --user TEXT, --assistant TEXT, or both")
    with surface.memory() as mem:
        if dry_run:
            _foresee(surface, mem, asked, answered, listen)
        else:
            _keep(surface, mem, asked, answered, session=session, scope=scope, listen=listen, key=key)


def _foresee(surface: Surface, mem: "Engram", asked: str, answered: str, listen: bool) -> None:
    turns = [
        {"role": role, "content": content} for role, content in (("user", asked), ("assistant", answered)) if content
    ]
    found = mem.extract(turns, extract_assistant_response=listen)
    surface.answer(found, lambda: _draw_facts(found))
    surface.hint(
        "engram: nothing was written; without --dry-run these are compared with existing memories"
        if found
        else "engram: nothing here would be stored"
    )


def _draw_facts(found: "Sequence[Extracted]") -> None:
    for fact in found:
        display.lines([(f"{fact.confidence:.2f} ", "cyan"), (f"{fact.type}  ", "bold"), line(fact.statement)])
        display.lines([(f"     {fact.role}, characters {fact.span[0]}–{fact.span[1]}: {fact.reason}", "bright_black")])


def _keep(surface: Surface, mem: "Engram", asked: str, answered: str, *, listen: bool, **given: str) -> None:
    kept = mem.add_conversation(asked, answered, extract_assistant_response=listen, source=surface.actor, **given)
    surface.warn(kept.warnings)
    now = surface.now
    data = {
        "decisions": kept.decisions, "memories": [memory_data(memory, now) for memory in kept],
        "events": kept.events, "pending": kept.pending, "warnings": kept.warnings,
    }  # fmt: skip
    surface.answer(data, lambda: _draw_decisions(kept.decisions))
    if kept.pending:
        surface.hint("engram: `engram worker` asks the model again")
    waiting = sum(memory.status == "candidate" for memory in kept)
    if waiting:
        surface.hint(f"engram: {count(waiting, 'memory awaits', 'memories await')} review: `engram review`")
    if all(one.reason.startswith("skipped: ") for one in kept.decisions):
        surface.hint("engram: the turns are stored; they contain nothing to remember")


def _draw_decisions(decisions: "Sequence[FactDecision]") -> None:
    for one in decisions:
        style = _OPERATIONS.get(one.operation, "") if one.applied else "bright_black"
        display.lines(
            [(f"{one.operation:<10}", style), (f"{one.memory_id}  " if one.memory_id else "", "cyan"), line(one.fact)]
        )
        against = f" (↔ {one.target_id})" if one.target_id and one.target_id != one.memory_id else ""
        refused = (
            "" if one.applied or one.operation == "NOOP" else "awaits review: " if one.memory_id else "not applied: "
        )
        display.lines([(f"{'':<10}{refused}{one.reason}{against}", "bright_black")])
