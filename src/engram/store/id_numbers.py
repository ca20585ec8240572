"""The numbers in ids of Engram's own grammar, `ENG-YYYY-MMDD-NNN`."""

from collections.abc import Iterable

MOST_DIGITS = 9
"""Longer ones are a team's: random, not counted up."""


def highest_numbers(memory_ids: Iterable[str]) -> dict[str, int]:
    """The highest number of each day."""
    highest: dict[str, int] = {}
    for memory_id in memory_ids:
        day, _, number = memory_id.rpartition("-")
        if number.isascii() and number.isdigit() and len(number) <= MOST_DIGITS and day.startswith("ENG-"):
            highest[day] = max(highest.get(day, 0), int(number))
    return highest
