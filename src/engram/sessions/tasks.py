"""`mem.tasks`: tasks, their ledgers and checkpoints, for work that spans several conversations."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta, tzinfo
from typing import Any, Unpack

from engram.gates.secrets.scan import refuse_secret
from engram.model.arguments import checked_event_types, checked_length, checked_place, checked_window, read_words
from engram.model.errors import InvalidInput
from engram.model.hit import Hits
from engram.model.lazy import dataclass
from engram.model.memory import CheckpointSteps, EventFields
from engram.model.records import (
    CHECKPOINT_KINDS,
    TASK_STATES,
    Checkpoint,
    Event,
    Job,
    TaskRun,
    checked_state,
    transition_task,
)
from engram.recall.query import SearchQuery
from engram.recall.search import Searcher
from engram.rules.limits import limit_arguments
from engram.rules.scopes import parse_scope, visible_scopes
from engram.sessions.observations import checked_text, json_data, new_event
from engram.store.intake import JobFactory, no_jobs
from engram.store.protocol import Filters, Store
from engram.store.references import Scopes, find_event, find_task
from engram.text.time.zone import SYSTEM

Events = list[Event]
Checkpoints = list[Checkpoint]
TaskRuns = list[TaskRun]
DERIVE = "derive"
"""The job that derives facts from a ledger's events."""
FACT_EVENTS = ("message",)
"""Event types from which facts are derived; the output of tools is evidence, not a statement by anyone."""
FACT_ROLES = ("user", "assistant")
"""The speakers from whose events facts are derived."""
_ANSWERS = {"result": "tool_result", "error": "error"}
"""The results of a tool call, and the type of the event that records each."""
_NOTHING = "(nothing)"
"""The content of an event for a tool that returned nothing."""
_STEPS = ("completed_steps", "pending_steps", "decisions", "blockers", "artifacts")


@limit_arguments
@dataclass(slots=True)
class Tasks:
    """Starts, changes and finds tasks; writes their ledgers and checkpoints."""

    store: Store
    searcher: Searcher
    clock: Callable[[], datetime]
    zone: tzinfo = SYSTEM
    """The time zone of times given without one."""

    # -- tasks

    def start(
        self, goal: str, *, scope: str = "global", session: str = "", metadata: Mapping[str, Any] | None = None
    ) -> TaskRun:
        """Start a task; raises `InvalidInput` without a goal."""
        if not _has_text(goal):
            raise InvalidInput("a task needs a goal")
        session = checked_text(session, "the session's id")
        refuse_secret(session, "the session's id")
        scope, own, now = parse_scope(scope), json_data("the task's metadata", metadata), self.clock()
        task_id = f"TASK-{now:%Y%m%d-%H%M%S}-{self.store.new_token(3)}"
        task = TaskRun(task_id, _clean(goal, "the task's goal"), scope, now, now, session=session, metadata=own)
        self.store.save_record(task)
        return task

    def get(self, task_id: str, *, scopes: Scopes = None) -> TaskRun:
        """A task by id; raises `NotFound` if the scopes that the caller sees have none."""
        return find_task(self.store, task_id, scopes)

    def list(
        self, status: str | Sequence[str] | None = None, limit: int | None = 50, *, scopes: Scopes = None
    ) -> TaskRuns:
        """Tasks, newest first: all, or those of these scopes. Deleted tasks are included only on request."""
        wanted = read_words(status, "status") or tuple(state for state in TASK_STATES if state != "deleted")
        return self.store.list_records(
            TaskRun, statuses=[checked_state(state) for state in wanted], limit=checked_length(limit), scopes=scopes
        )

    def move(self, task_id: str, state: str, outcome: str = "", *, scopes: Scopes = None) -> TaskRun:
        """Change the state of a task; raises `InvalidInput` if the new state cannot follow the present one.

        For a named owner, pass `scopes` from `mem.scopes_for`: raises `Refused` for a task that they see but do not
        own.
        """
        text, task = _clean(outcome, "the task's outcome"), find_task(self.store, task_id, scopes, to_change=True)
        return self.store.change_task(task.id, lambda task: transition_task(task, state, self.clock(), text))

    def pause(self, task_id: str, reason: str = "", *, scopes: Scopes = None) -> TaskRun:
        """Pause a task."""
        return self.move(task_id, "paused", reason, scopes=scopes)

    def resume(self, task_id: str, *, scopes: Scopes = None) -> TaskRun:
        """Resume a paused, failed or cancelled task. A task whose process died is still running."""
        task = find_task(self.store, task_id, scopes, to_change=True)
        return task if task.status == "running" else self.move(task_id, "running", scopes=scopes)

    def complete(self, task_id: str, outcome: str = "", *, scopes: Scopes = None) -> TaskRun:
        """Mark a task as completed, and close its ledger."""
        return self.move(task_id, "completed", outcome, scopes=scopes)

    def fail(self, task_id: str, reason: str = "", *, scopes: Scopes = None) -> TaskRun:
        """Mark a task as failed; it can be resumed."""
        return self.move(task_id, "failed", reason, scopes=scopes)

    def cancel(self, task_id: str, reason: str = "", *, scopes: Scopes = None) -> TaskRun:
        """Mark a task as cancelled; it can be resumed."""
        return self.move(task_id, "cancelled", reason, scopes=scopes)

    def delete(self, task_id: str, *, scopes: Scopes = None) -> TaskRun:
        """Remove a task from the lists. Its ledger stays; use `purge` to destroy events."""
        return self.move(task_id, "deleted", scopes=scopes)

    # -- the ledger

    def record_event(
        self,
        task_id: str,
        role: str,
        content: str,
        *,
        derive: bool = True,
        scopes: Scopes = None,
        **fields: Unpack[EventFields],
    ) -> Event:
        """Append one event: a message, a tool call, its result, an observation or an artifact.

        With `derive`, the background jobs later derive facts from a message.
        """
        item = {"role": role, "content": content, **fields}
        return self.record_events(task_id, [item], derive=derive, scopes=scopes)[0]

    def record_events(
        self, task_id: str, items: Iterable[Mapping[str, Any]], *, derive: bool = True, scopes: Scopes = None
    ) -> Events:
        """Append several events, all or none, each with the fields of `record_event`."""
        return self._append(task_id, list(items), derive=derive, scopes=scopes)

    def record_turn(
        self,
        task_id: str,
        user: str = "",
        assistant: str = "",
        *,
        tool_calls: Iterable[Mapping[str, Any]] = (),
        artifacts: Iterable[Mapping[str, Any]] = (),
        derive: bool = True,
        key: str = "",
        scopes: Scopes = None,
    ) -> Events:
        """Append a whole turn, all or nothing: the request, the calls with their results, the answer and the artifacts.

        A tool call is {"name", "arguments", "result" or "error"}; an artifact is {"name", "content"}. With `derive`,
        the background jobs later derive facts from the turn. Repeating a turn with the same `key` does not record it
        twice.
        """
        items = [
            *([{"role": "user", "content": user}] if user else []),
            *(event for call in tool_calls for event in _events_of_call(call)),
            *([{"role": "assistant", "content": assistant}] if assistant else []),
            *(_artifact(made) for made in artifacts),
        ]
        if not items:
            raise InvalidInput("a turn needs a message, a tool call or an artifact")
        if key:
            items = [{**item, "key": f"{key}/{place}"} for place, item in enumerate(items)]
        return self._append(task_id, items, derive=derive, scopes=scopes)

    def _append(self, task_id: str, items: Sequence[Mapping[str, Any]], *, derive: bool, scopes: Scopes) -> Events:
        task, now = find_task(self.store, task_id, scopes, to_change=True), self.clock()
        events = [new_event(item, now, task.id, self.zone) for item in items]
        told = derive and any(event.event_type in FACT_EVENTS and event.role.lower() in FACT_ROLES for event in events)
        return self.store.append_events(task.id, events, _derivation(task, now) if told else no_jobs)

    def events(self, task_id: str, *, last: int | None = None, after: int = 0, scopes: Scopes = None) -> Events:
        """A task's events in order: all, those after a number, or the last ones."""
        checked_length(last, "last")
        return self.store.events(self.get(task_id, scopes=scopes).id, last=last, after=checked_place(after, "after"))

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
        scopes: Scopes = None,
    ) -> Hits:
        """Find events of a task, or of all ledgers, optionally limited to these scopes."""
        first, last = checked_window(since, until, self.zone)
        filters = Filters(
            kinds=("event",),
            scopes=None if scopes is None else tuple(scopes),
            parents=(self.get(task, scopes=scopes).id,) if task else None,
            types=checked_event_types(event_types),
            roles=read_words(roles, "roles"),
            since=first,
            until=last,
        )
        return self.searcher.search(SearchQuery(query, limit, mode, filters=filters))

    # -- checkpoints

    def checkpoint(
        self,
        task_id: str,
        summary: str,
        *,
        source_event_ids: Iterable[str] = (),
        kind: str = "progress",
        data: Mapping[str, Any] | None = None,
        scopes: Scopes = None,
        **steps: Unpack[CheckpointSteps],
    ) -> Checkpoint:
        """Record the state of a task: completed_steps, pending_steps, decisions, blockers and artifacts are lists of lines."""
        unknown = sorted(set(steps) - set(_STEPS))
        if unknown:
            raise InvalidInput(f"a checkpoint has no {unknown[0]!r}; it has {', '.join(_STEPS)}")
        if not _has_text(summary):
            raise InvalidInput("a checkpoint needs a summary")
        if kind not in CHECKPOINT_KINDS:
            raise InvalidInput(f"Unknown kind of checkpoint {kind!r}; choose {' or '.join(CHECKPOINT_KINDS)}")
        task, now = find_task(self.store, task_id, scopes, to_change=True), self.clock()
        if task.is_finished:
            raise InvalidInput(f"{task.id} is {task.status}; a finished task takes no checkpoint")
        sources = self._sources(source_event_ids, visible_scopes([task.scope]))
        own = json_data("the checkpoint's data", data)
        head = self.store.events(task.id, last=1)
        lines = {name: _lines(name, given) for name, given in steps.items()}
        return self.store.add_checkpoint(
            task.id,
            lambda number: Checkpoint(
                id=f"CKP-{task.id.removeprefix('TASK-')}-{number:03d}",
                task=task.id,
                number=number,
                created=now,
                summary=_clean(summary, "the checkpoint's summary"),
                source_event_ids=sources,
                through=head[-1].seq if head else 0,
                kind=kind,
                data=own,
                **lines,
            ),
        )

    def _sources(self, ids: Iterable[str], scopes: Collection[str]) -> tuple[str, ...]:
        found = () if isinstance(ids, str) else tuple(ids)
        if isinstance(ids, str) or not all(isinstance(i, str) for i in found):
            raise InvalidInput("source_event_ids is a list of ids of events")
        return tuple(find_event(self.store, event_id, scopes).id for event_id in found)

    def checkpoints(self, task_id: str, limit: int | None = None, *, scopes: Scopes = None) -> Checkpoints:
        """A task's checkpoints, newest first."""
        return self.store.list_records(Checkpoint, of=self.get(task_id, scopes=scopes).id, limit=checked_length(limit))

    def idle_since(self, task: TaskRun | str, *, scopes: Scopes = None) -> timedelta:
        """How long ago the task's last event was. A long time for a running task means that its process died."""
        task = self.get(task, scopes=scopes) if isinstance(task, str) else task
        head = self.store.events(task.id, last=1)
        return max(timedelta(), self.clock() - max(task.updated, head[-1].at if head else task.updated))


def _derivation(task: TaskRun, now: datetime) -> JobFactory:
    """The job that derives facts from new events. It names the events, so that running it twice changes nothing."""

    def job(events: Sequence[Event]) -> Sequence[Job]:
        payload = {"task": task.id, "events": [event.id for event in events]}
        return [Job(f"{DERIVE}:{events[0].id}", DERIVE, now, now, payload, scope=task.scope)]

    return job


def _clean(text: str, what: str) -> str:
    return checked_text(text.strip(), what)


def _has_text(given: Any) -> bool:
    return isinstance(given, str) and bool(given.strip())


def _lines(name: str, given: Any) -> tuple[str, ...]:
    lines = [*given] if isinstance(given, Iterable) and not isinstance(given, str) else [None]
    if not all(isinstance(line, str) for line in lines):
        raise InvalidInput(f"{name} is a list of lines")
    return tuple(_clean(line, f"the checkpoint's {name}") for line in lines if line and line.strip())


def _events_of_call(call: Any) -> list[dict[str, Any]]:
    """The events of a call and its result.

    Further fields from the caller, such as an id or a duration, stay in the payload.
    """
    name = call.get("name") if isinstance(call, Mapping) else None
    if not isinstance(name, str) or not name.strip():
        raise InvalidInput('a tool call needs a name: {"name": "pytest", "arguments": {…}, "result": "…"}')
    arguments = call.get("arguments", {})
    content = f"{name} {_as_text('arguments', arguments)}".strip()
    more = {part: value for part, value in call.items() if part not in ("name", "arguments", *_ANSWERS)}
    found: list[dict[str, Any]] = [
        {
            "role": "assistant",
            "event_type": "tool_call",
            "content": content,
            "payload": {**more, "name": name, "arguments": arguments},
        }
    ]
    for part, kind in _ANSWERS.items():
        if call.get(part) is not None or (part == "result" and part in call):
            result = _as_text(part, call[part]) or _NOTHING
            found.append({"role": "tool", "event_type": kind, "content": result, "payload": {**more, "name": name}})
    return found


def _artifact(made: Any) -> dict[str, Any]:
    name, content = (made.get("name", ""), made.get("content", "")) if isinstance(made, Mapping) else ("", "")
    if not isinstance(content, str) or not isinstance(name, str) or not (name or content):
        raise InvalidInput('an artifact is {"name": "report.md", "content": "…"}')
    return {"role": "assistant", "event_type": "artifact", "content": content or name, "payload": {"name": name}}


def _as_text(part: str, value: Any) -> str:
    import json

    if value is None or value == {}:
        return ""
    try:
        return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(
            f"the {part} of a tool call cannot be stored as JSON ({error}); give text, numbers, lists and objects: "
            "decode bytes, or store them in a file and name it"
        ) from None
