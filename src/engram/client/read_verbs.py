"""The verbs that read: list, search, recall, inject, history, the graph."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Unpack

from engram.client.arguments import owner_scope
from engram.client.facets import PAUSED_MESSAGE, Facets
from engram.model.arguments import Wordings, checked_length, checked_place, checked_wordings
from engram.model.errors import InvalidInput
from engram.model.hit import Hits, Injection
from engram.model.lazy import replace
from engram.model.memory import LIVE_STATUSES, AskerFilters, Memory, Owner, ScopeLike, SearchFilters, aware
from engram.recall.cutoff import INJECT_FLOOR, MIN_KNOWN
from engram.recall.query import MEMORY_FILTERS, SearchQuery, list_memories
from engram.rules.scopes import EVERYWHERE
from engram.rules.sources import is_evidence
from engram.store.protocol import Image
from engram.store.references import hide_foreign_links
from engram.store.states import is_paused
from engram.verbs import graph, retrieval
from engram.verbs.calls import bind_verb

if TYPE_CHECKING:
    from engram.graph.graph import ReachedMemory
    from engram.model.hit import TimelineEntry
    from engram.recall.prompt.blocks import RecallTrace
    from engram.recall.recaller import Recall
    from engram.review.explanation import Explanation

Memories = list[Memory]
Images = list[Image]
Reaches = list["ReachedMemory"]
_WHERE_TO_SEARCH = frozenset({"kinds", "status", "as_of", "known_at"})
"""Filters that decide where to search; with any of them, the intent of the question does not."""
Entries = list["TimelineEntry"]
MAX_TIMELINE_ENTRIES = 1000
"""The most documents one search returns."""
EVERY_VERSION = (*LIVE_STATUSES, "superseded")


class ReadVerbs(Facets):
    """The verbs that find and show memories."""

    @bind_verb(retrieval.LIST)
    def list(self, *, limit: int | None = 100, offset: int = 0, **filters: Unpack[SearchFilters]) -> Memories:
        """Memories, newest first. Takes the filters of `search`; `limit=None` lists all."""
        wanted = self._filters(**filters)
        return list_memories(self.store, wanted, checked_length(limit), checked_place(offset, "offset"))

    get_memories = list

    @bind_verb(retrieval.SEARCH)
    def search(
        self,
        query: str,
        *,
        wordings: Wordings = (),
        limit: int = 10,
        mode: str = "hybrid",
        fusion: str | None = None,
        explain: bool = False,
        min_relevance: float = 0.0,
        min_score: float = 0.0,
        include_superseded: bool = False,
        **filters: Unpack[SearchFilters],
    ) -> Hits:
        """Find memories and events, without events that a found memory was extracted from.

        `kinds` selects one of them. Without it, a filter that applies to memories only (types, status, tags, domain,
        critical, as_of, known_at) finds only memories.

        `wordings` are up to eight other wordings of the query: synonyms, a technical term, the phrasing of an answer.
        All are searched at once; `Hit.trace.wording` names the one that found a hit.

        Filters, applied before the limit: kinds, scope (or agent_id and user_id), types, status, tags, domain (with its
        descendants), since, until, as_of, known_at, metadata, session, roles, critical. Modes: hybrid, semantic,
        keyword. `explain=True` fills each hit's trace. `min_relevance` (0 to 1) leaves out less relevant hits before
        the limit applies; 0 returns the best-ranked hits. `min_score` leaves out weaker hits; scores are comparable
        only within one search. Hits are ordered by score; an outdated hit's `note` names its replacement.
        """
        from engram.recall.freshness import find_replacements, note_replacements

        ask = self._ask(query, wordings, limit, mode, fusion, explain, include_superseded, filters, min_relevance)
        hits = _filter_by_score(self._searcher.search(ask), min_score)
        return note_replacements(hits, find_replacements(ask.text, hits, self.store, ask.filters))

    @bind_verb(retrieval.DEEP_SEARCH)
    def deep_search(
        self,
        query: str,
        *,
        wordings: Wordings = (),
        n_queries: int = 4,
        limit: int = 10,
        mode: str = "hybrid",
        fusion: str | None = None,
        explain: bool = False,
        min_relevance: float = 0.0,
        min_score: float = 0.0,
        include_superseded: bool = False,
        **filters: Unpack[SearchFilters],
    ) -> Hits:
        """Search several wordings of a broad question at once, fused by reciprocal rank. Takes the filters of `search`."""
        from engram.recall.questions import deep_search

        ask = self._ask(query, wordings, limit, mode, fusion, explain, include_superseded, filters, min_relevance)
        return _filter_by_score(deep_search(self._searcher, ask, n_queries, self._permute), min_score)

    def _ask(
        self,
        query: str,
        wordings: Wordings,
        limit: int,
        mode: str,
        fusion: str | None,
        explain: bool,
        past: bool,
        filters: Mapping[str, Any],
        floor: float,
    ) -> SearchQuery:
        if past and "status" in filters:
            raise InvalidInput("include_superseded and status both choose the states to search; give one of them")
        if past:
            filters = {**filters, "status": EVERY_VERSION}
        if MEMORY_FILTERS.isdisjoint(filters):
            filters = {"kinds": ("memory", "event"), **filters}
        return SearchQuery(
            query,
            limit,
            mode,
            fusion,
            self._filters(**filters),
            explain,
            checked_wordings(wordings),
            min_relevance=floor,
            folding=True,
        )

    @bind_verb(retrieval.RECALL)
    def recall(
        self,
        question: str,
        *,
        wordings: Wordings = (),
        question_date: datetime | str | None = None,
        scope: ScopeLike = None,
        limit: int = 10,
        session: str = "",
        mode: str = "hybrid",
        fusion: str | None = None,
        explain: bool = False,
        compose_answer: bool = False,
        min_relevance: float = MIN_KNOWN,
        **filters: Unpack[AskerFilters],
    ) -> "Recall":
        """Answer a question from memory. Recalled memories are reinforced.

        Without a scope, reads cover the scopes of the directory, the user and global, or the whole store if the client
        was opened without a directory. The scope `everywhere` covers the whole store.

        The intent of the question decides what is searched: current facts, past values, the session log, or every
        version of a fact; a time phrase, relative to `question_date` or now, becomes a window in the user's time zone.
        `Recall.intent` and `.window` hold the interpretation. `compose_answer` fills `Recall.answer` with sentences and
        the ids that support them, written by a model if one is configured, else quoted from the memories. `agent_id`
        and `user_id` (or `scope`) identify the asker: neither memories nor events of another owner are used. With
        `explain` each hit has the parts of its score and `Recall.trace` explains how the answer was found; the answer
        itself does not change.

        Hits with a relevance below `min_relevance` (0 to 1) are left out. If the question asks for one thing, so are
        hits less than half as relevant as the best. 0 returns the best-ranked hits. Other matches are separate parts,
        which `text` has under headings: `possible` (close, but may not answer), `unconfirmed` (waits for review),
        `older` (no longer current) and `elsewhere` (how many memories of other projects match). `wordings` are other
        wordings, as in `search`.
        """
        session = self._recordable_session(session, _asker(scope, filters))
        ask = self._question(question, wordings, limit, mode, fusion, explain, scope, filters, min_relevance)
        found = self._recaller.recall(ask, session, aware(question_date, self.time_zone))
        return self._compose_answer(found) if compose_answer else found

    def _question(
        self,
        text: str,
        wordings: Wordings,
        limit: int,
        mode: str,
        fusion: str | None,
        explain: bool,
        scope: ScopeLike,
        filters: Mapping[str, Any],
        floor: float,
    ) -> SearchQuery:
        narrowed = not _WHERE_TO_SEARCH.isdisjoint(filters)
        seen, others = self._filters_for_read(scope, filters), checked_wordings(wordings)
        is_open = scope is None and filters.get("agent_id") is None and filters.get("user_id") is None
        return SearchQuery(
            text, limit, mode, fusion, seen, explain, others, narrowed, floor, elsewhere=is_open
        ).validate()

    def _compose_answer(self, found: "Recall") -> "Recall":
        from engram.recall.recaller import compose_cited_answer, model_composer

        answer, warning = compose_cited_answer(found, model_composer(self.model) if self.model is not None else None)
        return replace(found, answer=answer, warnings=(*found.warnings, *([warning] if warning else [])))

    @bind_verb(retrieval.RECALL_CRITICAL)
    def recall_critical(
        self,
        *,
        types: Sequence[str] | str | None = None,
        limit: int | None = 50,
        **owner: Unpack[Owner],
    ) -> Memories:
        """Memories in critical slots, newest first. They are looked up by slot, not searched for."""
        found = self.list(scope=self._visible_scope(self._scope_of(owner)), types=types, limit=None, critical=True)
        # Evidence from documents is never critical, because one document could fill every slot.
        return [memory for memory in found if not is_evidence(memory)][: checked_length(limit)]

    @bind_verb(retrieval.TRACE_RECALL)
    def trace_recall(
        self,
        query: str,
        *,
        wordings: Wordings = (),
        max_tokens: int = 2000,
        expected_terms: Sequence[str] = (),
        question_date: datetime | str | None = None,
        scope: ScopeLike = None,
        limit: int = 10,
        mode: str = "hybrid",
        fusion: str | None = None,
        compose_answer: bool = False,
        min_relevance: float = MIN_KNOWN,
        **filters: Unpack[AskerFilters],
    ) -> "RecallTrace":
        """The answer of `recall`, with an explanation; no use is recorded.

        `RecallTrace.recall` is the answer, `recall.trace` how it was found. `kept` and `trimmed` list what fits into
        `max_tokens`, `superseded` the outdated matches, `missing_expected_terms` the terms that the text lacks.
        """
        ask = self._question(query, wordings, limit, mode, fusion, True, scope, filters, min_relevance)
        found = self._recaller.answer_query(ask, aware(question_date, self.time_zone))
        if compose_answer:
            found = self._compose_answer(found)
        return self._blocks.trace(found, ask.filters, max_tokens, expected_terms)

    @bind_verb(retrieval.GET_CONTEXT_BLOCK)
    def get_context_block(
        self,
        query: str,
        *,
        max_tokens: int = 2000,
        header: str = "",
        group_by_type: bool = False,
        session: str = "",
        scope: ScopeLike = None,
        count: Callable[[str], int] | None = None,
        min_relevance: float = INJECT_FLOOR,
        **filters: Unpack[AskerFilters],
    ) -> str:
        """Prompt-ready text within the budget.

        It has the session's summary, the critical facts that concern the query, then other relevant memories.

        `count` measures a text in your model's tokens; by default the bundled tokenizer does. Memories less relevant to
        the query than `min_relevance` (0 to 1) are left out.
        """
        from engram.sessions.context import reason_to_withhold

        seen = self._scopes_of_asker(_asker(scope, filters))
        own = self.sessions.get(session, scopes=seen) if session else None
        summary = own.summary if own is not None and not reason_to_withhold(self.store, own) else ""
        block = self._blocks.block(
            query,
            self._filters_for_read(scope, filters),
            max_tokens,
            header=header,
            by_type=group_by_type,
            summary=summary,
            count=count,
            min_relevance=min_relevance,
        )
        return block.text

    @bind_verb(retrieval.INJECT)
    def inject(
        self,
        task: str,
        *,
        budget: int | None = None,
        session: str = "",
        min_relevance: float = INJECT_FLOOR,
        **owner: Unpack[Owner],
    ) -> Injection:
        """What an agent should know before a task: directives, consider, related, within a token budget.

        Leaves out memories less relevant to the task than `min_relevance` (0 to 1), unless somebody's health or safety
        depends on them or they are pinned or linked.
        """
        filters = self._filters_for_read(self._scope_of(owner), {})
        session = self._recordable_session(session, owner)
        if is_paused(self.store):
            return Injection(warnings=(PAUSED_MESSAGE,))
        room = self.settings.budget if budget is None else budget
        return self._recaller.inject(task, filters, room, session, min_relevance)

    @bind_verb(retrieval.HISTORY)
    def history(self, ref: str, **owner: Unpack[Owner]) -> Images:
        """Every decision about a memory, oldest first, each with the memory after it."""
        from engram.review.explanation import visible_images

        return visible_images(self.store, self.get(ref, **owner).id, self.scopes_for(**owner))

    @bind_verb(retrieval.GET_CURRENT)
    def get_current(self, ref: str, **owner: Unpack[Owner]) -> Memory:
        """The current version of a fact, from the id of any version of it."""
        scopes = self.scopes_for(**owner)
        return hide_foreign_links(self.store, self.lineages.current(ref, scopes=scopes), scopes)

    @bind_verb(retrieval.LINEAGE)
    def lineage(self, ref: str, **owner: Unpack[Owner]) -> Memories:
        """Every version of a fact, oldest first."""
        scopes = self.scopes_for(**owner)
        return [hide_foreign_links(self.store, one, scopes) for one in self.lineages.versions(ref, scopes=scopes)]

    get_lineage = lineage

    @bind_verb(retrieval.SHOW)
    def explain_memory(self, ref: str, **owner: Unpack[Owner]) -> "Explanation":
        """Why a memory is in its state: the reason, its versions, decisions, links and evidence."""
        from engram.review.explanation import build_explanation

        memory, seen = self.get(ref, **owner), self.scopes_for(**owner)
        versions, current = self.lineage(ref, **owner), self.get_current(ref, **owner)
        return build_explanation(self.store, memory, versions, current, self._clock(), seen)

    @bind_verb(retrieval.LIST_RECENT)
    def list_recent(self, limit: int | None = 10, **filters: Unpack[SearchFilters]) -> Memories:
        """The newest memories. Takes the filters of `search`."""
        return self.list(limit=limit, **filters)

    @bind_verb(retrieval.GET_HISTORY)
    def get_history(
        self,
        scope: ScopeLike = None,
        *,
        agent_id: str | None = None,
        user_id: str | None = None,
        since: datetime | str | None = None,
        until: datetime | str | None = None,
        include_superseded: bool = True,
        types: Sequence[str] | str | None = None,
        limit: int | None = 100,
    ) -> Memories:
        """Memories by the time they happened or were stored, newest first, superseded ones included."""
        status = EVERY_VERSION if include_superseded else LIVE_STATUSES
        named = self._scope_of({"scope": scope, "agent_id": agent_id, "user_id": user_id})
        return self.list(limit=limit, scope=named, since=since, until=until, types=types, status=status)

    @bind_verb(retrieval.TIMELINE)
    def timeline(
        self,
        about: str = "",
        *,
        since: datetime | str | None = None,
        until: datetime | str | None = None,
        limit: int | None = 50,
        **owner: Unpack[Owner],
    ) -> Entries:
        """The timeline of known facts and events, oldest first; `limit` keeps the newest.

        Without a subject: memories, replaced ones included, and sessions. With one: the memories and events about it.
        It covers the same scopes as `recall`.
        """
        from engram.recall.timeline import entries_of_hits, entries_of_memories, entries_of_sessions, newest

        checked_length(limit)
        scopes = self._visible_scope(self._scope_of(owner))
        since, until = aware(since, self.time_zone), aware(until, self.time_zone)
        if about.strip():
            hits = self.search(
                about, limit=min(limit or MAX_TIMELINE_ENTRIES, MAX_TIMELINE_ENTRIES), kinds=("memory", "event"), status=EVERY_VERSION,
                scope=scopes, min_relevance=INJECT_FLOOR, since=since, until=until,
            )  # fmt: skip
            return newest(entries_of_hits(hits), limit)
        memories = self.get_history(scopes, limit=limit, since=since, until=until)
        seen = None if scopes == EVERYWHERE else scopes
        sessions = self.sessions.list(limit=MAX_TIMELINE_ENTRIES, scopes=seen)
        return newest([*entries_of_memories(memories), *entries_of_sessions(sessions, since, until)], limit)

    @bind_verb(graph.TRAVERSE_ONE)
    def traverse(
        self,
        start: str,
        *,
        max_depth: int = 3,
        direction: str = "outbound",
        relation_types: str | Sequence[str] | None = None,
        types: str | Sequence[str] | None = None,
        min_weight: float = 0.0,
        limit: int = 50,
        status: str | Sequence[str] | None = None,
        **owner: Unpack[Owner],
    ) -> "Reaches":
        """The memories related to one, nearest first: direction outbound, inbound or any, over some relation types or all.

        The walk covers all memories, those of a scope, or those an owner sees.
        """
        return self.graph.traverse(
            start, max_depth=max_depth, direction=direction, types=_relations(relation_types, types),
            min_weight=min_weight, limit=limit, status=status, scope=self._requested_scope(owner),
        )  # fmt: skip

    @bind_verb(graph.TRAVERSE)
    def traverse_many(
        self,
        seeds: Sequence[str],
        *,
        max_depth: int = 2,
        direction: str = "outbound",
        relation_types: str | Sequence[str] | None = None,
        types: str | Sequence[str] | None = None,
        min_weight: float = 0.0,
        limit_per_seed: int = 25,
        total_limit: int = 100,
        status: str | Sequence[str] | None = None,
        **owner: Unpack[Owner],
    ) -> "Reaches":
        """Like `traverse`, from several memories at once.

        Each result occurs once, and `seeds` lists the starts that reach it.
        """
        return self.graph.traverse_many(
            seeds, max_depth=max_depth, direction=direction, types=_relations(relation_types, types),
            min_weight=min_weight, limit_per_seed=limit_per_seed, total_limit=total_limit, status=status,
            scope=self._requested_scope(owner),
        )  # fmt: skip

    def _requested_scope(self, owner: Owner) -> ScopeLike:
        if owner.get("agent_id") is not None or owner.get("user_id") is not None:
            return self.scopes_for(**owner)
        return None if owner.get("scope") is None else self._filters(scope=owner["scope"]).scopes

    @bind_verb(graph.RENDER_GRAPH_CONTEXT)
    def render_graph_context(self, reached: "Sequence[ReachedMemory]", *, max_tokens: int | None = None) -> str:
        """The relations as lines for a prompt."""
        return self.graph.render(reached, max_tokens=max_tokens)

    @bind_verb(retrieval.SCOPE_FOR)
    def scope_for(self, agent_id: str | None = None, user_id: str | None = None) -> str:
        """The scope of an owner in spec 2's form: `agent:bot`, `agent:bot/ana` for its user, `user:ana` for a user of any agent."""
        return owner_scope(agent_id, user_id)


def _relations(
    relation_types: str | Sequence[str] | None, types: str | Sequence[str] | None
) -> str | Sequence[str] | None:
    if relation_types is not None and types is not None:
        raise InvalidInput("relation_types and types mean the same; give one of them")
    return types if relation_types is None else relation_types


def _asker(scope: ScopeLike, filters: Mapping[str, Any]) -> Owner:
    """The owner among the filters of a question."""
    return Owner(scope=scope, agent_id=filters.get("agent_id"), user_id=filters.get("user_id"))


def _filter_by_score(hits: Hits, least: Any) -> Hits:
    """The hits with at least this score. Raises `InvalidInput` unless it is a number from 0 up."""
    if isinstance(least, bool) or not isinstance(least, int | float) or not 0 <= least < float("inf"):
        raise InvalidInput(f"min_score {least!r} must be a number, at least 0")
    hits[:] = [hit for hit in hits if hit.score >= least]
    return hits
