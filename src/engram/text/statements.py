"""Parses a statement for comparison: its words in order, its numbers, its negations, and whether it is about the
future.
"""

import re
import unicodedata
from collections.abc import Collection, Iterator
from functools import lru_cache

from engram.model.lazy import dataclass, lazy_pattern
from engram.text.confusables import fold_text, normalize_forms
from engram.text.words import read_table, stem, word_class

__all__ = [
    "NOT",
    "NUMBER",
    "NormalizedStatement",
    "Number",
    "asks_about_now",
    "canonical_stem",
    "is_contrastive",
    "is_converse",
    "is_only_planned",
    "is_opposite",
    "is_plan",
    "is_rival",
    "normalize_statement",
    "number_of",
    "numbers",
]


@dataclass(frozen=True, slots=True)
class Number:
    """One number in a text. Two numbers are equal if they have the same kind, value and unit; the position does not
    count.
    """

    kind: str
    """quantity, version, time, date, address or reference (an issue number)."""
    value: str
    unit: str = ""

    def __str__(self) -> str:
        return f"{self.value} {self.unit}".strip()


_SPACE = "[ \u00a0\u2009\u202f]"
_FREE = r"(?<![A-Za-z0-9_.])"  # not inside an identifier; scripts without spaces may touch a number
_END = r"(?![A-Za-z0-9_])"

# Every alternative starts with a fixed class and never backtracks: linear on any input.
NUMBER = lazy_pattern(
    "|".join(
        (
            rf"(?P<reference>(?<![\w&])\#\d{{1,9}}{_END})",
            rf"{_FREE}(?P<date>\d{{4}}-\d{{2}}-\d{{2}}(?:[T ]\d{{2}}:\d{{2}}(?::\d{{2}})?)?"
            rf"|\d{{1,2}}[/.]\d{{1,2}}[/.]\d{{4}}){_END}",
            rf"{_FREE}(?P<address>\d{{1,3}}(?:\.\d{{1,3}}){{3}}(?:[:/]\d{{1,5}})?){_END}",
            rf"{_FREE}(?P<time>(?:[01]?\d|2[0-3]):[0-5]\d(?::[0-5]\d)?(?:{_SPACE}?[ap]\.?m\b)?"
            rf"|(?:1[0-2]|[1-9]){_SPACE}?[ap]\.?m\b)",
            rf"{_FREE}(?P<version>[vV]\d{{1,6}}(?:\.\d{{1,6}}){{0,4}}|\d{{1,6}}(?:\.\d{{1,6}}){{2,4}}){_END}",
            rf"{_FREE}(?P<quantity>[-+−]?\d{{1,3}}(?:(?:[,'’\u00a0\u2009\u202f]\d{{3}})+"
            rf"|(?: \d{{3}}){{0,3}} \d00)(?:\.\d{{1,12}})?(?!\d)|[-+−]?\d{{1,40}}(?:\.\d{{1,12}})?(?!\d)"
            rf"|[-+−]?\.\d{{1,12}})(?:{_SPACE}?(?P<unit>%|[^\W\d_]{{1,12}}))?",
        )
    )
)
_NOT_DIGIT = lazy_pattern(r"[^\d.+-]")
_MERIDIEM = lazy_pattern(r"[ap]", re.IGNORECASE)
_ORDINALS = ("st", "nd", "rd", "th")


@lru_cache(maxsize=1)
def _units() -> dict[str, tuple[float, str]]:
    """Spelling → (factor, unit): durations become seconds, other units get one name."""
    return {
        surface: (float(row[1]), "" if row[0] == "-" else row[0])
        for row in read_table("units.txt")
        for surface in row[2:]
    }


def numbers(text: str) -> tuple[Number, ...]:
    """Every number of `text`, in order."""
    text = normalize_forms(text)
    found: list[Number] = []
    position = 0
    while match := NUMBER.search(text, position):
        number, position = number_of(match)
        if number is not None:
            found.append(number)
    return tuple(found)


def number_of(match: re.Match[str]) -> tuple[Number | None, int]:
    """The number of a match of `NUMBER` and the position after it; None if it is part of a word."""
    kind = "quantity" if match.lastgroup == "unit" else str(match.lastgroup)
    surface = match[kind]
    if kind == "quantity":
        return _quantity(match)
    if kind == "time":
        return Number(kind, _clock(surface)), match.end()
    if kind == "version":
        return Number(kind, _digits(surface.lstrip("vV"))), match.end()
    return Number(kind, _digits(surface.lstrip("#").replace(" ", "T"))), match.end()


def _quantity(match: re.Match[str]) -> tuple[Number | None, int]:
    end = match.end("quantity")
    unit, attached = match["unit"] or "", match["unit"] is not None and match.start("unit") == end
    known = _units().get(unit) or _units().get(unit.lower())
    if attached and known is None and unit.lower() not in _ORDINALS and unit.isascii():
        return None, match.end()
    if known is None:
        return Number("quantity", _value(match["quantity"], 1)), match.end() if attached and unit.isascii() else end
    factor, name = known
    return Number("quantity", _value(match["quantity"], factor), name), match.end()


def _value(surface: str, factor: float) -> str:
    digits = _digits(_NOT_DIGIT.sub("", surface.replace("−", "-")))
    # 3.10 and 3.1 are different versions, so decimals keep their zeros; long digit strings are identifiers.
    if len(digits) > 15 or ("." in digits and factor == 1):
        return digits.lstrip("+")
    return f"{float(digits) * factor:.12g}"


def _digits(surface: str) -> str:
    """The text with the digits of any script as ASCII digits."""
    if surface.isascii():
        return surface
    return "".join(str(unicodedata.decimal(char)) if char.isdecimal() else char for char in surface)


def _clock(surface: str) -> str:
    """A time in 24-hour format with minutes: "9pm" → 21:00."""
    half = _MERIDIEM.search(surface)
    hour, *rest = _digits(surface[: half.start()] if half else surface).strip().split(":")
    if half is None:
        return ":".join([f"{int(hour):02d}", *rest])
    afternoon = 12 if half[0].lower() == "p" else 0
    return ":".join([f"{int(hour) % 12 + afternoon:02d}", *(rest or ["00"])])


NOT = "¬"
"""Marks a negation in `sequence` and `raw`."""

# Longer text is a document, not a statement; the rest is not read.
_READ_CHARS = 4000

_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_PIECE = lazy_pattern(
    # A plain word, the common case, is matched first.
    r"(?P<plain>[A-Za-z]{2,}(?![^\s,;!?)]))"
    rf"|(?:{NUMBER.pattern})"
    rf"|(?P<sign>[{_UNSPACED}])"
    rf"|(?P<word>(?:--?|[$~@/.]|\.\.?/)?[^\W{_UNSPACED}](?:[^\W{_UNSPACED}]|['.\-/:@\\=&?%](?=[^\W{_UNSPACED}]))*(?:\+\+|\#(?!\w))?)"
    r"|(?P<mark>[,;:.!?…。、，；：！？؟،\n()])"
    r"|(?P<symbol>[^\w\s])"
)
_WORD_ALONE = lazy_pattern(r"[\w.+-]+")
_TURN_OFF = lazy_pattern(r"\b(?:turn|switch)(?:e?s|ed|ing)? ((?:[^\W_][\w'-]*+ ){1,4}?)off\b", re.IGNORECASE)
_ALPHA_HYPHENS = lazy_pattern(r"[a-z]+(?:-[a-z]+)+")
_LETTER_NAMES = lazy_pattern(r"(?<!\w)[B-HJ-Z](?!\w)")
_ELISION = lazy_pattern(r"^(?:n|l|d|j|qu|c|s|m|t)'(?=\w\w)")
_COORDINATING = frozenset(("and", "or", "nor", "but", "instead", "howev", "otherwis", "than", "aber", "sondern", "но"))
_SENTENCE_ENDS = frozenset(".!?。！？؟\n")
_SILENT_SYMBOLS = frozenset("\"'`“”‘’«»[]{}「」『』《》*_-–—|•·\u200d\ufe0f")
_NAME_CHARS = 80
"""The number of characters of a word checked for the shape of a name; its parts are checked one by one."""
_NAME_SHAPE = lazy_pattern(r"[\d_./\\@$]|[a-z][A-Z]")
_PREFIXES = ("un", "non", "dis")
_NOTHING: frozenset[str] = frozenset()
_NOT_PREFIXED = frozenset(
    ("display", "discov", "discount", "discharg", "discours", "dispos", "disk", "unit", "unless", "until")
)
# Korean negates inside the word; the mark moves before it, so that the word stays whole.
_INSIDE_HANGUL = lazy_pattern("(?<![\uac00-\ud7af])([\uac00-\ud7af]++)¬([\uac00-\ud7af]++)")
_COUNTED = lazy_pattern("([一二三四五六七八九十两])(?=[次个個天小分秒年月周倍条条回])")
_COUNTS = {char: str(value) for value, char in enumerate("零一二三四五六七八九十")} | {"两": "2"}


@dataclass(frozen=True, slots=True)
class NormalizedStatement:
    """A statement reduced to the parts that matter for comparison."""

    sequence: tuple[str, ...] = ()
    """Every meaningful part, in order: stems, relation words, numbers, symbols and `NOT`."""
    content: frozenset[str] = frozenset()
    """The words alone, without relation words, numbers and negations."""
    subject: frozenset[str] = frozenset()
    """The content words before the verb, which are the subject of the statement."""
    negated: frozenset[str] = frozenset()
    """The content words in the scope of a negation."""
    negations: int = 0
    names: frozenset[str] = frozenset()
    """Words that look like names: capitals inside a sentence, identifiers, paths."""
    numbers: tuple[Number, ...] = ()
    identifying: tuple[Number, ...] = ()
    """Numbers that identify a thing (before the verb, issue numbers) rather than describe it."""
    qualified: frozenset[str] = frozenset()
    """Words after "in", "for", "when" and the like: the circumstances."""
    past: bool = False
    has_verb: bool = False
    """Whether a verb was recognised; without one it is unknown which of several numbers identifies the thing."""
    raw: tuple[str, ...] = ()
    """Every word in lower case, with a comma between clauses."""


@lru_cache(maxsize=1)
def _number_words() -> dict[str, str]:
    return {word: row[0] for row in read_table("numberwords.txt") for word in row[1:]}


@lru_cache(maxsize=1)
def _synonyms() -> dict[str, str]:
    return {stem(word): stem(row[0]) for row in reversed(read_table("synonyms.txt")) for word in row[1:]}


@lru_cache(maxsize=1)
def _antonyms() -> dict[frozenset[str], bool]:
    """Pair of stems → whether swapping the two sides cancels the opposition."""
    return {frozenset(map(canonical_stem, row[-2:])): row[0] == "~" for row in read_table("antonyms.txt")}


@lru_cache(maxsize=1)
def _rivals() -> dict[str, tuple[int, str]]:
    """Stem → (its group, its choice within the group)."""
    return {
        canonical_stem(spelling): (group, choice)
        for group, row in enumerate(read_table("rivals.txt"))
        for choice in row
        for spelling in choice.split("=")
    }


@lru_cache(maxsize=2)
def _rewrites(ascii_only: bool) -> tuple[tuple[str, str, re.Pattern[str]], ...]:
    table = []
    for surface, *replacement in sorted(read_table("rewrites.txt"), key=lambda row: -len(row[0])):
        if ascii_only and not surface.isascii():
            continue
        edge = r"\b" if surface.isascii() else ""
        phrase = surface.replace("_", " ")
        pattern = re.compile(edge + re.escape(phrase) + edge, re.IGNORECASE)
        table.append((phrase, " ".join(replacement).replace("_", " "), pattern))
    return tuple(table)


@lru_cache(maxsize=65536)
def is_opposite(one: str, other: str) -> bool:
    """Whether two stems are opposites: listed in the table, or equal but for un-, non- or dis-."""
    if frozenset((one, other)) in _antonyms():
        return True
    shorter, longer = sorted((one.rstrip("e"), other.rstrip("e")), key=len)  # safe, unsaf: stems differ by length
    if len(shorter) < 3 or longer in _NOT_PREFIXED:
        return False
    return longer.endswith(shorter) and longer[: -len(shorter)] in _PREFIXES


def is_converse(one: str, other: str) -> bool:
    """Whether two opposites have the same meaning if the two things they relate are swapped (before, after)."""
    return _antonyms().get(frozenset((one, other)), False)


@lru_cache(maxsize=65536)
def is_rival(one: str, other: str) -> bool:
    """Whether two stems are different choices of one group, such as two package managers."""
    first, second = _rivals().get(one), _rivals().get(other)
    return first is not None and second is not None and first[0] == second[0] and first[1] != second[1]


def has_opposite(some: Collection[str], others: Collection[str]) -> bool:
    """Whether a stem of the first group and one of the second are opposites; faster than comparing all pairs."""
    if any(not _antonyms_of().get(word, _NOTHING).isdisjoint(others) for word in some):
        return True
    return _has_prefixed(some, others) or _has_prefixed(others, some)


def _has_prefixed(some: Collection[str], others: Collection[str]) -> bool:
    """Whether a stem of the first group equals one of the second with un-, non- or dis- added."""
    longer = [word.rstrip("e") for word in some if word.startswith(_PREFIXES)]
    shorter = {word.rstrip("e") for word in others} if longer else _NOTHING
    return any(
        word.startswith(prefix) and len(word) >= len(prefix) + 3 and word[len(prefix) :] in shorter
        for word in longer
        if word not in _NOT_PREFIXED
        for prefix in _PREFIXES
    )


def has_rival(some: Collection[str], others: Collection[str]) -> bool:
    """Whether a stem of the first group and one of the second are different choices of one group."""
    table = _rivals()
    theirs = [table[word] for word in others if word in table]
    return any(
        first[0] == second[0] and first[1] != second[1]
        for first in (table[word] for word in some if word in table)
        for second in theirs
    )


@lru_cache(maxsize=1)
def _antonyms_of() -> dict[str, frozenset[str]]:
    """Stem → its opposites by the table."""
    found: dict[str, set[str]] = {}
    for both in _antonyms():
        for one in both:
            found.setdefault(one, set()).update(both - {one} or both)
    return {word: frozenset(others) for word, others in found.items()}


@lru_cache(maxsize=65536)
def is_contrastive(word: str) -> bool:
    """Whether a stem may have opposites or has rivals; of two opposites, at least one is such a stem."""
    return word in _antonym_words() or word in _rivals() or word.startswith(_PREFIXES)


@lru_cache(maxsize=1)
def _antonym_words() -> frozenset[str]:
    return frozenset(word for both in _antonyms() for word in both)


def normalize_statement(text: str) -> NormalizedStatement:
    """Normalize a statement. Long texts are read up to a fixed length.

    `normalize_statement` turns a text into a `NormalizedStatement`; `is_opposite` and `is_rival` look up two words in
    the tables of `data/`. `engram.gates.comparison` compares two statements. English is covered best, negation in some
    ten other languages; text in any script is compared word by word or character by character.
    """
    return _read_cached(text) if len(text) <= 600 else _read_long(text[:_READ_CHARS])


def _mark_hangul_negation(text: str) -> str:
    text = fold_text(text)
    if not text.isascii():
        text = normalize_forms(text).replace("’", "'").replace("ʼ", "'")
        text = _COUNTED.sub(lambda found: _COUNTS[found[1]], text)
    lowered = text.lower()
    if " off" in lowered:
        text = _TURN_OFF.sub(r"disable \1", text)
        lowered = text.lower()
    for surface, replacement, pattern in _rewrites(text.isascii()):
        if surface in lowered:
            text = pattern.sub(replacement, text)
            lowered = text.lower()
    return _INSIDE_HANGUL.sub(r"¬ \1\2", text) if NOT in text else text


def _read(text: str) -> NormalizedStatement:
    reader = _Reader(_mark_hangul_negation(text))
    reader.run()
    return reader.reading()


_read_cached = lru_cache(maxsize=8192)(_read)
_read_long = lru_cache(maxsize=64)(_read)


@lru_cache(maxsize=65536)
def canonical_stem(word: str) -> str:
    """The canonical stem of a lower-case word, used for comparison."""
    root = stem(word.removesuffix("'s"))
    return _synonyms().get(root, root)


class _Reader:
    """Reads a text in one pass; its state holds what the words so far imply for the next one."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.raw: list[str] = []
        self.sequence: list[str] = []
        self.content: dict[str, None] = {}
        self.subject: frozenset[str] = frozenset()
        self.negated: set[str] = set()
        self.names: set[str] = set()
        self.numbers: list[Number] = []
        self.identifying: list[Number] = []
        self.qualified: set[str] = set()
        self.negations = 0
        self.is_negated = False
        self.in_concord = False
        self.has_verb = False
        self.in_qualifier = False
        self.past = False
        self.sentence_start = True
        self.has_letter_names = _LETTER_NAMES.search(text) is not None

    def run(self) -> None:
        position, text, search = 0, self.text, _PIECE.search
        while match := search(text, position):
            position = self._piece(match)

    def reading(self) -> NormalizedStatement:
        content = frozenset(self.content)
        return NormalizedStatement(
            sequence=tuple(self.sequence),
            content=content,
            subject=self.subject,
            negated=frozenset(self.negated) & content,
            negations=self.negations,
            names=frozenset(self.names) & content,
            numbers=tuple(self.numbers),
            identifying=tuple(self.identifying) if self.has_verb else (),
            qualified=frozenset(self.qualified) & content,
            past=self.past,
            has_verb=self.has_verb,
            raw=tuple(self.raw),
        )

    def _piece(self, match: re.Match[str]) -> int:
        group = match.lastgroup
        if group == "plain" or group == "word":
            self._surface(match[group])
        elif group == "mark":
            self._mark(match["mark"])
        elif group == "sign":
            self._sign(match["sign"])
        elif group == "symbol":
            self._symbol(match["symbol"])
        else:
            number, end = number_of(match)
            if number is None:
                word = _WORD_ALONE.match(self.text, match.start())
                end = word.end() if word else match.end()
                self._surface(self.text[match.start() : end].rstrip(".-"))
            else:
                self._number(number)
            self.sentence_start = False
            return end
        return match.end()

    def _mark(self, mark: str) -> None:
        if self.raw and self.raw[-1] != ",":
            self.raw.append(",")
        self.is_negated = self.in_concord = self.in_qualifier = False
        self.sentence_start = self.sentence_start or mark in _SENTENCE_ENDS

    def _sign(self, sign: str) -> None:
        """Treats a character of a script without spaces as a word of its own."""
        self._keep(sign)

    def _symbol(self, symbol: str) -> None:
        if symbol == NOT:
            self._negation()
        elif symbol not in _SILENT_SYMBOLS:
            self._keep(symbol)

    def _number(self, number: Number) -> None:
        self.raw.append(str(number))
        self.sequence.append(str(number))
        self.numbers.append(number)
        if not self.has_verb or number.kind == "reference":
            self.identifying.append(number)

    def _surface(self, surface: str) -> None:
        started, self.sentence_start = self.sentence_start, False
        word = surface.casefold()
        if "'" in word:
            word = self._apostrophe(word)
        if "-" in word:
            for part in _parts(word):
                self._word(part, surface, started)
        elif len(surface) == 1 and surface.isupper() and self._is_letter_name(surface, started):
            self._letter_name(word)
        else:
            self._word(word, surface, started)

    def _apostrophe(self, word: str) -> str:
        if word.endswith("n't"):
            self._negation()
            return "do"
        return _ELISION.sub("", word)

    def _letter_name(self, letter: str) -> None:
        self.raw.append(letter)
        self.names.add(letter)
        self._keep(letter)

    def _word(self, word: str, surface: str, started: bool) -> None:
        self.raw.append(word)
        kind, root, is_verb = _classify_word(word)
        if is_verb and not self.has_verb:
            self.has_verb = True
            self.subject = frozenset(self.content)
            self.in_qualifier = False
        if kind == "content":
            if (not started and surface[0].isupper()) or _NAME_SHAPE.search(surface, 0, _NAME_CHARS):
                self.names.add(root)
            self._keep(root)
        elif kind != "drop":
            self._relation(kind, root)

    def _relation(self, kind: str, root: str) -> None:
        if kind == "light" or kind == "boundary":
            self.in_qualifier = root not in _COORDINATING
            if kind == "boundary":
                self.is_negated = self.in_concord = False
            self.sequence.append(root)
        elif kind == "past":
            self.past = True
        elif kind == "number":
            self._number(Number("quantity", root))
        elif kind == "concord":
            if not self.in_concord:
                self._negation()
            self.in_concord = True
        else:
            self._negation()
            if kind == "without":
                self.sequence.append("with")

    def _is_letter_name(self, letter: str, started: bool) -> bool:
        """Whether a capital letter is a name: "A" is in "Service A", but not in "A service" unless other letters are
        names.
        """
        return letter not in "AI" or (letter == "A" and (not started or self.has_letter_names))

    def _keep(self, word: str) -> None:
        self.sequence.append(word)
        self.content[word] = None
        if self.is_negated:
            self.negated.add(word)
        if self.in_qualifier and self.has_verb:
            self.qualified.add(word)

    def _negation(self) -> None:
        self.raw.append(NOT)
        self.sequence.append(NOT)
        self.negations += 1
        self.is_negated = not self.is_negated


@lru_cache(maxsize=65536)
def _classify_word(word: str) -> tuple[str, str, bool]:
    """The class of a word, its stem (or number), and whether it is a verb, which ends the subject."""
    root = canonical_stem(word)
    is_verb = not word_class("wordclasses", "verb").isdisjoint((word, root))
    if number := _number_words().get(word):
        return "number", number, is_verb
    order = ("negation", "concord", "without", "boundary", "past", "drop", "light")
    return next((kind for kind in order if word in word_class("wordclasses", kind)), "content"), root, is_verb


def _parts(word: str) -> Iterator[str]:
    """The parts of a hyphenated word, or the whole word if a part negates (no-cache is a name)."""
    if _ALPHA_HYPHENS.fullmatch(word):
        parts = word.split("-")
        if not any(_classify_word(part)[0] in ("negation", "without") for part in parts):
            yield from parts
            return
    yield word


_PLAN = lazy_pattern(
    r"\b(?:will|shall|won['’]t|(?:am|is|are) (?:going|planning|planned|due|about|scheduled) to)\b", re.IGNORECASE
)
_AT_PRESENT = lazy_pattern(
    r"\b(?:now|today|currently|presently|at (?:the moment|present)|right now|these days)\b", re.IGNORECASE
)
_FROM_NOW = lazy_pattern(r"\b(?:now|today|immediately|already|always|never)\b", re.IGNORECASE)
"""Words that make a statement about the future a promise or rule with immediate effect: "from now on we will use
tabs".
"""


def is_plan(text: str) -> bool:
    """Whether a statement is about the future, or a question asks about it."""
    return bool(_PLAN.search(text)) and not _FROM_NOW.search(text)


def is_only_planned(new: str, old: str) -> bool:
    """Whether a newer statement is about the future and the older one about the present, which stays current until
    then.
    """
    return is_plan(new) and not _PLAN.search(old)


def asks_about_now(question: str) -> bool:
    """Whether a question explicitly asks about the present: "which database do we use today?"."""
    return bool(_AT_PRESENT.search(question)) and not _PLAN.search(question)
