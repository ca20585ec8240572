"""The configuration files of the harnesses: where each is, and where in it the servers of tools are named."""

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from engram.harnesses import jsonc, toml_table
from engram.model.errors import InvalidInput
from engram.model.lazy import dataclass
from engram.store.home import expanded

SERVER = "engram"
"""The name of the entry."""
CLAUDE_CODE, CODEX, OPENCODE, CURSOR = "claude-code", "codex", "opencode", "cursor"
HARNESSES = (CLAUDE_CODE, CODEX, OPENCODE, CURSOR)
DESKTOP = frozenset({CURSOR})
"""Harnesses that are usually not started from a shell."""
STORE_VARIABLES = ("ENGRAM_HOME", "ENGRAM_CACHE", "ENGRAM_URL", "ENGRAM_TENANT")
"""Environment variables that decide which store a server opens."""
SAFE_PATH = "PYTHONSAFEPATH"
"""The environment variable that does what Python's `-P` does: modules are not looked for in the working directory."""
_MODULES = (("-m", "engram", "mcp"), ("-m", "engram.mcp"))
"""Arguments with which Python starts the server."""
_SAFE = (("-P",), ("-I",))
"""Options of Python without which `-m` looks for modules in the working directory first."""
_CODEX_PASSES_ON = frozenset(
    {"HOME", "LOGNAME", "PATH", "SHELL", "USER", "__CF_USER_TEXT_ENCODING", "LANG", "LC_ALL", "TERM", "TMPDIR", "TZ"}
)
"""Variables that Codex passes on to a server (`DEFAULT_ENV_VARS` of its `rmcp-client`), besides those that the entry names."""
_ADDRESSES = ("url", "serverUrl", "httpUrl")
"""Keys of an entry whose server runs elsewhere; with a command next to them no client would know which one to take."""


@dataclass(frozen=True, slots=True)
class ServerCommand:
    """How a harness starts the server."""

    command: str
    arguments: tuple[str, ...] = ("mcp",)
    environment: Mapping[str, str] | None = None
    passed_on: tuple[str, ...] = ()
    """Names of further variables that the harness passes on; only Codex has such a list."""

    @property
    def words(self) -> list[str]:
        """The command with its arguments."""
        return [self.command, *self.arguments]

    @property
    def is_engram(self) -> bool:
        """Whether it is this program's own server, in whatever environment."""
        if self.arguments == ("mcp",):
            return Path(self.command).name == SERVER
        return self.arguments in _MODULES or (self.arguments[:1] in _SAFE and self.arguments[1:] in _MODULES)

    @property
    def runs_working_directory(self) -> bool:
        """Whether Python looks for modules in the directory in which the harness works, so that a clone can replace any of them."""
        return self.arguments in _MODULES and not (self.environment or {}).get(SAFE_PATH)


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """A file in which a harness looks for servers."""

    harness: str
    path: Path
    is_shared: bool
    """Whether it is part of a project, and so may be committed."""

    def parsed(self, text: str) -> dict[str, Any]:
        """The data of its text. Raises `InvalidInput` where it cannot be read."""
        data = toml_table.parse(text) if self._is_toml else jsonc.parse(text).data if text.strip() else {}
        if not isinstance(data, dict):
            raise InvalidInput("it does not contain a JSON object")
        return data

    def place(self, data: Mapping[str, Any]) -> tuple[str, ...]:
        """The keys under which the entry is: OpenCode's newer versions have one more."""
        if self.harness == CODEX:
            return ("mcp_servers", SERVER)
        if self.harness != OPENCODE:
            return ("mcpServers", SERVER)
        servers = data.get("mcp", {}).get("servers") if isinstance(data.get("mcp"), dict) else None
        is_nested = isinstance(servers, dict) and "command" not in servers
        return ("mcp", "servers", SERVER) if is_nested else ("mcp", SERVER)

    def entry(self, server: ServerCommand) -> dict[str, Any]:
        """The entry, as this harness writes it."""
        environment = dict(server.environment or {})
        if self.harness == OPENCODE:
            return {"type": "local", "command": server.words} | ({"environment": environment} if environment else {})
        entry: dict[str, Any] = {"command": server.command, "args": list(server.arguments)}
        if self.harness == CLAUDE_CODE:
            entry = {"type": "stdio", **entry}
        return entry | ({"env": environment} if environment else {})

    def entry_in(self, data: Mapping[str, Any]) -> Any:
        """What the file has as Engram's entry; None if it has none."""
        found: Any = data
        for key in self.place(data):
            found = found.get(key) if isinstance(found, dict) else None
        return found

    def server_in(self, data: Mapping[str, Any]) -> ServerCommand | None:
        """The server that the file names as Engram's; None if it names none that can be read."""
        found = self.entry_in(data)
        if not isinstance(found, dict):
            return None
        command, arguments = found.get("command"), found.get("args", [])
        words = command if isinstance(command, list) else [command, *(arguments if isinstance(arguments, list) else [])]
        environment = found.get("environment" if self.harness == OPENCODE else "env") or {}
        if not words or not all(isinstance(word, str) for word in words) or not isinstance(environment, dict):
            return None
        named = found.get("env_vars") if self.harness == CODEX else None
        return ServerCommand(
            words[0], tuple(words[1:]), {str(key): str(value) for key, value in environment.items()},
            tuple(name for name in named if isinstance(name, str)) if isinstance(named, list) else (),
        )  # fmt: skip

    def environment_of(self, server: ServerCommand, around: Mapping[str, str] = os.environ) -> dict[str, str]:
        """The environment in which the harness starts a server, as far as this one tells.

        A desktop application does not have what somebody set in a shell.
        """
        passed = dict(around)
        if self.harness == CODEX:
            passed = {name: around[name] for name in around if name in _CODEX_PASSES_ON or name in server.passed_on}
        elif self.harness in DESKTOP:
            passed = {name: around[name] for name in around if name not in STORE_VARIABLES}
        return {**passed, **(server.environment or {})}

    def with_entry(self, text: str, server: ServerCommand) -> str:
        """The text with the entry; checked: everything else says what it said. Keys and comments that the user added to theirs stay."""
        data = self.parsed(text)
        place, entry, known = self.place(data), self.entry(server), self.entry_in(data)
        if not isinstance(known, dict):
            made = toml_table.with_table(text, place, entry) if self._is_toml else jsonc.with_member(text, place, entry)
            return self._checked(made, _placed(data, place, entry))
        if any(key in known for key in _ADDRESSES):
            raise InvalidInput("its entry `engram` names a server by its address; remove that entry first")
        wanted = {**known, **entry}
        for key, value in entry.items():
            if isinstance(value, dict) and isinstance(known.get(key), dict):
                wanted[key] = {**known[key], **value}
        return self._checked(self._with_values(text, place, known, wanted), _placed(data, place, wanted))

    def _with_values(self, text: str, place: Sequence[str], known: Mapping[str, Any], wanted: Mapping[str, Any]) -> str:
        """The text with the values of a table that differ, each set where it is."""
        for key, value in wanted.items():
            path, before = (*place, key), known.get(key)
            if value == before:
                continue
            has_place = not self._is_toml or toml_table.has_header(text, path)
            if isinstance(value, dict) and isinstance(before, dict) and has_place:
                text = self._with_values(text, path, before, value)
            else:
                text = (toml_table.with_value if self._is_toml else jsonc.with_member)(text, path, value)
        return text

    def with_entry_of(self, text: str, other: str) -> str:
        """The text with its entry as another text of this file has it; checked likewise. Raises `InvalidInput` if that has none there."""
        data, others = self.parsed(text), self.parsed(other)
        place, entry = self.place(data), self.entry_in(others)
        if entry is None or place != self.place(others):
            raise InvalidInput("the other text has no such entry")
        change = toml_table.with_table_of if self._is_toml else jsonc.with_member_of
        return self._checked(change(text, place, other), _placed(data, place, entry))

    def is_blank(self, text: str) -> bool:
        """Whether a text says nothing, not even in a comment: no settings at all."""
        return "".join(text.split()) in ("", "{}")

    def without_entry(self, text: str) -> str:
        """The text without the entry; checked likewise."""
        data = self.parsed(text)
        change = toml_table.without_table if self._is_toml else jsonc.without_member
        return self._checked(change(text, self.place(data)), _removed(data, self.place(data)))

    def _checked(self, made: str, wanted: Mapping[str, Any]) -> str:
        try:
            is_right = _without_empty(self.parsed(made)) == _without_empty(wanted)
        except (InvalidInput, RecursionError):
            is_right = False
        if not is_right:
            raise InvalidInput("its form is not one that can be changed safely; edit it by hand")
        return made

    @property
    def _is_toml(self) -> bool:
        return self.harness == CODEX


def config_file(harness: str, project: Path | None, environment: Mapping[str, str] = os.environ) -> ConfigFile:
    """The file of a harness: the user's own, or a project's. Raises `InvalidInput` for an unknown harness."""
    if harness not in HARNESSES:
        raise InvalidInput(f"Unknown harness {harness!r}; choose {', '.join(HARNESSES)}")
    if project is not None:
        return ConfigFile(harness, _first(project, _IN_PROJECT[harness]), True)
    home = Path(environment.get("HOME") or Path.home())

    def named(variable: str, default: Path) -> Path:
        given = environment.get(variable)
        return expanded(Path(given), f"${variable}") if given else default

    if harness == CLAUDE_CODE:
        return ConfigFile(harness, named("CLAUDE_CONFIG_DIR", home) / ".claude.json", False)
    if harness == CODEX:
        return ConfigFile(harness, named("CODEX_HOME", home / ".codex") / "config.toml", False)
    if harness == CURSOR:
        return ConfigFile(harness, home / ".cursor" / "mcp.json", False)
    folder = named("XDG_CONFIG_HOME", home / ".config") / "opencode"
    return ConfigFile(harness, _first(folder, ("opencode.jsonc", "opencode.json")), False)


_IN_PROJECT = {
    CLAUDE_CODE: (".mcp.json",),
    CODEX: (".codex/config.toml",),
    OPENCODE: ("opencode.jsonc", ".opencode/opencode.jsonc", ".opencode/opencode.json", "opencode.json"),
    CURSOR: (".cursor/mcp.json",),
}
"""Below a project's folder; the first that exists, or the last."""


def _first(folder: Path, names: Sequence[str]) -> Path:
    return next((folder / name for name in names if (folder / name).exists()), folder / names[-1])


def server_command(*, is_shared: bool, is_desktop: bool, environment: Mapping[str, str] | None = None) -> ServerCommand:
    """How to start this program's server. A project's file names it as everybody calls it; the user's own, so that it is found.

    A desktop application has a shorter `PATH` than the shell in which `engram` was found, so it gets the full path.
    """
    found = shutil.which(SERVER)
    if is_shared or (found and not is_desktop):
        return ServerCommand(SERVER, environment=environment)
    script = Path(found).absolute() if found else Path(sys.executable).with_name(SERVER)
    if script.exists():
        return ServerCommand(str(script), environment=environment)
    return ServerCommand(sys.executable, ("-P", "-m", "engram", "mcp"), environment)


def store_environment(
    home: Path | None, *, is_shared: bool, around: Mapping[str, str] = os.environ
) -> tuple[dict[str, str], str]:
    """The variables that make a server open the store in use here, and a warning about those that must not be written to its file.

    A harness may not pass on what is set in this shell. The given home takes the place of all of it.
    """
    if home is not None:
        return {"ENGRAM_HOME": str(expanded(home, "--home").absolute())}, ""
    found = {name: around[name].strip() for name in STORE_VARIABLES if around.get(name, "").strip()}
    if found and is_shared:
        return {}, _SHARED.format(" and ".join(found))
    for name in ("ENGRAM_HOME", "ENGRAM_CACHE"):
        if name in found:
            found[name] = str(expanded(Path(found[name]), f"${name}").absolute())
    if _has_password(found.get("ENGRAM_URL", "")):
        del found["ENGRAM_URL"]
        return found, _PASSWORD
    return found, ""


_SHARED = "{} of this shell is not written to a file that others share; without --project it is written to your own"
_PASSWORD = (
    "ENGRAM_URL contains a password, so it was not written to the file, and the server may open another store. Put the password "
    "into ~/.pgpass, set ENGRAM_URL without it, and run this again"
)


def _has_password(url: str) -> bool:
    """Whether a server's URL may contain one; in doubt it does."""
    plain = unquote(url)
    return ":" in plain.partition("://")[2].rpartition("@")[0] or "password" in plain.lower()


def _placed(data: Mapping[str, Any], place: Sequence[str], entry: Mapping[str, Any]) -> dict[str, Any]:
    key, *rest = place
    below = data.get(key, {})
    if rest and not isinstance(below, dict):
        raise InvalidInput(f"`{key}` is not a table of servers")
    return {**data, key: _placed(below, rest, entry) if rest else dict(entry)}


def _without_empty(data: Mapping[str, Any]) -> dict[str, Any]:
    """The data without empty tables: a file may name one explicitly or not."""
    kept = {key: _without_empty(value) if isinstance(value, dict) else value for key, value in data.items()}
    return {key: value for key, value in kept.items() if value != {}}


def _removed(data: Mapping[str, Any], place: Sequence[str]) -> dict[str, Any]:
    key, *rest = place
    left = {name: value for name, value in data.items() if name != key}
    below = data.get(key)
    if not rest or not isinstance(below, dict):
        return left if not rest else dict(data)
    inner = _removed(below, rest)
    return {name: inner if name == key else value for name, value in data.items()} if inner or inner == below else left
