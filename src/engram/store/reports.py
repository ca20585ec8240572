"""Reports of store maintenance: external changes, purges, pruning, and health checks."""

from pathlib import Path

from engram.model.lazy import dataclass, field
from engram.model.memory import Memory


@dataclass(slots=True)
class SyncReport:
    """What changed outside of Engram: ids by kind of change, and problems in words."""

    added: list[str] = field(default_factory=list)
    edited: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    restored: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    complete: bool = True

    def __bool__(self) -> bool:
        return bool(self.added or self.edited or self.removed or self.restored or self.problems)


@dataclass(frozen=True, slots=True)
class Purged:
    """The destroyed records, the places where their text still occurs, and those out of Engram's reach."""

    ids: tuple[str, ...]
    remaining: tuple[str, ...]
    out_of_reach: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Pruned:
    """Removed records, or those to remove: journal images, months of usage, ledgers of ended sessions."""

    images: int = 0
    usage_months: tuple[str, ...] = ()
    ledgers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Check:
    """One health check: its result, and advice if something can be done."""

    name: str
    ok: bool
    detail: str
    advice: str = ""


@dataclass(frozen=True, slots=True)
class TeamFile:
    """A file of a team store: whether the reader trusts it, and its content if not."""

    path: Path
    digest: str
    trusted: bool
    memories: tuple[Memory, ...] = ()
    error: str = ""
    settings: str = ""
    """The text of the repository's settings, if this is their file."""
