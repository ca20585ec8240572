"""The tools as one table: arguments, result, effect on the store, and the client's verb behind each.

Nothing is decided here. Two things are set here, because a caller may not claim them: what is learned comes from `agent`,
and a decision is the agent's, never a person's.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from engram.mcp import arguments
from engram.mcp.results import Card, Ended, Forgotten, Learned, Prepared, Rated, Recalled, Started, ToolResult
from engram.model.lazy import dataclass
from engram.model.memory import Memory

if TYPE_CHECKING:
    from engram.client import Engram

AGENT = "agent"


@dataclass(frozen=True, slots=True)
class Effect:
    """What a call does to the store, in the protocol's terms.

    None of the tools is read-only: even a recall records its use and reinforces memories, so a later answer may differ.
    A client that approves read-only tools by itself would otherwise let an agent change the memory unseen.
    """

    destructive: bool = False
    """In the protocol's sense: it does more than add."""
    idempotent: bool = False
    """A second call with the same arguments changes nothing further."""


@dataclass(frozen=True, slots=True)
class Tool:
    """One entry of the table."""

    name: str
    title: str
    description: str
    takes: type[arguments.Arguments]
    returns: type[ToolResult]
    run: Callable[["Engram", Any], ToolResult]
    effect: Effect = Effect()
    not_found: str = ""
    """What to do when nothing has the given id."""


def _learn(mem: "Engram", given: arguments.Learn) -> Learned:
    fields = given.model_dump(exclude={"autonomous", "session_id", "relation"}, exclude_unset=True)
    if given.scope:
        fields["scope"] = given.scope
    # Clients send defaults along: `update` without a memory to update says nothing, any other relation is a mistake.
    relation = given.relation if given.supersedes or given.relation != "update" else ""
    return Learned.of(
        mem.learn(source=AGENT, session=given.session_id, autonomous=given.autonomous, relation=relation, **fields)
    )


def _recall(mem: "Engram", given: arguments.RecallArguments) -> Recalled:
    found = mem.recall(
        given.question,
        scope=given.scope or None,
        limit=given.limit,
        mode=given.mode,
        types=given.types or None,
        since=given.since or None,
        until=given.until or None,
        session=given.session_id,
        min_relevance=given.min_relevance,
    )
    return Recalled.of(found)


def _inject(mem: "Engram", given: arguments.Inject) -> Prepared:
    found = mem.inject(
        given.task,
        scope=given.scope or None,
        budget=given.budget or None,
        session=given.session_id,
        min_relevance=given.min_relevance,
    )
    return Prepared.of(found)


def _feedback(mem: "Engram", given: arguments.FeedbackArguments) -> Rated:
    rated = mem.get(given.id, scope=given.scope or None)
    return Rated.of(mem.feedback(rated.id, given.signal, session=given.session_id))


def _forget(mem: "Engram", given: arguments.Forget) -> Forgotten:
    known = mem.get(given.id, scope=given.scope or None)
    retired = mem.forget(known.id, actor=AGENT, reason=given.reason)
    assert isinstance(retired, Memory)
    return Forgotten(memory=Card.of(retired))


def _session_start(mem: "Engram", given: arguments.SessionStart) -> Started:
    session = mem.session(given.task, scope=given.scope or None, budget=given.budget or None)
    # Warnings for the owner (a team store not trusted yet, a file that does not parse) are given once, here.
    warnings = list(dict.fromkeys([*session.injection.warnings, *mem.store.warnings]))
    return Started.of(session.injection, session_id=session.id, warnings=warnings)


def _session_end(mem: "Engram", given: arguments.SessionEnd) -> Ended:
    scopes = mem.scopes_for(scope=given.scope or None)
    return Ended.of(mem.sessions.end(given.session_id, given.summary, scopes=scopes))


_IDS = "Ids come from recall, inject and session_start."

TOOLS: dict[str, Tool] = {
    tool.name: tool
    for tool in (
        Tool(
            "learn",
            "Learn a fact",
            "Propose a memory: a preference, correction, convention, decision or fact that will matter again. Gates check it "
            "(secrets, duplicates, contradictions, trust) and the answer gives the outcome and the reason. When the user changed "
            "their mind or something is no longer so, pass the ids of the outdated memories in supersedes. The answer's related "
            "lists stored memories that this one may outdate or contradict: if it replaces one, call learn again with the same "
            "statement and the id in supersedes; if not, with relation different. What a person said stays until a person decides.",
            arguments.Learn,
            Learned,
            _learn,
            not_found="Ids come from recall, inject, session_start and the related memories of learn.",
        ),
        Tool(
            "recall",
            "Recall",
            "Find memories that answer a question, by words and meaning. Recalled memories are reinforced. Where nothing is "
            "known, memories is empty and nearest has what comes closest: do not treat those as an answer.",
            arguments.RecallArguments,
            Recalled,
            _recall,
        ),
        Tool(
            "inject",
            "Prepare for a task",
            "What you should know before a task, within a token budget: directives, things to consider, related memories.",
            arguments.Inject,
            Prepared,
            _inject,
        ),
        Tool(
            "feedback",
            "Rate a memory",
            "Rate whether a memory helped. Ratings change how readily it is offered again.",
            arguments.FeedbackArguments,
            Rated,
            _feedback,
            not_found=_IDS,
        ),
        Tool(
            "forget",
            "Forget a memory",
            "Retire a memory that is wrong or unwanted: it no longer appears in answers. It stays readable, and its owner can undo this.",
            arguments.Forget,
            Forgotten,
            _forget,
            # Reversible, but it does more than add: a client that asks a person first should ask here, because an agent could
            # be talked into forgetting a constraint. A second call is one more decision in the history.
            Effect(destructive=True),
            not_found=_IDS,
        ),
        Tool(
            "session_start",
            "Start a session",
            "Start a session about a task. Returns its session_id and the relevant memories.",
            arguments.SessionStart,
            Started,
            _session_start,
        ),
        Tool(
            "session_end",
            "End a session",
            "End a session with a summary: the memories it used are reinforced, and those used together are linked.",
            arguments.SessionEnd,
            Ended,
            _session_end,
            Effect(idempotent=True),
            not_found="session_start starts one and returns its session_id.",
        ),
    )
}
"""Every tool by its name, in the order they are listed."""
