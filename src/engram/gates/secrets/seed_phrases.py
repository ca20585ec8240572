"""Seed phrases of wallets: twelve or more words in a row that are all on the list of BIP 39."""

import re
import string
from collections.abc import Iterator
from functools import lru_cache

from engram.gates.secrets.forms import AS_SPACES, Secret
from engram.gates.tables import rows

__all__ = ["seed_phrases"]

_FEWEST = 12
_LONGEST_GAP = 8
_WORD = re.compile(r"[^\W\d_]+")
# Between two words: spaces, a comma, a line break, the number of the next; no end of a sentence.
_GAP = re.compile(r"[ \t]{1,3}|[ \t]{0,3}[,;|/\-–·•]?[ \t]{0,3}\n?[ \t>*|•-]{0,4}(?:\d{1,2}[.):\]]?[ \t]{0,3})?")
_SIGNS = string.punctuation + "“”„«»–—·•"
_NUMBERS = frozenset(map(str, range(1, 26)))
_OPENING = re.compile(r"(?:\d{1,2}[.):\]]?[ \t]{0,3})\Z")


@lru_cache(maxsize=1)
def _wallet_words() -> frozenset[str]:
    return frozenset(word for row in rows("walletwords.txt") for word in row)


@lru_cache(maxsize=1)
def _listed_or_numbered() -> frozenset[str]:
    return _wallet_words() | _NUMBERS


def seed_phrases(text: str, lowered: str) -> Iterator[Secret]:
    """Each run of listed words, with at least as many as the shortest seed phrase has."""
    # Numbers of the words count as words here; this looks at every word, so that what follows rarely has to.
    known = bytes(map(_listed_or_numbered().__contains__, _words(lowered)))
    # The first and the last may be joined to something else by signs, and all of them to each other.
    if b"\1" * (_FEWEST - 2) in known or (
        lowered.count("-") > _FEWEST - 2
        and any(part.count("-") > _FEWEST - 2 for part in lowered.split() if len(part) > 3 * _FEWEST)
    ):
        yield from _phrases(text, lowered, _wallet_words())


def _words(lowered: str) -> list[str]:
    # On other texts than ASCII, `translate` takes several times as long.
    if lowered.isascii():
        return lowered.translate(AS_SPACES).split()
    return [part if part.isalnum() else part.strip(_SIGNS) for part in lowered.split()]


def _phrases(text: str, lowered: str, listed: frozenset[str]) -> Iterator[Secret]:
    run: list[re.Match[str]] = []
    for word in _WORD.finditer(lowered):
        if word[0] not in listed:
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
