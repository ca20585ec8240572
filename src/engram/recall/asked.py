"""The clause of a text that asks, and its verbs: in which tense it asks, and after a state, a saying, a change or an act."""

import re
from dataclasses import dataclass
from itertools import pairwise

from engram.text.time_words import Word, value_of
from engram.text.verbs import SUBJECTS, is_act, is_participle, is_past, kind_of, kind_with
from engram.text.word_classes import word_class

__all__ = ["Asked", "asked", "ends_a_noun"]

_WH = word_class("asking", "wh")
_DID = frozenset(("did", "didn't", "didnt", "what'd", "how'd", "who'd", "where'd", "why'd", "when'd"))
_WAS = frozenset(("was", "were", "wasn't", "weren't", "wasnt", "werent"))
_HAVE = word_class("asking", "have")
_IS = word_class("asking", "is")
_MODAL = word_class("asking", "modal")
_OPENERS = _WH | _DID | _WAS | _HAVE | _IS | _MODAL | frozenset(("had", "hadn't", "any"))
_DETERMINERS = word_class("asking", "determiner")
_NO_SUBJECTS = _DETERMINERS | frozenset(("be", "been", "being", "get", "gets", "getting", "not"))
_JOINERS = word_class("asking", "joiner")
_DOCUMENTS = word_class("asking", "document")
_ACT_PAIRS = word_class("asking", "act_pair")
_STATE_PAIRS = word_class("asking", "state_pair")
_ATTENDED = word_class("asking", "attended")
_PROCESSES = word_class("asking", "process")
_ADVERBS = word_class("asking", "adverb")
_ING_NOUNS = word_class("asking", "ing_noun")
_HELD = word_class("verbs", "held")
_TO_COME = word_class("asking", "ahead")
_OBJECTS = frozenset(
    ("me", "us", "it", "you", "him", "them", "the", "a", "an", "my", "our", "your", "their", "his", "her")
)
_JOINED = frozenset(("of", "for", "to", "in", "on", "at", "by", "with", "from", "and", "or"))
_ARTICLES = frozenset(("the", "a", "an", "my", "our", "your", "their", "his", "her"))
_HOW = frozenset(("how", "where", "when", "why"))
_SHORT_PERFECT = frozenset(("changed", "happened", "been", "gone", "become"))
_BEHIND_VERB = 12
_OBJECT_WORDS = 4

# What politeness and doubt put before a question. Matched against the first words only, each step one fixed alternative.
_LEAD = re.compile(
    r"(?:(?:please|kindly|hey|hi|hello|ok|okay|oh|so|and|but|well|also|actually|quick question|just curious|um|now|then|sorry|thanks|just) )"
    r"|(?:(?:could|can|would|will) you (?:please |kindly |quickly |just |maybe |possibly )?"
    r"(?:tell|remind|show|give|list|find|help|look up|summarize|summarise|recap|explain|describe|check|say|repeat|pull up|bring up|walk|remember|recall|let)"
    r"(?: me| us)?(?: know| with| through| out| again| remember| recall)?(?: of| about| if| whether)? )"
    r"|(?:(?:do|can|did) you (?:still |even |happen to |by any chance )?(?:remember|recall|know|have any idea)(?: me telling you| if| whether| about)? )"
    r"|(?:(?:please )?(?:tell|remind|show|give) (?:me|us)(?: again)?(?: of| about| if| whether)? )"
    r"|(?:(?:list|show|find|recap|summarize|summarise|recall|remember|explain|describe|look up|pull up|check)(?: for me)?(?: if| whether)? )"
    r"|(?:i (?:want|need|would like|really want|would love) to (?:know|understand|see|remember|find out)(?: if| whether)? )"
    r"|(?:i'd (?:like|love) to (?:know|understand|see|remember|find out|hear)(?: if| whether)? )"
    r"|(?:i (?:was|am|have been) (?:just )?(?:wondering|curious)(?: about| if| whether)? )"
    r"|(?:i'm (?:just )?(?:wondering|curious|trying to remember|trying to recall|not sure)(?: about| if| whether)? )"
    r"|(?:i (?:just )?(?:wonder|forgot|forget|can't remember|don't remember|can't recall|don't recall|don't know|cannot remember)(?: if| whether)? )"
    r"|(?:(?:let me know|refresh my memory|any idea|any chance you know|what do you know about|help me remember)(?: on| if| whether| about)? )"
)


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


def asked(found: list[Word]) -> Asked:
    """Read the asking clause of a text's words."""
    lead, keys = _without_lead(_clause(found))
    place, tense, kind, verb = _verb(keys)
    kind = _by_object(keys, place, tense, verb) or kind
    told = tuple(
        keys[at]
        for at in range(max(place + 1, 1), len(keys))
        if keys[at - 1] in SUBJECTS
        and is_past(keys[at], same=True)
        and not (keys[at] == "got" and verb.endswith(" got"))
    )
    return Asked(tuple(keys), lead, tense, kind, verb, told)


def _clause(found: list[Word]) -> list[str]:
    """The last clause that opens like a question, to the end; else all of it."""
    start, opens = 0, True
    for place, word in enumerate(found):
        if opens and _opens(found, place):
            start = place
        opens = word.closed
    return [word.key for word in found[start:]]


def _opens(found: list[Word], place: int) -> bool:
    keys = [word.key for word in found[place : place + 16]]
    lead, rest = _without_lead(keys)
    if place and not lead and _LEAD.fullmatch(" ".join(keys) + " "):
        return False  # "…, do you remember?"
    while rest and rest[0] in _JOINERS:
        rest = rest[1:]
    return bool(rest) and (
        rest[0] in _OPENERS
        or (len(rest) > 1 and rest[0] in ("in", "on", "at", "for", "to", "about", "since") and rest[1] in _WH)
    )


def _without_lead(keys: list[str]) -> tuple[str, list[str]]:
    head, taken = " ".join(keys[:24]) + " ", 0
    while match := _LEAD.match(head, taken):
        taken = match.end()
    count = head[:taken].count(" ")
    if count >= len(keys):
        return "", keys
    return head[:taken].strip(), keys[count:]


def _verb(keys: list[str]) -> tuple[int, str, str, str]:
    """Where the first finite verb stands, its tense, the kind of what is asked after, and the words that show it."""
    for place, key in enumerate(keys):
        if key in _DID:
            main, particle = _main(keys, place + 1)
            return place, "past", _kind_of_main(keys, place, main, particle), f"{key} {main}".strip()
        if key in _WAS:
            return (place, *_was(keys, place))
        if key in _HAVE or key in ("had", "hadn't"):
            return (place, *_have(keys, place))
        if key in _IS:
            follower, object_ = [*keys[place + 1 : place + 3], "", ""][:2]
            # "who's messaged me" has, "what's planned" is
            if follower in _SHORT_PERFECT or (key.endswith("'s") and is_participle(follower) and object_ in _OBJECTS):
                return place, "perfect", _kind(follower), f"{key} {follower}"
            if key == "how's" and (shifted := _shifted(keys, place)):
                return place, "perfect", "change", f"{key} {shifted}"
            return place, "present", "state", key
        if key in _MODAL:
            return place, "present", "state", key
        if place and _in_the_present(keys, place):
            return place, "present", "state", key
        if place and is_past(key, same=keys[place - 1] in SUBJECTS) and keys[place - 1] not in _NO_SUBJECTS:
            if keys[0] == "any" and key in _TO_COME:
                return place, "present", "state", key  # "any trips booked": are there any
            kind = "act" if "_".join(keys[place : place + 2]) in _ACT_PAIRS else _kind(key)
            return place, "past", kind, key
    return -1, "", "", ""


def _by_object(keys: list[str], place: int, tense: str, verb: str) -> str:
    """What the verb says by its object, behind it or asked for: "who ran the team", "which port did it use"; or nothing."""
    carried, main = " " in verb, verb.split()[-1] if verb else ""
    lasting = main.endswith("ing") or _HAVE.isdisjoint(keys[:1])  # "have I ever taken the pills" asks for the act
    if tense not in ("past", "perfect") or not lasting or main not in keys[place:]:
        return ""
    behind = [*keys[keys.index(main, place) + 1 :][:_OBJECT_WORDS], ""]
    for noun, after in pairwise(behind):
        kind = kind_with(main, noun)
        if kind and ends_a_noun(after):
            return kind
        if noun in _JOINED:
            break
    fronted = keys[:place] if carried and behind[0] not in _OBJECTS else []
    return next((kind for noun in fronted if (kind := kind_with(main, noun))), "")


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
        keys[0] in _WH and after in _ARTICLES and keys[place - 1] not in _NO_SUBJECTS
    )


def _main(keys: list[str], start: int) -> tuple[str, str]:
    """The verb that "did" carries, and what follows it: the first known one that is no noun here, or a pronoun's own."""
    keys = [*keys[:start], *(key for key in keys[start : start + _BEHIND_VERB] if key not in _ADVERBS), ""]
    for place in range(start + 1, len(keys) - 1):
        known = keys[place - 1] not in _DETERMINERS and (kind_of(keys[place]) or is_act(keys[place]))
        if known or keys[place - 1] in SUBJECTS:
            return keys[place], keys[place + 1]
    return "", ""


def _kind_of_main(keys: list[str], did: int, main: str, particle: str) -> str:
    """What was done or so, by the verb and what stands beside it."""
    kind, pair = _kind(main), f"{main}_{particle}"
    if pair in _ACT_PAIRS:
        return "act"
    document = kind == "say" and _DOCUMENTS & set(keys[did + 1 : did + 5])  # what a clause says, it says all the time
    if keys[did - 1 : did] == ["how"] and main in _PROCESSES and _several(keys[keys.index(main, did) + 1 :]):
        return "habit"
    attended = "go" in keys[did:] and _ATTENDED & set(keys)
    if attended:
        return "habit"
    return "state" if document or pair in _STATE_PAIRS else kind


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
        if key in _HELD or key == "born" or remained:
            return "past", "be", f"{keys[place]} {key}"
        if key.endswith("ing") and after == place + 1 and keys[:place] and keys[place - 1] in _HOW:
            continue  # "how was caching handled": what is asked about, not what was going on
        if is_participle(key) or (key.endswith("ing") and len(key) > 4 and key not in _ING_NOUNS):
            kind = "act" if "_".join(keys[after : after + 2]) in _ACT_PAIRS else _kind(key)
            if key.endswith("ing") and keys[:2] == ["how", "much"]:
                kind = "state"  # "how much was I making": a sum that held
            return "past", ("be" if kind in ("state", "habit") else kind), f"{keys[place]} {key}"
    return "past", "be", keys[place]


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
            if keys[after] == "got":
                return "present", "state", f"{keys[place]} got"  # "what have I got"
            held = keys[place].startswith("had") and word in _HELD  # "where had we planned to go"
            kind = "state" if held or (keys[after] == "been" and not been) else _kind(word)
            if "_".join(keys[after + been : after + been + 2]) in _ACT_PAIRS:
                kind = "act"  # "what have you been working on"
            return ("past" if keys[place].startswith("had") else "perfect"), kind, f"{keys[place]} {word}"
    return ("past" if keys[place].startswith("had") else "present"), "state", keys[place]


def _kind(word: str) -> str:
    return kind_of(word) or "act"
