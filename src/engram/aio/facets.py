"""The facets of `AsyncEngram`: each call of the synchronous facet, awaited."""

import asyncio
import threading
from collections.abc import Callable
from functools import wraps
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec

from engram.aio.awaitable import AsyncResource, Opening, Twin, make_async
from engram.capture.enrichment import Enrichment
from engram.graph.graph import Graph
from engram.review.lineage import Lineages
from engram.review.review import Review
from engram.sessions.jobs import MAX_TRANSIENT_FAILURES, TRANSIENT_ERRORS, Jobs, WorkResult, add_jitter, pause_after
from engram.sessions.sessions import SessionHandle, Sessions
from engram.sessions.tasks import Tasks
from engram.upkeep.upkeep import Upkeep

if TYPE_CHECKING:
    from engram.model.event import Session
    from engram.model.hit import Injection

P = ParamSpec("P")
JOBS_PER_CALL = 20
"""Jobs run before a worker checks its stop event again."""


class AsyncSession(Twin[SessionHandle], AsyncResource):
    """A running session as `SessionHandle` has it, its calls awaited. `async with` ends it."""

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
    """A method that starts a session, as one to `await` or to enter with `async with`."""

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
