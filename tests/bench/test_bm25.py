"""The baseline: BM25 as the textbooks have it, over the turns of one conversation."""

import math
from datetime import UTC, datetime

import pytest

from engram.bench.dataset import DatasetConversation, DatasetTurn, SessionOfTurns
from engram.bench.retrieval import K1, B, Bm25


def conversation(*texts: str, speakers: tuple[str, ...] = ("user",)) -> DatasetConversation:
    turns = tuple(DatasetTurn(str(place), speakers[place % len(speakers)], text) for place, text in enumerate(texts))
    return DatasetConversation("c", (SessionOfTurns("s", datetime(2024, 1, 1, tzinfo=UTC), turns),), ())


def test_scores_are_those_of_the_formula() -> None:
    bm25 = Bm25(conversation("boat boat harbour", "boat", "rain wind sun cloud"))
    idf = math.log(1 + (3 - 2 + 0.5) / (2 + 0.5))
    average = 11 / 3

    def score(count: int, length: int) -> float:
        return idf * count * (K1 + 1) / (count + K1 * (1 - B + B * length / average))

    assert bm25.scores("boat") == {"0": pytest.approx(score(2, 4)), "1": pytest.approx(score(1, 2))}


def test_a_rare_word_outweighs_a_common_one() -> None:
    bm25 = Bm25(conversation("the boat is red", "the boat is blue", "the boat is old", "the harbour is deep"))
    assert bm25.ranking("boat harbour", 2) == ["3", "0"]


def test_terms_are_those_of_the_index_and_question_words_do_not_count() -> None:
    bm25 = Bm25(conversation("What do you think of it?", "We sailed two boats."))
    assert bm25.ranking("What boat did we sail?", 10) == ["1"]


def test_who_spoke_counts_as_a_word_of_the_turn() -> None:
    bm25 = Bm25(conversation("I sold the boat.", "The boat is sold.", speakers=("Ada", "Ben")))
    assert bm25.ranking("What did Ben sell?", 10) == ["1", "0"]


def test_equal_turns_stand_in_the_order_they_were_said() -> None:
    bm25 = Bm25(conversation("red boat", "blue boat", "old boat"))
    assert bm25.ranking("boat", 2) == ["0", "1"]


def test_a_question_of_unknown_words_finds_nothing() -> None:
    assert Bm25(conversation("red boat")).ranking("zebra", 10) == []
    assert Bm25(conversation()).ranking("boat", 10) == []
