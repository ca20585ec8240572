"""Anchors of time phrases: the event in "before I moved", "since the launch", "when I lived in Berlin".

Only memory can say which window that is; here the event is found and its relation to the time. Such words count as a time only
where the question or the event is in the past: "what do I check before I deploy?" asks for a rule, and its words are what to
search for.
"""

from typing import NamedTuple

from engram.text.stems import stem
from engram.text.time.words import Word, value_of
from engram.text.verbs import PAST_AUXILIARIES, SUBJECTS, is_participle, is_past
from engram.text.word_tables import word_class

__all__ = ["AnchorPhrase", "find_anchor", "speaks_of_past"]

_RELATIONS = {
    "before": "before", "prior to": "before", "until": "before", "till": "before", "til": "before", "up until": "before",
    "by the time": "before", "ahead of": "before", "leading up to": "before",
    "after": "after", "since": "after", "following": "after", "ever since": "after", "as soon as": "after", "upon": "after",
    "during": "during", "while": "during", "whilst": "during", "when": "during", "back when": "during", "at the time of": "during",
    "at the time": "during", "in the run-up to": "before", "in the lead-up to": "before", "on the eve of": "before",
    "in the wake of": "after", "in the aftermath of": "after",
}  # fmt: skip
_RELATION_WORDS = frozenset(key.split()[0] for key in _RELATIONS)
_MAX_EVENT_WORDS = 48
_PASSIVE = frozenset(("is", "are", "am", "be", "being", "get", "gets", "getting"))
_TAKES_AFTER = frozenset(map(stem, ("look", "take", "name", "ask")))
_TOLD_BY = frozenset(("was", "were", "got", "had", "became"))
_EMPTY = word_class("asking", "no_event")
_ASKS_WHEN = word_class("asking", "asks_when")
_AUXILIARIES = PAST_AUXILIARIES | word_class("asking", "inverted")
_PRESENT = word_class("asking", "holds")
_HAVE = word_class("asking", "have")
_BEING = frozenset(("is", "are", "am", "isn't", "aren't", "have", "has", "haven't", "hasn't"))
_OTHER_QUESTIONS = frozenset(("what", "what's", "which", "who", "where", "how", "why", "what'd", "whom"))
_LAST_OF_CLAUSE = frozenset(("what", "what's", "where", "who", "how", "why", "which", "but", "did", "do", "does", "so"))


class AnchorPhrase(NamedTuple):
    """Which words tell the time (first and behind the last), from where the event is told, and how the time lies to it."""

    first: int
    event: int
    last: int
    relation: str
    clause: bool
    """The event is told by a sentence of its own: "I moved"."""


def speaks_of_past(found: list[Word]) -> bool:
    """Whether some verb is in the past or the perfect."""
    return any(_is_past_verb(found, place) for place in range(len(found)))


def _is_past_verb(found: list[Word], place: int) -> bool:
    key = found[place].key
    if key in PAST_AUXILIARIES or key == "used":
        return True
    if key in _HAVE:
        return _is_perfect(found, place)
    if place == 0 or not is_past(key) or found[place - 1].owner:
        return False
    before = found[place - 1]
    if place > 1 and before.key in SUBJECTS and found[place - 2].key in _BEING:
        return False  # "am I supposed to"
    return before.key in SUBJECTS or before.key.endswith("'ve") or _is_name(before, place)


def _is_name(word: Word, place: int) -> bool:
    return word.capital and place > 1 and not word.closed


def _is_perfect(found: list[Word], place: int) -> bool:
    if {"do", "does", "to", "will", "don't"} & {word.key for word in found[max(0, place - 2) : place]}:
        return False
    if place + 1 < len(found) and found[place + 1].key == "to":
        return False  # "which invoices have to be paid"
    return any(is_participle(word.key) and word.key != "got" for word in found[place + 1 : place + 5])


def find_anchor(found: list[Word], past: bool) -> AnchorPhrase | None:
    """The first time in the words that is told by an event."""
    for place in range(len(found)):
        if found[place].key not in _RELATION_WORDS and found[place].key not in (
            "by",
            "at",
            "back",
            "as",
            "leading",
            "up",
            "in",
            "on",
        ):
            continue
        read = _relation(found, place)
        if read is not None and (told := _event(found, place, *read, past)) is not None:
            return told
    return None


def _relation(found: list[Word], place: int) -> tuple[int, str] | None:
    for length in (4, 3, 2, 1):
        run = found[place : place + length]
        if len(run) == length and not any(word.closed for word in run):
            relation = _RELATIONS.get(" ".join(word.key for word in run))
            if relation is not None:
                return place + length, relation
    return None


def _event(found: list[Word], place: int, event: int, relation: str, past: bool) -> AnchorPhrase | None:
    if (
        event >= len(found)
        or found[event].key[:1].isdigit()
        or (found[event].key in _EMPTY and not _has_own_verb(found, event))
        or found[event].key in _AUXILIARIES
    ):
        return None
    if place and found[place - 1].key == found[event].key and found[event].key not in SUBJECTS:
        return None  # "draft after draft"
    key = found[place].key
    if key == "after" and place and stem(found[place - 1].key) in _TAKES_AFTER:
        return None  # "who looks after the account"
    if key == "when" and not _is_time_clause(found, place):
        return None
    last = _clause_end(found, event)
    run = found[event:last]
    subject = run[0].key in SUBJECTS or run[0].key in ("i'd", "we'd", "i'm")
    told_past = any(_is_past_form(run, at) for at in range(len(run)))
    if subject and not told_past and any(word.key in _PRESENT for word in run):
        return None
    if key in ("when", "while", "whilst") and not told_past and not any(word.key.endswith("ing") for word in run):
        return None
    since = (
        found[event - 1].key == "since" and not subject
    )  # "her pain scores since admission": it lies behind whatever the tense
    if not (past or told_past or since):
        return None
    return AnchorPhrase(_with_unit(found, place), event, last, relation, told_past)


def _is_past_form(run: list[Word], place: int) -> bool:
    """Whether the word is a past form of its own: "the lift got stuck", and not "the lift gets stuck"."""
    return is_past(run[place].key, same=True) and (place == 0 or run[place - 1].key not in _PASSIVE)


def _has_own_verb(found: list[Word], event: int) -> bool:
    """Whether "it" has a verb of its own: "before it was extended", and not "before it"."""
    verb = found[event + 1].key if event + 1 < len(found) and not found[event].closed else ""
    return found[event].key in ("it", "that", "this", "they", "these") and (verb in _TOLD_BY or is_past(verb))


def _is_time_clause(found: list[Word], place: int) -> bool:
    """Whether "when" tells a time: it does in "what was it when I moved", and asks for one in "tell me when I moved"."""
    if place == 0 or found[place - 1].closed:
        return any(word.closed for word in found[place + 1 : place + _MAX_EVENT_WORDS - 1][:-1]) and place + 1 < len(
            found
        )
    asks_else = any(word.key in _OTHER_QUESTIONS for word in found[max(0, place - _MAX_EVENT_WORDS) : place])
    return asks_else or found[place - 1].key not in _ASKS_WHEN


def _clause_end(found: list[Word], event: int) -> int:
    for place in range(event, min(event + _MAX_EVENT_WORDS, len(found))):
        if place > event and found[place].key in _LAST_OF_CLAUSE:
            echoed = (
                found[place].key in _OTHER_QUESTIONS and found[place - 1].key in _TOLD_BY
            )  # "before the injury | was what"
            return place - 1 if echoed and place - 1 > event else place
        if found[place].closed:
            return place + 1
    return min(event + _MAX_EVENT_WORDS, len(found))


def _with_unit(found: list[Word], place: int) -> int:
    """Where the phrase begins: in "the day before the launch" the words before belong to it as well."""
    if place >= 2 and value_of("unit", found[place - 1].key) and found[place - 2].key in ("the", "a"):
        return place - 2
    return place - 1 if place and found[place - 1].key in ("just", "right", "shortly", "long", "soon") else place
