"""The contract with a model that really runs: 135 million parameters, so nothing is said about its wisdom."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from engram import Engram
from engram.capture.conversation import Conversations
from engram.llm.model import LanguageModel, ModelSettings
from engram.llm.schemas import QuestionReading
from engram.llm.spend import SpendFolder
from tests.clock import Clock
from tests.llm.small_model import running

pytestmark = pytest.mark.heavy


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with running() as url:
        yield url


def test_a_small_model_answers_in_the_shape_asked_for_and_is_counted(address: str, tmp_path: Path) -> None:
    model = LanguageModel(ModelSettings(f"openai:smollm2@{address}", timeout_s=60), SpendFolder(tmp_path / "spend"))
    reading = model.ask("question", QuestionReading, {"today": "2026-03-04", "question": "Where did I live last year?"})
    assert reading.intent in ("current", "historical", "event", "lineage")
    assert 100 < model.spent_today() < 2000


def test_an_exchange_read_by_a_small_model_is_kept_whatever_it_says(address: str, tmp_path: Path, clock: Clock) -> None:
    model = LanguageModel(
        ModelSettings(f"openai:smollm2@{address}", timeout_s=60, max_tokens_per_call=120), clock=clock
    )
    jobs: list[str] = []

    class Queue:
        def enqueue(self, kind: str, key: str, payload: object) -> None:
            jobs.append(key)

    with Engram.open(tmp_path / "home", cache=tmp_path / "cache", directory=tmp_path, clock=clock) as mem:
        taking = Conversations(mem.store, mem._learner, model, clock, mem.observe_batch, Queue())
        result = taking.add("I prefer pnpm over npm for every project.", "Noted.", scope="global", session="s")
        assert [event.content for event in mem.store.events("s")] == [
            "I prefer pnpm over npm for every project.",
            "Noted.",
        ]
    assert "The user prefers pnpm over npm for every project." in [decision.fact for decision in result.decisions]
    assert len(result) >= 1
    assert model.spent_today() > 200
    assert result.pending == bool(result.warnings) == bool(jobs)
