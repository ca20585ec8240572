"""Measures how long an event loop is blocked while many tasks use one memory: a heartbeat during the work, and one without."""

import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Awaitable, Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from itertools import count as counter
from pathlib import Path
from typing import Any

from benchmarks.command import URL_HELP, parser, print_report, whole
from engram.aio import AsyncEngram
from engram.aio.engram import THREADS
from engram.bench.figures import Figure, figures_text, percentile, progress_line
from engram.bench.speed import memories, questions, statements
from engram.store.protocol import Progress

BEAT = 0.001
"""Seconds between two beats."""
BASELINE_SECONDS = 2.0
QUESTIONS = 200
NEW = 5_000
"""Number of distinct texts that are added and observed."""
BAR_MS = 10.0
"""The bar for the lag at p99."""


@dataclass(frozen=True, slots=True)
class Lag:
    """The lateness of beats, in milliseconds. Beats missed during a block count too, each with its own lateness."""

    p50: float
    p95: float
    p99: float
    longest: float
    beats: int


def measure(
    count: int = 10_000,
    *,
    callers: int = 32,
    seconds: float = 5.0,
    threads: int | None = None,
    url: str | None = None,
    tenant: str = "bench-loop",
    progress: Progress = lambda *_: None,
) -> dict[str, Any]:
    """Fill a fresh store with `count` memories, let `callers` tasks search, add and observe, and measure the loop's lag.

    Runs on files, or on the server at `url` under a temporary tenant.
    """
    with ExitStack() as stack:
        if url is not None:
            stack.callback(_remove, url, tenant)
            where: dict[str, Any] = {"url": url, "tenant": tenant}
        else:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="engram-bench-")))
            where = {"home": folder / "home", "cache": folder / "cache", "directory": folder}
        return asyncio.run(_measure(where, count, callers, seconds, threads or THREADS, progress))


async def _measure(
    where: dict[str, Any], count: int, callers: int, seconds: float, threads: int, progress: Progress
) -> dict[str, Any]:
    load = os.getloadavg()[0]
    baseline = await _lag_during(asyncio.sleep(BASELINE_SECONDS))
    started = time.perf_counter()
    async with AsyncEngram.open(**where, threads=threads) as mem:
        await mem.add_batch(list(memories(count)))
        progress("adding", count, count)
        took: dict[str, list[float]] = {"search": [], "add": [], "observe": []}
        work = _Work(mem, questions(QUESTIONS, count), list(statements(NEW, seed=count + 7)), took)
        await work.turn(0)
        lag = await _lag_during(work.all(callers, seconds))
    return {
        "memories": count,
        "callers": callers,
        "threads": threads,
        "seconds": seconds,
        "backend": "postgres" if "url" in where else "files",
        "processors": os.cpu_count(),
        "load_average": round(load, 2),
        "python": sys.version.split()[0],
        "took_seconds": round(time.perf_counter() - started, 1),
        "baseline_ms": asdict(baseline),
        "lag_ms": asdict(lag),
        "bar_ms": BAR_MS,
        "passed": lag.p99 <= BAR_MS,
        "calls": {name: _told(samples) for name, samples in took.items()},
    }


def _told(samples: list[float]) -> dict[str, float]:
    if not samples:
        return {"calls": 0}
    return {
        "calls": len(samples),
        "p50_ms": round(percentile(samples, 0.5), 1),
        "p95_ms": round(percentile(samples, 0.95), 1),
    }


class _Work:
    """The callers' work: eight searches, one addition and one observation in every ten calls."""

    def __init__(self, mem: AsyncEngram, asked: list[str], new: list[str], took: dict[str, list[float]]) -> None:
        self._mem, self._asked, self._new, self._took = mem, asked, new, took
        self._number = counter()

    async def all(self, callers: int, seconds: float) -> None:
        """Run every caller until the time is over."""
        until = time.perf_counter() + seconds
        await asyncio.gather(*(self._caller(caller, until) for caller in range(callers)))

    async def _caller(self, caller: int, until: float) -> None:
        while time.perf_counter() < until:
            await self.turn(caller)

    async def turn(self, caller: int) -> None:
        """Make one timed call."""
        number = next(self._number)
        name = {3: "add", 7: "observe"}.get(number % 10, "search")
        started = time.perf_counter()
        if name == "add":
            await self._mem.add(self._new[number % len(self._new)], scope="project:acme")
        elif name == "observe":
            await self._mem.observe(f"caller-{caller}", "user", self._new[number % len(self._new)])
        else:
            await self._mem.search(self._asked[number % len(self._asked)])
        self._took[name].append((time.perf_counter() - started) * 1000)


async def _lag_during(work: Awaitable[None]) -> Lag:
    lags: list[float] = []
    heart = asyncio.create_task(_beat(lags))
    try:
        await work
        await asyncio.sleep(2 * BEAT)  # for the beat that the work may just have blocked
    finally:
        heart.cancel()
        await asyncio.wait([heart])
    return lag_of(lags)


async def _beat(lags: list[float]) -> None:
    while True:
        due = time.perf_counter() + BEAT
        await asyncio.sleep(BEAT)
        lags.append(max(0.0, time.perf_counter() - due))


def lag_of(lags: list[float]) -> Lag:
    """Percentiles over every beat that was due: a block of 50 ms makes 50 beats late, not one."""
    due = [ms for lag in lags for ms in _swallowed(lag)] or [0.0]
    p50, p95, p99 = (round(percentile(due, share), 2) for share in (0.5, 0.95, 0.99))
    return Lag(p50, p95, p99, longest=round(max(due), 2), beats=len(due))


def _swallowed(lag: float) -> list[float]:
    return [(lag - BEAT * missed) * 1000 for missed in range(int(lag / BEAT) + 1)]


def _remove(url: str, tenant: str) -> None:
    from engram.store.postgres import tenants

    tenants.remove(url, tenant)


def text(report: Mapping[str, Any]) -> str:
    """The report, with the lag as figures."""
    names = {"baseline_ms": "event loop lag while idle", "lag_ms": "event loop lag while 32 callers search and write"}
    figures = [
        asdict(Figure(name, report[key]["p50"], "ms", report[key]["p95"], report[key]["p99"]))
        for key, name in names.items()
    ]
    return figures_text({**report, "figures": figures})


def main() -> None:
    """Measure with the options of the command line."""
    options = parser("loop", "How long the event loop waits while 32 callers of AsyncEngram search and write.")
    options.add_argument("--n", type=whole(100), default=10_000, help="number of memories (default: 10000)")
    options.add_argument("--seconds", type=whole(1), default=5, help="how long the callers work (default: 5)")
    options.add_argument(
        "--threads", type=whole(1), default=THREADS, help=f"threads of the client (default: {THREADS})"
    )
    options.add_argument("--url", help=URL_HELP)
    given = options.parse_args()

    def work() -> dict[str, Any]:
        return measure(given.n, seconds=given.seconds, threads=given.threads, url=given.url, progress=progress_line)

    print_report(work, as_json=given.json, text=text)


if __name__ == "__main__":
    main()
