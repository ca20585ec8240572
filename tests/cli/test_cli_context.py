"""gen-context."""

import re
import shlex
from pathlib import Path

import pytest

from .conftest import Console


def test_a_block_is_written_and_then_up_to_date(cli: Console) -> None:
    known = cli.learned("Use tabs, not spaces", "--type", "preference")
    Path("AGENTS.md").write_text("# Rules\n")
    first = cli("gen-context")
    assert (first.exit_code, first.stdout.split()[0]) == (0, "updated")
    assert known in Path("AGENTS.md").read_text("utf-8")
    assert cli("gen-context").stdout.split()[0] == "unchanged"


def test_check_is_exit_1_while_the_block_is_out_of_date(cli: Console) -> None:
    Path("AGENTS.md").write_text("# Rules\n")
    assert cli("gen-context", "--check").exit_code == 1
    assert Path("AGENTS.md").read_text() == "# Rules\n"
    cli("gen-context")
    assert cli("gen-context", "--check").exit_code == 0
    cli.learned("Use tabs, not spaces", "--type", "preference")
    assert cli("gen-context", "--check").exit_code == 1


def test_a_dry_run_shows_the_lines(cli: Console) -> None:
    cli.learned("Use tabs, not spaces", "--type", "preference")
    result = cli("gen-context", "AGENTS.md", "--dry-run")
    assert "+- “Use tabs, not spaces”" in result.stdout
    assert not Path("AGENTS.md").exists()


def test_without_a_file_the_choices_are_named(cli: Console) -> None:
    result = cli("gen-context")
    assert result.exit_code == 2
    assert "AGENTS.md or CLAUDE.md or GEMINI.md" in result.stderr


def test_to_remove_a_block_without_a_file_asks_for_the_file_that_has_it(cli: Console) -> None:
    assert "name the file to take the block out of" in cli("gen-context", "--remove").stderr


@pytest.mark.parametrize(
    ("option", "value", "problem"),
    [
        ("--tier", "5", "--tier must be 1, 2 or 3, not 5"),
        ("--limit", "0", "--limit must be a whole number between 1 and 1000, not 0"),
        ("--budget", "7", "--budget must be a whole number between 50 and 10000, not 7"),
    ],
)
def test_a_number_that_cannot_be_used_is_named_with_its_option(
    cli: Console, option: str, value: str, problem: str
) -> None:
    refused = cli("gen-context", "AGENTS.md", option, value)
    assert refused.exit_code == 2 and problem in refused.stderr


def test_the_example_of_the_page_is_what_the_verb_writes(cli: Console) -> None:
    page = (Path(__file__).parents[2] / "docs" / "gen-context.md").read_text("utf-8")
    Path("AGENTS.md").touch()
    for line in re.findall(r"^    \$ engram (remember .*)$", page, re.MULTILINE):
        assert cli(*shlex.split(line)).exit_code == 0
    shown = cli("gen-context")
    block = page.partition("```markdown\n")[2].partition("```")[0]
    ids = re.compile(r"ENG-\d{4}-\d{4}-")
    assert ids.sub("", block) == ids.sub("", Path("AGENTS.md").read_text("utf-8"))
    counts = shown.stdout.partition("  (")[2].strip()
    assert f"({counts}" in page and shown.stderr.strip() in page


def test_malformed_markers_are_exit_1_and_name_the_line(cli: Console) -> None:
    Path("AGENTS.md").write_text("# Rules\n<!-- engram:begin -->\n")
    result = cli("gen-context")
    assert result.exit_code == 1
    assert "line 2" in result.stderr
    assert Path("AGENTS.md").read_text() == "# Rules\n<!-- engram:begin -->\n"


@pytest.mark.usefixtures("person")
def test_what_is_left_out_is_counted_with_what_to_do(cli: Console) -> None:
    cli("add", "Ana earns 80,000 euros a year", "--type", "fiscal")
    result = cli("gen-context", "AGENTS.md")
    assert "1 tier 3" in result.stderr
    assert "--tier 3" in result.stderr
    assert cli("gen-context", "AGENTS.md", "--tier", "3").stdout.startswith("updated")


def test_remove_takes_the_block_out(cli: Console) -> None:
    Path("CLAUDE.md").write_text("# Rules\n")
    cli("gen-context")
    assert cli("gen-context", "--remove").stdout.startswith("removed")
    assert Path("CLAUDE.md").read_text() == "# Rules\n"


def test_check_and_remove_together_are_wrong_usage(cli: Console) -> None:
    assert cli("gen-context", "--check", "--remove").exit_code == 2


def test_the_answer_in_json(cli: Console) -> None:
    known = cli.learned("Use tabs, not spaces", "--type", "preference")
    answer = cli.json("gen-context", "AGENTS.md", "CLAUDE.md")
    assert answer["written"] is True
    assert [one["change"] for one in answer["files"]] == ["created", "created"]
    assert [one["ids"] for one in answer["files"]] == [[known], [known]]
    assert "diff" not in answer["files"][0]
    assert cli.json("gen-context", "AGENTS.md", "--dry-run")["files"][0]["diff"] == ""


def test_a_purge_at_the_command_line_cleans_the_block(cli: Console) -> None:
    known = cli.learned("The locker code is four twenty", "--type", "preference")
    cli("gen-context", "AGENTS.md")
    cli("forget", known, "--purge", "--yes")
    assert "locker" not in Path("AGENTS.md").read_text("utf-8")
