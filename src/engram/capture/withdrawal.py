"""Keeps memories that a person took out of use from being added again by programs or imports, as `learn` does.

A rejection also covers rewordings; in imports, it covers the parts of a form and the texts next to a statement too. A
memory that only probably repeats a rejected one waits for review. A retirement covers the same text and, in imports,
rewordings; a program may add similar memories.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from engram.decisions.admission import (
    StoreLookup,
    filter_taken_out,
    is_visible_either_way,
    propose,
    removal_note,
    taken_out_limit,
)
from engram.embedding.vectors import dot
from engram.gates.comparison import statements_of, term_coverage
from engram.gates.neighbourhood import (
    WITHDRAWN_STATUSES,
    Recurrence,
    find_recurrence,
    find_repeated_passage,
    state_passage,
)
from engram.gates.pipeline import join_texts, mention, particular_texts
from engram.gates.proposal import Neighbour, Proposal
from engram.model.errors import Refused
from engram.model.lazy import dataclass
from engram.model.memory import Memory
from engram.models.readings import other_readings
from engram.rules.scopes import visible_scopes
from engram.rules.sources import Rank, rank_of
from engram.store.documents import meaning_of
from engram.store.protocol import Filters, Store
from engram.store.records import ANSWERING_STATUSES
from engram.text.content_hash import content_hash, same_text
from engram.text.display import notice
from engram.text.tokens import tokens

if TYPE_CHECKING:
    from engram.embedding.vectors import Vectors

__all__ = ["Withdrawals"]

MIN_WITHDRAWN_COSINE, MIN_SHARED_SHARE = 0.4, 0.5
"""The cosine, or the share of a rejected memory's words, from which a statement is compared with that memory in full."""
MAX_WITHDRAWN_PER_MEMORY, MAX_COMPARED_WITHDRAWN = 50, 5_000
"""Up to this many rejections per new memory, and in total, it is cheaper to compare with all of them than to search for each memory."""
SLICE = 500
"""Memories whose vectors are compared at once; bounds the size of the product."""


@dataclass(frozen=True, slots=True)
class Withdrawals:
    """Looks up the memories that a person rejected or retired."""

    store: Store

    def hold_withdrawn(self, memories: Sequence[Memory], source: str, *, waits: bool = False) -> list[Memory]:
        """The memories; those that probably repeat a rejected one wait for review.

        Raises `Refused` for one that certainly repeats a memory that a person took out of use, unless `waits` is set.
        """
        said = [memory for memory in memories if rank_of(memory.source or source, Rank.PROGRAM) < Rank.PERSON]
        found = self.find_recurrences([memory for memory in said if memory.status in ANSWERING_STATUSES])
        out = next((one for one in found.values() if one.is_sure), None)
        if out is not None and not waits:
            told = notice(f"{mention(out.memory)} was {out.removal_note}")
            raise Refused(f"nothing was added: {told}; a person may say it again, or undo that")
        return [memory.replace(status="candidate") if id(memory) in found else memory for memory in memories]

    def count(self) -> int:
        """The number of rejected or retired memories; if it changes, somebody has decided in between."""
        return self.store.count(Filters(statuses=WITHDRAWN_STATUSES))

    def find_recurrences(self, memories: Sequence[Memory], *, inside: bool = False) -> dict[int, Recurrence]:
        """The memories that these repeat and that a person took out of use, by the identity of the repeating memory.

        With `inside`, rewordings of retired memories count too, and so do the parts of forms and the texts next to a
        statement.
        """
        statuses = WITHDRAWN_STATUSES if inside else WITHDRAWN_STATUSES[:1]
        if not memories or not self.count():
            return {}
        found = {id(memory): out for memory in memories if (out := self._find_same_text(memory)) is not None}
        rest = [memory for memory in memories if id(memory) not in found]
        withdrawn = self.store.count(Filters(statuses=statuses)) if rest else 0
        if not withdrawn:
            return found
        is_few = withdrawn <= min(MAX_WITHDRAWN_PER_MEMORY * len(rest), MAX_COMPARED_WITHDRAWN)
        lookup = self._load_withdrawn(statuses) if is_few else _StoreSearch(self.store, statuses)
        for start in range(0, len(rest), SLICE):
            found |= self._find_reworded(rest[start : start + SLICE], lookup)
        for memory in rest if inside else ():
            if id(memory) not in found and (out := self._find_inside(memory, lookup)) is not None:
                found[id(memory)] = out
        return found

    def _find_inside(self, memory: Memory, lookup: "_InMemorySearch | _StoreSearch") -> Recurrence | None:
        """The rejected memory that a part of this one repeats; compared by words, because there may be many parts."""
        proposal, beside = propose(memory), particular_texts(memory)
        texts = {"form": [part.memory.statement for part in statements_of(proposal)[1:]], **beside}
        if not any(texts.values()):
            return None
        (others,) = lookup.near([state_passage(proposal, join_texts(texts))], None)
        rejected = filter_taken_out(self.store, [one for one in others if one.memory.status == "rejected"])
        found = find_repeated_passage(proposal, texts, rejected) if rejected else None
        return None if found is None else found[1]

    def _find_reworded(
        self, memories: Sequence[Memory], lookup: "_InMemorySearch | _StoreSearch"
    ) -> dict[int, Recurrence]:
        """The memories taken out of use that these reword, by identity."""
        vectors = self.store.embed([meaning_of(memory) for memory in memories])
        proposals = [propose(memory) for memory in memories]
        pairs = zip(proposals, lookup.near(proposals, vectors), strict=True)
        found = [
            find_recurrence(one, filter_taken_out(self.store, others)) if others else None for one, others in pairs
        ]
        return {id(memory): out for memory, out in zip(memories, found, strict=True) if out is not None}

    def _load_withdrawn(self, statuses: tuple[str, ...]) -> "_InMemorySearch":
        memories = self.store.listing(Filters(statuses=statuses))
        numbers = self.store.numbers([memory.id for memory in memories])
        indexed = [memory for memory in memories if memory.id in numbers]
        return _InMemorySearch(indexed, self.store.vectors([numbers[memory.id] for memory in indexed]))

    def _find_same_text(self, memory: Memory) -> Recurrence | None:
        """The memory taken out of use with the same text; rejected ones come before retired ones."""
        told = sorted(
            self.store.same_text(content_hash(memory.statement), WITHDRAWN_STATUSES),
            key=lambda other: WITHDRAWN_STATUSES.index(other.status),
        )
        for other in told:
            is_same = is_visible_either_way(other.scope, memory.scope) and same_text(other.statement, memory.statement)
            if is_same and (how := removal_note(self.store.history(other.id), other)):
                return Recurrence(Neighbour(other, 1.0, how), is_sure=True)
        return None


@dataclass(frozen=True, slots=True)
class _StoreSearch:
    """Searches the memories that were taken out of use, one statement at a time."""

    store: Store
    statuses: tuple[str, ...]

    def near(self, proposals: Sequence[Proposal], vectors: "Vectors | None") -> list[list[Neighbour]]:
        """The neighbours of each proposal."""
        found = []
        for at, proposal in enumerate(proposals):
            known = StoreLookup(self.store, vectors[at] if vectors is not None else None)
            retired = known.withdrawn_neighbours(proposal) if "retired" in self.statuses else ()
            found.append(
                [*known.rejected_neighbours(proposal), *(one for one in retired if one.memory.status in self.statuses)]
            )
        return found


@dataclass(frozen=True, slots=True)
class _InMemorySearch:
    """Holds all memories that were taken out of use, if there are few, and compares many statements with them at once."""

    memories: Sequence[Memory]
    vectors: "Vectors | None"

    def near(self, proposals: Sequence[Proposal], vectors: "Vectors | None") -> list[list[Neighbour]]:
        """The neighbours of each proposal, by meaning or by shared words, nearest first."""
        if vectors is None or self.vectors is None or not self.memories:
            return [self._near(proposal, [-1.0] * len(self.memories)) for proposal in proposals]
        return [self._near(one, row) for one, row in zip(proposals, dot(vectors, self.vectors.T).tolist(), strict=True)]

    def _near(self, proposal: Proposal, cosines: Sequence[float]) -> list[Neighbour]:
        scopes, terms = visible_scopes([proposal.memory.scope]), frozenset(_terms(proposal))
        found = [
            Neighbour(memory, cosine)
            for memory, cosine in zip(self.memories, cosines, strict=True)
            if memory.scope in scopes
            and (cosine >= MIN_WITHDRAWN_COSINE or term_coverage(terms, memory) >= MIN_SHARED_SHARE)
        ]
        return sorted(found, key=lambda one: (one.cosine, term_coverage(terms, one.memory)), reverse=True)[
            : taken_out_limit(proposal)
        ]


def _terms(proposal: Proposal) -> Iterator[str]:
    """The words of a proposal and of its other readings."""
    yield from proposal.tokens
    for reading in other_readings(proposal.memory.statement):
        yield from tokens(reading)
