"""The journal knows its own last number, whatever the index says."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from engram.store.files.log.journal import AfterImage, Entry, Journal

NOW = datetime(2026, 3, 1, tzinfo=UTC)


@pytest.mark.parametrize("sizes", [[1], [1, 200_000], [200_000, 1], [70_000, 70_000, 1]])
def test_the_last_number_is_found_before_long_lines(tmp_path: Path, sizes: list[int]) -> None:
    journal = Journal(tmp_path / "journal", tmp_path / "quarantine")
    assert journal.last_seq() == 0
    for number, size in enumerate(sizes, 1):
        journal.append(Entry(number, NOW, "add", "test", "", (AfterImage("ENG-1", {"statement": "x" * size}),)))
        assert journal.last_seq() == number
    with journal.path("2026-03").open("ab") as file:
        file.write(b'{"seq":99,"torn')
    assert journal.last_seq() == len(sizes)
