"""The bundled WordPiece tokenizer: BERT's uncased rules, any input, no numpy."""

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engram.embedding import word_pieces
from engram.embedding.word_pieces import DATA, Vocabulary, WordRows, count_tokens, vocabulary, words
from tests.tables import table


def spelled(text: str) -> list[str]:
    """The pieces of a text as strings, through the rows they are looked up by."""
    lines = (DATA / "vocabulary.txt").read_text(encoding="utf-8").split("\n")
    rows = WordRows()
    return [lines[row].rstrip(" ") for word in words(text) for row in rows[word]]


@table(
    ("text", "pieces"),
    [
        ("Deploy to production!", ["deploy", "to", "production"]),
        ("embroidering", ["em", "##bro", "##ider", "##ing"]),
        ("CAFÉ naïve İstanbul", ["cafe", "naive", "istanbul"]),
        ("東京タワー", ["東", "京", "タ", "##ワ", "##ー"]),
        ("привет", ["п", "##р", "##и", "##в", "##е", "##т"]),
        ("snake_case don't", ["snake", "case", "don", "t"]),
        ("great🎉work", ["great", "work"]),
        ("x\ud800y\0z", ["x", "##y", "##z"]),
        ("de\0ploy\x7f", ["deploy"]),
    ],
)
def test_words_are_spelled_as_the_teacher_spells_them(text: str, pieces: list[str]) -> None:
    assert spelled(text) == pieces


@pytest.mark.parametrize("word", ["postgres", "kubernetes", "github", "username"])
def test_technical_words_are_known_whole(word: str) -> None:
    assert spelled(word) == [word]


def test_a_word_of_a_script_the_vocabulary_lacks_has_no_rows() -> None:
    assert spelled("ភាសាខ្មែរ") == []


def test_a_run_of_letters_too_long_to_be_a_word_has_no_rows() -> None:
    assert spelled("a" * (word_pieces.LONGEST_WORD + 1)) == []
    assert spelled("a" * word_pieces.LONGEST_WORD) != []


def test_searching_and_the_dictionary_know_the_same_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    pieces = ["the", "##ing", "zebra", "!", "東", "##ß", "not-a-piece", "", "~", "\uffff", "x" * 40]
    searched = [Vocabulary(DATA / "vocabulary.txt").row(piece) for piece in pieces]
    monkeypatch.setattr(word_pieces, "SEARCHED_PIECES", 0)
    looked_up = [Vocabulary(DATA / "vocabulary.txt").row(piece) for piece in pieces]
    assert searched == looked_up
    assert [row is None for row in searched] == [False] * 5 + [piece not in {"##ß", "~"} for piece in pieces[5:]]


def test_every_line_of_the_vocabulary_finds_its_own_row() -> None:
    lines = (DATA / "vocabulary.txt").read_text(encoding="utf-8").split("\n")[:-1]
    known = vocabulary()
    assert [known.row(line.rstrip(" ")) for line in lines] == list(range(len(known)))


def test_the_cache_of_words_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(word_pieces, "CACHED_WORDS", 10)
    rows = WordRows()
    for number in range(100):
        assert rows[f"word{number}"]
    assert len(rows) <= 10


@table(
    ("text", "tokens"),
    [
        ("", 0),
        ("   \n", 0),
        ("Hello, world.", 4),
        ("embroidering", 4),
        ("postgres", 1),
        ("東京", 2),
        ("a" * 300, 100),
        ("ប្រទេស", 5),
    ],
)
def test_tokens_are_counted(text: str, tokens: int) -> None:
    assert count_tokens(text) == tokens


@given(st.text())
def test_any_text_can_be_counted_and_only_blank_ones_count_nothing(text: str) -> None:
    count = count_tokens(text)
    assert 0 <= count <= 18 * max(1, len(text))
    if any(character.isalnum() for character in text):
        assert count > 0


@given(st.text(), st.text())
def test_two_texts_apart_count_as_the_sum_of_both(first: str, second: str) -> None:
    assert count_tokens(f"{first} {second}") == count_tokens(first) + count_tokens(second)


def test_counting_tokens_loads_neither_numpy_nor_the_vectors() -> None:
    program = (
        "import sys; from engram.embedding.word_pieces import count_tokens; "
        "assert count_tokens('hello world') == 2; print('numpy' in sys.modules)"
    )
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "False"
