"""The parts that the verbs share: the store, the settings, and the facets, each created on first use.

A process that only recalls never loads the gates; one that only writes never loads the search.
"""

from collections.abc import Callable
from datetime import datetime, tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack, cast

from engram.client.arguments import attach_zone, build_filters, named_owner, resolve_owner
from engram.model.arguments import read_words
from engram.model.errors import EngramError, InvalidInput
from engram.model.lazy import cached_property
from engram.model.memory import TIME_FIELDS, Owner
from engram.model.records import EVENT_TYPES
from engram.model.types import known_types, memory_type
from engram.recall.query import HERE, ScopeLike, ScopeResolver
from engram.rules.scopes import EVERYWHERE, GLOBAL, OwnerScopes, is_person
from engram.settings import Settings
from engram.store.intake import Decider, Screen
from engram.store.ledger import ledger_scope
from engram.store.protocol import Filters, Store
from engram.store.references import (
    REFERENCE_FIELDS,
    find_memory,
    find_task,
    hide_foreign_links,
    refuse_move,
    resolve_links,
)
from engram.store.scopes import working_directory
from engram.store.states import is_paused
from engram.text.time.zone import SYSTEM
from engram.verbs import retrieval
from engram.verbs.calls import bind_verb

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from engram.capture.add import Adder
    from engram.capture.buffer import CaptureBuffer
    from engram.capture.conversation import Conversations
    from engram.capture.documents.cite import CitationReader
    from engram.capture.documents.ingest import Recorder
    from engram.capture.enrichment import Enrichment
    from engram.capture.learn import Learner
    from engram.capture.signals import SignalPatterns
    from engram.gates.policies import MemoryPolicy
    from engram.gates.proposal import GateSettings
    from engram.gates.secrets.screen import SecretScreen
    from engram.graph.graph import Graph
    from engram.llm.model import LanguageModel
    from engram.model.memory import Memory
    from engram.model.records import Use
    from engram.recall.prompt.blocks import Blocks
    from engram.recall.questions import Permute
    from engram.recall.recaller import Recaller
    from engram.recall.search import Searcher
    from engram.review.lineage import Lineages
    from engram.review.review import Review
    from engram.sessions.context import ContextBuilder
    from engram.sessions.jobs import Jobs
    from engram.sessions.sessions import Sessions
    from engram.sessions.tasks import Tasks
    from engram.store.home import Home
    from engram.upkeep.context_files import ContextFiles
    from engram.upkeep.upkeep import Upkeep

PAUSED_MESSAGE = "Engram is paused; `engram resume` resumes it."


class LazyScreen:
    """The screen that every record passes, loaded with the first write, so that a process that only recalls never loads the gates."""

    def __init__(self, store: Store, settings: "Callable[[], GateSettings]") -> None:
        self._store, self._settings = store, settings

    def memories(
        self, memories: "Sequence[Memory]", before: "Callable[[str], Memory | None]", deciding: "Decider"
    ) -> None:
        """Refuse secrets, and content that an agent, a transcript or a file may not write."""
        from engram.rules.sources import is_below_program

        self._screen.memories(memories, before, deciding)
        if is_below_program(deciding.actor):
            from engram.decisions.admission import Admission

            Admission(self._store, self._settings()).check(memories, before, deciding)

    def use(self, use: "Use") -> "Use":
        """Screen the name of the session; a use without a session has no text."""
        return self._screen.use(use) if use.session else use

    @cached_property
    def _screen(self) -> "SecretScreen":
        from engram.gates.secrets.exemptions import AllowedValues
        from engram.gates.secrets.screen import SecretScreen

        return SecretScreen(AllowedValues(self._settings().allowed_values))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._screen, name)


class Facets:
    """The parts of an open memory, and how callers' arguments become scopes and filters."""

    def __init__(
        self,
        store: Store,
        settings: Settings,
        home: "Home | None",
        clock: Callable[[], datetime],
        zone: tzinfo = SYSTEM,
    ) -> None:
        self.store = store
        store.screen = cast(Screen, LazyScreen(store, lambda: self._gate_settings))
        self.settings = settings
        self.home = home
        """The store's directory; None if memories are not files."""
        self._clock = clock
        self.time_zone = zone
        """The zone for reading time phrases and times without a zone."""
        self._working_directory = working_directory()
        self.sees_whole_store = True
        """Whether reads without a scope cover the whole store, not just the scopes of the directory, the user and
        global."""
        self._temporary: str | None = None
        self._policy: str | MemoryPolicy = ""

    @property
    def directory(self) -> Path:
        """Where the agent works. Setting it limits reads without a scope to the scopes seen from there."""
        return self._working_directory

    @directory.setter
    def directory(self, directory: Path) -> None:
        self._working_directory, self.sees_whole_store = directory, False

    @cached_property
    def _learner(self) -> "Learner":
        from engram.capture.learn import Learner

        return Learner(self.store, self._gate_settings, self.policy, self._clock)

    @cached_property
    def _adder(self) -> "Adder":
        from engram.capture.add import Adder

        return Adder(self.store, self._gate_settings, self.policy, self._clock)

    @cached_property
    def _gate_settings(self) -> "GateSettings":
        from engram.gates.proposal import GateSettings
        from engram.gates.secrets.exemptions import allowed_digests

        return GateSettings(
            autopromote_remember=self.settings.autopromote_remember,
            autopromote_harvest=self.settings.autopromote_harvest,
            autopromote_kinds=self.settings.promoted_kinds,
            most_per_source=self.settings.source_daily_limit,
            allowed_values=lambda: (*self.settings.allowed_values, *allowed_digests(self.store)),
        )

    @cached_property
    def policy(self) -> "MemoryPolicy":
        """The policy that classifies memories before the gates: `Engram.open(policy=…)`, else the setting."""
        from engram.gates.policies import MemoryPolicy, chosen_policy

        if isinstance(self._policy, MemoryPolicy):
            return self._policy
        where = str(self.home.config) if self.home is not None else "config.toml"
        return chosen_policy(self._policy or self.settings.policy, self.settings.policies, where)

    @cached_property
    def lineages(self) -> "Lineages":
        """Facts that change: their versions, and the current one."""
        from engram.review.lineage import Lineages

        return Lineages(self.store, self._clock, self.policy.reapply)

    @cached_property
    def graph(self) -> "Graph":
        """Relations between memories."""
        from engram.gates.secrets.scan import refuse_secrets_in
        from engram.graph.graph import Graph

        return Graph(self.store, self._clock, refuse_secrets_in)

    @cached_property
    def tasks(self) -> "Tasks":
        """Work that outlives a conversation."""
        from engram.sessions.tasks import Tasks

        return Tasks(self.store, self._searcher, self._clock, self.time_zone)

    @cached_property
    def jobs(self) -> "Jobs":
        """Background work on the ledgers."""
        import os
        import socket

        from engram.capture.jobs import handlers
        from engram.sessions.jobs import Jobs

        owner = f"{socket.gethostname()}:{os.getpid()}:{self.store.new_token(3)}"
        return Jobs(self.store, self._clock, handlers(self.store, self._conversations, self._buffer), owner)

    @cached_property
    def enrichment(self) -> "Enrichment":
        """Cues for memories that have none."""
        from engram.capture.enrichment import Enrichment

        return Enrichment(self.store, self._clock, self.model)

    @cached_property
    def model(self) -> "LanguageModel | None":
        """The language model of the settings; None where there is none."""
        if not self.settings.model:
            return None
        from engram.llm.model import LanguageModel, ModelSettings
        from engram.store.states import StoreSpend

        chosen = ModelSettings(
            self.settings.model,
            timeout_s=self.settings.model_timeout,
            daily_token_cap=self.settings.model_daily_tokens,
        )
        return LanguageModel(chosen, StoreSpend(self.store), clock=self._clock)

    @cached_property
    def _conversations(self) -> "Conversations":
        from engram.capture.conversation import Conversations
        from engram.capture.jobs import JobQueue

        queue = JobQueue(self.store, self._clock)
        # A caller who passes a conversation asks for it to be remembered, so this is explicit, not autonomous.
        return Conversations(self.store, self._learner, self.model, self._clock, self.sessions.observe_batch, queue,
                             self.lineages.revise, autonomous=False, zone=self.time_zone)  # fmt: skip

    @cached_property
    def _buffer(self) -> "CaptureBuffer":
        from engram.capture.buffer import BufferReader, CaptureBuffer
        from engram.capture.jobs import with_idempotent_learner

        custom: SignalPatterns = ()
        if self.settings.signals:
            from engram.capture.signals import custom_signals

            custom = custom_signals(self.settings.signals, self.home.config if self.home is not None else None)
        reader = BufferReader(self.store, with_idempotent_learner(self._conversations))
        return CaptureBuffer(self.store, reader, self._clock, self.settings, custom, self.time_zone)

    def _read_before_end(self, session: str) -> None:
        """Read the turns in the buffer of a session that ends; a failure is only a warning."""
        from engram.capture.buffer_state import BUFFER

        try:
            if self.store.state(f"{BUFFER}{session}") and not is_paused(self.store):
                self.store.warnings.extend(self._buffer.end(session).warnings)
        except EngramError as error:
            self.store.warnings.append(f"the captured turns of {session} are not read yet: {error}")

    @cached_property
    def _recorder(self) -> "Recorder":
        from engram.capture.documents.ingest import Recorder

        return Recorder(self.store, self.tasks, self._adder, self._clock, self.model)

    @cached_property
    def _citing(self) -> "CitationReader":
        from engram.capture.documents.cite import CitationReader
        from engram.embedding.word_pieces import count_tokens

        return CitationReader(self.store, self.tasks, count_tokens)

    @cached_property
    def _contexts(self) -> "ContextBuilder":
        from engram.embedding.word_pieces import count_tokens
        from engram.sessions.context import ContextBuilder

        def find_related(ids: "Sequence[str]", scopes: "Sequence[str]") -> "list[Memory]":
            found = self.graph.traverse_many(ids, max_depth=2, total_limit=20, scope=scopes)
            return [reached.memory for reached in found]

        return ContextBuilder(self._searcher, self._clock, count_tokens, find_related)

    @cached_property
    def _permute(self) -> "Permute | None":
        """Rewords questions with the model; None if there is none and rules do it."""
        from engram.recall.questions import model_permuter

        return model_permuter(self.model) if self.model is not None else None

    @cached_property
    def _blocks(self) -> "Blocks":
        from engram.embedding.word_pieces import count_tokens
        from engram.recall.prompt.blocks import Blocks

        return Blocks(self._searcher, self._clock, count_tokens)

    @property
    def _context_files(self) -> "ContextFiles":
        from engram.embedding.word_pieces import count_tokens
        from engram.upkeep.context_files import ContextFiles

        return ContextFiles(self.store, self._clock, count_tokens, self.directory)

    @property
    def _scopes(self) -> ScopeResolver:
        return ScopeResolver(self.store, self.directory, self._clock, self.sees_whole_store)

    def _filters(self, **given: Any) -> Filters:
        """Filters from plain arguments. Raises `InvalidInput` for a type unknown to both the registry and the store."""
        filters = self._scopes.filters(**build_filters(given, self.time_zone))
        known = {*EVENT_TYPES} if "event" in filters.kinds else set()
        if "memory" in filters.kinds:
            known |= {entry.name for entry in known_types()}
        for name in filters.types or ():
            # Files from elsewhere may have custom types.
            if name not in known and not self.store.count(Filters(filters.kinds, types=(name,), statuses=None)):
                self._refuse_type(name, filters.kinds)
        return filters

    def _refuse_type(self, name: str, kinds: "Sequence[str]") -> None:
        if "memory" in kinds:
            memory_type(name)
        raise InvalidInput(f"unknown type {name!r} of an event; known: {', '.join(EVENT_TYPES)}")

    def _filters_for_read(self, scope: ScopeLike, given: "Mapping[str, Any]") -> Filters:
        """Filters with the scopes of a read: those of a scope or an owner, or the caller's default."""
        rest = resolve_owner({**given, "scope": scope})
        seen = self._scopes.read_scopes(read_words(rest.pop("scope"), "scope"))
        return self._filters(**rest, scope=EVERYWHERE if seen is None else seen)

    def _visible_scope(self, scope: ScopeLike) -> str | tuple[str, ...]:
        """The scopes that a read sees, as the `scope` argument of another verb."""
        seen = self._filters_for_read(scope, {}).scopes
        return EVERYWHERE if seen is None else seen

    @bind_verb(retrieval.SCOPES_FOR)
    def scopes_for(self, **owner: Unpack[Owner]) -> OwnerScopes | None:
        """The scopes an owner sees, for the `scopes` argument of the facets: their own, wider ones, the user's and global.

        Within these, an owner changes only what belongs to a scope they name (`OwnerScopes.own`). If nobody is named,
        the result is None, which means everything.
        """
        named = named_owner(owner)
        if named is None:
            return None
        own = [self._scopes.scope_named(scope) for scope in named]
        return OwnerScopes(self._scopes.scopes_from(own), own)

    def _writer(self, owner: "Mapping[str, Any]") -> str:
        """The scope of the writer; "" if nobody is named."""
        named = named_owner(owner)
        if named is not None and len(named) > 1:
            raise InvalidInput(f"A write has one owner, but {len(named)} scopes were named; give one.")
        return self._scopes.scope_named(named[0]) if named else ""

    def _own_task(self, task: str, owner: "Mapping[str, Any]") -> str:
        """The id of a task that the owner may change. Raises `NotFound` or `Refused` for another owner's."""
        return find_task(self.store, task, self.scopes_for(**cast(Owner, owner)), to_change=True).id

    def _find_own(self, ref: str, owner: "Mapping[str, Any]") -> "Memory":
        """A memory that the owner may change.

        Raises `NotFound` for one they do not see, `Refused` for one of a wider scope.
        """
        return find_memory(self.store, ref, self.scopes_for(**cast(Owner, owner)), to_change=True)

    def _scopes_of_asker(self, owner: Owner) -> OwnerScopes | None:
        """The scopes of `scopes_for`; None if the caller asks everywhere."""
        return None if EVERYWHERE in (named_owner(owner) or ()) else self.scopes_for(**owner)

    def _recordable_session(self, session: str, owner: "Mapping[str, Any]") -> str:
        """The session to record a use in; "" for another person's session, as if it did not exist."""
        from engram.store.ledger import sees_ledger

        named = {
            name: value for name, value in owner.items() if name in Owner.__annotations__ and (value or name != "scope")
        }
        scopes = self._scopes_of_asker(cast(Owner, named)) if session else None
        if scopes is None or sees_ledger(self.store, session, scopes):
            return session
        # A caller in one project may ask about another; only people are separated.
        people = (ledger_scope(self.store, session), *scopes)
        return "" if any(map(is_person, people)) else session

    def _scope_of(self, owner: Owner) -> ScopeLike:
        """The scope of an owner; None if nobody is named."""
        found: ScopeLike = resolve_owner(owner).get("scope")
        return found

    def _own_scope(self, owner: Owner) -> str:
        """The scope of a new record: the owner's, else that of the directory."""
        return self._writer({**owner, "scope": owner.get("scope") or None}) or self._scopes.scope() or GLOBAL

    @cached_property
    def _searcher(self) -> "Searcher":
        from engram.recall.search import Searcher

        return Searcher(self.store, self._clock, self.time_zone)

    @cached_property
    def _recaller(self) -> "Recaller":
        from engram.recall.recaller import Recaller

        refine = None
        if self.model is not None:
            from engram.recall.questions import model_refiner

            refine = model_refiner(self.model)
        return Recaller(self._searcher, self.store, self._clock, refine, self.time_zone)

    @cached_property
    def review(self) -> "Review":
        """What waits for review."""
        from engram.review.review import Review

        # Only an edit needs the policy.
        return Review(self.store, self._clock, self._gate_settings, lambda *given: self.policy.reapply(*given))

    @cached_property
    def sessions(self) -> "Sessions":
        """Sessions and their ledgers."""
        from engram.sessions.sessions import Sessions

        ask = None
        if self.model is not None:
            from engram.sessions.summary import model_asker

            ask = self.model.name, model_asker(self.model)
        return Sessions(
            self.store, self._recaller, self._clock, self.settings, ask, self.time_zone, self._read_before_end
        )

    @cached_property
    def upkeep(self) -> "Upkeep":
        """Doctor, backup, prune, index, pause."""
        from engram.upkeep.upkeep import Upkeep

        return Upkeep(self.store, self._clock, self.settings)

    @bind_verb(retrieval.GET)
    def get(self, ref: str, **owner: Unpack[Owner]) -> "Memory":
        """A memory by id, name or alias. Raises `NotFound` if there is none, or if it belongs to another owner.

        For a named owner, links to memories of others are left out.
        """
        scopes = self.scopes_for(**owner)
        return hide_foreign_links(self.store, find_memory(self.store, ref, scopes), scopes)

    def _prepare_fields(
        self,
        statement: str,
        fields: "Mapping[str, Any]",
        session: str = "",
        source: str = "",
        *,
        replaces: bool = True,
    ) -> dict[str, Any]:
        """The fields of a memory, checked; `replaces` if it supersedes the memories it names without asking the gates."""
        from engram.gates.secrets.scan import refuse_secret

        refuse_secret(session, "the session's id")
        refuse_secret(source, "the source")
        given = attach_zone(resolve_owner(fields), TIME_FIELDS, self.time_zone)
        if statement:
            given["statement"] = statement
        if given.get("scope") == HERE:
            given["scope"] = self._scopes.here()
        if not any(given.get(name) for name in REFERENCE_FIELDS):
            return given
        return self._resolve_references(given, self.scopes_for(scope=given.get("scope") or None), to_change=replaces)

    def _prepare_changes(
        self, ref: str, fields: "Mapping[str, Any]", new_scope: str | None
    ) -> "tuple[dict[str, Any], OwnerScopes | None]":
        """The fields to change, and the scopes of the owner named among them; `new_scope` is the memory's new scope."""
        owner = {name: value for name, value in fields.items() if name in Owner.__annotations__}
        scopes = self.scopes_for(**cast(Owner, owner))
        given = self._prepare_fields("", {name: value for name, value in fields.items() if name not in owner})
        given = self._resolve_references(given, scopes, changed=ref)
        if new_scope is not None:
            given["scope"] = self._scopes.scope_named(new_scope)
            refuse_move(given["scope"], scopes)
        return given, scopes

    def _resolve_references(
        self, given: dict[str, Any], scopes: "OwnerScopes | None", *, to_change: bool = True, changed: str = ""
    ) -> dict[str, Any]:
        """The fields with names of records replaced by their ids; a name refers to a memory that the owner sees.

        `changed` is the memory that the fields change; it keeps its links and evidence. Raises `NotFound` for a record
        that the owner does not see, `Refused` for a memory of a wider scope that this one would replace.
        """
        from engram.capture.draft import checked_fields
        from engram.review.lineage import find_superseded

        named = {name: given[name] for name in REFERENCE_FIELDS if given.get(name)} if scopes is not None else {}
        if not named:
            return given
        known = find_memory(self.store, changed, scopes) if changed else None
        found = resolve_links(self.store, checked_fields(named), scopes, known)
        if "supersedes" in found:
            found["supersedes"] = find_superseded(self.lineages, found["supersedes"], scopes, to_change=to_change)
        return {**given, **found}
