"""What an English verb says: a state, a saying, a change or an act; and whether a form is a past one.

English marks tense and kind on few words, so small tables and the ending -ed go far. The tables are in `data/verbs.txt`;
of verbs that are a state or an act by their object, in `data/verbobjects.txt`.
"""

from functools import lru_cache

from engram.text.stems import stem
from engram.text.word_tables import read_table, word_class

__all__ = ["PAST_AUXILIARIES", "SUBJECTS", "is_act", "is_participle", "is_past", "kind_of", "kind_with", "revises"]

PAST_AUXILIARIES = frozenset(
    (
        "did",
        "didn't",
        "didnt",
        "was",
        "wasn't",
        "wasnt",
        "were",
        "weren't",
        "werent",
        "had",
        "hadn't",
        "hadnt",
        "what'd",
        "how'd",
        "who'd",
        "where'd",
        "why'd",
        "when'd",
    )
)
SUBJECTS = frozenset(
    (
        "i",
        "we",
        "you",
        "he",
        "she",
        "they",
        "it",
        "who",
        "that",
        "which",
        "what",
        "everyone",
        "someone",
        "anyone",
        "nobody",
    )
)
"""Words that a finite verb follows directly."""


@lru_cache(maxsize=1)
def _kinds() -> dict[str, str]:
    return {stem(word): label for label in ("change", "say", "habit", "state") for word in word_class("verbs", label)}


@lru_cache(maxsize=8192)
def kind_of(word: str) -> str:
    """One of "state", "habit", "say" and "change", or "" for every other word; any form of the verb will do."""
    return _kinds().get(stem(word), "")


@lru_cache(maxsize=1)
def _by_object() -> dict[tuple[str, str], str]:
    return {(stem(verb), noun): kind for verb, kind, *nouns in read_table("verbobjects.txt") for noun in nouns}


def kind_with(verb: str, noun: str) -> str:
    """What the verb, in any form, says of this object in particular: to run a team is a state, to run a test an act ("")."""
    return _by_object().get((stem(verb), noun), "")


@lru_cache(maxsize=8)
def _stems(label: str) -> frozenset[str]:
    return frozenset(stem(word) for word in word_class("verbs", label))


def is_act(word: str) -> bool:
    """Whether the word is one of the commonest verbs of doing; every verb of no kind is one of doing, known or not."""
    return stem(word) in _stems("act")


def revises(word: str, *, loosely: bool = False) -> bool:
    """Whether the verb gives a fact another value: move, rename; `loosely`, also a thing another form: edit, migrate."""
    return stem(word) in _stems("revise") or (loosely and stem(word) in _stems("redo"))


def _ends_as_past(word: str) -> bool:
    return len(word) > 3 and word.endswith("ed") and word not in word_class("verbs", "not_past")


def is_past(word: str, same: bool = False) -> bool:
    """Whether the word is a past form; `same` also takes forms that look like the plain one ("set", "read")."""
    if word in word_class("verbs", "past_same"):
        return same
    return word in word_class("verbs", "past") or _ends_as_past(word)


def is_participle(word: str) -> bool:
    """Whether the word can follow "have" or "was": done, told, deployed."""
    return is_past(word, same=True) or word in word_class("verbs", "participle")
