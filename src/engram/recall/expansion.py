"""Deep search: several wordings of one question, searched at once and fused by reciprocal rank."""

from collections.abc import Callable, Sequence
from datetime import datetime, time
from typing import TYPE_CHECKING

from engram.model.errors import EngramError, InvalidInput, ModelError
from engram.model.hit import Hit, Hits, HitTrace, Part
from engram.model.lazy import replace
from engram.recall.cutoff import at_least, is_about
from engram.recall.fusion import RRF_K
from engram.recall.parse import ParsedQuestion
from engram.recall.query import SearchQuery
from engram.recall.search import Searcher
from engram.recall.trace import first
from engram.text.entities import entities
from engram.text.time.windows import Window
from engram.text.tokens import query_terms

if TYPE_CHECKING:
    from engram.llm.model import LanguageModel


MOST_QUERIES = 8
Permute = Callable[[str, int], Sequence[str]]
"""Other wordings of a question, at most so many."""
_ASKING = frozenset(
    [
        "what",
        "which",
        "who",
        "whom",
        "whose",
        "when",
        "where",
        "why",
        "how",
        "do",
        "does",
        "did",
        "is",
        "are",
        "was",
        "were",
        "have",
        "has",
        "had",
        "can",
        "could",
        "would",
        "should",
        "will",
        "i",
        "me",
        "my",
        "mine",
        "you",
        "your",
        "we",
        "our",
        "us",
        "the",
        "a",
        "an",
        "of",
        "to",
        "about",
        "tell",
        "please",
        "remind",
        "know",
        "there",
        "any",
        "that",
        "this",
        "it",
    ]
)


def permutations(question: str, count: int) -> list[str]:
    """Rewordings by rules, best first: its content words, its names, each half of it."""
    words = [word for word in question.replace("?", " ").split() if word.lower().strip(".,;:!'\"") not in _ASKING]
    plain = " ".join(words)
    middle = (len(words) + 1) // 2
    wordings = [plain, " ".join(entities(question)), " ".join(words[middle:]), " ".join(words[:middle])]
    found = dict.fromkeys(w for w in wordings if w and w != question and query_terms(w))
    return list(found)[:count]


def deep_search(searcher: Searcher, query: SearchQuery, n_queries: int = 4, permute: Permute | None = None) -> Hits:
    """Search the question and its rewordings, and fuse the results. Where the model fails, rewordings by rules are used."""
    if type(n_queries) is not int or not 1 <= n_queries <= MOST_QUERIES:
        raise InvalidInput(f"n_queries {n_queries!r} must be a whole number from 1 to {MOST_QUERIES}")
    from concurrent.futures import ThreadPoolExecutor  # loads logging, too

    query = query.checked()
    wordings, warning = _wordings(query.text, n_queries - 1, permute)
    queries = [
        replace(query, text=text, limit=max(query.limit * 2, 20), min_relevance=0.0) for text in (query.text, *wordings)
    ]
    with ThreadPoolExecutor(len(queries)) as pool:
        results = list(pool.map(searcher.search, queries))
    fused = first(at_least(_fused(results), query.min_relevance), query.limit)
    fused.warnings = list(dict.fromkeys(w for hits in results for w in hits.warnings)) + ([warning] if warning else [])
    fused.mode, fused.terms = results[0].mode, tuple(dict.fromkeys(t for hits in results for t in hits.terms))
    return fused


def _wordings(question: str, count: int, permute: Permute | None) -> tuple[list[str], str]:
    by_rules = permutations(question, count)
    if permute is None or count < 1:
        return by_rules, ""
    try:
        reworded = [text.strip() for text in permute(question, count) if text.strip()]
    except EngramError as error:
        return by_rules, f"reworded by rules: {error}"
    return list(dict.fromkeys([*reworded, *by_rules]))[:count], ""


def _fused(results: Sequence[Hits]) -> Hits:
    scores: dict[str, list[Part]] = {}
    best: dict[str, Hit] = {}
    for number, hits in enumerate(results, 1):
        # The question itself counts as much as all its rewordings: they add to its answer, and do not outvote it.
        weight = max(1, len(results) - 1) if number == 1 else 1
        # Only relevant hits of a rewording count: merely close ones would add up over several.
        counted = hits if number == 1 else [hit for hit in hits if is_about(hit)]
        for rank, hit in enumerate(counted, 1):
            part = Part(f"wording {number}", weight / (RRF_K + rank), detail=f"rank {rank}")
            scores.setdefault(hit.id, []).append(part)
            best.setdefault(hit.id, hit)
    fused = [_scored(best[i], tuple(parts)) for i, parts in scores.items()]
    fused.sort(key=lambda hit: (-hit.score, hit.id))
    return Hits(fused)


def _scored(hit: Hit, parts: tuple[Part, ...]) -> Hit:
    trace = HitTrace(parts, hit.trace.found_by if hit.trace else {}, hit.trace.raw if hit.trace else {})
    return replace(hit, score=trace.replay(), trace=trace)


BY_RULES = "read by rules: "
"""The prefix of the reason for a question that the model could not parse."""
SURE = 0.95
"""The probability of an intent from which the model is not asked."""
Refine = Callable[[ParsedQuestion, datetime], ParsedQuestion]


def refining(model: "LanguageModel") -> Refine:
    """A refinement by a language model, for questions whose intent is uncertain. Where it fails, the first parse stays."""
    from engram.llm.schemas import QuestionReading

    def refine(question: ParsedQuestion, at: datetime) -> ParsedQuestion:
        if question.confidence >= SURE or not question.text.strip():
            return question
        try:
            read = model.ask("question", QuestionReading, {"today": at.date().isoformat(), "question": question.text})
            window = question.window or _window(read.since, read.until, at)
        except ModelError as error:
            return replace(question, reason=f"{BY_RULES}{error}")
        except ValueError:
            return replace(question, reason=f"{BY_RULES}{model.name} named an invalid date")
        return replace(question, intent=read.intent, window=window, reason=f"read by {model.name}")

    return refine


def permuting(model: "LanguageModel") -> Callable[[str, int], Sequence[str]]:
    """Rewordings by a model."""
    from engram.llm.schemas import Permutations

    def permute(question: str, count: int) -> Sequence[str]:
        return model.ask("permutations", Permutations, {"query": question, "count": str(count)}).queries

    return permute


def _window(since: str, until: str, at: datetime) -> Window | None:
    first, last = (_midnight(day, at) for day in (since, until))
    if (first is None and last is None) or (first is not None and last is not None and first >= last):
        return None
    return Window(first, last)


def _midnight(day: str, at: datetime) -> datetime | None:
    return datetime.combine(datetime.fromisoformat(day).date(), time(), at.tzinfo) if day.strip() else None
