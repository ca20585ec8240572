"""Records as JSON, for programs that would rather not read YAML."""

import json
from collections.abc import Sequence
from math import isfinite
from typing import Any

from engram.dialects.record import to_mapping
from engram.model.errors import InvalidInput
from engram.model.memory import Memory


def dump_json(memories: Sequence[Memory]) -> str:
    """Memories as a JSON list, one record per line, so that a diff shows which one changed."""
    lines = [_line(to_mapping(memory)) for memory in memories]
    return "[\n" + ",\n".join(lines) + "\n]\n" if lines else "[]\n"


def _line(record: dict[str, Any]) -> str:
    text = json.dumps(record, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:  # half a surrogate pair
        return json.dumps(record)
    return text


def strict_json(text: str) -> Any:
    """What a JSON text says. Python would also read NaN and infinite numbers. Raises `InvalidInput` for such a number, `ValueError` for what is not JSON."""
    try:
        return json.loads(text, parse_constant=_refused, parse_float=_finite)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _finite(text: str) -> float:
    number = float(text)
    return number if isfinite(number) else _refused(text)


def _refused(text: str) -> Any:
    raise InvalidInput(f"JSON has no number {text}; put it in quotes to store it as text")
