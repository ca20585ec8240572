"""learn, remember, add: store a new memory."""

from typing import TYPE_CHECKING, Any

from engram.cli import display, views
from engram.cli.display import line
from engram.cli.records import decision_data, decision_lines, memory_data, superseding_command
from engram.cli.surface import FAILED, Surface, text_or_stdin
from engram.cli.verbs.options import check_claim, memory_fields
from engram.model.decision import Decision, Outcome
from engram.model.errors import InvalidInput, Refused
from engram.model.lazy import replace
from engram.model.memory import MAY_SUPERSEDE, Memory
from engram.model.types import FORM_PARTS, check_complete

if TYPE_CHECKING:
    from engram.client import Engram


_KEYS = {"u": "update", "r": "replace", "b": "keep-both", "s": "skip", "": "skip"}
_MOST_QUESTIONS = 3
"""Maximum attempts to ask a question; without a valid answer, nothing is stored."""


def learn(
    surface: Surface,
    statement: str,
    *,
    claimed: str | None = None,
    autonomous: bool = False,
    relation: str = "",
    on_conflict: str = "",
    not_a_secret: bool = False,
    **fields: Any,
) -> None:
    """Propose a memory, and print what the gates decided."""
    from engram.capture.learn import open_conflicts

    check_claim(claimed)
    session, situation = fields.pop("session", ""), fields.get("situation") or ""
    parts = {part: fields.pop(part) for form in FORM_PARTS.values() for part in form if part in fields}
    given = _statement(statement, parts, situation, claimed) | memory_fields(fields)
    source = "human" if surface.person and claimed != "agent" else "agent"
    with surface.memory() as mem:
        if not_a_secret:
            _allow_values(surface, mem, given)
        placed = "" if given.get("supersedes") else _infer_scope(mem, given, parts)

        def propose(choice: str) -> Decision:
            return mem.learn(
                source=source, session=session, autonomous=autonomous, relation=relation, on_conflict=choice, **given
            )

        asks = statement in FORM_PARTS and surface.person and not (on_conflict or autonomous or relation)
        decision = propose("skip" if asks else on_conflict)
        if asks and open_conflicts(decision):
            choice = _ask_conflict_choice(surface, decision)
            if choice == "skip" and not surface.as_json:
                surface.say(f"engram: skipped: {line(decision.reason)}")
                return
            decision = propose(choice) if choice != "skip" else decision
        if claimed == "human" and source != "human":
            surface.hint("engram: without a terminal nobody can speak as a person: it is stored as an agent's word")
        _report_decision(surface, decision, in_form=statement in FORM_PARTS)
        _report_place(surface, decision, placed)


def _infer_scope(mem: "Engram", given: dict[str, Any], form: dict[str, str]) -> str:
    """Choose the scope if none is given. Returns why it is this repository's, or "" if it is everyone's."""
    if "scope" in given:
        return ""
    said, kind, situation = (str(given.get(name, "")) for name in ("statement", "type", "situation"))
    scope, placed = mem.infer_scope(said, type=kind, situation=situation, form=form or None)
    if placed:
        given["scope"] = scope
    return placed


def _report_place(surface: Surface, decision: Decision, placed: str) -> None:
    if placed and decision.outcome.value != "REJECTED" and decision.memory is not None:
        scope = line(decision.memory.scope)
        surface.hint(f"engram: stored for {scope} alone: {line(placed)}; `--scope global` stores it for all projects")


def _ask_conflict_choice(surface: Surface, found: Decision) -> str:
    """The person's choice at the terminal about a contradiction; without an answer, skip."""
    from engram.capture.learn import ON_CONFLICT

    contradiction = replace(found, outcome=Outcome.CONTRADICTION)
    for row in decision_lines(contradiction):
        surface.say(row)
    for _ in range(_MOST_QUESTIONS):
        answer = (surface.ask("[u]pdate the existing one, [r]eplace it, keep [b]oth, or [s]kip? ") or "").lower()
        if choice := answer if answer in ON_CONFLICT else _KEYS.get(answer):
            return choice
        surface.say("engram: type u, r, b or s")
    return "skip"


def remember(
    surface: Surface,
    statement: str,
    *,
    session: str = "",
    relation: str = "",
    not_a_secret: bool = False,
    **fields: Any,
) -> None:
    """Store a person's statement, and print what the gates decided."""
    source = "human" if surface.person else "tool:remember"
    given = {"statement": text_or_stdin(statement), **memory_fields(fields)}
    with surface.memory() as mem:
        refuse_while_paused(surface, mem)
        if not_a_secret:
            _allow_values(surface, mem, given)
        placed = "" if given.get("supersedes") else _infer_scope(mem, given, {})
        decision = mem.remember(given.pop("statement"), source=source, session=session, relation=relation, **given)
        _report_decision(surface, decision)
        _report_place(surface, decision, placed)


def add(surface: Surface, statement: str, *, team: bool = False, not_a_secret: bool = False, **fields: Any) -> None:
    """Store a memory without the quality gates, and print it."""
    given = memory_fields(fields)
    if given.get("pinned") and not surface.person:
        raise Refused("only a person adds a pinned memory: run this at a terminal, or leave --pin out")
    with surface.memory() as mem:
        refuse_while_paused(surface, mem)
        source = "human" if surface.person else "agent"
        statement = text_or_stdin(statement)
        if not_a_secret:
            _allow_values(surface, mem, {"statement": statement, **given})
        added = mem.add(statement, source=source, team=team, **given)
        now = surface.now
        surface.answer(memory_data(added, now), lambda: views.listing([added], now))
        surface.hint(_replacement_hint(added))


def _allow_values(surface: Surface, mem: "Engram", given: dict[str, Any]) -> None:
    """Record that a person declares the suspected secrets in these fields harmless."""
    from engram.gates.secrets.exemptions import allow_values
    from engram.gates.secrets.scan import describe_words, find_secrets

    if not surface.person:
        raise Refused("only a person decides what is not a secret: run this at a terminal, or leave --not-a-secret out")
    texts = [text for value in given.values() for text in (value if isinstance(value, list) else [value])]
    for text in texts:
        if isinstance(text, str) and (found := find_secrets(text)):
            surface.hint(f"engram: not a secret from now on: {line(describe_words(text, found))}")
            allow_values(mem.store, [text[secret.start : secret.end] for secret in found], surface.now)


def _replacement_hint(added: Memory) -> str:
    """What an added memory replaced or may replace, or that it waits."""
    if added.status == "candidate":
        return f"engram: PENDING: it waits for review; `engram show {added.id}` says why, `engram review {added.id}` decides"
    if added.supersedes:
        return f"engram: it superseded {', '.join(added.supersedes)}; `engram undo {added.id}` restores that"
    older = [link.target for link in added.associations if link.type == MAY_SUPERSEDE]
    return f"engram: it may supersede {older[0]}; `engram review {added.id}` decides" if older else ""


def refuse_while_paused(surface: Surface, mem: "Engram") -> None:
    """Refuse programs while Engram is paused; a person at the terminal may still add."""
    from engram.store.states import is_paused

    if is_paused(mem.store) and not surface.person:
        raise Refused(
            "Engram is paused; `engram resume` resumes it. Until then only a person at a terminal can add to it"
        )


def _statement(text: str, parts: dict[str, str], situation: str, claimed: str | None) -> dict[str, Any]:
    """The statement, or the form that replaces it. Raises `InvalidInput` naming every missing option of a form."""
    if text not in FORM_PARTS:
        if foreign := [*parts, *(["source"] if claimed is not None else [])]:
            raise InvalidInput(f"--{foreign[0]} belongs to a form: write `engram learn feedback …` or `learn fact …`")
        return {"statement": text_or_stdin(text)}
    needed = FORM_PARTS[text]
    if foreign := [part for part in parts if part not in needed]:
        raise InvalidInput(f"`learn {text}` takes --{', --'.join(needed)}; --{foreign[0]} belongs to the other form")
    check_complete({**dict.fromkeys(needed, ""), **parts}, situation, named="--{}")
    return {**parts, "type": text}


def _report_decision(surface: Surface, decision: Decision, *, in_form: bool = False) -> None:
    def draw() -> None:
        if in_form:
            display.write("\n".join(decision_lines(decision)))
        else:
            views.decision(decision)

    surface.answer(decision_data(decision, surface.now), draw)
    if in_form and decision.reason and (decision.memory is not None or decision.other is not None):
        surface.hint(f"engram: {decision.gate}: {line(decision.reason)}")
    if in_form and decision.outcome.value == "DUPLICATE" and decision.gate == "near" and decision.memory is not None:
        name = line(decision.memory.name or decision.memory.id)
        surface.hint(f"engram: if it says something else, `--supersedes {name} --relation different` stores it too")
    for warning in decision.warnings:
        surface.hint(f"engram: warning: {warning}")
    if not in_form or (decision.memory is not None and decision.memory.status == "candidate"):
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
    """Ways to activate a memory that waits next to an older one."""
    from engram.decisions.versions import waits_alone

    keep = f"`engram review {memory.id} --keep new` (or old, both, merge) decides between them"
    return f"{keep}; `engram forget {older.id}` also activates it" if waits_alone(memory) else keep
