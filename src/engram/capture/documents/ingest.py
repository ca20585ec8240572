"""Ingests long documents into a task's ledger: chunks that quote them exactly, and facts with evidence in the chunks.
Facts that both the earlier and the new version state stay; the others of the earlier version are superseded."""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

from engram.capture.add import Adder
from engram.capture.documents.chunk import MAX_TOKENS, Chunk, chunks_of
from engram.capture.documents.facts import StatedFact, facts_of
from engram.capture.documents.source import (
    FACT_TYPE,
    SOURCE,
    Chunks,
    SkippedFiles,
    SourceDocument,
    SourceText,
    Version,
    Versions,
    documents_in,
    facts_from_documents,
    kind_of,
    read_document,
    without,
)
from engram.decisions.execution import Change, LockedMemories, execute_change
from engram.gates.policies.policy import OF_DOCUMENT
from engram.gates.secrets.scan import redact
from engram.model.errors import InvalidInput
from engram.model.lazy import cached_property, dataclass, field
from engram.model.memory import Evidence, Memory
from engram.model.records import DOCUMENT_ROLE, Checkpoint, Event
from engram.sessions.observations import make_storable
from engram.sessions.tasks import Tasks
from engram.store.intake import NewEvent
from engram.store.protocol import Progress, Store
from engram.store.records import start_of
from engram.text.content_hash import content_hash, quote_hash
from engram.text.tokens import document_sentences

if TYPE_CHECKING:
    from engram.llm.model import LanguageModel

REREAD_OPERATION: Final = "reread"
KEPT_STATUSES = ("active", "dormant", "candidate", "archived")
"""Statuses of facts that neither a person nor a new version has removed."""
REMOVED_STATUSES = ("retired", "rejected", "superseded")
MAX_FACTS_PER_CHANGE = 500
"""Memories changed per transaction; bounds how long other writers wait."""
MOST_EVIDENCE = 32
"""Documents recorded as evidence for the same fact."""


@dataclass(slots=True)
class ReingestResult:
    """What happened to a document's facts."""

    facts: list[str] = field(default_factory=list)
    """The current facts that the text states."""
    superseded: list[str] = field(default_factory=list)
    """Facts of the previous version that this one no longer states."""
    kept_out: list[str] = field(default_factory=list)
    """Facts that the text states but the owner forgot or corrected; they are not stored again."""
    stayed: list[str] = field(default_factory=list)
    """Facts no longer stated but kept, because the owner pinned, confirmed or edited them."""


class FactIndex:
    """Stored facts by quote and by statement."""

    def __init__(self, memories: Iterable[Memory] = ()) -> None:
        self._by_text: dict[str, list[Memory]] = {}
        for memory in memories:
            for key in {content_hash(memory.statement), *(evidence.quote_hash for evidence in memory.evidence)} - {""}:
                self._by_text.setdefault(key, []).append(memory)

    def same(self, fact: StatedFact) -> list[Memory]:
        """The facts with the same quote or the same statement."""
        keys = (fact.evidence.quote_hash, content_hash(fact.statement))
        return list({memory.id: memory for key in keys for memory in self._by_text.get(key, ())}.values())


@dataclass()
class Reingest:
    """The reconciliation of one document with what is stored from its earlier versions.

    The owner's decisions are respected, and nothing is destroyed: every change is journaled as `reread` and can be
    undone.
    """

    store: Store
    adder: Adder
    clock: Callable[[], datetime]
    reading: SourceText
    source: str
    """The id of its source event."""
    chunks: Chunks
    result: ReingestResult = field(default_factory=ReingestResult)
    earlier: dict[str, Memory] = field(default_factory=dict)
    """The facts stored from any earlier version."""
    previous: dict[str, str] = field(default_factory=dict)
    """The facts of the last complete version and of interrupted ones since, each with its chunk."""
    earlier_chunks: set[str] = field(default_factory=set)
    """Every chunk that is evidence for one of the earlier facts."""

    def settle(self, stated: Sequence[StatedFact]) -> ReingestResult:
        """Store new facts, keep known ones, supersede those no longer stated, and record the version."""
        task, digest = self.reading.task, self.reading.digest
        versions = Versions.of(self.store, task.scope, self.reading.path, digest)
        known = [version for version in versions.all() if version.source != self.source or version.facts is not None]
        last = max((place for place, version in enumerate(known) if version.facts is not None), default=0)
        is_new = not known or any(version.digest != digest for version in known[last:])
        if is_new:
            versions.append(Version(self.source, task.id, digest), self.clock())
        self._load(versions, known, last)
        changed = is_new and bool(known)
        anchored = self._take(stated, versions.ledger)
        anchored |= self._reconcile_missing(anchored, changed)
        self._anchor(anchored, changed)
        self.result.facts = list(anchored)
        if is_new or set(anchored) != set(self.previous):
            pairs = tuple((fact, evidence.event) for fact, evidence in anchored.items())
            versions.append(Version(self.source, task.id, digest, pairs), self.clock())
        return self.result

    def _load(self, versions: Versions, known: Sequence[Version], last: int) -> None:
        facts = [versions.facts(version) for version in known]
        self.previous = {fact: chunk for pairs in facts[last:] for fact, chunk in pairs}
        self.earlier = self._memories({fact for pairs in facts for fact, _ in pairs})
        self.earlier_chunks = {chunk for pairs in facts for _, chunk in pairs}

    def _memories(self, ids: Iterable[str]) -> dict[str, Memory]:
        numbers = self.store.numbers(sorted(ids))
        found = self.store.get_many(list(numbers.values()))
        return {hit.record.id: hit.record for hit in found if isinstance(hit.record, Memory)}

    # -- facts that the text states

    def _take(self, stated: Sequence[StatedFact], document: str) -> dict[str, Evidence]:
        """The current facts of the text, known or new, each with its evidence."""
        removed = self._removed_by_owner() if stated else FactIndex()
        earlier = FactIndex(self.earlier.values())
        places: list[tuple[StatedFact, list[Memory]]] = []
        for fact in stated:
            known = [memory for memory in earlier.same(fact) if memory.status in KEPT_STATUSES]
            if not known and (refused := removed.same(fact)):
                self.result.kept_out += [m.id for m in refused if m.id not in self.result.kept_out]
            else:
                places.append((fact, known))
        drafts = [fact.draft(self.reading) | self._key(fact, document) for fact, known in places if not known]
        added = iter(self.adder.add_batch(drafts, source=self.reading.source))
        found: dict[str, Evidence] = {}
        for fact, known in places:
            for memory in known or [next(added)]:
                found.setdefault(memory.id, fact.evidence)
        return found

    def _key(self, fact: StatedFact, document: str) -> dict[str, str]:
        """A conflict key limited to the document: one contract's term does not replace another's."""
        described = self.adder.policy.apply_leniently(Memory("", fact.statement, type=FACT_TYPE), typed=True)
        return {"conflict_key": f"{described.conflict_key}@{document}"} if described.conflict_key else {}

    def _removed_by_owner(self) -> FactIndex:
        """Facts of any document in the scope that the owner forgot or corrected."""
        removed = {m.id: m for m in facts_from_documents(self.store, self.reading.task.scope, REMOVED_STATUSES)}
        removed |= {i: memory for i, memory in self.earlier.items() if memory.status in REMOVED_STATUSES}
        heirs = self._memories({memory.superseded_by for memory in removed.values() if memory.superseded_by})
        return FactIndex(m for m in removed.values() if m.status != "superseded" or _is_corrected(m, heirs))

    # -- facts that it no longer states

    def _reconcile_missing(self, found: Mapping[str, Evidence], changed: bool) -> dict[str, Evidence]:
        """Supersede facts that are gone.

        Returns those still in the text although not selected this time, with evidence.
        """
        text, kept, gone = QuoteFinder(self.reading, self.chunks), {}, list[str]()
        for fact, chunk in self.previous.items():
            memory = self.earlier.get(fact)
            if memory is None or fact in found or memory.status not in KEPT_STATUSES:
                continue
            if not changed:
                kept[fact] = Evidence(chunk)
                continue
            quote = self._quote(memory)
            span = text.find(quote, whole=_flat(quote) == _flat(memory.statement))
            if span is not None:
                kept[fact] = text.place(*span) or Evidence(chunk)
            elif self._is_owners(memory, quote):
                self.result.stayed.append(fact)
            else:
                gone.append(fact)
        self.result.superseded = self._supersede(gone)
        return kept

    def _quote(self, memory: Memory) -> str:
        for evidence in memory.evidence:
            event = self.store.event(evidence.event) if evidence.event in self.earlier_chunks else None
            if event is not None and event.content and evidence.span:
                return event.content[slice(*evidence.span)]
        return memory.statement

    def _is_owners(self, memory: Memory, quote: str) -> bool:
        """Whether the owner vouches for a fact, so that it stays without the document."""
        if not memory.source.startswith(SOURCE) or memory.pinned or memory.verification == "user_confirmed":
            return True
        if _flat(memory.statement) == _flat(quote):
            return False
        return any(image.op == "update" for image in self.store.history(memory.id))

    def _supersede(self, gone: Sequence[str]) -> list[str]:
        """Supersede these facts, except those that another document also states. Returns the superseded ones."""
        now, superseded = self.clock(), list[str]()

        def change(memory: Memory) -> Memory:
            # Its owner may have pinned, confirmed or changed it since it was read.
            if self._is_owners(memory, self._quote(memory)):
                self.result.stayed.append(memory.id)
                return memory
            others = tuple(e for e in memory.evidence if e.event not in self.earlier_chunks)
            if others:
                return memory.replace(evidence=others, updated=now)
            superseded.append(memory.id)
            return memory.replace(
                status="superseded", valid_until=memory.valid_until or max(now, start_of(memory)), updated=now
            )

        # A fact that a new one replaced by its conflict key is superseded already.
        replaced = self._change("no longer states it", gone, change)
        return [fact for fact in gone if fact in superseded or fact in replaced]

    # -- evidence

    def _anchor(self, anchored: Mapping[str, Evidence], changed: bool) -> None:
        """Point each fact's evidence to this version; people's own facts have none."""
        memories = self._memories(anchored)
        moved = [i for i, place in anchored.items() if self._needs_evidence(memories.get(i), place, changed)]

        def change(memory: Memory) -> Memory:
            others = [e for e in memory.evidence if e.event not in self.earlier_chunks]
            here = anchored[memory.id]
            kept = [here, *others] if len(others) < len(memory.evidence) else [*others, here][:MOST_EVIDENCE]
            # A fact that several documents state is not replaced by one of them.
            shared = bool(others) and OF_DOCUMENT in memory.conflict_key
            key = "" if shared else memory.conflict_key
            return memory.replace(evidence=tuple(kept), conflict_key=key, updated=self.clock())

        self._change("was ingested again", moved, change)

    def _needs_evidence(self, memory: Memory | None, evidence: Evidence, changed: bool) -> bool:
        """Whether a fact lacks this evidence and should get it."""
        if memory is None or not memory.source.startswith(SOURCE) or evidence.span is None:
            return False
        events = {e.event for e in memory.evidence}
        if events & self.earlier_chunks:
            return changed and evidence not in memory.evidence
        return evidence.event not in events and len(events) < MOST_EVIDENCE

    def _change(self, why: str, facts: Sequence[str], change: Callable[[Memory], Memory]) -> set[str]:
        """Change the facts that are still live. Returns the ids of the others."""
        dropped: set[str] = set()
        note = f"{self.reading.title or 'the document'} {why}"
        for start in range(0, len(facts), MAX_FACTS_PER_CHANGE):
            some = facts[start : start + MAX_FACTS_PER_CHANGE]
            changing = partial(_change_live, some, change)
            decision = Change(op=REREAD_OPERATION, actor=self.reading.source, plan=changing, note=note, related=some)
            dropped |= execute_change(self.store, self.clock, decision)
        return dropped


def _change_live(facts: Sequence[str], change: Callable[[Memory], Memory], memories: LockedMemories) -> set[str]:
    """The plan that changes the facts that are still live; returns the ids of the others."""
    dropped = set()
    for fact in facts:
        memory = memories.get(fact)
        if memory is None or memory.status not in KEPT_STATUSES:
            dropped.add(fact)
        else:
            memories.put(change(memory))
    return dropped


def _is_corrected(memory: Memory, heirs: Mapping[str, Memory]) -> bool:
    """Whether somebody corrected it; if a newer fact of a document superseded it, it may come back."""
    heir = heirs.get(memory.superseded_by)
    return bool(memory.superseded_by) and not (heir and heir.source.startswith(SOURCE) and heir.evidence)


def _flat(text: str) -> str:
    return " ".join(text.split())


@dataclass()
class QuoteFinder:
    """Finds quotes of an earlier version in a document; only white space may differ."""

    reading: SourceText
    chunks: Chunks

    def find(self, quote: str, *, whole: bool) -> tuple[int, int] | None:
        """The span of a quote; with `whole`, only if a sentence ends with it."""
        words = quote.split()
        # A plain search first: it is a hundred times faster than the pattern, and enough for most missing quotes.
        if not words or " ".join(words) not in self._flat:
            return None
        pattern = re.compile(r"\s+".join(map(re.escape, words)))
        for found in pattern.finditer(self.reading.text):
            if not whole or self._ends(*found.span()):
                return found.span()
        return None

    def place(self, start: int, end: int) -> Evidence | None:
        """The evidence for a span; None if it crosses chunks or contains a secret."""
        number = self._chunk(start)
        if number < 0:
            return None
        chunk, event = self.chunks[number]
        return self.reading.evidence(chunk, event, start, end) if end <= chunk.end else None

    @cached_property
    def _flat(self) -> str:
        return re.sub(r"\s+", " ", self.reading.text)

    def _ends(self, start: int, end: int) -> bool:
        number = self._chunk(start)
        if number < 0:
            return False
        chunk = self.chunks[number][0]
        if self.reading.kind in ("code", "diff"):
            return not self.reading.text[end : end + 1].isalnum()
        return any(last == end for _, last in document_sentences(self.reading.text, chunk.start, chunk.end))

    def _chunk(self, place: int) -> int:
        """The index of the last chunk that starts at or before a position; -1 for none."""
        return bisect_right(self.chunks, place, key=lambda pair: pair[0].start) - 1


MAX_DOCUMENT_CHARS = 64 * 1024 * 1024
MAX_LISTED_IDS = 5
"""Ids or files listed in a warning or an error; the result lists all."""
MAX_CHUNKS_PER_APPEND = 250
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
    """Ingests documents.

    A source event describes the document and its digest; one artifact event per chunk has its text, its span and the
    digest of the quote; a manifest checkpoint lists them. The key of each event depends on the document and the chunk
    size, so ingesting it again after a crash continues where it stopped.
    """

    store: Store
    tasks: Tasks
    adder: Adder
    clock: Callable[[], datetime]
    model: "LanguageModel | None" = None

    def record(self, task_id: str, document: SourceDocument, path: str, options: IngestOptions) -> LongInput:
        """Split a document, store its chunks and facts, and write the manifest.

        If the model fails, the facts found by rules are stored and `warnings` says so. Raises `InvalidInput` for a
        document or option that cannot be used, with nothing written.
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

        The result lists the files of a folder that were refused or left out. Raises `InvalidInput` if no file can be
        read.
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
        while some := list(islice(waiting, MAX_CHUNKS_PER_APPEND)):
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
