"""A search as one value: its scopes, filters and parsed question, and the second search for outdated memories if no
current one answers.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from engram.model.arguments import wording_key
from engram.model.errors import InvalidInput
from engram.model.hit import Hit, Hits
from engram.model.lazy import dataclass, field, replace
from engram.model.memory import LIVE_STATUSES, Memory, aware
from engram.recall.cutoff import MIN_KNOWN, best_relevance, check_relevance, derive_hits
from engram.rules.lifecycle import eligibility, fresh_since, is_effective, is_stale, is_valid
from engram.rules.scopes import EVERYWHERE, is_scope_visible, parse_scope
from engram.store.documents import matches_metadata
from engram.store.protocol import Candidates, Filters, Query, Store
from engram.store.scopes import scope_links
from engram.text.display import safe_word
from engram.text.time.zone import local
from engram.text.translation import translate

if TYPE_CHECKING:
    from array import array

    from engram.embedding.vectors import Vectors

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
        "roles",
        "critical",
    }
)
"""The filters of `search`, `list` and `recall`."""
MEMORY_FILTERS = frozenset({"types", "status", "tags", "domain", "as_of", "known_at", "critical"})
"""Filters that apply only to memories, or mean something else for events. With one of them, `search` defaults to
memories.
"""
HERE = "here"
"""The name that stands for the scope of the directory wherever a scope is named."""
ScopeLike = str | Sequence[str] | None


@dataclass(slots=True)
class ScopeResolver:
    """Resolves scopes as seen from one directory."""

    store: Store
    directory: Path
    clock: Callable[[], datetime]
    whole_store: bool = False
    """Whether a read without a scope covers the whole store, as in a program that opened it without a directory."""

    def read_scopes(self, named: ScopeLike = None) -> tuple[str, ...] | None:
        """The scopes of a read: the named ones and their wider scopes.

        Without a name: the whole store (None), or the directory's scopes, the user's and global.
        """
        names = _tuple(named)
        if names is None:
            return None if self.whole_store else self.scopes_from(None)
        return None if EVERYWHERE in names else self.scopes_from(names)

    def scopes_from(self, scope: ScopeLike) -> tuple[str, ...]:
        """The scopes a caller sees: the named ones and their wider scopes, or those of the directory."""
        from engram.store.scopes import scopes_seen

        if scope is not None:
            scope = [self.scope_named(item) for item in ([scope] if isinstance(scope, str) else scope)]
        return scopes_seen(scope, self.directory, self._trusted_scopes(), scope_links(self.store))

    def scope_named(self, scope: str) -> str:
        """A scope, or `here` for that of the directory."""
        return self.here() if scope == HERE else parse_scope(scope)

    def here(self) -> str:
        """The scope of the directory; raises `InvalidInput` outside of a repository."""
        found = self.scope()
        if found is None:
            raise InvalidInput(
                f"{self.directory} is not in a repository, so `here` has no scope; name one such as project:acme"
            )
        return found

    def scope(self) -> str | None:
        """The scope of the directory; None outside of a repository."""
        from engram.store.scopes import scope_of

        return scope_of(self.directory, self._trusted_scopes(), scope_links(self.store))

    def _trusted_scopes(self) -> frozenset[str]:
        return self.store.trusted_here(self.directory)

    def filters(self, **given: Any) -> Filters:
        """Filters from plain arguments; raises `InvalidInput` for an unknown name."""
        unknown = sorted(set(given) - FILTERS)
        if unknown:
            raise InvalidInput(f"unknown filter {unknown[0]!r}; known: {', '.join(sorted(FILTERS))}")
        return self._build_filters(**given)

    def _build_filters(
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
        roles: Sequence[str] | str | None = None,
        critical: bool = False,
    ) -> Filters:
        scopes = _tuple(scope)
        return Filters(
            kinds=_tuple(kinds) or ("memory",),
            scopes=self.read_scopes(scopes)
            if scopes is None or EVERYWHERE in scopes
            else tuple(map(self.scope_named, scopes)),
            statuses=_statuses(status),
            types=_tuple(types),
            tags=_tuple(tags),
            domain=domain,
            since=aware(since),
            until=aware(until),
            valid_at=aware(as_of) or (self.clock() if status is None else None),
            as_of=as_of is not None,
            known_at=aware(known_at),
            parents=(session,) if session else None,
            roles=_tuple(roles),
            critical=critical,
            metadata=dict(metadata or {}),
        )


def _statuses(status: Sequence[str] | str | None) -> tuple[str, ...] | None:
    if status is None:
        return LIVE_STATUSES
    return None if status == "any" else _tuple(status)


def _tuple(value: Sequence[str] | str | None) -> tuple[str, ...] | None:
    if value is None:
        return None
    return (value,) if isinstance(value, str) else tuple(value)


def without_time_filters(filters: Filters) -> Filters:
    """The filters without those whose result changes over time: what passed then may not pass today."""
    return replace(filters, statuses=None, valid_at=None, as_of=False)


def was_current(memory: Memory, filters: Filters) -> bool:
    """Whether a memory, as it was at `known_at`, was visible and current at the moment asked about."""
    if not is_scope_visible(filters.scopes, memory.scope) or not _was_known(memory, filters.known_at):
        return False
    moment = filters.valid_at if filters.as_of and filters.valid_at is not None else filters.known_at
    return moment is None or is_valid(memory, moment)


def _was_known(memory: Memory, known_at: datetime | None) -> bool:
    return known_at is None or (memory.created is not None and memory.created <= known_at)


def is_selected(filters: Filters, memory: Memory) -> bool:
    """Whether a memory matches the filters, ignoring its status and validity; the store uses the same test in
    searches.
    """
    tags = {tag.lower() for tag in memory.tags}
    return (
        "memory" in filters.kinds
        and filters.parents is None
        and filters.roles is None
        and is_scope_visible(filters.scopes, memory.scope)
        and (filters.types is None or memory.type in filters.types)
        and all(tag.lower() in tags for tag in filters.tags or ())
        and (filters.domain is None or f"{memory.domain}/".startswith(f"{filters.domain}/"))
        and (memory.pinned or not filters.pinned)
        and (bool(memory.critical_slot) or not filters.critical)
        and matches_metadata(memory.metadata, filters.metadata)
        and _is_from(memory.when, filters)
    )


def _is_from(moment: datetime | None, filters: Filters) -> bool:
    if moment is None:
        return filters.since is None and filters.until is None
    return (filters.since is None or moment >= filters.since) and (filters.until is None or moment < filters.until)


def list_memories(store: Store, filters: Filters, limit: int | None, offset: int) -> list[Memory]:
    """Memories, newest first; with `known_at`, as they were then."""
    if filters.known_at is None:
        return store.listing(filters, limit, offset)
    images = store.known_at(filters.known_at)
    then = (images.get(memory.id, memory) for memory in store.listing(without_time_filters(filters)))
    kept = [memory for memory in then if memory is not None and _is_listed(memory, filters)]
    return kept[offset:] if limit is None else kept[offset : offset + limit]


def _is_listed(memory: Memory, filters: Filters) -> bool:
    return was_current(memory, filters) and (filters.statuses is None or memory.status in filters.statuses)


MODES = ("hybrid", "semantic", "keyword")
FUSIONS = (None, "best", "rrf")
RETRIEVER_CANDIDATES = 60
"""Candidates per retriever, enough that no document that could still reach the first ten is cut."""
WEIGHED, SPARE, SPARE_SHARE, MIN_WEIGHED = 2, 10, 3, 20
"""How many hits to weigh: the limit times `WEIGHED`, but at least `MIN_WEIGHED` and at most the limit plus the larger
of `SPARE` and the limit divided by `SPARE_SHARE`. State, feedback and confidence can lift a hit past others. `recall`
reads 30 hits and shows ten; weighing 60 for them instead of 40 put no more right memories first. At least 20 are
weighed because `likeness` compares them with one another.
"""
Windows: TypeAlias = Sequence[tuple[float, float]]
"""Time spans that a question names, as (since, until) in seconds."""


@dataclass(frozen=True, slots=True)
class SearchQuery:
    """One search. Callers give the fields up to `purpose`; `Searcher` fills in the rest before it ranks."""

    text: str
    limit: int = 10
    mode: str = "hybrid"
    fusion: str | None = None
    filters: Filters = field(default_factory=Filters)
    explain: bool = False
    wordings: tuple[str, ...] = ()
    """Other wordings of the question from the calling agent; a hit for any of them is an answer."""
    narrowed: bool = False
    """Whether the caller's filters decide where to search, instead of the question's intent."""
    min_relevance: float = 0.0
    """The relevance below which hits are left out before the limit cuts."""
    elsewhere: bool = False
    """Whether to count matches in other projects."""
    outdated: bool = False
    """Whether to include stale and expired memories, and to rank outdated ones as if they were current."""
    folding: bool = False
    """Whether to leave out an event if a memory extracted from it is found."""
    everything: bool = False
    """Whether to return everything that passes the filters, whatever its content; each such hit has relevance 1."""
    question: str = ""
    """The whole question, to compare memories with, if `text` is only its subject."""
    task: str = ""
    """The task at hand in the user's words, so that memories are also found by their situations; "" to search only for
    the text.
    """
    purpose: str = "the question"
    """The purpose of the search, as a trace shows it."""
    original: str = ""
    """The untranslated question, if the text is a translation; both are searched."""
    terms: tuple[str, ...] = ()
    """The question's index terms, without those of its dates."""
    vector: "Vectors | None" = None
    """The question's embedding; None in keyword mode and without an embedder."""
    task_vector: "array[float] | None" = None
    """The embedding of the task."""
    windows: Windows = ()
    """The time spans that the question's dates name."""
    known_then: Mapping[int, Memory | None] = field(default_factory=dict)
    """For `known_at`: by number, the memories that changed since, as they were then; None for one that was not yet
    known.
    """

    def validate(self) -> "SearchQuery":
        """Return the query; raises `InvalidInput` if a field has an invalid value."""
        if self.mode not in MODES:
            raise InvalidInput(f"Unknown mode {self.mode!r}; choose hybrid, semantic or keyword.")
        if self.fusion not in FUSIONS:
            raise InvalidInput(f"Unknown fusion {self.fusion!r}; choose 'rrf', or leave it out for the default.")
        if not isinstance(self.text, str):
            raise InvalidInput(f"A question must be text, not {type(self.text).__name__}.")
        if type(self.limit) is not int or not 1 <= self.limit <= 1000:
            raise InvalidInput(f"limit {self.limit} must be a whole number between 1 and 1000")
        check_relevance(self.min_relevance)
        return self

    def in_english(self) -> "SearchQuery":
        """The query with its texts translated, if they are in another known language."""
        text = translate(self.text)
        if text == self.text or self.original:
            return self
        return replace(
            self, text=text, original=self.text, question=translate(self.question), task=translate(self.task)
        )

    @property
    def alternatives(self) -> "list[SearchQuery]":
        """The untranslated question and each wording as separate queries."""
        alone = replace(self, wordings=(), question="", task="", original="")
        asked = {wording_key(text) for text in (self.text, self.question, self.original)}
        others = [wording for wording in self.wordings if wording_key(wording) not in asked]
        return [replace(alone, text=wording) for wording in (*filter(None, [self.original]), *others)]

    @property
    def is_in_context(self) -> bool:
        """Whether documents are ranked by all the evidence, not by the order of one retriever."""
        return self.mode == "hybrid" and self.fusion != "rrf"

    @property
    def lexical_terms(self) -> tuple[str, ...]:
        """The terms to look up in the keyword index; none in semantic mode."""
        return () if self.mode == "semantic" else self.terms

    @property
    def store_query(self) -> Query:
        """The query for the store's retrievers."""
        return Query(self.lexical_terms, self.vector, max(RETRIEVER_CANDIDATES, self.limit * WEIGHED), self.task_vector)

    @property
    def store_filters(self) -> Filters:
        """The filters the store applies; with `known_at`, without those that change over time, which `Searcher` checks
        itself.
        """
        return self.filters if self.filters.known_at is None else without_time_filters(self.filters)

    @property
    def rank_limit(self) -> int:
        """How many ranked documents to weigh; more with `known_at`, because some were not known yet."""
        spare = max(SPARE, self.limit // SPARE_SHARE)
        return (
            self.store_query.limit * 2
            if self.known_then
            else max(MIN_WEIGHED, min(self.limit * WEIGHED, self.limit + spare))
        )

    @property
    def known_memories(self) -> dict[int, Memory]:
        """The memories of `known_then` that were known at that time."""
        return {n: memory for n, memory in self.known_then.items() if memory is not None}


RetrievedQuery: TypeAlias = tuple[Candidates, SearchQuery]
"""A question, or one of its wordings, and what the retrievers found for it."""


def is_unanswered(query: SearchQuery, hits: Hits) -> bool:
    """Whether a search for current memories found nothing relevant enough, so that outdated ones may answer."""
    filters = query.filters
    asks_for_current = filters.statuses == LIVE_STATUSES and "memory" in filters.kinds and not filters.as_of
    return asks_for_current and not filters.outside and best_relevance(hits) < MIN_KNOWN


def outdated_query(query: SearchQuery) -> SearchQuery:
    """The search for archived and stale memories that are relevant enough."""
    filters = replace(query.filters, statuses=("archived", *LIVE_STATUSES))
    return replace(query, filters=filters, outdated=True, min_relevance=max(query.min_relevance, MIN_KNOWN))


def combine_with_outdated(query: SearchQuery, hits: Hits, found: Hits, now: datetime, zone: tzinfo) -> Hits:
    """Archived and stale memories of `found`, with their end as a note, then the hits, within the limit."""
    outdated = [
        replace(hit, note=describe_end(hit.memory, now, zone)) for hit in found if hit.memory and may_answer(hit, now)
    ]
    taken = {hit.id for hit in outdated}
    return derive_hits(hits, [*outdated, *(hit for hit in hits if hit.id not in taken)][: query.limit])


def may_answer(hit: Hit, now: datetime) -> bool:
    """Whether a hit is an archived or stale memory. It may still be true, because nothing replaced it and it has no end date."""
    memory = hit.memory
    if memory is None or not is_effective(memory, now):
        return False
    return memory.status == "archived" or (memory.status in LIVE_STATUSES and eligibility(memory, now).state == "stale")


def describe_end(memory: Memory, now: datetime, zone: tzinfo | None) -> str:
    """How a memory stopped being current, and when; "" if it is current."""

    def name_day(moment: datetime | None) -> str:
        return "" if moment is None else f"{local(moment, zone) if zone else moment:%Y-%m-%d}"

    if memory.status in ("superseded", "archived"):
        by = f" by {safe_word(memory.superseded_by)}" if memory.status == "superseded" and memory.superseded_by else ""
        ended = memory.valid_until or memory.updated if memory.status == "superseded" else memory.updated
        return f"{memory.status}{by}{f' on {name_day(ended)}' if ended is not None else ''}"
    if not is_effective(memory, now):
        return f"valid until {name_day(memory.valid_until)}" if memory.valid_until else "not yet valid"
    if is_stale(memory, now):
        return f"last confirmed {name_day(fresh_since(memory))}"
    state = eligibility(memory, now)
    return "" if state.found else state.state
