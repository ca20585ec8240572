"""PINs and door codes, accounts with their passwords, and tables with a column of secrets."""

import itertools
import re
from collections.abc import Iterator
from functools import lru_cache

from engram.gates.secret_naming import names_in
from engram.gates.secret_spans import Secret
from engram.gates.secret_values import Likeness, likeness
from engram.gates.secret_words import ABOUT, ACCOUNTS, CODES, COPULAS, LOGINS, NAMES

__all__ = ["codes", "pairs", "tabled"]

_QUOTES = "\"'`“”„«»‘’「」"
_COPULAS = "|".join(re.escape(word) for word in COPULAS.split())
_LOGINS = tuple(LOGINS.split("|"))
_DIGITS = rf"[{_QUOTES}*#]{{0,3}}(?P<secret>\d{{4,10}}|\d{{2,3}}[ -]\d{{2,4}}(?:[ -]\d{{2,4}}){{0,2}}|[0-9*#]{{4,10}})(?![\w-]|[.,:]\d|\s?%)"
_CODE_GIVEN = re.compile(
    rf"s?[{_QUOTES}*]{{0,3}}(?:\s?\([^()\n]{{0,30}}\))?(?P<lead>(?: [^\s.;:=!?|<>()\d]{{1,25}}){{0,6}}?)"
    rf"(?:\s{{0,3}}(?P<sign>:=|=|:|：|->|→)\s{{0,3}}|['’]s\s{{1,3}}|\s{{1,3}}(?:{_COPULAS})[: ]\s{{0,3}}|\s?[是为為は]\s?|\s?[—–-]\s){_DIGITS}",
    re.IGNORECASE,
)
_CODE_BESIDE = re.compile(rf"s?\s{{1,3}}{_DIGITS}(?!\s(?:of|on|to|is|and|header|connector|pins?)\b)")
_NO_CODE = re.compile(
    r"(?i)(?:postal|zip|area|city|country|indian|post|error|status|exit|chip|gpio|connector|header)\W{0,2}\Z"
)
_SHORT = re.compile(r"(?<![\d])\d{3}(?!\d)")
_CVV = re.compile(
    r"(?i)(?:\s?(?:code|number))?(?:\s{0,3}[:=]\s{0,3}|\s{1,3}(?:is|ist|est|es|é)\s{1,3}|\s{1,3})(?P<secret>\d{3,4})(?!\d)"
)

_PASS = rf"(?:p(?:ass(?:word)?|w)?[: ]\s?)?[{_QUOTES}]?(?P<secret>[^\s{_QUOTES},;|]{{4,64}})"
_BETWEEN = rf"[{_QUOTES}]?(?P<between>\s{{1,2}}[/|]\s{{1,2}}|:|/|\s{{1,2}}[-–]\s{{1,2}}){_PASS}"
_ACCOUNT = re.compile(rf"(?<![\w/.@:-])(?P<user>{ACCOUNTS}){_BETWEEN}", re.IGNORECASE)
_ADDRESS = re.compile(rf"(?<![\w/.@:+-])(?P<user>[\w.+-]{{1,64}}@[\w-]{{1,63}}(?:\.[\w-]{{1,63}}){{1,4}}){_BETWEEN}")
_DIVIDED = re.compile(r"[/|:]|\s[-–]\s")
_GIVEN_LOGIN = re.compile(
    rf"[\w ]{{0,30}}?(?:[:=(]|\b(?:are|is|as|with|using|sind|ist|mit|sont|est|avec|son|es|con|são|com|är|med|to)\b)?\s{{0,3}}[{_QUOTES}]?(?P<user>[\w.+@-]{{2,64}})[{_QUOTES}]?"
    rf"(?P<between>\s{{0,2}}[/|]\s{{0,2}}|:|\s{{1,2}}[-–]\s{{1,2}}|,?\s(?:with|mit|avec|con|com|and|und|et|y|e|/)\s){_PASS}",
    re.IGNORECASE,
)
_UNLOCKS = re.compile(
    rf"(?i)\b(?:log(?:ged)?[ -]?(?:in|on)|login|sign(?:ed)?[ -]?in|authenticate|unlock(?:s|ed)?|unlocking|decrypt(?:s|ed)?|anmelden|einloggen|entsperren"
    rf"|connecte[rz]?|iniciar sesión|entrar)(?: [^\s.;:!?]{{1,25}}){{0,6}}? (?:with|using|mit|avec|con|com|by typing|by entering|via)(?: the)? [{_QUOTES}]?(?P<secret>[^\s{_QUOTES},;]{{6,64}})"
)
_UNLOCKING = (
    "log",
    "sign",
    "authenticate",
    "unlock",
    "decrypt",
    "anmelden",
    "entsperren",
    "connecte",
    "sesión",
    "entrar",
)
_CELL = re.compile(r"[\w .*`\"'()/#äöüßéèáíóúñçãõ-]{1,40}")
_RULE = re.compile(r"[\s|:+=-]+")
_MOST_ROWS = 200
_WORTHLESS = ".,;:!?)]}>*_|\\"
_HEADS = re.compile(
    "|".join(
        f"(?:{pattern})" for kind, _, pattern in NAMES if kind == "strict" or "secret" in pattern or "token" in pattern
    )
    + r"|api[ _-]?key|(?<![a-z])pin(?![a-z])"
)


@lru_cache(maxsize=64)
def _finder(rows: tuple[int, ...]) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{CODES[row][1]})" for row in rows))


def codes(text: str, lowered: str) -> Iterator[Secret]:
    """PINs, door codes, one-time codes and their like: digits behind a word for them."""
    rows = tuple(row for row, (stem, _, _) in enumerate(CODES) if stem in lowered)
    for word in _finder(rows).finditer(lowered) if rows else ():
        if _NO_CODE.search(text[max(0, word.start() - 14) : word.start()]):
            continue
        if word[0].startswith(("cvv", "cvc")):
            given = _CVV.match(text, word.end())
        else:
            given = _CODE_GIVEN.match(text, word.end()) or _CODE_BESIDE.match(text, word.end())
            if given is not None and not given.groupdict().get("sign") and _is_year_list(given):
                given = None
        if given is not None:
            yield Secret("pin", given.start("secret"), given.end("secret"))


def _is_year_list(given: re.Match[str]) -> bool:
    lead = (given.groupdict().get("lead") or "").casefold().split()
    return any(word in ABOUT or word in ("postal", "zip", "expired", "since", "until", "year", "in") for word in lead)


def pairs(text: str, lowered: str) -> Iterator[Secret]:
    """An account and its password: "admin / …", "credentials are bob:…", "log in with …"."""
    divided = _DIVIDED.search(text) is not None
    for match in (
        *(_ACCOUNT.finditer(text) if divided else ()),
        *(_ADDRESS.finditer(text) if divided and "@" in text else ()),
    ):
        value = match["secret"].rstrip(_WORTHLESS)
        like = likeness(value)
        if like == Likeness.SURE or (like == Likeness.LIKELY and match["between"] != "/" and not value[0].isdigit()):
            yield Secret("password", match.start("secret"), match.start("secret") + len(value))
    for hint in _LOGINS:
        position = lowered.find(hint)
        while position >= 0:
            yield from _login(text, position + len(hint))
            position = lowered.find(hint, position + 80)
    for match in _UNLOCKS.finditer(text) if any(hint in lowered for hint in _UNLOCKING) else ():
        value = match["secret"].rstrip(_WORTHLESS)
        if likeness(value) == Likeness.SURE:
            yield Secret("password", match.start("secret"), match.start("secret") + len(value))


def _login(text: str, end: int) -> Iterator[Secret]:
    match = _GIVEN_LOGIN.match(text, end)
    if match is None:
        return
    value = match["secret"].rstrip(_WORTHLESS)
    like, between = likeness(value), match["between"].strip()
    enough = Likeness.LIKELY if between in ("/", "|", ":") else Likeness.SURE
    if like >= enough and likeness(match["user"]) < Likeness.SURE:
        yield Secret("password", match.start("secret"), match.start("secret") + len(value))


def tabled(text: str, lowered: str) -> Iterator[Secret]:
    """Cells below a heading that names a secret, and beside a cell that does: Markdown, CSV, TSV."""
    if "|" not in text and "\t" not in text and not ("\n" in text and ("," in text or ";" in text)):
        return
    passed = 0
    for word, _ in names_in(lowered):
        if word.start() < passed:
            continue
        begin, end = text.rfind("\n", 0, word.start()) + 1, text.find("\n", word.end())
        end = len(text) if end < 0 else end
        if end - begin > 2_000:
            passed = end
            continue
        line = text[begin:end]
        separator = next((sign for sign in "|\t;," if sign in line), "")
        if separator and (separator in "|\t" or text.find(separator, end) >= 0):
            passed = max(passed, end)
            found, read = _cells(text, begin, end, separator)
            yield from found
            passed = max(passed, read)


def _cells(text: str, begin: int, end: int, separator: str) -> tuple[list[Secret], int]:
    heads = _split(text, begin, end, separator)
    if len(heads) < 2 or not all(_CELL.fullmatch(cell.strip() or "-") for cell, _ in heads):
        return ([*_labelled(heads)], end) if separator in "|\t" else ([], 0)
    columns = [place for place, (cell, _) in enumerate(heads) if _names_secret(cell)]
    found = [*_labelled(heads)] if separator in "|\t" else []
    for _ in range(_MOST_ROWS):
        begin, end = end + 1, text.find("\n", end + 1)
        end = len(text) if end < 0 else end
        if begin >= len(text) or end - begin > 2_000:
            break
        cells = _split(text, begin, end, separator)
        if len(cells) != len(heads):
            break
        if not _RULE.fullmatch(text[begin:end]):
            found += [secret for place in columns for secret in _cell(*cells[place])]
    return found, begin - 1


def _split(text: str, begin: int, end: int, separator: str) -> list[tuple[str, int]]:
    cells, position = [], begin
    for part in text[begin:end].split(separator):
        cells.append((part, position))
        position += len(part) + 1
    return cells


def _names_secret(cell: str) -> bool:
    lowered = cell.lower().strip(" *`\"'_")
    word = _HEADS.search(lowered)
    if word is None or len(lowered) - len(word[0]) > 24:
        return False
    rest = re.findall(r"[^\W\d_]+", lowered[word.end() :])
    return not any(part in ABOUT for part in rest)


def _labelled(cells: list[tuple[str, int]]) -> Iterator[Secret]:
    for (cell, _), (value, start) in itertools.pairwise(cells):
        if _names_secret(cell):
            yield from _cell(value, start)


def _cell(cell: str, start: int) -> Iterator[Secret]:
    value = cell.strip(" \t\r*`\"'_")
    if not value or " " in value:
        return
    like = likeness(value)
    if like >= Likeness.LIKELY:
        place = start + cell.find(value)
        yield Secret("password", place, place + len(value))
