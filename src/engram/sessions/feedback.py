"""Ratings and recorded uses, folded into the memories they reinforce."""

from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Literal

from engram.model.errors import InvalidInput, StoreError
from engram.model.memory import SIGNALS, Memory
from engram.model.usage import RATED, RATED_BY_PERSON, Use
from engram.rules.scopes import is_person, visible_scopes
from engram.rules.sources import Rank, rank_of
from engram.rules.strength import apply_rating, fold_uses, link_co_accessed
from engram.store.history import ENGRAM_ACTOR
from engram.store.protocol import Store
from engram.store.references import Scopes, find_memory

if TYPE_CHECKING:
    from collections.abc import Callable

    from engram.decisions.locked import LockedMemories


def rate(
    store: Store,
    ref: str,
    signal: str,
    at: datetime,
    session: str = "",
    *,
    actor: str = "manual",
    scopes: Scopes = None,
) -> Memory:
    """Rate a memory: the rating is recorded, and folded in at once where the memory is the owner's own.

    Unless a person rates it, what a person said stays strong enough to be injected.
    Whoever sees a memory may rate it: `scopes` are those the caller sees. An error means that it was not recorded. Where a recorded rating cannot be folded in now, the next fold does it.
    """
    if signal not in SIGNALS:
        raise InvalidInput(f"Unknown signal {signal!r}; choose {', '.join(SIGNALS)}")
    memory = find_memory(store, ref, scopes)
    by_person = rank_of(actor) == Rank.PERSON
    kind = RATED_BY_PERSON if by_person else RATED
    store.note_use(Use(kind, (memory.id,), at, session, signal))
    memory = apply_rating(memory, signal, at, by_person=by_person)
    with suppress(StoreError):
        fold(store, [memory.id], at, session=session, op="rate", actor=actor)
        memory = store.get(memory.id) or memory
    return memory


def fold(
    store: Store,
    ids: Iterable[str],
    now: datetime,
    *,
    session: str = "",
    then: "Callable[[Memory], Memory] | None" = None,
    op: Literal["use", "rate"] = "use",
    actor: str = ENGRAM_ACTOR,
) -> list[str]:
    """Fold every recorded use into these memories, as one journal entry; `then` may change each further. Returns the changed ids."""
    from engram.decisions.change import Change
    from engram.decisions.execution import execute_change  # a process that only recalls needs no gates

    wanted = store.own_ids(dict.fromkeys(ids))
    if not wanted:
        return []
    uses: dict[str, list[Use]] = {memory_id: [] for memory_id in wanted}
    for use in store.uses(wanted):
        uses[use.ids[0]].append(use)

    def plan(memories: "LockedMemories") -> list[str]:
        changed = []
        for memory_id in wanted:
            memory = memories.get(memory_id)
            if memory is None:
                continue
            after = fold_uses(memory, uses[memory_id])
            after = then(after) if then else after
            if after != memory:
                memories.put(after)
                changed.append(memory_id)
        return changed

    change = Change(op=op, actor=actor, plan=plan, session=session, related=wanted)
    return execute_change(store, lambda: now, change)


def fold_session(store: Store, session: str, ended: datetime) -> list[str]:
    """Fold in a session's uses at its end, and link the memories injected together.

    Running it again for the same end changes nothing: a link reinforced at that very moment is left alone.
    """
    uses = store.uses(session=session)
    injected = tuple(dict.fromkeys(i for use in uses if use.kind == "injected" for i in use.ids))
    owners = {memory_id: store.owner_of(memory_id) or "" for memory_id in injected}

    def link_injected(memory: Memory) -> Memory:
        done = {link.target for link in memory.associations if link.last_reinforced == ended}
        seen = visible_scopes([memory.scope])
        # What everyone reads does not name the memories of one person.
        others = tuple(
            i for i in injected if i not in (memory.id, *done) and (owners[i] in seen or not is_person(owners[i]))
        )
        return link_co_accessed(memory, others, ended) if memory.id in injected and others else memory

    return fold(store, dict.fromkeys(i for use in uses for i in use.ids), ended, session=session, then=link_injected)
