"""What finding edits by hand costs a search, and how long an edit stays invisible.

    python -m benchmarks.hand_edits [--sizes 1000,10000,100000] [--folder DIRECTORY]

Costs are CPU times unless named otherwise: other work on the machine does not count there. New processes pay for their start, too.
Only the public interface is used, so an earlier version of Engram can be measured as well. `--folder` keeps the stores for
the next run.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from engram import Engram

ROUNDS = 60
PAUSE = 0.3
"""Longer than the interval between two checks of a process without a watch."""
PATIENCE = 10.0
BATCH = 5_000


def save_in_place(path: Path, text: str) -> None:
    """Write into the same file."""
    path.write_text(text, "utf-8")


def rename_over(path: Path, text: str) -> None:
    """Write a new file and give it the name."""
    fresh = path.with_name(f".{path.name}.tmp")
    fresh.write_text(text, "utf-8")
    fresh.replace(path)


def open_store(folder: Path) -> Engram:
    """The benchmark's store."""
    return Engram.open(folder / "home", cache=folder / "cache", directory=folder)


def fill_store(folder: Path, size: int) -> None:
    """Fill a new store; one from an earlier run stays as it is."""
    filled = folder / "filled"
    if not filled.exists():
        with open_store(folder) as mem:
            for start in range(0, size, BATCH):
                mem.add_batch([{"statement": _statement(i)} for i in range(start, min(start + BATCH, size))])
        filled.touch()


def _statement(number: int) -> str:
    return f"Fact number {number} about gadget{number} on shelf{number % 311} in room{number % 97}"


# -- costs


def search_cost(mem: Engram, asked: list[str], pause: float = 0.0) -> float:
    """The median CPU milliseconds of a search."""
    costs = []
    for question in asked:
        time.sleep(pause)
        started = time.thread_time()
        mem.search(question)
        costs.append(time.thread_time() - started)
    return statistics.median(costs) * 1000


def first_search(folder: Path) -> dict[str, float]:
    """The first search of a new process, and the second; wall and CPU milliseconds."""
    with open_store(folder) as mem:
        found = {}
        for name in ("first", "second"):
            wall, cpu = time.perf_counter(), time.process_time()
            mem.search("a question that nobody asked")
            found[f"{name}_ms"] = (time.perf_counter() - wall) * 1000
            found[f"{name}_cpu_ms"] = (time.process_time() - cpu) * 1000
        return found


# -- how long an edit stays invisible


def _is_found(mem: Engram, word: str) -> bool:
    return any(hit.memory is not None and word in hit.memory.statement for hit in mem.search(word))


def wait_for(answer: Callable[[], bool]) -> str:
    """Ask until the answer is as expected. Returns how long that took, and the number of answers."""
    started, asked = time.perf_counter(), 0
    while time.perf_counter() - started < PATIENCE:
        asked += 1
        if answer():
            return f"{time.perf_counter() - started:.2f} s, answer {asked}"
    return f"never in {PATIENCE:.0f} s"


def edit_times(paths: list[Path], serial: int, asking: Callable[[str], bool]) -> dict[str, str]:
    """How long each kind of edit stays invisible; `asking` says whether a word is found."""
    found: dict[str, str] = {}
    words = {"in place": f"zyzzyva{serial}a", "rename": f"zyzzyva{serial}b", "new file": f"zyzzyva{serial}c"}
    for (name, word), path in zip(words.items(), paths, strict=False):
        lines = path.read_text("utf-8").splitlines(keepends=True)
        text = "".join(f"{line.rstrip()} {word}\n" if "statement:" in line else line for line in lines)
        if name == "new file":
            path, text = path.with_name(f"hand-{serial}.yaml"), text.replace(path.stem, f"ENG-2001-0101-{serial:03d}")
        (rename_over if name == "rename" else save_in_place)(path, text)
        found[name] = wait_for(lambda word=word: asking(word))  # type: ignore[misc]
    paths[2].with_name(f"hand-{serial}.yaml").unlink()
    found["removal"] = wait_for(lambda: not asking(words["new file"]))
    return found


def child(folder: Path, *arguments: str) -> dict[str, float]:
    """Run a part of this program in a new process. Returns what it prints."""
    command = [sys.executable, "-m", "benchmarks.hand_edits", "--child", str(folder), *arguments]
    ended = subprocess.run(command, check=True, capture_output=True, text=True, env=dict(os.environ))
    answered: dict[str, float] = json.loads(ended.stdout)
    return answered


def measure(folder: Path, size: int) -> None:
    """Measure one size and print the figures."""
    fill_store(folder, size)
    asked = [f"gadget{i * size // ROUNDS} on shelf{i}" for i in range(ROUNDS)]
    first = [child(folder) for _ in range(3)]
    print(f"\n{size:,} memories")
    for key in first[0]:
        print(f"  fresh process, {key:15} {statistics.median(one[key] for one in first):9.1f}")
    with open_store(folder) as mem:
        for question in asked[:5]:
            time.sleep(PAUSE)
            mem.search(question)
        print(f"  warm search, in a row, CPU ms   {search_cost(mem, asked):8.2f}")
        print(f"  warm search, paused, CPU ms     {search_cost(mem, asked[:20], PAUSE):8.2f}")
        listed = mem.list(limit=3)
        paths = [Path(mem.store.file_of(memory.id)) for memory in listed]
        serial = int(time.time()) % 100_000 * 10
        times = edit_times(paths, serial, lambda word: _is_found(mem, word))
        _print_times("a process that lives on", times)
        times = edit_times(paths, serial + 1, lambda word: bool(child(folder, word)["found"]))
        _print_times("new processes", times)


def _print_times(who: str, times: dict[str, str]) -> None:
    for name, took in times.items():
        print(f"  {name + ', seen by ' + who:40} {took}")


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="1000,10000,100000")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--child", nargs="+", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        folder = Path(given.child[0])
        if len(given.child) > 1:
            with open_store(folder) as mem:
                print(json.dumps({"found": _is_found(mem, given.child[1])}))
        else:
            print(json.dumps(first_search(folder)))
        return
    with tempfile.TemporaryDirectory() as scratch:
        for size in map(int, given.sizes.split(",")):
            folder = (given.folder or Path(scratch)) / str(size)
            folder.mkdir(parents=True, exist_ok=True)
            measure(folder, size)


if __name__ == "__main__":
    main()
