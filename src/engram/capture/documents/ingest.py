"""A long document in a task's ledger: cut into chunks that quote it exactly, with facts anchored to them.

The source event tells what was read and its digest; one artifact event per chunk holds the chunk's words, its span of characters and
the digest of its quote; a manifest checkpoint lists them. Every event has a key of its own, made from the document and the
way it is cut, so that recording it again goes on where a crash ended it.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from engram.capture.documents.chunk import Chunk, chunks_of
from engram.capture.documents.quotes import quote_hash
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

if TYPE_CHECKING:
    from engram.llm.model import LanguageModel

ROLE = DOCUMENT_ROLE
MAX_CHUNK_TOKENS = 700
MAX_FACTS_PER_CHUNK = 6
MOST_CHARACTERS = 64 * 1024 * 1024
SHOWN = 5
"""Ids a warning names; the answer has all."""
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
    """In force, and stated by the text: new ones, and those known before."""
    manifest: Checkpoint
    superseded: tuple[str, ...] = ()
    """Facts of the version before that this one no longer states; they are out of force."""
    kept_out: tuple[str, ...] = ()
    """Facts the text states and the owner forgot or corrected; they stay out."""
    facts_left_out: int = 0
    """How many more facts the text states than the limits let in."""
    warnings: tuple[str, ...] = ()
    """All of that, and what the model could not do, in words."""


class Ingested(list[LongInput]):
    """What became of the documents of a folder, and of the files that were not read: paths, each with the reason."""

    def __init__(self) -> None:
        super().__init__()
        self.skipped = Skipped()

    @property
    def refused(self) -> list[tuple[str, str]]:
        """Files meant to be read that cannot be."""
        return self.skipped.refused

    @property
    def left_out(self) -> list[tuple[str, str]]:
        """Files with nothing to read: hidden, ignored, empty, binary."""
        return self.skipped.left_out


@dataclass(slots=True)
class Recorder:
    """Records documents."""

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
        """Cut a document, write its chunks, anchor its facts, note the manifest.

        With `extract_with_llm` the model of the settings reads every chunk too, and adds up to as many facts of each as the
        rules may; where it fails, the rules' facts stand and `warnings` says so.
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
        telling, notes = self._telling(reading, pairs, max_facts_per_chunk, extract_with_llm, progress)
        settled = Reingest(self.store, self.learner, self.clock).settle(reading, source.id, pairs, telling.facts)
        progress("facts", len(settled.facts), len(settled.facts))
        return LongInput(
            task.id, source.id, reading.title, kind, len(chunks), tuple(settled.facts),
            self._manifest(reading, source, events, settled),
            tuple(settled.superseded), tuple(settled.kept_out), telling.beyond_chunk + telling.beyond_document,
            (*_changes(reading.title, settled), *_limits(telling, max_facts_per_chunk), *notes),
        )  # fmt: skip

    def check_model(self, wanted: bool) -> None:
        """`InvalidInput` where a model is wanted and there is none."""
        if wanted and self.model is None:
            raise InvalidInput("extract_with_llm asks a model and none is configured; set `model`, or leave it out")

    def _telling(
        self, reading: SourceText, chunks: Chunks, most: int, ask: bool, progress: Progress
    ) -> tuple[DocumentFacts, list[str]]:
        """The facts the rules see, and where asked for the model's."""
        telling = stated_in(reading, chunks, most)
        if not ask or self.model is None or not most:
            return telling, []
        from engram.capture.documents.model_facts import facts_by_model

        asked = facts_by_model(self.model, chunks, telling.facts, most, progress)
        return replace(telling, facts=[*telling.facts, *asked.facts]), asked.warnings

    def _source(self, reading: SourceText, chunks: int) -> Event:
        title, kind, length = reading.title, reading.kind, len(reading.text)
        payload = {"title": title, "kind": kind, "path": reading.path, "digest": reading.digest,
                   "characters": length, "chunks": chunks}  # fmt: skip
        said = f"{title or 'A document'} ({kind}, {length} characters, {chunks} chunks)"
        event = NewEvent(ROLE, said, self.clock(), "observation", reading.task.id, f"{reading.key}/source", payload)
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
            f"Read {title or 'a document'}: {len(events)} chunks, {len(facts)} facts",
            artifacts=[title] if title else [],
            source_event_ids=[source.id],
            kind="manifest",
            data={"source": source.id, "title": title, "kind": reading.kind, "digest": reading.digest, "chunks": len(events),
                  "first": events[0].seq, "last": events[-1].seq, "facts": len(facts), "superseded": len(settled.superseded)},
        )  # fmt: skip


def _clean(text: str) -> str:
    return redact(storable(text))[0]


def check_document(document: SourceDocument, max_chunk_tokens: int, max_facts: int) -> None:
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


def _changes(title: str, settled: ReingestResult) -> list[str]:
    """What a new version did to what was known, in words."""
    name, said = title or "the document", []
    if settled.superseded:
        said.append(
            f"{name} changed since it was read: {_facts(settled.superseded)} out of force that it no longer states "
            f"({_some(settled.superseded)}); `engram undo ID` brings one back"
        )
    if settled.stayed:
        said.append(
            f"{name} no longer states {_some(settled.stayed)}; in force all the same, being pinned, confirmed or worded by you"
        )
    if settled.kept_out:
        said.append(f"{name} states what you forgot or corrected: {_some(settled.kept_out)} stay out")
    return said


def _limits(telling: DocumentFacts, most: int) -> list[str]:
    """Which facts the limits kept out, in words."""
    said = []
    if telling.beyond_chunk:
        said.append(
            f"{telling.beyond_chunk:,} more facts were not kept: at most {most} of a chunk are; max_facts_per_chunk (--facts) "
            "raises that, and the chunks hold every word"
        )
    if telling.beyond_document:
        said.append(
            f"{telling.beyond_document:,} more facts were not kept: at most {MOST_FACTS:,} of a document are, spread evenly over "
            "it; the chunks hold every word"
        )
    return said


def _facts(ids: Sequence[str]) -> str:
    return "1 fact is" if len(ids) == 1 else f"{len(ids):,} facts are"


def _some(ids: Sequence[str]) -> str:
    more = f" and {len(ids) - SHOWN:,} more" if len(ids) > SHOWN else ""
    return ", ".join(ids[:SHOWN]) + more


# -- files and folders

SHOWN = 5
"""Files an error names; there may be thousands."""


@dataclass(frozen=True, slots=True)
class FileIngest:
    """How files are read."""

    recorder: Recorder
    kind: str = ""
    max_chunk_tokens: int = MAX_CHUNK_TOKENS
    max_facts_per_chunk: int = MAX_FACTS_PER_CHUNK
    extract_with_llm: bool = False
    progress: Progress = lambda *_: None

    def ingest(self, place: Path, task: str, begin: Callable[[], str]) -> Ingested:
        """Read a file or a folder into a task; `begin` starts one where none is named, once there is something to read.

        What of a folder cannot be read, and what is left out, is named in the answer. `InvalidInput` where nothing can be.
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
    """Why there is nothing: every file with its reason, or the first of many."""
    found = [*taken.refused, *taken.left_out]
    if not found:
        return f"{place} holds no text file that can be read: it is empty"
    told = "; ".join(reason if path in reason else f"{path}: {reason}" for path, reason in found[:SHOWN])
    more = f"; and {len(found) - SHOWN:,} more" if len(found) > SHOWN else ""
    return f"{place} holds no text file that can be read: {told}{more}"
