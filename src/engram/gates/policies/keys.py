"""From what a pattern caught to a slot or a key: one spelling for the same thing, nothing for what is not certain."""

import re
from functools import lru_cache
from pathlib import Path

__all__ = ["filled", "folded"]

_FIELD = re.compile(r"\{(\w+)\}")
_WORD = re.compile(r"[\w+#@&/.'-]+")
_LOOSE = re.compile(r":{2,}")
_MAX_VALUE_CHARS = 80
_USER = "user"
_SELF = frozenset(("i", "i'm", "me", "my", "mine", "myself", "user", "the user", "this user"))
_SPELLINGS = {"colour": "color", "flavour": "flavor", "theatre": "theater", "e-mail": "email"}
# They end like a plural and are none.
_NO_PLURAL = frozenset(("diabetes", "series", "rabies", "species", "kubernetes", "postgres", "rails", "always", "news"))
_LEADING = frozenset(("the", "a", "an", "my", "our", "your", "his", "her", "their", "its", "this", "any", "all"))


@lru_cache(maxsize=1)
def _no_subject() -> frozenset[str]:
    """Words at the head of a sentence that name no one, or no one in particular."""
    lines = (Path(__file__).parent / "no_subject.txt").read_text("utf-8").splitlines()
    return frozenset(word for line in lines if not line.startswith("#") for word in line.split())


def filled(template: str, match: re.Match[str]) -> str:
    """The template with the groups of a match; "" when one of them names nothing that can be told apart.

    A group that took no part in the match is left out. `what2` is another place where `what` may stand. The group `who`
    is the subject: I, my and the user are one person, who is also meant where nobody is named.
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
    return "" if caught is None else folded(caught) or None


def _subject(caught: str | None) -> str | None:
    plain = (caught or "i").lower().removesuffix("'s").removesuffix("'").strip()
    if plain in _SELF:
        return _USER
    words = plain.removeprefix("my ").split()
    return None if not _no_subject().isdisjoint(words) else folded(" ".join(words)) or None


def folded(value: str) -> str:
    """A value as it stands in a key: lower case, no article, no plural, words joined by underscores; "" when too long."""
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
