"""Facts that change: one version in force, all of them readable."""

import threading
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from engram import Engram, Outcome
from engram.model.errors import InvalidInput, NotFound, Refused
from tests.backends import Backend
from tests.clock import Clock

HOME = "residence:user"


def lives(mem: Engram, city: str, **fields: Any) -> str:
    return mem.add(f"The user lives in {city}", conflict_key=HOME, **fields).id


def test_a_fact_with_the_same_conflict_key_supersedes_the_one_before(mem: Engram, clock: Clock) -> None:
    berlin = lives(mem, "Berlin")
    clock.forward(days=30)
    lisbon = lives(mem, "Lisbon")
    old, new = mem.get(berlin), mem.get(lisbon)
    assert (old.status, old.superseded_by) == ("superseded", lisbon)
    assert (new.status, new.supersedes, new.revision) == ("active", (berlin,), 2)
    assert old.lineage == new.lineage == berlin
    assert old.valid_until == new.valid_from


def test_a_plain_search_sees_the_head_only(mem: Engram, clock: Clock) -> None:
    lives(mem, "Berlin")
    clock.forward(days=30)
    lisbon = lives(mem, "Lisbon")
    assert [hit.id for hit in mem.search("where does the user live")] == [lisbon]


def test_learning_says_what_was_superseded(mem: Engram) -> None:
    first = mem.learn("The launch date is May 5", conflict_key="deadline:launch", source="human")
    second = mem.learn("The launch date is June 9", conflict_key="deadline:launch", source="human")
    assert (first.outcome, second.outcome, second.gate) == (Outcome.CREATED, Outcome.SUPERSEDED, "policy")
    assert second.other is not None and first.memory is not None and second.other.id == first.memory.id


def test_what_may_not_be_in_force_yet_waits_beside_the_head(mem: Engram) -> None:
    head = mem.add("The user was born in 1980", conflict_key="birth:user")
    told = mem.learn("The user was born in 1990", conflict_key="birth:user", type="identity", source="agent")
    assert told.outcome == Outcome.CONTRADICTION and told.memory is not None
    assert (mem.get(head.id).status, told.memory.status) == ("active", "candidate")
    mem.review.resolve(told.memory.id, "new", actor="human")
    assert (mem.get(head.id).status, mem.get_current(head.id).id) == ("superseded", told.memory.id)


def test_an_old_id_resolves_to_the_version_in_force(mem: Engram, clock: Clock) -> None:
    ids = []
    for city in ("Berlin", "Lisbon", "Rome"):
        ids.append(lives(mem, city))
        clock.forward(days=1)
    assert {mem.get_current(i).id for i in ids} == {ids[-1]}
    assert [version.id for version in mem.lineage(ids[1])] == ids


def test_a_fact_that_never_changed_is_its_own_lineage(mem: Engram) -> None:
    one = mem.add("Deploys happen on Tuesdays")
    assert mem.lineage(one.id) == [one] and mem.get_current(one.id) == one


def test_revising_makes_a_new_head_and_keeps_the_rest(mem: Engram, clock: Clock) -> None:
    first = mem.add("The port is 5433", tags=["db"], importance=0.9)
    clock.forward(hours=1)
    second = mem.revise(first.id, statement="The port is 5434", reason="moved")
    assert (second.tags, second.importance, second.supersedes) == (("db",), 0.9, (first.id,))
    third = mem.revise(first.id, statement="The port is 5435")
    assert third.supersedes == (second.id,), "an old id revises the version in force"
    assert mem.history(second.id)[0].op == "revise"
    assert [v.statement[-4:] for v in mem.lineage(third.id)] == ["5433", "5434", "5435"]


def test_revising_nothing_and_nobody_is_refused(mem: Engram) -> None:
    one = mem.add("The port is 5433")
    with pytest.raises(InvalidInput, match="nothing to revise"):
        mem.revise(one.id)
    with pytest.raises(NotFound):
        mem.revise("ENG-1999-0101-001", statement="x")
    assert len(mem.list(status="any")) == 1


def test_forgetting_the_head_puts_the_newest_survivor_back(mem: Engram, clock: Clock) -> None:
    berlin = lives(mem, "Berlin")
    clock.forward(days=1)
    lisbon = lives(mem, "Lisbon")
    clock.forward(days=1)
    rome = lives(mem, "Rome")
    mem.forget(rome)
    assert (mem.get(lisbon).status, mem.get(lisbon).superseded_by, mem.get(lisbon).valid_until) == ("active", "", None)
    assert mem.get_current(rome).id == mem.get_current(berlin).id == lisbon
    assert [hit.id for hit in mem.search("where does the user live")] == [lisbon]


def test_purging_the_head_does_too(mem: Engram, clock: Clock) -> None:
    berlin = lives(mem, "Berlin")
    clock.forward(days=1)
    lisbon = lives(mem, "Lisbon")
    mem.forget(lisbon, purge=True)
    assert mem.get_current(berlin).id == berlin and mem.get(berlin).status == "active"


def test_forgetting_a_version_in_the_middle_closes_the_gap(mem: Engram, clock: Clock) -> None:
    ids = []
    for city in ("Berlin", "Lisbon", "Rome"):
        ids.append(lives(mem, city))
        clock.forward(days=1)
    mem.forget(ids[1])
    assert mem.get(ids[0]).superseded_by == ids[2] and mem.get_current(ids[0]).id == ids[2]


def test_forgetting_every_version_leaves_none_in_force(mem: Engram, clock: Clock) -> None:
    berlin = lives(mem, "Berlin")
    clock.forward(days=1)
    lisbon = lives(mem, "Lisbon")
    mem.forget(lisbon)
    mem.forget(berlin)
    assert mem.search("where does the user live") == []
    assert mem.get_current(lisbon).status == "retired"


def test_a_head_that_was_forgotten_comes_back_with_undo(mem: Engram, clock: Clock) -> None:
    berlin = lives(mem, "Berlin")
    clock.forward(days=1)
    lisbon = lives(mem, "Lisbon")
    mem.forget(lisbon)
    mem.undo(lisbon)
    assert (mem.get(berlin).status, mem.get(lisbon).status) == ("superseded", "active")


def test_an_older_truth_that_comes_late_is_history(mem: Engram, clock: Clock) -> None:
    lisbon = lives(mem, "Lisbon", valid_from=datetime(2025, 1, 1, tzinfo=UTC))
    berlin = lives(mem, "Berlin", valid_from=datetime(2020, 1, 1, tzinfo=UTC))
    late = mem.get(berlin)
    assert (late.status, late.superseded_by) == ("superseded", lisbon)
    assert late.valid_until == datetime(2025, 1, 1, tzinfo=UTC)
    assert [v.id for v in mem.lineage(lisbon)] == [berlin, lisbon] and mem.get_current(berlin).id == lisbon


def test_what_was_true_and_what_was_known_are_asked_apart(mem: Engram, clock: Clock) -> None:
    begun = clock()
    berlin = lives(mem, "Berlin", valid_from=begun - timedelta(days=1000))
    clock.forward(days=10)
    lisbon = lives(mem, "Lisbon", valid_from=clock() - timedelta(days=300))

    def asked(as_of: datetime | None = None, known_at: datetime | None = None) -> list[str]:
        return [hit.id for hit in mem.search("where does the user live", as_of=as_of, known_at=known_at)]

    assert asked(as_of=clock() - timedelta(days=400)) == [berlin]
    assert asked(as_of=clock() - timedelta(days=200)) == [lisbon]
    assert asked(known_at=begun + timedelta(days=5)) == [berlin]


def test_a_list_of_what_was_known_is_what_a_search_would_find_then(mem: Engram, clock: Clock) -> None:
    kept = mem.add("The office has a garden")
    port = mem.add("The port is 5433")
    gone = mem.add("The lift is broken")
    clock.forward(days=1)
    before = clock()
    clock.forward(days=1)
    mem.revise(port.id, statement="The port is 6000")
    mem.forget(gone.id)
    mem.add("The office has a bicycle shed")
    listed = mem.list(known_at=before)
    assert [m.statement for m in listed] == ["The lift is broken", "The port is 5433", "The office has a garden"]
    assert {m.status for m in listed} == {"active"}
    assert {hit.id for hit in mem.search("office port lift", known_at=before)} == {kept.id, port.id, gone.id}
    assert [m.id for m in mem.list(known_at=before, limit=1, offset=1)] == [port.id]
    assert mem.list(known_at=before, status="superseded") == []


def test_a_cycle_of_supersedes_is_refused(mem: Engram, clock: Clock) -> None:
    first = mem.add("The port is 5433")
    second = mem.revise(first.id, statement="The port is 5434")
    with pytest.raises(InvalidInput, match="already supersedes it"):
        mem.update(first.id, supersedes=[second.id])
    with pytest.raises(InvalidInput, match="cannot supersede"):
        mem.update(second.id, supersedes=[second.id])
    assert mem.get(first.id).supersedes == ()


@pytest.mark.parametrize("verb", ["add", "remember"])
def test_a_memory_that_names_what_it_supersedes_takes_its_place(mem: Engram, clock: Clock, verb: str) -> None:
    first = mem.add("Invoices go out on the first Monday")
    clock.forward(days=1)
    second = mem.revise(first.id, statement="Invoices go out on the first Tuesday")
    clock.forward(days=1)
    given = getattr(mem, verb)("The bookkeeper bills on the 15th", supersedes=[first.id])
    third = given if verb == "add" else given.memory
    assert mem.get_current(first.id).id == third.id
    assert [m.id for m in mem.lineage(third.id)] == [first.id, second.id, third.id]
    assert mem.get(second.id).status == "superseded" and mem.get(second.id).superseded_by == third.id
    assert [m.id for m in mem.list()] == [third.id]


def test_a_memory_cannot_supersede_what_is_not_there(mem: Engram) -> None:
    with pytest.raises(NotFound, match="ENG-2026-0101-999"):
        mem.add("The office is in Porto", supersedes=["ENG-2026-0101-999"])
    assert mem.list() == []


def test_history_by_scope_and_time_holds_superseded_facts(mem: Engram, clock: Clock) -> None:
    berlin = lives(mem, "Berlin", scope="user:ana")
    clock.forward(days=1)
    since = clock()
    lisbon = lives(mem, "Lisbon", scope="user:ana")
    mem.add("Something else")
    assert [m.id for m in mem.get_history("user:ana")] == [lisbon, berlin]
    assert [m.id for m in mem.get_history("user:ana", since=since)] == [lisbon]
    assert [m.id for m in mem.get_history("user:ana", include_superseded=False)] == [lisbon]


def test_the_same_key_in_another_scope_is_another_fact(mem: Engram) -> None:
    ana, ben = lives(mem, "Berlin", scope="user:ana"), lives(mem, "Lisbon", scope="user:ben")
    assert mem.get(ana).status == mem.get(ben).status == "active"


def test_a_batch_that_names_one_fact_thrice_leaves_one_head(mem: Engram) -> None:
    cities = ("Berlin", "Lisbon", "Rome")
    made = mem.add_batch([{"statement": f"The user lives in {city}", "conflict_key": HOME} for city in cities])
    heads = [m.id for m in mem.list() if m.conflict_key == HOME]
    assert heads == [made[-1].id] and len(mem.lineage(heads[0])) == 3


def test_concurrent_revisions_leave_exactly_one_head(backend: Backend) -> None:
    clients = [backend.client() for _ in range(4)]
    first = clients[0].add("The port is 5000", conflict_key="port:db")
    failed: list[Exception] = []

    def revise(mem: Engram, number: int) -> None:
        try:
            for i in range(3):
                mem.revise(first.id, statement=f"The port is {number}{i}")
                mem.add(f"The port is {number}{i}7", conflict_key="port:db")
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=revise, args=(mem, n)) for n, mem in enumerate(clients, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert failed == []
    versions = clients[0].lineage(first.id)
    assert len(versions) == 1 + 4 * 3 * 2
    assert [v.status for v in versions].count("active") == 1
    assert sorted(v.revision for v in versions) == list(range(1, len(versions) + 1)), "no two followed on the same one"


def test_what_begins_later_leaves_the_present_fact_in_force_until_then(mem: Engram, clock: Clock) -> None:
    acme = mem.add("The user works at Acme", conflict_key="employer:user")
    globex = mem.add("The user works at Globex", conflict_key="employer:user", valid_from=clock() + timedelta(days=30))
    assert [m.id for m in mem.list()] == [acme.id]
    assert mem.get_current(globex.id).id == mem.get_current(acme.id).id == acme.id
    clock.forward(days=31)
    assert [m.id for m in mem.list()] == [globex.id]
    assert mem.get_current(acme.id).id == globex.id


def test_a_critical_fact_does_not_vanish_before_its_successor_begins(mem: Engram, clock: Clock) -> None:
    now = mem.add("The user is allergic to nuts", conflict_key="a", critical_slot="allergy")
    mem.add("The user outgrew it", conflict_key="a", critical_slot="allergy", valid_from=clock() + timedelta(days=9))
    assert [m.id for m in mem.recall_critical()] == [now.id]


def test_undoing_a_revision_brings_the_version_before_back(mem: Engram) -> None:
    first = mem.add("The port is 5433")
    second = mem.revise(first.id, statement="The port is 5434")
    mem.undo(second.id)
    assert [m.id for m in mem.list()] == [first.id] and mem.get_current(second.id).id == first.id


def test_undoing_an_addition_brings_what_it_superseded_back(mem: Engram, clock: Clock) -> None:
    berlin = lives(mem, "Berlin")
    clock.forward(days=1)
    lisbon = lives(mem, "Lisbon")
    mem.undo(lisbon)
    assert [m.id for m in mem.list()] == [berlin] and mem.get_current(lisbon).id == berlin


# -- one that replaced several


def test_undoing_what_replaced_two_memories_restores_both(mem: Engram) -> None:
    anna = mem.add("Anna lives in Ulm.")
    page = mem.add("The web page is written in Elm.")
    new = mem.learn("The shop closes at six.", source="human", supersedes=[anna.id, page.id]).memory
    assert new is not None
    for ref in (new.id, anna.id, page.id):
        mem.undo(ref)
        assert [mem.get(one.id).status for one in (anna, page, new)] == ["active", "active", "retired"]
        mem.undo(ref)
        assert [mem.get(one.id).status for one in (anna, page, new)] == ["superseded", "superseded", "active"]


def test_undoing_what_replaced_two_facts_with_versions_restores_the_current_one_of_each(mem: Engram) -> None:
    anna = [mem.add("Anna lives in Ulm.")]
    page = [mem.add("The web page is written in Elm.")]
    anna.append(mem.revise(anna[0].id, statement="Anna lives in Bonn."))
    page.append(mem.revise(page[0].id, statement="The web page is written in Vue."))
    new = mem.learn("The shop closes at six.", source="human", supersedes=[anna[1].id, page[1].id]).memory
    assert new is not None
    mem.undo(new.id)
    assert [mem.get(one.id).status for one in (*anna, *page)] == ["superseded", "active"] * 2
    assert [mem.get(one[0].id).superseded_by for one in (anna, page)] == [anna[1].id, page[1].id]


def test_what_was_replaced_with_another_returns_only_before_the_successor_is_replaced(mem: Engram) -> None:
    anna = mem.add("Anna lives in Ulm.")
    page = mem.add("The web page is written in Elm.")
    new = mem.learn("The shop closes at six.", source="human", supersedes=[anna.id, page.id]).memory
    assert new is not None
    newest = mem.revise(new.id, statement="The shop closes at seven.")
    for ref in (anna.id, page.id):
        with pytest.raises(Refused, match="has replaced it since"):
            mem.undo(ref)
    assert [mem.get(one.id).status for one in (anna, page, new, newest)] == ["superseded"] * 3 + ["active"]
