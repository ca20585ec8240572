"""The books of what a day has cost."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path

import pytest

from engram.llm.spend import SpendBook, SpendCount, SpendFolder
from engram.model.errors import ModelUnavailable

DAY = date(2026, 3, 4)
WRITER = """
import sys
from datetime import date
from pathlib import Path
from engram.llm.spend import SpendFolder
book = SpendFolder(Path(sys.argv[1]))
for _ in range(300):
    book.spend_tokens(date(2026, 3, 4), 7)
    book.spend_tokens(date(2026, 3, 4), -2)
"""


@pytest.fixture(params=["count", "folder"])
def book(request: pytest.FixtureRequest, tmp_path: Path) -> SpendBook:
    return SpendCount() if request.param == "count" else SpendFolder(tmp_path / "state" / "spend")


def test_days_are_kept_apart(book: SpendBook) -> None:
    book.spend_tokens(DAY, 120)
    book.spend_tokens(DAY, 30)
    book.spend_tokens(date(2026, 3, 5), 1)
    assert (book.tokens_spent(DAY), book.tokens_spent(date(2026, 3, 5)), book.tokens_spent(date(2026, 3, 6))) == (
        150,
        1,
        0,
    )


def test_what_was_set_aside_can_be_taken_back(book: SpendBook) -> None:
    book.spend_tokens(DAY, 1000)
    book.spend_tokens(DAY, -900)
    assert book.tokens_spent(DAY) == 100


def test_many_threads_lose_nothing(book: SpendBook) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: book.spend_tokens(DAY, 3), range(400)))
    assert book.tokens_spent(DAY) == 1200


def test_many_processes_lose_nothing(tmp_path: Path) -> None:
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path / "spend")]) for _ in range(4)]
    assert [writer.wait(60) for writer in writers] == [0] * 4
    assert SpendFolder(tmp_path / "spend").tokens_spent(DAY) == 4 * 300 * 5


def test_a_torn_line_costs_only_itself(tmp_path: Path) -> None:
    book = SpendFolder(tmp_path)
    book.spend_tokens(DAY, 40)
    with (tmp_path / f"{DAY}.txt").open("ab") as file:
        file.write(b"\n-\n12\xff\xff3\nabc")
    book.spend_tokens(DAY, 2)
    assert book.tokens_spent(DAY) == 42


def test_a_book_that_cannot_be_kept_is_told(tmp_path: Path) -> None:
    (tmp_path / "spend").write_text("in the way")
    with pytest.raises(ModelUnavailable, match="make the folder writable"):
        SpendFolder(tmp_path / "spend").spend_tokens(DAY, 1)
    with pytest.raises(ModelUnavailable, match="cannot be recorded"):
        SpendFolder(tmp_path / "spend").tokens_spent(DAY)


def test_only_the_owner_can_read_it(tmp_path: Path) -> None:
    SpendFolder(tmp_path / "spend").spend_tokens(DAY, 1)
    assert (tmp_path / "spend").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "spend" / f"{DAY}.txt").stat().st_mode & 0o777 == 0o600
