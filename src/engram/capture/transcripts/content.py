"""The parts of a message as harnesses write them: text, or a list of typed blocks."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

_TEXTS = frozenset(("text", "input_text", "output_text"))


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
    """A time as text (ISO 8601) or in milliseconds; None if it is neither."""
    try:
        if isinstance(given, str):
            found = datetime.fromisoformat(given)
            return found if found.tzinfo else found.replace(tzinfo=UTC)
        if isinstance(given, int | float) and not isinstance(given, bool):
            return datetime.fromtimestamp(given / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        pass
    return None


def _texts(content: Any) -> Iterator[str]:
    for block in content if isinstance(content, list) else ():
        if isinstance(block, str):
            yield block
        elif isinstance(block, dict) and block.get("type") in _TEXTS and isinstance(block.get("text"), str):
            yield block["text"]
