"""One relevance from several kinds of evidence, each part by name."""

from dataclasses import fields

import numpy as np
import pytest

from engram.recall.coverage import Floats, Lexicon
from engram.recall.fusion import (
    PARTS,
    Weights,
    asks_for_reply,
    copy_penalties,
    evidence_of,
    reciprocal_ranks,
    score,
    weigh_evidence,
)
from engram.recall.passages import Passage, Passages
from engram.recall.query import SearchQuery
from engram.store.protocol import Candidates
from engram.text.tokens import marked_terms, query_terms

TALK = (
    ("Ada", "Good to see you! How was your holiday?"),
    ("Ben", "Lovely, we sailed a small boat around the islands."),
    ("Ada", "Who taught you to sail?"),
    ("Ben", "My aunt did, when I was nine years old."),
    ("Ada", "I spent the summer painting the garden fence."),
)


CHAT = (
    ("user", "Always answer in French, please."),
    ("assist", "Gladly. The boat leaves at nine, the train at ten, and the boat costs less."),
    ("user", "I took the boat."),
)


def passages(lexicon: Lexicon, talk: tuple[tuple[str, str], ...] = TALK) -> Passages:
    items = [Passage((marked_terms(text),), "s", who.lower(), 1000.0 * at) for at, (who, text) in enumerate(talk)]
    return Passages(items, lexicon)


def parts(
    question: str,
    vector: Floats | None = None,
    meanings: Floats | None = None,
    talk: tuple[tuple[str, str], ...] = TALK,
    weights: Weights | None = None,
) -> dict[str, Floats]:
    lexicon, terms = Lexicon(), tuple(query_terms(question))
    query = SearchQuery(question, terms=terms, vector=vector)
    candidates = Candidates(frequency=dict.fromkeys(terms, 1), total=5)
    return weigh_evidence(evidence_of(passages(lexicon, talk), query, candidates, meanings, lexicon).evidence, weights)


def test_the_answer_is_found_though_the_words_stand_in_the_question_before_it() -> None:
    assert score(parts("Who taught Ben to sail?")).argmax() == 3


def test_the_parts_add_up_to_the_score_and_bear_the_names_of_the_weights() -> None:
    found = parts("Who taught Ben to sail?")
    assert list(found) == list(PARTS) == ["words", "meaning", "speaker", "time", "telling"]
    assert score(found).tolist() == pytest.approx(np.sum(list(found.values()), axis=0).tolist())


def test_every_kind_of_evidence_belongs_to_one_part() -> None:
    assert sorted(kind for kinds in PARTS.values() for kind in kinds) == sorted(f.name for f in fields(Weights))


def test_no_part_exceeds_its_weights() -> None:
    weights = Weights()
    vector = np.array([1.0, 0.0], dtype=np.float32)
    meanings = np.array([[0.6, 0.8], [1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, 0.0]], dtype=np.float32)
    for name, values in parts("Who taught Ben to sail?", vector, meanings).items():
        assert values.max() <= sum(max(0.0, getattr(weights, kind)) for kind in PARTS[name]) + 1e-6


def test_a_question_about_oneself_prefers_what_the_user_said() -> None:
    speaker = parts("Which boat did I take?", talk=CHAT)["speaker"]
    assert speaker[2] > speaker[1]


def test_a_question_about_what_the_assistant_said_lifts_the_assistant() -> None:
    asked, plain = parts("What did you say the boat costs?", talk=CHAT), parts("What does the boat cost?", talk=CHAT)
    assert asked["speaker"][1] > plain["speaker"][1]


@pytest.mark.parametrize(
    ("question", "is_asked"),
    [
        ("Can you remind me of the name you suggested?", True),
        ("Where is the list you gave me?", True),
        ("How long did you say it takes?", True),
        ("Which one have you already recommended?", True),
        ("Can you suggest a name?", False),
        ("Do you have any tips?", False),
        ("What did I tell you about Rome?", False),
        ("Which boat did we take?", False),
    ],
)
def test_a_question_asks_for_a_reply_if_you_is_the_subject_of_a_past_verb(question: str, is_asked: bool) -> None:
    assert asks_for_reply(question) is is_asked


def test_what_the_assistant_replied_outweighs_that_a_user_said_something() -> None:
    speaker = parts("Which boat did you suggest to me?", talk=CHAT)["speaker"]
    assert speaker[1] > speaker[2]


def test_a_copy_in_another_session_loses_half_of_its_score() -> None:
    text = "we sailed a small boat around the islands and " * 3
    items = [
        Passage((marked_terms(each),), home, "ben")
        for each, home in ((text, "a"), (text, "b"), ("boat", "c"), ("boat", "d"))
    ]
    scores, everything = np.array([3.0, 4.0, 2.0, 2.0], dtype=np.float32), np.arange(4)
    assert copy_penalties(scores, Passages(items, Lexicon()), everything).tolist() == [-1.5, 0, 0, 0]
    assert not copy_penalties(scores, Passages(items, Lexicon()), everything[[0, 2, 3]]).any()


def test_meaning_alone_ranks_when_no_word_is_shared() -> None:
    vector = np.array([1.0, 0.0], dtype=np.float32)
    meanings = np.eye(5, 2, dtype=np.float32)[::-1].copy()
    assert parts("zebra", vector, meanings)["meaning"].argmax() == 4


def test_without_vectors_meaning_adds_nothing() -> None:
    assert not parts("Who taught Ben to sail?")["meaning"].any()


def test_a_question_without_a_known_word_leaves_words_at_zero() -> None:
    found = parts("zebra")
    assert not found["words"].any()


def test_a_question_without_terms_is_judged_by_the_rest() -> None:
    assert np.isfinite(score(parts("???"))).all()


def test_no_passages_give_no_scores() -> None:
    lexicon = Lexicon()
    found = evidence_of(Passages([], lexicon), SearchQuery("boat", terms=("boat",)), Candidates(), None, lexicon)
    assert score(weigh_evidence(found.evidence)).shape == (0,)


def test_a_span_of_time_lifts_what_was_said_then() -> None:
    lexicon = Lexicon()
    query = SearchQuery("garden", terms=("garden",), windows=[(0.0, 500.0)])
    found = evidence_of(passages(lexicon), query, Candidates(), None, lexicon)
    assert found.evidence.time.argmax() == 0


def test_other_weights_change_the_parts_in_proportion() -> None:
    vector, meanings = np.array([1.0, 0.0], dtype=np.float32), np.eye(5, 2, dtype=np.float32)
    doubled = Weights(meaning=2 * Weights().meaning, session_meaning=2 * Weights().session_meaning)
    one = parts("boat", vector, meanings)
    other = parts("boat", vector, meanings, weights=doubled)
    assert other["meaning"].any()
    assert other["meaning"].tolist() == pytest.approx((2 * one["meaning"]).tolist())


def test_reciprocal_ranks_give_spec_1_s_sum() -> None:
    found = reciprocal_ranks({"keyword": [7, 8], "semantic": [8]})
    assert found == {7: {"keyword": 1 / 61}, 8: {"keyword": 1 / 62, "semantic": 1 / 61}}
