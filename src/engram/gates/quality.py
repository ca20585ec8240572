"""The five quality gates of spec 1 (reference/1 §1.4), for autonomous capture.

Behavioral, Documentation, Specificity and Scope are rules over word tables (`data/quality.txt`); Redundancy is
`duplicates.covering`. The tables are English: text in another language passes unchecked and, like all autonomous
capture, waits for review. Spec 1 expects 30–50 % of raw patterns to pass.
"""

import re
from collections.abc import Callable

from engram.gates.tables import phrases, plain
from engram.model.lazy import dataclass
from engram.text.polarity import read
from engram.text.quote import quoted
from engram.text.word_tables import hedge_in

__all__ = ["QUALITY_GATES", "Pattern", "behavioral", "documentation", "pattern", "scope", "specificity"]

_MIN_ENGLISH_WORDS = 1
_MOST_FOREIGN_LETTERS = 0.3
# One content word can be a topic, but not a rule.
_MIN_SPECIFIC_WORDS = 2

_COMMAND = re.compile(
    r"`[^`]+`|(?<!\w)--?[a-z]|\b(?:make|npm|pnpm|yarn|pip|uv|cargo|go|git|docker|kubectl|pytest|cd|ls|curl) \w"
)
_REFERENCE = re.compile(
    r"(?<!\w)#\d+|\b[A-Z]{2,}-\d+\b|\bline \d+|\bcommit [0-9a-f]{7,}|\b[0-9a-f]{12,40}\b|\d{1,2}:\d{2}(?::\d{2})?\b.{0,200}?\b(?:today|log)"
)
_PLACE = re.compile(
    r"(?<![\w.-])[\w.-]++/[\w./-]+|\b\w+\.(?:py|ts|js|go|rs|java|md|toml|ya?ml|json|sql|sh|c|h|cpp|rb)\b|\w\(\)"
)
# The first word of each clause: "…, so discard the first runs".
_OPENING = re.compile(r"(?:^|(?<=[,;:.!] ))\W{0,20}(?:(?:so|then|and|please|but) )?([a-z']+)")
_CONDITIONS = frozenset(("if", "when", "whenever", "before", "after", "unless", "once"))
_NARRATES_PAST = re.compile(
    r"^(?:\w+ly )?(?:i|we|the assistant|claude|the agent) (?:(?!need)\w+ed|ran|did|made|wrote|got|had|saw|went|took|began|found)\b"
)


@dataclass(frozen=True, slots=True)
class Pattern:
    """A captured text, prepared for the word tables."""

    text: str
    prepared: str
    words: frozenset[str]
    english: bool

    def has(self, section: str) -> str:
        """The first phrase from a section of the table that occurs in the text, "" for none."""
        return phrases("quality.txt", section).find(self.prepared, self.words)


def pattern(text: str) -> Pattern:
    """Prepare a text for the quality gates."""
    prepared = plain(text)
    words = frozenset(prepared.split())
    return Pattern(text, prepared, words, _is_english(text, words))


def _is_english(text: str, words: frozenset[str]) -> bool:
    if not text.isascii():
        letters = [char for char in text if char.isalpha()]
        if sum(not char.isascii() for char in letters) > _MOST_FOREIGN_LETTERS * len(letters):
            return False
    return len(words) < 4 or len(words & phrases("quality.txt", "english").words) >= _MIN_ENGLISH_WORDS


def behavioral(found: Pattern) -> str:
    """Would an agent that knows this act differently? Returns why not, "" if it would."""
    narrated = _NARRATES_PAST.match(found.prepared.strip())
    narration = found.has("narration") or (narrated[0] if narrated else "")
    if narration and not (found.has("consequence") and found.has("directive")):
        return f"reports what was done ({quoted(narration)}), not what to do"
    if hedged := hedge_in(found.prepared, "guess", "tentative"):
        return f"a guess ({quoted(hedged)}), too uncertain to act on"
    if found.has("directive") or found.has("consequence") or found.has("person") or _commands(found):
        return ""
    return "describes a state; an agent would do nothing differently"


def documentation(found: Pattern) -> str:
    """Is it judgement (why, when) rather than reference (where, what, how)? Returns why not, "" if it is."""
    if found.has("judgement"):
        return ""
    place = found.has("whereabouts")
    if place and not found.has("person"):
        return f"says where or what something is ({quoted(place)}); that belongs in the documentation"
    first = found.prepared.split(maxsplit=1)[0] if found.prepared.strip() else ""
    how = first in phrases("quality.txt", "howto").words and (first != "use" or " to " in found.prepared)
    if how and _COMMAND.search(found.text):
        return "gives a command; that belongs in the documentation"
    if _PLACE.search(found.text) and not found.has("directive"):
        return "refers to a location in the code; that belongs in the documentation"
    return ""


def specificity(found: Pattern) -> str:
    """Is it specific enough to act on, and about more than one occasion? Returns why not, "" if it is."""
    if occasion := found.has("oneoff"):
        return f"about a single occasion ({quoted(occasion)})"
    if reference := _REFERENCE.search(found.text):
        return f"about a single occasion ({quoted(reference[0][:40])})"
    vague = phrases("quality.txt", "vague").words
    surfaces = [word for word in read(found.text).raw if len(word) > 1 and word not in vague and word[0].isalnum()]
    english = phrases("quality.txt", "english").words
    if len([word for word in dict.fromkeys(surfaces) if word not in english]) < _MIN_SPECIFIC_WORDS:
        return "too vague to act on"
    return ""


def scope(found: Pattern) -> str:
    """Will it still matter in three months? Returns why not, "" if it will."""
    if passing := found.has("ephemeral"):
        return f"will not matter in three months ({quoted(passing)})"
    return ""


def _commands(found: Pattern) -> bool:
    """Whether a clause starts with an imperative, or the text with a condition."""
    openings = _OPENING.findall(found.text.casefold())
    return bool(openings) and (openings[0] in _CONDITIONS or not _imperatives().isdisjoint(openings))


def _imperatives() -> frozenset[str]:
    return phrases("imperatives.txt", "imperative").words


QUALITY_GATES: tuple[tuple[str, Callable[[Pattern], str]], ...] = (
    ("behavioral", behavioral),
    ("documentation", documentation),
    ("specificity", specificity),
    ("scope", scope),
)
