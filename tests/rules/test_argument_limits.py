"""Every verb refuses an argument that is too long before it does anything, and names it."""

import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from engram import AsyncEngram, Engram
from engram.model.errors import InvalidInput
from engram.model.memory import MemoryFields
from engram.rules.limits import MAX_CHARS, MAX_ITEMS, MAX_NAME_CHARS, check_argument
from engram.sessions.sessions import SessionHandle
from tests.surface import facets, target

TEXTS = ("str", "str | None", "Sequence[str]", "Iterable[str]")
"""The ends of annotations of arguments that take text."""
NO_VERBS = frozenset(("close", "of"))


def verbs() -> Iterator[tuple[str, Callable[..., Any], str]]:
    """Every public verb with each of its arguments that takes a text."""
    for cls in (Engram, SessionHandle, *map(target, facets().values())):
        for name, verb in inspect.getmembers(cls, inspect.isfunction):
            if not name.startswith("_") and name not in NO_VERBS:
                for parameter in inspect.signature(verb).parameters.values():
                    annotated = str(parameter.annotation).removeprefix("<class '").removesuffix("'>")
                    if annotated.replace("collections.abc.", "").endswith(TEXTS):
                        yield f"{cls.__name__}.{name}", verb, parameter.name


def test_every_verb_refuses_every_text_that_is_too_long() -> None:
    taken, count = [], 0
    for name, verb, argument in verbs():
        count += 1
        text = "x" * (MAX_CHARS.get(argument, MAX_NAME_CHARS) + 1)
        try:
            verb(None, **{argument: text})
        except InvalidInput as error:
            if not str(error).startswith(f"{argument} has {len(text):,} characters (maximum {len(text) - 1:,})"):
                taken.append(f"{name}({argument}): {error}")
        except Exception as error:
            taken.append(f"{name}({argument}): {type(error).__name__}")
    assert count > 200
    assert taken == []


@pytest.mark.parametrize("field", [name for name, kind in MemoryFields.__annotations__.items() if "str" in str(kind)])
def test_no_field_of_a_memory_takes_more_than_its_maximum(field: str) -> None:
    text: Any = "x" * (MAX_CHARS.get(field, MAX_NAME_CHARS) + 1)
    with Engram.open(ephemeral=True) as mem:
        kept = mem.add("The deploy runs on Thursdays")
        calls: Sequence[Callable[[], Any]] = (
            lambda: mem.add("The deploy runs on Fridays", **{field: text}),
            lambda: mem.learn("The deploy runs on Fridays", **{field: text}),
            lambda: mem.remember("The deploy runs on Fridays", **{field: text}),
            lambda: mem.add_batch([{"statement": "The deploy runs on Fridays", field: text}]),
            lambda: mem.update(kept.id, **{field: text}),
            lambda: mem.revise(kept.id, **{field: text}),
        )
        for call in calls:
            with pytest.raises(InvalidInput, match=rf"^(?:items\[0\] \(.{{1,80}}\): )?{field} has"):
                call()
        assert [memory.statement for memory in mem.list()] == [kept.statement]


async def refuse_in_the_async_client() -> None:
    async with await AsyncEngram.open(ephemeral=True) as mem:
        with pytest.raises(InvalidInput, match="query has"):
            await mem.search("x" * (MAX_CHARS["query"] + 1))


def test_the_async_client_refuses_the_same() -> None:
    import asyncio

    asyncio.run(refuse_in_the_async_client())


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("tags", ["ok", "x" * 1_001], "tags has 1,001 characters"),
        ("ids", ["x"] * (MAX_ITEMS + 1), "ids has 100,001 entries"),
        ("metadata", {"a": [{"b": "x" * 9_000_000}]}, "metadata has 9,000,002 characters"),
        ("form", {"action": "x" * 4_001}, "action has 4,001 characters"),
        ("items", [{"content": "ok"}, {"role": "x" * 1_001}], "role has 1,001 characters"),
    ],
)
def test_what_is_inside_counts(name: str, value: Any, problem: str) -> None:
    with pytest.raises(InvalidInput, match=problem):
        check_argument(name, value)


def test_data_inside_itself_is_not_followed_forever() -> None:
    loop: dict[str, Any] = {}
    loop["self"] = loop
    check_argument("metadata", loop)
