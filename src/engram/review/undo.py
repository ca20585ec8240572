"""Undo: the memories return to what the journal says they were before the last decision."""

from datetime import datetime

from engram.model.errors import InvalidInput, NotFound, Refused
from engram.model.memory import Memory
from engram.review.lineage import last_decision, refuse_second_head, refuse_undoing, settle
from engram.store.protocol import Image, Store, Transaction
from engram.store.records import CURRENT, locked_memory

SEPARATE = frozenset({"add", "import", "use", "edit", "split", "remove", "reread"})
"""Entries about several unrelated memories, which are undone one by one; other entries are undone as a whole."""
MAKING = frozenset({"add", "learn", "import", "edit", "split", "revise"})
"""Decisions a memory's history can begin with; one that begins with another has been pruned."""


def undo(store: Store, ref: str, now: datetime, *, actor: str = "manual") -> Memory:
    """Undo the last decision about a memory, and about the others it settled. It can be undone too.

    What the decision created is retired; what it changed is restored. Strength gained by use since then stays.
    """
    memory = store.get(ref)
    if memory is None:
        raise NotFound(f"no memory {ref!r}; a purged one cannot be restored")
    history = store.history(memory.id)
    if not history:
        raise InvalidInput(f"{memory.id} has no history to undo (a team's memory has no journal here)")
    last = last_decision(history)
    refuse_undoing(actor, memory, history)
    ids = (memory.id, *_settled_with(memory, last)) if last.op in SEPARATE else last.ids
    wanted = list(dict.fromkeys((memory.id, *ids)))
    reason = f"undo {last.op} of {last.at:%Y-%m-%d %H:%M}"
    scopes = _scopes(store, wanted)
    about = [*wanted, *(version.id for i in wanted for version in _versions(store, i))]
    with store.deciding("undo", actor=actor, reason=reason, scopes=scopes, about=about) as deciding:
        restored = {i: _restored(deciding, i, store.history(i), last, now) for i in wanted}
        for other in restored.values():
            deciding.put(other)
        _put_in_order(deciding, list(restored.values()), now)
        return _as_restored(deciding, restored[memory.id])


def _settled_with(memory: Memory, last: Image) -> list[str]:
    """The memories of a batch that this one replaced, and the one that replaced it: they change together."""
    return [i for i in last.ids if i in memory.supersedes or i == memory.superseded_by]


def _versions(store: Store, memory_id: str) -> list[Memory]:
    memory = store.get(memory_id)
    return store.lineage(memory.lineage) if memory is not None and memory.lineage else []


def _put_in_order(deciding: Transaction, restored: list[Memory], now: datetime) -> None:
    for lineage in dict.fromkeys(memory.lineage for memory in restored):
        settle(deciding, lineage, now)
    for memory in restored:
        refuse_second_head(deciding, locked_memory(deciding, memory.id), now)


def _as_restored(deciding: Transaction, wanted: Memory) -> Memory:
    """The restored memory; raises `Refused` where another has replaced it since."""
    memory = locked_memory(deciding, wanted.id)
    if wanted.status in CURRENT and memory.status not in CURRENT:
        raise Refused(
            f"{memory.id} cannot become current again: {memory.superseded_by} has replaced it since; undo that first, "
            "or `revise` it"
        )
    return memory


def _scopes(store: Store, ids: list[str]) -> list[str]:
    """Every scope these memories were in, and so may return to."""
    return sorted({image.memory.scope for i in ids for image in store.history(i) if image.memory is not None})


def _restored(deciding: Transaction, memory_id: str, history: list[Image], last: Image, now: datetime) -> Memory:
    current = locked_memory(deciding, memory_id)
    before = _before(history, last)
    if before is not None:
        # Uses folded in since then must not be folded in again.
        activation = before.activation if last.op == "reinforce" else current.activation
        # A version keeps its lineage, even if it was the only version before.
        return before.but(activation=activation, updated=now, lineage=before.lineage or current.lineage)
    if history[0].op not in MAKING:
        raise Refused(f"the state of {memory_id} before {last.op} has been pruned; it cannot be restored")
    if current.status == "retired":
        raise Refused(f"{memory_id} has nothing left to undo")
    return current.but(status="retired", updated=now)


def _before(history: list[Image], last: Image) -> Memory | None:
    earlier = [image.memory for image in history if image.seq < last.seq]
    return earlier[-1] if earlier else None
