"""Wiring a coding agent: Engram's entry in its configuration, added or removed, with a backup."""

import difflib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Any

from engram.agents.wiring.config_file import ConfigFile
from engram.agents.wiring.server import SERVER, ServerCommand, server_command
from engram.agents.wiring.user_file import NEW_FILE_MODE, UserFile, read_user_file, remove_user_file, replace_user_file
from engram.disk import FILE_MODE, read_bytes, write_temporary
from engram.model.errors import InvalidInput, Refused
from engram.model.lazy import dataclass

BACKUP = ".engram-backup"
"""The suffix of the copy of a file as it was before the first change."""
MAX_AGENT_CONFIG_BYTES = 64 * 1024 * 1024
"""Bytes of a file; some agents keep the history of prompts in the same one."""
_SERVERS_OF = {"zed": "context_servers"}
"""The key under which other clients have their servers, where it is not `mcpServers`."""


@dataclass(frozen=True, slots=True)
class WiringChange:
    """What became of a configuration file, or would become of it."""

    path: Path
    diff: str
    """Empty if nothing changes."""
    backup: Path | None = None
    """The copy of the file as it was; None if there was none, or it is not needed any more."""
    is_removed: bool = False
    """Whether the file went with its entry, since nothing else was in it."""


def wire(config: ConfigFile, server: ServerCommand, *, dry_run: bool = False) -> WiringChange:
    """Add or renew the entry. Raises `Refused` for a file that cannot be read or changed safely; then nothing was written."""
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
    """Remove the entry, or bring back the one that the user had. Raises `Refused` for an entry that `wire` did not write.

    The file goes if the entry is all there was; the backup goes when the file is as it was again.
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
    """The text without the entry, or with the one that the user had before it."""
    data = config.parse(text)
    if config.entry_in(data) is None:
        return text
    server = config.server_in(data)
    if server is None or not server.is_engram:
        raise InvalidInput("its entry `engram` is not one that `engram init` writes; remove it by hand if you want to")
    if earlier is None or _has_engram(config, earlier):
        return config.without_entry(text)
    try:
        # The earlier text has what removing the entry cannot know: an empty object, blank lines, a last line without its end.
        if config.with_entry(earlier, server) == text:
            return earlier
        return config.with_entry_of(text, earlier)
    except InvalidInput:
        return config.without_entry(text)


def _needs_backup(config: ConfigFile, text: str, backup: Path) -> bool:
    """Whether to copy the file: always before the first change, later only if the copy is gone and the file has more than the entry."""
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
    """Whether the file had more than an entry of Engram before the first change."""
    return earlier is not None and not _is_only_entry(config, earlier)


def _find_backup(backup: Path) -> Path | None:
    return backup if backup.exists() else None


def _backup_text(config: ConfigFile, file: UserFile, backup: Path) -> str | None:
    """The text before the first change; None if there is no backup that can be read."""
    if backup.is_symlink() or not backup.is_file():
        return None
    try:
        text = read_bytes(backup).removeprefix(file.mark).decode(file.encoding)
        config.parse(text)
    except (UnicodeDecodeError, InvalidInput):
        return None
    return text


def _remove(config: ConfigFile, file: UserFile) -> None:
    """Delete the file, and the agent's folders that are empty then."""
    if not remove_user_file(file):
        raise Refused(f"{config.path} is being changed by another program; close it and try again")
    with suppress(OSError):
        for folder in islice(file.path.parents, config.own_folders):
            folder.rmdir()


def generic_entry(client: str, environment: Mapping[str, str] | None = None) -> dict[str, Any]:
    """The entry that another client reads; many of them are desktop applications."""
    server = server_command(is_shared=False, is_desktop=True, environment=environment)
    entry: dict[str, Any] = {"command": server.command, "args": list(server.arguments)}
    return {
        _SERVERS_OF.get(client, "mcpServers"): {SERVER: entry | ({"env": dict(environment)} if environment else {})}
    }


def read_config(config: ConfigFile) -> UserFile:
    """The file as it is. Raises `Refused` for one that is no text of reasonable size, or leads out of its repository."""
    # People keep their settings in a folder of their own, behind a link: the file it leads to is theirs as well.
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
    """Name the file in an error of the system's, which would name a temporary one."""
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
    """The change as a unified diff; settings around it may contain keys, so secrets are redacted."""
    from engram.gates.secrets.scan import redact

    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), str(path), str(path), lineterm="", n=2)
    return redact("\n".join(lines))[0]
