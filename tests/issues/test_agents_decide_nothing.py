"""Agents can propose, never approve; and what a person took out of use, no agent brings back by any call."""

import pytest

from engram import Engram, EngramError, Memory, Refused
from tests.backends import Backend

AGENT = "agent"
RULE = "Deployments happen on weekdays only"


@pytest.fixture
def mem(backend: Backend) -> Engram:
    return backend.client()


def proposed(mem: Engram, statement: str = RULE, source: str = "harness:codex:acme", **fields: object) -> Memory:
    decision = mem.learn(statement, source=source, **fields)  # type: ignore[arg-type]
    assert decision.memory is not None and decision.memory.status == "candidate", decision
    return decision.memory


def rejected(mem: Engram) -> Memory:
    return mem.review.reject(proposed(mem).id, actor="human")


def retired(mem: Engram) -> Memory:
    found = mem.learn(RULE, source=AGENT).memory
    assert found is not None
    return mem.review.retire(found.id, actor="human")


# -- what a person took out


@pytest.mark.parametrize("status", ["candidate", "active", "dormant", "archived", "retired"])
def test_no_agent_gives_another_status_to_what_a_person_rejected(mem: Engram, status: str) -> None:
    out = rejected(mem)
    with pytest.raises(Refused):
        mem.update(out.id, status=status, actor=AGENT)
    assert mem.get(out.id).status == "rejected"


def test_a_harmless_change_first_does_not_hide_the_persons_decision(mem: Engram) -> None:
    out = retired(mem)
    with pytest.raises(Refused, match="a person decided “forget”"):
        mem.update(out.id, tags=["x"], actor=AGENT)
    with pytest.raises(Refused, match="a person decided “forget”"):
        mem.pin(out.id, actor=AGENT)
    mem.reinforce(out.id, actor=AGENT)
    with pytest.raises(Refused, match="a person decided “forget”"):
        mem.undo(out.id, actor=AGENT)
    with pytest.raises(Refused, match="a person decided “forget”"):
        mem.revise(out.id, statement="Deployments happen on any day", actor=AGENT)
    assert mem.get(out.id).status == "retired"


def test_no_agent_rewords_or_destroys_a_rejection_to_propose_it_again(mem: Engram) -> None:
    out = rejected(mem)
    with pytest.raises(Refused, match="a person decided “reject”"):
        mem.update(out.id, statement="Something else", actor=AGENT)
    with pytest.raises(Refused, match="a person decided “reject”"):
        mem.forget(out.id, purge=True, actor=AGENT)
    assert mem.learn(RULE, source="harness:codex:acme").memory is None


def test_no_agent_purges_a_scope_in_which_a_person_decided(mem: Engram) -> None:
    out = rejected(mem)
    mem.observe("chat", "user", "Hello there", scope=out.scope)
    with pytest.raises(Refused, match="a person decided “reject”"):
        mem.purge(out.scope, actor=AGENT)
    assert [event.content for event in mem.store.events("chat")] == ["Hello there"]
    mem.remember("I prefer tea", scope="project:tea")
    with pytest.raises(Refused, match="was said by a person"):
        mem.purge("project:tea", actor=AGENT)


def test_a_persons_rejection_outlives_a_programs_purge_of_its_scope(mem: Engram) -> None:
    said = mem.observe("chat", "user", RULE, scope="project:acme")
    own = {"scope": "project:acme"}
    out = proposed(mem, **own, evidence=[{"event": said.id}])
    mem.review.reject(out.id, actor="human")
    other = mem.add("The build runs on Linux", scope="project:acme")
    purged = mem.purge("project:acme")
    assert (other.id in purged.ids, out.id in purged.ids) == (True, False)
    assert any(line.startswith(f"{out.id}: a person rejected it") for line in purged.remaining)
    assert mem.learn(RULE, source="harness:codex:acme", **own).gate == "rejected"  # type: ignore[arg-type]


def test_a_person_may_purge_a_scope_with_what_they_rejected(mem: Engram) -> None:
    out = proposed(mem, scope="project:acme")
    mem.review.reject(out.id, actor="human")
    purged = mem.purge("project:acme", actor="human")
    assert (purged.ids, purged.remaining) == ((out.id,), ())
    assert mem.learn(RULE, source="harness:codex:acme", scope="project:acme").memory is not None


def test_no_agent_destroys_a_rejection_by_way_of_the_turn_it_came_from(mem: Engram) -> None:
    said = mem.observe("chat", "user", RULE)
    out = proposed(mem, evidence=[{"event": said.id}])
    mem.review.reject(out.id, actor="human")
    with pytest.raises(Refused, match="a person decided “reject”"):
        mem.upkeep.purge([said.id], actor=AGENT)
    assert mem.get(out.id).status == "rejected"


def test_undoing_another_memory_does_not_bring_back_what_a_person_retired(mem: Engram) -> None:
    old = mem.learn("The api listens on port 8080", source=AGENT).memory
    assert old is not None
    new = mem.learn("The api listens on port 9090", source=AGENT, relation="contradiction", supersedes=[old.id]).memory
    assert new is not None and new.status == "candidate"
    mem.review.resolve(new.id, "both", situations=("in staging", "in production"), actor=AGENT)
    mem.review.retire(new.id, actor="human")
    with pytest.raises(Refused, match="a person decided “forget”"):
        mem.undo(old.id, actor=AGENT)
    assert mem.get(new.id).status == "retired"


def test_a_person_and_their_program_may_bring_it_back(mem: Engram) -> None:
    out = rejected(mem)
    assert mem.update(out.id, status="candidate", actor="manual").status == "candidate"
    mem.review.reject(out.id, actor="human")
    assert mem.undo(out.id, actor="human").status == "candidate"


def test_an_agent_may_correct_what_an_agent_rejected(mem: Engram) -> None:
    waiting = proposed(mem, source=AGENT, type="health")
    mem.review.reject(waiting.id, actor=AGENT)
    assert mem.undo(waiting.id, actor=AGENT).status == "candidate"


# -- what waits


@pytest.mark.parametrize("status", ["active", "dormant", "archived", "retired", "rejected"])
def test_a_candidate_leaves_that_status_only_by_a_decision_in_review(mem: Engram, status: str) -> None:
    waiting = proposed(mem, source=AGENT, type="health")
    with pytest.raises(EngramError):
        mem.update(waiting.id, status=status, actor=AGENT)
    assert mem.get(waiting.id).status == "candidate"


def test_another_type_is_no_way_around_the_person(mem: Engram) -> None:
    waiting = proposed(mem, source=AGENT, type="health")
    with pytest.raises(Refused, match="from tier 3 to 1"):
        mem.update(waiting.id, type="tooling", actor=AGENT)


def test_an_agent_may_retire_or_rest_what_an_agent_said(mem: Engram) -> None:
    said = mem.learn(RULE, source=AGENT).memory
    assert said is not None
    assert mem.update(said.id, status="dormant", actor=AGENT).status == "dormant"
    assert mem.update(said.id, status="retired", actor=AGENT).status == "retired"


# -- links and pins


def test_no_agent_unlinks_a_candidate_from_what_it_contradicts(mem: Engram) -> None:
    old = mem.learn("The api listens on port 8080", source="manual").memory
    new = mem.learn("The api listens on port 9090", source="harness:codex:acme").memory
    assert old is not None and new is not None
    for kind in ("contradicts", None):
        with pytest.raises(Refused, match="may not set or remove 'contradicts'"):
            mem.graph.unrelate(new.id, old.id, kind, actor=AGENT)
    with pytest.raises(Refused, match="may not change which memories"):
        mem.update(new.id, associations=[], actor=AGENT)
    assert [item.waits_as for item in mem.review.queue(about=new.id)] == ["contradiction"]
    assert mem.graph.unrelate(new.id, old.id, actor="human").associations == ()


@pytest.mark.parametrize("kind", ["contradicts", "may_supersede"])
def test_no_agent_links_memories_as_review_does(mem: Engram, kind: str) -> None:
    said = mem.learn(RULE, source="manual").memory
    own = mem.learn("Screenshots are compared with pixelmatch", source=AGENT).memory
    assert said is not None and own is not None
    with pytest.raises(Refused, match=f"may not set or remove '{kind}'"):
        mem.graph.relate(own.id, said.id, kind, actor=AGENT)
    assert mem.graph.relate(own.id, said.id, "supports", actor=AGENT).associations


def test_no_agent_pins_a_candidate_that_a_person_then_approves(mem: Engram) -> None:
    waiting = proposed(mem, source=AGENT, type="health")
    with pytest.raises(Refused, match="may not pin it"):
        mem.pin(waiting.id, actor=AGENT)
    with pytest.raises(Refused, match="may not pin it"):
        mem.update(waiting.id, critical_slot="health", actor=AGENT)
    assert not mem.get(waiting.id).pinned
