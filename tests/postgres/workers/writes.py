"""Every kind of write to a store, each with what it needs to be there first and with how its trace is found again."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import Any

from engram import Engram
from engram.model.records import Checkpoint, Job, Session
from engram.store.defaults import utc_now
from engram.store.states import StoreSpend
from tests.faults.workers.operations import sentence

SPENT_ON = date(2020, 2, 2)
LATER = timedelta(days=400)


@dataclass(frozen=True, slots=True)
class Write:
    """One kind of write. `traces` counts what it has left: 0 before it, 1 after it; a half one is a fraction.

    `mark` is a piece of a statement by which the transaction is known that writes it.
    """

    mark: str
    carry_out: Callable[[Engram, Any], object]
    traces: Callable[[Engram, Any], float]
    prepare: Callable[[Engram], Any] = lambda mem: None


def _stated(*texts: str) -> Callable[[Engram, Any], float]:
    """How often each of these is there, on average."""
    return lambda mem, _: sum(memory.statement in texts for memory in mem.list(limit=None)) / len(texts)


def _kept(mem: Engram) -> str:
    return mem.add(sentence(1), name="kept").id


def _rated(mem: Engram, kept: str) -> float:
    mem.upkeep.fold()
    return mem.get(kept).feedback.positive


def _session(mem: Engram) -> Session:
    begun = Session("S-1", sentence(2), ("global",), utc_now())
    mem.store.save_record(begun)
    return begun


def _task(mem: Engram) -> str:
    return mem.start_task(sentence(3)).id


def _job(mem: Engram) -> Job:
    job = Job("J-1", "some", utc_now(), utc_now())
    mem.store.enqueue([job])
    return job


def _leased(mem: Engram) -> Job:
    _job(mem)
    return _lease(mem)[0]


def _lease(mem: Engram) -> list[Job]:
    return mem.store.lease_jobs("worker", utc_now(), utc_now() + timedelta(hours=1))


def _changed(mem: Engram) -> str:
    """A memory with an image that is in force no longer."""
    kept = _kept(mem)
    mem.update(kept, rationale="for a reason")
    return kept


def _ended(mem: Engram) -> str:
    """A session that ended, with a ledger."""
    handle = mem.session(sentence(2))
    handle.observe("user", sentence(4))
    handle.end()
    return handle.id


WRITES: dict[str, Write] = {
    "learn": Write("INTO engram.journal ", lambda mem, _: mem.learn(sentence(5)), _stated(sentence(5))),
    "add_batch": Write(
        "INTO engram.journal ",
        lambda mem, _: mem.add_batch([{"statement": sentence(n)} for n in (5, 6, 7)]),
        _stated(sentence(5), sentence(6), sentence(7)),
    ),
    "update": Write(
        "INTO engram.journal ", lambda mem, kept: mem.update(kept, statement=sentence(5)), _stated(sentence(5)), _kept
    ),
    "forget": Write(
        "INTO engram.journal ",
        lambda mem, kept: mem.forget(kept),
        lambda mem, kept: mem.get(kept).status == "retired",
        _kept,
    ),
    "observe": Write(
        "INTO engram.agent_events ",
        lambda mem, _: mem.observe("talk", "user", sentence(5)),
        lambda mem, _: len(mem.store.events("talk")),
    ),
    "feedback": Write("INTO engram.memory_uses ", lambda mem, kept: mem.feedback(kept, "positive"), _rated, _kept),
    "save_session": Write(
        "INTO engram.agent_sessions ",
        lambda mem, begun: mem.store.save_record(replace(begun, summary="all said")),
        lambda mem, begun: sum(known.summary == "all said" for known in mem.store.list_records(Session)),
        _session,
    ),
    "start_task": Write(
        "INTO engram.agent_task_runs ", lambda mem, _: mem.start_task(sentence(3)), lambda mem, _: len(mem.list_tasks())
    ),
    "change_task": Write(
        "INTO engram.agent_task_runs ",
        lambda mem, task: mem.pause_task(task),
        lambda mem, task: mem.get_task(task).status == "paused",
        _task,
    ),
    "checkpoint": Write(
        "INTO engram.agent_checkpoints ",
        lambda mem, task: mem.create_checkpoint(task, "so far"),
        lambda mem, task: len(mem.store.list_records(Checkpoint, of=task)),
        _task,
    ),
    "enqueue": Write(
        "INTO engram.memory_jobs ", lambda mem, _: _job(mem), lambda mem, _: len(mem.store.list_records(Job))
    ),
    "lease_jobs": Write(
        "UPDATE engram.memory_jobs ",
        lambda mem, _: _lease(mem),
        lambda mem, _: mem.store.list_records(Job)[0].attempts,
        _job,
    ),
    "settle_job": Write(
        "DELETE FROM engram.memory_jobs ",
        lambda mem, job: mem.store.settle_job(job, None),
        lambda mem, _: 1 - len(mem.store.list_records(Job)),
        _leased,
    ),
    "spend_tokens": Write(
        "INTO engram.model_spend ",
        lambda mem, _: StoreSpend(mem.store).spend_tokens(SPENT_ON, 1),
        lambda mem, _: StoreSpend(mem.store).tokens_spent(SPENT_ON),
    ),
    "pause": Write("INTO engram.store_facts ", lambda mem, _: mem.upkeep.pause(), lambda mem, _: mem.upkeep.paused),
    "prune": Write(
        "DELETE FROM engram.journal_images ",
        lambda mem, _: mem.store.prune(utc_now() + LATER, 30, 0, 0, dry_run=False),
        lambda mem, kept: 2 - sum(image.memory is not None for image in mem.store.history(kept)),
        _changed,
    ),
    "prune ledgers": Write(
        "DELETE FROM engram.ledger_heads ",
        lambda mem, _: mem.store.prune(utc_now() + LATER, 0, 0, 30, dry_run=False),
        lambda mem, ended: 1 - len(mem.store.ledgers()),
        _ended,
    ),
    "purge": Write(
        "INTO engram.tombstones ",
        lambda mem, kept: mem.store.purge([kept], actor="test"),
        lambda mem, _: 1 - len(mem.list(status="any")),
        _kept,
    ),
}
