"""A session from its injection to its end, and the ledger beside it."""

from collections.abc import Callable

import pytest

from engram import Engram
from engram.model.errors import InvalidInput, NotFound
from engram.model.records import Session
from tests.client.conftest import Clock


def taught(mem: Engram) -> dict[str, str]:
    said = {
        "fact": mem.add("The api of acme is deployed from the main branch", type="factual"),
        "correction": mem.add("Deploy acme with make ship, never by hand", type="correction"),
        "preference": mem.add("Prefer small deploys of acme on weekdays", type="preference"),
    }
    return {name: memory.id for name, memory in said.items()}


def test_corrections_come_first_each_with_its_reason_inside_the_budget(mem: Engram) -> None:
    ids = taught(mem)
    injection = mem.inject("deploy acme", budget=400)
    assert injection.directives[0].memory.id == ids["correction"]
    assert all(item.reason for item in injection.items)
    assert "[Correction]" in injection.text
    assert 0 < injection.tokens <= 400
    assert set(injection.ids) == set(ids.values())


@pytest.mark.parametrize("budget", [60, 90, 150, 300, 1000])
def test_the_budget_bounds_the_whole_text(mem: Engram, budget: int) -> None:
    mem.add_batch([{"statement": f"Deploy step {n}: check the dashboard of region {n} for alerts"} for n in range(40)])
    injection = mem.inject("deploy and check the dashboard", budget=budget)
    assert injection.tokens <= budget
    assert len(injection.directives) <= 10
    assert len(injection.consider) <= 5
    assert len(injection.related) <= 3


def test_nothing_relevant_nothing_injected(mem: Engram) -> None:
    taught(mem)
    injection = mem.inject("quantum chromodynamics homework")
    assert (injection.items, injection.text, injection.tokens) == ((), "", 0)


def test_fading_memories_come_last_and_dormant_ones_not_at_all(mem: Engram, clock: Clock) -> None:
    old = mem.add("Deploy acme from a branch that passed the nightly build", type="factual")
    clock.forward(days=15)
    new = mem.add("Deploy acme from a branch with two approvals", type="factual")
    assert mem.inject("deploy acme from which branch").ids == (new.id, old.id)
    clock.forward(days=30)
    assert old.id not in mem.inject("deploy acme from which branch").ids
    assert old.id in {hit.id for hit in mem.search("deploy acme from which branch")}


def test_pinned_memories_are_offered_whatever_the_task(mem: Engram) -> None:
    pinned = mem.add("Answer in British English", type="preference", pinned=True)
    assert pinned.id in mem.inject("quantum chromodynamics homework").ids


def test_links_bring_what_no_word_would_find(mem: Engram) -> None:
    hidden = mem.add("Klaus holds the keys to the cellar")
    mem.add(
        "Deploy acme with make ship",
        associations=[{"target": hidden.id, "type": "semantic", "strength": 0.8}],
    )
    injection = mem.inject("deploy acme")
    assert [item.memory.id for item in injection.related] == [hidden.id]
    assert "linked" in injection.related[0].reason


def test_a_session_strengthens_once_and_ties_together(mem: Engram) -> None:
    ids = taught(mem)
    with mem.session("deploy acme") as session:
        mem.recall("deploy acme", session=session.id)
        mem.recall("deploy acme", session=session.id)
        assert session.injection.ids
    kept = mem.get(ids["fact"])
    assert kept.activation.frequency == 1
    assert {link.target for link in kept.associations} == {ids["correction"], ids["preference"]}
    assert all(link.strength == 0.1 for link in kept.associations)
    before = mem.get(ids["fact"])
    mem.sessions.end(session.id)
    assert mem.get(ids["fact"]) == before


def test_use_without_a_session_counts_once_a_day_when_folded(mem: Engram, clock: Clock) -> None:
    ids = taught(mem)
    for _ in range(3):
        mem.recall("deploy acme")
    clock.forward(days=1)
    mem.recall("deploy acme")
    mem.upkeep.fold()
    assert mem.get(ids["fact"]).activation.frequency == 2
    mem.upkeep.fold()
    assert mem.get(ids["fact"]).activation.frequency == 2


def test_a_repeated_key_is_the_same_event(mem: Engram) -> None:
    first = mem.observe("talk", "user", "hello there", key="k1")
    again = mem.observe_batch(
        "talk", [{"role": "user", "content": "hello there", "key": "k1"}, {"role": "user", "content": "b"}]
    )
    assert again[0].id == first.id
    assert [event.content for event in mem.store.events("talk")] == ["hello there", "b"]


def test_events_are_found_with_their_metadata_unless_only_memories_are_wanted(mem: Engram) -> None:
    mem.observe_batch(
        "talk",
        [
            {"role": "Ann", "content": "Where did you put the xylophone?", "metadata": {"n": 1}},
            {"role": "Bob", "content": "In the cellar, next to the boiler", "metadata": {"n": 2}},
            {"role": "Ann", "content": "And how was your trip?", "metadata": {"n": 3}},
        ],
    )
    hits = mem.search("where is the xylophone", kinds=("event",))
    assert {hit.metadata["n"] for hit in hits[:2]} == {1, 2}  # the answer shares no word with the question
    assert {hit.kind for hit in mem.search("xylophone")} == {"event"}
    assert mem.search("xylophone", kinds=("memory",)) == []


def test_purging_an_event_keeps_the_chain(mem: Engram, everything: Callable[[], str]) -> None:
    events = mem.observe_batch("talk", [{"role": "user", "content": f"the word is xylophone{n}"} for n in range(3)])
    mem.upkeep.purge([events[1].id])
    assert mem.store.verify_ledgers() == []
    data = everything()
    assert "xylophone1" not in data
    assert "xylophone0" in data
    assert events[1].id not in {hit.id for hit in mem.search("xylophone1", kinds=("event",))}


@pytest.mark.parametrize(
    "item", [{"role": "", "content": "x"}, {"role": "u"} | {"content": 5}, {"role": "u", "content": "x", "event_type": "?"},
             {"role": "u", "content": "x", "surprise": 1}]
)  # fmt: skip
def test_a_bad_event_is_refused(mem: Engram, item: dict[str, object]) -> None:
    with pytest.raises(InvalidInput):
        mem.observe_batch("talk", [item])


def test_an_unknown_session_cannot_end(mem: Engram) -> None:
    with pytest.raises(NotFound):
        mem.sessions.end("S-nowhere")


def test_status_names_what_was_injected_last(mem: Engram) -> None:
    ids = taught(mem)
    mem.inject("deploy acme")
    last = mem.upkeep.status()["last_injection"]
    assert {item["id"] for item in last["memories"]} == set(ids.values())


def test_every_session_is_listed_newest_first_whatever_its_id(mem: Engram, clock: Clock) -> None:
    begun = [mem.session().id, mem.session().id]
    mem.store.save_record(Session("talk/7 of Ada", "", (), clock()))
    assert [one.id for one in mem.store.list_records(Session)] == ["talk/7 of Ada", *reversed(begun)]
    assert [one.id for one in mem.store.list_records(Session, limit=1)] == ["talk/7 of Ada"]
