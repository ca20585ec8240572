"""The facets of `Engram`, awaited. Written by `python -m engram.aio.mirror`; change that, not this."""

# ruff: noqa: A002
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engram.aio.jobs import Worker
from engram.aio.session import beginning
from engram.aio.threads import Threads

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
    from datetime import datetime, timedelta
    from pathlib import Path

    from engram.aio.opening import Opening
    from engram.aio.session import AsyncSession
    from engram.graph.graph import Graph, ScopeLike, StatusLike
    from engram.graph.paths import Reached
    from engram.model.event import Event, Session
    from engram.model.hit import Hits
    from engram.model.memory import Memory
    from engram.model.task import Checkpoint, Job, TaskRun
    from engram.review.lineage import Lineages
    from engram.review.queue import Review, ReviewItem
    from engram.sessions.jobs import Jobs, Worked
    from engram.sessions.sessions import EventList, Scopes, SessionList, Sessions
    from engram.sessions.tasks import Checkpoints, Events, TaskRuns, Tasks
    from engram.store.protocol import Noticed, Pruned, Purged
    from engram.upkeep.upkeep import Upkeep


class AsyncLineages:
    """Reads and changes the versions of facts."""

    def __init__(self, threads: Threads, facet: Lineages) -> None:
        self._threads = threads
        self._facet = facet

    async def versions(self, ref: str, *, scopes: Collection[str] | None = None) -> list[Memory]:
        """Every version of a fact, oldest first; of one that never changed, itself.

        `scopes` are those its asker sees: a memory of another is not found, and neither are versions that were.
        """
        return await self._threads.run(self._facet.versions, ref, scopes=scopes)

    async def current(self, ref: str, *, scopes: Collection[str] | None = None) -> Memory:
        """The version in force, from the id of any version; the newest that was not forgotten, and is seen, where none is."""
        return await self._threads.run(self._facet.current, ref, scopes=scopes)

    async def revise(self, ref: str, *, actor: str = "manual", reason: str = "", **fields: Any) -> Memory:
        """A new version of a fact, made from the one in force, whichever version `ref` names."""
        return await self._threads.run(self._facet.revise, ref, actor=actor, reason=reason, **fields)

    async def forget(self, ref: str, *, actor: str = "manual", reason: str = "") -> Memory:
        """Retire a memory; of a fact with versions the newest survivor is in force again."""
        return await self._threads.run(self._facet.forget, ref, actor=actor, reason=reason)


class AsyncGraph:
    """`mem.graph`: typed, weighted relations between memories. Every call takes ids, names or aliases."""

    def __init__(self, threads: Threads, facet: Graph) -> None:
        self._threads = threads
        self._facet = facet

    async def relate(
        self,
        source: str,
        target: str,
        type: str = "related_to",
        *,
        weight: float = 1.0,
        metadata: Mapping[str, Any] | None = None,
        actor: str = "manual",
        reason: str = "",
    ) -> Memory:
        """Link `source` to `target`; returns the source with its links. Called again, it replaces the weight and metadata.

        The weight is what you give; how strongly a link is held is learned from use and stays as it is.
        """
        return await self._threads.run(
            self._facet.relate, source, target, type, weight=weight, metadata=metadata, actor=actor, reason=reason
        )

    async def unrelate(
        self, source: str, target: str, type: str | None = None, *, actor: str = "manual", reason: str = ""
    ) -> Memory:
        """Take relations from `source` to `target` back, of one type or all; returns the source. `NotFound` where there is none."""
        return await self._threads.run(self._facet.unrelate, source, target, type, actor=actor, reason=reason)

    async def traverse(
        self,
        start: str,
        *,
        max_depth: int = 3,
        direction: str = "outbound",
        types: str | Sequence[str] | None = None,
        min_weight: float = 0.0,
        limit: int = 50,
        status: StatusLike = ("active", "dormant"),
        scope: ScopeLike = None,
    ) -> list[Reached]:
        """What is linked to a memory, nearest first, then by weight; each once, by its shortest and then heaviest path.

        A walk passes only through memories of this status and scope, and begins at one that is seen from there. A superseded
        memory counts as its successor.
        """
        return await self._threads.run(
            self._facet.traverse,
            start,
            max_depth=max_depth,
            direction=direction,
            types=types,
            min_weight=min_weight,
            limit=limit,
            status=status,
            scope=scope,
        )

    async def traverse_many(
        self,
        seeds: Sequence[str],
        *,
        max_depth: int = 2,
        direction: str = "outbound",
        types: str | Sequence[str] | None = None,
        min_weight: float = 0.0,
        limit_per_seed: int = 25,
        total_limit: int = 100,
        status: StatusLike = ("active", "dormant"),
        scope: ScopeLike = None,
    ) -> list[Reached]:
        """The same from several memories. One that is reached from more than one comes once, by its best path.

        `Reached.seeds` says from which. A seed that another one leads to is among the answers.
        """
        return await self._threads.run(
            self._facet.traverse_many,
            seeds,
            max_depth=max_depth,
            direction=direction,
            types=types,
            min_weight=min_weight,
            limit_per_seed=limit_per_seed,
            total_limit=total_limit,
            status=status,
            scope=scope,
        )

    async def render(self, reached: Sequence[Reached], *, max_tokens: int | None = None) -> str:
        """The relations as lines for a prompt, nearest first, as many as fit: memories quoted as data, each text once."""
        return await self._threads.run(self._facet.render, reached, max_tokens=max_tokens)


class AsyncTasks:
    """Starts, moves and finds runs; writes their ledgers and checkpoints."""

    def __init__(self, threads: Threads, facet: Tasks) -> None:
        self._threads = threads
        self._facet = facet

    async def start(
        self, goal: str, *, scope: str = "global", session: str = "", metadata: Mapping[str, Any] | None = None
    ) -> TaskRun:
        """Begin a run."""
        return await self._threads.run(self._facet.start, goal, scope=scope, session=session, metadata=metadata)

    async def get(self, task_id: str, *, scopes: Scopes = None) -> TaskRun:
        """A run by id. `scopes` are those its asker sees: a run of another is not found."""
        return await self._threads.run(self._facet.get, task_id, scopes=scopes)

    async def list(
        self, status: str | Sequence[str] | None = None, limit: int | None = 50, *, scopes: Scopes = None
    ) -> TaskRuns:
        """Runs, newest first; deleted ones only when asked for. Everyone's, or those of these scopes."""
        return await self._threads.run(self._facet.list, status, limit, scopes=scopes)

    async def move(self, task_id: str, state: str, outcome: str = "") -> TaskRun:
        """Put a run into another state; what may not follow on its present one is refused."""
        return await self._threads.run(self._facet.move, task_id, state, outcome)

    async def pause(self, task_id: str, reason: str = "") -> TaskRun:
        """Let a run rest."""
        return await self._threads.run(self._facet.pause, task_id, reason)

    async def resume(self, task_id: str) -> TaskRun:
        """Take a run up again: a paused, failed or cancelled one; one whose process died is running still."""
        return await self._threads.run(self._facet.resume, task_id)

    async def complete(self, task_id: str, outcome: str = "") -> TaskRun:
        """A run that reached its goal; its ledger is closed."""
        return await self._threads.run(self._facet.complete, task_id, outcome)

    async def fail(self, task_id: str, reason: str = "") -> TaskRun:
        """A run that did not; it can be resumed."""
        return await self._threads.run(self._facet.fail, task_id, reason)

    async def cancel(self, task_id: str, reason: str = "") -> TaskRun:
        """A run nobody wants any more."""
        return await self._threads.run(self._facet.cancel, task_id, reason)

    async def delete(self, task_id: str) -> TaskRun:
        """Take a run out of the lists. Its ledger stays; `purge` destroys events."""
        return await self._threads.run(self._facet.delete, task_id)

    async def record_event(self, task_id: str, role: str, content: str, **fields: Any) -> Event:
        """Append one event: what was said, called, answered, seen or made."""
        return await self._threads.run(self._facet.record_event, task_id, role, content, **fields)

    async def record_turn(
        self,
        task_id: str,
        user: str = "",
        assistant: str = "",
        *,
        tool_calls: Iterable[Mapping[str, Any]] = (),
        artifacts: Iterable[Mapping[str, Any]] = (),
        derive: bool = True,
        key: str = "",
    ) -> Events:
        """A whole turn, at once or not at all: the request, the calls with their results, the answer, what was made.

        A tool call is {"name", "arguments", "result" or "error"}; an artifact {"name", "content"}. With `derive`, facts are
        drawn from it later, by whoever works the jobs. With a `key`, a repeated turn is the same turn.
        """
        return await self._threads.run(
            self._facet.record_turn,
            task_id,
            user,
            assistant,
            tool_calls=tool_calls,
            artifacts=artifacts,
            derive=derive,
            key=key,
        )

    async def events(self, task_id: str, *, last: int | None = None, after: int = 0, scopes: Scopes = None) -> Events:
        """A run's events in order: all, those after a number, or the last so many."""
        return await self._threads.run(self._facet.events, task_id, last=last, after=after, scopes=scopes)

    async def search_events(
        self,
        query: str,
        *,
        task: str = "",
        event_types: str | Sequence[str] | None = None,
        roles: str | Sequence[str] | None = None,
        since: datetime | str | None = None,
        until: datetime | str | None = None,
        mode: str = "hybrid",
        limit: int = 10,
        scopes: Scopes = None,
    ) -> Hits:
        """Find events of a run, or of every ledger; everyone's, or those of these scopes."""
        return await self._threads.run(
            self._facet.search_events,
            query,
            task=task,
            event_types=event_types,
            roles=roles,
            since=since,
            until=until,
            mode=mode,
            limit=limit,
            scopes=scopes,
        )

    async def checkpoint(
        self,
        task_id: str,
        summary: str,
        *,
        source_event_ids: Iterable[str] = (),
        kind: str = "progress",
        data: Mapping[str, Any] | None = None,
        **steps: Iterable[str],
    ) -> Checkpoint:
        """Note where a run stands: completed_steps, pending_steps, decisions, blockers and artifacts are lists of lines."""
        return await self._threads.run(
            self._facet.checkpoint, task_id, summary, source_event_ids=source_event_ids, kind=kind, data=data, **steps
        )

    async def checkpoints(self, task_id: str, limit: int | None = None, *, scopes: Scopes = None) -> Checkpoints:
        """A run's checkpoints, newest first."""
        return await self._threads.run(self._facet.checkpoints, task_id, limit, scopes=scopes)

    async def idle_since(self, task: TaskRun | str, *, scopes: Scopes = None) -> timedelta:
        """How long a run has been silent: a long silence of a running one means that its process went away."""
        return await self._threads.run(self._facet.idle_since, task, scopes=scopes)


class AsyncJobs(Worker):
    """`mem.jobs`: what waits, and doing it."""

    def __init__(self, threads: Threads, facet: Jobs) -> None:
        self._threads = threads
        self._facet = facet

    async def list(
        self, status: str | None = None, limit: int | None = 100, *, scopes: Collection[str] | None = None
    ) -> list[Job]:
        """Jobs that are not done, oldest first: waiting, leased or dead; everyone's, or those about ledgers of these scopes."""
        return await self._threads.run(self._facet.list, status, limit, scopes=scopes)

    async def retry(self, job_id: str) -> Job:
        """Let a dead job try again from the start."""
        return await self._threads.run(self._facet.retry, job_id)

    async def work(self, limit: int = 100) -> Worked:
        """Do the jobs that are due now, at most so many, one after the other."""
        return await self._threads.run(self._facet.work, limit)


class AsyncReview:
    """`mem.review`: list what waits, decide it."""

    def __init__(self, threads: Threads, facet: Review) -> None:
        self._threads = threads
        self._facet = facet

    async def queue(
        self, limit: int | None = 50, *, about: str = "", scopes: Collection[str] | None = None
    ) -> list[ReviewItem]:
        """Contradictions first, then other candidates, then memories that faded to the point of retirement.

        `about` keeps only the items that concern one memory, before `limit` cuts. Everyone's, or those of these scopes.
        """
        return await self._threads.run(self._facet.queue, limit, about=about, scopes=scopes)

    async def resolve(
        self, ref: str, keep: str, *, statement: str = "", situations: tuple[str, str] = ("", ""), actor: str = "manual"
    ) -> Memory:
        """Settle a contradiction: keep `new` or `old`, `merge` both into `statement`, or let `both` stand in their situations."""
        return await self._threads.run(
            self._facet.resolve, ref, keep, statement=statement, situations=situations, actor=actor
        )

    async def approve(self, ref: str, *, actor: str = "manual") -> Memory:
        """A candidate becomes active. One that contradicts a memory in force is resolved, not approved."""
        return await self._threads.run(self._facet.approve, ref, actor=actor)

    async def reject(self, ref: str, *, actor: str = "manual", reason: str = "") -> Memory:
        """A candidate is turned down; it stays readable."""
        return await self._threads.run(self._facet.reject, ref, actor=actor, reason=reason)

    async def retire(self, ref: str, *, actor: str = "manual") -> Memory:
        """Let a memory go; it stays readable."""
        return await self._threads.run(self._facet.retire, ref, actor=actor)

    async def reinforce(self, ref: str, *, boost: float = 0.1, actor: str = "manual") -> Memory:
        """Confirm that a memory still serves: `boost`, above 0 and up to 1, is added to its strength."""
        return await self._threads.run(self._facet.reinforce, ref, boost=boost, actor=actor)


class AsyncSessions:
    """Starts, finds and ends sessions; appends to their ledgers."""

    def __init__(self, threads: Threads, facet: Sessions) -> None:
        self._threads = threads
        self._facet = facet

    def start(self, task: str, scopes: tuple[str, ...], budget: int | None = None) -> Opening[AsyncSession]:
        """Begin a session and choose its injection."""
        return beginning(self._threads, self._facet.start, task, scopes, budget)

    async def get(self, session_id: str, *, scopes: Scopes = None) -> Session:
        """A session by id. `scopes` are those its asker sees: a session of another is not found."""
        return await self._threads.run(self._facet.get, session_id, scopes=scopes)

    async def list(self, limit: int | None = 50, *, scopes: Scopes = None) -> SessionList:
        """Sessions, newest first: everyone's, or those of these scopes."""
        return await self._threads.run(self._facet.list, limit, scopes=scopes)

    async def events(
        self, session_id: str, *, last: int | None = None, after: int = 0, scopes: Scopes = None
    ) -> EventList:
        """A session's events in order: all, those after a number, or the last so many. A name of your own is a session, too."""
        return await self._threads.run(self._facet.events, session_id, last=last, after=after, scopes=scopes)

    async def end(self, session_id: str, summary: str = "", *, scopes: Scopes = None) -> Session:
        """End a session: uses are folded in, what was injected together grows together. Ending twice changes nothing."""
        return await self._threads.run(self._facet.end, session_id, summary, scopes=scopes)

    async def summarise(
        self, session_id: str, *, style: str = "", max_tokens: int = 400, scopes: Scopes = None
    ) -> Session:
        """Fold what was said since into the session's rolling summary: extracts by rules, or a model's words.

        Styles: `plain`, and `structured` with Goal, Constraints, Progress, Decisions, Next steps and Critical context.
        """
        return await self._threads.run(
            self._facet.summarise, session_id, style=style, max_tokens=max_tokens, scopes=scopes
        )

    async def observe_batch(self, session_id: str, items: Iterable[Mapping[str, Any]], *, scope: str = "") -> EventList:
        """Append events; secrets in them are redacted before anything touches the disk.

        `scope` is the writer's: a name of your own becomes a session of that scope, and one of another scope is `Refused`.
        """
        return await self._threads.run(self._facet.observe_batch, session_id, items, scope=scope)


class AsyncUpkeep:
    """Index, backup, pruning, pause, and the doctor."""

    def __init__(self, threads: Threads, facet: Upkeep) -> None:
        self._threads = threads
        self._facet = facet

    async def sync(self) -> Noticed:
        """Take in every change made to the files by hand."""
        return await self._threads.run(self._facet.sync)

    async def rebuild_index(self, progress: Callable[[str, int, int], None] | None = None) -> Noticed:
        """Make the index anew from the files."""
        return await self._threads.run(self._facet.rebuild_index, progress)

    async def reembed(self, progress: Callable[[str, int, int], None] | None = None) -> int:
        """Make all vectors with the configured embedder."""
        return await self._threads.run(self._facet.reembed, progress)

    async def purge(self, ids: Sequence[str], *, actor: str = "human") -> Purged:
        """Destroy memories and events, and prove it. A fact's newest survivor is in force again.

        The words of a memory go wherever they stand, the events that say them included. An event takes the facts with it that
        rest on it alone; who says the same words independently keeps them, and `remaining` names those events and memories.
        """
        return await self._threads.run(self._facet.purge, ids, actor=actor)

    async def backup(self, target: str | Path) -> dict[str, int]:
        """Write the whole store to one archive."""
        return await self._threads.run(self._facet.backup, target)

    async def fold(self) -> list[str]:
        """Fold every use not yet folded in; sessions that never ended leave some."""
        return await self._threads.run(self._facet.fold)

    async def prune(self, *, dry_run: bool = True) -> Pruned:
        """Let go of history older than the settings keep; a dry run only says what would go."""
        return await self._threads.run(self._facet.prune, dry_run=dry_run)

    @property
    def paused(self) -> Awaitable[bool]:
        """Whether the owner has paused learning and injection."""
        return self._threads.run(lambda: self._facet.paused)

    async def pause(self) -> None:
        """Stop learning and injecting until `resume`; reading and the owner's own verbs go on."""
        return await self._threads.run(self._facet.pause)

    async def resume(self) -> None:
        """End a pause."""
        return await self._threads.run(self._facet.resume)

    async def doctor(self) -> dict[str, Any]:
        """What is healthy and what is not, with what to do."""
        return await self._threads.run(self._facet.doctor)

    async def status(self) -> dict[str, Any]:
        """What the store holds, what was injected last and how to stop one item."""
        return await self._threads.run(self._facet.status)
