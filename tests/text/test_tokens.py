"""Index terms and query terms, for prose, code and every script."""

import subprocess
import sys

from hypothesis import given
from hypothesis import strategies as st

from engram.text.tokens import QUESTION_MARKER, marked_terms, query_terms, tokens
from tests.tables import table


@table(
    ("text", "expected"),
    [
        ("The dogs were running", ["the", "dog", "were", "run"]),
        ("Anna's kids didn't go, I'm sure", ["anna", "kid", "didnt", "go", "i", "sure"]),
        ("snake_case", ["snake_case", "snake", "case"]),
        ("getUserName", ["getusernam", "get", "user", "name"]),
        ("HTTPServer", ["httpserver", "http", "server"]),
        ("src/app/main.py", ["src_app_main_py", "src", "app", "main", "py"]),
        ("3.11.4", ["3_11_4", "3_11", "3", "11", "4"]),
        ("e-mail", ["email", "e", "mail"]),
        ("C++ or C#", ["cpp", "or", "csharp"]),
        ("10,000 on the 5th", ["10000", "on", "the", "5"]),
        ("https://www.site.org/a", ["site_org_a", "site", "org", "a"]),
        ("TVs", ["tv"]),
    ],
)
def test_english_and_code_become_stems_wholes_and_parts(text: str, expected: list[str]) -> None:
    assert tokens(text) == expected


@table(
    ("text", "expected"),
    [
        ("日本語", ["日本", "本語", "日", "本", "語"]),
        ("猫", ["猫"]),
        ("カタカナ", ["カタ", "タカ", "カナ"]),
        ("안녕하세요", ["안녕", "녕하", "하세", "세요"]),
        ("ไทย", ["ไท", "ทย"]),
        ("用Python写", ["用", "python", "写"]),
        ("Привет, мир", ["привет", "мир"]),
        ("हिन्दी भाषा", ["हिन्दी", "भाषा"]),
        ("😀👍🏽", ["u1f600", "u1f44d"]),
        ("！？…", []),
    ],
)
def test_every_script_has_terms_of_its_own(text: str, expected: list[str]) -> None:
    assert tokens(text) == expected


@table(
    ("one", "other"),
    [
        ("café", "cafe"),
        ("cafe\u0301", "café"),
        ("ﬁle", "file"),
        ("ＦＵＬＬ", "full"),
        ("Straße", "STRASSE"),
        ("مَرْحَبًا", "مرحبا"),
        ("don’t", "don't"),
    ],
)
def test_spellings_of_one_word_meet_in_one_term(one: str, other: str) -> None:
    assert tokens(one) == tokens(other)


@table(("one", "other"), [("й", "и"), ("😀", "😁"), ("猫", "犬"), ("1.2", "1.3"), ("कि", "की")])
def test_different_words_keep_different_terms(one: str, other: str) -> None:
    assert tokens(one) != tokens(other)


def test_a_question_loses_its_stop_and_question_words() -> None:
    assert query_terms("When did Anna go to the book club?") == ["anna", "go", "book", "club"]


def test_a_question_of_stop_words_alone_keeps_them() -> None:
    assert query_terms("who are you") == ["who", "are", "you"]


def test_a_question_repeats_no_term() -> None:
    assert query_terms("book, books and Booking") == ["book"]


def test_a_single_ideograph_is_found_inside_a_word_and_a_word_is_asked_by_bigrams() -> None:
    assert set(query_terms("猫")) <= set(tokens("黒猫が好き"))
    assert query_terms("黒猫") == ["黒猫"]


def test_every_term_asked_of_a_text_is_among_its_index_terms_for_code() -> None:
    text = "call getUserName() from src/app/main.py on v3.11.4, e.g. `my_flag=1`"
    assert set(query_terms(text)) <= set(tokens(text))


def test_tokens_are_the_same_in_another_process() -> None:
    text = "Anna's café moved to src/app v1.2 日本語 😀"
    program = f"from engram.text.tokens import tokens; print(ascii(tokens({text!r})))"
    command = [sys.executable, "-X", "utf8", "-c", program]
    other = subprocess.run(command, capture_output=True, text=True, check=True, encoding="utf-8")
    assert other.stdout.strip() == ascii(tokens(text))


@given(st.text())
def test_any_text_gives_terms_of_letters_numbers_marks_and_underscores(text: str) -> None:
    for term in tokens(text):
        assert term
        assert not set(term) & set(" \t\n\x00'\"*()^:-+.,;")
        assert term == term.strip()


@given(st.text())
def test_what_is_asked_is_always_indexed(text: str) -> None:
    assert set(query_terms(text)) <= set(tokens(text))


@given(st.lists(st.text(min_size=1)))
def test_terms_of_a_text_are_the_terms_of_its_lines(lines: list[str]) -> None:
    assert tokens("\n".join(lines)) == [term for line in lines for term in tokens(line)]


@given(st.text(alphabet="abcdefghijklmnopqrstuvwxyz", min_size=1))
def test_a_word_in_capitals_is_the_same_word(word: str) -> None:
    assert tokens(word.upper()) == tokens(word)


@table(
    ("text", "expected"),
    [
        ("I sold it. Which boat? The old one!", "i sell it the old one ? which boat"),
        ("Have you seen main.py?", "? have you see main_py main py"),
        ("Really?! Yes.", "yes ? realli"),
        ("黒猫？はい。", "はい ? 黒猫 黒 猫"),
        ("x?y=1", "x_y_1 x y 1"),
        ("No questions here", "no question here"),
        ("???", ""),
    ],
)
def test_marked_terms_set_what_is_asked_behind_what_is_told(text: str, expected: str) -> None:
    assert marked_terms(text) == expected


@given(st.text(alphabet="ab .?!\n"))
def test_marked_terms_keep_every_term_of_the_text(text: str) -> None:
    assert sorted(term for term in marked_terms(text).split() if term != QUESTION_MARKER) == sorted(tokens(text))


@given(st.from_regex(r'[(."]{0,2}[A-Za-z]{1,50}[).,;:!?"]{0,3}', fullmatch=True))
def test_a_plain_word_is_read_as_any_other_would_be(chunk: str) -> None:
    # Behind a backquote it takes the long way, and the sign itself says nothing.
    assert tokens(chunk) == tokens(f"`{chunk}")
