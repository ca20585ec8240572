"""A passage judged with its neighbours, its session, its speaker and its time."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engram.recall.coverage import Floats, Lexicon, match_words, rarity
from engram.recall.passages import (
    EXCERPT,
    LONG,
    MAX_FIELD_CHARACTERS,
    MAX_NEIGHBOUR_TERMS,
    Passage,
    Passages,
    Words,
    best_parents,
    count_terms,
    near_in_time,
    spoken_by,
    standing_instructions,
    truncate_fields,
    word_evidence,
)
from engram.text.tokens import marked_terms

DAY = 86_400.0


def talk(*texts: str, session: str = "s", speakers: tuple[str, ...] = ("ada", "ben")) -> list[Passage]:
    return [
        Passage((marked_terms(text),), session, speakers[place % len(speakers)]) for place, text in enumerate(texts)
    ]


def words_of(items: list[Passage], *terms: str) -> Words:
    lexicon = Lexicon()
    passages = Passages(items, lexicon)
    found = match_words(terms, passages.vocabulary, lexicon)
    counts = count_terms(passages, found)
    return word_evidence(passages, counts, rarity([1] * len(terms), 10), spoken_by(passages, terms)[1])


def evidence(items: list[Passage], *terms: str) -> tuple[Floats, Floats]:
    """In their context, and the share their session says."""
    found = words_of(items, *terms)
    return found.context, found.session


def test_a_passage_alone_is_scored_by_plain_bm25() -> None:
    items = [Passage(("boat boat sold",)), Passage(("sun",)), Passage(("boat rain wind",))]
    words, session = evidence(items, "boat", "sun")
    idf = float(rarity([1], 10)[0])

    def bm25(count: int, length: int) -> float:
        return idf * count * 2.2 / (count + 1.2 * (0.25 + 0.75 * length / (7 / 3)))

    assert words.tolist() == pytest.approx([bm25(2, 3), bm25(1, 1), bm25(1, 3)])
    assert session.tolist() == [0.5, 0.5, 0.5]


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


def test_a_session_says_what_any_of_its_turns_says() -> None:
    items = [*talk("boat", "sun", "rain"), *talk("wind", "rain", session="other")]
    _, session = evidence(items, "boat", "sun")
    assert session.tolist() == [1, 1, 1, 0, 0]


def test_a_long_neighbour_lends_no_more_than_a_short_one() -> None:
    filler = " ".join(f"w{i}" for i in range(int(MAX_NEIGHBOUR_TERMS) - 1))
    long = f"boat boat boat boat {filler} {filler} {filler} {filler}"
    items = [*talk(f"boat {filler}", "two words"), *talk(long, "two words", session="other")]
    words, _ = evidence(items, "boat")
    assert words[3] == pytest.approx(words[1])


def test_what_a_user_asks_is_not_said_again_by_the_assistant_that_answers() -> None:
    people, _ = evidence(talk("Which boat was it?", "Just an old one"), "boat")
    chat, _ = evidence(talk("Which boat was it?", "Just an old one", speakers=("user", "assist")), "boat")
    assert chat[1] < people[1]


def test_a_long_passage_is_covered_by_its_best_stretch_and_not_by_words_far_apart() -> None:
    def filler(count: int) -> str:
        return " ".join(f"w{i}" for i in range(count))

    together = Passage((f"{filler(2 * LONG)} boat sold {filler(2 * LONG)}",))
    apart = Passage((f"boat {filler(4 * LONG)} sold",))
    found = words_of([together, apart, Passage(("boat sold",))], "boat", "sold")
    assert found.covered.tolist() == [1.0, 0.5, 1.0]


def test_stretches_cover_a_long_passage_and_overlap_by_half() -> None:
    passages = Passages([Passage((" ".join(f"w{i}" for i in range(100)),)), Passage(("one two",))], Lexicon())
    stretches = passages.excerpts
    assert stretches.passage.tolist() == [0, 0, 0, 0, 1]
    assert (stretches.behind - stretches.first).tolist() == [2, 2, 2, 2, 1]
    everything = passages.by_excerpt(passages.mentions(np.ones((1, len(passages.vocabulary)), dtype=np.float32)))
    assert everything[0].tolist() == [EXCERPT] * 4 + [2]


def test_users_and_assistants_are_told_apart_by_their_index_terms() -> None:
    user, assistant = Passages(talk("one", "two", speakers=("user", "assist")), Lexicon()).roles
    assert user.tolist() == [True, False] and assistant.tolist() == [False, True]


def test_what_a_user_wants_done_always_stands() -> None:
    items = talk("Always use tabs", "Always a pleasure", "Use tabs", speakers=("user", "assist"))
    assert standing_instructions(Passages(items, Lexicon())).tolist() == [1, 0, 0]


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
    items = [*talk("boat here", "x"), *talk("boat here", "x", session="other", speakers=("cleo",))]
    words, _ = evidence(items, "ada", "boat")
    assert words[0] > words[2]


def test_the_person_a_question_names_is_found_speaking() -> None:
    passages = Passages(talk("one", "two", "three"), Lexicon())
    assert spoken_by(passages, ["ada", "boat"])[0].tolist() == [1, 0, 1]


def test_a_role_is_nobody_s_name() -> None:
    passages = Passages(talk("one", "two", speakers=("user", "assist")), Lexicon())
    speaks, named = spoken_by(passages, ["user", "boat"])
    assert not speaks.any() and not named


def test_a_question_of_names_alone_searches_them_as_words() -> None:
    assert evidence(talk("Hi Ben", "x", "y", "z", "w"), "ada", "ben")[0].argmax() == 0


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
    items = [Passage((marked_terms(text),), parent, "ada") for parent, text in sorted(rows)]
    found = words_of(items, "a", "b", "ada")
    for values in (found.context, found.covered, found.session):
        assert values.shape == (len(items),)
        assert np.isfinite(values).all() and (values >= 0).all()


def test_of_a_very_long_field_the_beginning_is_read_up_to_a_whole_term() -> None:
    book = "chapter " * 10_000
    read, about, support = truncate_fields((book, "about", ""))
    assert MAX_FIELD_CHARACTERS - len("chapter ") <= len(read) <= MAX_FIELD_CHARACTERS and set(read.split()) == {
        "chapter"
    }
    assert (about, support) == ("about", "")
