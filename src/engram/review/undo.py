"""Undo: reverts the last decision about a memory, or a bulk decision as a whole.

An undo is itself a decision and can be undone.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from itertools import pairwise
from typing import Any

from engram.decisions.authority import last_decision, refuse_overturning, refuse_undoing
from engram.decisions.execution import Change, LockedMemories, execute_change
from engram.decisions.versions import refuse_second_head, reorder_versions
from engram.model.decision import DISTRUST
from engram.model.errors import ChangedMeanwhile, InvalidInput, NotFound, Refused
from engram.model.lazy import fields, replace
from engram.model.memory import LIVE_STATUSES, Activation, Association, Evidence, Memory
from engram.review.bulk import BulkDecision, is_bulk, new_bulk, split_ids
from engram.rules.scopes import may_change
from engram.store.protocol import Image, Store
from engram.store.records import CREATING_OPS, is_automatic, locked_memory
from engram.store.references import Scopes, find_bulk_decision, has_foreign, no_bulk_decision

SEPARATE_OPERATIONS = frozenset({"add", "import", "edit", "remove", "reread"})
"""Entries about several unrelated memories, which are undone one by one; other entries are undone as a whole."""
_SKIPPED = frozenset({"purge", "reread"})
"""Decisions that `undo_last` skips: a purge cannot be undone, and the facts of a document follow the document."""
_PAGE = 200
"""How many entries `undo_last` reads at first."""
_STRENGTHENING = frozenset({"reinforce", "rate"})
"""Decisions about a memory's strength; undoing others does not change the strength."""


def undo(store: Store, ref: str, now: datetime, *, actor: str = "manual", scopes: Scopes = None) -> Memory:
    """Undo the last decision about a memory, including its effects on other memories. An undo can be undone too.

    Memories that the decision created are retired; those it changed are restored. Strength gained by use since then
    stays.
    """
    memory = store.get(ref)
    if memory is None:
        raise NotFound(f"no memory {ref!r}; a purged one cannot be restored")
    history = store.history(memory.id)
    if not history:
        raise InvalidInput(f"{memory.id} has no history to undo (a team's memory has no journal here)")
    last = last_decision(history)
    refuse_undoing(actor, memory, history)
    is_separate = last.op in SEPARATE_OPERATIONS or is_bulk(last.session)
    ids = (memory.id, *_changed_together(store, memory, last)) if is_separate else last.ids
    # A memory purged since stays purged; without it, a version cannot return to its position.
    wanted = [i for i in dict.fromkeys((memory.id, *ids)) if memory.lineage or store.get(i) is not None]
    _refuse_foreign(store, memory.id, wanted, last, scopes)
    for other in filter(None, map(store.get, wanted)):
        refuse_overturning(actor, other, store.history(other.id))
    return _restore_memories(store, dict.fromkeys(wanted, last), [memory.id], now, actor=actor)[0]


def _refuse_foreign(store: Store, memory_id: str, wanted: Collection[str], last: Image, scopes: Scopes) -> None:
    """Raise `Refused` if a decision changed memories that the caller may not change, or moved one from another owner."""
    if scopes is None:
        return
    before = [memory for i in wanted if (memory := _before(store.history(i), last)) is not None]
    if has_foreign(store, wanted, scopes) or not all(may_change(scopes, memory.scope) for memory in before):
        raise Refused(f"the last decision about {memory_id} changed more than you may change; nothing was undone")


def undo_decisions(store: Store, memory_id: str, numbers: Collection[int], now: datetime, *, actor: str) -> Memory:
    """Undo several decisions about a memory as one, including undos among them, and restore its state before the first.

    `numbers` are the numbers of their journal entries. Raises `Refused` if somebody has made another decision since.
    """
    history = store.history(memory_id)
    if why := _restore_problem(history, numbers, actor):
        raise Refused(f"{memory_id} was not changed: {why}")
    parts = [image for image in reversed(history) if image.seq in numbers]
    if len(parts) == 1:
        return undo(store, memory_id, now, actor=actor)
    undone = undo_entries(store, parts, now, actor)
    for one in undone.done:
        if one.id == memory_id:
            return one
    raise Refused(f"{memory_id} was not changed: {undone.left[memory_id]}")


def undo_bulk(
    store: Store, decision: str, now: datetime, *, actor: str = "manual", scopes: Scopes = None
) -> BulkDecision:
    """Undo a bulk decision as a whole; memories decided about since stay as they are, and are reported with the reason.

    Undoing a distrust also lets the source propose again. Raises `NotFound` for an unknown id, and `Refused` for a
    decision that restored trust in a source.
    """
    from engram.review.distrust import Distrust, refuse_redoing, source_distrusted_by

    if source := source_distrusted_by(store, decision):
        if scopes is not None:  # trust in a source applies to the whole store
            raise no_bulk_decision(decision)
        return Distrust(store, lambda: now).undo(source, actor)
    parts = find_bulk_decision(store, decision, scopes)
    if source := _restored_source(store, parts):
        refuse_redoing(source)
    return undo_entries(store, parts, now, actor)


def _restored_source(store: Store, parts: Sequence[Image]) -> str:
    """The source whose distrust these entries undid; "" for other entries."""
    if not parts or parts[0].op != "undo" or not parts[0].reason.startswith(f"undo {DISTRUST} "):
        return ""
    found = [image for image in store.history(parts[0].ids[0]) if image.op == DISTRUST and image.seq < parts[0].seq]
    return found[-1].reason.removeprefix(f"{DISTRUST} ") if found else ""


def undo_entries(store: Store, parts: Sequence[Image], now: datetime, actor: str) -> BulkDecision:
    """Undo every entry of a decision, given newest first; each memory returns to its state before the first of them."""
    first: dict[str, Image] = {i: part for part in parts for i in part.ids}
    numbers = {part.seq for part in parts}
    left: dict[str, str] = {}
    for ids in split_ids(list(first)):
        told = store.histories(ids)
        left |= {i: why for i in ids if (why := _restore_problem(told[i], numbers, actor))}
    wanted = {i: part for i, part in first.items() if i not in left}
    mark, done = new_bulk(store), list[Memory]()
    for ids in split_ids(list(wanted)):
        done += _undo_slice(store, {i: wanted[i] for i in ids}, numbers, now, actor, mark, left)
    return BulkDecision(mark, "undo", tuple(done), left)


def undo_last(store: Store, now: datetime, *, actor: str = "manual") -> BulkDecision:
    """Undo the store's last decision, whole if it was a bulk one. Raises `NotFound` if nothing was decided.

    A distrust counts as a decision although it may have changed no memory.
    """
    from engram.review.distrust import Distrust, last_distrusted_source

    last = _last_deliberate(store)
    if source := last_distrusted_source(store, last):
        return Distrust(store, lambda: now).undo(source, actor)
    if last is None:
        raise NotFound("nothing to undo: no decision is recorded here")
    if is_bulk(last.session):
        return undo_bulk(store, last.session, now, actor=actor)
    if last.op not in SEPARATE_OPERATIONS or len(last.ids) == 1:
        undone = undo(store, last.ids[-1], now, actor=actor)
        others = (store.get(i) for i in last.ids if i != undone.id)
        return BulkDecision("", "undo", (undone, *(other for other in others if other is not None)))
    return undo_entries(store, [last], now, actor)


def _last_deliberate(store: Store) -> Image | None:
    """The store's last decision that can be undone; any number of automatic entries may follow it."""
    limit = _PAGE
    while True:
        entries = store.decisions(limit)
        found = next((one for one in entries if one.op not in _SKIPPED and not is_automatic(one)), None)
        if found is not None or len(entries) < limit:
            return found
        limit *= 10


def _restore_problem(history: Sequence[Image], decisions: Collection[int], actor: str) -> str:
    """Why a memory of a bulk decision cannot be put back; "" if it can."""
    memory = history[-1].memory if history else None
    if memory is None:
        return "purged since"
    last = last_decision(history)
    if last.seq not in decisions:
        return f"decided about since: {last.op} by {last.actor or 'unknown'}"
    try:
        refuse_undoing(actor, memory, history)
    except Refused as error:
        return str(error)
    return ""


def _undo_slice(
    store: Store,
    wanted: Mapping[str, Image],
    numbers: Collection[int],
    now: datetime,
    actor: str,
    mark: str,
    left: dict[str, str],
) -> list[Memory]:
    """Undo a slice; if one memory cannot be undone, undo the others one by one."""
    try:
        return _restore_memories(store, wanted, list(wanted), now, actor=actor, session=mark, numbers=numbers)
    except Refused as error:
        if len(wanted) == 1:
            left |= dict.fromkeys(wanted, str(error))
            return []
    return [one for i, part in wanted.items() for one in _undo_slice(store, {i: part}, numbers, now, actor, mark, left)]


def _restore_memories(
    store: Store,
    wanted: Mapping[str, Image],
    subjects: Sequence[str],
    now: datetime,
    *,
    actor: str,
    session: str = "",
    numbers: Collection[int] = (),
) -> list[Memory]:
    """Restore memories to their states before the given decisions, as one new decision; returns the `subjects` in their new state.

    Raises `Refused` if `numbers` are given and a memory was decided about after those entries, perhaps a moment ago.
    """
    last = next(iter(wanted.values()))
    reason = f"undo {last.op} of {last.at:%Y-%m-%d %H:%M}"

    def plan(memories: LockedMemories) -> list[Memory]:
        told = store.histories(list(wanted))
        if numbers:
            _refuse_decided_since(told, numbers, actor, session)
        else:
            _refuse_undoing_again(memories, told, wanted, subjects, actor)
        restored = {i: _state_to_restore(memories, i, told[i], wanted[i], now) for i in wanted}
        replaced = _replaced_since(memories, restored.values())
        for other in restored.values():
            _refuse_split(locked_memory(memories, other.id), other, wanted)
        for other in restored.values():
            memories.put(other)
        _put_in_order(memories, list(restored.values()), now)
        found = [_require_restored(memories, restored[i]) for i in subjects]
        if replaced is not None:
            raise Refused(
                f"{replaced.id} cannot be undone: {replaced.superseded_by} has replaced it since; undo that first"
            )
        return found

    change = Change(
        op="undo", actor=actor, plan=plan, note=reason, session=session, scopes=_scopes(store, list(wanted)),
        related=[*wanted, *(version.id for i in wanted for version in _all_versions(store, i))],
    )  # fmt: skip
    return execute_change(store, lambda: now, change)


def _refuse_undoing_again(
    memories: LockedMemories,
    told: Mapping[str, list[Image]],
    wanted: Mapping[str, Image],
    subjects: Sequence[str],
    actor: str,
) -> None:
    """Raise if somebody has decided about these memories since they were read, and the actor may not undo that."""
    for memory_id in wanted:
        memory = locked_memory(memories, memory_id)
        if memory_id not in subjects:
            refuse_overturning(actor, memory, told[memory_id])
            continue
        refuse_undoing(actor, memory, told[memory_id])
        if last_decision(told[memory_id]).seq != wanted[memory_id].seq:
            raise ChangedMeanwhile(f"{memory_id} was decided about meanwhile; nothing was undone: look again")


def _refuse_decided_since(told: Mapping[str, list[Image]], numbers: Collection[int], actor: str, session: str) -> None:
    """Raise `Refused` if a memory was decided about after these entries, except in this session."""
    for history in told.values():
        if why := _restore_problem([image for image in history if image.session != session], numbers, actor):
            raise Refused(why)


def _refuse_split(memory: Memory, restored: Memory, wanted: Collection[str]) -> None:
    """Raise `Refused` if a memory would wait for review again although a newer version of it is current."""
    newer = memory.superseded_by
    if restored.status == "candidate" and memory.status == "superseded" and newer not in wanted:
        raise Refused(f"{memory.id} cannot wait again: {newer} has replaced it since; undo that first")


def _replaced_since(memories: LockedMemories, restored: Iterable[Memory]) -> Memory | None:
    """The memory to withdraw although a newer version has replaced it; the memories that version replaced must not return next to it."""
    withdrawn = [locked_memory(memories, memory.id) for memory in restored if memory.status == "retired"]
    return next((memory for memory in withdrawn if memory.status == "superseded" and memory.superseded_by), None)


def _changed_together(store: Store, memory: Memory, last: Image) -> list[str]:
    """The memories of a batch that change together with this one: those it replaced, that replaced it, or that it released."""
    from engram.decisions.versions import contradicting_memories

    released = [other.id for other in contradicting_memories(store, [memory.id, *memory.supersedes])]
    return [i for i in last.ids if i in memory.supersedes or i == memory.superseded_by or i in released]


def _all_versions(store: Store, memory_id: str) -> list[Memory]:
    memory = store.get(memory_id)
    return store.lineage(memory.lineage) if memory is not None and memory.lineage else []


def _put_in_order(memories: LockedMemories, restored: list[Memory], now: datetime) -> None:
    for lineage in dict.fromkeys(memory.lineage for memory in restored):
        reorder_versions(memories, lineage, now)
    for memory in restored:
        refuse_second_head(memories, locked_memory(memories, memory.id), now)


def _require_restored(memories: LockedMemories, wanted: Memory) -> Memory:
    """The restored memory; raises `Refused` if another has replaced it since."""
    memory = locked_memory(memories, wanted.id)
    if wanted.status in LIVE_STATUSES and memory.status not in LIVE_STATUSES:
        raise Refused(
            f"{memory.id} cannot become current again: {memory.superseded_by} has replaced it since; undo that first, "
            "or `revise` it"
        )
    return memory


def _scopes(store: Store, ids: list[str]) -> list[str]:
    """Every scope these memories were in, and to which they may return."""
    told = store.histories(ids).values()
    return sorted({image.memory.scope for history in told for image in history if image.memory is not None})


def _state_to_restore(
    memories: LockedMemories, memory_id: str, history: list[Image], last: Image, now: datetime
) -> Memory:
    current = locked_memory(memories, memory_id)
    before = _before(history, last)
    if before is not None:
        lineage = before.lineage or ("" if _has_joined(current, before) else current.lineage)
        restored = _with_automatic_changes(before, history, last)
        return restored.replace(activation=_activation(current, before, last, history), updated=now, lineage=lineage)
    if history[0].op not in CREATING_OPS:
        raise Refused(f"the state of {memory_id} before {last.op} has been pruned; it cannot be restored")
    if current.status == "retired":
        raise Refused(f"{memory_id} has nothing left to undo")
    return current.replace(status="retired", updated=now)


def _activation(current: Memory, before: Memory, last: Image, history: Sequence[Image]) -> Activation:
    """The strength after an undo. Uses counted before the undone decision are not counted again; later ones are."""
    if last.op not in _STRENGTHENING:
        return current.activation
    decided = next((image.memory for image in history if image.seq == last.seq), None)
    return replace(before.activation, seq=(decided or before).activation.seq)


def _with_automatic_changes(before: Memory, history: Sequence[Image], last: Image) -> Memory:
    """The memory before a decision, with later automatic changes kept: links, ratings, export names, purged evidence."""
    for early, late in pairwise(history):
        if late.seq <= last.seq or not is_automatic(late) or early.memory is None or late.memory is None:
            continue
        changed = [name for name in _FIELDS if getattr(early.memory, name) != getattr(late.memory, name)]
        merged = {
            name: _merge_change(*(getattr(memory, name) for memory in (before, early.memory, late.memory)))
            for name in changed
        }
        before = before.replace(**merged)
    return before


def _merge_change(value: Any, early: Any, late: Any) -> Any:
    """The value of a field with a later change applied; for a list, only the changed entries."""
    if not isinstance(late, tuple):
        return late
    gone = [_key(one) for one in early if one not in late]
    added = [one for one in late if one not in early]
    return (*(one for one in value if _key(one) not in gone and one not in added), *added)


def _key(entry: Any) -> Any:
    """The key of a list entry: a link's target and type, evidence's event, else the entry itself."""
    if isinstance(entry, Association):
        return entry.target, entry.type
    return entry.event if isinstance(entry, Evidence) else entry


_FIELDS = tuple(part.name for part in fields(Memory) if part.name not in ("id", "activation", "updated"))


def _has_joined(current: Memory, before: Memory) -> bool:
    """Whether a decision moved a memory without versions to another fact, because it replaced a version or was replaced with one.

    A memory that founded the fact keeps its lineage.
    """
    return bool(set(current.supersedes) - set(before.supersedes)) or current.lineage not in ("", current.id)


def _before(history: list[Image], last: Image) -> Memory | None:
    earlier = [image.memory for image in history if image.seq < last.seq]
    return earlier[-1] if earlier else None
