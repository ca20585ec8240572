"""A LangGraph graph whose long-term memory is Engram: what one thread learns, the next one finds.

Run it: `python examples/langgraph_store.py` (needs `pip install '.[langgraph]'`)
"""
# ruff: noqa: T201

import asyncio
from typing import TypedDict
from uuid import uuid4

from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime

from engram import AsyncEngram
from engram.integrations.langgraph import EngramStore


class Customer(TypedDict):
    """What the application knows about a run."""

    user: str


class Turn(TypedDict, total=False):
    """The state of one turn."""

    said: str
    answer: str


async def note(state: Turn, runtime: Runtime[Customer]) -> Turn:
    """Keep what the user tells about themselves; a graph with a model would let it decide."""
    assert runtime.store is not None
    if not state["said"].endswith("?"):
        await runtime.store.aput((runtime.context["user"], "facts"), str(uuid4()), {"text": state["said"]})
    return {}


async def answer(state: Turn, runtime: Runtime[Customer]) -> Turn:
    """Answer from what is known about this user."""
    assert runtime.store is not None
    if not state["said"].endswith("?"):
        return {"answer": "Noted."}
    found = await runtime.store.asearch((runtime.context["user"],), query=state["said"], limit=1)
    known = [item for item in found if (item.score or 0) >= 0.2]
    return {"answer": known[0].value["text"] if known else "You have not told me yet."}


async def main() -> None:
    """Run a few turns of two users, then look at the memory from Engram's side."""
    async with AsyncEngram.open(ephemeral=True) as mem:
        steps = StateGraph(Turn, context_schema=Customer).add_sequence([note, answer])
        graph = steps.add_edge(START, "note").add_edge("answer", END).compile(store=EngramStore(mem))
        for user, said in (
            ("ana", "I am allergic to penicillin"),
            ("ana", "My laptop is a ThinkPad with Debian"),
            ("ana", "Which laptop do I have?"),
            ("ben", "Which laptop do I have?"),
        ):
            result = await graph.ainvoke({"said": said}, context={"user": user})
            print(f"{user}: {said}\n  {result['answer']}")
        for memory in await mem.list(scope="langgraph:ana/facts", status=("active", "candidate")):
            print(f"{memory.id} {memory.scope} {memory.status}: {memory.statement}")


if __name__ == "__main__":
    asyncio.run(main())
