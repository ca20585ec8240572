"""Secrets: keys, tokens, passwords, card and personal numbers, found by their shape and by the words around them.

`find_secrets` returns spans, `redact` replaces them. No reason or message ever repeats a secret.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain, count, islice
from typing import Any

from engram.gates.proposal import RECORD_SEPARATOR, label_fields, label_items, strings, texts
from engram.gates.secrets.assignments import find_named_values
from engram.gates.secrets.bare_secrets import high_entropy, recovery_codes, seed_phrases
from engram.gates.secrets.credentials import (
    continued_key,
    ends_in_key,
    find_codes,
    find_login_pairs,
    find_table_secrets,
    private_keys,
    warned_codes,
)
from engram.gates.secrets.exemptions import NOTHING_ALLOWED, AllowedValues, shorten_repetitions
from engram.gates.secrets.forms import (
    NAMES,
    SHAPES,
    Hints,
    Likeness,
    Secret,
    columns,
    hints_in,
    is_masked,
    is_passphrase,
    is_placeholder,
    is_said,
    join_overlaps,
    join_windows,
    likeness,
    trim_value,
    without_overlaps,
    words_in,
)
from engram.gates.secrets.numbers import numbers
from engram.gates.secrets.prose import judge_spans, tagged_spans
from engram.model.errors import InvalidInput, SecretRefused
from engram.model.lazy import fields, is_dataclass
from engram.model.memory import Memory
from engram.text.confusables import FoldedText, readings
from engram.text.display import slug

__all__ = [
    "Secret",
    "checked_reason",
    "continued_key",
    "data_problem",
    "describe_words",
    "ends_in_key",
    "exact_secrets",
    "find_candidates",
    "find_known_formats",
    "find_secrets",
    "has_secrets",
    "name_kinds",
    "redact",
    "redact_data",
    "refuse_credentials",
    "refuse_secret",
    "refuse_secret_text",
    "refuse_secret_values",
    "refuse_secrets_in",
    "secrets_problem",
    "suspects",
]

# Names and paths often contain random parts, so in them only known secret shapes count.
_NAMES = frozenset((
    "id", "scope", "lineage", "supersedes", "superseded_by", "conflict_key", "critical_slot", "source",
    "evidence", "associations", "aliases", "box", "trace", "session",
))  # fmt: skip
_DATA = frozenset(("metadata", "extra", "associations"))
"""Fields with a caller's own data."""
_COUNTED_ID = re.compile(r"ENG-2\d{3}-[01]\d[0-3]\d-\d{3,6}")
_OWN_ID = re.compile(
    r"(?<![\w-])(?:ENG-2\d{3}-[01]\d[0-3]\d-\d{3,20}|ENG-X-[0-9a-f]{16}|EVT-2\d{7}-[0-9a-f]{12}"
    r"|(?:TASK|S)-2\d{7}-\d{6}-[0-9a-f]{6}|CKP-2\d{7}-\d{6}-[0-9a-f]{6}-\d{3,6})(?![\w#$%&*+=@^~-])"
)
"""Ids that a store assigns. They grant no access, and most messages contain some."""
_NUMBERED = re.compile(r"(?:-v?\d+)*")
_JOINT, _MOST_JOINTS = re.compile(r"[-_]+"), 32
"""The suffix of a name that is taken, or of an older version."""
_LONG_CHARS = 24
_LONG_RUN = re.compile(rf"[A-Za-z0-9_~-]{{{_LONG_CHARS},}}")
_AROUND_LONG = 120
"""Characters searched before and after a long run."""


_LOCATED = frozenset((
    "azure-account-key", "azure-sas", "bearer-token", "connection-string", "discord-webhook", "google-chat-webhook", "signed-url", "slack-webhook",
    "teams-webhook", "webhook-url",
))  # fmt: skip
"""Kinds with a known format that contains the credential, as an address contains a password."""
_SAID = frozenset(("password", "security-answer", "netrc-password"))
"""Kinds whose value may be any word, including a word that only describes a value."""
_BEFORE_HINT = 200
_BEHIND_HINT = 400
"""Characters searched before and after a hint."""
_MASKED_CHARS = re.compile(r"[^\s-]")
_LONGEST_MASK, _MOST_DESCRIBED = 16, 3
_LONGEST_AROUND, _WORDS_AROUND = 48, 4
"""Characters and words of context that a message shows around a masked secret."""
_EXACT_COLUMNS = 3
_SHORT_NUMBER = 8
"""Maximum characters of a number that no checksum can make a secret."""
_LONGEST_KEY = 80
"""Maximum characters of a key that a message shows."""
_READ_AT_ONCE = 200
"""Memories scanned in one pass."""
_JOINED_CHARS, _WHOLE_CHARS = 60, 2_000
"""Minimum characters of a text that is scanned by itself, because a word for access in one text makes the model
judge the next texts; and of one whose end counts: a shorter one is scanned as if another followed."""
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


def find_secrets(text: str, *, nearby: bool = True, allowed: AllowedValues = NOTHING_ALLOWED) -> list[Secret]:
    """Every secret in a text, in order, without overlaps and without `allowed` values.

    `nearby=False` ignores surrounding words; used for names.
    """
    return allowed.without_allowed(text, _recent_secrets(text, nearby))


def has_secrets(texts: Iterable[str]) -> bool:
    """Whether any of the texts contains a secret.

    Short texts are scanned together; the result for a long text is remembered.
    """
    given = list(texts)
    long = [text for text in given if len(text) >= _LONG_TEXT]
    return any(map(find_secrets, long)) or bool(
        find_secrets(RECORD_SEPARATOR.join(text for text in given if len(text) < _LONG_TEXT))
    )


def find_known_formats(text: str, allowed: AllowedValues = NOTHING_ALLOWED) -> list[Secret]:
    """The credentials in a known format: private keys, provider tokens, URLs with a password.

    Surrounding words do not count.
    """
    return allowed.without_allowed(text, _scan(text, _known_formats))


def _scan(text: str, find: Callable[[FoldedText], Iterable[Secret]]) -> list[Secret]:
    """The search results in any reading of a text, without overlaps. A long repetition is read once."""
    shortened = shorten_repetitions(text)
    plain = {reading.text: reading for reading in readings(shortened.text)}
    found = join_overlaps(secret for reading in plain.values() for secret in find(reading))
    return join_overlaps(shortened.restore(found)) if shortened.cuts else found


def _known_formats(plain: FoldedText) -> Iterator[Secret]:
    text = plain.text
    for secret in (*_known_shapes(text, hints_in(_lower_in_place(text)), rows=_is_known), *private_keys(text)):
        yield Secret(secret.kind, *plain.span(secret.start, secret.end))


def _recent_secrets(text: str, nearby: bool) -> list[Secret]:
    """Every secret in a text.

    The results of the last long texts are cached, because several checks of one call read the same text.
    """
    if len(text) < _LONG_TEXT:
        return _all_secrets(text, nearby)
    key = (hash(text), len(text), nearby)
    found = _recent.get(key)
    if found is None:
        found = tuple(_all_secrets(text, nearby))
        _recent.put(key, found)
    return list(found)


def _all_secrets(text: str, nearby: bool) -> list[Secret]:
    return _scan(text, lambda plain: _find_in_folded(plain, nearby, judged=nearby))


class _RecentResults:
    """The secrets of the last long texts. It stores hashes and spans only, so a purged text leaves no trace."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._new: dict[tuple[int, int, bool], tuple[Secret, ...]] = {}
        self._old = self._new

    def get(self, key: tuple[int, int, bool]) -> tuple[Secret, ...] | None:
        """The secrets of a text, if they are known."""
        return self._new.get(key, self._old.get(key))

    def put(self, key: tuple[int, int, bool], found: tuple[Secret, ...]) -> None:
        """Remember the secrets of a text, and drop the oldest entry if there are too many."""
        self._new[key] = found
        if len(self._new) > self._most:
            self._old, self._new = self._new, {}


_LONG_TEXT = 200
"""Minimum characters of a text whose result is remembered."""
_recent = _RecentResults(most=64)


def exact_secrets(text: str) -> list[Secret]:
    """The secrets with an exact form or name, without the model's judgment; used to train the model."""
    return _scan(text, lambda plain: _find_in_folded(plain, nearby=True, judged=False))


def find_candidates(text: str) -> tuple[list[Secret], dict[tuple[int, int], list[str]]]:
    """The secrets that need no judgment, and the spans that the model judges, with their tags.

    Used to train the model.
    """
    lowered = _lower_in_place(text)
    hints = hints_in(lowered)
    names = words_in(lowered, NAMES, hints)
    sure, proposed = _sure(text, lowered, hints, nearby=True), _propose_values(text, lowered, hints, names)
    return sure, tagged_spans(text, lowered, hints, proposed)


def _find_in_folded(plain: FoldedText, nearby: bool, *, judged: bool) -> Iterator[Secret]:
    text, lowered = plain.text, _lower_in_place(plain.text)
    hints = hints_in(lowered)
    names = words_in(lowered, NAMES, hints)
    own = [match.span() for match in _OWN_ID.finditer(text)]
    found = _sure(text, lowered, hints, nearby=nearby)
    if not nearby:
        found += find_named_values(text, lowered, names, nearby=False)
    else:
        proposed = _propose_values(text, lowered, hints, names)
        known = [*found, *(Secret("id", *span) for span in own)]
        found += judge_spans(text, lowered, hints, known, proposed) if judged else (secret for _, secret in proposed)
    ends = [end for _, end in own]
    for secret in found:
        behind = bisect_left(ends, secret.end)
        if behind == len(own) or own[behind][0] > secret.start:
            yield Secret(secret.kind, *plain.span(secret.start, secret.end))


def _sure(text: str, lowered: str, hints: Hints, *, nearby: bool) -> list[Secret]:
    """The secrets with an exact form, which count whatever the words around them."""
    found = [*_known_shapes(text, hints), *private_keys(text), *numbers(text, lowered, hints, bare=nearby)]
    if nearby:
        found += [
            *warned_codes(text, lowered, hints),
            *recovery_codes(text, lowered, hints),
            *seed_phrases(text, lowered),
        ]
    return found


def _propose_values(
    text: str, lowered: str, hints: Hints, names: Sequence[tuple[re.Match[str], str]]
) -> list[tuple[str, Secret]]:
    """The values that a rule takes for a secret because of the words around them, each with the rule; the model decides."""
    return [
        *(("shape", secret) for secret in _known_shapes(text, hints, rows=_is_judged)),
        *(("named " + secret.kind, secret) for secret in find_named_values(text, lowered, names)),
        *(("table", secret) for secret in find_table_secrets(text, names)),
        *(("code", secret) for secret in find_codes(text, lowered, hints)),
        *(("pair", secret) for secret in find_login_pairs(text, lowered, hints)),
        *(("entropy " + secret.kind, secret) for secret in high_entropy(text, lowered, names)),
    ]


def _lower_in_place(text: str) -> str:
    """Lower case without shifting positions; lowering changes the length of a few letters."""
    lowered = text.lower()
    if len(lowered) == len(text):
        return lowered
    return "".join(low if len(low := char.lower()) == 1 else char for char in text)


def redact(text: str, allowed: AllowedValues = NOTHING_ALLOWED) -> tuple[str, list[Secret]]:
    """The text with each secret replaced by `[redacted:kind]`, and the secrets' original spans."""
    if not _clean.unknown_texts([text]):
        return text, []
    found = find_secrets(text)
    if not found:
        _clean.add(text)
    found = allowed.without_allowed(text, found)
    return _without(text, found), found


def redact_data(value: Any, key: str = "", allowed: AllowedValues = NOTHING_ALLOWED) -> Any:
    """The payload of an event with its secrets redacted, at any depth: in texts and keys, and in values whose key says they are secret.

    A value without spaces needs such a key or a known format, because ids look random.
    """
    if isinstance(value, str):
        return _redact_value(key, value, allowed)
    if isinstance(value, Mapping):
        redacted: dict[str, Any] = {}
        for name, label, item in label_fields(value, key):
            redacted[_free_name(_redact_value("", name, allowed), redacted)] = redact_data(item, label, allowed)
        return redacted
    if isinstance(value, list | tuple | set | frozenset):
        return [redact_data(item, label, allowed) for label, item in label_items(value, key)]
    if key and isinstance(value, int | float) and not isinstance(value, bool):
        return _redact_number(key, value, allowed)
    return value


def _redact_number(key: str, value: float, allowed: AllowedValues) -> float | str:
    """A number redacted in the context of its key; a short one is a secret only if a word in its key says so."""
    text = str(value)
    if len(text) <= _SHORT_NUMBER and not hints_in(_lower_in_place(key)):
        return value
    redacted = _redact_value(key, text, allowed)
    return value if redacted == text else redacted


def refuse_secret(text: str, what: str) -> None:
    """Raise `InvalidInput` if an id or key contains a secret: redacting identifiers would merge different things."""
    if text and (kinds := _kinds_in_name(text)):
        raise InvalidInput(f"{what} contains what looks like a secret ({kinds}); nothing was stored. Use another name")


def refuse_secret_text(text: str, what: str, allowed: AllowedValues = NOTHING_ALLOWED) -> None:
    """Raise `SecretRefused` if a text that a caller wrote contains a secret."""
    if text and (found := find_secrets(text, allowed=allowed)):
        raise SecretRefused(secret_problem(text, found, what))


def refuse_secret_values(data: Mapping[str, Any], what: str, allowed: AllowedValues = NOTHING_ALLOWED) -> None:
    """Raise `SecretRefused` if a value at any depth of the data is a secret in the context of its key."""
    pairs = list(_label_values(data))
    if not find_secrets(RECORD_SEPARATOR.join(_lead(key) + text for key, text in pairs)):
        return
    for key, text in pairs:
        if found := _secrets_of_value(key, text, allowed):
            raise SecretRefused(secret_problem(_lead(key) + text, found, what))


def _label_values(value: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """The texts and numbers in data, each with the path of labels that describes it."""
    if isinstance(value, Mapping):
        for _, label, item in label_fields(value, key):
            yield from _label_values(item, label if label == key or not key else f"{key}.{label}")
    elif isinstance(value, list | tuple):
        for label, item in label_items(value, key):
            yield from _label_values(item, label)
    elif isinstance(value, str | int | float) and not isinstance(value, bool):
        yield key, str(value)


def refuse_secrets_in(value: object, what: str) -> None:
    """Raise `SecretRefused` if a text contains a secret, or a caller's own data a credential in a known format."""
    if isinstance(value, str):
        refuse_secret_text(value, what)
    else:
        refuse_credentials(value, what)


def checked_reason(reason: str) -> str:
    """The reason that a caller gives for a change. Raises `SecretRefused` if it contains a secret."""
    refuse_secret_text(reason, "the reason")
    return reason


def secret_problem(text: str, found: Sequence[Secret], what: str) -> str:
    """Why a text must not be stored: the field, the words taken for a secret, and what to do about it."""
    return (
        f"{what} contains what looks like a secret ({name_kinds(found)}): {describe_words(text, found)}; nothing was stored. "
        "Store where the secret is kept, not the secret itself. If it is not a secret, a person can allow it: "
        "--not-a-secret at a terminal, or the setting secrets.allow"
    )


def describe_words(text: str, found: Sequence[Secret]) -> str:
    """The words taken for secrets, masked, each with the words before or after it."""
    shown = [_describe_secret(text, found, at) for at in range(min(len(found), _MOST_DESCRIBED))]
    more = len(found) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def _describe_secret(text: str, found: Sequence[Secret], at: int) -> str:
    secret = found[at]
    masked = _MASKED_CHARS.sub("•", text[secret.start : secret.end][:_LONGEST_MASK])
    masked += "…" if secret.end - secret.start > _LONGEST_MASK else ""
    begin = found[at - 1].end if at else 0
    before = (
        text[max(begin, secret.start - _LONGEST_AROUND) : secret.start].rpartition("\n")[2].split()[-_WORDS_AROUND:]
    )
    if before:
        return f"“{masked}” after “{' '.join(before)}”"
    stop = found[at + 1].start if at + 1 < len(found) else len(text)
    after = text[secret.end : min(stop, secret.end + _LONGEST_AROUND)].partition("\n")[0].split()[:_WORDS_AROUND]
    return f"“{masked}” before “{' '.join(after)}”" if after else f"“{masked}”"


@lru_cache(maxsize=1024)
def _kinds_in_name(text: str) -> str:
    # A hyphen or an underscore joins the parts of a name, and would hide that a token begins behind it.
    parts = (text[joint.end() :] for joint in islice(_JOINT.finditer(text), _MOST_JOINTS))
    found = next(filter(None, (find_secrets(part, nearby=False) for part in (text, *parts))), [])
    return name_kinds(found)


class _CleanTexts:
    """A bounded cache of clean texts, to scan each only once. It stores hashes, so a purged text leaves no trace."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._new: set[int] = set()
        self._old: set[int] = set()

    def unknown_texts(self, texts: Iterable[str]) -> list[str]:
        """The distinct texts that are not known to be clean."""
        new, old = self._new, self._old
        return list({text: None for text in texts if (known := hash(text)) not in new and known not in old})

    def add(self, text: str) -> None:
        """Remember a text, and drop the oldest if there are too many."""
        self._new.add(hash(text))
        if len(self._new) > self._most:
            self._old, self._new = self._new, set()


_clean = _CleanTexts(most=10_000)


def suspects(memories: Sequence[Memory]) -> list[Memory]:
    """The memories that may contain a secret and need `secrets_problem`, in order.

    Hardly any memory contains a secret, and scanning all texts at once costs a fraction of scanning them one by one.
    """
    found: list[Memory] = []
    for start in range(0, len(memories), _READ_AT_ONCE):
        some = [(memory, _own_texts(memory)) for memory in memories[start : start + _READ_AT_ONCE]]
        unread = _clean.unknown_texts(text for _, own in some for text in own)
        suspicious = _find_suspicious(unread) if unread else set()
        if suspicious:
            found += [memory for memory, own in some if not suspicious.isdisjoint(own)]
    return found


def _own_texts(memory: Memory) -> list[str]:
    """The texts to scan; ids in the store's own format, and names made of the memory's own words, cannot hide anything."""
    found = [text for field, text in texts(memory) if field not in ("id", "name")]
    found += [memory.id] if memory.id and not _COUNTED_ID.fullmatch(memory.id) else []
    return [*found, memory.name] if memory.name and not _is_own_name(memory.name, memory) else found


def _find_suspicious(unread: Iterable[str]) -> set[str]:
    """The texts that may contain a secret; the others are cached as clean."""
    texts = list(unread)
    suspicious: set[str] = set()
    for text in texts:
        if len(text) >= _JOINED_CHARS:
            found = find_secrets(text if len(text) >= _WHOLE_CHARS else text + RECORD_SEPARATOR)
            if found:
                suspicious.add(text)
            else:
                _clean.add(text)
    short = [text for text in texts if len(text) < _JOINED_CHARS]
    spans = [(secret.start, secret.end) for secret in find_secrets(RECORD_SEPARATOR.join([*short, ""]))]
    begin = 0
    for text in short:
        end = begin + len(text)
        if any(start < end + len(RECORD_SEPARATOR) and stop > begin for start, stop in spans):
            suspicious.add(text)
        else:
            _clean.add(text)
        begin = end + len(RECORD_SEPARATOR)
    return suspicious


def secrets_problem(memory: Memory, before: Memory | None = None, allowed: AllowedValues = NOTHING_ALLOWED) -> str:
    """Why a memory must not be stored: the words taken for a secret and their field; "" if there are none.

    Texts that `before` already contains, for example from a file edited by hand, do not count.
    """
    if not suspects([memory]):
        return ""
    known = set(texts(before)) if before is not None else set()
    for field, text in texts(memory):
        if (field, text) in known:
            continue
        if field in _DATA:
            if problem := data_problem(getattr(memory, field), field, allowed):
                return problem
            continue
        found = _in_handle(text, memory) if field == "name" else find_secrets(text, nearby=field not in _NAMES)
        if found := allowed.without_allowed(text, found):
            return secret_problem(text, found, field)
    return ""


def refuse_credentials(data: object, what: str, allowed: AllowedValues = NOTHING_ALLOWED) -> None:
    """Raise `SecretRefused` if a caller's own data contains a credential in a known format; the message has the path of its key."""
    if problem := data_problem(data, what, allowed):
        raise SecretRefused(problem)


def data_problem(data: object, what: str, allowed: AllowedValues = NOTHING_ALLOWED) -> str:
    """Why a caller's own data must not be stored: the path of the key and the kind of credential; "" if there is none.

    Applications keep foreign keys there, and none of it is indexed or put into a prompt, so only known formats count.
    """
    # Hardly any data contains a credential, and scanning all of it at once is cheaper than value by value.
    if not data or not find_known_formats(RECORD_SEPARATOR.join(strings(data))):
        return ""
    for path, text in _values(data, what):
        if found := find_known_formats(text, allowed):
            return secret_problem(text, found, path)
    return ""


def _values(value: object, path: str) -> Iterator[tuple[str, str]]:
    """The texts in a value with their paths; a key comes before its value."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield f"a key of {path}", str(key)
            yield from _values(item, f"{path}.{str(key)[:_LONGEST_KEY]}")
    elif isinstance(value, list | tuple | set | frozenset):
        for place, item in enumerate(value):
            yield from _values(item, f"{path}[{place}]")
    elif is_dataclass(value):
        for part in fields(value):
            yield from _values(getattr(value, part.name), f"{path}.{part.name}")


def _in_handle(name: str, memory: Memory) -> list[Secret]:
    """The secrets in a memory's name.

    Hyphens join words there ("tokens-use-sha256"), so a match must remain one with spaces.
    """
    if _is_own_name(name, memory):
        return []
    return find_secrets(name, nearby=False) or (find_secrets(name) if find_secrets(name.replace("-", " ")) else [])


def _is_own_name(name: str, memory: Memory) -> bool:
    """Whether a name is made of the memory's own first words, so that it adds nothing to the text."""
    made = slug(memory.situation or memory.statement)
    return bool(made) and name.startswith(made) and _NUMBERED.fullmatch(name, len(made)) is not None


def name_kinds(found: Iterable[Secret]) -> str:
    """The kinds of some secrets, each once."""
    return ", ".join(dict.fromkeys(secret.kind for secret in found))


def _without(text: str, found: list[Secret]) -> str:
    pieces, position = [], 0
    for secret in found:
        pieces += [text[position : secret.start], f"[redacted:{secret.kind}]"]
        position = secret.end
    return "".join([*pieces, text[position:]])


def _redact_value(key: str, text: str, allowed: AllowedValues) -> str:
    """A value redacted in the context of its key: "hunter2" alone does not look like a secret."""
    if not text:
        return text
    lead = _lead(key)
    found = _secrets_of_value(key, text, allowed)
    return _without(text, [Secret(s.kind, max(0, s.start - len(lead)), s.end - len(lead)) for s in found])


def _lead(key: str) -> str:
    return f"{key}: " if key else ""


def _secrets_of_value(key: str, text: str, allowed: AllowedValues) -> list[Secret]:
    """The secrets in a value, by their positions in `key: text`."""
    lead = _lead(key)
    found = [secret for secret in find_secrets(lead + text, allowed=allowed) if secret.end > len(lead)]
    if found and " " not in text.strip() and find_secrets(text) and not find_secrets(lead + text, nearby=False):
        return []  # an id looks random too, and no word says that it is a secret
    return found


def _free_name(name: str, taken: Mapping[str, Any]) -> str:
    """A name that is not taken yet, so that two redacted keys remain distinct."""
    return name if name not in taken else next(n for i in count(2) if (n := f"{name} {i}") not in taken)


def _is_exact(row: int) -> bool:
    """Whether a match of the row is always a secret.

    Other rows have a judgment, because they depend on the words around the value.
    """
    return len(columns(SHAPES)[row]) == _EXACT_COLUMNS


def _is_judged(row: int) -> bool:
    return not _is_exact(row)


def _is_known(row: int) -> bool:
    """Whether the format is known by itself, and not only by a preceding word such as `psk=`."""
    return _is_exact(row) and (columns(SHAPES)[row][0] in _LOCATED or "secret" not in _pattern(row).groupindex)


def _known_shapes(text: str, hints: Hints, rows: Callable[[int], bool] = _is_exact) -> Iterator[Secret]:
    """Secrets of some rows, by their shape."""
    known = _rows_of_hints()
    hinted: dict[int, list[str]] = {}
    for word in hints:
        for row, hint in known.get(word, ()):
            hinted.setdefault(row, []).append(hint)
    runs = _long_runs(text) if max(map(len, text.split()), default=0) >= _LONG_CHARS else []
    if runs:
        hinted |= {row: [_LONG] for row, _ in known[_LONG]}
    for row in sorted(filter(rows, hinted)):
        kind, _, _, *judgment = columns(SHAPES)[row]
        spans = runs if _LONG in hinted[row] else None
        places = {hint: hints.get(hint.removeprefix("^"), ()) for hint in hinted[row]}
        for match in _matches(_pattern(row), text, places, overlapping=bool(judgment), spans=spans):
            if found := _judge_match(kind, match, *judgment):
                yield found


def _judge_match(kind: str, match: re.Match[str], judgment: str = "") -> Secret | None:
    """The secret of a match, unless its value is a placeholder, a mask or a word, or looks less like a secret than the row requires."""
    group = "secret" if match.re.groupindex.get("secret") and match["secret"] else 0
    value = trim_value(match[group], match.string, match.end(group)) if judgment else match[group]
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
    """The matches of a pattern at its hints, or around them; `overlapping` if a harmless match may contain another."""
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
    yield from _matches_in(pattern, text, join_windows(around, _BEFORE_HINT, _BEHIND_HINT))


def _matches_in(pattern: re.Pattern[str], text: str, spans: Iterable[tuple[int, int]]) -> Iterator[re.Match[str]]:
    for begin, stop in spans:
        while match := pattern.search(text, begin, stop):
            begin = max(match.end(), match.start() + 1)
            # A match cut off at the end of the span is matched again in full.
            whole = pattern.match(text, match.start()) if match.end() == stop else match
            if whole is not None:
                yield whole


def _long_runs(text: str) -> list[tuple[int, int]]:
    """The spans around long runs of letters and digits, joined if they touch."""
    spans: list[tuple[int, int]] = []
    for run in _LONG_RUN.finditer(text):
        begin, stop = max(0, run.start() - _AROUND_LONG), run.end() + _AROUND_LONG
        if spans and begin <= spans[-1][1]:
            begin = spans.pop()[0]
        spans.append((begin, stop))
    return spans
