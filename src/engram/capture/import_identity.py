"""Which memory here a record from elsewhere is: by its id, by the alias of an earlier import, and by when it began."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime, time

from engram.dialects.source import ImportSource, is_origin
from engram.model.errors import InvalidInput
from engram.model.lazy import dataclass, field
from engram.model.memory import Association, Memory
from engram.store.protocol import Store

MIDNIGHT = time.min.replace(tzinfo=UTC)
"""The time of what only has a date."""
OWN_ID = re.compile(r"(?:ENG|ABS|META|EP)-[A-Za-z0-9-]{1,80}")
"""An id that a memory may have here; any other becomes an alias."""


@dataclass(slots=True)
class RecordIdentities:
    """The ids that the records of one import have here."""

    store: Store
    reading: ImportSource
    exported_at: datetime | None = None
    """When this store was exported to the place that is imported; None if it never was."""
    wanted: set[str] = field(default_factory=set)
    """Every id among the records."""
    here: dict[str, str] = field(default_factory=dict)
    """The id a record has elsewhere → the id it has here."""
    by_alias: dict[str, str] = field(default_factory=dict)
    """What this import has added so far, by alias."""

    def identify(self, records: Sequence[Memory]) -> None:
        """Find the records that are here already."""
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
        """The memories here with the ids of these records."""
        ids = dict.fromkeys(self.here.get(memory.id, memory.id) for memory in records if memory.id)
        found = self.store.get_many(list(self.store.numbers(list(ids)).values()))
        return [hit.record for hit in found if isinstance(hit.record, Memory)]

    def find_known(self, memory: Memory, same_id: Memory | None) -> Memory | None:
        """The memory here that a record became when it was imported before, or that it is."""
        is_it = same_id is not None and self.is_same(memory, same_id)
        # PLUR's ids mean something only within their directory: what came from there before takes precedence.
        if is_it and not self.reading.whole:
            return same_id
        # An id of another grammar is an alias here by itself.
        for alias in (*self.aliases(memory), *(() if OWN_ID.fullmatch(memory.id) else (memory.id,))):
            known = self._find_by_alias(alias)
            if known is not None and alias in known.aliases and self.is_same(memory, known):
                return known
        return same_id if is_it else None

    def _find_by_alias(self, alias: str) -> Memory | None:
        """The one memory that an alias names."""
        try:
            return self.store.get(alias)
        except InvalidInput:  # of several
            return None

    def aliases(self, memory: Memory) -> tuple[str, ...]:
        """What a record of this origin may be called here; a time tells apart two that had the same id one after the other."""
        name = self.reading.name_of(memory.id)
        return (f"{name}@{memory.created:%Y%m%dT%H%M%S}", name) if memory.created else (name,)

    def is_same(self, memory: Memory, known: Memory) -> bool:
        """Whether a memory here is the one that a record describes. Two stores give one id to different memories."""
        began = self.as_exported(known).created
        if memory.created is not None and began is not None and memory.created != began:
            return False
        if any(alias in known.aliases for alias in self.aliases(memory)):
            return True
        if self.exported_at is not None and memory.id in known.aliases:
            return True
        if memory.created != began:
            return False
        # Two directories may well have begun on one day; they share a moment only if one is a copy of the other.
        has_time = memory.created is not None and memory.created.timetz() != MIDNIGHT
        return not self.reading.whole or has_time or self._has_said(memory, known)

    def _has_said(self, memory: Memory, known: Memory) -> bool:
        """Whether a memory here has, or once had, the words of a record."""
        if self.reading.projection is None:
            return (memory.statement, memory.scope) == (known.statement, known.scope)
        if memory.statement == known.statement:
            return True
        images = (image.memory for image in self.store.history(known.id))
        return any(image is not None and image.statement == memory.statement for image in images)

    def as_exported(self, known: Memory) -> Memory:
        """A memory here as the format of this import would tell it."""
        return self.reading.projection.as_exported(known) if self.reading.projection is not None else known

    # -- names

    def id_here(self, name: str) -> str:
        """What a record's id is here; "" if it is not known yet. An id of PLUR's means nothing outside its store."""
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
        """The aliases by which the record is found next time, unless its id is enough."""
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
        except InvalidInput:  # of several
            return True
        owner = found.id if found is not None else self.by_alias.get(alias, memory_id)
        return owner != memory_id


def referenced_ids(memory: Memory) -> set[str]:
    """Every id that a memory names."""
    links = {link.target for link in memory.associations if not is_document_link(link)}
    return {*links, *memory.supersedes, memory.superseded_by, memory.lineage} - {""}


def is_document_link(link: Association) -> bool:
    """Whether a link of PLUR's leads to a document, whose path is no id."""
    return bool(link.extra.get("target_type", "engram") != "engram")
