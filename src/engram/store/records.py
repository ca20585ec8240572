"""A memory as every backend keeps it: the mapping of its file (journal images, index records)."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from engram.dialects import engram_yaml
from engram.model.arguments import refuse_deep
from engram.model.memory import Memory

DEEPEST_RECORD = 99
"""Levels of a record: a file is a list of them, and is read to 100."""


def decode_record(text: str) -> Memory:
    """A memory from its record's JSON."""
    return from_image(json.loads(text))


def from_image(mapping: Mapping[str, Any]) -> Memory:
    """The memory of an image."""
    return engram_yaml.from_mapping(mapping)


def image(memory: Memory) -> dict[str, Any]:
    """A memory as a journal and an index keep it."""
    return engram_yaml.to_mapping(memory)


def readable_image(memory: Memory) -> dict[str, Any]:
    """A memory's image, proven to read back: what is journaled must never be what no one can read."""
    mapping = image(memory)
    refuse_deep(mapping, memory.id, DEEPEST_RECORD)
    from_image(mapping)
    return mapping


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
