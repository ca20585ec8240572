"""The verbs of a question: in which tense it asks, and after a state, a saying, a change or an act."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from engram.recall.clauses import DID, HAVE, IS, MODAL, WAS, WH, asking_clause, whole_text
from engram.text.stems import stem
from engram.text.time_words import Word, value_of
from engram.text.verbs import SUBJECTS, is_act, is_participle, is_past, kind_of, kind_with, revises
from engram.text.word_classes import word_class

__all__ = ["Asked", "asked", "degree_behind", "ends_a_noun", "kind_of_pair", "verbs_of"]

_INVERTED = WAS | HAVE | IS
"""Behind these and a subject stands a participle: "am I supposed to", "where was I based"."""
_CARRIERS = DID | WAS | HAVE | IS | MODAL
_DETERMINERS = word_class("asking", "determiner")
_NO_SUBJECTS = _DETERMINERS | frozenset(("be", "been", "being", "get", "gets", "getting", "not"))
_DOCUMENTS = word_class("asking", "document")
_PAIRS = {
    (stem(verb), particle): kind
    for kind in ("act", "state", "habit")
    for verb, _, particle in (pair.partition("_") for pair in word_class("asking", f"{kind}_pair"))
}
_ATTENDED = word_class("asking", "attended")
_PROCESSES = word_class("asking", "process")
_ADVERBS = word_class("asking", "adverb")
_ING_NOUNS = word_class("asking", "ing_noun")
_HELD = word_class("verbs", "held")
_HELD_PAIRS = word_class("verbs", "held_pair")
_VALUES = word_class("asking", "value_noun")
_COMPARED = word_class("asking", "comparative")
_DEGREES = frozenset(("any", "much", "even", "far", "still"))
_TO_COME = word_class("asking", "ahead")
_OBJECTS = frozenset(
    ("me", "us", "it", "you", "him", "them", "the", "a", "an", "my", "our", "your", "their", "his", "her")
)
_JOINED = frozenset(("of", "for", "to", "in", "on", "at", "by", "with", "from", "and", "or"))
_ARTICLES = frozenset(("the", "a", "an", "my", "our", "your", "their", "his", "her"))
_HOW = frozenset(("how", "where", "when", "why"))
_SHORT_PERFECT = word_class("asking", "short_perfect")
_BEHIND_VERB = 12
_OBJECT_WORDS = 4
_TAG_WORDS = 3


@dataclass(frozen=True, slots=True)
class Asked:
    """How a question asks."""

    keys: tuple[str, ...]
    """The words of the asking clause, without its polite beginning and its time phrase."""
    lead: str
    """The beginning that was left out."""
    tense: str
    """past, perfect, present, or "" where no verb shows."""
    kind: str
    """state, say, change, act; "be" for a past of "to be" that says what something was."""
    verb: str
    """The words that show tense and kind."""
    told: tuple[str, ...]
    """Past verbs with a subject of their own further on: "the book I mentioned"."""
    topic: tuple[str, ...] = ()
    """What stands before the asking clause."""


def asked(found: list[Word]) -> Asked:
    """Read the asking clause of a text's words."""
    clause = asking_clause(found)
    if clause.topic and len(clause.keys) <= _TAG_WORDS and not _verb(clause.keys)[1]:
        clause = whole_text(found)  # "the time was another one then, which one again?"
    return verbs_of(clause.keys, clause.lead, clause.topic)


def verbs_of(keys: list[str], lead: str = "", topic: tuple[str, ...] = ()) -> Asked:
    """Read the verbs of one clause by its words."""
    if keys[2:4] == ["it", "that"] and keys[1] in ("is", "was"):
        keys = [keys[0], *keys[4:]]  # "who is it | that reported the leak"
    place, tense, kind, verb = _verb(keys)
    kind = _by_object(keys, place, tense, verb) or kind
    others = tuple(
        keys[at]
        for at in range(max(place + 1, 1), len(keys))
        if keys[at - 1] in SUBJECTS and is_past(keys[at], same=True) and not (at > 1 and keys[at - 2] in _INVERTED)
    )
    return Asked(tuple(keys), lead, tense, kind, verb, others, topic)


def _verb(keys: list[str]) -> tuple[int, str, str, str]:
    """Where the first finite verb stands, its tense, the kind of what is asked after, and the words that show it."""
    for place, key in enumerate(keys):
        if key in DID:
            main, particle = _main(keys, place + 1)
            return place, "past", _kind_of_main(keys, place, main, particle), f"{key} {main}".strip()
        if key in WAS:
            return (place, *_was(keys, place))
        if key in HAVE or key in ("had", "hadn't"):
            return (place, *_have(keys, place))
        if key in IS:
            follower, object_ = [*keys[place + 1 : place + 3], "", ""][:2]
            # "who's messaged me" has, "what's planned" is
            if follower in _SHORT_PERFECT or (key.endswith("'s") and is_participle(follower) and object_ in _OBJECTS):
                return place, "perfect", _kind(follower), f"{key} {follower}"
            if key == "how's" and (shifted := _shifted(keys, place)):
                return place, "perfect", "change", f"{key} {shifted}"
            return place, "present", "state", key
        if key in MODAL:
            return place, "present", "state", key
        if place and _in_the_present(keys, place):
            return place, "present", "state", key
        if place and _is_told(keys, place):
            if keys[0] == "any" and key in _TO_COME:
                return place, "present", "state", key  # "any trips booked": are there any
            return place, "past", _kind_at(keys, place), key
    return -1, "", "", ""


def _is_told(keys: list[str], place: int) -> bool:
    """Whether a past form is the verb here, and no adjective or noun: "who set the table", but not "which set is he in"."""
    before, after = keys[place - 1], [*keys[place + 1 : place + 2], ""][0]
    if before in _NO_SUBJECTS or before.endswith("'s"):
        return False
    if is_past(keys[place]):
        return True
    asked_for = before in ("which", "what") or (keys[0] in WH and after in _OBJECTS)  # "which florist let us down"
    if asked_for and (after == "of" or not _CARRIERS.isdisjoint(keys[place + 1 :])):
        return False
    return is_past(keys[place], same=before in SUBJECTS or asked_for)


def _by_object(keys: list[str], place: int, tense: str, verb: str) -> str:
    """What the verb says by its object, behind it or asked for: "who ran the team", "which port did it use"; or nothing."""
    carried, main = " " in verb, verb.split()[-1] if verb else ""
    lasting = main.endswith("ing") or HAVE.isdisjoint(keys[:1])  # "have I ever taken the pills" asks for the act
    if tense not in ("past", "perfect") or not lasting or main not in keys[place:]:
        return ""
    behind = [*keys[keys.index(main, place) + 1 :][:_OBJECT_WORDS], ""]
    if kind_of(main) == "habit" and _made_to_do(behind):
        return "act"
    for place_behind, (noun, after) in enumerate(pairwise(behind)):
        kind = kind_with(main, noun)
        if kind and ends_a_noun(after):
            return kind
        if place_behind and noun in _JOINED:
            break
    fronted = keys[:place] if carried and behind[0] not in _OBJECTS else []
    return next((kind for noun in fronted if (kind := kind_with(main, noun))), "")


def _made_to_do(behind: list[str]) -> bool:
    """Whether somebody was brought to do something: "who taught Leo to ride a bike"."""
    to = behind.index("to") if "to" in behind[1:-1] else 0
    if not to or behind[to + 1] in _DETERMINERS:
        return False
    doing, after = behind[to + 1], [*behind[to + 2 : to + 3], ""][0]
    return is_act(doing) or kind_of(doing) != "" or after in _OBJECTS


def ends_a_noun(after: str) -> bool:
    """Whether the noun before this word is a whole one; in "the test coverage target" the test only tells which target."""
    return not after or after in _DETERMINERS or value_of("plain", after) is not None or is_past(after, same=True)


def _shifted(keys: list[str], place: int) -> str:
    """The participle of a change behind "how's" and its subject: "how's the scope shifted" says has, not is."""
    behind = range(place + 2, min(place + _BEHIND_VERB, len(keys)))
    changed = (
        keys[at]
        for at in behind
        if keys[at - 1] not in _DETERMINERS and is_participle(keys[at]) and kind_of(keys[at]) == "change"
    )
    return next(changed, "")


def _in_the_present(keys: list[str], place: int) -> bool:
    """Whether the word is a verb in its third person: "who builds the release", and not "which builds failed"."""
    if not keys[place].endswith("s") or not (kind_of(keys[place]) or is_act(keys[place])):
        return False
    after = keys[place + 1] if place + 1 < len(keys) else ""
    return (keys[0] == "who" and place == 1) or (
        keys[0] in WH and after in _ARTICLES and keys[place - 1] not in _NO_SUBJECTS
    )


def _main(keys: list[str], start: int) -> tuple[str, str]:
    """The verb that "did" carries, and what follows it: the first known one that is no noun here, or a pronoun's own."""
    keys = [*keys[:start], *(key for key in keys[start : start + _BEHIND_VERB] if key not in _ADVERBS), ""]
    for place in range(start + 1, len(keys) - 1):
        known = (
            keys[place - 1] not in _DETERMINERS
            and (kind_of(keys[place]) or is_act(keys[place]) or revises(keys[place]))
            and not (keys[place].endswith("s") and not keys[place].endswith("ss"))  # "how did the office rules develop"
        )
        if known or keys[place - 1] in SUBJECTS:
            return keys[place], keys[place + 1]
    return "", ""


def _kind_of_main(keys: list[str], did: int, main: str, particle: str) -> str:
    """What was done or so, by the verb and what stands beside it."""
    kind, paired = _kind(main), kind_of_pair(main, particle)
    if paired == "act":
        return "act"
    document = kind == "say" and _DOCUMENTS & set(keys[did + 1 : did + 5])  # what a clause says, it says all the time
    if keys[did - 1 : did] == ["how"] and main in _PROCESSES and _several(keys[keys.index(main, did) + 1 :]):
        return "habit"
    if did and "go" in keys[did:] and _ATTENDED & set(keys):
        return "habit"  # "which gym did I go to", but not "did I go to the gym"
    return "state" if document else paired or kind


def _several(behind: list[str]) -> bool:
    """Whether a verb's object is more than one: "our group meetings", and not "the tests", which are certain ones."""
    nouns = behind[1:4] if behind[:1] and behind[0] in _OBJECTS else behind[:3]
    return behind[:1] != ["the"] and any(
        noun.endswith("s") and ends_a_noun(after) for noun, after in pairwise([*nouns, ""])
    )


def _was(keys: list[str], place: int) -> tuple[str, str, str]:
    for after in range(place + 1, min(place + _BEHIND_VERB, len(keys))):
        key, before = keys[after], keys[after - 1]
        if before in _DETERMINERS or (before in SUBJECTS and is_past(key) and after > place + 2):
            continue
        if before in SUBJECTS and after > place + 2:
            break
        remained = key == "left" and keys[0] in ("what", "how", "which")
        done = kind_of_pair(key, [*keys[after + 1 : after + 2], ""][0]) == "act"  # "why was the meeting called off"
        if not done and (key in _HELD or key == "born" or remained or _stood(keys, after)):
            return "past", "be", f"{keys[place]} {key}"
        if key.endswith("ing") and _names_something(keys, place, after):
            continue
        if is_participle(key) or (key.endswith("ing") and len(key) > 4 and key not in _ING_NOUNS):
            kind = _kind_at(keys, after)
            if key.endswith("ing") and keys[:2] == ["how", "much"]:
                kind = "state"  # "how much was I making": a sum that held
            return "past", ("be" if kind in ("state", "habit") else kind), f"{keys[place]} {key}"
    return "past", "be", keys[place]


def _stood(keys: list[str], place: int) -> bool:
    """Whether a participle and its preposition say how things stood: "what was it set to", "under whose name was it registered"."""
    behind = [*keys[place + 1 : place + 2], ""][0]
    fronted = keys[0] if keys[1] in WH else ""
    return f"{keys[place]}_{behind}" in _HELD_PAIRS or f"{keys[place]}_{fronted}" in _HELD_PAIRS


def _names_something(keys: list[str], was: int, place: int) -> bool:
    """Whether a word in -ing is what is asked about, and not what was going on: "how was caching handled", "the status of the filing"."""
    if place == was + 1 and keys[:was] and keys[was - 1] in _HOW:
        return True
    of = keys.index("of", was, place) if "of" in keys[was:place] else 0
    return of > 0 and keys[of - 1] in _VALUES


def _have(keys: list[str], place: int) -> tuple[str, str, str]:
    if keys[place] in ("have", "has") and keys[place + 1 : place + 2] == ["to"]:
        return "present", "state", f"{keys[place]} to"  # "which invoices have to be paid"
    for after in range(place + 1, min(place + 8, len(keys))):
        if is_participle(keys[after]) and keys[after - 1] not in _DETERMINERS:
            been = (
                keys[after] == "been"
                and after + 1 < len(keys)
                and (is_participle(keys[after + 1]) or keys[after + 1].endswith("ing"))
            )
            word = keys[after + 1] if been else keys[after]
            if keys[after] == "got" and not degree_behind(keys, after):
                return "present", "state", f"{keys[place]} got"  # "what have I got"
            before = keys[place].startswith("had")  # "where had we planned to go", "which stage had it reached"
            held = (before and (word in _HELD or word == "reached")) or (
                been and word in _HELD and not WH.isdisjoint(keys[:place])
            )
            kind = "state" if held or (keys[after] == "been" and not been) else _kind_at(keys, after + been)
            if keys[1] in WH and (fronted := kind_of_pair(word, keys[0])):
                kind = fronted  # "by what names has it gone"
            return ("past" if keys[place].startswith("had") else "perfect"), kind, f"{keys[place]} {word}"
    return ("past" if keys[place].startswith("had") else "present"), "state", keys[place]


def degree_behind(keys: Sequence[str], place: int) -> bool:
    """Whether a degree follows: "got any better", "became longer", "grew more expensive"."""
    behind = [key for key in keys[place + 1 : place + 4] if key not in _DEGREES]
    return behind[:1] != [] and behind[0] in _COMPARED


def kind_of_pair(verb: str, particle: str) -> str:
    """What a verb says by its particle, where it says else another thing: "look at", "grow up"; or nothing."""
    return _PAIRS.get((stem(verb), particle), "")


def _kind_at(keys: list[str], place: int) -> str:
    return kind_of_pair(keys[place], [*keys[place + 1 : place + 2], ""][0]) or _kind(keys[place])


def _kind(word: str) -> str:
    return kind_of(word) or "act"
