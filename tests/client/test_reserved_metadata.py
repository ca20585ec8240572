"""The metadata that rules read is Engram's own: no caller sets, changes or drops it."""

import pytest

from engram import Engram, InvalidInput, Memory
from engram.model.arguments import CORROBORATED_BY, FORGET_REQUESTED, RESERVED_EVENT_KEYS, RESERVED_MEMORY_KEYS
from engram.review.queue import request_forget

RULE = "Deployments happen on weekdays only"


def requested(mem: Engram) -> Memory:
    """An agent's memory that another one asked to forget."""
    memory = mem.learn(RULE, source="agent", metadata={"team": "core"}).memory
    assert memory is not None
    request_forget(mem.store, mem.upkeep.clock, memory.id, actor="agent", where="EVT-1")
    return mem.get(memory.id)


@pytest.mark.parametrize("actor", ["agent", "manual", "human"])
def test_an_update_of_the_metadata_keeps_the_reserved_keys(mem: Engram, actor: str) -> None:
    memory = requested(mem)
    after = mem.update(memory.id, metadata={"team": "apps"}, actor=actor)
    assert after.metadata == {"team": "apps", FORGET_REQUESTED: memory.metadata[FORGET_REQUESTED]}
    assert [item.waits_as for item in mem.review.queue()] == ["forget"]


def test_metadata_given_back_as_it_was_read_is_no_claim(mem: Engram) -> None:
    memory = requested(mem)
    after = mem.update(memory.id, metadata={**memory.metadata, "team": "apps"}, actor="agent")
    assert after.metadata == {**memory.metadata, "team": "apps"}


@pytest.mark.parametrize("actor", ["agent", "manual", "human"])
@pytest.mark.parametrize("key", RESERVED_MEMORY_KEYS)
def test_no_caller_sets_a_reserved_key_of_a_memory(mem: Engram, key: str, actor: str) -> None:
    memory = requested(mem)
    for change in (mem.update, mem.revise):
        with pytest.raises(InvalidInput, match=f"metadata '{key}' is Engram's own"):
            change(memory.id, metadata={key: "human"}, actor=actor)
    with pytest.raises(InvalidInput, match="Engram's own"):
        mem.learn("The build runs on Linux", source="agent", metadata={key: "human"})
    with pytest.raises(InvalidInput, match="Engram's own"):
        mem.add("The build runs on Linux", metadata={key: "human"})
    assert mem.get(memory.id).metadata == memory.metadata


def test_a_new_version_by_an_agent_is_still_to_be_forgotten(mem: Engram) -> None:
    memory = requested(mem)
    new = mem.revise(
        memory.id, statement="Deployments happen on Mondays only", metadata={"team": "apps"}, actor="agent"
    )
    assert new.metadata == {"team": "apps", FORGET_REQUESTED: memory.metadata[FORGET_REQUESTED]}
    assert mem.revise(memory.id, statement=RULE, actor="human").metadata == {"team": "apps"}


def test_a_new_version_is_corroborated_by_nobody(mem: Engram) -> None:
    memory = mem.add(RULE)
    with mem.store.deciding("test", actor="engram", about=[memory.id]) as deciding:
        deciding.put(memory.replace(metadata={CORROBORATED_BY: "document:rules.md"}))
    assert mem.update(memory.id, metadata={}, actor="agent").metadata == {CORROBORATED_BY: "document:rules.md"}
    assert mem.revise(memory.id, statement="Deployments happen on Mondays only").metadata == {}


@pytest.mark.parametrize("key", RESERVED_EVENT_KEYS)
def test_no_caller_sets_a_reserved_key_of_an_event(mem: Engram, key: str) -> None:
    with pytest.raises(InvalidInput, match=f"metadata '{key}' is Engram's own"):
        mem.observe("chat", "user", "Hello there", metadata={key: "ENG-1"})
    with pytest.raises(InvalidInput, match=f"metadata '{key}' is Engram's own"):
        mem.capture("chat", "user", "Hello there", metadata={key: "ENG-1"})
    assert mem.store.events("chat") == []
