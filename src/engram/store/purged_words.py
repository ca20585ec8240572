"""What must be gone after a purge: every text of a memory, in each way it may be written down."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from engram.model.event import Event
from engram.model.memory import Memory

BLANK = "[purged]"
SHORTEST_NEEDLE = 6
"""Shorter texts occur by chance; their absence proves nothing."""


def texts_of(memory: Memory) -> list[str]:
    """Every free text of a memory."""
    return [memory.statement, memory.situation, memory.context, memory.rationale, *(a.snippet for a in memory.anchors)]


def words_of(event: Event) -> str:
    """Everything an event holds that is words."""
    return "\n".join([event.content, event.key, *_strings(event.payload), *_strings(event.metadata)])


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from (text for pair in value.items() for item in pair for text in _strings(item))
    elif isinstance(value, (list, tuple)):
        yield from (text for item in value for text in _strings(item))


def lines_of(text: str) -> list[str]:
    """A text, and its lines where there are several: some files write it line by line."""
    return list(dict.fromkeys([text, *enough(line.strip() for line in text.splitlines())]))


class Elsewhere(NamedTuple):
    """What events that stay hold of texts that go."""

    named: tuple[str, ...]
    """Those that say what the destroyed events said, in words for their owner."""
    held: frozenset[str]
    """The texts, and lines of texts, that stand in any of them: those prove nothing."""
    own: tuple[str, ...]
    """The texts that go wherever else they are quoted. The name of a document, which its other events bear too, does not."""


def said_elsewhere(events: Iterable[Event], texts: Sequence[str], gone: Iterable[Event]) -> Elsewhere:
    """Looks for the texts of destroyed events, and of what was drawn from them, in the events that stay."""
    contents = [event.content for event in gone]
    spoken = {text for text in texts if any(text in content for content in contents)}
    wanted = {part for text in texts for part in lines_of(text)}
    named: list[str] = []
    held: set[str] = set()
    for event in events if wanted else ():
        words = words_of(event)
        found = {part for part in wanted if part in words}
        held |= found
        if found & spoken:
            named.append(says_the_same(event.id))
    own = tuple(text for text in texts if text in spoken or text not in held)
    return Elsewhere(tuple(named), frozenset(held), own)


def says_the_same(event_id: str) -> str:
    """How an event is named that says what was destroyed elsewhere."""
    return f"{event_id}: it says the same words; `engram ledger redact {event_id}` redacts it too"


def enough(texts: Iterable[str]) -> list[str]:
    """Each text once, those left out that are too short to prove anything."""
    return [text for text in dict.fromkeys(texts) if len(text) >= SHORTEST_NEEDLE]


def quoted_spellings(texts: Sequence[str]) -> list[str]:
    """The ways texts may stand in JSON: as they are, escaped, and escaped to ASCII."""
    found: dict[str, None] = {}
    for text in texts:
        found |= dict.fromkeys((text, json.dumps(text, ensure_ascii=False)[1:-1], json.dumps(text)[1:-1]))
    return list(found)
