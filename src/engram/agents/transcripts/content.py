"""The parts of a record as harnesses write them: text, or a list of typed blocks; times, ids and folders. Any of them may be anything."""

from collections.abc import Iterator
from datetime import MAXYEAR, MINYEAR, UTC, datetime
from typing import Any

_TEXTS = ("text", "input_text", "output_text")
_LONGEST_KEY = 200
_LONGEST_NAME, _LONGEST_PATH = 255, 4095
"""Bytes that file systems allow for a name, and for a path."""


def text_of(content: Any) -> str:
    """The text of a message, its text blocks one below the other; other blocks are left out."""
    if isinstance(content, str):
        return content
    return "\n".join(_texts(content))


def results_of(content: Any) -> Iterator[str]:
    """What tools returned in a message, each result as one text, whether it is a text or a list of blocks."""
    for block in content if isinstance(content, list) else ():
        if isinstance(block, dict) and block.get("type") == "tool_result":
            yield text_of(block.get("content"))


def moment(given: Any) -> datetime | None:
    """A time as text (ISO 8601) or in milliseconds; None if it is neither, or so near the calendar's ends that some zone has no date for it."""
    try:
        if isinstance(given, str):
            found = datetime.fromisoformat(given)
            found = found if found.tzinfo else found.replace(tzinfo=UTC)
        elif isinstance(given, int | float) and not isinstance(given, bool):
            found = datetime.fromtimestamp(given / 1000, UTC)
        else:
            return None
    except (ValueError, OverflowError, OSError):
        return None
    return found if MINYEAR < found.year < MAXYEAR else None


def milliseconds(given: Any) -> int:
    """A time in milliseconds since 1970; 0 if it is none."""
    found = moment(given)
    return round(found.timestamp() * 1000) if found is not None else 0


def key_of(given: Any, otherwise: str) -> str:
    """The id of a record, or what takes its place where it has none that can be stored."""
    usable = isinstance(given, str) and 0 < len(given) <= _LONGEST_KEY and given.isprintable()
    return given if usable else otherwise


def folder_of(given: Any) -> str:
    """The path of a folder; "" if it is none that a file system could have."""
    if not isinstance(given, str) or "\0" in given:
        return ""
    name = given.encode("utf-8", "replace")
    longest = max(map(len, name.split(b"/")))
    return given if name.decode() == given and longest <= _LONGEST_NAME and len(name) <= _LONGEST_PATH else ""


def _texts(content: Any) -> Iterator[str]:
    for block in content if isinstance(content, list) else ():
        if isinstance(block, str):
            yield block
        elif isinstance(block, dict) and block.get("type") in _TEXTS and isinstance(block.get("text"), str):
            yield block["text"]
