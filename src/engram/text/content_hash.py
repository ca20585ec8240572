"""Digests of texts: of a statement without regard to case and punctuation, and of an exact quote."""

import hashlib
import re
import unicodedata
from functools import lru_cache

from engram.text.confusables import fold_text

__all__ = ["content_hash", "quote_hash", "same_text"]


# Punctuation that ends or wraps a phrase; any other symbol may carry meaning (C++, -5, ≠, 👍).
_WRAPPING = "\"'`“”‘’«»()[]{}「」『』《》*_"
_ENDING = ".,;:!?…。、，；：！？؟،"
_WRAP, _END = re.escape(_WRAPPING), re.escape(_WRAPPING + _ENDING)
_EDGES = re.compile(rf"(?<!\S)[{_WRAP}]+(?=\w)|(?<=[^\s{_END}])[{_END}]+(?=\s|$)")


class _Kept(dict[int, str]):
    """Maps a character to what the hash keeps of it; a lazily filled table for `str.translate`."""

    def __missing__(self, code: int) -> str:
        self[code] = kept = _keep_character(chr(code))
        return kept


def _keep_character(char: str) -> str:
    if char.isspace():
        return " "
    return char if char == "_" or unicodedata.category(char)[0] in "LNM" else ""


_KEPT = _Kept()
_CACHED_CHARS = 1000


def content_hash(text: str) -> str:
    """SHA-256 of the folded text lower-cased, punctuation deleted, whitespace collapsed; "" if nothing is left.

    Letters, digits and marks of every script count, so different statements in any language differ. Symbols do not
    count: before dropping a text, a caller must also check `same_text`, which distinguishes `C` from `C++` and `-5`
    from `5`.
    """
    return _cached(text) if len(text) <= _CACHED_CHARS else _cached_long(text)


def _hash_text(text: str) -> str:
    normal = " ".join(fold_text(text).lower().translate(_KEPT).split())
    return hashlib.sha256(normal.encode("utf-8", "surrogatepass")).hexdigest() if normal else ""


_cached = lru_cache(maxsize=1024)(_hash_text)
_cached_long = lru_cache(maxsize=4)(_hash_text)
"""Cached because writing a statement hashes it several times: to find duplicates, to find rejected statements, and for
the index.
"""


def same_text(one: str, other: str) -> bool:
    """Whether two texts, once folded, differ at most in case, spacing, and punctuation at the edges of words."""
    return one == other or _bare(one) == _bare(other)


def _bare(text: str) -> str:
    return " ".join(_EDGES.sub("", fold_text(text).casefold()).split())


def quote_hash(text: str) -> str:
    """`sha256:` and the digest of the exact text; a changed space gives a different digest."""
    return f"sha256:{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()}"
