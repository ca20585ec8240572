"""One relevance from several kinds of evidence, each part by name."""

from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from engram.recall.context import Passage, Passages
from engram.recall.expand import Floats, Lexicon
from engram.recall.fuse import Asked, Weights, judge, reciprocal_ranks, score
from engram.text.tokens import marked_terms, query_terms

TALK = (
    ("Ada", "Good to see you! How was your holiday?"),
    ("Ben", "Lovely, we sailed a small boat around the islands."),
    ("Ada", "Who taught you to sail?"),
    ("Ben", "My aunt did, when I was nine years old."),
    ("Ada", "I spent the summer painting the garden fence."),
)


def passages(lexicon: Lexicon) -> Passages:
    items = [Passage((marked_terms(text),), "s", speaker, 1000.0 * at) for at, (speaker, text) in enumerate(TALK)]
    return Passages(items, lexicon)


def frequencies(terms: Sequence[str]) -> Mapping[str, int]:
    return dict.fromkeys(terms, 1)


def parts(question: str, vector: Floats | None = None, meanings: Floats | None = None) -> dict[str, Floats]:
    lexicon = Lexicon()
    return judge(passages(lexicon), Asked(tuple(query_terms(question)), vector), meanings, lexicon, frequencies, 5)


def test_the_answer_is_found_though_the_words_stand_in_the_question_before_it() -> None:
    assert score(parts("Who taught Ben to sail?")).argmax() == 3


def test_the_parts_add_up_to_the_score_and_bear_the_names_of_the_weights() -> None:
    found = parts("Who taught Ben to sail?")
    assert list(found) == ["words", "session", "meaning", "speaker", "time", "telling"]
    assert score(found).tolist() == pytest.approx(np.sum(list(found.values()), axis=0).tolist())


def test_no_part_exceeds_its_weight() -> None:
    weights = Weights()
    vector = np.array([1.0, 0.0], dtype=np.float32)
    meanings = np.array([[0.6, 0.8], [1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, 0.0]], dtype=np.float32)
    for name, values in parts("Who taught Ben to sail?", vector, meanings).items():
        assert values.max() <= getattr(weights, name) + 1e-6


def test_meaning_alone_ranks_when_no_word_is_shared() -> None:
    vector = np.array([1.0, 0.0], dtype=np.float32)
    meanings = np.eye(5, 2, dtype=np.float32)[::-1].copy()
    assert parts("zebra", vector, meanings)["meaning"].argmax() == 4


def test_without_vectors_meaning_adds_nothing() -> None:
    assert not parts("Who taught Ben to sail?")["meaning"].any()


def test_a_question_without_a_known_word_leaves_words_at_zero() -> None:
    found = parts("zebra")
    assert not found["words"].any() and not found["session"].any()


def test_a_question_without_terms_is_judged_by_the_rest() -> None:
    assert np.isfinite(score(parts("???"))).all()


def test_no_passages_give_no_scores() -> None:
    lexicon = Lexicon()
    found = judge(Passages([], lexicon), Asked(("boat",)), None, lexicon, frequencies, 0)
    assert score(found).shape == (0,)


def test_a_span_of_time_lifts_what_was_said_then() -> None:
    lexicon = Lexicon()
    asked = Asked(("garden",), windows=[(0.0, 500.0)])
    found = judge(passages(lexicon), asked, None, lexicon, frequencies, 5)
    assert found["time"].argmax() == 0


def test_other_weights_change_the_parts_in_proportion() -> None:
    lexicon = Lexicon()
    asked = Asked(("boat",))
    one = judge(passages(lexicon), asked, None, lexicon, frequencies, 5)
    other = judge(passages(lexicon), asked, None, lexicon, frequencies, 5, Weights(words=2.0))
    assert other["words"].tolist() == pytest.approx((2 * one["words"]).tolist())


def test_reciprocal_ranks_give_spec_1_s_sum() -> None:
    found = reciprocal_ranks({"keyword": [7, 8], "semantic": [8]})
    assert found == {7: {"keyword": 1 / 61}, 8: {"keyword": 1 / 62, "semantic": 1 / 61}}
