"""A table with a header line, as rows by the names of their columns: CSV with commas, semicolons or tabs."""

import csv
import io
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from engram.dialects.source import ImportSource
from engram.model.errors import InvalidInput
from engram.readers.limits import read_text

TABLE_SUFFIXES = (".csv", ".tsv")
Row = tuple[str, dict[str, str]]
"""The place of a row, and its cells by column."""


def read_table(path: Path, source: ImportSource) -> tuple[list[str], Iterator[Row]]:
    """The columns of a table, and its rows; one that is none is named in `source`. Raises `InvalidInput` for a bad header."""
    text = read_text(path)
    delimiter = "\t" if path.suffix.lower() == ".tsv" else _delimiter(text)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        header = [name.strip() for name in next(reader, [])]
    except csv.Error as error:
        raise InvalidInput(f"{path.name} line 1: {error}") from None
    if not any(header):
        raise InvalidInput(f"{path} has no header line")
    names = [name or f"column {number}" for number, name in enumerate(header, 1)]
    if repeated := [name for name, count in Counter(names).items() if count > 1]:
        raise InvalidInput(f"{path.name} has two columns named {repeated[0]!r}; rename one of them")
    return names, _rows(reader, names, path, source)


def _rows(reader: Any, header: list[str], path: Path, source: ImportSource) -> Iterator[Row]:
    while True:
        begins = reader.line_num + 1
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            reason = "a quoted cell is never closed; the rest of the file was not read"
            unclosed = str(error) == "unexpected end of data"
            source.skipped.append(
                (f"{path.name} line {begins}", reason if unclosed else f"not a row of a table: {error}")
            )
            continue
        where = f"{path.name} line {reader.line_num}"
        if len(row) > len(header):
            source.skipped.append((where, f"has {len(row)} cells, the header has {len(header)}"))
        elif any(cell.strip() for cell in row):
            yield where, dict(zip(header, row, strict=False))


def _delimiter(text: str) -> str:
    first = text.partition("\n")[0]
    return max(",;\t", key=first.count)
