"""What the doctor says about wired harnesses: whether the servers that their files name answer."""

import os
import shutil
from pathlib import Path
from typing import Any

from engram.disk import read_bytes
from engram.harnesses.configuration import HARNESSES, SERVER, ConfigFile, ServerCommand, config_file
from engram.harnesses.registration import read_config
from engram.harnesses.server_probe import PATIENCE, ask_tools
from engram.model.errors import EngramError
from engram.model.report import Finding

_NOT_STARTED = "`{}` is not plainly this program's server, so it was not started"
_LONGEST_COMMAND = 200
_OWN_VARIABLES = {"ENGRAM_HOME", "ENGRAM_URL"}


def wiring_finding(project: Path | None, *, patience: float = PATIENCE) -> Finding | None:
    """Whether the servers that harnesses are told to start answer; None if no harness names one."""
    told: list[str] = []
    problems: list[str] = []
    others: list[str] = []
    answers: dict[tuple[Any, ...], str] = {}
    for config in _files(project):
        server, problem = _named(config)
        name = f"{config.harness} ({config.path})"
        if server is not None and not _is_startable(server, config):
            others.append(f"{name}: {_NOT_STARTED.format(_shown(server))}")
        elif server is not None:
            key = (*server.words, *sorted((server.environment or {}).items()))
            if key not in answers:
                answers[key] = _answer(server, patience)
            if answers[key].isdigit():
                told.append(f"{name}: {answers[key]} tools")
            else:
                problems.append(f"{name}: {answers[key]}")
        elif problem:
            problems.append(f"{name}: {problem}")
    if problems:
        return Finding.of("wiring", False, "; ".join(problems + others), "`engram init HARNESS` writes the entry again")
    advice = "try it in the harness itself, or let `engram init HARNESS` write the entry again" if others else ""
    return Finding.of("wiring", True, "; ".join(told + others), advice) if told or others else None


def _shown(server: ServerCommand) -> str:
    """The command, as it may be shown: an argument may be a key."""
    from engram.gates.secrets.scan import redact

    return redact(" ".join(server.words))[0][:_LONGEST_COMMAND]


def _files(project: Path | None) -> list[ConfigFile]:
    own = [config_file(harness, None) for harness in HARNESSES]
    shared = [config_file(harness, project) for harness in HARNESSES] if project is not None else []
    return [config for config in (*own, *shared) if config.path.is_file()]


def _named(config: ConfigFile) -> tuple[ServerCommand | None, str]:
    """The server that a file names, and why it cannot be read."""
    try:
        return config.server_in(config.parsed(read_config(config).text)), ""
    except (EngramError, OSError, RuntimeError) as error:
        return None, str(error) if '"engram"' in _raw(config.path) or "engram]" in _raw(config.path) else ""


def _raw(path: Path) -> str:
    try:
        return read_bytes(path)[:1_000_000].decode("utf-8", "replace")
    except OSError:
        return ""


def _answer(server: ServerCommand, patience: float) -> str:
    """How many tools the server lists, as digits; else what is wrong."""
    if shutil.which(server.command) is None:
        return f"`{_shown(server)}` was not found"
    return ask_tools(server.words, {**os.environ, **(server.environment or {})}, patience)


def _is_startable(server: ServerCommand, config: ConfigFile) -> bool:
    """Whether starting it runs this program's server and nothing else. What a repository says about its environment is nobody's word."""
    if config.is_shared:
        return server == ServerCommand(SERVER, environment=server.environment) and not server.environment
    return server.is_engram and set(server.environment or {}) <= _OWN_VARIABLES
