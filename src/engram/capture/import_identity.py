"""Matches imported records with stored memories.

It also limits what an file that no person vouches for may claim about its own memories and about those stored before.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, time
from typing import Any

from engram.dialects.source import CLAIMED_SOURCE, ImportSource, is_origin
from engram.gates.proposal import texts
from engram.model.arguments import RESERVED_MEMORY_KEYS, without_reserved
from engram.model.errors import InvalidInput
from engram.model.lazy import dataclass, field
from engram.model.memory import (
    CONTRADICTS,
    MAY_SUPERSEDE,
    Activation,
    Association,
    Feedback,
    Memory,
)
from engram.rules.sources import CONFIRMED, CORROBORATED, IMPORTED
from engram.store.protocol import Store

MIDNIGHT = time.min.replace(tzinfo=UTC)
"""The time of records that only have a date."""
OWN_ID = re.compile(r"(?:ENG|ABS|META|EP)-[A-Za-z0-9-]{1,80}")
"""Ids that a memory may have in this store; any other id becomes an alias."""


@dataclass(slots=True)
class RecordIdentities:
    """Maps the ids of one import's records to ids in this store."""

    store: Store
    reading: ImportSource
    exported_at: datetime | None = None
    """When this store was exported to the imported location; None if it never was."""
    wanted: set[str] = field(default_factory=set)
    """Every id among the records."""
    here: dict[str, str] = field(default_factory=dict)
    """The id of a record in its source → its id in this store."""
    by_alias: dict[str, str] = field(default_factory=dict)
    """The memories this import has added so far, by alias."""

    def identify(self, records: Sequence[Memory]) -> None:
        """Find the records that are already stored."""
        same_id = {memory.id: memory for memory in self.load_memories(records)}
        for memory in records:
            known = self.find_known(memory, same_id.get(memory.id)) if memory.id else None
            if known is not None:
                self.here[memory.id] = known.id
            elif memory.id not in same_id and OWN_ID.fullmatch(memory.id):
                self.here.setdefault(memory.id, memory.id)
        for name in {name for memory in records for name in referenced_ids(memory)}:
            self.id_here(name)

    def load_memories(self, records: Sequence[Memory]) -> list[Memory]:
        """The stored memories with the ids of these records."""
        ids = dict.fromkeys(self.here.get(memory.id, memory.id) for memory in records if memory.id)
        found = self.store.get_many(list(self.store.numbers(list(ids)).values()))
        return [hit.record for hit in found if isinstance(hit.record, Memory)]

    def find_known(self, memory: Memory, same_id: Memory | None) -> Memory | None:
        """The stored memory that a record is, or became in an earlier import."""
        is_it = same_id is not None and self.is_same(memory, same_id)
        # PLUR's ids are unique only within a directory, so an earlier import from the same directory takes precedence.
        if is_it and not self.reading.whole:
            return same_id
        # An id in another format is itself an alias here.
        for alias in (*self.aliases(memory), *(() if OWN_ID.fullmatch(memory.id) else (memory.id,))):
            known = self._find_by_alias(alias)
            if known is not None and alias in known.aliases and self.is_same(memory, known):
                return known
        return same_id if is_it else None

    def _find_by_alias(self, alias: str) -> Memory | None:
        """The one memory that an alias names."""
        try:
            return self.store.get(alias)
        except InvalidInput:  # the alias names several memories
            return None

    def aliases(self, memory: Memory) -> tuple[str, ...]:
        """The aliases of a record from this origin; its creation time distinguishes records that had the same id one after the other."""
        name = self.reading.name_of(memory.id)
        return (f"{name}@{memory.created:%Y%m%dT%H%M%S}", name) if memory.created else (name,)

    def is_same(self, memory: Memory, known: Memory) -> bool:
        """Whether a record describes this stored memory. Two stores may give the same id to different memories."""
        began = self.as_exported(known).created
        if memory.created is not None and began is not None and memory.created != began:
            return False
        if any(alias in known.aliases for alias in self.aliases(memory)):
            return True
        if self.exported_at is not None and memory.id in known.aliases:
            return True
        if memory.created != began:
            return False
        # Two directories may have been created on the same day; the same time of day means that one is a copy of the other.
        has_time = memory.created is not None and memory.created.timetz() != MIDNIGHT
        return not self.reading.whole or has_time or self._has_said(memory, known)

    def _has_said(self, memory: Memory, known: Memory) -> bool:
        """Whether a stored memory has, or once had, the words of a record."""
        if self.reading.projection is None:
            return (memory.statement, memory.scope) == (known.statement, known.scope)
        if memory.statement == known.statement:
            return True
        images = (image.memory for image in self.store.history(known.id))
        return any(image is not None and image.statement == memory.statement for image in images)

    def as_exported(self, known: Memory) -> Memory:
        """A stored memory as the format of this import would represent it."""
        return self.reading.projection.as_exported(known) if self.reading.projection is not None else known

    # -- names

    def id_here(self, name: str) -> str:
        """The id of a record in this store; "" if it is not known yet. A PLUR id is meaningless outside its store."""
        if name in self.here:
            return self.here[name]
        if name in self.wanted:
            return ""
        if not self.reading.whole or is_origin(name):
            return name
        alias = self.reading.name_of(name)
        known = self._find_by_alias(alias)
        self.here[name] = known.id if known is not None and alias in known.aliases else alias
        return self.here[name]

    def own_alias(self, record: Memory, taken: bool) -> tuple[str, ...]:
        """The aliases by which a later import finds the record, unless its id is enough."""
        has_id = OWN_ID.fullmatch(record.id) is not None
        if not taken and has_id and not self.reading.whole:
            return ()
        is_name = not has_id and not self.reading.made_ids and not taken and not self.is_taken(record.id, "")
        if is_name and not self.reading.whole:
            return (record.id,)
        aliases = self.aliases(record)
        own = aliases[0] if self.is_taken(aliases[-1], "") else aliases[-1]
        return (record.id, own) if is_name else (own,)

    def is_taken(self, alias: str, memory_id: str) -> bool:
        """Whether an alias is an id, a name or an alias of another memory."""
        try:
            found = self.store.get(alias)
        except InvalidInput:  # the alias names several memories
            return True
        owner = found.id if found is not None else self.by_alias.get(alias, memory_id)
        return owner != memory_id


def referenced_ids(memory: Memory) -> set[str]:
    """Every id that a memory refers to."""
    links = {link.target for link in memory.associations if not is_document_link(link)}
    return {*links, *memory.supersedes, memory.superseded_by, memory.lineage} - {""}


def is_document_link(link: Association) -> bool:
    """Whether a PLUR link leads to a document, whose path is not an id."""
    return bool(link.extra.get("target_type", "engram") != "engram")


CLAIMING = (CONTRADICTS, MAY_SUPERSEDE)
"""The types of links that make a claim about their target."""
_JUDGED_FIELDS = frozenset((
    "statement", "situation", "form", "type", "context", "rationale", "domain", "trigger_context", "tags", "cues", "entities", "anchors",
))  # fmt: skip
"""The fields that determine whether a person must approve a memory."""


_LOCAL_FIELDS = ("source", "learned_by", "pinned", "verification", "critical_slot")
"""Fields that only this store sets."""
_USE_FIELDS = ("policy_class", "feedback", "derivation_count", "activation")
"""Fields taken from a file only when a whole store is merged; they do not raise a memory above evidence."""


def without_trust_claims(memory: Memory, source: str, *, keeps_use: bool, now: datetime) -> Memory:
    """A record with the file as its source; the source it claims is kept for display and export."""
    claims: dict[str, Any] = {} if keeps_use else {
        "policy_class": "", "feedback": Feedback(), "derivation_count": 1, "activation": Activation(last_accessed=now),
    }  # fmt: skip
    doubted = "unverified" if memory.verification in (CONFIRMED, CORROBORATED) else memory.verification
    return memory.replace(
        source=source, learned_by=IMPORTED, pinned=False, verification=doubted, critical_slot="",
        metadata=without_reserved(memory.metadata),
        extra=_with_claim(memory, _claimed_source(memory, source)), **claims,
    )  # fmt: skip


def with_local_fields(record: Memory, known: Memory, *, keeps_use: bool) -> Memory:
    """A record of a stored memory, with the fields that only this store sets."""
    ours = known.extra.get(CLAIMED_SOURCE, "")
    theirs = record.extra.get(CLAIMED_SOURCE, "")
    claimed = theirs if known.learned_by == IMPORTED and theirs != known.source else ours
    decided = {key: known.metadata[key] for key in RESERVED_MEMORY_KEYS if key in known.metadata}
    return record.replace(
        **{name: getattr(known, name) for name in (_LOCAL_FIELDS if keeps_use else (*_LOCAL_FIELDS, *_USE_FIELDS))},
        metadata={**record.metadata, **decided},
        extra=_with_claim(record, claimed),
    )


def _claimed_source(memory: Memory, source: str) -> str:
    """The source a record claims; a record imported before may name its original source."""
    before = memory.extra.get(CLAIMED_SOURCE)
    if isinstance(before, str) and before and memory.source.partition(":")[0] in ("", IMPORTED):
        return before
    return memory.source if memory.source != source else ""


def _with_claim(memory: Memory, claimed: Any) -> dict[str, Any]:
    rest = {key: value for key, value in memory.extra.items() if key != CLAIMED_SOURCE}
    return {**rest, CLAIMED_SOURCE: claimed} if claimed else rest


def has_same_content(one: Memory, other: Memory) -> bool:
    """Whether two memories agree in every field that determines whether a person must approve them."""
    return _judged_texts(one) == _judged_texts(other)


def _judged_texts(memory: Memory) -> dict[str, str]:
    return {name: text for name, text in texts(memory) if name in _JUDGED_FIELDS}


@dataclass(slots=True)
class RecordOrigin:
    """Separates what one import added from older memories, and notes the claims that records make about the latter."""

    store: Store
    ids: RecordIdentities
    source: str
    added: Mapping[str, Memory]
    """The memories this import has added so far, by their ids in this store."""
    settled: set[str] = field(default_factory=set)
    """The ids of records that have been processed."""
    reported: set[str] = field(default_factory=set)
    """The memories whose links to others have been reported."""
    _notices: list[str] = field(default_factory=list)

    def take_notices(self) -> tuple[str, ...]:
        """The notices about omitted parts of records since the last call."""
        notices, self._notices = tuple(self._notices), []
        return notices

    def own_names(
        self, memory: Memory, record: Memory, others: dict[str, str], postpone: Callable[[], None]
    ) -> dict[str, str]:
        """The ids, in this store, about which a record may make claims; ids it may not name at all are removed from `others`.

        A record that repeats a stored memory is that memory: records may link to it but make no claims about it.
        """
        known = self.store.get(memory.id) if others else None
        stated = set() if known is None else referenced_ids(known)
        own: dict[str, str] = {}
        foreign = []
        for name, new in list(others.items()):
            if new in stated or self.is_from_here(new):
                own[name] = new
            elif name in self.ids.wanted and name not in self.settled and self.store.get(new) is None:
                if name in _claimed_ids(record):
                    postpone()  # it may still come
            elif name not in self.ids.wanted:
                foreign.append(name)
                del others[name]
        if foreign and memory.id not in self.reported:
            self.reported.add(memory.id)
            listed = ", ".join(sorted(foreign))
            self._notices.append(f"names {listed}, which did not come from {self._name}; imported without that")
        return own

    def without_foreign_key(self, memory: Memory, other: Memory) -> Memory:
        """A record without its conflict key, if a memory from elsewhere has the same one."""
        self._notices.append(
            f"has the conflict key of {other.id}, which did not come from {self._name}; imported without it"
        )
        return memory.replace(conflict_key="")

    def is_from_here(self, memory_id: str) -> bool:
        """Whether an id belongs to a memory from this origin, or to a record there that never arrived."""
        place = f"{self.ids.reading.origin}/" if self.ids.reading.origin else ""
        if memory_id in self.added or (place and memory_id.startswith(place)):
            return True
        known = self.store.get(memory_id)
        if known is None or known.learned_by != IMPORTED:
            return False
        return known.source == self.source or (bool(place) and any(one.startswith(place) for one in known.aliases))

    def is_own_lineage(self, lineage: str, memory: Memory, others: Mapping[str, str], own: Mapping[str, str]) -> bool:
        """Whether all versions in a record's lineage come from this origin."""
        if not lineage or self.ids.id_here(lineage) == memory.id or lineage in own:
            return True
        if lineage in others or OWN_ID.fullmatch(lineage):
            return False
        versions = self.store.lineage(lineage)
        return all(version.id == memory.id or self.is_from_here(version.id) for version in versions)

    @property
    def _name(self) -> str:
        return self.source.removeprefix(f"{IMPORTED}:")


def _claimed_ids(memory: Memory) -> set[str]:
    """The ids about which a memory makes claims."""
    links = {link.target for link in memory.associations if link.type in CLAIMING}
    return {*links, *memory.supersedes, memory.superseded_by, memory.lineage}
