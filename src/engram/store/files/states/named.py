"""Small named states of a store, one file each below `state/named/`. Callers that write hold the writer lock."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from engram.disk import UNREADABLE, digest_name, make_folder, read_bytes, replace_file, sync_path
from engram.model.errors import StoreCorrupt, StoreReadOnly
from engram.model.lazy import lazy_pattern
from engram.store.home import Home
from engram.store.states import StateChange, StateValue, apply_change, from_text, to_text

_UNSAFE = lazy_pattern(r"[^a-z0-9-]")
_MAX_READABLE_CHARACTERS = 60


def folder(home: Home) -> Path:
    """Where the files are."""
    return home.state / "named"


def load(home: Home, name: str) -> StateValue:
    """A state's value, {} if there is none. Raises `StoreCorrupt` if its file cannot be read."""
    path = _path(home, name)
    try:
        return _read(path)[1]
    except FileNotFoundError:
        return {}


def change_state(home: Home, name: str, change: StateChange) -> StateValue:
    """Change a state durably, in one step; an empty value removes its file."""
    before = load(home, name)
    after = apply_change(before, change)
    if after != before:
        _write(_path(home, name), name, after)
    return after


def all_states(home: Home) -> Iterator[tuple[str, StateValue]]:
    """Every state by name. Raises `StoreCorrupt` for a file that cannot be read."""
    for path in sorted(folder(home).glob("*.json")):
        try:
            yield _read(path)
        except FileNotFoundError:
            continue


def names(home: Home, prefix: str, problems: list[str]) -> list[str]:
    """The names that begin with a prefix, sorted; problems with unreadable files are added to `problems`."""
    found = []
    for path in folder(home).glob(f"{_readable(prefix)}*.json"):
        try:
            found.append(_read(path)[0])
        except FileNotFoundError:
            continue
        except StoreCorrupt as error:
            problems.append(str(error))
    return sorted(name for name in found if name.startswith(prefix))


def replace_all(home: Home, states: Mapping[str, Mapping[str, Any]]) -> None:
    """Replace all states; for the target of a migration."""
    for path in folder(home).glob("*.json"):
        path.unlink()
    for name, value in states.items():
        _write(_path(home, name), name, value)


def state_problems(home: Home) -> list[str]:
    """Problems with states that cannot be read."""
    problems: list[str] = []
    names(home, "", problems)
    return problems


def _path(home: Home, name: str) -> Path:
    return folder(home) / f"{digest_name(name, _readable(name))}.json"


def _readable(name: str) -> str:
    return _UNSAFE.sub("_", name.lower())[:_MAX_READABLE_CHARACTERS]


def _read(path: Path) -> tuple[str, StateValue]:
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


def _write(path: Path, name: str, value: Mapping[str, Any]) -> None:
    try:
        if value:
            make_folder(path.parent)
            replace_file(path, f'{{"name":{json.dumps(name)},"value":{to_text(value)}}}\n'.encode())
        else:
            path.unlink(missing_ok=True)
            sync_path(path.parent)
    except OSError as error:
        raise StoreReadOnly(f"cannot write {path}: {error.strerror}; nothing was written") from error
