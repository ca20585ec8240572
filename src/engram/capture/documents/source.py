"""A document to be ingested: its text, the secrets in it, and the facts it states with their evidence."""

import hashlib
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TypeVar

from engram.capture.documents.chunk import Chunk
from engram.capture.documents.facts import Anchored, by_weight
from engram.gates.instructions import injection_problem
from engram.gates.secrets.scan import Secret, find_secrets, secrets_problem
from engram.model.event import Event
from engram.model.memory import Evidence, Memory
from engram.model.task import TaskRun
from engram.text.content_hash import quote_hash

MOST_FACTS = 2_000
"""Facts stored per document, spread evenly over it; more would bury what people said."""
SOURCE = "document:"
"""The prefix of the source of memories that come from a document."""
_LONGEST_TITLE = 100

T = TypeVar("T")
Chunks = Sequence[tuple[Chunk, Event]]


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
        secrets = tuple(find_secrets(text))
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
        # What was taken out before them has moved them.
        first = len(without(self.text, chunk.start, start, self.secrets)[0])
        return Evidence(event.id, (first, first + end - start), quote_hash(self.text[start:end]))


@dataclass(frozen=True, slots=True)
class StatedFact:
    """A fact that a document states, and its evidence in a chunk."""

    statement: str
    evidence: Evidence
    heading: str
    confidence: float | None = None
    """None means the default of a trusted program's memory."""

    def draft(self, reading: SourceText) -> dict[str, object]:
        """The fact as a memory to be added."""
        sure = {} if self.confidence is None else {"confidence": self.confidence}
        return {
            "statement": self.statement,
            "type": "semantic",
            "scope": reading.task.scope,
            "task": reading.task.id,
            "context": f"{reading.title}: {self.heading}".strip(": "),
            "evidence": [self.evidence],
            **sure,
        }


@dataclass(frozen=True, slots=True)
class DocumentFacts:
    """The facts of a document within the limits, and how many each limit dropped."""

    facts: list[StatedFact]
    beyond_chunk: int = 0
    beyond_document: int = 0


def stated_in(reading: SourceText, chunks: Chunks, most: int) -> DocumentFacts:
    """The weightiest facts of each chunk by rules: at most `most` per chunk, and `MOST_FACTS` in all."""
    if not most:
        return DocumentFacts([])
    # A very long document yields fewer facts per chunk, so that its end is covered too.
    each = max(1, min(most, MOST_FACTS // max(1, len(chunks))))
    found: list[tuple[Chunk, Event, Anchored]] = []
    beyond_chunk = beyond_document = 0
    for chunk, event in chunks:
        weighed = by_weight(reading.text, chunk, kind=reading.kind)
        kept = sorted(weighed[:each], key=lambda fact: fact.start)
        found += [(chunk, event, fact) for fact in kept]
        beyond_chunk += max(0, len(weighed) - most)
        beyond_document += max(0, min(most, len(weighed)) - each)
    facts = [stated for place in evenly(found) if (stated := _stated(reading, *place)) is not None]
    return DocumentFacts(facts, beyond_chunk, beyond_document + max(0, len(found) - MOST_FACTS))


def evenly(found: Sequence[T]) -> Sequence[T]:
    """At most `MOST_FACTS` items, at even distances."""
    if len(found) <= MOST_FACTS:
        return found
    return [found[place * len(found) // MOST_FACTS] for place in range(MOST_FACTS)]


def _stated(reading: SourceText, chunk: Chunk, event: Event, fact: Anchored) -> StatedFact | None:
    evidence = reading.evidence(chunk, event, fact.start, fact.end)
    if evidence is None or not is_harmless(fact.statement):
        return None
    return StatedFact(fact.statement, evidence, str(event.payload["heading"]))


def is_harmless(statement: str) -> bool:
    """Whether a fact contains no secret and no instruction to an agent."""
    memory = Memory("", statement)
    return not injection_problem(memory) and not secrets_problem(memory)


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
