"""The facets of `AsyncEngram`: each call of the synchronous facet, awaited."""

import asyncio
import threading
from collections.abc import Callable
from functools import wraps
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec

from engram.aio.awaitable import Opened, Opening, Twin, awaited
from engram.capture.enrichment import Enrichment
from engram.graph.graph import Graph
from engram.review.lineage import Lineages
from engram.review.review import Review
from engram.sessions.jobs import MOST_TROUBLES, PASSING, Jobs, Worked, jittered, pause_after
from engram.sessions.sessions import SessionHandle, Sessions
from engram.sessions.tasks import Tasks
from engram.upkeep.upkeep import Upkeep

if TYPE_CHECKING:
    from engram.model.event import Session
    from engram.model.hit import Injection

P = ParamSpec("P")
BATCH = 20
"""Jobs run before a worker checks its stop event again."""


class AsyncSession(Twin[SessionHandle], Opened):
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

    observe = awaited(SessionHandle.observe)
    summarise = awaited(SessionHandle.summarise)
    feedback = awaited(SessionHandle.feedback)
    end = awaited(SessionHandle.end)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.session.ended is None:
            await self.end()


def entered(
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

    versions = awaited(Lineages.versions)
    current = awaited(Lineages.current)
    revise = awaited(Lineages.revise)
    forget = awaited(Lineages.forget)


class AsyncGraph(Twin[Graph]):
    """`mem.graph`, awaited."""

    relate = awaited(Graph.relate)
    unrelate = awaited(Graph.unrelate)
    traverse = awaited(Graph.traverse)
    traverse_many = awaited(Graph.traverse_many)
    render = awaited(Graph.render)


class AsyncTasks(Twin[Tasks]):
    """`mem.tasks`, awaited."""

    start = awaited(Tasks.start)
    get = awaited(Tasks.get)
    list = awaited(Tasks.list)
    move = awaited(Tasks.move)
    pause = awaited(Tasks.pause)
    resume = awaited(Tasks.resume)
    complete = awaited(Tasks.complete)
    fail = awaited(Tasks.fail)
    cancel = awaited(Tasks.cancel)
    delete = awaited(Tasks.delete)
    record_event = awaited(Tasks.record_event)
    record_events = awaited(Tasks.record_events)
    record_turn = awaited(Tasks.record_turn)
    events = awaited(Tasks.events)
    search_events = awaited(Tasks.search_events)
    checkpoint = awaited(Tasks.checkpoint)
    checkpoints = awaited(Tasks.checkpoints)
    idle_since = awaited(Tasks.idle_since)


class AsyncJobs(Twin[Jobs]):
    """`mem.jobs`, awaited; `run` uses a thread only while there is a job to run."""

    list = awaited(Jobs.list)
    retry = awaited(Jobs.retry)
    work = awaited(Jobs.work)

    async def run(
        self,
        stop: "threading.Event | asyncio.Event",
        idle_seconds: float = 1.0,
        report: "Callable[[Worked], None] | None" = None,
    ) -> None:
        """Work until `stop` is set; an `asyncio.Event` ends the wait at once, and so does cancelling the call.

        A store that is busy or unreachable is retried for about 15 minutes; `report` gets each result.
        """
        troubles = 0
        while not stop.is_set():
            try:
                worked = await self.work(BATCH)
            except PASSING:
                troubles += 1
                if troubles > MOST_TROUBLES:
                    raise
                await _idle(stop, jittered(pause_after(troubles)))
                continue
            troubles = 0
            if worked and report is not None:
                report(worked)
            if not worked:
                await _idle(stop, jittered(idle_seconds))


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

    count = awaited(Enrichment.count)
    next_batch = awaited(Enrichment.next_batch)
    apply = awaited(Enrichment.apply)
    undo = awaited(Enrichment.undo)
    run = awaited(Enrichment.run)
    schedule = awaited(Enrichment.schedule)


class AsyncReview(Twin[Review]):
    """`mem.review`, awaited."""

    queue = awaited(Review.queue)
    candidates = awaited(Review.candidates)
    page = awaited(Review.page)
    provenance = awaited(Review.provenance)
    resolve = awaited(Review.resolve)
    approve = awaited(Review.approve)
    reject = awaited(Review.reject)
    retire = awaited(Review.retire)
    reinforce = awaited(Review.reinforce)
    edit = awaited(Review.edit)
    merge = awaited(Review.merge)
    separate = awaited(Review.separate)
    promote_all = awaited(Review.promote_all)
    reject_all = awaited(Review.reject_all)
    plan_promotion = awaited(Review.plan_promotion)
    promote_eligible = awaited(Review.promote_eligible)
    undo_bulk = awaited(Review.undo_bulk)
    undo_last = awaited(Review.undo_last)
    distrust = awaited(Review.distrust)
    restore_trust = awaited(Review.restore_trust)


class AsyncSessions(Twin[Sessions]):
    """`mem.sessions`, awaited."""

    start = entered(Sessions.start)
    get = awaited(Sessions.get)
    list = awaited(Sessions.list)
    events = awaited(Sessions.events)
    end = awaited(Sessions.end)
    summarise = awaited(Sessions.summarise)
    observe_batch = awaited(Sessions.observe_batch)


class AsyncUpkeep(Twin[Upkeep]):
    """`mem.upkeep`, awaited."""

    sync = awaited(Upkeep.sync)
    rebuild_index = awaited(Upkeep.rebuild_index)
    reembed = awaited(Upkeep.reembed)
    purge = awaited(Upkeep.purge)
    backup = awaited(Upkeep.backup)
    fold = awaited(Upkeep.fold)
    prune = awaited(Upkeep.prune)
    pause = awaited(Upkeep.pause)
    resume = awaited(Upkeep.resume)
    doctor = awaited(Upkeep.doctor)
    status = awaited(Upkeep.status)

    async def paused(self) -> bool:
        """Whether the owner has paused learning and injection; a property of the synchronous facet."""
        return await self._threads.run(lambda: self._target.paused)
