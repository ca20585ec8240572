"""Values under a namespace and a key, stored as memories: the basis of a framework's key-value store.

A namespace is a scope and a domain: `("ana", "notes")` is `langgraph:ana/notes`, so an owner lists, exports or purges
it like any other scope. The memory's metadata has the value unchanged; its statement is the searchable text of it.
Unlike `add`, a put never treats two values as duplicates, and no value replaces that of another key.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote
from uuid import UUID

from engram.model.errors import InvalidInput, Refused, StoreBusy
from engram.model.lazy import dataclass
from engram.model.memory import Memory
from engram.rules.lifecycle import is_over
from engram.rules.scopes import EVERYWHERE, MAX_SCOPE_LENGTH, parse_scope
from engram.store.documents import meaning_of
from engram.store.protocol import Filters
from engram.text.display import quote_text

if TYPE_CHECKING:
    from engram.client import Engram
    from engram.decisions.execution import LockedMemories
    from engram.embedding.vectors import Vectors

Namespace = tuple[str, ...]
ITEM_STATUSES = ("active", "dormant", "archived", "candidate")
"""The statuses of stored items.

A value that waits for review is stored as well, but Engram's own answers leave it out.
"""
MAX_RANKED_ITEMS = 1_000
"""Maximum items that one search ranks; others follow without a score."""
MIN_REFRESH_SHARE = 0.05
"""The share of its time to live after which reading an item prolongs it, so that not every read is a write."""
_ATTEMPTS = 5
_PLAIN_KEY = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_LABEL_PUNCTUATION = "_-@+"
_ITEM = "item"


class ItemKey(NamedTuple):
    """The location of an item."""

    namespace: Namespace
    key: str


@dataclass(frozen=True, slots=True)
class ItemValue:
    """A value to put: the value, the text for finding it ("" for none), and how many minutes it lives unread."""

    value: Mapping[str, Any]
    text: str
    ttl: float | None = None


@dataclass(frozen=True, slots=True)
class KeyedItem:
    """A stored item and its memory."""

    at: ItemKey
    value: dict[str, Any]
    is_indexed: bool
    ttl: float | None
    memory: Memory

    @property
    def created_at(self) -> datetime:
        """The time of the first put."""
        assert self.memory.created is not None
        return self.memory.created

    @property
    def updated_at(self) -> datetime:
        """The time of the last put."""
        return self.memory.updated or self.created_at


@dataclass(slots=True)
class KeyedItems:
    """The items of one kind in a memory.

    `source` is the origin of their text; the program that opened the memory puts them.
    """

    mem: "Engram"
    kind: str
    source: str

    # -- reading

    def get(self, at: ItemKey, *, refresh: bool = True) -> KeyedItem | None:
        """The item, or None; reading it prolongs its life unless `refresh` is false."""
        memory = self._find_memory(at)
        item = self._item(memory) if memory is not None else None
        if item is None or item.at != at:
            return None
        if refresh:
            self.refresh([item])
        return item

    def list_below(self, prefix: Namespace) -> list[KeyedItem]:
        """The items of a namespace and those below it, last put first."""
        domain = "/".join(map(_label, prefix)) or None
        filters = Filters(tags=(self.kind,), domain=domain, statuses=ITEM_STATUSES)
        found = [item for memory in self.mem.store.listing(filters) if (item := self._item(memory)) is not None]
        kept = [item for item in found if item.at.namespace[: len(prefix)] == prefix]
        return sorted(kept, key=lambda item: (item.updated_at, item.memory.id), reverse=True)

    def rank(self, prefix: Namespace, query: str, limit: int) -> list[tuple[KeyedItem, float]]:
        """The indexed items below a namespace that match a query, most relevant first, each with its relevance."""
        hits = self.mem.search(
            query,
            limit=min(limit, MAX_RANKED_ITEMS),
            tags=(self.kind,),
            domain="/".join(map(_label, prefix)) or None,
            status=ITEM_STATUSES,
            scope=EVERYWHERE,
        )
        found = [(item, hit.relevance) for hit in hits if hit.memory is not None and (item := self._item(hit.memory))]
        kept = [(item, relevance) for item, relevance in found if item.is_indexed]
        # A sort keeps the order of the search among hits of the same relevance.
        return sorted(kept, key=lambda pair: -pair[1])

    def _find_memory(self, at: ItemKey) -> Memory | None:
        memory_id = self.mem.store.id_by_name(_name(at.key), self._scope(at.namespace))
        return self.mem.store.get(memory_id, [self._scope(at.namespace)]) if memory_id else None

    def _item(self, memory: Memory) -> KeyedItem | None:
        """The item in a memory; None for any other memory, and for one that is deleted or expired."""
        data = memory.metadata.get(self.kind)
        if not isinstance(data, Mapping) or memory.status not in ITEM_STATUSES or is_over(memory, self._now):
            return None
        try:
            at = ItemKey(tuple(map(str, data["namespace"])), str(data["name"]))
            if memory.scope != self._scope(at.namespace):
                return None  # metadata may claim any namespace, but the scope decides
            return KeyedItem(at, dict(data["value"]), bool(data.get("indexed", True)), data.get("ttl"), memory)
        except (KeyError, TypeError, ValueError, InvalidInput):
            return None  # somebody edited the file, so it is no longer an item

    # -- writing

    def put(self, values: Mapping[ItemKey, ItemValue]) -> None:
        """Store items, all or none; a key's previous value is replaced.

        Raises `SecretRefused` for a secret, `InvalidInput` or `Refused` for values that cannot be stored.
        """
        if not values:
            return
        drafts = {at: self._draft(at, given) for at, given in values.items()}
        drafts = dict(zip(drafts, self._admit_drafts(list(drafts.values())), strict=True))
        vectors = self.mem.store.embed([meaning_of(draft) for draft in drafts.values()])
        for _ in range(_ATTEMPTS):
            before = {at: self._find_memory(at) for at in drafts}
            known = {at: memory.id if memory is not None else "" for at, memory in before.items()}
            if self._put(drafts, vectors, known):
                return
        raise StoreBusy("others keep writing the same keys; nothing was stored, try again")

    def _put(self, drafts: Mapping[ItemKey, Memory], vectors: "Vectors | None", known: Mapping[ItemKey, str]) -> bool:
        """Store items if their keys still belong to the memories that were `known`. Returns whether they did."""
        from engram.decisions.execution import Change, execute_change

        def plan(memories: "LockedMemories") -> bool:
            if known != {at: self.mem.store.id_by_name(_name(at.key), draft.scope) for at, draft in drafts.items()}:
                return False
            for i, (at, draft) in enumerate(drafts.items()):
                new = self._memory_to_write(memories, draft, known[at])
                memories.put(new, vectors[i] if vectors is not None else None)
            return True

        change = Change(
            op="put", actor=self._program, plan=plan, scopes={draft.scope for draft in drafts.values()},
            related=[memory_id for memory_id in known.values() if memory_id], created=[self._now] * len(drafts),
        )  # fmt: skip
        return execute_change(self.mem.store, self.mem.upkeep.clock, change)

    def delete(self, at: ItemKey) -> None:
        """Forget an item: the memory is retired, and stays readable to the store's owner until it is purged."""
        item = self.get(at, refresh=False)
        if item is not None:
            scope = self._scope(at.namespace)
            self.mem.forget(item.memory.id, actor=self.source, reason=f"deleted from {self.kind}", scope=scope)

    def refresh(self, items: Iterable[KeyedItem]) -> None:
        """Prolong items with a time to live, because they were read."""
        from engram.decisions.execution import Change, execute_change

        now = self._now
        due = {item.memory.id: end for item in items if (end := _new_end(item, now)) is not None}
        if not due:
            return

        def plan(memories: "LockedMemories") -> None:
            for memory_id, end in due.items():
                memory = memories.get(memory_id)
                if memory is not None and memory.status in ITEM_STATUSES:
                    memories.put(memory.replace(valid_until=end))

        change = Change(op="refresh", actor=self.source, plan=plan, related=list(due))
        execute_change(self.mem.store, self.mem.upkeep.clock, change)

    def _draft(self, at: ItemKey, given: ItemValue) -> Memory:
        from engram.capture.draft import checked_fields
        from engram.gates.secrets.exemptions import AllowedValues
        from engram.gates.secrets.scan import refuse_secret, refuse_secret_values

        refuse_secret(at.key, "the key")
        data: dict[str, Any] = {"namespace": list(at.namespace), "name": at.key, "value": dict(given.value)}
        if not given.text:
            data["indexed"] = False
        if given.ttl is not None:
            data["ttl"] = _minutes(given.ttl)
        now = self._now
        try:
            metadata = checked_fields({"metadata": {self.kind: data}})["metadata"]
        except InvalidInput as error:
            raise InvalidInput(f"the value of {quote_text(at.key[:80])} cannot be stored: {error}") from None
        # The statement may leave out the name of a field, or the whole field.
        refuse_secret_values(given.value, "the value", AllowedValues(self.mem.store.screen.allowed_values))
        return Memory(
            id="",
            statement=given.text or f"{at.key} in {' / '.join(at.namespace)}".strip(),
            scope=self._scope(at.namespace),
            type="factual",
            name=_name(at.key),
            tags=(self.kind,),
            domain="/".join(map(_label, at.namespace)),
            created=now,
            valid_until=None if given.ttl is None else now + timedelta(minutes=given.ttl),
            source=self.source,
            learned_by=_ITEM,
            metadata=metadata,
        )

    def _admit_drafts(self, drafts: Sequence[Memory]) -> list[Memory]:
        """The drafts with their status. Raises for values that may not be stored at all."""
        from engram.capture.withdrawal import Withdrawals
        from engram.gates.pipeline import admit
        from engram.gates.proposal import GateSettings
        from engram.review.distrust import distrust_reason

        if why := distrust_reason(self.mem.store, self.source):
            raise Refused(why)
        settings = GateSettings(allowed_values=self.mem.store.screen.allowed_values)
        judged = [admit(draft, settings).replace(status=self._status(draft)) for draft in drafts]
        # A program gets its values back, even those a person rejected; Engram's own answers leave them out.
        return Withdrawals(self.mem.store).hold_withdrawn(judged, self.source, waits=True)

    def _memory_to_write(self, memories: "LockedMemories", draft: Memory, known_id: str) -> Memory:
        """The memory to write: the stored one with the new value, or a new one that takes over a deleted one's name."""
        from engram.decisions.authority import is_rejected_by_person, refuse_outranked

        known = memories.get(known_id) if known_id else None
        if known is not None and self._item(known) is not None:
            refuse_outranked(self.source, known, "change")
            names = ("statement", "valid_until", "metadata", "status", "type", "source", "tags", "domain")
            return known.replace(**{name: getattr(draft, name) for name in names}, entities=(), updated=self._now)
        if known is not None:
            if is_rejected_by_person(known, self.mem.store.history(known.id)):
                raise Refused(f"{known.id} was rejected in review; a person may undo that (`engram undo {known.id}`)")
            memories.put(known.replace(name=""))
        return draft.replace(id=memories.new_id(self._now))

    def _status(self, draft: Memory) -> Any:
        """Candidate if `add` would make it one.

        Engram's own answers leave candidates out until a person has seen them.
        """
        from engram.gates.instructions import injection_problem
        from engram.gates.proposal import GateSettings
        from engram.gates.trust import trust
        from engram.rules.sources import Rank, rank_of

        if rank_of(self.source, Rank.PROGRAM) >= Rank.PROGRAM:
            return "active"
        return "candidate" if injection_problem(draft) else trust(draft, False, GateSettings()).status

    def _scope(self, namespace: Namespace) -> str:
        scope = f"{self.kind}:{'/'.join(map(_label, namespace))}"
        if len(scope) > MAX_SCOPE_LENGTH:
            raise InvalidInput(
                f"the namespace {namespace!r:.80} is too long: as a scope it has {len(scope)} characters (maximum {MAX_SCOPE_LENGTH})"
            )
        return parse_scope(scope)

    @property
    def _program(self) -> str:
        # An agent's own writes are compared with the store. Items are not, because keys distinguish values; `_status` checks
        # trust.
        return f"program:{self.kind}"

    @property
    def _now(self) -> datetime:
        return self.mem.upkeep.clock()


def _new_end(item: KeyedItem, now: datetime) -> datetime | None:
    """The new expiry time of an item that is read now; None if it has none, or was prolonged a moment ago."""
    if item.ttl is None or item.memory.valid_until is None:
        return None
    life = timedelta(minutes=item.ttl)
    return now + life if now + life - item.memory.valid_until >= life * MIN_REFRESH_SHARE else None


def _minutes(ttl: Any) -> float:
    if isinstance(ttl, bool) or not isinstance(ttl, int | float) or not 0 < ttl < 10**9:
        raise InvalidInput(f"ttl {ttl!r:.40} must be a number of minutes above 0")
    return float(ttl)


def _label(label: str) -> str:
    """A part of a namespace as a part of a scope, with everything but letters and digits escaped."""
    return "".join(
        char if char.isalnum() or char in _LABEL_PUNCTUATION else quote(char, safe="", errors="surrogatepass")
        for char in label
    ).replace("~", "%7E")


def _name(key: str) -> str:
    """The name of an item's memory: `item:KEY`, or the digest of a longer or unusual key."""
    if _PLAIN_KEY.fullmatch(key):
        return f"{_ITEM}:{key}"
    # Written as a UUID, because a bare digest looks like a secret.
    digest = UUID(bytes=sha256(key.encode("utf-8", "surrogatepass")).digest()[:16])
    return f"{_ITEM}:{digest}"
