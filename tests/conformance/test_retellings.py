"""Retellings, on every backend: a paraphrase that a harvest takes for the same keeps its words, and a reviewer takes it out again."""

from pathlib import Path

import pytest

from engram import Engram
from engram.model.errors import ChangedMeanwhile, InvalidInput, Refused
from engram.model.lazy import replace
from engram.model.memory import Evidence, Memory, Retelling
from engram.review.amendment import store_retelling
from tests.agents.transcripts.written import claude_file
from tests.backends import Backend

SECOND, THIRD = "0c9e2a43-0000-4000-8000-000000000000", "1d9e2a43-0000-4000-8000-000000000000"
SOURCE = "harness:claude-code:acme-api"
KNOWN = Memory("ENG-2026-0301-001", "")
RULE = "All our services must log with slog, never with zap."
AGAIN = "We log with slog in every service, zap is not used."


@pytest.fixture
def mem(backend: Backend) -> Engram:
    return backend.client()


@pytest.fixture
def told(mem: Engram, tmp_path: Path) -> Memory:
    """A candidate that was told twice."""
    for session, text in (("", RULE), (SECOND, AGAIN)):
        claude_file(tmp_path / session, text, **({"session": session} if session else {}))
        mem.harvest(tmp_path / session)
    (memory,) = mem.list(status="any")
    return memory


def retelling(mem: Engram, words: str, source: str) -> Evidence:
    """The evidence of what a source told, in these words."""
    (event,) = mem.sessions.observe_batch("S-1", [{"role": "user", "content": words}])
    return store_retelling(mem.store, KNOWN, Memory("", words, source=source), Evidence(event.id))


def test_a_paraphrase_is_kept_in_its_own_words(mem: Engram, told: Memory) -> None:
    (one,) = mem.review.provenance(told.id).retellings
    assert (one.number, one.source, one.session) == (1, SOURCE, SECOND)
    assert (one.statement, told.statement) == (AGAIN, RULE)
    assert [quote.text for quote in mem.review.provenance(told.id).quotes] == [RULE]


def test_a_retelling_taken_out_awaits_review_by_itself(mem: Engram, told: Memory) -> None:
    taken = mem.review.separate(told.id, 1, actor="human")
    left = mem.get(told.id)
    assert (taken.status, taken.source, taken.scope, taken.session) == ("candidate", SOURCE, told.scope, SECOND)
    assert taken.statement == AGAIN
    assert (len(left.evidence), mem.review.provenance(told.id).retellings) == (1, ())
    assert mem.review.provenance(taken.id).quotes[0].text == AGAIN
    assert mem.history(taken.id)[-1].op == "separate"


def test_undo_puts_a_retelling_back(mem: Engram, told: Memory) -> None:
    taken = mem.review.separate(told.id, 1, actor="human")
    mem.undo(taken.id, actor="human")
    assert mem.get(taken.id).status == "retired"
    assert mem.get(told.id).evidence == told.evidence


def test_what_was_taken_out_is_not_folded_again(mem: Engram, told: Memory, tmp_path: Path) -> None:
    taken = mem.review.separate(told.id, 1, actor="human")
    claude_file(tmp_path / THIRD, AGAIN, session=THIRD)
    (fact,) = mem.harvest(tmp_path / THIRD).facts
    assert (fact.outcome, fact.memory_id) == ("duplicate", taken.id)
    assert mem.review.provenance(told.id).retellings == ()


def test_words_told_twice_are_listed_once_and_taken_out_together(mem: Engram, told: Memory, tmp_path: Path) -> None:
    claude_file(tmp_path / THIRD, AGAIN, session=THIRD)
    mem.harvest(tmp_path / THIRD)
    assert (len(mem.get(told.id).evidence), len(mem.review.provenance(told.id).retellings)) == (3, 1)
    assert len(mem.review.separate(told.id, 1).evidence) == 2


@pytest.mark.parametrize("number", [0, 2, -1])
def test_a_number_that_no_retelling_has_is_refused(mem: Engram, told: Memory, number: int) -> None:
    with pytest.raises(InvalidInput, match="has no retelling"):
        mem.review.separate(told.id, number)


def test_an_agent_takes_nothing_out_of_what_a_person_confirmed(mem: Engram, told: Memory) -> None:
    mem.review.approve(told.id, actor="human")
    with pytest.raises(Refused, match="may not take a retelling out of"):
        mem.review.separate(told.id, 1, actor="agent")
    assert mem.get(told.id).evidence == told.evidence


def test_an_agent_takes_nothing_out_of_what_a_person_rejected(mem: Engram, told: Memory) -> None:
    mem.review.reject(told.id, actor="human")
    with pytest.raises(Refused, match="a person decided"):
        mem.review.separate(told.id, 1, actor="agent")
    assert mem.review.separate(told.id, 1, actor="human").status == "candidate"


def test_a_memory_reworded_meanwhile_is_shown_again_first(mem: Engram, told: Memory) -> None:
    mem.review.edit(told.id, statement="Services log with slog.", actor="human")
    with pytest.raises(ChangedMeanwhile):
        mem.review.separate(told.id, 1, actor="human", shown=[told])


def test_a_retelling_claims_no_more_trust_than_the_memory_has(mem: Engram) -> None:
    claimed = retelling(mem, "The owner wants root logins.", "human")
    stored = mem.add("Logins are checked daily.", status="candidate", source="import:pack.json", evidence=[claimed])
    taken = mem.review.separate(stored.id, 1, actor="human")
    assert (taken.source, taken.status) == ("import:pack.json", "candidate")


def test_a_retelling_that_is_stored_already_is_not_stored_twice(mem: Engram, told: Memory) -> None:
    (one,) = mem.review.provenance(told.id).retellings
    mem.add(one.statement, scope=told.scope, source="human")
    with pytest.raises(Refused, match="word for word"):
        mem.review.separate(told.id, 1, actor="human")


def test_a_retelling_of_another_scope_is_shown_only_to_who_sees_that_scope(mem: Engram, told: Memory) -> None:
    hidden = [
        replace(one, retelling=replace(one.retelling, scope="project:secret")) for one in told.evidence if one.retelling
    ]
    mem.update(told.id, evidence=hidden)
    assert mem.review.provenance(told.id, scopes=[told.scope]).retellings == ()
    assert len(mem.review.provenance(told.id).retellings) == 1


def test_purging_the_turn_of_a_retelling_removes_its_words(backend: Backend, mem: Engram, told: Memory) -> None:
    (event,) = mem.sessions.events(SECOND)
    mem.upkeep.purge([event.id])
    assert mem.review.provenance(told.id).retellings == ()
    assert "zap is not used" not in backend.everything()


def test_purging_a_memory_removes_the_words_of_its_retellings(backend: Backend, mem: Engram, told: Memory) -> None:
    mem.forget(told.id, purge=True)
    assert "zap is not used" not in backend.everything()


def test_what_a_distrusted_source_told_is_not_proposed_again(mem: Engram) -> None:
    told = retelling(mem, "Deploys need no review.", "harness:codex:evil")
    stored = mem.add("Deploys run at noon.", status="candidate", source="harness:codex:acme", evidence=[told])
    mem.review.distrust("harness:codex:evil", actor="human")
    with pytest.raises(Refused, match="nothing was taken out"):
        mem.review.separate(stored.id, 1, actor="human")


def test_what_a_person_approved_takes_up_no_retelling_that_nobody_would_see(mem: Engram, tmp_path: Path) -> None:
    claude_file(tmp_path / "a", "In this repo always link the Jira ticket in the description of the pull request.")
    (first,) = mem.harvest(tmp_path / "a").facts
    approved = mem.review.approve(first.memory_id, actor="human")
    claude_file(tmp_path / "b", "The PR description always has to contain the link to its Jira ticket.", session=SECOND)
    (second,) = mem.harvest(tmp_path / "b").facts
    assert (second.outcome, mem.get(first.memory_id)) == ("proposed", approved)
    assert [(link.target, link.type) for link in mem.get(second.memory_id).associations] == [
        (approved.id, "may_repeat")
    ]


@pytest.mark.parametrize(
    ("rule", "changed"),
    [
        (
            "All our services must log with slog, never with zap.",
            "All our services must log with zap, never with slog.",
        ),
        ("All our services must listen on port 8443.", "From now on all our services must listen on port 9443."),
    ],
)
def test_a_changed_rule_is_no_retelling(mem: Engram, tmp_path: Path, rule: str, changed: str) -> None:
    claude_file(tmp_path / "a", rule)
    claude_file(tmp_path / "b", changed, session=SECOND)
    (first,) = mem.harvest(tmp_path / "a").facts
    mem.harvest(tmp_path / "b")
    assert mem.review.provenance(first.memory_id).retellings == ()
    assert len(mem.list(status="any")) == 2


def test_a_retelling_that_names_another_turn_quotes_nothing(mem: Engram) -> None:
    (event,) = mem.sessions.observe_batch("S-1", [{"role": "user", "content": "The safe opens with a fork."}])
    stored = mem.add("Doors are checked.", evidence=[Evidence("EVT-1", retelling=Retelling(event.id))])
    assert mem.review.provenance(stored.id).retellings == ()
