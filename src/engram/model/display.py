"""How records show themselves: one line in a terminal, a table in a notebook."""

from collections.abc import Iterable
from typing import Any, ClassVar

from engram.model.lazy import MISSING, fields

MAX_VALUE_CHARS = 80
"""Characters of one value in a `repr`."""


class Displayed:
    """A dataclass with a short `repr` (the fields of `_SHOWN`, then what is not default) and a table for notebooks."""

    __slots__ = ()
    _SHOWN: ClassVar[tuple[str, ...]] = ()
    """Fields that are always shown, in this order."""
    _HIDDEN: ClassVar[frozenset[str]] = frozenset()
    """Fields that say little to a reader."""

    def __repr__(self) -> str:
        shown = [f"{name}={_clip_text(value)}" for name, value in notable_fields(self)]
        return f"{type(self).__name__}({', '.join(shown)})"

    def _repr_html_(self) -> str:
        return html_table([("", ""), *((name, value) for name, value in notable_fields(self))])


def notable_fields(record: Displayed) -> list[tuple[str, Any]]:
    """The fields worth showing: those always shown, then the others that differ from their default."""
    names = [*record._SHOWN]
    for field in fields(record):  # type: ignore[arg-type]
        default = field.default if field.default_factory is MISSING else field.default_factory()
        known = field.name in names or field.name in record._HIDDEN
        if not known and getattr(record, field.name) != default:
            names.append(field.name)
    return [(name, getattr(record, name)) for name in names]


def html_table(rows: Iterable[Iterable[Any]]) -> str:
    """Rows as an HTML table, the first one its head, every value escaped."""
    from html import escape

    head, *body = [[escape(_plain(value)) for value in row] for row in rows]
    lines = ["<tr>" + "".join(f"<td style='text-align:left'>{value}</td>" for value in row) + "</tr>" for row in body]
    top = f"<thead><tr>{''.join(f'<th>{value}</th>' for value in head)}</tr></thead>" if any(head) else ""
    return f"<table>{top}<tbody>{''.join(lines)}</tbody></table>"


def _plain(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.3g}"
    return value if isinstance(value, str) else str(value)


def _clip_text(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= MAX_VALUE_CHARS else f"{text[:MAX_VALUE_CHARS]}…"
