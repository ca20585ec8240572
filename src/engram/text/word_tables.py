"""Word tables: the files of `data/`, read as rows or as classes of words; and the hedges that mark a guess."""

from functools import lru_cache
from pathlib import Path

__all__ = ["DATA", "find_hedge", "hedge_pattern", "read_table", "word_class"]

DATA = Path(__file__).parent / "data"


def read_table(name: str) -> list[list[str]]:
    """The rows of a file in `data/`: words split on spaces, `#` starts a comment."""
    lines = (DATA / name).read_text(encoding="utf-8").splitlines()
    rows = [line.partition("#")[0].split() for line in lines]
    return [row for row in rows if row]


@lru_cache(maxsize=8)
def _classes(table: str) -> dict[str, frozenset[str]]:
    classes: dict[str, set[str]] = {}
    for label, *rest in read_table(f"{table}.txt"):
        classes.setdefault(label, set()).update(rest)
    return {label: frozenset(members) for label, members in classes.items()}


def word_class(table: str, label: str) -> frozenset[str]:
    """The words of one class of a table, in which each row is a class and some of its words."""
    return _classes(table)[label]


@lru_cache(maxsize=16)
def _phrases(classes: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(sorted(phrase.replace("_", " ") for name in classes for phrase in word_class("hedges", name)))


def find_hedge(prepared: str, *classes: str) -> str:
    """The first hedge of these classes in a text of words between single spaces; "" for none."""
    return next((phrase for phrase in _phrases(classes) if f" {phrase} " in prepared), "")


def hedge_pattern(*classes: str) -> str:
    """The hedges of these classes as alternatives of a regular expression, to be put between word boundaries."""
    return "|".join(_phrases(classes))
