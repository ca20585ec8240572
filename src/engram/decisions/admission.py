"""The final check of every change: memories written by agents or files pass the gates, which look up similar memories in the store."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from engram.decisions.approval import VALID_ELSEWHERE
from engram.decisions.versions import waits_alone
from engram.embedding.vectors import dot
from engram.gates.comparison import term_coverage
from engram.gates.instructions import injection_problem
from engram.gates.neighbourhood import MAX_JUDGED_CHARS
from engram.gates.pipeline import (
    LABEL_FIELDS,
    PARTICULAR_FIELDS,
    find_rejected_particular,
    judge,
    mention,
    outranked_reason,
    particular_problem,
)
from engram.gates.proposal import GateSettings, Neighbour, Proposal, Verdict
from engram.gates.trust import is_inferred
from engram.model.decision import DISTRUST, Outcome
from engram.model.errors import Refused
from engram.model.lazy import dataclass, replace
from engram.model.memory import Memory
from engram.models.readings import other_readings
from engram.rules.scopes import visible_scopes
from engram.rules.sources import CONFIRMED, Rank, is_below_program, may_replace, rank_of
from engram.store.documents import meaning_of
from engram.store.intake import Decider
from engram.store.protocol import COMPARED_STATUSES, Filters, Image, Query, Store
from engram.store.records import ANSWERING_STATUSES, heads_among, status_decision
from engram.text.confusables import fold_text
from engram.text.content_hash import content_hash
from engram.text.display import notice
from engram.text.tokens import query_terms, tokens

if TYPE_CHECKING:
    from engram.embedding.vectors import Vectors

MAX_NEIGHBOURS = 6
"""How many of the nearest memories the gates compare with: this many by meaning, and this many by words."""
MAX_SUBJECT_NEIGHBOURS = 24
"""How many memories with the same subject and predicate words a structured fact is compared with."""
MAX_TAKEN_OUT_NEIGHBOURS = 6
"""How many of the nearest memories taken out of use a proposal is compared with."""
MAX_TAKEN_OUT_NEIGHBOURS_OF_LONG = 24
"""The same limit for a long text, any sentence of which may repeat a memory."""
MAX_LOOKUP_TERMS = 6
"""How many of the rarest words of a statement are used to look up its neighbours."""
TAKEN_OUT_STATUSES = ("rejected", "retired", "superseded")
"""The statuses of memories that were taken out of use."""
MAX_LOOKUPS, LOOKUP_GROUP = 40, 40
"""The maximum number of lookups for a long text, and the number of words in each."""
LONG_TEXT_CHARS = 400
"""Length from which a text is also compared, word group by word group, with memories taken out of use."""


def removal_note(history: Sequence[Image], memory: Memory) -> str:
    """How and when a person took a memory out of use because of its content; "" if an agent did, or if its source was distrusted."""
    decided = status_decision(history)
    if decided is None:
        return f"{memory.status} by a person"
    if decided.op == DISTRUST or rank_of(decided.actor) != Rank.PERSON:
        return ""
    return f"{memory.status} by a person on {decided.at:%Y-%m-%d}"


def filter_taken_out(store: Store, near: Sequence[Neighbour]) -> list[Neighbour]:
    """The neighbours that a person took out of use because of their content, each with how and when."""
    out = [one for one in near if one.memory.status in TAKEN_OUT_STATUSES]
    told = store.histories([one.memory.id for one in out])
    found = [(one, removal_note(told[one.memory.id], one.memory)) for one in out]
    return [replace(one, decided=how) for one, how in found if how]


def _expand_readings(proposal: Proposal) -> list[Proposal]:
    """Copies of the proposal, one for each other reading of its statement that contains new words to look up."""
    readings = other_readings(proposal.memory.statement)
    known = set(tokens(fold_text(proposal.memory.statement[:20_000]))) if readings else set()
    return [
        replace(proposal, memory=proposal.memory.replace(statement=reading))
        for reading in readings
        if not known.issuperset(tokens(reading))
    ]


def taken_out_limit(proposal: Proposal) -> int:
    """The maximum number of memories taken out of use that a proposal is compared with."""
    return (
        MAX_TAKEN_OUT_NEIGHBOURS
        if len(proposal.memory.statement) <= LONG_TEXT_CHARS
        else MAX_TAKEN_OUT_NEIGHBOURS_OF_LONG
    )


def is_visible_either_way(scope: str, other: str) -> bool:
    """Whether one of two scopes sees the other."""
    return other in visible_scopes([scope]) or scope in visible_scopes([other])


def propose(memory: Memory, *, autonomous: bool = False) -> Proposal:
    """The proposal for a memory, with its content hash and tokens, as the gates compare it."""
    said = fold_text(memory.statement[:MAX_JUDGED_CHARS])
    return Proposal(memory, autonomous, content_hash(memory.statement), tuple(tokens(said)))


@dataclass(slots=True)
class StoreLookup:
    """Implements the gates' lookups (`gates.proposal.Known`) on a store."""

    store: Store
    vector: "Vectors | None" = None
    statuses: tuple[str, ...] = COMPARED_STATUSES
    scopes: tuple[str, ...] = ()
    """The scopes to search for neighbours; empty means the proposal's own scope."""
    neighbours: int = MAX_NEIGHBOURS

    def exact(self, text_hash: str, scope: str) -> Memory | None:
        """The live memory with this content hash in a scope."""
        return self.store.exact(text_hash, scope)

    def heads(self, conflict_key: str, scope: str) -> Sequence[Memory]:
        """The current memories with a conflict key in a scope."""
        return self.store.heads(conflict_key, scope)

    def near(self, proposal: Proposal) -> Sequence[Neighbour]:
        """The nearest memories of the scope by meaning and by words; for a fact, also other facts about its subject."""
        found = list(self._nearest(proposal, self.statuses, self.neighbours, self.scopes))
        known = {near.memory.id for near in found}
        return found + [near for near in self._about_subject(proposal) if near.memory.id not in known]

    def _about_subject(self, proposal: Proposal) -> Sequence[Neighbour]:
        """Other facts with the same subject and predicate; their objects may share no words with this one."""
        form = proposal.memory.form
        if not form.get("subject"):
            return ()
        terms = tuple(query_terms(f"{form['subject']} {form.get('predicate', '')}"[:400]))
        filters = Filters(scopes=self.scopes or (proposal.memory.scope,), statuses=self.statuses)
        found = self.store.candidates(Query(terms, None, MAX_SUBJECT_NEIGHBOURS), filters)
        return self._neighbours([n for n, _ in found.lexical])

    def rejected_neighbours(self, proposal: Proposal) -> Sequence[Neighbour]:
        """The nearest memories that a person rejected because of their content, not their source."""
        return self._taken_out_neighbours(proposal, ("rejected",))

    def withdrawn_neighbours(self, proposal: Proposal) -> Sequence[Neighbour]:
        """The nearest memories that a person retired or replaced."""
        return self._taken_out_neighbours(proposal, ("retired", "superseded"))

    def _taken_out_neighbours(self, proposal: Proposal, statuses: tuple[str, ...]) -> Sequence[Neighbour]:
        """Memories that a person took out of use: the nearest in the visible scopes, and identical texts in any scope related to them."""
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
        # Many similar memories can push a rejected one out of the nearest, but an identical text is always found.
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
        """The memories that share the most words with some part of a long text, looked up by groups of consecutive words."""
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
        """The rarest known words of a statement; a memory that agrees with it or contradicts it shares some of them."""
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
    """The gates' lookups for a memory that is already stored, without the memory itself."""

    own: str = ""
    gone: frozenset[str] = frozenset()
    """The ids of the memories that the same change takes out of use."""

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
    """The gates' lookups among the memories that others wrote between the verdict and the lock."""

    memories: Sequence[Memory]
    out: Sequence[Neighbour] = ()
    """The memories that a person took out of use in the meantime."""

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


REVIEW_OPERATIONS = frozenset({"resolve", "undo"})
"""The operations that settle a conflict between two memories, or undo such a decision."""
CLAIM_FIELDS = ("statement", "situation", "form", "type", "scope")
"""The fields that define a memory's claim and where it applies."""
_DETAIL_FIELDS = (
    "rationale", "context", "domain", "trigger_context", "name", "tags", "cues", "entities", "aliases", "anchors",
)  # fmt: skip
"""The other fields of a memory that an agent may read."""


@dataclass(frozen=True, slots=True)
class Admission:
    """Checks the memories that a change writes.

    No operation is exempt. A plan that has already consulted the gates about a memory marks it as `judged`, because a
    memory that may not become active then waits for review. Every other memory is checked here and refused if it fails.
    A person, or a program that opened the store for its owner, may write anything.
    """

    store: Store
    settings: GateSettings

    def check(self, memories: Sequence[Memory], before: Callable[[str], Memory | None], deciding: Decider) -> None:
        """Raise `Refused` for the first memory that this actor may not write in this form."""
        if not is_below_program(deciding.actor):
            return
        for memory in memories:
            if memory.id not in deciding.judged:
                self._check(before(memory.id), memory, memories, deciding)

    def _check(self, before: Memory | None, memory: Memory, memories: Sequence[Memory], deciding: Decider) -> None:
        _refuse_claims(before, memory, deciding.actor)
        if deciding.op not in REVIEW_OPERATIONS and _compatible_ids(memory) - (
            _compatible_ids(before) if before is not None else set()
        ):
            raise Refused(
                _refusal_text(
                    memory, deciding.actor, f"only review finds that two memories are both right ({VALID_ELSEWHERE})"
                )
            )
        is_new = before is None or _differs(before, memory, CLAIM_FIELDS)
        begins = memory.status in ANSWERING_STATUSES and (before is None or before.status not in ANSWERING_STATUSES)
        if is_new or begins:
            is_typed, vector = not self._is_inferred(before, memory, deciding), self._vector(before, memory, deciding)
            verdict = self._verdict(memory, memories, deciding, vector, is_typed=is_typed)
            self._judge(before, memory, verdict, deciding, is_new=is_new)
        elif (
            before is not None
            and _differs(before, memory, _DETAIL_FIELDS)
            and (why := injection_problem(memory) or self._particular_problem(before, memory, memories, deciding))
        ):
            raise Refused(_refusal_text(memory, deciding.actor, notice(why)))

    def _particular_problem(self, before: Memory, memory: Memory, memories: Sequence[Memory], deciding: Decider) -> str:
        """Why the actor may not write the changed details of the memory; "" if it may."""
        names = [name for name in PARTICULAR_FIELDS if _differs(before, memory, (name,))]
        if not names:
            return ""
        known = ExcludingLookup(self.store, own=memory.id, gone=deciding.gone)
        found = find_rejected_particular(self._proposal(memory, memories, deciding.actor), known, names)
        if found is not None:
            return f"its {found[0]} says what {mention(found[1].memory)} does, which was {found[1].removal_note}"
        return particular_problem(memory, names)

    def _judge(
        self, before: Memory | None, memory: Memory, verdict: Verdict, deciding: Decider, *, is_new: bool
    ) -> None:
        """Raise `Refused` if the gates reject the memory or, for a current one, if `learn` would not make it active."""
        if verdict.outcome == Outcome.REJECTED:
            raise Refused(_refusal_text(memory, deciding.actor, f"{verdict.gate}: {verdict.reason}"))
        if memory.status not in ANSWERING_STATUSES:
            return
        # A memory that was active, or waited only for another one, was already trusted, and its claim has not changed.
        was_trusted = before is not None and not is_new and (before.status != "candidate" or waits_alone(before))
        if verdict.outcome == Outcome.PENDING and (not was_trusted or verdict.gate != "trust" or verdict.withdrawn):
            raise Refused(_refusal_text(memory, deciding.actor, verdict.reason))
        other = verdict.other
        if verdict.outcome == Outcome.DUPLICATE and is_new and other is not None:
            raise Refused(_refusal_text(memory, deciding.actor, f"it would say the same as {mention(other)}"))
        if verdict.outcome in (Outcome.CONTRADICTION, Outcome.SUPERSEDED) and other is not None:
            if is_new and other.id not in memory.supersedes:
                raise Refused(_refusal_text(memory, deciding.actor, verdict.reason))
            if not may_replace(deciding.actor, other):
                raise Refused(_refusal_text(memory, deciding.actor, outranked_reason(deciding.actor, other)))

    def _is_inferred(self, before: Memory | None, memory: Memory, deciding: Decider) -> bool:
        """Whether the type was inferred, or inherited from the superseded version, rather than given."""
        known = before or (self.store.get(memory.supersedes[-1]) if memory.supersedes else None)
        return known is not None and is_inferred(deciding.actor, known, memory)

    def _vector(self, before: Memory | None, memory: Memory, deciding: Decider) -> "Vectors | None":
        """The vector of a memory: given, stored, or else embedded, which is avoided because the writer lock is held."""
        if (given := deciding.vectors.get(memory.id)) is not None:
            return given
        if before is not None and meaning_of(before) == meaning_of(memory):
            numbers = list(self.store.numbers([memory.id]).values())
            stored = self.store.vectors(numbers) if numbers else None
            known: Vectors | None = stored[0] if stored is not None and len(stored) else None
            if known is not None and known.any():
                return known
        vectors = self.store.embed([meaning_of(memory)])
        return vectors[0] if vectors is not None else None

    def _verdict(
        self, memory: Memory, memories: Sequence[Memory], deciding: Decider, vector: "Vectors | None", *, is_typed: bool
    ) -> Verdict:
        """The gates' verdict on the memory if this actor proposed it; length limits are checked elsewhere."""
        known = ExcludingLookup(self.store, vector, own=memory.id, gone=deciding.gone)
        settings = replace(self.settings, max_statement_chars=self.settings.max_added_bytes)
        proposal = replace(self._proposal(memory, memories, deciding.actor), is_typed=is_typed)
        return judge(proposal, known, settings)

    def _proposal(self, memory: Memory, memories: Sequence[Memory], actor: str) -> Proposal:
        """The memory as a proposal by this actor; memories marked as valid elsewhere do not contradict it."""
        linking = {
            one.id
            for one in memories
            if any((memory.id, VALID_ELSEWHERE) == (x.target, x.type) for x in one.associations)
        }
        stored = {source for source, _, kind, _ in self.store.links_to([memory.id]) if kind == VALID_ELSEWHERE}
        named = tuple(
            other
            for i in sorted(_compatible_ids(memory) | linking | stored)
            if (other := self.store.get(i)) is not None
        )
        said = self._without_known_labels(memory).replace(source=actor, learned_by="learn", pinned=False)
        return replace(propose(said), named=named, relation="different" if named else "")

    def _without_known_labels(self, memory: Memory) -> Memory:
        """The memory without the labels it inherited from the version it replaces, which were checked with that version."""
        older = self.store.get(memory.supersedes[-1]) if memory.supersedes else None
        if older is None or older.status not in ANSWERING_STATUSES:
            return memory
        same = [name for name in LABEL_FIELDS if getattr(memory, name) == getattr(older, name)]
        return memory.replace(**{name: type(getattr(memory, name))() for name in same})


def _refuse_claims(before: Memory | None, memory: Memory, actor: str) -> None:
    """Raise `Refused` if the actor would confirm a memory or name a person as its source."""
    was_confirmed = before is not None and before.verification == CONFIRMED
    was_persons = before is not None and rank_of(before.source) == Rank.PERSON
    if memory.verification == CONFIRMED and not was_confirmed:
        raise Refused(f"{actor} may not confirm {memory.id}: a person may, with `engram verify` at a terminal")
    if rank_of(memory.source) == Rank.PERSON and not was_persons:
        raise Refused(f"{actor} may not name a person as the source of {memory.id}: surfaces stamp it")


def _compatible_ids(memory: Memory) -> set[str]:
    """The ids of memories that do not conflict with this one because each is valid in its own situation."""
    return {link.target for link in memory.associations if link.type == VALID_ELSEWHERE}


def _differs(before: Memory, after: Memory, names: Sequence[str]) -> bool:
    return any(getattr(before, name) != getattr(after, name) for name in names)


def _refusal_text(memory: Memory, actor: str, why: str) -> str:
    return (
        f"{actor} may not change {memory.id} so: {why}. Nothing was changed; `learn` it as a new memory, which the gates judge and "
        "which waits for review where it must, or let a person change it at a terminal"
    )
