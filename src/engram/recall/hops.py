"""Two hops: answers about an entity that the question describes but does not name.

"How does our contact at Norsend like to be contacted?" finds only "The contact at Norsend is Yusuf Demir" because the
memory about Yusuf Demir shares no word with it. A second search replaces the words that the first hit covers with the entity it names.
"""

import re
from collections.abc import Iterator, Sequence

from engram.model.hit import Hit
from engram.model.lazy import dataclass, replace
from engram.recall.coverage import MIN_SHARE, measure_coverage, terms_of_hit
from engram.recall.cutoff import MIN_SHARE_OF_BEST, best_relevance, derive_hits, filter_hits, mark_found_by
from engram.recall.query import SearchQuery
from engram.recall.search import Searcher
from engram.recall.trace import TracedAnswer, first_hits
from engram.text.entities import entities
from engram.text.tokens import query_terms, tokens

__all__ = ["FOUND_BY_ENTITY", "Hop", "follow_entities", "plan_hops"]

FOUND_BY_ENTITY = "entity"
"""In a trace: found by an entity of another hit."""
HOP_PURPOSE = "what is known about “{entity}”"
MAX_FOLLOWED_HITS = 2
"""First hits whose entities are followed."""
MAX_HOPS = 1
MAX_HITS_PER_HOP = 2
"""Hits added by one hop."""
_WORD = re.compile(r"\w+(?:['’.-]+\w+)*")


@dataclass(frozen=True, slots=True)
class Hop:
    """A second search: the question about an entity of a first hit."""

    entity: str
    text: str
    source: str
    """The id of the first hit."""
    missing: tuple[str, ...]
    """The words of the question that the first hit lacks."""


def follow_entities(searcher: Searcher, query: SearchQuery, answer: TracedAnswer, floor: float) -> TracedAnswer:
    """Add memories about the entities of the first hits to an answer."""
    found = {hit.id for hit in answer.hits}
    added: list[Hit] = []
    for hop in plan_hops(query.text, answer.hits):
        asked = replace(query, text=hop.text, task="", wordings=(), min_relevance=floor)
        hits = searcher.search(replace(asked, purpose=HOP_PURPOSE.format(entity=hop.entity)))
        terms = set(query_terms(hop.entity))
        about = [hit for hit in hits if hit.id not in found and terms <= set(tokens(hit.text))]
        best = best_relevance(about)
        likely = [hit for hit in about if hit.relevance >= MIN_SHARE_OF_BEST * best]
        followed = [mark_found_by(hit, FOUND_BY_ENTITY) for hit in _cover_missing(hop, likely, answer.hits)][
            :MAX_HITS_PER_HOP
        ]
        found |= {hit.id for hit in followed}
        added += followed
    if not added:
        return answer
    possible = answer.parts.possible
    parts = replace(answer.parts, possible=filter_hits(possible, lambda hit: hit.id not in found))
    return replace(answer, hits=first_hits(derive_hits(answer.hits, [*answer.hits, *added]), query.limit), parts=parts)


def _cover_missing(hop: Hop, found: Sequence[Hit], known: Sequence[Hit]) -> list[Hit]:
    """The hits that have more of what the first hit lacks than it has, and as much as the others that are known."""
    if not found:
        return []
    shares = dict(
        zip([hit.id for hit in (*found, *known)], measure_coverage(hop.missing, [*found, *known]), strict=True)
    )
    least = MIN_SHARE * max(shares.values())
    return [hit for hit in found if shares[hit.id] >= least and shares[hit.id] > shares[hop.source]]


def plan_hops(question: str, hits: Sequence[Hit]) -> list[Hop]:
    """The second searches for a question, except for entities that it names and hits that cover it completely."""
    sources = [hit for hit in hits if hit.memory is not None][:MAX_FOLLOWED_HITS]
    return list({hop.text: hop for hit in sources for hop in _hops_of(question, hit)}.values())[:MAX_HOPS]


def _hops_of(question: str, hit: Hit) -> Iterator[Hop]:
    covered, named = terms_of_hit(hit), dict.fromkeys(query_terms(question))
    missing = tuple(term for term in named if term not in covered)
    if not missing or covered.isdisjoint(named):
        return
    for entity in entities(hit.text):
        terms = set(query_terms(entity))
        if terms and terms.isdisjoint(named):
            yield Hop(entity, _substitute(question, covered, entity), hit.id, missing)


def _substitute(question: str, covered: set[str], entity: str) -> str:
    """Replace the words that the hit covers with the entity."""
    words, is_placed = [], False
    for word in _WORD.findall(question):
        terms = query_terms(f"x {word}")[1:]
        if not terms or not covered.issuperset(terms):
            words.append(word)
        elif not is_placed:
            words.append(entity)
            is_placed = True
    return " ".join(words)
