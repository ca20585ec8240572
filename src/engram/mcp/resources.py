"""What a client may read: the memories of this project, the state of the store, and single memories."""

import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote, unquote

import anyio
import anyio.to_thread
from mcp import MCPError
from mcp.server import ServerRequestContext
from mcp.types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    CompleteRequestParams,
    CompleteResult,
    Completion,
    ListResourcesResult,
    ListResourceTemplatesResult,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    TextResourceContents,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from engram.mcp.calls import LazyMemory
from engram.mcp.redaction import redact_secrets
from engram.mcp.results import QUOTE_HEADING, Shown
from engram.mcp.tools import caller_scopes, visible_scopes
from engram.model.errors import EngramError, NotFound
from engram.text.display import make_inert, notice, one_line, quote_text

if TYPE_CHECKING:
    from engram.client import Engram
    from engram.model.memory import Memory

RECALL, STATUS, MEMORY = "memory://recall", "memory://status", "memory://memory/"
TEMPLATE = f"{MEMORY}{{id}}"
NOT_FOUND_UNTIL_2025 = -32002
"""The protocol's code for a resource that does not exist; since 2026 that is an invalid parameter."""
MAX_LISTED_MEMORIES = 50
"""Memories that are listed, the newest; any other can be read by its id."""
MAX_COMPLETIONS = 100
"""The most values of a completion that the protocol allows."""
_MAX_TITLE_CHARACTERS = 80
T = TypeVar("T")
Context = ServerRequestContext[Any, Any]


class ResourceReader:
    """Lists and reads resources. Reading one is no use of a memory: it reinforces nothing."""

    def __init__(
        self,
        memory: LazyMemory,
        turn: anyio.CapacityLimiter,
        reads: "Mapping[str, Callable[[Engram], str]] | None" = None,
    ) -> None:
        self._memory, self._turn = memory, turn
        self._reads = _READS if reads is None else reads

    async def list_resources(self, _: Context, __: PaginatedRequestParams | None) -> ListResourcesResult:
        """What there is to read: the two that always exist, then the newest memories."""
        return ListResourcesResult(resources=[*_ALWAYS, *await self._run(_newest)])

    async def templates(self, _: Context, __: PaginatedRequestParams | None) -> ListResourceTemplatesResult:
        """How the other memories are addressed."""
        one = ResourceTemplate(
            uri_template=TEMPLATE,
            name="memory",
            title="One memory",
            description="Everything about a memory seen from here, by id, name or alias.",
            mime_type="text/plain",
        )
        return ListResourceTemplatesResult(resource_templates=[one])

    async def read(self, ctx: Context, params: ReadResourceRequestParams) -> ReadResourceResult:
        """The text of a resource; an unknown address is an error."""
        uri = str(params.uri)
        work = self._reads.get(uri)
        if work is None and uri.startswith(MEMORY) and len(uri) > len(MEMORY):
            work = partial(_one, ref=unquote(uri.removeprefix(MEMORY)))
        if work is None:
            raise _not_found_error(ctx, uri, "memory://recall, memory://status and memory://memory/{id} can be read")
        try:
            text = await self._run(work)
        except NotFound as error:
            raise _not_found_error(ctx, uri, str(error)) from None
        kind = "application/json" if uri == STATUS else "text/plain"
        return ReadResourceResult(contents=[TextResourceContents(uri=uri, mime_type=kind, text=text)])

    async def complete(self, _: Context, params: CompleteRequestParams) -> CompleteResult:
        """Ids and names of memories that begin with what was typed; nothing for any other argument."""
        found: list[str] = []
        if getattr(params.ref, "uri", "") == TEMPLATE and params.argument.name == "id":
            found = await self._run(partial(_matching, typed=params.argument.value))
        return CompleteResult(completion=Completion(values=found, total=len(found), has_more=False))

    async def _run(self, work: "Callable[[Engram], T]") -> T:
        """Some work with the store, in its turn; an error of the store becomes one of the protocol."""
        try:
            return await anyio.to_thread.run_sync(lambda: work(self._memory.get()), limiter=self._turn)
        except NotFound:
            raise
        except (EngramError, OSError) as error:
            raise MCPError(INTERNAL_ERROR, notice(redact_secrets(str(error)))) from None


_ALWAYS = (
    Resource(
        uri=RECALL,
        name="recall",
        title="What is known here",
        description="The active memories of this project, its user and everyone, as a block for a prompt.",
        mime_type="text/plain",
    ),
    Resource(
        uri=STATUS,
        name="status",
        title="State of the memory",
        description="How many memories are seen from here, how many of them wait for review, and the scope here.",
        mime_type="application/json",
    ),
)


def _newest(mem: "Engram") -> list[Resource]:
    found = mem.list(limit=MAX_LISTED_MEMORIES, scope=visible_scopes(mem))
    return [_resource(memory) for memory in found]


def _resource(memory: "Memory") -> Resource:
    return Resource(
        uri=f"{MEMORY}{quote(memory.id, safe='')}",
        name=make_inert(memory.name or memory.id),
        title=make_inert(one_line(memory.statement))[:_MAX_TITLE_CHARACTERS],
        mime_type="text/plain",
    )


def _recall(mem: "Engram") -> str:
    from engram.gates.trust import HIGHEST_TIER

    return f"{QUOTE_HEADING}\n\n{mem.context_text(tier=HIGHEST_TIER)}"


def _status(mem: "Engram") -> str:
    status = {**mem.upkeep.status(scopes=visible_scopes(mem)), "scope": mem.scope_here()}
    return make_inert(json.dumps(status, ensure_ascii=True, indent=2, default=str))


def _one(mem: "Engram", ref: str) -> str:
    return Shown.of(mem.explain_memory(ref, scope=caller_scopes(mem))).as_text()


def _matching(mem: "Engram", typed: str) -> list[str]:
    wanted = typed.casefold()
    found = mem.list(limit=1000, scope=visible_scopes(mem))
    values = [name for memory in found for name in (memory.id, memory.name) if name.casefold().startswith(wanted)]
    return [make_inert(value) for value in dict.fromkeys(values)][:MAX_COMPLETIONS]


_READS = {RECALL: _recall, STATUS: _status}


def _not_found_error(ctx: Context, uri: str, advice: str) -> MCPError:
    text = f"No resource {quote_text(redact_secrets(uri)[:100])}; {notice(redact_secrets(advice))}"
    code = INVALID_PARAMS if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS else NOT_FOUND_UNTIL_2025
    return MCPError(code, text, {"uri": make_inert(redact_secrets(uri)[:200])})
