"""The chain of a ledger's events, and its checkpoints in the journal; the same on every backend.

`body` is a salted digest of an event's content; `digest` covers `prev`, the event's position, its task, its owner's scope and `body`.
Purging an event removes its content and salt and keeps `body`, so the chain still verifies and the content cannot be guessed.
A digest without the prefix `2:` is of the first kind, which did not cover the task.

In a checkpoint, `op` is `ledger`, `session` the ledger's name, and `reason` the number and digest of its last event and a link: a
digest of the newest checkpoint at the time, of any ledger. So removing a checkpoint breaks the link of the next one. Removing the
newest checkpoints together with their events cannot be detected: the result is an earlier state of the store.
"""

import hashlib
import json
import os
from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from engram.model.errors import InvalidInput, KeyConflict, Refused
from engram.model.lazy import replace
from engram.model.records import Event, Session, TaskRun
from engram.rules.scopes import GLOBAL, is_person, is_scope_visible, parse_scope, visible_scopes
from engram.store.intake import NewEvent
from engram.store.protocol import Store

if TYPE_CHECKING:
    from engram.store.protocol import Store


CHAIN_MARK = "2:"
"""The prefix of digests that cover the task."""


class Head(NamedTuple):
    """The end of a ledger: the number and digest of its last event."""

    seq: int = 0
    digest: str = ""


NO_HEAD = Head()


def chained_events(
    head: Head, session: str, events: Sequence[NewEvent], token: Callable[[int], str], scope: str = ""
) -> list[Event]:
    """New events with ids, numbers and digests, chained to the ledger's last event."""
    made: list[Event] = []
    prev = head.digest
    for seq, new in enumerate(events, head.seq + 1):
        day = new.at.astimezone(UTC)
        # strftime takes longer than the rest of the id.
        event_id = f"EVT-{day.year:04}{day.month:02}{day.day:02}-{token(6)}"
        salt = os.urandom(16).hex()
        body = _body(salt, new)
        digest = _marked_digest(new, event_id, session, seq, prev, body, scope)
        given = new.role, new.content, new.at, new.event_type, new.task, new.key, new.payload, new.metadata
        made.append(Event(event_id, session, seq, *given, salt, body, prev, digest, scope))
        prev = digest
    return made


def new_positions(events: Sequence[NewEvent], known: Mapping[str, Event]) -> list[int]:
    """Positions of the events that are new: those without a key, and the first of each unknown key.

    A repeated key means the same event. Raises `KeyConflict` if its content differs, before anything is written.
    """
    seen: dict[str, Event | NewEvent] = dict(known)
    fresh = []
    for i, event in enumerate(events):
        if event.key and event.key in seen:
            _refuse_other_content(event, seen[event.key])
            continue
        seen[event.key] = event
        fresh.append(i)
    return fresh


def _refuse_other_content(event: NewEvent, known: Event | NewEvent) -> None:
    if isinstance(known, Event) and not known.salt:
        return  # purged: there is no content to compare with
    if (event.role, event.event_type, event.content) != (known.role, known.event_type, known.content):
        named = f"event {known.id}" if isinstance(known, Event) else "another event of the same batch"
        raise KeyConflict(
            f"the key {event.key!r} belongs to {named}, which has other content; nothing was written. "
            "Give a new event its own key; a repeated event must have the same role, type and content"
        )


def chain_problems(events: Iterable[Event], name: str, redacted: Container[str] | None = None) -> list[str]:
    """Problems of a chain: altered, reordered or dropped events. `name` is the ledger's name.

    `redacted` are the events that the journal records as redacted; None skips that check.
    """
    problems = []
    prev, seq, session = "", 0, None
    for event in events:
        seq += 1
        if event.seq != seq:
            problems.append(f"{name}: event {event.id} has number {event.seq} instead of {seq}")
            seq = event.seq
        if event.prev != prev:
            problems.append(f"{name}: event {event.id} does not follow the one before it")
        if session is not None and event.session != session:
            problems.append(f"{name}: event {event.id} belongs to another ledger, {event.session}")
        problems += [f"{name}: {problem}" for problem in _find_alterations(event, redacted)]
        prev, session = event.digest, event.session
    return problems


def _find_alterations(event: Event, redacted: Container[str] | None) -> list[str]:
    found = []
    if event.salt:
        if event.body != body_digest(event):
            found.append(f"the content of event {event.id} was altered")
    elif event.content or event.payload or event.metadata or event.key:
        found.append(f"the content of event {event.id} was altered")
    elif redacted is not None and is_marked(event) and event.id not in redacted:
        found.append(f"the content of event {event.id} was removed, and the journal records no redaction")
    if event.digest != chain_digest(event):
        found.append(f"event {event.id} was altered")
    return found


def is_marked(event: Event) -> bool:
    """Whether an event was written since the journal records every ledger and every redaction."""
    return event.digest.startswith(CHAIN_MARK)


def blank_event(event: Event) -> Event:
    """An event without its content; `body` and `digest` stay."""
    return replace(event, content="", payload={}, metadata={}, key="", salt="")


def body_digest(event: Event) -> str:
    """The salted digest of an event's content."""
    return _body(event.salt, event)


def chain_digest(event: Event) -> str:
    """The digest of an event's position and body, of the same kind as the event's own digest."""
    place = event.id, event.session, event.seq, event.prev, event.body
    return _marked_digest(event, *place, event.scope) if is_marked(event) else _sha256(*_digest_fields(event, *place))


_sorted_json = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode


def _body(salt: str, event: Event | NewEvent) -> str:
    return _sha256(salt, _sorted_json([event.content, event.payload, event.metadata, event.key]))


def _marked_digest(
    event: Event | NewEvent, event_id: str, session: str, seq: int, prev: str, body: str, scope: str
) -> str:
    # Older events have no scope, and their digests do not cover one.
    owned = (scope,) if scope else ()
    return CHAIN_MARK + _sha256(*_digest_fields(event, event_id, session, seq, prev, body), event.task, *owned)


def _digest_fields(
    event: Event | NewEvent, event_id: str, session: str, seq: int, prev: str, body: str
) -> tuple[str, ...]:
    at = event.at.astimezone(UTC).isoformat()
    return prev, event_id, session, str(seq), event.role, event.event_type, at, body


def _sha256(*parts: str) -> str:
    return hashlib.sha256("\x00".join(parts).encode("utf-8", "surrogatepass")).hexdigest()


def to_fields(event: Event) -> dict[str, Any]:
    """An event as JSON-safe data, without empty fields."""
    fields: dict[str, Any] = {
        "id": event.id,
        "seq": event.seq,
        "session": event.session,
        "role": event.role,
        "type": event.event_type,
        "at": event.at.astimezone(UTC).isoformat().replace("+00:00", "Z"),
        "content": event.content,
    }
    if event.scope:
        fields["scope"] = event.scope
    if event.task:
        fields["task"] = event.task
    if event.key:
        fields["key"] = event.key
    if event.payload:
        fields["payload"] = event.payload
    if event.metadata:
        fields["metadata"] = event.metadata
    if event.salt:
        fields["salt"] = event.salt
    if event.body:
        fields["body"] = event.body
    if event.prev:
        fields["prev"] = event.prev
    if event.digest:
        fields["digest"] = event.digest
    return fields


def from_fields(fields: Mapping[str, Any]) -> Event:
    """The event of parsed data."""
    return Event(
        id=fields["id"],
        seq=int(fields["seq"]),
        session=fields["session"],
        role=fields["role"],
        event_type=fields.get("type", "message"),
        at=datetime.fromisoformat(fields["at"]),
        content=fields.get("content", ""),
        task=fields.get("task", ""),
        key=fields.get("key", ""),
        payload=fields.get("payload", {}),
        metadata=fields.get("metadata", {}),
        salt=fields.get("salt", ""),
        body=fields.get("body", ""),
        prev=fields.get("prev", ""),
        digest=fields.get("digest", ""),
        scope=fields.get("scope", ""),
    )


def decode_event(text: str) -> Event:
    """An event from its JSON."""
    return from_fields(json.loads(text))


def checked_event(text: str | bytes) -> tuple[Event, str]:
    """An event from its JSON, and what is wrong with the JSON itself: no digest covers unknown fields."""
    fields = json.loads(text, object_pairs_hook=_Fields)
    event = from_fields(fields)
    if dict(fields) == to_fields(event) and not _Fields.has_duplicate_names(fields):
        return event, ""
    return event, f"event {event.id} contains fields that Engram did not write"


class _Fields(dict[str, Any]):
    """A JSON object that notes whether a name occurs twice: parsers differ in which one they use."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        self.twice = len(self) < len(pairs)

    @classmethod
    def has_duplicate_names(cls, value: Any) -> bool:
        """Whether any object inside a value has a name twice."""
        if isinstance(value, cls):
            return value.twice or any(cls.has_duplicate_names(item) for item in value.values())
        return isinstance(value, list) and any(cls.has_duplicate_names(item) for item in value)


CONVERSATION_PREFIX = "conversation:"
"""The prefix of a conversation's ledger that belongs to a scope and to no session."""


def ledger_scope(store: Store, name: str) -> str:
    """The scope that owns a ledger; "" if it is empty or its owner is unknown."""
    if (task := store.load_record(TaskRun, name)) is not None:
        return task.scope
    last = store.events(name, last=1)
    return ledger_owner(name, None, store.load_record(Session, name), last[0].scope if last else "")


def ledger_owner(name: str, task: TaskRun | None, session: Session | None, last: str = "") -> str:
    """The scope a ledger belongs to: its task's, its session's, its last event's, or the one in its name.

    "" if none is known: the ledger is empty, or was written by an Engram that did not store owners.
    """
    if task is not None:
        return task.scope
    if session is not None and session.scopes:
        return session.scopes[0]
    return last or _named_after(name)


def _named_after(name: str) -> str:
    if not name.startswith(CONVERSATION_PREFIX):
        return ""
    try:
        return parse_scope(name.removeprefix(CONVERSATION_PREFIX))
    except InvalidInput:
        return ""


def new_owner(name: str, owner: str, scope: str) -> str:
    """The owner of new events in a ledger. Raises `Refused` if the writer's scope is not the ledger's.

    A project's session also accepts scopes that the project sees, such as `user`; the events still belong to the project.
    """
    if scope and owner and scope != owner and (is_person(owner) or scope not in visible_scopes([owner])):
        raise Refused(f"{name!r} belongs to another owner; nothing was written. Choose another name for the session")
    return owner or scope or GLOBAL


def sees_ledger(store: Store, name: str, scopes: Collection[str] | None) -> bool:
    """Whether a ledger, and its session or task, is visible from these scopes."""
    return scopes is None or is_scope_visible(scopes, ledger_scope(store, name) or GLOBAL)


LEDGER_OP = "ledger"
BEGUN, PRUNED = "begun", "pruned"
"""Values instead of a digest, after the number 0: a ledger that is about to begin, and one that was pruned."""
TASK_OP = "task"
"""The operation of an entry for a new task or checkpoint: `session` is the task's id, `reason` says which."""
FIRST_LINK = "-"
"""The value instead of a link in the first checkpoint."""
REDACT_OP = "redact"
"""The operation of a redaction: `session` is the ledger, `reason` the ids of the events."""


class LedgerCheckpoint(NamedTuple):
    """A ledger's end. `link` is "" in checkpoints from before links existed."""

    head: Head
    link: str = ""

    @property
    def is_pruned(self) -> bool:
        """Whether the ledger was pruned here."""
        return self.head == (0, PRUNED)


def checkpoint_text(head: Head, link: str) -> str:
    """A checkpoint as an entry's reason."""
    return f"{head.seq} {head.digest} {link}"


def parse_checkpoint(reason: str) -> LedgerCheckpoint | None:
    """The checkpoint in an entry's reason; None if it is malformed."""
    count, _, rest = reason.partition(" ")
    digest, _, link = rest.partition(" ")
    return LedgerCheckpoint(Head(int(count), digest), link) if count.isascii() and count.isdigit() else None


def link_to(session: str, reason: str) -> str:
    """The link by which the next checkpoint refers to this one."""
    return hashlib.sha256(f"{session}\0{reason}".encode("utf-8", "surrogatepass")).hexdigest()[:32]


def redaction_text(ids: Iterable[str]) -> str:
    """A redaction as an entry's reason: the ids of the events, none of their content."""
    return " ".join(sorted(ids))


def missing_events(name: str, checkpoints: Iterable[str], digest_at: Callable[[int], str | None]) -> list[str]:
    """Whether events that a ledger's checkpoints name are missing or replaced; no lines if all are there.

    Every checkpoint counts, not only the last: events appended after a tail was cut off have checkpoints of their own.
    """
    lost = 0
    for reason in checkpoints:
        checkpoint = parse_checkpoint(reason)
        if checkpoint is None:
            return [f"{name}: a checkpoint in the journal was altered"]
        if checkpoint.head.seq and digest_at(checkpoint.head.seq) != checkpoint.head.digest:
            lost = max(lost, checkpoint.head.seq)
    if not lost:
        return []
    return [f"{name}: event {lost} is missing or was altered; events at the end were dropped or replaced"]


def without_checkpoint(name: str, events: Sequence[Event], checkpoints: Sequence[str]) -> list[str]:
    """Whether the journal has no checkpoint of a ledger, although one is written before the first event."""
    if checkpoints or not any(is_marked(event) for event in events):
        return []
    return [
        f"{name}: the journal has no checkpoint of its {len(events)} events; the checkpoints were removed, or the events inserted"
    ]


def broken_links(checkpoints: Iterable[tuple[str, str]]) -> list[str]:
    """Checkpoints, given as ledger and reason, that link to one that is missing or was altered."""
    found = list(checkpoints)
    known = {link_to(session, reason) for session, reason in found} | {FIRST_LINK, ""}
    parsed = [(session, point) for session, reason in found if (point := parse_checkpoint(reason)) is not None]
    return [
        f"journal: the checkpoint before that of event {point.head.seq} of {session} is missing or was altered"
        for session, point in parsed
        if point.link not in known
    ]
