"""Groups that emerge from use, and what links bring along."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

import pytest

from engram.model.memory import Anchor, Association, Memory
from engram.recall.prompt.inject import spread
from engram.recall.search import find_schemas, schema_boosts

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def memory(
    name: str,
    links: Iterable[tuple[str, float]] = (),
    anchors: Iterable[str] = ("a.md", "b.md"),
    kind: str = "semantic",
) -> Memory:
    return Memory(
        id=name,
        statement=name,
        anchors=tuple(Anchor(path) for path in anchors),
        associations=tuple(Association(target, kind, strength, last_reinforced=NOW) for target, strength in links),
    )


TRIO = [memory("A", [("B", 0.5)]), memory("B", [("C", 0.4)]), memory("C")]


def test_three_memories_tied_together_on_common_ground_form_a_schema() -> None:
    assert find_schemas(TRIO, NOW) == [frozenset({"A", "B", "C"})]


@pytest.mark.parametrize(
    "memories",
    [
        TRIO[:2],
        [memory("A", [("B", 0.39)]), TRIO[1], TRIO[2]],
        [memory("A", [("B", 0.5)], ["x"]), memory("B", [("C", 0.5)], ["x"]), memory("C", (), ["y"])],
    ],
    ids=["two are too few", "one tie is too loose", "one common place is too little"],
)
def test_less_is_no_schema(memories: list[Memory]) -> None:
    assert find_schemas(memories, NOW) == []


def test_a_tie_of_use_that_faded_no_longer_holds_the_schema() -> None:
    tied = [memory("A", [("B", 0.5)], kind="co_accessed"), memory("B", [("C", 0.5)], kind="co_accessed"), memory("C")]
    assert len(find_schemas(tied, NOW)) == 1
    assert find_schemas(tied, NOW + timedelta(days=10)) == []


def test_members_lift_each_other_by_the_share_that_was_activated() -> None:
    assert schema_boosts(TRIO, ["A", "B", "C"], NOW) == {"A": 2.0, "B": 2.0, "C": 2.0}
    assert schema_boosts(TRIO, ["A"], NOW) == {"A": 0.0, "B": 1.0, "C": 1.0}


def test_spreading_follows_links_both_ways_and_drops_what_is_faint() -> None:
    source, weak = memory("S", [("T", 0.8), ("U", 0.1)]), memory("W", [("V", 0.9)])
    known = {name: memory(name) for name in ("T", "U", "V", "I", "X")}
    reached = spread(
        [(source, 10.0), (weak, 2.0)],
        lambda ids: [known[i] for i in ids],
        lambda ids: [("I", "S", "causal", 0.5), ("X", "S", "contradicts", 0.9)],
        exclude=set(),
        now=NOW,
    )
    assert [(r.memory.id, round(r.score, 2)) for r in reached] == [("T", 0.8), ("I", 0.5), ("V", 0.18)]


def test_spreading_from_nothing_reaches_nothing() -> None:
    assert spread([], lambda ids: [], lambda ids: [], set(), NOW) == []
