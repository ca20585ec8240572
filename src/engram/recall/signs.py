"""The phrases that decide what a question asks for, as they stand in its words; the table is `text/data/questionsigns.txt`."""

from functools import lru_cache

from engram.text.stems import read_table

__all__ = ["OWNERS", "Signs"]

OWNERS = frozenset(("my", "our", "your", "his", "her", "their", "the"))
"""Words a noun follows that somebody has."""

_LONGEST = 4


class Signs:
    """The phrases of the sign table that stand in some words."""

    def __init__(self, keys: list[str]) -> None:
        self.keys = keys
        self.found: dict[str, str] = {}
        for place in range(len(keys)):
            for length in range(1, _LONGEST + 1):
                run = "_".join(keys[place : place + length])
                for kind in _kinds_of(run):
                    if _counts(kind, keys, place, length):
                        self.found.setdefault(kind, run.replace("_", " "))

    def get(self, kind: str) -> str:
        """The first phrase of that class, or nothing."""
        return self.found.get(kind, "")


def _kinds_of(run: str) -> tuple[str, ...]:
    """The classes of a phrase; things are the same by their plural."""
    kinds = _sign_table().get(run, ())
    one = _sign_table().get(run.removesuffix("s"), ()) if not kinds and run.endswith("s") else ()
    return kinds or tuple(kind for kind in one if kind in ("record", "had"))


@lru_cache(maxsize=1)
def _sign_table() -> dict[str, tuple[str, ...]]:
    table: dict[str, tuple[str, ...]] = {}
    for kind, *phrases in read_table("questionsigns.txt"):
        for phrase in phrases:
            table[phrase] = (*table.get(phrase, ()), kind)
    return table


def _counts(kind: str, keys: list[str], place: int, length: int) -> bool:
    """Whether a sign means it here: "how old am I" and "two years old" ask no old value, "the past" is no adjective."""
    before = keys[place - 1] if place else ""
    after = keys[place + length] if place + length < len(keys) else ""
    if kind != "historical" or length > 1:
        return True
    key = keys[place]
    if "record" in _kinds_of(after):
        return False
    if key in ("old", "older"):
        return before not in (
            "how",
            "years",
            "year",
            "months",
            "weeks",
            "days",
            "year's",
            "is",
            "are",
            "am",
            "than",
        ) and bool(after)
    if key in ("earlier", "past", "prior", "original", "initial", "former", "previous"):
        return bool(after) and after not in ("to", "than") and (key not in ("earlier", "past") or before in OWNERS)
    return True
