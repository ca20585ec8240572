"""A long document in a task's ledger: cut into chunks that quote it exactly, with facts anchored to them.

The source event tells what was read and its digest; one artifact event per chunk holds the chunk's words, its span of characters and
the digest of its quote; a manifest checkpoint lists them. Every event has a key of its own, made from the document and the
way it is cut, so that recording it again goes on where a crash ended it.
"""

import hashlib
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice

from engram.capture.learning import Learner
from engram.capture.longinput.chunking import Chunk, chunks_of
from engram.capture.longinput.documents import Document, look_of
from engram.capture.longinput.facts import Anchored, facts_in
from engram.capture.longinput.quotes import quote_hash
from engram.gates.instructions import injection_problem
from engram.gates.secrets import Secret, find_secrets, redact, secrets_problem
from engram.model.errors import InvalidInput
from engram.model.event import DOCUMENT_ROLE, Event
from engram.model.memory import Evidence, Memory
from engram.model.task import Checkpoint, TaskRun
from engram.sessions.observing import storable
from engram.sessions.tasks import Tasks
from engram.store.protocol import NewEvent, Store

ROLE = DOCUMENT_ROLE
MAX_CHUNK_TOKENS = 700
MAX_FACTS_PER_CHUNK = 6
MOST_FACTS = 2_000
"""Facts kept of one document, spread evenly over it: more would bury what people said."""
_LONGEST_TITLE = 100
MOST_CHARACTERS = 64 * 1024 * 1024
SLICE = 250
"""Chunks per append: bounds memory, and how long other writers wait."""
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class LongInput:
    """What became of a document."""

    task: str
    source_event: str
    title: str
    kind: str
    chunks: int
    facts: tuple[str, ...]
    manifest: Checkpoint


class Ingested(list[LongInput]):
    """What became of the documents of a folder, and of those that could not be read."""

    def __init__(self) -> None:
        super().__init__()
        self.refused: list[tuple[str, str]] = []
        """Paths, each with the reason."""


@dataclass(slots=True)
class Recorder:
    """Records documents."""

    store: Store
    tasks: Tasks
    learner: Learner
    clock: Callable[[], datetime]

    def record(
        self,
        task_id: str,
        document: Document,
        *,
        path: str = "",
        max_chunk_tokens: int = MAX_CHUNK_TOKENS,
        max_facts_per_chunk: int = MAX_FACTS_PER_CHUNK,
        progress: Progress = lambda *_: None,
    ) -> LongInput:
        """Cut a document, write its chunks, anchor its facts, note the manifest."""
        task = self.tasks.get(task_id)
        check_document(document, max_chunk_tokens, max_facts_per_chunk)
        text = storable(document.text)
        kind = document.kind or look_of(text, document.title)
        chunks = chunks_of(text, kind=kind, max_tokens=max_chunk_tokens)
        reading = Reading.of(task, text, _clean(document.title), kind, _clean(path), max_chunk_tokens)
        source = self._source(reading, len(chunks))
        events = self._chunks(reading, chunks, source, progress)
        facts = self._facts(reading, list(zip(chunks, events, strict=True)), max_facts_per_chunk)
        progress("facts", len(facts), len(facts))
        manifest = self._manifest(reading, source, events, facts)
        return LongInput(task.id, source.id, reading.title, kind, len(chunks), tuple(facts), manifest)

    def _source(self, reading: "Reading", chunks: int) -> Event:
        title, kind, length = reading.title, reading.kind, len(reading.text)
        payload = {"title": title, "kind": kind, "path": reading.path, "digest": reading.digest,
                   "characters": length, "chunks": chunks}  # fmt: skip
        said = f"{title or 'A document'} ({kind}, {length} characters, {chunks} chunks)"
        event = NewEvent(ROLE, said, self.clock(), "observation", reading.task.id, f"{reading.key}/source", payload)
        return self.store.append_events(reading.task.id, [event])[0]

    def _chunks(self, reading: "Reading", chunks: Sequence[Chunk], source: Event, progress: Progress) -> list[Event]:
        made: list[Event] = []
        waiting = iter(chunks)
        while some := list(islice(waiting, SLICE)):
            new = [self._chunk(reading, chunk, source) for chunk in some]
            made += self.store.append_events(reading.task.id, new)
            progress("chunks", len(made), len(chunks))
        return made

    def _chunk(self, reading: "Reading", chunk: Chunk, source: Event) -> NewEvent:
        said, cuts = without(reading.text, chunk.start, chunk.end, reading.secrets)
        payload = {
            "source": source.id,
            "title": reading.title,
            "index": chunk.index,
            "heading": redact(chunk.heading)[0],
            "span": [chunk.start, chunk.end],
            # Of what is kept: from the digest of a secret the secret could be guessed.
            "quote_hash": quote_hash(said),
            # Without its secrets a quote is not the source's word for word, and its reader is told.
            **({"redacted": [[cut.start, cut.end, cut.kind] for cut in cuts]} if cuts else {}),
        }
        return NewEvent(ROLE, said, self.clock(), "artifact", reading.task.id, f"{reading.key}/{chunk.index}", payload)

    def _facts(self, reading: "Reading", chunks: Sequence[tuple[Chunk, Event]], most: int) -> list[str]:
        if not most:
            return []
        # A very long document gives fewer facts of each chunk, so that its end has its share.
        each = max(1, min(most, MOST_FACTS // max(1, len(chunks))))
        found = (
            (chunk, fact, event)
            for chunk, event in chunks
            for fact in facts_in(reading.text, chunk, each, kind=reading.kind)
            if _is_harmless(reading, fact)
        )
        drafts = [_draft(reading, chunk, fact, event) for chunk, fact, event in islice(found, MOST_FACTS)]
        named = reading.title[:_LONGEST_TITLE] or reading.task.id
        return [memory.id for memory in self.learner.add_batch(drafts, source=f"document:{named}")]

    def _manifest(self, reading: "Reading", source: Event, events: Sequence[Event], facts: Sequence[str]) -> Checkpoint:
        task, title = reading.task, reading.title
        known = next(
            (c for c in self.store.checkpoints(task.id) if c.kind == "manifest" and c.data.get("source") == source.id),
            None,
        )
        if known is not None:
            return known
        return self.tasks.checkpoint(
            task.id,
            f"Read {title or 'a document'}: {len(events)} chunks, {len(facts)} facts",
            artifacts=[title] if title else [],
            source_event_ids=[source.id],
            kind="manifest",
            data={"source": source.id, "title": title, "kind": reading.kind, "digest": reading.digest, "chunks": len(events),
                  "first": events[0].seq, "last": events[-1].seq, "facts": len(facts)},
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Reading:
    """A document on its way into a ledger."""

    task: TaskRun
    text: str
    title: str
    kind: str
    path: str
    secrets: tuple[Secret, ...]
    digest: str
    """Of the text without its secrets."""
    key: str
    """The same document of the same file, cut the same way, has the same."""

    @classmethod
    def of(cls, task: TaskRun, text: str, title: str, kind: str, path: str, max_chunk_tokens: int) -> "Reading":
        """Looks for secrets in the whole, because a cut may run through one."""
        secrets = tuple(find_secrets(text))
        digest = quote_hash(without(text, 0, len(text), secrets)[0])
        told = "\0".join((digest, title, kind, path, str(max_chunk_tokens)))
        return cls(task, text, title, kind, path, secrets, digest, hashlib.sha256(told.encode()).hexdigest()[:24])


def without(text: str, start: int, end: int, secrets: Sequence[Secret]) -> tuple[str, list[Secret]]:
    """Part of a text with `[redacted:kind]` for what of each secret stands there, and what was taken out."""
    first = bisect_right(secrets, start, key=lambda secret: secret.end)
    pieces, cuts, position = [], [], start
    for secret in islice(secrets, first, None):
        if secret.start >= end:
            break
        cuts.append(Secret(secret.kind, max(start, secret.start), min(end, secret.end)))
        pieces += [text[position : cuts[-1].start], redaction(secret.kind)]
        position = cuts[-1].end
    return "".join([*pieces, text[position:end]]), cuts


def _clean(text: str) -> str:
    return redact(storable(text))[0]


def redaction(kind: str) -> str:
    """What stands for a secret."""
    return f"[redacted:{kind}]"


def _is_harmless(reading: Reading, fact: Anchored) -> bool:
    """Whether a fact holds no secret and commands nobody: a document is evidence, not orders."""
    memory = Memory("", fact.statement)
    cuts = without(reading.text, fact.start, fact.end, reading.secrets)[1]
    return not cuts and not injection_problem(memory) and not secrets_problem(memory)


def check_document(document: Document, max_chunk_tokens: int, max_facts: int) -> None:
    """`InvalidInput` for what cannot be recorded; nothing has been written then."""
    text: object = document.text
    if not isinstance(text, str) or not isinstance(document.title, str):
        raise InvalidInput("a document is text, and so is its title; decode bytes first, or `ingest` the file")
    if not text.strip():
        raise InvalidInput("the document is empty; there is nothing to read")
    if "\0" in text:
        raise InvalidInput("the document is binary (it holds NUL bytes); give text")
    if len(text) > MOST_CHARACTERS:
        raise InvalidInput(f"the document has {len(text)} characters, at most {MOST_CHARACTERS} are read; split it")
    if type(max_chunk_tokens) is not int or not 20 <= max_chunk_tokens <= 8_000:
        raise InvalidInput(f"max_chunk_tokens {max_chunk_tokens!r} must lie between 20 and 8000")
    if type(max_facts) is not int or not 0 <= max_facts <= 50:
        raise InvalidInput(f"max_facts_per_chunk {max_facts!r} must lie between 0 and 50")


def _draft(reading: Reading, chunk: Chunk, fact: Anchored, event: Event) -> dict[str, object]:
    task, title = reading.task, reading.title
    quote = reading.text[fact.start : fact.end]
    # What was taken out before it has moved it.
    start = len(without(reading.text, chunk.start, fact.start, reading.secrets)[0])
    return {
        "statement": fact.statement,
        "type": "semantic",
        "scope": task.scope,
        "task": task.id,
        "context": f"{title}: {event.payload['heading']}".strip(": "),
        "evidence": [Evidence(event.id, (start, start + len(quote)), quote_hash(quote))],
    }
