"""The links among imported records, whose ids may be others here; what is not known yet is linked at the end."""

from engram.capture.import_identity import RecordIdentities, leads_out, named_in
from engram.capture.import_merge import IMPORT
from engram.model.lazy import dataclass, field, replace
from engram.model.memory import Memory
from engram.store.protocol import Store

BATCH = 500
"""Memories per decision: bounds how long other writers wait."""


@dataclass(slots=True)
class RecordLinks:
    """Sets the links of records to the ids that those they name have here."""

    store: Store
    ids: RecordIdentities
    unlinked: dict[str, Memory] = field(default_factory=dict)
    """Records that were written before the new ids of all they link to were known."""

    def relinked(self, memory: Memory, record: Memory) -> Memory:
        """The memory with every id it names as it is here; what is not known yet is left out until `complete`."""
        ids = {name: self.ids.id_here(name) for name in named_in(record)}
        if not all(ids.values()):
            self.unlinked[memory.id] = record
        others = {name: new for name, new in ids.items() if new and new != memory.id}
        links = (
            link if leads_out(link) else replace(link, target=others[link.target])
            for link in record.associations
            if leads_out(link) or link.target in others
        )
        return memory.but(
            associations=tuple(links),
            supersedes=tuple(others[name] for name in record.supersedes if name in others),
            superseded_by=others.get(record.superseded_by, ""),
            lineage=(ids.get(record.lineage) or memory.id) if record.lineage else "",
        )

    def complete(self, name: str, actor: str) -> None:
        """Set the links of what was written before all ids were known."""
        records, self.unlinked = self.unlinked, {}
        ids = list(records)
        for start in range(0, len(ids), BATCH):
            some = ids[start : start + BATCH]
            reason = f"links of what came from {name}"
            with self.store.deciding(IMPORT, actor=actor, reason=reason, about=some) as deciding:
                for memory_id in some:
                    memory = deciding.get(memory_id)
                    if memory is not None and (linked := self.relinked(memory, records[memory_id])) != memory:
                        deciding.put(linked)
