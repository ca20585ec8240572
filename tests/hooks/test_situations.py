"""Matching without numpy: the same vectors as the engine's, and a memory's marks that follow the store."""

import math

import numpy as np
import pytest

from engram.embedding.plain import HALF, PlainTable, code_of, code_of_values, cosine, similarity
from engram.embedding.static import StaticEmbedder
from engram.models import situations
from engram.models.situations import FEATURES, Situated, SituationMatcher
from engram.models.topics import alike, table, topics_of
from engram.store.files.index.search import MARKS
from engram.text.tokens import tokens

from .conftest import Hooked

TEXTS = ("Deploys go through the staging cluster first", "kubectl get pods", "数据库的备份", "", "naïve café ☕", "a")


@pytest.mark.parametrize("text", TEXTS)
def test_a_text_has_the_vector_that_the_engine_gives_it(text: str) -> None:
    expected = StaticEmbedder().embed([text])[0]
    assert np.allclose(expected, np.array(PlainTable().embed(text)), atol=1e-5)


def test_a_stored_vector_has_the_code_of_its_numbers() -> None:
    vector = PlainTable().embed("deploying the payments service")
    assert code_of(HALF.pack(*vector)) == code_of_values(vector)


def test_codes_tell_the_angle_between_vectors() -> None:
    one, other = (PlainTable().embed(text) for text in ("deploy the service", "deploying services to production"))
    assert math.isclose(similarity(code_of_values(one), code_of_values(other)), cosine(one, other), abs_tol=0.25)


def test_texts_about_the_same_task_share_topics() -> None:
    one, other = (
        topics_of(tokens(text)) for text in ("bump axios to the latest version", "upgrading a JavaScript dependency")
    )
    assert alike(one, other) > 0.3
    assert alike(one, topics_of(tokens("planning a holiday with the kids"))) == 0


def test_a_mask_has_a_bit_for_each_topic() -> None:
    terms = tokens("write a failing test")
    assert table().mask(terms) == sum(
        1 << topic for topic in table().vector(terms) if any(topic in table().words.get(t, ()) for t in terms)
    )


def test_every_memory_gets_a_row_of_all_features() -> None:
    matcher = SituationMatcher("deploy the payments service")
    rows = matcher.features([Situated("Deploys go through staging", "deploying", b""), Situated("", "", b"")])
    assert [len(row) for row in rows] == [len(FEATURES)] * 2


def test_the_likelier_memory_has_the_higher_probability() -> None:
    memories = [
        Situated("Fix the seeds", "training image models", b""),
        Situated("Deploys go through staging", "deploying a service", b""),
    ]
    first, second = map(situations.probability, SituationMatcher("deploy the payments service").features(memories))
    assert second > situations.floor() > first


def test_a_purge_removes_the_marks(hooked: Hooked) -> None:
    memory = hooked.learned("Deploys go through staging", "deploying a service")
    hooked("prompt", prompt="please start deploying the service")
    (marks,) = hooked.cache.rglob(MARKS)
    with hooked.open() as mem:
        mem.forget(memory, purge=True)
    assert not marks.exists()
