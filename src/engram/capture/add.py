"""`add`: stores what a program states, checked only for shape and secrets unless a less trusted source states it.

draft → policy → shape and secrets → neighbours (in a job after a large batch) → lock → exact duplicate → store, in slices.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar, get_args

from engram.capture.additions import CueAdder
from engram.capture.memory_writer import (
    MemoryWriter,
    add_conflict_link,
    assign_identity,
    name_superseded,
    superseded_versions,
    without_claims,
)
from engram.capture.withdrawal import Withdrawals
from engram.decisions.admission import ChangesLookup, StoreLookup, propose
from engram.decisions.approval import reject_replaced
from engram.decisions.execution import Change, LockedMemories, execute_change
from engram.decisions.versions import change_link, outranking_head, replaced_memories, update_target
from engram.gates.instructions import injection_problem
from engram.gates.neighbourhood import Neighbourhood
from engram.gates.pipeline import admit_all, judge
from engram.gates.proposal import Conflict, Lookup
from engram.model.decision import AddedMemories, Outcome, SkippedItem
from engram.model.errors import EngramError, InvalidInput, NotFound, Refused, SecretRefused
from engram.model.lazy import dataclass, replace
from engram.model.memory import LIVE_STATUSES, Memory
from engram.model.records import Job
from engram.review.lineage import Lineages
from engram.rules.labels import name_for
from engram.rules.lifecycle import is_over
from engram.rules.sources import Rank, may_replace, rank_of
from engram.store.documents import meaning_of
from engram.store.protocol import COMPARED_STATUSES, Image, ProposalKeys, Store
from engram.store.purge import DOCUMENT_PREFIX
from engram.store.records import ANSWERING_STATUSES, CREATING_OPS, refuse_foreign_ids
from engram.text.content_hash import content_hash, same_text
from engram.text.display import cut, quote_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from engram.embedding.vectors import Vectors

OnError = Literal["raise", "skip"]
REFUSALS = (InvalidInput, NotFound, Refused)
"""Errors about a single item; any other error concerns the store and ends the batch."""
_MAX_EXCERPT_CHARS = 60
_MAX_SEARCHED_CHARS = 2_000
"""How much of a statement is searched for secrets before its beginning is shown."""
_STATEMENT_FIELDS = ("statement", "content", "fact")
A = TypeVar("A")
B = TypeVar("B")


class BatchRefusals:
    """The refused items of one batch."""

    def __init__(self, items: Sequence[Any], on_error: str) -> None:
        if on_error not in get_args(OnError):
            raise InvalidInput(f"unknown on_error {on_error!r:.40}; choose {' or '.join(get_args(OnError))}")
        self._items = items
        self.skips = on_error == "skip"
        self.skipped: list[SkippedItem] = []

    def map(self, change: Callable[[A], B], values: Mapping[int, A]) -> dict[int, B]:
        """The changed values by item, without the refused ones."""
        changed: dict[int, B] = {}
        for index, value in values.items():
            try:
                changed[index] = change(value)
            except REFUSALS as error:
                self.refuse(index, error)
        return changed

    def check(self, check: Callable[[Sequence[A]], Sequence[A]], values: Mapping[int, A]) -> dict[int, A]:
        """The checked values by item, without the refused ones; each is checked alone only if the check of all of them fails."""
        try:
            return dict(zip(values, check(list(values.values())), strict=True))
        except REFUSALS:
            kept = self.map(lambda value: check([value])[0], values)
            if len(kept) == len(values):
                raise  # the error concerns several items together
            return kept

    def refuse(self, index: int, error: EngramError, stored: int = 0) -> None:
        """Record that an item was refused, or raise the error with the item's position.

        `stored` memories were written before it.
        """
        if self.skips:
            self.skipped.append(SkippedItem(index, self._excerpt(index, error), error))
            return
        excerpt = self._excerpt(index, error)
        place = f"items[{index}] ({quote_text(excerpt)})" if excerpt else f"items[{index}]"
        written = f"; {stored} memories before it were stored" if stored else ""
        raise type(error)(f"{place}: {error}{written}") from error

    def _excerpt(self, index: int, error: EngramError) -> str:
        from engram.gates.secrets.scan import redact, secrets_problem

        item = self._items[index]
        if not isinstance(item, Mapping):
            return ""
        text = next((item[name] for name in _STATEMENT_FIELDS if isinstance(item.get(name), str)), "")[
            :_MAX_SEARCHED_CHARS
        ]
        if isinstance(error, SecretRefused) and secrets_problem(Memory("", text)):
            return ""
        return cut(" ".join(redact(text)[0].split()), _MAX_EXCERPT_CHARS)


class ItemRefused(Exception):
    """Raised if an item of a slice is refused inside its transaction, which then writes nothing."""

    def __init__(self, position: int, error: EngramError) -> None:
        super().__init__(position, error)
        self.position, self.error = position, error


class SingleItem(BatchRefusals):
    """A batch of one item, whose error needs no position."""

    def refuse(self, index: int, error: EngramError, stored: int = 0) -> None:
        """Raise the error."""
        raise error


COMPARE: Final = "compare"
"""The job kind, and the journal operation, for comparing added memories with their neighbours."""


@dataclass(frozen=True, slots=True)
class Changes:
    """Finds the memories that added ones outdate, at once or in a job."""

    store: Store
    clock: Callable[[], datetime]

    def find_conflicts(self, memories: Sequence[Memory], vectors: "Vectors | None") -> dict[int, Conflict]:
        """The current memory that each of these probably outdates or contradicts, by position."""
        found: dict[int, Conflict] = {}
        with self.store.reading():
            for i, memory in enumerate(memories):
                if memory.status in LIVE_STATUSES and not memory.supersedes:
                    change = self._find_conflict(memory, vectors[i] if vectors is not None else None)
                    found |= {i: change} if change is not None else {}
        return found

    def _find_conflict(self, memory: Memory, vector: "Vectors | None") -> Conflict | None:
        proposal = propose(memory)
        near = StoreLookup(self.store, vector).near(proposal)
        # A memory that was just added is compared with the earlier ones.
        current = [one for one in near if one.memory.status in LIVE_STATUSES and one.memory.id != memory.id]
        earlier = self._older_ids(memory.id, [one.memory.id for one in current])
        older = [one for one in current if one.memory.id in earlier]
        found = Neighbourhood(proposal, older).conflicts()
        return found[0] if found and found[0].is_likely else None

    def _older_ids(self, memory_id: str, others: Sequence[str]) -> set[str]:
        """The ids among `others` that were stored before a memory, by journal order; all of them if it has no id."""
        if not memory_id or not others:
            return set(others)
        first = {i: _journal_place(i, found) for i, found in self.store.histories([memory_id, *others]).items()}
        return {other for other in others if first[other] < first[memory_id]}

    def apply_conflict(self, memories: LockedMemories, new: Memory, change: Conflict) -> Memory:
        """The added memory: it supersedes the older one if that is certain; else it is linked to it until somebody decides."""
        older = memories.get(change.other.id)
        if older is None or older.status not in LIVE_STATUSES or older.statement != change.other.statement:
            return new
        if change.is_sure and may_replace(new.source, older):
            return memories.supersede(new, [older], by=new.source)
        return new.replace(associations=(*new.associations, change_link(older, change.probability, memories.now)))

    def enqueue_comparison(self, ids: Sequence[str]) -> None:
        """Queue a job that compares stored memories."""
        now = self.clock()
        if ids:
            self.store.enqueue([Job(f"{COMPARE}:{ids[0]}:{len(ids)}", COMPARE, now, now, {"ids": list(ids)})])

    def compare_stored(self, ids: Sequence[str]) -> None:
        """Compare stored memories with those that were stored before them."""
        for memory in filter(None, map(self.store.get, ids)):
            if memory.status not in LIVE_STATUSES or memory.supersedes or update_target(self.store.get, memory):
                continue
            vectors = self.store.embed([meaning_of(memory)])
            with self.store.reading():
                change = self._find_conflict(memory, vectors[0] if vectors is not None else None)
            if change is not None:
                self._decide(memory, change)

    def _decide(self, memory: Memory, change: Conflict) -> None:
        lineages = Lineages(self.store, self.clock)
        about = [memory.id, *(version.id for version in lineages.versions(change.other.id))]

        def plan(memories: LockedMemories) -> None:
            found = memories.get(memory.id)
            if found is None or found.status not in LIVE_STATUSES:
                return
            changed = self.apply_conflict(memories, found, change)
            if changed != found:
                memories.put(changed.replace(updated=memories.now))

        note = f"contradiction: {change.other.id}"
        decision = Change(op=COMPARE, actor="engram", plan=plan, note=note, scopes=[memory.scope], related=about)
        execute_change(self.store, self.clock, decision)


def _journal_place(memory_id: str, history: Sequence[Image]) -> tuple[int, int]:
    """A memory's journal entry and its position in that entry. If its first entry was pruned, the memory is old."""
    if not history or history[0].op not in CREATING_OPS:
        return 0, 0
    return history[0].seq, history[0].ids.index(memory_id)


MAX_COMPARED_AT_ONCE = 8
"""The most memories that `add_batch` compares with their neighbours at once; for a larger batch, a job compares them afterwards."""
ADD_BATCH_SIZE = 500
"""Memories per transaction of `add_batch`; bounds how long other writers wait."""


@dataclass(frozen=True, slots=True)
class _Batch:
    """Values shared by all memories of one batch."""

    source: str
    team: str
    now: datetime
    decided: int
    """The number of rejected or retired memories when these were compared with them."""

    @property
    def is_read(self) -> bool:
        """Whether a document is the source, which makes the memories evidence that the gates do not judge."""
        return self.source.startswith(DOCUMENT_PREFIX)


@dataclass(slots=True)
class Adder(MemoryWriter):
    """Adds memories in batches."""

    def add(self, given: Mapping[str, Any], *, source: str, team: str = "") -> Memory:
        """Store a memory from a trusted program; for an exact duplicate, return the existing memory."""
        return self._add_items({0: given}, SingleItem([given], "raise"), source=source, team=team)[0]

    def add_batch(
        self,
        items: Sequence[Any],
        *,
        source: str,
        progress: "Callable[[int, int], None] | None" = None,
        on_error: str = "raise",
        prepare: "Callable[[Any], Mapping[str, Any]]" = dict,
    ) -> AddedMemories:
        """Store many memories in slices, each durable by itself; `prepare` reads an item's fields.

        Every item is checked before the first is written. A refused item raises, with its position in the batch, or is
        skipped. Items from an agent, a page or a tool are judged as by `learn` and wait for review if it would make
        them wait, whatever source they name. A document's facts are evidence instead. An item that a person rejected or
        retired is `Refused`.
        """
        refusals = BatchRefusals(items, on_error)
        given = refusals.map(prepare, dict(enumerate(items)))
        return self._add_items(given, refusals, source=source, progress=progress)

    def _add_items(
        self,
        items: Mapping[int, Mapping[str, Any]],
        refusals: BatchRefusals,
        *,
        source: str,
        progress: "Callable[[int, int], None] | None" = None,
        team: str = "",
    ) -> AddedMemories:
        """Store items by their position in a batch; `team` is the folder of a team store."""
        batch = _Batch(source, team, self.clock(), self._withdrawals.count())
        drafted = refusals.map(
            lambda item: _limit_claims(self.draft_memory(item, "add", source, batch.now), source), items
        )
        drafted = refusals.check(lambda memories: self._admit_memories(memories, batch), drafted)
        stored = AddedMemories()
        places = list(drafted)
        for start in range(0, len(places), ADD_BATCH_SIZE):
            slice_ = {place: drafted[place] for place in places[start : start + ADD_BATCH_SIZE]}
            stored += self._add_refusable(slice_, batch, refusals, len(stored))
            if progress is not None:
                progress(min(start + ADD_BATCH_SIZE, len(places)), len(places))
        stored.skipped = sorted(refusals.skipped, key=lambda item: item.index)
        return stored

    def _admit_memories(self, memories: Sequence[Memory], batch: _Batch) -> Sequence[Memory]:
        """The memories, if each may be added; a document's fact that a person took out of use waits for review."""
        admit_all(memories, self.settings)
        refuse_foreign_ids(self.store, memories)
        superseded_versions(self.store, self.clock, memories)  # raises if there is none
        kept = self._withdrawals.hold_withdrawn(memories, batch.source, waits=batch.is_read)
        for said_by in {memory.source for memory in kept if rank_of(memory.source, Rank.PROGRAM) < Rank.PROGRAM}:
            if why := self.reason_to_distrust(said_by, ""):
                raise Refused(why)
        return kept

    def _add_refusable(
        self, drafted: Mapping[int, Memory], batch: _Batch, refusals: BatchRefusals, before: int
    ) -> list[Memory]:
        """Store a slice. If items are to be skipped, one refused inside the transaction is found by halving the slice."""
        try:
            return self._add_slice(list(drafted.values()), batch)
        except ItemRefused as refused:
            if not refusals.skips or len(drafted) == 1:
                refusals.refuse(list(drafted)[refused.position], refused.error, before)
                return []
        except REFUSALS as error:
            if not refusals.skips:
                raise
            if len(drafted) == 1:
                refusals.refuse(next(iter(drafted)), error, before)
                return []
        items = list(drafted.items())
        middle = len(items) // 2
        first = self._add_refusable(dict(items[:middle]), batch, refusals, before)
        return first + self._add_refusable(dict(items[middle:]), batch, refusals, before + len(first))

    def _add_slice(self, drafted: Sequence[Memory], batch: _Batch) -> list[Memory]:
        vectors = self.embed(drafted)
        marks: dict[str, int] = {}
        if not batch.is_read:
            drafted, marks = self._judge_memories(drafted, vectors, batch)
        compares = not batch.team and rank_of(batch.source, Rank.PROGRAM) >= Rank.PROGRAM
        changes = (
            self._changes.find_conflicts(drafted, vectors) if compares and len(drafted) <= MAX_COMPARED_AT_ONCE else {}
        )
        about = [
            *superseded_versions(self.store, self.clock, drafted),
            *(change.other.id for change in changes.values()),
        ]
        said = drafted

        def plan(memories: LockedMemories) -> tuple[Sequence[Memory], list[Memory], set[int]]:
            late = self._rejudge_memories(said, batch, memories, marks)
            return late, *self._put_all(memories, late, vectors, batch, changes)

        change = Change(
            op="add", actor=batch.source, plan=plan, scopes={memory.scope for memory in drafted}, related=about,
            created=() if batch.team else [batch.now] * len(drafted),
        )  # fmt: skip
        drafted, stored, added = execute_change(self.store, self.clock, change)
        for i, memory in enumerate(stored):
            if i not in added:
                known = self.duplicates.vouch_for(memory, propose(drafted[i]))
                stored[i] = CueAdder(self.store, self.clock).add(known, drafted[i].cues, batch.source)
        if compares and len(drafted) > MAX_COMPARED_AT_ONCE:
            self._changes.enqueue_comparison([stored[i].id for i in sorted(added)])
        return stored

    def _rejudge_memories(
        self, drafted: Sequence[Memory], batch: _Batch, memories: LockedMemories, marks: Mapping[str, int]
    ) -> Sequence[Memory]:
        """The memories, judged again by decisions and writes made before the lock was taken."""
        if self._withdrawals.count() != batch.decided:
            drafted = self._withdrawals.hold_withdrawn(drafted, batch.source, waits=batch.is_read)
        late = {scope: memories.changed_since(scope, mark) for scope, mark in marks.items()}
        return [self._judge_against_changes(memory, batch, late.get(memory.scope, ())) for memory in drafted]

    def _put_all(
        self,
        memories: LockedMemories,
        drafted: Sequence[Memory],
        vectors: "Vectors | None",
        batch: _Batch,
        changes: Mapping[int, Conflict],
    ) -> tuple[list[Memory], set[int]]:
        """Each memory as now stored (for a duplicate, the existing one), and the positions of the new ones."""
        hashes = [content_hash(memory.statement) for memory in drafted]
        names = [name_for(memory) for memory in drafted]
        keys = zip(hashes, drafted, names, strict=True)
        memories.prefetch([ProposalKeys(text, memory.scope, name, memory.conflict_key) for text, memory, name in keys])
        stored: list[Memory] = []
        places: set[int] = set()
        said: dict[tuple[str, str], Memory] = {}
        for i, memory in enumerate(drafted):
            key = (hashes[i], memory.scope)
            known = said.get(key) or memories.exact(*key)
            if known is None or not same_text(known.statement, memory.statement) or is_over(known, batch.now):
                try:
                    known = self._prepare_memory(memories, memory, names[i], batch, changes.get(i))
                    memories.put(known, vectors[i] if vectors is not None else None, team=batch.team, judged=True)
                    reject_replaced(memories, known, batch.source)
                except REFUSALS as error:
                    raise ItemRefused(i, error) from error
                places.add(i)
                if hashes[i]:
                    said[key] = known
            stored.append(known)
        return stored, places

    def _prepare_memory(
        self,
        memories: LockedMemories,
        memory: Memory,
        name: str,
        batch: _Batch,
        change: Conflict | None,
    ) -> Memory:
        """The memory as stored: with an id and a name, as a candidate if it needs review, and superseding the memories it replaces."""
        new = assign_identity(memories, memory, name, batch.now, team=bool(batch.team))
        # A program acts for its owner; no other source may instruct the agent that reads the memory.
        if _rank_of_added(new, batch.source) < Rank.PROGRAM and injection_problem(new):
            new = new.replace(status="candidate")
        # A waiting memory replaces nothing, but review decides between it and the memory it would replace.
        heads = replaced_memories(memories, new.replace(status="active") if new.supersedes else new)
        if above := outranking_head(heads, new.source):
            return add_conflict_link(
                new.replace(status="candidate"), above, batch.now, waits_alone=new.status == "active"
            )
        heads = heads if new.status == "active" else []
        if not heads and change is not None:
            return self._changes.apply_conflict(memories, new, change)
        return memories.supersede(new, heads, by=new.source)

    def _judge_memories(
        self, drafted: Sequence[Memory], vectors: "Vectors | None", batch: _Batch
    ) -> tuple[Sequence[Memory], dict[str, int]]:
        """The memories as `learn` would store them, and the change mark of each judged scope."""
        judged = {memory.scope for memory in drafted if _needs_judgement(memory, batch.source)}
        if not judged:
            return drafted, {}
        with self.store.reading():
            marks = {scope: self.store.mark(scope) for scope in sorted(judged)}
            known = [StoreLookup(self.store, vectors[i] if vectors is not None else None) for i in range(len(drafted))]
            said = [self._judge_memory(one, batch, known[i]) for i, one in enumerate(drafted)]
        return said, marks

    def _judge_against_changes(self, memory: Memory, batch: _Batch, changed: Sequence[Memory]) -> Memory:
        """The memory, judged against memories that others wrote before the lock was taken."""
        compared = [other for other in changed if other.status in COMPARED_STATUSES]
        return self._judge_memory(memory, batch, ChangesLookup(compared)) if compared else memory

    def _judge_memory(self, memory: Memory, batch: _Batch, known: Lookup) -> Memory:
        """The memory as `learn` would store it, if the gates must judge it; a candidate if `learn` would make it wait."""
        if not _needs_judgement(memory, batch.source):
            return memory
        memory = without_claims(memory)
        is_own = _rank_of_added(memory, batch.source) == rank_of(memory.source, Rank.PROGRAM)
        said = memory if is_own else memory.replace(source=batch.source)
        settings = replace(self.settings, max_statement_chars=self.settings.max_added_bytes)
        verdict = judge(propose(said), known, settings)
        other = verdict.other
        if verdict.outcome == Outcome.SUPERSEDED:
            return name_superseded(memory, verdict)
        if verdict.outcome == Outcome.CONTRADICTION and other is not None:
            return add_conflict_link(
                memory.replace(status="candidate"), other, batch.now, waits_alone=verdict.waits_alone
            )
        # A repetition of a candidate becomes a candidate too; an exact duplicate is not stored again.
        is_duplicate = verdict.outcome == Outcome.DUPLICATE and other is not None and other.status in LIVE_STATUSES
        return memory if verdict.outcome == Outcome.CREATED or is_duplicate else memory.replace(status="candidate")

    @property
    def _withdrawals(self) -> Withdrawals:
        return Withdrawals(self.store)

    @property
    def _changes(self) -> Changes:
        return Changes(self.store, self.clock)


def _limit_claims(memory: Memory, source: str) -> Memory:
    """The memory without claims its source may not make: a more trusted source, a confirmation or a pin."""
    if rank_of(source, Rank.PROGRAM) >= Rank.PROGRAM:
        return memory
    named = memory.source if rank_of(memory.source) <= rank_of(source) else source
    return without_claims(memory.replace(source=named, pinned=False))


def _rank_of_added(memory: Memory, source: str) -> Rank:
    """The trust rank of an added memory: the lower of the rank of the caller and the rank of the named source."""
    return min(rank_of(source, Rank.PROGRAM), rank_of(memory.source or source, Rank.PROGRAM))


def _needs_judgement(memory: Memory, source: str) -> bool:
    """Whether the gates judge an added memory as if it were learned, because neither a person nor a program states it."""
    return _rank_of_added(memory, source) < Rank.PROGRAM and memory.status in ANSWERING_STATUSES
