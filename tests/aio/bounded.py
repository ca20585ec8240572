"""Running a test's coroutine in a loop of its own, never for longer than a limit; and looking at threads."""

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")
LIMIT = 30.0
"""Seconds after which a test that waits for something that does not come has failed."""


def bounded(main: Coroutine[Any, Any, T]) -> T:
    """What the coroutine returns."""

    async def within() -> T:
        async with asyncio.timeout(LIMIT):
            return await main

    return asyncio.run(within())


async def happened(event: threading.Event) -> None:
    """Wait for what a thread says, without keeping the loop from anything."""
    assert await asyncio.to_thread(event.wait, LIMIT), "a thread did not get there"


def engram_threads() -> set[str]:
    """The threads that asynchronous memories have now."""
    return {thread.name for thread in threading.enumerate() if thread.name.startswith("engram")}


class Gate:
    """A place where a thread stops until the test lets it go on. As a clock, it stops a write in its middle."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self.opened = threading.Event()

    def wait(self, *_: object) -> None:
        """Stop here."""
        self.reached.set()
        assert self.opened.wait(LIMIT), "the test never opened the gate"
