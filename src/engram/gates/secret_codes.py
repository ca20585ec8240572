"""PINs, door codes, combinations: digits behind a word for them, in a sentence that speaks of something locked."""

import re
from bisect import bisect_left
from collections.abc import Iterator
from functools import lru_cache

from engram.gates.secret_spans import Secret
from engram.gates.secret_words import alternatives, columns, words

__all__ = ["codes"]

_FAR = 80
"""How far behind the word its digits may stand, and how far from it what they open."""
_MOST_BETWEEN = 9
_QUOTES = "\"'`“”„«»‘’「」"
_ROWS = columns("secretcodes.txt")
# Letters of one case with digits, as on a keypad; groups of the same size.
_DIGITS = re.compile(
    r"(?P<secret>[0-9A-Z*#](?<![A-Za-z0-9.,:/#+@$€£-].)(?<!\d .)"
    r"(?:(?<=\d)(?:\d{3,9}[A-Z]?|\d{0,4}[A-ZА-Я]\d{1,5}|\d(?:[ -]\d\d){1,3}|\d\d[ -]\d{3,4}|\d{3}[ -]\d{4}|(?:[ -]\d){3,7}|-\d-\d)"
    r"|(?<=[A-Z])\d{3,7}|(?<=[*#])\d{3,9})[#*]?)(?![A-Za-z0-9]|[-/ ]\d|[.,:]\d|\s?[%€$£°])"
)
_INTRODUCED = re.compile(
    rf"(?i)(?:[:=：→＝]|->|[—–-]|\b(?:{'|'.join(re.escape(word) for word in words('copulas') if word.isalpha())})\b:?|['’]s|\bc['’]est"
    rf"|\b(?:to|auf|with|mit|avec|con|com|met|en|puse|mis)|\b(?:composez|tapez) (?:le )?|[是为為はが는은가]|成了?)[\s{_QUOTES}*_]{{0,4}}\Z"
)
_STARTED = re.compile(rf"s?[\s{_QUOTES}*_]{{0,4}}\Z")
_SENTENCE_END = re.compile(r"[.!?](?:\s|\Z)|[\n。！？;|<>{}]")
_ENDS = re.compile(
    rf"[{_QUOTES}*_)]{{0,3}}(?:\Z|[\s]{{0,2}}\n|[,.;!?)，。、；！]|\s(?:at|for|then|and then|before|puis|dann|luego|poi|e poi|dopo|daarna|potem|[(/—–-])|[^\x00-\u02ff])"
)
_YEAR = re.compile(r"(?:19|20)\d\d")
_OTHER = re.compile(rf"(?:{alternatives('other codes')})\W{{0,2}}\Z")
_OTHER_BEHIND = re.compile(rf"s?\W{{1,2}}(?:{alternatives('other codes')})\b")
_BETWEEN = frozenset(words("no code between"))
_BEFORE = frozenset(words("no code before"))
_BEHIND = re.compile(rf"\s?[-–]?(?:{alternatives('no code behind').replace('$', '[$]')})(?![^\W\d_])", re.IGNORECASE)
_LOCKED = rf"(?<![^\W\d_])(?:{alternatives('locked')})(?![^\W\d_])|{alternatives('locked unspaced')}|türcode"
_SAID_OF = re.compile(
    r" (?:is|was|ist|est|es|è|é|to|это|är|er) (?:[^\s.!?]{1,20} ){0,3}?(?=pin|puk|otp|pass|code|door|gate|alarm|пин)",
    re.IGNORECASE,
)
_LONGEST_WORD = 30
_CVV = re.compile(
    r"(?i)(?<![a-z])cv[vc]2?(?:\s?(?:code|number))?(?:\s{0,3}[:=]\s{0,3}|\s{1,3}(?:is|ist|est|es|é)\s{1,3}|\s{1,3})(?P<secret>\d{3,4})(?!\d)"
)


@lru_cache(maxsize=128)
def _finder(rows: tuple[int, ...]) -> re.Pattern[str]:
    # The empty group behind each word tells which it was.
    return re.compile("|".join(f"(?:{_ROWS[row][2]})()" for row in rows))


@lru_cache(maxsize=1)
def _locked() -> re.Pattern[str]:
    return re.compile(_LOCKED)


def codes(text: str, lowered: str) -> Iterator[Secret]:
    """PINs, door codes, one-time codes and their like."""
    if "cv" in lowered:
        yield from (Secret("pin", given.start("secret"), given.end("secret")) for given in _CVV.finditer(text))
    rows: tuple[int, ...] | None = None
    things: list[int] | None = None
    passed = 0
    # Digits are rarer than words: each is looked at from the words that stand before it.
    for given in _DIGITS.finditer(text):
        if rows is None:
            rows = tuple(row for row, (_, stem, _) in enumerate(_ROWS) if stem in lowered)
        for word, strong in _words(text, lowered, rows, given, passed):
            if not strong and things is None:
                things = [thing.start() for thing in _locked().finditer(lowered)]
            if not _is_other(lowered, word) and (strong or _is_locked(text, word, things or [])):
                yield Secret("pin", given.start("secret"), given.end("secret"))
                break
        passed = given.end()


def _words(
    text: str, lowered: str, rows: tuple[int, ...], given: re.Match[str], passed: int
) -> Iterator[tuple[re.Match[str], bool]]:
    """The words for a code that the digits may belong to, and whether they say so by themselves."""
    if not rows:
        return
    for word in _finder(rows).finditer(lowered, max(passed, given.start() - _FAR - _LONGEST_WORD), given.start()):
        strong = _ROWS[rows[(word.lastindex or 1) - 1]][0] == "strong"
        if _belongs(text, word, given, strong=strong):
            yield word, strong
    said = _SAID_OF.match(text, given.end())
    word = _finder(rows).match(lowered, said.end()) if said else None
    if word is not None and _ROWS[rows[(word.lastindex or 1) - 1]][0] == "strong":
        yield word, True


def _is_other(lowered: str, word: re.Match[str]) -> bool:
    """Whether it is an error code, a postcode, a code for a discount."""
    before = lowered[max(0, word.start() - 14) : word.start()]
    return bool(_OTHER.search(before) or _OTHER_BEHIND.match(lowered, word.end()))


def _is_locked(text: str, word: re.Match[str], things: list[int]) -> bool:
    """Whether the sentence speaks of something that a code opens."""
    for thing in things[bisect_left(things, word.start() - _FAR) :]:
        if thing > word.end() + _FAR:
            return False
        between = text[min(thing, word.end()) : max(thing, word.start())]
        if not _SENTENCE_END.search(between):
            return True
    return False


def _belongs(text: str, word: re.Match[str], given: re.Match[str], *, strong: bool) -> bool:
    """Whether nothing between the word and the digits, or behind them, says that they are something else."""
    between, value = text[word.end() : given.start()], given["secret"]
    said = between.casefold().split()
    if len(said) > _MOST_BETWEEN or _SENTENCE_END.search(between) or not _BETWEEN.isdisjoint(said):
        return False
    if (said and said[-1] in _BEFORE) or _BEHIND.match(text, given.end()):
        return False
    if _INTRODUCED.search(between) or (word[0].endswith((" with", " to")) and not said):
        return True
    if _YEAR.fullmatch(value) or value[0].isalpha() or not _ENDS.match(text, given.end()):
        return False
    return strong or len(said) <= 6 or _STARTED.match(between) is not None
