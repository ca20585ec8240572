"""Measure many writers through PgBouncer with few server connections beside the same writers with connections of their own.

    python -m benchmarks.pooler [--rounds 3] [--seconds 10] [--writes 4] [--processes 20] [--threads 10] [--connections 20] [--tenants 20]

Run from a checkout, on Linux: PostgreSQL (writing through to disk) and PgBouncer (in transaction mode, without prepared
statements) are started as the tests start them, on this machine, and are gone afterwards. A writer is a thread with a store of
its own that learns sentences in a scope of its own, as fast as it is answered; clients on many machines are many processes, so
there are 20 of 10 threads. Three ways are measured in turn, in another order each round, each in new tenants: directly with a
connection for each writer, directly with as many as the pooler has, and through the pooler. Two loads: all writers come at once,
open their stores and write a few times (`--writes`); and writers that have been connected for a while write for `--seconds`.
Afterwards every write that was acknowledged is looked for. CPU is what the clients, the server and PgBouncer used for one write.
"""

import argparse
import multiprocessing
import os
import statistics
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection as Pipe
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from engram import Engram
from engram.store.postgres import connections
from tests.faults.consistency import warm_embedder
from tests.faults.workers.operations import sentence
from tests.postgres.pooler import Pooler, pooler
from tests.postgres.server import Server, durable_server, fresh_database, ordinary_role

FORKING = multiprocessing.get_context("fork")
PATIENCE = 300.0
EACH = 1_000_000
"""Number of sentences reserved for each writer."""
WARM = 6
"""Writes before the clock starts: psycopg prepares a statement that it has sent five times."""
USUAL = {"rounds": 3, "seconds": 10, "writes": 4, "processes": 20, "threads": 10, "connections": 20, "tenants": 20}
LOADS = ("burst", "steady")


@dataclass(frozen=True, slots=True)
class Way:
    """A connection to the server: its address, and the maximum connections of a process."""

    name: str
    url: str
    at_most: int


@dataclass(slots=True)
class Outcome:
    """The results of the writers over one connection, in one round of one load."""

    per_second: float
    milliseconds: list[float]
    errors: list[str]
    connections: int
    cpu: tuple[float, float, float]
    """Milliseconds of a write: clients, server, PgBouncer."""
    lost: int = 0
    doubled: int = 0


@dataclass(frozen=True, slots=True)
class Bench:
    """Everything that a round needs."""

    asked: argparse.Namespace
    server: Server
    url: str
    running: Pooler

    def ways(self) -> list[Way]:
        """The three ways."""
        asked, few = self.asked, max(1, self.asked.connections // self.asked.processes)
        return [
            Way(f"directly, {asked.processes * asked.threads} connections", self.url, asked.threads),
            Way(f"directly, {few * asked.processes} connections", self.url, few),
            Way(f"PgBouncer, {asked.connections} connections", self.running.through(self.url), asked.threads),
        ]

    def measure(self, load: str, way: Way, label: str) -> Outcome:
        """Let the writers work, then look for every write that was acknowledged."""
        tenants = [f"{load}-{label}-{n}" for n in range(self.asked.tenants)]
        for tenant in tenants:
            Engram.open(url=self.url, tenant=tenant).close()
        ready, go = FORKING.Barrier(self.asked.processes + 1), FORKING.Event()
        pipes, processes = [], []
        for number in range(self.asked.processes):
            here, there = FORKING.Pipe(duplex=False)
            given = (number, load, way, tenants[number % len(tenants)], self.asked, ready, go, there)
            processes.append(FORKING.Process(target=work, args=given, daemon=True))
            pipes.append(here)
        for process in processes:
            process.start()
        ready.wait(PATIENCE)
        with self._watching() as seen:
            before, started = self._cpu(), time.monotonic()
            go.set()
            told = [pipe.recv() if pipe.poll(PATIENCE) else _nothing() for pipe in pipes]
            after = self._cpu()
        for process in processes:
            process.join(PATIENCE)
        took = self.asked.seconds if load == "steady" else max(one["ended"] for one in told) - started
        outcome = _outcome(told, took, max(seen, default=0), [b - a for a, b in zip(before, after, strict=True)])
        self._look_for(outcome, tenants, told)
        return outcome

    def _look_for(self, outcome: Outcome, tenants: list[str], told: list[dict[str, Any]]) -> None:
        for place, tenant in enumerate(tenants):
            with Engram.open(url=self.url, tenant=tenant) as mem:
                held = Counter(memory.statement for memory in mem.list(limit=None, status="any"))
            written = [text for one in told[place :: len(tenants)] for text, _, _ in one["writes"]]
            outcome.lost += sum(1 for text in written if not held[text])
            outcome.doubled += sum(count - 1 for count in held.values())

    def _cpu(self) -> tuple[float, float]:
        """Processor seconds used so far by PgBouncer and the server with all its processes."""
        root = int((self.server.data / "postmaster.pid").read_text().split()[0])
        family = [root, *(pid for pid, parent in _processes() if parent == root)]
        return sum(map(_used, family)) + _used(root, of_ended_children=True), _used(self.running.pid)

    @contextmanager
    def _watching(self) -> Iterator[list[int]]:
        """Sample the server's connections for the writers twice a second."""
        seen: list[int] = []
        ended = threading.Event()
        place = urlsplit(self.url)
        query = "SELECT count(*) FROM pg_stat_activity WHERE datname = %s AND usename = %s"

        def watch() -> None:
            with self.server.admin() as admin:
                while not ended.wait(0.5):
                    row = admin.execute(query, (place.path.lstrip("/"), place.username)).fetchone()
                    seen.append(row[0] if row else 0)

        watching = threading.Thread(target=watch)
        watching.start()
        try:
            yield seen
        finally:
            ended.set()
            watching.join()


def _nothing() -> dict[str, Any]:
    return {"writes": [], "errors": ["a process did not end"], "ended": time.monotonic(), "cpu": 0.0}


def _outcome(told: list[dict[str, Any]], took: float, connections_seen: int, cpu: list[float]) -> Outcome:
    counted = [ms for one in told for _, ms, counts in one["writes"] if counts]
    every = sum(1 for one in told for _, _, counts in one["writes"] if counts is not None) or 1
    clients = sum(one["cpu"] for one in told)
    return Outcome(
        per_second=len(counted) / took,
        milliseconds=counted,
        errors=[error for one in told for error in one["errors"]],
        connections=connections_seen,
        cpu=(clients / every * 1000, cpu[0] / every * 1000, cpu[1] / every * 1000),
    )


def _processes() -> Iterator[tuple[int, int]]:
    """Every process and its parent."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (fields := _stat(int(entry.name))):
            yield int(entry.name), int(fields[1])


def _stat(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def _used(pid: int, *, of_ended_children: bool = False) -> float:
    fields = _stat(pid)
    first = 13 if of_ended_children else 11
    return sum(map(int, fields[first : first + 2])) / os.sysconf("SC_CLK_TCK") if fields else 0.0


# -- a process of writers


def work(
    number: int, load: str, way: Way, tenant: str, asked: argparse.Namespace, ready: Any, go: Any, pipe: Pipe
) -> None:
    """Run a process with its threads, and report what was written."""
    connections.MAX_CONNECTIONS = way.at_most
    writers = [Writer(way.url, tenant, number * asked.threads + place) for place in range(asked.threads)]
    if load == "steady":
        _all([threading.Thread(target=writer.warm) for writer in writers])
    ready.wait(PATIENCE)
    go.wait(PATIENCE)
    before = time.process_time()
    if load == "steady":
        _all([threading.Thread(target=writer.write, args=(asked.seconds,)) for writer in writers])
    else:
        _all([threading.Thread(target=writer.come_and_write, args=(asked.writes,)) for writer in writers])
    told = {
        "writes": [write for writer in writers for write in writer.writes],
        "errors": [error for writer in writers for error in writer.errors],
        "ended": time.monotonic(),
        "cpu": time.process_time() - before,
    }
    for writer in writers:
        writer.close()
    pipe.send(told)


def _all(threads: list[threading.Thread]) -> None:
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@dataclass(slots=True)
class Writer:
    """Learns one sentence after another, in its own scope."""

    url: str
    tenant: str
    who: int
    turn: int = 0
    mem: Engram | None = None
    writes: list[tuple[str, float, bool | None]] = field(default_factory=list)
    """The acknowledged writes: the text, the time, and whether it counts; None before the clock started."""
    errors: list[str] = field(default_factory=list)

    def warm(self) -> None:
        """Connect, and let both sides see each statement a few times."""
        for _ in range(WARM):
            self._learn(None)

    def write(self, seconds: int) -> None:
        """Write for the given time."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self._learn(deadline)

    def come_and_write(self, writes: int) -> None:
        """Connect and write the given number of times."""
        for _ in range(writes):
            self._learn(float("inf"))

    def close(self) -> None:
        """Close the store."""
        if self.mem is not None:
            self.mem.close()

    def _learn(self, deadline: float | None) -> None:
        text, started = sentence(self.who * EACH + self.turn), time.perf_counter()
        self.turn += 1
        try:
            if self.mem is None:
                self.mem = Engram.open(url=self.url, tenant=self.tenant)
            decision = self.mem.learn(text, scope=f"project:of-{self.who}")
            assert decision.memory is not None, decision
        except Exception as error:  # all errors are part of the measurement
            self.errors.append(f"{type(error).__name__}: {error}")
        else:
            took = (time.perf_counter() - started) * 1000
            self.writes.append((text, took, None if deadline is None else time.monotonic() <= deadline))


# -- the table


def main() -> None:
    """Measure, and print a table for each load."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    for name, usual in USUAL.items():
        parser.add_argument(f"--{name}", type=int, default=usual)
    parser.add_argument("--load", choices=LOADS, action="append")
    asked = parser.parse_args()
    warm_embedder()
    with (
        durable_server(None) as server,
        ordinary_role(server) as role,
        fresh_database(role) as url,
        pooler(server.admin_url, asked.connections) as running,
    ):
        bench = Bench(asked, server, url, running)
        ways = bench.ways()
        found: dict[str, dict[str, list[Outcome]]] = {
            load: {way.name: [] for way in ways} for load in asked.load or LOADS
        }
        for number in range(asked.rounds):
            for way in ways[number % 3 :] + ways[: number % 3]:
                for load, outcomes in found.items():
                    outcomes[way.name].append(bench.measure(load, way, f"{number}-{ways.index(way)}"))
                    rate = outcomes[way.name][-1].per_second
                    print(f"round {number + 1}, {load}, {way.name}: {rate:.1f} writes/s", flush=True)
    for load, outcomes in found.items():
        report(load, outcomes, asked)


def report(load: str, found: dict[str, list[Outcome]], asked: argparse.Namespace) -> None:
    """One load's table."""
    told = {"burst": f"{asked.writes} writes each, from opening the store on", "steady": f"for {asked.seconds} s"}[load]
    print(f"\n{load}: {asked.processes * asked.threads} writers ({asked.processes} processes of {asked.threads} threads),"
          f" {told}; {asked.tenants} tenants, {asked.rounds} rounds\n")  # fmt: skip
    print("| way | server connections | writes/s, median (rounds) | p50 ms | p95 ms | CPU ms: clients, server, PgBouncer"
          " | errors, lost, doubled |\n|---|---|---|---|---|---|---|")  # fmt: skip
    for name, outcomes in found.items():
        times = sorted(ms for outcome in outcomes for ms in outcome.milliseconds) or [0.0]
        rounds = ", ".join(f"{outcome.per_second:.1f}" for outcome in outcomes)
        cpu = ", ".join(f"{statistics.median(column):.1f}" for column in zip(*(o.cpu for o in outcomes), strict=True))
        wrong = [sum(counts) for counts in zip(*((len(o.errors), o.lost, o.doubled) for o in outcomes), strict=True)]
        print(f"| {name} | {max(outcome.connections for outcome in outcomes)} | {_median(outcomes):.1f} ({rounds})"
              f" | {times[len(times) // 2]:.0f} | {times[len(times) * 95 // 100]:.0f} | {cpu} | {wrong[0]}, {wrong[1]}, {wrong[2]} |")  # fmt: skip
    print()
    (_, through), *direct = reversed(found.items())
    for name, outcomes in reversed(direct):
        ratios = [b.per_second / a.per_second for a, b in zip(outcomes, through, strict=True) if a.per_second]
        print(f"PgBouncer: {statistics.median(ratios or [0]):.2f} of {name}, the median of the rounds")
    for error in sorted({error for outcomes in found.values() for outcome in outcomes for error in outcome.errors})[:5]:
        print(error)


def _median(outcomes: list[Outcome]) -> float:
    return statistics.median(outcome.per_second for outcome in outcomes)


if __name__ == "__main__":
    main()
