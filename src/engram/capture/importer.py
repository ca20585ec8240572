"""Imports records from elsewhere: those that this store does not have yet, and what changed in those it has.

Ids stay where they can, so that a second import finds what the first one brought. Where an id is taken here, the record gets another, and
an alias that names the store it came from and its id there. Records that need a new id are written first, so that the links of the
others are complete; links among the renamed ones are set at the end.

A record that was changed later elsewhere replaces ours; an older one does not. PLUR's times do not tell which is newer, so its records are
merged field by field. Nothing a file says about trust counts (who said it, that a person confirmed or pinned it), and it
replaces nothing that a more trusted source said, unless the person at the terminal vouches for the file.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any, NamedTuple

from engram.capture.draft import draft
from engram.capture.import_identity import OWN_ID, RecordIdentities
from engram.capture.import_links import BATCH, RecordLinks
from engram.capture.import_merge import IMPORT, has_same_fields, merged_by_field, says_the_same
from engram.capture.import_origin import RecordOrigin
from engram.capture.import_trust import ANSWERING, as_the_files_word, has_same_words, without_claims
from engram.dialects.source import EXPORT_PLACES, ImportSource, called
from engram.gates.instructions import injection_problem
from engram.gates.proposal import GateSettings
from engram.gates.secrets.scan import secrets_problem
from engram.gates.shape import added_problem
from engram.gates.trust import is_human, tier_of
from engram.model.arguments import refuse_deep
from engram.model.decision import DISTRUST
from engram.model.errors import EngramError, Refused
from engram.model.fields import FIELD_ALIASES
from engram.model.lazy import dataclass, field, replace
from engram.model.memory import CONTRADICTS, Activation, Association, Evidence, Memory
from engram.model.reserved_keys import without_reserved
from engram.review.distrust import distrust_reason
from engram.review.lineage import outranking_head, refuse_cycle
from engram.rules.numbers import HORIZON_DAYS
from engram.rules.scopes import parse_scope, visible_from
from engram.rules.sources import CONFIRMED, IMPORTED, is_evidence, may_replace, origin_of, said_by
from engram.store.protocol import Filters, Image, Progress, Store, Transaction
from engram.store.records import readable_image
from engram.text.content_hash import content_hash, same_text
from engram.text.display import slug

_FIELDS = frozenset(Memory.__dataclass_fields__)
_CURRENT = ("active", "dormant")
_LIVE = (*_CURRENT, "candidate")
_VOUCH = "`engram import --trusted` at a terminal puts the file's newer words in their place"
_LONGEST_ID = 500
_LONG_AGO = datetime.min.replace(tzinfo=UTC)


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
    not_read: tuple[str, ...] = ()
    unseen: dict[str, int] = field(default_factory=dict)
    """Scopes that a plain question asked here does not look into, and how many memories came into each."""


class PlacedRecord(NamedTuple):
    """A record as a memory, and where it was read."""

    place: str
    memory: Memory


@dataclass(slots=True)
class Importer:
    """One import into one store."""

    store: Store
    clock: Callable[[], datetime]
    scope: str
    """The scope of the folder that it runs in."""
    name: str
    by_person: bool
    candidates: bool = False
    trusted: bool = False
    """The person at the terminal vouches for the file: it is imported unchanged."""
    done: ImportReport = field(default_factory=ImportReport)
    reading: ImportSource = field(default_factory=ImportSource)
    ids: RecordIdentities = field(init=False)
    origin: RecordOrigin = field(init=False)
    links: RecordLinks = field(init=False)
    read: dict[str, Memory] = field(default_factory=dict)
    """What this import has added so far, by the id it has here."""
    by_content: dict[tuple[str, str], str] = field(default_factory=dict)
    """The same by content and scope."""
    rejected: dict[tuple[str, str], str] | None = None
    """What was rejected here before this import, by content and scope; None until it is looked up."""
    place: str = ""
    """Where the record that is being decided is: its file, and its line or number."""
    held: set[str] = field(default_factory=set)
    """Records that wait for review here, and are current where they come from."""
    proposals: dict[str, Memory] = field(default_factory=dict)
    """What earlier imports of this file proposed and still waits, by the memory that it would supersede."""

    def take(self, source: ImportSource, progress: Progress, *, dry_run: bool = False) -> ImportReport:
        """Import what this store lacks; a dry run only reports it. Raises `InvalidInput` for records that supersede each other.

        Raises `Refused` for a file whose name is distrusted, unless a person vouches for it.
        """
        if not self.trusted and (why := distrust_reason(self.store, self.source)):
            raise Refused(why)
        self.reading = source
        self.ids = RecordIdentities(self.store, source, self._last_export(source.origin))
        self.origin = RecordOrigin(self.store, self.ids, self.source, self._skip, self.read)
        self.links = RecordLinks(self.store, self.ids, None if self.trusted else self.origin)
        self.done.skipped += source.skipped
        self.done.not_read = tuple(source.not_read)
        records = [
            PlacedRecord(where, memory)
            for where, record in source.found
            if (memory := self._drafted(where, record)) is not None
        ]
        by_id = {one.memory.id: one.memory for one in records if one.memory.id}
        for memory in by_id.values():
            refuse_cycle(memory, memory.id, by_id.get)
        self.proposals = self._waiting_changes()
        self.ids.wanted = set(by_id)
        self.ids.identify([one.memory for one in records])
        records.sort(key=lambda one: one.memory.id in self.ids.here)  # those whose id cannot stay come first
        for start in range(0, len(records), BATCH):
            self._take_slice(records[start : start + BATCH], dry_run)
            progress("Importing", min(start + BATCH, len(records)), len(records))
        if not dry_run:
            self.links.complete(self.name, self.source)
        self._count_unseen([one.memory for one in records])
        return self.done

    def _waiting_changes(self) -> dict[str, Memory]:
        found = self.store.listing(Filters(statuses=("candidate",)))
        ours = (one for one in found if one.learned_by == IMPORTED and one.source == self.source)
        return {older: one for one in ours for older in one.supersedes}

    @property
    def source(self) -> str:
        """The source in the journal, and of memories that name none."""
        return f"import:{self.name}"

    def _last_export(self, origin: str) -> datetime | None:
        moment = self.store.state(EXPORT_PLACES).get(origin)
        return datetime.fromisoformat(moment) if isinstance(moment, str) else None

    def _skip(self, record: Memory, reason: str) -> None:
        """Report a record that is left out, by its own id or else by its place."""
        name = "" if self.reading.made_ids else record.id
        self.done.skipped.append((name or self.place or "a record", reason))

    # -- records as memories

    def _drafted(self, where: str, record: "Memory | Mapping[str, Any]") -> Memory | None:
        try:
            memory = self._stamped(self._memory(record))
            readable_image(memory if memory.id else memory.but(id="the record"))
        except (EngramError, TypeError, ValueError) as error:
            reason = str(error) if isinstance(error, EngramError) else "its fields do not have the form of a memory's"
            self.done.skipped.append((called(record, where), reason))
            return None
        problem = self._id_problem(memory) or added_problem(memory, GateSettings()) or secrets_problem(memory)
        if problem:
            self.place = where
            self._skip(memory, problem)
            return None
        may_answer = memory.status in (_CURRENT if self.trusted else ANSWERING)
        if not may_answer or not self._waits(memory):
            return memory
        self.held.add(memory.id)
        return memory.but(status="candidate")

    def _waits(self, memory: Memory) -> bool:
        """Whether a person has to approve what a memory says."""
        return self.candidates or bool(injection_problem(memory)) or (tier_of(memory) > 1 and not self.trusted)

    def _id_problem(self, memory: Memory) -> str:
        """Why an id of another tool cannot become an alias; "" if it can."""
        if self.reading.projection is None or (memory.id.isprintable() and len(memory.id) <= _LONGEST_ID):
            return ""
        return f"its id has more than {_LONGEST_ID} characters, or one that cannot be shown"

    def _memory(self, record: "Memory | Mapping[str, Any]") -> Memory:
        """The memory a record describes; one without an id begins now."""
        now = self.clock()
        refuse_deep(record.extra if isinstance(record, Memory) else record, "the record")
        if not isinstance(record, Memory):
            return _from_fields(record, now)
        if record.id:
            return record
        days = HORIZON_DAYS if record.decay_days is None else record.decay_days
        return record.but(scope=parse_scope(record.scope), created=record.created or now, decay_days=days)

    def _stamped(self, memory: Memory) -> Memory:
        """The memory as the file's word; if a person vouches for the file, as what it says of itself."""
        if not self.trusted:
            memory = memory.but(evidence=self._foreign_evidence(memory)) if memory.evidence else memory
            return as_the_files_word(memory, self.source, keeps_use=self.reading.whole, now=self.clock())
        claimed = is_human(memory.source) and not self.by_person
        source = self.source if claimed or not memory.source else memory.source
        memory = memory.but(source=source, learned_by=memory.learned_by or IMPORTED)
        vouched = memory.learned_by == IMPORTED and memory.verification == "unverified"
        return memory.but(verification=CONFIRMED) if vouched else memory

    def _foreign_evidence(self, memory: Memory) -> tuple[Evidence, ...]:
        """Its evidence without what was said here: a file does not make that its own, to be quoted and purged along with it."""
        known = self.ids.found_again(memory, self.store.get(memory.id)) if memory.id else None
        ours = {evidence.event for evidence in known.evidence} if known is not None else set()
        return tuple(one for one in memory.evidence if one.event in ours or self.store.event(one.event) is None)

    # -- decisions

    def _take_slice(self, placed: Sequence[PlacedRecord], dry_run: bool) -> None:
        records = [one.memory for one in placed]
        known = self.ids.stored(records)
        known += [self.proposals[memory.id] for memory in known if memory.id in self.proposals]
        with self.store.deciding(
            IMPORT,
            actor=self.source,
            reason=f"from {self.name}",
            scopes=sorted({memory.scope for memory in (*records, *known)}),
            about=[memory.id for memory in known],
            ids_for=[
                record.created or self.clock() for record in records if not record.id or record.id not in self.ids.here
            ],
        ) as deciding:
            for self.place, record in placed:
                memory = self._judged(record, deciding)
                self.origin.settled.add(record.id)
                if memory is None:
                    continue
                memory = memory if self.trusted else self._subordinate(memory, deciding)
                if not dry_run:
                    deciding.put(memory)
                if memory.status == "candidate":
                    self.done.waiting.append(memory.id)
                elif memory.status == "active" and is_evidence(memory):
                    self.done.evidence.append(memory.id)

    def _judged(self, record: Memory, deciding: Transaction) -> Memory | None:
        """What to write for a record, if anything."""
        here = self.ids.here.get(record.id, record.id)
        # A dry run writes nothing that could be found again.
        known = (deciding.get(here) or self.read.get(here)) if record.id else None
        if known is not None and self.ids.is_same(record, known):
            self.ids.here[record.id] = known.id
            return self._merged(record, known, deciding)
        history = self.store.history(record.id) if known is None and record.id else ()
        if history and history[-1].memory is None:
            self.ids.here[record.id] = self.reading.name_of(record.id)
            self._skip(record, "was purged here; a purged memory does not come back")
            return None
        key = (content_hash(record.statement), record.scope)
        twin = self._twin(record, key, deciding)
        if twin and record.status in _LIVE:
            self.ids.here[record.id] = twin
            if twin in self.read:
                self._skip(record, f"another record says exactly this; it is {twin} here")
            else:
                self.done.unchanged.append(twin)
            return None
        if not self.trusted and record.status in _LIVE and (refused := self._rejected_here(key)):
            self.ids.here[record.id] = refused
            self._skip(record, f"{refused} says exactly this, and was rejected in review")
            return None
        new = self._new(record, deciding, taken=known is not None)
        if new.status in _LIVE and key[0]:  # signs alone have no content to compare
            self.by_content[key] = new.id
        return new

    def _twin(self, record: Memory, key: tuple[str, str], deciding: Transaction) -> str:
        """The memory that says exactly this, symbols included, or ""."""
        known = self.read.get(self.by_content.get(key, "")) or deciding.exact(*key)
        return known.id if known is not None and same_text(known.statement, record.statement) else ""

    def _rejected_here(self, key: tuple[str, str]) -> str:
        """The memory with this content and scope that was rejected here, for what it says and not for who said it, or ""."""
        if self.rejected is None:
            found = self.store.listing(Filters(statuses=("rejected",)))
            self.rejected = {(content_hash(memory.statement), memory.scope): memory.id for memory in found}
        memory_id = self.rejected.get(key, "") if key[0] else ""
        decisions = self.store.history(memory_id) if memory_id else ()
        return memory_id if decisions and decisions[-1].op not in (IMPORT, DISTRUST) else ""

    def _subordinate(self, memory: Memory, deciding: Transaction) -> Memory:
        """A record that would replace what a more trusted source said becomes a candidate that contradicts it."""
        ours = [i for i in memory.supersedes if (known := deciding.get(i)) and not may_replace(self.source, known)]
        versions = deciding.lineage(memory.lineage) if memory.lineage else ()
        if ours or outranking_head(versions, self.source):
            others = tuple(i for i in memory.supersedes if i not in ours)
            memory = memory.but(lineage="", revision=1, supersedes=others)
        heads = deciding.heads(memory.conflict_key, memory.scope) if memory.conflict_key else ()
        foreign = [head for head in heads if head.id != memory.id and not self.origin.is_from_here(head.id)]
        above = outranking_head(foreign, self.source)
        memory = self.origin.without_foreign_key(memory, foreign[0]) if foreign else memory
        if above is None or memory.status not in _CURRENT:
            return memory
        link = Association(above.id, CONTRADICTS, 0.5, last_reinforced=self.clock())
        return memory.but(status="candidate", associations=(*memory.associations, link))

    # -- a record that is new here

    def _new(self, record: Memory, deciding: Transaction, *, taken: bool) -> Memory:
        memory_id = record.id
        if taken or not OWN_ID.fullmatch(record.id):
            memory_id = self._new_id(record, deciding)
        aliases = self._free_aliases(record, memory_id)
        if record.id:
            aliases = tuple(dict.fromkeys((*aliases, *self.ids.own_alias(record, taken))))
        self.ids.by_alias |= dict.fromkeys(aliases, memory_id)
        self.ids.here[record.id] = memory_id
        name = deciding.free_name(record.name or slug(record.situation or record.statement), record.scope)
        memory = self.links.relinked(record.but(id=memory_id, name=name, aliases=aliases), record)
        if (projection := self.reading.projection) is not None:
            days = memory.decay_days if "decay_days" in projection.fields else float(HORIZON_DAYS)
            memory = memory.but(created=memory.created or self.clock(), decay_days=days)
            memory = memory.but(activation=self._begun(memory.activation))
        self.done.created.append(memory.id)
        self.read[memory.id] = memory
        return memory

    def _begun(self, activation: Activation) -> Activation:
        """The strength of a record that states no use: it fades from now on, however old the record is."""
        return activation if activation.last_accessed else replace(activation, last_accessed=self.clock())

    def _new_id(self, record: Memory, deciding: Transaction) -> str:
        """An id of the record's day that no other record has."""
        while (new := deciding.new_id(record.created or self.clock())) in self.ids.wanted:
            pass
        return new

    def _free_aliases(self, record: Memory, memory_id: str) -> tuple[str, ...]:
        """A record's aliases without those of other memories here: no file makes a name ambiguous."""
        taken = [alias for alias in record.aliases if self.ids.is_taken(alias, memory_id)]
        if taken:
            listed = ", ".join(map(repr, taken))
            self._skip(record, f"{listed} means another memory here; taken in without it")
        return tuple(alias for alias in record.aliases if alias not in taken)

    # -- a record that is here already

    def _merged(self, record: Memory, known: Memory, deciding: Transaction) -> Memory | None:
        """What to write, if anything, for a record that is here already."""
        if self.trusted:
            return self._changed(record, known)
        known = self._newest(known) if record.status in _LIVE else known
        changed = self._changed(record, known)
        return self._reviewed(record, changed, known, deciding) if changed is not None else None

    def _newest(self, known: Memory) -> Memory:
        """The version that a person approved in place of an imported memory, where this file proposed it."""
        heir = self.store.get(known.superseded_by) if known.status == "superseded" and known.superseded_by else None
        return heir if heir is not None and heir.learned_by == IMPORTED and heir.source == self.source else known

    def _reviewed(self, record: Memory, changed: Memory, known: Memory, deciding: Transaction) -> Memory | None:
        """What a change that nobody vouches for becomes: a candidate in place of the memory, where somebody has to approve it."""
        if known.status in ("rejected", "retired") and changed.status in _LIVE and self._was_decided_here(known):
            self.done.updated.remove(known.id)
            self._skip(record, f"is {known.status} here, and a file does not bring it back; {_VOUCH}")
            return None
        if changed.status not in (*ANSWERING, "candidate") or not self._waits(changed):
            return changed
        if known.status not in ANSWERING:
            return changed.but(status="candidate")
        if has_same_words(changed, known):
            return changed.but(status=known.status)
        self.done.updated.remove(known.id)
        return self._proposed(record, changed, known, deciding)

    def _was_decided_here(self, known: Memory) -> bool:
        history = self.store.history(known.id)
        changes = (later for earlier, later in pairwise(history) if _status(earlier) != _status(later))
        return any(later.op != IMPORT for later in changes)

    def _proposed(self, record: Memory, changed: Memory, known: Memory, deciding: Transaction) -> Memory | None:
        """The changed version as a candidate that supersedes the memory once it is approved; None if it is known."""
        key = (content_hash(changed.statement), changed.scope)
        twin = self.by_content.get(key) or getattr(deciding.exact(*key), "id", "")
        if twin and twin != known.id:
            self.done.unchanged.append(twin)
            return None
        if refused := self._rejected_here(key):
            self._skip(record, f"{refused} says exactly this, and was rejected in review")
            return None
        waiting = self._waiting_change(known, deciding)
        new = changed.but(
            **self._identity(changed, waiting, deciding), status="candidate", source=self.source, learned_by=IMPORTED, verification="unverified", pinned=False,
            supersedes=(known.id,), superseded_by="", lineage="", revision=1, associations=(),
        )  # fmt: skip
        (self.done.created if waiting is None else self.done.updated).append(new.id)
        self.read[new.id] = new
        self.by_content[key] = new.id
        return new

    def _waiting_change(self, known: Memory, deciding: Transaction) -> Memory | None:
        """The change of a memory that this file proposed before, if it waits as the file had it."""
        before = deciding.get(self.proposals[known.id].id) if known.id in self.proposals else None
        return before if before is not None and (before.status, before.learned_by) == ("candidate", IMPORTED) else None

    def _identity(self, changed: Memory, waiting: Memory | None, deciding: Transaction) -> dict[str, Any]:
        """The identity of a proposed change: that of the one which waits already, or a new one."""
        if waiting is not None:
            return {"id": waiting.id, "name": waiting.name, "aliases": waiting.aliases, "created": waiting.created}
        name = deciding.free_name(slug(changed.situation or changed.statement), changed.scope)
        return {"id": deciding.new_id(self.clock()), "name": name, "aliases": ()}

    def _changed(self, record: Memory, known: Memory) -> Memory | None:
        """A memory as a record of it would have it; None if it stays as it is."""
        if not self.trusted:
            record = without_claims(record, known, keeps_use=self.reading.whole)
        if self.reading.projection is not None:
            record = self._completed(record, known)
        elif not self.trusted and record.id in self.held and known.status in ANSWERING:
            record = record.but(status=known.status)  # whether its words wait is decided once it differs
        vouched = self.trusted and said_by(record) > said_by(known)
        if self.reading.whole and (self.reading.projection is not None or not vouched):
            if has_same_fields(self._here(record, known), known):  # the usual case, and reading a history takes long
                self.done.unchanged.append(known.id)
                return None
            history = self.store.history(known.id)
            if self.ids.exported_at is not None:
                return self._merged_by_field(record, known, _since(history, self.ids.exported_at))
            if history and history[0].op == IMPORT:  # where older images were pruned, nobody knows
                return self._merged_by_field(record, known, history)
        claims: dict[str, Any] = {"verification": known.verification}
        if vouched or not self.trusted:
            claims |= {"pinned": known.pinned}
        if says_the_same(record.but(**claims), known):
            if vouched:
                return self._vouched(record, known)
            self.done.unchanged.append(known.id)
            return None
        theirs = record.updated or record.created or _LONG_AGO
        ours = known.updated or known.created or _LONG_AGO
        if theirs <= ours:
            self._skip(record, self._why_ours_stays(record, known))
            return None
        if self._is_protected(record, known):
            return None
        self.done.updated.append(known.id)
        aliases = known.aliases or self._free_aliases(record, known.id)
        return self._here(record, known.but(aliases=aliases))

    def _completed(self, record: Memory, known: Memory) -> Memory:
        """A record of a format that knows fewer fields, with ours where it says nothing or just what we would say in it."""
        projection = self.reading.projection
        assert projection is not None
        shown, linked = projection.shown(known), self.links.relinked(record.but(id=known.id), record)
        if record.created is None:
            linked = linked.but(created=shown.created)
        if record.id in self.held and shown.status in ANSWERING:
            linked = linked.but(status=shown.status)
        is_evidence_here = self.trusted and known.learned_by == IMPORTED
        vouched = ("source", "learned_by", "verification", "pinned") if is_evidence_here else ()
        said = {
            name: getattr(linked, name) for name in projection.fields if getattr(linked, name) != getattr(shown, name)
        }
        return known.but(id=record.id, **said, **{name: getattr(linked, name) for name in vouched})

    def _here(self, record: Memory, known: Memory) -> Memory:
        """A record as the memory it is here; one that was completed has its links already."""
        record = record.but(id=known.id, name=known.name, aliases=known.aliases)
        return record if self.reading.projection is not None else self.links.relinked(record, record)

    def _merged_by_field(self, record: Memory, known: Memory, history: Sequence[Image]) -> Memory | None:
        """Our memory with what changed there since it was imported, if anything did."""
        images = [image for image in history if image.memory is not None]
        if self.reading.projection is not None:
            images = [replace(image, memory=self._as_stated(image.memory)) for image in images if image.memory]
        merged, conflicts = merged_by_field(self._here(record, known), known, images)
        if conflicts:
            changed = " and ".join(conflicts)
            self._skip(record, f"{changed} changed here and there since it was imported; ours stays")
        if merged == known:
            self.done.unchanged.append(known.id)
            return None
        if self._is_protected(record, known):
            return None
        self.done.updated.append(known.id)
        return merged.but(updated=self.clock())

    def _as_stated(self, memory: Memory) -> Memory:
        """A memory with the fields that the format states as it states them."""
        projection = self.reading.projection
        assert projection is not None
        shown = projection.shown(memory)
        return memory.but(**{name: getattr(shown, name) for name in projection.fields})

    def _is_protected(self, record: Memory, known: Memory) -> bool:
        """Whether no file may change what is here: a team's memory, or what a more trusted source said."""
        if known.id not in self.read and not self.store.owned([known.id]):
            # Its file is committed with the code: what someone imports for themselves is not everybody's to read.
            self._skip(record, "belongs to a team's store; `engram update` changes it there")
        elif not self.trusted and not may_replace(self.source, known):
            self._skip(record, f"is the word of {origin_of(known)} here; {_VOUCH}")
        else:
            return False
        return True

    def _vouched(self, record: Memory, known: Memory) -> Memory:
        """What came as evidence, once a person vouches for where it came from."""
        self.done.updated.append(known.id)
        stamped = {name: getattr(record, name) for name in ("source", "learned_by", "verification", "pinned", "status")}
        return known.but(**stamped, updated=self.clock())

    def _why_ours_stays(self, record: Memory, known: Memory) -> str:
        if record.statement == known.statement:
            return "is here already, and was not changed elsewhere since"
        if known.id in self.read:
            return "another record with this id comes first and says something else; that one counts"
        return "is here with other words, and nothing says that these are newer; ours stay"

    def _count_unseen(self, records: Sequence[Memory]) -> None:
        """Count what came into scopes that a plain recall from here does not look into."""
        seen = visible_from((self.scope, "user"))
        written = {*self.done.created, *self.done.updated}
        for record in records:
            if self.ids.here.get(record.id, record.id) in written and record.scope not in seen:
                self.done.unseen[record.scope] = self.done.unseen.get(record.scope, 0) + 1


def _from_fields(record: Mapping[str, Any], now: datetime) -> Memory:
    """A memory from fields named as callers name them; keys that are none of a memory's are kept as they are."""
    own = {key: value for key, value in record.items() if key in _FIELDS or key in FIELD_ALIASES}
    extra = {key: value for key, value in record.items() if key not in own}
    memory_id = str(own.pop("id", "") or "")
    if isinstance(own.get("metadata"), Mapping):
        own["metadata"] = without_reserved(own["metadata"])
    memory = draft(own, learned_by=IMPORTED, source="", now=now)
    return memory.but(id=memory_id, extra=extra, activation=replace(memory.activation, last_accessed=now))


def _status(image: Image) -> str:
    return image.memory.status if image.memory is not None else ""


def _since(history: Sequence[Image], moment: datetime) -> Sequence[Image]:
    """The images of a memory since a moment, first the one that was current then."""
    first = max((number for number, image in enumerate(history) if image.at <= moment), default=0)
    return history[first:]
