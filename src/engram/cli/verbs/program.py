"""mcp, worker, bench: the verbs that keep running, to serve agents, run jobs, or measure."""

import json
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engram.cli import display
from engram.cli.display import Column, ago, line
from engram.cli.surface import FAILED, Surface
from engram.cli.verbs.options import Options
from engram.model.errors import EngramError, InvalidInput, Refused
from engram.model.records import Job

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engram.bench.dataset import SessionOfTurns
    from engram.client import Engram
    from engram.client.tenant_worker import AllTenantsWorker
    from engram.sessions.jobs import WorkerTurn, WorkResult

IDLE_SECONDS = 1.0
"""Seconds that an idle worker waits before it checks again."""
_OUTCOMES = (("done", "green"), ("retried", "yellow"), ("dead", "bold red"))
_WORDS = {"done": "done", "retried": "postponed", "dead": "failed"}


def worker(
    surface: Surface, once: bool = False, list_: bool = False, retry: str = "", all_tenants: bool = False
) -> None:
    """Carry out `engram worker`."""
    if once + list_ + bool(retry) > 1:
        raise InvalidInput("Give only one of --once, --list and --retry")
    if all_tenants:
        if list_ or retry:
            raise InvalidInput("--list and --retry work on one tenant, $ENGRAM_TENANT; leave --all-tenants out")
        _work_for_all(surface, once)
        return
    with surface.memory() as mem:
        if list_:
            _list_jobs(surface, mem.jobs.list(limit=None), mem.upkeep.clock())
        elif retry:
            _report_retry(surface, mem.jobs.retry(retry))
        elif once:
            _run_once(surface, mem)
        else:
            _run_continuously(surface, mem)


def _list_jobs(surface: Surface, found: Sequence[Job], now: datetime) -> None:
    styles = {"waiting": "", "leased": "cyan", "dead": "bold red"}
    rows: list[list[display.Cell]] = [
        [
            (job.id, "cyan"),
            (job.status, styles.get(job.status, "")),
            "due" if job.status == "waiting" and job.run_after <= now else ago(job.leased_until or job.run_after, now),
            f"{job.attempts}×",
            line(job.error),
        ]
        for job in found
    ]
    columns: list[Column | str] = ["job", "state", "when", Column("tried", right=True), "error"]
    surface.answer(found, lambda: display.table(columns, rows))
    if not found:
        surface.hint("engram: no open jobs")


def _report_retry(surface: Surface, job: Job) -> None:
    surface.answer(job, lambda: display.lines([("scheduled", "green"), "  ", (job.id, "cyan")]))
    surface.hint("engram: `engram worker` runs it")


def _run_once(surface: Surface, mem: "Engram") -> None:
    from engram.client import PAUSED_MESSAGE
    from engram.sessions.jobs import WorkResult

    total = WorkResult()

    def record_outcome(worked: "WorkResult") -> None:
        total.add(worked)
        if not surface.as_json:
            _draw_outcomes(worked)

    if mem.upkeep.paused:
        raise Refused(PAUSED_MESSAGE)
    with _until_stopped() as stop:
        _work(mem, stop, record_outcome, once=True)
    surface.answer(total, lambda: None)
    if not total:
        surface.hint("engram: nothing is due")
    if total.dead:
        raise SystemExit(FAILED)


def _run_continuously(surface: Surface, mem: "Engram") -> None:
    surface.hint("engram: working; interrupt to end")
    with _until_stopped() as stop:
        _work(mem, stop, _write_outcomes if surface.as_json else _draw_outcomes, once=False)
    surface.answered = True
    surface.hint("engram: ended; the next worker continues with the open jobs")


def _work(mem: "Engram", stop: threading.Event, told: "Callable[[WorkResult], None]", *, once: bool) -> None:
    """Run one job at a time, so that a stopped worker only has the current one to finish. A pause also stops it."""
    from engram.sessions.jobs import add_jitter, retry_transient

    def one() -> "WorkResult | None":
        return None if mem.upkeep.paused else mem.jobs.work(1)

    while not stop.is_set():
        worked = one() if once else retry_transient(one, stop)
        if worked:
            told(worked)
        elif once:
            _harvest_spooled(mem)
            return
        else:
            _harvest_spooled(mem)
            stop.wait(add_jitter(IDLE_SECONDS))


def _harvest_spooled(mem: "Engram") -> None:
    """Read the transcripts that hooks left, a little at a time. The doctor reports a spool that cannot be read."""
    from contextlib import suppress

    with suppress(EngramError, OSError):
        if not mem.upkeep.paused:
            mem.harvest_spooled(seconds=IDLE_SECONDS)


def _work_for_all(surface: Surface, once: bool) -> None:
    from engram.client.tenant_worker import AllTenantsWorker

    if surface.home is not None:
        raise InvalidInput("--all-tenants works on a server ($ENGRAM_URL), --home on a store of files; give one")
    with AllTenantsWorker.open() as everyone, _until_stopped() as stop:
        if once:
            _run_once_for_all(surface, everyone, stop)
            return
        surface.hint("engram: working for all tenants; interrupt to end")
        everyone.run(stop, IDLE_SECONDS, partial(_report_turn, surface))
    surface.answered = True
    surface.hint("engram: ended; the next worker continues with the open jobs")


def _run_once_for_all(surface: Surface, everyone: "AllTenantsWorker", stop: threading.Event) -> None:
    from engram.sessions.jobs import WorkResult

    total: dict[str, WorkResult] = {}
    failed: dict[str, str] = {}
    while not stop.is_set() and (turn := everyone.next_turn()) is not None:
        if turn.failed:
            failed[turn.tenant] = _redact_text(turn.failed)
        elif turn.worked:
            total.setdefault(turn.tenant, WorkResult()).add(turn.worked)
        if not surface.as_json:
            _report_turn(surface, turn)
    surface.answer({"tenants": total, "failed": failed}, lambda: None)
    if not total and not failed:
        surface.hint("engram: nothing is due")
    if failed or any(worked.dead for worked in total.values()):
        raise SystemExit(FAILED)


def _report_turn(surface: Surface, turn: "WorkerTurn") -> None:
    if surface.as_json:
        _write_outcomes(turn.worked, turn.tenant)
        if turn.failed:
            _write_line({"tenant": turn.tenant, "job": "", "outcome": "failed", "error": _redact_text(turn.failed)})
    else:
        _draw_outcomes(turn.worked, turn.tenant)
        if turn.failed:
            surface.say(f"engram: {turn.tenant} is skipped for a while: {_redact_text(turn.failed)}")


def _redact_text(text: str) -> str:
    from engram.gates.secrets.scan import redact

    return redact(text)[0]


@contextmanager
def _until_stopped() -> Iterator[threading.Event]:
    """An event that is set when the process should end. A second signal ends it at once and leaves the job to another worker."""
    stop = threading.Event()

    def request_stop(_number: int, _frame: object) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()

    before = {number: signal.signal(number, request_stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _job_outcomes(worked: "WorkResult") -> Iterator[tuple[str, str, str]]:
    """Each job that was run, its outcome, and the reason."""
    for outcome, _ in _OUTCOMES:
        for job_id in getattr(worked, outcome):
            yield job_id, outcome, worked.errors.get(job_id, "")


def _draw_outcomes(worked: "WorkResult", tenant: str = "") -> None:
    for job_id, outcome, error in _job_outcomes(worked):
        words = (f"{_WORDS[outcome]:<11}", dict(_OUTCOMES)[outcome])
        whose = f"{line(tenant)}  " if tenant else ""
        display.lines([words, whose, (job_id, "cyan"), (f"  {line(error)}" if error else "", "bright_black")])
    sys.stdout.flush()


def _write_outcomes(worked: "WorkResult", tenant: str = "") -> None:
    whose = {"tenant": tenant} if tenant else {}
    for job_id, outcome, error in _job_outcomes(worked):
        _write_line({**whose, "job": job_id, "outcome": outcome, "error": error})


def _write_line(data: dict[str, str]) -> None:
    sys.stdout.write(json.dumps(data) + "\n")
    sys.stdout.flush()


def mcp(
    surface: Surface,
    http: bool = False,
    host: str = "127.0.0.1",
    port: int | None = None,
    token_file: Path | None = None,
    allow_host: list[str] | None = None,
) -> None:
    """Carry out `engram mcp`."""
    from engram.mcp import server

    home = str(surface.home.expanduser().absolute()) if surface.home else None
    if http:
        server.main_http(home, host=host, port=port, token_file=token_file, names=tuple(allow_host or ()))
        return
    if port is not None or token_file is not None or allow_host or host != "127.0.0.1":
        raise InvalidInput("--host, --port, --token-file and --allow-host belong to --http")
    server.main(home)


class RetrievalOptions(Options):
    """Options of the retrieval benchmarks."""

    file: Path
    mode: str = "hybrid"
    fusion: str | None = None
    baseline: str | None = None
    wordings: Path | None = None
    limit: int | None = None
    url: str | None = None


def locomo(surface: Surface, **given: Any) -> None:
    """Carry out `engram bench locomo`."""
    asked = RetrievalOptions(**given)
    _measure_retrieval("locomo", surface, asked)


def longmemeval(surface: Surface, distractors: Path | None = None, **given: Any) -> None:
    """Carry out `engram bench longmemeval`."""
    asked = RetrievalOptions(**given)
    from engram.bench.longmemeval import load_distractors

    _measure_retrieval("longmemeval", surface, asked, load_distractors(distractors) if distractors else ())


def beam(surface: Surface, **given: Any) -> None:
    """Carry out `engram bench beam`."""
    asked = RetrievalOptions(**given)
    _measure_retrieval("beam", surface, asked)


def speed(surface: Surface, n: str = "1000,10000") -> None:
    """Carry out `engram bench speed`."""
    from engram.bench.figures import figures_text, progress_line
    from engram.bench.speed import measure, parse_sizes

    reports = [measure(count, progress=progress_line) for count in parse_sizes(n)]
    surface.answer(reports, lambda: _write_texts(*map(figures_text, reports)))


def _measure_retrieval(
    kind: str, surface: Surface, asked: RetrievalOptions, distractors: "Sequence[SessionOfTurns]" = ()
) -> None:
    from importlib import import_module

    from engram.bench.dataset import add_sessions, add_wordings
    from engram.bench.figures import progress_line, retrieval_text
    from engram.bench.retrieval import BenchQuestion, measure

    asking = BenchQuestion(asked.mode, asked.fusion, asked.limit, kind != "longmemeval", asked.baseline)
    conversations = add_sessions(import_module(f"engram.bench.{kind}").load(asked.file), distractors)
    if asked.wordings:
        conversations = add_wordings(conversations, asked.wordings)
    report = measure(conversations, asking, progress_line, asked.url)
    surface.answer(report, lambda: _write_texts(retrieval_text(report)))


def _write_texts(*texts: str) -> None:
    for text in texts:
        sys.stdout.write(text + "\n")
