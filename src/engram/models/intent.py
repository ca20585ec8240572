"""Classifies the intent of a question with a linear model over n-grams of its words and their classes.

The model is trained by training/train_intents.py on labelled questions by several writers and evaluated on held-out
writers. At run time it needs only the standard library and is deterministic.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import lru_cache
from itertools import pairwise
from math import exp

from engram.model.lazy import dataclass
from engram.models.weights import SCALE, Linear
from engram.text.time.windows import TimePhrase
from engram.text.time.words import Word, words
from engram.text.words import is_act, is_participle, is_past, kind_of, read_table, revises, stem, word_class

__all__ = ["INTENTS", "MODEL", "Intent", "classify", "features"]

INTENTS = ("current", "historical", "event", "lineage")
MODEL = Linear("intent.bin", INTENTS, 1 << 16)

_MOST_WORDS = 60
"""The maximum number of words read of a long text: those up to its last question mark, otherwise the last ones."""
_LONGEST_SIGN = 4
_NEAR = 5
_SUFFIX = 3
_MOST_LOGIT = 30.0
_LONG_SECONDS = 8 * 86400.0
"""With a window of more than about a week, a question may ask for a habit or a state; with a shorter one it rarely
does.
"""


@dataclass(frozen=True, slots=True)
class Intent:
    """The intent of a question."""

    name: str
    """One of `INTENTS`."""
    probability: float
    reason: str
    """The words of the question with the most weight for the intent; "" if there are none."""


def classify(text: str, phrase: TimePhrase | None, at: datetime) -> Intent:
    """The most probable intent of a question with this time phrase, asked at `at`."""
    read = _Tokens.of(text, phrase, at)
    if read.is_keyword:
        return Intent(INTENTS[0], 1.0, "")
    sums = MODEL.sums(read.features())
    best = max(range(len(INTENTS)), key=sums.__getitem__)
    likely = [1 / (1 + exp(-max(-_MOST_LOGIT, each / SCALE))) for each in sums]
    return Intent(INTENTS[best], likely[best] / sum(likely), _evidence(read, best))


def features(text: str, phrase: TimePhrase | None, at: datetime) -> set[str]:
    """The features of a question, also used by the training script."""
    return _Tokens.of(text, phrase, at).features()


def _evidence(read: "_Tokens", best: int) -> str:
    """The two words with the most weight for the intent over the runner-up, in the order of the question."""

    def margin(place: int) -> int:
        sums = MODEL.sums(read.around(place))
        return sums[best] - max(each for other, each in enumerate(sums) if other != best)

    margins = {place: margin(place) for place in range(len(read.keys))}
    strongest = sorted(sorted(margins, key=margins.__getitem__, reverse=True)[:2])
    shown = [read.word_at(place) for place in strongest if margins[place] > 0]
    together = len(strongest) == 2 and strongest[1] == strongest[0] + 1
    return (" " if together else " … ").join(shown)


@dataclass(frozen=True, slots=True)
class _Tokens:
    """A question's words, with its time phrase as one word, and the class of each."""

    keys: tuple[str, ...]
    classes: tuple[str, ...]
    anchor: tuple[Word, ...]
    relation: str
    phrase: str

    @classmethod
    def of(cls, text: str, phrase: TimePhrase | None, at: datetime) -> "_Tokens":
        keys: list[str] = []
        classes: list[str] = []
        time = "" if phrase is None else _time_token(phrase, at)
        for word in _asking_words(text):
            if phrase is None or word.end <= phrase.start or word.start >= phrase.end:
                keys.append("#" if word.key.isdigit() else word.key)
                classes.append(_class_of(word.key, word.owner))
            elif time not in keys:
                keys.append(time)
                classes.append(time)
        anchor = tuple(words(phrase.anchor)) if phrase is not None else ()
        relation, text_of_phrase = (phrase.relation, phrase.text) if phrase is not None else ("", "")
        return cls(tuple(keys), tuple(classes), anchor, relation, text_of_phrase)

    def features(self) -> set[str]:
        """N-grams of words and classes, words with the question's opener, classes of the lexicon, and the anchor's
        words.
        """
        return {"1", *self._words(), *self._grammar(), *self._lexicon(), *self._anchor()}

    @property
    def is_keyword(self) -> bool:
        """Whether there is nothing to interpret: no word, or a single one that is neither a time nor a function
        word.
        """
        if len(self.keys) != 1:
            return not self.keys
        return not self.keys[0].startswith("<") and self.keys[0] not in word_class("intent", "grammar")

    @property
    def opener(self) -> str:
        """The word that introduces the question: what, how, did."""
        return next((each for each in self.classes if each in word_class("intent", "opener")), "")

    def around(self, place: int) -> Iterator[str]:
        """The features of one word and of the pairs it belongs to."""
        key, label = self.keys[place], self.classes[place]
        keys, classes = (("^", *all_of, "$")[place : place + 3] for all_of in (self.keys, self.classes))
        yield from (key, f"~{stem(key)}", f"c:{label}", f"h:{self.opener}|{label}", f"h:{self.opener}|{key}")
        yield from (f"{one} {two}" for one, two in pairwise(keys))
        yield from (f"c:{one} {two}" for one, two in pairwise(classes))

    def word_at(self, place: int) -> str:
        """A word as shown to a reader; for the time phrase, its own words."""
        return self.phrase if self.keys[place].startswith("<") else self.keys[place]

    def _words(self) -> Iterator[str]:
        for key in self.keys:
            yield f"~{stem(key)}"
        framed = ("^", *self.keys, "$")
        for key in framed:
            yield key
            yield f"-{key[-_SUFFIX:]}"
        yield from (f"{one} {two}" for one, two in pairwise(framed))
        for one, two, three in zip(framed, framed[1:], framed[2:], strict=False):
            yield f"{one} {two} {three}"
            yield f"{one} * {three}"

    def _grammar(self) -> Iterator[str]:
        framed = ("^", *self.classes, "$")
        for size in (1, 2, 3, 4):
            yield from (f"c:{' '.join(framed[at : at + size])}" for at in range(len(framed) - size + 1))
        yield from (f"c:{one} * {three}" for one, three in zip(framed, framed[2:], strict=False))
        for at, one in enumerate(self.classes):
            yield from (f"g:{one} {two}" for two in self.classes[at + 1 : at + 1 + _NEAR])
        yield from (f"h:{self.opener}|{each}" for each in (*self.classes, *self.keys))

    def _lexicon(self) -> Iterator[str]:
        for at, key in enumerate(self.keys):
            before = self.classes[at - 1] if at else "^"
            for label in _labels("asking").get(key, ()):
                yield f"k:{label}"
                yield f"k:{before} {label}"
            for size in range(1, _LONGEST_SIGN + 1):
                run = "_".join(self.keys[at : at + size])
                yield from (f"s:{label}" for label in _labels("questionsigns").get(run, ()))

    def _anchor(self) -> Iterator[str]:
        for word in self.anchor:
            yield f"a:{word.key}"
            yield f"a:{self.relation} {_class_of(word.key, word.owner)}"


def _asking_words(text: str) -> Sequence[Word]:
    found = words(text)
    if len(found) <= _MOST_WORDS:
        return found
    mark = text.rfind("?")
    last = next((at for at in range(len(found), 0, -1) if found[at - 1].start < mark), len(found))
    return found[max(0, last - _MOST_WORDS) : last]


@lru_cache(maxsize=4096)
def _class_of(key: str, owner: bool) -> str:
    """The class of a word: itself for a function word, otherwise its kind of verb and its ending."""
    if key in word_class("intent", "grammar"):
        return key
    if key.isdigit():
        return "#"
    if owner or key.endswith("'s"):
        return "own"
    kind = kind_of(key) or ("redo" if revises(key, loosely=True) else "act" if is_act(key) else "")
    return f"<{kind} {_plural_ending(key)}>"


def _plural_ending(key: str) -> str:
    if key.endswith("ing"):
        return "ing"
    if is_past(key):
        return "ed"
    if is_participle(key):
        return "en"
    return "s" if key.endswith("s") and not key.endswith("ss") else ""


def _time_token(phrase: TimePhrase, at: datetime) -> str:
    """The position of the time phrase relative to the time of the question."""
    if phrase.window is None:
        return f"<{phrase.relation}>"
    since, until, now = phrase.window.since, phrase.window.until, at.timestamp()
    begun = "open" if since is None else "begun" if since.timestamp() <= now else "ahead"
    ended = "open" if until is None else "over" if until.timestamp() <= now + 1 else "on"
    if since is None or until is None:
        return f"<{begun} {ended}>"
    return f"<{begun} {ended} {'long' if until.timestamp() - since.timestamp() > _LONG_SECONDS else 'short'}>"


@lru_cache(maxsize=2)
def _labels(table: str) -> dict[str, tuple[str, ...]]:
    """The classes of each word or `_`-joined phrase of a table."""
    labels: dict[str, tuple[str, ...]] = {}
    for label, *members in read_table(f"{table}.txt"):
        for member in members:
            labels[member] = (*labels.get(member, ()), label)
    return labels
