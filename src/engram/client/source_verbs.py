"""The verbs that read beyond the store: recall with sources, the briefing, conversations, transcripts, and files of other programs."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from engram.client.facets import PAUSED_MESSAGE, Facets
from engram.client.read_verbs import ReadVerbs
from engram.model.arguments import Wordings, checked_length, checked_wordings
from engram.model.errors import InvalidInput, Refused
from engram.model.memory import Memory, aware
from engram.recall.cutoff import ABOUT_FLOOR, INJECT_FLOOR
from engram.store.ledger import CONVERSATION_PREFIX, ledger_scope
from engram.store.protocol import Progress
from engram.store.states import is_paused
from engram.verbs import retrieval, store, work
from engram.verbs.calls import bind_verb

if TYPE_CHECKING:
    from datetime import datetime

    from engram.capture.exchange import Conversation
    from engram.capture.extraction import ExtractedFact
    from engram.capture.harvest import Harvester, HarvestReport
    from engram.capture.import_known import ImportReport
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
"""Memories for each question of a briefing."""


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
        """Memories about a query, then matches in auto memory, sessions, skills, instruction files and rules.

        Every line names its source.

        Without a query: the ends of the project's recent sessions, the summaries of the newest sessions, and the
        memories from that time (the newest ones if there are no transcripts). The text has at most `budget` bytes
        (10,240 for a query, 15,360 without one) and `limit` memories. `memories` is the answer of an earlier `recall`
        to the same query. `wordings` are other wordings of the query, as in `recall`. `progress` receives the progress
        of reading new sources. `cancelled` is checked between steps; once it is true, the results so far are returned.
        """
        from engram.recall.context import MAX_ANSWER_BYTES, MAX_RECENT_BYTES, Page
        from engram.recall.questions import BY_RULES

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
                context.refiner = None  # the model has just failed, and the answer reports it
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
        """What to know before a task, found by splitting it into two or three questions.

        Each result is returned once.

        The text has at most `budget` bytes (10,240); every line names its source. `wordings` are other wordings of the
        task; each is searched together with every question.
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
        """The memories that may matter for a task. A task is not a question, so it is searched for, not answered."""
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
            from engram.recall.context import SourceRefiner

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
        """The scopes that a directory sees; None for the scopes of this memory itself."""
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
        from engram.embedding.word_pieces import count_tokens
        from engram.sessions.context import EarlierSessions

        seen = self._filters_for_read(self._scopes_in(directory), {}).scopes
        return EarlierSessions(self._searcher, count_tokens, self.time_zone).newest(seen, MAX_SUMMARY_TOKENS)


def _page(room: int, *, summed_up: bool) -> "Page":
    """A page of memories for an answer, smaller if a model adds its summary."""
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
    """Ignore progress reports."""


def _never() -> bool:
    return False


def _room(budget: int | None, default: int) -> int:
    from engram.recall.context import MIN_ANSWER_BYTES

    if budget is None:
        return default
    if type(budget) is not int or budget < MIN_ANSWER_BYTES:
        raise InvalidInput(f"A budget of {budget!r:.40} bytes is too small (minimum {MIN_ANSWER_BYTES}).")
    return budget


Memories = list[Memory]
HARVEST_WAIT = 60.0
"""Seconds that a harvest waits for another process to finish its own."""
ANOTHER_HARVEST = "another process harvests now; the waiting sessions are left to it or to the next harvest"


class CaptureVerbs(Facets):
    """The verbs that read conversations and keep the lasting facts."""

    @bind_verb(work.ADD_CONVERSATION)
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
        """Store an exchange in its session's ledger, and its lasting facts as memories.

        Returns the list of memories written; its `decisions` report every fact, stored or not: ADD, UPDATE, SUPERSEDE
        or NOOP, and why. If a configured model fails, `pending` is true and a job asks it again. The same exchange
        added twice counts once, unless `key` distinguishes them. It belongs to the named owner, else to the owner of
        its session, else to the directory's scope. Raises `Refused` for a session of another owner.
        """
        from engram.gates.secrets.scan import refuse_secret

        if is_paused(self.store):
            raise Refused(PAUSED_MESSAGE)
        session = session or session_id
        refuse_secret(session, "the session's id")
        refuse_secret(source, "the source")
        owner = ledger_scope(self.store, session) if session and not (scope or agent_id or user_id) else ""
        wanted = owner or self._own_scope({"scope": scope, "agent_id": agent_id, "user_id": user_id})
        return self._conversations.add(
            user_message,
            assistant_response,
            scope=wanted,
            session=session or f"{CONVERSATION_PREFIX}{wanted}",
            extract_assistant_response=extract_assistant_response,
            source=source,
            key=key,
        )

    @bind_verb(work.EXTRACT)
    def extract(
        self, turns: Sequence[Mapping[str, Any]], *, extract_assistant_response: bool = False
    ) -> "list[ExtractedFact]":
        """The facts that would be stored from turns, {"role", "content"} each, with their source.

        Nothing is written.
        """
        from engram.capture.extraction import extract
        from engram.text.time.zone import in_zone

        at = in_zone(self._clock(), self.time_zone)
        return extract(turns, at=at, extract_assistant_response=extract_assistant_response)

    @bind_verb(work.HARVEST)
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
        """Propose the lasting facts that a person stated to their coding agents.

        Reads the harnesses' own stores, or `path`, and only what is new since the last harvest. `since` limits it to
        sessions active since then, `project` to those in a folder and below it. Proposals wait for review, with their
        turn as evidence. Waits up to a minute for another process that harvests. Raises `Refused` if that takes longer,
        and while Engram is paused.
        """
        from engram.capture.transcripts.harvest_run import (
            HarvestRun,
            HarvestSelection,
            harnesses_of,
            harvest_lock,
            harvest_spooled,
        )

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

    @bind_verb(work.HARVEST_SPOOLED)
    def harvest_spooled(self, *, seconds: float | None = None, progress: Progress | None = None) -> "HarvestReport":
        """Harvest only the sessions that hooks left in the spool, for about the given number of seconds.

        The rest keeps waiting.

        At least one is harvested, unless another process is harvesting; then none is. Raises `Refused` while Engram is
        paused.
        """
        from engram.capture.harvest import HarvestReport
        from engram.capture.transcripts.harvest_run import HarvestRun, harvest_lock, harvest_spooled
        from engram.store import hook_files

        harvester, root = self._harvester(dry_run=False), self._local_root()
        if not hook_files.count_waiting(root):
            return HarvestReport()
        with harvest_lock(root, seconds=0) as is_alone:
            if not is_alone:
                return HarvestReport(warnings=[ANOTHER_HARVEST])
            return harvest_spooled(HarvestRun(self.store, harvester, progress or (lambda *_: None)), root, seconds)

    def _local_root(self) -> Path:
        """The home with the hooks' files: the store's, or this user's if the store is on a server."""
        from engram.store.home import default_root, expanded

        return self.home.root if self.home is not None else expanded(default_root(), "the home").absolute()

    @bind_verb(work.IMPORT_CHATS)
    def import_chats(
        self,
        path: str | Path,
        *,
        format: Literal["", "chatgpt", "claude"] = "",  # noqa: A002
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> "HarvestReport":
        """Propose the lasting facts that a person stated to ChatGPT or Claude, from an export of their conversations.

        `path` is the downloaded zip, or its `conversations.json`. Only conversations and turns that were not imported
        before are read. Proposals wait for review, with their turn as evidence. Raises `NotFound`, `InvalidInput` or
        `StoreCorrupt` for anything but such an export, `Refused` while Engram is paused.
        """
        from engram.capture.transcripts.chat_import import ChatImport

        chats = ChatImport(self.store, self._harvester(dry_run), progress or (lambda *_: None))
        return chats.take(Path(path).absolute(), format)

    @bind_verb(store.IMPORT)
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
        """Import the memories of another tool, store or format. The report names every omitted record, with the reason.

        `format` is detected if not given. `mapping` maps fields to columns or keys (`{"statement": "text"}`). What a
        person imports (`actor="human"`) counts as evidence until they confirm it; `trusted` vouches for the whole file,
        which only a person can do. What anyone else imports waits for review, and so does everything with `candidates`.
        `packs` includes the packs of a PLUR directory. Raises `NotFound`, `InvalidInput` or `StoreError` for unreadable
        input, `Refused` for a file that is distrusted.
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
            self._scopes.scope() or "global",
            place.name,
            by_person,
            candidates or not by_person,
            trusted,
            self._gate_settings,
        )
        return importer.run(reading, progress or (lambda *_: None), dry_run=dry_run)

    def _harvester(self, dry_run: bool) -> "Harvester":
        from engram.capture.harvest import Harvester

        if is_paused(self.store):
            raise Refused(PAUSED_MESSAGE)
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
