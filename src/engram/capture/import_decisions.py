"""What was decided here about the memories that a file brings: no file takes it back."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from engram.capture.withdrawal import Withdrawals
from engram.gates.neighbourhood import Recurrence
from engram.model.lazy import dataclass, field
from engram.model.memory import Memory
from engram.store.protocol import Image, Store
from engram.text.content_hash import content_hash

IMPORT: Final = "import"
"""The operation in the journal."""
ContentKey = tuple[str, str]
"""The hash of a statement, and its scope."""


@dataclass(slots=True)
class LocalDecisions:
    """The decisions of one store, looked up once per slice of an import."""

    store: Store
    _out: dict[ContentKey, Recurrence] = field(default_factory=dict)
    """What a person rejected or retired, by the content and scope of what says the same."""

    def look_up(self, memories: Sequence[Memory]) -> None:
        """Find out which of these say what a person rejected, in any words and anywhere in the memory, or retired."""
        found = Withdrawals(self.store).find_recurrences(memories, inside=True)
        by_identity = {id(memory): memory for memory in memories}
        self._out |= {content_key(by_identity[i]): out for i, out in found.items()}

    def find_rejected(self, memory: Memory) -> Recurrence | None:
        """The memory that a person rejected here and that surely says the same as one of those looked up."""
        out = self._out.get(content_key(memory))
        return out if out is not None and out.is_sure and out.memory.status == "rejected" else None

    def is_withdrawn(self, memory: Memory, known: Memory) -> bool:
        """Whether a person rejected or retired, as another memory than the known one, what one of those looked up says."""
        out = self._out.get(content_key(memory))
        return out is not None and out.memory.id != known.id

    def needs_person(self, memory: Memory) -> bool:
        """Whether a person retired what one of those looked up says, or likely rejected it: they are asked again."""
        out = self._out.get(content_key(memory))
        return out is not None and (out.memory.status == "retired" or not out.is_sure)

    def has_status_decision(self, known: Memory) -> bool:
        """Whether a decision here, and not only imports, ever changed the status of a memory."""
        changes = (
            later for earlier, later in pairwise(self.store.history(known.id)) if _status(earlier) != _status(later)
        )
        return any(later.op != IMPORT for later in changes)


def content_key(memory: Memory) -> ContentKey:
    """The key by which the content of a memory is found again."""
    return content_hash(memory.statement), memory.scope


def _status(image: Image) -> str:
    return image.memory.status if image.memory is not None else ""
