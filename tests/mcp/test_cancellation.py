"""A cancelled call gives its turn back, and what it has committed stays.

Inside of one process, a client of 2026 waits for the call it cancels; the handshake up to 2025 goes over streams, as between processes.
"""

import threading
from typing import Any

import anyio
import anyio.to_thread
import pytest
from mcp import Client

from engram import Engram
from engram.mcp.calls import LazyMemory
from engram.mcp.protocol import build
from tests.mcp.talking import PATIENCE, data

MODES = ["legacy", "auto"]


class SlowStore:
    """A store that opens when it is told to."""

    def __init__(self, mem: Engram) -> None:
        self.mem, self.entered, self.go_on = mem, threading.Event(), threading.Event()

    def __call__(self) -> Engram:
        """The store, later."""
        self.entered.set()
        assert self.go_on.wait(PATIENCE)
        return self.mem


@pytest.mark.parametrize("mode", MODES)
def test_a_call_cancelled_while_it_waits_never_runs(mode: Any) -> None:
    async def conversation(mem: Engram) -> None:
        slow = SlowStore(mem)
        server = build(LazyMemory(slow), anyio.CapacityLimiter(1))
        async with (
            Client(server, mode=mode, read_timeout_seconds=PATIENCE) as client,
            anyio.create_task_group() as calls,
        ):
            calls.start_soon(client.call_tool, "recall", {"question": "first"})
            assert await anyio.to_thread.run_sync(slow.entered.wait, PATIENCE)
            with anyio.CancelScope() as waiting:
                calls.start_soon(_cancel_soon, waiting)
                await client.call_tool(
                    "learn", {"statement": "The waiting call is never carried out", "scope": "global"}
                )
            assert waiting.cancelled_caught
            slow.go_on.set()
            listed = data(await client.call_tool("list", {"status": "any", "scope": "global"}))
            assert listed["memories"] == []

    with Engram.open(ephemeral=True) as mem:
        anyio.run(conversation, mem)


def test_a_call_cancelled_while_the_store_opens_does_nothing_more_and_the_next_one_runs() -> None:
    async def conversation(mem: Engram) -> None:
        slow = SlowStore(mem)
        server = build(LazyMemory(slow), anyio.CapacityLimiter(1))
        async with (
            Client(server, mode="legacy", read_timeout_seconds=PATIENCE) as client,
            anyio.create_task_group() as calls,
        ):
            with anyio.CancelScope() as running:
                calls.start_soon(_cancel_when, slow.entered, running)
                await client.call_tool("learn", {"statement": "The cancelled call is not", "scope": "global"})
            assert running.cancelled_caught
            slow.go_on.set()
            learned = data(
                await client.call_tool("learn", {"statement": "The next call is carried out", "scope": "global"})
            )
            assert learned["outcome"] == "CREATED"
            listed = data(await client.call_tool("list", {"status": "any", "scope": "global"}))
            assert [memory["id"] for memory in listed["memories"]] == [learned["memory"]["id"]]

    with Engram.open(ephemeral=True) as mem:
        anyio.run(conversation, mem)


def test_what_a_cancelled_call_has_committed_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    committed, go_on = threading.Event(), threading.Event()

    async def conversation(mem: Engram) -> None:
        server = build(LazyMemory(lambda: mem), anyio.CapacityLimiter(1))
        async with (
            Client(server, mode="legacy", read_timeout_seconds=PATIENCE) as client,
            anyio.create_task_group() as calls,
        ):
            with anyio.CancelScope() as running:
                calls.start_soon(_cancel_when, committed, running)
                await client.call_tool("learn", {"statement": "The heron is a bird of passage", "scope": "global"})
            go_on.set()
            found = data(await client.call_tool("list", {"scope": "global"}))
            assert [memory["statement"] for memory in found["memories"]] == ["The heron is a bird of passage"]

    with Engram.open(ephemeral=True) as mem:
        learn = mem.learn

        def slow(*args: Any, **fields: Any) -> Any:
            decision = learn(*args, **fields)
            committed.set()
            assert go_on.wait(PATIENCE)
            return decision

        monkeypatch.setattr(mem, "learn", slow)
        anyio.run(conversation, mem)


async def _cancel_soon(scope: anyio.CancelScope) -> None:
    for _ in range(20):
        await anyio.lowlevel.checkpoint()
    scope.cancel()


async def _cancel_when(event: threading.Event, scope: anyio.CancelScope) -> None:
    assert await anyio.to_thread.run_sync(event.wait, PATIENCE)
    scope.cancel()
