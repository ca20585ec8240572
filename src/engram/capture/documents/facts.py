"""The facts that a document states, each with its evidence in a chunk: found by rules and, if wanted, by a language model.

The rules take sentences that oblige, define, measure or date, verbatim. Precision before recall: a sentence without
such a mark is not a fact, and code yields only what its authors wrote for readers (the first sentence of a docstring, a
comment that warns or obliges).
"""

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from engram.capture.documents.chunk import Chunk
from engram.capture.documents.source import FACT_TYPE, Chunks, SourceText
from engram.capture.extraction import ExtractedFact
from engram.capture.model_review import FROM_THE_MODEL, INVENTED_QUOTE, review
from engram.gates.instructions import injection_problem
from engram.gates.pipeline import admit
from engram.gates.secrets.scan import secrets_problem
from engram.model.errors import ModelError, ModelNonsense, Refused
from engram.model.lazy import dataclass, field
from engram.model.memory import Evidence, Memory
from engram.model.records import DOCUMENT_ROLE, Event
from engram.store.protocol import Progress
from engram.text.content_hash import quote_hash
from engram.text.tokens import document_sentences

if TYPE_CHECKING:
    from engram.llm.model import LanguageModel

T = TypeVar("T")

MAX_DOCUMENT_FACTS = 2_000
"""Facts stored per document, spread evenly over it; more would bury what people said."""
# A sentence whose marks add up to this weight is a fact.
MIN_FACT_WEIGHT = 2
MIN_FACT_WORDS, MAX_FACT_CHARS = 4, 1_000


@dataclass(frozen=True, slots=True)
class StatedFact:
    """A fact that a document states, and its evidence in a chunk."""

    statement: str
    evidence: Evidence
    heading: str
    confidence: float | None = None
    """None means the default of a trusted program's memory."""

    def draft(self, source: SourceText) -> dict[str, object]:
        """The fact as a memory to be added."""
        sure = {} if self.confidence is None else {"confidence": self.confidence}
        return {
            "statement": self.statement,
            "type": FACT_TYPE,
            "scope": source.task.scope,
            "task": source.task.id,
            "context": f"{source.title}: {self.heading}".strip(": "),
            "evidence": [self.evidence],
            **sure,
        }


@dataclass(slots=True)
class DocumentFacts:
    """The facts of a document, how many the limits dropped, and warnings about that and about the model."""

    facts: list[StatedFact] = field(default_factory=list)
    left_out: int = 0
    warnings: list[str] = field(default_factory=list)


def facts_of(
    source: SourceText, chunks: Chunks, most: int, model: "LanguageModel | None", progress: Progress
) -> DocumentFacts:
    """The facts of a document: by rules at most `most` per chunk and `MAX_DOCUMENT_FACTS` in all; a model adds at most `most` per chunk."""
    found = DocumentFacts()
    if most:
        _add_by_rules(found, source, chunks, most)
        if model is not None:
            _add_by_model(found, model, chunks, most, progress)
    return found


def is_harmless(statement: str) -> bool:
    """Whether a fact contains no secret and no instruction to an agent."""
    memory = Memory("", statement)
    return not injection_problem(memory) and not secrets_problem(memory)


# -- by rules


class FactSpan(NamedTuple):
    """A statement and its span: `text[start:end]` with its whitespace collapsed is the statement."""

    statement: str
    start: int
    end: int


def _add_by_rules(found: DocumentFacts, source: SourceText, chunks: Chunks, most: int) -> None:
    # A very long document yields fewer facts per chunk, so that its end is covered too.
    each = max(1, min(most, MAX_DOCUMENT_FACTS // max(1, len(chunks))))
    chosen: list[tuple[Chunk, Event, FactSpan]] = []
    beyond_chunk = beyond_document = 0
    for chunk, event in chunks:
        weighed = fact_spans(source.text, chunk, source.kind)
        chosen += [(chunk, event, span) for span in sorted(weighed[:each], key=lambda span: span.start)]
        beyond_chunk += max(0, len(weighed) - most)
        beyond_document += max(0, min(most, len(weighed)) - each)
    beyond_document += max(0, len(chosen) - MAX_DOCUMENT_FACTS)
    for chunk, event, span in _evenly(chosen):
        evidence = source.evidence(chunk, event, span.start, span.end)
        if evidence is not None and is_harmless(span.statement):
            found.facts.append(StatedFact(span.statement, evidence, str(event.payload["heading"])))
    found.left_out = beyond_chunk + beyond_document
    if beyond_chunk:
        found.warnings.append(
            f"{beyond_chunk:,} more facts were not stored (maximum {most} per chunk; raise it with max_facts_per_chunk or "
            "--facts); the chunks contain the full text"
        )
    if beyond_document:
        found.warnings.append(
            f"{beyond_document:,} more facts were not stored (maximum {MAX_DOCUMENT_FACTS:,} per document, spread evenly); the "
            "chunks contain the full text"
        )


def _evenly(items: Sequence[T]) -> Sequence[T]:
    """At most `MAX_DOCUMENT_FACTS` items, at even distances."""
    if len(items) <= MAX_DOCUMENT_FACTS:
        return items
    return [items[place * len(items) // MAX_DOCUMENT_FACTS] for place in range(MAX_DOCUMENT_FACTS)]


_MONTH = r"(?:jan|feb|mar|apr|may|june?|july?|aug|sept?|oct|nov|dec)[a-z]*"
_PERIOD = r"(?:business |working |calendar )?(?:days?|weeks?|months?|years?|hours?|minutes?|quarters?)"
_NUMERALS = "one two three four five six seven eight nine ten twelve fifteen twenty thirty sixty ninety"
_COUNT = rf"(?:\d[\d.,]{{0,30}}+|{_NUMERALS.replace(' ', '|')})"
_LIMIT = r"(?:within|no later than|at least|not less than|up to|for a period of|every|after)"
_DIGIT = "0"
_PERIODS = "day days week weeks month months year years hour hours minute minutes quarter quarters"
# The marks of a fact: a weight, trigger words of which one must occur ("0" is any digit), and a pattern for the sentence in
# lower case.
_MARKS: tuple[tuple[int, str, str], ...] = (
    # obligations, bans and rights
    (3, "shall must", r"\b(?:shall|must)\b"),
    (3, "agree agrees undertake undertakes", r"\b(?:undertakes?|agrees?) (?:not )?to\b"),
    (3, "required obliged warrants warrant", r"\b(?:is|are) (?:required|obliged) to\b|\bwarrants? that\b"),
    (2, "not cannot never always only", r"\b(?:(?:may|will) not|cannot|never|always|may only)\b"),
    (2, "entitled liable responsible prohibited", r"\b(?:is|are) (?:entitled to|liable|responsible for|prohibited)\b"),
    (1, "will should governed requires require", r"\b(?:will|should|is governed by|requires?)\b"),
    # definitions
    (3, "means mean meaning refers defined", r"[\"”’*]\)?\s+(?:means|shall mean|refers to|has the meaning)\b|\bis defined as\b|"
        r"\bmeans (?:the|any|an?|each|all)\b"),
    # deadlines
    (2, _PERIODS, rf"\b{_LIMIT}\s+(?:\w+\s+)?\(?{_COUNT}\)?[\s-]+(?:\(\d+\)\s*)?{_PERIOD}\b"),
    (2, "later deadline effective expires expire due commences commencing",
        r"\b(?:no later than|deadline|effective (?:date|as of)|expires? on|due (?:on|by|date)|commenc(?:es|ing) on)\b"),
    # amounts, dates, measures
    (2, _DIGIT, r"(?:[$€£¥]|\b(?:usd|eur|gbp|chf|jpy)\b)\s?\d|\d\s?(?:[$€£¥]|(?:usd|eur|gbp|chf|dollars|euros|pounds)\b)"),
    (2, _DIGIT, rf"\b\d{{1,2}}(?:st|nd|rd|th)?\s+(?:of\s+)?{_MONTH}\s+\d{{4}}\b|\b{_MONTH}\s+\d{{1,2}}(?:st|nd|rd|th)?,?\s+\d{{4}}\b|"
        r"\b\d{4}-\d{2}-\d{2}\b"),
    (2, _DIGIT, r"\d\s?(?:%|percent\b|per cent\b|‰)"),
    (2, _PERIODS, rf"\b{_COUNT}[\s-]+{_PERIOD}\b"),
    (2, _DIGIT, r"\b\d[\d.,]{0,30}+\s?(?:ms|[kmgt]i?b|[kcm]?m|kg|g|mg|l|ml|[kmg]?hz|[kmg]?w|kwh|°c|°f|rpm|requests|users|tokens|seats|units)\b"),
)  # fmt: skip
_COMPILED = tuple((weight, frozenset(words.split()), re.compile(pattern)) for weight, words, pattern in _MARKS)
_PLAIN_WORD = re.compile(r"[a-z]+")
_HAS_DIGIT = re.compile(r"\d")
# Two capitalised words in a row inside the sentence: a name adds weight.
_NAME = re.compile(r"(?<=[a-z,;] )[A-Z][\w&.-]+ (?:of |and )?[A-Z][\w&.-]+")
_PATH = re.compile(r" > | – ")
_NUMBERING = re.compile(r"\A(?:[A-Za-z]+ )?[\dIVXLC.]+ ")
_TABLE_OR_HEADING = re.compile(r"\s*(?:\||\#{1,6}\s)|.*\|.*\|")
_FENCED = re.compile(r"^ {0,3}(```|~~~).*?(?:^ {0,3}\1[`~]*[ \t\r]*$|\Z)", re.MULTILINE | re.DOTALL)

_DOCSTRING = re.compile(
    r'(?:^|:[ \t\r]*+\n)[+ \t]*+[rRuU]?"""[ \t]*+\n?[+ \t]*+(?P<first>[^\s"][^"\n]{10,300}?[.!])(?=\s|""")'
)
_COMMENT_MARK = re.compile(r"(?<!\#)\#++|(?<![:/])//++!?|(?<!/)/\*++|(?<!-)--|(?<!;);;++|^\+?[ \t]*+\*")
_WARNING = re.compile(
    r"(?:TODO|FIXME|NOTE|WARNING|IMPORTANT|HACK|XXX|SAFETY|INVARIANT)\b"
    r"|.{0,120}?\b(?:must|never|always|shall|do not|don't|required|at most|at least)\b",
    re.IGNORECASE,
)
# Comment marks tried per line: a `#` in a string may come before the comment.
_MOST_MARKS = 3


def fact_spans(text: str, chunk: Chunk, kind: str) -> list[FactSpan]:
    """Every fact of a chunk in a document of this kind, the weightiest first."""
    found = _facts_in_code(text, chunk, kind) if kind in ("code", "diff") else _facts_in_prose(text, chunk)
    return [fact for _, fact in sorted(found, key=lambda weighed: (-weighed[0], weighed[1].start))]


def _facts_in_prose(text: str, chunk: Chunk) -> Iterator[tuple[int, FactSpan]]:
    seen: set[str] = set()
    titles = {_NUMBERING.sub("", title) for title in _PATH.split(chunk.heading)}
    for start, end in _prose(text, chunk):
        for found, last in document_sentences(text, start, end):
            if last - found < 2 * MIN_FACT_WORDS:
                continue
            first = _after_title(text, found, last, titles)
            statement = " ".join(text[first:last].split())
            weight = _weight(statement)
            if weight >= MIN_FACT_WEIGHT and statement not in seen:
                seen.add(statement)
                yield weight, FactSpan(statement, first, last)


def _after_title(text: str, start: int, end: int, titles: set[str]) -> int:
    """The start of the sentence after the section's own title, which plain text does not set apart."""
    line = text[start:end].split("\n", 1)[0]
    if len(line) == end - start or line.strip() not in titles:
        return start
    rest = text[start + len(line) : end]
    return end - len(rest.lstrip())


def _prose(text: str, chunk: Chunk) -> Iterator[tuple[int, int]]:
    """The spans of the chunk outside fenced code."""
    at = chunk.start
    for fence in _FENCED.finditer(text, chunk.start, chunk.end):
        yield at, fence.start()
        at = fence.end()
    yield at, chunk.end


def _weight(statement: str) -> int:
    if len(statement) > MAX_FACT_CHARS or len(statement.split()) < MIN_FACT_WORDS or statement.endswith("?"):
        return 0
    if _TABLE_OR_HEADING.match(statement) or statement.upper() == statement or statement.endswith(":"):
        return 0
    lowered = statement.lower()
    words = set(_PLAIN_WORD.findall(lowered))
    if _HAS_DIGIT.search(lowered):
        words.add(_DIGIT)
    weight = sum(
        weight for weight, triggers, pattern in _COMPILED if not words.isdisjoint(triggers) and pattern.search(lowered)
    )
    return weight + 1 if weight and _NAME.search(statement) else weight


def _facts_in_code(text: str, chunk: Chunk, kind: str) -> Iterator[tuple[int, FactSpan]]:
    """The facts in docstrings and comments; in a diff, only added lines."""
    docstrings = (found.span("first") for found in _DOCSTRING.finditer(text, chunk.start, chunk.end))
    for weight, spans in ((2, docstrings), (1, _comments(text, chunk))):
        for start, end in spans:
            line = text.rfind("\n", 0, start) + 1
            statement = " ".join(text[start:end].split())
            if len(statement.split()) >= MIN_FACT_WORDS and (kind == "code" or text.startswith("+", line)):
                yield weight, FactSpan(statement, start, end)


def _comments(text: str, chunk: Chunk) -> Iterator[tuple[int, int]]:
    """The spans of comments that warn or oblige. Linear: each line is matched a fixed number of times."""
    at = chunk.start
    for line in text[chunk.start : chunk.end].split("\n"):
        if len(line) <= MAX_FACT_CHARS and (found := _comment(line)):
            yield at + found[0], at + found[1]
        at += len(line) + 1


def _comment(line: str) -> tuple[int, int] | None:
    for mark in islice(_COMMENT_MARK.finditer(line), _MOST_MARKS):
        start = len(line) - len(line[mark.end() :].lstrip(" \t"))
        if _WARNING.match(line, start):
            return start, len(line.rstrip(" \t\r").removesuffix("*/").rstrip(" \t"))
    return None


# -- by a language model


def _add_by_model(found: DocumentFacts, model: "LanguageModel", chunks: Chunks, most: int, progress: Progress) -> None:
    """Add at most `most` facts per chunk, each with a quote that occurs in the chunk.

    An unusable answer affects only its chunk. If the model is unreachable, or its daily token limit is used up, the
    remaining chunks are skipped, because they would fail too.
    """
    known: dict[str, list[StatedFact]] = {}
    for fact in found.facts:
        known.setdefault(fact.evidence.event, []).append(fact)
    unusable = invented = 0
    for place, (_, event) in enumerate(chunks):
        try:
            reading = review(
                model, [event], _to_extracted(known.get(event.id, ())), frozenset({DOCUMENT_ROLE}), {}, event.at
            )
        except ModelNonsense:
            unusable += 1
            continue
        except ModelError as error:
            found.warnings.append(
                f"the model did not read {len(chunks) - place} of {len(chunks)} chunks ({error}); their facts by rules were stored. "
                "Ingest the document again to let it read all"
            )
            break
        found.facts += [_to_stated_fact(event, fact) for fact, _ in reading.facts if _is_fit(event, fact)][:most]
        invented += sum(why == INVENTED_QUOTE for _, why in reading.refused)
        progress("model", place + 1, len(chunks))
    if unusable:
        found.warnings.append(f"the model's answers about {unusable} of {len(chunks)} chunks could not be used")
    if invented:
        found.warnings.append(
            f"{invented} facts from the model were refused: their quotes do not occur in the document"
        )


def _to_extracted(facts: Sequence[StatedFact]) -> list[ExtractedFact]:
    return [
        ExtractedFact(fact.statement, FACT_TYPE, 1.0, DOCUMENT_ROLE, 0, fact.evidence.span, "rules")
        for fact in facts
        if fact.evidence.span is not None
    ]


def _is_fit(event: Event, fact: ExtractedFact) -> bool:
    """Whether a statement can be stored, is no longer than a fact found by rules, and rests on no redacted secret."""
    is_redacted = bool(event.payload.get("redacted")) and "[redacted:" in event.content[slice(*fact.span)]
    if is_redacted or len(fact.statement) > MAX_FACT_CHARS or not is_harmless(fact.statement):
        return False
    try:
        admit(Memory("", fact.statement))
    except Refused:
        return False
    return True


def _to_stated_fact(event: Event, fact: ExtractedFact) -> StatedFact:
    evidence = Evidence(event.id, fact.span, quote_hash(event.content[slice(*fact.span)]))
    return StatedFact(fact.statement, evidence, str(event.payload["heading"]), FROM_THE_MODEL)
