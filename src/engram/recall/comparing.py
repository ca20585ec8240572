"""Whether a question holds what is against what was: "how does my weight compare to January", "what was it then and what is it now"."""

from datetime import datetime

from engram.recall.asked import Asked
from engram.recall.signs import Signs
from engram.text.time_phrases import TimePhrase
from engram.text.time_words import words
from engram.text.verbs import is_past
from engram.text.word_classes import word_class

__all__ = ["against_what_was", "is_over"]

_AGAINST = word_class("asking", "against")
_DIFFERING = word_class("asking", "differing")
_DRAFTS = word_class("asking", "draft")
_BESIDE = frozenset(("and", "versus", "vs", "compared", "than"))
_PRESENTLY = frozenset(("now", "currently", "today", "nowadays"))
_HELD_THEN = frozenset(("was", "were", "used", "then", "before", "did", "had"))
_WH = word_class("asking", "wh")


def against_what_was(ask: Asked, signs: Signs, phrase: TimePhrase | None, at: datetime) -> str:
    """The words that compare, or nothing."""
    if phrase is not None and words(phrase.text)[0].key in _AGAINST:
        return phrase.text
    return _then_and_now(signs) or _against_the_old(ask) or _across_time(ask, signs, phrase, at)


def is_over(phrase: TimePhrase | None, at: datetime) -> bool:
    """Whether a time is given that had ended when the question was asked."""
    until = phrase.window.until if phrase is not None and phrase.window is not None else None
    return until is not None and until.timestamp() <= at.timestamp()


def _then_and_now(signs: Signs) -> str:
    """What was beside what is: "what did it cost at first and what does it cost now", "what was it then, what is it now"."""
    keys = signs.keys
    now = max((place for place, key in enumerate(keys) if key in _PRESENTLY), default=0)
    joint = max((place for place in range(1, now) if keys[place] in _BESIDE or keys[place] in _WH), default=0)
    if not joint or not _HELD_THEN.isdisjoint(keys[joint:]):
        return ""
    held = not _HELD_THEN.isdisjoint(keys[:joint]) or Signs(keys[:joint]).get("historical")
    return "then and now" if held else ""


def _against_the_old(ask: Asked) -> str:
    """What is, held against what was: "is the new lease different from the old one", "is the rent higher than before"; or nothing."""
    if ask.tense not in ("present", "") or "still" in ask.keys:
        return ""
    compared = "than" if "than" in ask.keys else next((key for key in ask.keys if key in _DIFFERING), "")
    if not compared:
        return ""
    behind = ask.keys[ask.keys.index(compared) + 1 :]
    beside = behind if compared == "than" else ask.keys
    versions = compared != "than" and not _DRAFTS.isdisjoint(beside)
    told = behind[:1] in (("from",), ("than",), ("to",), ("with",)) and any(
        map(is_past, behind)
    )  # "from what we started with"
    told = told or (compared == "than" and behind[1:3] == ("used", "to"))  # "higher than it used to be"
    old = versions or told or Signs(list(beside)).get("historical") or beside[-1:] == ("before",)
    return compared if old else ""


def _across_time(ask: Asked, signs: Signs, phrase: TimePhrase | None, at: datetime) -> str:
    """Two times side by side, one of which the time phrase names."""
    times = phrase is not None or "now" in ask.keys
    if times and _differs(ask.keys):
        return "different"
    if is_over(phrase, at) and ask.tense == "present" and "still" not in ask.keys and {"than", "same"} & set(ask.keys):
        return "than" if "than" in ask.keys else "same"  # "is my rent the same as in 2023"
    if phrase is not None and ask.keys[:1] == ("how",) and {"compare", "compares"} & set(ask.keys):
        return "compare"
    return "compare" if ask.keys[:1] == ("compare",) and (times or signs.get("historical")) else ""


def _differs(keys: tuple[str, ...]) -> bool:
    """What is no longer as it was: "what's different about the budget since May"; but "which different ports" are several."""
    if "different" not in keys[1:]:
        return False
    after = [*keys[keys.index("different") + 1 :], ""][0]
    return after in ("about", "in", "with", "now", "") and keys[0] not in ("which", "who", "where", "when")
