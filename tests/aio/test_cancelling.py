"""A cancelled call returns at once; what it was writing is written wholly, what had not begun never is."""

import asyncio
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from engram import Engram
from engram.aio import AsyncEngram
from tests.aio.bounded import Gate, bounded, engram_threads, happened

NOW = datetime(2026, 3, 1, tzinfo=UTC)


class StoppingClock(Gate):
    """A clock that stops whoever asks it, once it is told to."""

    stops = False

    def __call__(self) -> datetime:
        if self.stops:
            self.wait()
        return NOW


async def cancelled(task: "asyncio.Task[Any]") -> None:
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def test_a_write_that_has_begun_is_finished_after_its_caller_left(files: dict[str, Any]) -> None:
    clock = StoppingClock()

    async def main() -> None:
        async with AsyncEngram.open(**files, clock=clock) as mem:
            clock.stops = True
            adding = asyncio.create_task(mem.add("Half a write is no write"))
            await happened(clock.reached)
            await cancelled(adding)
            assert not clock.opened.is_set(), "the caller was free while the write still stood at the gate"
            clock.opened.set()

    bounded(main())
    with Engram.open(**files) as after:
        assert [memory.statement for memory in after.list()] == ["Half a write is no write"]
        assert after.doctor().ok


def test_a_call_that_waits_for_a_thread_never_runs_once_cancelled(files: dict[str, Any]) -> None:
    gate = Gate()

    async def main() -> None:
        async with AsyncEngram.open(**files, threads=1) as mem:
            standing = asyncio.create_task(mem.run(gate.wait))
            await happened(gate.reached)
            waiting = [asyncio.create_task(mem.add(f"Never written {number}")) for number in range(5)]
            kept = asyncio.create_task(mem.add("Written in the end"))
            await asyncio.sleep(0)
            for task in waiting:
                await cancelled(task)
            gate.opened.set()
            await standing
            await kept
            assert [memory.statement for memory in await mem.list()] == ["Written in the end"]

    bounded(main())


def test_a_timeout_frees_the_caller_and_the_memory_goes_on(files: dict[str, Any]) -> None:
    gate = Gate()

    async def main() -> None:
        async with AsyncEngram.open(**files) as mem:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.01):
                    await mem.run(gate.wait)
            gate.opened.set()
            assert await mem.search("anything") == []

    bounded(main())


def test_one_failing_call_of_a_group_cancels_the_others_and_breaks_nothing(files: dict[str, Any]) -> None:
    async def main() -> None:
        async with AsyncEngram.open(**files) as mem:
            with pytest.raises(ExceptionGroup) as raised:
                async with asyncio.TaskGroup() as group:
                    group.create_task(mem.get("nothing"))
                    for number in range(20):
                        group.create_task(mem.add(f"Perhaps written {number}"))
            assert len(raised.value.exceptions) == 1
            whole = {memory.statement for memory in await mem.list()}
            assert whole <= {f"Perhaps written {number}" for number in range(20)}
            assert (await mem.doctor()).ok

    bounded(main())


def test_an_opening_that_is_cancelled_closes_what_it_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    gate = Gate()
    opened: list[Engram] = []
    opening = Engram.open.__func__  # type: ignore[attr-defined]

    def slow(cls: type[Engram], /, *args: Any, **options: Any) -> Engram:
        opened.append(opening(cls, *args, **options))
        gate.wait()
        return opened[0]

    monkeypatch.setattr(Engram, "open", classmethod(slow))

    async def main() -> None:
        task = asyncio.create_task(_entered())
        await happened(gate.reached)
        await cancelled(task)
        gate.opened.set()
        await asyncio.to_thread(_join_engram_threads)
        assert opened[0].home is not None
        assert not Path(opened[0].home.root).exists(), "an ephemeral store goes when it is closed"

    bounded(main())


async def _entered() -> None:
    async with AsyncEngram.open(ephemeral=True):
        raise AssertionError("the opening was cancelled")


def _join_engram_threads() -> None:
    for thread in threading.enumerate():
        if thread.name in engram_threads():
            thread.join(20)


def test_a_cancelled_session_is_still_ended(files: dict[str, Any]) -> None:
    entered, ids = asyncio.Event(), []

    async def work(mem: AsyncEngram) -> None:
        async with mem.session("Deploy") as session:
            ids.append(session.id)
            entered.set()
            await asyncio.Event().wait()

    async def main() -> None:
        async with AsyncEngram.open(**files) as mem:
            task = asyncio.create_task(work(mem))
            await entered.wait()
            await cancelled(task)
            assert (await mem.sessions.get(ids[0])).ended is not None

    bounded(main())


def test_cancelling_the_close_does_not_stop_it(files: dict[str, Any]) -> None:
    gate = Gate()

    async def main() -> None:
        mem = await AsyncEngram.open(**files)
        standing = asyncio.create_task(mem.run(gate.wait))
        await happened(gate.reached)
        closing = asyncio.create_task(mem.close())
        await asyncio.sleep(0)
        await cancelled(closing)
        gate.opened.set()
        await standing
        await mem.close()
        assert engram_threads() == set()

    bounded(main())
