"""Hedges: words and phrases that mark a statement as a guess, from one table (`data/hedges.txt`)."""

from functools import lru_cache

from engram.text.word_classes import word_class

__all__ = ["hedge_in", "hedge_pattern"]


@lru_cache(maxsize=16)
def _phrases(classes: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(sorted(phrase.replace("_", " ") for name in classes for phrase in word_class("hedges", name)))


def hedge_in(prepared: str, *classes: str) -> str:
    """The first hedge of these classes in a text of words between single spaces; "" for none."""
    return next((phrase for phrase in _phrases(classes) if f" {phrase} " in prepared), "")


def hedge_pattern(*classes: str) -> str:
    """The hedges of these classes as alternatives of a regular expression, to be put between word boundaries."""
    return "|".join(_phrases(classes))
