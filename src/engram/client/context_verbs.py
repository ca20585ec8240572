"""The verbs that also read sources: recall with context, and the briefing before a task."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from engram.client.facets import PAUSED_MESSAGE
from engram.client.read_verbs import ReadVerbs
from engram.model.arguments import Wordings, checked_length, checked_wordings
from engram.model.errors import InvalidInput
from engram.recall.cutoff import ABOUT_FLOOR, INJECT_FLOOR
from engram.store.states import is_paused
from engram.verbs import retrieval
from engram.verbs.calls import bind_verb

if TYPE_CHECKING:
    from datetime import datetime

    from engram.model.hit import EarlierSession
    from engram.model.memory import Memory
    from engram.recall.briefing import Briefing
    from engram.recall.context import ContextRecaller, Page, RecalledContext
    from engram.recall.query import SearchQuery
    from engram.recall.recaller import Recall
    from engram.store.protocol import Progress

MAX_SUMMARY_TOKENS = 400
"""Tokens of the session summaries in an answer without a query."""
MAX_TASK_MEMORIES = 5
"""Memories for each of the questions of a briefing."""


class ContextVerbs(ReadVerbs):
    """The verbs that answer from memories and sources."""

    @bind_verb(retrieval.RECALL_CONTEXT)
    def recall_context(
        self,
        query: str = "",
        *,
        wordings: Wordings = (),
        directory: str | Path | None = None,
        limit: int = 10,
        memories_only: bool = False,
        budget: int | None = None,
        memories: "Recall | None" = None,
        progress: "Progress | None" = None,
        cancelled: Callable[[], bool] | None = None,
    ) -> "RecalledContext":
        """Memories about a query, then what auto memory, sessions, skills, instruction files and rules say about it; every line with its source.

        Without a query: the ends of the project's recent sessions, the summaries of the newest sessions, and the memories from that time
        (the newest ones if there are no transcripts). The text has at most `budget` bytes (10,240 for a query, 15,360 without one) and `limit` memories. `memories` is the answer of an
        earlier `recall` to the same query. `wordings` are other wordings of the query, as in `recall`. `progress` is told how far new sources are read; `cancelled` is asked between steps, and what was found until then is returned.
        """
        from engram.recall.context import MAX_ANSWER_BYTES, MAX_RECENT_BYTES, Page
        from engram.recall.expansion import BY_RULES

        asked = bool(query.strip())
        room = _room(budget, MAX_ANSWER_BYTES if asked else MAX_RECENT_BYTES)
        with self._context(directory, progress, cancelled) as context:
            if not asked:
                page = Page(room)
                remembered = self._memories_between(directory, checked_length(limit) or 10)
                stopped = context.recent(remembered, self._session_summaries(directory), page)
                return _assemble_context(query, page, stopped, (), context)
            found = memories or self.recall(query, wordings=wordings, scope=self._scopes_in(directory), limit=limit)
            if any(note.startswith(BY_RULES) for note in found.warnings):
                context.refiner = None  # the model has just failed, and the answer says so
            page = _page(room, summed_up=context.refiner is not None and not memories_only)
            stopped = context.for_question(
                [found], [] if memories_only else [self._source_query(query, wordings)], page
            )
            summary = "" if memories_only else context.summary(query, page)
            return _assemble_context(query, page, stopped, found.warnings, context, summary)

    @bind_verb(retrieval.PREPARE)
    def prepare(
        self,
        task: str,
        *,
        wordings: Wordings = (),
        directory: str | Path | None = None,
        budget: int | None = None,
        progress: "Progress | None" = None,
        cancelled: Callable[[], bool] | None = None,
    ) -> "Briefing":
        """What to know before a task: it is split into two or three questions, and what is known about them is returned once.

        The text has at most `budget` bytes (10,240); every line says where it comes from. `wordings` say the task in other words; each
        is searched together with every question.
        """
        from engram.recall.briefing import Briefing, queries_of
        from engram.recall.context import MAX_ANSWER_BYTES, RecalledContext
        from engram.text.display import cut, quote_text

        queries = queries_of(task)
        if not queries:
            raise InvalidInput("a task in words is needed, such as `write tests for the importer`")
        if is_paused(self.store):
            return Briefing(task, queries, RecalledContext(task, (), "", (PAUSED_MESSAGE,)), "")
        heading = f"# Before {quote_text(cut(' '.join(task.split()), 200))}"
        page = _page(
            _room(budget, MAX_ANSWER_BYTES) - len(heading.encode("utf-8", "replace")) - 2,
            summed_up=self.model is not None,
        )
        scopes = self._scopes_in(directory)
        with self._context(directory, progress, cancelled) as context:
            found = [self._about_task(query, wordings, scopes) for query in queries]
            stopped = context.for_question(found, [self._source_query(query, wordings) for query in queries], page)
            notes = [note for one in found for note in one.warnings]
            used = [section.id for section in page.sections if section.id]
            notes += filter(None, [self._recaller.record_use("recalled", used)])
            known = _assemble_context(task, page, stopped, notes, context, context.summary(task, page))
        return Briefing(task, queries, known, f"{heading}\n\n{known.text}" if known.sections else "")

    def _about_task(self, text: str, wordings: Wordings, scopes: "tuple[str, ...] | None") -> "Recall":
        """The memories that may matter for a task. It asks nothing, so it is searched for, not answered."""
        from engram.model.hit import AnswerParts
        from engram.recall.query import SearchQuery
        from engram.recall.recaller import Recall
        from engram.recall.task_memories import TaskMemoryFinder

        query = SearchQuery(
            text,
            MAX_TASK_MEMORIES,
            wordings=checked_wordings(wordings),
            filters=self._filters_for_read(scopes, {}),
            min_relevance=INJECT_FLOOR,
            task=text,
        )
        finder = TaskMemoryFinder(self._recaller.searcher, self.store)
        hits = finder.find_about(query)
        return Recall(
            text, hits, "", tuple(hits.warnings), parts=AnswerParts(unconfirmed=finder.find_unconfirmed(query))
        )

    @contextmanager
    def _context(
        self, directory: str | Path | None, progress: "Progress | None", cancelled: Callable[[], bool] | None
    ) -> "Iterator[ContextRecaller]":
        from engram.agents.sources.places import SourcePlaces
        from engram.recall.context import ContextRecaller
        from engram.recall.sources.catalog import SourceCatalog
        from engram.store.home import default_cache

        places = SourcePlaces(self._directory(directory))
        cache = self.home.cache if self.home is not None else default_cache()
        catalog = SourceCatalog(places, cache, self._clock)
        refiner = None
        if self.model is not None:
            from engram.recall.sources.refinement import SourceRefiner

            refiner = SourceRefiner(self.model)
        try:
            yield ContextRecaller(
                catalog, self._clock, self.time_zone, progress or _ignore_progress, cancelled or _never, refiner
            )
        finally:
            catalog.close()

    def _directory(self, directory: str | Path | None) -> Path:
        return Path(directory).absolute() if directory is not None else self.directory

    def _scopes_in(self, directory: str | Path | None) -> "tuple[str, ...] | None":
        """The scopes that a directory sees; None for this memory's own."""
        if directory is None:
            return None
        from engram.recall.query import ScopeResolver

        return ScopeResolver(self.store, self._directory(directory), self._clock).read_scopes()

    def _source_query(self, text: str, wordings: Wordings) -> "SearchQuery":
        from engram.recall.query import SearchQuery
        from engram.recall.search import with_terms

        query = SearchQuery(text, wordings=checked_wordings(wordings), min_relevance=ABOUT_FLOOR)
        return with_terms(query, self.time_zone)

    def _memories_between(
        self, directory: str | Path | None, limit: int
    ) -> "Callable[[datetime | None, datetime | None], Sequence[Memory]]":
        def find_memories(since: "datetime | None", until: "datetime | None") -> "Sequence[Memory]":
            from datetime import timedelta

            seen = self._visible_scope(self._scopes_in(directory))
            end = until + timedelta(seconds=1) if until is not None else None
            return self.list(scope=seen, since=since, until=end, limit=limit)

        return find_memories

    def _session_summaries(self, directory: str | Path | None) -> "Sequence[EarlierSession]":
        """The newest visible sessions that have a summary."""
        from engram.embedding.tokenizer import count_tokens
        from engram.sessions.earlier import EarlierSessions

        seen = self._filters_for_read(self._scopes_in(directory), {}).scopes
        return EarlierSessions(self._searcher, count_tokens, self.time_zone).newest(seen, MAX_SUMMARY_TOKENS)


def _page(room: int, *, summed_up: bool) -> "Page":
    """A page for an answer, smaller where a model adds its summary."""
    from engram.recall.context import MAX_SUMMARY_BYTES, Page

    aside = MAX_SUMMARY_BYTES + 100 if summed_up and room >= 4 * MAX_SUMMARY_BYTES else 0
    return Page(room - aside, summed_up=bool(aside))


def _assemble_context(
    query: str, page: "Page", stopped: str, notes: Sequence[str], context: "ContextRecaller", summary: str = ""
) -> "RecalledContext":
    from engram.recall.context import RecalledContext, with_summary

    warnings = [*notes, *context.catalog.warnings, *(context.refiner.warnings if context.refiner is not None else ())]
    name = context.refiner.model.name if context.refiner is not None else ""
    text = with_summary(summary, name, page.text)
    return RecalledContext(query, tuple(page.sections), text, tuple(dict.fromkeys(warnings)), stopped, summary)


def _ignore_progress(what: str, done: int, total: int) -> None:
    """Report progress to nobody."""


def _never() -> bool:
    return False


def _room(budget: int | None, default: int) -> int:
    from engram.recall.context import MIN_ANSWER_BYTES

    if budget is None:
        return default
    if type(budget) is not int or budget < MIN_ANSWER_BYTES:
        raise InvalidInput(f"A budget of {budget!r:.40} bytes is too small (minimum {MIN_ANSWER_BYTES}).")
    return budget
