"""`mem.review`: the review queue, and the decisions about its items (spec 1 "Reconsolidation", spec 4 "Review")."""

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Unpack

from engram.decisions.approval import (
    approve,
    keep_both,
    keep_old,
    keep_one,
    mark_confirmed,
    merge_into,
    refuse_approval,
    refuse_contradiction,
    refuse_settled,
    reject,
)
from engram.decisions.authority import refuse_outranked, refuse_rejection
from engram.decisions.execution import Change, LockedMemories, execute_change
from engram.decisions.versions import contradiction_target, update_target
from engram.gates.proposal import GateSettings
from engram.model.arguments import FORGET_REQUESTED, checked_fraction, checked_length
from engram.model.errors import InvalidInput
from engram.model.lazy import dataclass
from engram.model.memory import LIVE_STATUSES, Memory
from engram.review.lineage import Lineages, refuse_foreign_versions
from engram.review.queue import (
    APPROVE,
    CHOICES,
    REJECT,
    QueueFilters,
    QueuePage,
    QueueReader,
    ReviewItem,
    build_page,
    filter_items,
    is_to_be_forgotten,
    topics,
)
from engram.rules.lifecycle import reinforce_memory
from engram.rules.limits import limit_arguments
from engram.rules.numbers import REINFORCE_RETRIEVAL
from engram.store.protocol import Store
from engram.store.references import Scopes, find_memory

if TYPE_CHECKING:
    from engram.model.memory import ChangedFields
    from engram.review.bulk import BulkDecision
    from engram.review.promotion import Promotion, PromotionPlan, Provenance

MAX_ITEMS_PER_SOURCE = 20
"""Memories of one source listed on a page of the queue."""
Redescribe = Callable[[Memory, Memory, "ChangedFields"], Memory]
"""Applies the policy to a changed memory, given the previous one and the changed fields."""


@limit_arguments
@dataclass(slots=True)
class Review:
    """`mem.review`: list the memories that wait for review, and decide."""

    store: Store
    clock: Callable[[], datetime]
    settings: GateSettings = GateSettings()
    described: Redescribe = lambda before, after, changes: after

    # -- the queue

    def queue(self, limit: int | None = 50, *, about: str = "", scopes: Scopes = None) -> list[ReviewItem]:
        """The queue: contradictions, possible updates, forget requests, other candidates, then faded memories.

        `about` keeps only the items about one memory, before `limit` cuts. `scopes` limits it to those a caller sees.
        """
        checked_length(limit)
        reader = QueueReader(self.store, self.clock(), scopes)
        kept = [item for item in reader.waiting_items() if not about or item.concerns(about)][:limit]
        return [reader.with_reason(item) for item in kept]

    def candidates(
        self, limit: int | None = None, *, scopes: Scopes = None, **filters: Unpack[QueueFilters]
    ) -> list[ReviewItem]:
        """The candidates that pass the filters, best first.

        `source` matches a source or any below it, separated by `:` or `/`; `kind` is one of spec 4's; `tier` is 1 to 3;
        `group` is a topic as `page` names it.
        """
        checked_length(limit)
        reader = QueueReader(self.store, self.clock(), scopes)
        return [reader.with_reason(item) for item in filter_items(reader.candidates(), filters)[:limit]]

    def page(
        self,
        per_source: int = MAX_ITEMS_PER_SOURCE,
        *,
        scopes: Scopes = None,
        **filters: Unpack[QueueFilters],
    ) -> QueuePage:
        """The candidates grouped by source and topic, best first, with at most `per_source` of each source (0: all)."""
        reader = QueueReader(self.store, self.clock(), scopes)
        items = reader.candidates()
        return build_page(
            filter_items(items, filters), topics(items), per_source, partial(reader.with_reason, sourced=False)
        )

    def provenance(self, ref: str, *, scopes: Scopes = None) -> "Provenance":
        """Where a memory comes from: the quote, its duplicates, the memories it contradicts, and why the gates let it through."""
        from engram.review.promotion import provenance_of

        return provenance_of(self.store, find_memory(self.store, ref, scopes), self.settings, scopes)

    # -- decisions about contradictions

    def resolve(
        self,
        ref: str,
        keep: str,
        *,
        statement: str = "",
        situations: tuple[str, str] = ("", ""),
        actor: str = "manual",
        shown: Sequence[Memory] = (),
        scopes: Scopes = None,
    ) -> Memory:
        """Settle a contradiction or a probable update: keep `new` or `old`, `merge` both into `statement`, or keep `both`.

        `shown` and `scopes` are as for `approve`.
        """
        if keep not in CHOICES:
            raise InvalidInput(f"Unknown choice {keep!r}; choose {', '.join(CHOICES)}")
        new, old = self._pair(ref, scopes)
        lineages = Lineages(self.store, self.clock)
        versions = [version.id for each in (new, old) for version in lineages.versions(each.id)]
        refuse_foreign_versions(self.store, new.id, versions, scopes)

        def plan(memories: LockedMemories) -> Memory:
            new, old = memories.targets
            if new.status not in LIVE_STATUSES:
                refuse_settled(memories, new)
            for changed in {"old": [new], "merge": [new, old]}.get(keep, [old]):
                refuse_outranked(actor, changed, "settle a contradiction against")
            if keep == "old":
                if new.status == "candidate":
                    refuse_rejection(actor, new)
                return keep_old(memories, new, old, memories.now)
            if new.status == "candidate":
                refuse_approval(actor, new, self.settings)
            new = mark_confirmed(new, actor)
            if keep == "both":
                return keep_both(memories, new, old, situations, memories.now)
            if keep == "merge":
                return merge_into(memories, mark_confirmed(old, actor), [new], statement, memories.now)
            return keep_one(memories, new, old, memories.now)

        change = Change(
            op="resolve", actor=actor, plan=plan, note=f"keep {keep}", targets=[new.id, old.id], caller=scopes, shown=shown,
            scopes={new.scope, old.scope}, related=versions,
        )  # fmt: skip
        return execute_change(self.store, self.clock, change)

    def _pair(self, ref: str, scopes: Scopes) -> tuple[Memory, Memory]:
        new = find_memory(self.store, ref, scopes, to_change=True)
        seen = partial(self.store.get, scopes=scopes)
        old = contradiction_target(seen, new) or update_target(seen, new)
        if old is None:
            raise InvalidInput(f"{new.id} contradicts no current memory; `engram review` lists what waits")
        return new, old

    # -- decisions about single memories

    def approve(
        self,
        ref: str,
        *,
        waits_as: str = "",
        actor: str = "manual",
        reason: str = "",
        shown: Sequence[Memory] = (),
        scopes: Scopes = None,
    ) -> Memory:
        """Make a candidate active, let a memory supersede the older one it may replace, or forget one as requested.

        A candidate that contradicts a current memory must be resolved instead. If a memory both may replace another and
        has a forget request, `waits_as`, as in `queue`, selects one. Raises `Refused` if an agent approves tier 3 or a
        memory from an untrusted source. `shown` are the memories as the caller read them: raises `ChangedMeanwhile` if
        one has changed since. `scopes`, from `mem.scopes_for`, are those of a named owner.
        """
        waiting = find_memory(self.store, ref, scopes, to_change=True)
        meant = self._choose_waits_as(waiting, waits_as, scopes)
        if meant == "update":
            return self.resolve(waiting.id, "new", actor=actor, shown=shown, scopes=scopes)
        if meant == "forget":
            asked = waiting.metadata[FORGET_REQUESTED]
            why = f"asked for by {asked}"
            return Lineages(self.store, self.clock).forget(
                waiting.id, actor=actor, reason=why, shown=shown, scopes=scopes
            )
        if meant == "contradiction":
            refuse_contradiction(waiting, contradiction_target(partial(self.store.get, scopes=scopes), waiting))
        refuse_foreign_versions(self.store, waiting.id, waiting.supersedes, scopes)

        def plan(memories: LockedMemories) -> Memory:
            return approve(memories, memories.targets[0], actor, self.settings)

        change = Change(
            op=APPROVE, actor=actor, plan=plan, reason=reason, targets=[waiting.id], caller=scopes, shown=shown,
            scopes=[waiting.scope], related=waiting.supersedes,
        )  # fmt: skip
        return execute_change(self.store, self.clock, change)

    def reject(
        self,
        ref: str,
        *,
        waits_as: str = "",
        actor: str = "manual",
        reason: str = "",
        shown: Sequence[Memory] = (),
        scopes: Scopes = None,
    ) -> Memory:
        """Reject a candidate, which stays readable, or a proposed update or forget request, which leaves the memory current.

        `waits_as`, `shown` and `scopes` are as for `approve`.
        """
        found = find_memory(self.store, ref, scopes, to_change=True)
        meant = self._choose_waits_as(found, waits_as, scopes)
        if meant == "update":
            return self.resolve(found.id, "both", actor=actor, shown=shown, scopes=scopes)
        if meant == "forget":
            return self._keep_requested(found, actor, reason, shown, scopes)

        def plan(memories: LockedMemories) -> Memory:
            return reject(memories, memories.targets[0], actor)

        change = Change(
            op=REJECT, actor=actor, plan=plan, reason=reason, targets=[found.id], caller=scopes, shown=shown
        )
        return execute_change(self.store, self.clock, change)

    def _keep_requested(
        self, found: Memory, actor: str, reason: str, shown: Sequence[Memory], scopes: Scopes
    ) -> Memory:
        """The memory without its forget request."""

        def plan(memories: LockedMemories) -> Memory:
            (memory,) = memories.targets
            refuse_outranked(actor, memory, REJECT)
            metadata = {key: value for key, value in memory.metadata.items() if key != FORGET_REQUESTED}
            memories.put(kept := memory.replace(metadata=metadata))
            return kept

        change = Change(
            op=REJECT, actor=actor, plan=plan, reason=reason, targets=[found.id], caller=scopes, shown=shown
        )
        return execute_change(self.store, self.clock, change)

    def _choose_waits_as(self, memory: Memory, waits_as: str, scopes: Scopes) -> str:
        """The kind of item to decide about; raises `InvalidInput` if it is ambiguous, or if the memory does not wait as that kind."""
        found = self._waits_as(memory, scopes)
        if waits_as and waits_as not in found:
            if not found:
                refuse_settled(self.store, memory)
            waits = f"it waits as {' and '.join(found)}" if found else f"it is {memory.status}"
            raise InvalidInput(f"{memory.id} does not wait as {waits_as!r}; {waits}")
        if len(found) > 1 and not waits_as:
            raise InvalidInput(
                f"{memory.id} waits as {' and as '.join(found)}: say which is meant (waits_as={found[0]!r} or {found[1]!r}; "
                f"at the command line `--as {found[0]}|{found[1]}`)"
            )
        return waits_as or (found[0] if found else "")

    def _waits_as(self, memory: Memory, scopes: Scopes) -> list[str]:
        """The kinds of items for this memory that can be approved or rejected."""
        seen = partial(self.store.get, scopes=scopes)
        if memory.status == "candidate":
            return ["contradiction" if contradiction_target(seen, memory) else "candidate"]
        is_update = memory.status in LIVE_STATUSES and update_target(seen, memory) is not None
        found = {"update": is_update, "forget": is_to_be_forgotten(memory)}
        return [name for name, waits in found.items() if waits]

    def retire(self, ref: str, *, actor: str = "manual", shown: Sequence[Memory] = (), scopes: Scopes = None) -> Memory:
        """Retire a memory; it stays readable."""
        return Lineages(self.store, self.clock).forget(ref, actor=actor, shown=shown, scopes=scopes)

    def reinforce(
        self,
        ref: str,
        *,
        boost: float = REINFORCE_RETRIEVAL,
        actor: str = "manual",
        shown: Sequence[Memory] = (),
        scopes: Scopes = None,
    ) -> Memory:
        """Confirm that a memory is still useful: `boost`, above 0 and up to 1, is added to its strength."""
        if not checked_fraction(boost, "boost"):
            raise InvalidInput("boost must be above 0, and at most 1")
        found = find_memory(self.store, ref, scopes, to_change=True)

        def plan(memories: LockedMemories) -> Memory:
            (memory,) = memories.targets
            after = reinforce_memory(memory, memories.now, boost=boost).replace(last_verified=memories.now)
            memories.put(after)
            return after

        change = Change(op="reinforce", actor=actor, plan=plan, targets=[found.id], caller=scopes, shown=shown)
        return execute_change(self.store, self.clock, change)

    def edit(
        self,
        ref: str,
        *,
        actor: str = "manual",
        reason: str = "",
        scopes: Scopes = None,
        **fields: Unpack["ChangedFields"],
    ) -> Memory:
        """Change a memory's content before or after approval. It passes the gates again and keeps its origin.

        `scopes` are as for `approve`; a `scope` among the fields moves the memory there.
        """
        from engram.review.amendment import Amender

        return Amender(self.store, self.clock, self.settings, self.described).edit(ref, fields, actor, reason, scopes)

    def merge(
        self,
        refs: Sequence[str],
        statement: str,
        *,
        actor: str = "manual",
        reason: str = "",
        shown: Sequence[Memory] = (),
        scopes: Scopes = None,
    ) -> Memory:
        """Merge memories into one statement: the most trusted current one survives, the others are superseded by it."""
        from engram.review.amendment import Amender

        return Amender(self.store, self.clock, self.settings, self.described).merge(
            refs, statement, actor, reason, shown, scopes
        )

    def separate(
        self,
        ref: str,
        number: int = 1,
        *,
        actor: str = "manual",
        reason: str = "",
        shown: Sequence[Memory] = (),
        scopes: Scopes = None,
    ) -> Memory:
        """Separate a retelling, numbered as in `provenance`, from a memory, and return the candidate it becomes.

        Raises `Refused` if the same words are already stored. `shown` and `scopes` are as for `approve`.
        """
        from engram.review.amendment import Separation

        return Separation(self.store, self.clock, self.settings, self.described).separate(
            ref, number, actor, reason, shown, scopes
        )

    # -- decisions about many

    def promote_all(
        self,
        refs: Sequence[str],
        *,
        actor: str = "manual",
        reason: str = "",
        shown: Sequence[Memory] = (),
        scopes: Scopes = None,
    ) -> "BulkDecision":
        """Approve many candidates as one decision, which `undo_bulk` undoes as a whole.

        Those that cannot be approved are reported.
        """
        from engram.review.promotion import decide_all

        return decide_all(self.store, self.clock, APPROVE, refs, actor, reason, shown, self.settings, scopes)

    def reject_all(
        self,
        refs: Sequence[str],
        *,
        actor: str = "manual",
        reason: str = "",
        shown: Sequence[Memory] = (),
        scopes: Scopes = None,
    ) -> "BulkDecision":
        """Reject many candidates as one decision, which `undo_bulk` undoes as a whole."""
        from engram.review.promotion import decide_all

        return decide_all(self.store, self.clock, REJECT, refs, actor, reason, shown, self.settings, scopes)

    def plan_promotion(
        self,
        *,
        scopes: Scopes = None,
        progress: Callable[[int, int], None] | None = None,
        **filters: Unpack[QueueFilters],
    ) -> "PromotionPlan":
        """The candidates that `promote_eligible` would promote, and why the others still wait."""
        return self._promotion.plan(filters, scopes, progress)

    def promote_eligible(
        self, *, actor: str = "manual", scopes: Scopes = None, plan: "PromotionPlan | None" = None
    ) -> "BulkDecision":
        """Promote the candidates that the settings allow without a person: see `engram promote --eligible`."""
        return self._promotion.apply(plan or self.plan_promotion(scopes=scopes), actor)

    @property
    def _promotion(self) -> "Promotion":
        from engram.review.promotion import Promotion

        return Promotion(self.store, self.clock, self.settings)

    def undo_bulk(self, decision: str, *, actor: str = "manual", scopes: Scopes = None) -> "BulkDecision":
        """Undo a bulk decision (`DEC-…`) as a whole; memories decided about since stay as they are, and are reported.

        With `scopes`, a decision that changed memories their owner may not change raises `NotFound`.
        """
        from engram.review.undo import undo_bulk

        return undo_bulk(self.store, decision, self.clock(), actor=actor, scopes=scopes)

    def undo_last(self, *, actor: str = "manual") -> "BulkDecision":
        """Undo the store's last decision, whole if it was a bulk one."""
        from engram.review.undo import undo_last

        return undo_last(self.store, self.clock(), actor=actor)

    def distrust(
        self,
        source: str,
        *,
        since: datetime | None = None,
        include_confirmed: bool = False,
        dry_run: bool = False,
        actor: str = "manual",
    ) -> "BulkDecision":
        """Remove everything a source contributed, except what a person confirmed or wrote, and refuse its future proposals.

        `include_confirmed` also removes memories that a person only promoted or verified.
        """
        from engram.review.distrust import Distrust

        return Distrust(self.store, self.clock).take_out(
            source, since, actor, include_confirmed=include_confirmed, dry_run=dry_run
        )

    def restore_trust(self, source: str, *, actor: str = "manual") -> "BulkDecision":
        """Undo `distrust`: restore the removed memories, and let the source propose again."""
        from engram.review.distrust import Distrust

        return Distrust(self.store, self.clock).undo(source, actor)
