"""Walking over links: what is reached, by which path, and what a walk does not pass through."""

import random
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import pytest

from engram.graph.graph import Step, walk
from engram.model.memory import Association, Memory
from engram.store.protocol import Filters, Hops, Store
from tests.clock import Clock
from tests.conformance.keeping import ANY, Keep

DIRECTIONS = ("outbound", "inbound", "any")
Link = tuple[str, str, str, float]


def walked(store: Store, seeds: Sequence[str], **asked: Any) -> list[Step]:
    depth, per_seed = asked.pop("depth", 3), asked.pop("per_seed", 50)
    return walk(store, seeds, Hops(asked.pop("at", Clock()()), **asked), depth, per_seed)


def reached(store: Store, seed: str, **asked: Any) -> list[str]:
    return [step.id for step in walked(store, [seed], **asked)]


def linked(keep: Keep, links: Iterable[tuple[int, int, str, float]], count: int, **fields: Any) -> list[str]:
    """So many memories with these links between them, by number; their ids."""
    ids = [memory.id for memory in keep.many([{"statement": f"memory {n}", **fields} for n in range(count)])]
    of: dict[int, list[Association]] = {}
    for source, target, kind, weight in links:
        of.setdefault(source, []).append(Association(ids[target], kind, weight=weight))
    with keep.store.deciding("relate", actor="test", about=[ids[n] for n in of]) as deciding:
        for number, associations in of.items():
            memory = deciding.get(ids[number])
            assert memory is not None
            deciding.put(memory.replace(associations=tuple(associations)))
    return ids


def chain(keep: Keep, count: int) -> list[str]:
    return linked(keep, [(a, b, "supports", 1.0) for a, b in pairwise(range(count))], count)


def test_a_walk_follows_links_the_way_they_point(store: Store, keep: Keep) -> None:
    a, b, c = chain(keep, 3)
    assert reached(store, a) == [b, c]
    assert reached(store, c) == []


def test_a_walk_inbound_follows_them_back(store: Store, keep: Keep) -> None:
    a, b, c = chain(keep, 3)
    assert reached(store, c, direction="inbound") == [b, a]


def test_a_walk_in_any_direction_says_which_way_each_hop_went(store: Store, keep: Keep) -> None:
    a, b, c = linked(keep, [(0, 1, "supports", 1.0), (2, 1, "blocks", 1.0)], 3)
    (_, last) = walked(store, [a], direction="any")
    assert (last.id, last.path, last.types, last.forward) == (c, (a, b, c), ("supports", "blocks"), (True, False))


def test_a_step_tells_seed_depth_path_relations_and_the_product_of_weights(store: Store, keep: Keep) -> None:
    a, b, c = linked(keep, [(0, 1, "supports", 0.5), (1, 2, "part_of", 0.25)], 3)
    assert walked(store, [a]) == [
        Step(a, b, 1, (a, b), ("supports",), 0.5, (True,)),
        Step(a, c, 2, (a, b, c), ("supports", "part_of"), 0.125, (True, True)),
    ]


def test_depth_ends_a_walk(store: Store, keep: Keep) -> None:
    ids = chain(keep, 5)
    assert reached(store, ids[0], depth=2) == ids[1:3]


def test_a_cycle_ends_and_the_seed_is_not_reached(store: Store, keep: Keep) -> None:
    a, b, c = linked(keep, [(0, 1, "causal", 1.0), (1, 2, "causal", 1.0), (2, 0, "causal", 1.0)], 3)
    assert reached(store, a, depth=9) == [b, c]
    assert reached(store, a, depth=9, direction="any") == [b, c]


def test_a_short_path_wins_over_a_heavy_one(store: Store, keep: Keep) -> None:
    a, _, c = linked(keep, [(0, 1, "causal", 9.0), (1, 2, "causal", 9.0), (0, 2, "causal", 0.1)], 3)
    steps = {step.id: step for step in walked(store, [a])}
    assert steps[c].path == (a, c)


def test_of_two_paths_of_one_length_the_heavier_wins(store: Store, keep: Keep) -> None:
    links = [(0, 1, "causal", 1.0), (0, 2, "causal", 0.5), (1, 3, "causal", 0.25), (2, 3, "causal", 1.0)]
    a, _, c, d = linked(keep, links, 4)
    steps = {step.id: step for step in walked(store, [a])}
    assert (steps[d].path, steps[d].score) == ((a, c, d), 0.5)


def test_only_the_asked_relations_are_followed(store: Store, keep: Keep) -> None:
    a, b, c = linked(keep, [(0, 1, "supports", 1.0), (0, 2, "blocks", 1.0)], 3)
    assert reached(store, a, types=("blocks",)) == [c]
    assert set(reached(store, a, types=("blocks", "supports"))) == {b, c}


def test_links_below_the_asked_weight_are_not_followed(store: Store, keep: Keep) -> None:
    a, b, _ = linked(keep, [(0, 1, "causal", 0.5), (0, 2, "causal", 0.4)], 3)
    assert reached(store, a, min_weight=0.5) == [b]


@pytest.mark.parametrize("weight", [0.0, -1.0])
def test_a_link_without_weight_leads_nowhere(store: Store, keep: Keep, weight: float) -> None:
    a, _ = linked(keep, [(0, 1, "causal", weight)], 2)
    assert reached(store, a) == []


@pytest.mark.parametrize("weight", [1e300, 1e-300])
def test_a_weight_beyond_measure_still_gives_a_number(store: Store, keep: Keep, weight: float) -> None:
    ids = linked(keep, [(a, b, "causal", weight) for a, b in pairwise(range(5))], 5)
    steps = walked(store, [ids[0]], depth=9)
    assert [step.id for step in steps] == ids[1:]
    assert all(0 < step.score < float("inf") for step in steps)


def test_each_seed_reaches_so_many_the_nearest_and_heaviest_first(store: Store, keep: Keep) -> None:
    links = [(0, n, "causal", n / 10) for n in range(1, 6)] + [(5, 6, "causal", 9.0)]
    ids = linked(keep, links, 7)
    assert reached(store, ids[0], per_seed=3) == [ids[5], ids[4], ids[3]]
    assert reached(store, ids[0], per_seed=6) == [ids[5], ids[4], ids[3], ids[2], ids[1], ids[6]]


@pytest.mark.parametrize("direction", ["outbound", "inbound"])
def test_of_many_links_the_light_ones_are_followed_where_the_heavy_ones_lead_nowhere(
    store: Store, keep: Keep, direction: str
) -> None:
    ends = [(0, n) if direction == "outbound" else (n, 0) for n in range(1, 9)]
    ids = linked(keep, [(*end, "causal", 1 / n) for n, end in enumerate(ends, 1)], 9)
    with store.deciding("retire", actor="test", about=ids[1:7]) as deciding:
        for memory_id in ids[1:7]:
            memory = deciding.get(memory_id)
            assert memory is not None
            deciding.put(memory.replace(status="retired"))
    in_force = Filters(statuses=("active",))
    assert reached(store, ids[0], direction=direction, per_seed=1, filters=in_force) == [ids[7]]
    assert reached(store, ids[0], direction=direction, per_seed=2, filters=in_force) == ids[7:]


def test_a_memory_is_reached_once_from_each_seed(store: Store, keep: Keep) -> None:
    a, b, c = linked(keep, [(0, 2, "causal", 1.0), (1, 2, "causal", 1.0)], 3)
    assert [(step.seed, step.id) for step in walked(store, [a, b, a])] == [(a, c), (b, c)]


def test_a_seed_nobody_knows_and_no_seed_at_all_reach_nothing(store: Store) -> None:
    assert walked(store, ["ENG-2000-0101-001"]) == []
    assert walked(store, []) == []


@pytest.mark.parametrize("status", ["retired", "rejected", "archived", "candidate"])
def test_what_is_not_in_force_is_neither_reached_nor_passed_through(store: Store, keep: Keep, status: str) -> None:
    ids = chain(keep, 3)
    middle = store.get(ids[1])
    assert middle is not None
    keep.again(middle, status=status)
    assert reached(store, ids[0]) == []
    assert reached(store, ids[2], direction="inbound") == []
    assert reached(store, ids[0], filters=ANY) == ids[1:]


def test_what_was_purged_is_not_reached(store: Store, keep: Keep) -> None:
    a, b, _ = chain(keep, 3)
    store.purge([b], actor="test")
    assert reached(store, a) == []
    assert reached(store, a, filters=ANY) == []


def test_a_walk_keeps_to_the_filters(store: Store, keep: Keep) -> None:
    here, there = keep.many([{"statement": "here", "scope": "user"}, {"statement": "there", "scope": "project:acme"}])
    start = keep("start", associations=(Association(here.id), Association(there.id)))
    assert reached(store, start.id, filters=Filters(scopes=("user",))) == [here.id]


def superseded(keep: Keep, ids: Sequence[str]) -> None:
    """Each of these memories takes the place of the one before."""
    for old, new in pairwise(ids):
        before, after = keep.store.get(old), keep.store.get(new)
        assert before is not None
        assert after is not None
        keep.again(before, status="superseded", superseded_by=new)
        keep.again(after, supersedes=(old,))


def test_a_link_to_a_superseded_memory_leads_to_its_last_successor(store: Store, keep: Keep) -> None:
    a, old, newer, newest = linked(keep, [(0, 1, "depends_on", 0.5)], 4)
    superseded(keep, [old, newer, newest])
    assert walked(store, [a]) == [Step(a, newest, 1, (a, newest), ("depends_on",), 0.5, (True,))]
    assert walked(store, [newest], direction="inbound") == [
        Step(newest, a, 1, (newest, a), ("depends_on",), 0.5, (False,))
    ]


def test_a_superseded_memory_that_was_asked_for_is_reached_itself(store: Store, keep: Keep) -> None:
    a, old, new = linked(keep, [(0, 1, "depends_on", 1.0)], 3)
    superseded(keep, [old, new])
    assert reached(store, a, filters=ANY) == [old]
    assert reached(store, new, direction="inbound", filters=ANY) == []


def test_successors_that_go_round_in_a_circle_end(store: Store, keep: Keep) -> None:
    a, b, c = linked(keep, [(0, 1, "depends_on", 1.0)], 3)
    superseded(keep, [b, c, b])
    assert reached(store, a) == []
    assert reached(store, a, direction="inbound") == []


def test_a_successor_that_is_retired_is_not_reached(store: Store, keep: Keep) -> None:
    a, old, new = linked(keep, [(0, 1, "depends_on", 1.0)], 3)
    superseded(keep, [old, new])
    head = store.get(new)
    assert head is not None
    keep.again(head, status="retired")
    assert reached(store, a) == []


# -- against a plain search


def naive(links: Sequence[Link], seed: str, asked: dict[str, Any]) -> list[Step]:
    """All simple paths by hand: of each memory the shortest, then the heaviest, then the first by name."""
    hops = [
        (*hop, forward)
        for source, target, kind, weight in links
        if weight >= asked["min_weight"] and (asked["types"] is None or kind in asked["types"])
        for hop, forward in (((source, target, kind, weight), True), ((target, source, kind, weight), False))
        if asked["direction"] == "any" or forward == (asked["direction"] == "outbound")
    ]
    best: dict[str, Step] = {}
    level = [Step(seed, seed, 0, (seed,), (), 1.0)]
    for depth in range(1, asked["depth"] + 1):
        paths = [
            Step(seed, to, depth, (*s.path, to), (*s.types, kind), s.score * weight, (*s.forward, forward))
            for s in level
            for at, to, kind, weight, forward in hops
            if at == s.id and to not in s.path
        ]
        fresh: dict[str, Step] = {}
        for step in paths:
            if step.id not in best and (step.id not in fresh or order(step) < order(fresh[step.id])):
                fresh[step.id] = step
        best |= fresh
        level = paths
    ranked = sorted(best.values(), key=lambda s: (s.depth, -s.score, s.path))
    return ranked[: asked["per_seed"]]


def order(step: Step) -> tuple[Any, ...]:
    before, last = step.path[:-1], step.types[-1]
    return (-step.score, before, last, not step.forward[-1], step.types)


@pytest.mark.parametrize("seed", range(4))
def test_a_walk_finds_what_a_plain_search_finds(store: Store, keep: Keep, seed: int) -> None:
    rng = random.Random(seed)
    count = rng.randint(5, 9)
    # Powers of two: their products are exact, so that equal weights are equal however they came about.
    numbered = [
        (
            rng.randrange(count),
            rng.randrange(count),
            rng.choice(["causal", "supports", "blocks"]),
            2.0 ** rng.randint(-3, 2),
        )
        for _ in range(rng.randint(count, 3 * count))
    ]
    kept = {(a, b, kind): weight for a, b, kind, weight in numbered if a != b}
    ids = linked(keep, [(a, b, kind, weight) for (a, b, kind), weight in kept.items()], count)
    links = [(ids[a], ids[b], kind, weight) for (a, b, kind), weight in kept.items()]
    for direction in DIRECTIONS:
        for types, min_weight, depth, per_seed in (
            (None, 0.0, 4, 50),
            (("causal", "blocks"), 0.0, 3, 50),
            (None, 0.5, 3, 50),
            (("supports",), 0.25, 2, 50),
            (None, 0.0, 3, 3),
        ):
            asked = {
                "direction": direction, "types": types, "min_weight": min_weight, "depth": depth, "per_seed": per_seed,
            }  # fmt: skip
            expected = [step for start in ids for step in naive(links, start, asked)]
            found = walked(store, ids, **asked)
            assert [comparable(step) for step in found] == [comparable(step) for step in expected], asked


def comparable(step: Step) -> tuple[Any, ...]:
    """Everything but the relations of earlier hops where several would do."""
    return (step.seed, step.id, step.depth, step.path, step.score)


def test_the_links_of_a_memory_are_those_of_its_last_version(store: Store, keep: Keep) -> None:
    a, b, c = linked(keep, [(0, 1, "causal", 1.0)], 3)
    memory = store.get(a)
    assert isinstance(memory, Memory)
    keep.again(memory, associations=(Association(c, "supports"),))
    assert reached(store, a) == [c]
    assert reached(store, b, direction="inbound") == []
