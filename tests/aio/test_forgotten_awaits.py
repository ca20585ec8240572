"""What is not opened yet says how to open it."""

import asyncio
from typing import Any

import pytest

from engram.aio import AsyncEngram
from engram.model.errors import StoreBusy
from engram.sessions.jobs import Jobs, WorkResult
from tests.aio.bounded import bounded


def test_a_memory_that_was_not_awaited_says_so(files: dict[str, Any]) -> None:
    opening = AsyncEngram.open(**files)
    with pytest.raises(AttributeError, match=r"no 'search' yet: it is not open. Await it \(`mem = await AsyncEngram"):
        opening.search("tabs")
    assert not files["home"].exists()


def test_a_memory_is_not_entered_without_a_loop(files: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match=r"async with AsyncEngram\.open"), AsyncEngram.open(**files):
        raise AssertionError("never entered")


def test_a_session_that_was_not_awaited_says_so(files: dict[str, Any]) -> None:
    async def main() -> None:
        async with AsyncEngram.open(**files) as mem:
            with pytest.raises(AttributeError, match="not open"):
                mem.session("deploy").observe("user", "hi")

    bounded(main())


def test_an_unknown_argument_is_told_of_the_class_that_callers_know(files: dict[str, Any]) -> None:
    async def main() -> None:
        async with AsyncEngram.open(**files) as mem:
            with pytest.raises(TypeError, match=r"^AsyncEngram\.build_context\(\) got an unexpected"):
                await mem.build_context("TASK-1", tokens=3)  # type: ignore[call-arg]

    bounded(main())


def test_a_worker_goes_on_when_the_store_is_free_again(files: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    troubles = [StoreBusy("another writer"), StoreBusy("another writer")]
    monkeypatch.setattr("engram.aio.engram.pause_after", lambda number: 0.001 * number)

    def work(jobs: Jobs, limit: int) -> WorkResult:
        if troubles:
            raise troubles.pop()
        return WorkResult(done=["derive:1"])

    async def main() -> None:
        stop, told = asyncio.Event(), list[WorkResult]()

        def tell(worked: WorkResult) -> None:
            told.append(worked)
            stop.set()

        async with AsyncEngram.open(**files) as mem:
            monkeypatch.setattr(Jobs, "work", work)
            await mem.jobs.run(stop, 0.001, tell)
        assert [worked.done for worked in told] == [["derive:1"]]
        assert not troubles

    bounded(main())


def test_a_worker_gives_up_on_a_store_that_stays_busy(files: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engram.aio.engram.pause_after", lambda number: 0.0)

    def work(jobs: Jobs, limit: int) -> WorkResult:
        raise StoreBusy("another writer")

    async def main() -> None:
        async with AsyncEngram.open(**files) as mem:
            monkeypatch.setattr(Jobs, "work", work)
            with pytest.raises(StoreBusy):
                await mem.jobs.run(asyncio.Event())

    bounded(main())
