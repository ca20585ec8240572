"""What an import did with each record, and the report of all of it."""

from typing import Literal, NamedTuple

from engram.model.lazy import dataclass, field
from engram.model.memory import Memory
from engram.rules.sources import is_evidence

OutcomeKind = Literal["created", "updated", "unchanged", "skipped"]


class RecordOutcome(NamedTuple):
    """What becomes of one record."""

    kind: OutcomeKind
    memory_id: str = ""
    """The memory it is here."""
    memory: Memory | None = None
    """What to write, if anything."""
    reason: str = ""
    """Why it is skipped."""
    notices: tuple[str, ...] = ()
    """What of it was left out."""


@dataclass(slots=True)
class ImportReport:
    """What happened to each record, by id here; every skipped one with its reason."""

    created: list[str] = field(default_factory=list)
    updated: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    """What is known already: the same record, or a memory with the same words."""
    waiting: list[str] = field(default_factory=list)
    evidence: list[str] = field(default_factory=list)
    """The active ones that give no directions until a person confirms them."""
    skipped: list[tuple[str, str]] = field(default_factory=list)
    notices: list[tuple[str, str]] = field(default_factory=list)
    """What was left out of records that are not skipped, such as a link to a memory that is not the file's."""
    not_read: tuple[str, ...] = ()
    unseen: dict[str, int] = field(default_factory=dict)
    """Scopes that a plain question asked here does not look into, and how many memories came into each."""

    def add(self, label: str, outcome: RecordOutcome) -> None:
        """Count one record."""
        if outcome.kind == "skipped":
            self.skipped.append((label, outcome.reason))
        else:
            {"created": self.created, "updated": self.updated, "unchanged": self.unchanged}[outcome.kind].append(
                outcome.memory_id
            )
        self.notices += [(label, notice) for notice in outcome.notices]
        memory = outcome.memory
        if memory is not None and memory.status == "candidate":
            self.waiting.append(memory.id)
        elif memory is not None and memory.status == "active" and is_evidence(memory):
            self.evidence.append(memory.id)
