"""What the doctor says of the memories themselves, on each backend."""

from datetime import timedelta

import pytest

from engram.model.memory import CONTRADICTS, MAY_SUPERSEDE, Association
from engram.model.report import Finding
from engram.store.protocol import Store
from engram.upkeep import memory_health
from engram.upkeep.memory_health import memory_findings
from engram.upkeep.upkeep import diagnose
from tests.backends import Backend
from tests.clock import Clock
from tests.conformance.keeping import Keep

LONG = 3600.0
"""Seconds; more than any test takes."""


def findings(store: Store, clock: Clock, seconds: float = LONG) -> dict[str, Finding]:
    """The findings by their codes."""
    return {finding.code: finding for finding in memory_findings(store, clock(), seconds)}


def test_a_store_without_trouble_has_only_healthy_findings(store: Store, keep: Keep, clock: Clock) -> None:
    keep("The office is in Lyon")
    found = findings(store, clock)
    assert list(found) == ["stale", "confidence", "unverified", "conflicts"]
    assert {finding.level for finding in found.values()} == {"ok"}


def test_memories_past_their_horizon_are_counted_and_named(store: Store, keep: Keep, clock: Clock) -> None:
    stale = keep("The office is in Lyon", decay_days=10)
    keep("The printer is on the second floor", decay_days=1000)
    clock.forward(days=30)
    finding = findings(store, clock)["stale"]
    assert (finding.level, finding.count, finding.ids) == ("advice", 1, (stale.id,))
    assert stale.id in finding.message
    assert "engram verify" in finding.fix


def test_only_active_memories_are_judged(store: Store, keep: Keep, clock: Clock) -> None:
    keep("one", confidence=0.1, status="retired")
    keep("three", confidence=0.1, status="dormant")
    keep("two", confidence=0.1, status="candidate", learned_by="import")
    assert {finding.count for finding in findings(store, clock).values()} == {0}


def test_a_confidence_below_a_half_is_low(store: Store, keep: Keep, clock: Clock) -> None:
    low = keep("The office is in Lyon", confidence=0.49)
    keep("The printer is on the second floor", confidence=0.5)
    assert findings(store, clock)["confidence"].ids == (low.id,)


def test_what_was_harvested_or_imported_and_never_verified_is_named(store: Store, keep: Keep, clock: Clock) -> None:
    harvested = keep("The office is in Lyon", learned_by="harvest", source="harness:codex:acme")
    imported = keep("The printer is on the second floor", learned_by="import")
    keep("The server room is locked", learned_by="import", last_verified=clock())
    keep("Lunch is at noon", learned_by="remember")
    assert set(findings(store, clock)["unverified"].ids) == {harvested.id, imported.id}


def test_what_an_agent_captured_directs_agents_and_is_not_counted_as_evidence(
    store: Store, keep: Keep, clock: Clock
) -> None:
    keep("Lunch is at noon", learned_by="harvest", source="agent")
    finding = findings(store, clock)["unverified"]
    assert (finding.count, finding.message) == (0, "everything from transcripts and imports is confirmed")
    keep("Tea is at four", learned_by="harvest", source="harness:codex:acme")
    message = findings(store, clock)["unverified"].message
    assert message.startswith("1 memory comes from a transcript or an import and is unconfirmed: ENG-")


def test_a_finding_says_how_many_there_are_and_names_a_few(store: Store, keep: Keep, clock: Clock) -> None:
    keep.many([{"statement": f"item {number}", "confidence": 0.1} for number in range(120)])
    finding = findings(store, clock)["confidence"]
    assert (finding.count, len(finding.ids)) == (120, 100)
    assert finding.message.startswith("120 memories")
    assert finding.message.count("ENG-") == 5


def test_the_time_is_limited_and_the_finding_says_how_much_was_read(
    store: Store, keep: Keep, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory_health, "MEMORIES_PER_PAGE", 2)
    keep.many([{"statement": f"item {number}", "confidence": 0.1} for number in range(5)])
    finding = findings(store, clock, seconds=0)["confidence"]
    assert finding.count == 2
    assert "checked 2 of 5" in finding.message
    assert findings(store, clock)["confidence"].count == 5


# -- conflicts


def test_an_open_contradiction_is_named_until_it_is_settled(store: Store, keep: Keep, clock: Clock) -> None:
    old = keep("The office is in Lyon")
    new = keep("The office is in Nice", status="candidate", associations=(Association(old.id, CONTRADICTS),))
    finding = findings(store, clock)["conflicts"]
    assert (finding.level, finding.count, finding.ids) == ("advice", 1, (new.id,))
    assert "engram review" in finding.fix
    keep.again(old, status="retired")
    assert findings(store, clock)["conflicts"].count == 0


def test_a_probable_update_that_waits_is_named(store: Store, keep: Keep, clock: Clock) -> None:
    old = keep("The printer is on the second floor")
    new = keep("Lunch is at noon", associations=(Association(old.id, MAY_SUPERSEDE),))
    assert findings(store, clock)["conflicts"].ids == (new.id,)


def test_two_current_memories_with_one_conflict_key_are_named(store: Store, keep: Keep, clock: Clock) -> None:
    one = keep("The office is in Lyon", conflict_key="office")
    two = keep("Lunch is at noon", conflict_key="office")
    keep("The printer is on the second floor", conflict_key="office", scope="project:acme")
    finding = findings(store, clock)["conflicts"]
    assert set(finding.ids) == {one.id, two.id}
    assert "1 conflict key" in finding.message


def test_a_pair_that_disagrees_is_found_among_many(store: Store, keep: Keep, clock: Clock) -> None:
    old = keep("The staging server listens on port 8080")
    keep.many([{"statement": f"Room {number} has {number + 3} chairs and a lamp"} for number in range(30)])
    new = keep("The staging server listens on port 9090")
    finding = findings(store, clock)["conflicts"]
    assert f"{new.id} and {old.id}" in finding.message
    assert "compared 32 memories" in finding.message


def test_a_pair_that_was_found_is_named_again_without_comparing_again(
    store: Store, keep: Keep, clock: Clock, backend: Backend
) -> None:
    old = keep("The staging server listens on port 8080")
    new = keep("The staging server listens on port 9090")
    findings(store, clock)
    finding = findings(backend.store(), clock)["conflicts"]
    assert f"{new.id} and {old.id}" in finding.message
    assert "compared 0 memories with their neighbours (0 pairs)" in finding.message


def test_a_memory_that_changed_is_compared_again(store: Store, keep: Keep, clock: Clock) -> None:
    keep("The staging server listens on port 8080")
    new = keep("The staging server listens on port 9090")
    assert findings(store, clock)["conflicts"].count == 1
    keep.again(new, statement="The coffee machine is cleaned on Fridays", updated=clock())
    finding = findings(store, clock)["conflicts"]
    assert finding.count == 0
    assert "compared 1 memory with its neighbours" in finding.message


def test_a_pair_that_somebody_has_linked_is_settled(store: Store, keep: Keep, clock: Clock) -> None:
    old = keep("The staging server listens on port 8080")
    new = keep("The staging server listens on port 9090")
    assert findings(store, clock)["conflicts"].count == 1
    keep.again(new, associations=(Association(old.id, "valid_elsewhere"),))
    assert findings(store, clock)["conflicts"].count == 0


def test_other_scopes_do_not_conflict(store: Store, keep: Keep, clock: Clock) -> None:
    keep("The staging server listens on port 8080", scope="project:one")
    keep("The staging server listens on port 9090", scope="project:two")
    assert findings(store, clock)["conflicts"].count == 0


def test_the_next_run_goes_on_where_the_time_was_over(store: Store, keep: Keep, clock: Clock) -> None:
    keep("The staging server listens on port 8080")
    keep("The staging server listens on port 9090")
    keep("Lunch is at noon")
    first = findings(store, clock, seconds=0)["conflicts"]
    assert "; 2 memories are still to be compared" in first.message
    second = findings(store, clock, seconds=0)["conflicts"]
    assert second.count == 1
    assert "; 1 memory is still to be compared" in second.message
    assert "still to be" not in findings(store, clock, seconds=0)["conflicts"].message


def test_what_is_kept_between_runs_names_ids_and_nothing_else(store: Store, keep: Keep, clock: Clock) -> None:
    old = keep("The staging server listens on port 8080")
    new = keep("The staging server listens on port 9090")
    findings(store, clock)
    state = store.state("doctor")
    assert state["pairs"] == [[new.id, old.id]]
    assert [end[1] for end in (state["from"], state["through"])] == [old.id, new.id]


def test_the_report_has_the_findings_with_their_ids(store: Store, keep: Keep, clock: Clock) -> None:
    low = keep("The office is in Lyon", confidence=0.2, created=clock() - timedelta(days=1))
    report = diagnose(store, clock())
    assert report.ok
    record = next(check for check in report.record()["checks"] if check["name"] == "confidence")
    assert (record["level"], record["count"], record["ids"]) == ("advice", 1, [low.id])
