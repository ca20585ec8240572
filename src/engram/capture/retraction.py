"""Finds the memory that somebody asks to forget or says no longer holds ("delete my old number", "I no longer take warfarin").

A memory is meant if it shares the rare words of what was said, and clearly more of them than any other.
"""

from collections.abc import Collection, Sequence
from functools import lru_cache
from math import log
from typing import TYPE_CHECKING

from engram.capture.known import StoreKnown, propose
from engram.gates.trust import tier_3_reason
from engram.model.lazy import dataclass
from engram.model.memory import Memory
from engram.store.documents import meaning_of
from engram.store.protocol import Store
from engram.store.records import CURRENT
from engram.text.tokens import query_terms

if TYPE_CHECKING:
    from engram.gates.proposal import Neighbour

SURE = 0.9
"""The share of what was said, by the rarity of its words, and the cosine, together, from which a memory is meant."""
UNKNOWN = 0.5
"""The weight of words that no memory has: some are what is meant, others are chatter around it."""
LEAD = 0.85
"""How close the second best may come, as a share of the best."""
RARE = 0.25
"""The share of the nearest memories up to which a word is rare; a memory that is meant shares one such word at least."""
ALIKE = 0.3
"""The least cosine."""
SHOWN = 3
_SPEAKERS, _ENDING = ("@me", "@we"), ("longer", "anymore")
ASKING = """
forget forgotten delete remove erase drop scrap wipe bin clear discard throw take strike told tell said say mention note notes memory memories
please old anymore longer no stop stopped ended over gone everything anything whatever thing user asked
"""
"""Words of asking to forget and of ending, which do not tell what is meant."""


@dataclass(frozen=True, slots=True)
class Retraction:
    """The memory that is meant, or why there is none."""

    target: Memory | None
    reason: str = ""
    others: tuple[str, ...] = ()
    """The ids of the memories that may be meant."""


def meant(store: Store, said: Memory, scopes: Sequence[str], statuses: Collection[str] = CURRENT) -> Retraction:
    """The memory of these scopes and statuses that is meant by what was said."""
    vectors = store.embed([meaning_of(said)])
    known = StoreKnown(store, vectors[0] if vectors is not None else None)
    with store.reading():
        near = [one for scope in scopes for one in known.near(propose(said.but(scope=scope)))]
    live = [one for one in near if one.memory.status in statuses]
    weights = _weights(said.statement, live)
    scored = sorted(((_score(weights, one), one.memory) for one in live), key=lambda pair: (-pair[0], pair[1].id))
    scored = [(score, memory) for score, memory in scored if score >= SURE]
    if not scored:
        return Retraction(None, "no stored memory is clearly about it")
    best, memory = scored[0]
    rivals = [other for score, other in scored[1:] if score > best * LEAD]
    if rivals:
        ids = (memory.id, *(other.id for other in rivals[: SHOWN - 1]))
        return Retraction(None, f"several memories may be meant: {', '.join(ids)}", ids)
    return Retraction(memory)


def reason_to_wait(target: Memory) -> str:
    """Why a memory is not ended because of a remark, only by a person's decision; "" if it may be."""
    return tier_3_reason(target) or ("its loss could do harm" if target.critical_slot else "")


def ends(statement: str, target: Memory) -> bool:
    """Whether a statement tells that what a memory says is over: it is about the same subject, and changes it."""
    from engram.models.pairs import LIKELY_CHANGE, relate

    if _subject(statement) != _subject(target.statement):
        return False
    return relate(target.statement, statement).change >= LIKELY_CHANGE


def _subject(statement: str) -> frozenset[str]:
    """The words before the verb, without articles and adverbs of time; "@me" and "@we" stand for the speakers."""
    from engram.models.pair_words import FUNCTION, read_statement

    known = read_statement(statement)
    return frozenset(
        token.stem
        for token in known.tokens[: known.verb_place]
        if token.stem in _SPEAKERS or (token.kind != FUNCTION and token.key not in _ENDING)
    )


def _weights(words: str, near: Sequence["Neighbour"]) -> dict[str, tuple[float, bool]]:
    """The content words, each with its weight and whether it is rare; a word that no memory has may be what is meant."""
    texts = [set(query_terms(one.memory.statement)) for one in near]
    found = {}
    for term in query_terms(words):
        number = sum(term in text for text in texts)
        weight = log(1 + len(texts) / max(number, 1)) * (1 if number else UNKNOWN)
        if term not in _asking():
            found[term] = (weight, 0 < number <= max(1, RARE * len(texts)))
    return found


@lru_cache(maxsize=1)
def _asking() -> frozenset[str]:
    return frozenset(query_terms(ASKING))


def _score(weights: dict[str, tuple[float, bool]], one: "Neighbour") -> float:
    """How far a memory shares what was said; 0 if it shares no rare word, or if both mean different things."""
    shared = set(query_terms(one.memory.statement)) & weights.keys()
    if one.cosine < ALIKE or not any(weights[term][1] for term in shared):
        return 0.0
    return sum(weights[term][0] for term in shared) / sum(weight for weight, _ in weights.values()) + one.cosine
