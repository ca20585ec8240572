"""The common form in which every reader of a format returns its records."""

import hashlib
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from engram.model.lazy import dataclass, field
from engram.model.memory import Memory

EXPORT_PLACES = "export/places"
"""The state file with the origin of each export target, and the time of the export."""
CLAIMED_SOURCE = "claimed_source"
"""The key in a memory's `extra` with the source stated by an imported file; shown and exported, but never counted."""
_ORIGIN = re.compile(r"(?:plur|import)-[0-9a-f]{12}/")


@dataclass(frozen=True, slots=True)
class Projection:
    """The part of a memory that a format with fewer fields can represent."""

    fields: frozenset[str]
    """The fields that a record of the format states; others are undefined."""
    as_exported: Callable[[Memory], Memory]
    """Converts a memory to the form in which a reader of the format sees it: written and read back."""


@dataclass(slots=True)
class ImportSource:
    """The records read from a path: memories or drafts, each with its position, and the unreadable parts."""

    found: list[tuple[str, "Memory | Mapping[str, Any]"]] = field(default_factory=list)
    skipped: list[tuple[str, str]] = field(default_factory=list)
    not_read: list[str] = field(default_factory=list)
    origin: str = ""
    """The name of the original store; ids are unique only within it."""
    whole: bool = False
    """Whether ids there are unrelated to ids here, so that every record is identified by its origin and merged by
    field."""
    made_ids: bool = False
    """Whether the reader created the ids (from a path, a line), so that they are no use for finding a memory."""
    projection: Projection | None = None
    """The fields the format can represent; None if all of them."""
    notices: list[tuple[str, str]] = field(default_factory=list)
    """Records that were read, each with the parts that their owner should complete."""
    _first: dict[str, tuple[str, Memory]] = field(default_factory=dict)

    def add(self, place: str, memory: Memory) -> None:
        """Add a record, unless its id came before. The first one counts, and this one is named if it differs."""
        first_place, first = self._first.setdefault(memory.id, (place, memory))
        if first is memory:
            self.found.append((place, memory))
        elif self.made_ids:
            self.skipped.append((place, f"duplicate of {first_place}"))
        elif first != memory:
            self.skipped.append((place, f"duplicate id {memory.id}; kept the first record"))

    def name_of(self, record_id: str) -> str:
        """The alias that identifies a record of this origin."""
        return f"{self.origin}/{record_id}"


def origin_of_path(kind: str, path: Path) -> str:
    """The origin of a store, derived from its location: stores at different places share no ids, whatever their records say."""
    return f"{kind}-{hashlib.sha256(os.fsencode(path.resolve())).hexdigest()[:12]}"


def is_origin(alias: str) -> bool:
    """Whether an alias identifies a record of another store."""
    return _ORIGIN.match(alias) is not None


def without_origin(name: str) -> str:
    """The id of a record in its original store, if a name contains it."""
    return _ORIGIN.sub("", name, count=1).partition("@")[0] if is_origin(name) else name


def stated_source(memory: Memory) -> str:
    """The source of a memory for another format: the source stated by its original file, else its own."""
    claimed = memory.extra.get(CLAIMED_SOURCE) if memory.learned_by == "import" else None
    return claimed if isinstance(claimed, str) and claimed else memory.source


def record_label(record: Any, where: str) -> str:
    """A label for a record: its position, and its id if it has one."""
    name = record.get("id") if isinstance(record, Mapping) else None
    return f"{where} ({name})" if isinstance(name, str) and name else where
