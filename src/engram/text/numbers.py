"""Normalizes the numbers of a text: "8 000", "8,000" and "8k" are the same number, "2 min" is "120 s"."""

import re
import unicodedata
from functools import lru_cache

from engram.model.lazy import dataclass, lazy_pattern
from engram.text.confusables import normalize_forms
from engram.text.word_tables import read_table

__all__ = ["NUMBER", "Number", "number_of", "numbers"]


@dataclass(frozen=True, slots=True)
class Number:
    """One number in a text. Two numbers are equal if kind, value and unit are; the position does not count."""

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
    """A time as 24 hours with minutes: "9pm" → 21:00."""
    half = _MERIDIEM.search(surface)
    hour, *rest = _digits(surface[: half.start()] if half else surface).strip().split(":")
    if half is None:
        return ":".join([f"{int(hour):02d}", *rest])
    afternoon = 12 if half[0].lower() == "p" else 0
    return ":".join([f"{int(hour) % 12 + afternoon:02d}", *(rest or ["00"])])
