"""Ingests a document again: facts it still states are kept, others are superseded, and the owner's decisions are respected.

Nothing is destroyed; every change is journaled as `reread` and can be undone.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property

from engram.capture.documents.source import SOURCE, Chunks, SourceText, StatedFact
from engram.capture.documents.versions import FACT_TYPE, Version, Versions, drawn_from_documents
from engram.capture.learn import Learner
from engram.gates.policies.policy import OF_DOCUMENT
from engram.model.memory import Evidence, Memory
from engram.store.protocol import Store
from engram.text.content_hash import content_hash
from engram.text.sentences import document_sentences

OP = "reread"
LIVE = ("active", "dormant", "candidate", "archived")
"""Statuses of facts that neither a person nor a new version has removed."""
REMOVED = ("retired", "rejected", "superseded")
SLICE = 500
"""Memories changed per transaction; bounds how long other writers wait."""
MOST_EVIDENCE = 32
"""Documents recorded as evidence for the same fact."""

Change = Callable[[Memory], Memory]


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
    changed: bool = False
    """Whether the text differs from the previous version."""


@dataclass(slots=True)
class _Earlier:
    """The facts stored from any earlier version of the document."""

    memories: Mapping[str, Memory]
    chunks: Mapping[str, str]
    """The chunk of each fact of the last version and of interrupted ones since."""
    events: frozenset[str]
    """Every chunk that is evidence for one of them."""
    by_quote: dict[str, list[Memory]] = field(default_factory=dict)
    by_words: dict[str, list[Memory]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for memory in self.memories.values():
            _file(memory, self.by_quote, self.by_words)

    def same(self, fact: StatedFact) -> list[Memory]:
        """The earlier facts with the same quote or the same statement."""
        return _same(fact, self.by_quote, self.by_words)


@dataclass(slots=True)
class Reingest:
    """Reconciles the facts of a document with those stored from earlier versions."""

    store: Store
    learner: Learner
    clock: Callable[[], datetime]

    def settle(self, reading: SourceText, source: str, chunks: Chunks, stated: Sequence[StatedFact]) -> ReingestResult:
        """Store new facts, keep known ones, supersede those no longer stated, and record the version."""
        versions = Versions.of(self.store, reading.task.scope, reading.path, reading.digest)
        known = [version for version in versions.all() if version.source != source or version.whole]
        since = max((place for place, version in enumerate(known) if version.whole), default=0)
        standing = known[since:]
        is_new = not standing or any(version.digest != reading.digest for version in standing)
        if is_new:
            versions.begin(reading, source, self.clock())
        earlier = self._earlier(versions, known, since)
        settled = ReingestResult(changed=is_new and bool(known))
        anchored = self._take(reading, stated, earlier, settled, versions.ledger)
        anchored |= self._reconcile_missing(reading, chunks, earlier, anchored, settled)
        self._anchor(reading, anchored, earlier, settled.changed)
        settled.facts = list(anchored)
        if is_new or set(anchored) != set(earlier.chunks):
            pairs = tuple((fact, evidence.event) for fact, evidence in anchored.items())
            versions.end(Version(source, reading.task.id, reading.digest, pairs), self.clock())
        return settled

    def _earlier(self, versions: Versions, known: Sequence[Version], since: int) -> _Earlier:
        drawn = [versions.drawn(version) for version in known]
        standing = {fact: chunk for facts in drawn[since:] for fact, chunk in facts}
        ids = {fact for facts in drawn for fact, _ in facts}
        events = frozenset(chunk for facts in drawn for _, chunk in facts)
        return _Earlier(self._memories(ids), standing, events)

    def _memories(self, ids: Iterable[str]) -> dict[str, Memory]:
        numbers = self.store.numbers(sorted(ids))
        found = self.store.get_many(list(numbers.values()))
        return {hit.record.id: hit.record for hit in found if isinstance(hit.record, Memory)}

    # -- facts that the text states

    def _take(
        self,
        reading: SourceText,
        stated: Sequence[StatedFact],
        earlier: _Earlier,
        settled: ReingestResult,
        document: str,
    ) -> dict[str, Evidence]:
        """The current facts of the text, known or new, each with its evidence."""
        removed = self._removed_by_owner(reading.task.scope, earlier) if stated else _RemovedFacts()
        places: list[tuple[StatedFact, list[Memory]]] = []
        for fact in stated:
            standing = [memory for memory in earlier.same(fact) if memory.status in LIVE]
            if not standing and (refused := removed.of(fact)):
                settled.kept_out += [memory.id for memory in refused if memory.id not in settled.kept_out]
            else:
                places.append((fact, standing))
        fresh = [fact for fact, standing in places if not standing]
        drafts = [fact.draft(reading) | self._key(fact, document) for fact in fresh]
        added = iter(self.learner.add_batch(drafts, source=reading.source))
        found: dict[str, Evidence] = {}
        for fact, standing in places:
            for memory in standing or [next(added)]:
                found.setdefault(memory.id, fact.evidence)
        return found

    def _key(self, fact: StatedFact, document: str) -> dict[str, str]:
        """A conflict key limited to the document: one contract's term does not replace another's."""
        described = self.learner.policy.described(Memory("", fact.statement, type=FACT_TYPE), typed=True)
        return {"conflict_key": f"{described.conflict_key}@{document}"} if described.conflict_key else {}

    def _removed_by_owner(self, scope: str, earlier: _Earlier) -> "_RemovedFacts":
        """Facts of any document in the scope that the owner forgot or corrected, by quote and by statement."""
        out = {memory.id: memory for memory in drawn_from_documents(self.store, scope, REMOVED)}
        out |= {i: memory for i, memory in earlier.memories.items() if memory.status in REMOVED}
        heirs = self._memories({memory.superseded_by for memory in out.values() if memory.superseded_by})
        removed = _RemovedFacts()
        for memory in out.values():
            if memory.status != "superseded" or _is_corrected(memory, heirs):
                _file(memory, removed.by_quote, removed.by_words)
        return removed

    # -- facts that it no longer states

    def _reconcile_missing(
        self,
        reading: SourceText,
        chunks: Chunks,
        earlier: _Earlier,
        found: Mapping[str, Evidence],
        settled: ReingestResult,
    ) -> dict[str, Evidence]:
        """Supersede facts that are gone. Returns those still in the text although not selected this time, with evidence."""
        text, kept, gone = QuoteFinder(reading, chunks), {}, list[str]()
        for fact, chunk in earlier.chunks.items():
            memory = earlier.memories.get(fact)
            if memory is None or fact in found or memory.status not in LIVE:
                continue
            if not settled.changed:
                kept[fact] = Evidence(chunk)
                continue
            quote = self._quote(memory, earlier)
            span = text.find(quote, whole=_flat(quote) == _flat(memory.statement))
            if span is not None:
                kept[fact] = text.place(*span) or Evidence(chunk)
            elif self._is_owners(memory, quote):
                settled.stayed.append(fact)
            else:
                gone.append(fact)
        settled.superseded = self._supersede(reading, gone, earlier)
        return kept

    def _quote(self, memory: Memory, earlier: _Earlier) -> str:
        for evidence in memory.evidence:
            event = self.store.event(evidence.event) if evidence.event in earlier.events else None
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

    def _supersede(self, reading: SourceText, gone: Sequence[str], earlier: _Earlier) -> list[str]:
        """Supersede these facts, except those that another document also states. Returns the superseded ones."""
        now, out = self.clock(), list[str]()

        def change(memory: Memory) -> Memory:
            others = tuple(e for e in memory.evidence if e.event not in earlier.events)
            if others:
                return memory.but(evidence=others, updated=now)
            out.append(memory.id)
            return memory.but(status="superseded", valid_until=memory.valid_until or now, updated=now)

        # A fact that a new one replaced by its conflict key is superseded already.
        replaced = self._change(reading, f"{reading.title or 'the document'} no longer states it", gone, change)
        return [fact for fact in gone if fact in out or fact in replaced]

    # -- evidence

    def _anchor(self, reading: SourceText, anchored: Mapping[str, Evidence], earlier: _Earlier, changed: bool) -> None:
        """Point each fact's evidence to this version; people's own facts have none."""
        memories = self._memories(anchored)
        moved = [
            fact
            for fact, evidence in anchored.items()
            if _needs_evidence(memories.get(fact), evidence, earlier, changed)
        ]

        def change(memory: Memory) -> Memory:
            others = [e for e in memory.evidence if e.event not in earlier.events]
            here = anchored[memory.id]
            kept = [here, *others] if len(others) < len(memory.evidence) else [*others, here][:MOST_EVIDENCE]
            # A fact that several documents state is not replaced by one of them.
            shared = bool(others) and OF_DOCUMENT in memory.conflict_key
            key = "" if shared else memory.conflict_key
            return memory.but(evidence=tuple(kept), conflict_key=key, updated=self.clock())

        self._change(reading, f"{reading.title or 'the document'} was ingested again", moved, change)

    def _change(self, reading: SourceText, reason: str, facts: Sequence[str], change: Change) -> set[str]:
        """Change the facts that are still live. Returns the ids of the others."""
        dropped: set[str] = set()
        for start in range(0, len(facts), SLICE):
            some = facts[start : start + SLICE]
            with self.store.deciding(OP, actor=reading.source, reason=reason, about=some) as deciding:
                for fact in some:
                    memory = deciding.get(fact)
                    if memory is None or memory.status not in LIVE:
                        dropped.add(fact)
                    else:
                        deciding.put(change(memory))
        return dropped


@dataclass(slots=True)
class _RemovedFacts:
    """Facts that the owner forgot or corrected."""

    by_quote: dict[str, list[Memory]] = field(default_factory=dict)
    by_words: dict[str, list[Memory]] = field(default_factory=dict)

    def of(self, fact: StatedFact) -> list[Memory]:
        return _same(fact, self.by_quote, self.by_words)


def _file(memory: Memory, by_quote: dict[str, list[Memory]], by_words: dict[str, list[Memory]]) -> None:
    for evidence in memory.evidence:
        by_quote.setdefault(evidence.quote_hash, []).append(memory)
    if words := content_hash(memory.statement):
        by_words.setdefault(words, []).append(memory)


def _same(fact: StatedFact, by_quote: Mapping[str, list[Memory]], by_words: Mapping[str, list[Memory]]) -> list[Memory]:
    matches = [*by_quote.get(fact.evidence.quote_hash, ()), *by_words.get(content_hash(fact.statement), ())]
    return list({memory.id: memory for memory in matches}.values())


def _is_corrected(memory: Memory, heirs: Mapping[str, Memory]) -> bool:
    """Whether somebody corrected it; if a newer fact of a document superseded it, it may come back."""
    heir = heirs.get(memory.superseded_by)
    return bool(memory.superseded_by) and not (heir and heir.source.startswith(SOURCE) and heir.evidence)


def _needs_evidence(memory: Memory | None, evidence: Evidence, earlier: _Earlier, changed: bool) -> bool:
    """Whether a fact lacks this evidence and should get it."""
    if memory is None or not memory.source.startswith(SOURCE) or evidence.span is None:
        return False
    events = {e.event for e in memory.evidence}
    if events & earlier.events:
        return changed and evidence not in memory.evidence
    return evidence.event not in events and len(events) < MOST_EVIDENCE


def _flat(text: str) -> str:
    return " ".join(text.split())


# -- quotes from an earlier version

_BLANKS = re.compile(r"\s+")


@dataclass
class QuoteFinder:
    """Finds quotes in a document; only white space may differ."""

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
        return _BLANKS.sub(" ", self.reading.text)

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
