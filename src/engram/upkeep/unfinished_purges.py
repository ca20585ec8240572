"""Purges under way: each is recorded before it removes anything, and its record goes last, so that an interrupted one can be finished.

A record has ids and digests of names, never what was said.
"""

import hashlib
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from typing import Any

from engram.model.errors import StoreCorrupt
from engram.model.lazy import dataclass
from engram.model.memory import Memory
from engram.store.protocol import Store

PURGE_PREFIX = "purge/"
"""The beginning of the names of these states."""
_TOKEN_BYTES = 6
_DIGEST_BYTES = 16


@dataclass(frozen=True, slots=True)
class UnfinishedPurge:
    """What a purge was about to destroy: records by id, or everything of a scope."""

    state: str
    ids: tuple[str, ...]
    drawn: tuple[str, ...]
    actor: str
    at: datetime
    scope: str = ""
    names: tuple[str, ...] = ()
    """Digests of the names and aliases of the memories."""
    owners: tuple[str, ...] = ()
    """The scopes of the records that are destroyed by id."""

    def includes(self, ref: str) -> bool:
        """Whether an id, a name or an alias belongs to what is destroyed."""
        return ref in self.ids or _digest(ref) in self.names

    @property
    def repeat_command(self) -> str:
        """How to finish it, for a person."""
        if self.scope:
            return f'`Engram.purge("{self.scope}")` again'
        first = next(iter(self.ids), "ID")
        return (
            f"`engram ledger redact {first}` again"
            if first.startswith("EVT-")
            else f"`engram forget {first} --purge` again"
        )


def begin_purge(
    store: Store,
    now: datetime,
    ids: Sequence[str],
    *,
    actor: str,
    drawn: Collection[str] = (),
    scope: str = "",
    memories: Iterable[Memory],
) -> UnfinishedPurge:
    """Record a purge durably, before its first removal."""
    names = dict.fromkeys(name for memory in memories for name in (memory.name, *memory.aliases) if name)
    owners = sorted({owner for one in ids if (owner := store.owner_of(one)) is not None})
    begun = UnfinishedPurge(
        state=f"{PURGE_PREFIX}{store.new_token(_TOKEN_BYTES)}", ids=tuple(ids), drawn=tuple(drawn), actor=actor, at=now,
        scope=scope, names=tuple(map(_digest, names)), owners=tuple(owners),
    )  # fmt: skip
    value = {
        "ids": list(begun.ids), "drawn": list(begun.drawn), "actor": actor, "at": now.isoformat(), "scope": scope,
        "names": list(begun.names), "owners": owners,
    }  # fmt: skip
    store.change_state(begun.state, lambda _: value)
    return begun


def end_purge(store: Store, begun: UnfinishedPurge) -> None:
    """Remove the record of a finished purge."""
    store.change_state(begun.state, lambda _: {})


def unfinished_purges(store: Store) -> list[UnfinishedPurge]:
    """The recorded purges, oldest first; one whose record cannot be read is left to the doctor, who reports the state."""
    found = []
    for name in store.states(PURGE_PREFIX):
        try:
            value = store.state(name)
            if value:
                found.append(_from_state(name, value))
        except (StoreCorrupt, KeyError, TypeError, ValueError):
            continue
    return sorted(found, key=lambda one: (one.at, one.state))


def _from_state(name: str, value: Any) -> UnfinishedPurge:
    ids, drawn, names = ([str(one) for one in value[field]] for field in ("ids", "drawn", "names"))
    at = datetime.fromisoformat(value["at"])
    return UnfinishedPurge(
        state=name, ids=tuple(ids), drawn=tuple(drawn), actor=str(value["actor"]), at=at, scope=str(value["scope"]),
        names=tuple(names), owners=tuple(map(str, value.get("owners", ()))),
    )  # fmt: skip


def _digest(ref: str) -> str:
    return hashlib.blake2b(ref.encode("utf-8", "surrogatepass"), digest_size=_DIGEST_BYTES).hexdigest()
