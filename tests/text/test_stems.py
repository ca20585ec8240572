"""Stems: Porter2 rules, irregular forms, and everything that is not English."""

from hypothesis import given
from hypothesis import strategies as st

from engram.text.words import read_table, stem, word_of
from tests.tables import table


@table(
    ("word", "expected"),
    [
        ("consistency", "consist"),
        ("hopping", "hop"),
        ("hoped", "hope"),
        ("added", "add"),
        ("generously", "generous"),
        ("universities", "universiti"),
        ("organization", "organiz"),
        ("psychologist", "psycholog"),
        ("relational", "relat"),
        ("replacement", "replac"),
        ("adoption", "adopt"),
        ("skies", "sky"),
        ("cries", "cri"),
        ("ties", "tie"),
        ("gas", "gas"),
        ("this", "this"),
        ("controlling", "control"),
        ("succeed", "succeed"),
        ("agreed", "agre"),
        ("youth", "youth"),
        ("enjoyed", "enjoy"),
        ("happily", "happili"),
        ("analogically", "analog"),
        ("communicative", "communic"),
        ("formative", "format"),
    ],
)
def test_porter2_rules_reduce_a_word_to_its_stem(word: str, expected: str) -> None:
    assert stem(word) == expected


@table(
    ("form", "base"),
    [("went", "go"), ("children", "child"), ("taught", "teach"), ("women", "woman"), ("written", "write")],
)
def test_an_irregular_form_shares_the_stem_of_its_base(form: str, base: str) -> None:
    assert stem(form) == stem(base)


def test_every_row_of_the_irregular_table_ends_in_one_stem() -> None:
    for base, *forms in read_table("irregular.txt"):
        assert {stem(form) for form in forms} == {stem(base)}, base


def test_no_irregular_form_has_two_bases() -> None:
    forms = [form for row in read_table("irregular.txt") for form in row[1:]]
    assert len(forms) == len(set(forms))


@table("word", ["привет", "मित्र", "日本", "3_11", "u1f600", "c3po", "is", ""])
def test_words_that_are_not_english_are_their_own_stem(word: str) -> None:
    assert stem(word) == word


@given(st.text(alphabet="abcdefghijklmnopqrstuvwxyz", min_size=1, max_size=20))
def test_a_stem_is_never_empty_and_never_much_longer(word: str) -> None:
    assert 0 < len(stem(word)) <= max(len(word) + 1, 8)


def test_the_word_of_a_stem_has_that_stem() -> None:
    rows = read_table("words.txt")
    assert len(rows) > 5_000
    assert [term for term, word in rows if stem(word) != term] == []


def test_the_word_of_a_stem_is_one_people_write() -> None:
    assert word_of("famili") == "family"
    assert word_of("xyzzi") == "xyzzi"
