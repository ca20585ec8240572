"""A passage judged with its neighbours, its session, its speaker and its time."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engram.recall.context import (
    Passage,
    Passages,
    best_parents,
    near_in_time,
    spoken_by,
    telling,
    word_evidence,
)
from engram.recall.expand import Floats, Lexicon, rarity, term_table
from engram.text.tokens import marked_terms

DAY = 86_400.0


def talk(*texts: str, session: str = "s", speakers: tuple[str, ...] = ("Ada", "Ben")) -> list[Passage]:
    return [
        Passage((marked_terms(text),), session, speakers[place % len(speakers)]) for place, text in enumerate(texts)
    ]


def evidence(items: list[Passage], *terms: str) -> tuple[Floats, Floats]:
    lexicon = Lexicon()
    passages = Passages(items, lexicon)
    table, idf = term_table(terms, passages.vocabulary, lexicon, lambda asked: dict.fromkeys(asked, 1), 10)
    return word_evidence(passages, table, idf, spoken_by(passages, terms)[1])


def test_a_passage_alone_is_scored_by_plain_bm25() -> None:
    items = [Passage(("boat boat sold",)), Passage(("sun",)), Passage(("boat rain wind",))]
    words, session = evidence(items, "boat", "sun")
    idf = float(rarity([1], 10)[0])

    def bm25(count: int, length: int) -> float:
        return idf * count * 2.2 / (count + 1.2 * (0.25 + 0.75 * length / (7 / 3)))

    assert words.tolist() == pytest.approx([bm25(2, 3), bm25(1, 1), bm25(1, 3)])
    assert session.tolist() == pytest.approx(words.tolist())


def test_a_turn_inherits_the_words_around_it_nearer_ones_more() -> None:
    words, _ = evidence(talk("boat here", "two words", "two words", "two words"), "boat")
    assert words[0] > words[1] > words[2] > words[3] > 0


def test_words_do_not_cross_into_another_session() -> None:
    words, _ = evidence([*talk("boat here"), *talk("two words", session="other")], "boat")
    assert words[1] == 0


def test_a_question_counts_more_for_the_turn_that_answers_than_for_the_turn_that_asks() -> None:
    words, _ = evidence(talk("Which boat was it?", "Just an old one"), "boat")
    assert words[1] > words[0]


def test_a_question_nobody_answers_counts_fully_where_it_is_asked() -> None:
    words, _ = evidence([Passage(("? boat here",)), Passage(("boat here",))], "boat")
    assert words[0] == words[1]


def test_a_statement_counts_most_where_it_is_made() -> None:
    words, _ = evidence(talk("It was that boat.", "Just an old one"), "boat")
    assert words[0] > words[1]


def test_a_session_is_scored_as_a_whole() -> None:
    items = [*talk("boat", "sun", "rain"), *talk("wind", "rain", session="other")]
    _, session = evidence(items, "boat", "sun")
    assert session[0] == session[1] == session[2] > session[3] == session[4] == 0


def test_fields_count_by_their_weight() -> None:
    words, _ = evidence([Passage(("boat x", "y")), Passage(("y x", "boat")), Passage(("y x", "", "boat"))], "boat")
    assert words[0] > words[1] > words[2] > 0


def test_the_name_of_someone_present_says_nothing_where_everyone_has_it() -> None:
    items = talk("Ada hello", "boat here", "nothing here")
    named, _ = evidence(items, "ada", "boat")
    unnamed, _ = evidence(items, "boat")
    assert named.tolist() == pytest.approx(unnamed.tolist())


def test_the_name_of_someone_absent_is_a_word_like_any_other() -> None:
    items = [Passage(("ada boat",)), Passage(("ben boat",))]
    words, _ = evidence(items, "ada", "boat")
    assert words[0] > words[1]


def test_where_someone_is_present_in_one_session_only_the_name_tells_the_sessions_apart() -> None:
    items = [*talk("boat here", "x"), *talk("boat here", "x", session="other", speakers=("Cleo",))]
    words, _ = evidence(items, "ada", "boat")
    assert words[0] > words[2]


def test_the_person_a_question_names_is_found_speaking() -> None:
    passages = Passages(talk("one", "two", "three"), Lexicon())
    assert spoken_by(passages, ["ada", "boat"])[0].tolist() == [1, 0, 1]


def test_a_role_is_nobody_s_name() -> None:
    passages = Passages(talk("one", "two", speakers=("user", "assistant")), Lexicon())
    speaks, named = spoken_by(passages, ["user", "boat"])
    assert not speaks.any() and not named


def test_a_question_of_names_alone_searches_them_as_words() -> None:
    assert evidence(talk("Hi Ben", "x", "y", "z", "w"), "ada", "ben")[0].argmax() == 0


def test_a_question_tells_little_a_statement_more_and_a_memory_all() -> None:
    items = [*talk("Shall we go there?", "We went to the lake with both dogs."), Passage(("boat",))]
    asked, told, memory = telling(Passages(items, Lexicon()))
    assert asked == 0 < told < memory == 1


def test_nearness_in_time_falls_off_outside_the_span_and_is_nothing_without_a_time() -> None:
    items = [Passage(("x",), time=time) for time in (5 * DAY, 12 * DAY, 30 * DAY, None)]
    near = near_in_time(Passages(items, Lexicon()), [(4 * DAY, 6 * DAY)])
    assert near[0] == 1
    assert near[0] > near[1] > near[2] > near[3] == 0


def test_without_a_span_nothing_is_near() -> None:
    assert not near_in_time(Passages([Passage(("x",), time=0.0)], Lexicon()), []).any()


def test_the_sessions_worth_reading_are_those_whose_candidates_score_most() -> None:
    lexical = [("a", 8.0), ("b", 6.0), ("b", 4.0), ("", 4.0)]
    semantic = [("c", 0.5), ("a", 0.1)]
    assert best_parents([lexical, semantic], 2) == ["b", "a"]
    assert best_parents([[], []], 2) == []


@given(st.lists(st.tuples(st.sampled_from(["", "s", "t"]), st.text(alphabet="ab? .", max_size=12)), max_size=12))
def test_any_passages_get_finite_evidence_and_none_below_zero(rows: list[tuple[str, str]]) -> None:
    items = [Passage((marked_terms(text),), parent, "Ada") for parent, text in sorted(rows)]
    for values in evidence(items, "a", "b", "ada"):
        assert values.shape == (len(items),)
        assert np.isfinite(values).all() and (values >= 0).all()
