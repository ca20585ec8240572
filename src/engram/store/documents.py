"""Memories and events as documents of the index: their searchable words, by field."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from engram.model.lazy import dataclass
from engram.model.memory import Memory
from engram.model.records import Event
from engram.text.tokens import marked_terms, tokens
from engram.text.translation import translation

MAX_INDEXED_CHARS = 200_000
"""Only this many characters of a text are searchable; all of it is stored. Bounds the work of one write."""


@dataclass(frozen=True, slots=True)
class Document:
    """One row of the index."""

    id: str
    kind: str
    scope: str
    status: str
    type: str
    domain: str
    parent: str
    position: int
    time: datetime | None
    known: datetime | None
    valid_from: datetime | None
    valid_until: datetime | None
    pinned: bool
    hash: str
    statement: str
    about: str
    support: str
    cues: str
    meaning: str
    """The text that is embedded."""
    tags: tuple[str, ...] = ()
    lineage: str = ""
    conflict_key: str = ""
    critical_slot: str = ""
    role: str = ""
    """The speaker of an event."""


def memory_document(memory: Memory) -> Document:
    """A memory's document: its statement; situation, entities, tags and domain; rationale, anchors and validity; cues."""
    from engram.text.content_hash import content_hash
    from engram.text.entities import entities

    statement = memory.statement[:MAX_INDEXED_CHARS]
    named = memory.entities or entities(statement)
    about = [memory.situation, *named, *memory.tags, memory.domain.replace("/", " ")]
    support = [memory.rationale, *(a.snippet for a in memory.anchors), *(a.path for a in memory.anchors)]
    support += [t.date().isoformat() for t in (memory.valid_from, memory.valid_until) if t]
    return Document(
        id=memory.id,
        kind="memory",
        scope=memory.scope,
        status=memory.status,
        type=memory.type,
        domain=memory.domain,
        parent="",
        position=0,
        time=memory.when,
        known=_known_since(memory),
        valid_from=memory.valid_from,
        valid_until=memory.valid_until,
        pinned=memory.pinned,
        hash=content_hash(memory.statement),
        statement=_terms([statement]),
        about=_terms(about),
        support=_terms(support),
        cues=_terms([*memory.cues, translation(statement)]),
        meaning=meaning_of(memory),
        tags=tuple(tag.lower() for tag in memory.tags),
        lineage=memory.lineage,
        conflict_key=memory.conflict_key,
        critical_slot=memory.critical_slot,
    )


def _known_since(memory: Memory) -> datetime | None:
    """When a memory was stored or, if later but before its last change, when it became valid.

    A filter thus sees that it was valid when it was written, even after the clock was set back.
    """
    begun = memory.valid_from is not None and memory.updated is not None and memory.valid_from <= memory.updated
    if begun and memory.created is not None and memory.valid_from is not None:
        return max(memory.created, memory.valid_from)
    return memory.created


def is_redacted(event: Event) -> bool:
    """Whether an event was purged: that removes its content and salt, not its position in the chain."""
    return bool(event.body) and not event.salt


def event_document(event: Event, scope: str) -> Document:
    """An event's document: content, speaker and time. The caller's metadata and key are not searchable.

    `scope` is the ledger's, for events without a scope of their own.
    """
    content = event.content[:MAX_INDEXED_CHARS]
    return Document(
        id=event.id,
        kind="event",
        scope=event.scope or scope,
        status="retired" if is_redacted(event) else "active",
        type=event.event_type,
        domain="",
        parent=event.session,
        position=event.seq,
        time=event.at,
        known=event.at,
        valid_from=None,
        valid_until=None,
        pinned=False,
        hash="",
        statement=marked_terms(content),
        about=_terms([event.role]),
        support="",
        cues=_terms([translation(content)]),
        meaning=event_text(event.role, content),
        role=event.role,
    )


def _terms(texts: Iterable[str]) -> str:
    return " ".join([token for text in texts if text for token in tokens(text)])


def matches_metadata(metadata: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Whether metadata contains every requested value; a list matches by any of its items."""
    return all(_matches(metadata.get(key), value) for key, value in wanted.items())


def record_matches(kind: str, record: str, wanted: str) -> bool:
    """Apply `matches_metadata` to a stored record and a filter, both as JSON; the index calls it for each document."""
    metadata = json.loads(record).get("metadata" if kind == "event" else "data") or {}
    return matches_metadata(metadata, json.loads(wanted))


def _matches(found: Any, wanted: Any) -> bool:
    if _same(found, wanted):
        return True
    return isinstance(found, (list, tuple)) and any(_same(item, wanted) for item in found)


def _same(found: Any, wanted: Any) -> bool:
    """Whether values are equal as in JSON: `true` is not 1."""
    if isinstance(found, bool) != isinstance(wanted, bool):
        return False
    if isinstance(found, Mapping) and isinstance(wanted, Mapping):
        return found.keys() == wanted.keys() and all(_same(found[key], wanted[key]) for key in found)
    if isinstance(found, (list, tuple)) and isinstance(wanted, (list, tuple)):
        return len(found) == len(wanted) and all(map(_same, found, wanted))
    return bool(found == wanted)


def meaning_of(memory: Memory) -> str:
    """The text of a memory that is embedded."""
    return _meaning(memory.statement[:MAX_INDEXED_CHARS], memory.situation)


def stored_meaning(kind: str, record: str) -> str:
    """The text that is embedded, from a document's stored record."""
    fields = json.loads(record)
    if kind == "event":
        return event_text(fields["role"], str(fields.get("content", ""))[:MAX_INDEXED_CHARS])
    return _meaning(str(fields["statement"])[:MAX_INDEXED_CHARS], str(fields.get("situation", "")))


def _meaning(statement: str, situation: str) -> str:
    return f"{statement}\n{situation}" if situation else statement


def meaning_digest(text: str) -> bytes:
    """A digest that shows whether the embedded text has changed."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()


def event_text(role: str, content: str) -> str:
    """The embedded text of an event. Including the speaker gains .007 on LoCoMo."""
    return f"{role}: {content}" if content else ""
