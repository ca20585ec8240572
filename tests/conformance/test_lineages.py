"""Versions of a fact: which is in force, which were before it, and what a policy holds to be critical."""

from pathlib import Path
from typing import Any

import pytest

from engram import Engram
from engram.model.memory import Memory
from engram.store.files.store.backend import trust_team_files
from engram.store.protocol import Filters, ProposalKeys, Store
from tests.clock import Clock
from tests.conformance.keeping import ANY, Keep, asked, day, listed, said, texts
from tests.faults.consistency import store_of
from tests.repositories import make_repository

EVENTS = Filters(kinds=("event",))
KEYED: dict[str, Any] = {"conflict_key": "deploy-day", "lineage": "LIN-1"}


def heads(store: Store, key: str = "deploy-day", scope: str = "global") -> list[str]:
    """What holds a key, as a reader and as a decision see it."""
    read = [memory.statement for memory in store.heads(key, scope)]
    with store.deciding("look", actor="test", scopes=[scope]) as deciding:
        assert sorted(memory.statement for memory in deciding.heads(key, scope)) == sorted(read)
    return sorted(read)


def versions(store: Store, lineage: str = "LIN-1") -> list[str]:
    """A fact's versions in order, as a reader and as a decision see them."""
    read = [memory.statement for memory in store.lineage(lineage)]
    with store.deciding("look", actor="test") as deciding:
        assert [memory.statement for memory in deciding.lineage(lineage)] == read
    return read


# -- heads


def test_the_memory_in_force_holds_the_key(store: Store, keep: Keep) -> None:
    keep("On Mondays", **KEYED, status="superseded")
    keep("On Tuesdays", **KEYED)
    keep("Another fact", conflict_key="deploy-hour")
    keep("No key at all")
    assert heads(store) == ["On Tuesdays"]


@pytest.mark.parametrize("status", ["superseded", "retired", "candidate", "rejected", "archived"])
def test_what_is_not_in_force_holds_no_key(store: Store, keep: Keep, status: str) -> None:
    keep("On Mondays", **KEYED, status=status)
    assert heads(store) == []


def test_a_dormant_memory_is_still_in_force(store: Store, keep: Keep) -> None:
    keep("On Mondays", **KEYED, status="dormant")
    assert heads(store) == ["On Mondays"]


def test_several_heads_are_all_told(store: Store, keep: Keep) -> None:
    keep("On Mondays", **KEYED)
    keep("On Tuesdays", **KEYED)
    assert heads(store) == ["On Mondays", "On Tuesdays"]


def test_each_scope_has_its_own_head(store: Store, keep: Keep) -> None:
    keep("On Mondays", **KEYED)
    keep("On Tuesdays", **KEYED, scope="project:acme")
    assert (heads(store), heads(store, scope="project:acme")) == (["On Mondays"], ["On Tuesdays"])
    assert heads(store, scope="project:acme/api") == []


@pytest.mark.parametrize("key", ["", "deploy", "deploy-day-2", "DEPLOY-DAY", "deploy-day ", "%", "' OR ''='"])
def test_a_key_is_taken_to_the_letter(store: Store, keep: Keep, key: str) -> None:
    keep("On Mondays", **KEYED)
    keep("No key at all")
    assert heads(store, key) == []


def test_a_memory_that_moves_takes_its_key_along(store: Store, keep: Keep) -> None:
    kept = keep("On Mondays", **KEYED)
    kept = keep.again(kept, scope="project:acme")
    assert (heads(store), heads(store, scope="project:acme")) == ([], ["On Mondays"])
    keep.again(kept, conflict_key="")
    assert heads(store, scope="project:acme") == []


def test_a_decision_sees_the_heads_that_it_makes_and_unmakes(store: Store, keep: Keep) -> None:
    old = keep("On Mondays", **KEYED)
    with store.deciding("supersede", actor="test", scopes=["global"]) as deciding:
        [head] = deciding.heads("deploy-day", "global")
        new = Memory(deciding.new_id(day(2)), "On Tuesdays", created=day(2), **KEYED)
        deciding.put(new)
        assert [memory.id for memory in deciding.heads("deploy-day", "global")] == [old.id, new.id]
        deciding.put(head.replace(status="superseded", superseded_by=new.id))
        assert [memory.id for memory in deciding.heads("deploy-day", "global")] == [new.id]
        deciding.put(new.replace(scope="user"))
        assert list(deciding.heads("deploy-day", "global")) == []
        assert [memory.scope for memory in deciding.heads("deploy-day", "user")] == ["user"]
        deciding.put(new)
    assert heads(store) == ["On Tuesdays"]


def test_what_a_broken_off_decision_put_holds_no_key(store: Store) -> None:
    with pytest.raises(RuntimeError), store.deciding("add", actor="test", scopes=["global"]) as deciding:
        deciding.put(Memory(deciding.new_id(day(2)), "On Tuesdays", created=day(2), **KEYED))
        raise RuntimeError
    assert heads(store) == [] and versions(store) == []


def test_foreseen_heads_are_the_same(store: Store, keep: Keep) -> None:
    keep("On Mondays", **KEYED)
    with store.deciding("add", actor="test", scopes=["global"]) as deciding:
        deciding.prefetch([ProposalKeys("", "global", "", "deploy-day"), ProposalKeys("", "global", "", "none")])
        assert [memory.statement for memory in deciding.heads("deploy-day", "global")] == ["On Mondays"]
        assert list(deciding.heads("none", "global")) == []


def test_a_purged_memory_holds_no_key_and_is_no_version(store: Store, keep: Keep) -> None:
    kept = keep("On Mondays", **KEYED)
    store.purge([kept.id], actor="test")
    assert heads(store) == [] and versions(store) == []


def test_heads_and_versions_are_the_same_after_the_index_was_made_anew(store: Store, keep: Keep) -> None:
    keep("On Mondays", **KEYED, status="superseded")
    keep("On Tuesdays", **KEYED, revision=2, critical_slot="deploy")
    store.rebuild()
    assert heads(store) == ["On Tuesdays"] and versions(store) == ["On Mondays", "On Tuesdays"]
    assert listed(store, Filters(critical=True)) == ["On Tuesdays"]


def test_what_a_repository_brings_holds_no_key_until_it_is_trusted(tmp_path: Path, clock: Clock) -> None:
    folder = tmp_path / "clone" / ".engram" / "engrams" / "shared"
    folder.mkdir(parents=True)
    make_repository(tmp_path / "clone")
    file = folder / "ENG-2026-0101-111111111111.yaml"
    file.write_text(
        "- id: ENG-2026-0101-111111111111\n  statement: On Sundays\n  scope: global\n"
        "  conflict_key: deploy-day\n  lineage: LIN-1\n  critical_slot: deploy\n"
    )
    with Engram.open(tmp_path / "home", cache=tmp_path / "cache", directory=tmp_path / "clone", clock=clock) as mem:
        assert any("not trusted" in warning for warning in mem.store.warnings)
        assert heads(mem.store) == [] and versions(mem.store) == []
        assert listed(mem.store, Filters(critical=True)) == []
        trust_team_files(store_of(mem), tmp_path / "clone")
        assert heads(mem.store) == ["On Sundays"]


# -- lineages


def test_versions_come_in_the_order_in_which_they_were_true(store: Store, keep: Keep) -> None:
    keep("from the tenth", lineage="LIN-1", valid_from=day(10), revision=1)
    keep("happened on the fifth", lineage="LIN-1", occurred_at=day(5), revision=9, created=day(20))
    keep("from the first", lineage="LIN-1", valid_from=day(1), revision=3, status="superseded")
    assert versions(store) == ["from the first", "happened on the fifth", "from the tenth"]


def test_of_versions_from_one_moment_the_revision_decides(store: Store, keep: Keep) -> None:
    for revision in (2, 3, 1):
        keep(f"revision {revision}", lineage="LIN-1", valid_from=day(1), revision=revision)
    assert versions(store) == ["revision 1", "revision 2", "revision 3"]


@pytest.mark.parametrize("status", ["active", "superseded", "retired", "candidate", "rejected", "archived", "dormant"])
def test_a_version_belongs_to_its_fact_whatever_became_of_it(store: Store, keep: Keep, status: str) -> None:
    keep("On Mondays", **KEYED, status=status)
    assert versions(store) == ["On Mondays"]


def test_a_lineage_spans_scopes_and_no_other_fact(store: Store, keep: Keep) -> None:
    keep("here", lineage="LIN-1", valid_from=day(1))
    keep("there", lineage="LIN-1", valid_from=day(2), scope="user")
    keep("another", lineage="LIN-11")
    keep("alone")
    assert versions(store) == ["here", "there"]
    assert versions(store, "") == [] and versions(store, "LIN-") == []


def test_a_decision_sees_the_versions_it_has_put(store: Store, keep: Keep) -> None:
    old = keep("On Mondays", **KEYED, valid_from=day(1))
    with store.deciding("supersede", actor="test", scopes=["global"], about=[old.id]) as deciding:
        new = Memory(deciding.new_id(day(2)), "On Tuesdays", created=day(2), valid_from=day(2), **KEYED)
        deciding.put(new)
        deciding.put(old.replace(status="superseded", valid_until=day(2)))
        found = [(memory.statement, memory.status) for memory in deciding.lineage("LIN-1")]
        assert found == [("On Mondays", "superseded"), ("On Tuesdays", "active")]
        deciding.put(new.replace(lineage="LIN-2"))
        assert [memory.statement for memory in deciding.lineage("LIN-1")] == ["On Mondays"]
        assert list(deciding.lineage("")) == []
    assert versions(store) == ["On Mondays"] and versions(store, "LIN-2") == ["On Tuesdays"]


# -- what is critical, and who speaks


def test_only_what_is_in_a_critical_slot_is_critical(store: Store, keep: Keep) -> None:
    kept = keep("The goal is speed", critical_slot="goal")
    keep("The goal was size", critical_slot="goal", status="superseded")
    keep("Nothing special about speed")
    critical = Filters(critical=True)
    assert listed(store, critical) == ["The goal is speed"]
    assert sorted(listed(store, Filters(statuses=None, critical=True))) == ["The goal is speed", "The goal was size"]
    assert (store.count(critical), store.count(Filters(statuses=None, critical=True))) == (1, 2)
    found = asked(store, "speed", critical)
    assert texts(store, found.lexical) == texts(store, found.semantic) == ["The goal is speed"]
    keep.again(kept, critical_slot="")
    assert listed(store, critical) == [] and store.count(critical) == 0


def test_critical_goes_with_every_other_filter(store: Store, keep: Keep) -> None:
    keep.many(
        [{"statement": f"fact {n}", "critical_slot": "goal" if n % 2 else "", "created": day(n)} for n in range(1, 9)]
    )
    assert listed(store, Filters(critical=True), limit=2) == ["fact 7", "fact 5"]
    assert listed(store, Filters(critical=True, since=day(2), until=day(6))) == ["fact 5", "fact 3"]
    assert store.count(Filters(critical=True, scopes=("user",))) == 0


def spoken(store: Store, **filters: Any) -> list[str]:
    """What both retrievers find about the zebra, and the count with it."""
    wanted = Filters(kinds=("event",), **filters)
    found = asked(store, "zebra", wanted)
    lexical = sorted(texts(store, found.lexical))
    assert sorted(texts(store, found.semantic)) == lexical and store.count(wanted) == len(lexical)
    return lexical


def test_events_are_found_by_who_speaks_and_in_which_ledger(store: Store, keep: Keep) -> None:
    store.append_events("one", [said("user", "a zebra came", 1), said("assistant", "the zebra left", 2)])
    store.append_events("two", [said("user", "zebra again", 3), said("tool", "zebra: none", 4)])
    keep("A zebra is a memory of no one")
    assert len(spoken(store)) == 4
    assert spoken(store, roles=("user",)) == ["a zebra came", "zebra again"]
    assert spoken(store, roles=("assistant", "tool")) == ["the zebra left", "zebra: none"]
    assert spoken(store, roles=("user",), parents=("two",)) == ["zebra again"]
    assert spoken(store, roles=("User",)) == [] and spoken(store, roles=()) == []


def test_a_memory_has_no_role(store: Store, keep: Keep) -> None:
    keep("A zebra is a memory of no one")
    store.append_events("one", [said("user", "a zebra came")])
    both = Filters(kinds=("memory", "event"), roles=("user",))
    assert store.count(both) == 1 and listed(store, Filters(statuses=None, roles=("user",))) == []
    assert listed(store, ANY) == ["A zebra is a memory of no one"]
