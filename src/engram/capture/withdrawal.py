"""What a person took out of use stays out of what programs add and of what files bring, as `learn` keeps it out.

A rejection holds for other words, too; a retirement for the same text, since a program may well add what is merely like it.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from engram.capture.known import StoreKnown, decided_how, propose, reaches
from engram.gates.neighbourhood import told_before
from engram.gates.pipeline import mention
from engram.gates.proposal import Neighbour
from engram.model.errors import Refused
from engram.model.lazy import dataclass
from engram.model.memory import Memory
from engram.rules.sources import Rank, rank_of
from engram.store.documents import meaning_of
from engram.store.protocol import Filters, Store
from engram.store.records import CURRENT
from engram.text.content_hash import content_hash, same_text
from engram.text.display import notice

if TYPE_CHECKING:
    from engram.embedding.protocol import Vectors

__all__ = ["Withdrawals"]

STATUSES = ("rejected", "retired")


@dataclass(frozen=True, slots=True)
class Withdrawals:
    """Looks up what a person rejected or retired."""

    store: Store

    def without(self, memories: Sequence[Memory], source: str, *, waits: bool = False) -> list[Memory]:
        """The memories; raises `Refused` for one that a person took out of use, or has it wait for review where it `waits`."""
        said = [memory for memory in memories if rank_of(memory.source or source, Rank.PROGRAM) < Rank.PERSON]
        found = self.found([memory for memory in said if memory.status in CURRENT])
        if found and not waits:
            out = next(iter(found.values()))
            told = notice(f"{mention(out.memory)} was {out.decided}")
            raise Refused(f"nothing was added: {told}; a person may say it again, or undo that")
        return [memory.but(status="candidate") if id(memory) in found else memory for memory in memories]

    def found(self, memories: Sequence[Memory]) -> dict[int, Neighbour]:
        """What each of these repeats that a person took out of use, by the identity of the memory."""
        if not memories or not self.store.count(Filters(statuses=STATUSES)):
            return {}
        found = {id(memory): out for memory in memories if (out := self._same(memory)) is not None}
        rest = [memory for memory in memories if id(memory) not in found]
        if not rest or not self.store.count(Filters(statuses=("rejected",))):
            return found
        vectors = self.store.embed([meaning_of(memory) for memory in rest])
        with self.store.reading():
            for i, memory in enumerate(rest):
                if out := self._rejected(memory, vectors[i] if vectors is not None else None):
                    found[id(memory)] = out
        return found

    def _same(self, memory: Memory) -> Neighbour | None:
        """The one with the same text; a rejected one before a retired one."""
        told = sorted(
            self.store.same_text(content_hash(memory.statement), STATUSES),
            key=lambda other: STATUSES.index(other.status),
        )
        for other in told:
            is_same = reaches(other.scope, memory.scope) and same_text(other.statement, memory.statement)
            if is_same and (how := decided_how(self.store.history(other.id), other)):
                return Neighbour(other, 1.0, how)
        return None

    def _rejected(self, memory: Memory, vector: "Vectors | None") -> Neighbour | None:
        """The rejected one that says the same in other words."""
        proposal = propose(memory)
        return told_before(proposal, StoreKnown(self.store, vector).rejected(proposal))
