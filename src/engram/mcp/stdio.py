"""Serving one client on stdin and stdout."""

import os
import signal
import sys
from collections.abc import AsyncIterator
from typing import Any, BinaryIO, cast

import anyio
from mcp.server.stdio import stdio_server

from engram.mcp.json_text import whole_characters
from engram.mcp.protocol import LazyMemory, build

GRACE = 1.5
"""Seconds a running call may still take on a signal; clients kill after two."""


async def serve(memory: LazyMemory) -> None:
    """Serve stdin and stdout until stdin ends or a signal arrives."""
    turn = anyio.CapacityLimiter(1)
    server = build(memory, turn)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_exit_on_signal, memory, turn)
        async with stdio_server(stdin=cast(Any, _lines(_own_stdin()))) as (read, write):
            await server.run(read, write, server.create_initialization_options())
        tasks.cancel_scope.cancel()


def _own_stdin() -> BinaryIO:
    """The client's lines, on a separate descriptor: child processes read an empty stdin."""
    own, empty = os.dup(sys.stdin.fileno()), os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, sys.stdin.fileno())
    os.close(empty)
    return os.fdopen(own, "rb", closefd=False)


async def _lines(stdin: BinaryIO) -> AsyncIterator[str]:
    async for line in anyio.wrap_file(stdin):
        yield whole_characters(line).decode("utf-8", "replace")


async def _exit_on_signal(memory: LazyMemory, turn: anyio.CapacityLimiter) -> None:
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT, signal.SIGHUP) as signals:
        async for _ in signals:
            with anyio.move_on_after(GRACE):
                async with turn:
                    memory.close()
            # The thread that reads stdin cannot be woken, and unwinding would wait for it. Nothing is lost by leaving
            # at once: what was acknowledged is on disk.
            os._exit(0)
