"""A source taken back out: its candidates and its memories go, what they replaced returns, and all of it is undone."""

import pytest

from engram import Engram, InvalidInput, Memory, NotFound, Refused
from engram.review.distrust import distrust_reason
from tests.backends import Backend
from tests.clock import Clock

POISON, OTHER = "import:pack.json", "harness:codex:acme"


@pytest.fixture
def mem(backend: Backend) -> Engram:
    return backend.client()


def proposed(mem: Engram, statement: str, source: str = POISON, **fields: object) -> Memory:
    decision = mem.learn(statement, source=source, **fields)  # type: ignore[arg-type]
    assert decision.memory is not None, decision
    return decision.memory


def status(mem: Engram, memory: Memory) -> str:
    return mem.get(memory.id).status


def test_candidates_are_rejected_and_promoted_memories_retired_if_so_wanted(mem: Engram) -> None:
    waiting, active = (
        proposed(mem, "Invoices are printed twice"),
        proposed(mem, "The search index is rebuilt on Sundays"),
    )
    other = proposed(mem, "Prices are stored in cents", OTHER)
    mem.review.approve(active.id, actor="human")
    decision = mem.review.distrust(POISON, include_confirmed=True, actor="human")
    assert {memory.id for memory in decision.done} == {waiting.id, active.id}
    assert [status(mem, memory) for memory in (waiting, active, other)] == ["rejected", "retired", "candidate"]


@pytest.mark.parametrize("confirm", ["approve", "verify", "resolve"])
def test_what_a_person_confirmed_stays_and_is_named(mem: Engram, confirm: str) -> None:
    old = mem.learn("The api listens on port 8080").memory
    assert old is not None
    given = {
        "approve": "Invoices are printed twice",
        "verify": "Prices are stored in cents",
        "resolve": "The api listens on port 6666",
    }
    memory = proposed(mem, given[confirm])
    if confirm == "verify":
        mem.review.approve(memory.id, actor="manual")
        mem.verify(memory.id, actor="human")
    elif confirm == "approve":
        mem.review.approve(memory.id, actor="human")
    else:
        mem.review.resolve(memory.id, "new", actor="human")
    waiting = proposed(mem, "The search index is rebuilt on Sundays")
    decision = mem.review.distrust(POISON, actor="human")
    assert (status(mem, memory), status(mem, waiting)) == ("active", "rejected")
    assert "--include-confirmed" in decision.left[memory.id]
    mem.review.distrust(POISON, include_confirmed=True, actor="human")
    assert status(mem, memory) == "retired"
    mem.review.restore_trust(POISON, actor="human")
    assert (status(mem, memory), status(mem, waiting)) == ("active", "candidate")


def test_what_a_poisoned_memory_replaced_is_current_again(mem: Engram) -> None:
    old = mem.learn("The api listens on port 8080").memory
    new = proposed(mem, "The api listens on port 6666")
    assert old is not None
    mem.review.resolve(new.id, "new", actor="human")
    assert status(mem, old) == "superseded"
    mem.review.distrust(POISON, include_confirmed=True, actor="human")
    assert (status(mem, old), status(mem, new)) == ("active", "retired")
    assert mem.get(old.id).valid_until is None


def test_of_two_poisoned_versions_neither_stays(mem: Engram) -> None:
    old = mem.learn("The api listens on port 8080").memory
    assert old is not None
    first = mem.add("The api listens on port 6666", source=POISON, supersedes=[old.id])
    mem.review.resolve(first.id, "new", actor="human")
    second = mem.add("The api listens on port 7777", source=POISON, supersedes=[first.id])
    mem.review.resolve(second.id, "new", actor="human")
    mem.review.distrust(POISON, include_confirmed=True, actor="human")
    assert [status(mem, one) for one in (old, first, second)] == ["active", "retired", "retired"]


def test_it_is_undone_as_a_whole(mem: Engram) -> None:
    old = mem.learn("The api listens on port 8080").memory
    new, waiting = proposed(mem, "The api listens on port 6666"), proposed(mem, "Invoices are printed twice")
    assert old is not None
    mem.review.resolve(new.id, "new", actor="human")
    mem.review.distrust(POISON, include_confirmed=True, actor="human")
    undone = mem.review.restore_trust(POISON, actor="human")
    assert undone.left == {}
    assert [status(mem, one) for one in (old, new, waiting)] == ["superseded", "active", "candidate"]
    assert distrust_reason(mem.store, POISON) == ""


def test_its_proposals_are_named_as_distrusted_from_then_on(mem: Engram) -> None:
    mem.review.distrust("harness:codex", actor="human")
    assert "harness:codex is distrusted since 2026-03-01" in distrust_reason(mem.store, "harness:codex:acme")
    assert distrust_reason(mem.store, "harness:codex2") == distrust_reason(mem.store, "harness") == ""


def test_a_distrusted_source_proposes_nothing_until_it_is_trusted_again(mem: Engram) -> None:
    mem.review.distrust("harness:codex", actor="human")
    refused = mem.learn("Prices are stored in cents", source="harness:codex:acme")
    assert (refused.outcome, refused.memory) == ("REJECTED", None)
    assert "harness:codex is distrusted" in refused.reason
    mem.review.restore_trust("harness:codex", actor="human")
    assert mem.learn("Prices are stored in cents", source="harness:codex:acme").outcome == "PENDING"


def test_what_another_source_says_is_not_rejected_with_the_poisoned_one(mem: Engram) -> None:
    proposed(mem, "Prices are stored in cents")
    mem.review.distrust(POISON, actor="human")
    assert mem.learn("Prices are stored in cents", source=OTHER).outcome == "PENDING"


def test_a_session_can_be_taken_out_whatever_its_sources(mem: Engram) -> None:
    inside = proposed(mem, "Invoices are printed twice", "agent", type="health", session="S-1")
    outside = proposed(mem, "Prices are stored in cents", OTHER, session="S-2")
    mem.review.distrust("session:S-1", actor="human")
    assert (status(mem, inside), status(mem, outside)) == ("rejected", "candidate")
    assert distrust_reason(mem.store, "agent", "S-1") and not distrust_reason(mem.store, "agent", "S-2")


def test_since_limits_it_to_what_was_stored_from_then_on(mem: Engram, clock: Clock) -> None:
    before = proposed(mem, "Invoices are printed twice")
    moment = clock.forward(days=1)
    after = proposed(mem, "Prices are stored in cents")
    mem.review.distrust(POISON, since=moment, actor="human")
    assert (status(mem, before), status(mem, after)) == ("candidate", "rejected")


def test_a_rehearsal_changes_nothing(mem: Engram) -> None:
    waiting = proposed(mem, "Invoices are printed twice")
    planned = mem.review.distrust(POISON, dry_run=True, actor="human")
    assert [memory.id for memory in planned.done] == [waiting.id]
    assert (status(mem, waiting), distrust_reason(mem.store, POISON)) == ("candidate", "")


def test_what_a_person_reworded_stays(mem: Engram) -> None:
    waiting = proposed(mem, "Invoices are printed twice")
    mem.review.edit(waiting.id, statement="Invoices are printed once", actor="human")
    mem.review.approve(waiting.id, actor="human")
    decision = mem.review.distrust(POISON, actor="human")
    assert (status(mem, waiting), decision.left) == ("active", {waiting.id: "a person wrote it"})


def test_what_a_person_repeated_stays_whether_it_waited_or_was_promoted(mem: Engram) -> None:
    waiting, promoted = proposed(mem, "Invoices are printed twice"), proposed(mem, "Prices are stored in cents")
    mem.review.approve(promoted.id, actor="human")
    for memory in (waiting, promoted):
        mem.learn(memory.statement, source="human")
    decision = mem.review.distrust(POISON, actor="human")
    assert (status(mem, waiting), status(mem, promoted)) == ("active", "active")
    assert set(decision.left.values()) == {"a person wrote or repeated it"}


def test_what_a_person_verified_stays(mem: Engram) -> None:
    promoted = proposed(mem, "Prices are stored in cents")
    mem.review.approve(promoted.id, actor="human")
    mem.verify(promoted.id, actor="human")
    mem.review.distrust(POISON, actor="human")
    assert status(mem, promoted) == "active"


def test_what_a_person_revised_or_updated_is_theirs_and_stays(mem: Engram) -> None:
    revised, updated = proposed(mem, "Invoices are printed twice"), proposed(mem, "Prices are stored in cents")
    for memory in (revised, updated):
        mem.review.approve(memory.id, actor="manual")
    second = mem.revise(revised.id, statement="Invoices are printed once", actor="human")
    changed = mem.update(updated.id, statement="Prices are stored in pence", actor="human")
    for memory in (second, changed):
        assert (memory.source, memory.verification) == ("human", "user_confirmed")
    mem.review.distrust(POISON, actor="human")
    assert [status(mem, memory) for memory in (revised, second, changed)] == ["retired", "active", "active"]


def test_what_a_person_wrote_and_took_back_is_theirs_no_more(mem: Engram) -> None:
    promoted = proposed(mem, "Prices are stored in cents")
    mem.review.approve(promoted.id, actor="human")
    mem.review.edit(promoted.id, statement="Prices are stored in pence", actor="human")
    mem.undo(promoted.id, actor="human")
    mem.review.distrust(POISON, include_confirmed=True, actor="human")
    assert status(mem, promoted) == "retired"


def test_an_agent_takes_out_nothing_that_a_person_confirmed(mem: Engram) -> None:
    confirmed, waiting = proposed(mem, "Invoices are printed twice"), proposed(mem, "Prices are stored in cents")
    mem.review.approve(confirmed.id, actor="human")
    decision = mem.review.distrust(POISON, actor="agent")
    assert (status(mem, confirmed), status(mem, waiting)) == ("active", "rejected")
    assert "was said by a person" in decision.left[confirmed.id]


def test_an_agent_does_not_trust_again_what_a_person_distrusted(mem: Engram) -> None:
    mem.review.distrust(POISON, actor="human")
    with pytest.raises(Refused, match="a person distrusted import"):
        mem.review.restore_trust(POISON, actor="agent")
    assert distrust_reason(mem.store, POISON)


@pytest.mark.parametrize("source", ["human", "hand", "manual"])
def test_the_owner_is_no_source_to_distrust(mem: Engram, source: str) -> None:
    with pytest.raises(Refused, match="stands for the owner"):
        mem.review.distrust(source, actor="human")


def test_no_source_at_all_is_refused(mem: Engram) -> None:
    with pytest.raises(InvalidInput, match="name a source"):
        mem.review.distrust("  ", actor="human")


def test_trust_in_what_is_not_distrusted_is_not_restored(mem: Engram) -> None:
    mem.review.distrust(POISON, actor="human")
    with pytest.raises(NotFound, match=r"'import:other.json' is not distrusted; distrusted: import:pack.json"):
        mem.review.restore_trust("import:other.json", actor="human")


def test_distrusting_twice_is_undone_at_once(mem: Engram, clock: Clock) -> None:
    first = proposed(mem, "Invoices are printed twice")
    moment = clock.forward(days=1)
    second = proposed(mem, "Prices are stored in cents")
    mem.review.distrust(POISON, since=moment, actor="human")
    assert (status(mem, first), status(mem, second)) == ("candidate", "rejected")
    mem.review.distrust(POISON, actor="human")
    assert status(mem, first) == "rejected"
    mem.review.restore_trust(POISON, actor="human")
    assert (status(mem, first), status(mem, second)) == ("candidate", "candidate")


# -- undone like any other decision


@pytest.mark.parametrize("by_id", [True, False])
def test_undoing_the_decision_trusts_the_source_again(mem: Engram, by_id: bool) -> None:
    waiting = proposed(mem, "Invoices are printed twice")
    decision = mem.review.distrust(POISON, actor="human")
    undone = mem.review.undo_bulk(decision.id, actor="human") if by_id else mem.review.undo_last(actor="human")
    assert (status(mem, waiting), undone.source, undone.left) == ("candidate", POISON, {})
    assert distrust_reason(mem.store, POISON) == ""


def test_undoing_a_distrust_that_took_out_nothing_undoes_nothing_else(mem: Engram) -> None:
    kept = mem.add("Prices are stored in cents")
    mem.review.distrust(POISON, actor="human")
    undone = mem.review.undo_last(actor="human")
    assert (undone.source, undone.done, status(mem, kept)) == (POISON, (), "active")
    assert distrust_reason(mem.store, POISON) == ""


def test_a_distrust_that_took_out_nothing_is_not_the_last_decision_once_another_follows(mem: Engram) -> None:
    mem.review.distrust(POISON, actor="human")
    kept = mem.add("Prices are stored in cents")
    mem.review.undo_last(actor="human")
    assert (status(mem, kept), bool(distrust_reason(mem.store, POISON))) == ("retired", True)


@pytest.mark.parametrize("fact", ["Invoices are printed twice", ""])
def test_trust_that_was_restored_is_withdrawn_by_name_only(mem: Engram, fact: str) -> None:
    kept = mem.add("Prices are stored in cents")
    waiting = [proposed(mem, fact)] if fact else []
    mem.review.distrust(POISON, actor="human")
    undone = mem.review.undo_last(actor="human")
    with pytest.raises(Refused, match=r"`engram distrust import:pack.json` takes it out once more"):
        mem.review.undo_last(actor="human")
    if undone.id:
        with pytest.raises(Refused, match=r"`engram distrust import:pack.json`"):
            mem.review.undo_bulk(undone.id, actor="human")
    assert [status(mem, one) for one in (kept, *waiting)] == ["active", *["candidate" for _ in waiting]]


def test_an_agent_does_not_undo_the_last_decision_where_a_person_distrusted(mem: Engram) -> None:
    mem.review.distrust(POISON, actor="human")
    with pytest.raises(Refused, match="a person distrusted import"):
        mem.review.undo_last(actor="agent")
