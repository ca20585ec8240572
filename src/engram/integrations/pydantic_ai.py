"""Pydantic AI: a toolset that lets an agent use a memory, and a capability that gives each run what it should know.

The caller decides whose memory it is. The model cannot name another scope or claim another identity: what it learns has
the source `agent`, what it is asked to remember `tool:remember`.
"""

import dataclasses
import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Generic, cast

from pydantic import Field

try:
    from pydantic_ai import FunctionToolset, RunContext, ToolFailed
    from pydantic_ai.capabilities import AbstractCapability
    from pydantic_ai.framing import wrap
    from pydantic_ai.messages import ModelMessage, ModelRequest, UserPromptPart
    from pydantic_ai.tools import AgentDepsT
except ImportError as error:
    raise ImportError(
        f"the Pydantic AI toolset needs a package: pip install 'engram[pydantic-ai]' ({error})"
    ) from error

from engram.integrations.calls import AnyEngram, awaited_call
from engram.model.arguments import MAX_WORDINGS
from engram.model.decision import Decision, Outcome
from engram.model.errors import EngramError, NotFound
from engram.model.lazy import replace
from engram.model.memory import Memory, Signal
from engram.rules.scopes import GLOBAL, parse_scope
from engram.store.references import find_memory
from engram.store.states import is_paused
from engram.text.display import notice

if TYPE_CHECKING:
    from pydantic_ai.models import ModelRequestContext

    from engram.client import Engram

__all__ = ["MemoryInjection", "MemoryToolset"]

AGENT = "agent"
REMEMBER = "tool:remember"
INSTRUCTIONS = Path(__file__).with_name("instructions.txt")
ScopeOf = str | Callable[[RunContext[AgentDepsT]], str]
"""The owner of the memory: a scope, or a function that reads it from the run, such as `lambda ctx:
f"user:{ctx.deps.user}"`."""
CUES = (
    "Up to 8 short phrases that a later question may use instead of these words: synonyms, the question it answers, the symptom. "
    'For "Staging listens on 6543": ["psql connection refused", "which port does postgres use"].'
)
MemoryId = Annotated[str, Field(description="The id of a memory, such as ENG-2026-0131-001, from recall or inject.")]
_log = logging.getLogger(__name__)


class MemoryToolset(FunctionToolset[AgentDepsT]):
    """The tools recall, inject, learn, remember, feedback and forget over an open `Engram` or `AsyncEngram`.

    `scope` fixes whose memory it is. The model sees the memories of that scope and of the wider ones, and writes only
    to that scope. With `approve_forget` a person has to approve each call of `forget`, by Pydantic AI's deferred tools.
    """

    def __init__(
        self,
        memory: AnyEngram,
        *,
        scope: ScopeOf[AgentDepsT],
        approve_forget: bool = False,
        id: str = "engram",  # noqa: A002
    ) -> None:
        super().__init__(id=id, instructions=INSTRUCTIONS.read_text("utf-8"))
        tools = _MemoryTools[AgentDepsT](memory, _parse_scope(scope))
        for tool in (tools.recall, tools.inject, tools.learn, tools.remember, tools.feedback, tools.forget):
            asks = approve_forget and tool.__name__ == "forget"
            self.add_function(cast(Any, tool), takes_ctx=True, requires_approval=asks)


class MemoryInjection(AbstractCapability[AgentDepsT]):
    """Gives each run the memories relevant to its prompt: `Agent(…, capabilities=[MemoryInjection(mem, scope=…)])`.

    The text is quoted data before the user's prompt, in every request of the run. It is not part of the instructions,
    and the message history does not keep it. If nothing is relevant, nothing is added. If the memory cannot be read,
    this is logged and the run continues without it. `budget` is the maximum number of tokens.
    """

    def __init__(self, memory: AnyEngram, *, scope: ScopeOf[AgentDepsT], budget: int | None = None) -> None:
        self._memory, self._scope, self._budget = memory, _parse_scope(scope), budget
        self._text: str | None = None

    async def for_run(self, ctx: RunContext[AgentDepsT]) -> "MemoryInjection[AgentDepsT]":
        """The capability for one run, which looks up its prompt once."""
        return MemoryInjection(self._memory, scope=self._scope, budget=self._budget)

    async def before_model_request(
        self, ctx: RunContext[AgentDepsT], request_context: "ModelRequestContext"
    ) -> "ModelRequestContext":
        """Put the text in front of the prompt of this request."""
        if self._text is None:
            self._text = await self._text_to_inject(ctx)
        if self._text:
            request_context.messages = _with_context(request_context.messages, self._text)
        return request_context

    async def _text_to_inject(self, ctx: RunContext[AgentDepsT]) -> str:
        task = _words(ctx.prompt)
        if not task:
            return ""
        scope = _scope(self._scope, ctx)
        try:
            found = await awaited_call(self._memory, lambda mem: mem.inject(task, scope=scope, budget=self._budget))
        except EngramError as error:
            _log.warning("nothing was injected from the memory: %s", _show_error(error))
            return ""
        return wrap("context", found.text.strip()) if found.text.strip() else ""


class _MemoryTools(Generic[AgentDepsT]):
    """The tools as the model sees them; each is one call of the memory, made on a thread."""

    def __init__(self, memory: AnyEngram, scope: ScopeOf[AgentDepsT]) -> None:
        self._memory, self._scope = memory, scope

    async def _call(self, ctx: RunContext[AgentDepsT], function: Callable[["Engram", str], str]) -> str:
        """The result of the function for the caller's memory.

        Raises `ToolFailed` for errors that the model can correct.
        """
        scope = _scope(self._scope, ctx)
        try:
            return await awaited_call(self._memory, function, scope)
        except NotFound as error:
            raise ToolFailed(
                f"{_show_error(error)}. Ids come from recall, inject and the related memories of learn."
            ) from None
        except EngramError as error:
            raise ToolFailed(_show_error(error)) from None

    async def recall(
        self,
        ctx: RunContext[AgentDepsT],
        question: Annotated[str, Field(description="What you want to know, in the terms of the subject.")],
        wordings: Annotated[
            Sequence[str],
            Field(
                max_length=MAX_WORDINGS,
                description="Two to four other wordings: synonyms, technical terms, the phrasing of an answer. "
                'For "why is CI red on arm?": ["arm64 build failure cause", "qemu emulation timeout"].',
            ),
        ] = (),
        limit: Annotated[int, Field(ge=1, le=50, description="At most this many memories.")] = 10,
    ) -> str:
        """Find memories that answer a question, by words and meaning. What is possibly related, unconfirmed or no longer current has a heading of its own: a hint, not an answer."""
        from engram.mcp.results import Recalled

        def recall_as_text(mem: "Engram", scope: str) -> str:
            return Recalled.of(mem.recall(question, wordings=wordings, scope=scope, limit=limit)).as_text()

        return await self._call(ctx, recall_as_text)

    async def inject(
        self, ctx: RunContext[AgentDepsT], task: Annotated[str, Field(description="What you are about to do.")]
    ) -> str:
        """What you should know before a task: directives, things to consider, related memories."""
        from engram.mcp.results import Prepared

        return await self._call(ctx, lambda mem, scope: Prepared.of(mem.inject(task, scope=scope)).as_text())

    async def learn(
        self,
        ctx: RunContext[AgentDepsT],
        statement: Annotated[str, Field(description="The fact, in 25 to 60 words that stand on their own.")],
        type: Annotated[  # noqa: A002
            str,
            Field(
                description="preference, correction, convention, constraint, decision, procedural, factual or behavioral. "
                "Empty: inferred."
            ),
        ] = "",
        situation: Annotated[str, Field(description="When it matters, such as: writing a database migration.")] = "",
        rationale: Annotated[str, Field(description="Why it is so.")] = "",
        cues: Annotated[Sequence[str], Field(description=CUES)] = (),
        supersedes: Annotated[Sequence[str], Field(description="Ids of memories that this one replaces.")] = (),
        relation: Annotated[
            str,
            Field(
                description="How it relates to the memories in supersedes: update (it replaces them), contradiction, refinement, "
                "same or different."
            ),
        ] = "update",
    ) -> str:
        """Propose a memory: a preference, correction, convention, decision or fact that will matter again. It is checked (secrets, duplicates, contradictions, trust); the answer gives the outcome, the reason, and stored memories that it may outdate."""
        fields = {"type": type, "situation": situation, "rationale": rationale, "cues": cues}

        def learn_statement(mem: "Engram", scope: str) -> str:
            scopes = mem.scopes_for(scope=scope)
            older = [find_memory(mem.store, ref, scopes, to_change=True).id for ref in supersedes]
            return _outcome(
                mem.learn(
                    statement,
                    source=AGENT,
                    scope=scope,
                    supersedes=older,
                    relation=relation if older else "",
                    **cast(Any, {name: value for name, value in fields.items() if value}),
                )
            )

        return await self._call(ctx, learn_statement)

    async def remember(
        self,
        ctx: RunContext[AgentDepsT],
        fact: Annotated[
            str, Field(description="What the user asked you to remember, in words that stand on their own.")
        ],
        kind: Annotated[
            str, Field(description="preference, tooling, project, infra, identity, people, location, health, …")
        ] = "preference",
        confidence: Annotated[float, Field(ge=0, le=1, description="How sure it is.")] = 0.6,
        cues: Annotated[Sequence[str], Field(description=CUES)] = (),
    ) -> str:
        """Store what the user asked you to remember. What is sensitive waits for a person's approval."""
        from engram.client import PAUSED_MESSAGE

        def remember_fact(mem: "Engram", scope: str) -> str:
            if is_paused(mem.store):
                return _outcome(Decision(outcome=Outcome.REJECTED, reason=PAUSED_MESSAGE.rstrip("."), gate="paused"))
            return _outcome(
                mem.remember(fact, source=REMEMBER, scope=scope, type=kind, confidence=confidence, cues=tuple(cues))
            )

        return await self._call(ctx, remember_fact)

    async def feedback(
        self,
        ctx: RunContext[AgentDepsT],
        id: MemoryId,  # noqa: A002
        signal: Annotated[
            Signal, Field(description="positive: it helped; negative: it misled; neutral: it was not useful here.")
        ],
    ) -> str:
        """Rate whether a memory helped. Ratings change how readily it is offered again."""
        from engram.mcp.results import Rated

        return await self._call(ctx, lambda mem, scope: Rated.of(mem.feedback(id, signal, scope=scope)).as_text())

    async def forget(
        self,
        ctx: RunContext[AgentDepsT],
        id: MemoryId,  # noqa: A002
        reason: Annotated[str, Field(description="Why; the owner will read it in the memory's history.")] = "",
    ) -> str:
        """Retire a memory that is wrong or unwanted: it no longer appears in answers. It stays readable, and its owner can undo this."""
        from engram.mcp.results import Card, Forgotten

        def forget_memory(mem: "Engram", scope: str) -> str:
            retired = mem.forget(id, actor=AGENT, reason=reason, scope=scope)
            assert isinstance(retired, Memory)
            return Forgotten(memory=Card.of(retired)).as_text()

        return await self._call(ctx, forget_memory)


def _outcome(decision: Decision) -> str:
    from engram.mcp.results import Learned

    memory = decision.memory
    # The suggested calls name no scope, because the toolset's is fixed.
    unplaced = replace(decision, memory=memory.replace(scope=GLOBAL)) if memory is not None else decision
    return Learned.of(unplaced).as_text()


def _parse_scope(scope: ScopeOf[AgentDepsT]) -> ScopeOf[AgentDepsT]:
    return parse_scope(scope) if isinstance(scope, str) else scope


def _scope(scope: ScopeOf[AgentDepsT], ctx: RunContext[AgentDepsT]) -> str:
    """The scope of a run. Raises `InvalidInput` for a function that returns none, which must not mean everyone."""
    return parse_scope(scope if isinstance(scope, str) else scope(ctx))


def _show_error(error: EngramError) -> str:
    """An error for the model or a log: quoted, and without secrets."""
    from engram.gates.secrets.scan import redact

    return notice(redact(str(error) or type(error).__doc__ or type(error).__name__)[0])


def _words(prompt: Any) -> str:
    """The text of a prompt, without its images and files."""
    parts: Sequence[Any] = [prompt] if isinstance(prompt, str) else prompt or ()
    return "\n".join(part for part in parts if isinstance(part, str)).strip()


def _with_context(messages: Sequence[ModelMessage], text: str) -> list[ModelMessage]:
    """The messages, with the text before the last user prompt."""
    found = list(messages)
    for i in reversed(range(len(found))):
        message = found[i]
        if isinstance(message, ModelRequest):
            at = next((n for n, part in enumerate(message.parts) if isinstance(part, UserPromptPart)), None)
            if at is not None:
                parts = [*message.parts[:at], UserPromptPart(text), *message.parts[at:]]
                found[i] = dataclasses.replace(message, parts=parts)
                return found
    return found
