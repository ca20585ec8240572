"""Whether a statement answers a question, in other words than its own."""

import pytest

from engram.models import answers
from engram.models.answers import FILE, answering
from tests.tables import table

TOLD = (
    "I go to work by tram.",
    "The dev server listens on 4310.",
    "Our standup is at half past nine.",
    "My daughter plays the clarinet.",
    "We deploy from GitHub Actions.",
)


@table(
    ("question", "statement"),
    [
        ("How do I commute?", "I go to work by tram."),
        ("What instrument does my daughter play?", "My daughter plays the clarinet."),
        ("When do we meet in the morning?", "Our standup is at half past nine."),
    ],
)
def test_what_answers_is_likelier_than_anything_else(question: str, statement: str) -> None:
    found = dict(zip(TOLD, answering(question, TOLD), strict=True))
    assert max(found, key=lambda text: found[text]) == statement


def test_a_statement_is_judged_alike_alone_and_beside_others() -> None:
    together = answering("How do I commute?", (*TOLD, "word " * 200, "用户住在柏林。", "\udc80"))
    answers._known.cache_clear()
    assert together[0] == pytest.approx(answering("How do I commute?", TOLD[:1])[0], abs=1e-5)
    assert all(0 <= each <= 1 for each in together)


def test_what_has_no_words_answers_nothing() -> None:
    assert answering("How do I commute?", ["", "…"]) == [0.0, 0.0]
    assert answering("", TOLD) == [0.0] * len(TOLD)
    assert answering("How do I commute?", []) == []


def test_a_question_asked_again_is_not_worked_out_again(monkeypatch: pytest.MonkeyPatch) -> None:
    answers._known.cache_clear()
    before = answering("Where is it deployed?", TOLD)

    def unasked() -> None:
        raise AssertionError("asked")

    monkeypatch.setattr(answers, "answer_attention", unasked)
    assert answering("Where is it deployed?", TOLD) == before
    with pytest.raises(AssertionError, match="asked"):
        answering("Where is it deployed?", ["It runs in Frankfurt."])


def test_the_weights_are_small() -> None:
    assert FILE.stat().st_size < 500_000
