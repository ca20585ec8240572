"""The verbs that read: get, list, search, recall, inject, history, the graph."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from engram.client.facets import PAUSED, Facets
from engram.model.errors import InvalidInput
from engram.model.hit import Hits, Injection
from engram.model.memory import Memory
from engram.model.times import aware
from engram.recall.recalling import Recall
from engram.recall.search import Ask
from engram.recall.sight import ScopeLike
from engram.store.protocol import LIVE, Image

if TYPE_CHECKING:
    from engram.graph.reaching import Reached
    from engram.recall.blocks import RecallTrace

Memories = list[Memory]
Images = list[Image]
Reaches = list["Reached"]
_AS_ASKED = frozenset({"kinds", "status", "as_of", "known_at"})
"""Filters that say where to look; with one of them a question is searched for there, whatever its intent."""


class Reading(Facets):
    """What finds memories and shows them."""

    def list(self, *, limit: int | None = 100, offset: int = 0, **filters: Any) -> Memories:
        """Memories, newest first. Takes the filters of `search`."""
        if any(type(number) is not int or number < 0 for number in (0 if limit is None else limit, offset)):
            raise InvalidInput(f"limit {limit!r} and offset {offset!r} must be whole numbers, at least 0")
        from engram.recall.known import listing

        return listing(self.store, self._sight.filters(**filters), limit, offset)

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
        return self._searcher.search(Ask(query, limit, mode, fusion, self._sight.filters(**filters), explain))

    def deep_search(
        self,
        query: str,
        *,
        n_queries: int = 4,
        limit: int = 10,
        mode: str = "hybrid",
        fusion: str | None = None,
        explain: bool = False,
        **filters: Any,
    ) -> Hits:
        """Search several wordings of a broad question at once, fused by reciprocal rank. Takes the filters of `search`."""
        from engram.recall.deep import deep_search

        ask = Ask(query, limit, mode, fusion, self._sight.filters(**filters), explain)
        return deep_search(self._searcher, ask, n_queries, self._permute)

    def recall(
        self,
        question: str,
        *,
        question_date: datetime | str | None = None,
        scope: ScopeLike = None,
        limit: int = 10,
        session: str = "",
        **options: Any,
    ) -> Recall:
        """Answer a question from what this directory, its user and everyone know; the memories returned grow stronger by it.

        What it asks for decides where it is searched for: what holds, what held, the ledger, or every version of a fact; a
        time phrase, counted from `question_date` or now, is a window. `Recall.intent` and `.window` say what was understood.
        """
        mode, fusion = options.pop("mode", "hybrid"), options.pop("fusion", None)
        explain = options.pop("explain", False)
        plainly = bool(_AS_ASKED & options.keys())
        filters = self._sight.filters(scope=self._sight.scopes_from(scope), **options)
        ask = Ask(question, limit, mode, fusion, filters, explain).checked()
        return self._recaller.recall(ask, session, aware(question_date), plainly=plainly)

    def recall_critical(
        self, *, scope: ScopeLike = None, types: Sequence[str] | str | None = None, limit: int = 50
    ) -> Memories:
        """What a policy put into critical slots, newest first: looked up, never searched for."""
        return self.list(scope=self._sight.scopes_from(scope), types=types, limit=limit, critical=True)

    def trace_recall(
        self,
        query: str,
        *,
        max_tokens: int = 2000,
        expected_terms: Sequence[str] = (),
        scope: ScopeLike = None,
        **filters: Any,
    ) -> "RecallTrace":
        """The account of a recall: what was ranked, kept, trimmed, superseded, and which expected terms are missing."""
        wanted = self._sight.filters(scope=self._sight.scopes_from(scope), **filters)
        return self._blocks.trace(query, wanted, max_tokens, expected_terms)

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
        **filters: Any,
    ) -> str:
        """Prompt-ready text: the session's summary, critical facts, then what the query needs, within the budget.

        `count` measures a text in your model's tokens; by default the bundled tokenizer does.
        """
        summary = self.sessions.get(session).summary if session else ""
        wanted = self._sight.filters(scope=self._sight.scopes_from(scope), **filters)
        block = self._blocks.block(
            query, wanted, max_tokens, header=header, by_type=group_by_type, summary=summary, count=count
        )
        return block.text

    def inject(self, task: str, *, scope: ScopeLike = None, budget: int | None = None, session: str = "") -> Injection:
        """What an agent should know before a task: directives, consider, related, within a token budget."""
        filters = self._sight.filters(scope=self._sight.scopes_from(scope))
        if self.upkeep.paused:
            return Injection(warnings=(PAUSED,))
        return self._recaller.inject(task, filters, self.settings.budget if budget is None else budget, session)

    def history(self, ref: str) -> Images:
        """Every decision about a memory, oldest first, with what it was after each."""
        return self.store.history(self.get(ref).id)

    def get_current(self, ref: str) -> Memory:
        """The version of a fact in force, from the id of any version of it."""
        return self.lineages.current(ref)

    def lineage(self, ref: str) -> Memories:
        """Every version of a fact, oldest first."""
        return self.lineages.versions(ref)

    def get_lineage(self, ref: str) -> Memories:
        """Every version of a fact, oldest first: `lineage` under the name spec 2 has for it."""
        return self.lineage(ref)

    def list_recent(self, limit: int = 10, **filters: Any) -> Memories:
        """The newest memories. Takes the filters of `search`."""
        return self.list(limit=limit, **filters)

    def get_history(
        self,
        scope: ScopeLike = None,
        *,
        since: datetime | str | None = None,
        until: datetime | str | None = None,
        include_superseded: bool = True,
        types: Sequence[str] | str | None = None,
        limit: int | None = 100,
    ) -> Memories:
        """Memories by when they happened or came, newest first, those that were superseded included."""
        status = (*LIVE, "superseded") if include_superseded else LIVE
        return self.list(limit=limit, scope=scope, since=since, until=until, types=types, status=status)

    def traverse(self, start: str, **options: Any) -> "Reaches":
        """What a memory is tied to: max_depth=3, direction="outbound" (inbound, any), types, min_weight, limit."""
        return self.graph.traverse(start, **options)

    def traverse_many(self, seeds: Sequence[str], **options: Any) -> "Reaches":
        """The same from several memories at once: max_depth=2, limit_per_seed=25, total_limit=100."""
        return self.graph.traverse_many(seeds, **options)

    def render_graph_context(self, reached: "Sequence[Reached]", *, max_tokens: int | None = None) -> str:
        """What was reached as lines for a prompt."""
        return self.graph.render(reached, max_tokens=max_tokens)
