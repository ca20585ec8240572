"""Questions that only name something: "Jest", "8443", "what do we know about Halcyon", "what changed at Halcyon".

Every memory that contains the name answers such a question; a similar memory without it does not.
"""

from engram.model.hit import Hit
from engram.model.lazy import replace
from engram.recall.answer.parts import MAX_PART
from engram.recall.cutoff import MIN_KNOWN, derive_hits, filter_hits, mark_found_by
from engram.recall.query import SearchQuery
from engram.recall.search import Searcher
from engram.recall.trace import TracedAnswer, first_hits
from engram.text.entities import entities
from engram.text.tokens import query_terms, tokens

__all__ = ["FOUND_BY_NAME", "answer_name_question", "name_asked_about"]

FOUND_BY_NAME = "name"
"""In a trace: contains the name asked about."""
NAME_PURPOSE = "what contains “{name}”"
MAX_WORDS = 10
MAX_MENTIONS = 5
"""A word in more memories than this is a name only if it is written as one."""
_EVERYTHING = frozenset(
    tokens(
        "everything anything all info information fact facts news new update updates latest status change changes changed"
        " happened happen details notes overview summary current currently"
    )
)


def name_asked_about(question: str) -> str:
    """The only name that a question is about; "" if it has another topic."""
    found = [name for name in entities(question) if query_terms(name)]
    if len(found) > 1 or len(question.split()) > MAX_WORDS:
        return ""
    name = found[0] if found else question.strip(" ?!.")
    rest = set(query_terms(f"x {question}")[1:]) - set(query_terms(name)) - _EVERYTHING
    is_word = bool(found) or (len(name.split()) == 1 and bool(query_terms(f"x {name}")[1:]))
    return name if is_word and not rest else ""


def answer_name_question(searcher: Searcher, query: SearchQuery, answer: TracedAnswer, floor: float) -> TracedAnswer:
    """Add every memory that contains the name asked about; other questions keep their answer."""
    name = name_asked_about(query.text)
    terms = set(query_terms(name))
    if not terms:
        return answer
    asked = replace(query, text=name, wordings=(), min_relevance=0.0, purpose=NAME_PURPOSE.format(name=name))
    mentions = [hit for hit in searcher.search(asked) if terms <= set(tokens(hit.text))]
    if name not in entities(query.text) and len(mentions) > MAX_MENTIONS:
        return answer
    found = {hit.id for hit in answer.hits}
    marked = [_raise_to_floor(hit) for hit in mentions if hit.id not in found]
    hits = derive_hits(answer.hits, [*answer.hits, *(hit for hit in marked if hit.relevance >= floor)])
    is_identifier = any(character.isdigit() for character in name)
    others = [hit for hit in hits if is_identifier and not terms <= set(tokens(hit.text))]
    known = filter_hits(hits, lambda hit: hit not in others)
    named = {hit.id for hit in known}
    possible = [*others, *(hit for hit in answer.parts.possible if hit.id not in named)][:MAX_PART]
    parts = replace(answer.parts, possible=derive_hits(answer.parts.possible, possible))
    return replace(answer, hits=first_hits(known, query.limit), parts=parts)


def _raise_to_floor(hit: Hit) -> Hit:
    """Raise the relevance of a hit to the usual floor. It contains the name, but may not answer the question."""
    return mark_found_by(replace(hit, relevance=max(hit.relevance, MIN_KNOWN)), FOUND_BY_NAME)
