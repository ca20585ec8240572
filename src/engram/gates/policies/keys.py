"""Builds slots and conflict keys from the groups of a match: one spelling per thing, none if it is uncertain."""

import re
from functools import lru_cache
from pathlib import Path

__all__ = ["fill_template", "normalize_value"]

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
    """Words at the start of a sentence that are no subject."""
    lines = (Path(__file__).parent / "no_subject.txt").read_text("utf-8").splitlines()
    return frozenset(word for line in lines if not line.startswith("#") for word in line.split())


def fill_template(template: str, match: re.Match[str]) -> str:
    """The template filled with the groups of a match; "" if one of them does not identify anything.

    A group that did not match is left out. `what2` is an alternative position of `what`. The group `who` is the subject: "I", "my"
    and "the user" are the same person, who is also meant if nobody is named.
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
