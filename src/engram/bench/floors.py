"""Floors: what the machine itself needs for the least that must be done, measured in the same run."""

import os
import resource
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np


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
    """The value that so large a share of the samples does not exceed."""
    ordered = sorted(samples)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def search_floor(count: int, index: Path, matches: Sequence[str], times: int = 30) -> float:
    """A bare exact scan of as many vectors, plus one pruned FTS5 query on the same index."""
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
    """Bare small files created per second: one per memory is the least a batch must do."""
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
    """The most memory this process has used so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024 * 1024 if sys.platform == "darwin" else 1024)
