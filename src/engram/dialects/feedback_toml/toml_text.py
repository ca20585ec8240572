"""TOML as text: the few kinds of values that a memory's file has. Python reads TOML, and does not write it."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from engram.model.errors import InvalidInput

__all__ = ["toml_key", "toml_value"]

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_ESCAPES = {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r", '"': '\\"', "\\": "\\\\"}
_ESCAPED = re.compile('[\x00-\x1f\x7f"\\\\]')
_HALF = re.compile("[\ud800-\udfff]")


def toml_key(key: str) -> str:
    """A key, quoted where it must be."""
    return key if _BARE.fullmatch(key) else toml_value(key)


def toml_value(value: Any) -> str:
    """A value on one line. Raises `InvalidInput` for what TOML cannot say."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        # Half a surrogate pair is no character, and no file in UTF-8 can have one.
        return f'"{_ESCAPED.sub(_escape_character, _HALF.sub("�", value))}"'
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{toml_key(str(key))} = {toml_value(item)}' for key, item in value.items())}}}"
    if isinstance(value, Sequence):
        return f"[{', '.join(map(toml_value, value))}]"
    raise InvalidInput(f"TOML has no value for {value!r:.60}")


def _escape_character(found: re.Match[str]) -> str:
    return _ESCAPES.get(found[0]) or f"\\u{ord(found[0]):04x}"
