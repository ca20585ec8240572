"""The verbs that write: learn, remember, add, change, forget."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack, cast

from engram.client.arguments import owned
from engram.client.facets import PAUSED, Facets
from engram.model.decision import Decision, Outcome
from engram.model.errors import InvalidInput, Refused
from engram.model.fields import ChangedFields, MemoryFields, aware
from engram.model.forms import merged_form, with_form
from engram.model.lazy import replace
from engram.model.memory import Memory, render_form
from engram.model.reserved_keys import with_reserved
from engram.rules.numbers import REINFORCE_RETRIEVAL
from engram.rules.strength import reinforced
from engram.store.documents import meaning_of
from engram.store.ledger import CONVERSATION
from engram.store.protocol import LIVE, Progress

if TYPE_CHECKING:
    from engram.capture.exchange import Conversation
    from engram.capture.extraction import Extracted
    from engram.capture.harvest import Harvester, HarvestReport
    from engram.capture.import_report import ImportReport
    from engram.embedding.protocol import Vectors
    from engram.store.reports import Purged

Memories = list[Memory]
HARVEST_WAIT = 60.0
"""Seconds for which a harvest waits until another process has finished its own."""
ANOTHER_HARVEST = "another process harvests now; the waiting sessions are left to it or to the next harvest"
VERIFY = "verify"
"""The one change that any source may make, since it only confirms a memory."""


class WriteVerbs(Facets):
    """The verbs that change memories."""

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
        """Propose a memory to the gates. `autonomous` marks what nobody asked to store: the quality gates apply to it too.

        Feedback takes `situation`, `behavior`, `impact` and `action`; a fact `situation`, `subject`, `predicate` and `object`. All are
        required, and the statement is rendered from them. Learned again in another situation, the stored one covers both.

        `supersedes` names stored memories, by id or name, that this one replaces. With `relation` it says something else about
        them: update (the default), contradiction, refinement, same or different. The decision's `related` has up to three
        memories that the new one may outdate or contradict; to replace one, repeat the call with it in `supersedes`.

        `on_conflict` says what becomes of one that contradicts a stored memory: `update` that one, `replace` it, `keep-both`, or `skip`, which
        stores nothing and is the default of autonomous feedback and facts. Otherwise it is stored and waits for review.
        """
        session = session or fields.get("session_id", "")
        given = self._given(statement, fields, session, source)
        if self.store.paused:
            return Decision(Outcome.REJECTED, reason=PAUSED, gate="paused")
        return self._learn(given, source, session, autonomous=autonomous, relation=relation, on_conflict=on_conflict)

    def _learn(
        self, given: dict[str, Any], source: str, session: str, *, autonomous: bool, relation: str, on_conflict: str
    ) -> Decision:
        from engram.capture.conflict_choice import check_choice, settled
        from engram.capture.draft import with_complete_form
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

        def update(ref: str, changes: Mapping[str, Any]) -> Memory:
            return self.update(ref, actor=source, reason="on_conflict: update", **cast(ChangedFields, changes))

        found = learn(given, relation=relation, skips_conflicts=bool(choice))
        decision = settled(found, choice, given, learn, update) if choice else found
        return replace(decision, warnings=(*warnings, *decision.warnings)) if warnings else decision

    def remember(
        self,
        statement: str = "",
        *,
        source: str = "human",
        session: str = "",
        relation: str = "",
        **fields: Unpack[MemoryFields],
    ) -> Decision:
        """Store something a person said; `supersedes` and `relation` as with `learn`."""
        session = session or fields.get("session_id", "")
        given = self._given(statement, fields, session, source)
        here = self._scopes.scope() or ""
        return self._learner.learn(
            given, source=source, learned_by="remember", session=session, relation=relation, here=here
        )

    def add(
        self,
        statement: str = "",
        *,
        source: str = "manual",
        session: str = "",
        team: bool = False,
        **fields: Unpack[MemoryFields],
    ) -> Memory:
        """Store what a trusted program says. An exact duplicate returns the existing memory; a secret raises `SecretRefused`.

        `team=True` writes it to the repository of the directory this was opened for, to be committed with the code.
        """
        given = self._given(statement, {**fields, **({"session": session} if session else {})}, session, source)
        if not team:
            return self._adder.add(given, source=source)
        folder, scope = self._team_place()
        return self._adder.add({"scope": scope, **given}, source=source, team=folder)

    def _team_place(self) -> tuple[str, str]:
        from engram.store.files.store import FilesStore
        from engram.store.files.team import begin_team

        if not isinstance(self.store, FilesStore):
            raise InvalidInput(
                "A team's memories are files in its repository, but this store is on a server: open a home instead, or "
                "give the memory a scope that the team shares"
            )
        folder = begin_team(self.store, self.directory)
        return str(folder), self.scope_here()

    def add_batch(
        self,
        items: Sequence[Mapping[str, Any]],
        *,
        source: str = "manual",
        progress: Callable[[int, int], None] | None = None,
    ) -> Memories:
        """Store many memories at once. Every item is checked before the first is written."""
        for number, item in enumerate[Any](items, 1):
            if not isinstance(item, Mapping):
                raise InvalidInput(f'item {number} must be a mapping such as {{"statement": "…"}}; nothing was written')
        given = [self._given("", item, source=source) for item in items]
        return self._adder.add_batch(given, source=source, progress=progress)

    def add_conversation(
        self,
        user_message: str,
        assistant_response: str = "",
        *,
        scope: str = "",
        agent_id: str | None = None,
        user_id: str | None = None,
        session: str = "",
        session_id: str = "",
        extract_assistant_response: bool = False,
        source: str = "agent",
        key: str = "",
    ) -> "Conversation":
        """Store an exchange in its session's ledger, and what lasts of it as memories.

        Returns the list of memories written; its `decisions` report every fact, stored or not: ADD, UPDATE, SUPERSEDE or
        NOOP, and why. Where a model is configured and fails, `pending` is true and a job asks it again. The same exchange
        added twice is one, unless `key` tells them apart. It belongs to the owner named, else to the owner of its
        session, else to the directory's scope; raises `Refused` for a session of another owner.
        """
        from engram.gates.secrets.scan import refuse_secret

        if self.store.paused:
            raise Refused(PAUSED)
        session = session or session_id
        refuse_secret(session, "the session's id")
        refuse_secret(source, "the source")
        owner = self.store.ledger_scope(session) if session and not (scope or agent_id or user_id) else ""
        wanted = owner or self._own_scope({"scope": scope, "agent_id": agent_id, "user_id": user_id})
        return self._conversations.add(
            user_message,
            assistant_response,
            scope=wanted,
            session=session or f"{CONVERSATION}{wanted}",
            extract_assistant_response=extract_assistant_response,
            source=source,
            key=key,
        )

    def extract(
        self, turns: Sequence[Mapping[str, Any]], *, extract_assistant_response: bool = False
    ) -> "list[Extracted]":
        """The facts that would be stored from turns, {"role", "content"} each, with their source; nothing is written."""
        from engram.capture.extraction import extract
        from engram.text.time.zone import in_zone

        at = in_zone(self._clock(), self.time_zone)
        return extract(turns, at=at, extract_assistant_response=extract_assistant_response)

    def harvest(
        self,
        path: str | Path | None = None,
        *,
        harness: str | Sequence[str] = "all",
        since: datetime | str | None = None,
        project: str | Path | None = None,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> "HarvestReport":
        """Propose the lasting facts in what a person told their coding agents: Claude Code, Codex and OpenCode.

        Reads the harnesses' own stores, or `path`; only what is new since the last harvest. `since` takes the sessions that were active
        since then, `project` those in a folder and below it. What is found waits for review, with the turn it was said in as evidence. Waits
        a minute while another process harvests. Raises `Refused` if it still does then, and while Engram is paused.
        """
        from engram.capture.transcripts.harvest_lock import harvest_lock
        from engram.capture.transcripts.harvest_run import HarvestRun, HarvestSelection, harnesses_of
        from engram.capture.transcripts.spooled import harvest_spooled

        harvester = self._harvester(dry_run)
        place = Path(path).absolute() if path is not None else None
        folder = Path(project).absolute() if project is not None else None
        harnesses = harnesses_of(harness, place)
        selection = HarvestSelection(
            harnesses, place, aware(since, self.time_zone), folder, is_mixed=place is not None and len(harnesses) > 1
        )
        run, root = HarvestRun(self.store, harvester, progress or (lambda *_: None)), self._local_root()
        if dry_run:
            return run.harvest(selection)
        with harvest_lock(root, seconds=HARVEST_WAIT) as is_alone:
            if not is_alone:
                raise Refused("another process is still harvesting; run it again when that has finished")
            if not (path is since is project is None):
                return run.harvest(selection)
            found = harvest_spooled(run, root)
            found.add(run.harvest(selection))
        return found

    def harvest_spooled(self, *, seconds: float | None = None, progress: Progress | None = None) -> "HarvestReport":
        """Harvest the sessions that hooks left in the spool, and no others, for about so many seconds; the rest waits on.

        At least one is harvested, unless another process harvests: then none is. Raises `Refused` while Engram is paused.
        """
        from engram.capture.harvest import HarvestReport
        from engram.capture.transcripts.harvest_lock import harvest_lock
        from engram.capture.transcripts.harvest_run import HarvestRun
        from engram.capture.transcripts.spooled import harvest_spooled
        from engram.store.files import spool

        harvester, root = self._harvester(dry_run=False), self._local_root()
        if not spool.waiting(root):
            return HarvestReport()
        with harvest_lock(root, seconds=0) as is_alone:
            if not is_alone:
                return HarvestReport(warnings=[ANOTHER_HARVEST])
            return harvest_spooled(HarvestRun(self.store, harvester, progress or (lambda *_: None)), root, seconds)

    def _local_root(self) -> Path:
        """The home with the hooks' files: the store's, or this user's where the store is on a server."""
        from engram.store.files.home import default_root, expanded

        return self.home.root if self.home is not None else expanded(default_root(), "the home").absolute()

    def import_chats(
        self,
        path: str | Path,
        *,
        format: Literal["", "chatgpt", "claude"] = "",  # noqa: A002
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> "HarvestReport":
        """Propose the lasting facts in what a person told ChatGPT or Claude, from the export of their conversations.

        `path` is the zip as it was downloaded, or its `conversations.json`. Only conversations and turns that were not imported before
        are read. What is found waits for review, with the turn it was said in as evidence. Raises `NotFound`, `InvalidInput` or
        `StoreCorrupt` for what is no such export, `Refused` while Engram is paused.
        """
        from engram.capture.transcripts.chat_import import ChatImport

        chats = ChatImport(self.store, self._harvester(dry_run), progress or (lambda *_: None))
        return chats.take(Path(path).absolute(), format)

    def import_memories(
        self,
        path: str | Path,
        *,
        format: str = "",  # noqa: A002
        mapping: Mapping[str, str] | None = None,
        trusted: bool = False,
        candidates: bool = False,
        packs: bool = False,
        dry_run: bool = False,
        progress: Progress | None = None,
        actor: str = "manual",
    ) -> "ImportReport":
        """Import the memories of another tool, store or format; the report names every record that is left out, with the reason.

        `format` is recognised where none is given. `mapping` says which column or key holds which field (`{"statement": "text"}`).
        What a person imports (`actor="human"`) answers as evidence until they confirm it; `trusted` vouches for the whole file, which
        only a person can do. What anyone else imports waits for review, and so does everything with `candidates`. `packs` includes the packs of a PLUR directory. Raises
        `NotFound`, `InvalidInput` or `StoreError` for what cannot be read, `Refused` for a file that is distrusted.
        """
        from engram.capture import import_source
        from engram.capture.importer import Importer
        from engram.gates.trust import is_human

        by_person = is_human(actor)
        if trusted and not by_person:
            raise Refused("Only a person can vouch for a file: run `engram import --trusted` at a terminal")
        place = Path(path).absolute()
        if import_source.is_chats(place, format):
            raise InvalidInput(
                f"{place} is an export of chats, whose facts are proposed for review: use `import_chats`"
            )
        reading = import_source.read(place, packs=packs, format_=format, mapping=mapping)
        importer = Importer(
            self.store,
            self._clock,
            self.scope_here(),
            place.name,
            by_person,
            candidates or not by_person,
            trusted,
            self._gate_settings,
        )
        return importer.run(reading, progress or (lambda *_: None), dry_run=dry_run)

    def _harvester(self, dry_run: bool) -> "Harvester":
        from engram.capture.harvest import Harvester

        if self.store.paused:
            raise Refused(PAUSED)
        return Harvester(
            store=self.store,
            learner=self._learner,
            clock=self._clock,
            observe=self.sessions.observe_batch,
            revise=self.lineages.revise,
            zone=self.time_zone,
            most_proposed=self.settings.harvest_limit,
            dry_run=dry_run,
        )

    def revise(self, ref: str, *, actor: str = "manual", reason: str = "", **fields: Unpack[ChangedFields]) -> Memory:
        """A new version of a fact; the one before is superseded and stays readable."""
        given, parts = with_form(self._given("", fields))
        if parts:
            given["form"] = merged_form(self.lineages.current(self.get(ref).id).form, parts)
        self._check_commands(given, actor)
        self._check_claims(given, actor)
        return self.lineages.revise(ref, actor=actor, reason=reason, **given)

    def update(self, ref: str, *, actor: str = "manual", reason: str = "", **fields: Unpack[ChangedFields]) -> Memory:
        """Change fields of a memory in place; its statement follows the parts of its form (`action=…`, `object=…`)."""
        from engram.capture.draft import checked_fields
        from engram.gates.pipeline import admit
        from engram.review.authority import refuse_lower_tier, refuse_marks, refuse_overturning, refuse_status
        from engram.review.lineage import WRITTEN, by_hand, refuse_cycle, refuse_decided, refuse_unapproved
        from engram.store.history import OUT

        given, parts = with_form(self._given("", fields))
        changes = checked_fields(given)
        if not changes and not parts:
            raise InvalidInput("nothing to change: name at least one field")
        self._check_commands({"form": parts, **changes}, actor)
        self._check_claims(changes, actor)

        def updated(memory: Memory) -> Memory:
            formed = {"form": merged_form(memory.form, parts)} if parts else {}
            return changed_to(memory, {**changes, **formed})

        def changed_to(memory: Memory, changes: Mapping[str, Any]) -> Memory:
            self._check_name(memory, changes)
            refuse_cycle(memory.but(supersedes=changes.get("supersedes", ())), memory.id, self.store.get)
            refuse_decided(memory, changes)
            if memory.status in OUT:
                refuse_overturning(actor, memory, self.store.history(memory.id))
            refuse_status(actor, memory, changes.get("status", memory.status))
            changed = self.policy.reapplied(memory, _updated(memory, changes, self._clock()), changes)
            refuse_unapproved(actor, memory, changed)
            refuse_lower_tier(actor, memory, changed)
            refuse_marks(actor, memory, changed)
            is_written = changed.status not in OUT and any(
                getattr(memory, one) != getattr(changed, one) for one in WRITTEN
            )
            return admit(by_hand(changed, actor, self._clock()) if is_written else changed)

        return self._change(ref, "update", actor, reason, updated)

    def _check_commands(self, changes: Mapping[str, Any], actor: str) -> None:
        """Raise `Refused` where anyone but a person writes instructions to the reader into a memory."""
        from engram.gates.instructions import injection_problem

        form = changes.get("form") or {}
        statement = changes.get("statement", "") or render_form(form)
        draft = Memory(id="", statement=statement, situation=changes.get("situation", ""), form=form)
        problem = "" if actor == "human" else injection_problem(draft)
        if problem:
            raise Refused(f"{problem}; a person may change it at a terminal")

    def _check_claims(self, changes: Mapping[str, Any], actor: str) -> None:
        """Raise `Refused` where an actor below a program sets who said or confirmed a memory."""
        from engram.rules.sources import Rank, rank_of

        claimed = sorted(changes.keys() & {"source", "verification", "feedback", "derivation_count"})
        if claimed and rank_of(actor, Rank.PROGRAM) < Rank.PROGRAM:
            raise Refused(
                f"{actor} may not set {claimed[0]}: surfaces stamp it; `engram verify` at a terminal confirms a memory"
            )

    def _check_name(self, memory: Memory, changes: Mapping[str, Any]) -> None:
        """Raise `InvalidInput` where another memory of the scope has the name, or an alias is the id of another."""
        from engram.store.records import refuse_foreign_ids

        if changes.get("aliases"):
            refuse_foreign_ids(self.store, [memory.but(aliases=changes["aliases"])])
        wanted = [*([changes["name"]] if changes.get("name") else []), *changes.get("aliases", ())]
        scope = changes.get("scope") or memory.scope
        for name in wanted:
            taken = self.store.named(name, scope)
            if taken and taken != memory.id:
                raise InvalidInput(f"the name {name!r} belongs to {taken} in {scope}; choose another")

    def pin(self, ref: str, pinned: bool = True, *, actor: str = "manual") -> Memory:
        """Pin a memory: it never fades, and is injected first."""
        from engram.review.authority import refuse_marks

        def changed(memory: Memory) -> Memory:
            after = memory.but(pinned=pinned, updated=self._clock())
            refuse_marks(actor, memory, after)
            return after

        return self._change(ref, "pin" if pinned else "unpin", actor, "", changed)

    def verify(self, ref: str, *, actor: str = "manual", shown: Sequence[Memory] = ()) -> Memory:
        """Confirm that a memory is still true: it is reinforced, and fresh again. Only a person marks it as confirmed.

        `shown` is the memory as it was read: raises `ChangedMeanwhile` where it says something else by now.
        """
        from engram.review.authority import refuse_changed

        now = self._clock()
        confirmed = {"verification": "user_confirmed"} if actor == "human" else {}

        def verified(memory: Memory) -> Memory:
            refuse_changed(shown, memory)
            return reinforced(memory, now).but(**confirmed, last_verified=now, updated=now)

        return self._change(ref, VERIFY, actor, "", verified)

    def reinforce(self, ref: str, *, boost: float = REINFORCE_RETRIEVAL, actor: str = "manual") -> Memory:
        """Strengthen a memory by hand: `boost`, above 0 and up to 1, is added to its retrieval strength."""
        return self.review.reinforce(ref, boost=boost, actor=actor)

    def forget(self, ref: str, *, purge: bool = False, actor: str = "manual", reason: str = "") -> "Memory | Purged":
        """Retire a memory, and return it: it is left out of every answer and stays readable.

        `purge=True` destroys it instead and returns a `Purged`: what was destroyed, what is left, what is out of reach.
        """
        memory = self.get(ref)
        if purge:
            return self.upkeep.purge([memory.id], actor=actor)
        return memory if memory.status == "retired" else self.lineages.forget(memory.id, actor=actor, reason=reason)

    def purge(
        self, scope: str = "", *, agent_id: str | None = None, user_id: str | None = None, actor: str = "manual"
    ) -> "Purged":
        """Destroy everything of a scope or an owner, and of the scopes below it: memories, sessions and tasks.

        It cannot be undone; the result proves it, and names what is left or out of reach.

        `forget(ref, purge=True)` destroys a single memory.
        """
        from engram.upkeep.purge import purge_scope

        named = owned({"scope": scope, "agent_id": agent_id, "user_id": user_id})["scope"]
        if not named:
            raise InvalidInput("purge takes a scope such as project:acme, or agent_id and user_id")
        return purge_scope(self.store, self._clock, self._scopes.scope_named(named), actor=actor)

    def undo(self, ref: str, *, actor: str = "manual") -> Memory:
        """Undo the last decision about a memory."""
        from engram.review.undo import undo

        return undo(self.store, self.get(ref).id, self._clock(), actor=actor)

    def feedback(self, ref: str, signal: str, *, session: str = "", actor: str = "manual") -> Memory:
        """Rate a memory: positive, negative or neutral. Only a person's rating takes what a person said out of use."""
        from engram.gates.secrets.scan import refuse_secret
        from engram.gates.trust import is_human
        from engram.sessions import feedback

        refuse_secret(session, "the session's id")
        return feedback.rate(self.store, ref, signal, self._clock(), session, by_person=is_human(actor))

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
    ) -> Memory:
        """Link one memory to another by a named relation with a weight; calling it again replaces the weight."""
        return self.graph.relate(
            source, target, relation_type, weight=weight, metadata=metadata, actor=actor, reason=reason
        )

    def _change(self, ref: str, op: str, actor: str, reason: str, change: Callable[[Memory], Memory]) -> Memory:
        from engram.gates.secrets.scan import redact
        from engram.review.authority import refuse_overturning
        from engram.review.conflicts import release, waiting_on
        from engram.review.lineage import refuse_outranked, refuse_second_head
        from engram.store.history import OUT
        from engram.store.records import locked_memory

        reason = redact(reason)[0]
        found = self.get(ref)
        wanted = change(found)
        meaning, vector = self._meaning_after(wanted, found)
        retires = found.status in LIVE and wanted.status not in LIVE
        waiting = waiting_on(self.store, [found.id]) if retires else []
        scopes = sorted({*_scopes_touched(found, wanted), *(other.scope for other in waiting)})
        about = [found.id, *(other.id for other in waiting)]
        with self.store.deciding(op, actor=actor, reason=reason, scopes=scopes, about=about) as deciding:
            before = locked_memory(deciding, found.id)
            if op != VERIFY:
                refuse_outranked(actor, before, op)
                if before.status in OUT:
                    refuse_overturning(actor, before, self.store.history(before.id))
            memory = change(before)
            refuse_second_head(deciding, memory, self._clock())
            deciding.put(memory, vector if meaning_of(memory) == meaning else None)
            release(deciding, waiting, self._clock())
        return memory

    def _meaning_after(self, memory: Memory, before: Memory) -> "tuple[str, Vectors | None]":
        """The new text and its vector, computed before the lock is taken; no vector where the text is unchanged."""
        meaning = meaning_of(memory)
        vectors = self.store.embed([meaning]) if meaning != meaning_of(before) else None
        return meaning, vectors[0] if vectors is not None else None

    def infer_scope(
        self,
        statement: str = "",
        *,
        type: str = "",  # noqa: A002
        situation: str = "",
        form: Mapping[str, str] | None = None,
    ) -> tuple[str, str]:
        """The scope for a new memory by what it says, and why: the directory's for what is about its project, else `global`.

        `form` has the parts of feedback or a fact, instead of a statement. The rules are those of `engram.gates.locality`. What `global` knows
        already, or has an older value of, stays there. Nothing is written.
        """
        from engram.client.placement import inferred_scope

        said = statement or render_form(form or {})
        draft = Memory(id="", statement=said, situation=situation, form=dict(form or {}))
        return inferred_scope(self._scopes.scope(), self.directory, draft, type, self.store, self.policy)

    def scope_here(self) -> str:
        """The scope of the directory this was opened for; `global` outside of a repository."""
        return self._scopes.scope() or "global"


def _scopes_touched(before: Memory, after: Memory) -> list[str]:
    """The scopes in which a change depends on what else is there: its words, name or scope change."""
    same = (
        meaning_of(before) == meaning_of(after)
        and (before.scope, before.name, before.aliases) == (after.scope, after.name, after.aliases)
        and (before.status in LIVE or after.status not in LIVE)
    )
    return [] if same else sorted({before.scope, after.scope})


def _updated(memory: Memory, changes: Mapping[str, Any], now: datetime) -> Memory:
    if "metadata" in changes:
        changes = {**changes, "metadata": with_reserved(changes["metadata"], memory.metadata)}
    memory = memory.but(**changes, updated=now)
    if "form" in changes and "statement" not in changes:
        memory = memory.but(statement=render_form(memory.form))
    if "statement" in changes:
        memory = memory.but(form=changes.get("form", {}), entities=changes.get("entities", ()))
    return memory
