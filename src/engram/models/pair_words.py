"""The words of a statement, prepared for comparing two statements: stem, kind, position and vector."""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from engram.embedding.vectors import dot
from engram.model.forks import ForkedLock
from engram.model.lazy import cached_property, dataclass
from engram.text.confusables import fold_text
from engram.text.statements import canonical_stem, is_contrastive
from engram.text.words import is_past, kind_of, read_table, revises, stem, stop_words, word_class

__all__ = [
    "FUNCTION",
    "KINDS",
    "ME",
    "NAME",
    "NOT",
    "NUMBER",
    "REFERRING_WORDS",
    "TIME",
    "WE",
    "WORD",
    "WORDING",
    "Statement",
    "Token",
    "read_statement",
    "word_vectors",
]

ME, WE, NOT = "@me", "@we", "@not"
NUMBER, NAME, TIME, FUNCTION, WORD = "#", "N", "T", "f", "w"
KINDS = (NAME, NUMBER, TIME, WORD)
"""The kinds of content words."""
MARKS = 4 + len(KINDS)
REFERRING_WORDS = frozenset(
    ("it", "he", "she", "they", "that", "this", "his", "her", "its", "their", "him", "them", "those", "these")
)
"""Words that refer to something mentioned before."""

_ARTICLES = frozenset(("the", "a", "an", ","))
_CONTRASTED = (
    *("also", "too", "another", "other", "both", "now", "new"),
    *("still", "only", "was", "used", "had", "but", "so"),
)
"""Words that often distinguish several values from one, or the present from the past; the n-grams cover all others."""
_MOST_CHARACTERS = 1_000
_LAST_MARKS = " .!…"
"""Punctuation at the end, which is ignored because people leave it out."""
_MOST_WORDS = 60
_MOST_KNOWN = 20_000
_LEAST_WEIGHT, _MOST_WEIGHT = 2.0, 14.0
_PIECE = re.compile(r"(['’]?\d+(?:[.,:/]\d+)*)(?:st|nd|rd|th)?|([^\W\d_]+(?:['’][^\W\d_]+)*)|([.!?;:,()\n…—–])")
_PERSONS = {
    **dict.fromkeys(("i", "me", "my", "mine", "myself", "im", "ive"), ME),
    **dict.fromkeys(("we", "us", "our", "ours", "ourselves"), WE),
}
_AMBIGUOUS = frozenset(("may", "march", "mar", "second", "fall", "spring", "sat", "sun"))
"""Words that are times only if they are capitalised."""
_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
_ORDINALS = {
    "third": "3",
    "fifth": "5",
    "eighth": "8",
    "ninth": "9",
    "twelfth": "12",
    "twentieth": "20",
    "thirtieth": "30",
}
_CLOCK = {"half past": "30", "quarter past": "15", "quarter to": "45"}
_CENTURY = 30
"""The split between centuries: '81 is 1981, '26 is 2026."""


@dataclass(frozen=True, slots=True)
class Token:
    """One word in lower case, with its stem and its kind."""

    key: str
    stem: str
    kind: str


class Statement:
    """A statement prepared for comparison: all words, its content words, and other properties of the statement alone.

    Only the tokens are computed at once, because most statements need nothing else.
    """

    def __init__(self, text: str) -> None:
        self._text = text.strip().rstrip(_LAST_MARKS)
        self.tokens = tuple(_join_compounds(_tokens(self._text)))[:_MOST_WORDS]

    @cached_property
    def places(self) -> tuple[int, ...]:
        """The positions of `words` among the tokens."""
        return tuple(place for place, token in enumerate(self.tokens) if token.kind != FUNCTION)

    @cached_property
    def words(self) -> tuple[Token, ...]:
        """The tokens with a meaning of their own (content words)."""
        return tuple(self.tokens[place] for place in self.places)

    @cached_property
    def _vectors(self) -> tuple[Any, Any]:
        import numpy as np

        rows, lengths = word_vectors([token.key for token in self.words])
        return rows, np.clip(lengths, _LEAST_WEIGHT, _MOST_WEIGHT)

    @property
    def rows(self) -> Any:
        """A unit vector for each of `words`."""
        return self._vectors[0]

    @property
    def weights(self) -> Any:
        """How informative each of `words` is."""
        return self._vectors[1]

    @cached_property
    def sum(self) -> Any:
        """The weighted sum of `rows`."""
        return dot(self.weights, self.rows)

    @cached_property
    def marks(self) -> Any:
        """A row for each of `words`: its weight, whether it precedes the verb, whether it follows it, its kind as a
        flag for each of `KINDS`, and whether it is a name before the verb.
        """
        import numpy as np

        verb = self.verb_place
        marks = [
            (weight, place < verb, place > verb, *(kind == each for each in KINDS), kind == NAME and place < verb)
            for weight, place, kind in zip(
                self.weights.tolist(), self.places, (token.kind for token in self.words), strict=True
            )
        ]
        return np.array(marks, dtype=np.float32).reshape(len(self.words), MARKS)

    @cached_property
    def hashes(self) -> Any:
        """The hashes of the stems of `words`."""
        import numpy as np

        return np.array([hash(token.stem) for token in self.words], dtype=np.int64)

    @cached_property
    def canonical(self) -> tuple[str, ...]:
        """The stems of `words` used to look up opposites and rivals."""
        return tuple(canonical_stem(token.key) for token in self.words)

    @cached_property
    def contrastive(self) -> tuple[int, ...]:
        """The positions in `canonical_stem` of words that may have an opposite or a rival."""
        return tuple(at for at, word in enumerate(self.canonical) if is_contrastive(word))

    @cached_property
    def model_tokens(self) -> tuple[str, ...]:
        """The tokens in the form the model learns: the kind of a name, number or time, otherwise the stem."""
        return tuple(token.stem if token.kind in (WORD, FUNCTION) else f"<{token.kind}>" for token in self.tokens)

    @cached_property
    def functions(self) -> tuple[str, ...]:
        """The tokens without a meaning of their own (function words)."""
        return tuple(token.key for token in self.tokens if token.kind == FUNCTION)

    @cached_property
    def stems(self) -> tuple[str, ...]:
        """The stems of the tokens, without articles and commas."""
        return tuple(token.stem for token in self.tokens if token.key not in _ARTICLES)

    @cached_property
    def kinds(self) -> str:
        """A letter for each of `stems`."""
        return "".join(token.kind for token in self.tokens if token.key not in _ARTICLES)

    @cached_property
    def stem_set(self) -> frozenset[str]:
        """The stems without their order."""
        return frozenset(self.stems)

    @cached_property
    def word_stems(self) -> frozenset[str]:
        """The stems of `words`."""
        return frozenset(token.stem for token in self.words)

    @cached_property
    def verb_place(self) -> int:
        """The position of the verb; after the last token if there is none."""
        verbs = word_class("wordclasses", "verb")
        places = (at for at, token in enumerate(self.tokens) if token.key in verbs or token.stem in verbs)
        return next(places, len(self.tokens))

    @property
    def verb(self) -> str:
        """The stem of the verb; "" if there is none."""
        return self.tokens[self.verb_place].stem if self.verb_place < len(self.tokens) else ""

    @cached_property
    def wording(self) -> Any:
        """The number of words and tokens, the values of `WORDING`, and which of `_CONTRASTED` it has."""
        import numpy as np

        keys = [token.key for token in self.tokens]
        wording = _measure_wording(self._text, self.tokens, keys)
        contrasted = (word in keys for word in _CONTRASTED)
        return np.array((len(self.words), len(keys), *wording, *contrasted), dtype=np.float32)

    def beside(self, place: int, step: int) -> str:
        """The stem of the word next to a position; "" at the end."""
        return self.tokens[place + step].stem if 0 <= place + step < len(self.tokens) else ""


@lru_cache(maxsize=1)
def _functions() -> frozenset[str]:
    light = {word for label in ("drop", "light", "boundary", "negation") for word in word_class("wordclasses", label)}
    return stop_words() | light


@lru_cache(maxsize=1)
def _times() -> dict[str, str]:
    return {
        word: f"{label} {value}"
        for label, value, *members in read_table("timewords.txt")
        if label in ("weekday", "month", "season", "unit")
        for word in (*members, *(f"{each}s" for each in members if label == "weekday"))
    }


@lru_cache(maxsize=1)
def _number_words() -> dict[str, str]:
    tens = {word: str((place + 2) * 10) for place, word in enumerate(_TENS)}
    found = {word: row[0] for row in read_table("numberwords.txt") for word in row[1:]} | tens
    return found | {f"{word}th": value for word, value in found.items()} | _ORDINALS


def _tokens(text: str) -> Iterator[Token]:
    start = True
    for number, word, mark in _PIECE.findall(text[:_MOST_CHARACTERS]):
        if mark:
            yield Token(",", ",", FUNCTION)
            start = mark not in ",():;"
            continue
        if number:
            value = _value(number)
            yield Token(value, value, NUMBER)
        else:
            low, _, ending = word.lower().replace("’", "'").partition("'")
            negated = ending == "t" and low.endswith("n")
            yield _token({"ca": "can", "wo": "will"}.get(low[:-1], low[:-1]) if negated else low, word, start)
            if negated:
                yield Token(NOT, NOT, FUNCTION)
        start = False


def _value(digits: str) -> str:
    """A number in the form used for comparison: no thousands separators, four-digit years, times on a twelve-hour
    clock.
    """
    if digits[0] in "'’":
        year = digits[1:]
        return f"{'20' if int(year) < _CENTURY else '19'}{year}" if len(year) == 2 and year.isdecimal() else year
    hour, colon, minutes = digits.replace(",", "").partition(":")
    if not colon:
        return hour.removesuffix(".00")
    hour = str(int(hour) % 12 or 12) if hour.isdecimal() and len(hour) <= 2 else hour
    return hour if minutes == "00" else f"{hour}:{minutes}"


def _join_compounds(tokens: Iterator[Token]) -> Iterator[Token]:
    """Tokens with "thirty four" as one number and "half past ten" as one time."""
    held: list[Token] = []
    for token in tokens:
        if token.kind == NUMBER:
            held.append(_merge(held, token))
        elif token.key in ("half", "quarter") or (held and token.key in ("past", "to")):
            held.append(token)
        else:
            yield from held
            held = []
            yield token
    yield from held


def _merge(held: list[Token], number: Token) -> Token:
    """Merge the number with the preceding words that belong to it, which are removed."""
    words, value = [token.key for token in held[-2:]], number.stem
    minutes = _CLOCK.get(" ".join(words), "")
    if minutes and value.isdecimal():
        hour = int(value[:4]) - words.count("to")
        del held[-2:]
        return Token(joint := f"{hour or 12}:{minutes}", joint, NUMBER)
    if words and words[-1] in _TENS and value.isdecimal() and len(value) == 1:
        return Token(joint := str(int(held.pop().stem) + int(value)), joint, NUMBER)
    return number


@lru_cache(maxsize=1 << 14)
def _token(low: str, surface: str, start: bool) -> Token:
    low = _PERSONS.get(low, low)
    if low in (ME, WE, "user"):
        return Token(WE if low == WE else ME, WE if low == WE else ME, FUNCTION)
    if low in word_class("wordclasses", "negation"):
        return Token(low, NOT, FUNCTION)
    if low in _number_words():
        return Token(low, _number_words()[low], NUMBER)
    if low in _times() and not (low in _AMBIGUOUS and surface.islower()):
        return Token(low, _times()[low], TIME)
    if low in _functions():
        return Token(low, low, FUNCTION)
    # A word that begins a sentence is a name if the bundled vocabulary does not have it whole.
    named = surface[:1].isupper() and (not start or len(_pieces(low)) > 1)
    return Token(low, stem(low), NAME if named else WORD)


def _pieces(word: str) -> tuple[int, ...]:
    from engram.embedding.word_pieces import word_rows

    return word_rows[word]


@lru_cache(maxsize=1)
def _embedder() -> Any:
    from engram.embedding.static import StaticEmbedder

    return StaticEmbedder()


class _WordVectors:
    """Caches the vector of each word. The rows are in one array, so that those of many words are read at once."""

    def __init__(self) -> None:
        self._lock = ForkedLock()
        self._places: dict[str, int] = {}
        self._rows: Any = None
        self._lengths: Any = None

    def of(self, words: list[str]) -> tuple[Any, Any]:
        """A unit row for each word, zero if the model does not know it, and the original length of each."""
        with self._lock:
            if len(self._places) > _MOST_KNOWN:
                self._places.clear()
            new = [word for word in dict.fromkeys(words) if word not in self._places]
            if new or self._rows is None:
                self._add(new)
            places = [self._places[word] for word in words]
            return self._rows.take(places, 0), self._lengths.take(places)

    def _add(self, words: list[str]) -> None:
        """Embed words. The arrays grow by doubling, so adding words one by one does not copy them each time."""
        import numpy as np

        rows = _embedder().sum_texts(words)
        known, size = len(self._places), len(self._places) + len(rows)
        if self._rows is None or size > len(self._rows):
            grown, lengths = np.zeros((2 * size + 1, rows.shape[1]), np.float32), np.zeros(2 * size + 1, np.float32)
            if known:
                grown[:known], lengths[:known] = self._rows[:known], self._lengths[:known]
            self._rows, self._lengths = grown, lengths
        self._lengths[known:size] = np.sqrt((rows * rows).sum(1))
        self._rows[known:size] = rows / np.maximum(self._lengths[known:size], 1e-6)[:, None]
        self._places.update(zip(words, range(known, size), strict=True))


word_vectors = _WordVectors().of


@lru_cache(maxsize=4096)
def read_statement(text: str) -> Statement:
    """A folded statement, prepared for comparison; only the beginning of a long text is read."""
    return Statement(fold_text(text))


WORDING = ("not", "me", "we", "past", "change", "state", "clauses", "begins", "refers", "formal")


def _measure_wording(text: str, tokens: tuple[Token, ...], keys: list[str]) -> tuple[float, ...]:
    """The values of `WORDING`: negations, persons, verbs by kind, clauses, references, and whether it begins with a
    capital.
    """
    return (
        sum(token.stem == NOT for token in tokens),
        ME in keys,
        WE in keys,
        *(sum(column) for column in zip(_verb_kinds(""), *map(_verb_kinds, keys), strict=True)),
        keys.count(","),
        bool(keys) and keys[0] in REFERRING_WORDS,
        sum(key in REFERRING_WORDS for key in keys),
        text[:1].isupper(),
    )


@lru_cache(maxsize=1 << 14)
def _verb_kinds(key: str) -> tuple[bool, bool, bool]:
    """Whether a word is a past form, a verb of change, a verb of state."""
    kind = kind_of(key)
    return is_past(key), kind == "change" or revises(key), kind == "state"
