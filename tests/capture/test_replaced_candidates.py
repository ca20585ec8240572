"""A memory that supersedes a candidate settles it: the candidate no longer waits, and an undo lets it wait again."""

import pytest

from engram import Engram
from engram.model.decision import Decision
from engram.model.memory import Memory
from tests.backends import Backend

AGENT = "agent"


@pytest.fixture
def mem(backend: Backend) -> Engram:
    return backend.client()


def propose(mem: Engram) -> Memory:
    candidate = mem.learn("Never touch staging on Fridays.", type="constraint", scope="global", source="web").memory
    assert candidate is not None and candidate.status == "candidate"
    return candidate


def status_of(mem: Engram, memory_id: str) -> str:
    found = mem.get(memory_id)
    assert found is not None
    return found.status


def replace_candidate(mem: Engram, candidate: Memory, source: str) -> Decision:
    return mem.learn("Staging is closed on Fridays.", scope="global", source=source, supersedes=[candidate.id])


def test_what_supersedes_a_candidate_rejects_it(mem: Engram) -> None:
    candidate = propose(mem)
    decision = replace_candidate(mem, candidate, "human")
    assert decision.outcome.name == "SUPERSEDED"
    assert decision.other is not None and decision.other.id == candidate.id
    assert decision.memory is not None and decision.memory.supersedes == (candidate.id,)
    assert status_of(mem, candidate.id) == "rejected"


def test_an_undo_lets_the_candidate_wait_again(mem: Engram) -> None:
    candidate = propose(mem)
    decision = replace_candidate(mem, candidate, "human")
    assert decision.memory is not None
    mem.undo(decision.memory.id)
    assert status_of(mem, candidate.id) == "candidate"
    assert status_of(mem, decision.memory.id) == "retired"


def test_an_agent_does_not_reject_what_another_source_proposed(mem: Engram) -> None:
    candidate = propose(mem)
    replace_candidate(mem, candidate, AGENT)
    assert status_of(mem, candidate.id) == "candidate"


def test_added_memories_settle_candidates_too(mem: Engram) -> None:
    candidate = propose(mem)
    added = mem.add("Staging is closed on Fridays.", scope="global", supersedes=[candidate.id])
    assert status_of(mem, candidate.id) == "rejected"
    mem.undo(added.id)
    assert status_of(mem, candidate.id) == "candidate"


def test_the_replacement_may_be_repeated(mem: Engram) -> None:
    candidate = propose(mem)
    replace_candidate(mem, candidate, "human")
    again = mem.learn("Staging is closed on Fridays.", scope="global", source="human")
    assert again.outcome.name == "DUPLICATE"
