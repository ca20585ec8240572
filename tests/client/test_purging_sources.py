"""Purging what was said destroys the facts drawn from it: their words, and their context, are its own."""

from collections.abc import Callable

from engram import Engram

TEXT = "# Lease\n\nThe tenant must not keep reptiles. Cats are welcome.\n"


def test_facts_go_with_the_chunk_they_were_drawn_from(mem: Engram, everything: Callable[[], str]) -> None:
    task = mem.start_task("Read").id
    report = mem.record_long_input(task, TEXT, title="lease.md")
    chunk = next(event for event in mem.list_events(task) if event.event_type == "artifact")
    purged = mem.upkeep.purge([chunk.id], actor="human")
    assert set(report.facts) <= set(purged.ids)
    assert purged.remaining == ()
    assert "reptiles" not in everything()
    assert mem.store.verify_ledgers() == []


def test_facts_of_a_conversation_go_in_every_version(mem: Engram, everything: Callable[[], str]) -> None:
    taken = mem.add_conversation("I prefer oolong tea without sugar.", scope="global")
    newer = mem.revise(taken[0].id, statement="The user drinks coffee")
    purged = mem.upkeep.purge(taken.events, actor="human")
    assert {taken[0].id, newer.id} <= set(purged.ids)
    assert "oolong" not in everything()


def test_who_says_the_same_by_themselves_is_named(mem: Engram) -> None:
    task = mem.start_task("Read").id
    event = mem.record_event(task, "user", "The boiler is serviced in May")
    own = mem.add("The boiler is serviced in May", scope="global")
    purged = mem.upkeep.purge([event.id], actor="human")
    assert any(own.id in line for line in purged.remaining)
    assert mem.get(own.id).status == "active"
