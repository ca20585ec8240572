"""Talking to a real server process: the SDK's own client in a thread of its own, or bare lines on its pipes."""

import json
import os
import select
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import httpx2
from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp import Client, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.types import CallToolResult, TextContent, Tool

from engram import Engram, Memory
from engram.mcp.calls import LazyMemory
from engram.mcp.protocol import build

COMMAND = [sys.executable, "-m", "engram.mcp"]
PATIENCE = 120.0
"""Seconds any one answer may take before a test fails; a busy machine needs a few."""
_DEEP = f"{'[' * 1_000}{']' * 1_000}"
UNREADABLE: list[tuple[str, object, int]] = [
    ('{"jsonrpc": "2.0", "id": "odd", "method": "tools/call", "params": [1]}', "odd", -32600),
    ('{"jsonrpc": "2.0", "id": "odd", "method": 7}', "odd", -32600),
    ('{"jsonrpc": "2.0", "id": "odd", "params": {}}', "odd", -32600),
    (f'{{"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {{"limit": {"9" * 5000}}}}}', 5, -32600),
    (
        f'{{"jsonrpc": "2.0", "method": "tools/call", "params": {{"name": "]}}\\"", "arguments": {_DEEP}}}, "id": 7}}',
        7,
        -32600,
    ),
    ('{"jsonrpc": "2.0", "id": null, "method": "ping"}', None, -32600),
    ('{"jsonrpc": "2.0", "id": 1.5, "method": "ping"}', None, -32600),
    ('{"jsonrpc": "2.0", "id": true, "method": "ping"}', None, -32600),
    ('[{"jsonrpc": "2.0", "id": 1, "method": "ping"}, {"jsonrpc": "2.0", "id": 2, "method": "ping"}]', None, -32600),
    ("[]", None, -32600),
    ("{}", None, -32600),
    ("null", None, -32600),
    ("not json", None, -32700),
    ('{"jsonrpc": "2.0", "id": 1, "method": "pi', None, -32700),
    ("[" * 100_000, None, -32700),
    ("\udcff\udcfe", None, -32700),
]
"""What no request is read from, the id of its answer and the error's code; half a character stands for a byte that is no UTF-8."""


class Talk:
    """A conversation with one server, through the SDK's client."""

    def __init__(self, portal: BlockingPortal, client: Client, store: Path) -> None:
        self._portal = portal
        self.client = client
        self.store = store

    def tools(self) -> dict[str, Tool]:
        """The listed tools by name."""
        return {tool.name: tool for tool in self._portal.call(self.client.list_tools).tools}

    def call(self, tool: str, **arguments: Any) -> CallToolResult:
        """The raw result of a call."""
        return self.begin(tool, **arguments).result(PATIENCE)

    def begin(self, tool: str, **arguments: Any) -> "Future[CallToolResult]":
        """A call under way."""
        return self._portal.start_task_soon(partial(self.client.call_tool, tool, arguments))

    def do(self, method: str, *args: Any, **kwargs: Any) -> Any:
        """The answer of any other method of the client."""
        return self._portal.call(partial(getattr(self.client, method), *args, **kwargs))

    def ask(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The data of a call that must succeed."""
        result = self.call(tool, **arguments)
        assert not result.is_error, said(result)
        return data(result)

    def refusal(self, tool: str, **arguments: Any) -> str:
        """The words of a call that must fail."""
        result = self.call(tool, **arguments)
        assert result.is_error
        assert "Traceback" not in said(result)
        return said(result)


def said(result: CallToolResult) -> str:
    """The text of a result."""
    (block,) = result.content
    assert isinstance(block, TextContent)
    return block.text


def data(result: CallToolResult) -> dict[str, Any]:
    """The structured content of a result."""
    assert isinstance(result.structured_content, dict)
    return result.structured_content


def environment(store: Path) -> dict[str, str]:
    """What makes a server keep its store in a folder, and run the code under test."""
    return {
        "ENGRAM_HOME": str(store / "home"),
        "ENGRAM_CACHE": str(store / "cache"),
        # The sources of whoever runs the tests are none of their business.
        "HOME": str(store),
        "CLAUDE_CONFIG_DIR": str(store / "claude"),
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
    }


@contextmanager
def talking(store: Path, directory: Path | None = None, *, mode: str = "auto", **callbacks: Any) -> Iterator[Talk]:
    """A server of its own on a store, started by the client as any client would; it must have nothing to complain of."""
    place = directory or store
    server = StdioServerParameters(command=COMMAND[0], args=COMMAND[1:], env=environment(store), cwd=place)
    with (place / f"stderr-{os.urandom(4).hex()}").open("w+") as errors:
        client = Client(stdio_client(server, errors), mode=mode, read_timeout_seconds=PATIENCE, **callbacks)
        with start_blocking_portal() as portal, portal.wrap_async_context_manager(client) as connected:
            yield Talk(portal, connected, store)
        errors.seek(0)
        assert errors.read() == ""


@contextmanager
def process(store: Path, command: Sequence[str] = COMMAND) -> Iterator["subprocess.Popen[bytes]"]:
    """A server as a bare process, gone at the end whatever happens."""
    pipe = subprocess.PIPE
    running = subprocess.Popen(
        command,
        stdin=pipe,
        stdout=pipe,
        stderr=pipe,
        cwd=store,
        env={**os.environ, **environment(store)},
        start_new_session=True,
    )
    with running:
        try:
            yield running
        finally:
            running.kill()


def exchange(running: "subprocess.Popen[bytes]", method: str, **params: Any) -> dict[str, Any]:
    """Send one request as a line and read its answer, the only thing stdout may hold."""
    assert running.stdin is not None
    assert running.stdout is not None
    request = {"jsonrpc": "2.0", "id": method, "method": method, "params": params}
    running.stdin.write(json.dumps(request).encode() + b"\n")
    running.stdin.flush()
    ready, _, _ = select.select([running.stdout], [], [], PATIENCE)
    assert ready, f"no answer to {method} within {PATIENCE} s"
    answer: dict[str, Any] = json.loads(running.stdout.readline())
    assert answer["id"] == method
    return answer


def initialize(running: "subprocess.Popen[bytes]") -> dict[str, Any]:
    """The handshake of clients before 2026."""
    who = {"name": "test", "version": "0"}
    result: dict[str, Any] = exchange(
        running, "initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo=who
    )["result"]
    return result


def kept(store: Path) -> list[Memory]:
    """Every memory of a store, whatever its status."""
    with opened(store) as mem:
        return mem.list(limit=None, status="any")


def opened(store: Path) -> Engram:
    """The store itself, beside the servers."""
    return Engram.open(store / "home", cache=store / "cache")


@contextmanager
def talking_inside(mem: Engram, *, mode: str = "auto", **callbacks: Any) -> Iterator[Talk]:
    """A conversation with a server in this process, on a store that is open already."""
    server = build(LazyMemory(lambda: mem), anyio.CapacityLimiter(1))
    client = Client(server, mode=mode, read_timeout_seconds=PATIENCE, **callbacks)
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(client) as connected:
        yield Talk(portal, connected, Path(mem.store.place))


@dataclass(frozen=True)
class Address:
    """Where a server listens, and the token it wants."""

    url: str
    token: str
    process: "subprocess.Popen[bytes]"

    def client(self, token: str = "") -> httpx2.AsyncClient:
        """An HTTP client with a token."""
        return create_mcp_http_client(headers={"authorization": f"Bearer {token or self.token}"})


@contextmanager
def listening(store: Path, *options: str, command: Sequence[str] = ()) -> Iterator[Address]:
    """A server over HTTP on a free port of this machine, gone at the end whatever happens."""
    token_file = store / "token"
    if not token_file.exists():
        token_file.touch(0o600)
        token_file.write_text("0123456789abcdef" * 2)
    program = [sys.executable, "-m", "engram.cli", "mcp", "--http", "--port", "0", "--token-file", str(token_file)]
    env = {**os.environ, **environment(store)}
    with subprocess.Popen([*(command or program), *options], cwd=store, env=env, stderr=subprocess.PIPE) as running:
        try:
            assert running.stderr is not None
            line = running.stderr.readline().decode()
            assert " at http://" in line, line + running.stderr.read().decode()
            yield Address(line.rpartition(" ")[2].strip(), token_file.read_text(), running)
        finally:
            running.terminate()
            running.wait(PATIENCE)


@contextmanager
def talking_over_http(address: Address, store: Path, *, mode: str = "auto", **callbacks: Any) -> Iterator[Talk]:
    """A conversation with a server that listens."""
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(address.client()) as connection:
        transport = streamable_http_client(address.url, http_client=connection)
        client = Client(transport, mode=mode, read_timeout_seconds=PATIENCE, **callbacks)
        with portal.wrap_async_context_manager(client) as connected:
            yield Talk(portal, connected, store)
