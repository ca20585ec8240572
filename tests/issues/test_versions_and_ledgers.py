"""What the first users of versions, tasks and ledgers ran into."""

from pathlib import Path

import pytest

from engram import Engram
from engram.model.errors import InvalidInput, Refused
from tests.homes import home_of


@pytest.fixture
def mem(tmp_path: Path) -> "Engram":
    return Engram.open(tmp_path / "home", cache=tmp_path / "cache", directory=tmp_path)


def test_revising_does_not_put_a_candidate_in_force(mem: Engram) -> None:
    with mem:
        told = mem.learn("The user was born in 1980", type="identity", source="agent").memory
        assert told is not None and told.status == "candidate"
        with pytest.raises(InvalidInput, match="review"):
            mem.revise(told.id, statement="The user was born in 1981", actor="agent")
        assert [m.status for m in mem.list(status="any")] == ["candidate"]


def test_a_name_leads_to_the_version_in_force(mem: Engram) -> None:
    with mem:
        first = mem.add("The port is 5433", name="db-port", aliases=["mem-0001"])
        second = mem.revise(first.id, statement="The port is 5434")
        assert mem.get("db-port").id == mem.get("mem-0001").id == second.id
        assert mem.get(first.id).name == "db-port-v1"


def test_a_conversation_is_not_taken_in_while_engram_is_paused(mem: Engram) -> None:
    with mem:
        mem.upkeep.pause()
        with pytest.raises(Refused, match="paused"):
            mem.add_conversation("I prefer pnpm over npm.", session="s")
        assert mem.store.events("s") == []


def test_one_line_that_cannot_be_read_does_not_keep_the_store_from_opening(mem: Engram, tmp_path: Path) -> None:
    with mem:
        mem.observe("broken", "user", "one")
        mem.observe("broken", "user", "two")
        mem.observe("whole", "user", "three")
        [path] = home_of(mem).ledger.glob("broken.jsonl")
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + b"{not json\n" + lines[1])
    for cache in ("cache", "another"):
        with Engram.open(tmp_path / "home", cache=tmp_path / cache, directory=tmp_path) as again:
            assert [event.content for event in again.store.events("whole")] == ["three"]
            problems = again.store.verify_ledgers()
            assert any("broken.jsonl:2" in problem for problem in problems), problems


def test_a_car_is_a_thing_and_no_french_because(mem: Engram) -> None:
    """Read as a conjunction, it left "no longer has" to stand against whatever else somebody has."""
    with mem:
        mem.add("The user no longer has a car")
        told = mem.learn("The user has three sisters", source="human")
        assert told.outcome == "CREATED", told.reason


def test_a_budget_that_holds_no_chunk_is_told(mem: Engram) -> None:
    with mem:
        task = mem.start_task("Read").id
        mem.record_long_input(
            task, "# Terms\n\nThe Client shall pay every invoice within 30 days of receipt.\n", title="t.md"
        )
        with pytest.raises(InvalidInput, match="never cut"):
            mem.build_long_input_context(task, "when must invoices be paid", max_tokens=10)


def test_a_completed_task_is_not_said_to_be_resumable(mem: Engram) -> None:
    with mem:
        task = mem.start_task("Ship it").id
        assert mem.tasks.idle_since(task).total_seconds() >= 0
        mem.complete_task(task)
        with pytest.raises(InvalidInput, match="start another"):
            mem.record_event(task, "user", "one more thing")
