"""Imports of records that are already stored: which changes to adopt, and which a person must approve first.
The report lists the outcome of every record.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple

from engram.capture.import_identity import has_same_content, with_local_fields
from engram.capture.import_run import (
    IMPORT,
    OPEN_STATUSES,
    ImportRun,
    has_same_fields,
    merge_by_field,
    missing_links,
    says_the_same,
)
from engram.decisions.execution import LockedMemories
from engram.model.lazy import dataclass, field, replace
from engram.model.memory import Memory
from engram.rules.labels import add_cues
from engram.rules.sources import IMPORTED, is_evidence, may_replace, origin_of, trust_rank
from engram.store.protocol import Image
from engram.store.records import ANSWERING_STATUSES
from engram.text.content_hash import content_hash
from engram.text.display import slug

OutcomeKind = Literal["created", "updated", "unchanged", "skipped"]


class RecordOutcome(NamedTuple):
    """The outcome for one record."""

    kind: OutcomeKind
    memory_id: str = ""
    """The id of the memory in this store."""
    memory: Memory | None = None
    """The memory to write, if any."""
    reason: str = ""
    """Why the record is skipped."""
    notices: tuple[str, ...] = ()
    """The parts that were left out."""


@dataclass(slots=True)
class ImportReport:
    """The outcome of each record, by its id in this store; every skipped record has a reason."""

    created: list[str] = field(default_factory=list)
    updated: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    """Records already stored, as the same record or as a memory with the same words."""
    waiting: list[str] = field(default_factory=list)
    evidence: list[str] = field(default_factory=list)
    """Active memories that are never directives until a person confirms them."""
    skipped: list[tuple[str, str]] = field(default_factory=list)
    notices: list[tuple[str, str]] = field(default_factory=list)
    """Parts left out of imported records, such as a link to a memory that the file does not own."""
    not_read: tuple[str, ...] = ()
    unseen: dict[str, int] = field(default_factory=dict)
    """Scopes that a plain query from here does not search, and the number of memories imported into each."""

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


_HOW_TO_VOUCH = "to replace it with the file's version, run `engram import --trusted` at a terminal"
_LONG_AGO = datetime.min.replace(tzinfo=UTC)


@dataclass(slots=True)
class KnownRecords:
    """Decides about the records of one import that are already stored."""

    run: ImportRun

    def outcome(self, record: Memory, known: Memory, memories: LockedMemories) -> RecordOutcome:
        """The outcome for a record that is already stored."""
        if self.run.trusted:
            return self._merge_record(record, known)
        known = self._newest(known) if record.status in OPEN_STATUSES else known
        outcome = self._merge_record(record, known)
        return self._review_change(outcome, known, memories) if outcome.memory is not None else outcome

    def _newest(self, known: Memory) -> Memory:
        """The version that replaced an imported memory with a person's approval, if this file proposed it."""
        heir = self.run.store.get(known.superseded_by) if known.status == "superseded" and known.superseded_by else None
        return heir if heir is not None and heir.learned_by == IMPORTED and heir.source == self.run.source else known

    # -- changes that a person must approve

    def _review_change(self, outcome: RecordOutcome, known: Memory, memories: LockedMemories) -> RecordOutcome:
        """The outcome for a change from an unvouched file: a candidate that would replace the memory, if a person must approve it."""
        changed = outcome.memory
        assert changed is not None
        dead = known.status in ("rejected", "retired")
        if dead and changed.status in OPEN_STATUSES and self.run.decisions.has_status_decision(known):
            return _skip_record(f"is {known.status} here, and a file does not bring it back; {_HOW_TO_VOUCH}")
        is_out = self.run.decisions.is_withdrawn(changed, known) and not has_same_content(changed, known)
        if is_out and (out := self.run.decisions.find_rejected(changed)) is not None:
            return _skip_record(f"{out.memory.id} says this, and was {out.removal_note}")
        if changed.status not in (*ANSWERING_STATUSES, "candidate") or not (is_out or self.run.needs_approval(changed)):
            return outcome
        if known.status not in ANSWERING_STATUSES:
            return outcome._replace(memory=changed.replace(status="candidate"))
        if has_same_content(changed, known):
            return outcome._replace(memory=changed.replace(status=known.status))
        return self._propose_change(changed, known, memories)

    def _propose_change(self, changed: Memory, known: Memory, memories: LockedMemories) -> RecordOutcome:
        """The changed version as a candidate that supersedes the memory once it is approved."""
        run = self.run
        key = (content_hash(changed.statement), changed.scope)
        twin = run.by_content.get(key) or getattr(memories.exact(*key), "id", "")
        if twin and twin != known.id:
            return RecordOutcome("unchanged", twin)
        waiting = self._waiting_change(known, memories)
        new = changed.replace(
            **self._identity(changed, waiting, memories),
            status="candidate", source=run.source, learned_by=IMPORTED, verification="unverified", pinned=False,
            supersedes=(known.id,), superseded_by="", lineage="", revision=1, associations=(), imported_at=run.clock(),
        )  # fmt: skip
        run.added[new.id] = new
        run.by_content[key] = new.id
        return RecordOutcome("created" if waiting is None else "updated", new.id, new)

    def _waiting_change(self, known: Memory, memories: LockedMemories) -> Memory | None:
        """The change that this file proposed before for a memory, if it still waits."""
        proposals = self.run.proposals
        before = memories.get(proposals[known.id].id) if known.id in proposals else None
        return before if before is not None and (before.status, before.learned_by) == ("candidate", IMPORTED) else None

    def _identity(self, changed: Memory, waiting: Memory | None, memories: LockedMemories) -> dict[str, Any]:
        """The identity of a proposed change: that of the waiting one, or a new one."""
        if waiting is not None:
            return {"id": waiting.id, "name": waiting.name, "aliases": waiting.aliases, "created": waiting.created}
        name = memories.free_name(slug(changed.situation or changed.statement), changed.scope)
        return {"id": memories.new_id(self.run.clock()), "name": name, "aliases": ()}

    # -- changed records

    def _merge_record(self, record: Memory, known: Memory) -> RecordOutcome:
        """The memory with the changes of its record."""
        run = self.run
        record = record.replace(imported_at=known.imported_at)
        if not run.trusted:
            record = with_local_fields(record, known, keeps_use=run.reading.whole)
        if run.reading.projection is not None:
            record = self._complete_record(record, known)
        elif not run.trusted and record.id in run.held and known.status in ANSWERING_STATUSES:
            record = record.replace(status=known.status)  # whether the words need approval is decided once they differ
        vouched = run.trusted and trust_rank(record) > trust_rank(known)
        if run.reading.whole and (run.reading.projection is not None or not vouched):
            if has_same_fields(self._as_local(record, known), known):  # the usual case; reading a history is slow
                return RecordOutcome("unchanged", known.id)
            history = run.store.history(known.id)
            if run.ids.exported_at is not None:
                return self._merge_by_field(record, known, _images_since(history, run.ids.exported_at))
            if history and history[0].op == IMPORT:  # if older images were pruned, the import is unknown
                return self._merge_by_field(record, known, history)
        return self._take_newer(record, known, vouched)

    def _take_newer(self, record: Memory, known: Memory, vouched: bool) -> RecordOutcome:
        """The record as a whole, if it is newer than the memory."""
        claims: dict[str, Any] = {"verification": known.verification}
        if vouched or not self.run.trusted:
            claims |= {"pinned": known.pinned}
        if says_the_same(record.replace(**claims), known):
            return self._accept_source(record, known) if vouched else self._add_missing_links(record, known)
        theirs = record.updated or record.created or _LONG_AGO
        ours = known.updated or known.created or _LONG_AGO
        if theirs <= ours:
            return _skip_record(self._why_ours_stays(record, known))
        if reason := self._protection(known):
            return _skip_record(reason)
        aliases, notices = (known.aliases, ()) if known.aliases else self.run.free_aliases(record, known.id)
        return RecordOutcome(
            "updated", known.id, self._as_local(record, known.replace(aliases=aliases)), notices=notices
        )

    def _add_missing_links(self, record: Memory, known: Memory) -> RecordOutcome:
        """An unchanged memory, with links that an interrupted import did not set."""
        unchanged = RecordOutcome("unchanged", known.id)
        linked = missing_links(self._as_local(record, known), known)
        if linked == known or self._protection(known):
            return unchanged
        history = self.run.store.history(known.id)
        if not history or history[0].op != IMPORT:
            return unchanged
        before = [image.memory for image in history if image.memory is not None]
        linked = missing_links(self._as_local(record, known), known, before)
        return RecordOutcome("updated", known.id, linked) if linked != known else unchanged

    def _complete_record(self, record: Memory, known: Memory) -> Memory:
        """A record of a format with fewer fields, completed with the stored values where the format has none or states the same."""
        projection = self.run.reading.projection
        assert projection is not None
        stated, linked = (
            projection.as_exported(known),
            self.run.links.resolve_links(record.replace(id=known.id), record),
        )
        if record.created is None:
            linked = linked.replace(created=stated.created)
        if record.id in self.run.held and stated.status in ANSWERING_STATUSES:
            linked = linked.replace(status=stated.status)
        is_evidence_here = self.run.trusted and known.learned_by == IMPORTED
        vouched = ("source", "learned_by", "verification", "pinned") if is_evidence_here else ()
        differing = (name for name in projection.fields if getattr(linked, name) != getattr(stated, name))
        return known.replace(id=record.id, **{name: getattr(linked, name) for name in (*differing, *vouched)})

    def _as_local(self, record: Memory, known: Memory) -> Memory:
        """A record as the stored memory; a completed record already has its links."""
        record = record.replace(id=known.id, name=known.name, aliases=known.aliases)
        return record if self.run.reading.projection is not None else self.run.links.resolve_links(record, record)

    def _merge_by_field(self, record: Memory, known: Memory, history: Sequence[Image]) -> RecordOutcome:
        """The stored memory with the fields that changed in the source since the import, if any."""
        images = [image for image in history if image.memory is not None]
        if self.run.reading.projection is not None:
            images = [replace(image, memory=self._as_stated(image.memory)) for image in images if image.memory]
        merged, conflicts = merge_by_field(self._as_local(record, known), known, images)
        changed = " and ".join(conflicts)
        notices = (f"{changed} changed both here and in the source since the import; kept yours",) if conflicts else ()
        if merged == known:
            return RecordOutcome("unchanged", known.id, notices=notices)
        if reason := self._protection(known):
            return _skip_record(reason, notices)
        return RecordOutcome("updated", known.id, merged.replace(updated=self.run.clock()), notices=notices)

    def _as_stated(self, memory: Memory) -> Memory:
        """A memory with the format's fields as the format represents them."""
        projection = self.run.reading.projection
        assert projection is not None
        stated = projection.as_exported(memory)
        return memory.replace(**{name: getattr(stated, name) for name in projection.fields})

    def _accept_source(self, record: Memory, known: Memory) -> RecordOutcome:
        """Accept an imported memory's claimed source, because a person vouches for the file."""
        stamped = {name: getattr(record, name) for name in ("source", "learned_by", "verification", "pinned", "status")}
        return RecordOutcome("updated", known.id, known.replace(**stamped, updated=self.run.clock()))

    # -- protected memories

    def add_cues(self, record: Memory, known: Memory) -> RecordOutcome:
        """Add a duplicate record's cues to the stored memory, if the file may change it."""
        more = add_cues(known.cues, record.cues)
        if more == known.cues or record.id in self.run.held or self._protection(known):
            return RecordOutcome("unchanged", known.id)
        return RecordOutcome("updated", known.id, known.replace(cues=more, updated=self.run.clock()))

    def _protection(self, known: Memory) -> str:
        """Why no file may change a memory ("" if one may): it belongs to a team, or its source is more trusted."""
        if known.id not in self.run.added and not self.run.store.own_ids([known.id]):
            # The team's file is committed with the code, so a personal import must not end up in it.
            return "belongs to a team's store; `engram update` changes it there"
        if not self.run.trusted and not may_replace(self.run.source, known):
            return f"was stored by {origin_of(known)}, which a file cannot overwrite; {_HOW_TO_VOUCH}"
        return ""

    def _why_ours_stays(self, record: Memory, known: Memory) -> str:
        if record.statement == known.statement:
            return "already imported; the file's version is not newer"
        if known.id in self.run.added:
            return "duplicate id: an earlier record has different text; kept the earlier one"
        return "differs from the stored memory and has no newer date; kept the stored one"


def _skip_record(reason: str, notices: tuple[str, ...] = ()) -> RecordOutcome:
    return RecordOutcome("skipped", reason=reason, notices=notices)


def _images_since(history: Sequence[Image], moment: datetime) -> Sequence[Image]:
    """The images of a memory since a time, starting with the one current then."""
    first = max((number for number, image in enumerate(history) if image.at <= moment), default=0)
    return history[first:]
