"""Taking a decision back: the memories return to what the journal says they were before it."""

from datetime import datetime

from engram.model.errors import InvalidInput, NotFound, Refused
from engram.model.memory import Activation, Memory
from engram.review.queue import held
from engram.store.protocol import Image, Store, Transaction

SEPARATE = frozenset({"add", "import", "use", "edit", "split", "remove", "reread"})
"""Entries about several memories that have nothing to do with each other; the others mean something only as a whole."""
MAKING = frozenset({"add", "learn", "import", "edit", "split", "revise"})
"""Decisions a memory's history can begin with. One that begins with another has been pruned."""


def undo(store: Store, ref: str, now: datetime, *, actor: str = "manual") -> Memory:
    """Undo the last decision about a memory, and about the others it settled. It can be undone too.

    What the decision made is retired; what it changed is as before. Strength gained by use meanwhile stays.
    """
    memory = store.get(ref)
    if memory is None:
        raise NotFound(f"no memory {ref!r}; a purged one cannot come back")
    history = store.history(memory.id)
    if not history:
        raise InvalidInput(f"nothing is known about how {memory.id} came to be (a team's memory has no journal here)")
    last = _last_decision(history)
    ids = (memory.id, *_superseded_by(memory, last)) if last.op in SEPARATE else last.ids
    wanted = list(dict.fromkeys((memory.id, *ids)))
    reason = f"undo {last.op} of {last.at:%Y-%m-%d %H:%M}"
    scopes = _scopes(store, wanted)
    with store.deciding("undo", actor=actor, reason=reason, scopes=scopes, about=wanted) as deciding:
        restored = {i: _restored(deciding, i, store.history(i), last, now) for i in wanted}
        for other in restored.values():
            deciding.put(other)
    return restored[memory.id]


def _superseded_by(memory: Memory, last: Image) -> list[str]:
    """Those of a batch that this memory took the place of: they come back with it gone."""
    return [i for i in last.ids if i in memory.supersedes]


def _scopes(store: Store, ids: list[str]) -> list[str]:
    """Every scope these memories were in, and so may come back to."""
    return sorted({image.memory.scope for i in ids for image in store.history(i) if image.memory is not None})


def _restored(deciding: Transaction, memory_id: str, history: list[Image], last: Image, now: datetime) -> Memory:
    current = held(deciding, memory_id)
    before = _before(history, last)
    if before is not None:
        # Uses that were folded since must not be folded again.
        activation = before.activation if last.op == "reinforce" else current.activation
        return before.but(activation=activation, updated=now)
    if history[0].op not in MAKING:
        raise Refused(f"what {memory_id} was before {last.op} has been pruned; it cannot be brought back")
    if current.status == "retired":
        raise Refused(f"{memory_id} has nothing left to undo")
    return current.but(status="retired", updated=now)


def _last_decision(history: list[Image]) -> Image:
    """The last entry that changed more than what use changes by itself."""
    for later, earlier in zip(reversed(history), reversed(history[:-1]), strict=False):
        if later.op == "reinforce" or _decided(later.memory) != _decided(earlier.memory):
            return later
    return history[0]


def _before(history: list[Image], last: Image) -> Memory | None:
    earlier = [image.memory for image in history if image.seq < last.seq]
    return earlier[-1] if earlier else None


def _decided(memory: Memory | None) -> Memory | None:
    return memory.but(activation=Activation(), updated=None) if memory is not None else None
