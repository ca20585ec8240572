"""Wiring a harness: Engram's entry in its configuration, added or removed, with a backup; and whether the server it names answers."""

import difflib
import json
import os
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from engram.disk import read_bytes, write_temporary
from engram.harnesses.configuration import HARNESSES, SERVER, ConfigFile, ServerCommand, config_file, server_command
from engram.model.errors import EngramError, InvalidInput, Refused
from engram.model.lazy import dataclass
from engram.model.report import Finding
from engram.recall.prompt.user_file import UserFile, read_user_file, remove_user_file, replace_user_file

BACKUP = ".engram-backup"
"""The suffix of the copy of a file as it was before the first change."""
PATIENCE = 10.0
"""Seconds a server has to answer; some clients wait no longer."""
_FOLDERS = (".codex", ".cursor", ".opencode", "opencode")
"""Folders that `wire` may have made."""
_NOT_STARTED = "`{}` is not plainly this program's server, so it was not started"
_LONGEST_COMMAND = 200
_PROTOCOL = "2025-06-18"
_OWN_VARIABLES = {"ENGRAM_HOME", "ENGRAM_URL"}


@dataclass(frozen=True, slots=True)
class WiringChange:
    """What became of a configuration file, or would become of it."""

    harness: str
    path: Path
    diff: str
    """Empty if nothing changes."""
    backup: Path | None = None
    """The copy of the file as it was; None if there was none, or it is not needed any more."""
    is_removed: bool = False
    """Whether the file went with its entry, since nothing else was in it."""


def wire(config: ConfigFile, server: ServerCommand, *, dry_run: bool = False) -> WiringChange:
    """Add or renew the entry. Raises `Refused` for a file that cannot be read or changed safely; then nothing was written."""
    file = _read(config)
    text = _changed(config, lambda: config.with_entry(file.text, server))
    backup = _backup_of(file.path) if file.exists and not _is_only_ours(config, file.text) else None
    if text != file.text and not dry_run:
        if backup is not None and (backup.is_symlink() or not backup.exists()):
            _copy(file, backup)
        file.path.parent.mkdir(parents=True, exist_ok=True)
        _write(config, file, text)
    return WiringChange(config.harness, config.path, _diff(file.text, text, config.path), backup)


def unwire(config: ConfigFile, *, dry_run: bool = False) -> WiringChange:
    """Remove the entry, and the file if that is all there was; the backup goes when the file is as it was again."""
    file = _read(config)
    if not file.exists:
        return WiringChange(config.harness, config.path, "")
    backup = _backup_of(file.path)
    before = _before(config, file, backup)
    text = _changed(config, lambda: config.without_entry(file.text) if before is None else before)
    is_removed = text != file.text and before is None and config.is_blank(text) and not _had_more(config, file, backup)
    if text != file.text and not dry_run:
        if is_removed:
            _remove(config, file)
        else:
            _write(config, file, text)
    is_restored = backup.exists() and read_bytes(backup) == file.mark + text.encode(file.encoding)
    if is_restored and not dry_run:
        backup.unlink()
    diff = _diff(file.text, "" if is_removed else text, config.path)
    return WiringChange(config.harness, config.path, diff, None if is_restored else backup, is_removed)


def _is_only_ours(config: ConfigFile, text: str) -> bool:
    """Whether the file was made by `wire` and nobody added anything: then there is nothing to keep a copy of."""
    server = config.server_in(config.parsed(text))
    return server is not None and _is_own(server, config) and _is_only_entry(config, text)


def _is_only_entry(config: ConfigFile, text: str) -> bool:
    try:
        return config.server_in(config.parsed(text)) is not None and config.is_blank(config.without_entry(text))
    except InvalidInput:
        return False


def _before(config: ConfigFile, file: UserFile, backup: Path) -> str | None:
    """The text before the first change, if nothing but the entry was added to it since; None otherwise.

    It restores what removing the entry cannot know: an empty object, blank lines, a last line without its end.
    """
    text = _backup_text(file, backup)
    try:
        server = config.server_in(config.parsed(file.text))
        if text is None or server is None or config.server_in(config.parsed(text)) is not None:
            return None
        return text if config.with_entry(text, server) == file.text else None
    except InvalidInput:
        return None


def _had_more(config: ConfigFile, file: UserFile, backup: Path) -> bool:
    """Whether the file had more than an entry of Engram before the first change."""
    text = _backup_text(file, backup)
    return text is not None and not _is_only_entry(config, text)


def _backup_text(file: UserFile, backup: Path) -> str | None:
    if backup.is_symlink() or not backup.is_file():
        return None
    try:
        return read_bytes(backup).removeprefix(file.mark).decode(file.encoding)
    except UnicodeDecodeError:
        return None


def _remove(config: ConfigFile, file: UserFile) -> None:
    """Delete the file, and the harness's folder if it is empty then."""
    if not remove_user_file(file):
        raise Refused(f"{config.path} is being changed by another program; close it and try again")
    if file.path.parent.name in _FOLDERS:
        with suppress(OSError):
            file.path.parent.rmdir()


def generic_entry(home: Path | None) -> dict[str, Any]:
    """The entry that most other clients read; many of them are desktop applications."""
    server = server_command(is_shared=False, home=home, is_desktop=True)
    entry: dict[str, Any] = {"command": server.command, "args": list(server.arguments)}
    return {"mcpServers": {SERVER: entry | ({"env": dict(server.environment)} if server.environment else {})}}


def _read(config: ConfigFile) -> UserFile:
    # People keep their settings in a folder of their own, behind a link: the file it leads to is theirs as well.
    try:
        path = config.path.resolve() if not config.is_shared else config.path
    except (RuntimeError, OSError):
        raise Refused(f"{config.path} is a symbolic link that leads back to itself") from None
    if not path.parent.is_dir():
        return UserFile(path, path)
    return read_user_file(path)


def _changed(config: ConfigFile, change: Any) -> str:
    try:
        text: str = change()
    except InvalidInput as error:
        raise Refused(f"{config.path}: {error}; nothing was written") from None
    return text


def _write(config: ConfigFile, file: UserFile, text: str) -> None:
    if not replace_user_file(file, text):
        raise Refused(f"{config.path} is being changed by another program; close it and try again")


def _backup_of(path: Path) -> Path:
    return path.with_name(path.name + BACKUP)


def _copy(file: UserFile, backup: Path) -> None:
    assert file.status is not None
    fresh, _ = write_temporary(backup, read_bytes(file.path), sync=True, mode=0o600)
    Path(fresh).replace(backup)


def _diff(before: str, after: str, path: Path) -> str:
    """The change as a unified diff; settings around it may contain keys, so secrets are redacted."""
    from engram.gates.secrets.scan import redact

    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), str(path), str(path), lineterm="", n=2)
    return redact("\n".join(lines))[0]


# -- the doctor


def wiring_finding(project: Path | None) -> Finding | None:
    """Whether the servers that harnesses are told to start answer; None if no harness names one."""
    told: list[str] = []
    problems: list[str] = []
    others: list[str] = []
    answers: dict[tuple[Any, ...], str] = {}
    for config in _files(project):
        server, problem = _named(config)
        name = f"{config.harness} ({config.path})"
        if server is not None and not _is_own(server, config):
            others.append(f"{name}: {_NOT_STARTED.format(_shown(server))}")
        elif server is not None:
            key = (*server.words, *sorted((server.environment or {}).items()))
            if key not in answers:
                answers[key] = _answer(server)
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
        text = read_user_file(config.path.resolve()).text
        return config.server_in(config.parsed(text)), ""
    except (EngramError, OSError, RuntimeError) as error:
        return None, str(error) if '"engram"' in _raw(config.path) or "engram]" in _raw(config.path) else ""


def _raw(path: Path) -> str:
    try:
        return read_bytes(path)[:1_000_000].decode("utf-8", "replace")
    except OSError:
        return ""


def _answer(server: ServerCommand) -> str:
    """How many tools the server lists, as digits; else what is wrong."""
    import shutil

    return ask_tools(server) if shutil.which(server.command) is not None else f"`{_shown(server)}` was not found"


def _is_own(server: ServerCommand, config: ConfigFile) -> bool:
    """Whether starting it runs this program's server and nothing else. What a repository says about its environment is nobody's word."""
    own = ServerCommand(SERVER).arguments
    if config.is_shared:
        return server.command == SERVER and server.arguments == own and not server.environment
    is_module = server.arguments in (("-m", "engram", *own), ("-m", "engram.mcp"))
    known = set(server.environment or {}) <= _OWN_VARIABLES
    return known and ((Path(server.command).name == SERVER and server.arguments == own) or is_module)


def ask_tools(server: ServerCommand, patience: float = PATIENCE) -> str:
    """Start a server and ask for its tools: their number as digits, else what went wrong. No process is left behind."""
    from engram.gates.secrets.scan import redact

    about = {"protocolVersion": _PROTOCOL, "capabilities": {}, "clientInfo": {"name": "engram doctor", "version": "1"}}
    calls: list[dict[str, Any]] = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": about},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
    ]
    started = subprocess.Popen(
        server.words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env={**os.environ, **(server.environment or {})},
    )  # fmt: skip
    try:
        return _conversed(started, calls, patience)
    except (subprocess.TimeoutExpired, BrokenPipeError):
        started.kill()
        _, said = started.communicate()
        why = redact(said.decode("utf-8", "replace").strip()[-200:])[0]
        return f"it did not answer within {patience:.0f} s" + (f": {why}" if why else "")
    finally:
        if started.poll() is None:
            started.kill()
        for pipe in (started.stdin, started.stdout, started.stderr):
            if pipe is not None:
                with suppress(BrokenPipeError):
                    pipe.close()
        started.wait()


def _conversed(started: "subprocess.Popen[bytes]", calls: list[dict[str, Any]], patience: float) -> str:
    import selectors

    assert started.stdin is not None and started.stdout is not None
    started.stdin.write(b"".join(json.dumps(call).encode() + b"\n" for call in calls))
    started.stdin.flush()
    until, data = time.monotonic() + patience, b""
    with selectors.DefaultSelector() as selector:
        selector.register(started.stdout, selectors.EVENT_READ)
        while (left := until - time.monotonic()) > 0:
            if not selector.select(left):
                break
            chunk = os.read(started.stdout.fileno(), 65536)
            data += chunk
            for line in data.split(b"\n")[:-1]:
                try:
                    answer = json.loads(line)
                except ValueError:
                    return "it wrote something to stdout that is not JSON"
                if answer.get("id") == 2 and "result" in answer:
                    started.communicate(timeout=max(0.1, until - time.monotonic()))
                    return str(len(answer["result"]["tools"]))
            if not chunk:
                _, said = started.communicate()
                return f"it ended at once: {said.decode('utf-8', 'replace').strip()[-200:]}"
    raise subprocess.TimeoutExpired(started.args, patience)
