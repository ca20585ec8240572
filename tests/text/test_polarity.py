"""What a statement negates, counts and orders."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engram.text.statements import (
    NOT,
    canonical_stem,
    has_opposite,
    has_rival,
    is_converse,
    is_opposite,
    is_rival,
    normalize_statement,
)
from tests.tables import table


@table(
    "text",
    [
        "Do not use tabs",
        "Don't use tabs",
        "Don’t use tabs",
        "Never use tabs",
        "Avoid using tabs",
        "dont use tabs",
        "no longer use tabs",
        "must not use tabs",
    ],
)
def test_every_way_to_forbid_reads_alike(text: str) -> None:
    reading = normalize_statement(text)
    assert (reading.sequence, reading.negations) == ((NOT, "use", "tab"), 1)


@table(
    ("text", "affirmed"),
    [
        ("周五不要部署", "周五部署"),
        ("不使用缓存", "使用缓存"),
        ("缓存を使用しない", "缓存を使用する"),
        ("캐시를 사용하지 마세요", "캐시를 사용하세요"),
        ("Не выкладывай", "Выкладывай"),
        ("никогда не выкладывай", "выкладывай"),
        ("nicht verwenden", "verwenden"),
        ("ne pas utiliser", "ne utiliser"),
        ("لا تحذف الملف", "تحذف الملف"),
    ],
)
def test_negation_is_read_in_other_languages(text: str, affirmed: str) -> None:
    negative, positive = normalize_statement(text), normalize_statement(affirmed)
    assert (negative.negations, positive.negations) == (1, 0)
    assert negative.content == positive.content


def test_a_negation_reaches_to_the_end_of_its_clause() -> None:
    assert normalize_statement("Use tabs, not spaces").negated == {"space"}
    assert normalize_statement("Do not use A but use B").negated == {"use", "a"}


def test_without_negates_what_it_leads() -> None:
    assert normalize_statement("Deploy without approval").sequence == ("deploy", NOT, "with", "approv")


def test_a_flag_that_begins_with_no_is_not_a_negation() -> None:
    assert normalize_statement("Set the no-cache header and --no-verify").negations == 0


def test_articles_and_fillers_say_nothing() -> None:
    assert normalize_statement("Please always use the tabs").sequence == normalize_statement("use tabs").sequence


def test_single_letters_name_things() -> None:
    assert "a" in normalize_statement("Service A listens").content
    assert "a" in normalize_statement("A calls B").content
    assert "a" not in normalize_statement("A service listens").content


def test_a_number_before_the_verb_says_which_thing_is_meant() -> None:
    assert [str(number) for number in normalize_statement("Service 1 uses port 8080").identifying] == ["1"]
    assert normalize_statement("Use port 8080").identifying == ()


def test_number_words_are_numbers() -> None:
    assert (
        normalize_statement("Retry three times").numbers[0].value
        == normalize_statement("Retry 3 times").numbers[0].value
    )
    assert normalize_statement("重试三次").sequence == normalize_statement("重试3次").sequence


def test_symbols_and_emoji_count() -> None:
    assert normalize_statement("Use C").sequence != normalize_statement("Use C++").sequence
    assert normalize_statement("Status 👍").sequence != normalize_statement("Status 👎").sequence


@pytest.mark.parametrize(
    ("one", "other"), [("enabl", "disabl"), ("safe", "unsaf"), ("valid", "invalid"), ("open", "close")]
)
def test_opposites_are_found_by_table_and_by_prefix(one: str, other: str) -> None:
    assert is_opposite(one, other) and is_opposite(other, one)


def test_words_that_merely_end_alike_are_no_opposites() -> None:
    assert not is_opposite("port", "import")
    assert not is_opposite("form", "inform")
    assert not is_opposite("play", "display")


def test_before_and_after_are_converses_and_open_and_close_are_not() -> None:
    assert is_converse(canonical_stem("before"), canonical_stem("after"))
    assert not is_converse("open", "close")


def test_rivals_belong_to_one_group_and_differ() -> None:
    assert is_rival("npm", "pnpm")
    assert not is_rival("npm", "postgresql")
    assert not is_rival("npm", "npm")


@given(st.text(max_size=300))
def test_any_text_can_be_read(text: str) -> None:
    reading = normalize_statement(text)
    assert reading.negated <= reading.content


def test_a_long_text_is_read_up_to_a_bound() -> None:
    assert len(normalize_statement("word " * 1_000_000).sequence) < 2_000


CONTRASTED = (
    "enabl",
    "disabl",
    "alway",
    "never",
    "saf",
    "unsaf",
    "unit",
    "it",
    "npm",
    "pnpm",
    "yarn",
    "display",
    "play",
    "non",
    "x",
)


@given(st.lists(st.sampled_from(CONTRASTED)), st.lists(st.sampled_from(CONTRASTED)))
def test_two_groups_contrast_where_a_word_of_each_does(some: list[str], others: list[str]) -> None:
    crossed = [(one, other) for one in some for other in others]
    assert has_opposite(some, others) == any(is_opposite(*pair) for pair in crossed)
    assert has_rival(some, others) == any(is_rival(*pair) for pair in crossed)
