"""The versions of one document: what each reading of it drew, in a small ledger of the document's own.

A document is known by its file, or by its text where it came from none, within a scope. Its ledger has two events for each version: one
when the reading begins, one with the facts when it ends. A version that never ended was broken off.
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
"""The type of what is drawn from documents."""
DOCUMENT = "document:"
"""How the ledger of a document begins."""
PAGE = 5_000
"""Memories read at a time where many are looked through."""


@dataclass(frozen=True, slots=True)
class Version:
    """One reading: its source event, the digest of its text, and its facts, each with the chunk it stands in."""

    source: str
    task: str
    digest: str
    facts: tuple[tuple[str, str], ...] = ()
    whole: bool = True


@dataclass(frozen=True, slots=True)
class Versions:
    """What is known of a document's earlier readings."""

    store: Store
    ledger: str
    scope: str

    @classmethod
    def of(cls, store: Store, scope: str, path: str, digest: str) -> "Versions":
        """Those of a file, or of a text that came from none."""
        name = hashlib.sha256("\0".join((scope, path or digest)).encode()).hexdigest()[:24]
        return cls(store, f"{DOCUMENT}{name}", scope)

    def all(self) -> list[Version]:
        """Every version, the oldest first; one that was broken off and read again later counts once."""
        found = [_version(event) for event in self.store.events(self.ledger)]
        ended = {version.source for version in found if version.whole}
        return [version for version in found if version.whole or version.source not in ended]

    def latest(self) -> Version | None:
        """The last version read to its end."""
        newest = [_version(event) for event in self.store.events(self.ledger, last=1)]
        if all(version.whole for version in newest):  # unless a reading was broken off since
            return newest[0] if newest else None
        return next((version for version in reversed(self.all()) if version.whole), None)

    def begin(self, reading: SourceText, source: str, now: datetime) -> None:
        """Note that a version is being read."""
        self._append("A version of a document is read", Version(source, reading.task.id, reading.digest), now)

    def end(self, version: Version, now: datetime) -> None:
        """Note what was drawn from it."""
        self._append(f"A version of a document was read: {len(version.facts)} facts", version, now, version.facts)

    def _append(
        self, said: str, version: Version, now: datetime, facts: Sequence[tuple[str, str]] | None = None
    ) -> None:
        payload: dict[str, Any] = {"source": version.source, "task": version.task, "digest": version.digest}
        if facts is not None:
            payload["facts"] = [list(pair) for pair in facts]
        event = NewEvent(DOCUMENT_ROLE, said, now, "observation", payload=payload)
        self.store.append_events(self.ledger, [event], scope=self.scope)

    def drawn(self, version: Version) -> list[tuple[str, str]]:
        """The facts of a version; those of one broken off are looked for among all of its scope."""
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
    """The facts of a scope, of these statuses, that came out of documents."""
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
