"""The verbs of conversations and tasks."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from engram.client.arguments import named_owner
from engram.client.facets import PAUSED_MESSAGE, Facets
from engram.model.arguments import Wordings, checked_wordings, read_words
from engram.model.errors import InvalidInput, NotFound, Refused
from engram.model.hit import Hits, Injection
from engram.model.lazy import replace
from engram.model.memory import Owner
from engram.model.records import Checkpoint, Event, TaskRun
from engram.recall.cutoff import INJECT_FLOOR
from engram.store.ledger import CONVERSATION_PREFIX, ledger_scope
from engram.store.protocol import Progress
from engram.store.states import is_paused
from engram.verbs import sessions, work
from engram.verbs.calls import bind_verb

if TYPE_CHECKING:
    from engram.capture.buffer import CaptureResult
    from engram.capture.documents.cite import Citation, LongInputContext
    from engram.capture.documents.ingest import IngestedDocuments, LongInput
    from engram.sessions.context import TaskContext
    from engram.sessions.jobs import WorkResult
    from engram.sessions.sessions import SessionHandle

    LongInputs = IngestedDocuments
    CaptureResults = list[CaptureResult]

Events = list[Event]
TaskRuns = list[TaskRun]


class WorkVerbs(Facets):
    """Sessions, tasks, their ledgers, and documents."""

    @bind_verb(sessions.START)
    def session(
        self,
        task: str = "",
        *,
        budget: int | None = None,
        **owner: Unpack[Owner],
    ) -> "SessionHandle":
        """Start a session with its injection ready.

        Its end reinforces the memories that were used. A context manager.
        """
        named = read_words(self._scope_of(owner), "scope")
        seen = self._scopes.read_scopes(named)
        scopes = self._scopes.scopes_from(None) if seen is None else seen
        if is_paused(self.store):
            return replace(self.sessions.start("", scopes, budget), injection=Injection(warnings=(PAUSED_MESSAGE,)))
        return self.sessions.start(task, scopes, budget, whole_store=seen is None)

    @bind_verb(sessions.OBSERVE_SESSION)
    def observe(
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
        item = {"role": role, "content": content, "event_type": event_type, "payload": payload, "key": key, "at": at,
                "metadata": metadata, "task": task}  # fmt: skip
        return self.observe_batch(session_id, [item], **owner)[0]

    @bind_verb(sessions.OBSERVE_BATCH)
    def observe_batch(self, session_id: str, items: Iterable[Mapping[str, Any]], **owner: Unpack[Owner]) -> Events:
        """Append events: role, content, and optionally at, key, event_type, payload, metadata. A repeated key is the same event.

        They belong to the owner of the session. An unknown name becomes a session of the named owner, or of everyone
        (`global`) if none is named. Raises `Refused` for a session of another owner.
        """
        return self.sessions.observe_batch(session_id, items, scope=self._writer(owner))

    # -- live turns

    @bind_verb(work.CAPTURE)
    def capture(
        self,
        session_id: str,
        role: str,
        content: str,
        *,
        key: str = "",
        at: datetime | str | None = None,
        metadata: Mapping[str, Any] | None = None,
        extract_assistant_response: bool = False,
        source: str = "agent",
        **owner: Unpack[Owner],
    ) -> "CaptureResult":
        """Store a live turn in its session's ledger, and extract lasting facts when it is time.

        Turns wait in a buffer that survives a restart. A high signal ("I prefer …", "from now on …") makes them be read
        at once. Otherwise the settings `capture_turns` and `capture_minutes` decide, or the end of the session. They
        leave the buffer only once they have been read: while a configured model does not answer, they stay, with the
        facts found without it stored. This call waits for it no longer than `capture_model_timeout`. Returns the turn's
        `level`, the `trigger` if turns were read, the `decisions` about them, and how many are `waiting`. A repeated
        `key` is the same turn. It belongs to the owner named, else to the owner of its session, else to the directory's
        scope; raises `Refused` for a session of another owner.
        """
        from engram.gates.secrets.scan import refuse_secret

        if is_paused(self.store):
            raise Refused(PAUSED_MESSAGE)
        refuse_secret(session_id, "the session's id")
        refuse_secret(source, "the source")
        known = ledger_scope(self.store, session_id) if session_id and named_owner(owner) is None else ""
        wanted = known or self._own_scope(owner)
        item = {"role": role, "content": content, "key": key, "at": at, "metadata": metadata}
        return self._buffer.capture(
            session_id or f"{CONVERSATION_PREFIX}{wanted}",
            item,
            scope=wanted,
            source=source,
            listens=extract_assistant_response,
        )

    @bind_verb(work.FLUSH_CAPTURES)
    def flush_captures(self, session_id: str = "", **owner: Unpack[Owner]) -> "CaptureResults":
        """Read the turns waiting in one session's buffer now, or in all buffers: everyone's, or those an owner sees.

        Raises `NotFound` for a session that does not exist or belongs to another owner.
        """
        if is_paused(self.store):
            raise Refused(PAUSED_MESSAGE)
        scopes = self.scopes_for(**owner)
        if session_id:
            try:
                self.sessions.events(session_id, last=1, scopes=scopes)
            except NotFound:
                listed = "`engram session list` names the sessions"
                raise NotFound(f"no session {session_id!r}, so no turn of it waits; {listed}") from None
            results = [self._buffer.flush(session_id)]
        else:
            results = self._buffer.flush_all(scopes)
        return [result for result in results if result.trigger or result.waiting or result.warnings]

    @bind_verb(work.READ_DUE_CAPTURES)
    def read_due_captures(self, **owner: Unpack[Owner]) -> "CaptureResults":
        """Read the turns that are due: everyone's, or those an owner sees. `engram worker` does this by itself."""
        if is_paused(self.store):
            raise Refused(PAUSED_MESSAGE)
        return self._buffer.read_due(self.scopes_for(**owner))

    # -- tasks

    @bind_verb(work.START_TASK)
    def start_task(
        self,
        goal: str,
        *,
        session: str = "",
        metadata: Mapping[str, Any] | None = None,
        **owner: Unpack[Owner],
    ) -> TaskRun:
        """Start work that outlives a conversation.

        It belongs to the named owner, else to the scope of the directory.
        """
        own = self._own_scope(owner)
        return self.tasks.start(goal, scope=own, session=session, metadata=metadata)

    @bind_verb(work.SHOW_TASK)
    def get_task(self, task: str, **owner: Unpack[Owner]) -> TaskRun:
        """A task by id. Raises `NotFound` if it belongs to another owner than the named one."""
        return self.tasks.get(task, scopes=self.scopes_for(**owner))

    @bind_verb(work.LIST_TASK)
    def list_tasks(
        self, status: str | Sequence[str] | None = None, *, limit: int | None = 50, **owner: Unpack[Owner]
    ) -> TaskRuns:
        """Tasks, newest first, of everyone or those an owner sees; deleted ones only on request."""
        return self.tasks.list(status, limit, scopes=self.scopes_for(**owner))

    @bind_verb(work.PAUSE_TASK)
    def pause_task(self, task: str, reason: str = "", **owner: Unpack[Owner]) -> TaskRun:
        """Pause a task."""
        return self.tasks.pause(self._own_task(task, owner), reason)

    @bind_verb(work.RESUME_TASK)
    def resume_task(self, task: str, **owner: Unpack[Owner]) -> TaskRun:
        """Resume a task after a pause, a failure or a crash."""
        return self.tasks.resume(self._own_task(task, owner))

    @bind_verb(work.COMPLETE_TASK)
    def complete_task(self, task: str, outcome: str = "", **owner: Unpack[Owner]) -> TaskRun:
        """Mark a task as completed; its ledger accepts no more events."""
        return self.tasks.complete(self._own_task(task, owner), outcome)

    @bind_verb(work.FAIL_TASK)
    def fail_task(self, task: str, reason: str = "", **owner: Unpack[Owner]) -> TaskRun:
        """Mark a task as failed; it can be resumed."""
        return self.tasks.fail(self._own_task(task, owner), reason)

    @bind_verb(work.CANCEL_TASK)
    def cancel_task(self, task: str, reason: str = "", **owner: Unpack[Owner]) -> TaskRun:
        """Mark a task as cancelled; it can be resumed."""
        return self.tasks.cancel(self._own_task(task, owner), reason)

    @bind_verb(work.DELETE_TASK)
    def soft_delete_task(self, task: str, **owner: Unpack[Owner]) -> TaskRun:
        """Remove a task from the lists; its ledger stays."""
        return self.tasks.delete(self._own_task(task, owner))

    @bind_verb(work.EVENT_TASK)
    def record_event(
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
        derive: bool = True,
        **owner: Unpack[Owner],
    ) -> Event:
        """Append one event to a task's ledger. A repeated key is the same event.

        Events are messages, tool calls or results, observations, errors and artifacts.

        Facts are derived from a message in the background unless `derive=False`. It belongs to the owner of the task.
        Raises `Refused` if another owner is named.
        """
        return self.tasks.record_event(
            self._own_task(task, owner),
            role,
            content,
            event_type=event_type,
            payload=payload,
            key=key,
            at=at,
            metadata=metadata,
            derive=derive,
        )

    @bind_verb(work.TURN_TASK)
    def record_turn(
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
        """Append a whole turn atomically. Facts are derived from it in the background unless `derive=False`.

        A tool call is {"name", "arguments", "result" or "error"} and any fields of your own; an artifact {"name", "content"}.
        """
        return self.tasks.record_turn(
            self._own_task(task, owner),
            user,
            assistant,
            tool_calls=tool_calls,
            artifacts=artifacts,
            derive=derive,
            key=key,
        )

    @bind_verb(work.LIST_EVENTS)
    def list_events(self, task: str, *, last: int | None = None, after: int = 0, **owner: Unpack[Owner]) -> Events:
        """A task's events in order."""
        return self.tasks.events(task, last=last, after=after, scopes=self.scopes_for(**owner))

    @bind_verb(work.SEARCH_TASK)
    def search_events(
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
        return self.tasks.search_events(
            query, task=task, event_types=event_types, roles=roles, since=since, until=until, mode=mode, limit=limit,
            scopes=self.scopes_for(**owner),
        )  # fmt: skip

    @bind_verb(work.CHECKPOINT_TASK)
    def create_checkpoint(
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
        """Record the state of a task as a summary and lists of lines; the latest checkpoint is part of every context."""
        return self.tasks.checkpoint(
            self._own_task(task, owner), summary, completed_steps=completed_steps, pending_steps=pending_steps, decisions=decisions,
            blockers=blockers, artifacts=artifacts, source_event_ids=source_event_ids, kind=kind, data=data,
        )  # fmt: skip

    @bind_verb(work.PROCESS_MEMORY_JOBS)
    def process_memory_jobs(self, limit: int = 100) -> "WorkResult":
        """Run the background jobs that are due: derive facts from turns, process what waits for the model."""
        from engram.sessions.jobs import WorkResult

        return WorkResult() if is_paused(self.store) else self.jobs.work(limit)

    @bind_verb(work.CONTEXT_TASK)
    def build_context(
        self,
        task: str,
        query: str = "",
        *,
        wordings: Wordings = (),
        max_tokens: int = 4000,
        recent_event_limit: int = 40,
        memory_limit: int = 25,
        checkpoint_limit: int = 3,
        include_graph: bool = True,
        count: Callable[[str], int] | None = None,
        min_relevance: float = INJECT_FLOOR,
        **owner: Unpack[Owner],
    ) -> "TaskContext":
        """What an agent must know to continue a task.

        It has the goal, the latest checkpoint and critical facts, then recent events, earlier events about the query,
        facts, the graph.

        `query` is what the agent is about to do, by default the goal; earlier events and facts whose relevance to it is
        below `min_relevance` (0 to 1) are left out. `wordings` are other wordings of the query. `count` measures a text
        in your model's tokens; by default the bundled tokenizer does.
        """
        return self._contexts.build(
            self.get_task(task, **owner), query, max_tokens=max_tokens, recent_event_limit=recent_event_limit,
            memory_limit=memory_limit, checkpoint_limit=checkpoint_limit, include_graph=include_graph, count=count,
            min_relevance=min_relevance, wordings=checked_wordings(wordings),
        )  # fmt: skip

    # -- long input

    @bind_verb(work.RECORD_LONG_INPUT)
    def record_long_input(
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
        progress: Progress | None = None,
        **owner: Unpack[Owner],
    ) -> "LongInput":
        """Split a long text into chunks that quote it exactly, in a task's ledger, with facts anchored to them.

        `kind`: markdown, text, code or diff; detected by default. `path` is the original file, so that
        `cite` can compare. With `extract_with_llm` the configured model extracts facts too. Recording the same text again
        continues where it stopped.
        """
        from engram.capture.documents.ingest import IngestOptions
        from engram.capture.documents.source import SourceDocument

        options = IngestOptions(max_chunk_tokens, max_facts_per_chunk, extract_with_llm, progress or (lambda *_: None))
        file = str(Path(path).absolute()) if path else ""
        return self._recorder.record(self._own_task(task, owner), SourceDocument(title, text, kind), file, options)

    @bind_verb(work.INGEST)
    def ingest(
        self,
        path: str | Path,
        *,
        task: str = "",
        kind: str = "",
        max_chunk_tokens: int = 700,
        extract_with_llm: bool = False,
        max_facts_per_chunk: int = 6,
        progress: Progress | None = None,
        **owner: Unpack[Owner],
    ) -> "LongInputs":
        """Read a file, or every text file of a folder, into a task's ledger.

        Without a task, it starts one of the owner's.

        For a folder, `.refused` names the unreadable files and `.left_out` the skipped ones, with the reason.
        """
        from engram.capture.documents.ingest import IngestOptions
        from engram.gates.secrets.scan import redact

        if not str(path).strip():
            raise InvalidInput("name a file or a folder to read; `.` is the current one")
        place = Path(path).absolute()
        if not owner.get("scope"):
            owner["scope"] = None
        own = self._own_task(task, owner) if task else ""
        options = IngestOptions(max_chunk_tokens, max_facts_per_chunk, extract_with_llm, progress or (lambda *_: None))

        def begin() -> str:
            return self.start_task(redact(f"Read {place.name}")[0], **owner).id

        return self._recorder.ingest(place, own, begin, kind, options)

    @bind_verb(work.BUILD_LONG_INPUT_CONTEXT)
    def build_long_input_context(
        self,
        task: str,
        query: str,
        *,
        max_tokens: int = 4000,
        source_chunk_limit: int = 6,
        expected_terms: str | Sequence[str] = (),
        count: Callable[[str], int] | None = None,
        **owner: Unpack[Owner],
    ) -> "LongInputContext":
        """The chunks of a task's documents that answer a question, each with its citation, within the budget."""
        return self._citing.context(
            task, query, max_tokens=max_tokens, source_chunk_limit=source_chunk_limit, expected_terms=expected_terms,
            count=count, scopes=self.scopes_for(**owner),
        )  # fmt: skip

    @bind_verb(work.CITE)
    def cite(self, ref: str, **owner: Unpack[Owner]) -> "Citation":
        """The quote behind a chunk, or behind a fact derived from one, checked against the current source."""
        return self._citing.cite(ref, self.scopes_for(**owner))
