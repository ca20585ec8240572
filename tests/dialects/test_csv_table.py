"""Tables: every row counts, or is named."""

from pathlib import Path

import pytest

from engram.dialects.record_files import read_table
from engram.dialects.source import ImportSource
from engram.model.errors import InvalidInput


def table(folder: Path, text: str) -> tuple[list[str], list[dict[str, str]], list[tuple[str, str]]]:
    (folder / "t.csv").write_text(text)
    source = ImportSource()
    header, rows = read_table(folder / "t.csv", source)
    return header, [row for _, row in rows], source.skipped


def test_a_quote_that_is_never_closed_is_named_with_its_line(tmp_path: Path) -> None:
    _, rows, skipped = table(tmp_path, 'text,who\nUse tabs,ada\n"Use spaces,bob\nUse nothing,eve\n')
    assert [row["text"] for row in rows] == ["Use tabs"]
    assert skipped == [("t.csv line 3", "a quoted cell is never closed; the rest of the file was not read")]


def test_a_row_after_a_malformed_one_is_read(tmp_path: Path) -> None:
    _, rows, skipped = table(tmp_path, 'text,who\n"Use"tabs,ada\nUse spaces,bob\n')
    assert [row["text"] for row in rows] == ["Use spaces"]
    assert [place for place, _ in skipped] == ["t.csv line 2"]


def test_two_columns_of_one_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="two columns named 'text'"):
        table(tmp_path, "text,who,text\nUse tabs,ada,Use spaces\n")


def test_columns_without_a_name_are_numbered(tmp_path: Path) -> None:
    header, rows, _ = table(tmp_path, "text,,\nUse tabs,ada,bob\n")
    assert header == ["text", "column 2", "column 3"]
    assert rows == [{"text": "Use tabs", "column 2": "ada", "column 3": "bob"}]


def test_the_limit_of_other_readers_of_tables_stays(tmp_path: Path) -> None:
    import csv

    before = csv.field_size_limit()
    table(tmp_path, "text\nUse tabs\n")
    assert csv.field_size_limit() == before
