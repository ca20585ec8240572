"""What becomes of a statement that was told before: it expired, was purged, rejected, was a guess, or came from elsewhere."""

from datetime import timedelta

import pytest

from engram import Engram
from engram.model.decision import Decision, Outcome
from engram.model.lazy import replace
from engram.model.memory import Memory
from tests.backends import Backend
from tests.clock import Clock

TABS = "Use tabs, not spaces, in the billing service"
GUESS = "The user prefers answers in bullet points"


@pytest.fixture
def mem(backend: Backend) -> Engram:
    return backend.client()


def captured(
    mem: Engram, statement: str, source: str = "harness:codex:acme", session: str = "", **fields: float
) -> Decision:
    """A statement as a transcript brings it."""
    given = {"statement": statement, "type": "preference", **fields}
    return mem._learner.learn(given, source=source, learned_by="harvest", session=session)


def stored(decision: Decision) -> Memory:
    assert decision.memory is not None, decision
    return decision.memory


def test_a_fact_that_has_expired_is_learned_again(mem: Engram, clock: Clock) -> None:
    until = clock() + timedelta(days=3)
    first = stored(mem.learn(TABS, valid_until=until))
    assert mem.learn(TABS).outcome == Outcome.DUPLICATE
    clock.forward(days=4)
    again = mem.learn(TABS)
    assert again.outcome == Outcome.CREATED and stored(again).id != first.id
    assert mem.add(TABS).id == stored(again).id


def test_a_program_stores_again_what_has_expired(mem: Engram, clock: Clock) -> None:
    first = mem.add(TABS, valid_until=clock() + timedelta(days=3))
    clock.forward(days=4)
    assert mem.add(TABS).id != first.id


def test_a_purged_fact_is_learned_again(mem: Engram) -> None:
    first = stored(mem.learn(TABS))
    mem.forget(first.id, purge=True)
    assert mem.learn(TABS).outcome == Outcome.CREATED


def test_a_rejected_fact_is_not_proposed_again_in_any_words(mem: Engram) -> None:
    waiting = stored(captured(mem, "The user prefers Vim to Emacs"))
    mem.review.reject(waiting.id, actor="human", reason="not mine")
    for said in ("The user prefers Vim to Emacs", "The user likes Vim more than Emacs."):
        again = captured(mem, said)
        assert (again.outcome, again.gate) == (Outcome.REJECTED, "rejected")
    assert mem.learn("The user prefers Vim to Emacs", source="agent").gate == "rejected"
    assert mem.remember("The user prefers Vim to Emacs").outcome == Outcome.CREATED


def test_what_is_near_a_rejected_fact_and_says_something_else_is_proposed(mem: Engram) -> None:
    waiting = stored(captured(mem, "The user prefers Vim to Emacs"))
    mem.review.reject(waiting.id, actor="human")
    assert captured(mem, "The user prefers Emacs to Vim").outcome == Outcome.PENDING


def test_a_guess_expires_unless_it_is_captured_again(mem: Engram, clock: Clock) -> None:
    guesses = [stored(captured(mem, text, confidence=0.3)) for text in (GUESS, TABS)]
    for guess in guesses:
        mem.review.approve(guess.id, actor="program")
    confirmed = captured(mem, GUESS, session="later")
    assert confirmed.outcome == Outcome.DUPLICATE and stored(confirmed).confidence >= 0.4
    clock.forward(days=31)
    assert [hit.memory.statement for hit in mem.search("bullet points tabs spaces") if hit.memory] == [GUESS]


def test_a_stale_memory_answers_again_once_it_is_verified(mem: Engram, clock: Clock) -> None:
    known = stored(mem.remember("The user prefers pnpm over npm"))
    clock.forward(days=400)
    found = mem.search("pnpm")
    assert [hit.note for hit in found] == ["last confirmed 2026-03-01"]
    assert any(known.id in warning for warning in found.warnings)
    mem.verify(known.id)
    assert [(hit.id, hit.note) for hit in mem.search("pnpm")] == [(known.id, "fading")]


def test_an_independent_source_corroborates_and_the_same_one_does_not(mem: Engram) -> None:
    waiting = stored(captured(mem, TABS, "import:pack.json", "one"))
    assert stored(captured(mem, TABS, "import:other.json", "two")).status == "candidate"
    twice = captured(mem, TABS, "harness:codex:acme", "three")
    assert twice.outcome == Outcome.UPDATED and stored(twice).id == waiting.id
    assert (stored(twice).status, stored(twice).verification) == ("active", "system_inferred")
    shown = mem.inject("tabs or spaces in the billing service")
    assert [item.memory.id for item in shown.consider] == [waiting.id] and not shown.directives


def test_content_that_nobody_vouches_for_is_injected_nowhere(mem: Engram) -> None:
    waiting = stored(captured(mem, TABS, "import:pack.json"))
    mem.review.approve(waiting.id, actor="program")
    assert [hit.id for hit in mem.search("tabs in the billing service")] == [waiting.id]
    assert TABS not in mem.inject("tabs or spaces in the billing service").text


def test_an_untrusted_source_has_a_limit_a_day(backend: Backend, clock: Clock) -> None:
    mem = backend.client()
    mem.settings = replace(mem.settings, source_daily_limit=2)
    tools = ("pnpm", "uv", "cargo")
    outcomes = [captured(mem, f"The user prefers {tool} for scripts", "web:example.org").outcome for tool in tools]
    assert outcomes == [Outcome.PENDING, Outcome.PENDING, Outcome.REJECTED]
    assert captured(mem, "The user prefers cargo for scripts", "web:example.com").outcome == Outcome.PENDING
    assert mem.learn("Prefer make over just in this repository").outcome == Outcome.CREATED
    clock.forward(days=1)
    assert captured(mem, "The user prefers deno for tools", "web:example.org").outcome == Outcome.PENDING


def test_an_open_contradiction_disputes_and_settling_it_ends_that(mem: Engram) -> None:
    old = stored(mem.learn("The api listens on port 8080 in production"))
    new = mem.learn("The api listens on port 9090 in production")
    assert new.outcome == Outcome.CONTRADICTION
    assert mem.explain_memory(old.id).memory.verification == "disputed"
    notes = [hit.note for hit in mem.search("api port in production") if hit.id == old.id]
    assert [note.partition(";")[0] for note in notes] == ["disputed"]
    assert not mem.inject("which port does the api use in production").directives
    mem.review.reject(stored(new).id, actor="human")
    assert mem.explain_memory(old.id).memory.verification == "unverified"
    assert mem.inject("which port does the api use in production").directives


def test_a_less_trusted_source_puts_nothing_in_dispute(mem: Engram) -> None:
    old = stored(mem.remember("The api listens on port 8080 in production"))
    for source in ("agent", "web:example.org"):
        mem.learn("The api listens on port 9090 in production", source=source)
    assert mem.explain_memory(old.id).memory.verification == "unverified"


def test_distrusting_a_source_takes_back_what_it_corroborated(mem: Engram) -> None:
    first = stored(captured(mem, TABS, "harness:codex:acme", "one"))
    assert stored(captured(mem, TABS, "import:pack.json", "two")).status == "active"
    mem.review.distrust("import:pack.json", actor="human")
    assert (mem.get(first.id).status, mem.get(first.id).verification) == ("candidate", "unverified")
    mem.review.restore_trust("import:pack.json", actor="human")
    assert mem.get(first.id).status == "active"
