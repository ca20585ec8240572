"""What was decided here about the memories that a file brings: no file takes it back."""

from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise

from engram.model.decision import DISTRUST
from engram.model.lazy import dataclass, field
from engram.model.memory import Memory
from engram.store.protocol import Filters, Image, Store
from engram.text.content_hash import content_hash

IMPORT = "import"
"""The operation in the journal."""
ContentKey = tuple[str, str]
"""The hash of a statement, and its scope."""


@dataclass(slots=True)
class LocalDecisions:
    """The decisions of one store, looked up once per import."""

    store: Store
    _rejected: dict[ContentKey, list[str]] | None = None
    """What was rejected before this import; None until it is looked up."""
    _refusals: dict[ContentKey, str] = field(default_factory=dict)

    def rejected(self, key: ContentKey) -> str:
        """The memory with this content and scope that was rejected here, for what it says and not for who said it, or ""."""
        if not key[0]:
            return ""
        if key not in self._refusals:
            found = self._by_content().get(key, ())
            self._refusals[key] = next((memory_id for memory_id in found if self._was_rejected_here(memory_id)), "")
        return self._refusals[key]

    def _by_content(self) -> dict[ContentKey, list[str]]:
        if self._rejected is None:
            self._rejected = defaultdict(list)
            for memory in self.store.listing(Filters(statuses=("rejected",))):
                self._rejected[content_hash(memory.statement), memory.scope].append(memory.id)
        return self._rejected

    def _was_rejected_here(self, memory_id: str) -> bool:
        history = self.store.history(memory_id)
        return bool(history) and _setter_of_status(history).op not in (IMPORT, DISTRUST)

    def decided_status(self, known: Memory) -> bool:
        """Whether a decision here, and not only imports, ever changed the status of a memory."""
        changes = (
            later for earlier, later in pairwise(self.store.history(known.id)) if _status(earlier) != _status(later)
        )
        return any(later.op != IMPORT for later in changes)


def _setter_of_status(history: Sequence[Image]) -> Image:
    """The image in which a memory got the status it has now."""
    setter = history[-1]
    for image in reversed(history):
        if _status(image) != _status(setter):
            break
        setter = image
    return setter


def _status(image: Image) -> str:
    return image.memory.status if image.memory is not None else ""
