"""Secrets: keys, tokens, passwords, card and personal numbers, found by their shape and by the words around them.

`find_secrets` returns spans, `redact` replaces them. No reason or message ever repeats a secret.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain, count, islice
from typing import Any

from engram.gates.secrets.assignments import named
from engram.gates.secrets.credentials import codes, continued_key, ends_in_key, pairs, private_keys, tabled
from engram.gates.secrets.forms import (
    NAMES,
    SHAPES,
    Hints,
    Secret,
    apart,
    columns,
    hints_in,
    stretches,
    without_overlaps,
    words_in,
)
from engram.gates.secrets.high_entropy import high_entropy
from engram.gates.secrets.numbers import numbers
from engram.gates.secrets.prose import prose
from engram.gates.secrets.recovery_codes import recovery_codes
from engram.gates.secrets.seed_phrases import seed_phrases
from engram.gates.secrets.values import Likeness, is_masked, is_passphrase, is_placeholder, is_said, likeness, trimmed
from engram.gates.shape import RECORD, labels, listed, texts
from engram.model.errors import InvalidInput
from engram.model.memory import Memory
from engram.text.confusables import Folded, readings
from engram.text.display import slug

__all__ = [
    "Secret",
    "continued_key",
    "ends_in_key",
    "exact_secrets",
    "find_secrets",
    "redact",
    "redact_all",
    "refuse_secret",
    "secrets_problem",
    "suspects",
]

# Names and paths often contain random parts, so in them only known secret shapes count.
_NAMES = frozenset((
    "id", "scope", "lineage", "supersedes", "superseded_by", "conflict_key", "critical_slot", "source",
    "evidence", "associations", "aliases", "box", "trace", "session",
))  # fmt: skip
_COUNTED_ID = re.compile(r"ENG-2\d{3}-[01]\d[0-3]\d-\d{3,6}")
_OWN_ID = re.compile(
    r"(?<![\w-])(?:ENG-2\d{3}-[01]\d[0-3]\d-\d{3,20}|ENG-X-[0-9a-f]{16}|EVT-2\d{7}-[0-9a-f]{12}"
    r"|(?:TASK|S)-2\d{7}-\d{6}-[0-9a-f]{6}|CKP-2\d{7}-\d{6}-[0-9a-f]{6}-\d{3,6})(?![\w#$%&*+=@^~-])"
)
"""Ids that a store gives out: they open nothing, and every message names some."""
_NUMBERED = re.compile(r"(?:-v?\d+)*")
_JOINT, _MOST_JOINTS = re.compile(r"[-_]+"), 32
"""What follows a name that is taken, or that belongs to an older version."""
_LONG_CHARS = 24
_LONG_RUN = re.compile(rf"[A-Za-z0-9_~-]{{{_LONG_CHARS},}}")
_AROUND_LONG = 120
"""Characters searched before and after a long run."""


_SAID = frozenset(("password", "security-answer", "netrc-password"))
"""Kinds whose value may be any word, including a word that only describes a value."""
_BEFORE_HINT = 200
_BEHIND_HINT = 400
"""Characters searched before and after a hint."""
_READ_AT_ONCE = 200
"""Memories scanned in one pass."""
_LONG = "LONG"
"""The hint of shapes without a fixed prefix: tried if the text has a long run of letters and digits."""


@lru_cache(maxsize=512)
def _pattern(row: int) -> re.Pattern[str]:
    """The pattern of a row, compiled on first use; most are never needed."""
    return re.compile(columns(SHAPES)[row][2])


@lru_cache(maxsize=1)
def _rows_of_hints() -> dict[str, list[tuple[int, str]]]:
    """The rows of each hint, with the hint as the row has it."""
    rows: dict[str, list[tuple[int, str]]] = {}
    for row, (_, hints, *_) in enumerate(columns(SHAPES)):
        for hint in hints.split("¦"):
            rows.setdefault(hint.removeprefix("^"), []).append((row, hint))
    return rows


def find_secrets(text: str, *, nearby: bool = True) -> list[Secret]:
    """Every secret in a text, in order, without overlaps. `nearby=False` ignores surrounding words; used for names."""
    if len(text) < _LONG_TEXT:
        return _all_secrets(text, nearby)
    key = (hash(text), len(text), nearby)
    found = _recent.get(key)
    if found is None:
        found = tuple(_all_secrets(text, nearby))
        _recent.put(key, found)
    return list(found)


def _all_secrets(text: str, nearby: bool) -> list[Secret]:
    return apart(secret for plain in readings(text) for secret in _found(plain, nearby, judged=nearby))


class _RecentResults:
    """The secrets of the last long texts, which several checks of one call read. It holds hashes and spans: a purged text is gone."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._new: dict[tuple[int, int, bool], tuple[Secret, ...]] = {}
        self._old = self._new

    def get(self, key: tuple[int, int, bool]) -> tuple[Secret, ...] | None:
        """The secrets of a text, if they are known."""
        return self._new.get(key, self._old.get(key))

    def put(self, key: tuple[int, int, bool], found: tuple[Secret, ...]) -> None:
        """Remember the secrets of a text, and forget the oldest when there are too many."""
        self._new[key] = found
        if len(self._new) > self._most:
            self._old, self._new = self._new, {}


_LONG_TEXT = 4_000
_recent = _RecentResults(most=16)


def exact_secrets(text: str) -> list[Secret]:
    """The secrets that have an exact form or name, without what the model judges; used to train the model."""
    return apart(secret for plain in readings(text) for secret in _found(plain, nearby=True, judged=False))


def _found(plain: Folded, nearby: bool, *, judged: bool) -> Iterator[Secret]:
    text, lowered = plain.text, _lowered(plain.text)
    hints = hints_in(lowered)
    names = words_in(lowered, NAMES, hints)
    found = [
        *_known_shapes(text, hints, nearby=nearby),
        *private_keys(text),
        *named(text, lowered, names, nearby=nearby),
        *numbers(text, lowered, hints, bare=nearby),
    ]
    if nearby:
        found += [
            *codes(text, lowered, hints),
            *recovery_codes(text, lowered, hints),
            *pairs(text, lowered, hints),
            *tabled(text, names),
            *seed_phrases(text, lowered),
            *high_entropy(text, lowered, names),
        ]
    if judged:
        found += prose(text, lowered, hints, found)
    own = [match.span() for match in _OWN_ID.finditer(text)] if found else []
    for secret in found:
        before = bisect_right(own, (secret.start, len(text)))
        if not before or own[before - 1][1] < secret.end:
            yield Secret(secret.kind, *plain.span(secret.start, secret.end))


def _lowered(text: str) -> str:
    """Lower case at the same places; a few letters change their length when lowered."""
    lowered = text.lower()
    if len(lowered) == len(text):
        return lowered
    return "".join(low if len(low := char.lower()) == 1 else char for char in text)


def redact(text: str) -> tuple[str, list[Secret]]:
    """The text with each secret replaced by `[redacted:kind]`, and the secrets' original spans."""
    found = find_secrets(text)
    return _without(text, found), found


def redact_all(value: Any, key: str = "") -> Any:
    """The value with every secret redacted, at any depth: in texts, in keys, and in values whose key says they are secret."""
    if isinstance(value, str):
        return _redacted_behind(key, value)
    if isinstance(value, Mapping):
        redacted: dict[str, Any] = {}
        for name, label, item in labels(value, key):
            redacted[_unused(redact(name)[0], redacted)] = redact_all(item, label)
        return redacted
    if isinstance(value, list | tuple | set | frozenset):
        return [redact_all(item, label) for label, item in listed(value, key)]
    if key and isinstance(value, int | float) and not isinstance(value, bool):
        redacted_number = _redacted_behind(key, str(value))
        return value if redacted_number == str(value) else redacted_number
    return value


def refuse_secret(text: str, what: str) -> None:
    """Raise `InvalidInput` if an id or key contains a secret: redacting identifiers would merge different things."""
    if text and (kinds := _kinds_in_name(text)):
        raise InvalidInput(f"{what} contains what looks like a secret ({kinds}); nothing was stored. Use another name")


@lru_cache(maxsize=1024)
def _kinds_in_name(text: str) -> str:
    # A hyphen or an underscore joins the parts of a name, and would hide that a token begins behind it.
    parts = (text[joint.end() :] for joint in islice(_JOINT.finditer(text), _MOST_JOINTS))
    found = next(filter(None, (find_secrets(part, nearby=False) for part in (text, *parts))), [])
    return _kinds(found)


class _CleanTexts:
    """A bounded cache of texts without secrets, so that no text is scanned twice. It holds hashes: a purged text is gone."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._new: set[int] = set()
        self._old: set[int] = set()

    def unread(self, texts: Iterable[str]) -> list[str]:
        """The distinct texts that are not known to be clean."""
        new, old = self._new, self._old
        return list({text: None for text in texts if (known := hash(text)) not in new and known not in old})

    def add(self, text: str) -> None:
        """Remember a text, and forget the oldest when there are too many."""
        self._new.add(hash(text))
        if len(self._new) > self._most:
            self._old, self._new = self._new, set()


_clean = _CleanTexts(most=10_000)


def suspects(memories: Sequence[Memory]) -> list[Memory]:
    """The memories that may contain a secret and need `secrets_problem`, in order.

    Nearly no memory contains a secret, and scanning all texts at once costs a fraction of scanning them one by one.
    """
    found: list[Memory] = []
    for start in range(0, len(memories), _READ_AT_ONCE):
        some = [(memory, _own_texts(memory)) for memory in memories[start : start + _READ_AT_ONCE]]
        unread = _clean.unread(text for _, own in some for text in own)
        suspicious = _suspicious(unread) if unread else set()
        if suspicious:
            found += [memory for memory, own in some if not suspicious.isdisjoint(own)]
    return found


def _own_texts(memory: Memory) -> list[str]:
    """The texts to scan; ids in the store's own format cannot hide anything."""
    return [text for field, text in texts(memory) if field != "id" or not _COUNTED_ID.fullmatch(text)]


def _suspicious(unread: Iterable[str]) -> set[str]:
    """The texts that contain what looks like a secret; the others are cached as clean."""
    suspicious: set[str] = set()
    spans = [(secret.start, secret.end) for secret in find_secrets(RECORD.join(unread))]
    begin = 0
    for text in unread:
        end = begin + len(text)
        if any(start < end + len(RECORD) and stop > begin for start, stop in spans):
            suspicious.add(text)
        else:
            _clean.add(text)
        begin = end + len(RECORD)
    return suspicious


def secrets_problem(memory: Memory, before: Memory | None = None) -> str:
    """Why a memory must not be stored: the kinds of secrets and their field; "" if there are none.

    Texts that `before` already contains, for example from a file edited by hand, do not count.
    """
    if not suspects([memory]):
        return ""
    known = set(texts(before)) if before is not None else set()
    for field, text in texts(memory):
        if (field, text) in known:
            continue
        found = _in_handle(text, memory) if field == "name" else find_secrets(text, nearby=field not in _NAMES)
        if found:
            return (
                f"{field} contains what looks like a secret ({_kinds(found)}); nothing was stored. "
                "Store where the secret is kept, not the secret itself"
            )
    return ""


def _in_handle(name: str, memory: Memory) -> list[Secret]:
    """The secrets in a memory's name. Its hyphens join words ("tokens-use-sha256"), so what is none with spaces is none.

    A name made of the memory's own first words says nothing that its text does not.
    """
    made = slug(memory.situation or memory.statement)
    if made and name.startswith(made) and _NUMBERED.fullmatch(name, len(made)):
        return []
    return find_secrets(name, nearby=False) or (find_secrets(name) if find_secrets(name.replace("-", " ")) else [])


def _kinds(found: list[Secret]) -> str:
    return ", ".join(dict.fromkeys(secret.kind for secret in found))


def _without(text: str, found: list[Secret]) -> str:
    pieces, position = [], 0
    for secret in found:
        pieces += [text[position : secret.start], f"[redacted:{secret.kind}]"]
        position = secret.end
    return "".join([*pieces, text[position:]])


def _redacted_behind(key: str, text: str) -> str:
    """A value redacted in the context of its key: "hunter2" alone does not look like a secret."""
    lead = f"{key}: " if key else ""
    found = [secret for secret in find_secrets(lead + text) if secret.end > len(lead)]
    return _without(text, [Secret(s.kind, max(0, s.start - len(lead)), s.end - len(lead)) for s in found])


def _unused(name: str, taken: Mapping[str, Any]) -> str:
    """A name that is not taken yet, so that two redacted keys stay two."""
    return name if name not in taken else next(n for i in count(2) if (n := f"{name} {i}") not in taken)


def _known_shapes(text: str, hints: Hints, *, nearby: bool) -> Iterator[Secret]:
    """Secrets by their shape. Rows with a judgment read a value from the words around it, so not in names and ids."""
    known = _rows_of_hints()
    rows: dict[int, list[str]] = {}
    for word in hints:
        for row, hint in known.get(word, ()):
            rows.setdefault(row, []).append(hint)
    runs = _long_runs(text) if max(map(len, text.split()), default=0) >= _LONG_CHARS else []
    if runs:
        rows |= {row: [_LONG] for row, _ in known[_LONG]}
    for row in sorted(rows):
        kind, _, _, *judgment = columns(SHAPES)[row]
        if judgment and not nearby:
            continue
        spans = runs if _LONG in rows[row] else None
        places = {hint: hints.get(hint.removeprefix("^"), ()) for hint in rows[row]}
        for match in _matches(_pattern(row), text, places, overlapping=bool(judgment), spans=spans):
            if found := _judged(kind, match, *judgment):
                yield found


def _judged(kind: str, match: re.Match[str], judgment: str = "") -> Secret | None:
    """The secret of a match, unless its value is a placeholder, a mask or a word, or looks less like one than the row asks."""
    group = "secret" if match.re.groupindex.get("secret") and match["secret"] else 0
    value = trimmed(match[group], match.string, match.end(group)) if judgment else match[group]
    if judgment == "sure":
        taken = likeness(value) == Likeness.SURE
    elif judgment == "likely":
        taken = likeness(value) >= Likeness.LIKELY or is_passphrase(value)
    else:
        taken = bool(judgment) or not (is_placeholder(value) if group else is_masked(value))
        taken = taken and bool(value) and not (kind in _SAID and is_said(value))
    return Secret(kind, match.start(group), match.start(group) + len(value)) if taken else None


def _matches(
    pattern: re.Pattern[str],
    text: str,
    hints: Hints,
    *,
    overlapping: bool,
    spans: Sequence[tuple[int, int]] | None,
) -> Iterator[re.Match[str]]:
    """The matches of a pattern at its hints, or around them; `overlapping`, where a harmless one may contain another."""
    if spans is not None:
        yield from _matches_in(pattern, text, spans)
        return
    passed = 0
    begun = (without_overlaps(places, len(hint) - 1) for hint, places in hints.items() if hint[0] == "^")
    for place in sorted(chain.from_iterable(begun)):
        match = pattern.match(text, place) if overlapping or place >= passed else None
        if match is not None:
            passed = match.end()
            yield match
    around = chain.from_iterable(places for hint, places in hints.items() if hint[0] != "^")
    yield from _matches_in(pattern, text, stretches(around, _BEFORE_HINT, _BEHIND_HINT))


def _matches_in(pattern: re.Pattern[str], text: str, spans: Iterable[tuple[int, int]]) -> Iterator[re.Match[str]]:
    for begin, stop in spans:
        while match := pattern.search(text, begin, stop):
            begin = max(match.end(), match.start() + 1)
            # A match cut off at the end of the span is matched again in full.
            whole = pattern.match(text, match.start()) if match.end() == stop else match
            if whole is not None:
                yield whole


def _long_runs(text: str) -> list[tuple[int, int]]:
    """The spans around long runs of letters and digits, joined where they touch."""
    spans: list[tuple[int, int]] = []
    for run in _LONG_RUN.finditer(text):
        begin, stop = max(0, run.start() - _AROUND_LONG), run.end() + _AROUND_LONG
        if spans and begin <= spans[-1][1]:
            begin = spans.pop()[0]
        spans.append((begin, stop))
    return spans
