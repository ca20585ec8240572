"""Numbers that identify a person or an account: cards, IBANs, social security and tax numbers, by their checksums.

A checksum alone is right by chance once in ten or a hundred times, so a bare run of digits also needs a known prefix or a
word nearby that says what it is.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from engram.gates.secret_spans import Secret

__all__ = ["numbers"]

_NEAR = 60
"""How far from the number the word may stand."""
_FEW_DIGITS = re.compile(
    r"\d[\d\s./-]{5,}|[A-Z]{2}\d\d ?[A-Z0-9]{4}|[A-Z]{2} ?\d\d ?\d\d|[A-Z]{6}\d\d|[A-Z]\d\d[A-Z0-9]{5}"
)
_CARD = re.compile(r"(?<![\w.+-])\d(?:[ -]?\d){12,18}(?![\w]|[.-]\d)")
_CARD_PREFIX = re.compile(
    r"4\d{12}(?:\d{3}){0,2}|5[1-5]\d{14}|2(?:22[1-9]|2[3-9]\d|[3-6]\d\d|7[01]\d|720)\d{12}|3[47]\d{13}|3(?:0[0-5]|[68]\d)\d{11}"
    r"|6(?:011|5\d\d|4[4-9]\d)\d{12}|35(?:2[89]|[3-8]\d)\d{12}|62\d{14,17}|(?:5018|5020|5038|6304|6759|676[1-3])\d{8,15}"
)
_GROUPED = re.compile(r"\d{4}([ -])\d{4}\1\d{4}\1\d{1,7}|\d{4}([ -])\d{6}\2\d{4,5}")
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
    r"(?<![A-Za-z0-9])[A-Za-z]{2}\d{2}(?:[ -]?[A-Za-z0-9]{4}){2,7}(?:[ -]?[A-Za-z0-9]{1,3})?(?![A-Za-z0-9])"
)
_IBAN_LENGTHS = {
    "AD": 24, "AE": 23, "AL": 28, "AT": 20, "AZ": 28, "BA": 20, "BE": 16, "BG": 22, "BH": 22, "BR": 29, "BY": 28, "CH": 21,
    "CR": 22, "CY": 28, "CZ": 24, "DE": 22, "DK": 18, "DO": 28, "EE": 20, "EG": 29, "ES": 24, "FI": 18, "FO": 18, "FR": 27,
    "GB": 22, "GE": 22, "GI": 23, "GL": 18, "GR": 27, "GT": 28, "HR": 21, "HU": 28, "IE": 22, "IL": 23, "IQ": 23, "IS": 26,
    "IT": 27, "JO": 30, "KW": 30, "KZ": 20, "LB": 28, "LI": 21, "LT": 20, "LU": 20, "LV": 21, "MC": 27, "MD": 24, "ME": 22,
    "MK": 19, "MR": 27, "MT": 31, "MU": 30, "NL": 18, "NO": 15, "PK": 24, "PL": 28, "PS": 29, "PT": 25, "QA": 29, "RO": 24,
    "RS": 22, "SA": 24, "SC": 31, "SE": 24, "SI": 19, "SK": 24, "SM": 27, "ST": 25, "SV": 28, "TL": 23, "TN": 24, "TR": 26,
    "UA": 29, "VA": 22, "VG": 24, "XK": 20,
}  # fmt: skip


def _digits(text: str) -> list[int]:
    return [int(char) for char in text if char in "0123456789"]


def _luhn(text: str) -> bool:
    digits = _digits(text)[::-1]
    return bool(digits) and sum(sum(divmod(d * 2, 10)) if place % 2 else d for place, d in enumerate(digits)) % 10 == 0


def _varied(text: str) -> bool:
    return len(set(_digits(text))) > 1


def _iban(text: str) -> bool:
    plain = re.sub(r"[ -]", "", text).upper()
    if _IBAN_LENGTHS.get(plain[:2]) != len(plain):
        return False
    return int("".join(str(int(char, 36)) for char in plain[4:] + plain[:4])) % 97 == 1


def _weighted(digits: list[int], weights: range | tuple[int, ...]) -> int:
    return sum(digit * weight for digit, weight in zip(digits, weights, strict=False))


def _ssn(text: str) -> bool:
    plain = "".join(str(digit) for digit in _digits(text))
    area = plain[:3]
    return area not in ("000", "666") and area < "900" and plain[3:5] != "00" and plain[5:] != "0000"


def _german_tax(text: str) -> bool:
    """ISO 7064, mod 11,10."""
    digits, product = _digits(text), 10
    for digit in digits[:10]:
        total = (digit + product) % 10 or 10
        product = total * 2 % 11
    return digits[0] != 0 and (11 - product) % 10 == digits[10]


def _cpf(text: str) -> bool:
    digits = _digits(text)
    first = _weighted(digits[:9], range(10, 1, -1)) * 10 % 11 % 10
    second = _weighted(digits[:10], range(11, 1, -1)) * 10 % 11 % 10
    return _varied(text) and [first, second] == digits[9:]


def _bsn(text: str) -> bool:
    return _weighted(_digits(text), (9, 8, 7, 6, 5, 4, 3, 2, -1)) % 11 == 0


def _dni(text: str) -> bool:
    plain = re.sub(r"[ .-]", "", text).upper()
    number = {"X": "0", "Y": "1", "Z": "2"}.get(plain[0], plain[0]) + plain[1:-1]
    return "TRWAGMYFPDXBNJZSQVHLCKE"[int(number) % 23] == plain[-1]


def _nir(text: str) -> bool:
    digits = "".join(str(digit) for digit in _digits(text))
    return 97 - int(digits[:13]) % 97 == int(digits[13:])


def _tfn(text: str) -> bool:
    return _weighted(_digits(text), (1, 4, 3, 7, 5, 8, 6, 9, 10)) % 11 == 0


_D = ((0, 1, 2, 3, 4, 5, 6, 7, 8, 9), (1, 2, 3, 4, 0, 6, 7, 8, 9, 5), (2, 3, 4, 0, 1, 7, 8, 9, 5, 6), (3, 4, 0, 1, 2, 8, 9, 5, 6, 7),
      (4, 0, 1, 2, 3, 9, 5, 6, 7, 8), (5, 9, 8, 7, 6, 0, 4, 3, 2, 1), (6, 5, 9, 8, 7, 1, 0, 4, 3, 2), (7, 6, 5, 9, 8, 2, 1, 0, 4, 3),
      (8, 7, 6, 5, 9, 3, 2, 1, 0, 4), (9, 8, 7, 6, 5, 4, 3, 2, 1, 0))  # fmt: skip
_P = (0, 1, 2, 3, 4, 5, 6, 7, 8, 9), (1, 5, 7, 6, 2, 8, 3, 0, 9, 4)


def _verhoeff(text: str) -> bool:
    powers = [list(_P[0]), list(_P[1])]
    while len(powers) < 8:
        powers.append([powers[-1][digit] for digit in _P[1]])
    check = 0
    for place, digit in enumerate(_digits(text)[::-1]):
        check = _D[check][powers[place % 8][digit]]
    return check == 0


def _anything(text: str) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class _Number:
    kind: str
    pattern: str
    words: str
    """What has to stand nearby."""
    check: Callable[[str], bool]


_NUMBERS = (
    _Number("ssn", r"\d{3}[- .]\d{2}[- .]\d{4}|\d{9}", r"\bssns?\b|social security|\bss ?#|\bitin\b|soc\.? sec", _ssn),
    _Number(
        "national-insurance-number",
        r"[A-CEGHJ-PR-TW-Za-z]{2} ?\d\d ?\d\d ?\d\d ?[A-Da-d]",
        r"national insurance|\bnino\b|\bni (?:number|no)",
        _anything,
    ),
    _Number(
        "tax-id",
        r"\d{2}[ ]?\d{3}[ ]?\d{3}[ ]?\d{3}",
        r"steuer-?id\w*|steuerliche identifikation|identifikationsnummer|\bidnr\b|german tax id|tax id",
        _german_tax,
    ),
    _Number("cpf", r"\d{3}\.?\d{3}\.?\d{3}-?\d{2}", r"\bcpf\b", _cpf),
    _Number(
        "bsn", r"\d{9}|\d{4}[ .]\d{2}[ .]\d{3}|\d{3}[ .]\d{3}[ .]\d{3}", r"\bbsn\b|burgerservicenummer|sofinummer", _bsn
    ),
    _Number("dni", r"[XYZxyz]?\d{7,8}[- ]?[A-Za-z]", r"\bdni\b|\bnie\b|\bnif\b", _dni),
    _Number(
        "nir",
        r"[12] ?\d\d ?\d\d ?\d\d ?\d{3} ?\d{3} ?\d\d",
        r"sécurité sociale|securite sociale|\bnir\b|numéro de sécu|n° sécu",
        _nir,
    ),
    _Number("tfn", r"\d{3} ?\d{3} ?\d{3}", r"\btfn\b|tax file number", _tfn),
    _Number("sin", r"\d{3}[ -]?\d{3}[ -]?\d{3}", r"\bsin\b(?! \()|social insurance", _luhn),
    _Number(
        "personnummer",
        r"(?:\d\d)?\d{6}[-+]?\d{4}",
        r"personnummer|personal identity number",
        lambda text: _luhn(text[-11:] if "-" in text else text[-10:]),
    ),
    _Number("aadhaar", r"\d{4} ?\d{4} ?\d{4}", r"aadhaar|aadhar", _verhoeff),
    _Number(
        "codice-fiscale",
        r"[A-Za-z]{6}\d\d[A-Za-z]\d\d[A-Za-z]\d{3}[A-Za-z]",
        r"codice fiscale|fiscal code|\bc\.?f\.?\b",
        _anything,
    ),
)


@lru_cache(maxsize=1)
def _compiled() -> tuple[tuple[_Number, re.Pattern[str], re.Pattern[str]], ...]:
    return tuple(
        (number, re.compile(rf"(?<![\w.-])(?:{number.pattern})(?![\w-]|\.\d)"), re.compile(rf"(?i){number.words}"))
        for number in _NUMBERS
    )


def numbers(text: str, *, bare: bool = True) -> Iterator[Secret]:
    """Numbers of cards, accounts and people. `bare=False` leaves digits alone that nothing marks as such."""
    if not _FEW_DIGITS.search(text):
        return
    yield from _cards(text, bare)
    for match in _IBAN.finditer(text):
        if _iban(match[0]):
            yield Secret("iban", match.start(), match.end())
    for number, pattern, words in _compiled():
        yield from _with_words(text, number, pattern, words)


def _cards(text: str, bare: bool) -> Iterator[Secret]:
    for match in _CARD.finditer(text):
        plain = re.sub(r"[ -]", "", match[0])
        if not _CARD_PREFIX.fullmatch(plain) or not _varied(plain) or not _luhn(plain):
            continue
        around = text[max(0, match.start() - _NEAR) : match.end() + _NEAR]
        unmarked = bare and len(plain) <= 16 and not _NO_CARD.search(text[max(0, match.start() - 40) : match.start()])
        if _GROUPED.fullmatch(match[0]) or _CARD_WORDS.search(around) or (unmarked and plain == match[0]):
            yield Secret("card-number", match.start(), match.end())


def _with_words(text: str, number: _Number, pattern: re.Pattern[str], words: re.Pattern[str]) -> Iterator[Secret]:
    end = -1
    for word in words.finditer(text):
        for match in pattern.finditer(text, max(end, 0, word.start() - _NEAR // 2), word.end() + _NEAR):
            if match.start() >= end and _varied(match[0]) and number.check(match[0]):
                end = match.end()
                yield Secret(number.kind, match.start(), match.end())
