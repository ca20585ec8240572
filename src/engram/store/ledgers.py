"""The chain of a session's events, alike on every backend.

`body` is a salted digest of what was said; `digest` covers `prev`, the event's place and `body`. Purging an event takes
its content and salt away and leaves `body`, so the chain still verifies and the words cannot be guessed from it.
"""

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from engram.model.event import Event
from engram.store.protocol import NewEvent


def following_on(
    head: Event | None, session: str, events: Sequence[NewEvent], token: Callable[[int], str]
) -> list[Event]:
    """New events with id, number and digests, chained to the last event of their session."""
    first = head.seq + 1 if head else 1
    made = [
        Event(
            id=f"EVT-{event.at.astimezone(UTC).strftime('%Y%m%d')}-{token(6)}",
            session=session,
            seq=first + i,
            role=event.role,
            content=event.content,
            at=event.at,
            event_type=event.event_type,
            task=event.task,
            key=event.key,
            payload=event.payload,
            metadata=event.metadata,
        )
        for i, event in enumerate(events)
    ]
    return chained(made, head.digest if head else "")


def unrepeated(events: Sequence[NewEvent], known: Iterable[str]) -> list[int]:
    """Places of the events that are new: those without a key, and the first of each key not known yet."""
    seen = set(known)
    fresh = []
    for i, event in enumerate(events):
        if event.key and event.key in seen:
            continue
        seen.add(event.key)
        fresh.append(i)
    return fresh


def problems_of(events: Iterable[Event], name: str) -> list[str]:
    """What is wrong with a chain: altered, reordered or dropped events. `name` is what its owner knows it by."""
    problems = []
    prev, seq = "", 0
    for event in events:
        seq += 1
        if event.seq != seq:
            problems.append(f"{name}: event {event.id} has number {event.seq} where {seq} was due")
            seq = event.seq
        if event.prev != prev:
            problems.append(f"{name}: event {event.id} does not follow the one before it")
        if event.salt and event.body != body_digest(event):
            problems.append(f"{name}: the content of event {event.id} was altered")
        if event.digest != chain_digest(event):
            problems.append(f"{name}: event {event.id} was altered")
        prev = event.digest
    return problems


ANCHOR = "ledger"
"""The journal's entry that says where a ledger ends: `session` is its name, `reason` its count and the head's digest."""
PRUNED = "0 pruned"


def anchor_of(head: Event) -> str:
    """What the journal keeps of a ledger's end."""
    return f"{head.seq} {head.digest}"


def missing_events(name: str, anchors: Iterable[str], digest_at: Callable[[int], str | None]) -> list[str]:
    """What the ends the journal has seen tell of a ledger: nothing, or that events are gone or others stand in their place.

    Every one counts, not the last alone: what is appended after a tail was cut off has an end of its own.
    """
    lost = 0
    for anchor in anchors:
        count, _, digest = anchor.partition(" ")
        if not (count.isascii() and count.isdigit()):
            return [f"{name}: the journal's word on where it ends was altered"]
        if anchor != PRUNED and digest_at(int(count)) != digest:
            lost = max(lost, int(count))
    if not lost:
        return []
    return [f"{name}: event {lost} was written and is not there as it was; events at the end were dropped or replaced"]


def blanked(event: Event) -> Event:
    """An event without what was said; `body` and `digest` stay."""
    return replace(event, content="", payload={}, metadata={}, key="", salt="")


def chained(events: Sequence[Event], prev: str) -> list[Event]:
    """The events with salt, body and digest filled in, each following the one before."""
    result = []
    for event in events:
        event = replace(event, salt=os.urandom(16).hex(), prev=prev)
        event = replace(event, body=body_digest(event))
        event = replace(event, digest=chain_digest(event))
        prev = event.digest
        result.append(event)
    return result


def body_digest(event: Event) -> str:
    """Salted digest of what was said."""
    said = [event.content, event.payload, event.metadata, event.key]
    return _sha256(event.salt, json.dumps(said, ensure_ascii=False, sort_keys=True, separators=(",", ":")))


def chain_digest(event: Event) -> str:
    """Digest of an event's place in its chain and its body."""
    at = event.at.astimezone(UTC).isoformat()
    return _sha256(event.prev, event.id, event.session, str(event.seq), event.role, event.event_type, at, event.body)


def _sha256(*parts: str) -> str:
    return hashlib.sha256("\x00".join(parts).encode("utf-8", "surrogatepass")).hexdigest()


def to_fields(event: Event) -> dict[str, Any]:
    """An event as JSON-safe data; what is empty is left out."""
    fields: dict[str, Any] = {
        "id": event.id,
        "seq": event.seq,
        "session": event.session,
        "role": event.role,
        "type": event.event_type,
        "at": event.at.astimezone(UTC).isoformat().replace("+00:00", "Z"),
        "content": event.content,
    }
    for name in ("task", "key", "payload", "metadata", "salt", "body", "prev", "digest"):
        value = getattr(event, name)
        if value:
            fields[name] = value
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
    )


def decode_event(text: str) -> Event:
    """An event from its JSON."""
    return from_fields(json.loads(text))
