"""Reading a question: what it asks for, of which time, and which of its words to search for.

Four intents, each served by another search:

- **current**: what holds. Present tense, and whatever nothing else claims. Searches live memories; a window bounds when they came.
- **historical**: what held before. States in the past ("where did I live", "what was my target"), "used to", "previous", "original",
  the time before a change. Searches superseded memories too.
- **event**: what was said or done, and when. Acts and sayings in the past or perfect ("what did I decide", "have you run",
  "who told me"), "what happened", "the last time". Searches the ledger.
- **lineage**: the way of one fact through time. "How has … changed", "history of", "over time", "every version", "how many times did …
  change". Searches the whole timeline.

So the verb decides, not the window: "what did I decide last week?" is an event, "what was my target last week?" is historical,
"what is new since last week?" is current. A past form that only doubts ("what was the password again?") asks for what holds.
"""

from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise

from engram.recall.asked import Asked, asked
from engram.recall.changing import way_of_a_fact
from engram.recall.signs import OWNERS, Signs
from engram.recall.tenses import Verdict, by_verb, is_short, recorded
from engram.text.time_phrases import TimePhrase, Window, time_phrase
from engram.text.time_unread import unread_times
from engram.text.time_words import Word, words
from engram.text.verbs import SUBJECTS, is_act, is_past, kind_of, revises
from engram.text.word_classes import word_class

__all__ = ["INTENTS", "UNSAID", "Question", "understand"]

INTENTS = ("current", "historical", "event", "lineage")
UNSAID = "nothing speaks of another time"
"""The reason of a question that no word of its own decided."""

_OWNED = OWNERS | {"a", "an", "this", "that", "it", "them"}
_IT = frozenset(("it", "they", "them", "he", "she", "him", "that", "those"))
_THROUGH = frozenset(("over", "through", "throughout", "across"))
_FARED = frozenset(("gone", "done", "been", "looked", "held", "fared", "affected", "performed", "behaved"))
_AGAINST = word_class("asking", "against")
_DIFFERING = word_class("asking", "differing")
_DRAFTS = frozenset(("version", "versions", "draft", "drafts", "revision", "revisions"))
_ANYTHING = frozenset(("any", "anything", "anyone", "anybody", "something", "someone"))
_BE = frozenset(("is", "are", "was", "were", "be", "been", "being", "get", "got", "what's", "am", "i'm", "it's"))


@dataclass(frozen=True, slots=True)
class Question:
    """What was understood of a question."""

    text: str
    intent: str
    """One of `INTENTS`."""
    window: Window | None
    phrase: str
    """The words that say when, as they stand; empty where none do."""
    anchor: str
    """The event the time hangs on ("I moved" in "before I moved"), and how it lies to it: before, after, during."""
    relation: str
    subject: str
    """The question without its time phrase: what to search for."""
    reason: str
    """Which words decided the intent."""
    at: datetime
    """When it was asked."""
    unread: tuple[str, ...] = ()
    """What it names as a time and no window stands for: "Feb 30"."""


def understand(text: str, at: datetime) -> Question:
    """Read a question asked at `at` (aware). Any text has a reading; what says nothing is current, of no time."""
    phrase = time_phrase(text, at)
    found = words(text)
    kept = found if phrase is None else _outside(found, phrase)
    intent, reason = _intent(asked(kept), [word.key for word in kept], phrase, at)
    if phrase is None:
        return Question(text, intent, None, "", "", "", text.strip(), reason, at, unread_times(text, None))
    unread = unread_times(text, (phrase.start, phrase.end))
    subject = _without(text, phrase)
    return Question(
        text, intent, phrase.window, phrase.text, phrase.anchor, phrase.relation, subject, reason, at, unread
    )


def _outside(found: list[Word], phrase: TimePhrase) -> list[Word]:
    """The words that are not of the time phrase; a clause that ended with the phrase ends before it."""
    kept: list[Word] = []
    for word in found:
        if word.end <= phrase.start or word.start >= phrase.end:
            kept.append(word)
        elif word.closed and kept:
            kept[-1] = replace(kept[-1], closed=True)
    return kept


def _without(text: str, phrase: TimePhrase) -> str:
    rest = f"{text[: phrase.start].rstrip()} {text[phrase.end :].lstrip()}".strip(" ,;")
    for mark in "?,.!":
        rest = rest.replace(f" {mark}", mark)
    return rest if any(letter.isalnum() for letter in rest) else text.strip()


def _intent(ask: Asked, keys: list[str], phrase: TimePhrase | None, at: datetime) -> tuple[str, str]:
    signs = Signs(keys)
    return (
        _lineage(ask, signs)
        or _compared(ask, signs, phrase)
        or _fared(ask, phrase)
        or _revised(ask, phrase)
        or _used_to(keys)
        or _of_the_topic(ask, keys)
        or _event_sign(ask, signs)
        or _historical_sign(ask, signs)
        or _left_behind(ask, phrase, at)
        or by_verb(ask, signs, phrase)
        or _verbless(ask, signs, phrase, at)
        or ("current", UNSAID)
    )


def _lineage(ask: Asked, signs: Signs) -> Verdict:
    way = way_of_a_fact(ask, signs)
    return ("lineage", way) if way else None


def _compared(ask: Asked, signs: Signs, phrase: TimePhrase | None) -> Verdict:
    """A time set against the present one asks for both: "how does my weight compare to January"."""
    if phrase is not None and words(phrase.text)[0].key in _AGAINST:
        return "lineage", phrase.text
    if beside := _against_the_old(ask):
        return "lineage", beside
    times = phrase is not None or "now" in ask.keys
    if times and _differs(ask.keys):
        return "lineage", "different"
    return ("lineage", "compare") if ask.keys[:1] == ("compare",) and (times or signs.get("historical")) else None


def _against_the_old(ask: Asked) -> str:
    """What is, held against what was: "is the new lease different from the old one", "is the rent higher than before"; or nothing."""
    if ask.tense not in ("present", "") or "still" in ask.keys:
        return ""
    compared = "than" if "than" in ask.keys else next((key for key in ask.keys if key in _DIFFERING), "")
    if not compared:
        return ""
    beside = ask.keys[ask.keys.index("than") + 1 :] if compared == "than" else ask.keys
    versions = compared != "than" and not _DRAFTS.isdisjoint(beside)
    return compared if versions or Signs(list(beside)).get("historical") or beside[-1:] == ("before",) else ""


def _differs(keys: tuple[str, ...]) -> bool:
    """What is no longer as it was: "what's different about the budget since May"; but "which different ports" are several."""
    if "different" not in keys[1:]:
        return False
    after = [*keys[keys.index("different") + 1 :], ""][0]
    return after in ("about", "in", "with", "now", "") and keys[0] not in ("which", "who", "where", "when")


def _fared(ask: Asked, phrase: TimePhrase | None) -> Verdict:
    """How something went all through a time: "how has my weight gone over the last three months"."""
    if phrase is None or ask.keys[:1] != ("how",) or ask.tense != "perfect" or is_short(phrase):
        return None
    through = words(phrase.text)[0].key in _THROUGH and SUBJECTS.isdisjoint(ask.keys)
    return ("lineage", ask.verb) if through and ask.verb.split()[-1] in _FARED else None


def _of_the_topic(ask: Asked, keys: list[str]) -> Verdict:
    """A past question about what was named before it: "the last thing I asked you to book, what was it"."""
    topic = keys[: len(keys) - len(ask.keys) - len(ask.lead.split())]
    if not topic or ask.tense != "past" or _IT.isdisjoint(ask.keys) or topic[0] not in _OWNED:
        return None
    if old := Signs(topic).get("historical"):
        return "historical", old
    told = [
        key
        for before, key in pairwise(topic)
        if before in SUBJECTS and is_past(key) and kind_of(key) not in ("state", "habit")
    ]
    return ("event", told[0]) if told and ask.kind == "be" else None


def _revised(ask: Asked, phrase: TimePhrase | None) -> Verdict:
    """Whatever the verb, "before I changed it" asks for what held until then; so does "before the rule changed", save after what was said."""
    if phrase is None or phrase.relation != "before":
        return None
    told = [word.key for word in words(phrase.anchor)]
    own = {"it", "them", "that", "this", "they"} & set(told)
    if own and any(revises(key, loosely=True) for key in told):
        return "historical", phrase.text
    by_itself = kind_of(told[-1]) == "change" and is_past(told[-1]) and SUBJECTS.isdisjoint(told)
    said = ask.kind == "say" or not {"do", "done", "doing"}.isdisjoint(ask.verb.split())
    return ("historical", phrase.text) if by_itself and not said else None


def _used_to(keys: list[str]) -> Verdict:
    for place in range(1, len(keys) - 1):
        if keys[place + 1] != "to":
            continue
        held = keys[place - 1] in SUBJECTS or not _BE & set(keys[max(0, place - 8) : place])
        if keys[place] == "used" and held:
            return "historical", "used to"
        if keys[place] == "use" and {"did", "didn't"} & set(keys[:place]):
            return ("event" if _means(keys, place) else "historical"), "use to"
    return None


def _means(keys: list[str], use: int) -> bool:
    """Whether what was used is asked for: "which command did you use to fix the build", but not "which bus did you use to take"."""
    named = keys[0] in ("which", "what") and keys[1] not in ("did", "didn't")
    return named and keys[use + 3 : use + 4] != [] and keys[use + 3] in _OWNED


def _event_sign(ask: Asked, signs: Signs) -> Verdict:
    sign = signs.get("event")
    if sign == "how long did" and ask.kind in ("state", "habit"):
        return None  # "how long did I live in Berlin"
    if conversation := signs.get("conversation"):
        return "event", conversation
    return (
        ("event", sign)
        if (sign and ask.tense != "present") or sign in ("last time", "first time", "most recently")
        else None
    )


def _historical_sign(ask: Asked, signs: Signs) -> Verdict:
    done = ask.tense in ("past", "perfect") and ask.kind in ("act", "say")
    if adverb := signs.get("adverb"):
        return "historical", adverb
    sign = Signs(list(ask.keys)).get("historical")
    goes_on = "still" in ask.keys and ask.tense in ("present", "")  # "which of them still use the old password"
    if not sign or done or goes_on:
        return None
    return "historical", sign


def _left_behind(ask: Asked, phrase: TimePhrase | None, at: datetime) -> Verdict:
    """What the ledger holds of a time that is over, asked for in the present: "what are the results of yesterday's run"."""
    record = recorded(ask) if ask.tense == "present" and _is_over(phrase, at) else ""
    return ("event", record) if record else None


def _is_over(phrase: TimePhrase | None, at: datetime) -> bool:
    until = phrase.window.until if phrase is not None and phrase.window is not None else None
    return until is not None and until.timestamp() <= at.timestamp()


def _verbless(ask: Asked, signs: Signs, phrase: TimePhrase | None, at: datetime) -> Verdict:
    if ask.tense or phrase is None:
        return ("event", recap) if not ask.tense and (recap := signs.get("recap")) and signs.get("record") else None
    if phrase.anchor:
        return "historical", phrase.text
    over = _is_over(phrase, at)
    if over and ask.keys[:1] and ask.keys[0] in _ANYTHING and any(map(is_act, ask.keys)):
        return "event", ask.keys[0]  # "anything interesting happen last week"
    told = next((word for word in ("summarize", "summarise", "recap") if word in ask.lead), "") or signs.get("recap")
    if told or signs.get("record") or (signs.get("whole") and over):
        return "event", told or signs.get("record") or signs.get("whole")
    if over and {"my", "our"} & set(ask.keys):
        return "historical", phrase.text
    if over and not ask.lead:
        return ("event" if signs.get("had") or is_short(phrase) else "historical"), phrase.text
    return None
