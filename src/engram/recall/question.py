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

Rules read that, and know why; where the wording as a whole clearly speaks for another intent (`wording`), that one stands.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise

from engram.recall.asked import Asked, asked, verbs_of
from engram.recall.changing import how_it_changed
from engram.recall.comparing import against_what_was, is_over
from engram.recall.signs import OWNERS, Signs
from engram.recall.succession import one_after_another
from engram.recall.tenses import Verdict, by_verb, is_short, of_the_old_one, recorded
from engram.recall.wording import INTENTS, features, most_like
from engram.text.time_phrases import TimePhrase, Window, time_phrase
from engram.text.time_unread import unread_times
from engram.text.time_words import Word, words
from engram.text.verbs import SUBJECTS, is_past, kind_of, revises

__all__ = ["INTENTS", "UNSAID", "Question", "read_wording", "understand"]

UNSAID = "nothing speaks of another time"
"""The reason of a question that no word of its own decided."""
_WORDED = {
    "current": "worded like questions about what holds",
    "historical": "worded like questions about what held before",
    "event": "worded like questions about what happened",
    "lineage": "worded like questions about how something changed",
}
"""The reason where the whole wording outweighs the words that the rules know."""

_OWNED = OWNERS | {"a", "an", "this", "that", "it", "them"}
_IT = frozenset(("it", "they", "them", "he", "she", "him", "that", "those"))
_THROUGH = frozenset(("over", "through", "throughout", "across"))
_FARED = frozenset(("gone", "done", "been", "looked", "held", "fared", "affected", "performed", "behaved"))
_ANYTHING = frozenset(("any", "anything", "anyone", "anybody", "something", "someone"))
_NUMBERS = frozenset(("number", "count", "total", "tally"))
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
    phrase, seen, (intent, reason) = _read(text, at)
    likely = most_like(seen, intent)
    if likely != intent:
        intent, reason = likely, _WORDED[likely]
    if phrase is None:
        return Question(text, intent, None, "", "", "", text.strip(), reason, at, unread_times(text, None))
    unread = unread_times(text, (phrase.start, phrase.end))
    subject = _without(text, phrase)
    return Question(
        text, intent, phrase.window, phrase.text, phrase.anchor, phrase.relation, subject, reason, at, unread
    )


def read_wording(text: str, at: datetime) -> Iterator[str]:
    """What a question has for the model that weighs its wording; for whoever makes that model."""
    return _read(text, at)[1]


def _read(text: str, at: datetime) -> tuple[TimePhrase | None, Iterator[str], tuple[str, str]]:
    """The time phrase, what the model looks at, and intent and reason by the rules."""
    phrase = time_phrase(text, at)
    found = words(text)
    kept = found if phrase is None else _outside(found, phrase)
    ask = asked(kept)
    intent, reason = _intent(ask, [word.key for word in kept], phrase, at)
    seen = features(found, phrase, at, ask, "" if reason == UNSAID else intent)
    return phrase, seen, (intent, reason)


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
        _lineage(ask, signs, phrase, at)
        or _fared(ask, phrase)
        or _revised(ask, phrase)
        or _used_to(keys)
        or _of_the_topic(ask)
        or _event_sign(ask, signs)
        or _historical_sign(ask, signs)
        or _left_behind(ask, phrase, at)
        or _to_come(ask, phrase, at)
        or by_verb(ask, signs, phrase)
        or _verbless(ask, signs, phrase, at)
        or ("current", UNSAID)
    )


def _lineage(ask: Asked, signs: Signs, phrase: TimePhrase | None, at: datetime) -> Verdict:
    way = one_after_another(ask, signs) or how_it_changed(ask, signs) or against_what_was(ask, signs, phrase, at)
    return ("lineage", way) if way else None


def _fared(ask: Asked, phrase: TimePhrase | None) -> Verdict:
    """How something went all through a time: "how has my weight gone over the last three months"."""
    if phrase is None or ask.keys[:1] != ("how",) or ask.tense != "perfect" or is_short(phrase):
        return None
    through = words(phrase.text)[0].key in _THROUGH and SUBJECTS.isdisjoint(ask.keys)
    return ("lineage", ask.verb) if through and ask.verb.split()[-1] in _FARED else None


def _of_the_topic(ask: Asked) -> Verdict:
    """A past question about what was named before it: "the last thing I asked you to book, what was it"."""
    topic = ask.topic
    if not topic or ask.tense != "past" or _IT.isdisjoint(ask.keys) or ask.keys[-1] == "before":
        return None
    if old := Signs(list(topic)).get("historical"):
        return "historical", old
    if first := _told_first(topic):
        return first
    if topic[0] not in _OWNED:
        return None
    acts = [
        key
        for before, key in pairwise(topic)
        if before in SUBJECTS and is_past(key) and kind_of(key) not in ("state", "habit")
    ]
    return ("event", acts[0]) if acts and ask.kind == "be" else None


def _told_first(topic: tuple[str, ...]) -> Verdict:
    """By the sentence that came before: "a lead called on Monday; what did she want", "it had another name; what was it"."""
    ask = verbs_of(list(topic))
    if ask.tense != "past" or ask.lead or (ask.keys[0] in SUBJECTS and ask.keys[0] != "it"):
        return None
    return ("event" if ask.kind in ("act", "say") else "historical"), ask.verb


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
    done = ask.tense in ("past", "perfect") and ask.kind in ("act", "say") and not of_the_old_one(ask)
    if adverb := signs.get("adverb"):
        return "historical", adverb
    sign = Signs(list(ask.keys)).get("historical")
    goes_on = "still" in ask.keys and ask.tense in ("present", "")  # "which of them still use the old password"
    if not sign or done or goes_on:
        return None
    return "historical", sign


def _to_come(ask: Asked, phrase: TimePhrase | None, at: datetime) -> Verdict:
    """What there is of a time ahead, whatever form says it: "anything lined up for this weekend"."""
    since = phrase.window.since if phrase is not None and phrase.window is not None else None
    ahead = since is not None and since.timestamp() > at.timestamp()
    return ("current", ask.keys[0]) if ahead and ask.keys[:1] and ask.keys[0] in _ANYTHING else None


def _left_behind(ask: Asked, phrase: TimePhrase | None, at: datetime) -> Verdict:
    """What the ledger holds of a time that is over, asked for in the present: "what are the results of yesterday's run"."""
    record = recorded(ask) if ask.tense == "present" and is_over(phrase, at) else ""
    return ("event", record) if record else None


def _up_to_now(phrase: TimePhrase | None, at: datetime) -> bool:
    """Whether the time began before the question and has no other end than it: "in the last 24 hours", "since Monday"."""
    if phrase is not None and phrase.relation == "after":
        return True
    window = phrase.window if phrase is not None else None
    if window is None or window.since is None or window.since.timestamp() >= at.timestamp():
        return False
    return window.until is None or window.until.timestamp() - at.timestamp() < 1.0


def _verbless(ask: Asked, signs: Signs, phrase: TimePhrase | None, at: datetime) -> Verdict:
    if ask.tense or phrase is None:
        return ("event", recap) if not ask.tense and (recap := signs.get("recap")) and signs.get("record") else None
    if phrase.anchor and not (phrase.relation == "after" and ask.keys[0] in _ANYTHING):
        return "historical", phrase.text
    over = is_over(phrase, at)
    if ask.keys[:1] and ask.keys[0] in _ANYTHING | _NUMBERS and (over or _up_to_now(phrase, at)):
        return "event", ask.keys[0]  # "anything interesting happen last week", "any replies since Monday"
    told = next((word for word in ("summarize", "summarise", "recap") if word in ask.lead), "") or signs.get("recap")
    if told or signs.get("record") or (signs.get("whole") and over):
        return "event", told or signs.get("record") or signs.get("whole")
    if over and {"my", "our"} & set(ask.keys):
        return "historical", phrase.text
    if over and not ask.lead:
        return ("event" if signs.get("had") or is_short(phrase) else "historical"), phrase.text
    return None
