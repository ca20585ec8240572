"""Numbers that identify a person or an account: cards, IBANs, social security and tax numbers, by their checksums.

A checksum alone matches by chance once in ten or a hundred times, so a bare run of digits also needs a known prefix or
a nearby word that identifies it. `secretnumbers.txt` has the forms, words and checks of personal numbers.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache, partial

from engram.gates.secrets.forms import NUMBERS, Hints, Secret, columns, join_windows, without_overlaps
from engram.gates.tables import rows

__all__ = ["numbers"]

_MAX_WORD_DISTANCE = 60
_LONGEST_WORD = 30
"""Maximum characters between a number and its word."""
_SOME_DIGITS = re.compile(r"\d[\dA-Z](?:[\dA-Z\s./-]{3}|[a-z]\d\d)")
_BARE = re.compile(r"\d(?:\d{5}|56\.|\d[A-Z]\d\d[A-Z]\d{3})")
"""A pattern common to all numbers that need no word; one search for it is cheaper than a search for each."""
_CARD = re.compile(r"\d(?<![\w.+-]\d)(?:[ -]?\d){12,18}(?![\w]|[.-]\d)")
_CARD_PREFIX = re.compile(
    r"4\d{12}(?:\d{3}){0,2}|5[1-5]\d{14}|2(?:22[1-9]|2[3-9]\d|[3-6]\d\d|7[01]\d|720)\d{12}|3[47]\d{13}|3(?:0[0-5]|[68]\d)\d{11}"
    r"|6(?:011|5\d\d|4[4-9]\d)\d{12}|35(?:2[89]|[3-8]\d)\d{12}|62\d{14,17}|(?:5018|5020|5038|6304|6759|676[1-3])\d{8,15}"
)
_GROUPED = re.compile(r"\d{4}([ -])\d{4}\1\d{4}\1\d{1,7}|\d{4}([ -])\d{6}\2\d{4,5}")
_SAMPLE_ZEROS = 8
"""Zeros that mark a sample card number."""
_SIGNS = re.compile(r"[^A-Z0-9]")
_CARD_WORDS = re.compile(
    r"(?i)\b(?:cards?|card no|visa|master ?card|amex|american express|discover|diners|jcb|maestro|credit|debit|kreditkarte\w*|karte\w*"
    r"|carte|carta|tarjeta|cart[ãa]o|kaart\w*|kort\w*|karta|карт\w*|cc|pan|cvv|cvc|exp(?:iry|ires|\.)?)\b|信用卡|银行卡|クレジットカード|카드"
)
_NO_CARD = re.compile(
    r"(?i)(?:order|invoice|tracking|shipment|parcel|ticket|isbn|ean|gtin|upc|imei|iccid|serial|timestamp|epoch|snowflake|message|tweet"
    r"|status|issue|build|job|run|trace|span|request|transaction|txn|ref|reference|id|bestell\w*|rechnung\w*|sendung\w*)\W{0,3}"
    r"(?:id|no|nr|number|nummer|num)?\W{0,4}$"
)
_IBAN = re.compile(
    r"\d\d(?<=[A-Za-z]{2}\d\d)(?<![A-Za-z0-9][A-Za-z]{2}\d\d)(?:[ -]?[A-Za-z0-9]{4}){2,7}(?:[ -]?[A-Za-z0-9]{1,3})?(?![A-Za-z0-9])"
)
_IBAN_LENGTHS = {
    length[:2]: int(length[2:])
    for length in [
        "AD24",
        "AE23",
        "AL28",
        "AT20",
        "AZ28",
        "BA20",
        "BE16",
        "BG22",
        "BH22",
        "BR29",
        "BY28",
        "CH21",
        "CR22",
        "CY28",
        "CZ24",
        "DE22",
        "DK18",
        "DO28",
        "EE20",
        "EG29",
        "ES24",
        "FI18",
        "FO18",
        "FR27",
        "GB22",
        "GE22",
        "GI23",
        "GL18",
        "GR27",
        "GT28",
        "HR21",
        "HU28",
        "IE22",
        "IL23",
        "IQ23",
        "IS26",
        "IT27",
        "JO30",
        "KW30",
        "KZ20",
        "LB28",
        "LI21",
        "LT20",
        "LU20",
        "LV21",
        "MC27",
        "MD24",
        "ME22",
        "MK19",
        "MR27",
        "MT31",
        "MU30",
        "NL18",
        "NO15",
        "PK24",
        "PL28",
        "PS29",
        "PT25",
        "QA29",
        "RO24",
        "RS22",
        "SA24",
        "SC31",
        "SE24",
        "SI19",
        "SK24",
        "SM27",
        "ST25",
        "SV28",
        "TL23",
        "TN24",
        "TR26",
        "UA29",
        "VA22",
        "VG24",
        "XK20",
    ]
}
_END = r"(?![A-Za-z0-9]|[-.]\d)"


def numbers(text: str, lowered: str, hints: Hints, *, bare: bool = True) -> Iterator[Secret]:
    """Numbers of cards, accounts and people. `bare=False` ignores digits without a word that marks them."""
    if not _SOME_DIGITS.search(text):
        return
    yield from _cards(text, bare)
    for match in _IBAN.finditer(text):
        number = text[match.start() - 2 : match.end()]
        if _iban(number) and not _is_sample(number):
            yield Secret("iban", match.start() - 2, match.end())
    bare_rows, rows_by_word = _rows()
    hinted = {row for word in hints for row in rows_by_word.get(word, ())}
    for row in sorted(hinted.union(bare_rows if _BARE.search(text) else ())):
        yield from _of_row(text, lowered, row, hints)


def _cards(text: str, bare: bool) -> Iterator[Secret]:
    for match in _CARD.finditer(text):
        plain = re.sub(r"[ -]", "", match[0])
        if not _CARD_PREFIX.fullmatch(plain) or not _is_varied(plain) or not _luhn(plain) or _is_sample(plain):
            continue
        around = text[max(0, match.start() - _MAX_WORD_DISTANCE) : match.end() + _MAX_WORD_DISTANCE]
        unmarked = bare and len(plain) <= 16 and not _NO_CARD.search(text[max(0, match.start() - 40) : match.start()])
        if _GROUPED.fullmatch(match[0]) or _CARD_WORDS.search(around) or (unmarked and plain == match[0]):
            yield Secret("card-number", match.start(), match.end())


@lru_cache(maxsize=1)
def _samples() -> frozenset[str]:
    return frozenset(number for row in rows("samplenumbers.txt") for number in row)


def _is_sample(number: str) -> bool:
    """Whether the number is a published sample."""
    plain = _SIGNS.sub("", number.upper())
    return plain in _samples() or (plain.isdigit() and len(plain) > 12 and plain.count("0") >= _SAMPLE_ZEROS)


@lru_cache(maxsize=1)
def _rows() -> tuple[list[int], dict[str, list[int]]]:
    """The rows without words, and those of each word."""
    by_word: dict[str, list[int]] = {}
    for number, row in enumerate(columns(NUMBERS)):
        for word in row[1].split("¦"):
            by_word.setdefault(word, []).append(number)
    return by_word.pop(""), by_word


@lru_cache(maxsize=64)
def _compile_row(row: int) -> tuple[re.Pattern[str], re.Pattern[str] | None, Callable[[str], bool]]:
    """The pattern of a row, that of its words, and its check."""
    _, words, pattern, *checks = columns(NUMBERS)[row]
    alternatives = "|".join(map(re.escape, words.split("¦")))
    near = re.compile(rf"(?<![^\W\d_])(?:{alternatives})(?![a-zа-яà-ÿ])") if words else None
    check = _check(checks[0]) if checks else lambda text: True
    return re.compile(rf"{'(?<![A-Za-z0-9.-])' if near else ''}(?:{pattern}){_END}"), near, check


def _check(name: str) -> Callable[[str], bool]:
    if not name.startswith("weights"):
        return _CHECKS[name]
    modulus, weights = name.removeprefix("weights").split(":")
    return partial(_is_multiple, int(modulus), [int(weight) for weight in weights.split()])


def _of_row(text: str, lowered: str, row: int, hints: Hints) -> Iterator[Secret]:
    """The numbers of a row: all of that form, or those near one of its words."""
    kind, words = columns(NUMBERS)[row][:2]
    pattern, near, check = _compile_row(row)
    found = (
        place
        for word in words.split("¦")
        for place in without_overlaps(hints.get(word, ()), len(word))
        if near and near.match(lowered, place)
    )
    end = 0
    # Each character around the words is searched once.
    for begin, stop in (
        join_windows(found, _MAX_WORD_DISTANCE // 2, _MAX_WORD_DISTANCE + _LONGEST_WORD) if near else ((0, len(text)),)
    ):
        for match in pattern.finditer(text, max(end, begin), stop):
            if _is_varied(match[0]) and check(match[0]) and not _is_sample(match[0]):
                end = match.end()
                yield Secret(kind, match.start(), match.end())


# -- checks


def _digits(text: str) -> list[int]:
    return [int(char) for char in text if char in "0123456789"]


def _number(digits: Iterable[int]) -> int:
    return int("".join(map(str, digits)))


def _is_varied(text: str) -> bool:
    return len(set(_digits(text))) > 1


def _weigh_digits(digits: list[int], weights: Iterable[int]) -> int:
    return sum(digit * weight for digit, weight in zip(digits, weights, strict=False))


def _is_multiple(modulus: int, weights: list[int], text: str) -> bool:
    return _weigh_digits(_digits(text), weights) % modulus == 0


def _luhn(text: str) -> bool:
    digits = _digits(text)[::-1]
    return bool(digits) and sum(sum(divmod(d * 2, 10)) if place % 2 else d for place, d in enumerate(digits)) % 10 == 0


def _personnummer(text: str) -> bool:
    return _luhn(text[-11:] if "-" in text else text[-10:])


def _iban(text: str) -> bool:
    plain = re.sub(r"[ -]", "", text).upper()
    if _IBAN_LENGTHS.get(plain[:2]) != len(plain):
        return False
    return int("".join(str(int(char, 36)) for char in plain[4:] + plain[:4])) % 97 == 1


def _ssn(text: str) -> bool:
    digits = _digits(text)
    return _number(digits[:3]) not in (0, 666, *range(900, 1000)) and any(digits[3:5]) and any(digits[5:])


def _iso_7064(text: str) -> bool:
    """Mod 11,10."""
    digits, product = _digits(text), 10
    for digit in digits[:10]:
        total = (digit + product) % 10 or 10
        product = total * 2 % 11
    return digits[0] != 0 and (11 - product) % 10 == digits[10]


def _cpf(text: str) -> bool:
    digits = _digits(text)
    first = _weigh_digits(digits[:9], range(10, 1, -1)) * 10 % 11 % 10
    second = _weigh_digits(digits[:10], range(11, 1, -1)) * 10 % 11 % 10
    return _is_varied(text) and [first, second] == digits[9:]


def _dni(text: str) -> bool:
    plain = re.sub(r"[ .-]", "", text).upper()
    number = {"X": "0", "Y": "1", "Z": "2"}.get(plain[0], plain[0]) + plain[1:-1]
    return "TRWAGMYFPDXBNJZSQVHLCKE"[int(number) % 23] == plain[-1]


def _mod_97(text: str, leads: tuple[int, ...] = (0,)) -> bool:
    """Whether the last two digits complement the others, after one of these leading digits, to a multiple of 97."""
    digits = _digits(text)
    return any(97 - _number([lead, *digits[:-2]]) % 97 == _number(digits[-2:]) for lead in leads)


_DIHEDRAL = (
    "0123456789", "1234067895", "2340178956", "3401289567", "4012395678", "5987604321", "6598710432", "7659821043", "8765932104",
    "9876543210",
)  # fmt: skip
_PERMUTATION = "1576283094"


def _verhoeff(text: str) -> bool:
    powers = ["0123456789"]
    while len(powers) < 8:
        powers.append("".join(powers[-1][int(digit)] for digit in _PERMUTATION))
    check = 0
    for place, digit in enumerate(_digits(text)[::-1]):
        check = int(_DIHEDRAL[check][int(powers[place % 8][digit])])
    return check == 0


def _date(text: str) -> bool:
    """Whether the first six digits form a date, in any order."""
    digits = _digits(text)
    day, month, last = (_number(digits[place : place + 2]) for place in (0, 2, 4))
    return 1 <= month <= 12 and (1 <= day <= 31 or 1 <= last <= 31)


def _chinese_id(text: str) -> bool:
    """ISO 7064, mod 11-2, and a day of birth in between."""
    year, month, day = int(text[6:10]), int(text[10:12]), int(text[12:14])
    if not (1900 <= year <= 2100 and 1 <= month <= 12 and 1 <= day <= 31):
        return False
    total = sum(int(digit) * (2 ** (17 - place) % 11) for place, digit in enumerate(text[:17]))
    return "10X98765432"[total % 11] == text[17].upper()


_ODD = (1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23)


def _codice_fiscale(text: str) -> bool:
    values = [int(char) if char.isdigit() else ord(char) - 65 for char in text.upper()]
    return (sum(_ODD[value] for value in values[0:15:2]) + sum(values[1:15:2])) % 26 == values[15]


def _hetu(text: str) -> bool:
    return "0123456789ABCDEFHJKLMNPRSTUVWXY"[int(text[:6] + text[7:10]) % 31] == text[10].upper()


def _tc_kimlik(text: str) -> bool:
    digits = _digits(text)
    tenth = (sum(digits[0:9:2]) * 7 - sum(digits[1:8:2])) % 10
    return digits[0] != 0 and tenth == digits[9] and sum(digits[:10]) % 10 == digits[10]


def _rodne_cislo(text: str) -> bool:
    digits = _digits(text)
    return len(digits) == 9 or _number(digits) % 11 == 0


def _cnp(text: str) -> bool:
    digits = _digits(text)
    return _weigh_digits(digits, (2, 7, 9, 1, 4, 6, 3, 5, 8, 2, 7, 9)) % 11 % 10 == digits[12]


_CHECKS: dict[str, Callable[[str], bool]] = {
    "chinese id": _chinese_id,
    "cnp": _cnp,
    "codice fiscale": _codice_fiscale,
    "cpf": _cpf,
    "date": _date,
    "dni": _dni,
    "hetu": _hetu,
    "iso 7064": _iso_7064,
    "luhn": _luhn,
    "mod 97": _mod_97,
    "mod 97 or 2000": partial(_mod_97, leads=(0, 2)),
    "personnummer": _personnummer,
    "rodne cislo": _rodne_cislo,
    "ssn": _ssn,
    "tc kimlik": _tc_kimlik,
    "verhoeff": _verhoeff,
}
