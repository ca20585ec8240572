"""What `learn` and `add` share: how a new memory is drafted, embedded, named, and stripped of what its source may not claim."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from engram.capture.draft import draft
from engram.capture.duplicates import Duplicates
from engram.decisions.conflicts import conflict_link, remove_wait_mark
from engram.decisions.locked import LockedMemories
from engram.decisions.resolution import VALID_ELSEWHERE
from engram.gates.policies import MemoryPolicy
from engram.gates.proposal import GateSettings
from engram.gates.trust import is_untrusted
from engram.model.lazy import dataclass
from engram.model.memory import Memory
from engram.rules.sources import CONFIRMED, Rank, rank_of
from engram.store.documents import meaning_of
from engram.store.protocol import Store

if TYPE_CHECKING:
    from collections.abc import Callable

    from engram.embedding.protocol import Vectors


@dataclass(slots=True)
class MemoryWriter:
    """The store, and what decides about what is written to it."""

    store: Store
    settings: GateSettings
    policy: MemoryPolicy
    clock: "Callable[[], datetime]"

    def draft_memory(self, given: Mapping[str, Any], learned_by: str, source: str, now: datetime) -> Memory:
        """The memory that a caller's fields and the policy describe."""
        memory = draft(given, learned_by=learned_by, source=source, now=now)
        return self.policy.apply(memory, typed="type" in given or "memory_type" in given)

    def embed(self, memories: Sequence[Memory]) -> "Vectors | None":
        """Their vectors; None where the store has no embedder."""
        return self.store.embed([meaning_of(memory) for memory in memories])

    def reason_to_distrust(self, source: str, session: str) -> str:
        """Why nothing is taken from a source or a session; "" where it is."""
        from engram.review.distrust import distrust_reason

        return distrust_reason(self.store, source, session)

    @property
    def duplicates(self) -> Duplicates:
        """What is told again."""
        return Duplicates(self.store, self.settings, self.clock)


def add_conflict_link(memory: Memory, other: Memory, now: datetime, *, waits_alone: bool = False) -> Memory:
    """The memory with a link to the one it contradicts."""
    link = conflict_link(other, now, waits_alone=waits_alone)
    return memory.replace(associations=(*memory.associations, link))


def without_claims(memory: Memory) -> Memory:
    """A proposal without what its source may not claim: a person's confirmation, ratings, what it waits for or is right beside, and for
    content a pin.
    """
    if rank_of(memory.source) >= Rank.PROGRAM:
        return memory
    blank = Memory("", "")
    claimed = "unverified" if memory.verification == CONFIRMED else memory.verification
    return memory.replace(
        associations=tuple(remove_wait_mark(link) for link in memory.associations if link.type != VALID_ELSEWHERE), verification=claimed, feedback=blank.feedback, derivation_count=blank.derivation_count,
        pinned=memory.pinned and not is_untrusted(memory.source), source=memory.source or "unknown",
    )  # fmt: skip


def assign_identity(
    memories: LockedMemories, memory: Memory, wanted: str, now: datetime, *, team: bool = False
) -> Memory:
    """The memory with an id, and with the name it should get or one like it."""
    return memory.replace(id=memories.new_id(now, team=team), name=memories.free_name(wanted, memory.scope))
