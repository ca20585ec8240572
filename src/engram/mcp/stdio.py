"""Serving one client on stdin and stdout."""

import os
import signal
import sys
import time
from collections.abc import AsyncIterator
from typing import Any, BinaryIO, cast

import anyio
import anyio.to_thread
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

from engram.mcp.calls import LazyMemory
from engram.mcp.protocol import build
from engram.mcp.transport import UnreadableMessage, end_if_blocked, read_message, replace_half_characters

GRACE_SECONDS = 1.5
"""Seconds that a running call may still take after a signal; clients kill after two."""
LAST_CALLS_SECONDS = 30.0
"""Seconds that calls may still take once stdin has ended; an impatient client sends a signal."""
LAST_READ_SECONDS = 5.0
"""Seconds that a client that has closed stdin may take to read the next answer."""
_CHECK_SECONDS = 1.0
_UNDELIVERED = 1
"""The exit code if the client did not read its answers."""


async def serve(memory: LazyMemory) -> None:
    """Serve stdin and stdout until stdin ends or a signal arrives."""
    turn = anyio.CapacityLimiter(1)
    server = build(memory, turn)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_exit_on_signal, memory, turn)
        tasks.start_soon(end_if_blocked)
        output = _ClientOutput(_own_stdout())
        client = _StdioClient(_own_stdin())
        tasks.start_soon(_exit_when_unread, memory, turn, client, output)
        async with stdio_server(stdin=cast(Any, client.lines()), stdout=cast(Any, output)) as (read, write):
            outgoing, sent = anyio.create_memory_object_stream[SessionMessage]()
            client.write = write
            tasks.start_soon(client.forward, sent)
            await server.run(read, outgoing, server.create_initialization_options())
        tasks.cancel_scope.cancel()


def _own_stdin() -> BinaryIO:
    """The client's lines, on a separate descriptor, so that child processes read an empty stdin."""
    own, empty = os.dup(sys.stdin.fileno()), os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, sys.stdin.fileno())
    os.close(empty)
    return os.fdopen(own, "rb", closefd=False)


def _own_stdout() -> int:
    """The client's end of stdout, on a separate descriptor, so that stray prints go to stderr."""
    own = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return own


class _ClientOutput:
    """Writes messages to the client, and knows how long one has been waiting to be read."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._since: float | None = None
        self.closed = anyio.Event()
        """Set when the client has closed its end."""

    async def write(self, text: str) -> None:
        """Write a message, or nothing once the client has closed its end."""
        if self.closed.is_set():
            return
        self._since = time.monotonic()
        try:
            # A thread that waits for a client that does not read cannot be woken: `_exit_when_unread` ends the process.
            await anyio.to_thread.run_sync(self._write_all, text.encode())
        except OSError:
            self.closed.set()
        finally:
            self._since = None

    async def flush(self) -> None:
        """Do nothing, because nothing is buffered."""

    def blocked_seconds(self) -> float:
        """How long the client has not read the message being written; 0 if there is none."""
        since = self._since
        return time.monotonic() - since if since is not None else 0.0

    def _write_all(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self._descriptor, view) :]


class _StdioClient:
    """The client at the other end.

    Every request is answered, even those that the protocol's package would ignore, and those before stdin was closed.
    """

    def __init__(self, stdin: BinaryIO) -> None:
        self._stdin = stdin
        self.write: Any = None
        """The stream that stdout is written from."""
        self._calls: set[RequestId] = set()
        """The client's requests that have no answer yet."""
        self._questions: set[RequestId] = set()
        """The server's own requests to the client that have no answer yet."""
        self._answered = anyio.Event()
        self._ended_at = float("inf")

    async def lines(self) -> AsyncIterator[str]:
        """Every line with a readable message; any other line is answered with an error.

        Ends once all calls are answered.
        """
        async for line in anyio.wrap_file(self._stdin):
            text = replace_half_characters(line).decode("utf-8", "replace")
            if not text.strip():
                continue
            try:
                self._note_received(read_message(text))
            except UnreadableMessage as error:
                if error.answer is not None:
                    await self.write.send(SessionMessage(error.answer))
            else:
                yield text
        self._ended_at = time.monotonic()
        with anyio.move_on_after(LAST_CALLS_SECONDS):
            # A call that asks the user something waits for an answer that can no longer come.
            while len(self._calls) > len(self._questions):
                self._answered = anyio.Event()
                await self._answered.wait()

    def seconds_since_end(self) -> float:
        """Seconds since the client closed stdin; negative if it has not."""
        return time.monotonic() - self._ended_at

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
                # Like the protocol's package, for either type that the client wrote.
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
            await _exit(memory, turn, 0)


async def _exit_when_unread(
    memory: LazyMemory, turn: anyio.CapacityLimiter, client: _StdioClient, output: _ClientOutput
) -> None:
    """Exit when the client has closed stdout, or has closed stdin and does not read its answers."""
    # An answer may have waited long before the client closed stdin, and the client may be about to read it.
    while not output.closed.is_set() and min(output.blocked_seconds(), client.seconds_since_end()) <= LAST_READ_SECONDS:
        with anyio.move_on_after(_CHECK_SECONDS):
            await output.closed.wait()
    await _exit(memory, turn, _UNDELIVERED)


async def _exit(memory: LazyMemory, turn: anyio.CapacityLimiter, code: int) -> None:
    with anyio.move_on_after(GRACE_SECONDS):
        async with turn:
            memory.close()
    # The threads that read stdin and write stdout cannot be woken, and a normal exit would wait for them. Nothing is lost
    # by exiting at once: what was acknowledged is on disk.
    os._exit(code)
