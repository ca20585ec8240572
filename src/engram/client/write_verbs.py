"""The verbs that write: learn, remember, add, change, forget."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Unpack

from engram.client.arguments import resolve_owner
from engram.client.facets import PAUSED_MESSAGE, Facets
from engram.model.arguments import with_reserved
from engram.model.decision import Decision, Outcome
from engram.model.errors import InvalidInput, NotFound, Refused
from engram.model.lazy import replace
from engram.model.memory import LIVE_STATUSES, ChangedFields, Memory, MemoryFields, Owner, render_form
from engram.model.types import check_form_kept, merge_form, with_form
from engram.rules.lifecycle import reinforce_memory
from engram.rules.limits import check_argument
from engram.rules.numbers import REINFORCE_RETRIEVAL
from engram.rules.scopes import is_person
from engram.store.documents import meaning_of
from engram.store.references import Scopes, find_memory
from engram.store.states import is_paused
from engram.verbs import graph, memories, store
from engram.verbs.calls import bind_verb

if TYPE_CHECKING:
    from engram.capture.add import OnError
    from engram.decisions.execution import LockedMemories, Operation
    from engram.embedding.vectors import Vectors
    from engram.model.decision import AddedMemories
    from engram.store.reports import Purged

_DETAILS = (
    "metadata",
    "tags",
    "cues",
    "entities",
    "importance",
    "confidence",
    "pinned",
    "domain",
    "situation",
    "rationale",
    "context",
)
"""Fields that do not make the same statement another memory."""


def _with_unapplied(decision: Decision, given: Mapping[str, Any]) -> Decision:
    """The decision. For a duplicate, it has a warning that names the fields that the stored memory lacks."""
    from engram.capture.draft import checked_fields

    stored = decision.memory
    if decision.outcome != Outcome.DUPLICATE or stored is None:
        return decision
    details = checked_fields({name: given[name] for name in _DETAILS if given.get(name)})
    left = [name for name, value in details.items() if not _includes(getattr(stored, name), value)]
    if not left:
        return decision
    warning = f"{stored.id} was stored before: {', '.join(left)} of this call not applied; `update` changes it"
    return replace(decision, warnings=(*decision.warnings, warning))


def _includes(stored: Any, given: Any) -> bool:
    if isinstance(given, Mapping):
        return all(key in stored and stored[key] == value for key, value in given.items())
    if isinstance(given, tuple):
        return {word.casefold() for word in given} <= {word.casefold() for word in stored}
    return bool(stored == given)


class WriteVerbs(Facets):
    """The verbs that change memories."""

    @bind_verb(memories.LEARN)
    def learn(
        self,
        statement: str = "",
        *,
        source: str = "agent",
        session: str = "",
        autonomous: bool = False,
        relation: str = "",
        on_conflict: str = "",
        **fields: Unpack[MemoryFields],
    ) -> Decision:
        """Propose a memory to the gates.

        `autonomous` marks memories that nobody asked to store; the quality gates also apply to them.

        Feedback takes `situation`, `behavior`, `impact` and `action`; a fact `situation`, `subject`, `predicate` and
        `object`. All are required, and the statement is rendered from them. If learned again in another situation, the
        stored one covers both.

        `supersedes` names stored memories, by id or name, that this one replaces. `relation` declares another relation
        to them: update (the default), contradiction, refinement, same or different. The decision's `related` has up to
        three memories that the new one may outdate or contradict; to replace one, repeat the call with it in
        `supersedes`.

        `on_conflict` decides about a memory that contradicts a stored one: `update` that one, `replace` it,
        `keep-both`, or `skip`, which stores nothing and is the default for autonomous feedback and facts. Without a
        choice it is stored and waits for review, where the same call with a choice settles it.
        """
        session = self._recordable_session(session or fields.get("session_id", ""), fields)
        given = self._prepare_fields(statement, fields, session, source, replaces=False)
        if is_paused(self.store):
            return Decision(outcome=Outcome.REJECTED, reason=PAUSED_MESSAGE, gate="paused")
        decision = self._learn(
            given, source, session, autonomous=autonomous, relation=relation, on_conflict=on_conflict
        )
        return self._hide_foreign(_with_unapplied(decision, given), given.get("scope") or "")

    def _hide_foreign(self, decision: Decision, scope: str) -> Decision:
        """The decision as its owner may see it: memories they do not see are hidden, although they influenced it."""
        if (other := decision.other) is None:
            return decision
        scopes = self.scopes_for(scope=scope or None)
        if scopes is None or other.scope in scopes:
            return decision
        if not is_person(scope) and other.scope in self._scopes.scopes_from(None):
            return decision
        return replace(decision, other=None, reason="a person decided against this in a scope that you do not see")

    def _learn(
        self, given: dict[str, Any], source: str, session: str, *, autonomous: bool, relation: str, on_conflict: str
    ) -> Decision:
        from engram.capture.draft import with_complete_form
        from engram.capture.learn import apply_choice, check_choice
        from engram.gates.situation import situation_warnings

        given = with_complete_form(given)
        check_choice(on_conflict, given, relation)
        warnings = situation_warnings(str(given.get("situation") or "")) if given.get("form") else ()
        choice = on_conflict or ("skip" if autonomous and given.get("form") else "")

        def learn(given: Mapping[str, Any], *, relation: str, skips_conflicts: bool = False) -> Decision:
            return self._learner.learn(
                given, source=source, learned_by="learn", session=session, autonomous=autonomous, relation=relation,
                skips_conflicts=skips_conflicts, here=self._scopes.scope() or "",
            )  # fmt: skip

        def update(other: Memory, changes: Mapping[str, Any], waiting: Memory | None) -> Memory:
            absorbed = waiting.id if waiting is not None else ""
            return self._update(other.id, source, "on_conflict: update", changes, absorbed=absorbed)

        found = learn(given, relation=relation, skips_conflicts=bool(choice))
        decision = apply_choice(found, choice, given, learn, update) if choice else found
        return replace(decision, warnings=(*warnings, *decision.warnings)) if warnings else decision

    @bind_verb(memories.REMEMBER)
    def remember(
        self,
        statement: str = "",
        *,
        source: str = "human",
        session: str = "",
        relation: str = "",
        **fields: Unpack[MemoryFields],
    ) -> Decision:
        """Store a person's statement; `supersedes` and `relation` work as in `learn`."""
        session = self._recordable_session(session or fields.get("session_id", ""), fields)
        given = self._prepare_fields(statement, fields, session, source, replaces=False)
        here = self._scopes.scope() or ""
        decision = self._learner.learn(
            given, source=source, learned_by="remember", session=session, relation=relation, here=here
        )
        return self._hide_foreign(_with_unapplied(decision, given), given.get("scope") or "")

    @bind_verb(memories.ADD)
    def add(
        self,
        statement: str = "",
        *,
        source: str = "manual",
        session: str = "",
        team: bool = False,
        **fields: Unpack[MemoryFields],
    ) -> Memory:
        """Store a statement of a trusted program. A secret raises `SecretRefused`.

        An exact duplicate returns the existing memory with the new cues; the metadata and other fields of this call are
        not stored.

        `team=True` writes it to the repository of the opened directory, to be committed with the code.
        """
        given = self._prepare_fields(
            statement, {**fields, **({"session": session} if session else {})}, session, source
        )
        if not team:
            return self._adder.add(given, source=source)
        folder, scope = self._team_place()
        return self._adder.add({"scope": scope, **given}, source=source, team=folder)

    def _team_place(self) -> tuple[str, str]:
        from engram.store.local import begin_team, has_files

        if not has_files(self.store):
            raise InvalidInput(
                "A team's memories are files in its repository, but this store is on a server: open a home instead, or "
                "give the memory a scope that the team shares"
            )
        folder = begin_team(self.store, self.directory)
        return str(folder), self.scope_here()

    @bind_verb(memories.ADD_BATCH)
    def add_batch(
        self,
        items: Sequence[Mapping[str, Any]],
        *,
        source: str = "manual",
        on_error: "OnError" = "raise",
        progress: Callable[[int, int], None] | None = None,
    ) -> "AddedMemories":
        """Store many memories at once. Every item is checked before the first is written.

        If one is refused, the error gives its position and nothing is written. With `on_error="skip"` the others are
        stored, and the answer lists it in `skipped`.
        """

        def prepare_item(item: Any) -> dict[str, Any]:
            if not isinstance(item, Mapping):
                raise InvalidInput('an item must be a mapping such as {"statement": "…"}')
            check_argument("item", item)
            return self._prepare_fields("", item, source=source)

        return self._adder.add_batch(items, source=source, on_error=on_error, prepare=prepare_item, progress=progress)

    @bind_verb(memories.REVISE)
    def revise(
        self,
        ref: str,
        *,
        actor: str = "manual",
        reason: str = "",
        new_scope: str | None = None,
        **fields: Unpack[ChangedFields],
    ) -> Memory:
        """Add a new version of a fact; the previous one is superseded and stays readable.

        `scope`, or `agent_id` and `user_id`, name who revises it. `new_scope` is the scope of the new version, if it
        differs from the old one's.
        """
        from engram.review.lineage import find_replaceable

        changes, scopes = self._prepare_changes(ref, fields, new_scope)
        given, parts = with_form(changes)
        if parts:
            given["form"] = merge_form(find_replaceable(self.lineages, ref, scopes).form, parts)
        self._check_commands(given, actor)
        self._check_claims(given, actor)
        return self.lineages.revise(ref, actor=actor, reason=reason, scopes=scopes, **given)

    @bind_verb(memories.UPDATE)
    def update(
        self,
        ref: str,
        *,
        actor: str = "manual",
        reason: str = "",
        new_scope: str | None = None,
        **fields: Unpack[ChangedFields],
    ) -> Memory:
        """Change fields of a memory in place; its statement follows the parts of its form (`action=…`, `object=…`).

        `scope`, or `agent_id` and `user_id`, name who changes it, and never move it. `new_scope` moves it.
        """
        changes, scopes = self._prepare_changes(ref, fields, new_scope)
        return self._update(ref, actor, reason, changes, scopes)

    def _update(
        self,
        ref: str,
        actor: str,
        reason: str,
        fields: Mapping[str, Any],
        scopes: Scopes = None,
        absorbed: str = "",
    ) -> Memory:
        """The changed memory. It supersedes the candidate `absorbed`, which waited to say the same."""
        from engram.capture.draft import checked_fields, clamp_import_time
        from engram.decisions.authority import (
            WORDING_FIELDS,
            attribute_to_person,
            refuse_lower_tier,
            refuse_marks,
            refuse_overturning,
            refuse_status,
            refuse_unapproved,
        )
        from engram.decisions.versions import refuse_cycle, refuse_decided
        from engram.gates.pipeline import admit
        from engram.store.records import ENDED_STATUSES

        given, parts = with_form(fields)
        changes = clamp_import_time(checked_fields(given), self._clock())
        if not changes and not parts:
            raise InvalidInput("nothing to change: name at least one field; `new_scope` moves a memory")
        self._check_commands({"form": parts, **changes}, actor)
        self._check_claims(changes, actor)

        def apply_update(memory: Memory) -> Memory:
            formed = {"form": merge_form(memory.form, parts)} if parts else {}
            return apply_changes(memory, {**changes, **formed})

        def apply_changes(memory: Memory, changes: Mapping[str, Any]) -> Memory:
            self._check_name(memory, changes)
            check_form_kept(memory.form, changes)
            refuse_cycle(memory.replace(supersedes=changes.get("supersedes", ())), memory.id, self.store.get)
            refuse_decided(memory, changes)
            if memory.status in ENDED_STATUSES:
                refuse_overturning(actor, memory, self.store.history(memory.id))
            refuse_status(actor, memory, changes.get("status", memory.status))
            changed = self.policy.reapply(memory, _apply_fields(memory, changes, self._clock()), changes)
            refuse_unapproved(actor, memory, changed)
            refuse_lower_tier(actor, memory, changed)
            refuse_marks(actor, memory, changed)
            is_written = changed.status not in ENDED_STATUSES and any(
                getattr(memory, one) != getattr(changed, one) for one in WORDING_FIELDS
            )
            return admit(
                attribute_to_person(changed, actor, self._clock()) if is_written else changed, self._gate_settings
            )

        return self._change(ref, "update", actor, reason, apply_update, scopes, absorbed)

    def _check_commands(self, changes: Mapping[str, Any], actor: str) -> None:
        """Raise `Refused` if anyone but a person writes instructions to the reader into a memory."""
        from engram.decisions.authority import refuse_instructions

        form = changes.get("form") or {}
        statement = changes.get("statement", "") or render_form(form)
        draft = Memory(id="", statement=statement, situation=changes.get("situation", ""), form=form)
        refuse_instructions(actor, draft, "change it")

    def _check_claims(self, changes: Mapping[str, Any], actor: str) -> None:
        """Raise `Refused` if an actor ranked below a program sets who stated or confirmed a memory."""
        from engram.rules.sources import Rank, rank_of

        claimed = sorted(changes.keys() & {"source", "verification", "feedback", "derivation_count"})
        if claimed and rank_of(actor, Rank.PROGRAM) < Rank.PROGRAM:
            raise Refused(
                f"{actor} may not set {claimed[0]}: surfaces stamp it; `engram verify` at a terminal confirms a memory"
            )

    def _check_name(self, memory: Memory, changes: Mapping[str, Any]) -> None:
        """Raise `InvalidInput` if another memory of the scope has the name, or an alias is the id of another."""
        from engram.store.records import refuse_foreign_ids

        if changes.get("aliases"):
            refuse_foreign_ids(self.store, [memory.replace(aliases=changes["aliases"])])
        wanted = [*([changes["name"]] if changes.get("name") else []), *changes.get("aliases", ())]
        scope = changes.get("scope") or memory.scope
        for name in wanted:
            taken = self.store.id_by_name(name, scope)
            if taken and taken != memory.id:
                raise InvalidInput(f"the name {name!r} belongs to {taken} in {scope}; choose another")

    @bind_verb(memories.PIN)
    def pin(self, ref: str, pinned: bool = True, *, actor: str = "manual", **owner: Unpack[Owner]) -> Memory:
        """Pin a memory: it never fades, and is injected first."""
        from engram.decisions.authority import refuse_marks

        def set_pinned(memory: Memory) -> Memory:
            after = memory.replace(pinned=pinned, updated=self._clock())
            refuse_marks(actor, memory, after)
            return after

        return self._change(ref, "pin" if pinned else "unpin", actor, "", set_pinned, self.scopes_for(**owner))

    @bind_verb(memories.VERIFY)
    def verify(
        self, ref: str, *, actor: str = "manual", shown: Sequence[Memory] = (), **owner: Unpack[Owner]
    ) -> Memory:
        """Confirm that a memory is still true, which reinforces and refreshes it. Only a person marks it as confirmed.

        `shown` is the memory as it was read. Raises `ChangedMeanwhile` if it has changed since.
        """
        now = self._clock()
        confirmed = {"verification": "user_confirmed"} if actor == "human" else {}

        def mark_verified(memory: Memory) -> Memory:
            return reinforce_memory(memory, now).replace(**confirmed, last_verified=now, updated=now)

        return self._change(ref, "verify", actor, "", mark_verified, self.scopes_for(**owner), shown=shown)

    @bind_verb(memories.REINFORCE)
    def reinforce(
        self, ref: str, *, boost: float = REINFORCE_RETRIEVAL, actor: str = "manual", **owner: Unpack[Owner]
    ) -> Memory:
        """Strengthen a memory by hand: `boost`, above 0 and up to 1, is added to its retrieval strength."""
        return self.review.reinforce(ref, boost=boost, actor=actor, scopes=self.scopes_for(**owner))

    @bind_verb(memories.FORGET)
    def forget(
        self, ref: str, *, purge: bool = False, actor: str = "manual", reason: str = "", **owner: Unpack[Owner]
    ) -> "Memory | Purged":
        """Retire a memory and return it. It is left out of every answer and stays readable.

        `purge=True` destroys it instead and returns a `Purged`: what was destroyed, what is left, what is out of reach. After an
        interrupted purge, the same call finishes it.
        """
        from engram.upkeep.purge import finish_purge

        scopes = self.scopes_for(**owner)
        try:
            memory = self._find_own(ref, owner)
        except NotFound:
            if purge and (finished := finish_purge(self.store, self._clock, ref, scopes)) is not None:
                return finished
            raise
        if purge:
            return self.upkeep.purge([memory.id], actor=actor, scopes=scopes)
        if memory.status == "retired":
            return memory
        return self.lineages.forget(memory.id, actor=actor, reason=reason, scopes=scopes)

    @bind_verb(memories.PURGE)
    def purge(
        self, scope: str = "", *, agent_id: str | None = None, user_id: str | None = None, actor: str = "manual"
    ) -> "Purged":
        """Destroy everything of a scope or an owner, and of the scopes below it: memories, sessions and tasks.

        It cannot be undone. The result proves it, and names what is left or out of reach.

        `forget(ref, purge=True)` destroys a single memory.
        """
        from engram.upkeep.purge import purge_scope

        named = resolve_owner({"scope": scope, "agent_id": agent_id, "user_id": user_id})["scope"]
        if not named:
            raise InvalidInput("purge takes a scope such as project:acme, or agent_id and user_id")
        return purge_scope(self.store, self._clock, self._scopes.scope_named(named), actor=actor)

    @bind_verb(memories.UNDO)
    def undo(self, ref: str, *, actor: str = "manual", **owner: Unpack[Owner]) -> Memory:
        """Undo the last decision about a memory."""
        from engram.review.undo import undo

        memory, scopes = self._find_own(ref, owner), self.scopes_for(**owner)
        return undo(self.store, memory.id, self._clock(), actor=actor, scopes=scopes)

    @bind_verb(memories.FEEDBACK)
    def feedback(
        self, ref: str, signal: str, *, session: str = "", actor: str = "manual", **owner: Unpack[Owner]
    ) -> Memory:
        """Rate a memory that the owner sees: positive, negative or neutral.

        Only a person's rating retires a person's statement.
        """
        from engram.gates.secrets.scan import refuse_secret
        from engram.sessions import sessions

        refuse_secret(session, "the session's id")
        scopes, session = self.scopes_for(**owner), self._recordable_session(session, owner)
        return sessions.rate_memory(self.store, ref, signal, self._clock(), session, actor=actor, scopes=scopes)

    @bind_verb(graph.RELATE)
    def relate(
        self,
        source: str,
        target: str,
        relation_type: str = "related_to",
        weight: float = 1.0,
        metadata: Mapping[str, Any] | None = None,
        *,
        actor: str = "manual",
        reason: str = "",
        **owner: Unpack[Owner],
    ) -> Memory:
        """Link one memory to another by a named relation with a weight. Another call replaces the weight."""
        return self.graph.relate(
            source, target, relation_type, weight=weight, metadata=metadata, actor=actor, reason=reason,
            scopes=self.scopes_for(**owner),
        )  # fmt: skip

    def _change(
        self,
        ref: str,
        op: "Operation",
        actor: str,
        reason: str,
        change: Callable[[Memory], Memory],
        scopes: Scopes = None,
        absorbed: str = "",
        shown: Sequence[Memory] = (),
    ) -> Memory:
        from engram.capture.learn import absorb
        from engram.decisions.execution import Change, execute_change
        from engram.decisions.versions import refuse_second_head

        found = find_memory(self.store, ref, scopes, to_change=True)
        wanted = change(found)
        meaning, vector = self._meaning_after(wanted, found)

        def plan(memories: "LockedMemories") -> Memory:
            memory = change(memories.targets[0])
            if absorbed:
                memory = absorb(memories, absorbed, memory, actor)
            refuse_second_head(memories, memory, memories.now)
            memories.put(memory, vector if meaning_of(memory) == meaning else None)
            return memory

        decision = Change(
            op=op, actor=actor, plan=plan, reason=reason, targets=[found.id], caller=scopes, shown=shown,
            scopes=_scopes_touched(found, wanted), related=[absorbed] if absorbed else (),
        )  # fmt: skip
        return execute_change(self.store, self._clock, decision)

    def _meaning_after(self, memory: Memory, before: Memory) -> "tuple[str, Vectors | None]":
        """The new text and its vector, computed before the lock is taken; no vector if the text is unchanged."""
        meaning = meaning_of(memory)
        vectors = self.store.embed([meaning]) if meaning != meaning_of(before) else None
        return meaning, vectors[0] if vectors is not None else None

    @bind_verb(memories.INFER_SCOPE)
    def infer_scope(
        self,
        statement: str = "",
        *,
        type: str = "",  # noqa: A002
        situation: str = "",
        form: Mapping[str, str] | None = None,
    ) -> tuple[str, str]:
        """The scope for a new memory by its content, and why: the directory's if it is about its project, else `global`.

        `form` has the parts of feedback or a fact, instead of a statement. The rules are those of
        `engram.gates.nature`. A statement that `global` already has, or has an older value of, stays there. Nothing is
        written.
        """
        from engram.client.placement import inferred_scope

        said = statement or render_form(form or {})
        draft = Memory(id="", statement=said, situation=situation, form=dict(form or {}))
        return inferred_scope(self._scopes.scope(), self.directory, draft, type, self.store, self.policy)

    @bind_verb(store.SCOPE_HERE)
    def scope_here(self) -> str:
        """The scope of the opened directory; `global` outside a repository."""
        return self._scopes.scope() or "global"

    @bind_verb(store.SCOPE_NOTICES)
    def scope_notices(self) -> list[str]:
        """Open questions about the scope of the directory: an older scope that may belong to it, another directory that claims it."""
        from engram.upkeep.scope_links import scope_notices

        return scope_notices(self.store, self.directory)


def _scopes_touched(before: Memory, after: Memory) -> list[str]:
    """The scopes whose contents affect a change, because its words, name or scope change."""
    same = (
        meaning_of(before) == meaning_of(after)
        and (before.scope, before.name, before.aliases) == (after.scope, after.name, after.aliases)
        and (before.status in LIVE_STATUSES or after.status not in LIVE_STATUSES)
    )
    return [] if same else sorted({before.scope, after.scope})


def _apply_fields(memory: Memory, changes: Mapping[str, Any], now: datetime) -> Memory:
    if "metadata" in changes:
        changes = {**changes, "metadata": with_reserved(changes["metadata"], memory.metadata)}
    memory = memory.replace(**changes, updated=now)
    if "form" in changes and "statement" not in changes:
        memory = memory.replace(statement=render_form(memory.form))
    if "statement" in changes:
        memory = memory.replace(form=changes.get("form", {}), entities=changes.get("entities", ()))
    return memory
