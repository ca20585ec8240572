"""The tools as one table: the declared verb, its result, and the client's call behind each.

No decisions are made here. Two things are set here, because a caller may not claim them: the source of a learned memory
is `agent` or `tool:remember`, and a decision is the agent's, or the user's if the client asked its user.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, TypeVar

from engram.mcp import approval
from engram.mcp.approval import AGENT, PersonNeeded
from engram.mcp.results import (
    Briefed,
    Card,
    Changed,
    Ended,
    EnrichedBatch,
    Forgotten,
    Learned,
    MemoryList,
    Prepared,
    Rated,
    Recalled,
    Shown,
    Started,
    Timeline,
    ToolResult,
)
from engram.model.decision import Decision, Outcome
from engram.model.errors import InvalidInput, NotFound
from engram.model.lazy import dataclass
from engram.model.memory import FORMS, Memory
from engram.verbs import memories, retrieval, sessions
from engram.verbs.calls import decode_arguments, tool_arguments
from engram.verbs.declaration import ToolOffer, Verb

if TYPE_CHECKING:
    from engram.client import Engram
    from engram.mcp.calls import Call
    from engram.rules.scopes import OwnerScopes

REMEMBER = "tool:remember"
"""The source of a memory that an agent was asked to remember (spec 4)."""
NO_SUCH_SESSION = "session_id was ignored, since no session has that id; session_start starts one and returns its id"
_STATUSES: dict[str, Any] = {"current": None, "candidate": "candidate", "any": "any"}


Given = dict[str, Any]
"""The arguments of a call by the library's names: the given ones, and the tool's own defaults."""


@dataclass(frozen=True, slots=True)
class Tool:
    """One entry of the table: a declared verb, its result, and how it runs."""

    verb: Verb
    returns: type[ToolResult]
    run: Callable[["Call", Given], ToolResult]
    is_quiet_moment: bool = False
    """Whether the server may afterwards ask the client's model for cues (`engram.mcp.calls`)."""
    changes: Callable[[Given], Given] = lambda given: {}
    """The fields that a call changes, for carrying it out once a person agreed."""

    @property
    def offer(self) -> ToolOffer:
        """The declaration of the verb as a tool."""
        assert isinstance(self.verb.tool, ToolOffer)
        return self.verb.tool

    @property
    def name(self) -> str:
        """Its name."""
        return self.offer.name

    @property
    def arguments(self) -> dict[str, bool]:
        """The names of its arguments, each with whether it is required."""
        return tool_arguments(self.verb)

    def decode(self, given: Mapping[str, Any]) -> Given:
        """The arguments of a call. Raises `InvalidInput` that names each wrong one."""
        return decode_arguments(self.verb, given)

    def scopes(self, mem: "Engram", given: Given) -> "OwnerScopes | None":
        """The scopes of a call of this tool."""
        return call_scopes(mem, given)


Answer = TypeVar("Answer", Learned, Recalled, Prepared, Rated)


def _in_session(run: Callable[["Call", Given], Answer]) -> Callable[["Call", Given], Answer]:
    """A tool that may be called in a session.

    An unknown session id is ignored, and the answer reports it: a mistaken id loses nothing, and nothing is recorded
    under it.
    """

    @wraps(run)
    def run_in_session(call: "Call", given: Given) -> Answer:
        session = given.get("session", "")
        if not session or _has_session(call.mem, session, given):
            return run(call, given)
        answer = run(call, {**given, "session": ""})
        answer.warnings.append(NO_SUCH_SESSION)
        return answer

    return run_in_session


def _has_session(mem: "Engram", session: str, given: Given) -> bool:
    """Whether the session of a call exists for its caller."""
    try:
        mem.sessions.events(session, last=1, scopes=call_scopes(mem, given))
    except NotFound:
        return False
    return True


@_in_session
def _learn(call: "Call", given: Given) -> Learned:
    mem, fields = call.mem, dict(given)
    relation, autonomous = fields.pop("relation"), fields.get("autonomous", False)
    form = {part: fields[part] for parts in FORMS for part in parts if part in fields}
    _check_form(fields, form)
    if form:
        fields.setdefault("type", "feedback" if FORMS[0][0] in form else "fact")
    said = {"statement": fields.get("statement", ""), "type": given.get("type", "")}
    fields, placed = _resolve_scope(mem, fields, **said, situation=fields.get("situation", ""), form=form or None)
    # Clients send defaults along. `update` without a memory to update is therefore ignored; any other relation is a mistake.
    relation = relation if fields.get("supersedes") or relation != "update" else ""
    decision = mem.learn(source=AGENT, relation=relation, **fields)
    if call.can_ask and not autonomous:
        call.question = approval.about_decision(
            decision, partial(mem.store.get, scopes=visible_scopes(mem, given.get("scope", "")))
        )
    return Learned.of(decision, placed)


def _check_form(fields: dict[str, Any], form: dict[str, str]) -> None:
    """Refuse a call without content, with half a form, or with parts of both forms."""
    begun = [parts for parts in FORMS if any(part in form for part in parts)]
    if not begun and not fields.get("statement"):
        raise InvalidInput("learn: give a statement, or all parts of a form")
    if len(begun) > 1:
        raise InvalidInput(
            f"learn: these are parts of two forms; give those of one: {'; or '.join(', '.join(parts) for parts in FORMS)}"
        )
    missing = [part for parts in begun for part in ("situation", *parts) if not fields.get(part)]
    if missing:
        raise InvalidInput(f"learn: a form needs all its parts; missing: {', '.join(missing)}")


def _resolve_scope(mem: "Engram", fields: dict[str, Any], **said: Any) -> tuple[dict[str, Any], str]:
    """The fields of a new memory with its scope and the memories it supersedes, and a sentence on how the scope was inferred."""
    if fields.get("scope"):
        return fields, ""
    if fields.get("supersedes"):
        from engram.review.lineage import find_superseded

        return {**fields, "supersedes": find_superseded(mem.lineages, fields["supersedes"], visible_scopes(mem))}, ""
    scope, placed = mem.infer_scope(**said)
    return {**fields, "scope": scope}, placed


@_in_session
def _remember(call: "Call", given: Given) -> Learned:
    from engram.store.states import is_paused

    mem = call.mem
    if is_paused(mem.store):
        from engram.client import PAUSED_MESSAGE

        return Learned.of(Decision(outcome=Outcome.REJECTED, reason=PAUSED_MESSAGE.rstrip("."), gate="paused"))
    fields, placed = _resolve_scope(mem, given, statement=given["statement"], type=given["type"])
    decision = mem.remember(source=REMEMBER, relation="update" if given.get("supersedes") else "", **fields)
    if call.can_ask:
        call.question = approval.about_decision(
            decision, partial(mem.store.get, scopes=visible_scopes(mem, given.get("scope", "")))
        )
    return Learned.of(decision, placed)


def _changes(given: Given) -> Given:
    return {name: value for name, value in given.items() if name not in ("ref", "scope")}


def _update(call: "Call", given: Given) -> Changed:
    mem, changes = call.mem, _changes(given)
    if changes.keys() <= {"reason"}:
        raise InvalidInput("update: nothing to change: give at least one field, and not an empty one")
    owner = caller_scopes(mem, given.get("scope", ""))
    known = mem.get(given["ref"], scope=owner)
    if call.can_ask and (question := approval.about_change(known, changes)):
        raise PersonNeeded(question)
    return approval.update_memory(mem, known, changes, AGENT, owner)


@_in_session
def _recall(call: "Call", given: Given) -> Recalled:
    mem, asked = call.mem, {name: value for name, value in given.items() if name not in ("question", "sources")}
    question = given["question"]
    if not question:
        limit = given.get("limit", 10)
        return Recalled.with_sources(mem.recall_context(limit=limit, progress=call.step, cancelled=call.is_cancelled))
    found = mem.recall(question, **{name: value for name, value in asked.items() if value != []})
    if not given.get("sources"):
        return Recalled.of(found)
    context = mem.recall_context(
        question, wordings=given.get("wordings", ()), memories=found, progress=call.step, cancelled=call.is_cancelled
    )
    return Recalled.with_sources(context, found)


def _prepare(call: "Call", given: Given) -> Briefed:
    return Briefed.of(call.mem.prepare(progress=call.step, cancelled=call.is_cancelled, **given))


@_in_session
def _feedback(call: "Call", given: Given) -> Rated:
    return Rated.of(call.mem.feedback(**{**given, "scope": caller_scopes(call.mem, given.get("scope", ""))}))


def _forget(call: "Call", given: Given) -> Forgotten:
    mem, reason = call.mem, given.get("reason", "")
    owner = caller_scopes(mem, given.get("scope", ""))
    known = mem.get(given["ref"], scope=owner)
    if call.can_ask and (question := approval.about_forgetting(known, reason)):
        raise PersonNeeded(question)
    retired = mem.forget(known.id, actor=AGENT, reason=reason, scope=owner)
    assert isinstance(retired, Memory)
    return Forgotten(memory=Card.of(retired))


def _show(call: "Call", given: Given) -> Shown:
    return Shown.of(call.mem.explain_memory(given["ref"], scope=caller_scopes(call.mem, given.get("scope", ""))))


def _list(call: "Call", given: Given) -> MemoryList:
    limit, status = given["limit"], _STATUSES[given["status"]]
    filters = {name: value for name, value in given.items() if value != []}
    scope = visible_scopes(call.mem, given.get("scope", ""))
    # One more than requested, to know whether there are more.
    found = call.mem.list(**{**filters, "limit": limit + 1, "scope": scope, "status": status})
    return MemoryList.of(found, limit)


def caller_scopes(mem: "Engram", scope: str = "") -> Sequence[str]:
    """The caller's scopes: those of the owner it names, or for an agent of this directory the project's, the user's and the global ones."""
    return [scope] if scope else mem.scopes_for(scope=mem.scope_here()) or ()


def call_scopes(mem: "Engram", given: Given) -> "OwnerScopes | None":
    """The scopes seen from here, and from the scope that a call names, if any."""
    named = given.get("scope", "")
    return mem.scopes_for(scope=[*caller_scopes(mem), *([named] if named else [])])


def visible_scopes(mem: "Engram", scope: str = "") -> "OwnerScopes | None":
    """The scopes that a caller sees, and those it may change."""
    return mem.scopes_for(scope=caller_scopes(mem, scope))


def _timeline(call: "Call", given: Given) -> Timeline:
    return Timeline.of(call.mem.timeline(**given))


def _session_start(call: "Call", given: Given) -> Started:
    mem = call.mem
    session = mem.session(**{**given, "budget": given["budget"] or None})
    # Warnings for the owner (a team store not trusted yet, a file that does not parse) are given once, here.
    warnings = list(dict.fromkeys([*session.injection.warnings, *mem.store.warnings, *mem.scope_notices()]))
    return Started.of(session.injection, session_id=session.id, warnings=warnings)


def _session_end(call: "Call", given: Given) -> Ended:
    scopes = visible_scopes(call.mem, given.get("scope", ""))
    return Ended.of(call.mem.sessions.end(given["session_id"], given.get("summary", ""), scopes=scopes))


def _enrich(call: "Call", given: Given) -> EnrichedBatch:
    enrichment, scopes, limit = call.mem.enrichment, visible_scopes(call.mem), given["limit"]
    applied = enrichment.apply(given.get("cues", {}), scopes=scopes)
    batch = enrichment.next_batch(limit, scopes=scopes) if limit else []
    return EnrichedBatch.of(applied, batch, enrichment.count(scopes=scopes))


TOOLS: dict[str, Tool] = {
    tool.name: tool
    for tool in (
        Tool(retrieval.RECALL, Recalled, _recall),
        Tool(retrieval.PREPARE, Briefed, _prepare),
        Tool(memories.LEARN, Learned, _learn),
        Tool(memories.REMEMBER, Learned, _remember),
        Tool(memories.UPDATE, Changed, _update, changes=_changes),
        Tool(memories.FEEDBACK, Rated, _feedback),
        Tool(memories.FORGET, Forgotten, _forget, changes=lambda given: {"reason": given.get("reason", "")}),
        Tool(retrieval.SHOW, Shown, _show),
        Tool(retrieval.LIST, MemoryList, _list),
        Tool(retrieval.TIMELINE, Timeline, _timeline),
        Tool(memories.ENRICH, EnrichedBatch, _enrich),
        Tool(sessions.START, Started, _session_start),
        Tool(sessions.END, Ended, _session_end, is_quiet_moment=True),
    )
}
"""Every tool by its name, in the order they are listed."""
