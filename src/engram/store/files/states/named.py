"""Small named states of a store, one file each below `state/named/`, written under the writer lock.

Also contains the owner's pause and the counts of gate verdicts, which need no lock.
"""

import json
import os
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from engram.disk import (
    FILE_MODE,
    MALFORMED,
    UNREADABLE,
    digest_name,
    make_folder,
    open_plain,
    read_bytes,
    replace_file,
    sync_path,
)
from engram.model.errors import StoreCorrupt, StoreReadOnly
from engram.model.lazy import lazy_pattern
from engram.store.home import Home
from engram.store.states import StateChange, StateValue, apply_change, from_text, to_text

_UNSAFE = lazy_pattern(r"[^a-z0-9-]")
_MAX_READABLE_CHARACTERS = 60


def states_folder(home: Home) -> Path:
    """The folder of the state files."""
    return home.state / "named"


def load_state(home: Home, name: str) -> StateValue:
    """A state's value, {} if there is none. Raises `StoreCorrupt` if its file cannot be read."""
    path = _state_path(home, name)
    try:
        return _read_state(path)[1]
    except FileNotFoundError:
        return {}


def change_state(home: Home, name: str, change: StateChange) -> StateValue:
    """Change a state durably, in one step; an empty value removes its file."""
    before = load_state(home, name)
    after = apply_change(before, change)
    if after != before:
        _write_state(_state_path(home, name), name, after)
    return after


def all_states(home: Home) -> Iterator[tuple[str, StateValue]]:
    """Every state by name. Raises `StoreCorrupt` for a file that cannot be read."""
    for path in sorted(states_folder(home).glob("*.json")):
        try:
            yield _read_state(path)
        except FileNotFoundError:
            continue


def list_state_names(home: Home, prefix: str, problems: list[str]) -> list[str]:
    """The names that begin with a prefix, sorted; problems with unreadable files are added to `problems`."""
    found = []
    for path in states_folder(home).glob(f"{_readable(prefix)}*.json"):
        try:
            found.append(_read_state(path)[0])
        except FileNotFoundError:
            continue
        except StoreCorrupt as error:
            problems.append(str(error))
    return sorted(name for name in found if name.startswith(prefix))


def replace_all_states(home: Home, states: Mapping[str, Mapping[str, Any]]) -> None:
    """Replace all states; for the target of a migration."""
    for path in states_folder(home).glob("*.json"):
        path.unlink()
    for name, value in states.items():
        _write_state(_state_path(home, name), name, value)


def state_problems(home: Home) -> list[str]:
    """Problems with states that cannot be read."""
    problems: list[str] = []
    list_state_names(home, "", problems)
    return problems


def _state_path(home: Home, name: str) -> Path:
    return states_folder(home) / f"{digest_name(name, _readable(name))}.json"


def _readable(name: str) -> str:
    return _UNSAFE.sub("_", name.lower())[:_MAX_READABLE_CHARACTERS]


def _read_state(path: Path) -> tuple[str, StateValue]:
    try:
        fields = from_text(read_bytes(path))
        value = fields["value"]
        if not isinstance(value, dict):
            raise ValueError("its value is not a JSON object")
        return str(fields["name"]), value
    except FileNotFoundError:
        raise
    except UNREADABLE as error:
        raise StoreCorrupt(f"{path}: not a state ({error}); restore the file from a backup, or remove it") from None


def _write_state(path: Path, name: str, value: Mapping[str, Any]) -> None:
    try:
        if value:
            make_folder(path.parent)
            replace_file(path, f'{{"name":{json.dumps(name)},"value":{to_text(value)}}}\n'.encode())
        else:
            path.unlink(missing_ok=True)
            sync_path(path.parent)
    except OSError as error:
        raise StoreReadOnly(f"cannot write {path}: {error.strerror}; nothing was written") from error


PAUSE_FILE = "paused"


def is_paused(home: Home) -> bool:
    """Whether the owner has paused learning and injection."""
    return (home.state / PAUSE_FILE).exists()


def pause(home: Home, paused: bool) -> None:
    """Start or end a pause: one empty file, which a hook can check without opening the store."""
    path = home.state / PAUSE_FILE
    try:
        if paused:
            replace_file(path, b"", durable=False)
        else:
            path.unlink(missing_ok=True)
    except OSError as error:
        raise StoreReadOnly(f"cannot change {path}: {error.strerror}") from error


VERDICTS_FILE = "gates.jsonl"
"""File name in the state folder."""


def note_verdict(home: Home, gate: str, outcome: str, at: datetime) -> None:
    """Append one verdict; one O_APPEND write, no lock. If that fails, the count is short by one."""
    line = json.dumps({"at": at.astimezone(UTC).isoformat(), "gate": gate, "outcome": outcome}).encode() + b"\n"
    try:
        descriptor = open_plain(home.state / VERDICTS_FILE, os.O_WRONLY | os.O_APPEND | os.O_CREAT, FILE_MODE)
    except OSError:
        return
    try:
        os.write(descriptor, line)
    finally:
        os.close(descriptor)


def verdicts_since(home: Home, since: datetime) -> list[tuple[str, str]]:
    """Gate and outcome of every verdict since a time."""
    found = []
    try:
        lines = read_bytes(home.state / VERDICTS_FILE).decode("utf-8", "replace").splitlines()
    except OSError:
        return []
    for line in lines:
        try:
            fields = json.loads(line)
            if datetime.fromisoformat(fields["at"]) >= since:
                found.append((str(fields["gate"]), str(fields["outcome"])))
        except MALFORMED:
            continue
    return found
