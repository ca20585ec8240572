"""Measures the processor time of wordings and `recall` relative to one search.

    python -m benchmarks.wordings_cost [--n 5000] [--events 0] [--json]

The store has the memories of benchmarks/wordings/development.json among other statements, and turns of conversations if `--events` asks for them.
Each question is asked by every verb in turn, `RUNS` times, so that a busy machine slows all of them alike; of each verb's fastest runs the median
is printed, with its ratio to one search. `first` is the processor time of a new process for its first search, with the imports.
"""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import mean, median
from typing import Any

from benchmarks.command import parser, print_report, whole
from benchmarks.wordings.__main__ import other_statements
from engram import Engram

WORLDS = Path(__file__).with_name("wordings") / "development.json"
QUESTIONS = 40
RUNS = 3
TURNS_OF_A_SESSION = 20
VERBS: Mapping[str, Callable[[Engram, Mapping[str, Any]], object]] = {
    "search": lambda mem, asked: mem.search(asked["q"]),
    "search, wordings": lambda mem, asked: mem.search(asked["q"], wordings=asked["wordings"]),
    "recall": lambda mem, asked: mem.recall(asked["q"]),
    "recall, wordings": lambda mem, asked: mem.recall(asked["q"], wordings=asked["wordings"]),
}
FIRST_SEARCH = """
import sys, time
from engram import Engram
with Engram.open(sys.argv[1], directory=sys.argv[1]) as mem:
    mem.search(sys.argv[2])
    print(time.process_time())
"""


def measure(count: int, events: int) -> dict[str, Any]:
    """Milliseconds of processor time per call of each verb."""
    worlds = json.loads(WORLDS.read_text("utf-8"))["worlds"]
    asked = [each for world in worlds for each in world["questions"] if each["kind"] != "language"][:QUESTIONS]
    with tempfile.TemporaryDirectory() as home:
        with Engram.open(home, directory=home) as mem:
            fill(mem, [memory["text"] for world in worlds for memory in world["memories"]], count, events)
            for question in asked:  # loads everything that a process reads once
                VERBS["recall, wordings"](mem, question)
            times = {name: median(fastest) for name, fastest in time_verbs(mem, asked).items()}
        first = [time_first_search(home, question["q"]) for question in asked[:RUNS]]
    return {
        "memories": count,
        "events": events,
        "wordings": mean(len(question["wordings"]) for question in asked),
        "milliseconds": times,
        "ratios": {name: spent / times["search"] for name, spent in times.items()},
        "first": min(first),
    }


def fill(mem: Engram, statements: list[str], count: int, events: int) -> None:
    """Store the statements and others up to `count`, and some turns of conversations."""
    others = other_statements(count - len(statements) + events)
    stored = [*statements, *others[: max(count - len(statements), 0)]]
    mem.add_batch([{"statement": statement, "scope": "global"} for statement in stored], on_error="skip")
    for place, text in enumerate(others[len(others) - events :] if events else []):
        role = "assistant" if place % 2 else "user"
        mem.observe(f"session-{place // TURNS_OF_A_SESSION}", role, text, scope="global")


def time_verbs(mem: Engram, asked: list[Mapping[str, Any]]) -> dict[str, list[float]]:
    """The fastest run of each question by each verb, in milliseconds."""
    fastest: dict[str, list[float]] = {name: [] for name in VERBS}
    for question in asked:
        runs: dict[str, list[float]] = {name: [] for name in VERBS}
        for _ in range(RUNS):
            for name, ask in VERBS.items():
                start = time.process_time()
                ask(mem, question)
                runs[name].append(1000 * (time.process_time() - start))
        for name, spent in runs.items():
            fastest[name].append(min(spent))
    return fastest


def time_first_search(home: str, question: str) -> float:
    """The processor time of a new process that searches once, in milliseconds."""
    done = subprocess.run(
        [sys.executable, "-c", FIRST_SEARCH, home, question], check=True, capture_output=True, text=True
    )
    return 1000 * float(done.stdout)


def text_of(report: Mapping[str, Any]) -> str:
    """The report as lines."""
    lines = [
        f"{name:18} {spent:6.1f} ms  {report['ratios'][name]:.2f} ×" for name, spent in report["milliseconds"].items()
    ]
    events = f" and {report['events']:,} events" if report["events"] else ""
    head = f"{report['memories']:,} memories{events}, {report['wordings']:.1f} wordings, processor time per call"
    return "\n".join([head, *lines, f"{'first':18} {report['first']:6.1f} ms"])


def main() -> None:
    """Print the costs."""
    options = parser("wordings_cost", "What wordings and recall cost beside one search.")
    options.add_argument("--n", type=whole(500), default=5000, metavar="N", help="memories in the store")
    options.add_argument("--events", type=whole(0), default=0, metavar="N", help="turns of conversations in the store")
    given = options.parse_args()
    print_report(lambda: measure(given.n, given.events), as_json=given.json, text=text_of)


if __name__ == "__main__":
    main()
