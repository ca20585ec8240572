"""Measures the speed of a ledger: one durable append next to the disk's own, then search and context among many tasks."""

import random
import shutil
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.command import URL_HELP, parser, print_report, whole
from engram.bench import figures as floors
from engram.bench.figures import Figure, progress_line
from engram.bench.speed import questions, statements
from engram.client import Engram
from engram.model.records import TaskRun
from engram.store.intake import NewEvent
from engram.store.protocol import Progress

APPENDS, ROUNDS = 200, 60
WARM_EVENTS, WARM_QUESTIONS = 2_000, 200
"""Calls that a process has made before it is timed."""
BATCH = 500
CRITICAL = 5


def measure(
    events: int = 1_000_000,
    tasks: int = 200,
    *,
    url: str | None = None,
    tenant: str | None = None,
    folder: Path | None = None,
    progress: Progress = lambda *_: None,
) -> dict[str, Any]:
    """Fill ledgers with events across tasks and time what an agent waits for.

    With a `folder`, the store stays there and the next run of the same size uses it again.
    """
    place = folder or Path(tempfile.mkdtemp(prefix="engram-bench-"))
    try:
        opened = (
            Engram.open(url=url, tenant=tenant)
            if url
            else Engram.open(place / "home", cache=place / "cache", directory=place)
        )
        with opened as mem:
            figures = [*_appends(mem, place), *_filled(mem, events, tasks, progress)]
        return {"events": events, "tasks": tasks, "figures": [asdict(figure) for figure in figures]}
    finally:
        if folder is None:
            shutil.rmtree(place, ignore_errors=True)


def _appends(mem: Engram, folder: Path) -> list[Figure]:
    task = mem.start_task("Measure one append after the other", scope="project:bench")
    said = list(statements(APPENDS, seed=3))
    # A process that has worked for a while knows most words it meets.
    for batch in _batches(task, WARM_EVENTS, 7):
        mem.store.append_events(task.id, batch)
    bare = floors.write_floor(folder, times=APPENDS)
    samples = floors.samples_ms(lambda i: mem.record_event(task.id, "user", said[i]), APPENDS)
    (indexing,) = floors.samples_ms(lambda _: mem.list_events(task.id, last=1), 1)
    mem.complete_task(task.id)
    p50, p95 = floors.percentile(samples, 0.5), floors.percentile(samples, 0.95)
    mean = (sum(samples) + indexing) / APPENDS
    return [
        Figure("ledger append, durable ÷ append + fsync", p50, "ms", p95, floor=bare, ratio=p50 / bare),
        # On files, some appends wait for the index and are added together before the next question.
        Figure("the same with its share of the indexing, mean", mean, "ms", floor=bare, ratio=mean / bare),
    ]


def _filled(mem: Engram, events: int, tasks: int, progress: Progress) -> list[Figure]:
    runs, seconds, made = _fill(mem, events, tasks, progress)
    asked = questions(ROUNDS, events)
    chosen = random.Random(5).choices(runs, k=ROUNDS)
    for place, question in enumerate(questions(WARM_QUESTIONS, events, seed=9)):
        mem.search_events(question, task=runs[place % len(runs)].id)
    for question, task in zip(asked[:3], chosen, strict=False):
        mem.search_events(question, mode="keyword")
        mem.build_context(task.id, question)
    everywhere = floors.samples_ms(lambda i: mem.search_events(asked[i], mode="keyword"), ROUNDS)
    built = floors.samples_ms(lambda i: mem.build_context(chosen[i].id, asked[i]), ROUNDS)
    return [
        *([Figure("events appended, in batches of 500", made / seconds, "events/s")] if made else []),
        _timed("search_events within a task, hybrid", _within(mem, asked, chosen, "hybrid")),
        _timed("search_events within a task, keyword", _within(mem, asked, chosen, "keyword")),
        _timed("search_events over all, keyword", everywhere),
        _timed("build_context", built),
        Figure("peak RSS", floors.peak_memory(), "MB"),
    ]


def _within(mem: Engram, asked: list[str], chosen: list[TaskRun], mode: str) -> list[float]:
    return floors.samples_ms(lambda i: mem.search_events(asked[i], task=chosen[i].id, mode=mode), ROUNDS)


def _fill(mem: Engram, events: int, tasks: int, progress: Progress) -> tuple[list[TaskRun], float, int]:
    known = [task for task in mem.list_tasks("running", limit=None) if task.metadata.get("bench") == events]
    if len(known) == tasks:
        return known, 0.0, 0
    runs = [
        mem.start_task(f"Work on part {n} of the system", scope="project:bench", metadata={"bench": events})
        for n in range(tasks)
    ]
    mem.add_batch([{"statement": text, "scope": "project:bench"} for text in statements(2_000, seed=11)])
    mem.add_batch(
        [
            {"statement": f"Never touch module {n}", "scope": "project:bench", "critical_slot": f"m{n}"}
            for n in range(CRITICAL)
        ]
    )
    each, done, seconds = events // tasks, 0, 0.0
    for number, task in enumerate(runs):
        for batch in _batches(task, each, number):
            started = time.perf_counter()
            mem.store.append_events(task.id, batch)
            seconds += time.perf_counter() - started
            done += len(batch)
            progress("appending", done, events)
        mem.create_checkpoint(
            task.id, f"Part {number} is half done", pending_steps=["test it"], decisions=["keep it small"]
        )
    return runs, seconds, done


def _batches(task: TaskRun, count: int, seed: int) -> Iterator[list[NewEvent]]:
    kinds = (("user", "message"), ("assistant", "message"), ("assistant", "tool_call"), ("tool", "tool_result"))
    at, batch = task.created, []
    for place, text in enumerate(statements(count, seed=1000 + seed)):
        role, kind = kinds[place % len(kinds)]
        batch.append(NewEvent(role, text, at + timedelta(seconds=place), kind, task.id))
        if len(batch) == BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def _timed(name: str, samples: list[float]) -> Figure:
    return Figure(name, floors.percentile(samples, 0.5), "ms", floors.percentile(samples, 0.95))


def main() -> None:
    """Measure with the options of the command line."""
    options = parser("ledger", "One durable append, then search and context among many tasks.")
    options.add_argument(
        "--events", type=whole(1_000), default=1_000_000, help="events of all tasks together (default: 1000000)"
    )
    options.add_argument("--tasks", type=whole(1), default=200, help="number of tasks (default: 200)")
    options.add_argument("--url", help=URL_HELP)
    options.add_argument("--folder", type=Path, help="keep the filled store there for the next run")
    given = options.parse_args()
    if given.tasks > given.events // 10:
        options.error("--tasks takes at most a tenth of --events")
    work = partial(
        measure, given.events, given.tasks, url=given.url, tenant="bench", folder=given.folder, progress=progress_line
    )
    print_report(work, as_json=given.json)


if __name__ == "__main__":
    main()
