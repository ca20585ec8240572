"""Runs one tool call at a time on a thread, with progress reports and logging to the client, and may ask the client's model for cues."""

import logging
import time
import warnings
from asyncio import CancelledError
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, get_args

import anyio
import anyio.from_thread
import anyio.to_thread
from mcp import MCPError
from mcp.server import ServerRequestContext
from mcp.shared.exceptions import MCPDeprecationWarning
from mcp.shared.message import ServerMessageMetadata
from mcp.types import (
    CallToolRequestParams,
    CallToolResult,
    CreateMessageRequest,
    CreateMessageRequestParams,
    CreateMessageResult,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    EmptyResult,
    InputRequiredResult,
    LoggingLevel,
    SamplingMessage,
    SetLevelRequestParams,
    TextContent,
)
from pydantic import TypeAdapter, ValidationError

from engram.llm.model import Prompt, prompt_for
from engram.llm.schemas import SuggestedCues
from engram.mcp.approval import NOT_APPROVED, ApprovalQuestion, PersonNeeded, decide
from engram.mcp.results import ToolResult, redact_secrets
from engram.model.errors import EngramError, InvalidInput, NotFound
from engram.model.lazy import dataclass
from engram.text.display import notice

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engram.client import Engram
    from engram.mcp.tools import Tool
    from engram.model.memory import Memory

LEVELS: tuple[LoggingLevel, ...] = get_args(LoggingLevel)
"""From least to most severe."""
DEFAULT_LEVEL: LoggingLevel = "warning"
"""The level of a client that sets none."""
LOGGER = "engram"
SESSION = "mcp-session-id"
_MAX_CLIENTS = 1000
"""Maximum clients whose level is remembered; the oldest is dropped first."""


class ClientLog:
    """Sends log messages to the client of a request."""

    def __init__(self) -> None:
        self._levels: dict[str, LoggingLevel] = {}
        self._warned: dict[str, set[str]] = {}

    async def set_level(self, ctx: ServerRequestContext[Any, Any], params: SetLevelRequestParams) -> EmptyResult:
        """Handle `logging/setLevel`."""
        _make_room(self._levels, _client(ctx))[_client(ctx)] = params.level
        return EmptyResult()

    async def send(self, ctx: ServerRequestContext[Any, Any], level: LoggingLevel, text: str) -> None:
        """Send a message, unless the client does not want it. Suspected secrets are redacted."""
        if LEVELS.index(level) < LEVELS.index(self._levels.get(_client(ctx), DEFAULT_LEVEL)) and not _opted_in(ctx):
            return
        with warnings.catch_warnings():
            # Clients up to 2025 have no other way to show server messages.
            warnings.simplefilter("ignore", MCPDeprecationWarning)
            sending = ctx.session.send_log_message(level, notice(redact_secrets(text)), LOGGER, ctx.request_id)
        await sending

    async def warn(self, ctx: ServerRequestContext[Any, Any], notes: Iterable[str]) -> None:
        """Send each of these warnings that the client has not received yet."""
        client = _client(ctx)
        told = _make_room(self._warned, client).setdefault(client, set())
        for note in [note for note in notes if note not in told]:
            told.add(note)
            await self.send(ctx, "warning", note)


def _client(ctx: ServerRequestContext[Any, Any]) -> str:
    """The client of a request: its session over HTTP, the only client on stdin and stdout."""
    return ctx.request.headers.get(SESSION, "") if ctx.request is not None else ""


def _opted_in(ctx: ServerRequestContext[Any, Any]) -> bool:
    """Whether the request itself names a level, as since 2026; the session then compares it."""
    from mcp.types import LOG_LEVEL_META_KEY

    return LOG_LEVEL_META_KEY in (ctx.meta or {})


def _make_room(by_client: dict[str, Any], client: str) -> dict[str, Any]:
    """The table with room for another client."""
    if client not in by_client and len(by_client) >= _MAX_CLIENTS:
        del by_client[next(iter(by_client))]
    return by_client


MAX_MEMORIES = 20
"""Memories per request."""
MAX_TOKENS = 2_000
MAX_SECONDS = 60.0
FORM = 'Answer with JSON alone: {"memories": [{"id": "…", "cues": ["…"]}]}'
Context = ServerRequestContext[Any, Any]


async def enrich_with_client(ctx: Context, memory: "LazyMemory", turn: anyio.CapacityLimiter, log: "ClientLog") -> None:
    """Ask the client's model for cues of the next memories and store them; send the client a message on failure.

    The server asks when a session ends, over the connection of that call. The protocol of 2026 has no sampling.
    """
    offered = ctx.session.client_capabilities
    if offered is None or offered.sampling is None or not ctx.session.can_send_request:
        return
    try:
        batch = await anyio.to_thread.run_sync(partial(_next_batch, memory.get()), limiter=turn)
        if not batch:
            return
        with anyio.fail_after(MAX_SECONDS):
            answer = await _ask(ctx, _prompt(batch))
        await anyio.to_thread.run_sync(partial(_store_cues, memory.get(), batch, answer), limiter=turn)
    except (MCPError, EngramError, ValidationError, TimeoutError) as error:
        await log.send(ctx, "warning", f"the client's model returned no cues: {type(error).__name__}")


def _next_batch(mem: "Engram") -> "Sequence[Memory]":
    from engram.mcp.tools import visible_scopes
    from engram.store.states import is_paused

    if not mem.settings.enrich_with_client or is_paused(mem.store):
        return ()
    return mem.enrichment.next_batch(MAX_MEMORIES, scopes=visible_scopes(mem))


def _prompt(batch: "Sequence[Memory]") -> Prompt:
    from engram.capture.enrichment import render_batch

    return prompt_for("cues", {"statements": render_batch(batch)})


async def _ask(ctx: Context, prompt: Prompt) -> str:
    params = CreateMessageRequestParams(
        messages=[SamplingMessage(role="user", content=TextContent(type="text", text=prompt.message))],
        system_prompt=f"{prompt.instructions}\n\n{FORM}",
        max_tokens=MAX_TOKENS,
    )
    result = await ctx.session.send_request(
        CreateMessageRequest(params=params),
        CreateMessageResult,
        metadata=ServerMessageMetadata(related_request_id=ctx.request_id),
    )
    return result.content.text if isinstance(result.content, TextContent) else ""


def _store_cues(mem: "Engram", batch: "Sequence[Memory]", answer: str) -> None:
    """Store the cues of an answer about a batch; a model may put its JSON between other words."""
    from engram.capture.enrichment import usable_cues
    from engram.mcp.tools import visible_scopes

    found = TypeAdapter(SuggestedCues).validate_json(answer[answer.find("{") : answer.rfind("}") + 1])
    given = {one.id: one.cues for one in found.memories}
    mem.enrichment.apply(usable_cues(batch, given), scopes=visible_scopes(mem))


DECISION = "decision"
"""The field of a person's answer, and the name of the question if the client repeats the call with it."""
_SETUP_STEPS = 2
"""Steps before the work itself: waiting for the turn, and opening the store. Progress may only grow."""
_REPORT_INTERVAL_SECONDS = 0.1
"""Seconds between two progress reports."""
_log = logging.getLogger(__name__)


class LazyMemory:
    """The store, opened by the first call that needs it, so that listing the tools is fast."""

    def __init__(self, opened: "Callable[[], Engram]") -> None:
        self._opened = opened
        self._memory: Engram | None = None

    @property
    def is_open(self) -> bool:
        """Whether a call has opened it."""
        return self._memory is not None

    def get(self) -> "Engram":
        """The open store. If opening fails, the next call tries again."""
        if self._memory is None:
            self._memory = self._opened()
        return self._memory

    def close(self) -> None:
        """Close the store, if it was opened."""
        if self._memory is not None:
            self._memory.close()
            self._memory = None


class Call:
    """The resources of a running tool: the memory, ways to report to the client, and the cancellation state."""

    def __init__(
        self,
        memory: LazyMemory,
        report: Callable[[float, float | None, str], None] = lambda done, total, message: None,
        tell: Callable[[LoggingLevel, str], None] = lambda level, text: None,
        check: Callable[[], None] = lambda: None,
        *,
        can_ask: bool = False,
    ) -> None:
        self._memory, self._report, self._check = memory, report, check
        self._reported = -1.0
        self._next_report = 0.0
        self.tell = tell
        """Logs a message to the client."""
        self.can_ask = can_ask
        """Whether the client can ask its user a question."""
        self.question: ApprovalQuestion | None = None
        """The question for the user once the call is done."""

    @property
    def mem(self) -> "Engram":
        """The open store."""
        if not self._memory.is_open:
            self._report(1, None, "Opening the memory")
            self.tell("info", f"opened the memory at {self._memory.get().store.place}")
        # Opening may take long, and the client may have given up in the meantime.
        self._check()
        return self._memory.get()

    def step(self, work: str, done: int, total: int) -> None:
        """Report progress, at most ten times a second; only increases are reported."""
        now = time.monotonic()
        if done <= self._reported or (now < self._next_report and done != total):
            return
        self._reported, self._next_report = done, now + _REPORT_INTERVAL_SECONDS
        self._report(done + _SETUP_STEPS, total + _SETUP_STEPS, work)

    def is_cancelled(self) -> bool:
        """Whether the client cancelled the call."""
        try:
            self._check()
        except CancelledError:
            return True
        return False


@dataclass(frozen=True, slots=True)
class CallOutcome:
    """The result of a call, and the question for the user about it."""

    result: CallToolResult
    question: ApprovalQuestion | None = None


class ToolCaller:
    """Runs calls, one at a time, and asks the user if a person must decide and the client can ask one."""

    def __init__(self, memory: LazyMemory, turn: anyio.CapacityLimiter, log: ClientLog) -> None:
        self.memory, self.turn, self.log = memory, turn, log

    async def call(
        self, ctx: Context, tool: "Tool", params: CallToolRequestParams
    ) -> CallToolResult | InputRequiredResult:
        """Run one call. A cancelled call gives up its turn; what it has committed stays."""
        given = params.arguments or {}
        if params.request_state is not None:
            try:
                question = ApprovalQuestion.from_state(params.request_state)
            except InvalidInput as error:
                return _error_result(f"{tool.name}: {error}")
            answer = (params.input_responses or {}).get(DECISION)
            return await self._apply_answer(ctx, tool, given, question, answer)
        answered_call = await self._run(ctx, tool, partial(run_tool, tool=tool, arguments=given))
        if tool.is_quiet_moment:
            await enrich_with_client(ctx, self.memory, self.turn, self.log)
        if answered_call.question is None:
            return answered_call.result
        return await self._ask(ctx, tool, given, answered_call)

    async def _run(self, ctx: Context, tool: "Tool", work: Callable[[Call], CallOutcome]) -> CallOutcome:
        begun = time.monotonic()
        if self.turn.available_tokens < 1:
            await ctx.session.report_progress(0, None, "Waiting for another call to end")
        call = Call(
            self.memory,
            partial(_report, ctx),
            lambda level, text: anyio.from_thread.run(self.log.send, ctx, level, text),
            anyio.from_thread.check_cancelled,
            can_ask=can_ask(ctx),
        )
        done = await anyio.to_thread.run_sync(work, call, limiter=self.turn)
        await self.log.send(ctx, "debug", f"{tool.name} took {(time.monotonic() - begun) * 1000:.0f} ms")
        if self.memory.is_open:
            await self.log.warn(ctx, self.memory.get().store.warnings)
        return done

    async def _ask(
        self, ctx: Context, tool: "Tool", given: Mapping[str, Any], done: CallOutcome
    ) -> CallToolResult | InputRequiredResult:
        """Ask the user: directly if the protocol lets a server ask, else by having the client repeat the call."""
        question = done.question
        assert question is not None
        asked = ElicitRequestFormParams(message=question.message, requested_schema=question.form)
        if not ctx.session.can_send_request:
            return InputRequiredResult(
                input_requests={DECISION: ElicitRequest(params=asked)}, request_state=question.state
            )
        try:
            answer = await ctx.session.elicit_form(question.message, question.form, ctx.request_id)
        except (MCPError, ValidationError) as error:
            await self.log.send(ctx, "warning", f"the user could not be asked: {type(error).__name__}")
            return done.result
        return await self._apply_answer(ctx, tool, given, question, answer)

    async def _apply_answer(
        self, ctx: Context, tool: "Tool", given: Mapping[str, Any], question: ApprovalQuestion, answer: Any
    ) -> CallToolResult:
        """The result of an answer; the person's choice is carried out in their name."""
        accepted = isinstance(answer, ElicitResult) and answer.action == "accept"
        choice = str((answer.content or {}).get(DECISION, "")) if accepted else ""
        asked = tool.decode(given)
        changes = tool.changes(asked)

        def work(call: Call) -> CallOutcome:
            scopes = tool.scopes(call.mem, asked)
            return CallOutcome(_run_safely(tool, lambda: decide(call.mem, question, choice, changes, scopes)))

        return (await self._run(ctx, tool, work)).result


def can_ask(ctx: Context) -> bool:
    """Whether the client can show its user a form."""
    capabilities = ctx.session.client_capabilities
    offered = capabilities.elicitation if capabilities is not None else None
    return offered is not None and (offered.form is not None or offered.url is None)


def _report(ctx: Context, done: float, total: float | None, message: str) -> None:
    """Report progress from the call's thread."""
    if (ctx.meta or {}).get("progress_token") is not None:
        anyio.from_thread.run(ctx.session.report_progress, done, total, notice(message))


def run_tool(call: Call, tool: "Tool", arguments: Mapping[str, Any]) -> CallOutcome:
    """Run one call on this thread.

    Errors are part of the result, so that the model can read them and correct the call.
    """
    try:
        given = tool.decode(arguments)
    except InvalidInput as error:
        return CallOutcome(_error_result(f"{tool.name}: {error}"))
    try:
        return CallOutcome(_run_safely(tool, lambda: tool.run(call, given)), call.question)
    except PersonNeeded as needed:
        return CallOutcome(_error_result(NOT_APPROVED.format(needed.question.ids[0])), needed.question)


def _run_safely(tool: "Tool", work: Callable[[], ToolResult]) -> CallToolResult:
    """The result of some work, or the error in words that a model can act on."""
    try:
        answer = work()
        return CallToolResult(
            content=[TextContent(type="text", text=answer.as_text())],
            structured_content=answer.model_dump(mode="json"),
        )
    except PersonNeeded:
        raise
    except NotFound as error:
        return _error_result(f"{error}. {tool.offer.not_found}".strip())
    except EngramError as error:
        return _error_result(str(error) or type(error).__doc__ or type(error).__name__)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        return _error_result(f"{where}{error.strerror or error}")
    except Exception as error:
        _log.exception("the tool %s failed", tool.name)
        return _error_result(f"{tool.name} failed inside Engram ({type(error).__name__}); the server's log says more")


def _error_result(words: str) -> CallToolResult:
    """An error result. Suspected secrets are redacted."""
    return CallToolResult(content=[TextContent(type="text", text=notice(redact_secrets(words)))], is_error=True)
