"""The program as a process: exit codes, pipes, terminals."""

import json
import os
import re
import select
import signal
import subprocess
import sys

import pytest

from tests.tables import table

from .conftest import Console
from .terminal import on_terminal

ENGRAM = [sys.executable, "-m", "engram"]
PATIENCE = 120.0
"""Seconds after which a program counts as hung."""
ESCAPE = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")


def run(*words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run([*ENGRAM, *words], input=stdin, capture_output=True, text=True, check=False, timeout=PATIENCE)


def on_a_terminal(*words: str, typed: str = "") -> tuple[str, int]:
    """Run a verb with a terminal of its own as its controlling one; what it prints, and its exit code."""
    child, terminal = on_terminal(words)
    printed, waiting = b"", typed
    while True:
        ready, _, _ = select.select([terminal], [], [], PATIENCE)
        if not ready:
            os.kill(child, signal.SIGKILL)
        try:
            chunk = os.read(terminal, 65536)
        except OSError:
            chunk = b""
        if not chunk:
            break
        printed += chunk
        code = re.search(rb"Type (\d{4}): $", printed)
        if (waiting and printed.endswith((b"]: ", b"> "))) or code:
            answer = code.group(1).decode() + "\n" if code else waiting
            os.write(terminal, answer.encode())
            waiting = ""
    _, status = os.waitpid(child, 0)
    os.close(terminal)
    return printed.decode("utf-8", "replace").replace("\r\n", "\n"), os.waitstatus_to_exitcode(status)


@pytest.mark.usefixtures("cli")
def test_a_memory_outlives_the_process_that_learned_it() -> None:
    learned = json.loads(run("learn", "-", "--json", stdin="Deploys go through staging first").stdout)
    recalled = run("--json", "recall", "deploys")
    assert recalled.stderr == ""
    assert json.loads(recalled.stdout)["hits"][0]["id"] == learned["memory"]["id"]


@pytest.mark.usefixtures("cli")
def test_exit_codes() -> None:
    assert run("version").returncode == 0
    assert run("show", "nothing").returncode == 3
    assert run("list", "--limit", "0x").returncode == 2
    assert run("learn", "The key is AKIA" + "IOSFODNN7ABCDEFG" + " and more").returncode == 1


@pytest.mark.usefixtures("cli")
def test_errors_are_one_line_without_a_traceback() -> None:
    failed = run("show", "nothing")
    assert failed.stdout == ""
    assert failed.stderr.startswith("engram: ")
    assert len(failed.stderr.splitlines()) == 1


def test_without_a_terminal_there_are_no_escape_codes(cli: Console) -> None:
    cli.learned("Deploys go through staging first")
    assert "\x1b" not in run("list").stdout
    for words in (("list",), ("recall", "deploys", "--explain"), ("status",), ("doctor",), ("--help",), ("demo",)):
        done = cli(*words)
        assert "\x1b" not in done.stdout + done.stderr, words


@pytest.mark.parametrize("words", [("list",), ("list", "--json")])
def test_a_reader_that_goes_away_is_no_catastrophe(cli: Console, words: tuple[str, ...]) -> None:
    for i in range(5):
        cli.json("add", f"Fact number {i} about a thing that has a long name: {f'item{i}' * 5000}")
    command, pipe = [*ENGRAM, *words], subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.read(1)
        process.stdout.close()
        complaint = process.stderr.read()
    assert "Traceback" not in complaint
    assert "BrokenPipe" not in complaint


def test_a_terminal_gets_a_table_and_colours(cli: Console) -> None:
    cli.learned("Deploys go [red]through[/red] staging first")
    printed, code = on_a_terminal("list")
    assert code == 0
    assert "\x1b[" in printed
    plain = ESCAPE.sub("", printed)
    assert "statement" in plain
    assert "[red]through[/red]" in plain


def test_a_person_at_a_terminal_is_human(cli: Console) -> None:
    on_a_terminal("remember", "I prefer pnpm over npm")
    assert cli.json("list")[0]["source"] == "human"


def test_purge_asks_at_a_terminal(cli: Console) -> None:
    known = cli.learned("Use tabs, not spaces")
    _, code = on_a_terminal("forget", known, "--purge", typed="y\n")
    assert code == 0
    assert cli("show", known).exit_code == 3


def test_a_typed_code_puts_in_force_what_only_a_person_may(cli: Console) -> None:
    waiting = cli.json("learn", "The patient is allergic to penicillin", "--type", "health")["memory"]["id"]
    printed, code = on_a_terminal("review", waiting, "--approve")
    assert code == 0, printed
    assert cli.json("show", waiting)["status"] == "active"


def test_a_cold_start_loads_nothing_slow_that_it_does_not_use(cli: Console) -> None:
    cli.learned("Deploys go through staging first")
    program = (
        "import sys; sys.argv = ['engram', 'recall', 'deploys']\n"
        "from engram.cli.main import run\n"
        "try: run()\n"
        "except SystemExit: pass\n"
        "loaded = [n for n in ('rich', 'pydantic', 'dataclasses', 'logging', 'engram.gates') if n in sys.modules]\n"
        "print('loaded', loaded)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=PATIENCE)
    assert done.stdout.endswith("loaded []\n")


@pytest.mark.usefixtures("cli")
@pytest.mark.parametrize(("words", "code"), [("['version']", 0), ("['show', 'nothing']", 3), ("['nonsense']", 2)])
@pytest.mark.parametrize(
    "thread", ["", "threading.Thread(target=lambda: (threading.main_thread().join(), print('thread'))).start()"]
)
def test_the_program_ends_with_its_code_after_what_was_registered_and_after_other_threads(
    words: str, code: int, thread: str
) -> None:
    program = (
        f"import atexit, sys, threading; sys.argv = ['engram', *{words}]\n"
        f"atexit.register(print, 'registered')\n{thread}\n"
        "from engram.__main__ import run; run(); print('not reached')"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=PATIENCE
    )
    assert done.returncode == code, done.stderr
    assert done.stdout.endswith("thread\nregistered\n" if thread else "registered\n")


@pytest.mark.usefixtures("cli")
@table("words", [["--help"], ["list", "--help"], ["version"], ["doctor", "--json"], ["nonsense"], ["show", "nothing", "--json"], ["hook", "recall", "x"]])  # fmt: skip
def test_a_reader_that_has_left_or_a_full_disk_is_no_traceback(words: list[str]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    for target in (writer, os.open("/dev/full", os.O_WRONLY)):
        done = subprocess.run([*ENGRAM, *words], stdin=subprocess.DEVNULL, stdout=target, stderr=subprocess.PIPE, text=True, check=False)  # fmt: skip
        os.close(target)
        assert "Traceback" not in done.stderr and "Exception ignored" not in done.stderr
        assert done.returncode == (2 if words == ["nonsense"] else 1)


@pytest.mark.usefixtures("cli")
@pytest.mark.parametrize(
    "line",
    ["learn - <&-", "hook recall <&-", "list >&-", "list 2>&-", "show nothing >&- 2>&-", "status <&- >&- 2>&-"],
)
def test_a_closed_stream_is_no_traceback(line: str) -> None:
    done = subprocess.run(
        ["sh", "-c", f"{sys.executable} -m engram {line}"], capture_output=True, text=True, check=False
    )
    assert "Traceback" not in done.stderr
    assert "Error" not in done.stderr
    assert done.returncode == {"learn": 1, "show": 3}.get(line.split()[0], 0)
