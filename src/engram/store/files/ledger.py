"""What was said and done: one append-only file per session, each event chained to the one before it (`store.ledgers`)."""

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from engram.model.errors import StoreCorrupt, StoreReadOnly
from engram.model.event import Event
from engram.store.files.home import DIRECTORY_MODE
from engram.store.files.journal import append_durably, replace_file, set_aside, sync_directory, torn_tail
from engram.store.ledgers import blanked, from_fields, to_fields

_SAFE = re.compile(r"[^A-Za-z0-9._-]")


class Ledger:
    """Reads and appends. Appending and purging are for the holder of the writer lock."""

    def __init__(self, folder: Path, quarantine: Path) -> None:
        self._folder = folder
        self._quarantine = quarantine

    def path(self, session: str) -> Path:
        """The file of a session, whose name cannot leave the ledger folder."""
        name = _SAFE.sub("_", session)[:100].lstrip(".") or "_"
        if name != session:
            name += "~" + hashlib.sha256(session.encode("utf-8", "replace")).hexdigest()[:12]
        return self._folder / f"{name}.jsonl"

    def sizes(self) -> dict[str, int]:
        """Every ledger file's name and size."""
        if not self._folder.is_dir():
            return {}
        return {path.name: path.stat().st_size for path in self._folder.glob("*.jsonl")}

    def size(self, name: str) -> int | None:
        """One ledger file's size; None where there is none."""
        try:
            return (self._folder / name).stat().st_size
        except FileNotFoundError:
            return None

    def append(self, session: str, events: Sequence[Event]) -> tuple[str, int]:
        """Write chained events and fsync once; return file name and new size."""
        path = self.path(session)
        data = b"".join(encode(event) for event in events)
        try:
            self._folder.mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)
            fresh = not path.exists()
            start = append_durably(path, data)
            if fresh:
                sync_directory(self._folder)
        except OSError as error:
            raise StoreReadOnly(f"cannot append to {path}: {error.strerror}; nothing was written") from error
        return path.name, start + len(data)

    def read(self, name: str, offset: int = 0) -> Iterator[Event]:
        """Events of one file from a byte offset on."""
        path = self._folder / name
        with path.open("rb") as file:
            file.seek(offset)
            for number, line in enumerate(file, 1):
                if line.endswith(b"\n") and line.strip():
                    yield _parse(line, path, number)

    def readable(self, name: str, offset: int = 0) -> tuple[list[Event], str]:
        """The events up to the first line that cannot be read, and what is wrong with that line."""
        found: list[Event] = []
        try:
            found.extend(self.read(name, offset))
        except StoreCorrupt as error:
            return found, str(error)
        return found, ""

    def mend(self) -> list[str]:
        """Move torn last lines to quarantine."""
        moved = []
        for name in self.sizes():
            torn = torn_tail(self._folder / name)
            if torn is not None:
                moved.append(set_aside(self._folder / name, torn, self._quarantine, "torn last line"))
        return moved

    def blank(self, name: str, ids: frozenset[str]) -> int:
        """Take content, payload, metadata, key and salt of some events away; return how many."""
        path = self._folder / name
        lines, count = [], 0
        for event in self.read(name):
            if event.id in ids:
                event = blanked(event)
                count += 1
            lines.append(encode(event))
        if count:
            replace_file(path, b"".join(lines))
        return count


def encode(event: Event) -> bytes:
    """The line of an event."""
    return (
        json.dumps(to_fields(event), ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass") + b"\n"
    )


def _parse(line: bytes, path: Path, number: int) -> Event:
    try:
        return from_fields(json.loads(line))
    except (ValueError, KeyError, TypeError) as error:
        raise StoreCorrupt(f"{path}:{number}: not an event ({error}); restore the file from a backup") from None
