"""Serving one client on stdin and stdout."""

import os
import signal
import sys
from collections.abc import AsyncIterator
from typing import Any, BinaryIO, cast

import anyio
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp.types import INVALID_REQUEST, ErrorData, JSONRPCError, jsonrpc_message_adapter

from engram.mcp.json_text import unreadable_request, whole_characters
from engram.mcp.protocol import LazyMemory, build

GRACE = 1.5
"""Seconds a running call may still take on a signal; clients kill after two."""


async def serve(memory: LazyMemory) -> None:
    """Serve stdin and stdout until stdin ends or a signal arrives."""
    turn = anyio.CapacityLimiter(1)
    server = build(memory, turn)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_exit_on_signal, memory, turn)
        client = _StdinClient(_own_stdin())
        async with stdio_server(stdin=cast(Any, client.lines())) as (read, write):
            client.answers = write
            await server.run(read, write, server.create_initialization_options())
        tasks.cancel_scope.cancel()


def _own_stdin() -> BinaryIO:
    """The client's lines, on a separate descriptor: child processes read an empty stdin."""
    own, empty = os.dup(sys.stdin.fileno()), os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, sys.stdin.fileno())
    os.close(empty)
    return os.fdopen(own, "rb", closefd=False)


class _StdinClient:
    """The client's messages. The protocol's package passes over those that it cannot read, and their sender would wait for ever."""

    def __init__(self, stdin: BinaryIO) -> None:
        self._stdin = stdin
        self.answers: Any = None
        """Where answers are written."""

    async def lines(self) -> AsyncIterator[str]:
        """Every line with a message that can be read; a request that cannot be is answered with an error."""
        async for line in anyio.wrap_file(self._stdin):
            text = whole_characters(line).decode("utf-8", "replace")
            try:
                jsonrpc_message_adapter.validate_json(text, by_name=False)
            except ValueError:
                await self._refuse(text)
            else:
                yield text

    async def _refuse(self, text: str) -> None:
        known = unreadable_request(text)
        if known is not None:
            error = ErrorData(code=INVALID_REQUEST, message="This is not a request as JSON-RPC 2.0 and MCP have it")
            await self.answers.send(SessionMessage(JSONRPCError(jsonrpc="2.0", id=known, error=error)))


async def _exit_on_signal(memory: LazyMemory, turn: anyio.CapacityLimiter) -> None:
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT, signal.SIGHUP) as signals:
        async for _ in signals:
            with anyio.move_on_after(GRACE):
                async with turn:
                    memory.close()
            # The thread that reads stdin cannot be woken, and unwinding would wait for it. Nothing is lost by leaving
            # at once: what was acknowledged is on disk.
            os._exit(0)
