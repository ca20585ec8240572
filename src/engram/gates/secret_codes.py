"""PINs, door codes, combinations: digits behind a word for them, in a sentence that speaks of something locked."""

import re
from collections.abc import Iterator
from functools import lru_cache

from engram.gates.secret_spans import Secret
from engram.gates.secret_words import alternatives, words, words_in

__all__ = ["codes"]

_FAR = 80
"""How far behind the word its digits may stand, and how far from it what they open."""
_MOST_BETWEEN = 9
_QUOTES = "\"'`“”„«»‘’「」"
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
_STARTED = re.compile(rf"s?(?: (?:the|le|den|el|il|code))?[\s{_QUOTES}*_]{{0,4}}\Z")
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
_WORDS = re.compile(r"[^\W\d_]+")
_SAID_OF = re.compile(
    r" (?:is|was|as the|as my|ist|als|est|comme|es|como|è|é|to|это|är|er) (?:[^\s.!?]{1,20} ){0,3}?(?=pin|puk|otp|pass|code|verif|secur|confirm|login|sms|door|gate|alarm|пин)",
    re.IGNORECASE,
)
_CVV = re.compile(
    r"(?i)(?<![a-z])cv[vc]2?(?:\s?(?:code|number))?(?:\s{0,3}[:=]\s{0,3}|\s{1,3}(?:is|ist|est|es|é)\s{1,3}|\s{1,3})(?P<secret>\d{3,4})(?!\d)"
)


@lru_cache(maxsize=1)
def _locked() -> tuple[frozenset[str], tuple[str, ...], tuple[str, ...]]:
    """What a code opens: whole words, beginnings of words, and what is looked for anywhere."""
    listed = words("locked")
    begun = tuple(word.removesuffix(r"\w*") for word in listed if word.endswith(r"\w*"))
    spaced = tuple(word for word in listed if " " in word or "-" in word)
    return frozenset(listed), begun, (*spaced, *words("locked unspaced"))


def codes(text: str, lowered: str) -> Iterator[Secret]:
    """PINs, door codes, one-time codes and their like."""
    if "cv" in lowered:
        yield from (Secret("pin", given.start("secret"), given.end("secret")) for given in _CVV.finditer(text))
    named: list[tuple[re.Match[str], str]] | None = None
    place = 0
    # Digits are rarer than words: each is looked at from the words that stand before it.
    for given in _DIGITS.finditer(text):
        if named is None:
            named = words_in(lowered, "secretcodes.txt")
        before = []
        while place < len(named) and named[place][0].start() < given.start():
            before.append(named[place])
            place += 1
        said = _SAID_OF.match(text, given.end())
        behind = [
            pair for pair in named[place : place + 1] if said and pair[0].start() == said.end() and pair[1] == "strong"
        ]
        near = [pair for pair in before if pair[0].end() >= given.start() - _FAR and _belongs(text, *pair, given)]
        if any(_is_code(lowered, *pair) for pair in (*near, *behind)):
            yield Secret("pin", given.start("secret"), given.end("secret"))


def _is_code(lowered: str, word: re.Match[str], kind: str) -> bool:
    """Whether the word is no other kind of code, and what it opens is named where it does not say so itself."""
    return not _is_other(lowered, word) and (kind == "strong" or _opens(lowered, word))


def _is_other(lowered: str, word: re.Match[str]) -> bool:
    """Whether it is an error code, a postcode, a code for a discount."""
    before = lowered[max(0, word.start() - 14) : word.start()]
    return bool(_OTHER.search(before) or _OTHER_BEHIND.match(lowered, word.end()))


def _opens(lowered: str, word: re.Match[str]) -> bool:
    """Whether the sentence speaks of something that a code opens."""
    before = _SENTENCE_END.split(lowered[max(0, word.start() - _FAR) : word.start()])[-1]
    sentence = (
        before + lowered[word.start() : word.end()] + _SENTENCE_END.split(lowered[word.end() : word.end() + _FAR])[0]
    )
    whole, begun, anywhere = _locked()
    return any(one in whole or one.startswith(begun) for one in _WORDS.findall(sentence)) or any(
        one in sentence for one in anywhere
    )


def _belongs(text: str, word: re.Match[str], kind: str, given: re.Match[str]) -> bool:
    """Whether nothing between the word and the digits, or behind them, says that they are something else."""
    between, value = text[word.end() : given.start()], given["secret"]
    said = between.casefold().split()
    if len(said) > _MOST_BETWEEN or _SENTENCE_END.search(between) or not _BETWEEN.isdisjoint(said):
        return False
    if (said and said[-1] in _BEFORE) or _BEHIND.match(text, given.end()):
        return False
    if said and said[-1].isalpha() and (shouted := between.split()[-1]).isupper() and len(shouted) < 5:
        # A standard has its number: EN 15232.
        return False
    if kind == "verb":
        return _STARTED.match(between) is not None and not _YEAR.fullmatch(value)
    if _INTRODUCED.search(between):
        return True
    if _YEAR.fullmatch(value) or value[0].isalpha() or not _ENDS.match(text, given.end()):
        return False
    return kind == "strong" or len(said) <= 6 or _STARTED.match(between) is not None
