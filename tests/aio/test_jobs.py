"""A worker as a task: it does what is due, and ends when it is told to or cancelled."""

import asyncio
import threading
from typing import Any

import pytest

from engram.aio import AsyncEngram
from engram.sessions.jobs import WorkResult
from tests.aio.bounded import bounded


def test_a_worker_does_what_is_due_until_it_is_stopped(files: dict[str, Any]) -> None:
    async def main() -> None:
        stop, done = asyncio.Event(), asyncio.Event()
        worked: list[WorkResult] = []

        def told(what: WorkResult) -> None:
            worked.append(what)
            done.set()

        async with AsyncEngram.open(**files) as mem:
            task = await mem.start_task("Move staging")
            await mem.record_turn(task.id, user="Our staging server is called nightshift.", assistant="Noted.")
            assert len(await mem.jobs.list()) == 1
            worker = asyncio.create_task(mem.jobs.run(stop, 60.0, told))
            await done.wait()
            stop.set()
            await worker
            assert len(worked) == 1
            assert await mem.jobs.list() == []

    bounded(main())


def test_a_worker_with_nothing_to_do_ends_at_once_when_cancelled(files: dict[str, Any]) -> None:
    async def main() -> None:
        async with AsyncEngram.open(**files) as mem:
            worker = asyncio.create_task(mem.jobs.run(asyncio.Event(), 60.0))
            await asyncio.sleep(0)
            worker.cancel()
            with pytest.raises(asyncio.CancelledError):
                await worker

    bounded(main())


def test_a_worker_heeds_the_event_of_a_thread(files: dict[str, Any]) -> None:
    async def main() -> None:
        stop = threading.Event()
        async with AsyncEngram.open(**files) as mem:
            worker = asyncio.create_task(mem.jobs.run(stop, 0.001))
            await mem.search("anything")
            stop.set()
            await worker

    bounded(main())
