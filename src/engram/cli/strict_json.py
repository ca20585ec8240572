"""JSON as its standard has it: Python would also read NaN and numbers without end."""

import json
from math import isfinite
from typing import Any


def loads(text: str) -> Any:
    """What the text holds. Raises `InvalidInput` for a number that is none, `ValueError` for what is not JSON."""
    try:
        return json.loads(text, parse_constant=_refused, parse_float=_finite)
    except RecursionError:
        raise ValueError("nested too deeply to be read") from None


def _finite(text: str) -> float:
    number = float(text)
    return number if isfinite(number) else _refused(text)


def _refused(text: str) -> Any:
    from engram.model.errors import InvalidInput

    raise InvalidInput(f"{text} is no number that can be kept; write it in quotes to keep it as text")
