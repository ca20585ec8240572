"""Facts that change: each new version supersedes the last, all stay readable, and exactly one is current.

`place_version` is the only place where a version replaces another. Valid time (`valid_from`, `valid_until`) says when a
version was true; the journal has the recorded time. A version that ends before the current one is an exception to it:
both are current while it is valid, and only the other afterwards.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Unpack

from engram.decisions.authority import WORDING_FIELDS, attribute_to_person, refuse_unapproved, refuse_undoing
from engram.decisions.execution import Change, LockedMemories, execute_change
from engram.decisions.versions import ends_before, reorder_versions, replaced_memories
from engram.model.arguments import CORROBORATED_BY, FORGET_REQUESTED, with_reserved
from engram.model.errors import InvalidInput, Refused
from engram.model.lazy import dataclass
from engram.model.memory import LIVE_STATUSES, ChangedFields, Memory, render_form
from engram.model.types import check_form_kept
from engram.rules.lifecycle import is_effective
from engram.rules.limits import limit_arguments
from engram.rules.scopes import is_scope_visible
from engram.rules.sources import is_below_program
from engram.store.documents import meaning_of
from engram.store.protocol import Store
from engram.store.records import locked_memory, refuse_foreign_ids
from engram.store.references import (
    Scopes,
    find_memory,
    has_foreign,
    no_memory,
    refuse_change,
    refuse_move,
    resolve_links,
)

if TYPE_CHECKING:
    from engram.gates.proposal import GateSettings

RESET_FIELDS = (
    "id", "updated", "lineage", "revision", "supersedes", "superseded_by", "status", "valid_from", "valid_until",
    "occurred_at", "feedback", "activation", "derivation_count", "last_verified", "imported_at", "verification", "consolidated", "evidence",
)  # fmt: skip
"""The fields that a new version does not inherit."""


@limit_arguments
@dataclass(slots=True)
class Lineages:
    """Reads and changes the versions of facts."""

    store: Store
    clock: Callable[[], datetime]
    described: "Callable[[Memory, Memory, Mapping[str, Any]], Memory]" = lambda before, after, changes: after
    """Applies the policy to a new version, given the previous one, the new one, and the changed fields."""

    def versions(self, ref: str, *, scopes: Scopes = None) -> list[Memory]:
        """Every version of a fact, oldest first; a fact that never changed has one.

        `scopes` are those the caller sees; memories and versions in other scopes are not found.
        """
        memory = find_memory(self.store, ref, scopes)
        found = (self.store.lineage(memory.lineage) if memory.lineage else []) or [memory]
        return [version for version in found if is_scope_visible(scopes, version.scope)]

    def current(self, ref: str, *, scopes: Scopes = None) -> Memory:
        """The current version, from the id of any version; if there is none, the newest visible version that was not forgotten."""
        found = self._current(find_memory(self.store, ref, scopes))
        return found if is_scope_visible(scopes, found.scope) else self.versions(ref, scopes=scopes)[-1]

    def _current(self, memory: Memory) -> Memory:
        seen = {memory.id}
        while memory.status not in LIVE_STATUSES or not is_effective(memory, self.clock()):
            newer = _newest(self.versions(memory.id), self.clock()) or memory
            if newer.status not in LIVE_STATUSES:
                # The successor in another lineage or, if the change was undone, a memory that this one had superseded.
                near = [newer.superseded_by, *memory.supersedes]
                found = [m for m in map(self.store.get, filter(None, near)) if m is not None and m.id not in seen]
                newer = next((m for m in found if m.status in LIVE_STATUSES), found[0] if found else newer)
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

        `scopes` are the caller's. A `scope` among the fields moves the new version there.
        """
        from engram.capture.draft import checked_fields, clamp_import_time
        from engram.gates.pipeline import admit

        changes = clamp_import_time(checked_fields(fields), self.clock())
        if not changes:
            raise InvalidInput("nothing to revise: name at least one field, such as statement=…")
        head = _require_revisable(find_replaceable(self, ref, scopes))
        changes = resolve_links(self.store, changes, scopes, head)
        if changes.get("supersedes") and scopes is not None:
            changes["supersedes"] = find_superseded(self, changes["supersedes"], scopes)
        check_form_kept(head.form, changes)
        settings = self._settings
        draft = admit(_build_revision(head, changes, actor, self.clock()), settings)
        if "aliases" in changes:
            refuse_foreign_ids(self.store, [draft.replace(id=head.id)])
        vectors = self.store.embed([meaning_of(draft)])
        refuse_move(draft.scope, scopes)

        def plan(memories: LockedMemories) -> Memory:
            # If another writer was faster, this version follows theirs.
            current = _require_revisable(memories.take(_newest_locked(memories, head.id).id))
            if current.status not in LIVE_STATUSES:
                refuse_undoing(actor, current, self.store.history(current.id))
            new = admit(_build_revision(current, changes, actor, memories.now), settings)
            new = self._place_revision(memories, current, new, changes, actor, scopes)
            same = vectors is not None and meaning_of(new) == meaning_of(draft)
            memories.put(new, vectors[0] if vectors is not None and same else None)
            return new

        change = Change(
            op="revise", actor=actor, plan=plan, reason=reason, caller=scopes, scopes={head.scope, draft.scope},
            related=[version.id for version in self.versions(head.id)], created=[self.clock()],
        )  # fmt: skip
        return execute_change(self.store, self.clock, change)

    def _place_revision(
        self,
        memories: LockedMemories,
        head: Memory,
        new: Memory,
        changes: Mapping[str, Any],
        actor: str,
        scopes: Scopes,
    ) -> Memory:
        """The new version with its id, replacing the head and the other current memories with its conflict key."""
        new = self.described(head, new.replace(id=memories.new_id(memories.now)), changes)
        new = attribute_to_person(new, actor, memories.now) if WORDING_FIELDS & changes.keys() else new
        refuse_unapproved(actor, head, new.replace(status="active"))
        # The name and aliases belong to the fact, so they pass to the current version.
        own = memories.free_name(f"{head.name}-v{head.revision}", head.scope) if head.name else ""
        others = [other for other in replaced_memories(memories, new) if other.id != head.id]
        for other in others:
            refuse_change(other.id, other.scope, scopes)
        return memories.supersede(new, [head.replace(name=own, aliases=()), *others], for_good=True)

    @property
    def _settings(self) -> "GateSettings":
        from engram.gates.proposal import GateSettings

        return GateSettings(allowed_values=self.store.screen.allowed_values)

    def forget(
        self, ref: str, *, actor: str = "manual", reason: str = "", shown: Sequence[Memory] = (), scopes: Scopes = None
    ) -> Memory:
        """Retire a memory; if its fact has other versions, the newest of them becomes current again.

        `scopes` are the caller's.
        """
        found = find_memory(self.store, ref, scopes, to_change=True)
        about = [version.id for version in self.versions(found.id)]
        refuse_foreign_versions(self.store, found.id, about, scopes)

        def plan(memories: LockedMemories) -> Memory | None:
            (memory,) = memories.targets
            if memory.lineage != found.lineage:
                return None
            retired = memory.replace(status="retired", updated=memories.now)
            memories.put(retired)
            reorder_versions(memories, memory.lineage, memories.now, ends_before(self.store, memory))
            return retired

        change = Change(
            op="forget", actor=actor, plan=plan, reason=reason, targets=[found.id], caller=scopes, shown=shown,
            # Which version becomes current depends on the scope.
            scopes=[found.scope] if found.lineage else (), related=about,
        )  # fmt: skip
        if (retired := execute_change(self.store, self.clock, change)) is not None:
            return retired
        # It got its first successor between the read and the lock, so try again.
        return self.forget(found.id, actor=actor, reason=reason, shown=shown, scopes=scopes)


def find_replaceable(lineages: Lineages, ref: str, scopes: Scopes, *, to_change: bool = True) -> Memory:
    """The current version of the fact that a caller names and would replace.

    Raises `NotFound` if any current version is in a scope that the caller does not see. Without `to_change`, the caller
    need not be allowed to change the version they name.
    """
    found = find_memory(lineages.store, ref, scopes)
    head = lineages.current(found.id)
    if scopes is None:
        return head
    current = {head.id: head} | {one.id: one for one in lineages.versions(found.id) if one.status in LIVE_STATUSES}
    for version in current.values():
        if not is_scope_visible(scopes, version.scope):
            raise no_memory(ref)
        if to_change or version.id != found.id:
            refuse_change(version.id, version.scope, scopes)
    return head


def find_superseded(
    lineages: Lineages, refs: Sequence[str], scopes: Scopes, *, to_change: bool = True
) -> tuple[str, ...]:
    """The ids of the memories that a caller supersedes; raises as `find_replaceable` does."""
    for ref in refs:
        find_replaceable(lineages, ref, scopes, to_change=to_change)
    return tuple(find_memory(lineages.store, ref, scopes).id for ref in refs)


def refuse_foreign_versions(store: Store, memory_id: str, versions: Sequence[str], scopes: Scopes) -> None:
    """Raise `Refused` if changing one version would also change one that the caller does not own."""
    if has_foreign(store, versions, scopes):
        raise Refused(f"{memory_id} has versions that you may not change; nothing was changed")


def _newest_locked(memories: LockedMemories, memory_id: str) -> Memory:
    """The current version of the fact that an id belongs to, under the lock."""
    found = locked_memory(memories, memory_id)
    if found.status in LIVE_STATUSES or not found.lineage:
        return found
    return _newest(memories.lineage(found.lineage), memories.now) or found


def _require_revisable(memory: Memory) -> Memory:
    """The memory; raises `InvalidInput` for a candidate, which does not become current by rewording."""
    if memory.status in ("candidate", "rejected"):
        raise InvalidInput(f"{memory.id} is {memory.status}; `engram review` decides about it first")
    return memory


def _build_revision(head: Memory, changes: dict[str, Any], actor: str, now: datetime) -> Memory:
    """The next version's text and fields; its id and position are decided under the lock."""
    blank = Memory("", "")
    renewed = {name: getattr(blank, name) for name in RESET_FIELDS}
    # Support for the old wording says nothing about the new; an agent may not drop a request to forget the fact.
    ended = (CORROBORATED_BY,) if is_below_program(actor) else (CORROBORATED_BY, FORGET_REQUESTED)
    metadata = with_reserved(changes.get("metadata", head.metadata), head.metadata)
    metadata = {key: value for key, value in metadata.items() if key not in ended}
    memory = head.replace(**renewed).replace(created=now).replace(**{**changes, "metadata": metadata})
    if "form" in changes and "statement" not in changes:
        memory = memory.replace(statement=render_form(memory.form))
    if "statement" in changes:
        memory = memory.replace(form=changes.get("form", {}), entities=changes.get("entities", ()))
    return memory


def _newest(versions: Sequence[Memory], now: datetime) -> Memory | None:
    """The current version, else the newest one that was not forgotten."""
    live = [v for v in versions if v.status in LIVE_STATUSES]
    heads = [v for v in live if is_effective(v, now)] or live
    kept = [v for v in versions if v.status not in ("retired", "rejected")]
    found = heads or kept
    return found[-1] if found else None
