"""The second opinion on a pair: by itself, beside others, and asked only where it may matter."""

import numpy as np
import pytest

from engram.models import pairs
from engram.models.pair_features import Alignments
from engram.models.pair_words import read_statement
from engram.models.pairs import ATTENTION_FILE, LABELS, MEASURES, PairNetwork, inputs, pair_attention, relate

OLD, NEW = "The user's manager is Oskar.", "I report to Pia these days."
OTHERS = ("", "用户住在柏林。", "The launch is planned for March.", "word " * 90, "\x00\udc80")


def opinion(*older: str) -> np.ndarray:
    both = [(read_statement(each), read_statement(NEW)) for each in older]
    found: np.ndarray = pair_attention().probabilities(both, Alignments(both).measures())
    return found


def test_a_pair_is_judged_alike_alone_and_beside_longer_and_emptier_ones() -> None:
    beside = opinion(OLD, *OTHERS)
    assert beside.shape == (1 + len(OTHERS), len(LABELS))
    assert np.isfinite(beside).all()
    assert beside.sum(1) == pytest.approx(1, abs=1e-5)
    assert beside[0] == pytest.approx(opinion(OLD)[0], abs=1e-5)


def test_it_tells_a_change_from_another_thing() -> None:
    change, apart = (float(row[1] + row[2]) for row in opinion(OLD, "The office is closed on Fridays."))
    assert change > 0.5 > apart


def test_a_relation_is_the_mean_of_both_models() -> None:
    pair = (read_statement(OLD), read_statement(NEW))
    rows, buckets = inputs(Alignments([pair]))
    first = PairNetwork(pairs.NETWORK_FILE.read_bytes()).probabilities(rows, *buckets)
    both = (first + pair_attention().probabilities([pair], rows[:, :MEASURES])) / 2
    relation = relate(OLD, NEW)
    assert [getattr(relation, label) for label in LABELS] == pytest.approx(both[0].tolist(), abs=1e-6)


def test_it_is_not_asked_about_what_is_surely_different(monkeypatch: pytest.MonkeyPatch) -> None:
    def unasked() -> None:
        raise AssertionError("asked")

    monkeypatch.setattr(pairs, "pair_attention", unasked)
    assert relate("The train to Vienna leaves at 7:10.", "The dentist is on Tuesday.").label == "different"
    with pytest.raises(AssertionError, match="asked"):
        relate(OLD, NEW)


def test_the_weights_are_small() -> None:
    assert ATTENTION_FILE.stat().st_size < 650_000
