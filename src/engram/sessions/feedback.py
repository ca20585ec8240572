"""Noting uses and folding them into the memories they strengthened."""

from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING

from engram.model.errors import InvalidInput, NotFound, StoreDenied, StoreError, StoreReadOnly
from engram.model.memory import SIGNALS, Memory
from engram.model.usage import Use
from engram.rules.strength import co_accessed, folded, rated
from engram.store.protocol import Store

if TYPE_CHECKING:
    from collections.abc import Callable


def note(store: Store, kind: str, ids: Iterable[str], at: datetime, session: str = "") -> str:
    """Note a use; a store that cannot be written to costs a warning, never the answer."""
    wanted = tuple(ids)
    if not wanted:
        return ""
    try:
        store.note_use(Use(kind, wanted, at, session))
    except (StoreReadOnly, StoreDenied) as error:
        return f"{error}; the use was not recorded"
    return ""


def rate(store: Store, ref: str, signal: str, at: datetime, session: str = "") -> Memory:
    """Rate a memory; the rating is noted, and folded in at once where the memory is the owner's own.

    An error means that it was not noted. Once it is, it stands: what keeps it from being folded in now delays that to the next fold.
    """
    if signal not in SIGNALS:
        raise InvalidInput(f"{signal!r} is no signal; one of {', '.join(SIGNALS)}")
    memory = store.get(ref)
    if memory is None:
        raise NotFound(f"no memory {ref!r}; `engram list` shows what there is")
    store.note_use(Use("rated", (memory.id,), at, session, signal))
    memory = rated(memory, signal, at)
    with suppress(StoreError):
        fold(store, [memory.id], session=session)
        memory = store.get(memory.id) or memory
    return memory


def fold(
    store: Store, ids: Iterable[str], *, session: str = "", then: "Callable[[Memory], Memory] | None" = None
) -> list[str]:
    """Fold every noted use into these memories, as one decision; `then` may change each further. Returns the changed ids."""
    wanted = store.owned(dict.fromkeys(ids))
    if not wanted:
        return []
    uses: dict[str, list[Use]] = {memory_id: [] for memory_id in wanted}
    for use in store.uses_of(wanted):
        uses[use.ids[0]].append(use)
    changed = []
    with store.deciding("use", actor="engram", session=session, about=wanted) as deciding:
        for memory_id in wanted:
            memory = deciding.get(memory_id)
            if memory is None:
                continue
            after = folded(memory, uses[memory_id])
            after = then(after) if then else after
            if after != memory:
                deciding.put(after)
                changed.append(memory_id)
    return changed


def fold_session(store: Store, session: str, ended: datetime) -> list[str]:
    """What a session's end does: uses are folded in, and memories injected together grow together.

    Running it again for the same end changes nothing: a link reinforced at that very moment is left alone.
    """
    uses = store.uses_in(session)
    injected = tuple(dict.fromkeys(i for use in uses if use.kind == "injected" for i in use.ids))

    def grow_together(memory: Memory) -> Memory:
        done = {link.target for link in memory.associations if link.last_reinforced == ended}
        others = tuple(i for i in injected if i != memory.id and i not in done)
        return co_accessed(memory, others, ended) if memory.id in injected and others else memory

    return fold(store, dict.fromkeys(i for use in uses for i in use.ids), session=session, then=grow_together)
