"""The shared steps of `learn` and `add`.

These are drafting, embedding and naming a new memory, and the changes that a repeated statement makes to the memory it
repeats.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

from engram.capture.additions import CueAdder, SituationBroadener
from engram.capture.draft import draft
from engram.decisions.admission import ExcludingLookup, propose
from engram.decisions.approval import VALID_ELSEWHERE
from engram.decisions.execution import Change, LockedMemories, execute_change
from engram.decisions.versions import (
    conflict_link,
    contradiction_target,
    find_heads,
    outranking_head,
    remove_wait_mark,
    replaced_memories,
    waits_alone,
)
from engram.gates.instructions import injection_problem
from engram.gates.pipeline import judge, mention, outranked_reason
from engram.gates.policies import MemoryPolicy
from engram.gates.proposal import GateSettings, Proposal, Verdict
from engram.gates.trust import corroborate_guess, corroborates, is_human, is_untrusted, tier_of, trust
from engram.model.arguments import CORROBORATED_BY
from engram.model.decision import Decision, Outcome, Related
from engram.model.lazy import dataclass, replace
from engram.model.memory import CONTRADICTS, LIVE_STATUSES, MAY_SUPERSEDE, REFINES, Memory
from engram.model.records import Use
from engram.review.lineage import Lineages
from engram.rules.lifecycle import outlasts, reinforce_memory
from engram.rules.sources import CONFIRMED, CORROBORATED, Rank, is_evidence, rank_of, trust_rank
from engram.store.documents import meaning_of
from engram.store.protocol import COMPARED_STATUSES, Store
from engram.store.records import ENGRAM_ACTOR
from engram.text.content_hash import same_text
from engram.text.display import quote_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from engram.embedding.vectors import Vectors

MAX_RELATED_MEMORIES = 3
"""The most memories named by a decision that the new one may outdate or contradict."""
COEXISTING_RELATIONS = ("different", "refinement")
"""Relations of a statement to memories that it leaves unchanged."""
_CONFLICTS = (CONTRADICTS, MAY_SUPERSEDE)
Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class _Vouching:
    """What a source's repetition of a memory may change, and the gates' verdict on it."""

    is_due: bool = False
    verdict: Verdict | None = None
    about: tuple[str, ...] = ()


@dataclass(slots=True)
class Duplicates:
    """Decides what a repetition of a stored memory changes.

    It counts and reinforces the memory, confirms a guess, corroborates or vouches for a memory from elsewhere, releases
    a waiting memory, or lets it replace others that the caller names.
    """

    store: Store
    settings: GateSettings
    clock: Callable[[], datetime]

    def handle_duplicate(self, proposal: Proposal, verdict: Verdict, session: str) -> Decision:
        """The decision about a rejected memory or a duplicate; a duplicate reinforces the memory it repeats."""
        if verdict.outcome != Outcome.DUPLICATE or verdict.other is None:
            return Decision(
                outcome=verdict.outcome, memory=None, other=verdict.other, reason=verdict.reason, gate=verdict.gate
            )
        # Vouching for the memory and settling its contradictions are one decision, so that one undo reverts both.
        others = _pending_replacements(verdict.other, proposal)
        is_settled_later = bool(others) or _is_coexisting(proposal, verdict.gate)
        decision = self._reinforce_duplicate(
            verdict, verdict.other, proposal, session, self.clock(), vouch=not is_settled_later
        )
        decision = SituationBroadener(self.store, self.clock).broaden_situation(decision, proposal, session)
        decision = self._with_more_cues(decision, proposal.memory, session)
        known = decision.memory
        if known is None:
            return decision
        if others:
            return self._supersede_named(decision, known, others, proposal, session)
        if _is_coexisting(proposal, verdict.gate):
            return self._keep_named(decision, known, proposal, session)
        return self._decide_candidate(decision, known, proposal, session) if known.status == "candidate" else decision

    def _with_more_cues(self, decision: Decision, said: Memory, session: str) -> Decision:
        """The decision about a duplicate, whose stored memory also gets the new cues."""
        known = decision.memory
        if known is None:
            return decision
        after = CueAdder(self.store, self.clock).add(known, said.cues, said.source, session)
        if after is known:
            return decision
        added = ", ".join(quote_text(cue) for cue in after.cues if cue not in known.cues)
        other = after if decision.other is not None and decision.other.id == after.id else decision.other
        return replace(decision, memory=after, other=other, reason=f"{decision.reason}; its cues now include {added}")

    # -- duplicates of a waiting memory

    def decide_blocked_candidate(self, proposal: Proposal, verdict: Verdict, session: str) -> Decision | None:
        """The decision about the duplicate of a candidate that waits for a current memory; None for any other duplicate.

        It is made before the caller's choice is carried out and changes nothing, so that `skip` changes nothing.
        """
        known = verdict.other
        if verdict.outcome != Outcome.DUPLICATE or known is None or known.status != "candidate":
            return None
        if contradiction_target(self.store.get, known) is None:
            return None
        decision = Decision(
            outcome=Outcome.DUPLICATE, memory=known, other=known, reason=verdict.reason, gate=verdict.gate
        )
        return self._decide_candidate(decision, known, proposal, session)

    def _decide_candidate(self, decision: Decision, known: Memory, proposal: Proposal, session: str) -> Decision:
        """The decision about the duplicate of a candidate: which memory it waits for, or that it no longer waits."""
        blocking = contradiction_target(self.store.get, known)
        if blocking is not None:
            reason = f"{decision.reason}, which waits for review because it contradicts {mention(blocking)}"
            found = (self.store.get(link.target) for link in known.associations if link.type == CONTRADICTS)
            waits_for = [other for other in found if other is not None and other.status in LIVE_STATUSES]
            why = "the current memory it waits for"
            related = tuple(Related(other, "contradiction", 1.0, why) for other in waits_for[:MAX_RELATED_MEMORIES])
            return replace(decision, other=blocking, reason=reason, related=related)
        if not waits_alone(known) or not self._is_trusted(proposal):
            return replace(decision, reason=f"{decision.reason}, which waits for review")
        change = Change(
            op="learn", actor=proposal.memory.source, plan=lambda memories: memories.release([known]), session=session,
            scopes=[known.scope], related=[known.id],
        )  # fmt: skip
        released = execute_change(self.store, self.clock, change)
        if not released:
            return replace(decision, reason=f"{decision.reason}, which waits for review")
        reason = f"{decision.reason}, which is active now: what it contradicted is no longer current"
        return replace(decision, outcome=Outcome.UPDATED, memory=released[0], other=None, reason=reason)

    def _supersede_named(
        self, decision: Decision, known: Memory, named: Sequence[str], proposal: Proposal, session: str
    ) -> Decision:
        """A stored statement repeated with memories to replace: it supersedes them and no longer waits."""
        source, vouching = proposal.memory.source, self._plan_vouching(known, proposal)

        def plan(memories: LockedMemories) -> Decision:
            before = memories.get(known.id)
            if before is None or not same_text(before.statement, known.statement):
                return decision
            found = self._vouch(memories, before, proposal, vouching)
            vouched = self._vouching_decision(decision, before, found, memories)
            others = [head for head in find_heads(memories, named) if head.id != known.id]
            heads = [head for head in others if not outlasts(head, known)]
            if found.status not in COMPARED_STATUSES or not heads:
                return vouched
            above = outranking_head(heads, source)
            may_replace = self._can_be_active(found, proposal) and self._may_replace(found, heads, proposal, memories)
            if above is not None or not may_replace:
                why = outranked_reason(source, above) if above is not None else "it waits for review"
                related = tuple(
                    Related(head, "update", 1.0, "named by the caller") for head in heads[:MAX_RELATED_MEMORIES]
                )
                return replace(vouched, other=heads[0], reason=f"{vouched.reason}; {why}", related=related)
            stored = memories.supersede(found.replace(status="active", updated=memories.now), heads)
            memories.put(stored, judged=True)
            reason = f"{decision.reason}, which now supersedes {mention(heads[0])}"
            return Decision(outcome=Outcome.SUPERSEDED, memory=stored, other=heads[0], reason=reason, gate="relation")

        about = [known.id, *superseded_versions(self.store, self.clock, [proposal.memory]), *vouching.about]
        return self._execute_relation(plan, known, vouching, source, session, about)

    def _execute_relation(
        self,
        plan: Callable[[LockedMemories], Answer],
        known: Memory,
        vouching: "_Vouching",
        source: str,
        session: str,
        about: Sequence[str],
    ) -> Answer:
        """Carry out the relation that the caller states between a stored memory and others."""
        change = Change(
            op="derive" if vouching.is_due else "learn", actor=source, plan=plan, note=f"relation: {known.id}", session=session,
            scopes=[known.scope], related=about,
        )  # fmt: skip
        return execute_change(self.store, self.clock, change)

    def _keep_named(self, decision: Decision, known: Memory, proposal: Proposal, session: str) -> Decision:
        """A stored statement repeated as coexisting with the named memories: it no longer waits for them."""
        source, aside = proposal.memory.source, [other for other in proposal.named if other.id != known.id]
        links = {link.target for link in known.associations if link.type in _CONFLICTS}
        if above := outranking_head([other for other in aside if other.id in links], source):
            known = self.vouch_for(known, proposal)
            related = (Related(above, "contradiction", 1.0, "the current memory it waits for"),)
            decision = replace(decision, memory=known)
            reason = f"{decision.reason}; {outranked_reason(source, above)}"
            return replace(decision, other=above, reason=reason, related=related)
        vouching = self._plan_vouching(known, proposal)

        def plan(memories: LockedMemories) -> tuple[Decision, Memory, Memory] | None:
            before = memories.get(known.id)
            if before is None or not same_text(before.statement, known.statement):
                return None
            found = self._vouch(memories, before, proposal, vouching)
            vouched = self._vouching_decision(decision, before, found, memories)
            beside = _link_coexisting(found, aside, proposal)
            if (
                found.status == "candidate"
                and self._can_be_active(found, proposal)
                and self._may_replace(beside, (), proposal, memories)
            ):
                beside = _activate(memories, beside, source)
            if beside != found:
                beside = beside.replace(updated=memories.now)
                memories.put(beside, judged=True)
            return vouched, found, beside

        about = [*self._vouching_ids(known), *vouching.about]
        settled = self._execute_relation(plan, known, vouching, source, session, about)
        if settled is None:
            return decision
        decision, found, beside = settled
        if beside.status == "candidate":
            return self._decide_candidate(replace(decision, memory=beside), beside, proposal, session)
        if found.status != "candidate":
            return replace(decision, memory=beside)
        reason = f"{decision.reason}, which is active now: it contradicts nothing, as the caller says"
        return replace(decision, outcome=Outcome.UPDATED, memory=beside, other=None, reason=reason, gate="relation")

    def _may_replace(
        self, found: Memory, heads: Sequence[Memory], proposal: Proposal, memories: LockedMemories
    ) -> bool:
        """Whether a stored memory may become active in place of others on the repeater's authority, judged as it is stored."""
        replaced, source = {head.id for head in heads}, proposal.memory.source
        if not is_human(source) and injection_problem(found):
            return False
        if contradiction_target(lambda other: None if other in replaced else memories.get(other), found) is not None:
            return False
        return self._is_trusted(proposal) and self._is_trusted(replace(proposal, memory=found.replace(source=source)))

    def _can_be_active(self, found: Memory, proposal: Proposal) -> bool:
        """Whether a stored memory could become active on the repeater's authority alone, without replacing others."""
        source = proposal.memory.source
        if found.status != "candidate" or is_human(source):
            return True
        if not waits_alone(found):
            return False
        said = self._judge_stored(found, source, proposal.named, proposal.relation)
        return said.outcome not in (Outcome.PENDING, Outcome.REJECTED) and not said.withdrawn

    def _is_trusted(self, proposal: Proposal) -> bool:
        is_typed = proposal.is_typed
        return trust(proposal.memory, proposal.autonomous, self.settings, is_typed=is_typed).status == "active"

    def _reinforce_duplicate(
        self, verdict: Verdict, other: Memory, proposal: Proposal, session: str, now: datetime, *, vouch: bool
    ) -> Decision:
        """Count and reinforce a duplicate of a stored memory, at most once per session (per day without one).

        With `vouch`, a more trusted source becomes the memory's source; otherwise a later step does that. Repetitions
        by content do not count, and those by a transcript count only for memories from transcripts; but a repetition by
        an independent source corroborates.
        """
        key = session or f"day:{now.date().isoformat()}"
        # A repetition that only counts is Engram's decision; one that corroborates is the source's.
        actor = proposal.memory.source if corroborates(proposal.memory, other, session) else ENGRAM_ACTOR

        def plan(memories: LockedMemories) -> Memory | None:
            known = memories.get(other.id)
            if known is None or not same_text(known.statement, other.statement):
                return None
            counted = any(use.kind == "derived" and use.session == key for use in self.store.uses([other.id]))
            before = known
            # A team's file changes by decisions, never by use.
            if not counted and _is_derivation(proposal.memory.source, known) and self.store.own_ids([other.id]):
                # The use is recorded first: a crash in between may lose a count but never counts twice.
                self.store.note_use(Use("derived", (other.id,), now, key))
                known = reinforce_memory(known, now).replace(
                    derivation_count=known.derivation_count + 1, last_verified=now
                )
            if self.store.own_ids([other.id]):
                known = self._corroborate(memories, corroborate_guess(known, proposal.memory), proposal, session, now)
            if known != before:
                memories.put(known, judged=True)
            return known

        change = Change(
            op="derive", actor=actor, plan=plan, note=journal_reason(verdict), session=session, related=[other.id]
        )
        known = execute_change(self.store, self.clock, change)
        if known is None:
            reason = "the duplicate was removed or reworded meanwhile"
            return Decision(outcome=Outcome.NOOP, memory=None, other=verdict.other, reason=reason, gate=verdict.gate)
        decision = Decision(
            outcome=Outcome.DUPLICATE, memory=known, other=known, reason=verdict.reason, gate=verdict.gate
        )
        if other.status == "candidate" and known.status == "active":
            reason = f"{verdict.reason}, which is active now: an independent source says the same"
            decision = Decision(outcome=Outcome.UPDATED, memory=known, other=None, reason=reason, gate=verdict.gate)
        return self._vouching_decision(decision, known, self.vouch_for(known, proposal)) if vouch else decision

    def _corroborate(
        self, memories: LockedMemories, known: Memory, proposal: Proposal, session: str, now: datetime
    ) -> Memory:
        """The evidence, corroborated by an independent source, and active if nothing else prevents that."""
        if not corroborates(proposal.memory, known, session) or injection_problem(known):
            return known
        evidence = (*known.evidence, *(one for one in proposal.memory.evidence if one not in known.evidence))
        metadata = {**known.metadata, CORROBORATED_BY: proposal.memory.source}
        known = known.replace(
            verification=CORROBORATED, evidence=evidence, metadata=metadata, last_verified=now, updated=now
        )
        if known.status != "candidate" or tier_of(known) > 1 or contradiction_target(memories.get, known) is not None:
            return known
        return _activate(memories, known, known.source)

    def _vouching_decision(
        self, decision: Decision, known: Memory, vouched: Memory, memories: LockedMemories | None = None
    ) -> Decision:
        """The decision about a duplicate, after its source has vouched for the stored memory."""
        if known.status != "candidate" or vouched.status != "active":
            other = vouched if decision.other is not None else None
            return replace(decision, memory=vouched, other=other)
        get = memories.get if memories is not None else self.store.get
        replaced = [other for other in map(get, vouched.supersedes) if other is not None]
        ended = next((other for other in replaced if other.superseded_by == vouched.id), None)
        if ended is None:
            reason = f"{decision.reason}, which is active now: a person said it"
            return Decision(outcome=Outcome.UPDATED, memory=vouched, other=None, reason=reason, gate=decision.gate)
        reason = f"{decision.reason}, which now supersedes {mention(ended)}"
        return Decision(outcome=Outcome.SUPERSEDED, memory=vouched, other=ended, reason=reason, gate=decision.gate)

    # -- duplicates from a more trusted source

    def vouch_for(self, known: Memory, proposal: Proposal) -> Memory:
        """The stored memory after a repetition; it takes over a more trusted source."""
        vouching = self._plan_vouching(known, proposal)
        if not vouching.is_due:
            return known

        def plan(memories: LockedMemories) -> Memory:
            found = memories.get(known.id)
            # This source did not state a wording that was changed in the meantime.
            if found is None or not same_text(found.statement, known.statement):
                return found or known
            return self._vouch(memories, found, proposal, vouching)

        change = Change(
            op="derive", actor=proposal.memory.source, plan=plan, scopes=[known.scope], related=vouching.about
        )
        return execute_change(self.store, self.clock, change)

    def _plan_vouching(self, known: Memory, proposal: Proposal) -> "_Vouching":
        """The data needed to vouch for a memory, read before the lock is taken."""
        if not _can_raise_trust(proposal.memory, known) or not self.store.own_ids([known.id]):
            return _Vouching()
        verdict = self._judge_candidate(known, proposal)
        over = [verdict.other.id] if verdict is not None and verdict.other is not None else []
        about = [
            *self._vouching_ids(known),
            *superseded_versions(self.store, self.clock, [known.replace(supersedes=tuple(over))]),
        ]
        return _Vouching(True, verdict, tuple(dict.fromkeys(about)))

    def _vouch(self, memories: LockedMemories, found: Memory, proposal: Proposal, vouching: "_Vouching") -> Memory:
        """The memory after vouching for it inside a change."""
        if not vouching.is_due or not _can_raise_trust(proposal.memory, found):
            return found
        vouched = self._raise_trust(memories, found, proposal.memory, vouching.verdict)
        if vouched != found:
            memories.put(vouched)
        return vouched

    def _judge_candidate(self, known: Memory, proposal: Proposal) -> Verdict | None:
        """The gates' verdict on a candidate that contradicts a current memory, as if the person who repeats it had stated it first."""
        source = proposal.memory.source
        if known.status != "candidate" or not is_human(source) or contradiction_target(self.store.get, known) is None:
            return None
        with self.store.reading():
            return self._judge_stored(known, source, proposal.named, proposal.relation)

    def _judge_stored(self, known: Memory, source: str, named: tuple[Memory, ...], relation: str) -> Verdict:
        """The gates' verdict on a stored memory, as if this source stated it now."""
        said = propose(known.replace(source=source))
        vectors = self.store.embed([meaning_of(known)])
        others = ExcludingLookup(self.store, vectors[0] if vectors is not None else None, own=known.id)
        return judge(replace(said, named=named, relation=relation), others, self.settings)

    def _vouching_ids(self, known: Memory) -> list[str]:
        """The ids that vouching for a memory may change: its own, and those of every version it would supersede."""
        heads = self.store.heads(known.conflict_key, known.scope) if known.conflict_key else []
        lineages = Lineages(self.store, self.clock)
        older = [version.id for head in heads for version in lineages.versions(head.id)]
        return list(dict.fromkeys([known.id, *older, *superseded_versions(self.store, self.clock, [known])]))

    def _raise_trust(
        self, memories: LockedMemories, known: Memory, repeated: Memory, verdict: Verdict | None
    ) -> Memory:
        """The stored memory with the more trusted source that repeats it; a person also activates a candidate.

        A candidate that contradicts a current memory keeps waiting, unless the verdict is that the person may replace
        that one.
        """
        now = memories.now
        if not is_human(repeated.source):
            waits = known.status not in LIVE_STATUSES or tier_of(known) > 1
            return (
                known if waits else known.replace(source=repeated.source, learned_by=repeated.learned_by, updated=now)
            )
        known = known.replace(verification=CONFIRMED, last_verified=now, updated=now)
        is_free = verdict is not None and verdict.is_admitted and verdict.status == "active"
        if known.status != "candidate" or (contradiction_target(memories.get, known) is not None and not is_free):
            return known
        known = known.replace(status="active")
        if verdict is not None:
            known = name_superseded(known, verdict)
        return memories.supersede(known, replaced_memories(memories, known))


def _activate(memories: LockedMemories, memory: Memory, source: str) -> Memory:
    """A candidate as an active memory, replacing the current one with its key; unchanged if its source may not replace that one."""
    active = memory.replace(status="active")
    heads = replaced_memories(memories, active)
    return memory if outranking_head(heads, source) is not None else memories.supersede(active, heads, by=source)


def superseded_versions(store: Store, clock: Callable[[], datetime], memories: Sequence[Memory]) -> list[str]:
    """The ids of every version of the facts that these memories supersede; the current version changes."""
    lineages = Lineages(store, clock)
    named = dict.fromkeys(older for memory in memories for older in memory.supersedes)
    return [version.id for older in named for version in lineages.versions(older)]


def journal_reason(verdict: Verdict) -> str:
    """The reason for the journal.

    It contains no text of another memory, so that purging that memory leaves nothing behind.
    """
    other = verdict.other.id if verdict.other is not None else verdict.withdrawn
    return f"{verdict.gate}: {other}" if other else verdict.gate


def name_superseded(memory: Memory, verdict: Verdict) -> Memory:
    """The memory, naming the one that it supersedes according to the gates."""
    if verdict.outcome != Outcome.SUPERSEDED or verdict.other is None:
        return memory
    return memory.replace(supersedes=tuple(dict.fromkeys((*memory.supersedes, verdict.other.id))))


def _pending_replacements(known: Memory, proposal: Proposal) -> list[str]:
    """The memories that a repetition names as replaced and that the stored one has not replaced yet."""
    return [other for other in proposal.memory.supersedes if other not in (known.id, *known.supersedes)]


def _is_coexisting(proposal: Proposal, gate: str) -> bool:
    """Whether the repetition's caller states that it coexists with the named memories."""
    return proposal.relation in COEXISTING_RELATIONS and gate != "relation"


def _link_coexisting(memory: Memory, others: Sequence[Memory], proposal: Proposal) -> Memory:
    """The memory without conflicts with the memories it coexists with, and linked to those it refines."""
    ids = [other.id for other in others]
    kept = [link for link in memory.associations if link.type not in _CONFLICTS or link.target not in ids]
    linked = {link.target for link in kept if link.type == REFINES}
    refined = [link for link in proposal.memory.associations if link.type == REFINES and link.target not in linked]
    return memory.replace(associations=(*kept, *(link for link in refined if link.target in ids)))


def _can_raise_trust(repeated: Memory, known: Memory) -> bool:
    """Whether a repetition raises the trust in a stored memory: its source is more trusted, or it is a person and the memory waits."""
    if is_human(repeated.source):
        return known.status == "candidate" or min(trust_rank(known), rank_of(known.source)) < Rank.PERSON
    return rank_of(repeated.source) > trust_rank(known) and is_evidence(known) and not is_untrusted(repeated.source)


def _is_derivation(source: str, known: Memory) -> bool:
    """Whether a repetition counts as another derivation: never from content; from a transcript only for a memory from a transcript."""
    rank = rank_of(source)
    return rank >= Rank.AGENT or (rank == Rank.HARVEST and trust_rank(known) <= rank)


@dataclass(slots=True)
class MemoryWriter:
    """The store, and the rules that decide what is written to it."""

    store: Store
    settings: GateSettings
    policy: MemoryPolicy
    clock: "Callable[[], datetime]"

    def draft_memory(self, given: Mapping[str, Any], learned_by: str, source: str, now: datetime) -> Memory:
        """The memory described by a caller's fields and the policy."""
        memory = draft(given, learned_by=learned_by, source=source, now=now)
        return self.policy.apply(memory, typed="type" in given or "memory_type" in given)

    def embed(self, memories: Sequence[Memory]) -> "Vectors | None":
        """The memories' vectors; None if the store has no embedder."""
        return self.store.embed([meaning_of(memory) for memory in memories])

    def reason_to_distrust(self, source: str, session: str) -> str:
        """Why nothing is accepted from a source or a session; "" if it is."""
        from engram.review.distrust import distrust_reason

        return distrust_reason(self.store, source, session)

    @property
    def duplicates(self) -> Duplicates:
        """Handles proposals that repeat stored memories."""
        return Duplicates(self.store, self.settings, self.clock)


def add_conflict_link(memory: Memory, other: Memory, now: datetime, *, waits_alone: bool = False) -> Memory:
    """The memory with a link to the one it contradicts."""
    link = conflict_link(other, now, waits_alone=waits_alone)
    return memory.replace(associations=(*memory.associations, link))


def without_claims(memory: Memory) -> Memory:
    """A proposal without claims its source may not make.

    Those are confirmation, ratings, and links to memories it waits for or coexists with; for content also a pin.
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
    """The memory with an id, and with its default name or a variant of it."""
    return memory.replace(id=memories.new_id(now, team=team), name=memories.free_name(wanted, memory.scope))
