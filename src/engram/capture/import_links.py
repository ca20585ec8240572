"""The links among imported records, whose ids may be others here; what is not known yet is linked at the end."""

from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial

from engram.capture.import_decisions import IMPORT
from engram.capture.import_identity import RecordIdentities, is_document_link, referenced_ids
from engram.capture.import_merge import missing_links
from engram.capture.import_origin import RecordOrigin
from engram.capture.import_trust import CLAIMING
from engram.decisions.change import Change
from engram.decisions.conflicts import remove_wait_mark
from engram.decisions.execution import execute_change
from engram.decisions.locked import LockedMemories
from engram.model.lazy import dataclass, field, replace
from engram.model.memory import Memory
from engram.store.protocol import Store

IMPORT_BATCH_SIZE = 500
"""Memories per decision: bounds how long other writers wait."""


@dataclass(slots=True)
class RecordLinks:
    """Sets the links of records to the ids that those they name have here."""

    store: Store
    ids: RecordIdentities
    added: Mapping[str, Memory]
    """What this import has added so far, by the id it has here."""
    origin: RecordOrigin | None = None
    """What a record may speak of; None if a person vouches for the file."""
    unlinked: dict[str, Memory] = field(default_factory=dict)
    """Records that were written before the new ids of all they link to were known."""

    def resolve_links(self, memory: Memory, record: Memory) -> Memory:
        """The memory with every id it names as it is here; what is not known yet is left out until `complete`."""
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
        """Set the links of what was written before all ids were known."""
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
