"""Classifies English verbs: state, habit, saying, change or act; and recognizes past forms.

Small tables (`data/verbs.txt`) and the ending -ed cover most of it.
"""

from functools import lru_cache

from engram.text.stems import stem
from engram.text.word_tables import word_class

__all__ = ["PAST_AUXILIARIES", "SUBJECTS", "is_act", "is_participle", "is_past", "kind_of", "revises"]

PAST_AUXILIARIES = frozenset((
    "did", "didn't", "didnt", "was", "wasn't", "wasnt", "were", "weren't", "werent", "had", "hadn't", "hadnt",
    "what'd", "how'd", "who'd", "where'd", "why'd", "when'd",
))  # fmt: skip
SUBJECTS = frozenset((
    "i", "we", "you", "he", "she", "they", "it", "who", "that", "which", "what", "everyone", "someone", "anyone",
    "nobody",
))  # fmt: skip
"""Words that a finite verb follows directly."""


@lru_cache(maxsize=1)
def _kinds() -> dict[str, str]:
    return {stem(word): label for label in ("change", "say", "habit", "state") for word in word_class("verbs", label)}


@lru_cache(maxsize=8192)
def kind_of(word: str) -> str:
    """The kind of a verb in any form: "state", "habit", "say" or "change"; "" for every other word."""
    return _kinds().get(stem(word), "")


@lru_cache(maxsize=8)
def _stems(label: str) -> frozenset[str]:
    return frozenset(stem(word) for word in word_class("verbs", label))


def is_act(word: str) -> bool:
    """Whether the word is one of the commonest action verbs; any verb without a kind is an action verb, listed or not."""
    return stem(word) in _stems("act")


def revises(word: str, *, loosely: bool = False) -> bool:
    """Whether the verb changes the value of a fact (move, rename); with `loosely`, also the form of a thing (edit, migrate)."""
    return stem(word) in _stems("revise") or (loosely and stem(word) in _stems("redo"))


def _ends_as_past(word: str) -> bool:
    return len(word) > 3 and word.endswith("ed") and word not in word_class("verbs", "not_past")


def is_past(word: str, same: bool = False) -> bool:
    """Whether the word is a past form; `same` also accepts forms equal to the infinitive ("set", "read")."""
    if word in word_class("verbs", "past_same"):
        return same
    return word in word_class("verbs", "past") or _ends_as_past(word)


def is_participle(word: str) -> bool:
    """Whether the word can follow "have" or "was": done, told, deployed."""
    return is_past(word, same=True) or word in word_class("verbs", "participle")
