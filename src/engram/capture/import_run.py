"""Shared steps of an import.

These are the local decisions that no file overrides, the comparison of a record with the stored memory, and the links
among records, whose ids may differ in this store.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from itertools import pairwise
from typing import Any, Final

from engram.capture.import_identity import CLAIMING, RecordIdentities, RecordOrigin, is_document_link, referenced_ids
from engram.capture.withdrawal import Withdrawals
from engram.decisions.execution import Change, LockedMemories, execute_change
from engram.decisions.versions import remove_wait_mark
from engram.dialects.engram_yaml import to_mapping
from engram.dialects.source import ImportSource, without_origin
from engram.gates.instructions import injection_problem
from engram.gates.neighbourhood import Recurrence
from engram.gates.pipeline import LABEL_FIELDS, particular_problem
from engram.gates.proposal import GateSettings
from engram.gates.trust import tier_of
from engram.model.lazy import dataclass, field, fields, replace
from engram.model.memory import LIVE_STATUSES, Memory
from engram.rules.sources import IMPORTED
from engram.store.protocol import Filters, Image, Store
from engram.text.content_hash import content_hash, same_text

IMPORT: Final = "import"
"""The operation in the journal."""
ContentKey = tuple[str, str]
"""The hash of a statement, and its scope."""


@dataclass(slots=True)
class LocalDecisions:
    """The decisions of one store, looked up once per slice of an import."""

    store: Store
    _out: dict[ContentKey, Recurrence] = field(default_factory=dict)
    """The rejected or retired memory that each looked-up memory repeats, by content and scope."""

    def look_up(self, memories: Sequence[Memory]) -> None:
        """Find which of these memories repeat one that a person rejected (in any words, in any part of the memory) or retired."""
        found = Withdrawals(self.store).find_recurrences(memories, inside=True)
        by_identity = {id(memory): memory for memory in memories}
        self._out |= {content_key(by_identity[i]): out for i, out in found.items()}

    def find_rejected(self, memory: Memory) -> Recurrence | None:
        """The memory that a person rejected here and that a looked-up memory certainly repeats."""
        out = self._out.get(content_key(memory))
        return out if out is not None and out.is_sure and out.memory.status == "rejected" else None

    def is_withdrawn(self, memory: Memory, known: Memory) -> bool:
        """Whether a looked-up memory repeats one, other than `known`, that a person rejected or retired."""
        out = self._out.get(content_key(memory))
        return out is not None and out.memory.id != known.id

    def needs_person(self, memory: Memory) -> bool:
        """Whether a looked-up memory repeats a retired one, or probably a rejected one, so that a person must decide again."""
        out = self._out.get(content_key(memory))
        return out is not None and (out.memory.status == "retired" or not out.is_sure)

    def has_status_decision(self, known: Memory) -> bool:
        """Whether any decision here other than an import changed the status of a memory."""
        changes = (
            later
            for earlier, later in pairwise(self.store.history(known.id))
            if _image_status(earlier) != _image_status(later)
        )
        return any(later.op != IMPORT for later in changes)


def content_key(memory: Memory) -> ContentKey:
    """The key under which a memory's content is looked up."""
    return content_hash(memory.statement), memory.scope


def _image_status(image: Image) -> str:
    return image.memory.status if image.memory is not None else ""


def says_the_same(theirs: Memory, ours: Memory) -> bool:
    """Whether two records have the same content, ignoring what this store, use and links add."""
    return _comparable_fields(
        theirs.replace(status=ours.status) if ours.status == "candidate" else theirs
    ) == _comparable_fields(ours)


def _comparable_fields(memory: Memory) -> dict[str, Any]:
    blank = Memory(id="", statement="")
    return to_mapping(
        memory.replace(
            id="", name="", aliases=(), source="", learned_by="", imported_at=None, activation=blank.activation, feedback=blank.feedback,
            updated=None, associations=(), supersedes=(), superseded_by="",
        )
    )  # fmt: skip


_NOT_COMPARED = frozenset({"id", "name", "aliases", "version", "updated", "associations", "imported_at"})
_COMPARED = tuple(field.name for field in fields(Memory) if field.name not in _NOT_COMPARED)
_OF_USE = frozenset({"activation"})
"""Fields that each program updates by its own use; different values are not a conflict."""


def has_same_fields(theirs: Memory, ours: Memory) -> bool:
    """Whether all fields of two memories are the same, links included, so that there is nothing to merge."""
    return all(getattr(theirs, name) == getattr(ours, name) for name in (*_COMPARED, "associations"))


def missing_links(theirs: Memory, ours: Memory, before: Sequence[Memory] = ()) -> Memory:
    """Our memory with the links of theirs that it lacks, except links that an earlier version of ours had."""
    versions = (ours, *before)
    linked = {(link.target, link.type) for version in versions for link in version.associations}
    replaced = {earlier for version in versions for earlier in version.supersedes}
    was_superseded = any(version.superseded_by for version in versions)
    return ours.replace(
        associations=(
            *ours.associations,
            *(link for link in theirs.associations if (link.target, link.type) not in linked),
        ),
        supersedes=(*ours.supersedes, *(earlier for earlier in theirs.supersedes if earlier not in replaced)),
        superseded_by=ours.superseded_by if was_superseded else theirs.superseded_by,
    )


def merge_by_field(theirs: Memory, ours: Memory, history: Sequence[Image]) -> tuple[Memory, list[str]]:
    """Our memory with their changes since the import, and the fields that both changed, which keep our values.

    The journal separates the two: imports recorded the other store's values, and any other decision is our change.
    """
    before = _changed_here(history)
    adopted: dict[str, Any] = {}
    conflicts: list[str] = []
    for name in _COMPARED:
        value = getattr(theirs, name)
        if value == getattr(ours, name):
            continue
        if name not in before:
            adopted[name] = value
        elif value != before[name] and name not in _OF_USE:
            conflicts.append(name)
    links = theirs.associations
    if "associations" in before:  # links were changed here, so keep ours and add only their new ones
        known = {(link.target, link.type) for image in history if image.memory for link in image.memory.associations}
        links = (*ours.associations, *(link for link in links if (link.target, link.type) not in known))
    return ours.replace(**adopted, associations=links), conflicts


def _changed_here(images: Sequence[Image]) -> Mapping[str, Any]:
    """The fields changed here, each with its original value."""
    changed: dict[str, Any] = {}
    for earlier, later in pairwise(images):
        if later.op != IMPORT:
            for name in (*_COMPARED, "associations"):
                value = getattr(earlier.memory, name)
                if value != getattr(later.memory, name):
                    changed.setdefault(name, value)
    return changed


IMPORT_BATCH_SIZE = 500
"""Memories per decision; bounds how long other writers wait."""


@dataclass(slots=True)
class RecordLinks:
    """Translates the ids in records' links to ids in this store."""

    store: Store
    ids: RecordIdentities
    added: Mapping[str, Memory]
    """The memories this import has added so far, by their ids in this store."""
    origin: RecordOrigin | None = None
    """Limits which memories a record may refer to; None if a person vouches for the file."""
    unlinked: dict[str, Memory] = field(default_factory=dict)
    """Records written before all their links could be resolved."""

    def resolve_links(self, memory: Memory, record: Memory) -> Memory:
        """The memory with every id it refers to translated; unknown ids are left out until `complete`."""
        ids = {name: self.ids.id_here(name) for name in referenced_ids(record)}
        if not all(ids.values()):
            self.unlinked[memory.id] = record
        others = {name: new for name, new in ids.items() if new and new != memory.id}
        own, is_own = others, True
        if (origin := self.origin) is not None:
            own = origin.own_names(memory, record, others, lambda: self.unlinked.update({memory.id: record}))
            is_own = origin.is_own_lineage(record.lineage, memory, others, own)
        links = (
            link if is_document_link(link) else replace(link, target=others[link.target])
            for link in record.associations
            if is_document_link(link) or link.target in (own if link.type in CLAIMING else others)
        )
        return memory.replace(
            associations=tuple(links) if origin is None else tuple(map(remove_wait_mark, links)),
            supersedes=tuple(others[name] for name in record.supersedes if name in own),
            superseded_by=own.get(record.superseded_by, ""),
            lineage=(ids.get(record.lineage) or memory.id) if record.lineage and is_own else "",
            revision=record.revision if is_own else 1,
        )

    def complete(self, name: str, actor: str, clock: Callable[[], datetime]) -> None:
        """Set the links of records that were written before all ids were known."""
        records, self.unlinked = self.unlinked, {}
        ids = list(records)
        for start in range(0, len(ids), IMPORT_BATCH_SIZE):
            some = ids[start : start + IMPORT_BATCH_SIZE]
            note = f"links of what came from {name}"
            plan = partial(self._complete_slice, {memory_id: records[memory_id] for memory_id in some})
            execute_change(self.store, clock, Change(op=IMPORT, actor=actor, plan=plan, note=note, related=some))

    def _complete_slice(self, records: Mapping[str, Memory], memories: LockedMemories) -> None:
        for memory_id, record in records.items():
            memory = memories.get(memory_id)
            if memory is None:
                continue
            linked = self.resolve_links(memory, record)
            if memory_id not in self.added:  # its other links may be ours
                linked = missing_links(linked, memory)
            if linked != memory:
                memories.put(linked, judged=True)


OPEN_STATUSES = (*LIVE_STATUSES, "candidate")


def source_of(name: str) -> str:
    """The source, in the journal and in memories, of a file's records."""
    return f"{IMPORTED}:{name}"


@dataclass(slots=True)
class ImportRun:
    """One import into one store: its settings, and the memories it has added so far."""

    store: Store
    clock: Callable[[], datetime]
    source: str
    reading: ImportSource
    settings: GateSettings
    by_person: bool
    candidates: bool
    trusted: bool
    ids: RecordIdentities
    origin: RecordOrigin
    links: RecordLinks
    decisions: LocalDecisions
    added: dict[str, Memory]
    """The memories this import has added so far, by their ids in this store."""
    by_content: dict[ContentKey, str] = field(default_factory=dict)
    """The ids of these memories, by content and scope."""
    held: set[str] = field(default_factory=set)
    """Records that wait for review here although they are current in their source."""
    _proposals: dict[str, Memory] | None = None

    @property
    def actor(self) -> str:
        """The actor for the journal: the file, or "human" if a person vouches for it."""
        return "human" if self.trusted else self.source

    @property
    def proposals(self) -> dict[str, Memory]:
        """Changes proposed by earlier imports of this file that still wait, by the memory each would supersede."""
        if self._proposals is None:
            waiting = self.store.listing(Filters(statuses=("candidate",)))
            ours = (one for one in waiting if one.learned_by == IMPORTED and one.source == self.source)
            self._proposals = {older: one for one in ours for older in one.supersedes}
        return self._proposals

    def needs_approval(self, memory: Memory) -> bool:
        """Whether a person must approve a memory."""
        # The checksum in an origin could decode to arbitrary text.
        memory = memory.replace(aliases=tuple(map(without_origin, memory.aliases)))
        if self.candidates or injection_problem(memory):
            return True
        return not self.trusted and (tier_of(memory) > 1 or bool(particular_problem(memory, LABEL_FIELDS)))

    def twin(self, record: Memory, key: ContentKey, memories: LockedMemories) -> str:
        """The id of a memory with exactly this text, including symbols; "" if there is none."""
        known = self.added.get(self.by_content.get(key, "")) or memories.exact(*key)
        return known.id if known is not None and same_text(known.statement, record.statement) else ""

    def free_aliases(self, record: Memory, memory_id: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """A record's aliases without those of other memories, and a notice about the omitted ones; a file must not make a name ambiguous."""
        taken = [alias for alias in record.aliases if self.ids.is_taken(alias, memory_id)]
        free = tuple(alias for alias in record.aliases if alias not in taken)
        if not taken:
            return free, ()
        many = len(taken) > 1
        verb, left_out = ("name", "them") if many else ("names", "this alias")
        return free, (f"{', '.join(map(repr, taken))} already {verb} another memory; imported without {left_out}",)
