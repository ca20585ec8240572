"""Whatever the order of decisions, a fact has one version in force, and at every moment of its past at most one was."""

import random
from datetime import datetime, timedelta
from typing import Any

import pytest

from engram import Engram
from engram.decisions.versions import resolve_versions
from engram.model.errors import InvalidInput, NotFound, Refused
from engram.model.memory import Memory
from engram.rules.lifecycle import is_valid
from tests.clock import Clock

OPERATIONS = ("add", "add", "add", "late", "revise", "forget", "forget", "undo", "undo", "purge")


def decide(mem: Engram, clock: Clock, chance: random.Random, step: int) -> None:
    """One decision about where the user lives, chosen by chance; a refusal is an answer too."""
    known = mem.list(status="any", limit=None)
    operation = chance.choice(OPERATIONS) if known else "add"
    chosen = chance.choice(known).id if known else ""
    given: dict[str, Any] = {}
    if operation == "late":
        given = {"valid_from": clock() - timedelta(days=chance.choice([3, 8, 15]))}
    try:
        if operation in ("add", "late"):
            mem.add(f"The user lives in City{step}", conflict_key="home", **given)
        elif operation == "revise":
            mem.revise(chosen, statement=f"The user lives in Town{step}")
        elif operation == "undo":
            mem.undo(chosen)
        else:
            mem.forget(chosen, purge=operation == "purge")
    except (InvalidInput, NotFound, Refused):
        pass


def assert_one_way(mem: Engram, clock: Clock) -> None:
    """One head, which is found; every version leads to it; no two were true at once."""
    known = mem.list(status="any", limit=None)
    heads = [memory for memory in known if memory.status == "active"]
    standing = [memory for memory in known if memory.status in ("active", "superseded")]
    assert len(heads) == bool(standing)
    if not heads:
        return
    assert is_valid(heads[0], clock()) and [m.id for m in mem.list()] == [heads[0].id]
    assert {mem.get_current(memory.id).id for memory in standing} == {heads[0].id}
    by_start = sorted(standing, key=beginning)
    ends = [memory.valid_until for memory in by_start[:-1]]
    assert ends == [beginning(later) for later in by_start[1:]], "a gap, or two at once"


def beginning(memory: Memory) -> datetime:
    """Since when it is true."""
    begun = memory.valid_from or memory.when
    assert begun is not None
    return begun


@pytest.mark.parametrize("seed", range(12))
def test_decisions_in_any_order_leave_one_version_in_force(mem: Engram, clock: Clock, seed: int) -> None:
    chance = random.Random(seed)
    for step in range(10):
        clock.forward(days=chance.choice([1, 5]))
        decide(mem, clock, chance, step)
        assert_one_way(mem, clock)


def test_undoing_how_a_version_was_superseded_is_refused_once_others_followed(mem: Engram, clock: Clock) -> None:
    berlin, lisbon, madrid = (moved(mem, clock, city) for city in ("Berlin", "Lisbon", "Madrid"))
    with pytest.raises(Refused, match=f"{berlin.id} cannot become current again"):
        mem.undo(berlin.id)
    assert [m.id for m in mem.list()] == [madrid.id]
    assert mem.undo(lisbon.id).status == "active", "Madrid goes as Lisbon comes back"
    assert [m.id for m in mem.list()] == [lisbon.id] and mem.get(madrid.id).status == "retired"


def test_what_was_forgotten_does_not_come_back_beside_its_successor(mem: Engram, clock: Clock) -> None:
    berlin = moved(mem, clock, "Berlin")
    mem.forget(berlin.id)
    lisbon = moved(mem, clock, "Lisbon")
    with pytest.raises(Refused, match=lisbon.id):
        mem.undo(berlin.id)
    assert [m.id for m in mem.list()] == [lisbon.id]


def test_a_fact_told_late_ends_the_one_before_it(mem: Engram, clock: Clock) -> None:
    berlin = mem.add("The user lives in Berlin", conflict_key="home", valid_from="2020-01-01")
    lisbon = mem.add("The user lives in Lisbon", conflict_key="home", valid_from="2024-01-01")
    paris = mem.add("The user lives in Paris", conflict_key="home", valid_from="2022-01-01")
    asked = {year: [m.id for m in mem.list(as_of=f"{year}-06-01")] for year in (2021, 2023, 2025)}
    assert asked == {2021: [berlin.id], 2023: [paris.id], 2025: [lisbon.id]}
    assert mem.get(paris.id).superseded_by == lisbon.id and mem.get(berlin.id).superseded_by == paris.id


def test_a_new_version_is_what_the_policy_takes_it_for(mem: Engram) -> None:
    dislike = mem.add("The user dislikes peanuts")
    allergy = mem.revise(dislike.id, statement="The user is allergic to peanuts")
    assert allergy.critical_slot and [m.id for m in mem.recall_critical()] == [allergy.id]
    none = mem.revise(allergy.id, statement="The user is not allergic to peanuts")
    assert (none.critical_slot, none.conflict_key) != (allergy.critical_slot, allergy.conflict_key)
    own = mem.add("The door code is kept by Ana", conflict_key="door")
    assert mem.revise(own.id, statement="The user is allergic to nuts").conflict_key == "door"


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"lineage": "zzz"}, "lineage follows from decisions"),
        ({"superseded_by": "ENG-2026-0101-001"}, "follows from decisions"),
        ({"status": "superseded"}, "cannot be made superseded"),
        ({"valid_until": "2001-01-01"}, "before valid_from"),
    ],
)
def test_an_update_cannot_break_the_way_of_a_fact(mem: Engram, changes: dict[str, Any], match: str) -> None:
    memory = mem.add("The user lives in Berlin", conflict_key="home", valid_from="2020-01-01")
    with pytest.raises(InvalidInput, match=match):
        mem.update(memory.id, **changes)
    assert mem.get(memory.id) == memory


def test_an_update_cannot_put_a_second_head_in_force(mem: Engram, clock: Clock) -> None:
    berlin, lisbon = moved(mem, clock, "Berlin"), moved(mem, clock, "Lisbon")
    with pytest.raises(InvalidInput, match="cannot be made active"):
        mem.update(berlin.id, status="active")
    elsewhere = mem.add("Ben lives in Rome", conflict_key="home", scope="project:acme")
    with pytest.raises(Refused, match=lisbon.id):
        mem.update(elsewhere.id, new_scope="global")
    assert mem.get(elsewhere.id).scope == "project:acme"


def test_what_ended_without_a_successor_is_not_brought_back_by_the_going_of_another(clock: Clock) -> None:
    now = clock()
    first = Memory("A", "The term is two years", lineage="L", valid_from=now - timedelta(days=9), status="retired")
    last = first.replace(
        id="B", valid_from=now - timedelta(days=5), valid_until=now - timedelta(days=1), status="superseded"
    )
    assert resolve_versions([first, last], now) == [last]
    followed = last.replace(superseded_by="C", valid_until=None)
    assert [m.status for m in resolve_versions([first, followed], now)] == ["active"]


def moved(mem: Engram, clock: Clock, city: str) -> Memory:
    """A day later the user lives elsewhere."""
    clock.forward(days=1)
    return mem.add(f"The user lives in {city}", conflict_key="home")
