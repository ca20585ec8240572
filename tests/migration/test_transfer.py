"""A whole store, moved in every direction: what arrives, what stays as it was, what is refused."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from engram import Engram
from engram.embedding.static import StaticEmbedder
from engram.model.errors import InvalidInput, NotFound, Refused, StoreBusy, StoreError
from engram.model.records import Checkpoint, Job, Session, TaskRun, Use
from engram.store.defaults import Server as Place
from engram.store.home import open_home
from engram.store.migration import records
from engram.store.migration.postgres import PostgresTarget
from engram.store.migration.transfer import Endpoint, plan, transfer
from engram.store.postgres.setup import open_store
from engram.store.protocol import Store
from tests.backends import static_embedder
from tests.clock import Clock
from tests.conformance.keeping import Keep
from tests.migration.conftest import ROLLING, Filled, Stand, Stands, checkpoint, fill_tasks, seen
from tests.repositories import make_repository

Ends = tuple[Stand, Stand]
PATIENCE = 120.0


def test_everything_arrives_and_the_source_stays_as_it_was(ends: Ends) -> None:
    here, there = ends
    expected, before = seen(here.backend.client()), here.bytes()
    done = transfer(here.end, there.end)
    assert done.differences == []
    assert here.bytes() == before
    assert seen(there.backend.client()) == expected
    assert (done.counts.memories, done.counts.events, done.counts.tombstones) == (len(expected["memories"]), 11, 1)
    assert (len(expected["tasks"]), len(expected["checkpoints"]["TASK-running"]), len(expected["versions"])) == (
        6,
        2,
        2,
    )
    assert {job.status for job in expected["jobs"]} == {"waiting", "leased", "dead"} and expected["walked"]
    assert list(expected["states"]) == [f"buffer/{ROLLING}", "harvest/Ünïcode/ÜNÏCODE"]
    assert all(asdict(done.counts).values())


@pytest.mark.parametrize(("source", "target"), [("files", "postgres"), ("postgres", "files")])
def test_captured_turns_that_wait_are_read_at_the_target(stands: Stands, source: str, target: str) -> None:
    here, there = stands(source), stands(target)
    mem = here.backend.client()
    mem.observe("chat", "user", "hello")
    mem.capture("chat", "user", "My sister lives in Oslo.")
    mem.store.close()
    assert transfer(here.end, there.end).differences == []
    mem = there.backend.client()
    mem.capture("chat", "user", "What about it?")
    [read] = mem.flush_captures()
    assert read.waiting == 0 and ["Oslo" in memory.statement for memory in read.memories] == [True]
    assert mem.store.verify_ledgers() == []


def test_slices_of_any_size_bring_the_same(ends: Ends, monkeypatch: pytest.MonkeyPatch) -> None:
    here, there = ends
    monkeypatch.setattr(records, "ROWS_PER_BATCH", 2)
    assert transfer(here.end, there.end).differences == []


def test_uses_are_folded_in_once_and_none_is_lost(ends: Ends) -> None:
    here, there = ends
    transfer(here.end, there.end)
    source, target = here.backend.client(), there.backend.client()
    source.upkeep.resume()
    target.upkeep.resume()
    assert sorted(target.upkeep.fold()) == sorted(source.upkeep.fold())
    for mem in (source, target):
        mem.recall("which port has the api")
        mem.upkeep.fold()
        assert mem.upkeep.fold() == []
    assert seen(target)["strengths"] == seen(source)["strengths"]


def test_an_undone_decision_does_not_count_its_uses_again(stands: Stands, filled: Filled) -> None:
    (here, ids), there = filled("postgres"), stands("files")
    known = ids["port"]
    transfer(here.end, there.end)
    target = there.backend.client()
    target.update(known, rationale="changed after the move")
    target.undo(known)
    target.upkeep.fold()
    assert target.get(known).feedback.positive == 1


def test_the_moved_store_goes_on(ends: Ends, clock: Clock) -> None:
    here, there = ends
    transfer(here.end, there.end)
    source, target = here.backend.client(), there.backend.client()
    newest = max(memory.id for memory in source.list(limit=None, status="any"))
    clock.now = source.get(newest).created or clock.now
    made = target.add("Something new after the move")
    assert made.id not in {memory.id for memory in source.list(limit=None, status="any")}
    assert made.id > newest
    target.observe_batch("a name of its own", [{"role": "agent", "content": "Said after the move"}])
    assert [event.seq for event in target.store.events("a name of its own")] == [1, 2]
    assert target.store.verify_ledgers() == []
    assert [step.op for step in target.history(made.id)] == ["add"]
    assert target.doctor().ok is True


def test_memories_written_at_the_same_moment_are_listed_in_their_order(stands: Stands) -> None:
    here, there = stands("postgres"), stands("postgres")
    source = here.backend.client()
    source.add_batch([{"statement": f"Fact number {number} about the harbour"} for number in range(20)])
    assert transfer(here.end, there.end).differences == []
    order = [memory.id for memory in source.list(limit=None)]
    assert [memory.id for memory in there.backend.client().list(limit=None)] == order


def test_what_was_purged_does_not_come_back(stands: Stands, filled: Filled) -> None:
    (here, ids), there = filled("files"), stands("postgres")
    gone = ids["gone"]
    transfer(here.end, there.end)
    assert "launch code of the old rocket" not in there.backend.everything()
    store = there.backend.store()
    with pytest.raises(NotFound, match="purged"), store.deciding("add", actor="test") as deciding:
        memory = here.backend.client().list(limit=1)[0]
        deciding.put(memory.replace(id=gone))


def test_a_memory_of_a_team_stays_with_the_team(stands: Stands, tmp_path: Path, clock: Clock) -> None:
    here, there = stands("files"), stands("postgres")
    mem = here.backend.client()
    mem.add("The owner's own word")
    make_repository(tmp_path / "repo")
    with Engram.open(here.end.directory, cache=tmp_path / "cache", directory=tmp_path / "repo", clock=clock) as team:
        team.add("What the whole team knows", team=True)
    done = transfer(here.end, there.end)
    assert done.differences == []
    assert [memory.statement for memory in there.backend.client().list()] == ["The owner's own word"]


# -- vectors


class Counting:
    """Counts the texts it is asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self._made_by: StaticEmbedder = static_embedder()
        self.name, self.dim = self._made_by.name, self._made_by.dim

    def embed(self, texts: Sequence[str]) -> Any:
        """As the bundled one does."""
        self.asked += texts
        return self._made_by.embed(texts)


@pytest.mark.parametrize("kinds", [("files", "postgres"), ("postgres", "files"), ("postgres", "postgres")])
def test_vectors_of_the_same_embedder_come_along(
    kinds: tuple[str, str], stands: Stands, filled: Filled, monkeypatch: pytest.MonkeyPatch
) -> None:
    (here, _), there = filled(kinds[0]), stands(kinds[1])
    counting = Counting()
    monkeypatch.setattr("engram.embedding.load_embedder", lambda _: counting)
    assert transfer(here.end, there.end).differences == []
    assert counting.asked == []
    monkeypatch.undo()
    source, target = here.backend.store(), there.backend.store()
    for memory in here.backend.client().list(limit=None, status="any"):
        (left,), (right,) = (store.numbers([memory.id]).values() for store in (source, target))
        one, other = source.vectors([left]), target.vectors([right])
        assert one is not None and other is not None and (one == other).all()


def test_vectors_of_another_embedder_are_made_anew(stands: Stands, monkeypatch: pytest.MonkeyPatch) -> None:
    here, there = stands("files"), stands("postgres")
    here.backend.client().add("The harbour closes at nine")
    counting = Counting()
    counting.name = "another-256-v1"
    monkeypatch.setattr("engram.embedding.load_embedder", lambda _: counting)
    assert transfer(here.end, there.end).differences == []
    assert counting.asked == ["The harbour closes at nine"]


# -- what is refused


@pytest.mark.parametrize("kind", ["files", "postgres"])
def test_a_target_that_holds_anything_is_refused(kind: str, stands: Stands) -> None:
    here, there = stands("files"), stands(kind)
    here.backend.client().add("The harbour closes at nine")
    there.backend.client().add("Somebody else's word")
    before = there.bytes()
    for attempt in (plan, transfer):
        with pytest.raises(Refused, match="not empty"):
            attempt(here.end, there.end)
    assert there.bytes() == before


def test_a_directory_with_files_of_others_is_refused(stands: Stands, tmp_path: Path) -> None:
    here = stands("files")
    here.backend.client().add("The harbour closes at nine")
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "notes.md").write_text("mine")
    with pytest.raises(Refused, match=r"not empty \(notes\.md\)"):
        transfer(here.end, Endpoint(directory=tmp_path / "theirs"))


def test_an_empty_store_is_taken_and_keeps_its_settings(stands: Stands) -> None:
    here, there = stands("postgres"), stands("files")
    here.backend.client().add("The harbour closes at nine")
    there.backend.client()
    there.backend.close()
    assert there.end.directory is not None
    (there.end.directory / "config.toml").write_text("budget = 777\n")
    assert transfer(here.end, there.end).differences == []
    assert there.backend.client().settings.budget == 777


@pytest.mark.parametrize("kind", ["files", "postgres"])
def test_a_target_begun_from_another_store_is_refused(
    kind: str, stands: Stands, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, other, there = stands("files"), stands("files"), stands(kind)
    for stand in (here, other):
        stand.backend.client().add("The harbour closes at nine")
    with monkeypatch.context() as broken:
        broken.setattr(
            "engram.store.migration.transfer._load_journal", lambda *_: (_ for _ in ()).throw(StoreError("broken off"))
        )
        with pytest.raises(StoreError, match="broken off"):
            transfer(here.end, there.end)
    with pytest.raises(Refused, match=r"--to-tenant|another directory"):
        transfer(other.end, there.end)
    assert transfer(here.end, there.end).differences == []


def test_a_store_is_not_moved_onto_itself(stands: Stands) -> None:
    here = stands("files")
    here.backend.client()
    with pytest.raises(InvalidInput, match="source and target are both"):
        transfer(here.end, here.end)


def test_what_a_person_changed_is_taken_in_before_it_is_moved(stands: Stands) -> None:
    here, there = stands("files"), stands("postgres")
    memory = here.backend.client().add("The harbour closes at nine")
    path = Path(here.backend.client().store.file_of(memory.id))
    path.write_text(path.read_text().replace("nine", "ten"))
    before = here.bytes()
    with pytest.raises(StoreError, match=r"engram sync --home"):
        transfer(here.end, there.end)
    assert here.bytes() == before
    here.backend.client().upkeep.sync()
    assert transfer(here.end, there.end).differences == []
    assert there.backend.client().get(memory.id).statement == "The harbour closes at ten"


@pytest.mark.parametrize("change", ["removed", "added", "shortened"])
def test_every_kind_of_change_by_hand_is_seen_without_an_index(change: str, stands: Stands, tmp_path: Path) -> None:
    here, there = stands("files"), stands("postgres")
    memory = here.backend.client().add("The harbour closes at nine")
    path = Path(here.backend.client().store.file_of(memory.id))
    here.backend.close()
    for index in (tmp_path / "cache").rglob("index.db*"):
        index.unlink()
    if change == "removed":
        path.unlink()
    elif change == "added":
        path.with_name("ENG-2026-0301-900.yaml").write_text(path.read_text().replace(memory.id, "ENG-2026-0301-900"))
    else:
        path.write_text("[]\n")
    with pytest.raises(StoreError, match="hand edits"):
        plan(here.end, there.end)


def test_a_file_nobody_can_read_is_named_and_its_last_good_version_moved(stands: Stands) -> None:
    here, there = stands("files"), stands("postgres")
    memory = here.backend.client().add("The harbour closes at nine")
    Path(here.backend.client().store.file_of(memory.id)).write_text("- id: [unclosed\n")
    done = transfer(here.end, there.end)
    assert [note for note in done.notes if "not migrated" in note and memory.id in note]
    assert there.backend.client().get(memory.id).statement == "The harbour closes at nine"


def test_a_text_the_server_cannot_hold_is_named_and_nothing_of_its_slice_arrives(stands: Stands, clock: Clock) -> None:
    here, there = stands("files"), stands("postgres")
    here.backend.client().add("The harbour closes at nine")
    fields = {"seq": 2, "at": "2026-03-01T10:00:00Z", "op": "add", "actor": "test", "changes": []}
    after = {"id": "ENG-2026-0301-077", "version": 2, "status": "active", "type": "factual", "scope": "global"}
    fields["changes"] = [{"id": after["id"], "after": {**after, "statement": "zebra\x00stripes"}}]
    assert here.end.directory is not None
    (journal,) = (here.end.directory / "journal").glob("*.jsonl")
    journal.write_text(journal.read_text() + json.dumps(fields) + "\n")
    with pytest.raises(InvalidInput, match=r"ENG-2026-0301-077.*--purge"):
        transfer(here.end, there.end)
    assert there.backend.client().list(status="any") == []


# -- while others write


@pytest.mark.parametrize("kind", ["files", "postgres"])
def test_what_is_written_to_the_source_meanwhile_is_carried_over(kind: str, stands: Stands, filled: Filled) -> None:
    (here, ids), there = filled(kind), stands("postgres")
    known = ids["port"]
    mem = here.backend.client()
    mem.upkeep.resume()
    written: list[str] = []

    def meanwhile(what: str, *_: int) -> None:
        if what == "images" and not written:
            written.append(mem.add("Written while the store was being moved").id)
            mem.update(known, rationale="changed while the store was being moved")
            mem.recall("which port has the api")
            mem.observe_batch("a name of its own", [{"role": "agent", "content": "Said while it was being moved"}])

    done = transfer(here.end, there.end, meanwhile)
    assert done.differences == []
    assert there.backend.client().get(written[0]).statement == "Written while the store was being moved"
    assert seen(there.backend.client()) == seen(mem)


Later = Callable[[Store, Clock], object]
LATER: dict[str, Later] = {
    "a task paused": lambda store, clock: store.change_task(
        "TASK-running", lambda held: replace(held, status="paused", updated=clock())
    ),
    "a task begun": lambda store, clock: store.save_record(TaskRun("TASK-new", "new", "global", clock(), clock())),
    "a checkpoint": lambda store, clock: store.add_checkpoint("TASK-running", lambda n: checkpoint(n, clock(), summary="so far")),
    "a job leased": lambda store, clock: store.lease_jobs("another", clock.forward(days=1), clock()),
    "a job enqueued": lambda store, clock: store.enqueue([Job("new", "derive", clock(), clock())]),
    "a summary that went on": lambda store, clock: store.save_record(Session(ROLLING, "", ("global",), clock(), None, "They spoke of rain.", 3, "session_compact", "rules")),
}  # fmt: skip


def only_tasks(stand: Stand, clock: Clock) -> dict[str, str]:
    fill_tasks(stand.backend.store(), clock)
    return {}


def tasks_and_a_memory(stand: Stand, clock: Clock) -> dict[str, str]:
    only_tasks(stand, clock)
    return {"harbour": Keep(stand.backend.store(), clock)("The harbour closes at nine").id}


@pytest.mark.parametrize("kind", ["files", "postgres"])
@pytest.mark.parametrize("later", LATER)
def test_what_only_small_records_say_meanwhile_is_carried_over(
    kind: str, later: str, stands: Stands, filled: Filled, clock: Clock
) -> None:
    (here, _), there = filled(kind, tasks_and_a_memory), stands("postgres")
    store = here.backend.store()
    once: list[object] = []

    def meanwhile(what: str, *_: int) -> None:
        if what == "images" and not once:
            once.append(LATER[later](store, clock))

    assert transfer(here.end, there.end, meanwhile).differences == [] and once
    moved = there.backend.store()
    assert (moved.list_records(TaskRun), moved.list_records(Job)) == (
        store.list_records(TaskRun),
        store.list_records(Job),
    )


@pytest.mark.parametrize("later", LATER)
def test_a_server_whose_tasks_went_on_is_used_and_nothing_of_them_is_taken_back(
    later: str, stands: Stands, filled: Filled, clock: Clock
) -> None:
    (here, _), there = filled("files", only_tasks), stands("postgres")
    transfer(here.end, there.end)
    moved = there.backend.store()
    LATER[later](moved, clock)
    before = (
        moved.list_records(TaskRun),
        moved.list_records(Job),
        moved.list_records(Checkpoint, of="TASK-running"),
        moved.list_records(Session),
    )
    apart = transfer(here.end, there.end)
    assert apart.already and apart.differences
    assert (
        moved.list_records(TaskRun),
        moved.list_records(Job),
        moved.list_records(Checkpoint, of="TASK-running"),
        moved.list_records(Session),
    ) == before


@pytest.mark.parametrize("kind", ["files", "postgres"])
@pytest.mark.parametrize("later", ["a task begun", "a job enqueued"])
def test_a_target_that_holds_only_a_task_or_a_job_is_refused(
    kind: str, later: str, stands: Stands, clock: Clock
) -> None:
    here, there = stands("files"), stands(kind)
    here.backend.client().add("The harbour closes at nine")
    store = there.backend.store()
    LATER[later](store, clock)
    before = there.bytes()
    with pytest.raises(Refused):
        transfer(here.end, there.end)
    assert there.bytes() == before and len(store.list_records(TaskRun)) + len(store.list_records(Job)) == 1


def test_a_source_written_to_without_end_is_told_and_the_next_run_goes_on(stands: Stands) -> None:
    here, there = stands("postgres"), stands("postgres")
    mem = here.backend.client()
    mem.add("The harbour closes at nine")
    count = iter(range(1000))

    def meanwhile(what: str, *_: int) -> None:
        if what == "images":
            mem.add(f"Written while the store was being moved: {next(count)}")

    with pytest.raises(StoreBusy, match="kept changing"):
        transfer(here.end, there.end, meanwhile)
    assert transfer(here.end, there.end).differences == []


def test_two_moves_to_one_tenant_do_not_mix(
    stands: Stands, filled: Filled, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, "ROWS_PER_BATCH", 2)
    (here, _), there = filled("files"), stands("postgres")
    place = there.end.server
    assert place is not None
    second = open_store(place.url, place.tenant, static_embedder(), clock=clock)
    rival = PostgresTarget(second)
    try:

        def meanwhile(what: str, *_: int) -> None:
            if what == "images":
                rival.begin(f"files {identity(here)}")
                rival.load_uses([use])

        use = Use("recalled", ("ENG-2026-0301-001",), clock(), position=1)
        with pytest.raises(StoreBusy, match="another process is migrating"):
            transfer(here.end, there.end, meanwhile)
    finally:
        second.close()


def identity(stand: Stand) -> str:
    home = open_home(stand.end.directory, create=False)
    return f"{home.store_id} {home.root}"


# -- again


def test_a_second_run_finds_it_done(ends: Ends) -> None:
    here, there = ends
    transfer(here.end, there.end)
    before = there.bytes()
    again = transfer(here.end, there.end)
    assert (again.differences, again.arrived.get("decisions", 0)) == ([], 0)
    if there.end.directory is not None:
        assert there.bytes() == before


def test_a_server_takes_what_came_later_until_it_is_used_itself(stands: Stands) -> None:
    here, there = stands("files"), stands("postgres")
    mem = here.backend.client()
    mem.add("The harbour closes at nine")
    transfer(here.end, there.end)
    later = mem.add("The lighthouse was painted red")
    done = transfer(here.end, there.end)
    assert (done.differences, done.arrived["memories"]) == ([], 1)
    there.backend.client().update(later.id, rationale="the two go separate ways now")
    mem.add("The ferry runs on Sundays only")
    apart = transfer(here.end, there.end)
    assert apart.already
    assert [one for one in apart.differences if later.id in one]


def test_a_plan_counts_and_makes_nothing(stands: Stands, filled: Filled, empty_database: str) -> None:
    (here, _), there = filled("files"), stands("files")
    for end in (there.end, Endpoint(server=Place(empty_database, "nobody"))):
        assert plan(here.end, end).memories == 15
    assert there.end.directory is not None
    assert not there.end.directory.exists()
    with pytest.raises(NotFound):
        open_store(empty_database, "nobody", None, create=False)
