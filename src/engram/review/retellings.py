"""Retellings: what later turns said that was taken for the same as a memory. A reviewer reads them, and takes one out as a candidate of its own."""

from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from engram.decisions.change import Change
from engram.decisions.conflicts import conflict_link
from engram.decisions.execution import execute_change
from engram.decisions.locked import LockedMemories
from engram.gates.neighbourhood import Neighbourhood
from engram.gates.pipeline import admit, mention
from engram.gates.proposal import GateSettings
from engram.model.errors import ChangedMeanwhile, InvalidInput, Refused
from engram.model.event import quotes_ledger
from engram.model.lazy import dataclass, replace
from engram.model.memory import Evidence, Memory, Retelling
from engram.model.reserved_keys import QUOTED_EVENT, VERBATIM
from engram.review.distrust import distrust_reason
from engram.rules.scopes import is_scope_visible
from engram.rules.sources import CAPTURED, rank_of
from engram.store.documents import meaning_of
from engram.store.new_events import NewEvent
from engram.store.protocol import Store
from engram.store.records import CURRENT_STATUSES
from engram.store.references import Scopes, find_memory
from engram.text.content_hash import content_hash, same_text
from engram.text.display import slug

if TYPE_CHECKING:
    from engram.embedding.protocol import Vectors

SEPARABLE_STATUSES = ("candidate", *CURRENT_STATUSES, "rejected")
"""The statuses of memories that a retelling can be taken out of."""


@dataclass(frozen=True, slots=True)
class NumberedRetelling:
    """A retelling of a memory as it is shown: its number, its words, and where they were said."""

    number: int
    statement: str
    source: str
    session: str
    at: datetime | None


def retellings_of(store: Store, memory: Memory, scopes: Collection[str] | None = None) -> Iterator[NumberedRetelling]:
    """The retellings of a memory that a caller sees, numbered from 1."""
    for number, (words, evidence) in enumerate(group_retellings(store, memory).items(), start=1):
        told = evidence[0].retelling
        if told is None or not is_scope_visible(scopes, told.scope):
            continue
        event = store.event(evidence[0].event)
        session, at = (event.session, event.at) if event is not None else ("", None)
        yield NumberedRetelling(number, words, told.source, session, at)


def group_retellings(store: Store, memory: Memory) -> dict[str, list[Evidence]]:
    """The words of each retelling that are still there, with where they were said; what was said more than once counts once."""
    found: dict[str, list[Evidence]] = {}
    for evidence in memory.evidence:
        if words := _words(store, evidence):
            known = next((one for one in found if same_text(one, words)), words)
            found.setdefault(known, []).append(evidence)
    return found


def _words(store: Store, evidence: Evidence) -> str:
    """The words of a retelling; "" where there are none, or they belong to another turn."""
    artifact = store.event(evidence.retelling.event) if evidence.retelling is not None else None
    if artifact is None or artifact.metadata.get(QUOTED_EVENT) != evidence.event:
        return ""
    return artifact.content


def store_retelling(store: Store, known: Memory, new: Memory, evidence: Evidence) -> Evidence:
    """The evidence of a proposal that retells a known memory, with what the proposal says as an artifact of the ledger."""
    event = store.event(evidence.event)
    if event is None:
        return evidence
    key = f"retelling {event.id} {content_hash(new.statement)[:16]}"
    about = {VERBATIM: known.id, QUOTED_EVENT: event.id, "type": new.type}
    artifact = NewEvent(event.role, new.statement, event.at, "artifact", key=key, metadata=about)
    ledger = quotes_ledger(event.session)
    # The words belong where the turn does; a ledger that is there already has its owner.
    scope = "" if store.events(ledger, last=1) else store.owner_of(event.id) or new.scope
    (stored,) = store.append_events(ledger, [artifact], scope=scope)
    return replace(evidence, retelling=Retelling(stored.id, new.scope, new.type, new.source, new.confidence))


@dataclass(slots=True)
class Separation:
    """Takes a retelling out of a memory, as a candidate of its own."""

    store: Store
    clock: Callable[[], datetime]
    settings: GateSettings
    described: Callable[[Memory, Memory, Any], Memory]

    def separate(
        self,
        ref: str,
        number: int,
        actor: str,
        reason: str,
        shown: Sequence[Memory] = (),
        scopes: Scopes = None,
    ) -> Memory:
        """The new candidate. Raises `InvalidInput` for a number that the memory does not have, and `Refused` where its words are stored already."""
        found = find_memory(self.store, ref, scopes, to_change=True)
        words, evidence = _pick_retelling(self.store, found, number)
        new = self._candidate(found, words, evidence)
        vectors = self.store.embed([meaning_of(new)])
        vector = vectors[0] if vectors is not None else None
        self._refuse_new(new, found)
        new = self._link_contradictions(new, found, vector)

        def plan(memories: LockedMemories) -> Memory:
            (memory,), now = memories.targets, memories.now
            if not set(map(_place, evidence)) <= set(map(_place, memory.evidence)):
                raise ChangedMeanwhile(
                    f"{memory.id} was changed while you read it; nothing was decided: `engram show {memory.id}`"
                )
            if memory.status not in SEPARABLE_STATUSES:
                raise Refused(
                    f"{memory.id} is {memory.status}: a retelling is taken only out of what waits, is current or was rejected"
                )
            left = tuple(one for one in memory.evidence if one not in evidence)
            memories.put(memory.replace(evidence=left, updated=now))
            name = memories.free_name(slug(new.statement), new.scope)
            separated = new.replace(id=memories.new_id(now), name=name, created=now, updated=now)
            memories.put(separated, vector)
            return separated

        change = Change(
            op="separate", actor=actor, plan=plan, reason=reason, session=new.session, targets=[found.id], caller=scopes,
            shown=shown, scopes={found.scope, new.scope},
        )  # fmt: skip
        return execute_change(self.store, self.clock, change)

    def _candidate(self, memory: Memory, words: str, evidence: Sequence[Evidence]) -> Memory:
        """What the retelling would have become. A file may claim any source for it, so it is no more trusted than the memory."""
        first, told = evidence[0], evidence[0].retelling
        assert told is not None
        event = self.store.event(first.event)
        source = told.source if rank_of(told.source) <= rank_of(memory.source) else memory.source
        new = Memory(
            id="", statement=words, scope=told.scope, type=told.type, status="candidate", source=source,
            confidence=told.confidence, learned_by=CAPTURED, session=event.session if event is not None else "",
            context=event.content[slice(*first.span)] if event is not None and first.span is not None else "",
            valid_from=event.at if event is not None else None,
            evidence=tuple(replace(one, retelling=None) for one in evidence),
        )  # fmt: skip
        return admit(self.described(new, new, {"statement": new.statement}), self.settings)

    def _refuse_new(self, new: Memory, memory: Memory) -> None:
        """Raise `Refused` where the words are stored already, or come from a source that was taken out."""
        known = self.store.exact(content_hash(new.statement), new.scope)
        why = f"{mention(known)} says this word for word" if known is not None else ""
        if why := why or distrust_reason(self.store, new.source, new.session):
            raise Refused(f"nothing was taken out of {memory.id}: {why}")

    def _link_contradictions(self, new: Memory, memory: Memory, vector: "Vectors | None") -> Memory:
        """The candidate, linked to the current memories that it contradicts."""
        from engram.decisions.known import ExcludingLookup, propose

        proposal = propose(new)
        near = Neighbourhood(proposal, ExcludingLookup(self.store, vector, own=memory.id).near(proposal))
        others = [
            found.other for found in near.conflicts() if found.is_likely and found.other.status in CURRENT_STATUSES
        ]
        return new.replace(associations=tuple(conflict_link(other, self.clock()) for other in others))


def _place(evidence: Evidence) -> tuple[str, tuple[int, int] | None, bool]:
    return evidence.event, evidence.span, evidence.retelling is not None


def _pick_retelling(store: Store, memory: Memory, number: int) -> tuple[str, list[Evidence]]:
    found = list(group_retellings(store, memory).items())
    if not found:
        raise InvalidInput(f"{memory.id} has no retellings: nothing else was taken for the same")
    if not 1 <= number <= len(found):
        raise InvalidInput(
            f"{memory.id} has no retelling {number}; `engram show {memory.id}` numbers them 1 to {len(found)}"
        )
    return found[number - 1]
