"""Every call awaited: the same answers and errors, from many tasks, loops and threads at once."""

import asyncio
import contextvars
import threading
from datetime import UTC, datetime
from typing import Any, assert_type

import pytest

from engram import Decision, Engram, Event, Hits, Injection, Memory, Recall
from engram.aio import AsyncEngram
from engram.model.errors import InvalidInput, NotFound, SecretRefused
from engram.model.records import TaskRun
from engram.review.queue import ReviewItem
from tests.aio.bounded import bounded

FACT = "The staging server is called nightshift"


def test_verbs_answer_what_the_synchronous_ones_answer(where: dict[str, Any]) -> None:
    async def main() -> None:
        async with AsyncEngram.open(**where) as mem:
            added = assert_type(await mem.add(FACT, scope="global"), Memory)
            learned = assert_type(await mem.learn("Deploy only after the tests have passed"), Decision)
            assert learned.memory is not None
            hits = assert_type(await mem.search("staging server"), Hits)
            assert [hit.id for hit in hits][:1] == [added.id]
            recalled = assert_type(await mem.recall("What is the staging server called?"), Recall)
            assert added.id in [hit.id for hit in recalled.hits]
            assert_type(await mem.inject("Deploy to staging"), Injection)
            assert {memory.id for memory in await mem.list()} == {added.id, learned.memory.id}
            assert await mem.get(added.id) == await mem.run(Engram.get, added.id)

    bounded(main())


def test_facets_are_awaited_too(where: dict[str, Any]) -> None:
    async def main() -> None:
        async with AsyncEngram.open(**where) as mem:
            one, other = await mem.add(FACT), await mem.add("Nightshift is rebooted on Sundays")
            await mem.graph.relate(one.id, other.id, "part_of")
            assert [reached.memory.id for reached in await mem.graph.traverse(one.id)] == [other.id]
            task = assert_type(await mem.tasks.start("Move staging"), TaskRun)
            assert_type(await mem.record_event(task.id, "user", "Begin with the database", derive=False), Event)
            assert [run.id for run in await mem.tasks.list()] == [task.id]
            assert assert_type(await mem.review.queue(), list[ReviewItem]) == []
            revised = await mem.lineages.revise(one.id, statement="The staging server is called dayshift")
            assert (await mem.lineages.current(one.id)).id == revised.id
            assert await mem.jobs.list() == []

    bounded(main())


def test_a_property_that_asks_the_store_is_a_call(where: dict[str, Any]) -> None:
    async def main() -> None:
        async with AsyncEngram.open(**where) as mem:
            assert assert_type(await mem.upkeep.paused(), bool) is False
            await mem.upkeep.pause()
            assert await mem.upkeep.paused() is True

    bounded(main())


def test_a_session_ends_itself(where: dict[str, Any]) -> None:
    async def main() -> None:
        async with AsyncEngram.open(**where) as mem:
            kept = await mem.add(FACT)
            async with mem.session("Deploy to the staging server") as session:
                said = assert_type(await session.observe("user", "Is staging up?"), Event)
                assert [item.memory.id for item in session.injection.items] == [kept.id]
                await session.feedback(kept.id, "positive")
                assert session.session.ended is None
            assert session.session.ended is not None
            assert said.session == session.id
            assert (await mem.sessions.get(session.id)).ended is not None
            assert (await mem.get(kept.id)).feedback.positive == 1

    bounded(main())


def test_a_session_can_be_awaited_and_ended_by_hand(files: dict[str, Any]) -> None:
    async def main() -> None:
        async with AsyncEngram.open(**files) as mem:
            session = await mem.session("Deploy")
            await session.observe("user", "The migration failed because the disk was full.")
            assert "disk" in await session.summarise()
            ended = await session.end("It was the disk")
            assert ended.summary == "It was the disk"

    bounded(main())


def test_opening_is_awaited_or_entered(files: dict[str, Any]) -> None:
    async def main() -> None:
        mem = await AsyncEngram.open(**files)
        try:
            kept = await mem.add(FACT)
        finally:
            await mem.close()
        async with await AsyncEngram.open(**files) as again:
            assert (await again.get(kept.id)).statement == FACT
            assert again.home is not None and again.directory == files["directory"]
            assert (again.settings.budget, again.policy.name, again.model) == (2000, "default", None)

    bounded(main())


def test_errors_come_as_they_are(where: dict[str, Any]) -> None:
    async def main() -> None:
        async with AsyncEngram.open(**where) as mem:
            with pytest.raises(NotFound, match="no memory 'nothing'"):
                await mem.get("nothing")
            with pytest.raises(InvalidInput, match="Unknown mode"):
                await mem.search("staging", mode="magic")
            with pytest.raises(SecretRefused):
                await mem.add("The key is AKIAIOSFODNN7TIGERX9")

    bounded(main())


def test_context_variables_reach_the_call(files: dict[str, Any]) -> None:
    today = contextvars.ContextVar("today", default=datetime(2020, 1, 1, tzinfo=UTC))

    async def add_on(mem: AsyncEngram, day: int) -> Memory:
        today.set(datetime(2026, 3, day, tzinfo=UTC))
        return await mem.add(f"Something that happened on day {day}")

    async def main() -> None:
        async with AsyncEngram.open(**files, clock=today.get) as mem:
            added = await asyncio.gather(*(add_on(mem, day) for day in range(1, 9)))
            assert [memory.created.day for memory in added if memory.created] == list(range(1, 9))

    bounded(main())


def test_many_calls_at_once_all_answer(where: dict[str, Any]) -> None:
    async def main() -> None:
        async with AsyncEngram.open(**where) as mem:
            said = await asyncio.gather(
                *(mem.observe(f"session-{number % 10}", "user", f"word {number}") for number in range(30)),
                *(mem.search(f"word {number}", kinds=("event",)) for number in range(30)),
            )
            assert len(said) == 60
            ledgers = await asyncio.gather(*(mem.run(_ledger, f"session-{number}") for number in range(10)))
            assert [len(ledger) for ledger in ledgers] == [3] * 10

    bounded(main())


def _ledger(mem: Engram, session: str) -> list[Event]:
    return mem.store.events(session)


def test_a_task_group_ends_when_all_its_calls_have(files: dict[str, Any]) -> None:
    async def main() -> None:
        async with AsyncEngram.open(**files) as mem:
            async with asyncio.TaskGroup() as group:
                adding = [group.create_task(mem.add(f"Fact number {number} is here")) for number in range(12)]
            assert len({task.result().id for task in adding}) == 12

    bounded(main())


def test_one_memory_serves_loops_of_several_threads(files: dict[str, Any]) -> None:
    mem = bounded(_opened(files))
    together = threading.Barrier(3)
    found: dict[int, list[Memory]] = {}

    def elsewhere(number: int) -> None:
        together.wait(20)
        found[number] = bounded(_added(mem, number))

    loops = [threading.Thread(target=elsewhere, args=(number,)) for number in range(3)]
    for loop in loops:
        loop.start()
    for loop in loops:
        loop.join(30)
    bounded(mem.close())
    assert {number: len(added) for number, added in found.items()} == {0: 8, 1: 8, 2: 8}
    assert len({memory.id for added in found.values() for memory in added}) == 24


async def _opened(files: dict[str, Any]) -> AsyncEngram:
    return await AsyncEngram.open(**files)


async def _added(mem: AsyncEngram, number: int) -> list[Memory]:
    return await asyncio.gather(*(mem.add(f"Loop {number} says {word}") for word in range(8)))
