"""Sentences: the split by punctuation alone for short texts, and exact places for the prose of documents."""

import re
from collections.abc import Iterator

__all__ = ["SENTENCE_END", "sentences_in", "split_sentences"]

SENTENCE_END = re.compile(r"(?<=[。！？])|(?<=[.!?…؟])\s+|\n+")
"""Where a sentence of a statement or a turn ends: punctuation before white space, or a line's end."""

# A full stop behind these ends no sentence, …
_SHORTENED_WORDS = """
    inc ltd co corp llc plc gmbh bros mr mrs ms dr prof st jr sr hon rev gen gov dept cf al vs v viz etc e.g i.e u.s u.k u.n
    a.m p.m
"""
# … and behind these only where a number follows.
_NUMBERED_WORDS = """
    no nos art arts sec secs cl para paras fig figs vol ch pp p ex app est approx ca jan feb mar apr jun jul aug sep sept oct
    nov dec
"""
_SHORTENED = frozenset(_SHORTENED_WORDS.split())
_NUMBERED = frozenset(_NUMBERED_WORDS.split())
_END = re.compile(r"(?<![.!?…])[.!?…]+[\"'”’)\]]*(?=\s+[\"'“‘(\[§*_]*[^\W_a-z])|[。！？]+[」』”’)]*")
_LAST_WORD = re.compile(r"[^\s(\[\"“']*\Z")
# A new block begins: a blank line, a list item, a clause of its own, a table row, a quotation.
_BLOCK = re.compile(
    r"\n(?:[ \t\r]*\n)+|\n(?=[ \t]*(?:[-*+•–][ \t]|\(?[a-z0-9]{1,4}[.)][ \t]|\d+(?:\.\d+)+[ \t]|[|>#]))"
)
_MARKER = re.compile(
    r"[ \t]*(?:[-*+•–][ \t]+|\(?[a-z0-9]{1,4}[.)][ \t]+|\d+(?:\.\d+)+\.?[ \t]+|>[ \t]*|\#{1,6}[ \t]+)*"
)


def split_sentences(text: str, most: int = 0) -> list[str]:
    """The sentences of a short text; `most` cuts leave the rest in one piece, 0 means no limit."""
    return [part for part in SENTENCE_END.split(text.strip(), maxsplit=most) if part]


def sentences_in(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The spans of the sentences between two places, without list markers and clause numbers before them."""
    for first, last in _blocks(text, start, end):
        at = first
        for found in _END.finditer(text, first, last):
            if not _is_shortened(text, at, found):
                yield from _trimmed(text, at, found.end())
                at = found.end()
        yield from _trimmed(text, at, last)


def _blocks(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    at = start
    for found in _BLOCK.finditer(text, start, end):
        yield at, found.start()
        at = found.end()
    yield at, end


def _is_shortened(text: str, start: int, found: re.Match[str]) -> bool:
    """Whether the stop belongs to a shortened word, an initial or a number of a clause."""
    if found[0] != ".":
        return False
    last = _LAST_WORD.search(text, max(start, found.start() - 40), found.start())
    word = last[0].lower() if last else ""
    if word in _NUMBERED:
        return text[found.end() : found.end() + 2].strip().isdecimal()
    return word in _SHORTENED or (len(word) == 1 and word.isalpha()) or (word.isdecimal() and len(word) < 3)


def _trimmed(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    while start < end and text[start].isspace():
        start += 1
    marker = _MARKER.match(text, start, end)
    start = marker.end() if marker else start
    end = start + len(text[start:end].rstrip())
    if start < end:
        yield start, end
