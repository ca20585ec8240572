"""Up to which decision the memory files are known to be on disk, recorded in `state/durable.json`.

A decision is committed by the journal's fsync; its files are written after that and reach the disk whenever the system
writes them. Until then a power loss may undo them, and the result looks like the work of a person: a file that is gone,
or that has its earlier content. This mark tells the two apart, and repair acts on it.
"""

import json
import time
from typing import Any

from engram.disk import DIRECTORY_MODE, UNREADABLE, boot_id, read_bytes, replace_file
from engram.model.errors import StoreReadOnly
from engram.model.lazy import dataclass, field
from engram.store.files.log.journal import LAST_SEQ
from engram.store.home import Home

MARK_FILE = "durable.json"
DURABLE_AFTER_SECONDS = 60.0
"""Seconds after which a later decision makes a file durable: the system has usually written it by then."""


@dataclass(frozen=True, slots=True)
class Mark:
    """What is known to be on disk. `boot` is the boot id of the machine at that time, "" where there is none."""

    seq: int = 0
    boot: str = ""
    unbroken_since: int = 0
    """After this number no decision is missing; before it some may have been pruned."""
    repaired: tuple[str, ...] = ()
    repaired_at: str = ""
    """Files that the last power loss damaged, and when they were repaired."""


def read_mark(home: Home) -> Mark | None:
    """The store's mark; None if an earlier Engram wrote the store, or if the mark cannot be read."""
    try:
        fields = json.loads(read_bytes(home.state / MARK_FILE))
        repaired = fields.get("repaired") or {}
        return Mark(
            seq=_number(fields["seq"]),
            boot=str(fields["boot"]),
            unbroken_since=_number(fields["unbroken_since"]),
            repaired=tuple(str(file) for file in repaired.get("files", ())),
            repaired_at=str(repaired.get("at", "")),
        )
    except UNREADABLE:
        return None


def _number(given: Any) -> int:
    """A valid decision number with room for later ones."""
    number = int(given)
    if not 0 <= number <= LAST_SEQ // 2:
        raise ValueError(f"not a decision number:  {given!r:.40}")
    return number


def write_mark(home: Home, mark: Mark) -> None:
    """Replace the mark, durably."""
    fields: dict[str, Any] = {"seq": mark.seq, "boot": mark.boot, "unbroken_since": mark.unbroken_since}
    if mark.repaired:
        fields["repaired"] = {"at": mark.repaired_at, "files": list(mark.repaired)}
    try:
        home.state.mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)
        replace_file(home.state / MARK_FILE, json.dumps(fields, ensure_ascii=False).encode("utf-8", "replace") + b"\n")
    except OSError as error:
        raise StoreReadOnly(f"cannot write {home.state / MARK_FILE}: {error.strerror}") from error


@dataclass(slots=True)
class Durability:
    """What one process knows about durability."""

    boot: str = field(default_factory=lambda: boot_id())
    is_checked: bool = False
    """Whether the files were checked since the machine started."""
    unrepaired: set[str] = field(default_factory=set)
    """Files damaged by a power loss that could not be repaired yet; they are not edits."""
    floor: int = 0
    """No decision gets this number or a lower one, so that numbers lost at the journal's end stay missing."""
    waiting: int = 0
    """Files this process has written since it last synced."""
    _aging: tuple[float, int, int] | None = None
    """A time, the newest decision then, and how many files were waiting."""

    def due(self, seq: int) -> int:
        """The decision up to which files should be made durable now, 0 for none; `seq` is the newest.

        Without a boot id a power loss could not be told from a person's edit, so every decision is synced.
        """
        if not self.waiting:
            return 0
        if not self.boot:
            return seq
        now = time.monotonic()
        if self._aging is None:
            self._aging = now, seq, self.waiting
        since, aged, files = self._aging
        if now - since < DURABLE_AFTER_SECONDS:
            return 0
        self.waiting -= files
        self._aging = now, seq, self.waiting
        return aged


def is_own(stored: str) -> bool:
    """Whether a journaled path is one of this store's own memory files."""
    return stored.startswith("engrams/") and ".." not in stored.split("/")
