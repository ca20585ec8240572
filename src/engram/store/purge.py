"""What must be gone after a purge: the texts of memories and events, how they may be written down, and who else says them."""

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from engram.model.event import Event
from engram.model.memory import Memory
from engram.rules.scopes import ancestors, is_person

BLANK = "[purged]"
EVENT = "EVT-"
"""How the id of an event begins."""
DOCUMENT = "document:"
"""How a ledger begins in which Engram notes what it read of a document."""
SHORTEST_NEEDLE = 6
"""Shorter texts occur by chance; their absence proves nothing."""
SENTENCE = 3
"""So many words are a sentence. What comes along with a record (ids, digests, tags) is shorter, and no needle."""
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


def is_sentence(text: str, words: int = SENTENCE) -> bool:
    """Whether a text is long enough to be destroyed wherever else it is said: so many words, or as much without spaces."""
    return len(text) >= SHORTEST_NEEDLE and (
        len(text.split()) >= words or len(_UNSPACED.findall(text)) >= SHORTEST_NEEDLE
    )


def is_telling(text: str) -> bool:
    """Whether finding what a record says elsewhere means that it was quoted: it is two words, or one like no other.

    A single common word ("coffee", "Thanks!") is everybody's.
    """
    mixed = any(char.isdigit() for char in text) and any(char.isalpha() for char in text)
    return is_sentence(text, 2) or (len(text) >= SHORTEST_NEEDLE and mixed)


def texts_of(memory: Memory) -> list[str]:
    """The texts of a memory by which it is recognised elsewhere: what it says, and what it says around that in sentences."""
    around = [memory.situation, memory.context, memory.rationale, memory.trigger_context, *memory.form.values()]
    around += [anchor.snippet for anchor in memory.anchors]
    around += [*strings_in(memory.metadata), *strings_in(memory.extra)]
    return list(dict.fromkeys([*filter(is_telling, [memory.statement]), *filter(is_sentence, around)]))


def spoken_in(event: Event) -> list[str]:
    """The same of an event. What Engram itself notes about documents is nobody's words."""
    said = [] if event.session.startswith(DOCUMENT) else [event.content]
    around = [*strings_in(event.payload), *strings_in(event.metadata)]
    return list(dict.fromkeys([*filter(is_telling, said), *filter(is_sentence, around)]))


def words_of(event: Event) -> str:
    """Everything an event holds that is words."""
    return "\n".join([event.content, event.key, *strings_in(event.payload), *strings_in(event.metadata)])


def strings_in(value: Any) -> Iterator[str]:
    """Every string in a piece of data, the names of its fields included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from (text for pair in value.items() for item in pair for text in strings_in(item))
    elif isinstance(value, (list, tuple)):
        yield from (text for item in value for text in strings_in(item))


def says(words: str, text: str) -> bool:
    """Whether a text stands in some words as it is, not as a part of longer ones."""
    start = words.find(text)
    while start >= 0:
        end = start + len(text)
        if not (_joined(words, start) or _joined(words, end)):
            return True
        start = words.find(text, start + 1)
    return False


def _joined(words: str, at: int) -> bool:
    """Whether a place is inside a word."""
    if not 0 < at < len(words):
        return False
    before, after = words[at - 1], words[at]
    return before.isalnum() and after.isalnum() and not (_UNSPACED.match(before) or _UNSPACED.match(after))


def without(text: str, said: Iterable[str]) -> str:
    """A text in which what is purged is blank."""
    for needle in sorted(said, key=len, reverse=True):
        if says(text, needle):
            text = text.replace(needle, BLANK)
    return text


def reworded(value: Any, change: Callable[[str], str]) -> Any:
    """Data with every string in it changed; the names of its fields stay."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [reworded(item, change) for item in value]
    if isinstance(value, dict):
        return {key: reworded(item, change) for key, item in value.items()}
    return value


def lines_of(text: str) -> list[str]:
    """A text, and its lines where there are several: some files write it line by line."""
    lines = (line.strip() for line in text.splitlines())
    return list(dict.fromkeys([text, *(line for line in lines if is_sentence(line))]))


def said_elsewhere(events: Iterable[Event], texts: Sequence[str], gone: Iterable[Event]) -> tuple[str, ...]:
    """Of the texts of destroyed events, and of what was drawn from them, those that go wherever else they are quoted.

    What was said itself goes. What only came along, such as the name of a document, goes unless events that stay bear it too.
    """
    contents = [event.content for event in gone]
    spoken = {text for text in texts if any(text in content for content in contents)}
    loose = {text for text in texts if text not in spoken}
    held: set[str] = set()
    for event in events if loose else ():
        words = words_of(event)
        held |= {text for text in loose - held if says(words, text)}
    return tuple(text for text in texts if text not in held)


class QuotingRecord(NamedTuple):
    """A record that still says what was destroyed elsewhere, and the scope it belongs to."""

    id: str
    scope: str


def quoting_lines(holders: Iterable[QuotingRecord], own: Collection[str]) -> tuple[str, ...]:
    """What is told of records that say the same words. Those of other owners are counted: who purges need not know them."""
    found = list(dict.fromkeys(holders))
    foreign = {holder.id for holder in found if is_foreign(holder.scope, own)}
    lines = [quoting_line(holder.id) for holder in found if holder.id not in foreign]
    if foreign:
        lines.append(
            f"{len(foreign)} {'record' if len(foreign) == 1 else 'records'} of other owners: the same words, theirs"
        )
    return tuple(dict.fromkeys(lines))


def is_foreign(scope: str, own: Collection[str]) -> bool:
    """Whether a scope is an owner's who is none of those concerned, above or below them."""
    if not is_person(scope):
        return False
    return not any(scope in ancestors(one) or one in ancestors(scope) for one in own)


def goes_with(said_in: str, scope: str) -> bool:
    """Whether an event goes with a memory that names it as evidence: what another owner said stays theirs, whoever names it."""
    return not is_person(said_in) or scope in ancestors(said_in)


def quoting_line(record_id: str) -> str:
    """How a record is named that says what was destroyed elsewhere."""
    if record_id.startswith(EVENT):
        return f"{record_id}: it says the same words; `engram ledger redact {record_id}` redacts it too"
    if record_id.startswith("ENG-"):
        return f"{record_id}: it says the same words; `engram forget {record_id} --purge` destroys it too"
    return f"{record_id}: it says the same words"


def quoted_spellings(texts: Sequence[str]) -> list[str]:
    """The ways texts may stand in JSON: as they are, escaped, and escaped to ASCII."""
    found: dict[str, None] = {}
    for text in texts:
        found |= dict.fromkeys((text, json.dumps(text, ensure_ascii=False)[1:-1], json.dumps(text)[1:-1]))
    return list(found)
