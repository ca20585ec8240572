"""Taking a decision back: the memories return to what the journal says they were before it."""

from datetime import datetime

from engram.model.errors import InvalidInput, NotFound, Refused
from engram.model.memory import Memory
from engram.store.protocol import Image, Store


def undo(store: Store, ref: str, now: datetime, *, actor: str = "human") -> Memory:
    """Undo the last decision about a memory. What it made is retired; what it changed is as before. It can be undone too."""
    memory = store.get(ref)
    if memory is None:
        raise NotFound(f"no memory {ref!r}; a purged one cannot come back")
    history = store.history(memory.id)
    if not history:
        raise InvalidInput(f"nothing is known about how {memory.id} came to be (a team's memory has no journal here)")
    last, before = history[-1], _before(history)
    with store.deciding("undo", actor=actor, reason=f"undo {last.op} of {last.at:%Y-%m-%d %H:%M}") as deciding:
        current = deciding.get(memory.id) or memory
        if before is None:
            if current.status == "retired":
                raise Refused(f"{memory.id} has nothing left to undo")
            restored = current.but(status="retired", updated=now)
        else:
            # Uses that were folded since must not be folded again.
            restored = before.but(activation=current.activation, updated=now)
        deciding.put(restored)
    return restored


def _before(history: list[Image]) -> Memory | None:
    """What a memory was before its last decision; use and folding are not decisions."""
    last = history[-1].memory
    for image in reversed(history[:-1]):
        if image.memory is None or last is None or _decided(image.memory) != _decided(last):
            return image.memory
    return None


def _decided(memory: Memory) -> Memory:
    return memory.but(activation=Memory(id="", statement="").activation, updated=None)
