"""The protocol side: what the server offers, and who answers which request."""

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import anyio
from mcp import MCPError
from mcp.server import Server, ServerRequestContext
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    InputRequiredResult,
    ListToolsResult,
    PaginatedRequestParams,
    SetLevelRequestParams,
    ToolAnnotations,
)
from mcp.types import Tool as Listed
from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema

from engram import __version__
from engram.mcp.calls import LazyMemory, ToolCaller
from engram.mcp.client_log import ClientLog
from engram.mcp.prompts import PromptLibrary
from engram.mcp.redaction import redact_secrets
from engram.mcp.resources import ResourceReader
from engram.mcp.tools import TOOLS, Tool
from engram.text.display import quote_text
from engram.verbs.tool_input import input_schema

__all__ = ["LazyMemory", "build", "describe_tool"]

NAME = "engram"
_EMPTY: tuple[Any, ...] = ("", [], None)
"""Defaults that a reader assumes anyway."""
INSTRUCTIONS = Path(__file__).with_name("instructions.txt")


class _Schema(GenerateJsonSchema):
    """Schemas without a title per field, which would only repeat the name and cost context."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def build(
    memory: LazyMemory,
    turn: anyio.CapacityLimiter,
    tools: Mapping[str, Tool] = TOOLS,
    prompts: PromptLibrary | None = None,
    resources: ResourceReader | None = None,
) -> Server[Any]:
    """The server. `turn` admits one call at a time, of all connections together."""
    log = ClientLog()
    caller = ToolCaller(memory, turn, log)
    reader = resources or ResourceReader(memory, turn)
    library = prompts or PromptLibrary()

    async def list_tools(_: ServerRequestContext[Any], __: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=[describe_tool(tool) for tool in tools.values()])

    def published_schema(name: str) -> Mapping[str, Any] | None:
        return describe_tool(tools[name]).input_schema if name in tools else None

    async def call_tool(
        ctx: ServerRequestContext[Any], params: CallToolRequestParams
    ) -> CallToolResult | InputRequiredResult:
        tool = tools.get(params.name)
        if tool is None:
            name = quote_text(redact_secrets(params.name)[:60])
            raise MCPError(INVALID_PARAMS, f"Unknown tool {name}; the tools are {', '.join(tools)}")
        return await caller.call(ctx, tool, params)

    server = Server[Any](
        NAME,
        version=__version__,
        title="Engram",
        description="A memory for AI agents: plain text its owner can read.",
        instructions=INSTRUCTIONS.read_text("utf-8"),
        get_tool_input_schema=published_schema,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=reader.list_resources,
        on_list_resource_templates=reader.templates,
        on_read_resource=reader.read,
        on_list_prompts=library.list_prompts,
        on_get_prompt=library.get,
        on_completion=reader.complete,
    )
    server.add_request_handler("logging/setLevel", SetLevelRequestParams, log.set_level)
    # A client of 2026 repeats a call with its user's answer; what it sends back must be what it was given.
    server.middleware.append(RequestStateBoundary(RequestStateSecurity.ephemeral(), default_audience=NAME))
    return server


@lru_cache(maxsize=64)
def describe_tool(tool: Tool) -> Listed:
    """A tool as the protocol lists it; made once, since a schema takes milliseconds."""
    hints = ToolAnnotations(
        title=tool.offer.title,
        read_only_hint=tool.offer.effect.is_read_only,
        destructive_hint=tool.offer.effect.is_destructive,
        idempotent_hint=tool.offer.effect.is_idempotent,
        open_world_hint=False,
    )
    return Listed(
        name=tool.name,
        title=tool.offer.title,
        description=tool.offer.description,
        input_schema=input_schema(tool.verb),
        output_schema=_output_schema(tool.returns),
        annotations=hints,
    )


def _output_schema(model: type[BaseModel]) -> dict[str, Any]:
    """A model's schema without what only costs context: titles, the models' docstrings, and defaults that say nothing."""
    schema = model.model_json_schema(mode="serialization", schema_generator=_Schema)
    for part in (schema, *schema.get("$defs", {}).values()):
        part.pop("description", None)
        part.pop("title", None)
        for field in part.get("properties", {}).values():
            if "default" in field and field["default"] in _EMPTY:
                del field["default"]
    return schema
