"""A store with something of everything in it, on either backend, and the two ends of a move."""

import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from engram import Engram
from engram.model.memory import Activation
from engram.store.ends import End
from engram.store.opening import Server as Place
from tests.backends import Backend, OnFiles, OnPostgres
from tests.clock import Clock
from tests.conformance.keeping import Keep
from tests.postgres.server import Server

DIRECTIONS = ["files to postgres", "postgres to files", "postgres to postgres", "files to files"]


@dataclass(frozen=True, slots=True)
class Stand:
    """One end of a move, and the store a test opens there."""

    end: End
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
                made.append(Stand(End(directory=folder / "home"), OnFiles(clock, folder)))
            else:
                url = request.getfixturevalue("shared_database")
                tenant = f"{request.getfixturevalue('tenant')}-{number}"
                server: Server = request.getfixturevalue("postgres_server")
                made.append(Stand(End(server=Place(url, tenant)), OnPostgres(clock, url, tenant, server)))
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
    mem.update(snow.id, scope="project:acme")
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
    mem.upkeep.pause()
    return {"port": port.id, "snow": snow.id, "gone": gone.id, "odd": odd.id}


@pytest.fixture(params=DIRECTIONS)
def ends(request: pytest.FixtureRequest, stands: Stands, clock: Clock) -> tuple[Stand, Stand]:
    """A filled source and an empty target, in every direction."""
    here, there = (stands(kind) for kind in request.param.split(" to "))
    fill(here, clock)
    return here, there


def environment_of(folder: Path) -> dict[str, str]:
    """What a process of its own needs to see the same places."""
    return {**os.environ, "ENGRAM_HOME": str(folder / "usual"), "ENGRAM_CACHE": str(folder / "cache")}


def seen(mem: Engram) -> dict[str, Any]:
    """What a user sees of a store."""
    store = mem.store
    memories = {memory.id: memory for memory in mem.list(limit=None, status="any")}
    return {
        "memories": {i: memory.but(activation=Activation()) for i, memory in memories.items()},
        "strengths": {i: (m.activation.frequency, m.activation.storage_strength) for i, m in memories.items()},
        "histories": {
            i: [(s.at, s.op, s.actor, s.reason, s.memory and s.memory.statement, s.ids) for s in store.history(i)]
            for i in memories
        },
        "sessions": store.sessions(),
        "events": {name: store.events(name) for name in [s.id for s in store.sessions()] + ["a name of its own"]},
        "uses": [(u.kind, u.ids, u.at, u.session, u.signal) for u in store.uses_of(sorted(memories))],
        "verdicts": store.verdicts(Clock()() - timedelta(days=3650)),
        "paused": store.paused,
        "ledgers": store.verify_ledgers(),
        "found": [hit.id for hit in mem.search("port of the api", kinds=("memory", "event"), status="any")],
    }
