"""Closing waits for what is under way, closes the store once, and leaves no thread."""

import asyncio
import subprocess
import sys
from typing import Any

import pytest

from engram import Engram
from engram.aio import AsyncEngram
from engram.aio import engram as opened_here
from engram.model.errors import InvalidInput, StoreBusy, StoreError
from tests.aio.bounded import Gate, bounded, engram_threads, happened
from tests.tables import table


@pytest.fixture
def closes(monkeypatch: pytest.MonkeyPatch) -> list[Engram]:
    """Every time a memory's store is closed."""
    counted: list[Engram] = []
    closing = Engram.close

    def close(mem: Engram) -> None:
        counted.append(mem)
        closing(mem)

    monkeypatch.setattr(Engram, "close", close)
    return counted


def test_after_closing_every_call_says_so(where: dict[str, Any]) -> None:
    async def main() -> None:
        async with AsyncEngram.open(**where) as mem:
            session = await mem.session("Deploy")
            tasks = mem.tasks
        for call in (mem.search("x"), mem.add("x"), tasks.list(), mem.review.queue(), session.observe("user", "x")):
            with pytest.raises(StoreError, match="this memory is closed"):
                await call
        with pytest.raises(StoreError, match="this memory is closed"):
            async with mem.session("again"):
                pass
        with pytest.raises(StoreError, match="this memory is closed"):
            await mem.upkeep.paused()

    bounded(main())


def test_the_store_is_closed_once_however_often_and_by_whomever(files: dict[str, Any], closes: list[Engram]) -> None:
    async def main() -> None:
        async with AsyncEngram.open(**files) as mem:
            await asyncio.gather(mem.close(), mem.close(), asyncio.to_thread(lambda: asyncio.run(mem.close())))
        await mem.close()
        assert len(closes) == 1
        assert engram_threads() == set()

    bounded(main())


def test_what_waits_for_a_thread_when_closing_begins_still_runs(files: dict[str, Any], closes: list[Engram]) -> None:
    gate = Gate()

    async def main() -> None:
        mem = await AsyncEngram.open(**files, threads=1)
        standing = asyncio.create_task(mem.run(gate.wait))
        await happened(gate.reached)
        adding = [asyncio.create_task(mem.add(f"Accepted before the close {number}")) for number in range(3)]
        await asyncio.sleep(0)
        closing = asyncio.create_task(mem.close())
        await asyncio.sleep(0)
        assert closes == []
        gate.opened.set()
        await closing
        await standing
        assert len({memory.id for memory in await asyncio.gather(*adding)}) == 3
        assert len(closes) == 1

    bounded(main())


def test_closing_does_not_wait_for_ever(
    files: dict[str, Any], closes: list[Engram], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opened_here, "CLOSE_SECONDS", 0.05)
    gate = Gate()

    async def main() -> None:
        mem = await AsyncEngram.open(**files, threads=1)
        standing = asyncio.create_task(mem.run(gate.wait))
        await happened(gate.reached)
        waiting = asyncio.create_task(mem.add("Too late"))
        await asyncio.sleep(0)
        with pytest.raises(StoreBusy, match=r"still running after 0\.05 s"):
            await mem.close()
        assert closes == [], "nothing is closed under a call that is running"
        monkeypatch.setattr(opened_here, "CLOSE_SECONDS", 20.0)
        gate.opened.set()
        await standing
        with pytest.raises(StoreError, match="this memory is closed"):
            await waiting
        await mem.close()
        assert len(closes) == 1

    bounded(main())


def test_what_closing_raises_is_told(files: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    closing = Engram.close

    def failing(mem: Engram) -> None:
        closing(mem)
        raise OSError("the disk went away")

    monkeypatch.setattr(Engram, "close", failing)

    async def main() -> None:
        mem = await AsyncEngram.open(**files)
        with pytest.raises(OSError, match="the disk went away"):
            await mem.close()

    bounded(main())


@table("threads", [0, -1, 65, True, 1.5])
def test_a_number_of_threads_that_cannot_be_is_refused(threads: Any) -> None:
    with pytest.raises(InvalidInput, match="threads"):
        AsyncEngram.open(ephemeral=True, threads=threads)


def test_an_opening_that_fails_says_why_and_leaves_no_thread(files: dict[str, Any]) -> None:
    async def main() -> None:
        with pytest.raises(InvalidInput):
            await AsyncEngram.open(**files, url="postgresql://localhost/nowhere")
        with pytest.raises(InvalidInput, match="policy"):
            await AsyncEngram.open(**files, policy="unheard-of")

    bounded(main())


def test_a_memory_that_was_never_closed_lets_its_program_end() -> None:
    program = """
import asyncio
from engram.aio import AsyncEngram
async def main():
    mem = await AsyncEngram.open(ephemeral=True)
    await mem.add("Left open")
asyncio.run(main())
"""
    assert _ran(program) == ""


def test_a_forked_child_is_told_to_open_its_own() -> None:
    program = """
import asyncio, os, warnings
warnings.simplefilter("ignore")
from engram.aio import AsyncEngram
from engram.model.errors import StoreError
async def use(mem):
    try:
        await mem.search("anything")
    except StoreError as error:
        print(error, flush=True)
    await mem.close()
async def opened():
    return await AsyncEngram.open(ephemeral=True)
mem = asyncio.run(opened())
child = os.fork()
if child == 0:
    asyncio.run(use(mem))
    os._exit(0)
os.waitpid(child, 0)
asyncio.run(mem.close())
"""
    assert "open it again here" in _ran(program)


def _ran(program: str) -> str:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout
