"""Repetitions: what a transcript says that another one said before, in other words.

People tell their agents the same rule again and again. One fact is one memory: the second telling is added to the candidate that waits for review
as further evidence, and its words replace the older ones where they may say something newer. Nothing is lost: the journal keeps every wording.
"""

from collections.abc import Sequence
from datetime import datetime
from math import nan
from typing import TYPE_CHECKING

from engram.capture.known import StoreKnown, propose
from engram.gates.comparison import relation
from engram.model.lazy import dataclass
from engram.model.memory import Memory
from engram.rules.sources import Rank, rank_of
from engram.store.protocol import Store
from engram.store.records import start_of
from engram.text.polarity import read
from engram.text.sentences import split_sentences

if TYPE_CHECKING:
    from engram.embedding.protocol import Vectors

CLOSE = 0.4
"""The least cosine of two tellings of one thing: of a month of sessions, .43 to .89; of the statements about different things, .46 at most."""
CLOSER = 0.55
"""The least cosine of remarks of which only some sentences are alike."""
APART = 0.5
"""The probability of "different" from which two statements are about different things."""
_FEWEST_WORDS = 4


@dataclass(frozen=True, slots=True)
class Repetition:
    """A stored memory that a new statement tells again, and whether it only repeats it."""

    memory: Memory
    is_same: bool
    """Whether it says the same; otherwise it may be newer."""


def told_before(store: Store, memory: Memory, scopes: Sequence[str], vector: "Vectors | None") -> Repetition | None:
    """The live memory of these scopes that a statement tells again; None if it is about something else, or says the opposite."""
    from engram.models.pairs import SAME, relate_all

    near = [
        found
        for scope in dict.fromkeys(scopes)
        for found in StoreKnown(store, vector).near(propose(memory.but(scope=scope)))
    ]
    texts = [found.memory.statement for found in near]
    cosines = [found.cosine if found.cosine >= 0 else nan for found in near]
    best, apart = None, 1.0
    for found, compared in zip(near, relate_all(texts, memory.statement, cosines) if near else (), strict=True):
        new, old = memory.statement, found.memory.statement
        is_same = compared.same >= SAME and _has_its_numbers(new, old)
        different = compared.different
        if found.cosine >= CLOSER and different >= APART:
            different = _least_different(new, old)
        is_close = found.cosine >= CLOSE and different < APART
        if (is_same or is_close) and different < apart and relation(new, old).relation != "opposite":
            best, apart = Repetition(found.memory, is_same), different
    return best


def _least_different(new: str, old: str) -> float:
    """How different the sentences of two remarks are that are most alike: the model was trained on single ones."""
    from engram.models.pairs import relate_pairs

    pairs = [(one, other) for one in _sentences(old) for other in _sentences(new)]
    return min((found.different for found in relate_pairs(pairs)), default=1.0)


def _sentences(statement: str) -> list[str]:
    return [sentence for sentence in split_sentences(statement) if len(sentence.split()) >= _FEWEST_WORDS]


def _has_its_numbers(new: str, old: str) -> bool:
    return not set(read(new).numbers) - set(read(old).numbers)


def retell(store: Store, known: Repetition, new: Memory, vector: "Vectors | None", now: datetime) -> None:
    """Add a second telling to a candidate: its evidence, and its words if they are newer and do not only repeat it."""
    about = known.memory
    with store.deciding(
        "retell", actor=new.source, reason=f"told again in {new.session}", session=new.session, scopes=[about.scope],
        about=[about.id],
    ) as deciding:  # fmt: skip
        found = deciding.get(about.id)
        if found is None or found.status != "candidate" or found.statement != about.statement:
            return
        added = [one for one in new.evidence if one not in found.evidence]
        if not added:
            return
        found = found.but(evidence=(*found.evidence, *added), updated=now)
        if known.is_same or start_of(new) < start_of(found):
            deciding.put(found)
        else:
            deciding.put(
                found.but(statement=new.statement, context=new.context, type=new.type, valid_from=new.valid_from),
                vector,
            )


def is_untouched(store: Store, memory: Memory) -> bool:
    """Whether a memory is a candidate that only transcripts have contributed to."""
    if memory.status != "candidate" or rank_of(memory.source) > Rank.HARVEST:
        return False
    return all(rank_of(image.actor) <= Rank.HARVEST or image.actor == "engram" for image in store.history(memory.id))
