"""Seed phrases of wallets: twelve or more words in a row that are all on a list of BIP 39."""

import re
import string
import unicodedata
from collections.abc import Callable, Iterator
from functools import lru_cache

from engram.gates.secrets.forms import AS_SPACES, Secret
from engram.gates.tables import rows, table_text

__all__ = ["seed_phrases"]

_FEWEST = 12
_STEM, _LONGEST_STEMMED = 4, 9
"""Letters that tell the words of a list apart, and the letters of the longest."""
_LONGEST_GAP = 8
_WALLET = re.compile(
    r"wallet|seed|recover|crypto|ledger|carter|biller|moneder|semill|recuper|portefeuille|récup|graine|portafogl|semente|peněž|penez|obnov"
)
_WORD = re.compile(r"[^\W\d_]+")
# Between two words: spaces, a comma, a line break, the number of the next; no end of a sentence.
_GAP = re.compile(r"[ \t]{1,3}|[ \t]{0,3}[,;|/\-–·•]?[ \t]{0,3}\n?[ \t>*|•-]{0,4}(?:\d{1,2}[.):\]]?[ \t]{0,3})?")
_SIGNS = string.punctuation + "“”„«»–—·•"
_NUMBERS = frozenset(map(str, range(1, 26)))
_OPENING = re.compile(r"(?:\d{1,2}[.):\]]?[ \t]{0,3})\Z")


@lru_cache(maxsize=1)
def _listed() -> frozenset[str]:
    return frozenset(word for row in rows("walletwords.txt") for word in row)


@lru_cache(maxsize=1)
def _listed_or_numbered() -> frozenset[str]:
    return _listed() | _NUMBERS


@lru_cache(maxsize=1)
def _stems() -> frozenset[str]:
    """How the words of other languages begin, with and without their accents, and numbers of words."""
    joined = "".join(table_text("walletstems.txt"))
    stems = [joined[at : at + _STEM].rstrip("_") for at in range(0, len(joined), _STEM)]
    plain = (re.sub(r"[\u0300-\u036f]", "", unicodedata.normalize("NFD", stem)) for stem in stems)
    return _NUMBERS.union(stems, plain)


def _is_stemmed(word: str) -> bool:
    return word[:_STEM] in _stems() and len(word) <= _LONGEST_STEMMED


def seed_phrases(text: str, lowered: str) -> Iterator[Secret]:
    """Each run of listed words, with at least as many as the shortest seed phrase has."""
    # Numbers of the words count as words here; this looks at every word, so that what follows rarely has to.
    words = _words(lowered)
    known = bytes(map(_listed_or_numbered().__contains__, words))
    # The first and the last may be joined to something else by signs, and all of them to each other.
    is_joined = lowered.count("-") > _FEWEST - 2 and any(
        part.count("-") > _FEWEST - 2 for part in lowered.split() if len(part) > 3 * _FEWEST
    )
    if b"\1" * (_FEWEST - 2) in known or is_joined:
        yield from _phrases(text, lowered, _listed().__contains__)
    # Any text may have many words that begin like words of some list, so a wallet has to be mentioned.
    if not _WALLET.search(lowered):
        return
    stems = _stems()
    # Of ten words in a row, two of every fifth ones are neighbours.
    if b"\1\1" in bytes([word[:_STEM] in stems for word in words[:: (_FEWEST - 2) // 2]]):
        yield from _phrases(text, lowered, _is_stemmed)


def _words(lowered: str) -> list[str]:
    # On other texts than ASCII, `translate` takes several times as long.
    if lowered.isascii():
        return lowered.translate(AS_SPACES).split()
    return [part if part.isalnum() else part.strip(_SIGNS) for part in lowered.split()]


def _phrases(text: str, lowered: str, is_listed: Callable[[str], bool]) -> Iterator[Secret]:
    run: list[re.Match[str]] = []
    for word in _WORD.finditer(lowered):
        if not is_listed(word[0]):
            yield from _phrase(text, run)
            run = []
        elif run and not _continues(text, run[-1].end(), word.start()):
            yield from _phrase(text, run)
            run = [word]
        else:
            run.append(word)
    yield from _phrase(text, run)


def _continues(text: str, end: int, start: int) -> bool:
    return start - end == 1 or (start - end <= _LONGEST_GAP and _GAP.fullmatch(text, end, start) is not None)


def _phrase(text: str, run: list[re.Match[str]]) -> Iterator[Secret]:
    # One word over and over is no phrase.
    if len(run) < _FEWEST or len({word[0] for word in run}) == 1:
        return
    opening = _OPENING.search(text, max(0, run[0].start() - _LONGEST_GAP), run[0].start())
    yield Secret("seed-phrase", opening.start() if opening else run[0].start(), run[-1].end())
