"""The protocol side: lists the tools, runs one call at a time on a thread, and turns errors into text."""

import logging
import os
import re
import signal
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from functools import partial
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import anyio
import anyio.to_thread
from mcp import MCPError
from mcp.server import Server, ServerRequestContext
from mcp.server.stdio import stdio_server
from mcp.types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    ToolAnnotations,
)
from mcp.types import Tool as Listed
from pydantic import BaseModel, ValidationError
from pydantic.json_schema import GenerateJsonSchema

from engram import __version__
from engram.gates.secrets.scan import redact
from engram.mcp.tools import TOOLS, Tool
from engram.model.errors import EngramError, NotFound
from engram.text.display import notice, quoted

if TYPE_CHECKING:
    from engram.client import Engram

INSTRUCTIONS = Path(__file__).with_name("instructions.txt")
GRACE = 1.5
"""Seconds a running call may still take on a signal; clients kill after two."""
_log = logging.getLogger(__name__)
_ESCAPE = re.compile(r"\\(?:u[dD][89abAB]..\\u[dD][c-fC-F]..|(?P<half>u[dD][89a-fA-F]..)|.)")
"""One escape of JSON: a whole pair, half of one, or any other."""


class LazyMemory:
    """The store, opened by the first call that needs it, so that listing the tools is quick."""

    def __init__(self, opened: "Callable[[], Engram]") -> None:
        self._opened = opened
        self._memory: Engram | None = None

    def get(self) -> "Engram":
        """The open store. Where opening fails, the next call tries again."""
        if self._memory is None:
            self._memory = self._opened()
        return self._memory

    def close(self) -> None:
        """Close the store, if it was opened."""
        if self._memory is not None:
            self._memory.close()
            self._memory = None


class _Schema(GenerateJsonSchema):
    """Schemas without a title per field, which would only repeat the name and cost context."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def build(memory: LazyMemory, turn: anyio.CapacityLimiter) -> Server[Any]:
    """The server: seven tools, nothing else. `turn` admits one call at a time."""

    async def list_tools(_: ServerRequestContext[Any], __: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=[listed(tool) for tool in TOOLS.values()])

    async def call_tool(_: ServerRequestContext[Any], params: CallToolRequestParams) -> CallToolResult:
        tool = TOOLS.get(params.name)
        if tool is None:
            name = quoted(redact(params.name)[0][:60])
            raise MCPError(INVALID_PARAMS, f"Unknown tool {name}; the tools are {', '.join(TOOLS)}")
        return await anyio.to_thread.run_sync(partial(answered, memory, tool, params.arguments or {}), limiter=turn)

    return Server(
        "engram",
        version=__version__,
        title="Engram",
        description="A memory for AI agents: plain text its owner can read.",
        instructions=INSTRUCTIONS.read_text("utf-8"),
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def listed(tool: Tool) -> Listed:
    """A tool as the protocol lists it."""
    hints = ToolAnnotations(
        title=tool.title,
        read_only_hint=False,
        destructive_hint=tool.effect.destructive,
        idempotent_hint=tool.effect.idempotent,
        open_world_hint=False,
    )
    return Listed(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=_schema(tool.takes, "validation"),
        output_schema=_schema(tool.returns, "serialization"),
        annotations=hints,
    )


def _schema(model: type[BaseModel], mode: Any) -> dict[str, Any]:
    schema = model.model_json_schema(mode=mode, schema_generator=_Schema)
    # The docstrings are for readers of this code; the tool's description is for the model.
    schema.pop("description", None)
    return schema


def answered(memory: LazyMemory, tool: Tool, arguments: Mapping[str, Any]) -> CallToolResult:
    """Run one call. Errors are part of the result, where the model can read them and do better."""
    try:
        given = tool.takes.model_validate(arguments)
    except ValidationError as error:
        return _refused(f"{tool.name}: {_wrong(error, tool)}")
    try:
        answer = tool.run(memory.get(), given)
        return CallToolResult(
            content=[TextContent(type="text", text=answer.as_text())],
            structured_content=answer.model_dump(mode="json"),
        )
    except NotFound as error:
        return _refused(f"{error}. {tool.not_found}".strip())
    except EngramError as error:
        return _refused(str(error) or type(error).__doc__ or type(error).__name__)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        return _refused(f"{where}{error.strerror or error}")
    except Exception as error:
        _log.exception("the tool %s failed", tool.name)
        return _refused(f"{tool.name} failed inside Engram ({type(error).__name__}); the server's log says more")


def _wrong(error: ValidationError, tool: Tool) -> str:
    """Each wrong argument and what is wrong with it; never its value, which may be a secret."""
    unknown = f"unknown argument; the arguments are {', '.join(tool.takes.model_fields)}"
    return "; ".join(
        f"{'.'.join(map(str, part['loc']))}: {unknown if part['type'] == 'extra_forbidden' else part['msg']}"
        for part in error.errors(include_url=False, include_input=False, include_context=False)
    )


def _refused(words: str) -> CallToolResult:
    """An error result; anything that looks like a secret is redacted."""
    return CallToolResult(content=[TextContent(type="text", text=notice(redact(words)[0]))], is_error=True)


async def serve(memory: LazyMemory) -> None:
    """Serve stdin and stdout until stdin ends or a signal arrives."""
    turn = anyio.CapacityLimiter(1)
    server = build(memory, turn)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_exit_on_signal, memory, turn)
        async with stdio_server(stdin=cast(Any, _lines(_own_stdin()))) as (read, write):
            await server.run(read, write, server.create_initialization_options())
        tasks.cancel_scope.cancel()


def _own_stdin() -> TextIOWrapper:
    """The client's lines, on a separate descriptor: child processes read an empty stdin."""
    own, empty = os.dup(sys.stdin.fileno()), os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, sys.stdin.fileno())
    os.close(empty)
    return TextIOWrapper(os.fdopen(own, "rb", closefd=False), encoding="utf-8", errors="replace")


async def _lines(stdin: TextIOWrapper) -> AsyncIterator[str]:
    async for line in anyio.wrap_file(stdin):
        yield whole_characters(line)


def whole_characters(line: str) -> str:
    """A line of JSON without halves of surrogate pairs, which JavaScript writes and the protocol's parser rejects."""
    return _ESCAPE.sub(lambda found: r"\ufffd" if found["half"] else found[0], line) if r"\u" in line else line


async def _exit_on_signal(memory: LazyMemory, turn: anyio.CapacityLimiter) -> None:
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT, signal.SIGHUP) as signals:
        async for _ in signals:
            with anyio.move_on_after(GRACE):
                async with turn:
                    memory.close()
            # The thread that reads stdin cannot be woken, and unwinding would wait for it. Nothing is lost by leaving
            # at once: what was acknowledged is on disk.
            os._exit(0)
