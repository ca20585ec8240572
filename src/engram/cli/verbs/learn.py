"""learn, remember, add: store a new memory."""

from typing import TYPE_CHECKING, Annotated, Any

from engram.cli import views
from engram.cli.parser import Argument, Option
from engram.cli.records import decision_data, memory_data
from engram.cli.surface import FAILED, Surface, text_or_stdin
from engram.cli.verbs.options import NewMemory, Session, Text
from engram.model.decision import Decision
from engram.model.errors import InvalidInput, Refused

if TYPE_CHECKING:
    from engram.client import Engram

TextOrForm = Annotated[
    str,
    Argument(
        "TEXT|feedback|fact",
        "The statement (- reads stdin), or the word feedback or fact with the options of that form.",
    ),
]
Behavior = Annotated[str, Option("--behavior", metavar="TEXT", help="Form feedback: what was done.")]
Impact = Annotated[str, Option("--impact", metavar="TEXT", help="Form feedback: what it led to.")]
Action = Annotated[str, Option("--action", metavar="TEXT", help="Form feedback: what to do instead, or again.")]
Subject = Annotated[str, Option("--subject", metavar="TEXT", help="Form fact: what it is about.")]
Predicate = Annotated[str, Option("--predicate", metavar="TEXT", help="Form fact: what is stated about it.")]
Object = Annotated[str, Option("--object", metavar="TEXT", help="Form fact: the value.")]
Team = Annotated[bool, Option("--team", help="Store it in this repository's .engram/, to be committed with the code.")]
Autonomous = Annotated[
    bool, Option("--autonomous", help="Nobody asked to store this: the quality gates judge it, too.")
]

_FORMS = {"feedback": ("behavior", "impact", "action"), "fact": ("subject", "predicate", "object")}


def learn(
    surface: Surface,
    text: TextOrForm,
    memory: NewMemory,
    session: Session = "",
    autonomous: Autonomous = False,
    behavior: Behavior = "",
    impact: Impact = "",
    action: Action = "",
    subject: Subject = "",
    predicate: Predicate = "",
    object_: Object = "",
) -> None:
    """Propose a memory. The gates decide what happens to it, and say why.

    The forms `learn feedback --behavior … --impact … --action …` and `learn fact --subject … --predicate … --object …`
    write the statement for you and store its parts.
    """
    parts = {
        "behavior": behavior, "impact": impact, "action": action,
        "subject": subject, "predicate": predicate, "object": object_,
    }  # fmt: skip
    given = _statement(text, {part: words for part, words in parts.items() if words}) | memory.given()
    with surface.memory() as mem:
        source = "human" if surface.person else "agent"
        _decided(surface, mem.learn(source=source, session=session, autonomous=autonomous, **given))


def remember(surface: Surface, text: Text, memory: NewMemory, session: Session = "") -> None:
    """Store something a person said. It counts as a person's only when typed at a terminal."""
    source = "human" if surface.person else "tool:remember"
    given = memory.given()
    with surface.memory() as mem:
        refuse_while_paused(surface, mem)
        _decided(surface, mem.remember(text_or_stdin(text), source=source, session=session, **given))


def add(surface: Surface, text: Text, memory: NewMemory, team: Team = False) -> None:
    """Store what a trusted program says. Only size, secrets and exact duplicates are checked."""
    given = memory.given()
    with surface.memory() as mem:
        refuse_while_paused(surface, mem)
        source = "human" if surface.person else "manual"
        added = mem.add(text_or_stdin(text), source=source, team=team, **given)
        now = surface.now
        surface.answer(memory_data(added, now), lambda: views.listing([added], now))


def refuse_while_paused(surface: Surface, mem: "Engram") -> None:
    """A pause applies to programs; a person at the terminal may still add."""
    if mem.store.paused and not surface.person:
        raise Refused(
            "Engram is paused; `engram resume` resumes it. Until then only a person at a terminal can add to it"
        )


def _statement(text: str, parts: dict[str, str]) -> dict[str, Any]:
    """The statement, or the form that replaces it."""
    if not parts and text not in _FORMS:
        return {"statement": text_or_stdin(text)}
    if text not in _FORMS:
        raise InvalidInput(
            f"--{next(iter(parts))} belongs to a form: write `engram learn feedback …` or `learn fact …`"
        )
    needed = _FORMS[text]
    foreign = [part for part in parts if part not in needed]
    if foreign:
        raise InvalidInput(f"`learn {text}` takes --{', --'.join(needed)}; --{foreign[0]} belongs to the other form")
    missing = [part for part in (needed[:1] if text == "feedback" else needed) if part not in parts]
    if missing:
        raise InvalidInput(f"`learn {text}` needs --{', --'.join(missing)}")
    return {"form": parts, "type": text}


def _decided(surface: Surface, decision: Decision) -> None:
    surface.answer(decision_data(decision, surface.now), lambda: views.decision(decision))
    surface.hint(_next_step(decision))
    if decision.outcome.value == "REJECTED":
        raise SystemExit(FAILED)


def _next_step(decision: Decision) -> str:
    memory_id = decision.memory.id if decision.memory is not None else ""
    steps = {
        "CONTRADICTION": f"engram: both are stored; `engram review {memory_id}` decides between them",
        "PENDING": f"engram: `engram review {memory_id} --approve` activates it",
        "REJECTED": "engram: nothing was written",
    }
    return steps.get(decision.outcome.value, "")
