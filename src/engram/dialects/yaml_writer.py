"""Writes plain data as YAML text, laid out as in spec 1, so that YAML 1.1 and 1.2 readers read the same values.

PyYAML's dumper writes three thousand records a second and quotes by the rules of 1.1 only; this one supports only the
shapes a record has. Text is unquoted only if no reader can take it for anything else. The rule is stricter than either
standard: unquoted text starts with a letter, so numbers, dates, sexagesimals, `~`, `=`, `<<` and every indicator are
quoted without a list of exceptions.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from engram.model.errors import InvalidInput

_FLOW_WIDTH = 100
_LONGEST_SIMPLE_KEY = 1000
"""Maximum characters of a key that YAML accepts without a `?` before it."""
# Characters that are invisible, a line break in YAML 1.1 but not 1.2, or not allowed in YAML at all.
_HIDDEN = "\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\\u2028\\u2029\\ufeff\\ufffe\\uffff\\ud800-\\udfff"
_BARE = re.compile(rf"(?![{_HIDDEN}])[A-Za-z_\u00a1-\U0010ffff](?:[^:#\t\n{_HIDDEN}]++|:(?=\S)|(?<=\S)#)*+(?<! )")
_BARE_IN_FLOW = re.compile(r"[A-Za-z_][\w ./+()-]*(?<! )", re.ASCII)
_WORDS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})
_LITERAL = re.compile(rf"[^ \t\n{_HIDDEN}][^{_HIDDEN}]*")
_LINE_WITH_TRAILING_BLANK = re.compile(r"[ \t](?:\n|\Z)")
_TO_ESCAPE = re.compile(rf'["\\\n\t{_HIDDEN}]')
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r", "\0": "\\0"}


def emit_list(items: Iterable[Mapping[str, Any]], pad: str = "") -> str:
    """A YAML list of mappings, with its dashes at `pad`."""
    out: list[str] = []
    _sequence(out, list(items), pad)
    out.append("")
    return "\n".join(out) if len(out) > 1 else f"{pad}[]\n"


def _write_mapping(out: list[str], mapping: Mapping[str, Any], pad: str) -> None:
    for key, value in mapping.items():
        head = pad + key_scalar(key)
        if len(head) > _LONGEST_SIMPLE_KEY:
            out.append(f"{pad}? {key_scalar(key)}")
            head = pad
        kind = type(value)
        if kind is str:
            out.append(f"{head}: {text_scalar(value, pad)}")
        elif kind is dict or kind is list:
            _collection(out, head, value, pad)
        elif kind is int:
            out.append(f"{head}: {value}")
        else:
            out.append(f"{head}: {_scalar(value)}")


def _collection(out: list[str], head: str, value: Any, pad: str) -> None:
    flow = _flow(value)
    if flow is not None:
        out.append(f"{head}: {flow}")
        return
    out.append(f"{head}:")
    if isinstance(value, dict):
        _write_mapping(out, value, pad + "  ")
    else:
        _sequence(out, value, pad + "  ")


def _sequence(out: list[str], items: Sequence[Any], pad: str) -> None:
    inner = pad + "  "
    for item in items:
        flow = _flow(item) if isinstance(item, dict | list) else None
        if flow is not None:
            out.append(f"{pad}- {flow}")
        elif isinstance(item, dict | list):
            start = len(out)
            _write_mapping(out, item, inner) if isinstance(item, dict) else _sequence(out, item, inner)
            out[start] = f"{pad}- {out[start][len(inner) :]}"
        elif isinstance(item, str):
            out.append(f"{pad}- {text_scalar(item, pad)}")
        else:
            out.append(f"{pad}- {_scalar(item)}")


def _flow(value: Any) -> str | None:
    """A collection on one line: empty ones, short lists of text or numbers, and blocks of counters."""
    if not value:
        return "{}" if isinstance(value, dict) else "[]"
    if isinstance(value, dict):
        if len(value) <= 4 and all(type(item) is int for item in value.values()):
            pairs = ", ".join(f"{flow_scalar(key)}: {item}" for key, item in value.items())
            return f"{{{pairs}}}" if len(pairs) <= _FLOW_WIDTH else None
        return None
    parts = []
    for item in value:
        if isinstance(item, dict | list):
            return None
        parts.append(flow_scalar(item) if isinstance(item, str) else _scalar(item))
    line = ", ".join(parts)
    return f"[{line}]" if len(line) <= _FLOW_WIDTH else None


def _scalar(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return number_scalar(value)
    raise InvalidInput(f"cannot be written as YAML: {value!r}")


def is_bare(text: str) -> bool:
    """Whether text can be written without quotes, as a value or key of a block."""
    return _BARE.fullmatch(text) is not None and not (len(text) < 6 and text.lower() in _WORDS)


def text_scalar(text: str, pad: str) -> str:
    """Text as a value in a block whose keys are at `pad`; several lines become a literal if that is exact."""
    if "\n" in text and fits_literal(text):
        return literal(text, pad + "  ")
    return text if is_bare(text) else quoted_scalar(text)


def flow_scalar(text: str) -> str:
    """Text inside `[a, b]`."""
    if _BARE_IN_FLOW.fullmatch(text) and text.lower() not in _WORDS:
        return text
    return quoted_scalar(text)


def fits_literal(text: str) -> bool:
    """Whether a literal block reproduces exactly this text, even after an editor stripped trailing blanks."""
    return (
        _LITERAL.fullmatch(text) is not None
        and not text.endswith("\n\n")
        and _LINE_WITH_TRAILING_BLANK.search(text) is None
    )


def literal(text: str, pad: str) -> str:
    """Text as a `|` block, with its lines at `pad`."""
    mark, body = ("|", text[:-1]) if text.endswith("\n") else ("|-", text)
    lines = [pad + line if line else "" for line in body.split("\n")]
    return "\n".join((mark, *lines))


def quoted_scalar(text: str) -> str:
    """Text in double quotes, with everything invisible escaped."""
    return f'"{_TO_ESCAPE.sub(_escape, text)}"'


def check_text(value: Any) -> None:
    """Raise `InvalidInput` if a text in plain data contains half a surrogate pair."""
    if isinstance(value, str):
        quoted_scalar(value)
    elif isinstance(value, dict):
        for key, item in value.items():
            check_text(key)
            check_text(item)
    elif isinstance(value, list):
        for item in value:
            check_text(item)


def _escape(match: re.Match[str]) -> str:
    char = match[0]
    known = _ESCAPES.get(char)
    if known is not None:
        return known
    code = ord(char)
    if 0xD800 <= code <= 0xDFFF:
        raise InvalidInput(
            f"the text holds half a character (lone surrogate \\u{code:04x}) at position {match.start()}, "
            "which no UTF-8 file can store; remove it"
        )
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def number_scalar(value: float) -> str:
    """A number. Floats always have a point, because YAML 1.1 reads `1e+22` without one as text."""
    if isinstance(value, int):
        return repr(value)
    if math.isfinite(value):
        text = repr(value)
        return text if "." in text else text.replace("e", ".0e")
    return ".nan" if math.isnan(value) else (".inf" if value > 0 else "-.inf")


@lru_cache(maxsize=1024)
def key_scalar(key: str) -> str:
    """A key of a block."""
    return key if is_bare(key) else quoted_scalar(key)
