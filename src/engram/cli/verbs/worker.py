"""worker: does the work that follows on the ledger, such as drawing facts from what was said."""

import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

from engram.cli.declared import Option
from engram.cli.exits import FAILED
from engram.cli.surface import Surface
from engram.model.errors import InvalidInput, Refused

if TYPE_CHECKING:
    from datetime import datetime

    from engram.client import Engram
    from engram.model.task import Job
    from engram.sessions.jobs import Worked

IDLE_SECONDS = 1.0
"""How often a worker with nothing to do looks again."""
Once = Annotated[bool, Option("--once", help="Do what is due and end.")]
ListJobs = Annotated[bool, Option("--list", help="Show the jobs that are not done, and do nothing.")]
Retry = Annotated[
    str, Option("--retry", metavar="JOB", help="Let a job that was given up try again, and do nothing else.")
]
_OUTCOMES = (("done", "green"), ("retried", "yellow"), ("dead", "bold red"))
_WORDS = {"done": "done", "retried": "put off", "dead": "given up"}


def worker(surface: Surface, once: Once = False, list_: ListJobs = False, retry: Retry = "") -> None:
    """Do the work that follows on the ledgers.

    Draws facts from turns, and asks a model again that did not answer. Goes on until it is interrupted (SIGINT, SIGTERM), and
    then finishes the job at hand. Any number of workers may run on one store; while it is paused they wait. A job that fails is
    put off for longer each time, and given up after some attempts: then --once ends with exit 1. With --json each job is an
    object on a line of its own, and --once answers with one object for all.
    """
    if once + list_ + bool(retry) > 1:
        raise InvalidInput("--once, --list and --retry are three different things; give one")
    with surface.memory() as mem:
        if list_:
            _list(surface, mem.jobs.list(limit=None), mem.upkeep.clock())
        elif retry:
            _again(surface, mem.jobs.retry(retry))
        elif once:
            _once(surface, mem)
        else:
            _lasting(surface, mem)


def _list(surface: Surface, found: "Sequence[Job]", now: "datetime") -> None:
    from engram.cli import drawing
    from engram.cli.drawing import Column
    from engram.cli.plain_text import ago, line

    styles = {"waiting": "", "leased": "cyan", "dead": "bold red"}
    rows: list[list[drawing.Cell]] = [
        [
            (job.id, "cyan"),
            (job.status, styles.get(job.status, "")),
            "due" if job.status == "waiting" and job.run_after <= now else ago(job.leased_until or job.run_after, now),
            f"{job.attempts}×",
            line(job.error),
        ]
        for job in found
    ]
    columns = [Column("job"), Column("state"), Column("when"), Column("tried", right=True), Column("error", grows=True)]
    surface.answer(found, lambda: drawing.table(columns, rows) if rows else None)
    if not found:
        surface.hint("engram: nothing waits")


def _again(surface: Surface, job: "Job") -> None:
    from engram.cli import drawing

    surface.answer(job, lambda: drawing.lines([("waits", "green"), "  ", (job.id, "cyan")]))
    surface.hint("engram: `engram worker` does it")


def _once(surface: Surface, mem: "Engram") -> None:
    from engram.client import PAUSED
    from engram.sessions.jobs import Worked

    total = Worked()

    def told(worked: "Worked") -> None:
        for outcome, _ in _OUTCOMES:
            getattr(total, outcome).extend(getattr(worked, outcome))
        if not surface.as_json:
            _draw(mem, worked)

    if mem.upkeep.paused:
        raise Refused(PAUSED)
    with _until_stopped() as stop:
        _work(mem, stop, told, once=True)
    surface.answer(total, lambda: None)
    if not total:
        surface.hint("engram: nothing is due")
    if total.dead:
        raise SystemExit(FAILED)


def _lasting(surface: Surface, mem: "Engram") -> None:
    surface.hint("engram: working; interrupt it to end")
    tell = _tell_program if surface.as_json else _draw
    with _until_stopped() as stop:
        _work(mem, stop, lambda worked: tell(mem, worked), once=False)
    surface.answered = True
    surface.hint("engram: ended; what is left waits for the next worker")


def _work(mem: "Engram", stop: threading.Event, told: "Callable[[Worked], None]", *, once: bool) -> None:
    """One job at a time, so that a worker told to stop has only the one at hand to finish. A pause holds for it too."""
    from engram.sessions.jobs import patiently

    def one() -> "Worked | None":
        return None if mem.upkeep.paused else mem.jobs.work(1)

    while not stop.is_set():
        worked = one() if once else patiently(one, stop)
        if worked:
            told(worked)
        elif once:
            return
        else:
            stop.wait(IDLE_SECONDS)


@contextmanager
def _until_stopped() -> Iterator[threading.Event]:
    """Set when the process is asked to end. Asked a second time, it ends at once; the job is another worker's then."""
    stop = threading.Event()

    def asked(_number: int, _frame: object) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()

    before = {number: signal.signal(number, asked) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _told(mem: "Engram", worked: "Worked") -> "Iterator[tuple[str, str, str]]":
    """Each job that was worked on, what became of it, and why."""
    failed = {job.id: job.error for job in mem.jobs.list(limit=None)} if worked.retried or worked.dead else {}
    for outcome, _ in _OUTCOMES:
        for job_id in getattr(worked, outcome):
            yield job_id, outcome, failed.get(job_id, "")


def _draw(mem: "Engram", worked: "Worked") -> None:
    from engram.cli import drawing
    from engram.cli.plain_text import line

    for job_id, outcome, error in _told(mem, worked):
        words = (f"{_WORDS[outcome]:<9}", dict(_OUTCOMES)[outcome])
        drawing.lines([words, (job_id, "cyan"), (f"  {line(error)}" if error else "", "bright_black")])
    sys.stdout.flush()


def _tell_program(mem: "Engram", worked: "Worked") -> None:
    import json

    for job_id, outcome, error in _told(mem, worked):
        sys.stdout.write(json.dumps({"job": job_id, "outcome": outcome, "error": error}) + "\n")
    sys.stdout.flush()
