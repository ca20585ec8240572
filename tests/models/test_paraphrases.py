"""What says the same in other words, and what only looks like it."""

from math import nan

import pytest

from engram.models.pairs import relate_pairs
from engram.models.paraphrases import SAME_LOG_ODDS, likeness

RULE = "Never commit directly to main, always open a pull request."
AGAIN = "Every change goes through a pull request, nobody commits to main directly."
OTHERS = (
    "Never commit generated files.",
    "Pull requests need two approvals before they are merged.",
    "The standup is at half past nine.",
)


def scores(*pairs: tuple[str, str], cosine: float = 0.8) -> list[float]:
    return likeness(pairs, [cosine] * len(pairs), relate_pairs(pairs))


def test_a_rule_in_other_words_says_the_same() -> None:
    assert scores((RULE, AGAIN))[0] >= SAME_LOG_ODDS


@pytest.mark.parametrize("other", OTHERS)
def test_another_rule_does_not(other: str) -> None:
    assert scores((RULE, other), cosine=0.5)[0] < SAME_LOG_ODDS


def test_a_pair_is_judged_alike_alone_and_beside_others() -> None:
    together = scores((RULE, AGAIN), *((RULE, other) for other in OTHERS), ("word " * 200, "用户住在柏林。"))
    assert together[0] == pytest.approx(scores((RULE, AGAIN))[0], abs=1e-3)


def test_a_cosine_that_is_not_known_counts_as_none() -> None:
    assert scores((RULE, AGAIN), cosine=nan) == scores((RULE, AGAIN), cosine=0.0)


def test_no_pairs_have_no_scores() -> None:
    assert scores() == []
