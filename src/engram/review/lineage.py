"""Facts that change: each new version supersedes the last, all of them stay, exactly one is in force.

`superseding` is the one place where a version takes another's place. Valid time (`valid_from`, `valid_until`) follows what
was true when; recorded time is the journal's.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from engram.model.errors import InvalidInput, NotFound
from engram.model.memory import Memory, render_form
from engram.rules.eligibility import is_valid
from engram.store.documents import meaning_of
from engram.store.lineages import IN_FORCE, start_of
from engram.store.protocol import Store, Transaction

RENEWED = (
    "id", "updated", "lineage", "revision", "supersedes", "superseded_by", "status", "valid_from", "valid_until",
    "occurred_at", "feedback", "activation", "derivation_count", "last_verified", "verification", "consolidated", "evidence",
)  # fmt: skip
"""What a new version does not take over: how the one before was named, held, rated and proven."""


def taken_over(deciding: Transaction, memory: Memory) -> list[Memory]:
    """What a memory in force takes the place of: whatever holds its conflict key by now, and what it says it supersedes."""
    if memory.status != "active":
        return []
    heads = list(deciding.heads(memory.conflict_key, memory.scope)) if memory.conflict_key else []
    named = [head for older in memory.supersedes for head in _heads_of(deciding, older)]
    return [head for head in {head.id: head for head in (*heads, *named)}.values() if head.id != memory.id]


def _heads_of(deciding: Transaction, memory_id: str) -> list[Memory]:
    """The version in force of the fact that an id belongs to."""
    memory = deciding.get(memory_id)
    if memory is None:
        return []
    versions = deciding.lineage(memory.lineage) if memory.lineage and memory.status not in IN_FORCE else [memory]
    return [version for version in versions if version.status in IN_FORCE]


def superseding(deciding: Transaction, new: Memory, heads: Sequence[Memory], now: datetime) -> Memory:
    """The new head of a fact; the old ones stay readable, true until it begins.

    A fact that says it began before the present head did, and comes late, is history already: the head stays.
    """
    head = max(heads, key=lambda m: (start_of(m), m.revision))
    lineage = head.lineage or head.id
    since = new.valid_from or new.occurred_at
    known = deciding.lineage(lineage) or [head]
    revision = max(version.revision for version in known) + 1
    if since is not None and since < start_of(head):
        return _history(deciding, new, head, lineage, revision, since, now)
    start = since or now
    for old in heads:
        ended = min(old.valid_until, start) if old.valid_until else start
        old = old.but(valid_until=ended, lineage=lineage, updated=now)
        # What begins later leaves the old one in force until then; that day comes without anybody's decision.
        deciding.put(old if start > now else old.but(status="superseded", superseded_by=new.id))
    supersedes = tuple(dict.fromkeys((*new.supersedes, *(old.id for old in heads))))
    return new.but(supersedes=supersedes, lineage=lineage, revision=revision, valid_from=start)


def _history(
    deciding: Transaction, new: Memory, head: Memory, lineage: str, revision: int, since: datetime, now: datetime
) -> Memory:
    """A version that was true before the head; it ends where the next one known begins."""
    if not head.lineage:
        deciding.put(head.but(lineage=lineage, updated=now))
    later = [start_of(v) for v in deciding.lineage(lineage) if start_of(v) > since]
    ended = min([*later, *([new.valid_until] if new.valid_until else [])])
    return new.but(
        status="superseded",
        superseded_by=head.id,
        lineage=lineage,
        revision=revision,
        valid_from=since,
        valid_until=ended,
    )


def refuse_cycle(memory: Memory, memory_id: str, known: Callable[[str], Memory | None]) -> None:
    """A memory cannot supersede itself, nor what supersedes it."""
    waiting, seen = list(memory.supersedes), set()
    while waiting:
        older = waiting.pop()
        if older == memory_id:
            raise InvalidInput(
                f"{memory_id} cannot supersede {', '.join(memory.supersedes)}: that one supersedes it already; "
                "`revise` makes a new version"
            )
        if older not in seen:
            seen.add(older)
            found = known(older)
            waiting += found.supersedes if found is not None else ()


@dataclass(slots=True)
class Lineages:
    """Reads and changes the versions of facts."""

    store: Store
    clock: Callable[[], datetime]

    def versions(self, ref: str) -> list[Memory]:
        """Every version of a fact, oldest first; of one that never changed, itself."""
        memory = self._get(ref)
        return (self.store.lineage(memory.lineage) if memory.lineage else []) or [memory]

    def current(self, ref: str) -> Memory:
        """The version in force, from the id of any version; the newest that was not forgotten where none is."""
        memory = self._get(ref)
        seen = {memory.id}
        while memory.status not in IN_FORCE or not is_valid(memory, self.clock()):
            newer = _newest(self.versions(memory.id), self.clock()) or memory
            if newer.status not in IN_FORCE:
                # Its successor outside of this lineage, or, where the change was undone, what it had superseded.
                near = [newer.superseded_by, *memory.supersedes]
                found = [m for m in map(self.store.get, filter(None, near)) if m is not None and m.id not in seen]
                newer = next((m for m in found if m.status in IN_FORCE), found[0] if found else newer)
            if newer.id in seen:
                break
            seen.add(newer.id)
            memory = newer
        return memory

    def revise(self, ref: str, *, actor: str = "manual", reason: str = "", **fields: Any) -> Memory:
        """A new version of a fact, made from the one in force, whichever version `ref` names."""
        from engram.capture.admission import admit
        from engram.capture.drafting import checked_fields
        from engram.gates.secrets import redact

        changes = checked_fields(fields)
        if not changes:
            raise InvalidInput("nothing to revise: name at least one field, such as statement=…")
        head = _revisable(self.current(ref))
        draft = admit(_revised(head, changes, self.clock()))
        vectors = self.store.embed([meaning_of(draft)])
        scopes = sorted({head.scope, draft.scope})
        about = [version.id for version in self.versions(head.id)]
        with self.store.deciding(
            "revise", actor=actor, reason=redact(reason)[0], scopes=scopes, about=about
        ) as deciding:
            # Whoever was faster made a newer version: this one follows it.
            head = _revisable(self._head_under_lock(deciding, head))
            now = self.clock()
            new = admit(_revised(head, changes, now)).but(id=deciding.new_id(now))
            # Its name and aliases mean the fact, so they go on to the version in force.
            own = deciding.free_name(f"{head.name}-v{head.revision}", head.scope) if head.name else ""
            new = superseding(deciding, new, [head.but(name=own, aliases=())], now)
            same = vectors is not None and meaning_of(new) == meaning_of(draft)
            deciding.put(new, vectors[0] if vectors is not None and same else None)
        return new

    def _head_under_lock(self, deciding: Transaction, head: Memory) -> Memory:
        found = deciding.get(head.id)
        if found is None:
            raise NotFound(f"{head.id} was purged meanwhile")
        if found.status in IN_FORCE or not found.lineage:
            return found
        return _newest(deciding.lineage(found.lineage), self.clock()) or found

    def forget(self, ref: str, *, actor: str = "manual", reason: str = "") -> Memory:
        """Retire a memory; of a fact with versions the newest survivor is in force again."""
        from engram.gates.secrets import redact

        found = self._get(ref)
        about = [version.id for version in self.versions(found.id)]
        # A fact with versions has an heir that comes into force, and what does so depends on its scope.
        scopes = [found.scope] if found.lineage else []
        with self.store.deciding(
            "forget", actor=actor, reason=redact(reason)[0], scopes=scopes, about=about
        ) as deciding:
            memory = deciding.get(found.id)
            if memory is None:
                raise NotFound(f"{found.id} was purged meanwhile")
            if memory.lineage == found.lineage:
                now = self.clock()
                retired = memory.but(status="retired", updated=now)
                deciding.put(retired)
                if memory.lineage:
                    _repoint(deciding, memory, now)
                return retired
        # It got its first successor between the look and the lock; once more, by what it is now.
        return self.forget(found.id, actor=actor, reason=reason)

    def _get(self, ref: str) -> Memory:
        memory = self.store.get(ref)
        if memory is None:
            raise NotFound(f"no memory {ref!r}; `engram list` shows what there is")
        return memory


def _revisable(memory: Memory) -> Memory:
    """What waits for a person cannot come into force by being worded anew."""
    if memory.status in ("candidate", "rejected"):
        raise InvalidInput(f"{memory.id} is {memory.status}; `engram review` decides about it first")
    return memory


def _revised(head: Memory, changes: dict[str, Any], now: datetime) -> Memory:
    """The next version's text and fields; what it is called and what it follows is settled under the lock."""
    blank = Memory("", "")
    renewed = {name: getattr(blank, name) for name in RENEWED}
    memory = head.but(**renewed).but(created=now).but(**changes)
    if "form" in changes and "statement" not in changes:
        memory = memory.but(statement=render_form(memory.form))
    if "statement" in changes:
        memory = memory.but(form=changes.get("form", {}), entities=changes.get("entities", ()))
    return memory


def _repoint(deciding: Transaction, gone: Memory, now: datetime) -> None:
    """Close the gap a forgotten version leaves: those it followed now lead to what came after it, or are in force again."""
    survivors = [v for v in deciding.lineage(gone.lineage) if v.id != gone.id and v.status == "superseded"]
    heir = gone.superseded_by
    if gone.status in IN_FORCE and survivors:
        newest = survivors[-1]
        heir = newest.id
        until = None if newest.valid_until == start_of(gone) else newest.valid_until
        deciding.put(newest.but(status="active", superseded_by="", valid_until=until, updated=now))
    for version in survivors:
        if version.superseded_by == gone.id and version.id != heir:
            deciding.put(version.but(superseded_by=heir, updated=now))


def _newest(versions: Sequence[Memory], now: datetime) -> Memory | None:
    """The version in force, else the last one that nobody has forgotten."""
    standing = [v for v in versions if v.status in IN_FORCE]
    heads = [v for v in standing if is_valid(v, now)] or standing
    kept = [v for v in versions if v.status not in ("retired", "rejected")]
    found = heads or kept
    return found[-1] if found else None
