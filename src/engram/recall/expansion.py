"""Deep search: several wordings of one question, searched at once and fused by reciprocal rank."""

from collections.abc import Callable, Sequence
from datetime import datetime, time
from typing import TYPE_CHECKING

from engram.model.errors import EngramError, InvalidInput, ModelError
from engram.model.hit import Hits
from engram.model.lazy import replace
from engram.recall.parse import ParsedQuestion
from engram.recall.query import SearchQuery
from engram.recall.search import Searcher
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
    """Search a question together with the caller's wordings, and with rewordings by a model or by rules up to `n_queries`."""
    if type(n_queries) is not int or not 1 <= n_queries <= MOST_QUERIES:
        raise InvalidInput(f"n_queries {n_queries!r} must be a whole number from 1 to {MOST_QUERIES}")
    query = query.validate()
    more, warning = _wordings(query.text, n_queries - 1 - len(query.wordings), permute)
    hits = searcher.search(replace(query, wordings=tuple(dict.fromkeys((*query.wordings, *more)))))
    hits.warnings += [warning] if warning else []
    return hits


def _wordings(question: str, count: int, permute: Permute | None) -> tuple[list[str], str]:
    if count < 1:
        return [], ""
    by_rules = permutations(question, count)
    if permute is None:
        return by_rules, ""
    try:
        reworded = [text.strip() for text in permute(question, count) if text.strip()]
    except EngramError as error:
        return by_rules, f"reworded by rules: {error}"
    return list(dict.fromkeys([*reworded, *by_rules]))[:count], ""


BY_RULES = "read by rules: "
"""The prefix of the reason for a question that the model could not parse."""
SURE_INTENT = 0.95
"""The probability of an intent from which the model is not asked."""
Refine = Callable[[ParsedQuestion, datetime], ParsedQuestion]


def model_refiner(model: "LanguageModel") -> Refine:
    """A refinement by a language model, for questions whose intent is uncertain. Where it fails, the first parse stays."""
    from engram.llm.schemas import QuestionReading

    def refine(question: ParsedQuestion, at: datetime) -> ParsedQuestion:
        if question.confidence >= SURE_INTENT or not question.text.strip():
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


def model_permuter(model: "LanguageModel") -> Callable[[str, int], Sequence[str]]:
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
