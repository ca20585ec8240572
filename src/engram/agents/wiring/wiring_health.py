"""What the doctor says about wired coding agents: each server that their files name is started as an agent would, and asked for its tools."""

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


_NOT_STARTED = "`{}` is not plainly this program's server, so it was not started"
_UNSAFE = "`{}` runs Python modules of the directory in which the agent works, which may be a clone"
_LONGEST_COMMAND = 200


def wiring_finding(project: Path | None, *, patience: float = PROBE_SECONDS) -> Finding | None:
    """Whether the servers that agents are told to start answer; None if no agent names one."""
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
    """Asks each server once, however many files name it."""

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._answers: dict[tuple[object, ...], str] = {}

    def answer(self, server: ServerCommand, environment: dict[str, str]) -> str:
        """How many tools the server lists, as digits; else what is wrong."""
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
    """What is to be said of the user's own files and of the project's."""
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
    """What is to be said of one file; None if it does not name Engram's server."""
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
    """What is to be said of the servers of Engram's plugins, where agents have them."""
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
    """What to do about a server that does not answer: write its entry again only if that would change it."""
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
    """The command, as it may be shown: an argument may be a key."""
    from engram.gates.secrets.scan import redact

    return redact(" ".join(server.words))[0][:_LONGEST_COMMAND]


def _find_named_server(config: ConfigFile) -> tuple[ServerCommand | None, str]:
    """The server that a file names, and why it cannot be read."""
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
    """Whether starting it runs this program's server and nothing else. What a repository says about its environment is nobody's word."""
    if config.is_shared:
        return server.words == ServerCommand(SERVER).words and not server.environment
    # A relative path means another program in every directory.
    is_relative = "/" in server.command and not Path(server.command).is_absolute()
    return server.is_engram and not is_relative and set(server.environment or {}) <= {*STORE_VARIABLES, SAFE_PATH}
