"""The page on the file format says what the program does."""

import re
from datetime import UTC, datetime
from pathlib import Path

from engram.dialects.engram_yaml import MEMORY_KEYS, dump, load, to_mapping
from engram.dialects.plur.entry import engram_type, plur_status, plur_type
from engram.model.memory import STATUSES, Feedback, Memory
from tests.tables import table

PAGE = (Path(__file__).parents[2] / "docs" / "file-format.md").read_text("utf-8")
SNIPPETS = re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@table("snippet", SNIPPETS)
def test_every_snippet_loads_and_is_kept(snippet: str) -> None:
    memories = load(snippet, where="docs/file-format.md")
    assert memories
    assert load(dump(memories)) == memories


def test_the_page_has_snippets() -> None:
    assert len(SNIPPETS) == 6


def test_the_first_snippet_is_what_engram_writes() -> None:
    assert dump(load(SNIPPETS[0])) == SNIPPETS[0]


def test_every_field_is_in_the_tables_and_nothing_else() -> None:
    top, inner = (part.split("\n\n")[0] for part in PAGE.split("|---|---|---|\n")[1:3])
    assert _first_cells(top) == MEMORY_KEYS | {"metadata"}
    full = Memory(
        "ENG-1", "Tabs", created=datetime(2026, 1, 1, tzinfo=UTC), source="x", feedback=Feedback(1), emotional_weight=7,
        trigger_context="y", derivation_count=2,
    )  # fmt: skip
    assert _first_cells(inner) == set(to_mapping(full)["metadata"])


def _first_cells(table: str) -> set[str]:
    return {name for row in table.splitlines() for name in re.findall(r"`(\w+)`", row.split("|")[1])}


def test_every_status_is_named() -> None:
    row = next(line for line in PAGE.splitlines() if line.startswith("| `status`"))
    assert re.findall(r"`(\w+)`", row)[1:-1] == list(STATUSES)


def test_the_words_for_plur_are_those_of_the_program() -> None:
    assert [engram_type(word) for word in ("terminological", "architectural")] == ["factual", "convention"]
    rows = [line.split("|")[1:3] for line in PAGE.split("In the other direction:")[1].splitlines() if line[:3] == "| `"]
    for ours, theirs in rows:
        plur = re.findall(r"`(\w+)`", theirs)[0]
        for word in re.findall(r"`(\w+)`", ours):
            assert (plur_status(word) if "status" in ours else plur_type(word)) == plur


def test_tags_in_the_snippet_are_as_the_page_says() -> None:
    assert load(SNIPPETS[3])[0].tags == ("3.10", "on", "007")
