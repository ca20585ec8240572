"""Imports records: those that this store lacks, and changes to those it has.
A file's claims about trust count only if the person at the terminal vouches for it.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple

from engram.capture.draft import draft
from engram.capture.import_identity import OWN_ID, RecordIdentities, RecordOrigin, without_trust_claims
from engram.capture.import_known import ImportReport, KnownRecords, RecordOutcome
from engram.capture.import_run import (
    IMPORT,
    IMPORT_BATCH_SIZE,
    OPEN_STATUSES,
    ImportRun,
    LocalDecisions,
    RecordLinks,
    source_of,
)
from engram.decisions.execution import Change, LockedMemories, execute_change
from engram.decisions.versions import outranking_head, refuse_cycle
from engram.dialects.source import EXPORT_PLACES, ImportSource, record_label
from engram.gates.proposal import GateSettings, added_problem, without_invisible
from engram.gates.secrets.exemptions import AllowedValues
from engram.gates.secrets.scan import secrets_problem
from engram.gates.trust import is_human
from engram.model.arguments import refuse_deep, without_reserved
from engram.model.errors import EngramError, InvalidInput, Refused
from engram.model.lazy import dataclass, replace
from engram.model.memory import CONTRADICTS, FIELD_ALIASES, LIVE_STATUSES, Activation, Association, Evidence, Memory
from engram.review.distrust import distrust_reason
from engram.rules.numbers import HORIZON_DAYS
from engram.rules.scopes import parse_scope, wider_scopes
from engram.rules.sources import CONFIRMED, IMPORTED, may_replace
from engram.store.protocol import Progress, Store
from engram.store.records import ANSWERING_STATUSES, readable_image
from engram.text.content_hash import content_hash
from engram.text.display import slug

_MEMORY_FIELDS = frozenset(Memory.__dataclass_fields__)
_MAX_ID_CHARS = 500


@dataclass(slots=True)
class RecordDrafts:
    """Converts the records of one import to memories."""

    run: ImportRun

    def draft(self, record: "Memory | Mapping[str, Any]") -> Memory:
        """The memory a record describes. Raises `EngramError`, or an error from its fields, if it cannot be stored."""
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
        """The memory; a candidate if a person must approve it."""
        may_answer = memory.status in (LIVE_STATUSES if self.run.trusted else ANSWERING_STATUSES)
        if not may_answer or not self.run.needs_approval(memory):
            return memory
        self.run.held.add(memory.id)
        return memory.replace(status="candidate")

    def _id_problem(self, memory: Memory) -> str:
        """Why an id from another tool cannot become an alias; "" if it can."""
        if self.run.reading.projection is None or (memory.id.isprintable() and len(memory.id) <= _MAX_ID_CHARS):
            return ""
        return f"its id has more than {_MAX_ID_CHARS} characters, or one that cannot be shown"

    def _memory(self, record: "Memory | Mapping[str, Any]") -> Memory:
        """The memory a record describes; one without an id is created now."""
        now = self.run.clock()
        refuse_deep(record.extra if isinstance(record, Memory) else record, "the record")
        if not isinstance(record, Memory):
            return _from_fields(record, now)
        if record.id:
            return record
        days = HORIZON_DAYS if record.decay_days is None else record.decay_days
        return record.replace(scope=parse_scope(record.scope), created=record.created or now, decay_days=days)

    def _stamp_provenance(self, memory: Memory) -> Memory:
        """The memory with the file as its source, or with its own claims if a person vouches for the file."""
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
        """Its evidence without events of this store; a file must not claim those, to be quoted and purged with its memory."""
        store = self.run.store
        known = self.run.ids.find_known(memory, store.get(memory.id)) if memory.id else None
        ours = {evidence.event for evidence in known.evidence} if known is not None else set()
        return tuple(one for one in memory.evidence if one.event in ours or store.event(one.event) is None)


def reason_of(error: Exception) -> str:
    """Why a record cannot become a memory."""
    return str(error) if isinstance(error, EngramError) else "its fields do not have the form of a memory's"


def _from_fields(record: Mapping[str, Any], now: datetime) -> Memory:
    """A memory from fields named as callers name them; unknown keys are kept as they are."""
    own = {key: value for key, value in record.items() if key in _MEMORY_FIELDS or key in FIELD_ALIASES}
    extra = {key: value for key, value in record.items() if key not in own}
    memory_id = str(own.pop("id", "") or "")
    if isinstance(own.get("metadata"), Mapping):
        own["metadata"] = without_reserved(own["metadata"])
    memory = draft(own, learned_by=IMPORTED, source="", now=now)
    return memory.replace(id=memory_id, extra=extra, activation=replace(memory.activation, last_accessed=now))


class PlacedRecord(NamedTuple):
    """A record as a memory, and its position in the file."""

    place: str
    memory: Memory


@dataclass(frozen=True, slots=True)
class Importer:
    """Imports files into one store.

    Records keep their ids if possible, so that a second import finds them. If an id is already taken, the record gets a
    new one, and an alias that names its source store and its id there. Records that need a new id are written first, so
    that the links of the others are complete; links among the renamed ones are set at the end.

    A record that was changed later in its source replaces ours; an older one does not. PLUR's times do not show which
    is newer, so its records are merged field by field. Unless the person at the terminal vouches for the file, its
    claims about trust (source, confirmation, pins) do not count, and it replaces no memory from a more trusted source.
    """

    store: Store
    clock: Callable[[], datetime]
    scope: str
    """The scope of the folder in which the import runs."""
    name: str
    by_person: bool
    candidates: bool = False
    trusted: bool = False
    """Whether the person at the terminal vouches for the file, which is then imported unchanged."""
    settings: GateSettings = GateSettings()

    def run(self, source: ImportSource, progress: Progress, *, dry_run: bool = False) -> ImportReport:
        """Import what this store lacks; a dry run only reports it.

        Raises `InvalidInput` for records that supersede each other.

        Raises `Refused` for a file whose name is distrusted, unless a person vouches for it.
        """
        if not self.trusted and (why := distrust_reason(self.store, source_of(self.name))):
            raise Refused(why)
        run = self._prepare_run(source)
        report = ImportReport(
            skipped=list(source.skipped), not_read=tuple(source.not_read), notices=list(source.notices)
        )
        records = _draft_records(run, report)
        by_id = {one.memory.id: one.memory for one in records if one.memory.id}
        for memory in by_id.values():
            refuse_cycle(memory, memory.id, by_id.get)
        run.ids.wanted = set(by_id)
        run.ids.identify([one.memory for one in records])
        records.sort(key=lambda one: one.memory.id in run.ids.here)  # records that need a new id come first
        slices = ImportSlices(run, KnownRecords(run), report, dry_run)
        for start in range(0, len(records), IMPORT_BATCH_SIZE):
            slices.take(records[start : start + IMPORT_BATCH_SIZE], f"from {self.name}")
            progress("Importing", min(start + IMPORT_BATCH_SIZE, len(records)), len(records))
        if not dry_run:
            run.links.complete(self.name, run.actor, self.clock)
            report.notices += [(self.name, notice) for notice in run.origin.take_notices()]
        self._count_unseen(run, [one.memory for one in records], report)
        return report

    def _prepare_run(self, source: ImportSource) -> ImportRun:
        name, added = source_of(self.name), dict[str, Memory]()
        ids = RecordIdentities(self.store, source, self._last_export(source.origin))
        origin = RecordOrigin(self.store, ids, name, added)
        links = RecordLinks(self.store, ids, added, None if self.trusted else origin)
        return ImportRun(
            self.store, self.clock, name, source, self.settings, self.by_person, self.candidates, self.trusted,
            ids, origin, links, LocalDecisions(self.store), added,
        )  # fmt: skip

    def _last_export(self, origin: str) -> datetime | None:
        moment = self.store.state(EXPORT_PLACES).get(origin)
        return datetime.fromisoformat(moment) if isinstance(moment, str) else None

    def _count_unseen(self, run: ImportRun, records: Sequence[Memory], report: ImportReport) -> None:
        """Count the memories imported into scopes that a plain recall from here does not search."""
        seen = wider_scopes((self.scope, "user"))
        written = {*report.created, *report.updated}
        for record in records:
            if run.ids.here.get(record.id, record.id) in written and record.scope not in seen:
                report.unseen[record.scope] = report.unseen.get(record.scope, 0) + 1


def _draft_records(run: ImportRun, report: ImportReport) -> list[PlacedRecord]:
    """The records as memories; those that cannot be stored are reported."""
    drafts = RecordDrafts(run)
    records = []
    for place, record in run.reading.found:
        try:
            memory = drafts.draft(record)
        except (EngramError, TypeError, ValueError) as error:
            report.skipped.append((record_label(record, place), reason_of(error)))
            continue
        try:
            drafts.refuse(memory)
        except InvalidInput as error:
            report.skipped.append((_label(run, PlacedRecord(place, memory)), str(error)))
            continue
        records.append(PlacedRecord(place, drafts.hold_for_review(memory)))
    return records


def _label(run: ImportRun, record: PlacedRecord) -> str:
    """The label of a record: its own id, or else its position."""
    name = "" if run.reading.made_ids else record.memory.id
    return name or record.place or "a record"


@dataclass(frozen=True, slots=True)
class ImportSlices:
    """Decides about the records of one import, one slice at a time."""

    run: ImportRun
    known: KnownRecords
    report: ImportReport
    dry_run: bool

    def take(self, records: Sequence[PlacedRecord], note: str) -> None:
        """Import some records in one decision."""
        run = self.run
        memories = [one.memory for one in records]
        known = run.ids.load_memories(memories)
        known += [run.proposals[memory.id] for memory in known if memory.id in run.proposals]
        if not run.trusted:
            run.decisions.look_up([memory for memory in memories if memory.status in OPEN_STATUSES])
        change = Change(
            op=IMPORT, actor=run.actor, plan=partial(self._decide_slice, records), note=note,
            scopes={memory.scope for memory in (*memories, *known)}, related=[memory.id for memory in known],
            created=[one.created or run.clock() for one in memories if not one.id or one.id not in run.ids.here],
        )  # fmt: skip
        execute_change(run.store, run.clock, change)

    def _decide_slice(self, records: Sequence[PlacedRecord], memories: LockedMemories) -> None:
        run = self.run
        for record in records:
            outcome = self._yield_to_trusted(self._outcome(record.memory, memories), memories)
            run.origin.settled.add(record.memory.id)
            outcome = outcome._replace(notices=(*outcome.notices, *run.origin.take_notices()))
            self.report.add(_label(run, record), outcome)
            if outcome.memory is not None and not self.dry_run:
                memories.put(outcome.memory, judged=True)

    def _outcome(self, record: Memory, memories: LockedMemories) -> RecordOutcome:
        """The outcome for a record."""
        run = self.run
        here = run.ids.here.get(record.id, record.id)
        # A dry run writes nothing that later records could be compared with.
        known = (memories.get(here) or run.added.get(here)) if record.id else None
        if known is not None and run.ids.is_same(record, known):
            run.ids.here[record.id] = known.id
            return self.known.outcome(record, known, memories)
        history = run.store.history(record.id) if known is None and record.id else ()
        if history and history[-1].memory is None:
            run.ids.here[record.id] = run.reading.name_of(record.id)
            return RecordOutcome("skipped", reason="was purged here; a purged memory does not come back")
        if record.status in OPEN_STATUSES and (repeated := self._decide_repetition(record, memories)):
            run.ids.here[record.id] = repeated.memory_id
            return repeated
        if record.status in LIVE_STATUSES and run.decisions.needs_person(record):
            record = record.replace(status="candidate")
        return self._add_record(record, memories, taken=known is not None)

    def _decide_repetition(self, record: Memory, memories: LockedMemories) -> RecordOutcome | None:
        """The outcome for a record that exactly repeats a stored memory, or repeats a rejected one."""
        run = self.run
        key = (content_hash(record.statement), record.scope)
        if twin := run.twin(record, key, memories):
            if twin not in run.added:
                known = memories.get(twin)
                return self.known.add_cues(record, known) if known is not None else RecordOutcome("unchanged", twin)
            return RecordOutcome("skipped", twin, reason=f"another record says exactly this; it is {twin} here")
        if (out := run.decisions.find_rejected(record)) is not None:
            return RecordOutcome(
                "skipped", out.memory.id, reason=f"{out.memory.id} says this, and was {out.removal_note}"
            )
        return None

    def _yield_to_trusted(self, outcome: RecordOutcome, memories: LockedMemories) -> RecordOutcome:
        """Turn a record that would replace a memory from a more trusted source into a candidate that contradicts it."""
        memory, run = outcome.memory, self.run
        if memory is None or run.trusted:
            return outcome
        ours = [i for i in memory.supersedes if (known := memories.get(i)) and not may_replace(run.source, known)]
        versions = memories.lineage(memory.lineage) if memory.lineage else ()
        if ours or outranking_head(versions, run.source):
            others = tuple(i for i in memory.supersedes if i not in ours)
            memory = memory.replace(lineage="", revision=1, supersedes=others)
        heads = memories.heads(memory.conflict_key, memory.scope) if memory.conflict_key else ()
        foreign = [head for head in heads if head.id != memory.id and not run.origin.is_from_here(head.id)]
        above = outranking_head(foreign, run.source)
        memory = run.origin.without_foreign_key(memory, foreign[0]) if foreign else memory
        if above is not None and memory.status in LIVE_STATUSES:
            link = Association(above.id, CONTRADICTS, 0.5, last_reinforced=run.clock())
            memory = memory.replace(status="candidate", associations=(*memory.associations, link))
        return outcome._replace(memory=memory)

    # -- a record that is new here

    def _add_record(self, record: Memory, memories: LockedMemories, *, taken: bool) -> RecordOutcome:
        run = self.run
        memory_id = record.id
        if taken or not OWN_ID.fullmatch(record.id):
            memory_id = self._new_id(record, memories)
        aliases, notices = run.free_aliases(record, memory_id)
        if record.id:
            aliases = tuple(dict.fromkeys((*aliases, *run.ids.own_alias(record, taken))))
        run.ids.by_alias |= dict.fromkeys(aliases, memory_id)
        run.ids.here[record.id] = memory_id
        name = memories.free_name(record.name or slug(record.situation or record.statement), record.scope)
        memory = run.links.resolve_links(record.replace(id=memory_id, name=name, aliases=aliases), record)
        memory = memory.replace(imported_at=run.clock())
        if (projection := run.reading.projection) is not None:
            days = memory.decay_days if "decay_days" in projection.fields else float(HORIZON_DAYS)
            memory = memory.replace(created=memory.created or run.clock(), decay_days=days)
            memory = memory.replace(activation=self._start_fading(memory.activation))
        run.added[memory.id] = memory
        content = content_hash(record.statement)
        if memory.status in OPEN_STATUSES and content:  # symbols alone have no content to compare
            run.by_content[content, record.scope] = memory.id
        return RecordOutcome("created", memory.id, memory, notices=notices)

    def _start_fading(self, activation: Activation) -> Activation:
        """The strength of a record without recorded use; it fades from now on, however old the record is."""
        return activation if activation.last_accessed else replace(activation, last_accessed=self.run.clock())

    def _new_id(self, record: Memory, memories: LockedMemories) -> str:
        """An id for the record's day that no other record has."""
        while (new := memories.new_id(record.created or self.run.clock())) in self.run.ids.wanted:
            pass
        return new
