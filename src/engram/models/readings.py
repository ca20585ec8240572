"""Other readings of a disguised text: escapes decoded, split words joined, and misspelt English words corrected."""

import re
from collections import Counter
from functools import lru_cache, partial
from itertools import product

from engram.embedding.word_pieces import vocabulary, word_rows
from engram.model.lazy import lazy_pattern
from engram.text.confusables import fold_text, spell_lookalikes, strip_accents
from engram.text.words import read_table

__all__ = [
    "common_words",
    "function_words",
    "is_word",
    "letter_distance",
    "letters_of",
    "other_readings",
    "respell",
    "spell_out",
]

MAX_WORD = 30
"""The length of the longest word that may be a misspelt one."""
_MIN_LETTERS_FOR_TWO_ERRORS = 8
"""The length of a word from which two of its letters may be wrong."""
_WORD = lazy_pattern(r"[^\W\d_]+")
_PREFIXES = ("dis", "un", "re", "de", "non", "pre", "over", "mis", "up")
_SUFFIXES = ("s", "es", "d", "ed", "ing", "ly", "er", "r")


@lru_cache(maxsize=16384)
def is_word(word: str, *, derived: bool = True) -> bool:
    """Whether a lower-case word is English or, with `derived`, an English word with a common prefix or suffix."""
    if len(word_rows[word]) == 1 or word in function_words():
        return True
    if not derived:
        return False
    stems = [word[: -len(end)] for end in _SUFFIXES if word.endswith(end) and len(word) > len(end) + 2]
    stems += [stem + "e" for stem in stems]
    stems += [word[len(start) :] for start in _PREFIXES if word.startswith(start) and len(word) > len(start) + 3]
    return any(len(word_rows[stem]) == 1 for stem in stems)


@lru_cache(maxsize=1)
def function_words() -> frozenset[str]:
    """The function words of English."""
    return frozenset(word for row in read_table("stopwords.txt") for word in row if len(word) > 1 or word in "ai")


@lru_cache(maxsize=1)
def common_words() -> frozenset[str]:
    """The most common words of English."""
    return frozenset(word for _, word in read_table("words.txt"))


def respell(text: str, words: tuple[str, ...]) -> str:
    """Replace unknown words in the text by those of these words that differ by a letter or two."""
    return _WORD.sub(lambda found: _correct_word(found[0].lower(), words) or found[0], text)


@lru_cache(maxsize=4096)
def _correct_word(word: str, words: tuple[str, ...]) -> str:
    """The first of these words of which an unknown word is a misspelling; "" if there is none."""
    if word in words or len(word) > MAX_WORD or is_word(word, derived=False):
        return ""
    return next((known for known in words if _is_misspelt(word, known)), "")


def _is_misspelt(word: str, known: str) -> bool:
    """Whether an unknown word is a known one with one or two wrong letters, or with its letters in another order."""
    most = 0 if len(known) < 4 else 2 if len(known) >= _MIN_LETTERS_FOR_TWO_ERRORS else 1
    if not most or abs(len(word) - len(known)) > most:
        return False
    if word[0] == known[0] and sorted(word) == sorted(known):
        return True
    # Each letter that the word lacks is an error.
    if len(set(known).difference(word)) > most or is_word(word):
        return False
    return max(letter_distance(known, word)[0], len(word) - len(known)) <= most


def letter_distance(pattern: str, text: str) -> tuple[int, int]:
    """The minimum number of letters to change, add or remove to find a pattern in a text, and the end of the best
    match.

    Uses Myers' bit vectors, so that each letter of the text costs a few operations on integers.
    """
    size = len(pattern)
    places: dict[str, int] = {}
    for at, char in enumerate(pattern):
        places[char] = places.get(char, 0) | 1 << at
    every, top = (1 << size) - 1, 1 << (size - 1)
    positive, negative, score = every, 0, size
    best = (size, 0)
    for end, char in enumerate(text, 1):
        equal = places.get(char, 0)
        either = equal | negative
        across = (((equal & positive) + positive) ^ positive) | equal
        up, down = negative | (every & ~(across | positive)), positive & across
        score += bool(up & top) - bool(down & top)
        up, down = (up << 1) & every, (down << 1) & every
        positive, negative = down | (every & ~(either | up)), up & either
        if score < best[0]:
            best = (score, end)
    return best


READ_CHARS = 20_000
"""The maximum length of a text with other readings; a longer one is a document."""
MAX_SPLIT_LETTERS = 1_200
"""The maximum number of letters that are split into words; the search looks at every position."""
_LONGEST_WORD = 18
_MOST_UNKNOWN = 0.5
"""The share of unknown words from which a text is split into words regardless of its spaces, or read backwards."""
_LEAST_GAIN = 0.3
"""The minimum gain in the share of known words for a reading that reverses the text."""
_COST_PER_LETTER = 0.3
"""The cost per letter up to which a text is split into English words; other languages cost more."""

_ESCAPE = lazy_pattern(r"(?:%|\\x)([2-7][0-9A-Fa-f])|\\u\{?0{0,4}([2-7][0-9A-Fa-f])\}?|\\U0{6}([2-7][0-9A-Fa-f])")
_ESCAPED_LETTER = lazy_pattern(r"(?:%|\\x|\\u\{?0{0,4}|\\U0{6})(?:[46][1-9A-Fa-f]|[57][0-9Aa])")
_MARKUP = lazy_pattern(
    r"(?<=[^\W_])(?:\*{1,3}|_{2}|~~|`|</?[A-Za-z]{1,10}(?:\s[^<>]{0,80})?/?>|<!--[^<>]{0,80}-->|\[|\]\([^()\s]{0,200}\))++(?=[^\W_])"
)
_EMPHASIS = lazy_pattern(
    r"\*{1,3}|_{2}|~~|`+|</?[A-Za-z]{1,10}(?:\s[^<>]{0,80})?/?>|\](?:\([^()\s]{0,200}\)|\[[^\[\]\s]{0,40}\])|\[\^\w{1,9}\]"
    r"|\\[A-Za-z]{2,12}\{|(?<=\w)\{\}(?=\w)"
)
_SPACES = lazy_pattern(r"[^\S\n]+")
_MANY_NUMBERS = 3
_MARKS = ".,;:!?"
_APART = lazy_pattern(r"(?:[^\w\s]|_)+")
_DIVIDED = lazy_pattern(r"(?<![^\W\d_])[^\W\d_]++(?:(?:[^\w\s]|_)++[^\W\d_]++)++")
_CONTRACTION = lazy_pattern(r"['’](?:t|s|d|m|re|ve|ll)$", re.IGNORECASE)
_HUMP = lazy_pattern(
    r"(?<=[A-Za-z][a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|(?<=[A-Za-z][a-z])(?=\d)|(?<=\d)(?=[A-Z][a-z])"
)
_CODES = tuple(
    (lazy_pattern(run), lazy_pattern(code), base)
    for run, code, base in (
        (r"(?:[A-Za-z\s]{0,20}\\[01][0-7]{2}){2,}+", r"\\([01][0-7]{2})", 8),
        (r"(?:[A-Za-z\s]{0,20}\\[2-7][0-9A-Fa-f] ?){2,}+", r"\\([2-7][0-9A-Fa-f]) ?", 16),
        (r"(?:[A-Za-z\s]{0,20}=(?:[46][1-9A-Fa-f]|[57][0-9Aa])){2,}+", r"=([2-7][0-9A-Fa-f])", 16),
        (r"=(?:[46][1-9A-Fa-f]|[57][0-9Aa])(?=[a-z]{2})", r"=([2-7][0-9A-Fa-f])", 16),
        (r"(?<!\w)(?:[2-7][0-9A-Fa-f][ :,]{0,2}){8,}+", r"([2-7][0-9A-Fa-f])[ :,]{0,2}", 16),
        (r"(?:[Uu]\+00[2-7][0-9A-Fa-f][ ,]{0,2}){4,}+", r"[Uu]\+00([2-7][0-9A-Fa-f])[ ,]{0,2}", 16),
        (r"(?<!\w)(?:(?:3[2-9]|[4-9]\d|1[01]\d|12[0-6])[ ,]{1,2}){8,}+(?:\d{2,3})?", r"(\d{2,3})[ ,]{0,2}", 10),
        (r"(?<!\w)(?:0[01]{7}[ ,]{0,2}){4,}+", r"(0[01]{7})[ ,]{0,2}", 2),
    )
)
"""Runs of characters written as numbers: the run, one code, and its numeric base."""
_ENCODED_AGAIN = lazy_pattern(r"&(?:amp;)+(?=[#A-Za-z])")
_MOST_LINES = 5
"""The maximum number of letters in a word that may be `i` or `l`; each doubles the number of spellings."""
_LEAST_LETTERS, _LEAST_REPEATED = 3, 5
"""The minimum length of a word in which digits, or repeated letters, may be a disguise."""
_SPACED = lazy_pattern(r"(?<![^\W_])[^\W_](?:[\W_]{1,3}[^\W_](?![^\W_])){3,}")
_BETWEEN_SPACED = lazy_pattern(r"[\W_]+")
_LONG_WORD = lazy_pattern(r"(?<![^\W\d_])[^\W\d_]{14,}+")
"""A word long enough to be several words without spaces."""
_LETTERS_OR_NUMBER = lazy_pattern(r"[^\W\d_]+|\d[\d.,:]*(?:[A-Z\d]+)?")
_LEET_WORD = lazy_pattern(r"(?<![\w@$!|+])[A-Za-z0134578@$!|+]{3,30}(?![\w@$|+])")
_SHORT_LEET = lazy_pattern(r"(?<![\w@$!|+.,])[A-Za-z0134578@$]{1,12}(?![\w@$|+])")
_REPEATED = lazy_pattern(r"(?<![^\W\d_])[^\W\d_]*?([^\W\d_])\1[^\W\d_]*")
_DOUBLE_VOWEL, _DOUBLE = lazy_pattern(r"([aeiou])\1+"), lazy_pattern(r"(.)\1+")
_LEET = str.maketrans("0134578@$!|+", "oieastbasilt")


_LOWER, _UPPER = "abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_ROTATED = str.maketrans(_LOWER + _UPPER, _LOWER[13:] + _LOWER[:13] + _UPPER[13:] + _UPPER[:13])


def other_readings(text: str) -> tuple[str, ...]:
    """Other possible readings of a text, without the text itself and without duplicates; empty for nearly every text.

    Folding (`engram.text.confusables`) replaces single characters. This module undoes changes to words: escapes (`%61`,
    `a`), letters in boxes and circles, markup inside words (`dis**able**`), separators instead of spaces
    (`Disable/TLS`, `DisableTls`), spaces inside words (`dis able`, `d i s a b l e`), digits for letters, and reversed
    text. Nearly every text has no other reading, and none is stored: the gates judge each reading as they judge the
    text.
    """
    return _cached_readings(text) if len(text) <= 600 else _cached_long_readings(text[:READ_CHARS])


def letters_of(text: str) -> str:
    """The letters of a text in lower case, without anything between them.

    `i` counts as `l`, which looks like it, and a repeated letter counts once.
    """
    spelled = strip_accents(spell_out(text[:READ_CHARS]))
    return _DOUBLE.sub(r"\1", "".join(_WORD.findall(spelled.casefold())).replace("i", "l"))


def _readings(text: str) -> tuple[str, ...]:
    plain = fold_text(text)[:READ_CHARS]
    bare = _EMPHASIS.sub("", _MARKUP.sub("", spell_out(plain)))
    apart = _separate(_join(bare))
    found = [bare, _separate(bare), apart, _without_repetitions(apart), _split_anew(bare), *_turn_around(bare)]
    seen, kept = {_comparable_text(plain), ""}, []
    for one in found:
        if (compared := _comparable_text(one)) not in seen:
            seen.add(compared)
            kept.append(one)
    return tuple(kept)


_cached_readings = lru_cache(maxsize=512)(_readings)
_cached_long_readings = lru_cache(maxsize=4)(_readings)
"""Cached because several gates read the same long text one after the other."""


def _comparable_text(text: str) -> str:
    """The words of a text, for comparing two readings."""
    return " ".join(text.casefold().split())


# -- letters


def spell_out(text: str) -> str:
    """The folded text with plain letters for escapes, for special letter forms, and for digits inside words."""
    text = fold_text(text)[:READ_CHARS]
    if "&amp;" in text:
        from html import unescape

        text = unescape(_ENCODED_AGAIN.sub("&", text))
    if _ESCAPED_LETTER.search(text):
        text = _ESCAPE.sub(lambda found: chr(int(found[1] or found[2] or found[3], 16)), text)
    for run, code, base in _CODES:
        text = run.sub(partial(_decode_run, code, base), text)
    if not text.isascii():
        text = _WORD.sub(_spell_word, spell_lookalikes(text))
    text = _REPEATED.sub(_spell_repeated, text)
    leet = _LEET_WORD.sub(_spell_leet, text)
    return _SHORT_LEET.sub(_spell_short_leet, leet) if leet != text else text


def _decode_run(code: re.Pattern[str], base: int, run: re.Match[str]) -> str:
    return code.sub(lambda found: chr(int(found[1], base)), run[0])


def _spell_repeated(found: re.Match[str]) -> str:
    """A word with repeated letters (`diisaablee`) as the English word without repetition."""
    word = found[0].lower()
    if not _LEAST_REPEATED <= len(word) <= 2 * _LONGEST_WORD or is_word(word):
        return found[0]
    spellings = (_DOUBLE_VOWEL.sub(r"\1", word), _DOUBLE.sub(r"\1", word))
    return next((one for one in spellings if is_word(one)), found[0])


def _spell_word(found: re.Match[str]) -> str:
    """A word without accents and letters of other scripts, and with `i` and `l` swapped if that makes an English
    word.
    """
    word = found[0].lower()
    if len(word) > _LONGEST_WORD or is_word(word):
        return found[0]
    bare = strip_accents(word)
    for one in (bare, "".join(filter(str.isascii, bare))):
        if len(one) > 1 and one.isascii() and (known := _swap_lines(one)):
            return known if found[0] != found[0].upper() else known.upper()
    return found[0]


def _swap_lines(word: str) -> str:
    """The English word that differs only in `i` and `l`, which look alike; "" if there is none."""
    places = [at for at, char in enumerate(word) if char in "il"]
    if is_word(word) or len(places) > _MOST_LINES:
        return word if is_word(word) else ""
    spellings = product("il", repeat=len(places))
    for letters in spellings:
        swapped = dict(zip(places, letters, strict=True))
        spelled = "".join(swapped.get(at, char) for at, char in enumerate(word))
        if is_word(spelled):
            return spelled
    return ""


def _spell_leet(found: re.Match[str]) -> str:
    if found[0].isalpha() or sum(map(str.isalpha, found[0])) < _LEAST_LETTERS:
        return found[0]
    plain = found[0].lower().translate(_LEET)
    return next((word for word in (plain, plain.replace("i", "l")) if is_word(word)), found[0])


def _spell_short_leet(found: re.Match[str]) -> str:
    plain = found[0].lower().translate(_LEET)
    return plain if not found[0].isalpha() and (is_word(plain) or plain == "a") else found[0]


def _separate(text: str) -> str:
    """The text with spaces instead of the signs between its words, and between the words of `camelCase`."""
    apart = _HUMP.sub(" ", _APART.sub(lambda found: found[0] if _is_punctuation(found) else " ", text))
    return _SPACES.sub(" ", apart).strip()


def _without_repetitions(text: str) -> str:
    """The text without numbers and marks between its words, if there are many, and without immediately repeated
    words.
    """
    words = text.split()
    if 2 * sum(word[-1] in _MARKS for word in words) >= len(words):
        words = [bare for word in words if (bare := word.rstrip(_MARKS))]
    if sum(map(str.isdigit, words)) >= _MANY_NUMBERS:
        words = [word for word in words if not word.isdigit()]
    return " ".join(word for word, before in zip(words, ["", *words], strict=False) if word.lower() != before.lower())


def _is_punctuation(found: re.Match[str]) -> bool:
    """Whether signs are normal punctuation in a sentence or part of a number."""
    text, (start, end) = found.string, found.span()
    is_inside_number = text[start - 1 : start].isdigit() and text[end : end + 1].isdigit()
    is_before_space = len(found[0]) == 1 and found[0] in ".,;:!?%" and (end == len(text) or text[end].isspace())
    return is_inside_number or is_before_space or (found[0] in "'’" and text[end : end + 1].isalpha())


def _join(text: str) -> str:
    """The text without signs inside English words, and with spaced letters (`d i s a b l e`) as words."""
    return _DIVIDED.sub(_join_divided, _SPACED.sub(_join_spaced, text))


def _join_divided(found: re.Match[str]) -> str:
    joined = "".join(_WORD.findall(found[0]))
    if len(joined) > _LONGEST_WORD or _CONTRACTION.search(found[0]):
        return found[0]
    return joined if is_word(joined.lower()) else found[0]


def _join_spaced(found: re.Match[str]) -> str:
    """Letters with signs between them as words. A different number of signs than between most letters separates
    words.
    """
    usual, _ = Counter(map(len, _BETWEEN_SPACED.findall(found[0]))).most_common(1)[0]
    return _BETWEEN_SPACED.sub(lambda gap: " " if len(gap[0]) != usual else "", found[0])


# -- words without regard to spaces


def _unknown_share(text: str) -> float:
    """The share of unknown words at the beginning of a text; 0 if it has too few words."""
    words = [found[0] for found, _ in zip(_WORD.finditer(text.lower()), range(60), strict=False)]
    if len(words) < 3:
        return float(any(len(word) >= _LONGEST_WORD and not is_word(word) for word in words))
    return sum(not is_word(word) or (len(word) < 4 and not _is_common(word)) for word in words) / len(words)


def _is_common(word: str) -> bool:
    return word in function_words() or word in common_words()


def _split_anew(text: str) -> str:
    """The letters of a text as words, regardless of its spaces; "" if they already are words or no words are found."""
    if _unknown_share(text) < _MOST_UNKNOWN:
        return _LONG_WORD.sub(_split_long_word, text[: 4 * MAX_SPLIT_LETTERS])
    pieces: list[str] = []
    for piece in _LETTERS_OR_NUMBER.findall(text[: 4 * MAX_SPLIT_LETTERS]):
        if pieces and piece[0].isalpha() and pieces[-1][-1].isalpha():
            pieces[-1] += piece
        else:
            pieces.append(piece)
    words: list[str] = []
    left, cost, letters = MAX_SPLIT_LETTERS, 0.0, 0
    for piece in pieces:
        if not piece[0].isalpha() or left <= 0:
            words.append(piece)
            continue
        some, price = _split_words(piece[:left].lower())
        words += some
        left, cost, letters = left - len(piece), cost + price, letters + min(left, len(piece))
    return " ".join(words) if letters and cost <= _COST_PER_LETTER * letters else ""


def _split_long_word(found: re.Match[str]) -> str:
    letters = found[0].lower()
    if len(letters) > MAX_SPLIT_LETTERS or is_word(letters):
        return found[0]
    words, cost = _split_words(letters)
    return " ".join(words) if cost <= _COST_PER_LETTER * len(letters) else found[0]


def _split_words(letters: str) -> tuple[list[str], float]:
    """The fewest known words that these letters consist of, and their cost."""
    best: list[tuple[float, int]] = [(0.0, 0)]
    for end in range(1, len(letters) + 1):
        options = (
            (best[start][0] + _price(letters[start:end]), start) for start in range(max(0, end - _LONGEST_WORD), end)
        )
        best.append(min(options, key=lambda option: (option[0], -option[1])))
    words, end = [], len(letters)
    while end:
        start = best[end][1]
        words.append(letters[start:end])
        end = start
    return words[::-1], best[-1][0]


@lru_cache(maxsize=65536)
def _price(word: str) -> float:
    """The cost of a word in a split of letters: low for a common or a long one."""
    if word in function_words():
        return 0.6
    is_known = vocabulary().row(word) is not None if len(word) < 5 else is_word(word)
    if not is_known:
        return 3.0 * len(word)
    price = (3.0, 2.4, 1.6, 1.1)[len(word) - 1] if len(word) < 5 else 1.0
    return 0.8 * price if word in common_words() else price


def _turn_around(text: str) -> list[str]:
    """The text rotated by 13 letters, reversed, or with each word reversed, if that has more known words."""
    unknown = _unknown_share(text)
    if unknown < _MOST_UNKNOWN:
        return []
    rotated = text.translate(_ROTATED)
    found = [rotated] if _unknown_share(rotated) <= unknown - _LEAST_GAIN else []
    if _unknown_share(text[::-1]) <= unknown - _LEAST_GAIN:
        found += [text[::-1], _WORD.sub(lambda word: word[0][::-1], text)]
    return found
