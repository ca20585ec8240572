"""What makes finding secrets fast leaves nothing out: each shortcut against the plain way, over the texts that the model learns from."""

import json
import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engram.gates.proposal import RECORD_SEPARATOR
from engram.gates.secrets import bare_secrets, forms, prose
from engram.gates.secrets.forms import hints_in
from engram.gates.secrets.scan import find_candidates
from engram.models.credentials import MARGIN, MODEL, TextTokens
from tests.gates.samples import samples

ROOT = Path(__file__).parents[2]
WORD = re.compile(r"[^\s,;()<>\[\]{}|\"“”„«»「」]{3,80}")
TOKEN = re.compile(r"(?<![\w!#$%^&*?~@+=./:-])[\w!#$%^&*?~@+=./:-]{10,512}", re.ASCII)
SIGNED = st.text(alphabet='aZü7_-.:/,;(" \nあ', max_size=120)


@lru_cache(maxsize=1)
def texts() -> list[str]:
    """The texts of training and of the tests, each alone, and some dozens at once as the index of sources reads them."""
    learned = (ROOT / "training" / "secrets").glob("*.jsonl")
    found = [json.loads(line)["text"] for path in sorted(learned) for line in path.read_text("utf-8").splitlines()]
    for path in sorted((ROOT / "tests" / "gates" / "data").glob("*.txt")):
        found += [sample.text for sample in samples(path.name)]
    return [*found, *(RECORD_SEPARATOR.join(found[start : start + 40]) for start in range(0, len(found), 40))]


def all_hints() -> set[str]:
    by_letters, _, short = forms._index()
    return {hint for pairs in by_letters.values() for _, hint in pairs} | {
        hint for some in short.values() for hint in some
    }


def places(part: str, text: str) -> Iterator[int]:
    place = text.find(part)
    while place >= 0:
        yield place
        place = text.find(part, place + 1)


def test_every_hint_is_found_at_each_of_its_places() -> None:
    hints = all_hints()
    assert len(hints) > 1000
    for text in texts():
        lowered = text.lower()
        assert hints_in(lowered) == {hint: [*places(hint, lowered)] for hint in hints if hint in lowered}


@given(
    st.lists(st.sampled_from(sorted(all_hints())), max_size=8), st.sampled_from(["", " ", "-", "s", "\x1f", "é", "\n"])
)
def test_hints_are_found_however_they_are_joined(some: list[str], joint: str) -> None:
    lowered = joint.join(some)
    assert hints_in(lowered) == {hint: [*places(hint, lowered)] for hint in all_hints() if hint in lowered}


@pytest.mark.heavy
def test_a_score_made_of_the_scores_of_words_is_that_of_all_features() -> None:
    judged = set()
    for text in texts():
        lowered = text.lower()
        if len(lowered) != len(text):
            continue
        tokens = TextTokens(text, lowered)
        for (start, end), tags in find_candidates(text)[1].items():
            score = tokens.score(start, end, tags)
            assert score == MODEL.sums(tokens.features(start, end, tags))[0]
            judged.add(score > MARGIN)
    assert judged == {True, False}


def test_only_plain_words_are_passed() -> None:
    for text in texts():
        assert unusual_words(text) == plainly_unusual_words(text)


@given(SIGNED)
def test_only_plain_words_are_passed_in_any_text(text: str) -> None:
    assert unusual_words(text) == plainly_unusual_words(text)


def unusual_words(text: str) -> list[tuple[int, str]]:
    found = [(match.start("word"), match["word"]) for match in prose._WORDLIKE.finditer(text) if match["word"]]
    return [(start, word) for start, word in found if not is_plain(word)]


def plainly_unusual_words(text: str) -> list[tuple[int, str]]:
    return [(match.start(), match[0]) for match in WORD.finditer(text) if not is_plain(match[0])]


def is_plain(word: str) -> bool:
    plain = word.rstrip(".:")
    return not plain or (plain.isalpha() and plain[1:].islower())


def test_only_runs_without_digits_are_passed() -> None:
    for text in texts():
        assert runs_with_digits(text) == plain_runs_with_digits(text)


@given(SIGNED, st.integers(0, 1100))
def test_only_runs_without_digits_are_passed_in_any_text(text: str, size: int) -> None:
    text = f"{text}{'ab' * size}7{text}"
    assert runs_with_digits(text) == plain_runs_with_digits(text)


def runs_with_digits(text: str) -> list[tuple[int, str]]:
    found = [(match.start("token"), match["token"]) for match in bare_secrets._TOKEN.finditer(text) if match["token"]]
    return [(start, token) for start, token in found if re.search("[0-9]", token)]


def plain_runs_with_digits(text: str) -> list[tuple[int, str]]:
    return [(match.start(), match[0]) for match in TOKEN.finditer(text) if re.search("[0-9]", match[0])]
