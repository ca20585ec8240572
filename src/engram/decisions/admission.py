"""The last check of every change: what an agent, a transcript or a file writes passes the gates of `learn`, by whichever operation.

No operation is exempt. A plan that asked the gates about a memory puts it as `judged`, because what may not be active waits there;
every other memory of the same change is judged here, and refused. A person, and a program that opened the store for its owner, may
write what they want.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from engram.decisions.conflicts import waits_alone
from engram.decisions.known import ExcludingLookup, propose
from engram.decisions.resolution import VALID_ELSEWHERE
from engram.gates.instructions import injection_problem
from engram.gates.particulars import LABEL_FIELDS, PARTICULAR_FIELDS, find_rejected_particular, particular_problem
from engram.gates.pipeline import judge, mention, outranked_reason
from engram.gates.proposal import GateSettings, Proposal, Verdict
from engram.gates.trust import is_inferred
from engram.model.decision import Outcome
from engram.model.errors import Refused
from engram.model.lazy import dataclass, replace
from engram.model.memory import Memory
from engram.rules.sources import CONFIRMED, Rank, is_below_program, may_replace, rank_of
from engram.store.documents import meaning_of
from engram.store.protocol import Store
from engram.store.records import ANSWERING_STATUSES
from engram.store.screen import Decider
from engram.text.display import notice

if TYPE_CHECKING:
    from engram.embedding.protocol import Vectors

__all__ = ["Admission"]

REVIEW_OPERATIONS = frozenset({"resolve", "undo"})
"""The operations that decide between two memories, or take such a decision back."""
CLAIM_FIELDS = ("statement", "situation", "form", "type", "scope")
"""What a memory says, and where."""
_DETAIL_FIELDS = (
    "rationale", "context", "domain", "trigger_context", "name", "tags", "cues", "entities", "aliases", "anchors",
)  # fmt: skip
"""What else of a memory an agent may read."""


@dataclass(frozen=True, slots=True)
class Admission:
    """Judges what a decision writes."""

    store: Store
    settings: GateSettings

    def check(self, memories: Sequence[Memory], before: Callable[[str], Memory | None], deciding: Decider) -> None:
        """Raise `Refused` for the first memory that this actor may not write so."""
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
        """Why the actor may not say so next to the statement; "" where it may."""
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
        """Raise `Refused` unless `learn` of these words by this actor would be active; of what is not active, unless it would be stored."""
        if verdict.outcome == Outcome.REJECTED:
            raise Refused(_refusal_text(memory, deciding.actor, f"{verdict.gate}: {verdict.reason}"))
        if memory.status not in ANSWERING_STATUSES:
            return
        # What was active before, or waited only for another memory, was trusted then; what it says has not changed.
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
        """Whether nobody gave the type, which a new version has from the one it supersedes."""
        known = before or (self.store.get(memory.supersedes[-1]) if memory.supersedes else None)
        return known is not None and is_inferred(deciding.actor, known, memory)

    def _vector(self, before: Memory | None, memory: Memory, deciding: Decider) -> "Vectors | None":
        """The vector of a memory: given with it, or stored. The writer lock is held here, so that nothing is embedded unless it must be."""
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
        """What the gates say to these words from this actor; how long they may be is another gate's matter."""
        known = ExcludingLookup(self.store, vector, own=memory.id, gone=deciding.gone)
        settings = replace(self.settings, max_statement_chars=self.settings.max_added_bytes)
        proposal = replace(self._proposal(memory, memories, deciding.actor), is_typed=is_typed)
        return judge(proposal, known, settings)

    def _proposal(self, memory: Memory, memories: Sequence[Memory], actor: str) -> Proposal:
        """The memory as its actor's word; those that were found to be right elsewhere do not contradict it."""
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
        """The memory without the labels that it has from the version it replaces, which were judged with that one."""
        older = self.store.get(memory.supersedes[-1]) if memory.supersedes else None
        if older is None or older.status not in ANSWERING_STATUSES:
            return memory
        same = [name for name in LABEL_FIELDS if getattr(memory, name) == getattr(older, name)]
        return memory.replace(**{name: type(getattr(memory, name))() for name in same})


def _refuse_claims(before: Memory | None, memory: Memory, actor: str) -> None:
    """Raise `Refused` where the actor would make a memory a person's word."""
    was_confirmed = before is not None and before.verification == CONFIRMED
    was_persons = before is not None and rank_of(before.source) == Rank.PERSON
    if memory.verification == CONFIRMED and not was_confirmed:
        raise Refused(f"{actor} may not confirm {memory.id}: a person may, with `engram verify` at a terminal")
    if rank_of(memory.source) == Rank.PERSON and not was_persons:
        raise Refused(f"{actor} may not name a person as the source of {memory.id}: surfaces stamp it")


def _compatible_ids(memory: Memory) -> set[str]:
    """The memories that this one leaves alone, since each is right in its situation."""
    return {link.target for link in memory.associations if link.type == VALID_ELSEWHERE}


def _differs(before: Memory, after: Memory, names: Sequence[str]) -> bool:
    return any(getattr(before, name) != getattr(after, name) for name in names)


def _refusal_text(memory: Memory, actor: str, why: str) -> str:
    return (
        f"{actor} may not change {memory.id} so: {why}. Nothing was changed; `learn` it as a new memory, which the gates judge and "
        "which waits for review where it must, or let a person change it at a terminal"
    )
