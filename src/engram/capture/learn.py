"""learn, remember and add: one memory, or many, through the gates into the store."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from engram.capture.admission import admit_all
from engram.capture.draft import draft
from engram.gates.pipeline import judge, outranked_reason
from engram.gates.policies import MemoryPolicy
from engram.gates.policies.policy import PatternTimeout
from engram.gates.proposal import GateSettings, Neighbour, Proposal, Verdict
from engram.gates.trust import is_human, is_untrusted, tier_3_reason, tier_of
from engram.model.decision import Decision, Outcome
from engram.model.memory import CONTRADICTS, Association, Memory
from engram.model.usage import Use
from engram.review.lineage import Lineages, contradicted, standing_above, superseding, taken_over
from engram.rules.sources import CONFIRMED, Rank, is_evidence, rank_of, said_by
from engram.rules.strength import reinforced
from engram.store.documents import meaning_of
from engram.store.lineage import IN_FORCE, heads_among
from engram.store.protocol import Filters, Foreseen, Query, Store, Transaction
from engram.text.content_hash import content_hash, same_text
from engram.text.display import slug
from engram.text.tokens import query_terms, tokens

if TYPE_CHECKING:
    from collections.abc import Callable

    from engram.embedding.protocol import Vectors

NEIGHBOURS = 6
"""How many of the nearest by meaning, and as many by words, the duplicate and contradiction gates look at."""
TELLING = 6
"""Words by which they are looked up."""
BATCH = 500
"""Memories per decision of `add_batch`: bounds how long other writers wait."""
COMPARED = ("active", "dormant", "candidate")
_FOUND = {Outcome.SUPERSEDED: 2, Outcome.CONTRADICTION: 3}


@dataclass(slots=True)
class StoreKnown:
    """What the store can tell the gates."""

    store: Store
    vector: "Vectors | None" = None

    def exact(self, text_hash: str, scope: str) -> Memory | None:
        """The live memory with this very content."""
        return self.store.exact(text_hash, scope)

    def heads(self, conflict_key: str, scope: str) -> Sequence[Memory]:
        """What is in force under a conflict key."""
        return self.store.heads(conflict_key, scope)

    def near(self, proposal: Proposal) -> Sequence[Neighbour]:
        """The nearest live memories of the same scope, by meaning and by words."""
        scope = (proposal.memory.scope,)
        filters = Filters(scopes=scope, statuses=COMPARED)
        found = self.store.candidates(Query(self._telling(proposal), self.vector, NEIGHBOURS), filters)
        numbers = list(dict.fromkeys([n for n, _ in found.semantic] + [n for n, _ in found.lexical]))
        hits = self.store.get_many(numbers)
        cosines = self._cosines([hit.n for hit in hits])
        pairs = zip(hits, cosines, strict=True)
        return [Neighbour(hit.record, cosine) for hit, cosine in pairs if isinstance(hit.record, Memory)]

    def _telling(self, proposal: Proposal) -> tuple[str, ...]:
        """The rarest words of a statement: whatever says the same, or the opposite, shares them."""
        terms = query_terms(proposal.memory.statement[:4000])
        known = self.store.frequencies(terms)
        return tuple(sorted(known, key=lambda term: (known[term], term))[:TELLING])

    def _cosines(self, numbers: Sequence[int]) -> Sequence[float]:
        vectors = self.store.vectors(numbers)
        if vectors is None or self.vector is None:
            return [-1.0] * len(numbers)
        values: list[float] = (vectors @ self.vector).tolist()
        return values


@dataclass(slots=True)
class LateKnown:
    """What others wrote between the judgement and the lock: few, so they are compared word by word."""

    memories: Sequence[Memory]

    def exact(self, text_hash: str, scope: str) -> Memory | None:
        """The one among them with this very content."""
        return next((m for m in self.memories if m.scope == scope and content_hash(m.statement) == text_hash), None)

    def heads(self, conflict_key: str, scope: str) -> Sequence[Memory]:
        """Those of them in force under a conflict key."""
        return heads_among(self.memories, conflict_key, scope)

    def near(self, proposal: Proposal) -> Sequence[Neighbour]:
        """All of them; without an embedder at hand their likeness is unknown."""
        return [Neighbour(memory, -1.0) for memory in self.memories]


@dataclass(slots=True)
class Learner:
    """Writes memories; every result says which gate decided and why."""

    store: Store
    settings: GateSettings
    policy: MemoryPolicy
    clock: "Callable[[], datetime]"

    # -- gated

    def learn(
        self, given: Mapping[str, Any], *, source: str, learned_by: str, session: str = "", autonomous: bool = False
    ) -> Decision:
        """Judge one proposal and store it, or say why not."""
        now = self.clock()
        try:
            memory = _unclaimed(self._drafted(given, learned_by, source, now))
        except PatternTimeout as error:
            return Decision(Outcome.REJECTED, None, None, str(error), "policy")
        proposal = propose(memory, autonomous=autonomous)
        vector = self._embed([memory])
        with self.store.reading():
            mark = self.store.mark(memory.scope)
            verdict = judge(proposal, StoreKnown(self.store, vector[0] if vector is not None else None), self.settings)
        if autonomous:
            self.store.note_verdict(verdict.gate, verdict.outcome, now)
        if verdict.outcome == Outcome.REJECTED:
            return Decision(Outcome.REJECTED, None, verdict.other, verdict.reason, verdict.gate)
        if verdict.outcome == Outcome.DUPLICATE and verdict.other is not None:
            return self._derived_again(verdict, verdict.other, memory, session, now)
        return self._write(proposal, verdict, vector, session, mark)

    def _write(
        self, proposal: Proposal, verdict: Verdict, vector: "Vectors | None", session: str, mark: int
    ) -> Decision:
        memory = proposal.memory
        about = [*self._about([memory]), *([verdict.other.id] if verdict.other is not None else [])]
        with self.store.deciding(
            "learn",
            actor=memory.source,
            reason=_noted(verdict),
            session=session,
            scopes=[memory.scope],
            about=about,
            ids_for=[self.clock()],
        ) as deciding:
            verdict = self._judged_late(proposal, verdict, deciding, mark)
            if verdict.admitted:
                now = self.clock()
                heads = taken_over(deciding, memory.but(status=verdict.status))
                if above := standing_above(heads, memory.source):
                    verdict, heads = _waiting(verdict, memory.source, above), []
                stored = _stored(deciding, memory, verdict, session, now)
                if heads:
                    stored = superseding(deciding, stored, heads, now)
                    verdict = replace(verdict, outcome=Outcome.SUPERSEDED, other=heads[0])
                deciding.put(stored, vector[0] if vector is not None else None)
                return Decision(verdict.outcome, stored, verdict.other, verdict.reason, verdict.gate)
        if verdict.outcome == Outcome.DUPLICATE and verdict.other is not None:
            return self._derived_again(verdict, verdict.other, memory, session, self.clock())
        return Decision(verdict.outcome, None, verdict.other, verdict.reason, verdict.gate)

    def _judged_late(self, proposal: Proposal, verdict: Verdict, deciding: Transaction, mark: int) -> Verdict:
        """The verdict, unless what others wrote between it and the lock says more about the proposal."""
        changed = deciding.changed_since(proposal.memory.scope, mark)
        outdated = _is_outdated(verdict, deciding)
        if not changed and not outdated:
            return verdict
        late = judge(proposal, LateKnown([m for m in changed if m.status in COMPARED]), self.settings)
        return late if outdated or _weight(late) >= _weight(verdict) else verdict

    def _derived_again(self, verdict: Verdict, other: Memory, said: Memory, session: str, now: datetime) -> Decision:
        """A known fact met again: counted, and strengthened, at most once per session (without one, per day).

        What a more trusted source repeats is its word from then on; what was only read or overheard proves nothing.
        """
        key = session or f"day:{now.date().isoformat()}"
        with self.store.deciding(
            "derive", actor="engram", reason=_noted(verdict), session=session, about=[other.id]
        ) as deciding:
            known = deciding.get(other.id)
            if known is None:
                return Decision(Outcome.NOOP, None, verdict.other, "the known memory is gone", verdict.gate)
            counted = any(use.kind == "derived" and use.session == key for use in self.store.uses_of([other.id]))
            # A team's file is changed by decisions, never by use.
            if not counted and not is_untrusted(said.source) and self.store.owned([other.id]):
                # Noted first: a crash in between may leave it uncounted, never counted twice.
                self.store.note_use(Use("derived", (other.id,), now, key))
                known = reinforced(known, now).but(derivation_count=known.derivation_count + 1, last_verified=now)
                deciding.put(known)
        known = self._vouched_for(known, said, now)
        return Decision(Outcome.DUPLICATE, known, known, verdict.reason, verdict.gate)

    # -- what is said again by a more trusted source

    def _vouched_for(self, known: Memory, said: Memory, now: datetime) -> Memory:
        """A known fact after somebody said it again: the word of whoever is trusted most of those who said it."""
        if not _vouches(said, known) or not self.store.owned([known.id]):
            return known
        with self.store.deciding(
            "derive", actor=said.source, scopes=[known.scope], about=self._about_vouching(known)
        ) as deciding:
            found = deciding.get(known.id)
            if found is None or not _vouches(said, found):
                return known
            vouched = self._vouched(deciding, found, said, now)
            if vouched != found:
                deciding.put(vouched)
        return vouched

    def _about_vouching(self, known: Memory) -> list[str]:
        """What may change when a memory is vouched for: itself, and every version of what it would take the place of."""
        heads = self.store.heads(known.conflict_key, known.scope) if known.conflict_key else []
        lineages = Lineages(self.store, self.clock)
        older = [version.id for head in heads for version in lineages.versions(head.id)]
        return list(dict.fromkeys([known.id, *older, *self._about([known])]))

    def _vouched(self, deciding: Transaction, known: Memory, said: Memory, now: datetime) -> Memory:
        """A known fact as the word of a more trusted source that repeats it; a candidate is in force by a person's."""
        if not is_human(said.source):
            waits = known.status not in IN_FORCE or tier_of(known) > 1
            return known if waits else known.but(source=said.source, learned_by=said.learned_by, updated=now)
        known = known.but(verification=CONFIRMED, last_verified=now, updated=now)
        if known.status != "candidate" or contradicted(deciding.get, known) is not None:
            return known
        known = known.but(status="active")
        heads = taken_over(deciding, known)
        return superseding(deciding, known, heads, now) if heads else known

    # -- trusted programs

    def add(self, given: Mapping[str, Any], *, source: str, team: str = "") -> Memory:
        """Store what a trusted program says; an exact duplicate returns the existing memory."""
        return self.add_batch([given], source=source, team=team)[0]

    def add_batch(
        self,
        items: Sequence[Mapping[str, Any]],
        *,
        source: str,
        progress: "Callable[[int, int], None] | None" = None,
        team: str = "",
    ) -> list[Memory]:
        """Store many, each decision a durable slice; `team` is a team store's folder, else they are the owner's own.

        Every item is checked before the first is written.
        """
        now = self.clock()
        drafted = [self._drafted(item, "add", source, now) for item in items]
        admit_all(drafted, self.settings)
        stored: list[Memory] = []
        for start in range(0, len(drafted), BATCH):
            stored += self._add_slice(drafted[start : start + BATCH], source, now, team)
            if progress is not None:
                progress(len(stored), len(drafted))
        return stored

    def _add_slice(self, drafted: Sequence[Memory], source: str, now: datetime, team: str) -> list[Memory]:
        vectors = self._embed(drafted)
        proposals = [Proposal(memory, False, content_hash(memory.statement), ()) for memory in drafted]
        stored: list[Memory] = []
        again: list[int] = []
        mine: dict[tuple[str, str], Memory] = {}
        scopes = sorted({proposal.memory.scope for proposal in proposals})
        names = [_wanted_name(proposal.memory) for proposal in proposals]
        about = self._about(drafted)
        # A program decides for its owner, and what was read in a document is evidence that directs nobody.
        told = Rank.CONTENT < rank_of(source, Rank.PROGRAM) < Rank.PROGRAM
        ids_for = () if team else [now] * len(proposals)
        with self.store.deciding("add", actor=source, scopes=scopes, about=about, ids_for=ids_for) as deciding:
            deciding.foresee(
                [
                    Foreseen(p.content_hash, p.memory.scope, name, p.memory.conflict_key)
                    for p, name in zip(proposals, names, strict=True)
                ]
            )
            for i, proposal in enumerate(proposals):
                memory = proposal.memory
                key = (proposal.content_hash, memory.scope)
                known = mine.get(key) or deciding.exact(*key)
                if known is None or not same_text(known.statement, memory.statement):
                    known = _named(deciding, memory, names[i], now, team=bool(team))
                    if told and tier_3_reason(known):
                        known = known.but(status="candidate")
                    heads = taken_over(deciding, known)
                    if above := standing_above(heads, known.source):
                        known = _contradicting(known.but(status="candidate"), above, now)
                    elif heads:
                        known = superseding(deciding, known, heads, self.clock())
                    deciding.put(known, vectors[i] if vectors is not None else None, team=team)
                    if proposal.content_hash:
                        mine[key] = known
                else:
                    again.append(i)
                stored.append(known)
        for i in again:
            stored[i] = self._vouched_for(stored[i], proposals[i].memory, now)
        return stored

    def _about(self, memories: Sequence[Memory]) -> list[str]:
        """Every version of what these say they supersede: one of them is in force and changes."""
        lineages = Lineages(self.store, self.clock)
        named = dict.fromkeys(older for memory in memories for older in memory.supersedes)
        return [version.id for older in named for version in lineages.versions(older)]

    def _drafted(self, given: Mapping[str, Any], learned_by: str, source: str, now: datetime) -> Memory:
        """A memory as its caller and the policy describe it."""
        memory = draft(given, learned_by=learned_by, source=source, now=now)
        return self.policy.applied(memory, typed="type" in given or "memory_type" in given)

    def _embed(self, memories: Sequence[Memory]) -> "Vectors | None":
        return self.store.embed([meaning_of(memory) for memory in memories])


def propose(memory: Memory, *, autonomous: bool = False) -> Proposal:
    """A memory with what the gates compare it by."""
    return Proposal(memory, autonomous, content_hash(memory.statement), tuple(tokens(memory.statement[:20_000])))


def _weight(verdict: Verdict) -> int:
    """How much a verdict found among the memories it was held against; of two, the one that found more counts."""
    if not verdict.admitted:
        return 4
    if verdict.outcome in _FOUND:
        return _FOUND[verdict.outcome]
    return 1 if verdict.other is not None else 0


def _is_outdated(verdict: Verdict, deciding: Transaction) -> bool:
    """Whether the memory a verdict is about has left, or says something else, since."""
    if verdict.other is None:
        return False
    now = deciding.get(verdict.other.id)
    return now is None or now.status not in COMPARED or now.statement != verdict.other.statement


def _noted(verdict: Verdict) -> str:
    """A verdict as the journal keeps it: never a word of another memory, so that purging one leaves none behind."""
    return f"{verdict.gate}: {verdict.other.id}" if verdict.other is not None else verdict.gate


def _stored(deciding: Transaction, memory: Memory, verdict: Verdict, session: str, now: datetime) -> Memory:
    memory = memory.but(status=verdict.status, session=session or memory.session)
    if verdict.outcome == Outcome.CONTRADICTION and verdict.other is not None:
        memory = _contradicting(memory, verdict.other, now)
    return _named(deciding, memory, _wanted_name(memory), now)


def _contradicting(memory: Memory, other: Memory, now: datetime) -> Memory:
    link = Association(other.id, CONTRADICTS, 0.5, last_reinforced=now)
    return memory.but(associations=(*memory.associations, link))


def _waiting(verdict: Verdict, source: str, above: Memory) -> Verdict:
    """What would supersede a more trusted word waits beside it instead."""
    reason = outranked_reason(source, above)
    return replace(verdict, outcome=Outcome.CONTRADICTION, gate="trust", reason=reason, other=above, status="candidate")


def _unclaimed(memory: Memory) -> Memory:
    """A proposal without what only others can give it: a person's confirmation, ratings, and for what was read, a pin."""
    if rank_of(memory.source) >= Rank.PROGRAM:
        return memory
    blank = Memory("", "")
    claimed = "unverified" if memory.verification == CONFIRMED else memory.verification
    return memory.but(
        verification=claimed, feedback=blank.feedback, derivation_count=blank.derivation_count,
        pinned=memory.pinned and not is_untrusted(memory.source), source=memory.source or "unknown",
    )  # fmt: skip


def _vouches(said: Memory, known: Memory) -> bool:
    """Whether a known fact gains by being said again: by a more trusted source, and not yet fully believed."""
    return rank_of(said.source) > said_by(known) and (
        is_human(said.source) or (is_evidence(known) and not is_untrusted(said.source))
    )


def _wanted_name(memory: Memory) -> str:
    return memory.name or slug(memory.situation or memory.statement)


def _named(deciding: Transaction, memory: Memory, wanted: str, now: datetime, *, team: bool = False) -> Memory:
    return memory.but(id=deciding.new_id(now, team=team), name=deciding.free_name(wanted, memory.scope))
