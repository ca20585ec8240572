"""Sentences: a quick split by punctuation for short texts, and exact spans that respect abbreviations."""

import re
from collections.abc import Iterator

from engram.model.lazy import lazy_pattern

__all__ = ["SENTENCE_END", "document_sentences", "sentence_spans", "split_sentences"]

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
    """The sentences of a short text; `most` cuts leave the rest in one piece, 0 means no limit."""
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
    """Whether a stop does not end the sentence: after an abbreviation, an initial or the number of a clause."""
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
