"""What a program's new memories outdate: superseded where that is sure, otherwise linked until somebody decides."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Final

from engram.decisions.change import Change
from engram.decisions.conflicts import change_link, update_target
from engram.decisions.execution import execute_change
from engram.decisions.known import StoreLookup, propose
from engram.decisions.locked import LockedMemories
from engram.gates.neighbourhood import Neighbourhood
from engram.gates.proposal import Conflict
from engram.model.lazy import dataclass
from engram.model.memory import Memory
from engram.model.task import Job
from engram.review.lineage import Lineages
from engram.rules.sources import may_replace
from engram.store.documents import meaning_of
from engram.store.history import CREATING_OPS
from engram.store.protocol import Image, Store
from engram.store.records import CURRENT_STATUSES

if TYPE_CHECKING:
    from engram.embedding.protocol import Vectors

COMPARE: Final = "compare"
"""The job, and the journal's operation, that compares added memories with their neighbours."""


@dataclass(frozen=True, slots=True)
class Changes:
    """Finds what added memories outdate, at once or in a job."""

    store: Store
    clock: Callable[[], datetime]

    def find_conflicts(self, memories: Sequence[Memory], vectors: "Vectors | None") -> dict[int, Conflict]:
        """The current memory that each of these probably outdates or contradicts, by its place."""
        found: dict[int, Conflict] = {}
        with self.store.reading():
            for i, memory in enumerate(memories):
                if memory.status in CURRENT_STATUSES and not memory.supersedes:
                    change = self._find_conflict(memory, vectors[i] if vectors is not None else None)
                    found |= {i: change} if change is not None else {}
        return found

    def _find_conflict(self, memory: Memory, vector: "Vectors | None") -> Conflict | None:
        proposal = propose(memory)
        near = StoreLookup(self.store, vector).near(proposal)
        # A memory that was just added is compared with those before it.
        current = [one for one in near if one.memory.status in CURRENT_STATUSES and one.memory.id != memory.id]
        earlier = self._older_ids(memory.id, [one.memory.id for one in current])
        older = [one for one in current if one.memory.id in earlier]
        found = Neighbourhood(proposal, older).conflicts()
        return found[0] if found and found[0].is_likely else None

    def _older_ids(self, memory_id: str, others: Sequence[str]) -> set[str]:
        """Those of the others that were stored before a memory, by the journal's order; before one without an id, all of them."""
        if not memory_id or not others:
            return set(others)
        first = {i: _place(i, found) for i, found in self.store.histories([memory_id, *others]).items()}
        return {other for other in others if first[other] < first[memory_id]}

    def apply_conflict(self, memories: LockedMemories, new: Memory, change: Conflict) -> Memory:
        """The added memory: superseding an older one where that is sure, else linked to it until somebody decides."""
        older = memories.get(change.other.id)
        if older is None or older.status not in CURRENT_STATUSES or older.statement != change.other.statement:
            return new
        if change.is_sure and may_replace(new.source, older):
            return memories.supersede(new, [older], by=new.source)
        return new.replace(associations=(*new.associations, change_link(older, change.probability, memories.now)))

    def enqueue_comparison(self, ids: Sequence[str]) -> None:
        """Leave the comparison of stored memories to a job."""
        now = self.clock()
        if ids:
            self.store.enqueue([Job(f"{COMPARE}:{ids[0]}:{len(ids)}", COMPARE, now, now, {"ids": list(ids)})])

    def compare_stored(self, ids: Sequence[str]) -> None:
        """Compare stored memories with what was there before them."""
        for memory in filter(None, map(self.store.get, ids)):
            if memory.status not in CURRENT_STATUSES or memory.supersedes or update_target(self.store.get, memory):
                continue
            vectors = self.store.embed([meaning_of(memory)])
            with self.store.reading():
                change = self._find_conflict(memory, vectors[0] if vectors is not None else None)
            if change is not None:
                self._decide(memory, change)

    def _decide(self, memory: Memory, change: Conflict) -> None:
        lineages = Lineages(self.store, self.clock)
        about = [memory.id, *(version.id for version in lineages.versions(change.other.id))]

        def plan(memories: LockedMemories) -> None:
            found = memories.get(memory.id)
            if found is None or found.status not in CURRENT_STATUSES:
                return
            changed = self.apply_conflict(memories, found, change)
            if changed != found:
                memories.put(changed.replace(updated=memories.now))

        note = f"contradiction: {change.other.id}"
        decision = Change(op=COMPARE, actor="engram", plan=plan, note=note, scopes=[memory.scope], related=about)
        execute_change(self.store, self.clock, decision)


def _place(memory_id: str, history: Sequence[Image]) -> tuple[int, int]:
    """Where the journal stored a memory: the entry, and the place among those it stored. What begins otherwise was pruned, so it is old."""
    if not history or history[0].op not in CREATING_OPS:
        return 0, 0
    return history[0].seq, history[0].ids.index(memory_id)
