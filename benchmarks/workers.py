"""Measure workers on one queue and on the queues of many tenants, and the connections of many clients.

    python -m benchmarks.workers queue       [--jobs 2000] [--milliseconds 0,20] [--workers 1,4,16]
    python -m benchmarks.workers tenants     [--tenants 64] [--large 2000] [--small 5] [--milliseconds 5] [--workers 1,4]
    python -m benchmarks.workers connections [--processes 20] [--stores 10] [--workers 8] [--seconds 20] [--down 5]

Run from a checkout: PostgreSQL and, for connections, PgBouncer are started as the tests start them, on this machine, and are gone
afterwards. `queue`: how many jobs a second so many worker processes do of one tenant's queue. `tenants`: one tenant has a
long queue before the others come with a few jobs each; how long each of those waits until its jobs are done. A job takes as
many milliseconds as asked and does nothing in them, as one that waits for a model. `connections`: processes with stores of
different tenants, a thread for each, which say something every few seconds, and workers for all tenants; how many connections the server
has at the start, under load, and after it was stopped at once and started again, and how many attempts to connect there were.
"""

import argparse
import multiprocessing
import random
import signal
import statistics
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg

from engram import AllTenantsWorker, Engram
from engram.capture import jobs
from engram.capture.buffer import CaptureBuffer
from engram.capture.conversation import Conversations
from engram.model.errors import StoreError
from engram.model.records import Job
from engram.sessions.jobs import Handler
from engram.store.postgres.setup import open_store
from engram.store.protocol import Store
from tests.faults.workers.operations import sentence
from tests.postgres.pooler import pooler
from tests.postgres.server import Lease, Server, fresh_database, ordinary_role, running_server

FORKING = multiprocessing.get_context("fork")
PATIENCE = 600.0
LONG_AGO = datetime(2026, 1, 1, tzinfo=UTC)
PACE = 3.0
"""Seconds between two statements of a client."""
POOLED = 20
"""Maximum server connections of the pooler."""


def main() -> None:
    """Run the requested measurements."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    what = parser.add_subparsers(dest="what", required=True)
    defaults: dict[str, dict[str, Any]] = {
        "queue": {"jobs": 2000, "milliseconds": "0,20", "workers": "1,4,16"},
        "tenants": {"tenants": 64, "large": 2000, "small": 5, "milliseconds": "5", "workers": "1,4"},
        "connections": {"processes": 20, "stores": 10, "workers": "8", "seconds": 20, "down": 5},
    }
    for name, options in defaults.items():
        command = what.add_parser(name)
        for option, usual in options.items():
            command.add_argument(f"--{option}", type=type(usual), default=usual)
    asked = parser.parse_args()
    {"queue": queue, "tenants": tenants, "connections": connections}[asked.what](asked)


def _numbers(given: str) -> list[int]:
    return [int(each) for each in given.split(",")]


@contextmanager
def _server() -> Iterator[Server]:
    """A server that writes through to disk, and logs every connection."""
    lease = Lease()
    durable = {"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on"}
    logging = {"log_connections": "on", "log_line_prefix": "%n%%"}
    try:
        kept = running_server(lease.folder, {**durable, **logging})
        yield Server(kept.admin_url, kept)
    finally:
        lease.end()


def _fill(url: str, jobs: dict[str, int]) -> None:
    for tenant, count in jobs.items():
        store = open_store(url, tenant, None)
        store.enqueue(
            [Job(f"derive:EVT-{n}", "derive", LONG_AGO, LONG_AGO, {"events": [], "task": ""}) for n in range(count)]
        )
        store.close()


# -- workers


@dataclass(slots=True)
class Crew:
    """Worker processes that begin together, with the reports of each and their times."""

    processes: list[Any] = field(default_factory=list)
    pipes: list[Any] = field(default_factory=list)
    go: Any = field(default_factory=FORKING.Event)
    ready: Any = None

    def begin(self) -> float:
        """Let them begin. Returns the time."""
        self.ready.wait(PATIENCE)
        started = time.monotonic()
        self.go.set()
        return started

    def told(self) -> list[tuple[str, float]]:
        """The owners and times of all jobs done, once all workers have ended."""
        done = [entry for pipe in self.pipes for entry in pipe.recv()]
        for process in self.processes:
            process.join(PATIENCE)
        return sorted(done, key=lambda entry: entry[1])


def _crew(url: str, size: int, milliseconds: int) -> Crew:
    crew = Crew(ready=FORKING.Barrier(size + 1))
    for _ in range(size):
        here, there = FORKING.Pipe(duplex=False)
        crew.pipes.append(here)
        given = (url, milliseconds, crew.ready, crew.go, there)
        crew.processes.append(FORKING.Process(target=_until_nothing_is_due, args=given, daemon=True))
        crew.processes[-1].start()
    return crew


def _until_nothing_is_due(url: str, milliseconds: int, ready: Any, go: Any, pipe: Any) -> None:
    _jobs_take(milliseconds)
    done: list[tuple[str, float]] = []
    with AllTenantsWorker.open(url, embedder="none") as worker:
        worker._turns._due()  # connected
        ready.wait(PATIENCE)
        go.wait(PATIENCE)
        while (turn := worker.next_turn()) is not None:
            if turn.worked:
                done.append((turn.tenant, time.monotonic()))
            assert not turn.failed, turn
    pipe.send(done)


def _jobs_take(milliseconds: int) -> None:
    """Make every job of this process wait for the given time and do nothing else."""

    def handlers(store: Store, conversations: Conversations, buffer: CaptureBuffer) -> dict[str, Handler]:
        return {kind: lambda job: time.sleep(milliseconds / 1000) for kind in jobs.KINDS}

    jobs.handlers = handlers


def queue(asked: argparse.Namespace) -> None:
    """Measure one tenant's queue with increasing numbers of workers."""
    print(f"{asked.jobs} jobs of one tenant\n\n| a job takes | workers | jobs/s | by the busiest | by the idlest |")
    print("|---|---|---|---|---|")
    with _server() as server, ordinary_role(server) as role:
        for milliseconds in _numbers(asked.milliseconds):
            for workers in _numbers(asked.workers):
                with fresh_database(role) as url:
                    _fill(url, {"only": asked.jobs})
                    crew = _crew(url, workers, milliseconds)
                    started = crew.begin()
                    each = [pipe.recv() for pipe in crew.pipes]
                    for process in crew.processes:
                        process.join(PATIENCE)
                    done = [at for one in each for _, at in one]
                    assert len(done) == asked.jobs, len(done)
                    shares = sorted(len(one) for one in each)
                    print(f"| {milliseconds} ms | {workers} | {len(done) / (max(done) - started):.0f}"
                          f" | {shares[-1]} | {shares[0]} |", flush=True)  # fmt: skip


def tenants(asked: argparse.Namespace) -> None:
    """Measure one long queue, and many short ones that come later."""
    (milliseconds,) = _numbers(asked.milliseconds)
    print(f"1 tenant with {asked.large} jobs, {asked.tenants - 1} with {asked.small}, a job takes {milliseconds} ms\n")
    print(
        "| workers | all done after | a small tenant's first job | its last: median | slowest | turns of the large one until then |"
    )
    print("|---|---|---|---|---|---|")
    with _server() as server, ordinary_role(server) as role:
        for workers in _numbers(asked.workers):
            with fresh_database(role) as url:
                # The first in the alphabet and in time: workers that served in order would serve it first.
                _fill(url, {"a-large-one": asked.large})
                _fill(url, {f"small-{n}": asked.small for n in range(asked.tenants - 1)})
                crew = _crew(url, workers, milliseconds)
                started = crew.begin()
                done = crew.told()
            _report_tenants(workers, started, done, asked)


def _report_tenants(workers: int, started: float, done: list[tuple[str, float]], asked: argparse.Namespace) -> None:
    counted = Counter(tenant for tenant, _ in done)
    assert counted["a-large-one"] == asked.large and set(list(counted.values())[1:]) <= {asked.small, asked.large}
    first: dict[str, float] = {}
    last: dict[str, float] = {}
    for tenant, at in done:
        first.setdefault(tenant, at)
        last[tenant] = at
    ends = sorted(at - started for tenant, at in last.items() if tenant != "a-large-one")
    begins = sorted(at - started for tenant, at in first.items() if tenant != "a-large-one")
    before = sum(1 for tenant, at in done if tenant == "a-large-one" and at - started <= ends[-1])
    print(f"| {workers} | {done[-1][1] - started:.1f} s | {begins[-1]:.1f} s at the latest | {statistics.median(ends):.1f} s"
          f" | {ends[-1]:.1f} s | {before} of {asked.large} |", flush=True)  # fmt: skip


# -- connections


@dataclass(slots=True)
class Seen:
    """The observations of one connection to the server."""

    opening: int = 0
    load: int = 0
    after: int = 0
    attempts: list[float] = field(default_factory=list)
    logged: Counter[int] = field(default_factory=Counter)
    said: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    recovered: float = 0.0
    most_of_a_process: int = 0


def connections(asked: argparse.Namespace) -> None:
    """Measure clients and workers, directly and through PgBouncer."""
    (workers,) = _numbers(asked.workers)
    print(f"{asked.processes} processes of {asked.stores} stores, each a tenant with a thread of its own; {workers} workers for"
          f" all tenants; {asked.seconds} s of load, {asked.down} s without a server, {asked.seconds} s of load\n", flush=True)  # fmt: skip
    found = {}
    for way in ("directly", f"PgBouncer, {POOLED} connections"):
        with _server() as server, ordinary_role(server) as role, fresh_database(role) as url:
            open_store(url, "migrating", None).close()
            if way == "directly":
                found[way] = _seen(server, url, url, workers, asked)
            else:
                with pooler(server.admin_url, POOLED) as running:
                    found[way] = _seen(server, url, running.through(url), workers, asked)
    _report_connections(found)


def _report_connections(found: dict[str, Seen]) -> None:
    print("| way | server connections: opening | under load | after the restart | most of one process"
          " | attempts to connect after the stop: worst second | all | seen by the server: worst second"
          " | said | errors | all clients back after |")  # fmt: skip
    print("|---" * 11 + "|")
    for way, seen in found.items():
        seconds = Counter(int(at) for at in seen.attempts)
        print(f"| {way} | {seen.opening} | {seen.load} | {seen.after} | {seen.most_of_a_process}"
              f" | {max(seconds.values(), default=0)} | {len(seen.attempts)} | {max(seen.logged.values(), default=0)}"
              f" | {seen.said} | {sum(seen.errors.values())} | {seen.recovered:.1f} s |")  # fmt: skip
        print(f"    by second after the stop: {[seconds[second] for second in range(max(seconds, default=0) + 1)]}")
        print(f"    errors: {dict(seen.errors)}")


def _seen(server: Server, direct: str, url: str, workers: int, asked: argparse.Namespace) -> Seen:
    seen = Seen()
    ready, stop = FORKING.Barrier(asked.processes + workers + 1), FORKING.Event()
    pipes, processes = [], []
    for number in range(asked.processes + workers):
        here, there = FORKING.Pipe(duplex=False)
        work = _clients if number < asked.processes else _worker
        processes.append(
            FORKING.Process(target=_counting, args=(work, number, url, asked.stores, ready, stop, there), daemon=True)
        )
        pipes.append(here)
    with _watching(server, direct) as watched:
        for process in processes:
            process.start()
        ready.wait(PATIENCE)
        seen.opening = max(watched, default=0)
        watched.clear()
        time.sleep(asked.seconds)
        seen.load = max(watched, default=0)
        stopped = time.monotonic()
        server.stop("immediate")
        time.sleep(asked.down)
        watched.clear()
        began = time.time()
        server.start()
        started = time.monotonic()
        time.sleep(asked.seconds)
        seen.after = max(watched, default=0)
        stop.set()
        told = [pipe.recv() if pipe.poll(PATIENCE) else None for pipe in pipes]
        for process in processes:
            process.join(PATIENCE)
    _add_up(seen, told, stopped, started)
    log = Path(server._own.sockets, "log").read_text(errors="replace").splitlines()
    times = [float(line.partition("%")[0]) for line in log if "connection received" in line]
    seen.logged = Counter(int(at - began) for at in times if at >= began)
    return seen


def _add_up(seen: Seen, told: Sequence[dict[str, Any] | None], stopped: float, started: float) -> None:
    for one in told:
        if one is None:
            seen.errors["a process did not end"] += 1
            continue
        seen.attempts += [at - stopped for at in one["attempts"] if at >= stopped]
        seen.said += len(one["said"])
        seen.errors.update(one["errors"])
        seen.most_of_a_process = max(seen.most_of_a_process, one["open"])
        for moments in one["by_client"]:
            back = [at - started for at in moments if at >= started]
            seen.recovered = max(seen.recovered, min(back) if back else float("inf"))


@contextmanager
def _watching(server: Server, url: str) -> Iterator[list[int]]:
    """Sample the server's connections to the clients' database ten times a second; none while it is away."""
    seen: list[int] = []
    ended = threading.Event()
    name, user = urlsplit(url).path.lstrip("/"), urlsplit(url).username
    query = "SELECT count(*) FROM pg_stat_activity WHERE datname = %s AND usename = %s"

    def watch() -> None:
        while not ended.is_set():
            try:
                with server.admin() as admin:
                    while not ended.wait(0.1):
                        row = admin.execute(query, (name, user)).fetchone()
                        seen.append(row[0] if row else 0)
            except psycopg.Error:
                ended.wait(0.2)

    watching = threading.Thread(target=watch)
    watching.start()
    try:
        yield seen
    finally:
        ended.set()
        watching.join()


def _counting(work: Callable[..., None], number: int, url: str, stores: int, ready: Any, stop: Any, pipe: Any) -> None:
    """Run a part, and count every attempt of this process to connect, including those that nobody answers."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    told: dict[str, Any] = {"attempts": [], "said": [], "errors": Counter(), "by_client": [], "open": 0}
    plain, held, counting = psycopg.Connection.connect.__func__, list[Any](), threading.Lock()  # type: ignore[attr-defined]

    def connect(cls: type, *given: Any, **named: Any) -> Any:
        told["attempts"].append(time.monotonic())
        made = plain(cls, *given, **named)
        with counting:
            held[:] = [one for one in held if not one.closed] + [made]
            told["open"] = max(told["open"], len(held))
        return made

    psycopg.Connection.connect = classmethod(connect)  # type: ignore[assignment,method-assign]
    work(number, url, stores, ready, stop, told)
    pipe.send(told)


def _clients(number: int, url: str, stores: int, ready: Any, stop: Any, told: dict[str, Any]) -> None:
    mems = [Engram.open(url=url, tenant=f"tenant-{number * stores + n}", embedder="none") for n in range(stores)]
    tasks = [mem.start_task("Say something now and then").id for mem in mems]
    told["by_client"] = [list[float]() for _ in mems]
    ready.wait(PATIENCE)

    def talk(place: int) -> None:
        chosen, turn = random.Random(number * stores + place), 0
        while not stop.wait(PACE * chosen.uniform(0, 2)):
            turn += 1
            try:
                mems[place].record_turn(tasks[place], user=sentence(turn), derive=turn % 3 == 0)
            except StoreError as error:
                told["errors"][type(error).__name__] += 1
            else:
                told["said"].append(turn)
                told["by_client"][place].append(time.monotonic())

    threads = [threading.Thread(target=talk, args=(place,)) for place in range(stores)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for mem in mems:
        mem.close()


def _worker(number: int, url: str, stores: int, ready: Any, stop: Any, told: dict[str, Any]) -> None:
    with AllTenantsWorker.open(url, embedder="none") as worker:
        ready.wait(PATIENCE)
        ended = threading.Event()

        def watch() -> None:
            stop.wait()
            ended.set()

        watching = threading.Thread(target=watch)
        watching.start()
        worker.run(ended)
        watching.join()


if __name__ == "__main__":
    main()
