"""Injected instructions: text that instructs the agent that reads it instead of recording something.

A filter alone does not stop memory poisoning. The real protection is that untrusted memories wait for review and reach
a prompt only as quoted data. This gate keeps obvious cases out of the review queue and flags the rest.
"""

import re
from functools import lru_cache

from engram.gates.proposal import texts
from engram.gates.tables import plain, table_text
from engram.model.lazy import dataclass
from engram.model.memory import Memory
from engram.models.readings import is_word, other_readings, respell
from engram.text.confusables import fold_text, strip_accents
from engram.text.display import HIDDEN, INVISIBLE, quote_text

__all__ = ["InjectedInstruction", "find_injections", "injection_problem"]


@dataclass(frozen=True, slots=True)
class InjectedInstruction:
    """A sign that a text tries to instruct its reader."""

    kind: str
    quote: str


_MARKUP_HINTS = (
    "<|", "[inst", "<<sys", "<system", "</system", "<assistant", "<tool", "<function", "<user>", "</user>", "system:",
    "assistant:", "<antml", "</context", "<instructions", "<important", "<prompt", "</memory", "</data",
)  # fmt: skip
_MARKUP = re.compile(
    r"<\|[a-z_]{2,30}\|>|\[/?inst\]|<</?sys>>"
    r"|</?(?:system|assistant|user|instructions?|prompt|important|context|memory|memories|data|tool_(?:result|use|call)s?|function_(?:calls?|results?)|antml:[a-z_]{1,30}|system-reminder)(?:\s[^<>]{0,200})?>"
    r"|(?:^|\n)\s{0,8}(?:\#{1,4}\s{0,4})?(?:system|assistant)\s{0,4}:",
    re.IGNORECASE,
)
_TAGS = re.compile("[\U000e0000-\U000e007f]")
_TURNING = re.compile("[\u202a\u202b\u202d\u202e]")
_COMMON = re.compile("[\u00ad\u061c\u200b\u200e\u200f\u2060\ufeff]")
"""Characters that web pages and word processors leave in ordinary text, one at a time."""
_MOST_SCATTERED = 2
"""More than this many other invisible characters, each after a visible letter, count as hidden text."""
_LONG_WORD = re.compile(r"(?<![a-z\\])[a-z]{5,}")
_RESPELLED_CHARS = 2_000
"""Maximum characters of a text whose misspelt words are compared with those of commands."""
_HIDDEN_NAMES = {
    "tags": "invisible Unicode tag characters",
    "bidi": "bidirectional control characters that reverse the reading order",
    "invisible": "invisible characters, in a row or after many letters",
}
# Fields shown to an agent. Ids, sources and the caller's own metadata are not shown.
_SHOWN_FIELDS = frozenset((
    "statement", "situation", "rationale", "domain", "trigger_context", "name",
    "tags", "cues", "entities", "aliases", "anchors", "form",
))  # fmt: skip


@lru_cache(maxsize=1)
def _commands() -> tuple[tuple[str, tuple[str, ...], re.Pattern[str]], ...]:
    lines = [line.split("\t") for line in table_text("instructions.txt")]
    patterns = [(kind, tuple(hints.split(",")), re.compile(pattern)) for kind, hints, pattern in lines]
    return (*patterns, *(_override(*line.split("\t")) for line in table_text("overrides.txt")))


def _override(language: str, *columns: str) -> tuple[str, tuple[str, ...], re.Pattern[str]]:
    """A language's command to ignore earlier instructions: words of each column, close together, in the orders the language allows."""
    is_spaced = not language.endswith("~")
    gap = r"(?: \S+){0,3}" if is_spaced else r".{0,8}"
    verb, which, noun = (_any_of(column, is_spaced=is_spaced) for column in columns)
    orders = (
        (verb, which, noun), (verb, noun, which), (which, noun, verb), (noun, which, verb), (which, verb, noun),
    )  # fmt: skip
    return "override", tuple(_spellings(columns[0])), re.compile("|".join(gap.join(order) for order in orders))


def _any_of(column: str, *, is_spaced: bool) -> str:
    """A pattern that matches the words of a column in a text prepared by `plain`."""
    before, after = (" ", "(?= )") if is_spaced else ("", "")
    words = [
        before + re.escape(spelled) + (r"\S{0,20}" if word.endswith("*") else after)
        for word in column.split(",")
        for spelled in _spellings(word)
    ]
    return f"(?:{'|'.join(words)})"


def _spellings(column: str) -> dict[str, None]:
    """The words of a column as `plain` prepares them, with and without their accents."""
    stems = [plain(word.rstrip("*")).strip() for word in column.split(",")]
    return dict.fromkeys([*stems, *map(strip_accents, stems)])


def find_injections(text: str) -> list[InjectedInstruction]:
    """Every sign of an injected instruction in a text, commands first. Commands count in every reading of it."""
    seen = fold_text(text)
    commands = _find_phrases(seen) or _find_rephrased(seen)
    return [*commands, *_find_markup(seen), *_find_hidden_text(text)]


def injection_problem(memory: Memory) -> str:
    """Where a memory tries to instruct the agent that reads it; "" if it does not."""
    for field, text in texts(memory):
        if field in _SHOWN_FIELDS and (found := find_injections(text)):
            first = found[0]
            return f"{field} looks like an instruction to the agent that reads it ({first.kind}: {first.quote})"
    return ""


def _find_phrases(text: str) -> list[InjectedInstruction]:
    words = plain(text)
    found = []
    for kind, hints, pattern in _commands():
        if any(hint in words for hint in hints) and (match := pattern.search(words)):
            found.append(InjectedInstruction(kind, quote_text(match[0].strip()[:60])))
    return found


def _find_rephrased(text: str) -> list[InjectedInstruction]:
    """The commands in other readings of a text, and those hidden only by misspellings."""
    readings = other_readings(text)
    found = next(filter(None, map(_find_phrases, readings)), [])
    if found or len(text) > _RESPELLED_CHARS:
        return found
    respelled = {respell(reading.lower(), _command_words()) for reading in (text, *readings)}
    return next(filter(None, map(_find_phrases, sorted(respelled))), [])


@lru_cache(maxsize=1)
def _command_words() -> tuple[str, ...]:
    """The longer words that commands consist of; some are written with optional endings."""
    found = {word for _, _, pattern in _commands() for word in _LONG_WORD.findall(pattern.pattern)}
    return tuple(sorted(word for word in found if is_word(word)))


def _find_markup(text: str) -> list[InjectedInstruction]:
    lowered = text.lower()
    if not any(hint in lowered for hint in _MARKUP_HINTS):
        return []
    match = _MARKUP.search(text)
    return [InjectedInstruction("fake markup", quote_text(match[0].strip()[:40]))] if match else []


def _find_hidden_text(text: str) -> list[InjectedInstruction]:
    kind = "" if text.isascii() else _hidden_kind(text)
    return [InjectedInstruction("hidden text", _HIDDEN_NAMES[kind])] if kind else []


def _hidden_kind(text: str) -> str:
    end = scattered = 0
    for match in HIDDEN.finditer(text):
        # Control characters are displayed escaped, so they hide nothing.
        if match["flag"] or not INVISIBLE.match(match[0]):
            continue
        if _TAGS.match(match[0]):
            return "tags"
        if _TURNING.match(match[0]):
            return "bidi"
        scattered += not _COMMON.match(match[0])
        if (end and match.start() == end) or scattered > _MOST_SCATTERED:
            return "invisible"
        # Direction marks come in pairs at the boundary between two directions.
        end = 0 if match[0] in "\u200e\u200f\u061c" else match.end()
    return ""
