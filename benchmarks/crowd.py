"""Many clients at once: processes that search and learn for a while, and a count of the outcomes of every write."""

import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from engram.bench.figures import percentile
from engram.client import Engram

WRITES = 5
"""One operation in this many is a write."""
PATIENCE = 120
"""Seconds beyond the run after which a client that has not ended is killed."""


@dataclass(frozen=True, slots=True)
class Crowd:
    """The results of many clients together."""

    clients: int
    seconds: float
    searches: int
    writes: int
    errors: list[str]
    lost: int
    doubled: int
    deadlocks: int
    per_second: float
    search_p50: float
    search_p95: float
    write_p50: float
    write_p95: float


def run(url: str, tenant: str, clients: int, seconds: int, asked: Sequence[str]) -> Crowd:
    """Let the clients work in parallel, then look for every write reported to them as successful."""
    before = _deadlocks(url)
    processes = [_start(url, tenant, number, seconds, asked) for number in range(clients)]
    started = time.perf_counter()
    told = [_told(process, seconds) for process in processes]
    took = time.perf_counter() - started
    written = [text for report in told for text in report["written"]]
    held = _held(url, tenant)
    searches = [ms for report in told for ms in report["searches"]]
    writes = [ms for report in told for ms in report["writes"]]
    return Crowd(
        clients=clients,
        seconds=took,
        searches=len(searches),
        writes=len(writes),
        errors=[error for report in told for error in report["errors"]],
        lost=sum(1 for text in written if held[text] == 0),
        doubled=sum(1 for count in held.values() if count > 1),
        deadlocks=_deadlocks(url) - before,
        per_second=(len(searches) + len(writes)) / max(seconds, 1),
        search_p50=percentile(searches or [0.0], 0.5),
        search_p95=percentile(searches or [0.0], 0.95),
        write_p50=percentile(writes or [0.0], 0.5),
        write_p95=percentile(writes or [0.0], 0.95),
    )


def _start(url: str, tenant: str, number: int, seconds: int, asked: Sequence[str]) -> "subprocess.Popen[str]":
    """Start the clients. The URL is passed by the pipe, because other users can read a command line."""
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.crowd"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin is not None
    order = {"url": url, "tenant": tenant, "number": number, "seconds": seconds, "asked": list(asked)}
    process.stdin.write(json.dumps(order) + "\n")
    process.stdin.flush()
    return process


def _told(process: "subprocess.Popen[str]", seconds: int) -> dict[str, list[Any]]:
    try:
        out, _ = process.communicate(timeout=seconds + PATIENCE)
        found: dict[str, list[Any]] = json.loads(out)
    except (subprocess.TimeoutExpired, ValueError):
        process.kill()
        process.communicate()
        found = {"searches": [], "writes": [], "written": [], "errors": ["a client did not end"]}
    return found


def _held(url: str, tenant: str) -> Counter[str]:
    with Engram.open(url=url, tenant=tenant) as mem:
        return Counter(memory.statement for memory in mem.list(limit=None, scope="project:crowd", status="any"))


def _deadlocks(url: str) -> int:
    from engram.store.postgres.connections import connect

    with connect(url) as connection:
        row = connection.execute("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()").fetchone()
    return int(row[0]) if row else 0


def main() -> None:
    """Run one client: it reads its task from stdin and reports on stdout."""
    order = json.loads(sys.stdin.readline())
    found: dict[str, list[Any]] = {"searches": [], "writes": [], "written": [], "errors": []}
    with Engram.open(url=order["url"], tenant=order["tenant"]) as mem:
        deadline, turn = time.monotonic() + order["seconds"], order["number"]
        while time.monotonic() < deadline:
            turn += 1
            _turn(mem, order, turn, found)
    sys.stdout.write(json.dumps(found))


def _turn(mem: Engram, order: dict[str, Any], turn: int, found: dict[str, list[Any]]) -> None:
    asked: list[str] = order["asked"]
    question = asked[turn * 7 % len(asked)]
    started = time.perf_counter()
    try:
        if turn % WRITES:
            mem.search(question)
        else:
            # Rearranged for each write, because the gates treat statements that differ in a word or two as the same.
            words = question.split()
            text = f"client {order['number']} writes {turn}: {' '.join(words[turn % len(words) :] + words)} {turn * 31}"
            decision = mem.learn(text, scope="project:crowd")
            if decision.memory is not None and decision.outcome in ("CREATED", "PENDING", "CONTRADICTION"):
                found["written"].append(text)
    except Exception as error:  # all errors are part of the measurement
        found["errors"].append(f"{type(error).__name__}: {error}")
    found["searches" if turn % WRITES else "writes"].append((time.perf_counter() - started) * 1000)


if __name__ == "__main__":
    main()
