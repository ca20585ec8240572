"""The files of both generations before spec 3's layout: flat ones with a title and a principle, and ones with counters beside [content].

A file is feedback if it has an action or a principle, or reads as a do or a don't; a fact if it says of one thing what it is. Everything else
is reported and not guessed.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from engram.model.errors import InvalidInput
from engram.model.forms import FORM_PARTS
from engram.text.sentences import split_sentences

__all__ = ["LEGACY_KEYS", "is_legacy", "read_legacy"]

COUNTERS = frozenset({
    "surfaced_count", "followed_count", "not_followed_count", "irrelevant_count", "missed_count", "confidence", "initial_confidence",
    "project_scoped", "project_slug", "pending_evaluations", "core", "keywords", "concepts",
})  # fmt: skip
_FLAT = frozenset({"title", "principle", "anti_pattern", *FORM_PARTS["feedback"], *FORM_PARTS["fact"]})
LEGACY_KEYS = COUNTERS | _FLAT
"""Keys that no file of the present layout has at its top; what they say is in the form, or is dropped with the layout."""
_QUOTED = re.compile(r"[\"“«][^\"”»]{4,}[\"”»]")
_WORDS = re.compile(r"\S+")
_LONGEST_SUBJECT = 6
_LEGACY_FILE = Path(__file__).with_name("legacy.txt")

Read = tuple[dict[str, str], str, str, list[str]]
"""Form, situation, source, and what should be completed."""


def is_legacy(keys: Mapping[str, Any]) -> bool:
    """Whether a file has no [content], or keys of an earlier layout beside it."""
    return not isinstance(keys.get("content"), Mapping) or bool(keys.keys() & LEGACY_KEYS)


def read_legacy(keys: Mapping[str, Any]) -> Read:
    """The form, situation and source of a file. Raises `InvalidInput` where it is unclear what it is."""
    told: list[str] = []
    form = _form(keys)
    situation = _text(keys, "situation")
    if not situation and (title := _text(keys, "title")):
        situation = title
        told.append("its title is its situation now; name the task in which it matters")
    return form, situation, _source(keys), told


def _form(keys: Mapping[str, Any]) -> dict[str, str]:
    content = keys.get("content")
    stated: Mapping[str, Any] = content if isinstance(content, Mapping) else keys
    given = {name: _take_parts(stated, parts) for name, parts in FORM_PARTS.items()}
    if found := given.get(_text(keys, "type")) or given["feedback"] or given["fact"]:
        return found
    principle, warned_of = _text(keys, "principle"), _text(keys, "anti_pattern")
    if principle:
        return {**({"behavior": warned_of} if warned_of else {}), "action": principle}
    text = content.strip() if isinstance(content, str) else ""
    if _first_word(text) in _class("directive"):
        return {**({"behavior": warned_of} if warned_of else {}), "action": text}
    if fact := _fact(text):
        return fact
    raise InvalidInput(
        "it is unclear whether this is feedback or a fact; write it with `engram learn feedback` or `learn fact`"
    )


def _take_parts(keys: Mapping[str, Any], parts: tuple[str, ...]) -> dict[str, str]:
    return {part: text for part in parts if (text := _text(keys, part))}


def _fact(text: str) -> dict[str, str]:
    """Subject, predicate and object of a single sentence that says what a thing is; {} for any other text."""
    if len(split_sentences(text, 2)) != 1:
        return {}
    words = _WORDS.findall(text.rstrip("."))
    for at, word in enumerate(words[: _LONGEST_SUBJECT + 1]):
        if at and word.lower() in _class("relation") and at + 1 < len(words):
            end = at + 2 if words[at + 1].lower() in _class("preposition") and at + 2 < len(words) else at + 1
            return {
                "subject": " ".join(words[:at]),
                "predicate": " ".join(words[at:end]),
                "object": " ".join(words[end:]),
            }
    return {}


def _source(keys: Mapping[str, Any]) -> str:
    """Who said it: a person, if a file says so, rates it A or quotes somebody."""
    if (stated := _text(keys, "source")) in ("human", "agent"):
        return stated
    texts = (keys.get(key) for key in ("content", "principle", "anti_pattern"))
    is_quote = any(isinstance(text, str) and _QUOTED.search(text) for text in texts)
    return "human" if keys.get("confidence") == "A" or is_quote else "agent"


def _text(keys: Mapping[str, Any], key: str) -> str:
    value = keys.get(key)
    return value.strip() if isinstance(value, str) else ""


def _first_word(text: str) -> str:
    found = _WORDS.match(text)
    return found[0].lower().strip(",.:;").replace("’", "'") if found else ""


@lru_cache(maxsize=4)
def _class(name: str) -> frozenset[str]:
    rows = [line.split() for line in _LEGACY_FILE.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    return frozenset(word for label, *words in filter(None, rows) if label == name for word in words)
