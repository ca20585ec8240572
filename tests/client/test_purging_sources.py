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


def test_another_document_with_the_same_sentence_stays_and_is_named(mem: Engram) -> None:
    first, second = mem.start_task("Read the lease").id, mem.start_task("Read the house rules").id
    mem.record_long_input(first, TEXT, title="lease.md", path="lease.md")
    report = mem.record_long_input(
        second, "# Rules\n\nThe tenant must not keep reptiles.\n", title="rules.md", path="rules.md"
    )
    (gone,) = [event for event in mem.list_events(first) if event.event_type == "artifact"]
    (kept,) = [event for event in mem.list_events(second) if event.event_type == "artifact"]
    purged = mem.upkeep.purge([gone.id], actor="human")
    assert kept.id not in purged.ids
    assert mem.list_events(second)[-1].content == kept.content
    assert f"{kept.id}: contains the same words; `engram ledger redact {kept.id}` redacts it, too" in purged.remaining
    (fact,) = [mem.get(i) for i in report.facts]
    assert fact.status == "active"
    assert [evidence.event for evidence in fact.evidence] == [kept.id]
    assert any(line.startswith(fact.id) for line in purged.remaining)
    assert "reptiles" in mem.cite(fact.id).quote
    assert mem.store.verify_ledgers() == []


def test_a_later_turn_that_repeats_the_words_stays(mem: Engram, everything: Callable[[], str]) -> None:
    first = mem.add_conversation("I prefer oolong tea.", scope="global", session="S-1")
    again = mem.add_conversation("As I said: I prefer oolong tea. Cake is fine too.", scope="global", session="S-2")
    purged = mem.upkeep.purge(first.events, actor="human")
    (said,) = mem.store.events("S-2")
    assert said.content.startswith("As I said")
    assert again.events[0] not in purged.ids
    assert any(line.startswith(said.id) for line in purged.remaining)
    once_more = mem.upkeep.purge([said.id], actor="human")
    assert once_more.remaining == ()
    assert "oolong" not in everything()


def test_the_words_of_a_purged_memory_go_wherever_they_stand(mem: Engram, everything: Callable[[], str]) -> None:
    task = mem.start_task("Talk").id
    event = mem.record_event(task, "user", "Note this: the boiler is serviced in May, every year")
    own = mem.add("the boiler is serviced in May", scope="global")
    purged = mem.upkeep.purge([own.id], actor="human")
    assert event.id in purged.ids
    assert purged.remaining == ()
    assert "boiler" not in everything()


def test_the_name_of_a_document_is_nobodys_words(mem: Engram) -> None:
    task = mem.start_task("Read rules.md").id
    mem.record_long_input(task, "The tenant must not keep reptiles.\n", title="rules.md", path="rules.md")
    source, chunk = mem.list_events(task)
    purged = mem.upkeep.purge([chunk.id], actor="human")
    assert purged.remaining == ()
    assert mem.list_events(task)[0] == source
    assert mem.get_task(task).goal == "Read rules.md"
    assert mem.tasks.checkpoints(task)[0].summary.startswith("Ingested rules.md")
