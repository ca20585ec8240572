"""Private keys (PEM blocks, whole or cut, also escaped or in base64), PINs and codes, account and password pairs, tables."""

import base64
import binascii
import itertools
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from functools import lru_cache

from engram.gates.secrets.forms import (
    CODES,
    NAMES,
    Hints,
    Likeness,
    Secret,
    alternatives,
    columns,
    is_passphrase,
    likeness,
    trim_value,
    without_overlaps,
    words,
    words_in,
)
from engram.gates.tables import places
from engram.model.lazy import lazy_pattern

__all__ = [
    "PRIVATE_KEY_MARK",
    "continued_key",
    "ends_in_key",
    "find_codes",
    "find_login_pairs",
    "find_table_secrets",
    "private_keys",
    "warned_codes",
]

PRIVATE_KEY_KIND = "private-key"
PRIVATE_KEY_MARK = f"[redacted:{PRIVATE_KEY_KIND}]"
_LONGEST_KEY = 20_000
_BEGIN = re.compile(
    r"-----BEGIN (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-----|PuTTY-User-Key-File-\d|---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----"
)
_END = re.compile(
    r"-----END (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-----|Private-MAC:[^\n]{0,100}|---- END SSH2 ENCRYPTED PRIVATE KEY ----"
)
_BODY = re.compile(r"[A-Za-z0-9+/=\s:,\\-]*")
_NO_BODY = re.compile(r"(?:\s|\\n)*+(?:[.…*x]+|[<\[({].{0,120}[>\])}])?(?:\s|\\n)*+", re.DOTALL)
_SOME_BODY = re.compile(r"[A-Za-z0-9+/=]{10}")
_WRAPPED = re.compile(r"LS0tLS1CRUdJTi[A-Za-z0-9+/]{20,20000}={0,2}")
_BASE64_RUN = r"(?=[A-Za-z+/=]{0,76}[0-9])(?=[a-z0-9+/=]{0,76}[A-Z])(?=[A-Z0-9+/=]{0,76}[a-z])[A-Za-z0-9+/=]{20,}"
_CONTINUED = re.compile(
    rf"\s*[A-Za-z0-9+/=]{{0,19}}\n?{_BASE64_RUN}(?:(?:\\n|\s)+[A-Za-z0-9+/=]{{1,80}}(?=\s|\\n|\Z|-))*"
)
_BEFORE_END = re.compile(r"[A-Za-z0-9+/=\\\s]")


def private_keys(text: str) -> Iterator[Secret]:
    """Every private key in a text, including one without its start or end."""
    if "PRIVATE KEY" in text or "PuTTY-User-Key-File" in text:
        yield from _blocks(text)
    if "LS0tLS1CRUdJTi" in text:
        yield from _find_wrapped(text)


def _blocks(text: str) -> Iterator[Secret]:
    position = 0
    while begin := _BEGIN.search(text, position):
        yield from _find_headless_keys(text, position, begin.start())
        end = _END.search(text, begin.end(), begin.end() + _LONGEST_KEY)
        body = _BODY.match(text, begin.end(), begin.end() + _LONGEST_KEY)
        position = end.end() if end else (body or begin).end()
        quoted = end is None and text[begin.end() : begin.end() + 1] in tuple("\"'`”")
        if not quoted and not _is_elided(text[begin.end() : end.start() if end else position], whole=end is not None):
            yield Secret(PRIVATE_KEY_KIND, begin.start(), position)
    yield from _find_headless_keys(text, position, len(text))


def _is_elided(body: str, *, whole: bool) -> bool:
    """Whether the block contains no key: dots, a placeholder, a sentence.

    An empty block may continue in the next text.
    """
    if whole:
        return _NO_BODY.fullmatch(body[:200]) is not None
    return bool(body.strip()) and _SOME_BODY.search(body) is None


def _find_headless_keys(text: str, start: int, stop: int) -> Iterator[Secret]:
    """The end of a key that started in another text."""
    for end in _END.finditer(text, start, stop):
        begin = end.start()
        while begin > max(start, end.start() - _LONGEST_KEY) and _BEFORE_END.match(text[begin - 1]):
            begin -= 1
        # Words may precede the key; it starts with its first long run.
        run = re.compile(r"[A-Za-z0-9+/=]{20,}").search(text, begin, end.start())
        if run:
            # At the very start, the rest of a cut line belongs to the key.
            cut = begin == 0 and " " not in text[: run.start()].strip()
            yield Secret(PRIVATE_KEY_KIND, 0 if cut else run.start(), end.end())
        start = end.end()


def _find_wrapped(text: str) -> Iterator[Secret]:
    for match in _WRAPPED.finditer(text):
        try:
            head = base64.b64decode(match[0][:80] + "=" * (-len(match[0][:80]) % 4))
        except binascii.Error:
            continue
        if b"PRIVATE KEY" in head:
            yield Secret(PRIVATE_KEY_KIND, match.start(), match.end())


def ends_in_key(text: str) -> bool:
    """Whether a stored text ends with a redacted private key, which the next text may continue."""
    return text.rstrip(" \n\t\r\"'`").endswith(PRIVATE_KEY_MARK)


def continued_key(text: str) -> int:
    """The length of the start of a text that looks like the rest of a key; 0 for none."""
    match = _CONTINUED.match(text, 0, _LONGEST_KEY)
    if match is None:
        return 0
    rest = re.compile(r"\s*-{0,5}(?:END )?(?:[A-Z0-9]{1,20} ){0,4}(?:KEY)?-{0,5}\s*").match(text, match.end())
    return rest.end() if rest else match.end()


_MAX_CODE_DISTANCE = 80
"""Maximum characters between the word and its digits, and between the digits and what they open."""
_MOST_BETWEEN = 9
_QUOTES = "\"'`“”„«»‘’「」"
# Letters of one case with digits, as on a keypad; groups of the same size.
_DIGITS = re.compile(
    r"(?P<secret>[0-9A-Z*#](?<![A-Za-z0-9.,:/#+@$€£-].)(?<!\d .)"
    r"(?:(?<=\d)(?:\d{3,9}[A-Z]?|\d{0,4}[A-ZА-Я]\d{1,5}|\d(?:[ -]\d\d){1,3}|\d\d[ -]\d{3,4}|\d{3}[ -]\d{4}|\d\d-\d\d-\d{3}|\d{3}-\d{3}-\d{4}|(?:[ -]\d){3,7}|-\d-\d)"
    r"|(?<=[A-Z])\d{3,7}|(?<=[*#])\d{3,9})[#*]?)(?![A-Za-z0-9]|[-/ ]\d|[.,:]\d|\s?[%€$£°])"
)
_LETTERED = re.compile(
    r"(?<![\w.,:/#+@$€£-])(?=[A-Za-z]{0,9}\d)(?=\d{0,9}[A-Za-z])[A-Za-z0-9]{5,10}(?![\w-]|[.,:/]\w)"
    r"|(?<![\w-])[A-Z0-9]{3}-[A-Z0-9]{3}(?![\w-])",
    re.ASCII,
)
_NAMED_NUMBER = re.compile(r"[A-Z]+\d+")
_WARNING = "warning"
_LONGEST_ONE_TIME = 8
_SURELY_ONE_TIME = 6
_NUMBERED = ("pin", "puk")
_SAID_OF_IT = re.compile(r"-|\s(?:is|was|ist|war|est|es|era|è|é)\b", re.IGNORECASE)
_WARNED = 160
"""Maximum characters from digits to the warning not to share them."""
_INTRODUCED = lazy_pattern(
    rf"(?i)(?:[:=：→＝]|->|[—–-]|\b(?:{'|'.join(re.escape(word) for word in words('copulas') if word.isalpha())})\b:?|['’]s|\bc['’]est"
    rf"|\b(?:to|auf|with|mit|avec|con|com|met|en|puse|mis)|\b(?:composez|tapez) (?:le )?|[是为為はが는은가]|成了?)[\s{_QUOTES}*_]{{0,4}}\Z"
)
_STARTED = re.compile(rf"s?(?: (?:the|le|den|el|il|code))?[\s{_QUOTES}*_]{{0,4}}\Z")
_SENTENCE_END = re.compile(r"[.!?](?:\s|\Z)|[\n。！？;|<>{}]")
_ENDS = re.compile(
    rf"[{_QUOTES}*_)]{{0,3}}(?:\Z|[\s]{{0,2}}\n|[,.;!?)，。、；！]|\s(?:at|for|then|and then|before|puis|dann|luego|poi|e poi|dopo|daarna|potem|[(/—–-])|[^\x00-\u02ff])"
)
_YEAR = re.compile(r"(?:19|20)\d\d")
_OTHER = lazy_pattern(rf"(?:{alternatives('other codes')})\W{{0,2}}\Z")
_OTHER_BEHIND = lazy_pattern(rf"s?\W{{1,2}}(?:{alternatives('other codes')})\b")
_BETWEEN = frozenset(words("no code between"))
_BEFORE = frozenset(words("no code before"))
_BEHIND = lazy_pattern(rf"\s?[-–]?(?:{alternatives('no code behind').replace('$', '[$]')})(?![^\W\d_])", re.IGNORECASE)
_WORDS = re.compile(r"[^\W\d_]+")
_SAID_OF = re.compile(
    r",? (?:is|was|as the|as my|ist|als|est|comme|es|como|è|é|to|это|är|er) (?:[^\s.!?]{1,20} ){0,3}?(?=pin|puk|otp|pass|code|verif|secur|confirm|login|sms|door|gate|alarm|пин)",
    re.IGNORECASE,
)


@lru_cache(maxsize=1)
def _words_of_locks() -> tuple[frozenset[str], tuple[str, ...], tuple[str, ...]]:
    """Words for things that a code opens: whole words, prefixes of words, and substrings."""
    listed = words("locked")
    begun = tuple(word.removesuffix(r"\w*") for word in listed if word.endswith(r"\w*"))
    spaced = tuple(word for word in listed if " " in word or "-" in word)
    return frozenset(listed), begun, (*spaced, *words("locked unspaced"))


def find_codes(text: str, lowered: str, hints: Hints) -> Iterator[Secret]:
    """PINs, door codes, one-time codes and the like."""
    # Digits are rarer than words, so the search starts from them.
    if _DIGITS.search(text) is None and _LETTERED.search(text) is None:
        return
    named = [pair for pair in words_in(lowered, CODES, hints) if pair[1] != _WARNING]
    if named:
        yield from _digits(text, lowered, named)
    yield from _find_letter_codes(text, lowered, named)


def warned_codes(text: str, lowered: str, hints: Hints) -> Iterator[Secret]:
    """Digits that the text says not to share."""
    warnings = [word for word, kind in words_in(lowered, CODES, hints) if kind == _WARNING]
    for given in _DIGITS.finditer(text) if warnings else ():
        if _is_warned(lowered, given, warnings):
            yield Secret("pin", given.start("secret"), given.end("secret"))


def _digits(text: str, lowered: str, named: list[tuple[re.Match[str], str]]) -> Iterator[Secret]:
    place = 0
    for given in _DIGITS.finditer(text):
        before = []
        while place < len(named) and named[place][0].start() < given.start():
            before.append(named[place])
            place += 1
        described = _SAID_OF.match(text, given.end())
        behind = [
            pair
            for pair in named[place : place + 1]
            if described and pair[0].start() == described.end() and pair[1] == "strong"
        ]
        near = [
            pair
            for pair in before
            if pair[0].end() >= given.start() - _MAX_CODE_DISTANCE and _belongs(text, *pair, given)
        ]
        if any(_is_code(lowered, *pair) for pair in (*near, *behind)):
            yield Secret("pin", given.start("secret"), given.end("secret"))


def _is_warned(lowered: str, given: re.Match[str], warnings: list[re.Match[str]]) -> bool:
    """Whether the text warns to keep the digits secret: "412773. Do not share it"."""
    if not given["secret"].isdigit() or len(given["secret"]) > _LONGEST_ONE_TIME or _YEAR.fullmatch(given["secret"]):
        return False
    if not _ENDS.match(lowered, given.end()) or _OTHER.search(lowered[max(0, given.start() - 14) : given.start()]):
        return False
    before = bisect_left(warnings, given.end() + _WARNED, key=re.Match.start)
    return before > 0 and warnings[before - 1].end() > given.start() - _MAX_CODE_DISTANCE


def _find_letter_codes(text: str, lowered: str, named: list[tuple[re.Match[str], str]]) -> Iterator[Secret]:
    """Codes of letters and digits: "the banking PIN is 02308Cf2"."""
    for word, kind in named:
        if kind != "strong" or _is_other(lowered, word):
            continue
        for given in _LETTERED.finditer(text, word.end(), word.end() + _MAX_CODE_DISTANCE):
            between = text[word.end() : given.start()]
            if _SENTENCE_END.search(between) or not _BETWEEN.isdisjoint(between.casefold().split()):
                break
            if _is_lettered(given[0]) and (_INTRODUCED.search(between) or (not between.strip() and word[0] != "pin")):
                yield Secret("pin", given.start(), given.end())
                break


def _is_lettered(value: str) -> bool:
    like = likeness(value)
    digits = sum(map(str.isdigit, value))
    grouped = value[3] == "-"
    shouted = value.isupper() and (digits >= 2 or (len(value) > 5 and _NAMED_NUMBER.fullmatch(value) is None))
    return like == Likeness.SURE or grouped or (like > Likeness.NOT and shouted)


def _is_code(lowered: str, word: re.Match[str], kind: str) -> bool:
    """Whether the word means a secret code; an ambiguous one needs a mention of what it opens."""
    return not _is_other(lowered, word) and (kind == "strong" or _opens(lowered, word))


def _is_other(lowered: str, word: re.Match[str]) -> bool:
    """Whether it is an error code, a postcode or a discount code."""
    before = lowered[max(0, word.start() - 14) : word.start()]
    owner = word[0].rpartition(" ")[0]
    return bool(_OTHER.search(before) or _OTHER.search(owner) or _OTHER_BEHIND.match(lowered, word.end()))


def _opens(lowered: str, word: re.Match[str]) -> bool:
    """Whether the sentence mentions something that a code opens."""
    before = _SENTENCE_END.split(lowered[max(0, word.start() - _MAX_CODE_DISTANCE) : word.start()])[-1]
    sentence = (
        before
        + lowered[word.start() : word.end()]
        + _SENTENCE_END.split(lowered[word.end() : word.end() + _MAX_CODE_DISTANCE])[0]
    )
    whole, begun, anywhere = _words_of_locks()
    return any(one in whole or one.startswith(begun) for one in _WORDS.findall(sentence)) or any(
        one in sentence for one in anywhere
    )


def _belongs(text: str, word: re.Match[str], kind: str, given: re.Match[str]) -> bool:
    """Whether nothing between the word and the digits, or after them, shows that they mean something else."""
    between, value = text[word.end() : given.start()], given["secret"]
    words = between.casefold().split()
    if len(words) > _MOST_BETWEEN or _SENTENCE_END.search(between) or not _BETWEEN.isdisjoint(words):
        return False
    if (words and words[-1] in _BEFORE) or _BEHIND.match(text, given.end()):
        return False
    if words and words[-1].isalpha() and (shouted := between.split()[-1]).isupper() and len(shouted) < 5:
        # The number of a standard: EN 15232.
        return False
    if kind == "verb":
        return _STARTED.match(between) is not None and not _YEAR.fullmatch(value)
    if _INTRODUCED.search(between):
        return True
    if kind == "strong" and not between.strip() and value[0].isdigit():
        if word[0] in _NUMBERED and _ENDS.match(text, given.end()):
            return True
        if len(value) >= _SURELY_ONE_TIME and not _SAID_OF_IT.match(text, given.end()):
            return True
    if kind == "strong" and not between.strip() and not value.isdigit() and word[0] not in _NUMBERED:
        return _ENDS.match(text, given.end()) is not None
    if _YEAR.fullmatch(value) or value[0].isalpha() or not _ENDS.match(text, given.end()):
        return False
    return kind == "strong" or len(words) <= 6 or _STARTED.match(between) is not None


_ABOUT = frozenset(words("about"))
_LOGINS = frozenset(words("logins"))
_ACCOUNTS = frozenset(words("accounts"))
_PASS = rf"(?:p(?:ass(?:word)?|w)?[: ]\s?)?[{_QUOTES}]?(?P<secret>[^\s{_QUOTES},;|]{{4,64}})"
_PAIR_BETWEEN = rf"[{_QUOTES}]?(?P<between>\s{{1,2}}[/|]\s{{1,2}}|:|/|\s{{1,2}}[-–]\s{{1,2}}|\s{{0,2}}(?:→|->|=>)\s{{0,2}}|,\s){_PASS}"
_ACCOUNT = lazy_pattern(
    rf"(?<![\w/.@:-])(?P<user>{alternatives('accounts')}|svc[-_][a-z0-9-]{{1,20}}){_PAIR_BETWEEN}", re.IGNORECASE
)
_ADDRESS = re.compile(rf"@(?<=[\w.+-]@)(?!sha\d{{3}}:)[\w-]{{1,63}}(?:\.[\w-]{{1,63}}){{1,4}}{_PAIR_BETWEEN}")
_DIVIDED = re.compile(r"[/|:→>,]|\s[-–]\s")
_GIVEN_LOGIN = lazy_pattern(
    rf"[\w ]{{0,30}}?(?:[:=(]|\b(?:are|is|as|with|using|sind|ist|mit|sont|est|avec|son|es|con|são|com|är|med|to)\b)?\s{{0,3}}[{_QUOTES}]?(?P<user>[\w.+@-]{{2,64}})[{_QUOTES}]?"
    rf"(?P<between>\s{{0,2}}[/|]\s{{0,2}}|:|\s{{1,2}}[-–]\s{{1,2}}|,?\s(?:with|mit|avec|con|com|and|und|et|y|e|/)\s){_PASS}",
    re.IGNORECASE,
)
_CAMEL = re.compile(r"(?![a-z]{2,3}\d*\Z|[A-Z]\d*\Z)(?:[A-Z]?[a-z]{2,}+|[A-Z]{1,3}+\d{0,2}+){1,12}+\d{0,2}")
"""The name of a class or a function."""
_MIXED = re.compile(r"(?=.{0,60}[a-z])(?=.{0,60}[A-Z])(?=.{0,60}\d).{8}")
_CELL = re.compile(r"[\w .*`\"'()/#äöüßéèáíóúñçãõ-]{1,40}")
_RULE = re.compile(r"[\s|:+=-]+")
_MOST_ROWS = 200
_HEADS = lazy_pattern(
    "|".join(
        f"(?:{pattern})"
        for kind, _, pattern in columns(NAMES)
        if kind == "strict" or "secret" in pattern or "token" in pattern
    )
    + r"|api[ _-]?key|(?<![a-z])pin(?![a-z])"
)


def find_login_pairs(text: str, lowered: str, hints: Hints) -> Iterator[Secret]:
    """An account and its password: "admin / …", "credentials are bob:…"."""
    if _DIVIDED.search(text):
        for match in (*_accounts(text, lowered, hints), *(_ADDRESS.finditer(text) if "@" in text else ())):
            value = _value(match)
            like, apart = likeness(value), match["between"] not in ("/", ":", ", ")
            own = match.groupdict().get("user", "").casefold() in ("admin", "administrator", "root") and _MIXED.match(
                value
            )
            likely = like == Likeness.LIKELY and match["between"] not in ("/", ", ") and not value[0].isdigit()
            if like == Likeness.SURE or likely or (like >= Likeness.WORD and own) or (apart and is_passphrase(value)):
                yield Secret("password", match.start("secret"), match.start("secret") + len(value))
    for hint, begins in hints.items():
        for place in without_overlaps(begins, 80) if hint in _LOGINS else ():
            yield from _login(text, place + len(hint))


def _accounts(text: str, lowered: str, hints: Hints) -> Iterator[re.Match[str]]:
    found = ((word, begins) for word, begins in hints.items() if word in _ACCOUNTS)
    for word, begins in (("svc", places("svc", lowered)), *found):
        end = 0
        for place in begins:
            if place < end:
                continue
            match = _ACCOUNT.match(text, place)
            if match is not None:
                yield match
            end = match.end() if match else place + len(word)


def _value(match: re.Match[str]) -> str:
    return trim_value(match["secret"], match.string, match.end("secret"))


def _login(text: str, end: int) -> Iterator[Secret]:
    match = _GIVEN_LOGIN.match(text, end)
    if match is None:
        return
    value = _value(match)
    like, between = likeness(value), match["between"].strip()
    if between.isalpha() and _CAMEL.fullmatch(value):
        return
    enough = Likeness.LIKELY if between in ("/", "|", ":") else Likeness.SURE
    if (like >= enough or (between in ("/", "|") and is_passphrase(value))) and likeness(match["user"]) < Likeness.SURE:
        yield Secret("password", match.start("secret"), match.start("secret") + len(value))


def find_table_secrets(text: str, words: Iterable[tuple[re.Match[str], str]]) -> Iterator[Secret]:
    """Cells below or next to a cell that names a secret, in Markdown, CSV and TSV."""
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
    heads = _split_cells(text, begin, end, separator)
    if len(heads) < 2 or not all(_CELL.fullmatch(cell.strip() or "-") for cell, _ in heads):
        return ([*_find_labelled(heads)], end) if separator in "|\t" else ([], 0)
    columns = [place for place, (cell, _) in enumerate(heads) if _names_secret(cell)]
    found = [*_find_labelled(heads)] if separator in "|\t" else []
    for _ in range(_MOST_ROWS):
        begin, end = end + 1, text.find("\n", end + 1)
        end = len(text) if end < 0 else end
        if begin >= len(text) or end - begin > 2_000:
            break
        cells = _split_cells(text, begin, end, separator)
        if len(cells) != len(heads):
            break
        if not _RULE.fullmatch(text[begin:end]):
            found += [secret for place in columns for secret in _cell(*cells[place])]
    return found, begin - 1


def _split_cells(text: str, begin: int, end: int, separator: str) -> list[tuple[str, int]]:
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


def _find_labelled(cells: list[tuple[str, int]]) -> Iterator[Secret]:
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
