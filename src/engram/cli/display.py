"""Output for people: with rich on a terminal, as plain aligned text everywhere else.

Text from memories reaches rich only as `Text`, never as markup, and with control characters escaped.
"""

import sys
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import datetime, tzinfo
from typing import TYPE_CHECKING

from engram.model.lazy import dataclass
from engram.text.display import escape_hidden, one_line
from engram.text.time.zone import SYSTEM, in_zone

__all__ = [
    "Cell",
    "Column",
    "age",
    "ago",
    "bar",
    "block",
    "console",
    "entry",
    "escape_hidden",
    "fields",
    "line",
    "lines",
    "moment",
    "on_terminal",
    "progress",
    "rule",
    "show_in",
    "state_style",
    "table",
    "write",
]  # fmt: skip

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.text import Text

    from engram.store.protocol import Progress

Cell = str | tuple[str, str]
"""A text, or a text with its style."""

STATES = {
    "active": "green",
    "fading": "yellow",
    "stale": "yellow",
    "disputed": "magenta",
    "candidate": "cyan",
    "dormant": "bright_black",
    "retirement candidate": "red",
}


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table. The column with `grows` takes the remaining width and wraps."""

    name: str
    style: str = ""
    right: bool = False
    grows: bool = False


def on_terminal() -> bool:
    """Whether stdout is a terminal."""
    return sys.stdout.isatty()


def console() -> "Console":
    """rich's console on stdout, with everything that could interpret text turned off."""
    from rich.console import Console

    return Console(highlight=False, markup=False, emoji=False)


def state_style(state: str) -> str:
    """The colour of a state."""
    return STATES.get(state, "bright_black")


def write(text: str = "") -> None:
    """Print one line of data."""
    sys.stdout.write(text + "\n")


def table(headings: Sequence[Column | str], rows: Sequence[Sequence[Cell]]) -> None:
    """Print rows under their headings, or nothing without rows.

    If the last heading is a plain name, its column grows.
    """
    if not rows:
        return
    columns = [one if isinstance(one, Column) else Column(one, grows=one is headings[-1]) for one in headings]
    if on_terminal():
        _rich_table(columns, rows)
        return
    texts = [[_flat(cell) for cell in row] for row in rows]
    widths = [max([_width(row[i]) for row in texts], default=0) for i in range(len(columns))]
    for row in texts:
        write("  ".join(_pad_text(text, widths[i], columns[i].right) for i, text in enumerate(row)).rstrip())


def _rich_table(columns: Sequence[Column], rows: Sequence[Sequence[Cell]]) -> None:
    from rich import box
    from rich.table import Table

    grows = any(column.grows for column in columns)
    drawn = Table(
        box=box.SIMPLE_HEAD,
        header_style="bold",
        border_style="bright_black",
        padding=(0, 1, 0, 0),
        pad_edge=False,
        show_edge=False,
        expand=grows,
    )
    for column in columns:
        drawn.add_column(
            column.name,
            style=column.style or None,
            justify="right" if column.right else "left",
            ratio=1 if column.grows else None,
            no_wrap=not column.grows,
        )
    for row in rows:
        drawn.add_row(*(_text(cell) for cell in row))
    console().print(drawn)


def lines(*rows: Sequence[Cell]) -> None:
    """Print lines made of styled pieces."""
    if not on_terminal():
        for row in rows:
            write("".join(escape_hidden(_words(cell)) for cell in row).rstrip())
        return
    from rich.padding import Padding

    target = console()
    for row in rows:
        text = _join_cells(row)
        # Wrapped text continues below its own start.
        indent = len(text.plain) - len(text.plain.lstrip(" "))
        target.print(Padding(text[indent:], (0, 0, 0, indent), expand=False) if indent < len(text) else text)


def block(text: str) -> None:
    """Print a text for a prompt, line by line, with its headings highlighted on a terminal."""
    lines(*[[(row, "bold" if row.startswith("#") else "")] for row in text.rstrip("\n").splitlines()])


def fields(pairs: Sequence[tuple[str, Cell]]) -> None:
    """Print names and values, aligned, without empty values."""
    kept = [(name, value) for name, value in pairs if _words(value)]
    width = max((len(name) for name, _ in kept), default=0)
    if not on_terminal():
        for name, value in kept:
            write(f"{name.ljust(width)}  {_flat(value)}")
        return
    target = console()
    for name, value in kept:
        target.print(_grid([(f"  {name.ljust(width)}", "bright_black"), value]))


def entry(number: str, text: str, remarks: Sequence[Cell], aside: str = "") -> None:
    """Print a numbered statement with remarks below it and something to the right; only for terminals."""
    from rich.table import Table
    from rich.text import Text

    body = Text(line(text))
    body.append("\n")
    body.append_text(_join_cells(remarks, " · ", "bright_black"))
    grid = Table.grid(padding=(0, 1), expand=True)
    grid.add_column(width=3, justify="right", style="bright_black")
    grid.add_column(ratio=1)
    grid.add_column(justify="right", style="cyan")
    grid.add_row(number, body, aside)
    console().print(grid)


def bar(value: float, size: int = 5) -> str:
    """A number from 0 to 1 as a small bar."""
    full = round(max(0.0, min(1.0, value)) * size)
    return "▰" * full + "▱" * (size - full)


def rule(title: str) -> None:
    """Print a heading across the terminal, or a plain heading elsewhere."""
    if on_terminal():
        from rich.rule import Rule

        console().print(Rule(title, style="bright_black", align="left"))
    else:
        write(f"== {title}")


def _grid(cells: Sequence[Cell]) -> "RenderableType":
    from rich.table import Table

    grid = Table.grid(padding=(0, 2), expand=False)
    for _ in cells[:-1]:
        grid.add_column(no_wrap=True)
    grid.add_column(ratio=1)
    grid.add_row(*(_text(cell) for cell in cells))
    return grid


def _join_cells(row: Sequence[Cell], between: str = "", style: str = "") -> "Text":
    from rich.text import Text

    text = Text()
    for i, cell in enumerate(row):
        if i and between:
            text.append(between, style)
        words, own = cell if isinstance(cell, tuple) else (cell, style)
        text.append(escape_hidden(words), own or None)
    return text


def _text(cell: Cell) -> "Text":
    from rich.text import Text

    words, style = cell if isinstance(cell, tuple) else (cell, "")
    return Text(escape_hidden(words), style)


def _words(cell: Cell) -> str:
    return cell[0] if isinstance(cell, tuple) else cell


def _flat(cell: Cell) -> str:
    return line(_words(cell))


def _pad_text(text: str, width: int, right: bool) -> str:
    room = " " * (width - _width(text))
    return room + text if right else text + room


def _width(text: str) -> int:
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text
    )


def line(text: str, width: int = 0) -> str:
    """The text on one line, cut to a width if one is given."""
    flat = one_line(text)
    return flat if not width or len(flat) <= width else flat[: max(1, width - 1)].rstrip() + "…"


def ago(moment: datetime | None, now: datetime) -> str:
    """How long ago, in words."""
    if moment is None:
        return "never"
    seconds = (now - moment).total_seconds()
    if seconds < 0:
        return f"in {_span(-seconds)}"
    return "just now" if seconds < 45 else f"{_span(seconds)} ago"


def age(moment: datetime | None, now: datetime) -> str:
    """The age in the few characters of a table cell: `now`, `5m`, `3h`, `12d`, `2y`."""
    if moment is None:
        return ""
    seconds = max(0.0, (now - moment).total_seconds())
    for size, letter in ((365 * 86400, "y"), (86400, "d"), (3600, "h"), (60, "m")):
        if seconds >= size:
            return f"{int(seconds // size)}{letter}"
    return "now"


_SPANS = ((365 * 86400.0, "year"), (30 * 86400.0, "month"), (86400.0, "day"), (3600.0, "hour"), (60.0, "minute"))


def _span(seconds: float) -> str:
    for size, name in _SPANS:
        if seconds >= size:
            count = int(seconds // size)
            return f"{count} {name}{'s' if count != 1 else ''}"
    return "a minute"


_zone: tzinfo = SYSTEM


def show_in(zone: tzinfo) -> None:
    """Print times in this zone from now on, the zone of the open store."""
    global _zone
    _zone = zone


def moment(value: datetime | None) -> str:
    """A time in the store's zone, or in its own if it has one, because a window is in the zone of its question."""
    return "" if value is None else in_zone(value, _zone).strftime("%Y-%m-%d %H:%M")


@contextmanager
def late_progress(what: str) -> "Iterator[Progress]":
    """Like `progress`, but the bar appears with the first report, because most calls report nothing."""
    with ExitStack() as later:
        told: list[Progress] = []

        def report(name: str, done: int, total: int) -> None:
            if not told:
                told.append(later.enter_context(progress(what)))
            told[0](name, done, total)

        yield report


@contextmanager
def progress(what: str) -> "Iterator[Progress]":
    """A function to report progress to: a bar on a terminal's stderr, nothing elsewhere."""
    if not sys.stderr.isatty():
        yield lambda *_: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as ProgressBars

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with ProgressBars(*columns, console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task(what, total=None)

        def report(name: str, done: int, total: int) -> None:
            bars.update(task, description=name or what, completed=done, total=total or None)

        yield report
