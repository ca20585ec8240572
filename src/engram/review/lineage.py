"""Facts that change: each new version supersedes the last, all of them stay readable, exactly one is current.

`superseding` is the one place where a version replaces another. Valid time (`valid_from`, `valid_until`) says when a version
was true; the journal has the recorded time. A version that ends before the current one would is an exception to it: both are
current while it holds, and the other alone afterwards.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, Unpack

from engram.model.errors import InvalidInput, Refused
from engram.model.fields import ChangedFields
from engram.model.forms import check_form_kept
from engram.model.lazy import dataclass
from engram.model.memory import CONTRADICTS, Activation, Memory, render_form
from engram.model.reserved_keys import CORROBORATED_BY, FORGET_REQUESTED, with_reserved
from engram.review.authority import refuse_changed, refuse_overturning
from engram.rules.argument_limits import limit_arguments
from engram.rules.eligibility import has_begun, is_effective, outlasts
from engram.rules.scopes import shows
from engram.rules.sources import CONFIRMED, Rank, is_below_program, may_decide, may_replace, origin_of, rank_of
from engram.store.documents import meaning_of
from engram.store.history import is_automatic
from engram.store.protocol import Image, Store, Transaction
from engram.store.records import CURRENT, in_order, locked_memory, refuse_foreign_ids, start_of
from engram.store.references import (
    Scopes,
    find_locked,
    find_memory,
    has_foreign,
    no_memory,
    refuse_change,
    refuse_move,
    resolve_links,
)

VERSIONS = (*CURRENT, "superseded")
"""Statuses of versions that count; retired, rejected and candidate memories are no part of a fact's history."""


def settled(members: Sequence[Memory], now: datetime) -> list[Memory]:
    """The versions that count, in order, with the status and end that follow from the others.

    An end that is no other version's beginning is the version's own and stays. A version that begins later leaves the one
    before it current until then; no decision is needed on that day.
    """
    versions = [memory for memory in in_order(members) if memory.status in VERSIONS]
    placed = []
    for i, memory in enumerate(versions):
        later = next((m for m in versions[i + 1 :] if not _is_exception(m, memory, members)), None)
        placed.append(_placed(memory, later, members, now))
    return placed


def _is_exception(later: Memory, memory: Memory, members: Sequence[Memory]) -> bool:
    """Whether a later version leaves one before it in force: it ends earlier, and was not made to replace it for good."""
    own = _own_end(later, members)
    return own is not None and outlasts(memory, later.but(valid_until=own)) and not _replaces(later, memory, members)


def _replaces(later: Memory, memory: Memory, members: Sequence[Memory]) -> bool:
    """Whether a version says that it supersedes another, or one that does."""
    known, waiting, seen = {m.id: m for m in members}, [later.id], set[str]()
    while waiting:
        one = known.get(waiting.pop())
        older = set(one.supersedes) - seen if one is not None else set()
        seen |= older
        waiting += older
    return memory.id in seen


def _placed(memory: Memory, later: Memory | None, members: Sequence[Memory], now: datetime) -> Memory:
    # The clock may have been set back between the two: no version ends before it begins.
    replaced_at = max(start_of(memory), start_of(later)) if later is not None else None
    ends = [end for end in (_own_end(memory, members), replaced_at) if end is not None]
    memory = memory.but(valid_until=min(ends, default=None))
    if memory.status == "superseded" and not memory.superseded_by:
        return memory  # nothing replaced it: its document no longer states it, and the removal of another version does not restore it
    if later is None or not has_begun(later, now):
        return memory.but(status=memory.status if memory.status in CURRENT else "active", superseded_by="")
    return memory.but(status="superseded", superseded_by=later.id)


def _own_end(memory: Memory, members: Sequence[Memory]) -> datetime | None:
    """The end a version was given itself, not the one it has because another began."""
    # Its own beginning is where it ends if the clock was set back before the next one began.
    return None if memory.valid_until in {start_of(other) for other in (*members, memory)} else memory.valid_until


RENEWED = (
    "id", "updated", "lineage", "revision", "supersedes", "superseded_by", "status", "valid_from", "valid_until",
    "occurred_at", "feedback", "activation", "derivation_count", "last_verified", "imported_at", "verification", "consolidated", "evidence",
)  # fmt: skip
"""The fields a new version does not inherit."""


FOLLOWING = frozenset({"lineage", "revision", "superseded_by", "supersedes"})
"""Fields that follow from `add`, `revise`, `forget` and `undo`."""
WORDS = ("statement", "situation", "form", "type")
"""Fields that decide about a memory's tier."""
WRITTEN = frozenset({"statement", "situation", "form"})
"""Fields that are what a memory says: a person who writes them is its source from then on."""
BY_HAND = "manual"
"""`learned_by` of what a person reworded."""


def replaced_by(deciding: Transaction, memory: Memory) -> list[Memory]:
    """The memories an active one replaces: the current ones with its conflict key, and those it says it supersedes."""
    if memory.status != "active":
        return []
    heads = list(deciding.heads(memory.conflict_key, memory.scope)) if memory.conflict_key else []
    named = heads_named(deciding, memory.supersedes)
    return [head for head in {head.id: head for head in (*heads, *named)}.values() if head.id != memory.id]


def heads_named(deciding: Transaction, ids: Sequence[str]) -> list[Memory]:
    """The current versions of the facts that these ids belong to."""
    return [head for older in ids for head in _heads_of(deciding, older)]


def outranking_head(heads: Sequence[Memory], source: str) -> Memory | None:
    """The first head that this source may not replace, because a more trusted source said it; None where it may replace all."""
    return next((head for head in heads if not may_replace(source, head)), None)


def contradicted(get: Callable[[str], Memory | None], memory: Memory) -> Memory | None:
    """The current memory that another one is linked to as contradicting it."""
    linked = (get(link.target) for link in memory.associations if link.type == CONTRADICTS)
    return next((other for other in linked if other is not None and other.status in CURRENT), None)


def refuse_outranked(actor: str, memory: Memory, what: str) -> None:
    """Raise `Refused` where the actor is less trusted than the memory's source."""
    if not may_decide(actor, memory):
        raise Refused(
            f"{memory.id} was said by {origin_of(memory)}, and {actor} may not {what} it: a person may, at a terminal "
            "(with the same `engram` command); or `learn` what is true now, and it waits for review"
        )


def refuse_unapproved(actor: str, before: Memory, after: Memory) -> None:
    """Raise `Refused` where a reworded memory would need a person's approval.

    As in `learn`, an inferred type makes nothing wait: what is said decides.
    """
    from engram.gates.trust import is_inferred, tier_3_reason

    reworded = any(getattr(before, name) != getattr(after, name) for name in WORDS)
    if not reworded or after.status not in CURRENT or rank_of(actor, Rank.PROGRAM) >= Rank.PROGRAM:
        return
    judged = after.but(type="fact") if is_inferred(actor, before, after) else after
    if reason := tier_3_reason(judged):
        raise Refused(
            f"{actor} may not change {before.id} to this: {reason} and waits for a person; a person may change it at a "
            "terminal, or `learn` it as a memory of its own"
        )


def by_hand(memory: Memory, actor: str, now: datetime) -> Memory:
    """The memory whose words this actor wrote: a person's own, and confirmed, where it was a person."""
    if rank_of(actor) != Rank.PERSON:
        return memory
    memory = memory.but(source=actor or "human", learned_by=BY_HAND)
    # A candidate is confirmed when it is approved.
    return memory if memory.status == "candidate" else memory.but(verification=CONFIRMED, last_verified=now)


def refuse_undoing(actor: str, memory: Memory, history: Sequence[Image]) -> None:
    """Raise `Refused` where a person said it or decided last, and the actor is neither a person nor their program."""
    refuse_outranked(actor, memory, "undo")
    refuse_overturning(actor, memory, history)
    last = last_decision(history) if history else None
    if last and rank_of(last.actor) == Rank.PERSON and not may_decide(actor, memory.but(verification=CONFIRMED)):
        raise Refused(
            f"a person decided “{last.op}” about {memory.id}, and {actor} may not undo that: a person may, at a terminal"
        )


def last_decision(history: Sequence[Image]) -> Image:
    """The last deliberate entry that changed more than the memory's strength."""
    for later, earlier in zip(reversed(history), reversed(history[:-1]), strict=False):
        if is_automatic(later):
            continue
        if later.op == "reinforce" or _decided(later.memory) != _decided(earlier.memory):
            return later
    return history[0]


def _decided(memory: Memory | None) -> Memory | None:
    return memory.but(activation=Activation(), updated=None) if memory is not None else None


def _heads_of(deciding: Transaction, memory_id: str) -> list[Memory]:
    """The current version of the fact that an id belongs to."""
    memory = deciding.get(memory_id)
    if memory is None:
        return []
    versions = deciding.lineage(memory.lineage) if memory.lineage and memory.status not in CURRENT else [memory]
    return [version for version in versions if version.status in CURRENT]


def superseding(
    deciding: Transaction, new: Memory, heads: Sequence[Memory], now: datetime, *, for_good: bool = False
) -> Memory:
    """The new version, placed among the others by its beginning; those stay readable, each true until the next begins.

    Without a given date it follows every version that has begun, whatever the clock said when that one was stored. A version that
    is dated before the current head is part of the history: the head stays. So does a head that outlasts the new version, unless
    it is replaced `for_good`; what the new version supersedes then says so.
    """
    latest = in_order(heads)[-1]
    lineage = latest.lineage or latest.id
    known = _versions(deciding, heads)
    start = new.valid_from or new.occurred_at or now
    lasting = {head.id for head in heads if outlasts(head, new) and not for_good}
    older = [head.id for head in heads if _is_before(head, start, now) and head.id not in lasting]
    named = [i for i in new.supersedes if i not in lasting] if older or not lasting else []
    new = new.but(
        supersedes=tuple(dict.fromkeys((*named, *older))),
        lineage=lineage,
        revision=max(version.revision for version in known) + 1,
        valid_from=start,
    )
    if start <= now and (new.created is None or new.created < start):
        new = new.but(updated=now)  # shows that it had begun when it was written
    followed = settled([*(_follow(version, new, older).but(lineage=lineage) for version in known), new], now)
    for version in followed:
        if version.id != new.id:
            _put_changed(deciding, version, now)
    return next(version for version in followed if version.id == new.id)


def _versions(deciding: Transaction, heads: Sequence[Memory]) -> list[Memory]:
    """Every version of the facts these are heads of, the heads as they are given."""
    known = {version.id: version for head in heads if head.lineage for version in deciding.lineage(head.lineage)}
    return list((known | {head.id: head for head in heads}).values())


def _is_before(head: Memory, start: datetime, now: datetime) -> bool:
    """Whether a version that starts then follows the head. A head dated after now, although it has begun, was dated by a wrong clock."""
    return start_of(head) <= start or (start_of(head) > now and has_begun(head, now))


def _follow(version: Memory, new: Memory, older: Collection[str]) -> Memory:
    """The version, superseded by the new one if it is one of the older ones."""
    return version.but(superseded_by=new.id) if version.id in older else version


def settle(
    deciding: Transaction, lineage: str, now: datetime, ends: "Mapping[str, datetime | None] | None" = None
) -> None:
    """Reorder a fact's versions after one was removed or restored; `ends` are those that versions had before it began."""
    if not lineage:
        return
    known = deciding.lineage(lineage)
    if ends:
        known = [version.but(valid_until=ends.get(version.id, version.valid_until)) for version in known]
    for version in settled(known, now):
        _put_changed(deciding, version, now)


def _put_changed(deciding: Transaction, memory: Memory, now: datetime) -> None:
    if memory != deciding.get(memory.id):
        deciding.put(memory.but(updated=now))


def refuse_second_head(deciding: Transaction, memory: Memory, now: datetime) -> None:
    """Raise `Refused` where a memory would be current next to another with the same conflict key."""
    if memory.status not in CURRENT or not is_effective(memory, now):
        return
    for other in deciding.heads(memory.conflict_key, memory.scope):
        if (
            other.id != memory.id
            and is_effective(other, now)
            and (not memory.lineage or other.lineage != memory.lineage)
        ):
            raise Refused(
                f"{memory.id} cannot be current next to {other.id}, which is the current version of the same fact in "
                f"{memory.scope}; forget that one first, or `revise` it"
            )


def refuse_decided(memory: Memory, changes: Mapping[str, Any]) -> None:
    """Raise `InvalidInput` for fields that follow from decisions: set by hand, they could leave two current versions, or none."""
    if changes.keys() & FOLLOWING:
        name = sorted(changes.keys() & FOLLOWING)[0]
        raise InvalidInput(f"{name} follows from decisions; `revise` adds a version, `forget` and `undo` remove one")
    status = changes.get("status", memory.status)
    if status != memory.status and "superseded" in (status, memory.status):
        raise InvalidInput(
            f"{memory.id} is {memory.status} and cannot be made {status}: `revise` adds a version that supersedes it, "
            "`undo` removes one"
        )
    since, until = (changes.get(name, getattr(memory, name)) for name in ("valid_from", "valid_until"))
    if since is not None and until is not None and until < since:
        raise InvalidInput(f"valid_until {until} is before valid_from {since}")


def refuse_cycle(memory: Memory, memory_id: str, known: Callable[[str], Memory | None]) -> None:
    """A memory cannot supersede itself, nor what supersedes it."""
    waiting, seen = list(memory.supersedes), set()
    while waiting:
        older = waiting.pop()
        if older == memory_id:
            raise InvalidInput(
                f"{memory_id} cannot supersede {', '.join(memory.supersedes)}: that one already supersedes it; "
                "`revise` adds a new version"
            )
        if older not in seen:
            seen.add(older)
            found = known(older)
            waiting += found.supersedes if found is not None else ()


@limit_arguments
@dataclass(slots=True)
class Lineages:
    """Reads and changes the versions of facts."""

    store: Store
    clock: Callable[[], datetime]
    described: "Callable[[Memory, Memory, Mapping[str, Any]], Memory]" = lambda before, after, changes: after
    """Applies the policy to a new version, given the previous one, the new one, and the changed fields."""

    def versions(self, ref: str, *, scopes: Scopes = None) -> list[Memory]:
        """Every version of a fact, oldest first; of one that never changed, itself.

        `scopes` are those the caller sees: memories and versions in others are not found.
        """
        memory = find_memory(self.store, ref, scopes)
        found = (self.store.lineage(memory.lineage) if memory.lineage else []) or [memory]
        return [version for version in found if shows(scopes, version.scope)]

    def current(self, ref: str, *, scopes: Scopes = None) -> Memory:
        """The current version, from the id of any version; where there is none, the newest visible one that was not forgotten."""
        found = self._current(find_memory(self.store, ref, scopes))
        return found if shows(scopes, found.scope) else self.versions(ref, scopes=scopes)[-1]

    def _current(self, memory: Memory) -> Memory:
        seen = {memory.id}
        while memory.status not in CURRENT or not is_effective(memory, self.clock()):
            newer = _newest(self.versions(memory.id), self.clock()) or memory
            if newer.status not in CURRENT:
                # Its successor outside of this lineage, or, where the change was undone, what it had superseded.
                near = [newer.superseded_by, *memory.supersedes]
                found = [m for m in map(self.store.get, filter(None, near)) if m is not None and m.id not in seen]
                newer = next((m for m in found if m.status in CURRENT), found[0] if found else newer)
            if newer.id in seen:
                break
            seen.add(newer.id)
            memory = newer
        return memory

    def revise(
        self,
        ref: str,
        *,
        actor: str = "manual",
        reason: str = "",
        scopes: Scopes = None,
        **fields: Unpack[ChangedFields],
    ) -> Memory:
        """A new version of a fact, based on the current one, whichever version `ref` names.

        `scopes` are the caller's. A `scope` among the fields is where the new version belongs.
        """
        from engram.capture.draft import checked_fields, clamp_import_time
        from engram.gates.pipeline import admit
        from engram.gates.proposal import GateSettings
        from engram.gates.secrets.scan import checked_reason
        from engram.review.conflicts import release, waiting_on

        changes = clamp_import_time(checked_fields(fields), self.clock())
        if not changes:
            raise InvalidInput("nothing to revise: name at least one field, such as statement=…")
        head = _revisable(find_replaceable(self, ref, scopes))
        changes = resolve_links(self.store, changes, scopes, head)
        if changes.get("supersedes") and scopes is not None:
            changes["supersedes"] = find_superseded(self, changes["supersedes"], scopes)
        check_form_kept(head.form, changes)
        settings = GateSettings(allowed_values=self.store.screen.allowed_values)
        draft = admit(_revised(head, changes, actor, self.clock()), settings)
        if "aliases" in changes:
            refuse_foreign_ids(self.store, [draft.but(id=head.id)])
        vectors = self.store.embed([meaning_of(draft)])
        refuse_move(draft.scope, scopes)
        compared = sorted({head.scope, draft.scope})
        waiting = waiting_on(self.store, [head.id])
        about = [*(version.id for version in self.versions(head.id)), *(other.id for other in waiting)]
        with self.store.deciding(
            "revise",
            actor=actor,
            reason=checked_reason(reason),
            scopes=compared,
            about=about,
            ids_for=[self.clock()],
        ) as deciding:
            # Another writer may have been faster: this version follows theirs.
            head = _revisable(self._head_under_lock(deciding, head))
            refuse_change(head.id, head.scope, scopes)
            refuse_outranked(actor, head, "revise")
            if head.status not in CURRENT:
                refuse_undoing(actor, head, self.store.history(head.id))
            now = self.clock()
            new = admit(_revised(head, changes, actor, now), settings).but(id=deciding.new_id(now))
            new = self.described(head, new, changes)
            new = by_hand(new, actor, now) if WRITTEN & changes.keys() else new
            refuse_unapproved(actor, head, new.but(status="active"))
            # The name and aliases belong to the fact, so they pass to the current version.
            own = deciding.free_name(f"{head.name}-v{head.revision}", head.scope) if head.name else ""
            others = [other for other in replaced_by(deciding, new) if other.id != head.id]
            for other in others:
                refuse_change(other.id, other.scope, scopes)
                refuse_outranked(actor, other, "supersede")
            new = superseding(deciding, new, [head.but(name=own, aliases=()), *others], now, for_good=True)
            same = vectors is not None and meaning_of(new) == meaning_of(draft)
            deciding.put(new, vectors[0] if vectors is not None and same else None)
            release(deciding, waiting, now)
        return new

    def _head_under_lock(self, deciding: Transaction, head: Memory) -> Memory:
        found = locked_memory(deciding, head.id)
        if found.status in CURRENT or not found.lineage:
            return found
        return _newest(deciding.lineage(found.lineage), self.clock()) or found

    def forget(
        self, ref: str, *, actor: str = "manual", reason: str = "", shown: Sequence[Memory] = (), scopes: Scopes = None
    ) -> Memory:
        """Retire a memory; of a fact with versions, the newest remaining one becomes current again. `scopes` are the caller's."""
        from engram.gates.secrets.scan import checked_reason
        from engram.review.conflicts import release, waiting_on

        found = find_memory(self.store, ref, scopes, to_change=True)
        about = [version.id for version in self.versions(found.id)]
        refuse_foreign_versions(self.store, found.id, about, scopes)
        waiting = waiting_on(self.store, [found.id])
        # What becomes current instead, another version or what waited for this one, depends on its scope.
        compared = [found.scope] if found.lineage or waiting else []
        about += [other.id for other in waiting]
        with self.store.deciding(
            "forget", actor=actor, reason=checked_reason(reason), scopes=compared, about=about
        ) as deciding:
            memory = find_locked(deciding, found.id, scopes)
            refuse_outranked(actor, memory, "retire")
            refuse_changed(shown, memory)
            if memory.lineage == found.lineage:
                now = self.clock()
                retired = memory.but(status="retired", updated=now)
                deciding.put(retired)
                settle(deciding, memory.lineage, now, ends_before(self.store, memory))
                release(deciding, waiting, now)
                return retired
        # It got its first successor between the read and the lock: try again.
        return self.forget(found.id, actor=actor, reason=reason, shown=shown, scopes=scopes)


def find_replaceable(lineages: Lineages, ref: str, scopes: Scopes, *, to_change: bool = True) -> Memory:
    """The current version of the fact that a caller names and would replace.

    Raises `NotFound` where a current version belongs to somebody whom the caller does not see, whichever version they name. Without
    `to_change`, the version that they name need not be theirs to change.
    """
    found = find_memory(lineages.store, ref, scopes)
    head = lineages.current(found.id)
    if scopes is None:
        return head
    current = {head.id: head} | {one.id: one for one in lineages.versions(found.id) if one.status in CURRENT}
    for version in current.values():
        if not shows(scopes, version.scope):
            raise no_memory(ref)
        if to_change or version.id != found.id:
            refuse_change(version.id, version.scope, scopes)
    return head


def find_superseded(
    lineages: Lineages, refs: Sequence[str], scopes: Scopes, *, to_change: bool = True
) -> tuple[str, ...]:
    """The ids of the memories that a caller names to supersede them; raises as `find_replaceable` does."""
    for ref in refs:
        find_replaceable(lineages, ref, scopes, to_change=to_change)
    return tuple(find_memory(lineages.store, ref, scopes).id for ref in refs)


def refuse_foreign_versions(store: Store, memory_id: str, versions: Sequence[str], scopes: Scopes) -> None:
    """Raise `Refused` where a change of one version would change another that belongs to somebody else."""
    if has_foreign(store, versions, scopes):
        raise Refused(f"{memory_id} has versions that you may not change; nothing was changed")


def ends_before(store: Store, memory: Memory) -> dict[str, datetime | None]:
    """The ends that this version cut short when it superseded others, and which would be lost with it otherwise."""
    ends: dict[str, datetime | None] = {}
    for version in store.lineage(memory.lineage) if memory.lineage else ():
        if version.superseded_by == memory.id:
            images = [image.memory for image in store.history(version.id) if image.memory is not None]
            before = [image.valid_until for image in images if image.superseded_by != memory.id]
            if before and (before[-1] is None or before[-1] > start_of(memory)):
                ends[version.id] = before[-1]
    return ends


def _revisable(memory: Memory) -> Memory:
    """The memory; raises `InvalidInput` for a candidate, which cannot become current by being reworded."""
    if memory.status in ("candidate", "rejected"):
        raise InvalidInput(f"{memory.id} is {memory.status}; `engram review` decides about it first")
    return memory


def _revised(head: Memory, changes: dict[str, Any], actor: str, now: datetime) -> Memory:
    """The next version's text and fields; its id and its place are decided under the lock."""
    blank = Memory("", "")
    renewed = {name: getattr(blank, name) for name in RENEWED}
    # Who repeated the old words says nothing about the new ones; a request to forget the fact is not an agent's to end.
    ended = (CORROBORATED_BY,) if is_below_program(actor) else (CORROBORATED_BY, FORGET_REQUESTED)
    metadata = with_reserved(changes.get("metadata", head.metadata), head.metadata)
    metadata = {key: value for key, value in metadata.items() if key not in ended}
    memory = head.but(**renewed).but(created=now).but(**{**changes, "metadata": metadata})
    if "form" in changes and "statement" not in changes:
        memory = memory.but(statement=render_form(memory.form))
    if "statement" in changes:
        memory = memory.but(form=changes.get("form", {}), entities=changes.get("entities", ()))
    return memory


def _newest(versions: Sequence[Memory], now: datetime) -> Memory | None:
    """The current version, else the newest that was not forgotten."""
    live = [v for v in versions if v.status in CURRENT]
    heads = [v for v in live if is_effective(v, now)] or live
    kept = [v for v in versions if v.status not in ("retired", "rejected")]
    found = heads or kept
    return found[-1] if found else None
