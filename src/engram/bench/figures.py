"""Figures of a benchmark: the machine's own floors, measured in the same run, and figures formatted as text."""

import os
import resource
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from engram.model.lazy import dataclass


def median_ms(work: Callable[[int], object], times: int) -> float:
    """The median of some runs, in milliseconds."""
    return statistics.median(samples_ms(work, times))


def samples_ms(work: Callable[[int], object], times: int) -> list[float]:
    """Milliseconds of each run."""
    found = []
    for number in range(times):
        started = time.perf_counter()
        work(number)
        found.append((time.perf_counter() - started) * 1000)
    return found


def percentile(samples: Sequence[float], share: float) -> float:
    """The smallest value that at least this share of the samples does not exceed."""
    ordered = sorted(samples)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def search_floor(count: int, index: Path, matches: Sequence[str], times: int = 30) -> float:
    """A bare exact scan of the same number of vectors, plus one pruned FTS5 query on the same index."""
    rng = np.random.default_rng(0)
    matrix = rng.standard_normal((count, 256), dtype=np.float32)
    vectors = rng.standard_normal((times, 256), dtype=np.float32)

    def scan(number: int) -> object:
        scores = matrix @ vectors[number]
        return np.argpartition(-scores, min(10, count - 1))[:10]

    connection = sqlite3.connect(f"file:{index}?mode=ro", uri=True)
    sql = "SELECT rowid FROM words WHERE words MATCH ? ORDER BY rank LIMIT 10"
    lexical = median_ms(lambda i: connection.execute(sql, (matches[i % len(matches)],)).fetchall(), times)
    connection.close()
    return median_ms(scan, times) + lexical


def write_floor(folder: Path, times: int = 50, size: int = 700) -> float:
    """One append and fsync."""
    with tempfile.NamedTemporaryFile(dir=folder) as file:
        descriptor = os.open(file.name, os.O_WRONLY | os.O_APPEND)
        line = b"x" * size + b"\n"

        def append(_: int) -> None:
            os.write(descriptor, line)
            os.fsync(descriptor)

        try:
            return median_ms(append, times)
        finally:
            os.close(descriptor)


def files_floor(folder: Path, count: int = 1000, size: int = 400) -> float:
    """Bare small files created per second: one per memory is the minimum work of a batch."""
    with tempfile.TemporaryDirectory(dir=folder) as place:

        def create(number: int) -> None:
            descriptor = os.open(f"{place}/{number}", os.O_WRONLY | os.O_CREAT, 0o600)
            os.write(descriptor, b"x" * size)
            os.close(descriptor)

        return 1000 / (sum(samples_ms(create, count)) / count)


def start_floor(times: int = 11) -> float:
    """A bare Python start."""
    return process_ms([sys.executable, "-c", "pass"], times)


def process_ms(command: Sequence[str], times: int, env: dict[str, str] | None = None, stdin: str = "") -> float:
    """The median time of a whole process."""

    def start(_: int) -> None:
        subprocess.run(command, check=True, capture_output=True, text=True, input=stdin, env=env, timeout=120)

    return median_ms(start, times)


def peak_memory() -> float:
    """The peak memory of this process so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024 * 1024 if sys.platform == "darwin" else 1024)


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured figure: its name, its value, and the floor it is compared with."""

    name: str
    value: float
    unit: str
    p95: float | None = None
    p99: float | None = None
    floor: float | None = None
    ratio: float | None = None


def progress_line(what: str, done: int, total: int) -> None:
    """Show progress on stderr if that is a terminal."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r{what}: {done:,} of {total:,}" + ("\n" if done >= total else ""))
        sys.stderr.flush()


def figures_text(report: Mapping[str, Any]) -> str:
    """A report's numbers on one line, then each of its figures."""
    numbers = {name: value for name, value in report.items() if isinstance(value, (int, float))}
    heading = ", ".join(f"{value:,} {name.replace('_', ' ')}" for name, value in numbers.items())
    return "\n".join([heading, "", *(figure_text(figure) for figure in report["figures"]), ""])


def figure_text(figure: Mapping[str, Any]) -> str:
    """One figure, with its percentiles and its ratio to the floor if it has them."""
    digits = 1 if figure["unit"] else 3
    line = f"  {figure['name']:<52} {figure['value']:>10,.{digits}f} {figure['unit']}"
    for name in ("p95", "p99"):
        line += f"  {name} {figure[name]:.1f}" if figure[name] is not None else ""
    if figure["ratio"] is not None:
        line += f"  = {figure['ratio']:.2f} × {figure['floor']:.2f}"
    return line


def retrieval_text(report: Mapping[str, Any]) -> str:
    """The measures in a column for the store and, if requested, one for the baseline."""
    columns = [report, report["baseline"]] if "baseline" in report else [report]
    lines = [f"{report['questions']} questions, mode {report['mode']}, fusion {report['fusion']}", ""]
    lines += [_row("", [report["mode"], report["baseline"]["name"]])] if len(columns) > 1 else []
    lines += [_row(name, [column["measures"][name] for column in columns]) for name in report["measures"]]
    lines += ["", "  by category"]
    for category, means in report["by_category"].items():
        lines += [
            _row(f"{category}, {name}", [column["by_category"][category][name] for column in columns]) for name in means
        ]
    latency = ", ".join(f"{name} {value:.1f}" for name, value in report["latency_ms"].items())
    return "\n".join([*lines, "", f"  latency in ms: {latency}; peak memory {report['rss_mb']:.0f} MB"])


def _row(name: str, values: Sequence[float | str]) -> str:
    cells = (value if isinstance(value, str) else f"{value:.3f}" for value in values)
    return f"  {name:<40}" + "".join(f"{cell:>10}" for cell in cells)
