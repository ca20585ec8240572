"""The owner's pause, and the counts of gate verdicts: written without a lock."""

import json
import os
from datetime import UTC, datetime

from engram.disk import (
    FILE_MODE,
    MALFORMED,
    open_plain,
    read_bytes,
    replace_file,
)
from engram.model.errors import StoreReadOnly
from engram.store.home import Home

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
    """Append one verdict; one O_APPEND write, no lock. If that fails the count is short by one."""
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
