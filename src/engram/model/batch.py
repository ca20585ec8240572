"""What became of the items of a batch."""

from collections.abc import Iterable

from engram.model.errors import EngramError
from engram.model.lazy import dataclass
from engram.model.memory import Memory


@dataclass(frozen=True, slots=True)
class SkippedItem:
    """An item of a batch that was refused."""

    index: int
    """Its position in the batch, from 0."""
    excerpt: str
    """The beginning of its statement; "" if it has none, or contains a secret."""
    error: EngramError
    """What it was refused with."""

    @property
    def reason(self) -> str:
        """Why it was refused."""
        return str(self.error)


class AddedMemories(list[Memory]):
    """The stored memories in the order of their items, and the items that were skipped."""

    def __init__(self, memories: Iterable[Memory] = ()) -> None:
        super().__init__(memories)
        self.skipped: list[SkippedItem] = []
