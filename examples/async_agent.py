"""A program that answers many people at once from one memory: each request a task, none of them waiting on a thread.

Run it: `python examples/async_agent.py`
"""
# ruff: noqa: T201

import asyncio

from engram import AsyncEngram

LESSONS = (
    "Never deploy the payment service by hand: the deploy job runs the migrations after its health check",
    "The staging server is called nightshift and runs in Frankfurt",
    "Refunds over 500 euros need a second approval",
)
REQUESTS = ("How do I deploy the payment service?", "Where does staging run?", "Who approves a refund of 800 euros?")


async def answer(mem: AsyncEngram, request: str) -> str:
    """One request: begin a session, note what was asked and what was said."""
    async with mem.session(request) as session:
        await session.observe("user", request)
        known = await mem.recall(request, scope="global", session=session.id)
        said = known.hits[0].text if known.hits else "I do not know that yet."
        await session.observe("assistant", said)
        return said


async def main() -> None:
    """Teach, then answer everyone at once; a request that takes too long is given up without harm."""
    async with AsyncEngram.open(ephemeral=True) as mem:
        await asyncio.gather(*(mem.add(lesson, scope="global") for lesson in LESSONS))
        async with asyncio.timeout(30), asyncio.TaskGroup() as group:
            answers = {request: group.create_task(answer(mem, request)) for request in REQUESTS}
        for request, said in answers.items():
            print(f"{request}\n  {said.result()}")
        for event in await mem.search("refund", kinds=("event",), limit=1):
            print(f"the ledger remembers: {event.text}")


if __name__ == "__main__":
    asyncio.run(main())
