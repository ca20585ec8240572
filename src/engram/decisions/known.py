"""What the gates may look up for a proposal: in the store, or among what others wrote in the meantime."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from engram.embedding.products import dot
from engram.gates.comparison import term_coverage
from engram.gates.passages import MAX_JUDGED_CHARS
from engram.gates.proposal import Neighbour, Proposal
from engram.model.decision import DISTRUST
from engram.model.lazy import dataclass, replace
from engram.model.memory import Memory
from engram.models.readings import other_readings
from engram.rules.scopes import visible_scopes
from engram.rules.sources import Rank, rank_of
from engram.store.history import status_decision
from engram.store.protocol import Filters, Image, Query, Store
from engram.store.records import heads_among
from engram.text.confusables import fold_text
from engram.text.content_hash import content_hash
from engram.text.tokens import query_terms, tokens

if TYPE_CHECKING:
    from engram.embedding.protocol import Vectors

MAX_NEIGHBOURS = 6
"""How many of the nearest memories by meaning, and as many by words, the gates compare with."""
MAX_SUBJECT_NEIGHBOURS = 24
"""How many memories a fact in a form is compared with that share the words of its subject and predicate."""
MAX_TAKEN_OUT_NEIGHBOURS = 6
"""How many of the nearest memories that were taken out of use a proposal is compared with."""
MAX_TAKEN_OUT_NEIGHBOURS_OF_LONG = 24
"""The same for a text that may say something in any of its sentences."""
MAX_LOOKUP_TERMS = 6
"""How many of the rarest words of a statement its neighbours are looked up by."""
TAKEN_OUT_STATUSES = ("rejected", "retired", "superseded")
"""The statuses of memories that somebody took out of use."""
MAX_LOOKUPS, LOOKUP_GROUP = 40, 40
"""Lookups for a long text, and how many of its words each one looks up."""
LONG_TEXT_CHARS = 400
"""Characters from which memories that were taken out of use are looked up by all words of a text."""
COMPARED_STATUSES = ("active", "dormant", "candidate")
"""The statuses of memories that a proposal is compared with."""


def removal_note(history: Sequence[Image], memory: Memory) -> str:
    """How and when a person took a memory out of use for what it says; "" where anyone else did, or for who said it."""
    decided = status_decision(history)
    if decided is None:
        return f"{memory.status} by a person"
    if decided.op == DISTRUST or rank_of(decided.actor) != Rank.PERSON:
        return ""
    return f"{memory.status} by a person on {decided.at:%Y-%m-%d}"


def filter_taken_out(store: Store, near: Sequence[Neighbour]) -> list[Neighbour]:
    """Those of these that a person took out of use for what they say, with how and when."""
    out = [one for one in near if one.memory.status in TAKEN_OUT_STATUSES]
    told = store.histories([one.memory.id for one in out])
    found = [(one, removal_note(told[one.memory.id], one.memory)) for one in out]
    return [replace(one, decided=how) for one, how in found if how]


def _expand_readings(proposal: Proposal) -> list[Proposal]:
    """The proposal in its other readings that have words by which it may be looked up and which it does not have itself."""
    readings = other_readings(proposal.memory.statement)
    known = set(tokens(fold_text(proposal.memory.statement[:20_000]))) if readings else set()
    return [
        replace(proposal, memory=proposal.memory.replace(statement=reading))
        for reading in readings
        if not known.issuperset(tokens(reading))
    ]


def taken_out_limit(proposal: Proposal) -> int:
    """How many memories that were taken out of use a proposal is compared with."""
    return (
        MAX_TAKEN_OUT_NEIGHBOURS
        if len(proposal.memory.statement) <= LONG_TEXT_CHARS
        else MAX_TAKEN_OUT_NEIGHBOURS_OF_LONG
    )


def is_visible_either_way(scope: str, other: str) -> bool:
    """Whether one of two scopes sees the other."""
    return other in visible_scopes([scope]) or scope in visible_scopes([other])


def propose(memory: Memory, *, autonomous: bool = False) -> Proposal:
    """A memory with its content hash and tokens, as the gates compare it."""
    said = fold_text(memory.statement[:MAX_JUDGED_CHARS])
    return Proposal(memory, autonomous, content_hash(memory.statement), tuple(tokens(said)))


@dataclass(slots=True)
class StoreLookup:
    """The gates' lookups (`gates.proposal.Known`) in a store."""

    store: Store
    vector: "Vectors | None" = None
    statuses: tuple[str, ...] = COMPARED_STATUSES
    scopes: tuple[str, ...] = ()
    """Where the neighbours of a proposal are looked up, if not in its own scope."""
    neighbours: int = MAX_NEIGHBOURS

    def exact(self, text_hash: str, scope: str) -> Memory | None:
        """The live memory with this content hash in a scope."""
        return self.store.exact(text_hash, scope)

    def heads(self, conflict_key: str, scope: str) -> Sequence[Memory]:
        """The current memories with a conflict key in a scope."""
        return self.store.heads(conflict_key, scope)

    def near(self, proposal: Proposal) -> Sequence[Neighbour]:
        """The nearest memories of the same scope and of these statuses, by meaning and by words; of a fact also those about its subject."""
        found = list(self._nearest(proposal, self.statuses, self.neighbours, self.scopes))
        known = {near.memory.id for near in found}
        return found + [near for near in self._about_subject(proposal) if near.memory.id not in known]

    def _about_subject(self, proposal: Proposal) -> Sequence[Neighbour]:
        """Other facts about the subject and predicate of a fact; what they say of it, its object, may share no word."""
        form = proposal.memory.form
        if not form.get("subject"):
            return ()
        terms = tuple(query_terms(f"{form['subject']} {form.get('predicate', '')}"[:400]))
        filters = Filters(scopes=self.scopes or (proposal.memory.scope,), statuses=self.statuses)
        found = self.store.candidates(Query(terms, None, MAX_SUBJECT_NEIGHBOURS), filters)
        return self._neighbours([n for n, _ in found.lexical])

    def rejected_neighbours(self, proposal: Proposal) -> Sequence[Neighbour]:
        """The nearest memories that a person rejected for what they say, not for who said it."""
        return self._taken_out_neighbours(proposal, ("rejected",))

    def withdrawn_neighbours(self, proposal: Proposal) -> Sequence[Neighbour]:
        """The nearest memories that a person retired or replaced."""
        return self._taken_out_neighbours(proposal, ("retired", "superseded"))

    def _taken_out_neighbours(self, proposal: Proposal, statuses: tuple[str, ...]) -> Sequence[Neighbour]:
        """What a person took out of use: the nearest in the scopes seen from there, and the same text in any that sees it."""
        scope = proposal.memory.scope
        seen = visible_scopes([scope])
        near: list[Neighbour] = []
        if self.store.count(Filters(scopes=tuple(seen), statuses=statuses)):
            near += self._nearest(proposal, statuses, MAX_TAKEN_OUT_NEIGHBOURS, seen)
            for said in _expand_readings(proposal):
                near += self._nearest(said, statuses, MAX_TAKEN_OUT_NEIGHBOURS, seen)
            near += self._nearest_inside(proposal, statuses, seen)
        same = self.store.same_text(proposal.content_hash, statuses)
        if not near and not same:
            return ()
        # Others can bury a decision among many alike, but not the text itself.
        near = [*(Neighbour(one, 1.0) for one in same if is_visible_either_way(one.scope, scope)), *near]
        found = {one.memory.id: one for one in reversed(near)}
        return filter_taken_out(self.store, list(found.values()))

    def _nearest(
        self, proposal: Proposal, statuses: tuple[str, ...], limit: int, scopes: Sequence[str] = ()
    ) -> Sequence[Neighbour]:
        filters = Filters(scopes=tuple(scopes) or (proposal.memory.scope,), statuses=statuses)
        found = self.store.candidates(Query(self._rarest_terms(proposal), self.vector, limit), filters)
        return self._neighbours(list(dict.fromkeys([n for n, _ in found.semantic] + [n for n, _ in found.lexical])))

    def _nearest_inside(
        self, proposal: Proposal, statuses: tuple[str, ...], scopes: Sequence[str]
    ) -> Sequence[Neighbour]:
        """The memories that share most words with some part of a long text; words that follow each other are looked up together."""
        if len(text := proposal.memory.statement) <= LONG_TEXT_CHARS:
            return ()
        wanted = query_terms(fold_text(text[:MAX_JUDGED_CHARS]))
        known = self.store.frequencies(wanted)
        terms = [term for term in wanted if known.get(term)][: MAX_LOOKUPS * LOOKUP_GROUP]
        filters = Filters(scopes=tuple(scopes), statuses=statuses)
        numbers: dict[int, None] = {}
        for start in range(0, len(terms), LOOKUP_GROUP):
            query = Query(tuple(terms[start : start + LOOKUP_GROUP]), None, MAX_TAKEN_OUT_NEIGHBOURS)
            numbers |= dict.fromkeys(n for n, _ in self.store.candidates(query, filters).lexical)
        said = frozenset(wanted)
        near = self._neighbours(list(numbers))
        return sorted(near, key=lambda one: term_coverage(said, one.memory), reverse=True)[
            :MAX_TAKEN_OUT_NEIGHBOURS_OF_LONG
        ]

    def _neighbours(self, numbers: Sequence[int]) -> Sequence[Neighbour]:
        hits = self.store.get_many(numbers)
        cosines = self._cosines([hit.n for hit in hits])
        pairs = zip(hits, cosines, strict=True)
        return [Neighbour(hit.record, cosine) for hit, cosine in pairs if isinstance(hit.record, Memory)]

    def _rarest_terms(self, proposal: Proposal) -> tuple[str, ...]:
        """The rarest words of a statement: any memory that says the same, or the opposite, shares some of them."""
        terms = query_terms(proposal.memory.statement[:4000])
        known = self.store.frequencies(terms)
        return tuple(sorted(known, key=lambda term: (known[term], term))[:MAX_LOOKUP_TERMS])

    def _cosines(self, numbers: Sequence[int]) -> Sequence[float]:
        vectors = self.store.vectors(numbers)
        if vectors is None or self.vector is None:
            return [-1.0] * len(numbers)
        values: list[float] = dot(vectors, self.vector).tolist()
        return values


@dataclass(slots=True)
class ExcludingLookup(StoreLookup):
    """The gates' lookups for a memory that is stored already: everything but that one."""

    own: str = ""
    gone: frozenset[str] = frozenset()
    """What the same decision takes out of use."""

    def exact(self, text_hash: str, scope: str) -> Memory | None:
        """The other live memory with this content hash in a scope."""
        found = self.store.exact(text_hash, scope)
        return None if found is None or self._is_left_out(found) else found

    def heads(self, conflict_key: str, scope: str) -> Sequence[Memory]:
        """The other current memories with a conflict key in a scope."""
        return [head for head in self.store.heads(conflict_key, scope) if not self._is_left_out(head)]

    def near(self, proposal: Proposal) -> Sequence[Neighbour]:
        """The nearest other memories of the same scope."""
        return [near for near in StoreLookup.near(self, proposal) if not self._is_left_out(near.memory)]

    def _taken_out_neighbours(self, proposal: Proposal, statuses: tuple[str, ...]) -> Sequence[Neighbour]:
        found = StoreLookup._taken_out_neighbours(self, proposal, statuses)
        return [near for near in found if near.memory.id != self.own]

    def _is_left_out(self, memory: Memory) -> bool:
        return memory.id == self.own or memory.id in self.gone


@dataclass(slots=True)
class ChangesLookup:
    """The gates' lookups among the few memories that others wrote between the verdict and the lock."""

    memories: Sequence[Memory]
    out: Sequence[Neighbour] = ()
    """What a person took out of use in between."""

    def exact(self, text_hash: str, scope: str) -> Memory | None:
        """The one with this content hash in a scope."""
        return next((m for m in self.memories if m.scope == scope and content_hash(m.statement) == text_hash), None)

    def heads(self, conflict_key: str, scope: str) -> Sequence[Memory]:
        """The current ones with a conflict key in a scope."""
        return heads_among(self.memories, conflict_key, scope)

    def near(self, proposal: Proposal) -> Sequence[Neighbour]:
        """All of them; their cosines are unknown."""
        return [Neighbour(memory, -1.0) for memory in self.memories]

    def rejected_neighbours(self, proposal: Proposal) -> Sequence[Neighbour]:
        """Those that a person rejected."""
        return [one for one in self.out if one.memory.status == "rejected"]

    def withdrawn_neighbours(self, proposal: Proposal) -> Sequence[Neighbour]:
        """Those that a person retired or replaced."""
        return [one for one in self.out if one.memory.status != "rejected"]
