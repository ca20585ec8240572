"""Calls a memory from an adapter, whether the memory and the caller are synchronous or asynchronous."""

import asyncio
from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar

from engram.aio import AsyncEngram
from engram.client import Engram
from engram.model.errors import InvalidInput

P = ParamSpec("P")
T = TypeVar("T")
AnyEngram = Engram | AsyncEngram


async def awaited_call(
    mem: AnyEngram, function: Callable[Concatenate[Engram, P], T], *args: P.args, **kwargs: P.kwargs
) -> T:
    """Call a function with the `Engram` behind `mem` on a thread, so that the event loop keeps running."""
    if isinstance(mem, AsyncEngram):
        return await mem.run(function, *args, **kwargs)
    return await asyncio.to_thread(function, mem, *args, **kwargs)


def blocking_call(
    mem: AnyEngram, function: Callable[Concatenate[Engram, P], T], *args: P.args, **kwargs: P.kwargs
) -> T:
    """Like `awaited_call`, for a synchronous caller.

    Raises `InvalidInput` for an `AsyncEngram` in the thread of a running event loop.
    """
    if isinstance(mem, Engram):
        return function(mem, *args, **kwargs)
    if _in_event_loop():
        raise InvalidInput(
            "a synchronous call of an AsyncEngram would block the event loop it is made in; await the asynchronous "
            "call (`await store.aget(…)`), or open an `Engram`"
        )
    return asyncio.run(mem.run(function, *args, **kwargs))


def _in_event_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
