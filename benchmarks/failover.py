"""Failovers in a row under load: `python -m benchmarks.failover [--failovers 50] [--asynchronous] [--seed N]`.

Two PostgreSQL servers of its own, a primary and a streaming standby. While writers of several processes and threads learn, add,
observe, rate and keep sessions, tasks, jobs and spending, the primary is killed (SIGKILL, all its processes at once), the standby is
promoted, and the killed one comes back as its standby. Afterwards what each writer was told is held against the tables.
The bars: with a synchronous standby nothing acknowledged is lost, nothing is there twice, no cut commit is told wrongly.
"""

import argparse
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from engram import Engram
from tests.postgres.standby import Pair, pair
from tests.postgres.workers.acknowledged import wait_for
from tests.postgres.workers.agreement import disagreements
from tests.postgres.workers.endured import Endured, endured
from tests.postgres.workers.enduring import DONE, shared_memories
from tests.postgres.workers.starting import Crowd, crowd

TENANT = "measured"
WRITES_BETWEEN = 60


def acknowledged(everyone: Crowd) -> int:
    return sum(line.get("told") == DONE for line in everyone.told)


def write_more(everyone: Crowd, more: int) -> None:
    wanted = acknowledged(everyone) + more
    wait_for(lambda: acknowledged(everyone) >= wanted, "writers write again")


def fail_over(servers: Pair, everyone: Crowd, chosen: random.Random) -> tuple[float, float]:
    """Fail over once under load. Returns when the primary was killed, and how long the standby took to take over."""
    write_more(everyone, WRITES_BETWEEN)
    time.sleep(chosen.random() * 0.2)
    killed = time.monotonic()
    servers.kill_primary()
    servers.promote()
    promoted = time.monotonic()
    write_more(everyone, WRITES_BETWEEN // 4)
    servers.rejoin()
    return killed, promoted - killed


def first_writes(told: list[dict[str, Any]], kills: list[float]) -> list[float]:
    """For each kill, the seconds until a write that began after it was acknowledged."""
    began = {line["attempt"]: line["at"] for line in told if "attempt" in line}
    done = sorted((line["at"], began[line["key"]]) for line in told if line.get("told") == DONE)
    return [min(at for at, begin in done if begin > killed) - killed for killed in kills]


def figures(seconds: list[float]) -> str:
    return f"p50 {statistics.median(seconds):.2f} s, max {max(seconds):.2f} s"


def report(result: Endured, told: list[dict[str, Any]], failovers: list[tuple[float, float]], wrong: list[str]) -> None:
    lookups = [line["looked_up"] for line in told if "looked_up" in line]
    print(f"failovers                   {len(failovers)}")
    print(f"acknowledged writes         {result.told['done']}")
    print(f"refused, and not there      {result.told['refused'] - len(result.told_wrongly)}")
    print(f"lost                        {len(result.lost)}")
    print(f"doubled                     {len(result.doubled)}")
    print(f"half there                  {len(result.halves)}")
    print(f"ids given out twice         {len(result.ids_given_twice)}")
    print(f"cut commits looked up       {len(lookups)}, of them {sum(lookups)} had been committed")
    print(f"  could not be told         {result.told['unknown']}")
    print(f"  told wrongly              {len(result.told_wrongly)}")
    print(f"tables that disagree        {len(wrong)}")
    print(f"kill until promoted         {figures([took for _, took in failovers])}")
    print(f"kill until the first write  {figures(first_writes(told, [killed for killed, _ in failovers]))}")
    for name, keys in result.troubles.items():
        print(f"\n{name}:", *keys[:20], sep="\n  ")
    print(*wrong[:20], sep="\n")


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--failovers", type=int, default=50)
    options.add_argument("--processes", type=int, default=2)
    options.add_argument("--threads", type=int, default=4)
    options.add_argument("--asynchronous", action="store_true", help="the standby may lag; then losses are expected")
    options.add_argument("--fsync", action="store_true", help="write through to the disk, as a real server does")
    options.add_argument("--seed", type=int, default=0)
    given = options.parse_args()
    chosen = random.Random(given.seed)
    with (
        tempfile.TemporaryDirectory() as folder,
        pair(None, synchronous=not given.asynchronous, fsync=given.fsync) as servers,
    ):
        url = servers.new_database()
        with Engram.open(url=url, tenant=TENANT) as mem:
            shared = shared_memories(mem)
        load = {"url": url, "tenant": TENANT, "shared": shared}
        with crowd("enduring", Path(folder), given.processes, given.threads, **load) as everyone:
            everyone.begin()
            failovers = []
            for number in range(1, given.failovers + 1):
                failovers.append(fail_over(servers, everyone, chosen))
                print(f"\r{number} of {given.failovers}", end="", file=sys.stderr, flush=True)
            told = everyone.end()
        print(file=sys.stderr)
        result, wrong = endured(url, TENANT, told), disagreements(url, TENANT)
        report(result, told, failovers, wrong)
    return int(bool(result.troubles or wrong))


if __name__ == "__main__":
    sys.exit(main())
