"""Registers Engram's server with a coding agent: adds or removes its entry in the configuration file, with a backup."""

import difflib
import os
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from engram.agents.agent import CodingAgent, EntryForm, home_of
from engram.agents.wiring import jsonc, toml_table
from engram.agents.wiring.user_file import NEW_FILE_MODE, UserFile, read_user_file, remove_user_file, replace_user_file
from engram.disk import FILE_MODE, expand_home, read_bytes, write_temporary
from engram.model.errors import InvalidInput, Refused
from engram.model.lazy import dataclass

SERVER = "engram"
"""The name of the entry."""
STORE_VARIABLES = ("ENGRAM_HOME", "ENGRAM_CACHE", "ENGRAM_URL", "ENGRAM_TENANT")
"""Environment variables that determine which store a server opens."""
SAFE_PATH = "PYTHONSAFEPATH"
"""The environment variable with the effect of Python's `-P`: modules are not imported from the working directory."""
_MODULES = (("-m", "engram", "mcp"), ("-m", "engram.mcp"))
"""Python's arguments that start the server."""
_SAFE = (("-P",), ("-I",))
"""Python's options without which `-m` looks for modules in the working directory first."""


@dataclass(frozen=True, slots=True)
class ServerCommand:
    """How a coding agent starts the server."""

    command: str
    arguments: tuple[str, ...] = ("mcp",)
    environment: Mapping[str, str] | None = None
    passed_on: tuple[str, ...] = ()
    """Names of further variables that the agent passes on; few agents support such a list."""

    @property
    def words(self) -> list[str]:
        """The command with its arguments."""
        return [self.command, *self.arguments]

    @property
    def is_engram(self) -> bool:
        """Whether it starts this program's own server, in any environment."""
        if self.arguments == ("mcp",):
            return Path(self.command).name == SERVER
        return self.arguments in _MODULES or (self.arguments[:1] in _SAFE and self.arguments[1:] in _MODULES)

    @property
    def runs_working_directory(self) -> bool:
        """Whether Python looks for modules in the agent's working directory, so that a clone could replace any of them."""
        return self.arguments in _MODULES and not (self.environment or {}).get(SAFE_PATH)


def server_command(*, is_shared: bool, is_desktop: bool, environment: Mapping[str, str] | None = None) -> ServerCommand:
    """The command that starts this program's server: by its usual name in a project's file, by its path in the user's.

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
    """The variables that make a server open the current store, and a warning about those that must not be written to its file.

    An agent may not pass on variables of this shell. A given home replaces all of them.
    """
    if home is not None:
        return {"ENGRAM_HOME": str(expand_home(home, "--home").absolute())}, ""
    found = {name: around[name].strip() for name in STORE_VARIABLES if around.get(name, "").strip()}
    if found and is_shared:
        return {}, _SHARED.format(" and ".join(found))
    for name in ("ENGRAM_HOME", "ENGRAM_CACHE"):
        if name in found:
            found[name] = str(expand_home(Path(found[name]), f"${name}").absolute())
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
    """Whether a server's URL may contain a password; true if unclear."""
    plain = unquote(url)
    return ":" in plain.partition("://")[2].rpartition("@")[0] or "password" in plain.lower()


_ADDRESSES = ("url", "serverUrl", "httpUrl")
"""Keys of an entry for a remote server; with an additional command, the entry would be ambiguous."""


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """A file that configures an agent's servers."""

    agent: CodingAgent
    path: Path
    is_shared: bool
    """Whether it is part of a project, and so may be committed."""
    own_folders: int = 0
    """How many of the folders above it belong to the agent, and are deleted with the file if they are empty."""

    @property
    def _form(self) -> EntryForm:
        return self.agent.configuration.entry

    @property
    def _is_toml(self) -> bool:
        return self._form.syntax == "toml"

    def parse(self, text: str) -> dict[str, Any]:
        """Parse its text. Raises `InvalidInput` if it cannot be read."""
        data = toml_table.parse(text) if self._is_toml else jsonc.parse(text).data if text.strip() else {}
        if not isinstance(data, dict):
            raise InvalidInput("it does not contain a JSON object")
        return data

    def place(self, data: Mapping[str, Any]) -> tuple[str, ...]:
        """The keys that lead to the entry."""
        find = self._form.find_servers
        return (*(find(data) if find is not None else (self._form.servers,)), SERVER)

    def entry(self, server: ServerCommand) -> dict[str, Any]:
        """The entry, in this agent's form."""
        form, environment = self._form, dict(server.environment or {})
        entry: dict[str, Any] = {"type": form.type} if form.type else {}
        if form.has_one_command:
            entry["command"] = server.words
        else:
            entry |= {"command": server.command, "args": list(server.arguments)}
        return entry | ({form.environment: environment} if environment else {})

    def entry_in(self, data: Mapping[str, Any]) -> Any:
        """Engram's entry in the file; None if it has none."""
        found: Any = data
        for key in self.place(data):
            found = found.get(key) if isinstance(found, dict) else None
        return found

    def server_in(self, data: Mapping[str, Any]) -> ServerCommand | None:
        """The server in Engram's entry; None if the file has no readable one."""
        found = self.entry_in(data)
        if not isinstance(found, dict):
            return None
        command, arguments = found.get("command"), found.get("args", [])
        words = command if isinstance(command, list) else [command, *(arguments if isinstance(arguments, list) else [])]
        environment = found.get(self._form.environment) or {}
        if not words or not all(isinstance(word, str) for word in words) or not isinstance(environment, dict):
            return None
        named = found.get(self._form.passed_on) if self._form.passed_on else None
        return ServerCommand(
            words[0], tuple(words[1:]), {str(key): str(value) for key, value in environment.items()},
            tuple(name for name in named if isinstance(name, str)) if isinstance(named, list) else (),
        )  # fmt: skip

    def environment_of(self, server: ServerCommand, around: Mapping[str, str] = os.environ) -> dict[str, str]:
        """The environment in which the agent starts a server, as far as it can be derived from this one.

        A desktop application does not have variables that were set in a shell.
        """
        known, passed = self.agent.configuration, dict(around)
        if known.passed_on is not None:
            passed = {name: around[name] for name in around if name in known.passed_on or name in server.passed_on}
        elif known.is_desktop:
            passed = {name: around[name] for name in around if name not in STORE_VARIABLES}
        return {**passed, **(server.environment or {})}

    def with_entry(self, text: str, server: ServerCommand) -> str:
        """The text with the entry, keeping keys and comments that the user added to it.

        The result is checked: all other data is unchanged.
        """
        data = self.parse(text)
        place, entry, known = self.place(data), self.entry(server), self.entry_in(data)
        if not isinstance(known, dict):
            entry = {**self._form.fixed, **entry}
            made = toml_table.with_table(text, place, entry) if self._is_toml else jsonc.with_member(text, place, entry)
            return self._check_result(made, _place_entry(data, place, entry))
        if any(key in known for key in _ADDRESSES):
            raise InvalidInput("its entry `engram` names a server by its address; remove that entry first")
        wanted = {**self._form.fixed, **known, **entry}
        for key, value in entry.items():
            if isinstance(value, dict) and isinstance(known.get(key), dict):
                wanted[key] = {**known[key], **value}
        return self._check_result(self._with_values(text, place, known, wanted), _place_entry(data, place, wanted))

    def _with_values(self, text: str, place: Sequence[str], known: Mapping[str, Any], wanted: Mapping[str, Any]) -> str:
        """The text with the differing values of a table set in place."""
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
        """The text with its entry replaced by the one in another text of this file, and checked.

        Raises `InvalidInput` if that has none.
        """
        data, others = self.parse(text), self.parse(other)
        place, entry = self.place(data), self.entry_in(others)
        if entry is None or place != self.place(others):
            raise InvalidInput("the other text has no such entry")
        change = toml_table.with_table_of if self._is_toml else jsonc.with_member_of
        return self._check_result(change(text, place, other), _place_entry(data, place, entry))

    def is_blank(self, text: str) -> bool:
        """Whether a text has no settings and no comments."""
        return "".join(text.split()) in ("", "{}")

    def without_entry(self, text: str) -> str:
        """The text without the entry, checked as in `with_entry`."""
        data = self.parse(text)
        change = toml_table.without_table if self._is_toml else jsonc.without_member
        return self._check_result(change(text, self.place(data)), _remove_entry(data, self.place(data)))

    def _check_result(self, made: str, wanted: Mapping[str, Any]) -> str:
        try:
            is_right = _without_empty(self.parse(made)) == _without_empty(wanted)
        except (InvalidInput, RecursionError):
            is_right = False
        if not is_right:
            raise InvalidInput("its form is not one that can be changed safely; edit it by hand")
        return made


def config_file(agent: CodingAgent, project: Path | None, environment: Mapping[str, str] = os.environ) -> ConfigFile:
    """The configuration file of an agent: the user's own, or a project's."""
    known = agent.configuration
    if project is None:
        return ConfigFile(agent, known.find_file(home_of(environment), environment), False, known.own_folders)
    names = known.project_files
    name = next((name for name in names if (project / name).exists()), names[-1])
    return ConfigFile(agent, project / name, True, name.count("/"))


def _place_entry(data: Mapping[str, Any], place: Sequence[str], entry: Mapping[str, Any]) -> dict[str, Any]:
    key, *rest = place
    below = data.get(key, {})
    if rest and not isinstance(below, dict):
        raise InvalidInput(f"`{key}` is not a table of servers")
    return {**data, key: _place_entry(below, rest, entry) if rest else dict(entry)}


def _without_empty(data: Mapping[str, Any]) -> dict[str, Any]:
    """The data without empty tables, which a file may or may not write explicitly."""
    kept = {key: _without_empty(value) if isinstance(value, dict) else value for key, value in data.items()}
    return {key: value for key, value in kept.items() if value != {}}


def _remove_entry(data: Mapping[str, Any], place: Sequence[str]) -> dict[str, Any]:
    key, *rest = place
    left = {name: value for name, value in data.items() if name != key}
    below = data.get(key)
    if not rest or not isinstance(below, dict):
        return left if not rest else dict(data)
    inner = _remove_entry(below, rest)
    return {name: inner if name == key else value for name, value in data.items()} if inner or inner == below else left


BACKUP = ".engram-backup"
"""The suffix of the copy of a file from before the first change."""
MAX_AGENT_CONFIG_BYTES = 64 * 1024 * 1024
"""Maximum bytes of a file; some agents keep the history of prompts in the same one."""
_SERVERS_OF = {"zed": "context_servers"}
"""The key of other clients' tables of servers, if it is not `mcpServers`."""


@dataclass(frozen=True, slots=True)
class WiringChange:
    """The change to a configuration file, done or planned."""

    path: Path
    diff: str
    """Empty if nothing changes."""
    backup: Path | None = None
    """The copy of the original file; None if there was no file, or the copy is no longer needed."""
    is_removed: bool = False
    """Whether the file was deleted with its entry, because nothing else was in it."""


def wire(config: ConfigFile, server: ServerCommand, *, dry_run: bool = False) -> WiringChange:
    """Add or renew the entry. Raises `Refused`, and writes nothing, if the file cannot be read or changed safely."""
    try:
        file = read_config(config)
        text = _change_text(config, lambda: config.with_entry(file.text, server))
    except Refused as error:
        raise Refused(f"{error}. To wire it by hand, give it this entry:\n\n{config.with_entry('', server)}") from None
    backup = _backup_of(file.path)
    if text != file.text and not dry_run:
        with _name_file_in_errors(config):
            if file.exists and _needs_backup(config, file.text, backup):
                _copy(file, backup)
            file.path.parent.mkdir(parents=True, exist_ok=True)
            _write(config, file, text)
    return WiringChange(config.path, _diff(file.text, text, config.path), _find_backup(backup))


def unwire(config: ConfigFile, *, dry_run: bool = False) -> WiringChange:
    """Remove the entry, or restore the user's previous one. Raises `Refused` for an entry that `wire` did not write.

    The file is deleted if it contains only the entry; the backup is deleted once the file is in its original state.
    """
    file = read_config(config)
    if not file.exists:
        return WiringChange(config.path, "")
    backup = _backup_of(file.path)
    earlier = _backup_text(config, file, backup)
    text = _change_text(config, lambda: _remove_server(config, file.text, earlier))
    is_restored = text == earlier
    is_removed = text != file.text and not is_restored and config.is_blank(text) and not _has_more(config, earlier)
    if text != file.text and not dry_run:
        with _name_file_in_errors(config):
            if is_removed:
                _remove(config, file)
            else:
                _write(config, file, text)
    if is_restored and not dry_run:
        backup.unlink()
    diff = _diff(file.text, "" if is_removed else text, config.path)
    kept = None if is_restored else _find_backup(backup)
    return WiringChange(config.path, diff, kept, is_removed)


def _remove_server(config: ConfigFile, text: str, earlier: str | None) -> str:
    """The text without the entry, or with the user's previous one."""
    data = config.parse(text)
    if config.entry_in(data) is None:
        return text
    server = config.server_in(data)
    if server is None or not server.is_engram:
        raise InvalidInput("its entry `engram` is not one that `engram init` writes; remove it by hand if you want to")
    if earlier is None or _has_engram(config, earlier):
        return config.without_entry(text)
    try:
        # The original text has details that removing the entry cannot restore: an empty object, blank lines, a
        # missing final newline.
        if config.with_entry(earlier, server) == text:
            return earlier
        return config.with_entry_of(text, earlier)
    except InvalidInput:
        return config.without_entry(text)


def _needs_backup(config: ConfigFile, text: str, backup: Path) -> bool:
    """Whether to copy the file first: always before the first change.

    Later, only if the copy is gone and the file has more than the entry.
    """
    if not _has_engram(config, text):
        return True
    return (backup.is_symlink() or not backup.exists()) and not _is_only_entry(config, text)


def _has_engram(config: ConfigFile, text: str) -> bool:
    """Whether a text has an entry that `wire` wrote."""
    server = config.server_in(config.parse(text))
    return server is not None and server.is_engram


def _is_only_entry(config: ConfigFile, text: str) -> bool:
    try:
        return config.server_in(config.parse(text)) is not None and config.is_blank(config.without_entry(text))
    except InvalidInput:
        return False


def _has_more(config: ConfigFile, earlier: str | None) -> bool:
    """Whether the file had more than Engram's entry before the first change."""
    return earlier is not None and not _is_only_entry(config, earlier)


def _find_backup(backup: Path) -> Path | None:
    return backup if backup.exists() else None


def _backup_text(config: ConfigFile, file: UserFile, backup: Path) -> str | None:
    """The text before the first change; None if there is no readable backup."""
    if backup.is_symlink() or not backup.is_file():
        return None
    try:
        text = read_bytes(backup).removeprefix(file.mark).decode(file.encoding)
        config.parse(text)
    except (UnicodeDecodeError, InvalidInput):
        return None
    return text


def _remove(config: ConfigFile, file: UserFile) -> None:
    """Delete the file, and the agent's folders that become empty."""
    if not remove_user_file(file):
        raise Refused(f"{config.path} is being changed by another program; close it and try again")
    with suppress(OSError):
        for folder in islice(file.path.parents, config.own_folders):
            folder.rmdir()


def generic_entry(client: str, environment: Mapping[str, str] | None = None) -> dict[str, Any]:
    """The entry for any other client; many of these are desktop applications."""
    server = server_command(is_shared=False, is_desktop=True, environment=environment)
    entry: dict[str, Any] = {"command": server.command, "args": list(server.arguments)}
    return {
        _SERVERS_OF.get(client, "mcpServers"): {SERVER: entry | ({"env": dict(environment)} if environment else {})}
    }


def read_config(config: ConfigFile) -> UserFile:
    """The current content of the file. Raises `Refused` if it is too large, not text, or links out of its repository."""
    # Some people link their settings to a folder of their own; the target is theirs, too.
    try:
        path = config.path.resolve() if not config.is_shared else config.path
    except (RuntimeError, OSError):
        raise Refused(f"{config.path} is a symbolic link that leads back to itself") from None
    if not path.parent.is_dir():
        return UserFile(path, path)
    return read_user_file(path, MAX_AGENT_CONFIG_BYTES)


def _change_text(config: ConfigFile, change: Any) -> str:
    try:
        text: str = change()
    except InvalidInput as error:
        raise Refused(f"{config.path}: {error}; nothing was written") from None
    return text


@contextmanager
def _name_file_in_errors(config: ConfigFile) -> Iterator[None]:
    """Name the file in a system error, which would otherwise name a temporary one."""
    try:
        yield
    except OSError as error:
        raise Refused(f"{config.path} cannot be written: {error.strerror or error}") from error


def _write(config: ConfigFile, file: UserFile, text: str) -> None:
    if not replace_user_file(file, text, NEW_FILE_MODE if config.is_shared else FILE_MODE):
        raise Refused(f"{config.path} is being changed by another program; close it and try again")


def _backup_of(path: Path) -> Path:
    return path.with_name(path.name + BACKUP)


def _copy(file: UserFile, backup: Path) -> None:
    assert file.status is not None
    fresh, _ = write_temporary(backup, read_bytes(file.path), sync=True, mode=FILE_MODE)
    Path(fresh).replace(backup)


def _diff(before: str, after: str, path: Path) -> str:
    """The change as a unified diff, with secrets redacted, because nearby settings may contain keys."""
    from engram.gates.secrets.scan import redact

    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), str(path), str(path), lineterm="", n=2)
    return redact("\n".join(lines))[0]
