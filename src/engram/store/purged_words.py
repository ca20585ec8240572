"""What must be gone after a purge: every text of a memory, in each way it may be written down."""

import json
from collections.abc import Iterable, Sequence

from engram.model.memory import Memory

BLANK = "[purged]"
SHORTEST_NEEDLE = 6
"""Shorter texts occur by chance; their absence proves nothing."""


def texts_of(memory: Memory) -> list[str]:
    """Every free text of a memory."""
    return [memory.statement, memory.situation, memory.context, memory.rationale, *(a.snippet for a in memory.anchors)]


def enough(texts: Iterable[str]) -> list[str]:
    """Each text once, those left out that are too short to prove anything."""
    return [text for text in dict.fromkeys(texts) if len(text) >= SHORTEST_NEEDLE]


def quoted_spellings(texts: Sequence[str]) -> list[str]:
    """The ways texts may stand in JSON: as they are, escaped, and escaped to ASCII."""
    found: dict[str, None] = {}
    for text in texts:
        found |= dict.fromkeys((text, json.dumps(text, ensure_ascii=False)[1:-1], json.dumps(text)[1:-1]))
    return list(found)
