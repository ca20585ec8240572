"""Serving one client on stdin and stdout."""

import os
import signal
import sys
from collections.abc import AsyncIterator
from typing import Any, BinaryIO, cast

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp.types import (
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    RequestId,
)

from engram.mcp.json_text import UnreadableMessage, read_message, whole_characters
from engram.mcp.protocol import LazyMemory, build
from engram.mcp.watchdog import end_if_blocked

GRACE = 1.5
"""Seconds a running call may still take on a signal; clients kill after two."""
LAST_CALLS = 30.0
"""Seconds that calls may still take once stdin has ended; a client that cannot wait sends a signal."""


async def serve(memory: LazyMemory) -> None:
    """Serve stdin and stdout until stdin ends or a signal arrives."""
    turn = anyio.CapacityLimiter(1)
    server = build(memory, turn)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_exit_on_signal, memory, turn)
        tasks.start_soon(end_if_blocked)
        client = _StdioClient(_own_stdin())
        async with stdio_server(stdin=cast(Any, client.lines())) as (read, write):
            outgoing, sent = anyio.create_memory_object_stream[SessionMessage]()
            client.write = write
            tasks.start_soon(client.forward, sent)
            await server.run(read, outgoing, server.create_initialization_options())
        tasks.cancel_scope.cancel()


def _own_stdin() -> BinaryIO:
    """The client's lines, on a separate descriptor: child processes read an empty stdin."""
    own, empty = os.dup(sys.stdin.fileno()), os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, sys.stdin.fileno())
    os.close(empty)
    return os.fdopen(own, "rb", closefd=False)


class _StdioClient:
    """The client at the other end. Whatever it asks is answered, also what the protocol's package would pass over, and after it closed stdin."""

    def __init__(self, stdin: BinaryIO) -> None:
        self._stdin = stdin
        self.write: Any = None
        """The stream that stdout is written from."""
        self._calls: set[RequestId] = set()
        """The client's requests that have no answer yet."""
        self._questions: set[RequestId] = set()
        """The server's own requests to the client that have no answer yet."""
        self._answered = anyio.Event()

    async def lines(self) -> AsyncIterator[str]:
        """Every line with a message that can be read; anything else is answered with an error. Ends once all calls are answered."""
        async for line in anyio.wrap_file(self._stdin):
            text = whole_characters(line).decode("utf-8", "replace")
            if not text.strip():
                continue
            try:
                self._note_received(read_message(text))
            except UnreadableMessage as error:
                if error.answer is not None:
                    await self.write.send(SessionMessage(error.answer))
            else:
                yield text
        with anyio.move_on_after(LAST_CALLS):
            # A call that asks the user something waits for an answer that cannot come any more.
            while len(self._calls) > len(self._questions):
                self._answered = anyio.Event()
                await self._answered.wait()

    async def forward(self, messages: MemoryObjectReceiveStream[SessionMessage]) -> None:
        """Write the server's messages."""
        async with messages, self.write:
            async for message in messages:
                await self.write.send(message)
                self._note_sent(message.message)

    def _note_received(self, message: JSONRPCMessage) -> None:
        match message:
            case JSONRPCRequest():
                self._calls.add(message.id)
            case JSONRPCNotification(
                method="notifications/cancelled", params={"requestId": int() | str() as cancelled}
            ):
                # As the protocol's package does, whichever of both types the client wrote.
                self._calls = {call for call in self._calls if str(call) != str(cancelled)}
            case JSONRPCResponse() | JSONRPCError() if message.id is not None:
                self._questions.discard(message.id)

    def _note_sent(self, message: JSONRPCMessage) -> None:
        match message:
            case JSONRPCRequest():
                self._questions.add(message.id)
            case JSONRPCResponse() | JSONRPCError() if message.id is not None:
                self._calls.discard(message.id)
        self._answered.set()


async def _exit_on_signal(memory: LazyMemory, turn: anyio.CapacityLimiter) -> None:
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT, signal.SIGHUP) as signals:
        async for _ in signals:
            with anyio.move_on_after(GRACE):
                async with turn:
                    memory.close()
            # The thread that reads stdin cannot be woken, and unwinding would wait for it. Nothing is lost by leaving
            # at once: what was acknowledged is on disk.
            os._exit(0)
