"""`learn`, `remember` and `add`: run memories through the gates and store them.

learn: draft → policy → gates (against the store) → lock → gates again for what others wrote meanwhile → store
add:   draft → policy → shape and secrets → neighbours (in a job after a large batch) → lock → exact duplicate → store, in slices
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from engram.capture.changes import Changes
from engram.capture.conflict_choice import NOT_STORED
from engram.capture.draft import draft
from engram.capture.duplicates import BESIDE, MOST_RELATED, Duplicates, journal_reason, replacing, superseded_versions
from engram.capture.known import COMPARED, LateKnown, StoreKnown, propose, taken_out
from engram.capture.other_scopes import scope_warnings
from engram.capture.rate_limit import GATE as RATE
from engram.capture.rate_limit import rate_problem
from engram.capture.withdrawal import Withdrawals
from engram.gates.instructions import injection_problem
from engram.gates.nature import nature_of
from engram.gates.pipeline import admit_all, exception_reason, judge, mention, outranked_reason
from engram.gates.policies import MemoryPolicy
from engram.gates.policies.policy import PatternTimeout
from engram.gates.proposal import Conflict, GateSettings, Known, Neighbour, Proposal, Verdict
from engram.gates.trust import is_human, is_untrusted
from engram.model.decision import DISTRUST, RELATIONS, Decision, Outcome, Related
from engram.model.errors import InvalidInput, Refused, StoreError
from engram.model.lazy import dataclass, replace
from engram.model.memory import REFINES, Association, Memory
from engram.review.conflicts import conflict_link, release, unmarked, waiting_on
from engram.review.lineage import Lineages, contradicted, outranking_head, replaced_by, superseding
from engram.review.resolution import DIFFERS
from engram.rules.eligibility import is_over, outlasts
from engram.rules.sources import CONFIRMED, Rank, rank_of
from engram.store.documents import meaning_of
from engram.store.protocol import ProposalKeys, Store, Transaction
from engram.store.purge import DOCUMENT
from engram.store.records import ANSWERING, CURRENT, find_memory, refuse_foreign_ids
from engram.text.content_hash import content_hash, same_text
from engram.text.display import notice, slug

if TYPE_CHECKING:
    from collections.abc import Callable

    from engram.embedding.protocol import Vectors

FEW = 8
"""Memories that `add_batch` compares with their neighbours at once; of more, a job compares each afterwards."""
BATCH = 500
"""Memories per transaction of `add_batch`; bounds how long other writers wait."""
LONGEST_FORM_NAME = 60
"""Characters of the name of feedback or a fact, which is its situation (spec 3)."""
_FOUND = {Outcome.SUPERSEDED: 2, Outcome.CONTRADICTION: 3}


@dataclass(slots=True)
class Learner:
    """Writes memories; every decision names the gate and the reason."""

    store: Store
    settings: GateSettings
    policy: MemoryPolicy
    clock: "Callable[[], datetime]"

    # -- learn

    def learn(
        self,
        given: Mapping[str, Any],
        *,
        source: str,
        learned_by: str,
        session: str = "",
        autonomous: bool = False,
        relation: str = "",
        alone: bool = False,
        is_typed: bool = True,
        skips_conflicts: bool = False,
        here: str | None = None,
    ) -> Decision:
        """Run one proposal through the gates and store it. The decision says what happened and why.

        `relation` is how it relates to the memories it names in `supersedes`, which it replaces unless told otherwise. Where it
        names some, or is `alone`, it replaces no others by the word of the model; `alone`, not by their conflict key, either.
        `is_typed` says whether a type that is given is somebody's word. With `skips_conflicts`, what contradicts a stored memory is not
        stored: the decision has no memory then. With `here`, the scope of the caller's directory or "", its warnings report what the memory repeats
        or contradicts in the other scopes that are seen together with its own.
        """
        if not is_human(source) and (why := self._distrusted(source, session)):
            return Decision(Outcome.REJECTED, None, None, notice(why), DISTRUST)
        now = self.clock()
        try:
            memory = _without_claims(self._drafted(given, learned_by, source, now))
        except PatternTimeout as error:
            return Decision(Outcome.REJECTED, None, None, str(error), "policy")
        refuse_foreign_ids(self.store, [memory])
        memory = memory.but(conflict_key="") if alone else memory
        if not memory.memory_kind:
            said = f"{memory.context} {memory.statement}" if autonomous else memory.statement
            nature = "note" if memory.form else nature_of(said, memory.type, memory.tags)
            memory = memory.but(memory_kind=nature)
        stated = self._stated(propose(memory, autonomous=autonomous), relation, placed=bool(given.get("scope")))
        is_typed = is_typed and ("type" in given or "memory_type" in given)
        proposal = replace(stated, alone=alone, is_typed=is_typed)
        memory = proposal.memory
        vectors = self._embed([memory])
        vector = vectors[0] if vectors is not None else None
        with self.store.reading():
            mark = self.store.mark(memory.scope)
            verdict = self._judged(proposal, StoreKnown(self.store, vector))
        if autonomous:
            self.store.note_verdict(verdict.gate, verdict.outcome, now)
        if skips_conflicts and verdict.outcome == Outcome.CONTRADICTION:
            return _skipped(verdict)
        if not verdict.admitted:
            return self._duplicates.not_stored(proposal, verdict, session)
        if is_untrusted(source) and (over := rate_problem(self.store, source, now, self.settings.most_per_source)):
            return Decision(Outcome.REJECTED, None, None, notice(over), RATE)
        decision = self._write(proposal, verdict, vector, session, mark)
        if here is None or not decision.written:
            return decision
        return replace(decision, warnings=(*decision.warnings, *self._scope_warnings(proposal, vector, here, now)))

    def _scope_warnings(
        self, proposal: Proposal, vector: "Vectors | None", here: str, now: datetime
    ) -> tuple[str, ...]:
        """What the memory repeats or contradicts elsewhere. It is stored by now: a server that is lost meanwhile costs only the warnings."""
        try:
            return scope_warnings(proposal, self.store, vector, here, now)
        except StoreError as error:
            return (f"stored; the other scopes were not compared: {error}",)

    def _distrusted(self, source: str, session: str) -> str:
        from engram.review.distrust import distrust_reason

        return distrust_reason(self.store, source, session)

    def _stated(self, proposal: Proposal, relation: str, *, placed: bool) -> Proposal:
        """The proposal with the memories it names, and what the caller says about them; in their scope, unless it is `placed`."""
        memory = proposal.memory
        if relation and relation not in RELATIONS:
            raise InvalidInput(f"Unknown relation {relation!r}; choose {', '.join(RELATIONS)}")
        if relation and not memory.supersedes:
            raise InvalidInput(f"relation={relation!r} needs the memories it is about: supersedes=[…], ids or names")
        if not memory.supersedes:
            return proposal
        relation = relation or "update"
        named = tuple(self._named_by(ref, relation) for ref in memory.supersedes)
        replaced = tuple(other.id for other in named) if relation == "update" else ()
        links = [Association(other.id, REFINES, 0.5) for other in named if relation == "refinement"]
        scope = _scope_beside(memory, named, relation, placed=placed)
        memory = memory.but(scope=scope, supersedes=replaced, associations=(*memory.associations, *links))
        return replace(proposal, memory=memory, named=named, relation=relation)

    def _named_by(self, ref: str, relation: str) -> Memory:
        """The memory that a caller names; where it is to stand beside the new one, its current version."""
        found = find_memory(self.store, ref)
        if relation in ("update", "same") or found.status in COMPARED:
            return found
        head = Lineages(self.store, self.clock).current(found.id)
        if head.status in CURRENT:
            return head
        if relation == "contradiction":
            raise InvalidInput(
                f"{found.id} is {found.status}, so nothing contradicts it; relation='contradiction' takes what is current"
            )
        return found

    def _write(
        self, proposal: Proposal, verdict: Verdict, vector: "Vectors | None", session: str, mark: int
    ) -> Decision:
        memory = replacing(proposal.memory, verdict)
        about = [
            *superseded_versions(self.store, self.clock, [memory]),
            *([verdict.other.id] if verdict.other is not None else []),
        ]
        waiting = waiting_on(self.store, about) if memory.supersedes or verdict.outcome == Outcome.SUPERSEDED else []
        with self.store.deciding(
            "learn",
            actor=memory.source,
            reason=journal_reason(verdict),
            session=session,
            scopes=sorted({memory.scope, *(other.scope for other in waiting)}),
            about=[*about, *(other.id for other in waiting)],
            ids_for=[self.clock()],
        ) as deciding:
            verdict = self._judged_again(proposal, verdict, deciding, mark)
            if verdict.admitted:
                now = self.clock()
                memory = replacing(proposal.memory, verdict)
                heads = replaced_by(deciding, memory.but(status=verdict.status))
                if above := outranking_head(heads, memory.source):
                    verdict, heads = _waiting(verdict, memory.source, above), []
                stored = _stored(deciding, memory, verdict, session, now)
                if heads:
                    stored = superseding(deciding, stored, heads, now)
                    verdict = _succeeding(verdict, memory, heads)
                deciding.put(stored, vector)
                release(deciding, waiting, now)
                return _decision(verdict, stored)
        return self._duplicates.not_stored(proposal, verdict, session)

    def _judged(self, proposal: Proposal, known: Known) -> Verdict:
        """The gates' verdict; a memory that they alone take for replaced stays where the caller has named what is replaced."""
        verdict = judge(proposal, known, self.settings)
        other = verdict.other
        if verdict.outcome != Outcome.SUPERSEDED or verdict.gate != "contradiction" or other is None:
            return verdict
        if proposal.alone:
            reason = f"it may be about {mention(other)}, or about something else; it waits for review"
            contradiction = Outcome.CONTRADICTION
            return replace(verdict, outcome=contradiction, status="candidate", reason=reason, waits_alone=True)
        if proposal.memory.supersedes and other.id not in proposal.memory.supersedes:
            return replace(verdict, outcome=Outcome.CREATED, reason="it replaces what the caller names", other=None)
        return verdict

    def _judged_again(self, proposal: Proposal, verdict: Verdict, deciding: Transaction, mark: int) -> Verdict:
        """The verdict, or a new one if what others wrote before the lock was taken changes it."""
        changed = deciding.changed_since(proposal.memory.scope, mark)
        outdated = _is_outdated(verdict, deciding)
        if not changed and not outdated:
            return verdict
        out = taken_out(self.store, [Neighbour(memory, -1.0) for memory in changed])
        late = self._judged(proposal, LateKnown([m for m in changed if m.status in COMPARED], out))
        if late.withdrawn and late.admitted:
            return late if verdict.status == "active" else replace(verdict, withdrawn=True, waits_alone=False)
        return late if outdated or _weight(late) >= _weight(verdict) else verdict

    # -- add

    def add(self, given: Mapping[str, Any], *, source: str, team: str = "") -> Memory:
        """Store a memory of a trusted program; for an exact duplicate, return the existing memory."""
        return self.add_batch([given], source=source, team=team)[0]

    def add_batch(
        self,
        items: Sequence[Mapping[str, Any]],
        *,
        source: str,
        progress: "Callable[[int, int], None] | None" = None,
        team: str = "",
    ) -> list[Memory]:
        """Store many memories in slices, each durable by itself; `team` is the folder of a team store.

        Every item is checked before the first is written. What an agent, a page or a tool says is judged as by `learn`: it waits where
        that would let it wait, whatever source an item names. A document's facts are evidence instead. Raises `Refused` for what a
        person rejected or retired.
        """
        now = self.clock()
        drafted = [_bounded(self._drafted(item, "add", source, now), source) for item in items]
        admit_all(drafted, self.settings)
        refuse_foreign_ids(self.store, drafted)
        is_read = source.startswith(DOCUMENT)
        decided = self._withdrawals.count()
        drafted = self._withdrawals.without(drafted, source, waits=is_read)
        for named in {memory.source for memory in drafted if rank_of(memory.source, Rank.PROGRAM) < Rank.PROGRAM}:
            if why := self._distrusted(named, ""):
                raise Refused(why)
        stored: list[Memory] = []
        for start in range(0, len(drafted), BATCH):
            stored += self._add_slice(drafted[start : start + BATCH], source, now, team, is_read, decided)
            if progress is not None:
                progress(len(stored), len(drafted))
        return stored

    def _add_slice(
        self, drafted: Sequence[Memory], source: str, now: datetime, team: str, is_read: bool, decided: int
    ) -> list[Memory]:
        vectors = self._embed(drafted)
        drafted, marks = (drafted, {}) if is_read else self._all_as_learned(drafted, vectors, source, now)
        compares = not team and rank_of(source, Rank.PROGRAM) >= Rank.PROGRAM
        changes = self._changes.found(drafted, vectors) if compares and len(drafted) <= FEW else {}
        hashes = [content_hash(memory.statement) for memory in drafted]
        names = [_wanted_name(memory) for memory in drafted]
        stored: list[Memory] = []
        duplicates: list[int] = []
        added: dict[tuple[str, str], Memory] = {}
        about = [
            *superseded_versions(self.store, self.clock, drafted),
            *(change.other.id for change in changes.values()),
        ]
        waiting = waiting_on(self.store, about)
        with self.store.deciding(
            "add",
            actor=source,
            scopes=sorted({*(memory.scope for memory in drafted), *(other.scope for other in waiting)}),
            about=[*about, *(other.id for other in waiting)],
            ids_for=() if team else [now] * len(drafted),
        ) as deciding:
            if self._withdrawals.count() != decided:
                drafted = self._withdrawals.without(drafted, source, waits=is_read)
            late = {scope: deciding.changed_since(scope, mark) for scope, mark in marks.items()}
            drafted = [self._as_learned_late(memory, source, late.get(memory.scope, ()), now) for memory in drafted]
            deciding.prefetch(
                [
                    ProposalKeys(text_hash, memory.scope, name, memory.conflict_key)
                    for memory, text_hash, name in zip(drafted, hashes, names, strict=True)
                ]
            )
            for i, memory in enumerate(drafted):
                key = (hashes[i], memory.scope)
                known = added.get(key) or deciding.exact(*key)
                if known is not None and same_text(known.statement, memory.statement) and not is_over(known, now):
                    duplicates.append(i)
                else:
                    known = self._added(deciding, memory, names[i], source, now, team, changes.get(i))
                    deciding.put(known, vectors[i] if vectors is not None else None, team=team)
                    if hashes[i]:
                        added[key] = known
                stored.append(known)
            release(deciding, waiting, now)
        for i in duplicates:
            stored[i] = self._duplicates.vouched_for(stored[i], propose(drafted[i]), now)
        if compares and len(drafted) > FEW:
            self._changes.find_later([known.id for known in added.values()])
        return stored

    def _added(
        self,
        deciding: Transaction,
        memory: Memory,
        name: str,
        source: str,
        now: datetime,
        team: str,
        change: Conflict | None,
    ) -> Memory:
        """The memory as it is stored: with id and name, a candidate if it needs review, superseding what it replaces."""
        new = _named(deciding, memory, name, now, team=bool(team))
        # A program decides for its owner; no other source tells the agent that reads it what to do.
        if _rank_of_added(new, source) < Rank.PROGRAM and injection_problem(new):
            new = new.but(status="candidate")
        # What waits replaces nothing, but review decides between it and what it would replace.
        heads = replaced_by(deciding, new.but(status="active") if new.supersedes else new)
        if above := outranking_head(heads, new.source):
            return _contradicting(new.but(status="candidate"), above, now, waits_alone=new.status == "active")
        heads = heads if new.status == "active" else []
        if not heads and change is not None:
            return self._changes.applied(deciding, new, change)
        return superseding(deciding, new, heads, self.clock()) if heads else new

    def _all_as_learned(
        self, drafted: Sequence[Memory], vectors: "Vectors | None", source: str, now: datetime
    ) -> tuple[Sequence[Memory], dict[str, int]]:
        """The memories as `learn` would store them, and where the scopes of those stood that were judged."""
        judged = {memory.scope for memory in drafted if _is_judged(memory, source)}
        if not judged:
            return drafted, {}
        with self.store.reading():
            marks = {scope: self.store.mark(scope) for scope in sorted(judged)}
            known = [StoreKnown(self.store, vectors[i] if vectors is not None else None) for i in range(len(drafted))]
            said = [self._as_learned(one, source, known[i], now) for i, one in enumerate(drafted)]
        return said, marks

    def _as_learned_late(self, memory: Memory, source: str, changed: Sequence[Memory], now: datetime) -> Memory:
        """The same for what others wrote before the lock was taken."""
        compared = [other for other in changed if other.status in COMPARED]
        return self._as_learned(memory, source, LateKnown(compared), now) if compared else memory

    def _as_learned(self, memory: Memory, source: str, known: Known, now: datetime) -> Memory:
        """The memory as `learn` would store it, where neither a person nor a program says it: a candidate, if that would let it wait."""
        if not _is_judged(memory, source):
            return memory
        memory = _without_claims(memory)
        is_own = _rank_of_added(memory, source) == rank_of(memory.source, Rank.PROGRAM)
        said = memory if is_own else memory.but(source=source)
        settings = replace(self.settings, max_statement_chars=self.settings.max_added_bytes)
        verdict = judge(propose(said), known, settings)
        other = verdict.other
        if verdict.outcome == Outcome.SUPERSEDED:
            return replacing(memory, verdict)
        if verdict.outcome == Outcome.CONTRADICTION and other is not None:
            return _contradicting(memory.but(status="candidate"), other, now, waits_alone=verdict.waits_alone)
        # What says the same as a candidate waits like that one; an exact duplicate is not stored again.
        is_duplicate = verdict.outcome == Outcome.DUPLICATE and other is not None and other.status in CURRENT
        return memory if verdict.outcome == Outcome.CREATED or is_duplicate else memory.but(status="candidate")

    @property
    def _withdrawals(self) -> Withdrawals:
        return Withdrawals(self.store)

    @property
    def _duplicates(self) -> Duplicates:
        return Duplicates(self.store, self.settings, self.clock)

    @property
    def _changes(self) -> Changes:
        return Changes(self.store, self.clock)

    def _drafted(self, given: Mapping[str, Any], learned_by: str, source: str, now: datetime) -> Memory:
        """The memory that a caller's fields and the policy describe."""
        memory = draft(given, learned_by=learned_by, source=source, now=now)
        return self.policy.applied(memory, typed="type" in given or "memory_type" in given)

    def _embed(self, memories: Sequence[Memory]) -> "Vectors | None":
        return self.store.embed([meaning_of(memory) for memory in memories])


def _weight(verdict: Verdict) -> int:
    """The weight of a verdict by what it found; the heavier of two counts."""
    if not verdict.admitted:
        return 4
    if verdict.outcome in _FOUND:
        return _FOUND[verdict.outcome]
    return 1 if verdict.other is not None else 0


def _is_outdated(verdict: Verdict, deciding: Transaction) -> bool:
    """Whether the other memory of a verdict has been removed or reworded since."""
    if verdict.other is None:
        return False
    now = deciding.get(verdict.other.id)
    return now is None or now.status not in COMPARED or now.statement != verdict.other.statement


def _stored(deciding: Transaction, memory: Memory, verdict: Verdict, session: str, now: datetime) -> Memory:
    memory = memory.but(status=verdict.status, session=session or memory.session)
    if verdict.outcome == Outcome.CONTRADICTION and verdict.other is not None:
        likely = [conflict.other for conflict in verdict.conflicts if conflict.is_likely]
        # What contradicts a candidate that waits for a current memory waits for that one, too.
        found = [m if m.status in CURRENT else contradicted(deciding.get, m) for m in (verdict.other, *likely)]
        others = {other.id: other for other in found if other is not None}
        for other in others.values() or [verdict.other]:
            memory = _contradicting(memory, other, now, waits_alone=verdict.waits_alone)
    return _named(deciding, memory, _wanted_name(memory), now)


def _contradicting(memory: Memory, other: Memory, now: datetime, *, waits_alone: bool = False) -> Memory:
    link = conflict_link(other, now, waits_alone=waits_alone)
    return memory.but(associations=(*memory.associations, link))


def _scope_beside(memory: Memory, named: Sequence[Memory], relation: str, *, placed: bool) -> str:
    """The scope of a statement about stored memories: theirs, unless the caller chose one. No scope replaces what another one has."""
    scopes = sorted({other.scope for other in named})
    if not placed and len(scopes) == 1:
        return scopes[0]
    apart = [other for other in named if other.scope != memory.scope]
    if not apart or (placed and relation in BESIDE):
        return memory.scope
    here = f"this one would be in {memory.scope}" if placed else "others that it names are not"
    raise InvalidInput(
        f"{apart[0].id} is in {apart[0].scope}, and {here}: a memory replaces, repeats or contradicts only what is in its own scope. "
        "Name the memories of one scope at a time, and leave out the scope"
    )


def _decision(verdict: Verdict, stored: Memory) -> Decision:
    """The decision about a stored memory, with what else it may outdate or contradict."""
    replaced = stored.supersedes if stored.status in CURRENT else ()
    found = {conflict.other.id: _related(conflict) for conflict in verdict.conflicts}
    other = verdict.other
    if verdict.outcome == Outcome.CONTRADICTION and other is not None and other.id not in found:
        found = {other.id: Related(other, "update", 1.0, "the current version"), **found}
    related = [one for memory_id, one in found.items() if memory_id not in replaced]
    return Decision(verdict.outcome, stored, other, verdict.reason, verdict.gate, tuple(related[:MOST_RELATED]))


def _skipped(verdict: Verdict) -> Decision:
    """The decision about a contradiction that the caller wants reported instead of stored."""
    others = [conflict for conflict in verdict.conflicts if conflict.is_likely and conflict.other != verdict.other]
    related = tuple(map(_related, others[:MOST_RELATED]))
    reason = f"{verdict.reason.removesuffix('; it waits for review')}{NOT_STORED}"
    return Decision(verdict.outcome, None, verdict.other, reason, verdict.gate, related)


def _related(conflict: Conflict) -> Related:
    return Related(conflict.other, conflict.relation, conflict.probability, conflict.why)


def _succeeding(verdict: Verdict, memory: Memory, heads: Sequence[Memory]) -> Verdict:
    """The verdict on a memory that replaces these, or is an exception to them until it ends."""
    replaced = [head for head in heads if not outlasts(head, memory)]
    if replaced:
        return replace(verdict, outcome=Outcome.SUPERSEDED, other=replaced[0])
    return replace(verdict, outcome=Outcome.CREATED, reason=exception_reason(memory, heads[0]), other=heads[0])


def _waiting(verdict: Verdict, source: str, above: Memory) -> Verdict:
    """The verdict on a memory that would supersede one from a more trusted source: it waits for review."""
    reason = outranked_reason(source, above)
    return replace(
        verdict,
        outcome=Outcome.CONTRADICTION,
        gate="trust",
        reason=reason,
        other=above,
        status="candidate",
        waits_alone=verdict.status == "active",
    )


def _without_claims(memory: Memory) -> Memory:
    """A proposal without what its source may not claim: a person's confirmation, ratings, what it waits for or is right beside, and for
    content a pin.
    """
    if rank_of(memory.source) >= Rank.PROGRAM:
        return memory
    blank = Memory("", "")
    claimed = "unverified" if memory.verification == CONFIRMED else memory.verification
    return memory.but(
        associations=tuple(unmarked(link) for link in memory.associations if link.type != DIFFERS), verification=claimed, feedback=blank.feedback, derivation_count=blank.derivation_count,
        pinned=memory.pinned and not is_untrusted(memory.source), source=memory.source or "unknown",
    )  # fmt: skip


def _bounded(memory: Memory, source: str) -> Memory:
    """What an agent, a page or a tool adds: from no source that is trusted more than its own, neither confirmed nor pinned."""
    if rank_of(source, Rank.PROGRAM) >= Rank.PROGRAM:
        return memory
    named = memory.source if rank_of(memory.source) <= rank_of(source) else source
    return _without_claims(memory.but(source=named, pinned=False))


def _rank_of_added(memory: Memory, source: str) -> Rank:
    """How far what is added is trusted: as far as who adds it, and whom they name as its source."""
    return min(rank_of(source, Rank.PROGRAM), rank_of(memory.source or source, Rank.PROGRAM))


def _is_judged(memory: Memory, source: str) -> bool:
    """Whether the gates judge what is added as they do what is learned: neither a person nor a program says it."""
    return _rank_of_added(memory, source) < Rank.PROGRAM and memory.status in ANSWERING


def _wanted_name(memory: Memory) -> str:
    if memory.name or not memory.form:
        return memory.name or slug(memory.situation or memory.statement)
    return slug(memory.situation, words=12, length=LONGEST_FORM_NAME) or slug(memory.statement) or "memory"


def _named(deciding: Transaction, memory: Memory, wanted: str, now: datetime, *, team: bool = False) -> Memory:
    return memory.but(id=deciding.new_id(now, team=team), name=deciding.free_name(wanted, memory.scope))
