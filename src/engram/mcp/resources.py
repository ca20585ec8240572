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
from engram.mcp.redaction import redacted
from engram.mcp.results import QUOTED, Shown
from engram.mcp.tools import caller, seen
from engram.model.errors import EngramError, NotFound
from engram.text.display import inert, notice, one_line, quoted

if TYPE_CHECKING:
    from engram.client import Engram
    from engram.model.memory import Memory

RECALL, STATUS, MEMORY = "memory://recall", "memory://status", "memory://memory/"
TEMPLATE = f"{MEMORY}{{id}}"
NOT_FOUND_UNTIL_2025 = -32002
"""The protocol's code for a resource that does not exist; since 2026 that is an invalid parameter."""
MOST_LISTED = 50
"""Memories that are listed, the newest; any other can be read by its id."""
MOST_COMPLETED = 100
"""The most values of a completion that the protocol allows."""
_LONGEST_TITLE = 80
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

    async def listed(self, _: Context, __: PaginatedRequestParams | None) -> ListResourcesResult:
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
            raise _no_such(ctx, uri, "memory://recall, memory://status and memory://memory/{id} can be read")
        try:
            text = await self._run(work)
        except NotFound as error:
            raise _no_such(ctx, uri, str(error)) from None
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
            raise MCPError(INTERNAL_ERROR, notice(redacted(str(error)))) from None


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
    found = mem.list(limit=MOST_LISTED, scope=seen(mem))
    return [_resource(memory) for memory in found]


def _resource(memory: "Memory") -> Resource:
    return Resource(
        uri=f"{MEMORY}{quote(memory.id, safe='')}",
        name=inert(memory.name or memory.id),
        title=inert(one_line(memory.statement))[:_LONGEST_TITLE],
        mime_type="text/plain",
    )


def _recall(mem: "Engram") -> str:
    from engram.gates.trust import HIGHEST_TIER

    return f"{QUOTED}\n\n{mem.context_text(tier=HIGHEST_TIER)}"


def _status(mem: "Engram") -> str:
    status = {**mem.upkeep.status(scopes=seen(mem)), "scope": mem.scope_here()}
    return inert(json.dumps(status, ensure_ascii=True, indent=2, default=str))


def _one(mem: "Engram", ref: str) -> str:
    return Shown.of(mem.explain_memory(ref, scope=caller(mem))).as_text()


def _matching(mem: "Engram", typed: str) -> list[str]:
    wanted = typed.casefold()
    found = mem.list(limit=1000, scope=seen(mem))
    values = [name for memory in found for name in (memory.id, memory.name) if name.casefold().startswith(wanted)]
    return [inert(value) for value in dict.fromkeys(values)][:MOST_COMPLETED]


_READS = {RECALL: _recall, STATUS: _status}


def _no_such(ctx: Context, uri: str, advice: str) -> MCPError:
    text = f"No resource {quoted(redacted(uri)[:100])}; {notice(redacted(advice))}"
    code = INVALID_PARAMS if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS else NOT_FOUND_UNTIL_2025
    return MCPError(code, text, {"uri": inert(redacted(uri)[:200])})
