"""The owner's pause: one empty file, which a hook can look for without opening the store."""

import json
import os
from datetime import UTC, datetime

from engram.model.errors import StoreReadOnly
from engram.store.files.confinement import MALFORMED, open_plain, read_bytes
from engram.store.files.home import FILE_MODE, Home, write_private

PAUSE_FILE = "paused"


def is_paused(home: Home) -> bool:
    """Whether the owner has paused learning and injection."""
    return (home.state / PAUSE_FILE).exists()


def pause(home: Home, paused: bool) -> None:
    """Begin or end a pause."""
    path = home.state / PAUSE_FILE
    try:
        if paused:
            write_private(path, b"")
        else:
            path.unlink(missing_ok=True)
    except OSError as error:
        raise StoreReadOnly(f"cannot change {path}: {error.strerror}") from error


FILE = "gates.jsonl"
"""Its name in the state folder."""


def note(home: Home, gate: str, outcome: str, at: datetime) -> None:
    """Append one verdict; one O_APPEND write, no lock. Where that is impossible the count is short by one."""
    line = json.dumps({"at": at.astimezone(UTC).isoformat(), "gate": gate, "outcome": outcome}).encode() + b"\n"
    try:
        descriptor = open_plain(home.state / FILE, os.O_WRONLY | os.O_APPEND | os.O_CREAT, FILE_MODE)
    except OSError:
        return
    try:
        os.write(descriptor, line)
    finally:
        os.close(descriptor)


def read(home: Home, since: datetime) -> list[tuple[str, str]]:
    """Gate and outcome of every verdict since then."""
    found = []
    try:
        lines = read_bytes(home.state / FILE).decode("utf-8", "replace").splitlines()
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
