"""The features of sentences in a conversation: what the model of worth is trained on and reads.

Each sentence is read with its neighbours: the sentences before and after it, the turn before (a short answer means nothing without
its question), the reply, and what was said earlier (a story, an example or a letter under way). Features come in blocks; each
is brought to the same length, so that a long sentence weighs no more than a short one.
"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from math import log2
from zlib import crc32

from engram.model.lazy import dataclass
from engram.text.word_tables import word_class

__all__ = ["BUCKETS", "USER", "Clusters", "SpokenSentence", "read_sentences", "sparse"]

BUCKETS = 1 << 22
"""So many that two features rarely share one; the model knows which of them it was shown."""
USER = "user"
Clusters = tuple[bytes, bytes]
"""For each row of the bundled vocabulary the number of its cluster: in a coarse clustering, and in a fine one."""

_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)*|\d+(?:[.:,/]\d+)*|[^\w\s]|_+")
_CHARACTERS, _WORDS, _LETTERS = 1000, 80, 24
"""What is read of a sentence: a longer one is a paste, and its beginning tells that."""
_EARLIER = 240
"""Distinct words remembered of what was said before the turn."""
_GRAMS = (3, 4, 5)
_WEIGHTS = {"words": 3.0, "parts": 2.0, "around": 2.0, "classes": 2.0, "earlier": 1.0}
"""How much each block counts, chosen leave-one-writer-out."""
_PLACE = 0.5
"""How much each feature of the place counts: there are always as many."""


@dataclass(frozen=True, slots=True)
class SpokenSentence:
    """A sentence as the model reads it: where it stands and its words, lower-cased, with `#` for a number."""

    turn: int
    place: int
    role: str
    text: str
    words: tuple[str, ...]

    @property
    def asks(self) -> bool:
        """Whether it ends as a question."""
        return self.words[-1:] == ("?",)


def read_sentences(turns: Sequence[tuple[str, Sequence[str]]]) -> list[list[SpokenSentence]]:
    """The sentences of each turn, cut into words."""
    return [
        [SpokenSentence(turn, place, role, text[:_CHARACTERS], _words(text)) for place, text in enumerate(sentences)]
        for turn, (role, sentences) in enumerate(turns)
    ]


def sparse(
    turns: Sequence[Sequence[SpokenSentence]], clusters: Clusters
) -> Iterator[tuple[SpokenSentence, list[tuple[float, list[int]]]]]:
    """Each sentence with its blocks: the weight of every feature in the block, and the buckets of the features."""
    earlier: dict[str, None] = {}
    for at, turn in enumerate(turns):
        around = [*_adjacent("B", turns, at - 1), *_adjacent("A", turns, at + 1)]
        for said in turn:
            blocks = {
                "words": _ngrams(said),
                "around": [*_beside(said, turn), *around],
                "classes": _classes(said, clusters),
                "earlier": list(earlier),
            }
            made = {name: [_bucket(feature) for feature in dict.fromkeys(found)] for name, found in blocks.items()}
            made["parts"] = _parts(said)
            weighed = [(_WEIGHTS[name] / len(found) ** 0.5, found) for name, found in made.items() if found]
            yield said, [*weighed, (_PLACE, [_bucket(feature) for feature in _place(said, turn, turns, at)])]
            earlier.update(dict.fromkeys(f"{said.role[:1]}:{word}" for word in said.words))
        if len(earlier) > _EARLIER:
            earlier = dict.fromkeys(list(earlier)[-_EARLIER:])


def _words(text: str) -> tuple[str, ...]:
    found = _WORD.findall(text[:_CHARACTERS].lower().replace("’", "'"))[:_WORDS]
    return tuple("#" if word[0].isdigit() else word[:_LETTERS] for word in found)


def _bucket(feature: str) -> int:
    return crc32(feature.encode("utf-8", "surrogatepass")) % BUCKETS


def _ngrams(said: SpokenSentence) -> list[str]:
    words = ("^", *said.words, "$")
    return [
        *(f"w:{word}" for word in said.words),
        *(f"2:{one} {two}" for one, two in pairwise(words)),
        *(f"3:{one} {two} {three}" for one, two, three in zip(words, words[1:], words[2:], strict=False)),
        *(f"-:{one} {three}" for one, three in zip(words, words[2:], strict=False)),
    ]


def _place(
    said: SpokenSentence, turn: Sequence[SpokenSentence], turns: Sequence[Sequence[SpokenSentence]], at: int
) -> list[str]:
    """Whose sentence it is, where it stands, how long it is, and whether it answers a question."""
    behind = len(turn) - 1 - said.place
    before = turns[at - 1] if at else ()
    answers = (said.place == 0 and before[-1].asks) if before else None
    return [
        f"role:{said.role}",
        *(f"n:{min(len(turn), 6)}", f"p:{min(said.place, 5)}", f"q:{min(behind, 5)}", f"t:{min(at, 3)}"),
        f"l:{int(2 * log2(1 + len(said.words)))}",
        f"answer:{answers}",
    ]


def _beside(said: SpokenSentence, turn: Sequence[SpokenSentence]) -> list[str]:
    """The words of the sentences next to it in its turn."""
    before, after = turn[said.place - 1 : said.place] if said.place else (), turn[said.place + 1 : said.place + 2]
    return [
        feature
        for name, others in (("b", before), ("a", after))
        for other in others
        if other.words
        for feature in (
            *(f"{name}:{word}" for word in other.words),
            f"{name}first:{other.words[0]}",
            f"{name}last:{other.words[-1]}",
        )
    ]


def _adjacent(name: str, turns: Sequence[Sequence[SpokenSentence]], at: int) -> list[str]:
    """The words of the turn before or of the reply."""
    if not 0 <= at < len(turns) or not any(said.words for said in turns[at]):
        return []
    words = [word for said in turns[at] for word in said.words][: 2 * _WORDS]
    return [f"{name}first:{words[0]}", f"{name}q:{turns[at][-1].asks}", *(f"{name}:{word}" for word in words)]


def _parts(said: SpokenSentence) -> list[int]:
    return list(dict.fromkeys(bucket for word in said.words for bucket in _parts_of(word)))


@lru_cache(maxsize=8192)
def _parts_of(word: str) -> tuple[int, ...]:
    """The buckets of the character n-grams of a word of more than three letters."""
    if len(word) <= _GRAMS[0]:
        return ()
    whole = f"^{word}$"
    return tuple(_bucket(f"~{whole[at : at + size]}") for size in _GRAMS for at in range(len(whole) - size + 1))


def _classes(said: SpokenSentence, clusters: Clusters) -> list[str]:
    """N-grams of the clusters of the words, in which words of grammar, signs and numbers stand for themselves."""
    rows = [_row(word) for word in said.words]
    coarse, fine = (
        ("^", *(word if row is None else f"c{level[row]}" for word, row in zip(said.words, rows, strict=True)), "$")
        for level in clusters
    )
    return [
        *(f"f1:{one}" for one in fine[1:-1]),
        *(f"f2:{one} {two}" for one, two in pairwise(fine)),
        *(f"c1:{one}" for one in coarse[1:-1]),
        *(f"c2:{one} {two}" for one, two in pairwise(coarse)),
        *(f"c3:{one} {two} {three}" for one, two, three in zip(coarse, coarse[1:], coarse[2:], strict=False)),
        *(f"c-:{one} {three}" for one, three in zip(coarse, coarse[2:], strict=False)),
    ]


@lru_cache(maxsize=8192)
def _row(word: str) -> int | None:
    """The row of a word's first piece in the bundled vocabulary; None for what is its own class."""
    from engram.embedding.tokenizer import word_rows

    if word in word_class("intent", "grammar") or not word[0].isalpha():
        return None
    rows = word_rows[word.replace("'", "")]
    return rows[0] if rows else None
