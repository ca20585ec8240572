"""Secrets: keys, tokens, passwords and connection strings, found by pattern and by what stands before them.

`find_secrets` gives spans, `redact` cuts them out. No reason or message repeats what was found.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import count
from typing import Any

from engram.gates.folding import folded
from engram.gates.secret_patterns import KEY_OWNERS, PATTERNS, PLACEHOLDERS, SECRET_WORDS
from engram.gates.shape import RECORD, texts
from engram.gates.tables import rows
from engram.model.errors import InvalidInput
from engram.model.memory import Memory

__all__ = ["Secret", "find_secrets", "may_hold_secrets", "redact", "redact_all", "refuse_secret", "secrets_problem"]


@dataclass(frozen=True, slots=True)
class Secret:
    """Where a secret stands in a text, and what kind it is. The secret itself is not kept."""

    kind: str
    start: int
    end: int


# A random string of letters and digits carries about 5 bits a character, hex about 4, English words below 3.
_MIN_ENTROPY = 3.0
_HIGH_ENTROPY = 4.2
_MIN_RANDOM_CHARS = 16
_LONG_RANDOM = 30
_MIN_DIGITS = 0.1
_LONGEST_RANDOM = 512
_LONG_VALUE = 64
_LONGEST_OWNER = 12
_LONGEST_PLACEHOLDER = 128
_LONGEST_KEY = 20_000
# How far before a random string the word may stand that makes it a secret.
_NEAR = 48
# Names and paths: random parts are usual in them, so only what is a secret by itself counts.
_NAMES = frozenset((
    "scope", "lineage", "supersedes", "superseded_by", "conflict_key", "critical_slot", "source",
    "evidence", "associations", "box", "trace", "session",
))  # fmt: skip
_KEY_BEGIN = re.compile(r"-----BEGIN (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-----|PuTTY-User-Key-File-\d")
_KEY_END = re.compile(r"-----END (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-----")
_KEY_BODY = re.compile(r"[A-Za-z0-9+/=\s:,-]*")

_NAMING = (
    *((word, "strict" if plain_too else "loose") for word, plain_too in SECRET_WORDS),
    (r"keys?(?![a-rt-z])", "key"),
    (r"pin(?![a-z])(?<![a-z]pin)", "pin"),
)
# Lower case: they are looked up in the lower-cased text, which lets the search skip by first letters. It does so only
# where no group opens before the letter; the empty one behind each word tells which it was.
_NAMED = re.compile("|".join(f"{word}()" for word, _ in _NAMING))
_OWNED = re.compile(rf"(?:{KEY_OWNERS})[ _-]?\Z")
# What leads from the word to its value: the rest of a variable's name, "for the database", then a sign or "is".
_GIVEN = re.compile(
    r"[A-Za-z0-9_-]{0,30}[\"'`*_]{0,3}(?:\s?\([^()\n]{0,40}\))?"
    r"(?: (?:for|of|to|on)(?: (?:the|our|my|this|its))? [\w@.:/-]{1,60}(?: [\w@.-]{1,40})?)?"
    r"(?:\s{0,4}(?P<sign>:=|=>|==|=|:|：|->)\s{0,4}|\s{1,4}(?:(?:(?:is|was|has been|got) )?(?:set|changed|reset|updated|rotated) to"
    r"|is now|is|was|are|ist|lautet|lauten|heißt|heisst|war|est|es|é)\s{1,4}"
    r"|\s?(?P<unspaced>[是为為は])\s?|\s?[—–-]\s)"
    r"[\"'`“”*_]{0,3}(?P<secret>[^\s\"'`“”,;]{1,512})",
    re.IGNORECASE,
)
_PIN = re.compile(
    r"(?:[ -]?(?:code|number))?(?:\s{0,4}[:=]\s{0,4}|\s{1,4}is\s{1,4})(?P<secret>\d{4,8})(?!\d)", re.IGNORECASE
)
_TOKEN = re.compile(rf"[A-Za-z0-9+/_=-]{{1,{_LONGEST_RANDOM}}}")
_NAMES_A_DIGEST = re.compile(
    r"(?i)(?:commit|sha\d*|hash|digest|checksum|md5|etag|uuid|guid|revision|rev|id|build)\W{0,3}$"
)
_PLACEHOLDER = re.compile(rf"(?:{PLACEHOLDERS})\Z", re.IGNORECASE)
_MASKED = re.compile(r"[xX*•·.#?_-]{6,}\Z")
_TRIMMED = ".,;:!?)]}>。，、；！？*_"
_WORD_ENDINGS = ("ed", "ing", "ly", "able", "ible", "ory", "ary", "ent", "ant", "ous", "ive", "ful", "less", "en", "al")


@lru_cache(maxsize=1)
def _patterns() -> tuple[tuple[str, tuple[str, ...], re.Pattern[str]], ...]:
    return tuple((kind, hints, re.compile(pattern)) for kind, hints, pattern in PATTERNS)


@lru_cache(maxsize=1)
def _hints() -> tuple[str, ...]:
    """Every hint of every pattern: nearly all texts hold none, and then no pattern is tried."""
    return tuple(dict.fromkeys(hint for _, hints, _ in PATTERNS for hint in hints))


@lru_cache(maxsize=1)
def _non_values() -> frozenset[str]:
    return frozenset(word for row in rows("nonsecrets.txt") for word in row)


def find_secrets(text: str, *, nearby: bool = True) -> list[Secret]:
    """Every secret in a text, in order, without overlaps. `nearby=False` leaves random strings near a word alone."""
    plain = folded(text)
    lowered = _lowered(plain.text)
    found = [*_known_shapes(plain.text, lowered), *_private_keys(plain.text), *_named(plain.text, lowered, nearby)]
    return _apart([Secret(secret.kind, *plain.span(secret.start, secret.end)) for secret in found])


def _lowered(text: str) -> str:
    """Lower case at the same places; a few letters change their length when lowered."""
    lowered = text.lower()
    if len(lowered) == len(text):
        return lowered
    return "".join(low if len(low := char.lower()) == 1 else char for char in text)


def redact(text: str) -> tuple[str, list[Secret]]:
    """The text with `[redacted:kind]` for each secret, and where the secrets stood."""
    found = find_secrets(text)
    return _without(text, found), found


def redact_all(value: Any, key: str = "") -> Any:
    """The same value with every secret in it redacted: texts, keys and what stands behind a telling key, to any depth."""
    if isinstance(value, str):
        return _redacted_behind(key, value)
    if isinstance(value, Mapping):
        redacted: dict[str, Any] = {}
        for name, item in value.items():
            redacted[_unused(redact(str(name))[0], redacted)] = redact_all(item, str(name))
        return redacted
    if isinstance(value, list | tuple | set | frozenset):
        return [redact_all(item, key) for item in value]
    if key and isinstance(value, int | float) and not isinstance(value, bool):
        redacted_number = _redacted_behind(key, str(value))
        return value if redacted_number == str(value) else redacted_number
    return value


def refuse_secret(text: str, what: str) -> None:
    """`InvalidInput` when an id or key holds a secret: redacting what tells things apart would make two things one."""
    if text and (found := find_secrets(text, nearby=False)):
        raise InvalidInput(
            f"{what} holds what looks like a secret ({_kinds(found)}); nothing was stored. Use another name"
        )


def may_hold_secrets(memories: Iterable[Memory]) -> bool:
    """Whether one of these memories has to be asked for its `secrets_problem`; where none does, none has any.

    Nearly every memory holds no secret, and reading all texts at once costs a fraction of reading them one by one.
    """
    return bool(find_secrets(RECORD.join(text for memory in memories for _, text in texts(memory))))


def secrets_problem(memory: Memory) -> str:
    """Why a memory must not be stored: the kinds of secrets found and the fields they are in; "" when there are none."""
    if not may_hold_secrets([memory]):
        return ""
    for field, text in texts(memory):
        if found := find_secrets(text, nearby=field not in _NAMES):
            return (
                f"{field} holds what looks like a secret ({_kinds(found)}); nothing was stored. "
                "Say where the secret is kept instead of what it is"
            )
    return ""


def _kinds(found: list[Secret]) -> str:
    return ", ".join(dict.fromkeys(secret.kind for secret in found))


def _without(text: str, found: list[Secret]) -> str:
    pieces, position = [], 0
    for secret in found:
        pieces += [text[position : secret.start], f"[redacted:{secret.kind}]"]
        position = secret.end
    return "".join([*pieces, text[position:]])


def _redacted_behind(key: str, text: str) -> str:
    """What stands behind a key, redacted with the key in view: "hunter2" alone says nothing."""
    lead = f"{key}: " if key else ""
    found = [secret for secret in find_secrets(lead + text) if secret.end > len(lead)]
    return _without(text, [Secret(s.kind, max(0, s.start - len(lead)), s.end - len(lead)) for s in found])


def _unused(name: str, taken: Mapping[str, Any]) -> str:
    """Two keys that held a secret stay two."""
    return name if name not in taken else next(n for i in count(2) if (n := f"{name} {i}") not in taken)


def _known_shapes(text: str, lowered: str) -> Iterator[Secret]:
    given = {hint for hint in _hints() if hint in lowered}
    for kind, hints, pattern in _patterns() if given else ():
        if given.isdisjoint(hints):
            continue
        for match in pattern.finditer(text):
            group = "secret" if "secret" in pattern.groupindex else 0
            value = match[group]
            if not (_is_placeholder(value) if group else _MASKED.search(value)):
                yield Secret(kind, match.start(group), match.end(group))


def _private_keys(text: str) -> Iterator[Secret]:
    if "PRIVATE KEY" not in text and "PuTTY-User-Key-File" not in text:
        return
    position = 0
    while begin := _KEY_BEGIN.search(text, position):
        end = _KEY_END.search(text, begin.end(), begin.end() + _LONGEST_KEY)
        body = _KEY_BODY.match(text, begin.end(), begin.end() + _LONGEST_KEY)
        position = end.end() if end else (body or begin).end()
        yield Secret("private-key", begin.start(), position)


def _named(text: str, lowered: str, nearby: bool) -> Iterator[Secret]:
    """Values behind a word such as password or token, and random strings soon after one."""
    words = [word for word in _NAMED.finditer(lowered) if _kind(word) != "key" or _is_credential(lowered, word.start())]
    passed = 0
    for place, word in enumerate(words):
        if word.start() < passed:
            continue
        given = (_PIN if _kind(word) == "pin" else _GIVEN).match(text, word.end())
        found = _assigned(word, given) if given else None
        if found:
            yield found
        elif nearby and _kind(word) != "pin":
            following = words[place + 1].start() if place + 1 < len(words) else len(text)
            yield from _random(text, word.end(), min(following, word.end() + _NEAR))
        if given and given.end() - given.start("secret") > _LONG_VALUE:
            # A long run was looked at once; the words inside it are part of it.
            passed = given.end()


def _kind(word: re.Match[str]) -> str:
    return _NAMING[(word.lastindex or 0) - 1][1]


def _is_credential(lowered: str, start: int) -> bool:
    return _OWNED.search(lowered[max(0, start - _LONGEST_OWNER) : start]) is not None


def _assigned(word: re.Match[str], given: re.Match[str]) -> Secret | None:
    value, start = given["secret"].rstrip(_TRIMMED), given.start("secret")
    if _kind(word) == "pin":
        return Secret("pin", start, given.end("secret"))
    strict = _kind(word) == "strict"
    if not _is_value(value, strict=strict, signed=bool(given["sign"] or given["unspaced"])):
        return None
    return Secret("password" if strict else "token", start, start + len(value))


def _random(text: str, start: int, end: int) -> Iterator[Secret]:
    position = start
    while position < end and (token := _TOKEN.search(text, position, end)):
        token = _TOKEN.match(text, token.start()) or token
        position = token.end()
        before = text[max(0, token.start() - 16) : token.start()]
        if len(token[0]) >= _MIN_RANDOM_CHARS and _is_random(token[0]) and not _NAMES_A_DIGEST.search(before):
            yield Secret("high-entropy-token", token.start(), token.end())


def _is_value(value: str, *, strict: bool, signed: bool) -> bool:
    """Whether what follows "password is" or "token=" is the thing itself and not something said about it."""
    if len(value) < 4 or _is_placeholder(value) or value.casefold() in _non_values():
        return False
    if value.isalpha() and (value.islower() or value.istitle()):
        return strict and len(value) > 4 and (signed or not value.endswith(_WORD_ENDINGS))
    if strict or any(char.isdigit() for char in value):
        # "token: 12345678" is a count more often than a credential.
        return strict or (len(value) >= 8 and not value.isdigit())
    return (
        len(value) >= 12 and _entropy(value) >= _MIN_ENTROPY and not value.replace("-", "").replace("_", "").islower()
    )


def _is_placeholder(value: str) -> bool:
    return _PLACEHOLDER.match(value[:_LONGEST_PLACEHOLDER]) is not None


def _is_random(value: str) -> bool:
    """Digits among the letters; where they are few, length and disorder that no identifier has."""
    digits = sum(char.isdigit() for char in value)
    if not 0 < digits < len(value) or _MASKED.match(value) or not any(char.isalpha() for char in value):
        return False
    if digits >= _MIN_DIGITS * len(value):
        return _entropy(value) >= _MIN_ENTROPY
    return len(value) >= _LONG_RANDOM and _entropy(value) >= _HIGH_ENTROPY


def _entropy(value: str) -> float:
    """Bits per character."""
    total = len(value)
    return -sum(count / total * math.log2(count / total) for count in Counter(value).values())


def _apart(found: list[Secret]) -> list[Secret]:
    """Sorted, with overlapping spans joined; the first and widest gives the kind."""
    joined: list[Secret] = []
    for secret in sorted(found, key=lambda item: (item.start, -item.end)):
        if joined and secret.start < joined[-1].end:
            last = joined[-1]
            joined[-1] = Secret(last.kind, last.start, max(last.end, secret.end))
        else:
            joined.append(secret)
    return joined
