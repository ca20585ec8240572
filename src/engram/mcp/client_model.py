"""Cues from the client's model (sampling), if the client offers it and the setting `enrich_with_client` allows it.

The server asks when a session ends, over the connection of that call. The protocol of 2026 has no sampling.
"""

from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
from mcp import MCPError
from mcp.server import ServerRequestContext
from mcp.shared.message import ServerMessageMetadata
from mcp.types import (
    CreateMessageRequest,
    CreateMessageRequestParams,
    CreateMessageResult,
    SamplingMessage,
    TextContent,
)
from pydantic import TypeAdapter, ValidationError

from engram.llm.providers import Prompt, prompt_for
from engram.llm.schemas import SuggestedCues
from engram.model.errors import EngramError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engram.client import Engram
    from engram.mcp.calls import LazyMemory
    from engram.mcp.client_log import ClientLog
    from engram.model.memory import Memory

__all__ = ["enrich_with_client"]

MAX_MEMORIES = 20
"""Memories per request."""
MAX_TOKENS = 2_000
MAX_SECONDS = 60.0
FORM = 'Answer with JSON alone: {"memories": [{"id": "…", "cues": ["…"]}]}'
Context = ServerRequestContext[Any, Any]


async def enrich_with_client(ctx: Context, memory: "LazyMemory", turn: anyio.CapacityLimiter, log: "ClientLog") -> None:
    """Ask the client's model for cues of the next memories and store them; send the client a message on failure."""
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
