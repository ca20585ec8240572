"""Repetitions: what a transcript says that another one said before, in the same or in other words.

People tell their agents the same rule again and again. What says the same as a candidate that waits for review is added to it as a further telling, with
its own words, so that a reviewer sees them and can take them out (`engram.review.retellings`). What only probably does is proposed by itself and linked to
the older memory, so that a person merges the two or keeps both. No words are ever replaced.
"""

from collections.abc import Sequence
from datetime import datetime
from math import inf, nan
from typing import TYPE_CHECKING

from engram.decisions.change import Change
from engram.decisions.execution import execute_change
from engram.decisions.known import MAX_NEIGHBOURS, StoreLookup, propose
from engram.decisions.locked import LockedMemories
from engram.embedding.products import dot
from engram.gates.comparison import relation
from engram.gates.proposal import Neighbour
from engram.model.lazy import dataclass
from engram.model.memory import Memory
from engram.review.retellings import store_retelling
from engram.rules.sources import Rank, rank_of
from engram.store.protocol import Store
from engram.text.content_hash import same_text
from engram.text.polarity import normalize_statement
from engram.text.sentences import split_sentences

if TYPE_CHECKING:
    from engram.embedding.protocol import Vectors
    from engram.models.pairs import Relation

MIN_RELATED_COSINE = 0.4
"""The least cosine of two statements that are probably about one thing."""
MIN_SENTENCE_COSINE = 0.55
"""The least cosine of remarks of which only some sentences are alike."""
MIN_DIFFERENT_PROBABILITY = 0.5
"""The probability of "different" from which two statements are about different things."""
_FEWEST_WORDS = 4


@dataclass(frozen=True, slots=True)
class Repetition:
    """A memory that a new statement says again, or probably does."""

    memory: Memory
    is_same: bool
    """Whether it says the same, and may be added to a candidate that shows it."""
    is_sure: bool = False
    """Whether it surely does, so that nothing is lost where it is not stored at all."""


def find_repetition(
    store: Store, memory: Memory, scopes: Sequence[str], vector: "Vectors | None", others: Sequence[Neighbour] = ()
) -> Repetition | None:
    """The live memory of these scopes, or one of the others, that a statement says again; None if it says something else, or the opposite."""
    from engram.models.pairs import relate_all
    from engram.models.paraphrases import SAME_LOG_ODDS, SURELY_SAME_LOG_ODDS

    near = [
        found
        for scope in dict.fromkeys(scopes)
        for found in StoreLookup(store, vector).near(propose(memory.replace(scope=scope)))
    ]
    near += sorted(others, key=lambda one: -one.cosine)[:MAX_NEIGHBOURS]
    new, texts = memory.statement, [found.memory.statement for found in near]
    cosines = [found.cosine if found.cosine >= 0 else nan for found in near]
    best, order = None, (True, 1.0)
    relations = relate_all(texts, new, cosines) if near else []
    scores = _scores([(old, new) for old in texts], cosines, relations)
    for found, compared, score in zip(near, relations, scores, strict=True):
        old = found.memory.statement
        if relation(new, old).relation == "opposite":
            continue
        if score < SAME_LOG_ODDS and found.cosine >= MIN_RELATED_COSINE and _is_covered(store, new, old):
            score = SAME_LOG_ODDS
        is_same = score >= SAME_LOG_ODDS
        different = _difference(compared, found.cosine, new, old)
        place = (not is_same, -score if is_same else different)
        if (
            is_same or (found.cosine >= MIN_RELATED_COSINE and different < MIN_DIFFERENT_PROBABILITY)
        ) and place < order:
            best, order = Repetition(found.memory, is_same, score >= SURELY_SAME_LOG_ODDS), place
    return best


def _scores(pairs: Sequence[tuple[str, str]], cosines: Sequence[float], relations: "Sequence[Relation]") -> list[float]:
    """How surely the newer statement of each pair says the same: log odds; without end for the same words, and not at all where a number was replaced."""
    from engram.models.paraphrases import likeness

    return [
        inf if same_text(old, new) else -inf if _has_other_numbers(old, new) else score
        for (old, new), score in zip(pairs, likeness(pairs, cosines, relations), strict=True)
    ]


def _has_other_numbers(old: str, new: str) -> bool:
    before, after = set(normalize_statement(old).numbers), set(normalize_statement(new).numbers)
    return bool(before - after and after - before)


def _is_covered(store: Store, new: str, old: str) -> bool:
    """Whether each sentence of a statement says the same as a sentence of an older, longer one."""
    from engram.models.pairs import relate_pairs
    from engram.models.paraphrases import SAME_LOG_ODDS

    told, known = split_sentences(new), split_sentences(old)
    if len(known) < 2 or len(told) > len(known):
        return False
    vectors = store.embed([*told, *known])
    if vectors is None:
        return False
    places = [(one, other) for other in range(len(told)) for one in range(len(known))]
    cosines = [float(dot(vectors[len(told) + one], vectors[other])) for one, other in places]
    pairs = [(known[one], told[other]) for one, other in places]
    scores = _scores(pairs, cosines, relate_pairs(pairs))
    same = {
        other
        for (one, other), score in zip(places, scores, strict=True)
        if score >= SAME_LOG_ODDS and relation(told[other], known[one]).relation != "opposite"
    }
    return len(same) == len(told)


def _difference(compared: "Relation", cosine: float, new: str, old: str) -> float:
    """How different two remarks are: of close ones, the sentences that are most alike, since the model was trained on single ones."""
    from engram.models.pairs import relate_pairs

    if cosine < MIN_SENTENCE_COSINE or compared.different < MIN_DIFFERENT_PROBABILITY:
        return compared.different
    pairs = [(one, other) for one in _sentences(old) for other in _sentences(new)]
    return min((found.different for found in relate_pairs(pairs)), default=1.0)


def _sentences(statement: str) -> list[str]:
    return [sentence for sentence in split_sentences(statement) if len(sentence.split()) >= _FEWEST_WORDS]


def add_evidence(store: Store, known: Memory, new: Memory, now: datetime) -> bool:
    """Add a second telling to a candidate, whose words stay as they are: its evidence, and its own words where they differ.

    Whether it is there now; False for a memory that somebody has decided about or changed meanwhile.
    """
    if not same_text(known.statement, new.statement):
        new = new.replace(evidence=tuple(store_retelling(store, known, new, one) for one in new.evidence))

    def plan(memories: LockedMemories) -> bool:
        found = memories.get(known.id)
        if found is None or found.status != "candidate" or found.statement != known.statement:
            return False
        stored = {(one.event, one.span) for one in found.evidence}
        if added := [one for one in new.evidence if (one.event, one.span) not in stored]:
            memories.put(found.replace(evidence=(*found.evidence, *added), updated=now))
        return True

    change = Change(
        op="retell", actor=new.source, plan=plan, note=f"told again in {new.session}", session=new.session,
        scopes=[known.scope], related=[known.id],
    )  # fmt: skip
    return execute_change(store, lambda: now, change)


def is_untouched(store: Store, memory: Memory) -> bool:
    """Whether a memory is a candidate that only transcripts have contributed to."""
    if memory.status != "candidate" or rank_of(memory.source) > Rank.HARVEST:
        return False
    return all(rank_of(image.actor) <= Rank.HARVEST or image.actor == "engram" for image in store.history(memory.id))
