"""Classes of words kept as tables: each row of a data file is a class and some of its words."""

from functools import lru_cache

from engram.text.stems import read_table

__all__ = ["word_class"]


@lru_cache(maxsize=8)
def _classes(table: str) -> dict[str, frozenset[str]]:
    classes: dict[str, set[str]] = {}
    for label, *rest in read_table(f"{table}.txt"):
        classes.setdefault(label, set()).update(rest)
    return {label: frozenset(members) for label, members in classes.items()}


def word_class(table: str, label: str) -> frozenset[str]:
    """The words of one class of a table of this room's data."""
    return _classes(table)[label]
