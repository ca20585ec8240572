"""Private keys: PEM blocks, whole or cut, plain, escaped in JSON, or wrapped in base64."""

import base64
import binascii
import re
from collections.abc import Iterator

from engram.gates.secret_spans import Secret

__all__ = ["MARK", "continued_key", "ends_in_key", "private_keys"]

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
    """Every private key in a text; one that has lost its beginning or its end too."""
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
    """Whether nothing of the key is there: dots, a placeholder, a sentence. What breaks off at once may go on elsewhere."""
    if whole:
        return _NO_BODY.fullmatch(body[:200]) is not None
    return bool(body.strip()) and _SOME_BODY.search(body) is None


def _headless(text: str, start: int, stop: int) -> Iterator[Secret]:
    """What ends like a key and began elsewhere."""
    for end in _END.finditer(text, start, stop):
        begin = end.start()
        while begin > max(start, end.start() - _LONGEST_KEY) and _BEFORE_END.match(text[begin - 1]):
            begin -= 1
        # Words stand before a key as they do before anything: the key begins with its first long run.
        run = re.compile(r"[A-Za-z0-9+/=]{20,}").search(text, begin, end.start())
        if run:
            # At the very beginning, the rest of a line that was cut is the key's too.
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
    """Whether a stored text ends with a private key that was redacted: the next one may go on with it."""
    return text.rstrip(" \n\t\r\"'`").endswith(MARK)


def continued_key(text: str) -> int:
    """How much of the beginning of a text reads like the rest of a key; 0 when none of it does."""
    match = _CONTINUED.match(text, 0, _LONGEST_KEY)
    if match is None:
        return 0
    rest = re.compile(r"\s*-{0,5}(?:END )?(?:[A-Z0-9]{1,20} ){0,4}(?:KEY)?-{0,5}\s*").match(text, match.end())
    return rest.end() if rest else match.end()
