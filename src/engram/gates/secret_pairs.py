"""Accounts with their passwords, and tables with a column of secrets."""

import itertools
import re
from collections.abc import Iterable, Iterator

from engram.gates.secret_spans import Secret
from engram.gates.secret_values import Likeness, is_passphrase, likeness, trimmed
from engram.gates.secret_words import alternatives, columns
from engram.gates.secret_words import words as listed

__all__ = ["pairs", "tabled"]

_QUOTES = "\"'`“”„«»‘’「」"
_ABOUT = frozenset(listed("about"))
_LOGINS = listed("logins")
_ACCOUNTS = (*listed("accounts"), "svc")
_PASS = rf"(?:p(?:ass(?:word)?|w)?[: ]\s?)?[{_QUOTES}]?(?P<secret>[^\s{_QUOTES},;|]{{4,64}})"
_BETWEEN = rf"[{_QUOTES}]?(?P<between>\s{{1,2}}[/|]\s{{1,2}}|:|/|\s{{1,2}}[-–]\s{{1,2}}|\s{{0,2}}(?:→|->|=>)\s{{0,2}}|,\s){_PASS}"
_ACCOUNT = re.compile(
    rf"(?<![\w/.@:-])(?P<user>{alternatives('accounts')}|svc[-_][a-z0-9-]{{1,20}}){_BETWEEN}", re.IGNORECASE
)
_ADDRESS = re.compile(rf"@(?<=[\w.+-]@)[\w-]{{1,63}}(?:\.[\w-]{{1,63}}){{1,4}}{_BETWEEN}")
_DIVIDED = re.compile(r"[/|:→>,]|\s[-–]\s")
_GIVEN_LOGIN = re.compile(
    rf"[\w ]{{0,30}}?(?:[:=(]|\b(?:are|is|as|with|using|sind|ist|mit|sont|est|avec|son|es|con|são|com|är|med|to)\b)?\s{{0,3}}[{_QUOTES}]?(?P<user>[\w.+@-]{{2,64}})[{_QUOTES}]?"
    rf"(?P<between>\s{{0,2}}[/|]\s{{0,2}}|:|\s{{1,2}}[-–]\s{{1,2}}|,?\s(?:with|mit|avec|con|com|and|und|et|y|e|/)\s){_PASS}",
    re.IGNORECASE,
)
_UNLOCKS = re.compile(
    rf"(?i)\b(?:log(?:ged)?[ -]?(?:in|on)|login|sign(?:ed)?[ -]?in|authenticate|unlock(?:s|ed)?|unlocking|decrypt(?:s|ed)?|opens?|öffnet|ouvre|abre|apre|opent|anmelden|einloggen|entsperren"
    rf"|connecte[rz]?|iniciar sesión|entrar)(?: [^\s.;:!?]{{1,25}}){{0,6}}? (?:with|using|mit|avec|con|com|by typing|by entering|via)(?: the)? [{_QUOTES}]?(?P<secret>[^\s{_QUOTES},;]{{6,64}})"
)
_UNLOCKING = (
    "log", "sign", "authenticate", "unlock", "decrypt", "open", "öffnet", "ouvre", "abre", "apre", "anmelden", "einloggen",
    "entsperren", "connecte", "iniciar sesión", "entrar",
)  # fmt: skip
_UNLOCKED = re.compile(
    r"(?:opens?|unlock(?:s|ed)?|decrypt(?:s|ed)?|log(?:s|ged)? in|sign(?:s|ed)? in)(?: [^\s.;:!?]{1,25}){0,4}? with [\"“„«](?P<secret>[^\"“”»\n]{6,64})[\"”“»]",
    re.IGNORECASE,
)
_MIXED = re.compile(r"(?=.{0,60}[a-z])(?=.{0,60}[A-Z])(?=.{0,60}\d).{8}")
_SETTING = ("login", "log-in", "account", "wifi", "wi-fi", "wlan", "konto", "zugang")
_WIRELESS_WORDS = ("wifi", "wi-fi", "wlan", "ssid")
_SET_TO = re.compile(
    r"\b(?:login|log-in|account|wi-?fi|wlan|konto|zugang)\b[^\n.;]{0,60}?\b(?:set|changed|reset|updated|switched|geändert|gesetzt)"
    rf" (?:it |that |this |them |his |hers? )?(?:back )?(?:to|auf) [{_QUOTES}]?(?P<secret>[^\s{_QUOTES},;]{{6,64}})",
    re.IGNORECASE,
)
_WIRELESS = re.compile(
    rf"\b(?:wi-?fi|wlan|ssid)\b[^\n:=/]{{0,20}}[:=]\s{{0,2}}[{_QUOTES}]?[^\n/|:]{{2,32}}?[{_QUOTES}]?\s{{0,2}}[/|]\s{{0,2}}{_PASS}",
    re.IGNORECASE,
)
_CELL = re.compile(r"[\w .*`\"'()/#äöüßéèáíóúñçãõ-]{1,40}")
_RULE = re.compile(r"[\s|:+=-]+")
_MOST_ROWS = 200
_HEADS = re.compile(
    "|".join(
        f"(?:{pattern})"
        for kind, _, pattern in columns("secretnames.txt")
        if kind == "strict" or "secret" in pattern or "token" in pattern
    )
    + r"|api[ _-]?key|(?<![a-z])pin(?![a-z])"
)


def pairs(text: str, lowered: str) -> Iterator[Secret]:
    """An account and its password: "admin / …", "credentials are bob:…", "log in with …"."""
    divided = _DIVIDED.search(text) is not None
    for match in (
        *(_at(_ACCOUNT, text, lowered, _ACCOUNTS) if divided else ()),
        *(_ADDRESS.finditer(text) if divided and "@" in text else ()),
    ):
        value = _value(match)
        like, apart = likeness(value), match["between"] not in ("/", ":", ", ")
        own = match.groupdict().get("user", "").casefold() in ("admin", "administrator", "root") and _MIXED.match(value)
        likely = like == Likeness.LIKELY and match["between"] not in ("/", ", ") and not value[0].isdigit()
        if like == Likeness.SURE or likely or (like >= Likeness.WORD and own) or (apart and is_passphrase(value)):
            yield Secret("password", match.start("secret"), match.start("secret") + len(value))
    for hint in _LOGINS:
        position = lowered.find(hint)
        while position >= 0:
            yield from _login(text, position + len(hint))
            position = lowered.find(hint, position + 80)
    for match in _at(_UNLOCKS, text, lowered, _UNLOCKING):
        value = _value(match)
        if likeness(value) == Likeness.SURE:
            yield Secret("password", match.start("secret"), match.start("secret") + len(value))

    for match in _at(_UNLOCKED, text, lowered, _UNLOCKING):
        yield Secret("password", match.start("secret"), match.end("secret"))
    for match in _at(_SET_TO, text, lowered, _SETTING):
        value = _value(match)
        if likeness(value) >= Likeness.LIKELY or is_passphrase(value):
            yield Secret("password", match.start("secret"), match.start("secret") + len(value))
    for match in _at(_WIRELESS, text, lowered, _WIRELESS_WORDS):
        value = _value(match)
        if len(value) > 7 and (likeness(value) >= Likeness.LIKELY or is_passphrase(value)):
            yield Secret("password", match.start("secret"), match.start("secret") + len(value))


def _at(pattern: re.Pattern[str], text: str, lowered: str, words: Iterable[str]) -> Iterator[re.Match[str]]:
    """What the pattern matches where one of the words stands."""
    for word in words:
        place = lowered.find(word)
        while place >= 0:
            match = pattern.match(text, place)
            if match is not None:
                yield match
            place = lowered.find(word, match.end() if match else place + len(word))


def _value(match: re.Match[str]) -> str:
    return trimmed(match["secret"], match.string, match.end("secret"))


def _login(text: str, end: int) -> Iterator[Secret]:
    match = _GIVEN_LOGIN.match(text, end)
    if match is None:
        return
    value = _value(match)
    like, between = likeness(value), match["between"].strip()
    enough = Likeness.LIKELY if between in ("/", "|", ":") else Likeness.SURE
    if (like >= enough or (between in ("/", "|") and is_passphrase(value))) and likeness(match["user"]) < Likeness.SURE:
        yield Secret("password", match.start("secret"), match.start("secret") + len(value))


def tabled(text: str, words: Iterable[tuple[re.Match[str], str]]) -> Iterator[Secret]:
    """Cells below a heading that names a secret, and beside a cell that does: Markdown, CSV, TSV."""
    if "|" not in text and "\t" not in text and not ("\n" in text and ("," in text or ";" in text)):
        return
    passed = 0
    for word, _ in words:
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
    return not any(part in _ABOUT for part in rest)


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
