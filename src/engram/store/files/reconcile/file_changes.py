"""What looks changed in the files of a store."""

from engram.model.lazy import dataclass, field


@dataclass(slots=True)
class FileChanges:
    """Memory files that may have changed, and folders whose listing may have."""

    files: set[str] = field(default_factory=set)
    folders: set[str] = field(default_factory=set)

    def __bool__(self) -> bool:
        return bool(self.files or self.folders)


class WatchLost(Exception):
    """Events are missing: start a new watch and compare all files."""
