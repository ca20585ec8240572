"""Reviewers' changes to memories: edit the wording, merge several memories, or separate a retelling into its own memory."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from engram.decisions.approval import mark_confirmed, merge_into, refuse_approval
from engram.decisions.authority import LEARNED_BY_HAND, refuse_instructions, refuse_lower_tier, refuse_unapproved
from engram.decisions.execution import Change, LockedMemories, execute_change
from engram.decisions.versions import conflict_link, refuse_second_head
from engram.gates.neighbourhood import Neighbourhood
from engram.gates.pipeline import admit, judge, mention
from engram.gates.proposal import GateSettings, Verdict
from engram.gates.trust import is_human
from engram.model.arguments import QUOTED_EVENT, VERBATIM
from engram.model.decision import Outcome
from engram.model.errors import ChangedMeanwhile, InvalidInput, Refused
from engram.model.lazy import dataclass, replace
from engram.model.memory import CONTRADICTS, LIVE_STATUSES, Evidence, Memory, Retelling, render_form
from engram.model.records import quotes_ledger
from engram.review.distrust import distrust_reason
from engram.review.lineage import Lineages, refuse_foreign_versions
from engram.rules.scopes import is_scope_visible
from engram.rules.sources import CAPTURED, rank_of, trust_rank
from engram.store.documents import meaning_of
from engram.store.intake import NewEvent
from engram.store.protocol import Store
from engram.store.references import Scopes, find_memory, refuse_move
from engram.text.content_hash import content_hash, same_text
from engram.text.display import remove_invisible, slug

if TYPE_CHECKING:
    from engram.embedding.vectors import Vectors

EDITABLE_STATUSES = ("candidate", *LIVE_STATUSES)
EDITABLE_FIELDS = (
    "statement", "situation", "form", "rationale", "type", "scope", "tags", "cues", "domain", "entities", "confidence", "importance",
    "valid_from", "valid_until", "occurred_at",
)  # fmt: skip
"""The fields an edit may change; the others follow from decisions or from a memory's origin."""


@dataclass(slots=True)
class Amender:
    """Rewords and merges memories; every result passes the gates before it is written."""

    store: Store
    clock: Callable[[], datetime]
    settings: GateSettings
    described: Callable[[Memory, Memory, Any], Memory]

    # -- edit

    def edit(self, ref: str, fields: Mapping[str, Any], actor: str, reason: str, scopes: Scopes = None) -> Memory:
        """The memory with changed fields.

        Raises `Refused` if a gate refuses it, or if it would repeat another memory.
        """
        from engram.capture.draft import checked_fields

        changes = checked_fields(fields)
        if unknown := sorted(changes.keys() - set(EDITABLE_FIELDS)):
            raise InvalidInput(f"an edit cannot change {unknown[0]}; it takes {', '.join(EDITABLE_FIELDS)}")
        found = _require_editable(find_memory(self.store, ref, scopes, to_change=True))
        wanted = self._apply_changes(found, changes, actor)
        refuse_move(wanted.scope, scopes)
        if _same(found, wanted):
            return found
        vectors = self.store.embed([meaning_of(wanted)])
        vector = vectors[0] if vectors is not None else None
        verdict = self._judge_rewording(wanted, actor, vector)

        def plan(memories: LockedMemories) -> Memory:
            before = _require_editable(memories.targets[0])
            after = self._apply_changes(before, changes, actor)
            refuse_unapproved(actor, before, after)
            refuse_lower_tier(actor, before, after)
            after = self._update_links(after, verdict)
            refuse_second_head(memories, after, memories.now)
            memories.put(after, vector if meaning_of(after) == meaning_of(wanted) else None)
            return after

        change = Change(
            op="amend", actor=actor, plan=plan, reason=reason, targets=[found.id], caller=scopes,
            scopes={found.scope, wanted.scope},
        )  # fmt: skip
        return execute_change(self.store, self.clock, change)

    def _apply_changes(self, memory: Memory, changes: Mapping[str, Any], actor: str) -> Memory:
        after = memory.replace(**changes, updated=self.clock())
        if "form" in changes and "statement" not in changes:
            after = after.replace(statement=render_form(after.form))
        if "statement" in changes:
            after = after.replace(form=changes.get("form", {}), entities=changes.get("entities", ()))
        after = self.described(memory, after, changes)
        if is_human(actor):
            after = after.replace(learned_by=LEARNED_BY_HAND)
            # A candidate is confirmed on approval.
            after = (
                mark_confirmed(after, actor).replace(last_verified=self.clock())
                if after.status in LIVE_STATUSES
                else after
            )
        return admit(after, self.settings)

    def _judge_rewording(self, memory: Memory, actor: str, vector: "Vectors | None") -> Verdict:
        """The gates' verdict on the new wording, as if the editor had proposed it."""
        from engram.decisions.admission import ExcludingLookup, propose

        said = memory.replace(source="human") if is_human(actor) else memory
        verdict = judge(propose(said), ExcludingLookup(self.store, vector, own=memory.id), self.settings)
        if verdict.outcome == Outcome.REJECTED:
            raise Refused(f"{memory.id} was not changed: {verdict.gate}: {verdict.reason}")
        if verdict.outcome == Outcome.DUPLICATE and verdict.other is not None:
            raise Refused(
                f"{memory.id} was not changed: it would say the same as {mention(verdict.other)}; "
                f"`engram merge {verdict.other.id} {memory.id}` makes one of them, `engram reject` turns it down"
            )
        return verdict

    def _update_links(self, memory: Memory, verdict: Verdict) -> Memory:
        """The candidate, linked to the memories its new wording contradicts and to none that only the old wording did."""
        if memory.status != "candidate":
            return memory
        others = {conflict.other.id: conflict.other for conflict in verdict.conflicts if conflict.is_likely}
        if verdict.outcome in (Outcome.CONTRADICTION, Outcome.SUPERSEDED) and verdict.other is not None:
            others[verdict.other.id] = verdict.other
        kept = [link for link in memory.associations if link.type != CONTRADICTS or link.target in others]
        linked = {link.target for link in kept if link.type == CONTRADICTS}
        added = [
            conflict_link(other, self.clock())
            for other in others.values()
            if other.id not in linked and other.status in LIVE_STATUSES
        ]
        return memory.replace(associations=(*kept, *added))

    # -- merge

    def merge(
        self,
        refs: Sequence[str],
        statement: str,
        actor: str,
        reason: str,
        shown: Sequence[Memory] = (),
        scopes: Scopes = None,
    ) -> Memory:
        """Replace several memories with one that has a new statement. The others are superseded by it."""
        found = self._require_mergeable(refs, scopes)
        statement = remove_invisible(statement)
        if not statement.strip():
            raise InvalidInput("merge needs a merged statement: --statement TEXT")
        refuse_instructions(actor, found[0].replace(statement=statement), "merge them")
        lineages = Lineages(self.store, self.clock)
        about = dict.fromkeys(version.id for memory in found for version in lineages.versions(memory.id))
        refuse_foreign_versions(self.store, found[0].id, list(about), scopes)

        def plan(memories: LockedMemories) -> Memory:
            merged = [_require_editable(memory) for memory in memories.targets]
            survivor = max(merged, key=lambda memory: (memory.status in LIVE_STATUSES, trust_rank(memory)))
            others = [memory for memory in merged if memory.id != survivor.id]
            _refuse_merge(actor, survivor, others, statement.strip(), self.settings)
            if is_human(actor):
                survivor = survivor.replace(learned_by=LEARNED_BY_HAND)
                survivor = mark_confirmed(survivor, actor) if survivor.status in LIVE_STATUSES else survivor
            return merge_into(memories, survivor, others, statement, memories.now)

        change = Change(
            op="merge", actor=actor, plan=plan, reason=reason, targets=[memory.id for memory in found], caller=scopes,
            shown=shown, scopes=[found[0].scope], related=about,
        )  # fmt: skip
        return execute_change(self.store, self.clock, change)

    def _require_mergeable(self, refs: Sequence[str], scopes: Scopes) -> list[Memory]:
        """The named memories; raises `InvalidInput` unless there are at least two, in one scope."""
        named = (find_memory(self.store, ref, scopes, to_change=True) for ref in refs)
        found = {memory.id: _require_editable(memory) for memory in named}
        owners = sorted({memory.scope for memory in found.values()})
        if len(found) < 2:
            raise InvalidInput("merge takes the ids of at least two memories")
        if len(owners) > 1:
            raise InvalidInput(f"these are in {' and '.join(owners)}: only memories of one scope can be merged")
        return list(found.values())


def _require_editable(memory: Memory) -> Memory:
    """The memory; raises `Refused` if its outcome has already been decided."""
    if memory.status not in EDITABLE_STATUSES:
        raise Refused(f"{memory.id} is {memory.status}: only what waits or is current can be edited or merged")
    return memory


def _refuse_merge(
    actor: str, survivor: Memory, others: Sequence[Memory], statement: str, settings: GateSettings
) -> None:
    """Raise `Refused` if the actor would make active a memory that only a person may."""
    if survivor.status in LIVE_STATUSES:
        for other in others:
            refuse_approval(actor, other.replace(statement=statement), settings)
    refuse_unapproved(actor, survivor, survivor.replace(statement=statement))


def _same(before: Memory, after: Memory) -> bool:
    return all(getattr(before, name) == getattr(after, name) for name in EDITABLE_FIELDS)


SEPARABLE_STATUSES = ("candidate", *LIVE_STATUSES, "rejected")
"""The statuses of memories that a retelling can be separated from."""


@dataclass(frozen=True, slots=True)
class NumberedRetelling:
    """A retelling of a memory as shown to a reviewer: its number, its words, and its places in the ledger."""

    number: int
    statement: str
    source: str
    session: str
    at: datetime | None


def retellings_of(store: Store, memory: Memory, scopes: Collection[str] | None = None) -> Iterator[NumberedRetelling]:
    """The retellings of a memory that a caller may see, numbered from 1."""
    for number, (words, evidence) in enumerate(group_retellings(store, memory).items(), start=1):
        told = evidence[0].retelling
        if told is None or not is_scope_visible(scopes, told.scope):
            continue
        event = store.event(evidence[0].event)
        session, at = (event.session, event.at) if event is not None else ("", None)
        yield NumberedRetelling(number, words, told.source, session, at)


def group_retellings(store: Store, memory: Memory) -> dict[str, list[Evidence]]:
    """The evidence for each distinct retelling, by its words; retellings that were purged are left out."""
    found: dict[str, list[Evidence]] = {}
    for evidence in memory.evidence:
        if words := _words(store, evidence):
            known = next((one for one in found if same_text(one, words)), words)
            found.setdefault(known, []).append(evidence)
    return found


def _words(store: Store, evidence: Evidence) -> str:
    """The words of a retelling; "" if there are none, or if they belong to another turn."""
    artifact = store.event(evidence.retelling.event) if evidence.retelling is not None else None
    if artifact is None or artifact.metadata.get(QUOTED_EVENT) != evidence.event:
        return ""
    return artifact.content


def store_retelling(store: Store, known: Memory, new: Memory, evidence: Evidence) -> Evidence:
    """The evidence of a proposal that retells a known memory; the proposal's statement is stored as an artifact in the ledger."""
    event = store.event(evidence.event)
    if event is None:
        return evidence
    key = f"retelling {event.id} {content_hash(new.statement)[:16]}"
    about = {VERBATIM: known.id, QUOTED_EVENT: event.id, "type": new.type}
    artifact = NewEvent(event.role, new.statement, event.at, "artifact", key=key, metadata=about)
    ledger = quotes_ledger(event.session)
    # The words belong to the owner of the turn; an existing ledger keeps its owner.
    scope = "" if store.events(ledger, last=1) else store.owner_of(event.id) or new.scope
    (stored,) = store.append_events(ledger, [artifact], scope=scope)
    return replace(evidence, retelling=Retelling(stored.id, new.scope, new.type, new.source, new.confidence))


@dataclass(slots=True)
class Separation:
    """Separates a retelling from a memory, as a candidate of its own."""

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
        """The new candidate.

        Raises `InvalidInput` for an unknown number, and `Refused` if the words are already stored.
        """
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
        """The retelling as a candidate. Its source may come from a file, so it is trusted no more than the memory's."""
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
        """Raise `Refused` if the words are already stored, or if their source is distrusted."""
        known = self.store.exact(content_hash(new.statement), new.scope)
        why = f"{mention(known)} says this word for word" if known is not None else ""
        if why := why or distrust_reason(self.store, new.source, new.session):
            raise Refused(f"nothing was taken out of {memory.id}: {why}")

    def _link_contradictions(self, new: Memory, memory: Memory, vector: "Vectors | None") -> Memory:
        """The candidate, linked to the current memories it contradicts."""
        from engram.decisions.admission import ExcludingLookup, propose

        proposal = propose(new)
        near = Neighbourhood(proposal, ExcludingLookup(self.store, vector, own=memory.id).near(proposal))
        others = [found.other for found in near.conflicts() if found.is_likely and found.other.status in LIVE_STATUSES]
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
