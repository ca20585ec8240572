"""What the logs of an open store need: its folders, its lock, its clock, and the owner's warnings."""

from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from engram.model.errors import StoreCorrupt
from engram.model.lazy import dataclass
from engram.store.files.lock import WriterLock
from engram.store.files.log.journal import Journal
from engram.store.files.log.ledger import Ledger
from engram.store.files.log.usage import Usage
from engram.store.home import Home, memory_file, refuse_links


@dataclass(slots=True)
class LogContext:
    """The logs of an open store. `warnings` collects messages for the owner."""

    home: Home
    journal: Journal
    usage: Usage
    ledger: Ledger
    lock: WriterLock
    clock: Callable[[], datetime]
    token: Callable[[int], str]
    warnings: list[str]

    def warn(self, *problems: str) -> None:
        """Add warnings for the owner, each once."""
        self.warnings += [text for text in dict.fromkeys(problems) if text and text not in self.warnings]

    def path(self, stored: str) -> Path:
        """The full path of a stored path, which is relative to the home, or absolute in a team store."""
        return self.home.root / stored

    def safe_path(self, stored: str) -> Path:
        """The full path of a memory file about to be read or changed. Raises if it is outside the store or behind a link."""
        try:
            memory_file(stored)
        except ValueError as error:
            raise StoreCorrupt(f"{self.home.index}: {error}; run `engram index --rebuild`") from None
        refuse_links(self.home.root, stored)
        return self.path(stored)

    def stored_path(self, path: Path) -> str:
        """The path under which the index knows a file."""
        return str(path).removeprefix(f"{self.home.root}/")
