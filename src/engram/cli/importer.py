"""Taking memories in from elsewhere: what this store does not have yet.

Ids are kept where they can be, so that a second import finds what the first one brought; where one is taken here, the record gets
another, and an alias that names the store it came from and its id there. Every id is known before any link is written: records
that need a new id come first, and links among those are set last. A record that is here already and was changed later elsewhere
replaces ours; one that is older does not. Of PLUR's, whose times do not tell, `reimport` says what to take over. Nothing a file says
about trust counts (who said it, that a person confirmed or pinned it), and it takes the place of nothing that a more trusted source
said, unless the person at the terminal vouches for the file.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, time
from typing import TYPE_CHECKING, Any

from engram.capture.draft import draft
from engram.cli import import_merge
from engram.cli.display import Report
from engram.cli.import_merge import IMPORT, was_imported
from engram.cli.import_source import ImportSource, called, is_origin
from engram.dialects.engram_yaml import to_mapping
from engram.gates.instructions import injection_problem
from engram.gates.proposal import GateSettings
from engram.gates.secrets.scan import secrets_problem
from engram.gates.shape import added_problem
from engram.gates.trust import is_human, tier_of
from engram.model.arguments import refuse_deep
from engram.model.errors import EngramError, InvalidInput
from engram.model.fields import FIELD_ALIASES
from engram.model.memory import CONTRADICTS, Association, Evidence, Memory
from engram.review.lineage import outranking_head, refuse_cycle
from engram.rules.numbers import HORIZON_DAYS
from engram.rules.scopes import parse_scope, visible_from
from engram.rules.sources import CONFIRMED, IMPORTED, is_evidence, may_replace, origin_of, said_by
from engram.store.records import readable_image
from engram.text.content_hash import content_hash
from engram.text.display import slug

if TYPE_CHECKING:
    from engram.client import Engram
    from engram.store.protocol import Image, Transaction

BATCH = 500
"""Memories per decision: bounds how long other writers wait."""
_ID = re.compile(r"(?:ENG|ABS|META|EP)-[A-Za-z0-9-]{1,80}")
_FIELDS = frozenset(Memory.__dataclass_fields__)
_VOUCH = "`engram import --trusted` at a terminal puts the file's newer words in their place"
MIDNIGHT = time.min.replace(tzinfo=UTC)
"""The time of what only has a date."""
_LONG_AGO = datetime.min.replace(tzinfo=UTC)


@dataclass(slots=True)
class Imported:
    """What became of each record, by id here; every skipped one with its reason."""

    created: list[str] = field(default_factory=list)
    updated: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    waiting: list[str] = field(default_factory=list)
    evidence: list[str] = field(default_factory=list)
    """The active ones that give no directions until a person confirms them."""
    skipped: list[tuple[str, str]] = field(default_factory=list)
    not_read: tuple[str, ...] = ()
    unseen: dict[str, int] = field(default_factory=dict)
    """Scopes that a plain question asked here does not look into, and how many memories came into each."""


@dataclass(slots=True)
class Importer:
    """One import into one store."""

    mem: "Engram"
    name: str
    by_person: bool
    candidates: bool = False
    trusted: bool = False
    """The person at the terminal vouches for the file: it is imported unchanged."""
    done: Imported = field(default_factory=Imported)
    here: dict[str, str] = field(default_factory=dict)
    """The id a record had elsewhere → the id it has here."""
    mine: dict[tuple[str, str], str] = field(default_factory=dict)
    """What this import has taken in so far, by content and scope."""
    read: dict[str, Memory] = field(default_factory=dict)
    """The same by the id it has here."""
    origin: ImportSource = field(default_factory=ImportSource)
    """Where the records come from."""
    wanted: set[str] = field(default_factory=set)
    """Every id among them."""
    occupied: set[str] = field(default_factory=set)
    """Aliases of this origin that belong to other memories."""
    called: dict[str, str] = field(default_factory=dict)
    """The aliases taken in so far, and whose each is."""
    unlinked: dict[str, Memory] = field(default_factory=dict)
    """What was written before the new ids of all it links to were known, as it was read."""

    def take(self, reading: ImportSource, report: Report, *, dry_run: bool = False) -> Imported:
        """Take in what this store lacks; a dry run only says what that is."""
        self.origin = reading
        self.done.skipped += reading.skipped
        self.done.not_read = tuple(reading.not_read)
        drafted = [memory for where, record in reading.found if (memory := self._drafted(where, record)) is not None]
        by_id = {memory.id: memory for memory in drafted if memory.id}
        for memory in by_id.values():
            refuse_cycle(memory, memory.id, by_id.get)
        self.wanted = set(by_id)
        drafted = self._renamed_first(drafted)
        for start in range(0, len(drafted), BATCH):
            self._take_slice(drafted[start : start + BATCH], dry_run)
            report("Importing", min(start + BATCH, len(drafted)), len(drafted))
        if self.unlinked and not dry_run:
            self._link()
        self._look_for_unseen(drafted)
        return self.done

    @property
    def source(self) -> str:
        """What the journal and memories without a source of their own name as where they came from."""
        return f"import:{self.name}"

    def _drafted(self, where: str, record: "Memory | Mapping[str, Any]") -> Memory | None:
        try:
            memory = self._stamped(self._memory(record))
            readable_image(memory if memory.id else memory.but(id="the record"))
        except (EngramError, TypeError, ValueError) as error:
            reason = str(error) if isinstance(error, EngramError) else "its fields do not have the form of a memory's"
            self.done.skipped.append((called(record, where), reason))
            return None
        problem = added_problem(memory, GateSettings()) or secrets_problem(memory)
        if problem:
            self.done.skipped.append((memory.id or where, problem))
            return None
        return self._trusted(memory)

    def _memory(self, record: "Memory | Mapping[str, Any]") -> Memory:
        """The memory a record describes; one without an id begins now."""
        now = self.mem.upkeep.clock()
        refuse_deep(record.extra if isinstance(record, Memory) else record, "the record")
        if not isinstance(record, Memory):
            return _from_fields(record, now)
        if record.id:
            return record
        days = HORIZON_DAYS if record.decay_days is None else record.decay_days
        return record.but(scope=parse_scope(record.scope), created=record.created or now, decay_days=days)

    def _stamped(self, memory: Memory) -> Memory:
        """A record as what it is here: the file's word, or where a person vouches for the file, what it says of itself."""
        claimed = is_human(memory.source) and not self.by_person
        source = self.source if claimed or not memory.source else memory.source
        if not self.trusted:
            doubted = "unverified" if memory.verification == CONFIRMED else memory.verification
            memory = memory.but(evidence=self._vouched(memory)) if memory.evidence else memory
            return memory.but(source=source, learned_by=IMPORTED, pinned=False, verification=doubted)
        memory = memory.but(source=source, learned_by=memory.learned_by or IMPORTED)
        vouched = memory.learned_by == IMPORTED and memory.verification == "unverified"
        return memory.but(verification=CONFIRMED) if vouched else memory

    def _vouched(self, memory: Memory) -> tuple[Evidence, ...]:
        """Its evidence, less what was said here: a file does not make that its own, to be quoted and purged along with it."""
        known = self._found_again(memory, self.mem.store.get(memory.id)) if memory.id else None
        ours = {evidence.event for evidence in known.evidence} if known is not None else set()
        return tuple(one for one in memory.evidence if one.event in ours or self.mem.store.event(one.event) is None)

    def _trusted(self, memory: Memory) -> Memory:
        if memory.status not in ("active", "dormant"):
            return memory
        waits = self.candidates or bool(injection_problem(memory)) or (tier_of(memory) > 1 and not self.trusted)
        return memory.but(status="candidate") if waits else memory

    def _renamed_first(self, memories: Sequence[Memory]) -> list[Memory]:
        """Find every record that is here already, and put those first whose id cannot stay."""
        here = {memory.id: memory for memory in self._here_already(memories)}
        renamed: list[Memory] = []
        others: list[Memory] = []
        for memory in memories:
            known = self._found_again(memory, here.get(memory.id)) if memory.id else None
            if known is not None:
                self.here[memory.id] = known.id
                others.append(memory)
            elif memory.id in here or not _ID.fullmatch(memory.id):
                renamed.append(memory)
            else:
                others.append(memory)
        for memory in others:
            self.here.setdefault(memory.id, memory.id)
        for name in {name for memory in memories for name in _named_in(memory)}:
            self._id_here(name)
        return renamed + others

    def _found_again(self, memory: Memory, same_id: Memory | None) -> Memory | None:
        """The memory here that a record became when it was imported before, or that it is."""
        is_it = same_id is not None and self._is_same(memory, same_id)
        # PLUR's ids mean something only within their directory: what came from there before is asked first.
        if is_it and not self.origin.whole:
            return same_id
        # An id of another grammar lives here as an alias by itself.
        for alias in (*self._aliases(memory), *(() if _ID.fullmatch(memory.id) else (memory.id,))):
            known = self.mem.store.get(alias)
            if known is not None and alias in known.aliases:
                if self._is_same(memory, known):
                    return known
                self.occupied.add(alias)
        return same_id if is_it else None

    def _aliases(self, memory: Memory) -> tuple[str, ...]:
        """What a record of this origin may be called here; a time sets apart two that had one id, one after the other."""
        name = self.origin.name_of(memory.id)
        return (f"{name}@{memory.created:%Y%m%dT%H%M%S}", name) if memory.created else (name,)

    def _is_same(self, memory: Memory, known: Memory) -> bool:
        """Whether a memory here is the one that a record speaks of. Two stores give one id to different memories."""
        from_here = any(alias in known.aliases for alias in self._aliases(memory))
        if memory.created is not None and known.created is not None and memory.created != known.created:
            return False
        if from_here:
            return True
        if memory.created != known.created:
            return False
        # Two directories may well have begun on one day; a moment, they share only if one is a copy of the other.
        told_apart = memory.created is not None and memory.created.timetz() != MIDNIGHT
        return not self.origin.whole or told_apart or _says_the_same(memory, known)

    def _take_slice(self, memories: Sequence[Memory], dry_run: bool) -> None:
        known = self._here_already(memories)
        scopes = sorted({memory.scope for memory in (*memories, *known)})
        here = {memory.id for memory in known}
        unnamed = [memory for memory in memories if memory.id in here or not _ID.fullmatch(memory.id)]
        with self.mem.store.deciding(
            IMPORT,
            actor=self.source,
            reason=f"from {self.name}",
            scopes=scopes,
            about=[memory.id for memory in known],
            ids_for=[memory.created or self.mem.upkeep.clock() for memory in unnamed],
        ) as deciding:
            for memory in memories:
                taken = self._judged(memory, deciding)
                if taken is None:
                    continue
                taken = taken if self.trusted else self._subordinate(taken, deciding)
                if not dry_run:
                    deciding.put(taken)
                if taken.status == "candidate":
                    self.done.waiting.append(taken.id)
                elif taken.status == "active" and is_evidence(taken):
                    self.done.evidence.append(taken.id)

    def _subordinate(self, memory: Memory, deciding: "Transaction") -> Memory:
        """A record that would replace what a more trusted source said becomes a candidate that contradicts it."""
        ours = [i for i in memory.supersedes if (known := deciding.get(i)) and not may_replace(self.source, known)]
        versions = deciding.lineage(memory.lineage) if memory.lineage else ()
        if ours or outranking_head(versions, self.source):
            apart = tuple(i for i in memory.supersedes if i not in ours)
            memory = memory.but(lineage="", revision=1, supersedes=apart)
        heads = deciding.heads(memory.conflict_key, memory.scope) if memory.conflict_key else ()
        above = outranking_head([head for head in heads if head.id != memory.id], self.source)
        if above is None or memory.status not in ("active", "dormant"):
            return memory
        link = Association(above.id, CONTRADICTS, 0.5, last_reinforced=self.mem.upkeep.clock())
        return memory.but(status="candidate", associations=(*memory.associations, link))

    def _here_already(self, memories: Sequence[Memory]) -> list[Memory]:
        """The memories here that records of this slice may replace."""
        wanted = dict.fromkeys(self.here.get(memory.id, memory.id) for memory in memories if memory.id)
        found = self.mem.store.get_many(list(self.mem.store.numbers(list(wanted)).values()))
        return [hit.record for hit in found if isinstance(hit.record, Memory)]

    def _judged(self, memory: Memory, deciding: "Transaction") -> Memory | None:
        """What to write for a record, if anything. Two stores give the same id to different memories; they stay two."""
        known = self._known(memory.id, deciding) if memory.id else None
        if known is not None and self._is_same(memory, known):
            self.here[memory.id] = known.id
            return self._merged(memory, known)
        if known is None and self._was_purged(memory.id):
            self.here[memory.id] = self.origin.name_of(memory.id)
            self.done.skipped.append((memory.id, "was purged here; a purged memory does not come back"))
            return None
        key = (content_hash(memory.statement), memory.scope)
        twin = self.mine.get(key) or getattr(deciding.exact(*key), "id", "")
        if twin and memory.status in ("active", "dormant"):
            self.here[memory.id] = twin
            self.done.skipped.append((memory.id or "a record", f"{twin} says exactly this"))
            return None
        new = self._new(memory, deciding, taken=known is not None)
        self.mine[key] = new.id
        return new

    def _known(self, memory_id: str, deciding: "Transaction") -> Memory | None:
        """What has this id here, or had it in what was read before it: a dry run writes nothing that could be asked for."""
        here = self.here.get(memory_id, memory_id)
        return deciding.get(here) or self.read.get(here)

    def _new(self, memory: Memory, deciding: "Transaction", *, taken: bool) -> Memory:
        read, old = memory, memory.id
        if taken or not _ID.fullmatch(old):
            memory = memory.but(id=self._new_id(memory, deciding))
        free = self._free_aliases(read, memory.id)
        memory = memory.but(aliases=(*free, *(self._new_aliases(read.but(aliases=free), taken) if old else ())))
        self.called |= dict.fromkeys(memory.aliases, memory.id)
        self.here[old] = memory.id
        name = memory.name or slug(memory.situation or memory.statement)
        memory = self._relinked(memory.but(name=deciding.free_name(name, memory.scope)), read)
        self.done.created.append(memory.id)
        self.read[memory.id] = memory
        return memory

    def _new_id(self, memory: Memory, deciding: "Transaction") -> str:
        """An id of the record's day that no other record brings along."""
        while (made := deciding.new_id(memory.created or self.mem.upkeep.clock())) in self.wanted:
            pass
        return made

    def _new_aliases(self, memory: Memory, taken: bool) -> tuple[str, ...]:
        """What the record will be found by next time, unless its id says it all."""
        if not _ID.fullmatch(memory.id) and not taken and not self._is_taken(memory.id, ""):
            return () if memory.id in memory.aliases else (memory.id,)
        if not taken and not self.origin.whole and _ID.fullmatch(memory.id):
            return ()
        stamped, plain = self._aliases(memory)[0], self._aliases(memory)[-1]
        return (stamped if plain in self.occupied else plain,)

    def _free_aliases(self, memory: Memory, memory_id: str) -> tuple[str, ...]:
        """A record's aliases without those that mean another memory here: no file makes a name ambiguous."""
        taken = [alias for alias in memory.aliases if self._is_taken(alias, memory_id)]
        if taken:
            listed = ", ".join(map(repr, taken))
            self.done.skipped.append(
                (memory.id or "a record", f"{listed} means another memory here; taken in without it")
            )
        return tuple(alias for alias in memory.aliases if alias not in taken)

    def _is_taken(self, alias: str, memory_id: str) -> bool:
        """Whether an alias is an id, a name or an alias of another memory."""
        try:
            found = self.mem.store.get(alias)
        except InvalidInput:  # of several
            return True
        owner = found.id if found is not None else self.called.get(alias, memory_id)
        return owner != memory_id

    def _merged(self, memory: Memory, known: Memory) -> Memory | None:
        better = self.trusted and said_by(memory) > said_by(known)
        if self.origin.whole and not better:
            history = self.mem.store.history(known.id)
            if was_imported(history):
                return self._taken_over(memory, known, history)
        claims = {"verification": known.verification} | (
            {} if self.trusted and not better else {"pinned": known.pinned}
        )
        if _same(memory.but(**claims), known):
            if better:
                return self._known_better(memory, known)
            self.done.unchanged.append(known.id)
            return None
        theirs = memory.updated or memory.created or _LONG_AGO
        ours = known.updated or known.created or _LONG_AGO
        if theirs <= ours:
            self.done.skipped.append((memory.id, self._why_ours_stays(memory, known)))
            return None
        if self._stays(memory, known):
            return None
        self.done.updated.append(known.id)
        aliases = known.aliases or self._free_aliases(memory, known.id)
        changed = memory.but(id=known.id, name=known.name, aliases=aliases)
        return self._relinked(changed, memory)

    def _taken_over(self, memory: Memory, known: Memory, history: "Sequence[Image]") -> Memory | None:
        """Our memory with what changed there since, if anything did."""
        theirs = self._relinked(memory.but(id=known.id), memory)
        found = import_merge.merged(theirs, known, history)
        if found.kept:
            fields = " and ".join(found.kept)
            self.done.skipped.append((memory.id, f"{fields} changed here and there since it was imported; ours stays"))
        if found.memory == known:
            self.done.unchanged.append(known.id)
            return None
        if self._stays(memory, known):
            return None
        self.done.updated.append(known.id)
        return found.memory.but(updated=self.mem.upkeep.clock())

    def _stays(self, memory: Memory, known: Memory) -> bool:
        """Whether no file may change what is here: a team's memory, or the word of someone more trusted."""
        if known.id not in self.read and not self.mem.store.owned([known.id]):
            # Its file is committed with the code: what someone imports for themselves is not everybody's to read.
            self.done.skipped.append((memory.id, "belongs to a team's store; `engram update` changes it there"))
        elif not self.trusted and not may_replace(self.source, known):
            self.done.skipped.append((memory.id, f"is the word of {origin_of(known)} here; {_VOUCH}"))
        else:
            return False
        return True

    def _known_better(self, memory: Memory, known: Memory) -> Memory:
        """What came as evidence, once a person vouches for where it came from."""
        self.done.updated.append(known.id)
        stamped = {name: getattr(memory, name) for name in ("source", "learned_by", "verification", "pinned", "status")}
        return known.but(**stamped, updated=self.mem.upkeep.clock())

    def _why_ours_stays(self, memory: Memory, known: Memory) -> str:
        if memory.statement == known.statement:
            return "is here already, and was not changed elsewhere since"
        if known.id in self.read:
            return "another record with this id comes first and says something else; that one counts"
        return "is here with other words, and nothing says that these are newer; ours stay"

    def _relinked(self, memory: Memory, read: Memory) -> Memory:
        """The memory with every id it names as it is here; what is not known yet is left out, and set when all are."""
        found = {name: self._id_here(name) for name in _named_in(read)}
        if not all(found.values()):
            self.unlinked[memory.id] = read
        others = {name: new for name, new in found.items() if new and new != memory.id}
        links = (
            link if _leads_out(link) else replace(link, target=others[link.target])
            for link in read.associations
            if _leads_out(link) or link.target in others
        )
        return memory.but(
            associations=tuple(links),
            supersedes=tuple(others[name] for name in read.supersedes if name in others),
            superseded_by=others.get(read.superseded_by, ""),
            lineage=(found.get(read.lineage) or memory.id) if read.lineage else "",
        )

    def _id_here(self, name: str) -> str:
        """What a record's id is here; "" where it is not known yet. An id of PLUR's means nothing outside its store."""
        if name in self.here:
            return self.here[name]
        if name in self.wanted:
            return ""
        if not self.origin.whole or is_origin(name):
            return name
        alias = self.origin.name_of(name)
        known = self.mem.store.get(alias)
        self.here[name] = known.id if known is not None and alias in known.aliases else alias
        return self.here[name]

    def _link(self) -> None:
        """Set the links of what was written before all ids were known."""
        waiting, self.unlinked = self.unlinked, {}
        ids = list(waiting)
        for start in range(0, len(ids), BATCH):
            part = ids[start : start + BATCH]
            with self.mem.store.deciding(
                IMPORT, actor=self.source, reason=f"links of what came from {self.name}", about=part
            ) as deciding:
                for memory_id in part:
                    memory = deciding.get(memory_id)
                    if memory is not None and (linked := self._relinked(memory, waiting[memory_id])) != memory:
                        deciding.put(linked)

    def _look_for_unseen(self, memories: Sequence[Memory]) -> None:
        """Count what came into scopes that a plain recall from here does not look into."""
        seen = visible_from((self.mem.scope_here(), "user"))
        taken = {*self.done.created, *self.done.updated}
        for memory in memories:
            if self.here.get(memory.id, memory.id) in taken and memory.scope not in seen:
                self.done.unseen[memory.scope] = self.done.unseen.get(memory.scope, 0) + 1

    def _was_purged(self, memory_id: str) -> bool:
        history = self.mem.store.history(memory_id) if memory_id else []
        return bool(history) and history[-1].memory is None


def _from_fields(record: Mapping[str, Any], now: datetime) -> Memory:
    """A memory from fields named as callers name them; keys that are none of a memory's are kept as they are."""
    fields = {key: value for key, value in record.items() if key in _FIELDS or key in FIELD_ALIASES}
    extra = {key: value for key, value in record.items() if key not in fields}
    own = str(fields.pop("id", "") or "")
    return draft(fields, learned_by="import", source="", now=now).but(id=own, extra=extra)


def _says_the_same(memory: Memory, known: Memory) -> bool:
    return (memory.statement, memory.scope) == (known.statement, known.scope)


def _same(theirs: Memory, ours: Memory) -> bool:
    """Whether two records say the same, apart from what this store adds and what use and links do."""
    return _compared(theirs.but(status=ours.status) if ours.status == "candidate" else theirs) == _compared(ours)


def _compared(memory: Memory) -> dict[str, Any]:
    blank = Memory(id="", statement="")
    return to_mapping(
        memory.but(
            id="", name="", aliases=(), source="", learned_by="", activation=blank.activation, feedback=blank.feedback,
            updated=None, associations=(), supersedes=(), superseded_by="",
        )
    )  # fmt: skip


def _named_in(memory: Memory) -> set[str]:
    """Every id that a memory names."""
    links = {link.target for link in memory.associations if not _leads_out(link)}
    return {*links, *memory.supersedes, memory.superseded_by, memory.lineage} - {""}


def _leads_out(link: Association) -> bool:
    """Whether a link of PLUR's leads to a document, whose path is no id."""
    return bool(link.extra.get("target_type", "engram") != "engram")
