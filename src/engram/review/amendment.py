"""Changes to what a memory says that a reviewer makes: its wording, or one statement in place of several."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from engram.decisions.approval import refuse_approval
from engram.decisions.authority import LEARNED_BY_HAND, refuse_instructions, refuse_lower_tier, refuse_unapproved
from engram.decisions.change import Change
from engram.decisions.conflicts import conflict_link
from engram.decisions.execution import execute_change
from engram.decisions.locked import LockedMemories
from engram.decisions.resolution import mark_confirmed, merge_into
from engram.decisions.versions import refuse_second_head
from engram.gates.pipeline import admit, judge, mention
from engram.gates.proposal import GateSettings, Verdict
from engram.gates.trust import is_human
from engram.model.decision import Outcome
from engram.model.errors import InvalidInput, Refused
from engram.model.lazy import dataclass
from engram.model.memory import CONTRADICTS, Memory, render_form
from engram.review.lineage import Lineages, refuse_foreign_versions
from engram.rules.sources import trust_rank
from engram.store.documents import meaning_of
from engram.store.protocol import Store
from engram.store.records import CURRENT_STATUSES
from engram.store.references import Scopes, find_memory, refuse_move
from engram.text.invisible import remove_invisible

if TYPE_CHECKING:
    from engram.embedding.protocol import Vectors

EDITABLE_STATUSES = ("candidate", *CURRENT_STATUSES)
EDITABLE_FIELDS = (
    "statement", "situation", "form", "rationale", "type", "scope", "tags", "cues", "domain", "entities", "confidence", "importance",
    "valid_from", "valid_until", "occurred_at",
)  # fmt: skip
"""What an edit may change; the rest follows from decisions or from where a memory came from."""


@dataclass(slots=True)
class Amender:
    """Rewords and merges memories; each result passes the gates before it is written."""

    store: Store
    clock: Callable[[], datetime]
    settings: GateSettings
    described: Callable[[Memory, Memory, Any], Memory]

    # -- edit

    def edit(self, ref: str, fields: Mapping[str, Any], actor: str, reason: str, scopes: Scopes = None) -> Memory:
        """The memory with other fields. Raises `Refused` where a gate does, or where it would repeat another memory."""
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
            # A candidate is confirmed when it is approved.
            after = (
                mark_confirmed(after, actor).replace(last_verified=self.clock())
                if after.status in CURRENT_STATUSES
                else after
            )
        return admit(after, self.settings)

    def _judge_rewording(self, memory: Memory, actor: str, vector: "Vectors | None") -> Verdict:
        """What the gates say to the new wording, as if the editor had said it."""
        from engram.decisions.known import ExcludingLookup, propose

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
        """A candidate, linked to what its new wording contradicts and to nothing that only the old one did."""
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
            if other.id not in linked and other.status in CURRENT_STATUSES
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
        """One memory in place of several, with a statement of its own. All others are superseded by it."""
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
            survivor = max(merged, key=lambda memory: (memory.status in CURRENT_STATUSES, trust_rank(memory)))
            others = [memory for memory in merged if memory.id != survivor.id]
            _refuse_merge(actor, survivor, others, statement.strip(), self.settings)
            if is_human(actor):
                survivor = survivor.replace(learned_by=LEARNED_BY_HAND)
                survivor = mark_confirmed(survivor, actor) if survivor.status in CURRENT_STATUSES else survivor
            return merge_into(memories, survivor, others, statement, memories.now)

        change = Change(
            op="merge", actor=actor, plan=plan, reason=reason, targets=[memory.id for memory in found], caller=scopes,
            shown=shown, scopes=[found[0].scope], related=about,
        )  # fmt: skip
        return execute_change(self.store, self.clock, change)

    def _require_mergeable(self, refs: Sequence[str], scopes: Scopes) -> list[Memory]:
        """The memories named; raises `InvalidInput` unless there are at least two, in one scope."""
        named = (find_memory(self.store, ref, scopes, to_change=True) for ref in refs)
        found = {memory.id: _require_editable(memory) for memory in named}
        owners = sorted({memory.scope for memory in found.values()})
        if len(found) < 2:
            raise InvalidInput("merge takes the ids of at least two memories")
        if len(owners) > 1:
            raise InvalidInput(f"these are in {' and '.join(owners)}: only memories of one scope can be merged")
        return list(found.values())


def _require_editable(memory: Memory) -> Memory:
    """The memory; raises `Refused` for one that was decided about."""
    if memory.status not in EDITABLE_STATUSES:
        raise Refused(f"{memory.id} is {memory.status}: only what waits or is current can be edited or merged")
    return memory


def _refuse_merge(
    actor: str, survivor: Memory, others: Sequence[Memory], statement: str, settings: GateSettings
) -> None:
    """Raise `Refused` where the actor would make active what only a person may."""
    if survivor.status in CURRENT_STATUSES:
        for other in others:
            refuse_approval(actor, other.replace(statement=statement), settings)
    refuse_unapproved(actor, survivor, survivor.replace(statement=statement))


def _same(before: Memory, after: Memory) -> bool:
    return all(getattr(before, name) == getattr(after, name) for name in EDITABLE_FIELDS)
