"""The examples run as they are."""

import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import Console

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.py"))


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 2


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs_and_says_something(cli: Console, path: Path) -> None:
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, check=False, cwd=cli.folder)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert len(done.stdout.splitlines()) >= 4
    assert not (cli.folder / "home").exists()
