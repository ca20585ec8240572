"""The versions of a document: which facts each ingestion stored, in a small ledger per document.

A document is identified by its scope and its file, or its text if it has no file. Its ledger has two events per version: one when
ingestion starts, one with the facts when it ends. A version without the second was interrupted.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from engram.capture.documents.source import SOURCE, SourceText
from engram.model.event import DOCUMENT_ROLE, Event
from engram.model.memory import Memory
from engram.store.protocol import Filters, NewEvent, Store

FACT_TYPE = "semantic"
"""The type of facts from documents."""
DOCUMENT = "document:"
"""The prefix of a document's ledger."""
PAGE = 5_000
"""Memories listed at a time."""


@dataclass(frozen=True, slots=True)
class Version:
    """One ingestion: its source event, the digest of its text, and its facts, each with the id of its chunk."""

    source: str
    task: str
    digest: str
    facts: tuple[tuple[str, str], ...] = ()
    whole: bool = True


@dataclass(frozen=True, slots=True)
class Versions:
    """The earlier ingestions of a document."""

    store: Store
    ledger: str
    scope: str

    @classmethod
    def of(cls, store: Store, scope: str, path: str, digest: str) -> "Versions":
        """The versions of a file, or of a text without a file."""
        name = hashlib.sha256("\0".join((scope, path or digest)).encode()).hexdigest()[:24]
        return cls(store, f"{DOCUMENT}{name}", scope)

    def all(self) -> list[Version]:
        """Every version, oldest first; one that was interrupted and repeated counts once."""
        found = [_version(event) for event in self.store.events(self.ledger)]
        ended = {version.source for version in found if version.whole}
        return [version for version in found if version.whole or version.source not in ended]

    def latest(self) -> Version | None:
        """The last complete version."""
        newest = [_version(event) for event in self.store.events(self.ledger, last=1)]
        if all(version.whole for version in newest):  # no interrupted ingestion since
            return newest[0] if newest else None
        return next((version for version in reversed(self.all()) if version.whole), None)

    def begin(self, reading: SourceText, source: str, now: datetime) -> None:
        """Record that ingestion of a version has started."""
        self._append("A version of a document is read", Version(source, reading.task.id, reading.digest), now)

    def end(self, version: Version, now: datetime) -> None:
        """Record the facts of a version."""
        self._append(f"A version of a document was read: {len(version.facts)} facts", version, now, version.facts)

    def _append(
        self, content: str, version: Version, now: datetime, facts: Sequence[tuple[str, str]] | None = None
    ) -> None:
        payload: dict[str, Any] = {"source": version.source, "task": version.task, "digest": version.digest}
        if facts is not None:
            payload["facts"] = [list(pair) for pair in facts]
        event = NewEvent(DOCUMENT_ROLE, content, now, "observation", payload=payload)
        self.store.append_events(self.ledger, [event], scope=self.scope)

    def drawn(self, version: Version) -> list[tuple[str, str]]:
        """The facts of a version; for an interrupted one they are searched in its scope."""
        if version.whole:
            return list(version.facts)
        chunks = {e.id for e in self.store.events(version.task) if e.payload.get("source") == version.source}
        return [
            (memory.id, evidence.event)
            for memory in drawn_from_documents(self.store, self.scope, None)
            for evidence in memory.evidence
            if evidence.event in chunks
        ]


def drawn_from_documents(store: Store, scope: str, statuses: tuple[str, ...] | None) -> list[Memory]:
    """The facts from documents in a scope, with these statuses."""
    filters = Filters(scopes=(scope,), statuses=statuses, types=(FACT_TYPE,))
    found: list[Memory] = []
    for start in range(0, store.count(filters), PAGE):
        found += [m for m in store.listing(filters, PAGE, start) if m.source.startswith(SOURCE)]
    return found


def _version(event: Event) -> Version:
    payload = event.payload
    facts = payload.get("facts")
    return Version(
        str(payload.get("source", "")),
        str(payload.get("task", "")),
        str(payload.get("digest", "")),
        tuple((str(fact), str(chunk)) for fact, chunk in facts or ()),
        facts is not None,
    )
