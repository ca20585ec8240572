"""Measure many writers through PgBouncer with few server connections beside the same writers with connections of their own.

    python scripts/measure_pooler.py [--processes 20] [--threads 10] [--connections 20] [--seconds 10] [--rounds 3] [--tenants 20]

Run from a checkout: PostgreSQL (writing through to disk) and PgBouncer (in transaction mode, without prepared statements) are
started as the tests start them, on this machine, and are gone afterwards. A writer is a thread with a store of its own; clients
on many machines are many processes, so there are 20 of 10 threads. Each writer learns sentences in a scope of its own,
as fast as it is answered. Three ways are measured in turn, in another order each round, each in new tenants: directly with a
connection for each writer, directly with as many as the pooler has, and through the pooler. Afterwards every write that
was acknowledged is looked for.
"""

import argparse
import multiprocessing
import statistics
import sys
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

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from engram import Engram  # noqa: E402
from engram.store.postgres import connections  # noqa: E402
from tests.faults.consistency import warm_embedder  # noqa: E402
from tests.faults.workers.operations import sentence  # noqa: E402
from tests.postgres.pooler import pooler  # noqa: E402
from tests.postgres.server import Server, durable_server, fresh_database, ordinary_role  # noqa: E402

FORKING = multiprocessing.get_context("fork")
PATIENCE = 300.0
EACH = 1_000_000
"""Sentences set aside for each writer."""
WARM = 6
"""Writes before the clock starts: psycopg prepares a statement that it has sent five times."""


@dataclass(frozen=True, slots=True)
class Way:
    """A way to the server: where it is, and how many connections a process may have."""

    name: str
    url: str
    at_most: int


@dataclass(slots=True)
class Outcome:
    """What the writers did by one way in one round."""

    per_second: float = 0.0
    milliseconds: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    lost: int = 0
    doubled: int = 0
    connections: int = 0


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    for name, usual in {
        "processes": 20,
        "threads": 10,
        "connections": 20,
        "seconds": 10,
        "rounds": 3,
        "tenants": 20,
    }.items():
        parser.add_argument(f"--{name}", type=int, default=usual)
    asked = parser.parse_args()
    warm_embedder()
    with (
        durable_server(None) as server,
        ordinary_role(server) as role,
        fresh_database(role) as url,
        pooler(server.admin_url, asked.connections) as running,
    ):
        writers, few = asked.processes * asked.threads, max(1, asked.connections // asked.processes)
        ways = [
            Way(f"directly, {writers} connections", url, asked.threads),
            Way(f"directly, {few * asked.processes} connections", url, few),
            Way(f"PgBouncer, {asked.connections} connections", running.through(url), asked.threads),
        ]
        found: dict[str, list[Outcome]] = {way.name: [] for way in ways}
        for number in range(asked.rounds):
            for way in ways[number % 3 :] + ways[: number % 3]:
                tenants = [f"round-{number}-{ways.index(way)}-{n}" for n in range(asked.tenants)]
                found[way.name].append(measure(server, url, way, tenants, asked))
                print(f"round {number + 1}, {way.name}: {found[way.name][-1].per_second:.1f} writes/s", flush=True)
    report(found, writers, asked)


def report(found: dict[str, list[Outcome]], writers: int, asked: argparse.Namespace) -> None:
    """The table."""
    print(f"\n{writers} writers ({asked.processes} processes of {asked.threads} threads), {asked.tenants} tenants,"
          f" {asked.rounds} rounds of {asked.seconds} s\n")  # fmt: skip
    print("| way | server connections | writes/s, median (each round) | p50 ms | p95 ms | errors | lost | doubled |")
    print("|---|---|---|---|---|---|---|---|")
    for name, outcomes in found.items():
        times = sorted(ms for outcome in outcomes for ms in outcome.milliseconds) or [0.0]
        rounds = ", ".join(f"{outcome.per_second:.1f}" for outcome in outcomes)
        print(f"| {name} | {max(outcome.connections for outcome in outcomes)} | {_median(outcomes):.1f} ({rounds})"
              f" | {times[len(times) // 2]:.0f} | {times[len(times) * 95 // 100]:.0f}"
              f" | {sum(len(o.errors) for o in outcomes)} | {sum(o.lost for o in outcomes)} | {sum(o.doubled for o in outcomes)} |")  # fmt: skip
    *direct, through = (_median(outcomes) for outcomes in found.values())
    ratios = [
        statistics.median(b.per_second / a.per_second for a, b in zip(outcomes, list(found.values())[-1], strict=True))
        for outcomes in list(found.values())[:-1]
    ]
    print(f"\nthrough PgBouncer: {through / direct[0]:.2f} and {through / direct[1]:.2f} of the two direct ways"
          f" (median of the rounds' own: {ratios[0]:.2f}, {ratios[1]:.2f})")  # fmt: skip
    for error in sorted({error for outcomes in found.values() for outcome in outcomes for error in outcome.errors})[:5]:
        print(error)


def _median(outcomes: list[Outcome]) -> float:
    return statistics.median(outcome.per_second for outcome in outcomes)


# -- one way, one round


def measure(server: Server, direct: str, way: Way, tenants: list[str], asked: argparse.Namespace) -> Outcome:
    """Let the writers work for a while; then look for what they were told is written."""
    for tenant in tenants:
        Engram.open(url=direct, tenant=tenant).close()
    opened, go = FORKING.Barrier(asked.processes + 1), FORKING.Event()
    pipes, processes = [], []
    for number in range(asked.processes):
        here, there = FORKING.Pipe(duplex=False)
        given = (number, way, tenants[number % len(tenants)], asked, opened, go, there)
        processes.append(FORKING.Process(target=_process, args=given, daemon=True))
        pipes.append(here)
    for process in processes:
        process.start()
    opened.wait(PATIENCE)
    with _watching(server, direct) as seen:
        go.set()
        told = [
            pipe.recv() if pipe.poll(PATIENCE) else {"writes": [], "errors": ["a process did not end"]}
            for pipe in pipes
        ]
    for process in processes:
        process.join(PATIENCE)
    return _added_up(direct, tenants, told, max(seen, default=0), asked)


def _added_up(
    url: str, tenants: list[str], told: list[dict[str, Any]], connections_seen: int, asked: argparse.Namespace
) -> Outcome:
    outcome = Outcome(connections=connections_seen, errors=[error for one in told for error in one["errors"]])
    for place, tenant in enumerate(tenants):
        with Engram.open(url=url, tenant=tenant) as mem:
            held = Counter(memory.statement for memory in mem.list(limit=None, status="any"))
        written = [text for one in told[place :: len(tenants)] for text, _, _ in one["writes"]]
        outcome.lost += sum(1 for text in written if not held[text])
        outcome.doubled += sum(count - 1 for count in held.values())
    counted = [ms for one in told for _, ms, in_time in one["writes"] if in_time]
    outcome.milliseconds, outcome.per_second = counted, len(counted) / asked.seconds
    return outcome


@contextmanager
def _watching(server: Server, url: str) -> Iterator[list[int]]:
    """How many connections the server has to the writers' database, looked at twice a second."""
    seen: list[int] = []
    ended = threading.Event()
    name = urlsplit(url).path.lstrip("/")
    user = urlsplit(url).username

    def watch() -> None:
        with server.admin() as admin:
            while not ended.wait(0.5):
                query = "SELECT count(*) FROM pg_stat_activity WHERE datname = %s AND usename = %s"
                row = admin.execute(query, (name, user)).fetchone()
                seen.append(row[0] if row else 0)

    watching = threading.Thread(target=watch)
    watching.start()
    try:
        yield seen
    finally:
        ended.set()
        watching.join()


# -- a process of writers


def _process(number: int, way: Way, tenant: str, asked: argparse.Namespace, opened: Any, go: Any, pipe: Pipe) -> None:
    connections.MOST_CONNECTIONS = way.at_most
    stores = [Engram.open(url=way.url, tenant=tenant) for _ in range(asked.threads)]
    writers = [Writer(mem, number * asked.threads + place) for place, mem in enumerate(stores)]
    for work in (Writer.warm, lambda writer: writer.write(go, asked.seconds)):
        threads = [threading.Thread(target=work, args=(writer,)) for writer in writers]
        if work is not Writer.warm:
            opened.wait(PATIENCE)
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    for mem in stores:
        mem.close()
    pipe.send(
        {
            "writes": [write for writer in writers for write in writer.writes],
            "errors": [error for writer in writers for error in writer.errors],
        }
    )


@dataclass(slots=True)
class Writer:
    """Learns one sentence after the other, in a scope of its own."""

    mem: Engram
    who: int
    turn: int = 0
    writes: list[tuple[str, float, bool]] = field(default_factory=list)
    """What was acknowledged: the text, how long it took, and whether it counts."""
    errors: list[str] = field(default_factory=list)

    def warm(self) -> None:
        """Connect, and let both sides see each statement a few times."""
        for _ in range(WARM):
            self._learn(float("-inf"))

    def write(self, go: Any, seconds: int) -> None:
        """Write for so long."""
        go.wait(PATIENCE)
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self._learn(deadline)

    def _learn(self, deadline: float) -> None:
        text, started = sentence(self.who * EACH + self.turn), time.perf_counter()
        self.turn += 1
        try:
            decision = self.mem.learn(text, scope=f"project:of-{self.who}")
            assert decision.memory is not None, decision
        except Exception as error:  # whatever goes wrong is what is measured here
            self.errors.append(f"{type(error).__name__}: {error}")
        else:
            took = (time.perf_counter() - started) * 1000
            self.writes.append((text, took, time.monotonic() <= deadline))


if __name__ == "__main__":
    main()
