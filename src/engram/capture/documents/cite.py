"""Cites long documents: finds the relevant chunks, each with its exact span, and verifies quotes against the source."""

from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from engram.capture.documents.source import Version, Versions, read_document, redaction, without
from engram.gates.secrets.scan import find_secrets
from engram.model.errors import InvalidInput, NotFound
from engram.model.lazy import dataclass, replace
from engram.model.memory import Evidence
from engram.model.records import DOCUMENT_ROLE, Event, TaskRun
from engram.recall.prompt.budget import BudgetItem, Counter, PromptSection, assemble
from engram.sessions.tasks import Tasks
from engram.store.protocol import Store
from engram.text.content_hash import quote_hash
from engram.text.display import notice, quote_text, safe_word
from engram.text.tokens import missing_terms

CONTEXT_TOKENS = 4_000
SOURCE_CHUNKS = 6
MOST_SEARCHED = 400
"""Chunks searched for those of a file's latest version."""


@dataclass(frozen=True, slots=True)
class Citation:
    """A quote and its half-open span of characters in the source."""

    id: str
    source: str
    title: str
    path: str
    heading: str
    span: tuple[int, int]
    quote: str
    quote_hash: str
    state: str = "unchecked"
    """`verified`: the source file contains exactly this quote; `changed`: it does not; `unchecked`: not compared, or no file."""
    reason: str = ""
    redacted: bool = False
    """Whether the quote contains `[redacted:…]` in place of a secret."""


@dataclass(frozen=True, slots=True)
class LongInputContext:
    """A prompt block of source chunks with their citations."""

    text: str
    tokens: int
    citations: tuple[Citation, ...]
    missing_expected_terms: tuple[str, ...]


@dataclass(slots=True)
class CitationReader:
    """Finds chunks and verifies quotes."""

    store: Store
    tasks: Tasks
    count: Counter
    read: Callable[[Path], str] = lambda path: read_document(path).text

    def context(
        self,
        task_id: str,
        query: str,
        *,
        max_tokens: int = CONTEXT_TOKENS,
        source_chunk_limit: int = SOURCE_CHUNKS,
        expected_terms: str | Sequence[str] = (),
        count: Counter | None = None,
        scopes: Collection[str] | None = None,
    ) -> LongInputContext:
        """The relevant chunks within the budget, best first; each is quoted whole or left out.

        Raises `InvalidInput` for an empty query, an invalid limit, or a budget smaller than every relevant chunk.
        """
        if not query.strip():
            raise InvalidInput("the query is empty; ask something about the document")
        if type(max_tokens) is not int or max_tokens < 0:
            raise InvalidInput(f"max_tokens {max_tokens!r} must be a whole number, at least 0")
        if type(source_chunk_limit) is not int or not 1 <= source_chunk_limit <= 100:
            raise InvalidInput(f"source_chunk_limit {source_chunk_limit!r} must be between 1 and 100")
        found = self._answering(self.tasks.get(task_id, scopes=scopes), query, source_chunk_limit)
        items = tuple(BudgetItem(c.id, c.quote, label=f"{_label(c)}: ", multiline=True) for c in found)
        built = assemble([PromptSection("Sources", items)], max_tokens, count or self.count)
        terms = [expected_terms] if isinstance(expected_terms, str) else expected_terms
        kept = tuple(citation for citation in found if citation.id in built.kept)
        if found and not kept:
            least = min((count or self.count)(item.label + item.text) for item in items)
            raise InvalidInput(
                f"A budget of {max_tokens} tokens is too small for any of the {len(found)} relevant chunks, which are never cut "
                f"(minimum about {least})"
            )
        return LongInputContext(built.text, built.tokens, kept, missing_terms(terms, built.text))

    def _answering(self, task: TaskRun, query: str, limit: int) -> list[Citation]:
        """The best chunks; for a file ingested again into the same task, only those of its latest version."""
        wanted = limit
        while True:
            hits = self.tasks.search_events(
                query, task=task.id, event_types=["artifact"], roles=[DOCUMENT_ROLE], limit=wanted
            )
            chunks = [hit.event for hit in hits if hit.event is not None and is_chunk(hit.event)]
            latest = {i: self._latest(task, i) for i in {str(chunk.payload.get("source", "")) for chunk in chunks}}
            pairs = [(chunk, latest[str(chunk.payload.get("source", ""))]) for chunk in chunks]
            current = [(chunk, newer) for chunk, newer in pairs if newer is None or newer.task != task.id]
            if len(current) >= limit or len(hits) < wanted or wanted >= MOST_SEARCHED:
                return [self._mark_outdated(chunk, newer) for chunk, newer in current[:limit]]
            wanted = min(MOST_SEARCHED, wanted * 4)

    def _latest(self, task: TaskRun, source_id: str) -> Version | None:
        """The newer version of a source's file with a different text; None if there is none."""
        source = self.store.event(source_id)
        path = str(source.payload.get("path", "")) if source is not None else ""
        if source is None or not path:
            return None
        last = Versions.of(self.store, task.scope, path, "").latest()
        return last if last is not None and last.digest != source.payload.get("digest") else None

    def _mark_outdated(self, chunk: Event, newer: Version | None) -> Citation:
        citation = self._citation(chunk)
        if newer is None:
            return citation
        return replace(citation, state="changed", reason=f"its file changed and was ingested again for {newer.task}")

    def cite(self, ref: str, scopes: Collection[str] | None = None) -> Citation:
        """The quote of a chunk or a fact, compared with the current source.

        A fact that several documents state is verified if one of them still does. `scopes` are those the caller may see. Raises
        `NotFound` for an unknown id, `InvalidInput` for one without a document.
        """
        checked: list[Citation] = []
        for event, evidence in self._find_evidence(ref, scopes):
            checked.append(self._verify_citation(self._quote(ref, event, evidence)))
            if checked[-1].state == "verified":
                return checked[-1]
        return checked[0]

    def _quote(self, ref: str, event: Event, evidence: Evidence | None) -> Citation:
        if event.content and not is_chunk(event):
            raise InvalidInput(f"{event.id} does not quote a document; give the id of a chunk, or of a fact from one")
        citation = self._citation(event)
        if evidence is None or evidence.span is None:
            return citation
        first = _in_source(event, evidence.span[0])
        quote = event.content[slice(*evidence.span)]
        span = (first, first + len(quote))
        return replace(citation, id=ref, span=span, quote=quote, quote_hash=evidence.quote_hash, redacted=False)

    def _event(self, event_id: str, scopes: Collection[str] | None) -> Event | None:
        event = self.store.event(event_id)
        return event if scopes is None or (event is not None and self.store.owner_of(event.id) in scopes) else None

    def _find_evidence(self, ref: str, scopes: Collection[str] | None) -> list[tuple[Event, Evidence | None]]:
        event = self._event(ref, scopes)
        if event is not None:
            return [(event, None)]
        memory = self.store.get(ref, scopes)
        if memory is None:
            raise NotFound(f"no chunk or memory {ref!r}; `engram task context` and `engram search` show ids")
        pairs = [(self._event(evidence.event, scopes), evidence) for evidence in memory.evidence]
        found: list[tuple[Event, Evidence | None]] = [(e, place) for e, place in pairs if e is not None and e.content]
        found = [(e, place) for e, place in found if is_chunk(e)] or found
        if not found:
            raise InvalidInput(
                f"{memory.id} does not come from a document; `engram show {memory.id}` shows its evidence"
            )
        return found

    def _citation(self, event: Event) -> Citation:
        payload = event.payload
        source = self.store.event(str(payload.get("source", "")))
        start, end = payload["span"] if is_chunk(event) else (0, 0)
        return Citation(
            event.id,
            str(payload.get("source", "")),
            str(payload.get("title", "")),
            str(source.payload.get("path", "")) if source is not None else "",
            str(payload.get("heading", "")),
            (int(start), int(end)),
            event.content,
            str(payload.get("quote_hash", "")),
            redacted=bool(payload.get("redacted")),
        )

    def _verify_citation(self, citation: Citation) -> Citation:
        if quote_hash(citation.quote) != citation.quote_hash:
            return replace(citation, state="changed", reason="the quote was purged, or the ledger was altered")
        if not citation.path:
            return replace(
                citation,
                reason="it was given as text, so there is no file to compare with; the ledger has the original",
            )
        try:
            text = self.read(Path(citation.path))
        except (InvalidInput, OSError) as error:
            return replace(citation, state="changed", reason=f"the source cannot be read: {error}")
        start, end = citation.span
        if citation.redacted and without(text, start, end, find_secrets(text))[0] == citation.quote:
            why = f"found at {start}–{end} of {citation.path}, except for redacted secrets"
            return replace(citation, state="verified", reason=why)
        if text[start:end] == citation.quote:
            return replace(citation, state="verified", reason=f"found at {start}–{end} of {citation.path}")
        moved = text.find(citation.quote)
        where = (
            f"; the quote is now at {moved}–{moved + len(citation.quote)}"
            if moved >= 0
            else "; the quote no longer occurs in it"
        )
        return replace(
            citation,
            state="changed",
            reason=f"{citation.path} changed since it was ingested{where}. Run `engram ingest` again",
        )


def is_chunk(event: Event) -> bool:
    """Whether an event is a chunk of a document, with a span."""
    span = event.payload.get("span")
    return isinstance(span, list | tuple) and len(span) == 2 and all(type(place) is int for place in span)


def _in_source(event: Event, place: int) -> int:
    """The position in the source of a position in a chunk, allowing for the secrets redacted before it."""
    at = int(event.payload["span"][0]) + place
    for start, end, kind in event.payload.get("redacted", ()):
        if start >= at:
            break
        at += end - start - len(redaction(kind))
    return at


def _label(citation: Citation) -> str:
    where = f" {quote_text(citation.heading)}" if citation.heading else ""
    start, end = citation.span
    state = f"{citation.state}: {notice(citation.reason)}" if citation.reason else citation.state
    return f"[{safe_word(citation.id)}] {safe_word(citation.title)}{where} (characters {start}–{end}, {state})"
