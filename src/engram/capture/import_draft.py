"""Records of a file as memories: what each says, under the source that it has here."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from engram.capture.draft import draft
from engram.capture.import_run import CURRENT, ImportRun
from engram.capture.import_trust import without_trust_claims
from engram.gates.folded_view import without_invisible
from engram.gates.secrets.allowed import AllowedValues
from engram.gates.secrets.scan import secrets_problem
from engram.gates.shape import added_problem
from engram.gates.trust import is_human
from engram.model.arguments import refuse_deep
from engram.model.errors import EngramError, InvalidInput
from engram.model.fields import FIELD_ALIASES
from engram.model.lazy import dataclass, replace
from engram.model.memory import Evidence, Memory
from engram.model.reserved_keys import without_reserved
from engram.rules.numbers import HORIZON_DAYS
from engram.rules.scopes import parse_scope
from engram.rules.sources import CONFIRMED, IMPORTED
from engram.store.records import ANSWERING_STATUSES, readable_image

_FIELDS = frozenset(Memory.__dataclass_fields__)
_LONGEST_ID = 500


@dataclass(slots=True)
class RecordDrafts:
    """Makes memories of the records of one import."""

    run: ImportRun

    def draft(self, record: "Memory | Mapping[str, Any]") -> Memory:
        """The memory a record describes. Raises `EngramError` or what its fields raise if it is none that may be stored."""
        memory = self._stamp_provenance(without_invisible(self._memory(record)))
        readable_image(memory if memory.id else memory.replace(id="the record"))
        return memory

    def refuse(self, memory: Memory) -> None:
        """Raise `InvalidInput` for a memory that cannot be stored."""
        allowed = AllowedValues(self.run.settings.allowed_values)
        problem = (
            self._id_problem(memory)
            or added_problem(memory, self.run.settings)
            or secrets_problem(memory, allowed=allowed)
        )
        if problem:
            raise InvalidInput(problem)

    def hold_for_review(self, memory: Memory) -> Memory:
        """The memory as a candidate, if somebody has to approve what it says."""
        may_answer = memory.status in (CURRENT if self.run.trusted else ANSWERING_STATUSES)
        if not may_answer or not self.run.needs_approval(memory):
            return memory
        self.run.held.add(memory.id)
        return memory.replace(status="candidate")

    def _id_problem(self, memory: Memory) -> str:
        """Why an id of another tool cannot become an alias; "" if it can."""
        if self.run.reading.projection is None or (memory.id.isprintable() and len(memory.id) <= _LONGEST_ID):
            return ""
        return f"its id has more than {_LONGEST_ID} characters, or one that cannot be shown"

    def _memory(self, record: "Memory | Mapping[str, Any]") -> Memory:
        """The memory a record describes; one without an id begins now."""
        now = self.run.clock()
        refuse_deep(record.extra if isinstance(record, Memory) else record, "the record")
        if not isinstance(record, Memory):
            return _from_fields(record, now)
        if record.id:
            return record
        days = HORIZON_DAYS if record.decay_days is None else record.decay_days
        return record.replace(scope=parse_scope(record.scope), created=record.created or now, decay_days=days)

    def _stamp_provenance(self, memory: Memory) -> Memory:
        """The memory as the file's word; if a person vouches for the file, as what it says of itself."""
        run = self.run
        if not run.trusted:
            memory = memory.replace(evidence=self._foreign_evidence(memory)) if memory.evidence else memory
            return without_trust_claims(memory, run.source, keeps_use=run.reading.whole, now=run.clock())
        claimed = is_human(memory.source) and not run.by_person
        source = run.source if claimed or not memory.source else memory.source
        memory = memory.replace(source=source, learned_by=memory.learned_by or IMPORTED)
        vouched = memory.learned_by == IMPORTED and memory.verification == "unverified"
        return memory.replace(verification=CONFIRMED) if vouched else memory

    def _foreign_evidence(self, memory: Memory) -> tuple[Evidence, ...]:
        """Its evidence without what was said here: a file does not make that its own, to be quoted and purged along with it."""
        store = self.run.store
        known = self.run.ids.find_known(memory, store.get(memory.id)) if memory.id else None
        ours = {evidence.event for evidence in known.evidence} if known is not None else set()
        return tuple(one for one in memory.evidence if one.event in ours or store.event(one.event) is None)


def reason_of(error: Exception) -> str:
    """Why a record is no memory."""
    return str(error) if isinstance(error, EngramError) else "its fields do not have the form of a memory's"


def _from_fields(record: Mapping[str, Any], now: datetime) -> Memory:
    """A memory from fields named as callers name them; keys that are none of a memory's are kept as they are."""
    own = {key: value for key, value in record.items() if key in _FIELDS or key in FIELD_ALIASES}
    extra = {key: value for key, value in record.items() if key not in own}
    memory_id = str(own.pop("id", "") or "")
    if isinstance(own.get("metadata"), Mapping):
        own["metadata"] = without_reserved(own["metadata"])
    memory = draft(own, learned_by=IMPORTED, source="", now=now)
    return memory.replace(id=memory_id, extra=extra, activation=replace(memory.activation, last_accessed=now))
