"""What the doctor says about wired coding agents: whether the servers that their files name answer."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from engram.agents.agent import home_of
from engram.agents.registry import all_agents
from engram.agents.wiring.config_file import ConfigFile, config_file
from engram.agents.wiring.registration import read_config, wire
from engram.agents.wiring.server import SAFE_PATH, SERVER, STORE_VARIABLES, ServerCommand, server_command
from engram.agents.wiring.server_probe import PROBE_SECONDS, ask_tools
from engram.disk import read_bytes
from engram.model.errors import EngramError, InvalidInput
from engram.model.report import Finding

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
