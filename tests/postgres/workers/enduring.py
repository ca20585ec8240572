"""Writers that go on whatever happens to the server, and say of each write what they were told of it.

Every write is an attempt with a key of its own, under which its trace can be found in the tables afterwards (see `endured`).
"""

import itertools
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import date, timedelta
from functools import cache, partial
from typing import Any

from engram import Engram
from engram.model.errors import NotFound, StoreError
from engram.model.memory import Memory
from engram.model.records import Event, Job, Session, TaskRun
from engram.store.defaults import utc_now
from engram.store.postgres.database import Database
from engram.store.protocol import Store
from engram.store.states import StoreSpend
from tests.faults.workers.operations import sentence
from tests.postgres.workers.parts import PLACES, Turn

DONE, REFUSED, UNKNOWN = "done", "refused", "unknown"
"""What a writer is told: written; not written; or, the server having been away for long, that it cannot be said."""
NOT_SAID = "whether it was written"
FIRST_DAY = date(2000, 1, 1)
LEASE = timedelta(hours=1)
PAUSE = 0.02
"""Seconds after a refusal: nobody gains from asking a server that is away as fast as it can refuse."""


def shared_memories(mem: Engram) -> list[str]:
    """Some memories that all writers rate."""
    return [mem.add(f"Everyone rates {sentence(10**9 + n)}").id for n in range(4)]


def enduring(turn: Turn) -> None:
    """Write until asked to stop; every kind of write in turn."""
    _watch_lookups()
    _mine.tell = turn.tell
    for i in itertools.count():
        if turn.stopped():
            return
        WRITES[i % len(WRITES)](turn, i)


def _attempt(turn: Turn, verb: str, key: str, write: Callable[[], Any]) -> Any:
    """Carry a write out; what it answered, or None if that was an error."""
    began = time.monotonic()
    turn.tell({"attempt": key, "verb": verb, "at": began})
    try:
        answer = write()
    except (StoreError, NotFound) as error:
        # Not found is what an earlier write was about, where a standby that lagged has taken over.
        told = UNKNOWN if NOT_SAID in str(error) else REFUSED
        turn.tell({"key": key, "told": told, "why": f"{type(error).__name__}: {error}", "at": time.monotonic()})
        time.sleep(PAUSE)
        return None
    turn.tell({"key": key, "told": DONE, "began": began, "at": time.monotonic(), **_ids(answer)})
    return answer


def _ids(answer: Any) -> dict[str, Any]:
    """The ids an answer gave out."""
    made = answer if isinstance(answer, list) else [getattr(answer, "memory", answer)]
    return {"ids": [one.id for one in made if isinstance(one, Memory | Event | TaskRun)]}


def _learn(turn: Turn, i: int) -> None:
    text = turn.text(i)
    _attempt(turn, "learn", text, lambda: turn.mem.learn(text, scope=PLACES[i % 2]))


def _add_batch(turn: Turn, i: int) -> None:
    text = turn.text(i)
    items = [{"statement": f"{text} part {j}", "scope": PLACES[j % 2]} for j in range(4)]
    _attempt(turn, "add_batch", text, lambda: turn.mem.add_batch(items))


def _observe(turn: Turn, i: int) -> None:
    text = turn.text(i)
    _attempt(turn, "observe", text, lambda: turn.mem.observe(f"talk-{turn.who % 3}", "user", text))


def _feedback(turn: Turn, i: int) -> None:
    shared = turn.request["shared"]
    key = f"F-{turn.who}-{i}"
    turn.tell({"rates": shared[i % len(shared)]})
    _attempt(turn, "feedback", key, lambda: _done(turn.mem.feedback(shared[i % len(shared)], "positive", session=key)))


def _session(turn: Turn, i: int) -> None:
    store, key = turn.mem.store, f"S-{turn.who}-{i}"
    begun = Session(key, turn.text(i), (PLACES[i % 2],), utc_now())
    if _attempt(turn, "save_session", f"{key}/begin", lambda: _saved(store, begun)) is not None:
        ended = replace(begun, ended=utc_now(), summary="ended")
        _attempt(turn, "save_session", f"{key}/end", lambda: store.save_record(ended))


def _task(turn: Turn, i: int) -> None:
    mem, text = turn.mem, turn.text(i)
    task = _attempt(turn, "start_task", text, lambda: mem.start_task(text))
    if task is None:
        return
    for n in range(2):
        key = f"{task.id}/{n}"
        _attempt(turn, "checkpoint", key, partial(_checkpoint, mem, task.id, key))
    _attempt(turn, "change_task", f"{task.id}/end", lambda: _done(mem.complete_task(task.id, "done")))


def _done(_: object) -> None:
    """What was answered says nothing that is told."""


def _checkpoint(mem: Engram, task: str, key: str) -> None:
    mem.create_checkpoint(task, key)


def _saved(store: Store, session: Session) -> Session:
    store.save_record(session)
    return session


def _enqueued(store: Store, job: Job) -> Job:
    store.enqueue([job])
    return job


def _job(turn: Turn, i: int) -> None:
    store, key, now = turn.mem.store, f"J-{turn.who}-{i}", utc_now()
    job = Job(key, key, now, now)
    if _attempt(turn, "enqueue", f"{key}/put", lambda: _enqueued(store, job)) is None:
        return
    taken = _attempt(turn, "lease_jobs", f"{key}/lease", lambda: store.lease_jobs(key, now, now + LEASE, kinds=(key,)))
    if taken:
        _attempt(turn, "settle_job", f"{key}/settle", lambda: store.settle_job(taken[0], None) or None)


def _spend(turn: Turn, i: int) -> None:
    day = FIRST_DAY + timedelta(days=turn.who * 50_000 + i)
    _attempt(turn, "spend_tokens", f"{day}", lambda: StoreSpend(turn.mem.store).spend_tokens(day, 1))


WRITES: tuple[Callable[[Turn, int], None], ...] = (
    _learn, _add_batch, _observe, _feedback, _session, _task, _job, _spend,
)  # fmt: skip


_mine = threading.local()


@cache
def _watch_lookups() -> None:
    """From now on, each thread's lookups of a commit whose answer was lost are told."""
    look_up = Database._was_committed

    def watched(self: Database, *given: Any) -> bool:
        committed = look_up(self, *given)
        if tell := getattr(_mine, "tell", None):
            tell({"looked_up": committed})
        return committed

    Database._was_committed = watched  # type: ignore[method-assign,assignment]
