"""How likely a statement answers a question: attention over the words of both (`engram.models.pair_attention`), with weights of its own.

It reads what shared words and vectors do not show: that "I go to work by tram" tells how I commute. Trained by training/train_answers.py on the slots of many writers and judged on writers left out; numpy is imported and
the weights are read on first use.
"""

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from engram.models.pair_attention import PairAttention, read_attention
from engram.models.pair_words import read_statement

__all__ = ["FILE", "answering"]

FILE = Path(__file__).with_name("answers.npz")
_ANSWERS = 1
"""The place of "answers" among the labels; the other is "does not"."""
_MOST_KNOWN = 500
"""Statements of a question whose probabilities are kept."""


def answering(question: str, statements: Sequence[str]) -> list[float]:
    """The probability that each statement answers the question; 0 for what has no words."""
    known = _known(question)
    asked = read_statement(question)
    found = {text: known[text] for text in statements if text in known}
    new = {text: read_statement(text) for text in statements if text not in found}
    found |= dict.fromkeys(new, 0.0)
    worded = [(text, told) for text, told in new.items() if asked.tokens and told.tokens]
    if worded:
        rows = answer_attention().probabilities([(asked, told) for _, told in worded])
        found |= {text: row[_ANSWERS] for (text, _), row in zip(worded, rows.tolist(), strict=True)}
    if len(known) < _MOST_KNOWN:
        known.update(found)  # all at once: another thread may ask the same
    return [found[text] for text in statements]


@lru_cache(maxsize=8)
def _known(question: str) -> dict[str, float]:
    """What was worked out for a question: one recall searches several times, and finds much the same."""
    return {}


@lru_cache(maxsize=1)
def answer_attention() -> PairAttention:
    """The model as it is bundled."""
    return read_attention(FILE)
