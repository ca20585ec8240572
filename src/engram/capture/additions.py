"""Additions to a memory that is stated again: more cues, and a situation that covers both statements.
If the source may not change the memory, the broader situation is proposed for review.
"""

from collections.abc import Callable, Sequence
from datetime import datetime

from engram.decisions.admission import StoreLookup
from engram.decisions.execution import Change, LockedMemories, execute_change
from engram.gates.comparison import SITUATION_SEPARATOR
from engram.gates.instructions import injection_problem
from engram.gates.pipeline import particular_problem, situation_conflict
from engram.gates.proposal import Proposal
from engram.gates.trust import is_human
from engram.model.decision import Decision
from engram.model.errors import NotFound, Refused
from engram.model.lazy import dataclass, replace
from engram.model.memory import Activation, Feedback, Memory
from engram.rules.labels import add_cues
from engram.rules.sources import may_decide, may_replace
from engram.store.documents import meaning_of
from engram.store.protocol import Filters, Store
from engram.text.display import quote_text
from engram.text.tokens import tokens

__all__ = ["CueAdder", "SituationBroadener", "broader_situation"]

MAX_SITUATION_CHARS = 400
"""The maximum length of a situation; a memory that applies in more situations is a convention and needs none."""


def broader_situation(known: str, new: str) -> str:
    """The situation that covers both; "" if the known one covers the new one, or the result would be too long."""
    parts = [part.strip() for part in known.split(SITUATION_SEPARATOR) if part.strip()]
    words = frozenset(tokens(new))
    if not words or any(words <= frozenset(tokens(part)) for part in parts):
        return ""
    # A broader situation replaces the parts that it covers.
    kept = [part for part in parts if not frozenset(tokens(part)) < words]
    joined = SITUATION_SEPARATOR.join([*kept, new.strip()])
    return joined if len(joined) <= MAX_SITUATION_CHARS else ""


@dataclass(slots=True)
class SituationBroadener:
    """Broadens the situation of a memory that is learned again.

    The memory was not found when it was needed, so the next search by either wording should find it. If the source may
    not change the memory, a candidate with the broader situation, which would replace the memory, waits for review.
    """

    store: Store
    clock: Callable[[], datetime]

    def broaden_situation(self, decision: Decision, proposal: Proposal, session: str) -> Decision:
        """The decision about a duplicate, with the outcome for its situation."""
        known, said = decision.memory, proposal.memory
        if known is None or not said.form or not said.situation:
            return decision
        situation = broader_situation(known.situation, said.situation)
        if not situation:
            return decision
        if (
            may_replace(said.source, known)
            and self.store.own_ids([known.id])
            and self._may_say(proposal, known, situation)
        ):
            return self._broaden(decision, known, said, session)
        return self._propose(decision, known.replace(situation=situation), said, session)

    def _may_say(self, proposal: Proposal, known: Memory, situation: str) -> bool:
        """Whether the new situation may be written: it has no instructions and, unless a person states it, needs no review and has no conflict."""
        if injection_problem(known.replace(situation=situation)):
            return False
        if is_human(proposal.memory.source):
            return True
        is_clean = not particular_problem(proposal.memory, ("situation",))
        return is_clean and situation_conflict(proposal, StoreLookup(self.store)) is None

    def _broaden(self, decision: Decision, known: Memory, said: Memory, session: str) -> Decision:
        expected = known.replace(situation=broader_situation(known.situation, said.situation))
        vectors = self.store.embed([meaning_of(expected)])

        def plan(memories: LockedMemories) -> Memory | None:
            found = memories.get(known.id)
            situation = broader_situation(found.situation, said.situation) if found is not None else ""
            # Another writer may have replaced it with a memory from a more trusted source.
            if found is None or not situation or not may_replace(said.source, found):
                return None
            after = found.replace(situation=situation, updated=memories.now)
            is_expected = vectors is not None and meaning_of(after) == meaning_of(expected)
            memories.put(after, vectors[0] if is_expected and vectors is not None else None, judged=True)
            return after

        change = Change(
            op="derive", actor=said.source, plan=plan, note="a broader situation", session=session, scopes=[known.scope],
            related=[known.id],
        )  # fmt: skip
        after = execute_change(self.store, self.clock, change)
        if after is None:
            return decision
        other = after if decision.other is not None and decision.other.id == after.id else decision.other
        reason = f"{decision.reason}; its situation now also covers {quote_text(said.situation)}"
        return replace(decision, memory=after, other=other, reason=reason)

    def _propose(self, decision: Decision, wanted: Memory, said: Memory, session: str) -> Decision:
        """Propose a version with the broader situation for review, unless one was proposed before."""
        told = f"{decision.reason}; a situation that also covers {quote_text(said.situation)}"
        if self._was_proposed(wanted):
            return replace(decision, reason=f"{told} was proposed before")
        now = self.clock()

        def plan(memories: LockedMemories) -> Memory:
            proposed = wanted.replace(
                id=memories.new_id(now), name=memories.free_name(wanted.name, wanted.scope), aliases=(), status="candidate",
                source=said.source, learned_by=said.learned_by, verification="unverified", pinned=False, created=now,
                updated=None, supersedes=(wanted.id,), superseded_by="", lineage="", revision=1, associations=(),
                session=session or said.session, activation=Activation(), feedback=Feedback(), derivation_count=1, last_verified=None,
                imported_at=None,
            )  # fmt: skip
            memories.put(proposed)
            return proposed

        change = Change(
            op="learn", actor=said.source, plan=plan, note=f"a broader situation: {wanted.id}", session=session,
            scopes=[wanted.scope], related=[wanted.id], created=[now],
        )  # fmt: skip
        proposed = execute_change(self.store, self.clock, change)
        return replace(decision, reason=f"{told} waits for review as {proposed.id}")

    def _was_proposed(self, wanted: Memory) -> bool:
        found = self.store.listing(Filters(scopes=(wanted.scope,), statuses=("candidate", "rejected")))
        return any(wanted.id in one.supersedes and one.situation == wanted.situation for one in found)


@dataclass(frozen=True, slots=True)
class CueAdder:
    """Adds cues to stored memories, each time as a separate decision that `undo` reverts."""

    store: Store
    clock: Callable[[], datetime]

    def add(self, known: Memory, cues: Sequence[str], actor: str, session: str = "") -> Memory:
        """The memory with these cues added; unchanged if the actor may not change it, or there is no room for more."""
        if add_cues(known.cues, cues) == known.cues or not may_decide(actor, known):
            return known
        # A team's file changes only by an explicit change.
        if not self.store.own_ids([known.id]):
            return known

        def plan(memories: LockedMemories) -> Memory:
            (found,) = memories.targets
            if (more := add_cues(found.cues, cues)) == found.cues:
                return found
            after = found.replace(cues=more, updated=memories.now)
            memories.put(after)
            return after

        change = Change(op="update", actor=actor, plan=plan, note="more cues", session=session, targets=[known.id])
        try:
            return execute_change(self.store, self.clock, change)
        except (NotFound, Refused):
            return known
