"""Tasks and jobs at their edges: hostile ids, words that are purged, the order of a cut list."""

from dataclasses import replace
from datetime import timedelta

import pytest

from engram.model.errors import InvalidInput, StoreCorrupt
from engram.model.records import Checkpoint, Job, Session, TaskRun
from engram.store.files.store.backend import FilesStore
from engram.store.protocol import Store
from tests.backends import Backend
from tests.clock import Clock
from tests.conformance.keeping import said


def job(clock: Clock, name: str, wait: int = 0) -> Job:
    """A job that is due so many minutes from now."""
    now = clock()
    return Job(name, "derive", now, now + timedelta(minutes=wait), {"events": [name]})


def test_a_cut_list_of_jobs_begins_with_the_oldest_whenever_they_are_due(store: Store, clock: Clock) -> None:
    store.enqueue([job(clock, "old", 60), job(clock, "middle", 30), job(clock, "new")])
    assert [one.id for one in store.list_records(Job, limit=2)] == ["old", "middle"]
    assert [one.id for one in store.list_records(Job, statuses=["waiting"], limit=1)] == ["old"]
    assert [one.id for one in store.list_records(Job)] == ["old", "middle", "new"]


def test_jobs_are_leased_by_when_they_are_due(store: Store, clock: Clock) -> None:
    store.enqueue([job(clock, "later", 2), job(clock, "sooner", 1), job(clock, "not yet", 90)])
    now = clock.forward(minutes=5)
    taken = store.lease_jobs("me", now, now + timedelta(minutes=1), limit=9)
    assert [one.id for one in taken] == ["sooner", "later"]


def test_a_dead_job_that_quotes_what_is_purged_is_blanked(backend: Backend, clock: Clock) -> None:
    store = backend.store()
    [event] = store.append_events(
        "talk", [said("user", 'the "vault" code is nine zebra nine')], lambda e: [job(clock, e[0].id)]
    )
    [leased] = store.lease_jobs("me", clock.forward(seconds=1), clock())
    store.settle_job(leased, replace(leased, status="dead", error=f"cannot read {event.content!r}: {event.content}"))
    purged = store.purge([event.id], actor="test")
    assert purged.remaining == () and "nine zebra nine" not in backend.everything()
    [dead] = store.list_records(Job, statuses=["dead"])
    assert dead.error.startswith("cannot read") and dead.payload == {"events": [event.id]}


@pytest.mark.parametrize("task_id", ["../../outside", "a/b", "", ".hidden", "a\nb", "x" * 200])
def test_no_id_of_a_task_reaches_a_file_outside(backend: Backend, clock: Clock, task_id: str) -> None:
    store = backend.store()
    if not isinstance(store, FilesStore):
        assert store.list_records(Checkpoint, of=task_id) == [] and store.load_record(TaskRun, task_id) is None
        return
    before = sorted(path for path in store.context.home.root.parent.rglob("*") if "cache" not in path.parts)
    now = clock()
    with pytest.raises(InvalidInput, match="id of a task"):
        store.save_record(TaskRun(task_id, "goal", "global", now, now))
    with pytest.raises(InvalidInput, match="id of a task"):
        store.add_checkpoint(task_id, lambda number: Checkpoint("CKP-1", task_id, number, now, "text"))
    assert store.list_records(Checkpoint, of=task_id) == [] and store.load_record(TaskRun, task_id) is None
    assert sorted(path for path in store.context.home.root.parent.rglob("*") if "cache" not in path.parts) == before


def test_a_line_that_is_no_checkpoint_is_named_with_its_file(backend: Backend, clock: Clock) -> None:
    store = backend.store()
    now = clock()
    store.save_record(TaskRun("TASK-1", "goal", "global", now, now))
    store.add_checkpoint("TASK-1", lambda number: Checkpoint("CKP-1", "TASK-1", number, now, "text"))
    if isinstance(store, FilesStore):
        path = store.context.home.tasks / "TASK-1.checkpoints.jsonl"
        path.write_bytes(b"no json\n" + path.read_bytes())
        with pytest.raises(StoreCorrupt, match=r"TASK-1\.checkpoints\.jsonl: not a checkpoint"):
            store.list_records(Checkpoint, of="TASK-1")
    else:
        assert [point.number for point in store.list_records(Checkpoint, of="TASK-1")] == [1]


def test_a_session_with_a_rolling_summary_is_kept_as_it_was(store: Store, clock: Clock) -> None:
    given = Session("S-1", "talk", ("global",), clock(), None, "They spoke.", 4, "session_compact", "rules")
    store.save_record(given)
    assert store.load_record(Session, "S-1") == given and store.list_records(Session) == [given]
    further = replace(given, summary="They spoke on.", summary_through=9, summary_by="a model")
    store.save_record(further)
    assert store.load_record(Session, "S-1") == further
