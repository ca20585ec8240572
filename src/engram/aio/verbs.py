"""Every call of `Engram`, awaited. Written by `python -m engram.aio.mirror`; change that, not this."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

from engram.aio.facets import AsyncGraph, AsyncJobs, AsyncLineages, AsyncReview, AsyncSessions, AsyncTasks, AsyncUpkeep
from engram.aio.opening import Opened
from engram.aio.session import beginning
from engram.aio.threads import Threads

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from datetime import datetime
    from pathlib import Path
    from typing import Self, Unpack

    from engram.aio.opening import Opening
    from engram.aio.session import AsyncSession
    from engram.capture.conversation import Conversation
    from engram.capture.extraction import Extracted
    from engram.capture.longinput.citing import Citation, LongInputContext
    from engram.capture.longinput.recording import LongInput
    from engram.client import Engram
    from engram.client.naming import Owner
    from engram.client.reading import Images, Memories, Reaches
    from engram.client.working import Events, LongInputs, TaskRuns
    from engram.gates.policies import MemoryPolicy
    from engram.graph.reaching import Reached
    from engram.model.decision import Decision
    from engram.model.event import Event
    from engram.model.hit import Hits, Injection
    from engram.model.memory import Memory
    from engram.model.task import Checkpoint, TaskRun
    from engram.recall.blocks import RecallTrace
    from engram.recall.filters import ScopeLike
    from engram.recall.recaller import Recall
    from engram.review.explaining import Explanation
    from engram.sessions.context import TaskContext
    from engram.sessions.jobs import Worked
    from engram.store.protocol import Purged


class Verbs(Opened):
    """The calls and facets of an asynchronous memory."""

    _threads: Threads
    _engram: Engram

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
        policy: str | MemoryPolicy = "",
        clock: Callable[[], datetime] | None = None,
        threads: int | None = None,
    ) -> Opening[Self]:
        """Open a store, making it where there is none.

        `home` is a directory of files, `url` a Postgres server (with `tenant`, whose memories nobody else's are); with neither,
        `$ENGRAM_URL` and `$ENGRAM_TENANT` are looked at, then the usual directory. `ephemeral=True` is a store in a temporary
        directory that goes when it is closed, for tests. `directory` is where the agent works: its repository's team store, if
        trusted, is part of what is searched. `embedder` and `policy` override the settings; a policy is a name or your own.
        `threads` is how many calls may be under way at once.
        """
        return cls._opening(
            threads,
            home,
            url=url,
            tenant=tenant,
            cache=cache,
            ephemeral=ephemeral,
            create=create,
            directory=directory,
            embedder=embedder,
            policy=policy,
            clock=clock,
        )

    @classmethod
    @abstractmethod
    def _opening(cls, threads: int | None, *args: Any, **kwargs: Any) -> Opening[Self]: ...

    async def learn(
        self, statement: str = "", *, source: str = "agent", session: str = "", autonomous: bool = False, **fields: Any
    ) -> Decision:
        """Propose a memory to the gates. `autonomous` marks what nobody asked to keep: the quality gates then apply too."""
        return await self._threads.run(
            self._engram.learn, statement, source=source, session=session, autonomous=autonomous, **fields
        )

    async def remember(
        self, statement: str = "", *, source: str = "human", session: str = "", **fields: Any
    ) -> Decision:
        """Keep a person's own word."""
        return await self._threads.run(self._engram.remember, statement, source=source, session=session, **fields)

    async def add(self, statement: str = "", *, source: str = "manual", team: bool = False, **fields: Any) -> Memory:
        """Store what a trusted program says. An exact duplicate returns the existing memory; a secret raises `SecretRefused`.

        `team=True` writes it to the repository of the directory this was opened for, to be committed with the code.
        """
        return await self._threads.run(self._engram.add, statement, source=source, team=team, **fields)

    async def add_batch(
        self,
        items: Sequence[Mapping[str, Any]],
        *,
        source: str = "manual",
        progress: Callable[[int, int], None] | None = None,
    ) -> Memories:
        """Store many at once, durably. Every item is checked before the first is written."""
        return await self._threads.run(self._engram.add_batch, items, source=source, progress=progress)

    async def add_conversation(
        self,
        user_message: str,
        assistant_response: str = "",
        *,
        scope: str = "",
        agent_id: str | None = None,
        user_id: str | None = None,
        session: str = "",
        extract_assistant_response: bool = False,
        source: str = "agent",
        key: str = "",
    ) -> Conversation:
        """Keep an exchange in its session's ledger and remember what lasts of it.

        The answer is the list of memories written; its `decisions` tell of every fact, taken or not: ADD, UPDATE, SUPERSEDE or
        NOOP, and why. Where a model is configured and fails, `pending` is true and a job asks it again. The same exchange
        added twice is one, unless `key` tells them apart. It belongs to the owner named, else to whom its session belongs to,
        else to the directory's scope; a session of another owner is `Refused`.
        """
        return await self._threads.run(
            self._engram.add_conversation,
            user_message,
            assistant_response,
            scope=scope,
            agent_id=agent_id,
            user_id=user_id,
            session=session,
            extract_assistant_response=extract_assistant_response,
            source=source,
            key=key,
        )

    async def extract(
        self, turns: Sequence[Mapping[str, Any]], *, extract_assistant_response: bool = False
    ) -> list[Extracted]:
        """What would be remembered of turns, {"role", "content"} each, with where it was said; nothing is written."""
        return await self._threads.run(
            self._engram.extract, turns, extract_assistant_response=extract_assistant_response
        )

    async def revise(self, ref: str, *, actor: str = "manual", reason: str = "", **fields: Any) -> Memory:
        """A new version of a fact; the one before is superseded and stays readable."""
        return await self._threads.run(self._engram.revise, ref, actor=actor, reason=reason, **fields)

    async def update(self, ref: str, *, actor: str = "manual", reason: str = "", **fields: Any) -> Memory:
        """Change fields of a memory in place."""
        return await self._threads.run(self._engram.update, ref, actor=actor, reason=reason, **fields)

    async def pin(self, ref: str, pinned: bool = True, *, actor: str = "manual") -> Memory:
        """A pinned memory never sinks, and is offered first."""
        return await self._threads.run(self._engram.pin, ref, pinned, actor=actor)

    async def verify(self, ref: str, *, actor: str = "manual") -> Memory:
        """Confirm that a memory is still true: it is reinforced, and fresh again. Only a person's word marks it confirmed."""
        return await self._threads.run(self._engram.verify, ref, actor=actor)

    async def reinforce(self, ref: str, *, boost: float = 0.1, actor: str = "manual") -> Memory:
        """Strengthen a memory by hand: `boost`, above 0 and up to 1, is added to how readily it comes to mind."""
        return await self._threads.run(self._engram.reinforce, ref, boost=boost, actor=actor)

    async def forget(
        self, ref: str, *, purge: bool = False, actor: str = "manual", reason: str = ""
    ) -> Memory | Purged:
        """Retire a memory, and return it: it is out of every answer and stays readable.

        `purge=True` destroys it instead, and returns the proof, a `Purged`: what went, what is left, what is out of reach.
        """
        return await self._threads.run(self._engram.forget, ref, purge=purge, actor=actor, reason=reason)

    async def purge(
        self, scope: str = "", *, agent_id: str | None = None, user_id: str | None = None, actor: str = "manual"
    ) -> Purged:
        """Destroy everything of a scope, or of an owner, and of the scopes below it: memories, and what was said in its
        sessions and tasks. It cannot be undone; the answer proves it, and names what is still left or out of reach.

        `forget(ref, purge=True)` destroys a single memory.
        """
        return await self._threads.run(self._engram.purge, scope, agent_id=agent_id, user_id=user_id, actor=actor)

    async def undo(self, ref: str, *, actor: str = "manual") -> Memory:
        """Take the last decision about a memory back."""
        return await self._threads.run(self._engram.undo, ref, actor=actor)

    async def feedback(self, ref: str, signal: str, *, session: str = "") -> Memory:
        """Rate a memory: positive, negative or neutral."""
        return await self._threads.run(self._engram.feedback, ref, signal, session=session)

    async def relate(
        self,
        source: str,
        target: str,
        relation_type: str = "related_to",
        weight: float = 1.0,
        metadata: Mapping[str, Any] | None = None,
        *,
        actor: str = "manual",
        reason: str = "",
    ) -> Memory:
        """Tie one memory to another by a named relation with a weight; doing it again sets the weight anew."""
        return await self._threads.run(
            self._engram.relate, source, target, relation_type, weight, metadata, actor=actor, reason=reason
        )

    async def scope_here(self) -> str:
        """The scope of the directory this was opened for; `global` outside of any repository."""
        return await self._threads.run(self._engram.scope_here)

    async def list(self, *, limit: int | None = 100, offset: int = 0, **filters: Any) -> Memories:
        """Memories, newest first. Takes the filters of `search`; `limit=None` lists all."""
        return await self._threads.run(self._engram.list, limit=limit, offset=offset, **filters)

    async def get_memories(self, *, limit: int | None = 100, offset: int = 0, **filters: Any) -> Memories:
        """Memories, newest first: `list` under the name spec 2 has for it."""
        return await self._threads.run(self._engram.get_memories, limit=limit, offset=offset, **filters)

    async def search(
        self,
        query: str,
        *,
        limit: int = 10,
        mode: str = "hybrid",
        fusion: str | None = None,
        explain: bool = False,
        min_relevance: float = 0.0,
        min_score: float = 0.0,
        include_superseded: bool = False,
        **filters: Any,
    ) -> Hits:
        """Find documents. `scope=None` means everything this store holds.

        Filters, all before the cut: kinds, scope (or agent_id and user_id), types, status, tags, domain (with its descendants),
        since, until, as_of, known_at, metadata, session, roles, critical. Modes: hybrid, semantic, keyword. `explain=True`
        fills each hit's trace. `min_relevance` (0 to 1) leaves out what is less likely about the query, before the limit cuts; 0
        returns what ranks best. `min_score` leaves out weaker hits; the scale of scores is each search's own.
        """
        return await self._threads.run(
            self._engram.search,
            query,
            limit=limit,
            mode=mode,
            fusion=fusion,
            explain=explain,
            min_relevance=min_relevance,
            min_score=min_score,
            include_superseded=include_superseded,
            **filters,
        )

    async def deep_search(
        self,
        query: str,
        *,
        n_queries: int = 4,
        limit: int = 10,
        mode: str = "hybrid",
        fusion: str | None = None,
        explain: bool = False,
        min_relevance: float = 0.0,
        min_score: float = 0.0,
        include_superseded: bool = False,
        **filters: Any,
    ) -> Hits:
        """Search several wordings of a broad question at once, fused by reciprocal rank. Takes the filters of `search`."""
        return await self._threads.run(
            self._engram.deep_search,
            query,
            n_queries=n_queries,
            limit=limit,
            mode=mode,
            fusion=fusion,
            explain=explain,
            min_relevance=min_relevance,
            min_score=min_score,
            include_superseded=include_superseded,
            **filters,
        )

    async def recall(
        self,
        question: str,
        *,
        question_date: datetime | str | None = None,
        scope: ScopeLike = None,
        limit: int = 10,
        session: str = "",
        mode: str = "hybrid",
        fusion: str | None = None,
        explain: bool = False,
        compose_answer: bool = False,
        min_relevance: float = 0.08,
        **filters: Any,
    ) -> Recall:
        """Answer a question from what this directory, its user and everyone know; the memories returned grow stronger by it.

        What it asks for decides where it is searched for: what holds, what held, the ledger, or every version of a fact; a
        time phrase, counted from `question_date` or now, is a window. `Recall.intent` and `.window` say what was understood.
        `compose_answer` puts what was found into `Recall.answer`, each sentence with the ids it rests on: in a model's words
        where there is a model, else in the memories' own. `agent_id` and `user_id` (or `scope`) name who asks: nothing that
        is another's answers, neither memories nor what was said. With `explain` each hit has the parts of its score and
        `Recall.trace` tells how the answer came about; the answer is the same.

        Hits less likely about the question than `min_relevance` (0 to 1) are no answer, and of a question for one thing those
        less than half as likely as the best are not either. Where none is left, nothing is known: `hits` is empty, `text` says so,
        and `Recall.nearest` has what comes nearest. 0 returns whatever ranks best.
        """
        return await self._threads.run(
            self._engram.recall,
            question,
            question_date=question_date,
            scope=scope,
            limit=limit,
            session=session,
            mode=mode,
            fusion=fusion,
            explain=explain,
            compose_answer=compose_answer,
            min_relevance=min_relevance,
            **filters,
        )

    async def recall_critical(
        self,
        *,
        scope: ScopeLike = None,
        agent_id: str | None = None,
        user_id: str | None = None,
        types: Sequence[str] | str | None = None,
        limit: int | None = 50,
    ) -> Memories:
        """What a policy put into critical slots, newest first: looked up, never searched for."""
        return await self._threads.run(
            self._engram.recall_critical, scope=scope, agent_id=agent_id, user_id=user_id, types=types, limit=limit
        )

    async def trace_recall(
        self,
        query: str,
        *,
        max_tokens: int = 2000,
        expected_terms: Sequence[str] = (),
        question_date: datetime | str | None = None,
        scope: ScopeLike = None,
        limit: int = 10,
        mode: str = "hybrid",
        fusion: str | None = None,
        compose_answer: bool = False,
        min_relevance: float = 0.08,
        **filters: Any,
    ) -> RecallTrace:
        """What `recall` answers, with the account of it; no use is noted.

        `RecallTrace.recall` is the answer, `recall.trace` how it came about. `kept` and `trimmed` say what of it fits into
        `max_tokens`, `superseded` what matches and is no longer current, `missing_expected_terms` what the text lacks.
        """
        return await self._threads.run(
            self._engram.trace_recall,
            query,
            max_tokens=max_tokens,
            expected_terms=expected_terms,
            question_date=question_date,
            scope=scope,
            limit=limit,
            mode=mode,
            fusion=fusion,
            compose_answer=compose_answer,
            min_relevance=min_relevance,
            **filters,
        )

    async def get_context_block(
        self,
        query: str,
        *,
        max_tokens: int = 2000,
        header: str = "",
        group_by_type: bool = False,
        session: str = "",
        scope: ScopeLike = None,
        count: Callable[[str], int] | None = None,
        min_relevance: float = 0.05,
        **filters: Any,
    ) -> str:
        """Prompt-ready text: the session's summary, critical facts, then what the query needs, within the budget.

        `count` measures a text in your model's tokens; by default the bundled tokenizer does. What is less likely about the query
        than `min_relevance` (0 to 1) is left out.
        """
        return await self._threads.run(
            self._engram.get_context_block,
            query,
            max_tokens=max_tokens,
            header=header,
            group_by_type=group_by_type,
            session=session,
            scope=scope,
            count=count,
            min_relevance=min_relevance,
            **filters,
        )

    async def inject(
        self,
        task: str,
        *,
        scope: ScopeLike = None,
        agent_id: str | None = None,
        user_id: str | None = None,
        budget: int | None = None,
        session: str = "",
        min_relevance: float = 0.05,
    ) -> Injection:
        """What an agent should know before a task: directives, consider, related, within a token budget.

        What is less likely about the task than `min_relevance` (0 to 1) is left out, save what is critical, pinned or linked.
        """
        return await self._threads.run(
            self._engram.inject,
            task,
            scope=scope,
            agent_id=agent_id,
            user_id=user_id,
            budget=budget,
            session=session,
            min_relevance=min_relevance,
        )

    async def history(self, ref: str, **owner: Unpack[Owner]) -> Images:
        """Every decision about a memory, oldest first, with what it was after each."""
        return await self._threads.run(self._engram.history, ref, **owner)

    async def get_current(self, ref: str, **owner: Unpack[Owner]) -> Memory:
        """The version of a fact in force, from the id of any version of it."""
        return await self._threads.run(self._engram.get_current, ref, **owner)

    async def lineage(self, ref: str, **owner: Unpack[Owner]) -> Memories:
        """Every version of a fact, oldest first."""
        return await self._threads.run(self._engram.lineage, ref, **owner)

    async def get_lineage(self, ref: str, **owner: Unpack[Owner]) -> Memories:
        """Every version of a fact, oldest first: `lineage` under the name spec 2 has for it."""
        return await self._threads.run(self._engram.get_lineage, ref, **owner)

    async def explain_memory(self, ref: str, **owner: Unpack[Owner]) -> Explanation:
        """Why a memory is what it is: its state and the reason, its versions and decisions, links, and what it rests on."""
        return await self._threads.run(self._engram.explain_memory, ref, **owner)

    async def list_recent(self, limit: int | None = 10, **filters: Any) -> Memories:
        """The newest memories. Takes the filters of `search`."""
        return await self._threads.run(self._engram.list_recent, limit, **filters)

    async def get_history(
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
        """Memories by when they happened or came, newest first, those that were superseded included."""
        return await self._threads.run(
            self._engram.get_history,
            scope,
            agent_id=agent_id,
            user_id=user_id,
            since=since,
            until=until,
            include_superseded=include_superseded,
            types=types,
            limit=limit,
        )

    async def traverse(
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
        scope: ScopeLike = None,
        agent_id: str | None = None,
        user_id: str | None = None,
    ) -> Reaches:
        """What a memory is tied to, nearest first: direction outbound, inbound or any, over some relation types or all.

        Of everyone's memories, of those of a scope, or of those an owner sees.
        """
        return await self._threads.run(
            self._engram.traverse,
            start,
            max_depth=max_depth,
            direction=direction,
            relation_types=relation_types,
            types=types,
            min_weight=min_weight,
            limit=limit,
            status=status,
            scope=scope,
            agent_id=agent_id,
            user_id=user_id,
        )

    async def traverse_many(
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
        scope: ScopeLike = None,
        agent_id: str | None = None,
        user_id: str | None = None,
    ) -> Reaches:
        """The same from several memories at once; each comes once, and `seeds` says from which it was reached."""
        return await self._threads.run(
            self._engram.traverse_many,
            seeds,
            max_depth=max_depth,
            direction=direction,
            relation_types=relation_types,
            types=types,
            min_weight=min_weight,
            limit_per_seed=limit_per_seed,
            total_limit=total_limit,
            status=status,
            scope=scope,
            agent_id=agent_id,
            user_id=user_id,
        )

    async def render_graph_context(self, reached: Sequence[Reached], *, max_tokens: int | None = None) -> str:
        """What was reached as lines for a prompt."""
        return await self._threads.run(self._engram.render_graph_context, reached, max_tokens=max_tokens)

    async def scope_for(self, agent_id: str | None = None, user_id: str | None = None) -> str:
        """The scope of an owner as spec 2 names one: `agent:bot`, `agent:bot/ana` for its user, `user:ana` for any agent's."""
        return await self._threads.run(self._engram.scope_for, agent_id, user_id)

    def session(
        self,
        task: str = "",
        *,
        scope: ScopeLike = None,
        agent_id: str | None = None,
        user_id: str | None = None,
        budget: int | None = None,
    ) -> Opening[AsyncSession]:
        """Begin a session: its injection is ready, and its end folds in what was used. A context manager."""
        return beginning(
            self._threads, self._engram.session, task, scope=scope, agent_id=agent_id, user_id=user_id, budget=budget
        )

    async def observe(
        self,
        session_id: str,
        role: str,
        content: str,
        *,
        event_type: str = "message",
        payload: Mapping[str, Any] | None = None,
        key: str = "",
        at: datetime | str | None = None,
        metadata: Mapping[str, Any] | None = None,
        task: str = "",
        **owner: Unpack[Owner],
    ) -> Event:
        """Append one event to a session's ledger. A repeated key is the same event."""
        return await self._threads.run(
            self._engram.observe,
            session_id,
            role,
            content,
            event_type=event_type,
            payload=payload,
            key=key,
            at=at,
            metadata=metadata,
            task=task,
            **owner,
        )

    async def observe_batch(
        self, session_id: str, items: Iterable[Mapping[str, Any]], **owner: Unpack[Owner]
    ) -> Events:
        """Append events: role, content, and optionally at, key, event_type, payload, metadata. A repeated key is the same event.

        They belong to whom the session belongs to. A name of your own becomes a session of the owner named, of everyone's
        (`global`) where none is; a session of another owner is `Refused`.
        """
        return await self._threads.run(self._engram.observe_batch, session_id, items, **owner)

    async def start_task(
        self,
        goal: str,
        *,
        scope: str = "",
        agent_id: str | None = None,
        user_id: str | None = None,
        session: str = "",
        metadata: Mapping[str, Any] | None = None,
    ) -> TaskRun:
        """Begin work that outlives a conversation. Its scope is that of the directory unless named."""
        return await self._threads.run(
            self._engram.start_task,
            goal,
            scope=scope,
            agent_id=agent_id,
            user_id=user_id,
            session=session,
            metadata=metadata,
        )

    async def get_task(self, task: str, **owner: Unpack[Owner]) -> TaskRun:
        """A task by id; `NotFound` where it is another's than the owner named."""
        return await self._threads.run(self._engram.get_task, task, **owner)

    async def list_tasks(
        self, status: str | Sequence[str] | None = None, *, limit: int | None = 50, **owner: Unpack[Owner]
    ) -> TaskRuns:
        """Tasks, newest first; deleted ones only when asked for. Everyone's, or those an owner sees."""
        return await self._threads.run(self._engram.list_tasks, status, limit=limit, **owner)

    async def pause_task(self, task: str, reason: str = "", **owner: Unpack[Owner]) -> TaskRun:
        """Let a task rest."""
        return await self._threads.run(self._engram.pause_task, task, reason, **owner)

    async def resume_task(self, task: str, **owner: Unpack[Owner]) -> TaskRun:
        """Take a task up again, after a pause, a failure or a crash."""
        return await self._threads.run(self._engram.resume_task, task, **owner)

    async def complete_task(self, task: str, outcome: str = "", **owner: Unpack[Owner]) -> TaskRun:
        """A task that reached its goal; its ledger is closed."""
        return await self._threads.run(self._engram.complete_task, task, outcome, **owner)

    async def fail_task(self, task: str, reason: str = "", **owner: Unpack[Owner]) -> TaskRun:
        """A task that did not; it can be resumed."""
        return await self._threads.run(self._engram.fail_task, task, reason, **owner)

    async def cancel_task(self, task: str, reason: str = "", **owner: Unpack[Owner]) -> TaskRun:
        """A task nobody wants any more."""
        return await self._threads.run(self._engram.cancel_task, task, reason, **owner)

    async def soft_delete_task(self, task: str, **owner: Unpack[Owner]) -> TaskRun:
        """Take a task out of the lists; its ledger stays."""
        return await self._threads.run(self._engram.soft_delete_task, task, **owner)

    async def record_event(
        self,
        task: str,
        role: str,
        content: str,
        *,
        event_type: str = "message",
        payload: Mapping[str, Any] | None = None,
        key: str = "",
        at: datetime | str | None = None,
        metadata: Mapping[str, Any] | None = None,
        **owner: Unpack[Owner],
    ) -> Event:
        """Append one event to a task's ledger: what was said, called, answered, seen or made. A repeated key is the same event.

        It belongs to whom the task belongs to; a writer who is named must be that owner.
        """
        return await self._threads.run(
            self._engram.record_event,
            task,
            role,
            content,
            event_type=event_type,
            payload=payload,
            key=key,
            at=at,
            metadata=metadata,
            **owner,
        )

    async def record_turn(
        self,
        task: str,
        user: str = "",
        assistant: str = "",
        *,
        tool_calls: Iterable[Mapping[str, Any]] = (),
        artifacts: Iterable[Mapping[str, Any]] = (),
        derive: bool = True,
        key: str = "",
        **owner: Unpack[Owner],
    ) -> Events:
        """Append a whole turn at once or not at all; facts are drawn from it by the jobs unless `derive=False`.

        A tool call is {"name", "arguments", "result" or "error"} and whatever else you keep of it; an artifact {"name", "content"}.
        """
        return await self._threads.run(
            self._engram.record_turn,
            task,
            user,
            assistant,
            tool_calls=tool_calls,
            artifacts=artifacts,
            derive=derive,
            key=key,
            **owner,
        )

    async def list_events(
        self, task: str, *, last: int | None = None, after: int = 0, **owner: Unpack[Owner]
    ) -> Events:
        """A task's events in order."""
        return await self._threads.run(self._engram.list_events, task, last=last, after=after, **owner)

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
        **owner: Unpack[Owner],
    ) -> Hits:
        """Find events of one task, or of every ledger: everyone's, or those an owner sees."""
        return await self._threads.run(
            self._engram.search_events,
            query,
            task=task,
            event_types=event_types,
            roles=roles,
            since=since,
            until=until,
            mode=mode,
            limit=limit,
            **owner,
        )

    async def create_checkpoint(
        self,
        task: str,
        summary: str,
        *,
        completed_steps: Iterable[str] = (),
        pending_steps: Iterable[str] = (),
        decisions: Iterable[str] = (),
        blockers: Iterable[str] = (),
        artifacts: Iterable[str] = (),
        source_event_ids: Iterable[str] = (),
        kind: str = "progress",
        data: Mapping[str, Any] | None = None,
        **owner: Unpack[Owner],
    ) -> Checkpoint:
        """Note where a task stands, in a summary and lists of lines; the latest one is part of every context."""
        return await self._threads.run(
            self._engram.create_checkpoint,
            task,
            summary,
            completed_steps=completed_steps,
            pending_steps=pending_steps,
            decisions=decisions,
            blockers=blockers,
            artifacts=artifacts,
            source_event_ids=source_event_ids,
            kind=kind,
            data=data,
            **owner,
        )

    async def process_memory_jobs(self, limit: int = 100) -> Worked:
        """Do what follows on the ledgers and is due: draw facts from turns, ask the model what waits for it."""
        return await self._threads.run(self._engram.process_memory_jobs, limit)

    async def build_context(
        self,
        task: str,
        query: str = "",
        *,
        max_tokens: int = 4000,
        recent_event_limit: int = 40,
        memory_limit: int = 25,
        checkpoint_limit: int = 3,
        include_graph: bool = True,
        count: Callable[[str], int] | None = None,
        min_relevance: float = 0.05,
        **owner: Unpack[Owner],
    ) -> TaskContext:
        """What an agent must know to go on: goal, latest checkpoint and critical facts, then recent events, facts, the graph.

        `query` is what it is about to do, the goal where none is given; facts less likely about it than `min_relevance` (0 to 1)
        are left out. `count` measures a text in your model's tokens; by default the bundled tokenizer does.
        """
        return await self._threads.run(
            self._engram.build_context,
            task,
            query,
            max_tokens=max_tokens,
            recent_event_limit=recent_event_limit,
            memory_limit=memory_limit,
            checkpoint_limit=checkpoint_limit,
            include_graph=include_graph,
            count=count,
            min_relevance=min_relevance,
            **owner,
        )

    async def record_long_input(
        self,
        task: str,
        text: str,
        *,
        title: str = "",
        kind: str = "",
        path: str = "",
        max_chunk_tokens: int = 700,
        extract_with_llm: bool = False,
        max_facts_per_chunk: int = 6,
        progress: Callable[[str, int, int], None] | None = None,
        **owner: Unpack[Owner],
    ) -> LongInput:
        """Cut a long text into chunks that quote it exactly, in a task's ledger, with facts anchored to them.

        `kind`: markdown, text, code or diff; found by its look where none is given. `path` is the file it came from, so that
        `cite` can compare. With `extract_with_llm` the model of the settings draws facts too. Recording the same text again goes
        on where it ended.
        """
        return await self._threads.run(
            self._engram.record_long_input,
            task,
            text,
            title=title,
            kind=kind,
            path=path,
            max_chunk_tokens=max_chunk_tokens,
            extract_with_llm=extract_with_llm,
            max_facts_per_chunk=max_facts_per_chunk,
            progress=progress,
            **owner,
        )

    async def ingest(
        self,
        path: str | Path,
        *,
        task: str = "",
        kind: str = "",
        scope: str = "",
        agent_id: str | None = None,
        user_id: str | None = None,
        max_chunk_tokens: int = 700,
        extract_with_llm: bool = False,
        max_facts_per_chunk: int = 6,
        progress: Callable[[str, int, int], None] | None = None,
    ) -> LongInputs:
        """Read a file, or every text file of a folder, into a task's ledger; a task of the owner's is begun where none is named.

        Of a folder, `.refused` of the answer names what cannot be read and `.left_out` what is not meant to be, with the reason.
        """
        return await self._threads.run(
            self._engram.ingest,
            path,
            task=task,
            kind=kind,
            scope=scope,
            agent_id=agent_id,
            user_id=user_id,
            max_chunk_tokens=max_chunk_tokens,
            extract_with_llm=extract_with_llm,
            max_facts_per_chunk=max_facts_per_chunk,
            progress=progress,
        )

    async def build_long_input_context(
        self,
        task: str,
        query: str,
        *,
        max_tokens: int = 4000,
        source_chunk_limit: int = 6,
        expected_terms: str | Sequence[str] = (),
        count: Callable[[str], int] | None = None,
        **owner: Unpack[Owner],
    ) -> LongInputContext:
        """The chunks of a task's documents that answer a question, each with its citation, within the budget."""
        return await self._threads.run(
            self._engram.build_long_input_context,
            task,
            query,
            max_tokens=max_tokens,
            source_chunk_limit=source_chunk_limit,
            expected_terms=expected_terms,
            count=count,
            **owner,
        )

    async def cite(self, ref: str, **owner: Unpack[Owner]) -> Citation:
        """The quote behind a chunk, or behind a fact drawn from one, checked against its source as it stands now."""
        return await self._threads.run(self._engram.cite, ref, **owner)

    async def scopes_for(self, **owner: Unpack[Owner]) -> tuple[str, ...] | None:
        """What an owner sees, as the facets' `scopes` takes it: their own scope, the wider ones, the user's and global.

        None, which is everything, where nobody is named.
        """
        return await self._threads.run(self._engram.scopes_for, **owner)

    async def get(self, ref: str, **owner: Unpack[Owner]) -> Memory:
        """A memory by id, name or alias; `NotFound` says so when there is none, or it is another's than the owner named."""
        return await self._threads.run(self._engram.get, ref, **owner)

    async def doctor(self) -> dict[str, Any]:
        """What is healthy and what is not, with what to do."""
        return await self._threads.run(self._engram.doctor)

    async def health_check(self, *, skip_embedding_test: bool = False) -> dict[str, Any]:
        """`doctor`, and a text embedded to see that the embedder answers: "ok", "checks" with what to do, "facts"."""
        return await self._threads.run(self._engram.health_check, skip_embedding_test=skip_embedding_test)

    async def rebuild_index(self, progress: Callable[[str, int, int], None] | None = None) -> None:
        """Make the index anew from the files."""
        return await self._threads.run(self._engram.rebuild_index, progress)

    @property
    def lineages(self) -> AsyncLineages:
        """Facts that change: their versions, and the one in force."""
        return AsyncLineages(self._threads, self._engram.lineages)

    @property
    def graph(self) -> AsyncGraph:
        """Relations between memories."""
        return AsyncGraph(self._threads, self._engram.graph)

    @property
    def tasks(self) -> AsyncTasks:
        """Work that outlives a conversation."""
        return AsyncTasks(self._threads, self._engram.tasks)

    @property
    def jobs(self) -> AsyncJobs:
        """Work that follows on the ledgers."""
        return AsyncJobs(self._threads, self._engram.jobs)

    @property
    def review(self) -> AsyncReview:
        """What waits for a person."""
        return AsyncReview(self._threads, self._engram.review)

    @property
    def sessions(self) -> AsyncSessions:
        """Sessions and their ledgers."""
        return AsyncSessions(self._threads, self._engram.sessions)

    @property
    def upkeep(self) -> AsyncUpkeep:
        """Doctor, backup, prune, index, pause."""
        return AsyncUpkeep(self._threads, self._engram.upkeep)
