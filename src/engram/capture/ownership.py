"""Whose a thing is: "my phone number" is not that of my sister, of Anna, or of the office."""

import re
from functools import lru_cache
from typing import NamedTuple

from engram.capture.extraction.references import speech
from engram.text.polarity import canonical_stem
from engram.text.stems import stem
from engram.text.word_tables import read_table, word_class

_WORD = re.compile(r"[^\W_]+(?:[-.@/][^\W_]+)*")
_POSSESSIVE = re.compile(r"['’]s\b|(?<=s)['’](?=\s)")
_SPEAKERS = frozenset(["i", "we", "my", "our", "mine", "ours", "us", "me", "user", "users", "myself", "ourselves"])
_CONTRACTED = frozenset(
    ["it", "that", "there", "what", "who", "where", "here", "how", "let", "he", "she", "i", "we", "you", "they"]
)
"""Words that 's makes no possessor of."""
_ARTICLES = frozenset(
    ["the", "a", "an", "this", "that", "these", "those", "his", "her", "their", "its", "my", "our", "your"]
)
_BEING = frozenset(("is", "are", "was", "were", "has", "had"))
_OTHERS = frozenset(("his", "her", "hers"))
_TITLES = frozenset(["mr", "mrs", "ms", "miss", "madam", "sir", "frau", "herr", "dona", "doctor", "dr"])


class _Word(NamedTuple):
    text: str
    """In lower case."""
    is_name: bool
    is_possessive: bool


class _Phrase(NamedTuple):
    """A statement's words: those before the verb, and those that tell whose it is."""

    subject: tuple[str, ...]
    owners: dict[str, str]
    """Possessors and people, each with that of the word before it where it is a name."""
    possessors: frozenset[str]
    is_speaker: bool
    """The speaker is the subject: "I", "the user"."""
    has_verb: bool


def content(text: str, *, frame: bool = False) -> list[str]:
    """The words of a text that have a meaning of their own, in lower case; with `frame` all of them."""
    words = [word.text for word in _words(text)]
    return words if frame else [word for word in words if is_content(word)]


def is_content(word: str) -> bool:
    """Whether a word in lower case has a meaning of its own."""
    return word not in _functions()


def agree(named: str, statement: str) -> bool:
    """Whether a statement is about what was named, and not about the same of somebody else."""
    wanted, found = _phrase(named), _phrase(statement)
    known = {canonical_stem(word.text) for word in _words(named)}
    if any(owner not in known and before not in known for owner, before in found.owners.items()):
        return False
    if not found.is_speaker and found.subject and not _is_about(found, known):
        return False
    doers = wanted.owners if wanted.has_verb and not wanted.is_speaker else ()
    return {*wanted.possessors, *doers} <= {*found.possessors, *found.subject}


def _is_about(found: _Phrase, known: set[str]) -> bool:
    """Whether a statement's subject was named: its last word, as the others only tell which one it is; or what a name stands for."""
    if not found.has_verb:
        return bool(known.intersection(found.subject))
    head = found.subject[-1]
    return head in known or (bool(known.intersection(found.subject)) and found.owners.get(head, "") in known)


@lru_cache(maxsize=512)
def _phrase(text: str) -> _Phrase:
    words = _words(text)
    end = _verb_place(words)
    speaker = next((word for word in words[:end] if word.text not in _ARTICLES - _SPEAKERS), None)
    is_speaker = speaker is not None and speaker.text in _SPEAKERS - {"my", "our"} and not speaker.is_possessive
    subject = [word for word in words[:end] if word.text not in _SPEAKERS and is_content(word.text)]
    possessors = {
        canonical_stem(word.text) for word in words if word.is_possessive and word.text not in _SPEAKERS | _CONTRACTED
    }
    owners = dict.fromkeys([*possessors, *_others(words)], "")
    for place, word in enumerate(words if is_speaker else words[:end]):
        before = next((one.text for one in reversed(words[:place]) if one.text not in _TITLES), "")
        if word.text in _people() and not (
            word.text in _TITLES and place + 1 < len(words) and words[place + 1].is_name
        ):
            owners[canonical_stem(word.text)] = ""
        elif word.is_name and not is_speaker:
            owners.setdefault(
                canonical_stem(word.text), canonical_stem(before) if before and is_content(before) else ""
            )
    return _Phrase(
        tuple(canonical_stem(word.text) for word in subject),
        owners,
        frozenset(possessors),
        is_speaker,
        end < len(words),
    )


def _others(words: tuple[_Word, ...]) -> list[str]:
    return [word.text for word in words if word.text in _OTHERS]


@lru_cache(maxsize=512)
def _words(text: str) -> tuple[_Word, ...]:
    found = []
    for match in _WORD.finditer(text):
        starts = not text[: match.start()].strip() or text[: match.start()].rstrip()[-1:] in ".!?:"
        low = match[0].lower()
        if low in ("s", "t", "m", "re", "ve", "ll", "d") and text[match.start() - 1 : match.start()] in ("'", "’"):
            continue
        is_name = match[0][0].isupper() and not starts and low not in _SPEAKERS
        found.append(_Word(low, is_name, bool(_POSSESSIVE.match(text, match.end()))))
    return tuple(found)


def _verb_place(words: tuple[_Word, ...]) -> int:
    """The place of the first verb; after an article or a possessor, or before another verb, a word is no verb."""
    verbs = word_class("wordclasses", "verb")
    for place, word in enumerate(words):
        before = words[place - 1] if place else None
        led = before is not None and (before.text in _ARTICLES or before.is_possessive)
        follows = words[place + 1].text if place + 1 < len(words) else ""
        if (
            place
            and not led
            and follows not in _BEING
            and verbs.intersection((word.text, word.text.removesuffix("s"), stem(word.text)))
        ):
            return place
    return len(words)


@lru_cache(maxsize=1)
def _functions() -> frozenset[str]:
    light = {word for label in ("drop", "light", "boundary") for word in word_class("wordclasses", label)}
    return frozenset(word for row in read_table("stopwords.txt") for word in row) | light


@lru_cache(maxsize=1)
def _people() -> frozenset[str]:
    relatives = {word for words in speech()["gender"].values() for word in words}
    return (word_class("asking", "person") | relatives | _plural(relatives)) - _SPEAKERS


def _plural(words: set[str]) -> frozenset[str]:
    return frozenset(f"{word}s" for word in words)
