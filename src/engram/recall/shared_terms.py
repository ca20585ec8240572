"""Words that nearly every memory of a scope shares, such as the project's name: they tell no memory from another."""

import re

from engram.model.lazy import replace
from engram.recall.query import SearchQuery
from engram.store.protocol import Candidates
from engram.text.tokens import query_terms

__all__ = ["drop_shared_terms"]

SHARED = 0.2
"""The share of all documents from which on a term is shared."""
MIN_DOCUMENTS = 20
"""Documents from which on that can be judged."""
_WORD = re.compile(r"[\w'’-]+")


def drop_shared_terms(query: SearchQuery, candidates: Candidates) -> SearchQuery:
    """The query as relevance reads it: without the terms that nearly all documents have, if others are left."""
    if candidates.total < MIN_DOCUMENTS:
        return query
    least = SHARED * candidates.total
    kept = tuple(term for term in query.terms if candidates.frequency.get(term, 0) < least)
    if not kept or len(kept) == len(query.terms):
        return query
    dropped = set(query.terms) - set(kept)
    text = _WORD.sub(
        lambda found: "" if dropped.issuperset(query_terms(f"x {found[0]}")[1:] or ["\0"]) else found[0], query.text
    )
    return replace(query, text=" ".join(text.split()), terms=kept)
