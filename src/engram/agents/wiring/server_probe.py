"""Starting a server of tools as a coding agent would, and asking which tools it has."""

import errno
import json
import os
import selectors
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import IO, Any

from engram.agents.wiring.server import SAFE_PATH
from engram.model.errors import UnreadableData
from engram.readers.json_reader import parse_json

PROBE_SECONDS = 10.0
"""Seconds a server has to answer; some clients wait no longer."""
_FAREWELL = 2.0
"""Seconds it has to end by itself once its stdin is closed."""
_PROTOCOL = "2025-06-18"
_ABOUT = {"protocolVersion": _PROTOCOL, "capabilities": {}, "clientInfo": {"name": "engram doctor", "version": "1"}}
_CALLS: tuple[dict[str, Any], ...] = (
    {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": _ABOUT},
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
    {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
)
_LONGEST_ANSWER = 4 * 1024 * 1024
_LONGEST_REASON = 200
_STDERR_READ = 8192
"""Bytes at the end of stderr that are looked at: enough to recognize a secret that begins before the part that is shown."""
_DIRECTORY = "/"
"""Where the server is started: the directory of the caller may be a clone, and code may be loaded from there."""


def ask_tools(words: Sequence[str], environment: Mapping[str, str], patience: float = PROBE_SECONDS) -> str:
    """Start a server and ask for its tools: their number as digits, else what went wrong. No process is left behind."""
    with tempfile.TemporaryFile() as stderr:
        try:
            # In a session of its own, so that what a wrapper script starts can be ended with it.
            started = subprocess.Popen(
                list(words), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr, bufsize=0,
                env={**environment, SAFE_PATH: "1"}, cwd=_DIRECTORY, start_new_session=True,
            )  # fmt: skip
        except (OSError, ValueError) as error:
            return _start_error(error)
        with started.stdin, started.stdout:  # type: ignore[union-attr]
            try:
                return _tools(started, stderr, patience)
            finally:
                _end(started)


def _start_error(error: OSError | ValueError) -> str:
    if isinstance(error, ValueError):
        return f"it cannot be started: {error}"
    why = {
        errno.ENOENT: "it, or the interpreter that its first line names, does not exist",
        errno.ENOEXEC: "it is neither a program nor a script whose first line names an interpreter",
    }.get(error.errno or 0, error.strerror or str(error))
    return f"it cannot be started: {why}"


def _tools(started: "subprocess.Popen[bytes]", stderr: IO[bytes], patience: float) -> str:
    assert started.stdin is not None
    with suppress(BrokenPipeError):  # it has ended already; why, its stderr says
        started.stdin.write(b"".join(json.dumps(call).encode() + b"\n" for call in _CALLS))
    try:
        for line in _lines(started, patience):
            found = _answer_in(line)
            if found is not None:
                return found
    except TimeoutError:
        _kill(started)
        return f"it did not answer within {patience:.0f} s" + _reason(stderr)
    with suppress(subprocess.TimeoutExpired):
        started.wait(_FAREWELL)
    status = f" with exit status {started.returncode}" if started.returncode else ""
    return f"it ended without an answer{status}" + _reason(stderr)


def _lines(started: "subprocess.Popen[bytes]", patience: float) -> Iterator[bytes]:
    """What the server writes, line by line. Raises `TimeoutError` if it neither writes nor ends in time."""
    assert started.stdout is not None
    until, rest = time.monotonic() + patience, b""
    with selectors.DefaultSelector() as selector:
        selector.register(started.stdout, selectors.EVENT_READ)
        while selector.select(max(0.0, until - time.monotonic())):
            chunk = os.read(started.stdout.fileno(), 65536)
            if not chunk:
                yield from [rest] if rest.strip() else []
                return
            *lines, rest = (rest + chunk).split(b"\n")
            yield from (line for line in lines if line.strip())
            if len(rest) > _LONGEST_ANSWER:
                yield rest
                return
            if time.monotonic() > until:
                break
    raise TimeoutError


def _answer_in(line: bytes) -> str | None:
    """What a line says about the tools: their number, or what is wrong; None if it is about something else."""
    try:
        answer = parse_json(line, characters="repaired")
    except UnreadableData:
        return "it wrote something to stdout that is not JSON"
    if not isinstance(answer, dict):
        return "it wrote something to stdout that is no answer of an MCP server"
    if "error" in answer and answer.get("id") in (1, 2):
        error = answer["error"]
        told = error.get("message") if isinstance(error, dict) else error
        asked = "begin" if answer["id"] == 1 else "list its tools"
        return f"it refused to {asked}: {_show_end(str(told))}"
    if answer.get("id") != 2:
        return None
    result = answer.get("result")
    tools = result.get("tools") if isinstance(result, dict) else None
    return str(len(tools)) if isinstance(tools, list) else "its answer has no list of tools"


def _end(started: "subprocess.Popen[bytes]") -> None:
    """Let it end by itself, then kill whatever is left of it."""
    assert started.stdin is not None
    started.stdin.close()
    with suppress(subprocess.TimeoutExpired):
        started.wait(_FAREWELL)
    _kill(started)


def _kill(started: "subprocess.Popen[bytes]") -> None:
    """Kill it and everything that it started."""
    with suppress(ProcessLookupError, PermissionError):  # nothing is left of it
        os.killpg(started.pid, signal.SIGKILL)
    with suppress(subprocess.TimeoutExpired):
        started.wait(_FAREWELL)


def _reason(stderr: IO[bytes]) -> str:
    """The end of what it wrote to stderr, as it may be shown."""
    size = stderr.seek(0, os.SEEK_END)
    stderr.seek(max(0, size - _STDERR_READ))
    told = _show_end(stderr.read().decode("utf-8", "replace"))
    return f": {told}" if told else "; it wrote nothing to stderr"


def _show_end(text: str) -> str:
    """The end of a text on one line, without its secrets."""
    from engram.gates.secrets.scan import redact

    return " ".join(redact(text)[0].split())[-_LONGEST_REASON:]
