"""The tools as one table: what each takes, what it returns, what it does to the store, and the client's verb it stands for.

Nothing is decided here. Two things are stamped, because a caller may not claim them: what is learned comes from `agent`,
and a decision made here is the agent's, never a person's.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from engram.mcp import arguments as asks
from engram.mcp.results import Card, Ended, Forgotten, Learned, Prepared, Rated, Recalled, Started, ToolResult
from engram.model.memory import Memory

if TYPE_CHECKING:
    from engram.client import Engram

AGENT = "agent"


@dataclass(frozen=True, slots=True)
class Effect:
    """What a call does to the store, in the protocol's words. The world of all of them is closed: the owner's own files.

    None of the tools is read only: even a recall notes its use, and what is used grows stronger, so a later answer may
    differ. A client that lets read-only tools pass unasked would otherwise let an agent change the memory unseen.
    """

    destructive: bool = False
    """In the protocol's sense: does more than add."""
    idempotent: bool = False
    """A second call with the same arguments changes nothing further."""


@dataclass(frozen=True, slots=True)
class Tool:
    """One entry of the table."""

    name: str
    title: str
    description: str
    takes: type[asks.Arguments]
    returns: type[ToolResult]
    run: Callable[["Engram", Any], ToolResult]
    effect: Effect = Effect()
    not_found: str = ""
    """What to do when nothing goes by the id that was given."""


def _learn(mem: "Engram", asked: asks.Learn) -> Learned:
    given = asked.model_dump(exclude={"autonomous", "session_id"}, exclude_unset=True)
    if asked.scope:
        given["scope"] = asked.scope
    return Learned.of(mem.learn(source=AGENT, session=asked.session_id, autonomous=asked.autonomous, **given))


def _recall(mem: "Engram", asked: asks.RecallArguments) -> Recalled:
    found = mem.recall(
        asked.question,
        scope=asked.scope or None,
        limit=asked.limit,
        mode=asked.mode,
        types=asked.types or None,
        since=asked.since or None,
        until=asked.until or None,
        session=asked.session_id,
        min_relevance=asked.min_relevance,
    )
    return Recalled.of(found)


def _inject(mem: "Engram", asked: asks.Inject) -> Prepared:
    found = mem.inject(
        asked.task,
        scope=asked.scope or None,
        budget=asked.budget or None,
        session=asked.session_id,
        min_relevance=asked.min_relevance,
    )
    return Prepared.of(found)


def _feedback(mem: "Engram", asked: asks.FeedbackArguments) -> Rated:
    rated = mem.get(asked.id, scope=asked.scope or None)
    return Rated.of(mem.feedback(rated.id, asked.signal, session=asked.session_id))


def _forget(mem: "Engram", asked: asks.Forget) -> Forgotten:
    known = mem.get(asked.id, scope=asked.scope or None)
    retired = mem.forget(known.id, actor=AGENT, reason=asked.reason)
    assert isinstance(retired, Memory)
    return Forgotten(memory=Card.of(retired))


def _session_start(mem: "Engram", asked: asks.SessionStart) -> Started:
    session = mem.session(asked.task, scope=asked.scope or None, budget=asked.budget or None)
    # What the owner should hear of (a team store not trusted yet, a file that does not parse) is said once, here.
    warnings = list(dict.fromkeys([*session.injection.warnings, *mem.store.warnings]))
    return Started.of(session.injection, session_id=session.id, warnings=warnings)


def _session_end(mem: "Engram", asked: asks.SessionEnd) -> Ended:
    scopes = mem.scopes_for(scope=asked.scope or None)
    return Ended.of(mem.sessions.end(asked.session_id, asked.summary, scopes=scopes))


_IDS = "Ids come from recall, inject and session_start."

TOOLS: dict[str, Tool] = {
    tool.name: tool
    for tool in (
        Tool(
            "learn",
            "Learn a fact",
            "Propose a memory: a preference, correction, convention, decision or fact that will matter again. Gates check it "
            "(secrets, duplicates, contradictions, trust) and the answer gives the outcome and the reason.",
            asks.Learn,
            Learned,
            _learn,
        ),
        Tool(
            "recall",
            "Recall",
            "Find memories that answer a question, by words and meaning. Recalled memories are reinforced. Where nothing is "
            "known, memories is empty and nearest has what comes closest: do not treat those as an answer.",
            asks.RecallArguments,
            Recalled,
            _recall,
        ),
        Tool(
            "inject",
            "Prepare for a task",
            "What you should know before a task, within a token budget: directives, things to consider, related memories.",
            asks.Inject,
            Prepared,
            _inject,
        ),
        Tool(
            "feedback",
            "Rate a memory",
            "Rate whether a memory helped. Ratings change how readily it is offered again.",
            asks.FeedbackArguments,
            Rated,
            _feedback,
            not_found=_IDS,
        ),
        Tool(
            "forget",
            "Forget a memory",
            "Retire a memory that is wrong or unwanted: it no longer appears in answers. It stays readable, and its owner can undo this.",
            asks.Forget,
            Forgotten,
            _forget,
            # Reversible, but it does more than add: a client that asks a person first should ask here, because an agent
            # talked into forgetting a constraint would do so unseen. A second call is one more decision in the history.
            Effect(destructive=True),
            not_found=_IDS,
        ),
        Tool(
            "session_start",
            "Begin a session",
            "Begin a session about a task. Returns its session_id and what is known about the task.",
            asks.SessionStart,
            Started,
            _session_start,
        ),
        Tool(
            "session_end",
            "End a session",
            "End a session with a summary: the memories it used are reinforced, and those used together are linked.",
            asks.SessionEnd,
            Ended,
            _session_end,
            Effect(idempotent=True),
            not_found="session_start begins one and returns its session_id.",
        ),
    )
}
"""Every tool by its name, in the order they are listed."""
