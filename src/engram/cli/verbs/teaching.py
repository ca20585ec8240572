"""learn, remember, add: knowledge comes in."""

from typing import TYPE_CHECKING, Annotated, Any

from engram.cli.declared import Argument, Option
from engram.cli.surface import Surface, text_or_stdin
from engram.cli.verbs.options import Session, Text, pairs
from engram.model.errors import InvalidInput, Refused

if TYPE_CHECKING:
    from engram.client import Engram

TextOrForm = Annotated[
    str,
    Argument(
        "TEXT|feedback|fact",
        "The statement (- reads stdin); or the word feedback or fact, with that form's options.",
    ),
]
Scope = Annotated[str, Option("--scope", "-s", metavar="SCOPE", help="Where it holds; `here` is this directory's.")]
Type = Annotated[str, Option("--type", "-t", metavar="TYPE", help="preference, correction, convention, factual, …")]
Tag = Annotated[list[str] | None, Option("--tag", metavar="TAG", help="A tag (repeatable).")]
Domain = Annotated[str, Option("--domain", metavar="A/B", help="The domain it belongs to.")]
Situation = Annotated[str, Option("--when", metavar="TEXT", help="The situation in which it matters.")]
Rationale = Annotated[str, Option("--why", metavar="TEXT", help="The reason behind it.")]
Context = Annotated[str, Option("--context", metavar="TEXT", help="Where it comes from; kept, never searched.")]
Confidence = Annotated[float | None, Option("--confidence", metavar="0–1", help="How sure it is, from 0 to 1.")]
Importance = Annotated[float | None, Option("--importance", metavar="0–1", help="How much it matters, from 0 to 1.")]
Name = Annotated[str, Option("--name", metavar="NAME", help="A name to call it by.")]
Pinned = Annotated[bool, Option("--pin", help="Never let it sink; offer it first.")]
Occurred = Annotated[str | None, Option("--at", metavar="TIME", help="When it happened (ISO 8601).")]
ValidFrom = Annotated[str | None, Option("--valid-from", metavar="TIME", help="True from this time on.")]
ValidUntil = Annotated[str | None, Option("--valid-until", metavar="TIME", help="True until this time.")]
Meta = Annotated[list[str] | None, Option("--meta", metavar="KEY=VALUE", help="Metadata of yours (repeatable).")]
Behavior = Annotated[str, Option("--behavior", metavar="TEXT", help="Form feedback: what was done.")]
Impact = Annotated[str, Option("--impact", metavar="TEXT", help="Form feedback: what it led to.")]
Action = Annotated[str, Option("--action", metavar="TEXT", help="Form feedback: what to do instead, or again.")]
Subject = Annotated[str, Option("--subject", metavar="TEXT", help="Form fact: what it is about.")]
Predicate = Annotated[str, Option("--predicate", metavar="TEXT", help="Form fact: what is said of it.")]
Object = Annotated[str, Option("--object", metavar="TEXT", help="Form fact: the value.")]
Team = Annotated[bool, Option("--team", help="Keep it in this repository's .engram/, to be committed with the code.")]
Autonomous = Annotated[bool, Option("--autonomous", help="Nobody asked to keep this: the quality gates judge it too.")]

_FORMS = {"feedback": ("behavior", "impact", "action"), "fact": ("subject", "predicate", "object")}


def learn(
    surface: Surface,
    text: TextOrForm,
    scope: Scope = "",
    type_: Type = "",
    tag: Tag = None,
    domain: Domain = "",
    when: Situation = "",
    why: Rationale = "",
    context: Context = "",
    confidence: Confidence = None,
    importance: Importance = None,
    name: Name = "",
    pin: Pinned = False,
    at: Occurred = None,
    valid_from: ValidFrom = None,
    valid_until: ValidUntil = None,
    meta: Meta = None,
    session: Session = "",
    autonomous: Autonomous = False,
    behavior: Behavior = "",
    impact: Impact = "",
    action: Action = "",
    subject: Subject = "",
    predicate: Predicate = "",
    object_: Object = "",
) -> None:
    """Propose a memory. The gates say what became of it and why.

    The forms `learn feedback --behavior … --impact … --action …` and `learn fact --subject … --predicate … --object …`
    write the statement for you and keep its parts.
    """
    given = _fields(
        scope=scope, type=type_, tags=tag, domain=domain, situation=when, rationale=why, context=context, name=name,
        confidence=confidence, importance=importance, pinned=pin, occurred_at=at, valid_from=valid_from,
        valid_until=valid_until, metadata=pairs(meta),
    )  # fmt: skip
    parts = {
        "behavior": behavior, "impact": impact, "action": action,
        "subject": subject, "predicate": predicate, "object": object_,
    }  # fmt: skip
    given = _said(text, {part: words for part, words in parts.items() if words}) | given
    with surface.memory() as mem:
        source = "human" if surface.person else "agent"
        _decided(surface, mem, mem.learn(source=source, session=session, autonomous=autonomous, **given))


def remember(
    surface: Surface,
    text: Text,
    scope: Scope = "",
    type_: Type = "",
    tag: Tag = None,
    domain: Domain = "",
    when: Situation = "",
    why: Rationale = "",
    name: Name = "",
    pin: Pinned = False,
    meta: Meta = None,
    session: Session = "",
) -> None:
    """Keep someone's own word. It counts as a person's only when typed at a terminal."""
    given = _fields(
        scope=scope, type=type_, tags=tag, domain=domain, situation=when, rationale=why, name=name, pinned=pin,
        metadata=pairs(meta),
    )  # fmt: skip
    source = "human" if surface.person else "tool:remember"
    with surface.memory() as mem:
        refuse_while_paused(surface, mem)
        _decided(surface, mem, mem.remember(text_or_stdin(text), source=source, session=session, **given))


def add(
    surface: Surface,
    text: Text,
    scope: Scope = "",
    type_: Type = "",
    tag: Tag = None,
    domain: Domain = "",
    when: Situation = "",
    why: Rationale = "",
    context: Context = "",
    confidence: Confidence = None,
    importance: Importance = None,
    name: Name = "",
    pin: Pinned = False,
    at: Occurred = None,
    valid_from: ValidFrom = None,
    valid_until: ValidUntil = None,
    meta: Meta = None,
    team: Team = False,
) -> None:
    """Store what a trusted program says. Only size, secrets and exact duplicates are checked."""
    from engram.cli import cards
    from engram.cli.records import memory_data

    given = _fields(
        scope=scope, type=type_, tags=tag, domain=domain, situation=when, rationale=why, context=context, name=name,
        confidence=confidence, importance=importance, pinned=pin, occurred_at=at, valid_from=valid_from,
        valid_until=valid_until, metadata=pairs(meta),
    )  # fmt: skip
    with surface.memory() as mem:
        refuse_while_paused(surface, mem)
        source = "human" if surface.person else "manual"
        memory = mem.add(text_or_stdin(text), source=source, team=team, **given)
        now = mem.upkeep.clock()
        surface.answer(memory_data(memory, now), lambda: cards.listing([memory], now))


def refuse_while_paused(surface: Surface, mem: "Engram") -> None:
    """A pause holds for programs; a person at the terminal means what they type."""
    if mem.upkeep.paused and not surface.person:
        from engram.client import PAUSED

        raise Refused(f"{PAUSED}; until then only a person at a terminal adds to it")


def _fields(**given: Any) -> dict[str, Any]:
    return {name: value for name, value in given.items() if value not in ("", None, [], {}, False)}


def _said(text: str, parts: dict[str, str]) -> dict[str, Any]:
    """The statement, or the form that stands for it."""
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


def _decided(surface: Surface, mem: Any, decision: Any) -> None:
    from engram.cli import cards
    from engram.cli.exits import FAILED
    from engram.cli.records import decision_data

    surface.answer(decision_data(decision, mem.upkeep.clock()), lambda: cards.decision(decision))
    surface.hint(_next_step(decision))
    if decision.outcome.value == "REJECTED":
        raise SystemExit(FAILED)


def _next_step(decision: Any) -> str:
    match decision.outcome.value, decision.memory:
        case "CONTRADICTION", memory if memory is not None:
            return f"engram: both are kept; `engram review {memory.id}` settles it"
        case "PENDING", memory if memory is not None:
            return f"engram: `engram review {memory.id} --approve` puts it in force"
        case "REJECTED", _:
            return "engram: nothing was written"
    return ""
