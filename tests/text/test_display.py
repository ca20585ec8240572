"""Texts as they are shown: what hides is escaped, whatever the fast test before it takes for plain."""

import sys

import pytest

from engram.text.display import DOUBTFUL, HIDDEN, disable_markup, escape_hidden, visible_json


def test_every_character_that_may_be_hidden_is_doubtful() -> None:
    characters = map(chr, range(sys.maxunicode + 1))
    assert [char for char in characters if HIDDEN.search(char) and not DOUBTFUL.search(char)] == []


def test_quotation_marks_dashes_and_latin_letters_are_not_doubtful() -> None:
    assert DOUBTFUL.search("“Größe” – „naïve” ‘façade’… › Łódź\n\tPlain text.") is None


def test_hidden_characters_are_escaped_among_quotation_marks() -> None:
    assert escape_hidden("“a\u200bb”\x1b\x7f") == "“a\\u200bb”\\x1b\\x7f"
    assert visible_json('"“a\u202eb”\x7f"') == '"“a\\u202eb”\\u007f"'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("in src/<name> of <b>x</b>", "in src/‹name› of ‹b›x‹/b›"),
        ("x <!-- hidden --> y", "x ‹!-- hidden --› y"),
        ("<name and then a -> b", "‹name and then a -> b"),
        ("<user says\n> so", "‹user says\n> so"),
        ("a < b > c, List<int>", "a < b > c, List<int>"),
    ],
)
def test_both_brackets_of_a_tag_are_replaced(text: str, expected: str) -> None:
    assert disable_markup(text) == expected
