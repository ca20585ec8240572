"""Judges whether a span of a text is a credential that somebody tells in prose: a door code, a password, a security answer.

A linear model over the shape of the span and the words around it. `credential_cues.txt` groups words of some twenty languages,
so that what was learned of one language holds in another. Trained by training/train_secrets.py on texts by several writers.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import combinations
from pathlib import Path

from engram.models.linear import Linear
from engram.text.word_tables import read_table

__all__ = [
    "BEFORE",
    "BEHIND",
    "MARGIN",
    "MODEL",
    "cue_places",
    "cue_stems",
    "features",
    "groups_of",
    "is_credential",
    "shape_of",
]

MODEL = Linear("credentials.bin", ("credential",), 1 << 16)
MARGIN = 0
"""A credential scores more than this, in stored weights."""

_CUES = Path(__file__).with_name("credential_cues.txt")
_LAST_OPENING = "spelled"
BEFORE, BEHIND = 140, 90
"""Characters of context before and after a span."""
_WORDS_BEFORE, _WORDS_BEHIND = 16, 9
_NEAR, _MIDDLE = 2, 6
_TOKEN = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*|\d+|[^\s\w]|_|\n")
_QUOTES = frozenset("\"'`“”„«»‘’「」『』")
_ENDS = frozenset(".!?\n;")
_STRONG = frozenset(("pass", "ask", "wifi", "vault", "spelled"))
_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
_LINKS = frozenset(("is", "with", "set", "use", "time", "unit"))
"""Groups of words that link others rather than name a thing."""
_PART = 4
_LONG_WORD = 6
_LONG = 24
_HEX = re.compile(r"(?:0x)?[0-9a-fA-F]{16,}")
_NUMBER = re.compile(r"[#*]?[\d -]*\d[#*]?")
_KEYPAD = re.compile(r"[A-Z0-9#*-]{3,8}")
_GROUPS = re.compile(r"[A-Z0-9]{3,6}(?:[ -][A-Z0-9]{3,6}){2,8}")
_YEAR = re.compile(r"(?:19|20)\d\d")
_RUNS = re.compile(
    r"(?P<word>[a-zà-öø-ÿ]{2,}|[^\W\d_A-Za-z]{2,})|(?P<title>[A-ZÀ-ÖØ-Þ][a-zà-öø-ÿ]+)|(?P<capitals>[A-Z]{2,})|(?P<digits>\d+)|(?P<sign>[^\w\s]|_)|(?P<letter>[^\W\d_])|\s+"
)
_MOST_RUNS = 5
_MOST_WORDS = 9
_SPELLED = frozenset(("spelled", "parts"))


class _Cues:
    """The groups of words, prepared for look-up."""

    def __init__(self, lines: Iterable[str]) -> None:
        self.whole: dict[str, list[str]] = {}
        self.begun: list[tuple[str, str]] = []
        self.inside: list[tuple[str, str]] = []
        self.ended: list[tuple[str, str]] = []
        self.phrases: dict[str, list[tuple[tuple[str, ...], str]]] = {}
        self.opening: list[str] = []
        self.opening_groups: set[str] = set()
        self.spaced: dict[str, str] = {}
        group, opens = "", True
        for line in lines:
            if line.startswith("["):
                opens = opens and group != _LAST_OPENING
                group = line.strip()[1:-1]
                continue
            for entry in filter(None, map(str.strip, line.split(","))):
                self._add(entry, group)
                if opens:
                    self._open(entry.strip("*"), group)

        self._starts = tuple(stem for stem, _ in self.begun)
        self._ends = tuple(stem for stem, _ in self.ended)
        self._inside = re.compile("|".join(re.escape(stem) for stem, _ in self.inside))

    def may_have(self, word: str) -> bool:
        """Whether a word may have a group; nearly none has, and this tells it fast."""
        return (
            word in self.whole
            or "-" in word
            or word.startswith(self._starts)
            or word.endswith(self._ends)
            or self._inside.search(word) is not None
        )

    def _open(self, stem: str, group: str) -> None:
        self.opening.append(stem)
        self.opening_groups.add(group)
        if " " in stem:
            self.spaced[stem] = group

    def _add(self, entry: str, group: str) -> None:
        stem = entry.strip("*")
        if " " in entry:
            words = tuple(_TOKEN.findall(stem))
            self.phrases.setdefault(words[0], []).append((words, group))
        elif entry.startswith("*"):
            (self.inside if entry.endswith("*") else self.ended).append((stem, group))
        elif entry.endswith("*"):
            self.begun.append((stem, group))
        else:
            self.whole.setdefault(stem, []).append(group)


@lru_cache(maxsize=1)
def _cues() -> _Cues:
    lines = _CUES.read_text("utf-8").splitlines()
    return _Cues(line for line in lines if line.strip() and not line.startswith("#"))


@lru_cache(maxsize=1)
def cue_stems() -> frozenset[str]:
    """The words, or their stems, without one of which no text is looked at."""
    return frozenset(_cues().opening)


def cue_places(lowered: str, stems: Mapping[str, Sequence[int]]) -> list[tuple[int, int, bool]]:
    """Where the words for access are, in order, each with whether plain words behind it may be a credential.

    `stems` are those of `cue_stems` that occur in the text, as parts of words at least, with their places.
    """
    spaced = _cues().spaced
    found: list[tuple[int, int, bool]] = []
    end = 0
    for place in sorted({place for stem in stems.keys() - spaced.keys() for place in stems[stem]}):
        if place < end:
            continue
        start, end = _word_around(lowered, place)
        if level := _level(lowered[start:end]):
            found.append((start, end, level > 1))
    for phrase in stems.keys() & spaced.keys():
        found += [(place, place + len(phrase), spaced[phrase] in _STRONG) for place in stems[phrase]]
    return sorted(found)


def _word_around(lowered: str, place: int) -> tuple[int, int]:
    """The span of the word, with what hyphens join to it, that has a letter or a hyphen at a place."""
    start = place + (lowered[place] == "-")
    while _is_letter(lowered[start - 1 : start]) or (
        lowered[start - 1 : start] == "-" and _is_letter(lowered[start - 2 : start - 1])
    ):
        start -= 1
    found = _WORD.match(lowered, start)
    return found.span() if found is not None else (place, place + 1)


def _is_letter(char: str) -> bool:
    """Whether `_WORD` takes it for a letter."""
    return char.isalnum() and not char.isdecimal()


@lru_cache(maxsize=16_384)
def _level(word: str) -> int:
    """0 for any word, 1 for a word for access, 2 for one behind which plain words are judged."""
    groups = groups_of(word)
    return 2 if not _STRONG.isdisjoint(groups) else int(not _cues().opening_groups.isdisjoint(groups))


@lru_cache(maxsize=16_384)
def groups_of(word: str) -> tuple[str, ...]:
    """The groups of a lower-case word."""
    cues = _cues()
    if not cues.may_have(word):
        return ()
    found = [
        *cues.whole.get(word, ()),
        *(group for stem, group in cues.begun if word.startswith(stem)),
        *(group for stem, group in cues.inside if stem in word),
        *(group for stem, group in cues.ended if word.endswith(stem)),
    ]
    if not found and "-" in word:
        found = [group for part in word.split("-") for group in groups_of(part)]
    return tuple(dict.fromkeys(found))


def is_credential(text: str, start: int, end: int) -> bool:
    """Whether the span is a credential, by its shape and the words around it."""
    opening, tokens, closing = _described(text, start, end)
    return MODEL.sums([*opening, *closing])[0] + sum(_score_of_token(*token) for token in tokens) > MARGIN


def features(text: str, start: int, end: int) -> list[str]:
    """The features of a span; used for training."""
    opening, tokens, closing = _described(text, start, end)
    return [*opening, *(feature for token in tokens for feature in _of_token(*token)), *closing]


_PlacedToken = tuple[str, str, str, str, tuple[str, ...]]
"""The kind of a span, and on which side of it a token is, how far away, the token and its groups."""


def _described(text: str, start: int, end: int) -> tuple[list[str], list[_PlacedToken], list[str]]:
    """The features of a span's shape, the tokens around it, and the features of these together."""
    kind, looks = shape_of(text[start:end])
    before = _TOKEN.findall(text[max(0, start - BEFORE) : start].lower())
    behind = _TOKEN.findall(text[end : end + BEHIND].lower())
    if before and before[-1] in _QUOTES:
        looks = [*looks, "quoted"]
    before = _grouped([token for token in before if token not in _QUOTES][-_WORDS_BEFORE:])[::-1]
    behind = _grouped([token for token in behind if token not in _QUOTES][:_WORDS_BEHIND])
    placed: list[_PlacedToken] = []
    said: set[str] = set()
    for side, tokens in (("b", before), ("a", behind)):
        place = "n"
        for distance, (token, groups) in enumerate(tokens):
            place = _place(place, distance, token)
            placed.append((kind, side, place, "0" if token[0].isdigit() else token, groups))
            if groups and place != "o":
                said.update(side + group for group in groups)
    closing = [*_of_lead(kind, before), f"{kind} next {behind[0][0] if behind else ''}"]
    for one, two in combinations(sorted(said), 2):
        closing += (f"{one} {two}", f"{kind} {one} {two}")
    return ["1", kind, *(f"{kind} {look}" for look in looks)], placed, closing


def _of_lead(kind: str, before: list[tuple[str, tuple[str, ...]]]) -> Iterator[str]:
    """What leads to the span: the group of the word before it, or the sign; and the nearest word that names a thing."""
    token, groups = before[0] if before else ("", ())
    lead = groups[0] if groups else token
    nearest = next((group for _, groups in before for group in groups if group not in _LINKS), "")
    yield f"{kind} lead {lead}"
    yield f"{kind} nearest {nearest}"
    yield f"{kind} lead {lead} {nearest}"
    yield f"lead {lead} {nearest}"


def _grouped(tokens: list[str]) -> list[tuple[str, tuple[str, ...]]]:
    """Each token with its groups; a phrase gives its group to its last word."""
    found = [(token, groups_of(token)) for token in tokens]
    phrases = _cues().phrases
    for place, token in enumerate(tokens):
        for words, group in phrases.get(token, ()):
            last = place + len(words) - 1
            if tuple(tokens[place : last + 1]) == words and group not in found[last][1]:
                found[last] = (tokens[last], (group, *found[last][1]))
    return found


def _place(before: str, distance: int, token: str) -> str:
    """How far away a token is: near, middle, far, or in another sentence, as all behind it are."""
    if before == "o" or token in _ENDS:
        return "o"
    return "n" if distance <= _NEAR else "m" if distance <= _MIDDLE else "f"


@lru_cache(maxsize=32_768)
def _score_of_token(kind: str, side: str, place: str, token: str, groups: tuple[str, ...]) -> int:
    """What a token adds to the score of a span; the same words are around many spans."""
    return MODEL.sums(_of_token(kind, side, place, token, groups))[0]


def _of_token(kind: str, side: str, place: str, token: str, groups: tuple[str, ...]) -> list[str]:
    """The features of a token, in which every number is 0."""
    found: list[str] = []
    for group in groups:
        found += (f"{side}{place} {group}", f"{kind} {side}{place} {group}")
    if token[0].isalpha() and len(token) >= _LONG_WORD:
        found += (f"{side} ~{token[:_PART]}", f"{side} ~{token[-_PART:]}")
    if place != "o":
        found.append(f"{side} {token}")
    if place == "n":
        found.append(f"{kind} {side}n {token}")
    return found


def shape_of(value: str) -> tuple[str, list[str]]:
    """The kind of a span by its looks, and features of it; nothing that repeats the span itself."""
    size = len(value)
    digits = sum(map(str.isdigit, value))
    looks = [f"size {min(size, _LONG) // 2}"]
    if _HEX.fullmatch(value):
        return "hex", [f"size {size}"]
    if _NUMBER.fullmatch(value):
        sizes = "-".join(str(len(part)) for part in re.split(r"[ -]+", value.strip("#*")))
        looks = [f"digits {digits}", f"sizes {sizes}", *(["signed"] if value[0] in "#*" or value[-1] in "#*" else [])]
        return "number", looks + _number_looks(value)
    if digits and 2 * digits >= size and _KEYPAD.fullmatch(value):
        return "keypad", looks
    if "," in value:
        return "spelled", [f"items {min(value.count(','), 8)}"]
    if digits and _GROUPS.fullmatch(value):
        return "groups", [f"sizes {'-'.join(str(len(part)) for part in re.split('[ -]', value))}"]
    if " " in value:
        return "phrase", _phrase_looks(value)
    if value.isalpha():
        known = "known" if value.lower() in _vocabulary() else "unknown"
        case = "lower" if value.islower() else "title" if value.istitle() else "upper" if value.isupper() else "camel"
        return "camel" if case == "camel" else "word", [*looks, case, known, f"{case} {known}"]
    runs = [run.lastgroup or "" for run in _RUNS.finditer(value)]
    pattern = " ".join(dict.fromkeys(runs)) if len(runs) > _MOST_RUNS else " ".join(runs)
    looks += [f"runs {min(len(runs), 12)}", pattern, f"ends {runs[-1]}"]
    if not digits:
        return "joined", [*looks, *("sign " + sign for sign in sorted(set(re.findall(r"[^\w]|_", value))))]
    kind = "random" if len(runs) > _MOST_RUNS and runs.count("word") + runs.count("title") < 2 else "mixed"
    return kind, looks


def _number_looks(value: str) -> list[str]:
    looks = ["zero"] if value.lstrip("#*")[0] == "0" else []
    return [*looks, "year"] if _YEAR.fullmatch(value) else looks


def _phrase_looks(value: str) -> list[str]:
    words = value.split()
    known = sum(word.lower() in _vocabulary() for word in words)
    links = sum(not _LINKS.isdisjoint(groups_of(word.lower())) for word in words)
    said = {group for word in words for group in groups_of(word.lower())}
    spelled = sum(not _SPELLED.isdisjoint(groups_of(word.lower())) for word in words)
    plain = sum(word.lower() in _plain_words() for word in words)
    titles = sum(word[:1].isupper() for word in words)
    small = sum(len(word) < _PART for word in words)
    looks = [
        f"first {words[0].lower()}" if len(words[0]) <= _PART else "first long",
        f"small {4 * small // len(words)}",
        f"plain {min(plain, 3)}",
        f"plain {4 * plain // len(words)} of 4",
    ]
    looks += [
        f"words {len(words)}",
        f"known {4 * known // len(words)}",
        f"links {min(links, 3)}",
        f"titles {min(titles, 3)}",
    ]
    if len(words) > _MOST_WORDS or spelled * 2 > len(words):
        looks = [f"spelled {4 * spelled // len(words)}", "long" if len(words) > _MOST_WORDS else "short"]
    return [*looks, *("says " + group for group in sorted(said))]


@lru_cache(maxsize=1)
def _plain_words() -> frozenset[str]:
    """The words that join others: a sentence has several, a passphrase few."""
    return frozenset(word for row in read_table("stopwords.txt") for word in row)


@lru_cache(maxsize=1)
def _vocabulary() -> frozenset[str]:
    """The words of the bundled embedder: what is not among them is a name or no ordinary English word."""
    path = Path(__file__).parent.parent / "embedding" / "data" / "vocabulary.txt"
    return frozenset(map(str.strip, path.read_text("utf-8").splitlines()))
