"""Facts that a question names by slot, not by their words: "my employer", "where does Anna live".

"The user moved to Lisbon" shares no word with "What was my previous home?". But the policy gave it a conflict key, and the question
says which one it means: a slot (residence) and an owner (the user). A slot that no policy knows ("user:home") is
understood too, where its words are in the table.
"""

import re
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

from engram.model.lazy import dataclass
from engram.text.stems import stem
from engram.text.time.words import words
from engram.text.tokens import query_terms
from engram.text.verbs import is_past, kind_of, revises

__all__ = ["NAMED", "SlotQuery", "slot_query"]

NAMED = "key"
"""The name in a hit's trace for a match by conflict key."""
USER = "user"
_SELF = frozenset(("my", "i"))
_CARRIERS = frozenset(("do", "does", "did", "have", "has", "had", "am", "is", "was", "are", "were"))
_PARTS = re.compile(r"[^a-z0-9]+")


@dataclass(frozen=True, slots=True)
class SlotQuery:
    """The fact a question names: its slots, likeliest first, and whose it is."""

    slots: tuple[str, ...] = ()
    owner: str = ""

    @property
    def conflict_keys(self) -> tuple[str, ...]:
        """The conflict keys a policy may have given it."""
        return tuple(f"{slot}:{self.owner}" for slot in self.slots)

    def has(self, conflict_key: str) -> bool:
        """Whether a memory with this key is a version of the fact."""
        if not conflict_key or not self.slots:
            return False
        if conflict_key in self.conflict_keys:
            return True
        parts = {part for part in _PARTS.split(conflict_key.lower()) if part}
        said = {word for slot in self.slots for word in _words_of(slot)}
        return bool(parts & said) and self.owner in parts and parts <= said | {self.owner}

    def is_anothers(self, conflict_key: str) -> bool:
        """Whether a key is the same thing of the user where another's was asked for, or another's where the user's was."""
        slot, _, owner = conflict_key.partition(":")
        return slot in self.slots and bool(owner) and (owner == USER) != (self.owner == USER)


@lru_cache(maxsize=1)
def _rows() -> tuple[tuple[str, ...], ...]:
    lines = (Path(__file__).parent / "slots.txt").read_text("utf-8").splitlines()
    return tuple(tuple(line.split()) for line in lines if line and not line.startswith("#"))


@lru_cache(maxsize=2)
def _slots(how: str) -> dict[str, tuple[str, ...]]:
    return {stem(row[1]): row[2:] for row in _rows() if row[0] == how}


@lru_cache(maxsize=2)
def _class(how: str) -> frozenset[str]:
    return frozenset(word for row in _rows() if row[0] == how for word in row[1:])


@lru_cache(maxsize=64)
def _words_of(slot: str) -> frozenset[str]:
    return frozenset((slot, *(row[1] for row in _rows() if row[0] == "noun" and slot in row[2:])))


def slot_query(question: str) -> SlotQuery:
    """The fact that a question, without its time phrase, names; one without slots where it names none."""
    keys = [word.key + _possessive(question[word.start : word.end]) * ("'" not in word.key) for word in words(question)]
    return _owned(keys) or _done(keys) or SlotQuery()


def _possessive(written: str) -> str:
    return "'s" if written.lower().rstrip("?!.,;:").endswith(("'s", "’s")) else ""


def _owned(keys: list[str]) -> SlotQuery | None:
    """A thing with its owner: "what was my previous employer", "Anna's age". In "my home wifi" the home only tells which."""
    for place, (noun, after) in enumerate(pairwise([*keys, ""])):
        slots = _slots("noun").get(stem(noun))
        owner = _owner(keys[:place]) if slots and _ends(after) else ""
        if slots and owner:
            return SlotQuery(slots, owner)
    return None


def _owner(before: list[str]) -> str:
    while before and before[-1] in _class("modifier"):
        before = before[:-1]
    if not before:
        return ""
    if before[-1] == "my":
        return USER
    return _as_key(before[-1].removesuffix("'s")) if before[-1].endswith("'s") and len(before[-1]) > 2 else ""


def _ends(after: str) -> bool:
    said_of_it = is_past(after) or kind_of(after) == "change" or revises(after)
    return not after or after in _class("adverb") or said_of_it or not query_terms(f"x {after}")[1:]


def _done(keys: list[str]) -> SlotQuery | None:
    """What somebody does somewhere: "where did I live", "which company does my sister work for"."""
    asks = keys[:1] in (["where"], ["who"]) or (len(keys) > 1 and keys[0] in ("which", "what") and _is_noun(keys[1]))
    carrier = next((place for place, key in enumerate(keys) if key in _CARRIERS), 0)
    if not asks or not carrier:
        return None
    rest = [key for key in keys[carrier + 1 :] if key not in _class("adverb")]
    for place, verb in enumerate(rest):
        slots = _slots("verb").get(stem(verb))
        if slots and place and not any(query_terms(f"x {key}")[1:] for key in rest[place + 1 :]):
            owner = _subject(rest[:place])
            return SlotQuery(slots, owner) if owner else None
    return None


def _is_noun(key: str) -> bool:
    return stem(key) in _slots("noun")


def _subject(said: list[str]) -> str:
    """The one person a verb's subject is: "I", "Anna", "my sister"; nobody where it may be several."""
    if said == ["i"]:
        return USER
    name = said[1:] if said[0] == "my" else said
    return _as_key(" ".join(name)) if name and all(query_terms(f"x {key}")[1:] for key in name) else ""


def _as_key(name: str) -> str:
    from engram.gates.policies.keys import folded  # the policies cost more to load than most questions need

    return folded(name)
