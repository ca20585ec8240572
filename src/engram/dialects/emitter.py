"""Plain data → YAML text, the way spec 1's page lays an engram out.

PyYAML's dumper writes three thousand records a second and quotes by the rules of 1.1 alone; this one knows just the
shapes a record has.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from engram.dialects.scalars import flow_scalar, key_scalar, plain_scalar, text_scalar
from engram.model.errors import InvalidInput

_FLOW_WIDTH = 100
_LONGEST_SIMPLE_KEY = 1000
"""A key YAML finds without a `?` before it may have 1,024 characters."""


def emit_list(items: Iterable[Mapping[str, Any]], pad: str = "") -> str:
    """A YAML list of mappings, its dashes at `pad`."""
    out: list[str] = []
    _sequence(out, list(items), pad)
    out.append("")
    return "\n".join(out) if len(out) > 1 else f"{pad}[]\n"


def _mapping(out: list[str], mapping: Mapping[str, Any], pad: str) -> None:
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
        _mapping(out, value, pad + "  ")
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
            _mapping(out, item, inner) if isinstance(item, dict) else _sequence(out, item, inner)
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
    text = plain_scalar(value)
    if text is None:
        raise InvalidInput(f"cannot be written as YAML: {value!r}")
    return text
