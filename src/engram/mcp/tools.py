"""The tools as one table: arguments, result, effect on the store, and the client's verb behind each.

Nothing is decided here. Two things are set here, because a caller may not claim them: what is learned comes from `agent` or
`tool:remember`, and a decision is the agent's; only an answer that the client asked its user for is a person's.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import ValidationError

from engram.mcp import approval, arguments
from engram.mcp.approval import AGENT, PersonNeeded
from engram.mcp.cards import Card
from engram.mcp.results import (
    Briefed,
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
from engram.store.states import is_paused
from engram.verbs import reading, writing
from engram.verbs.declaration import ADDS, READS, Effect, Verb
from engram.verbs.declaration import Tool as Offer
from engram.verbs.tool_input import decode_arguments, tool_arguments

if TYPE_CHECKING:
    from engram.client import Engram
    from engram.mcp.calls import Call
    from engram.rules.scopes import OwnerScopes

REMEMBER = "tool:remember"
"""The source of what an agent was asked to remember (spec 4)."""
NO_SUCH_SESSION = "session_id was ignored, since no session has that id; session_start starts one and returns its id"
_STATUSES: dict[str, Any] = {"current": None, "candidate": "candidate", "any": "any"}


@dataclass(frozen=True, slots=True)
class Tool:
    """One entry of the table."""

    name: str
    title: str
    description: str
    takes: "type[arguments.Arguments] | Verb"
    returns: type[ToolResult]
    run: Callable[["Call", Any], ToolResult]
    effect: Effect = ADDS
    not_found: str = ""
    """What to do when nothing has the given id."""
    is_quiet_moment: bool = False
    """Whether the server may then ask the client's model for cues (`engram.mcp.client_model`)."""
    changes: Callable[[Any], dict[str, Any]] = lambda given: {}
    """The fields that a call changes, for what is carried out once a person agreed."""

    @classmethod
    def of(cls, verb: Verb, returns: type[ToolResult], run: Callable[["Call", Any], ToolResult]) -> "Tool":
        """The tool of a declared verb."""
        offer = verb.tool
        assert isinstance(offer, Offer)
        return cls(offer.name, offer.title, offer.description, verb, returns, run, offer.effect, offer.not_found)

    @property
    def arguments(self) -> dict[str, bool]:
        """The names of its arguments, each with whether it is required."""
        if isinstance(self.takes, Verb):
            return tool_arguments(self.takes)
        return {name: field.is_required() for name, field in self.takes.model_fields.items()}

    def decode(self, given: Mapping[str, Any]) -> Any:
        """The arguments of a call. Raises `InvalidInput` that names each wrong one, never its value, which may be a secret."""
        if isinstance(self.takes, Verb):
            return decode_arguments(self.takes, given)
        try:
            return self.takes.model_validate(given)
        except ValidationError as error:
            raise InvalidInput(_wrong(error, self.takes)) from None

    def scopes(self, mem: "Engram", given: Any) -> "OwnerScopes | None":
        """The scopes of a call of this tool."""
        return call_scopes(mem, given)


def _wrong(error: ValidationError, takes: type[arguments.Arguments]) -> str:
    unknown = f"unknown argument; the arguments are {', '.join(takes.model_fields)}"
    return "; ".join(
        ": ".join(
            filter(
                None, [".".join(map(str, part["loc"])), unknown if part["type"] == "extra_forbidden" else part["msg"]]
            )
        )
        for part in error.errors(include_url=False, include_input=False, include_context=False)
    )


Answer = TypeVar("Answer", Learned, Recalled, Prepared, Rated)


def _in_session(run: Callable[["Call", Any], Answer]) -> Callable[["Call", Any], Answer]:
    """A tool that may be called in a session. An id that no session has is ignored, and the answer says so: nothing is lost by a
    mistaken id, and nothing is recorded under it.
    """

    @wraps(run)
    def checked(call: "Call", given: Any) -> Answer:
        session = given.get("session", "") if isinstance(given, dict) else given.session_id
        if not session or _has_session(call.mem, given, session):
            return run(call, given)
        without = {**given, "session": ""} if isinstance(given, dict) else given.model_copy(update={"session_id": ""})
        answer = run(call, without)
        answer.warnings.append(NO_SUCH_SESSION)
        return answer

    return checked


def _has_session(mem: "Engram", given: Any, session: str) -> bool:
    """Whether the session of a call exists for its caller."""
    try:
        mem.sessions.events(session, last=1, scopes=call_scopes(mem, given))
    except NotFound:
        return False
    return True


def _form(given: arguments.FormArguments) -> dict[str, str]:
    """The parts of a form that the arguments give; a memory keeps those that a change does not name."""
    return {part: said for parts in FORMS for part in parts if (said := getattr(given, part))}


def _place(
    mem: "Engram", given: arguments.Learn | arguments.RememberArguments, **said: Any
) -> tuple[dict[str, Any], str]:
    """The scope of a new memory, the memories it supersedes, and a sentence on how the scope was inferred."""
    if given.scope:
        return {"scope": given.scope, "supersedes": given.supersedes}, ""
    if given.supersedes:
        from engram.review.lineage import find_superseded

        return {"supersedes": find_superseded(mem.lineages, given.supersedes, seen(mem))}, ""
    scope, placed = mem.infer_scope(**said)
    return {"scope": scope}, placed


@_in_session
def _learn(call: "Call", given: dict[str, Any]) -> Learned:
    mem, fields = call.mem, dict(given)
    relation, autonomous = fields.pop("relation"), fields.get("autonomous", False)
    form = {part: fields[part] for parts in FORMS for part in parts if part in fields}
    _check_form(fields, form)
    if form:
        fields.setdefault("type", "feedback" if FORMS[0][0] in form else "fact")
    said = {"statement": fields.get("statement", ""), "type": given.get("type", "")}
    fields, placed = _placed(mem, fields, **said, situation=fields.get("situation", ""), form=form or None)
    # Clients send defaults along: `update` without a memory to update says nothing, any other relation is a mistake.
    relation = relation if fields.get("supersedes") or relation != "update" else ""
    decision = mem.learn(source=AGENT, relation=relation, **fields)
    if call.can_ask and not autonomous:
        call.question = approval.about_decision(
            decision, partial(mem.store.get, scopes=seen(mem, given.get("scope", "")))
        )
    return Learned.of(decision, placed)


def _check_form(fields: dict[str, Any], form: dict[str, str]) -> None:
    """Refuse a call that says nothing, half of a form, or parts of both."""
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


def _placed(mem: "Engram", fields: dict[str, Any], **said: Any) -> tuple[dict[str, Any], str]:
    """The fields of a new memory with its scope and the memories it supersedes, and a sentence on how the scope was inferred."""
    if fields.get("scope"):
        return fields, ""
    if fields.get("supersedes"):
        from engram.review.lineage import find_superseded

        return {**fields, "supersedes": find_superseded(mem.lineages, fields["supersedes"], seen(mem))}, ""
    scope, placed = mem.infer_scope(**said)
    return {**fields, "scope": scope}, placed


@_in_session
def _remember(call: "Call", given: arguments.RememberArguments) -> Learned:
    mem = call.mem
    if is_paused(mem.store):
        from engram.client import PAUSED

        return Learned.of(Decision(outcome=Outcome.REJECTED, reason=PAUSED.rstrip("."), gate="paused"))
    fields, placed = _place(mem, given, statement=given.fact, type=given.kind)
    decision = mem.remember(
        given.fact,
        source=REMEMBER,
        session=given.session_id,
        type=given.kind,
        confidence=given.confidence,
        cues=given.cues,
        relation="update" if given.supersedes else "",
        **fields,
    )
    if call.can_ask:
        call.question = approval.about_decision(decision, partial(mem.store.get, scopes=seen(mem, given.scope)))
    return Learned.of(decision, placed)


def _changes(given: arguments.UpdateArguments) -> dict[str, Any]:
    parts = {part for form in FORMS for part in form}
    fields = given.model_dump(exclude={"id", "scope", "reason", *parts}, exclude_unset=True)
    return fields | _form(given) | ({"reason": given.reason} if given.reason else {})


def _update(call: "Call", given: arguments.UpdateArguments) -> Changed:
    mem = call.mem
    known, changes = mem.get(given.id, scope=caller(mem, given.scope)), _changes(given)
    if call.can_ask and (question := approval.about_change(known, changes)):
        raise PersonNeeded(question)
    return approval.changed(mem, known, changes, AGENT, caller(mem, given.scope))


@_in_session
def _recall(call: "Call", given: arguments.RecallArguments) -> Recalled:
    mem = call.mem
    if not given.question:
        return Recalled.with_sources(
            mem.recall_context(limit=given.limit, progress=call.step, cancelled=call.cancelled)
        )
    found = mem.recall(
        given.question,
        wordings=given.wordings,
        scope=given.scope or None,
        limit=given.limit,
        mode=given.mode,
        types=given.types or None,
        since=given.since or None,
        until=given.until or None,
        session=given.session_id,
        min_relevance=given.min_relevance,
    )
    if not given.sources:
        return Recalled.of(found)
    context = mem.recall_context(
        given.question, wordings=given.wordings, memories=found, progress=call.step, cancelled=call.cancelled
    )
    return Recalled.with_sources(context, found)


def _prepare(call: "Call", given: arguments.PrepareArguments) -> Briefed:
    return Briefed.of(
        call.mem.prepare(
            given.task, wordings=given.wordings, budget=given.budget, progress=call.step, cancelled=call.cancelled
        )
    )


@_in_session
def _feedback(call: "Call", given: arguments.FeedbackArguments) -> Rated:
    mem = call.mem
    owner = caller(mem, given.scope)
    return Rated.of(mem.feedback(given.id, given.signal, session=given.session_id, scope=owner))


def _forget(call: "Call", given: arguments.Forget) -> Forgotten:
    mem = call.mem
    owner = caller(mem, given.scope)
    known = mem.get(given.id, scope=owner)
    if call.can_ask and (question := approval.about_forgetting(known, given.reason)):
        raise PersonNeeded(question)
    retired = mem.forget(known.id, actor=AGENT, reason=given.reason, scope=owner)
    assert isinstance(retired, Memory)
    return Forgotten(memory=Card.of(retired))


def _show(call: "Call", given: arguments.ShowArguments) -> Shown:
    return Shown.of(call.mem.explain_memory(given.id, scope=caller(call.mem, given.scope)))


def _list(call: "Call", given: arguments.ListArguments) -> MemoryList:
    found = call.mem.list(
        # One more than asked for says whether there are more.
        limit=given.limit + 1,
        offset=given.offset,
        scope=seen(call.mem, given.scope),
        status=_STATUSES[given.status],
        types=given.types or None,
        tags=given.tags or None,
        domain=given.domain or None,
        since=given.since or None,
        until=given.until or None,
    )
    return MemoryList.of(found, given.limit)


def caller(mem: "Engram", scope: str = "") -> Sequence[str]:
    """Who calls: the owner that a call names, or an agent of this directory, whose are the project's, the user's and the global scopes."""
    return [scope] if scope else mem.scopes_for(scope=mem.scope_here()) or ()


def call_scopes(mem: "Engram", given: Any) -> "OwnerScopes | None":
    """The scopes seen from here and from the scope that a call names, where it names one."""
    named = given.get("scope", "") if isinstance(given, dict) else getattr(given, "scope", "")
    return mem.scopes_for(scope=[*caller(mem), *([named] if named else [])])


def seen(mem: "Engram", scope: str = "") -> "OwnerScopes | None":
    """The scopes that a caller sees, and those they may change."""
    return mem.scopes_for(scope=caller(mem, scope))


def _timeline(call: "Call", given: dict[str, Any]) -> Timeline:
    return Timeline.of(call.mem.timeline(**given))


def _session_start(call: "Call", given: arguments.SessionStart) -> Started:
    mem = call.mem
    session = mem.session(given.task, scope=given.scope or None, budget=given.budget or None)
    # Warnings for the owner (a team store not trusted yet, a file that does not parse) are given once, here.
    warnings = list(dict.fromkeys([*session.injection.warnings, *mem.store.warnings, *mem.scope_notices()]))
    return Started.of(session.injection, session_id=session.id, warnings=warnings)


def _session_end(call: "Call", given: arguments.SessionEnd) -> Ended:
    mem = call.mem
    return Ended.of(mem.sessions.end(given.session_id, given.summary, scopes=seen(mem, given.scope)))


def _enrich(call: "Call", given: arguments.EnrichArguments) -> EnrichedBatch:
    enrichment, scopes = call.mem.enrichment, seen(call.mem)
    applied = enrichment.apply(given.cues, scopes=scopes)
    batch = enrichment.next_batch(given.limit, scopes=scopes) if given.limit else []
    return EnrichedBatch.of(applied, batch, enrichment.count(scopes=scopes))


_IDS = "Ids come from recall, list, timeline, prepare and session_start."

TOOLS: dict[str, Tool] = {
    tool.name: tool
    for tool in (
        Tool(
            "recall",
            "Recall",
            "Find memories that answer a question. Give two to four wordings with other words under which the answer may be stored, "
            'e.g. for "why is CI red on arm?" ["arm64 build failure cause", "qemu emulation timeout"]: they find what the question '
            "alone does not. possible, unconfirmed and older are hints, not answers.",
            arguments.RecallArguments,
            Recalled,
            _recall,
            READS,
        ),
        Tool(
            "prepare",
            "Prepare for a task",
            "Call before larger work and when the task changes: returns what memories, instruction files, rules, skills and past sessions say about it.",
            arguments.PrepareArguments,
            Briefed,
            _prepare,
            READS,
        ),
        Tool.of(writing.LEARN, Learned, _learn),
        Tool(
            "remember",
            "Remember",
            "Store what the user asked you to remember, in their words; with supersedes if it replaces something.",
            arguments.RememberArguments,
            Learned,
            _remember,
        ),
        Tool(
            "update",
            "Change a memory",
            "Correct a memory in place: only the fields given change. For a fact that changed in the world, learn with supersedes.",
            arguments.UpdateArguments,
            Changed,
            _update,
            Effect(is_destructive=True),
            not_found=_IDS,
            changes=_changes,
        ),
        Tool(
            "feedback",
            "Rate a memory",
            "Rate whether a memory helped; it changes how readily it is offered again.",
            arguments.FeedbackArguments,
            Rated,
            _feedback,
            not_found=_IDS,
        ),
        Tool(
            "forget",
            "Forget a memory",
            "Retire a memory that is wrong or unwanted. It stays readable, and its owner can undo this.",
            arguments.Forget,
            Forgotten,
            _forget,
            # Reversible, but it does more than add: a client that asks a person first should ask here, because an agent could
            # be talked into forgetting a constraint. A second call is one more decision in the history.
            Effect(is_destructive=True),
            not_found=_IDS,
            changes=lambda given: {"reason": given.reason},
        ),
        Tool(
            "show",
            "Show a memory",
            "Everything about one memory: its state, origin, versions and the decisions about it.",
            arguments.ShowArguments,
            Shown,
            _show,
            READS,
            not_found=_IDS,
        ),
        Tool(
            "list",
            "List memories",
            "List memories by filter, newest first.",
            arguments.ListArguments,
            MemoryList,
            _list,
            READS,
        ),
        Tool.of(reading.TIMELINE, Timeline, _timeline),
        Tool(
            "enrich",
            "Add cues to memories",
            "Call at a quiet moment: returns memories that lack cues; the next call stores their cues and returns more.",
            arguments.EnrichArguments,
            EnrichedBatch,
            _enrich,
        ),
        Tool(
            "session_start",
            "Start a session",
            "Call first, once per conversation: returns a session_id, the memories that concern the task, and how earlier sessions ended.",
            arguments.SessionStart,
            Started,
            _session_start,
        ),
        Tool(
            "session_end",
            "End a session",
            "End a session: its summary is found later, and what it used is reinforced.",
            arguments.SessionEnd,
            Ended,
            _session_end,
            Effect(is_idempotent=True),
            not_found="session_start starts one and returns its session_id.",
            is_quiet_moment=True,
        ),
    )
}
"""Every tool by its name, in the order they are listed."""
