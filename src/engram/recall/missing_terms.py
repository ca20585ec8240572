"""Which expected terms a text lacks, compared by stems as the index does."""

import re
import unicodedata
from collections.abc import Sequence

from engram.text.tokens import tokens

__all__ = ["missing_terms"]

# Where one thing ends and another begins: an empty line, a list's mark, a heading. A wrapped line goes on.
_BREAK = re.compile(r"\n\s*\n|\n\s*(?:[-*•>#`|]|\d+[.)]\s)")
_HYPHEN = re.compile(r"(?<=[^\W\d_])[-‐‑](?=[^\W\d_])")


def missing_terms(expected: Sequence[str], text: str) -> tuple[str, ...]:
    """The expected terms that the text lacks, each once, in the order given.

    Words are compared by their stems ("allergies" is found in "allergy"); those of a term of several words must be
    adjacent. A blank term is never missing.
    """
    searchable = _SearchableText(text)
    return tuple(term for term in dict.fromkeys(expected) if term.strip() and not searchable.has(term))


class _SearchableText:
    """A text prepared for term lookup."""

    def __init__(self, text: str) -> None:
        parts = _BREAK.split(text)
        # A line's end is in no prepared part, so nothing is found across two of them.
        self._literal = "\n".join(map(_literal, parts))
        self._run = "\n".join(f" {_run(part)} " for part in parts)
        self._terms = frozenset(tokens(text))

    def has(self, term: str) -> bool:
        """Whether the text contains the term: its words in a row, another spelling of it, or the exact characters."""
        run = _run(term)
        if run and f" {run} " in self._run:
            return True
        own = tokens(term)
        # "e-mail" is found in "email": the joined form comes before its parts.
        if own and len(term.split()) == 1 and own[0] in self._terms:
            return True
        # The terms of a script without spaces overlap, and a path may go on: their run is not one of the text's.
        return self._terms.issuperset(own[1:] or own) and _literal(term) in self._literal


def _run(text: str) -> str:
    return " ".join(tokens(_HYPHEN.sub(" ", text)))


def _literal(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())
