"""learn, remember, add: store a new memory."""

from typing import TYPE_CHECKING, Annotated, Any

from engram.cli import views
from engram.cli.parser import Argument, Option
from engram.cli.records import decision_data, memory_data, superseding_command
from engram.cli.surface import FAILED, Surface, text_or_stdin
from engram.cli.verbs.options import NewMemory, Session, Text
from engram.model.decision import Decision
from engram.model.errors import InvalidInput, Refused
from engram.model.memory import MAY_SUPERSEDE, Memory

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

Supersedes = Annotated[
    list[str] | None,
    Option("--supersedes", metavar="ID", help="A memory this one replaces, by id or name (repeatable)."),
]
Relation = Annotated[
    str,
    Option(
        "--relation",
        metavar="HOW",
        help="With --supersedes: how it relates to those memories instead: update (the default), contradiction, "
        "refinement, same or different.",
    ),
]

_FORMS = {"feedback": ("behavior", "impact", "action"), "fact": ("subject", "predicate", "object")}


def learn(
    surface: Surface,
    text: TextOrForm,
    memory: NewMemory,
    session: Session = "",
    autonomous: Autonomous = False,
    supersedes: Supersedes = None,
    relation: Relation = "",
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
    given |= {"supersedes": supersedes} if supersedes else {}
    with surface.memory() as mem:
        source = "human" if surface.person else "agent"
        _decided(surface, mem.learn(source=source, session=session, autonomous=autonomous, relation=relation, **given))


def remember(
    surface: Surface,
    text: Text,
    memory: NewMemory,
    session: Session = "",
    supersedes: Supersedes = None,
    relation: Relation = "",
) -> None:
    """Store something a person said. It counts as a person's only when typed at a terminal."""
    source = "human" if surface.person else "tool:remember"
    given = memory.given() | ({"supersedes": supersedes} if supersedes else {})
    with surface.memory() as mem:
        refuse_while_paused(surface, mem)
        _decided(surface, mem.remember(text_or_stdin(text), source=source, session=session, relation=relation, **given))


def add(surface: Surface, text: Text, memory: NewMemory, team: Team = False) -> None:
    """Store a memory without the gates of quality: at a terminal as it is, otherwise what `learn` would let wait waits for review.

    If it probably replaces an older memory, both stay current and `engram review` asks; if that is certain, it replaces it. Without
    a terminal it is an agent's word: sensitive statements, instructions and contradictions wait, and --pin is refused.
    """
    given = memory.given()
    if memory.pin and not surface.person:
        raise Refused("only a person adds a pinned memory: run this at a terminal, or leave --pin out")
    with surface.memory() as mem:
        refuse_while_paused(surface, mem)
        source = "human" if surface.person else "agent"
        added = mem.add(text_or_stdin(text), source=source, team=team, **given)
        now = surface.now
        surface.answer(memory_data(added, now), lambda: views.listing([added], now))
        surface.hint(_replaced(added))


def _replaced(added: Memory) -> str:
    """What an added memory replaced or may replace, or that it waits."""
    if added.status == "candidate":
        return f"engram: PENDING: it waits for review; `engram show {added.id}` says why, `engram review {added.id}` decides"
    if added.supersedes:
        return f"engram: it superseded {', '.join(added.supersedes)}; `engram undo {added.id}` restores that"
    older = [link.target for link in added.associations if link.type == MAY_SUPERSEDE]
    return f"engram: it may supersede {older[0]}; `engram review {added.id}` decides" if older else ""


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
    memory = decision.memory
    if memory is None:
        return "engram: nothing was written" if decision.outcome.value == "REJECTED" else ""
    if not decision.related:
        waits = memory.status == "candidate"
        return f"engram: `engram review {memory.id} --approve` activates it" if waits else ""
    older = decision.related[0]
    if memory.status != "candidate":
        return f"engram: if it is out of date, `{superseding_command(decision, older)}` replaces {older.memory.id}"
    if older.memory.status == "candidate":
        return (
            f"engram: both wait for review: `engram review {memory.id} --approve` activates this one, "
            f"`engram review {older.memory.id} --reject` turns the older one down"
        )
    return f"engram: both are stored, and the older one stays current: {_ways_out(memory, older.memory)}"


def _ways_out(memory: Memory, older: Memory) -> str:
    """What lets a memory become active that waits beside an older one."""
    from engram.review.conflicts import waits_alone

    keep = f"`engram review {memory.id} --keep new` (or old, both, merge) decides between them"
    return f"{keep}; `engram forget {older.id}` also activates it" if waits_alone(memory) else keep
