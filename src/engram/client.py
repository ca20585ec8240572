"""Engram: opens a store, holds the facets, forwards the everyday verbs. A door, not a house.

Facets are made when first used: a process that only recalls never loads the gates.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from engram.model.decision import Decision, Outcome
from engram.model.errors import InvalidInput, NotFound, Refused
from engram.model.event import Event
from engram.model.hit import Hits, Injection
from engram.model.memory import Memory, render_form
from engram.model.times import aware
from engram.recall.recalling import Recall, Recaller
from engram.recall.search import Ask, Searcher
from engram.rules.scopes import parse_scope
from engram.settings import Settings, load_settings
from engram.store.documents import meaning_of
from engram.store.opening import open_server, owner_config, server_asked
from engram.store.protocol import LIVE, Filters, Image, Store
from engram.store.sources import utc_now

if TYPE_CHECKING:
    from engram.capture.learning import Learner
    from engram.embedding.protocol import Vectors
    from engram.review.queue import Review
    from engram.sessions.sessions import SessionHandle, Sessions
    from engram.store.files.home import Home
    from engram.upkeep.upkeep import Upkeep

FILTERS = frozenset(
    {
        "kinds",
        "scope",
        "types",
        "status",
        "tags",
        "domain",
        "since",
        "until",
        "as_of",
        "known_at",
        "metadata",
        "session",
    }
)
"""What `search`, `list` and `recall` can be narrowed by."""
HERE = "here"
"""Stands for the scope of the directory, wherever a scope is named."""
PAUSED = "Engram is paused; `engram resume` ends that"
Memories = list[Memory]
Images = list[Image]
Events = list[Event]
ScopeLike = str | Sequence[str] | None


class Engram:
    """An agent's memory. Open it with `Engram.open()`, use it as a context manager.

    Facets: `mem.review` (what waits for a person), `mem.sessions`, `mem.upkeep` (doctor, backup, prune, index).
    """

    def __init__(self, store: Store, settings: Settings, home: "Home | None", clock: Callable[[], datetime]) -> None:
        self.store = store
        self.settings = settings
        self.home = home
        """The store's directory; None where memories are not files."""
        self._clock = clock
        self.directory = Path.cwd()
        self._temporary: str | None = None

    @cached_property
    def _learner(self) -> "Learner":
        from engram.capture.learning import Learner
        from engram.gates.proposal import GateSettings

        gates = GateSettings(
            autopromote_remember=self.settings.autopromote_remember,
            autopromote_harvest=self.settings.autopromote_harvest,
        )
        return Learner(self.store, gates, self._clock)

    @cached_property
    def _searcher(self) -> Searcher:
        return Searcher(self.store, self._clock)

    @cached_property
    def _recaller(self) -> Recaller:
        return Recaller(self._searcher, self.store, self._clock)

    @cached_property
    def review(self) -> "Review":
        """What waits for a person."""
        from engram.review.queue import Review

        return Review(self.store, self._clock)

    @cached_property
    def sessions(self) -> "Sessions":
        """Sessions and their ledgers."""
        from engram.sessions.sessions import Sessions

        return Sessions(self.store, self._recaller, self._clock, self.settings)

    @cached_property
    def upkeep(self) -> "Upkeep":
        """Doctor, backup, prune, index, pause."""
        from engram.upkeep.upkeep import Upkeep

        return Upkeep(self.store, self._clock, self.settings)

    @classmethod
    def open(
        cls,
        home: str | Path | None = None,
        *,
        url: str | None = None,
        tenant: str | None = None,
        cache: str | Path | None = None,
        ephemeral: bool = False,
        create: bool = True,
        directory: str | Path | None = None,
        embedder: str | None = None,
        clock: Callable[[], datetime] | None = None,
    ) -> Self:
        """Open a store, making it where there is none.

        `home` is a directory of files, `url` a Postgres server (with `tenant`, whose memories nobody else's are); with neither,
        `$ENGRAM_URL` and `$ENGRAM_TENANT` are looked at, then the usual directory. `ephemeral=True` is a store in a temporary
        directory that goes when it is closed, for tests. `directory` is where the agent works: its repository's team store, if
        trusted, is part of what is searched. `embedder` overrides the setting.
        """
        server = server_asked(home, url, tenant, ephemeral=ephemeral)
        where = Path(directory).absolute() if directory else Path.cwd()
        now = clock or utc_now
        if server is not None:
            settings = _chosen(load_settings(owner_config()), embedder)
            client = cls(open_server(server, _embedder(settings), clock=now, create=create), settings, None, now)
        else:
            temporary = _temporary_folder() if ephemeral else None
            if temporary is not None:
                home, cache = Path(temporary, "home"), Path(temporary, "cache")
            client = cls._on_files(home, cache, create, where, embedder, now)
            client._temporary = temporary
        client.directory = where
        return client

    @classmethod
    def _on_files(
        cls,
        home: str | Path | None,
        cache: str | Path | None,
        create: bool,
        directory: Path,
        embedder: str | None,
        clock: Callable[[], datetime],
    ) -> Self:
        from engram.store.files.home import open_home
        from engram.store.files.store import FilesStore
        from engram.store.files.team import attach_team

        place = open_home(Path(home) if home else None, Path(cache) if cache else None, create=create)
        settings = _chosen(load_settings(place.config), embedder)
        store = FilesStore(place, _embedder(settings), clock=clock)
        attach_team(store, directory)
        return cls(store, settings, place, clock)

    def close(self) -> None:
        """Let go of the store; an ephemeral one is removed."""
        self.store.close()
        if self._temporary is not None:
            import shutil

            shutil.rmtree(self._temporary, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # -- writing

    def learn(
        self, statement: str = "", *, source: str = "agent", session: str = "", autonomous: bool = False, **fields: Any
    ) -> Decision:
        """Propose a memory to the gates. `autonomous` marks what nobody asked to keep: the quality gates then apply too."""
        given = self._given(statement, fields, session)
        if self.upkeep.paused:
            return Decision(Outcome.REJECTED, reason=PAUSED, gate="paused")
        return self._learner.learn(given, source=source, learned_by="learn", session=session, autonomous=autonomous)

    def remember(self, statement: str = "", *, source: str = "human", session: str = "", **fields: Any) -> Decision:
        """Keep a person's own word."""
        given = self._given(statement, fields, session)
        return self._learner.learn(given, source=source, learned_by="remember", session=session)

    def add(self, statement: str = "", *, source: str = "manual", team: bool = False, **fields: Any) -> Memory:
        """Store what a trusted program says. An exact duplicate returns the existing memory; a secret raises `SecretRefused`.

        `team=True` writes it to the repository of the directory this was opened for, to be committed with the code.
        """
        given = self._given(statement, fields)
        if not team:
            return self._learner.add(given, source=source)
        folder, scope = self._team_place()
        return self._learner.add({"scope": scope, **given}, source=source, team=folder)

    def _team_place(self) -> tuple[str, str]:
        from engram.store.files.store import FilesStore
        from engram.store.files.team import begin_team

        if not isinstance(self.store, FilesStore):
            raise InvalidInput(
                "a team's memories are files in its repository, and this store is a server's: open a home instead, or "
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
        """Store many at once, durably. Every item is checked before the first is written."""
        return self._learner.add_batch(items, source=source, progress=progress)

    # -- reading

    def get(self, ref: str) -> Memory:
        """A memory by id, name or alias; `NotFound` says so when there is none."""
        memory = self.store.get(ref)
        if memory is None:
            raise NotFound(f"no memory {ref!r}; `engram list` shows what there is")
        return memory

    def list(self, *, limit: int | None = 100, offset: int = 0, **filters: Any) -> Memories:
        """Memories, newest first. Takes the filters of `search`."""
        if any(type(number) is not int or number < 0 for number in (0 if limit is None else limit, offset)):
            raise InvalidInput(f"limit {limit!r} and offset {offset!r} must be whole numbers, at least 0")
        return self.store.listing(self._filters(**filters), limit, offset)

    def search(
        self,
        query: str,
        *,
        limit: int = 10,
        mode: str = "hybrid",
        fusion: str | None = None,
        explain: bool = False,
        **filters: Any,
    ) -> Hits:
        """Find documents. `scope=None` means everything this store holds.

        Filters, all before the cut: kinds, scope, types, status, tags, domain (with its descendants), since, until, as_of,
        known_at, metadata, session. Modes: hybrid, semantic, keyword. `explain=True` fills each hit's trace.
        """
        return self._searcher.search(Ask(query, limit, mode, fusion, self._filters(**filters), explain))

    def recall(
        self, question: str, *, scope: ScopeLike = None, limit: int = 10, session: str = "", **options: Any
    ) -> Recall:
        """Answer from what this directory, its user and everyone know; the memories returned grow stronger by it."""
        mode, fusion = options.pop("mode", "hybrid"), options.pop("fusion", None)
        explain = options.pop("explain", False)
        filters = self._filters(scope=self._seen_from(scope), **options)
        return self._recaller.recall(Ask(question, limit, mode, fusion, filters, explain), session)

    def inject(self, task: str, *, scope: ScopeLike = None, budget: int | None = None, session: str = "") -> Injection:
        """What an agent should know before a task: directives, consider, related, within a token budget."""
        filters = self._filters(scope=self._seen_from(scope))
        if self.upkeep.paused:
            return Injection(warnings=(PAUSED,))
        return self._recaller.inject(task, filters, self.settings.budget if budget is None else budget, session)

    def history(self, ref: str) -> Images:
        """Every decision about a memory, oldest first, with what it was after each."""
        return self.store.history(self.get(ref).id)

    # -- changing

    def update(self, ref: str, *, actor: str = "manual", reason: str = "", **fields: Any) -> Memory:
        """Change fields of a memory in place."""
        from engram.capture.admission import admit
        from engram.capture.drafting import checked_fields

        changes = checked_fields(self._given("", fields))
        if not changes:
            raise InvalidInput("nothing to change: name at least one field")
        self._check_commands(changes, actor)

        def updated(memory: Memory) -> Memory:
            self._check_name(memory, changes)
            return admit(_updated(memory, changes, self._clock()))

        return self._change(ref, "update", actor, reason, updated)

    def _check_commands(self, changes: Mapping[str, Any], actor: str) -> None:
        """Only a person may put words into a memory that command whoever reads it."""
        from engram.gates.instructions import injection_problem

        draft = Memory(id="", statement=changes.get("statement", ""), situation=changes.get("situation", ""))
        problem = "" if actor == "human" else injection_problem(draft)
        if problem:
            raise Refused(f"{problem}; a person may change it at a terminal")

    def _check_name(self, memory: Memory, changes: Mapping[str, Any]) -> None:
        """A name means one memory in its scope."""
        wanted = [*([changes["name"]] if changes.get("name") else []), *changes.get("aliases", ())]
        scope = changes.get("scope") or memory.scope
        for name in wanted:
            taken = self.store.named(name, scope)
            if taken and taken != memory.id:
                raise InvalidInput(f"the name {name!r} belongs to {taken} in {scope}; choose another")

    def pin(self, ref: str, pinned: bool = True, *, actor: str = "manual") -> Memory:
        """A pinned memory never sinks, and is offered first."""
        return self._change(
            ref, "pin" if pinned else "unpin", actor, "", lambda m: m.but(pinned=pinned, updated=self._clock())
        )

    def verify(self, ref: str, *, actor: str = "manual") -> Memory:
        """Confirm that a memory is still true; its freshness begins anew. Only a person's word marks it confirmed."""
        now = self._clock()
        confirmed = {"verification": "user_confirmed"} if actor == "human" else {}
        return self._change(ref, "verify", actor, "", lambda m: m.but(**confirmed, last_verified=now, updated=now))

    def reinforce(self, ref: str, *, actor: str = "manual") -> Memory:
        """Strengthen a memory by hand."""
        return self.review.reinforce(ref, actor=actor)

    def forget(self, ref: str, *, purge: bool = False, actor: str = "manual", reason: str = "") -> Memory | None:
        """Retire a memory: it is out of every answer and stays readable. `purge=True` destroys it instead, and returns None."""
        memory = self.get(ref)
        if memory.status == "retired" and not purge:
            return memory
        if purge:
            self.upkeep.purge([memory.id], actor=actor)
            return None
        return self._change(ref, "forget", actor, reason, lambda m: m.but(status="retired", updated=self._clock()))

    def undo(self, ref: str, *, actor: str = "manual") -> Memory:
        """Take the last decision about a memory back."""
        from engram.review.undo import undo

        return undo(self.store, self.get(ref).id, self._clock(), actor=actor)

    def feedback(self, ref: str, signal: str, *, session: str = "") -> Memory:
        """Rate a memory: positive, negative or neutral."""
        from engram.gates.secrets import refuse_secret
        from engram.sessions import feedback

        refuse_secret(session, "the session's id")
        return feedback.rate(self.store, ref, signal, self._clock(), session)

    def _change(self, ref: str, op: str, actor: str, reason: str, change: Callable[[Memory], Memory]) -> Memory:
        from engram.gates.secrets import redact
        from engram.review.queue import held

        reason = redact(reason)[0]
        found = self.get(ref)
        wanted = change(found)
        meaning, vector = self._meaning_after(wanted, found)
        scopes = _scopes_touched(found, wanted)
        with self.store.deciding(op, actor=actor, reason=reason, scopes=scopes, about=[found.id]) as deciding:
            memory = change(held(deciding, found.id))
            deciding.put(memory, vector if meaning_of(memory) == meaning else None)
        return memory

    def _meaning_after(self, memory: Memory, before: Memory) -> "tuple[str, Vectors | None]":
        """The new text and its vector, made before the lock is taken; none where the text stays."""
        meaning = meaning_of(memory)
        vectors = self.store.embed([meaning]) if meaning != meaning_of(before) else None
        return meaning, vectors[0] if vectors is not None else None

    # -- sessions and the ledger

    def session(self, task: str = "", *, scope: ScopeLike = None, budget: int | None = None) -> "SessionHandle":
        """Begin a session: its injection is ready, and its end folds in what was used. A context manager."""
        if self.upkeep.paused:
            begun = self.sessions.start("", self._seen_from(scope), budget)
            return replace(begun, injection=Injection(warnings=(PAUSED,)))
        return self.sessions.start(task, self._seen_from(scope), budget)

    def observe(self, session_id: str, role: str, content: str, **fields: Any) -> Event:
        """Append one event to a session's ledger."""
        return self.observe_batch(session_id, [{"role": role, "content": content, **fields}])[0]

    def observe_batch(self, session_id: str, items: Iterable[Mapping[str, Any]]) -> Events:
        """Append events: role, content, and optionally at, key, event_type, payload, metadata. A repeated key is the same event."""
        return self.sessions.observe_batch(session_id, items)

    # -- upkeep

    def doctor(self) -> dict[str, Any]:
        """What is healthy and what is not, with what to do."""
        return self.upkeep.doctor()

    def rebuild_index(self, progress: Callable[[str, int, int], None] | None = None) -> None:
        """Make the index anew from the files."""
        self.upkeep.rebuild_index(progress)

    # -- what callers mean

    def _given(self, statement: str, fields: Mapping[str, Any], session: str = "") -> dict[str, Any]:
        from engram.gates.secrets import refuse_secret

        refuse_secret(session, "the session's id")
        given = dict(fields)
        if statement:
            given["statement"] = statement
        if given.get("scope") == HERE:
            given["scope"] = self._here()
        return given

    def _seen_from(self, scope: ScopeLike) -> tuple[str, ...]:
        from engram.store.scopes import scopes_seen

        if scope is not None:
            scope = [self._scope_named(item) for item in ([scope] if isinstance(scope, str) else scope)]
        return scopes_seen(scope, self.directory, self._trusted())

    def _scope_named(self, scope: str) -> str:
        """A scope, or `here` for that of the directory."""
        return self._here() if scope == HERE else parse_scope(scope)

    def _here(self) -> str:
        from engram.store.scope_of import scope_of

        found = scope_of(self.directory, self._trusted())
        if found is None:
            raise InvalidInput(
                f"{self.directory} lies in no repository, so there is no `here`; name a scope such as project:acme"
            )
        return found

    def scope_here(self) -> str:
        """The scope of the directory this was opened for; `global` outside of any repository."""
        from engram.store.scope_of import scope_of

        return scope_of(self.directory, self._trusted()) or "global"

    def _trusted(self) -> frozenset[str]:
        return self.store.trusted_here(self.directory)

    def _filters(self, **given: Any) -> Filters:
        unknown = sorted(set(given) - FILTERS)
        if unknown:
            raise InvalidInput(f"unknown filter {unknown[0]!r}; known: {', '.join(sorted(FILTERS))}")
        return self._filtered(**given)

    def _filtered(
        self,
        *,
        kinds: Sequence[str] = ("memory",),
        scope: ScopeLike = None,
        types: Sequence[str] | str | None = None,
        status: Sequence[str] | str | None = None,
        tags: Sequence[str] | str | None = None,
        domain: str | None = None,
        since: datetime | str | None = None,
        until: datetime | str | None = None,
        as_of: datetime | str | None = None,
        known_at: datetime | str | None = None,
        metadata: Mapping[str, Any] | None = None,
        session: str | None = None,
    ) -> Filters:
        scopes = _tuple(scope)
        return Filters(
            kinds=_tuple(kinds) or ("memory",),
            scopes=tuple(self._scope_named(s) for s in scopes) if scopes is not None else None,
            statuses=_statuses(status),
            types=_tuple(types),
            tags=_tuple(tags),
            domain=domain,
            since=aware(since),
            until=aware(until),
            valid_at=aware(as_of) or (self._clock() if status is None else None),
            as_of=as_of is not None,
            known_at=aware(known_at),
            parents=(session,) if session else None,
            metadata=dict(metadata or {}),
        )


def _statuses(status: Sequence[str] | str | None) -> tuple[str, ...] | None:
    if status is None:
        return LIVE
    return None if status == "any" else _tuple(status)


def _tuple(value: Sequence[str] | str | None) -> tuple[str, ...] | None:
    if value is None:
        return None
    return (value,) if isinstance(value, str) else tuple(value)


def _scopes_touched(before: Memory, after: Memory) -> list[str]:
    """The scopes in which a change depends on what else is there: it says, calls or places something anew."""
    same = (
        meaning_of(before) == meaning_of(after)
        and (before.scope, before.name, before.aliases) == (after.scope, after.name, after.aliases)
        and (before.status in LIVE or after.status not in LIVE)
    )
    return [] if same else sorted({before.scope, after.scope})


def _updated(memory: Memory, changes: Mapping[str, Any], now: datetime) -> Memory:
    memory = memory.but(**changes, updated=now)
    if "form" in changes and "statement" not in changes:
        memory = memory.but(statement=render_form(memory.form))
    if "statement" in changes:
        memory = memory.but(form=changes.get("form", {}), entities=changes.get("entities", ()))
    return memory


def _chosen(settings: Settings, embedder: str | None) -> Settings:
    return settings if embedder is None else replace(settings, embedder=embedder)


def _embedder(settings: Settings) -> Any:
    from engram.embedding import load_embedder

    return load_embedder(settings.embedder)


def _temporary_folder() -> str:
    import tempfile

    return tempfile.mkdtemp(prefix="engram-")
