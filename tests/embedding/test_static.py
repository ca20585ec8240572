"""The bundled model: shape, determinism, meaning, size."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engram.embedding import Embedder, EmbedderError, static
from engram.embedding.static import DIMENSIONS, TOKENS_READ, StaticEmbedder
from engram.embedding.word_pieces import DATA

LARGEST_PACKAGE_DATA = 16_000_000


@pytest.fixture(scope="module")
def embedder() -> StaticEmbedder:
    return StaticEmbedder()


def likeness(embedder: Embedder, one: str, other: str) -> float:
    first, second = embedder.embed([one, other])
    return float(first @ second)


def test_rows_are_float32_and_of_unit_length(embedder: StaticEmbedder) -> None:
    rows = embedder.embed(["We deploy on Fridays", "I prefer pnpm", "12:30"])
    assert rows.dtype == np.float32
    assert rows.shape == (3, DIMENSIONS) == (3, embedder.dim)
    assert np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)


def test_no_texts_give_no_rows(embedder: StaticEmbedder) -> None:
    assert embedder.embed([]).shape == (0, DIMENSIONS)


@pytest.mark.parametrize("text", ["", "  \n\t", "!?…", "🎉🚀", "\0", "\ud800", "ភាសា", "x" * 101])
def test_a_text_without_a_known_word_is_a_zero_row(embedder: StaticEmbedder, text: str) -> None:
    assert not embedder.embed([text]).any()


def test_a_zero_row_between_others_changes_neither(embedder: StaticEmbedder) -> None:
    rows = embedder.embed(["", "first", "", "second", ""])
    assert not rows[[0, 2, 4]].any()
    assert np.array_equal(rows[[1, 3]], embedder.embed(["first", "second"]))


@given(st.lists(st.text(), max_size=8))
def test_a_batch_equals_its_texts_one_by_one(texts: list[str]) -> None:
    embedder = StaticEmbedder()
    batch = embedder.embed(texts)
    assert np.isfinite(batch).all()
    for text, row in zip(texts, batch, strict=True):
        assert np.array_equal(embedder.embed([text])[0], row)


def test_a_batch_longer_than_is_summed_at_once_keeps_its_order(embedder: StaticEmbedder) -> None:
    texts = [f"note number {number}" for number in range(2 * static.TEXTS_AT_ONCE + 3)]
    backwards = embedder.embed(texts[::-1])[::-1]
    assert np.array_equal(embedder.embed(texts), backwards)


def test_another_process_embeds_alike(embedder: StaticEmbedder) -> None:
    program = (
        "from engram.embedding.static import StaticEmbedder; "
        "print(StaticEmbedder().embed(['the same in every process']).tobytes().hex())"
    )
    environment = os.environ | {"PYTHONHASHSEED": "7"}
    answer = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment
    )
    assert answer.stdout.strip() == embedder.embed(["the same in every process"]).tobytes().hex()


@pytest.mark.parametrize(
    ("one", "near", "far"),
    [
        ("deploy to production", "push to the live server", "my cat sleeps all day"),
        ("the user prefers dark mode", "she likes a black theme in her editor", "the invoice is due in March"),
        ("What did Anna buy for the kitchen?", "Anna got a new oven and a fridge", "Anna went hiking in the Alps"),
        ("the database is slow", "queries against postgres take seconds", "we sang songs around the fire"),
        ("Never commit passwords", "secrets do not belong in git", "tests run in parallel"),
        ("My mother is ill", "mom has been sick", "my brother is a lawyer"),
    ],
)
def test_meaning_brings_texts_nearer_than_chance(embedder: StaticEmbedder, one: str, near: str, far: str) -> None:
    assert likeness(embedder, one, near) > likeness(embedder, one, far) + 0.1


def test_case_accents_and_punctuation_do_not_change_a_vector(embedder: StaticEmbedder) -> None:
    assert np.array_equal(embedder.embed(["CAFÉ, naïve!"]), embedder.embed(["cafe naive"]))


def test_megabytes_of_text_are_read_only_so_far(embedder: StaticEmbedder) -> None:
    start = "word " * TOKENS_READ
    huge = start + "zebra " * 800_000
    assert len(huge) > 4_000_000
    assert np.array_equal(embedder.embed([huge]), embedder.embed([start]))


def test_what_it_does_not_spell_leaves_the_known_words_in_force(embedder: StaticEmbedder) -> None:
    assert np.array_equal(embedder.embed(["deploy 🎉 ភាសា"]), embedder.embed(["deploy"]))


def test_the_package_data_stays_small() -> None:
    assert sum(file.stat().st_size for file in DATA.iterdir()) <= LARGEST_PACKAGE_DATA


def test_damaged_package_data_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "vectors.npy").write_bytes(b"torn")
    monkeypatch.setattr(static, "DATA", tmp_path)
    with pytest.raises(EmbedderError, match=r"vectors\.npy cannot be read"):
        StaticEmbedder().embed(["hello"])


def test_tokens_are_counted_whole(embedder: StaticEmbedder) -> None:
    assert embedder.count_tokens("word " * (TOKENS_READ + 5)) == TOKENS_READ + 5
