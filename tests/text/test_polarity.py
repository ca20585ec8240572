"""What a statement negates, counts and orders."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engram.text.polarity import NOT, any_opposite, any_rival, canonical, converse, opposite, read, rival
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
    reading = read(text)
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
    negative, positive = read(text), read(affirmed)
    assert (negative.negations, positive.negations) == (1, 0)
    assert negative.content == positive.content


def test_a_negation_reaches_to_the_end_of_its_clause() -> None:
    assert read("Use tabs, not spaces").negated == {"space"}
    assert read("Do not use A but use B").negated == {"use", "a"}


def test_without_negates_what_it_leads() -> None:
    assert read("Deploy without approval").sequence == ("deploy", NOT, "with", "approv")


def test_a_flag_that_begins_with_no_is_not_a_negation() -> None:
    assert read("Set the no-cache header and --no-verify").negations == 0


def test_articles_and_fillers_say_nothing() -> None:
    assert read("Please always use the tabs").sequence == read("use tabs").sequence


def test_single_letters_name_things() -> None:
    assert "a" in read("Service A listens").content
    assert "a" in read("A calls B").content
    assert "a" not in read("A service listens").content


def test_a_number_before_the_verb_says_which_thing_is_meant() -> None:
    assert [str(number) for number in read("Service 1 uses port 8080").identifying] == ["1"]
    assert read("Use port 8080").identifying == ()


def test_number_words_are_numbers() -> None:
    assert read("Retry three times").numbers[0].value == read("Retry 3 times").numbers[0].value
    assert read("重试三次").sequence == read("重试3次").sequence


def test_symbols_and_emoji_count() -> None:
    assert read("Use C").sequence != read("Use C++").sequence
    assert read("Status 👍").sequence != read("Status 👎").sequence


@pytest.mark.parametrize(
    ("one", "other"), [("enabl", "disabl"), ("safe", "unsaf"), ("valid", "invalid"), ("open", "close")]
)
def test_opposites_are_found_by_table_and_by_prefix(one: str, other: str) -> None:
    assert opposite(one, other) and opposite(other, one)


def test_words_that_merely_end_alike_are_no_opposites() -> None:
    assert not opposite("port", "import")
    assert not opposite("form", "inform")
    assert not opposite("play", "display")


def test_before_and_after_are_converses_and_open_and_close_are_not() -> None:
    assert converse(canonical("before"), canonical("after"))
    assert not converse("open", "close")


def test_rivals_belong_to_one_group_and_differ() -> None:
    assert rival("npm", "pnpm")
    assert not rival("npm", "postgresql")
    assert not rival("npm", "npm")


@given(st.text(max_size=300))
def test_any_text_can_be_read(text: str) -> None:
    reading = read(text)
    assert reading.negated <= reading.content


def test_a_long_text_is_read_up_to_a_bound() -> None:
    assert len(read("word " * 1_000_000).sequence) < 2_000


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
    assert any_opposite(some, others) == any(opposite(*pair) for pair in crossed)
    assert any_rival(some, others) == any(rival(*pair) for pair in crossed)
