"""The texts that a purge removes: those of memories and events, their JSON spellings, and the records that quote them."""

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from engram.model.lazy import lazy_pattern
from engram.model.memory import Memory
from engram.model.records import Event
from engram.rules.scopes import ancestors, is_person

PURGED_TEXT = "[purged]"
EVENT_PREFIX = "EVT-"
"""The prefix of event ids."""
DOCUMENT_PREFIX = "document:"
"""The prefix of ledgers that record how a document was read."""
MIN_NEEDLE_CHARACTERS = 6
"""Shorter texts also occur by chance, so finding one proves nothing."""
MIN_SENTENCE_WORDS = 3
"""Minimum words of a sentence. Ids, digests and tags in a record are shorter and are not searched for."""
_UNSPACED = lazy_pattern(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


def is_sentence(text: str, words: int = MIN_SENTENCE_WORDS) -> bool:
    """Whether a text is long enough to be removed wherever it is quoted: by words, or by characters in unspaced scripts."""
    return len(text) >= MIN_NEEDLE_CHARACTERS and (
        len(text.split()) >= words or len(_UNSPACED.findall(text)) >= MIN_NEEDLE_CHARACTERS
    )


def is_distinctive(text: str) -> bool:
    """Whether finding a text elsewhere means that it was quoted: two words, or one with letters and digits.

    A single common word ("coffee", "Thanks!") is not a quotation.
    """
    mixed = any(char.isdigit() for char in text) and any(char.isalpha() for char in text)
    return is_sentence(text, 2) or (len(text) >= MIN_NEEDLE_CHARACTERS and mixed)


def texts_of(memory: Memory) -> list[str]:
    """The texts that identify a memory elsewhere: its statement, and the sentences of its other fields.

    Cues do not count: they are general questions, and several memories may have the same.
    """
    around = [memory.situation, memory.context, memory.rationale, memory.trigger_context, *memory.form.values()]
    around += [anchor.snippet for anchor in memory.anchors]
    around += [*strings_in(memory.metadata), *strings_in(memory.extra)]
    return list(dict.fromkeys([*filter(is_distinctive, [memory.statement]), *filter(is_sentence, around)]))


def texts_of_event(event: Event) -> list[str]:
    """The texts that identify an event elsewhere. The content of Engram's own notes about documents does not count."""
    content = [] if event.session.startswith(DOCUMENT_PREFIX) else [event.content]
    around = [*strings_in(event.payload), *strings_in(event.metadata)]
    return list(dict.fromkeys([*filter(is_distinctive, content), *filter(is_sentence, around)]))


def words_of(event: Event) -> str:
    """All text of an event."""
    return "\n".join([event.content, event.key, *strings_in(event.payload), *strings_in(event.metadata)])


def strings_in(value: Any) -> Iterator[str]:
    """Every string in plain data, including the names of fields."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from (text for pair in value.items() for item in pair for text in strings_in(item))
    elif isinstance(value, (list, tuple)):
        yield from (text for item in value for text in strings_in(item))


def contains_words(words: str, text: str) -> bool:
    """Whether some words contain a text as whole words."""
    start = words.find(text)
    while start >= 0:
        end = start + len(text)
        if not (_is_inside_word(words, start) or _is_inside_word(words, end)):
            return True
        start = words.find(text, start + 1)
    return False


def _is_inside_word(words: str, at: int) -> bool:
    """Whether a position is inside a word."""
    if not 0 < at < len(words):
        return False
    before, after = words[at - 1], words[at]
    return before.isalnum() and after.isalnum() and not (_UNSPACED.match(before) or _UNSPACED.match(after))


def remove_texts(text: str, purged: Iterable[str]) -> str:
    """Replace the purged texts in a text by `[purged]`."""
    for needle in sorted(purged, key=len, reverse=True):
        if contains_words(text, needle):
            text = text.replace(needle, PURGED_TEXT)
    return text


def map_strings(value: Any, change: Callable[[str], str]) -> Any:
    """Apply a function to every string in plain data, except the names of fields."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [map_strings(item, change) for item in value]
    if isinstance(value, dict):
        return {key: map_strings(item, change) for key, item in value.items()}
    return value


def lines_of(text: str) -> list[str]:
    """A text and its lines, because some files store it line by line."""
    lines = (line.strip() for line in text.splitlines())
    return list(dict.fromkeys([text, *(line for line in lines if is_sentence(line))]))


def texts_to_remove(events: Iterable[Event], texts: Sequence[str], gone: Iterable[Event]) -> tuple[str, ...]:
    """The texts of destroyed events and their facts that must be removed wherever they are quoted.

    Content is always removed. A text that only accompanied it, such as a document's name, is kept if remaining events
    contain it.
    """
    contents = [event.content for event in gone]
    spoken = {text for text in texts if any(text in content for content in contents)}
    loose = {text for text in texts if text not in spoken}
    kept: set[str] = set()
    for event in events if loose else ():
        words = words_of(event)
        kept |= {text for text in loose - kept if contains_words(words, text)}
    return tuple(text for text in texts if text not in kept)


class QuotingRecord(NamedTuple):
    """A record that still contains a destroyed text, and the scope it belongs to."""

    id: str
    scope: str


_OF_OTHERS = "of other owners contain the same words"


def without_counts(lines: Iterable[str]) -> tuple[str, ...]:
    """The lines without the number of other owners' records, which would reveal what another owner wrote."""
    return tuple(line for line in lines if not line.endswith(_OF_OTHERS))


def quoting_lines(records: Iterable[QuotingRecord], own: Collection[str]) -> tuple[str, ...]:
    """A line for each record with the same words. Records of other owners are only counted, not named."""
    found = list(dict.fromkeys(records))
    foreign = {record.id for record in found if is_foreign(record.scope, own)}
    lines = [quoting_line(record.id) for record in found if record.id not in foreign]
    if foreign:
        lines.append(f"{len(foreign)} {'record' if len(foreign) == 1 else 'records'} {_OF_OTHERS}")
    return tuple(dict.fromkeys(lines))


def is_foreign(scope: str, own: Collection[str]) -> bool:
    """Whether a scope belongs to another person than the given scopes."""
    if not is_person(scope):
        return False
    return not any(scope in ancestors(one) or one in ancestors(scope) for one in own)


def is_removed_with(event_scope: str, scope: str) -> bool:
    """Whether an event is removed with a memory that cites it; another owner's event is not."""
    return not is_person(event_scope) or scope in ancestors(event_scope)


def quoting_line(record_id: str) -> str:
    """The line for a record that contains a destroyed text."""
    if record_id.startswith(EVENT_PREFIX):
        return f"{record_id}: contains the same words; `engram ledger redact {record_id}` redacts it, too"
    if record_id.startswith("ENG-"):
        return f"{record_id}: contains the same words; `engram forget {record_id} --purge` destroys it, too"
    return f"{record_id}: contains the same words"


def quoted_spellings(texts: Sequence[str]) -> list[str]:
    """The spellings of texts in JSON: as they are, escaped, and escaped to ASCII."""
    found: dict[str, None] = {}
    for text in texts:
        found |= dict.fromkeys((text, json.dumps(text, ensure_ascii=False)[1:-1], json.dumps(text)[1:-1]))
    return list(found)
