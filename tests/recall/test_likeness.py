"""Words alike: the lexicon of a process and the table of what counts for what."""

from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from engram.recall import expand
from engram.recall.context import Passage, Passages
from engram.recall.expand import Floats, Lexicon, Likeness, rarity, term_table

WORDS = {"chess": (1.0, 0.0), "yoga": (0.8, 0.6), "boat": (0.0, 1.0)}
"""chess and yoga are alike (.8), yoga and boat somewhat (.6), chess and boat not at all."""


class Model:
    """Two-dimensional vectors of three words; remembers what it was asked to embed."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, words: Sequence[str]) -> Floats:
        self.asked.extend(words)
        return np.array([WORDS.get(word, (0.0, 0.0)) for word in words], dtype=np.float32)


def equally_common(terms: Sequence[str]) -> Mapping[str, int]:
    return dict.fromkeys(terms, 2)


def test_a_text_is_read_into_numbers_told_first_then_asked() -> None:
    lexicon = Lexicon()
    numbers, told = lexicon.read("boat sold boat ? yoga")
    assert lexicon.terms(numbers) == ["boat", "sold", "boat", "yoga"]
    assert told == 3


def test_a_text_without_a_question_is_all_told() -> None:
    assert Lexicon().read("boat sold")[1] == 2


def test_each_word_is_embedded_once() -> None:
    model = Model()
    lexicon = Lexicon(model)
    for text in ("boat yoga", "yoga boat chess"):
        lexicon.vectors(lexicon.read(text)[0])
    assert sorted(model.asked) == ["boat", "chess", "yoga"]


def test_a_stem_is_embedded_as_a_word_people_write() -> None:
    model = Model()
    lexicon = Lexicon(model)
    lexicon.vectors(lexicon.read("famili")[0])
    assert model.asked == ["family"]


def test_a_lexicon_that_grew_too_large_starts_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expand, "MOST_TERMS", 2)
    lexicon = Lexicon()
    lexicon.read("a b c")
    lexicon.trim()
    assert lexicon.read("c")[0].tolist() == [0]


def test_numbers_stay_valid_while_someone_holds_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expand, "MOST_TERMS", 1)
    lexicon = Lexicon()
    passages = Passages([Passage(("boat chess",))], lexicon)
    lexicon.trim()
    assert lexicon.terms(passages.vocabulary) == ["boat", "chess"]
    del passages
    lexicon.trim()
    assert lexicon.read("chess")[0].tolist() == [0]


def test_words_learnt_later_do_not_change_the_vectors_of_earlier_ones() -> None:
    lexicon = Lexicon(Model())
    first = lexicon.read("chess")[0]
    for word in ("yoga", "boat", "unknown", "more", "words"):
        lexicon.vectors(lexicon.read(word)[0])
    vectors = lexicon.vectors(np.concatenate([first, lexicon.read("boat")[0]]))
    assert vectors is not None
    assert vectors.tolist() == [[1.0, 0.0], [0.0, 1.0]]


def test_a_rare_term_is_worth_more_than_a_common_one_and_an_unknown_one_most() -> None:
    unknown, rare, common = rarity([0, 1, 90], 100)
    assert unknown > rare > common > 0


def test_a_term_counts_itself_fully_and_words_alike_a_share() -> None:
    lexicon = Lexicon(Model())
    vocabulary = lexicon.read("chess yoga boat")[0]
    table, _ = term_table(["chess"], vocabulary, lexicon, equally_common, 10, Likeness(floor=0.5, share=0.5))
    assert table[0].tolist() == pytest.approx([1.0, 0.5 * (0.8 - 0.5) / 0.5, 0.0])


def test_a_commonplace_word_alike_counts_less_than_a_rare_one() -> None:
    lexicon = Lexicon(Model())
    vocabulary = lexicon.read("yoga")[0]

    def share_when(frequency: int, total: int) -> float:
        table, _ = term_table(["chess"], vocabulary, lexicon, lambda terms: {"chess": 1, "yoga": frequency}, total)
        return float(table[0, 0])

    assert share_when(90, 100) < share_when(1, 100)


def test_without_vectors_only_the_terms_themselves_count() -> None:
    lexicon = Lexicon()
    table, _ = term_table(["chess", "golf"], lexicon.read("chess yoga")[0], lexicon, equally_common, 10)
    assert table.tolist() == [[1.0, 0.0], [0.0, 0.0]]
