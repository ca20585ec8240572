"""Runs all participants at once: who takes part, for how long, and the report."""

import os
import shutil
import tempfile
import threading
import time
import traceback
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import Any, Protocol

from benchmarks.command import empty_tenant
from benchmarks.traffic.agents import Agent
from benchmarks.traffic.checks import check
from benchmarks.traffic.commands import Commands
from benchmarks.traffic.harness import Harness
from benchmarks.traffic.place import TrafficPlace
from benchmarks.traffic.register import Register
from benchmarks.traffic.servers import HttpAgent, StdioAgent

SECONDS = 60
TENANT = "bench-traffic"
_SHARE = 10_000
"""Numbers of statements that each participant may use."""


class Participant(Protocol):
    """A user of the store."""

    name: str

    def start(self) -> None:
        """Prepare for the first turn."""

    def turn(self) -> None:
        """Take the next turn."""

    def stop(self) -> None:
        """Stop everything that was started."""


def measure(
    *,
    seconds: float | None = SECONDS,
    turns: int | None = None,
    slowness: float = 1.0,
    url: str | None = None,
    keep: Path | None = None,
) -> dict[str, Any]:
    """Let everybody work for some seconds, or for some turns each, and check the results.

    `slowness` extends the time limit of hooks, so that a test does not depend on the machine. `keep` is a new folder
    that receives all files if there is a problem.
    """
    with ExitStack() as stack:
        stack.enter_context(empty_tenant(url, TENANT))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="engram-bench-"))).resolve()
        place = TrafficPlace(folder, {"ENGRAM_URL": url, "ENGRAM_TENANT": TENANT} if url else {})
        place.prepare()
        register = Register()
        load, begun = os.getloadavg()[0], time.perf_counter()
        _work(participants(place, register, slowness), register, seconds, turns)
        took = time.perf_counter() - begun
        wrong = check(place, register)
        if keep is not None and (register.errors or any(wrong.values())):
            shutil.copytree(folder, keep)
    return _report(register, wrong, took, load, url)


def participants(place: TrafficPlace, register: Register, slowness: float) -> list[Participant]:
    """The participants: four agents on their own servers, two users of Claude Code, two scripts."""
    numbers = [count(_SHARE * share) for share in range(8)]
    return [
        Agent("agent-1", StdioAgent(place, "agent-1"), register, numbers[0], "killed"),
        Agent("agent-2", StdioAgent(place, "agent-2"), register, numbers[1]),
        Agent("agent-3", HttpAgent(place, "agent-3"), register, numbers[2], "left"),
        Agent("agent-4", StdioAgent(place, "agent-4"), register, numbers[3], "left"),
        Harness("user-1", place, register, numbers[4], slowness),
        Harness("user-2", place, register, numbers[5], slowness),
        Commands("script-1", place, register, numbers[6], 0),
        Commands("script-2", place, register, numbers[7], 12),
    ]


def _work(everybody: Sequence[Participant], register: Register, seconds: float | None, turns: int | None) -> None:
    """Run each participant in a thread until the time is over or the turns are done.

    The time counts from when all servers answer.
    """
    ready = threading.Barrier(len(everybody))

    def work(one: Participant) -> None:
        try:
            one.start()
            ready.wait()
            until = None if seconds is None else time.monotonic() + seconds
            for done in count():
                if done == turns or (until is not None and time.monotonic() >= until):
                    break
                one.turn()
        except Exception:
            ready.abort()
            register.fail(one.name, traceback.format_exc())
        finally:
            one.stop()

    threads = [threading.Thread(target=work, args=(one,), name=one.name) for one in everybody]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _report(
    register: Register, wrong: dict[str, list[str]], took: float, load: float, url: str | None
) -> dict[str, Any]:
    return {
        "backend": "postgres" if url else "files",
        "processors": os.cpu_count(),
        "load_average": round(load, 2),
        "took_seconds": round(took, 1),
        "operations": register.operations(),
        "writes": len(register.writes),
        "purges": len(register.purged),
        "sessions": len(register.sessions),
        "turns_typed": len(register.typed),
        "kills": register.kills,
        "disconnections": register.disconnections,
        "notices": register.notices,
        "late": register.late,
        "errors": register.errors,
        "wrong": {name: found for name, found in wrong.items() if found},
        "passed": not register.errors and not any(wrong.values()),
    }


def text(report: Mapping[str, Any]) -> str:
    """The waits by operation, then all problems."""
    operations = report["operations"]
    lines = [
        f"{sum(one['count'] for one in operations.values()):,} operations in {report['took_seconds']} s on {report['backend']}, "
        f"load {report['load_average']} on {report['processors']} processors; {report['writes']} memories stored, {report['purges']} purged, "
        f"{report['sessions']} sessions, {report['turns_typed']} turns typed, {report['kills']} kills, {report['disconnections']} disconnections",
        *(
            f"  {name:<22} {one['count']:>5}   p50 {one['p50_ms']:>8,.1f} ms   p95 {one['p95_ms']:>8,.1f} ms"
            for name, one in operations.items()
        ),
        *(f"  notice: {notice}" for notice in report["notices"]),
        *(f"  late: {late}" for late in report["late"]),
        *(f"  error: {error}" for error in report["errors"]),
        *(f"  {name}: {one}" for name, found in report["wrong"].items() for one in found),
        "  no error, no lost write, no process left" if report["passed"] else "  NOT PASSED",
    ]
    return "\n".join(lines)
