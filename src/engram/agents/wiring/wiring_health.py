"""The doctor's check of wired coding agents: starts each configured server as the agent would, and lists its tools."""

import errno
import json
import os
import selectors
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from engram.agents.agent import all_agents, home_of
from engram.agents.wiring.registration import (
    SAFE_PATH,
    SERVER,
    STORE_VARIABLES,
    ConfigFile,
    ServerCommand,
    config_file,
    read_config,
    server_command,
    wire,
)
from engram.disk import read_bytes
from engram.model.errors import EngramError, InvalidInput, UnreadableData
from engram.model.report import Finding
from engram.readers.data import parse_json

PROBE_SECONDS = 10.0
"""Seconds a server has to answer; some clients wait no longer."""
_FAREWELL = 2.0
"""Seconds a server has to exit after its stdin is closed."""
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
"""Bytes read at the end of stderr, enough to recognize a secret that begins before the part that is shown."""
_DIRECTORY = "/"
"""Where the server is started. The caller's directory may be a clone from which code could be loaded."""


def ask_tools(words: Sequence[str], environment: Mapping[str, str], patience: float = PROBE_SECONDS) -> str:
    """Start a server and list its tools: returns their number as digits, or the problem. Leaves no process behind."""
    with tempfile.TemporaryFile() as stderr:
        try:
            # A separate session, so that processes started by a wrapper script can be ended with it.
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
    with suppress(BrokenPipeError):  # The server has exited; its stderr has the reason.
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
    """The server's output, line by line. Raises `TimeoutError` if it neither writes nor exits in time."""
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
    """A line's answer about the tools: their number, or the problem; None if it is about something else."""
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
    """Let the server exit by itself, then kill all remaining processes."""
    assert started.stdin is not None
    started.stdin.close()
    with suppress(subprocess.TimeoutExpired):
        started.wait(_FAREWELL)
    _kill(started)


def _kill(started: "subprocess.Popen[bytes]") -> None:
    """Kill the server and all processes that it started."""
    with suppress(ProcessLookupError, PermissionError):  # No process is left.
        os.killpg(started.pid, signal.SIGKILL)
    with suppress(subprocess.TimeoutExpired):
        started.wait(_FAREWELL)


def _reason(stderr: IO[bytes]) -> str:
    """The end of its stderr, safe to show."""
    size = stderr.seek(0, os.SEEK_END)
    stderr.seek(max(0, size - _STDERR_READ))
    told = _show_end(stderr.read().decode("utf-8", "replace"))
    return f": {told}" if told else "; it wrote nothing to stderr"


def _show_end(text: str) -> str:
    """The end of a text on one line, without its secrets."""
    from engram.gates.secrets.scan import redact

    return " ".join(redact(text)[0].split())[-_LONGEST_REASON:]


_NOT_STARTED = "`{}` is not plainly this program's server, so it was not started"
_UNSAFE = "`{}` runs Python modules of the directory in which the agent works, which may be a clone"
_LONGEST_COMMAND = 200


def wiring_finding(project: Path | None, *, patience: float = PROBE_SECONDS) -> Finding | None:
    """Whether the servers that agents are configured to start answer; None if no agent has one."""
    probe = _Probe(patience)
    found = [*_files(project, probe), *_plugins(probe)]
    if not found:
        return None
    is_ok = all(finding.ok for finding in found)
    message = "; ".join(finding.message for finding in found if is_ok or finding.level != "ok")
    return Finding.of(
        "wiring", is_ok, message, "; ".join(dict.fromkeys(finding.fix for finding in found if finding.fix))
    )


class _Probe:
    """Asks each server once, even if several files name it."""

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._answers: dict[tuple[object, ...], str] = {}

    def answer(self, server: ServerCommand, environment: dict[str, str]) -> str:
        """How many tools the server lists, as digits, or the problem."""
        key = (*server.words, *sorted(environment.items()))
        if key not in self._answers:
            is_there = shutil.which(server.command, path=environment.get("PATH")) is not None
            self._answers[key] = (
                ask_tools(server.words, environment, self._patience)
                if is_there
                else f"`{_show_command(server)}` was not found"
            )
        return self._answers[key]


def _files(project: Path | None, probe: _Probe) -> Iterator[Finding]:
    """The findings about the user's own files and the project's."""
    for folder in (None, project) if project is not None else (None,):
        for agent in all_agents():
            try:
                config = config_file(agent, folder)
            except InvalidInput as error:
                yield Finding.of("wiring", False, f"{agent.name}: {error}", "correct that variable")
                continue
            finding = _examine_file(config, probe) if config.path.is_file() else None
            if finding is not None:
                yield finding


def _examine_file(config: ConfigFile, probe: _Probe) -> Finding | None:
    """The findings about one file; None if it does not name Engram's server."""
    server, problem = _find_named_server(config)
    name = f"{config.agent.name} ({config.path})"
    if problem:
        return Finding.of("wiring", False, f"{name}: {problem}", f"correct {config.path} by hand")
    if server is None:
        return None
    if not _is_startable(server, config):
        advice = f"try it in {config.agent.name} itself, or let `{_init(config)}` write the entry again"
        return Finding.of("wiring", True, f"{name}: {_NOT_STARTED.format(_show_command(server))}", advice)
    environment = config.environment_of(server)
    answer = probe.answer(server, environment)
    if not answer.isdigit():
        return Finding.of("wiring", False, f"{name}: {answer}", _repair(config, server))
    if server.runs_working_directory:
        advice = f"run `{_init(config)}` again, or add `-P` before `-m`"
        return Finding.of("wiring", False, f"{name}: {_UNSAFE.format(_show_command(server))}", advice)
    missing = " and ".join(one for one in STORE_VARIABLES if os.environ.get(one) and one not in environment)
    if not missing:
        return Finding.of("wiring", True, f"{name}: {answer} tools")
    advice = f"`engram init {config.agent.name}` writes {missing} into your own file"
    return Finding.of("wiring", True, f"{name}: {answer} tools, without {missing} of this shell", advice)


def _plugins(probe: _Probe) -> Iterator[Finding]:
    """The findings about the servers of Engram's plugins, for agents that have them."""
    for agent in all_agents():
        for plugin in agent.find_plugins(home_of()) if agent.find_plugins is not None else ():
            answer = probe.answer(ServerCommand("sh", (str(plugin.script), "mcp")), dict(os.environ))
            message = f"plugin of {agent.name} ({plugin.folder}): {answer}"
            if answer.isdigit():
                yield Finding.of("wiring", True, f"{message} tools")
            else:
                advice = f"run `sh {plugin.script} mcp` in a terminal to see what is wrong"
                yield Finding.of("wiring", False, message, advice)


def _init(config: ConfigFile) -> str:
    return f"engram init {config.agent.name}" + (" --project" if config.is_shared else "")


def _repair(config: ConfigFile, server: ServerCommand) -> str:
    """How to repair a server that does not answer: rewrite its entry only if that would change it."""
    wanted = server_command(is_shared=config.is_shared, is_desktop=config.agent.configuration.is_desktop)
    try:
        is_outdated = bool(wire(config, wanted, dry_run=True).diff)
    except EngramError:
        return f"correct the entry in {config.path} by hand"
    if is_outdated:
        return f"`{_init(config)}` renews the entry of {config.agent.name}"
    if shutil.which(server.command) is None:
        return f'{config.agent.name} must find `{server.command}` on its PATH: `pipx install ".[mcp]"` in a checkout of Engram installs it'
    return f"the entry of {config.agent.name} is as it should be; run `{_show_command(server)}` in a terminal to see what is wrong"


def _show_command(server: ServerCommand) -> str:
    """The command, safe to show: an argument may be a key."""
    from engram.gates.secrets.scan import redact

    return redact(" ".join(server.words))[0][:_LONGEST_COMMAND]


def _find_named_server(config: ConfigFile) -> tuple[ServerCommand | None, str]:
    """The server that a file names, and the problem if it cannot be read."""
    try:
        return config.server_in(config.parse(read_config(config).text)), ""
    except (EngramError, OSError, RuntimeError) as error:
        return None, str(error) if '"engram"' in _raw(config.path) or "engram]" in _raw(config.path) else ""


def _raw(path: Path) -> str:
    try:
        return read_bytes(path)[:1_000_000].decode("utf-8", "replace")
    except OSError:
        return ""


def _is_startable(server: ServerCommand, config: ConfigFile) -> bool:
    """Whether the command runs only this program's server. The environment that a repository asks for is not trusted."""
    if config.is_shared:
        return server.words == ServerCommand(SERVER).words and not server.environment
    # A relative path means a different program in every directory.
    is_relative = "/" in server.command and not Path(server.command).is_absolute()
    return server.is_engram and not is_relative and set(server.environment or {}) <= {*STORE_VARIABLES, SAFE_PATH}
