"""Working through jobs for as long as a program runs, without a thread of its own."""

import asyncio
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from engram.aio.threads import Threads

if TYPE_CHECKING:
    from engram.sessions.jobs import Jobs, Worked

BATCH = 20
"""Jobs done before the event is looked at again."""


class Worker:
    """A worker as a task: it borrows a thread only while there is something to do."""

    _threads: Threads
    _facet: "Jobs"

    async def run(
        self,
        stop: "threading.Event | asyncio.Event",
        idle_seconds: float = 1.0,
        told: "Callable[[Worked], None] | None" = None,
    ) -> None:
        """Work until told to stop; an `asyncio.Event` stops it at once, and so does cancelling it.

        A store that is busy or away is tried again, for a quarter of an hour on end.
        """
        from engram.sessions.jobs import MOST_TROUBLES, PASSING, jittered, pause_after

        troubles = 0
        while not stop.is_set():
            try:
                worked = await self._threads.run(self._facet.work, BATCH)
            except PASSING:
                troubles += 1
                if troubles > MOST_TROUBLES:
                    raise
                await _idle(stop, jittered(pause_after(troubles)))
                continue
            troubles = 0
            if worked and told is not None:
                told(worked)
            if not worked:
                await _idle(stop, jittered(idle_seconds))


async def _idle(stop: "threading.Event | asyncio.Event", seconds: float) -> None:
    if isinstance(stop, asyncio.Event):
        try:
            async with asyncio.timeout(seconds):
                await stop.wait()
        except TimeoutError:
            return
    else:
        await asyncio.sleep(seconds)
