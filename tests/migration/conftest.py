"""A store with something of everything in it, on either backend, and the two ends of a move."""

import hashlib
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from engram import Engram
from engram.graph.graph import walk
from engram.model.memory import Activation, Association
from engram.model.records import FINISHED_STATES, TASK_STATES, Checkpoint, Event, Job, Session, TaskRun
from engram.store.defaults import Server as Place
from engram.store.migration.transfer import Endpoint
from engram.store.protocol import Filters, Hops, Store
from engram.store.states import is_paused
from tests.backends import Backend, OnFiles, OnPostgres
from tests.clock import Clock
from tests.conformance.keeping import ANY, Keep, said
from tests.migration.copies import copy
from tests.postgres.server import Server

ROLLING = "S-20260410-090000-rolling"
DIRECTIONS = ["files to postgres", "postgres to files", "postgres to postgres", "files to files"]


@dataclass(frozen=True, slots=True)
class Stand:
    """One end of a move, and the store a test opens there."""

    end: Endpoint
    backend: Backend

    def bytes(self) -> dict[str, str]:
        """All that lies there: what is unchanged has the same."""
        if self.end.directory is None:
            return {"rows": "\n".join(sorted(self.backend.everything().splitlines()))}
        return {
            str(
                path.relative_to(self.end.directory)
            ): f"{path.stat().st_mtime_ns} {hashlib.sha256(path.read_bytes()).hexdigest()}"
            for path in sorted(self.end.directory.rglob("*"))
            if path.is_file()
        }


Stands = Callable[[str], Stand]
Filled = Callable[..., tuple[Stand, dict[str, str]]]
Fill = Callable[[Stand, Clock], dict[str, str]]


@dataclass(frozen=True, slots=True)
class Original:
    """A store that is only copied from: where it is, its ids by what they are, and the time it was then."""

    end: Endpoint
    ids: dict[str, str]
    now: datetime


Originals = Callable[[str, Fill], Original]


@pytest.fixture(scope="session")
def originals(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Originals]:
    """Fills a store of a kind in a way, once for all tests of this worker."""
    made: dict[tuple[str, Fill], Original] = {}
    with ExitStack() as opened:

        def original(kind: str, filling: Fill) -> Original:
            if (kind, filling) not in made:
                clock, end = Clock(), Endpoint(directory=tmp_path_factory.mktemp("original") / "home")
                backend: Backend
                if kind == "postgres":
                    place = Place(request.getfixturevalue("shared_database"), f"original-{secrets.token_hex(6)}")
                    end = Endpoint(server=place)
                    server: Server = request.getfixturevalue("postgres_server")
                    backend = OnPostgres(clock, place.url, place.tenant, server)
                else:
                    assert end.directory is not None
                    backend = OnFiles(clock, end.directory.parent)
                opened.callback(backend.close)
                ids = filling(Stand(end, backend), clock)
                backend.close()
                made[kind, filling] = Original(end, ids, clock())
            return made[kind, filling]

        yield original


@pytest.fixture
def filled(request: pytest.FixtureRequest, originals: Originals, stands: Stands, clock: Clock) -> Filled:
    """Makes a source that holds something of everything, or what a way of filling puts there; ids by what they are."""

    def copied(kind: str, filling: Fill = fill) -> tuple[Stand, dict[str, str]]:
        stand, original = stands(kind), originals(kind, filling)
        copy(original.end, stand.end, request.getfixturevalue("postgres_server") if kind == "postgres" else None)
        clock.now = original.now
        return stand, dict(original.ids)

    return copied


@pytest.fixture
def stands(
    request: pytest.FixtureRequest, tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Stands]:
    """Makes an empty end: "files" or "postgres", a new one each time."""
    monkeypatch.setenv("ENGRAM_HOME", str(tmp_path / "usual"))
    monkeypatch.setenv("ENGRAM_CACHE", str(tmp_path / "cache"))
    with ExitStack() as opened:
        made: list[Stand] = []

        def stand(kind: str) -> Stand:
            number = len(made)
            if kind == "files":
                folder = tmp_path / f"files-{number}"
                folder.mkdir()
                (folder / "cache").symlink_to(tmp_path / "cache")
                made.append(Stand(Endpoint(directory=folder / "home"), OnFiles(clock, folder)))
            else:
                url = request.getfixturevalue("shared_database")
                tenant = f"{request.getfixturevalue('tenant')}-{number}"
                server: Server = request.getfixturevalue("postgres_server")
                made.append(Stand(Endpoint(server=Place(url, tenant)), OnPostgres(clock, url, tenant, server)))
            opened.callback(made[-1].backend.close)
            return made[-1]

        (tmp_path / "cache").mkdir()
        yield stand


def fill(stand: Stand, clock: Clock) -> dict[str, str]:
    """Everything a store can hold. Returns ids by what they are here."""
    mem, keep = stand.backend.client(), Keep(stand.backend.store(), clock)
    port = mem.add(
        "The api listens on port 8080", scope="project:acme", metadata={"k": [1, 2.5, None, "ü"]}, tags=["net"]
    )
    snow = mem.add("Snow ☃ falls on the staging server", rationale="measured", aliases=["snow"])
    gone = mem.add("The launch code of the old rocket was never changed")
    odd = keep("A record with keys nobody knows", extra={"zz": {"deep": [1, {"er": None}]}, "metadata": {"own": True}})
    keep.many([{"statement": f"Fact number {n} about the harbour", "scope": "user"} for n in range(8)])
    clock.forward(hours=1)
    mem.update(port.id, rationale="it always did", reason="asked why")
    mem.update(snow.id, new_scope="project:acme")
    with mem.session("change the port of the api", scope="project:acme") as session:
        session.observe("user", "The port is taken", key="first")
        session.observe("agent", "Then let us take another", metadata={"tries": 2})
        session.feedback(port.id, "positive")
    clock.forward(days=40)
    mem.observe_batch("a name of its own", [{"role": "user", "content": "The rocket has a launch code of its own"}])
    mem.recall("which port has the api")
    mem.forget(gone.id, purge=True)
    mem.forget(snow.id)
    mem.learn("Run the linter before every commit because the gate is strict", autonomous=True)
    mem.recall("keys nobody knows", session="never ended")
    fill_versions(keep)
    fill_tasks(stand.backend.store(), clock)
    mem.upkeep.pause()
    return {"port": port.id, "snow": snow.id, "gone": gone.id, "odd": odd.id}


def fill_versions(keep: Keep) -> None:
    """A fact with two versions, one of them critical, in a graph of three memories."""
    versions = {"lineage": "LIN-deploy", "conflict_key": "deploy-day"}
    old = keep("The deploy is on Mondays", **versions, status="superseded")
    reason = keep("Nobody is here on Mondays", associations=(Association(old.id, "causal", 0.5, 0.25),))
    new = keep("The deploy is on Tuesdays", **versions, revision=2, supersedes=(old.id,), critical_slot="deploy")
    keep.again(old, superseded_by=new.id, associations=(Association(reason.id, "supports"),))


def fill_tasks(store: Store, clock: Clock) -> None:
    """A run in every state, a ledger and checkpoints of one, jobs of every kind, a session with a rolling summary."""
    now = clock()
    for state in TASK_STATES:
        begin_and_end(store, state, now)
    for words in ("half way", "nearly there"):
        told: dict[str, Any] = {"completed_steps": ("one",), "decisions": ("a", "b"), "data": {"k": None}}
        store.add_checkpoint("TASK-running", partial(checkpoint, now=now, summary=words, **told))
    first, *_ = store.lease_jobs("a worker", now, now + timedelta(minutes=5), limit=2)
    store.settle_job(first, replace(first, status="dead", leased_until=None, error="gave up"))
    store.save_record(
        Session(ROLLING, "", ("global",), now, None, "They spoke of snow.", 2, "session_compact", "rules")
    )
    store.append_events(ROLLING, [said("user", "snow"), said("agent", "yes, snow")])
    store.change_state(f"buffer/{ROLLING}", lambda _: {"turns": [1, 2], "oldest": "2026-03-01T09:00:00Z"})
    store.change_state("harvest/Ünïcode/ÜNÏCODE", lambda _: {"sizes": {"/a/b ☃.jsonl": 3}, "half": 0.5, "none": None})


def begin_and_end(store: Store, state: str, now: datetime) -> None:
    """A run with one event and its job, brought to a state."""
    told: dict[str, Any] = {"session": "S-1", "metadata": {"n": [1]}}
    task = TaskRun(f"TASK-{state}", f"Be {state} ☃", "project:acme", now, now, **told)
    store.save_record(task)
    store.append_events(task.id, [said("user", f"begin to be {state}", key="k1")], lambda made: [derived(made, now)])
    ended = now if state in FINISHED_STATES else None
    store.change_task(task.id, lambda held: replace(held, status=state, ended=ended, outcome="so"))


def checkpoint(number: int, now: datetime, **fields: Any) -> Checkpoint:
    """A checkpoint of the task that runs."""
    return Checkpoint(f"CKP-{number}", "TASK-running", number, now, through=number, **fields)


def derived(made: Sequence[Event], now: datetime) -> Job:
    """The job that follows on events."""
    return Job(f"derive:{made[0].session}", "derive", now, now, {"ledger": made[0].session, "events": [made[0].id]})


@pytest.fixture(params=DIRECTIONS)
def ends(request: pytest.FixtureRequest, stands: Stands, filled: Filled) -> tuple[Stand, Stand]:
    """A filled source and an empty target, in every direction."""
    here, there = request.param.split(" to ")
    return filled(here)[0], stands(there)


def environment_of(folder: Path) -> dict[str, str]:
    """What a process of its own needs to see the same places."""
    return {"ENGRAM_HOME": str(folder / "usual"), "ENGRAM_CACHE": str(folder / "cache")}


def ledgers(store: Store) -> list[str]:
    """The names of all of them."""
    return [
        *(s.id for s in store.list_records(Session)),
        *(task.id for task in store.list_records(TaskRun)),
        "a name of its own",
    ]


def seen(mem: Engram) -> dict[str, Any]:
    """What a user sees of a store."""
    store = mem.store
    tasks = store.list_records(TaskRun)
    memories = {memory.id: memory for memory in mem.list(limit=None, status="any")}
    return {
        "memories": {i: memory.replace(activation=Activation()) for i, memory in memories.items()},
        "strengths": {i: (m.activation.frequency, m.activation.storage_strength) for i, m in memories.items()},
        "histories": {
            i: [(s.at, s.op, s.actor, s.reason, s.memory and s.memory.statement, s.ids) for s in store.history(i)]
            for i in memories
        },
        "sessions": store.list_records(Session),
        "events": {name: store.events(name) for name in ledgers(store)},
        "tasks": tasks,
        "checkpoints": {task.id: store.list_records(Checkpoint, of=task.id) for task in tasks},
        "jobs": store.list_records(Job),
        "states": {name: store.state(name) for name in store.states("")},
        "versions": store.lineage("LIN-deploy"),
        "in force": store.heads("deploy-day", "global"),
        "critical": store.listing(Filters(critical=True)),
        "walked": walk(store, sorted(memories), Hops(Clock()(), "any", filters=ANY), 3, 20),
        "uses": [(u.kind, u.ids, u.at, u.session, u.signal) for u in store.uses(sorted(memories))],
        "verdicts": store.verdicts(Clock()() - timedelta(days=3650)),
        "paused": is_paused(store),
        "ledgers": store.verify_ledgers(),
        "found": [hit.id for hit in mem.search("port of the api", kinds=("memory", "event"), status="any")],
    }
