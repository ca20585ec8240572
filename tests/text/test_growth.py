"""Reading a text takes time in proportion to it, and a normalised text is not much longer than the text."""

import time
from collections.abc import Callable
from typing import Any

import pytest

from engram.capture.documents.chunk import safe_cut
from engram.text.confusables import fold_text, fold_with_positions, normalize_forms
from engram.text.entities import entities
from engram.text.tokens import tokens

TRIES = 4


def seconds(run: Callable[[str], Any], text: str) -> float:
    began = time.process_time()
    run(text)
    return time.process_time() - began


def least_growth(run: Callable[[str], Any], piece: str, size: int) -> float:
    """The growth of the processor time to a text of four times the length, in the best of some tries."""
    short, long = (piece * size)[:size], (piece * 4 * size)[: 4 * size]
    run(short)
    return min(seconds(run, long) / max(min(seconds(run, short) for _ in range(3)), 1e-6) for _ in range(TRIES))


def cut_everywhere(text: str) -> None:
    for place in range(len(text) - 200, len(text)):
        safe_cut(text, place, 0)


def test_the_time_to_find_names_grows_with_the_text() -> None:
    assert least_growth(entities, "I ", 24_000) < 7  # 4 is linear


def test_the_time_to_cut_a_text_does_not_depend_on_its_length() -> None:
    assert least_growth(cut_everywhere, "🇩🇪", 50_000) < 2.5  # 4 if all flags before the place were read


def test_a_word_that_is_repeated_in_a_chunk_is_stemmed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []

    def stem_counted(word: str) -> str:
        read.append(word)
        return word

    monkeypatch.setattr("engram.text.tokens.stem", stem_counted)
    assert len(tokens("alpha.beta," * 500)) >= 1_000
    assert len(read) < 10


@pytest.mark.parametrize("char", ["ﷺ", "㌖", "⁗", "ﬃ", "½", "㍿", "\u0390"])
@pytest.mark.parametrize("normalise", [fold_text, normalize_forms, lambda text: fold_with_positions(text).text])
def test_a_normalised_text_is_at_most_three_times_as_long(char: str, normalise: Callable[[str], str]) -> None:
    assert len(normalise(char * 10_000)) <= 3 * 10_000 + 1_000


def test_a_few_long_forms_are_written_out() -> None:
    assert fold_text("ﷺ") == fold_text("صلى الله عليه وسلم") == fold_with_positions("ﷺ").text
    assert normalize_forms("5 ㌖") == "5 キロメートル"


def test_ligatures_are_written_out_in_any_text() -> None:
    disguised = f"the o\ufb03ce {'ﷺ' * 5_000}"
    assert fold_text(disguised).startswith("the office ")
    assert fold_with_positions(disguised).text.startswith("the office ")
