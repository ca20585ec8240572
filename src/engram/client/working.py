"""The verbs of conversations and tasks."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engram.client.facets import PAUSED, Facets
from engram.model.errors import InvalidInput
from engram.model.event import Event
from engram.model.hit import Hits, Injection
from engram.model.task import Checkpoint, TaskRun
from engram.model.times import aware
from engram.recall.sight import ScopeLike

if TYPE_CHECKING:
    from engram.capture.longinput.citing import Citation, LongInputContext
    from engram.capture.longinput.recording import Ingested, LongInput
    from engram.sessions.context import TaskContext
    from engram.sessions.jobs import Worked
    from engram.sessions.sessions import SessionHandle

    LongInputs = Ingested

Events = list[Event]
TaskRuns = list[TaskRun]


class Working(Facets):
    """Sessions, tasks and their ledgers."""

    def session(self, task: str = "", *, scope: ScopeLike = None, budget: int | None = None) -> "SessionHandle":
        """Begin a session: its injection is ready, and its end folds in what was used. A context manager."""
        if self.upkeep.paused:
            begun = self.sessions.start("", self._sight.scopes_from(scope), budget)
            return replace(begun, injection=Injection(warnings=(PAUSED,)))
        return self.sessions.start(task, self._sight.scopes_from(scope), budget)

    def observe(self, session_id: str, role: str, content: str, **fields: Any) -> Event:
        """Append one event to a session's ledger."""
        return self.observe_batch(session_id, [{"role": role, "content": content, **fields}])[0]

    def observe_batch(self, session_id: str, items: Iterable[Mapping[str, Any]]) -> Events:
        """Append events: role, content, and optionally at, key, event_type, payload, metadata. A repeated key is the same event."""
        return self.sessions.observe_batch(session_id, items)

    # -- tasks

    def start_task(
        self, goal: str, *, scope: str = "", session: str = "", metadata: Mapping[str, Any] | None = None
    ) -> TaskRun:
        """Begin work that outlives a conversation. Its scope is that of the directory unless named."""
        own = self._sight.scope_named(scope) if scope else self._sight.scope() or "global"
        return self.tasks.start(goal, scope=own, session=session, metadata=metadata)

    def get_task(self, task: str) -> TaskRun:
        """A task by id."""
        return self.tasks.get(task)

    def list_tasks(self, status: str | Sequence[str] | None = None, *, limit: int | None = 50) -> TaskRuns:
        """Tasks, newest first; deleted ones only when asked for."""
        return self.tasks.list(status, limit)

    def pause_task(self, task: str, reason: str = "") -> TaskRun:
        """Let a task rest."""
        return self.tasks.pause(task, reason)

    def resume_task(self, task: str) -> TaskRun:
        """Take a task up again, after a pause, a failure or a crash."""
        return self.tasks.resume(task)

    def complete_task(self, task: str, outcome: str = "") -> TaskRun:
        """A task that reached its goal; its ledger is closed."""
        return self.tasks.complete(task, outcome)

    def fail_task(self, task: str, reason: str = "") -> TaskRun:
        """A task that did not; it can be resumed."""
        return self.tasks.fail(task, reason)

    def cancel_task(self, task: str, reason: str = "") -> TaskRun:
        """A task nobody wants any more."""
        return self.tasks.cancel(task, reason)

    def soft_delete_task(self, task: str) -> TaskRun:
        """Take a task out of the lists; its ledger stays."""
        return self.tasks.delete(task)

    def record_event(self, task: str, role: str, content: str, **fields: Any) -> Event:
        """Append one event to a task's ledger: event_type, payload, key, at, metadata as for `observe`."""
        return self.tasks.record_event(task, role, content, **fields)

    def record_turn(self, task: str, user: str = "", assistant: str = "", **fields: Any) -> Events:
        """Append a whole turn at once: tool_calls, artifacts, key; facts are drawn from it by the jobs unless derive=False."""
        return self.tasks.record_turn(task, user, assistant, **fields)

    def list_events(self, task: str, *, last: int | None = None, after: int = 0) -> Events:
        """A task's events in order."""
        return self.tasks.events(task, last=last, after=after)

    def search_events(
        self,
        query: str,
        *,
        task: str = "",
        since: datetime | str | None = None,
        until: datetime | str | None = None,
        **options: Any,
    ) -> Hits:
        """Find events of one task, or of every ledger: event_types, roles, mode, limit."""
        return self.tasks.search_events(query, task=task, since=aware(since), until=aware(until), **options)

    def create_checkpoint(self, task: str, summary: str, **fields: Any) -> Checkpoint:
        """Note where a task stands: completed_steps, pending_steps, decisions, blockers, artifacts, source_event_ids."""
        return self.tasks.checkpoint(task, summary, **fields)

    def process_memory_jobs(self, limit: int = 100) -> "Worked":
        """Do what follows on the ledgers and is due: draw facts from turns, ask the model what waits for it."""
        from engram.sessions.jobs import Worked

        return Worked() if self.upkeep.paused else self.jobs.work(limit)

    def build_context(self, task: str, query: str = "", **options: Any) -> "TaskContext":
        """What an agent must know to go on: max_tokens=4000, recent_event_limit, memory_limit, checkpoint_limit, include_graph.

        `count=` is a function that measures a text in your model's tokens; by default the bundled tokenizer does.
        """
        return self._contexts.build(self.tasks.get(task), query, **options)

    # -- long input

    def record_long_input(
        self,
        task: str,
        text: str,
        *,
        title: str = "",
        kind: str = "",
        path: str = "",
        max_chunk_tokens: int = 700,
        max_facts_per_chunk: int = 6,
        progress: Callable[[str, int, int], None] | None = None,
    ) -> "LongInput":
        """Cut a long text into chunks that quote it exactly, in a task's ledger, with facts anchored to them.

        `kind`: markdown, text, code or diff; found by its look where none is given. `path` is the file it came from, so that
        `cite` can compare. Recording the same text again goes on where it ended.
        """
        from engram.capture.longinput.documents import Document

        return self._recorder.record(
            task,
            Document(title, text, kind),
            path=str(Path(path).absolute()) if path else "",
            max_chunk_tokens=max_chunk_tokens,
            max_facts_per_chunk=max_facts_per_chunk,
            progress=progress or (lambda *_: None),
        )

    def ingest(
        self,
        path: str | Path,
        *,
        task: str = "",
        kind: str = "",
        scope: str = "",
        max_chunk_tokens: int = 700,
        max_facts_per_chunk: int = 6,
        progress: Callable[[str, int, int], None] | None = None,
    ) -> "LongInputs":
        """Read a file, or every text file of a folder, into a task's ledger; a task is begun where none is named.

        A file of a folder that cannot be read is left out: `.refused` of the answer names it, with the reason.
        """
        from engram.capture.longinput.documents import documents_in, read_document
        from engram.capture.longinput.recording import Ingested, check_document

        if not str(path).strip():
            raise InvalidInput("name a file or a folder to read; `.` is the one you are in")
        place = Path(path).absolute()
        run = self.tasks.get(task).id if task else ""
        taken = Ingested()
        for file in documents_in(place) if place.is_dir() else [place]:
            try:
                document = read_document(file, kind=kind)
                check_document(document, max_chunk_tokens, max_facts_per_chunk)
            except InvalidInput as error:
                if file == place:
                    raise
                taken.refused.append((str(file), str(error)))
                continue
            run = run or self.start_task(f"Read {place.name}", scope=scope).id
            taken.append(
                self._recorder.record(
                    run,
                    document,
                    path=str(file),
                    max_chunk_tokens=max_chunk_tokens,
                    max_facts_per_chunk=max_facts_per_chunk,
                    progress=progress or (lambda *_: None),
                )
            )
        if not taken:
            why = f": {taken.refused[0][1]}" if taken.refused else ""
            raise InvalidInput(f"{place} holds no text file that can be read{why}")
        return taken

    def build_long_input_context(self, task: str, query: str, **options: Any) -> "LongInputContext":
        """The chunks that answer a question, each with its citation: max_tokens=4000, source_chunk_limit=6, expected_terms, count."""
        return self._citing.context(task, query, **options)

    def cite(self, ref: str) -> "Citation":
        """The quote behind a chunk, or behind a fact drawn from one, checked against its source as it stands now."""
        return self._citing.cite(ref)
