"""Which hits have less of what is asked than another one.

In "when does the trucking client pay?" every memory about that client matches two words of three, and each seems relevant by itself. Beside
the memory that says when it pays, the others are about something else: what distinguishes hits are the words of the question that not all
of them have. A word counts by the most similar word of a memory and its cues.

A memory about another entity of the same kind ("the lamp of the Hartwig microscope" for that of the Leitz microscope) is no answer either.
"""

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from engram.model.hit import Hit
from engram.model.memory import Memory
from engram.recall.cutoff import LOOKED_UP_RELEVANCE, SURE_RELEVANCE, asks_for_several, best_relevance, is_read
from engram.text.entities import entities
from engram.text.tokens import query_terms, tokens

if TYPE_CHECKING:
    import numpy as np

    from engram.recall.freshness import Replacements
    from engram.recall.similarity import Floats

__all__ = ["MIN_SHARE", "find_covering_less", "find_siblings", "measure_coverage", "terms_of_hit"]

MIN_SHARE = 0.5
"""A hit that has less than this share of the best one's coverage of the distinguishing words is about something else."""
MIN_SHARE_OF_SEVERAL = 0.6
"""The same where several things are asked for, for a hit that also has less than this share of the best one's relevance."""


def find_covering_less(
    question: str, hits: Sequence[Hit], searched: Sequence[Hit], replaced: "Replacements"
) -> frozenset[str]:
    """The ids of the memories that are about another entity, or cover less of the question than another hit. `searched` are the hits of
    the search, whatever their relevance. A memory covers what those cover that it replaced; one that was looked up needs no word of the question.
    """
    hits = [
        hit for hit in hits if hit.memory is not None and hit.relevance < LOOKED_UP_RELEVANCE and not _is_for_task(hit)
    ]
    siblings = find_siblings(question, searched)
    # A memory about the named entity that says nothing of what its siblings say does not answer either.
    names = {term for name in entities(question) for term in query_terms(name)} if siblings else set()
    terms = [term for term in dict.fromkeys(query_terms(question)) if term not in names]
    rivals = [*hits, *(hit for hit in searched if hit.id in siblings and hit not in hits)]
    if len(rivals) < 2 or not terms:
        return siblings
    shares = dict(zip([hit.id for hit in rivals], measure_coverage(terms, rivals), strict=True))
    for older, found in replaced.newer.items():
        for newer in found:
            is_likely = (older, newer.id) not in replaced.unmentioned
            if newer.id in shares and is_likely and (shares[newer.id] or _is_recorded(older, newer)):
                shares[newer.id] = max(shares[newer.id], shares.get(older, 0.0))
    # Evidence from documents sets no standard for what somebody said.
    standard = [hit for hit in rivals if not is_read(hit)] or rivals
    most = max([shares[hit.id] for hit in standard if hit in hits], default=0.0)
    if asks_for_several(question):
        far = [hit for hit in hits if hit.relevance < MIN_SHARE_OF_SEVERAL * best_relevance(hits)]
        return siblings | {hit.id for hit in far if shares[hit.id] < MIN_SHARE_OF_SEVERAL * most}
    # A sibling may have the words of the question where the answer has others, so it refutes only what is unlikely.
    most_of_all = max(shares[hit.id] for hit in standard)
    least = {hit.id: MIN_SHARE * (most if hit.relevance >= SURE_RELEVANCE else most_of_all) for hit in hits}
    return siblings | {hit.id for hit in hits if shares[hit.id] < least[hit.id]}


def find_siblings(question: str, hits: Sequence[Hit]) -> frozenset[str]:
    """The ids of the memories that say of another entity what is asked about the only one that the question names, if a hit has that name."""
    names = [frozenset(query_terms(name)) for name in entities(question)]
    if len(names) != 1 or not names[0] or not any(names[0] <= terms_of_hit(hit) for hit in hits):
        return frozenset()
    asked = set(query_terms(question))
    return frozenset(
        hit.id
        for hit in hits
        if hit.memory is not None
        and names[0].isdisjoint(own := terms_of_hit(hit))
        and asked & own
        and _names_another(hit, asked)
    )


def measure_coverage(terms: Sequence[str], hits: Sequence[Hit]) -> list[float]:
    """For each hit the share that it has of the terms that not all hits have, by their weight; 1 if nothing distinguishes the hits."""
    import numpy as np

    exact, near, weights = _compare(terms, [terms_of_hit(hit) for hit in hits])
    distinguishing = ~exact.all(axis=0)
    if not distinguishing.any():
        return [1.0] * len(hits)
    chosen = weights * distinguishing
    shares: list[float] = ((near * chosen).sum(axis=1) / np.maximum(chosen.sum(), 1e-9)).tolist()
    return shares


def terms_of_hit(hit: Hit) -> set[str]:
    """The index terms of a hit's text and cues."""
    cues = hit.memory.cues if hit.memory is not None else ()
    return set(tokens(" . ".join((hit.text, *cues))))


def _compare(terms: Sequence[str], told: Sequence[Collection[str]]) -> "tuple[np.ndarray, Floats, Floats]":
    """(texts x terms) whether a text has a term, and how similar its most similar word is; and the weight of each term."""
    import numpy as np

    from engram.recall.ranking import shared_lexicon
    from engram.recall.similarity import TermSimilarity, match_words

    lexicon = shared_lexicon(alike=True)
    read = [lexicon.read(" ".join(sorted(words)))[0] for words in told]
    vocabulary, places = np.unique(np.concatenate(read), return_inverse=True)
    found = match_words(terms, vocabulary, lexicon)
    columns = np.split(places, np.cumsum([len(words) for words in read])[:-1])
    exact = np.array([found.same[:, own].any(axis=1) for own in columns])
    near = np.array([found.cosines[:, own].max(axis=1, initial=0.0) for own in columns])
    near[near < TermSimilarity().floor] = 0.0
    return exact, np.where(exact, np.float32(1), near), found.weights


def _names_another(hit: Hit, asked: Collection[str]) -> bool:
    return any(set(query_terms(name)).isdisjoint(asked) for name in entities(hit.text) if query_terms(name))


def _is_recorded(older: str, newer: Memory) -> bool:
    """Whether more than a model's word says that a memory replaced an older one."""
    return older in newer.supersedes or any(link.target == older for link in newer.associations)


def _is_for_task(hit: Hit) -> bool:
    """Whether a memory was found by its situation, which need not share a word with the task."""
    from engram.recall.situated import is_about_task, is_situated

    return is_about_task(hit) and is_situated(hit)
