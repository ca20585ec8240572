"""What the steps of one import share."""

from collections.abc import Callable
from datetime import datetime

from engram.capture.import_decisions import ContentKey, LocalDecisions
from engram.capture.import_identity import RecordIdentities
from engram.capture.import_links import RecordLinks
from engram.capture.import_origin import RecordOrigin
from engram.decisions.locked import LockedMemories
from engram.dialects.source import ImportSource, without_origin
from engram.gates.instructions import injection_problem
from engram.gates.particulars import LABEL_FIELDS, particular_problem
from engram.gates.proposal import GateSettings
from engram.gates.trust import tier_of
from engram.model.lazy import dataclass, field
from engram.model.memory import Memory
from engram.rules.sources import IMPORTED
from engram.store.protocol import Filters, Store
from engram.text.content_hash import same_text

CURRENT = ("active", "dormant")
OPEN_STATUSES = (*CURRENT, "candidate")


def source_of(name: str) -> str:
    """The source in the journal of what a file brings, and of its memories."""
    return f"{IMPORTED}:{name}"


@dataclass(slots=True)
class ImportRun:
    """One import into one store: how it is done, and what it has added so far."""

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
    """What this import has added so far, by the id it has here."""
    by_content: dict[ContentKey, str] = field(default_factory=dict)
    """The same by content and scope."""
    held: set[str] = field(default_factory=set)
    """Records that wait for review here, and are current where they come from."""
    _proposals: dict[str, Memory] | None = None

    @property
    def actor(self) -> str:
        """Who decides, for the journal: the file, unless a person vouches for it."""
        return "human" if self.trusted else self.source

    @property
    def proposals(self) -> dict[str, Memory]:
        """The changes that earlier imports of this file proposed and that still wait, by the memory that each would supersede."""
        if self._proposals is None:
            waiting = self.store.listing(Filters(statuses=("candidate",)))
            ours = (one for one in waiting if one.learned_by == IMPORTED and one.source == self.source)
            self._proposals = {older: one for one in ours for older in one.supersedes}
        return self._proposals

    def needs_approval(self, memory: Memory) -> bool:
        """Whether a person has to approve what a memory says."""
        # The checksum in an origin may decode to anything.
        memory = memory.replace(aliases=tuple(map(without_origin, memory.aliases)))
        if self.candidates or injection_problem(memory):
            return True
        return not self.trusted and (tier_of(memory) > 1 or bool(particular_problem(memory, LABEL_FIELDS)))

    def twin(self, record: Memory, key: ContentKey, memories: LockedMemories) -> str:
        """The memory that says exactly this, symbols included, or ""."""
        known = self.added.get(self.by_content.get(key, "")) or memories.exact(*key)
        return known.id if known is not None and same_text(known.statement, record.statement) else ""

    def free_aliases(self, record: Memory, memory_id: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """A record's aliases without those of other memories here, and a notice of these: no file makes a name ambiguous."""
        taken = [alias for alias in record.aliases if self.ids.is_taken(alias, memory_id)]
        free = tuple(alias for alias in record.aliases if alias not in taken)
        if not taken:
            return free, ()
        many = len(taken) > 1
        verb, left_out = ("name", "them") if many else ("names", "this alias")
        return free, (f"{', '.join(map(repr, taken))} already {verb} another memory; imported without {left_out}",)
