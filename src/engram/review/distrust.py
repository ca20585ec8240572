"""Distrust: remove everything a source contributed to the store, and refuse what it proposes afterwards."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from itertools import islice
from typing import Any, NoReturn

from engram.decisions.authority import LEARNED_BY_HAND, refuse_outranked
from engram.decisions.execution import Change, LockedMemories, execute_change
from engram.decisions.versions import ends_before, reorder_versions
from engram.gates.secrets.scan import refuse_secret
from engram.model.arguments import CORROBORATED_BY
from engram.model.decision import DISTRUST
from engram.model.errors import InvalidInput, NotFound, Refused
from engram.model.lazy import dataclass
from engram.model.memory import LIVE_STATUSES, Memory
from engram.review.bulk import BulkDecision, new_bulk, split_ids
from engram.review.queue import APPROVE
from engram.rules.sources import CONFIRMED, CORROBORATED, IMPORTED, Rank, is_from, rank_of
from engram.store.protocol import Filters, Image, Store
from engram.store.records import locked_memory

DISTRUST_STATE = "distrusted"
"""The state key under which the store lists distrusted sources."""
LAST_DISTRUST_STATE = "last_distrust"
"""The state key of the latest change of trust; the journal has no entry for it if the source had no memories."""
RESTORE_TRUST = "restore_trust"
SESSION_PREFIX = "session:"
"""Prefix that names a session instead of a source, meaning everything learned in it."""
_REPEATED = "derive"
"""The operation recorded when a person repeats a stored memory."""
_CONFIRMING = (APPROVE, "verify", "resolve")
"""Operations by which a person confirms a stored memory."""
CONFIRMED_REASON = "a person confirmed it; --include-confirmed takes it out as well"
"""Why a memory of a distrusted source stays although a person only confirmed it and did not write it."""
_RECENT = 200
"""How many recent decisions are compared with the time of a distrust."""
REMOVABLE_STATUSES = ("candidate", *LIVE_STATUSES, "archived", "superseded")
"""Statuses that distrust removes; rejected and retired memories are already out of use."""


def distrust_reason(store: Store, source: str, session: str = "") -> str:
    """Why proposals of a source, or from a session, are refused; "" if they are not."""
    listed: Mapping[str, Any] = store.state(DISTRUST_STATE)
    for pattern, entry in listed.items():
        if _matches(pattern, source, session):
            return f"{pattern} is distrusted since {entry['at'][:10]}; `engram distrust --undo {pattern}` lifts that"
    return ""


def distrusted_sources(store: Store) -> dict[str, Mapping[str, Any]]:
    """The distrusted sources, each with when, by whom, and the decisions that removed its memories."""
    return dict(store.state(DISTRUST_STATE))


def known_sources(store: Store, limit: int = 10) -> dict[str, int]:
    """Sources of stored memories that can be distrusted, with their number of memories, largest first."""
    found = Counter(memory.source for memory in store.listing(Filters(statuses=REMOVABLE_STATUSES)))
    ranked = ((source, number) for source, number in found.most_common() if rank_of(source) < Rank.PROGRAM)
    return dict(islice(ranked, limit))


def source_distrusted_by(store: Store, decision: str) -> str:
    """The source that a bulk decision distrusts; "" if there is none, or if it was undone."""
    return next((source for source, entry in distrusted_sources(store).items() if decision in entry["decisions"]), "")


def last_distrusted_source(store: Store, last: Image | None) -> str:
    """The source that was distrusted after the last decision in the journal; "" if there is none.

    Raises `Refused` if the latest change of trust restored a source: undoing earlier decisions does not undo that.
    """
    noted = store.state(LAST_DISTRUST_STATE)
    if not noted:
        return ""
    # Migration renumbers the journal, so the number alone is not enough.
    if last is not None and (last.seq > noted["after"] or last.at > datetime.fromisoformat(noted["at"])):
        return ""
    if noted["undone"]:
        refuse_redoing(noted["source"])
    return str(noted["source"])


def refuse_redoing(source: str) -> NoReturn:
    """Raise `Refused`: to distrust a source again after an undo, the caller must name it."""
    raise Refused(f"the last decision trusted {source} again; `engram distrust {source}` takes it out once more")


def _matches(pattern: str, source: str, session: str) -> bool:
    if pattern.startswith(SESSION_PREFIX):
        return bool(session) and session == pattern.removeprefix(SESSION_PREFIX)
    return is_from(source, pattern)


@dataclass(slots=True)
class Distrust:
    """Removes the memories of distrusted sources, and restores them."""

    store: Store
    clock: Callable[[], datetime]

    def take_out(
        self,
        source: str,
        since: datetime | None,
        actor: str,
        *,
        include_confirmed: bool = False,
        dry_run: bool = False,
    ) -> BulkDecision:
        """Reject a source's candidates and retire its memories, as one decision; the memories they replaced become current again.

        Memories that a person wrote, reworded or repeated stay; so do those that a person promoted or verified, unless
        `include_confirmed` is set. `since` limits the removal to memories stored from that time on. Raises `Refused`
        for a source that acts for the owner.
        """
        pattern = _parse_source(source)
        memories = self._memories_of_source(pattern, since)
        left = self._keep_reasons(memories, actor, include_confirmed)
        memories += self._corroborated_memories(pattern, {memory.id for memory in memories})
        # Candidates come first, so that none becomes active when the memory it waits for is removed.
        taken = sorted(
            (m for m in memories if m.id not in left),
            key=lambda memory: (memory.status != "candidate", memory.lineage, memory.id),
        )
        if dry_run:
            return BulkDecision("", DISTRUST, tuple(taken), left, pattern)
        mark, done = new_bulk(self.store), list[Memory]()
        # Recorded first, so that nothing from this source arrives while its memories are being removed.
        self._record_distrust(pattern, since, actor, mark)
        for ids in split_ids([memory.id for memory in taken]):
            done += self._take_out_slice(ids, pattern, actor, mark, left, include_confirmed=include_confirmed)
        return BulkDecision(mark, DISTRUST, tuple(done), left, pattern)

    def undo(self, source: str, actor: str) -> BulkDecision:
        """Restore the removed memories, except those decided about since, and let the source propose again."""
        pattern = source.strip()
        entry = self.store.state(DISTRUST_STATE).get(pattern)
        if entry is None:
            known = ", ".join(sorted(self.store.state(DISTRUST_STATE))) or "none is"
            raise NotFound(f"{pattern!r} is not distrusted; distrusted: {known}")
        if rank_of(entry["actor"]) == Rank.PERSON and rank_of(actor, Rank.PROGRAM) < Rank.PROGRAM:
            raise Refused(f"a person distrusted {pattern}, and {actor} may not undo that: a person may, at a terminal")
        parts = [self._undo_decision(decision, actor) for decision in reversed(entry["decisions"])]
        self.store.change_state(DISTRUST_STATE, lambda listed: {k: v for k, v in listed.items() if k != pattern})
        self._record_last(pattern, undone=True)
        mark = next((part.id for part in parts if part.id), "")
        left = {i: why for part in parts for i, why in part.left.items()}
        return BulkDecision(mark, RESTORE_TRUST, tuple(one for part in parts for one in part.done), left, pattern)

    def _undo_decision(self, decision: str, actor: str) -> BulkDecision:
        from engram.review.undo import undo_entries

        parts = self.store.decisions(session=decision)
        # Without entries, there was nothing to remove.
        return undo_entries(self.store, parts, self.clock(), actor) if parts else BulkDecision("", "undo")

    def _memories_of_source(self, pattern: str, since: datetime | None) -> list[Memory]:
        found = self.store.listing(Filters(statuses=REMOVABLE_STATUSES))
        imported = self._imported_ids(pattern, since)
        return [
            memory
            for memory in found
            if (_matches(pattern, memory.source, memory.session) and (since is None or self._is_since(memory, since)))
            or (memory.id in imported and memory.learned_by == IMPORTED)
        ]

    def _is_since(self, memory: Memory, since: datetime) -> bool:
        """Whether a memory was stored at or after a time; for an imported one the journal decides, because the file may state any date."""
        history = self.store.history(memory.id) if memory.learned_by == IMPORTED else ()
        stored = history[0].at if history else memory.created
        return stored is None or stored >= since

    def _keep_reasons(self, memories: Sequence[Memory], actor: str, include_confirmed: bool) -> dict[str, str]:
        """The reasons to keep memories, by id: a person wrote, confirmed or repeated them, or the actor may not decide about them."""
        left: dict[str, str] = {}
        by_id = {memory.id: memory for memory in memories}
        for ids in split_ids(list(by_id)):
            told = self.store.histories(ids)
            left |= {i: why for i in ids if (why := _keep_reason(by_id[i], told[i], actor, include_confirmed))}
        return left

    def _corroborated_memories(self, pattern: str, brought: set[str]) -> list[Memory]:
        """The memories from other sources that only this one corroborated; they lose that support."""
        found = self.store.listing(Filters(statuses=(*LIVE_STATUSES, "candidate")))
        return [one for one in found if one.id not in brought and _is_supported_only_by(one, pattern)]

    def _imported_ids(self, pattern: str, since: datetime | None) -> set[str]:
        """The ids of memories imported from a source, whatever sources and dates the files state."""
        if rank_of(pattern) > Rank.CONTENT:
            return set()
        decisions = (one for one in self.store.decisions() if one.op == IMPORTED and is_from(one.actor, pattern))
        return {i for one in decisions if since is None or one.at >= since for i in one.ids}

    def _record_distrust(self, pattern: str, since: datetime | None, actor: str, mark: str) -> None:
        def add_entry(listed: Mapping[str, Any]) -> Mapping[str, Any]:
            decisions = [*listed.get(pattern, {}).get("decisions", ()), mark]
            entry = {
                "at": self.clock().isoformat(),
                "since": since.isoformat() if since is not None else "",
                "actor": actor,
                "decisions": decisions,
            }
            return {**listed, pattern: entry}

        self.store.change_state(DISTRUST_STATE, add_entry)
        self._record_last(pattern, undone=False)

    def _record_last(self, pattern: str, *, undone: bool) -> None:
        newest = self.store.decisions(_RECENT)
        after = newest[0].seq if newest else 0
        # If the clock was set back, use the time of the latest decision instead.
        at = max([self.clock(), *(one.at for one in newest)]).isoformat()
        self.store.change_state(
            LAST_DISTRUST_STATE, lambda _: {"source": pattern, "after": after, "at": at, "undone": undone}
        )

    def _take_out_slice(
        self,
        ids: Sequence[str],
        pattern: str,
        actor: str,
        mark: str,
        left: dict[str, str],
        *,
        include_confirmed: bool,
    ) -> list[Memory]:
        """Remove some memories and return them; those that a person wrote or confirmed in the meantime are added to `left`."""
        found = [memory for memory in map(self.store.get, ids) if memory is not None]
        versions = {i: version for one in found for i, version in self._replaced_versions(one).items()}

        def plan(memories: LockedMemories) -> list[Memory]:
            taken = []
            for memory in [locked_memory(memories, one.id) for one in found]:
                why = _keep_reason(memory, memories.history(memory.id), actor, include_confirmed)
                if why and not _is_supported_only_by(memory, pattern):
                    left[memory.id] = why
                elif memory.status in REMOVABLE_STATUSES:
                    taken.append(memory)
            out = [_take_out(memory, pattern, memories.now) for memory in taken]
            for memory in out:
                memories.put(memory)
            self._bring_back(memories, taken, memories.now)
            return out

        change = Change(
            op="distrust", actor=actor, plan=plan, note=f"distrust {pattern}", session=mark,
            scopes={memory.scope for memory in (*found, *versions.values())}, related=[*ids, *versions],
        )  # fmt: skip
        return execute_change(self.store, self.clock, change)

    def _replaced_versions(self, memory: Memory) -> dict[str, Memory]:
        """The other versions of the fact, and the memories merged into it."""
        versions = self.store.lineage(memory.lineage) if memory.lineage else []
        merged = [other for other in map(self.store.get, memory.supersedes) if other is not None]
        return {other.id: other for other in (*versions, *merged)}

    def _bring_back(self, memories: LockedMemories, taken: Sequence[Memory], now: datetime) -> None:
        """Make the memories that these replaced current again."""
        ends: dict[str, dict[str, datetime | None]] = {}
        for memory in taken:
            if memory.lineage:
                ends.setdefault(memory.lineage, {}).update(ends_before(self.store, memory))
            for other in filter(None, map(memories.get, memory.supersedes)):
                if other.superseded_by == memory.id and not other.lineage and other.status == "superseded":
                    memories.put(self._state_before(other).replace(updated=now))
        for lineage, cut_short in ends.items():
            reorder_versions(memories, lineage, now, cut_short)

    def _state_before(self, memory: Memory) -> Memory:
        """A merged memory as it was before the merge."""
        images = [image.memory for image in self.store.history(memory.id) if image.memory is not None]
        return next((one for one in reversed(images) if one.status != "superseded"), memory)


def _is_supported_only_by(memory: Memory, pattern: str) -> bool:
    """Whether the memory is corroborated, and only by a source of this pattern."""
    by = memory.metadata.get(CORROBORATED_BY, "")
    return memory.verification == CORROBORATED and bool(by) and is_from(str(by), pattern)


def _take_out(memory: Memory, pattern: str, now: datetime) -> Memory:
    """The memory, retired or rejected; if the source only corroborated it, it waits for review again."""
    if not is_from(memory.source, pattern) and _is_supported_only_by(memory, pattern):
        metadata = {key: value for key, value in memory.metadata.items() if key != CORROBORATED_BY}
        return memory.replace(status="candidate", verification="unverified", metadata=metadata, updated=now)
    return memory.replace(status="rejected" if memory.status == "candidate" else "retired", updated=now)


def _keep_reason(memory: Memory, history: Sequence[Image], actor: str, include_confirmed: bool) -> str:
    """Why a memory stays: a person wrote, repeated or confirmed it, or the actor may not decide; "" if it is removed."""
    if rank_of(memory.source) == Rank.PERSON or (
        memory.learned_by == LEARNED_BY_HAND and memory.verification == CONFIRMED
    ):
        return "a person wrote it"
    if _is_persons(memory, history):
        return "a person wrote or repeated it"
    try:
        if memory.status != "candidate":
            refuse_outranked(actor, memory, "take out")
    except Refused as error:
        return str(error)
    return CONFIRMED_REASON if not include_confirmed and _is_confirmed(memory, history) else ""


def _is_confirmed(memory: Memory, history: Sequence[Image]) -> bool:
    """Whether a person promoted or verified the memory's current wording.

    Approving a whole file confirms no single memory.
    """
    return memory.verification == CONFIRMED and any(
        image.op in _CONFIRMING
        and rank_of(image.actor) == Rank.PERSON
        and image.memory is not None
        and _words(image.memory) == _words(memory)
        for image in history
    )


def _is_persons(memory: Memory, history: Sequence[Image]) -> bool:
    """Whether a person wrote or repeated the memory's current wording. Promoting or verifying it does not count."""
    images = [(image, image.memory) for image in history if image.memory is not None]
    pairs = zip(images[1:], images, strict=False)
    return any(
        rank_of(image.actor) == Rank.PERSON
        and _words(after) == _words(memory)
        and (image.op == _REPEATED or _is_written(image.op, before, after))
        for (image, after), (_, before) in pairs
    )


def _is_written(op: str, before: Memory, after: Memory) -> bool:
    """Whether a decision changed the wording; resolving a contradiction does so only by a merge."""
    if op in ("undo", "resolve"):
        return op == "resolve" and before.statement != after.statement
    return _words(before) != _words(after)


def _words(memory: Memory) -> tuple[Any, ...]:
    return memory.statement, memory.situation, memory.form


def _parse_source(source: str) -> str:
    """The source to distrust; raises `InvalidInput` or `Refused` if it cannot be distrusted."""
    pattern = source.strip()
    refuse_secret(pattern, "the source")
    if not pattern or pattern == SESSION_PREFIX:
        raise InvalidInput("name a source to distrust, such as harness:codex, import:pack.json or session:ID")
    if not pattern.startswith(SESSION_PREFIX) and rank_of(pattern) >= Rank.PROGRAM:
        raise Refused(f"{pattern!r} stands for the owner of this store; `engram forget` retires single memories")
    return pattern
