"""`AsyncEngram` and its facets: opened, warmed and closed on threads; each call is the awaited synchronous one."""

import asyncio
import threading
from collections.abc import Callable
from functools import partial, wraps
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar, Unpack

from engram.aio.awaitable import AsyncResource, Opening, Threads, Twin, make_async
from engram.capture.enrichment import Enrichment
from engram.client import Engram
from engram.client.arguments import OpenOptions
from engram.graph.graph import Graph
from engram.model.errors import InvalidInput
from engram.model.lazy import cached_property
from engram.review.lineage import Lineages
from engram.review.review import Review
from engram.sessions.jobs import MAX_TRANSIENT_FAILURES, TRANSIENT_ERRORS, Jobs, WorkResult, add_jitter, pause_after
from engram.sessions.sessions import SessionHandle, Sessions
from engram.sessions.tasks import Tasks
from engram.upkeep.upkeep import Upkeep

if TYPE_CHECKING:
    from engram.gates.policies import MemoryPolicy
    from engram.llm.model import LanguageModel
    from engram.model.hit import Injection
    from engram.model.records import Session
    from engram.settings import Settings
    from engram.store.home import Home

P = ParamSpec("P")
JOBS_PER_CALL = 20
"""Maximum jobs run before a worker checks its stop event again."""


class AsyncSession(Twin[SessionHandle], AsyncResource):
    """A running session like `SessionHandle`, with awaited calls. `async with` ends it."""

    @property
    def id(self) -> str:
        """The session's id."""
        return self._target.id

    @property
    def session(self) -> "Session":
        """The session as it was last saved."""
        return self._target.session

    @property
    def injection(self) -> "Injection":
        """What the agent should know before it begins."""
        return self._target.injection

    observe = make_async(SessionHandle.observe)
    summarise = make_async(SessionHandle.summarise)
    feedback = make_async(SessionHandle.feedback)
    end = make_async(SessionHandle.end)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.session.ended is None:
            await self.end()


def make_session_opener(
    call: Callable[Concatenate[Any, P], SessionHandle],
) -> Callable[Concatenate[Any, P], Opening[AsyncSession]]:
    """A method that starts a session, to `await` or to enter with `async with`."""

    @wraps(call)
    def opening(self: Twin[Any], /, *args: P.args, **kwargs: P.kwargs) -> Opening[AsyncSession]:
        async def begin() -> AsyncSession:
            start: Callable[P, SessionHandle] = getattr(self._target, call.__name__)
            return AsyncSession(self._threads, await self._threads.run(start, *args, **kwargs))

        return Opening(begin)

    return opening


class AsyncLineages(Twin[Lineages]):
    """`mem.lineages`, awaited."""

    versions = make_async(Lineages.versions)
    current = make_async(Lineages.current)
    revise = make_async(Lineages.revise)
    forget = make_async(Lineages.forget)


class AsyncGraph(Twin[Graph]):
    """`mem.graph`, awaited."""

    relate = make_async(Graph.relate)
    unrelate = make_async(Graph.unrelate)
    traverse = make_async(Graph.traverse)
    traverse_many = make_async(Graph.traverse_many)
    render = make_async(Graph.render)


class AsyncTasks(Twin[Tasks]):
    """`mem.tasks`, awaited."""

    start = make_async(Tasks.start)
    get = make_async(Tasks.get)
    list = make_async(Tasks.list)
    move = make_async(Tasks.move)
    pause = make_async(Tasks.pause)
    resume = make_async(Tasks.resume)
    complete = make_async(Tasks.complete)
    fail = make_async(Tasks.fail)
    cancel = make_async(Tasks.cancel)
    delete = make_async(Tasks.delete)
    record_event = make_async(Tasks.record_event)
    record_events = make_async(Tasks.record_events)
    record_turn = make_async(Tasks.record_turn)
    events = make_async(Tasks.events)
    search_events = make_async(Tasks.search_events)
    checkpoint = make_async(Tasks.checkpoint)
    checkpoints = make_async(Tasks.checkpoints)
    idle_since = make_async(Tasks.idle_since)


class AsyncJobs(Twin[Jobs]):
    """`mem.jobs`, awaited; `run` uses a thread only while there is a job to run."""

    list = make_async(Jobs.list)
    retry = make_async(Jobs.retry)
    work = make_async(Jobs.work)

    async def run(
        self,
        stop: "threading.Event | asyncio.Event",
        idle_seconds: float = 1.0,
        report: "Callable[[WorkResult], None] | None" = None,
    ) -> None:
        """Work until `stop` is set; an `asyncio.Event` ends the wait at once, and so does cancelling the call.

        A store that is busy or unreachable is retried for about 15 minutes; `report` gets each result.
        """
        troubles = 0
        while not stop.is_set():
            try:
                worked = await self.work(JOBS_PER_CALL)
            except TRANSIENT_ERRORS:
                troubles += 1
                if troubles > MAX_TRANSIENT_FAILURES:
                    raise
                await _idle(stop, add_jitter(pause_after(troubles)))
                continue
            troubles = 0
            if worked and report is not None:
                report(worked)
            if not worked:
                await _idle(stop, add_jitter(idle_seconds))


async def _idle(stop: "threading.Event | asyncio.Event", seconds: float) -> None:
    if isinstance(stop, asyncio.Event):
        try:
            async with asyncio.timeout(seconds):
                await stop.wait()
        except TimeoutError:
            return
    else:
        await asyncio.sleep(seconds)


class AsyncEnrichment(Twin[Enrichment]):
    """`mem.enrichment`, awaited."""

    count = make_async(Enrichment.count)
    next_batch = make_async(Enrichment.next_batch)
    apply = make_async(Enrichment.apply)
    undo = make_async(Enrichment.undo)
    run = make_async(Enrichment.run)
    schedule = make_async(Enrichment.schedule)


class AsyncReview(Twin[Review]):
    """`mem.review`, awaited."""

    queue = make_async(Review.queue)
    candidates = make_async(Review.candidates)
    page = make_async(Review.page)
    provenance = make_async(Review.provenance)
    resolve = make_async(Review.resolve)
    approve = make_async(Review.approve)
    reject = make_async(Review.reject)
    retire = make_async(Review.retire)
    reinforce = make_async(Review.reinforce)
    edit = make_async(Review.edit)
    merge = make_async(Review.merge)
    separate = make_async(Review.separate)
    promote_all = make_async(Review.promote_all)
    reject_all = make_async(Review.reject_all)
    plan_promotion = make_async(Review.plan_promotion)
    promote_eligible = make_async(Review.promote_eligible)
    undo_bulk = make_async(Review.undo_bulk)
    undo_last = make_async(Review.undo_last)
    distrust = make_async(Review.distrust)
    restore_trust = make_async(Review.restore_trust)


class AsyncSessions(Twin[Sessions]):
    """`mem.sessions`, awaited."""

    start = make_session_opener(Sessions.start)
    get = make_async(Sessions.get)
    list = make_async(Sessions.list)
    events = make_async(Sessions.events)
    end = make_async(Sessions.end)
    summarise = make_async(Sessions.summarise)
    observe_batch = make_async(Sessions.observe_batch)


class AsyncUpkeep(Twin[Upkeep]):
    """`mem.upkeep`, awaited."""

    sync = make_async(Upkeep.sync)
    rebuild_index = make_async(Upkeep.rebuild_index)
    reembed = make_async(Upkeep.reembed)
    purge = make_async(Upkeep.purge)
    backup = make_async(Upkeep.backup)
    fold = make_async(Upkeep.fold)
    prune = make_async(Upkeep.prune)
    pause = make_async(Upkeep.pause)
    resume = make_async(Upkeep.resume)
    doctor = make_async(Upkeep.doctor)
    status = make_async(Upkeep.status)

    async def paused(self) -> bool:
        """Whether the owner has paused learning and injection; a property of the synchronous facet."""
        return await self._threads.run(lambda: self._target.paused)


T = TypeVar("T")
THREADS = 4
MAX_THREADS = 64
CLOSE_SECONDS = 30.0
"""How long closing waits for running calls."""


class AsyncEngram(Twin[Engram], AsyncResource):
    """An agent's memory for programs with an event loop: everything in `Engram`, under the same names, awaited.

    `async with AsyncEngram.open() as mem:` or `mem = await AsyncEngram.open()` and `await mem.close()`. Calls run on a few
    threads of the memory's own, so it serves any number of tasks and event loops. A cancelled call returns at once; its
    write is completed, or never started.
    """

    @classmethod
    def open(
        cls, home: str | Path | None = None, *, threads: int | None = None, **options: Unpack[OpenOptions]
    ) -> Opening[Self]:
        """Open a store as `Engram.open` does, with the same options; `threads` is how many calls may run at once."""
        size = THREADS if threads is None else threads
        if type(size) is not int or not 1 <= size <= MAX_THREADS:
            raise InvalidInput(f"threads {threads!r} must be a whole number from 1 to {MAX_THREADS}")
        return Opening(partial(cls._open_on_thread, size, home, options))

    @classmethod
    async def _open_on_thread(cls, size: int, home: str | Path | None, options: OpenOptions) -> Self:
        workers = Threads(size)
        opened: list[Engram] = []

        def work() -> None:
            opened.append(_warm(home, options))

        try:
            await workers.run(work)
        except Exception:
            await workers.close(partial(_close, opened), CLOSE_SECONDS)
            raise
        except BaseException:
            # The caller was cancelled, so the store is closed as soon as it is open.
            workers.end(partial(_close, opened))
            raise
        if opened[0].home is not None:
            workers.take_turns()  # files admit one call at a time; a server answers many at once
        return cls(workers, opened[0])

    async def close(self) -> None:
        """Wait for running calls, then close the store; an ephemeral one is removed. Closing again does nothing.

        Raises `StoreBusy` after 30 seconds; the store is closed when the running call ends.
        """
        await self._threads.close(self._target.close, CLOSE_SECONDS)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def run(self, function: Callable[Concatenate[Engram, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a function with the `Engram` behind this, on one of its threads: many calls for one wait."""
        return await self._threads.run(function, self._target, *args, **kwargs)

    # -- writing

    learn = make_async(Engram.learn)
    remember = make_async(Engram.remember)
    add = make_async(Engram.add)
    add_batch = make_async(Engram.add_batch)
    add_conversation = make_async(Engram.add_conversation)
    extract = make_async(Engram.extract)
    harvest = make_async(Engram.harvest)
    harvest_spooled = make_async(Engram.harvest_spooled)
    import_chats = make_async(Engram.import_chats)
    import_memories = make_async(Engram.import_memories)
    revise = make_async(Engram.revise)
    update = make_async(Engram.update)
    pin = make_async(Engram.pin)
    verify = make_async(Engram.verify)
    reinforce = make_async(Engram.reinforce)
    forget = make_async(Engram.forget)
    purge = make_async(Engram.purge)
    undo = make_async(Engram.undo)
    feedback = make_async(Engram.feedback)
    relate = make_async(Engram.relate)

    # -- reading

    get = make_async(Engram.get)
    list = make_async(Engram.list)
    get_memories = list
    list_recent = make_async(Engram.list_recent)
    timeline = make_async(Engram.timeline)
    search = make_async(Engram.search)
    deep_search = make_async(Engram.deep_search)
    recall = make_async(Engram.recall)
    recall_context = make_async(Engram.recall_context)
    prepare = make_async(Engram.prepare)
    recall_critical = make_async(Engram.recall_critical)
    trace_recall = make_async(Engram.trace_recall)
    get_context_block = make_async(Engram.get_context_block)
    inject = make_async(Engram.inject)
    history = make_async(Engram.history)
    get_current = make_async(Engram.get_current)
    lineage = make_async(Engram.lineage)
    get_lineage = lineage
    explain_memory = make_async(Engram.explain_memory)
    get_history = make_async(Engram.get_history)
    traverse = make_async(Engram.traverse)
    traverse_many = make_async(Engram.traverse_many)
    render_graph_context = make_async(Engram.render_graph_context)
    infer_scope = make_async(Engram.infer_scope)
    scope_here = make_async(Engram.scope_here)
    scope_notices = make_async(Engram.scope_notices)
    scope_for = make_async(Engram.scope_for)
    scopes_for = make_async(Engram.scopes_for)

    # -- sessions and tasks

    session = make_session_opener(Engram.session)
    observe = make_async(Engram.observe)
    observe_batch = make_async(Engram.observe_batch)
    capture = make_async(Engram.capture)
    flush_captures = make_async(Engram.flush_captures)
    read_due_captures = make_async(Engram.read_due_captures)
    start_task = make_async(Engram.start_task)
    get_task = make_async(Engram.get_task)
    list_tasks = make_async(Engram.list_tasks)
    pause_task = make_async(Engram.pause_task)
    resume_task = make_async(Engram.resume_task)
    complete_task = make_async(Engram.complete_task)
    fail_task = make_async(Engram.fail_task)
    cancel_task = make_async(Engram.cancel_task)
    soft_delete_task = make_async(Engram.soft_delete_task)
    record_event = make_async(Engram.record_event)
    record_turn = make_async(Engram.record_turn)
    list_events = make_async(Engram.list_events)
    search_events = make_async(Engram.search_events)
    create_checkpoint = make_async(Engram.create_checkpoint)
    build_context = make_async(Engram.build_context)
    process_memory_jobs = make_async(Engram.process_memory_jobs)

    # -- documents

    record_long_input = make_async(Engram.record_long_input)
    ingest = make_async(Engram.ingest)
    build_long_input_context = make_async(Engram.build_long_input_context)
    cite = make_async(Engram.cite)

    # -- upkeep

    doctor = make_async(Engram.doctor)
    gen_context = make_async(Engram.gen_context)
    context_text = make_async(Engram.context_text)
    health_check = make_async(Engram.health_check)
    rebuild_index = make_async(Engram.rebuild_index)

    # -- facets and values

    @property
    def lineages(self) -> AsyncLineages:
        """Facts that change: their versions, and the current one."""
        return AsyncLineages(self._threads, self._target.lineages)

    @property
    def graph(self) -> AsyncGraph:
        """Relations between memories."""
        return AsyncGraph(self._threads, self._target.graph)

    @property
    def tasks(self) -> AsyncTasks:
        """Work that outlives a conversation."""
        return AsyncTasks(self._threads, self._target.tasks)

    @property
    def jobs(self) -> AsyncJobs:
        """Background work on the ledgers."""
        return AsyncJobs(self._threads, self._target.jobs)

    @property
    def enrichment(self) -> AsyncEnrichment:
        """Cues for memories that have none."""
        return AsyncEnrichment(self._threads, self._target.enrichment)

    @property
    def review(self) -> AsyncReview:
        """What waits for review."""
        return AsyncReview(self._threads, self._target.review)

    @property
    def sessions(self) -> AsyncSessions:
        """Sessions and their ledgers."""
        return AsyncSessions(self._threads, self._target.sessions)

    @property
    def upkeep(self) -> AsyncUpkeep:
        """Doctor, backup, prune, index, pause."""
        return AsyncUpkeep(self._threads, self._target.upkeep)

    @property
    def settings(self) -> "Settings":
        """The settings it was opened with."""
        return self._target.settings

    @property
    def home(self) -> "Home | None":
        """The store's directory; None where memories are not files."""
        return self._target.home

    @property
    def directory(self) -> Path:
        """Where the agent works."""
        return self._target.directory

    @property
    def sees_whole_store(self) -> bool:
        """Whether a read without a scope covers the whole store."""
        return self._target.sees_whole_store

    @property
    def policy(self) -> "MemoryPolicy":
        """The policy that classifies memories before the gates."""
        return self._target.policy

    @property
    def model(self) -> "LanguageModel | None":
        """The configured language model, None if there is none. It blocks, so use it in `run`."""
        return self._target.model


def _close(opened: list[Engram]) -> None:
    for engram in opened:
        engram.close()


def _warm(home: str | Path | None, options: OpenOptions) -> Engram:
    """Open, and create every facet now, because on first use two threads could create one twice."""
    engram = Engram.open(home, **options)
    try:
        for kind in type(engram).__mro__:
            for name, part in vars(kind).items():
                if isinstance(part, cached_property):
                    getattr(engram, name)
    except BaseException:
        engram.close()
        raise
    return engram
