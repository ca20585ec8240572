"""Promotes candidates, by a person or by rule (DESIGN §12), and gathers a reviewer's evidence: origin, duplicates and conflicts."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Final, Literal

from engram.decisions.approval import approve, refuse_settled, reject
from engram.decisions.execution import Change, LockedMemories, Operation, execute_change
from engram.decisions.versions import replaced_memories
from engram.gates.comparison import relation
from engram.gates.instructions import injection_problem
from engram.gates.neighbourhood import Neighbourhood
from engram.gates.pipeline import GATES, mention
from engram.gates.proposal import GateSettings
from engram.gates.trust import kind_of, tier_of, trust
from engram.model.errors import InvalidInput, NotFound, Refused
from engram.model.lazy import dataclass, field, replace
from engram.model.memory import LIVE_STATUSES, MAY_REPEAT, Memory
from engram.review.amendment import NumberedRetelling, retellings_of
from engram.review.bulk import BulkDecision, new_bulk, split_ids
from engram.review.lineage import refuse_foreign_versions
from engram.review.queue import APPROVE, REJECT, QueueFilters, QueueReader, ReviewItem, filter_items
from engram.rules.lifecycle import reinforce_memory
from engram.rules.scopes import GLOBAL, is_scope_visible
from engram.rules.sources import Rank, rank_of
from engram.store.documents import meaning_of
from engram.store.protocol import Store
from engram.store.references import Scopes, find_memory
from engram.text.display import cut

if TYPE_CHECKING:
    from engram.embedding.vectors import Vectors

AUTOPROMOTE: Final = "autopromote"
WAITS_SUFFIX = "; it waits for review"
"""The end of a trust gate's reason, which is redundant in a list of waiting memories."""


@dataclass(frozen=True, slots=True)
class PromotionPlan:
    """The candidates that may become active without a person, and why each of the others still waits."""

    promoted: tuple[Memory, ...] = ()
    waiting: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Promotion:
    """Promotes by rule the candidates that do not need a person.

    Tier 1 is promoted if the autopromotion settings allow it. So is tier 2, after a check against everything stored.
    Tier 3, text that reads like an instruction, and candidates that contradict or repeat another memory wait for a
    person.
    """

    store: Store
    clock: Callable[[], datetime]
    settings: GateSettings

    def plan(
        self,
        filters: QueueFilters,
        scopes: Collection[str] | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> PromotionPlan:
        """The candidates that may be promoted, best first; writes nothing."""
        items = filter_items(QueueReader(self.store, self.clock(), scopes).candidates(), filters)
        waiting = {item.memory.id: why for item in items if (why := self._waiting_reason(item))}
        open_ones = [item.memory for item in items if item.memory.id not in waiting]
        promoted: dict[str, Memory] = {}
        for number, (memory, vector) in enumerate(self._embed_memories(open_ones), 1):
            if why := self._blocking_reason(memory, vector, promoted):
                waiting[memory.id] = why
            else:
                promoted[memory.id] = memory
            if progress is not None:
                progress(number, len(open_ones))
        return PromotionPlan(tuple(promoted.values()), waiting)

    def apply(self, plan: PromotionPlan, actor: str) -> BulkDecision:
        """Promote the candidates of a plan, unless something has changed since; their verification stays the same."""
        left = dict(plan.waiting)

        def promote(memories: LockedMemories, memory: Memory) -> Memory:
            refuse_settled(memories, memory)
            active = reinforce_memory(memory, memories.now).replace(status="active", updated=memories.now)
            memories.check(active)
            if heads := replaced_memories(memories, active):
                raise InvalidInput(f"would replace {mention(heads[0])}; a person decides")
            memories.put(active)
            return active

        bulk = _BulkChange(op=AUTOPROMOTE, actor=actor, decide=promote, shown=plan.promoted)
        return bulk.execute(self.store, self.clock, plan.promoted, left)

    def _waiting_reason(self, item: ReviewItem) -> str:
        """Why a candidate must wait, judged by itself; "" if the settings let it be promoted."""
        memory = item.memory
        if item.waits_as == "contradiction" and item.other is not None:
            return f"contradicts {mention(item.other)}"
        if item.other is not None:
            return f"would supersede {mention(item.other)}"
        if command := injection_problem(memory):
            return f"{command}; only a person can approve it"
        # Only `remember` is certainly explicit: autonomous capture also uses `learn`.
        autonomous = memory.learned_by != "remember" and rank_of(memory.source) < Rank.PROGRAM
        found = trust(memory, autonomous, self.settings)
        if found.status == "active":
            return ""
        setting = self._find_setting(memory, autonomous)
        allowed = f"; `engram config {setting}` allows this" if setting else ""
        return f"{found.reason.removesuffix(WAITS_SUFFIX)}{allowed}"

    def _find_setting(self, memory: Memory, autonomous: bool) -> str:
        """The single setting, with its value, that would let a candidate be promoted; "" if there is none."""
        kinds = sorted({*self.settings.autopromote_kinds, kind_of(memory)})
        changed = {
            "autopromote_remember true": replace(self.settings, autopromote_remember=True),
            "autopromote_harvest true": replace(self.settings, autopromote_harvest=True),
            f"autopromote_kinds {','.join(kinds)}": replace(self.settings, autopromote_kinds=frozenset(kinds)),
        }
        found = (name for name, one in changed.items() if trust(memory, autonomous, one).status == "active")
        return next(found, "")

    def _embed_memories(self, memories: Sequence[Memory]) -> "Iterator[tuple[Memory, Vectors | None]]":
        by_id = {memory.id: memory for memory in memories}
        for ids in split_ids(list(by_id)):
            vectors = self.store.embed([meaning_of(by_id[i]) for i in ids])
            for number, i in enumerate(ids):
                yield by_id[i], vectors[number] if vectors is not None else None

    def _blocking_reason(self, memory: Memory, vector: "Vectors | None", promoted: Mapping[str, Memory]) -> str:
        """Why stored memories keep a candidate from being promoted: a duplicate or a conflict; "" if none does."""

        found = neighbours_of(self.store, memory, vector)
        tier = f"tier {tier_of(memory)}: " if tier_of(memory) > 1 else ""
        for told, others in (("says the same as", found.same), ("may repeat", found.similar)):
            twin = next((one for one in others if one.status != "candidate" or one.id in promoted), None)
            if twin is not None:
                return f"{tier}{told} {mention(twin)}; merge or reject it"
        if found.conflicts:
            return f"{tier}conflicts with {mention(found.conflicts[0])}"
        return f"{tier}would replace {mention(found.heads[0])}" if found.heads else ""


def decide_all(
    store: Store,
    clock: Callable[[], datetime],
    op: Literal["approve", "reject"],
    refs: Sequence[str],
    actor: str,
    reason: str,
    shown: Sequence[Memory],
    settings: GateSettings,
    scopes: Scopes = None,
) -> BulkDecision:
    """Approve or reject candidates as one bulk decision; those that cannot be decided this way are left, with the reason."""
    found, left = dict[str, Memory](), dict[str, str]()
    for ref in refs:
        try:
            memory = find_memory(store, ref, scopes, to_change=True)
            if op == APPROVE:
                refuse_foreign_versions(store, memory.id, memory.supersedes, scopes)
            found[memory.id] = memory
        except (NotFound, Refused) as error:
            left[ref] = str(error)

    def decide(memories: LockedMemories, memory: Memory) -> Memory:
        return approve(memories, memory, actor, settings) if op == APPROVE else reject(memories, memory, actor)

    bulk = _BulkChange(op=op, actor=actor, decide=decide, reason=reason, shown=shown, caller=scopes)
    return bulk.execute(store, clock, list(found.values()), left)


@dataclass(frozen=True, slots=True, kw_only=True)
class _BulkChange:
    """One decision about many memories, in slices; each slice is a journal entry marked with the decision."""

    op: Operation
    actor: str
    decide: Callable[[LockedMemories, Memory], Memory]
    reason: str = ""
    shown: Sequence[Memory] = ()
    caller: Scopes = None

    def execute(
        self, store: Store, clock: Callable[[], datetime], memories: Sequence[Memory], left: dict[str, str]
    ) -> BulkDecision:
        """Decide about each memory; those that cannot be decided are added to `left`, with the reason."""
        mark, done, by_id = new_bulk(store), list[Memory](), {memory.id: memory for memory in memories}
        for ids in split_ids(list(by_id)):
            part = [by_id[i] for i in ids]
            change = Change(
                op=self.op, actor=self.actor, plan=partial(self._decide_slice, ids, left), reason=self.reason, session=mark,
                caller=self.caller, shown=self.shown,
                scopes={memory.scope for memory in part} if self.op != REJECT else (),
                related=[*ids, *(older for memory in part for older in memory.supersedes)],
            )  # fmt: skip
            done += execute_change(store, clock, change)
        return BulkDecision(mark, self.op, tuple(done), left)

    def _decide_slice(self, ids: Sequence[str], left: dict[str, str], memories: LockedMemories) -> list[Memory]:
        done = []
        for memory_id in ids:
            try:
                done.append(self.decide(memories, memories.take(memory_id)))
            except (InvalidInput, NotFound, Refused) as error:
                left[memory_id] = str(error)
        return done


MAX_QUOTE_CHARS = 600
EXPLICIT_WAYS = ("remember", "learn", "add", "manual")
"""`learned_by` of memories that somebody asked to store."""


@dataclass(frozen=True, slots=True)
class Quote:
    """The part of a ledger event that a memory was derived from."""

    event: str
    session: str
    role: str
    at: datetime
    text: str


@dataclass(frozen=True, slots=True)
class RelatedMemories:
    """The stored memories related to another: duplicates, likely duplicates, those it contradicts or outdates, those with its conflict key."""

    same: tuple[Memory, ...] = ()
    similar: tuple[Memory, ...] = ()
    conflicts: tuple[Memory, ...] = ()
    heads: tuple[Memory, ...] = ()


@dataclass(frozen=True, slots=True)
class Provenance:
    """Everything a reviewer needs besides the statement to decide about a memory."""

    memory: Memory
    kind: str
    tier: int
    quotes: tuple[Quote, ...]
    neighbours: RelatedMemories
    gates: str
    """The gate that decided, and why; the gates before it passed the memory."""
    retellings: tuple[NumberedRetelling, ...] = ()
    """Later statements that were taken for the same memory, in their own words."""


def provenance_of(
    store: Store, memory: Memory, settings: GateSettings, scopes: Collection[str] | None = None
) -> Provenance:
    """The provenance of a memory, for a caller who sees these scopes, without purged or pruned parts."""
    vectors = store.embed([meaning_of(memory)])
    near = neighbours_of(store, memory, vectors[0] if vectors is not None else None, scopes)
    return Provenance(
        memory,
        kind_of(memory),
        tier_of(memory),
        tuple(_quotes(store, memory, scopes)),
        near,
        _storing_reason(store, memory, settings),
        tuple(retellings_of(store, memory, scopes)),
    )


def neighbours_of(
    store: Store, memory: Memory, vector: "Vectors | None", scopes: Collection[str] | None = ()
) -> RelatedMemories:
    """How a stored memory relates to others in its scope, and to linked ones in the scopes the caller sees."""
    from engram.decisions.admission import ExcludingLookup, propose

    known = ExcludingLookup(store, vector, own=memory.id)
    proposal = propose(memory)
    near = Neighbourhood(proposal, known.near(proposal))
    twin, retold = near.duplicate(), near.paraphrase()
    if twin is None and retold is not None and relation(memory.statement, retold.statement).relation == "same":
        twin = retold
    same = {twin.id: twin} if twin is not None else {}
    alike = (retold, *_linked_repeats(store, memory, scopes))
    similar = {one.id: one for one in alike if one is not None and one.id not in same}
    told = same.keys() | similar.keys()
    likely = [conflict.other for conflict in near.conflicts() if conflict.is_likely and conflict.other.id not in told]
    heads = known.heads(memory.conflict_key, memory.scope) if memory.conflict_key else ()
    # Current memories come before waiting ones.
    order = sorted(likely, key=lambda other: other.status not in LIVE_STATUSES)
    replaced = tuple(head for head in heads if head.id != memory.id)
    return RelatedMemories(tuple(same.values()), tuple(similar.values()), tuple(order), replaced)


def _linked_repeats(store: Store, memory: Memory, scopes: Collection[str] | None) -> Iterator[Memory]:
    """The live memories that this one probably repeats, or that probably repeat this one."""
    from engram.store.protocol import COMPARED_STATUSES

    ids = [link.target for link in memory.associations if link.type == MAY_REPEAT]
    if memory.id:
        ids += (source for source, _, kind, _ in store.links_to([memory.id]) if kind == MAY_REPEAT)
    for other in map(store.get, dict.fromkeys(ids)):
        if other is None or other.status not in COMPARED_STATUSES:
            continue
        if other.scope in (memory.scope, GLOBAL) or is_scope_visible(scopes, other.scope):
            yield other


def _quotes(store: Store, memory: Memory, scopes: Collection[str] | None) -> Iterator[Quote]:
    for evidence in memory.evidence:
        if evidence.retelling is not None:
            continue
        event = store.event(evidence.event)
        if event is not None and (scopes is None or store.owner_of(event.id) in scopes):
            text = event.content[slice(*evidence.span)] if evidence.span is not None else event.content
            yield Quote(event.id, event.session, event.role, event.at, cut(text, MAX_QUOTE_CHARS))


def _storing_reason(store: Store, memory: Memory, settings: GateSettings) -> str:
    """The journal's reason for storing a memory, as text."""
    history = store.history(memory.id)
    if not history:
        return ""
    first = history[0]
    gate, _, other = first.reason.partition(": ")
    if gate not in GATES:
        return f"{first.op} by {first.actor or 'unknown'}{f': {first.reason}' if first.reason else ''}"
    why = trust(memory, memory.learned_by not in EXPLICIT_WAYS, settings).reason if gate == "trust" else other
    return f"every gate before “{gate}” let it pass; {gate}{f': {why}' if why else ''}"
