"""How long `engram recall QUERY` takes over a full home: 2,000 memories, 200 skills, 50 rules and 500 sessions of 200 MB.

    python -m benchmarks.sources [FOLDER]

Makes the home in a folder (by default a temporary one; a folder that has it already is used as it is), then runs the command as a user
does: once with an empty index, then warm, each time a new process. Sessions look like Claude Code's: a tenth of their bytes is what was said, the
rest are results of tools and records of the program. The bars of issue 15: 20 s the first time, 500 ms warm.
"""

import json
import os
import random
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import engram
from engram import Engram
from engram.bench.speed import statements

MEMORIES, SKILLS, RULES, SESSIONS, SESSION_BYTES = 2_000, 200, 50, 500, 400_000
SAID = 0.08
"""The share of a session's bytes that the user and the assistant write."""
WARM = 11
WAITING = "not read yet"
SUBJECTS = (
    "billing exporter", "login form", "search index", "deploy pipeline", "invoice parser", "rate limiter", "cache layer",
    "webhook receiver", "user import", "report generator", "mail queue", "audit log", "feature flags", "payment gateway",
    "image resizer", "session store", "metrics collector", "backup job", "schema migration", "retry policy",
)  # fmt: skip
VERBS = ("checks", "writes", "drops", "retries", "validates", "splits", "merges", "renames", "caches", "compresses")
OBJECTS = (
    "the old records", "every failed request", "the staging tables", "stale tokens", "the nightly totals", "open invoices",
    "unknown columns", "duplicate rows", "the customer list", "pending events", "large uploads", "empty batches",
)  # fmt: skip
REASONS = (
    "because the tests depend on it", "before the release", "when the queue is full", "after a timeout of thirty seconds",
    "so that reviews stay short", "unless the flag is off", "in the eu region only", "as the runbook says",
)  # fmt: skip
QUERIES = (
    "how does the invoice parser handle unknown columns?", "rollback of the schema migration", "rate limiter timeout",
    "writing tests for the webhook receiver", "where are stale tokens cached?", "deploy pipeline before the release",
)  # fmt: skip


PLAIN = list(statements(20_000))
"""Filler sentences without a specific subject."""


def sentence(rng: random.Random) -> str:
    """A sentence; one in four is about a subject that somebody may ask for."""
    if rng.random() < 0.75:
        return f"{rng.choice(PLAIN).capitalize()}."
    subject = f"The {rng.choice(SUBJECTS)} {rng.choice(VERBS)} {rng.choice(OBJECTS)}"
    return f"{subject} {rng.choice(REASONS)} (module{rng.randrange(400)}.py, line {rng.randrange(900)})."


def prose(rng: random.Random, size: int) -> str:
    text = ""
    while len(text) < size:
        text += sentence(rng) + " "
    return text[:size].rpartition(" ")[0]


def session(rng: random.Random, directory: Path, number: int) -> Iterator[str]:
    at = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(hours=12 * number)
    written = said = turn = 0
    while written < SESSION_BYTES:
        at += timedelta(seconds=20)
        turn += 1
        head = {
            "uuid": f"{number}-{turn}",
            "sessionId": str(number),
            "timestamp": at.isoformat(),
            "cwd": str(directory),
        }
        if said <= SAID * written:
            role = "user" if turn % 5 == 0 or not said else "assistant"
            text = prose(rng, 200 if role == "user" else 900)
            said += len(text)
            content: object = text if role == "user" else [{"type": "text", "text": text}]
            line = {"type": role, **head, "message": {"role": role, "content": content}}
        else:
            returned = "\n".join(f"{at:04}\t{sentence(rng)}" for at in range(rng.randrange(5, 120)))
            result = [
                {"type": "tool_result", "tool_use_id": f"t{turn}", "content": [{"type": "text", "text": returned}]}
            ]
            line = {"type": "user", **head, "message": {"role": "user", "content": result}, "toolUseResult": returned}
        record = json.dumps(line) + "\n"
        written += len(record)
        yield record


def make(folder: Path) -> None:
    """Create the home, and a store with memories."""
    rng = random.Random(15)
    home, project = folder / "home", folder / "home" / "work" / "acme"
    (project / ".git").mkdir(parents=True)
    (project / "src").mkdir()
    (project / "src" / "main.py").write_text("pass\n")
    (project / "CLAUDE.md").write_text(f"# Acme\n\n## Build\n{prose(rng, 2000)}\n\n## Tests\n{prose(rng, 2000)}\n")
    rules, skills = project / ".claude" / "rules", home / ".claude" / "skills"
    for number in range(RULES):
        rules.mkdir(parents=True, exist_ok=True)
        head = '---\npaths: "src/**/*.{py,pyi}"\n---\n' if number % 2 else ""
        (rules / f"rule{number}.md").write_text(f"{head}# Rule {number}\n{prose(rng, 1500)}\n")
    for number in range(SKILLS):
        plugin = home / ".claude" / "plugins" / "cache" / "market" / f"plugin{number}" / "1.0.0" / "skills"
        where = (skills if number % 2 else plugin) / f"skill{number}"
        where.mkdir(parents=True)
        (where / "SKILL.md").write_text(
            f"---\nname: skill{number}\ndescription: {sentence(rng)}\n---\n# Steps\n{prose(rng, 4000)}\n"
        )
    transcripts = home / ".claude" / "projects" / re.sub(r"[^a-zA-Z0-9]", "-", str(project))
    (transcripts / "memory").mkdir(parents=True)
    (transcripts / "memory" / "MEMORY.md").write_text(f"# Memory\n{prose(rng, 6000)}\n")
    for number in range(SESSIONS):
        path = transcripts / f"{number:08d}-0000-4000-8000-000000000000.jsonl"
        path.write_text("".join(session(rng, project, number)))
    with Engram.open(folder / "store", cache=folder / "cache") as mem:
        mem.add_batch([{"statement": f"{sentence(rng)} Note n{number}."} for number in range(MEMORIES)])


def run(folder: Path, query: str, *options: str) -> tuple[float, float, str]:
    """The wall and processor seconds of a recall, and its output."""
    home = folder / "home"
    own = {"HOME": str(home), "ENGRAM_HOME": str(folder / "store"), "ENGRAM_CACHE": str(folder / "cache")}
    environment = {**os.environ, **own, "PYTHONPATH": str(Path(engram.__file__).parents[1])}
    for unwanted in ("CLAUDE_CONFIG_DIR", "PYTHONDONTWRITEBYTECODE"):  # an installed program has its bytecode
        environment.pop(unwanted, None)
    begun, used = time.perf_counter(), _processor()
    done = subprocess.run(
        [sys.executable, "-m", "engram", "recall", query, *options],
        cwd=home / "work" / "acme", env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return time.perf_counter() - begun, _processor() - used, done.stdout + done.stderr


def _processor() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measure(folder: Path) -> None:
    """Print the figures. Processor seconds are more reliable if other programs run."""
    run(folder, "warm the bytecode and the store")
    for path in (folder / "cache" / "sources").rglob("*"):
        if path.is_file():
            path.unlink()
    first, used, printed = run(folder, QUERIES[0])
    size = sum(path.stat().st_size for path in (folder / "home" / ".claude" / "projects").rglob("*.jsonl"))
    print(f"{SESSIONS} sessions, {size / 1e6:.0f} MB; load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
    print(f"first recall {first:.1f} s, {used:.1f} s of a processor (bar 20 s); all read: {WAITING not in printed}")
    while WAITING in printed:
        further, used, printed = run(folder, QUERIES[0])
        print(f"  and {further:.1f} s, {used:.1f} s of a processor for what waited")
    index = sum(path.stat().st_size for path in (folder / "cache" / "sources").rglob("*") if path.is_file())
    print(f"index {index / 1e6:.0f} MB")
    ways = {"bare Python start": None, "memories only": ("--memories-only",), "warm recall": ()}
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    for at in range(WARM):
        for name, options in ways.items():
            query = QUERIES[at % len(QUERIES)]
            times[name].append(_bare() if options is None else run(folder, query, *options)[:2])
    bare = statistics.median(used for _, used in times["bare Python start"])
    for name, both in times.items():
        wall, used = (statistics.median(column) for column in zip(*both, strict=True))
        print(f"{name}: p50 {wall * 1000:.0f} ms, {used * 1000:.0f} ms of a processor, {used / bare:.1f} bare starts")
    print("bar: 500 ms")


def _bare() -> tuple[float, float]:
    begun, used = time.perf_counter(), _processor()
    subprocess.run([sys.executable, "-c", "pass"], check=True)
    return time.perf_counter() - begun, _processor() - used


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="engram-sources-") as temporary:
        folder = Path(sys.argv[1] if len(sys.argv) > 1 else temporary)
        if not (folder / "store").exists():
            make(folder)
        measure(folder)


if __name__ == "__main__":
    main()
