"""Numbers that identify a person or an account: cards, IBANs, social security and tax numbers, by their checksums.

A checksum alone is right by chance once in ten or a hundred times, so a bare run of digits also needs a known prefix or a
word nearby that says what it is.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from engram.gates.secrets.words import Secret, places, stretches

__all__ = ["numbers"]

_NEAR = 60
_LONGEST_WORD = 30
"""Maximum characters between a number and its word."""
_SOME_DIGITS = re.compile(r"\d[\dA-Z](?:[\dA-Z\s./-]{3}|[a-z]\d\d)")
_CARD = re.compile(r"\d(?<![\w.+-]\d)(?:[ -]?\d){12,18}(?![\w]|[.-]\d)")
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
    r"\d\d(?<=[A-Za-z]{2}\d\d)(?<![A-Za-z0-9][A-Za-z]{2}\d\d)(?:[ -]?[A-Za-z0-9]{4}){2,7}(?:[ -]?[A-Za-z0-9]{1,3})?(?![A-Za-z0-9])"
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


def _mod11(*weights: int) -> Callable[[str], bool]:
    """The weighted sum of the digits is a multiple of 11."""
    return lambda text: _weighted(_digits(text), weights) % 11 == 0


def _day(text: str) -> bool:
    """Whether six digits form a date, in any order."""
    digits = "".join(str(digit) for digit in _digits(text))
    day, month, last = (int(digits[place : place + 2]) for place in (0, 2, 4))
    return 1 <= month <= 12 and (1 <= day <= 31 or 1 <= last <= 31)


def _pesel(text: str) -> bool:
    return _weighted(_digits(text), (1, 3, 7, 9, 1, 3, 7, 9, 1, 3, 1)) % 10 == 0


def _chinese(text: str) -> bool:
    """ISO 7064, mod 11-2, and a day of birth in between."""
    year, month, day = int(text[6:10]), int(text[10:12]), int(text[12:14])
    if not (1900 <= year <= 2100 and 1 <= month <= 12 and 1 <= day <= 31):
        return False
    total = sum(int(digit) * (2 ** (17 - place) % 11) for place, digit in enumerate(text[:17]))
    return "10X98765432"[total % 11] == text[17].upper()


_ODD = dict(zip("0123456789", (1, 0, 5, 7, 9, 13, 15, 17, 19, 21), strict=True)) | dict(
    zip(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZ",
        (1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23),
        strict=True,
    )
)


def _codice(text: str) -> bool:
    plain = text.upper()
    even = sum(int(char) if char.isdigit() else ord(char) - 65 for char in plain[1:15:2])
    return chr(65 + (even + sum(_ODD[char] for char in plain[0:15:2])) % 26) == plain[15]


def _ean(text: str) -> bool:
    return sum(digit * (3 if place % 2 else 1) for place, digit in enumerate(_digits(text))) % 10 == 0


def _hetu(text: str) -> bool:
    return "0123456789ABCDEFHJKLMNPRSTUVWXY"[int(text[:6] + text[7:10]) % 31] == text[10].upper()


def _belgian(text: str) -> bool:
    digits = "".join(str(digit) for digit in _digits(text))
    return any(97 - int(lead + digits[:9]) % 97 == int(digits[9:]) for lead in ("", "2"))


def _turkish(text: str) -> bool:
    digits = _digits(text)
    tenth = (sum(digits[0:9:2]) * 7 - sum(digits[1:8:2])) % 10
    return digits[0] != 0 and tenth == digits[9] and sum(digits[:10]) % 10 == digits[10]


def _czech(text: str) -> bool:
    digits = "".join(str(digit) for digit in _digits(text))
    return len(digits) == 9 or int(digits) % 11 == 0


def _cnp(text: str) -> bool:
    digits = _digits(text)
    return _weighted(digits, (2, 7, 9, 1, 4, 6, 3, 5, 8, 2, 7, 9)) % 11 % 10 == digits[12]


def _anything(text: str) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class _Number:
    kind: str
    pattern: str
    words: str
    """Words that must occur nearby, separated by bars; empty if form and checksum suffice."""
    check: Callable[[str], bool] = _anything


_ALONE = r"(?<![A-Za-z0-9.-].)"
"""Behind the first character, that nothing is joined to it; there, and not before it, because a search is fastest so."""
_NINE = r"\d{3}[ .-]?\d{3}[ .-]?\d{3}"
_NUMBERS = (
    _Number("ssn", r"\d{3}[- .]\d{2}[- .]\d{4}|\d{9}", "ssn|ssns|social security|ss #|ss#|itin|soc sec|soc. sec", _ssn),
    _Number(
        "national-insurance-number",
        r"[A-CEGHJ-PR-TW-Za-z]{2} ?\d\d ?\d\d ?\d\d ?[A-Da-d]",
        "national insurance|nino|ni number|ni no",
    ),
    _Number(
        "tax-id",
        r"\d{2}[ ]?\d{3}[ ]?\d{3}[ ]?\d{3}",
        "steuer-id|steuerid|steueridentifikationsnummer|steuerliche identifikation|steuer-identifikationsnummer"
        "|identifikationsnummer|idnr|tax id|steuernummer",
        _german_tax,
    ),
    _Number("cpf", r"\d{3}\.?\d{3}\.?\d{3}-?\d{2}", "cpf", _cpf),
    _Number("bsn", rf"\d{{9}}|\d{{4}}[ .]\d{{2}}[ .]\d{{3}}|{_NINE}", "bsn|burgerservicenummer|sofinummer", _bsn),
    _Number("dni", r"[XYZxyz]?\d{7,8}[- ]?[A-Za-z]", "dni|nie|nif", _dni),
    _Number(
        "nir",
        r"[12] ?\d\d ?\d\d ?\d\d ?\d{3} ?\d{3} ?\d\d",
        "sécurité sociale|securite sociale|nir|numéro de sécu|n° sécu|sécu",
        _nir,
    ),
    _Number("tfn", _NINE, "tfn|tax file number", _mod11(1, 4, 3, 7, 5, 8, 6, 9, 10)),
    _Number("sin", _NINE, "sin|social insurance", _luhn),
    _Number(
        "personnummer",
        r"(?:\d\d)?\d{6}[-+]?\d{4}",
        "personnummer|personal identity number",
        lambda text: _luhn(text[-11:] if "-" in text else text[-10:]),
    ),
    _Number("personnummer", r"\d{6} ?\d{5}", "fødselsnummer|personnummer", _day),
    _Number("aadhaar", r"\d{4} ?\d{4} ?\d{4}", "aadhaar|aadhar", _verhoeff),
    _Number("codice-fiscale", rf"[A-Z]{_ALONE}[A-Z]{{5}}\d\d[A-EHLMPRST]\d\d[A-Z]\d{{3}}[A-Z]", "", _codice),
    _Number(
        "codice-fiscale", r"[A-Za-z]{6}\d\d[A-Za-z]\d\d[A-Za-z]\d{3}[A-Za-z]", "codice fiscale|fiscal code|c.f.|cf"
    ),
    _Number("chinese-id", rf"[1-9]{_ALONE}\d{{16}}[\dXx]", "", _chinese),
    _Number("ahv", r"756\.(?<![A-Za-z0-9.-]....)\d{4}\.\d{4}\.\d\d", "", _ean),
    _Number("ahv", r"756[ .]?\d{4}[ .]?\d{4}[ .]?\d\d", "ahv|avs|sozialversicherungsnummer", _ean),
    _Number("hetu", rf"\d{_ALONE}\d{{5}}[-+A-FU-Y]\d{{3}}[0-9A-Y]", "", _hetu),
    _Number("pesel", r"\d{11}", "pesel|peselu|pesele", _pesel),
    _Number(
        "national-register-number",
        r"\d\d\.?\d\d\.?\d\d[- ]?\d{3}[. ]?\d\d",
        "rijksregister|rijksregisternummer|registre national|insz|niss",
        _belgian,
    ),
    _Number("cpr", r"\d{6}[- ]?\d{4}", "cpr|cpr-nummer|cpr-nr|kennitala", _day),
    _Number("resident-number", r"\d{6}-?[1-8]\d{6}", "주민등록번호|주민번호|resident registration", _day),
    _Number("my-number", r"\d{4}[ -]?\d{4}[ -]?\d{4}", "マイナンバー|個人番号|my number"),
    _Number("nhs-number", r"\d{3}[ -]?\d{3}[ -]?\d{4}", "nhs", _mod11(10, 9, 8, 7, 6, 5, 4, 3, 2, 1)),
    _Number("tc-kimlik", r"\d{11}", "kimlik|tckn|t.c.|tc no", _turkish),
    _Number("cnp", r"[1-9]\d{12}", "cnp|cod numeric personal", _cnp),
    _Number("rodne-cislo", r"\d{6}/?\d{3,4}", "rodné číslo|rodne cislo|rodného čísla|rč", _czech),
    _Number("snils", r"\d{3}-\d{3}-\d{3}[ -]\d\d|\d{11}", "снилс|snils"),
    _Number("inn", r"\d{12}", "инн|inn"),
    _Number("oib", r"\d{11}", "oib", _german_tax),
    _Number("jmbg", r"\d{13}", "jmbg|јмбг|emšo"),
    _Number("egn", r"\d{10}", "егн|egn"),
    _Number("curp", rf"[A-Z]{_ALONE}[A-Z]{{3}}\d{{6}}[HM][A-Z]{{5}}[A-Z0-9]\d", ""),
    _Number("pan", r"[A-Z]{5}\d{4}[A-Z]", "pan|permanent account"),
    _Number("nric", r"[STFGM]\d{7}[A-Z]", "nric|fin no|identity card"),
    _Number("hkid", r"[A-Z]{1,2}\d{6}\(?[0-9A]\)?", "hkid|身份證|身份证|identity card"),
    _Number("identity-number", r"\d{13}", "sa id|south african id|id number|identity number", _luhn),
    _Number("identity-number", r"\d{9}", "teudat zehut|תעודת זהות|israeli id", _luhn),
    _Number("nif", r"\d{9}", "nif|número de contribuinte|contribuinte", _mod11(9, 8, 7, 6, 5, 4, 3, 2, 1)),
)
_END = r"(?![A-Za-z0-9]|[-.]\d)"


@lru_cache(maxsize=64)
def _compiled(row: int) -> tuple[re.Pattern[str], re.Pattern[str] | None]:
    """The pattern of a row, and that of its words."""
    number = _NUMBERS[row]
    alternatives = "|".join(re.escape(word) for word in number.words.split("|"))
    near = re.compile(rf"(?<![^\W\d_])(?:{alternatives})(?![a-zа-яà-ÿ])") if number.words else None
    return re.compile(rf"{'(?<![A-Za-z0-9.-])' if near else ''}(?:{number.pattern}){_END}"), near


@lru_cache(maxsize=1)
def _rows_of() -> tuple[tuple[int, tuple[str, ...]], ...]:
    """The words of each row; a row is tried only if one of them occurs in the text."""
    return tuple((row, tuple(number.words.split("|"))) for row, number in enumerate(_NUMBERS))


def numbers(text: str, lowered: str, *, bare: bool = True) -> Iterator[Secret]:
    """Numbers of cards, accounts and people. `bare=False` ignores digits without a word that marks them."""
    if not _SOME_DIGITS.search(text):
        return
    yield from _cards(text, bare)
    for match in _IBAN.finditer(text):
        if _iban(text[match.start() - 2 : match.end()]):
            yield Secret("iban", match.start() - 2, match.end())
    for row, row_words in _rows_of():
        if any(word in lowered for word in row_words):
            yield from _told(text, lowered, row)


def _cards(text: str, bare: bool) -> Iterator[Secret]:
    for match in _CARD.finditer(text):
        plain = re.sub(r"[ -]", "", match[0])
        if not _CARD_PREFIX.fullmatch(plain) or not _varied(plain) or not _luhn(plain):
            continue
        around = text[max(0, match.start() - _NEAR) : match.end() + _NEAR]
        unmarked = bare and len(plain) <= 16 and not _NO_CARD.search(text[max(0, match.start() - 40) : match.start()])
        if _GROUPED.fullmatch(match[0]) or _CARD_WORDS.search(around) or (unmarked and plain == match[0]):
            yield Secret("card-number", match.start(), match.end())


def _told(text: str, lowered: str, row: int) -> Iterator[Secret]:
    """The numbers of a row: all of that form, or those near one of its words."""
    number, (pattern, words) = _NUMBERS[row], _compiled(row)
    end = 0
    # Each character around the words is searched once.
    candidates = number.words.split("|") if words else ()
    near = (place for word in candidates for place in places(word, lowered) if words and words.match(lowered, place))
    for begin, stop in stretches(near, _NEAR // 2, _NEAR + _LONGEST_WORD) if words else ((0, len(text)),):
        for match in pattern.finditer(text, max(end, begin), stop):
            if _varied(match[0]) and number.check(match[0]):
                end = match.end()
                yield Secret(number.kind, match.start(), match.end())
