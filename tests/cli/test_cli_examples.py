"""The examples run as they are."""

import runpy
from pathlib import Path

import pytest

from .conftest import Console

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.py"))


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 2


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs_and_says_something(cli: Console, path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(path), run_name="__main__")
    said = capsys.readouterr()
    assert said.err == ""
    assert len(said.out.splitlines()) >= 4
    assert not (cli.folder / "home").exists()
