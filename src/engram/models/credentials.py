"""Judges whether a span of text is a credential written in prose: a door code, a password, a security answer.

A linear model over the shape of the span and the words around it. `credential_cues.txt` groups words of some twenty
languages, so that what the model learns in one language applies to others. Trained by training/train_secrets.py on
texts by several writers.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import combinations
from pathlib import Path

from engram.models.weights import Linear
from engram.text.words import stop_words

__all__ = [
    "MARGIN",
    "MODEL",
    "REACH",
    "RULE_MARGIN",
    "TextTokens",
    "cue_places",
    "cue_stems",
    "groups_of",
    "is_known_word",
    "shape_of",
]

MODEL = Linear("credentials.bin", ("credential",), 1 << 18)
MARGIN = 96
"""A credential scores more than this, in stored weights."""
RULE_MARGIN = -128
"""A span that a rule classifies as a credential must score more than this."""

_CUES = Path(__file__).with_name("credential_cues.txt")
_LAST_OPENING = "spelled"
_WORDS_BEFORE, _WORDS_BEHIND = 16, 9
_FIRST = 2
"""The number of letters by which word beginnings are looked up; none is shorter."""
_NEAR, _MIDDLE = 2, 6
_BREAK = "\n;\n"
"""The separator between records that are read together; words after it do not count."""
_TOKEN = re.compile(
    r"\n;\n|[^\W\d_]++(?:['’-][^\W\d_]++)*+(?![\w@]|\.\w)|[\w.+-]{1,64}@[\w-]{1,64}\.[\w.-]{1,64}|[^\W_]++(?:\.[^\W_]++)++|[^\W_]+(?:['’-][^\W\d_]+)*|[^\s\w]|_|\n"
)
_LETTERS = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
_SIGNS_ONLY = re.compile(r"[^\W_]+")
REACH = 200
"""The number of characters before and after a span in which words count."""
_QUOTES = frozenset("\"'`“”„«»‘’「」『』")
_ENDS = frozenset(".!?\n;")
_STRONG = frozenset(("pass", "ask", "wifi", "vault", "spelled"))
_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
_LINKS = frozenset(("is", "with", "set", "use", "time", "unit"))
"""Groups of words that connect other words rather than name a thing."""
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
_FEWEST_OF_PHONE, _MOST_OF_PHONE = 9, 13
"""The number of digits of a phone number; a PIN has fewer."""
_MOST_RUNS = 5
_MOST_WORDS = 9
_SPELLED = frozenset(("spelled", "parts"))
_COARSE = {"number": "digits", "keypad": "digits", "word": "words", "phrase": "words", "spelled": "words"}
"""Kinds of spans that are treated alike; the others are strings."""
_SIGN = re.compile(r"[^\w]|_")
_WORDS_IN = re.compile(r"[A-ZÀ-ÖØ-Þ]?[a-zà-öø-ÿ]{2,}|[A-Z]{2,}|[^\W\d_]{3,}")
_LEET = dict(zip("01345@$!7", "oieasasit", strict=True))
_LEET_SIGN = re.compile(r"(?<=[^\W\d_])[01345@$!7](?=[^\W\d_])")
_UNSPEAKABLE = re.compile(r"\A[^aeiouyäöüáéíóúàèìòùâêîôûåøœæı]+\Z|[bcdfghjklmnpqrstvwxz]{5}|[aeiouy]{4}")
_SHORT_RUN = 3
_MOST_PATTERN = 12


def is_known_word(word: str) -> bool:
    """Whether a lower-case word is in the vocabulary of the embedding."""
    return word in _vocabulary()


class _Cues:
    """The groups of words, prepared for look-up."""

    def __init__(self, lines: Iterable[str]) -> None:
        self.whole: dict[str, list[str]] = {}
        self.begun: dict[str, list[tuple[str, str]]] = {}
        """Word beginnings with their groups, by their first letters."""
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

        self._ends = tuple(stem for stem, _ in self.ended)
        self._inside = re.compile("|".join(re.escape(stem) for stem, _ in self.inside))

    def may_have(self, word: str) -> bool:
        """Whether a word may have a group: a fast test that rules out most words."""
        return (
            word in self.whole
            or "-" in word
            or any(word.startswith(stem) for stem, _ in self.begun.get(word[:_FIRST], ()))
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
            self.begun.setdefault(stem[:_FIRST], []).append((stem, group))
        else:
            self.whole.setdefault(stem, []).append(group)


@lru_cache(maxsize=1)
def _cues() -> _Cues:
    lines = _CUES.read_text("utf-8").splitlines()
    return _Cues(line for line in lines if line.strip() and not line.startswith("#"))


@lru_cache(maxsize=1)
def cue_stems() -> frozenset[str]:
    """The words, or their stems, of which a text must contain one to be examined."""
    return frozenset(_cues().opening)


def cue_places(lowered: str, stems: Mapping[str, Sequence[int]]) -> list[tuple[int, int, bool]]:
    """The positions of the words for access, in order, each with whether plain words after it may be a credential.

    `stems` are those of `cue_stems` that occur in the text, at least as parts of words, with their positions.
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
    """The span of the word at a position, including hyphenated parts."""
    start = place + (lowered[place] == "-")
    while _is_letter(lowered[start - 1 : start]) or (
        lowered[start - 1 : start] == "-" and _is_letter(lowered[start - 2 : start - 1])
    ):
        start -= 1
    found = _WORD.match(lowered, start)
    return found.span() if found is not None else (place, place + 1)


def _is_letter(char: str) -> bool:
    """Whether `_WORD` matches it as a letter."""
    return char.isalnum() and not char.isdecimal()


@lru_cache(maxsize=16_384)
def _level(word: str) -> int:
    """0 for any word, 1 for a word for access, 2 for one after which plain words are judged."""
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
        *(group for stem, group in cues.begun.get(word[:_FIRST], ()) if word.startswith(stem)),
        *(group for stem, group in cues.inside if stem in word),
        *(group for stem, group in cues.ended if word.endswith(stem)),
    ]
    if not found and "-" in word:
        found = [group for part in word.split("-") for group in groups_of(part)]
    return tuple(dict.fromkeys(found))


_PlacedToken = tuple[str, str, str, str, str, tuple[str, ...]]
"""The kind of a span and its coarse kind; on which side of it a token is, and how far away; the token and its
groups.
"""


class TextTokens:
    """The tokens of a text with their groups, read once for all spans of the text."""

    __slots__ = ("_ends", "_groups", "_marks", "_starts", "_tokens", "text")

    def __init__(self, text: str, lowered: str) -> None:
        self.text = text
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._tokens: list[str] = []
        for match in _TOKEN.finditer(lowered):
            token = match[0]
            if token not in _QUOTES:
                self._starts.append(match.start())
                self._ends.append(match.end())
                self._tokens.append(token if token.isalpha() else _normal(token))
        self._groups = [groups_of(token) for token in self._tokens]
        self._add_phrases()
        self._marks = [place for place, groups in enumerate(self._groups) if groups or self._tokens[place] == _BREAK]

    def _add_phrases(self) -> None:
        """Give the group of a phrase to its last word."""
        phrases, tokens = _cues().phrases, self._tokens
        for place, token in enumerate(tokens):
            for words, group in phrases.get(token, ()):
                last = place + len(words) - 1
                if tuple(tokens[place : last + 1]) == words and group not in self._groups[last]:
                    self._groups[last] = (group, *self._groups[last])

    def score(self, start: int, end: int, tags: Sequence[str] = ()) -> int:
        """The score of a span as a credential, from its shape and the words around it, in stored weights."""
        kind, alone, tokens, pairs = self._describe(start, end, tags)
        return (
            MODEL.sums(alone)[0]
            + sum([_score_of_token(*token) for token in tokens])
            + sum([_score_of_pair(kind, one, two) for one, two in pairs])
        )

    def features(self, start: int, end: int, tags: Sequence[str] = ()) -> list[str]:
        """The features of a span; used for training."""
        kind, alone, tokens, pairs = self._describe(start, end, tags)
        return [
            *alone,
            *(feature for token in tokens for feature in _of_token(*token)),
            *(feature for pair in pairs for feature in _of_pair(kind, *pair)),
        ]

    def _describe(
        self, start: int, end: int, tags: Sequence[str]
    ) -> tuple[str, list[str], list[_PlacedToken], list[tuple[str, str]]]:
        """The kind of a span, its own features, the tokens around it, and the pairs of groups around it."""
        kind, looks = shape_of(self.text[start:end])
        coarse = _COARSE.get(kind, "string")
        first, last = bisect_right(self._ends, start), bisect_left(self._starts, end)
        begin, stop = bisect_left(self._starts, start - REACH), bisect_right(self._ends, end + REACH)
        before = range(first - 1, max(begin, first - _WORDS_BEFORE) - 1, -1)
        behind = range(last, min(stop, last + _WORDS_BEHIND))
        placed: list[_PlacedToken] = []
        near: set[str] = set()
        for side, places in (("b", before), ("a", behind)):
            place = "n"
            for distance, at in enumerate(places):
                token, groups = self._tokens[at], self._groups[at]
                if token == _BREAK:
                    break
                place = _place(place, distance, token)
                placed.append((kind, coarse, side, place, token, groups))
                if groups and place != "o":
                    near.update(side + group for group in groups)
        alone = ["1", kind, coarse, *(f"{kind} {look}" for look in looks), *(f"{coarse} {look}" for look in looks)]
        alone += [f"{one}{tag}" for tag in tags for one in ("", kind + " ", coarse + " ")]
        alone += self._lead_features(kind, coarse, before, behind)
        alone += self._topic_features(coarse, range(begin, first), range(last, stop))
        alone += self._frame_features(kind, coarse, start, end)
        return kind, alone, placed, [*combinations(sorted(near), 2)]

    def _lead_features(self, kind: str, coarse: str, before: range, behind: range) -> Iterator[str]:
        """The words next to the span in order, and the nearest word before it that names a thing."""
        b0, b1, b2 = (self._label(before, at) for at in range(3))
        a0, a1 = self._label(behind, 0), self._label(behind, 1)
        nearest = next((group for at in before for group in self._groups[at] if group not in _LINKS), "")
        for one in (kind, coarse):
            yield f"{one} lead {b0}"
            yield f"{one} nearest {nearest}"
            yield f"{one} lead {b0} {nearest}"
            yield f"{one} leads {b1} {b0}"
            yield f"{one} next {a0}"
            yield f"{one} nexts {a0} {a1}"
            yield f"{one} between {b0} {a0}"
        yield f"lead {b0} {nearest}"
        yield f"leads {b1} {b0}"
        yield f"leads {b2} {b1} {b0}"
        yield f"nexts {a0} {a1}"
        yield f"between {b1} {b0} {a0}"

    def _label(self, places: range, at: int) -> str:
        """The group of a word next to the span, or the word itself."""
        if at >= len(places) or self._tokens[places[at]] == _BREAK:
            return ""
        groups = self._groups[places[at]]
        return groups[0] if groups else self._tokens[places[at]]

    def _topic_features(self, coarse: str, before: range, behind: range) -> Iterator[str]:
        """The groups of all words around the span, at any distance."""
        topics: set[str] = set()
        marks = self._marks
        for mark in reversed(marks[bisect_left(marks, before.start) : bisect_left(marks, before.stop)]):
            if self._tokens[mark] == _BREAK:
                break
            topics.update(self._groups[mark])
        for mark in marks[bisect_left(marks, behind.start) : bisect_left(marks, behind.stop)]:
            if self._tokens[mark] == _BREAK:
                break
            topics.update(self._groups[mark])
        for topic in topics:
            yield f"topic {topic}"
            yield f"{coarse} topic {topic}"

    def _frame_features(self, kind: str, coarse: str, start: int, end: int) -> Iterator[str]:
        """The punctuation around the span, and whether it begins or ends its line."""
        before, behind = self.text[max(0, start - 3) : start], self.text[end : end + 3]
        opening, closing = _SIGNS_ONLY.sub("a", before), _SIGNS_ONLY.sub("a", behind)
        ends = "end" if not behind.strip() or behind.lstrip(" .!\"')")[:1] in ("", "\n") else "inside"
        begins = "start" if not before.strip() or before.rstrip(" ")[-1:] in ("", "\n") else "inside"
        for one in (kind, coarse):
            yield f"{one} opening {opening}"
            yield f"{one} closing {closing}"
            yield f"{one} frame {opening[-1:]} {closing[:1]}"
            yield f"{one} line {begins} {ends}"


def _normal(token: str) -> str:
    """A token that is not a plain word, as features represent it: no feature repeats a number or an unusual word."""
    if token[0].isdigit() and token.isdigit():
        return "0"
    if len(token) == 1 or token == _BREAK:
        return token
    if "@" in token:
        return "@mail"
    if "." in token:
        return "0" if token.replace(".", "").isdigit() else "@dotted"
    letters = _LETTERS.match(token)
    if letters is None:
        return "0"
    return letters[0] if len(letters[0]) == len(token) or groups_of(letters[0]) else "@mixed"


def _place(before: str, distance: int, token: str) -> str:
    """The distance of a token: near, middle, far, or in another sentence, which includes all tokens beyond that."""
    if before == "o" or token in _ENDS:
        return "o"
    return "n" if distance <= _NEAR else "m" if distance <= _MIDDLE else "f"


@lru_cache(maxsize=32_768)
def _score_of_token(kind: str, coarse: str, side: str, place: str, token: str, groups: tuple[str, ...]) -> int:
    """The contribution of a token to the score of a span, cached because the same words surround many spans."""
    return MODEL.sums(_of_token(kind, coarse, side, place, token, groups))[0]


@lru_cache(maxsize=32_768)
def _score_of_pair(kind: str, one: str, two: str) -> int:
    """The contribution of two groups of words to the score of a span."""
    return MODEL.sums(_of_pair(kind, one, two))[0]


def _of_pair(kind: str, one: str, two: str) -> list[str]:
    return [f"{one} {two}", f"{kind} {one} {two}"]


def _of_token(kind: str, coarse: str, side: str, place: str, token: str, groups: tuple[str, ...]) -> list[str]:
    """The features of a token, with every digit as 0."""
    found: list[str] = []
    for group in groups:
        found += (f"{side}{place} {group}", f"{kind} {side}{place} {group}", f"{coarse} {side}{place} {group}")
    if place != "o":
        if token[0].isalpha() and len(token) >= _LONG_WORD:
            found += (f"{side} ~{token[:_PART]}", f"{side} ~{token[-_PART:]}")
        found += (f"{side} {token}", f"{coarse} {side} {token}")
    if place == "n":
        found += (f"{side}n {token}", f"{kind} {side}n {token}")
    return found


def shape_of(value: str) -> tuple[str, list[str]]:
    """The kind of a span by its form, and features of it; none of them repeats the span itself."""
    size = len(value)
    digits = sum(map(str.isdigit, value))
    looks = [f"size {min(size, _LONG) // 2}"]
    if _HEX.fullmatch(value):
        return "hex", [f"size {size}"]
    if _NUMBER.fullmatch(value):
        sizes = "-".join(str(len(part)) for part in re.split(r"[ -]+", value.strip("#*")))
        looks = [f"digits {digits}", f"sizes {sizes}", *(["signed"] if value[0] in "#*" or value[-1] in "#*" else [])]
        looks += ["spaced"] if " " in value else ["hyphened"] if "-" in value else []
        return "number", looks + _number_looks(value)
    if digits and 2 * digits >= size and _KEYPAD.fullmatch(value):
        return "keypad", [*looks, "pattern " + _pattern_of(value)]
    if "," in value:
        return "spelled", [f"items {min(value.count(','), 8)}"]
    if digits and _GROUPS.fullmatch(value):
        return "groups", [f"sizes {'-'.join(str(len(part)) for part in re.split('[ -]', value))}"]
    if " " in value:
        return "phrase", _phrase_looks(value)
    if value.isalpha():
        known = "known" if value.lower() in _vocabulary() else "compound" if _is_compound(value.lower()) else "unknown"
        case = "lower" if value.islower() else "title" if value.istitle() else "upper" if value.isupper() else "camel"
        return "camel" if case == "camel" else "word", [*looks, case, known, f"{case} {known}"]
    runs = [run.lastgroup or "" for run in _RUNS.finditer(value)]
    pattern = " ".join(dict.fromkeys(runs)) if len(runs) > _MOST_RUNS else " ".join(runs)
    looks += [
        f"runs {min(len(runs), 12)}",
        pattern,
        f"ends {runs[-1]}",
        "pattern " + _pattern_of(value)[:_MOST_PATTERN],
    ]
    looks += _word_looks(value)
    looks += ("sign " + sign for sign in sorted(set(_SIGN.findall(value))))
    if not digits:
        return "joined", looks
    kind = "random" if len(runs) > _MOST_RUNS and runs.count("word") + runs.count("title") < 2 else "mixed"
    return kind, [*looks, f"digits {min(digits, 9)}", f"share {4 * digits // size}"]


def _pattern_of(value: str) -> str:
    """The runs of a value, each as one letter, with the signs between them: "Marigold-77!" becomes "Ww-00!"."""
    return _RUNS.sub(_run_sign, value)


def _run_sign(run: re.Match[str]) -> str:
    size = run.end() - run.start()
    match run.lastgroup:
        case "word":
            return "w" if size > _SHORT_RUN else "v"
        case "title":
            return "W"
        case "capitals":
            return "C" if size > _SHORT_RUN else "D"
        case "digits":
            return "0" * min(size, 5)
        case "letter":
            return "a" if run[0].islower() else "A"
    return run[0]


def _word_looks(value: str) -> Iterator[str]:
    """How many of a value's letters belong to words, including words with digits and signs in place of letters."""
    words = [word.lower() for word in _WORDS_IN.findall(value)]
    vocabulary = _vocabulary()
    known = sum(len(word) for word in words if word in vocabulary)
    letters = sum(map(len, words))
    yield f"words {min(len(words), 4)}"
    yield f"known {4 * known // max(1, letters)}"
    yield f"wordy {sum(_is_wordy(word) for word in words if len(word) > _SHORT_RUN)}"
    yield f"letters {4 * letters // len(value)}"
    plain = _LEET_SIGN.sub(lambda sign: _LEET[sign[0]], value.lower())
    if plain != value.lower():
        longest = max(_WORDS_IN.findall(plain), key=len)
        yield f"leet {longest in vocabulary} {len(longest) > _SHORT_RUN and _is_wordy(longest)}"


def _is_compound(word: str) -> bool:
    """Whether the text is two or three known words written as one."""
    vocabulary, size = _vocabulary(), len(word)
    if not 2 * _SHORT_RUN <= size <= _LONG:
        return False
    ends = {0}
    for _ in range(3):
        ends = {
            end
            for start in ends
            for end in range(start + _SHORT_RUN, min(size, start + 12) + 1)
            if word[start:end] in vocabulary
        }
        if size in ends:
            return True
    return False


def _is_wordy(word: str) -> bool:
    """Whether vowels and consonants alternate as in a word."""
    return _UNSPEAKABLE.search(word) is None


def _number_looks(value: str) -> list[str]:
    zero = value.lstrip("#*")[0] == "0"
    digits = sum(map(str.isdigit, value))
    looks = ["zero"] if zero else []
    if _FEWEST_OF_PHONE <= digits <= _MOST_OF_PHONE:
        looks += ["long number", *(["phone"] if zero else ["grouped"] if " " in value or "-" in value else [])]
    return [*looks, "year"] if _YEAR.fullmatch(value) else looks


def _phrase_looks(value: str) -> list[str]:
    words = value.split()
    known = sum(word.lower() in _vocabulary() for word in words)
    links = sum(not _LINKS.isdisjoint(groups_of(word.lower())) for word in words)
    said = {group for word in words for group in groups_of(word.lower())}
    spelled = sum(not _SPELLED.isdisjoint(groups_of(word.lower())) for word in words)
    plain = sum(word.lower() in stop_words() for word in words)
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
def _vocabulary() -> frozenset[str]:
    """The words of the bundled embedder. A word that is not among them is a name or not an ordinary English word."""
    path = Path(__file__).parent.parent / "embedding" / "data" / "vocabulary.txt"
    return frozenset(map(str.strip, path.read_text("utf-8").splitlines()))
