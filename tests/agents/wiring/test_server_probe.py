"""A server is started as a harness would start it, asked for its tools, and ended with everything that it started."""

import os
import select
import sys
from pathlib import Path

import pytest

from engram.agents.wiring.wiring_health import ask_tools

FIRST = """print('{"jsonrpc": "2.0", "id": 1, "result": {}}', flush=True)"""


def answered(script: str, patience: float = 30) -> str:
    """What the doctor says of a server that is a piece of Python."""
    return ask_tools([sys.executable, "-c", script], os.environ, patience)


def test_the_servers_tools_are_counted(home: Path) -> None:
    around = {**os.environ, "ENGRAM_HOME": str(home / "store"), "PYTHONPATH": os.pathsep.join(sys.path)}
    answer = ask_tools([sys.executable, "-m", "engram", "mcp"], around, 60)
    assert answer.isdigit() and int(answer) >= 7, answer


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("import sys; sys.exit('no store')", "it ended without an answer with exit status 1: no store"),
        ("pass", "it ended without an answer; it wrote nothing to stderr"),
        ("print('hello', flush=True); input()", "not JSON"),
        ("print('[' * 100_000, flush=True); input()", "not JSON"),
        ("print('[1]', flush=True)", "no answer of an MCP server"),
        (f"""{FIRST}; print('{{"id": 2, "result": {{}}}}')""", "has no list of tools"),
        (f"""{FIRST}; print('{{"id": 2, "result": {{"tools": 3}}}}')""", "has no list of tools"),
        (
            f"""{FIRST}; print('{{"id": 2, "error": {{"message": "no such store"}}}}')""",
            "list its tools: no such store",
        ),
        ("""print('{"id": 1, "error": "too old"}')""", "it refused to begin: too old"),
    ],
)
def test_a_server_that_does_not_answer_says_why(script: str, why: str) -> None:
    assert why in answered(script)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("#!/nonexistent/python\n", "the interpreter that its first line names, does not exist"),
        ("\x7fgarbage", "neither a program nor a script"),
    ],
)
def test_a_file_that_is_no_program_is_an_answer_too(tmp_path: Path, content: str, why: str) -> None:
    program = tmp_path / "engram"
    program.write_text(content)
    program.chmod(0o755)
    assert why in ask_tools([str(program), "mcp"], os.environ)


def test_no_secret_of_the_servers_stderr_is_shown() -> None:
    key = "sk-ant-api03-" + "Zx9_" * 24
    for script in (
        f"import sys; sys.exit('boom {key}')",
        f"import sys; sys.exit('boom {key}' + ' ' * 80 + 'end')",
        f"""print('{{"id": 2, "error": {{"message": "boom {key}"}}}}')""",
    ):
        told = answered(script)
        assert "boom" in told or "end" in told
        assert "Zx9_Zx9_" not in told


@pytest.mark.parametrize(("rest", "told"), [("wait", "it did not answer within 2 s"), ("echo nonsense", "not JSON")])
def test_what_a_wrapper_script_started_ends_with_it(tmp_path: Path, rest: str, told: str) -> None:
    program, alive = tmp_path / "engram", tmp_path / "alive"
    program.write_text(f"#!/bin/sh\nexec 3> {alive}\nsleep 60 &\necho started >&3\n{rest}\n")
    program.chmod(0o755)
    os.mkfifo(alive)
    reader = os.open(alive, os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert told in ask_tools([str(program), "mcp"], os.environ, patience=2)
        assert os.read(reader, 100) == b"started\n"
        # Its end of the pipe is closed when the last process that has it is gone.
        assert select.select([reader], [], [], 30)[0], "a process is left"
        assert os.read(reader, 100) == b""
    finally:
        os.close(reader)
