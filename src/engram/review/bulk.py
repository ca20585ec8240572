"""Decisions about many memories: applied in slices, marked as one decision in the journal, and undone as a whole."""

from collections.abc import Iterator, Mapping, Sequence

from engram.model.lazy import dataclass, field
from engram.model.memory import Memory
from engram.store.protocol import Store

IDS_PER_ENTRY = 100
"""Memories per journal entry; bounds how long other writers wait and how much reading one memory's history costs."""
_MARK = "DEC-"


@dataclass(frozen=True, slots=True)
class BulkDecision:
    """The result of a decision about many memories. `id` undoes it: `engram undo DEC-…`."""

    id: str
    op: str
    done: tuple[Memory, ...] = ()
    left: Mapping[str, str] = field(default_factory=dict)
    """The memories left unchanged, each with the reason."""
    source: str = ""
    """The source that was distrusted, or that is trusted again."""


def new_bulk(store: Store) -> str:
    """The id of a new bulk decision; the journal stores it as the session of each entry."""
    return f"{_MARK}{store.new_token(4)}"


def is_bulk(ref: str) -> bool:
    """Whether a reference names a bulk decision rather than a memory or a session."""
    return ref.startswith(_MARK)


def split_ids(ids: Sequence[str]) -> Iterator[Sequence[str]]:
    """The ids in slices, one journal entry each."""
    return (ids[start : start + IDS_PER_ENTRY] for start in range(0, len(ids), IDS_PER_ENTRY))
