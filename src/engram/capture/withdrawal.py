"""What a person took out of use stays out of what programs add and of what files bring, as `learn` keeps it out.

A rejection holds for other words, too, and in what a file brings for the parts of a form and the texts next to a statement; a retirement for the same text, since a program may well add what is merely like it.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from engram.capture.known import OUT_NEIGHBOURS, StoreKnown, decided_how, propose, reaches, taken_out
from engram.embedding.products import dot
from engram.gates.comparison import shared
from engram.gates.forms import statements_of
from engram.gates.neighbourhood import told_before
from engram.gates.particulars import sentences_beside
from engram.gates.pipeline import mention
from engram.gates.proposal import Neighbour, Proposal
from engram.model.errors import Refused
from engram.model.lazy import dataclass
from engram.model.memory import Memory
from engram.rules.scopes import seen_from
from engram.rules.sources import Rank, rank_of
from engram.store.documents import meaning_of
from engram.store.protocol import Filters, Store
from engram.store.records import ANSWERING
from engram.text.content_hash import content_hash, same_text
from engram.text.display import notice

if TYPE_CHECKING:
    from engram.embedding.protocol import Vectors

__all__ = ["Withdrawals"]

STATUSES = ("rejected", "retired")
NEAR, MOST_WORDS = 0.4, 0.5
"""The cosine, or the share of a rejected memory's words, from which a statement is compared with it in full."""
FEW_PER_MEMORY, MOST_COMPARED = 50, 5_000
"""Up to so many rejections for each new memory, and in all, comparing with every one costs less than a search for each memory."""
SLICE = 500
"""Memories whose vectors are compared at once; bounds the size of the product."""


@dataclass(frozen=True, slots=True)
class Withdrawals:
    """Looks up what a person rejected or retired."""

    store: Store

    def without(self, memories: Sequence[Memory], source: str, *, waits: bool = False) -> list[Memory]:
        """The memories; raises `Refused` for one that a person took out of use, or has it wait for review where it `waits`."""
        said = [memory for memory in memories if rank_of(memory.source or source, Rank.PROGRAM) < Rank.PERSON]
        found = self.found([memory for memory in said if memory.status in ANSWERING])
        if found and not waits:
            out = next(iter(found.values()))
            told = notice(f"{mention(out.memory)} was {out.decided}")
            raise Refused(f"nothing was added: {told}; a person may say it again, or undo that")
        return [memory.but(status="candidate") if id(memory) in found else memory for memory in memories]

    def count(self) -> int:
        """How many memories are rejected or retired; another number means that somebody decided in between."""
        return self.store.count(Filters(statuses=STATUSES))

    def found(self, memories: Sequence[Memory], *, inside: bool = False) -> dict[int, Neighbour]:
        """What each of these repeats that a person took out of use, by the identity of the memory.

        With `inside`, the parts of their forms and what they say next to the statement count too, where a person rejected that.
        """
        if not memories or not self.count():
            return {}
        found = {id(memory): out for memory in memories if (out := self._same(memory)) is not None}
        rest = [memory for memory in memories if id(memory) not in found]
        rejections = self.store.count(Filters(statuses=("rejected",))) if rest else 0
        if not rejections:
            return found
        is_few = rejections <= min(FEW_PER_MEMORY * len(rest), MOST_COMPARED)
        rejected = self._rejections() if is_few else None
        for start in range(0, len(rest), SLICE):
            found |= self._reworded(rest[start : start + SLICE], rejected)
        for memory in rest if inside else ():
            if id(memory) not in found and (out := self._inside(memory, rejected)) is not None:
                found[id(memory)] = out
        return found

    def _inside(self, memory: Memory, rejected: "_Rejections | None") -> Neighbour | None:
        """What a person rejected that a part of a memory says; compared by words, since there may be many parts."""
        proposal = propose(memory)
        parts = [*statements_of(proposal)[1:], *sentences_beside(proposal)]
        known = StoreKnown(self.store)
        near = rejected.near(parts, None) if rejected is not None else [list(known.rejected(part)) for part in parts]
        pairs = zip(parts, near, strict=True)
        told = (told_before(part, taken_out(self.store, others)) for part, others in pairs if others)
        return next((out for out in told if out is not None), None)

    def _reworded(self, memories: Sequence[Memory], rejected: "_Rejections | None") -> dict[int, Neighbour]:
        """What these say in other words that a person rejected."""
        vectors = self.store.embed([meaning_of(memory) for memory in memories])
        proposals = [propose(memory) for memory in memories]
        if rejected is not None:
            near = rejected.near(proposals, vectors)
        else:
            near = [
                list(StoreKnown(self.store, vectors[i] if vectors is not None else None).rejected(proposal))
                for i, proposal in enumerate(proposals)
            ]
        pairs = zip(proposals, near, strict=True)
        told = [told_before(proposal, taken_out(self.store, others)) if others else None for proposal, others in pairs]
        return {id(memory): out for memory, out in zip(memories, told, strict=True) if out is not None}

    def _rejections(self) -> "_Rejections":
        memories = self.store.listing(Filters(statuses=("rejected",)))
        numbers = self.store.numbers([memory.id for memory in memories])
        indexed = [memory for memory in memories if memory.id in numbers]
        return _Rejections(indexed, self.store.vectors([numbers[memory.id] for memory in indexed]))

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


@dataclass(frozen=True, slots=True)
class _Rejections:
    """All rejected memories of a store, where they are few: many statements are compared with them at once."""

    memories: Sequence[Memory]
    vectors: "Vectors | None"

    def near(self, proposals: Sequence[Proposal], vectors: "Vectors | None") -> list[list[Neighbour]]:
        """The rejected memories that each proposal is near to in meaning or shares most words with, nearest first."""
        if vectors is None or self.vectors is None or not self.memories:
            return [self._near(proposal, [-1.0] * len(self.memories)) for proposal in proposals]
        return [self._near(one, row) for one, row in zip(proposals, dot(vectors, self.vectors.T).tolist(), strict=True)]

    def _near(self, proposal: Proposal, cosines: Sequence[float]) -> list[Neighbour]:
        scopes, terms = seen_from([proposal.memory.scope]), frozenset(proposal.tokens)
        found = [
            Neighbour(memory, cosine)
            for memory, cosine in zip(self.memories, cosines, strict=True)
            if memory.scope in scopes and (cosine >= NEAR or shared(terms, memory) >= MOST_WORDS)
        ]
        return sorted(found, key=lambda one: one.cosine, reverse=True)[:OUT_NEIGHBOURS]
