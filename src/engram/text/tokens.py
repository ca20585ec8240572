"""Splits a text into sentences and into index terms: deterministic, for every script, with only the standard library.

`tokens` returns the terms that the index stores, `query_terms` those to search a question by. A term consists of
letters, numbers, marks and `_`. Identifiers, paths and versions are indexed as a whole, joined by `_`, and by their
parts; scripts without spaces become character bigrams; an emoji becomes `u` and its code point.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from operator import add

from engram.model.lazy import lazy_pattern
from engram.text.confusables import fold_mixed_words, normalize_forms
from engram.text.words import read_table, stem

__all__ = [
    "POSTINGS_BUDGET",
    "QUESTION_MARKER",
    "SENTENCE_END",
    "document_sentences",
    "marked_terms",
    "missing_terms",
    "prune_terms",
    "query_terms",
    "sentence_spans",
    "split_sentences",
    "tokens",
]

SENTENCE_END = lazy_pattern(r"(?<=[。！？])|(?<=[.!?…؟])\s+|\n+")
"""The end of a sentence in a statement or a turn: punctuation before white space, or a line end."""

# A full stop after these does not end a sentence …
_SHORTENED_WORDS = """
    inc ltd co corp llc plc gmbh bros mr mrs ms dr prof st jr sr hon rev gen gov dept cf al vs v viz etc e.g i.e u.s u.k u.n
    a.m p.m
"""
# … and after these it does not if a number follows.
_NUMBERED_WORDS = """
    no nos art arts sec secs cl para paras fig figs vol ch pp p ex app est approx ca jan feb mar apr jun jul aug sep sept oct
    nov dec
"""
_SHORTENED = frozenset(_SHORTENED_WORDS.split())
_NUMBERED = frozenset(_NUMBERED_WORDS.split())
_STOP = lazy_pattern(r"(?<![.!?…])[.!?…]++[\"'”’)\]*]*+(?=\s|$)|[。！？]++[」』”’)]*+")
_CAPITAL_FOLLOWS = lazy_pattern(r"\s+[\"'“‘(\[§*_]*[^\W_a-z]")
_LAST_WORD = lazy_pattern(r"[^\s(\[\"“']*\Z")
# A new block begins: a blank line, a list item, a clause of its own, a table row, a quotation.
_BLOCK = lazy_pattern(
    r"\n(?:[ \t\r]*\n)+|\n(?=[ \t]*(?:[-*+•–][ \t]|\(?[a-z0-9]{1,4}[.)][ \t]|\d+(?:\.\d+)+[ \t]|[|>#]))"
)
_MARKER = lazy_pattern(
    r"[ \t]*(?:[-*+•–][ \t]+|\(?[a-z0-9]{1,4}[.)][ \t]+|\d+(?:\.\d+)+\.?[ \t]+|>[ \t]*|\#{1,6}[ \t]+)*"
)


def split_sentences(text: str, most: int = 0) -> list[str]:
    """The sentences of a short text. After `most` cuts the rest stays in one piece; 0 means no limit."""
    return [part for part in SENTENCE_END.split(text.strip(), maxsplit=most) if part]


def sentence_spans(text: str, start: int, end: int, *, edited: bool = False) -> Iterator[tuple[int, int]]:
    """The spans of the sentences between two positions; together they cover everything between them.

    `edited` is for documents rather than chat: a new sentence starts with a capital, and a short number before a full stop
    belongs to a numbered clause.
    """
    first = start
    for stop in _STOP.finditer(text, start, end):
        if not _is_inside(text, first, stop, edited):
            yield first, stop.end()
            first = stop.end()
    if first < end:
        yield first, end


def document_sentences(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The spans of the sentences in a part of a document, without list markers and clause numbers before them."""
    for block in _blocks(text, start, end):
        for first, last in sentence_spans(text, *block, edited=True):
            yield from _trim_span(text, first, last)


def _blocks(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    at = start
    for found in _BLOCK.finditer(text, start, end):
        yield at, found.start()
        at = found.end()
    yield at, end


def _is_inside(text: str, start: int, stop: re.Match[str], edited: bool) -> bool:
    """Whether a full stop does not end the sentence: after an abbreviation, an initial or the number of a clause."""
    if edited and stop[0][0] in ".!?…" and not _CAPITAL_FOLLOWS.match(text, stop.end()):
        return True
    if stop[0] != ".":
        return False
    last = _LAST_WORD.search(text, max(start, stop.start() - 40), stop.start())
    word = last[0] if last else ""
    if word.lower() in _NUMBERED:
        return text[stop.end() : stop.end() + 2].strip().isdecimal()
    if len(word) == 1 and word.isalpha():
        return edited or word.isupper()
    return word.lower() in _SHORTENED or (edited and word.isdecimal() and len(word) < 3)


def _trim_span(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    while start < end and text[start].isspace():
        start += 1
    marker = _MARKER.match(text, start, end)
    start = marker.end() if marker else start
    end = start + len(text[start:end].rstrip())
    if start < end:
        yield start, end


QUESTION_MARKER = "?"
"""Separates the terms of statements from those of questions in `marked_terms`; full-text indexes skip it."""

# Longer chunks rarely recur (sentences without spaces, URLs, keys), so caching them only costs memory.
_CACHED_CHUNK = 40
# Nobody types a longer identifier as a whole; its parts find it.
_LONGEST_WHOLE = 80
# Hashes and keys split into many meaningless parts; identifiers written by people do not.
_MOST_PARTS = 8

_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai, Lao, Myanmar, Khmer
    "\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"  # kana, Han
    "\u1100-\u11ff\uac00-\ud7af"  # Hangul
    "\U00020000-\U0003ffff"  # Han extensions
)


@cache
def _han() -> re.Pattern[str]:
    """Compiled on first use, like the other two: a process that reads only Latin text never needs it."""
    return re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")


@cache
def _by_script() -> re.Pattern[str]:
    return re.compile(f"[{_UNSPACED}]+|[^{_UNSPACED}]+")


@cache
def _has_unspaced() -> re.Pattern[str]:
    return re.compile(f"[{_UNSPACED}]")


# A private-use character cannot come from the text: `_fold_character` turns those into spaces.
_EMOJI = "\ue000"

# Negated: the same characters, and a tenth of the time to compile.
_WORD = r"[^\x00-/:-@\[-^`{-\x7f]"
_WORDS = lazy_pattern(f"{_WORD}+")
_COMPOUND = lazy_pattern(f"{_WORD}+(?:(?:::|->|[./\\\\:@#&=?~$%+-]){_WORD}+)*")
_HYPHENATED = lazy_pattern(r"[^\W\d_]+(?:-[^\W\d_]+)+")
_MIXED = lazy_pattern(r"[a-z][A-Z]|[A-Z]{2}[a-z]|[A-Za-z][0-9]|[0-9][A-Za-z]")
_ACRONYMS = lazy_pattern(r"[A-Z]{2,}s")
_QUESTION = lazy_pattern(r"[?？؟][^\w]*$")
_CAMEL = lazy_pattern(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
_SCHEME = lazy_pattern(r"^[a-z][a-z0-9+.-]*://(?:www\.)?", re.IGNORECASE)
_SHARP_OR_PLUS = lazy_pattern(r"(?<!\w)([A-Za-z])(\+\+|#)(?!\w)")
_SPELLED = {"++": "pp", "#": "sharp"}
_CONTRACTION = lazy_pattern(r"(?<=\w)'(?:s|m|d|re|ve|ll)(?!\w)", re.IGNORECASE)
_NEGATION = lazy_pattern(r"(?<=n)'(?=t(?!\w))", re.IGNORECASE)
_THOUSANDS = lazy_pattern(r"(?<=\d),(?=\d{3}(?!\d))")
# Characters that leave the word between them unchanged.
_AROUND = '.,;:!?()"'
_VERSION = lazy_pattern(r"v?([0-9]+(?:_[0-9]+)+)")
_ORDINAL = lazy_pattern(r"([0-9]+)(?:st|nd|rd|th)")


# Accents left after NFKC, Hebrew and Arabic points that most writers omit, emoji modifiers.
_OPTIONAL_MARKS = (
    ("\u0300", "\u036f"),
    ("\u0591", "\u05c7"),
    ("\u064b", "\u0670"),
    ("\u20d0", "\u20ff"),
    ("\ufe00", "\ufe0f"),
    ("\U000e0100", "\U000e01ef"),
)


class _Folding(dict[int, str]):
    """Maps a character to its index form; a lazily filled table for `str.translate`."""

    def __missing__(self, code: int) -> str:
        self[code] = form = _fold_character(chr(code))
        return form


def _fold_character(char: str) -> str:
    category = unicodedata.category(char)
    if category == "So" and char >= "\u2190":
        return f" {_EMOJI}{ord(char):x} "
    if category[0] == "M":
        return "" if _is_optional_mark(char) else char
    if char == "\u0640" or category == "Cf":
        return ""
    if category[0] not in "LN":
        return char if char.isascii() else "'" if char in "\u2018\u2019\u02bc" else " "
    base = unicodedata.normalize("NFD", char)[0]
    return base if base.isascii() else char


def _is_optional_mark(char: str) -> bool:
    return any(first <= char <= last for first, last in _OPTIONAL_MARKS)


_FOLDING = _Folding()


Pair = tuple[str, str]
"""A word as written (empty if it is only indexed) and its term."""


def tokens(text: str) -> list[str]:
    """Every stemmed term of `text` in order, including stop words; empty if nothing can be searched."""
    # `_chunk_terms`, without a call for each word.
    return [
        term for chunk in _chunks(text) for term in (_cached(chunk) if len(chunk) <= _CACHED_CHUNK else _read(chunk))[1]
    ]


def query_terms(text: str) -> list[str]:
    """The distinct terms of a question, without stop and question words unless there are no others."""
    pairs = [pair for chunk in _chunks(text) for pair in _chunk_terms(chunk)[0] if pair[0]]
    kept = [term for surface, term in pairs if surface not in _stop_words()]
    return list(dict.fromkeys(kept or [term for _, term in pairs]))


def marked_terms(text: str) -> str:
    """The terms of a text joined by spaces: those of its statements, `QUESTION_MARKER`, then those of its questions."""
    if "?" not in text and "？" not in text and "؟" not in text:
        return " ".join(tokens(text))
    statements: list[str] = []
    questions: list[str] = []
    for sentence in SENTENCE_END.split(text):
        (questions if _QUESTION.search(sentence) else statements).extend(tokens(sentence))
    return " ".join([*statements, QUESTION_MARKER, *questions] if questions else statements)


@lru_cache(maxsize=1)
def _stop_words() -> frozenset[str]:
    rows = read_table("stopwords.txt") + read_table("questionwords.txt")
    return frozenset(word for row in rows for word in row)


def _chunks(text: str) -> list[str]:
    if not text.isascii():
        text = normalize_forms(fold_mixed_words(text)).translate(_FOLDING)
    return text.split()


def _chunk_terms(chunk: str) -> tuple[tuple[Pair, ...], tuple[str, ...]]:
    return _cached(chunk) if len(chunk) <= _CACHED_CHUNK else _read(chunk)


def _read(chunk: str) -> tuple[tuple[Pair, ...], tuple[str, ...]]:
    """The pairs of one chunk between spaces, and their terms alone, which is all that the index needs."""
    if _is_plain(bare := chunk.strip(_AROUND)):
        term = stem(surface := bare.casefold())
        return ((surface, term),), (term,)
    pairs = tuple(_pairs(chunk))
    return pairs, tuple(term for _, term in pairs)


def _is_plain(word: str) -> bool:
    """Whether a chunk is a plain word, which needs no further splitting; most are."""
    return word.isascii() and word.isalpha() and word[1:].islower() and len(word) <= _LONGEST_WHOLE


_cached = lru_cache(maxsize=65536)(_read)


def _pairs(chunk: str) -> Iterator[Pair]:
    if chunk[0] == _EMOJI:
        yield (emoji := "u" + chunk[1:]), emoji
    elif chunk.isascii() or not _has_unspaced().search(chunk):
        yield from _split_spaced(chunk)
    else:
        for run in _by_script().findall(chunk):
            yield from _split_unspaced(run) if _has_unspaced().match(run) else _split_spaced(run)


def _split_unspaced(run: str) -> Iterator[Pair]:
    if len(run) == 1:
        yield run, run
        return
    bigrams = list(map(add, run, run[1:]))
    yield from zip(bigrams, bigrams, strict=True)
    # A single ideograph must be found inside a word; longer questions use bigrams alone.
    yield from (("", char) for char in _han().findall(run))


def _split_spaced(chunk: str) -> Iterator[Pair]:
    chunk = _SHARP_OR_PLUS.sub(lambda found: found[1] + _SPELLED[found[2]], _SCHEME.sub("", chunk))
    chunk = _THOUSANDS.sub("", _NEGATION.sub("", _CONTRACTION.sub("", chunk)))
    yield from _read_each(_COMPOUND.findall(chunk), _compound)


def _compound(compound: str) -> Iterator[Pair]:
    words = [word for word in _WORDS.findall(compound) if word.strip("_")]
    if len(words) > 1:
        joint = "" if _HYPHENATED.fullmatch(compound) else "_"
        yield from _whole(joint.join(word.strip("_") for word in words).casefold())
    yield from _read_each(words, _word)


def _read_each(parts: Sequence[str], read: Callable[[str], Iterator[Pair]]) -> Iterator[Pair]:
    """The pairs of each part in order. A part is read only once, because a long chunk may repeat itself."""
    known: dict[str, tuple[Pair, ...]] = {}
    for part in parts:
        if part not in known:
            known[part] = tuple(read(part))
        yield from known[part]


def _word(word: str) -> Iterator[Pair]:
    """One run of letters and digits, and the parts of snake_case and camelCase."""
    word = word.strip("_")
    parts = [part for piece in word.split("_") for part in _humps(piece)]
    surface = word.casefold()
    if ordinal := _ORDINAL.fullmatch(surface):
        yield surface, ordinal[1]
        return
    yield from _whole(surface)
    if 1 < len(parts) <= _MOST_PARTS:
        for part in parts:
            yield (low := part.casefold()), stem(low)


def _whole(surface: str) -> Iterator[Pair]:
    if len(surface) > _LONGEST_WHOLE:
        return
    version = _VERSION.fullmatch(surface)
    if not version:
        yield surface, stem(surface)
        return
    # 3.11.4 is found by 3.11 too.
    numbers = version[1].split("_")
    for end in range(len(numbers), 1, -1):
        yield (prefix := "_".join(numbers[:end])), prefix


def _humps(word: str) -> list[str]:
    if not _MIXED.search(word) or _ACRONYMS.fullmatch(word):
        return [word] if word else []
    return _CAMEL.findall(word)


POSTINGS_BUDGET = 12_000
"""The maximum number of postings one query reads, rarest terms first. With 100k documents an unpruned OR took 210 ms,
pruned 5 ms.
"""


def prune_terms(frequency: Mapping[str, int]) -> list[str]:
    """The terms to search for, rarest first, within the budget; always the rarest one."""
    kept: list[str] = []
    spent = 0
    for term in sorted(frequency, key=lambda t: (frequency[t], t)):
        spent += frequency[term]
        if kept and spent > POSTINGS_BUDGET:
            break
        kept.append(term)
    return kept


# The boundary between two items: an empty line, a list marker, a heading. A wrapped line continues.
_BREAK = lazy_pattern(r"\n\s*\n|\n\s*(?:[-*•>#`|]|\d+[.)]\s)")
_HYPHEN = lazy_pattern(r"(?<=[^\W\d_])[-‐‑](?=[^\W\d_])")


def missing_terms(expected: Sequence[str], text: str) -> tuple[str, ...]:
    """The expected terms that the text lacks, each once, in the order given.

    Words are compared by their stems ("allergies" is found in "allergy"); those of a term of several words must be
    adjacent. A blank term is never missing.
    """
    searchable = _SearchableText(text)
    return tuple(term for term in dict.fromkeys(expected) if term.strip() and not searchable.has(term))


class _SearchableText:
    """A text prepared for term lookup."""

    def __init__(self, text: str) -> None:
        parts = _BREAK.split(text)
        # A line end is in no prepared part, so no match crosses lines.
        self._literal = "\n".join(map(_literal, parts))
        self._join_tokens = "\n".join(f" {_join_tokens(part)} " for part in parts)
        self._terms = frozenset(tokens(text))

    def has(self, term: str) -> bool:
        """Whether the text contains the term: its words in a row, another spelling of it, or the exact characters."""
        run = _join_tokens(term)
        if run and f" {run} " in self._join_tokens:
            return True
        own = tokens(term)
        # "e-mail" is found in "email": the joined form comes before its parts.
        if own and len(term.split()) == 1 and own[0] in self._terms:
            return True
        # The terms of a script without spaces overlap, and a path may continue: their run is not one of the text's.
        return self._terms.issuperset(own[1:] or own) and _literal(term) in self._literal


def _join_tokens(text: str) -> str:
    return " ".join(tokens(_HYPHEN.sub(" ", text)))


def _literal(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())
