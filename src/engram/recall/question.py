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

from engram.recall.asked import Asked, asked
from engram.recall.signs import OWNERS, Signs
from engram.text.time_phrases import TimePhrase, Window, time_phrase
from engram.text.time_words import Word, words
from engram.text.verbs import is_past, kind_of
from engram.text.word_classes import word_class

__all__ = ["INTENTS", "UNSAID", "Question", "understand"]

INTENTS = ("current", "historical", "event", "lineage")
UNSAID = "nothing speaks of another time"
"""The reason of a question that no word of its own decided."""

_Verdict = tuple[str, str] | None
_HABIT_SECONDS = 8 * 86400.0
_PLACES = frozenset(("at", "in", "on", "there", "with", "i", "we", "you", "he", "she", "they"))
_REVISING = word_class("asking", "revising")
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


def understand(text: str, at: datetime) -> Question:
    """Read a question asked at `at` (aware). Any text has a reading; what says nothing is current, of no time."""
    phrase = time_phrase(text, at)
    found = words(text)
    kept = found if phrase is None else _outside(found, phrase)
    intent, reason = _intent(asked(kept), [word.key for word in kept], phrase, at)
    if phrase is None:
        return Question(text, intent, None, "", "", "", text.strip(), reason)
    subject = _without(text, phrase)
    return Question(text, intent, phrase.window, phrase.text, phrase.anchor, phrase.relation, subject, reason)


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
        or _revised(phrase)
        or _used_to(keys)
        or _event_sign(ask, signs)
        or _historical_sign(ask, signs)
        or _by_verb(ask, signs, phrase)
        or _verbless(ask, signs, phrase, at)
        or ("current", UNSAID)
    )


def _lineage(ask: Asked, signs: Signs) -> _Verdict:
    keys = ask.keys
    if sign := signs.get("lineage"):
        return "lineage", sign
    if (
        "history" in keys[1:]
        and not signs.get("not_history")
        and keys[keys.index("history") - 1] not in ("a", "in", "of", "about")
    ):
        return "lineage", "history"
    changed = next(
        (place for place, key in enumerate(keys) if kind_of(key) == "change" and key not in ("changes",)), -1
    )
    if (
        changed > 0
        and "when" not in keys[:2]
        and "why" not in keys[:1]
        and "who" not in keys[:1]
        and _of_itself(ask, changed)
    ):
        return "lineage", keys[changed]
    if (
        "changes" in keys
        and ask.kind != "act"
        and keys[keys.index("changes") + 1 : keys.index("changes") + 2] in (("to",), ("in",))
    ):
        return "lineage", "changes"
    if (whole := signs.get("whole")) and (
        signs.get("historical")
        or (ask.tense in ("perfect", "past") and ask.kind in ("state", "habit"))
        or _ever_had(keys)
    ):
        return "lineage", whole
    return None


def _of_itself(ask: Asked, changed: int) -> bool:
    """Whether the fact changed ("how has my target changed"), not somebody something ("what did you change in the file")."""
    keys = ask.keys
    if ask.tense not in ("past", "perfect") or keys[changed] not in ask.verb:
        return ask.tense == "present" and keys[0] == "how" and "does" not in keys
    before = keys[changed - 1]
    after = keys[changed + 1] if changed + 1 < len(keys) else ""
    if before in ("what", "what's", "has", "else", "have") and keys[0] in ("what", "what's"):
        return True
    transitive = after in OWNERS or after in ("it", "this", "that", "them")
    return (
        not transitive
        and (before not in ("you", "i", "we", "he", "she", "they") or ask.tense == "perfect")
        and before not in ("to", "the")
    )


def _ever_had(keys: tuple[str, ...]) -> bool:
    perfect = {"i've", "we've", "have", "has", "you've"} & set(keys)
    return bool(perfect) and any(kind_of(key) in ("state", "habit") and is_past(key) for key in keys)


def _revised(phrase: TimePhrase | None) -> _Verdict:
    """Whatever the verb, "before I changed it" asks for what held until then."""
    if phrase is None or phrase.relation != "before":
        return None
    told = [word.key for word in words(phrase.anchor)]
    if any(any(key.startswith(root) for root in _REVISING) for key in told) and {"it", "them", "that", "this"} & set(
        told
    ):
        return "historical", phrase.text
    return None


def _used_to(keys: list[str]) -> _Verdict:
    for place in range(1, len(keys) - 1):
        if keys[place + 1] != "to":
            continue
        if keys[place] == "used" and not _BE & set(keys[max(0, place - 8) : place]):
            return "historical", "used to"
        if keys[place] == "use" and {"did", "didn't"} & set(keys[:place]):
            return "historical", "use to"
    return None


def _event_sign(ask: Asked, signs: Signs) -> _Verdict:
    sign = signs.get("event")
    if conversation := signs.get("conversation"):
        return "event", conversation
    return (
        ("event", sign)
        if (sign and ask.tense != "present") or sign in ("last time", "first time", "most recently")
        else None
    )


def _historical_sign(ask: Asked, signs: Signs) -> _Verdict:
    done = ask.tense in ("past", "perfect") and ask.kind in ("act", "say")
    if adverb := signs.get("adverb"):
        return "historical", adverb
    sign = Signs(list(ask.keys)).get("historical")
    if not sign or done:
        return None
    return "historical", sign


def _by_verb(ask: Asked, signs: Signs, phrase: TimePhrase | None) -> _Verdict:
    if ask.tense == "past":
        return _past(ask, signs, phrase)
    if ask.tense == "perfect" and ask.kind not in ("state", "habit"):
        return "event", ask.verb
    if ask.tense == "perfect" and "before" in ask.keys[-1:]:
        return "historical", "before"
    if ask.tense == "perfect" and ask.keys[0] in ("where", "which", "what") and not ask.verb.endswith("been"):
        return "lineage", ask.verb  # "where have I lived": all of them, one after another
    if ask.tense == "present" and ask.told:
        return _told(ask, phrase)
    return None


def _past(ask: Asked, signs: Signs, phrase: TimePhrase | None) -> _Verdict:
    if ask.kind in ("act", "say", "change"):
        return "event", ask.verb
    if "born" in ask.verb or (ask.kind == "be" and phrase is None and signs.get("again")):
        return None
    if ask.kind == "be":
        return _was(ask, signs, phrase)
    if "have" in ask.verb.split() or "had" in ask.verb.split():
        return ("event" if signs.get("had") or "for" in ask.keys[-3:] else "historical"), ask.verb
    if "work on" in " ".join(ask.keys) and "work" in ask.verb:
        return "event", "work on"
    if ask.kind == "habit" and phrase is not None and _is_short(phrase.window):
        return "event", ask.verb
    if "think" in ask.verb or "mean" in ask.verb:
        return "event", ask.verb
    return "historical", ask.verb


def _is_short(window: Window | None) -> bool:
    """Whether the time is too short for a habit to be what is asked after."""
    if window is None or window.since is None or window.until is None:
        return False
    return window.until.timestamp() - window.since.timestamp() <= _HABIT_SECONDS


def _was(ask: Asked, signs: Signs, phrase: TimePhrase | None) -> _Verdict:
    """What something was: a state, unless something done tells which one, or the ledger holds it."""
    acts = [
        verb
        for verb in ask.told
        if kind_of(verb) not in ("state", "habit") and verb not in ("was", "were", "had", "did")
    ]
    if acts:
        return "event", acts[0]
    if phrase is not None and phrase.relation == "before":
        return "historical", phrase.text
    first = ask.keys[0] if ask.keys else ""
    follower = ask.keys[2] if len(ask.keys) > 2 else ""
    if (
        first == "when"
        or (first in ("where", "who") and follower in _PLACES and " " not in ask.verb)
        or (ask.keys[:2] in (("how", "was"), ("how", "were")))
    ):
        return "event", f"{first} {ask.verb}"
    if first in ("was", "were") and phrase is not None and _is_short(phrase.window):
        return "event", f"{first} {phrase.text}"
    if record := signs.get("record"):
        return "event", f"{ask.verb} {record}"
    return "historical", ask.verb


def _told(ask: Asked, phrase: TimePhrase | None) -> _Verdict:
    """A present question after something said or done: the ledger's, where it is the last one or a time is given."""
    acts = [verb for verb in ask.told if kind_of(verb) not in ("state", "habit") and verb not in ("was", "were", "had")]
    if not acts:
        return None
    if {"last", "latest", "first", "recent"} & set(ask.keys):
        return "event", acts[0]
    return ("event", acts[0]) if phrase is not None and phrase.window is not None else None


def _verbless(ask: Asked, signs: Signs, phrase: TimePhrase | None, at: datetime) -> _Verdict:
    if ask.tense or phrase is None:
        return ("event", recap) if not ask.tense and (recap := signs.get("recap")) and signs.get("record") else None
    if phrase.anchor:
        return "historical", phrase.text
    over = (
        phrase.window is not None
        and phrase.window.until is not None
        and phrase.window.until.timestamp() <= at.timestamp()
    )
    told = next((word for word in ("summarize", "summarise", "recap") if word in ask.lead), "") or signs.get("recap")
    if told or signs.get("record") or (signs.get("whole") and over):
        return "event", told or signs.get("record") or signs.get("whole")
    if over and {"my", "our"} & set(ask.keys):
        return "historical", phrase.text
    return None
