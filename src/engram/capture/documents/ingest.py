"""Ingests long documents into a task's ledger: chunks that quote them exactly, and facts with evidence in the chunks.

A source event describes the document and its digest; one artifact event per chunk has its text, its span and the digest of the
quote; a manifest checkpoint lists them. The key of each event depends on the document and the chunk size, so ingesting it again
after a crash continues where it stopped.
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from engram.capture.add import Adder
from engram.capture.documents.chunk import MAX_TOKENS, Chunk, chunks_of
from engram.capture.documents.facts import facts_of
from engram.capture.documents.read import SkippedFiles, SourceDocument, documents_in, kind_of, read_document
from engram.capture.documents.reingest import Reingest, ReingestResult
from engram.capture.documents.source import SourceText, without
from engram.gates.secrets.scan import redact
from engram.model.errors import InvalidInput
from engram.model.event import DOCUMENT_ROLE, Event
from engram.model.lazy import dataclass
from engram.model.task import Checkpoint
from engram.sessions.observations import make_storable
from engram.sessions.tasks import Tasks
from engram.store.new_events import NewEvent
from engram.store.protocol import Progress, Store
from engram.text.content_hash import quote_hash

if TYPE_CHECKING:
    from engram.llm.model import LanguageModel

MAX_DOCUMENT_CHARS = 64 * 1024 * 1024
MAX_LISTED_IDS = 5
"""Ids or files listed in a warning or an error; the result lists all."""
SLICE = 250
"""Chunks per append; bounds memory use and how long other writers wait."""


@dataclass(frozen=True, slots=True)
class LongInput:
    """The result of ingesting a document."""

    task: str
    source_event: str
    title: str
    kind: str
    chunks: int
    facts: tuple[str, ...]
    """The current facts that the text states, new and known."""
    manifest: Checkpoint
    superseded: tuple[str, ...] = ()
    """Facts of the previous version that this one no longer states; they are superseded."""
    kept_out: tuple[str, ...] = ()
    """Facts that the text states but the owner forgot or corrected; they are not stored again."""
    facts_left_out: int = 0
    """How many facts the limits dropped."""
    warnings: tuple[str, ...] = ()
    """The above as readable sentences, and what the model failed to do."""


class IngestedDocuments(list[LongInput]):
    """The results of ingesting a folder, and the files that were not read: paths, each with the reason."""

    def __init__(self) -> None:
        super().__init__()
        self.skipped = SkippedFiles()

    @property
    def refused(self) -> list[tuple[str, str]]:
        """Files that could not be read."""
        return self.skipped.refused

    @property
    def left_out(self) -> list[tuple[str, str]]:
        """Files that were skipped: hidden, ignored, empty, binary."""
        return self.skipped.left_out


@dataclass(frozen=True, slots=True)
class IngestOptions:
    """How documents are split and read."""

    max_chunk_tokens: int = MAX_TOKENS
    max_facts_per_chunk: int = 6
    extract_with_llm: bool = False
    """The configured model reads every chunk, too, and adds at most `max_facts_per_chunk` facts of each."""
    progress: Progress = lambda *_: None

    def check(self, document: SourceDocument) -> None:
        """Raise `InvalidInput` if a document cannot be ingested in this way."""
        text: object = document.text
        if not isinstance(text, str) or not isinstance(document.title, str):
            raise InvalidInput("a document and its title must be text; decode bytes first, or `ingest` the file")
        if not text.strip():
            raise InvalidInput("the document is empty")
        if "\0" in text:
            raise InvalidInput("the document is binary (it contains NUL bytes); give text")
        if len(text) > MAX_DOCUMENT_CHARS:
            raise InvalidInput(f"the document has {len(text):,} characters (maximum {MAX_DOCUMENT_CHARS:,}); split it")
        if type(self.max_chunk_tokens) is not int or not 20 <= self.max_chunk_tokens <= 8_000:
            raise InvalidInput(f"max_chunk_tokens {self.max_chunk_tokens!r} must be between 20 and 8000")
        if type(self.max_facts_per_chunk) is not int or not 0 <= self.max_facts_per_chunk <= 50:
            raise InvalidInput(f"max_facts_per_chunk {self.max_facts_per_chunk!r} must be between 0 and 50")


@dataclass(slots=True)
class Recorder:
    """Ingests documents."""

    store: Store
    tasks: Tasks
    adder: Adder
    clock: Callable[[], datetime]
    model: "LanguageModel | None" = None

    def record(self, task_id: str, document: SourceDocument, path: str, options: IngestOptions) -> LongInput:
        """Split a document, store its chunks and facts, and write the manifest.

        If the model fails, the facts found by rules are stored and `warnings` says so. Raises `InvalidInput` for a document or
        option that cannot be used, with nothing written.
        """
        task = self.tasks.get(task_id)
        options.check(document)
        model = self._model(options)
        text = make_storable(document.text)
        kind = document.kind or kind_of(text, document.title)
        chunks = chunks_of(text, kind=kind, max_tokens=options.max_chunk_tokens)
        reading = SourceText.of(task, text, _clean(document.title), kind, _clean(path), options.max_chunk_tokens)
        source = self._source(reading, len(chunks))
        events = self._chunks(reading, chunks, source, options.progress)
        pairs = list(zip(chunks, events, strict=True))
        found = facts_of(reading, pairs, options.max_facts_per_chunk, model, options.progress)
        settled = Reingest(self.store, self.adder, self.clock, reading, source.id, pairs).settle(found.facts)
        options.progress("facts", len(settled.facts), len(settled.facts))
        return LongInput(
            task.id, source.id, reading.title, kind, len(chunks), tuple(settled.facts),
            self._manifest(reading, source, events, settled),
            tuple(settled.superseded), tuple(settled.kept_out), found.left_out,
            (*_changes(reading.title, settled), *found.warnings),
        )  # fmt: skip

    def ingest(
        self, place: Path, task: str, begin: Callable[[], str], kind: str, options: IngestOptions
    ) -> IngestedDocuments:
        """Ingest a file or a folder into a task; without one, `begin` starts a task once there is something to read.

        The result lists the files of a folder that were refused or left out. Raises `InvalidInput` if no file can be read.
        """
        self._model(options)
        ingested = IngestedDocuments()
        files = documents_in(place, ingested.skipped) if place.is_dir() else [place]
        for file in files:
            try:
                document = read_document(file, kind=kind)
                options.check(document)
            except InvalidInput as error:
                if file == place:
                    raise
                ingested.refused.append((str(file), str(error)))
                continue
            task = task or begin()
            ingested.append(self.record(task, document, str(file), options))
        if not ingested:
            raise InvalidInput(_nothing_read(place, ingested))
        return ingested

    def _model(self, options: IngestOptions) -> "LanguageModel | None":
        """The model if it is wanted; raises `InvalidInput` if none is configured."""
        if options.extract_with_llm and self.model is None:
            raise InvalidInput("extract_with_llm needs a model, and none is configured; set `model`, or omit it")
        return self.model if options.extract_with_llm else None

    def _source(self, reading: SourceText, chunks: int) -> Event:
        title, kind, length = reading.title, reading.kind, len(reading.text)
        payload = {"title": title, "kind": kind, "path": reading.path, "digest": reading.digest,
                   "characters": length, "chunks": chunks}  # fmt: skip
        content = f"{title or 'A document'} ({kind}, {length} characters, {chunks} chunks)"
        event = NewEvent(
            DOCUMENT_ROLE, content, self.clock(), "observation", reading.task.id, f"{reading.key}/source", payload
        )
        return self.store.append_events(reading.task.id, [event])[0]

    def _chunks(self, reading: SourceText, chunks: Sequence[Chunk], source: Event, progress: Progress) -> list[Event]:
        made: list[Event] = []
        waiting = iter(chunks)
        while some := list(islice(waiting, SLICE)):
            new = [self._chunk(reading, chunk, source) for chunk in some]
            made += self.store.append_events(reading.task.id, new)
            progress("chunks", len(made), len(chunks))
        return made

    def _chunk(self, reading: SourceText, chunk: Chunk, source: Event) -> NewEvent:
        content, cuts = without(reading.text, chunk.start, chunk.end, reading.secrets)
        payload = {
            "source": source.id,
            "title": reading.title,
            "index": chunk.index,
            "heading": redact(chunk.heading)[0],
            "span": [chunk.start, chunk.end],
            # The digest of the redacted text: from a digest of a secret it could be guessed.
            "quote_hash": quote_hash(content),
            # Marks a quote that differs from the source because of its redacted secrets.
            **({"redacted": [[cut.start, cut.end, cut.kind] for cut in cuts]} if cuts else {}),
        }
        return NewEvent(
            DOCUMENT_ROLE, content, self.clock(), "artifact", reading.task.id, f"{reading.key}/{chunk.index}", payload
        )

    def _manifest(
        self, reading: SourceText, source: Event, events: Sequence[Event], settled: ReingestResult
    ) -> Checkpoint:
        task, title, facts = reading.task, reading.title, settled.facts
        known = next(
            (
                c
                for c in self.store.list_records(Checkpoint, of=task.id)
                if c.kind == "manifest" and c.data.get("source") == source.id
            ),
            None,
        )
        if known is not None:
            return known
        return self.tasks.checkpoint(
            task.id,
            f"Ingested {title or 'a document'} (chunks: {len(events)}, facts: {len(facts)})",
            artifacts=[title] if title else [],
            source_event_ids=[source.id],
            kind="manifest",
            data={"source": source.id, "title": title, "kind": reading.kind, "digest": reading.digest, "chunks": len(events),
                  "first": events[0].seq, "last": events[-1].seq, "facts": len(facts), "superseded": len(settled.superseded)},
        )  # fmt: skip


def _clean(text: str) -> str:
    return redact(make_storable(text))[0]


def _changes(title: str, settled: ReingestResult) -> list[str]:
    """Warnings about what a new version changed."""
    name, warnings = title or "the document", []
    if settled.superseded:
        count = "1 fact was" if len(settled.superseded) == 1 else f"{len(settled.superseded):,} facts were"
        warnings.append(
            f"{name} changed: {count} superseded, no longer stated "
            f"({_some(settled.superseded)}); `engram undo ID` restores one"
        )
    if settled.stayed:
        warnings.append(
            f"{name} no longer states {_some(settled.stayed)}; kept as active because you pinned, confirmed or edited them"
        )
    if settled.kept_out:
        warnings.append(f"{name} states what you forgot or corrected: {_some(settled.kept_out)}; not stored again")
    return warnings


def _some(ids: Sequence[str]) -> str:
    more = f" and {len(ids) - MAX_LISTED_IDS:,} more" if len(ids) > MAX_LISTED_IDS else ""
    return ", ".join(ids[:MAX_LISTED_IDS]) + more


def _nothing_read(place: Path, taken: IngestedDocuments) -> str:
    """The error if no file could be read: the first files, each with its reason."""
    found = [*taken.refused, *taken.left_out]
    if not found:
        return f"{place} contains no readable text file: it is empty"
    reasons = "; ".join(reason if path in reason else f"{path}: {reason}" for path, reason in found[:MAX_LISTED_IDS])
    more = f"; and {len(found) - MAX_LISTED_IDS:,} more" if len(found) > MAX_LISTED_IDS else ""
    return f"{place} contains no readable text file: {reasons}{more}"
