"""`learn` and `remember`: draft → policy → gates (against the store) → lock → gates again for concurrent writes → store.
Conflicts in the same scope are settled as the caller chooses; conflicts with other scopes are reported.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from engram.capture.additions import broader_situation
from engram.capture.memory_writer import (
    COEXISTING_RELATIONS,
    MAX_RELATED_MEMORIES,
    MemoryWriter,
    add_conflict_link,
    assign_identity,
    journal_reason,
    name_superseded,
    superseded_versions,
    without_claims,
)
from engram.decisions.admission import ChangesLookup, StoreLookup, filter_taken_out, propose
from engram.decisions.approval import reject_replaced
from engram.decisions.authority import refuse_outranked
from engram.decisions.execution import Change, LockedMemories, execute_change
from engram.decisions.versions import contradiction_target, outranking_head, replaced_memories
from engram.gates.comparison import in_same_form
from engram.gates.nature import nature_of
from engram.gates.neighbourhood import Neighbourhood
from engram.gates.pipeline import exception_reason, judge, mention, outranked_reason
from engram.gates.policies.policy import PatternTimeout
from engram.gates.proposal import Conflict, Lookup, Neighbour, Proposal, Verdict
from engram.gates.trust import is_human, is_untrusted
from engram.model.decision import DISTRUST, RELATIONS, Decision, Outcome, Related
from engram.model.errors import InvalidInput, Refused, StoreError
from engram.model.lazy import dataclass, replace
from engram.model.memory import LIVE_STATUSES, REFINES, Association, Memory
from engram.review.lineage import Lineages
from engram.rules.labels import name_for
from engram.rules.lifecycle import is_over, outlasts
from engram.rules.scopes import visible_scopes
from engram.rules.sources import rate_limit_key
from engram.store.protocol import COMPARED_STATUSES, Filters, Store
from engram.store.records import locked_memory, refuse_foreign_ids
from engram.store.references import find_memory
from engram.text.display import notice, safe_word

if TYPE_CHECKING:
    from engram.embedding.vectors import Vectors

ON_CONFLICT = ("update", "replace", "keep-both", "skip")
"""The caller's choices; without one, a contradiction is stored as a candidate and waits for review."""
NOT_STORED = "; nothing was stored"
"""The end of the reason if a contradiction was skipped."""
_RELATION_BY_CHOICE = {"replace": "update", "keep-both": "different"}
_REWORDED = ("statement", "form", "situation", "type", "rationale", "tags", "cues", "domain")

Learn = Callable[..., Decision]
Update = Callable[[Memory, Mapping[str, Any], Memory | None], Memory]
"""Changes a memory, and lets it absorb the candidate, if any, that waited with the same statement."""


def check_choice(choice: str, given: Mapping[str, Any], relation: str) -> None:
    """Raise `InvalidInput` for an unknown choice, or one combined with memories that the caller names."""
    if choice and choice not in ON_CONFLICT:
        raise InvalidInput(f"Unknown on_conflict {choice!r}; choose {', '.join(ON_CONFLICT)}")
    if choice and choice != "skip" and (given.get("supersedes") or relation):
        raise InvalidInput(f"on_conflict={choice!r} decides about what is found; leave out supersedes and relation")


def open_conflicts(found: Decision) -> list[Memory]:
    """The current memories that a proposal contradicts, if it was not stored or repeats a candidate that waits for them."""
    stored = found.memory
    is_new = found.outcome == Outcome.CONTRADICTION and stored is None
    is_waiting = found.outcome == Outcome.DUPLICATE and stored is not None and stored.status == "candidate"
    if found.other is None or not (is_new or is_waiting):
        return []
    others = {other.id: other for other in (found.other, *(one.memory for one in found.related))}
    return [other for other in others.values() if stored is None or other.id != stored.id]


def apply_choice(found: Decision, choice: str, given: Mapping[str, Any], learn: Learn, update: Update) -> Decision:
    """The decision after the caller's choice, if a proposal contradicts memories and this has not been settled yet."""
    others = open_conflicts(found)
    if not others:
        return found
    if choice == "skip":
        return found if found.memory is None else replace(found, reason=f"{found.reason}; skip changes neither")
    if choice == "update":
        return _update_stored(found, others, given, learn, update)
    return learn({**given, "supersedes": tuple(other.id for other in others)}, relation=_RELATION_BY_CHOICE[choice])


def _update_stored(
    found: Decision, others: Sequence[Memory], given: Mapping[str, Any], learn: Learn, update: Update
) -> Decision:
    """Update the first stored memory with the new statement; if the source may not change it, the new one waits for review."""
    other = others[0]
    changes = {name: given[name] for name in _REWORDED if given.get(name)}
    changes.setdefault("rationale", "")  # the old rationale explains the old statement
    if "statement" in changes:
        changes.setdefault("form", {})
    if changes.get("situation"):
        changes["situation"] = broader_situation(other.situation, changes["situation"]) or other.situation
    try:
        after = update(other, changes, found.memory)
    except Refused:
        decision = found if found.memory is not None else learn(given, relation="")
        return replace(decision, reason=f"{decision.reason}; {_refusal_reason(others)}")
    left = [one for one in found.related if one.memory.id != other.id]
    still = f"; it still contradicts {_join_ids(one.memory for one in left)}" if left else ""
    waited = f"{other.id} now says what {found.memory.id} waited to say" if found.memory is not None else ""
    reason = f"{waited or found.reason.removesuffix(NOT_STORED)}; updated as the caller chose{still}"
    return Decision(
        outcome=Outcome.UPDATED, memory=after, other=None, reason=reason, gate=found.gate, related=tuple(left)
    )


def _refusal_reason(others: Sequence[Memory]) -> str:
    if len(others) == 1:
        return f"{others[0].id} stays as it is until a person decides"
    return f"`update` changes one memory, and this contradicts {_join_ids(others)}: `replace` supersedes them all"


def _join_ids(memories: Iterable[Memory]) -> str:
    return " and ".join(memory.id for memory in memories)


def absorb(memories: LockedMemories, waiting: str, memory: Memory, actor: str) -> Memory:
    """The memory, superseding a candidate that waited to state the same.

    Raises `Refused` if the actor may not decide about that one.
    """
    candidate = locked_memory(memories, waiting)
    # Somebody else may have decided about it in the meantime.
    if candidate.status != "candidate":
        return memory
    refuse_outranked(actor, candidate, "settle a contradiction against")
    memories.put(candidate.replace(status="superseded", superseded_by=memory.id, updated=memories.now))
    return memory.replace(supersedes=tuple(dict.fromkeys((*memory.supersedes, waiting))))


MAX_SCOPE_NEIGHBOURS = 3
"""How many memories of other scopes, by meaning and by words each, a proposal is compared with; half as many as in its own."""
MIN_COMPARED_COSINE = 0.4
"""The cosine from which a memory of another scope is compared; the gates also compare farther ones, but this only warns."""


def other_scopes(scope: str, here: str) -> tuple[str, ...]:
    """The other scopes that are visible together with one: from the scope itself, and from the directory's project if that sees it."""
    start = [scope, here] if here and scope in visible_scopes([here]) else [scope]
    return tuple(one for one in visible_scopes(start) if one != scope)


def has_memories_elsewhere(store: Store, scope: str, here: str) -> bool:
    """Whether the other scopes with which a new memory is compared contain any current memory."""
    return bool(store.count(Filters(scopes=other_scopes(scope, here), statuses=LIVE_STATUSES)))


def _is_near(proposal: Proposal, near: Neighbour) -> bool:
    """Whether a memory is worth comparing: near in meaning, if that is known, or in the same form."""
    return not 0 <= near.cosine < MIN_COMPARED_COSINE or in_same_form(proposal.memory, near.memory)


def scope_warnings(
    proposal: Proposal, store: Store, vector: "Vectors | None", here: str, now: datetime
) -> tuple[str, ...]:
    """A warning for each current memory of another scope that a proposal repeats or contradicts.

    The gates compare within one scope, because a project may have its own rules. But an agent in the project reads both
    memories, so a warning names the other one.
    """
    memory, scopes = proposal.memory, other_scopes(proposal.memory.scope, here)
    with store.reading():
        found = StoreLookup(store, vector, LIVE_STATUSES, scopes, MAX_SCOPE_NEIGHBOURS).near(proposal)
    current = {near.memory.id: near for near in found if _is_near(proposal, near) and not is_over(near.memory, now)}
    # The gates compare within a scope, so these are treated as part of the proposal's.
    moved = [replace(near, memory=near.memory.replace(scope=memory.scope)) for near in current.values()]
    near = Neighbourhood(proposal, moved)
    if (twin := near.duplicate()) is not None:
        return (notice(f"{mention(twin)} in {safe_word(current[twin.id].memory.scope)} already says this"),)
    likely = [conflict for conflict in near.conflicts() if conflict.is_likely and conflict.other.id in current]
    return tuple(
        notice(
            f"it {'updates' if conflict.relation == 'update' else 'contradicts'} {mention(conflict.other)} in "
            f"{safe_word(current[conflict.other.id].memory.scope)}, which is seen together with it"
            + (f": {conflict.why}" if conflict.why else "")
            + "; forget or change one of them unless this one is an exception"
        )
        for conflict in likely[:MAX_SCOPE_NEIGHBOURS]
    )


RATE_STATE = "rates"
"""The state with today's number of proposals by source."""
RATE_GATE = "rate"
"""The gate named by a decision if a source is over its limit."""


def rate_problem(store: Store, source: str, now: datetime, most: int) -> str:
    """Why a source may add no more candidates today; "" if it may, in which case this one is counted. 0 means no limit."""
    if not most:
        return ""
    day, name, refused = now.date().isoformat(), rate_limit_key(source), False

    def count(before: Mapping[str, Any]) -> Mapping[str, Any]:
        nonlocal refused
        counts = dict(before.get("counts", {})) if before.get("day") == day else {}
        refused = counts.get(name, 0) >= most
        return before if refused else {"day": day, "counts": {**counts, name: counts.get(name, 0) + 1}}

    store.change_state(RATE_STATE, count)
    if not refused:
        return ""
    return f"{source} has added {most} candidates today, its limit (`source_daily_limit`); propose it again tomorrow"


_FOUND = {Outcome.SUPERSEDED: 2, Outcome.CONTRADICTION: 3}


@dataclass(slots=True)
class Learner(MemoryWriter):
    """Learns one memory at a time; every decision names the gate and the reason."""

    def learn(
        self,
        given: Mapping[str, Any],
        *,
        source: str,
        learned_by: str,
        session: str = "",
        autonomous: bool = False,
        relation: str = "",
        alone: bool = False,
        is_typed: bool = True,
        skips_conflicts: bool = False,
        here: str | None = None,
    ) -> Decision:
        """Run one proposal through the gates and store it. The decision says what happened and why.

        `relation` is its relation to the memories named in `supersedes`, which it replaces by default. If it names any,
        or is `alone`, the model's verdict does not make it replace others; with `alone`, neither does its conflict key.
        `is_typed` says whether a given type was stated explicitly. With `skips_conflicts`, a proposal that contradicts
        a stored memory is not stored, and the decision has no memory. With `here`, the scope of the caller's directory
        or "", the decision has a warning for each memory of the other visible scopes that the proposal repeats or
        contradicts.
        """
        if not is_human(source) and (why := self.reason_to_distrust(source, session)):
            return Decision(outcome=Outcome.REJECTED, memory=None, other=None, reason=notice(why), gate=DISTRUST)
        now = self.clock()
        try:
            memory = without_claims(self.draft_memory(given, learned_by, source, now))
        except PatternTimeout as error:
            return Decision(outcome=Outcome.REJECTED, memory=None, other=None, reason=str(error), gate="policy")
        refuse_foreign_ids(self.store, [memory])
        stated = self._resolve_relation(
            _build_proposal(memory, autonomous, alone), relation, placed=bool(given.get("scope"))
        )
        proposal = replace(stated, is_typed=is_typed and ("type" in given or "memory_type" in given))
        vectors = self.embed([proposal.memory])
        vector = vectors[0] if vectors is not None else None
        with self.store.reading():
            mark = self.store.mark(proposal.memory.scope)
            verdict = self._judge_proposal(proposal, StoreLookup(self.store, vector))
            compares = here is not None and has_memories_elsewhere(self.store, proposal.memory.scope, here)
        if autonomous:
            self.store.note_verdict(verdict.gate, verdict.outcome, now)
        if skips_conflicts and verdict.outcome == Outcome.CONTRADICTION:
            return _decide_skip(verdict)
        if skips_conflicts and (waits := self.duplicates.decide_blocked_candidate(proposal, verdict, session)):
            return waits
        if not verdict.is_admitted:
            return self.duplicates.handle_duplicate(proposal, verdict, session)
        if is_untrusted(source) and (over := rate_problem(self.store, source, now, self.settings.most_per_source)):
            return Decision(outcome=Outcome.REJECTED, memory=None, other=None, reason=notice(over), gate=RATE_GATE)
        decision = self._write(proposal, verdict, vector, session, mark)
        if here is None or not compares or not decision.has_new_memory:
            return decision
        return replace(decision, warnings=(*decision.warnings, *self._scope_warnings(proposal, vector, here, now)))

    def _scope_warnings(
        self, proposal: Proposal, vector: "Vectors | None", here: str, now: datetime
    ) -> tuple[str, ...]:
        """Warnings about memories of other scopes.

        The proposal is already stored, so a lost server costs only the warnings.
        """
        try:
            return scope_warnings(proposal, self.store, vector, here, now)
        except StoreError as error:
            return (f"stored; the other scopes were not compared: {error}",)

    def _resolve_relation(self, proposal: Proposal, relation: str, *, placed: bool) -> Proposal:
        """The proposal with the memories it names and its relation to them; in their scope, unless it is `placed`."""
        memory = proposal.memory
        if relation and relation not in RELATIONS:
            raise InvalidInput(f"Unknown relation {relation!r}; choose {', '.join(RELATIONS)}")
        if relation and not memory.supersedes:
            raise InvalidInput(f"relation={relation!r} needs the memories it is about: supersedes=[…], ids or names")
        if not memory.supersedes:
            return proposal
        relation = relation or "update"
        named = tuple(self._find_named(ref, relation) for ref in memory.supersedes)
        replaced = tuple(other.id for other in named) if relation == "update" else ()
        links = [Association(other.id, REFINES, 0.5) for other in named if relation == "refinement"]
        scope = _relation_scope(memory, named, relation, placed=placed)
        memory = memory.replace(scope=scope, supersedes=replaced, associations=(*memory.associations, *links))
        return replace(proposal, memory=memory, named=named, relation=relation)

    def _find_named(self, ref: str, relation: str) -> Memory:
        """The memory that a caller names; its current version if the new one is to coexist with it."""
        found = find_memory(self.store, ref)
        if relation in ("update", "same") or found.status in COMPARED_STATUSES:
            return found
        head = Lineages(self.store, self.clock).current(found.id)
        if head.status in LIVE_STATUSES:
            return head
        if relation == "contradiction":
            raise InvalidInput(
                f"{found.id} is {found.status}, so nothing contradicts it; relation='contradiction' takes what is current"
            )
        return found

    def _write(
        self, proposal: Proposal, verdict: Verdict, vector: "Vectors | None", session: str, mark: int
    ) -> Decision:
        memory = name_superseded(proposal.memory, verdict)
        about = [
            *superseded_versions(self.store, self.clock, [memory]),
            *([verdict.other.id] if verdict.other is not None else []),
        ]

        def plan(memories: LockedMemories) -> Decision | Verdict:
            late = self._rejudge_proposal(proposal, verdict, memories, mark)
            return self._store(memories, proposal, late, vector, session) if late.is_admitted else late

        change = Change(
            op="learn", actor=memory.source, plan=plan, note=journal_reason(verdict), session=session, scopes=[memory.scope],
            related=about, created=[self.clock()],
        )  # fmt: skip
        found = execute_change(self.store, self.clock, change)
        return found if isinstance(found, Decision) else self.duplicates.handle_duplicate(proposal, found, session)

    def _store(
        self, memories: LockedMemories, proposal: Proposal, verdict: Verdict, vector: "Vectors | None", session: str
    ) -> Decision:
        """Store a proposal that the gates admit, replacing the memories it supersedes."""
        memory = name_superseded(proposal.memory, verdict)
        heads = replaced_memories(memories, memory.replace(status=verdict.status))
        if above := outranking_head(heads, memory.source):
            verdict, heads = _outranked_verdict(verdict, memory.source, above), []
        stored = memories.supersede(_prepare_memory(memories, memory, verdict, session, memories.now), heads)
        memories.put(stored, vector, judged=True)
        verdict = _replacement_verdict(verdict, memory, heads) if heads else verdict
        if rejected := reject_replaced(memories, stored, memory.source):
            verdict = _rejection_verdict(verdict, rejected)
        return _decision(verdict, stored)

    def _judge_proposal(self, proposal: Proposal, known: Lookup) -> Verdict:
        """The gates' verdict; if the caller named the memories to replace, the gates' own finding replaces no other."""
        verdict = judge(proposal, known, self.settings)
        other = verdict.other
        if verdict.outcome != Outcome.SUPERSEDED or verdict.gate != "contradiction" or other is None:
            return verdict
        if proposal.alone:
            reason = f"it may be about {mention(other)}, or about something else; it waits for review"
            contradiction = Outcome.CONTRADICTION
            return replace(verdict, outcome=contradiction, status="candidate", reason=reason, waits_alone=True)
        if proposal.memory.supersedes and other.id not in proposal.memory.supersedes:
            return replace(verdict, outcome=Outcome.CREATED, reason="it replaces what the caller names", other=None)
        return verdict

    def _rejudge_proposal(self, proposal: Proposal, verdict: Verdict, memories: LockedMemories, mark: int) -> Verdict:
        """The verdict, or a new one if concurrent writes before the lock change it."""
        changed = memories.changed_since(proposal.memory.scope, mark)
        outdated = _is_outdated(verdict, memories)
        if not changed and not outdated:
            return verdict
        out = filter_taken_out(self.store, [Neighbour(memory, -1.0) for memory in changed])
        late = self._judge_proposal(proposal, ChangesLookup([m for m in changed if m.status in COMPARED_STATUSES], out))
        if late.withdrawn and late.is_admitted:
            return late if verdict.status == "active" else replace(verdict, withdrawn=late.withdrawn, waits_alone=False)
        return late if outdated or _weight(late) >= _weight(verdict) else verdict


def _build_proposal(memory: Memory, autonomous: bool, alone: bool) -> Proposal:
    """A proposal of the memory, with its nature; with `alone`, it has no conflict key."""
    memory = memory.replace(conflict_key="") if alone else memory
    if not memory.memory_kind:
        said = f"{memory.context} {memory.statement}" if autonomous else memory.statement
        nature = "note" if memory.form else nature_of(said, memory.type, memory.tags)
        memory = memory.replace(memory_kind=nature)
    return replace(propose(memory, autonomous=autonomous), alone=alone)


def _weight(verdict: Verdict) -> int:
    """The weight of a verdict by its finding; of two verdicts, the heavier counts."""
    if not verdict.is_admitted:
        return 4
    if verdict.outcome in _FOUND:
        return _FOUND[verdict.outcome]
    return 1 if verdict.other is not None else 0


def _is_outdated(verdict: Verdict, memories: LockedMemories) -> bool:
    """Whether the other memory of a verdict has been removed or reworded since."""
    if verdict.other is None:
        return False
    now = memories.get(verdict.other.id)
    return now is None or now.status not in COMPARED_STATUSES or now.statement != verdict.other.statement


def _prepare_memory(memories: LockedMemories, memory: Memory, verdict: Verdict, session: str, now: datetime) -> Memory:
    memory = memory.replace(status=verdict.status, session=session or memory.session)
    if verdict.outcome == Outcome.CONTRADICTION and verdict.other is not None:
        likely = [conflict.other for conflict in verdict.conflicts if conflict.is_likely]
        # A proposal that contradicts a waiting candidate also waits for the memory that candidate waits for.
        found = [
            m if m.status in LIVE_STATUSES else contradiction_target(memories.get, m) for m in (verdict.other, *likely)
        ]
        others = {other.id: other for other in found if other is not None}
        for other in others.values() or [verdict.other]:
            memory = add_conflict_link(memory, other, now, waits_alone=verdict.waits_alone)
    return assign_identity(memories, memory, name_for(memory), now)


def _relation_scope(memory: Memory, named: Sequence[Memory], relation: str, *, placed: bool) -> str:
    """The scope of a statement about stored memories: theirs, unless the caller chose one.

    Memories are replaced only within their scope.
    """
    scopes = sorted({other.scope for other in named})
    if not placed and len(scopes) == 1:
        return scopes[0]
    apart = [other for other in named if other.scope != memory.scope]
    if not apart or (placed and relation in COEXISTING_RELATIONS):
        return memory.scope
    here = f"this one would be in {memory.scope}" if placed else "others that it names are not"
    raise InvalidInput(
        f"{apart[0].id} is in {apart[0].scope}, and {here}: a memory replaces, repeats or contradicts only what is in its own scope. "
        "Name the memories of one scope at a time, and leave out the scope"
    )


def _decision(verdict: Verdict, stored: Memory) -> Decision:
    """The decision about a stored memory, with the other memories it may outdate or contradict."""
    replaced = stored.supersedes if stored.status in LIVE_STATUSES else ()
    found = {conflict.other.id: _to_related(conflict) for conflict in verdict.conflicts}
    other = verdict.other
    if verdict.outcome == Outcome.CONTRADICTION and other is not None and other.id not in found:
        found = {other.id: Related(other, "update", 1.0, "the current version"), **found}
    related = [one for memory_id, one in found.items() if memory_id not in replaced]
    return Decision(
        outcome=verdict.outcome,
        memory=stored,
        other=other,
        reason=verdict.reason,
        gate=verdict.gate,
        related=tuple(related[:MAX_RELATED_MEMORIES]),
    )


def _decide_skip(verdict: Verdict) -> Decision:
    """The decision about a contradiction that is reported instead of stored, as the caller chose."""
    others = [conflict for conflict in verdict.conflicts if conflict.is_likely and conflict.other != verdict.other]
    related = tuple(map(_to_related, others[:MAX_RELATED_MEMORIES]))
    reason = f"{verdict.reason.removesuffix('; it waits for review')}{NOT_STORED}"
    return Decision(
        outcome=verdict.outcome, memory=None, other=verdict.other, reason=reason, gate=verdict.gate, related=related
    )


def _to_related(conflict: Conflict) -> Related:
    return Related(conflict.other, conflict.relation, conflict.probability, conflict.why)


def _replacement_verdict(verdict: Verdict, memory: Memory, heads: Sequence[Memory]) -> Verdict:
    """The verdict on a memory that replaces these, or is a temporary exception to them."""
    replaced = [head for head in heads if not outlasts(head, memory)]
    if replaced:
        return replace(verdict, outcome=Outcome.SUPERSEDED, other=replaced[0])
    return replace(verdict, outcome=Outcome.CREATED, reason=exception_reason(memory, heads[0]), other=heads[0])


def _rejection_verdict(verdict: Verdict, rejected: Sequence[Memory]) -> Verdict:
    """The verdict on a memory that replaces waiting candidates."""
    reason = (
        f"{verdict.reason}; rejected {', '.join(safe_word(other.id) for other in rejected)}, which waited for review"
    )
    other = rejected[0] if verdict.outcome == Outcome.CREATED else verdict.other
    outcome = Outcome.SUPERSEDED if verdict.outcome == Outcome.CREATED else verdict.outcome
    return replace(verdict, outcome=outcome, reason=reason, other=other)


def _outranked_verdict(verdict: Verdict, source: str, above: Memory) -> Verdict:
    """The verdict on a memory that would supersede one from a more trusted source: it waits for review."""
    reason = outranked_reason(source, above)
    return replace(
        verdict,
        outcome=Outcome.CONTRADICTION,
        gate="trust",
        reason=reason,
        other=above,
        status="candidate",
        waits_alone=verdict.status == "active",
    )
