"""TOML that others wrote → plain data."""

from typing import Any, Literal

from engram.model.errors import UnreadableData
from engram.model.lazy import lazy_pattern
from engram.readers.limits import (
    MAX_DEPTH,
    MAX_SETTINGS_BYTES,
    check_characters,
    check_depth,
    check_numbers,
    decode_text,
)

_PLACE = lazy_pattern(r" \(at (?:line (\d+), column \d+|end of document)\)$")
_LONG_KEY = lazy_pattern(
    r"""(?:(?<![\w-])[\w-]++|"[^"\n]*+"|'[^'\n]*+')(?:[ \t]*+\.[ \t]*+(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')){"""
    + f"{MAX_DEPTH},}}"
)
"""A dotted key with more parts than data may be deep; `tomllib` takes quadratic time for one."""


def parse_toml(
    source: str | bytes,
    *,
    where: str = "",
    longest: int = MAX_SETTINGS_BYTES,
    characters: Literal["checked", "any"] = "checked",
) -> dict[str, Any]:
    """The data of a TOML text. Raises `UnreadableData`; `characters` says whether also for NUL."""
    import tomllib

    if len(source) > longest:
        raise UnreadableData(f"has {len(source):,} characters, more than {longest:,}", where=where)
    text = source if isinstance(source, str) else decode_text(source, where=where)
    if found := _LONG_KEY.search(text):
        raise UnreadableData(
            f"a key has more than {MAX_DEPTH} parts", where=where, line=text.count("\n", 0, found.start()) + 1
        )
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        place = _PLACE.search(str(error))
        line = int(place[1]) if place and place[1] else text.rstrip().count("\n") + 1
        raise UnreadableData(f"not TOML: {_PLACE.sub('', str(error))}", where=where, line=line) from None
    except RecursionError:
        raise UnreadableData(f"nested deeper than {MAX_DEPTH} levels", where=where) from None
    except ValueError as error:
        raise UnreadableData(f"not TOML that can be read: {error}", where=where) from None
    check_depth(data, where=where)
    check_numbers(data, where=where)
    if characters == "checked":
        check_characters(data, where=where)
    return data
