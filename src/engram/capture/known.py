"""What the gates may look up for a proposal: in the store, or among what others wrote in the meantime."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from engram.gates.proposal import Neighbour, Proposal
from engram.model.decision import DISTRUST
from engram.model.lazy import dataclass, replace
from engram.model.memory import Memory
from engram.rules.scopes import seen_from
from engram.store.protocol import Filters, Query, Store
from engram.store.records import heads_among
from engram.text.content_hash import content_hash
from engram.text.tokens import query_terms, tokens

if TYPE_CHECKING:
    from engram.embedding.protocol import Vectors

NEIGHBOURS = 6
"""How many of the nearest memories by meaning, and as many by words, the gates compare with."""
SUBJECT_NEIGHBOURS = 24
"""How many memories a fact in a form is compared with that share the words of its subject and predicate."""
REJECTED_NEIGHBOURS = 3
"""How many of the nearest rejected memories a proposal is compared with."""
LOOKUP_TERMS = 6
"""How many of the rarest words of a statement its neighbours are looked up by."""
COMPARED = ("active", "dormant", "candidate")
"""The statuses of memories that a proposal is compared with."""


def propose(memory: Memory, *, autonomous: bool = False) -> Proposal:
    """A memory with its content hash and tokens, as the gates compare it."""
    return Proposal(memory, autonomous, content_hash(memory.statement), tuple(tokens(memory.statement[:20_000])))


@dataclass(slots=True)
class StoreKnown:
    """The gates' lookups (`gates.proposal.Known`) in a store."""

    store: Store
    vector: "Vectors | None" = None
    statuses: tuple[str, ...] = COMPARED

    def exact(self, text_hash: str, scope: str) -> Memory | None:
        """The live memory with this content hash in a scope."""
        return self.store.exact(text_hash, scope)

    def heads(self, conflict_key: str, scope: str) -> Sequence[Memory]:
        """The current memories with a conflict key in a scope."""
        return self.store.heads(conflict_key, scope)

    def near(self, proposal: Proposal) -> Sequence[Neighbour]:
        """The nearest memories of the same scope and of these statuses, by meaning and by words; of a fact also those about its subject."""
        found = list(self._nearest(proposal, self.statuses, NEIGHBOURS))
        known = {near.memory.id for near in found}
        return found + [near for near in self._about_subject(proposal) if near.memory.id not in known]

    def _about_subject(self, proposal: Proposal) -> Sequence[Neighbour]:
        """Other facts about the subject and predicate of a fact; what they say of it, its object, may share no word."""
        form = proposal.memory.form
        if not form.get("subject"):
            return ()
        terms = tuple(query_terms(f"{form['subject']} {form.get('predicate', '')}"[:400]))
        filters = Filters(scopes=(proposal.memory.scope,), statuses=self.statuses)
        found = self.store.candidates(Query(terms, None, SUBJECT_NEIGHBOURS), filters)
        return self._neighbours([n for n, _ in found.lexical])

    def rejected(self, proposal: Proposal) -> Sequence[Neighbour]:
        """The nearest memories of the scopes seen from there that were rejected for what they say, not for who said it."""
        scope = proposal.memory.scope
        found = self._nearest(proposal, ("rejected",), REJECTED_NEIGHBOURS, seen_from([scope]))
        kept = [near for near in found if not self._was_distrusted(near.memory)]
        # A rejection holds in every scope that sees it, so it is compared as if it were there.
        return [replace(near, memory=near.memory.but(scope=scope)) for near in kept]

    def _was_distrusted(self, memory: Memory) -> bool:
        decisions = self.store.history(memory.id)
        return bool(decisions) and decisions[-1].op == DISTRUST

    def _nearest(
        self, proposal: Proposal, statuses: tuple[str, ...], limit: int, scopes: Sequence[str] = ()
    ) -> Sequence[Neighbour]:
        filters = Filters(scopes=tuple(scopes) or (proposal.memory.scope,), statuses=statuses)
        found = self.store.candidates(Query(self._rarest_terms(proposal), self.vector, limit), filters)
        return self._neighbours(list(dict.fromkeys([n for n, _ in found.semantic] + [n for n, _ in found.lexical])))

    def _neighbours(self, numbers: Sequence[int]) -> Sequence[Neighbour]:
        hits = self.store.get_many(numbers)
        cosines = self._cosines([hit.n for hit in hits])
        pairs = zip(hits, cosines, strict=True)
        return [Neighbour(hit.record, cosine) for hit, cosine in pairs if isinstance(hit.record, Memory)]

    def _rarest_terms(self, proposal: Proposal) -> tuple[str, ...]:
        """The rarest words of a statement: any memory that says the same, or the opposite, shares some of them."""
        terms = query_terms(proposal.memory.statement[:4000])
        known = self.store.frequencies(terms)
        return tuple(sorted(known, key=lambda term: (known[term], term))[:LOOKUP_TERMS])

    def _cosines(self, numbers: Sequence[int]) -> Sequence[float]:
        vectors = self.store.vectors(numbers)
        if vectors is None or self.vector is None:
            return [-1.0] * len(numbers)
        values: list[float] = (vectors @ self.vector).tolist()
        return values


@dataclass(slots=True)
class OtherKnown(StoreKnown):
    """The gates' lookups for a memory that is stored already: everything but that one."""

    own: str = ""

    def exact(self, text_hash: str, scope: str) -> Memory | None:
        """None: the memory is stored once."""
        return None

    def heads(self, conflict_key: str, scope: str) -> Sequence[Memory]:
        """The other current memories with a conflict key in a scope."""
        return [head for head in self.store.heads(conflict_key, scope) if head.id != self.own]

    def near(self, proposal: Proposal) -> Sequence[Neighbour]:
        """The nearest other memories of the same scope."""
        return [near for near in StoreKnown.near(self, proposal) if near.memory.id != self.own]


@dataclass(slots=True)
class LateKnown:
    """The gates' lookups among the few memories that others wrote between the verdict and the lock."""

    memories: Sequence[Memory]

    def exact(self, text_hash: str, scope: str) -> Memory | None:
        """The one with this content hash in a scope."""
        return next((m for m in self.memories if m.scope == scope and content_hash(m.statement) == text_hash), None)

    def heads(self, conflict_key: str, scope: str) -> Sequence[Memory]:
        """The current ones with a conflict key in a scope."""
        return heads_among(self.memories, conflict_key, scope)

    def near(self, proposal: Proposal) -> Sequence[Neighbour]:
        """All of them; their cosines are unknown."""
        return [Neighbour(memory, -1.0) for memory in self.memories]

    def rejected(self, proposal: Proposal) -> Sequence[Neighbour]:
        """None: what is rejected in that moment was judged with the rest."""
        return ()
