"""Builds the slot and the conflict key of a statement, and narrows the key if the statement applies to a part only."""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from engram.gates.tables import places
from engram.text.words import hedge_pattern

__all__ = ["ASIDE_GROUP", "Applicability", "build_slot_values", "fill_template", "normalize_value"]

_FIELD = re.compile(r"\{(\w+)\}")
_WORD = re.compile(r"[\w+#@&/.'-]+")
_LOOSE = re.compile(r":{2,}")
_MAX_VALUE_CHARS = 80
_USER = "user"
_SELF = frozenset(("i", "i'm", "me", "my", "mine", "myself", "user", "the user", "this user"))
_SPELLINGS = {"colour": "color", "flavour": "flavor", "theatre": "theater", "e-mail": "email"}
# Singular words that end like a plural.
_NO_PLURAL = frozenset(("diabetes", "series", "rabies", "species", "kubernetes", "postgres", "rails", "always", "news"))
_LEADING = frozenset(("the", "a", "an", "my", "our", "your", "his", "her", "their", "its", "this", "any", "all"))


@lru_cache(maxsize=1)
def _no_subject() -> frozenset[str]:
    """Words at the start of a sentence that are not a subject."""
    lines = (Path(__file__).parent / "no_subject.txt").read_text("utf-8").splitlines()
    return frozenset(word for line in lines if not line.startswith("#") for word in line.split())


def fill_template(template: str, match: re.Match[str]) -> str:
    """The template filled with the groups of a match; "" if one of them does not identify anything.

    A group that did not match is left out. `what2` is an alternative position of `what`. The group `who` is the
    subject: "I", "my", "the user" and a missing subject all mean the same person.
    """
    if "{" not in template:
        return template
    caught = {name.rstrip("0123456789"): text for name, text in match.groupdict().items() if text is not None}
    values = {name: _value(name, caught.get(name)) for name in _FIELD.findall(template)}
    if any(value is None for value in values.values()):
        return ""
    return _LOOSE.sub(":", _FIELD.sub(lambda field: values[field[1]] or "", template)).strip(":")


def _value(name: str, caught: str | None) -> str | None:
    if name == "who":
        return _subject(caught)
    return "" if caught is None else normalize_value(caught) or None


def _subject(caught: str | None) -> str | None:
    plain = (caught or "i").lower().removesuffix("'s").removesuffix("'").strip()
    if plain in _SELF:
        return _USER
    words = plain.removeprefix("my ").split()
    return None if not _no_subject().isdisjoint(words) else normalize_value(" ".join(words)) or None


def normalize_value(value: str) -> str:
    """A value as part of a key: lower case, without article and plural, words joined by underscores; "" if too long."""
    if len(value) > _MAX_VALUE_CHARS:
        return ""
    words = [word.strip(".'-/&_") for word in _WORD.findall(value.lower())]
    while words and words[0] in _LEADING:
        del words[0]
    return "_".join(_singular(word.removesuffix("'s")) for word in words if word)


def _singular(word: str) -> str:
    word = _SPELLINGS.get(word, word)
    if len(word) < 4 or not word.isalpha() or word in _NO_PLURAL or not word.endswith("s"):
        return word
    if word.endswith(("ss", "us", "is", "ics")):
        return word
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    return word[:-2] if word.endswith(("shes", "ches", "xes", "sses", "toes")) else word[:-1]


ASIDE_GROUP = "aside"
"""The group of a pattern whose words do not narrow the statement: "for formatting" of a formatter."""
_RULE_WORD = re.compile(r"[^\W_]+")
_MOST_PHRASES = 3
_MOST_CHARS = 200
"""Maximum characters; longer statements are not narrowed."""
_MOST_PLACES = 4
# "I use Vim if …" is conditional, and "for A and B" is two statements.
_OPEN = re.compile(
    rf"[?;:]|\b(?:if|unless|until|till|while|and|or|but|not|no|never|would|could|{hedge_pattern('guess', 'possible')})\b|n't\b"
)


class Applicability(NamedTuple):
    """The result of the rules for a text: its slots, and the spans of words that do not narrow it.

    A phrase that can be omitted without changing the conflict key narrows the statement, and becomes part of the key. A
    phrase that cannot be omitted is the statement itself: "I live in Berlin" has no key without it.
    """

    values: Mapping[str, str]
    asides: tuple[tuple[int, int], ...] = ()

    @property
    def key(self) -> str:
        """The conflict key, or ""."""
        return self.values.get("conflict_key", "")


class RuleText:
    """A text with its lower case and its words, as the rules look for them."""

    __slots__ = ("lowered", "text", "words")

    def __init__(self, text: str) -> None:
        self.text = text
        self.lowered = text.lower()
        self.words = frozenset(_RULE_WORD.findall(self.lowered))


class _Phrase(NamedTuple):
    text: str
    start: int
    rest: str
    """The statement without it."""


class _Grammar(NamedTuple):
    spellings: Mapping[str, str]
    plain: frozenset[str]
    first_words: frozenset[str]
    trailing: re.Pattern[str]
    leading: re.Pattern[str]
    infix: re.Pattern[str]
    opening: re.Pattern[str]
    tail: re.Pattern[str]
    neutral: re.Pattern[str]
    change: re.Pattern[str]
    times: re.Pattern[str]


def build_slot_values(text: RuleText, read: Callable[[RuleText], Applicability]) -> Mapping[str, str]:
    """The result of `read` for a text, with its key narrowed by the phrases that limit it.

    A statement that says several things, asks or supposes has the key of its own words, or none.
    """
    found, left, phrases = read(text), text.text, list[str]()
    for _ in range(_MOST_PHRASES):
        step = _without_one(left, found, read)
        if step is None:
            break
        phrase, left, found = step
        if phrase:
            phrases.append(phrase)
    if not phrases:
        return found.values
    parts = [normalize_value(phrase) for phrase in sorted(phrases)]
    values = dict(found.values)
    values["conflict_key"] = ":".join((found.key, *parts)) if all(parts) else ""
    return {name: value for name, value in values.items() if value}


def _without_one(
    text: str, found: Applicability, read: Callable[[RuleText], Applicability]
) -> tuple[str, str, Applicability] | None:
    """A phrase that can be omitted, the rest, and the result for the rest; the phrase is "" if it does not narrow."""
    if not found.key and (len(text) > _MOST_CHARS or "?" in text):
        return None
    for phrase in _phrases(text):
        if not found.key and _OPEN.search(phrase.text.lower()):
            continue
        rest = read(RuleText(phrase.rest))
        if rest.key and rest.key == (found.key or rest.key):
            neutral = _narrows_nothing(phrase, text, found)
            return "" if neutral else _spell_phrase(phrase.text), phrase.rest, rest
    return None


def _narrows_nothing(phrase: _Phrase, text: str, found: Applicability) -> bool:
    grammar, end = _grammar(), phrase.start + len(phrase.text)
    if any(first <= phrase.start and end <= last for first, last in found.asides):
        return True
    phrase_text = phrase.text.lower()
    if grammar.neutral.fullmatch(phrase_text):
        return True
    return grammar.times.fullmatch(phrase_text) is not None and grammar.change.search(text.lower()) is not None


def _phrases(text: str) -> Iterator[_Phrase]:
    """The phrases that may narrow a statement: at its end (last first), before its verb, and at its start."""
    grammar = _grammar()
    tail = grammar.tail.search(text)
    body, after = (text[: tail.start()], text[tail.start() :]) if tail else (text.rstrip(" .!"), "")
    places = _openings(body)[-_MOST_PLACES:]
    for start in reversed(places):
        if start and grammar.trailing.fullmatch(body, start):
            yield _Phrase(body[start:], start, body[:start].rstrip(" ,") + after)
    for start in reversed(places):
        if start and (found := grammar.infix.match(body, start)):
            yield _Phrase(found[1], start, body[:start] + body[found.end() :].lstrip() + after)
    for found in grammar.leading.finditer(body):
        yield _Phrase(found[1], found.start(), body[: found.start()] + body[found.end() :] + after)


def _openings(body: str) -> list[int]:
    """Positions of words that open a phrase. Finding the few that occur is cheaper than trying each at every letter."""
    grammar, lowered = _grammar(), body.lower()
    matches = [
        match
        for word in grammar.first_words
        if word in lowered
        for place in places(word, lowered)
        if (match := grammar.opening.match(body, place))
    ]
    found, passed = list[int](), 0
    for match in sorted(matches, key=re.Match.start):
        if match.start() >= passed:
            found.append(match.start())
            passed = match.end()
    return found


def _spell_phrase(phrase: str) -> str:
    """A phrase as part of a key: "for data breaches" → "data breaches", "before a release" → "before release"."""
    text, grammar = phrase.lower(), _grammar()
    opening = next((words for words in grammar.spellings if text.startswith(f"{words} ")), text.split()[0])
    word, what = grammar.spellings.get(opening, opening), text[len(opening) :].strip()
    bare = normalize_value(what).replace("_", " ")
    return bare if word in grammar.plain else f"{word} {bare}" if bare else ""


@lru_cache(maxsize=1)
def _grammar() -> _Grammar:
    """The grammar, compiled on first use."""
    import tomllib

    table = tomllib.loads((Path(__file__).parent / "qualifiers.toml").read_text("utf-8"))
    spellings: dict[str, str] = table["spellings"]
    words = sorted({*spellings, *table["plain"].split(), *table["telling"].split()}, key=len, reverse=True)
    opening = rf"\b(?:{'|'.join(map(re.escape, words))})\b"
    verb = r" (?:is|are|was|were|shall|will|must|may|can|should|has|have|had|runs?|uses?|goes?)\b|:"
    subject = r"(?:I|we|my|our|the|it|all|use|run|always|please)\b"
    return _Grammar(
        spellings,
        frozenset(table["plain"].split()),
        frozenset(word.split()[0] for word in words),
        re.compile(rf"{opening} [^;:?!]{{2,80}}", re.IGNORECASE),
        re.compile(rf"(?:^|(?<=[:,] ))({opening} [^,;:.?!]{{2,60}}?)(?:,|(?= {subject})) ", re.IGNORECASE),
        re.compile(rf"({opening} [^,;:.?!]{{2,60}}?)(?={verb})", re.IGNORECASE),
        re.compile(opening, re.IGNORECASE),
        re.compile(table["tail"]["pattern"], re.IGNORECASE),
        re.compile("|".join(f"(?:{pattern})" for pattern in table["neutral"].values())),
        re.compile(table["change"]["verbs"]),
        re.compile(table["change"]["times"]),
    )
