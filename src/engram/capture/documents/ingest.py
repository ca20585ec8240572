"""Ingests long documents into a task's ledger: chunks that quote them exactly, and facts with evidence in the chunks.

A source event describes the document and its digest; one artifact event per chunk has its text, its span and the digest of the
quote; a manifest checkpoint lists them. The key of each event depends on the document and the chunk size, so ingesting it again
after a crash continues where it stopped.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from engram.capture.documents.chunk import Chunk, chunks_of
from engram.capture.documents.read import Skipped, SourceDocument, documents_in, kind_of, read_document
from engram.capture.documents.reingest import Reingest, ReingestResult
from engram.capture.documents.source import MOST_FACTS, Chunks, DocumentFacts, SourceText, stated_in, without
from engram.capture.learn import Learner
from engram.gates.secrets.scan import redact
from engram.model.errors import InvalidInput
from engram.model.event import DOCUMENT_ROLE, Event
from engram.model.task import Checkpoint
from engram.sessions.observations import storable
from engram.sessions.tasks import Tasks
from engram.store.protocol import NewEvent, Store
from engram.text.content_hash import quote_hash

if TYPE_CHECKING:
    from engram.llm.model import LanguageModel

ROLE = DOCUMENT_ROLE
MAX_CHUNK_TOKENS = 700
MAX_FACTS_PER_CHUNK = 6
MOST_CHARACTERS = 64 * 1024 * 1024
SHOWN = 5
"""Ids or files listed in a warning or an error; the result lists all."""
SLICE = 250
"""Chunks per append; bounds memory use and how long other writers wait."""
Progress = Callable[[str, int, int], None]


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


class Ingested(list[LongInput]):
    """The results of ingesting a folder, and the files that were not read: paths, each with the reason."""

    def __init__(self) -> None:
        super().__init__()
        self.skipped = Skipped()

    @property
    def refused(self) -> list[tuple[str, str]]:
        """Files that could not be read."""
        return self.skipped.refused

    @property
    def left_out(self) -> list[tuple[str, str]]:
        """Files that were skipped: hidden, ignored, empty, binary."""
        return self.skipped.left_out


@dataclass(slots=True)
class Recorder:
    """Ingests documents."""

    store: Store
    tasks: Tasks
    learner: Learner
    clock: Callable[[], datetime]
    model: "LanguageModel | None" = None

    def record(
        self,
        task_id: str,
        document: SourceDocument,
        *,
        path: str = "",
        max_chunk_tokens: int = MAX_CHUNK_TOKENS,
        max_facts_per_chunk: int = MAX_FACTS_PER_CHUNK,
        extract_with_llm: bool = False,
        progress: Progress = lambda *_: None,
    ) -> LongInput:
        """Split a document, store its chunks and facts, and write the manifest.

        With `extract_with_llm` the configured model reads every chunk too and adds at most `max_facts_per_chunk` facts of each.
        If it fails, the facts found by rules are stored and `warnings` says so. Raises `InvalidInput` for a document or limit
        that cannot be used, with nothing written.
        """
        task = self.tasks.get(task_id)
        check_document(document, max_chunk_tokens, max_facts_per_chunk)
        self.check_model(extract_with_llm)
        text = storable(document.text)
        kind = document.kind or kind_of(text, document.title)
        chunks = chunks_of(text, kind=kind, max_tokens=max_chunk_tokens)
        reading = SourceText.of(task, text, _clean(document.title), kind, _clean(path), max_chunk_tokens)
        source = self._source(reading, len(chunks))
        events = self._chunks(reading, chunks, source, progress)
        pairs = list(zip(chunks, events, strict=True))
        facts, notes = self._facts(reading, pairs, max_facts_per_chunk, extract_with_llm, progress)
        settled = Reingest(self.store, self.learner, self.clock).settle(reading, source.id, pairs, facts.facts)
        progress("facts", len(settled.facts), len(settled.facts))
        return LongInput(
            task.id, source.id, reading.title, kind, len(chunks), tuple(settled.facts),
            self._manifest(reading, source, events, settled),
            tuple(settled.superseded), tuple(settled.kept_out), facts.beyond_chunk + facts.beyond_document,
            (*_changes(reading.title, settled), *_limits(facts, max_facts_per_chunk), *notes),
        )  # fmt: skip

    def check_model(self, wanted: bool) -> None:
        """Raise `InvalidInput` if a model is wanted and none is configured."""
        if wanted and self.model is None:
            raise InvalidInput("extract_with_llm needs a model, and none is configured; set `model`, or omit it")

    def _facts(
        self, reading: SourceText, chunks: Chunks, most: int, with_model: bool, progress: Progress
    ) -> tuple[DocumentFacts, list[str]]:
        """The facts found by rules and, if wanted, by the model, with its warnings."""
        by_rules = stated_in(reading, chunks, most)
        if not with_model or self.model is None or not most:
            return by_rules, []
        from engram.capture.documents.model_facts import facts_by_model

        by_model = facts_by_model(self.model, chunks, by_rules.facts, most, progress)
        return replace(by_rules, facts=[*by_rules.facts, *by_model.facts]), by_model.warnings

    def _source(self, reading: SourceText, chunks: int) -> Event:
        title, kind, length = reading.title, reading.kind, len(reading.text)
        payload = {"title": title, "kind": kind, "path": reading.path, "digest": reading.digest,
                   "characters": length, "chunks": chunks}  # fmt: skip
        content = f"{title or 'A document'} ({kind}, {length} characters, {chunks} chunks)"
        event = NewEvent(ROLE, content, self.clock(), "observation", reading.task.id, f"{reading.key}/source", payload)
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
            ROLE, content, self.clock(), "artifact", reading.task.id, f"{reading.key}/{chunk.index}", payload
        )

    def _manifest(
        self, reading: SourceText, source: Event, events: Sequence[Event], settled: ReingestResult
    ) -> Checkpoint:
        task, title, facts = reading.task, reading.title, settled.facts
        known = next(
            (c for c in self.store.checkpoints(task.id) if c.kind == "manifest" and c.data.get("source") == source.id),
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
    return redact(storable(text))[0]


def check_document(document: SourceDocument, max_chunk_tokens: int, max_facts: int) -> None:
    """Raise `InvalidInput` if a document cannot be ingested."""
    text: object = document.text
    if not isinstance(text, str) or not isinstance(document.title, str):
        raise InvalidInput("a document and its title must be text; decode bytes first, or `ingest` the file")
    if not text.strip():
        raise InvalidInput("the document is empty")
    if "\0" in text:
        raise InvalidInput("the document is binary (it contains NUL bytes); give text")
    if len(text) > MOST_CHARACTERS:
        raise InvalidInput(f"the document has {len(text):,} characters (maximum {MOST_CHARACTERS:,}); split it")
    if type(max_chunk_tokens) is not int or not 20 <= max_chunk_tokens <= 8_000:
        raise InvalidInput(f"max_chunk_tokens {max_chunk_tokens!r} must be between 20 and 8000")
    if type(max_facts) is not int or not 0 <= max_facts <= 50:
        raise InvalidInput(f"max_facts_per_chunk {max_facts!r} must be between 0 and 50")


def _changes(title: str, settled: ReingestResult) -> list[str]:
    """Warnings about what a new version changed."""
    name, warnings = title or "the document", []
    if settled.superseded:
        warnings.append(
            f"{name} changed: {_facts(settled.superseded)} superseded, no longer stated "
            f"({_some(settled.superseded)}); `engram undo ID` restores one"
        )
    if settled.stayed:
        warnings.append(
            f"{name} no longer states {_some(settled.stayed)}; kept as active because you pinned, confirmed or edited them"
        )
    if settled.kept_out:
        warnings.append(f"{name} states what you forgot or corrected: {_some(settled.kept_out)}; not stored again")
    return warnings


def _limits(facts: DocumentFacts, most: int) -> list[str]:
    """Warnings about the facts that the limits dropped."""
    warnings = []
    if facts.beyond_chunk:
        warnings.append(
            f"{facts.beyond_chunk:,} more facts were not stored (maximum {most} per chunk; raise it with max_facts_per_chunk or "
            "--facts); the chunks contain the full text"
        )
    if facts.beyond_document:
        warnings.append(
            f"{facts.beyond_document:,} more facts were not stored (maximum {MOST_FACTS:,} per document, spread evenly); the "
            "chunks contain the full text"
        )
    return warnings


def _facts(ids: Sequence[str]) -> str:
    return "1 fact was" if len(ids) == 1 else f"{len(ids):,} facts were"


def _some(ids: Sequence[str]) -> str:
    more = f" and {len(ids) - SHOWN:,} more" if len(ids) > SHOWN else ""
    return ", ".join(ids[:SHOWN]) + more


# -- files and folders


@dataclass(frozen=True, slots=True)
class FileIngest:
    """Ingests files and folders with the same options."""

    recorder: Recorder
    kind: str = ""
    max_chunk_tokens: int = MAX_CHUNK_TOKENS
    max_facts_per_chunk: int = MAX_FACTS_PER_CHUNK
    extract_with_llm: bool = False
    progress: Progress = lambda *_: None

    def ingest(self, place: Path, task: str, begin: Callable[[], str]) -> Ingested:
        """Ingest a file or a folder into a task; without one, `begin` starts a task once there is something to read.

        The result lists the files of a folder that were refused or left out. Raises `InvalidInput` if no file can be read.
        """
        self.recorder.check_model(self.extract_with_llm)
        taken = Ingested()
        for file in self._files(place, taken):
            document = self._read(file, taken, single=file == place)
            if document is None:
                continue
            task = task or begin()
            taken.append(
                self.recorder.record(
                    task,
                    document,
                    path=str(file),
                    max_chunk_tokens=self.max_chunk_tokens,
                    max_facts_per_chunk=self.max_facts_per_chunk,
                    extract_with_llm=self.extract_with_llm,
                    progress=self.progress,
                )
            )
        if not taken:
            raise InvalidInput(_nothing_read(place, taken))
        return taken

    def _files(self, place: Path, taken: Ingested) -> Iterable[Path]:
        return documents_in(place, skipped=taken.skipped) if place.is_dir() else [place]

    def _read(self, file: Path, taken: Ingested, *, single: bool) -> SourceDocument | None:
        try:
            document = read_document(file, kind=self.kind)
            check_document(document, self.max_chunk_tokens, self.max_facts_per_chunk)
        except InvalidInput as error:
            if single:
                raise
            taken.refused.append((str(file), str(error)))
            return None
        return document


def _nothing_read(place: Path, taken: Ingested) -> str:
    """The error if no file could be read: the first files, each with its reason."""
    found = [*taken.refused, *taken.left_out]
    if not found:
        return f"{place} contains no readable text file: it is empty"
    reasons = "; ".join(reason if path in reason else f"{path}: {reason}" for path, reason in found[:SHOWN])
    more = f"; and {len(found) - SHOWN:,} more" if len(found) > SHOWN else ""
    return f"{place} contains no readable text file: {reasons}{more}"
