"""Lists of recovery codes: several values of one shape after words such as "backup codes" or "save these"."""

import re
from collections.abc import Iterator

from engram.gates.secrets.forms import LISTS, Hints, Secret, words_in

__all__ = ["recovery_codes"]

_MIN_CODES = 3
_MIN_NAMED_CODES = 2
"""Minimum codes of a list; fewer where the words can mean nothing else."""
_MAX_CODES = 60
_MIN_CODE_CHARS = 6
_LEAD = 160
"""Maximum characters between the words and the first code."""
_CODE = re.compile(
    r"(?<![\w.-])(?:\d{3,6}(?: \d{3,6}){1,3}|[A-Za-z0-9]{3,20}(?:-[A-Za-z0-9]{3,12}){0,7})(?![\w-]|[.:/]\w)"
)
_BETWEEN = re.compile(
    r"[\"'`]?(?:[ \t]{0,3}[,;|/][ \t]{0,3}(?:(?:and|und|et|y|e|en|och)[ \t])?|[ \t](?:and|und|et|y|e|en|och)[ \t]|[ \t]{1,8})?"
    r"[ \t\r]{0,4}(?:\n[ \t\r]{0,8}){0,2}(?:[-*•·>|☐□][ \t]{0,3})?(?:(?:\d{1,2}[.):]|\(\d{1,2}\)|\[ ?\])[ \t]{1,3})?[\"'`]?"
)
_GROUPS = re.compile(r"[ -]")


def recovery_codes(text: str, lowered: str, hints: Hints) -> Iterator[Secret]:
    """The codes of each list, one by one."""
    passed = 0
    for word, kind in words_in(lowered, LISTS, hints):
        codes = _list_after(text, word.end()) if word.end() >= passed else []
        if sum(map(_count, codes)) >= (_MIN_NAMED_CODES if kind == "named" else _MIN_CODES):
            passed = codes[-1].end()
            yield from (Secret("recovery-codes", code.start(), code.end()) for code in codes)


def _list_after(text: str, place: int) -> list[re.Match[str]]:
    """The first codes of one shape after a place."""
    for first in _CODE.finditer(text, place, place + _LEAD):
        if _is_code(first[0]):
            return _like(first)
    return []


def _count(code: re.Match[str]) -> int:
    """How many codes it is: more than two groups of digits are a list themselves."""
    return max(1, code[0].count(" "))


def _is_code(value: str) -> bool:
    return len(value) >= _MIN_CODE_CHARS and any(map(str.isdigit, value)) and not value.startswith("0x")


def _like(first: re.Match[str]) -> list[re.Match[str]]:
    """The code and those that follow it in the same shape."""
    text, codes = first.string, [first]
    while len(codes) < _MAX_CODES:
        between = _BETWEEN.match(text, codes[-1].end())
        code = _CODE.match(text, between.end()) if between and between.end() > codes[-1].end() else None
        if code is None or _shape(code[0]) != _shape(first[0]):
            break
        codes.append(code)
    return codes if sum(_is_code(code[0]) for code in codes) > len(codes) / 2 else []


def _shape(value: str) -> tuple[int, ...]:
    return tuple(map(len, _GROUPS.split(value)))
