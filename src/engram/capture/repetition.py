"""Repetitions: what a transcript says that another one said before, in the same or in other words.

People tell their agents the same rule again and again. What surely says the same as a candidate that waits for review becomes further evidence of it. What
only probably does is proposed by itself and linked to the older memory, so that a person merges the two or keeps both. No words are ever replaced.
"""

from collections.abc import Sequence
from datetime import datetime
from math import nan
from typing import TYPE_CHECKING

from engram.capture.known import NEIGHBOURS, StoreKnown, propose
from engram.gates.comparison import relation
from engram.gates.proposal import Neighbour
from engram.model.lazy import dataclass
from engram.model.memory import Memory
from engram.rules.sources import Rank, rank_of
from engram.store.protocol import Store
from engram.text.polarity import read
from engram.text.sentences import split_sentences

if TYPE_CHECKING:
    from engram.embedding.protocol import Vectors
    from engram.models.pairs import Relation

CLOSE = 0.4
"""The least cosine of two statements that are probably about one thing. With `APART`, 17 of the 19 paraphrases that are not surely the same are linked, and
27 of 520 pairs of different rules about one topic (`benchmarks.capture.tellings`)."""
CLOSER = 0.55
"""The least cosine of remarks of which only some sentences are alike."""
APART = 0.5
"""The probability of "different" from which two statements are about different things."""
_FEWEST_WORDS = 4


@dataclass(frozen=True, slots=True)
class Repetition:
    """A memory that a new statement says again, surely or probably."""

    memory: Memory
    is_same: bool
    """Whether it surely says the same."""


def told_before(
    store: Store, memory: Memory, scopes: Sequence[str], vector: "Vectors | None", others: Sequence[Neighbour] = ()
) -> Repetition | None:
    """The live memory of these scopes, or one of the others, that a statement says again; None if it says something else, or the opposite."""
    from engram.models.pairs import relate_all

    near = [
        found
        for scope in dict.fromkeys(scopes)
        for found in StoreKnown(store, vector).near(propose(memory.but(scope=scope)))
    ]
    near += sorted(others, key=lambda one: -one.cosine)[:NEIGHBOURS]
    texts = [found.memory.statement for found in near]
    cosines = [found.cosine if found.cosine >= 0 else nan for found in near]
    best, order = None, (True, 1.0)
    for found, compared in zip(near, relate_all(texts, memory.statement, cosines) if near else (), strict=True):
        new, old = memory.statement, found.memory.statement
        if relation(new, old).relation == "opposite":
            continue
        is_same = _says_the_same(compared, new, old) or (found.cosine >= CLOSE and _is_covered(new, old))
        different = _difference(compared, found.cosine, new, old)
        if (is_same or (found.cosine >= CLOSE and different < APART)) and (not is_same, different) < order:
            best, order = Repetition(found.memory, is_same), (not is_same, different)
    return best


def _says_the_same(compared: "Relation", new: str, old: str) -> bool:
    from engram.models.pairs import SAME

    return compared.same >= SAME and not set(read(new).numbers) - set(read(old).numbers)


def _is_covered(new: str, old: str) -> bool:
    """Whether each sentence of a statement says the same as a sentence of an older, longer one."""
    from engram.models.pairs import relate_pairs

    told, known = split_sentences(new), split_sentences(old)
    if len(known) < 2 or len(told) > len(known):
        return False
    pairs = [(one, other) for other in told for one in known]
    same = {
        other
        for (one, other), compared in zip(pairs, relate_pairs(pairs), strict=True)
        if _says_the_same(compared, other, one) and relation(other, one).relation != "opposite"
    }
    return same == set(told)


def _difference(compared: "Relation", cosine: float, new: str, old: str) -> float:
    """How different two remarks are: of close ones, the sentences that are most alike, since the model was trained on single ones."""
    from engram.models.pairs import relate_pairs

    if cosine < CLOSER or compared.different < APART:
        return compared.different
    pairs = [(one, other) for one in _sentences(old) for other in _sentences(new)]
    return min((found.different for found in relate_pairs(pairs)), default=1.0)


def _sentences(statement: str) -> list[str]:
    return [sentence for sentence in split_sentences(statement) if len(sentence.split()) >= _FEWEST_WORDS]


def add_evidence(store: Store, known: Memory, new: Memory, now: datetime) -> None:
    """Add the evidence of a second telling to a candidate, whose words stay as they are."""
    with store.deciding(
        "retell", actor=new.source, reason=f"told again in {new.session}", session=new.session, scopes=[known.scope],
        about=[known.id],
    ) as deciding:  # fmt: skip
        found = deciding.get(known.id)
        if found is None or found.status != "candidate" or found.statement != known.statement:
            return
        if added := [one for one in new.evidence if one not in found.evidence]:
            deciding.put(found.but(evidence=(*found.evidence, *added), updated=now))


def is_untouched(store: Store, memory: Memory) -> bool:
    """Whether a memory is a candidate that only transcripts have contributed to."""
    if memory.status != "candidate" or rank_of(memory.source) > Rank.HARVEST:
        return False
    return all(rank_of(image.actor) <= Rank.HARVEST or image.actor == "engram" for image in store.history(memory.id))
