"""A document in the store: its text without secrets, and its versions.

A document is identified by its scope and its file, or its text if it has no file. Its small ledger has two events per version: one when
ingestion starts, one with the facts when it ends. A version without the second was interrupted.
"""

import hashlib
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import islice
from typing import Any

from engram.capture.documents.chunk import Chunk
from engram.gates.secrets.scan import Secret, find_secrets
from engram.model.event import DOCUMENT_ROLE, Event
from engram.model.lazy import dataclass
from engram.model.memory import Evidence, Memory
from engram.model.task import TaskRun
from engram.store.new_events import NewEvent
from engram.store.protocol import Filters, Store
from engram.text.content_hash import quote_hash

SOURCE = DOCUMENT = "document:"
"""The prefix of the source of memories that come from a document, and of a document's ledger."""
FACT_TYPE = "semantic"
"""The type of facts from documents."""
PAGE = 5_000
"""Memories listed at a time."""
_LONGEST_TITLE = 100

MAX_SECRETS = 500
"""Secrets of a document whose spans are stored one by one."""
DENSE_CHARS = 100
"""Characters between two secrets of a document with more of them that are redacted as well."""
Chunks = Sequence[tuple[Chunk, Event]]
"""The chunks of a document, each with the event that stores it."""


@dataclass(frozen=True, slots=True)
class SourceText:
    """A document to be ingested into a task's ledger."""

    task: TaskRun
    text: str
    title: str
    kind: str
    path: str
    secrets: tuple[Secret, ...]
    digest: str
    """The digest of the text without its secrets."""
    key: str
    """Identifies the document, its file and its chunk size; the prefix of its events' keys."""

    @classmethod
    def of(cls, task: TaskRun, text: str, title: str, kind: str, path: str, max_chunk_tokens: int) -> "SourceText":
        """Find the secrets in the whole text, because a chunk boundary may run through one."""
        secrets = tuple(_join_dense(find_secrets(text)))
        digest = quote_hash(without(text, 0, len(text), secrets)[0])
        identity = "\0".join((digest, title, kind, path, str(max_chunk_tokens)))
        return cls(task, text, title, kind, path, secrets, digest, hashlib.sha256(identity.encode()).hexdigest()[:24])

    @property
    def source(self) -> str:
        """The source of the memories that come from it."""
        return f"{SOURCE}{self.title[:_LONGEST_TITLE] or self.task.id}"

    def evidence(self, chunk: Chunk, event: Event, start: int, end: int) -> Evidence | None:
        """The evidence for a span of the text within its chunk; None if the span contains a secret."""
        if without(self.text, start, end, self.secrets)[1]:
            return None
        # Redaction before the span has moved it.
        first = len(without(self.text, chunk.start, start, self.secrets)[0])
        return Evidence(event.id, (first, first + end - start), quote_hash(self.text[start:end]))


def _join_dense(secrets: Sequence[Secret]) -> Iterator[Secret]:
    """The secrets; of a text with more than `MAX_SECRETS`, those close to each other are one."""
    last: Secret | None = None
    for secret in secrets:
        if last is not None and (len(secrets) <= MAX_SECRETS or secret.start - last.end > DENSE_CHARS):
            yield last
            last = None
        last = secret if last is None else Secret(last.kind, last.start, secret.end)
    if last is not None:
        yield last


def without(text: str, start: int, end: int, secrets: Sequence[Secret]) -> tuple[str, list[Secret]]:
    """A span of a text with the secrets in it replaced by `[redacted:kind]`, and the spans that were replaced."""
    first = bisect_right(secrets, start, key=lambda secret: secret.end)
    pieces, cuts, position = [], [], start
    for secret in islice(secrets, first, None):
        if secret.start >= end:
            break
        cuts.append(Secret(secret.kind, max(start, secret.start), min(end, secret.end)))
        pieces += [text[position : cuts[-1].start], redaction(secret.kind)]
        position = cuts[-1].end
    return "".join([*pieces, text[position:end]]), cuts


def redaction(kind: str) -> str:
    """The replacement for a secret."""
    return f"[redacted:{kind}]"


# -- versions


@dataclass(frozen=True, slots=True)
class Version:
    """One ingestion: its source event, the digest of its text, and its facts, each with the id of its chunk."""

    source: str
    task: str
    digest: str
    facts: tuple[tuple[str, str], ...] | None = None
    """None if the ingestion was interrupted."""


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
        complete = {version.source for version in found if version.facts is not None}
        return [version for version in found if version.facts is not None or version.source not in complete]

    def latest(self) -> Version | None:
        """The last complete version."""
        newest = [_version(event) for event in self.store.events(self.ledger, last=1)]
        if all(version.facts is not None for version in newest):  # no interrupted ingestion since
            return newest[0] if newest else None
        return next((version for version in reversed(self.all()) if version.facts is not None), None)

    def append(self, version: Version, now: datetime) -> None:
        """Record that the ingestion of a version has started, or with its facts that it has ended."""
        payload: dict[str, Any] = {"source": version.source, "task": version.task, "digest": version.digest}
        content = "A version of a document is read"
        if version.facts is not None:
            content = f"A version of a document was read: {len(version.facts)} facts"
            payload["facts"] = [list(pair) for pair in version.facts]
        event = NewEvent(DOCUMENT_ROLE, content, now, "observation", payload=payload)
        self.store.append_events(self.ledger, [event], scope=self.scope)

    def facts(self, version: Version) -> Sequence[tuple[str, str]]:
        """The facts of a version with their chunks; for an interrupted one they are searched in its scope."""
        if version.facts is not None:
            return version.facts
        chunks = {e.id for e in self.store.events(version.task) if e.payload.get("source") == version.source}
        return [
            (memory.id, evidence.event)
            for memory in facts_from_documents(self.store, self.scope, None)
            for evidence in memory.evidence
            if evidence.event in chunks
        ]


def facts_from_documents(store: Store, scope: str, statuses: tuple[str, ...] | None) -> list[Memory]:
    """The facts from documents in a scope, with these statuses."""
    filters = Filters(scopes=(scope,), statuses=statuses, types=(FACT_TYPE,))
    found: list[Memory] = []
    for start in range(0, store.count(filters), PAGE):
        found += [m for m in store.listing(filters, PAGE, start) if m.source.startswith(SOURCE)]
    return found


def _version(event: Event) -> Version:
    source, task, digest = (str(event.payload.get(name, "")) for name in ("source", "task", "digest"))
    facts = event.payload.get("facts")
    pairs = None if facts is None else tuple((str(fact), str(chunk)) for fact, chunk in facts)
    return Version(source, task, digest, pairs)
