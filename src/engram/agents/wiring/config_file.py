"""A configuration file of a coding agent, and Engram's entry in it."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from engram.agents.agent import CodingAgent, EntryForm, home_of
from engram.agents.wiring import jsonc, toml_table
from engram.agents.wiring.server import SERVER, STORE_VARIABLES, ServerCommand
from engram.model.errors import InvalidInput
from engram.model.lazy import dataclass

_ADDRESSES = ("url", "serverUrl", "httpUrl")
"""Keys of an entry whose server runs elsewhere; with a command next to them no client would know which one to take."""


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """A file in which an agent looks for servers."""

    agent: CodingAgent
    path: Path
    is_shared: bool
    """Whether it is part of a project, and so may be committed."""
    own_folders: int = 0
    """How many of the folders above it are the agent's own, and go with the file if nothing else is in them."""

    @property
    def _form(self) -> EntryForm:
        return self.agent.configuration.entry

    @property
    def _is_toml(self) -> bool:
        return self._form.syntax == "toml"

    def parse(self, text: str) -> dict[str, Any]:
        """The data of its text. Raises `InvalidInput` where it cannot be read."""
        data = toml_table.parse(text) if self._is_toml else jsonc.parse(text).data if text.strip() else {}
        if not isinstance(data, dict):
            raise InvalidInput("it does not contain a JSON object")
        return data

    def place(self, data: Mapping[str, Any]) -> tuple[str, ...]:
        """The keys under which the entry is."""
        find = self._form.find_servers
        return (*(find(data) if find is not None else (self._form.servers,)), SERVER)

    def entry(self, server: ServerCommand) -> dict[str, Any]:
        """The entry, as this agent writes it."""
        form, environment = self._form, dict(server.environment or {})
        entry: dict[str, Any] = {"type": form.type} if form.type else {}
        if form.has_one_command:
            entry["command"] = server.words
        else:
            entry |= {"command": server.command, "args": list(server.arguments)}
        return entry | ({form.environment: environment} if environment else {})

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
        environment = found.get(self._form.environment) or {}
        if not words or not all(isinstance(word, str) for word in words) or not isinstance(environment, dict):
            return None
        named = found.get(self._form.passed_on) if self._form.passed_on else None
        return ServerCommand(
            words[0], tuple(words[1:]), {str(key): str(value) for key, value in environment.items()},
            tuple(name for name in named if isinstance(name, str)) if isinstance(named, list) else (),
        )  # fmt: skip

    def environment_of(self, server: ServerCommand, around: Mapping[str, str] = os.environ) -> dict[str, str]:
        """The environment in which the agent starts a server, as far as this one tells.

        A desktop application does not have what somebody set in a shell.
        """
        known, passed = self.agent.configuration, dict(around)
        if known.passed_on is not None:
            passed = {name: around[name] for name in around if name in known.passed_on or name in server.passed_on}
        elif known.is_desktop:
            passed = {name: around[name] for name in around if name not in STORE_VARIABLES}
        return {**passed, **(server.environment or {})}

    def with_entry(self, text: str, server: ServerCommand) -> str:
        """The text with the entry; checked: everything else says what it said. Keys and comments that the user added to theirs stay."""
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
        data, others = self.parse(text), self.parse(other)
        place, entry = self.place(data), self.entry_in(others)
        if entry is None or place != self.place(others):
            raise InvalidInput("the other text has no such entry")
        change = toml_table.with_table_of if self._is_toml else jsonc.with_member_of
        return self._check_result(change(text, place, other), _place_entry(data, place, entry))

    def is_blank(self, text: str) -> bool:
        """Whether a text says nothing, not even in a comment: no settings at all."""
        return "".join(text.split()) in ("", "{}")

    def without_entry(self, text: str) -> str:
        """The text without the entry; checked likewise."""
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
    """The data without empty tables: a file may name one explicitly or not."""
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
