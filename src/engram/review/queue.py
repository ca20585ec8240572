"""The review queue and the decisions a person can make about each item (spec 1 "Reconsolidation")."""

from datetime import datetime
from typing import TYPE_CHECKING

from engram.gates.pipeline import admit
from engram.gates.secrets.scan import redact
from engram.gates.trust import is_human, tier_3_reason
from engram.model.arguments import checked_fraction, checked_length
from engram.model.errors import InvalidInput
from engram.model.lazy import dataclass, replace
from engram.model.memory import CONTRADICTS, FORGET_REQUESTED, MAY_SUPERSEDE, Association, Memory
from engram.review.conflicts import outdated, release, waiting_on
from engram.review.lineage import Lineages, contradicted, refuse_outranked, replaced_by, superseding
from engram.rules.eligibility import eligibility
from engram.rules.numbers import REINFORCE_RETRIEVAL
from engram.rules.scopes import shows
from engram.rules.sources import CONFIRMED
from engram.rules.strength import consolidated, reinforced
from engram.store.protocol import Filters, Store, Transaction
from engram.store.records import CURRENT, find_memory, locked_memory, start_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

DIFFERS = "valid_elsewhere"
APPROVE = "approve"
"""The one decision about a single memory that depends on what else is current."""
REJECT = "reject"
CHOICES = ("new", "old", "merge", "both")
KINDS = ("contradiction", "update", "forget", "candidate", "retirement")
"""The kinds of items, in the order they are listed."""


@dataclass(frozen=True, slots=True)
class ReviewItem:
    """Something a person should review: its kind, the memory, the other one involved, and the possible actions."""

    kind: str
    memory: Memory
    other: Memory | None
    reason: str
    actions: tuple[str, ...]

    def concerns(self, memory_id: str) -> bool:
        """Whether it is about this memory, on either side."""
        return memory_id == self.memory.id or (self.other is not None and memory_id == self.other.id)


@dataclass(slots=True)
class Review:
    """`mem.review`: list what waits for review, and decide."""

    store: Store
    clock: "Callable[[], datetime]"

    def queue(
        self, limit: int | None = 50, *, about: str = "", scopes: "Collection[str] | None" = None
    ) -> list[ReviewItem]:
        """Contradictions first, then memories that may replace an older one, that an agent asked to forget, other candidates, and
        those that have faded.

        `about` keeps only the items about one memory, before `limit` cuts. `scopes` limits it to what a caller sees.
        """
        checked_length(limit)
        seen = None if scopes is None else tuple(scopes)
        waiting = self.store.listing(Filters(statuses=("candidate",), valid_at=None, scopes=seen))
        items = [self._candidate(memory, seen) for memory in waiting]
        items += self._current(seen)
        items.sort(key=lambda item: KINDS.index(item.kind))
        return [item for item in items if not about or item.concerns(about)][:limit]

    def _candidate(self, memory: Memory, seen: tuple[str, ...] | None) -> ReviewItem:
        other = contradicted(self.store.get, memory)
        if other is not None and shows(seen, other.scope):
            reason = f"contradicts {other.id}: {other.statement[:80]}"
            return ReviewItem("contradiction", memory, other, reason, CHOICES)
        tier, older = tier_3_reason(memory), self._replaced(memory, seen)
        notes = [f"would supersede {older.id}: {older.statement[:80]}"] if older is not None else []
        reason = "; ".join([*notes, f"from {memory.source or 'unknown'}", *([tier] if tier else [])])
        return ReviewItem("candidate", memory, older, reason, (APPROVE, REJECT))

    def _replaced(self, memory: Memory, seen: tuple[str, ...] | None) -> Memory | None:
        """The current memory that a candidate would supersede if it were approved."""
        lineages = Lineages(self.store, self.clock)
        named = (lineages.current(older) for older in memory.supersedes if self.store.get(older) is not None)
        return next((one for one in named if one.status in CURRENT and shows(seen, one.scope)), None)

    def _current(self, seen: tuple[str, ...] | None) -> list[ReviewItem]:
        """The current memories that may replace an older one, that somebody asked to forget, and those that have faded."""
        now = self.clock()
        items = []
        for memory in self.store.listing(Filters(statuses=CURRENT, scopes=seen)):
            if asked := memory.metadata.get(FORGET_REQUESTED):
                items.append(
                    ReviewItem("forget", memory, None, f"to be forgotten: asked for by {asked}", (APPROVE, REJECT))
                )
            if memory.status != "active":
                continue
            older = outdated(self.store.get, memory)
            if older is not None and shows(seen, older.scope):
                reason = f"may supersede {older.id}: {older.statement[:80]}"
                items.append(ReviewItem("update", memory, older, reason, CHOICES))
            state = eligibility(memory, now)
            if state.state == "retirement candidate":
                items.append(ReviewItem("retirement", memory, None, state.reason, ("retire", "reinforce", "later")))
        return items

    # -- decisions about contradictions

    def resolve(
        self, ref: str, keep: str, *, statement: str = "", situations: tuple[str, str] = ("", ""), actor: str = "manual"
    ) -> Memory:
        """Settle a contradiction or a probable update: keep `new` or `old`, `merge` both into `statement`, or keep `both`."""
        if keep not in CHOICES:
            raise InvalidInput(f"Unknown choice {keep!r}; choose {', '.join(CHOICES)}")
        new, old = self._pair(ref)
        now = self.clock()
        waiting = [other for other in waiting_on(self.store, [old.id]) if other.id != new.id]
        lineages = Lineages(self.store, self.clock)
        versions = [version.id for each in (new, old) for version in lineages.versions(each.id)]
        scopes = sorted({new.scope, old.scope})
        about = list(dict.fromkeys((new.id, old.id, *versions, *(other.id for other in waiting))))
        with self.store.deciding("resolve", actor=actor, reason=f"keep {keep}", scopes=scopes, about=about) as deciding:
            new, old = locked_memory(deciding, new.id), locked_memory(deciding, old.id)
            for changed in {"old": [new], "merge": [new, old]}.get(keep, [old]):
                refuse_outranked(actor, changed, "settle a contradiction against")
            if keep != "old":
                new = _confirmed(new, actor)
            if keep == "both":
                return _keep_both(deciding, new, old, situations, now)
            if keep == "merge":
                return _merge(deciding, new, _confirmed(old, actor), statement, now)
            if keep == "old":
                return _keep_old(deciding, new, old, now)
            kept = _keep_one(deciding, new, old, now)
            release(deciding, waiting, now)
            return kept

    def _pair(self, ref: str) -> tuple[Memory, Memory]:
        new = find_memory(self.store, ref)
        old = contradicted(self.store.get, new) or outdated(self.store.get, new)
        if old is None:
            raise InvalidInput(f"{new.id} contradicts no current memory; `engram review` lists what waits")
        return new, old

    # -- decisions about single memories

    def approve(self, ref: str, *, kind: str = "", actor: str = "manual") -> Memory:
        """Make a candidate active, let a memory supersede the older one that it may replace, or forget one as requested.

        A candidate that contradicts a current memory must be resolved instead. `kind`, as `queue` gives it, says which is meant
        where a memory both may replace another and is to be forgotten.
        """
        waiting = find_memory(self.store, ref)
        meant = self._kind(waiting, kind)
        if meant == "update":
            return self.resolve(waiting.id, "new", actor=actor)
        if meant == "forget":
            asked = waiting.metadata[FORGET_REQUESTED]
            return Lineages(self.store, self.clock).forget(waiting.id, actor=actor, reason=f"asked for by {asked}")
        if meant == "contradiction" and (other := contradicted(self.store.get, waiting)):
            raise InvalidInput(f"{waiting.id} contradicts {other.id}: resolve it (keep new, old, both, or merge)")
        return self._set(
            waiting.id,
            APPROVE,
            actor,
            {"candidate"},
            lambda m, now: _approved(m, actor, now),
        )

    def reject(self, ref: str, *, kind: str = "", actor: str = "manual", reason: str = "") -> Memory:
        """Reject a candidate, which stays readable; or that a memory replaces an older one, or is forgotten: it stays current.

        `kind` is as for `approve`.
        """
        found = find_memory(self.store, ref)
        meant = self._kind(found, kind)
        if meant == "update":
            return self.resolve(found.id, "both", actor=actor)
        if meant == "forget":
            return self._set(found.id, REJECT, actor, set(CURRENT), lambda m, now: _without_request(m), reason)
        return self._set(
            found.id, REJECT, actor, {"candidate"}, lambda m, now: m.but(status="rejected", updated=now), reason
        )

    def _kind(self, memory: Memory, kind: str) -> str:
        """The kind of the item about a memory that is to be decided; raises `InvalidInput` where it is not clear or there is none."""
        kinds = self._kinds(memory)
        if kind and kind not in kinds:
            waits = f"it waits as {' and '.join(kinds)}" if kinds else f"it is {memory.status}"
            raise InvalidInput(f"{memory.id} does not wait as {kind!r}; {waits}")
        if len(kinds) > 1 and not kind:
            raise InvalidInput(
                f"{memory.id} waits as {' and as '.join(kinds)}: say which is meant (kind={kinds[0]!r} or {kinds[1]!r}; "
                f"at the command line `--kind {kinds[0]}|{kinds[1]}`)"
            )
        return kind or (kinds[0] if kinds else "")

    def _kinds(self, memory: Memory) -> list[str]:
        """What a memory waits as, of what can be approved or rejected."""
        if memory.status == "candidate":
            return ["contradiction" if contradicted(self.store.get, memory) else "candidate"]
        is_update = memory.status in CURRENT and outdated(self.store.get, memory) is not None
        found = {"update": is_update, "forget": _is_to_be_forgotten(memory)}
        return [kind for kind, waits in found.items() if waits]

    def retire(self, ref: str, *, actor: str = "manual") -> Memory:
        """Retire a memory; it stays readable."""
        return Lineages(self.store, self.clock).forget(ref, actor=actor)

    def reinforce(self, ref: str, *, boost: float = REINFORCE_RETRIEVAL, actor: str = "manual") -> Memory:
        """Confirm that a memory is still useful: `boost`, above 0 and up to 1, is added to its strength."""
        if not checked_fraction(boost, "boost"):
            raise InvalidInput("boost must be above 0, and at most 1")
        return self._set(
            ref, "reinforce", actor, None, lambda m, now: reinforced(m, now, boost=boost).but(last_verified=now)
        )

    def _set(
        self,
        ref: str,
        op: str,
        actor: str,
        allowed: set[str] | None,
        change: "Callable[[Memory, datetime], Memory]",
        reason: str = "",
    ) -> Memory:
        found = find_memory(self.store, ref)
        scopes = [found.scope] if op == APPROVE else []
        with self.store.deciding(
            op, actor=actor, reason=redact(reason)[0], scopes=scopes, about=[found.id, *found.supersedes]
        ) as deciding:
            memory = locked_memory(deciding, found.id)
            if allowed is not None and memory.status not in allowed:
                raise InvalidInput(f"{memory.id} is {memory.status}; {op} takes {' or '.join(sorted(allowed))}")
            if op == REJECT:
                refuse_outranked(actor, memory, op)
            memory = change(memory, self.clock())
            if op == APPROVE:
                memory = self._superseding(deciding, memory, actor)
            deciding.put(memory)
        return memory

    def _superseding(self, deciding: Transaction, memory: Memory, actor: str) -> Memory:
        """The memory, superseding the current ones with its conflict key and those it names."""
        heads = replaced_by(deciding, memory)
        for head in heads:
            refuse_outranked(actor, head, "supersede")
        return superseding(deciding, memory, heads, self.clock()) if heads else memory


def request_forget(store: Store, ref: str, *, actor: str, where: str) -> bool:
    """Put a memory before a person that this actor asked to forget and may not; whether it was not there already.

    The request is part of the memory's metadata, so that every backend, copy and migration carries it.
    """
    with store.deciding("request", actor=actor, reason=f"asked to forget it in {where}", about=[ref]) as deciding:
        memory = locked_memory(deciding, ref)
        if _is_to_be_forgotten(memory):
            return False
        deciding.put(memory.but(metadata={**memory.metadata, FORGET_REQUESTED: f"{actor} in {where}"}))
    return True


def _is_to_be_forgotten(memory: Memory) -> bool:
    return memory.status in CURRENT and FORGET_REQUESTED in memory.metadata


def _without_request(memory: Memory) -> Memory:
    return memory.but(metadata={key: value for key, value in memory.metadata.items() if key != FORGET_REQUESTED})


def _approved(memory: Memory, actor: str, now: datetime) -> Memory:
    """An approved memory; approval reinforces."""
    return _confirmed(reinforced(memory, now), actor).but(status="active", last_verified=now)


def _confirmed(memory: Memory, actor: str) -> Memory:
    """The memory, marked as confirmed where a person approved it."""
    return memory.but(verification=CONFIRMED) if is_human(actor) else memory


def _keep_one(deciding: Transaction, winner: Memory, loser: Memory, now: datetime) -> Memory:
    """The winner as the loser's next version; its own earlier versions become part of that fact's history."""
    winner = consolidated(_unlinked(winner, loser.id), now).but(status="active", updated=now)
    lineage = loser.lineage or loser.id
    if winner.lineage and winner.lineage != lineage:
        for version in deciding.lineage(winner.lineage):
            if version.id != winner.id:
                deciding.put(version.but(lineage=lineage, updated=now))
    loser = loser.but(lineage=lineage, updated=now)
    deciding.put(loser)
    begins = max(winner.valid_from or now, start_of(loser))
    winner = superseding(deciding, winner.but(lineage="", valid_from=begins), [loser], now)
    deciding.put(winner)
    return winner


def _keep_old(deciding: Transaction, new: Memory, old: Memory, now: datetime) -> Memory:
    """The old memory; a candidate is rejected, and a current one retired."""
    status = "rejected" if new.status == "candidate" else "retired"
    deciding.put(new.but(status=status, updated=now))
    old = consolidated(old, now).but(status="active", updated=now)
    deciding.put(old)
    return old


def _merge(deciding: Transaction, new: Memory, old: Memory, statement: str, now: datetime) -> Memory:
    if not statement.strip():
        raise InvalidInput("merge needs a merged statement")
    tags = tuple(dict.fromkeys(old.tags + new.tags))
    merged = consolidated(old, now).but(statement=statement.strip(), form={}, tags=tags, updated=now, entities=())
    admit(merged)
    deciding.put(new.but(status="superseded", superseded_by=old.id, updated=now))
    deciding.put(merged.but(supersedes=(*merged.supersedes, new.id)))
    return merged


def _keep_both(deciding: Transaction, new: Memory, old: Memory, situations: tuple[str, str], now: datetime) -> Memory:
    kept_new = consolidated(_unlinked(new, old.id), now)
    link = Association(old.id, DIFFERS, 0.5, last_reinforced=now)
    kept_new = kept_new.but(status="active", updated=now, associations=(*kept_new.associations, link))
    kept_old = consolidated(old, now)
    if situations[0]:
        kept_new = kept_new.but(situation=situations[0])
    if situations[1]:
        kept_old = kept_old.but(situation=situations[1])
    deciding.put(admit(kept_old.but(updated=now)))
    deciding.put(admit(kept_new))
    return kept_new


def _unlinked(memory: Memory, other: str) -> Memory:
    kinds = (CONTRADICTS, MAY_SUPERSEDE)
    links = tuple(link for link in memory.associations if not (link.type in kinds and link.target == other))
    return replace(memory, associations=links)
