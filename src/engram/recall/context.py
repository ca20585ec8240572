"""Recall with context: memories first, then relevant passages from other tools' files, in six phases within one budget.

If a model is configured, it may choose the passages and summarise the findings.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta, tzinfo
from pathlib import Path
from typing import TYPE_CHECKING

from engram.agents.agent import all_agents
from engram.agents.sources.documents import Source, SourceHit
from engram.agents.transcripts.session import problem_of
from engram.model.errors import ModelError
from engram.model.lazy import dataclass, field, lazy_pattern, replace
from engram.recall.cutoff import ABOUT_FLOOR
from engram.recall.query import SearchQuery
from engram.recall.recaller import Recall, is_summary, label_of, line_of, newest_summaries_first, part_lines, remark_of
from engram.recall.sources.catalog import Cancelled, SourceCatalog
from engram.recall.sources.sessions import is_here, short_name, spoken_lines
from engram.store.protocol import Progress
from engram.text.display import longest_fitting, notice, one_line, quote_text, safe_word
from engram.text.time.zone import in_zone

if TYPE_CHECKING:
    from engram.llm.model import LanguageModel
    from engram.model.hit import EarlierSession
    from engram.model.memory import Memory

MAX_CONSIDERED_PASSAGES = 12
"""The maximum number of passages of one phase that the model chooses from."""
_MAX_PASSAGE_CHARACTERS = 1_600


@dataclass(slots=True)
class SourceRefiner:
    """Asks the model, and stops asking after its first failure.

    The model says which passages matter, which of their words to quote, and writes a summary. Without it, or if it
    fails, the deterministic order and excerpts remain.
    """

    model: "LanguageModel"
    warnings: list[str] = field(default_factory=list)
    _failed: bool = False

    def choose(self, question: str, passages: Sequence[str]) -> list[tuple[int, str]] | None:
        """The positions of the useful passages, best first, each with the words to quote; None if the model does not
        answer.

        A quotation that is not in its passage becomes "", so only words from the source are shown.
        """
        from engram.llm.schemas import ChosenPassages

        if self._failed or not passages:
            return None
        listed = "\n".join(
            f"{number}. {one_line(text)[:_MAX_PASSAGE_CHARACTERS]}" for number, text in enumerate(passages, 1)
        )
        try:
            answer = self.model.ask("passages", ChosenPassages, {"question": question, "passages": listed})
        except ModelError as error:
            self._fail("ordered without the model", error)
            return None
        chosen: dict[int, str] = {}
        for choice in answer.choices:
            place = choice.number - 1
            if 0 <= place < len(passages) and place not in chosen:
                quote = " ".join(choice.quote.split())
                chosen[place] = quote if quote and quote in " ".join(passages[place].split()) else ""
        return list(chosen.items())

    def summarise(self, question: str, findings: str) -> str:
        """A summary of what the findings say about the question; "" if the model does not answer."""
        from engram.llm.schemas import FindingsSummary

        if self._failed or not findings:
            return ""
        try:
            answer = self.model.ask("findings", FindingsSummary, {"question": question, "findings": findings})
        except ModelError as error:
            self._fail("not summed up", error)
            return ""
        return " ".join(answer.summary.split())

    def _fail(self, what: str, error: ModelError) -> None:
        self._failed = True
        self.warnings.append(f"{what}: {error}")


MAX_ANSWER_BYTES = 10_240
"""The maximum size in bytes of the answer to a question."""
MAX_RECENT_BYTES = 15_360
"""The maximum size in bytes of the recent context shown without a question."""
MIN_ANSWER_BYTES = 500
JUST_NOW = timedelta(minutes=10)
"""Turns younger than this are skipped: the asking agent still knows them, and its own question would be the best
match.
"""
MIN_SHARE_IN_PHASE = 0.25
"""The share of the best relevance in a phase below which a passage is dropped."""
MAX_PHASE_PASSAGES = 5
"""The maximum number of passages in one phase."""
MAX_SNIPPET_BYTES = 900
"""The maximum size of one passage in bytes."""
MIN_SNIPPET_BYTES = 60
MAX_SUMMARY_BYTES = 1_200
"""The maximum size of a model's summary in bytes."""
MAX_TURN_BYTES = 1_200
"""The maximum size in bytes of one turn of a recent session."""
MIN_SESSION_BYTES = 200
"""The minimum number of free bytes for adding another session."""
MEMORY_BUDGET_DIVISOR = 5
"""Without a question, the budget divided by this number is reserved for memories."""
ASSUMED_SESSION_LENGTH = timedelta(hours=24)
"""The assumed length of the oldest session if its start is unknown."""
FURTHER_PHASE = "further"
"""The phase for possibly related, unconfirmed and outdated matches, and those known in other projects."""
TITLES: dict[str, str] = {
    "memories": "Memories",
    "auto memory": "Auto memory",
    "sessions": "Sessions",
    "skills": "Skills",
    "instructions": "Instructions and rules",
    "recent": "Recent sessions",
}
KINDS: dict[str, tuple[str, ...]] = {
    "auto memory": ("auto-memory",),
    "sessions": ("session",),
    "skills": ("skill",),
    "instructions": ("instructions", "rule"),
}
"""The kinds of sources that each phase after the memories reads, in phase order."""
_PLAIN_PATH = lazy_pattern(r"[\w.@+/~ -]{1,400}")


@dataclass(frozen=True, slots=True)
class ContextSection:
    """One finding: its phase, its origin and its text."""

    phase: str
    title: str
    """The heading it is shown under."""
    provenance: str
    """The memory's id and type, or the file and section, or the session and time."""
    text: str
    """Its text on one line, with markup disabled."""
    line: str = ""
    """The text and its provenance as they are shown."""
    relevance: float = 0.0
    id: str = ""
    """The id of a memory; "" for a passage from a source."""


@dataclass(frozen=True, slots=True)
class RecalledContext:
    """What was found for a question, or about recent work, within a budget of bytes."""

    query: str
    sections: tuple[ContextSection, ...]
    text: str
    """The findings as text for a terminal or a prompt: every line is a quotation with its origin."""
    warnings: tuple[str, ...] = field(default=())
    stopped: str = ""
    """"budget" or "cancelled" if not every phase was completed."""
    summary: str = ""
    """A configured model's summary of the findings; "" without a model."""


class _Stopped(Exception):
    """Ends the phases early."""


@dataclass(slots=True)
class Page:
    """The text under construction: headings and lines within a budget of bytes."""

    budget: int
    summed_up: bool = False
    """Whether room is reserved for a summary."""
    sections: list[ContextSection] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    used: int = 0
    _title: str = ""

    def room(self, title: str) -> int:
        """The number of bytes available for a line under a heading."""
        heading = 0 if title == self._title else _size(f"## {title}") + 1 + bool(self.lines)
        return self.budget - self.used - heading - 1

    def add(self, section: ContextSection) -> bool:
        """Add a line if it fits."""
        if _size(section.line) > self.room(section.title):
            return False
        if section.title != self._title:
            self._title = section.title
            self._append(*([""] if self.lines else []), f"## {section.title}")
        self._append(section.line)
        self.sections.append(section)
        return True

    def _append(self, *lines: str) -> None:
        self.lines += lines
        self.used += sum(_size(line) + 1 for line in lines)

    @property
    def text(self) -> str:
        """The whole text, without a trailing newline."""
        return "\n".join(self.lines)


@dataclass(slots=True)
class ContextRecaller:
    """Runs the phases for one directory.

    Without a question, it returns the project's recent sessions and the memories stored during them. Everything from a
    source is quoted as evidence with its origin; nothing in it is an instruction from Engram.
    """

    catalog: SourceCatalog
    clock: Callable[[], datetime]
    zone: tzinfo
    progress: Progress
    cancelled: Cancelled
    refiner: SourceRefiner | None = None

    def for_question(self, found: Sequence[Recall], queries: Sequence[SearchQuery], page: Page) -> str:
        """Fill a page: memories first, then each kind of source while there is room. Returns why it ended early, or ""."""
        try:
            fits = [self._add(page, section) for section in _unique(_memory_sections(found))]
            if not all(fits):
                return "budget"  # sources come after all memories
            for section in self._source_sections(queries, page):
                self._add(page, section)
            for section in _further_sections(found):
                self._add(page, section)
        except _Stopped as stop:
            return str(stop)
        return ""

    def _add(self, page: Page, section: ContextSection) -> bool:
        self._check()
        return page.add(section)

    def _check(self) -> None:
        if self.cancelled():
            raise _Stopped("cancelled")

    def _source_sections(self, queries: Sequence[SearchQuery], page: Page) -> Iterator[ContextSection]:
        self._check()
        if not queries:
            return
        if page.room("") < MIN_SNIPPET_BYTES:
            raise _Stopped("budget")
        self.catalog.refresh(self.progress, self.cancelled)
        self._check()
        if not self.catalog.has_sources:
            return
        seen: set[str] = set()
        asked = _combine_questions(queries)
        hits = _merge_hits([self.catalog.search(query, list(KINDS.values())) for query in queries])
        hits = [hit for hit in hits if not self._is_just_heard(hit)]
        for phase, kinds in KINDS.items():
            yield from self._phase_sections(
                phase, _filter_relevant([hit for hit in hits if hit.source.kind in kinds]), asked, page, seen
            )

    def _is_just_heard(self, hit: SourceHit) -> bool:
        """Whether the asking agent still knows a passage: an agent started this program, and the passage is recent."""
        at = hit.passage.time
        if hit.source.kind != "session" or at is None or self.clock() - at >= JUST_NOW:
            return False
        environment = self.catalog.places.environment
        return any(agent.inside_variable and environment.get(agent.inside_variable) for agent in all_agents())

    def _phase_sections(
        self, phase: str, hits: Sequence[SourceHit], query: SearchQuery, page: Page, seen: set[str]
    ) -> Iterator[ContextSection]:
        from engram.recall.ranking import excerpt

        for hit, quote in self._choose_hits(hits, query.text, seen)[:MAX_PHASE_PASSAGES]:
            self._check()
            text = quote or excerpt(hit.passage.text, query.terms)
            where = provenance_of(hit, self.catalog.places.home, self.zone)
            room = min(MAX_SNIPPET_BYTES, page.room(TITLES[phase]) - _size(where) - 10)
            if room < MIN_SNIPPET_BYTES:
                raise _Stopped("budget")
            yield _section(phase, where, fit_text(text, room), hit.relevance)

    def _choose_hits(self, hits: Sequence[SourceHit], question: str, seen: set[str]) -> list[tuple[SourceHit, str]]:
        """The hits of a phase in order, without duplicate texts, each with the words a model quotes from it, or ""."""
        asked = " ".join(question.split())
        fresh: list[SourceHit] = []
        for hit in hits:
            said = " ".join(hit.passage.text.split())
            if said not in seen and said not in (asked, f"user: {asked}"):
                seen.add(said)
                fresh.append(hit)
        if self.refiner is None:
            return [(hit, "") for hit in fresh]
        considered = fresh[:MAX_CONSIDERED_PASSAGES]
        chosen = self.refiner.choose(question, [hit.passage.text for hit in considered])
        return [(hit, "") for hit in fresh] if chosen is None else [(considered[at], quote) for at, quote in chosen]

    def summary(self, query: str, page: Page) -> str:
        """A model's summary of the findings; "" without a model or if cancelled."""
        if self.refiner is None or not page.summed_up or not page.sections or self.cancelled():
            return ""
        return fit_text(self.refiner.summarise(query, page.text), MAX_SUMMARY_BYTES)

    # -- without a question

    def recent(
        self,
        memories: "Callable[[datetime | None, datetime | None], Sequence[Memory]]",
        summarised: "Sequence[EarlierSession]",
        page: Page,
    ) -> str:
        """Fill a page with the ends of the newest transcripts, session summaries, and the memories from that time.

        If there are no transcripts, it uses the newest memories. Returns why it ended early, or "".
        """
        said = Page(page.budget - page.budget // MEMORY_BUDGET_DIVISOR)
        spans: list[tuple[datetime, datetime]] = []
        stopped = ""
        try:
            for source, older in zip(self.catalog.sessions, [*self.catalog.sessions[1:], None], strict=False):
                self._check()
                if self._add_session(source, said):
                    spans.append(
                        (older.modified if older else source.modified - ASSUMED_SESSION_LENGTH, source.modified)
                    )
        except _Stopped as stop:
            stopped = str(stop)
        since, until = (spans[-1][0], max(until for _, until in spans)) if spans else (None, None)
        room = Page(page.budget - said.used - 1)
        for session in summarised:
            line = session.text.removeprefix("- ")
            room.add(ContextSection("recent", "Summaries of sessions", safe_word(session.id), line, line))
        for memory in memories(since, until):
            room.add(_memory_section(memory, "Memories from these sessions" if spans else "Newest memories"))
        page.sections += [*said.sections, *room.sections]
        page.lines += [*said.lines, *([""] if said.lines and room.lines else []), *room.lines]
        return "" if stopped == "budget" else stopped

    def _add_session(self, source: Source, page: Page) -> bool:
        """Add as much of a session's end as fits; False if it belongs to another project or has no text."""
        title = f"{notice(source.title)} ({shown_path(source, self.catalog.places.home)})"
        room = page.room(title)
        if room < MIN_SESSION_BYTES:
            raise _Stopped("budget")
        try:
            directory, lines = spoken_lines(source, room)
        except Exception as error:
            self.catalog.warnings.append(f"{source.path}: {problem_of(error)}")
            return False
        if not is_here(source, directory, self.catalog.places):
            return False
        name = short_name(source)
        kept: list[ContextSection] = []
        for line in reversed(lines):
            at = f" {in_zone(line.at, self.zone):%m-%d %H:%M}" if line.at is not None else ""
            where = f"{name}{at} {line.role}"
            text = (
                fit_text(line.text, min(MAX_TURN_BYTES, room - _size(where) - 10)) if room > MIN_SNIPPET_BYTES else ""
            )
            section = ContextSection("recent", title, where, notice(text), f"{where}: {quote_text(text)}")
            if not text or _size(section.line) + 1 > room:
                break
            room -= _size(section.line) + 1
            kept.append(section)
        for section in reversed(kept):
            page.add(section)
        return bool(kept)


def with_summary(summary: str, model: str, text: str) -> str:
    """The findings after their summary, which is labelled as a model's words."""
    return f"## Summary by {safe_word(model)}, of the lines below\n{quote_text(summary)}\n\n{text}" if summary else text


def _memory_section(memory: "Memory", title: str) -> ContextSection:
    from engram.model.hit import Hit

    hit = Hit(memory.id, "memory", 0.0, memory.statement, memory)
    text = fit_text(memory.statement, MAX_SNIPPET_BYTES)
    line = f"{label_of(hit)}: {quote_text(text)}{remark_of(hit, dated=False)}"
    return ContextSection("memories", title, label_of(hit), notice(text), line, id=memory.id)


def _section(phase: str, where: str, text: str, relevance: float) -> ContextSection:
    return ContextSection(phase, TITLES[phase], where, notice(text), f"{where}: {quote_text(text)}", relevance)


def _memory_sections(found: Iterable[Recall]) -> Iterator[ContextSection]:
    for recall in found:
        for hit in newest_summaries_first(recall.hits):
            dated = recall.intent != "current" or is_summary(hit)
            line = line_of(hit, dated=dated, zone=recall.zone)
            text = notice(hit.stretch or hit.text) + remark_of(hit, dated=dated, zone=recall.zone)
            yield ContextSection("memories", TITLES["memories"], label_of(hit), text, line, hit.relevance, hit.id)


def _further_sections(found: Iterable[Recall]) -> Iterator[ContextSection]:
    """The other parts of the answer as sections, without repeated lines."""
    seen: set[str] = set()
    for recall in found:
        for heading, lines in part_lines(recall.parts, recall.zone):
            for line in lines:
                if line not in seen:
                    seen.add(line)
                    yield ContextSection(FURTHER_PHASE, heading.rstrip(":"), "", line, line)


def _unique(sections: Iterable[ContextSection]) -> Iterator[ContextSection]:
    seen: set[str] = set()
    for section in sections:
        if section.provenance not in seen:
            seen.add(section.provenance)
            yield section


def _combine_questions(queries: Sequence[SearchQuery]) -> SearchQuery:
    """Combine the questions into one, for choosing among their findings."""
    terms = dict.fromkeys(term for query in queries for term in query.terms)
    return replace(queries[0], text="; ".join(query.text for query in queries), terms=tuple(terms))


def _merge_hits(found: Sequence[Sequence[SourceHit]]) -> list[SourceHit]:
    """The hits of several questions, each once with its best relevance, most relevant first."""
    best: dict[int, SourceHit] = {}
    for hit in (hit for hits in found for hit in hits):
        if hit.n not in best or hit.relevance > best[hit.n].relevance:
            best[hit.n] = hit
    return sorted(best.values(), key=lambda hit: (-hit.relevance, -hit.score, hit.n))


def _filter_relevant(hits: Sequence[SourceHit]) -> list[SourceHit]:
    """The hits of one phase that pass the floor and are not far less relevant than the best of them."""
    floor = max(ABOUT_FLOOR, MIN_SHARE_IN_PHASE * hits[0].relevance) if hits else ABOUT_FLOOR
    return [hit for hit in hits if hit.relevance >= floor]


def provenance_of(hit: SourceHit, home: Path, zone: tzinfo) -> str:
    """Where a passage comes from: its file and section, or its session and time."""
    where = shown_path(hit.source, home)
    if hit.source.kind == "session":
        at = hit.passage.time or hit.source.modified
        return f"session of {in_zone(at, zone):%Y-%m-%d %H:%M} ({where})"
    if hit.source.kind == "skill" and hit.source.title:
        where = f"skill {quote_text(hit.source.title)} ({where})"
    return f"{where} § {quote_text(hit.passage.section)}" if hit.passage.section else where


def shown_path(source: Source, home: Path) -> str:
    """A source's path as shown to people; quoted if it could be mistaken for other text."""
    path = Path(source.name.partition("#")[0])
    name = f"~/{path.relative_to(home)}" if path.is_relative_to(home) else str(path)
    return name if _PLAIN_PATH.fullmatch(name) else quote_text(name)


def fit_text(text: str, room: int) -> str:
    """Shorten the text to this many bytes: to whole sentences or lines if one fits, otherwise to whole words."""
    from engram.text.tokens import SENTENCE_END

    def fits(part: str) -> bool:
        return _size(quote_text(part)) <= room

    if fits(text):
        return text
    ends = [match.start() for match in SENTENCE_END.finditer(text)]
    low, high = 0, len(ends)
    while low < high:
        middle = (low + high + 1) // 2
        if fits(f"{text[: ends[middle - 1]].rstrip()} …"):
            low = middle
        else:
            high = middle - 1
    whole = f"{text[: ends[low - 1]].rstrip()} …" if low else ""
    return whole if _size(whole) * 2 >= room else longest_fitting(text, fits, 1)


def _size(text: str) -> int:
    return len(text.encode("utf-8", "replace"))
