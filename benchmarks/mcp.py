"""Measures how long a client of `engram mcp` waits: from the server's start to its list of tools, and for a recall."""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.command import parser, print_report, whole
from engram.bench.figures import Figure, percentile, progress_line
from engram.bench.speed import fill, questions
from engram.client import Engram
from engram.store.protocol import Progress

STARTS = 7
"""Number of server starts."""
QUESTIONS = 200
WARM_UP = 20
SDK = "import gc; gc.disable(); import mcp.server, mcp.server.stdio"
"""The floor of a start: the SDK alone, loaded as the server loads it."""
COLD_BAR_MS, OVER_SDK_BAR_MS, RECALL_BAR_MS = 500.0, 250.0, 25.0
HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "benchmark", "version": "0"}}


class Conversation:
    """A server on its pipes, addressed in bare lines, to measure the server and not a client's package."""

    def __init__(self, running: "subprocess.Popen[bytes]") -> None:
        self._running = running
        self._number = 0

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """Send one request and wait for its answer."""
        assert self._running.stdin is not None and self._running.stdout is not None
        self._number += 1
        request = {"jsonrpc": "2.0", "id": self._number, "method": method, "params": params}
        self._running.stdin.write(json.dumps(request).encode() + b"\n")
        self._running.stdin.flush()
        answer: dict[str, Any] = json.loads(self._running.stdout.readline())
        assert answer["id"] == self._number, answer
        result: dict[str, Any] = answer["result"]
        return result


@contextmanager
def conversation(folder: Path) -> Iterator[Conversation]:
    """A server on the store of a folder, stopped at the end."""
    env = {
        **os.environ,
        "ENGRAM_HOME": str(folder / "home"),
        "ENGRAM_CACHE": str(folder / "cache"),
        "HOME": str(folder),
    }
    command = [sys.executable, "-m", "engram.cli", "mcp"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, cwd=folder, env=env) as running:
        try:
            yield Conversation(running)
        finally:
            assert running.stdin is not None
            running.stdin.close()
            running.wait(30)


def measure(count: int = 10_000, *, starts: int = STARTS, progress: Progress = lambda *_: None) -> dict[str, Any]:
    """Time the start, the SDK alone, the first recall and later ones, and the token cost of the tool list."""
    with tempfile.TemporaryDirectory(prefix="engram-bench-") as name:
        folder = Path(name)
        with Engram.open(folder / "home", cache=folder / "cache", directory=folder) as mem:
            fill(mem, count, progress)
            asked = questions(QUESTIONS, count)
            inside = _warm(mem.recall, asked)
        cold, alone = [], []
        for number in range(starts):
            # Alternating, so that a busy machine slows both equally.
            alone.append(_timed(lambda: subprocess.run([sys.executable, "-c", SDK], check=True)))
            cold.append(_start(folder))
            progress("starting", number + 1, starts)
        first, warm, tools = _recalls(folder, asked)
    return _report(count, cold, alone, first, warm, percentile(inside, 0.5), tools)


def _start(folder: Path) -> float:
    begun = time.perf_counter()
    with conversation(folder) as server:
        server.ask("initialize", **HELLO)
        server.ask("tools/list")
        return (time.perf_counter() - begun) * 1000


def _recalls(folder: Path, asked: list[str]) -> tuple[float, list[float], list[dict[str, Any]]]:
    with conversation(folder) as server:
        server.ask("initialize", **HELLO)
        tools: list[dict[str, Any]] = server.ask("tools/list")["tools"]

        def recall(question: str) -> object:
            return server.ask("tools/call", name="recall", arguments={"question": question})

        first = _timed(lambda: recall(asked[0]))
        return first, _warm(recall, asked), tools


def _warm(recall: Callable[[str], object], asked: list[str]) -> list[float]:
    """Milliseconds of each question after a warm-up."""
    for question in asked[:WARM_UP]:
        recall(question)
    return [_timed(partial(recall, question)) for question in asked]


def _timed(work: Callable[[], object]) -> float:
    begun = time.perf_counter()
    work()
    return (time.perf_counter() - begun) * 1000


def _report(
    count: int,
    cold: list[float],
    alone: list[float],
    first: float,
    warm: list[float],
    inside: float,
    tools: list[dict[str, Any]],
) -> dict[str, Any]:
    start, sdk, recall = percentile(cold, 0.5), percentile(alone, 0.5), percentile(warm, 0.5)
    shown = [{name: tool[name] for name in ("name", "description", "inputSchema")} for tool in tools]
    figures = [
        Figure("start to tools/list", start, "ms", p95=percentile(cold, 0.95), floor=sdk, ratio=start / sdk),
        Figure("importing the SDK alone", sdk, "ms", p95=percentile(alone, 0.95)),
        Figure("first recall, which opens the store", first, "ms"),
        Figure(
            "recall round trip, warm, beside one in this process",
            recall,
            "ms",
            p95=percentile(warm, 0.95),
            p99=percentile(warm, 0.99),
            floor=inside,
            ratio=recall / inside,
        ),
        Figure("tools/list as JSON", len(_json(tools)) / 1000, "kB"),
        Figure("of it, what clients show a model", len(_json(shown)) / 1000, "kB"),
        Figure("the same in tokens", _tokens(shown), ""),
    ]
    return {
        "memories": count,
        "processors": os.cpu_count(),
        "load_average": round(os.getloadavg()[0], 2),
        "figures": [asdict(figure) for figure in figures],
        "passed": (start <= COLD_BAR_MS or start - sdk <= OVER_SDK_BAR_MS) and recall <= RECALL_BAR_MS,
    }


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _tokens(value: object) -> int:
    from engram.embedding.word_pieces import count_tokens

    return count_tokens(_json(value))


def text(report: Mapping[str, Any]) -> str:
    """The figures, and whether they are within their bars."""
    from engram.bench.figures import figures_text

    bars = f"start ≤ {COLD_BAR_MS:.0f} ms or within {OVER_SDK_BAR_MS:.0f} ms of the SDK, recall p50 ≤ {RECALL_BAR_MS:.0f} ms"
    return f"{figures_text(report)}\n  {'within' if report['passed'] else 'NOT within'} the bars: {bars}"


def main() -> None:
    """Measure with the options of the command line."""
    options = parser("mcp", "How long a client of `engram mcp` waits for the list of tools and for a recall.")
    options.add_argument("--n", type=whole(100), default=10_000, help="number of memories (default: 10000)")
    options.add_argument("--starts", type=whole(1), default=STARTS, help=f"how often to start it (default: {STARTS})")
    given = options.parse_args()
    print_report(lambda: measure(given.n, starts=given.starts, progress=progress_line), as_json=given.json, text=text)


if __name__ == "__main__":
    main()
