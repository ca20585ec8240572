"""English words and misspelt ones: what the gates need to see through mistakes, intended or not."""

from functools import lru_cache

from engram.embedding.tokenizer import word_rows
from engram.model.lazy import lazy_pattern
from engram.text.word_tables import read_table

__all__ = ["common_words", "function_words", "is_word", "letter_distance", "respell"]

MAX_WORD = 30
"""Letters of the longest word that may be a misspelt one."""
_LONG_WORD = 8
"""Letters of a word from which two of them may be wrong."""
_WORD = lazy_pattern(r"[^\W\d_]+")
_PREFIXES = ("dis", "un", "re", "de", "non", "pre", "over", "mis", "up")
_SUFFIXES = ("s", "es", "d", "ed", "ing", "ly", "er", "r")


@lru_cache(maxsize=16384)
def is_word(word: str, *, derived: bool = True) -> bool:
    """Whether a lower-case word is an English one, or, if `derived`, one with a common beginning or ending."""
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
    """The words that hold sentences together."""
    return frozenset(word for row in read_table("stopwords.txt") for word in row if len(word) > 1 or word in "ai")


@lru_cache(maxsize=1)
def common_words() -> frozenset[str]:
    """The commonest words of English."""
    return frozenset(word for _, word in read_table("words.txt"))


def respell(text: str, words: tuple[str, ...]) -> str:
    """The text with these words for unknown ones that differ from them by a letter or two."""
    return _WORD.sub(lambda found: _correct_word(found[0].lower(), words) or found[0], text)


@lru_cache(maxsize=4096)
def _correct_word(word: str, words: tuple[str, ...]) -> str:
    """The first of these words that an unknown one is, misspelt; "" for none."""
    if word in words or len(word) > MAX_WORD or is_word(word, derived=False):
        return ""
    return next((known for known in words if _is_misspelt(word, known)), "")


def _is_misspelt(word: str, known: str) -> bool:
    """Whether an unknown word is a known one with a letter or two wrong, or with its letters in another order."""
    most = 0 if len(known) < 4 else 2 if len(known) >= _LONG_WORD else 1
    if not most or abs(len(word) - len(known)) > most:
        return False
    if word[0] == known[0] and sorted(word) == sorted(known):
        return True
    # Each letter that the word lacks is a mistake.
    if len(set(known).difference(word)) > most or is_word(word):
        return False
    return max(letter_distance(known, word)[0], len(word) - len(known)) <= most


def letter_distance(pattern: str, text: str) -> tuple[int, int]:
    """The fewest letters to change, add or leave out to find a pattern in a text, and where the best place ends.

    By Myers' bit vectors, so that each letter of the text costs a few operations on integers.
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
