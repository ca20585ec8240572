"""A caller's program as a strict type checker sees it, checked by `make check`.

Every wrong word is marked with the error it must give: mypy reports a mark that has none (`warn_unused_ignores`), and an
error without a mark.
"""

from typing import assert_type

from engram import AsyncEngram, ContextUpdate, Engram, Event, Hits, Memory, Report, Task


def right(mem: Engram) -> None:
    """Names, filters, fields and aliases that are known."""
    assert_type(mem.search("x", types=["fact"], tags="a", since="2026-01-01", agent_id="bot"), Hits)
    assert_type(mem.get_memories(memory_types="fact", session_id="s", kinds=("event",)), list[Memory])
    assert_type(mem.add("x", importance=0.5, session="s").fact, str)
    assert_type(mem.add(content="x", memory_type="fact").lineage_id, str)
    assert_type(mem.doctor(), Report)
    assert_type(mem.gen_context("AGENTS.md", scope="project:acme"), list[ContextUpdate])
    assert_type(mem.get_task("T"), Task)


def wrong(mem: Engram) -> None:
    """Words nobody knows, and values of the wrong kind."""
    mem.search("x", typ="fact")  # type: ignore[call-arg]
    mem.recall("x", tag="a")  # type: ignore[call-arg]
    mem.search("x", types=3)  # type: ignore[arg-type]
    mem.add("x", importanse=0.5)  # type: ignore[call-arg]
    mem.update("x", statement=3)  # type: ignore[arg-type]
    mem.get("x", agent="bot")  # type: ignore[call-arg]


async def right_when_awaited(mem: AsyncEngram) -> None:
    """The same, awaited."""
    assert_type(await mem.search("x", types=["fact"]), Hits)
    assert_type(await mem.tasks.list(), list[Task])
    async with mem.session("x") as session:
        assert_type(await session.observe("user", "x", key="1"), Event)


async def wrong_when_awaited(mem: AsyncEngram) -> None:
    """The same, awaited."""
    await mem.search("x", typ="fact")  # type: ignore[call-arg]
    await mem.revise("x", statemnt="y")  # type: ignore[call-arg]
    AsyncEngram.open(urll="x")  # type: ignore[call-arg]
