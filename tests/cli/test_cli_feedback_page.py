"""docs/feedback.md says what the program prints: its commands run in order, on one store."""

import re
import shlex
from pathlib import Path

from engram.dialects.feedback_toml import read_toml, render_toml
from tests.cli.conftest import Console

PAGE = (Path(__file__).parents[2] / "docs" / "feedback.md").read_text("utf-8")
BLOCKS = re.findall(r"^```console\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def steps() -> list[tuple[str, list[str]]]:
    """Each command of the page with the lines it prints; `! ` marks one on stderr, `…` what differs from run to run."""
    found = [
        part.partition("\n") for block in BLOCKS for part in re.split(r"^\$ engram ", block, flags=re.MULTILINE)[1:]
    ]
    return [(command, printed.splitlines()) for command, _, printed in found]


def test_every_command_prints_what_the_page_says(cli: Console) -> None:
    for command, printed in steps():
        result = cli(*shlex.split(command))
        lines = [line for line in printed if not line.startswith("! ")]
        shown = [re.sub(r"\d{4}-\d\d-\d\dT\S+", "…", line) for line in result.stdout.splitlines()]
        assert shown == lines, command
        assert [line[2:] for line in printed if line.startswith("! ") and line[2:] not in result.stderr] == []


def test_the_page_has_commands() -> None:
    assert len(steps()) >= 10


def test_the_toml_of_the_page_is_what_engram_writes() -> None:
    (written,) = re.findall(r"^```toml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    memory, notes = read_toml(written, "feedback/implementing-new-features")
    assert (render_toml(memory), notes) == (written, [])
