"""What was read from somewhere else, in the one form that every reader of a format yields."""

import hashlib
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from engram.model.lazy import dataclass, field
from engram.model.memory import Memory

EXPORT_PLACES = "export/places"
"""The state with the origin of each place that memories were exported to, and when."""
CLAIMED_SOURCE = "claimed_source"
"""The key in a memory's `extra` with the source that an imported file gave it: shown and exported, and never counted."""
_ORIGIN = re.compile(r"(?:plur|import)-[0-9a-f]{12}/")


@dataclass(frozen=True, slots=True)
class Projection:
    """What a format that knows fewer fields than Engram can say of a memory."""

    fields: frozenset[str]
    """The fields a record of the format states; it says nothing about the others."""
    as_exported: Callable[[Memory], Memory]
    """A memory as a reader of the format would see it: written, and read again."""


@dataclass(slots=True)
class ImportSource:
    """What was read from a path: memories or drafts, each with its place, and what could not be read."""

    found: list[tuple[str, "Memory | Mapping[str, Any]"]] = field(default_factory=list)
    skipped: list[tuple[str, str]] = field(default_factory=list)
    not_read: list[str] = field(default_factory=list)
    origin: str = ""
    """What the store it was read from is called here: ids mean something only within it."""
    whole: bool = False
    """Whether ids there say nothing about ids here, so that every record is known by its origin and merged by field."""
    made_ids: bool = False
    """Whether the reader made the ids (from a path, a line): they are no names to look a memory up by."""
    projection: Projection | None = None
    """What the format can say; None if it states every field."""
    notices: list[tuple[str, str]] = field(default_factory=list)
    """Records that were read, each with what their owner should complete."""
    _first: dict[str, tuple[str, Memory]] = field(default_factory=dict)

    def add(self, place: str, memory: Memory) -> None:
        """Add a record, unless another one of its id came before: that one counts, and this one is named if it differs."""
        first_place, first = self._first.setdefault(memory.id, (place, memory))
        if first is memory:
            self.found.append((place, memory))
        elif self.made_ids:
            self.skipped.append((place, f"duplicate of {first_place}"))
        elif first != memory:
            self.skipped.append((place, f"duplicate id {memory.id}; kept the first record"))

    def name_of(self, record_id: str) -> str:
        """The alias under which a record of this origin is found again."""
        return f"{self.origin}/{record_id}"


def origin_of_path(kind: str, path: Path) -> str:
    """A store is known by where it is: two of them at different places share no ids, whatever their records say."""
    return f"{kind}-{hashlib.sha256(os.fsencode(path.resolve())).hexdigest()[:12]}"


def is_origin(alias: str) -> bool:
    """Whether an alias says which record of another store a memory came from."""
    return _ORIGIN.match(alias) is not None


def without_origin(name: str) -> str:
    """The id that a record has in the store it came from, where a name says so."""
    return _ORIGIN.sub("", name, count=1).partition("@")[0] if is_origin(name) else name


def stated_source(memory: Memory) -> str:
    """The source of a memory as another format states it: what the file it came from said, else its own."""
    claimed = memory.extra.get(CLAIMED_SOURCE) if memory.learned_by == "import" else None
    return claimed if isinstance(claimed, str) and claimed else memory.source


def record_label(record: Any, where: str) -> str:
    """How to name a record: its place, and its id if it has one."""
    name = record.get("id") if isinstance(record, Mapping) else None
    return f"{where} ({name})" if isinstance(name, str) and name else where
