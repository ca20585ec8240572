"""Engram's block in somebody's own text: found, put in, replaced and taken out, and nothing else touched."""

from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from engram.model.errors import Refused
from engram.recall.prompt.context_block import (
    BEGIN,
    END,
    find_block,
    quoted_ids,
    with_block,
    without_block,
    without_memories,
)
from tests.tables import table

LINES = ("## Memory", "", "**Preference**", "- “a” (ENG-1)", "- “b” (ENG-2)", "", "**Fact**", "- “c” (ENG-3)")
BLOCK = "\n".join((BEGIN, *LINES, END))


def test_a_text_without_a_block_gets_one_at_its_end() -> None:
    assert with_block("# Rules\n", LINES, "x") == f"# Rules\n\n{BLOCK}\n"


def test_an_empty_file_is_the_block_alone() -> None:
    assert with_block("", LINES, "x") == f"{BLOCK}\n"


def test_a_text_without_a_final_newline_stays_without_one() -> None:
    assert with_block("# Rules", LINES, "x") == f"# Rules\n\n{BLOCK}"


def test_a_marker_in_an_indented_code_block_is_only_shown() -> None:
    assert find_block(f"    {BEGIN}\n    {END}\n", "x") is None


def test_a_block_is_replaced_where_it_is() -> None:
    assert with_block(f"before\n{BLOCK}\nafter", ("new",), "x") == f"before\n{BEGIN}\nnew\n{END}\nafter"


def test_windows_line_endings_are_kept() -> None:
    text = with_block("# Rules\r\n", LINES, "x")
    assert text.count("\n") == text.count("\r\n")
    assert with_block(f"{text}after\r\n", ("new",), "x").endswith(f"\r\n{BEGIN}\r\nnew\r\n{END}\r\nafter\r\n")


@given(st.text(alphabet=st.sampled_from("ab #\n\r`~<!->"), max_size=60))
@example("\r")
@example("a\r\nb")
def test_writing_twice_changes_nothing_and_removing_restores_the_text(text: str) -> None:
    once = with_block(text, LINES, "x")
    assert with_block(once, LINES, "x") == once
    assert once.startswith(text)
    assert without_block(once, "x") == text


@table(
    ("text", "named"),
    [
        (f"a\n{BEGIN}\nb\n", "line 2 begins a block that never ends"),
        (f"a\n{END}\nb\n", "line 2 ends a block that never begins"),
        (f"{END}\nb\n{BEGIN}\n", "the end at line 1 comes before the beginning at line 3"),
        (f"{BLOCK}\n{BLOCK}\n", "begin at line 1, end at line 10, begin at line 11, end at line 20"),
        (f"{BEGIN}\n{BEGIN}\n{END}\n", "begin at line 1, begin at line 2, end at line 3"),
        (f"{BEGIN}\n{END}\n{END}\n", "end at line 2, end at line 3"),
        (f"text {BEGIN}\n{END}\n", "line 1 has a marker and other text"),
        (f"```\n{BEGIN}\nno fence closes this\n", "line 2 begins a block that never ends"),
    ],
)
def test_malformed_markers_are_refused_with_their_lines(text: str, named: str) -> None:
    changes: list[Callable[[], str]] = [
        lambda: with_block(text, LINES, "AGENTS.md"),
        lambda: without_block(text, "AGENTS.md"),
        lambda: without_memories(text, ["ENG-1"], "AGENTS.md"),
    ]
    for change in changes:
        with pytest.raises(Refused) as refused:
            change()
        assert "AGENTS.md" in str(refused.value)
        assert named in str(refused.value)


@table(
    "text",
    [
        f"Engram writes between `{BEGIN}` and `{END}`.\n",
        f"Example:\n\n```markdown\n{BEGIN}\nnot ours\n{END}\n```\n",
        f"~~~\n{BEGIN}\n```\n~~~\n",
    ],
)
def test_markers_that_are_only_shown_are_no_block(text: str) -> None:
    assert find_block(text, "x") is None
    assert with_block(text, LINES, "x") == f"{text}\n{BLOCK}\n"


def test_a_block_in_the_middle_leaves_one_empty_line_behind() -> None:
    assert without_block(f"before\n\n{BLOCK}\n\nafter\n", "x") == "before\n\nafter\n"


def test_the_lines_of_purged_memories_go_and_an_empty_group_with_them() -> None:
    left = without_memories(f"before\n{BLOCK}\n", ["ENG-1", "ENG-3"], "x")
    assert left == f"before\n{BEGIN}\n## Memory\n\n**Preference**\n- “b” (ENG-2)\n{END}\n"


def test_a_block_whose_memories_are_all_purged_says_that_there_are_none() -> None:
    left = without_memories(BLOCK, ["ENG-1", "ENG-2", "ENG-3"], "x")
    assert left == f"{BEGIN}\n## Memory\n\nNo memories yet.\n{END}"


def test_only_lines_of_the_block_are_removed() -> None:
    text = f"- mine (ENG-1)\n{BLOCK}\n"
    assert without_memories(text, ["ENG-1"], "x").startswith("- mine (ENG-1)\n")


def test_an_id_that_ends_like_a_purged_one_stays() -> None:
    assert without_memories(BLOCK.replace("ENG-3", "X-ENG-1"), ["ENG-1"], "x").count("X-ENG-1") == 1


def test_the_memories_of_a_block_can_be_read_back() -> None:
    assert quoted_ids(f"- (ENG-9)\n{BLOCK.replace('(ENG-3', '(disputed, ENG-3')}", "x") == ["ENG-1", "ENG-2", "ENG-3"]
