"""Secrets without a name next to them: random values, lists of recovery codes, and seed phrases of wallets."""

import re
import string
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from engram.gates.secrets.assignments import PUBLIC_PREFIXES, NamedWord
from engram.gates.secrets.forms import (
    AS_SPACES,
    LISTS,
    Hints,
    Secret,
    alternatives,
    changes,
    entropy,
    is_masked,
    is_ordinary,
    is_placeholder,
    is_public_address,
    trim_value,
    words,
    words_in,
)
from engram.gates.tables import rows
from engram.model.lazy import lazy_pattern

__all__ = ["high_entropy", "recovery_codes", "seed_phrases"]

_MIN_TOKEN_CHARS = 10
_MAX_TOKEN_CHARS = 512
_LONGEST_PASSWORD = 40
_SHORTEST_KEY = 10
_SHORT_KEY = 11
"""A key up to this length needs two digits."""
_SHORTEST_ONE_CASE = 16
"""Minimum characters of a key without capitals, or without small letters."""
_MIN_ENTROPY = 3.0
_PASSWORD_CHANGES = 0.45
_KEY_CHANGES = 0.3
_ONE_CASE_CHANGES = 0.25
"""Minimum share of positions at which the character class changes; words and names have fewer."""
_MOST_WORDLIKE = 0.6
"""Maximum share of a key's characters in runs of small letters, as an identifier such as `getUserV2ById3` has them."""
_LONG_KEY = 24
"""Minimum characters of a key that needs no word for access near it."""
_BEFORE, _BEHIND = 160, 60
"""Characters before and after a key that are searched for a word for access."""
_CHARS = r"A-Za-z_!#$%^&*?~@+=./:-"
_TOKEN = re.compile(
    rf"(?:[^0-9{_CHARS}]++|[0-9{_CHARS}]{{1,{_MIN_TOKEN_CHARS - 1}}}+(?![0-9{_CHARS}])|[{_CHARS}]++(?![0-9{_CHARS}]))*+"
    rf"(?:(?P<token>[0-9{_CHARS}]{{{_MIN_TOKEN_CHARS},{_MAX_TOKEN_CHARS}}})[0-9{_CHARS}]*+|\Z)"
)
"""The next run of such characters that is long enough and has a digit.

Runs without one are skipped in the same match.
"""
_DIGIT = re.compile(r"\d")
_ASSIGNED = re.compile(r"(?:[A-Za-z_][A-Za-z_.-]*\d{0,2}[=:]+)+(?!=*\Z)")
_SYMBOLS = frozenset("!#$%^&*?~")
_KEY_SIGNS = _SYMBOLS | frozenset("@+=")
_PROGRAM_CODE = re.compile(
    r"(?-i:%-?\d*[sdfxr].*%)|%[0-9A-Fa-f]{2}.*%[0-9A-Fa-f]{2}|&\w+;?=|[=!]=|::|\.\*|\*\*|\$[A-Z]{1,2}\$\d|\?\.|/.*/|\w@[\w-]+\.|@[\^~]?v?\d|\A[~^*]?\d+\.|%\d\$|[a-z]-z|0-9|![rsa][:}\]]|#[a-z]+#|\?\w+=",
    re.IGNORECASE,
)
_PASSWORD_OPENING = re.compile(r"[#$%&@/~!^*-]{1,2}[A-Za-z]{2}")
_KEY = re.compile(r"[A-Za-z0-9+/_-]+={0,2}")
_WORDLIKE = re.compile(r"[A-Z]?[a-z]{3,}|[A-Z]{4,}")
_PREFIXED = re.compile(r"[A-Za-z]{2,14}[_-](?=[A-Za-z0-9+/]+={0,2}\Z)|[A-Z]{1,8}-\d{4,8}-")
_DIGEST = re.compile(r"(?:sha\d{1,3}|md5|h1|blake\w{1,3})[-:=]", re.IGNORECASE)
_OPERATORS = frozenset("+-*/=.")
_MOST_OPERATORS = 3
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_HEX = re.compile(r"(?:0x)?[0-9a-f]+", re.IGNORECASE)
_SENTENCE = re.compile(r"[.!?](?=\s)|\n\s*\n")
_NEAR_WORDS = lazy_pattern(rf"(?<![^\W\d_])(?:{alternatives('near secrets')})(?![^\W\d_])")
_IDENTIFIES = lazy_pattern(rf"(?<![^\W\d_])(?:{alternatives('identified')})(?:['’]?s)?[\s:=#(\"'`/@]{{0,4}}\Z")
_DIGESTS = lazy_pattern(rf"(?<![^\W\d_])(?:{alternatives('digests')})(?![^\W\d_])")
_PUBLIC_BLOCK = re.compile(
    r"-----BEGIN (?!(?:[A-Z0-9]{1,20} ){0,4}PRIVATE)[A-Z0-9 ]{1,60}-----[A-Za-z0-9+/=\s\\]{0,20000}"
)
_PARTS = re.compile(r"[-_/]")
_SHORTEST_CORE = 8
_LONGEST_LABEL = 60
_LABEL = re.compile(r"(?:[\"'][\w .-]{1,40}[\"']\s{0,3}[:=]|[\w.-]{1,40}=)\s{0,3}[\"']?\Z")
_SIGN = re.compile(r"[\"']?\s{0,2}[:=]")
_FRAME = " \t\r\n\"'`*.,!"
_LONGEST_FRAME = 12
_ITS = re.compile(r"(?i)\b(?:it['’]?s|it is|that['’]?s|es ist|c['’]est|это) (?:now |jetzt )?[\"'`“]?\Z")
_AFTER_ACCOUNT = re.compile(r"[\w.@-]{2,40} [/|] [\"'`]?\Z")
_PUBLISHED = lazy_pattern(rf"(?<![^\W\d_])(?:{alternatives('published')}|{alternatives('digests')})(?![^\W\d_])")
_UNOWNED = words("unowned")
_LONGEST_OWNER = 18


def high_entropy(text: str, lowered: str, names: Sequence[tuple[re.Match[str], str]]) -> Iterator[Secret]:
    """Values that look like a generated password, and random keys in a sentence about access or right after one."""
    keys: list[tuple[int, str]] = []
    for match in _TOKEN.finditer(text):
        token = match["token"]
        if token is None or _DIGIT.search(token) is None or "://" in token or _DIGEST.match(token):
            continue
        start, value = _strip_value(match)
        if is_masked(value) or is_placeholder(value) or value.startswith(PUBLIC_PREFIXES) or is_public_address(value):
            continue
        if _is_password(value):
            yield Secret("password", start, start + len(value))
        elif _is_key(value) and not is_ordinary(value):
            keys.append((start, value))
    named = _find_names(text, lowered, names) if keys else []
    blocks = list(_PUBLIC_BLOCK.finditer(text)) if keys and "-----BEGIN " in text else []
    for start, value in keys:
        while blocks and blocks[0].end() <= start:
            del blocks[0]
        if not (blocks and blocks[0].start() < start) and _is_about_access(text, lowered, start, value, named):
            yield Secret("high-entropy-token", start, start + len(value))


def _find_names(text: str, lowered: str, names: Sequence[tuple[re.Match[str], str]]) -> list[int]:
    """The positions of words that name a secret. A key needs no owner, because the value is random."""
    return [
        match.start()
        for match, kind in names
        if not NamedWord(text, lowered, match, kind).is_only_mentioned
        and not lowered[max(0, match.start() - _LONGEST_OWNER) : match.start()].rstrip(" _-").endswith(_UNOWNED)
        and not (kind == "key" and _is_field(text, match))
    ]


def _is_field(text: str, word: re.Match[str]) -> bool:
    """Whether the word is the whole name of a field: `key: …` in data is a lookup key."""
    before = text[max(0, word.start() - 2) : word.start()].strip(" \t\"'")
    return before in ("", "{", ",") and _SIGN.match(text, word.end()) is not None


def _strip_value(match: re.Match[str]) -> tuple[int, str]:
    """The value without a preceding name and sign, and without the punctuation that ends its sentence."""
    raw, start = match["token"], match.start("token")
    if assigned := _ASSIGNED.match(raw):
        raw, start = raw[assigned.end() :], start + assigned.end()
    kept = raw.lstrip("*.:")
    return start + len(raw) - len(kept), trim_value(kept, match.string, match.end("token"))


def _wordlike(value: str) -> float:
    """The share of characters in word-like runs of letters."""
    return sum(len(run) for run in _WORDLIKE.findall(value)) / len(value)


def _is_password(value: str) -> bool:
    """Whether all four classes of characters alternate, as only a generated password has them."""
    return (
        _is_signed(value, _SYMBOLS)
        and any(map(str.isupper, value))
        and any(map(str.islower, value))
        and _PASSWORD_OPENING.match(value) is None
    )


def _is_signed(value: str, signs: frozenset[str]) -> bool:
    """Whether signs, letters and digits alternate."""
    return (
        _MIN_TOKEN_CHARS <= len(value) <= _LONGEST_PASSWORD
        and not signs.isdisjoint(value[:-1])
        and any(map(str.isalpha, value))
        and _wordlike(value) <= _MOST_WORDLIKE
        and changes(value) >= _PASSWORD_CHANGES
        and sum(char in _OPERATORS for char in value) <= _MOST_OPERATORS
        and _PROGRAM_CODE.search(value) is None
    )


def _is_key(value: str) -> bool:
    """Whether letters and digits alternate as in a random string, and it is not a name with a random part."""
    if _is_signed(value, _KEY_SIGNS):
        return True
    if len(value) < _SHORTEST_KEY or not _KEY.fullmatch(value) or _UUID.fullmatch(value) or _PREFIXED.match(value):
        return False
    digits, lower = sum(map(value.count, "0123456789")), any(map(str.islower, value))
    if lower and any(map(str.isupper, value)):
        return (
            digits >= (1 if len(value) > _SHORT_KEY else 2)
            and value.count("/") <= 0.1 * len(value)
            and _wordlike(value) <= _MOST_WORDLIKE
            and _has_core(value)
            and changes(value) >= _KEY_CHANGES
            and entropy(value) >= _MIN_ENTROPY
        )
    return (
        len(value) >= _SHORTEST_ONE_CASE
        and value.isalnum()
        and 0.15 * len(value) <= digits <= 0.85 * len(value)
        and changes(value) >= _ONE_CASE_CHANGES
        and entropy(value) >= _MIN_ENTROPY
    )


def _has_core(value: str) -> bool:
    """Whether one of the parts between hyphens and slashes is itself random; ids join words and numbers."""
    core = max(_PARTS.split(value), key=len)
    return (
        len(core) >= min(_SHORTEST_CORE, len(value))
        and any(map(str.isupper, core))
        and any(map(str.islower, core))
        and changes(core) >= _KEY_CHANGES
    )


def _is_long_key(value: str) -> bool:
    """Whether it is so long and mixed that it is almost certainly a key."""
    return len(value) >= _LONG_KEY and any(map(str.isupper, value)) and any(map(str.islower, value))


def _is_given(text: str, start: int, end: int) -> bool:
    """Whether it is an answer: the whole text, or preceded by "it's"."""
    alone = (
        len(text) <= end - start + _LONGEST_FRAME and not text[:start].strip(_FRAME) and not text[end:].strip(_FRAME)
    )
    return alone or _ITS.search(text, max(0, start - 24), start) is not None


def _is_about_access(text: str, lowered: str, start: int, value: str, named: list[int]) -> bool:
    """Whether the sentence, or the one before, has a word for access, and no word names something else that the value identifies."""
    if _IDENTIFIES.search(lowered, max(0, start - 30), start):
        return False
    end = start + len(value)
    begin = _sentence_start(text, start)
    stop = _SENTENCE.search(text, end, end + _BEHIND)
    last = stop.start() if stop else end + _BEHIND
    is_hex = _HEX.fullmatch(value) is not None
    # A digest is named by its own sentence, or by the field that contains it.
    label = _LABEL.search(text, max(0, start - _LONGEST_LABEL), start) if is_hex else None
    if label:
        return bisect_left(named, label.start()) < bisect_left(named, start)
    first = begin if is_hex else max(_sentence_start(text, max(0, begin - 2)), start - _BEFORE)
    around = ((first, start), (end, last))
    if is_hex and _in(_DIGESTS, lowered, around):
        return False
    if bisect_left(named, first) < bisect_left(named, last):
        return True
    if is_hex:
        return False
    if (_is_long_key(value) or _is_given(text, start, end)) and not _in(_PUBLISHED, lowered, around):
        return True
    return _in(_NEAR_WORDS, lowered, around) or _AFTER_ACCOUNT.search(text, max(0, start - 50), start) is not None


def _in(pattern: re.Pattern[str], lowered: str, spans: Iterable[tuple[int, int]]) -> bool:
    return any(pattern.search(lowered, begin, stop) for begin, stop in spans)


def _sentence_start(text: str, place: int) -> int:
    ends = [end.end() for end in _SENTENCE.finditer(text, max(0, place - _BEFORE), place)]
    return ends[-1] if ends else max(0, place - _BEFORE)


_MIN_CODES = 3
_MIN_NAMED_CODES = 2
"""Minimum codes in a list; fewer are enough if the words are unambiguous."""
_MAX_CODES = 60
_MIN_CODE_CHARS = 6
_MAX_CHARS_BEFORE_CODES = 160
"""Maximum characters between the words and the first code."""
_RECOVERY_CODE = re.compile(
    r"(?<![\w.-])(?:\d{3,6}(?: \d{3,6}){1,3}|[A-Za-z0-9]{3,20}(?:-[A-Za-z0-9]{3,12}){0,7})(?![\w-]|[.:/]\w)"
)
_BETWEEN_CODES = re.compile(
    r"[\"'`]?(?:[ \t]{0,3}[,;|/][ \t]{0,3}(?:(?:and|und|et|y|e|en|och)[ \t])?|[ \t](?:and|und|et|y|e|en|och)[ \t]|[ \t]{1,8})?"
    r"[ \t\r]{0,4}(?:\n[ \t\r]{0,8}){0,2}(?:[-*•·>|☐□][ \t]{0,3})?(?:(?:\d{1,2}[.):]|\(\d{1,2}\)|\[ ?\])[ \t]{1,3})?[\"'`]?"
)
_GROUPS = re.compile(r"[ -]")


def recovery_codes(text: str, lowered: str, hints: Hints) -> Iterator[Secret]:
    """The codes of each list, one by one."""
    passed = 0
    for word, kind in words_in(lowered, LISTS, hints):
        codes = _find_codes_after(text, word.end()) if word.end() >= passed else []
        if sum(map(_count_codes, codes)) >= (_MIN_NAMED_CODES if kind == "named" else _MIN_CODES):
            passed = codes[-1].end()
            yield from (Secret("recovery-codes", code.start(), code.end()) for code in codes)


def _find_codes_after(text: str, place: int) -> list[re.Match[str]]:
    """The first codes of one shape after a position."""
    for first in _RECOVERY_CODE.finditer(text, place, place + _MAX_CHARS_BEFORE_CODES):
        if _is_code(first[0]):
            return _collect_similar_codes(first)
    return []


def _count_codes(code: re.Match[str]) -> int:
    """How many codes it counts as: more than two groups of digits are a list by themselves."""
    return max(1, code[0].count(" "))


def _is_code(value: str) -> bool:
    return len(value) >= _MIN_CODE_CHARS and any(map(str.isdigit, value)) and not value.startswith("0x")


def _collect_similar_codes(first: re.Match[str]) -> list[re.Match[str]]:
    """The code and those that follow it in the same shape."""
    text, codes = first.string, [first]
    while len(codes) < _MAX_CODES:
        between = _BETWEEN_CODES.match(text, codes[-1].end())
        code = _RECOVERY_CODE.match(text, between.end()) if between and between.end() > codes[-1].end() else None
        if code is None or _code_shape(code[0]) != _code_shape(first[0]):
            break
        codes.append(code)
    return codes if sum(_is_code(code[0]) for code in codes) > len(codes) / 2 else []


def _code_shape(value: str) -> tuple[int, ...]:
    return tuple(map(len, _GROUPS.split(value)))


_MIN_SEED_WORDS = 12
_MAX_SEED_GAP_CHARS = 8
_SEED_WORD = re.compile(r"[^\W\d_]+")
# Separators between two words: spaces, a comma, a line break, the number of the next word, but no end of a sentence.
_SEED_GAP = re.compile(r"[ \t]{1,3}|[ \t]{0,3}[,;|/\-–·•]?[ \t]{0,3}\n?[ \t>*|•-]{0,4}(?:\d{1,2}[.):\]]?[ \t]{0,3})?")
_SIGNS_AROUND_WORDS = string.punctuation + "“”„«»–—·•"
_WORD_NUMBERS = frozenset(map(str, range(1, 26)))
_NUMBER_BEFORE_PHRASE = re.compile(r"(?:\d{1,2}[.):\]]?[ \t]{0,3})\Z")


@lru_cache(maxsize=1)
def _wallet_words() -> frozenset[str]:
    return frozenset(word for row in rows("walletwords.txt") for word in row)


@lru_cache(maxsize=1)
def _listed_or_numbered() -> frozenset[str]:
    return _wallet_words() | _WORD_NUMBERS


def seed_phrases(text: str, lowered: str) -> Iterator[Secret]:
    """Each run of listed words that is at least as long as the shortest seed phrase."""
    # Numbers of the words count as words here. This checks every word, so that the code below rarely runs.
    known = bytes(map(_listed_or_numbered().__contains__, _split_words(lowered)))
    # The first and the last may be joined to something else by signs, and all of them to each other.
    if b"\1" * (_MIN_SEED_WORDS - 2) in known or (
        lowered.count("-") > _MIN_SEED_WORDS - 2
        and any(part.count("-") > _MIN_SEED_WORDS - 2 for part in lowered.split() if len(part) > 3 * _MIN_SEED_WORDS)
    ):
        yield from _find_phrases(text, lowered, _wallet_words())


def _split_words(lowered: str) -> list[str]:
    # On non-ASCII text, `translate` takes several times as long.
    if lowered.isascii():
        return lowered.translate(AS_SPACES).split()
    return [part if part.isalnum() else part.strip(_SIGNS_AROUND_WORDS) for part in lowered.split()]


def _find_phrases(text: str, lowered: str, listed: frozenset[str]) -> Iterator[Secret]:
    run: list[re.Match[str]] = []
    for word in _SEED_WORD.finditer(lowered):
        if word[0] not in listed:
            yield from _phrase(text, run)
            run = []
        elif run and not _continues(text, run[-1].end(), word.start()):
            yield from _phrase(text, run)
            run = [word]
        else:
            run.append(word)
    yield from _phrase(text, run)


def _continues(text: str, end: int, start: int) -> bool:
    return start - end == 1 or (
        start - end <= _MAX_SEED_GAP_CHARS and _SEED_GAP.fullmatch(text, end, start) is not None
    )


def _phrase(text: str, run: list[re.Match[str]]) -> Iterator[Secret]:
    # A repeated single word is not a phrase.
    if len(run) < _MIN_SEED_WORDS or len({word[0] for word in run}) == 1:
        return
    opening = _NUMBER_BEFORE_PHRASE.search(text, max(0, run[0].start() - _MAX_SEED_GAP_CHARS), run[0].start())
    yield Secret("seed-phrase", opening.start() if opening else run[0].start(), run[-1].end())
