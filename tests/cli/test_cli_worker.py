"""worker: does what waits, and ends when it is asked to."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from engram import Engram
from engram.model.errors import StoreCorrupt
from engram.model.records import Job
from engram.sessions.jobs import MAX_JOB_ATTEMPTS, Jobs
from engram.store.defaults import Server

from .conftest import Console

ENGRAM = [sys.executable, "-m", "engram.cli"]
PATIENCE = 60.0
"""Seconds after which a program counts as hung."""
Handle = Callable[[Job], None]


@pytest.fixture
def turns(cli: Console) -> list[str]:
    """Jobs that wait: two turns of a task from which facts are to be drawn."""
    task = cli.json("task", "start", "Get to know the user")["id"]
    for words in ("I prefer tea over coffee.", "We deploy on Tuesdays."):
        cli.json("task", "turn", task, "--user", words)
    return [job["id"] for job in cli.json("worker", "--list")]


def handled_by(handle: Handle, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the jobs be done by something else than the engine."""

    def jobs(mem: Engram) -> Jobs:
        return Jobs(mem.store, mem.upkeep.clock, {"derive": handle}, "test")

    monkeypatch.setattr(Engram, "jobs", property(jobs))


def test_the_list_shows_what_waits(cli: Console, turns: list[str]) -> None:
    lines = cli("worker", "--list").stdout.splitlines()
    assert [line.split()[:3] for line in lines] == [[job, "waiting", "due"] for job in turns]
    assert len(turns) == 2


def test_nothing_waits_and_nothing_is_due_is_said(cli: Console) -> None:
    assert "no open jobs" in cli("worker", "--list").stderr
    assert "nothing is due" in cli("worker", "--once").stderr
    assert cli.json("worker", "--once") == {"done": [], "retried": [], "dead": [], "errors": {}}


def test_once_does_what_is_due_and_tells(cli: Console, turns: list[str]) -> None:
    result = cli("worker", "--once")
    assert result.exit_code == 0
    assert [line.split() for line in result.stdout.splitlines()] == [["done", job] for job in turns]
    assert cli.json("worker", "--list") == []
    assert "tea" in cli("list", "--status", "any").stdout


def test_once_in_json_is_one_answer(cli: Console, turns: list[str]) -> None:
    assert cli.json("worker", "--once") == {"done": turns, "retried": [], "dead": [], "errors": {}}


def test_a_job_that_fails_is_put_off_with_its_reason(
    cli: Console, turns: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(job: Job) -> None:
        raise RuntimeError("the kettle is cold")

    handled_by(broken, monkeypatch)
    result = cli("worker", "--once")
    assert result.exit_code == 0
    assert "postponed" in result.stdout and "the kettle is cold" in result.stdout
    waiting = cli.json("worker", "--list")
    assert [(job["status"], job["attempts"]) for job in waiting] == [("waiting", 1)] * len(turns)
    assert cli.json("worker", "--once")["retried"] == []


@pytest.fixture
def given_up(cli: Console, monkeypatch: pytest.MonkeyPatch) -> str:
    """A job that has used up its attempts."""

    def broken(job: Job) -> None:
        raise RuntimeError("the kettle is cold")

    at = datetime(2026, 1, 1, tzinfo=UTC)
    with Engram.open(cli.folder / "home") as mem:
        mem.store.enqueue([Job("derive:EVT-1", "derive", at, at, attempts=MAX_JOB_ATTEMPTS - 1)])
    with monkeypatch.context() as patched:
        handled_by(broken, patched)
        result = cli("worker", "--once")
    assert result.exit_code == 1
    assert "failed" in result.stdout
    return "derive:EVT-1"


def test_a_job_given_up_stays_in_sight_and_can_try_again(
    cli: Console, given_up: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert [(job["id"], job["status"]) for job in cli.json("worker", "--list")] == [(given_up, "dead")]
    assert "the kettle is cold" in cli("worker", "--list").stdout
    assert cli.json("worker", "--retry", given_up)["status"] == "waiting"
    handled_by(lambda job: None, monkeypatch)
    assert cli.json("worker", "--once")["done"] == [given_up]


def test_only_what_was_given_up_can_be_retried(cli: Console, turns: list[str]) -> None:
    assert cli("worker", "--retry", turns[0]).exit_code == 3
    assert cli("worker", "--retry", "derive:nope").exit_code == 3


def test_one_thing_at_a_time(cli: Console) -> None:
    assert cli("worker", "--once", "--list").exit_code == 2


@pytest.mark.parametrize("asked", [signal.SIGINT, signal.SIGTERM])
def test_asked_to_end_it_finishes_the_job_at_hand_and_leaves_the_rest(
    cli: Console, turns: list[str], asked: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = signal.getsignal(asked)
    handled_by(lambda job: signal.raise_signal(asked), monkeypatch)
    result = cli("worker")
    assert result.exit_code == 0
    assert result.stdout.split() == ["done", turns[0]]
    assert "next worker continues" in result.stderr
    assert [job["id"] for job in cli.json("worker", "--list")] == turns[1:]
    assert signal.getsignal(asked) is before


def test_asked_twice_it_ends_at_once_and_the_job_is_another_workers(
    cli: Console, turns: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def asked_twice(job: Job) -> None:
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGTERM)

    handled_by(asked_twice, monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        cli("worker")
    assert [job["status"] for job in cli.json("worker", "--list")] == ["leased", "waiting"]
    assert len(turns) == 2


def test_a_pause_holds_for_the_worker(cli: Console, turns: list[str]) -> None:
    cli("pause")
    assert cli("worker", "--once").exit_code == 1
    assert [job["id"] for job in cli.json("worker", "--list")] == turns


@pytest.fixture
def lasting(cli: Console, turns: list[str]) -> Iterator["subprocess.Popen[str]"]:
    """A worker in a process of its own, told to speak JSON."""
    pipe = subprocess.PIPE
    with subprocess.Popen([*ENGRAM, "worker", "--json"], stdout=pipe, stderr=pipe, text=True) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()


def test_a_worker_that_lasts_tells_a_program_line_by_line_and_ends_gracefully(
    lasting: "subprocess.Popen[str]", turns: list[str]
) -> None:
    assert lasting.stdout is not None and lasting.stderr is not None
    told = [json.loads(lasting.stdout.readline()) for _ in turns]
    assert told == [{"job": job, "outcome": "done", "error": ""} for job in turns]
    os.kill(lasting.pid, signal.SIGTERM)
    assert lasting.wait(PATIENCE) == 0
    assert (lasting.stdout.read(), lasting.stderr.read()) == ("", "")


def test_a_worker_loads_no_rich(cli: Console) -> None:
    program = (
        "import sys; sys.argv = ['engram', 'worker', '--once']\n"
        "from engram.cli.main import run\n"
        "try: run()\n"
        "except SystemExit: pass\n"
        "print('loaded', [n for n in ('rich', 'pydantic') if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=PATIENCE)
    assert done.stdout.endswith("loaded []\n")
    assert Path(cli.folder / "home").exists()


# -- all tenants


def test_all_tenants_are_those_of_a_server(cli: Console) -> None:
    refused = cli("worker", "--all-tenants")
    assert refused.exit_code == 2
    assert "ENGRAM_URL" in refused.stderr


@pytest.fixture
def served(cli: Console, database: str, monkeypatch: pytest.MonkeyPatch) -> Console:
    """The command line on a server where two tenants have jobs."""
    monkeypatch.setenv("ENGRAM_URL", database)
    for tenant, turns in {"acme": ("I prefer tea over coffee.",), "beta": ("We deploy on Tuesdays.", "Hello!")}.items():
        with Engram.open(url=database, tenant=tenant) as mem:
            task = mem.start_task("Get to know the user").id
            for words in turns:
                mem.record_turn(task, user=words)
    return cli


@pytest.mark.parametrize(
    "options", [("--list",), ("--retry", "derive:1"), ("--home", "elsewhere")], ids=lambda given: given[0]
)
def test_what_is_about_one_store_is_not_about_all_tenants(served: Console, options: tuple[str, ...]) -> None:
    assert served("worker", "--all-tenants", *options).exit_code == 2


def test_once_for_all_tenants_tells_whose_jobs_were_done(served: Console) -> None:
    result = served("worker", "--all-tenants", "--once")
    assert result.exit_code == 0
    assert sorted(line.split()[:2] for line in result.stdout.splitlines()) == [
        ["done", "acme"],
        *[["done", "beta"]] * 2,
    ]
    assert "nothing is due" in served("worker", "--all-tenants", "--once").stderr


def test_once_for_all_tenants_in_json_is_one_answer(served: Console) -> None:
    told = served.json("worker", "--all-tenants", "--once")
    assert {tenant: len(worked["done"]) for tenant, worked in told["tenants"].items()} == {"acme": 1, "beta": 2}
    assert told["failed"] == {}
    assert served.json("worker", "--all-tenants", "--once") == {"tenants": {}, "failed": {}}


@pytest.mark.parametrize("as_json", [False, True])
def test_a_tenant_that_cannot_be_opened_is_named_and_the_others_are_served(
    served: Console, database: str, monkeypatch: pytest.MonkeyPatch, as_json: bool
) -> None:
    opened = Engram._on_server

    def broken(server: Server, *given: Any, **named: Any) -> Engram:
        if server.tenant == "beta":
            raise StoreCorrupt("the key is sk-ant-api03-" + 40 * "a")
        return opened(server, *given, **named)

    monkeypatch.setattr(Engram, "_on_server", broken)
    result = served("worker", "--all-tenants", "--once", *(["--json"] if as_json else []))
    assert result.exit_code == 1
    assert "StoreCorrupt" in (result.stdout if as_json else result.stderr)
    assert "sk-ant" not in result.stdout + result.stderr
    with Engram.open(url=database, tenant="acme") as mem:
        assert mem.jobs.list() == []


def test_asked_to_end_it_finishes_the_job_of_one_tenant_and_leaves_the_rest(
    served: Console, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    handled_by(lambda job: signal.raise_signal(signal.SIGTERM), monkeypatch)
    result = served("worker", "--all-tenants", "--json")
    assert result.exit_code == 0
    (line,) = result.stdout.splitlines()
    assert json.loads(line)["outcome"] == "done"
    assert set(json.loads(line)) == {"tenant", "job", "outcome", "error"}
    left = 0
    for tenant in ("acme", "beta"):
        with Engram.open(url=database, tenant=tenant) as mem:
            left += len(mem.store.list_records(Job, statuses=["waiting"]))
    assert left == 2
