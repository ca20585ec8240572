"""How long Claude Code waits for each hook: whole processes on a store of 10,000 memories, beside a bare Python start.

    python -m benchmarks.hooks [--memories 10000] [--rounds 15]

Each hook is run as the plugin runs it, through `sh plugin/hooks/engram.sh EVENT`. Bare starts are taken in turn with the hooks, so that a busy
machine slows both alike; figures are medians.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from random import Random

from engram import Engram

os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed program has its bytecode
ROOT = Path(__file__).resolve().parent.parent
BARS = {"session-start": 15, "prompt": 10, "post-tool": 10, "stop": 6, "pre-compact": 6, "session-end": 6}
"""Maximum time of each hook, in bare Python starts (post-tool and pre-compact have no bar of their own)."""
VERBS = [
    "deploying",
    "testing",
    "reviewing",
    "migrating",
    "upgrading",
    "documenting",
    "profiling",
    "debugging",
    "configuring",
    "releasing",
]
THINGS = [
    "the payments service",
    "a Kubernetes cluster",
    "the React frontend",
    "database schemas",
    "the CI pipeline",
    "an iOS app",
    "the billing report",
    "the search index",
    "the login page",
    "a Python package",
]
RULES = [
    "keep {0} behind a flag",
    "run the slow suite before {0} changes",
    "ask {1} before touching {0}",
    "write the failing test for {0} first",
    "never edit {0} by hand",
    "keep a changelog entry for {0}",
    "pin the version that {1} approved for {0}",
]
PROMPTS = (
    "please deploy the payments service to the kubernetes cluster and check the logs",
    "bump the version of the python package and publish it",
    "why does the login page flicker in the react frontend?",
    "write a migration that adds a column to the orders table",
    "what is the capital of Portugal and when was it founded",
)


def main() -> None:
    """Measure and print one line per hook. Exits 1 if one misses its bar."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--memories", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=15)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        env = _environment(Path(folder))
        _fill(Path(folder), given.memories)
        _drain(env)
        failed = [event for event, bar in BARS.items() if not _measured(event, bar, env, given.rounds)]
    sys.exit(bool(failed))


def _environment(folder: Path) -> dict[str, str]:
    (folder / "bin").mkdir()
    program = folder / "bin" / "engram"
    # As pip writes it for `[project.scripts]`.
    program.write_text(f"#!{sys.executable}\nimport sys\nfrom engram.__main__ import run\nsys.exit(run())\n")
    program.chmod(0o755)
    return {
        **os.environ,
        "PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
        "ENGRAM_HOME": str(folder / "home"),
        "ENGRAM_CACHE": str(folder / "cache"),
    }


def _fill(folder: Path, memories: int) -> None:
    random = Random(15)
    with Engram.open(folder / "home", cache=folder / "cache") as mem:
        for start in range(0, memories, 1000):
            mem.add_batch([_memory(random, n) for n in range(start, min(start + 1000, memories))])
        mem.search("deploy")


def _drain(env: dict[str, str]) -> None:
    """Embed the memories for later prompts, as Claude Code does once in the background while a session starts."""
    took = _timed(["sh", str(ROOT / "plugin/hooks/engram.sh"), "drain"], b'{"session_id": "s"}', env)
    print(f"drain          {took:6.1f} ms   the first one, in the background")


def _memory(random: Random, number: int) -> dict[str, str]:
    thing = random.choice(THINGS)
    rule = random.choice(RULES).format(thing, f"person {number}")
    return {"statement": f"{rule.capitalize()} ({number})", "situation": f"{random.choice(VERBS)} {thing}"}


def _measured(event: str, bar: float, env: dict[str, str], rounds: int) -> bool:
    bare, hook = [], []
    for number in range(-2, rounds):
        payload = {"session_id": f"s{number}", "cwd": str(ROOT), "transcript_path": "/nonexistent/s.jsonl", "source": "startup",
                   "prompt": PROMPTS[number % len(PROMPTS)]}  # fmt: skip
        one = _timed([sys.executable, "-c", "pass"], b"", env)
        two = _timed(["sh", str(ROOT / "plugin/hooks/engram.sh"), event], json.dumps(payload).encode(), env)
        if number >= 0:
            bare.append(one)
            hook.append(two)
    floor, median = statistics.median(bare), statistics.median(hook)
    print(f"{event:<14} {median:6.1f} ms   bare start {floor:5.1f} ms   ratio {median / floor:4.1f}   bar {bar}")
    return median / floor <= bar


def _timed(command: list[str], given: bytes, env: dict[str, str]) -> float:
    started = time.perf_counter()
    subprocess.run(command, input=given, env=env, check=True, stdout=subprocess.PIPE)
    return 1000 * (time.perf_counter() - started)


if __name__ == "__main__":
    main()
