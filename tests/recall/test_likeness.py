"""Words alike: the lexicon of a process and the table of what counts for what."""

from collections.abc import Sequence

import numpy as np
import pytest

from engram.recall import coverage
from engram.recall.coverage import Floats, Lexicon, TermSimilarity, match_words, rarities, rarity
from engram.recall.passages import Passage, Passages

WORDS = {"chess": (1.0, 0.0), "yoga": (0.8, 0.6), "boat": (0.0, 1.0)}
"""chess and yoga are alike (.8), yoga and boat somewhat (.6), chess and boat not at all."""


class Model:
    """Two-dimensional vectors of three words; remembers what it was asked to embed."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, words: Sequence[str]) -> Floats:
        self.asked.extend(words)
        return np.array([WORDS.get(word, (0.0, 0.0)) for word in words], dtype=np.float32)


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
    monkeypatch.setattr(coverage, "MAX_CACHED_TERMS", 2)
    lexicon = Lexicon()
    lexicon.read("a b c")
    lexicon.trim()
    assert lexicon.read("c")[0].tolist() == [0]


def test_numbers_stay_valid_while_someone_holds_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coverage, "MAX_CACHED_TERMS", 1)
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
    known = lexicon.vectors(np.concatenate([first, lexicon.read("boat")[0]]))
    assert known is not None
    assert known[0].tolist() == [[1.0, 0.0], [0.0, 1.0]]


def test_how_much_a_word_tells_is_the_length_of_its_vector_and_an_unknown_one_tells_much() -> None:
    lexicon = Lexicon(
        lambda words: np.array([(0.0, 3.0) if word == "boat" else (0.0, 0.0) for word in words], np.float32)
    )
    known = lexicon.vectors(lexicon.read("boat zzz")[0])
    assert known is not None
    assert known[0].tolist() == [[0.0, 1.0], [0.0, 0.0]]
    assert known[1].tolist() == [3.0, coverage.UNKNOWN_WEIGHT]


def test_a_rare_term_is_worth_more_than_a_common_one_and_an_unknown_one_most() -> None:
    unknown, rare, common = rarity([0, 1, 90], 100)
    assert unknown > rare > common > 0


def test_the_rarity_of_terms_is_that_of_their_frequencies() -> None:
    assert rarities(["boat", "sun"], {"sun": 3}, 10).tolist() == rarity([0, 3], 10).tolist()


def test_a_term_is_itself_and_words_alike_count_a_share() -> None:
    lexicon = Lexicon(Model())
    found = match_words(
        ["chess"], lexicon.read("chess yoga boat")[0], lexicon, rule=TermSimilarity(floor=0.5, share=0.5)
    )
    assert found.same[0].tolist() == [True, False, False]
    assert found.worth[0].tolist() == pytest.approx([0.0, 0.5 * (0.8 - 0.5) / 0.5, 0.0])
    assert found.cosines[0].tolist() == pytest.approx([1.0, 0.8, 0.0])


def test_a_word_that_tells_less_than_the_term_counts_less() -> None:
    lengths = {"chess": 4.0, "yoga": 1.0, "golf": 4.0}
    lexicon = Lexicon(lambda words: np.array([(lengths.get(word, 0.0), 0.0) for word in words], np.float32))
    common, telling = match_words(["chess"], lexicon.read("yoga golf")[0], lexicon).worth[0]
    assert common == pytest.approx(telling / 4)


def test_a_word_that_is_commoner_here_than_the_term_counts_less() -> None:
    lexicon = Lexicon(Model())
    vocabulary = lexicon.read("yoga")[0]
    plain = match_words(["chess"], vocabulary, lexicon).worth[0, 0]
    common = match_words(["chess"], vocabulary, lexicon, np.array([[0.25]], dtype=np.float32)).worth[0, 0]
    rare = match_words(["chess"], vocabulary, lexicon, np.array([[4.0]], dtype=np.float32)).worth[0, 0]
    assert common == pytest.approx(plain / 4) and rare == plain


def test_without_vectors_only_the_terms_themselves_count() -> None:
    lexicon = Lexicon()
    found = match_words(["chess", "golf"], lexicon.read("chess yoga")[0], lexicon)
    assert found.same.tolist() == [[True, False], [False, False]]
    assert not found.worth.any() and not found.cosines.any()
