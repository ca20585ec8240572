"""The forms of secrets, as tables in `data/`, and a rating of how much a string looks like a credential.

Every form has hints. `hints_in` finds the hints of all tables in one pass over the words, and a pattern is tried only
at its hints. Searching the whole text for each hint would take most of the time.
"""

import itertools
import math
import re
import string
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from functools import lru_cache
from hashlib import sha256
from itertools import accumulate
from operator import ne

from engram.gates.tables import rows, table_text
from engram.model.lazy import dataclass, lazy_pattern
from engram.models.credentials import cue_stems

__all__ = [
    "Hints",
    "Likeness",
    "Secret",
    "alternatives",
    "changes",
    "columns",
    "entropy",
    "hints_in",
    "is_file_or_host",
    "is_masked",
    "is_ordinary",
    "is_passphrase",
    "is_placeholder",
    "is_public_address",
    "is_random",
    "is_said",
    "join_overlaps",
    "join_windows",
    "likeness",
    "trim_value",
    "without_overlaps",
    "words",
    "words_in",
]

Hints = Mapping[str, Sequence[int]]
"""The hints that occur in a text, each with its positions in order; they may overlap."""

SHAPES, NAMES, CODES, NUMBERS = "secretshapes.txt", "secretnames.txt", "secretcodes.txt", "secretnumbers.txt"
LISTS = "secretlists.txt"
_TABLES = (SHAPES, NAMES, CODES, NUMBERS, LISTS)
_HINTED_WORDS = ("accounts", "logins")
AS_SPACES = str.maketrans(dict.fromkeys(string.punctuation, " "))
_SIGNS_AS_SPACES = str.maketrans(dict.fromkeys(string.punctuation + "\t\n\v\f\r\x1c\x1d\x1e\x1f", " "))
"""`AS_SPACES`, plus every other ASCII separator of words."""
_BETWEEN_SIGNS = re.compile(rf"[^\s{re.escape(string.punctuation)}]+")
_LONGEST_CACHED = 24
"""Maximum characters of a cached word.

A longer word, or one with digits, may itself be a secret and is never cached.
"""
_MOST_CACHED = 16_384
_REACH = 20
"""Characters that a word may have before its stem; twice as many are allowed after it."""


@dataclass(frozen=True, slots=True)
class Secret:
    """The kind and span of a secret. The secret itself is never stored."""

    kind: str
    start: int
    end: int


def join_overlaps(found: Iterable[Secret]) -> list[Secret]:
    """The secrets in order, with overlapping spans joined; the first and widest span determines the kind."""
    joined: list[Secret] = []
    for secret in sorted(found, key=lambda item: (item.start, -item.end)):
        if joined and secret.start < joined[-1].end:
            last = joined[-1]
            joined[-1] = Secret(last.kind, last.start, max(last.end, secret.end))
        else:
            joined.append(secret)
    return joined


@lru_cache(maxsize=1)
def _sections() -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    current = ""
    for line in table_text("secretwords.txt"):
        if line.startswith("["):
            current = line.strip()[1:-1]
        else:
            found[current] = (*found.get(current, ()), *filter(None, map(str.strip, line.split(","))))
    return found


def words(section: str) -> tuple[str, ...]:
    """The words in a section of `secretwords.txt`."""
    return _sections()[section]


def alternatives(section: str) -> str:
    """The words in a section as alternatives of a pattern."""
    return "|".join(words(section))


@lru_cache(maxsize=5)
def columns(name: str) -> tuple[tuple[str, ...], ...]:
    """The rows of a table: kind, hints, pattern, and in some tables a check."""
    return tuple(tuple(line.split("\t")) for line in table_text(name))


@lru_cache(maxsize=1)
def _index() -> tuple[dict[str, list[tuple[str, str]]], dict[str, list[str]], dict[str, list[str]]]:
    """An index of the hints of every table.

    It has the longer hints by the first letters of their longest word, with that word, and the shorter hints by a sign
    that they contain: those in ASCII and all.
    """
    hints = {hint.removeprefix("^") for name in _TABLES for row in columns(name) for hint in row[1].split("¦")}
    hints.update(word for section in _HINTED_WORDS for word in words(section))
    hints.update(cue_stems())
    by_letters: dict[str, list[tuple[str, str]]] = {}
    short: dict[str, list[str]] = {}
    for hint in sorted(hints - {""}):
        core = max((*hint.translate(AS_SPACES).split(), ""), key=len)
        if len(core) < 3:
            short.setdefault(next((sign for sign in hint if sign in string.punctuation), ""), []).append(hint)
        else:
            by_letters.setdefault(core[:3], []).append((core, hint))
    in_ascii = {sign: [hint for hint in hints if hint.isascii()] for sign, hints in short.items()}
    return by_letters, in_ascii, short


def hints_in(lowered: str) -> dict[str, list[int]]:
    """The hints that occur in a lower-cased text, with their positions."""
    found: dict[str, list[int]] = {}
    for start, hints in _hinted_words(lowered):
        for hint, before in hints:
            place = start + before
            if hint.isalnum() or (place >= 0 and lowered.startswith(hint, place)):
                found.setdefault(hint, []).append(place)
    _, in_ascii, short = _index()
    short = in_ascii if lowered.isascii() else short
    for hint in [hint for sign, hints in short.items() if sign in lowered for hint in hints if hint in lowered]:
        found[hint] = [*_all_places(hint, lowered)]
    return found


def _hinted_words(lowered: str) -> list[tuple[int, tuple[tuple[str, int], ...]]]:
    """The positions of words that may be part of hints, and those hints."""
    if not lowered.isascii():
        # On non-ASCII text, `translate` takes several times as long.
        matches = [(match.start(), match[0]) for match in _BETWEEN_SIGNS.finditer(lowered)]
        hinted = {word: hints for word in {word for _, word in matches} if (hints := _hints_by_word[word])}
        return [(start, hinted[word]) for start, word in matches if word in hinted]
    parts = lowered.translate(_SIGNS_AS_SPACES).split(" ")
    hinted = {word: hints for word in set(parts) if (hints := _hints_by_word[word])}
    # A word starts after all preceding words and their one-character separators.
    ends = list(accumulate(map(len, parts)))
    return [(ends[at] + at - len(word), hinted[word]) for at, word in enumerate(parts) if word in hinted]


def _all_places(part: str, text: str) -> Iterator[int]:
    place = text.find(part)
    while place >= 0:
        yield place
        place = text.find(part, place + 1)


def _look_up(word: str) -> tuple[tuple[str, int], ...]:
    """The hints whose longest word is part of this one, each with its position relative to this one's."""
    by_letters = _index()[0]
    near = by_letters.keys() & {word[at : at + 3] for at in range(len(word) - 2)}
    cores = [pair for letters in near for pair in by_letters[letters] if pair[0] in word]
    return tuple(found for core, hint in cores for found in _parts(word, core, hint))


def _parts(word: str, core: str, hint: str) -> Iterator[tuple[str, int]]:
    """Possible start positions of a hint whose longest word is in this one.

    A hint has no letters directly before and after that word, so the rest of the hint is outside this one.
    """
    before = hint.index(core)
    is_begun, is_ended = before > 0, before + len(core) < len(hint)
    for place in _all_places(core, word):
        if not (is_begun and place) and not (is_ended and place + len(core) < len(word)):
            yield hint, place - before


class _HintsByWord(dict[str, tuple[tuple[str, int], ...]]):
    """The hints of each word read so far; a bounded cache."""

    def __missing__(self, word: str) -> tuple[tuple[str, int], ...]:
        hints = _look_up(word)
        if word.isalpha() and len(word) <= _LONGEST_CACHED:
            if len(self) >= _MOST_CACHED:
                self.clear()
            self[word] = hints
        return hints


_hints_by_word = _HintsByWord()


def join_windows(places: Iterable[int], before: int, behind: int) -> Iterator[tuple[int, int]]:
    """The spans around some positions, by characters before and after, joined where they touch."""
    begin = stop = -1
    for place in sorted(places):
        if place - before > stop:
            if stop >= 0:
                yield begin, stop
            begin = max(0, place - before)
        stop = place + behind
    if stop >= 0:
        yield begin, stop


@lru_cache(maxsize=512)
def _pattern(name: str, row: int) -> re.Pattern[str]:
    return re.compile(columns(name)[row][2])


def without_overlaps(places: Iterable[int], size: int) -> Iterator[int]:
    """Positions in order, without those less than `size` after the previous one."""
    end = 0
    for place in places:
        if place >= end:
            yield place
            end = place + size


@lru_cache(maxsize=5)
def _rows_of_stems(name: str) -> dict[str, list[tuple[int, str]]]:
    """The rows of a table of words and their kinds, by their stems."""
    rows: dict[str, list[tuple[int, str]]] = {}
    for row, (kind, stem, _) in enumerate(columns(name)):
        rows.setdefault(stem, []).append((row, kind))
    return rows


def words_in(lowered: str, name: str, hints: Hints) -> list[tuple[re.Match[str], str]]:
    """The words of a table (kinds, stems, patterns) that occur in a lower-cased text, in order, each with its kind."""
    found: dict[tuple[int, int], tuple[re.Match[str], str]] = {}
    rows = _rows_of_stems(name)
    for stem, places in hints.items():
        for row, kind in rows.get(stem, ()):
            pattern = _pattern(name, row)
            missed: set[tuple[int, str]] = set()
            for place in without_overlaps(places, len(stem)):
                # In a repetitive text most windows are the same, so a miss repeats.
                first = max(0, place - 2 * _REACH)
                window = place - first, lowered[first : place + 3 * _REACH]
                if window in missed:
                    continue
                match = pattern.match(lowered, place) or pattern.search(
                    lowered, max(0, place - _REACH), place + 2 * _REACH
                )
                if match is not None:
                    found.setdefault((match.start(), row), (match, kind))
                else:
                    missed.add(window)
    apart: list[tuple[re.Match[str], str]] = []
    for key in sorted(found):
        if not apart or key[0] >= apart[-1][0].end():
            apart.append(found[key])
    return apart


class Likeness(IntEnum):
    """How much a string looks like a credential."""

    NOT = 0
    """Not a credential: a placeholder, a word such as "required", a date, a path, an address, a version, a technical term."""
    WORD = 1
    """An ordinary word or name: a credential only directly after "password is"."""
    LIKELY = 2
    """Letters with digits or symbols: a credential if the sentence is about one."""
    SURE = 3
    """Certainly a credential."""


# A random string of letters and digits carries about 5 bits a character, hex about 4, English words below 3.
_MIN_ENTROPY = 3.0
_HIGH_ENTROPY = 4.2
_LONG_RANDOM = 30
_MIN_DIGITS = 0.1
_KEY_CHANGES = 0.5
"""Minimum share of positions at which the character class changes in a long key; paths are below it."""
_BASE64 = re.compile(r"[A-Za-z0-9+/]+={0,2}")
_CLASSES = str.maketrans(
    {
        **dict.fromkeys(string.ascii_lowercase, "a"),
        **dict.fromkeys(string.ascii_uppercase, "A"),
        **dict.fromkeys(string.digits, "0"),
    }
)
_LONGEST_PLACEHOLDER = 128
_MIN_RANDOM_CHARS = 16
_MIN_WORDS = 3
"""Minimum words of a passphrase without a number."""
_REMEMBERED = 64
"""Results for strings up to this length are cached, because texts repeat words."""
_SIGNS = frozenset("!@#$%^&*?+=~§€£¤|{}[]()<>")
_JOINED = re.compile(
    r"[^\W\d_]{3,14}(?:(?P<sign>[-._])[^\W\d_]{3,14}){1,7}(?:(?P=sign)\d{1,4}|(?P=sign)[^\W\d_]{3,14})"
)
_TRAILING = ".,;:!?)]}>。，、；！？*_|\\"
_GOES_ON = re.compile(r" [a-zà-ÿ(]")
_SEPARATORS = re.compile(r"[-_./:]+")
_PLACEHOLDERS = (
    r"<[^>]{0,80}>?|@@?\w{1,60}@@?|__[A-Z][A-Z_]{1,60}__|\*{1,2}|!(?:vault|ref|env|sub|secret)\b.{0,80}|\$\{?[A-Za-z_(][^\s]{0,80}|%[A-Za-z_]+%|\{\{?.{0,80}|\[.{0,80}|\(.{0,80}"
    r"|[xX*•·.#?_-]{3,}|(?:your|my|the|some|any|a|an|new|old|own|insert|replace|put|enter|fill)(?:[_ -].{0,80})?|.{0,40}(?:example|placeholder|redacted|changeme|change_me|change-me|dummy|sample|insert-|_here|-here).{0,40}"
    r"|(?:process\.env|os\.(?:environ|getenv)|env|ENV|getenv|secrets|vars|vault|config|settings|self|this|op:|arn:|ref:|keyring|file:|ssm:|sm:|var|local|data|module|kms|awskms|gcpkms|projects/|secretsmanager)\b[.:\[(/].{0,120}"
    r"|(?:process\.env|os\.(?:environ|getenv)|env|ENV|getenv|secrets|vars|vault|config|settings|self|op:|arn:|ref:|keyring|file:|ssm:|sm:)\b.{0,120}"
    r"|[A-Za-z_][A-Za-z0-9_.]{0,60}(?:<[^<>()]{0,60}>)?\(.{0,80}|(?:test|foo|bar|baz|todo|tbd|n/a|none|null|nil|true|false|undefined|empty)\b.{0,3}"
    r"|x{3,}[x-]{0,80}|(?:[a-z]{1,12}[_-]){1,3}x{4,}[x_-]{0,80}|0{6,}|1234\.{3}|.{0,12}(?:…|\.\.\.).{0,12}"
)
_PLACEHOLDER = lazy_pattern(rf"(?:{_PLACEHOLDERS})\Z", re.IGNORECASE)
_MASKED = re.compile(r"(?<![xX*•·.#?_-])[xX*•·.#?_-]{6,}\Z")
_UNITS = alternatives("units")
_NUMBERED = alternatives("numbered")
_FILE = (
    r"[\w.-]{1,60}\.(?i:jsonl?|ndjson|parquet|ya?ml|toml|ini|env|txt|md|rst|py|js|ts|tsx|jsx|go|rs|java|rb|php|c|h|cpp|cs|sh|sql|log|csv"
    r"|html?|xml|pdf|docx?|xlsx?|png|jpe?g|svg|gif|zip|gz|tar|pem|key|crt|cer|pub|kdbx|cfg|conf|lock|exe|dll|so|jar"
    r"|properties|plist|ipynb|vue|css|scss|proto|tf|tfvars|rc)"
)
_HOST = (
    r"(?i:(?:[a-z0-9-]{1,63}\.){1,5}(?:com|org|net|io|dev|ai|app|local|internal|localhost|lan|de|at|ch|fr|it|es|nl|pl|se"
    r"|co|uk|eu|us|cn|jp|example|invalid|edu|gov|cloud|tech|info|me|sh))(?::\d{1,5})?(?:/\S*)?"
)
_BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_ADDRESS_BYTES = 25
_CHECKED = frozenset("13ADLMT")
"""Prefixes of addresses with a base 58 checksum."""
_ADDRESS = lazy_pattern(rf"[13ADLMT][{_BASE58}]{{25,34}}|0x[0-9a-fA-F]{{40}}|(?:bc1|tb1|ltc1|addr1)[a-z0-9]{{30,103}}")
_FILE_OR_HOST = lazy_pattern(f"{_FILE}|{_HOST}")
_POINTERS = frozenset(words("pointers"))
_PARTS_OF_NAMES = frozenset(words("parts of names"))
_ORDINARY = lazy_pattern(
    "|".join(
        (
            r"(?i:[a-z][a-z0-9+.-]{1,12}://\S*|(?:mailto|urn|arn|data|op|vault|secretref|keyvault|projects)[:/]\S*)",
            r"[~.]{0,2}/[\w.@%+{}$-]{1,60}(?:/[\w.@%+{}$*-]{0,80}){0,12}",
            r"(?:[a-z][a-z0-9_.-]{0,60}/){1,12}[a-z{<*][\w.{}<>*-]{0,60}",
            r"/?(?:[\w.-]{1,60}/){1,12}[\w.-]{0,60}\?[\w%.=&+-]{1,100}|\^[\[(\\.].{0,120}",
            r"[A-Za-z]:\\\S*|\\\\\S*",
            r"[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,5}",
            _FILE,
            _HOST,
            # Long text in scripts without spaces; the public fingerprint of a key.
            r"\d{1,3}(?:[-~–～〜至到]\d{1,3})?[个個]?(?:文字|字|位|桁|자|글자)\S*",
            r"[\w./:-]{0,80}@?sha(?:1|256|512):[0-9a-f]{7,128}",
            r"SHA(?:1|256|384|512):[A-Za-z0-9+/]{27,86}=?|MD5(?::[0-9a-f]{2}){16}",
            r"(?i:localhost|\d{1,3}(?:\.\d{1,3}){3})(?::\d{1,5})?(?:/\S*)?",
            r"\d{1,4}(?:[-./:,]\d{1,4}){1,4}(?:T[\d:.,+Z-]{2,32})?[Zz]?(?:\[[\w/+-]{1,40}\])?|\d{8}T\d{4,6}(?:\.\d{1,9})?(?:Z|[+-]\d{4})?",
            # Hardware addresses.
            r"[0-9A-Fa-f]{2}(?:(?P<octet>[:-])[0-9A-Fa-f]{2})(?:(?P=octet)[0-9A-Fa-f]{2}){4}|[0-9A-Fa-f]{4}(?:\.[0-9A-Fa-f]{4}){2}",
            r"[vV]?\d{1,4}(?:\.\d{1,6}){1,4}(?:[-+.]?[A-Za-z][\w.]{0,20})?",
            r"[\^~]?\d{1,3}(?:\.(?:\d{1,3}|x|\*)){1,3}",
            rf"(?i:[<>≤≥~±+]{{0,2}}=?[$€£]?\d{{1,12}}(?:[.,]\d{{1,6}}){{0,4}}[-–]?(?:{_UNITS})(?:/[a-z]{{1,8}})?)",
            rf"(?i:[<>≤≥~±+]{{0,2}}=?\d{{1,6}}[-–]\d{{1,6}}[-–]?(?:{_UNITS})?)",
            rf"(?i:\d{{1,4}}[-–](?:{_UNITS}|char|character|digit|bit|byte|day|hour|minute|second|week|month|year|factor|step|way|fold|port|core|node|seat|page|channel|zeichen|stellig\w{{0,2}})\w{{0,6}})",
            rf"(?i:(?:{_NUMBERED})[-_ ./#]?v?\d{{1,5}}(?:[.:_-]\d{{1,5}}){{0,3}}[a-z]{{0,2}})",
            r"(?i:argon2(?:id|i|d)|bcrypt|scrypt|pbkdf2\w*|pkcs[#-]?\d{1,2}|x\.?509|hs256|a256gcm|1password|2fa|mfa|u2f|k8s|i18n"
            r"|l10n|a11y|p2p|b2b|b2c|e2e|3d|4k|5g|s3|r2|utf-?8|oauth2?|auth0|base64\w{0,8}|base32|base58|ssh-(?:rsa|ed25519|dss)"
            r"|ecdsa-sha2-\S*|wpa2-psk|wpa3-sae|sha2?-?\d{3}\w{0,12}|aes-?\d{3}(?:-\w{2,8})?|rsa-?\d{4}|ed25519|secp256k1"
            r"|curve25519|x25519|md5|sha1|h2o|y2k|web3|office365|microsoft365|m365|ms365)",
            # Names of character sets and collations, and words that describe a secret: "SOPS-encrypted".
            r"(?i:(?:utf8(?:mb[34])?|utf16|ucs2|latin\d|cp\d{3,4}|ltsc\d{4}|(?:sql_)?latin1_general|iso-?8859-\d{1,2})(?:_[a-z0-9]{1,12}){0,6})",
            r"[A-Za-z][A-Za-z0-9]{1,20}-(?:encrypted|hashed|protected|signed|managed|scoped|based|bound|only|side)",
            r"[A-Z][A-Z0-9]{1,9}-\d{1,6}|#\d{1,9}|[A-Z]{1,3}\d{1,3}|§\d{1,4}\w?",
            r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]{1,30}){1,8}",
            r"[A-Za-z_$][\w.$]{0,60}\(.{0,80}|[A-Za-z_$][\w$]{0,60}(?:\.[A-Za-z_$][\w$]{0,60}){1,8}",
            r"[A-Za-z_][\w.]{0,60}(?:\[[^\]]{0,40}\]?)+|[A-Za-z]{1,40}[*+?|][A-Za-z]{0,40}",
            r"[a-z_.]{1,40}=[^=]{1,60}",
            r"(?i:wpa\d?-[a-z]{2,12})",
            r":{0,2}[a-z-]{2,24}\{.{0,100}",
            r"(?i:[a-z]{1,30}n't|[a-z]{1,30}['’][a-z]{1,4})",
        )
    )
    + r"|\W+"
)


@lru_cache(maxsize=1)
def _ordinary_words() -> frozenset[str]:
    return frozenset(word for row in rows("nonsecrets.txt") for word in row)


def is_said(word: str) -> bool:
    """Whether the word describes a password without revealing it."""
    return word.casefold() in _ordinary_words()


def is_placeholder(value: str) -> bool:
    """Whether the value is a placeholder: `<password>`, `$TOKEN`, `your-key`."""
    return _PLACEHOLDER.match(value[:_LONGEST_PLACEHOLDER]) is not None


def is_masked(value: str) -> bool:
    """Whether the value is masked, at least at its end."""
    return _MASKED.search(value) is not None


def is_ordinary(value: str) -> bool:
    """Whether the value only looks mixed: a date, a path, an address, a technical term."""
    if len(value) > _LONGEST_PLACEHOLDER or _ORDINARY.fullmatch(value) is None:
        return False
    # A base64 key may contain slashes, as a path does.
    return not (len(value) >= _LONG_RANDOM and _BASE64.fullmatch(value) and changes(value) >= _KEY_CHANGES)


def is_file_or_host(value: str) -> bool:
    """Whether the value is the name of a file or a host."""
    return _FILE_OR_HOST.fullmatch(value) is not None


def is_public_address(value: str) -> bool:
    """Whether the value is a public address of a blockchain: of Bitcoin and its relatives, or of Ethereum."""
    return _ADDRESS.fullmatch(value) is not None and (value[0] not in _CHECKED or _is_base58_address(value))


def _is_base58_address(value: str) -> bool:
    """Whether the last four bytes are the checksum of a version and a hash of twenty bytes."""
    number = 0
    for char in value:
        number = number * 58 + _BASE58.index(char)
    if number >= 1 << 8 * _ADDRESS_BYTES:
        return False
    raw = number.to_bytes(_ADDRESS_BYTES, "big")
    return sha256(sha256(raw[:-4]).digest()).digest()[:4] == raw[-4:]


def changes(value: str) -> float:
    """The share of positions at which the class changes between small letters, capitals, digits and signs."""
    kinds = value.translate(_CLASSES)
    return sum(map(ne, kinds, kinds[1:])) / (len(kinds) - 1) if len(kinds) > 1 else 0.0


def is_passphrase(value: str) -> bool:
    """Whether the value is words joined by one sign, as passphrase generators write them: `otter-candle-brick-7`.

    Names of things are also written like this, so it counts only where a password is expected, and not with a typical
    word of such names.
    """
    joined = _JOINED.fullmatch(value)
    if joined is None:
        return False
    parts = value.split(joined["sign"])
    if joined["sign"] != "-" and (not value.islower() or _FILE_OR_HOST.fullmatch(value)):
        return False
    spoken = [part.casefold() for part in parts if not part.isdigit()]
    enough = parts[-1].isdigit() or len(spoken) >= _MIN_WORDS
    return enough and not any(is_said(part) or part in _PARTS_OF_NAMES for part in spoken)


def likeness(value: str) -> Likeness:
    """How much a string looks like a credential, by its own shape."""
    return _known_likeness(value) if len(value) <= _REMEMBERED else _likeness(value)


@lru_cache(maxsize=4096)
def _known_likeness(value: str) -> Likeness:
    return _likeness(value)


def _likeness(value: str) -> Likeness:
    if len(value) < 4 or is_said(value) or is_placeholder(value) or is_public_address(value):
        return Likeness.NOT
    if value.isalpha() or value.isdigit():
        return Likeness.WORD
    if is_ordinary(value):
        return Likeness.NOT
    parts = [part for part in _SEPARATORS.split(value.strip("-_./:")) if part]
    if _refers(parts):
        return Likeness.NOT
    if not parts or all(_is_word(part) for part in parts):
        return Likeness.WORD
    return _judge_mixed(value)


def _refers(parts: list[str]) -> bool:
    """Whether joined words say where a secret is or what it must contain: `from-env`, `see-1password`."""
    if all(is_said(part) for part in parts):
        return len(parts) > 1
    rest = [part for part in parts if part not in _POINTERS]
    return len(rest) < len(parts) and all(part.isalpha() and part.islower() for part in rest)


def _is_word(part: str) -> bool:
    return part.isdigit() or (part.isalpha() and (part[1:].islower() or part.isupper() or len(part) == 1))


def _judge_mixed(value: str) -> Likeness:
    inner = value[:-1]
    signs = sum(char in _SIGNS for char in inner)
    kinds = "".join("d" if c.isdigit() else "s" if c in _SIGNS else "l" if c.isalpha() else "" for c in value)
    changes = sum(one != other for one, other in itertools.pairwise(kinds))
    digit, lower, upper = "d" in kinds, any(c.islower() for c in value), any(c.isupper() for c in value)
    if (len(value) >= 6 and signs and digit and "l" in kinds) or (len(value) >= 8 and digit and changes >= 3):
        return Likeness.SURE
    if len(value) >= 8 and lower and upper and digit and (changes >= 2 or value[-1] in _SIGNS):
        return Likeness.SURE
    if len(value) >= _MIN_RANDOM_CHARS and is_random(value):
        return Likeness.SURE
    if ("l" in kinds and digit) or signs or value[-1] in "!#$%&*":
        return Likeness.LIKELY
    return Likeness.WORD


def is_random(value: str) -> bool:
    """Whether letters and digits mix as in a random string: many digits, or more length and entropy than identifiers have."""
    digits = sum(map(value.count, "0123456789"))
    if not 0 < digits < len(value) or is_masked(value) or not any(char.isalpha() for char in value):
        return False
    if digits >= _MIN_DIGITS * len(value):
        return entropy(value) >= _MIN_ENTROPY
    return len(value) >= _LONG_RANDOM and entropy(value) >= _HIGH_ENTROPY


def trim_value(raw: str, text: str, end: int) -> str:
    """A value without the punctuation that ends its sentence or closes its quotation; `end` is the value's end in the text.

    If the sentence continues, an exclamation or question mark is part of the value.
    """
    value = raw.rstrip(_TRAILING)
    goes_on = len(raw) == len(value) + 1 and raw[-1] in "!?" and _GOES_ON.match(text, end) is not None
    return raw if goes_on else value


def entropy(value: str) -> float:
    """Bits per character."""
    total = len(value)
    return -sum(count / total * math.log2(count / total) for count in Counter(value).values())
