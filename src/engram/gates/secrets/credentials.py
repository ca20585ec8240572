"""Private keys (PEM blocks, whole or cut, also escaped or in base64), PINs and codes, account and password pairs, tables."""

import base64
import binascii
import itertools
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

from engram.gates.secrets.values import Likeness, is_passphrase, likeness, trimmed
from engram.gates.secrets.words import Secret, alternatives, columns, words, words_in
from engram.gates.secrets.words import words as listed

__all__ = ["MARK", "codes", "continued_key", "ends_in_key", "pairs", "private_keys", "tabled"]

KIND = "private-key"
MARK = f"[redacted:{KIND}]"
_LONGEST_KEY = 20_000
_BEGIN = re.compile(
    r"-----BEGIN (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-----|PuTTY-User-Key-File-\d|---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----"
)
_END = re.compile(
    r"-----END (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-----|Private-MAC:[^\n]{0,100}|---- END SSH2 ENCRYPTED PRIVATE KEY ----"
)
_BODY = re.compile(r"[A-Za-z0-9+/=\s:,\\-]*")
_NO_BODY = re.compile(r"(?:\s|\\n)*(?:[.…*x]+|[<\[({].{0,120}[>\])}])?(?:\s|\\n)*", re.DOTALL)
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
        yield from _wrapped(text)


def _blocks(text: str) -> Iterator[Secret]:
    position = 0
    while begin := _BEGIN.search(text, position):
        yield from _headless(text, position, begin.start())
        end = _END.search(text, begin.end(), begin.end() + _LONGEST_KEY)
        body = _BODY.match(text, begin.end(), begin.end() + _LONGEST_KEY)
        position = end.end() if end else (body or begin).end()
        quoted = end is None and text[begin.end() : begin.end() + 1] in tuple("\"'`”")
        if not quoted and not _is_elided(text[begin.end() : end.start() if end else position], whole=end is not None):
            yield Secret(KIND, begin.start(), position)
    yield from _headless(text, position, len(text))


def _is_elided(body: str, *, whole: bool) -> bool:
    """Whether the block has no key: dots, a placeholder, a sentence. An empty block may continue in the next text."""
    if whole:
        return _NO_BODY.fullmatch(body[:200]) is not None
    return bool(body.strip()) and _SOME_BODY.search(body) is None


def _headless(text: str, start: int, stop: int) -> Iterator[Secret]:
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
            yield Secret(KIND, 0 if cut else run.start(), end.end())
        start = end.end()


def _wrapped(text: str) -> Iterator[Secret]:
    for match in _WRAPPED.finditer(text):
        try:
            head = base64.b64decode(match[0][:80] + "=" * (-len(match[0][:80]) % 4))
        except binascii.Error:
            continue
        if b"PRIVATE KEY" in head:
            yield Secret(KIND, match.start(), match.end())


def ends_in_key(text: str) -> bool:
    """Whether a stored text ends with a redacted private key, which the next text may continue."""
    return text.rstrip(" \n\t\r\"'`").endswith(MARK)


def continued_key(text: str) -> int:
    """The length of the start of a text that looks like the rest of a key; 0 for none."""
    match = _CONTINUED.match(text, 0, _LONGEST_KEY)
    if match is None:
        return 0
    rest = re.compile(r"\s*-{0,5}(?:END )?(?:[A-Z0-9]{1,20} ){0,4}(?:KEY)?-{0,5}\s*").match(text, match.end())
    return rest.end() if rest else match.end()


_FAR = 80
"""Maximum characters from the word to its digits, and to what they open."""
_MOST_BETWEEN = 9
_QUOTES = "\"'`“”„«»‘’「」"
# Letters of one case with digits, as on a keypad; groups of the same size.
_DIGITS = re.compile(
    r"(?P<secret>[0-9A-Z*#](?<![A-Za-z0-9.,:/#+@$€£-].)(?<!\d .)"
    r"(?:(?<=\d)(?:\d{3,9}[A-Z]?|\d{0,4}[A-ZА-Я]\d{1,5}|\d(?:[ -]\d\d){1,3}|\d\d[ -]\d{3,4}|\d{3}[ -]\d{4}|(?:[ -]\d){3,7}|-\d-\d)"
    r"|(?<=[A-Z])\d{3,7}|(?<=[*#])\d{3,9})[#*]?)(?![A-Za-z0-9]|[-/ ]\d|[.,:]\d|\s?[%€$£°])"
)
_INTRODUCED = re.compile(
    rf"(?i)(?:[:=：→＝]|->|[—–-]|\b(?:{'|'.join(re.escape(word) for word in words('copulas') if word.isalpha())})\b:?|['’]s|\bc['’]est"
    rf"|\b(?:to|auf|with|mit|avec|con|com|met|en|puse|mis)|\b(?:composez|tapez) (?:le )?|[是为為はが는은가]|成了?)[\s{_QUOTES}*_]{{0,4}}\Z"
)
_STARTED = re.compile(rf"s?(?: (?:the|le|den|el|il|code))?[\s{_QUOTES}*_]{{0,4}}\Z")
_SENTENCE_END = re.compile(r"[.!?](?:\s|\Z)|[\n。！？;|<>{}]")
_ENDS = re.compile(
    rf"[{_QUOTES}*_)]{{0,3}}(?:\Z|[\s]{{0,2}}\n|[,.;!?)，。、；！]|\s(?:at|for|then|and then|before|puis|dann|luego|poi|e poi|dopo|daarna|potem|[(/—–-])|[^\x00-\u02ff])"
)
_YEAR = re.compile(r"(?:19|20)\d\d")
_OTHER = re.compile(rf"(?:{alternatives('other codes')})\W{{0,2}}\Z")
_OTHER_BEHIND = re.compile(rf"s?\W{{1,2}}(?:{alternatives('other codes')})\b")
_BETWEEN = frozenset(words("no code between"))
_BEFORE = frozenset(words("no code before"))
_BEHIND = re.compile(rf"\s?[-–]?(?:{alternatives('no code behind').replace('$', '[$]')})(?![^\W\d_])", re.IGNORECASE)
_WORDS = re.compile(r"[^\W\d_]+")
_SAID_OF = re.compile(
    r" (?:is|was|as the|as my|ist|als|est|comme|es|como|è|é|to|это|är|er) (?:[^\s.!?]{1,20} ){0,3}?(?=pin|puk|otp|pass|code|verif|secur|confirm|login|sms|door|gate|alarm|пин)",
    re.IGNORECASE,
)
_CVV = re.compile(
    r"(?i)(?<![a-z])cv[vc]2?(?:\s?(?:code|number))?(?:\s{0,3}[:=]\s{0,3}|\s{1,3}(?:is|ist|est|es|é)\s{1,3}|\s{1,3})(?P<secret>\d{3,4})(?!\d)"
)


@lru_cache(maxsize=1)
def _locked() -> tuple[frozenset[str], tuple[str, ...], tuple[str, ...]]:
    """What a code opens: whole words, prefixes of words, and substrings."""
    listed = words("locked")
    begun = tuple(word.removesuffix(r"\w*") for word in listed if word.endswith(r"\w*"))
    spaced = tuple(word for word in listed if " " in word or "-" in word)
    return frozenset(listed), begun, (*spaced, *words("locked unspaced"))


def codes(text: str, lowered: str) -> Iterator[Secret]:
    """PINs, door codes, one-time codes and the like."""
    if "cv" in lowered:
        yield from (Secret("pin", given.start("secret"), given.end("secret")) for given in _CVV.finditer(text))
    named: list[tuple[re.Match[str], str]] | None = None
    place = 0
    # Digits are rarer than words, so the search starts from them.
    for given in _DIGITS.finditer(text):
        if named is None:
            named = words_in(lowered, "secretcodes.txt")
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
        near = [pair for pair in before if pair[0].end() >= given.start() - _FAR and _belongs(text, *pair, given)]
        if any(_is_code(lowered, *pair) for pair in (*near, *behind)):
            yield Secret("pin", given.start("secret"), given.end("secret"))


def _is_code(lowered: str, word: re.Match[str], kind: str) -> bool:
    """Whether the word means a secret code; an ambiguous one needs the name of what it opens."""
    return not _is_other(lowered, word) and (kind == "strong" or _opens(lowered, word))


def _is_other(lowered: str, word: re.Match[str]) -> bool:
    """Whether it is an error code, a postcode, a code for a discount."""
    before = lowered[max(0, word.start() - 14) : word.start()]
    return bool(_OTHER.search(before) or _OTHER_BEHIND.match(lowered, word.end()))


def _opens(lowered: str, word: re.Match[str]) -> bool:
    """Whether the sentence mentions something that a code opens."""
    before = _SENTENCE_END.split(lowered[max(0, word.start() - _FAR) : word.start()])[-1]
    sentence = (
        before + lowered[word.start() : word.end()] + _SENTENCE_END.split(lowered[word.end() : word.end() + _FAR])[0]
    )
    whole, begun, anywhere = _locked()
    return any(one in whole or one.startswith(begun) for one in _WORDS.findall(sentence)) or any(
        one in sentence for one in anywhere
    )


def _belongs(text: str, word: re.Match[str], kind: str, given: re.Match[str]) -> bool:
    """Whether nothing between the word and the digits, or after them, shows that they are something else."""
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
    if _YEAR.fullmatch(value) or value[0].isalpha() or not _ENDS.match(text, given.end()):
        return False
    return kind == "strong" or len(words) <= 6 or _STARTED.match(between) is not None


_ABOUT = frozenset(listed("about"))
_LOGINS = listed("logins")
_ACCOUNTS = (*listed("accounts"), "svc")
_PASS = rf"(?:p(?:ass(?:word)?|w)?[: ]\s?)?[{_QUOTES}]?(?P<secret>[^\s{_QUOTES},;|]{{4,64}})"
_PAIR_BETWEEN = rf"[{_QUOTES}]?(?P<between>\s{{1,2}}[/|]\s{{1,2}}|:|/|\s{{1,2}}[-–]\s{{1,2}}|\s{{0,2}}(?:→|->|=>)\s{{0,2}}|,\s){_PASS}"
_ACCOUNT = re.compile(
    rf"(?<![\w/.@:-])(?P<user>{alternatives('accounts')}|svc[-_][a-z0-9-]{{1,20}}){_PAIR_BETWEEN}", re.IGNORECASE
)
_ADDRESS = re.compile(rf"@(?<=[\w.+-]@)[\w-]{{1,63}}(?:\.[\w-]{{1,63}}){{1,4}}{_PAIR_BETWEEN}")
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
    """The matches of a pattern at the positions of the words."""
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
